"""Loading: the catalogue's messages at their places, and as much of a broken file as can be shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.documents import PHASES
from workbench.language.load import Loaded, load
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.shape import shape
from workbench.language.problem import Problem, Severity

PHASE = "  - name: a\n    instructions: x\n"
HEAD = "cascade_id: c\nphases:\n" + PHASE


def only(text: str, code: str) -> Problem:
    found = [problem for problem in load(text, "f.yaml").problems if problem.code == code]
    assert len(found) == 1, load(text, "f.yaml").problems
    return found[0]


def shown(text: str, code: str) -> str:
    """The problem as a command prints it, without the file and the code."""
    return str(only(text, code)).removeprefix("f.yaml:").removesuffix(f" [{code}]")


def test_a_good_file_has_no_problems() -> None:
    loaded = load(PHASES, "triage.yaml")
    assert loaded.problems == ()
    assert loaded.ok
    assert loaded.cascade is not None
    assert loaded.cascade is loaded.draft
    assert loaded.outline == (("look", 4), ("crash", 12), ("noise", 18))
    assert loaded.source.file == "triage.yaml"


def test_json_in_a_yaml_file_may_hold_surrogate_pairs() -> None:
    text = '{"cascade_id": "c", "phases": [{"name": "a", "instructions": "smile \\ud83d\\ude00"}]}'
    loaded = load(text, "c.yaml")
    assert not [one for one in loaded.problems if one.severity is Severity.ERROR]
    assert loaded.cascade is not None
    assert loaded.cascade.phases[0].instructions == "smile \N{GRINNING FACE}"


def test_half_a_surrogate_pair_in_a_yaml_file_is_an_error_at_its_place() -> None:
    loaded = load('{"cascade_id": "c", "phases": [{"name": "a", "instructions": "\\ud83d"}]}', "c.yaml")
    assert [(one.code, one.span.line) for one in loaded.problems] == [("L101", 1)]


def test_the_same_cascade_as_json_is_the_same() -> None:
    loaded = load(json.dumps(load(PHASES).source.data), "t.json")
    assert loaded.cascade == load(PHASES).cascade


ROWS = r"""
tackel: [b]
    L201 5:5: warning: unknown key 'tackel' in phase (did you mean 'tackle'?)
tools: [b]
    L201 5:5: warning: unknown key 'tools' in phase (did you mean 'tackle'?)
= cascade_id: c|stages: [{name: a, instructions: x}]
    L201 2:1: warning: unknown key 'stages' in cascade (did you mean 'phases'?)
rules: {max_turn: 1}
    L201 5:13: warning: unknown key 'max_turn' in rules (did you mean 'max_turns'?)
wards: {post: [{validator: v, kind: 1}]}
    L201 5:35: warning: unknown key 'kind' in ward
rules: {max_turns: three}
    L202 5:24: error: 'max_turns' must be an integer, got text "three"
rules: {max_turns: 2.5}
    L202 5:24: error: 'max_turns' must be an integer, got number 2.5
rules: {max_turns: '3'}
    L202 5:24: error: 'max_turns' must be an integer, got text "3" (take the quotes away)
use_native_tools: yes
    L207 5:23: warning: 'yes' is read as true
rules: {loop_until_silent: Off, loop_until: v}
    L207 5:32: warning: 'Off' is read as false
use_native_tools: y
    L202 5:23: error: 'use_native_tools' must be true or false, got text "y"
model: 5
    L202 5:12: error: 'model' must be text, got number 5 (put it in quotes)
handoffs: b
    L202 5:15: error: 'handoffs' must be a list, got text "b" (write [b])
tackle: [a, 3]
    L202 5:17: error: 'tackle[1]' must be text, got number 3 (put it in quotes)
rules: [1]
    L202 5:12: error: 'rules' must be a mapping, got a list
rules: {turns: 3}
    L201 5:13: warning: unknown key 'turns' in rules (did you mean 'max_turns'?)
soundings: 3
    L202 5:16: error: 'soundings' must be a mapping, got number 3 (write {factor: 3})
soundings: {factor: 2, models: gpt-4o}
    L202 5:36: error: 'models' must be a list or a mapping, got text "gpt-4o" (write [gpt-4o])
tackle: {read_file: {}}
    L202 5:13: error: 'tackle' must be text or a list, got a mapping (write [read_file])
on_error: [a]
    L202 5:15: error: 'on_error' must be text or a mapping, got a list
on_error: {model: m}
    L209 5:15: error: 'on_error' names a phase, or is one: it needs 'instructions' or 'tool' (it has none of them)
context: [a]
    L202 5:14: error: 'context' must be a mapping, got a list (write {from: [a]})
