"""A phase without a model: one tool, run once, with retries of its own."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.context.assembly import Item, Kind
from workbench.context.message import Message, Text
from workbench.context.place import Place
from workbench.engine.editing import before_tool, checked, edit_state, journal
from workbench.engine.edits import SetResult, SetState
from workbench.engine.faults import TRUST, PhaseFailed
from workbench.engine.gate import Stop, StopKind
from workbench.engine.hooking import fire
from workbench.engine.ports import ToolResult

if TYPE_CHECKING:
    from workbench.engine.execution import Execution


class ToolFailed(PhaseFailed):
    """The tool's last try gave an error; ``on_error`` may name what follows."""


async def run_tool_phase(execution: Execution) -> None:
    """Run the phase's tool; the execution's output is its result. Raises ToolFailed after the last try."""
    phase, clock = execution.phase, execution.engine.ports.clock
    tries = phase.retry.max_attempts if phase.retry else 1
    arguments = {name: _argument(execution, name, value) for name, value in phase.inputs.items()}
    for attempt in range(1, tries + 1):
        result = await _call(execution, arguments, execution.place(attempt))
        if not result.is_error:
            execution.output = result.text
            execution.value = _value(result)
            execution.route = _routed(execution)
            return
        if attempt < tries:
            await clock.sleep(_wait(execution, attempt))
    raise ToolFailed(f"tool '{phase.tool}': {result.text}", TRUST if result.needs_trust else phase.tool or "")


def _argument(execution: Execution, name: str, value: Any) -> Any:
    """A text is a template; every other scalar is taken as it is."""
    return execution.render(value, (*execution.path, "inputs", name)) if isinstance(value, str) else value


async def _call(execution: Execution, arguments: dict[str, Any], place: Place) -> ToolResult:
    run, phase = execution.engine, execution.phase
    name = phase.tool or ""
    maybe = run.ports.tools.maybe_ran(place, 1)
    stop = Stop(StopKind.BEFORE_TOOL, place, run.depth, tool=name, state=execution.world.state, index=1)
    text = json.dumps(arguments, ensure_ascii=False)
    before = replace(stop, answered_by="maybe" if maybe else "live", arguments=text)
    ready = await before_tool(run, execution.world, before)
    result = ready.result or await _started(execution, ready.arguments, place)
    shown, _ = run.ports.redact(result.text)
    value = None if result.value is None else run.redacted_json(result.value)
    images = [run.scribe.image(image) for image in result.images]
    seen = Message("user", (Text(f"[Images from {name}]:"), *images))
    items = [Item(seen, Kind.IMAGES, place, name)] if images else []
    run.scribe.emit(
        "tool_finished",
        place,
        index=1,
        call_id="",
        tool=name,
        is_error=result.is_error,
        added=run.scribe.items(items),
        images=[image.to_json() for image in images],
        duration_s=round(result.duration_s, 6),
        sandbox=result.sandbox,
        text=shown,
        **run.scribe.whole(run.ports.redact(result.whole)[0] if result.whole else ""),
        **({"value": value} if value is not None and value != _parsed(shown) else {}),
        **({"needs_trust": True} if result.needs_trust else {}),
    )
    execution.items += items
    await fire(run, "tool_result", place, {"tool": name, "result": shown, "is_error": result.is_error}, index=1)
    made = replace(result, text=shown, value=value)
    return await _after(execution, replace(stop, kind=StopKind.AFTER_TOOL, result=shown), made)


async def _started(execution: Execution, text: str, place: Place) -> ToolResult:
    """Run the tool once, within the phase's time limit; durable that it began before it can have changed anything."""
    run, phase = execution.engine, execution.phase
    name = phase.tool or ""
    spec = run.ports.tools.spec(name)
    side_effects = spec is None or spec.side_effects
    await fire(run, "tool_call", place, {"tool": name, "arguments": json.loads(text)}, index=1)
    run.scribe.emit(
        "tool_started", place, index=1, call_id="", tool=name, arguments=text, native=False, side_effects=side_effects
    )
    run.scribe.sync()
    try:
        return await asyncio.wait_for(run.ports.tools.call(name, json.loads(text), place, 1), phase.timeout)
    except TimeoutError:
        return ToolResult(f"the time limit of {phase.timeout:g} s is over", is_error=True)


async def _after(execution: Execution, stop: Stop, result: ToolResult) -> ToolResult:
    """Wait at the stop behind the tool; its result as it is then."""
    run = execution.engine
    while (decision := await run.gate(stop)).edits:
        checked(decision.edits, stop)
        for edit in decision.edits:
            if isinstance(edit, SetState):
                edit_state(run, execution.world, stop, edit)
            elif isinstance(edit, SetResult):
                text, _ = run.ports.redact(edit.text)
                journal(run, stop, SetResult(text, edit.is_error), result.text, text)
                result = ToolResult(text, edit.is_error, sandbox=result.sandbox)
        stop = replace(stop, result=result.text, edited=True)
    return result


def _value(result: ToolResult) -> Any:
    """What ``outputs.<phase>`` holds: the parsed object where the result is JSON, else the text."""
    return _parsed(result.text) if result.value is None else result.value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _routed(execution: Execution) -> str:
    """The phase that ``routing`` names for ``_route``, else ``status``, of the result; empty without a match."""
    value, routing = execution.value, execution.phase.routing
    if not isinstance(value, dict):
        return ""
    key = value.get("_route", value.get("status"))
    return routing.get(str(key), "")


def _wait(execution: Execution, attempt: int) -> float:
    """Seconds before the next try."""
    retry = execution.phase.retry
    if retry is None or retry.backoff == "none":
        return 0.0
    factor = attempt if retry.backoff == "linear" else 2 ** (attempt - 1)
    return float(retry.backoff_base_seconds) * factor
