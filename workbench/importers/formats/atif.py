"""Trajectories in ATIF, the interchange format of agent harnesses: steps of a system, a user and an agent."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from workbench.engine.journal.usage import StatedUsage, Usage
from workbench.importers.conversation import (
    COMPACTED,
    Call,
    Conversation,
    ImportedMessage,
    Remarks,
    Thread,
    Unreadable,
    unmarked,
)
from workbench.importers.messages import read_message, tool_schemas
from workbench.importers.threads import with_answers
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, count, mapping, moment, number, string

_STEP = (
    *("step_id", "timestamp", "source", "model_name", "message", "reasoning_content", "tool_calls", "observation"),
    *("metrics", "is_copied_context", "llm_call_count", "extra"),
)
_METRICS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "extra")
_TAKEN = ("steps", "subagent_trajectories", "continued_trajectory_ref")
_INNER = (*_TAKEN, "agent", "session_id", "trajectory_id", "schema_version")
_DEEPEST = 20
"""Sub-agents in one another."""


def is_atif(body: Any) -> bool:
    """Steps with sources beside an agent."""
    outer = mapping(body)
    steps = array(outer.get("steps"))
    return "agent" in outer and bool(steps) and all("source" in mapping(one) for one in steps)


def read_atif(body: Any) -> list[Conversation]:
    """One run; each sub-agent that the file holds is a context of its own."""
    remarks, outer = Remarks(), mapping(body)
    threads = list(_threads(outer, remarks, 0))
    if not threads:
        raise Unreadable("none of its steps holds a message")
    if reference := as_text(outer.get("continued_trajectory_ref")):
        remarks.left_out(f"what goes on in another file ({reference[:80]})")
    kept = {key: value for key, value in outer.items() if key not in _TAKEN}
    title, stated = string(outer.get("session_id")), _totals(mapping(outer.get("final_metrics")))
    return [Conversation(tuple(threads), title, remarks=remarks.all, kept=kept, stated=stated)]


def _totals(metrics: Mapping[str, Any]) -> StatedUsage:
    """The sums of ``final_metrics``."""
    named = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens")
    sent, received, cached = (count(metrics.get(name)) for name in named)
    return StatedUsage(Usage(input=sent, output=received, cached=cached), number(metrics.get("total_cost_usd")) or None)


def _threads(outer: Mapping[str, Any], remarks: Remarks, depth: int) -> Iterator[Thread]:
    """The contexts of an agent, then those of its sub-agents. A compaction that replaces the messages begins a context
    with the system's first words and the summary (``extra.context_management`` of a system step).
    """
    agent, said = mapping(outer.get("agent")), list[ImportedMessage]()
    inner = [mapping(one) for one in array(outer.get("subagent_trajectories"))]
    known = {as_text(one.get(key)) for one in inner for key in ("trajectory_id", "session_id") if one.get(key)}
    contexts = [said]
    for step in map(mapping, array(outer.get("steps"))):
        extra = mapping(step.get("extra"))
        managed = mapping(extra.get("context_management"))
        remarks.unread(step, _STEP, "a step", _where(step))
        remarks.unread(extra, ("context_management",), "what a step has beside (extra)", _where(step))
        remarks.unread(mapping(step.get("metrics")), _METRICS, "the metrics of a step", _where(step))
        if step.get("source") != "agent" and managed.get("boundary") == "replace":
            remarks.add(COMPACTED)
            head = list(takewhile(lambda one: one.role == "system", said))
            said = [*head, *_summary(step, remarks, known)]
            contexts.append(said)
        else:
            said += _said(step, said, remarks, known)
    named = (one.call.model for said in contexts for one in said if one.call is not None and one.call.model)
    model = string(agent.get("model_name")) or next(named, "")
    tools, marked = unmarked(tool_schemas(agent.get("tool_definitions")))
    for context in with_answers(contexts, remarks):
        yield Thread(tuple(context), model, tools, marked=marked)
    if depth < _DEEPEST:
        for one in inner:
            remarks.unread(one, _INNER, "a sub-agent's trajectory")
            yield from _threads(one, remarks, depth + 1)
    elif inner:
        remarks.left_out(f"a sub-agent below more than {_DEEPEST} others", count=len(inner))


def _summary(step: Mapping[str, Any], remarks: Remarks, known: Container[str]) -> list[ImportedMessage]:
    """The summary of a compaction: what the operation gave; where it gave nothing, the words of its step."""
    where, words = _where(step), step.get("message")
    found = list(_results(step, remarks, "user", known))
    if found and words:
        remarks.left_out("the words of a compaction beside its summary", where)
    return found or list(read_message({"role": "user", "content": words}, remarks, where) if words else ())


def _said(
    step: Mapping[str, Any], before: list[ImportedMessage], remarks: Remarks, known: Container[str]
) -> Iterator[ImportedMessage]:
    where, text = _where(step), step.get("message")
    match step.get("source"):
        case "agent":
            yield from _answered(step, remarks, where, known)
        case "user" | "system" as source:
            if source == "system" and text and any(one.role != "system" for one in before):
                remarks.add("a system step behind the first words is read as a system message at its place")
            if text or not mapping(step.get("observation")):
                yield from read_message({"role": source, "content": text}, remarks, where)
            yield from _results(step, remarks, source, known)
        case other:
            remarks.left_out(f"a step of the source {as_text(other)[:40]!r}", where)


def _where(step: Mapping[str, Any]) -> str:
    return f"step {as_text(step.get('step_id'))[:12]}"


def _results(step: Mapping[str, Any], remarks: Remarks, role: str, known: Container[str]) -> Iterator[ImportedMessage]:
    """Yields the results of an operation of the system or the user, as their messages."""
    where = _where(step)
    for one in map(mapping, array(mapping(step.get("observation")).get("results"))):
        if (content := _content(one, remarks, where, known)) not in (None, ""):
            yield from read_message({"role": role, "content": content}, remarks, where)


def _content(result: Mapping[str, Any], remarks: Remarks, where: str, known: Container[str]) -> Any:
    """Returns the content of a result; of one that refers to a sub-agent's trajectory alone, the reference."""
    references = [mapping(one) for one in array(result.get("subagent_trajectory_ref"))]
    names = [
        as_text(one.get("trajectory_id") or one.get("session_id") or one.get("trajectory_path")) for one in references
    ]
    if missing := [name for name in names if name not in known]:
        remarks.left_out(
            "the trajectory of a sub-agent, which the file refers to and does not hold,", where, count=len(missing)
        )
    content = result.get("content")
    return content if content is not None else "".join(f"[sub-agent: {name}]" for name in names)


