"""Goals 5 and 6: from a key to the last byte on the terminal, against an app of Textual that only counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median, quantiles

from bench.measure import Line, Screen, alone, workspace

KEYS = 60
FLOOR = """
from textual.app import App
from textual.widgets import Static
class Floor(App):
    BINDINGS = [("j", "count")]
    number = 0
    def compose(self):
        yield Static("floor-is-ready")
    def action_count(self):
        self.number += 1
        self.query_one(Static).update(str(self.number))
Floor().run()
"""
LIST = """
import sys
from workbench.views.cells import Row
from workbench.views.model import Rows
from workbench.tui.theming import ThemedApp
from workbench.tui.widgets.rowview import RowView
class Many(Rows):
    def __len__(self):
        return int(sys.argv[1])
    def row(self, index, width):
        text = f"{index:>9}  tool   turn {index // 3}   masked: age {index % 7} > 2   {index * 37 % 4096:>8}"
        return Row(((text, ""), ("   list-is-ready", "dim")))
class Listed(ThemedApp):
    def compose(self):
        yield RowView(Many(), id="rows")
    def on_mount(self):
        self.query_one(RowView).show()
        self.query_one(RowView).focus()
Listed().run()
"""


def latencies(code: str, ready: bytes, *arguments: str) -> list[float]:
    """Seconds from each key to the last byte of its answer."""
    with (
        workspace() as folder,
        Screen([sys.executable, "-c", code, *arguments], folder, alone(folder)) as screen,
    ):
        screen.until(ready)
        screen.settle()
        screen.key(b"j")
        return [screen.key(b"j") for _ in range(KEYS)]


def run(rounds: int = 3) -> Iterator[Line]:
    floor: list[float] = []
    few: list[float] = []
    many: list[float] = []
    for _ in range(rounds):
        floor += latencies(FLOOR, b"floor-is-ready")
        few += latencies(LIST, b"list-is-ready", "10000")
        many += latencies(LIST, b"list-is-ready", "1000000")
    middle = [median(each) * 1e3 for each in (floor, few, many)]
    high = [quantiles(each, n=20)[-1] * 1e3 for each in (floor, few)]
    yield Line("5", "key to last byte, 10,000 rows, p50, Textual floor", middle[1], middle[0], "ms", 3.0)
    yield Line("5", "the same, p95 against the floor's p50", high[1], middle[0], "ms", 12.0)
    yield Line("6", "1,000,000 rows against 10,000, p50", middle[2], middle[1], "ms", 1.2)
