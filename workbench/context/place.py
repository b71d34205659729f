"""The place of an event in a run. Every count starts at 1; 0 means "not inside one"."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from typing import NamedTuple

WHOLE = "whole cascade"


class Place(NamedTuple):
    """A position in a run: branch (path of candidates, empty on the main line), phase, visit, attempt, turn, call."""

    branch: str = ""
    phase: str = ""
    visit: int = 0
    attempt: int = 0
    turn: int = 0
    call: int = 0

    def __str__(self) -> str:
        """The full form of the command line: ``[branch/]phase/visit/attempt/turn/call``."""
        branch, phase, visit, attempt, turn, call = self
        tail = f"{phase}/{visit}/{attempt}/{turn}/{call}"
        return f"{branch}/{tail}" if branch else tail

    @property
    def turn_key(self) -> tuple[str, str, int, int, int]:
        """The turn this place belongs to, whatever the call."""
        return self[:5]

    @property
    def visit_key(self) -> tuple[str, str, int]:
        """The visit this place belongs to."""
        return self[:3]

    @property
    def phase_words(self) -> str:
        """The phase with its branch before it: ``s0/draft``. The branch of a task of a wave, and the first phase of a
        parallel branch, are named like the phase: that is said once."""
        phase, repeated = WHOLE if self.is_whole else self.phase, self.branch.rpartition(".")[2] == self.phase
        return f"{self.branch}/{phase}" if self.branch and not repeated else phase

    @property
    def words(self) -> str:
        """``triage:3`` as people read it, with branch, visit, attempt and call if they are not the first."""
        visit = f"#{self.visit}" if self.visit > 1 else ""
        turn = f":{self.turn}" if self.turn else ""
        attempt = f" attempt {self.attempt}" if self.attempt > 1 else ""
        return f"{self.phase_words}{visit}{turn}{attempt}" + (f" call {self.call}" if self.call > 1 else "")

    @property
    def is_whole(self) -> bool:
        """Whether it is of the whole cascade, whose candidates begin at this phase, and not of the phase itself."""
        return bool(self.phase) and not self.visit

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse the full form. Raises ValueError that says what was expected."""
        return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Place:
    """Kept, because a journal names the place of a message in every context that holds it."""
    head, *numbers = text.rsplit("/", 4)
    try:
        visit, attempt, turn, call = (int(n) for n in numbers)
    except ValueError:
        raise ValueError(f"'{text}' is not a place; expected [branch/]phase/visit/attempt/turn/call") from None
    branch, _, phase = head.rpartition("/")
    return Place(branch, phase, visit, attempt, turn, call)


def visit_named(text: str, phases: Container[str]) -> tuple[str, str, int]:
    """Branch, phase and visit of ``branch/phase#visit``, as calls are named on the screen; an empty branch and visit 0
    where none is named. A text that is itself one of the ``phases`` is that phase."""
    branch, slash, rest = text.rpartition("/")
    phase, _, visit = rest.rpartition("#")
    if text in phases:
        return "", text, 0
    if slash and rest in phases:
        return branch, rest, 0
    if phase in phases and visit.isdecimal() and int(visit):
        return branch, phase, int(visit)
    return "", text, 0
