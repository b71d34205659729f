"""The edit screen: a list of what can be edited, a real editor for the text under the cursor, and a look at the
differences before anything is changed."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, Static, TextArea

from workbench.context.edits import DropMessage, EditError, MoveMessage
from workbench.engine.edits import Edit, SetState
from workbench.language.clean import clean
from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialog import ChoiceDialog, Dialog
from workbench.tui.screens.sheet import DiffSheet
from workbench.tui.text import plain
from workbench.tui.widgets.code import CodeArea
from workbench.tui.widgets.entry import LineInput
from workbench.tui.widgets.line import SpanLine, Verdict
from workbench.tui.widgets.rowview import RowView
from workbench.views.cells import Row, Span, crop, fit, flat, justify
from workbench.views.edits import NEW_STATE, REQUEST, ChangeRows, EditableRows
from workbench.views.keys import ALWAYS, FOOTERS, told
from workbench.views.model import Rows
from workbench.views.numbers import plural
from workbench.workspace.edit_draft import EditDraft, Part
from workbench.workspace.known_models import KnownModel, KnownModels
from workbench.workspace.text_file import LONGEST_FILE, unfit

SHOWN = 4_000
"""Characters that are shown of a text that is too long for a text area."""


OF_MESSAGES = {"edit.add", "edit.drop", "edit.request", "edit.up", "edit.role"}
"""Commands that need the messages of a request."""


class Making(Protocol):
    """Makes the edits that are saved."""

    where: str
    """The edited thing, for titles: ``before investigate:9``."""

    def check(self, edits: Sequence[Edit]) -> str:
        """The effect of the edits on the request, in words. Called in a thread. Raises EditError with the rule they
        break."""
        ...

    def make(self, edits: Sequence[Edit]) -> None:
        """Make them. Called in a thread. Raises EditError."""
        ...


class Checked(Message):
    """A thread has checked the edits, or made them."""

    def __init__(self, words: str, fault: str = "", *, made: bool = False) -> None:
        super().__init__()
        self.words = words
        self.fault = fault
        self.made = made


class TooLong(Message):
    """The pasted text is too long for a text area to edit."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class MessageArea(CodeArea):
    """Edits one text of a request; a paste that is too long for it is handed on instead of taken."""

    async def on_paste(self, event: events.Paste) -> None:
        if self.read_only:
            return
        before = self.plain_text
        start, end = sorted((self.selection.start, self.selection.end))
        a, b = self._at(start), self._at(end)
        whole = before[:a] + event.text.replace("\r\n", "\n").replace("\r", "\n") + before[b:]
        if unfit(whole, len(whole)):
            event.stop()
            event.prevent_default()
            self.post_message(TooLong(whole))

    def _at(self, location: tuple[int, int]) -> int:
        row, column = location
        return sum(len(self.document.get_line(number)) + 1 for number in range(row)) + column


