"""What happens to a visit's own messages when no part of the strategy decides: they go out, and say what they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from workbench.context.assembly import Action, Item, Kind, Reason, Rule
from workbench.context.history import History
from workbench.context.parts.part import Verdict
from workbench.context.placeholder import blank_result, readable_calls, without_images
from workbench.context.scope import PhaseScope


def own_verdict(scope: PhaseScope, history: History, index: int) -> Verdict:
    """The verdict on one of the visit's own messages before any part has a say.

    Two kinds of message are mended, because providers refuse them: results without text, and calls whose arguments
    are no JSON object.
    """
    item = history.items[index]
    if item.kind is Kind.ANSWER:
        sent = readable_calls(item.message)
        if sent is not item.message:
            return Verdict(sent, Action.TRUNCATED, Reason("unreadable"), Rule())
        names = [call.name for call in item.message.tool_calls] or history.tools_called.get(index, [])
        reason = Reason("calls", (", ".join(names),)) if names else Reason("answer")
        return Verdict(item.message, Action.KEPT, reason, Rule())
    if item.kind is Kind.RESULT and not item.message.text.strip() and not item.message.images:
        return Verdict(blank_result(item), Action.MASKED, Reason("blank_result"), Rule())
    return Verdict(item.message, Action.KEPT, _reason(item), _rule(scope, item))


def _reason(item: Item) -> Reason:
    if item.kind is Kind.PROMPT:
        return Reason("prompt", (item.place.turn,))
    if item.kind is Kind.RETRY:
        return Reason("retry", (item.place.attempt,))
    if item.kind is Kind.USER and item.note:
        return Reason("said", (item.note,))
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


class RecentImages:
    """Keeps the newest images of a visit; older ones become text (``keep_recent_images``)."""

    def __init__(self, keep: int, history: History) -> None:
        self._keep = keep
        self._history = history
        self._shown: deque[tuple[int, str]] = deque()
        self._hidden: dict[int, set[str]] = {}

    def added(self, index: int) -> None:
        self._shown += [(index, image.digest) for image in self._history.items[index].message.images]

    def update(self, turn: int, attempt: int) -> Iterable[tuple[int, Verdict]]:
        changed: set[int] = set()
        while len(self._shown) > self._keep:
            index, digest = self._shown.popleft()
            self._hidden.setdefault(index, set()).add(digest)
            changed.add(index)
        return [(index, self._verdict(index)) for index in sorted(changed)]

    def _verdict(self, index: int) -> Verdict:
        sent = without_images(self._history.items[index].message, self._hidden[index])
        return Verdict(sent, Action.MASKED, Reason("old_image", (self._keep,)), Rule("keep_recent_images"))
