"""Text to a cascade or a graph, or to problems with file, line and column. A file with errors gives all it can."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from workbench.language.check import checked, slug
from workbench.language.clean import clean_line
from workbench.language.decomposition.lowering import is_decomposition, lowered, unfenced
from workbench.language.diagnose import diagnosed, without
from workbench.language.dot.build import read_pipeline
from workbench.language.graph import Graph, lower
from workbench.language.model.cascade import Cascade
from workbench.language.nearest import nearest
from workbench.language.problem import Path, Problem, Severity
from workbench.language.read.source import Source
from workbench.language.read.text import read_source, unread_source

_ROUNDS = 8
"""How often faulty parts are removed before a draft is given up."""


class Loaded(Struct, frozen=True, dict=True):
    """The result of loading a file. ``cascade`` is None if an error of form prevents it; then ``draft`` has
    the rest.
    """

    source: Source
    cascade: Cascade | None
    problems: tuple[Problem, ...]
    outline: tuple[tuple[str, int], ...]
    """Name and line of each phase, as far as they could be read."""
    draft: Cascade | None = None
    """The cascade without its faulty parts, to be shown and checked further; never to be run."""
    own: Graph | None = None
    """The graph of a file that is not a cascade."""
    broken: bool = False
    """Parts of a graph were not understood, so findings about the whole graph would be wrong."""

    @property
    def ok(self) -> bool:
        """No error: the cascade may be checked further, and run."""
        return all(problem.severity is not Severity.ERROR for problem in self.problems)

    @cached_property
    def graph(self) -> Graph | None:
        """The graph of the cascade, or of its draft; None when there is neither."""
        if self.own is not None:
            return self.own
        cascade = self.cascade or self.draft
        return lower(cascade, self.source) if cascade is not None else None


def load(text: str | bytes, file: str = "") -> Loaded:
    """Read a file: a pipeline in DOT, or a cascade or task decomposition in YAML or JSON, by its name, its first words
    or its keys. Never raises for what the text holds."""
    source, problems = unread_source(text, file)
    if source.format == "dot":
        return _pipeline(source, problems)
    source, problems = _read(source.text, text, file)
    if source.data is None:
        if not problems:
            problems = [
                Problem(Severity.ERROR, "L203", "the file is empty; a cascade has 'cascade_id' and 'phases'", file)
            ]
        return Loaded(source, None, tuple(problems), ())
    if is_decomposition(source.data):
        made = lowered(source)
        problems = sorted((*problems, *made.problems), key=lambda p: (p.span, p.code))
        outline = tuple((node.id, node.span.line) for node in made.graph.nodes)
        cascade = made.cascade if all(problem.severity is not Severity.ERROR for problem in problems) else None
        return Loaded(made.source, cascade, tuple(problems), outline, made.cascade, made.graph)
    if other := _other_kind(source.data, file):
        message = "this is neither a cascade (no 'cascade_id', no 'phases') nor a decomposition (no 'sub_tasks')"
        wrong_kind = Problem(Severity.ERROR, "L203", message, file, source.span(()), hint=other)
        return Loaded(source, None, (*problems, wrong_kind), ())
    cascade, draft, found = _validated(source)
    problems += found
    problems += checked(source)
    problems.sort(key=lambda p: (p.span, p.code))
    return Loaded(source, cascade, tuple(problems), _outline(source), cascade or draft)


def _pipeline(source: Source, problems: list[Problem]) -> Loaded:
    if problems:
        return Loaded(source, None, tuple(problems), ())
    stem = slug(PurePath(source.file).name.partition(".")[0]) if source.file else "pipeline"
    read = read_pipeline(source.text, source.file, stem, source.bom)
    sound = all(problem.severity is not Severity.ERROR for problem in read.problems)
    outline = tuple((node.id, node.span.line) for node in read.graph.nodes) if read.graph is not None else ()
    cascade = read.cascade if sound else None
    return Loaded(read.source, cascade, read.problems, outline, read.cascade, read.graph, read.broken)


def _read(plain: str, text: str | bytes, file: str) -> tuple[Source, list[Problem]]:
    """The data of a file; a Markdown fence around all of it is looked over. ``plain``: its characters."""
    if (bare := unfenced(plain)) != plain:
        source, problems = read_source(bare, file)
        return replace(source, text=plain), problems
    return read_source(text, file)


def _validated(source: Source) -> tuple[Cascade | None, Cascade | None, list[Problem]]:
    """The cascade, or else a draft without the faulty parts, and the problems."""
    data: Any = source.data
    problems: list[Problem] = []
    for attempt in range(_ROUNDS):
        try:
            cascade = Cascade.model_validate(data)
        except ValidationError as fault:
            if attempt == 0:
                problems = diagnosed(fault, source)
            data = without(data, fault)
            if data is None:
                break
        else:
            return (cascade, None, problems) if attempt == 0 else (None, cascade, problems)
    return None, None, problems


_OTHER_KINDS = (
    ("the definition of a tool", ("tool_id",)),
    ("a snapshot", ("snapshot_name",)),
    ("a list of user stories", ("userStories",)),
    ("a plan of waves", ("waves",)),
    ("a list of tasks", ("tasks",)),
    ("an OpenAPI document", ("openapi",)),
    ("a workflow of n8n", ("nodes", "connections")),
    ("a flow of Flowise or Langflow, or another list of nodes and edges", ("nodes", "edges")),
    ("a flow of Prompt flow", ("nodes", "outputs")),
    ("an application of Dify", ("app", "kind", "version")),
    ("a declarative workflow of Agent Framework", ("kind", "trigger")),
    ("the configuration of a LangGraph application, whose graph is in its code", ("graphs",)),
    ("a JSON Schema", ("$schema", "type")),
    ("a JSON Schema", ("$schema", "properties")),
    ("a JSON Schema", ("$schema", "$defs")),
)
"""Other kinds of file, each with the keys that tell it."""
_BESIDE = {".replies": "offline replies", ".input": "an input", ".answers": "answers of a person"}
"""Files beside a cascade, by the end of their stem."""
_MOST_KEYS = 100
"""Keys of a file that are compared with those of a cascade."""


def _other_kind(data: Any, file: str) -> str:
    """Guesses the kind of a mapping without a cascade's own keys, in words; empty for one that may be a cascade."""
    if not isinstance(data, dict) or not data or "phases" in data or "cascade_id" in data:
        return ""
    kind = next((kind for kind, keys in _OTHER_KINDS if all(key in data for key in keys)), "")
    if kind or _is_tagged(data):
        return f"it looks like {kind or 'lists of tasks under tags'}"
    if beside := _BESIDE.get(PurePath(PurePath(file).stem).suffix, ""):
        return f"it looks like {beside} for a cascade: name the cascade"
    keys = [key for key in islice(data, _MOST_KEYS) if isinstance(key, str)]
    if misspelt := next((key for key in keys if nearest(key, ("sub_tasks",))), ""):
        return f"'sub_tasks' in place of '{clean_line(misspelt, 40)}' makes it a decomposition"
    if any(nearest(key, tuple(Cascade.model_fields)) for key in keys):
        return ""
    shown = ", ".join(f"'{clean_line(key, 40)}'" for key in keys[:6]) + (", …" if len(data) > 6 else "")
    return f"its keys are {shown}"


def _is_tagged(data: dict[Any, Any]) -> bool:
    """Returns whether every value is a mapping with ``tasks``."""
    return all(isinstance(value, dict) and isinstance(value.get("tasks"), list) for value in data.values())


def _outline(source: Source) -> tuple[tuple[str, int], ...]:
    phases = source.data.get("phases") if isinstance(source.data, dict) else None
    found: list[tuple[str, int]] = []
    for index, phase in enumerate(phases if isinstance(phases, list) else ()):
        if isinstance(phase, dict) and isinstance(name := phase.get("name"), str):
            path: Path = ("phases", index)
            found.append((name, source.span(path).line))
    return tuple(found)
