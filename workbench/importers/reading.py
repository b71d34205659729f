"""A file in, conversations out, each with the format it was read as and what says that it is of it."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import IO, Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.importers.conversation import Conversation, Remark, Unreadable
from workbench.importers.exchanges import given_of, is_response
from workbench.importers.formats.aider import aider_text
from workbench.importers.formats.table import BY_NAME, FORMATS, Format, detect, looks_like, others_of
from workbench.importers.formats.vcr import load_cassette, looks_like_cassette
from workbench.importers.messages import ROLES
from workbench.importers.python_text import python_value, transcript
from workbench.importers.source import (
    MAX_BYTES,
    MAX_STREAM,
    MAX_VALUE,
    Document,
    NotJson,
    Source,
    arrow,
    documents,
    first_lines,
    refuse_too_many,
    rows,
    text_of,
    unpacked,
)
from workbench.importers.values import loads, mapping, string

# Zip archives: their members as readable files, and the log that Inspect writes as one.

_ZSTD = 93
_SAMPLE = re.compile(r"samples/[^/]+\.json")
_HEADERS = ("header.json", "_journal/start.json")
_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    struct.error,
    NotImplementedError,
    RuntimeError,
)


class Archive:
    """A zip archive in memory. Raises Unreadable for a damaged one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except zipfile.BadZipFile as fault:
            # The list of a zip file's members stands at its end; zipfile says of a file without it that it is none.
            cut = "is cut off: the list of its members is missing" if "not a zip file" in str(fault) else ""
            raise Unreadable(f"looks like a zip file, but {cut or f'cannot be unpacked: {fault}'}") from None
        except _FAULTS as fault:
            raise Unreadable(f"looks like a zip file, but cannot be unpacked: {fault}") from None
        self._members = {info.filename: info for info in self._zip.infolist() if info.filename and not info.is_dir()}

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def names(self) -> list[str]:
        """The members that are no hidden files, by name."""
        return sorted(n for n in self._members if not any(part.startswith((".", "__MAC")) for part in n.split("/")))

    def open(self, name: str) -> IO[bytes]:
        """A member to read from."""
        try:
            if self._members[name].compress_type != _ZSTD:
                return self._zip.open(name)
            return io.BytesIO(self._unpacked(self._members[name]))
        except _FAULTS as fault:
            raise Unreadable(f"looks like a zip file, but {name[:80]} cannot be unpacked: {fault}") from None

    @property
    def is_inspect_log(self) -> bool:
        """Whether it is a log that Inspect wrote (``.eval``)."""
        return self._header is not None

    @property
    def _header(self) -> str | None:
        return next((name for name in _HEADERS if name in self._members), None)

    def inspect_logs(self) -> Iterator[Document]:
        """The JSON log that an ``.eval`` file stands for, one document for each sample; one at a time, because all of
        them may take more memory than there is. Raises Unreadable."""
        assert self._header is not None
        names = [name for name in sorted(self._members) if _SAMPLE.fullmatch(name)]
        if sum(self._members[name].file_size for name in names) > MAX_STREAM:
            raise Unreadable(f"unpacks to more than {MAX_STREAM // 2**20:,} MB")
        header = self._json(self._header)
        if not isinstance(header, dict):
            raise Unreadable("looks like an Inspect log (zip), but its header is not an object")
        header = {"eval": {}, **header}
        if not names:
            yield Document({**header, "samples": []})
        for name in names:
            size = self._members[name].file_size
            yield Document({**header, "samples": [self._json(name)]}, name if len(names) > 1 else "", size=size)

    def _json(self, name: str) -> Any:
        size = self._members[name].file_size
        if size > MAX_VALUE:
            raise Unreadable(f"{name[:80]} unpacks to more than {MAX_VALUE // 2**20} MB")
        try:
            with self.open(name) as member:
                return loads(text_of(member.read(size + 1)))
        except _FAULTS as fault:
            raise Unreadable(f"looks like an Inspect log (zip), but cannot be unpacked: {fault}") from None

    def _unpacked(self, info: zipfile.ZipInfo) -> bytes:
        """A member packed by Zstandard, which zipfile does not know here. Raises what a damaged one leads to."""
        pyarrow = arrow()
        # A local header is 30 bytes, then name and extra field by their lengths.
        name, extra = struct.unpack_from("<HH", self._data, info.header_offset + 26)
        start = info.header_offset + 30 + name + extra
        packed = pyarrow.BufferReader(self._data[start : start + info.compress_size])
        with pyarrow.CompressedInputStream(packed, "zstd") as stream:
            raw: bytes = stream.read(min(info.file_size, MAX_BYTES) + 1)
        if zlib.crc32(raw) != info.CRC:
            raise zipfile.BadZipFile(f"{info.filename} is damaged")
        return raw


