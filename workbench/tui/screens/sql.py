"""The SQL console: a question, its answer as a grid, and what questions can be made from."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.message import Message
from textual.widget import Widget

from workbench.language.problem import Problem, Severity, Span
from workbench.store.faults import StoreError
from workbench.store.index.queries import Cancel
from workbench.store.sqltext import SqlFault, fault_of
from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.code import CodeArea
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.rowview import RowView
from workbench.views.cells import Span as Cells
from workbench.views.cells import flat
from workbench.views.keys import ALWAYS, FOOTERS, told
from workbench.views.numbers import plural, seconds
from workbench.views.result import ResultRows, SideRows, record
from workbench.workspace.sql_queries import EXAMPLES, SqlQueries, StatementHistory, TableInfo, TimedAnswer

HINT = (
    "{sql.ask} asks. Only SELECT, DESCRIBE, SHOW and EXPLAIN are answered: nothing here can change a run.",
    "{sql.pane} goes to the tables, examples and earlier questions; {list.open} takes one.",
)


class IndexAnswered(Message):
    """What a worker has found out: the tables, an answer, a count, or a fault."""

    def __init__(self, number: int, found: tuple[TableInfo, ...] | TimedAnswer | int | SqlFault) -> None:
        super().__init__()
        self.number = number
        self.found = found


class SqlScreen(WorkbenchScreen[None]):
    """Asks the index of the workspace in workers; the answer of an older question is dropped when it comes."""

    CSS_PATH = "sql.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("sql"), *bindings("find")]
    CLEARS: ClassVar[str] = "sql.close"
    PALETTE: ClassVar[tuple[str, ...]] = ("sql", "find", "text", "list")
    needs_focus: ClassVar[bool] = True
    AUTO_FOCUS = "#query"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012 - declared by Textual without ClassVar

    def __init__(self, root: Path, asking: SqlQueries, history: StatementHistory) -> None:
        """``root`` is the workspace: files are saved relative to it."""
        super().__init__()
        self._root = root
        self._asking = asking
        self._history = history
        self._back = 0
        """How far back in the history the query area is."""
        self._tables: tuple[TableInfo, ...] = ()
        self._unfolded: frozenset[str] = frozenset()
        self._number = 0
        self._cancel: Cancel | None = None
        self.answer: TimedAnswer | None = None
        self.total: int | None = None
        self.area = CodeArea(id="query", language="sql", line_numbers=True)
        self.side = RowView(SideRows((), frozenset(), EXAMPLES, history.statements), id="side")
        self.results = RowView(_titled(ResultRows(None, tuple(map(told, HINT)))), id="results")
        self._header = SpanLine(id="header")

    def compose(self) -> ComposeResult:
        yield self._header
        with Container(id="top"):
            yield self.area
            yield self.side
        yield self.results
        yield self.footer

    def on_mount(self) -> None:
        self.offer(FOOTERS["sql"], ALWAYS[:2])
        self.area.load_text(self._history.statements[-1] if self._history.statements else EXAMPLES[0][1])
        self._say("opening the index …", "dim")
        self._look_at_tables(self._number)
        if self._history.problem:
            self.services.say(self._history.problem, "warning")

    async def on_unmount(self) -> None:
        """Cancel what is being asked and let the index go, before the process may end: native code runs in it."""
        await asyncio.to_thread(self._leave, self._cancel)

    def _leave(self, cancel: Cancel | None) -> None:
        if cancel is not None:
            with suppress(StoreError):  # It ended by itself meanwhile.
                cancel.cancel()
        self._asking.close()

    # -- workers -----------------------------------------------------------------------------------------------------

    @work(thread=True, group="sql-tables", exit_on_error=False)
    def _look_at_tables(self, number: int) -> None:
        try:
            self.post_message(IndexAnswered(number, self._asking.tables()))
        except (StoreError, ImportError) as fault:
            self.post_message(IndexAnswered(number, SqlFault(str(fault))))

    @work(thread=True, group="sql-ask", exit_on_error=False)
    def _ask(self, number: int, sql: str, cancel: Cancel) -> None:
        try:
            answer = self._asking.ask(sql, cancel)
            self.post_message(IndexAnswered(number, answer))
            if answer.table.cut and (count := self._asking.count(sql, cancel)) is not None:
                self.post_message(IndexAnswered(number, count))
        except StoreError as fault:
            self.post_message(IndexAnswered(number, fault_of(sql, fault)))

    @work(thread=True, group="sql-stop", exit_on_error=False)
    def _stop(self, cancel: Cancel) -> None:
        cancel.cancel()

    def on_index_answered(self, event: IndexAnswered) -> None:
        found = event.found
        if isinstance(found, tuple):
            self._tables = found
            self._show_side()
            if self.answer is None and self._cancel is None:
                self._say(plural(len(found), "table"), "dim")
        elif event.number != self._number:
            return
        elif isinstance(found, TimedAnswer):
            self.answer, self.total = found, None
            self._show_answer(found)
            if not found.table.cut:
                self._cancel = None
        elif isinstance(found, int):
            self.total, self._cancel = found, None
            if self.answer is not None:
                self._show_head(self.answer)
        else:
            self._cancel = None
            self._show_fault(found)

    # -- what is shown -----------------------------------------------------------------------------------------------

    def _say(self, words: str, token: str = "plain") -> None:
        left: list[Cells] = [(" sql ", "faint"), (flat(self._root.name), "bold"), ("   ", "plain")]
        self._header.show((*left, (flat(words, 400), token)))

    def _show_answer(self, answer: TimedAnswer) -> None:
        self.area.mark(())
        self.results.show(_titled(ResultRows(answer.table)), 0)
        self._show_head(answer)
        for note in answer.notes:
            self.services.say(note, "warning")
        if self.focused is self.area and self.has_class("-narrow"):
            self.results.focus()

    def _show_head(self, answer: TimedAnswer) -> None:
        table = answer.table
        words = f"{plural(len(table), 'row')} in {seconds(answer.seconds)}"
        token = "ok"
        if table.cut:
            whole = f"{self.total:,}" if self.total is not None else "more"
            others = told("LIMIT or {sql.save} for others")
            words = f"the first {len(table):,} of {whole} rows, in {seconds(answer.seconds)}; {others}"
            token = "warning"
        if answer.notes:
            words += f"; {answer.notes[0]}"
            token = "warning"
        self._say(words, token)

    def _show_fault(self, fault: SqlFault) -> None:
        where = f"{fault.line}:{fault.column}: " if fault.line else ""
        self._say(f"error: {where}{fault.message}", "error")
        note = (f"error: {where}{fault.message}",)
        self.answer = None
        self.results.show(_titled(ResultRows(None, note, is_fault=True)), 0)
        if fault.line:
            span = Span(fault.line, fault.column, fault.line, fault.column + fault.length)
            self.area.mark((Problem(Severity.ERROR, "sql", fault.message, "query", span),))

    def _show_side(self) -> None:
        tables = [(table.name, table.columns) for table in self._tables]
        self.side.show(SideRows(tables, self._unfolded, EXAMPLES, self._history.statements[-20:]))

    # -- commands ----------------------------------------------------------------------------------------------------

    def action_ask(self) -> None:
        """Ask what stands in the query area; a question that is still going is cancelled."""
        sql = self.area.selected_text.strip() or self.area.plain_text.strip()
        if not sql:
            self.services.say(told("There is no question yet: {sql.pane}, then an example and {list.open}."))
            return
        if self._cancel is not None:
            self._stop(self._cancel)
        self._number += 1
        self._cancel = Cancel()
        self._back = 0
        self._history.add(sql)
        self._say(told("asking … ({sql.close} cancels)"), "running")
        self._ask(self._number, sql, self._cancel)
        self._show_side()

    def action_close(self) -> None:
        """Cancel a question that is going, else drop a filter; else go back."""
        if self._cancel is not None:
            cancel, self._cancel = self._cancel, None
            self._number += 1
            self._stop(cancel)
            self._say("cancelled", "warning")
        elif not self.clear_found():
            self.dismiss()

    def action_history(self, step: int) -> None:
        """An earlier question, or a later one."""
        statements = self._history.statements
        self._back = max(0, min(self._back + step, len(statements)))
        if self._back:
            self._put(statements[-self._back])

    def _put(self, sql: str) -> None:
        self.area.replace(sql, self.area.document.start, self.area.document.end)
        self.area.move_cursor(self.area.document.end)
        self.area.mark(())

    def action_pane(self) -> None:
        order = (self.area, self.results, self.side)
        at = next((index for index, view in enumerate(order) if view is self.focused), 0)
        wanted = order[(at + 1) % len(order)]
        self.set_class(wanted is self.side, "-at-side")
        wanted.focus()

    def action_columns(self, step: int) -> None:
        """Show columns further right, or further left."""
        rows = self.results.rows
        if isinstance(rows, ResultRows) and rows.scroll_columns(step):
            self.results.show()

    def action_save(self) -> None:
        """Write the answer to a file whose ending says the form."""
        answer = self.answer
        if answer is None:
            self.services.say("There is no answer to save yet.")
            return

        def done(text: str) -> str | None:
            name = text.strip()
            if Path(name).suffix.lower() not in (".csv", ".json", ".parquet"):
                return "the ending says the form: .csv, .json or .parquet"
            file = self._root / Path(name).expanduser()
            if file.exists():
                words = (("stay", "n", "No"), ("write", "w", "Write over it"))
                choice = ChoiceDialog("The file is there", f"{file} exists already.", words)

                def answered(said: str | None) -> None:
                    if said == "write":
                        self._save(answer, file)

                self.app.push_screen(choice, answered)
            else:
                self._save(answer, file)
            return None

        self.ask("save as", value="result.csv", done=done)

    @work(thread=True, group="sql-save", exit_on_error=False)
    def _save(self, answer: TimedAnswer, file: Path) -> None:
        try:
            rows = self._asking.save(answer, file)
        except StoreError as fault:
            self.app.call_later(self.services.say, str(fault), "error")
        else:
            self.app.call_later(self.services.say, f"{plural(rows, 'row')} in {file}")

    # -- events ------------------------------------------------------------------------------------------------------

    @on(RowView.Opened, "#results")
    def _row_opened(self, event: RowView.Opened) -> None:
        if self.answer is not None and event.index < len(self.answer.table):
            self.app.push_screen(Sheet(record(self.answer.table, event.index)))

    @on(RowView.Opened, "#side")
    def _side_opened(self, event: RowView.Opened) -> None:
        rows = self.side.rows
        if not isinstance(rows, SideRows) or event.index >= len(rows.entries):
            return
        kind, _, taken = rows.entries[event.index]
        if kind == "table":
            self._unfolded ^= {taken}
            self._show_side()
        elif kind == "column":
            self.area.insert(taken)
        elif kind in ("example", "history"):
            self._put(taken)
            self.set_class(False, "-at-side")
            self.area.focus()

    def main_list(self) -> RowView:
        return self.results

    def resting(self) -> Widget:
        return self.area


def _titled(rows: ResultRows) -> ResultRows:
    rows.title = (("TimedAnswer", "title"),)
    return rows
