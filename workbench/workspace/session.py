"""A session of the app: one opened cascade and at most one live run, in a thread and on an event loop of its own.

The app reads ``events`` and ``notices`` once per frame; every command may be given from any thread.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.changed import changed_call
from workbench.attach.recorder import FORMAT, PHASE
from workbench.child_process import fault_words
from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.debugger.condition import matches
from workbench.engine.debugger.stepper import Mode, Stepper
from workbench.engine.definition import Outcome
from workbench.engine.edits import Edit
from workbench.engine.gate import Stop, StopKind
from workbench.engine.journal.event import STOPPED_BY_USER, Event
from workbench.engine.journal.redact import without_password
from workbench.engine.past.fork import find_point
from workbench.garbage import not_searched
from workbench.workspace.breakpoints import keep_breakpoints, load_breakpoints
from workbench.workspace.input_file import CannotOpen, input_of_run
from workbench.workspace.model_choice import GoesOffline, choose_model, chosen_for, goes_offline
from workbench.workspace.paused_run import PausedRun
from workbench.workspace.people import AppAudibles, AppHuman
from workbench.workspace.program_output import GONE, ProgramOutput, attached_output
from workbench.workspace.project import Project
from workbench.workspace.recorded_runs import past_of
from workbench.workspace.run_builder import (
    RunAttachments,
    Start,
    fork,
    from_checkpoint,
    new_options,
    rerun,
    restart,
    resume,
    run_new,
    start_of,
)
from workbench.workspace.system import SystemIds

if TYPE_CHECKING:
    from workbench.analysis.changed import ChangedCall
    from workbench.engine.past.recording import Recording
    from workbench.language.load import Loaded
    from workbench.language.model.cascade import Audibles, Cascade
    from workbench.workspace.attached import AttachPlan
    from workbench.workspace.model_choice import ModelChoice
    from workbench.workspace.opened_cascade import OpenedCascade


class HeaderFacts(Struct, frozen=True):
    """The header's statement of how calls are answered and where runs are kept."""

    model: str
    """``offline as openai/gpt-4.1-mini``, or a model name."""
    why: str = ""
    """Why it is offline."""
    base_url: str = ""
    notes: tuple[str, ...] = ()


class Reload(Struct, frozen=True):
    """The result of reading the file after a save."""

    opened: OpenedCascade
    """The new definition; if it cannot run, its problems beside the last good one that stays in ``Session``."""
    valid: bool
    changed: frozenset[str] = frozenset()
    """Names of phases whose text changed."""
    gone: str = ""
    """Why the file could not be read."""


STOP_DEADLINE = 5.0
"""Seconds that a run gets to end by itself when the app closes."""
IMPORTED = "this run was imported: it can be looked at and compared, not run"

ANOTHER = "{who} is running this: you can view it here, and fork it, but not step, stop, edit or answer it."


class ViewedRun:
    """A stored run that is shown: its events, also those that another process still adds, and the phases of the file
    that have changed since."""

    def __init__(self, project: Project, opened: OpenedCascade, run_id: str) -> None:
        """Raises UnknownRun."""
        self.run_id = run_id
        self._store = project.store
        self._tail = self._store.tail(run_id)
        self.growing = self._store.writer(run_id) is not None
        """Whether another process writes it."""
        self._paused = PausedRun(project.folders, self._store.folder(run_id))
        self._pause: Notice | None = None
        with not_searched():
            self.events = list(self._tail.poll())
        """The events that it held when it was opened."""
        self.drifted = _drift(project, opened, self.events)
        """The phases of the file that are not what the run is pinned to."""

    def input_for(self, file: Path) -> dict[str, Any]:
        """The input with which its file is run again. Raises CannotOpen for an input file that cannot be read."""
        return input_of_run(self.events[0].data.get("input") or {} if self.events else {}, file)

    def more(self) -> list[Event]:
        """Events added since the last call."""
        if not self.growing:
            return []
        self.growing = self._store.writer(self.run_id) is not None
        return list(self._tail.poll())

    def pauses(self) -> Iterator[Notice]:
        """What became of the pause of the run since the last call: that it was paused, that it goes on."""
        writer = self._store.writer(self.run_id) if self.growing else None
        found = self._paused.notice(writer.pid) if writer is not None and writer.pid is not None else None
        before, self._pause = self._pause, found
        if before is not None and before != found:
            yield Notice("released", before.place)
        if found is not None and before != found:
            yield found