class EditScreen(WorkbenchScreen[bool]):
    """Edits a draft. Gives True where its edits were made, else None or False; nothing is changed before that."""

    CSS_PATH = "edit.tcss"
    AUTO_FOCUS = "#parts"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("edit"), *bindings("find")]
    CLEARS: ClassVar[str] = "edit.close"
    PALETTE: ClassVar[tuple[str, ...]] = ("edit", "find", "text", "list")
    needs_focus: ClassVar[bool] = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - declared by Textual without ClassVar

    def __init__(
        self,
        draft: EditDraft,
        making: Making,
        models: Callable[[], KnownModels],
        scratch: Path,
        *,
        at: int | None = None,
    ) -> None:
        """``scratch``: a folder for files that $EDITOR opens. ``at``: the message that was looked at."""
        super().__init__()
        self.draft = draft
        self._making = making
        self._models = models
        self._scratch = scratch
        self._at = at
        self.view = RowView(EditableRows(draft, making.where), id="parts", edge=True)
        self.area = MessageArea(id="text", language=None, line_numbers=False)
        self._header = SpanLine(id="header")
        self._status = Verdict(id="status")
        self._key = ""
        """The content of the text area."""
        self._adding: int | None = None
        """Where a message that is being written will stand; None while there is none."""
        self._loaded = ""
        """The text as the text area took it: what is not touched stays as it is, whatever its line ends."""
        self._told_typing = False
        """Whether the title says that a text is being written."""
        self._busy = False
        self._fault = ""
        """Why the text was not taken the last time that it was not."""
        self._reason = ""
        """Why the text area cannot edit the text; empty if it can."""

    def compose(self) -> ComposeResult:
        with Container(id="body"):
            yield self.view
            with Container(id="side"):
                yield self._header
                yield self.area
                yield self._status
        yield self.footer

    def on_mount(self) -> None:
        self._show(self._first_key())

    def _first_key(self) -> str:
        """The message that was looked at, else the last one, or the first thing at another stop: what a person most
        likely came for."""
        keys = [one.key for one in EditableRows(self.draft, "").found]
        if (looked_at := f"message:{self._at}") in keys:
            return looked_at
        messages = [key for key in keys if key.startswith("message:")]
        return messages[-1] if messages else keys[0]

    def main_list(self) -> RowView:
        return self.view

    # -- what is shown -----------------------------------------------------------------------------------------------

    def _show(self, key: str, *, load: bool = True) -> None:
        """Draw the list with its cursor on a key, and take that into the text area."""
        rows = EditableRows(self.draft, self._making.where, typing=self._is_typing)
        self.view.show(rows, rows.index_of(key))
        if load:
            self._load(rows.found[rows.index_of(key)].key)
        self._offer_keys()

    def _part(self) -> Part | None:
        return self.draft.part(self._key)

    def _load(self, key: str) -> None:
        """Put a part's text into the text area."""
        self._key, part = key, self.draft.part(key)
        text = part.text if part is not None else ""
        reason = unfit(text, len(text)) if part is not None else ""
        self.area.language = "yaml" if part is not None and part.kind == "json" and not reason else None
        self.area.load_text(text[:SHOWN] if reason else text)
        self.area.read_only = part is None or bool(reason)
        self._loaded = self.area.plain_text
        self._say_part(reason)

    def _say_part(self, reason: str = "") -> None:
        """The line above the text: what it is; the line below: whether it can be taken as it is."""
        part = self._part()
        if self._adding is not None:
            self._header.show(((f" new message {self._adding + 1}", "bold"), ("  written as user's", "dim")))
        elif part is None:
            words = "model and parameters" if self._key == REQUEST else "a new state value"
            self._header.show(((f" {words}", "bold"), (told("  {list.open} opens the form"), "dim")))
        else:
            self._header.show(self._named(part))
        self._reason = reason
        self._check_text()

    def _why_not(self, part: Part) -> str:
        """Returns why the text under the cursor cannot be edited in the app, and what can be done."""
        too_long = len(part.text) > LONGEST_FILE
        why = f"{len(part.text):,} characters: too long to edit here" if too_long else f"not here: {self._reason}"
        return told("{why}. {edit.external} opens it in $EDITOR", why=why)

    def _named(self, part: Part) -> tuple[Span, ...]:
        name = part.key.partition(":")[0]
        if name == "message":
            row = self.draft.rows[part.at]
            spans: tuple[Span, ...] = ((f" message {part.at + 1}", "bold"), (f"  {row.message.role}", row.message.role))
            entry = row.entry
            if entry is not None and entry.sent is not None and entry.sent != entry.item.message:
                spans = (*spans, (f"  {entry.action} by the strategy, even after an edit", "masked"))
            elif entry is not None and entry.sent is None:
                spans = (*spans, (f"  not sent: {entry.action}", "masked"))
            if row.message.images:
                spans = (*spans, (f"  {plural(len(row.message.images), 'image')} stay", "dim"))
            return spans
        words = {"call": "arguments of", "answer-call": "arguments of", "state": "state", "skip": "result instead of"}
        return ((f" {words.get(name, name)} ", "bold"), (flat(part.name), "name"))

    @property
    def _is_typing(self) -> bool:
        """Whether the text area holds a text that is not taken yet."""
        return not self.area.read_only and self.area.plain_text != self._loaded

    @on(TextArea.Changed, "#text")
    def _typed(self) -> None:
        if not self._is_typing and not self._told_typing:
            return  # A text that was loaded: what was said of it since, as why it is refused, stays.
        if self._is_typing != self._told_typing:
            self._told_typing = self._is_typing
            self._show(self._key, load=False)
        self._check_text()

    def _check_text(self) -> None:
        """Whether what is written is JSON, where it must be."""
        part = self._part()
        if self._reason and part is not None:
            self._status.show(((f" {flat(self._why_not(part))}", "changed"),))
            return
        if part is None or part.kind != "json" or self._adding is not None:
            lines = self.area.document.line_count
            self._status.show(((f" {plural(lines, 'line')}" if part is not None else "", "faint"),))
            return
        try:
            json.loads(self.area.plain_text)
        except json.JSONDecodeError as fault:
            if part.key.startswith("state:"):
                self._status.show(((" not JSON: kept as text", "dim"),))
            else:
                self._status.show(((f" ✗ line {fault.lineno}, column {fault.colno}: {flat(fault.msg)}", "error"),))
        except RecursionError:
            self._status.show(((" ✗ nested too deeply", "error"),))
        else:
            self._status.show(((" ✓ JSON", "ok"),))

    def _offer_keys(self) -> None:
        target, offered = self.draft.target, FOOTERS["edit text" if self.focused is self.area else "edit"]
        left_out = set() if target.has_state else {"edit.state"}
        left_out |= OF_MESSAGES if target.draft is None else {"edit.error"}
        left_out |= {"edit.error"} if self.draft.part("result") is None else set()
        left_out |= set() if self.draft.can_redo else {"edit.redo"}
        self.offer((command for command in offered if command not in left_out), ALWAYS[1:2])

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.set_class(event.widget is self.area, "-writing")
        self._offer_keys()

    # -- writing -----------------------------------------------------------------------------------------------------

    def commit(self) -> bool:
        """Take what is written; False where it cannot be taken, and it stays in the text area."""
        return self._take(self.area.plain_text) if self._is_typing else True

    def _take(self, text: str) -> bool:
        try:
            if self._adding is not None:
                self.draft.add(self._adding, "user", text)
                self._key, self._adding = f"message:{self._adding}", None
            else:
                self.draft.write(self._key, text)
        except EditError as fault:
            self._fault = str(fault)
            self._status.show(((f" ✗ {flat(self._fault)}", "error"),))
            self.services.say(self._fault, "error")
            return False
        self._loaded = self.area.plain_text
        self._say_part(self._reason)
        return True

    @on(RowView.Chosen, "#parts")
    def _chosen(self, event: RowView.Chosen) -> None:
        key = self.view.rows.found[event.index].key if isinstance(self.view.rows, EditableRows) else ""
        if key == self._key and self._adding is None:
            return
        touched = self.area.plain_text != self._loaded
        if not self.commit():
            self._show(self._key, load=False)
            return
        self._adding = None
        if touched:
            self._show(key)
        else:
            self._load(key)

    @on(RowView.Opened, "#parts")
    def _opened(self) -> None:
        self.action_write()

    @on(TooLong)
    def _too_long(self, event: TooLong) -> None:
        if self._take(event.text):
            self._show(self._key)
            self.view.focus()

    def action_write(self) -> None:
        """Go into the text, or open the form of what is not text."""
        if self._key == REQUEST:
            self.action_request()
        elif self._key == NEW_STATE and self._adding is None:
            self.action_state()
        elif self.area.read_only:
            if (part := self._part()) is not None:
                self.services.say(self._why_not(part))
        else:
            self.area.focus()

    def action_pane(self) -> None:
        """From the list to the text and back."""
        if self.focused is self.area:
            self._leave_text()
        else:
            self.action_write()

    def _leave_text(self) -> None:
        if self._adding is not None and not self.area.plain_text.strip():
            self._adding = None
            self._show(self._key)
        elif self.commit():
            self._show(self._key)
        else:
            self._offer_to_discard()
            return
        self.view.focus()

    def _offer_to_discard(self) -> None:
        """Ask what becomes of a text that cannot be taken."""

        def answered(answer: str | None) -> None:
            if answer == "discard":
                self._adding = None
                self._show(self._key)
                self.view.focus()

        answers = (("keep", "k", "Keep editing"), ("discard", "d", "Discard the text"))
        why = f"It cannot be taken: {self._fault}."
        self.services.push_screen(ChoiceDialog("Discard the text?", why, answers), answered)

    # -- commands of the list ----------------------------------------------------------------------------------------

    def _message_index(self) -> int | None:
        """The index of the message under the cursor; says so where there is none."""
        part = self._part()
        if part is None or part.at < 0:
            self.services.say("Choose a message for this.")
            return None
        return part.at

    def _do(self, edit: Edit, at: int) -> None:
        """Take an edit; the cursor goes to the message at an index, or to the last."""
        if not self.commit():
            return
        try:
            self.draft.do(edit)
        except EditError as fault:
            self.services.say(str(fault), "error")
            return
        self._show(f"message:{min(at, len(self.draft.rows) - 1)}")

    def action_add(self) -> None:
        """Write a new message behind the one under the cursor."""
        if not self.commit():
            return
        part = self._part()
        rows = len(self.draft.rows)
        if self.draft.target.draft is None:
            self.services.say("Messages can be added before a call only.")
            return
        self._adding = part.at + 1 if part is not None and part.at >= 0 else rows
        self.area.language = None
        self.area.read_only = False
        self.area.load_text("")
        self._loaded = ""
        self._say_part()
        self.area.focus()

    def action_drop(self) -> None:
        """Take the message under the cursor out of the request."""
        if (at := self._message_index()) is not None:
            self._do(DropMessage(at), at)

    def action_move(self, step: int) -> None:
        """Move the message under the cursor up or down."""
        if (at := self._message_index()) is None:
            return
        if 0 <= at + step < len(self.draft.rows):
            self._do(MoveMessage(at, at + step), at + step)

    def action_role(self) -> None:
        """Give the message under the cursor the next role."""
        if (at := self._message_index()) is None or not self.commit():
            return
        roles = ("user", "assistant", "system")
        role = self.draft.rows[at].message.role
        try:
            self.draft.set_role(at, roles[(roles.index(role) + 1) % 3] if role in roles else role)
        except EditError as fault:
            self.services.say(str(fault), "error")
        self._show(f"message:{at}")

    def action_error(self) -> None:
        """Tell the result as an error, or not."""
        if self.draft.part("result") is None:
            self.services.say("Only the result of a tool can be an error.")
        elif self.commit():
            self.draft.set_error(not self.draft.result_is_error)
            self._show("result")

    def action_request(self) -> None:
        """Model and parameters, in a form."""
        if self.draft.target.draft is None:
            self.services.say("Model and parameters can be edited before a call only.")
        elif self.commit():
            form = RequestForm(self.draft.model, self.draft.parameters, self._models, self._set_request)
            self.services.push_screen(form, lambda _: self._show(REQUEST))

    def _set_request(self, model: str, parameters: dict[str, Any]) -> None:
        self.draft.set_request(model, parameters)

    def action_state(self) -> None:
        """Ask for the name of a new state value, then write it."""

        def done(name: str) -> str | None:
            name = name.strip()
            if not name:
                return "a name, as templates use it: state.NAME"
            if self.draft.part(f"state:{name}") is None:
                try:
                    self.draft.do(SetState(name, ""))
                except EditError as fault:
                    return str(fault)
            self._show(f"state:{name}")
            if self._loaded == '""':
                self.area.load_text("")  # A new value begins with nothing to delete.
            self.call_after_refresh(self.area.focus)
            return None

        if self.draft.target.as_sent:
            self.services.say("A request has no state.")
        elif self.commit():
            self.ask("state value", placeholder="NAME", done=done)

    def action_undo(self) -> None:
        """Undo the last edit."""
        if self._adding is not None or self._is_typing:
            self._adding = None
            self._show(self._key)  # What is written and not taken yet goes first.
        elif (edit := self.draft.undo()) is None:
            self.services.say("Nothing to undo.")
        else:
            at = getattr(edit, "at", None)
            self._show(self._key if at is None else f"message:{at}")

    def action_redo(self) -> None:
        """Redo the edit."""
        if not self.commit():
            return
        if (edit := self.draft.redo()) is None:
            self.services.say("Nothing to redo.")
        else:
            at = getattr(edit, "to", getattr(edit, "at", None))
            self._show(self._key if at is None else f"message:{at}")

    def action_copy(self) -> None:
        """Copy the text under the cursor."""
        part = self._part()
        self.services.copy(part.text if part is not None else "", "the text")

    # -- $EDITOR -----------------------------------------------------------------------------------------------------

    def action_external(self) -> None:
        """Write the text in $EDITOR."""
        part = self._part()
        if (part is None and self._adding is None) or not self._committed_or_adding():
            return
        text = "" if self._adding is not None else (self._part() or part or Part("", "text", "")).text
        is_json = part is not None and part.kind == "json" and self._adding is None
        ending = ".json" if is_json else ".md"
        try:
            self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder = Path(tempfile.mkdtemp(prefix="edit-", dir=self._scratch))
            file = folder / f"message{ending}"
            file.write_bytes(text.encode("utf-8", "surrogatepass"))
        except OSError as fault:
            self.services.say(f"$EDITOR needs a file, and none can be written: {fault.strerror}", "error")
            return
        row = self.area.cursor_location[0] + 1
        if self.services.navigation.edit_outside(file, row):
            self._take_file(file, text)
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def _committed_or_adding(self) -> bool:
        return self._adding is not None or self.commit()

    def _take_file(self, file: Path, before: str) -> None:
        """Take what was written outside; where that cannot be, the file stays and its path is told."""
        try:
            text = file.read_bytes().decode("utf-8", "strict" if before.isascii() else "surrogatepass")
        except (OSError, UnicodeDecodeError) as fault:
            why = fault.strerror if isinstance(fault, OSError) else f"not UTF-8 at byte {fault.start + 1}"
            self.services.say(f"{file}: cannot be taken: {why}. Nothing was changed.", "error")
            return
        if not before.endswith("\n"):
            text = text.removesuffix("\n")  # Editors end a file with a line break that the text does not have.
        if text == before:
            self.services.say("Nothing was changed in $EDITOR.")
        elif not self._take(text):
            self.services.say(f"Your text is kept in {file}", "warning")
            return
        shutil.rmtree(file.parent, ignore_errors=True)
        self._show(self._key)

    # -- saving ------------------------------------------------------------------------------------------------------

    def action_save(self) -> None:
        """Look at the differences; from there the edits are made."""
        if self._busy or not self.commit():
            return
        self._show(self._key)
        if not self.draft.changes:
            self.services.say("Nothing is changed yet.")
            return
        self._busy = True
        self._check(self.draft.edits)

    @work(thread=True, exclusive=True, group="check", exit_on_error=False)
    def _check(self, edits: Sequence[Edit]) -> None:
        try:
            self.post_message(Checked(self._making.check(edits)))
        except EditError as fault:
            self.post_message(Checked("", str(fault)))

    @work(thread=True, exclusive=True, group="make", exit_on_error=False)
    def _make(self, edits: Sequence[Edit]) -> None:
        try:
            self._making.make(edits)
            self.post_message(Checked("", made=True))
        except EditError as fault:
            self.post_message(Checked("", str(fault)))

    def on_checked(self, event: Checked) -> None:
        self._busy = False
        if event.fault:
            self._status.show(((f" ✗ {flat(event.fault, 400)}", "error"),))
            self.services.say(event.fault, "error")
        elif event.made:
            self.dismiss(True)
        else:
            rows = ChangeRows(self.draft.changes, self._making.where, event.words)
            self.services.push_screen(ReviewSheet(rows), self._reviewed)

    def _reviewed(self, agreed: bool | None) -> None:
        if agreed:
            self._busy = True
            self._make(self.draft.edits)

    def action_close(self) -> None:
        """From the text to the list; from there back, after a question where edits would be lost."""
        if self.focused is self.area:
            self._leave_text()
            return
        if self.clear_found():
            return
        if not self.draft.changes:
            self.dismiss(False)
            return

        def answered(answer: str | None) -> None:
            if answer == "discard":
                self.dismiss(False)

        number = plural(len(self.draft.changes), "change")
        answers = (("keep", "k", "Keep editing"), ("discard", "d", f"Discard {number}"))
        self.services.push_screen(ChoiceDialog("Discard the edits?", f"{number} not saved yet.", answers), answered)


