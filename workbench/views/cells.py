"""Rows of cells: text with a token of the visual language. Text from outside is cleaned here, before it is measured."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

from workbench.language.clean import clean

Span = tuple[str, str]
"""Text and the token that says what it means: ``("◌", "masked")``."""

Align = Literal["left", "right"]


class Target(str):
    """Text of a span that does what a key does where it is clicked."""

    command: str

    def __new__(cls, text: str, command: str) -> Target:
        made = super().__new__(cls, text)
        made.command = command
        return made


def target_at(spans: Iterable[Span], x: int) -> Target | None:
    """Returns the target of a click on a cell of a line; None if it has none."""
    at = 0
    for text, _ in spans:
        if at <= x < (at := at + cell_len(text)):
            return text if isinstance(text, Target) else None
    return None


class Row(NamedTuple):
    """One line. ``tone`` colours the whole line: ``rule``, ``held``, ``gone``, ``match`` or nothing."""

    spans: tuple[Span, ...]
    tone: str = ""

    @property
    def text(self) -> str:
        """The characters, without their tokens."""
        return "".join(text for text, _ in self.spans)


_BREAKS = re.compile(r"\s*[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+\s*")


def flat(text: str, limit: int = 2000) -> str:
    """One line of clean text: line breaks become ``⏎``, tabs a space; a longer one than ``limit`` characters is cut,
    and ends with an ellipsis."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return clean(_BREAKS.sub(" ⏎ ", text.strip()).replace("\t", " "))


def fit(text: str, width: int, align: Align = "left") -> str:
    """Flat text in exactly ``width`` cells: padded, or cut with ``…``."""
    return _fit(text[: max(64, width * 4)], width, align) if width > 0 else ""


@lru_cache(maxsize=8192)
def _fit(text: str, width: int, align: Align) -> str:
    """The same of a beginning that is long enough: a cache keeps its keys, and a message may have megabytes."""
    text = flat(text, len(text))
    length = cell_len(text)
    if length > width:
        left = f"{_cut(text, width - 1)}…"
        return left + " " * (width - cell_len(left))
    gap = " " * (width - length)
    return gap + text if align == "right" else text + gap


def fit_ends(text: str, width: int) -> str:
    """Flat text in exactly ``width`` cells; if it is too long, its beginning and its end, which tells names apart."""
    text = flat(text, max(64, width * 4))
    if cell_len(text) <= width or width < 8:
        return fit(text, width)
    start = len(text) - width // 2
    while start < len(text) and _is_inside(text, start):
        start += 1
    end = text[start:]
    begin = _whole(text, set_cell_size(text, max(0, width - 1 - cell_len(end))))
    return fit(f"{begin}…{end}", width)


_ADDED = re.compile("[\u0300-\u036f\u200d\u20d0-\u20ff\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_LETTERS_OF_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]+$")


def _is_inside(text: str, at: int) -> bool:
    """Returns whether a cut would part what a terminal draws as one: an accent from its letter, a flag, a family."""
    if text.isascii() or not 0 < at < len(text):
        return False
    if _ADDED.match(text, at) or text[at - 1] == "\u200d":
        return True
    before = _LETTERS_OF_FLAGS.search(text[:at])
    return before is not None and len(before[0]) % 2 == 1 and _LETTERS_OF_FLAGS.match(text[at]) is not None


def _whole(text: str, left: str) -> str:
    """The beginning ``left`` of a text, shorter where it would end inside of what is drawn as one."""
    if not text.startswith(left):
        return left  # It ends with a blank in place of half a wide character.
    at = len(left)
    while _is_inside(text, at):
        at -= 1
    return left[:at]


_NUMBER = re.compile(r"\d[\d,.]*$")


def _cut(text: str, width: int) -> str:
    """The text in this many cells; shorter if it would end inside a number, which would then be another number."""
    left = _whole(text, set_cell_size(text, width))
    begun = _NUMBER.search(left)
    after = text[len(left) : len(left) + 2].lstrip(",.") if text.startswith(left) else ""
    if begun is None or not after[:1].isdigit() or begun.start() == 0 or left[begun.start() - 1].isalnum():
        return left
    return left[: begun.start()]


def width_of(spans: Iterable[Span]) -> int:
    """Cells that spans take."""
    return sum(cell_len(text) for text, _ in spans)


def crop(spans: Iterable[Span], width: int) -> tuple[Span, ...]:
    """The spans, cut to ``width`` cells, with ``…`` if something is lost."""
    spans = tuple(spans)
    if width_of(spans) <= width:
        return spans
    result: list[Span] = []
    left = width - 1
    for text, token in spans:
        length = cell_len(text)
        if length > left:
            result.append((_cut(text, left), token))
            left -= cell_len(result[-1][0])
            break
        result.append((text, token))
        left -= length
    return (*result, (f"…{' ' * left}", "faint")) if width > 0 else ()


def whole_parts(spans: Iterable[Span], width: int) -> tuple[Span, ...]:
    """As many of the parts that `` · `` or two blanks divide as fit, from the first; the first of all may be cut."""
    spans = tuple(spans)
    text = "".join(part for part, _ in spans)
    whole = text
    while cell_len(text) > width and (cut := max(text.rfind(" · "), text.rfind("  "))) > 0:
        text = text[:cut].rstrip()
    if cell_len(text) > width or text == whole:
        return crop(spans, width)
    result: list[Span] = []
    left = len(text)
    for part, token in spans:
        result.append((part[:left], token))
        left -= min(left, len(part))
    return tuple(span for span in result if span[0])


def uncut_parts(spans: Iterable[Span], width: int) -> tuple[Span, ...]:
    """The same, and nothing where the first part is cut and has several words: the beginning of a sentence says
    nothing, that of a name may."""
    spans = tuple(spans)
    shown = whole_parts(spans, width)
    text = "".join(part for part, _ in shown).strip()
    return () if shown != spans and text.endswith("…") and " " in text else shown


def justify(left: Iterable[Span], right: Iterable[Span], width: int, fill: Span = (" ", "plain")) -> tuple[Span, ...]:
    """Left and right spans with the gap filled. The right gives way first, down to nothing; then the left is cut."""
    left, right = tuple(left), tuple(right)
    room = width - width_of(left) - 1
    if width_of(right) > room:
        right = ()
    left = crop(left, width)
    gap = width - width_of(left) - width_of(right)
    return (*left, (fill[0] * gap, fill[1]), *right) if gap > 0 else (*left, *right)


GAP = "   "
"""Between groups of spans on one line."""


def joined(parts: Iterable[Iterable[Span]], gap: str = GAP) -> tuple[Span, ...]:
    """Groups of spans with a gap between those that are not empty."""
    result: list[Span] = []
    for part in parts:
        group = tuple(part)
        if group and result:
            result.append((gap, "plain"))
        result += group
    return tuple(result)


def dropping(parts: Iterable[Iterable[Span]], width: int) -> tuple[Span, ...]:
    """As many leading groups as fit whole, at least one."""
    kept: list[tuple[Span, ...]] = []
    used = 0
    for part in parts:
        group = tuple(part)
        if not group:
            continue
        need = width_of(group) + (len(GAP) if kept else 0)
        if kept and used + need > width:
            break
        kept.append(group)
        used += need
    return crop(joined(kept), width)
