"""Runs the tool calls of one answer, one after another in the order written; every fault is a result the model sees."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Item, Kind
from workbench.context.message import Image, Message, TextPart
from workbench.context.place import Place
from workbench.engine import texts
from workbench.engine.contracts import CascadeNotFound, Source, ToolResult
from workbench.engine.conversation import Conversation
from workbench.engine.current import calling
from workbench.engine.edits import Edit, SetArguments, SetResult, SetState, SkipTool
from workbench.engine.engine_tools import ASK_CUSTOM, ENGINE_SPECS, REPORT_OUTCOME, SEARCH_CONTEXT, SPAWN
from workbench.engine.faults import PhaseFailed
from workbench.engine.gate import Stop, StopKind, checked
from workbench.engine.human.custom_form import ask_custom, hinted, in_words
from workbench.engine.human.feedback import PhaseFeedback
from workbench.engine.human.people import ask_person
from workbench.engine.journal.event import LEFT, TOO_LATE
from workbench.engine.routing.outcome import stated
from workbench.engine.run.children import Children
from workbench.engine.run.command import AFTER, BEFORE, hooks_of, run_hook
from workbench.engine.selection.remembering import source_of
from workbench.engine.selection.search_context_tool import search_context
from workbench.engine.services import Services
from workbench.engine.toolcalls import ReadCall
from workbench.engine.world import REUSED, World
from workbench.language.words import ASK_HUMAN, ROUTE_TO, SET_STATE


class RequestedCall(Struct, frozen=True):
    """A tool call that an answer asks for."""

    name: str
    arguments: Mapping[str, Any]
    raw: str
    """The arguments as JSON text, as the model wrote them."""
    call_id: str = ""
    """Of a native call; empty for prompt-based ones."""
    problem: str = ""


def native_calls(answer: Message) -> list[RequestedCall]:
    """The tool calls of an answer as the history holds it; arguments that are no JSON object become a problem that
    the model is told."""
    return [_native(call.name, call.arguments, call.id) for call in answer.tool_calls]


def _native(name: str, raw: str, call_id: str) -> RequestedCall:
    try:
        arguments = json.loads(raw or "{}")
    except (ValueError, RecursionError) as fault:
        column = fault.pos + 1 if isinstance(fault, json.JSONDecodeError) else 1
        return RequestedCall(name, {}, raw, call_id, f"{getattr(fault, 'msg', 'not valid JSON')} at column {column}")
    if not isinstance(arguments, dict):
        return RequestedCall(name, {}, raw, call_id, "the arguments are no object at column 1")
    return RequestedCall(name, arguments, raw, call_id)


def prompt_calls(calls: Sequence[ReadCall]) -> list[RequestedCall]:
    """Calls read from text."""
    return [
        RequestedCall(c.tool, c.arguments, c.raw if c.problem else _encode(c.arguments), "", c.problem) for c in calls
    ]


_encode = json.JSONEncoder(ensure_ascii=False).encode


def _under_header(name: str, images: Sequence[Image], before: Sequence[TextPart | Image]) -> list[TextPart | Image]:
    """The images of a result, but for those that earlier ones of the turn show: what a page looks like before a click
    is what it looked like after the last."""
    fresh = [image for image in images if image not in before]
    again = len(images) - len(fresh)
    return [TextPart(f"[Images from {name}]:" + (f" ({again} of {len(images)} shown above)" if again else "")), *fresh]


class Tooling:
    """The tools of one turn."""

    def __init__(self, conversation: Conversation, children: Children, feedback: PhaseFeedback, place: Place) -> None:
        self.conversation = conversation
        self.engine = conversation.engine
        self.children = children
        self.feedback = feedback
        self.place = place
        self.route = ""
        """The last valid target of ``route_to``."""
        self.left = False
        """Whether a person asked for the turn again before all of its calls had run."""
        self._shown: list[TextPart | Image] = []
        """The images of the results so far, each result's under its header."""
        self._shown_by: dict[str, None] = {}
        """The tools that returned them, in order."""

    async def run(self, wanted: Sequence[RequestedCall]) -> None:
        """Run the calls. Results join the history, images follow them as one user message. A call that a person refuses
        gets a result that says so, followed by what the person said.
        """
        for index, call in enumerate(wanted, 1):
            maybe = self.engine.ports.tools.maybe_ran(self.place, index)
            stop = self._stop(StopKind.BEFORE_TOOL, call, index, "maybe" if maybe else "live", arguments=call.raw)
            ready = await before_tool(self.engine, self.conversation.world, stop)
            said = await self.feedback.listen(self.place, redo=True, tool=index)
            if said is not None:
                self._leave(wanted, texts.NOT_RUN, index)
                self.feedback.join(self.place, said, redo=True)
                self.left = True
                return
            if ready.changed:
                call = _native(call.name, ready.arguments, call.call_id)
            result = ready.result or await self._started(call, index)
            text = self._finish(call, index, result, last=index == len(wanted))
            told = {"tool": call.name, "result": text, "is_error": result.is_error}
            await self.engine.fire("tool_result", self.place, told, index=index)
            after = self._stop(StopKind.AFTER_TOOL, call, index, result=text)
            await self._after(replace(after, is_error=result.is_error), call)

    def close(self, wanted: Sequence[RequestedCall]) -> None:
        """Answer the calls of an answer behind which no tool may run."""
        self._leave(wanted, TOO_LATE)

    def _leave(self, wanted: Sequence[RequestedCall], why: str, first: int = 1) -> None:
        """A result that says why a call did not run, for each from the ``first`` on."""
        for index, call in enumerate(wanted[first - 1 :], first):
            not_run = ToolResult(why, is_error=True, sandbox=LEFT)
            self._finish(call, index, not_run, last=index == len(wanted))

    def _stop(
        self,
        kind: StopKind,
        call: RequestedCall,
        index: int,
        answered_by: str = "live",
        *,
        arguments: str = "",
        result: str = "",
    ) -> Stop:
        return Stop(
            kind,
            self.place,
            self.engine.depth,
            tool=call.name,
            state=self._state,
            answered_by=answered_by,
            index=index,
            arguments=arguments,
            result=result,
        )

    async def _started(self, call: RequestedCall, index: int) -> ToolResult:
        """Run one tool; durable that it began before it can have changed anything."""
        about = {"tool": call.name, "arguments": dict(call.arguments)}
        await self.engine.fire("tool_call", self.place, about, index=index)
        before, after = hooks_of(self.engine.definition.graph, self.place.phase)
        if before and call.name not in ENGINE_SPECS:
            hook = await run_hook(self.conversation, before, call.name, self.place, BEFORE + index)
            if hook.is_error:
                return ToolResult(f"Not run: the hook before it failed: {hook.text}", is_error=True, sandbox=LEFT)
        spec = next((tool for tool in self.conversation.setup.tools if tool.name == call.name), None)
        spec = spec or self.engine.tool_spec(call.name)
        self.engine.journal.emit(
            "tool_started",
            self.place,
            index=index,
            call_id=call.call_id,
            tool=call.name,
            arguments=call.raw,
            native=bool(call.call_id),
            side_effects=spec is not None and spec.side_effects,
        )
        if spec is not None and spec.side_effects:
            await self.engine.journal.durable()
        result = await self._result(call, index)
        if after and call.name not in ENGINE_SPECS:
            await run_hook(self.conversation, after, call.name, self.place, AFTER + index, int(result.is_error))
        return result

    async def _after(self, stop: Stop, call: RequestedCall) -> None:
        """Wait at the stop behind a tool, where its result may be edited."""
        while (decision := await self.engine.gate(stop)).edits:
            checked(decision.edits, stop)
            for edit in decision.edits:
                if isinstance(edit, SetState):
                    self.engine.edit_state(self.conversation.world, stop, edit)
                elif isinstance(edit, SetResult):
                    text, _ = self.engine.ports.redact(edit.text)
                    message = self._item(call, text, edit.is_error, 0).message
                    self.conversation.edit_newest(
                        stop, replace(edit, text=text), Kind.RESULT, message, is_error=edit.is_error
                    )
                    stop = replace(stop, result=text, is_error=edit.is_error)
            stop = replace(stop, edited=True)

    @property
    def _state(self) -> dict[str, Any]:
        return self.conversation.world.state

    def _finish(self, call: RequestedCall, index: int, result: ToolResult, *, last: bool) -> str:
        """Journal a result and let it join the history; its text."""
        text, redacted = self.engine.ports.redact(result.text)
        images = [
            self.engine.journal.image(image.data, image.media_type, image.width, image.height)
            for image in result.images
        ]
        if images:
            self._shown += _under_header(call.name, images, self._shown)
            self._shown_by[call.name] = None
        items = [self._item(call, text, result.is_error, redacted)]
        if last and self._shown:
            message = Message("user", tuple(self._shown))
            items.append(Item(message, Kind.IMAGES, self.place, ", ".join(self._shown_by)))
        event = self.engine.journal.emit(
            "tool_finished",
            self.place,
            index=index,
            call_id=call.call_id,
            tool=call.name,
            is_error=result.is_error,
            added=self.engine.journal.items(items),
            images=[image.to_json() for image in images],
            duration_s=round(result.duration_s, 6),
            sandbox=result.sandbox,
            cached=result.sandbox == REUSED,
            text=text,
            **self.engine.journal.whole(self.engine.ports.redact(result.whole)[0] if result.whole else ""),
            **({"embedded": dict(result.embedded)} if result.embedded else {}),
            **({"arguments": call.raw} if result.sandbox == LEFT else {}),
        )
        if result.embedded:
            tokens, cost = result.embedded.get("tokens"), result.embedded.get("cost")
            recorded = (event.data.get("embedded") or {}).get("recorded", False)
            self.engine.spend(tokens or 0, cost, self.place, recorded=recorded)
        self.conversation.join(items, carried=True)
        return text

    def _item(self, call: RequestedCall, text: str, is_error: bool, redacted: int) -> Item:
        if call.call_id:
            message = Message("tool", text if text.strip() else "(no output)", (), call.call_id, call.name)
        else:
            message = Message("user", texts.result_text(call.name, text, is_error))
        return Item(message, Kind.RESULT, self.place, call.name, is_error, redacted=redacted)

    async def _result(self, call: RequestedCall, index: int) -> ToolResult:
        if call.problem:
            return ToolResult(texts.unreadable(call.problem), is_error=True)
        if call.name not in self.conversation.setup.tool_names:
            return ToolResult(texts.not_available(call.name, self.conversation.setup.tool_names), is_error=True)
        return await self.called(call, index)

    async def called(self, call: RequestedCall, index: int) -> ToolResult:
        """Returns the result of a tool of the engine, a cascade or a registered tool; the call itself is not
        journaled."""
        if call.name == ROUTE_TO:
            return self._route_to(call.arguments)
        if call.name == REPORT_OUTCOME:
            return self._report(call.arguments)
        if call.name == SET_STATE:
            return self._set_state(call.arguments)
        if call.name == ASK_HUMAN:
            return await self._ask_human(call.arguments, index)
        if call.name == ASK_CUSTOM:
            return await ask_custom(self.conversation, call.arguments, self.place, index)
        if call.name == SPAWN:
            return self._spawn(call.arguments)
        if call.name == SEARCH_CONTEXT:
            return search_context(self.conversation, call.arguments)
        if (source := source_of(self.engine.definition, self.conversation.phase, call.name)) is not None:
            return await self._retrieved(source, call, index)
        if call.name not in self.conversation.setup.served and self.engine.ports.tools.spec(call.name) is None:
            return await self._cascade(call)
        return await self._cached(call, index)

    async def _cached(self, call: RequestedCall, index: int) -> ToolResult:
        """The tool's result, or one that an equal call gave before."""
        cache, now = self.conversation.world.cache, self.engine.ports.clock.monotonic()
        tools = self.engine.ports.tools
        found = cache.find(call.name, call.arguments, now)
        if found is not None and not tools.recorded(self.place, index):
            return replace(found, sandbox=REUSED, duration_s=0.0)
        caller = self.conversation.setup.served if call.name in self.conversation.setup.served else tools
        with calling(self.engine, self.conversation.world, self.place):
            result = await caller.call(call.name, call.arguments, self.place, index)
        if result.sandbox != REUSED:
            cache.invalidate(f"tool:{call.name}")
            cache.keep(call.name, call.arguments, result, now)
        return result

    async def _retrieved(self, source: Source, call: RequestedCall, index: int) -> ToolResult:
        """Returns the findings of a search of a folder or a bank."""
        retrieval = self.engine.ports.retrieval
        if retrieval is None:
            return ToolResult(f"LookupError: {call.name} has nothing to search here", is_error=True)
        return await retrieval.call(source, call.name, call.arguments, self.place, index)

    def _spawn(self, arguments: Mapping[str, Any]) -> ToolResult:
        ref, given = str(arguments.get("cascade_ref", "")), arguments.get("input_data") or {}
        if not isinstance(given, Mapping):
            return ToolResult("TypeError: 'input_data' must be an object", is_error=True)
        try:
            definition = self.engine.ports.library.by_path(ref, self.engine.definition.source.file)
            session = self.children.start_async(definition, given, "spawn", self.place)
        except (CascadeNotFound, PhaseFailed) as fault:
            return ToolResult(str(fault), is_error=True)
        return ToolResult(f"Started {session}.", value=session)

    async def _cascade(self, call: RequestedCall) -> ToolResult:
        """A cascade as a tool."""
        clock = self.engine.ports.clock
        begin = clock.monotonic()
        try:
            definition = self.engine.ports.library.by_name(call.name)
            if definition is None:
                return ToolResult(f"no tool is called '{call.name}'", is_error=True)
            child = await self.children.run(definition, call.arguments, "tool", self.place)
        except (CascadeNotFound, PhaseFailed) as fault:
            return ToolResult(str(fault), is_error=True)
        outcome = child.outcome
        if outcome.status != "success":
            return ToolResult(f"{call.name} is {outcome.status}: {outcome.reason}", is_error=True)
        return ToolResult(outcome.output, sandbox=f"cascade {child.session_id}", duration_s=clock.monotonic() - begin)

    def _route_to(self, arguments: Mapping[str, Any]) -> ToolResult:
        targets = [target for target, _ in self.conversation.setup.targets]
        target = str(arguments.get("target", ""))
        if target in targets:
            self.route = target
            return ToolResult(f"Routing to {target}")
        return ToolResult(f"Unknown target '{target}'. Valid targets: {', '.join(targets)}.", is_error=True)

    def _report(self, arguments: Mapping[str, Any]) -> ToolResult:
        found = stated(arguments, "tool")
        if found is None:
            return ToolResult("TypeError: 'outcome' must be a text that is not empty", is_error=True)
        self.conversation.reported = found
        return ToolResult(f"Reported: {found.word}.")

    def _set_state(self, arguments: Mapping[str, Any]) -> ToolResult:
        key = arguments.get("key")
        if not isinstance(key, str) or not key:
            return ToolResult("TypeError: 'key' must be a text that is not empty", is_error=True)
        if "value" not in arguments:
            return ToolResult("TypeError: 'value' is missing", is_error=True)
        value = self.engine.redacted_json(arguments["value"])
        self.conversation.set_state(key, value, self.place, by=SET_STATE)
        return ToolResult(f"State '{key}' is set.", value=value)

    async def _ask_human(self, arguments: Mapping[str, Any], index: int) -> ToolResult:
        """The answer, which is also ``state.<phase>``; of several the last."""
        question = hinted(arguments)
        answer = in_words(question, await ask_person(self.engine, self.place, question, index))
        self.conversation.set_state(self.conversation.phase.name, answer, self.place, by=ASK_HUMAN)
        return ToolResult(answer)


