"""How well earlier messages suit a task, without a model: shared keywords, recency, callouts, lexical likeness."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

# Which texts suit a query best, by the words that they share (BM25); no model, the same answer every time.

K1 = 1.2
"""How soon further occurrences of a word stop to count."""
B = 0.75
"""How much a text longer than the others is held back for its length."""

_TERM = re.compile(r"[^\W_]+")


def terms(text: str) -> list[str]:
    """The words and numbers of a text in lower case; ``snake_case`` and ``kebab-case`` are several words."""
    return _TERM.findall(text.lower())


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


_WORD = re.compile(r"[^\W\d_][\w-]{3,}")
_SMALL_WORDS = (
    "about after again also been before being between both cannot could does doing done each every from given have "
    "here into just like make many more most much must need only other over please same should some such than that "
    "their them then there these they this those through under until very want were what when where which while will "
    "with within without would your"
)
_COMMON = frozenset(_SMALL_WORDS.split())
MOST_KEYWORDS = 20
"""Keywords of one message: its most frequent ones."""


_PARTED = bytes(
    ord(letter) if (letter := chr(code).lower()).isalnum() or letter in "_-" else 32 for code in range(128)
).ljust(256)
"""For ASCII: letters in lower case, and a blank for each character that stands in no word."""
_NO_BEGINNING = "0123456789_-"
"""Characters within words that none begins with."""


def words(text: str) -> Counter[str]:
    """Words of four letters or more with their numbers, common ones left out, in lower case."""
    if text.isascii():  # As the pattern finds them, in two thirds of its time.
        parted = text.encode().translate(_PARTED).decode().split()
        # Letters sort behind all that no word begins with, and a call takes longer than a comparison.
        found = Counter([word for one in parted if len(word := one if one >= "a" else one.lstrip(_NO_BEGINNING)) > 3])
    else:
        found = Counter(_WORD.findall(text.lower()))
    for word in found.keys() & _COMMON:
        del found[word]
    return found


def ordered_keywords(text: str) -> tuple[str, ...]:
    """The most frequent words of a text, most frequent first; of equals, the first ones."""
    # As ``most_common`` gives them, whose heap takes three times as long for the few words of a message.
    found = words(text)
    return tuple(sorted(found, key=found.__getitem__, reverse=True)[:MOST_KEYWORDS])


def relevance(task: str, texts: Sequence[str]) -> list[float]:
    """Returns how much of a task's words each text holds, rare ones for more: 1 for the best text, 0 for one without
    any.

    By BM25 (``ranking``), as a share of the best: so the only text that holds a word of the task has all of it, however
    many words the task has.
    """
    scores = dict(Ranking(texts).best(" ".join(words(task)), len(texts)))
    best = max(scores.values(), default=0.0)
    return [scores.get(index, 0.0) / best if best else 0.0 for index in range(len(texts))]


def recency(position: int, count: int) -> float:
    """1 for the newest of ``count`` messages down to 0 for the oldest, by position and never by the clock."""
    return position / (count - 1) if count > 1 else 1.0


def likeness(left: Counter[str], right: Counter[str]) -> float:
    """Cosine of two lexical vectors, whose elements are 1 + ln(frequency) of a word; 0 if one has no words."""
    # fsum: a plain sum would depend on the order of a set, which differs from process to process.
    shared = math.fsum(_weight(left[word]) * _weight(right[word]) for word in left.keys() & right.keys())
    length = math.sqrt(_square(left) * _square(right))
    return shared / length if length else 0.0


def _weight(number: int) -> float:
    return 1 + math.log(number)


def _square(vector: Counter[str]) -> float:
    return math.fsum(_weight(number) ** 2 for number in vector.values())


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Cosine of two embeddings; 0 if their lengths differ or one is all zeros."""
    if len(left) != len(right):
        return 0.0
    length = math.sqrt(math.fsum(x * x for x in left) * math.fsum(x * x for x in right))
    return math.fsum(x * y for x, y in zip(left, right, strict=True)) / length if length else 0.0
