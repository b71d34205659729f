"""Lines of panes that change all the time: what was drawn is forgotten soon."""

from __future__ import annotations

import gc
import tracemalloc

from textual.app import ComposeResult

from workbench.tui.theming import ThemedApp
from workbench.tui.widgets.lineview import LineView, ScreenLine
from workbench.views.cells import Row, fit

DRAWN = 750
MOST_KEPT = 4_000_000
"""Bytes. Cells that were cut to a width take 2 MB of it; the lines, of ten spans, would take 4 MB more."""


class Numbers(LineView):
    """A pane that shows a list from a line on."""

    first = 0

    def line(self, y: int) -> ScreenLine:
        number = self.first + y
        return ScreenLine(Row(tuple((fit(f"{number} {part}", 7), "dim" if part % 2 else "head") for part in range(10))))

    def line_text(self, number: int) -> str:
        return ""


class Panes(ThemedApp):
    """An app of one such pane."""

    def compose(self) -> ComposeResult:
        yield Numbers(id="numbers")


async def test_a_pane_forgets_lines_that_are_gone() -> None:
    app = Panes()
    async with app.run_test(size=(80, 24)):
        pane = app.query_one(Numbers)
        for _ in range(200):  # What Textual and rich remember of styles is full then.
            _show_the_next(pane)
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(DRAWN):
                _show_the_next(pane)
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert kept < MOST_KEPT


def _show_the_next(pane: Numbers) -> None:
    pane.first += 1
    strip = pane.render_line(pane.size.height - 1)
    assert strip.text.startswith(str(pane.first + pane.size.height - 1))


def test_cells_of_long_texts_do_not_keep_the_texts() -> None:
    tracemalloc.start()
    try:
        for number in range(30):
            assert fit(f"{number:02} " + "x" * 1_000_000, 12) == f"{number:02} xxxxxxxx…"
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
