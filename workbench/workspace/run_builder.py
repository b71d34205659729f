"""The one place where a run of a workspace is built: from a definition, the ports around it, and a policy for what it
takes from a stored run. The app, the commands and the Python interface start, resume, fork and rerun through it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.contracts import Audibles, Human, Model, NoAudibles, Notice, Ports
from workbench.engine.definition import Definition, Options, Outcome, Parent
from workbench.engine.edits import Edit
from workbench.engine.gate import Decision, Gate, Stop, StopKind, open_gate
from workbench.engine.journal.event import Event
from workbench.engine.journal.journal_writer import Sink
from workbench.engine.journal.memory_sink import MemorySink
from workbench.engine.past.fork import ForkGate, ForkPoint
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import FORKED, LIVE, RESUMED, REUSED, Policy, Replay
from workbench.engine.run.run import Run
from workbench.models.encodings import encodings
from workbench.store.faults import StoreError, UnknownRun
from workbench.store.journal.journal import Journal
from workbench.store.restore import rescued, restore
from workbench.store.store import unheard
from workbench.store.summary import CHECKPOINT
from workbench.tools.hooks import RegisteredHooks
from workbench.workspace.cascade_library import CascadeLibrary
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.live_spans import live_spans
from workbench.workspace.model_ports import embedder_for, model_for, prices_of
from workbench.workspace.people import NoHuman
from workbench.workspace.project import Project, new_session_id
from workbench.workspace.recorded_runs import StoredImages, StoredRun, children_in, newest_children_in
from workbench.workspace.retrieval import WorkspaceRetrieval
from workbench.workspace.run_files import Diagrams, Frontiers, Pictures
from workbench.workspace.saving import JournalWatch
from workbench.workspace.system import SystemClock, SystemIds, SystemRandom

if TYPE_CHECKING:
    from workbench.engine.contracts import Embedder, Render
    from workbench.engine.journal.redact import Redactor
    from workbench.models.prices import PriceTable
    from workbench.store.summary import RunSummary
    from workbench.tools.hook_registry import HookRegistration
    from workbench.tools.toolbox import Toolbox
    from workbench.workspace.model_choice import ModelChoice


class CommonPorts(Struct, frozen=True):
    """Ports that the runs of one cascade file share: files, trust and variables of the workspace, as they were when the
    first of them began. To look at all of it again takes 4 ms of CPU for each run."""

    toolbox: Callable[[], Toolbox]
    env: Mapping[str, str]
    prices: PriceTable
    embedder: Embedder
    render: Render
    redact: Redactor


class RunAttachments(Struct, frozen=True):
    """Observers of a run, and the gate that may pause it."""

    gate: Gate = open_gate
    human: Human = field(default_factory=NoHuman)
    observe: Callable[[Event], None] = lambda event: None
    """Sees each event after it is in the journal."""
    notify: Callable[[Notice], None] = lambda notice: None
    hooks: tuple[HookRegistration, ...] = ()
    """Besides those of the workspace."""
    audibles: Audibles = field(default_factory=NoAudibles)
    """Lets a person speak while a phase runs."""
    remarks: Callable[[Sequence[str]], Sequence[tuple[str, str]]] = lambda phases: ()
    """Checks prepared answers against the existing phases."""
    observe_child: Callable[[Event], None] = lambda event: None
    """Sees the events of the runs that it starts."""
    model: Model | None = None
    """Answers the calls in the place of the one that the choice means: several runs of one event loop share it, for
    the connections of a loop are closed together. It is opened and closed by whoever made it. The runs then also share
    their writes to the disk (``SharedSink``)."""
    common: CommonPorts | None = None
    """The ports that the run shares with others; made anew without it."""
    summarized: Callable[[RunSummary], None] = unheard
    """Gets the run in one line once its journal is closed."""


class Start(Struct, frozen=True):
    """The definition, input and options of a run."""

    definition: Definition
    file: Path | None
    input: Mapping[str, Any]
    choice: ModelChoice
    options: Options
    sandbox: str = ""
    """A level that a flag asked for; empty for the settings'."""


