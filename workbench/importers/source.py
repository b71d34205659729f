"""Decodes a file before its format is known: removes compression, finds JSON values."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import IO, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from workbench.importers.conversation import Remark, Unreadable
from workbench.importers.values import DECODER, loads

# A JSON list that is too long to be held whole: its items, one at a time.

_PIECE = 4 * 1024 * 1024
"""Bytes that are read at once, at least: as much again as there is of an item that is not whole yet."""
_BETWEEN_ITEMS = re.compile(r"[\s,]*")
_UNFINISHED = ("", ".", "e", "E")
"""What stands behind a number that was cut off."""
_NEAR = 4096
"""Characters before the end of the text read so far: a fault there may be caused by the cut, an earlier one is real."""


def items_of(start: bytes, stream: IO[bytes], most: int) -> Iterator[tuple[Any, int]]:
    """The items of a UTF-8 list that begins with ``start`` and goes on in the stream, each with its characters.

    ``most``: of one item. Raises Unreadable, also behind the first items.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    text = _decoded(decoder, start)
    del start
    at, number = text.index("[") + 1, 0
    while True:
        at = _after_gap(text, at)
        if text[at : at + 1] == "]":
            break
        try:
            value, end = DECODER.raw_decode(text, at)
            # A number at the end may go on, also behind its point or its exponent.
            if text[end : end + 1] not in _UNFINISHED or isinstance(value, dict | list):
                yield value, end - at
                at, number = end, number + 1
                continue
            fault = ValueError("it is cut off")
        except RecursionError:
            raise Unreadable(f"looks like a list, but item [{number}] is nested too deep") from None
        except ValueError as found:
            fault = found
        begun, size = "Unterminated string" in str(fault), len(text) - at
        if size > most:
            raise Unreadable(f"looks like a list, but item [{number}] is larger than {most // 2**20} MB")
        piece = stream.read(min(max(_PIECE, size), most + 1 - size))
        if not piece or (not begun and getattr(fault, "pos", len(text)) < len(text) - _NEAR):
            raise Unreadable(f"looks like a list, but item [{number}] is not JSON ({_words(fault)})")
        text, at = text[at:] + _decoded(decoder, piece), 0
    if text[at + 1 :].strip() or stream.read(_PIECE).strip():
        raise Unreadable(f"looks like a list, but something stands behind its {number} items")


def _words(fault: ValueError) -> str:
    """The parser's message without its position, which counts from the start of a piece of the file."""
    return str(getattr(fault, "msg", fault))


def _after_gap(text: str, at: int) -> int:
    match = _BETWEEN_ITEMS.match(text, at)
    return match.end() if match else at


def _decoded(decoder: codecs.IncrementalDecoder, data: bytes) -> str:
    try:
        return decoder.decode(data)
    except UnicodeDecodeError:
        raise Unreadable("looks like a list, but holds bytes that are not UTF-8") from None


MAX_BYTES = 512 * 1024 * 1024
"""Of a file that is no JSON."""
MAX_VALUE = 256 * 1024 * 1024
"""Of one JSON value, which takes some three times as much memory while it is read."""
MAX_PARTS = 10_000_000
"""Commas and opening brackets of one JSON value: each empty list in it takes some 64 bytes."""
MOST_TOGETHER = 1_000_000
"""Values that are held at once beside one another: each takes some 200 bytes with its place, however short it is."""
WHOLE = 32 * 1024 * 1024
"""Up to this size a list is read whole; the items of a longer one are read one at a time."""
MAX_STREAM = 16 * MAX_BYTES
"""Limit of all lines of a file, unpacked; beyond it the file counts as a decompression bomb."""

_TOO_LARGE = (
    f"is one value of more than {MAX_VALUE // 2**20} MB, but only JSON lines and lists of conversations are read one "
    "at a time ({advice})"
)
_ADVICE = "write one conversation a line"
_INSPECT = "of an Inspect log, the .eval form is read sample by sample: inspect log convert --to eval"

_HEAD = 64 * 1024
_ROWS = 64
_BLANK = b" \t\r\n\x1e\xef\xbb\xbf"
_RECORD = "\x1e"
"""Stands before each value of a JSON text sequence (RFC 7464)."""
_GAP = re.compile(r"[\s,\x1e\ufeff]*")
"""Between values that stand behind one another: white space, a comma, or the separator of JSON text sequences."""
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[\]}])', re.DOTALL)
"""The last quote is optional: else a text that is cut off would be looked for anew from each quote inside it."""
_FAULTS = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)


class Document(Struct, frozen=True):
    """One JSON value, or the text of a file without any."""

    body: Any
    where: str = ""
    """Its line, or its number, if there are several."""
    remarks: tuple[Remark, ...] = ()
    """The faults that had to be mended to read it."""
    size: int = 0
    """Its characters, or bytes, where it is read one at a time."""
    listed: bool = False
    """Whether it is an item of a list that is read one at a time."""


