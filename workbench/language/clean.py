"""Makes untrusted text safe for a terminal: no character in it moves the cursor, sets a title or reorders letters."""

from __future__ import annotations

import re
import sys
from reprlib import Repr

_REPLACED = "\ufffd"
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_INVISIBLE = (
    *(0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180E, 0x180F),
    *(*range(0x200B, 0x200E), *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0x2800, 0x3164, 0xFEFF, 0xFFA0),
    *(*range(0xFE00, 0xFE0E), *range(0xFFF0, 0xFFFC), *range(0x13430, 0x13440), *range(0x1BCA0, 0x1BCA4)),
    *(*range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
)
"""Characters without width or ink, which can hide words from a reader: all that Unicode lists as
Default_Ignorable_Code_Point (DerivedCoreProperties.txt, 16.0), those not yet given out included, and controls of
layout. Left out are the two variation selectors that choose between the text form and the picture of an emoji."""
_TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
"""Tag characters repeat ASCII without being seen: they are shown as the letters that a model reads in them."""
_SEPARATORS = (0x2028, 0x2029)
_TABLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "\u2421",
    **dict.fromkeys((*range(128, 160), *_BIDI, *_INVISIBLE, *_SEPARATORS), _REPLACED),
    **dict.fromkeys(range(55296, 57344), _REPLACED),
    **_TAGS,
}
_PICTURES = "\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff"
_JOINED = re.compile(f"[{_PICTURES}]\u200d[{_PICTURES}]")
"""Between two pictures a joiner makes one of them: a family, a flag, a trade."""
_UNSAFE = (
    re.compile(f"[{''.join(re.escape(chr(code)) for code in _TABLE if code <= 0xFFFF)}]"),
    re.compile("[\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"),
)
"""Two classes, because one over both planes takes forty times as long to look through a text."""
_LINE_BREAKS = {0x0A: "\u240a", 0x09: "\u2409"}
_MARK = "\u2026"


def clean(text: str) -> str:
    """A text in which every character can be seen and none acts; as long as the one given.

    Control characters become their pictures, tag characters the letters that they stand for; C1, direction controls,
    characters without width, line separators and lone surrogates U+FFFD. Tabs and newlines stay.
    """
    if text.isascii() and text.isprintable():
        return text  # Most lines: to look for each class takes four to eight times as long.
    for unsafe in _UNSAFE:
        if unsafe.search(text):
            text = unsafe.sub(_seen, text)
    return text


def _seen(found: re.Match[str]) -> str:
    character, start = found[0], found.start()
    joins = character == "\u200d" and start and _JOINED.match(found.string, start - 1)
    return character if joins else _TABLE[ord(character)]


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
