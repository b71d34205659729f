"""Embeds texts by their words alone: no model, no network, the same vectors on every machine.

Two texts are near where they share words; it knows nothing of meaning, so its name says what it is.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from workbench.context.scoring import words
from workbench.engine.embedding import Embedded

LEXICAL = "lexical-256"
SIZE = 256
"""Elements of a vector."""


class LexicalEmbedder:
    """Implements ``Embedder``, whatever model is asked for."""

    async def embed(self, texts: Sequence[str], model: str) -> Embedded:
        return Embedded(tuple(map(vector_of, texts)), LEXICAL, 0, 0.0)


def vector_of(text: str) -> tuple[float, ...]:
    """A unit vector: each word adds 1 + ln(number) to the element that its hash names, or takes it away there, so that
    words which meet in an element do not make texts alike. All zeros for a text without words."""
    vector = [0.0] * SIZE
    for word, number in sorted(words(text).items()):
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        vector[digest[0]] += (1 + math.log(number)) * (1 if digest[1] & 1 else -1)
    length = math.sqrt(math.fsum(x * x for x in vector))
    return tuple(round(x / length, 6) for x in vector) if length else tuple(vector)
