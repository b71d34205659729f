"""Sessions and evaluations of Google's ADK: events whose content has parts, turns with their tool uses, evaluation
results, and the query lists of ADK's first releases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from workbench.importers.conversation import COMPACTED, Call, Conversation, ImportedMessage, Remarks, Thread, Unreadable
from workbench.importers.exchanges import Exchanges, system_said
from workbench.importers.messages import read_message
from workbench.importers.parts import tool_call
from workbench.importers.threads import ObservedCall, as_given, attempted, linear, threads_of
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, mapping, moment, number, string

_EXPECTED = "what the evaluation expects of each turn is read as what was said; it states no model and no usage"


def _field(body: Mapping[str, Any], name: str) -> Any:
    """A field as Python or as JavaScript writes its name: ``eval_id``, ``evalId``."""
    first, *others = name.split("_")
    return body.get(name) or body.get("".join((first, *map(str.capitalize, others))))


def _case_name(case: Mapping[str, Any]) -> str:
    return string(_field(case, "eval_id")).rpartition("/")[2]


def is_adk(body: Any) -> bool:
    """A session with its events, an evaluation set, one case of it, or the result of an evaluation."""
    if _queries(body):
        return True
    outer = mapping(body)
    if any(key in outer for key in ("eval_set_id", "evalSetId", "eval_case_results", "evalCaseResults")) or _turns(
        outer
    ):
        return True
    events = [mapping(one) for one in array(outer.get("events"))]
    told = any(
        ("author" in one or "invocation_id" in one or "invocationId" in one) and "content" in one for one in events
    )
    return told or (any(key in outer for key in ("app_name", "appName")) and isinstance(outer.get("events"), list))


def _queries(body: Any) -> list[Mapping[str, Any]]:
    """The cases of ADK's first releases: a list of queries, or of named cases with such a list each."""
    found = [mapping(one) for one in array(body)]
    if found and all("query" in one and ("reference" in one or "expected_tool_use" in one) for one in found):
        return [{"data": found}]
    return found if found and all("data" in one and _queries(one["data"]) for one in found) else []


def _turns(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = [mapping(one) for one in array(case.get("conversation"))]
    return found if found and all("user_content" in one or "userContent" in one for one in found) else []


def read_adk(body: Any) -> list[Conversation]:
    """A conversation for the session, or for each case. Raises Unreadable if no message is found."""
    outer = mapping(body)
    if queries := _queries(body):
        return [_queried(case) for case in queries]
    if results := [mapping(one) for one in array(_field(outer, "eval_case_results"))]:
        return _of_cases(results, _result)
    cases = [mapping(one) for one in array(_field(outer, "eval_cases"))]
    if cases or _turns(outer):
        return _of_cases(cases or [outer], _case)
    if not array(outer.get("events")):
        raise Unreadable("its session has no events yet: nothing was said in it")
    return [_session(outer)]


def _of_cases(
    cases: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Conversation | None]
) -> list[Conversation]:
    """A conversation for each case that has one; the others are named. Raises Unreadable if none has."""
    found, silent = list[Conversation](), Remarks()
    for i, case in enumerate(cases):
        one = read(case)
        if one is None:
            name = _case_name(case)
            silent.left_out("an evaluation case in which no agent says anything", name or f"case {i + 1}")
        else:
            found.append(one)
    if not found:
        raise Unreadable("none of its cases has a conversation")
    return [*found[:-1], replace(found[-1], remarks=(*found[-1].remarks, *silent.all))]


def _session(outer: Mapping[str, Any]) -> Conversation:
    """A session. An event that compacts earlier ones says what later calls saw in their place."""
    remarks, closed = Remarks(), list[list[ImportedMessage]]()
    events: list[tuple[float, list[ImportedMessage]]] = []
    authors: dict[str, None] = {}
    said: list[ImportedMessage] = []
    for i, event in enumerate(map(mapping, array(outer.get("events")))):
        compaction = mapping(mapping(event.get("actions")).get("compaction"))
        if compaction:
            remarks.add(COMPACTED)
            closed.append(said)
            events = _compacted(events, compaction, remarks, f"events[{i}]")
            said = [one for _, found in events for one in found]
            continue
        partial = event.get("partial", mapping(event.get("options")).get("partial"))
        content = mapping(event.get("content"))
        if not content.get("parts") or partial is True:
            remarks.left_out("an event without a message of its own", f"events[{i}]")
            continue
        author = string(event.get("author"))
        role = string(content.get("role")) or ("user" if author == "user" else "model")
        found = [
            replace(one, call=_call(event), name=_named(author)) if one.role == "assistant" else one
            for one in read_message({**content, "role": role}, remarks, f"events[{i}]")
        ]
        if any(one.role == "assistant" for one in found):
            authors[author or "model"] = None
        said += found
        events.append((number(event.get("timestamp")) or 0.0, found))
    if len(authors) > 1:
        remarks.add(f"answers of several agents ({', '.join(authors)[:80]}) stand in one context")
    if logged := _logged(outer, remarks):
        return _conversation(outer, logged, remarks)
    contexts = [one for one in (*closed, said) if any(message.call is not None for message in one)] or [said]
    if len(authors) == 1:
        contexts = [[replace(one, name="") if one.role == "assistant" else one for one in said] for said in contexts]
    models = [one.call.model for context in contexts for one in context if one.call is not None and one.call.model]
    threads = tuple(linear(one, model=next(iter(models), ""), made=False) for one in contexts)
    return _conversation(outer, threads, remarks)


