"""One line of a journal: an event as ASCII JSON with a format version and a checksum."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from zlib import crc32

from msgspec import DecodeError, Struct
from msgspec.json import Decoder
from msgspec.json import decode as from_json

from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.engine.journal.shapes import Index, Seq, problem_of, problem_within
from workbench.language.clean import clean_line

START = "00000000"
"""The digest that the first record of a run states of the one before it."""

VERSION = 1
"""Of the record format. Readers keep the older ones for ever."""

_CRC, _CRC_SIZE, _END_SIZE = b',"crc":"', len(b',"crc":"00000000"}'), len(b',"crc":"00000000"}\n')
_PREV, _PREV_SIZE = b',"prev":"', len(b',"prev":"00000000"')
_DATA = b',"data":'
_HEAD = re.compile(rb'\{"v":\d+,"run_id":"[^"]*","seq":(\d+),"at":"[^"]*","kind":"blob"')

_quoted = json.encoder.encode_basestring_ascii
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")).encode

_decode = json.JSONDecoder().raw_decode


class BadRecord(Exception):
    """A line that is not a valid record, and why; ``seq`` is its number if the line is unchanged all the same."""

    def __init__(self, reason: str, seq: int = 0) -> None:
        super().__init__(reason)
        self.seq = seq


def encoded(event: Event, before: str = "") -> bytes:
    """The line, newline included. ``before`` is the checksum of the record before it, which chains the two: later
    exchanges and changes are found even if each line by itself is valid.

    Raises TypeError or ValueError if the data is not JSON (NaN is none).
    """
    link = f',"prev":"{before}"' if before else ""
    branch, phase, visit, attempt, turn, call = event.place
    text = (
        f'{{"v":{VERSION},"run_id":{_quoted(event.run_id)},"seq":{event.seq:d},"at":{_quoted(event.at)},'
        f'"kind":{_quoted(event.kind)},"branch":{_quoted(branch)},"phase":{_quoted(phase)},"visit":{visit:d},'
        f'"attempt":{attempt:d},"turn":{turn:d},"call":{call:d},"data":{_encode(dict(event.data))}{link}'
    ).encode("ascii")
    return sealed(text)


def sealed(text: bytes) -> bytes:
    """A line from a JSON object without its closing bracket: with its checksum, the bracket and the newline."""
    return b'%b,"crc":"%08x"}\n' % (text, crc32(b"}", crc32(text)))


def decoded(line: bytes) -> Event:
    """The event of a line without its newline. Raises BadRecord if a single bit differs from the written line."""
    check(line)
    if (event := _written(line)) is None:
        event = _read_slowly(line)
        problem = problem_of(event)
    else:
        problem = problem_within(event)
    if problem:
        known = event.seq if type(event.seq) is int else 0
        raise BadRecord(f"record {clean_line(str(event.seq), 20)}: {problem}", known)
    return event


class _Line(Struct):
    """A line as this program writes it: the decoder checks what the fields of an event are as it reads them."""

    v: int
    run_id: str
    seq: Seq
    at: str
    kind: str
    branch: str
    phase: str
    visit: Index
    attempt: Index
    turn: Index
    call: Index
    data: dict[str, Any]


_lines = Decoder(_Line)


def _written(line: bytes) -> Event | None:
    """The event of a line; None for one that has to be looked at more closely."""
    if not line.isascii():
        return None
    try:
        read = _lines.decode(line)
    except (DecodeError, ValueError, RecursionError):  # The first is no ValueError before msgspec 0.21.
        return None
    if read.v > VERSION:
        return None
    place = Place(read.branch, read.phase, read.visit, read.attempt, read.turn, read.call)
    return Event(read.seq, read.at, read.run_id, read.kind, place, read.data)


def _read_slowly(line: bytes) -> Event:
    """The event of any line that is an object. Raises BadRecord."""
    try:
        body = _body(line)
        if body["v"] > VERSION:
            raise BadRecord(f"format {body['v']} of a later program; this one reads up to {VERSION}")
        return Event.from_json(body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadRecord(f"no record: {type(error).__name__}") from error


def _body(line: bytes) -> Any:
    """The object of a line. Raises ValueError, RecursionError, BadRecord."""
    if line.startswith(b"{") and line.isascii():
        try:
            return from_json(line)
        except (DecodeError, ValueError):  # The first is no ValueError before msgspec 0.21.
            pass  # A lone surrogate or a number out of range. Python's own reader takes both, and decides the rest.
    text = line.decode("ascii")
    body, end = _decode(text)
    if end != len(text):
        raise BadRecord("no record: something follows it")
    return body


def check(line: bytes) -> None:
    """Compare the checksum. Raises BadRecord."""
    body = memoryview(line)[:-_CRC_SIZE]
    if not (body and line.startswith(_CRC, len(body)) and line.endswith(b'"}')):
        raise BadRecord("no checksum")
    if b"%08x" % crc32(b"}", crc32(body)) != line[-10:-2]:
        raise BadRecord("checksum differs")


def link_of(line: bytes) -> str:
    """The checksum of the preceding record that a whole record, newline included, states; empty without one."""
    end = len(line) - _END_SIZE
    return line[end - 9 : end - 1].decode("ascii") if line.startswith(_PREV, end - _PREV_SIZE) else ""


def crc_of(line: bytes) -> str:
    """The checksum that a whole record, newline included, says of itself: 8 hex digits."""
    return line[-11:-3].decode("ascii", "replace")


def data_of(line: bytes) -> str:
    """The data of a whole record as written; empty if characters in it are escaped, or in an old order."""
    at = line.find(_DATA)
    end = len(line) - _END_SIZE
    if line.startswith(_PREV, end - _PREV_SIZE):
        end -= _PREV_SIZE
    return "" if at < 0 or b"\\u" in line else line[at + len(_DATA) : end].decode("ascii")


def crc_at_end(segment: Path, end: int) -> str:
    """The same of the record that ends at an offset of a segment. Raises OSError."""
    with segment.open("rb", buffering=0) as file:
        file.seek(max(end - _END_SIZE, 0))
        return crc_of(file.read(_END_SIZE))


def blob_seq(line: bytes) -> int | None:
    """The sequence number of a ``blob`` record, without parsing its body; None for other kinds."""
    head = _HEAD.match(line)
    return int(head[1]) if head else None