_EXPECTED = f"expected one of the {len(FORMATS)} formats that `workbench import --help` names"
_LISTED = re.compile(r"^\s*\[\s*\{|\A\s*[\[{]", re.MULTILINE)
_ARCHIVES = 2
MOST_CALLS = 20_000
"""Of one conversation: every call is kept with all that it saw, so that time grows with their square."""
_TOGETHER = ("otel", "openinference", "langsmith", "tracer")
"""Formats in which a line holds part of a trace, so that all lines are read together, as are lines with a request each;
those with a whole recording each are read by themselves."""
_INSIDE = (
    "data",
    "simulations",
    "rows",
    "row",
    "result",
    "results",
    "items",
    "traces",
    "runs",
    "trace",
    "records",
    "body",
    "conversation",
    "conversation_log",
    "transcript",
    "output",
)
"""Names under which exports hold what they export."""
_ANSWERS = {"choices", "candidates", "output", "content", "message", "steps"}
"""Names under which a response holds its answer."""


class FoundConversation(Struct, frozen=True):
    """A conversation of a file."""

    format: Format
    conversation: Conversation
    evidence: str
    """The part of the file that shows that it is of this format."""
    also: tuple[str, ...] = ()
    """Names of further formats that fit its shape, and which are tried later."""


def read_file(file: bytes | IO[bytes], wanted: str = "") -> Iterator[FoundConversation]:
    """The conversations in a file, as they are found: JSON lines are read one at a time.

    ``wanted``: the name of a format to read it as, whatever it looks like. Raises Unreadable, also behind the first
    conversations of a file that is damaged further on.
    """
    yield from _unpacked(io.BytesIO(file) if isinstance(file, bytes) else file, wanted, _ARCHIVES)


def read_parts(files: Iterable[IO[bytes]], wanted: str = "") -> FoundConversation | None:
    """One conversation whose events or messages are in a file each; None for other files.

    Raises Unreadable.
    """
    bodies: list[Any] = []
    for file in files:
        try:
            values = list(islice(documents(unpacked(file)), 2))
        except NotJson:
            return None
        if len(values) != 1 or not isinstance(values[0].body, dict) or detect(values[0].body) is not None:
            return None
        bodies.append(values[0].body)
    if not wanted and detect(bodies) is None:
        return None
    return next(_read(Document(bodies), wanted), None)


def _unpacked(stream: IO[bytes], wanted: str, archives: int) -> Iterator[FoundConversation]:
    """``archives``: how many may still lie in one another."""
    source = unpacked(stream)
    if not source.head.startswith(b"PK\x03\x04") or not archives:
        yield from _source(source, wanted)
        return
    with Archive(source.stream.read(MAX_BYTES + 1)) as archive:
        if archive.is_inspect_log:
            yield from _found(archive.inspect_logs(), wanted)
        else:
            yield from _members(archive, wanted, archives - 1)


def _members(archive: Archive, wanted: str, archives: int) -> Iterator[FoundConversation]:
    """The conversations of every member that holds some; of the others, why they do not, as remarks on the last one."""
    refused: list[Remark] = []

    def each() -> Iterator[FoundConversation]:
        for name in archive.names():
            try:
                with archive.open(name) as member:
                    for one in _unpacked(member, wanted, archives):
                        yield replace(one, evidence=f"{name[:80]}: {one.evidence}")
            except Unreadable as fault:
                refused.append(_lost(name[:80], fault))

    def none() -> str:
        first = f" ({refused[0]})" if refused else ""
        return f"looks like a zip file that holds no run{first}; {_EXPECTED}"

    yield from _noted(each(), refused, none)


def _noted(
    found: Iterator[FoundConversation], late: list[Remark], none: Callable[[], str]
) -> Iterator[FoundConversation]:
    """The same, with all remarks on the last one. Raises Unreadable with the text ``none`` if there is no
    conversation.
    """
    held: FoundConversation | None = None
    for one in found:
        if held is not None:
            yield held
        held = one
    if held is None:
        raise Unreadable(none())
    remarks = (*held.conversation.remarks, *late)
    yield replace(held, conversation=replace(held.conversation, remarks=remarks))


def _source(source: Source, wanted: str) -> Iterator[FoundConversation]:
    try:
        if source.head.startswith(b"SQLite format 3"):
            kind = "LangGraph's checkpoints (SQLite)" if b"checkpoint_ns" in source.head else "an SQLite database"
            raise Unreadable(f"looks like {kind}; export the messages of a thread as JSON")
        is_table = source.head.startswith(b"PAR1")
        yield from _found(rows(source) if is_table else documents(source), wanted)
    except NotJson as fault:
        yield from _found([_other_text(fault)], wanted)
    except RecursionError:
        raise Unreadable(f"looks like JSON, but a value in it is nested too deep; {_EXPECTED}") from None
    except Unreadable as fault:
        told = str(fault)
        raise Unreadable(told if _EXPECTED in told or ", but " in told else f"{told}; {_EXPECTED}") from None