def _conversation(outer: Mapping[str, Any], threads: tuple[Thread, ...], remarks: Remarks) -> Conversation:
    title = string(_field(outer, "app_name")) or string(outer.get("id"))
    kept = {key: value for key, value in outer.items() if key not in ("events", "event_logs")}
    return Conversation(threads, title, remarks=remarks.all, kept=kept)


def _logged(outer: Mapping[str, Any], remarks: Remarks) -> tuple[Thread, ...]:
    """The calls as the log of ADK's first releases states them, each with its whole request and its usage; empty
    without a log, or if it does not reach the end of the session.
    """
    logs = [mapping(one) for one in array(outer.get("event_logs"))]
    times = {as_text(one.get("id")): moment(one.get("timestamp")) for one in map(mapping, array(outer.get("events")))}
    asked = [one for one in logs if mapping(one.get("model_request")) and mapping(one.get("model_response"))]
    if not asked:
        return ()
    if as_text(asked[-1].get("event_id")) != next(reversed(times), ""):
        remarks.left_out("a request of the session's log, which does not reach its end,", count=len(asked))
        return ()
    exchanges, found = Exchanges(remarks), list[ObservedCall | None]()
    for one in asked:
        response = mapping(one["model_response"])
        told = {"usageMetadata": response.get("usage_metadata"), "modelVersion": response.get("model_version")}
        at = Call(at=times.get(as_text(one.get("event_id")), ""))
        found.append(attempted(partial(exchanges.read, one["model_request"], {**response, **told}, at), remarks))
    return threads_of([one for one in found if one is not None])


def _named(author: str) -> str:
    """The agent as the name of a message, if it is a valid name: so answers of several agents stay apart."""
    return author if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", author) else ""


def _compacted(
    events: Sequence[tuple[float, list[ImportedMessage]]], told: Mapping[str, Any], remarks: Remarks, where: str
) -> list[tuple[float, list[ImportedMessage]]]:
    """The events that calls see after a compaction: those outside of its range, and its content in their place."""
    start, end = (
        number(told.get(f"{name}_timestamp", told.get(f"{name}Timestamp"))) or 0.0 for name in ("start", "end")
    )
    content = mapping(_field(told, "compacted_content"))
    summary = read_message(_by("model", content), remarks, where) if content.get("parts") else []
    earlier = [(at, as_given(said)) for at, said in events if at < start]
    later = [(at, as_given(said)) for at, said in events if at > end]
    return [*earlier, (end, as_given(summary)), *later]


def _call(event: Mapping[str, Any]) -> Call:
    return Call(
        usage_of(_field(event, "usage_metadata")),
        model=string(_field(event, "model_version")),
        finish_reason=as_text(_field(event, "finish_reason")),
        at=moment(event.get("timestamp")),
    )


def _result(result: Mapping[str, Any]) -> Conversation | None:
    """Returns the conversation of an evaluation: the session that it made, or the turns that it kept."""
    details = mapping(_field(result, "session_details"))
    each = array(_field(result, "eval_metric_result_per_invocation"))
    title = _case_name(result)
    kept = {key: value for key, value in result.items() if not key.startswith(("session_details", "sessionDetails"))}
    if array(details.get("events")):
        found = _session(details)
        return replace(found, title=title or found.title, kept={**found.kept, "result": kept})
    turns = [mapping(_field(mapping(one), "actual_invocation")) for one in each]
    said, remarks = _of_turns({"conversation": [dict(one) for one in turns if one]})
    if not any(one.role == "assistant" for one in said):
        return None
    return Conversation((linear(said),), title, remarks=remarks.all, kept={"result": kept})


