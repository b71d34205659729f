"""Which parts of an answer are tool calls, and which are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.toolcalls import read_calls, without_calls

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
