"""The Bench as a view: its panes, how they are laid out, and how the presenter's rows get into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Container

from workbench.tui.keys import ALWAYS, FOOTERS, hints
from workbench.tui.rows.model import Lines, Rows
from workbench.tui.screens.finding import FindingScreen
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.rowview import RowView
from workbench.tui.widgets.tree import TreePane

if TYPE_CHECKING:
    from textual.geometry import Region

    from workbench.context.place import Place
    from workbench.tui.app import WorkbenchApp
    from workbench.tui.presenter import Presenter
    from workbench.tui.rows.tree import Node, NodeId, TreeRows
    from workbench.tui.tabs import Tab

PANES = ("tree", "context", "detail", "dock")


def _titled(title: str, *words: str) -> Lines:
    rows = Lines((), words)
    rows.title = ((title, "title"),)
    return rows


class BenchView(FindingScreen[None]):
    """Panes and layout; what the keys do is in its subclasses."""

    AUTO_FOCUS = "#context"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared by Textual without ClassVar
        (0, "-narrow"),
        (100, "-normal"),
        (160, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012 - as above

    app: WorkbenchApp

    def __init__(self) -> None:
        super().__init__()
        self.presenter: Presenter | None = None
        self.tab: Tab = "log"
        self.tree_pane = TreePane(_titled("Cascade"), id="tree", edge=True)
        self.context_pane = RowView(_titled("Context"), id="context")
        self.detail_pane = RowView(_titled("Message"), id="detail", selecting=False)
        self.dock_pane = RowView(_titled("Log"), id="dock", follows=True)
        self.tree_rows: TreeRows | None = None
        self.tree_id: NodeId | None = None
        """The node under the tree's cursor, which stays under it while the tree grows."""
        self._header = SpanLine(((" cascade workbench", "bold"), ("  opening …", "dim")), id="header")
        self._crumb = SpanLine(id="crumb")
        self._shown_call: Place | None = None
        self._shown_run = ""
        """The nested run that it belongs to."""
        self._shown_detail: object = None
        self._home = 0
        """The row where the context's cursor is put by itself; while it stays there, it goes along."""
        self.last_pane = "context"
        self._tree_width: int | None = None
        self._dock_height: int | None = None
        self._settled_at: tuple[Region, Region, Region, Region] | None = None
        """Where the panes were when their lines were joined."""

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._crumb
        with Container(id="body"):
            yield self.tree_pane
            with Container(id="main"):
                yield self.context_pane
                yield self.detail_pane
        yield self.dock_pane
        yield self.footer

    def on_mount(self) -> None:
        self.offer_keys()
        self.app.theme_changed_signal.subscribe(self, lambda _: self.forget())
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._laid_out())

    def forget(self) -> None:
        """The theme changed: everything drawn is out of date."""
        for view in self.query(RowView):
            view.forget()
        for line in self.query(SpanLine):
            line.refresh()

    def show_preview(self, rows: TreeRows | None) -> None:
        """Show the phases of the file while the rest is still being opened."""
        if rows is not None and self.presenter is None:
            self.tree_pane.show(rows)

    # -- rows into panes ---------------------------------------------------------------------------------------------

    def refresh_all(self) -> None:
        """Redraw every pane from the state."""
        presenter = self.presenter
        if presenter is None:
            return
        session = self.app.session
        presenter.breakpoints = session.stepper.breakpoints if session is not None else ()
        self.show_tree(presenter)
        self.show_context(presenter)
        self.show_dock(presenter)
        self.show_lines(presenter)
        self.offer_keys()

    def refresh_live(self, *, turned: bool = True) -> None:
        """Redraw what moves while a call is in progress: its row and text, the header, and the spinner if it turned."""
        presenter = self.presenter
        if presenter is None:
            return
        self.show_lines(presenter)
        if presenter.state.waiting:
            self.show_context(presenter)
        if turned and self.tree_rows is not None and self.tree_rows.turning:
            self.show_tree(presenter)

    def show_tree(self, presenter: Presenter, *, keep: bool = False) -> None:
        """Redraw the tree. Its cursor goes to a call that was just selected, else stays on its node (``keep``)."""
        rows = presenter.tree(unfold=bool(self.tree_pane.filter))
        cursor: int | None = None
        selected, nested = presenter.state.selected, presenter.state.selected_run
        moved = (selected, nested) != (self._shown_call, self._shown_run)
        if selected is not None and moved and not keep:
            cursor = rows.row_of(selected, nested)
        elif self.tree_id is not None:
            cursor = rows.index_of(self.tree_id)
        elif presenter.phase:
            cursor = rows.index_of(("phase", presenter.phase))
        self.tree_rows = rows
        self.tree_pane.show(rows, cursor)
        if rows.nodes and self.tree_pane.cursor >= 0:
            self.tree_id = rows.nodes[self.tree_pane.cursor].id

    def tree_node(self) -> Node | None:
        """The node under the tree's cursor, if the tree has the focus."""
        at = self.tree_pane.cursor
        if self.focused is not self.tree_pane or self.tree_rows is None or not 0 <= at < len(self.tree_rows.nodes):
            return None
        return self.tree_rows.nodes[at]

    def show_context(self, presenter: Presenter) -> None:
        """Redraw the context, and the detail of its row."""
        self.set_class(not presenter.state.started, "-idle")
        rows = presenter.context(compact=self.has_class("-short"), divided=self.app.no_color)
        cursor: int | None = None
        selected, home = presenter.state.selected, presenter.home_row()
        nested = presenter.state.selected_run
        if (selected, nested) != (self._shown_call, self._shown_run) or (
            home != self._home and self.context_pane.cursor == self._home
        ):
            cursor = home
        self._shown_call, self._shown_run, self._home = selected, nested, home
        self.context_pane.show(rows, cursor)
        self.show_detail(presenter)

    def show_detail(self, presenter: Presenter) -> None:
        """Redraw the detail if it is about something else than before."""
        row = self.context_pane.cursor
        key = presenter.detail_key(row)
        if key == self._shown_detail:
            return
        if self._shown_detail is not None:
            self.detail_pane.filter = ""
        self._shown_detail = key
        presenter.gallery.lines = max(4, self.detail_pane.size.height - 3)
        document = presenter.detail(row)
        document.lay_out(self.detail_pane.inner_width)
        if presenter.streaming:
            top = len(document)
        elif document.focus:
            top = max(0, document.first_row(document.focus) - self.detail_pane.size.height // 3)
        else:
            top = 0
        self.detail_pane.show(document, top)

    def show_dock(self, presenter: Presenter) -> None:
        """Redraw the lower pane."""
        rows: Rows = presenter.dock(self.tab)
        self.dock_pane.selecting = self.tab != "output"
        self.dock_pane.follows = self.tab in ("log", "events")
        self.dock_pane.show(rows)

    def show_lines(self, presenter: Presenter) -> None:
        """Redraw the header and the breadcrumb."""
        self._header.show(presenter.header(self.size.width))
        self._crumb.show(presenter.crumb(self.size.width))

    def offer_keys(self) -> None:
        """The footer: what can be done now."""
        situation = self.presenter.situation() if self.presenter is not None else "idle"
        table = self.app.keys
        offered = FOOTERS[situation]
        if self.presenter is not None and self.presenter.state.shown.contests.all:
            offered = (*offered[:2], "view.candidates", *offered[2:])
        shown = hints(offered, table)
        if self.has_class("-zoom"):
            ((id, key, _),) = hints(("pane.zoom",), table)
            shown = ((id, key, "all panes"), *(hint for hint in shown if hint[0] != id))
        self.footer.offer(shown, hints(ALWAYS, table))

    # -- panes -------------------------------------------------------------------------------------------------------

    def pane(self) -> RowView:
        """The pane that a command means: the one with the focus, else the one that had it."""
        return self.focused if isinstance(self.focused, RowView) else self.query_one(f"#{self.last_pane}", RowView)

    def focus_pane(self, name: str) -> None:
        """Put the focus on a pane, and show it where only one shows at a time."""
        if self.has_class("-zoom") and not self.query_one(f"#{name}").has_class("-zoomed"):
            self.action_zoom()
        self.query_one(f"#{name}", RowView).focus()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, RowView) and event.widget.id is not None:
            self.last_pane = event.widget.id
            for group in ("tree", "dock"):
                self.set_class(self.last_pane == group, f"-at-{group}")

    def action_pane(self, step: int) -> None:
        at = PANES.index(self.last_pane)
        self.focus_pane(PANES[(at + step) % len(PANES)])

    def action_zoom(self) -> None:
        """Give the focused pane the whole screen, or give it back."""
        zoomed = self.has_class("-zoom")
        for view in self.query(RowView):
            view.set_class(not zoomed and view is self.pane(), "-zoomed")
        self.set_class(not zoomed, "-zoom")
        for name in ("dock", "tree"):
            self.set_class(not zoomed and self.last_pane == name, f"-zoom-{name}")
        self._size_panes()
        self.offer_keys()

    def action_resize(self, axis: str, by: int) -> None:
        """Move the edge of the tree or of the lower pane, in cells."""
        if not self.shares:
            self.app.say("One pane has the whole screen: there is no border to move.")
        elif axis == "width":
            self.resize_tree(self.tree_pane.size.width + by)
        else:
            self.resize_dock(self.dock_pane.size.height + by)

    @property
    def shares(self) -> bool:
        """Whether panes share the screen: in a narrow terminal, and zoomed, one has it all."""
        return not self.has_class("-zoom") and not self.has_class("-narrow")

    def resize_tree(self, width: int) -> None:
        """Make the tree so wide, in cells, or as near to it as leaves room for it and for the context."""
        self._resize(max(18, min(width, self.size.width - 50)), self._dock_height)

    def resize_dock(self, height: int) -> None:
        """Make the lower pane so high, in cells, or as near to it as leaves room for it and for the panes above."""
        self._resize(self._tree_width, max(3, min(height, self.size.height - 16)))

    def _resize(self, tree: int | None, dock: int | None) -> None:
        if (tree, dock) != (self._tree_width, self._dock_height):
            self._tree_width, self._dock_height = tree, dock
            self._size_panes()

    def _size_panes(self) -> None:
        """Give the panes the sizes that the user chose, where panes share the screen."""
        self.tree_pane.styles.width = self._tree_width if self.shares else None
        self.dock_pane.styles.height = self._dock_height if self.shares else None
        self.call_after_refresh(self.settle)

    def on_resize(self) -> None:
        self.call_after_refresh(self._size_panes)

    def _regions(self) -> tuple[Region, Region, Region, Region]:
        return self.tree_pane.region, self.context_pane.region, self.detail_pane.region, self.dock_pane.region

    def _laid_out(self) -> None:
        """A layout may come later than what was to follow it."""
        if self._settled_at is not None and self._settled_at != self._regions():
            self.settle()

    def settle(self) -> None:
        """After a layout: join the lines of neighbouring panes, and redraw what depends on sizes."""
        self._settled_at = self._regions()
        tree, main, detail, dock = self._settled_at
        for view in self.query(RowView):
            view.joints, view.edge_joints = {}, {}
        beside = bool(detail.area) and detail.y == main.y and detail.x > main.x
        self.context_pane.edge = beside
        self.tree_pane.edge = bool(tree.area and main.area and tree.right == main.x)
        if self.tree_pane.edge:
            edge = tree.right - 1
            self.tree_pane.joints[edge] = "┬"
            if detail.area and not beside:
                self.tree_pane.edge_joints[detail.y - tree.y] = "├"
            if dock.y == tree.bottom:
                self.dock_pane.joints[edge] = "┴"
        if beside:
            self.context_pane.joints[main.width - 1] = "┬"
            if dock.y == main.bottom:
                self.dock_pane.joints[main.right - 1] = "┴"
        self._shown_detail = None
        self.refresh_all()
        for view in self.query(RowView):
            view.refresh()

    def refocus(self) -> None:
        self.focus_pane(self.last_pane)
