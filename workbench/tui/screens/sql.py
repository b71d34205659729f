"""The SQL console: a query, its result as a grid, and the catalogue of what a query can be made from."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea

from workbench.language.edit.completion import Completion
from workbench.language.problem import Problem, Severity, TextSpan
from workbench.store.faults import StoreError
from workbench.store.index.queries import Cancel
from workbench.store.sqltext import SqlFault
from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.code import CodeArea
from workbench.tui.widgets.completing import Completing
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.popup import Popup
from workbench.tui.widgets.rowview import RowView
from workbench.views.cells import Span, flat
from workbench.views.keys import ALWAYS, FOOTERS, told
from workbench.views.numbers import plural, seconds
from workbench.views.result import INNER, CatalogueEntry, CatalogueRows, FoundPlace, ResultRows, place_of_row, record
from workbench.views.text import TextRows
from workbench.workspace.folders import at_home
from workbench.workspace.sql_completion import complete_sql
from workbench.workspace.sql_queries import (
    EXAMPLES,
    SavedQueries,
    SqlQueries,
    StatementHistory,
    StatementOutcome,
    TableInfo,
    TimedAnswer,
)

HINT = (
    "{sql.ask} runs the query. Only SELECT, DESCRIBE, SHOW and EXPLAIN are allowed: a query cannot change a run.",
    "{sql.pane} goes to the catalogue of tables, examples and earlier queries; {list.open} takes one.",
)

LEAST_RESULT = 6
"""Lines of a result."""


class IndexAnswered(Message):
    """The result of a worker: the tables, a result, a count, or a fault."""

    def __init__(self, number: int, found: tuple[TableInfo, ...] | TimedAnswer | int | SqlFault) -> None:
        super().__init__()
        self.number = number
        self.found = found


class SqlResult(Struct, frozen=True):
    """The result that was shown when the console was left."""

    answer: TimedAnswer
    total: int | None
    """Rows of the whole result, where it was cut and they were counted."""
    row: int
    """Where the cursor was."""


class SqlScreen(WorkbenchScreen[None]):
    """Queries the index of the workspace in workers; the result of an older query is dropped when it comes."""

    CSS_PATH = "sql.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("sql"), *bindings("find")]
    CLEARS: ClassVar[str] = "sql.close"
    PALETTE: ClassVar[tuple[str, ...]] = ("sql", "find", "text", "list")
    needs_focus: ClassVar[bool] = True
    AUTO_FOCUS = "#query"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012 - declared by Textual without ClassVar

    def __init__(
        self,
        root: Path,
        asking: SqlQueries,
        history: StatementHistory,
        saved: SavedQueries,
        before: SqlResult | None = None,
        left: Callable[[SqlResult], object] = lambda result: None,
    ) -> None:
        """``root`` is the workspace: files are written relative to it. ``before`` is shown again; ``left`` gets what is
        shown when the console is left."""
        super().__init__()
        self._before, self._left = before, left
        self._root = root
        self._asking = asking
        self._history = history
        self._saved = saved
        self._kept = saved.all()
        self._name = ""
        """The name of the saved query that was taken last."""
        self._back = 0
        """How far back in the history the query area is."""
        self._tables: tuple[TableInfo, ...] = ()
        self._unfolded: frozenset[str] = frozenset()
        self._number = 0
        self._asked = ""
        """The text of the area when a query was run."""
        self._statement = ""
        """The query that was run last: the text of the area, or what was selected of it."""
        self._begins = (0, 0)
        """Row and column of the area at which it begins."""
        self._cancel: Cancel | None = None
        self.answer: TimedAnswer | None = None
        self.total: int | None = None
        self.area = CodeArea(id="query", language="sql", line_numbers=True)
        self.popup = Popup(id="popup")
        self.completing = Completing(self.area, self.popup, self._find_offer)
        self.side = RowView(self._catalogue(), id="side")
        self.about = RowView(TextRows([]), id="about", selecting=False)
        self.about.can_focus = False
        self.results = RowView(_titled(ResultRows(None, tuple(map(told, HINT)))), id="results")
        self._header = SpanLine(id="header")

    def compose(self) -> ComposeResult:
        yield self._header
        with Container(id="top"):
            yield self.area
            with Container(id="catalogue"):
                yield self.side
                yield self.about
        yield self.results
        yield self.footer
        yield self.popup

    def on_mount(self) -> None:
        self._offer_keys()
        before = self._history.draft or (self._history.statements[-1] if self._history.statements else EXAMPLES[0][1])
        self.area.load_text(before)
        self._say("opening the index …", "dim")
        self._look_at_tables(self._number)
        if self._before is not None:
            self.answer, self.total = self._before.answer, self._before.total
            self._show_answer(self.answer)
            self.call_after_refresh(self.results.move_to, self._before.row)
        if self._history.problem:
            self.services.say(self._history.problem, "warning")

    async def on_unmount(self) -> None:
        """Keep a query that was not run. Cancel the one that runs and let the index go, before the process may end:
        native code runs in it."""
        if self.answer is not None:
            self._left(SqlResult(self.answer, self.total, self.results.cursor))
        if self.area.text != EXAMPLES[0][1]:
            self._history.keep_draft(self.area.plain_text)
        await asyncio.to_thread(self._leave, self._cancel)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget is not self.area:
            self.popup.close()
        self._offer_keys()

    def on_resize(self) -> None:
        self.popup.close()
        self._share_lines()

    def _share_lines(self) -> None:
        """A result has as many lines as its rows need, up to a share of the screen; query and catalogue the rest."""
        most = (self.size.height - 2) * (2 if self.has_class("-at-side") else 3) // 5
        self.results.styles.height = max(LEAST_RESULT, min(self.results.wanted + 1, most))

    def _show_results(self, rows: ResultRows) -> None:
        self.results.show(_titled(rows), 0)
        self._share_lines()

    def _offer_keys(self) -> None:
        """Offer the keys of the part with the focus alone."""
        part = "sql_result" if self.focused is self.results else "sql_side" if self.focused is self.side else "sql"
        entry = self._entry(self.side.cursor)
        kind = entry.kind if entry is not None else ""
        useless = {id for id, of in (("sql.rows", "table"), ("sql.drop", "saved"), ("list.open", kind)) if of != kind}
        useless |= {"sql.rows"} if entry is not None and entry.taken == INNER else set()
        useless |= {"list.open"} if kind == "head" else set()
        self.offer((id for id in FOOTERS[part] if part != "sql_side" or id not in useless), ALWAYS[:2])

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
            self.post_message(IndexAnswered(number, self._asking.fault(sql, fault)))

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
            table = found.table
            self._keep_outcome(found.sql, rows=len(table), cut=table.cut, seconds=found.seconds)
            self._show_answer(found)
            self._enter_rows(found)
            if not found.table.cut:
                self._cancel = None
        elif isinstance(found, int):
            self.total, self._cancel = found, None
            if self.answer is not None:
                self._show_head(self.answer)
        else:
            self._cancel = None
            self._keep_outcome(self._statement, fault=found.message)
            self._show_fault(found)

    def _keep_outcome(self, sql: str, **outcome: Any) -> None:
        """Keep in the history what came of a query."""
        self._history.ended(sql, StatementOutcome(datetime.now(UTC).isoformat(), **outcome))
        self._show_side()

    # -- what is shown -----------------------------------------------------------------------------------------------

    def _say(self, words: str, token: str = "plain") -> None:
        left: list[Span] = [(" sql ", "faint"), (flat(self._root.name), "bold"), ("   ", "plain")]
        self._header.show((*left, (flat(words, 400), token)))

    def _show_answer(self, answer: TimedAnswer) -> None:
        self.area.mark(())
        self._show_results(ResultRows(answer.table))
        self._show_head(answer)
        for note in answer.notes:
            self.services.say(note, "warning")

    def _enter_rows(self, answer: TimedAnswer) -> None:
        """To the rows of the query that was run, unless it is being changed already."""
        if self.focused is self.area and len(answer.table) and self.area.text == self._asked:
            self.results.focus()

    def _show_head(self, answer: TimedAnswer) -> None:
        table = answer.table
        words = f"{plural(len(table), 'row')} in {seconds(answer.seconds)}"
        token = "ok"
        if table.cut:
            whole = f"{self.total:,}" if self.total is not None else "more"
            others = told("LIMIT … OFFSET … in the query shows others")
            words = f"the first {len(table):,} of {whole} rows in {seconds(answer.seconds)}; {others}"
            token = "warning"
        if answer.notes:
            words += f"; {answer.notes[0]}"
            token = "warning"
        self._say(words, token)

    def _show_fault(self, fault: SqlFault) -> None:
        if fault.line:
            row, column = self._begins
            fault = replace(fault, line=fault.line + row, column=fault.column + (column if fault.line == 1 else 0))
        where = f"{fault.line}:{fault.column}: " if fault.line else ""
        self._say(f"error at {fault.line}:{fault.column}" if fault.line else "error", "error")
        note = (f"error: {where}{fault.message}",)
        self.answer = None
        self._show_results(ResultRows(None, note, is_fault=True))
        if fault.line:
            span = TextSpan(fault.line, fault.column, fault.line, fault.column + fault.length)
            self.area.mark((Problem(Severity.ERROR, "sql", fault.message, "query", span),))
            if self.focused is self.area and self.area.text == self._asked:
                self.area.go_to(fault.line, fault.column)

    def _catalogue(self) -> CatalogueRows:
        tables = [(table.name, table.columns) for table in self._tables]
        history = self._history
        return CatalogueRows(tables, self._unfolded, EXAMPLES, self._kept, history.statements[-20:], history.outcomes)

    def _show_side(self) -> None:
        self.side.show(self._catalogue())
        self._show_about()

    def _show_about(self) -> None:
        rows = self.side.rows
        if isinstance(rows, CatalogueRows):
            self.about.show(rows.about(self.side.cursor), 0)

    # -- completion --------------------------------------------------------------------------------------------------

    def _find_offer(self, text: str, offset: int) -> Completion:
        return complete_sql(text, offset, [(table.name, table.columns) for table in self._tables])

    def action_complete(self) -> None:
        """Offer the tables, columns and words that may be written at the cursor."""
        if self.focused is self.area and not self.completing.open(asked=True):
            self.services.say("No table, column or word fits here.")

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self.completing.changed()

    @on(TextArea.SelectionChanged)
    def _moved(self) -> None:
        self.completing.moved()

    @on(Popup.Taken)
    def _taken(self, event: Popup.Taken) -> None:
        self.completing.take(event.item)

    # -- commands ----------------------------------------------------------------------------------------------------

    def action_ask(self) -> None:
        """Run the selection, else the whole query; one that still runs is cancelled."""
        self.popup.close()
        chosen = self.area.selected_text
        written = chosen if chosen.strip() else self.area.plain_text
        sql = written.strip()
        if not sql:
            self.services.say(
                told("There is no query yet: press {sql.pane}, choose an example, and press {list.open}.")
            )
            return
        if self._cancel is not None:
            self._stop(self._cancel)
        self._number += 1
        self._asked = self.area.text
        self._statement = sql
        row, column = min(self.area.selection) if written is chosen else (0, 0)
        above = written[: len(written) - len(written.lstrip())]
        rows = above.count("\n")
        self._begins = row + rows, len(above.rpartition("\n")[2]) + (0 if rows else column)
        self._cancel = Cancel()
        self._back = 0
        self._history.add(sql)
        self._say(told("running … ({sql.close} cancels)"), "running")
        self._ask(self._number, sql, self._cancel)
        self._show_side()

    def action_close(self) -> None:
        """Cancel the query that runs, else drop a filter; else go back."""
        if self._cancel is not None:
            cancel, self._cancel = self._cancel, None
            self._number += 1
            self._stop(cancel)
            self._say("cancelled", "warning")
        elif not self.clear_found():
            self.dismiss()

    def action_history(self, step: int) -> None:
        """An earlier query, or a later one."""
        statements = self._history.statements
        self._back = max(0, min(self._back + step, len(statements)))
        if self._back:
            self._put(statements[-self._back])

    def _put(self, sql: str) -> None:
        self.area.replace(sql, self.area.document.start, self.area.document.end)
        self.area.move_cursor(self.area.document.end)
        self.area.mark(())
        self.popup.close()

    def action_pane(self) -> None:
        order = (self.area, self.side, self.results)
        at = next((index for index, view in enumerate(order) if view is self.focused), 0)
        wanted = order[(at + 1) % len(order)]
        self.set_class(wanted is self.side, "-at-side")
        self._share_lines()
        wanted.focus()

    def action_columns(self, step: int) -> None:
        """Show columns further right, or further left."""
        rows = self.results.rows
        if isinstance(rows, ResultRows) and rows.scroll_columns(step):
            self.results.show()

    def action_keep(self) -> None:
        """Save the query under a name."""
        sql = self.area.plain_text.strip()
        if not sql:
            self.services.say("There is no query to save.")
            return

        def done(text: str) -> str | None:
            name = text.strip()
            try:
                self._saved.file_of(name)
            except StoreError as fault:
                return str(fault)
            if self._saved.all().get(name, sql) != sql and name != self._name:
                words = f"There is another query named {name}."
                self.call_later(self._ask_to_replace, "Name in use", words, lambda: self._keep(name, sql))
            else:
                self._keep(name, sql)
            return None

        self.ask("save query as", value=self._name, placeholder="a name, as in cost per day", done=done)

    def _ask_to_replace(self, heading: str, words: str, then: Callable[[], object]) -> None:
        """Ask, outside of the prompt: it is gone when the answer comes, and would never pass it on."""
        answers = (("stay", "n", "No"), ("write", "w", "Replace it"))

        def answered(said: str | None) -> None:
            if said == "write":
                then()

        self.app.push_screen(ChoiceDialog(heading, words, answers), answered)

    def _keep(self, name: str, sql: str) -> None:
        try:
            file = self._saved.keep(name, sql)
        except StoreError as fault:
            self.services.say(str(fault), "error")
            return
        self._name, self._kept = name, self._saved.all()
        self._show_side()
        self.services.say(f"Saved as {name} in {at_home(file.parent)}.")

    def action_drop(self) -> None:
        """Delete the saved query under the cursor, after a question."""
        entry = self._entry(self.side.cursor)
        if self.focused is not self.side or entry is None or entry.kind != "saved":
            self.services.say("Only a saved query can be deleted here.")
            return
        name = entry.text.strip()

        def answered(said: str | None) -> None:
            if said == "delete":
                try:
                    self._saved.drop(name)
                except StoreError as fault:
                    self.services.say(str(fault), "error")
                self._kept = self._saved.all()
                self._show_side()

        answers = (("stay", "n", "No"), ("delete", "d", "Delete"))
        self.app.push_screen(ChoiceDialog("Delete query", f"Delete the saved query {name}?", answers), answered)

    def action_rows(self) -> None:
        """Run a query for the first rows of the table under the cursor."""
        entry = self._entry(self.side.cursor)
        if self.focused is not self.side or entry is None or entry.kind != "table" or entry.taken == INNER:
            self.services.say(told("Choose a table of the catalogue first ({sql.pane})."))
            return
        self._put(f"SELECT *\nFROM {entry.taken}\nLIMIT 100")
        self.action_ask()

    def action_save(self) -> None:
        """Write the result to a file whose ending says the form."""
        answer = self.answer
        if answer is None:
            self.services.say("There is no result to export yet.")
            return

        def done(text: str) -> str | None:
            name = text.strip()
            if Path(name).suffix.lower() not in (".csv", ".json", ".parquet"):
                return "the name must end in .csv, .json or .parquet"
            file = self._root / Path(name).expanduser()
            if file.exists():
                words = f"{file} exists already."
                self.call_later(self._ask_to_replace, "File exists", words, lambda: self._save(answer, file))
            else:
                self._save(answer, file)
            return None

        self.ask("export result to", value="result.csv", done=done)

    @work(thread=True, group="sql-save", exit_on_error=False)
    def _save(self, answer: TimedAnswer, file: Path) -> None:
        try:
            rows = self._asking.save(answer, file)
        except StoreError as fault:
            self.app.call_later(self.services.say, str(fault), "error")
        else:
            self.app.call_later(self.services.say, f"{plural(rows, 'row')} in {file}")

    # -- rows of the result ------------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copy the row under the cursor of the result."""
        rows, at = self.answer.table.rows if self.answer is not None else (), self.results.cursor
        if not 0 <= at < len(rows):
            self.services.say("There is no row to copy yet.")
        else:
            self.services.copy(tab_separated(rows[at : at + 1]), "the row")

    def action_copy_all(self) -> None:
        """Copy all rows of the result, below the names of the columns."""
        table = self.answer.table if self.answer is not None else None
        if table is None or not len(table):
            self.services.say("There is no result to copy yet.")
        else:
            self.services.copy(tab_separated((table.names, *table.rows)), plural(len(table), "row"))

    def action_record(self) -> None:
        """Show the row under the cursor in full."""
        if self.focused is self.results and self.answer is not None and len(self.answer.table):
            self._show_record(self.results.cursor)

    def _show_record(self, index: int) -> None:
        if self.answer is not None and 0 <= index < len(self.answer.table):
            self.app.push_screen(Sheet(record(self.answer.table, index)))

    @on(RowView.Opened, "#results")
    def _row_opened(self, event: RowView.Opened) -> None:
        """Open the run or the call that a row names; a row that names none shows in full."""
        if self.answer is None or event.index >= len(self.answer.table):
            return
        row = dict(zip(self.answer.table.names, self.answer.table.rows[event.index], strict=True))
        found = place_of_row(row)
        if found is None:
            self._show_record(event.index)
        else:
            self._find_run(found, row)

    @work(thread=True, exclusive=True, group="sql-open", exit_on_error=False)
    def _find_run(self, found: FoundPlace, row: Mapping[str, Any]) -> None:
        """Find the run, and the places in it that the row may be of: of runs with one session id those of the newest
        that has any."""
        try:
            places = self._asking.places(row) if found.is_of_call else {}
            run_id = self._asking.store.find(found.run if len(places) != 1 else next(iter(places)))
            if places:
                run_id = run_id if run_id in places else self._asking.store.find(max(places))
                found = replace(found, places=places[run_id])
        except StoreError as fault:
            self.app.call_later(self.services.say, str(fault), "warning")
        else:
            self.app.call_later(self.services.navigation.show_call, run_id, found)

    # -- events ------------------------------------------------------------------------------------------------------

    def _entry(self, index: int) -> CatalogueEntry | None:
        rows = self.side.rows
        return rows.entries[index] if isinstance(rows, CatalogueRows) and 0 <= index < len(rows.entries) else None

    @on(RowView.Chosen, "#side")
    def _side_chosen(self) -> None:
        self._show_about()
        self._offer_keys()

    @on(RowView.Opened, "#side")
    def _side_opened(self, event: RowView.Opened) -> None:
        entry = self._entry(event.index)
        if entry is None:
            return
        if entry.kind == "table":
            self._unfolded ^= {entry.taken}
            self._show_side()
        elif entry.kind == "column":
            self.area.insert(entry.taken)
        elif entry.kind != "head":
            self._name = entry.text.strip() if entry.kind == "saved" else ""
            self._put(entry.taken)
            self.set_class(False, "-at-side")
            self._share_lines()
            self.area.focus()

    def main_list(self) -> RowView:
        return self.results

    def resting(self) -> Widget:
        return self.area


def tab_separated(rows: Iterable[Sequence[object]]) -> str:
    """Rows for a spreadsheet: tabs between cells, NULL as an empty one, and quotes around a cell that has several
    lines."""
    text = io.StringIO()
    csv.writer(text, "excel-tab", lineterminator="\n").writerows(rows)
    return text.getvalue().removesuffix("\n")


def _titled(rows: ResultRows) -> ResultRows:
    rows.title = (("Result", "title"),)
    return rows
