"""Logs of Burr's tracker: steps with the state after each. If the state holds a conversation, its answers are calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks, Unreadable
from workbench.importers.formats.otel import gen_ai_call
from workbench.importers.messages import ROLES, read_messages
from workbench.importers.spans import ImportedSpan, nested_of
from workbench.importers.threads import ObservedCall, attempted, threads_of
from workbench.importers.values import array, as_text, duration_between, mapping, moment, string

_NUMBERS = ("sequence_id", "action_sequence_id")
"""Of the step that an entry belongs to; entries of spans and streams have the second."""
_SPOKEN = re.compile(r"(human|user|ai|assistant|system)\s*: ?", re.IGNORECASE)


def is_burr(body: Any) -> bool:
    """Entries that begin and end the steps of an application."""
    first = [mapping(one) for one in array(body)[:20]]
    numbered = any("sequence_id" in one for one in first)
    return numbered and all(string(one.get("type")) and any(key in one for key in _NUMBERS) for one in first)


def read_burr(body: Any) -> list[Conversation]:
    """The calls in its spans; without spans of calls, the conversation that grows in the state: each answer that a step
    adds is a call of that step.
    """
    remarks, entries = Remarks(), [mapping(one) for one in array(body)]
    ended = [one for one in entries if one.get("type") == "end_entry"]
    begun = {as_text(one.get("sequence_id")): moment(one.get("start_time")) for one in entries if "start_time" in one}
    failed = next((text for one in reversed(ended) if (text := string(one.get("exception")))), "")
    status = "failed" if failed else "success"
    told = (attempted(partial(gen_ai_call, span, remarks), remarks) for span in _spans(entries))
    if traced := [call for call in told if call is not None]:
        return [Conversation(threads_of(traced), "", status, failed[-500:], remarks.all)]
    key = _history_key(ended)
    if not key:
        names = ", ".join(dict.fromkeys(string(one.get("action"))[:40] for one in ended))
        raise Unreadable(f"no step's state holds a conversation: its actions ({names}) record no model call")
    calls, seen = list[ObservedCall](), 0
    for one in ended:
        said = _said(array(mapping(one.get("state")).get(key)), remarks)
        for at in range(seen, len(said)):
            if said[at].role == "assistant":
                start = begun.get(as_text(one.get("sequence_id")), "")
                passed = duration_between(start, moment(one.get("end_time")))
                calls.append(ObservedCall(tuple(said[:at]), said[at], Call(at=start, duration_s=passed)))
        seen = len(said)
    remarks.add(f"read from {key!r} of the state; what a step put around it in its prompt is not in the log")
    return [Conversation(threads_of(calls), "", status, failed[-500:], remarks.all, {"state_key": key})]


def _spans(entries: Sequence[Mapping[str, Any]]) -> list[ImportedSpan]:
    """The spans that a log keeps, with their attributes, which are entries of their own; oldest first."""
    found: dict[str, dict[str, Any]] = {}
    for one in entries:
        if key := string(one.get("span_id")):
            span = found.setdefault(key, {"attributes": {}})
            span |= {name: one[name] for name in ("span_name", "start_time", "end_time") if name in one}
            if one.get("type") == "attribute":
                span["attributes"][as_text(one.get("key"))] = one.get("value")
    return [
        ImportedSpan(
            string(span.get("span_name")),
            span["attributes"],
            start=moment(span.get("start_time")),
            end=moment(span.get("end_time")),
            nested=nested_of(span["attributes"]),
        )
        for span in found.values()
    ]


def _history_key(ended: Sequence[Mapping[str, Any]]) -> str:
    """The name in the state of the longest conversation with an answer."""
    for one in reversed(ended):
        found = {key: _said(array(value), Remarks()) for key, value in mapping(one.get("state")).items()}
        answered = {key: said for key, said in found.items() if any(said_.role == "assistant" for said_ in said)}
        if answered:
            return max(answered, key=lambda key: len(answered[key]))
    return ""


def _said(history: Sequence[Any], remarks: Remarks) -> list[ImportedMessage]:
    """The messages of a list of them, or of lines that begin with a speaker; empty for other values."""
    if history and all(string(mapping(one).get("role")).lower() in ROLES for one in history):
        return read_messages([dict(one) | {"type": "message"} for one in history], remarks, "state")
    spoken = [(_SPOKEN.match(one), one) for one in history if isinstance(one, str)]
    if len(spoken) != len(history) or not all(match for match, _ in spoken):
        return []
    return [ImportedMessage(ROLES[match[1].lower()], (one[match.end() :],)) for match, one in spoken if match]
