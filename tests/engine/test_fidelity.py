"""Fidelity in a run: what the engine hands to it is the same live, in a what-if, in a replay and in a fork."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.engine.support import (
    FlatPrices,
    FunctionValidators,
    ListSink,
    Played,
    Reply,
    ScriptedModel,
    Words,
    native,
    play,
    ports,
)
from workbench.analysis.what_if import what_if
from workbench.context.strategy import parse
from workbench.engine.contracts import ValidatorVerdict
from workbench.engine.definition import Parent
from workbench.engine.edits import SetState
from workbench.engine.gate import Decision, Stop, StopKind
from workbench.engine.journal.state import RunState
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import Replay
from workbench.engine.run.run import Run

PIPE: dict[str, Any] = {
    "cascade_id": "pipe",
    "description": "Fix the build.",
    "default_fidelity": "summary:high",
    "phases": [
        {
            "name": "look",
            "instructions": "Look.",
            "tackle": ["t", "set_state"],
            "use_native_tools": True,
            "rules": {"max_turns": 4},
            "thread_id": "w",
            "handoffs": [{"target": "fix", "fidelity": "full"}],
        },
        {
            "name": "fix",
            "instructions": "Fix.",
            "thread_id": "w",
            "rules": {"loop_until": "v", "max_attempts": 3},
            "fidelity": "truncate",
            "handoffs": ["vote"],
        },
        {
            "name": "vote",
            "instructions": "Vote.",
            "soundings": {"factor": 2, "max_parallel": 1},
            "tackle": ["set_state"],
            "use_native_tools": True,
            "rules": {"max_turns": 2},
            "handoffs": ["brief"],
        },
        {"name": "brief", "instructions": "Brief.", "fidelity": "truncate"},
        {"name": "last", "instructions": "Last."},
    ],
}


async def door(stop: Stop) -> Decision:
    """Puts a value into the state before ``fix``."""
    if stop.kind is StopKind.BEFORE_PHASE and stop.place.phase == "fix" and not stop.edited:
        return Decision(edits=(SetState("hint", "by hand"),))
    return Decision()


def piped() -> Played:
    replies: dict[str, list[Reply]] = {
        "look": [native("", t={"x": "1"}), native("", set_state={"key": "score", "value": 1}), "found"],
        "fix": ["bad", "good"],
        "vote": [native("", set_state={"key": "pick", "value": "one"}), "one", "two", '{"winner": 1}'],
        "brief": ["told"],
        "last": ["end"],
    }
    verdicts = iter([ValidatorVerdict(False, "red"), ValidatorVerdict(True)])
    return play(PIPE, replies, tools={"t": lambda x: "hit"}, validators={"v": lambda text: next(verdicts)}, gate=door)


def test_a_run_tells_its_phases_what_came_before() -> None:
    played = piped()
    assert played.outcome.status == "success", played.outcome.reason
    fix = next(c for c in played.state.calls if c.place.phase == "fix")
    assert [e.item.source.split(".")[0] for e in fix.entries if e.item.source] == ["look"] * 7
    assert "fidelity full by handoff (phase: truncate, default_fidelity: summary:high)" in fix.notes
    assert "Run ID: run-1" in played.texts(-2)[0][1]
    told = played.texts(-1)[0][1]
    assert "- look: success — found\n  Tools used: t, set_state\n  Duration: 0." in told
    assert '"score": 1,\n  "hint": "by hand",\n  "pick": "one"' in told
    assert told.endswith("### Retry Information\n- fix: 1/2")


def test_the_files_own_fidelity_gives_the_recorded_contexts_again() -> None:
    played = piped()
    again = what_if(played.state, played.definition, None, Words(), FlatPrices())
    calls = [c for c in played.state.calls if not c.beside]
    assert [r.assembly.request.digest for r in again] == [c.digest for c in calls]
    assert [r.assembly.entries for r in again] == [c.entries for c in calls]


def test_another_fidelity_is_a_strategy_of_a_what_if() -> None:
    played = piped()
    low = what_if(played.state, played.definition, parse("fidelity:summary:low"), Words(), FlatPrices())
    assert low[-1].assembly.request.messages[0].text == (
        'Pipeline "pipe" stage 5 of 5. Goal: Fix the build.\nCompleted: look, fix, vote, brief. Last outcome: success.'
    )


def test_a_replay_under_another_id_sends_the_same_requests() -> None:
    played = piped()
    sink = ListSink()
    replay = Replay(Recording(played.events))
    known = FunctionValidators({"v": lambda text: ValidatorVerdict(False, "never asked")})
    base = ports(ScriptedModel([]), tools=played.tools, validators=known, sink=sink)
    name = played.state.prompt_id
    parent = Parent(played.state.run_id, "test", "replay", prompt_id=name)
    run = Run(played.definition, {}, played.options, replay.ports(base), run_id="other", parent=parent)
    outcome = asyncio.run(run.execute())
    state = RunState.of(sink.events)
    assert (outcome.status, state.run_id, state.prompt_id) == ("success", "other", name)
    assert [c.digest for c in state.calls] == [c.digest for c in played.state.calls]
