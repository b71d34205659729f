"""The SQL console: questions, answers, faults with their place, what is cut, cancelled, saved and kept."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.ui.sql_case import ROWS_OF_CALLS, observe
from workbench.context.place import Place
from workbench.store.faults import StoreError
from workbench.store.index.catalogue import COLUMNS, TABLES
from workbench.store.index.table import Column, ResultTable, plain_type, renamed_costs
from workbench.store.sqltext import fault_of
from workbench.views.result import AnswerView, CatalogueRows, FoundPlace, ResultRows, place_of_row, record, short
from workbench.views.value import Table
from workbench.workspace.sql_completion import complete_sql, suggested
from workbench.workspace.sql_queries import StatementHistory, StatementOutcome

pytestmark = pytest.mark.timeout(240)  # One app answers all questions before the first test.


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return asyncio.run(observe(tmp_path_factory.mktemp("sql")))


def test_tables_examples_and_the_way_to_ask_are_shown(seen: dict[str, Any]) -> None:
    for words in ("all_data", "Examples", "cost and tokens by phase", "a query cannot change a run", "f5 run"):
        assert words in seen["tables"]


def test_a_run_that_just_ended_is_in_the_answer(seen: dict[str, Any]) -> None:
    assert "1 row in" in seen["runs"]
    assert "small" in seen["runs"]
    assert "success" in seen["runs"]


def test_the_rows_of_a_query_have_the_focus_and_a_fault_leaves_it_in_the_text(seen: dict[str, Any]) -> None:
    assert (seen["after an answer"].id, seen["after a fault"].id) == ("results", "query")


def test_a_picture_of_the_screen_can_be_taken_while_a_query_is_written(seen: dict[str, Any]) -> None:
    """And the message names the folder that it is in."""
    assert re.search(r"Screen saved: \S+/workbench-\S+\.svg", seen["picture"].replace("\n", ""))


def test_a_fault_is_told_with_its_place_and_marked(seen: dict[str, Any]) -> None:
    assert "error: 2:" in seen["syntax"]
    assert "error: 2:3: there is no column 'session': did you mean session_id?" in seen["unknown"]
    assert "error at 2:3" in seen["unknown"].splitlines()[0]
    assert seen["unknown"].count("did you mean session_id?") == 1, "it is said twice"
    assert "2✗" in seen["unknown"]
    assert "error: 1:15: there is no table 'runz': did you mean runs?" in seen["unknown table"]
    assert "only SELECT, EXPLAIN, SHOW and DESCRIBE are allowed" in seen["refused"]


def test_the_cursor_goes_to_a_fault_also_in_a_part_that_was_run(seen: dict[str, Any]) -> None:
    assert seen["cursor at a fault"] == (0, 14)
    assert "error: 3:10: there is no column 'nothing_such'" in seen["fault in a selection"]
    assert seen["cursor in a selection"] == (2, 9)


def test_hostile_text_is_shown_as_pictures_and_null_is_not_the_word(seen: dict[str, Any]) -> None:
    assert "␛]0;gone␇ [/b]" in seen["hostile"]
    assert "\x1b" not in seen["hostile"]
    assert "\u202e" not in seen["hostile"]
    tokens = [token for text, token in seen["hostile spans"] if text.strip() == "NULL"]
    assert tokens == ["faint", "plain"]


def test_a_row_opens_in_full_with_the_types(seen: dict[str, Any]) -> None:
    assert seen["is sheet"]
    assert "number  number" in seen["record"]
    assert "Float64" not in seen["record"]
    assert "1.5" in seen["record"]


def test_a_large_answer_is_cut_and_counted(seen: dict[str, Any]) -> None:
    assert "the first 10,000 of 100,000 rows" in seen["many"]


def test_columns_beyond_the_edge_can_be_reached(seen: dict[str, Any]) -> None:
    assert "column_0 " in seen["columns"]
    assert "column_0 " not in seen["scrolled"]
    assert "column_5 " in seen["scrolled"]


def test_a_question_can_be_cancelled_and_the_next_is_answered(seen: dict[str, Any]) -> None:
    assert "cancelled" in seen["cancelled"]
    assert "42" in seen["after"]


def test_an_answer_is_saved_as_the_ending_says(seen: dict[str, Any]) -> None:
    assert seen["saved"]["csv"] == 'one,two,three\n1,"a,b",\n'
    assert json.loads(seen["saved"]["json"]) == [{"one": 1, "two": "a,b", "three": None}]
    assert seen["saved"]["parquet"] > 100
    assert seen["saved"]["asks"]
    assert seen["saved"]["untouched"] == "mine"


def test_the_footer_offers_the_keys_of_the_part_with_the_focus(seen: dict[str, Any]) -> None:
    assert "run" in seen["tables"].splitlines()[-1]
    assert "in full" not in seen["tables"].splitlines()[-1]
    assert "] columns" in seen["result keys"]
    assert "complete" not in seen["result keys"]
    assert "s first rows" in seen["keys at a table"]
    assert "] columns" not in seen["keys at a table"]


def test_the_footer_of_the_catalogue_offers_what_can_be_done_with_the_row(seen: dict[str, Any]) -> None:
    """Before, it offered to delete a saved query and to show first rows wherever the cursor was."""
    assert "enter open" in seen["keys at a example"]
    assert "enter open" not in seen["keys at a head"]
    for kind in ("head", "example"):
        assert "first rows" not in seen[f"keys at a {kind}"]
    for kind in ("head", "example", "table"):
        assert "delete" not in seen[f"keys at a {kind}"]


def test_the_catalogue_has_the_lines_that_a_short_result_leaves(seen: dict[str, Any]) -> None:
    beside_many_rows, beside_one = seen["catalogue lines"]
    assert beside_one >= beside_many_rows + 3


def test_tables_and_columns_are_completed_but_not_inside_a_string(seen: dict[str, Any]) -> None:
    assert "phase_name" in seen["offered"]
    assert "text · Name of the phase." in seen["offered"]
    assert seen["completed"] == "SELECT phase_name FROM all_data WHERE status = 'pha"
    assert not seen["inside a string"]


def test_a_query_is_saved_by_name_taken_again_and_deleted(seen: dict[str, Any]) -> None:
    assert "a name has up to 80 letters" in seen["name refused"]
    assert (seen["taken"], seen["named"]) == ("SELECT 7 AS seven", "my seven")
    assert seen["deleted"] == []
    assert "Saved queries" in seen["found again"]
    assert "stays" in seen["found again"]


def test_enter_on_a_call_opens_it_in_the_bench(seen: dict[str, Any]) -> None:
    assert seen["at"] == "look/1/1/1/1"
    assert "phase_name  text  Name of the phase." in seen["row in full"]
    assert seen["rows of"] == "SELECT *\nFROM all_data\nLIMIT 100"


OPENED = [
    ("s1/choose/1/1/1/1", ""),
    ("s1/choose/1/1/1/1", ""),
    ("choose/1/0/0/2", ""),
    ("r1.0/choose/1/1/1/1", ""),
    ("choose/1/0/0/1", "The row fits 2 calls"),
    ("s0/choose/1/1/1/1", "The row fits 2 calls"),
    ("", "no model call"),
]


def test_enter_opens_the_call_of_the_row_or_says_that_the_row_fits_several(seen: dict[str, Any]) -> None:
    """By whatever column tells it from others; a refined candidate by its session; a NULL turn is outside turns."""
    for sql, (place, said), (opened, words) in zip(ROWS_OF_CALLS, OPENED, seen["opened"], strict=True):
        assert opened == place or not place, sql
        assert said in words if said else "The row" not in words, sql


def test_every_table_and_column_has_its_sentence_and_a_plain_type(seen: dict[str, Any]) -> None:
    for table, columns in seen["catalogue"].items():
        assert table in TABLES, table
        for name, plain in columns:
            assert name in COLUMNS, f"{table}.{name}"
            assert plain.islower(), f"{table}.{name}: {plain}"


CATALOGUE = [
    ("runs", [Column("session_id", "String"), Column("cost", "Nullable(Float64)")]),
    ("all_data", [Column("session_id", "String"), Column("phase_name", "LowCardinality(String)")]),
]


def test_a_query_that_was_not_run_is_there_again(seen: dict[str, Any]) -> None:
    """Escape leaves the console: what was typed over the whole old query must not be lost by it."""
    assert seen["draft"] == "SELECT 9"


def test_the_last_result_is_there_again(seen: dict[str, Any]) -> None:
    assert seen["same result"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("SELECT cou|", "count"),
        ("SELECT co| FROM runs", "cost"),
        ("SELECT r.| FROM runs AS r", "session_id"),
        ("SELECT r.c| FROM runs r WHERE 1", "cost"),
        ("SELECT * FROM |", "runs"),
        ("SELECT * FROM runs, a|", "all_data"),
        ("SELECT session_id, p| FROM all_data", "phase_name"),
        ("SELECT 'co|", None),
        ("SELECT 1 -- co|", None),
        ("SELECT nothing.| FROM runs", None),
        ("SELECT * FROM runs WHERE (cost > 1 AND s|", "session_id"),
        ("SELECT \x1b[0m, co| FROM runs", "cost"),
    ],
)
def test_what_may_follow_in_a_query_that_is_not_whole(query: str, first: str | None) -> None:
    before, _, after = query.partition("|")
    found = complete_sql(before + after, len(before), CATALOGUE)
    assert (found.items[0].text if found.items else None) == first
    assert found.end == len(before)


ROWS = [
    ({"run_id": "r1", "cost": 1.0}, FoundPlace("r1")),
    ({"session_id": "s-1", "call": 2}, FoundPlace("s-1", is_vague=True)),
    ({"session_id": "s-1", "phase_name": "a", "turn_number": 2}, FoundPlace("s-1", is_of_call=True)),
    ({"session_id": "s-1", "phase_name": "", "turn_number": None}, FoundPlace("s-1", is_of_call=True)),
    ({"session_id": "s-1", "message_id": "m"}, FoundPlace("s-1", is_of_call=True)),
    ({"session_id": None, "phase_name": "a"}, None),
    ({"session_id": 7}, None),
    ({"phase_name": "a"}, None),
]


@pytest.mark.parametrize(("row", "place"), ROWS)
def test_a_row_names_a_run_and_perhaps_a_call(row: dict[str, Any], place: FoundPlace | None) -> None:
    assert place_of_row(row) == place


JUDGE, WHOLE = Place("", "a", 1, 0, 0, 1), Place("", "a", 0, 0, 0, 1)
CALLS = [Place("", "a", 1, 1, 1, 1), Place("", "a", 1, 1, 2, 1), JUDGE, WHOLE, Place("s0", "a", 1, 1, 1, 1)]


@pytest.mark.parametrize(
    ("places", "fitting"),
    [
        ([CALLS[1]], [CALLS[1]]),
        ([Place("", "a", 1), JUDGE], [JUDGE]),
        ([Place("s0", "a", 1)], [CALLS[4]]),
        ([Place("", "a", 1, 1)], CALLS[:2]),
        ([Place("", "", 0, 0, 0, 1)], [WHOLE]),
        ([Place()], []),
        ([Place("", "b", 1)], []),
    ],
)
def test_the_calls_of_a_row_are_those_of_its_places_or_inside_them(places: list[Place], fitting: list[Place]) -> None:
    assert FoundPlace("r", is_of_call=True, places=tuple(places)).fitting(CALLS) == fitting


@pytest.mark.parametrize(
    ("engine", "plain"),
    [
        ("Nullable(Float64)", "number"),
        ("LowCardinality(Nullable(String))", "text"),
        ("Array(LowCardinality(String))", "list of text"),
        ("DateTime64(6, 'UTC')", "time"),
        ("Array(UInt64)", "list of whole numbers"),
        ("IPv4", "IPv4"),
    ],
)
def test_a_type_is_told_in_plain_words(engine: str, plain: str) -> None:
    assert plain_type(engine) == plain


def test_queries_are_kept_and_come_back(seen: dict[str, Any]) -> None:
    assert seen["earlier"] == "SELECT 42 AS answer"
    assert seen["kept"] == "SELECT 1 AS one, 'a,b' AS two, NULL AS three"
    assert seen["back"]


@pytest.mark.parametrize(
    ("sql", "said", "meant"),
    [
        (
            "SELECT session FROM runs",
            "Unknown expression identifier `session`. Maybe you meant: ['reason']",
            "session_id?",
        ),
        ("SELECT phase FROM runs", "Unknown expression identifier `phase`", "DESCRIBE runs lists its columns"),
        ("SELECT r.name FROM all_data r", "Identifier 'r.name' cannot be resolved from table r", "phase_name?"),
        ("SELECT csot FROM runs", "Unknown expression identifier `csot`", "cost?"),
        ("SELECT x FROM (SELECT 1)", "Unknown expression identifier `x`", "there is no column 'x'"),
        ("SELECT 1 FROM calls", "Unknown table expression identifier 'calls'", "the tables are runs, all_data"),
        ("SELECT 1 FROM w.run", "Unknown table expression identifier 'w.run'", "did you mean runs?"),
        ("SELECT ]", "Syntax error: failed at position 8 (]): ].", ""),
        (
            "SELECT sum(csot) FROM runs",
            "Unknown expression or function identifier `csot`. Maybe you meant: []",
            "cost?",
        ),
        ("SELECT sumx(cost) FROM runs", "function 'sumx' is not allowed", "did you mean sum?"),
        ("SELECT zzz(cost) FROM runs", "function 'zzz' is not allowed", "not allowed"),
        (
            "SELECT cost FROM runs GROUP BY status",
            "Column 'workbench.runs.cost' is not under aggregate function and not in GROUP BY keys. In query SELECT …",
            "'cost' is neither in GROUP BY nor inside a function of many rows, such as any(cost)",
        ),
        ("SELECT toDate(status)", "Cannot parse date: while executing 'FUNCTION toDate(__table2.status :: 1)'", "date"),
    ],
)
def test_a_wrong_name_is_told_with_what_it_may_mean_in_the_tables_of_the_query(sql: str, said: str, meant: str) -> None:
    fault = fault_of(sql, StoreError(said))
    assert f"{fault.message}: {suggested(fault, sql, CATALOGUE)}".rstrip(": ").endswith(meant)
    assert "Maybe" not in fault.message


def test_the_history_keeps_when_a_query_ran_and_what_came_of_it(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text('"SELECT 1"\n')
    history = StatementHistory(file)
    for sql in ("SELECT 2", "SELECT x", "SELECT 3"):
        history.add(sql)
    history.ended("SELECT 2", StatementOutcome("2026-11-02T14:03:00+00:00", rows=1953, seconds=1.3))
    history.ended("SELECT x", StatementOutcome("2026-11-02T14:04:00+00:00", fault="there is no column 'x'"))
    again = StatementHistory(file)
    assert (again.statements, again.problem) == (["SELECT 1", "SELECT 2", "SELECT x", "SELECT 3"], "")
    shown = CatalogueRows((), (), (), {}, again.statements, again.outcomes)
    said = {shown.plain(row): shown.about(row).row(0, 120).text for row in range(1, len(shown))}
    assert "14:03 · 1,953 rows in 1.3s · SELECT 2" in said["SELECT 2"]
    assert "14:04 · failed: there is no column 'x' · SELECT x" in said["✗ SELECT x"]
    assert said["SELECT 1"].strip() == "SELECT 1"
    again.add("SELECT x")
    assert "SELECT x" not in again.outcomes, "what came of it before is not what comes of it now"


def test_what_came_of_queries_stands_in_the_catalogue_and_a_result_is_copied_whole(seen: dict[str, Any]) -> None:
    assert "✗ DROP TABLE runs" in seen["came of"]
    assert re.search(r"✗ SELECT.* session.*FROM runs", seen["came of"])
    assert seen["copied"] == 'at\tnote\n0\t\n1\t"two\nlines"'


def test_of_wrong_names_those_that_begin_so_are_meant_before_those_that_hold_it() -> None:
    tables = [("runs", [Column("parent_session_id", "String"), Column("session_id", "String")])]
    fault = fault_of("SELECT session FROM runs", StoreError("Unknown expression identifier `session`"))
    assert suggested(fault, "SELECT session FROM runs", tables) == "did you mean session_id?"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (0.07287636999999998, "0.0728764"),
        (5.0, "5"),
        (0.000013, "0.000013"),
        (1234567.1234567, "1,234,567.123457"),
        (1e300, "1e+300"),
        (float("nan"), "nan"),
        (0.0, "0"),
    ],
)
def test_a_number_with_many_decimals_is_short_in_the_grid_and_whole_in_its_row(value: float, cell: str) -> None:
    table = ResultTable((Column("share", "Float64"),), ((value,),))
    assert ResultRows(table).row(0, 40).text.strip() == cell
    assert str(value) in [line.text.strip() for line in record(table, 0).lines]


@pytest.mark.parametrize(
    ("name", "type", "value", "cell"),
    [
        ("cost", "Nullable(Float64)", 0.0123, "$0.0123"),
        ("sum(cost)", "Float64", 1234.5, "$1,234.5000"),
        ("predicted_cost", "Nullable(Float64)", 0.0075, "~$0.0075"),
        ("sum(inside_predicted_cost)", "Float64", 0.0, "$0.0000"),
        ("cost", "String", "0.1", "0.1"),
        ("unknown_costs", "UInt32", 3, "3"),
        ("tokens_in", "UInt32", 25429, "25,429"),
        ("seq", "UInt32", 25429, "25429"),
        ("row_version", "UInt64", 25429, "25429"),
        ("timestamp", "DateTime64(6, 'UTC')", "2026-11-02 09:14:01.123456", "2026-11-02 09:14:01"),
        ("is_winner", "Bool", True, "true"),
    ],
)
def test_a_value_is_shown_as_its_column_means_it(name: str, type: str, value: Any, cell: str) -> None:
    assert short(value, Column(name, type)) == cell


@pytest.mark.parametrize(("cost", "cell"), [(None, "~$0.0075"), (0.0075, "$0.0075"), ("no such column", "$0.0075")])
def test_what_was_spent_is_a_prediction_where_the_row_says_that_there_is_no_bill(cost: Any, cell: str) -> None:
    """In the grid, in the table of the command line, and not in JSON."""
    names = ("spent", "cost") if cost != "no such column" else ("spent", "model")
    table = ResultTable(tuple(Column(name, "Nullable(Float64)") for name in names), ((0.0075, cost),))
    assert ResultRows(table).row(0, 60).text.split()[0] == cell
    printed = next(block for block in AnswerView(table).blocks() if isinstance(block, Table))
    assert printed.rows[0][0] == cell
    assert AnswerView(table).json()[0]["spent"] == 0.0075


def test_a_sum_of_predictions_is_one_under_any_name() -> None:
    query = "SELECT sum(predicted_cost) AS expected, sum(cost) AS total FROM runs"
    columns = tuple(Column(name, "Float64") for name in ("expected", "total"))
    table = ResultTable(columns, ((0.0075, 0.0031),)).with_costs(query)
    assert ResultRows(table).row(0, 60).text.split() == ["~$0.0075", "$0.0031"]


@pytest.mark.parametrize(
    ("query", "dollars"),
    [
        ("SELECT sum(spent) AS total FROM runs", {"total"}),
        ("SELECT round(avg(r.cost), 4) as mean, count() AS n FROM runs AS r", {"mean"}),
        ("SELECT sum(cost) / count() AS each, max(tokens_in) AS most FROM all_data", {"each"}),
        ("SELECT countIf(spent > 1) AS dear, sum(spent) / sum(tokens_in) AS rate FROM runs", set()),
        ("SELECT model AS cost FROM runs", set()),
    ],
)
def test_a_sum_of_costs_is_dollars_under_any_name(query: str, dollars: set[str]) -> None:
    assert renamed_costs(query) == dollars


def test_a_hundred_thousand_rows_cost_no_more_to_draw_than_ten() -> None:
    table = ResultTable((Column("n", "UInt64"),), tuple((n,) for n in range(100_000)))
    rows = ResultRows(table)
    assert len(rows) == 100_000
    assert rows.row(9, 40).text.strip() == "9"
    assert rows.plain(99_999) == "99999"