def _drift(project: Project, opened: OpenedCascade, events: list[Event]) -> frozenset[str]:
    text = str(events[0].data.get("cascade_text", "")) if events else ""
    if not text or opened.cascade is None or project.is_pinned(opened.text, text):
        return frozenset()
    pinned = project.load(opened.file, text).cascade
    return changed_phases(pinned, opened.cascade) if pinned is not None else frozenset()


def changed_phases(before: Cascade, after: Cascade) -> frozenset[str]:
    """Names of phases of a cascade that differ from another text of it."""
    old = {phase.name: phase for phase in before.phases}
    return frozenset(phase.name for phase in after.phases if old.get(phase.name) != phase)


class Session:
    """A cascade being worked on."""

    def __init__(
        self,
        project: Project,
        file: Path,
        *,
        model: str = "",
        session: str = "",
        sandbox: str = "",
        text: str | None = None,
        gone: str = "",
        runs: bool = True,
    ) -> None:
        """Reads and checks the file. Raises CannotOpen.

        With ``text`` the file is not there, as ``gone`` says, and the text stands for it; with ``runs`` false it can
        be looked at only.
        """
        self.project = project
        self.file = Path(os.path.realpath(file))
        self.opened: OpenedCascade = (
            project.open(file) if text is None else project.check(file, project.load(file, text))
        )
        self.gone = gone
        """Why there is no file."""
        self.runs = runs
        self.events: deque[Event] = deque()
        self.notices: deque[Notice] = deque()
        self.human = AppHuman()
        self.audibles = AppAudibles()
        self.failure = ""
        """Why the engine's thread ended, if that was not the end of a run."""
        self.run_id = ""
        self._told_pause: PausedRun | None = None
        self.changed: ChangedCall | None = None
        """Both requests of the call that a re-run is held at because its request is not the recorded one."""
        self.viewed: ViewedRun | None = None
        """The stored run that was asked for last."""
        self.program: ProgramOutput | None = None
        """The output of the watched program; None without one, or if it has a terminal of its own."""
        self._model = model
        self._session = session
        self._sandbox = sandbox
        self._past: Recording | None = None
        """The recording that a run with reused answers is compared with."""
        self._good: OpenedCascade | None = self.opened if self.opened.definition and runs else None
        self._declared_before: set[str] = set()
        """The inputs that earlier texts of the file declared."""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Outcome] | None = None
        self._stopped: asyncio.Task[Outcome] | None = None
        """The run that was told to end."""
        self.stepper = self._new_stepper()
        self.stepper.breakpoints = load_breakpoints(project.folders, self.file)
        self._kept = list(self.stepper.breakpoints)

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """A live run exists and has not ended."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        """The run was stopped, and has not ended yet."""
        return self.running and self._task is not None and self._task is self._stopped

    @property
    def runnable(self) -> OpenedCascade | None:
        """The last definition that can run."""
        return self._good

    def outdated(self, given: Iterable[str]) -> list[str]:
        """Which of these inputs the file declared before, and no longer does. A file that declares none takes any."""
        declared = self._good.cascade.inputs_schema if self._good is not None and self._good.cascade is not None else {}
        return [name for name in given if declared and name in self._declared_before and name not in declared]

    @property
    def header(self) -> HeaderFacts:
        choice = self._choice()
        return HeaderFacts(choice.label, choice.why, without_password(choice.base_url), tuple(self.project.notes))

    # -- driving -----------------------------------------------------------------------------------------------------

    def start(self, input: Mapping[str, Any], mode: Mode, *, session: str = "") -> None:
        """Start a run; returns at once. Raises RuntimeError while one is running or when nothing can run."""
        opened = self._good
        if opened is None or opened.definition is None:
            raise RuntimeError("the cascade has errors; nothing can run")
        choice = self._choice()
        options = new_options(self.project, opened.definition.cascade.cascade_id, choice, session or self._session)
        self._session = ""
        start = Start(opened.definition, self.file, dict(input), choice, options, self._sandbox)
        fresh = SystemIds().run_id()
        self._launch(mode, fresh, lambda: run_new(self.project, start, self._attached(), run_id=fresh))

    def attach(self, plan: AttachPlan) -> None:
        """Begin to record a program; returns at once. Raises RuntimeError while a run is going on."""
        self.program = ProgramOutput(plan.output) if plan.output is not None else None
        mode = Mode.OVER if plan.pause else Mode.CONTINUE

        def observe(event: Event) -> None:
            self.run_id = event.run_id
            self.events.append(event)

        name = plan.options.session  # Until its first event says more.
        self._launch(mode, name, lambda: plan.record(self.project, self.stepper, observe, self.notices.append))

    def view(self, run_id: str) -> None:
        """Show a stored run: its events come as if they happened now, and nothing executes. Raises UnknownRun."""
        self.viewed = ViewedRun(self.project, self.opened, run_id)
        self.run_id = run_id
        started = self.viewed.events[0].data if self.viewed.events else {}
        if (started.get("imported") or {}).get("format") == FORMAT:
            self.program = ProgramOutput(attached_output(self.project.folders, str(started.get("session_id", ""))))
        self.events.extend(self.viewed.events)

    @property
    def follows(self) -> bool:
        """Whether the run that is viewed is being written by another process."""
        return self.viewed is not None and self.viewed.growing and not self.running

    @property
    def not_here(self) -> str:
        """Why nothing can be done with the run that is viewed, as a sentence; empty where another process does not
        write it."""
        if self.viewed is None or not self.follows:
            return ""
        writer = self.project.store.writer(self.viewed.run_id)
        pid = writer.pid if writer is not None else None
        return ANOTHER.format(who="Another process" if pid is None else f"Process {pid}")

    def follow(self) -> None:
        """Take what that process has added to the run since, and whether it has paused it."""
        if self.viewed is not None:
            self.events.extend(self.viewed.more())
            self.notices.extend(self.viewed.pauses())

    @property
    def workspace(self) -> Workspace:
        """The workspace that opens other files and runs as this one was opened."""
        return Workspace(self.project, self._model, self._sandbox)

    def resume(self, run_id: str, mode: Mode, *, offline: bool = False) -> None:
        """Go on with a stored run that did not end; where that is an imported checkpoint, a new run goes on in its
        place. Raises RuntimeError while one is running, GoesOffline where that would be unasked, unless ``offline``,
        and CannotOpen for another imported run."""
        stands = from_checkpoint(self.project, run_id, lambda definition, options: self._choice(definition, options))
        if stands is not None:
            begun, parent = replace(stands[0], sandbox=self._sandbox), stands[1]
            fresh, attached = self._new_id(), self._attached
            self._launch(mode, fresh, lambda: run_new(self.project, begun, attached(), run_id=fresh, parent=parent))
            return
        start = start_of(self.project, run_id, lambda definition, options: self._choice(definition, options))
        if not offline and goes_offline(self.project, run_id, start.choice, self._model):
            raise GoesOffline(start.choice.why)
        self._launch(mode, run_id, lambda: resume(self.project, run_id, start, self._attached()))

    def fork(
        self,
        run_id: str,
        at: str,
        mode: Mode,
        *,
        kind: StopKind = StopKind.BEFORE_CALL,
        edits: Sequence[Edit] = (),
    ) -> None:
        """A new run that begins as a stored one did, up to a place (``phase:turn``, or in full); in every mode but
        CONTINUE it is held there.

        Raises RuntimeError while one is running. What is wrong with the place or the stored run is a ``failed`` notice.
        """
        fresh, source = self._new_id(), run_id

        async def work() -> Outcome:
            past = past_of(self.project.store, source)
            start = restart(self.project, past, self._choice)
            self._tell_offline(source, start.choice)
            point = find_point(past.recording, kind, at)
            attached = self._attached()
            outcome, _ = await fork(self.project, past, start, attached, point=point, edits=edits, run_id=fresh)
            return outcome

        self._launch(mode, fresh, work)

    def rerun(self, run_id: str, mode: Mode) -> None:
        """Run the file as it is now with the recorded answer of every call of a stored run that is unchanged; held at
        the first request that is another. Raises RuntimeError while one is running or when nothing can run."""
        if self._good is None or self._good.definition is None:
            raise RuntimeError("the cascade has errors; nothing can run")
        definition, fresh, source = self._good.definition, self._new_id(), run_id

        async def work() -> Outcome:
            past = past_of(self.project.store, source)
            start = restart(self.project, past, self._choice, definition=definition)
            start = replace(start, file=self.file, sandbox=self._sandbox)
            self._tell_offline(source, start.choice)
            self._past = past.recording
            return await rerun(self.project, past, start, self._attached(), run_id=fresh)

        self._launch(mode, fresh, work)

    def edit(self, *edits: Edit) -> None:
        """Edit what the run's stop allows; the run stays paused there. Raises EditError."""
        self.stepper.edit(*edits)

    def keep_breakpoints(self) -> None:
        """Keep the breakpoints for the next time this file is opened. Raises OSError."""
        keep_breakpoints(self.project.folders, self.file, self.stepper.breakpoints)
        self._kept = list(self.stepper.breakpoints)

    def _keep_changed_breakpoints(self) -> None:
        """At the ends of a run and of the app: a state folder that cannot be written is no reason to stop either."""
        if self.stepper.breakpoints != self._kept:
            try:
                self.keep_breakpoints()
            except OSError as fault:
                self.project.notes.append(f"breakpoints are not kept: {fault.strerror}")

    def go(self, mode: Mode) -> bool:
        """Let a held run go on. Returns whether that changes anything."""
        return self.stepper.go(mode)

    def pause(self) -> None:
        """Pause the run at its next stop."""
        self.stepper.pause()

    def stop(self, why: str = STOPPED_BY_USER) -> None:
        """End the run as stopped: its call or tool is cancelled, its journal is complete. ``why``: the reason, one
        of those that ``stop_reason`` knows."""
        if self._loop is not None and self._task is not None and self.running and not self.stopping:
            # Cancelled again, it would lose what it does at its end.
            self._stopped = self._task
            with suppress(RuntimeError):  # It has ended by itself, and its loop was closed.
                self._loop.call_soon_threadsafe(self._task.cancel, why)

    @property
    def if_stopped(self) -> str:
        """What becomes of the active run if it is stopped, as a sentence."""
        if self.runs:
            return "Its journal is complete so far, and it can be resumed."
        return "Its journal is complete so far. If you stop it, the program that it started ends too."

    def answer(self, question: Event, text: str) -> bool:
        """Answer a ``human_asked`` event; False if the run no longer waits for it."""
        return self.human.answer(question.place, question.data["index"], text)

    def audibles_of(self, phase: str) -> Audibles | None:
        """Lets a person speak to a phase of the definition while it runs; None if it does not allow that."""
        cascade = self._good.cascade if self._good is not None else None
        found = next((each for each in cascade.phases if each.name == phase), None) if cascade is not None else None
        rule = found.audibles if found is not None else None
        return rule if rule is not None and rule.enabled else None

    def close(self, why: str = STOPPED_BY_USER) -> None:
        """Stop the run, if any, for a reason as for ``stop``, and wait until its journal is complete, or for five
        seconds."""
        self._keep_changed_breakpoints()
        self.stop(why)
        if self._thread is not None:
            self._thread.join(STOP_DEADLINE)

    # -- the file ----------------------------------------------------------------------------------------------------

    def reload(self, loaded: Loaded | None = None) -> Reload:
        """Check the file's content, given or read again. A definition that cannot run leaves the last good one in
        place.
        """
        try:
            fresh = self.project.check(self.file, loaded) if loaded is not None else self.project.open(self.file)
        except CannotOpen as fault:
            return Reload(self.opened, False, gone=str(fault))
        changed = _changed(self._good, fresh)
        if self._good is not None and fresh.definition is not None:
            self._declared_before.update(self._good.cascade.inputs_schema if self._good.cascade is not None else ())
        self.opened = fresh
        self.gone = ""
        if fresh.definition is not None:
            self._good = fresh
        return Reload(fresh, fresh.definition is not None, changed)

    # -- inside ------------------------------------------------------------------------------------------------------

    @staticmethod
    def _new_id() -> str:
        return SystemIds().run_id()

    def _choice(self, *pinned: Any) -> ModelChoice:
        if pinned:
            return chosen_for(self.project, pinned[0], self._model, pinned[1].default_model)
        opened = self._good
        return choose_model(self.project, opened.cascade if opened else None, self.file, self._model)

    def _tell_offline(self, source: str, choice: ModelChoice) -> None:
        """A run that begins with answers of a provider and has no provider for the rest says so."""
        if goes_offline(self.project, source, choice, self._model):
            words = f"A provider answered the run before, and now none is known ({choice.why}): "
            words += "what is not recorded is answered offline."
            self.notices.append(Notice("offline", Place(), {"message": words}))

    def _new_stepper(self) -> Stepper:
        return Stepper(on_hold=self._held, on_release=self._released, matches=matches)

    def _held(self, stop: Stop, why: str) -> None:
        if stop.answered_by == "changed":
            why = f"{why}: {self._difference(stop)}"
        told = {"stop": str(stop.kind), "why": why, "tool": stop.tool, "node": stop.node, "taken": list(stop.taken)}
        client = {"since": stop.client.since, "limit": stop.client.limit} if stop.client is not None else None
        said = {**told, "depth": stop.depth, "client": client, "arguments": stop.arguments}
        held = Notice("held", stop.place, said)
        self.notices.append(held)
        store = self.project.store
        if (writer := store.writer(self.run_id)) is not None and writer.pid is not None:
            self._told_pause = PausedRun(self.project.folders, store.folder(self.run_id))
            self._told_pause.tell(held, writer.pid)  # Another process writes the run of a program that is watched.

    def _difference(self, stop: Stop) -> str:
        """Differences from the recording, each with the deciding line of the file."""
        past, definition = self._past, self._good.definition if self._good is not None else None
        self.changed = changed_call(past, definition, stop) if past is not None and definition is not None else None
        if self.changed is None:
            return "no such call was recorded"
        name = self.file.name
        parts = ((part.where(name), part.words) for part in self.changed.parts)
        said = "; ".join(f"{where}: {words}" if where else words for where, words in parts)
        return said or "only its digest is not the recorded one"

    @property
    def changed_texts(self) -> tuple[str, str]:
        """The text of the running file, and that of the run whose answers are reused."""
        definition = self._good.definition if self._good is not None else None
        past = self._past.state.cascade_text if self._past is not None else ""
        return (definition.source.text if definition is not None else ""), past

    def _released(self, stop: Stop) -> None:
        self.changed = None
        self.notices.append(Notice("released", stop.place))
        if self._told_pause is not None:
            self._told_pause.forget()

    def _attached(self) -> Any:
        return RunAttachments(
            self.stepper,
            self.human,
            self.events.append,
            self.notices.append,
            audibles=self.audibles,
            observe_child=self.events.append,
        )

    def _launch(self, mode: Mode, run_id: str, work: Callable[[], Coroutine[Any, Any, Outcome]]) -> None:
        """Begin a run in a thread of its own, which may ask for its id before this returns."""
        if self.running:
            raise RuntimeError("a run is going on")
        self.run_id = run_id
        self._keep_changed_breakpoints()
        self.viewed = None
        breakpoints = self.stepper.breakpoints
        self.stepper = self._new_stepper()
        self.stepper.breakpoints, self.stepper.mode = breakpoints, mode
        self.failure, self.changed = "", None
        self.audibles.forget()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(work, ready), name="engine", daemon=True)
        self._thread.start()
        ready.wait()

    def _work(self, work: Callable[[], Coroutine[Any, Any, Outcome]], ready: threading.Event) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.ensure_future(work())
            ready.set()
            await self._task

        try:
            asyncio.run(main())
        except asyncio.CancelledError:
            pass  # It was stopped before there was a run to end.
        except Exception as fault:  # noqa: BLE001 - whatever ends the engine must reach the screen, not kill the app
            self.failure = fault_words(fault)
            self.notices.append(Notice("failed", Place(), {"message": self.failure}))
        finally:
            ready.set()


