"""Cascades that a cascade starts: runs of their own, with their own journals, linked to it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from workbench.context.assembly import Grade
from workbench.context.place import Place
from workbench.engine.contracts import Audibles, CascadeNotFound, Divergence
from workbench.engine.conversation import Conversation
from workbench.engine.definition import Definition, Options, Outcome, Parent
from workbench.engine.faults import TRUST, PhaseFailed
from workbench.engine.gate import RunStopped
from workbench.engine.journal.event import Event
from workbench.engine.journal.figures import Figures
from workbench.engine.journal.own_secrets import input_without_secrets, without_secrets
from workbench.engine.journal.past_run import PastRun, RunTotals
from workbench.engine.services import Services
from workbench.engine.validators import Child
from workbench.language.problem import Path

T = TypeVar("T")
RESTART = "restart"
"""Kind of a run that continues in place of the one that starts it."""


class Startable(Protocol):
    """A run that is ready to execute."""

    @property
    def services(self) -> Services: ...

    async def execute(self) -> Outcome: ...


class Children:
    """The runs that one run starts."""

    def __init__(
        self,
        services: Services,
        start: Callable[..., Startable],
        observe: Callable[[Event], None],
        chain: tuple[str, ...],
    ) -> None:
        """``start`` makes a run, with the parameters of ``Run``. ``observe`` sees the events of the children.
        ``chain``: the ids of the cascades that a child runs inside, this run's last."""
        self.services = services
        self.start = start
        self.observe = observe
        self.chain = chain
        self._numbers: Counter[str] = Counter()
        self._async: list[AsyncChild] = []

    def number(self, kind: str) -> int:
        """Number of the next child of a kind, from 0."""
        self._numbers[kind] += 1
        return self._numbers[kind] - 1

    def found(self, ref: str) -> Definition:
        """The cascade of a path as the file writes it. Raises PhaseFailed."""
        services = self.services
        try:
            return services.ports.library.by_path(ref, services.definition.source.file)
        except CascadeNotFound as fault:
            raise PhaseFailed(str(fault), TRUST if fault.needs_trust else "") from fault

    def paid(self, child: Child, place: Place = Place()) -> None:
        """Count what a child took, for the candidate at ``place``."""
        took = child.took
        self.services.spend(
            child.tokens,
            child.cost,
            place,
            billed=took.spent.billed,
            exact=took.spent.worth.exact,  # In a replay all of it is recorded.
            grade=Grade.of_sum((took.grade_in, took.recorded_grade_in)),
        )
        for _ in range(child.unpriced):
            self.services.spend(0, None, place)
        if child.replaced.answers:
            spent = child.replaced.spent
            self.services.spend(child.replaced.tokens, spent.total, place, billed=spent.billed)

    async def run(
        self,
        definition: Definition,
        input: Mapping[str, Any],
        kind: str,
        place: Place,
        *,
        options: Options | None = None,
    ) -> Child:
        """Run a cascade as a child and wait for it; ``options`` are those of this run if not given.

        Raises PhaseFailed beyond the depth limit; RunStopped and Divergence when the child was stopped or diverged. How
        it ended otherwise is for the caller to judge.
        """
        started = ChildRun(self, definition, input, kind, place, options=options)
        child = await started.execute()
        # What checks candidates is no part of what making one takes.
        self.paid(child, Place() if kind in ("validator", "ward") else place)
        started.finished(child)
        if child.outcome.status == "stopped":
            raise RunStopped(child.outcome.reason)
        if child.outcome.status == "diverged":
            raise Divergence(place, f"in {child.session_id}: {child.outcome.reason}")
        return child

    def start_async(self, definition: Definition, input: Mapping[str, Any], kind: str, place: Place) -> str:
        """Start a cascade beside the run. Returns its session id. Its end never changes this run's result."""
        child = AsyncChild(ChildRun(self, definition, input, kind, place))
        self._async.append(child)
        return child.session_id

    async def join_async(self, status: str) -> None:
        """Wait for the cascades started beside the run; if the run was stopped, stop them, too."""
        for child in self._async:
            if status == "stopped":
                child.task.cancel()
            await child.join()

    # -- what a phase lists ------------------------------------------------------------------------------------------

    async def run_sub_cascades(self, conversation: Conversation) -> None:
        """Run the phase's sub-cascades in list order and take over what they hand out. Raises PhaseFailed."""
        place = conversation.place()
        for index, sub in enumerate(conversation.phase.sub_cascades):
            path = (*conversation.path, "sub_cascades", index)
            definition = self.found(sub.ref)
            given = child_input(conversation, path, sub.input_map, sub.context_in)
            child = await self.run(definition, given, "sub", place)
            outcome = child.outcome
            if outcome.status != "success":
                raise PhaseFailed(f"sub-cascade '{sub.ref}' {outcome.words}", "sub_cascades")
            if sub.context_out:
                for key, value in outcome.state.items():
                    if key != "input":
                        conversation.set_state(key, value, place, by=child.session_id)
                own = {phase.name for phase in self.services.definition.cascade.phases}
                for phase, output in child.outputs.items():
                    if phase not in own:
                        conversation.world.outputs[phase] = output

    def start_async_cascades(self, conversation: Conversation, trigger: str) -> None:
        """Start the phase's asynchronous cascades of one trigger; the run joins them after its end."""
        for index, child in enumerate(conversation.phase.async_cascades):
            if child.trigger != trigger:
                continue
            path = (*conversation.path, "async_cascades", index)
            given = child_input(conversation, path, child.input_map, child.context_in)
            self.start_async(self.found(child.ref), given, "async", conversation.place())


