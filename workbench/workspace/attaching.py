"""A session of attach in the store: the recorded run, and the source of its answers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, field

from workbench.attach.identity import Surroundings
from workbench.attach.offline import OfflineAnswers
from workbench.attach.recorded import NothingRecorded, RecordedAnswers
from workbench.attach.recorder import FORMAT, PHASE, Recorder
from workbench.attach.span_runs import NewRun, SpanRuns
from workbench.attach.traffic import Answers
from workbench.child_process import fault_words
from workbench.context.place import Place
from workbench.context.strategy import Strategy
from workbench.engine.contracts import Notice
from workbench.engine.journal.event import Event
from workbench.files import read_plain
from workbench.importers.journal import JournalServices, Origin, no_one
from workbench.models.encodings import Encodings, encodings
from workbench.models.offline import Offline
from workbench.models.prices import PriceTable, cost
from workbench.models.replies import SUFFIX, Replies, read_replies
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.offline_replies import RepliesError
from workbench.workspace.project import Project, new_session_id
from workbench.workspace.saving import JournalWatch
from workbench.workspace.system import SystemClock, SystemIds

SCRIPTS = f"--replies FILE scripts what the model says, and so does a file beside the program, such as agent{SUFFIX}"
_COUNTED = 5_000
"""Messages of a session whose token counts are kept: it may go on for days."""


class AttachOptions(Struct, frozen=True):
    """The program to attach to, and the source of the answers."""

    command: str = ""
    """The command as written; empty if clients start by themselves."""
    session: str = ""
    """The name of the run; empty for a new one."""
    folder: str = ""
    """Where the command runs."""
    offline: bool = False
    replies: Path | None = None
    """Scripted replies of the offline model."""
    replay: str = ""
    """The session whose replies are repeated; no other reply is given."""
    reuse: str = ""
    """The same, but requests without a recorded answer go to the provider."""
    strategy: Strategy | None = None
    """Selects what is sent of the messages of each context; None for all of them."""
    what_if: Strategy | None = None
    """Priced beside the strategy in force; it never changes what is sent."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Where the requests of a provider go, if not to its own address."""


def replies_beside(command: Sequence[str], folder: Path) -> Path | None:
    """Returns the scripted replies beside the first file that a command names, as beside a cascade:
    ``examples/agent.replies.yaml`` for ``python examples/agent.py``. None if there are none."""
    for word in command:
        if word.startswith("-") or not (file := folder / word).is_file():
            continue
        if (beside := file.with_name(file.stem + SUFFIX)).is_file():
            return beside
    return None


class SessionEnd(Struct, frozen=True):
    """How a session ended; also what the app tells the process that serves it."""

    code: int = 0
    """Of the command; 0 without one."""
    stopped: str = ""
    """Why it was ended from outside; empty if it was not."""
    fault: str = ""
    """Why its command, or what watches it, could not go on; empty if it did."""


class AttachedRun(Struct, frozen=True):
    """A run that is being recorded."""

    run_id: str
    session: str
    recorder: Recorder
    answers: Answers | None
    """None if providers answer."""


@contextmanager
def attached_run(
    project: Project,
    options: AttachOptions,
    observe: Callable[[Event], None] = no_one,
    notify: Callable[[Notice], None] = lambda notice: None,
) -> Iterator[AttachedRun]:
    """Record until the block ends; the caller closes the recorder with the status. ``notify`` is told when the disk
    does not take the record, which waits in memory then, and when it does again.

    Raises StoreError, UnknownRun, RepliesError for replies that cannot be used, and CannotOpen for a run without
    recorded replies.
    """
    if options.session:
        project.store.require_new(options.session)
    answers = _answers(project, options)
    name = Path(options.command.split(" ")[0]).name if options.command else PHASE
    run_id, session = SystemIds().run_id(), options.session or new_session_id(name)
    with (
        project.store.create(run_id) as sink,
        JournalWatch(sink, notify, project.notes.append, project.unsaved) as saving,
    ):

        def seen(event: Event) -> None:
            saving(event)
            observe(event)

        prices = PriceTable(project.settings.prices)
        services = JournalServices(sink, SystemClock(), Encodings(_COUNTED), prices, cost, project.redactor())
        digest = hashlib.sha256(options.command.encode("utf-8", "surrogatepass")).hexdigest()
        origin = Origin(FORMAT, options.command, digest)
        asked = {"strategy": options.strategy, "what_if": options.what_if}
        around = surroundings(options.folder)
        recorder = Recorder(
            origin, run_id, session, services, observe=seen, around=around, elsewhere=options.elsewhere, **asked
        )
        try:
            yield AttachedRun(run_id, session, recorder, answers)
        except Exception as fault:
            recorder.close("failed", fault_words(fault))
            raise
        finally:
            recorder.close("stopped", "the recording was interrupted")
            sink.sync()