context: a
    L202 5:14: error: 'context' must be a mapping, got text "a" (write {from: [a]})
retry: 3
    L202 5:12: error: 'retry' must be a mapping, got number 3 (write {max_attempts: 3})
rag: {dir: docs}
    L201 5:11: warning: unknown key 'dir' in rag (did you mean 'directory'?)
= cascade_id: c|phases:|  a: {instructions: x}
    L202 3:3: error: 'phases' must be a list, got a mapping (write - name: NAME for each)
= cascade_id: c|inputs_schema: [n]|phases:|  - {name: a, instructions: x}
    L202 2:16: error: 'inputs_schema' must be a mapping, got a list (write NAME: VALUE for each)
context:
    L202 5:13: error: 'context' must be a mapping, got nothing (write {} for an empty one, or take the key away)
timeout: soon
    L202 5:14: error: 'timeout' must be a duration such as 30s, 5m or 24h, got text "soon"
= phases:|  - {name: a, instructions: x}
    L203 1:1: error: 'cascade_id' is missing
= cascade_id: c|phases: []
    L203 2:9: error: 'phases' is empty
= cascade_id: c|phases:|  - instructions: x
    L203 3:5: error: 'name' is missing
wards: {pre: [{mode: retry}]}
    L203 5:19: error: 'validator' is missing
wards: {pre: [{validator: v, mode: block}]}
    L204 5:40: error: 'mode' must be one of blocking, retry, advisory; got 'block'
context: {mode: autp}
    L204 5:21: error: 'mode' must be one of explicit, auto; got 'autp' (did you mean 'auto'?)
tackle: manifst
    L204 5:13: error: 'tackle' must be a list or manifest; got text "manifst" (did you mean 'manifest'?)
rules: {max_turns: "{{ input.n }}"}
    L205 5:24: error: 'max_turns' is a number; a template is not rendered here
use_native_tools: "{{ x }}"
    L205 5:23: error: 'use_native_tools' is true or false; a template is not rendered here
soundings: {factor: 0}
    L206 5:25: error: 'factor' must be at least 1 (got number 0)
soundings: {cost_aware_evaluation: {cost_weight: -1}}
    L206 5:54: error: 'cost_weight' must be at least 0 (got number -1)
soundings: {model_strategy: round-robin}
    L207 5:33: warning: 'round-robin' is read as 'round_robin'
context: {from: [{phase: a, filter: all}]}
    L207 5:33: warning: 'filter' is read as 'messages_filter'
context: {from: [{phase: a, if: x}]}
    L207 5:33: warning: 'if' is read as 'condition'
= cascade_id: c|phases:|  - {name: a, instructions: x}|  - {name: a, instructions: y}
    L208 4:12: error: phase 'a' is defined twice
= cascade_id: c|phases:|  - name: a
    L209 3:11: error: a phase needs one of 'instructions', 'tool', 'for_each_row', 'htmx' (it has none of them)
tool: t
    L209 5:11: error: a phase needs one of 'instructions', 'tool', 'for_each_row', 'htmx' (it has instructions and tool)
= cascade_id: a/b|phases:|  - {name: a, instructions: x}
    L210 1:13: warning: id 'a/b' is stored as 'a-b'
max_turns: 3
    L211 5:5: warning: 'max_turns' belongs under 'rules'
rules: {handoffs: [a]}
    L211 5:13: warning: 'handoffs' belongs to the phase
= cascade_id: c|tackle: [a]|phases:|  - {name: a, instructions: x}
    L211 2:1: warning: 'tackle' belongs under 'phases'
= cascade_id: c|model: m|phases:|  - {name: a, instructions: x}
    L211 2:1: warning: 'model' belongs under 'phases'
soundings: {factor: 2, evaluator_instructions: x, model: m}
    L201 5:55: warning: unknown key 'model' in soundings (did you mean 'models'?)
context: {from: [{phases: a}]}
    L201 5:23: warning: unknown key 'phases' in context source (did you mean 'phase'?)
= cascade_id: c|phases:|  - {name: a, instructions: x, description: y}
    L201 3:32: warning: unknown key 'description' in phase
wards: {post: [{validator: v, max_retries: 2}]}
    L201 5:35: warning: unknown key 'max_retries' in ward (did you mean 'max_attempts'?)
= cascade_id: c|sql_function: {name: f}|phases:|  - {name: a, instructions: x}
    L214 2:1: info: 'sql_function' has no effect here: SQL cannot call this cascade; run, test and batch can
= cascade_id: c|internal: true|phases:|  - {name: a, instructions: x}
    L214 2:1: info: 'internal' has no effect here: its runs are listed like all others