def _other_text(fault: NotJson) -> Document:
    """A text that is no JSON: a cassette in YAML, or Python's way to write lists and objects. Raises Unreadable."""
    if looks_like_cassette(fault.text):
        return Document(load_cassette(fault.text))
    if (history := aider_text(fault.text)) is not None:
        return Document(history)
    if (told := transcript(fault.text)) is not None:
        body, lost = told
        cut = (Remark("an answer that cannot be read", lost, left_out=True),) if lost else ()
        log = Remark("it is a log of an agent: read from the answers and results in it")
        return Document(body, remarks=(log, *cut))
    if (begun := _LISTED.search(fault.text)) is not None:
        remarks = [Remark("it is written as Python writes it, not as JSON")]
        if fault.text[: begun.start()].strip():
            remarks.append(Remark("what stands before its list of messages", left_out=True))
        with suppress(ValueError):  # The complaint about JSON says more.
            return Document(python_value(fault.text[begun.start() :]), remarks=tuple(remarks))
    kind = "JSON that is cut off" if fault.is_cut_off else "text that is not JSON"
    raise Unreadable(f"looks like {kind} ({fault}); {_EXPECTED}") from None


def _found(values: Iterable[Document], wanted: str, *, alone: bool = False) -> Iterator[FoundConversation]:
    """The conversations of the documents of one file. Documents without one are skipped if others have some."""
    late: list[Remark] = []
    first, refused = "", 0

    def each() -> Iterator[FoundConversation]:
        nonlocal first, refused
        for document in values if alone else _as_conversations(iter(values), wanted, late):
            try:
                yield from _read(document, wanted)
            except Unreadable as fault:
                first = first or (f"{document.where} {fault}" if document.where else str(fault))
                refused += 1
                if not document.where:
                    raise
        if refused:
            short = first.partition("; expected")[0]
            more = f", and {refused - 1} like it" if refused > 1 else ""
            late.append(Remark(f"what cannot be read ({short}{more})", refused, left_out=True))

    yield from _noted(each(), late, lambda: first or f"is empty; {_EXPECTED}")


def _as_conversations(values: Iterator[Document], wanted: str, late: list[Remark]) -> Iterator[Document]:
    """The documents that are read separately: the lines of one trace, or of one list of messages, form one."""
    first = next(values, None)
    if first is None:
        return
    late += first.remarks
    second = next(values, None)
    if second is None:
        yield first
        return
    if _is_alone(first, second, wanted):
        yield first
        late += second.remarks
        yield second
        for one in values:
            late += one.remarks
            yield one
        return
    rest, size = [first, second], first.size + second.size
    for one in values:
        size += one.size
        rest.append(one)
        refuse_too_many(len(rest), size)
    late += [remark for one in rest[1:] for remark in one.remarks]
    bodies = [one.body for one in rest]
    if wanted or detect(bodies) is not None:
        yield Document(bodies)
    else:
        yield from rest


def _is_alone(first: Document, second: Document, wanted: str) -> bool:
    """Returns whether each document of a file that begins with these two is read by itself."""
    format = BY_NAME[wanted] if wanted else detect(first.body)
    pair = [first.body, second.body]
    is_whole = first.listed and (format.detect(pair) if wanted and format else detect(pair) is not None)
    if format is None or is_whole or not format.detect(first.body):
        return False
    return not (format.detect(pair) if format.name == "vcr" else format.name in _TOGETHER)


def is_by_line(file: IO[bytes], wanted: str = "") -> bool:
    """Returns whether a file holds, unpacked, a conversation on each line, so that ``read_lines`` reads any stretch of
    it."""
    source = Source(file)
    if not source.head.lstrip().startswith(b"{"):
        return False
    try:
        found = first_lines(source)
    except Unreadable:
        return False
    return len(found) == 2 and _is_alone(found[0], found[1], wanted)


def read_lines(lines: IO[bytes], wanted: str, number: int) -> Iterator[FoundConversation]:
    """The conversations of a stretch of such a file, whose first line has this number in it. Raises Unreadable."""
    yield from _found(documents(Source(lines), number), wanted, alone=True)


