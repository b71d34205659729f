"""Steps of an agent of Antigravity or Windsurf: the transcript that it writes line by line (``transcript.jsonl``), and
the trajectory that its server tells. A planner's response is an answer, other steps of the model are results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.context.message import ToolCall
from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks
from workbench.importers.parts import tool_call
from workbench.importers.threads import linear, with_answers
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, loads, mapping, moment, number, string

_PREFIX = "CORTEX_STEP_TYPE_"
_ANSWER, _ASKED, _COMPACTED = "PLANNER_RESPONSE", "USER_INPUT", "CHECKPOINT"
_OF_SYSTEM = (
    "CONVERSATION_HISTORY",
    "KNOWLEDGE_ARTIFACTS",
    "EPHEMERAL_MESSAGE",
    "SYSTEM_MESSAGE",
    "MEMORY",
    _COMPACTED,
)
"""Steps of the program: with a text they are sent to the model."""


def is_antigravity(body: Any) -> bool:
    """A list of steps, or a trajectory with some, of which one is the planner's response."""
    steps = [mapping(one) for one in _steps(body)]
    kinds = [string(one.get("type")) for one in steps]
    if not any(kind in (_ANSWER, _PREFIX + _ANSWER) for kind in kinds):
        return False
    return all(kind.isupper() for kind in kinds) and not any("role" in one for one in steps)


def _steps(body: Any) -> Sequence[Any]:
    outer = mapping(mapping(body).get("trajectory")) or mapping(body)
    return array(body if isinstance(body, list) else outer.get("steps"))


def read_antigravity(body: Any) -> list[Conversation]:
    """One conversation; what follows a checkpoint with a summary is a context of its own."""
    remarks, outer = Remarks(), mapping(body)
    contexts: list[list[ImportedMessage]] = [[]]
    waiting: list[ToolCall] = []
    for place, step in enumerate(_latest(_steps(body))):
        kind = string(step.get("type")).removeprefix(_PREFIX)
        told = _told(step, kind)
        if kind == _ANSWER:
            answer = _answer(step, f"step{as_text(step.get('step_index', place))}")
            waiting = list(answer.calls)
            contexts[-1].append(answer)
        elif kind == _ASKED or kind in _OF_SYSTEM:
            if not told:
                remarks.left_out(f"a step of the kind {kind[:40]!r} without a text")
                continue
            if kind == _COMPACTED:
                contexts.append([])
            by_program = step.get("source") == "SYSTEM" and kind != _COMPACTED
            contexts[-1].append(ImportedMessage("system" if by_program else "user", (told,)))
        else:
            contexts[-1].append(_result(step, told, waiting))
    threads = tuple(linear(said) for said in with_answers(contexts, remarks))
    kept = {key: value for key, value in outer.items() if key not in ("steps", "trajectory")}
    return [Conversation(threads, string(outer.get("cascadeId")), remarks=remarks.all, kept=kept)]


def _latest(steps: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """The steps as they stood last: one that still ran is written again under its number."""
    found: dict[Any, Mapping[str, Any]] = {}
    for i, step in enumerate(map(mapping, steps)):
        index = step.get("step_index")
        found[i if index is None else ("step", as_text(index))] = step
    yield from found.values()


def _own(step: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """What a trajectory has under the name of the step's kind: ``runCommand`` of RUN_COMMAND."""
    first, *rest = kind.lower().split("_")
    return mapping(step.get(first + "".join(map(str.capitalize, rest))))


def _told(step: Mapping[str, Any], kind: str) -> str:
    """The text of a step; of a result in a trajectory what stands under the name of its kind, as JSON."""
    content, own = step.get("content"), _own(step, kind)
    if content is not None:
        return string(mapping(content).get("text")) or as_text(content)
    if kind == _ASKED:
        items = [string(mapping(item).get("text")) for item in array(own.get("items"))]
        return "\n".join(filter(None, items)) or string(own.get("userResponse"))
    if kind in _OF_SYSTEM:
        return next((text for key in ("content", "text", "message", "summary") if (text := string(own.get(key)))), "")
    output = mapping(own.get("combinedOutput")).get("full")
    return output if isinstance(output, str) else as_text(own) if own else ""


def _answer(step: Mapping[str, Any], key: str) -> ImportedMessage:
    """The planner's response, made by one call of the model."""
    own, about = _own(step, _ANSWER), mapping(step.get("metadata"))
    text = _told(step, _ANSWER) if "content" in step else string(own.get("modifiedResponse") or own.get("response"))
    calls: list[ToolCall] = []
    for i, one in enumerate(map(mapping, array(step.get("tool_calls")) or array(own.get("toolCalls")))):
        arguments: Any = one.get("argumentsJson")
        if arguments is None:  # Each argument is a JSON text of its own.
            arguments = {name: _value(value) for name, value in mapping(one.get("args")).items()}
        calls.append(tool_call(one.get("name"), arguments, one.get("id") or f"{key}c{i}"))
    thought = string(step.get("thinking")) or string(own.get("thinking"))
    numbers = mapping(step.get("usage")) or mapping(about.get("modelUsage")) or step
    usage = usage_of({name: _value(value) for name, value in numbers.items()})
    model = string(step.get("model")) or string(about.get("generatorModel")) or string(about.get("generatorModelUid"))
    call = Call(usage, model=model, at=moment(step.get("created_at") or about.get("createdAt")))
    extra = {"reasoning_content": thought} if thought else {}
    return ImportedMessage("assistant", (text,) if text else (), tuple(calls), extra=extra, call=call)


def _value(text: Any) -> Any:
    """A value that may stand as JSON text, as arguments and counts do."""
    try:
        return loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _result(step: Mapping[str, Any], told: str, waiting: list[ToolCall]) -> ImportedMessage:
    """What a tool gave, to the first call that still waits."""
    code = number(step.get("exit_code"))
    failed = "ERROR" in string(step.get("status")) or bool(code)
    if not waiting:
        return ImportedMessage("user", (told,), observation=True)
    call = waiting.pop(0)
    return ImportedMessage("tool", (told,), call_id=call.id, name=call.name, is_error=failed)
