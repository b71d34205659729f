"""Runs of LangSmith: those of a model, with input, output, and trace; and the events that LangChain streams of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from workbench.importers.conversation import Call, Conversation, Remarks, Unreadable
from workbench.importers.exchanges import answer_of, given_of, is_response, marks_in, parameters_of, whole
from workbench.importers.messages import read_messages, tool_schemas
from workbench.importers.threads import ObservedCall, attempted, threads_of, unanswered
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, decoded, duration_between, mapping, moment, number, string

_UUID = 36
"""Characters of an id."""


def is_langsmith(body: Any) -> bool:
    """Runs with their type, in a list, in an object, or as a tree."""
    return any("run_type" in one and "inputs" in one for one in _runs(body))


def _runs(body: Any) -> list[Mapping[str, Any]]:
    """All runs, those inside others too."""
    if events := _events(body):
        return _from_events(events)
    found: list[Mapping[str, Any]] = []
    waiting = _ended(body) if isinstance(body, dict) else list(array(body))
    while waiting:
        one = mapping(waiting.pop(0))
        if "run_type" in one:
            found.append(one)
        inner = [*array(one.get("child_runs")), *array(one.get("runs"))]
        waiting[:0] = inner
    return found


_OF_MODELS = ("on_chat_model_", "on_llm_")


def _events(body: Any) -> list[Mapping[str, Any]]:
    """Events of LangChain's ``astream_events``, with calls of a model among them; else nothing."""
    listed = [mapping(one) for one in array(body)]
    told = all(string(one.get("event")).startswith("on_") and "run_id" in one for one in listed)
    return listed if told and any(one["event"].startswith(_OF_MODELS) for one in listed) else []


def _from_events(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The runs that events tell of, in the order in which they began. Pieces of an answer are passed over: its last
    event holds it whole."""
    runs: dict[str, dict[str, Any]] = {}
    for one in events:
        data, ended = mapping(one.get("data")), string(one["event"]).rpartition("_")[2]
        kind = "llm" if string(one["event"]).startswith(_OF_MODELS) else "chain"
        run = runs.setdefault(as_text(one["run_id"]), {"run_type": kind, "inputs": {}, "name": one.get("name")})
        run["extra"] = {"metadata": one.get("metadata")}
        run["inputs"] = mapping(decoded(data.get("input"))) or run["inputs"]
        if ended == "end" and data.get("output") is not None:
            message = mapping(decoded(data["output"]))
            run["outputs"] = message if "generations" in message else {"generations": [[{"message": message}]]}
        elif ended == "error":
            run["error"] = as_text(data.get("error"))
    return list(runs.values())


def _ended(body: Mapping[str, Any]) -> list[Any]:
    """One batch as sent to LangSmith: runs that began, each merged with the data sent at its end."""
    if not isinstance(body.get("post"), list):
        return [body]
    ends = {_run_id(one): one for one in map(mapping, array(body.get("patch")))}
    began = [mapping(one) for one in body["post"]]
    return [{**one, **{k: v for k, v in ends.get(_run_id(one), {}).items() if v is not None}} for one in began]


def _run_id(run: Mapping[str, Any]) -> str:
    """Its id, which also ends its place in the trace's order."""
    return string(run.get("id")) or string(run.get("dotted_order"))[-_UUID:]


def read_langsmith(body: Any) -> list[Conversation]:
    """A conversation for each trace with model calls in it."""
    runs = _runs(body)
    traces = dict.fromkeys(string(one.get("trace_id")) for one in runs)
    found = [one for trace in traces if (one := _trace(trace, runs)) is not None]
    if not found:
        raise Unreadable(f"none of its {len(runs)} runs is an answered call of a model")
    return found


def _trace(trace: str, runs: Sequence[Mapping[str, Any]]) -> Conversation | None:
    remarks, calls, others = Remarks(), list[ObservedCall](), list[Mapping[str, Any]]()
    mine = sorted((one for one in runs if string(one.get("trace_id")) == trace), key=_start)
    for one in mine:
        observed = attempted(partial(_call, one, remarks), remarks) if one.get("run_type") == "llm" else None
        if observed is not None:
            calls.append(observed)
        else:
            others.append({key: one[key] for key in ("name", "run_type", "error", "tags", "extra") if one.get(key)})
    if not calls:
        return None
    if others:
        remarks.left_out("a traced run that is not a model call", count=len(others), kept=True)
    error = as_text(mine[0].get("error"))
    kept = {"trace": trace, "runs": others}
    status = "failed" if error else "success"
    title = string(mine[0].get("name"))
    return Conversation(threads_of(calls), title, status, error[:500], remarks.all, kept)


def _start(run: Mapping[str, Any]) -> str:
    return moment(run.get("start_time"))


def _call(run: Mapping[str, Any], remarks: Remarks) -> ObservedCall | None:
    inputs, outputs = mapping(decoded(run.get("inputs"))), mapping(decoded(run.get("outputs")))
    asked: Any = inputs.get("messages")
    if isinstance(asked, list) and asked and isinstance(asked[0], list):
        inputs = {**inputs, "messages": asked[0]}
    elif prompts := array(inputs.get("prompts")):
        inputs = {**inputs, "prompt": as_text(prompts[0])}
    given = given_of(inputs)
    generation = mapping(_first(_first(outputs.get("generations"))))
    message = generation.get("message") or (
        {"role": "assistant", "content": generation.get("text")} if generation else None
    )
    if given is None:
        remarks.left_out("a model call without its messages", as_text(run.get("name"))[:40])
        return None
    said = [one for one in read_messages([message], remarks, "output") if one.role == "assistant"] if message else []
    answer = whole(said) if said else answer_of(outputs, remarks) if is_response(outputs) else None
    extra = mapping(run.get("extra"))
    invoked, about = mapping(extra.get("invocation_params")), mapping(extra.get("metadata"))
    start = _start(run)
    model = next((found for key in ("model", "model_name") if (found := string(invoked.get(key)))), "")
    call = Call(
        usage_of(_counts(run, outputs, message)),
        number(run.get("total_cost")),
        string(about.get("ls_model_name")) or model,
        string(about.get("ls_provider")),
        string(mapping(generation.get("generation_info")).get("finish_reason")),
        duration_between(start, moment(run.get("end_time"))),
        start,
    )
    tools = tool_schemas(invoked.get("tools") or inputs.get("tools"))
    asked = tuple(read_messages(given, remarks, "inputs"))
    call = replace(call, marks=marks_in({**inputs, **invoked}, asked))
    if answer is None:
        answer, call = unanswered(call, as_text(run.get("error"))[:500] or "its run holds no answer")
    return ObservedCall(asked, answer, call, model or call.model, tools, parameters_of(invoked))


def _first(value: object) -> Any:
    """The first element of a list; other values unchanged."""
    return (value[0] if value else None) if isinstance(value, list) else value


def _counts(run: Mapping[str, Any], outputs: Mapping[str, Any], message: object) -> Mapping[str, Any]:
    body = mapping(message)
    inner = mapping(mapping(body.get("kwargs")).get("usage_metadata")) or mapping(body.get("usage_metadata"))
    reported = mapping(outputs.get("llm_output"))
    listed = (
        inner,
        reported.get("token_usage"),
        reported.get("usage"),
        outputs.get("usage"),
        outputs.get("usage_metadata"),
    )
    return next((found for one in listed if (found := mapping(one))), run)
