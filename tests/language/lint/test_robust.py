"""Whatever a file holds, a check ends with findings inside the file."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.language.lint.examples import EXAMPLES
from tests.language.lint.examples.example import BUILTIN_TOOLS, BUILTIN_VALIDATORS, MARK, whole
from workbench.language.lint.catalogue import CATALOGUE
from workbench.language.lint.environment import LintEnvironment, ToolFacts, ValidatorFacts
from workbench.language.lint.linter import check
from workbench.language.load import load
from workbench.language.problem import Severity

TEXTS = [whole(example.bad).replace(MARK, "") for example in EXAMPLES] + [whole(example.good) for example in EXAMPLES]
DATA = [d for d in (load(text).source.data for text in TEXTS) if isinstance(d, dict) and d.get("phases")]
PHASES = [phase for data in DATA for phase in data["phases"] if isinstance(phase, dict)]
WORLD = LintEnvironment(
    {**BUILTIN_TOOLS, "odd": ToolFacts("declarative", text="[1"), "self": ToolFacts("cascade", text=TEXTS[1])},
    {**BUILTIN_VALIDATORS, "lookup": ValidatorFacts("cascade", text="]")},
    read=lambda name: TEXTS[len(name) % len(TEXTS)] if len(name) % 2 else None,
    native_tools=lambda name: len(name) % 2 == 0,
    price_known=lambda name: len(name) % 2 == 0,
)
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2.5, 10**30, "", "a", "all", "@x", "{{", "{{ input.x }}", "{{ outputs.a['b'].c }}"),
    *("{% if turn == 1 %}{% endif %}", "a#2", "ü\u202e\x07", "validator:x", "python:x", "sql:", [], {}, [[]], {"a": 1}),
    *({"$ref": "#"}, ["a", "a"], {"phase": "a"}, {"from": ["a", {"phase": "all", "if": "x", "filter": "all"}]}),
]


def mutated(data: Any, rng: random.Random) -> Any:
    """The data with something somewhere replaced, removed, doubled or grafted from another file."""
    if rng.random() < 0.15 or not data or not isinstance(data, dict | list):
        return rng.choice(ODD)
    if isinstance(data, list):
        at = rng.randrange(len(data))
        if rng.random() < 0.3:
            return [*data, rng.choice(PHASES)]
        return [mutated(item, rng) if i == at else item for i, item in enumerate(data)]
    key = rng.choice(list(data))
    if rng.random() < 0.1:
        return {k: v for k, v in data.items() if k != key}
    if rng.random() < 0.2:
        return {**rng.choice(PHASES), **data}
    return {k: mutated(v, rng) if k == key else v for k, v in data.items()}


def assert_sound(text: str, around: LintEnvironment) -> None:
    loaded = load(text, "c.yaml")
    problems = check(loaded, around)
    lines = loaded.source.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for problem in problems:
        span = problem.span
        assert 1 <= span.line <= span.end_line <= len(lines), problem
        assert 1 <= span.column <= len(lines[span.line - 1]) + 1, problem
        assert 1 <= span.end_column <= len(lines[span.end_line - 1]) + 1, problem
        assert (span.line, span.column) <= (span.end_line, span.end_column), problem
        assert problem.code in CATALOGUE
        assert problem.severity is CATALOGUE[problem.code].severity
        assert "\x07" not in str(problem)
    assert list(problems) == sorted(set(problems), key=lambda p: (p.span, p.code, p.message))
    assert set(loaded.problems) <= set(problems)


@given(st.sampled_from(DATA), st.integers(0, 2**32), st.integers(1, 6))
def test_changed_values_never_break_a_check(data: Any, seed: int, times: int) -> None:
    rng = random.Random(seed)
    for _ in range(times):
        data = mutated(data, rng)
        if isinstance(data, dict):
            data = {"cascade_id": "c", **data}
    assert_sound(json.dumps(data), WORLD)


@given(st.sampled_from(TEXTS), st.data())
def test_changed_characters_never_break_a_check(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    piece = data.draw(
        st.sampled_from(["", " ", "\n", ":", "{", "}", "}}", "{{", "'", '"', "&a ", "*a", "- ", "\r", "ü", "|"])
    )
    assert_sound(text[:at] + piece + text[at + cut :], WORLD)


def test_a_draft_is_judged_value_by_value_only() -> None:
    text = whole(
        "- {name: a, instructions: '{{ x | nope }}', tackle: [nope], rules: {max_turns: '{{ 3 }}', turn_prompt: t}}"
    )
    loaded = load(text)
    assert loaded.cascade is None
    codes = [problem.code for problem in check(loaded, LintEnvironment(BUILTIN_TOOLS))]
    assert sorted(codes) == ["L205", "L501", "L602", "L603"]


def test_a_good_file_of_every_kind_of_phase_has_no_findings_but_what_is_not_run() -> None:
    text = whole(
        """
        - name: look
          instructions: "Find the first failure in {{ input.path }}. Then decide who handles it."
          tackle: [read_file, search_files]
          rules: {max_turns: 6}
          intra_context: {mask_observations_after: 2}
          handoffs: [{target: crash, description: the process died}, {target: noise, description: harmless}]
        - name: crash
          instructions: "Explain the cause in three sentences."
          context: {from: [{phase: look, include: [messages], messages_filter: last_turn}], include_input: false}
          wards: {post: [{validator: length_check, mode: retry, max_attempts: 2}]}
          handoffs: []
        - name: noise
          instructions: "Say why {{ outputs.look | default('the finding') }} can be ignored."
        """
    )
    assert check(load(text)) == ()


def test_findings_are_in_the_order_of_the_file_whatever_their_severity() -> None:
    problems = check(
        load(whole("- {name: a, instructions: x, tackle: [nope], handoffs: [nowhere]}")), LintEnvironment({})
    )
    assert [problem.severity for problem in problems] == [Severity.WARNING, Severity.ERROR]


def test_what_a_loop_brings_back_is_no_surprise() -> None:
    text = whole(
        """
        - {name: draft, instructions: Write., context: {from: [review, draft]}}
        - {name: review, instructions: Judge., context: {from: [draft]}, handoffs: [draft, publish]}
        - {name: publish, instructions: "{{ outputs.draft }}", use_native_tools: true, tackle: [read_file]}
        """
    )
    assert check(load(text)) == ()


def test_without_a_reader_no_file_is_called_missing() -> None:
    text = whole("- {name: a, instructions: '@p.j2', sub_cascades: [{ref: c.yaml}], async_cascades: [{ref: d.yaml}]}")
    assert check(load(text)) == ()
