"""Makes untrusted text safe for a terminal: nothing left in it moves the cursor, sets a title or reorders letters."""

from __future__ import annotations

import re
import sys
from reprlib import Repr

_REPLACED = "\ufffd"
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_TABLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "\u2421",
    **dict.fromkeys((*range(128, 160), *_BIDI), _REPLACED),
    **dict.fromkeys(range(55296, 57344), _REPLACED),
}
_UNSAFE = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
_LINE_BREAKS = {0x0A: "\u240a", 0x09: "\u2409", 0x2028: _REPLACED, 0x2029: _REPLACED}
_MARK = "\u2026"


def clean(text: str) -> str:
    """Control characters become their pictures, C1, direction controls and lone surrogates U+FFFD.

    Tabs and newlines stay. What needs no change is returned as it is.
    """
    return text.translate(_TABLE) if _UNSAFE.search(text) else text


def clean_line(text: str, limit: int = sys.maxsize) -> str:
    """The same on one line: newlines and tabs become pictures too. Longer than ``limit`` is cut and marked."""
    if len(text) > limit:
        text = text[: limit - 1] + _MARK
    return clean(text).translate(_LINE_BREAKS)


def shown(value: object) -> str:
    """A value of a file as a message shows it: clean, and short though a few lines can stand for one without end."""
    short = Repr()
    short.maxlevel = 2
    short.maxstring = short.maxother = 80
    return clean(short.repr(value))
