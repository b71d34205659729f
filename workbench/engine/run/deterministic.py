"""A phase without a model: one tool, run once, with retries of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from workbench.context.assembly import Item, Kind
from workbench.context.message import Message, TextPart
from workbench.context.place import Place
from workbench.engine.contracts import ToolResult
from workbench.engine.conversation import Conversation
from workbench.engine.current import calling
from workbench.engine.edits import SetResult, SetState
from workbench.engine.engine_tools import ENGINE_SPECS
from workbench.engine.faults import TRUST, PhaseFailed
from workbench.engine.gate import Stop, StopKind, checked
from workbench.engine.human.feedback import PhaseFeedback
from workbench.engine.human.pages import PAGE, ask_by_page
from workbench.engine.run.children import Children, in_time
from workbench.engine.run.mapping import FOR_EACH_ROW, CascadeMapping
from workbench.engine.run.tools import RequestedCall, Tooling, before_tool
from workbench.json_text import as_value
from workbench.language.graph import COMMAND
from workbench.language.model.cascade import MAP_CASCADE, SCHEMES
from workbench.language.problem import Path

_CLASS = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*(?:Error|Exception|Fault|Warning|Exit|Interrupt)): ")
"""Begins the text of an exception."""


ENGINE_RUN = frozenset({FOR_EACH_ROW, MAP_CASCADE, PAGE})
"""Work of the engine itself, which journals its own events: starting runs, asking a person."""


class ToolFailed(PhaseFailed):
    """The tool's last try gave an error; ``on_error`` may name what follows."""

    def __init__(self, phase: str, tool: str, text: str, check: str) -> None:
        super().__init__(f"tool '{tool}': {text}", check)
        named = _CLASS.match(text)
        self.error: Mapping[str, str] = {
            "message": text,
            "error": text,
            "phase": phase,
            "tool": tool,
            "type": named[1] if named else "ToolError",
        }
        """The error that templates read as ``state.last_deterministic_error``."""


