"""Steps of Antigravity: results by the order of calls, steps written twice, checkpoints, trajectories of the server."""

from __future__ import annotations

import json
from typing import Any

from tests.importers.examples import ANSWER, ASK, RESULT
from tests.importers.whole import read_file
from workbench.engine.journal.usage import Usage
from workbench.importers.conversation import Conversation


def read(body: Any) -> Conversation:
    text = "\n".join(map(json.dumps, body)) if isinstance(body, list) else json.dumps(body)
    (found,) = read_file(text.encode())
    assert found.format.name == "antigravity"
    return found.conversation


def step(kind: str, content: str | None = None, **more: Any) -> dict[str, Any]:
    told = {} if content is None else {"content": content}
    return {"source": "MODEL", "type": kind, "status": "DONE", **told, **more}


def test_results_answer_the_calls_in_their_order_and_a_step_counts_as_it_stood_last() -> None:
    calls = [{"name": "run", "args": {"CommandLine": '"ls"', "Wait": "0"}}, {"name": "view", "args": {"Path": '"a"'}}]
    running = step("RUN_COMMAND", "a.txt", step_index=2) | {"status": "RUNNING"}
    answer = step("PLANNER_RESPONSE", "I look.", step_index=1, thinking="Hm.", tool_calls=calls)
    given = [step("RUN_COMMAND", RESULT, step_index=2, exit_code=1), step("VIEW_FILE", "text", step_index=3)]
    usage = {"input_tokens": 100, "output_tokens": 5}
    last = step("PLANNER_RESPONSE", ANSWER, step_index=4, usage=usage)
    (thread,) = read([step("USER_INPUT", ASK, step_index=0), answer, running, *given, last]).threads
    assert [(one.role, one.text, one.name, one.is_error) for one in thread.said] == [
        ("user", ASK, "", False),
        ("assistant", "I look.", "", False),
        ("tool", RESULT, "run", True),
        ("tool", "text", "view", False),
        ("assistant", ANSWER, "", False),
    ]
    assert [call.arguments for call in thread.said[1].calls] == ['{"CommandLine": "ls", "Wait": 0}', '{"Path": "a"}']
    assert thread.said[1].extra == {"reasoning_content": "Hm."}
    assert thread.said[4].call is not None
    assert thread.said[4].call.usage == Usage(100, 5)


def test_what_follows_a_checkpoint_is_a_context_of_its_own() -> None:
    before = [step("USER_INPUT", ASK), step("PLANNER_RESPONSE", "One.")]
    first, second = read(
        [*before, step("CHECKPOINT", "They asked for files."), step("PLANNER_RESPONSE", ANSWER)]
    ).threads
    assert [one.text for one in first.said] == [ASK, "One."]
    assert [one.text for one in second.said] == ["They asked for files.", ANSWER]


def test_a_trajectory_of_the_server_is_read() -> None:
    about = {"generatorModel": "m", "createdAt": "2026-01-31T09:00:00Z"}
    about["modelUsage"] = {"inputTokens": "20", "outputTokens": "5"}  # type: ignore[assignment]
    call = {"id": "c1", "name": "run", "argumentsJson": '{"CommandLine": "ls"}'}
    steps: list[dict[str, Any]] = [
        {"type": "USER_INPUT", "userInput": {"items": [{"text": ASK}], "userResponse": ASK}},
        {
            "type": "PLANNER_RESPONSE",
            "metadata": about,
            "plannerResponse": {"response": "I look.", "toolCalls": [call]},
        },
        {"type": "RUN_COMMAND", "runCommand": {"commandLine": "ls", "combinedOutput": {"full": RESULT}}},
        {"type": "CHECKPOINT", "checkpoint": {"intentOnly": True}},
        {"type": "PLANNER_RESPONSE", "plannerResponse": {"response": "Two", "modifiedResponse": ANSWER}},
    ]
    named = [{**one, "type": f"CORTEX_STEP_TYPE_{one['type']}"} for one in steps]
    (thread,) = read({"status": "IDLE", "trajectory": {"cascadeId": "t1", "steps": named}}).threads
    assert [(one.role, one.text) for one in thread.said] == [
        ("user", ASK),
        ("assistant", "I look."),
        ("tool", RESULT),
        ("assistant", ANSWER),
    ]
    assert thread.said[1].call is not None
    assert (thread.said[1].call.model, thread.said[1].call.usage.input, thread.said[1].calls[0].id) == ("m", 20, "c1")
