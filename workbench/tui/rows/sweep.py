"""A sweep as rows: a strategy each, with tokens and cost relative to snowball and the front marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap

from rich.cells import cell_len

from workbench.engine.sweep import Spread, Sweep, Tried
from workbench.tui.rows.cells import Row, Span, crop, fit, flat
from workbench.tui.rows.model import Rows
from workbench.tui.rows.numbers import count, plural
from workbench.tui.rows.plot import scatter
from workbench.tui.rows.signs import sign
from workbench.tui.rows.sweep_words import LEGEND, X_TITLE, Y_TITLE, fallback_lines, marks, median, points
from workbench.tui.rows.text import DrawnRows, Line, drawn_line

SHARES, MORE = 4 + 9 + 9, 10 + 9
"""Cells of the mark and the shares, and of the columns that a narrow list leaves out."""
NARROW = 56
"""Cells below which a list is narrow."""
BAR = 30
"""Cells of a bar at most."""
SAME = 0.005
"""Below it a share is shown as no difference."""


class SweepRows(Rows):
    """The strategies tried so far, in the order in which they were given."""

    empty = ("Nothing is tried yet.",)

    def __init__(self, sweep: Sweep, name: str, of: int, *, is_over: bool, tick: int = 0) -> None:
        self.sweep = sweep
        self._marks = marks(sweep)
        done = f"{len(sweep.rows)} of {plural(of, 'strategy')}"
        state: Span = (f"  {done} tried", "dim") if is_over else (f"  trying {done} ", "running")
        self.title = (("Sweep", "title"), (f"  {flat(name)}", "name"), state)
        if not is_over:
            self.title = (*self.title, sign("running", tick))
        self.title_right = (("★", "ok"), (" none sends less for less", "dim"))
        if sweep.skipped:
            self.empty = ("Nothing was sent inside a turn of this run: there is nothing to try.",)

    def __len__(self) -> int:
        return len(self.sweep.rows)

    def heads(self, width: int) -> Sequence[Row]:
        room, bar = self._widths(width)
        parts = (fit(name, 9, "right") + " " * bar for name in ("tokens", "cost"))
        text = f"    {fit('strategy', room)}{''.join(parts)}"
        if width >= NARROW:
            text += f"{fit('peak', 10, 'right')}{fit('invalid', 9, 'right')}"
        return (Row(crop(((text, "head"),), width)),)

    def _widths(self, width: int) -> tuple[int, int]:
        """Cells of the name and of each bar; no bar where it would say nothing."""
        names = max((cell_len(_named(tried)) for tried in self.sweep.rows), default=0)
        left = width - 1 - SHARES - (MORE if width >= NARROW else 0)
        room = max(12, min(names, left))
        bar = min(BAR, (left - room) // 2)
        return room, bar if bar >= 8 else 0

    def row(self, index: int, width: int) -> Row:
        tried, mark = self.sweep.rows[index], self._marks[index]
        room, bar = self._widths(width)
        token = "error" if tried.invalid else "bold" if tried.on_front else "plain"
        spans: list[Span] = [
            (" ", "plain"),
            sign("winner") if tried.on_front else (" ", "plain"),
            (f"{mark} ", "dim"),
            (fit(_named(tried), room), token),
            *self._share(lambda one: one.tokens, tried, bar),
            *self._share(lambda one: one.cost, tried, bar),
        ]
        if width >= NARROW:
            invalid = (fit(f"{tried.invalid:,}", 9, "right"), "error" if tried.invalid else "faint")
            spans += [(fit(count(tried.peak), 10, "right"), "dim"), invalid]
        return Row(crop(spans, width))

    def _share(self, of: Callable[[Tried], Spread | None], tried: Tried, bar: int) -> list[Span]:
        """A number and its bar; the longest of the column takes all the room."""
        spread = of(tried)
        value = 1.0 if spread is None else spread.median
        token = "plain" if abs(value - 1) < SAME else "ok" if value < 1 else "warning"
        number: Span = (fit(median(spread), 9, "right"), token)
        if not bar:
            return [number]
        most = max((found.median for one in self.sweep.rows if (found := of(one)) is not None), default=1.0) or 1.0
        halves = 0 if spread is None else round(value / most * (bar - 2) * 2)
        drawn = "━" * (halves // 2) + "╸" * (halves % 2)
        return [number, (" " + drawn.ljust(bar - 1), "dim" if token == "plain" else token)]

    def plot(self, height: Callable[[], int]) -> DrawnRows:
        """Tokens against cost, as wide as there is room, in a screen of so many lines."""
        found, said = points(self.sweep), list(fallback_lines(self.sweep))

        def draw(room: int) -> list[Line]:
            drawn = scatter(found, X_TITLE, Y_TITLE, room, max(6, height() - 7 - len(said)))
            none = [Line("No price is known: there is no cost to draw against.", "dim")]
            notes = (Line(part, "masked") for one in said for part in wrap(one, max(20, room)))
            return [*(map(drawn_line, drawn) if found else none), Line(LEGEND, "dim"), *notes]

        return DrawnRows(draw, (("Plot", "title"), ("  tokens against cost", "name")))


def _named(tried: Tried) -> str:
    meant = "" if tried.spec in ("", tried.label) else f": {tried.spec}"
    return f"{tried.label}{meant}"
