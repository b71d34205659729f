"""Time travel: a stored run forked at one of its stops, or run again with the answers whose requests are unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.collector import no_collection
from workbench.dataclass import dataclass
from workbench.engine.definition import Definition, Options
from workbench.engine.edits import Edit
from workbench.engine.event import MALFORMED, Event
from workbench.engine.fork import ForkGate, ForkPoint
from workbench.engine.gate import Decision, Gate, Stop, StopKind
from workbench.engine.ports import Sink
from workbench.engine.recording import Recording
from workbench.engine.replay import Replay
from workbench.engine.run import Outcome, Parent, Run
from workbench.engine.state import RunState
from workbench.store.faults import StoreError
from workbench.store.journal import MemorySink
from workbench.workspace.live import (
    Attached,
    Start,
    StoredImages,
    children_in,
    executed,
    ports_of,
    saving_of,
    start_of,
    watched,
)
from workbench.workspace.project import Project, new_session_id
from workbench.workspace.system import SystemIds

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.workspace.choice import ModelChoice


@dataclass(frozen=True)
class Past:
    """A stored run to start from."""

    run_id: str
    recording: Recording

    @property
    def session_id(self) -> str:
        return self.recording.state.session_id

    @property
    def definition_sha256(self) -> str:
        return self.recording.state.cascade_sha256

    def parent_of(self, kind: str, at: str) -> Parent:
        """What a run that starts from this one says of where it comes from."""
        name = self.recording.state.prompt_id
        return Parent(self.run_id, self.session_id, kind, cascade_sha256=self.definition_sha256, at=at, prompt_id=name)


def past_of(project: Project, run_id: str) -> Past:
    """Read a stored run. Raises UnknownRun, and StoreError that names the place where its journal is damaged."""
    store = project.store
    tail = store.tail(run_id)
    with no_collection():
        events = list(tail.poll())
        if not events or events[0].kind != "run_started":
            raise StoreError(f"run {run_id} has no beginning: there is nothing to start from")
        name = events[0].data.get("session_id") or run_id
        try:
            recording = Recording(events, StoredImages(store, run_id))
        except MALFORMED as fault:
            raise StoreError(f"{name} cannot be started from: {RunState.of(events).nonsense or fault}") from fault
    if not tail.health.whole:
        raise StoreError(f"{name} cannot be started from: {tail.health.notices[0]}")
    return Past(run_id, recording)


def restart(
    project: Project,
    past: Past,
    choose: Callable[[Definition, Options], ModelChoice],
    *,
    session: str = "",
    definition: Definition | None = None,
) -> Start:
    """How a new run starts from a stored one: its input and options, and its text unless another is given."""
    start = start_of(project, past.run_id, choose)
    options = replace(start.options, session_id=session or new_session_id(past.recording.state.cascade_id))
    chosen = definition or start.definition
    return replace(start, definition=chosen, options=options)


async def fork(
    project: Project,
    past: Past,
    start: Start,
    attached: Attached,
    *,
    point: ForkPoint | None,
    edits: Sequence[Edit] = (),
    pins: frozenset[Place] = frozenset(),
    run_id: str = "",
) -> tuple[Outcome, bool]:
    """Replay to ``point`` without a call, make the edits, go on live: a new run that names its parent.

    Without a point everything is live but the pinned calls. Returns how it ended, and whether it is stored: a run
    that ends before its point is reached and edited (it diverged, or an edit cannot be made) leaves nothing behind.
    """
    return await _travel(project, past, start, attached, "fork", run_id, pins, point, tuple(edits))


async def rerun(
    project: Project,
    past: Past,
    start: Start,
    attached: Attached,
    *,
    pins: frozenset[Place] = frozenset(),
    run_id: str = "",
) -> Outcome:
    """Run a cascade, edited or not, with the recorded answer of every call whose place and request are unchanged; the
    others and their tools are live. The gate sees which: ``Stop.answered_by``."""
    outcome, _ = await _travel(project, past, start, attached, "rerun", run_id, pins, None, ())
    return outcome


async def _travel(
    project: Project,
    past: Past,
    start: Start,
    attached: Attached,
    kind: str,
    run_id: str,
    pins: frozenset[Place],
    point: ForkPoint | None,
    edits: tuple[Edit, ...],
) -> tuple[Outcome, bool]:
    with LateSink(project, attached, run_id or SystemIds().run_id()) as sink, ExitStack() as taking_over:
        taking_over.enter_context(no_collection())

        def opened() -> None:
            taking_over.close()
            sink.open()

        live = ports_of(project, start, attached, sink)
        replay = Replay(past.recording, live, children_in(project.store), pins=pins, forks=kind == "fork", new_run=True)
        gate = attached.gate
        if point is not None:
            gate = ForkGate(replay, point, edits, attached.gate, opened)
        elif kind == "fork":
            opened()
            replay.cut_all()
        else:
            gate = _opening(attached.gate, sink, opened)
        run = Run(
            start.definition,
            start.input,
            start.options,
            replay.ports(replace(live, gate=gate)),
            run_id=sink.run_id,
            observe=sink.observe,
            observe_child=attached.observe_child,
            parent=past.parent_of(kind, str(point or "")),
        )
        outcome = await executed(run, live)
        if kind == "rerun" and not sink.is_open:
            opened()
        return outcome, sink.is_open


def _opening(gate: Gate, sink: LateSink, opened: Callable[[], None]) -> Gate:
    """A gate that opens the journal before anything happens that the recording does not hold."""

    async def opening(stop: Stop) -> Decision:
        is_new = stop.kind is StopKind.BEFORE_CALL and stop.answered_by != "recorded"
        own_tool = stop.kind is StopKind.BEFORE_TOOL and not stop.place.call
        if not sink.is_open and (is_new or own_tool or stop.kind is StopKind.RUN_END):
            opened()
        return await gate(stop)

    return opening


class LateSink:
    """Keeps what is written in memory until the run is worth a journal: a fork that fails leaves nothing behind.

    Nothing is lost by waiting: what is written before can be replayed from the run that it is taken from.
    """

    def __init__(self, project: Project, attached: Attached, run_id: str) -> None:
        self.run_id = run_id
        self._project = project
        self._attached = attached
        self._stack = ExitStack()
        self._memory = MemorySink()
        self._sink: Sink | None = None
        self._watch: Callable[[Event], None] | None = None
        """Told of each event once the journal is there."""

    def __enter__(self) -> LateSink:
        return self

    def __exit__(self, *fault: Any) -> None:
        self._stack.__exit__(*fault)

    @property
    def is_open(self) -> bool:
        return self._sink is not None

    def open(self) -> None:
        """Make the journal, with everything so far. Raises StoreError."""
        journal = self._stack.enter_context(self._project.store.create_anyway(self.run_id))
        saving = self._stack.enter_context(saving_of(self._project, journal, self._attached))
        for digest, data in self._memory.blobs.items():
            journal.blob(digest, data)
        for event in self._memory.events:
            journal.append(event)
        journal.sync()
        self._sink = journal
        self._watch = watched(self._project, Attached(), saving)
        for event in self._memory.events:
            self._watch(event)

    def observe(self, event: Event) -> None:
        """Tell of an event that was written."""
        if self._watch is not None:
            self._watch(event)
        self._attached.observe(event)

    def append(self, event: Event) -> None:
        (self._sink or self._memory).append(event)

    def blob(self, digest: str, data: bytes) -> None:
        (self._sink or self._memory).blob(digest, data)

    def sync(self) -> None:
        (self._sink or self._memory).sync()
