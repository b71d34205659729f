"""The table of what no run executes: it is complete, and it is quiet where nothing is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.language.lint.examples.example import whole
from workbench.language.lint.not_run import NOT_RUN, NotRun, not_run
from workbench.language.load import load
from workbench.language.model.base import Model
from workbench.language.model.cascade import Cascade
from workbench.language.model.shape import shape
from workbench.language.problem import Problem, path_text


def told(text: str) -> list[Problem]:
    loaded = load(whole(text))
    assert loaded.cascade is not None, loaded.problems
    return list(not_run(loaded.cascade, loaded.source))


def fields(model: type[Model], prefix: str = "", within: tuple[type[Model], ...] = ()) -> Iterator[tuple[str, str]]:
    """Each field of the language as the table writes it, with its tier."""
    for field in shape(model).values():
        path = f"{prefix}{field.attribute}"
        yield path, field.tier
        if field.model is not None and field.model not in within:
            step = {"one": path, "list": f"{path}[]", "map": f"{path}.*"}[field.holds]
            yield from fields(field.model, f"{step}.", (*within, model))


FIELDS = dict(fields(Cascade))


def test_every_field_that_only_loads_is_in_the_table_or_inside_one_that_is() -> None:
    rows = {row.field for row in NOT_RUN if row.only is None}
    # Without its mode (key: custom, on_timeout: escalate) such a field is not asked for, and the row of the mode tells.
    by_mode = {"tool_caching.tools.*.custom_key_fn", "phases[].human_input.escalate_to"}
    missing = {
        path
        for path, tier in FIELDS.items()
        if tier == "2·load"
        and not path.startswith("phases[].on_error.")
        and path not in by_mode
        and not any(path == row or path.startswith((f"{row}.", f"{row}[]")) for row in rows)
    }
    assert not missing


@pytest.mark.parametrize("row", NOT_RUN, ids=lambda row: row.field)
def test_every_row_names_a_field_of_the_language(row: NotRun) -> None:
    assert row.field in FIELDS
    assert row.consequence


def test_a_field_is_told_at_its_key_with_what_happens_instead() -> None:
    (problem,) = told("cascade_id: c\nnarrator: {voice_id: v}\nphases: [{name: a, instructions: x}]")
    assert problem.message == "'narrator' is not run yet: no narration"
    assert (problem.span.line, problem.span.column) == (2, 1)


def test_each_place_is_told_once_in_the_order_of_the_file() -> None:
    problems = told(
        "- {name: a, instructions: x, browser: {}, narrator: true}\n- {name: b, instructions: x, browser: {}}"
    )
    assert [path_text(p.path) for p in problems] == ["phases[0].browser", "phases[0].narrator", "phases[1].browser"]


@pytest.mark.parametrize("more", ["narrator: false", "narrator: {enabled: false}", "browser: null", "ui_mode: ''"])
def test_what_is_switched_off_is_not_told(more: str) -> None:
    assert told(f"- {{name: a, instructions: x, {more}}}") == []


def test_a_value_is_told_only_where_it_asks_for_it() -> None:
    field = "- {{name: a, instructions: x, human_input: {{prompt: p, type: {}}}}}"
    assert not [p for p in told(field.format("text")) if "type" in path_text(p.path)]
    drawn = told(field.format("htmx"))
    assert any(path_text(p.path).startswith("phases[0].human_input") for p in drawn)


def test_a_phase_written_in_place_on_error_is_told_too() -> None:
    problems = told("- {name: a, tool: create_chart, on_error: {instructions: x, narrator: true}}")
    assert "phases[0].on_error.narrator" in {path_text(p.path) for p in problems}
