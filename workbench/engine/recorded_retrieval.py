"""The recorded face of retrieval: what a search found is said again, and a replay adds nothing to a bank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.context.place import Place
from workbench.engine.ports import Divergence, ToolResult
from workbench.engine.retrieval import Memory, Source

if TYPE_CHECKING:
    from workbench.engine.replay import Replay


class RecordedRetrieval:
    """Answers the searches of recorded answers."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    async def call(
        self, source: Source, name: str, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        replay = self._replay
        behind = replay.past(place) and place not in replay.pins
        recorded = None if behind else replay.recording.tools.get((place, index))
        if recorded is not None and replay.recorded(place):
            return recorded[2]
        if replay.live is None:
            raise Divergence(place, f"call {place}: the recording has no result of tool call {index} ({name})")
        replay.live_tools += 1
        if replay.live.retrieval is None:
            return ToolResult(f"LookupError: {name} has nothing to search here", is_error=True)
        return await replay.live.retrieval.call(source, name, arguments, place, index)

    async def remember(self, bank: str, memories: Sequence[Memory]) -> None:
        if self._replay.live is not None and self._replay.live.retrieval is not None:
            await self._replay.live.retrieval.remember(bank, memories)
