"""The default for a visit's own messages: all of them are sent, each with a reason, where no part of the strategy
decides."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import lru_cache

from workbench.context.assembly import Action, Item, Kind, Reason, Rule
from workbench.context.edits import EDIT_RULE, edit_reason
from workbench.context.history import History
from workbench.context.message import is_blank
from workbench.context.part import MessageDecision
from workbench.context.placeholder import blank_result, readable_calls, without_images
from workbench.context.scope import PhaseScope


def own_verdict(scope: PhaseScope, history: History, index: int) -> MessageDecision:
    """The verdict on one of the visit's own messages before any part decides.

    Two kinds of message are repaired, because providers refuse them: results without text, and calls whose arguments
    are no JSON object.
    """
    item = history.items[index]
    if item.edited == "dropped":
        return MessageDecision(None, Action.DROPPED, edit_reason(item), EDIT_RULE)
    message = item.message
    if item.kind is Kind.ANSWER:
        sent = readable_calls(message) if message.tool_calls else message
        if sent is not message:
            return MessageDecision(sent, Action.TRUNCATED, Reason("unreadable"), _DEFAULT)
        names = [call.name for call in message.tool_calls] or history.tools_called.get(index)
        return MessageDecision(message, Action.KEPT, _calls(", ".join(names)) if names else _ANSWER, _DEFAULT)
    if item.kind is Kind.RESULT:
        if is_blank(message.text) and not message.images:
            return MessageDecision(blank_result(item), Action.MASKED, Reason("blank_result"), _DEFAULT)
        return MessageDecision(message, Action.KEPT, _RESULT, _DEFAULT)
    return MessageDecision(message, Action.KEPT, _reason(item), _rule(scope, item))


_DEFAULT = Rule()
_ANSWER, _RESULT = Reason(str(Kind.ANSWER)), Reason(str(Kind.RESULT))


@lru_cache(maxsize=1024)
def _calls(names: str) -> Reason:
    """A visit calls the same tools again and again."""
    return Reason("calls", (names,))


def _reason(item: Item) -> Reason:
    if item.kind is Kind.PROMPT:
        return Reason("prompt", (item.place.turn,))
    if item.kind is Kind.RETRY:
        return Reason("retry", (item.place.attempt,))
    if item.kind is Kind.USER and item.note:
        return Reason("said", (item.note,))
    if item.kind is Kind.USER and item.message.role == "system":
        return Reason("system")
    return Reason(str(item.kind))


def _rule(scope: PhaseScope, item: Item) -> Rule:
    rules = scope.phase.rules
    if item.kind is Kind.TASK and scope.phase.instructions is not None:
        return scope.rule("instructions")
    if item.kind is Kind.PROMPT and rules.turn_prompt is not None:
        return scope.rule("rules", "turn_prompt")
    if item.kind is Kind.RETRY and rules.retry_instructions is not None:
        return scope.rule("rules", "retry_instructions")
    return Rule()


class FreshAttempts:
    """Drops what attempts that failed said and did, so that the next one begins with the task alone."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._open: list[int] = []
        """Messages of the newest attempt, which the next one drops."""

    def added(self, index: int) -> None:
        if self._history.items[index].kind is not Kind.TASK:
            self._open.append(index)

    def update(self, turn: int, attempt: int) -> Iterable[tuple[int, MessageDecision]]:
        items = self._history.items
        gone = [index for index in self._open if items[index].place.attempt < attempt]
        if gone:
            self._open = [index for index in self._open if items[index].place.attempt >= attempt]
        return [(index, _dropped(items[index].place.attempt)) for index in gone]


def _dropped(attempt: int) -> MessageDecision:
    return MessageDecision(None, Action.DROPPED, Reason("failed_attempt", (attempt,)), Rule("retries"))


class RecentImages:
    """Keeps the newest images of a visit; older ones become text (``keep_recent_images``). Those of its task are always
    sent: they are what it is to work on."""

    def __init__(self, keep: int, history: History) -> None:
        self._keep = keep
        self._history = history
        self._shown: deque[tuple[int, str]] = deque()
        self._hidden: dict[int, set[str]] = {}

    def added(self, index: int) -> None:
        item = self._history.items[index]
        if item.kind is not Kind.TASK:
            self._shown += [(index, image.digest) for image in item.message.images]

    def update(self, turn: int, attempt: int) -> Iterable[tuple[int, MessageDecision]]:
        changed: set[int] = set()
        while len(self._shown) > self._keep:
            index, digest = self._shown.popleft()
            self._hidden.setdefault(index, set()).add(digest)
            changed.add(index)
        return [(index, self._verdict(index)) for index in sorted(changed)]

    def _verdict(self, index: int) -> MessageDecision:
        sent = without_images(self._history.items[index].message, self._hidden[index])
        return MessageDecision(sent, Action.MASKED, Reason("old_image", (self._keep,)), Rule("keep_recent_images"))
