"""The dialog for feedback of a person to a running phase."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from textual import on
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from workbench.language.model.cascade import Audibles
from workbench.tui.screens.dialog import Dialog
from workbench.tui.text import plain
from workbench.tui.widgets.entry import LineInput


class FeedbackText(Struct, frozen=True):
    """The text of the feedback, and whether the turn is to be repeated with it."""

    text: str
    redo: bool = False


class FeedbackDialog(Dialog[FeedbackText]):
    """Gives what was written; escape says nothing."""

    offered = (("tab", "next"), ("enter", "say"))

    def __init__(self, phase: str, rule: Audibles, left: int) -> None:
        """``left``: how often the phase can still be spoken to, this time included."""
        super().__init__()
        self._rule = rule
        self._left = left
        self.heading = f"Say to {phase}"

    def content(self) -> Sequence[Widget]:
        rule = self._rule
        times = f"{self._left} of {rule.budget} left in this visit"
        waits = f"The run waits up to {rule.timeout_seconds:g} s for it, before its next call."
        parts: list[Widget] = [
            LineInput(placeholder="what the phase should do", id="feedback"),
            Button(plain("Send it before the next call"), id="say", classes="go", compact=True),
        ]
        if rule.allow_retry:
            parts.append(Button(plain("Repeat this turn with it"), id="redo", compact=True))
        return (*parts, Static(plain(f"{times}. {waits}"), classes="muted after"))

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._say(redo=False)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self._say(redo=event.button.id == "redo")

    def _say(self, *, redo: bool) -> None:
        text = self.query_one(Input).value.strip()
        if text:
            self.dismiss(FeedbackText(text, redo))
        else:
            self.query_one(Input).focus()
