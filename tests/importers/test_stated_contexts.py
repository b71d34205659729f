"""Sources that state what each call saw, or what later calls no longer see: contexts are what was sent; and the sums
that a source states of a whole run."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.examples import ANSWER, ASK, EXAMPLES, RESULT, SCHEMA, SYSTEM
from tests.importers.test_variants import read
from tests.support.command import run_cli
from workbench.engine.journal.usage import Usage
from workbench.importers.conversation import Conversation, Thread

ELIDED = "Old environment output: (2 lines omitted)"
SUMMARY = "So far: two files were found."


def contexts(found: Conversation) -> list[list[str]]:
    """What each call saw, call by call."""
    return [seen for thread in found.threads for seen in _contexts(thread)]


def _contexts(thread: Thread) -> list[list[str]]:
    calls = [i for i, one in enumerate(thread.said) if one.call is not None]
    return [[one.text for one in thread.said[:i] if one.call is None or not one.call.fault] for i in calls]


# -- SWE-agent ---------------------------------------------------------------------------------------------------------


def act(text: str, action: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "action": action, "message_type": "action"}


def printed(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text, "message_type": "observation"}


HEAD = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}]
STEPS = [("look", "ls"), ("look again", "ls -a"), ("done", "submit")]
SAW = [
    [SYSTEM, ASK],
    [SYSTEM, ASK, "look", RESULT],
    [SYSTEM, ASK, "look", ELIDED, "look again", RESULT],
]
"""What each of the three calls saw: a history processor elides all results but the newest."""
HISTORY = [*HEAD, *(part for text, action in STEPS for part in (act(text, action), printed(RESULT)))]
STATS = {"instance_cost": 0.25, "tokens_sent": 700, "tokens_received": 60, "api_calls": 3}


def as_messages(texts: list[str]) -> list[dict[str, Any]]:
    actions = dict(STEPS)
    return [
        {"role": "system", "content": one}
        if one == SYSTEM
        else act(one, actions[one])
        if one in actions
        else printed(one)
        for one in texts
    ]


def trajectory(key: str) -> dict[str, Any]:
    """A trajectory of version 1.0, whose steps state what the next call saw, or of 1.1: what their own call saw."""
    after = [*SAW[1:], [SYSTEM, ASK, "look", ELIDED, "look again", ELIDED, "done", RESULT]]
    states = after if key == "messages" else SAW
    steps = [
        {"response": text, "thought": text, "action": action, "observation": RESULT, key: as_messages(state)}
        for (text, action), state in zip(STEPS, states, strict=True)
    ]
    return {"trajectory": steps, "history": HISTORY, "info": {"exit_status": "submitted", "model_stats": dict(STATS)}}


@pytest.mark.parametrize("key", ["messages", "query"])
def test_the_steps_of_swe_agent_state_what_each_call_saw(key: str) -> None:
    found = read(trajectory(key), "swe-agent")
    assert contexts(found) == SAW
    last = found.threads[-1]
    assert [one.observation for one in last.said if one.text in (RESULT, ELIDED)] == [True, True, True]
    assert last.said[-1].text == RESULT  # what the last action printed: no call saw it
    assert found.notes == ()


def test_without_stated_contexts_a_call_saw_the_history_before_it() -> None:
    body = trajectory("query")
    for step in body["trajectory"]:
        del step["query"]
    whole = [[one["content"] for one in HISTORY[:end]] for end in (2, 4, 6)]
    assert contexts(read(body, "swe-agent")) == whole


def test_the_last_answer_is_read_from_its_step_and_one_that_the_history_changed_is_said() -> None:
    body = trajectory("none")
    body["history"] = HISTORY[:-2]
    body["trajectory"][0]["response"] = "look otherwise"
    found = read(body, "swe-agent")
    assert [seen[-1] for seen in contexts(found)] == [ASK, RESULT, RESULT]
    assert found.threads[0].said[-1].text == "done"
    (note,) = found.notes
    assert note == "an answer that a step states otherwise than the history is left out (step 1)"


def test_a_refused_answer_is_a_call_that_the_history_does_not_hold() -> None:
    body = trajectory("query")
    refused = {"response": "no command", "action": "", "query": as_messages(SAW[1])}
    again = [*as_messages(SAW[1]), {"role": "assistant", "content": "no command"}, printed("Give a command.")]
    body["trajectory"][1]["query"] = again
    body["trajectory"].insert(1, refused)
    found = read(body, "swe-agent")
    assert contexts(found) == [SAW[0], SAW[1], [*SAW[1], "no command", "Give a command."], SAW[2]]


def test_what_a_refused_answer_was_answered_with_is_said_where_the_file_does_not_state_it() -> None:
    body = trajectory("messages")
    body["trajectory"].insert(1, {"response": "no command", "action": "", "messages": as_messages(SAW[1])})
    found = read(body, "swe-agent")
    assert contexts(found) == [SAW[0], SAW[1], [*SAW[1], "no command"], SAW[2]]
    (remark,) = found.remarks
    assert (remark.left_out, remark.where) == (True, ("step 2",))


@pytest.mark.parametrize("states", [True, False])
def test_a_sentence_of_the_harness_in_the_place_of_an_answer_is_no_call(states: bool) -> None:
    body = trajectory("query")
    end = "Exit due to cost limit"
    body["history"] = [*HISTORY, act(end, ""), printed("Exited (autosubmitted)")]
    body["trajectory"].append({"response": end, "thought": end, "action": "", "query": [{}]})
    body["info"]["exit_status"] = "submitted (exit_cost)"
    if not states:
        for step in body["trajectory"]:
            del step["query"]
    found = read(body, "swe-agent")
    assert len(contexts(found)) == 3
    assert any("which no model wrote" in note for note in found.notes)


def test_the_attempts_of_one_file_are_runs_of_their_own() -> None:
    first, second = trajectory("query"), trajectory("messages")
    body = {"attempts": [first, second], **copy.deepcopy(second)}
    body["info"] = {**body["info"], "best_attempt_idx": 1}
    from tests.importers.whole import read_file

    found = [one.conversation for one in read_file(json.dumps(body).encode())]
    assert [contexts(one) for one in found] == [SAW, SAW]
    assert ["chosen" in one.kept for one in found] == [False, True]


# -- what later calls no longer see ------------------------------------------------------------------------------------


def test_a_condensation_of_openhands_takes_events_out_of_what_later_calls_see() -> None:
    call = {"type": "function", "function": {"name": "ls", "arguments": "{}"}}

    def answer(number: int, message: dict[str, Any]) -> dict[str, Any]:
        response = {"id": f"r{number}", "choices": [{"message": {"role": "assistant", **message}}]}
        return {"tool_call_id": f"c{number}", "function_name": "ls", "model_response": response}

    told = [answer(n, {"content": f"look {n}", "tool_calls": [{**call, "id": f"c{n}"}]}) for n in (1, 2)]
    last = answer(3, {"content": ANSWER})
    condensation = {"forgotten_event_ids": [2, 3], "summary": SUMMARY, "summary_offset": 2}
    events: list[dict[str, Any]] = [
        {"action": "system", "args": {"content": SYSTEM, "tools": [SCHEMA]}},
        {"source": "user", "action": "message", "args": {"content": ASK}},
        {"action": "run", "args": {}, "tool_call_metadata": told[0]},
        {"observation": "run", "content": RESULT, "tool_call_metadata": told[0]},
        {"action": "run", "args": {}, "tool_call_metadata": told[1]},
        {"observation": "run", "content": RESULT, "tool_call_metadata": told[1]},
        {"action": "condensation", "args": condensation},
        {"action": "message", "args": {}, "tool_call_metadata": last},
    ]
    usages = [{"response_id": "r3", "prompt_tokens": 90, "completion_tokens": 5, "cache_read_tokens": 64}]
    metrics = {"accumulated_cost": 0.5, "token_usages": usages}
    body = {"history": [{"id": i, "source": "agent", **one} for i, one in enumerate(events)], "metrics": metrics}
    found = read(body, "openhands")
    assert contexts(found) == [
        [SYSTEM, ASK],
        [SYSTEM, ASK, "look 1", RESULT],
        [SYSTEM, ASK, SUMMARY, "look 2", RESULT],
    ]
    made = found.threads[-1].said[-1].call
    assert made is not None
    assert (made.usage.input, made.usage.cached, found.stated.cost) == (90, 64, 0.5)


def test_a_compaction_of_a_coding_agents_session_begins_a_context() -> None:
    def line(kind: str, text: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "uuid": text, "message": {"role": kind, "content": text}, **more}

    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b"}
    after = [line("user", SUMMARY, isCompactSummary=True), line("assistant", "Yes.")]
    before = [line("user", ASK), line("assistant", ANSWER)]
    expected = [[ASK], [SUMMARY]]
    assert contexts(read([*before, boundary, *after], "session")) == expected
    assert contexts(read([*before, *after], "session")) == expected

    def item(role: str, text: str) -> dict[str, Any]:
        content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
        return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}

    kept = [one["payload"] for one in (item("user", ASK), item("user", SUMMARY))]
    compacted = {"type": "compacted", "payload": {"message": SUMMARY, "replacement_history": kept}}
    told = [item("user", ASK), item("assistant", ANSWER), compacted, item("user", "And?"), item("assistant", "Yes.")]
    assert contexts(read(told, "session")) == [[ASK], [ASK, SUMMARY, "And?"]]


def test_turns_that_codex_takes_back_are_in_no_later_context() -> None:
    def item(role: str, text: str) -> dict[str, Any]:
        content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
        return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}

    def back(turns: int) -> dict[str, Any]:
        return {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": turns}}

    about = item("user", "<environment_context>here</environment_context>")
    first = [about, item("user", ASK), item("assistant", ANSWER)]
    second, third = ([item("user", text), item("assistant", "Yes.")] for text in ("Remove this", "Instead"))
    around = "<environment_context>here</environment_context>"
    seen = [[around, ASK], [around, ASK, ANSWER, "Remove this"]]
    told = read([*first, *second, back(1), *third], "session")
    assert contexts(told) == [*seen, [around, ASK, ANSWER, "Instead"]]
    everything = read([*first, *second, back(7), *third], "session")
    assert contexts(everything) == [*seen, [around, "Instead"]]
    assert contexts(read([back(1), *first], "session")) == [[around, ASK]], "nothing is there to take back"


def test_sub_agents_of_a_session_are_contexts_of_their_own() -> None:
    def line(own: str, parent: str, kind: str) -> dict[str, Any]:
        message = {"role": kind, "content": own}
        return {"type": kind, "uuid": own, "parentUuid": parent, "isSidechain": own[0] != "m", "message": message}

    lines = [line("m1", "", "user"), line("a1", "", "user"), line("b1", "", "user")]
    lines += [line("b2", "b1", "assistant"), line("a2", "a1", "assistant"), line("m2", "m1", "assistant")]
    assert contexts(read(lines, "session")) == [["m1"], ["a1"], ["b1"]]


def test_a_compaction_of_adk_stands_in_the_place_of_what_it_compacts() -> None:
    def event(at: float, author: str, text: str) -> dict[str, Any]:
        role = "user" if author == "user" else "model"
        return {"author": author, "timestamp": at, "content": {"role": role, "parts": [{"text": text}]}}

    content = {"role": "model", "parts": [{"text": SUMMARY}]}
    compaction = {"start_timestamp": 1.0, "end_timestamp": 2.0, "compacted_content": content}
    events = [event(1.0, "user", ASK), event(2.0, "agent", ANSWER)]
    events += [{"author": "user", "timestamp": 3.0, "actions": {"compaction": compaction}}]
    events += [event(4.0, "user", "And?"), event(5.0, "agent", "Yes.")]
    assert contexts(read({"app_name": "x", "events": events}, "adk")) == [[ASK], [SUMMARY, "And?"]]


def test_the_log_of_an_adk_session_states_the_requests_and_what_they_took() -> None:
    user, agent = ({"role": role, "parts": [{"text": text}]} for role, text in (("user", ASK), ("model", ANSWER)))
    config = {"system_instruction": SYSTEM, "tools": [{"function_declarations": [{"name": "look"}]}]}
    counts = {"prompt_token_count": 32, "candidates_token_count": 13}
    response = {"candidates": [{"content": agent}], "model_version": "gemini-1.5-flash-001", "usage_metadata": counts}
    request = {"model": "gemini-1.5-flash", "contents": [user], "config": config}
    log = {"event_id": "b", "model_request": request, "model_response": response}
    events = [{"id": "a", "author": "user", "content": user}, {"id": "b", "author": "x", "content": agent}]
    found = read({"id": "s", "events": events, "event_logs": [log]}, "adk")
    assert contexts(found) == [[SYSTEM, ASK]]
    (thread,) = found.threads
    assert (thread.model, [tool["function"]["name"] for tool in thread.tools]) == ("gemini-1.5-flash", ["look"])
    assert thread.said[-1].call is not None
    assert thread.said[-1].call.usage == Usage(32, 13)
    late = {"id": "c", "author": "user", "content": user}
    partly = read({"id": "s", "events": [*events, late], "event_logs": [log]}, "adk")
    assert contexts(partly) == [[ASK]]
    assert "a request of the session's log, which does not reach its end, is left out" in partly.notes


def test_a_compaction_of_atif_that_replaces_begins_a_context_with_the_systems_words_and_the_summary() -> None:
    managed = {"context_management": {"type": "compaction", "boundary": "replace"}}
    results = {"results": [{"content": SUMMARY}]}
    steps: list[dict[str, Any]] = [
        {"source": "system", "message": SYSTEM},
        {"source": "user", "message": ASK},
        {"source": "agent", "message": "look"},
        {"source": "system", "message": "Compacted.", "extra": managed, "observation": results},
        {"source": "system", "message": "Hurry."},
        {"source": "agent", "message": ANSWER},
    ]
    final = {"total_prompt_tokens": 500, "total_completion_tokens": 20, "total_cost_usd": 0.125}
    body = {"agent": {"name": "x"}, "steps": [{"step_id": i, **one} for i, one in enumerate(steps, 1)]}
    found = read({**body, "final_metrics": final}, "atif")
    assert contexts(found) == [[SYSTEM, ASK], [SYSTEM, SUMMARY, "Hurry."]]
    assert found.stated.to_json() == {"input": 500, "output": 20, "cost": 0.125}
    assert any("the words of a compaction" in str(remark) for remark in found.remarks)
    steps[3] |= {"message": SUMMARY, "observation": None}
    body["steps"] = [{"step_id": i, **one} for i, one in enumerate(steps, 1)]
    assert contexts(read(body, "atif"))[1] == [SYSTEM, SUMMARY, "Hurry."]


# -- sums --------------------------------------------------------------------------------------------------------------


def test_the_sums_of_a_file_are_those_of_the_run_where_its_calls_state_none(folder: Path) -> None:
    (folder / "run.traj").write_text(json.dumps(trajectory("query")))
    (run,) = run_cli("import", "run.traj", "--model", "openai/gpt-4o", "--json").json
    shown = run_cli("show", "--json").json
    assert shown["imported"]["stated"] == {"input": 700, "output": 60, "cost": 0.25, "calls": 3}
    totals = {"tokens_in": 700, "tokens_out": 60, "cost": 0.25, "unknown_costs": 0}
    assert {name: shown["totals"][name] for name in totals} == totals
    assert "stated   calls 3   in 700   out 60   cost $0.2500" in run_cli("show", "--plain").out
    (listed,) = run_cli("runs", "--json").json
    assert {name: listed[name] for name in totals} == totals
    assert (listed["cost"], listed["predicted_cost"]) == (0.25, None)
    row = run_cli(
        "sql", f"SELECT cost, tokens_in, tokens_out FROM runs WHERE session_id = '{run['session_id']}'", "--json"
    )
    assert row.json == [{"cost": 0.25, "tokens_in": 700, "tokens_out": 60}]


def test_calls_that_a_file_counts_and_does_not_hold_are_said() -> None:
    body = trajectory("query")
    body["info"]["model_stats"]["api_calls"] = 5
    assert read(body).notes == ("a model call that the file counts and does not hold is left out (2 times)",)


def test_what_each_call_states_stands_above_what_the_file_states_of_all(folder: Path) -> None:
    body = {**EXAMPLES["atif"], "final_metrics": {"total_prompt_tokens": 9999, "total_cost_usd": 9.0}}
    (folder / "run.json").write_text(json.dumps(body))
    run_cli("import", "run.json")
    totals = run_cli("show", "--json").json["totals"]
    assert totals["tokens_in"] != 9999
    assert totals["cost"] < 1


# -- smolagents --------------------------------------------------------------------------------------------------------

TASK, PLAN, GO_ON = f"New task:\n{ASK}", "Here is the plan:\nlook", "Now proceed and carry out this plan."
LOOK = {"id": "c1", "type": "function", "function": {"name": "python_interpreter", "arguments": "ls()"}}
SENT_BACK = f"look\nCalling tools:\n[{LOOK}]"
"""smolagents joins messages of one role, and sends its own roles as the assistant's and the user's."""
SEEN = "Observation:\na.txt"
DONE = {"id": "c2", "type": "function", "function": {"name": "python_interpreter", "arguments": "final_answer(2)"}}


def memory(*, full: bool) -> list[dict[str, Any]]:
    """A task, a plan and two actions, with what their calls saw or without it."""

    def saw(*messages: tuple[str, str]) -> dict[str, Any]:
        told = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in messages]
        return {"model_input_messages": told} if full else {}

    def timing(second: int) -> dict[str, Any]:
        return {"timing": {"start_time": 1_767_258_000.0 + second, "duration": 0.5}}

    def answer(text: str) -> dict[str, Any]:
        return {"model_output_message": {"role": "assistant", "content": text, "raw": None}}

    start = [("system", SYSTEM), ("user", TASK), ("assistant", PLAN), ("user", GO_ON)]
    later = [
        ("assistant", "look"),
        ("tool-call", f"Calling tools:\n[{LOOK}]"),
        ("tool-response", "Observation:\na.txt"),
    ]
    used = {"token_usage": {"input_tokens": 30, "output_tokens": 4}}
    look = {
        "step_number": 1,
        "model_output": "look",
        "tool_calls": [LOOK],
        "code_action": "ls()",
        "observations": "a.txt",
    }
    done = {"step_number": 2, "model_output": "done", "tool_calls": [DONE], "code_action": "final_answer(2)"}
    told = {"system_prompt": SYSTEM}
    return [
        *([] if full else [told]),
        {"task": ASK, "task_images": None},
        {"plan": PLAN, **saw(("user", "Plan first.")), **answer("look"), **timing(1), **used},
        {**look, **saw(*start), **answer("look"), **timing(2), **used, "observations": "a.txt"},
        {**done, **saw(*start, *later), **answer("done"), **timing(3), **used, "observations": "2"},
    ]


ACTIONS = [[SYSTEM, TASK, PLAN, GO_ON], [SYSTEM, TASK, PLAN, GO_ON, SENT_BACK, SEEN]]


def test_full_steps_of_smolagents_state_what_each_call_saw_as_it_was_sent() -> None:
    found = read(memory(full=True))

    assert contexts(found) == [["Plan first."], *ACTIONS]
    assert [thread.calls for thread in found.threads] == [1, 2]
    assert [one.text for thread in found.threads for one in thread.said if one.observation] == [
        SEEN,
        "Observation:\n2",
    ]
    assert not found.notes


def test_succinct_steps_of_smolagents_give_the_contexts_of_the_actions_and_say_what_they_lack() -> None:
    found = read(memory(full=False))

    assert contexts(found) == ACTIONS
    assert [thread.calls for thread in found.threads] == [2]
    assert found.notes == ("the call that made a plan, whose messages the file does not hold, is left out (step 3)",)


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({}, "success", ""),
        ({"state": "max_steps_error"}, "failed", "max_steps_error"),
        ({"error": {"type": "AgentError", "message": "no such file"}}, "failed", "no such file"),
    ],
)
def test_a_result_of_smolagents_tells_how_the_run_ended(change: dict[str, Any], status: str, reason: str) -> None:
    steps = memory(full=True)
    if "error" in change:
        steps[-1] = {**steps[-1], **change, "observations": None}
    found = read({"output": 2, "steps": steps, "token_usage": {"input_tokens": 90, "output_tokens": 12}, **change})

    assert (found.status, found.reason) == (status, reason)
    assert (found.stated.usage.input, found.stated.usage.output) == (90, 12)
    if reason and "error" in change:
        assert found.threads[-1].said[-1].is_error
        assert found.threads[-1].said[-1].text.startswith("Call id: c2\nError:\nno such file\nNow let's retry")
