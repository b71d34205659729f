"""A pane of rows as text: legible in one width, and a mark of all else that it gives, which changes with any of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.support.stored import check_stored
from workbench.views.cells import Row, Span
from workbench.views.model import Rows

WIDTHS = (36, 64, 130)
"""Widths that are told by a mark."""
NEEDLES = ("a", "the", "☃")
MOST = 6
"""Rows that are told word by word; a mark stands for the others, too."""


def check_panes(folder: Path, name: str, panes: Iterable[tuple[str, Rows | list[str]]]) -> None:
    """Panes, or lines in the place of one, each below what it shows, are those of a stored file."""
    lines: list[str] = []
    for told, rows in panes:
        lines += [f"== {told}", *(rows if isinstance(rows, list) else pane(rows)), ""]
    check_stored(folder / f"{name}.txt", "\n".join(lines))


def pane(rows: Rows, width: int = 88, *, most: int = MOST) -> list[str]:
    """Title, fixed lines and the first rows in this width; then marks of all rows with their colours in this
    and other widths, also of those that are shown whole, of what a search finds and of what a copy takes."""
    rows.lay_out(width)
    title, right = text_of(rows.title), text_of(rows.title_right)
    lines = [f"[{title}] {right}".rstrip(), *(f"| {row.text}".rstrip() for row in rows.heads(width))]
    lines += [rows.row(index, width).text.rstrip() for index in range(min(most, len(rows)))]
    if not len(rows):
        lines += rows.empty
    if len(rows) > most:
        lines.append(f"… {len(rows)} rows")
    marks = []
    for other in (width, *WIDTHS):
        rows.lay_out(other)
        whole = [repr(rows.whole(index, other)) for index in range(len(rows))]
        marks.append(f"{other} {mark([*_coloured(rows, other), *whole])}")
    found = [[*rows.kept(needle), *rows.places(needle)] for needle in NEEDLES] if len(rows) else []
    steps = [rows.find(needle, start, step) for needle in NEEDLES for start in (0, 1) for step in (1, -1) if len(rows)]
    plain = [rows.plain(index) for index in range(len(rows))]
    facts = [str(getattr(rows, name, "")) for name in ("copy", "focus", "wanted_width", "spreads")]
    return [*lines, f"({', '.join(marks)}, search {mark([*plain, repr(found), repr(steps), *facts])})"]


def _coloured(rows: Rows, width: int) -> list[str]:
    drawn: list[Row] = [*rows.heads(width), *(rows.row(index, width) for index in range(len(rows)))]
    return [repr((row.spans, row.tone)) for row in drawn] + [repr((rows.title, rows.title_right))]


def text_of(spans: Sequence[Span]) -> str:
    return "".join(text for text, _ in spans)


def mark(texts: Sequence[str]) -> str:
    """Six digits that stand for texts."""
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:6]
