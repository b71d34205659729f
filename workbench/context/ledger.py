"""The entries of a growing context and the request they make, kept up to date at the cost of what changes."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from workbench.context.assembly import Entry, Grade
from workbench.context.message import Message, canonical, sha256

_sha256 = hashlib.sha256
GRADES = tuple(Grade)
"""Best first."""


def worse(a: Grade, b: Grade) -> Grade:
    """The worse one of two."""
    return a if a is b else max(a, b, key=GRADES.index)


class Work(Struct):
    """How much was done so far, in operations: what a turn costs must not grow with the history."""

    counted: int = 0
    """Calls of the token counter."""
    entries: int = 0
    """Entries made."""
    hashed: int = 0
    """Links of the digest chain."""
    checked: int = 0
    """Messages held against the invariants."""


def seed_digest(model: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """The first link of the digest chain: everything beside the messages by which a provider keys its cache."""
    return sha256(canonical({"model": model, "tools": list(tools)}))


def next_digest(digest: str, message: Message) -> str:
    """The link after a message."""
    return _sha256((digest + message.body_hash).encode()).hexdigest()


def request_digest(digest: str, parameters: Mapping[str, Any]) -> str:
    """The fingerprint of a request: the last link and the parameters, which no cache is keyed by."""
    return sha256(digest + (canonical(dict(parameters)) if parameters else "{}"))


class Ledger:
    """Entries in order, and for the messages they send: digests and token sums of every prefix."""

    def __init__(self, seed: str, tokens: int, work: Work) -> None:
        self.entries: list[Entry] = []
        self.messages: list[Message] = []
        self.sent: list[int] = []
        """Index of the entry behind each sent message."""
        self.digests: list[str] = [seed]
        self.tokens: list[int] = [tokens]
        self._worse: Tally[Grade] = Tally()
        """How many messages that are sent have each grade; those of the best are not counted."""
        self._work = work

    @property
    def grade(self) -> Grade:
        """The worst grade of a message that is sent."""
        return max((g for g, count in self._worse.items() if count), key=GRADES.index, default=Grade.EXACT)

    def apply(self, changed: Mapping[int, Entry]) -> int:
        """Replace entries, or append those at the end. Returns the first position of the request that changed."""
        entries, first = self.entries, len(self.entries)
        for index in sorted(changed):
            entry = changed[index]
            if index == len(entries):
                entries.append(entry)
            else:
                before = entries[index]
                entries[index] = entry
                self._grade(before, -1)
                if index < first and not _same(before.sent, entry.sent):
                    first = index
            if entry.grade is not _EXACT:
                self._grade(entry, 1)
        return self._rebuild(first)

    def _grade(self, entry: Entry, by: int) -> None:
        if entry.sent is not None and entry.grade is not _EXACT:
            self._worse[entry.grade] += by

    def _rebuild(self, first: int) -> int:
        position = bisect_left(self.sent, first)
        del self.sent[position:], self.messages[position:], self.digests[position + 1 :], self.tokens[position + 1 :]
        digest, tokens = self.digests[-1], self.tokens[-1]
        for index in range(first, len(self.entries)):
            entry = self.entries[index]
            message = entry.sent
            if message is None:
                continue
            digest = next_digest(digest, message)
            tokens += entry.tokens_sent
            self.sent.append(index)
            self.messages.append(message)
            self.digests.append(digest)
            self.tokens.append(tokens)
        self._work.hashed += len(self.sent) - position
        return position


_EXACT = Grade.EXACT


def _same(a: Message | None, b: Message | None) -> bool:
    return a is b or (a is not None and b is not None and a == b)
