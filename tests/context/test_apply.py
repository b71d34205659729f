"""A strategy written into a file: the phases then have it, and nothing else of the text has changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.context.apply import ApplyError, apply
from workbench.context.strategy import Strategy, parse
from workbench.language.lint.linter import check
from workbench.language.load import load
from workbench.language.problem import Path
from workbench.language.read.text import read_source

YAML = """\
# A file with a layout of its own.
cascade_id: c   # its name

phases:
  - name: dig
    instructions: |
      Dig.

      # not a comment
    tackle: [read_file]        # one tool
    intra_context:
      # Old results go first.
      mask_observations_after: 4   # turns
      preserve_errors: false
    rules:   {max_turns: 9}
  - name: tell
    instructions: "Tell."
    context: {from: [dig]}
# The end.
"""
JSON = """\
{
  "cascade_id": "c",
  "phases": [
    {"name": "dig", "instructions": "Dig.", "tackle": ["read_file"],
     "intra_context": {"mask_observations_after": 4,  "preserve_errors": false}},
    {
      "name":   "tell", "instructions": "Tell.", "context": {"from": ["dig"]}
    }
  ]
}
"""
FILES = {"c.yaml": YAML, "c.json": JSON}

turns = st.integers(0, 9)
masks = st.builds(
    "mask(after={},window={},min_masked_size={},step={},clear_at_least={},preserve_errors={})".format,
    turns,
    st.one_of(turns, st.just("none")),
    st.sampled_from([0, 200]),
    st.integers(1, 6),
    st.sampled_from([0, 500]),
    st.sampled_from(["true", "false"]),
)
loops = st.builds("loop(limit={})".format, turns)
slides = st.builds("slide(turns={})".format, turns)
clears = st.builds("clear(trigger={},keep={})".format, st.integers(0, 9000), turns)
budgets = st.builds("budget(max={},reserve={})".format, st.integers(501, 90000), st.integers(0, 500))
survivors = st.one_of(masks, st.tuples(masks, loops).map("+".join), loops, slides, clears)
specs = st.builds(
    lambda parts: "+".join(part for part in parts if part),
    st.tuples(st.sampled_from(["", "selective", "snowball"]), survivors, st.one_of(st.just(""), budgets)),
)


def own(text: str, file: str) -> dict[str, Strategy]:
    cascade = load(text, file).cascade
    assert cascade is not None
    return {phase.name: Strategy.of(cascade, phase) for phase in cascade.phases}


def checked(text: str, file: str) -> set[str]:
    """Codes of all that check says."""
    return {problem.code for problem in check(load(text, file))}


def without(data: Any, paths: tuple[Path, ...]) -> Any:
    """The data with nothing at these paths, nor in the containers that were made for them."""
    rest = copy.deepcopy(data)
    for path in paths:
        holder = rest
        for part in path[:-1]:
            holder = holder[part] if not isinstance(holder, dict) or part in holder else {}
        if isinstance(holder, dict):
            holder.pop(path[-1], None)
    return rest


@pytest.mark.parametrize("file", FILES)
@given(spec=specs, phases=st.sampled_from([{"dig"}, {"tell"}, {"dig", "tell"}]))
def test_the_file_then_says_what_was_chosen_and_all_else_stays(file: str, phases: set[str], spec: str) -> None:
    text, strategy = FILES[file], parse(spec)
    before = own(text, file)
    result = apply(text, file, strategy, phases)
    after = own(result.text, file)
    for name, had in before.items():
        wanted = strategy.over(had) if name in phases or strategy.fits is not None else had
        assert after[name] == wanted
    old, new = read_source(text, file)[0].data, read_source(result.text, file)[0].data
    assert without(old, result.paths) == without(new, result.paths)
    kept = result.text.splitlines()
    for line in text.splitlines():
        if "#" in line and "mask_observations_after" not in line:
            assert line in kept
    again = apply(result.text, file, strategy, phases)
    assert again.text == result.text
    assert again.paths == ()


def test_masking_goes_into_the_fields_that_mean_it_with_every_value() -> None:
    result = apply(YAML, "c.yaml", parse("mask(after=2,window=7,step=3)"), {"dig"})
    added = [line.strip() for line in result.text.splitlines() if line not in YAML.splitlines()]
    assert added == [
        "mask_observations_after: 2   # turns",
        "preserve_errors: true",
        "window: 7",
        "min_masked_size: 0",
        "step: 3",
        "clear_at_least: 0",
        "compress_loops: false",
    ]


@pytest.mark.parametrize("spec", ["slide(turns=3)", "clear(trigger=500)", "loop(limit=2)", "mask(after=3,window=none)"])
def test_what_has_no_field_is_written_as_a_strategy(spec: str) -> None:
    result = apply(YAML, "c.yaml", parse(spec), {"dig"})
    assert result.paths == (("phases", 0, "strategy"), ("phases", 0, "intra_context"))
    assert parse(read_source(result.text, "c.yaml")[0].data["phases"][0]["strategy"]) == parse(spec)


def test_a_strategy_that_stands_there_is_replaced_in_place() -> None:
    text = YAML.replace("    tackle:", "    strategy: slide(turns=2)   # for now\n    tackle:")
    result = apply(text, "c.yaml", parse("mask(after=2,window=7)"), {"dig"})
    assert '    strategy: "mask(after=2,window=7)"   # for now' in result.text.splitlines()


@pytest.mark.parametrize(
    "stands", ["snowball", "snowball+budget(max=9000)", "all of it", "slide(turns=2)+budget(max=9000)"]
)
@pytest.mark.parametrize("at", ["phase", "cascade"])
@pytest.mark.parametrize("phases", [{"dig"}, {"dig", "tell"}])
def test_what_the_new_strategy_leaves_open_stays_as_the_one_that_stands_there_says(
    stands: str, at: str, phases: set[str]
) -> None:
    text = (
        YAML
        + f"strategies: {{all of it: snowball+budget(max=7000)}}\n{f'strategy: {stands}' if at == 'cascade' else ''}\n"
    )
    if at == "phase":
        text = text.replace("    tackle:", f"    strategy: {stands}\n    tackle:")
    before, chosen = own(text, "c.yaml"), parse("mask(after=2)")
    after = own(apply(text, "c.yaml", chosen, phases).text, "c.yaml")
    assert after == {name: chosen.over(had) if name in phases else had for name, had in before.items()}


@pytest.mark.parametrize("phases", [{"dig"}, {"dig", "tell"}])
@pytest.mark.parametrize("file", FILES)
def test_what_the_new_strategy_makes_void_is_taken_out_and_check_is_content(file: str, phases: set[str]) -> None:
    result = apply(FILES[file], file, parse("mask(after=3,window=none)"), phases)
    assert "mask_observations_after" not in result.text
    assert checked(result.text, file) == set()
    if file == "c.yaml" and phases == {"dig"}:
        assert result.text.splitlines() == [
            *YAML.splitlines()[:9],
            "    tackle: [read_file]        # one tool",
            "      # Old results go first.",
            "    rules:   {max_turns: 9}",
            "    strategy: mask(after=3)",
            *YAML.splitlines()[15:],
        ]


@pytest.mark.parametrize(
    ("spec", "field", "gone"),
    [
        ("snowball", "context: {from: [dig]}", True),
        ("inject", "context: {from: [dig]}", True),
        ("inject", "inject_from: [dig]", False),
        ("auto(max_tokens=900)", "context: {from: [dig]}", False),
        ("auto(max_tokens=900)", "inject_from: [dig]", True),
        ("fidelity(mode=compact)", "thread_id: t", False),
    ],
)
def test_a_strategy_that_says_what_enters_takes_out_the_fields_that_it_does_not_read(
    spec: str, field: str, gone: bool
) -> None:
    text = YAML.replace("context: {from: [dig]}", f"{field}   # by hand")
    result = apply(text, "c.yaml", parse(spec), {"tell"})
    assert (field not in result.text) is gone
    assert checked(result.text, "c.yaml") == set()


def test_a_block_that_still_acts_stays() -> None:
    result = apply(YAML, "c.yaml", parse("budget(max=9000,reserve=100)"), {"dig"})
    assert result.paths == (("token_budget",),)


def test_masking_off_switches_the_block_off() -> None:
    result = apply(YAML, "c.yaml", parse("selective"), {"dig", "tell"})
    assert result.paths == (("phases", 0, "intra_context", "enabled"),)


def test_a_shared_block_that_serves_every_phase_is_edited_where_it_stands() -> None:
    text = "auto_context:\n  intra_phase: {mask_observations_after: 9}\n" + YAML.replace(
        "    intra_context:\n      # Old results go first.\n      mask_observations_after: 4   # turns\n"
        "      preserve_errors: false\n",
        "",
    )
    result = apply(text, "c.yaml", parse("mask(after=2,window=7)"), {"dig", "tell"})
    assert {path[:2] for path in result.paths} == {("auto_context", "intra_phase")}


def test_a_file_with_errors_or_without_the_phase_is_left_alone() -> None:
    with pytest.raises(ApplyError, match="has errors"):
        apply("cascade_id: [", "c.yaml", parse("mask(after=2)"), {"dig"})
    with pytest.raises(ApplyError, match="no phase 'gone'"):
        apply(YAML, "c.yaml", parse("mask(after=2)"), {"gone"})
