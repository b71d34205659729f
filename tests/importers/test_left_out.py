"""What an import leaves out is counted, named, printed, in its JSON and with the run; and what was read only half
before: requests without an answer, spans that hold each side in another form, evaluations, attachments."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.exporters.test_export import exported, seen
from tests.importers.examples import ANSWER, ASK, EXAMPLES, OPENAI, RESULT, SYSTEM
from tests.importers.test_journal import imported
from tests.importers.test_variants import read
from tests.importers.whole import read_file
from tests.support.command import run_cli
from tests.tools.test_images import png
from workbench.engine.journal.usage import Usage
from workbench.exporters.otel import spans_of_run
from workbench.importers.conversation import Conversation, Remarks, Unreadable


def _said(author: str, part: dict[str, Any]) -> dict[str, Any]:
    return {"author": author, "content": {"role": "user" if author == "user" else "model", "parts": [part]}}


ADK: dict[str, Any] = {"app_name": "x", "events": [_said("user", {"text": ASK}), _said("agent", {"text": ANSWER})]}


# -- the mechanism -----------------------------------------------------------------------------------------------------


def test_a_remark_counts_all_and_names_the_first_places() -> None:
    remarks = Remarks()
    for i in range(7):
        remarks.left_out("a line", f"line {i}")
    remarks.left_out("a span", kept=True)
    remarks.add("one is read as another")
    assert remarks.notes == (
        "a line is left out (7 times: line 0, line 1, line 2, line 3, line 4, …)",
        "a span is kept beside the run",
        "one is read as another",
    )
    assert [one.count for one in remarks.all if one.left_out] == [7, 1]


def _session(body: Any) -> None:
    body.insert(1, {"type": "odd", "uuid": "x"})


def _event(body: Any) -> None:
    body.insert(3, {"source": "environment", "action": "odd"})


def _step(body: Any) -> None:
    body["steps"].insert(2, {"step_id": 9, "source": "odd", "message": "?"})


def _adk(body: Any) -> None:
    body["events"].insert(1, {"author": "x", "content": {"parts": []}})


def _span(body: Any) -> None:
    spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans.insert(0, {**spans[0], "attributes": [{"key": "a", "value": {"stringValue": "b"}}]})


def _observation(body: Any) -> None:
    body["observations"].append({"type": "EVENT", "startTime": "2026-01-01T09:00:09Z", "name": "x"})


def _langsmith(body: Any) -> None:
    run = next(one for one in body if one["run_type"] == "llm")
    body.append({**run, "id": "other", "run_type": "chain"})


def _recorded(body: Any) -> None:
    body["interactions"].append({"request": {"method": "GET", "uri": "https://a.test"}, "response": {"body": {}}})


def _choice(body: Any) -> None:
    body["samples"][0]["events"][1]["output"]["choices"] *= 2


JUNK: dict[str, Callable[[Any], None]] = {
    "session": _session,
    "openhands": _event,
    "atif": _step,
    "adk": _adk,
    "otel": _span,
    "langfuse": _observation,
    "langsmith": _langsmith,
    "vcr": _recorded,
    "inspect": _choice,
}


@pytest.mark.parametrize("name", JUNK)
def test_what_no_reader_knows_is_said_and_takes_nothing_else_with_it(name: str) -> None:
    before = read({**EXAMPLES, "adk": ADK}[name], name)
    body = copy.deepcopy({**EXAMPLES, "adk": ADK}[name])
    JUNK[name](body)
    found = read(body, name)
    assert [thread.said for thread in found.threads] == [thread.said for thread in before.threads]

    def lost(one: Conversation) -> int:
        return sum(remark.count for remark in one.remarks if remark.left_out)

    assert lost(found) == lost(before) + 1


def test_what_was_left_out_is_printed_in_the_json_and_kept_with_the_run(folder: Path) -> None:
    steps = [*EXAMPLES["atif"]["steps"][:3], *({"step_id": i, "source": "\x1b[31modd"} for i in (7, 8))]
    (folder / "run.json").write_text(json.dumps({**EXAMPLES["atif"], "steps": steps}))
    (run,) = run_cli("import", "run.json", "--json").json
    what = {"what": "a step of the source '\\x1b[31modd'", "count": 2, "kept": False, "where": ["step 7", "step 8"]}
    assert run["left_out"] == [what]
    told = run_cli("import", "run.json").err
    assert "odd' is left out (2 times: step 7, step 8)" in told
    assert "\x1b" not in told
    assert run_cli("show", run["session_id"], "--json").json["imported"]["left_out"] == [what]
    assert "is left out (2 times: step 7, step 8)" in run_cli("show", run["session_id"], "--plain").out


# -- requests without an answer ----------------------------------------------------------------------------------------


def _unanswered(name: str) -> Any:
    body = copy.deepcopy(EXAMPLES[name])
    if name == "otel":
        spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        last = max(spans, key=lambda one: int(one["startTimeUnixNano"]))
        last["attributes"] = [one for one in last["attributes"] if "output" not in one["key"]]
    elif name == "langsmith":
        run = max((one for one in body if one["run_type"] == "llm"), key=lambda one: str(one["start_time"]))
        run |= {"outputs": None, "error": "context window exceeded"}
    elif name == "langfuse":
        last = [one for one in body["observations"] if one["type"] == "GENERATION"][-1]
        last |= {"output": None, "statusMessage": "context window exceeded"}
    elif name == "inspect":
        body["samples"][0]["events"][-1] |= {"error": "context window exceeded", "output": {}}
    elif name == "vcr":
        error = json.dumps({"error": {"message": "context window exceeded"}})
        body["interactions"][-1]["response"] = {"status": {"code": 400}, "body": {"string": error}}
    return body


@pytest.mark.parametrize("name", ["otel", "langsmith", "langfuse", "inspect", "vcr"])
def test_a_request_without_an_answer_is_kept_as_a_failed_call(folder: Path, name: str) -> None:
    (folder / "run.json").write_text(json.dumps(_unanswered(name)))
    ended = run_cli("import", "run.json", "--json")
    assert ended.code == 0, ended.err
    shown = run_cli("show", "--json").json
    (calls,) = [phase["calls"] for phase in shown["phases"]]
    assert [call["status"] for call in calls] == ["done", "failed"]
    saw = run_cli("context", "--json").json[-1]
    assert [entry["role"] for entry in saw["entries"]][-2:] == ["assistant", "tool"]
    if name != "otel":
        assert "context window exceeded" in json.dumps(calls[-1])
    assert run_cli("diff", "--strategies", "file", "mask(after=1)").code == 0


def test_the_answer_behind_a_request_without_one_goes_on_with_the_same_context() -> None:
    def log(answered: bool) -> dict[str, Any]:
        response = {"choices": [{"message": OPENAI[4]}]} if answered else {"error": {"message": "overloaded"}}
        body = {"string": json.dumps(response)}
        status = {"code": 200 if answered else 529}
        request = {"uri": "https://a.test/v1", "body": json.dumps({"messages": OPENAI[:2]})}
        return {"request": request, "response": {"status": status, "body": body}}

    (thread,) = read({"interactions": [log(False), log(True)]}, "vcr").threads
    assert (thread.calls, thread.answers) == (2, 1)


# -- spans -------------------------------------------------------------------------------------------------------------


def span(**attributes: Any) -> list[Any]:
    told = {key.replace("__", "."): value for key, value in attributes.items()}
    return [{"name": "chat", "traceId": "t", "spanId": "s", "attributes": told}]


GIVEN = json.dumps([{"role": "user", "content": ASK}])
ANSWERED = json.dumps([{"role": "assistant", "content": ANSWER}])
OPERATION = {"gen_ai__operation__name": "chat"}


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai__input__messages": GIVEN, "output__value": ANSWER},
        {"input__value": GIVEN, "gen_ai__output__messages": ANSWERED},
        {"gen_ai__prompt": GIVEN, "gen_ai__output__messages": ANSWERED},
        {"gen_ai__input__messages": GIVEN, "gen_ai__completion__0__role": "assistant",
         "gen_ai__completion__0__content": ANSWER},
        {"ai__prompt__messages": GIVEN, "gen_ai__output__messages": ANSWERED},
    ],
)  # fmt: skip
def test_each_side_of_a_call_is_found_in_whichever_attribute_holds_it(attributes: dict[str, Any]) -> None:
    (thread,) = read(span(**OPERATION, **attributes), "otel").threads
    assert [(one.role, one.text) for one in thread.said] == [("user", ASK), ("assistant", ANSWER)]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        (
            {"gen_ai__input__messages_ref": "s3://b/in.json", "gen_ai__output__messages": ANSWERED},
            ["what a span keeps outside the file is left out (s3://b/in.json)"],
        ),
        (
            {"gen_ai__input__messages": GIVEN, "gen_ai__system_instructions_ref": "s3://b/system.json",
             "gen_ai__output__messages": ANSWERED},
            ["what a span keeps outside the file is left out (s3://b/system.json)"],
        ),
        (
            {"gen_ai__output__messages": ANSWERED},
            ["the request of a call, which the file does not hold, is left out (span 'chat')"],
        ),
        ({"gen_ai__input__messages": GIVEN, "gen_ai__output__messages": ANSWERED}, []),
    ],
)  # fmt: skip
def test_a_side_of_a_call_that_the_file_does_not_hold_is_said(attributes: dict[str, Any], said: list[str]) -> None:
    assert list(read(span(**OPERATION, **attributes), "otel").notes) == said


def test_a_call_without_messages_beside_others_is_no_span_of_something_else() -> None:
    (whole,) = span(**OPERATION, gen_ai__input__messages=GIVEN, gen_ai__output__messages=ANSWERED)
    (bare,) = span(**OPERATION, gen_ai__usage__input_tokens=20, gen_ai__output__messages_ref="s3://b/out.json")
    (other,) = span(http__request__method="POST")
    sdk = {key: value for key, value in bare["attributes"].items() if not key.endswith("_ref")}
    again = {**bare, "attributes": sdk, "spanId": "i", "parentSpanId": "s"}  # The SDK's span of the same call.
    found = read([whole, again, {**bare, "spanId": "b"}, {**other, "spanId": "o"}], "otel")
    assert list(found.notes) == [
        "what a span keeps outside the file is left out (s3://b/out.json)",
        "a model call whose messages the file does not hold is kept beside the run",
        "a span that is not a model call is kept beside the run (2 times)",
    ]


def test_a_file_whose_calls_lie_elsewhere_says_where() -> None:
    told = span(**OPERATION, gen_ai__input__messages_ref="s3://b/in.json")
    with pytest.raises(Unreadable, match=r"chat.*its messages stand outside the file: s3://b/in\.json"):
        read(told, "otel")


def test_of_openinference_the_answer_may_stand_in_the_value_of_the_output() -> None:
    given = {"llm__input_messages__0__message__role": "user", "llm__input_messages__0__message__content": ASK}
    found = read(span(openinference__span__kind="LLM", output__value=ANSWER, **given), "openinference")
    assert [one.text for one in found.threads[0].said] == [ASK, ANSWER]


@pytest.mark.parametrize("repeated", [True, False])
def test_of_openinference_calls_may_stand_among_the_contents(repeated: bool) -> None:
    def call(at: str) -> dict[str, str]:
        told = {"id": "c1", "function__name": "look", "function__arguments": '{"at": "x"}'}
        return {f"llm__output_messages__0__message__{at}__tool_call__{key}": one for key, one in told.items()}

    given = {"llm__input_messages__0__message__role": "user", "llm__input_messages__0__message__content": ASK}
    answer = {
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__contents__0__message_content__type": "tool_use",
        **call("contents__0"),
        **(call("tool_calls__0") if repeated else {}),
    }
    found = read(span(openinference__span__kind="LLM", **given, **answer), "openinference")
    assert [(one.id, one.name) for one in found.threads[0].said[1].calls] == [("c1", "look")]


def test_a_span_of_an_agent_is_read_where_its_calls_have_none_of_their_own() -> None:
    told = {"gen_ai__operation__name": "invoke_agent", "gen_ai__input__messages": GIVEN}
    found = read(span(**told, gen_ai__output__messages=ANSWERED), "otel")
    assert [one.text for one in found.threads[0].said] == [ASK, ANSWER]
    assert any("spans of agents" in note for note in found.notes)


def test_cached_tokens_in_a_response_are_not_lost_beside_counts_without_them() -> None:
    usage = {"input_tokens": 4, "output_tokens": 5, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 96}
    response = {"role": "assistant", "content": ANSWER, "usage": usage}
    sides = {"request_data": json.dumps({"messages": json.loads(GIVEN)}), "response_data": json.dumps(response)}
    counts = {"gen_ai__usage__input_tokens": 4, "gen_ai__usage__output_tokens": 5}
    vercel = {"ai__prompt__messages": GIVEN, "ai__response__text": ANSWER}
    beside = {"ai__response__providerMetadata": json.dumps({"anthropic": {"usage": usage}})}
    for attributes in ({**sides, **counts}, {**vercel, **beside, **counts}):
        call = read(span(**OPERATION, **attributes), "otel").threads[0].said[-1].call
        assert call is not None
        assert (call.usage.input, call.usage.cached, call.usage.written) == (1000, 900, 96)


# -- the way out and back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hour", [0, 6])
def test_all_counts_survive_the_round_trip_through_spans(hour: int) -> None:
    """A count of 0 is known, and no count that is unknown."""
    written = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": hour}
    details = {"cached_tokens": 0, "cache_creation_tokens": hour}
    counts = {"prompt_tokens": 20, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}}
    counts |= {"prompt_tokens_details": details, "cache_creation": written, "cache_creation_input_tokens": hour}
    log = {"request": {"messages": OPENAI[:2]}, "response": {"choices": [{"message": OPENAI[4]}], "usage": counts}}
    before, (again,) = exported(log, "otel")
    assert [call.usage for call in before.calls] == [Usage(20, 9, 0, hour, 7, hour or None)]
    assert [call.usage for call in again.calls] == [call.usage for call in before.calls]


def test_a_cost_that_was_worked_out_comes_back_from_spans_as_an_estimate() -> None:
    log = {"request": {"messages": OPENAI[:2]}, "response": {"choices": [{"message": OPENAI[4]}]}, "cost": 0.5}
    state, events = imported(log)
    grades = []
    for state.calls[0].cost_grade in ("exact", "estimate"):
        (call,) = imported(spans_of_run(state, events, {}))[0].calls
        assert call.cost == 0.5
        grades.append(call.cost_grade)
    assert grades == ["exact", "estimate"]


def test_trailing_answers_of_several_agents_stay_apart() -> None:
    """The first of them calls a tool alone: read as parts of one answer, both would be one message."""
    move = {"functionCall": {"id": "c1", "name": "transfer", "args": {"to": "second"}}}
    events = [_said("user", {"text": ASK}), _said("first", move), _said("second", {"text": "Mine."})]
    events.append(_said("third", {"text": "And mine."}))
    before, (again,) = exported({"app_name": "x", "events": events}, "otel")
    assert len(before.calls) == 3
    assert seen(again) == seen(before)
    assert len(again.visits) == len(before.visits) == 1


# -- evaluations, attachments ------------------------------------------------------------------------------------------


def _turn(asked: str, answered: str, **data: Any) -> dict[str, Any]:
    def content(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"text": text}]}

    return {
        "user_content": content("user", asked),
        "final_response": content("model", answered),
        "intermediate_data": data,
    }


def test_an_evaluation_set_of_adk_is_read_whole() -> None:
    uses = [{"id": "a", "name": "ls", "args": {}}, {"id": "b", "name": "cat", "args": {}}]
    responses = [{"id": "b", "response": {"out": "B"}}, {"id": "a", "response": {"out": "A"}}]
    said = [["helper", [{"text": "I help."}]]]
    turn = _turn(ASK, ANSWER, tool_uses=uses, tool_responses=responses, intermediate_responses=said)
    cases = [{"eval_id": "one", "conversation": [turn]}, {"eval_id": "two", "conversation_scenario": {}}]
    found = read({"eval_set_id": "s", "eval_cases": cases}, "adk")
    assert [(one.role, one.text) for one in found.threads[0].said] == [
        ("user", ASK),
        ("assistant", ""),
        ("tool", '{"out": "A"}'),
        ("tool", '{"out": "B"}'),
        ("assistant", "I help."),
        ("assistant", ANSWER),
    ]
    lost = [remark for remark in found.remarks if remark.left_out]
    assert [(one.count, one.where) for one in lost] == [(1, ("two",))]


def test_a_content_of_adk_whose_role_is_null_is_its_sides() -> None:
    turn = _turn(ASK, ANSWER)
    turn["user_content"]["role"] = turn["final_response"]["role"] = None
    found = read({"eval_set_id": "s", "eval_cases": [{"eval_id": "one", "conversation": [turn]}]}, "adk")
    assert [(one.role, one.text) for one in found.threads[0].said] == [("user", ASK), ("assistant", ANSWER)]


def test_the_evaluation_sets_of_adks_first_releases_are_read() -> None:
    uses = [{"tool_name": "ls", "tool_input": {}, "mock_tool_output": RESULT}]
    queries = [{"query": ASK, "expected_tool_use": uses, "reference": ANSWER}]
    for body in (queries, [{"name": "case", "data": queries, "initial_session": {}}]):
        found = read(body, "adk")
        assert [one.text for one in found.threads[0].said] == [ASK, "", RESULT, ANSWER]


def test_the_result_of_an_evaluation_of_adk_is_the_session_that_it_made() -> None:
    made = {"eval_id": "one", "session_details": ADK}
    kept = {"eval_id": "two", "eval_metric_result_per_invocation": [{"actual_invocation": _turn(ASK, ANSWER)}]}
    from tests.importers.whole import read_file

    both = read_file(json.dumps({"eval_set_id": "s", "eval_case_results": [made, kept]}).encode())
    first, second = (one.conversation for one in both)
    assert first.threads[0].said[-1].text == ANSWER
    assert [one.text for one in second.threads[0].said] == [ASK, ANSWER]


def test_a_log_that_has_the_answer_in_the_place_of_the_question_does_not_state_the_request() -> None:
    body = copy.deepcopy(EXAMPLES["inspect"])
    event = body["samples"][0]["events"][0]
    answer = "The submission is correct, for it lists every file of the folder that the task names. Grade: C"
    event["output"]["choices"][0]["message"] = {"role": "assistant", "content": answer}
    event["input"] = [{"role": "user", "content": answer}]
    body["samples"][0]["events"] = [event]
    assert read(body, "inspect").threads[0].unstated.startswith("the file has the answer")
    event["input"] = [{"role": "user", "content": "Is it correct?"}]
    assert not read(body, "inspect").threads[0].unstated


def test_references_to_attachments_are_followed_inside_texts_and_said_where_they_lead_out_of_the_file() -> None:
    body = copy.deepcopy(EXAMPLES["inspect"])
    sample = body["samples"][0]
    sample["attachments"] = {"0123456789ab": RESULT}
    text = "first attachment://0123456789ab then attachment://ba9876543210"
    for event in sample["events"]:
        event["input"][1] = {"role": "user", "content": text}
    found = read(body, "inspect")
    assert found.threads[0].said[1].text == f"first {RESULT} then attachment://ba9876543210"
    (lost,) = [remark for remark in found.remarks if remark.left_out]
    assert lost.where == ("attachment://ba9876543210",)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "document", "source": {"type": "url", "url": "file-1"}},
        {"fileData": {"mimeType": "audio/wav", "fileUri": "file-1"}},
        {"type": "uri", "modality": "video", "uri": "file-1"},
    ],
)
def test_a_file_that_is_named_alone_stands_by_its_name_and_is_said(part: dict[str, Any]) -> None:
    found = read([{"role": "user", "content": [{"type": "text", "text": ASK}, part]}, OPENAI[4]])
    assert found.threads[0].said[0].parts == (ASK, "[file: file-1]")
    assert [remark.where for remark in found.remarks if remark.left_out] == [("file-1",)]


def test_what_stands_beside_the_content_of_a_message_is_read_or_said() -> None:
    picture = base64.b64encode(png(8, 8)).decode()
    data_url = f"data:image/png;base64,{picture}"
    asked = {"role": "user", "content": ASK, "images": [picture, data_url, "https://a.test/a.png"]}
    told = {"role": "user", "content": "Now?", "attachments": [{"file_id": "f1"}], "files": [{"name": "a.csv"}]}
    spoken = {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": ANSWER}}
    body = [asked, {"role": "assistant", "content": "Well."}, told, spoken]
    state, _ = imported(body)
    assert [len(call.entries[0].item.message.images) for call in state.calls] == [2, 2]
    assert state.calls[1].answer is not None
    assert state.calls[1].answer.text == ANSWER
    assert next(read_file(json.dumps(body).encode())).conversation.notes == (
        "an image outside the file, which is shown by its address, is left out",
        "an attachment beside the content of a message is left out (2 times: f1, a.csv)",
        "the sound of an answer is left out (a1)",
    )


def test_a_file_that_stands_in_the_message_with_its_path_is_no_reference() -> None:
    part = {"type": "file", "path": "a.txt", "content": RESULT}
    (asked, _) = read([{"role": "user", "content": [part]}, OPENAI[4]]).threads[0].said
    assert json.loads(asked.text) == part


def test_fields_of_steps_that_no_message_holds_are_said() -> None:
    body = copy.deepcopy(EXAMPLES["atif"])
    step = next(one for one in body["steps"] if one["source"] == "agent")
    step |= {"reasoning_effort": "high", "extra": {"branch": "b"}, "odd": [], "metrics": {"logprobs": [0.5]}}
    found = read({**body, "odd": 7}, "atif")
    assert [note.split("'")[1] for note in found.notes] == ["reasoning_effort", "branch", "logprobs"]
    assert found.kept["odd"] == 7


def test_a_sub_agent_of_atif_that_is_in_another_file_is_said() -> None:
    body = copy.deepcopy(EXAMPLES["atif"])
    step = next(one for one in body["steps"] if one.get("observation"))
    step["observation"]["results"][0] |= {"content": None, "subagent_trajectory_ref": [{"trajectory_id": "t9"}]}
    found = read(body, "atif")
    assert any(one.text == "[sub-agent: t9]" for one in found.threads[0].said)
    assert any("the trajectory of a sub-agent" in note for note in found.notes)
    assert SYSTEM in {one.text for one in found.threads[0].said}


def test_messages_before_a_compaction_that_no_call_answered_are_said() -> None:
    managed = {"context_management": {"type": "compaction", "boundary": "replace"}}
    steps = [
        {"step_id": 1, "source": "user", "message": ASK},
        {"step_id": 2, "source": "agent", "message": "", "llm_call_count": 0},
        {"step_id": 3, "source": "system", "message": "Short.", "extra": managed},
        {"step_id": 4, "source": "agent", "message": ANSWER},
    ]
    found = read({"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": steps}, "atif")
    (lost,) = [one for one in found.remarks if one.left_out]
    assert (lost.text, lost.count) == ("a message of a context that the file holds no answer to", 2)


def test_typed_values_of_attributes_by_name_are_read() -> None:
    tool = {"type": "function", "name": "ls", "inputSchema": {"type": "object", "properties": {}}}
    told = {"ai__prompt__messages": GIVEN, "ai__response__text": ANSWER, "ai__response__model": "gpt-4o"}
    body = span(**told, **OPERATION, ai__prompt__tools={"values": [{"stringValue": json.dumps(tool)}]})
    (schema,) = read(body, "otel").threads[0].tools
    assert schema["function"]["name"] == "ls"


def test_spans_without_a_call_are_called_spans() -> None:
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "GET /", "attributes": []}]}]}]}
    with pytest.raises(Unreadable, match="spans, none of which says that it is a call of a model"):
        list(read_file(json.dumps(body).encode()))
