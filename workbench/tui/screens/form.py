"""A form that a run asks a person to fill in: by keyboard and mouse, checked before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import events, on, work
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button, Input, Static, TextArea

from workbench.engine.forms.intent import ANSWER
from workbench.engine.forms.spec import Form, fields_of
from workbench.engine.forms.values import COMMENT, AnswerRefused, FormAnswers, check_values
from workbench.engine.journal.event import Event
from workbench.tui.bindings import bindings
from workbench.tui.screens.dialog import Dialog
from workbench.tui.text import plain
from workbench.tui.widgets.choices import Choices
from workbench.tui.widgets.entry import LineInput
from workbench.tui.widgets.form_sections import (
    WIDE,
    FieldBox,
    FormState,
    PanelsBox,
    Thumbnail,
    columns_of,
    section_widget,
    widths_of,
)
from workbench.tui.widgets.line import Footer
from workbench.views.form import wrapped_words
from workbench.views.keys import hints
from workbench.views.picture import CannotDraw, PictureRequest, fitted, make
from workbench.workspace.run_files import NoImage, image_of

LONGEST = 8000
"""Characters of a context that are shown; the rest is in the journal."""
LINES, SHARE = 16, 3
"""Of a picture at most, and which part of the terminal's height: what is asked of it stands below."""


class UnsentForm(Struct, frozen=True):
    """The content of a form that was left without an answer."""

    form: Form
    kept: FormState
    comment: str


