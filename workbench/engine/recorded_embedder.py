"""The recorded face of embeddings: what was embedded is not embedded again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.context.cards import text_key
from workbench.engine.embedding import Embedded
from workbench.engine.ports import ModelFault

if TYPE_CHECKING:
    from workbench.engine.replay import Replay


class RecordedEmbedder:
    """Gives the recorded vectors; those of other texts come from the live embedder, if any."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    async def embed(self, texts: Sequence[str], model: str) -> Embedded:
        replay = self._replay
        known = replay.recording.embedded.get((model, tuple(map(text_key, texts))))
        if isinstance(known, Embedded):
            return known
        if replay.live is not None and replay.live.embedder is not None:
            return await replay.live.embedder.embed(texts, model)
        if known is not None:
            raise known
        raise ModelFault("no_model", f"the recording has no embeddings of {model} for these texts")
