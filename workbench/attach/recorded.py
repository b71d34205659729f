"""Answers requests from a recorded session: strictly by request, or where it has the request."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from msgspec import Struct

from workbench.attach.offline import counted
from workbench.attach.recorder import canonical_request
from workbench.attach.replies import error_body
from workbench.attach.traffic import Ask, Made, Placed
from workbench.context.assembly import Request
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.tokens import Counter
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import CallState, RunState
from workbench.language.clean import clean_line

_SHOWN, _BEFORE = 60, 20
"""Characters of a message that a difference shows, and how many of them are the same on both sides."""


class _Recorded(Struct, eq=False):
    status: int
    content_type: str
    body: str
    place: Place


class RecordedAnswers:
    """Implements ``Answers``. Each recorded reply is given once, to the request that it answered."""

    def __init__(self, events: Iterable[Event], counter: Counter, *, strict: bool) -> None:
        """``strict``: a request that is not recorded is refused and ends the replay as diverged; else it goes to the
        provider. ``counter`` answers requests for a number of tokens that are not recorded. Raises NothingRecorded."""
        self.alone = strict
        self._counter = counter
        self._state = RunState()
        self._left = defaultdict[str, deque[_Recorded]](deque)
        self._order: list[_Recorded] = []
        for event in events:
            self._state.read(event)
            data = event.data
            if event.kind == "exchange" and not data.get("fault") and data.get("by") != "workbench":
                one = _Recorded(data["status"], data["content_type"], data["body"], event.place)
                self._left[data["sha256"]].append(one)
                self._order.append(one)
        if not self._order:
            raise NothingRecorded("the run holds no replies as they came over the wire; only sessions of attach do")
        self.diverged = ""
        """The first request that is not as recorded, in words; empty while all are."""

    async def answer(self, ask: Ask, placed: Future[Placed | None]) -> Made | None:
        recorded = self._left.get(canonical_request(ask))
        if recorded:
            one = recorded.popleft()
            self._order.remove(one)
            return Made(one.status, one.content_type, one.body.encode("utf-8"), "recording")
        if not self.alone:
            return None
        if ask.counts:
            return counted(ask, self._counter)
        where = await asyncio.wrap_future(placed)
        self.diverged = self.diverged or self._difference(ask, where.request if where else None)
        return Made(409, "application/json", error_body(f"the replay has diverged: {self.diverged}"), "workbench")

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
        sent = [(call, _sent(call)) for call in calls]
        call, recorded = max(sent, key=lambda pair: _common(pair[1], request.messages))
        at = _common(recorded, request.messages)
        where = f"{call.place.phase}#{call.place.visit}:{call.place.turn}"
        if at == len(recorded) == len(request.messages):
            return f"{number} has the messages of {where}, but {_parts(call, request)}"
        since = _parting(recorded, request.messages, at)
        was, now = (_shown(messages, at, since) for messages in (recorded, request.messages))
        return f"{number}, message {at + 1} is not that of {where}: recorded {was}, now {now}"


class NothingRecorded(Exception):
    """A run that holds no replies to give again."""


def _sent(call: CallState) -> Sequence[Message]:
    return [entry.sent for entry in call.entries if entry.sent is not None]


def _common(recorded: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages at the beginning are the same."""
    for i, (a, b) in enumerate(zip(recorded, now, strict=False)):
        if a.body_hash != b.body_hash and _content(a) != _content(b):
            return i
    return min(len(recorded), len(now))


def _content(message: Message) -> tuple[Any, ...]:
    """A message without the ids of its calls, which some clients draw; with what it shows of pictures."""
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    return message.role, message.text, message.images, calls


def _parting(recorded: Sequence[Message], now: Sequence[Message], at: int) -> int:
    """Where the texts of two messages begin to differ, a little before it; 0 near the beginning."""
    if at >= min(len(recorded), len(now)):
        return 0
    texts = recorded[at].text, now[at].text
    same = next((i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    return same - _BEFORE if same > _SHOWN - _BEFORE else 0


def _shown(messages: Sequence[Message], at: int, since: int) -> str:
    if at >= len(messages):
        return "nothing"
    text = messages[at].text
    return f"{messages[at].role} '{'…' if since else ''}{clean_line(text[since : since + 4 * _SHOWN], _SHOWN)}'"


def _parts(call: CallState, request: Request) -> str:
    """What besides the messages is another."""
    found: list[Any] = ["another model"] if call.model != request.model else []
    if dict(call.parameters) != dict(request.parameters):
        names = {*call.parameters, *request.parameters}
        found += sorted(n for n in names if call.parameters.get(n) != request.parameters.get(n))
    return f"other {', '.join(found)}" if found else "other tools or keys"
