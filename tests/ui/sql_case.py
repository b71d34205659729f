"""Asks questions in the SQL console of a real app, over a real index, and says what it saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from textual.widgets import Input

from tests.ui.bench import Bench, bench, screen_text
from tests.ui.snapshot import check_sizes
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.sheet import Sheet
from workbench.tui.screens.sql import SqlScreen
from workbench.views.result import CatalogueRows, ResultRows

CASCADE = """\
cascade_id: small
phases:
  - name: look
    instructions: Look around.
  - name: choose
    instructions: Choose.
    soundings:
      factor: 2
      evaluator_instructions: Which one?
      reforge: {steps: 1, factor_per_step: 1, honing_prompt: Shorter.}
"""
REPLIES = """\
replies:
  look: [{text: Nothing here.}]
  choose:
    - {branch: s0, text: Left., usage: {input: 31, output: 2}}
    - {branch: s1, text: Right., usage: {input: 32, output: 2}}
    - {branch: r1.0, text: R., usage: {input: 33, output: 1}}
    - {aside: 1, text: '{"winner": 2, "scores": {"1": 1, "2": 9}}', usage: {input: 34, output: 9}}
    - {aside: 2, text: '{"winner": 2, "scores": {"1": 1, "2": 9}}', usage: {input: 35, output: 9}}
