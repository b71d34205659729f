"""CONTRIBUTING.md names places and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
CODE = re.compile(r"`([^`]+)`")


def rows() -> dict[str, tuple[str, str]]:
    """Places and tests by the thing to add."""
    table = TEXT.partition("## How to add")[2]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {thing: (places, tests) for thing, places, tests in cells[1:]}


def paths(text: str) -> list[str]:
    return [found for found in CODE.findall(text) if "/" in found]


def test_the_table_has_a_row_for_everything_that_one_adds() -> None:
    assert {thing.partition(" (")[0] for thing in rows()} == {
        *("context strategy part", "check of a cascade", "field of the language", "built-in tool", "command", "key"),
        *("screen", "view", "setting", "importer", "exporter", "event of a journal", "section of a form", "example"),
        "column of the SQL tables",
    }


@pytest.mark.parametrize("thing", rows())
def test_every_place_and_test_of_a_row_exists(thing: str) -> None:
    places, tests = rows()[thing]
    assert paths(places)
    assert [path for path in paths(places) if not (ROOT / path).exists()] == []
    assert paths(tests)
    for test in paths(tests):
        assert "\ndef test_" in (ROOT / test).read_text("utf-8"), test


@pytest.mark.parametrize("table", re.findall(r"`([A-Z_]{2,})` of `", TEXT))
def test_every_table_that_is_named_is_in_its_file(table: str) -> None:
    file = re.search(rf"`{table}` of `([^`]+)`", TEXT)
    assert file is not None
    assert re.search(rf"^{table}\b", (ROOT / file[1]).read_text("utf-8"), re.MULTILINE)
