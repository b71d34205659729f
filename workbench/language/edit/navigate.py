"""The name under a cursor: the kind of thing that it names, and what is known of it. Used for going to a definition,
and for the explanation beside the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import Struct, field

from workbench.language.edit import tasks
from workbench.language.edit.completion import Kind, Names, position_of
from workbench.language.edit.cursor import Cursor, cursor_at
from workbench.language.edit.dot import thing_at, words_of
from workbench.language.lint.environment import LintEnvironment, ValidatorFacts
from workbench.language.load import Loaded
from workbench.language.model.cascade import Phase
from workbench.language.model.context import SOURCE_KEYWORDS
from workbench.language.read.source import Format
from workbench.language.tables import table_name
from workbench.language.templates.names import FILTERS
from workbench.language.templates.sandbox import SANDBOX

_KINDS: Mapping[str, Kind] = {
    "phase": "phase",
    "source": "phase",
    "table": "phase",
    "tool": "tool",
    "validator": "validator",
    "model": "model",
}
"""The kind of thing that a field names, by its mark in the model."""
_CHAIN = re.compile(r"[A-Za-z_]\w*(?:\.\w+|\[['\"][^'\"\]]*['\"]\])*")
_PART = re.compile(r"\w+")
_FILE = re.compile(r"[^\s'\"{}]*\.(?:ya?ml|json|md|txt|py|sql|sh|j2|jinja2?)\b")


class NamedThing(Struct, frozen=True):
    """A name in a file: what it names, and its place in the text."""

    kind: Kind
    name: str
    start: int
    end: int


class Definition(Struct, frozen=True):
    """The definition of a named thing."""

    about: tuple[str, ...] = ()
    """Sentences, the most important first."""
    file: str = ""
    """The defining file; empty for the file itself, and for names that no file defines."""
    line: int = 0
    """From 1; 0 without a place."""


class Definitions(Struct, frozen=True):
    """The definitions in a file and in its surroundings, by name."""

    phases: Mapping[str, Definition] = field(default_factory=dict)
    tools: Mapping[str, Definition] = field(default_factory=dict)
    validators: Mapping[str, Definition] = field(default_factory=dict)
    others: Mapping[str, Definition] = field(default_factory=dict)
    """Classes (``.fast``) and variables (``$goal``) of a pipeline."""

    def of(self, thing: NamedThing, names: Names) -> Definition | None:
        """The definition of a name; None if it is unknown."""
        name = thing.name
        if thing.kind == "phase":
            return self.phases.get(name)
        if thing.kind == "tool":
            return self.tools.get(name)
        if thing.kind == "validator":
            return self.validators.get(name)
        if thing.kind == "model":
            words = names.models.get(name) or names.models.get(name.partition("::")[0], "")
            return Definition((words,)) if words else Definition(("No price is known for this model.",))
        if thing.kind == "filter":
            return Definition((filter_words(name),)) if name in FILTERS else None
        if thing.kind == "file":
            return Definition((), name, 1)
        if thing.kind == "name":
            return self.others.get(name)
        return None


def definitions_of(loaded: Loaded, around: LintEnvironment) -> Definitions:
    """Returns the definitions of a file that was read, with the tools and validators around it."""
    cascade = loaded.cascade or loaded.draft
    by_name = {phase.name: phase for phase in cascade.phases} if cascade is not None else {}
    phases = {
        name: Definition(_about_phase(by_name.get(name), line), line=line) for name, line in loaded.outline if name
    }
    tools = {
        name: Definition(
            tuple(
                filter(
                    None,
                    (_signature(name, facts.parameters), facts.description, needs and f"Needs {needs}."),
                )
            )
            or (f"{facts.kind} tool",),
            facts.file,
            facts.line,
        )
        for name, facts in (around.tools or {}).items()
        for needs in (around.needs(name),)
    }
    validators = {
        name: Definition(_about_validator(name, facts), facts.file, facts.line)
        for name, facts in (around.validators or {}).items()
    }
    if cascade is not None:
        for name in cascade.validators or {}:
            spot = loaded.source.spot(("validators", name))
            line = loaded.source.position(spot.key[0])[0] if spot is not None and spot.key is not None else 0
            validators[name] = Definition(("A validator of this file.",), line=line)
    others: dict[str, Definition] = {}
    if loaded.source.format == "dot":
        others = {name: Definition((said,), line=line) for name, (said, line) in words_of(loaded.source.text).items()}
    return Definitions(phases, tools, validators, others)


def _signature(name: str, parameters: tuple[str, ...]) -> str:
    return f"{name}({', '.join(parameters)})" if parameters else ""


_READ = re.compile(r"\binput\.(\w+)")


def _about_validator(name: str, facts: ValidatorFacts) -> tuple[str, ...]:
    """Its arguments, what it does, and how the input that it reads is written."""
    read = dict.fromkeys(_READ.findall(facts.description))
    example = facts.example or (f"{{{', '.join(f'{json.dumps(key)}: …' for key in read)}}}" if read else "")
    lines = (
        "  ".join(filter(None, (_signature(name, facts.parameters), example and f"input: {example}"))),
        facts.description or f"{facts.kind} validator",
        example and "input is the input of the run: in its input file, or after --input.",
    )
    return tuple(filter(None, lines))


def _about_phase(phase: Phase | None, line: int) -> tuple[str, ...]:
    if phase is None:
        return (f"Phase of line {line}.",)
    facts = [f"phase of line {line}"]
    if phase.tool:
        facts.append(f"runs {phase.tool}")
    if phase.model:
        facts.append(phase.model)
    if phase.tools:
        facts.append(f"tools {', '.join(phase.tools)}")
    first = next((text.strip() for text in (phase.instructions or "").splitlines() if text.strip()), "")
    return (" · ".join(facts), *((first,) if first else ()))


def filter_words(name: str) -> str:
    """Describes a filter of the templates: the first sentence of its own description."""
    function = SANDBOX.filters.get(name)
    text = " ".join((getattr(function, "__doc__", "") or "").split("\n\n")[0].split())
    sentence, dot, _ = text.partition(". ")
    said = (sentence + dot).strip().replace("``", "").replace(":func:", "").replace("`", "")
    return f"{name}: {said}" if said else f"{name}: a filter of the templates."


def named_at(text: str, offset: int, form: Format) -> NamedThing | None:
    """The name at an offset; None if there is none. Works in a text that cannot be parsed."""
    if form == "dot":
        named = thing_at(text, offset)
        return NamedThing(*named) if named is not None else None
    cursor = cursor_at(text, offset, form)
    if tasks.is_task_text(text):
        return _of_task(text, offset, cursor)
    stand = position_of(cursor.path if cursor.slot != "key" else cursor.target)
    found = _chain_at(text, offset) if cursor.slot != "key" else None
    if found is not None and _is_template(text, offset, stand.field.template if stand and stand.field else ""):
        return _in_template(text, offset, found)
    if stand is None or stand.field is None or stand.owner is None:
        return None
    word = _word(text, offset)
    if word is None:
        return None
    start, end, name = word
    kind: Kind | None = None
    file = _file(text, offset)
    if cursor.slot == "key":
        keyed = _KINDS.get(stand.field.keys) if cursor.path[-1:] == (stand.field.key,) else None
        return NamedThing(keyed, name, start, end) if keyed is not None else None
    if file is not None:
        return NamedThing("file", file[2].removeprefix("@"), file[0], file[1])
    mark = stand.field.names
    if stand.owner is Phase and stand.field.key == "name":
        kind = "phase"
    elif not (mark == "source" and name.lower() in SOURCE_KEYWORDS):
        kind = _KINDS.get(mark)
    if mark == "table":
        start, name = start + len(table_name("")), name.removeprefix(table_name(""))
    elif kind == "model":
        start, end, name = _wide(text, offset)
    return NamedThing(kind, name, start, end) if kind is not None else None


def _of_task(text: str, offset: int, cursor: Cursor) -> NamedThing | None:
    """The task, tool or model that is named at a place of a decomposition."""
    if (found := tasks.placeholder_at(text, offset)) is not None:
        return NamedThing("phase", *found)
    kind = tasks.kind_at(cursor.path) if cursor.slot != "key" else ""
    if not kind:
        return None
    start, end, name = _wide(text, offset)
    return NamedThing(kind, name, start, end) if name else None


def _chain_at(text: str, offset: int) -> re.Match[str] | None:
    """The chain of names, as in ``outputs.look``, that an offset is in or at the end of."""
    begin = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[begin : end if end >= 0 else len(text)]
    return next((one for one in _CHAIN.finditer(line) if one.start() <= offset - begin <= one.end()), None)


def _is_template(text: str, offset: int, template: str) -> bool:
    opened = max(text.rfind("{{", 0, offset), text.rfind("{%", 0, offset))
    closed = max(text.rfind("}}", 0, offset), text.rfind("%}", 0, offset))
    return opened > closed or template == "condition"


def _in_template(text: str, offset: int, chain: re.Match[str]) -> NamedThing | None:
    begin = text.rfind("\n", 0, offset) + 1
    start = begin + chain.start()
    parts = [(part.group(), begin + part.start() + chain.start()) for part in _PART.finditer(chain.group())]
    root = parts[0][0]
    if text[:start].rstrip().endswith("|"):
        return NamedThing("filter", root, start, start + len(root))
    if len(parts) < 2 or root not in ("outputs", "state", "input"):
        return NamedThing("name", root, start, start + len(root))
    name, at = parts[1]
    if root == "outputs":
        return NamedThing("phase", name, at, at + len(name))
    if root == "state" and name.startswith("output_"):
        return NamedThing("phase", name.removeprefix("output_"), at + len("output_"), at + len(name))
    return NamedThing("name", f"{root}.{name}", at, at + len(name))


def _word(text: str, offset: int) -> tuple[int, int, str] | None:
    """The word of letters, digits, - and _ around an offset."""
    return _around(text, offset, re.compile(r"[\w-]+"))


def _wide(text: str, offset: int) -> tuple[int, int, str]:
    """The same with the other characters that names of models have."""
    found = _around(text, offset, re.compile(r"[^\s'\",\[\]{}#]+"))
    return found if found is not None else (offset, offset, "")


def _file(text: str, offset: int) -> tuple[int, int, str] | None:
    return _around(text, offset, _FILE)


def _around(text: str, offset: int, pattern: re.Pattern[str]) -> tuple[int, int, str] | None:
    begin = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[begin : end if end >= 0 else len(text)]
    for found in pattern.finditer(line):
        if found.start() <= offset - begin <= found.end():
            return begin + found.start(), begin + found.end(), found.group()
    return None
