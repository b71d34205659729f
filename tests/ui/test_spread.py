"""Sentences in lists: what one line cuts goes on below it where there is room, and still is one row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.ui.bench import bench
from tests.ui.snapshot import FOLDER
from tests.ui.support import triage_story
from workbench.language.problem import Problem, Severity, TextSpan
from workbench.store.catalog import Member
from workbench.store.summary import EXCERPT, RunSummary
from workbench.tui.widgets.rowview import Spread
from workbench.views.cells import Row
from workbench.views.model import Rows
from workbench.views.problems import ProblemRows
from workbench.views.runs import RunRows
from workbench.workspace.runs_poller import Listing, RunsRequest

BESIDE_DIALOG = 8
"""Cells that a dialog leaves of a pane behind it at most."""
TABLES = ("runs", "candidates", "delete", "export", "batch", "home")
"""Beginnings of the names of stored screens with tables."""
BAND = 5
"""Cells that are free in all rows of a table, the head included, from which on one of its columns could be wider: the
gap between two columns takes some, and what stands to the right in its own column."""
BROKEN = """\
cascade_id: broken
phases:
  - name: write
    instructions: Write.
    tackle: [smart, clever, bright, witty, quick]
    handoffs: [revew]
"""


class Sizes(Rows):
    """Rows that need so many lines each."""

    def __init__(self, sizes: list[int], *, spreads: bool, told_beside: bool = False) -> None:
        self.sizes = sizes
        self.spreads = spreads
        self.told_beside = told_beside

    def __len__(self) -> int:
        return len(self.sizes)

    def row(self, index: int, width: int) -> Row:
        return Row(((f"{index}.0", "plain"),))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        return tuple(Row(((f"{index}.{part}", "plain"),)) for part in range(self.sizes[index]))


@given(
    st.lists(st.integers(1, 5) | st.integers(6, 40), max_size=12),
    st.integers(1, 30),
    st.integers(-1, 11),
    st.booleans(),
    st.booleans(),
)
def test_every_line_belongs_to_one_row_and_no_row_is_cut_beside_free_lines(
    sizes: list[int], page: int, selected: int, spreads: bool, told_beside: bool
) -> None:
    rows = Sizes(sizes, spreads=spreads, told_beside=told_beside)
    spread = Spread(rows, 80, page, selected)
    found = [spread.at(line) for line in range(len(spread))]
    shown = [(row or rows.row(at, 80)).text.rstrip("…") for at, row in found]
    assert shown == [f"{at}.{part}" for at in range(len(sizes)) for part in range(len(spread.lines_of(at)))], (
        "a line is missing or stands elsewhere"
    )
    if spreads and sum(sizes) <= page:
        assert len(spread) == sum(sizes)
    elif 0 <= selected < len(sizes) and sizes[selected] <= (page - len(sizes) + 1 if told_beside else page):
        assert len(spread.lines_of(selected)) == sizes[selected]
    if told_beside:
        assert len(spread) <= max(page, len(sizes)), "a row in several lines hides another one"
    if spreads and len(sizes) <= page:
        free = page - len(spread)
        assert free >= 0 or (0 <= selected < len(sizes) and not told_beside), "the selected row is never cut that fits"
        cut = [at for at, size in enumerate(sizes) if len(spread.lines_of(at)) < size]
        assert not cut or free <= 0, "a row is cut beside free lines"
        told = {at for at, row in found if row is not None and row.text.endswith("…")}
        assert all(at in told for at in cut if len(spread.lines_of(at)) > 1), "a row ends in the middle unsaid"


def test_long_rows_share_the_free_lines_and_a_selected_one_that_fits_nowhere_leaves_half_of_the_page() -> None:
    def heights(sizes: list[int], page: int, selected: int = -1) -> list[int]:
        spread = Spread(Sizes(sizes, spreads=True), 80, page, selected)
        return [len(spread.lines_of(at)) for at in range(len(sizes))]

    assert heights([18, 18, 18], 30) == [10, 10, 10]
    assert heights([3, 18, 18], 30) == [3, 14, 13]
    assert heights([4, 4, 4], 9) == [4, 4, 1]
    assert heights([50, 1, 1], 20, selected=0) == [18, 1, 1]
    assert heights([50] + 30 * [1], 20, selected=0) == [11] + 30 * [1]


def test_a_run_in_full_loses_no_word_and_leaves_no_cell_empty_where_that_saves_no_line() -> None:
    given = "which of the modules write to the ledger, and why do they not ask the importer first?"
    said = "Three of them write: " + "the importer by its own lock, " * 5
    run = RunSummary("r", "ledger-1", "audit", input=f"question: {given}", output=said, user="ada", machine="lab3")
    rows = RunRows(Listing(RunsRequest(), [Member(run)]), beside_card=True)
    beside: list[int] = []
    for width in range(80, 240, 5):
        lines = [row.text for row in rows.whole(0, width)]
        assert max(map(len, lines)) <= width
        shown = sorted(" ".join(lines).split())
        assert all(shown.count(word) >= count for word, count in Counter(f"{given} {said}".split()).items()), width
        at = rows.heads(width)[0].text.index("output")
        if lines[0][at:].strip():
            beside.append(width)
            assert all(line[at:].strip() for line in lines), f"{width}: the input takes lines of its own"
            assert lines[0][rows.heads(width)[0].text.index("input") : at].strip(), f"{width}: its cell is empty"
    assert beside


def test_a_run_in_full_has_as_much_of_its_texts_as_a_list_holds() -> None:
    """Not the 200 characters that its columns take at most; an ellipsis stands for what only its journal has."""
    texts = {name: " ".join(f"{name}{n}" for n in range(900))[:EXCERPT] for name in ("given", "said")}
    run = RunSummary("r", "one", "c", input=f"q: {texts['given']}"[:EXCERPT], output=texts["said"], excerpt=True)
    rows = RunRows(Listing(RunsRequest(), [Member(run)]), beside_card=True)
    for width in (80, 120, 200):
        words = " ".join(row.text for row in rows.whole(0, width)).split()
        assert {"given200", "said200", "said240"} <= set(words), width
        assert sum(word.endswith("…") for word in words) == 2, width


def test_a_problem_in_full_loses_no_word_and_its_lines_hang_under_its_text() -> None:
    words = "tool 'smart' is not known; it will not be offered"
    hint = "register it, or put its file into a tackle folder"
    rows = ProblemRows([Problem(Severity.WARNING, "L501", words, "a.yaml", TextSpan(15, 26, 15, 31), hint=hint)])
    for width in (30, 38, 60, 79):
        lines = [row.text for row in rows.whole(0, width)]
        assert max(map(len, lines)) <= width
        assert all(line[:12].isspace() and line[12] != " " for line in lines[1:])
        assert " ".join(line[12:].strip() for line in lines).split() == f"{words} ({hint}) [L501]".split()
    assert len(rows.whole(0, 130)) == 1


async def test_a_problem_in_several_lines_is_one_row_for_keys_and_mouse(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(80, 24), text=BROKEN) as it:
        await it.press("2")
        await it.until(lambda: "L501" in it.pane("dock"), "the problems do not show")
        lines = it.pane("dock").splitlines()
        at = [y for y, line in enumerate(lines) if line[1:2] in "✗⚠" and line.strip()]
        assert "…" not in it.pane("dock")
        high = at[1] - at[0]
        assert high > 1
        await it.press("j")
        assert it.screen.dock_pane.cursor == 1
        await it.pilot.click("#dock", offset=(20, at[2] + 1))
        await it.pilot.pause()
        assert it.screen.dock_pane.cursor == 2
        marked = [y for y, line in enumerate(it.pane("dock").splitlines()) if line.startswith("▌")]
        assert marked == [*range(at[2], at[2] + high)]
        await it.pilot.resize_terminal(80, 12)
        await it.press("g")
        lines = it.pane("dock").splitlines()
        assert lines[2].startswith("▌  "), "the row under the cursor does not show whole"
        assert sum("…" in line for line in lines) == 5, "others should be cut: there is no room for all"
        await it.pilot.click("#dock", offset=(20, 7), times=2)
        assert it.presenter.problem == 4
        await it.until(lambda: it.screen.last_pane != "dock", "a double click does not open the row that it chose")


async def test_lines_of_the_log_are_whole_beside_free_lines(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(80, 24), events=triage_story().events) as it:
        await it.press("1")
        await it.until(lambda: "out 36" in it.pane("dock"), "a line is cut beside free lines")
        assert "previous call" in it.pane("dock")
        await it.pilot.resize_terminal(80, 18)
        await it.until(lambda: "out 36" not in it.pane("dock"), "there is no room for all")
        assert "previous call" in it.pane("dock"), "the newest line does not show whole"


def test_no_stored_screen_cuts_a_line_above_free_lines() -> None:
    cut = [
        f"{file.stem}: {line}"
        for file in sorted(FOLDER.glob("*.txt"))
        if "  damaged: " not in (text := file.read_text("utf-8"))
        for line in _cut_above_free_lines(text)
    ]
    assert not cut, "\n".join(cut)


def _cut_above_free_lines(text: str) -> Iterator[str]:
    """Lines of a pane that end in ``…`` while nothing but empty lines stands between them and the pane's end."""
    lines = text.rstrip("\n").split("\n")[:-1]  # The last one is the footer.
    width = max(map(len, lines))
    lines = [line.ljust(width) for line in lines]
    for y, line in enumerate(lines):
        for match in re.finditer(r"\S… *(?=[│┃]|$)", line):
            left = max(line.rfind(bar, 0, match.start()) for bar in "│┃") + 1
            right = min((at for bar in "│┃" if (at := line.find(bar, match.start())) >= 0), default=width - 1)
            if right - left < BESIDE_DIALOG:
                continue
            below = [other[left:right].strip("│┃▌▏ ") for other in lines[y + 1 :]]
            free = next((number for number, part in enumerate(below) if part), len(below))
            if free and (free == len(below) or re.search("[─━]{3}", below[free])):
                yield line.strip()


