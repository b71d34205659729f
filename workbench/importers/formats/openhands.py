"""Event histories of OpenHands: actions with the model's response beside them, and observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.engine.journal.usage import StatedUsage
from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks, Unreadable
from workbench.importers.exchanges import answer_of, finish_of
from workbench.importers.messages import read_message, tool_schemas
from workbench.importers.threads import as_given, linear
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, mapping, moment, number, string


def is_openhands(body: Any) -> bool:
    """A list of events with sources, bare or as the history of a result; the first releases wrote no source."""
    events = [mapping(one) for one in _events(body)]
    return any("source" in one or _is_action(one) for one in events) and all(
        any(key in one for key in ("action", "observation")) or ("source" in one and "kind" in one) for one in events
    )


def _is_action(event: Mapping[str, Any]) -> bool:
    """An action without a source, whose arguments stand in the event itself."""
    return isinstance(event.get("action"), str) and any(key in event for key in ("thought", "wait_for_response"))


def _sourced(event: Mapping[str, Any], is_first: bool) -> Mapping[str, Any]:
    """The event; one of the first releases as later ones write it."""
    if "source" in event or "kind" in event or not _is_action(event):
        return event
    told = {key: value for key, value in event.items() if key not in ("action", "action_risk", "is_confirmed")}
    by_user = event["action"] == "message" and is_first
    return {"args": told, "action": event["action"], "source": "user" if by_user else "agent"}


def _events(body: Any) -> list[Any]:
    """The events; an old result holds each action in a pair with its observation."""
    found = body if isinstance(body, list) else mapping(body).get("history")
    return [event for one in array(found) for event in (one if isinstance(one, list) else [one])]


class _History(Struct):
    """The conversation as the events build it up."""

    said: list[ImportedMessage] = field(default_factory=list)
    """Of the context that grows now."""
    closed: list[list[ImportedMessage]] = field(default_factory=list)
    """Contexts before it, which a condensation ended."""
    events: list[tuple[Any, list[ImportedMessage]]] = field(default_factory=list)
    """The events that the next call sees, by their ids, each with its messages."""
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The file's counts of each response of the model, by its id."""
    tools: tuple[Mapping[str, Any], ...] = ()
    responses: set[str] = field(default_factory=set)
    """Ids of the model's responses that have joined: several actions may come from one."""
    remarks: Remarks = field(default_factory=Remarks)

    def call(self, response: str, at: str) -> Call:
        """The call of a response of the model, by its id, with what the file counts of it."""
        told = self.metrics.get(response, {})
        return Call(usage_of(told), duration_s=number(told.get("latency")), at=at)

    def amend(self, said: ImportedMessage) -> None:
        """Replace the last message."""
        self.said[-1] = said
        found = next((said for _, said in reversed(self.events) if said), None)
        if found is not None:
            found[-1] = said


def read_openhands(body: Any) -> list[Conversation]:
    """The messages that the events stand for."""
    outer = mapping(body)
    metrics = mapping(outer.get("metrics"))
    history = _History(metrics=_by_response(metrics))
    for event in map(mapping, _events(body)):
        if (condensed := _condensation(event)) is not None:
            _condense(history, condensed)
            continue
        found = list(_said(_sourced(event, not history.said), history))
        history.said += found
        history.events.append((event.get("id"), found))
    if not history.said:
        raise Unreadable("its events hold no message")
    model = string(mapping(mapping(outer.get("metadata")).get("llm_config")).get("model"))
    contexts = [said for said in (*history.closed, history.said) if any(one.call is not None for one in said)]
    threads = [linear(one, model=model, tools=history.tools, made=False) for one in contexts or [history.said]]
    kept = {key: value for key, value in outer.items() if key not in ("history", "metadata")}
    failed = bool(outer.get("error"))
    return [
        Conversation(
            tuple(threads),
            string(outer.get("instance_id")),
            "failed" if failed else "success",
            as_text(outer.get("error"))[:500] if failed else "",
            history.remarks.all,
            kept,
            _totals(metrics),
        )
    ]


def _totals(metrics: Mapping[str, Any]) -> StatedUsage:
    """The sums of a result."""
    cost = number(metrics.get("accumulated_cost")) or None
    return StatedUsage(
        usage_of(metrics.get("accumulated_token_usage")), cost, len(array(metrics.get("token_usages"))) or None
    )