def _read(document: Document, wanted: str) -> Iterator[FoundConversation]:
    """The conversations of one document. Raises Unreadable."""
    format = BY_NAME[wanted] if wanted else detect(document.body)
    if format is None:
        yield from _inside(document)
        return
    evidence = "named by --format" if wanted else format.marks
    try:
        conversations = format.read(document.body)
    except Unreadable as fault:
        raise Unreadable(f"looks like {format.title}, but {fault}") from None
    except RecursionError:
        raise Unreadable(f"looks like {format.title}, but a value in it is nested too deep") from None
    answered = [one for one in conversations if any(thread.calls for thread in one.threads)]
    if not answered:
        raise Unreadable(f"looks like {format.title}, but holds no answer of a model")
    longest = max(sum(thread.calls for thread in one.threads) for one in answered)
    if longest > MOST_CALLS:
        raise Unreadable(
            f"looks like {format.title}, but has {longest:,} calls in one conversation: "
            f"a run of more than {MOST_CALLS:,} cannot be looked at (split it)"
        )
    also = () if wanted else others_of(document.body, format)
    silent = len(conversations) - len(answered)
    for i, one in enumerate(answered, 1):
        if silent and i == len(answered):
            lost = Remark("a conversation of the file without an answer", silent, left_out=True)
            one = replace(one, remarks=(*one.remarks, lost))
        yield FoundConversation(format, one, evidence, also)


def _encoded(body: object) -> Any:
    """The value of JSON that was encoded twice, as some of Letta's agent files; None for all else. Raises
    Unreadable."""
    if not isinstance(body, str) or body[:1] not in ("{", "["):
        return None
    with suppress(ValueError):
        return loads(text_of(body.encode("utf-8", "replace")))
    return None


def _inside(document: Document) -> Iterator[FoundConversation]:
    """Yields the conversations that an export wraps: a list of documents, one under a telling name, or one under each
    name."""
    body = document.body
    if (encoded := _encoded(body)) is not None:
        yield from _read(replace(document, body=encoded), "")
        return
    inner: list[Document] = []
    if isinstance(body, list | dict):
        refuse_too_many(len(body))
    if isinstance(body, list):
        inner = [Document(one, f"[{i}]") for i, one in enumerate(body)]
    elif isinstance(body, dict):
        named = [(key, body[key]) for key in _INSIDE if isinstance(body.get(key), dict | list) and body[key]]
        inner = [Document(value, key) for key, value in named] or [Document(v, str(k)[:60]) for k, v in body.items()]
    readable = [one for one in inner if _is_readable(one.body)]
    if isinstance(body, dict) and len(readable) > 1 and any(_is_part(one.body) for one in readable):
        readable = []
    if is_response(mapping(body)) and given_of(mapping(body)) is None and {d.where for d in readable} <= _ANSWERS:
        raise Unreadable(f"looks like an answer of a model, but the file does not hold its request; {_EXPECTED}")
    if document.where.count(" in ") > 2 or not readable:
        raise Unreadable(f"looks like {looks_like(body)}; {_EXPECTED}")
    taken = {id(one.body) for one in readable}
    beside: dict[str, Any] = {}
    refused: list[Remark] = []
    last = ""
    if isinstance(body, dict):
        beside = {key: value for key, value in body.items() if id(value) not in taken}
    else:
        lost = [one for one in inner if id(one.body) not in taken]
        refused = [_lost(one.where, f"looks like {looks_like(one.body)}") for one in lost]

    def each() -> Iterator[FoundConversation]:
        nonlocal last
        for one in readable:
            try:
                place = f"{one.where} in {document.where}".rstrip()
                for found in _read(replace(one, where=place), ""):
                    whole = replace(found.conversation, kept={**beside, **found.conversation.kept})
                    yield replace(found, conversation=whole, evidence=f"in {one.where[:40]!r}: {found.evidence}")
            except Unreadable as fault:
                refused.append(_lost(one.where[:40], fault))
                last = f"{one.where[:40]} {str(fault).partition('; expected')[0]}"

    yield from _noted(each(), refused, lambda: last)


def _lost(where: str, why: object) -> Remark:
    """Names the part of a file that could not be read, by its place there."""
    return Remark(f"{where}, which {str(why).partition('; expected')[0]},", left_out=True)


def _is_part(body: Any) -> bool:
    """Returns whether a list of messages is one side of something: a prompt, or the answers to it."""
    if not isinstance(body, list) or detect(body) not in (BY_NAME["openai"], BY_NAME["anthropic"]):
        return False
    roles = {ROLES.get(string(mapping(one).get("role")).lower()) for one in body}
    return not {"user", "assistant"} <= roles


def _is_readable(body: Any, depth: int = 2) -> bool:
    """Returns whether something that can be read is there, or further inside."""
    if detect(body) is not None:
        return True
    inner = body[:1] if isinstance(body, list) else [body.get(key) for key in _INSIDE] if isinstance(body, dict) else []
    return depth > 0 and any(isinstance(one, dict | list) and _is_readable(one, depth - 1) for one in inner)
