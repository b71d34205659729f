"""The folder ``.workbench/``: every run a journal in a folder of its own. Needs no database."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import count
from pathlib import Path

from msgspec.structs import replace

from workbench.engine.journal.annotations import Annotations, Change
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.language.clean import clean_line
from workbench.store import summary
from workbench.store.branches import Branches, sessions_above
from workbench.store.faults import SessionTaken, StoreBusy, StoreError, UnknownRun
from workbench.store.journal import annotation_file
from workbench.store.journal.disk import Disk, LocalDisk, is_digest, is_id, make_root, safe_join
from workbench.store.journal.journal import Journal, LateFolder, writer_lock
from workbench.store.journal.lock import FileLock, Holder, writer_of
from workbench.store.journal.reading import Health, Tail, read_blob, segments
from workbench.store.summary import RunSummary, Summarizer, fault_in, fault_of, unreadable
from workbench.store.team_server import TeamServer

INTERRUPTED = "the process that ran it ended before the run did"
_SHOWN = 8
"""How many candidates an error lists."""


def unheard(run: RunSummary) -> None:
    """For those who need no summary of a run that they write."""


class Store:
    """All runs below one folder. Reading never writes, except for summaries, which are a cache."""

    def __init__(
        self,
        root: Path,
        disk: Disk | None = None,
        *,
        fixed: Path | None = None,
        server: TeamServer | None = None,
        bring: Callable[[Store, str], str] = lambda store, name: "",
    ) -> None:
        """``root`` is the ``.workbench/`` folder; it is made when the first run is. ``fixed`` is another one, which
        cannot be written: its runs are listed and read like those of ``root``. ``server`` is where the runs are
        shipped, and ``bring`` copies one of that name from there into ``pulled`` and gives its run id; an empty one
        where there is none."""
        self.root = root.resolve()
        self.server = server
        self._bring = bring
        self.journals = self.root / "journal"
        self.pulled = self.root / "pulled" / "journal"
        """Runs that were brought from a server: read like others, and never written."""
        self.readable = (self.journals, *(() if fixed is None else (fixed.resolve() / "journal",)), self.pulled)
        """Folders from which runs are read; the first is the one that new runs are written to."""
        self.removed = self.root / "removed"
        """Empty files named by removed runs whose rows the database still has to drop."""
        self.removed_there = self.root / "removed-there"
        """The same for the server."""
        self._disk = disk

    # -- writing -----------------------------------------------------------------------------------------------------

    def create(self, run_id: str, told: Callable[[RunSummary], None] = unheard) -> Journal:
        """The journal of a new run. ``told`` gets its summary when it is closed. Raises StoreError when the id is taken
        or the folder cannot be made."""
        folder = safe_join(self.journals, run_id)
        if folder.exists():
            raise StoreError(f"run {run_id} exists already")
        try:
            self._make_folder(folder)
        except OSError as error:
            raise StoreError(f"cannot write to {self.root}: {error.strerror}") from error
        return self._journal(folder, Summarizer(run_id), writer_lock(folder), 1, told, new_in=self.journals)

    def create_anyway(self, run_id: str, told: Callable[[RunSummary], None] = unheard) -> Journal:
        """The same; if the folder cannot be made, the run continues in memory, and its ``fault`` says so once a record
        waits. Raises StoreError when the id is taken.
        """
        folder = safe_join(self.journals, run_id)
        try:
            return self.create(run_id, told)
        except StoreError as error:
            if folder.exists() or not isinstance(error.__cause__, OSError):
                raise
        late = LateFolder(folder, lambda: self.make_folder(run_id), writer_lock)
        return self._journal(folder, Summarizer(run_id), late, 1, told, late)

    def make_folder(self, run_id: str) -> None:
        """The folder of a run, if it is not there yet, with its name durable. Raises OSError."""
        folder = safe_join(self.journals, run_id)
        if not folder.is_dir():
            self._make_folder(folder)
            LocalDisk().sync_folder(self.journals)

    def _make_folder(self, folder: Path) -> None:
        self._prepare()
        folder.mkdir(mode=0o700)

    def adopt(self, folders: Iterable[Path]) -> None:
        """Take in whole runs that were written elsewhere on the same file system, each a folder named by its id; a run
        that is here already stays as it is. Raises StoreError."""
        try:
            self._prepare()
            for folder in folders:
                if not safe_join(self.journals, folder.name).exists():
                    folder.rename(self.journals / folder.name)
            LocalDisk().sync_folder(self.journals)
        except OSError as error:
            raise StoreError(f"cannot write to {self.root}: {error.strerror}") from error

    @contextmanager
    def staged(self) -> Iterator[Store]:
        """Yields an empty store beside this one, whose runs come into this one together when the block ends. None of
        them does where it raises; what a process that was killed had begun, the next one removes. Raises StoreError."""
        beside = self.root / "staging"
        try:
            self._prepare()
            beside.mkdir(mode=0o700, exist_ok=True)
            _remove_left(beside)
            folder = beside / uuid.uuid4().hex
            lock = FileLock(folder.with_suffix(".lock"), f"{folder} is written")
        except OSError as error:
            raise StoreError(f"cannot write to {self.root}: {error.strerror}") from error
        try:
            staged = Store(folder)
            yield staged
            self.adopt(sorted(staged.journals.glob("*")))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            folder.with_suffix(".lock").unlink(missing_ok=True)
            lock.release()
            with suppress(OSError):
                beside.rmdir()

    def append_to(self, run_id: str, told: Callable[[RunSummary], None] = unheard) -> Journal:
        """The journal of a run that goes on, in a new segment; ``told`` as in ``create``. Raises StoreBusy, StoreError,
        UnknownRun."""
        folder = self._own_folder(run_id)
        lock = writer_lock(folder)
        try:
            fold, tail = _folded(folder)
            if not tail.health.whole:
                raise StoreError(f"run {run_id} cannot go on: {tail.health.notices[0]}")
            last = max((int(name[:-6]) for name in segments(folder)), default=0)
            return self._journal(folder, fold, lock, last + 1, told, last_crc=tail.last_crc)
        except BaseException:
            lock.release()
            raise

    def annotate(self, run_id: str, change: Change) -> Annotations:
        """Add or remove annotations of a run or of one of its calls. Returns those in force. The journal stays
        unchanged, so the run may be running, in this process or another. Raises UnknownRun, StoreBusy, StoreError,
        AnnotationError.
        """
        folder = self._own_folder(run_id)
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        with annotation_file.exclusive(folder) as file:
            now = annotation_file.current(file).annotations
            records = change.records(now, at, (f"{number:03d}{uuid.uuid4().hex}" for number in count()))
            if records:
                annotation_file.append(folder, records, file)
        return Annotations((*now.records, *records))

    def remove(self, run_id: str) -> None:
        """Delete a run's folder and the names of its images; its rows are dropped when the database is next open.
        Raises StoreBusy, UnknownRun, StoreError if it cannot be written.
        """
        folder = self.folder(run_id)
        if folder.parent != self.pulled:  # Of a copy, the rows of the original stay.
            folder = self._own_folder(run_id)
        if (holder := self.writer(run_id)) is not None:
            raise StoreBusy(f"run {run_id} is being written by {holder}", holder.pid)
        there = (self.removed_there,) if self.server is not None and folder.parent == self.journals else ()
        try:
            for removed in (self.removed, *there):
                removed.mkdir(mode=0o700, exist_ok=True)
                (removed / run_id).touch(mode=0o600)
            gone = folder.parent / f".{run_id}.removed"
            folder.rename(gone)  # In one step, so that no reader sees a part of the run.
            _unname(self.root / "images", gone / "blobs")
            shutil.rmtree(gone)
        except OSError as error:
            raise StoreError(f"cannot remove run {run_id}: {error.strerror}") from error

    # -- reading -----------------------------------------------------------------------------------------------------

    def folder(self, run_id: str) -> Path:
        """The folder of a run; a run that only the server has is copied first. Raises UnknownRun."""
        for journals in self.readable:
            if (folder := safe_join(journals, run_id)).is_dir():
                return folder
        if self._bring(self, run_id) == run_id and (folder := safe_join(self.pulled, run_id)).is_dir():
            return folder
        raise UnknownRun(f"no run {run_id} in {self.root}")

    def run_ids(self) -> list[str]:
        """All runs, oldest first as far as their ids tell."""
        return sorted({run_id for journals in self.readable for run_id in _listed(journals)})

    def own_run_ids(self) -> list[str]:
        """The same without those that can only be read."""
        return sorted(_listed(self.journals))

    def events(self, run_id: str) -> Iterator[Event]:
        """All events in order, bodies in place. Raises UnknownRun; damage is told by ``health``."""
        return Tail(self.folder(run_id)).poll()

    def tail(self, run_id: str) -> Tail:
        """Reads a run as another process writes it. Raises UnknownRun."""
        return Tail(self.folder(run_id))

    def health(self, run_id: str) -> Health:
        """Examines the files of a run. Raises UnknownRun."""
        tail = self.tail(run_id)
        for _ in tail.poll():
            pass
        return tail.health

    def writer(self, run_id: str) -> Holder | None:
        """The process that appends to a run now."""
        try:
            return writer_of(self.folder(run_id))
        except UnknownRun:
            return None

    def state(self, run_id: str) -> RunState:
        """The fold of a run, and the problems of its journal. A run without an end and without a writer is
        ``interrupted``. Raises UnknownRun.
        """
        tail = self.tail(run_id)
        state = RunState.of(tail.poll())
        state.fault = fault_in(tail.health, started=bool(state.started)) or state.nonsense
        state.run_id = state.run_id or run_id
        state.annotations = self.annotations(run_id)
        if state.status == "running" and self.writer(run_id) is None:
            state.status, state.reason = "interrupted", INTERRUPTED
        return state

    def nested(self, state: RunState) -> dict[str, RunState]:
        """The runs that a run started, and those that they started, by run id; one that cannot be read is left out."""
        found: dict[str, RunState] = {}
        waiting = [state]
        while waiting:
            for visit in waiting.pop().visits:
                for child in visit.children:
                    run_id = str(child.get("run_id", ""))
                    if run_id in found:
                        continue
                    try:
                        found[run_id] = self.state(run_id)
                    except StoreError:
                        continue
                    waiting.append(found[run_id])
        return found

    def annotations(self, run_id: str) -> Annotations:
        """The annotations of a run and of its calls. Raises UnknownRun."""
        return annotation_file.read(self.folder(run_id)).annotations

    def annotations_size(self, run_id: str) -> int:
        """Bytes of the annotations of a run, which grow with each annotation. Raises UnknownRun."""
        return annotation_file.size_of(self.folder(run_id))

    def runs(self) -> list[RunSummary]:
        """All runs, newest first; an imported run is as old as its import, whenever it ran."""
        return sorted(self.each_run(), key=added, reverse=True)

    def each_run(self, run_ids: Sequence[str] | None = None) -> Iterator[RunSummary]:
        """The same, or those of ``run_ids``, in the order of their ids, one at a time: of 100,000 runs the summaries
        take 300 MB."""
        for run_id in self.run_ids() if run_ids is None else run_ids:
            try:
                yield self.summary(run_id)
            except UnknownRun:
                continue  # Removed since the folder was listed.
            except OSError as error:
                yield unreadable(run_id, error)

    def summary(self, run_id: str) -> RunSummary:
        """One run in one line; read from its journal only if the journal has grown since. Raises UnknownRun."""
        folder = self.folder(run_id)
        now = summary.identity(folder)
        run = summary.load(folder, now)
        if run is None:
            fold, tail = _folded(folder)
            fault = fault_of(fold, tail.health)
            damaged = fold.senseless or not tail.health.whole
            run = replace(fold.summary(), bytes=summary.size_of(now), damaged=damaged, fault=fault)
            if self.writer(run_id) is None and not tail.health.shorter:  # The old one tells what is lost.
                summary.keep(folder, run, now)
        run = summary.labelled(run, folder)
        if run.status == "interrupted":
            holder = self.writer(run_id)
            if holder is not None:
                return replace(run, status="running", pid=holder.pid)
            return replace(run, reason=INTERRUPTED)
        return run

    def matches(self, name: str) -> list[RunSummary]:
        """The runs that a name may mean, newest first: of that session or run id, else with a branch of that session,
        else all whose ids begin so, else all whose session id ends in ``-NAME`` (as the header shows it), else the
        server's runs of that name.
        """
        runs = self.runs()
        exact = [run for run in runs if name in (run.session_id, run.run_id)]
        above = () if exact else frozenset(sessions_above(name))
        exact = exact or [
            run for run in runs if run.session_id in above and self.branch_of_session(run.run_id, name) is not None
        ]
        close = exact or [
            run for run in runs if name and (run.run_id.startswith(name) or run.session_id.startswith(name))
        ]
        close = close or [run for run in runs if name and run.session_id.endswith(f"-{name}")]
        if not exact:  # The ids of nested runs begin as that of the run that they are in.
            close = [run for run in close if not run.depth] or close
        if len(close) == 1 and self._may_have_grown(close[0]) and (again := self._bring(self, close[0].run_id)):
            return [self.summary(again)]
        return close or [self.summary(run_id) for run_id in filter(None, [name and self._bring(self, name)])]

    def branch_of_session(self, run_id: str, session_id: str) -> str | None:
        """The branch of a run that has this session id in the tables: a candidate of ``reforge``, or a walk of the
        whole cascade. Empty for the run's own; None if no branch has it. Raises UnknownRun."""
        branches = Branches()
        for event in Tail(self.folder(run_id), skip_blobs=True).poll():
            with suppress(TypeError, ValueError, LookupError, AttributeError):  # Nonsense in it is told by ``health``.
                branches.apply(event)
        return branches.named(session_id)

    def _may_have_grown(self, run: RunSummary) -> bool:
        """Returns whether this is a copy of a run that had not ended."""
        return not run.finished and self.folder(run.run_id).parent == self.pulled

    def require_new(self, session_id: str) -> None:
        """Raises SessionTaken where a stored run has this session id; an empty one is always new."""
        taken = next((run for run in self.runs() if run.session_id == session_id), None) if session_id else None
        if taken is not None:
            again = f", or resume it: workbench resume {session_id}" if taken.resumable else ""
            named = f"a run is already named '{session_id}' ({taken.status})"
            raise SessionTaken(f"{named}: give another with --session{again}")

    def find(self, name: str) -> str:
        """The run that a name means: the newest of a session id, a run id, or the only one whose id begins or ends so.

        Raises UnknownRun, which names the candidates when there are several.
        """
        close = self.matches(name)
        if not close:
            raise UnknownRun(f"no run is named '{clean_line(name, 80)}'{self._meant(name)}")
        if len({run.session_id or run.run_id for run in close}) == 1:
            return close[0].run_id
        shown = ", ".join(run.session_id or run.run_id for run in close[:_SHOWN])
        more = f" and {len(close) - _SHOWN} more" if len(close) > _SHOWN else ""
        raise UnknownRun(
            f"'{clean_line(name, 80)}' names several runs: {shown}{more}", tuple(run.run_id for run in close)
        )

    def _meant(self, name: str) -> str:
        """A hint: the newest session with a similar name, or the unreadable run of that name."""
        runs = self.runs()
        if near := get_close_matches(name[:80], [run.session_id for run in runs], 1, 0.7):
            return f" (did you mean '{near[0]}'?)"
        nameless = next((run for run in runs if run.fault and not run.session_id), None)
        return f" (of {nameless.run_id} the name cannot be read: {nameless.fault})" if nameless is not None else ""

    def image_path(self, run_id: str, digest: str) -> Path:
        """The file of an image, to be linked under a readable name. Raises StoreError."""
        if not is_digest(digest):
            raise StoreError(f"{digest[:80]!a} is not a sha256 digest")
        return self.folder(run_id) / "blobs" / digest

    def image(self, run_id: str, digest: str) -> bytes:
        """The bytes of an image of a run. Raises StoreError when they are missing or altered."""
        data = read_blob(self.folder(run_id), digest)
        if data is None:
            raise StoreError(f"image {digest[:12]!a} of run {run_id} is missing or altered")
        return data

    # -- inside ------------------------------------------------------------------------------------------------------

    def _own_folder(self, run_id: str) -> Path:
        """The folder of a run that may be changed. Raises UnknownRun, StoreError."""
        folder = self.folder(run_id)
        if folder.parent == self.pulled:
            said = f"run {run_id} was brought from the server: it can be shown, replayed and forked here"
            raise StoreError(f"{said}, and goes on where it was made")
        if folder.parent != self.journals:
            raise StoreError(f"run {run_id} can only be read: {folder.parent.parent} cannot be written")
        return folder

    def _prepare(self) -> None:
        if self.journals.is_dir():
            return
        make_root(self.root)
        self.journals.mkdir(mode=0o700, exist_ok=True)

    def _journal(
        self,
        folder: Path,
        fold: Summarizer,
        lock: FileLock | LateFolder,
        first_segment: int,
        told: Callable[[RunSummary], None],
        disk: Disk | None = None,
        last_crc: str = "",
        new_in: Path | None = None,
    ) -> Journal:
        def keep_summary(journal: Journal) -> None:
            run = fold.summary()
            if journal.unsaved == 0:
                with suppress(OSError):
                    now = summary.identity(folder)
                    run = replace(run, bytes=summary.size_of(now))
                    summary.keep(folder, run, now)
            told(run)

        return Journal(
            folder,
            lock=lock,
            next_seq=fold.seq + 1,
            first_segment=first_segment,
            last_crc=last_crc,
            disk=disk or self._disk,
            on_append=fold.apply,
            on_close=keep_summary,
            new_in=new_in,
        )


