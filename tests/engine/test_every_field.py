"""Every field of the language changes what a run does: the inventory, taken from the models themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.effect_cases import CASES, NAMED
from tests.engine.effects import Case, proved
from tests.support.equal_runs import comparable
from tests.support.stored import check_stored
from workbench.language.model.base import Model
from workbench.language.model.cascade import Cascade
from workbench.language.model.shape import shape

TESTS = Path(__file__).parents[1]


def fields(model: type[Model], within: tuple[type[Model], ...] = ()) -> Iterator[tuple[str, str]]:
    """``Model.field`` and tier of all that a cascade may say."""
    for field in shape(model).values():
        yield f"{model.__name__}.{field.attribute}", field.tier
        if field.model is not None and field.model not in within:
            yield from fields(field.model, (*within, model))


FIELDS = dict(fields(Cascade))


def test_every_field_that_runs_has_a_row_or_a_test_of_its_own() -> None:
    rows = {name for case in CASES for row in case.rows for name in proved(row)}
    assert {name for name, tier in FIELDS.items() if tier != "2·load"} <= rows | NAMED.keys()
    assert rows | NAMED.keys() <= FIELDS.keys()
    assert not {name for name in rows | NAMED.keys() if FIELDS[name] == "2·load"}


@pytest.mark.parametrize("field", NAMED)
def test_a_test_that_is_named_exists_and_writes_the_field(field: str) -> None:
    file, _, name = NAMED[field].partition("::")
    text = (TESTS / file).read_text(encoding="utf-8")
    assert name in {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert field.rpartition(".")[2] in text or "lint" in file


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.document()["cascade_id"])
def test_each_field_of_a_row_shows_in_the_run(case: Case) -> None:
    before = case.run(case.document())
    told = re.sub(r"[0-9a-f]{56}\b", "…", re.sub(r'"version": "[^"]*"', '"version": "…"', before))
    lines = [line for line in told.splitlines() if not line.startswith("blob ")]
    check_stored(Path(__file__).parent / "stored" / f"{case.document()['cascade_id']}.txt", "\n".join(lines) + "\n")
    for row in case.rows:
        path, value, words = row
        after = case.run(case.changed(row))
        about = f"{path}: {value!r}"
        if words.startswith("~"):
            assert words[1:] in before, about
            assert words[1:] not in after, about
        elif words:
            assert words in after, about
            assert words not in before, about
        else:
            assert after != before, about


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.document()["cascade_id"])
def test_a_journal_does_not_depend_on_which_candidate_is_faster(case: Case) -> None:
    document = case.document()
    if document["cascade_id"] in ("weighed", "children"):
        document["soundings"] = {"factor": 3, "reforge": {"honing_prompt": "h"}}
    journals = [comparable(case.play(document, seed).events) for seed in (1, 2)]
    assert journals[0] == journals[1]
