"""Pipelines run: outcomes choose edges, failures have ways on, people decide, branches meet, and a replay is equal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import (
    Answers,
    FlatPrices,
    FunctionTools,
    ListSink,
    Played,
    Reply,
    ScriptedModel,
    StepClock,
    Words,
    native,
    play,
    ports,
)
from tests.support.equal_runs import comparable
from workbench.analysis.what_if import reassembling
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer, CascadeNotFound, Images, ModelFault, Ports, ToolResult
from workbench.engine.current import observe
from workbench.engine.definition import Definition, Options
from workbench.engine.engine_tools import OBSERVE
from workbench.engine.gate import Decision, Stop, StopKind
from workbench.engine.journal.state import RunState
from workbench.engine.past.recording import Kind, Recording
from workbench.engine.past.replay import RESUMED, Replay
from workbench.engine.run.run import Run
from workbench.language.graph import COMMAND


def dot(body: str) -> str:
    return f'digraph p {{ goal="the goal"\n start [shape=Mdiamond]\n done [shape=Msquare]\n {body}\n}}'


def run(
    body: str,
    replies: Mapping[str, Sequence[Reply]] | None = None,
    *,
    commands: Mapping[str, ToolResult] | None = None,
    **more: Any,
) -> Played:
    """Run a pipeline, and replay it: no call, and an equal journal."""

    def command(command: str, **rest: Any) -> ToolResult:
        return (commands or {})[command]

    played = play(dot(body), replies or {}, tools={COMMAND: command}, **more)
    replay = Replay(Recording(played.events, played.blobs))
    sink = ListSink()
    base = ports(ScriptedModel([]), tools=played.tools, human=Answers(), sink=sink)
    before = len(played.tools.called)
    outcome = asyncio.run(Run(played.definition, more.get("input", {}), played.options, replay.ports(base)).execute())
    assert (outcome.status, outcome.reason) == (played.outcome.status, played.outcome.reason)
    assert sum(replay.asked.values()) == 0
    assert len(played.tools.called) == before
    assert comparable(sink.events) == comparable(played.events)
    return played


def said(text: str, code: int = 0, err: str = "") -> ToolResult:
    return ToolResult(text, code != 0, value={"stdout": text, "stderr": err, "exit_code": code})


def ways(played: Played) -> list[str]:
    return [f"{event.place.phase}>{event.data['to']}" for event in played.of_kind("route_chosen")]


def test_a_line_of_nodes_runs_from_start_to_exit() -> None:
    played = run('a [prompt="Do $goal, $unknown"]\n start -> a -> done', {"a": ["made"]})
    assert played.outcome.status == "success"
    assert played.outcome.output == "made"
    assert ways(played) == ["start>a", "a>done", "done>"]
    assert played.texts(0)[-1] == ("user", "Do the goal, $unknown")
    finished = played.of_kind("phase_finished")[1].data
    assert finished["outcome"] == {"status": "success", "outcome": "success", "notes": "made"}
    assert played.outcome.state["last_stage"] == "a"


def test_a_stated_outcome_takes_the_true_condition_with_its_values_in_the_journal() -> None:
    body = """a [prompt="x"]  b [prompt="y"]
      start -> a
      a -> done [condition="outcome=success"]
      a -> b [condition="outcome=fail && context.n=3"]
      b -> done"""
    told = '```json\n{"outcome": "fail", "context_updates": {"n": 3}, "failure_reason": "no"}\n```'
    played = run(body, {"a": [told], "b": ["fixed"]})
    assert ways(played) == ["start>a", "a>b", "b>done", "done>"]
    verdicts = played.of_kind("route_chosen")[1].data["verdicts"]
    assert [verdict["holds"] for verdict in verdicts] == [False, True]
    assert verdicts[1]["values"] == {"outcome": "fail", "context.n": "3"}
    visit = played.state.visit_of(played.of_kind("phase_finished")[1].place)
    assert visit is not None
    assert visit.status == "failed"


def test_a_condition_looks_inside_objects_whose_keys_may_hold_dots() -> None:
    body = """a [prompt="x"]  b [prompt="y"]
      start -> a
      a -> done [condition="context.hosts.eu.west.up=yes"]
      a -> b [condition="context.hosts.eu.west.up=no"]
      b -> a [condition="context.hosts.eu.absent=yes"]
      b -> done"""
    told = '```json\n{"outcome": "success", "context_updates": {"hosts": {"eu.west": {"up": "yes"}}}}\n```'
    assert ways(run(body, {"a": [told]})) == ["start>a", "a>done", "done>"]
    told = told.replace('"up": "yes"', '"up": "no"')
    assert ways(run(body, {"a": [told], "b": ["fixed"]})) == ["start>a", "a>b", "b>done", "done>"]


def test_the_tool_states_an_outcome_and_ends_the_phase_without_a_closing_call() -> None:
    body = 'a [prompt="x"]\n start -> a\n a -> done [label="Ship"]\n a -> a [label="Again"]'
    reply = native(report_outcome={"outcome": "success", "preferred_label": "ship"})
    played = run(body, {"a": [reply]})
    assert played.outcome.status == "success", played.outcome.reason
    assert played.of_kind("route_chosen")[1].data["rule"] == "preferred label"
    assert [edge.get("label") for edge in played.of_kind("route_chosen")[1].data["verdicts"]] == ["Ship", "Again"]
    assert len(played.model.requests) == 1


def test_a_phase_runs_again_from_a_fresh_context_while_executions_remain() -> None:
    body = 'a [prompt="x", max_retries=2]\n start -> a -> done'
    played = run(body, {"a": ["outcome=retry", *[ModelFault("server", "503")] * 3, "outcome=fail"]})
    assert played.outcome.status == "failed"
    assert "after 3 executions" in played.outcome.reason
    played = run(body, {"a": ["outcome=retry", "bad\noutcome=fail", "good"]})
    assert played.outcome.status == "success"
    requests = [request.messages for _, request in played.model.requests]
    assert requests[0] == requests[1] == requests[2], "an execution sees nothing of those before it"
    assert played.outcome.state["internal.retry_count.a"] == 2
    waited = [seconds for seconds in played.clock.slept if seconds]
    assert waited == [0.2, 0.4]


def test_the_time_limit_of_a_node_ends_its_call_and_another_execution_may_follow() -> None:
    class Hanging(ScriptedModel):
        async def complete(
            self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]
        ) -> Answer:
            if place.attempt == 1:
                await asyncio.Event().wait()
            return await super().complete(request, place, images, on_text)

    body = 'a [prompt="x", timeout="20ms", max_retries=1]\n start -> a -> done'
    played = run(body, own_model=Hanging({"a": ["made"]}))
    assert played.outcome.status == "success", played.outcome.reason
    assert played.of_kind("call_failed")[0].data["error"]["kind"] == "node_timeout"


def test_what_another_execution_would_meet_again_is_not_tried_again() -> None:
    played = run('a [prompt="x", max_retries=5]\n start -> a -> done', {"a": [ModelFault("authentication", "401")]})
    assert played.outcome.status == "failed"
    assert len(played.model.requests) == 1


def test_retries_that_are_used_up_may_count_as_a_partial_success() -> None:
    body = 'a [prompt="x", max_retries=1, allow_partial=true]\n start -> a -> done'
    played = run(body, {"a": ["outcome=fail", "outcome=fail"]})
    assert played.outcome.status == "success"
    assert played.of_kind("phase_finished")[1].data["outcome"]["status"] == "partial_success"


@pytest.mark.parametrize(
    ("extra", "last"),
    [
        ('a -> r\n r [shape=diamond]\n r -> b [condition="outcome!=success"]\n r -> done', "a>r"),
        ('a [retry_target="b"]\n a -> done', "a>b"),
        ('a [fallback_retry_target="b"]\n a -> done', "a>b"),
        ('a -> b [condition="outcome=fail"]\n a -> done', "a>b"),
    ],
)
def test_a_failure_has_its_own_ways_on(extra: str, last: str) -> None:
    played = run(
        f'a [prompt="x"]\n b [prompt="y"]\n start -> a\n b -> done\n {extra}', {"a": ["outcome=fail"], "b": ["ok"]}
    )
    assert last in ways(played)
    assert "b>done" in ways(played)
    assert played.outcome.status == "success", played.outcome.reason


def test_a_prompt_holds_the_output_of_a_node_that_stated_a_failure() -> None:
    body = """review [prompt="x"]  mend [prompt="Mend: $codergen.review.output"]
      start -> review
      review -> mend [condition="outcome=fail"]
      review -> done [condition="outcome=success"]
      mend -> done"""
    played = run(body, {"review": ["Line 3 is wrong.\noutcome=fail"], "mend": ["mended"]})
    asked = next(request for place, request in played.model.requests if place.phase == "mend")
    assert asked.messages[-1].text == "Mend: Line 3 is wrong.\noutcome=fail"
    assert played.state.outputs["review"] == "Line 3 is wrong.\noutcome=fail"


def test_a_prompt_holds_what_the_graph_declares_and_the_input_wins() -> None:
    body = """audience="children"  vars="tone=kind, depth=2, place"  goal="$audience"
      a [prompt="For $audience in $place, $tone, ${depth}. $goal"]
      start -> a -> done"""
    played = run(body, {"a": ["ok"]}, input={"depth": 3})
    (asked,) = [request for place, request in played.model.requests if place.phase == "a"]
    assert asked.messages[-1].text == "For children in $place, kind, 3. $audience"


def test_a_failure_without_a_way_on_ends_the_run_with_its_reason() -> None:
    told = '```json\n{"outcome": "fail", "failure_reason": "the tests are red"}\n```'
    played = run('a [prompt="x"]\n start -> a -> done', {"a": [told]})
    assert played.outcome.status == "failed"
    assert "the tests are red" in played.outcome.reason
    assert played.of_kind("route_chosen")[-1].data["code"] == "failed"


def test_a_node_without_a_true_condition_ends_the_run_and_says_each_with_its_values() -> None:
    body = 'a [prompt="x"]\n start -> a\n a -> done [condition="outcome=ready"]\n a -> a [condition="outcome=again"]'
    played = run(body, {"a": ["hm"]})
    assert played.outcome.status == "failed"
    assert "outcome=ready is false (outcome is 'success')" in played.outcome.reason
    assert played.of_kind("route_chosen")[-1].data["code"] == "no_matching_edge"


def test_a_loop_ends_at_max_visits() -> None:
    body = 'a [prompt="x", max_visits=3]\n start -> a\n a -> a [condition="outcome=success"]\n a -> done'
    played = run(body, {"a": ["1", "2", "3"]})
    assert played.outcome.status == "failed"
    assert played.outcome.reason.startswith("max_visits: 'a' was visited 3 times")


def test_a_goal_gate_that_did_not_pass_leads_back_and_ends_the_run_at_last() -> None:
    body = """a [prompt="x", goal_gate=true, retry_target="a"]
      start -> a
      a -> done [condition="outcome=fail"]
      a -> done [condition="outcome=success"]"""
    played = run(body, {"a": ["outcome=fail", "good"]})
    assert ways(played) == ["start>a", "a>done", "done>a", "a>done", "done>"]
    assert played.outcome.status == "success"
    played = run(body.replace(', retry_target="a"', ""), {"a": ["outcome=fail"]})
    assert played.outcome.reason.startswith("goal_gate: 'a' is fail")
    played = run('a [prompt="x", goal_gate=true]\n start -> a -> done', {"a": ["outcome=partial_success"]})
    assert played.outcome.status == "success", "work that is done in part passes"


def test_a_goal_gate_may_be_a_condition_of_its_node_and_on_the_exit_of_the_node_before_it() -> None:
    body = """a [prompt="x", goal_gate="outcome = success && context.tested != no", retry_target="a", max_visits=3]
      start -> a -> done"""
    told = '```json\n{"outcome": "success", "context_updates": {"tested": "no"}}\n```'
    played = run(body, {"a": ["outcome=partial_success", told, "good"]})
    assert ways(played)[:6] == ["start>a", "a>done", "done>a", "a>done", "done>a", "a>done"]
    played = run(body.replace(', retry_target="a"', ""), {"a": ["outcome=partial_success"]})
    reason = "goal_gate: 'a' is partial_success (outcome = success && context.tested != no), and no retry_target"
    assert played.outcome.reason.startswith(reason)
    body = 'done [goal_gate="outcome=success", retry_target=a]\n a [prompt="x"]\n start -> a -> done'
    assert ways(run(body, {"a": ["outcome=partial_success", "good"]}))[2:] == ["done>a", "a>done", "done>"]


def test_a_node_may_have_a_system_prompt_and_an_exit_sends_back_so_often_at_most() -> None:
    body = 'a [prompt="x", system_prompt="You serve $goal.", workbench.tools=set_state]\n start -> a -> done'
    played = run(body, {"a": ["good"]})
    (call,) = RunState.of(played.events).calls
    assert [entry.item.message.role for entry in call.entries] == ["system", "user", "user"]
    assert call.entries[0].item.message.text == "You serve the goal."
    body = """graph [max_goal_gate_redirects=1]
      a [prompt="x", goal_gate=true, retry_target="a"]
      start -> a
      a -> done [condition="outcome=fail"]"""
    played = run(body, {"a": ["outcome=fail", "outcome=fail"]})
    assert played.outcome.reason == "goal_gate: 'a' is fail, and max_goal_gate_redirects=1 is used up"


# -- commands --------------------------------------------------------------------------------------------------------


def test_a_command_leaves_its_output_in_the_context_and_its_exit_code_decides() -> None:
    body = """t [shape=parallelogram, tool_command="make $goal"]
      start -> t
      t -> done [condition="outcome=success && context.tool.last_line=ok"]
      t -> f [condition="outcome=fail"]
      f [prompt="Fix: ${tool.stderr}"]
      f -> done"""
    played = run(body, commands={"make the goal": said("built\nok\n")})
    assert ways(played) == ["start>t", "t>done", "done>"]
    assert played.outcome.state["tool_stdout"] == "built\nok"
    played = run(body, {"f": ["fixed"]}, commands={"make the goal": said("", 2, "boom")})
    assert "t>f" in ways(played)
    assert played.texts(0)[-1][1] == "Fix: boom"
    assert played.outcome.state["tool.exit_code"] == 2


def test_a_limit_of_time_ends_a_loop_of_commands_that_asks_no_model() -> None:
    body = """t [shape=parallelogram, tool_command="make"]
      start -> t
      t -> t [condition="outcome=fail"]
      t -> done [condition="outcome=success"]"""
    options = Options("s", "gpt-4o-mini", max_seconds=0.1)
    played = play(
        dot(body), {}, tools={COMMAND: lambda command, **rest: said("", 1)}, options=options, clock=StepClock()
    )
    assert played.outcome.status == "stopped"
    assert played.outcome.reason == "the limit of 0.1 seconds for a run is reached"


def test_hooks_run_around_a_command_and_a_failing_one_before_it_prevents_it() -> None:
    body = """t [shape=parallelogram, tool_command="work", tool_hooks.pre="before", tool_hooks.post="after"]
      start -> t -> done"""
    every = {"work": said("done"), "before": said(""), "after": said("")}
    played = run(body, commands=every)
    assert [arguments["command"] for _, arguments in played.tools.called] == ["before", "work", "after"]
    assert played.tools.called[2][1]["env"]["EXIT_CODE"] == "0"
    played = run(body, commands={**every, "before": said("not now", 1)})
    assert [arguments["command"] for _, arguments in played.tools.called] == ["before"]
    assert "not now" in played.outcome.reason


# -- people ----------------------------------------------------------------------------------------------------------

GATE = """a [prompt="x"]
  ask [shape=hexagon, label="Ship it?"]
  start -> a -> ask
  ask -> done [label="[A] Approve"]
  ask -> a [label="[R] Revise", condition="outcome=fail"]"""


def test_a_person_takes_an_edge_whatever_its_condition_says() -> None:
    played = run(GATE, {"a": ["one", "two"]}, answers=["what?", "r", "Approve"])
    assert ways(played) == ["start>a", "a>ask", "ask>a", "a>ask", "ask>done", "done>"]
    questions = played.of_kind("human_asked")
    assert questions[0].data["options"] == ["[A] Approve", "[R] Revise"]
    assert "'what?' is none of the choices" in questions[1].data["question"]
    assert played.outcome.state["human.gate.selected"] == "A"
    finished = [event.data for event in played.of_kind("phase_finished") if event.place.phase == "ask"]
    assert [one["outcome"]["outcome"] for one in finished] == ["fail", "success"]


def test_nobody_to_ask_stops_the_run_and_it_goes_on_where_it_was() -> None:
    played = play(dot(GATE), {"a": ["one"]})
    assert played.outcome.status == "stopped"
    base = ports(ScriptedModel([]), human=Answers(["a"]))
    replay = Replay(Recording(played.events, played.blobs), RESUMED, base)
    outcome = asyncio.run(Run(played.definition, {}, played.options, replay.ports(base)).execute())
    assert outcome.status == "success", outcome.reason
    assert replay.asked[Kind.MODEL] == 0


def test_a_skipped_gate_fails() -> None:
    body = 'ask [shape=hexagon, label="ok?"]\n start -> ask\n ask -> done [label="yes"]'
    assert "skipped" in run(body, answers=["skip"]).outcome.reason


def test_a_gate_with_one_edge_without_a_label_takes_a_text() -> None:
    body = 'q [shape=hexagon, label="Name?"]\n a [prompt="Greet ${human.gate.text}"]\n start -> q -> a -> done'
    assert run(body, {"a": ["hello"]}, answers=["Ada"]).texts(0)[-1][1] == "Greet Ada"


# -- branches --------------------------------------------------------------------------------------------------------

FAN = """fan [shape=component]
  left [prompt="l"]  right [prompt="r"]
  join [shape=tripleoctagon]
  start -> fan
  fan -> left
  fan -> right
  left -> join
  right -> join
  join -> done"""


def test_branches_walk_on_copies_and_meet_where_the_main_walk_goes_on() -> None:
    scored = '```json\n{"outcome": "success", "context_updates": {"score": 2, "only": "here"}}\n```'
    played = run(FAN, {"left": ["L"], "right": [scored]})
    assert played.outcome.status == "success", played.outcome.reason
    results = played.outcome.state["parallel.results"]
    assert [(one["id"], one["status"], one["score"]) for one in results] == [
        ("left", "success", None),
        ("right", "success", 2),
    ]
    assert played.outcome.state["parallel.fan_in.best_id"] == "right"
    assert "only" not in played.outcome.state, "contexts are not merged"
    assert {event.place.branch for event in played.of_kind("phase_finished")} == {"", "fan.left", "fan.right"}
    assert ways(played).count("fan>join") == 1


def test_a_failed_branch_makes_a_partial_success_and_all_failed_fail_the_join() -> None:
    played = run(FAN, {"left": ["L"], "right": ["outcome=fail"]})
    assert played.outcome.status == "success"
    fan = next(event.data for event in played.of_kind("phase_finished") if event.place.phase == "fan")
    assert fan["outcome"]["status"] == "partial_success"
    assert played.outcome.state["parallel.fan_in.best_id"] == "left"
    played = run(FAN, {"left": ["outcome=fail"], "right": ["outcome=fail"]})
    assert "every branch failed" in played.outcome.reason


def test_a_join_with_a_prompt_lets_a_model_pick() -> None:
    body = FAN.replace("join [shape=tripleoctagon]", 'join [shape=tripleoctagon, prompt="Pick one"]')
    played = run(body, {"left": ["L"], "right": ["R"], "join": ["I take right, for it is short."]})
    assert played.outcome.state["parallel.fan_in.best_id"] == "right"
    assert "### left: success\nL" in played.texts(-1)[-1][1]


def test_the_first_success_ends_the_other_branches() -> None:
    body = FAN.replace("fan [shape=component]", 'fan [shape=component, join_policy="first_success"]')
    played = run(body, {"left": ["outcome=fail"], "right": ["R"]})
    assert played.outcome.status == "success", played.outcome.reason
    assert played.outcome.state["parallel.fan_in.best_id"] == "right"
    played = run(body, {"left": ["outcome=partial_success"], "right": ["outcome=fail"]})
    assert (played.outcome.status, played.outcome.state["parallel.fan_in.best_id"]) == ("success", "left")
    played = run(body, {"left": ["outcome=fail"], "right": ["outcome=fail"]})
    assert "no branch succeeded" in played.outcome.reason


def test_a_branch_that_is_outrun_ends_where_it_is_and_a_replay_ends_it_there() -> None:
    class Uneven(ScriptedModel):
        async def complete(
            self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]
        ) -> Answer:
            for _ in range(400 if place.phase == "late" else 20):
                await asyncio.sleep(0)
            return await super().complete(request, place, images, on_text)

    body = FAN.replace("fan [shape=component]", 'fan [shape=component, join_policy="first_success"]').replace(
        "left -> join", 'left -> late -> join\n late [prompt="z"]'
    )
    played = run(body, own_model=Uneven({"left": ["L"], "late": ["never"], "right": ["R"]}))
    assert played.outcome.status == "success", played.outcome.reason
    assert [one["status"] for one in played.outcome.state["parallel.results"]] == ["skipped", "success"]
    late = next(event for event in played.of_kind("phase_finished") if event.place.phase == "late")
    assert late.data["status"] == "stopped"


def test_branches_of_branches_have_places_of_their_own() -> None:
    body = """one [shape=component]  two [shape=component]
      a [prompt="a"]  b [prompt="b"]  c [prompt="c"]  inner [shape=tripleoctagon]  outer [shape=tripleoctagon]
      start -> one
      one -> two
      one -> c
      two -> a
      two -> b
      a -> inner
      b -> inner
      inner -> outer
      c -> outer
      outer -> done"""
    played = run(body, {"a": ["A"], "b": ["B"], "c": ["C"]})
    assert played.outcome.status == "success", played.outcome.reason
    assert "one.two/two.a" in {event.place.branch for event in played.events}


# -- stepping --------------------------------------------------------------------------------------------------------


def test_a_run_can_be_held_where_an_edge_is_chosen() -> None:
    stops: list[Stop] = []

    async def gate(stop: Stop) -> Decision:
        stops.append(stop)
        return Decision()

    run(GATE, {"a": ["one"]}, answers=["a"], gate=gate)
    routes = [(stop.place.phase, stop.taken, stop.considered) for stop in stops if stop.kind is StopKind.AFTER_ROUTE]
    assert ("ask", ("done",), ("done", "a")) in routes


def test_a_resumed_run_takes_failed_executions_as_they_were() -> None:
    """A call that failed and was followed by another execution is history, not something to ask again."""
    body = (
        'a [prompt="x", max_retries=1]\n ask [shape=hexagon, label="ok?"]\n start -> a -> ask\n ask -> done [label=yes]'
    )
    played = play(dot(body), {"a": [*[ModelFault("server", "503")] * 3, "good"]})
    assert played.outcome.status == "stopped", played.outcome.reason
    base = ports(ScriptedModel([]), human=Answers(["yes"]))
    replay = Replay(Recording(played.events, played.blobs), RESUMED, base)
    outcome = asyncio.run(Run(played.definition, {}, played.options, replay.ports(base)).execute())
    assert outcome.status == "success", outcome.reason
    assert replay.asked[Kind.MODEL] == 0


def test_all_that_a_run_writes_is_plain_json() -> None:
    played = run(FAN, {"left": ["L"], "right": ["R"]})
    json.dumps([event.to_json() for event in played.events])


# -- child graphs -----------------------------------------------------------------------------------------------------


class Graphs:
    """Child graphs by file, and a sink for the events of each run."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.sinks: dict[str, ListSink] = {}

    def by_path(self, ref: str, file: str) -> Definition:
        if ref not in self.files:
            raise CascadeNotFound(f"'{ref}' not found")
        return Definition.of(self.files[ref], ref)

    def by_name(self, name: str) -> None:
        return None

    def names(self) -> Sequence[str]:
        return ()

    @contextmanager
    def child_ports(self, parent: Ports, run_id: str, key: str, *, resumes: bool = False) -> Iterator[Ports]:
        if not resumes:
            self.sinks[run_id] = ListSink()
        yield replace(parent, sink=self.sinks[run_id])


