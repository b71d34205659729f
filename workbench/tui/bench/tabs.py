"""The tabs of the lower pane: their names, how they are drawn, and which one is under the mouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from workbench.views.cells import Span, width_of

Tab = Literal["log", "problems", "state", "output", "events", "timeline", "what_if", "program"]

TABS: tuple[tuple[Tab, str], ...] = (
    ("log", "Log"),
    ("problems", "Problems"),
    ("state", "State"),
    ("output", "Output"),
    ("events", "Events"),
    ("timeline", "Timeline"),
    ("what_if", "What if"),
    ("program", "Program"),
)
WATCHED: tuple[Tab, ...] = ("what_if", "program")
"""Tabs of watched programs: they have a title only where they hold something."""


def tab_title(current: Tab, counts: Mapping[Tab, int], alarm: str) -> tuple[Span, ...]:
    """The tabs as a title; ``alarm`` is the token of the number of problems."""
    spans: list[Span] = []
    for name, label in TABS:
        if name in WATCHED and name != current and name not in counts:
            continue
        if spans:
            spans.append((" │ ", "separator"))
        spans.append((label, "tab-on" if name == current else "tab"))
        if number := counts.get(name):
            spans.append((f" {number:,}", alarm if name == "problems" else "faint"))
    return tuple(spans)


def in_view(title: Sequence[Span], room: int) -> tuple[Span, ...]:
    """The title in a pane of so many cells: the first tabs give way to the current one, and ``‹`` stands for them."""
    shown: tuple[Span, ...] = tuple(title)
    before: tuple[Span, ...] = ()
    while width_of((*before, *shown)) > room and shown[0][1] != "tab-on":
        after = next((at for at, (_, token) in enumerate(shown) if token == "separator"), None)
        if after is None or not any(token == "tab-on" for _, token in shown[after:]):
            break
        shown, before = shown[after + 1 :], (("‹ ", "faint"),)
    return (*before, *shown)


def tab_at(title: Sequence[Span], x: int) -> Tab | None:
    """The tab that is drawn at a cell of the title; None between two of them and after the last."""
    position, name = 0, None
    names = {label: name for name, label in TABS}
    for text, token in title:
        name = None if token == "separator" else names.get(text, name)
        if position <= x < position + len(text):
            return name
        position += len(text)
    return None
