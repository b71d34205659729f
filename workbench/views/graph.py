"""The phases of a cascade and their ways; with a run, the walk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from workbench.context.place import Place
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.journal.state import RunState
from workbench.language.graph import Graph
from workbench.views.cells import Row, Span, crop, flat, justify, width_of
from workbench.views.definition import kind_word
from workbench.views.model import Rows
from workbench.views.signs import status_sign
from workbench.views.tree import GAP, MOST_NAME, empty_columns, fitted, sum_cells, visit_status
from workbench.views.value import Block, Cell, View
from workbench.workspace.mermaid import RunPath, why


def by_phase(
    run: RunState | None,
) -> tuple[dict[str, list[VisitState]], dict[str, list[VisitState]], dict[str, list[CallState]]]:
    """The visits of each phase without those of candidates, the same with them (what they took belongs to the phase),
    and its calls."""
    visits: dict[str, list[VisitState]] = {}
    together: dict[str, list[VisitState]] = {}
    calls: dict[str, list[CallState]] = {}
    for visit in run.visits if run is not None else ():
        together.setdefault(visit.phase, []).append(visit)
        if not visit.branch or visit.parallel:
            visits.setdefault(visit.phase, []).append(visit)
    for call in run.calls if run is not None else ():
        calls.setdefault(call.place.phase, []).append(call)
    return visits, together, calls


def last_status(run: RunState | None, visits: Sequence[VisitState]) -> str:
    """The status of the last of a phase's visits as it is now, ``pending`` before the first one."""
    return visit_status(run, visits[-1]) if run is not None and visits else "pending"


class GraphView(View):
    """One block of lines for each phase: its model, its tools, its ways out."""

    def __init__(self, graph: Graph, walked: RunPath) -> None:
        self.graph, self.walked = graph, walked

    def blocks(self) -> Iterator[Block]:
        graph, walked = self.graph, self.walked
        for node in graph.nodes:
            kind = kind_word(node)
            facts = [kind if kind != "llm" else "", node.model or "", ", ".join(node.tools)]
            times = walked.visits[node.id]
            told = f"  {walked.status[node.id]}{f' x{times}' if times > 1 else ''}" if times else ""
            if walked.known and not times:
                told = "  not visited"
            yield (Cell(node.id, "head"), Cell("  ".join(["", *filter(None, facts)]), "dim"), Cell(told, "accent"))
            for number, edge in graph.ways(node.id):
                taken = walked.taken(graph, number)
                arrow = Cell("  → ", words="  to ")
                yield (
                    arrow,
                    f"{edge.dst}  ",
                    Cell(why(edge, graph.format), "dim"),
                    Cell(" taken" if taken else "", "ok"),
                )

    def json(self) -> dict[str, Any]:
        """Nodes and edges with their places in the file."""
        return _graph_json(self.graph, self.walked)


def _graph_json(graph: Graph, walked: RunPath) -> dict[str, Any]:
    return {
        "id": graph.id,
        "start": graph.start,
        "nodes": [
            {
                "id": node.id,
                "kind": node.kind,
                "model": node.model,
                "tools": list(node.tools),
                "line": node.span.line,
                **_status(node.id, walked),
            }
            for node in graph.nodes
        ],
        "edges": [
            {
                "from": edge.src,
                "to": edge.dst,
                "kind": edge.kind,
                "why": why(edge, graph.format),
                "line": edge.span.line,
                **({"taken": walked.taken(graph, number)} if walked.known else {}),
            }
            for number, edge in enumerate(graph.edges)
        ],
    }


def _status(name: str, walked: RunPath) -> Mapping[str, Any]:
    return {"status": walked.status.get(name), "visits": walked.visits[name]} if walked.known else {}