# -- what to run -------------------------------------------------------------------------------------------------------


def new_options(project: Project, cascade_id: str, choice: ModelChoice, session: str = "") -> Options:
    """The options of a new run, from the settings."""
    settings = project.settings
    return Options(
        session or new_session_id(cascade_id),
        choice.default_model,
        keep_recent_images=settings.keep_recent_images,
        tries=settings.tries,
        embedding_model=settings.embedding_model,
        rewrite_model="" if choice.offline else settings.rewrite_model,
        card_model="" if choice.offline else settings.card_model,
        backoff=settings.backoff,
        max_visits=settings.max_visits,
        max_depth=settings.max_depth,
        max_calls=settings.max_calls,
        max_tokens=settings.max_tokens,
        max_cost=settings.max_cost,
        max_seconds=settings.max_seconds,
    )


def started_here(project: Project, run_id: str) -> Mapping[str, Any]:
    """Returns what a stored run was started with, as its first event holds it. Raises UnknownRun, and CannotOpen for a
    run that was imported: no engine made it, so none can make it again."""
    data = next(iter(project.store.events(run_id))).data
    if source := data.get("ports", {}).get("imported"):
        raise CannotOpen(f"{data['session_id']} was imported ({source}): it can be shown and compared, not run again")
    return data


def start_of(project: Project, run_id: str, choose: Callable[[Definition, Options], ModelChoice]) -> Start:
    """Returns how a stored run was started: its pinned text, input and options. Raises DefinitionError, UnknownRun, and
    CannotOpen for a run that was imported."""
    data = started_here(project, run_id)
    definition = Definition.of(data["cascade_text"], data["cascade_file"], data.get("includes"))
    options = Options.from_json(data["options"])
    file = project.root / data["cascade_file"] if data["cascade_file"] else None
    return Start(definition, file, data["input"], choose(definition, options), options)


def from_checkpoint(
    project: Project, run_id: str, choose: Callable[[Definition, Options], ModelChoice], *, degrade: bool = False
) -> tuple[Start, Parent] | None:
    """Returns how a new run goes on where an imported checkpoint of a pipeline stands, and that checkpoint as its
    parent: at the phase that it was in, or behind the last that had ended, with the context that it holds. None for
    other runs.

    ``degrade``: a run of this engine is taken for such a checkpoint, without its conversations."""
    first = next(iter(project.store.events(run_id)), None)
    if first is None or (first.data.get("ports", {}).get("imported") != CHECKPOINT and not degrade):
        return None
    state = project.store.state(run_id)
    last = state.visits[-1] if state.visits else None
    if last is None or last.branch:
        return None
    definition = Definition.of(state.cascade_text, state.cascade_file, first.data.get("includes"))
    node = definition.graph.node(last.phase)
    if definition.graph.format != "dot" or node is None or node.kind == "exit":
        return None
    options = Options.from_json(state.options)
    choice = choose(definition, options)
    said = {name: last.outcome.get(name) for name in ("outcome", "preferred_label")}
    context = {**state.state, **{name: value for name, value in said.items() if value}}
    context = {key: value for key, value in context.items() if not key.startswith("graph.")}
    session = new_session_id(state.cascade_id)
    # A failed phase runs again: no person has chosen yet what comes after it.
    options = replace(
        new_options(project, state.cascade_id, choice, session),
        start=last.phase,
        done=last.status == "success",
        context=context,
    )
    file = project.root / state.cascade_file if state.cascade_file else None
    parent = Parent(run_id, state.session_id, CHECKPOINT, cascade_sha256=state.cascade_sha256)
    return Start(definition, file, state.input, choice, options), parent


def restart(
    project: Project,
    past: StoredRun,
    choose: Callable[[Definition, Options], ModelChoice],
    *,
    session: str = "",
    definition: Definition | None = None,
) -> Start:
    """Returns how a new run starts from a stored one: its input and options, and its text unless another is given."""
    start = start_of(project, past.run_id, choose)
    options = replace(start.options, session_id=session or new_session_id(past.recording.state.cascade_id))
    return replace(start, definition=definition or start.definition, options=options)


