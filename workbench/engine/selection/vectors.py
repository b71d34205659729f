"""Embeddings of a run's messages: begun when a visit ends, beside the run, and awaited by the phase that selects by
them. Journaled when they are awaited, in the order in which they were begun; a replay takes them from the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from workbench.context.cards import embedded_text, has_card, text_key
from workbench.context.injection import flattened
from workbench.context.parts.auto import Auto
from workbench.context.place import Place
from workbench.context.scope import Vectors
from workbench.context.strategy import Strategy, parse
from workbench.engine.contracts import EmbeddedTexts, ModelFault
from workbench.engine.journal.event import packed, unpacked
from workbench.engine.services import Services
from workbench.language.problem import Path

if TYPE_CHECKING:
    from workbench.context.scope import VisitRecord

BATCH = 64
"""Texts of one request."""
_SETTING: Path = ("embedding_model",)


class _Text(Struct, frozen=True):
    """A text to embed, and the message that it is of; no hash for a task."""

    text: str
    content_hash: str = ""


class _Batch(Struct):
    """Texts that are being embedded."""

    place: Place
    texts: Sequence[_Text]
    task: asyncio.Task[EmbeddedTexts | ModelFault]


@dataclass
class MessageVectors:
    """The embeddings of one run."""

    services: Services
    known: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """By ``text_key``."""
    by: str = ""
    """The embedding model, as it names itself."""
    fault: str = ""
    """Why the last request failed."""
    _begun: list[_Batch] = field(default_factory=list)
    _keys: set[str] = field(default_factory=set)
    """Of all texts that were asked for."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @cached_property
    def _needed(self) -> frozenset[str]:
        return before_selecting(self.services, "semantic")

    @property
    def model(self) -> str:
        """The model that is asked; empty if likeness is lexical."""
        return self.services.options.embedding_model if self.services.ports.embedder is not None else ""

    def visit_ended(self, record: VisitRecord) -> None:
        """Begin to embed the messages of a visit, if a phase that may follow selects by likeness."""
        if not self.model or record.status != "success" or record.phase not in self._needed:
            return
        texts = [
            _Text(embedded_text(flattened(item)), item.message.content_hash) for item in record.items if has_card(item)
        ]
        self._begin(Place(record.branch, record.phase, record.visit), texts)

    async def of(self, place: Place, task: str, texts: Sequence[tuple[str, str]]) -> Vectors | None:
        """Embeddings of a task and of the texts (each with its content hash); None if no model makes any. A failed one
        is missing, and a warning says why.
        """
        if not self.model:
            return None
        wanted = [_Text(text, content_hash) for content_hash, text in texts]
        async with self._lock:
            self._begin(place, [*wanted, _Text(task)])
            await self._settle()
        return Vectors(self.by or self.model, dict(self.known), self.fault)

    async def close(self) -> None:
        """Wait for unfinished requests and journal them, so that no cost is lost."""
        async with self._lock:
            await self._settle()

    def cancel(self) -> None:
        """Cancel unfinished requests; ``close`` then reports it."""
        for batch in self._begun:
            batch.task.cancel()

    def _begin(self, place: Place, texts: Sequence[_Text]) -> None:
        fresh: dict[str, _Text] = {}
        for one in texts:
            key = text_key(one.text)
            if one.text.strip() and key not in self._keys:
                fresh.setdefault(key, one)
        self._keys |= fresh.keys()
        waiting = list(fresh.values())
        for start in range(0, len(waiting), BATCH):
            batch = waiting[start : start + BATCH]
            self._begun.append(_Batch(place, batch, asyncio.ensure_future(self._made([one.text for one in batch]))))

    async def _made(self, texts: Sequence[str]) -> EmbeddedTexts | ModelFault:
        """The vectors, tried as often as a call is; else the last fault."""
        services, embedder = self.services, self.services.ports.embedder
        assert embedder is not None
        for number in range(1, services.options.tries + 1):
            try:
                return await embedder.embed(texts, self.model)
            except ModelFault as fault:
                if not fault.retryable or number == services.options.tries:
                    return fault
                wait = (
                    fault.retry_after
                    if fault.retry_after is not None
                    else services.options.backoff * 2.0 ** (number - 1)
                )
            await services.ports.clock.sleep(wait)
        raise AssertionError("unreachable: the last try returns")

    async def _settle(self) -> None:
        """Wait for all that was begun, and journal it in that order."""
        while self._begun:
            batch = self._begun[0]
            try:
                made = await batch.task
            except asyncio.CancelledError:
                if not batch.task.cancelled():
                    raise
                made = ModelFault("connection", "the run was stopped before they came")
            self._begun.pop(0)
            self._journal(batch, made)

    def _journal(self, batch: _Batch, made: EmbeddedTexts | ModelFault) -> None:
        services, keys = self.services, [text_key(one.text) for one in batch.texts]
        said = {"model": self.model, "of": [one.content_hash for one in batch.texts], "keys": keys}
        if isinstance(made, ModelFault):
            message, _ = services.ports.redact(made.message)
            self.fault = f"{self.model} gave no embeddings: {made.kind}: {message}"
            self._keys -= set(keys)
            services.warn("embedding", f"likeness is lexical: {self.fault}", _SETTING, batch.place)
            services.journal.emit("embedded", batch.place, **said, fault={"kind": made.kind, "message": message})
            return
        vectors = [packed(vector) for vector in made.vectors]
        # What is compared is what is kept: 32 bits of each number.
        self.known |= {key: unpacked(vector) for key, vector in zip(keys, vectors, strict=True)}
        self.by = made.model
        event = services.journal.emit(
            "embedded",
            batch.place,
            **said,
            by=made.model,
            vectors=vectors,
            tokens=made.tokens,
            cost=made.cost,
            duration_s=round(made.duration_s, 6),
            **({"recorded": True} if made.recorded else {}),
        )
        services.spend(made.tokens or 0, made.cost, recorded=event.data.get("recorded", False))


def before_selecting(services: Services, *strategies: str) -> frozenset[str]:
    """The phases that a phase which selects by one of these strategies may follow, however much later."""
    cascade, graph = services.definition.cascade, services.definition.graph
    replaced = parse(services.options.strategy).enters if services.options.strategy else None
    wanted = {
        phase.name
        for phase in cascade.phases
        if isinstance(enters := replaced or Strategy.of(cascade, phase).enters, Auto) and enters.strategy in strategies
    }
    found: set[str] = set()
    while fresh := {e.src for e in graph.edges if e.dst in wanted | found} - found:
        found |= fresh
    return frozenset(found)
