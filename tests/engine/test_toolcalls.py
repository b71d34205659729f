"""Which parts of an answer are tool calls, and which are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.toolcalls import first_balanced, first_fenced, objects_in, read_calls, without_calls

TOOLS = {"read_file", "search"}


def found(text: str) -> list[tuple[str, dict[str, object]]]:
    return [(call.tool, call.arguments) for call in read_calls(text, TOOLS) if not call.problem]


def test_a_fenced_object_is_a_call() -> None:
    assert found('Look:\n```json\n{"tool": "search", "arguments": {"x": 1}}\n```\n') == [("search", {"x": 1})]


@pytest.mark.parametrize("tag", ["json", "tool", ""])
def test_three_fences_hold_calls(tag: str) -> None:
    assert found(f'```{tag}\n{{"tool": "search", "arguments": {{}}}}\n```') == [("search", {})]


def test_an_object_that_starts_a_line_is_a_call() -> None:
    assert found('Now:\n{"tool": "search", "arguments": {"q": "a"}}\n') == [("search", {"q": "a"})]


def test_a_fenced_array_is_several_calls_in_order() -> None:
    calls = [{"tool": "search", "arguments": {"n": n}} for n in (1, 2)]
    assert found(f"```json\n{json.dumps(calls)}\n```") == [("search", {"n": 1}), ("search", {"n": 2})]


def test_arguments_may_be_json_text() -> None:
    assert found('{"tool": "search", "arguments": "{\\"q\\": 1}"}') == [("search", {"q": 1})]


@pytest.mark.parametrize(
    "text",
    [
        '```python\n{"tool": "search", "arguments": {}}\n```',
        'inline `{"tool": "search", "arguments": {}}` code',
        'prose {"tool": "search", "arguments": {}}',
        '```json\n{"name": "search", "arguments": {}}\n```',
        '```json\n{"outer": {"tool": "search", "arguments": {}}}\n```',
        '```json\n{"tools": "search"}\n```',
    ],
)
def test_nothing_else_is_a_call(text: str) -> None:
    assert read_calls(text, TOOLS) == []
    assert without_calls(text, []) == text.strip()


def test_a_phase_without_tools_reads_no_calls() -> None:
    assert read_calls('{"tool": "search", "arguments": {}}', ()) == []


def test_fences_and_braces_inside_strings_do_not_end_a_call() -> None:
    body = json.dumps({"tool": "search", "arguments": {"code": "```\n}{\n```"}})
    assert found(f"```json\n{body}\n```\nrest") == [("search", {"code": "```\n}{\n```"})]


def test_broken_json_that_names_a_tool_of_the_phase_is_an_error_for_the_model() -> None:
    (call,) = read_calls('```json\n{"tool": "search", "arguments": {"x": 1,}}\n```', TOOLS)
    assert call.tool == "search"
    assert "column" in call.problem


def test_broken_json_that_names_no_tool_is_left_alone() -> None:
    assert read_calls('```json\n{"tool": "other", "arguments": {"x": 1,}}\n```', TOOLS) == []


def test_a_tool_without_arguments_is_an_error_for_the_model() -> None:
    (call,) = read_calls('{"tool": "search"}', TOOLS)
    assert "arguments" in call.problem


def test_a_key_written_twice_is_not_guessed() -> None:
    (call,) = read_calls('{"tool": "search", "arguments": {"x": 1, "x": 2}}', TOOLS)
    assert "twice" in call.problem


def test_the_output_is_the_text_without_its_calls() -> None:
    text = 'Before.\n\n```json\n{"tool": "search", "arguments": {}}\n```\n\nAfter.'
    assert without_calls(text, read_calls(text, TOOLS)) == "Before.\n\nAfter."


CALL = '{"tool": "search", "arguments": {}}'
UNCLOSED = '{"tool": "search", "arguments": {"x": 1'
DEEP = f'{{"tool": "search", "arguments": {"[" * 150}'


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        # What is removed, and what stays: the fence goes; the paragraph behind a call that never closes does not.
        (f"```json\n{CALL}\n```", [("search", {}, "")], ""),
        (f"   ```json\n{CALL}\n   ```  \nrest", [("search", {}, "")], "rest"),
        (f"``` JSON  \n{CALL}\n```", [("search", {}, "")], ""),
        (f"```json\n{CALL}```rest", [("search", {}, "")], "rest"),
        (f"```json\n{CALL}", [("search", {}, "")], ""),
        (f"```json\n  \n{CALL}\n```", [("search", {}, "")], ""),
        (f"```\n```\n{CALL}", [("search", {}, "")], "```\n```"),
        (f"```python\nx\n```\n{CALL}", [("search", {}, "")], "```python\nx\n```"),
        (f"one\n{CALL} {CALL}\ntwo\n\n\n\n{CALL}\nthree", [("search", {}, "")] * 2, f"one\n {CALL}\ntwo\n\nthree"),
        (f"A\n{UNCLOSED}\nmore\n\nafter", [("search", {}, "Expecting ',' delimiter at column 41")], "A\n\nafter"),
        (f"A\n{UNCLOSED}", [("search", {}, "Expecting ',' delimiter at column 40")], "A"),
        (f"{DEEP}\n\nafter", [("search", {}, "Expecting value at column 183")], "after"),
        (
            f'{{"a": {{\n{CALL}\n}}}}',
            [("search", {}, "Expecting property name enclosed in double quotes at column 9")],
            "",
        ),
        # What is told to the model about a call that cannot be read.
        ('{"tool": "search"}', [("search", {}, "'arguments' is missing at column 1")], ""),
        ('{"tool": "search", "arguments": null}', [("search", {}, "'arguments' is no object at column 1")], ""),
        ('{"tool": "search", "arguments": [1]}', [("search", {}, "'arguments' is no object at column 1")], ""),
        ('{"tool": "search", "arguments": "x"}', [("search", {}, "'arguments' is no object at column 1")], ""),
        ('{"tool": "search", "arguments": {"x": NaN}}', [("search", {}, "NaN is not JSON at column 1")], ""),
        ('{"tool": "search", "x": 1, "x": 2}', [("search", {}, "key 'x' is written twice at column 1")], ""),
        (f"```json\n{CALL} more\n```", [("search", {}, "Extra data at column 37")], ""),
        # Whose call it is: a tool of another phase is answered, if it has arguments; what names none is text.
        ('{"tool": "other", "arguments": {}}', [("other", {}, "")], ""),
        ('{"tool": "other"}', [], '{"tool": "other"}'),
        ("```json\n[]\n```", [], "```json\n[]\n```"),
        (f"```json\n[{CALL}, 3]\n```", [], f"```json\n[{CALL}, 3]\n```"),
        ("```json\n{'tool': 'search'}\n```", [], "```json\n{'tool': 'search'}\n```"),
    ],
)
def test_what_is_read_and_what_stays(text: str, calls: list[tuple[str, object, str]], rest: str) -> None:
    read = read_calls(text, TOOLS)
    assert [(call.tool, call.arguments, call.problem) for call in read] == calls
    assert without_calls(text, read) == rest


def test_a_call_keeps_the_json_that_it_was_written_as() -> None:
    (call,) = read_calls(f"Look:\n```json\n {CALL}\n```", TOOLS)
    assert (call.raw, call.start) == (CALL, 6)


@pytest.mark.parametrize(
    ("text", "fenced", "balanced", "objects"),
    [
        ("no JSON", None, None, []),
        ('{"a": 1}', None, '{"a": 1}', [{"a": 1}, {"a": 1}]),
        (
            'x\n```\n{"a": 1}\n```\n{"b": {"c": 2}}',
            '{"a": 1}\n',
            '{"a": 1}',
            [{"a": 1}] * 2 + [{"b": {"c": 2}}, {"c": 2}],
        ),
        ("it is [1, 2] or {broken} or {", None, "[1, 2]", []),
        ("{broken [3]", None, "[3]", []),
        ('"text" [{"a": 1}]', None, '[{"a": 1}]', [{"a": 1}]),
        ("```json\n[1]", "[1]", "[1]", []),
        ("[" * 101 + "]" * 101, None, "[" * 100 + "]" * 100, []),
    ],
)
def test_json_is_found_in_an_answer(
    text: str, fenced: str | None, balanced: str | None, objects: list[dict[str, object]]
) -> None:
    assert (first_fenced(text), first_balanced(text), list(objects_in(text))) == (fenced, balanced, objects)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4), st.text(max_size=30).filter(lambda t: "`" not in t))
def test_any_arguments_come_back_as_written(arguments: dict[str, object], around: str) -> None:
    body = json.dumps({"tool": "search", "arguments": arguments})
    assert ("search", arguments) in found(f"{around}\n```json\n{body}\n```\n{around}")


@given(st.text(alphabet='{}[]"\\`\n jsontoolarguments:,', max_size=120))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    without_calls(text, read_calls(text, TOOLS))
