"""A run that is answered from a recording: one class with a policy, and the ports of the engine in front of it.

Whatever a run asks of the outside world is an effect. ``Replay`` finds what the recording holds for it, says that the
request is another one, or lets something live answer; the policy says which. The ports only name the effect, so that
all of them are matched in the same way.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Request
from workbench.context.cards import text_key
from workbench.context.place import Place
from workbench.engine.contracts import (
    Answer,
    Divergence,
    EmbeddedTexts,
    Feedback,
    HookAction,
    HookEvent,
    HookResult,
    Images,
    Library,
    Listing,
    Memory,
    ModelFault,
    NoPersonAttached,
    Ports,
    Question,
    Random,
    Servers,
    ServerTool,
    Source,
    ToolResult,
    Tools,
    ToolSpec,
    ValidatorFault,
    Validators,
    ValidatorVerdict,
)
from workbench.engine.definition import Definition
from workbench.engine.gate import Decision, Gate, Stop, StopKind
from workbench.engine.journal.event import Event
from workbench.engine.journal.journal_writer import Clock, RecordedTimes
from workbench.engine.journal.past_run import PastRun
from workbench.engine.journal.repeats import same_as
from workbench.engine.past.recording import Effect, Kind, RecordedCall, RecordedEffect, Recording
from workbench.language.model.mcp import McpServer

T = TypeVar("T")


class Policy(Struct, frozen=True):
    """Decides which outcomes come from a recording, and what happens if it has no matching one."""

    name: str
    live: bool = True
    """Whether a call that the recording does not answer is asked live; otherwise it is a divergence."""
    by_place: bool = False
    """A call gets the answer recorded at its place even if the request has changed."""
    held_back: bool = False
    """Before the cut nothing is asked live; behind it nothing is taken from the recording."""
    new_journal: bool = False
    """The run has a journal of its own: it starts now, and no tool of it can have run before."""
    own_times: bool = False
    """Events get the time at which they happen, not a recorded one: the journal has those of what it holds."""
    billed: bool = False
    """What it takes was billed to the run itself, unless it was recorded then."""


STRICT = Policy("strict", live=False)
"""Everything comes from the recording; the first changed request ends the run as diverged."""
RECORDED = Policy("recorded", live=False, by_place=True)
"""As strict, but a changed request is answered all the same: a test then sees all that differs, not the first alone."""
RESUMED = Policy("resumed", own_times=True, billed=True)
"""The run continues in its own journal: matching events are taken from it, missing ones are asked live."""
REPLACED = Policy("replaced", own_times=True)
"""A new child of a run that is resumed, in the place of one that was cut off and began with another text or input: it
takes what is unchanged, which that one was billed for."""
REUSED = Policy("reused", new_journal=True)
"""A new run that takes every answer whose place and request are unchanged, also behind the first difference."""
FORKED = Policy("forked", held_back=True, new_journal=True)
"""A new run: strict up to its cut, live from there on."""
LIVE = Policy("live", new_journal=True)
"""A new run that takes only pinned calls: a fork without a point."""
NESTED = Policy("nested", new_journal=True)
"""A child of a new run that may go live: it takes what is unchanged."""


class _Rule(Struct, frozen=True):
    """How an effect of one kind is matched."""

    pinnable: bool = False
    """A pinned call keeps it, even behind the cut."""
    of_call: bool = False
    """The effect belongs to the answer of the call at its place, and counts only if that answer was taken. Without a
    call (a deterministic phase, a question beside the turns) its own request decides.
    """
    once: bool = False
    """Its outcomes are used up one after another; otherwise the newest one stands for good."""
    by_place: bool = False
    """Pins and policies by place take it whatever the request is now."""
    anywhere: bool = False
    """The effect is identified by its request, not by its place: a cut does not matter."""


_RULES: Mapping[Kind, _Rule] = {
    Kind.MODEL: _Rule(pinnable=True, once=True, by_place=True),
    Kind.TOOL: _Rule(pinnable=True, of_call=True),
    Kind.HUMAN: _Rule(pinnable=True, of_call=True, once=True),
    Kind.VERDICT: _Rule(),
    Kind.DRAW: _Rule(),
    Kind.EMBEDDING: _Rule(anywhere=True),
    Kind.LISTING: _Rule(),
    Kind.FEEDBACK: _Rule(once=True),
    Kind.HOOK: _Rule(),
    Kind.EDIT: _Rule(once=True),
    Kind.CHILD: _Rule(anywhere=True),
}


class Replay:
    """One recording behind all ports of a run."""

    def __init__(
        self,
        recording: Recording,
        policy: Policy = STRICT,
        live: Ports | None = None,
        children: Callable[[str], Recording | None] = lambda run_id: None,
        *,
        pins: frozenset[Place] = frozenset(),
    ) -> None:
        """``live`` answers what the recording does not, if the policy allows it. ``children``: the recording of a child
        run by its id. ``pins``: calls that keep their recorded answers and results for any request.

        Raises ValueError if the policy needs live ports and there are none, or the other way round.
        """
        if policy.live != (live is not None):
            raise ValueError(f"the policy '{policy.name}' takes {'live' if policy.live else 'no live'} ports")
        self.recording = recording
        self.policy = policy
        self.live = live
        self.children = children
        self.pins = pins
        self.asked: Counter[Kind] = Counter()
        """Effects that were answered live, those of children included; a pure replay has none."""
        self._taken: Counter[Effect] = Counter()
        self._answered: set[Place] = set()
        self._all_live = policy is LIVE
        self._cut: Place | None = Place() if self._all_live else None

    def ports(self, base: Ports) -> Ports:
        """``base`` with every source of chance replaced by the recording; its sink and renderer stay, and its gate
        is asked after the recorded edits were made again."""
        return replace(
            base,
            gate=_Gate(self, base.gate),
            model=_Model(self),
            tools=_Tools(self, base.tools),
            validators=_Validators(self, base.validators),
            human=_Human(self),
            random=_Random(self, base.random),
            library=_Library(self, base.library),
            retrieval=_Retrieval(self),
            embedder=_Embedder(self),
            servers=_Servers(self, base.servers),
            # A resumed run finds its events and visits in the journal that it goes on, with their times.
            clock=base.clock if self.policy.own_times else _Clock(self, base.clock),
            journaled=self.recording.events if self.policy is RESUMED else (),
            ran_until=self.ran_until if self.policy is RESUMED else lambda: "",
            past_run=self.past_run if self.policy is RESUMED else lambda key: None,
            recorded_at=base.recorded_at if self.policy.own_times else self._times(),
            recorded_seconds=base.recorded_seconds if self.policy.own_times else self._seconds,
            remarks=lambda phases: self.recording.remarks,
            audibles=_Audibles(self),
            hooks=_Hooks(self),
        )

    def _times(self) -> RecordedTimes:
        return _Repeated(self) if self.policy.new_journal else _InOrder(self)

    def _seconds(self, place: Place) -> float | None:
        visit = None if self.past(place) else self.recording.state.visit_of(place)
        return visit.told_seconds if visit is not None else None

    def past_run(self, key: str) -> PastRun | None:
        """The child that stood at a key; None if there was none, or its journal is lost."""
        found = self.find(Effect(Kind.CHILD, Place(), key))
        recording = self.children(found.outcome) if found is not None else None
        if found is None or recording is None or not recording.events:
            return None
        return PastRun(recording.state.run_id, recording.events, self._events_of, cast(int, found.request))

    def ran_until(self) -> str:
        """When the runs inside it that have no end last did anything, ``Event.at``; empty if there are none."""
        return max(map(self._last_at, self.recording.state.children.open), default="")

    def _last_at(self, run_id: str) -> str:
        if (recording := self.children(run_id)) is None:
            return ""
        return max([recording.state.last_at, *map(self._last_at, recording.state.children.open)])

    def _events_of(self, run_id: str) -> Sequence[Event] | None:
        recording = self.children(run_id)
        return recording.events if recording is not None else None

    # -- effects -----------------------------------------------------------------------------------------------------

    def find(self, effect: Effect, request: object = None) -> RecordedEffect | None:
        """The recorded outcome that answers an effect. ``request`` is compared with the recorded one; None for effects
        that their place alone identifies.
        """
        rule = _RULES[effect.kind]
        pinned = rule.pinnable and effect.place in self.pins
        if not (pinned or rule.anywhere) and self.past(effect.place):
            return None
        known = self.recording.effects.get(effect)
        if not known or (known[-1].failed and self.may_go_live):  # What failed for good is asked anew.
            return None
        number = self._taken[effect] if rule.once else len(known) - 1
        if number >= len(known):
            return None
        found = known[number]
        if rule.of_call and effect.place.call:
            return found if effect.place in self._answered else None
        if request is None or found.request == request or (rule.by_place and (pinned or self.policy.by_place)):
            return found
        return None

    def take(self, effect: Effect, found: RecordedEffect) -> Any:
        """The outcome of a recorded effect, used up. Raises a recorded fault."""
        self._taken[effect] += 1
        if isinstance(found.outcome, Exception):
            raise found.outcome
        if effect.kind is Kind.MODEL:
            self._answered.add(effect.place)
            if self.policy.billed and (call := self.recording.state.call_at(effect.place)) is not None:
                return replace(found.outcome, recorded=call.recorded)
        return found.outcome

    async def ask(
        self,
        effect: Effect,
        request: object,
        live: Callable[[Ports], Awaitable[T]],
        missing: Callable[[], Exception],
    ) -> T:
        """The outcome of an effect: from the recording, else live. Raises ``missing`` if neither can answer."""
        found = self.find(effect, request)
        if found is not None:
            return cast(T, self.take(effect, found))
        if self.live is None or not self.may_go_live:
            raise missing()
        self.asked[effect.kind] += 1
        return await live(self.live)

    # -- where it goes live ------------------------------------------------------------------------------------------

    def cut(self, place: Place) -> None:
        """From here on the run is live. Candidates that run in parallel to the one of ``place`` are replayed to their
        end.
        """
        self._cut = place

    @property
    def is_live(self) -> bool:
        """Whether anything has happened, or may have, that the recording does not hold."""
        return self._cut is not None or self.asked[Kind.MODEL] > 0 or self.asked[Kind.HUMAN] > 0

    @property
    def happened(self) -> bool:
        """Whether the run is past the recording, or anything was asked that this does not hold."""
        return self._cut is not None or self.asked.total() > 0

    @property
    def may_go_live(self) -> bool:
        """Whether something live may answer now."""
        return self.live is not None and (not self.policy.held_back or self.is_live)

    @property
    def past_all(self) -> bool:
        """Whether whatever comes now lies behind the cut, wherever it is."""
        return self._all_live or (self._cut is not None and not self._cut.branch)

    def past(self, place: Place) -> bool:
        """Returns whether a place lies behind the cut."""
        if self._cut is None or self._all_live:
            return self._all_live
        here, cut = place.branch, self._cut.branch
        if here == cut or here.startswith(f"{cut}/") or not cut:
            return True
        # The line that the candidates left goes on after all of them.
        self._all_live = not here or cut.startswith(f"{here}/")
        return self._all_live


def _tool_missing(place: Place, index: int, name: str) -> Divergence:
    return Divergence(place, f"call {place.words}: the recording has no result of tool call {index} ({name})")


class _Model:
    """Answers a call whose request equals the one recorded at its place."""

    def __init__(self, replay: Replay) -> None:
        self.name = "recorded" if replay.live is None else replay.live.model.name
        self._replay = replay

    def recorded(self, request: Request, place: Place) -> str:
        known = self._known(place)
        if known is None or not self._replay.recording.answered(place):
            return "live"
        if place in self._replay.pins:
            return "pinned"
        if self._replay.past(place):
            return "live"
        return "recorded" if known.digest == request.digest else "changed"

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        return await self._replay.ask(
            Effect(Kind.MODEL, place),
            request.digest,
            lambda live: live.model.complete(request, place, images, on_text),
            lambda: _diverged(request, place, self._known(place)),
        )

    def _known(self, place: Place) -> RecordedCall | None:
        """The recorded request; None if it failed for good and is asked again."""
        known = self._replay.recording.effects.get(Effect(Kind.MODEL, place))
        anew = known is not None and known[-1].failed and self._replay.may_go_live
        return None if anew else self._replay.recording.calls.get(place)


def _diverged(request: Request, place: Place, call: RecordedCall | None) -> Divergence:
    """The difference in words, with the rule that put the recorded message there."""
    if call is None:
        return Divergence(place, f"call {place.words}: the recording has no call here")
    if call.digest == request.digest:
        return Divergence(place, f"call {place.words}: the recording holds no answer to this request")
    sent = [entry for entry in call.entries if entry.sent is not None]
    for index, message in enumerate(request.messages):
        if index >= len(sent):
            return Divergence(
                place, f"call {place.words}: message {index + 1} ({message.role}) was not sent before", index
            )
        entry = sent[index]
        if entry.sent != message:
            at = entry.item.place
            what = f"{entry.item.kind} of {at.phase}" if at.phase else f"{entry.item.kind}"
            what += f" turn {at.turn}" if at.turn else ""
            rule = f"{entry.rule.path}, line {entry.rule.line}" if entry.rule.line else entry.rule.path
            return Divergence(
                place, f"call {place.words}: message {index + 1} ({what}; rule {rule}) is not as recorded", index
            )
    if len(sent) > len(request.messages):
        index = len(request.messages)
        return Divergence(place, f"call {place.words}: message {index + 1} ({sent[index].item.kind}) is gone", index)
    return Divergence(place, f"call {place.words}: model, parameters or tools are not as recorded")


class _Tools:
    """Answers the tool calls of recorded answers; specs come from the registry, since they are part of requests."""

    def __init__(self, replay: Replay, registry: Tools) -> None:
        self._replay = replay
        self._registry = registry

    def names(self) -> Sequence[str]:
        return self._registry.names()

    def spec(self, name: str) -> ToolSpec | None:
        return self._registry.spec(name)

    def maybe_ran(self, place: Place, index: int) -> bool:
        recording = self._replay.recording
        started = recording.started.get((place, index))
        if started is None or self._replay.policy.new_journal or recording.result(place, index) is not None:
            return False
        spec = self._registry.spec(started[0])
        return spec.side_effects if spec is not None else started[0] in recording.served

    def recorded(self, place: Place, index: int) -> bool:
        return bool(place.call) and self._replay.find(Effect(Kind.TOOL, place, index)) is not None

    async def settled(self, branch: str, winner: str) -> None:
        await self._registry.settled(branch, winner)

    async def call(self, name: str, arguments: Mapping[str, Any], place: Place, index: int) -> ToolResult:
        return await self._replay.ask(
            Effect(Kind.TOOL, place, index),
            (name, json.dumps(arguments, ensure_ascii=False)),
            lambda live: live.tools.call(name, arguments, place, index),
            partial(_tool_missing, place, index, name),
        )


class _Servers:
    """Recorded lists and results of MCP servers, without a connection."""

    def __init__(self, replay: Replay, base: Servers | None) -> None:
        self._replay = replay
        self._base = base
        self._known = {effect.detail for effect in replay.recording.effects if effect.kind is Kind.LISTING}

    def names(self) -> Sequence[str]:
        """The recorded names; if live servers stand behind them, those of the settings, too."""
        live = self._base.names() if self._base is not None and self._replay.live is not None else ()
        return sorted({*self._known, *live})

    async def listing(self, server: str, definition: McpServer | None, place: Place) -> Listing:
        def missing() -> Divergence:
            return Divergence(place, f"the recording has no tools of the MCP server '{server}' at {place}")

        async def live(ports: Ports) -> Listing:
            if ports.servers is None:
                raise missing()
            return await ports.servers.listing(server, definition, place)

        return await self._replay.ask(Effect(Kind.LISTING, place, server), None, live, missing)

    async def call(
        self, tool: ServerTool, definition: McpServer | None, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        name = tool.spec.name

        async def live(ports: Ports) -> ToolResult:
            if ports.servers is None:
                raise _tool_missing(place, index, name)
            return await ports.servers.call(tool, definition, arguments, place, index)

        request = (name, json.dumps(arguments, ensure_ascii=False))
        return await self._replay.ask(
            Effect(Kind.TOOL, place, index), request, live, partial(_tool_missing, place, index, name)
        )


class _Retrieval:
    """Repeats recorded search results; a replay adds nothing to a bank."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    async def call(
        self, source: Source, name: str, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        async def live(ports: Ports) -> ToolResult:
            if ports.retrieval is None:
                return ToolResult(f"LookupError: {name} has nothing to search here", is_error=True)
            return await ports.retrieval.call(source, name, arguments, place, index)

        request = (name, json.dumps(arguments, ensure_ascii=False))
        return await self._replay.ask(
            Effect(Kind.TOOL, place, index), request, live, partial(_tool_missing, place, index, name)
        )

    async def remember(self, bank: str, memories: Sequence[Memory]) -> None:
        if self._replay.live is not None and self._replay.live.retrieval is not None:
            await self._replay.live.retrieval.remember(bank, memories)


