"""The flow: the graph of the phases with the walk of the run on it; it follows a run that goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import BindingType

from workbench.context.place import Place
from workbench.engine.journal.state import RunState
from workbench.language.graph import Graph
from workbench.tui.bindings import bindings
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.rowview import RowView
from workbench.views.flow import MOST_NODES, Direction, FlowDrawing
from workbench.views.graph import FlowRows
from workbench.views.model import Rows

LOOKS = 0.5
"""Seconds between two looks at the run."""
MOST_SCREENS = 3
"""A drawing that is wider than so many screens is shown as an outline first."""
Shown = tuple[object, Graph, RunState | None, Place | None]
"""The values that the drawing depends on: the graph, the run, and the place where that is paused."""


class FlowPane(RowView):
    """The outline, or the drawing, in which the arrow keys and the mouse go from node to node."""

    moved = False
    """Whether a person chose the node that is selected."""

    @property
    def drawing(self) -> FlowDrawing | None:
        """The drawing; None where the outline shows."""
        return self.rows if isinstance(self.rows, FlowDrawing) and not self.filter else None

    def show(self, rows: Rows | None = None, cursor: int | None = None) -> None:
        super().show(rows, cursor)
        if rows is not None and self.drawing is not None:
            self.choose(self.drawing.selected)

    def choose(self, name: str) -> None:
        """Select a node of the drawing, and scroll no more than needed to show its box."""
        if (drawing := self.drawing) is None or name not in drawing.layout.boxes:
            return
        drawing.select(name, self.inner_width)
        box, top = drawing.box_rows(name), round(self.scroll_y)
        if (wanted := min(box.start, max(top, box.stop - self.page))) != top:
            self.scroll_to(y=wanted, animate=False, force=True)
        self.redraw()

    def go(self, direction: Direction) -> bool:
        """Select the node that lies in a direction; False where the outline shows."""
        if (drawing := self.drawing) is None:
            return False
        self.moved = True
        self.choose(drawing.neighbour(direction))
        return True

    def action_down(self) -> None:
        if not self.go("down"):
            super().action_down()

    def action_up(self) -> None:
        if not self.go("up"):
            super().action_up()

    def action_first(self) -> None:
        if (drawing := self.drawing) is None:
            super().action_first()
        else:
            self.moved = True
            self.choose(drawing.layout.layers[0][0])

    def action_last(self) -> None:
        if (drawing := self.drawing) is None:
            super().action_last()
        else:
            self.moved = True
            self.choose(drawing.layout.layers[-1][-1])

    def on_resize(self) -> None:
        super().on_resize()
        if (drawing := self.drawing) is not None:
            self.choose(drawing.selected)

    def on_click(self, event: events.Click) -> None:
        """A click selects the node under the mouse, a second one opens it."""
        if (drawing := self.drawing) is None or event.y < self.head_count:
            return
        event.prevent_default()
        name = drawing.at(event.x, round(self.scroll_y) + event.y - self.head_count)
        if not name:
            return
        if event.chain >= 2 and name == drawing.selected:
            self.action_open()
            return
        self.moved = True
        self.choose(name)


class FlowSheet(Sheet):
    """Shows the graph; enter on a phase, or on a way to it, goes to its last call in the Bench."""

    OFFERED: ClassVar[tuple[str, ...]] = (
        "sheet.close",
        "list.open",
        "flow.outline",
        "flow.left",
        "flow.right",
        "sheet.find",
        "sheet.filter",
        "sheet.copy",
    )
    PALETTE: ClassVar[tuple[str, ...]] = ("flow", "sheet", "list")
    SEARCHED: ClassVar[str] = "graph"
    BINDINGS: ClassVar[list[BindingType]] = bindings("flow")

    def __init__(self, make: Callable[[], Shown], go_to: Callable[[str, Place | None], None], width: int) -> None:
        """``make`` gives what is to be shown now; ``go_to`` gets a phase and its call; ``width``: of the screen."""
        self._make = make
        self._go_to = go_to
        self._key, graph, run, held = make()
        self._room = width - 2
        self._drawing = FlowDrawing(graph, run, held, room=self._room) if 0 < len(graph.nodes) <= MOST_NODES else None
        self._outline = FlowRows(graph, run)
        self._draws = self._drawing is not None and self._drawing.layout.width <= MOST_SCREENS * width
        super().__init__(self._flow)
        self.flow_pane = self.view = FlowPane(self._flow, id="sheet", selecting=not self._draws)

    @property
    def _flow(self) -> FlowDrawing | FlowRows:
        return self._drawing if self._draws and self._drawing is not None else self._outline

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(LOOKS, self._look)

    def _look(self) -> None:
        key, graph, run, held = self._make()
        if key == self._key:
            return
        self._key, before = key, self._drawing
        self._outline = FlowRows(graph, run)
        if before is not None:
            self._drawing = FlowDrawing(graph, run, held, before.layout, self._room)
            self._drawing.shift = before.shift
            if self.flow_pane.moved:
                self._drawing.selected = before.selected
        self._show_flow()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the drawing out anew: another width has room for other labels."""
        if (before := self._drawing) is None or event.size.width - 2 == self._room:
            return
        self._room = event.size.width - 2
        self._key, graph, run, held = self._make()
        self._drawing = FlowDrawing(graph, run, held, room=self._room)
        self._drawing.selected = before.selected
        if self._draws:
            self._show_flow()

    def _show_flow(self) -> None:
        self._rows = self._flow
        self.flow_pane.selecting = self._rows is self._outline
        self.flow_pane.show(self._rows)

    def action_side(self, direction: Direction) -> None:
        """To the node at the left or the right."""
        self.flow_pane.go(direction)

    def action_outline(self) -> None:
        """From the drawing to the outline and back."""
        if self._drawing is None:
            self.services.say(f"A graph of more than {MOST_NODES} nodes is shown as an outline.")
            return
        self._draws = not self._draws
        self._show_flow()

    def filter(self, view: RowView, text: str) -> None:
        """The outline is filtered: lines of a drawing say nothing by themselves."""
        if text and self._draws:
            self._draws = False
            self._show_flow()
        super().filter(view, text)

    def opened(self, row: int) -> None:
        """Enter goes to the last call of the phase."""
        phase, call = self._flow.phase(row), self._flow.call(row)
        self.dismiss()
        self._go_to(phase, call)
