"""Small changes to a cascade, each with what a strict replay must say first; empty where nothing may change."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Doc = dict[str, Any]
Edit = Callable[[Doc], object]


@dataclass(frozen=True)
class Mutation:
    """One changed document. ``first`` is a pattern for the start of the first difference."""

    name: str
    doc: Doc
    first: str


@dataclass(frozen=True)
class Ran:
    """What the frozen run did: turns of each phase it visited."""

    turns: Mapping[str, int]
    tool_turns: Mapping[str, int]


def put(value: object, *path: str | int) -> Edit:
    """Sets a value inside a document; objects on the way are made."""

    def edit(doc: Doc) -> None:
        at: Any = doc
        for key in path[:-1]:
            at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
        at[path[-1]] = value

    return edit


def drop(*path: str | int) -> Edit:
    """Takes a value out of a document."""

    def edit(doc: Doc) -> None:
        at: Any = doc
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return edit


def _inside(index: int, edit: Edit) -> Edit:
    return lambda doc: edit(doc["phases"][index])


def mutations(doc: Doc, ran: Ran) -> Iterator[Mutation]:
    """Every change that applies to a cascade."""

    def changed(name: str, edit: Edit, first: str) -> Mutation:
        other = copy.deepcopy(doc)
        edit(other)
        return Mutation(name, other, first)

    yield changed("nothing", lambda d: None, "")
    yield changed("the description", lambda d: d.update(description="Something else."), "")
    yield changed(
        "a phase before all", lambda d: d["phases"].insert(0, {"name": "new", "instructions": "Go."}), "phases: "
    )
    targets = {
        handoff if isinstance(handoff, str) else handoff["target"]
        for p in doc["phases"]
        for handoff in p.get("handoffs", ())
    }
    last = doc["phases"][-1]["name"]
    yield changed(
        f"{last} is gone", lambda d: d["phases"].pop(), ".*is not a phase" if last in targets else "route after "
    )
    for index, phase in enumerate(doc["phases"]):
        name = phase["name"]
        for what, edit, first in _of_phase(phase, ran, name in targets):
            found = first if name in ran.turns or "is not a phase" in first else ""
            yield changed(f"{name}: {what}", _inside(index, edit), found)


Rule = tuple[str, Edit, str]
"""What is changed, how, and the first difference where the phase ran."""


def _of_phase(phase: Doc, ran: Ran, is_target: bool) -> Iterator[Rule]:
    name = phase["name"]
    call = f"call {name}:1: "
    yield "another model", lambda p: p.update(model="openai/gpt-4o-mini"), f"{call}the model was"
    for what, words in (("asked kindly", " Please."), ("a typo", " teh"), ("a variable", " {{ input.nothing }}.")):
        yield what, put(phase["instructions"] + words, "instructions"), rf"{call}message \d+ \(the task\)"
    yield (
        "called otherwise",
        lambda p: p.update(name=f"{name}_2"),
        ".*is not a phase" if is_target else "(phases: |route after )",
    )
    yield from _tools(phase, call)
    yield from _turns(phase, ran)
    yield from _handoffs(phase, call)
    yield from _context(phase, call)
    yield from _checks(phase, ran)


def _tools(phase: Doc, call: str) -> Iterator[Rule]:
    tools: Sequence[str] = phase.get("tackle", [])
    is_native = phase.get("use_native_tools", False)
    found = rf"{call}(message 1 \(the tool text\)|the tools offered)"
    for tool in tools:
        yield f"without {tool}", put([each for each in tools if each != tool], "tackle"), found
    more = "smart_sql_run" if "smart_sql_run" not in tools else "list_files"
    yield "with a tool more", lambda p: p.setdefault("tackle", []).append(more), found
    if tools:
        yield "native or not", lambda p: p.update(use_native_tools=not is_native), found
    if len(tools) > 1:
        yield "tools in another order", lambda p: p["tackle"].reverse(), found


def _turns(phase: Doc, ran: Ran) -> Iterator[Rule]:
    name, turns = phase["name"], ran.turns.get(phase["name"], 0)
    allowed = phase.get("rules", {}).get("max_turns", 1)
    for fewer in range(1, turns):
        if "turn_prompt" in phase["rules"]:
            break
        yield (
            f"{fewer} turns",
            put(fewer, "rules", "max_turns"),
            rf"call {name}:{fewer} \(closing\)",
        )
    if turns < allowed:
        yield "a turn more", put(allowed + 1, "rules", "max_turns"), ""
    if "turn_prompt" in phase.get("rules", {}):
        prompt = rf"call {name}:2: message \d+ \(turn 2's prompt\)"
        yield "another turn prompt", lambda p: p["rules"].update(turn_prompt="Again, better."), prompt
        yield "no turn prompt", drop("rules", "turn_prompt"), prompt
        yield "fewer prompted turns", lambda p: p["rules"].update(max_turns=1), f"(check|call|route) .*{name}"
    masked = rf"call {name}:\d+: message \d+ \(turn \d+'s result\) was"
    if "intra_context" in phase:
        after = phase["intra_context"]["mask_observations_after"]
        for other in {1, 2, 3, 4, 5} - {after}:
            if min(other, after) < ran.tool_turns.get(name, 0):
                yield (
                    f"masked after {other}",
                    put(other, "intra_context", "mask_observations_after"),
                    masked,
                )
        yield "never masked", lambda p: p.pop("intra_context"), f"{masked} masked"
        yield "only long ones masked", lambda p: p["intra_context"].update(min_masked_size=10**6), f"{masked} masked"


def _handoffs(phase: Doc, call: str) -> Iterator[Rule]:
    handoffs = phase.get("handoffs", [])
    task = rf"{call}message \d+ \(the task\) was reworded"
    if len(handoffs) > 1:
        yield "a route described otherwise", lambda p: p["handoffs"][0].update(description="as you like"), task
        yield "a route without description", lambda p: p["handoffs"][1].pop("description"), task
        yield "routes in another order", lambda p: p["handoffs"].reverse(), task
        yield "a route less", lambda p: p["handoffs"].pop(0), task
        yield "a route to itself", lambda p: p["handoffs"].append({"target": p["name"]}), f"({task}|route after )"
    elif handoffs:
        yield "another route", lambda p: p.update(handoffs=[p["name"]]), f"route after {phase['name']}"
        yield "a choice of routes", lambda p: p["handoffs"].append(p["name"]), rf"{call}message 1 \(the tool text\)"


def _context(phase: Doc, call: str) -> Iterator[Rule]:
    if "context" not in phase:
        return
    context = phase["context"]
    entered = rf"{call}message \d+ \(.*\) "
    shown = context.get("include_input", True)
    yield (
        "the input or not",
        lambda p: p["context"].update(include_input=not shown),
        rf"{call}message \d+ \(the input\)",
    )
    for index in range(len(context["from"])):
        yield f"without source {index}", drop("context", "from", index), entered
    for index, source in enumerate(context["from"]):
        if isinstance(source, dict):
            other = "messages" if source["include"] == ["output"] else "output"
            yield (
                f"{other} of source {index}",
                put([other], "context", "from", index, "include"),
                entered,
            )


def _checks(phase: Doc, ran: Ran) -> Iterator[Rule]:
    name, rules = phase["name"], phase.get("rules", {})
    if "output_schema" in phase:
        check = f"check {name}: output_schema"
        findings = ("properties", "findings", "items")

        def item(p: Doc) -> Doc:
            inner: Doc = p["output_schema"]
            for key in findings:
                inner = inner[key]
            return inner

        severity = ["critical", "high", "medium", "low"]
        yield "a wider schema", lambda p: item(p)["properties"].update(severity={"enum": severity}), f"{check} rejected"
        yield "a stricter schema", lambda p: p["output_schema"].update(required=["findings", "verdict"]), check
        yield "no schema", lambda p: p.pop("output_schema"), "(call|route|no longer|output)"
    if "retry_instructions" in rules:
        again = rf"call {name}:1 attempt 2: message \d+ \(attempt 2, turn 1's retry message\)"
        yield "another retry message", lambda p: p["rules"].update(retry_instructions="Once more."), again
        yield "one attempt", lambda p: p["rules"].update(max_attempts=1), "the run was success, is now failed"
    for when, wards in phase.get("wards", {}).items():
        for index, ward in enumerate(wards):
            for mode in {"retry", "blocking", "advisory"} - {ward["mode"]}:
                words = f"check {name}.*{ward['validator']}: mode was '{ward['mode']}'"
                yield f"{ward['validator']} {mode}", put(mode, "wards", when, index, "mode"), words
            yield (
                f"{ward['validator']} is another",
                put("json_validator", "wards", when, index, "validator"),
                f"(check {name}|the run)",
            )