def test_no_stored_table_cuts_a_cell_while_a_column_is_wider_than_all_that_stands_in_it() -> None:
    cut = [
        f"{file.stem}: {line}"
        for file in sorted(FOLDER.glob("*.txt"))
        if file.stem.startswith(TABLES)
        for line in _cut_beside_free_cells(file.read_text("utf-8"))
    ]
    assert not cut, "\n".join(cut)


def test_a_cell_that_is_cut_beside_free_cells_is_found() -> None:
    table = " name       calls  output\n one            3  a long te…\n two            4  short\n\n footer\n"
    assert list(_cut_beside_free_cells(table)) == ["one            3  a long te…"]
    assert not list(_cut_beside_free_cells(table.replace("      ", "  ").replace("long te…", "long text")))


def _cut_beside_free_cells(text: str) -> Iterator[str]:
    """Rows of tables with a cell that ends in ``…`` while some cells beside each other are free in every row."""
    lines = text.rstrip("\n").split("\n")[:-1]
    width = max(map(len, lines))
    table: list[str] = []
    for line in (*(line.ljust(width) for line in lines), "───"):
        inner = re.sub("[│┃▌▏]", " ", re.sub(f"│[^│]{{1,{BESIDE_DIALOG}}}$", lambda rest: " " * len(rest[0]), line))
        if not re.search("[─━]{3}", inner):
            table.append(inner)
            continue
        taken = "".join("x" if any(row[x] != " " for row in table) else " " for x in range(width)).strip()
        if len(table) > 2 and " " * BAND in taken:
            yield from (row.strip() for row in table if re.search(r"\S…(?=\s|$)", row))
        table = []