class FlowRows(Rows):
    """The graph with the walk of a run: below each phase its ways out, the taken ones first, with its visits, tokens,
    cost and time.
    """

    empty = ("The file has no cascade to show.",)

    def __init__(self, graph: Graph, run: RunState | None) -> None:
        """``run`` is None before the first one began."""
        self.walked = RunPath(run)
        self.title = (("Flow", "title"), (f"  {flat(graph.id)}", "name"))
        self._run = run
        self._visits, self._together, self._calls = by_phase(run)
        self._without = empty_columns(run, (one.seconds for some in self._visits.values() for one in some))
        order = {node.id: at for at, node in enumerate(graph.nodes)}
        names = [("↑ " if order[edge.dst] <= order[edge.src] else "") + flat(edge.dst) for edge in graph.edges]
        most = min(MOST_NAME, max(map(cell_len, names), default=0))
        self._lines: list[tuple[str, tuple[Span, ...]]] = []
        """Of each row the phase that it leads to, and of a way out its spans; a phase is laid out for the width."""
        for node in graph.nodes:
            self._lines.append((node.id, ()))
            ways = graph.ways(node.id)
            for number, edge in ways:
                taken = self.walked.taken(graph, number)
                corner = "└" if number == ways[-1][0] else "├"
                arrow = f"{corner}━▶ " if taken else f"{corner}╌▶ "
                times = f"taken ×{taken}" if taken > 1 else "taken" if taken else ""
                words = f"{flat(why(edge, graph.format))}  ".lstrip()
                token = "ok" if taken else "faint"
                to = (names[number] + " " * (most - cell_len(names[number]) + 2), "bold" if taken else "dim")
                self._lines.append((edge.dst, (("     ", "plain"), (arrow, token), to, (words, "dim"), (times, token))))
        self._kinds = {node.id: kind_word(node) for node in graph.nodes}
        self._longest = max((width_of(spans or self._left(name)) for name, spans in self._lines), default=0)

    def __len__(self) -> int:
        return len(self._lines)

    def heads(self, width: int) -> Sequence[Row]:
        if not self._calls:
            return ()
        names = {name: (name, "head") for name in ("calls", "in", "cached", "out", "cost", "time")}
        width = self._used(width)
        return (Row(justify(((" phase", "head"),), fitted(names, self._columns(width), self._without), width)),)

    def _used(self, width: int) -> int:
        """Cells of a line that are used of this many: the numbers stand near the longest name."""
        columns = sum(cell_len(text) for text, _ in fitted({}, self._columns(width), self._without))
        return min(width, max(100, self._longest + GAP + columns))

    def _columns(self, width: int) -> int:
        """Returns the number of columns of the tree that need a width: all of them, or the three of a narrow one."""
        return 100 if width >= 100 else 80 if width >= 80 else 50

    def row(self, index: int, width: int) -> Row:
        name, spans = self._lines[index]
        if spans:
            return Row(crop(spans, width))
        left = self._left(name)
        if not self._calls:
            return Row(crop(left, width))
        visits, width = self._visits.get(name, []), self._used(width)
        known = [visit.seconds for visit in visits if visit.seconds is not None]
        took = sum(known) if known else None
        sums = self._run.figures_of(self._together[name]) if self._run is not None and visits else None
        calls = self._calls.get(name, [])
        right = sum_cells(sums, calls, took, self._columns(width), without=self._without) if visits else ()
        return Row(justify(left, right, width))

    def _left(self, name: str) -> tuple[Span, ...]:
        """A phase with its mark, its kind and its visits."""
        visits = self._visits.get(name, [])
        mark = status_sign(last_status(self._run, visits))
        kind = "" if self._kinds[name] in ("llm", name) else f"  {self._kinds[name]}"
        times = f"  ×{len(visits)}" if len(visits) > 1 else ""
        return (
            (" ", "plain"),
            mark,
            (f" {flat(name)}", "bold" if visits else "plain"),
            (f"{kind}{times}", "dim"),
        )

    def phase(self, index: int) -> str:
        """The phase of a row, or the one that a way out leads to."""
        return self._lines[index][0] if 0 <= index < len(self._lines) else ""

    def call(self, index: int) -> Place | None:
        """The last call of that phase; None if it made none."""
        calls = self._calls.get(self.phase(index))
        return calls[-1].place if calls else None
