"""The editor: a cascade file with its problems as they come and go, and with completion from the language."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.geometry import Offset
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea

from workbench.language.assist import Completion, Item, Names, complete, field_help
from workbench.language.source import Format
from workbench.tui.key_words import told
from workbench.tui.keys import bindings
from workbench.tui.screens.editor_file import EditorFile
from workbench.tui.widgets.code import CodeArea
from workbench.tui.widgets.popup import Popup
from workbench.tui.widgets.rowview import RowView
from workbench.workspace.drafts import Draft
from workbench.workspace.looking import Look, Looker

PAUSE = (0.02, 0.6)
"""Seconds without a key after which the text is checked: as long as the last check took, within these bounds."""


class Looked(Message):
    """A check is done."""

    def __init__(self, look: Look, seconds: float) -> None:
        super().__init__()
        self.look = look
        self.seconds = seconds


class EditorScreen(EditorFile):
    """Edits one cascade file."""

    CSS_PATH = "editor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("editor"), *bindings("find")]
    CLEARS: ClassVar[str] = "editor.close"
    PALETTE: ClassVar[tuple[str, ...]] = ("editor", "find", "text")
    needs_focus: ClassVar[bool] = True
    """Contexts whose commands the palette offers here."""

    def __init__(self, path: Path, shown: str, looker: Looker, draft: Draft, line: int = 1, column: int = 1) -> None:
        super().__init__(path, shown, draft, line, column)
        self.form: Format = "json" if path.suffix == ".json" else "yaml"
        self.names = Names()
        self._looker = looker
        self._pause = PAUSE[0]
        self._timer: Timer | None = None
        self._needle = ""
        self._offer: Completion | None = None

    def on_mount(self) -> None:
        self.app.file_saved.subscribe(self, self.file_changed)
        self.open_file()
        self._check()
        self.call_after_refresh(self.area.go_to, *self._place)
        self.call_after_refresh(self._show_field_here)
        self.offer_draft()

    # -- checks while typing -----------------------------------------------------------------------------------------

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self.show_header()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(self._pause, self._check)
        if self.popup.display or self.area.typed:
            self.area.typed = False
            self._offer_now(asked=False)

    @on(TextArea.SelectionChanged)
    def _moved(self) -> None:
        self.show_header()
        if self.popup.display and self._offer is not None:
            at = self.area.offset_in_text
            if not self._offer.start <= at <= self._offer.end + 1:
                self.popup.close()
        self.call_after_refresh(self._show_field_here)

    def _check(self) -> None:
        """Check the text as it is now; what an older check still says is dropped when it comes."""
        self._timer = None
        if self.file is not None and not self.file.refusal:
            self._look(self.area.plain_text, self.area.text if self.unsaved else "")

    @work(thread=True, exclusive=True, group="check", exit_on_error=False)
    def _look(self, text: str, unsaved: str) -> None:
        began = monotonic()
        self.keep_draft(unsaved)
        look = self._looker.look(text)
        self.post_message(Looked(look, monotonic() - began))

    def on_looked(self, event: Looked) -> None:
        self._pause = min(PAUSE[1], max(PAUSE[0], event.seconds))
        if event.look.text != self.area.plain_text:
            return
        self.names = event.look.names
        self.show_problems(event.look.problems, event.look.text)

    def saved(self) -> None:
        self._looker.forget()
        self._check()

    # -- the field and what may be written ---------------------------------------------------------------------------

    def _show_field_here(self) -> None:
        if self.file is not None and not self.file.refusal:
            self.show_field(field_help(self.area.plain_text, self.area.offset_in_text, self.form))

    def action_complete(self) -> None:
        """Offer what may be written at the cursor."""
        self._offer_now(asked=True)

    def _offer_now(self, *, asked: bool) -> None:
        if self.area.read_only:
            return
        text, at = self.area.plain_text, self.area.offset_in_text
        found = complete(text, at, self.form, self.names)
        done = len(found.items) == 1 and found.items[0].text == found.typed
        if not found.items or (done and not asked) or (not found.typed and not asked and not self.popup.display):
            if asked:
                self.app.say("Nothing is known that could be written here.")
            self.popup.close()
            return
        self._offer = found
        x, y = self.area.cursor_screen_offset
        column = at - found.start
        self.popup.open(found.items, Offset(max(0, x - column), y), self.size)

    @on(Popup.Taken)
    def _taken(self, event: Popup.Taken) -> None:
        if self._offer is not None:
            self._write(self._offer, event.item)
        self.popup.close()

    def _write(self, offer: Completion, item: Item) -> None:
        start, end = self.area.location_of(offer.start), self.area.location_of(offer.end)
        indent = " " * start[1]
        written = (item.insert or item.text).replace("\n", "\n" + indent)
        self.area.replace(written, start, end)
        self.area.move_cursor(self.area.location_of(offer.start + len(written)))

    @on(Popup.Chosen)
    def _chosen(self, event: Popup.Chosen) -> None:
        if event.item.kind == "key" and self._offer is not None:
            text = self.area.plain_text
            named = text[: self._offer.start] + (event.item.insert or event.item.text) + text[self._offer.end :]
            self.show_field(field_help(named, self._offer.start + 1, self.form))
        else:
            self.show_field(self.field)

    @on(Popup.Closed)
    @on(CodeArea.Resized)
    def _popup_closed(self) -> None:
        self._show_field_here()

    # -- going places ------------------------------------------------------------------------------------------------

    def action_problem(self, step: int) -> None:
        """Go to the next line with a problem, or the one before."""
        line = self.area.next_problem(step)
        if line is None:
            self.app.say("There are no problems." if self.checked is not None else "The file is being checked.")
            return
        found = self.area.problems_at(line)[0]
        self.area.go_to(line + 1, found.span.column)
        self.problem_pane.show(None, self.problems.index(found))
        self.area.focus()

    @on(RowView.Opened, "#problems")
    def _problem_opened(self, event: RowView.Opened) -> None:
        if event.index < len(self.problems):
            span = self.problems[event.index].span
            self.area.go_to(span.line, span.column)
            self.area.focus()

    @on(RowView.Chosen, "#problems")
    def _problem_chosen(self, event: RowView.Chosen) -> None:
        if event.index < len(self.problems):
            span = self.problems[event.index].span
            self.area.go_to(span.line, span.column)

    def action_find(self) -> None:
        """Find in the file, or in the problems where they have the focus."""
        if self.focused is self.problem_pane:
            super().action_find()
            return

        def search(text: str) -> bool:
            self._needle = text
            return self.area.find_text(text, 1, again=False)

        def done(text: str) -> str | None:
            return None if search(text) else f"'{text}' is not in this file"

        self.ask("find", value=self.area.selected_text.partition("\n")[0] or self._needle, done=done, changed=search)

    def action_find_again(self, step: int = 1) -> None:
        if self.focused is self.problem_pane:
            super().action_find_again(step)
        elif not self._needle:
            self.action_find()
        elif not self.area.find_text(self._needle, step, again=True):
            self.app.say(f"'{self._needle}' is not in this file.")

    def action_go_to_line(self) -> None:
        def done(text: str) -> str | None:
            line, _, column = text.strip().partition(":")
            if not line.isdigit() or (column and not column.isdigit()):
                return "a line, or line:column, as in 12 or 12:5"
            self.area.go_to(int(line), int(column or 1))
            return None

        self.ask("line", placeholder=f"1 to {self.area.document.line_count:,}", done=done)

    def action_pane(self) -> None:
        """From the text to the problems and back."""
        (self.problem_pane if self.focused is self.area else self.area).focus()

    def action_external(self) -> None:
        """Open the file in $EDITOR; what is not saved has to be saved first."""
        if self.unsaved:
            self.app.say(told("Save first ({editor.save}): $EDITOR reads the file."), "warning")
            return
        row, column = self.area.cursor_location
        self.app.edit_file(self.path, row + 1, column + 1)
        self.file_changed(self.path)
