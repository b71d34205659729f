"""Compare: two strategies on the run that the Bench shows, in one scroll; the better one can go into the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import BindingType

from workbench.context.apply import ApplyError
from workbench.context.spec import SpecError
from workbench.tui.keys import bindings
from workbench.tui.screens.dialog import Choice
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.rowview import RowView
from workbench.workspace.comparing import Change, change_for, write_change
from workbench.workspace.opened import CannotOpen

if TYPE_CHECKING:
    from workbench.engine.state import RunState
    from workbench.tui.rows.compare import CompareRows
    from workbench.workspace.project import Project

SHOWN = 40
"""Lines of a change that the question shows."""


class CompareSheet(Sheet):
    """The comparison. Enter opens a fold or a message; brackets lead from difference to difference."""

    CSS_PATH = "sheet.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("compare")
    OFFERED: ClassVar[tuple[str, ...]] = (
        "compare.next",
        "compare.previous",
        "list.open",
        "compare.apply",
        "sheet.find",
        "sheet.close",
    )

    def __init__(self, rows: CompareRows, project: Project, state: RunState) -> None:
        super().__init__(rows)
        self.view.selecting = True
        self._project = project
        self._state = state
        self._compared = rows

    def action_difference(self, step: int) -> None:
        """Go to the next difference, or the one before."""
        found = self._compared.step(self.view.cursor, step)
        if found is None:
            self.app.say("There is no further difference." if step > 0 else "There is no difference before this.")
        else:
            self.view.move_to(found)
            self.view.scroll_to(y=max(0, found - self.view.page // 3), animate=False, force=True)

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()  # A sheet closes on enter.
        rows, row = self._compared, event.index
        section = rows.section_of(row)
        if section is not None:
            self.view.move_to(section)
            self.view.scroll_to(y=section, animate=False, force=True)
        elif rows.toggle(row):
            self.view.forget()
            self.view.show(rows, row)
        elif (sides := rows.sides(row)) is not None:
            self.app.push_screen(Sheet(sides))

    def action_apply(self) -> None:
        """Write B into the file, after showing what changes."""
        self._prepare(self._compared.comparison.b.label)

    @work(thread=True, exclusive=True, group="apply", exit_on_error=False)
    def _prepare(self, spec: str) -> None:
        try:
            change = change_for(self._project, self._state, spec, self._project.around.prices)
        except (ApplyError, SpecError, CannotOpen) as fault:
            self.app.call_later(self.app.say, str(fault), "error")
            return
        self.app.call_later(self._ask, change)

    def _ask(self, change: Change) -> None:
        lines = change.lines
        if not lines:
            self.app.say(f"{change.shown} says so already in every phase of this run.")
            return
        more = [f"… {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
        note = ["The file has changed since this run.", ""] if change.is_stale else []
        text = "\n".join([*note, *lines[:SHOWN], *more])
        answers = [("keep", "k", "Leave the file as it is"), ("write", "w", "Write it")]

        def answered(answer: str | None) -> None:
            if answer == "write":
                self._write(change)

        self.app.push_screen(Choice(f"Write B into {change.shown}?", text, answers), answered)

    def _write(self, change: Change) -> None:
        try:
            write_change(change)
        except (ApplyError, CannotOpen) as fault:
            self.app.say(str(fault), "error")
        except OSError as fault:
            self.app.say(f"{change.shown} cannot be written: {fault.strerror}", "error")
        else:
            self.app.say(f"{change.shown} is written.")
