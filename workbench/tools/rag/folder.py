"""The passages of a folder, read again where a file has changed; files that are no text are left out, and named."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from workbench.context.scoring import Ranking
from workbench.language.model.context import Rag
from workbench.tools.calling import check
from workbench.tools.globs import Glob
from workbench.tools.paths import PathRefused, Workspace

# Cuts a text into passages of about equal size that overlap, and knows the lines of each.


class Passage(Struct, frozen=True):
    """A piece of a file."""

    file: str
    """As tools name it: relative to the workspace."""
    name: str
    """The same relative to the folder that is searched."""
    number: int
    """Within its file, from 1."""
    first: int
    """Line, from 1."""
    last: int
    text: str

    @property
    def id(self) -> str:
        """``faq.md#3``: stays the same while the file does."""
        return f"{self.name}#{self.number}"

    @property
    def lines(self) -> str:
        return f"line {self.first:,}" if self.first == self.last else f"lines {self.first:,}-{self.last:,}"


def passages_of(file: str, name: str, text: str, size: int, overlap: int) -> list[Passage]:
    """Passages of at most ``size`` characters that end with a line where one ends in their second half, else with a
    word; neighbours share at most ``overlap`` characters (never more than half a passage). Blanks alone are none."""
    overlap = min(overlap, size // 2)
    breaks = [at for at, character in enumerate(text) if character == "\n"]
    found: list[Passage] = []
    start = 0
    while start < len(text):
        check()
        end = _end(text, start, size)
        body = text[start:end]
        if body.strip():
            first, last = (bisect_right(breaks, at - 1) + 1 for at in (start, end - 1))
            found.append(Passage(file, name, len(found) + 1, first, last, body))
        if end == len(text):
            break
        start = max(_back(text, end, overlap), start + 1)
    return found


def _end(text: str, start: int, size: int) -> int:
    """Returns where a passage ends that begins at ``start``."""
    if start + size >= len(text):
        return len(text)
    for mark in ("\n", " "):
        cut = text.rfind(mark, start + size // 2, start + size)
        if cut >= 0:
            return cut + 1
    return start + size


def _back(text: str, end: int, overlap: int) -> int:
    """Returns where the next passage begins: at a line, else at a word, within the overlap."""
    if not overlap:
        return end
    for mark in ("\n", " "):
        cut = text.find(mark, end - overlap - 1, end - 1)
        if cut >= 0:
            return cut + 1
    return end - overlap


MAX_FILES = 5_000
MAX_FILE_BYTES = 4_000_000
MAX_PASSAGES = 50_000
MAX_CHARS = 100_000_000
"""Characters of all passages together."""


class IndexedFolder(Struct, frozen=True, dict=True):
    """A folder as it was at one moment."""

    folder: str
    """As tools name it."""
    passages: tuple[Passage, ...]
    files: tuple[str, ...]
    """Those that hold passages, by name."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Files that are not searched, and why."""

    @cached_property
    def ranking(self) -> Ranking:
        return Ranking([passage.text for passage in self.passages])

    @cached_property
    def by_id(self) -> dict[str, int]:
        return {passage.id: index for index, passage in enumerate(self.passages)}


class _ReadFile(Struct, frozen=True):
    """The result of reading a file, with its size and time then."""

    seen: tuple[int, int, int]
    passages: tuple[Passage, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class Folder:
    """One folder under one rule. ``indexed`` may be asked from several threads."""

    workspace: Workspace
    path: Path
    """Resolved, and inside the workspace."""
    rule: Rag
    _read: dict[str, _ReadFile] = field(default_factory=dict)
    _problems: list[tuple[str, str]] = field(default_factory=list)
    _indexed: IndexedFolder | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def indexed(self) -> IndexedFolder:
        """The passages as the files are now; only files that changed are read. Raises ValueError for a pattern that
        cannot be read."""
        with self._lock:
            before, problems = self._read, list[tuple[str, str]]()
            now: dict[str, _ReadFile] = {}
            room, chars = MAX_PASSAGES, MAX_CHARS
            full = ""
            for entry in self._entries(problems):
                check()
                shown = self.workspace.shown(Path(entry.path))
                if full:
                    problems.append((shown, full))
                    continue
                one = self._looked(entry, shown, before.get(shown))
                room -= len(one.passages)
                chars -= sum(len(passage.text) for passage in one.passages)
                if room < 0 or chars < 0:  # Neither this file nor those behind it are kept, or read again and again.
                    full = f"more than {MAX_PASSAGES:,} passages or {MAX_CHARS / 1e6:g} MB of text in all"
                    problems.append((shown, full))
                else:
                    now[shown] = one
            if self._indexed is None or (now, problems) != (before, self._problems):
                self._indexed = self._collected(now, problems)
            self._read, self._problems = now, problems
            return self._indexed

    def _entries(self, problems: list[tuple[str, str]]) -> list[os.DirEntry[str]]:
        """The files that the rule takes; links are named, not followed."""
        include = [Glob(pattern) for pattern in self.rule.include]
        exclude = [Glob(pattern) for pattern in self.rule.exclude]
        found: list[os.DirEntry[str]] = []
        for entry in self.workspace.walk(self.path, deep=self.rule.recursive):
            names = (entry.name, Path(entry.path).relative_to(self.path).as_posix())
            taken = not include or any(pattern.fullmatch(name) for pattern in include for name in names)
            if not taken or any(pattern.fullmatch(name) for pattern in exclude for name in names):
                continue
            if entry.is_symlink():
                problems.append((self.workspace.shown(Path(entry.path)), "a link"))
            elif entry.is_file(follow_symlinks=False):
                found.append(entry)
        for entry in found[MAX_FILES:]:
            problems.append((self.workspace.shown(Path(entry.path)), f"more than {MAX_FILES:,} files"))
        return found[:MAX_FILES]

    def _looked(self, entry: os.DirEntry[str], shown: str, before: _ReadFile | None) -> _ReadFile:
        try:
            stat = Path(entry.path).lstat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if before is not None and before.seen == seen:
                return before
            if stat.st_size > MAX_FILE_BYTES:
                return _ReadFile(seen, problem=f"{stat.st_size / 1e6:,.1f} MB; the limit is {MAX_FILE_BYTES / 1e6:g}")
            data = Path(entry.path).read_bytes()
        except OSError as fault:
            return _ReadFile((0, 0, 0), problem=fault.strerror or "unreadable")
        if b"\0" in data[:8192]:
            return _ReadFile(seen, problem="binary")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as fault:
            return _ReadFile(seen, problem=f"not UTF-8 at byte {fault.start:,}")
        name = Path(entry.path).relative_to(self.path).as_posix()
        size, overlap = self.rule.chunk_chars, self.rule.chunk_overlap
        if len(text) // size > MAX_PASSAGES:
            return _ReadFile(seen, problem=f"more than {MAX_PASSAGES:,} passages of {size:,} characters")
        return _ReadFile(seen, tuple(passages_of(shown, name, text, size, overlap)))

    def _collected(self, read: dict[str, _ReadFile], problems: list[tuple[str, str]]) -> IndexedFolder:
        passages: list[Passage] = []
        files: list[str] = []
        left_out = list(problems)
        for shown, one in sorted(read.items()):
            if one.problem:
                left_out.append((shown, one.problem))
            elif one.passages:
                passages += one.passages
                files.append(shown)
        return IndexedFolder(
            self.workspace.shown(self.path) or ".", tuple(passages), tuple(files), tuple(sorted(left_out))
        )


def folder_of(workspace: Workspace, directory: str, file: str) -> Path:
    """The folder that a cascade means: beside its file, then below the workspace. Raises PathRefused."""
    if "\0" in directory or not directory.strip():
        raise PathRefused("'directory' is empty or holds a NUL character")
    refusal = PathRefused(f"the folder '{directory}' does not exist")
    for base in ((workspace.root / file).parent, workspace.root):
        try:
            real = workspace.admit((base / directory).resolve(strict=True), directory)
        except PathRefused as fault:
            refusal = fault
        except (OSError, RuntimeError):
            continue
        else:
            if real.is_dir():
                return real
            refusal = PathRefused(f"'{directory}' is a file, not a folder")
    raise refusal
