"""Questions to the tables: what is answered, what is refused, what hostile text does (nothing)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.cases.asking import ALLOWED, FORBIDDEN
from tests.store.conftest import Observed
from workbench.store.index.database import WRITES, DatabaseError
from workbench.store.index.index import Index
from workbench.store.store import Store


@pytest.fixture(scope="module")
def seen(observe: Callable[[str], Observed]) -> Observed:
    return observe("asking")


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_the_guard_refuses(seen: Observed, sql: str) -> None:
    assert seen["refused"][sql]


def test_what_was_refused_left_no_trace(seen: Observed) -> None:
    assert seen["refused under a limit"] == []
    assert seen["files left"] == []
    assert seen["tables left"] is True


@pytest.mark.parametrize("sql", ALLOWED)
def test_the_guard_lets_through(seen: Observed, sql: str) -> None:
    assert seen["allowed"][sql] == ""


def test_bodies_are_put_together_from_hashes(seen: Observed) -> None:
    assert seen["request"] == ["gpt-4o-mini", ["system", "user", "assistant", "user"], []]
    assert seen["requests"] == ["user"] * 4
    assert seen["response"] == "The log is short."
    assert (seen["cascade_json"], seen["phase_json"]) == ("triage", "sort")


def test_a_call_written_as_text_is_in_the_tool_calls_of_its_answer(seen: Observed) -> None:
    assert seen["tool call"] == [{"tool": "read_log", "arguments": '{"x": "a"}', "id": ""}]
    assert seen["timestamp_iso"].endswith("Z")


def test_a_session_reads_like_the_run_it_was(seen: Observed) -> None:
    kinds = [row[0] for row in seen["session"]]
    assert kinds[:2] == ["cascade_start", "phase_start"]
    assert kinds[-2:] == ["phase_complete", "cascade_complete"]
    assert kinds.count("agent") == kinds.count("turn") == kinds.count("context_selection") == 4
    assert ["context_injection", "user", "close", 1, "main", "context_injection"] in seen["session"]
    assert ["tool_result", "user", "close", 1, "main", "tool_result"] in seen["session"]
    assert seen["session messages"] == len(seen["session"])


def test_costs_are_summed_where_known_and_counted_where_not(seen: Observed) -> None:
    assert seen["costs"] == [
        {"phase_name": "sort", "calls": 2, "tokens_in": 220, "tokens_out": 22, "tokens_cached": 64, "cost": 0.5,
         "unknown_costs": 1},
        {"phase_name": "close", "calls": 2, "tokens_in": 200, "tokens_out": 20, "tokens_cached": None, "cost": None,
         "unknown_costs": 2},
    ]  # fmt: skip


def test_facts_that_came_late_are_in_the_rows_they_belong_to(seen: Observed) -> None:
    assert seen["winners"] == [['"Violets."', 0.125, "best"]]
    assert seen["runs"][2] == ["run-2", "success", 2, 0.375, 0, seen["written"]["run-2"]]


def test_candidates_stand_side_by_side(seen: Observed) -> None:
    assert seen["soundings"] == [
        [0, False, None, None, 0.25, 0, "Roses."],
        [1, True, "augment", "Write. Twice.", 0.125, 0, "Violets."],
    ]
    assert seen["scores"] == [[[0, 40, "colour"]], [[1, 90.5, "colour"]]]
    assert seen["evals"] == [[0, 40, False, "evaluator"], [1, 90.5, True, "evaluator"]]


def test_training_data_holds_winners_alone_however_many_phases_and_visits_compete(seen: Observed) -> None:
    """The queries for training data of a run with whole walks that compete, three phases with candidates, each visited
    twice, and reforge."""
    kept = [("a", "s1/s1"), ("b", "s1/r1.1"), ("b", "s1/s2"), ("c", "s1/s1")]
    won = [(branch, phase, visit) for phase, branch in kept for visit in (1, 2)] + [("s1", "d", 1)]
    training = seen["training"]
    assert sorted(training["winners"]) == sorted(f"text of {b}/{p}/{v}/1/1/1" for b, p, v in won)
    assert training["asked"] == training["winners"], "role = 'assistant' finds no word of an evaluator"
    assert {tuple(pair[:4]) for pair in training["pairs"] if pair[4]} == {
        (walk, phase, visit, branch.replace("s1/", f"{walk}/"))
        for walk in ("s0", "s1") for branch, phase, visit in won if phase != "d"
    }  # fmt: skip
    assert [pair for pair in training["pairs"] if pair[5] != 1] == [], "one evaluation joins one candidate"
    assert training["analysis"] == [[visit, f"s1/{name}"] for visit in (1, 2) for name in ("s2", "r1.1")]


def test_a_context_row_holds_what_changed_since_the_call_before(seen: Observed) -> None:
    assert seen["context"] == [[2, 3], ["kept", "kept"], [8, 56], 4]


def test_a_card_joins_its_message_by_content_hash(seen: Observed) -> None:
    assert ["violets", "heuristic", '"Violets."'] in seen["card"], "what a model made is laid over the card"
    assert ["The log is short.", "heuristic", '"The log is short."'] in seen["card"]


def test_a_search_finds_all_words_in_any_letter_case(seen: Observed) -> None:
    assert seen["search"] == [["run-1", "tool_result"]]
    assert seen["search nothing"] == "nothing to search for"
    assert seen["no request"] == "no answer has the message id 'nope'"


@pytest.mark.fault("F28")
@pytest.mark.parametrize("way", ["text", "names", "parameters", "where", "search"])
def test_hostile_text_goes_in_and_comes_out_unchanged(seen: Observed, way: str) -> None:
    assert seen[f"hostile: {way}"] == []


def test_parameters_keep_their_types(seen: Observed) -> None:
    assert seen["hostile: arrays"] is True
    assert seen["hostile: nullable"] is None
    assert seen["hostile: word NULL"] == "NULL"
    assert seen["hostile: backslash N"] == "\\N"
    assert seen["hostile: numbers"] == [-(2**62), 1e-9, True, [1, None]]
    assert seen["hostile: session"] == [0] * len(seen["hostile: session"])


def test_a_limit_says_when_there_is_more(seen: Observed) -> None:
    assert seen["limit"] == [2, True]
    assert seen["no limit"] is False


def test_an_answer_has_four_forms(seen: Observed) -> None:
    assert seen["text"] == "(2 rows, more were found)"
    assert json.loads(seen["json"])[0] == {"seq": 1, "role": "user", "cost": None, "context_hashes": []}
    assert seen["csv"] == "seq,role,cost,context_hashes\n1,user,,[]\n2,,,[]\n"
    assert seen["parquet rows"] == [5, 0]
    assert seen["parquet"] == ["timestamp", "timestamp_iso", "session_id"]


def test_threads_get_their_own_values(seen: Observed) -> None:
    assert seen["wrong values in threads"] == 0


def test_a_query_can_be_ended(seen: Observed) -> None:
    running, before = seen["cancelled"]
    assert "cancelled" in running.lower()
    assert before == "the query was cancelled"
    assert "Timeout exceeded" in seen["time limit"]
    assert seen["interrupted"] == "heard"


def test_a_question_that_would_take_too_much_memory_is_refused(tmp_path: Path) -> None:
    refused = pytest.raises(DatabaseError, match="needs more than 1 GB of memory; ask for fewer rows")
    with Index(Store(tmp_path)) as index, refused:
        index.sql("SELECT length(groupArray(concat(toString(number), repeat('x', 1000)))) FROM numbers(3000000)")


def test_what_contexts_share_counts_for_the_memory_of_a_question(tmp_path: Path) -> None:
    """The tables hold a megabyte once, and each row names it."""
    long = ["x" * 1_000_000]
    with Index(Store(tmp_path)) as index:
        columns = ("id", "bodies", "contents", "added_at")
        index.engine.handle(WRITES).insert("context_parts", columns, [(1, long, long, "2026-01-01T00:00:00Z")])
        shared = "arrayMap(p -> dictGet('workbench.parts', 'contents', p), arrayResize([number * 0 + 1], {}, 1))"
        many = f"SELECT sum(length(arrayFlatten({shared}))) FROM numbers(200)"
        assert index.sql(many.format(1)).one() == 200
        with pytest.raises(DatabaseError, match="needs more than 1 GB of memory"):
            index.sql(many.format(10))