def _by_response(metrics: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Usage and seconds of each response, by its id."""
    found: dict[str, dict[str, Any]] = {}
    for key in ("token_usages", "response_latencies"):
        for one in map(mapping, array(metrics.get(key))):
            found.setdefault(string(one.get("response_id")), {}).update(one)
    return {key: value for key, value in found.items() if key}


def _condensation(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The part of an event that removes messages from later calls; None for any other event."""
    if event.get("action") == "condensation":
        return mapping(event.get("args"))
    return event if event.get("kind") == "Condensation" else None


def _condense(history: _History, told: Mapping[str, Any]) -> None:
    """Begin a context without the forgotten events; their summary takes the place where OpenHands puts it."""
    first, last = told.get("forgotten_events_start_id"), told.get("forgotten_events_end_id")
    named = array(told.get("forgotten_event_ids"))

    def is_gone(key: Any) -> bool:
        between = isinstance(key, int) and isinstance(first, int) and isinstance(last, int) and first <= key <= last
        return between or key in named

    kept = [(key, as_given(said)) for key, said in history.events if not is_gone(key)]
    if text := string(told.get("summary")):
        at = told.get("summary_offset")
        kept.insert(at if isinstance(at, int) and at >= 0 else len(kept), (None, [ImportedMessage("user", (text,))]))
    history.remarks.add("a condensation begins a context of its own, without what it forgot")
    history.closed.append(history.said)
    history.events = kept
    history.said = [one for _, said in kept for one in said]


def _said(event: Mapping[str, Any], history: _History) -> Iterator[ImportedMessage]:
    action, source = string(event.get("action")), string(event.get("source"))
    told = mapping(event.get("tool_call_metadata"))
    arguments = mapping(event.get("args"))
    if string(event.get("kind")).endswith("Event"):
        yield from _of_kind(event, history)
    elif "observation" in event:
        yield from _observed(event, told, history)
    elif action == "system":
        history.tools = tool_schemas(arguments.get("tools"))
        yield ImportedMessage("system", (as_text(arguments.get("content") or event.get("message")),))
    elif told.get("model_response"):
        yield from _answered(event, told, history)
    elif action == "message" and source == "user":
        yield ImportedMessage("user", (as_text(arguments.get("content") or event.get("message")),))
    elif source == "agent" and action in ("message", "finish", "think"):
        text = as_text(arguments.get("content") or arguments.get("thought") or event.get("message"))
        yield ImportedMessage("assistant", (text,), call=Call(at=moment(event.get("timestamp"))))
    elif source == "agent" and action and action not in ("change_agent_state", "recall", "null", "condensation"):
        text = f"{as_text(arguments.get('thought'))}\n\n[{action}] {as_text(dict(arguments))}".strip()
        yield ImportedMessage("assistant", (text,), call=Call(at=moment(event.get("timestamp"))), command=text)
    else:
        history.remarks.left_out(
            f"an event '{action[:40]}' of the {source[:40] or 'unknown source'}, which is not a message,"
        )


def _of_kind(event: Mapping[str, Any], history: _History) -> Iterator[ImportedMessage]:
    """An event of the agent SDK, which names its kind and holds the message as the model saw it."""
    kind, call_id = string(event.get("kind")), as_text(event.get("tool_call_id"))
    at = moment(event.get("timestamp"))
    if kind == "SystemPromptEvent":
        history.tools = tool_schemas(event.get("tools"))
        yield from read_message({"role": "system", "content": event.get("system_prompt")}, history.remarks)
    elif kind == "MessageEvent":
        for one in read_message(mapping(event.get("llm_message")), history.remarks, "llm_message"):
            yield replace(one, call=Call(at=at)) if one.role == "assistant" else one
    elif kind == "ActionEvent":
        body = {"role": "assistant", "content": event.get("thought"), "tool_calls": [event.get("tool_call")]}
        reasoning = {key: event.get(key) for key in ("reasoning_content", "thinking_blocks")}
        (one,) = read_message({**body, **reasoning}, history.remarks)
        key, last = string(event.get("llm_response_id")), history.said[-1] if history.said else None
        if key and key in history.responses and last is not None and last.role == "assistant":
            history.amend(replace(last, calls=(*last.calls, *one.calls)))  # one answer with several calls
        else:
            history.responses.add(key)
            yield replace(one, call=history.call(key, at))
    elif call_id and ("observation" in event or "error" in event):
        seen = event.get("observation", event.get("error"))
        content = mapping(seen).get("content", seen)
        failed = mapping(seen).get("is_error") is True or kind == "AgentErrorEvent"
        for one in read_message({"role": "tool", "content": content, "tool_call_id": call_id}, history.remarks):
            yield replace(one, name=string(event.get("tool_name")), is_error=failed)
    else:
        history.remarks.left_out(f"an event of kind {kind[:40]!r}, which is not a message,")


def _answered(event: Mapping[str, Any], told: Mapping[str, Any], history: _History) -> Iterator[ImportedMessage]:
    response = mapping(told.get("model_response"))
    key = string(response.get("id"))
    if key and key in history.responses:
        return
    history.responses.add(key)
    answer = answer_of(response, history.remarks)
    made = history.call(key, moment(event.get("timestamp")))
    call = replace(
        made,
        usage=usage_of(response.get("usage")) if response.get("usage") else made.usage,
        model=string(response.get("model")),
        finish_reason=finish_of(response),
    )
    yield ImportedMessage("assistant", answer.parts, answer.calls, extra=answer.extra, call=call)


def _observed(event: Mapping[str, Any], told: Mapping[str, Any], history: _History) -> Iterator[ImportedMessage]:
    """A result of a tool call, of a text command, or something that no model saw."""
    text, kind = as_text(event.get("content")), string(event.get("observation"))
    code = mapping(mapping(event.get("extras")).get("metadata")).get("exit_code")
    failed = kind == "error" or (isinstance(code, int) and code not in (0, -1))
    if told.get("tool_call_id"):
        call_id, name = string(told.get("tool_call_id")), string(told.get("function_name"))
        yield ImportedMessage("tool", (text,), call_id=call_id, name=name, is_error=failed)
    elif kind in ("run", "error", "edit", "read", "browse", "run_ipython") and array(history.said):
        answered = history.said[-1].role == "assistant"
        yield ImportedMessage("user", (text,), name=kind, is_error=failed, observation=answered)
    else:
        history.remarks.left_out(f"an observation '{kind[:40]}', which is not a message,")
