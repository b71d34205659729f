"""Finds phrases in the texts of runs, straight from their journals: bytes are scanned, and only lines that may hold
the phrase are parsed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.store.faults import UnknownRun
from workbench.store.journal import record
from workbench.store.journal.reading import segments
from workbench.store.store import Store
from workbench.store.summary import Identity, identity

_CHUNK = 1 << 20
"""Bytes that are looked through at once: no other thread waits longer than for these."""
_BEFORE, _AFTER = 40, 160
"""Characters of an excerpt around what was found."""

_TEXTS: Mapping[str, tuple[str, ...]] = {
    "run_started": ("input",),
    "call_failed": ("error",),
    "tool_started": ("arguments",),
    "tool_finished": ("text",),
    "state_set": ("value",),
    "check_finished": ("reason",),
    "evaluation_finished": ("reason",),
    "human_asked": ("question", "context"),
    "human_answered": ("answer",),
    "edited": ("before", "after"),
    "warning": ("message",),
    "candidate_finished": ("output", "reason"),
    "phase_finished": ("output", "reason"),
    "run_finished": ("output", "reason"),
}
"""Events with text of the run itself; messages are in ``blob`` records. The cascade's text is not searched."""


ENDS: Mapping[str, tuple[str, ...]] = {"run_started": ("input",), "run_finished": ("output",)}
"""Likewise of a run's input and output alone."""


class Phrase(NamedTuple):
    """The text to search, and the texts to search in."""

    text: str
    ends: bool = False
    """In the input and the output alone."""


class Hit(Struct, frozen=True):
    """The first place where a run holds a phrase."""

    place: str
    """``phase:turn``, or ``input``, ``output``, ``note``; empty if it belongs to no call."""
    excerpt: str
    call: str = ""
    """Of a note on a call: its place."""


class TextSearch:
    """Looks for phrases, case ignored, and remembers what it found as long as a journal does not grow."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[Identity, dict[Phrase, Hit | None]]] = {}

    def find(self, run_id: str, phrase: Phrase) -> Hit | None:
        """The first place where a run holds a phrase; None if it does not, or cannot be read."""
        try:
            folder = self._store.folder(run_id)
            now = identity(folder)
        except (OSError, ValueError, UnknownRun):
            return None
        kept = self._known.get(run_id)
        if kept is None or kept[0] != now:
            kept = self._known[run_id] = (now, {})
        if phrase not in kept[1]:
            names = [name for name in now if name != "blobs"]
            kept[1][phrase] = search(folder, phrase.text, names, ENDS if phrase.ends else _TEXTS)
        return kept[1][phrase]


def search(
    folder: Path,
    phrase: str,
    names: Sequence[str] | None = None,
    texts: Mapping[str, tuple[str, ...]] = _TEXTS,
) -> Hit | None:
    """The first place of a run that holds a phrase, in the order of its journal. ``names`` are its segments, if known;
    ``texts`` selects the events.
    """
    needle, wanted = needle_of(phrase), phrase.casefold()
    try:
        for name in segments(folder) if names is None else names:
            if (hit := _in_segment(folder / name, needle, wanted, texts)) is not None:
                return hit
        return _in_bodies(folder / "blobs", needle, wanted) if texts is _TEXTS else None
    except OSError:
        return None


@lru_cache(maxsize=256)
def needle_of(phrase: str) -> bytes:
    """Lower-case bytes that every line with the phrase holds, in either letter case: journals are ASCII, and escapes of
    other letters do not show their case.
    """
    stretches = ("".join(letters) for plain, letters in groupby(phrase, _has_one_case) if plain)
    return json.dumps(max(stretches, key=len, default=""))[1:-1].encode("ascii").lower()


def _has_one_case(letter: str) -> bool:
    return letter.isascii() or letter.lower() == letter.upper()


def _in_segment(path: Path, needle: bytes, wanted: str, texts: Mapping[str, tuple[str, ...]]) -> Hit | None:
    with path.open("rb") as file:
        rest = b""
        while chunk := file.read(_CHUNK):
            chunk = rest + chunk
            end = chunk.rfind(b"\n") + 1
            lines, rest = chunk[:end], chunk[end:]
            for start, stop in _candidates(lines, needle):
                event = _decoded(lines[start:stop])
                text = _holding(event, wanted, texts) if event is not None else None
                if event is not None and text is not None:
                    place = event.place if event.kind != "blob" else _place_after(lines, stop)
                    at = f"{place.phase}:{place.turn}" if place.turn else place.phase
                    return Hit(at or "".join(ENDS.get(event.kind, ())), excerpt(text, wanted))
    return None


def _candidates(lines: bytes, needle: bytes) -> Iterator[tuple[int, int]]:
    """The lines that may hold the phrase, as offsets without their newline."""
    lowered = lines.lower()
    at = lowered.find(needle)
    while 0 <= at < len(lines):
        start, stop = lines.rfind(b"\n", 0, at) + 1, lines.find(b"\n", at)
        if stop < 0:
            return
        yield start, stop
        at = lowered.find(needle, stop + 1)


def _decoded(line: bytes) -> Event | None:
    try:
        return record.decoded(line)
    except record.BadRecord:
        return None


def _place_after(lines: bytes, stop: int) -> Place:
    """The place of a body: the event that names it comes right after the bodies that it needs."""
    while stop < len(lines):
        end = lines.find(b"\n", stop + 1)
        event = _decoded(lines[stop + 1 : end]) if end > 0 else None
        if event is None:
            break
        if event.kind != "blob":
            return event.place
        stop = end
    return Place()


def _holding(event: Event, wanted: str, texts: Mapping[str, tuple[str, ...]]) -> str | None:
    return next((text for text in _event_texts(event, texts) if wanted in text.casefold()), None)


def _event_texts(event: Event, texts: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    if event.kind == "blob":
        if texts is _TEXTS and event.data.get("kind") == "message":
            yield from _message_texts(event.data.get("body"))
        return
    for name in texts.get(event.kind, ()):
        yield from _strings(event.data.get(name))


def _message_texts(body: Any) -> Iterator[str]:
    if isinstance(body, dict):
        for name in ("content", "tool_calls"):
            yield from _strings(body.get(name))


def _strings(value: Any) -> Iterator[str]:
    """All texts inside a JSON value; numbers as written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
    elif value is not None:
        yield json.dumps(value)


def _in_bodies(folder: Path, needle: bytes, wanted: str) -> Hit | None:
    """Long bodies in files of their own, beside images and requests, are not searched."""
    if not folder.is_dir():
        return None
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        if not data.startswith(b"{") or needle not in data.lower():
            continue
        try:
            body = json.loads(data)
        except ValueError:
            continue
        if isinstance(body, dict) and "role" in body:
            for text in _message_texts(body):
                if wanted in text.casefold():
                    return Hit("", excerpt(text, wanted))
    return None


def excerpt(text: str, wanted: str) -> str:
    """Returns the text around a phrase, on one line."""
    at = max(0, text.casefold().find(wanted))
    start = max(0, at - _BEFORE)
    cut = " ".join(text[start : at + len(wanted) + _AFTER].split())
    return ("…" if start else "") + cut + ("…" if at + len(wanted) + _AFTER < len(text) else "")