class Managed(FunctionTools):
    """Looks at children as the toolbox does."""

    async def call(self, name: str, arguments: Mapping[str, Any], place: Place, index: int) -> ToolResult:
        return await observe() if name == OBSERVE else await super().call(name, arguments, place, index)


class Slow(ScriptedModel):
    """Lets others run before it answers."""

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        for _ in range(20):
            await asyncio.sleep(0)
        return await super().complete(request, place, images, on_text)


def with_child(body: str, child: str, replies: Mapping[str, Sequence[Reply]]) -> Played:
    """Run a pipeline with a child graph, and replay both."""
    library, sink, again = Graphs({"child.dot": dot(child)}), ListSink(), ListSink()
    definition, options = Definition.of(dot(body), "parent.dot"), Options("s", "gpt-4o-mini")
    model, tools = Slow(replies), Managed()
    live = ports(model, tools=tools, sink=sink, library=library)
    outcome = asyncio.run(Run(definition, {}, options, live).execute())
    recordings = {id: Recording(each.events) for id, each in library.sinks.items()}
    replay = Replay(Recording(sink.events), children=recordings.get)
    base = ports(ScriptedModel([]), tools=Managed(), sink=again, library=Graphs(library.files))
    replayed = asyncio.run(Run(definition, {}, options, replay.ports(base)).execute())
    assert (replayed.status, replayed.reason) == (outcome.status, outcome.reason)
    assert comparable(again.events) == comparable(sink.events)
    return Played(outcome, sink.events, model, tools, StepClock(), [], definition, options, {})


