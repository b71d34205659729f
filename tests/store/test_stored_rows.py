"""All rows that runs make in the index, as they are stored: what a test about one column leaves out shows here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from tests.engine.support import play
from tests.store.examples import candidate_run, rich_run
from tests.store.test_rows import rows_of
from tests.support.stored import check_stored
from tests.ui.support import triage_story
from tests.ui.test_candidates import contested
from tests.ui.test_graphs import REVIEW
from workbench.engine.journal.event import Event
from workbench.store.index.tables import EventRow, TableRow

STORED = Path(__file__).parent / "stored"
LONG = 100


def walked() -> Sequence[Event]:
    told = {"plan": ["a"] * 2, "code": ["b"] * 2, "docs": ["c"] * 2, "check": ["no\noutcome=fail", "outcome=success"]}
    return play(REVIEW, told, answers=["a"]).events


RUNS: dict[str, Callable[[], Sequence[Event]]] = {
    "rich": rich_run,
    "winner": candidate_run,
    "story": lambda: triage_story(finished=True).events,
    "candidates": lambda: contested().events,
    "pipeline": walked,
}


def told(row: TableRow) -> dict[str, Any]:
    """The columns that hold something; long texts by their beginning."""
    found: dict[str, Any] = {"table": type(row).__name__}
    for column in fields(row):
        value = getattr(row, column.name)
        if value not in ("", None, 0, (), []):
            text = value if isinstance(value, bool | int | float) else str(value)
            found[column.name] = f"{text[:LONG]}… {len(text)}" if isinstance(text, str) and len(text) > LONG else text
    return found


@pytest.mark.parametrize("name", RUNS)
def test_rows_of_a_run_are_the_stored_ones(name: str) -> None:
    # Rows of events are the journal once more: one run has them all.
    rows = [told(row) for row in rows_of(RUNS[name]()) if name == "rich" or not isinstance(row, EventRow)]
    check_stored(STORED / f"rows-{name}.json", "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
