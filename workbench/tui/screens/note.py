"""The dialog in which a note is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from workbench.engine.journal.annotations import LONGEST_NOTE
from workbench.tui.bindings import bindings
from workbench.tui.screens.dialog import Dialog
from workbench.tui.text import plain
from workbench.tui.widgets.area import WritingArea
from workbench.views.keys import told


class NoteDialog(Dialog[str]):
    """A text of several lines. Gives it when it is saved, empty where all of it was deleted; None when it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dialog"), *bindings("note")]

    def __init__(self, name: str, text: str) -> None:
        """``name``: of what it is on. ``text``: what was written before."""
        super().__init__()
        self.heading = f"Note on {name}"
        self.offered = ((told("{note.save}"), "save"),)  # type: ignore[misc]
        self._before = text
        self._warned = False

    def content(self) -> Sequence[Widget]:
        return (
            WritingArea(self._before, id="note", soft_wrap=True, compact=True, tab_behavior="focus"),
            Static(plain(""), id="objection"),
        )

    def on_mount(self) -> None:
        area = self.query_one(WritingArea)
        area.focus()
        area.move_cursor(area.document.end)

    def action_save(self) -> None:
        """Give the text, unless it is too long."""
        text = self.query_one(WritingArea).text
        if len(text.strip()) > LONGEST_NOTE:
            self._object(f"A note has at most {LONGEST_NOTE:,} characters; this one has {len(text.strip()):,}.")
        else:
            self.dismiss(text)

    def action_close(self) -> None:
        """Close it; the first time with changes, say so."""
        if self.query_one(WritingArea).text != self._before and not self._warned:
            self._warned = True
            self._object(told("Not saved. {note.save} saves it, {dialog.close} once more drops it."))
        else:
            self.dismiss(None)

    def _object(self, words: str) -> None:
        objection = self.query_one("#objection", Static)
        objection.update(plain(words))
        objection.display = True