class Workspace(Struct, frozen=True):
    """A workspace, and how its cascades are to be run; empty texts leave the choice to the settings."""

    project: Project
    model: str = ""
    sandbox: str = ""
    proposed: str = ""
    """A file that is not there yet: home offers to make it."""
    running: ClassVar[bool] = False
    """A session has runs of its own; a list of cascades has none."""

    def file(self, file: Path) -> Session:
        """A session over a cascade file. Raises CannotOpen."""
        return Session(self.project, file, model=self.model, sandbox=self.sandbox)

    def attach(self, plan: AttachPlan) -> Session:
        """A session that records a program, and has begun to."""
        name = Path(plan.served.command[0]).name if plan.served.command else PHASE
        file = self.project.root / f"{name}.{FORMAT}"
        session = Session(self.project, file, text=plan.text, gone=GONE, runs=False)
        session.attach(plan)
        return session

    def run(self, run_id: str) -> Session:
        """A session that shows a stored run: over its file, or, if that is gone, over the text that the run is pinned
        to. Raises UnknownRun, CannotOpen.
        """
        session = self._of_run(next(self.project.store.events(run_id), None))
        session.view(run_id)
        return session

    def _of_run(self, first: Event | None) -> Session:
        if first is None or first.kind != "run_started":
            raise CannotOpen("the beginning of this run is missing: there is nothing to show it with")
        data = first.data
        shown = str(data.get("cascade_file", ""))
        if shown and (file := self.project.root / shown).is_file():
            return self.file(file)
        imported = (data.get("ports") or {}).get("imported")
        missing = f"{shown or 'the file'} is not there any more: this is the text of the run"
        gone = GONE if imported == FORMAT else IMPORTED if imported else missing
        file = self.project.root / (shown or f"{data.get('session_id') or 'run'}.yaml")
        return Session(
            self.project,
            file,
            model=self.model,
            sandbox=self.sandbox,
            text=str(data.get("cascade_text", "")),
            gone=gone,
            runs=not imported,
        )


def _changed(before: OpenedCascade | None, after: OpenedCascade) -> frozenset[str]:
    """Phases of the new definition that differ from those of the old."""
    if before is None or before.cascade is None or after.cascade is None:
        return frozenset()

    return changed_phases(before.cascade, after.cascade)
