"""Masking within a phase: old tool results become placeholders, old reasoning is cut, old arguments are cleared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar, Self

from workbench.context.assembly import Action, Item, Kind, Reason
from workbench.context.message import is_blank
from workbench.context.part import (
    DecisionInput,
    MessageDecision,
    Part,
    PhaseInFile,
    Role,
    Survivor,
    block_paths,
    require,
)
from workbench.context.placeholder import (
    BRIEF_LIMIT,
    REASONING_LIMIT,
    cleared_calls,
    masked_result,
    readable_calls,
    result_size,
    shortened,
    without_images,
)
from workbench.language.model.context import IntraContext
from workbench.language.problem import Path

_FIELDS = {
    "after": "mask_observations_after",
    "window": "window",
    "min_masked_size": "min_masked_size",
    "step": "step",
    "clear_at_least": "clear_at_least",
    "preserve_errors": "preserve_errors",
    "preserve_reasoning": "preserve_reasoning",
}
"""Parameters by the fields of an ``intra_context`` block."""


class Mask(Part, frozen=True):
    """Tool results older than ``after`` turns are masked; turns older than ``window`` are shortened."""

    NAME: ClassVar[str] = "mask"
    ROLE: ClassVar[Role] = Role.SURVIVES

    after: int | None = 3
    """Turns; ``none`` masks nothing."""
    window: int | None = None
    """Turns; ``none`` shortens nothing."""
    min_masked_size: int = 0
    """Characters below which a result stays."""
    step: int = 1
    """Turns by which the frontier moves at a time."""
    clear_at_least: int = 0
    """Tokens that must be freed for the frontier to move."""
    preserve_errors: bool = True
    preserve_reasoning: bool = True

    def __post_init__(self) -> None:
        require(self, after=0, window=0, min_masked_size=0, step=1, clear_at_least=0)

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """From the intra-phase block in force."""
        found = intra_context(file)
        if found is None:
            return None
        values, paths = found
        return cls(
            **{parameter: getattr(values, name) for parameter, name in _FIELDS.items()},
            written={"*": paths["*"]} | {p: paths[name] for p, name in _FIELDS.items() if name in paths},
        )

    def start(self, ground: DecisionInput) -> Survivor:
        return _Masking(self, ground)


def intra_context(file: PhaseInFile) -> tuple[IntraContext, dict[str, Path]] | None:
    """The intra-phase block in force: the phase's fields over the cascade's, and the paths of those written.

    None if no block is written, or the nearest written one is switched off.
    """
    shared = file.cascade.auto_context.intra_phase if file.cascade.auto_context else None
    blocks: list[tuple[IntraContext, Path]] = []
    if shared is not None:
        blocks.append((shared, ("auto_context", "intra_phase")))
    if file.phase.intra_context is not None:
        blocks.append((file.phase.intra_context, (*file.base, "intra_context")))
    if not blocks or not blocks[-1][0].enabled:
        return None
    values: dict[str, object] = {}
    paths: dict[str, Path] = {}
    for block, path in blocks:
        names = block.model_fields_set & IntraContext.model_fields.keys()
        values |= {name: getattr(block, name) for name in names}
        paths |= block_paths(path, {name: name for name in names}, names)
    return IntraContext.model_validate(values), paths


class _Masking:
    """The frontier moves forward only; each message is looked at when it comes, and once more when it ages."""

    def __init__(self, part: Mask, ground: DecisionInput) -> None:
        self._part = part
        self._history = ground.history
        self._count = ground.count
        self._rule = {name: part.rule(name, ground.scope) for name in part.parameters()}
        self._new: list[tuple[int, MessageDecision]] = []
        self._fresh: list[int] = []
        """Results that came since the last update, and may be masked one day."""
        self._results: deque[int] = deque()
        """Results that may be masked and that the frontier has not reached."""
        self._answers: deque[int] = deque()
        """Answers inside the window."""
        self._reached: list[tuple[int, MessageDecision]] = []
        """Masks that wait until enough would be freed."""
        self._freed = 0

    def added(self, index: int) -> None:
        item = self._history.items[index]
        if item.kind in (Kind.RESULT, Kind.IMAGES) and self._part.after is not None:
            self._result(index, item)
        elif item.kind is Kind.ANSWER and self._part.window is not None:
            self._answers.append(index)

    def update(self, turn: int, attempt: int) -> Iterable[tuple[int, MessageDecision]]:
        self._move_frontier(turn)
        self._leave_window(turn)
        new, self._new = self._new, []
        fresh, self._fresh = self._fresh, []
        masked = {index for index, _ in new} if fresh else set()
        return [*((index, self._recent(index)) for index in fresh if index not in masked), *new]

    def _result(self, index: int, item: Item) -> None:
        """Why a result is in full for now, or for good."""
        message, least = item.message, self._part.min_masked_size
        if is_blank(message.text) and not message.images:
            return
        if item.is_error and self._part.preserve_errors:
            reason, rule = Reason("error"), self._rule["preserve_errors"]
        elif least and not message.images and (size := result_size(item)) < least:
            reason, rule = Reason("small", (size, least)), self._rule["min_masked_size"]
        else:
            self._results.append(index)
            self._fresh.append(index)
            return
        self._new.append((index, MessageDecision(message, Action.KEPT, reason, rule)))

    def _recent(self, index: int) -> MessageDecision:
        reason = Reason("recent", (self._part.after or 0, self._history.turns[index]))
        return MessageDecision(self._history.items[index].message, Action.KEPT, reason, self._rule["after"])

    def _move_frontier(self, now: int) -> None:
        """Mask the messages that are old enough at turn ``now``, batch after batch, as long as each batch frees enough
        tokens.

        A result of turn *i* is old enough from turn 1 + after + step·⌈i / step⌉ on.
        """
        part, turns = self._part, self._history.turns
        if part.after is None:
            return
        while self._results:
            batch = -(-turns[self._results[0]] // part.step)
            if 1 + part.after + part.step * batch > now:
                return
            while self._results and -(-turns[self._results[0]] // part.step) == batch:
                self._reach(self._results.popleft(), part.after)
            if self._freed >= part.clear_at_least:
                self._new += self._reached
                self._reached, self._freed = [], 0

    def _reach(self, index: int, after: int) -> None:
        verdict = self._masked(index, after)
        self._reached.append((index, verdict))
        if self._part.clear_at_least and verdict.sent is not None:
            self._freed += self._history.sizes[index] - self._count(verdict.sent)

    def _masked(self, index: int, after: int) -> MessageDecision:
        item = self._history.items[index]
        sent = without_images(item.message) if item.kind is Kind.IMAGES else masked_result(item)
        return MessageDecision(
            sent, Action.MASKED, Reason("age", (after, self._history.turns[index])), self._rule["after"]
        )

    def _leave_window(self, now: int) -> None:
        window, turns = self._part.window, self._history.turns
        while self._answers and window is not None and turns[self._answers[0]] < now - window:
            index = self._answers.popleft()
            if (verdict := self._shortened(index, window)) is not None:
                self._new.append((index, verdict))

    def _shortened(self, index: int, window: int) -> MessageDecision | None:
        item = self._history.items[index]
        is_brief = not (self._part.preserve_reasoning or item.message.tool_calls or index in self._history.tools_called)
        sent = shortened(cleared_calls(readable_calls(item.message)), BRIEF_LIMIT if is_brief else REASONING_LIMIT)
        if sent is item.message:
            return None
        rule = self._rule["preserve_reasoning" if is_brief else "window"]
        return MessageDecision(sent, Action.TRUNCATED, Reason("window", (window, self._history.turns[index])), rule)
