"""Logs of Inspect: samples with their messages, and events with the exact input of every model call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from workbench.context.marks import Marks
from workbench.importers.conversation import Call, Conversation, Remarks, Unreadable
from workbench.importers.exchanges import answer_of, finish_of, given_of, marks_in
from workbench.importers.messages import read_messages, tool_schemas
from workbench.importers.threads import ObservedCall, attempted, linear, threads_of, unanswered
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, duration_between, mapping, moment, number, string

_ATTACHED = "attachment://"
_REFERENCE = re.compile(r"attachment://([\w-]+)")
_KEPT = ("id", "epoch", "target", "scores", "metadata", "error", "model_usage", "total_time", "limit")


def is_inspect(body: Any) -> bool:
    """A whole log, one sample of it, or a list of its events."""
    outer = mapping(body)
    if isinstance(outer.get("eval"), dict) and ("plan" in outer or "samples" in outer):
        return True
    events = outer.get("events")
    return isinstance(events, list) and any(
        string(mapping(event).get("event")) in ("model", "span_begin", "sample_init") for event in events
    )


def read_inspect(body: Any) -> list[Conversation]:
    """A conversation for each sample."""
    outer = mapping(body)
    if "eval" not in outer:
        return [_sample(outer, {})]
    samples = [one for one in array(outer.get("samples")) if isinstance(one, dict)]
    if not samples:
        raise Unreadable("it has no samples: there is no conversation in it")
    found, faults, lost = [], list[str](), Remarks()
    for sample in samples:
        try:
            found.append(_sample(sample, mapping(outer.get("eval"))))
        except Unreadable as fault:
            faults.append(str(fault))
            lost.left_out("a sample that holds no conversation", str(fault)[:60])
    if not found:
        raise Unreadable(faults[0])
    if faults:
        found[-1] = replace(found[-1], remarks=(*found[-1].remarks, *lost.all))
    return found


def _sample(sample: Mapping[str, Any], head: Mapping[str, Any]) -> Conversation:
    remarks = Remarks()
    attachments = mapping(sample.get("attachments"))
    pool = array(sample.get("message_pool")) or array(mapping(sample.get("events_data")).get("messages"))
    events = [mapping(one) for one in array(sample.get("events"))]
    messages = _attached(list(pool), attachments)
    calls: list[ObservedCall] = []
    for event in events:
        if event.get("event") != "model":
            continue
        observed = attempted(partial(_observed, _attached(event, attachments), messages, remarks), remarks)
        calls += [observed] if observed is not None else []
    threads = threads_of(calls)
    if not threads and sample.get("messages"):
        said = read_messages(_attached(sample["messages"], attachments), remarks)
        threads = (linear(said, model=string(head.get("model"))),)
    if not threads:
        raise Unreadable(f"sample {as_text(sample.get('id'))[:40] or '?'} holds neither model events nor messages")
    task, number_ = string(head.get("task")), as_text(sample.get("id"))[:40]
    error = mapping(sample.get("error"))
    kept = {key: sample[key] for key in _KEPT if sample.get(key) not in (None, {}, [])}
    return Conversation(
        threads,
        "-".join(filter(None, (task, number_, f"e{as_text(sample.get('epoch'))[:8]}" if "epoch" in sample else ""))),
        "failed" if error else "success",
        as_text(error.get("message"))[:500],
        remarks.all,
        kept | ({"eval": {key: head[key] for key in ("task", "model", "created") if key in head}} if head else {}),
    )


def _observed(event: Mapping[str, Any], pool: Sequence[Any], remarks: Remarks) -> ObservedCall | None:
    output = mapping(event.get("output"))
    bodies = [*array(event.get("input"))]
    for reference in array(event.get("input_refs")):
        match reference:
            case [int() as start, int() as end] if 0 <= start <= end <= len(pool):
                bodies += pool[start:end]
            case _:
                raise Unreadable("a model event refers to messages that the log does not hold")
    at = moment(event.get("timestamp"))
    choices = array(output.get("choices"))
    reason = mapping(next(iter(choices), None)).get("stop_reason")
    call = Call(
        usage_of(output.get("usage")),
        model=string(output.get("model")),
        finish_reason=finish_of({"choices": [{"finish_reason": reason}]}),
        duration_s=number(output.get("time")) or duration_between(at, moment(event.get("completed"))),
        at=at,
    )
    config = {key: value for key, value in mapping(event.get("config")).items() if value is not None}
    if event.get("tools"):
        config["tool_choice"] = event.get("tool_choice", "auto")
    given = tuple(read_messages(bodies, remarks, "input"))
    call = replace(call, marks=_marks(mapping(mapping(event.get("call")).get("request")), len(given)))
    error = as_text(event.get("error") or output.get("error"))[:500]
    if error or not choices:
        fault = error or "its event holds no answer"
        return ObservedCall(
            given, *unanswered(call, fault), string(event.get("model")), tool_schemas(event.get("tools")), config
        )
    answer = answer_of(output, remarks)
    # Graders of vitals note their answer as what they were asked.
    unstated = _ECHO if given and len(answer.text) > _SHORT and given[-1].text.strip() == answer.text.strip() else ""
    return ObservedCall(
        given, answer, call, string(event.get("model")), tool_schemas(event.get("tools")), config, unstated
    )


_ECHO = "the file has the answer in the place of what the model was asked"
_SHORT = 80
"""Characters of an answer that may repeat a question by chance."""


def _marks(request: Mapping[str, Any], messages: int) -> Marks | None:
    """The cache marks of the request as it was sent, which a log may hold beside its input of so many ``messages``."""
    said = read_messages(given_of(request) or [], Remarks(), "request")
    found = marks_in(request, said)
    if found is None or len(said) == messages:
        return found
    # The two are cut into messages otherwise, so a place in the middle of one is none in the other.
    return Marks(tuple(place for place in found.at if isinstance(place, str)), found.ttl)


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    """The value with every reference to an attachment replaced by what it refers to."""
    if not attachments:
        return value
    if isinstance(value, str):
        if _ATTACHED not in value:
            return value
        return _REFERENCE.sub(lambda found: as_text(attachments.get(found[1], found[0])), value)
    if isinstance(value, dict):
        return {key: _attached(one, attachments) for key, one in value.items()}
    if isinstance(value, list):
        return [_attached(one, attachments) for one in value]
    return value
