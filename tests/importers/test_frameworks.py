"""How frameworks and harnesses write messages, calls and tools in their own words."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.importers.examples import ANSWER, ARGUMENTS, ASK, ATIF, LANGFUSE, OPENAI, RESULT, SCHEMA, SYSTEM
from tests.importers.test_variants import read
from tests.importers.whole import read_file
from workbench.importers.conversation import Thread, Unreadable

CALL = {"id": "c1", "name": "ls", "arguments": ARGUMENTS}
AS_CONTENT = json.dumps([{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": ARGUMENTS}}])


def generation(given: Any, answered: Any, **more: Any) -> Thread:
    body: Any = copy.deepcopy(LANGFUSE)
    body["observations"] = [{**body["observations"][0], "input": given, "output": answered, **more}]
    return read(body, "langfuse").threads[0]


# -- ATIF --------------------------------------------------------------------------------------------------------------


def test_a_trajectory_says_what_each_call_cost_and_holds_its_sub_agents() -> None:
    inner = {"agent": {"name": "helper", "model_name": "small"}, "steps": ATIF["steps"][1:]}
    copied = {"step_id": 5, "source": "agent", "message": "Earlier.", "is_copied_context": True}
    found = read({**ATIF, "steps": [copied, *ATIF["steps"]], "subagent_trajectories": [inner]}, "atif")
    outer, sub = found.threads
    assert (outer.calls, sub.calls, sub.model) == (2, 2, "small")
    assert [one["function"]["name"] for one in outer.tools] == ["ls"]
    call = sub.said[1].call
    assert call is not None
    assert (call.usage.input, call.cost, call.at) == (20, 0.001, "2026-01-01T09:00:01.000000Z")
    assert "a system step behind the first words is read as a system message at its place" in found.notes


def test_results_that_name_no_call_make_a_text_protocol() -> None:
    steps = copy.deepcopy(ATIF["steps"])
    steps[2]["tool_calls"] *= 2
    steps[2]["observation"]["results"] = [{"content": RESULT}]
    found = read({**ATIF, "steps": steps}, "atif")
    answer, result = found.threads[0].said[2:4]
    assert (answer.calls, answer.command in answer.text, "ls" in answer.command) == ((), True, True)
    assert (result.role, result.observation, result.text) == ("user", True, RESULT)
    assert any("stand as text" in note for note in found.notes)


# -- AutoGen -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        [
            {"type": "SystemMessage", "content": SYSTEM},
            {"type": "UserMessage", "content": ASK, "source": "user"},
            {"type": "AssistantMessage", "content": [CALL], "source": "counter"},
            {"type": "FunctionExecutionResultMessage", "content": [{"call_id": "c1", "name": "ls", "content": RESULT}]},
            {"type": "AssistantMessage", "content": ANSWER, "source": "counter"},
        ],
        [
            {"type": "SystemMessage", "content": SYSTEM},
            {"type": "TextMessage", "content": ASK, "source": "user", "models_usage": None},
            {"type": "ToolCallRequestEvent", "content": [CALL], "source": "counter"},
            {"type": "ToolCallExecutionEvent", "content": [{"call_id": "c1", "name": "ls", "content": RESULT}]},
            {"type": "TextMessage", "content": ANSWER, "source": "counter", "models_usage": {"prompt_tokens": 9}},
        ],
    ],
)  # fmt: skip
def test_autogens_messages_say_by_type_or_source_who_speaks(messages: list[Any]) -> None:
    said = read({"messages": messages}, "openai").threads[0].said
    assert [one.role for one in said] == ["system", "user", "assistant", "tool", "assistant"]
    assert [(call.id, call.name) for call in said[2].calls] == [("c1", "ls")]
    assert (said[3].call_id, said[3].text) == ("c1", RESULT)


def test_a_session_of_autogens_client_is_a_log_of_calls() -> None:
    asked = [{"type": "UserMessage", "content": ASK, "source": "user"}]
    answer = {"finish_reason": "stop", "content": ANSWER, "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    entries = [{"mode": "create", "messages": asked, "response": answer, "stream": []}] * 2
    found = list(read_file(json.dumps(entries).encode()))
    assert [(one.format.name, one.conversation.threads[0].said[-1].text) for one in found] == [("llm-log", ANSWER)] * 2


# -- LangFuse ----------------------------------------------------------------------------------------------------------


def test_a_request_and_an_answer_may_be_those_of_gemini() -> None:
    asked = {"contents": [{"role": "user", "parts": [{"text": ASK}]}]}
    told = {"candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}}]}
    thread = generation(asked, told)
    assert [(one.role, one.text) for one in thread.said] == [("user", ASK), ("assistant", ANSWER)]


def test_definitions_of_tools_among_the_messages_are_tools() -> None:
    thread = generation([*OPENAI[:2], {"role": "tool", "content": SCHEMA}], OPENAI[4])
    assert [one.role for one in thread.said] == ["system", "user", "assistant"]
    assert [one["function"]["name"] for one in thread.tools] == ["ls"]


@pytest.mark.parametrize(
    ("answered", "attributes"),
    [
        ({**OPENAI[4], "tools": [SCHEMA]}, {}),
        (OPENAI[4], {"gen_ai.tool.definitions": json.dumps([SCHEMA])}),
        (OPENAI[4], {"model_request_parameters": {"function_tools": [SCHEMA["function"]]}}),
        (OPENAI[4], {"llm.tools.0.tool.json_schema": json.dumps(SCHEMA)}),
    ],
)
def test_tools_that_stand_elsewhere_in_an_observation_are_found(answered: Any, attributes: Any) -> None:
    thread = generation(OPENAI[:2], answered, metadata={"attributes": attributes})
    assert [one["function"]["name"] for one in thread.tools] == ["ls"]


def test_messages_written_as_texts_of_objects_are_read_from_the_span() -> None:
    attributes = {
        f"llm.input_messages.{i}.message.{key}": one[key]
        for i, one in enumerate(OPENAI[:2])
        for key in ("role", "content")
    }
    texts = {"messages": ["role='system' content='Be brief.'", "role='user' content='…'"]}
    thread = generation(texts, OPENAI[4], metadata={"attributes": attributes})
    assert [(one.role, one.text) for one in thread.said] == [("system", SYSTEM), ("user", ASK), ("assistant", ANSWER)]


def test_a_result_may_have_its_tools_name_for_a_role_and_calls_may_stand_in_the_content() -> None:
    asked = {"role": "tool", "content": AS_CONTENT}
    thread = generation([*OPENAI[:2], asked, {"role": "ls", "content": RESULT}], OPENAI[4])
    assert [one.role for one in thread.said] == ["system", "user", "assistant", "tool", "assistant"]
    assert [(call.id, call.name) for call in thread.said[2].calls] == [("c1", "ls")]
    assert (thread.said[3].name, thread.said[3].text) == ("ls", RESULT)


def test_an_observation_that_cannot_be_read_does_not_cost_the_others() -> None:
    good = {"input": {"success": True, "data": OPENAI[:2]}, "output": {"success": True, "data": [OPENAI[4]]}}
    bad = {"input": {"success": True, "data": [{"no": "role"}]}, "output": good["output"]}
    found = read({"a": bad, "b": good}, "langfuse-case")
    assert found.threads[0].calls == 1
    assert any(note.startswith("a model call that cannot be read") for note in found.notes)


# -- ToolBench, spans --------------------------------------------------------------------------------------------------


def test_an_evaluation_of_toolbench_holds_an_answer_for_each_question() -> None:
    def node(role: str, message: Any, *inner: Any) -> dict[str, Any]:
        return {"role": role, "message": message, "next": list(inner)}

    ran = repr({"name": "ls", "arguments": ARGUMENTS, "response": RESULT})
    tree = node("system", "", node("user", ASK, node("tool", ran, node("assistant", ANSWER), node("assistant", "?"))))
    one = {"query": ASK, "available_tools": [SCHEMA["function"]], "answer": {"answer_details": [tree]}}
    found = list(read_file(json.dumps({"17": one, "18": one}).encode()))
    assert [item.format.name for item in found] == ["toolbench"] * 2
    first, second = found[0].conversation.threads
    assert [item.role for item in first.said] == ["user", "assistant", "tool", "assistant"]
    assert [call.name for call in first.said[1].calls] == ["ls"]
    assert (first.said[2].text, first.said[-1].text, second.said[-1].text) == (RESULT, ANSWER, "?")
    odd = json.dumps({"17": one}).replace(json.dumps(ran)[1:-1], "{'name': 'ls', 'response': {(1, 2): 3}}")
    assert next(read_file(odd.encode())).conversation.threads[0].said[2].text == '{"[1, 2]": 3}'


def test_the_attributes_of_a_span_stand_without_it() -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    attributes |= {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": ASK}]}])}
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    found = read({**attributes, "gen_ai.output.messages": json.dumps(answer)}, "otel")
    assert [one.text for one in found.threads[0].said] == [ASK, ANSWER]


def test_an_object_is_an_answer_of_vercels_spans() -> None:
    attributes = {"gen_ai.system": "openai", "ai.prompt.messages": json.dumps([{"role": "user", "content": ASK}])}
    span = {"name": "ai.generateObject.doGenerate", "spanContext": {"traceId": "t"}}
    found = read([{**span, "attributes": {**attributes, "ai.response.object": '{"n": 2}'}}], "otel")
    assert found.threads[0].said[-1].text == '{"n": 2}'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([{"name": "embed", "spanContext": {}, "attributes": {"x": 1}}], "spans, none of which says that it is a call"),
        ({"interactions": [{"data": "x", "direction": "sent"}]}, "something else than requests with their responses"),
        ({"interactions": []}, "without interactions"),
    ],
)
def test_what_holds_no_call_is_named(body: Any, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        list(read_file(json.dumps(body).encode()))


# -- Burr, nock --------------------------------------------------------------------------------------------------------


def test_a_log_of_burr_may_hold_spans_and_attributes_between_its_steps() -> None:
    state = {"chat_history": [{"role": "user", "content": ASK}, {"role": "assistant", "content": ANSWER}]}
    entries = [
        {"type": "begin_entry", "action": "ask", "sequence_id": 0, "start_time": "2026-01-01T09:00:00"},
        {"type": "begin_span", "action_sequence_id": 0, "span_id": "0:0"},
        {"type": "attribute", "action_sequence_id": 0, "key": "model", "value": "gpt-4o"},
        {"type": "end_entry", "action": "ask", "sequence_id": 0, "state": state},
    ]
    found = read(entries, "burr")
    assert [one.text for one in found.threads[0].said] == [ASK, ANSWER]


def test_calls_that_a_log_of_burr_traces_are_exact() -> None:
    told = {
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "gpt-4",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": f"Someone asks: {ASK}",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": ANSWER,
        "gen_ai.usage.prompt_tokens": 9,
    }
    span = {"action_sequence_id": 0, "span_id": "0:0"}
    state = {"chat_history": [{"role": "user", "content": ASK}, {"role": "assistant", "content": ANSWER}]}
    entries = [
        {"type": "begin_entry", "action": "ask", "sequence_id": 0, "start_time": "2026-01-01T09:00:00"},
        {"type": "begin_span", "span_name": "chat", "start_time": "2026-01-01T09:00:01", **span},
        *({"type": "attribute", "key": key, "value": value, **span} for key, value in told.items()),
        {"type": "end_entry", "action": "ask", "sequence_id": 0, "state": state},
    ]
    thread = read(entries, "burr").threads[0]
    assert [one.text for one in thread.said] == [f"Someone asks: {ASK}", ANSWER]
    call = thread.said[-1].call
    assert call is not None
    assert (thread.model, call.usage.input, call.at) == ("gpt-4", 9, "2026-01-01T09:00:01.000000Z")


def test_a_recording_without_the_bodies_of_its_requests_says_so() -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}
    one = {"scope": "https://a.test", "method": "POST", "path": "/v1/x", "status": 200, "response": answer}
    with pytest.raises(Unreadable, match="answers of a model without the requests' bodies"):
        list(read_file(json.dumps([one]).encode()))
    body = json.dumps({"messages": [{"role": "user", "content": ASK}]})
    assert read([{**one, "requestBody": body}], "vcr").threads[0].said[-1].text == ANSWER


def test_a_spoken_simulation_is_named() -> None:
    with pytest.raises(Unreadable, match="whose ticks are not messages"):
        list(read_file(json.dumps({"task_id": "1", "ticks": [{"tick_id": 0}]}).encode()))


QUESTION = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}]
COUNTS = {"prompt_tokens": 20, "completion_tokens": 5}
STREAM = "".join(
    f"data: {json.dumps(chunk)}\n\n"
    for chunk in ({"choices": [{"index": 0, "delta": {"content": ANSWER}}]}, {"choices": [], "usage": COUNTS})
)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param({"messages": QUESTION, "outputs": [ANSWER], "usage": COUNTS, "response": "Response()"}, id="DSPy"),
        pytest.param({"messages": QUESTION, "outputs": [{"text": ANSWER}], "usage": COUNTS}, id="DSPy's objects"),
        pytest.param({"messages": QUESTION, "response": ANSWER, "model": "gpt-4o", **COUNTS}, id="litellm"),
        pytest.param(
            {
                "input": QUESTION,
                "output": [{"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
                "metadata": {"model": "gpt-4o"},
                "metrics": {**COUNTS, "start": 1_767_258_001.0, "end": 1_767_258_002.0},
            },
            id="Braintrust",
        ),
        pytest.param(
            {
                "request": {"url": "https://a.test/v1/chat/completions", "body": json.dumps({"messages": QUESTION})},
                "response": {"status": 200, "body": STREAM},
            },
            id="a stream in a body",
        ),
        pytest.param({"request": {"messages": QUESTION}, "response": STREAM}, id="a stream"),
    ],
)
def test_a_log_may_hold_the_answer_without_its_response(log: Any) -> None:
    (thread,) = read([log], "llm-log").threads
    assert [one.text for one in thread.said] == [SYSTEM, ASK, ANSWER]
    call = thread.said[-1].call
    assert call is not None
    assert (call.usage.input, call.usage.output) == (20, 5)
    assert call.duration_s == (1.0 if "metrics" in log else None)


@pytest.mark.parametrize(
    "body",
    [
        {"input": ASK, "output": ANSWER},
        {"messages": QUESTION, "output": ANSWER},
    ],
)
def test_a_pair_of_texts_without_a_model_or_counts_is_no_call(body: Any) -> None:
    with pytest.raises(Unreadable):
        read(body)


def test_messages_of_assistants_are_read_from_the_oldest_on() -> None:
    listed = [
        {"object": "thread.message", "created_at": at, "role": role, "content": text}
        for at, role, text in ((2, "assistant", ANSWER), (1, "user", ASK))
    ]
    (thread,) = read({"object": "list", "data": listed}).threads
    assert [one.text for one in thread.said] == [ASK, ANSWER]


def test_an_answer_of_haystack_names_its_model_and_usage() -> None:
    answer = {"role": "assistant", "content": [{"text": ANSWER}], "meta": {"model": "gpt-4o", "usage": COUNTS}}
    (thread,) = read([{"role": "user", "content": [{"text": ASK}], "meta": {}}, answer]).threads
    call = thread.said[-1].call
    assert call is not None
    assert (call.model, call.usage.input, call.usage.output) == ("gpt-4o", 20, 5)


LOOKED = {"toolCallId": "c1", "state": "output-available", "input": {"path": "."}, "output": RESULT}
LOOKED_4 = {"state": "result", "toolCallId": "c1", "toolName": "ls", "args": {"path": "."}, "result": RESULT}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool-ls", **LOOKED},
        {"type": "dynamic-tool", "toolName": "ls", **LOOKED},
        {"type": "tool-ls", **LOOKED, "state": "output-error", "output": None, "errorText": RESULT},
        {"type": "tool-invocation", "toolInvocation": LOOKED_4},
    ],
)
def test_a_message_of_vercels_interface_holds_the_steps_of_an_answer(part: Any) -> None:
    steps = [{"type": "step-start"}, part, {"type": "step-start"}, {"type": "text", "text": ANSWER, "state": "done"}]
    (thread,) = read(
        [{"role": "user", "parts": [{"type": "text", "text": ASK}]}, {"role": "assistant", "parts": steps}]
    ).threads

    assert [one.role for one in thread.said] == ["user", "assistant", "tool", "assistant"]
    assert [(one.id, one.name, one.arguments) for one in thread.said[1].calls] == [("c1", "ls", '{"path": "."}')]
    assert (thread.said[2].call_id, thread.said[2].text) == ("c1", RESULT)
    assert thread.said[2].is_error == ("errorText" in part)
    assert (thread.calls, thread.said[-1].text) == (2, ANSWER)


def test_events_that_langchain_streams_are_calls_of_a_model() -> None:
    def event(name: str, run: str, **data: Any) -> dict[str, Any]:
        return {"event": name, "run_id": run, "name": run, "data": data, "metadata": {"ls_model_name": "gpt-4o"}}

    asked = {"messages": [[{"type": "human", "content": ASK}]]}
    answer = {"type": "ai", "content": ANSWER, "usage_metadata": {"input_tokens": 20, "output_tokens": 5}}
    found = read(
        [
            event("on_chain_start", "graph", input={"messages": []}),
            event("on_chat_model_start", "model", input=asked),
            event("on_chat_model_stream", "model", chunk={"type": "AIMessageChunk", "content": "There"}),
            event("on_chat_model_end", "model", input=asked, output=answer),
            event("on_chain_end", "graph", output={"messages": []}),
        ],
        "langsmith",
    )
    (thread,) = found.threads
    assert [one.text for one in thread.said] == [ASK, ANSWER]
    call = thread.said[-1].call
    assert call is not None
    assert (call.model, call.usage.input, call.usage.output) == ("gpt-4o", 20, 5)
    assert found.notes == ("a traced run that is not a model call is kept beside the run",)


def test_a_rollout_whose_response_holds_results_is_the_run_of_an_agent() -> None:
    output = [
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": RESULT},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
    ]
    response = {"model": "m", "output": output, "usage": {"input_tokens": 40, "output_tokens": 9}}
    tools = [{"type": "function", "name": "ls", "parameters": {}}]
    log = {"responses_create_params": {"input": QUESTION, "tools": tools}, "response": response, "reward": 1.0}
    conversation = read(log, "llm-log")
    (thread,) = conversation.threads
    assert [one.role for one in thread.said] == ["system", "user", "assistant", "tool", "assistant"]
    assert [one.call is not None for one in thread.said] == [False, False, True, False, True]
    assert (conversation.stated.usage.input, conversation.kept) == (40, {"reward": 1.0})
    assert [one["function"]["name"] for one in thread.tools] == ["ls"]
    alone = read({**log, "response": {**response, "output": output[2:]}}, "llm-log").threads
    assert {one.unstated for one in (thread, *alone)} == {
        "a rollout states what its agent was given, not the requests that it made"
    }


@pytest.mark.parametrize(("code", "failed"), [(1, True), (0, False)])
def test_a_command_of_mini_swe_agent_failed_by_its_return_code(code: int, failed: bool) -> None:
    called = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "user", "content": "List.", "extra": {"returncode": 1}},
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt", "extra": {"returncode": code}},
    ]
    body = {"info": {}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    said = read(body, "mini-swe-agent").threads[0].said
    assert [one.is_error for one in said] == [False, False, failed]


def test_a_trajectory_of_mini_swe_agent_keeps_its_sums_and_what_its_commands_printed() -> None:
    response = {"model": "m-1", "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
    looks = {"role": "assistant", "content": "Look.\n```bash\nls\n```", "extra": {"cost": 0.25, "response": response}}
    info = {"config": {"model": {"model_name": "m"}}, "model_stats": {"instance_cost": 0.5, "api_calls": 2}}
    ends = [{"role": "assistant", "content": "Done."}, {"role": "critic", "content": "And?"}]
    messages = [{"role": "user", "content": "List."}, looks, {"role": "user", "content": "a.txt"}, *ends]
    conversation = read({"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1"}, "mini-swe-agent")
    (thread,), note = conversation.threads, "a message of the role 'critic' is read as a user's"
    assert (thread.model, conversation.kept, conversation.notes) == ("m", {"info": info}, (note,))
    assert (conversation.stated.cost, conversation.stated.calls) == (0.5, 2)
    assert [one.observation for one in thread.said] == [False, False, True, False, False]
    called = thread.said[1].call
    assert called is not None
    assert (called.model, called.cost, called.usage.input, called.usage.output) == ("m-1", 0.25, 9, 4)
    with pytest.raises(Unreadable, match=r"it holds no list of messages with roles$"):
        read({"info": info, "trajectory_format": "mini-swe-agent-1"}, "mini-swe-agent")
