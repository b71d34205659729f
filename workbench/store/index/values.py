"""Values on their way into the engine: the one encoder for parameters, and text that its readers accept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Value = str | int | float | bool | None | Sequence["Value"]
"""The types of a ``{name:Type}`` parameter; sequences for arrays."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\b": "\\b", "\f": "\\f"}
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encoder = msgspec.json.Encoder()
_SPECIAL = re.compile(r"[\\\n\t\r\0\b\f]")


def whole_text(text: str) -> str:
    """The text with U+FFFD for lone surrogates, one of which would make the engine refuse a whole batch."""
    return _SURROGATE.sub("\ufffd", text)


def parameters(values: Mapping[str, Value]) -> dict[str, str]:
    """Parameters as the engine reads them: in the escaped form of its tab-separated format."""
    return {name: parameter(value) for name, value in values.items()}


def parameter(value: Value) -> str:
    """One parameter. None is NULL, never the word."""
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return _escaped(value)
    return _plain(value)


def _plain(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return "'" + _escaped(value).replace("'", "\\'") + "'"
    if value is None:
        return "NULL"
    return "[" + ",".join(_plain(item) for item in value) + "]"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], whole_text(text))


ROWS = "JSONCompactEachRow"
"""The engine's name for what ``json_rows`` gives: named columns would be half of it."""


def json_rows(rows: Sequence[Any]) -> bytes:
    """Rows (sequences, or structures that are encoded as arrays) as arrays of values, one in each line."""
    try:
        return _encoder.encode_lines(rows)
    except UnicodeEncodeError:  # Lone surrogates.
        return whole_text("".join(f"{_encode(row)}\n" for row in msgspec.to_builtins(rows))).encode("utf-8")
