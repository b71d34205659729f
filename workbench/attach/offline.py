"""Answers requests without a provider, in the protocol of the client: by the offline model, with scripted replies or
placeholders, and by the workbench's own count where a number of tokens is asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from workbench.attach.replies import error_body, rendered
from workbench.attach.traffic import Ask, Made, Placed
from workbench.context.message import Message
from workbench.context.tokens import Counter
from workbench.engine.contracts import Model, ModelFault
from workbench.importers.conversation import Remarks, Unreadable
from workbench.importers.exchanges import Exchanges
from workbench.importers.values import mapping

COUNTS = ("/count_tokens", ":countTokens")
"""How the paths of such requests end: Anthropic's and Gemini's."""


def request_to_count(body: Any) -> Mapping[str, Any]:
    """The request whose tokens are asked for; Gemini may have it one level down."""
    return mapping(mapping(body).get("generateContentRequest")) or mapping(body)


def counted(ask: Ask, counter: Counter) -> Made:
    """The number of tokens of a request, as its provider would say it; pictures count nothing."""
    try:
        asked = Exchanges(Remarks()).asked(request_to_count(ask.body), ask.path)
    except Unreadable as fault:
        return Made(400, "application/json", error_body(f"the request cannot be read: {fault}"), "workbench")
    assert asked is not None, "the proxy hands on requests with messages only"
    model = asked.model
    tokens = counter.overhead(model) + counter.tools(asked.tools, model)[0]
    for one in asked.input:
        message = Message(one.role, one.text, tuple(one.calls), one.call_id, one.name)
        tokens += counter.message(message, model)[0]
    key = "totalTokens" if ask.path.endswith(":countTokens") else "input_tokens"
    return Made(200, "application/json", json.dumps({key: tokens}).encode(), "offline")


class OfflineAnswers:
    """Implements ``Answers``. Contexts of the run are visits of its phase: ``agent#2`` scripts the second."""

    alone = True

    def __init__(self, model: Model, counter: Counter) -> None:
        self._model = model
        self._counter = counter

    async def answer(self, ask: Ask, placed: Future[Placed | None]) -> Made | None:
        """Never None: no provider is asked."""
        if ask.counts:
            return counted(ask, self._counter)
        where = await asyncio.wrap_future(placed)
        if where is None:
            return _refused(400, "the request cannot be read")
        try:
            answer = await self._model.complete(where.request, where.place, {}, lambda piece: None)
        except ModelFault as fault:
            return _refused(501, fault.message)
        made = rendered(ask.path, mapping(ask.body), answer, f"offline-{ask.number}")
        if made is None:
            return _refused(501, f"the offline model does not speak the protocol of {ask.path[:100]}")
        return Made(200, *made, "offline")


def _refused(status: int, message: str) -> Made:
    return Made(status, "application/json", error_body(message), "workbench")
