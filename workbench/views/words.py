"""The words of the log: what an event says to a person, one function for each kind that says anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from workbench.analysis.advice import name_of
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.dollars import money
from workbench.engine.journal.candidate_rounds import candidate_name, was_decided
from workbench.engine.journal.costs import EXACT
from workbench.engine.journal.event import LEFT, STOPPED_BY_USER, TOO_LATE, Event
from workbench.engine.journal.parts import expected_of
from workbench.engine.journal.state import RunState
from workbench.engine.texts import result_body
from workbench.views.cells import flat
from workbench.views.numbers import count, plural, saved_words, seconds

Words = tuple[str, str, str]
"""The kind of an event, its description, and the token that colours it."""


class AppliedEvent(Struct, frozen=True):
    """An event, and the run after it took it."""

    data: Mapping[str, Any]
    run: RunState
    place: Place


def words_of(event: Event, run: RunState) -> Words | None:
    """Describes an event; None for one that is not told. A damaged one is shown as it is."""
    words = _WORDS.get(event.kind)
    if words is None or event.data.get("over"):
        return None
    try:
        return words(AppliedEvent(event.data, run, event.place))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return event.kind, brief(dict(event.data)), "warning"


def ended_words(status: str, reason: str) -> str:
    """Returns how a run or phase ended, and why: ``stopped by you``, ``failed: no answer``."""
    if reason == STOPPED_BY_USER:
        return f"{status} by you"
    return f"{status}: {reason}" if reason else status


def reason_words(reason: str) -> str:
    """Returns why a run ended; a person who stopped it reads ``stopped by you``."""
    return "stopped by you" if reason == STOPPED_BY_USER else reason


def brief(value: object, limit: int = 200) -> str:
    """A value as one line of JSON; text as it is."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return flat(text, limit)


def _run_started(it: AppliedEvent) -> Words:
    given = ", ".join(f"{key} {brief(value, 60)}" for key, value in it.data.get("input", {}).items())
    started = f"started {it.data.get('cascade_id', '')}" + (f" with {given}" if given else "")
    parent = it.data.get("parent")
    if isinstance(parent, dict) and parent.get("kind") in ("fork", "rerun"):
        kind = "fork" if parent["kind"] == "fork" else "re-run"
        started += f", a {kind} of {parent.get('session_id', '')}: recorded answers keep their times"
    return "run", started, "bold"


def _phase_started(it: AppliedEvent) -> Words:
    tools = ", ".join(it.data.get("tools", ()))
    if it.data.get("kind") == "deterministic":
        return "phase", "started without a model", "dim"
    if not it.data.get("model", "?"):
        return "phase", f"started: {it.data.get('kind', '')}", "dim"
    return "phase", f"started on {it.data.get('model', '?')}" + (f", tools {tools}" if tools else ""), "dim"


def _context(it: AppliedEvent) -> Words:
    call = it.run.call_at(it.place)
    grade = it.data.get("grade", "")
    text = f"sends {count(expected_of(it.data), grade)} tokens"
    if call is not None and call.shortened:
        text += f"; {plural(call.shortened, 'message')} masked, {saved_words(call.held_back, call.grade)}"
    forecast = it.data.get("forecast") or {}
    if forecast.get("cached") and forecast.get("reason"):
        text += f"; {forecast['reason']}"
    if broken := it.data.get("problems"):
        return "context", f"{plural(len(broken), 'broken rule')}: {broken[0][1]}", "error"
    return "context", text, "dim"


def _selected(it: AppliedEvent) -> Words:
    if it.data.get("fault"):
        return "selection", f"⚠ selected by the heuristic: {it.data['fault']}", "warning"
    picked, offered = len(it.data.get("picked", ())), len(it.data.get("offered", ()))
    reason = f": {it.data['reason']}" if it.data.get("reason") else ""
    return "selection", f"{it.data.get('model', '')} chose {picked:,} of {plural(offered, 'message')}{reason}", "plain"


def _embedded(it: AppliedEvent) -> Words:
    if it.data.get("fault"):
        return "embedding", f"⚠ similarity by words alone: {it.data['fault'].get('message', '')}", "warning"
    texts = plural(len(it.data.get("keys", ())), "text")
    spent = f"  {money(it.data['cost'], exact=True)}" if it.data.get("cost") else ""
    return "embedding", f"{texts} by {it.data.get('by', '')}  {seconds(it.data.get('duration_s'))}{spent}", "dim"


def _call_finished(it: AppliedEvent) -> Words:
    usage = it.data.get("usage", {})
    cached = f" (cached {usage['cached']:,})" if usage.get("cached") else ""
    parts = [
        str(it.data.get("provider") or it.data.get("model") or ""),
        "recorded" if it.data.get("recorded") else seconds(it.data.get("duration_s")),
        f"in {count(usage['input'])}{cached}" if usage.get("input") is not None else "",
        f"out {count(usage['output'])}" if usage.get("output") is not None else "",
        money(it.data.get("cost"), exact=it.data.get("cost_grade") in EXACT) if it.data.get("cost") is not None else "",
        "cut off" if it.data.get("partial") else "",
    ]
    return "call", "  ".join(part for part in parts if part), "warning" if it.data.get("partial") else "plain"


