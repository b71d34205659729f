"""The cascade as a tree: phases as the file names them, under them what ran; and the same in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.tui.key_words import told
from workbench.tui.rows import tree_columns
from workbench.tui.rows.cells import Row, Span, Target, crop, flat, justify, width_of
from workbench.tui.rows.model import Rows
from workbench.tui.rows.signs import sign, status_sign
from workbench.tui.rows.tree_nodes import Node, NodeId, Nodes, PhaseOutline, TreeView, ended

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.state import RunState

__all__ = ["Node", "NodeId", "PhaseOutline", "TreeRows", "TreeView", "breadcrumb"]


class TreeRows(Rows):
    """The tree, built once for each change of the run; drawn on demand."""

    empty = ("No cascade is open.",)

    def __init__(self, run: RunState | None, view: TreeView) -> None:
        self.view = view
        self.nodes = tuple(Nodes(run, view))
        self.title = (("Cascade", "title"),)
        self._longest = max((width_of((*_left(node), *_noted(node))) for node in self.nodes if node.right), default=0)

    @property
    def turning(self) -> bool:
        """Whether a spinner shows."""
        return any(node.left and node.left[0][1] == "running" for node in self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def row(self, index: int, width: int) -> Row:
        node = self.nodes[index]
        if width < tree_columns.WIDE:
            return Row(justify(_left(node), (*node.right, (" ", "plain")), width), node.tone)
        if not node.calls and not node.right:
            return Row(crop(_left(node), width), node.tone)
        label = tree_columns.label_width(self._longest, width)
        figures = tree_columns.alone(node.right[-1], width)
        if node.calls:
            figures = tree_columns.figures(node.calls, width, counted=node.several)
        return tree_columns.row((*_left(node), *_noted(node)), figures, label, width, node.tone)

    def heads(self, width: int) -> Sequence[Row]:
        if width < tree_columns.WIDE or not any(node.calls for node in self.nodes):
            return ()
        return (tree_columns.head(tree_columns.label_width(self._longest, width), width),)

    def kept(self, needle: str, start: int = 0) -> Iterator[int]:
        """With each row the branches that it hangs on."""
        shown = set[int]()
        for index in super().kept(needle, start):
            while index not in shown:
                shown.add(index)
                index = self.parent_of(index)
        return iter(sorted(shown))

    def index_of(self, id: NodeId) -> int | None:
        """The row of a node, if it shows."""
        return next((i for i, node in enumerate(self.nodes) if node.id == id), None)

    def row_of(self, place: Place, run: str = "") -> int | None:
        """The row of a call (``run``: of a nested run), or of the nearest node above it that shows."""
        exact = self.index_of(("in", run, "call", str(place)) if run else ("call", str(place)))
        if exact is not None:
            return exact
        if run:
            return self.index_of(("child", run))
        return next((i for i, node in enumerate(self.nodes) if node.phase == place.phase), None)

    def parent_of(self, index: int) -> int:
        """The row of the node above."""
        depth = self.nodes[index].depth
        return next((i for i in range(index - 1, -1, -1) if self.nodes[i].depth < depth), index)


def _left(node: Node) -> tuple[Span, ...]:
    fold = "▾ " if node.unfolded else "▸ " if node.branches else "  "
    return ((" " + "  " * node.depth, "plain"), (fold, "faint"), *node.left)


def _noted(node: Node) -> tuple[Span, ...]:
    """What a narrow tree says before the number at its edge: visits, broken rules."""
    return ((" ", "plain"), *node.right[:-1]) if any(text for text, _ in node.right[:-1]) else ()


def breadcrumb(run: RunState | None, view: TreeView, width: int) -> tuple[Span, ...]:
    """The tree in one line, around the selected call: ``✓ intake › ⠋ triage › turn 3``."""
    spans: list[Span] = [(" ", "plain")]
    selected = view.selected
    if view.selected_run:
        return _nested_crumb(view, width)
    over = run is not None and run.status != "running"
    last = {visit.phase: ended(visit.status, over=over) for visit in run.visits} if run else {}
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


def _nested_crumb(view: TreeView, width: int) -> tuple[Span, ...]:
    """Where a nested run stands, around its selected call."""
    run, selected = view.children[view.selected_run], view.selected
    spans: list[Span] = [(" ↳ ", "accent"), (flat(run.session_id), "dim"), (" › ", "faint")]
    if selected is not None:
        spans.append((f"{flat(selected.phase)} ", "bold"))
        spans.append((f"› turn {selected.turn}" if selected.turn else "› beside the turns", "bold"))
    return crop((*spans, ("   ", "plain"), (Target(told("{run.out} goes back"), "run.out"), "faint")), width)


def nested_title(run: RunState, title: Sequence[Span]) -> tuple[Span, ...]:
    """The title of a context that belongs to a nested run."""
    return (*title[:1], (f"  ↳ {flat(run.session_id)}", "accent"), *title[1:], (told("  {run.out} goes back"), "faint"))
