"""Every code of the catalogue: what triggers it, exactly where, and what does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.language.lint.examples import EXAMPLES, Example
from tests.language.lint.examples.example import BUILTIN_TOOLS, BUILTIN_VALIDATORS, MARK, whole
from tests.support.stored import check_stored
from workbench.language.lint.catalogue import CATALOGUE
from workbench.language.lint.environment import LintEnvironment
from workbench.language.lint.linter import check
from workbench.language.load import load
from workbench.language.problem import Problem


def found(text: str, example: Example) -> list[Problem]:
    return [p for p in check(load(text, example.file), example.around) if p.code == example.code]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_a_code_is_found_once_at_the_offending_character(example: Example) -> None:
    """In the words of the catalogue. A near miss is not reported; the fix, put at the span, removes the finding."""
    assert example.bad.count(MARK) == 1
    problems = found(example.text, example)
    assert [(p.span.line, p.span.column) for p in problems] == [example.place], problems
    (problem,) = problems
    assert problem.severity is CATALOGUE[example.code].severity
    pattern = re.sub(r"\\\{\w+\\\}", "(.+)", re.escape(CATALOGUE[example.code].message.replace("{{", "{")))
    assert re.fullmatch(pattern, problem.message), problem.message
    assert found(whole(example.good), example) == [], "a near miss is reported"
    if example.fix is not None:
        assert problem.fix == example.fix
        assert found(fixed(example.text, problem), example) == [], "the fix does not help"


def fixed(text: str, problem: Problem) -> str:
    """The text with the fix at the span of the problem, which is within a line."""
    assert problem.fix is not None
    lines, span = text.split("\n"), problem.span
    assert span.line == span.end_line
    line = lines[span.line - 1]
    lines[span.line - 1] = line[: span.column - 1] + problem.fix + line[span.end_column - 1 :]
    return "\n".join(lines)


def test_all_that_is_said_of_the_examples_is_as_it_is_stored() -> None:
    lines = []
    for example in EXAMPLES:
        lines.append(f"== {example.name}")
        for one in check(load(example.text, example.file), example.around):
            at = f"{one.span.line}:{one.span.column}-{one.span.end_line}:{one.span.end_column}"
            lines += [f"{at} {one.severity} {one.code} {one.message}", *([f"  {one.hint}"] if one.hint else [])]
            lines += [f"  fix {one.fix!r}"] if one.fix is not None else []
    check_stored(Path(__file__).parent / "stored.txt", "\n".join(lines) + "\n")


def test_every_code_has_an_example() -> None:
    # A file that is not UTF-8 cannot be written as an example; its reader has its own tests.
    # Codes of offline replies (L9…) are tested with the command that checks those.
    # Graphs have codes that are words; what gives them is in tests of their own.
    others = {"L105", *(code for code in CATALOGUE if code.startswith("L9") or not code.startswith("L"))}
    assert {example.code for example in EXAMPLES} | others == set(CATALOGUE)


def test_the_catalogue_is_in_order_and_says_when_each_code_is_given() -> None:
    numbered = [code for code in CATALOGUE if code.startswith("L")]
    assert numbered == sorted(numbered)
    assert all(row.when and row.message for row in CATALOGUE.values())


@pytest.mark.parametrize(
    ("phases", "way_out"),
    [
        (
            "[{name: a, instructions: x, context: {from: [b]}}, {name: b, instructions: x, context: {from: [a]}}]",
            "'a' and 'b' read each other, and one has to run first",
        ),
        (
            "[{name: a, instructions: x, context: {from: [b]}}, {name: b, instructions: x}]",
            "'b' runs after 'a': define it before 'a', or let it hand off to 'a'",
        ),
        (
            "[{name: a, instructions: x, handoffs: [b], context: {from: [b]}}, {name: b, instructions: x}]",
            "'b' runs after 'a': read it in a later phase, or let it hand off to 'a'",
        ),
        (
            "[{name: a, instructions: x, context: {from: [c]}}, {name: b, instructions: '{{ outputs.a }}'},"
            " {name: c, tool: sql_data, inputs: {query: SELECT * FROM _b}}]",
            "the phases read each other in a circle, and one has to run first:"
            " 'a' reads 'c', 'c' reads 'b', 'b' reads 'a'; remove one of these",
        ),
        (
            "[{name: a, instructions: x, handoffs: [c]}, {name: b, instructions: x},"
            " {name: c, instructions: x, context: {from: [b]}}]",
            "no walk visits 'b': add it to the handoffs of a phase before 'c'",
        ),
        (
            "[{name: a, instructions: x, handoffs: [{target: b, description: y}, {target: c, description: z}]},"
            " {name: b, instructions: x, handoffs: []}, {name: c, instructions: x, context: {from: [b]}}]",
            "'b' is on another branch",
        ),
        (
            "[{name: a, instructions: x}, {name: b, instructions: x, context: {from: ['a#2']}}]",
            "no loop leads back to 'a'",
        ),
        ("[{name: a, instructions: x, context: {from: [a]}}]", "a phase cannot read its own output before it has run"),
    ],
)
def test_a_source_that_cannot_have_run_says_the_way_out(phases: str, way_out: str) -> None:
    problems = check(load(f"cascade_id: c\nphases: {phases}\n", "c.yaml"))
    (hint,) = [problem.hint for problem in problems if problem.code == "L401"]
    assert hint.startswith(way_out)


@pytest.mark.parametrize(
    "reading",
    [
        "instructions: '{{ outputs.b }}'",
        "instructions: '{{ state.output_b }}'",
        "instructions: x, inject_from: [b]",
        "instructions: x, context: {mode: auto, anchors: {from_phases: [b]}}",
        "instructions: x, soundings: {factor: '{{ outputs.b | length }}'}",
        "instructions: x, soundings: {factor: 2, evaluator_instructions: '{{ outputs.b }}'}",
        "instructions: x, soundings: {factor: 2, reforge: {honing_prompt: '{{ outputs.b }}'}}",
        "instructions: x, human_input: {prompt: '{{ outputs.b }}'}",
        "tool: sql_data, inputs: {query: SELECT * FROM _b}",
        "tool: python_data, inputs: {code: 'result = data[\"b\"]'}",
        "tool: js_data, inputs: {code: 'result = data.b'}",
        "tool: clojure_data, inputs: {code: '(:b data)'}",
        "tool: bash_data, inputs: {script: cat, input_table: _b}",
        "for_each_row: {table: _b, instructions: x}",
        "sub_cascades: [{ref: c.yaml, input_map: {x: '{{ outputs.b }}'}}], instructions: x",
    ],
)
def test_every_place_that_reads_a_later_phase_says_the_way_out(reading: str) -> None:
    around = LintEnvironment(BUILTIN_TOOLS, BUILTIN_VALIDATORS)
    file = f"cascade_id: c\nphases:\n  - {{name: a, {reading}}}\n  - {{name: b, instructions: x}}\n"
    (hint,) = [p.hint for p in check(load(file, "c.yaml"), around) if p.code in ("L401", "L413", "L604")]
    assert hint.startswith("'b' runs after 'a': define it before 'a', or let it hand off to 'a'")


BOTH = """
cascade_id: c
phases:
  - {name: a, instructions: "{{ outputs.zz }} {{ zz }}", rules: {turn_prompt: x}, handoffs: [c]}
  - {name: b, instructions: x, WRONG}
  - {name: c, instructions: x, context: {from: [b]}}
