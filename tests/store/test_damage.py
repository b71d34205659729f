"""Damaged parts, tables and journals: named, and brought back from what is whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.store.conftest import Observed

HEALTHY = {"ok": True, "problems": [], "notices": []}


@pytest.fixture(scope="module")
def seen(observe: Callable[[str], Observed]) -> Observed:
    return observe("damage")


def test_a_healthy_store_has_no_problems_and_all_rows(seen: Observed) -> None:
    assert seen["healthy"] == HEALTHY
    assert seen["rows per run"] == [[written] * 3 for written in seen["written"]]


def test_the_engine_catches_no_signal_but_the_interrupt(seen: Observed) -> None:
    assert seen["signals"] == [2]


@pytest.mark.fault("F14")
def test_a_part_that_was_set_aside_is_named_and_a_rebuild_restores_it(seen: Observed) -> None:
    assert not seen["cut part"]["ok"]
    assert "messages/broken-on-start" in seen["cut part"]["problems"][0]
    assert seen["after rebuild"] == [HEALTHY, True]


@pytest.mark.fault("F13")
def test_a_flipped_bit_fails_the_check_of_its_table(seen: Observed) -> None:
    assert "table messages: part" in seen["flipped bit"]["problems"][0]
    assert "Checksum mismatch" in seen["flipped bit"]["problems"][0]


def test_a_database_that_cannot_be_opened_is_moved_aside_and_made_again(seen: Observed) -> None:
    for said in (seen["broken table"]["problems"][0], seen["index says"]):
        assert said.startswith("the index cannot be opened: Syntax error (in file ")
        assert "messages.sql" in said
    assert seen["moved aside"] is True
    assert seen["after moving"] == [HEALTHY, True]


@pytest.mark.fault("F12")
def test_a_torn_end_is_a_notice_and_is_moved(seen: Observed) -> None:
    assert seen["torn"]["ok"] is True
    assert seen["torn"]["notices"] == [
        f"run run-2: 000001.jsonl ends in a torn record at byte {seen['size']} (12 bytes ignored)"
    ]
    assert seen["fixed"] == ["run run-2: 12 bytes of 000001.jsonl moved to 000001.jsonl.torn"]
    assert seen["after fix"] == [HEALTHY, ["000001.jsonl.torn"]]


@pytest.mark.fault("F13")
def test_a_damaged_journal_is_named_by_byte_and_the_rest_is_readable(seen: Observed) -> None:
    assert not seen["damaged journal"]["ok"]
    assert f"000001.jsonl damaged at byte {seen['second record']}: " in seen["damaged journal"]["problems"][0]
    assert seen["readable"] == "success"
    assert seen["rebuilt without the lost record"] == sum(seen["written"]) - 1


@pytest.mark.fault("F2")
def test_after_power_loss_the_last_moment_may_be_missing_and_the_store_is_whole(seen: Observed) -> None:
    lost = seen["power loss"]
    assert (lost["opened"], lost["events lost"]) == (1, 1)
    assert lost["rows"] == lost["records"]
    assert any("ends in a torn record" in notice for notice in lost["torn"])


@pytest.mark.fault("F11")
def test_a_database_of_a_newer_program_is_read_and_not_written(seen: Observed) -> None:
    newer = seen["newer schema"]
    assert "is only read" in newer["notice"]
    assert (newer["new rows"], newer["old rows"]) == (0, 2)
    assert "is only read" in seen["rebuilt progress"][0]
