"""Marks in a request that tell a provider which prefix to cache (``cache_control``)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workbench.context.assembly import Assembly, Entry, Request
from workbench.language.words import MARK_PLACES

FIVE_MINUTES, HOUR = 300.0, 3600.0
PARAMETER = "cache_control"
"""The name under which a request's parameters hold its marks. No provider is sent it under that name."""
MOST = 4
"""Marks that Anthropic takes in one request."""


class Marks(NamedTuple):
    """The marks of a request, before it is known which messages it has."""

    at: tuple[str | int, ...] = ()
    """Places by name, or indices of entries of the context."""
    ttl: str = "5m"
    """Lifetime of the marked prefix after its last use: ``5m`` or ``1h``."""

    @classmethod
    def from_json(cls, body: object) -> Marks:
        """Reads the result of ``to_json``; no marks for anything else."""
        if not isinstance(body, Mapping):
            return cls()
        at = tuple(one for one in body.get("at", ()) if one in MARK_PLACES or (isinstance(one, int) and one >= 0))
        return cls(at, "1h" if body.get("ttl") == "1h" else "5m")

    def to_json(self) -> dict[str, Any]:
        """The form in a request's parameters."""
        return {"at": list(self.at), "ttl": self.ttl}


LIVE_MARKS = Marks(("system", "last"))
"""Marks of a request to Anthropic whose cascade sets none: after the system text, and after the last message."""
NO_MARKS = Marks()


class Mark(NamedTuple):
    """One mark in a request."""

    position: int
    """How many of the sent messages are in front of it; 0 is behind the tools."""
    seconds: float
    """How long the prefix is kept after its last use."""


def marks_of(assembly: Assembly, default: Marks) -> tuple[Mark, ...]:
    """The marks of a request in ascending order, each place once; ``default`` if its parameters set none."""
    given = assembly.request.parameters.get(PARAMETER)
    marks = default if given is None else Marks.from_json(given)
    seconds = HOUR if marks.ttl == "1h" else FIVE_MINUTES
    return tuple(Mark(place, seconds) for place in places(assembly.request, marks, assembly.sent_entries))


def marked_entries(marks: Marks, entries: Sequence[Entry], *, tools: bool) -> list[int]:
    """Indices of the entries of a context behind which its request is marked, ascending; -1 is behind the tools."""
    sent = tuple(index for index, entry in enumerate(entries) if entry.sent is not None)
    messages = tuple(entry.sent for entry in entries if entry.sent is not None)
    request = Request("", {}, ({},) if tools else (), messages, "")
    return [sent[place - 1] if place else -1 for place in places(request, marks, sent)]


def places(request: Request, marks: Marks, sent_entries: Sequence[int] = ()) -> list[int]:
    """Returns how many messages are in front of each mark, ascending, each place once. ``sent_entries``: index of the
    entry behind each message, for marks that name an entry."""
    found = {place for one in marks.at if (place := _position(one, request, sent_entries)) is not None}
    return sorted(found)[-MOST:]


def _position(place: str | int, request: Request, sent_entries: Sequence[int]) -> int | None:
    """Number of sent messages before a mark; None if the request has no such place."""
    messages = request.messages
    if isinstance(place, int):
        return bisect_right(sent_entries, place) or None
    if place == "last":
        return len(messages) or None
    if place == "tools":
        return 0 if request.tools else None
    first = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
    if place == "system":
        return first or None
    return first + 1 if first < len(messages) else None