async def in_time(work: Coroutine[Any, Any, T], seconds: float | None) -> tuple[T | None, bool]:
    """What ``work`` came to, and whether its time was over. Then it is cancelled, and None if it raised: a run that is
    cancelled comes to its end in order, which ``asyncio.wait_for`` would take for a result in time.
    """
    if seconds is None:
        return await work, False
    if seconds <= 0:
        work.close()
        return None, True
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError as cancelled:
        task.cancel(*cancelled.args)
        await asyncio.gather(task, return_exceptions=True)
        raise
    if task.done():
        return task.result(), False
    task.cancel()
    (ended,) = await asyncio.gather(task, return_exceptions=True)
    return (None if isinstance(ended, BaseException) else ended), True


def options_of_child(options: Options) -> Options:
    """The options of a run that this one starts: its own, but for where it begins."""
    return replace(options, start="", done=False, context={}, restarts=0)


class ChildRun:
    """A child that is about to run. ``kind`` is sub, async, spawn, tool, row, validator or ward; the branch of the
    candidate that starts it stands before the kind in its session id (``s0_sub_0``)."""

    def __init__(
        self,
        parent: Children,
        definition: Definition,
        input: Mapping[str, Any],
        kind: str,
        place: Place,
        *,
        options: Options | None = None,
        audibles: Audibles | None = None,
    ) -> None:
        """``audibles``: lets a person speak to its phases, if not those of this run. Journals ``child_started``. Raises
        PhaseFailed beyond the depth limit.
        """
        services = parent.services
        chain = (*parent.chain, definition.cascade.cascade_id)
        # A run that goes on in the place of another is no deeper than that one.
        self.depth = services.depth + (kind != RESTART)
        self.audibles = audibles
        self.running: Startable | None = None
        self.options = options or options_of_child(services.options)
        if self.depth > services.options.max_depth:
            raise PhaseFailed(f"cascades are nested deeper than {services.options.max_depth}: {' > '.join(chain)}")
        self.parent, self.definition, self.input, self.place = parent, definition, input, place
        # Candidates run at once: each counts its own, or the order in which they happen to start would tell in ids.
        name = "_".join(filter(None, (*place.branch.split("/"), kind)))
        key = f"{name}_{parent.number(name)}"
        self.session_id = f"{services.options.session_id}_{key}"
        past = services.ports.past_run(key)
        self.past = past if past is not None and self._goes_on(past) else None
        """The same run, as far as it came before the run that starts it was resumed."""
        self.run_id = services.ports.ids.run_id() if self.past is None else self.past.run_id
        self.about: dict[str, Any] = {"run_id": self.run_id, "session_id": self.session_id, "kind": kind, "key": key}
        more: dict[str, Any] = {"cascade_id": definition.cascade.cascade_id}
        if past is not None and (number := past.number + (self.past is None)):
            self.about["number"] = number
        if past is not None and self.past is None:
            more["replaces"] = past.replaced()
        told = services.journal.emit("child_started", place, **self.about, **more)
        self.replaced = Figures.from_json((told.data.get("replaces") or {}).get("took")) or Figures()
        """What the run took in whose place this one is started."""

    def _goes_on(self, past: PastRun) -> bool:
        redact = self.parent.services.ports.redact
        clean = without_secrets(self.definition, redact)
        return past.began_with(clean.sha256, dict(clean.includes), input_without_secrets(self.input, redact))

    async def execute(self) -> Child:
        """Run it to its end, whatever that is."""
        parent, services = self.parent, self.parent.services
        library, resumes = services.ports.library, self.past is not None
        with library.child_ports(services.ports, self.run_id, self.about["key"], resumes=resumes) as ports:
            if self.audibles is not None and services.ports.audibles is ports.audibles:
                # In a replay its recording says what it was told.
                ports = replace(ports, audibles=self.audibles)
            totals = RunTotals.of(self.past.events if self.past is not None else ())
            known = self.past.events[-1].seq if self.past is not None else 0

            def observe(event: Event) -> None:
                if event.seq > known:
                    totals.take(event)
                parent.observe(event)

            child = parent.start(
                self.definition,
                self.input,
                replace(self.options, session_id=self.session_id),
                ports,
                run_id=self.run_id,
                parent=Parent(
                    services.journal.run_id,
                    services.options.session_id,
                    self.about["kind"],
                    self.depth,
                    prompt_id=f"{services.prompt_id}_{self.about['key']}",
                ),
                chain=parent.chain,
                observe=observe,
                observe_child=parent.observe,
            )
            self.running = child
            child.services.outer = services.paused_inside(self.place)
            child.services.journal.outer = partial(services.journal.go_on, self.place.branch)
            outcome = await child.execute()
        of = child.services
        paid = (of.tokens, of.cost, of.unpriced)
        took = totals.figures.whole
        return Child(
            self.run_id, self.session_id, outcome, of.world.outputs, *paid, took, self.replaced, totals.unanswered.whole
        )

    def seen(self) -> dict[str, str]:
        """Its current position, as a manager sees it."""
        state = self.running.services.world.state if self.running is not None else {}
        return {"current_node": str(state.get("current_node", "")), "outcome": str(state.get("outcome", ""))}

    def stopped(self, why: str) -> None:
        """Journal in the parent that it was ended before its own end."""
        self.parent.services.journal.emit(
            "child_finished", self.place, **self.about, status="stopped", output="", state={}, outputs={}, reason=why
        )

    def finished(self, child: Child) -> None:
        """Journal its end in the parent."""
        outcome = child.outcome
        self.parent.services.journal.emit(
            "child_finished",
            self.place,
            **self.about,
            status=outcome.status,
            output=outcome.output,
            state=dict(outcome.state),
            outputs=dict(child.outputs),
            reason=outcome.reason,
            took=child.took.to_json(),
            **({"unanswered": child.unanswered.to_json()} if child.unanswered else {}),
        )