def _answered(
    step: Mapping[str, Any], remarks: Remarks, where: str, known: Container[str]
) -> Iterator[ImportedMessage]:
    """An answer and the results of its calls. A result that names no call answers them all: a text protocol's."""
    calls = [mapping(one) for one in array(step.get("tool_calls"))]
    results = [mapping(one) for one in array(mapping(step.get("observation")).get("results"))]
    named = all(one.get("source_call_id") for one in results)
    native = [
        {
            "id": one.get("tool_call_id"),
            "function": {"name": one.get("function_name"), "arguments": one.get("arguments")},
        }
        for one in calls
    ]
    body = {
        "role": "assistant",
        "content": step.get("message"),
        "reasoning_content": step.get("reasoning_content"),
        "tool_calls": native if named else [],
    }
    (answer,) = read_message(body, remarks, where)
    command = as_text([dict(one) for one in calls]) if calls and not named else ""
    if command:
        remarks.add("calls whose result names none of them stand as text")
        answer = replace(answer, parts=(*answer.parts, command), command=command)
    made = step.get("llm_call_count") != 0 and step.get("is_copied_context") is not True
    yield replace(answer, call=_call(step, remarks, where) if made else None)
    for one in results:
        role = {"role": "tool", "tool_call_id": one.get("source_call_id")} if named else {"role": "user"}
        content = _content(one, remarks, where, known)
        for result in read_message({**role, "content": content}, remarks, where):
            yield replace(result, observation=not named)


def _call(step: Mapping[str, Any], remarks: Remarks, where: str) -> Call:
    """Returns the figures of the call in the file. Its further counts stand in ``metrics.extra``, those of several
    calls in one step are a sum that belongs to none of them."""
    metrics = mapping(step.get("metrics"))
    usage, calls = usage_of({**mapping(metrics.get("extra")), **metrics}), count(step.get("llm_call_count")) or 1
    if calls > 1:
        remarks.left_out("a call of the model in a step that sums up several", where, count=calls - 1)
        usage = Usage()
    return Call(
        usage,
        number(metrics.get("cost_usd")),
        string(step.get("model_name")),
        at=moment(step.get("timestamp")),
    )