class _Embedder:
    """Gives the recorded vectors; nothing is embedded again."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    async def embed(self, texts: Sequence[str], model: str) -> EmbeddedTexts:
        effect = Effect(Kind.EMBEDDING, Place(), (model, tuple(map(text_key, texts))))

        def missing() -> Exception:
            if known := self._replay.recording.effects.get(effect):
                return cast(ModelFault, known[-1].outcome)
            return ModelFault("no_model", f"the recording has no embeddings of {model} for these texts")

        async def live(ports: Ports) -> EmbeddedTexts:
            if ports.embedder is None:
                raise missing()
            return await ports.embedder.embed(texts, model)

        return await self._replay.ask(effect, None, live, missing)


class _Validators:
    """Gives the recorded verdicts."""

    def __init__(self, replay: Replay, registry: Validators) -> None:
        self._replay = replay
        self._registry = registry

    def describe(self, name: str) -> str | None:
        return self._registry.describe(name)

    async def judge(
        self, name: str, content: str, input: Mapping[str, Any], state: Mapping[str, Any], place: Place, index: int
    ) -> ValidatorVerdict:
        return await self._verdict(name, place, index, lambda of: of.judge(name, content, input, state, place, index))

    async def judge_code(
        self, name: str, language: str, code: str, content: str, input: Mapping[str, Any], place: Place, index: int
    ) -> ValidatorVerdict:
        return await self._verdict(
            name, place, index, lambda of: of.judge_code(name, language, code, content, input, place, index)
        )

    async def _verdict(
        self, name: str, place: Place, index: int, judge: Callable[[Validators], Awaitable[ValidatorVerdict]]
    ) -> ValidatorVerdict:
        # Text that was answered live in this run may be what is judged now: its place alone proves nothing then.
        request = name if not self._replay.asked[Kind.MODEL] else object()
        return await self._replay.ask(
            Effect(Kind.VERDICT, place, index),
            request,
            lambda live: judge(live.validators),
            lambda: ValidatorFault(f"the recording has no verdict of '{name}' at {place}"),
        )


class _Human:
    """Says again what people said: first what did not fit the question, then what did."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    async def ask(self, question: Question, place: Place, index: int) -> str:
        try:
            return await self._replay.ask(
                Effect(Kind.HUMAN, place, index),
                None,
                lambda live: live.human.ask(question, place, index),
                lambda: Divergence(place, f"call {place.words}: the recording has no answer to '{question.question}'"),
            )
        except NoPersonAttached:
            raise NoPersonAttached(question.question) from None


