"""The batch screen: inputs by variants, and below the cell under the cursor; two cells are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from workbench.store.batches import batch_names
from workbench.store.faults import StoreError
from workbench.tui.bindings import bindings
from workbench.tui.screens.annotator import AnnotationTarget, Annotator
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.sheet import DiffSheet, Sheet
from workbench.tui.widgets.rowview import RowView
from workbench.views.batch import ORDERS, BatchRows, VariantRows, beside, cell_rows, diff_rows
from workbench.views.keys import ALWAYS, FOOTERS
from workbench.views.model import Rows
from workbench.views.text import TextRows
from workbench.workspace.batch.results import StoredBatch

if TYPE_CHECKING:
    from workbench.analysis.batch.matrix import CellResult, Matrix
    from workbench.tui.screens.annotator import What
    from workbench.views.batch import BatchPosition
    from workbench.workspace.session import Workspace

BESIDE = 50
"""Cells of the terminal for each of the cells that stand beside each other."""
LOOK_EVERY = 1.0
"""Seconds between two looks whether another process has gone on with the batch."""


class BatchScreen(WorkbenchScreen[None]):
    """One batch at a time, the one that was run last first."""

    CSS_PATH = "batch.tcss"
    CLEARS: ClassVar[str] = "batch.close"
    needs_focus: ClassVar[bool] = True
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012 - declared by Textual without ClassVar
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("batch"), *bindings("find"), *bindings("annotate")]
    PALETTE = ("batch", "find", "annotate", "list")

    def __init__(self, workspace: Workspace, left: BatchPosition) -> None:
        """``left`` is where it was left, and keeps that."""
        super().__init__()
        self._workspace, self._left = workspace, left
        self.table = RowView(BatchRows(None, reading=True), id="table")
        self.card = RowView(TextRows([], (("Cell", "title"),)), id="card", selecting=False)
        self.matrix: Matrix | None = None
        self._names: list[str] = []
        self._at = 0
        """Which of the batches is shown."""
        self._column, self._order, self._marked = left.column, left.order, left.marked
        self._stored: StoredBatch | None = None
        """What is read of the one that is shown."""
        self._wanted = self._taken = 0
        """How often it was asked for anew, and how often when what is shown was read."""
        self._annotator = Annotator(self)

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.card
        yield self.footer

    def on_mount(self) -> None:
        self._fit()
        self.table.focus()
        self.look()
        self.set_interval(LOOK_EVERY, self.look)

    def on_unmount(self) -> None:
        """Keep where it was left."""
        if self.matrix is not None:
            row = self._row()
            self._left.name, self._left.row = self.matrix.plan.name, -1 if row is None else row
            self._left.column, self._left.order, self._left.marked = self._column, self._order, self._marked
            self._left.filter = self.table.filter

    def main_list(self) -> RowView:
        return self.table

    # -- what is there -----------------------------------------------------------------------------------------------

    def look_again(self) -> None:
        """Read the batch anew: what is said of its runs may have changed, or another batch is wanted."""
        self._wanted += 1
        self.look()

    @work(thread=True, exclusive=True, group="look", exit_on_error=False)
    def look(self) -> None:
        """Read the batch, if it has changed or was asked for anew."""
        store, wanted = self._workspace.project.store, self._wanted
        again = wanted != self._taken
        names = batch_names(store.root) if not self._names or again else self._names
        if not names:
            if self.matrix is None:
                self.app.call_later(self._show)
            return
        if self._stored is None and self._left.name in names:
            self._at = names.index(self._left.name)
        name = names[min(self._at, len(names) - 1)]
        try:
            if self._stored is None or self._stored.name != name:
                self._stored = StoredBatch(store, name)
            matrix = self._stored.read(again=again)
        except StoreError as fault:
            self.app.call_later(self.services.say, str(fault), "error")
            return
        if matrix is not None:
            self.app.call_later(self._take, names, wanted, matrix)

    def _take(self, names: list[str], wanted: int, matrix: Matrix) -> None:
        if not self.is_attached:
            return
        opens, was = self.matrix is None, self.matrix.plan.name if self.matrix is not None else self._left.name
        if was != matrix.plan.name:
            self._column, self._marked = 0, None
        self._names, self._taken, self.matrix = names, wanted, matrix
        self._column = min(self._column, len(matrix.plan.variants) - 1)
        self._show(self._left.row if opens and was == matrix.plan.name else None)
        if opens and was == matrix.plan.name and self._left.filter:
            self.filter(self.table, self._left.filter)

    def _show(self, row: int | None = None) -> None:
        """``row`` of the plan is where the cursor goes; None leaves it on its row."""
        if not self.is_attached:
            return
        chosen = self._row() if row is None else row
        rows = BatchRows(self.matrix, self._column, self._order, self._marked)
        cursor = rows.rows.index(chosen) if chosen in rows.rows else 0
        self._shared(rows)
        self.table.show(rows, cursor)
        self._fit()
        self._show_card()

    def _fit(self) -> None:
        """The table is as high as its rows, up to three fifths of the screen; the cell has the rest. Without a batch
        there is nothing to do but to go back."""
        shown = self.matrix is not None
        self.card.display = shown
        self.offer(FOOTERS["batch"] if shown else (), (*ALWAYS[:2], "batch.close"))
        if shown:
            self.table.styles.height = self._shared(self.table.rows)

    def _shared(self, rows: Rows) -> int:
        """Lines of the table. Its cells wrap into those that it would leave of its part."""
        width, most = self.table.inner_width, self.size.height * 3 // 5
        heads = 1 + len(rows.heads(width))
        lines = rows.share(width, most - heads) if isinstance(rows, BatchRows) else len(rows)
        return max(5, min(heads + lines, most))

    def on_resize(self) -> None:
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        self._fit()
        self.table.show()  # Its cells may have other lines now, in a table of the same height.
        self._show_card()

    def _show_card(self) -> None:
        row = self._row()
        if self.matrix is None or row is None:
            return
        here = (row, self._column)
        most = max(1, self.size.width // BESIDE)
        cells = beside(here, self._other(here), len(self.matrix.plan.variants), most)
        self.card.show(cell_rows(self.matrix, cells, here, typeset=self._left.typeset), 0)

    def _other(self, here: tuple[int, int]) -> tuple[int, int] | None:
        """The cell that one is compared with: the marked one, else that of the first other variant of its row; None if
        there is no other."""
        assert self.matrix is not None
        other = self._marked or (here[0], 0 if here[1] else 1)
        return None if other == here or other[1] >= len(self.matrix.plan.variants) else other

    def _row(self) -> int | None:
        """The row of the plan under the cursor."""
        rows = self.table.rows
        if not isinstance(rows, BatchRows) or not 0 <= self.table.cursor < len(rows):
            return None
        return rows.rows[self.table.cursor]

    def cell(self) -> tuple[CellResult, ...]:
        """The results under the cursor."""
        row = self._row()
        return self.matrix.at(row, self._column) if self.matrix is not None and row is not None else ()

    @on(RowView.Chosen, "#table")
    def _chosen(self) -> None:
        self._show_card()

    # -- moving ------------------------------------------------------------------------------------------------------

    def action_column(self, by: int) -> None:
        """The next variant."""
        if self.matrix is not None:
            self._column = max(0, min(self._column + by, len(self.matrix.plan.variants) - 1))
            self._show()

    def action_sort(self) -> None:
        """The next order."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._show()

    def action_batch(self, by: int) -> None:
        """Another batch."""
        if self._names:
            self._at = max(0, min(self._at + by, len(self._names) - 1))
            self.look_again()

    def action_close(self) -> None:
        """Drop a filter or a search, then the order; else back."""
        if self.clear_found():
            return
        if self._order != ORDERS[0]:
            self._order = ORDERS[0]
            self._show()
        else:
            self.app.pop_screen()

    # -- one cell ----------------------------------------------------------------------------------------------------

    @on(RowView.Opened, "#table")
    def _opened(self) -> None:
        """Show the run of the cell in the Bench."""
        run = next((one.run for one in self.cell() if one.run), "")
        if run:
            self.services.navigation.show_run(run)
        elif self.matrix is not None:
            self.services.say("This cell has not run.", "warning")

    def action_cell(self) -> None:
        """The cell whole, on a sheet."""
        row = self._row()
        if self.matrix is not None and row is not None:
            here, typeset = (row, self._column), self._left.typeset
            self.app.push_screen(Sheet(cell_rows(self.matrix, [here], here, typeset=typeset, whole=True)))

    def action_typeset(self) -> None:
        """Draw the Markdown of outputs, or show it as it is written."""
        self._left.typeset = not self._left.typeset
        self._show_card()

    def action_copy(self) -> None:
        if found := self.cell():
            self.services.copy(found[0].output or found[0].reason, "the output")

    def action_mark(self) -> None:
        """Mark the cell, or take the mark away."""
        row = self._row()
        if row is not None:
            here = (row, self._column)
            self._marked = None if self._marked == here else here
            self._show()

    def action_diff(self) -> None:
        """Compare the cell with the marked one, else against the first other variant of its row."""
        row = self._row()
        if self.matrix is None or row is None:
            return
        here = (row, self._column)
        if (other := self._other(here)) is None:
            self.services.say("There is only one cell: mark another one first.", "warning")
            return
        self.app.push_screen(DiffSheet(diff_rows(self.matrix, other, here)))

    def action_compare(self) -> None:
        """The variants against the one under the cursor, on a sheet."""
        if self.matrix is not None:
            self.app.push_screen(Sheet(VariantRows(self.matrix, self._column)))

    def action_annotate(self, what: What) -> None:
        """Say something of the run of the cell: a score is that of the scorer 'person'."""
        found = next((one for one in self.cell() if one.run), None)
        if found is None:
            self.services.say("This cell has not run.", "warning")
            return
        project = self._workspace.project
        try:
            labels = project.store.annotations(found.run).run
        except StoreError as fault:
            self.services.say(str(fault), "error")
            return
        name = found.session or found.run
        self._annotator.annotate(
            what, AnnotationTarget(project, (found.run,), name, labels, lambda *_: self.look_again())
        )

    def action_link(self) -> None:
        found = next((one for one in self.cell() if one.run), None)
        if found is None:
            self.services.say("This cell has not run.", "warning")
        else:
            name = found.session or found.run
            self._annotator.link(self._workspace.project, found.run, found.session, name)