CHILD = 'work [prompt="w"]\n start -> work -> done'


def test_a_manager_waits_for_its_child_and_takes_over_its_end() -> None:
    body = 'm [shape=house, stack.child_dotfile="child.dot"]\n start -> m -> done'
    played = with_child(body, CHILD, {"work": ["made"]})
    assert played.outcome.status == "success", played.outcome.reason
    assert played.outcome.output == "made"
    assert played.outcome.state["stack.child.status"] == "success"


def test_a_manager_stops_its_child_where_its_condition_holds() -> None:
    body = """m [shape=house, stack.child_dotfile="child.dot", manager.stop_condition="stack.cycle=2"]
      start -> m -> done"""
    looping = 'work [prompt="w"]\n start -> work\n work -> work [condition="outcome=success"]\n work -> done'
    played = with_child(body, looping, {"work": ["on"] * 100})
    assert played.outcome.status == "success", played.outcome.reason
    assert played.outcome.state["stack.child.status"] == "stopped"
    (ended,) = played.of_kind("child_finished")
    assert ended.data["status"] == "stopped", "the record of the parent says how it ended"


def test_a_manager_tells_its_child_what_its_model_says() -> None:
    body = """m [shape=house, stack.child_dotfile="child.dot", manager.actions="observe,steer,wait", prompt="Guide it"]
      start -> m -> done"""
    child = 'one [prompt="1"]  two [prompt="2"]  three [prompt="3"]\n start -> one -> two -> three -> done'
    played = with_child(body, child, {"one": ["a"], "two": ["b"], "three": ["c"], "m": ["be brief"] * 50})
    assert played.outcome.status == "success", played.outcome.reason
    told = [request.messages[-1].text for place, request in played.model.requests if place.phase == "three"]
    assert told == ["[User feedback]:\nbe brief"]


