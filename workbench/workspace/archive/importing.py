"""An import of many conversations: each share is read by one of many workers, which writes its runs beside the store;
they come into the store once the share is written down as done. So a run is there once, or not at all."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from workbench import __version__
from workbench.analysis.shares import Share, split
from workbench.importers.conversation import Unreadable
from workbench.importers.journal import FileClock, Origin
from workbench.importers.reading import FoundConversation, is_by_line, read_lines
from workbench.models.encodings import encodings
from workbench.models.prices import PriceTable
from workbench.store.store import Store
from workbench.tools.sandbox.scratch import SCRATCH
from workbench.workspace.archive.remote import is_url, opened_url, size_of_url
from workbench.workspace.archive.work_folder import WorkFolder
from workbench.workspace.archive.workers import ArchiveProgress, Lost, Workers
from workbench.workspace.imports import ImportedRun, ImportTarget, import_found, import_into, read_conversations
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.project import Project, new_session_id

SLICE = 1024 * 1024
"""Bytes of a file with a conversation on each line that are read as one piece; also of a share of small files."""
MOST_SHARE = 50
"""Files of a share, at most."""
_PIECES = 4
"""Of a file with a conversation on each line, up to which one process reads it whole: these take some 20 s."""
_BLOCK = 1024 * 1024


class ImportPart(Struct, frozen=True):
    """A file, or a stretch of one."""

    number: int
    """Its place among all parts, from 0."""
    file: str
    """Its path, or its URL."""
    size: int
    modified: int
    """When it was changed, in ns since 1970; 0 of a URL."""
    start: int = 0
    end: int = -1
    """Of the stretch, in bytes; -1 for the whole file."""
    line: int = 1
    """The number of the first line of the stretch."""
    sha256: str = ""
    """Of the whole file, where a stretch of it is read."""

    @property
    def is_whole(self) -> bool:
        return self.end < 0

    @property
    def bytes(self) -> int:
        """To read."""
        return self.size if self.is_whole else self.end - self.start


class ImportJob(Struct, frozen=True):
    """The job, as every worker has to know it."""

    root: str
    """The workspace, to name files in."""
    staging: str
    """Where the runs of a share are written before they come into the store."""
    wanted: str
    """Name of the format; empty to tell it from each file."""
    model: str
    """Of calls whose file names none."""
    prices: Mapping[str, Mapping[str, float]]
    began: int
    """Milliseconds since 1970, which the ids of the runs begin with."""
    nonce: str
    """Tells the ids of this import from those of another one that began in the same millisecond."""
    sends: bool = False
    """The workers do not see ``staging``: they send the files of the runs."""


class ImportedPart(Struct, frozen=True):
    """The result of a part."""

    runs: tuple[ImportedRun, ...] = ()
    fault: str = ""
    """Why it gave no run."""
    files: Mapping[str, bytes] = {}
    """Of the runs, by path below ``journal/``, where they are sent."""


class _Target(ImportTarget):
    """Gives runs ids that follow from their part and their place in it: a part that is read again gives the same runs,
    byte for byte, and never a second time."""

    def __init__(self, project: Project, job: ImportJob, store: Path, number: int) -> None:
        super().__init__(project, Store(store))
        self.prices = PriceTable(job.prices)
        began = datetime.fromtimestamp(job.began / 1000, UTC)
        self.clock = FileClock(began.isoformat(timespec="microseconds").replace("+00:00", "Z"))
        self._job, self._number, self._count = job, number, 0

    def names(self, title: str) -> tuple[str, str]:
        ordinal = (self._number << 24) | self._count
        self._count += 1
        digest = hashlib.sha256(f"{self._job.nonce}:{ordinal}".encode()).hexdigest()
        # UUIDv7: 48 bits of time, then 74 that are free: 48 for the order in the files, 26 by chance.
        free = ((ordinal & (1 << 48) - 1) << 26) | (int(digest[:8], 16) & (1 << 26) - 1)
        value = (self._job.began << 80) | (0x7 << 76) | ((free >> 62) << 64) | (0x2 << 62) | (free & (1 << 62) - 1)
        return str(uuid.UUID(int=value)), new_session_id(title, digest[-8:])


@lru_cache(maxsize=2)
def _prepared(job: bytes) -> tuple[ImportJob, Project]:
    read = msgspec.msgpack.decode(job, type=ImportJob)
    return read, Project.at(Path(read.root))


class ImportWork(Struct, frozen=True):
    """Reads parts and writes their runs, in whichever process."""

    job: bytes
    """An ``ImportJob``, as MessagePack."""

    def __call__(self, parts: tuple[ImportPart, ...]) -> list[ImportedPart]:
        job, project = _prepared(self.job)
        encodings().forget()
        return [_sent(project, job, part) if job.sends else _staged(project, job, part) for part in parts]


def _staged(project: Project, job: ImportJob, part: ImportPart) -> ImportedPart:
    folder = Path(job.staging) / str(part.number)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return _imported(_Target(project, job, folder, part.number), job, part)


def _sent(project: Project, job: ImportJob, part: ImportPart) -> ImportedPart:
    with SCRATCH.subfolder("runs") as home:
        found = _imported(_Target(project, job, home, part.number), job, part)
        journal = home / "journal"
        files = {
            str(file.relative_to(journal)): file.read_bytes()
            for file in sorted(journal.rglob("*"))
            if file.is_file() and file.name != "writer.lock"
        }
    return replace(found, files=files)


def _imported(target: ImportTarget, job: ImportJob, part: ImportPart) -> ImportedPart:
    file = Path(part.file)
    try:
        if is_url(part.file):
            runs = _from_url(target, job, part)
        elif (state := file.stat()) and not file.is_dir() and (state.st_size, state.st_mtime_ns) != _known(part):
            raise CannotOpen(f"{part.file}: error: was changed since this import began: --anew reads it again")
        elif part.is_whole:
            runs = import_into(target, file, job.wanted, job.model)
        else:
            with file.open("rb") as stream:
                stream.seek(part.start)
                lines = stream.read(part.bytes)
            found = _lines(target.project.shown(file), BytesIO(lines), job.wanted, part)
            runs = import_found(target, found, file, job.model)
    except CannotOpen as fault:
        return ImportedPart(fault=str(fault))
    except OSError as fault:
        return ImportedPart(fault=f"{part.file}: error: cannot be read: {fault.strerror or fault}")
    return ImportedPart(tuple(runs))


def _known(part: ImportPart) -> tuple[int, int]:
    return part.size, part.modified


def _from_url(target: ImportTarget, job: ImportJob, part: ImportPart) -> list[ImportedRun]:
    """A file that fsspec opens: copied here, because formats are told by looking at it more than once."""
    name = Path(part.file.rstrip("/").rpartition("/")[2] or "remote")
    with SCRATCH.subfolder("copy") as home:
        copy = home / name
        with opened_url(part.file) as source, copy.open("wb") as out:
            shutil.copyfileobj(source, out, _BLOCK)
        found = (
            (replace(origin, file=part.file), one)
            for origin, one in read_conversations(target.project, copy, job.wanted)
        )
        try:
            return import_found(target, found, name, job.model)
        except CannotOpen as fault:
            raise CannotOpen(str(fault).replace(str(copy), part.file)) from None


def _lines(shown: str, lines: BinaryIO, wanted: str, part: ImportPart) -> Iterator[tuple[Origin, FoundConversation]]:
    try:
        for one in read_lines(lines, wanted, part.line):
            yield Origin(one.format.name, shown, part.sha256), one
    except Unreadable as fault:
        raise CannotOpen(
            f"{shown}:{part.line}: error: {part.bytes:,} bytes from here on are left out: {fault}"
        ) from None


def parts_of(files: Iterable[Path | str], wanted: str = "") -> Iterator[ImportPart]:
    """The files, and a large one with a conversation on each line as stretches. Raises CannotOpen."""
    number = 0
    for file in files:
        for part in _parts(file, wanted):
            yield replace(part, number=number)
            number += 1


def _parts(file: Path | str, wanted: str) -> Iterator[ImportPart]:
    if isinstance(file, str):
        yield ImportPart(0, file, size_of_url(file), 0)
        return
    try:
        state = file.stat()
        whole = ImportPart(0, str(file.absolute()), state.st_size, state.st_mtime_ns)
        if state.st_size <= SLICE or not file.is_file():
            yield whole
            return
        if not _is_by_line(file, wanted):
            yield whole
            return
        with file.open("rb") as stream:
            stretches, digest = _stretches(stream)
    except OSError as fault:
        raise CannotOpen(f"{file}: error: cannot be read: {fault.strerror}") from None
    for start, end, line in stretches:
        yield replace(whole, start=start, end=end, line=line, sha256=digest)


def _stretches(stream: BinaryIO) -> tuple[list[tuple[int, int, int]], str]:
    """Stretches of whole lines, with their bounds in bytes and the number of their first line; the SHA-256 of all."""
    found: list[tuple[int, int, int]] = []
    digest = hashlib.sha256()
    start, first, line, at = 0, 1, 1, 0
    while block := stream.read(_BLOCK):
        digest.update(block)
        cut = block.rfind(b"\n") + 1 if at + len(block) - start >= SLICE else 0
        if cut:
            found.append((start, at + cut, first))
            start, first = at + cut, line + block.count(b"\n", 0, cut)
        line += block.count(b"\n")
        at += len(block)
    if at > start:
        found.append((start, at, first))
    return found, digest.hexdigest()


class ImportProgress(ArchiveProgress):
    """Counts bytes, and the runs that came of them."""

    runs: int = 0
    earlier_runs: int = 0
    calls: int = 0
    messages: int = 0


class _Plan(Struct, frozen=True):
    parts: tuple[ImportPart, ...]
    started: int
    """Milliseconds since 1970."""
    nonce: str


class ArchiveImport:
    """One command's import. A context manager: it holds what is done until ``finish``."""

    def __init__(
        self,
        project: Project,
        named: Sequence[str],
        parts: Callable[[], Iterable[ImportPart]],
        wanted: str = "",
        model: str = "",
        *,
        anew: bool = False,
        nonce: str = "",
    ) -> None:
        """``named``: what the person named, which tells this import from others. ``parts`` is asked when it begins, not
        when it goes on. ``nonce``: by chance unless it is given."""
        about = {"version": __version__, "named": named, "wanted": wanted, "model": model}

        def planned() -> _Plan:
            now = time.time_ns() // 1_000_000
            return _Plan(tuple(parts()), now, nonce or secrets.token_hex(8))

        self._folder = WorkFolder(project.store.root, "import", about, _Plan, planned, ImportedPart, anew=anew)
        self._project, self._wanted, self._model = project, wanted, model

    def __enter__(self) -> ArchiveImport:
        """Raises StoreBusy, StoreError, and what ``parts`` raises."""
        with ExitStack() as opening:
            self._plan = opening.enter_context(self._folder).plan
            self.began = self._folder.began
            self._shares = split(self._plan.parts, MOST_SHARE, lambda part: part.bytes, SLICE)
            done = self._folder.done()
            self.progress = ImportProgress(sum(part.bytes for part in self._plan.parts), noun="byte")
            for number in done:
                self._done(self._shares[number], self._folder.results(number))
            opening.pop_all()
        self._left = [share for share in self._shares if share.number not in done]
        self.progress.earlier, self.progress.earlier_runs = self.progress.done, self.progress.runs
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.__exit__(kind, error, trace)

    @property
    def _staging(self) -> Path:
        return self._folder.path / "staging"

    def run(
        self,
        workers: Workers,
        observe: Callable[[ImportProgress], None] = lambda progress: None,
        *,
        elsewhere: bool = False,
    ) -> None:
        """Read what is not read yet. ``elsewhere``: the workers do not see the store.

        Raises StoreError, WorkersFault.
        """
        job = ImportJob(
            str(self._project.root),
            str(self._staging),
            self._wanted,
            self._model,
            dict(self._project.settings.prices),
            self._plan.started,
            self._plan.nonce,
            elsewhere,
        )
        redact = self._project.redactor()
        for share, results in workers.results(ImportWork(msgspec.msgpack.encode(job)), self._left):
            found = list[ImportedPart]()
            for part, one in zip(share.items, results, strict=True):
                if isinstance(one, Lost):
                    one = ImportedPart(fault=f"{part.file}: error: is left out: {one.reason}")
                elif one.files and any(redact(text)[1] for text in _texts(one.files)):
                    # The worker does not know the secrets of this machine: what holds one is read here.
                    one = _staged(self._project, replace(job, sends=False), part)
                elif one.files:
                    one = self._written(part, one)
                found.append(one)
            self._folder.keep(share.number, found)
            self._done(share, found)
            observe(self.progress)

    def _written(self, part: ImportPart, found: ImportedPart) -> ImportedPart:
        """The runs that a worker has sent, beside the store."""
        journals = self._staging / str(part.number) / "journal"
        shutil.rmtree(journals, ignore_errors=True)
        for name, body in found.files.items():
            file = journals / name
            if not file.resolve().is_relative_to(journals.resolve()):
                continue  # No worker of ours names a file outside.
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_bytes(body)
            file.chmod(0o600)
        return replace(found, files={})

    def _done(self, share: Share[ImportPart], found: Sequence[ImportedPart]) -> None:
        """Move the runs of a share that is written down as done into the store, as far as they are not there."""
        for part, one in zip(share.items, found, strict=True):
            staged = self._staging / str(part.number)
            if staged.is_dir():
                self._project.store.adopt(
                    folder for run in one.runs if (folder := staged / "journal" / run.run_id).is_dir()
                )
                shutil.rmtree(staged, ignore_errors=True)
            self.progress.done += part.bytes
            self.progress.runs += len(one.runs)
            self.progress.calls += sum(run.calls for run in one.runs)
            self.progress.messages += sum(run.messages for run in one.runs)

    def results(self) -> Iterator[ImportedPart]:
        """Yields the outcome of each part, in the order of the files."""
        return self._folder.all_results(len(self._shares))

    def finish(self) -> None:
        """Forget what was done; where a part gave no run, keep the rest: the same command tries such parts again."""
        failed = [
            number for number in range(len(self._shares)) if any(one.fault for one in self._folder.results(number))
        ]
        if not failed:
            self._folder.remove()
        for number in failed:
            self._folder.forget(number)


def _texts(files: Mapping[str, bytes]) -> Iterator[str]:
    return (body.decode("utf-8", "replace") for body in files.values())


def is_large(files: Sequence[Path], wanted: str = "") -> bool:
    """Returns whether there is so much to read that it is worth several processes, and that the same command continues
    after a kill: many files, many bytes, or a file of several pieces. ``wanted``: the name of the format."""
    if len(files) > MOST_SHARE:
        return True
    sizes = {file: file.stat().st_size for file in files if file.is_file()}
    return sum(sizes.values()) > 32 * _BLOCK or any(
        size > _PIECES * SLICE and _is_by_line(file, wanted) for file, size in sizes.items()
    )


def _is_by_line(file: Path, wanted: str) -> bool:
    with file.open("rb") as stream:
        return is_by_line(stream, wanted)
