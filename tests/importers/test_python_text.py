"""Values and logs as Python prints them."""

from __future__ import annotations

import pytest

from tests.importers.examples import ANSWER, ARGUMENTS, ASK, OPENAI, RESULT
from tests.importers.whole import read_file
from workbench.importers.conversation import Unreadable
from workbench.importers.python_text import python_value, transcript

USAGE = "ResponseUsage(input_tokens=20, input_tokens_details=Details(cached_tokens=8), output_tokens=5)"
TOOL = "FunctionTool(name='ls', parameters={'type': 'object'}, type='function', description='Lists.')"
CALL = f"Item(type='function_call', call_id='c1', name='ls', arguments={ARGUMENTS!r})"
TEXT = f"Message(type='message', role='assistant', content=[Text(type='output_text', text={ANSWER!r})])"


def response(item: str, second: int) -> str:
    thought = "Reasoning(type='reasoning', summary=[], id='r1')"
    known = f"model='gpt-4o', created_at={1_767_258_000 + second}.0, tools=[{TOOL}], usage={USAGE}"
    return f"Response(id='r{second}', output=[{thought}, {item}], {known})"


LOG = f"""
========== User Instruction ==========
{ASK}

========== Agent Response ==========
{response(CALL, 1)}
Tool Used: ls
Tool Input: {{'path': '.'}}
Tool Result: {RESULT}
Tool Response: {response(TEXT, 2)}
"""


def test_an_object_is_one_with_its_fields_and_nothing_is_run() -> None:
    assert python_value("A(x=1, y=[B(z=None), (True, 'a')], t={'k': -1.5})") == {
        "x": 1, "y": [{"z": None}, [True, "a"]], "t": {"k": -1.5},
    }  # fmt: skip
    for hostile in ("__import__('os').getcwd()", "A(1)", "[x for x in y]", "a.b", "A(**k)", "(" * 5000, "'\0"):
        with pytest.raises(ValueError):
            python_value(hostile)


def test_values_that_json_does_not_have_are_told_in_those_that_it_has() -> None:
    assert python_value("[b'a\\xff', 1e999, -1e999, -2, {(1, 2): {3}}]") == ["a\\xff", None, None, -2, {"[1, 2]": [3]}]
    for other in ("[1j]", "[1 + 2j]", "[...]"):
        with pytest.raises(ValueError):
            python_value(other)


def test_a_log_of_sections_is_read_from_the_answers_in_it() -> None:
    (found,) = read_file(LOG.encode())
    (thread,) = found.conversation.threads
    assert [one.role for one in thread.said] == ["user", "assistant", "tool", "assistant"]
    assert [(call.id, call.name, call.arguments) for call in thread.said[1].calls] == [("c1", "ls", ARGUMENTS)]
    assert [one.text for one in (thread.said[0], *thread.said[2:])] == [ASK, RESULT, ANSWER]
    assert [one["function"]["name"] for one in thread.tools] == ["ls"]
    first = thread.said[1].call
    assert first is not None
    assert (first.model, first.usage.input, first.usage.cached) == ("gpt-4o", 20, 8)
    assert first.at == "2026-01-01T09:00:01.000000Z"
    assert any("a log of an agent" in note for note in found.conversation.notes)


def test_a_log_that_is_cut_off_or_holds_no_answer_is_told() -> None:
    cut = LOG[: LOG.index("Tool Response:") + 60]
    (found,) = read_file(cut.encode())
    assert [one.role for one in found.conversation.threads[0].said] == ["user", "assistant", "tool"]
    assert any("cannot be read is left out" in note for note in found.conversation.notes)
    assert transcript("before\n" + LOG.strip()) is None
    with pytest.raises(Unreadable):
        list(read_file(LOG[: LOG.index("Response(")].encode()))


def test_lines_before_a_list_of_messages_are_left_out_with_a_word() -> None:
    (found,) = read_file(f"Error code: 400\nError code: 400\n{OPENAI!r}".encode())
    assert found.conversation.threads[0].said[-1].text == ANSWER
    assert "what stands before its list of messages is left out" in found.conversation.notes
    (plain,) = read_file(repr(OPENAI).encode())
    assert plain.conversation.notes == ("it is written as Python writes it, not as JSON",)