class ToolPhase:
    """Runs the tool of one execution of a phase."""

    def __init__(
        self, conversation: Conversation, children: Children, feedback: PhaseFeedback, *, tool: str = ""
    ) -> None:
        """``tool`` stands in for that of the phase."""
        self._tool = tool
        self._conversation = conversation
        self._children = children
        self._feedback = feedback

    async def run(self) -> None:
        """Run the phase's tool; the conversation's output is its result. Raises ToolFailed after the last try."""
        phase, clock = self._conversation.phase, self._conversation.engine.ports.clock
        tries = phase.retry.max_attempts if phase.retry else 1
        arguments = self._arguments()
        for attempt in range(1, tries + 1):
            result = await self.call(arguments, self._conversation.place(attempt))
            if not result.is_error:
                self._conversation.output = result.text
                self._conversation.value = _value(result)
                self._conversation.route = self._routed() or self._conversation.route
                return
            if result.needs_trust:
                break  # Another try would be refused like this one.
            if attempt < tries:
                await clock.sleep(self._wait(attempt))
        name = self._tool_of()
        raise ToolFailed(phase.name, name, result.text, TRUST if result.needs_trust else name)

    def _arguments(self) -> dict[str, Any]:
        phase, path = self._conversation.phase, (*self._conversation.path, "inputs")
        if phase.screen:
            return {}
        if phase.for_each_row is not None:
            return phase.for_each_row.model_dump(exclude_none=True, exclude_defaults=True)
        return {name: self._argument(value, (*path, name)) for name, value in phase.inputs.items()}

    def _tool_of(self) -> str:
        """Returns the name of the phase's work in the journal."""
        phase = self._conversation.phase
        return PAGE if phase.screen else self._tool or phase.tool or FOR_EACH_ROW

    def _argument(self, value: Any, path: Path) -> Any:
        """A text is a template, also inside lists and mappings; everything else is taken as it is."""
        if isinstance(value, str):
            return self._conversation.render(value, path)
        if isinstance(value, list):
            return [self._argument(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self._argument(item, (*path, key)) for key, item in value.items()}
        return value

    async def call(self, arguments: dict[str, Any], place: Place) -> ToolResult:
        """Call the tool once; what it gave, as a person let it be. Never raises for what a tool does wrong."""
        run = self._conversation.engine
        name = self._tool_of()
        maybe = run.ports.tools.maybe_ran(place, 1)
        stop = Stop(StopKind.BEFORE_TOOL, place, run.depth, tool=name, state=self._conversation.world.state, index=1)
        text = json.dumps(arguments, ensure_ascii=False)
        before = replace(stop, answered_by="maybe" if maybe else "live", arguments=text)
        ready = await before_tool(run, self._conversation.world, before)
        result = ready.result or await self._started(ready.arguments, place)
        shown, _ = run.ports.redact(result.text)
        value = None if result.value is None else run.redacted_json(result.value)
        images = [run.journal.image(image.data, image.media_type, image.width, image.height) for image in result.images]
        seen = Message("user", (TextPart(f"[Images from {name}]:"), *images))
        items = [Item(seen, Kind.IMAGES, place, name)] if images else []
        run.journal.emit(
            "tool_finished",
            place,
            index=1,
            call_id="",
            tool=name,
            is_error=result.is_error,
            added=run.journal.items(items),
            images=[image.to_json() for image in images],
            duration_s=round(result.duration_s, 6),
            sandbox=result.sandbox,
            text=shown,
            **run.journal.whole(run.ports.redact(result.whole)[0] if result.whole else ""),
            **({"value": value} if value is not None and value != as_value(shown) else {}),
            **({"needs_trust": True} if result.needs_trust else {}),
        )
        self._conversation.items += items
        await run.fire("tool_result", place, {"tool": name, "result": shown, "is_error": result.is_error}, index=1)
        made = replace(result, text=shown, value=value)
        after = replace(stop, kind=StopKind.AFTER_TOOL, result=shown, is_error=result.is_error)
        return await self._after(after, made)

    async def _started(self, text: str, place: Place) -> ToolResult:
        """Run the tool once, within the phase's time limit; that it began is durable before it can change anything."""
        run, phase = self._conversation.engine, self._conversation.phase
        name = self._tool_of()
        spec = next(iter(self._conversation.setup.served.specs(name)), None) or run.tool_spec(name)
        side_effects = name not in ENGINE_RUN and (spec is None or spec.side_effects)
        await run.fire("tool_call", place, {"tool": name, "arguments": json.loads(text)}, index=1)
        run.journal.emit(
            "tool_started",
            place,
            index=1,
            call_id="",
            tool=name,
            arguments=text,
            native=False,
            side_effects=side_effects,
        )
        await run.journal.durable()
        result, late = await in_time(self._ran(name, json.loads(text), text, place), phase.timeout)
        if late or result is None:
            return ToolResult(f"the time limit of {phase.timeout:g} s is over", is_error=True)
        return result

    async def _ran(self, name: str, arguments: dict[str, Any], text: str, place: Place) -> ToolResult:
        """Run by the engine if the tool changes the run itself, asks a person or starts cascades; else by the tools."""
        tools, rule = self._conversation.engine.ports.tools, self._conversation.phase.for_each_row
        if self._conversation.phase.screen:
            return await ask_by_page(self._conversation, place, 1)
        if rule is not None:
            return await CascadeMapping(self._conversation, self._children).run_rows(rule, place)
        if name == MAP_CASCADE:
            return await CascadeMapping(self._conversation, self._children).map_cascade(arguments, place)
        if name in self._conversation.setup.served:
            return await self._conversation.setup.served.call(name, arguments, place, 1)
        named_in_place = name == COMMAND or (name.partition(":")[0] in SCHEMES and ":" in name)
        if name in ENGINE_SPECS or (tools.spec(name) is None and not named_in_place):
            tooling = Tooling(self._conversation, self._children, self._feedback, place)
            result = await tooling.called(RequestedCall(name, arguments, text), 1)
            self._conversation.route = tooling.route
            return result
        with calling(self._conversation.engine, self._conversation.world, place):
            return await tools.call(name, arguments, place, 1)

    async def _after(self, stop: Stop, result: ToolResult) -> ToolResult:
        """Wait at the stop behind the tool; its result as it is then."""
        run = self._conversation.engine
        while (decision := await run.gate(stop)).edits:
            checked(decision.edits, stop)
            for edit in decision.edits:
                if isinstance(edit, SetState):
                    run.edit_state(self._conversation.world, stop, edit)
                elif isinstance(edit, SetResult):
                    text, _ = run.ports.redact(edit.text)
                    run.journal_edit(stop, SetResult(text, edit.is_error), result.text, text)
                    result = ToolResult(text, edit.is_error, sandbox=result.sandbox)
            stop = replace(stop, result=result.text, is_error=result.is_error, edited=True)
        return result

    def _routed(self) -> str:
        """The phase that ``routing`` names for ``_route``, else ``status``, else success of the result, or as
        ``default``; empty without a match."""
        value, routing = self._conversation.value, self._conversation.phase.routing
        if self._conversation.phase.screen or not routing:
            return ""
        key = (value.get("_route") or value.get("status")) if isinstance(value, dict) else None
        return routing.get(str(key or "success")) or routing.get("default", "")

    def _wait(self, attempt: int) -> float:
        """Seconds before the next try."""
        retry = self._conversation.phase.retry
        if retry is None or retry.backoff == "none":
            return 0.0
        factor = attempt if retry.backoff == "linear" else 2 ** (attempt - 1)
        return float(retry.backoff_base_seconds) * factor


def _value(result: ToolResult) -> Any:
    """The value of ``outputs.<phase>``: the parsed object if the result is JSON, else the text."""
    return as_value(result.text) if result.value is None else result.value