def test_a_manager_without_a_child_graph_says_so() -> None:
    assert "child_missing" in run("m [shape=house]\n start -> m -> done").outcome.reason


def test_a_child_that_fails_fails_its_node() -> None:
    body = 'm [type="subgraph", stack.child_dotfile="child.dot"]\n start -> m -> done'
    assert "the child graph failed" in with_child(body, CHILD, {"work": ["outcome=fail"]}).outcome.reason


def test_a_restart_goes_on_in_a_new_run_from_its_target() -> None:
    body = """a [prompt="x"]  b [prompt="y"]
      start -> a
      a -> b
      b -> a [condition="outcome=fail", loop_restart=true]
      b -> done [condition="outcome=success"]"""
    played = with_child(body, CHILD, {"a": ["1", "2", "3"], "b": ["outcome=fail", "outcome=fail", "good"]})
    assert played.outcome.status == "success", played.outcome.reason
    started = played.of_kind("child_started")
    assert [event.data["kind"] for event in started] == ["restart", "restart"]
    assert [place.phase for place, _ in played.model.requests] == ["a", "b"] * 3
    played = with_child(body, CHILD, {"a": ["x"] * 30, "b": ["outcome=fail"] * 30})
    assert played.outcome.reason == "loop_restart: the pipeline was begun anew 20 times"


def test_a_what_if_of_the_files_own_strategy_assembles_every_request_as_it_was() -> None:
    """Retries, a loop and branches: what the journal holds is all that a context needs."""
    body = FAN.replace("start -> fan", 'start -> a -> fan\n a [prompt="x", max_retries=2]').replace(
        "join -> done", 'join -> b\n b [prompt="y"]\n b -> a [condition="outcome=again"]\n b -> done'
    )
    replies = {"a": ["outcome=retry", "one", "two"], "left": ["L", "L2"], "right": ["R", "R2"]}
    played = run(body, {**replies, "b": ["outcome=again", "good"]})
    assert played.outcome.status == "success", played.outcome.reason
    again = list(reassembling(played.state, played.definition, None, Words(), FlatPrices()))
    assert len(again) == 9
    assert [each.assembly.request.digest for each in again] == [each.call.digest for each in again]