"""


@pytest.mark.parametrize(
    ("wrong", "kept", "gone"),
    [
        ("rules: {max_turns: nope}", {"L301", "L401", "L602", "L604", "L706"}, set()),
        ("rules: {max_turns: nope, turn_prompt: x}", {"L602", "L604", "L706"}, set()),
        ("WRONG: 1}\n  - {instructions: nameless", {"L602"}, {"L604"}),
        ("WRONG: 1}\n  - {name: d, instructions: 5", {"L301", "L602", "L604", "L706"}, set()),
        ("output_schema: 3", {"L301", "L401", "L602", "L706"}, {"L604"}),
        ("use_native_tools: 3", {"L301", "L604"}, set()),
        ("handoffs: 3", set(), {"L301", "L401"}),
    ],
)
def test_an_error_of_form_hides_only_what_needs_the_wrong_value(wrong: str, kept: set[str], gone: set[str]) -> None:
    codes = {problem.code for problem in check(load(BOTH.replace("WRONG", wrong), "c.yaml"))}
    assert codes & {"L202", "L203"}
    assert kept <= codes
    assert not gone & codes


def test_a_template_in_the_place_of_a_validator_says_where_conditions_go() -> None:
    text = "cascade_id: c\nphases:\n  - {name: a, instructions: x, rules: {loop_until: '{{ state.done }}'}}\n"
    problems = check(load(text, "c.yaml"), LintEnvironment(BUILTIN_TOOLS, BUILTIN_VALIDATORS))
    (hint,) = [problem.hint for problem in problems if problem.code == "L502"]
    assert hint == "a template is not rendered here; write the condition as code: {python: …}"