class _Random:
    """Repeats recorded draws."""

    def __init__(self, replay: Replay, random: Random) -> None:
        self._replay = replay
        self._random = random

    def uniform(self) -> float:
        return self._random.uniform()

    def draw(self, place: Place, index: int) -> float:
        found = self._replay.find(Effect(Kind.DRAW, place, index))
        return self._random.draw(place, index) if found is None else found.outcome


class _InOrder:
    """Gives each event of a run that is repeated whole the recorded time of the event with its number."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._times = iter(replay.recording.times)

    def __call__(self, kind: str, place: Place, data: Mapping[str, Any]) -> str:
        time = next(self._times, "")
        return "" if self._replay.is_live else time


_MARKED: Mapping[str, Callable[[Place, Mapping[str, Any]], tuple[Effect, object]]] = {
    "call_started": lambda place, data: (Effect(Kind.MODEL, place), data["digest"]),
    "tool_started": lambda place, data: (
        Effect(Kind.TOOL, place, data["index"]),
        (data["tool"], data["arguments"]),
    ),
    "human_asked": lambda place, data: (Effect(Kind.HUMAN, place, data["index"]), None),
}
"""The effect and the request of an event that begins one, which may be asked anew although it was recorded."""

_OF_NOW = frozenset({"run_started", "paused"})
"""Kinds of events that no run takes from another, although what follows may be recorded."""

_BESIDE = frozenset({"blob", "warning"})
"""Kinds of events that go with others: alone they do not tell that anything happens now."""


class _Repeated:
    """Gives an event of a new run that repeats a recorded one the time of that. All others happen now, and so does
    whatever follows the first of them; but a run that was paused goes on with its recording.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._left: defaultdict[int, deque[str]] = defaultdict(deque)
        for event in replay.recording.events:
            self._left[same_as(event.kind, event.place, event.data)].append(event.at)
        self._last = ""
        self._over = False

    def __call__(self, kind: str, place: Place, data: Mapping[str, Any]) -> str:
        self._over = self._over or kind == "run_finished"
        if self._over or kind in _OF_NOW:
            return ""
        left = self._left.get(same_as(kind, place, data))
        if left and not self._happens(kind, place, data):
            self._last = left.popleft()
            return self._last
        if kind in _BESIDE and not self._replay.happened:
            return self._last
        self._over = True
        return ""

    def _happens(self, kind: str, place: Place, data: Mapping[str, Any]) -> bool:
        """Whether it happens now, although the recording has one like it."""
        if self._replay.happened or data.get("status") == "stopped":
            return True
        return kind in _MARKED and self._replay.find(*_MARKED[kind](place, data)) is None


