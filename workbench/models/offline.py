"""A model that answers from a file of scripted replies: no key, no network, the same answers every time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import PurePath

from workbench.context.assembly import Request
from workbench.context.cache import Prices
from workbench.context.place import Place
from workbench.context.tokens import Counter
from workbench.engine.contracts import PLACEHOLDER, Answer, Images, ModelFault, NativeCall
from workbench.engine.journal.journal_writer import Clock
from workbench.engine.journal.usage import Usage
from workbench.engine.model_name import OFFLINE
from workbench.models.prices import cost
from workbench.models.replies import SUFFIX, Replies, Reply, ScriptedCall
from workbench.models.unscripted import lines_for

_BESIDE = f"a file named like the cascade, with {SUFFIX}"
PIECES = 24
"""A streamed text comes in at most this many pieces."""


class Offline:
    """Implements ``Model``. It replaces the model of the request, whose encoding and prices it uses."""

    name = OFFLINE

    def __init__(
        self,
        replies: Replies,
        clock: Clock,
        counter: Counter,
        prices: Prices,
        *,
        placeholders: bool = False,
        why: str = "",
        advice: str = "",
    ) -> None:
        """``why`` no provider is asked, for the journal. ``placeholders``: a call that no reply answers gets a text
        that says so, instead of a ``ModelFault``. ``advice`` on where to script replies if they come from no file;
        without it, a file beside the cascade is named."""
        self._replies = replies
        self._clock = clock
        self._counter = counter
        self._prices = prices
        self._placeholders = placeholders
        self._advice = advice
        self.why = why

    def recorded(self, request: Request, place: Place) -> str:
        return "live"

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        begin = self._clock.monotonic()
        reply = self._replies.at(place, request)
        text, calls = self._said(reply, request, place)
        latency = self._replies.latency if reply is None or reply.latency is None else reply.latency
        pieces = _pieces(text)
        await self._clock.sleep(latency / 2)
        first = self._clock.monotonic() - begin
        for piece in pieces:
            on_text(piece)
            await self._clock.sleep(latency / 2 / len(pieces))
        usage = self._usage(reply, request.model, text, calls)
        price = self._prices.price(request.model)
        spent = cost(usage, price)
        return Answer(
            text,
            calls,
            finish_reason=(reply.finish if reply else "") or ("tool_calls" if calls else "stop"),
            usage=usage,
            cost=spent,
            cost_grade="unknown" if spent is None else f"as {request.model}",
            model=OFFLINE,
            provider=OFFLINE,
            provider_id=f"offline-{place}",
            first_token_s=first if text else None,
            duration_s=self._clock.monotonic() - begin,
        )

    def _said(self, reply: Reply | None, request: Request, place: Place) -> tuple[str, tuple[NativeCall, ...]]:
        found, closing = reply, place.turn > 0 and place.call > 1
        if reply is not None and closing and place.call - 2 < len(reply.redo):
            return reply.redo[place.call - 2], ()
        if reply is not None and closing:
            if reply.closing is not None:
                return reply.closing, ()
            reply = None
        if reply is None or (reply.text is None and not reply.say and not reply.calls):
            missing = self._missing(place, closing)
            if not self._placeholders:
                add = "" if self._advice and not self._replies.file else f". {lines_for(self._replies, place, found)}"
                raise ModelFault("unscripted", f"{missing}{add}")
            return f"{PLACEHOLDER}{missing}", ()
        if reply.text is not None:
            return reply.text, ()
        if request.tools:
            calls = (
                NativeCall(f"call_{place.turn}_{i}", call.tool, _arguments(call))
                for i, call in enumerate(reply.calls, start=1)
            )
            return reply.say, tuple(calls)
        blocks = [f"```json\n{_prompted(call)}\n```" for call in reply.calls]
        return "\n\n".join([*([reply.say] if reply.say else []), *blocks]), ()

    def _missing(self, place: Place, closing: bool) -> str:
        where = f"call {place.call} outside turns" if place.turn == 0 else f"turn {place.turn}"
        if place.attempt > 1:
            where += f" of attempt {place.attempt}"
        if place.visit > 1:
            where += f" of visit {place.visit}"
        what = "no closing reply" if closing else "no reply"
        file = PurePath(self._replies.file).name
        if self._advice and not file:
            return f"{what} is scripted for phase '{place.phase}', {where}: {self._advice}"
        return f"{what} is scripted for phase '{place.phase}', {where} in {file or _BESIDE}"

    def _usage(self, reply: Reply | None, model: str, text: str, calls: tuple[NativeCall, ...]) -> Usage:
        """Counted usage of the text. Numbers that only a provider knows stay unknown."""
        scripted = reply.usage if reply else None
        output = scripted.output if scripted else None
        if output is None:
            said = [text, *(part for call in calls for part in (call.name, call.arguments))]
            output = sum(self._counter.text(part, model) for part in said if part)
        if scripted is None:
            return Usage(output=output)
        return Usage(scripted.input, output, scripted.cached, scripted.written, scripted.reasoning)


def _arguments(call: ScriptedCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)


def _prompted(call: ScriptedCall) -> str:
    """A call as models write it in text; text arguments are inserted as written, valid or not."""
    tool = json.dumps(call.tool, ensure_ascii=False)
    return f'{{"tool": {tool}, "arguments": {_arguments(call)}}}'


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]
