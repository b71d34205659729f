"""A cascade file, read and checked: what the app shows, what a run is made from, or why it cannot run."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from workbench.engine.definition import Definition
from workbench.language.graph import Graph
from workbench.language.lint.environment import LintEnvironment
from workbench.language.lint.linter import check
from workbench.language.load import Loaded
from workbench.language.model.cascade import Cascade
from workbench.language.problem import Problem, Severity
from workbench.language.read.endings import FILE_ENDINGS
from workbench.language.read.reading import MAX_BYTES, MAX_DOT_BYTES
from workbench.language.read.source import Source
from workbench.workspace.input_file import CannotOpen


class OpenedCascade(Struct, frozen=True):
    """A cascade as read at one moment."""

    file: Path
    shown: str
    """The file as the user names it, for messages."""
    loaded: Loaded
    problems: tuple[Problem, ...]
    definition: Definition | None
    """None when an error prevents a run."""

    @property
    def source(self) -> Source:
        return self.loaded.source

    @property
    def text(self) -> str:
        return self.loaded.source.text

    @property
    def cascade(self) -> Cascade | None:
        """The part that can be shown: the cascade, or as much of it as could be read."""
        return self.loaded.cascade or self.loaded.draft

    @property
    def graph(self) -> Graph | None:
        return self.loaded.graph

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)


class FileReader:
    """Reads files named in a cascade: relative to it, then to the workspace, then to folders of the workspace where
    cascades lie; never outside."""

    def __init__(self, folder: Path, root: Path, also: Sequence[str] = ()) -> None:
        """``also``: folders of the workspace, as ``tackle_dirs`` names them."""
        self._bounds = (folder.resolve(), root.resolve())
        self._bases = (*self._bounds, *(root.resolve() / name for name in also))

    def path(self, name: str) -> Path | None:
        """The file that a name means, if it exists within the bounds."""
        for base in self._bases:
            path = (base / name).resolve()
            if any(path.is_relative_to(bound) for bound in self._bounds) and path.is_file():
                return path
        return None

    def text(self, name: str) -> str | None:
        """Its text; None if the file is missing or is not UTF-8."""
        path = self.path(name)
        if path is None:
            return None
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def read_bytes(file: Path, shown: str) -> bytes:
    """A file's bytes; of a pipe or a device, hardly more than a cascade can have.

    Raises CannotOpen in words, also for a pipe without a writer: waiting for one would look like a hang.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            mode = status.st_mode
            if stat.S_ISREG(mode) and status.st_size > MAX_DOT_BYTES:
                raise CannotOpen(f"{shown}: error: too large for a cascade: {status.st_size:,} bytes")
            first = _first(descriptor)
            if first == b"" and stat.S_ISFIFO(mode):
                raise CannotOpen(f"{shown}: error: is a pipe without a writer")
            if not stat.S_ISREG(mode):
                os.set_blocking(descriptor, True)
            return _to_the_end(descriptor, first or b"", endless=not stat.S_ISREG(mode))
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise CannotOpen(f"{shown}: error: no such file{_meant(file, shown)}") from None
    except IsADirectoryError:
        raise CannotOpen(f"{shown}: error: is a folder, not a cascade file (workbench open lists its files)") from None
    except BlockingIOError:
        raise CannotOpen(f"{shown}: error: has no end: it waits for more") from None
    except OSError as fault:
        raise CannotOpen(f"{shown}: error: cannot be read: {fault.strerror}") from fault


def _first(descriptor: int) -> bytes | None:
    """The bytes that can be read at once; None if a writer has yet to provide them."""
    try:
        return os.read(descriptor, MAX_BYTES)
    except BlockingIOError:
        return None


def _to_the_end(descriptor: int, data: bytes, *, endless: bool) -> bytes:
    parts, size = [data], len(data)
    while (size <= MAX_DOT_BYTES or not endless) and (part := os.read(descriptor, MAX_BYTES)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _meant(file: Path, shown: str) -> str:
    """A hint: the file beside it that was probably meant."""
    try:
        found = {path.stem: path.name for path in file.parent.iterdir() if path.suffix in FILE_ENDINGS}
    except OSError:
        return ""
    near = get_close_matches(file.stem, found, 1, 0.7)
    return f" (did you mean '{Path(shown).with_name(found[near[0]])}'?)" if near else ""


def opened(file: Path, shown: str, loaded: Loaded, reader: FileReader, around: LintEnvironment) -> OpenedCascade:
    """Check a cascade that was read."""
    problems = check(loaded, around)
    broken = any(problem.severity is Severity.ERROR for problem in problems)
    definition = None
    if loaded.cascade is not None and loaded.graph is not None and not broken:
        definition = Definition(
            loaded.cascade,
            loaded.source,
            loaded.graph,
            included(loaded.cascade, reader),
        )
    return OpenedCascade(file, shown, loaded, problems, definition)


def included(cascade: Cascade, reader: FileReader) -> dict[str, str]:
    """Texts of the ``@file`` templates that the phases name, as far as they exist."""
    names = [
        phase.instructions[1:].strip()
        for phase in cascade.phases
        if phase.instructions and phase.instructions.startswith("@")
    ]
    texts = {name: reader.text(name) for name in names}
    return {name: text for name, text in texts.items() if text is not None}
