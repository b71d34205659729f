"""Services shared by the parts of a run: its definition, options, ports and journal, its gate, limits, costs and
hooks."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.assembly import Assembly, Grade
from workbench.context.place import Place
from workbench.engine.contracts import PLACEHOLDER, CascadeNotFound, HookAction, HookEvent, HookResult, Ports, ToolSpec
from workbench.engine.definition import Definition, Options
from workbench.engine.edits import Edit, SetState, name_of, to_json
from workbench.engine.engine_tools import bank_spec, cascade_spec, engine_spec
from workbench.engine.forecasting import Forecaster, Lines, line_of
from workbench.engine.gate import EDITS_AT, Decision, EditFault, RunStopped, Stop, StopKind, checked, open_gate
from workbench.engine.journal.journal_writer import JournalWriter
from workbench.engine.lifecycle import where
from workbench.engine.world import World
from workbench.language.problem import Path, TextSpan, path_text

AFTER_THE_RUN = frozenset({"cascade_complete", "cascade_error"})
"""No event follows these, so a hook can neither pause the run nor add a message."""


class Injection(Struct):
    """A message of a hook on its way to the next call."""

    text: str
    note: str
    branch: str
    taken: set[str] = field(default_factory=set)
    """Branches below its own that have it."""


class Injections:
    """Messages that wait for the next call. One added before candidates start reaches each of them once, in whatever
    order they run.
    """

    def __init__(self) -> None:
        self._waiting: list[Injection] = []

    def add(self, injection: Injection) -> None:
        self._waiting.append(injection)

    def take(self, branch: str) -> list[Injection]:
        """Returns the messages that the next call of a branch is given, and removes them."""
        found, kept = [], []
        for one in self._waiting:
            below = branch.startswith(f"{one.branch}/") if one.branch else bool(branch)
            if one.branch == branch:
                if not one.taken:
                    found.append(one)
                continue
            if below and branch not in one.taken:
                one.taken.add(branch)
                found.append(one)
            kept.append(one)
        self._waiting = kept
        return found

    def settled(self, branch: str, winner: str) -> None:
        """The contest of candidates below a branch is over; later ones have candidates of the same names.

        Messages delivered to candidates are done. A message waiting for the winner waits for the run that continues in
        its place; one waiting for another candidate is dropped.
        """
        inside, kept = f"{branch}/" if branch else "", []
        for one in self._waiting:
            told = any(other != branch and other.startswith(inside) for other in one.taken)
            if one.branch == winner != branch:
                kept.append(replace(one, branch=branch, taken=set()))
            elif (one.branch == branch and told) or (one.branch != branch and one.branch.startswith(inside)):
                continue
            else:
                one.taken |= {branch} if told else set()
                kept.append(one)
        self._waiting = kept


class CandidateSpent(NamedTuple):
    """What a call or a candidate took."""

    cost: float | None
    """US dollars; None if any is unknown."""
    tokens: int
    exact: bool = True
    """Whether providers or their price lists state the cost."""
    grade: str = Grade.EXACT
    """Of the tokens."""


class Services:
    """Made once per run; every part of the run works with it. It knows no part."""

    def __init__(
        self,
        definition: Definition,
        options: Options,
        ports: Ports,
        journal: JournalWriter,
        world: World,
        *,
        depth: int,
        prompt_id: str,
    ) -> None:
        """``world``: the run's own, of which candidates have copies. ``depth``: 0 unless another run started this.
        ``prompt_id``: the run as its prompts name it."""
        self.definition = definition
        self.options = options
        self.ports = ports
        self.journal = journal
        self.world = world
        self.depth = depth
        self.prompt_id = prompt_id
        self.injections = Injections()
        self.last_assembly: dict[str, Assembly] = {}
        """By branch: what the next assembly is spliced against."""
        self.deadlines: dict[tuple[str, str, int], float] = {}
        """When the time of a node of a pipeline is over, by visit: of the monotonic clock, in seconds."""
        self.calls = 0
        self.tokens = 0
        self.cost = 0.0
        """US dollars, of all that is known, with what recorded answers cost when they were asked for: candidates are
        compared by it, and have to compare alike in a replay."""
        self.billed = 0.0
        """Of these, what this run was billed: what ``max_cost`` limits."""
        self.unpriced = 0
        """How often something was paid for and the cost is not known."""
        self._forecasters: Lines[Forecaster] = Lines(
            lambda model: Forecaster(model, ports.counter, ports.prices), lambda left: left.branched()
        )
        self._walks = {""}
        """The branches that walk the whole cascade; all others are of candidates of a phase."""
        self._spent: defaultdict[tuple[str, str, int], list[CandidateSpent]] = defaultdict(list)
        """Tokens and US dollars, by branch, phase and visit; for walks of the whole cascade by branch alone. A branch
        name alone is ambiguous: each phase with candidates has an ``s0``, at each of its visits.
        """
        self._beside: Counter[tuple[str, str, int]] = Counter()
        self.paused = 0.0
        """Seconds at the gate, its own and those of the runs inside it."""
        self.outer: Callable[[float], None] | None = None
        """Called with the seconds of each pause of this run; None for a run without a parent."""
        self._began = ports.clock.monotonic()
        self._warned: set[tuple[str, str, str]] = set()

    # -- stops and edits ---------------------------------------------------------------------------------------------

    async def gate(self, stop: Stop) -> Decision:
        """Wait at a stop until the run may continue. Raises EditFault for edits where none is allowed."""
        decision = await (open_gate(stop) if self.ports.gate is open_gate else self._attended(stop))
        if decision.edits and stop.kind not in EDITS_AT:
            raise EditFault(f"{stop.place.words}: nothing can be edited at {stop.kind}")
        return decision

    async def _attended(self, stop: Stop) -> Decision:
        """Wait at a gate that may pause the run, and journal for how long it did."""
        clock = self.ports.clock
        began = clock.monotonic()
        try:
            decision = await self.ports.gate(self._in_graph(stop))
        except asyncio.CancelledError:  # Only a gate that pauses the run waits, so the run was paused until now.
            self._was_paused(stop.place, str(stop.kind), clock.monotonic() - began)
            raise
        if decision.held:
            self._was_paused(stop.place, str(stop.kind), clock.monotonic() - began)
        return decision

    def _in_graph(self, stop: Stop) -> Stop:
        """The stop, with the node of the pipeline or decomposition that it is at."""
        graph = self.definition.graph
        node = graph.node(stop.place.phase) if graph.format != "cascade" else None
        if node is None:
            return stop
        place = stop.place
        if node.asks_model:
            begins = stop.kind is StopKind.BEFORE_CALL and (place.attempt, place.turn, place.call) == (1, 1, 1)
        else:
            begins = stop.kind is StopKind.BEFORE_PHASE
        return replace(stop, node=node.kind, begins=begins, is_task=graph.scheduling == "dataflow")

    def _was_paused(self, place: Place, stop: str, seconds: float) -> None:
        """Journal that the run was paused until now, here and in the runs that it is inside of."""
        self.paused += seconds
        if self.journal.repeats:
            self.journal.begin_again()  # Nothing has happened yet since it was resumed.
        else:
            self.journal.emit("paused", place, stop=stop, seconds=round(seconds, 6))
        if self.outer is not None:
            self.outer(seconds)

    def paused_inside(self, place: Place) -> Callable[[float], None]:
        """Returns the function that a run that is started at a place calls when it was paused, with the seconds."""
        return lambda seconds: self._was_paused(place, "child", seconds)

    def journal_edit(self, stop: Stop, edit: Edit, before: Any, after: Any, **more: Any) -> None:
        """Journal one ``edited`` event."""
        self.journal.emit(
            "edited",
            stop.place,
            stop=str(stop.kind),
            index=stop.index,
            what=name_of(edit),
            before=before,
            after=after,
            edit=to_json(edit),
            **more,
        )

    async def gate_of_state(self, stop: Stop, world: World) -> frozenset[str]:
        """Wait at a stop that allows edits of the state alone; the names of edited values. Raises EditFault for other
        edits.
        """
        names: set[str] = set()
        while (decision := await self.gate(stop)).edits:
            checked(decision.edits, stop)
            for edit in decision.edits:
                if isinstance(edit, SetState):
                    self.edit_state(world, stop, edit)
                    names.add(edit.key)
            stop = replace(stop, edited=True)
        return frozenset(names)

    def edit_state(self, world: World, stop: Stop, edit: SetState) -> None:
        """Put the value of an edit into the state of a world."""
        value = self.redacted_json(edit.value)
        self.journal_edit(stop, SetState(edit.key, value), world.state.get(edit.key), value)
        world.state[edit.key] = value
        world.cache.invalidate(f"state:{edit.key}")
        world.wrote(self.journal.emit("state_set", stop.place, key=edit.key, value=value, by="edit"))

    # -- hooks -------------------------------------------------------------------------------------------------------

    async def fire(self, type: str, place: Place, data: Mapping[str, Any], *, index: int = 0) -> None:
        """Ask the hooks of a type. Their effects are journaled, so that a replay needs no hooks. Raises RunStopped if
        one pauses the run and no person is attached.
        """
        hooks = self.ports.hooks
        if not hooks.wants(type):
            return
        event = HookEvent(type, self.options.session_id, self.journal.last_at, {**where(place), **data})
        for number, result in enumerate(await hooks.call(event, place, index), 1):
            if result.error or result.action is not HookAction.CONTINUE:
                await self._effect(type, place, index, number, result)

    async def _effect(self, type: str, place: Place, index: int, number: int, result: HookResult) -> None:
        text, _ = self.ports.redact(result.text)
        reason, _ = self.ports.redact(result.reason)
        error, _ = self.ports.redact(result.error)
        self.journal.emit(
            "hook",
            place,
            index=index,
            type=type,
            number=number,
            name=result.name,
            action=str(result.action),
            text=text,
            reason=reason,
            error=error,
        )
        self.journal.sync()
        at = f"hook {result.name} at {type}"
        if error:
            self.warn("hook", f"{at}: {error}", place=place)
        elif type in AFTER_THE_RUN:
            self.warn("hook", f"{at}: the run is over, so '{result.action}' does nothing", place=place)
        elif result.action is HookAction.INJECT:
            why = f"hook {result.name}" + (f": {reason}" if reason else "")
            self.injections.add(Injection(text, why, place.branch))
        elif result.action is HookAction.PAUSE and not result.recorded:
            paused = f"hook {result.name} pauses the run" + (f": {reason}" if reason else "")
            await self.gate(Stop(StopKind.HOOK, place, self.depth, index=index, state=self.world.state, paused=paused))

    # -- warnings, numbers, tools ------------------------------------------------------------------------------------

    def is_placeholder(self, text: str) -> bool:
        """Returns whether a text stands in for an answer that no reply scripts: a model that was asked may say the
        same, so only a run that asks none, or repeats one, has such."""
        return text.startswith(PLACEHOLDER) and self.ports.model.name in ("offline", "recorded")

    def warn(
        self, code: str, message: str, path: Path = (), place: Place = Place(), at: TextSpan | None = None
    ) -> None:
        """Journal a warning, once for each place in the file and text, and in each branch: which of several candidates
        is the first to find something is chance."""
        key = (place.branch, path_text(path), message)
        if key in self._warned:
            return
        self._warned.add(key)
        span = at or self.definition.span(path)
        self.journal.emit(
            "warning",
            place,
            code=code,
            message=message,
            file=self.definition.source.file,
            path=path_text(path),
            line=span.line,
            column=span.column,
        )

    def side_number(self, place: Place) -> int:
        """Number of the next call beside the turns of a visit, from 1."""
        self._beside[place.visit_key] += 1
        return self._beside[place.visit_key]

    def redacted_json(self, value: Any) -> Any:
        """A JSON value without secrets."""
        text, count = self.ports.redact(json.dumps(value, ensure_ascii=False))
        return json.loads(text) if count else value

    def tool_spec(self, name: str) -> ToolSpec | None:
        """A tool by name: the memory bank, of the engine, registered, or a cascade that can be one."""
        if name == self.definition.cascade.memory:
            return bank_spec(name)
        spec = engine_spec(name) or self.ports.tools.spec(name)
        if spec is not None:
            return spec
        try:
            definition = self.ports.library.by_name(name)
        except CascadeNotFound:
            return None
        return None if definition is None else cascade_spec(definition)

    # -- costs and limits --------------------------------------------------------------------------------------------

    def begin_walk(self, branch: str) -> None:
        """A walk of the whole cascade begins on a branch."""
        self._walks.add(branch)

    def forecaster(self, place: Place, model: str) -> Forecaster:
        """Predicts the calls of the line that a place is on."""
        candidate = bool(place.visit) and place.branch not in self._walks
        return self._forecasters.of(line_of(place, candidate=candidate), model)

    def spend(
        self,
        tokens: int,
        cost: float | None,
        place: Place = Place(),
        *,
        billed: float | None = None,
        recorded: bool = False,
        exact: bool = True,
        grade: str = Grade.EXACT,
    ) -> None:
        """Count tokens and ``cost`` (US dollars, None if unknown) for the branch and for those that it lies inside.
        ``billed``: the part of it that this run was billed, all of it if None. ``recorded``: it was billed nothing.
        ``exact``: a provider or its price list states the cost; ``grade``: that of the tokens.
        """
        self.tokens += tokens
        self.cost += cost or 0.0
        self.billed += 0.0 if recorded else (cost if billed is None else billed) or 0.0
        self.unpriced += cost is None
        branch = place.branch
        while branch:
            for key in ((branch, place.phase, place.visit), (branch, "", 0)):
                self._spent[key].append(CandidateSpent(cost, tokens, exact, grade))
            branch = branch.rpartition("/")[0]

    def candidate_spent(self, place: Place) -> CandidateSpent:
        """What the candidate at a place took. A place outside any visit is that of a walk of the whole cascade."""
        spent = self._spent.get(place.visit_key if place.visit else (place.branch, "", 0), [])
        known = [one.cost for one in spent if one.cost is not None]
        return CandidateSpent(
            # fsum: branches spend in the order of chance, and the plain sum of floats depends on it.
            math.fsum(known) if len(known) == len(spent) and spent else None,
            sum(one.tokens for one in spent),
            all(one.exact for one in spent),
            Grade.of_sum(one.grade for one in spent),
        )

    def check_limits(self) -> None:
        """Raises RunStopped when a limit of the settings is reached; the run can be resumed."""
        options = self.options
        seconds = self.ports.clock.monotonic() - self._began - self.paused
        limits = (
            ("calls", self.calls, options.max_calls),
            ("tokens", self.tokens, options.max_tokens),
            ("US dollars", self.billed, options.max_cost),
            ("seconds", seconds, options.max_seconds),
        )
        for name, used, limit in limits:
            if limit is not None and used >= limit:
                raise RunStopped(f"the limit of {limit:,} {name} for a run is reached")
