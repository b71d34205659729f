"""Strategies: what the file writes, how specs are read, laid over each other and spread into grids."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import workbench
from tests.context.support import cascade
from workbench.context import parts
from workbench.context.part import Part
from workbench.context.strategy import FROM_FILE, PARTS, SpecError, Strategy, completed, grid, parse, with_named


def written(phase: dict[str, Any], **fields: Any) -> str:
    definition = cascade({"name": "first"}, {"name": "work", **phase}, **fields)
    return str(Strategy.of(definition, definition.phases[1]))


@pytest.mark.parametrize(
    ("phase", "fields", "spec"),
    [
        ({}, {}, "selective"),
        ({"context": {"from": []}}, {"context_default": "snowball"}, "selective"),
        ({}, {"context_default": "snowball"}, "snowball"),
        ({"inject_from": ["first"]}, {}, "inject"),
        ({"inject_from": ["first"], "context": {}}, {}, "selective"),
        (
            {"intra_context": {"mask_observations_after": 1, "compress_loops": False}},
            {},
            "selective+mask(after=1,window=5,min_masked_size=200)",
        ),
        ({"intra_context": {"enabled": False}}, {}, "selective"),
        ({}, {"auto_context": {"inter_phase": {}}}, "selective"),
        (
            {"intra_context": {"step": 2}},
            {"auto_context": {"intra_phase": {"window": 9, "step": 4, "loop_history_limit": 1}}},
            "selective+mask(after=3,window=9,min_masked_size=200,step=2)+loop(limit=1)",
        ),
        ({"intra_context": {"enabled": False}}, {"auto_context": {"intra_phase": {}}}, "selective"),
        (
            {"intra_context": {"compress_loops": False}},
            {"auto_context": {"intra_phase": {"enabled": False}}},
            "selective+mask(after=3,window=5,min_masked_size=200)",
        ),
        ({}, {"token_budget": {"strategy": "fail"}}, "selective+budget(max=100000,mode=fail)"),
        ({"strategy": "slide(turns=2)"}, {"token_budget": {}}, "selective+slide(turns=2)+budget(max=100000)"),
        ({"strategy": "snowball", "intra_context": {}}, {}, "snowball"),
        ({"strategy": "lean"}, {"strategies": {"lean": "snowball+mask(2)"}}, "snowball+mask(after=2)"),
        ({"strategy": "slide(1)"}, {"strategy": "snowball"}, "selective+slide(turns=1)"),
        ({}, {"strategy": "clear(trigger=9)"}, "selective+clear(trigger=9)"),
    ],
)
def test_the_strategy_of_a_file(phase: dict[str, Any], fields: dict[str, Any], spec: str) -> None:
    assert written(phase, **fields) == spec


def test_a_strategy_of_the_file_is_the_rule_of_what_it_decides() -> None:
    definition = cascade({"name": "work", "strategy": "slide(turns=2)"})
    (slide,) = Strategy.of(definition, definition.phases[0]).survives
    assert slide.written == {"*": ("phases", 0, "strategy")}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spec", "means"),
    [
        ("mask", "mask(after=3)"),
        (" selective + mask( after = 3 ) ", "selective+mask(after=3)"),
        ("mask(2)", "mask(after=2)"),
        ("slide:4", "slide(turns=4)"),
        ("mask(window=none,step=2)", "mask(after=3,step=2)"),
        ("mask(after=none,window=2,preserve_errors=FALSE)", "mask(after=none,window=2,preserve_errors=false)"),
        ("budget(max=none,warn=0.5,mode=prune_oldest)", "budget(max=none,mode=prune_oldest,warn=0.5)"),
        ("clear(trigger=100_000)", "clear(trigger=100000)"),
        ("snowball()", "snowball"),
        ("budget+loop+selective", "selective+loop(limit=3)+budget(max=100000)"),
    ],
)
def test_specs_are_read_and_written_back(spec: str, means: str) -> None:
    assert str(parse(spec)) == means
    assert parse(means) == parse(spec)


@pytest.mark.parametrize(
    ("spec", "column", "message"),
    [
        ("", 1, "the name of a strategy is missing before the end"),
        ("masc(after=3)", 1, "'masc' is not a strategy (did you mean 'mask'?)"),
        ("selective+", 11, "the name of a strategy is missing before the end"),
        ("mask(aftr=3)", 6, "mask has no parameter 'aftr' (did you mean 'after'?)"),
        ("mask+budget(max=3000)", 6, "budget: max (3,000) leaves no room beside reserve (4,000)"),
        ("mask(after=x)", 12, "mask: after must be a whole number or none, got 'x'"),
        ("mask(after=-1)", 12, "mask: after must be a whole number or none, got '-1'"),
        ("mask(step=0)", 1, "mask: step must be at least 1, got 0"),
        ("mask(after=3", 13, "')' or ',' is missing"),
        ("mask(after=3 4)", 14, "')' or ',' is missing"),
        ("mask(after=)", 12, "a value is missing before ')'"),
        ("mask(after=1,after=2)", 14, "'after' is given twice"),
        ("mask)x", 5, "')' is not expected here (parts are joined by '+')"),
        ("snowball(2)", 10, "snowball takes no parameters"),
        ("loop(1,2)", 8, "loop takes 1 parameters (limit)"),
        ("selective+snowball", 11, "'snowball' and 'selective' both say what enters (name one of them)"),
        (
            "budget(mode=none)",
            13,
            "budget: mode must be sliding_window or prune_oldest or summarize or fail, got 'none'",
        ),
        ("mask(after=1..8)", 12, "several values are a grid, for sweep; here one is expected"),
    ],
)
def test_a_spec_that_cannot_be_read_is_told_with_its_column(spec: str, column: int, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(spec)
    assert str(caught.value) == f"strategy '{spec}', column {column}: {message}"


@pytest.mark.parametrize(
    ("begun", "offered"),
    [
        ("sel", "selective"),
        ("selective+m", "selective+mask"),
        ("selective+mask", "selective+mask("),
        ("selective+mask(", "selective+mask(after="),
        ("selective+mask(after=3, st", "selective+mask(after=3, step="),
        ("selective+mask(after=3", ""),
        ("selective+mask(after=3)", ""),
        ("selective+mask(nothing", ""),
        ("unknown(af", ""),
    ],
)
def test_a_spec_that_is_being_written_is_completed(begun: str, offered: str) -> None:
    assert next(iter(completed(begun)), "") == offered


def test_a_grid_is_every_combination() -> None:
    assert [str(strategy) for strategy in grid("selective+mask(after=1..2,step=[1,5])")] == [
        "selective+mask(after=1)",
        "selective+mask(after=1,step=5)",
        "selective+mask(after=2)",
        "selective+mask(after=2,step=5)",
    ]
    assert grid("snowball") == (parse("snowball"),)


@pytest.mark.parametrize("spec", ["mask(after=8..1)", "mask(after=1..99999)", "mask(after=1..200,step=1..200)"])
def test_a_grid_that_makes_no_sense_is_refused(spec: str) -> None:
    with pytest.raises(SpecError):
        grid(spec)


def test_named_strategies_are_known_by_name() -> None:
    known = with_named({"lean": "selective+mask(after=1)"})
    assert (known("lean").name, known("lean"), known("snowball")) == (
        "lean", parse("selective+mask(after=1)"), parse("snowball"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("evrything", "did you mean 'everything'?"),
        ("snowbal", "did you mean 'snowball'?"),
        ("qqq", f"the file names everything, lean; one of {', '.join(PARTS)}"),
        ("qqq+mask(after=1)", f"one of {', '.join(PARTS)}"),
    ],
)
def test_a_wrong_name_is_told_with_the_names_of_the_file(spec: str, hint: str) -> None:
    known = with_named({"everything": "snowball", "lean": "selective+mask(after=1)"})
    with pytest.raises(SpecError) as caught:
        known(spec)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("over", "result"),
    [
        ("snowball", "snowball+budget(max=9000)"),
        ("mask(after=1)", "selective+mask(after=1)+budget(max=9000)"),
        ("budget(max=5000)", "selective+mask(after=3)+loop(limit=3)+budget(max=5000)"),
        ("selective+slide(1)", "selective+slide(turns=1)+budget(max=9000)"),
    ],
)
def test_a_strategy_is_laid_over_the_files_own(over: str, result: str) -> None:
    assert str(parse(over).over(parse("selective+mask(after=3)+loop+budget(max=9000)"))) == result


def test_a_broken_strategy_of_the_file_is_an_error_of_its_own() -> None:
    with pytest.raises(SpecError, match="column 6"):
        written({"strategy": "mask(x=1)"})


def refined(kind: type[Part]) -> Iterator[type[Part]]:
    """All classes of the workbench below one; other tests may have loaded parts of their own."""
    for below in kind.__subclasses__():
        if below.__module__.startswith(f"{workbench.__name__}."):
            yield below
        yield from refined(below)


def test_every_part_can_be_named_and_is_read_from_files_that_write_it() -> None:
    for module in pkgutil.iter_modules(parts.__path__, f"{parts.__name__}."):
        importlib.import_module(module.name)
    found = {kind for kind in refined(Part) if hasattr(kind, "NAME")}
    assert found == set(PARTS.values()), "a part needs a row in PARTS"
    read = [kind.from_file for kind in found if hasattr(kind, "from_file")]
    assert [each for each in read if each not in FROM_FILE] == [], "a part with from_file needs a row in FROM_FILE"


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_described_and_its_defaults_read_back(name: str) -> None:
    assert (PARTS[name].__doc__ or "").strip()
    assert str(parse(str(parse(name)))) == str(parse(name))
