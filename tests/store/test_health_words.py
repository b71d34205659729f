"""What is said of a store that is not well, and tables that are cut."""

from __future__ import annotations

import pytest

from workbench.store.index.health import DatabaseHealth, RunHealth
from workbench.store.index.rebuild import VERSION
from workbench.store.index.table import Column, ResultTable
from workbench.store.journal.reading import Fault, Health

TORN = Fault("000001.jsonl", 40, 3, "torn")
LOST = Health(
    damaged=(Fault("000002.jsonl", 7, 5, "its checksum is another one"),),
    missing=((3, 4),),
    lost_bodies=("abcdefghijklmnop",),
    shorter=(("000003.jsonl", 9),),
    torn=(TORN,),
)


@pytest.mark.parametrize(
    ("found", "problems", "notices"),
    [
        (RunHealth("r", Health(), None, ingested=5), (), ()),
        (RunHealth("r", Health(), None, ingested=5, rows=5), (), ()),
        (RunHealth("r", Health(), None, ingested=5, rows=6), (), ()),
        (RunHealth("r", Health(), None, ingested=5, rows=3), ("run r: 2 of 5 rows are missing",), ()),
        (RunHealth("r", Health(), None, unsaid=1), ("run r: 1 line of annotations.jsonl is damaged",), ()),
        (RunHealth("r", Health(), None, unsaid=2), ("run r: 2 lines of annotations.jsonl are damaged",), ()),
        (
            RunHealth("r", LOST, None),
            (
                "run r: 000002.jsonl damaged at byte 7: its checksum is another one (5 bytes)",
                "run r: records 3 to 4 are missing",
                "run r: blobs/abcdefghijkl… is missing or altered",
                "run r: 000003.jsonl has lost its end (9 bytes)",
            ),
            ("run r: 000001.jsonl ends in a torn record at byte 40 (3 bytes ignored)",),
        ),
    ],
)
def test_a_run_says_what_is_lost_and_apart_what_a_crash_left(
    found: RunHealth, problems: tuple[str, ...], notices: tuple[str, ...]
) -> None:
    assert (found.problems, found.notices) == (problems, notices)


@pytest.mark.parametrize(
    ("found", "problems"),
    [
        (DatabaseHealth("1", 0), ()),
        (DatabaseHealth("1", VERSION), ()),
        (
            DatabaseHealth("1", VERSION + 1),
            (f"the index has schema {VERSION + 1}, this program knows {VERSION}",),
        ),
        (
            DatabaseHealth("1", VERSION, ("events/all_1 (broken)",), ("runs: part x is damaged: y",)),
            (
                "part events/all_1 (broken) is damaged and was set aside; 'doctor --rebuild' restores it",
                "table runs: part x is damaged: y; 'doctor --rebuild' restores it",
            ),
        ),
    ],
)
def test_an_index_says_what_is_damaged(found: DatabaseHealth, problems: tuple[str, ...]) -> None:
    assert found.problems == problems


def test_a_table_is_cut_to_its_first_rows_and_says_so() -> None:
    table = ResultTable((Column("n", "UInt8"),), ((1,), (2,), (3,)))
    assert [(one.rows, one.cut) for one in map(table.first, (2, 3, 4))] == [
        (((1,), (2,)), True),
        (((1,), (2,), (3,)), False),
        (((1,), (2,), (3,)), False),
    ]
