"""The form that freezes a run as a test: its name, what it tests, and how strict it is."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.freeze import Label as RunLabel
from workbench.snapshots.snapshot import MODES
from workbench.tui.screens.dialog import Dialog
from workbench.tui.text import plain
from workbench.tui.widgets.choices import Choices
from workbench.tui.widgets.entry import LineInput

FIELDS = ("name", "description")
MEANS = {"strict": "every request must match", "plumbing": "phases, state and status must match"}


class FreezeForm(Dialog[RunLabel]):
    """Asks for a label. Gives it, or None; a wrong name or mode is objected to in the form."""

    heading = "Freeze the run as a test"
    offered = (("tab", "next"), ("enter", "next"))

    def __init__(self, proposed: str, folder: str) -> None:
        super().__init__()
        self._proposed = proposed
        self._folder = folder

    def content(self) -> Sequence[Widget]:
        about = (
            f"The file goes to {self._folder}NAME.json, to be committed beside the cascade. Secrets are replaced "
            "before anything is written."
        )
        return (
            Static(plain(about), classes="muted"),
            Static(plain("name"), classes="label"),
            LineInput(self._proposed, id="freeze-name"),
            Static(plain("description"), classes="label"),
            LineInput(placeholder="what it tests", id="freeze-description"),
            Static(plain("mode"), classes="label"),
            Choices(
                [(mode, [(mode, "bold"), (f"  {MEANS[mode]}", "")]) for mode in MODES], ("strict",), id="freeze-mode"
            ),
            Static(plain(""), id="objection"),
            Button(plain("Freeze"), id="freeze", classes="go", compact=True),
        )

    def on_mount(self) -> None:
        entry = self.query_one("#freeze-name", Input)
        entry.focus()
        entry.action_end()

    def on_descendant_focus(self) -> None:
        does = (
            "freeze" if isinstance(self.focused, Button) else "choose" if isinstance(self.focused, Choices) else "next"
        )
        self.offer(("tab", "next"), ("enter", does))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        at = FIELDS.index((event.input.id or "").removeprefix("freeze-"))
        if at + 1 < len(FIELDS):
            self.query_one(f"#freeze-{FIELDS[at + 1]}", Input).focus()
        else:
            self.query_one("#freeze", Button).focus()

    @on(Button.Pressed)
    def _done(self) -> None:
        name, description = (self.query_one(f"#freeze-{field}", Input).value.strip() for field in FIELDS)
        chosen = self.query_one(Choices).chosen
        mode = next((each for each in MODES if each in chosen), None)
        if mode is None:
            self._object("choose a mode", "mode")
            return
        try:
            label = RunLabel(name, description, mode)
        except SnapshotError as fault:
            self._object(str(fault), "name")
        else:
            self.dismiss(label)

    def _object(self, words: str, field: str) -> None:
        objection = self.query_one("#objection", Static)
        objection.update(plain(words))
        objection.display = True
        self.query_one(f"#freeze-{field}").focus()
