"""The tabs of the lower pane: their names, how they are drawn, and which one is under the mouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from workbench.views.cells import Span

Tab = Literal["log", "problems", "state", "output", "events", "timeline"]

TABS: tuple[tuple[Tab, str], ...] = (
    ("log", "Log"),
    ("problems", "Problems"),
    ("state", "State"),
    ("output", "Output"),
    ("events", "Events"),
    ("timeline", "Timeline"),
)


def tab_title(current: Tab, counts: Mapping[Tab, int], alarm: str) -> tuple[Span, ...]:
    """The tabs as a title; ``alarm`` is the token of the number of problems."""
    spans: list[Span] = []
    for name, label in TABS:
        if spans:
            spans.append((" │ ", "separator"))
        spans.append((label, "tab-on" if name == current else "tab"))
        if number := counts.get(name):
            spans.append((f" {number:,}", alarm if name == "problems" else "faint"))
    return tuple(spans)


def tab_at(title: Sequence[Span], x: int) -> Tab | None:
    """The tab that is drawn at a cell of the title; None between two of them and after the last."""
    position, index = 0, 0
    for text, token in title:
        if token == "separator":
            index += 1
        elif position <= x < position + len(text):
            return TABS[index][0]
        position += len(text)
    return None