def _call_failed(it: AppliedEvent) -> Words:
    error = it.data.get("error") or {}
    wait = it.data.get("retry_in")
    after = f"; again in {seconds(wait)}" if wait is not None else ""
    return (
        "call",
        f"try {it.data.get('try', 1)} {name_of(error)}: {error.get('message', '')}{after}",
        "error",
    )


def _tool_finished(it: AppliedEvent) -> Words:
    call = it.run.call_at(it.place)
    tool = next((t for t in call.tools if t.index == it.data.get("index")), None) if call else None
    arguments = tool.arguments if tool else ""
    if it.data.get("sandbox") == LEFT:
        return "tool", f"{it.data.get('tool', '')}({brief(arguments, 80)})  {left_words(it.data)}", "warning"
    took = "from the cache" if it.data.get("cached") else seconds(it.data.get("duration_s"))
    text = f"{it.data.get('tool', '')}({brief(arguments, 80)})  {took}"
    is_error = bool(it.data.get("is_error"))
    said = result_body(tool.tool, tool.text, is_error) if tool else ""
    if is_error:
        return "tool", f"{text}  error: {brief(said, 120)}", "error"
    return "tool", text + (f"  {brief(said, 120)}" if said else ""), "plain"


def left_words(data: Mapping[str, Any]) -> str:
    """Returns why a call did not run."""
    return "not run: too late" if data.get("text") == TOO_LATE else "not run: the turn is repeated"


def _state_set(it: AppliedEvent) -> Words:
    return "state", f"{it.data.get('key')} = {brief(it.data.get('value'))}", "plain"


def _check(it: AppliedEvent) -> Words:
    name, reason = it.data.get("name") or it.data.get("check", "check"), it.data.get("reason", "")
    if it.data.get("valid", True):
        return "check", f"✓ {name}" + (f": {reason}" if reason else ""), "ok"
    return "check", f"✗ {name}: {reason}", "error"


def _route(it: AppliedEvent) -> Words:
    to = it.data.get("to")
    rule = f" ({it.data['rule']})" if it.data.get("rule") else ""
    return "route", (f"→ {to}{rule}" if to else f"ends here{rule}"), "dim"


def _candidates(it: AppliedEvent) -> Words:
    return "soundings", f"{count(it.data.get('factor'))} candidates", "plain"


def _candidate(it: AppliedEvent) -> Words:
    failed = it.data.get("status") not in (None, "success")
    return (
        "candidate",
        f"{_name(it.data.get('index'))} {it.data.get('status', '')}: {brief(it.data.get('output', ''), 120)}",
        ("error" if failed else "dim"),
    )


def _name(index: object) -> str:
    return candidate_name(index) if isinstance(index, int) else ""


def _evaluated(it: AppliedEvent) -> Words:
    who = str(it.data.get("branch") or "").rpartition("/")[2] or _name(it.data.get("winner"))
    reason = f": {it.data['reason']}" if it.data.get("reason") else ""
    wins = "wins" if it.data.get("winner") is None or was_decided(it.data) else "stands, undecided"
    return "evaluation", f"candidate {who} {wins}{reason}", "bold"


def _asked(it: AppliedEvent) -> Words:
    return "asks you", brief(it.data.get("question", "")), "waiting"


def _answered(it: AppliedEvent) -> Words:
    if it.data.get("timed_out"):
        return "you", "no answer in time", "warning"
    if it.data.get("nobody"):
        return "you", "no one is there to answer", "warning"
    if it.data.get("refused"):
        return "you", f"{brief(it.data.get('answer', ''), 80)} does not fit: {it.data['refused']}", "warning"
    return "you", brief(it.data.get("answer", "")), "plain"


def _audible(it: AppliedEvent) -> Words:
    left = f"  ({plural(it.data.get('left', 0), 'time')} left)"
    if it.data.get("text") is None:
        return "you", f"no feedback in time{left}", "warning"
    sort = "once more: " if it.data.get("redo") else ""
    return "you", f"{sort}{brief(it.data['text'])}{left}", "waiting"


def _hook(it: AppliedEvent) -> Words:
    what = f"{it.data.get('name', '')} at {it.data.get('type', '')}"
    if it.data.get("error"):
        return "hook", f"{what}: {it.data['error']}", "warning"
    said = f": {brief(it.data['text'], 120)}" if it.data.get("text") else ""
    why = f" ({it.data['reason']})" if it.data.get("reason") else ""
    return "hook", f"{what}: {it.data.get('action', '')}{said}{why}", "accent"