def _case(case: Mapping[str, Any]) -> Conversation | None:
    start = mapping(_field(case, "session_input"))
    said, remarks = _of_turns(case)
    if not any(one.role == "assistant" for one in said):
        return None
    remarks.add(_EXPECTED)
    title = _case_name(case)
    kept = {key: value for key, value in case.items() if key != "conversation"}
    return Conversation((linear(said),), title or string(start.get("app_name")), remarks=remarks.all, kept=kept)


def _of_turns(case: Mapping[str, Any]) -> tuple[list[ImportedMessage], Remarks]:
    """The messages in the turns of a case."""
    remarks = Remarks()
    said = system_said(case.get("system_instruction"), remarks)
    for i, turn in enumerate(_turns(case)):
        said += _turn(turn, remarks, f"conversation[{i}]")
    return said, remarks


def _turn(turn: Mapping[str, Any], remarks: Remarks, where: str) -> Iterator[ImportedMessage]:
    """The user's words, the tool uses as calls with the responses that are known, and the final answer."""
    asked = mapping(_field(turn, "user_content"))
    if asked.get("parts"):
        yield from read_message(_by("user", asked), remarks, where)
    data = mapping(_field(turn, "intermediate_data"))
    at = moment(_field(turn, "creation_timestamp"))
    for i, event in enumerate(map(mapping, array(_field(data, "invocation_events")))):
        if mapping(event.get("content")).get("parts"):
            yield from read_message(_by("model", mapping(event["content"])), remarks, where)
        else:
            remarks.left_out("an event without a message of its own", f"{where}.invocation_events[{i}]")
    uses = [mapping(one) for one in array(_field(data, "tool_uses"))]
    answers = [mapping(one) for one in array(_field(data, "tool_responses"))]
    yield from _used(uses, answers, at, remarks, where)
    for one in array(_field(data, "intermediate_responses")):
        author, parts = one if isinstance(one, list) and len(one) == 2 else ("", one)
        body = {"role": "model", "name": as_text(author), "parts": parts}
        yield from (replace(said, call=Call(at=at)) for said in read_message(body, remarks, where))
    final = mapping(_field(turn, "final_response"))
    if final.get("parts"):
        yield from (replace(one, call=Call(at=at)) for one in read_message(_by("model", final), remarks, where))


def _by(role: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """A content with its role; ``role`` where it states none, or null."""
    return {**content, "role": string(content.get("role")) or role}


def _used(
    uses: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]], at: str, remarks: Remarks, where: str
) -> Iterator[ImportedMessage]:
    """One answer with all calls of a turn, and the result of each: told by its id, else by its place."""
    if not uses:
        if answers:
            remarks.left_out("a tool's result without its call", where, count=len(answers))
        return
    calls = tuple(
        tool_call(one.get("name"), one.get("args"), one.get("id") or f"{where}.{i}") for i, one in enumerate(uses)
    )
    by_id = {as_text(one.get("id")): one for one in answers if one.get("id")}
    yield ImportedMessage("assistant", calls=calls, call=Call(at=at))
    for i, call in enumerate(calls):
        known = by_id.get(call.id) or (answers[i] if i < len(answers) and not answers[i].get("id") else {})
        if not known:
            remarks.add("a tool's result is not in the file: an empty object stands for it")
        yield ImportedMessage("tool", (as_text(known.get("response")) or "{}",), call_id=call.id, name=call.name)
    if len(answers) > len(calls):
        remarks.left_out("a tool's result without its call", where, count=len(answers) - len(calls))


def _queried(case: Mapping[str, Any]) -> Conversation:
    """A case of ADK's first releases: each query with the tools that it expects to be used, and the answer."""
    remarks, said = Remarks(), list[ImportedMessage]()
    remarks.add(_EXPECTED)
    for i, turn in enumerate(map(mapping, array(case.get("data")))):
        where = f"data[{i}]"
        said += read_message({"role": "user", "content": as_text(turn.get("query"))}, remarks, where)
        uses = [
            {"name": one.get("tool_name"), "args": one.get("tool_input"), "mocked": one.get("mock_tool_output")}
            for one in map(mapping, array(turn.get("expected_tool_use")))
        ]
        answers = [{"response": one["mocked"]} if one["mocked"] is not None else {} for one in uses]
        said += _used(uses, answers, "", remarks, where)
        for one in map(mapping, array(turn.get("expected_intermediate_agent_responses"))):
            body = {"role": "model", "name": as_text(one.get("author")), "content": as_text(one.get("text"))}
            said += read_message(body, remarks, where)
        if text := as_text(turn.get("reference")):
            said += read_message({"role": "model", "content": text}, remarks, where)
    kept = {key: value for key, value in case.items() if key != "data"}
    return Conversation((linear(said),), string(case.get("name")), remarks=remarks.all, kept=kept)