class ReviewSheet(DiffSheet):
    """A preview of the edits before they are made. Gives True if they are to be made."""

    CSS_PATH = "sheet.tcss"
    PALETTE: ClassVar[tuple[str, ...]] = ("review", "diff", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("review")
    OFFERED: ClassVar[tuple[str, ...]] = ("review.send", "sheet.close", "diff.next", "sheet.find", "sheet.copy")

    def action_send(self) -> None:
        """Make the edits."""
        self.dismiss(True)  # type: ignore[arg-type]

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()  # A sheet closes on enter; here it agrees.
        self.action_send()


class ModelRows(Rows):
    """Models with their prices."""

    empty = ("Unknown model: it can be used, but its cost is unknown.",)

    def __init__(self, found: Sequence[KnownModel]) -> None:
        self.found = found
        self.title = (("Models", "title"), ("  US dollars per million tokens", "dim"))
        self.title_right = (("   in      out ", "head"),)

    def __len__(self) -> int:
        return len(self.found)

    def row(self, index: int, width: int) -> Row:
        one = self.found[index]
        numbers = "".join(fit(_per_million(value), 9, "right") for value in (one.price.input, one.price.output))
        left = crop(((f" {flat(one.name)}", "plain"),), width - 20)
        return Row(justify(left, ((f"{numbers} ", "dim"),), width))


def _per_million(value: float | None) -> str:
    return "–" if value is None else f"{value * 1_000_000:,.2f}"


class RequestForm(Dialog[None]):
    """The model, from a list with prices, and the parameters as JSON."""

    heading = "Model and parameters"
    BINDINGS: ClassVar[list[BindingType]] = bindings("review")
    CSS_PATH: ClassVar[Any] = ["dialog.tcss", "edit.tcss"]

    def __init__(
        self,
        model: str,
        parameters: Any,
        models: Callable[[], KnownModels],
        take: Callable[[str, dict[str, Any]], None],
    ) -> None:
        """``take`` gets both; it raises EditError for what cannot be sent."""
        super().__init__()
        self.offered = (("tab", "next"), ("↓", "models"), (told("{review.send}"), "apply"))
        self._model = model
        self._parameters = json.dumps(dict(parameters), indent=2, ensure_ascii=False)
        self._models = models
        self._known: KnownModels | None = None
        self._taker = take
        self.list = RowView(ModelRows(()), id="models")

    def content(self) -> Sequence[Widget]:
        self.area = CodeArea(id="parameters", language="yaml", line_numbers=False)
        self.area.tab_behavior = "focus"  # ``tab`` leaves the parameters, as the lower edge says.
        self.area.load_text(self._parameters)
        return (
            Static(plain("Model"), classes="label"),
            LineInput(self._model, id="model"),
            self.list,
            Static(plain("Parameters, a JSON object"), classes="label"),
            self.area,
            Static("", id="objection"),
            Button(plain("Apply"), id="take", classes="go", compact=True),
        )

    def on_mount(self) -> None:
        self.query_one("#model", LineInput).focus()
        self._look_up("")

    @on(Input.Changed, "#model")
    def _typed(self, event: Input.Changed) -> None:
        self._look_up("" if event.value == self._model else event.value)

    @work(thread=True, exclusive=True, group="models", exit_on_error=False)
    def _look_up(self, text: str) -> None:
        if self._known is None:
            self._known = self._models()
        found = self._known.matching(text)
        self.app.call_later(self.list.show, ModelRows(found), 0)

    @on(RowView.Opened, "#models")
    def _model_chosen(self, event: RowView.Opened) -> None:
        rows = self.list.rows
        if isinstance(rows, ModelRows) and event.index < len(rows):
            self.query_one("#model", LineInput).value = rows.found[event.index].name
            self.area.focus()

    @on(Input.Submitted)
    @on(Button.Pressed)
    def _done(self) -> None:
        self.action_send()

    def on_key(self, event: events.Key) -> None:
        if event.key == "down" and isinstance(self.focused, LineInput):
            event.stop()
            self.list.focus()

    def action_send(self) -> None:
        """Take both, if they can be sent."""
        try:
            parameters = json.loads(self.area.plain_text or "{}")
            if not isinstance(parameters, dict):
                raise EditError('the parameters must be a JSON object, as in {"temperature": 0}')
            self._taker(self.query_one("#model", LineInput).value.strip(), parameters)
        except json.JSONDecodeError as fault:
            self._object(f"parameters: line {fault.lineno}, column {fault.colno}: {fault.msg}")
        except (EditError, RecursionError) as fault:
            self._object(str(fault))
        else:
            self.dismiss(None)

    def _object(self, words: str) -> None:
        line = self.query_one("#objection", Static)
        line.update(plain(clean(words)))
        line.display = True
        self.call_after_refresh(line.scroll_visible)
