"""The cascade as a tree: phases as the file names them, under them what ran; the selected call and its neighbours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workbench.tui.rows.cells import Row, Span, crop, flat, justify
from workbench.tui.rows.model import Rows
from workbench.tui.rows.numbers import count, seconds
from workbench.tui.rows.signs import sign, status_sign

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.state import CallState, RunState, VisitState

NodeId = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhaseOutline:
    """A phase as the file defines it."""

    name: str
    kind: str = "llm"
    line: int = 0
    from_: tuple[str, ...] = ()
    """Phases that may hand over to it; shown while it has not run."""
    errors: int = 0
    warnings: int = 0


@dataclass(frozen=True)
class TreeView:
    """What the tree shows beside the run itself."""

    outline: tuple[PhaseOutline, ...] = ()
    changed: frozenset[str] = frozenset()
    """Phases whose text differs from the running definition."""
    broken: tuple[str, ...] = ()
    """Breakpoints as text, in their order."""
    stopped_at: frozenset[str] = frozenset()
    """Phases with a breakpoint."""
    held: Place | None = None
    held_kind: str = ""
    selected: Place | None = None
    folding: Mapping[NodeId, bool] = field(default_factory=dict)
    """What the user unfolded (True) or folded."""
    tick: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """One row of the tree. ``place`` is the call it stands for, if any."""

    id: NodeId
    depth: int
    left: tuple[Span, ...]
    right: tuple[Span, ...] = ()
    branches: bool = False
    unfolded: bool = False
    place: Place | None = None
    phase: str = ""
    tone: str = ""


class TreeRows(Rows):
    """The tree, built once for each change of the run; drawn on demand."""

    empty = ("No cascade is open.",)

    def __init__(self, run: RunState | None, view: TreeView) -> None:
        self.view = view
        self.run = run
        self.nodes = tuple(self._nodes())
        self.title = (("Cascade", "title"),)

    @property
    def turning(self) -> bool:
        """Whether a spinner shows."""
        return any(node.left and node.left[0][1] == "running" for node in self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def row(self, index: int, width: int) -> Row:
        node = self.nodes[index]
        fold = "▾ " if node.unfolded else "▸ " if node.branches else "  "
        indent = " " + "  " * node.depth
        spans = justify(((indent, "plain"), (fold, "faint"), *node.left), (*node.right, (" ", "plain")), width)
        return Row(spans, node.tone)

    def index_of(self, id: NodeId) -> int | None:
        """The row of a node, if it shows."""
        return next((i for i, node in enumerate(self.nodes) if node.id == id), None)

    def row_of(self, place: Place) -> int | None:
        """The row of a call, or of the nearest node above it that shows."""
        exact = self.index_of(("call", str(place)))
        if exact is not None:
            return exact
        return next((i for i, node in enumerate(self.nodes) if node.phase == place.phase), None)

    def parent_of(self, index: int) -> int:
        """The row of the node above."""
        depth = self.nodes[index].depth
        return next((i for i in range(index - 1, -1, -1) if self.nodes[i].depth < depth), index)

    # -- building ----------------------------------------------------------------------------------------------------

    def _nodes(self) -> Iterator[Node]:
        visits: dict[str, list[VisitState]] = defaultdict(list)
        for visit in self.run.visits if self.run else ():
            visits[visit.phase].append(visit)
        known = [phase.name for phase in self.view.outline]
        unknown = [PhaseOutline(name) for name in visits if name not in known]
        for phase in (*self.view.outline, *unknown):
            yield from self._phase(phase, visits.get(phase.name, []))
        if self.view.broken:
            yield Node(("gap",), 0, ())
            yield Node(("breakpoints",), 0, (("Breakpoints", "head"),))
            for number, text in enumerate(self.view.broken, 1):
                left = (sign("breakpoint"), (f" {flat(text)}", "plain"))
                yield Node(("breakpoint", str(number - 1)), 0, left)

    def _phase(self, phase: PhaseOutline, visits: Sequence[VisitState]) -> Iterator[Node]:
        view = self.view
        id: NodeId = ("phase", phase.name)
        status = visits[-1].status if visits else "pending"
        calls = [call for visit in visits for call in visit.calls]
        here = view.selected is not None and view.selected.phase == phase.name
        unfolded = bool(visits) and view.folding.get(id, status == "running" or here)
        marks: list[Span] = []
        if phase.name in view.stopped_at:
            marks += [(" ", "plain"), sign("breakpoint")]
        if phase.name in view.changed:
            marks += [(" ", "plain"), sign("changed")]
        if phase.errors:
            marks += [(f" ✗{phase.errors}", "error")]
        elif phase.warnings:
            marks += [(f" ⚠{phase.warnings}", "warning")]
        held = view.held is not None and view.held.phase == phase.name
        mark = sign("held") if held else status_sign(status, view.tick)
        name: Span = (flat(phase.name), "plain" if visits else "dim")
        kind = ((f" {phase.kind}", "faint"),) if phase.kind != "llm" else ()
        note = ((" (handoff)", "faint"),) if not visits and phase.from_ else ()
        yield Node(
            id,
            0,
            (mark, (" ", "plain"), name, *kind, *marks, *note),
            self._totals(visits, calls),
            bool(visits),
            unfolded,
            calls[-1].place if calls else None,
            phase.name,
        )
        if unfolded:
            yield from self._under(visits)

    def _totals(self, visits: Sequence[VisitState], calls: Sequence[CallState]) -> tuple[Span, ...]:
        if not visits:
            return ()
        tokens = sum(visit.tokens_in for visit in visits)
        times = f"×{len(visits)} " if len(visits) > 1 else ""
        return ((times, "dim"), (count(tokens) if tokens else "", "dim"))

    def _under(self, visits: Sequence[VisitState]) -> Iterator[Node]:
        if len(visits) == 1:
            yield from self._turns(visits[0], 1)
            return
        for visit in visits:
            id: NodeId = ("visit", visit.branch, visit.phase, str(visit.visit))
            selected = self.view.selected
            here = selected is not None and selected.visit_key == (visit.branch, visit.phase, visit.visit)
            unfolded = bool(visit.calls) and self.view.folding.get(id, here)
            label = f"candidate {visit.branch.rpartition('/')[2]}" if visit.branch else f"visit {visit.visit}"
            place = visit.calls[-1].place if visit.calls else None
            yield Node(
                id,
                1,
                (status_sign(visit.status, self.view.tick), (f" {flat(label)}", "plain")),
                ((count(visit.tokens_in), "dim"),),
                bool(visit.calls),
                unfolded,
                place,
                visit.phase,
            )
            if unfolded:
                yield from self._turns(visit, 2)

    def _turns(self, visit: VisitState, depth: int) -> Iterator[Node]:
        many = visit.attempts > 1
        for call in visit.calls:
            place = call.place
            held = place == self.view.held
            label = f"turn {place.turn}" if place.turn else flat(call.purpose) or "beside"
            if many:
                label = f"{place.attempt}.{place.turn}" if place.turn else label
                label = f"try {label}" if place.turn else label
            if place.call > 1:
                label += f"·{place.call}"
            mark = (
                sign("held")
                if held
                else sign("recorded")
                if call.recorded
                else status_sign(call.status, self.view.tick)
            )
            extra: Span = (
                (f"  {self.view.held_kind}", "held")
                if held
                else (f"  {', '.join(dict.fromkeys(flat(t.tool) for t in call.tools))}", "dim")
            )
            yield Node(
                ("call", str(place)),
                depth,
                (mark, (f" {label}", "plain"), extra),
                self._took(call),
                place=place,
                phase=visit.phase,
                tone="selected" if place == self.view.selected else "",
            )
        for check in visit.checks:
            if not check.get("valid", True):
                text = f" {flat(str(check.get('check', 'check')))}: {flat(str(check.get('reason', '')))}"
                id = ("check", visit.branch, visit.phase, str(visit.visit), str(len(text)), text)
                yield Node(id, depth, (sign("broken"), (text, "error")), phase=visit.phase)

    def _took(self, call: CallState) -> tuple[Span, ...]:
        problems = ((f"✗{len(call.problems)} ", "error"),) if call.problems else ()
        if call.status != "done":
            return (*problems, (count(call.tokens_sent, call.grade), "faint"))
        return (*problems, (seconds(call.duration_s), "faint"))


def breadcrumb(run: RunState | None, view: TreeView, width: int) -> tuple[Span, ...]:
    """The tree in one line, around the selected call: ``✓ intake › ⠋ triage › turn 3``."""
    spans: list[Span] = [(" ", "plain")]
    selected = view.selected
    last = {visit.phase: visit.status for visit in run.visits} if run else {}
    names = [phase.name for phase in view.outline] or list(last)
    if selected is None:
        for name in names:
            spans += [status_sign(last.get(name, "pending"), view.tick), (f" {flat(name)}  ", "dim")]
    else:
        order = list(last)
        before = order[: order.index(selected.phase)][-2:] if selected.phase in order else []
        for name in before:
            spans += [status_sign(last[name], view.tick), (f" {flat(name)} ", "dim"), ("› ", "faint")]
        status = last.get(selected.phase, "pending")
        held = view.held is not None and view.held.phase == selected.phase
        spans += [
            sign("held") if held else status_sign(status, view.tick),
            (f" {flat(selected.phase)} ", "bold"),
            ("› ", "faint"),
        ]
        spans += [(f"turn {selected.turn}" if selected.turn else "beside the turns", "bold")]
    return crop(spans, width)
