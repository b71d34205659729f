"""All rows that runs make in the index, as they are stored: what a test about one column leaves out shows here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from tests.engine.support import play
from tests.store.examples import Writer, candidate_run, rich_run
from tests.store.test_rows import rows_of
from tests.support.stored import check_stored
from tests.ui.support import triage_story
from tests.ui.test_candidates import contested
from tests.ui.test_graphs import REVIEW
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.store.index.tables import EventRow, TableRow

STORED = Path(__file__).parent / "stored"
LONG = 100
SAME = {
    *("session_id", "trace_id", "parent_id", "cascade_id", "cascade_file", "run_id", "message_id", "timestamp"),
    *("species_hash", "body_hash"),
}
"""Columns that the other runs show."""


def walked() -> Sequence[Event]:
    told = {"plan": ["a"] * 2, "code": ["b"] * 2, "docs": ["c"] * 2, "check": ["no\noutcome=fail", "outcome=success"]}
    return play(REVIEW, told, answers=["a"]).events


def rare_run() -> Sequence[Event]:
    """A journal of the records that the other runs do not have."""
    w = Writer()
    phase, turn = Place("", "look", 1), Place("", "look", 1, 1, 1, 1)
    answer = Message("assistant", "Found.")
    added = [{"m": answer.body_hash, "kind": "answer", "place": str(turn)}]
    return [
        w.event(
            "run_started",
            session_id="rare",
            cascade_id="c",
            cascade_file="c.yaml",
            input={"q": "ü"},
            parent={"kind": "fork"},
        ),
        w.event("phase_started", phase, kind="llm", model="m", tools=["t"]),
        w.event("tool_started", phase, index=1, tool="sql_data", arguments='{"query": "SELECT 1"}', side_effects=False),
        w.event(
            "tool_finished",
            phase,
            index=1,
            tool="sql_data",
            text="1",
            is_error=False,
            added=[],
            duration_s=0.5,
            sandbox="in process",
            images=[{"digest": "a" * 64, "media_type": "image/png", "size": 3}],
        ),
        w.event(
            "hook", phase, type="phase_start", index=1, number=2, name="house rule", text="Mind it.", action="inject"
        ),
        w.event("context_assembled", turn, tokens_sent=10, request={"model": "m"}, digest="d1"),
        w.event("call_started", turn, digest="d1", model="m"),
        w.event(
            "call_failed",
            turn,
            digest="d1",
            error={"kind": "server", "message": "broken"},
            retry_in=1.0,
            purpose="turn",
            **{"try": 1},
        ),
        w.body(answer),
        w.event(
            "call_finished",
            turn,
            digest="d1",
            usage={"input": 10, "output": 5},
            model="m-1",
            provider="p",
            provider_id="resp_1",
            first_token_s=0.25,
            duration_s=1.5,
            finish_reason="stop",
            added=added,
        ),
        w.event("cost_known", turn, cost=0.25, cost_grade="billed"),
        w.event("audible", turn, index=1, text="Hurry.", redo=True),
        w.event("human_asked", turn, index=1, question="Go on?"),
        w.event("human_answered", turn, index=1, answer="yes", timed_out=True),
        w.event("check_finished", turn, check="ward", name="polite", valid=False, reason="rude", score=0.5, index=1),
        w.event("check_finished", turn, check="loop_until", name="done", valid=True, index=2),
        w.event("phase_finished", phase, status="stopped", output="Found.", reason="r", check="wards"),
        w.event("run_finished", status="stopped", reason="stopped by the user", output="Found.", state={"n": 1}),
        w.event("run_resumed", ports={"model": "live"}),
        w.event("run_finished", status="blocked", output=""),
    ]


RUNS: dict[str, Callable[[], Sequence[Event]]] = {
    "rich": rich_run,
    "winner": candidate_run,
    "story": lambda: triage_story(finished=True).events,
    "candidates": lambda: contested().events,
    "pipeline": walked,
    "rare": rare_run,
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
    if name == "rare":
        rows = [{column: value for column, value in row.items() if column not in SAME} for row in rows]
    check_stored(STORED / f"rows-{name}.json", "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
