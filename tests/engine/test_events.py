"""The table of events: what a run may write, and that a reader checks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench
from workbench.engine.journal.event import KINDS, Event
from workbench.engine.journal.shapes import problem_of
from workbench.resources import folder

BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
EMITTED = re.compile(r"emit\(\s*\"(\w+)\"")
ANYTHING = {
    ("edited", "before"),
    ("edited", "after"),
    ("human_asked", "options"),
    ("human_asked", "candidates"),
    ("tool_finished", "value"),
    ("state_set", "value"),
    ("blob", "body"),
    ("context_selected", "offered"),
    ("candidate_finished", "kind"),
    ("hook", "index"),
}
"""Fields that hold values of any type, or that nothing reads."""


def fields_of(kind: str) -> list[str]:
    """The names in the row of a kind."""
    text = KINDS[kind]
    while (shorter := BRACKETS.sub("", text)) != text:
        text = shorter
    return [name for part in re.split(r"[,;]| and ", text) if re.fullmatch(r"\w+", name := part.strip())]


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_of_a_wrong_type_is_told(kind: str) -> None:
    for name in fields_of(kind):
        event = Event(1, "2026-01-01T00:00:00.000000Z", "r", kind, data={name: object()})
        if (kind, name) not in ANYTHING:
            assert problem_of(event), f"'{name}' of {kind} needs a type in workbench/engine/journal/shapes.py"


def test_every_kind_that_is_written_is_in_the_table() -> None:
    files = Path(workbench.__path__[0]).rglob("*.py")
    written = {kind for file in files for kind in EMITTED.findall(file.read_text("utf-8"))}
    assert len(written) > 15
    assert written <= KINDS.keys()


def records(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and data of every event in a snapshot: a list of time, kind, place and data."""
    if (
        isinstance(value, list)
        and len(value) == 4
        and isinstance(value[1], str)
        and value[1] in KINDS
        and isinstance(value[3], dict)
    ):
        yield value[1], value[3]
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from records(inner)


def test_every_field_that_the_examples_write_is_in_the_table() -> None:
    files = (folder("cascades").parent / "snapshots").glob("*.json")
    written = {(kind, name) for file in files for kind, data in records(json.loads(file.read_bytes())) for name in data}
    assert len(written) > 100
    assert sorted(each for each in written if not re.search(rf"\b{each[1]}\b", KINDS[each[0]])) == []
