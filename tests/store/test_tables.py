"""Journals copied into tables: the same rows however often, in whatever order, after whatever crash."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.store.conftest import Observed

SEED_004 = """
timestamp timestamp_iso session_id trace_id parent_id parent_session_id parent_message_id node_type role depth
sounding_index is_winner reforge_step attempt_number turn_number cascade_id cascade_file cascade_json phase_name
phase_json model request_id provider duration_ms tokens_in tokens_out total_tokens cost content_json full_request_json
full_response_json tool_calls_json images_json has_images has_base64 metadata_json mutation_type mutation_applied
mutation_template
"""
OURS = """
content_hash message_id branch visit call semantic_actor semantic_purpose context_hashes estimated_tokens tokens_cached
tokens_written is_callout callout_name full_history_size context_size tokens_saved tokens_masked
"""


@pytest.fixture(scope="module")
def seen(observe: Callable[[str], Observed]) -> Observed:
    return observe("tables")


def test_every_record_of_every_run_is_ingested_once(seen: Observed) -> None:
    assert seen["records"] == seen["written"]
    assert seen["refused"] == {}
    assert seen["again: records"] == 0


@pytest.mark.parametrize(
    "how",
    ["again", "lost ledger", "out of order and twice", "one batch", "migrated"],
)
def test_the_rows_are_the_same(seen: Observed, how: str) -> None:
    assert seen[f"{how}: same"] is True


def test_the_view_names_the_messages_of_each_request(seen: Observed) -> None:
    assert seen["contexts as sent"] == [True] * len(seen["contexts as sent"])
    assert len(seen["contexts as sent"]) > 5


def test_without_a_ledger_everything_is_sent_again(seen: Observed) -> None:
    assert seen["lost ledger: records"] == seen["records"]


def test_row_classes_and_tables_have_the_same_columns(seen: Observed) -> None:
    assert seen["row types"] == seen["columns"]


def test_the_view_has_all_columns_of_the_seeds_and_ours(seen: Observed) -> None:
    assert set(SEED_004.split()) | set(OURS.split()) <= set(seen["view columns"])
    assert seen["all_data columns"] == seen["view columns"]


def test_a_removed_run_leaves_no_rows_and_the_others_stay(seen: Observed) -> None:
    assert seen["removed: runs"] == ["run-1"]
    assert seen["removed: sessions"] == ["test"]
    assert seen["removed: notes"] == []


def test_a_run_that_makes_no_sense_is_named_and_hinders_no_other(seen: Observed) -> None:
    assert seen["bad run"] == {"refused": ["nonsense"], "fault": "", "other": seen["written in one"]}