# -- the ways to run it ------------------------------------------------------------------------------------------------


async def run_new(
    project: Project, start: Start, attached: RunAttachments, *, run_id: str = "", parent: Parent | None = None
) -> Outcome:
    """Run a cascade from the beginning, into a journal of its own. ``parent``: the run that it goes on for."""
    with _journal_of(project, attached, run_id or SystemIds().run_id()) as journal:
        journal.open()
        return await _execute(project, start, attached, journal, parent=parent)


async def resume(project: Project, run_id: str, start: Start, attached: RunAttachments) -> Outcome:
    """Go on with a stopped or interrupted run, in its own journal. Raises StoreError where it cannot be appended to."""
    store = project.store
    _restored(project, run_id)
    recording = Recording(store.events(run_id), StoredImages(store, run_id))
    with _journal_of(project, attached, run_id) as journal:
        journal.open(store.append_to)
        return await _execute(project, start, attached, journal, _FromStoredRun(recording, RESUMED))


async def fork(
    project: Project,
    past: StoredRun,
    start: Start,
    attached: RunAttachments,
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
    parent = past.parent_of("fork", str(point or ""))
    with RunJournal(project, attached, run_id or SystemIds().run_id()) as journal:
        if point is None:
            journal.open()
            taken = _FromStoredRun(past.recording, LIVE, pins, parent)
        else:
            gate = partial(ForkGate, point=point, edits=edits, gate=attached.gate, opened=journal.open)
            taken = _FromStoredRun(past.recording, FORKED, pins, parent, gate)
        outcome = await _execute(project, start, attached, journal, taken)
        return outcome, journal.is_open


async def rerun(
    project: Project,
    past: StoredRun,
    start: Start,
    attached: RunAttachments,
    *,
    pins: frozenset[Place] = frozenset(),
    run_id: str = "",
) -> Outcome:
    """Run a cascade, edited or not, with the recorded answer of every call whose place and request are unchanged; the
    others and their tools are live. The gate sees which: ``Stop.answered_by``."""
    with RunJournal(project, attached, run_id or SystemIds().run_id()) as journal:
        news = journal.before_news(attached.gate)
        taken = _FromStoredRun(past.recording, REUSED, pins, past.parent_of("rerun", ""), lambda _: news)
        outcome = await _execute(project, start, attached, journal, taken)
        if not journal.is_open:
            journal.open()
        return outcome


class _FromStoredRun(Struct, frozen=True):
    """The parts that a run takes from a stored one."""

    recording: Recording
    policy: Policy
    pins: frozenset[Place] = frozenset()
    parent: Parent | None = None
    gate: Callable[[Replay], Gate] | None = None
    """Stands before the gate that is attached."""


async def _execute(
    project: Project,
    start: Start,
    attached: RunAttachments,
    journal: RunJournal,
    taken: _FromStoredRun | None = None,
    *,
    parent: Parent | None = None,
) -> Outcome:
    live = live_ports(project, start, attached, journal)
    ports = live
    if taken is not None:
        children = (newest_children_in if taken.policy is RESUMED else children_in)(project.store)
        replay = Replay(taken.recording, taken.policy, live, children, pins=taken.pins)
        gate = live.gate if taken.gate is None else taken.gate(replay)
        ports = replay.ports(replace(live, gate=gate))
    run = Run(
        start.definition,
        start.input,
        start.options,
        ports,
        run_id=journal.run_id,
        observe=journal.observe,
        observe_child=journal.observe_child,
        parent=taken.parent if taken is not None else parent,
        journaled=taken.recording.events if taken is not None and taken.policy is RESUMED else (),
    )
    return await _executed(run, live, None if attached.model is not None else live.model)


async def _executed(run: Run, live: Ports, model: Model | None) -> Outcome:
    """Run with what the run's own model needs before and after: it loads while the first context is assembled, and
    gives its connections back on the loop that opened them. What tools have left running ends with the run."""
    warming = asyncio.ensure_future(model.warm()) if isinstance(model, Connected) else None
    try:
        return await run.execute()
    finally:
        await _to_its_end(_cleared(live, model, warming))


async def _cleared(live: Ports, model: Model | None, warming: asyncio.Future[None] | None) -> None:
    """End and give back what the run has used."""
    if isinstance(live.tools, Closing):
        await asyncio.gather(live.tools.aclose(), return_exceptions=True)
    if warming is not None and isinstance(model, Connected):
        await asyncio.gather(warming, return_exceptions=True)
        await model.aclose()


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Do what a run does at its end, also when it is stopped meanwhile: it has ended, so there is nothing to stop."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) is not None:
                current.uncancel()


@runtime_checkable
class Closing(Protocol):
    """Something that may hold processes."""

    async def aclose(self) -> None:
        """End them."""
        ...


@runtime_checkable
class Connected(Protocol):
    """A model that holds connections."""

    async def warm(self) -> None:
        """Load what the first call needs."""
        ...

    async def aclose(self) -> None:
        """Give connections back."""
        ...


# -- ports -------------------------------------------------------------------------------------------------------------


def common_ports(project: Project, file: Path | None, choice: ModelChoice, sandbox: str = "") -> CommonPorts:
    """Returns the ports that runs of a cascade file share. ``sandbox``: a level that a flag asked for."""
    folder = file.parent if file is not None else project.root
    around = project.environment
    code = around.code(folder)
    env = project.variables(trusted=around.trusted(folder, code=code))
    prices = prices_of(project, choice, env)
    return CommonPorts(
        around.toolboxes(folder, sandbox=sandbox, code=code),
        env,
        prices,
        embedder_for(project, choice, env, prices),
        around.renderer(folder, code=code),
        project.redactor(base_url=choice.base_url),
    )


def live_ports(project: Project, start: Start, attached: RunAttachments, sink: Sink) -> Ports:
    """The live ports of a run."""
    common = attached.common or common_ports(project, start.file, start.choice, start.sandbox)
    toolbox, embedder, redact = common.toolbox(), common.embedder, common.redact
    return Ports(
        model=attached.model or model_for(project, start.choice, start.file, common.env, common.prices),
        tools=toolbox,
        validators=toolbox.validators,
        human=attached.human,
        clock=SystemClock(),
        ids=SystemIds(),
        random=SystemRandom(),
        render=common.render,
        counter=encodings(),
        prices=common.prices,
        sink=sink,
        library=CascadeLibrary(project, start.file.parent if start.file is not None else project.root),
        retrieval=WorkspaceRetrieval(toolbox.workspace, project.store.root, embedder, lambda text: redact(text)[0]),
        embedder=embedder,
        servers=toolbox.servers,
        gate=attached.gate,
        redact=redact,
        notify=attached.notify,
        audibles=attached.audibles,
        remarks=lambda phases: [*attached.remarks(phases), *(("hooks", text) for text in toolbox.refused_hooks)],
        hooks=RegisteredHooks((*toolbox.hooks, *attached.hooks)),
    )


# -- its journal, and who watches it -----------------------------------------------------------------------------------


class RunJournal:
    """The journal of one run, and all who see its events. A context manager, and the run's ``Sink``.

    Until it is opened it keeps what is written in memory: a fork that fails leaves nothing behind. Nothing is lost by
    waiting, for what is written before can be replayed from the run that it is taken from.
    """

    def __init__(self, project: Project, attached: RunAttachments, run_id: str) -> None:
        self.run_id = run_id
        self._project = project
        self._attached = attached
        self._stack = ExitStack()
        self._memory = MemorySink()
        self._journal: Journal | None = None
        self._saving: JournalWatch | None = None
        note = project.notes.append
        self._child_pictures = Pictures(project.store, note)
        self._makers: list[Callable[[Event], None]] = [Pictures(project.store, note), Frontiers(project.graphs, note)]
        """The observers that make something of the events: names of images, graphs, spans."""
        if project.settings.graphs or project.settings.graph_dir:
            self._makers.append(Diagrams(project.store, project.graphs, note))
        self._spans = live_spans(project.env, project.store, attached.notify)
        if self._spans is not None:
            self._makers.append(self._spans)

    def __enter__(self) -> RunJournal:
        return self

    def __exit__(self, *fault: Any) -> None:
        self._stack.__exit__(*fault)

    @property
    def is_open(self) -> bool:
        return self._journal is not None

    def open(self, make: Callable[[str, Callable[[RunSummary], None]], Journal] | None = None) -> None:
        """Make the journal, with everything so far. ``make`` opens one that exists. Raises StoreError."""
        project = self._project
        opened = (make or project.store.create_anyway)(self.run_id, self._attached.summarized)
        journal = self._stack.enter_context(opened)
        self._saving = self._stack.enter_context(
            JournalWatch(journal, self._attached.notify, project.notes.append, project.unsaved)
        )
        self._journal = journal
        for digest, data in self._memory.blobs.items():
            journal.blob(digest, data)
        for event in self._memory.events:
            journal.append(event)
        if self._memory.events:
            journal.sync()
        for event in self._memory.events:
            self._made(event)
            self._saving(event)

    def before_news(self, gate: Gate) -> Gate:
        """A gate that opens the journal before anything happens that a recording does not hold, and when the run is
        paused: whoever looks at it then may start from it."""

        def paused() -> None:
            if not self.is_open:
                with suppress(StoreError):  # It is told before the first news.
                    self.open()

        async def opening(stop: Stop) -> Decision:
            is_new = stop.kind is StopKind.BEFORE_CALL and stop.answered_by != "recorded"
            own_tool = stop.kind is StopKind.BEFORE_TOOL and not stop.place.call
            if not self.is_open and (is_new or own_tool or stop.kind is StopKind.RUN_END):
                self.open()
            waits = asyncio.get_running_loop().call_soon(paused)  # A gate that lets the run pass does not wait.
            try:
                return await gate(stop)
            finally:
                waits.cancel()

        return opening

    def observe(self, event: Event) -> None:
        """Tell of an event that was written: makers of files once the journal is there, whoever is attached, and what
        looks whether it was saved."""
        if self._saving is not None:
            self._made(event)
        self._attached.observe(event)
        if self._saving is not None:
            self._saving(event)

    def observe_child(self, event: Event) -> None:
        """Tell of an event of a nested run: what names images and sends spans, and whoever is attached."""
        self._child_pictures(event)
        if self._spans is not None:
            self._spans(event)
        self._attached.observe_child(event)

    def append(self, event: Event) -> None:
        (self._journal or self._memory).append(event)

    def blob(self, digest: str, data: bytes) -> None:
        (self._journal or self._memory).blob(digest, data)

    def sync(self) -> None:
        (self._journal or self._memory).sync()

    def _made(self, event: Event) -> None:
        for make in self._makers:
            make(event)


class _JournalAmongOthers(RunJournal):
    """Of a run that has an event loop together with others."""

    async def synced(self) -> None:
        if self._journal is not None:
            await self._journal.committed()


def _journal_of(project: Project, attached: RunAttachments, run_id: str) -> RunJournal:
    return (RunJournal if attached.model is None else _JournalAmongOthers)(project, attached, run_id)


def _restored(project: Project, run_id: str) -> None:
    """Put back records of a run, and of the runs inside it, that did not fit into the store, before new ones take their
    place. Raises StoreError if that fails.
    """
    for one in rescued(project.store, project.unsaved) if project.unsaved.is_dir() else ():
        if _is_inside(project, one.run_id, run_id):
            project.notes.append(restore(project.store, one))


def _is_inside(project: Project, run_id: str, outer: str) -> bool:
    """Whether a run is the outer one, or one that this started, or one inside those."""
    while run_id and run_id != outer:
        try:
            run = project.store.summary(run_id)
        except UnknownRun:
            return False
        run_id = run.parent_run if run.depth else ""
    return bool(run_id)
