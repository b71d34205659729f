"""Answers requests by the offline model: scripted replies or placeholders, in the protocol of the client."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from workbench.attach.counting import counted
from workbench.attach.replies import error_body, rendered
from workbench.attach.traffic import Ask, Made, Placed
from workbench.context.tokens import Counter
from workbench.engine.contracts import Model, ModelFault
from workbench.importers.values import mapping


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