"""
HOSTILE = "SELECT '\\x1B]0;gone\\x07 [/b] \\u202E' AS text, NULL AS nothing, 'NULL' AS word, 1.5 AS number"


class Console:
    """The open console."""

    def __init__(self, it: Bench, screen: SqlScreen) -> None:
        self.it = it
        self.screen = screen

    def put(self, sql: str) -> None:
        self.screen.area.focus()
        self.screen.area.load_text(sql)

    async def ask(self, sql: str) -> str:
        """What stands on the screen when a question was answered."""
        self.put(sql)
        await self.it.press("f5")
        await self.it.until(lambda: self.screen._cancel is None, "no answer came")
        return screen_text(self.it.app)

    @property
    def rows(self) -> ResultRows:
        assert isinstance(self.screen.results.rows, ResultRows)
        return self.screen.results.rows


async def observe(folder: Path) -> dict[str, Any]:
    async with bench(folder, text=CASCADE, replies=REPLIES, size=(120, 36), given={}) as it:
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.status == "success")
        await it.press("Q")
        await it.until(lambda: isinstance(it.app.screen, SqlScreen))
        screen = it.app.screen
        assert isinstance(screen, SqlScreen)
        await it.until(lambda: screen._tables, "the tables did not come")
        return await _questions(Console(it, screen), folder)


async def _questions(at: Console, folder: Path) -> dict[str, Any]:
    it, seen = at.it, dict[str, Any]()
    seen["tables"] = screen_text(it.app)
    seen["catalogue"] = {one.name: [(c.name, c.plain) for c in one.columns] for one in at.screen._tables}
    seen["runs"] = await at.ask("SELECT session_id, cascade_id, status FROM runs")
    seen["after an answer"] = at.screen.focused
    assert at.screen.answer is not None
    at.screen._show_head(replace(at.screen.answer, seconds=0.012))
    await check_sizes(it, "sql", picture=True)
    seen["syntax"] = await at.ask("SELECT 1,\n  FROM runs WHERE (")
    seen["after a fault"] = at.screen.focused
    seen["unknown"] = await at.ask("SELECT\n  session\nFROM runs")
    seen["unknown table"] = await at.ask("SELECT 1 FROM runz")
    seen["cursor at a fault"] = at.screen.area.cursor_location
    at.put("SELECT 1\n\n  SELECT nothing_such\n  FROM runs")
    await it.press("ctrl+home", "down", "shift+down", "shift+down", "shift+end")
    await it.press("f5")
    await it.until(lambda: at.screen._cancel is None, "no answer came")
    seen["fault in a selection"] = screen_text(it.app)
    seen["cursor in a selection"] = at.screen.area.cursor_location
    seen["refused"] = await at.ask("DROP TABLE runs")
    catalogue = at.screen.side.rows
    assert isinstance(catalogue, CatalogueRows)
    seen["came of"] = "\n".join(map(catalogue.plain, range(len(catalogue))))
    await at.ask("SELECT number AS at, if(number = 0, NULL, 'two\\nlines') AS note FROM numbers(2)")
    await it.press("Y")
    await it.until(lambda: "copied 2 rows" in screen_text(it.app), "nothing was copied")
    seen["copied"] = it.app.clipboard
    it.app.notices.clear()
    seen["hostile"] = await at.ask(HOSTILE)
    seen["hostile spans"] = [list(span) for span in at.rows.row(0, 110).spans]
    seen["result keys"] = screen_text(it.app).splitlines()[-1]
    await it.press("enter")
    seen["record"] = screen_text(it.app)
    seen["is sheet"] = isinstance(it.app.screen, Sheet)
    await it.press("escape")
    seen["many"] = await at.ask("SELECT number, toString(number) AS text FROM numbers(100000)")
    long = at.screen.side.size.height
    seen["columns"] = await at.ask("SELECT " + ", ".join(f"'v{n}' AS column_{n}" for n in range(40)))
    await it.press(*["right_square_bracket"] * 5)
    seen["scrolled"] = screen_text(it.app)
    await it.until(lambda: at.screen.side.size.height > long, "the catalogue did not take the lines of a short result")
    await it.press("f6", "f6")
    catalogue = at.screen.side.rows
    assert isinstance(catalogue, CatalogueRows)
    for kind in ("head", "example", "table"):
        at.screen.side.move_to(next(index for index, one in enumerate(catalogue.entries) if one.kind == kind))
        await it.pilot.pause()
        seen[f"keys at a {kind}"] = screen_text(it.app).splitlines()[-1]
    seen["catalogue lines"] = (long, at.screen.side.size.height)
    await it.press("f6")
    seen.update(await _completed(at))
    seen.update(await _kept(at))
    seen.update(await _cancelled(at))
    seen.update(await _saved(at, folder))
    await it.press("alt+up", "alt+up")
    seen["earlier"] = at.screen.area.plain_text
    await it.press("escape")
    await it.app.workers.wait_for_complete()
    seen["back"] = it.app.screen is it.screen
    shown = at.screen.answer
    await it.press("Q")
    await it.until(lambda: isinstance(it.app.screen, SqlScreen) and it.app.screen._tables)
    again = it.app.screen
    assert isinstance(again, SqlScreen)
    seen["kept"] = again.area.plain_text
    seen["found again"] = screen_text(it.app)
    seen["same result"] = shown is not None and Console(it, again).rows.table is shown.table
    await it.press("alt+a")
    await it.type("SELECT 9")
    await it.press("escape")
    await it.until(lambda: it.app.screen is it.screen)
    await it.app.workers.wait_for_complete()
    await it.press("Q")
    await it.until(lambda: isinstance(it.app.screen, SqlScreen) and it.app.screen._tables)
    again = it.app.screen
    assert isinstance(again, SqlScreen)
    seen["draft"] = again.area.plain_text
    await it.press("f7")  # Last, as its message hides the keys for some seconds.
    seen["picture"] = screen_text(it.app)
    seen.update(await _opened(Console(it, again)))
    return seen


async def _completed(at: Console) -> dict[str, Any]:
    """What is offered while a query is typed, and what is written when it is taken."""
    it = at.it
    at.put("")
    await it.type("SELECT pha")
    offered = screen_text(it.app)
    await it.press("tab")
    await it.type(" FROM all_d")
    await it.press("tab")
    await it.type(" WHERE status = 'pha")
    inside = at.screen.popup.display
    return {"offered": offered, "completed": at.screen.area.plain_text, "inside a string": inside}


async def _kept(at: Console) -> dict[str, Any]:
    """A query is saved under a name, refused under a bad one, taken from the catalogue, and deleted."""
    it, screen = at.it, at.screen
    at.put("SELECT 7 AS seven")
    await it.press("ctrl+s")
    await it.type("../up")
    await it.press("enter")
    refused = screen_text(it.app)
    await it.press("escape", "ctrl+s")
    await it.type("my seven")
    await it.press("enter")
    await it.until(lambda: "my seven" in screen_text(it.app))
    at.put("")
    await it.press("f6", "home", "down", "enter")
    taken = screen.area.plain_text
    await it.press("ctrl+s")
    named = it.app.screen.query_one("#prompt-input", Input).value
    await it.press("escape")
    at.put("SELECT 8")
    await it.press("f6", "home", "down", "delete", "d", "f6")
    assert isinstance(screen.side.rows, CatalogueRows)
    gone = [entry.text.strip() for entry in screen.side.rows.entries if entry.kind == "saved"]
    at.put(taken)
    await it.press("ctrl+s", "ctrl+u")
    await it.type("stays")
    await it.press("enter")
    return {"name refused": refused, "taken": taken, "named": named, "deleted": gone}


async def _opened(at: Console) -> dict[str, Any]:
    """Enter on a row that names a call goes to it in the Bench; ``s`` in the catalogue shows rows of a table."""
    it = at.it
    catalogue = at.screen.side.rows
    assert isinstance(catalogue, CatalogueRows)
    first = next(place for place, entry in enumerate(catalogue.entries) if entry.kind == "table")
    await it.press("f6", *["down"] * first, "s")
    await it.until(lambda: at.screen.answer is not None, "no rows came")
    rows = at.screen.area.plain_text
    sql = "SELECT session_id, phase_name, turn_number, cost FROM all_data WHERE node_type = 'agent'"
    shown = await at.ask(sql)
    at.screen.results.focus()
    await it.press("home", "space")
    record = screen_text(it.app)
    await it.press("escape", "enter")
    await it.until(lambda: it.app.screen is it.screen, "the run did not open")
    await it.until(lambda: it.presenter.state.selected is not None)
    at_first = str(it.presenter.state.selected)
    opened = [await _opened_by(at.it, sql) for sql in ROWS_OF_CALLS]
    return {"rows of": rows, "call": shown, "row in full": record, "at": at_first, "opened": opened}


ROWS_OF_CALLS = [
    f"SELECT session_id, phase_name, turn_number{and_} FROM all_data WHERE response_hash != '' AND {which}"
    for and_, which in [
        (", tokens_in", "branch = 's1'"),
        (", branch", "branch = 's1'"),
        (", tokens_in", "tokens_in = 35"),
        ("", "branch = 'r1.0'"),
        ("", "tokens_in = 34"),
        ("", "branch = 's1'"),
        (", toUInt16(9) AS call", "branch = 's1'"),
    ]
]
"""Queries of one row that is of a call of the phase ``choose``."""


async def _opened_by(it: Bench, sql: str) -> tuple[str, str]:
    """The call that enter on the only row of a query opens, and what the app says."""
    it.app.notices.clear()
    await it.press("Q")
    await it.until(lambda: isinstance(it.app.screen, SqlScreen) and it.app.screen._tables)
    screen = it.app.screen
    assert isinstance(screen, SqlScreen)
    at = Console(it, screen)
    await at.ask(sql)
    assert len(at.rows) == 1, sql
    screen.results.focus()
    await it.press("home", "enter")
    await it.until(lambda: it.app.screen is it.screen, f"no run opened: {sql}")
    await it.app.workers.wait_for_complete()
    return str(it.presenter.state.selected), screen_text(it.app).splitlines()[-1]


async def _cancelled(at: Console) -> dict[str, Any]:
    at.put("SELECT count() FROM numbers(100000000000) WHERE sipHash64(number) = 1")
    await at.it.press("f5")
    await at.it.press("escape")
    shown = screen_text(at.it.app)
    after = await at.ask("SELECT 42 AS answer")
    return {"cancelled": shown, "after": after}


async def _saved(at: Console, folder: Path) -> dict[str, Any]:
    it, found = at.it, dict[str, Any]()
    await at.ask("SELECT 1 AS one, 'a,b' AS two, NULL AS three")
    for ending in ("csv", "json", "parquet"):
        await it.press("ctrl+e", "ctrl+u")
        await it.type(f"out.{ending}")
        await it.press("enter")
        file = folder / f"out.{ending}"
        await it.until(file.exists)
        await it.app.workers.wait_for_complete()
        found[ending] = file.read_text() if ending != "parquet" else file.stat().st_size
    (folder / "out.csv").write_text("mine")
    await it.press("ctrl+e", "ctrl+u")
    await it.type("out.csv")
    await it.press("enter")
    found["asks"] = isinstance(it.app.screen, ChoiceDialog)
    await it.press("escape")
    found["untouched"] = (folder / "out.csv").read_text()
    await it.press("ctrl+e", "ctrl+u")
    await it.type("out.csv")
    await it.press("enter", "w")
    await it.until(lambda: (folder / "out.csv").read_text() != "mine", "the file was not replaced")
    return {"saved": found}