class _Clock:
    """Lets a replay wait for nothing."""

    def __init__(self, replay: Replay, clock: Clock) -> None:
        self._replay = replay
        self._clock = clock

    def now(self) -> str:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Returns at once, unless something has been asked live."""
        if self._replay.is_live:
            await self._clock.sleep(seconds)


class _Library:
    """Gives each child the recording of the child that stood there."""

    def __init__(self, replay: Replay, library: Library) -> None:
        self._replay = replay
        self._library = library

    def by_path(self, ref: str, file: str) -> Definition:
        return self._library.by_path(ref, file)

    def by_name(self, name: str) -> Definition | None:
        return self._library.by_name(name)

    def names(self) -> Sequence[str]:
        return self._library.names()

    @contextmanager
    def child_ports(self, parent: Ports, run_id: str, key: str, *, resumes: bool = False) -> Iterator[Ports]:
        replay = self._replay
        found = None if replay.past_all else replay.find(Effect(Kind.CHILD, Place(), key))
        recording = replay.children(found.outcome) if found is not None else None
        if recording is None and replay.live is None:
            raise Divergence(Place(), f"the recording has no child run '{key}'")
        base = replay.live or parent
        with self._library.child_ports(replace(base, sink=parent.sink), run_id, key, resumes=resumes) as ports:
            if recording is None:
                yield ports
                return
            live = ports if replay.live is not None else None
            if live is None:
                policy = replay.policy
            elif resumes:
                policy = RESUMED
            else:
                policy = REPLACED if replay.policy in (RESUMED, REPLACED) else NESTED
            child = Replay(recording, policy, live, replay.children)
            yield child.ports(ports)
            replay.asked += child.asked


class _Gate:
    """Repeats recorded edits at their stops, and passes the stops that a person passed."""

    def __init__(self, replay: Replay, gate: Gate) -> None:
        self._replay = replay
        self._gate = gate
        self._depth: int | None = None
        self._repeated: Effect | None = None
        """The edit that was repeated last."""
        self._is_plain = not any(effect.kind in (Kind.EDIT, Kind.FEEDBACK) for effect in replay.recording.effects)

    async def __call__(self, stop: Stop) -> Decision:
        if not self._is_plain and (again := self._again(stop)) is not None:
            return again
        if stop.edited and self._repeated == _edit(stop):
            stop = replace(stop, edited=False)  # Nothing is new to the person who made the edit.
        self._repeated = None
        decision = await self._gate(stop)
        if stop.answered_by != "recorded" or decision.send_anyway:
            return decision
        return replace(decision, send_anyway=True)

    def _again(self, stop: Stop) -> Decision | None:
        """The recorded decision at this stop."""
        replay = self._replay
        if stop.kind is StopKind.BEFORE_CALL and replay.find(_feedback(stop.place)) is not None:
            # What was sent is yet to come: a person spoke here, and it was put together again.
            return Decision(send_anyway=bool(stop.problems))
        if self._depth is None:
            self._depth = stop.depth  # A run's own gate is asked before that of any child.
        if stop.depth != self._depth:
            return None
        # Edits of a request were made to that very request; at other stops there is none to compare.
        compared = stop.kind is StopKind.BEFORE_CALL and stop.assembly is not None
        effect = _edit(stop)
        found = replay.find(effect, stop.assembly.request.digest if compared and stop.assembly else None)
        if found is None:
            return None
        self._repeated = effect
        return Decision(edits=tuple(replay.take(effect, found)))


def _edit(stop: Stop) -> Effect:
    return Effect(Kind.EDIT, stop.place, (str(stop.kind), stop.index))


def _feedback(place: Place, *, redo: bool = False, tool: int = 0) -> Effect:
    return Effect(Kind.FEEDBACK, place, (redo, tool))


class _Audibles:
    """Says again what people said to a running phase."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        """Raises TimeoutError if a person began to speak and nothing came in time."""
        replay, effect = self._replay, _feedback(place, redo=redo, tool=tool)
        found = replay.find(effect)
        if found is not None:
            return cast(Feedback, replay.take(effect, found))
        # A call that was made and answered without a word stays without one.
        silent = replay.recording.answered(place) and not replay.past(place)
        return None if replay.live is None or silent else await replay.live.audibles.hear(place, redo=redo, tool=tool)


class _Hooks:
    """Repeats the recorded effects of hooks. After the end of the recording, live hooks are asked, if there are any."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._types = {effect.detail[0] for effect in replay.recording.effects if effect.kind is Kind.HOOK}

    def wants(self, type: str) -> bool:
        live = self._replay.live
        return type in self._types or (live is not None and live.hooks.wants(type))

    async def call(self, event: HookEvent, place: Place, index: int) -> Sequence[HookResult]:
        """Raises RunStopped if a hook stopped the recorded run and nothing may go live."""
        replay, recording = self._replay, self._replay.recording
        effect = Effect(Kind.HOOK, place, (event.type, index))
        if not replay.past(place) and (effect in recording.effects or self._covers(event.type, place, index)):
            results = [known.outcome for known in recording.effects.get(effect, ())]
            stopped = recording.state.status == "stopped" and effect == recording.paused_at
            return [self._stopping(one) for one in results] if replay.live is None and stopped else results
        return () if replay.live is None else await replay.live.hooks.call(event, place, index)

    @staticmethod
    def _stopping(result: HookResult) -> HookResult:
        """The result for a run without an attached person, as the recorded one was."""
        if result.action is not HookAction.PAUSE:
            return result
        return HookResult(result.name, result.action, result.text, result.reason, result.error)

    def _covers(self, type: str, place: Place, index: int) -> bool:
        """Returns whether the recorded run went past this event, so that its hooks, if any, had no effect."""
        recording = self._replay.recording
        visit = recording.state.visit_of(place)
        match type:
            case "cascade_start":
                return bool(recording.state.visits)
            case "phase_start":
                return visit is not None and bool(visit.calls or visit.tool_tries or visit.finished)
            case "turn_start":
                return place in recording.calls
            case "tool_call":
                return (place, index) in recording.started
            case "tool_result":
                return recording.result(place, index) is not None
            case "phase_complete":
                return visit is not None and visit.status not in ("running", "stopped")
        return recording.state.status not in ("running", "stopped")
