"""A task decomposition as a run: waves, what each task sees, placeholders, failures, a question first, and replays."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.engine.support import Answers, FlatPrices, ListSink, Played, Reply, ScriptedModel, Words, play, ports
from tests.support.equal_runs import comparable
from workbench.analysis.what_if import what_if
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import Replay
from workbench.engine.run.run import Run

PAGE = "<!DOCTYPE html>\n<html>\n</html>"


def task(id: str, *needs: str, prompt: str = "", **more: Any) -> dict[str, Any]:
    body = {
        "id": id,
        "description": f"do {id}",
        "thought": "t",
        "action_type": "inference",
        "tool_or_prompt": {"name": "inference", "params": {"prompt": prompt or f"prompt {id}"}},
        "expected_output": "e",
        "dependencies": list(needs),
    }
    return body | more


def call(id: str, tool: str, params: dict[str, Any], *needs: str) -> dict[str, Any]:
    return task(id, *needs) | {"action_type": "tool", "tool_or_prompt": {"name": tool, "params": params}}


def job(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"original_request": "r", "intent": {"primary": "p"}, "entities": [], "sub_tasks": list(tasks)} | more


def seen(played: Played, phase: str) -> str:
    """The one message that a phase's first call sent."""
    ((role, text),) = next(played.texts(i) for i, (at, _) in enumerate(played.model.requests) if at.phase == phase)
    assert role == "user"
    return text


def run(document: dict[str, Any], replies: dict[str, list[Reply]], **more: Any) -> Played:
    """Run a decomposition; a what-if assembles the same requests, and a replay makes no call and an equal journal."""
    played = play(document, replies, **more)
    calls = [call for call in played.state.calls if not call.beside]
    again = what_if(played.state, played.definition, None, Words(), FlatPrices())
    assert [r.assembly.entries for r in again] == [call.entries for call in calls]
    replay, sink = Replay(Recording(played.events, played.blobs)), ListSink()
    base = ports(ScriptedModel([]), tools=played.tools, human=Answers(), sink=sink)
    before = len(played.tools.called)
    outcome = asyncio.run(Run(played.definition, {}, played.options, replay.ports(base)).execute())
    assert (outcome.status, outcome.output, outcome.reason) == (
        played.outcome.status,
        played.outcome.output,
        played.outcome.reason,
    )
    assert (sum(replay.asked.values()), len(played.tools.called)) == (0, before)
    assert comparable(sink.events) == comparable(played.events)
    return played


GOLDEN = f"""## Entity Constraints and Values
- Game Area Dimensions: 10 wide x 20 high (constraint)
- Output Format: Single standalone HTML file, vanilla JS/Canvas only (constraint)

## Outputs from Dependent Tasks

### Task 1: Generate the complete HTML structure...
**Output:**
{PAGE}

---

Generate CSS styles to be embedded in the <style> tag."""


def test_an_inference_sees_entities_outputs_and_its_own_prompt_in_one_message() -> None:
    entities = [
        {
            "entity_name": "Game Area Dimensions",
            "grounded_value": "10 wide x 20 high",
            "intent_relevance": "constraint",
        },
        {
            "entity": "Output Format",
            "grounded_value": "Single standalone HTML file, vanilla JS/Canvas only",
            "intent_relevance": "constraint",
        },
    ]
    document = job(
        task("1", description="Generate the complete HTML structure..."),
        task("2", "1", prompt="Generate CSS styles to be embedded in the <style> tag.", entity_context=entities),
    )
    played = run(document, {"1": [PAGE], "2": ["body {}"]})
    assert played.outcome.status == "success", played.outcome.reason
    assert seen(played, "1") == "prompt 1"
    assert seen(played, "2") == GOLDEN
    assert played.outcome.output == "body {}"
    entry = next(c for c in played.state.calls if c.place.phase == "2").entries[0]
    assert [(p.origin, str(p.action)) for p in entry.parts] == [
        ("entity Game Area Dimensions", "kept"),
        ("entity Output Format", "kept"),
        ("1.output", "kept"),
        ("headings", "kept"),
        ("prompt", "kept"),
    ]