class Source:
    """A readable file, and its first bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = io.BufferedReader(_Raw(stream), _HEAD)
        self.head = self.stream.peek(_HEAD)[:_HEAD]


class _Raw(io.RawIOBase):
    """Gives a stream ``readinto``, and faults of unpacking their one name."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inner.read(len(buffer))
        except _FAULTS as fault:
            raise Unreadable(f"is compressed, and cannot be unpacked: {fault}") from None
        buffer[: len(data)] = data
        return len(data)


def unpacked(stream: IO[bytes]) -> Source:
    """The file without its compression, up to three layers of it. Raises Unreadable."""
    source = Source(stream)
    for _ in range(3):
        opened = _decompressed(source)
        if opened is None:
            break
        source = Source(opened)
    return source


def _decompressed(source: Source) -> IO[bytes] | None:
    stream, head = source.stream, source.head
    if head.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    if head.startswith(b"BZh") and head[3:4].isdigit():
        return cast("IO[bytes]", bz2.BZ2File(stream))
    if head.startswith(b"\xfd7zXZ\x00"):
        return cast("IO[bytes]", lzma.LZMAFile(stream))
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        pyarrow = arrow()
        return cast("IO[bytes]", pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), "zstd"))
    return None


def arrow() -> Any:
    """pyarrow with its reader of Parquet."""
    # It takes 160 ms to import, and few files need it.
    import pyarrow.parquet

    return pyarrow


def rows(source: Source) -> Iterator[Document]:
    """The rows of a Parquet file, in batches of a few. Raises Unreadable."""
    pyarrow = arrow()
    parquet = pyarrow.parquet
    data = source.stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Unreadable(f"it is larger than {MAX_BYTES // 2**20} MB")
    number = 0
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(data))
        # Texts stay in their dictionaries: one that stands in many rows takes its room once.
        columns = [file.schema.column(index) for index in range(len(file.schema))]
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        chunks = (group.column(index).total_uncompressed_size for group in groups for index in range(group.num_columns))
        if any(size > MAX_BYTES for size in chunks):
            raise Unreadable(f"a column of it unpacks to more than {MAX_BYTES // 2**20} MB")
        file = parquet.ParquetFile(pyarrow.BufferReader(data), read_dictionary=texts)
        for batch in file.iter_batches(_ROWS):
            for index in range(batch.num_rows):
                number += 1
                (row,) = batch.slice(index, 1).to_pylist()
                yield Document(_plain(row), f"row {number}")
    except (pyarrow.ArrowException, OSError, ValueError) as fault:
        raise Unreadable(f"looks like a Parquet file, but cannot be read: {str(fault)[:200]}") from None


