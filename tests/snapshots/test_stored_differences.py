"""Every kind of difference between a frozen run and today's, in the words that are stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import Played, call, play
from tests.support.stored import check_stored
from workbench.context.place import Place
from workbench.engine.contracts import ValidatorVerdict
from workbench.engine.journal.event import Event
from workbench.snapshots.differences import Difference, differences, place_words
from workbench.snapshots.expectations import Expectations
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.recorded_run import RecordedRun

STORED = Path(__file__).parent / "stored"
CASCADE = """\
cascade_id: triage
phases:
  - name: look
    instructions: Look at {{ input.path }}.
    tackle: [read, find]
    handoffs: [mend, {target: ask, description: nothing is wrong}]
    rules: {max_turns: 3}
  - name: mend
    instructions: Mend it.
    rules: {loop_until: short, max_attempts: 3}
    wards: {post: [{validator: plain, mode: advisory}]}
    output_schema: {type: object}
  - name: ask
    instructions: Ask.
"""


def played(cascade: str = CASCADE, *, found: str = "a.log") -> Played:
    calls = f"{call('read', path='a.log')}\n{call('find', word='disk')}"
    replies = {
        "look": [calls, "It is full.\n" + call("route_to", target="mend")],
        "mend": ["none", '{"a": "a long text"}', '{"a": 1}'],
        "ask": ["What?"],
    }
    return play(
        cascade,
        replies,
        input={"path": "a.log"},
        tools={"read": lambda path: "the disk is full", "find": lambda word: found},
        validators={
            "short": lambda text: ValidatorVerdict(len(text) < 12, "it is too long"),
            "plain": lambda text: ValidatorVerdict(True, "it is plain"),
        },
    )


def recorded(one: Played) -> RecordedRun:
    return RecordedRun("run", tuple(one.events))


@dataclass
class Changed:
    """The expectations as JSON, and the events of today's run, to change."""

    body: dict[str, Any]
    events: list[Event]

    def of_event(self, kind: str, **data: Any) -> None:
        """Change the first event of a kind."""
        at = next(at for at, event in enumerate(self.events) if event.kind == kind)
        self.events[at] = replace(self.events[at], data={**self.events[at].data, **data})


def row(of: str, at: int, **values: Any) -> Callable[[Changed], object]:
    return lambda it: it.body[of][at].update(values)


def rows(name: str, keep: slice) -> Callable[[Changed], object]:
    return lambda it: it.body.update({name: it.body[name][keep]})


CHILD = {"key": "sub_1", "run_id": "c"}
CHANGES: dict[str, Callable[[Changed], object]] = {
    "nothing": lambda it: None,
    "fewer tokens": row("requests", 0, tokens=7),
    "another digest": row("requests", 1, digest="0" * 64),
    "a call more": rows("requests", slice(1, None)),
    "calls less": lambda it: it.body["requests"].extend({"at": f"gone/1/1/{n}/{n % 3}"} for n in range(6)),
    "a phase more": rows("phases_executed", slice(0, -1)),
    "another phase": lambda it: it.body["phases_executed"].insert(0, "first"),
    "a phase less": lambda it: it.body["phases_executed"].append("last"),
    "other arguments": row("tool_calls", 0, arguments='{"path":\n"b.log"}' + "x" * 100),
    "another tool": row("tool_calls", 1, tool="seek"),
    "a tool call more": rows("tool_calls", slice(1, None)),
    "a tool call less": lambda it: it.body["tool_calls"].append({"at": "look/2/1/1/1", "index": 4, "tool": "read"}),
    "a tool that failed": row("tool_calls", 0, is_error=True),
    "a tool that fails": lambda it: it.of_event("tool_finished", is_error=True, text="no\nsuch file"),
    "a check more": rows("checks", slice(1, None)),
    "no checks": rows("checks", slice(0, 0)),
    "a check less": lambda it: it.body["checks"].append({"at": "mend/1/9/1/1", "check": "ward", "name": "kind"}),
    "another check": row("checks", 0, name="other"),
    "a verdict that was accepted": row("checks", 0, valid=True),
    "a verdict that was rejected": lambda it: [one.update(valid=not one["valid"]) for one in it.body["checks"][1:]],
    "another reason": row("checks", 0, reason="it was\nlonger " + "y" * 99),
    "another mode": row("checks", -1, mode="blocking"),
    "another route": row("routes", 0, to="ask"),
    "a route from the end": row("routes", 0, to=""),
    "another rule": row("routes", 0, rule="default"),
    "a route more": rows("routes", slice(1, None)),
    "a route less": lambda it: it.body["routes"].append({"at": "ask/1", "to": "mend", "rule": ""}),
    "another status": lambda it: it.body.update(completion_status="blocked"),
    "a failed run": lambda it: it.of_event("run_finished", status="failed", reason="no answer"),
    "a run that diverged": lambda it: it.of_event("run_finished", status="diverged", reason="no answer"),
    "state": lambda it: it.body.update(final_state={"a": None, "b": "x" * 120}),
    "state of now": lambda it: it.of_event("run_finished", state={"a": 1, "b": None}),
    "outputs": lambda it: it.body.update(outputs={"look": "It is empty.", "old": "gone"}),
    "a child less": lambda it: it.body.update(children={"sub_0": it.body | {"children": {}}}),
    "a child more": lambda it: it.events.append(replace(it.events[2], kind="child_started", data=CHILD)),
}  # fmt: skip