BLOCK = "## Entity Constraints and Values\n"
OUTPUT = "# One\nfirst\n\nmore\n\n## Two\nsecond\n\nthird"
OPTIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "as it is": ({}, "- A: 1 (constraint)\n- B: 2 (partial) — note\n- C: 3\n", OUTPUT),
    "high": ({"filter_by_relevance": "high"}, "- A: 1 (constraint)\n", OUTPUT),
    "medium": ({"filter_by_relevance": "medium"}, "- A: 1 (constraint)\n- B: 2 (partial) — note\n", OUTPUT),
    "low": ({"filter_by_relevance": "low"}, "- A: 1 (constraint)\n- B: 2 (partial) — note\n- C: 3\n", OUTPUT),
    "all of the job": (
        {"include_all": True},
        "- A: 1 (constraint)\n- B: 2 (partial) — note\n- C: 3\n- D [size]: 5\n",
        OUTPUT,
    ),
    "without types": (
        {"include_all": True, "include_entity_type": False, "filter_by_relevance": "high"},
        "- A: 1 (constraint)\n- D: 5\n",
        OUTPUT,
    ),
    "cut": ({"max_output_length": 5}, "- A: 1 (constraint)\n- B: 2 (partial) — note\n- C: 3\n", "# One..."),
    "sections": (
        {"max_output_length": 35, "summarize_strategy": "extract_key_sections"},
        "- A: 1 (constraint)\n- B: 2 (partial) — note\n- C: 3\n",
        "# One\nfirst\n\n## Two\nsecond",
    ),
    "sections, cut": (
        {"max_output_length": 8, "summarize_strategy": "extract_key_sections"},
        "- A: 1 (constraint)\n- B: 2 (partial) — note\n- C: 3\n",
        "# One\nfi...",
    ),
    "whole": (
        {"max_output_length": 5, "summarize_strategy": "none"},
        "- A: 1 (constraint)\n- B: 2 (partial) — note\n- C: 3\n",
        OUTPUT,
    ),
}
CONFIG_OF_ENTITIES = ("include_all", "include_entity_type", "filter_by_relevance")


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("of", ["job", "task"])
def test_each_option_of_the_two_configurations_gives_these_bytes(name: str, of: str) -> None:
    options, entities, output = OPTIONS[name]
    own = [
        {"entity_name": "A", "grounded_value": "1", "intent_relevance": "constraint"},
        {"entity_name": "B", "grounded_value": "2", "intent_relevance": "partial", "usage_note": "note"},
        {"entity_name": "C", "grounded_value": "3"},
    ]
    of_job = [
        {"entity": "A", "type": "size", "grounded_value": "4"},
        {"entity": "D", "type": "size", "grounded_value": "5"},
    ]
    configs = {
        "entity_context_config": {key: value for key, value in options.items() if key in CONFIG_OF_ENTITIES},
        "dependency_config": {key: value for key, value in options.items() if key not in CONFIG_OF_ENTITIES},
    }
    document = job(
        task("a"),
        task("b", "a", entity_context=own) | (configs if of == "task" else {}),
        **{"entities": of_job, **(configs if of == "job" else {})},
    )
    played = run(document, {"a": [OUTPUT], "b": ["done"]})
    outputs = f"## Outputs from Dependent Tasks\n\n### Task a: do a\n**Output:**\n{output}\n\n---\n\n"
    assert seen(played, "b") == f"{BLOCK}{entities}\n{outputs}prompt b"


def test_an_output_that_the_file_states_is_used_and_its_summary_where_it_is_asked_for() -> None:
    given = [
        {"task_id": "a", "output": "of the file", "summary": "short"},
        {"task_id": "z", "output": "from elsewhere"},
    ]
    document = job(task("a"), task("b", "a", dependency_outputs=given))
    played = run(document, {"a": ["of the run"], "b": ["done"]})
    block = "### Task a: do a\n**Output:**\n{}\n\n---\n\n### Task z: \n**Output:**\nfrom elsewhere\n\n---\n\nprompt b"
    assert seen(played, "b") == f"## Outputs from Dependent Tasks\n\n{block.format('of the file')}"
    played = run(document | {"dependency_config": {"include_full_output": False}}, {"a": ["x"], "b": ["done"]})
    assert seen(played, "b") == f"## Outputs from Dependent Tasks\n\n{block.format('short')}"


