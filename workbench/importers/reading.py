"""Bytes of a file in, conversations out: JSON, JSON lines, and the zip that Inspect writes."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

from workbench.importers.conversation import Conversation, Unreadable
from workbench.importers.formats import BY_NAME, FORMATS, Format, detect, looks_like
from workbench.importers.values import loads

MAX_BYTES = 512 * 1024 * 1024
"""Of a file, and of what a zip unpacks to."""

_ZSTD = 93
_SAMPLE = re.compile(r"samples/[^/]+\.json")
_EXPECTED = "expected one of: " + ", ".join(format.title for format in FORMATS)


def read_file(data: bytes, wanted: str = "") -> list[tuple[Format, Conversation]]:
    """The conversations in a file, each with the format it was read as.

    ``wanted``: the name of a format to read it as, whatever it looks like. Raises Unreadable.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable(f"it is larger than {MAX_BYTES // 2**20} MB")
    bodies = [_zipped(data)] if data[:2] == b"PK" else _parsed(data)
    found: list[tuple[Format, Conversation]] = []
    for body in bodies:
        format = BY_NAME[wanted] if wanted else detect(body)
        if format is None:
            raise Unreadable(f"looks like {looks_like(body)}; {_EXPECTED}")
        try:
            found += [(format, one) for one in format.read(body)]
        except Unreadable as fault:
            raise Unreadable(f"looks like {format.title}, but {fault}") from None
    kept = [(format, one) for format, one in found if any(thread.calls for thread in one.threads)]
    if not kept:
        titles = ", ".join(dict.fromkeys(format.title for format, _ in found))
        raise Unreadable(f"looks like {titles or 'nothing'}, but holds no answer of a model")
    return kept


def _parsed(data: bytes) -> Sequence[Any]:
    """The JSON values of a file: one, or one a line."""
    if data.startswith(b"SQLite format 3"):
        raise Unreadable(f"looks like an SQLite database; {_EXPECTED}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise Unreadable(f"looks like binary data (byte {fault.start} is not UTF-8); {_EXPECTED}") from None
    if not text.strip():
        raise Unreadable(f"is empty; {_EXPECTED}")
    try:
        return [loads(text)]
    except ValueError as fault:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            values = [loads(line) for line in lines]
        except ValueError:
            raise Unreadable(f"{_not_json(text, fault)}; {_EXPECTED}") from None
    if len(values) > 1 and detect(values[0]) is None and detect(values) is not None:
        return [values]
    spans = [value for value in values if detect(value) in (BY_NAME["otel"], BY_NAME["openinference"])]
    return [values] if spans else values


def _not_json(text: str, fault: ValueError) -> str:
    if text.startswith("interactions:"):
        return "looks like a recording of HTTP requests (VCR)"
    return f"looks like text that is no JSON ({fault})"


def _zipped(data: bytes) -> dict[str, Any]:
    """An ``.eval`` file as the JSON log that it stands for."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {info.filename: info for info in archive.infolist()}
            names = [name for name in sorted(members) if _SAMPLE.fullmatch(name)]
            head = members.get("header.json") or members.get("_journal/start.json")
            if head is None:
                raise Unreadable(f"looks like a zip file that is no Inspect log; {_EXPECTED}")
            if sum(members[name].file_size for name in names) + head.file_size > MAX_BYTES:
                raise Unreadable(f"unpacks to more than {MAX_BYTES // 2**20} MB")
            header = loads(_member(archive, data, head).decode("utf-8"))
            samples = [loads(_member(archive, data, members[name]).decode("utf-8")) for name in names]
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, struct.error, NotImplementedError) as fault:
        raise Unreadable(f"looks like an Inspect log (zip), but cannot be unpacked: {fault}") from None
    if not isinstance(header, dict):
        raise Unreadable("looks like an Inspect log (zip), but its header is no object")
    return {"eval": {}, **header, "samples": samples}


def _member(archive: zipfile.ZipFile, data: bytes, info: zipfile.ZipInfo) -> bytes:
    """A file of the zip. Raises what zipfile and pyarrow raise for damaged data, all caught above."""
    if info.compress_type != _ZSTD:
        with archive.open(info) as file:
            return file.read(info.file_size + 1)
    import pyarrow

    # zipfile knows no Zstandard here; a local header is 30 bytes, then name and extra field by their lengths.
    name, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
    start = info.header_offset + 30 + name + extra
    packed = pyarrow.BufferReader(data[start : start + info.compress_size])
    with pyarrow.CompressedInputStream(packed, "zstd") as stream:
        raw: bytes = stream.read(info.file_size + 1)
    if zlib.crc32(raw) != info.CRC:
        raise zipfile.BadZipFile(f"{info.filename} is damaged")
    return raw
