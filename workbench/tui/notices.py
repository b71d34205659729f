"""Short messages of the app: they stand in the last line of the screen for a few seconds, over no pane."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Literal

from msgspec import Struct

Severity = Literal["information", "warning", "error"]
SECONDS = {"information": 4.0, "warning": 8.0, "error": 8.0}
"""How long a message stays by itself."""
READ = 1.0
"""Seconds after which the next key takes a plain message away: it was seen."""
MOST = 3
"""Messages that stand there at once; the oldest gives way."""


class Notice(Struct, frozen=True):
    """One message, and when it was given (monotonic seconds)."""

    message: str
    severity: Severity
    at: float


class Notices:
    """Keeps the messages that stand there."""

    def __init__(self, show: Callable[[], object], set_timer: Callable[[float, Callable[[], object]], object]) -> None:
        """``show`` draws them again; ``set_timer`` calls something after so many seconds."""
        self._show = show
        self._set_timer = set_timer
        self.all: tuple[Notice, ...] = ()

    def say(self, message: str, severity: Severity) -> None:
        """Add a message. A plain one takes the place of the plain ones before it, and of no fault; of equal ones, the
        last stays."""
        kept = [note for note in self.all if note.message != message and not note.severity == severity == "information"]
        self.all = (*kept, Notice(message, severity, monotonic()))[-MOST:]
        self._show()
        self._set_timer(SECONDS[severity], self._forget_old)

    def seen(self) -> None:
        """A key was pressed: plain messages that stood there long enough to be read go."""
        self._keep(lambda note, age: note.severity != "information" or age < READ)

    def take_back(self, message: str) -> None:
        """Take a message away that is not true any more."""
        self._keep(lambda note, age: note.message != message)

    def clear(self) -> None:
        """Take all away: they were clicked."""
        self._keep(lambda note, age: False)

    def _forget_old(self) -> None:
        # A timer may come a little before its time.
        self._keep(lambda note, age: age < SECONDS[note.severity] - 0.05)

    def _keep(self, stays: Callable[[Notice, float], bool]) -> None:
        now = monotonic()
        kept = tuple(note for note in self.all if stays(note, now - note.at))
        if kept != self.all:
            self.all = kept
            self._show()
