"""Loop compression: a retry sees its failed attempts as outputs and reasons, and its own turns complete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from msgspec.structs import replace

from workbench.context.assembly import Action, Item, Kind, Reason
from workbench.context.message import Message
from workbench.context.part import WHOLE, DecisionInput, MessageDecision, Part, PhaseInFile, Role, Survivor, require
from workbench.context.parts.mask import intra_context

OUTPUT_LIMIT = 500
"""Characters of a failed output that a retry sees."""


class Loop(Part, frozen=True):
    """In attempts after the first, the last ``limit`` failed ones are shown as output and reason."""

    NAME: ClassVar[str] = "loop"
    ROLE: ClassVar[Role] = Role.SURVIVES

    limit: int = 3

    def __post_init__(self) -> None:
        require(self, limit=0)

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """From ``compress_loops`` of the intra-phase block in force."""
        found = intra_context(file)
        if found is None or not found[0].compress_loops:
            return None
        values, paths = found
        written = {"*": paths.get("compress_loops", paths["*"])}
        if "loop_history_limit" in paths:
            written["limit"] = paths["loop_history_limit"]
        return cls(values.loop_history_limit, written=written)

    def start(self, ground: DecisionInput) -> Survivor:
        return _Looping(self, ground)


class _Looping:
    def __init__(self, part: Loop, ground: DecisionInput) -> None:
        self._limit = part.limit
        self._history = ground.history
        self._without_calls = ground.scope.without_calls
        self._rule = part.rule("*", ground.scope)
        self._limit_rule = part.rule("limit", ground.scope)
        self._attempt = 1
        """The attempt that the last update was seen from."""
        self._fresh: list[int] = []

    def added(self, index: int) -> None:
        self._fresh.append(index)

    def update(self, turn: int, attempt: int) -> Iterable[tuple[int, MessageDecision]]:
        fresh, self._fresh = self._fresh, []
        if attempt <= 1:
            return []
        if attempt > self._attempt:
            # What left the shown attempts before is dropped for good, so only newer attempts are looked at again.
            first = max(1, self._attempt - self._limit)
            start = min(i for a, i in self._history.attempt_starts.items() if a >= first)
            fresh, self._attempt = list(range(start, len(self._history.items))), attempt
        outputs = {number: self._output(number) for number in {self._number(i) for i in fresh} if number < attempt}
        return [(i, v) for i in fresh if (v := self._verdict(i, attempt, outputs)) is not None]

    def _number(self, index: int) -> int:
        return self._history.items[index].place.attempt

    def _output(self, attempt: int) -> tuple[int, str]:
        """Index and text of an attempt's output: its last answer with text beside its calls; -1 if there is none."""
        starts = self._history.attempt_starts
        end = min((i for a, i in starts.items() if a > attempt), default=len(self._history.items))
        for index in range(end - 1, starts[attempt] - 1, -1):
            item = self._history.items[index]
            if item.kind is Kind.ANSWER and (text := self._without_calls(item.message.text).strip()):
                return index, text
        return -1, ""

    def _verdict(self, index: int, attempt: int, outputs: dict[int, tuple[int, str]]) -> MessageDecision | None:
        item, number = self._history.items[index], self._number(index)
        if self._history.opens_visit(index) or item.kind is Kind.USER:
            return None
        if item.kind is Kind.RETRY:
            return self._reason(item, number, attempt)
        if number == attempt:
            return WHOLE
        if number < attempt - self._limit:
            return MessageDecision(None, Action.DROPPED, Reason("loop_limit", (self._limit,)), self._limit_rule)
        at, text = outputs[number]
        if index == at:
            shown = text if len(text) <= OUTPUT_LIMIT else f"{text[:OUTPUT_LIMIT]}..."
            message = Message("assistant", f"[Attempt #{number}]\n{shown}")
            return MessageDecision(message, Action.SUMMARIZED, Reason("loop_output", (number,)), self._rule)
        return MessageDecision(None, Action.DROPPED, Reason("loop", (number,)), self._rule)

    def _reason(self, item: Item, number: int, attempt: int) -> MessageDecision | None:
        """The message that opened attempt ``number`` says why the one before was rejected."""
        failed = f"[Validation Failed]\n{item.note or item.message.text}"
        if number - 1 < attempt - self._limit:
            if number == attempt:
                return WHOLE
            return MessageDecision(None, Action.DROPPED, Reason("loop_limit", (self._limit,)), self._limit_rule)
        if number < attempt:
            return MessageDecision(
                Message("user", failed), Action.SUMMARIZED, Reason("loop_reason", (number - 1,)), self._rule
            )
        joined = f"{failed}\n\n{item.message.text}" if item.note else item.message.text
        sent = item.message if joined == item.message.text else replace(item.message, content=joined)
        return MessageDecision(sent, Action.KEPT, Reason("retry", (number,)), self._rule)