def _plain(value: Any) -> Any:
    """A cell as JSON has it: times as text, and columns of a struct that a row leaves empty left out."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def documents(source: Source, first_line: int = 1) -> Iterator[Document]:
    """The JSON values of a file: one, one a line, or several behind one another. Lines are read one at a time.

    A last line that was cut off is left out, which the value before it notes. Raises Unreadable.
    """
    encoding = json.detect_encoding(source.head)
    if encoding not in ("utf-8", "utf-8-sig"):
        text = text_of(source.stream.read(MAX_VALUE + 1), encoding)
        source = Source(io.BytesIO(text.encode("utf-8", "surrogatepass")))
    if source.head.lstrip(_BLANK).startswith(b"["):
        start = source.stream.read(WHOLE + 1)
        if len(start) > WHOLE and not _is_lines(start):
            for number, (item, size) in enumerate(items_of(start, source.stream, MAX_VALUE)):
                yield Document(item, f"[{number}]", size=size, listed=True)
            return
        source = Source(cast("IO[bytes]", _PrefixedStream(start, source.stream)))
        del start
    lines = _numbered(source, first_line)
    number, first = next(lines, (0, b""))
    if not first:
        raise Unreadable("is empty")
    text = text_of(first).lstrip(_RECORD)
    del first  # A document of one line is as large as the file: its bytes, its text and its values are never all held.
    value = _value(text)
    if value is None:
        yield from _values(text + text_of(source.stream.read(MAX_VALUE + 1)))
    else:
        size = len(text)
        del text
        yield from _lines(value, number, size, lines)


def first_lines(source: Source) -> list[Document]:
    """The values of the first two lines that are not blank, where each is one by itself; else fewer."""
    if json.detect_encoding(source.head) not in ("utf-8", "utf-8-sig"):
        return []
    found = ((number, _value(text_of(line).lstrip(_RECORD))) for number, line in islice(_numbered(source, 1), 2))
    return [Document(value, f"line {number}") for number, value in found if value is not None]


class _PrefixedStream:
    """Bytes that were read already, and the stream that they come from."""

    def __init__(self, start: bytes, stream: IO[bytes]) -> None:
        self._start = io.BytesIO(start)
        self._stream = stream

    def read(self, size: int) -> bytes:
        return self._start.read(size) or self._stream.read(size)


def _is_lines(start: bytes) -> bool:
    """Returns whether the first line is a list of its own, and not the beginning of one."""
    line, end, _ = start.partition(b"\n")
    return bool(end) and _value(text_of(line)) is not None


def _value(text: str) -> Any:
    """The object or list that a line holds; None if it holds none."""
    try:
        return loads(text) if text[(at := _after(text, 0)) : at + 1] in ("{", "[") else None
    except ValueError:
        return None


def _numbered(source: Source, first_line: int) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    number, total = first_line - 1, 0
    while line := source.stream.readline(MAX_VALUE + 1):
        number += 1
        total += len(line)
        if len(line) > MAX_VALUE:
            raise too_large(line)
        if total > MAX_STREAM:
            raise Unreadable(f"is larger than {MAX_STREAM // 2**30} GB")
        if line.strip(_BLANK):
            yield number, line


def _lines(value: Any, number: int, size: int, lines: Iterator[tuple[int, bytes]]) -> Iterator[Document]:
    """The values of lines; each is held back until it is known whether the last line behind it was cut off."""
    ahead = next(lines, None)
    held = Document(value, f"line {number}" if ahead else "", size=size)
    while ahead is not None:
        (number, line), ahead = ahead, next(lines, None)
        try:
            value = loads(text_of(line).lstrip(_RECORD).rstrip().rstrip(","))
        except ValueError as fault:
            if ahead is not None:
                raise Unreadable(f"looks like JSON lines, but line {number} is not JSON ({fault})") from None
            lost = Remark(f"the last line ({number}), which is not a whole JSON value,", left_out=True)
            yield replace(held, remarks=(lost,))
            return
        yield held
        held = Document(value, f"line {number}", size=len(line))
    yield held


def _values(text: str) -> Iterator[Document]:
    """The values of a text that is not one a line."""
    try:
        values = list(_behind_one_another(text))
    except ValueError as fault:
        reason = fault
    else:
        del text  # As large as the file, and not needed while its values are looked at.
        yield from values
        return
    mended = _COMMA.sub(lambda match: match[1] or "", text)
    remarks = (Remark("commas before a closing bracket are read over"),)
    if len(mended) == len(text):
        raise NotJson(text, reason)
    try:
        found = list(_behind_one_another(mended))
    except ValueError:
        raise NotJson(text, reason) from None
    yield from (Document(one.body, one.where, remarks) for one in found)


def _behind_one_another(text: str) -> Iterator[Document]:
    at, number = _after(text, 0), 0
    values: list[Any] = []
    while at < len(text):
        try:
            value, at = DECODER.raw_decode(text, at)
        except RecursionError:
            raise ValueError("nested too deep") from None
        values.append(value)
        refuse_too_many(len(values))
        at = _after(text, at)
    for number, value in enumerate(values, 1):
        yield Document(value, f"value {number}" if len(values) > 1 else "")


def _after(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


class NotJson(Exception):
    """A text that is no JSON, with what the parser said of it."""

    def __init__(self, text: str, fault: ValueError) -> None:
        super().__init__(str(fault))
        self.text = text
        self.fault = fault

    @property
    def is_cut_off(self) -> bool:
        """Whether it looks like JSON that ends too early."""
        at = getattr(self.fault, "pos", 0)
        open_text = "Unterminated string" in str(self.fault)
        return self.text.lstrip()[:1] in ("{", "[") and (open_text or at >= len(self.text.rstrip()) - 1)


def too_large(start: bytes = b"") -> Unreadable:
    """Returns why a value is not read that begins so, and what to do about it."""
    return Unreadable(_TOO_LARGE.format(advice=_INSPECT if b'"eval"' in start[:_HEAD] else _ADVICE))


def refuse_too_many(values: int, size: int = 0) -> None:
    """``size``: of all of them, in characters. Raises Unreadable for more than can be held together."""
    most = f"{MOST_TOGETHER:,} values" if values > MOST_TOGETHER else f"{MAX_VALUE // 2**20} MB"
    if values > MOST_TOGETHER or size > MAX_VALUE:
        raise Unreadable(
            f"holds more than {most} that would have to be held together, but only JSON lines and lists of "
            f"conversations are read one at a time ({_ADVICE})"
        )


def text_of(data: bytes, encoding: str = "utf-8-sig") -> str:
    """The text of one JSON value. Raises Unreadable if it is too large to be parsed, or no text."""
    if len(data) > MAX_VALUE:
        raise too_large(data)
    if len(data) > MAX_PARTS and sum(map(data.count, (b"[", b"{", b","))) > MAX_PARTS:
        raise Unreadable(
            f"holds more than {MAX_PARTS:,} values in one, which takes more memory than a recording can need"
        )
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as fault:
        name = "UTF-8" if encoding == "utf-8-sig" else encoding.upper()
        raise Unreadable(f"looks like binary data (byte {fault.start} is not {name})") from None
