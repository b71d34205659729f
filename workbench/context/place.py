"""Where something happened in a run. Every count starts at 1; 0 means "not inside one"."""

from __future__ import annotations

from typing import NamedTuple


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
        tail = "/".join([self.phase, *(str(n) for n in self[2:])])
        return f"{self.branch}/{tail}" if self.branch else tail

    @property
    def turn_key(self) -> tuple[str, str, int, int, int]:
        """The turn this place belongs to, whatever the call."""
        return self[:5]

    @property
    def visit_key(self) -> tuple[str, str, int]:
        """The visit this place belongs to."""
        return self[:3]

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read the full form back. Raises ValueError with what was expected."""
        head, *numbers = text.rsplit("/", 4)
        try:
            visit, attempt, turn, call = (int(n) for n in numbers)
        except ValueError:
            raise ValueError(f"'{text}' is no place; expected [branch/]phase/visit/attempt/turn/call") from None
        branch, _, phase = head.rpartition("/")
        return cls(branch, phase, visit, attempt, turn, call)