class FormDialog(Dialog[str]):
    """Shows a ``human_asked`` event that has a form. Gives the answer as JSON; escape leaves the run waiting."""

    CSS_PATH: ClassVar[Any] = ["dialog.tcss", "form.tcss"]
    keeps_entries: ClassVar[bool] = True
    PALETTE: ClassVar[tuple[str, ...]] = ("form", "choices", "dialog")
    BINDINGS: ClassVar[list[BindingType]] = bindings("form")
    OFFERED: ClassVar[tuple[str, ...]] = ("form.send", "form.next", "choices.choose", "dialog.close")

    def __init__(self, question: Event, written: UnsentForm | None = None) -> None:
        """``written``: what was put into it before. Raises FormInvalid for an event whose form cannot be shown."""
        super().__init__()
        self.question = self._question = question
        self.written = written
        self._form = Form.of(question.data["form"]) if written is None else written.form
        self._kept = FormState() if written is None else written.kept
        self._comment = "" if written is None else written.comment
        self._problems: Mapping[str, str] = {}
        self._checked = False
        self._shape: tuple[int, bool] | None = None
        phase = question.place.phase
        self.heading = f"{phase} asks" if phase else "The run asks"

    # -- what is shown -----------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        self._shape = self._shape_at(self.app.size.width)
        with Vertical(id="box", classes="form") as box:
            box.border_title = plain(self.heading)
            box.border_subtitle = plain(self._terms())
            with VerticalScroll(id="box-body", can_focus=False):
                yield from self.content()
            with Vertical(id="form-end"):
                yield Static("", id="verdict")
                yield Footer(id="form-footer")
        yield from self.compose_foot()

    def _terms(self) -> str:
        """For whom it is, and how long it waits."""
        data = self._question.data
        seconds = data.get("timeout")
        waits = f"waits {_time(seconds)}" if isinstance(seconds, int | float) else ""
        return wrapped_words((f"for {data['to']}" if data.get("to") else "", waits))

    def content(self) -> Sequence[Widget]:
        data = self._question.data
        parts: list[Widget] = []
        if context := str(data.get("context") or ""):
            shown = context if len(context) <= LONGEST else context[:LONGEST] + " …"
            parts.append(VerticalScroll(Static(plain(shown)), id="context-shown"))
        parts.append(Static(plain(str(data.get("question") or self._form.title or "(no question)")), id="asked"))
        parts.append(self._columns())
        if self._form.comment != "none":
            needed = " *" if self._form.comment == "required" else ""
            parts.append(Static(plain(f"Comment{needed}"), classes="label"))
            parts.append(LineInput(self._comment, placeholder="anything to add", id="comment"))
            parts.append(Static("", id="comment-problem", classes="problem"))
        parts.append(Button(plain("Send the answer"), id="send", compact=True))
        return parts

    def _columns(self) -> Widget:
        width = self.app.size.width
        columns = columns_of(self._form, width)
        shares = widths_of(self._form.layout, len(columns))
        made = []
        for positions, share in zip(columns, shares, strict=True):
            sections = [section_widget(self._form.sections[at], self._kept, width // len(columns)) for at in positions]
            column = Vertical(*sections, classes="column")
            column.styles.width = f"{share}fr"
            made.append(column)
        return Horizontal(*made, id="columns")

    def _shape_at(self, width: int) -> tuple[int, bool]:
        """Returns how many columns there are in a terminal of that width, and whether options fit beside each other in
        one."""
        columns = len(columns_of(self._form, width))
        return columns, width // columns >= WIDE

    def on_mount(self) -> None:
        self._put_together()
        self._first()

    def on_descendant_focus(self) -> None:
        """Offer what the keys do in the part that has the focus: in a text a blank is written."""
        left_out = () if isinstance(self.focused, Choices) else ("choices.choose",)
        offered = tuple(id for id in self.OFFERED if id not in left_out)
        self.query_one("#form-footer", Footer).offer(hints(offered, self.services.keys))

    def _put_together(self) -> None:
        self._tell()
        if self.query(Thumbnail):
            self.call_after_refresh(self._develop)

    def _first(self) -> None:
        """The first question has the focus, but reading begins at the top."""
        box = next(iter(self.query(FieldBox)), None)
        if box is not None:
            box.enter(scroll=False)
        else:
            self.query_one("#send").focus(scroll_visible=False)
        self.call_after_refresh(self.query_one("#box-body").scroll_home, animate=False)

    async def on_resize(self, event: events.Resize) -> None:
        """Crossing a width at which something stands beside something else puts everything together anew."""
        if self._shape is not None and self._shape_at(event.size.width) != self._shape:
            entered = self._entered()
            self._kept, self._comment = self._now(), self._said()
            await self.recompose()
            self._put_together()
            self._enter_again(entered)

    def _now(self) -> FormState:
        boxes = self.query(FieldBox)
        return FormState(
            {box.section.id: box.kept for box in boxes},
            {box.section.id: box.problem for box in boxes},
            {id(panels.section): panels.opened for panels in self.query(PanelsBox)},
        )

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        """Left without an answer, it keeps what was written."""
        if result is None and self.query(Footer):
            self.written = UnsentForm(self._form, replace(self._now(), problems={}), self._said())
        return super().dismiss(result)

    def _entered(self) -> str:
        """The id of the section or of the widget that has the focus; empty where neither has one."""
        focused = self.focused
        if focused is None:
            return ""
        box = _box_of(focused)
        return focused.id or "" if box is None else box.section.id

    def _enter_again(self, entered: str) -> None:
        boxes = {box.section.id: box for box in self.query(FieldBox)}
        if entered in list(boxes)[1:]:
            boxes[entered].enter()
        elif entered in ("comment", "send"):
            self.query_one(f"#{entered}").focus()
        else:
            self._first()

    @work(thread=True, group="form-pictures", exit_on_error=False, exclusive=True)
    def _develop(self) -> None:
        """Draw the images, where the terminal can show them."""
        session = self.services.session
        if session is None or not self.services.draws_pictures:
            return
        lines = max(1, min(LINES, self.app.size.height // SHARE))
        for thumbnail in list(self.query(Thumbnail)):
            shown, room = thumbnail.image, max(20, min(70, thumbnail.room))
            folder, run_id = session.file.parent, self._question.run_id
            try:
                image = image_of(session.project, folder, run_id, digest=shown.digest, path=shown.path)
                size = fitted(shown.width or image.width or 640, shown.height or image.height or 400, room, lines)
                drawn = make(image.data, PictureRequest(shown.digest, *size))
            except (NoImage, CannotDraw) as fault:
                self.app.call_later(thumbnail.fail, str(fault))
            else:
                self.app.call_later(thumbnail.draw, drawn)

    # -- what is answered --------------------------------------------------------------------------------------------

    def _said(self) -> str:
        return self.query_one("#comment", LineInput).value if self._form.comment != "none" else ""

    def action_next(self) -> None:
        self.focus_next()

    def action_previous(self) -> None:
        self.focus_previous()

    def action_send(self) -> None:
        """Send the answer, if it fits; else say what does not, and go there."""
        self._checked = True
        try:
            answered = self._answered()
        except AnswerRefused as fault:
            self._refuse(fault.problems)
            return
        self.dismiss(answered.to_text())

    def _answered(self) -> FormAnswers:
        """The answers in the form. Raises AnswerRefused."""
        given = {box.section.id: answer for box in self.query(FieldBox) if (answer := box.answer) is not None}
        return check_values(self._form, given, self._said())

    def _refuse(self, problems: Mapping[str, str]) -> None:
        boxes = {box.section.id: box for box in self.query(FieldBox)}
        for id, box in boxes.items():
            box.tell(problems.get(id, ""))
        self._problems = problems
        self._tell()
        first = next((boxes[id] for id in boxes if id in problems), None)
        if first is None:
            self.query_one("#comment").focus()
            self.call_after_refresh(self.query_one("#comment-problem").scroll_visible, animate=False)
            return
        for panels in [parent for parent in first.ancestors if isinstance(parent, PanelsBox)]:
            panels.reveal(first)
        first.enter()
        self.call_after_refresh(first.scroll_visible, animate=False)

    def _tell(self) -> None:
        """Mistakes when the form was last checked: with the comment, and in all."""
        problems = self._problems
        if self._form.comment != "none":
            told = self.query_one("#comment-problem", Static)
            told.update(plain(f"✗ {problems.get(COMMENT, '')}"))
            told.display = COMMENT in problems
        names = ", ".join(self._label_of(id) for id in problems)
        verdict = self.query_one("#verdict", Static)
        verdict.update(plain(f"✗ {len(problems)} to fix: {names}"))
        verdict.display = bool(problems)

    def _label_of(self, id: str) -> str:
        label = next((field.label or field.id for field in fields_of(self._form) if field.id == id), id)
        return "your answer" if label == ANSWER else label

    @on(Choices.Changed)
    @on(Input.Changed)
    @on(TextArea.Changed)
    def _changed(self, event: Choices.Changed | Input.Changed | TextArea.Changed) -> None:
        """Once the form was checked, it is checked again as an answer changes: what is mended is no longer told."""
        box = _box_of(event.control)
        if self._checked or (box is not None and box.problem):
            self._check_again(box)

    def _check_again(self, changed: FieldBox | None) -> None:
        try:
            self._answered()
            problems: Mapping[str, str] = {}
        except AnswerRefused as fault:
            problems = fault.problems
        id = COMMENT if changed is None else changed.section.id
        self._problems = {each: words for each, words in problems.items() if each in self._problems or each == id}
        if changed is not None:
            changed.tell(problems.get(id, ""))
        self._tell()

    @on(Choices.Passed)
    def _passed(self) -> None:
        """On to the next question; where one choice is the whole form, there is none, and the answer is sent. A comment
        that it lacks is asked for then."""
        if len(fields_of(self._form)) == 1:
            self.action_send()
        else:
            self.focus_next()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        """On to the next question, from a line that fits or is left empty; from the comment the form is sent."""
        if event.input.id == "comment":
            self.action_send()
            return
        box = _box_of(event.input)
        if box is not None and (box.answer is not None or box.problem):
            self._check_again(box)
        if box is None or not box.problem:
            self.focus_next()

    @on(Button.Pressed, "#send")
    def _pressed(self) -> None:
        self.action_send()


def _box_of(widget: Widget) -> FieldBox | None:
    """The section of the form that a widget is a part of."""
    return next((parent for parent in widget.ancestors if isinstance(parent, FieldBox)), None)


def _time(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