def _edited(it: AppliedEvent) -> Words:
    edit = it.data.get("edit") or {}
    match what := it.data.get("what", ""):
        case "change" | "drop" | "add":
            said = f"{what} message {edit['at'] + 1}"
        case "move":
            said = f"move message {edit['at'] + 1} to {edit['to'] + 1}"
        case "model":
            given = (f"{name} = {json.dumps(value)}" for name, value in edit["parameters"].items())
            said = ", ".join(filter(None, (edit["model"] and f"model {edit['model']}", *given)))
        case "state":
            said = f"state.{edit['key']} = {brief(edit['value'], 60)}"
        case _:
            said = f"{what}: {brief(it.data['after'] if what in ('arguments', 'skip') else _written(edit), 120)}"
    return "edited", brief(said), "changed"


def copy_of(message: Message) -> str:
    """Returns the text that a copy of a message takes: its own, and its calls."""
    calls = [f"{call.name} {call.arguments}" for call in message.tool_calls]
    return "\n".join(filter(None, (message.text, *calls)))


def _written(edit: Mapping[str, Any]) -> str:
    """The text of an answer or a result that a person wrote."""
    return str(edit["text"] if "text" in edit else copy_of(Message.from_json(edit["message"])))


def _callout(it: AppliedEvent) -> Words:
    return "callout", str(it.data.get("name", "")), "accent"


def _remembered(it: AppliedEvent) -> Words:
    bank, given = it.data.get("bank", ""), plural(it.data.get("count", 0), "message")
    if it.data.get("fault"):
        return "memory", f"⚠ nothing is kept in '{bank}': {it.data['fault']}", "warning"
    return "memory", f"{given} for '{bank}'", "dim"


def _tools_chosen(it: AppliedEvent) -> Words:
    chosen = ", ".join(it.data.get("tools", ())) or "none"
    return "tools", f"{chosen}, of {count(it.data.get('offered'))}: {it.data.get('reason', '')}", "plain"


def _tools_listed(it: AppliedEvent) -> Words:
    server, names = it.data.get("server", ""), ", ".join(it.data.get("names", {}).values()) or "none"
    if fault := it.data.get("fault"):
        return "tools", f"✗ MCP server '{server}': {fault}", "error"
    return "tools", f"of MCP server '{server}': {names}", "dim"


def _what_if(it: AppliedEvent) -> Words:
    data = it.data
    so_far = f"all {money(data['all_cost'])} instead of {money(data['all_sent_cost'])}"
    tokens = f"{count(data['tokens'], 'estimate')} tokens in, sent {count(data['sent_tokens'], 'estimate')}"
    broken = f"; not valid: {data['invalid']}" if data.get("invalid") else ""
    return "what if", f"{brief(data['strategy'], 60)}: {tokens}; {so_far}{broken}", "warning" if broken else "dim"


def _warning(it: AppliedEvent) -> Words:
    line = f"line {it.data['line']}: " if it.data.get("line") else ""
    return "warning", f"⚠ {line}{it.data.get('message', '')}", "warning"


def _phase_finished(it: AppliedEvent) -> Words:
    status = it.data.get("status", "success")
    return "phase", ended_words(status, it.data.get("reason", "")), "ok" if status == "success" else "error"


def _run_finished(it: AppliedEvent) -> Words:
    status = it.data.get("status", "")
    token = "ok" if status == "success" else "warning" if status == "stopped" else "error"
    return "run", ended_words(status, it.data.get("reason", "")), token


def _paused(it: AppliedEvent) -> Words:
    where = "in a run inside it" if it.data.get("stop") == "child" else str(it.data.get("stop", "")).replace("_", " ")
    return "paused", f"{seconds(it.data.get('seconds'))} {where}".strip(), "dim"


def _child_started(it: AppliedEvent) -> Words:
    return "child", f"{it.data.get('kind', '')} {it.data.get('session_id', '')} started", "dim"


def _child_finished(it: AppliedEvent) -> Words:
    return "child", f"{it.data.get('session_id', '')} {it.data.get('status', '')}", "dim"


_WORDS: dict[str, Callable[[AppliedEvent], Words]] = {
    "run_started": _run_started,
    "what_if": _what_if,
    "paused": _paused,
    "run_resumed": lambda _: ("run", "resumed", "bold"),
    "phase_started": _phase_started,
    "context_assembled": _context,
    "context_selected": _selected,
    "embedded": _embedded,
    "call_finished": _call_finished,
    "call_failed": _call_failed,
    "tool_finished": _tool_finished,
    "state_set": _state_set,
    "check_finished": _check,
    "route_chosen": _route,
    "candidates_started": _candidates,
    "candidate_finished": _candidate,
    "evaluation_finished": _evaluated,
    "human_asked": _asked,
    "human_answered": _answered,
    "edited": _edited,
    "audible": _audible,
    "hook": _hook,
    "callout": _callout,
    "remembered": _remembered,
    "tools_chosen": _tools_chosen,
    "tools_listed": _tools_listed,
    "warning": _warning,
    "large_request": lambda it: ("request", str(it.data.get("message", "")), "dim"),
    "phase_finished": _phase_finished,
    "run_finished": _run_finished,
    "child_started": _child_started,
    "child_finished": _child_finished,
}
