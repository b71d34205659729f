"""Results of the Berkeley Function-Calling Leaderboard (BFCL) that hold a conversation: the log of several turns, each
of them a question and the steps of its answer. Calls stand in it as the evaluation noted them, without ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.context.message import ToolCall
from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks, Unreadable
from workbench.importers.messages import read_messages
from workbench.importers.parts import tool_call
from workbench.importers.threads import linear
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, mapping, number, string

_STEP = re.compile(r"step_(\d+)")
_QUESTION = "begin_of_turn_query"
_FAILED = "Error during inference"
_NUMBERS = ("input_token_count", "output_token_count", "latency")
"""Of each step of each turn; the latency in seconds."""


def is_bfcl(body: Any) -> bool:
    """A result with the log of its turns, or the error that came in its place."""
    one = mapping(body)
    if "id" not in one or "result" not in one:
        return False
    failed = "traceback" in one and string(one["result"]).startswith(_FAILED)
    return failed or any(_QUESTION in mapping(turn) for turn in array(one.get("inference_log")))


def read_bfcl(body: Any) -> list[Conversation]:
    """One conversation. Raises Unreadable."""
    remarks, one = Remarks(), mapping(body)
    turns = [mapping(turn) for turn in array(one.get("inference_log")) if isinstance(turn, dict)]
    if not turns:
        raise Unreadable(f"it holds no log of its calls: {as_text(one.get('result'))[:200]}")
    states = len(array(one.get("inference_log"))) - len(turns)
    if states:
        remarks.left_out("a state of the environment between two turns", count=states)
    said = [message for number, turn in enumerate(turns) for message in _turn(number, turn, one, remarks)]
    kept = {key: value for key, value in one.items() if key not in ("inference_log", *_NUMBERS)}
    return [Conversation((linear(said),), as_text(one.get("id"))[:60], remarks=remarks.all, kept=kept)]


def _turn(number: int, turn: Mapping[str, Any], one: Mapping[str, Any], remarks: Remarks) -> Iterator[ImportedMessage]:
    """The question of a turn, then its answers, each with what its tools gave."""
    yield from read_messages(array(turn.get(_QUESTION)), remarks, f"turn {number + 1}")
    for name, entries in turn.items():
        if (step := _STEP.fullmatch(name)) is None:
            continue
        waiting: list[ToolCall] = []
        for entry in map(mapping, array(entries)):
            match entry.get("role"):
                case "assistant":
                    answer = _answer(entry, f"t{number + 1}s{step[1]}", _call(number, int(step[1]), one))
                    waiting = list(answer.calls)
                    yield answer
                case "tool":
                    yield _result(entry, waiting)
                case _:
                    remarks.left_out("a note of the evaluation on an answer")


def _answer(entry: Mapping[str, Any], key: str, call: Call) -> ImportedMessage:
    """An answer: a text, or calls, each an object of a name and its arguments."""
    content = entry.get("content")
    asked = content if isinstance(content, list) and all(len(mapping(one)) == 1 for one in content) else None
    named = [pair for one in asked or () for pair in mapping(one).items()]
    calls = [tool_call(name, arguments, f"{key}c{i}") for i, (name, arguments) in enumerate(named)]
    text = "" if content is None or asked is not None else as_text(content)
    thought = string(entry.get("reasoning_content"))
    extra = {"reasoning_content": thought} if thought else {}
    return ImportedMessage("assistant", (text,) if text else (), tuple(calls), extra=extra, call=call)


def _result(entry: Mapping[str, Any], waiting: list[ToolCall]) -> ImportedMessage:
    """What a tool gave, to the first call that still waits; behind an answer in words it is a user's message."""
    text = as_text(entry.get("content"))
    if not waiting:
        return ImportedMessage("user", (text,), observation=True)
    call = waiting.pop(0)
    return ImportedMessage("tool", (text,), call_id=call.id, name=call.name)


def _call(turn: int, step: int, one: Mapping[str, Any]) -> Call:
    """The numbers of a step, as far as the result states them."""
    read, written, seconds = (_at(one.get(name), turn, step) for name in _NUMBERS)
    return Call(usage_of({"input_tokens": read, "output_tokens": written}), duration_s=number(seconds))


def _at(numbers: Any, turn: int, step: int) -> Any:
    steps = array(array(numbers)[turn]) if turn < len(array(numbers)) else []
    return steps[step] if step < len(steps) else None
