"""The line of tabs: which runs and files are open, what each of them does, and which one is shown."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from workbench.views.cells import Span, Target, fit, flat, width_of
from workbench.views.signs import sign, status_sign

NAME, RUN = 24, 12
"""Cells that the name of a cascade and that of a run may take."""
SHOW, CLOSE = "tab:", "close-tab:"
"""Prefix of the commands of a click; the number of the tab follows, from 0."""


class TabLabel(Struct, frozen=True):
    """The texts of one tab."""

    cascade: str
    run: str = ""
    """Name of the run; empty if only a file is shown."""
    doing: str = ""
    """``held``, ``asked``, ``running`` or how the run ended; empty without a run."""
    current: bool = False
    news: bool = False
    """Whether something happened in it since it was shown last."""

    @property
    def name(self) -> str:
        """``debug_agent › c0f7``."""
        cascade = fit(self.cascade, NAME).rstrip()
        return f"{cascade} › {fit(self.run, RUN).rstrip()}" if self.run else cascade


def tab_line(labels: Sequence[TabLabel], width: int) -> tuple[Span, ...]:
    """All tabs in one line, or those around the one that is shown, with the number of the others at either end."""
    if not labels or width < 1:
        return ()
    at = next((index for index, label in enumerate(labels) if label.current), 0)
    drawn = [_tab(index, label) for index, label in enumerate(labels)]
    first, last = at, at
    while True:
        wider = [(first - 1, last)] if first else []
        wider += [(first, last + 1)] if last < len(drawn) - 1 else []
        wider.sort(key=lambda ends: abs((at - ends[0]) - (ends[1] - at)))
        fitting = next((span for span in wider if width_of(_between(drawn, *span)) <= width), None)
        if fitting is None:
            break
        first, last = fitting
    return _between(drawn, first, last)


def _between(drawn: Sequence[tuple[Span, ...]], first: int, last: int) -> tuple[Span, ...]:
    spans: list[Span] = [(Target(f" ‹{first} ", "tabs.previous"), "dim")] if first else []
    for tab in drawn[first : last + 1]:
        spans += tab
    if (after := len(drawn) - 1 - last) > 0:
        spans.append((Target(f" {after}› ", "tabs.next"), "dim"))
    return tuple(spans)


def _tab(index: int, label: TabLabel) -> tuple[Span, ...]:
    glyph, token = _sign(label.doing)
    name = Target(f" {flat(label.name)}", f"{SHOW}{index}")
    look = "tab-on" if label.current else "name" if label.news else "tab"
    return (
        ("▎" if label.current else " ", "cursor"),
        (Target(glyph, f"{SHOW}{index}"), token),
        (name, look),
        (Target(" × ", f"{CLOSE}{index}"), "faint"),
    )


def _sign(doing: str) -> Span:
    if doing == "held":
        return "‖", "held"
    if doing == "asked":
        return "?", "waiting"
    if not doing:
        return sign("pending")
    return sign("running") if doing == "running" else status_sign(doing)
