"""The SQL console: questions, answers, faults with their place, what is cut, cancelled, saved and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workbench.store.faults import StoreError
from workbench.store.index.table import Column, ResultTable
from workbench.store.sqltext import fault_of
from workbench.views.result import ResultRows, record

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sql")
    command = [sys.executable, "-m", "tests.ui.sql_case", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_tables_examples_and_the_way_to_ask_are_shown(seen: dict[str, Any]) -> None:
    for words in ("all_data", "Examples", "cost and tokens by phase", "nothing here can change a run", "f5 ask"):
        assert words in seen["tables"]


def test_a_run_that_just_ended_is_in_the_answer(seen: dict[str, Any]) -> None:
    assert "1 row in" in seen["runs"]
    assert "small" in seen["runs"]
    assert "success" in seen["runs"]


def test_a_fault_is_told_with_its_place_and_marked(seen: dict[str, Any]) -> None:
    assert "error: 2:" in seen["syntax"]
    assert "error: 2:3: Unknown expression identifier `nope`" in seen["unknown"]
    assert "2✗" in seen["unknown"]
    assert "only SELECT, EXPLAIN, SHOW and DESCRIBE are allowed" in seen["refused"]


def test_hostile_text_is_shown_as_pictures_and_null_is_not_the_word(seen: dict[str, Any]) -> None:
    assert "␛]0;gone␇ [/b]" in seen["hostile"]
    assert "\x1b" not in seen["hostile"]
    assert "\u202e" not in seen["hostile"]
    tokens = [token for text, token in seen["hostile spans"] if text.strip() == "NULL"]
    assert tokens == ["faint", "plain"]


def test_a_row_opens_in_full_with_the_types(seen: dict[str, Any]) -> None:
    assert seen["is sheet"]
    assert "number  Float64" in seen["record"]
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


def test_questions_are_kept_and_come_back(seen: dict[str, Any]) -> None:
    assert seen["earlier"] == "SELECT 42 AS answer"
    assert seen["kept"] == "SELECT 1 AS one, 'a,b' AS two, NULL AS three"
    assert seen["back"]


@pytest.mark.parametrize(
    ("sql", "said", "place"),
    [
        ("SELEC 1", "Syntax error: failed at position 7 (1): 1. Expected one of: token, Dot, FROM", (1, 7)),
        ("SELECT é b c", "Syntax error: failed at position 13 (c): c.", (1, 12)),
        ("SELECT (1", "Unmatched parentheses: '(' at position 8 is never closed", (1, 8)),
        ("SELECT\n nofun(1)", "function 'nofun' is not allowed", (2, 2)),
        ("SELECT 'x", "line 1: ' is not closed", (1, 1)),
        ("DROP", "only SELECT is allowed", (0, 0)),
    ],
)
def test_the_place_of_a_fault_is_worked_out(sql: str, said: str, place: tuple[int, int]) -> None:
    fault = fault_of(sql, StoreError(said))
    assert (fault.line, fault.column) == place


def test_what_the_engine_expected_is_named_in_a_few_words() -> None:
    said = "Syntax error: failed at position 1 (X): X. Expected one of: token, FROM, WHERE, GROUP BY, HAVING, LIMIT"
    assert fault_of("X", StoreError(said)).message.endswith("Expected: FROM, WHERE, GROUP BY, HAVING, …")


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (0.07287636999999998, "0.0728764"),
        (5.0, "5.0"),
        (1234567.1234567, "1234567.123457"),
        (float("nan"), "nan"),
        (0.0, "0.0"),
    ],
)
def test_a_number_with_many_decimals_is_short_in_the_grid_and_whole_in_its_row(value: float, cell: str) -> None:
    table = ResultTable((Column("cost", "Float64"),), ((value,),))
    assert ResultRows(table).row(0, 40).text.strip() == cell
    assert str(value) in [line.text.strip() for line in record(table, 0).lines]


def test_a_hundred_thousand_rows_cost_no_more_to_draw_than_ten() -> None:
    table = ResultTable((Column("n", "UInt64"),), tuple((n,) for n in range(100_000)))
    rows = ResultRows(table)
    assert len(rows) == 100_000
    assert rows.row(9, 40).text.strip() == "9"
    assert rows.plain(99_999) == "99999"