def _listed(journals: Path) -> list[str]:
    try:
        return [e.name for e in os.scandir(journals) if e.is_dir(follow_symlinks=False) and is_id(e.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove_left(beside: Path) -> None:
    """Remove staged runs whose process has ended."""
    for file in beside.glob("*.lock"):
        try:
            lock = FileLock(file, f"{file} is written")
        except StoreError:
            continue
        shutil.rmtree(file.with_suffix(""), ignore_errors=True)
        file.unlink(missing_ok=True)
        lock.release()


def _unname(images: Path, blobs: Path) -> None:
    """Remove the links below ``images`` to removed blobs, and folders left empty. Raises OSError."""
    going = {(file.st_dev, file.st_ino) for file in (path.stat() for path in blobs.glob("*"))}
    for session in images.glob("*") if going else ():
        for path in sorted(session.glob("*/*")):
            if ((file := path.stat()).st_dev, file.st_ino) in going:
                path.unlink()
        for folder in (*session.glob("*"), session):
            with suppress(OSError):  # It holds something.
                folder.rmdir()


def _folded(folder: Path) -> tuple[Summarizer, Tail]:
    fold = Summarizer(folder.name)
    tail = Tail(folder, skip_blobs=True)
    for line in tail.lines():
        fold.seq = line.seq
        if line.event is not None:
            fold.apply(line.event)
    return fold, tail


def added(run: RunSummary) -> tuple[str, str]:
    """When the run came into the store, as ISO 8601 in UTC, and its id: what lists are sorted by. The id of an imported
    run begins with that time (RFC 9562)."""
    if not run.imported:
        return run.started, run.run_id
    try:
        seconds = int(run.run_id.replace("-", "")[:12], 16) / 1000
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%f}Z", run.run_id
    except (ValueError, OverflowError, OSError):
        return run.started, run.run_id
