"""A journal seen as answers: what each effect of a run got from the outside world."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, cast

from msgspec import Struct

from workbench.context.assembly import Entry
from workbench.context.place import Place
from workbench.engine.contracts import (
    REMARKS,
    Answer,
    EmbeddedTexts,
    Feedback,
    HookAction,
    HookResult,
    ModelFault,
    NativeCall,
    NoPersonAttached,
    ToolImage,
    ToolResult,
    ValidatorVerdict,
)
from workbench.engine.edits import from_json
from workbench.engine.gate import StopKind
from workbench.engine.journal.candidate_rounds import chance_index
from workbench.engine.journal.event import Event, unpacked
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage
from workbench.engine.servers import recorded_listing


class Kind(StrEnum):
    """The ways in which a run reaches the outside world, and what tells two effects of one place apart."""

    MODEL = "model"
    TOOL = "tool"
    """By the number of the call in its turn; tools of MCP servers and of retrieval are tools."""
    HUMAN = "human"
    """By the number of the question."""
    VERDICT = "verdict"
    """By the number of the check."""
    DRAW = "draw"
    """By the number of the draw."""
    EMBEDDING = "embedding"
    """At no place: by the model and the keys of the texts."""
    LISTING = "listing"
    """The tools of an MCP server, by its name."""
    FEEDBACK = "feedback"
    """By whether the turn was taken again, and the tool call that waited."""
    HOOK = "hook"
    """By the type of event, and the number of the tool call."""
    EDIT = "edit"
    """By the kind of stop, and the number of the tool call."""
    CHILD = "child"
    """At no place: by the key of the child (``sub_0``)."""


class Effect(NamedTuple):
    """One effect of a run."""

    kind: Kind
    place: Place
    detail: Any = 0


class RecordedEffect:
    """The recorded outcome of one effect."""

    __slots__ = ("failed", "outcome", "request")

    def __init__(self, outcome: Any, request: object = None, *, failed: bool = False) -> None:
        self.outcome = outcome
        """An exception is raised again."""
        self.request = request
        """The part of the request that must be equal for the outcome to count: the digest of a model's request, tool
        and arguments, the name of a validator.
        """
        self.failed = failed
        """The effect failed: if a live port exists, it is asked again."""


class RecordedCall(Struct):
    """The request of one model call."""

    digest: str
    entries: Sequence[Entry] = ()


class Recording:
    """The outcomes of one run, by effect. A journal that ends early has fewer outcomes and raises nothing."""

    def __init__(self, events: Iterable[Event], images: Mapping[str, bytes] | None = None) -> None:
        self.events: Sequence[Event] = tuple(events)
        self.state = RunState()
        self.effects: dict[Effect, list[RecordedEffect]] = {}
        """Several outcomes of one effect in order: tries of a call, refused answers before the one that fitted, edits
        at one stop (those made together are one outcome), feedback, hooks of one event."""
        self.calls: dict[Place, RecordedCall] = {}
        self.started: dict[tuple[Place, int], tuple[str, str]] = {}
        """Tool calls that began, by place and index: tool, and arguments as JSON text."""
        self.paused_at: Effect | None = None
        """The hook that stopped it, if one did."""
        self.remarks: list[tuple[str, str]] = []
        """Warnings about what it was given besides its input: code and text."""
        self.served: set[str] = set()
        """Names of tools of MCP servers that may change something."""
        self.times: list[str] = []
        self._images: Mapping[str, bytes] = {} if images is None else images  # Counting stored ones reads the journal.
        self._failing: dict[tuple[str, str, int], list[Effect]] = {}
        """Calls that failed for good, by their visit."""
        self._closed: set[Effect] = set()
        """Effects whose newest outcome is complete: questions with a valid answer, and edits after which the request
        was assembled again.
        """
        for event in self.events:
            new = self.state.apply(event)
            self.times.append(event.at)
            if event.kind == "run_resumed":
                self._asked_anew()
            if not new:
                continue
            if event.kind not in _AFTER_A_PAUSE:
                self.paused_at = None
            if (reader := _READERS.get(event.kind)) is not None:
                reader(self, event.place, event.data)

    def answered(self, place: Place) -> bool:
        """Returns whether the call of a place has an outcome: an answer, or a fault."""
        return Effect(Kind.MODEL, place) in self.effects

    def result(self, place: Place, index: int) -> tuple[str, str, ToolResult] | None:
        """Tool, arguments as JSON text, and result of a tool call; None without a result."""
        known = self.effects.get(Effect(Kind.TOOL, place, index))
        if known is None:
            return None
        tool, arguments = cast(tuple[str, str], known[0].request)
        return tool, arguments, known[0].outcome

    def _set(self, effect: Effect, outcome: Any, request: object = None, *, failed: bool = False) -> None:
        """The outcome of an effect that has one: the newest counts."""
        self.effects[effect] = [RecordedEffect(outcome, request, failed=failed)]

    def _add(self, effect: Effect, outcome: Any, request: object = None, *, failed: bool = False) -> None:
        """The next outcome of an effect that may have several."""
        self.effects.setdefault(effect, []).append(RecordedEffect(outcome, request, failed=failed))

    def _asked_anew(self) -> None:
        """The run went on: calls that had failed for good were made again."""
        for effect in [e for e, known in self.effects.items() if e.kind is Kind.MODEL and known[-1].failed]:
            del self.effects[effect]

    def _edited(self, place: Place, data: Mapping[str, Any]) -> None:
        if "edit" not in data:
            return
        effect = Effect(Kind.EDIT, place, (data.get("stop", ""), data.get("index", 0)))
        if effect not in self.effects or effect in self._closed:
            call = self.calls.get(place)
            self._add(effect, [], call.digest if call is not None else "")
            self._closed.discard(effect)
        self.effects[effect][-1].outcome.append(from_json(data["edit"]))

    def _context(self, place: Place, data: Mapping[str, Any]) -> None:
        if (edit := Effect(Kind.EDIT, place, (str(StopKind.BEFORE_CALL), 0))) in self.effects:
            self._closed.add(edit)
        if place.attempt > 1:
            self._settled(place)
        call = self.state.call_at(place)
        self.calls[place] = RecordedCall(data["digest"], call.entries if call else ())
        self.effects.pop(Effect(Kind.MODEL, place), None)

    def _route(self, place: Place, data: Mapping[str, Any]) -> None:
        if data.get("to"):
            self._settled(place)

    def _settled(self, place: Place) -> None:
        """Keep failed calls of a visit after which the run continued by itself."""
        for effect in self._failing.pop(place.visit_key, ()):
            if (known := self.effects.get(effect)) is not None:
                known[-1].failed = False

    def _answer(self, place: Place, data: Mapping[str, Any]) -> None:
        state = self.state.call_at(place)
        if state is None or state.answer is None or place not in self.calls:
            return
        message = state.answer
        self._add(
            Effect(Kind.MODEL, place),
            Answer(
                message.text,
                tuple(NativeCall(c.id, c.name, c.arguments, c.extra) for c in message.tool_calls),
                message.extra,
                finish_reason=data.get("finish_reason", ""),
                usage=Usage(**data.get("usage", {})),
                cost=data.get("cost"),
                cost_grade=data.get("cost_grade", "unknown"),
                model=data.get("model", ""),
                provider=data.get("provider", ""),
                provider_id=data.get("provider_id", ""),
                first_token_s=data.get("first_token_s"),
                duration_s=data.get("duration_s", 0.0),
                wire=wire_body(self.state, place),
                wire_style=state.wire.style if state.wire else "",
                partial=data.get("partial", False),
                recorded=True,
                remarks=tuple(data.get("remarks", ())),
            ),
            self.calls[place].digest,
        )

    def _fault(self, place: Place, data: Mapping[str, Any]) -> None:
        if place not in self.calls:
            return
        error = data["error"]
        fault = ModelFault(
            error["kind"],
            error["message"],
            status=error.get("status"),
            retry_after=error.get("retry_after"),
            body=error.get("body", ""),
            partial=error.get("partial", ""),
            wire=wire_body(self.state, place) if data.get("wire") else None,
            wire_style=(data.get("wire") or {}).get("style", ""),
        )
        effect = Effect(Kind.MODEL, place)
        self._add(effect, fault, self.calls[place].digest, failed=True)
        self._failing.setdefault(place.visit_key, []).append(effect)

    def _tool_started(self, place: Place, data: Mapping[str, Any]) -> None:
        self.started[(place, data["index"])] = (data["tool"], data["arguments"])

    def _tool_finished(self, place: Place, data: Mapping[str, Any]) -> None:
        key = (place, data["index"])
        tool, arguments = self.started.get(key, (data["tool"], ""))
        images = tuple(
            ToolImage(self._images.get(i["digest"], b""), i["media_type"], i.get("width", 0), i.get("height", 0))
            for i in data.get("images", ())
        )
        result = ToolResult(
            data.get("text", ""),
            data.get("is_error", False),
            images,
            data.get("sandbox", ""),
            data.get("duration_s", 0.0),
            data.get("value"),
            needs_trust=data.get("needs_trust", False),
            whole=self._whole(data.get("whole")),
            embedded={**data["embedded"], "recorded": True} if data.get("embedded") else {},
        )
        self._set(Effect(Kind.TOOL, *key), result, (tool, arguments))

    def _whole(self, where: Mapping[str, Any] | None) -> str:
        """The whole text of a cut result; empty if it was not cut, or its bytes are missing."""
        data = self._images.get(where["digest"]) if where else None
        return data.decode("utf-8", "surrogatepass") if data else ""

    def _candidates(self, place: Place, data: Mapping[str, Any]) -> None:
        for index, draw in enumerate(data.get("draws", ())):
            self._set(Effect(Kind.DRAW, place, index), draw)

    def _evaluation(self, place: Place, data: Mapping[str, Any]) -> None:
        if data.get("drawn") is not None:
            self._set(Effect(Kind.DRAW, place, chance_index(data.get("compared", ()))), data["drawn"])

    def _embedded(self, place: Place, data: Mapping[str, Any]) -> None:
        effect = Effect(Kind.EMBEDDING, Place(), (data["model"], tuple(data["keys"])))
        if fault := data.get("fault"):
            self._set(effect, ModelFault(fault["kind"], fault["message"]), failed=True)
            return
        vectors = tuple(map(unpacked, data["vectors"]))
        said = (data.get("tokens"), data.get("cost"), data.get("duration_s", 0.0))
        self._set(effect, EmbeddedTexts(vectors, data.get("by", ""), *said, recorded=True))

    def _listed(self, place: Place, data: Mapping[str, Any]) -> None:
        schemas = self.state.tool_schemas.get(data.get("tools", ""), ())
        listing = recorded_listing(data["server"], data, schemas)
        self._set(Effect(Kind.LISTING, place, data["server"]), listing, failed=bool(listing.fault))
        self.served |= {tool.spec.name for tool in listing.tools if tool.spec.side_effects}

    def _child(self, place: Place, data: Mapping[str, Any]) -> None:
        """The newest of a key: a resumed run may have started one in the place of another. Those of before named at
        the end of a child the one that had gone on for it."""
        self._set(Effect(Kind.CHILD, Place(), data["key"]), data["run_id"], data.get("number", 0))

    def _human(self, place: Place, data: Mapping[str, Any]) -> None:
        effect, said = Effect(Kind.HUMAN, place, data["index"]), data.get("answer")
        if effect in self._closed:  # The question was asked and answered again: the newest answer counts.
            self._closed.discard(effect)
            del self.effects[effect][-1]
        if not data.get("refused"):
            self._closed.add(effect)
            if said is None:
                said = NoPersonAttached() if data.get("nobody") else TimeoutError()
        self._add(effect, said)

    def _audible(self, place: Place, data: Mapping[str, Any]) -> None:
        text, redo = data.get("text"), data.get("redo", False)
        # Without a text they began to speak, and nothing came in time.
        said = TimeoutError() if text is None else Feedback(text, redo)
        self._add(Effect(Kind.FEEDBACK, place, (redo, data.get("tool", 0))), said)

    def _hook(self, place: Place, data: Mapping[str, Any]) -> None:
        action = HookAction(data.get("action", "continue"))
        result = HookResult(
            data.get("name", ""), action, data.get("text", ""), data.get("reason", ""), data.get("error", ""), True
        )
        effect = Effect(Kind.HOOK, place, (data.get("type", ""), data.get("index", 0)))
        self._add(effect, result)
        self.paused_at = effect if action is HookAction.PAUSE and not result.error else None

    def _warning(self, place: Place, data: Mapping[str, Any]) -> None:
        if data.get("code") in REMARKS:
            self.remarks.append((data["code"], data["message"]))

    def _check(self, place: Place, data: Mapping[str, Any]) -> None:
        verdict = ValidatorVerdict(data["valid"], data.get("reason", ""), data.get("score"))
        self._set(Effect(Kind.VERDICT, place, data.get("index", 0)), verdict, data.get("name", ""))


_AFTER_A_PAUSE = frozenset({"hook", "warning", "blob", "phase_finished", "run_finished"})
"""Events that may follow a hook that stopped the run."""

_READERS = {
    "context_assembled": Recording._context,
    "route_chosen": Recording._route,
    "call_finished": Recording._answer,
    "edited": Recording._edited,
    "call_failed": Recording._fault,
    "tool_started": Recording._tool_started,
    "tool_finished": Recording._tool_finished,
    "candidates_started": Recording._candidates,
    "evaluation_finished": Recording._evaluation,
    "child_started": Recording._child,
    "child_finished": Recording._child,
    "tools_listed": Recording._listed,
    "embedded": Recording._embedded,
    "human_answered": Recording._human,
    "check_finished": Recording._check,
    "warning": Recording._warning,
    "audible": Recording._audible,
    "hook": Recording._hook,
}


def wire_body(state: RunState, place: Place) -> dict[str, Any] | None:
    """The request body of a call exactly as it was sent, keys in wire order. None if none was kept: a snapshot holds no
    bodies, and a damaged journal may have lost some.
    """
    call = state.call_at(place)
    if call is None or call.wire is None or not state.wire_bodies.keys() >= {*call.wire.messages}:
        return None
    if "tools" in call.wire.order and call.wire.tools not in state.wire_bodies:
        return None
    body: dict[str, Any] = {}
    for key in call.wire.order:
        if key == "messages":
            body[key] = [json.loads(state.wire_bodies[digest]) for digest in call.wire.messages]
        elif key == "tools":
            body[key] = json.loads(state.wire_bodies[call.wire.tools])
        else:
            body[key] = call.wire.keys[key]
    return body


def unmarked(event: Event) -> Mapping[str, Any]:
    """The data of an event, without the mark that what a tool embedded comes from a recording."""
    if event.kind != "tool_finished" or not event.data.get("embedded"):
        return event.data
    embedded = {name: value for name, value in event.data["embedded"].items() if name != "recorded"}
    return {**event.data, "embedded": embedded}
