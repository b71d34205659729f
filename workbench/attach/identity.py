"""Compares a request with a recorded one: by its JSON, or without the values that programs draw anew at each start."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgspec import Struct

from workbench.attach.traffic import Ask
from workbench.context.message import Message, canonical
from workbench.engine.journal.event import Event

DRAWN_KEYS = frozenset(
    {"client_metadata", "metadata", "user", "safety_identifier", "prompt_cache_key", "stream_options"}
)
"""Keys of a request that do not tell it from another: ids of a user or of a session."""
_MESSAGES = ("messages", "contents", "input")
_CALLS = ("functionCall", "functionResponse", "function_call", "function_response")


def canonical_request(ask: Ask) -> list[str]:
    """Returns a request as canonical JSON, without ids that its client draws for its own use, in pieces. Each message
    is one."""
    body = ask.body
    kept = {key: value for key, value in body.items() if key not in DRAWN_KEYS} if isinstance(body, Mapping) else body
    end = " tokens" if ask.counts else ""
    if not isinstance(kept, dict):
        return [canonical(kept) + end]
    if "contents" in kept:
        kept["contents"] = _without_call_ids(kept["contents"])
    elif isinstance(kept.get("input"), list):
        kept["input"] = list(map(_without_item_id, kept["input"]))
    pieces, before = list[str](), "{"
    for key in sorted(kept):
        value, name = kept[key], f"{before}{canonical(key)}:"
        before = ","
        if key in _MESSAGES and isinstance(value, list):
            pieces += [name + "[", *(("," if i else "") + canonical(one) for i, one in enumerate(value)), "]"]
        else:
            pieces.append(name + canonical(value))
    return [*pieces, ("}" if kept else "{}") + end]


def digest(pieces: Sequence[str]) -> str:
    """The SHA-256 of a request's text."""
    return hashlib.sha256("".join(pieces).encode("utf-8", "surrogatepass")).hexdigest()