@contextmanager
def recorded_spans(
    project: Project,
    options: AttachOptions,
    observe: Callable[[Event], None] = no_one,
    notify: Callable[[Notice], None] = lambda notice: None,
) -> Iterator[SpanRuns]:
    """Make runs of spans until the block ends; the caller closes them with their status. The first one has the name of
    the session, others a number behind it. ``observe`` gets the events of the first one, ``notify`` is told of each
    other one when it begins, and of the disk as for ``attached_run``. Raises StoreError."""
    if options.session:
        project.store.require_new(options.session)
    first = options.session or new_session_id(Path(options.command.split(" ")[0]).name if options.command else PHASE)
    prices, counter, count = PriceTable(project.settings.prices), Encodings(_COUNTED), 0

    def begins() -> NewRun:
        nonlocal count
        count += 1
        run_id, session = SystemIds().run_id(), first if count == 1 else f"{first}-{count}"
        opened, watches = ExitStack(), count == 1
        sink = opened.enter_context(project.store.create(run_id))
        saving = opened.enter_context(JournalWatch(sink, notify, project.notes.append, project.unsaved))

        def seen(event: Event) -> None:
            saving(event)
            if watches:
                observe(event)

        def close() -> None:
            sink.sync()
            opened.close()

        if not watches:
            notify(Notice("told", Place(), {"message": f"Another conversation: it is recorded as {session}"}))
        services = JournalServices(sink, SystemClock(), counter, prices, cost, project.redactor())
        return NewRun(run_id, session, services, seen, close)

    runs = SpanRuns(begins, options.command, options.what_if)
    try:
        yield runs
    except Exception as fault:
        runs.close("failed", fault_words(fault))
        raise
    finally:
        runs.close("stopped", "the recording was interrupted")


def surroundings(folder: str) -> Surroundings:
    """Returns where and when a program runs that is started now in a folder."""
    return Surroundings(datetime.now(UTC), folder, os.environ.get("HOME", ""))


def end_session(run: AttachedRun, end: SessionEnd) -> bool:
    """Close the record with the status of the session. False if a replay has diverged."""
    diverged = run.answers.diverged if isinstance(run.answers, RecordedAnswers) else ""
    run.recorder.close(*(("diverged", diverged) if diverged else _status(end)))
    return not diverged


def end_spans(runs: SpanRuns, end: SessionEnd) -> None:
    """The same for the runs of spans."""
    runs.close(*_status(end))


def _status(end: SessionEnd) -> tuple[str, str]:
    """The status of a session, and why it has it."""
    if end.stopped:
        return "stopped", end.stopped
    failed = end.fault or exit_reason(end.code)
    return ("failed", failed) if failed else ("success", "")


EXITED = "the command ended with exit code "


def exit_reason(code: int) -> str:
    """Returns why a session failed whose command ended so; empty for 0."""
    return f"{EXITED}{code}" if code else ""


def _answers(project: Project, options: AttachOptions) -> Answers | None:
    if options.offline:
        prices = PriceTable(project.settings.prices)
        replies = _replies(project, options.replies)
        model = Offline(replies, SystemClock(), encodings(), prices, placeholders=True, advice=SCRIPTS)
        return OfflineAnswers(model, encodings())
    if named := options.replay or options.reuse:
        run_id = project.store.find(named)
        try:
            events, strict = project.store.events(run_id), bool(options.replay)
            return RecordedAnswers(events, encodings(), surroundings(options.folder), strict=strict)
        except NothingRecorded as fault:
            raise CannotOpen(f"{named}: error: {fault}") from None
    return None


def _replies(project: Project, file: Path | None) -> Replies:
    """Raises RepliesError."""
    if file is None:
        return Replies()
    try:
        read = read_replies(read_plain(file), project.shown(file))
    except OSError as fault:
        raise RepliesError(f"{file}: error: cannot be read: {fault.strerror}") from fault
    if read.problems:
        raise RepliesError("\n".join(map(str, read.problems)))
    return read.replies
