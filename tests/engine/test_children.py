"""Cascades that start cascades: what goes in, what comes out, and how their ends count."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import ListSink, Reply, ScriptedModel, call, play, ports
from tests.support.equal_runs import comparable
from workbench.engine.contracts import Answer, CascadeNotFound, Ports, ValidatorVerdict
from workbench.engine.definition import Definition, Options, Outcome
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import Replay
from workbench.engine.run.run import Run


@dataclass
class Shelf:
    """Cascades by name, and a journal for each child."""

    texts: Mapping[str, Mapping[str, Any]]
    journals: dict[str, ListSink] = field(default_factory=dict)

    def by_path(self, ref: str, file: str) -> Definition:
        found = self.by_name(ref.removesuffix(".json"))
        if found is None:
            raise CascadeNotFound(f"cascade file '{ref}' not found")
        return found

    def by_name(self, name: str) -> Definition | None:
        return Definition.of(json.dumps(self.texts[name]), f"{name}.json") if name in self.texts else None

    def names(self) -> Sequence[str]:
        return sorted(self.texts)

    @contextmanager
    def child_ports(self, parent: Ports, run_id: str, key: str, *, resumes: bool = False) -> Iterator[Ports]:
        if not resumes:
            self.journals[key] = ListSink()
        yield replace(parent, sink=self.journals[key])


def run(
    cascade: Mapping[str, Any],
    shelf: Shelf,
    replies: Mapping[str, Sequence[Reply]],
    options: Options = Options("s", "gpt-4o"),
    **input: Any,
) -> tuple[Outcome, ListSink]:
    sink = ListSink()
    outside = ports(ScriptedModel(replies), sink=sink, library=shelf)
    definition = Definition.of(json.dumps(cascade), "parent.json")
    return _run(Run(definition, input, options, outside)), sink


def _run(started: Run) -> Outcome:
    import asyncio

    return asyncio.run(started.execute())


CHILD = {
    "cascade_id": "child",
    "phases": [{"name": "inner", "instructions": "Code {{ input.code }}.", "tackle": ["set_state"]}],
}


def parent(**sub: Any) -> dict[str, Any]:
    return {
        "cascade_id": "parent",
        "phases": [
            {"name": "outer", "instructions": "{{ state.found }} {{ outputs.inner }}", "sub_cascades": [sub]},
        ],
    }


INNER: list[Reply] = [call("set_state", key="found", value="it"), "inner done"]


def test_a_sub_cascade_gets_the_input_and_gives_its_state_and_outputs() -> None:
    shelf = Shelf({"child": CHILD})
    outcome, sink = run(parent(ref="child.json"), shelf, {"inner": INNER, "outer": ["done"]}, code=7)
    assert outcome.status == "success", outcome.reason
    assert outcome.state == {"found": "it"}
    child = shelf.journals["sub_0"].events
    assert child[0].data["session_id"] == "s_sub_0"
    assert child[0].data["parent"]["session_id"] == "s"
    started = [e.data["key"] for e in sink.events if e.kind == "child_started"]
    assert started == ["sub_0"]


@pytest.mark.parametrize(("limit", "status"), [(0.4, "stopped"), (0.6, "success")])
def test_what_a_child_is_billed_counts_for_the_limit_of_the_run(limit: float, status: str) -> None:
    inner = [replace(Answer(text), cost=0.25, cost_grade="billed") for text in INNER if isinstance(text, str)]
    options = Options("s", "gpt-4o", max_cost=limit)
    outcome, _ = run(parent(ref="child.json"), Shelf({"child": CHILD}), {"inner": inner, "outer": ["d"]}, options)
    assert outcome.status == status, outcome.reason


def test_input_map_renders_looks_up_or_is_literal() -> None:
    shelf = Shelf({"child": CHILD})
    mapping = {"code": "{{ input.a }}-x", "b": "a", "c": "literal"}
    run(parent(ref="child.json", input_map=mapping, context_in=False), shelf, {"inner": INNER, "outer": ["d"]}, a=1)
    assert shelf.journals["sub_0"].events[0].data["input"] == {"code": "1-x", "b": 1, "c": "literal"}


def test_an_unknown_name_in_the_map_is_told_with_its_line() -> None:
    text = (
        "cascade_id: parent\nphases:\n  - name: outer\n    instructions: Go.\n    sub_cascades:\n"
        "      - ref: child.json\n        input_map:\n          code: '{{ inptu.x }}'\n"
    )
    sink = ListSink()
    outside = ports(ScriptedModel({"inner": INNER, "outer": ["d"]}), sink=sink, library=Shelf({"child": CHILD}))
    _run(Run(Definition.of(text, "parent.yaml"), {}, Options("s", "gpt-4o"), outside))
    (told,) = [event.data for event in sink.events if event.kind == "warning" and event.data["code"] == "undefined"]
    assert told["line"] == 8


def test_without_context_out_nothing_comes_back() -> None:
    shelf = Shelf({"child": CHILD})
    outcome, _ = run(parent(ref="child.json", context_out=False), shelf, {"inner": INNER, "outer": ["d"]}, code=1)
    assert outcome.state == {}


def test_a_failed_child_fails_the_phase() -> None:
    shelf = Shelf({"child": {**CHILD, "phases": [{**CHILD["phases"][0], "output_schema": {"type": "object"}}]}})  # type: ignore[dict-item]
    outcome, _ = run(parent(ref="child.json"), shelf, {"inner": ["x"], "outer": []}, code=1)
    assert outcome.status == "failed"
    assert "sub-cascade 'child.json' failed: " in outcome.reason


def test_a_missing_file_fails_the_phase_with_its_name() -> None:
    outcome, _ = run(parent(ref="nope.json"), Shelf({}), {}, code=1)
    assert outcome.reason == "cascade file 'nope.json' not found"


def test_recursion_is_cut_and_the_chain_is_named() -> None:
    loop = {"cascade_id": "loop", "phases": [{"name": "x", "instructions": "x", "sub_cascades": [{"ref": "loop"}]}]}
    outcome, _ = run(loop, Shelf({"loop": loop}), {})
    assert outcome.status == "failed"
    assert "loop > loop > loop" in outcome.reason


def test_an_async_cascade_never_changes_the_result_and_its_failure_is_a_warning() -> None:
    document = {
        "cascade_id": "parent",
        "phases": [{"name": "outer", "instructions": "x", "async_cascades": [{"ref": "child"}]}],
    }
    failing = {"cascade_id": "child", "phases": [{"name": "inner", "instructions": "x", "output_schema": {}}]}
    outcome, sink = run(document, Shelf({"child": failing}), {"inner": ["no json"], "outer": ["done"]})
    assert outcome.status == "success"
    kinds = [event.kind for event in sink.events]
    assert kinds.index("run_finished") < kinds.index("child_finished")
    assert any(e.data["code"] == "async" for e in sink.events if e.kind == "warning")


def test_an_inline_validator_is_a_child_run_whose_text_is_the_verdict() -> None:
    document = {
        "cascade_id": "c",
        "validators": {"nice": {"instructions": "Is {{ input.content }} nice?"}},
        "phases": [{"name": "p", "instructions": "x", "rules": {"loop_until": "nice", "max_attempts": 2}}],
    }
    replies = {"p": ["rude", "kind"], "nice": ['{"valid": false, "reason": "rude"}', 'Yes: {"valid": true}']}
    played = play(document, replies)
    assert played.outcome.status == "success", played.outcome.reason
    assert [e.data["valid"] for e in played.of_kind("check_finished")] == [False, True]


def test_a_validator_cascade_without_a_verdict_rejects_and_warns() -> None:
    judge = {"cascade_id": "judge", "phases": [{"name": "j", "instructions": "{{ input.content }}"}]}
    document = {
        "cascade_id": "c",
        "phases": [{"name": "p", "instructions": "x", "wards": {"post": [{"validator": "judge"}]}}],
    }
    outcome, sink = run(document, Shelf({"judge": judge}), {"p": ["text"], "j": ["I like it"]})
    assert outcome.status == "blocked"
    assert any(e.data["code"] == "validator" for e in sink.events if e.kind == "warning")


def test_a_function_validator_wins_over_a_cascade_of_its_name() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "rules": {"loop_until": "v"}}]}
    played = play(document, ["a"], validators={"v": lambda text: ValidatorVerdict(True)})
    assert played.of_kind("child_started") == []


def test_a_run_with_children_replays_with_the_recordings_of_the_children() -> None:
    shelf = Shelf({"child": CHILD})
    _, sink = run(parent(ref="child.json"), shelf, {"inner": INNER, "outer": ["done"]}, code=7)
    journals = {e[0].run_id: e for e in (journal.events for journal in shelf.journals.values())}
    again, replayed = Shelf({"child": CHILD}), ListSink()
    base = ports(ScriptedModel([]), sink=replayed, library=again)
    replay = Replay(Recording(sink.events), children=lambda run_id: Recording(journals[run_id]))
    definition = Definition.of(json.dumps(parent(ref="child.json")), "parent.json")
    outcome = _run(Run(definition, {"code": 7}, Options("s", "gpt-4o"), replay.ports(base)))
    assert outcome.status == "success", outcome.reason
    assert comparable(replayed.events) == comparable(sink.events)
    assert comparable(again.journals["sub_0"].events) == comparable(shelf.journals["sub_0"].events)


TOOL = {
    "cascade_id": "sum_up",
    "description": "Sums a text up.",
    "inputs_schema": {"text": "what to sum up"},
    "phases": [{"name": "s", "instructions": "Sum up: {{ input.text }}"}],
}


def test_a_cascade_with_inputs_is_a_tool_whose_output_is_the_result() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "tackle": ["sum_up"]}]}
    shelf = Shelf({"sum_up": TOOL})
    replies: dict[str, list[Reply]] = {"p": [call("sum_up", text="long"), "done"], "s": ["short"]}
    outcome, sink = run(document, shelf, replies)
    assert outcome.status == "success", outcome.reason
    finished = next(e for e in sink.events if e.kind == "tool_finished")
    assert finished.data["text"] == "short"
    assert shelf.journals["tool_0"].events[0].data["input"] == {"text": "long"}


def test_a_spawned_cascade_answers_its_session_id_and_is_joined_at_the_end() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "tackle": ["spawn_cascade"]}]}
    shelf = Shelf({"sum_up": TOOL})
    spawn = call("spawn_cascade", cascade_ref="sum_up", input_data={"text": "t"})
    outcome, sink = run(document, shelf, {"p": [spawn, "done"], "s": ["short"]})
    assert outcome.status == "success"
    assert next(e for e in sink.events if e.kind == "tool_finished").data["text"] == "Started s_spawn_0."
    assert sink.events[-1].data["status"] == "success"


def test_children_of_walks_that_go_side_by_side_are_counted_in_each() -> None:
    shelf = Shelf({"child": CHILD})
    document = {**parent(ref="child.json"), "soundings": {"factor": 2}}
    verdict = json.dumps({"winner": 1})
    inner = [call("set_state", key="found", value=1), "in", call("set_state", key="found", value=2), "in"]
    outcome, sink = run(document, shelf, {"inner": inner, "outer": ["a", "b", verdict]}, code=7)
    assert outcome.status == "success", outcome.reason
    started = [event.data["session_id"] for event in sink.events if event.kind == "child_started"]
    assert sorted(started) == ["s_s0_sub_0", "s_s1_sub_0"]