= cascade_id: c|_playground: {x: 1}|phases:|  - {name: a, instructions: x}
    L214 2:1: info: '_playground' has no effect here: a note of another program
= cascade_id: c|max_parallel: 4|phases:|  - {name: a, instructions: x}
    L214 2:1: info: 'max_parallel' has no effect here: phases run one after the other
context: {enabled: false, from: []}
    L214 5:15: info: 'enabled' has no effect here: without 'context' a phase sees its task alone
htmx: <p>
    L214 5:5: info: 'htmx' has no effect here: a page beside a task is not shown while that runs
= cascade_id: c|phases:|  - {name: a, hitl: <p>, await_input: true, instructions: x}
    L714 3:45: warning: 'instructions' has no effect in a phase that waits for its page (await_input: false has it run)
use_training: true
    L801 5:5: warning: 'use_training' is not run yet: no answers of earlier runs are added to the task as examples
= cascade_id: c|cells:|  - {name: a, tool: t, on_error: auto_fix}
    L801 3:24: warning: 'auto_fix' is not run yet: no model rewrites the tool's code; on_error can name a phase
= cascade_id: c|phases:|  - {name: a, tool: t, on_error: {auto_fix: {}}}
    L801 3:24: warning: 'auto_fix' is not run yet: no model rewrites the tool's code; on_error can name a phase
soundings: {factor: 2, evaluator_instructions: x, downstream_model: true}
    L801 5:55: warning: 'downstream_model' is not run yet: cascades called as tools keep their own model
= cascade_id: c|phases:|  - {name: a, tool: t, inputs: {k: false}}
    L212 3:36: info: false is taken as the text "false"
= cascade_id: c|phases:|  - {name: Previous, instructions: x}
    L213 3:12: warning: phase name 'Previous' is a context keyword; from: cannot select it