def told(found: list[Difference]) -> list[str]:
    """Each with its kind, rule and place, as the command prints it and as other programs read it."""
    lines = []
    for one in found:
        body = one.to_json("t.yaml")
        more = "; ".join(
            f"{name} {value}" for name, value in body.items() if name in ("at", "line", "rule_of") and value
        )
        lines.append(f"  {one.kind}: {one.sentence('t.yaml')} [{more}]")
        lines += [f"    {line}" for line in one.details]
        lines += [
            f"    {'; '.join(f'{name} {value}' for name, value in part.items() if value)}" for part in body["parts"]
        ]
    return lines


def test_each_kind_of_difference_is_told_in_the_stored_words() -> None:
    run = played()
    assert run.outcome.status == "success", run.outcome.reason
    lines = []
    for name, change in CHANGES.items():
        it = Changed(json.loads(json.dumps(Expectations.of(run.events, {}).to_json())), list(run.events))
        change(it)
        new = RecordedRun("run", tuple(it.events))
        lines += [name, *told(differences(Expectations.from_json(it.body), recorded(run), new, run.definition))]
    for name, text in EDITS.items():
        other = played(text, found="b.log" if name == "nothing of the file" else "a.log")
        found = differences(
            Expectations.of(run.events, {}),
            recorded(run),
            recorded(other),
            other.definition,
            frozen=lambda: run.definition,
        )
        lines += [f"file: {name}", *told(found)]
    check_stored(STORED / "differences.txt", "\n".join(lines) + "\n")


EDITS = {
    "nothing of the file": CASCADE,
    "a task": CASCADE.replace("Mend it.", "Mend it now."),
    "a rule": CASCADE.replace("max_turns: 3", "max_turns: 1"),
    "a strategy": CASCADE.replace("    tackle: [read, find]", "    tackle: [read, find]\n    strategy: slide(0)"),
    "two things": CASCADE.replace("Look at", "Look into").replace("Mend it.", "Mend."),
    "a phase": CASCADE.replace("  - name: ask", "  - name: asks").replace("target: ask", "target: asks"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "purpose", "words"),
    [
        (Place("", "look", 1, 1, 0, 0), "", "look"),
        (Place("", "look", 1, 1, 3, 1), "turn", "look:3"),
        (Place("", "look", 1, 1, 3, 2), "turn", "look:3 call 2"),
        (Place("sub_0", "look", 2, 3, 1, 2), "evaluator", "sub_0/look#2:1 attempt 3 (evaluator)"),
        (Place("", "look", 2, 2, 0, 1), "", "look#2 attempt 2"),
    ],
)
def test_a_place_is_named_by_what_is_not_the_first(place: Place, purpose: str, words: str) -> None:
    assert place_words(place, purpose) == words


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no status": lambda body: body.pop("completion_status"),
    "a number as status": lambda body: body.update(completion_status=1),
    "no state": lambda body: body.pop("final_state"),
    "a list as outputs": lambda body: body.update(outputs=[]),
    "a text as phases": lambda body: body.update(phases_executed="look"),
    "a number among phases": lambda body: body["phases_executed"].append(1),
    "a text among routes": lambda body: body["routes"].append("look"),
    "a check of no place": lambda body: body["checks"][1].pop("at"),
    "a child without anything": lambda body: body.update(children={"sub_0": {}}),
    "children as a list": lambda body: body.update(children=[]),
}


def test_damaged_expectations_and_recordings_name_the_value() -> None:
    run = played()
    lines = []
    for name, damage in DAMAGES.items():
        body = json.loads(json.dumps(Expectations.of(run.events, {}).to_json()))
        damage(body)
        with pytest.raises(SnapshotError) as fault:
            Expectations.from_json(body)
        lines.append(f"{name}: {fault.value}")
    whole = recorded(run).lean().to_json() | {"counts": [["m", "d", 3, "exact"]], "images": {"d": "YQ=="}}
    read = RecordedRun.from_json(whole)
    assert read.to_json() == json.loads(json.dumps(whole))
    broken: dict[str, dict[str, Any]] = {
        "no recording": {"recording": None},
        "an event of three": {"recording": [whole["recording"][0][:3]]},
        "a place of texts": {"recording": [["t", "run_started", ["", "", "", "", "", ""], {}]]},
        "no end": {"recording": whole["recording"][:-1]},
        "children as a list": {"children": []},
        "a child without an end": {"children": {"c": whole["recording"][:2]}},
        "images as a text": {"images": "YQ=="},
        "an image that is none": {"images": {"d": "Y"}},
        "an image that is a number": {"images": {"d": 1}},
        "a count of two": {"counts": [["m", 3]]},
        "a count of no grade": {"counts": [["m", "d", 3, "sure"]]},
    }
    for name, other in broken.items():
        with pytest.raises(SnapshotError) as fault:
            RecordedRun.from_json(whole | other)
        lines.append(f"{name}: {fault.value}")
    check_stored(STORED / "damages.txt", "\n".join(lines) + "\n")
