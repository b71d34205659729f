"""Writes memory: at the end of a run, the messages of its finished visits go into the bank that ``memory`` names."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.context.assembly import Item, Kind
from workbench.context.cards import has_card
from workbench.engine.contracts import BankSource, FolderSource, Memory, RetrievalFault, Source
from workbench.engine.definition import Definition
from workbench.engine.engine_tools import RAG_SPECS, SEARCH_CONTEXT
from workbench.engine.services import Services
from workbench.engine.toolcalls import read_calls, without_calls
from workbench.language.model.cascade import Phase

_ENDED = frozenset({"success", "failed", "blocked"})
"""A stopped run may go on, and a diverged one was a replay."""
_SAID_BY = frozenset({Kind.TASK, Kind.ANSWER, Kind.RESULT, Kind.USER})
"""Kinds of messages worth keeping, without those that only open a turn or an attempt."""

_NO_TOOL = ("\0",)
"""A name that no text holds, so that broken text is never read as a call."""


def source_of(definition: Definition, phase: Phase, tool: str) -> Source | None:
    """Returns the source that a tool of a phase searches; None for all other tools."""
    if tool in RAG_SPECS and phase.rag is not None:
        return FolderSource(phase.rag, definition.source.file)
    return BankSource(tool) if tool and tool == definition.cascade.memory else None


async def remember(services: Services, status: str) -> None:
    """Give the bank what this run said. A bank that cannot be written is a warning."""
    bank = services.definition.cascade.memory
    if not bank or status not in _ENDED:
        return
    memories, fault = list(_memories(services, bank)), ""
    try:
        if services.ports.retrieval is not None:
            await services.ports.retrieval.remember(bank, memories)
    except RetrievalFault as error:
        fault = str(error)
        services.warn("memory", f"nothing is kept in '{bank}': {fault}", ("memory",))
    services.journal.emit("remembered", bank=bank, count=len(memories), fault=fault)


def _memories(services: Services, bank: str) -> Iterator[Memory]:
    """Each message of the visits that count, once. What a search found is somebody's already."""
    searches = {bank, SEARCH_CONTEXT, *RAG_SPECS}
    seen: set[str] = set()
    for record in services.world.records:
        for item in record.items if record.status == "success" else ():
            message, text = item.message, _said(item)
            if not text or item.tool in searches or message.content_hash in seen:
                continue
            seen.add(message.content_hash)
            yield Memory(
                message.content_hash,
                message.role,
                text,
                record.phase,
                record.visit,
                item.place.turn,
                item.tool,
                record.callout_names.get(message.body_hash, ""),
                services.journal.last_at,
                services.journal.run_id,
                services.options.session_id,
                services.definition.cascade.cascade_id,
            )


def _said(item: Item) -> str:
    """The text that is kept, without requests for tools; empty for text not worth keeping."""
    if item.kind not in _SAID_BY or not has_card(item):
        return ""
    text = item.message.text
    if item.kind is Kind.ANSWER:
        text = without_calls(text, [call for call in read_calls(text, _NO_TOOL) if not call.problem])
    return text.strip()
