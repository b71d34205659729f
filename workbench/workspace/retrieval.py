"""The Retrieval port over a workspace: folders of it, and the memory banks of its store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.contracts import Embedder, FolderSource, Memory, RetrievalFault, Source, ToolResult
from workbench.engine.engine_tools import asked
from workbench.store.banks import Bank, Banks, MemoryHit
from workbench.store.faults import StoreError
from workbench.tools.calling import call_function
from workbench.tools.paths import Workspace
from workbench.tools.rag.answers import TIMEOUT_S, RagAnswer, RagTools
from workbench.tools.results import cut, error_of

SHOWN_CHARS = 2000
"""Of one message of a bank."""


class WorkspaceRetrieval:
    """Implements ``Retrieval``."""

    def __init__(
        self, workspace: Workspace, store: Path, embedder: Embedder | None, redact: Callable[[str], str] = str
    ) -> None:
        """``store`` is the store's folder. ``redact`` removes secrets from passages before they are sent to be
        embedded; search results lose them when they enter the run.
        """
        self._banks = Banks(store)
        self._rag = RagTools(workspace, store / "embeddings", embedder, redact)

    async def call(
        self, source: Source, name: str, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        started = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S) as deadline:
                told = await self._answer(source, name, arguments)
                result = replace(cut(told.text), embedded=told.embedded)
        except Exception as fault:  # noqa: BLE001 - whatever is wrong with a folder or a bank, the model is told
            late = ToolResult(f"TimeoutError: {name} had no answer within {TIMEOUT_S:g} s", is_error=True)
            result = late if deadline.expired() else error_of(fault)
        return replace(result, duration_s=time.monotonic() - started)

    async def remember(self, bank: str, memories: Sequence[Memory]) -> None:
        try:
            await asyncio.to_thread(self._banks.bank(bank).add, memories)
        except StoreError as fault:
            raise RetrievalFault(str(fault)) from fault

    async def _answer(self, source: Source, name: str, arguments: Mapping[str, Any]) -> RagAnswer:
        if isinstance(source, FolderSource):
            return await self._rag.call(source, name, arguments)
        query, limit = asked(arguments)
        bank = self._banks.bank(source.name)
        found, total = await call_function(lambda: bank.search(query, limit), {}, TIMEOUT_S)
        return RagAnswer(_recalled(bank, found, total, query))


def _recalled(bank: Bank, found: Sequence[MemoryHit], total: int, query: str) -> str:
    if not total:
        return f"The memory '{bank.name}' is still empty."
    if not found:
        return f"None of {total:,} messages in '{bank.name}' shares a word with '{query}'."
    parts = [f"{len(found):,} of {total:,} messages in '{bank.name}', best first:"]
    parts += [f"{number}. {heading(one.memory)}\n{_text(one.memory)}" for number, one in enumerate(found, 1)]
    if bank.damaged:
        parts.append(f"[{bank.damaged:,} damaged lines were passed over]")
    return "\n\n".join(parts)


def heading(memory: Memory) -> str:
    """The origin of a message: ``2026-01-31 · triage turn 2 · assistant · run demo_7``."""
    visit = f"#{memory.visit}" if memory.visit > 1 else ""
    turn = f" turn {memory.turn}" if memory.turn else ""
    parts = [memory.at[:10], f"{memory.phase}{visit}{turn}", memory.tool or memory.role, f"run {memory.session_id}"]
    marked = f' · called out as "{memory.callout}"' if memory.callout else ""
    return " · ".join(filter(None, parts)) + marked


def _text(memory: Memory) -> str:
    text = memory.text.strip()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]} … ({len(text):,} characters in all)"