def _without_call_ids(value: Any) -> Any:
    """Contents of Gemini without the ids of calls: Gemini gives none, and some clients draw them."""
    if isinstance(value, list):
        return [_without_call_ids(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    made = {key: _without_call_ids(one) if key in ("parts", *_CALLS) else one for key, one in value.items()}
    return made | {
        key: {name: one for name, one in made[key].items() if name != "id"}
        for key in _CALLS
        if isinstance(made.get(key), Mapping)
    }


def _without_item_id(item: Any) -> Any:
    """An item of OpenAI's Responses without its own id, which Codex draws anew; a call is known by another one."""
    if not isinstance(item, Mapping) or item.get("type") == "item_reference":
        return item
    return {key: value for key, value in item.items() if key != "id"}


# -- what programs draw anew -------------------------------------------------------------------------------------------


class Surroundings(Struct, frozen=True):
    """Where and when a program runs."""

    now: datetime
    """Aware of its zone."""
    folder: str = ""
    home: str = ""


class _Rule(Struct, frozen=True):
    """One kind of value. Its pattern begins with a character or word that is rare, which is fast to find."""

    kind: str
    signs: tuple[str, ...]
    """One of them stands in every text that has such a value; they are looked for first."""
    pattern: re.Pattern[str]
    """Its group is the value, or all of it where it has none."""
    label: re.Pattern[str] | None = None
    """Has to match the text before it, to its end."""
    lead: re.Pattern[str] | None = None
    """The text before it that belongs to it, to its end."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where values stand in a text."""
        if self.signs and not any(sign in text for sign in self.signs):
            return
        for match in self.pattern.finditer(text):
            begin, since = match.start(), max(match.start() - _BEFORE, 0)
            if self.label is not None and self.label.search(text, since, begin) is None:
                continue
            start, end = match.span(self.pattern.groups)
            if self.lead is not None and (lead := self.lead.search(text, since, begin)) is not None:
                start = lead.start()
            yield start, end


_BEFORE = 24
"""Characters before a value that can say what it is."""
# The patterns are for JSON texts: a line end before a word is the two characters \\n.
_START = r"(?:(?<![A-Za-z])|(?<=\\[nrt]))"
_GIVEN = r"[\\\"'`]*\s?[:=]?\s?[\\\"'`]*"
_CLOCK = (
    r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AP]M)?(?:\s?(?:Z|UTC|GMT|[A-Z]{3,4}(?=\s\d{4})|[+-]\d{2}:?\d{2}))?"
)
_NAMED = "chunk|session|shell|process|request|trace|container|run|task|job|agent|thread|conversation|message"
_HEX = "[0-9A-Fa-f]"
_FIXED = (
    _Rule("port", (), re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):(3[2-9]\d{3}|[45]\d{4}|6[0-5]\d{3})(?!\d)")),
    _Rule(
        "id",
        (),
        re.compile(rf"-(?<={_HEX}{{8}}-)(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}(?!{_HEX}|-)"),
        lead=re.compile(rf"(?<!{_HEX}|-){_HEX}{{8}}\Z"),
    ),
    _Rule(
        "process",
        (),
        re.compile(rf"(?:ids?|IDs?|Id){_GIVEN}(\d+(?:,\s?\d+)*)(?![\w.])"),
        label=re.compile(rf"{_START}(?i:pp?g?|process (?:group )?)\Z"),
    ),
    _Rule("process", ("] ",), re.compile(r"\[\d{1,2}\] (\d{3,7})(?!\d)")),
    _Rule(
        "id",
        (),
        re.compile(rf"(?:id|ID|Id){_GIVEN}([0-9a-f]{{5,}}|(?=[A-Za-z_-]*\d)[0-9A-Za-z_-]{{6,}})(?![0-9A-Za-z_-])"),
        label=re.compile(rf"{_START}(?i:{_NAMED})[ _-]?\Z"),
    ),
    _Rule("folder", (), re.compile(r"tmp(?<!\wtmp)([a-z0-9_]{8}|\.[A-Za-z0-9]{6,10})(?![\w.])")),
    _Rule("folder", (), re.compile(r"/tmp/[\w.+-]*?[-_.]((?=[a-z]*[A-Z0-9])[A-Za-z0-9]{6,10})(?![\w.-])")),
)
_SECONDS = re.compile(
    r"\d(?<![\d.]\d)(?:\d*\.\d+\s?(?:[num\u00b5]?s|\\u00b5s|secs?|seconds?|milliseconds?)"
    r"|\d*\s?(?:[um\u00b5]s|\\u00b5s)|\d*m\d+(?:\.\d+)?s)(?![A-Za-z0-9])"
)
_DURATIONS = (
    *(
        _Rule("duration", (sign,), re.compile(rf"{sign}\w*{_GIVEN}(\d+(?:\.\d+)?)"))
        for sign in ("uration", "lapsed", "all time", "all_time")
    ),
    _Rule("duration", (), _SECONDS),
)


