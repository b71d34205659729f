"""A sliding window over turns: what opens the visit and the last turns go out, whole; the rest does not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from workbench.context.assembly import Action, Reason
from workbench.context.part import DecisionInput, MessageDecision, Part, Role, Survivor, require


class Slide(Part, frozen=True):
    """Sends the messages before the first answer, and the turns of age ``turns`` or less."""

    NAME: ClassVar[str] = "slide"
    ROLE: ClassVar[Role] = Role.SURVIVES

    turns: int = 5

    def __post_init__(self) -> None:
        require(self, turns=0)

    def start(self, ground: DecisionInput) -> Survivor:
        return _Sliding(self, ground)


class _Sliding:
    def __init__(self, part: Slide, ground: DecisionInput) -> None:
        self._turns = part.turns
        self._history = ground.history
        self._rule = part.rule("turns", ground.scope)
        self._inside: deque[int] = deque()

    def added(self, index: int) -> None:
        if not self._history.opens_visit(index):
            self._inside.append(index)

    def update(self, turn: int, attempt: int) -> Iterable[tuple[int, MessageDecision]]:
        turns = self._history.turns
        gone: list[tuple[int, MessageDecision]] = []
        while self._inside and turns[self._inside[0]] < turn - self._turns:
            index = self._inside.popleft()
            reason = Reason("slide", (self._turns, turns[index]))
            gone.append((index, MessageDecision(None, Action.DROPPED, reason, self._rule)))
        return gone