def test_waves_run_side_by_side_and_the_synthesis_sees_every_result() -> None:
    document = job(task("a"), task("b"), task("c", "a", "b"), synthesis_plan="Join them.")
    played = run(document, {"a": ["A"], "b": ["B"], "c": ["C"], "synthesis": ["all"]})
    assert played.outcome.output == "all"
    assert [(v.phase, v.branch, v.wave) for v in played.state.visits] == [
        ("a", "wave1.a", 1),
        ("b", "wave1.b", 1),
        ("c", "", 2),
        ("synthesis", "", 3),
    ]
    block = "### Task {0}: do {0}\n**Output:**\n{1}\n\n---\n\n"
    told = "".join(block.format(id, id.upper()) for id in "abc")
    assert seen(played, "synthesis") == f"## Outputs from Dependent Tasks\n\n{told}Join them."
    assert played.state.outputs == {"a": "A", "b": "B", "c": "C", "synthesis": "all"}


def test_placeholders_become_whole_results_with_their_type() -> None:
    got: list[Any] = []
    long = "x" * 5000
    document = job(
        call("1", "count", {"of": "files"}),
        call("2", "keep", {"value": "<Result from Task 1>", "deep": [{"text": "n=<results of task 01>!"}]}, "1"),
        task("3", "2", "1", prompt="Say <Result of Task 2> or <Result of Task 9>"),
    )

    def keep(value: Any, deep: Any) -> str:
        got.append((value, deep))
        return long

    played = run(document, {"3": ["done"]}, tools={"count": lambda of: "42", "keep": keep})
    assert played.outcome.status == "success", played.outcome.reason
    assert got == [(42, [{"text": "n=42!"}])]
    text = seen(played, "3")
    assert text.endswith(f"---\n\nSay {long} or <Result of Task 9>")
    assert "### Task 1:" in text
    assert "### Task 2:" not in text
    entry = next(c for c in played.state.calls if c.place.phase == "3").entries[0]
    left = next(part for part in entry.parts if part.origin == "2.output")
    assert (str(left.action), left.reason) == ("dropped", "its result stands in the prompt")


def test_dependants_of_a_failed_task_are_skipped_and_the_rest_runs() -> None:
    document = job(
        call("1", "nowhere", {}),
        task("2", "1"),
        task("3"),
        task("4", "3"),
        synthesis_plan="Join.",
    )
    played = run(document, {"3": ["three"], "4": ["four"]})
    assert played.outcome.status == "failed"
    assert "nowhere" in played.outcome.reason
    assert played.outcome.reason.endswith("skipped: 2, synthesis")
    ended = {v.phase: (v.status, v.reason) for v in played.state.visits}
    assert ended["2"] == ("skipped", "1 failed")
    assert ended["4"][0] == "success"
    assert ended["synthesis"] == ("skipped", "1 failed, 2 was skipped")


def test_without_a_synthesis_the_results_of_the_last_tasks_are_the_output() -> None:
    played = run(job(task("a"), task("b", "a"), task("c", "a")), {"a": ["A"], "b": ["B"], "c": ["C"]})
    assert json.loads(played.outcome.output) == {"b": "B", "c": "C"}


ASKING = {"clarification_needed": True, "clarification_query": "Which format?"}


def test_the_answer_to_a_clarification_is_an_entity_of_every_task() -> None:
    played = run(job(task("1"), **ASKING), {"1": ["done"]}, answers=["Markdown"])
    assert played.outcome.status == "success", played.outcome.reason
    assert seen(played, "1") == "## Entity Constraints and Values\n- clarification: Markdown\n\nprompt 1"


def test_a_clarification_without_a_person_stops_the_run_and_is_its_output() -> None:
    played = play(job(task("1"), **ASKING), {"1": ["done"]})
    assert (played.outcome.status, played.outcome.output) == ("stopped", "Which format?")