"""
"""Pairs of lines: what is added to the phase of a good file, or after ``=`` a whole file; and what is said of it."""


def rows() -> list[tuple[str, str, str]]:
    lines = ROWS.strip().splitlines()
    said = [line.strip().split(" ", 1) for line in lines[1::2]]
    return [(written, code, message) for written, (code, message) in zip(lines[::2], said, strict=True)]


@pytest.mark.parametrize(("written", "code", "message"), rows())
def test_each_row_of_the_catalogue_is_said_at_its_place(written: str, code: str, message: str) -> None:
    text = written[2:].replace("|", "\n") if written.startswith("= ") else f"{HEAD}    {written}"
    assert shown(text + "\n", code) == message


def test_a_phase_may_be_called_auto_fix() -> None:
    text = "cascade_id: c\nphases:\n  - {name: a, tool: t, on_error: auto_fix}\n  - {name: auto_fix, tool: t}\n"
    assert load(text, "c.yaml").problems == ()


def test_an_unknown_key_has_its_fix() -> None:
    assert only(HEAD + "    tackel: []\n", "L201").fix == "tackle"


def test_a_file_of_another_kind_is_named() -> None:
    loaded = load('{"userStories": [], "project": "x"}', "stories.json")
    assert [p.code for p in loaded.problems] == ["L203"]
    assert loaded.problems[0].hint == "it looks like a list of user stories"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"waves": [[1]]}', "it looks like a plan of waves"),
        ('{"master": {"tasks": []}}', "it looks like lists of tasks under tags"),
        ('{"name": "x", "nodes": [], "connections": {}}', "it looks like a workflow of n8n"),
        ('{"$schema": "https://x", "type": "object"}', "it looks like a JSON Schema"),
        ('{"$schema": "https://x", "nodes": [], "outputs": {}}', "it looks like a flow of Prompt flow"),
        ('{"subtasks": [], "intent": "x"}', "'sub_tasks' in place of 'subtasks' makes it a decomposition"),
        ('{"hello": 1, "world": 2}', "its keys are 'hello', 'world'"),
        ('{"input": {}}', "it looks like an input for a cascade: name the cascade"),
    ],
)
def test_what_is_neither_a_cascade_nor_a_decomposition_is_one_problem(text: str, hint: str) -> None:
    (problem,) = load(text, "f.input.json" if "input" in text else "f.json").problems
    assert (
        "this is neither a cascade (no 'cascade_id', no 'phases') nor a decomposition (no 'sub_tasks')"
        in problem.message
    )
    assert problem.hint == hint


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "~"])
def test_an_empty_file_says_so(text: str) -> None:
    (problem,) = load(text, "f.yaml").problems
    assert "the file is empty" in problem.message


@pytest.mark.parametrize(("text", "got"), [("- a", "a list"), ("word", 'text "word"'), ("5", "number 5")])
def test_what_is_no_mapping_is_no_cascade(text: str, got: str) -> None:
    (problem,) = load(text, "f.yaml").problems
    assert problem.message == f"a cascade must be a mapping, got {got}"


def test_a_file_with_errors_still_gives_what_can_be_shown() -> None:
    loaded = load(PHASES.replace("max_turns: 6", "max_turns: six"), "f.yaml")
    assert loaded.cascade is None
    assert not loaded.ok
    assert [name for name, _ in loaded.outline] == ["look", "crash", "noise"]
    assert loaded.draft is not None
    assert [phase.name for phase in loaded.draft.phases] == ["look", "crash", "noise"]
    assert loaded.draft.phases[0].rules.max_turns == 1


def test_phases_of_a_draft_keep_their_numbers() -> None:
    loaded = load("cascade_id: c\nphases:\n  - 5\n  - {instructions: x}\n  - {name: z, instructions: 4}\n")
    assert loaded.draft is not None
    assert [phase.name for phase in loaded.draft.phases] == ["phases[0]", "phases[1]", "z"]


def test_a_warning_stops_nothing() -> None:
    loaded = load(HEAD + "    tackel: []\n")
    assert loaded.ok
    assert loaded.cascade is not None


def test_problems_come_in_the_order_of_the_file() -> None:
    loaded = load(HEAD + "    b: 1\n    rules: {max_turns: x}\n    a: 1\n")
    assert [p.span.line for p in loaded.problems] == [5, 6, 7]


def test_a_problem_inside_an_inline_fallback_is_found() -> None:
    inline = "{instructions: x, rules: {max_turns: 0}, tackel: 1}"
    text = f"cascade_id: c\nphases:\n  - name: a\n    tool: t\n    on_error: {inline}\n"
    assert shown(text, "L206").startswith("5:52: error: 'max_turns' must be at least 1")
    assert "did you mean 'tackle'" in shown(text, "L201")


def test_a_name_with_control_characters_is_shown_as_pictures() -> None:
    text = 'cascade_id: "\\e[2J"\nphases:\n  - {name: a, instructions: x, "\\e]0;x\\a": 1}\n'
    assert all(char.isprintable() for problem in load(text, "f.yaml").problems for char in str(problem))


def prefixes() -> list[str]:
    return [PHASES[:end] for end in range(len(PHASES) + 1)]


def test_no_prefix_of_a_file_raises_or_has_a_problem_outside_of_it() -> None:
    for text in [*prefixes(), *(json.dumps(load(PHASES).source.data)[:end] for end in range(0, 1200, 7))]:
        for file in ("f.yaml", "f.json", ""):
            check_places(load(text, file))


def check_places(loaded: Loaded) -> None:
    lines = loaded.source.text.count("\n") + loaded.source.text.count("\r") + 1
    for problem in loaded.problems:
        assert 1 <= problem.span.line <= problem.span.end_line <= lines
        assert problem.span.column >= 1
    assert (loaded.cascade is None) or loaded.draft is loaded.cascade


MARKS = st.sampled_from(list("{}[]:,\"'|>-?&*!%@`#\n\t \r\0\x1b\ufeff\u2028\ud800é~=0<."))


@given(st.lists(st.tuples(st.integers(0, len(PHASES)), st.integers(0, 6), st.text(MARKS, max_size=3)), max_size=5))
def test_no_damage_to_a_file_raises(damage: list[tuple[int, int, str]]) -> None:
    text = PHASES
    for at, removed, added in damage:
        text = text[:at] + added + text[at + removed :]
    check_places(load(text, "f.yaml"))


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["phase", "from", "x", "name", "factor", "routing", "models"])
    return st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2)


JUNK = st.recursive(st.sampled_from([None, True, 0, -1, 1.5, "", "x", "{{ x }}", "a-b", "all"]), nested, max_leaves=4)
PHASE_KEYS = st.sampled_from(sorted(shape(Phase)))
CASCADE_KEYS = st.sampled_from(sorted(set(shape(Cascade)) - {"phases", "cascade_id"}))


@given(st.dictionaries(PHASE_KEYS, JUNK, max_size=5), st.dictionaries(CASCADE_KEYS, JUNK, max_size=3))
def test_no_value_in_any_field_raises(phase: dict[str, Any], cascade: dict[str, Any]) -> None:
    data = {"cascade_id": "c", "phases": [{"name": "a", "instructions": "x", **phase}], **cascade}
    loaded = load(json.dumps(data), "f.json")
    check_places(loaded)
    if loaded.cascade is None:
        assert any(problem.severity is Severity.ERROR for problem in loaded.problems)
        assert loaded.draft is not None
