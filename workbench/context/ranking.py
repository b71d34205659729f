"""Which texts suit a query best, by the words that they share (BM25); no model, the same answer every time."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

K1 = 1.2
"""How soon further occurrences of a word stop to count."""
B = 0.75
"""How much a text longer than the others is held back for its length."""

_WORD = re.compile(r"[^\W_]+")


def terms(text: str) -> list[str]:
    """The words and numbers of a text in lower case; ``snake_case`` and ``kebab-case`` are several words."""
    return _WORD.findall(text.lower())


class Ranking:
    """Texts, ready to be asked. Building it takes time proportional to the texts, asking to those that match."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lengths: list[int] = []
        self._postings: dict[str, list[tuple[int, int]]] = {}
        """By word: texts that hold it, and how often."""
        for index, text in enumerate(texts):
            counts = Counter(terms(text))
            self._lengths.append(counts.total())
            for word, count in counts.items():
                self._postings.setdefault(word, []).append((index, count))
        total = sum(self._lengths)
        self._mean = total / len(self._lengths) if total else 1.0

    def best(self, query: str, most: int) -> list[tuple[int, float]]:
        """Indices of texts that share a word with the query, with their scores: best first, of equals the first.

        Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the logarithm kept
        above zero.
        """
        scores: dict[int, float] = {}
        for word in dict.fromkeys(terms(query)):
            found = self._postings.get(word, ())
            rarity = math.log(1 + (len(self._lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for index, count in found:
                length = 1 - B + B * self._lengths[index] / self._mean
                scores[index] = scores.get(index, 0.0) + rarity * count * (K1 + 1) / (count + K1 * length)
        ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
        return ranked[:most]