def _times(now: datetime) -> Iterator[_Rule]:
    """Dates of the day before, of the same day and of the day after, in the usual ways to write them, with the time
    where one follows: programs write local times and those of UTC, and may run past midnight."""
    days = [(now.astimezone(UTC).date() + timedelta(days=i)) for i in (-1, 0, 1)]
    years = tuple({f"{day:%Y}" for day in days})
    written = sorted({text for day in days for text in _written(day)}, key=len, reverse=True)
    yield _Rule(
        "date",
        tuple(f"{day:%b}" for day in days) + years,
        re.compile(
            rf"(?:{'|'.join(map(re.escape, written))})"
            rf"(?:(?:T|,?\s(?:at\s)?){_CLOCK}(?:\s(?:{'|'.join(years)}))?)?(?!\d)"
        ),
        label=re.compile(r"(?<!\d)\Z"),
        lead=re.compile(r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?\s\Z"),
    )
    seconds = int(now.timestamp())
    near = sorted({str(one)[:5] for one in range(seconds - 86_400, seconds + 86_401, 10_000)})
    for head in near:
        epoch = rf"{head}\d{{5}}(?:\d{{3}})?(?:\.\d+)?(?!\d)"
        yield _Rule("time", (head,), re.compile(epoch), label=re.compile(r"(?<![\d.])\Z"))
    clock = re.compile(r":(?<=\d:)\d{2}:\d{2}(?:[.,]\d+)?(?![\d:])")
    yield _Rule("time", (), clock, lead=re.compile(r"(?<![\d:.])\d{1,2}\Z"))


def _written(day: date) -> Iterator[str]:
    for pattern in ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y"):
        yield f"{day:{pattern}}"
    for month in (f"{day:%b}", f"{day:%B}"):
        yield from (f"{month} {day.day}, {day.year}", f"{month} {day.day:2}", f"{month} {day.day}")
        yield from (f"{number} {month} {day.year}" for number in (f"{day.day}", f"{day:%d}"))


class Drawn:
    """Finds in a request what programs draw anew at each start: ids, process numbers, today's date, durations, the
    folder in which they run. Everything else tells requests apart."""

    def __init__(self, around: Surroundings) -> None:
        pattern = _folders(around)
        self._folders = (_Rule("folder", (), re.compile(pattern)),) if pattern else ()
        self._day = date.min
        self._rules: tuple[_Rule, ...] = ()
        self._known: dict[bytes, bytes] = {}
        self.at(around.now)

    def at(self, now: datetime) -> None:
        """Go on at another time: sessions last longer than a day."""
        if (day := now.astimezone(UTC).date()) != self._day:
            self._day = day
            self._rules = (*self._folders, *_FIXED, *_times(now), *_DURATIONS)
            self._known.clear()

    def digest(self, pieces: Sequence[str]) -> str:
        """The SHA-256 of a request in pieces, which is the same for every request that is alike. A piece that earlier
        requests had is not read again: conversations grow."""
        whole = hashlib.sha256()
        for piece in pieces:
            plain = piece.encode("utf-8", "surrogatepass")
            key = hashlib.sha256(plain).digest()
            if (known := self._known.get(key)) is None:
                known = key if len(plain) > MOST_READ else hashlib.sha256(self.without(piece).encode()).digest()
                if len(self._known) >= _MOST_KNOWN:
                    del self._known[next(iter(self._known))]
                self._known[key] = known
            whole.update(known)
        return whole.hexdigest()

    def without(self, text: str) -> str:
        """A text of JSON with the kind of each such value in its place."""
        return self._read(text, [])

    def values(self, text: str) -> list[tuple[str, str]]:
        """The kinds and values in a text of JSON, kind by kind."""
        found: list[tuple[str, str]] = []
        self._read(text, found)
        return found

    def _read(self, text: str, found: list[tuple[str, str]]) -> str:
        for rule in self._rules:
            parts, last = list[str](), 0
            for start, end in rule.spans(text):
                if start >= last:
                    found.append((rule.kind, text[start:end]))
                    parts += (text[last:start], f"<{rule.kind}>")
                    last = end
            if parts:
                text = "".join((*parts, text[last:]))
        return text


MOST_READ = 1_000_000
"""Bytes of a piece of a request, such as a message; a larger one is the same as it was, or another."""
_MOST_KNOWN = 5_000
"""Pieces that are remembered, each with two digests."""


def _folders(around: Surroundings) -> str:
    """A pattern of the names of the folder and of the home of a program, empty without them."""
    named = {name.rstrip("/") for name in (around.folder, around.home)} - {"", "/"}
    written = sorted(
        {*named, *(name.replace("/", "-") for name in named if name.count("/") > 1)}, key=len, reverse=True
    )
    return rf"(?:{'|'.join(re.escape(canonical(name)[1:-1]) for name in written)})(?![\w.-])" if written else ""


class Difference(Struct, frozen=True):
    """A value that is drawn anew, as it was and as it is."""

    kind: str
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.kind} {self.was}, now {self.now}"


def drawn_differences(
    recorded: Sequence[Message], before: Drawn, messages: Sequence[Message], now: Drawn
) -> list[Difference]:
    """Returns the values that were drawn anew in messages that are the same but for them."""
    found = dict[Difference, None]()
    for old, new in zip(recorded, messages, strict=False):
        if old.body_hash == new.body_hash:
            continue
        pairs = zip(before.values(old.canonical()), now.values(new.canonical()), strict=False)
        found |= {Difference(kind, was, value): None for (kind, was), (_, value) in pairs if was != value}
    return list(found)


def surroundings_of(started: Event) -> Surroundings:
    """Returns where and when a recorded program ran, by the first event of its run."""
    kept = started.data.get("imported", {}).get("kept", {})
    return Surroundings(datetime.fromisoformat(started.at), kept.get("folder", ""), kept.get("home", ""))