class ToolEdit(Struct):
    """A tool call on its way: what a person made of it before it runs."""

    arguments: str
    """JSON text."""
    result: ToolResult | None = None
    """Its result, if it was skipped."""
    changed: bool = False


async def before_tool(services: Services, world: World, stop: Stop) -> ToolEdit:
    """Wait at the stop before a tool; the call as it is to run."""
    call = ToolEdit(stop.arguments)
    while (decision := await services.gate(stop)).edits:
        checked(decision.edits, stop)
        for edit in decision.edits:
            _edit_tool(services, world, stop, call, edit)
        stop = replace(stop, arguments=call.arguments, edited=True)
    return call


def _edit_tool(services: Services, world: World, stop: Stop, call: ToolEdit, edit: Edit) -> None:
    match edit:
        case SetState():
            services.edit_state(world, stop, edit)
        case SetArguments(arguments):
            arguments, _ = services.ports.redact(arguments)
            edit = SetArguments(arguments)
            services.journal_edit(stop, edit, call.arguments, arguments)
            call.arguments, call.result, call.changed = arguments, None, True
        case SkipTool(text, is_error):
            text, _ = services.ports.redact(text)
            services.journal_edit(stop, SkipTool(text, is_error), call.arguments, text, tool=stop.tool)
            call.result = ToolResult(text, is_error, sandbox="skipped")
