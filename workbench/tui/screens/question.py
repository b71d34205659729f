"""The dialog for a question of a run, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from workbench.engine.forms.spec import FormInvalid
from workbench.engine.journal.event import Event
from workbench.engine.routing.choosing import accelerator
from workbench.tui.screens.dialog import Dialog
from workbench.tui.screens.form import FormDialog, UnsentForm
from workbench.tui.text import plain
from workbench.tui.widgets.entry import LineInput
from workbench.views.keys import told

LONGEST = 8000
"""Characters of a context that are shown; the rest is in the journal."""


class QuestionDialog(Dialog[str]):
    """Shows a ``human_asked`` event. Gives the answer as text; escape leaves the run waiting."""

    keeps_entries: ClassVar[bool] = True

    def __init__(self, question: Event, written: str = "") -> None:
        """``written``: what was typed into it before."""
        super().__init__()
        self.written = written
        self.question = self._question = question
        phase = question.place.phase
        self.heading = f"{phase} asks" if phase else "The run asks"
        self._options = tuple(str(option) for option in question.data.get("options") or ())

    def content(self) -> Sequence[Widget]:
        data = self._question.data
        context = str(data.get("context") or "")
        parts: list[Widget] = []
        if context:
            shown = context if len(context) <= LONGEST else context[:LONGEST] + " …"
            parts.append(Static(plain(shown), classes="muted"))
        parts.append(Static(plain(str(data.get("question") or "(no question)"))))
        parts += [
            Button(plain(f"{number}. {option}"), id=f"option-{number}", compact=True)
            for number, option in enumerate(self._options, 1)
        ]
        words = "or another answer" if self._options else "your answer"
        hint = told("{words}; enter sends it, {dialog.close} leaves the run waiting", words=words)
        parts.append(LineInput(self.written, placeholder=hint, id="answer", classes="after" if self._options else ""))
        return parts

    def on_mount(self) -> None:
        entry = self.query_one(Input)
        first = self.query("#option-1").first(Button) if self._options else entry
        first.focus()

    def on_key(self, event: events.Key) -> None:
        """The number of an option answers; the letter that it names goes to it, because letters are commands elsewhere,
        and one that is pressed by habit must not answer."""
        if isinstance(self.focused, Input):
            return
        character = event.character or ""
        if character.isdigit() and 0 < int(character) <= len(self._options):
            event.stop()
            self.dismiss(self._options[int(character) - 1])
            return
        letter = character.upper()
        named = enumerate(self._options, 1)
        found = next((at for at, option in named if letter and accelerator(option) == letter), None)
        if found is not None:
            event.stop()
            self.query_one(f"#option-{found}", Button).focus()
            return
        self.step_buttons(event)

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        """Left without an answer, it keeps what was typed."""
        self.written = "".join(entry.value for entry in self.query(LineInput))
        return super().dismiss(result)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        number = int((event.button.id or "option-0").removeprefix("option-"))
        self.dismiss(self._options[number - 1])

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.dismiss(event.value)


def question_dialog(question: Event, written: UnsentForm | str | None = None) -> QuestionDialog | FormDialog:
    """The dialog of a ``human_asked`` event: its form, where it has one, with what was put into it before."""
    typed = written if isinstance(written, str) else ""
    if question.data.get("form") is None:
        return QuestionDialog(question, typed)
    try:
        return FormDialog(question, None if isinstance(written, str) else written)
    except FormInvalid:
        # Of a newer version: it can still be answered as text.
        return QuestionDialog(question, typed)
