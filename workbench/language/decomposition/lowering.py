"""A decomposition as the engine runs it: a graph of dependencies, and a cascade with a phase for each node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.language.decomposition.reading import Reader
from workbench.language.graph import Edge, Graph, Node, NodeKind
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.job import CLARIFICATION, SYNTHESIS, Job, SubTask
from workbench.language.problem import Path, Problem
from workbench.language.read.source import Layout, Source, Spot
from workbench.language.words import ASK_HUMAN

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_FENCED = re.compile(r"\A(\s*```[^\n]*\n)(.*?)(\n?```\s*)\Z", re.DOTALL)


class LoweredFile(Struct, frozen=True):
    """The result of reading a file. It can be shown with errors, and run without any."""

    source: Source
    """Finds places by the paths of phases, too."""
    cascade: Cascade
    graph: Graph
    problems: tuple[Problem, ...]


def is_decomposition(data: Any) -> bool:
    """Returns whether data that was read from a file is a task decomposition."""
    return isinstance(data, dict) and "sub_tasks" in data and "phases" not in data and "cascade_id" not in data


def unfenced(text: str) -> str:
    """The text with blanks in place of a Markdown fence around the whole of it, so that all else keeps its place."""
    fence = _FENCED.match(text) if text.lstrip().startswith("```") else None
    return f"{_blank(fence[1])}{fence[2]}{_blank(fence[3])}" if fence else text


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def lowered(source: Source) -> LoweredFile:
    """Read a decomposition's data. Never raises for what it holds."""
    reader = Reader(source)
    job = reader.job
    name = _UNSAFE.sub("_", PurePosixPath(source.file.replace("\\", "/")).stem) or "decomposition"
    nodes, phases, places = _parts(job, source)
    edges: list[Edge] = []
    known = {task.id for task in job.tasks}
    for task in job.tasks:
        span = source.span((*places[task.id], "dependencies"))
        if job.question:
            edges.append(Edge(CLARIFICATION, task.id, "dependency", span=span))
        edges += [
            Edge(other, task.id, "dependency", span=span, implied=other in task.implied)
            for other in task.dependencies
            if other in known
        ]
    if job.synthesis and job.tasks:
        span = source.span(("synthesis_plan",))
        edges += [Edge(task.id, SYNTHESIS, "dependency", span=span) for task in job.tasks]
    graph = Graph(name, nodes, tuple(edges), "decomposition", "dataflow", job=job)
    about = {"cascade_id": name, "description": job.title or job.request or None, "strategy": job.strategy}
    # A cascade needs a phase; a decomposition may have nothing to do.
    cascade = Cascade.model_validate(about | {"phases": phases or (Phase(name="none", instructions="none"),)})
    cascade = cascade.model_copy(update={"phases": phases})
    placed = replace(source, layout=_Lowered(source.layout, tuple(places[phase.name] for phase in phases)))
    return LoweredFile(placed, cascade, graph, tuple(reader.problems))


def _parts(job: Job, source: Source) -> tuple[tuple[Node, ...], tuple[Phase, ...], dict[str, Path]]:
    nodes: list[Node] = []
    phases: list[Phase] = []
    places: dict[str, Path] = {}
    if job.question:
        places[CLARIFICATION] = ("clarification_query",)
        span = source.span(("clarification_query",))
        nodes.append(Node(CLARIFICATION, "human", span=span, label=job.question, prompt=job.question))
        phases.append(Phase(name=CLARIFICATION, tool=ASK_HUMAN, inputs={"question": job.question}))
    for task in job.tasks:
        places[task.id] = path = ("sub_tasks", task.index)
        nodes.append(_node(task, source, path))
        phases.append(_phase(task))
    if job.synthesis and job.tasks:
        places[SYNTHESIS] = ("synthesis_plan",)
        span = source.span(("synthesis_plan",))
        nodes.append(Node(SYNTHESIS, "synthesis", span=span, label="synthesis", prompt=job.synthesis))
        phases.append(Phase(name=SYNTHESIS, instructions=job.synthesis))
    return tuple(nodes), tuple(phases), places


def _node(task: SubTask, source: Source, path: Path) -> Node:
    kind: NodeKind = "llm" if task.action == "inference" else "tool"
    tools = () if kind == "llm" else (task.name,)
    span = source.span((*path, "id"))
    return Node(task.id, kind, _model(task), tools, span, task.description, task.prompt, task.action)


def _phase(task: SubTask) -> Phase:
    about = {"name": task.id, "strategy": task.strategy or None}
    if task.action == "inference":
        return Phase.model_validate(about | {"instructions": task.prompt, "model": _model(task)})
    return Phase.model_validate(about | {"tool": task.name or "?"}).model_copy(update={"inputs": dict(task.params)})


def _model(task: SubTask) -> str | None:
    """The model that an inference names itself."""
    named = task.params.get("model") if task.action == "inference" else None
    return named if isinstance(named, str) and named else None


class _Lowered:
    """Finds the values of phases, by their paths in a cascade, in the file that the phases were made from."""

    _FIELDS: Mapping[str, Path] = {
        "name": ("id",),
        "instructions": ("tool_or_prompt", "params", "prompt"),
        "model": ("tool_or_prompt", "params", "model"),
        "tool": ("tool_or_prompt", "name"),
        "inputs": ("tool_or_prompt", "params"),
    }
    _STRATEGY = ("dependency_config", "entity_context_config")

    def __init__(self, layout: Layout, places: Sequence[Path]) -> None:
        self._layout = layout
        self._places = places

    def spot(self, path: Path) -> Spot | None:
        """The place of a value of the file, or of a phase."""
        if path == ("strategy",):
            return self._config(())
        if path[:1] != ("phases",) or len(path) < 2:
            return self._layout.spot(path)
        index = path[1]
        if not isinstance(index, int) or not 0 <= index < len(self._places):
            return None
        place = self._places[index]
        if len(path) == 2 or place[0] != "sub_tasks":
            return self._layout.spot(place)
        if path[2] == "strategy":
            return self._config(place)
        field = self._FIELDS.get(str(path[2]))
        if field is None:
            return None
        return self._layout.spot((*place, *field, *path[3:]))

    def _config(self, place: Path) -> Spot | None:
        return next((spot for key in self._STRATEGY if (spot := self._layout.spot((*place, key))) is not None), None)
