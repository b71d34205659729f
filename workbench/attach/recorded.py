"""Answers requests from a recorded session: strictly by request, or where it has the request."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from workbench.attach.identity import (
    Difference,
    Drawn,
    Surroundings,
    canonical_request,
    digest,
    drawn_differences,
    surroundings_of,
)
from workbench.attach.offline import counted
from workbench.attach.replies import error_body
from workbench.attach.traffic import Ask, Made, Placed
from workbench.context.assembly import Request
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.tokens import Counter
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.language.clean import clean_line

_TOLD = 5
"""Differences that a remark names."""
_SHOWN, _BEFORE = 60, 20
"""Characters of a message that a difference shows, and how many of them are the same on both sides."""


class _Recorded(Struct, eq=False):
    status: int
    content_type: str
    body: str
    place: Place
    at: datetime
    given: bool = False


class RecordedAnswers:
    """Implements ``Answers``. Each recorded reply is given once, to the request that it answered: the same one, or one
    that is the same but for what programs draw anew at each start, which is said."""

    def __init__(self, events: Iterable[Event], counter: Counter, around: Surroundings, *, strict: bool) -> None:
        """``strict``: a request that is not recorded is refused and ends the replay as diverged; else it goes to the
        provider. ``counter`` answers requests for a number of tokens that are not recorded. ``around``: where the
        program runs now. Raises NothingRecorded."""
        self.alone = strict
        self._counter = counter
        self._state = RunState()
        self._same = defaultdict[str, deque[_Recorded]](deque)
        self._alike = defaultdict[str, deque[_Recorded]](deque)
        self._order: list[_Recorded] = []
        self._now = Drawn(around)
        self._before = self._now
        for event in events:
            self._state.read(event)
            data = event.data
            if event.kind == "run_started":
                self._before = Drawn(surroundings_of(event))
            elif event.kind == "exchange" and not data.get("fault") and data.get("by") != "workbench":
                at = datetime.fromisoformat(event.at)
                one = _Recorded(data["status"], data["content_type"], data["body"], event.place, at)
                self._same[data["sha256"]].append(one)
                self._alike[data.get("alike", "")].append(one)
                self._order.append(one)
        if not self._order:
            raise NothingRecorded(
                "the run holds no replies as they came over the wire, as a session of attach with calls"
            )
        self.diverged = ""
        """The first request that is not as recorded, in words; empty while all are."""
        self.drawn: dict[Difference, None] = {}
        """The values in which requests differ from the recording, and which do not count."""

    async def answer(self, ask: Ask, placed: Future[Placed | None]) -> Made | None:
        asked, remark = canonical_request(ask), ""
        one = _next(self._same.get(digest(asked)))
        if one is None:
            self._now.at(datetime.now(UTC))
            one = _next(self._alike.get(self._now.digest(asked)))
            if one is not None and not ask.counts:
                remark = self._remark(ask, one, await asyncio.wrap_future(placed))
        if one is not None:
            one.given = True
            self._order.remove(one)
            return Made(one.status, one.content_type, one.body.encode("utf-8"), "recording", remark)
        if not self.alone:
            return None
        if ask.counts:
            return counted(ask, self._counter)
        where = await asyncio.wrap_future(placed)
        self.diverged = self.diverged or self._difference(ask, where.request if where else None)
        return Made(409, "application/json", error_body(f"the replay has diverged: {self.diverged}"), "workbench")

    def _remark(self, ask: Ask, one: _Recorded, placed: Placed | None) -> str:
        """Returns the values in which a request differs from the recorded one, as far as no earlier request had them;
        empty if there are none."""
        call = self._state.call_at(one.place)
        if call is None or placed is None:
            return ""
        self._before.at(one.at)
        now = placed.request.messages
        found = drawn_differences(_sent(call), self._before, now, self._now)
        new = [difference for difference in found if difference not in self.drawn]
        self.drawn |= dict.fromkeys(new)
        if found and not new:
            return ""
        told = ", ".join(map(str, new[:_TOLD])) or "something in its tools or keys"
        more = f" and {len(new) - _TOLD} more" if len(new) > _TOLD else ""
        return f"request {ask.number} is that of {_place(call)} but for what programs draw anew: {told}{more}"

    @property
    def unasked(self) -> int:
        """Recorded replies that no request has asked for."""
        return len(self._order)

    def _difference(self, ask: Ask, request: Request | None) -> str:
        """The first message that is not as in the recorded request that is most like this one."""
        number = f"request {ask.number}"
        if request is None:
            return f"{number} is not recorded"
        calls = [call for one in self._order if (call := self._state.call_at(one.place)) is not None]
        if not calls:
            return f"{number} is one more than the recording has"
        now = [_content(message, self._now) for message in request.messages]
        sent = [(call, [_content(message, self._before) for message in _sent(call)]) for call in calls]
        call, recorded = max(sent, key=lambda pair: _common(pair[1], now))
        at = _common(recorded, now)
        if at == len(recorded) == len(now):
            return f"{number} has the messages of {_place(call)}, but {_parts(call, request)}"
        since = _parting(recorded, now, at)
        was, new = (_shown(messages, at, since) for messages in (recorded, now))
        return f"{number}, message {at + 1} is not that of {_place(call)}: recorded {was}, now {new}"


class NothingRecorded(Exception):
    """A run that holds no replies to give again."""


def _sent(call: CallState) -> Sequence[Message]:
    return [entry.sent for entry in call.entries if entry.sent is not None]


def _next(queue: deque[_Recorded] | None) -> _Recorded | None:
    """The first that no request got yet."""
    while queue and queue[0].given:
        queue.popleft()
    return queue.popleft() if queue else None


def _place(call: CallState) -> str:
    return f"{call.place.phase}#{call.place.visit}:{call.place.turn}"


class _Content(Struct, frozen=True):
    """A message without the ids of its calls, which some clients draw, and without the values that programs draw."""

    role: str
    text: str
    images: tuple[Any, ...]
    calls: tuple[tuple[str, str], ...]


def _content(message: Message, drawn: Drawn) -> _Content:
    calls = tuple((call.name, drawn.without(call.arguments)) for call in message.tool_calls)
    return _Content(message.role, drawn.without(message.text), tuple(message.images), calls)


def _common(recorded: Sequence[_Content], now: Sequence[_Content]) -> int:
    """Returns how many messages at the beginning are the same."""
    pairs = enumerate(zip(recorded, now, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(recorded), len(now)))


def _parting(recorded: Sequence[_Content], now: Sequence[_Content], at: int) -> int:
    """Returns where the texts of two messages begin to differ, a little before it; 0 near the beginning."""
    if at >= min(len(recorded), len(now)):
        return 0
    texts = recorded[at].text, now[at].text
    same = next((i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    return same - _BEFORE if same > _SHOWN - _BEFORE else 0


def _shown(messages: Sequence[_Content], at: int, since: int) -> str:
    if at >= len(messages):
        return "nothing"
    text = messages[at].text
    return f"{messages[at].role} '{'…' if since else ''}{clean_line(text[since : since + 4 * _SHOWN], _SHOWN)}'"


def _parts(call: CallState, request: Request) -> str:
    """Names the parts that differ beside the messages."""
    found: list[Any] = ["another model"] if call.model != request.model else []
    if dict(call.parameters) != dict(request.parameters):
        names = {*call.parameters, *request.parameters}
        found += sorted(n for n in names if call.parameters.get(n) != request.parameters.get(n))
    return f"other {', '.join(found)}" if found else "other tools or keys"
