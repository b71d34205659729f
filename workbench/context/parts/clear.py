"""Clearing in batches: when the request grows past a trigger, all tool results but the newest become placeholders."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from workbench.context.assembly import Action, Kind, Reason
from workbench.context.message import Message
from workbench.context.part import DecisionInput, MessageDecision, Part, Role, Survivor, require
from workbench.context.placeholder import masked_result


class Clear(Part, frozen=True):
    """Looks at the request before the first call of each turn, as it stands after earlier clearing."""

    NAME: ClassVar[str] = "clear"
    ROLE: ClassVar[Role] = Role.SURVIVES

    trigger: int = 100_000
    """Tokens of the request above which results are cleared."""
    keep: int = 3
    """Results that stay, the newest."""
    clear_at_least: int = 0
    """Tokens that a clearing must free; if it would free fewer, nothing is cleared."""

    def __post_init__(self) -> None:
        require(self, trigger=0, keep=0, clear_at_least=0)

    def start(self, ground: DecisionInput) -> Survivor:
        return _Clearing(self, ground)


class _Clearing:
    def __init__(self, part: Clear, ground: DecisionInput) -> None:
        self._part = part
        self._history = ground.history
        self._count = ground.count
        self._rule = part.rule("trigger", ground.scope)
        self._size = ground.fixed_tokens
        self._results: deque[tuple[int, Message, int]] = deque()
        """Results still in full, with what would stand for them and the tokens that frees."""
        self._new: list[tuple[int, MessageDecision]] = []
        self._looked_at = 0

    def added(self, index: int) -> None:
        history = self._history
        item, turn = history.items[index], history.turns[index]
        if item.kind is Kind.ANSWER and turn > self._looked_at:
            self._look(turn)
        self._size += history.sizes[index]
        if item.kind is Kind.RESULT and item.message.text.strip():
            sent = masked_result(item)
            self._results.append((index, sent, history.sizes[index] - self._count(sent)))

    def update(self, turn: int, attempt: int) -> Iterable[tuple[int, MessageDecision]]:
        if self._history.last_answered < turn:
            self._clear()
        new, self._new = self._new, []
        return new

    def _look(self, turn: int) -> None:
        self._looked_at = turn
        self._clear()

    def _clear(self) -> None:
        """Clear if the request is too large and enough would be freed."""
        part = self._part
        number = len(self._results) - part.keep
        if self._size <= part.trigger or number <= 0:
            return
        freed = sum(self._results[i][2] for i in range(number))
        if freed <= 0 or freed < part.clear_at_least:
            return
        self._size -= freed
        for _ in range(number):
            index, sent, _freed = self._results.popleft()
            verdict = MessageDecision(sent, Action.MASKED, Reason("cleared", (part.trigger,)), self._rule)
            self._new.append((index, verdict))