class AsyncChild:
    """A child that runs beside its parent. Its end is journaled when the parent joins it, in the order of starting."""

    def __init__(self, started: ChildRun) -> None:
        self._started = started
        self.session_id = started.session_id
        self.task = asyncio.ensure_future(self._paid())

    async def _paid(self) -> Child:
        child = await self._started.execute()
        # For the run alone: whether it ended before or after the candidate that started it is chance.
        self._started.parent.paid(child)
        return child

    async def join(self) -> None:
        """Wait for its end and journal it; a failure is a warning of the parent."""
        child = await self.task
        self._started.finished(child)
        if child.outcome.status != "success":
            text = f"async cascade {self.session_id} is {child.outcome.status}: {child.outcome.reason}"
            self._started.parent.services.warn("async", text)


def child_input(
    conversation: Conversation, path: Path, input_map: Mapping[str, Any], context_in: bool
) -> dict[str, Any]:
    """Returns the input of a child: the parent's input, overlaid by its state, overlaid by the map; or the map alone.

    A value of the map with ``{{`` is rendered; else it is the name of a state or input key; else a literal.
    """
    world = conversation.world
    given: dict[str, Any] = {**world.input, **world.state} if context_in else {}
    for name, value in input_map.items():
        if isinstance(value, str) and "{{" in value:
            given[name] = conversation.render(value, (*path, "input_map", name))
        elif isinstance(value, str) and value in world.state:
            given[name] = world.state[value]
        elif isinstance(value, str) and value in world.input:
            given[name] = world.input[value]
        else:
            given[name] = value
    return given
