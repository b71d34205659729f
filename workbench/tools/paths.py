"""Limits the files that tools may touch: those below the workspace, through no link out of it, and no secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from workbench.engine.current import working_folder
from workbench.tools.calling import check
from workbench.tools.hidden import hidden_below, is_hidden, is_hidden_path, linked

SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".tox", ".mypy_cache"})
"""Folders that listings and searches pass over; a path that names one is read all the same."""


class PathRefused(ValueError):
    """A path that a tool may not touch; the message is for the model."""


class Workspace(Struct, frozen=True):
    """The folders that tools may read; only ``root`` may be written, and only from the sandbox.

    Both are resolved. ``also`` holds the folder of a cascade that was opened from elsewhere. ``store`` is hidden too
    when it lies below one of them.
    """

    root: Path
    also: tuple[Path, ...] = ()
    store: Path | None = None
    inside: tuple[Path, ...] = ()
    """Folders inside those, where a name that is not found in them is looked for: that of the cascade."""

    @classmethod
    def of(cls, root: Path, *also: Path, store: Path | None = None) -> Workspace:
        """Resolve all folders. A folder inside one named before it adds no access, only a place to look for names."""
        kept: list[Path] = [root.resolve(strict=True)]
        inside: list[Path] = []
        for folder in also:
            real = folder.resolve(strict=True)
            if not any(real.is_relative_to(other) for other in kept):
                kept.append(real)
            elif real not in kept:
                inside.append(real)
        return cls(kept[0], tuple(kept[1:]), store.resolve() if store else None, tuple(inside))

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self.root, *self.also)

    def find(self, path: str) -> Path:
        """The real path of an existing file or folder, given relative to the workspace or absolute inside it.

        Raises PathRefused when it does not exist, leaves the workspace (links included), or is hidden.
        """
        if "\0" in path or not path:
            raise PathRefused("the path is empty or holds a NUL character")
        begin = working_folder()
        starts = (self._found(begin, (*self.folders, *self.inside)),) if begin else ()
        return self._found(path, (*starts, *self.folders, *self.inside))

    def begin(self) -> Path:
        """The folder that a command of the calling run begins in. Raises PathRefused where there is none."""
        named = working_folder()
        return self._found(named, (*self.folders, *self.inside)) if named else self.root

    def _found(self, path: str, starts: tuple[Path, ...]) -> Path:
        refusal = PathRefused(f"'{path}' does not exist in the workspace")
        for folder in starts:
            try:
                real = (folder / path).resolve(strict=True)
                return self.admit(real, path)
            except PathRefused as fault:
                refusal = fault
            except OSError:
                continue
            except RuntimeError as fault:
                raise PathRefused(f"'{path}' is a loop of links") from fault
        raise refusal

    def admit(self, real: Path, shown: str) -> Path:
        """Give back a resolved path that may be read. Raises PathRefused otherwise."""
        for folder in self.folders:
            if real.is_relative_to(folder):
                if is_hidden_path(real.relative_to(folder).parts) or self._in_store(real) or self._is_twin(real):
                    raise PathRefused(f"'{shown}' is not open to tools")
                return real
        raise PathRefused(f"'{shown}' lies outside the workspace")

    def shown(self, real: Path) -> str:
        """The path as a model sees it: relative to its folder, with ``/``."""
        for folder in self.folders:
            if real.is_relative_to(folder):
                return real.relative_to(folder).as_posix()
        return real.as_posix()

    def walk(self, start: Path, *, deep: bool = True) -> Iterator[os.DirEntry[str]]:
        """Files, folders and links in a folder (``deep``: and below), sorted by name, folders before what they hold.

        Links are given, not followed. Hidden names never appear; with ``deep`` SKIPPED folders do not either.
        """
        pending = [start]
        twins: frozenset[str] | None = None
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(folder) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError:
                continue
            inner: list[Path] = []
            for entry in entries:
                check()
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_hidden(entry.name) or self._in_store(Path(entry.path)) or self._in_git(entry.path):
                    continue
                if not is_folder and linked(entry.path):
                    twins = self._hidden() if twins is None else twins
                    if entry.path in twins:
                        continue
                if is_folder and deep and entry.name in SKIPPED:
                    continue
                yield entry
                if is_folder and deep:
                    inner.append(Path(entry.path))
            pending += reversed(inner)

    def _in_git(self, path: str) -> bool:
        """Returns whether it is a setting or a hook of a repository."""
        return "/.git/" in path.casefold() and any(
            is_hidden_path(Path(path).relative_to(folder).parts)
            for folder in self.folders
            if Path(path).is_relative_to(folder)
        )

    def _is_twin(self, real: Path) -> bool:
        """Returns whether a file is a further name of one that is hidden."""
        return linked(str(real)) is not None and str(real) in self._hidden()

    def _hidden(self) -> frozenset[str]:
        """All that is hidden now, as whole paths."""
        also = (self.store,) if self.store else ()
        return frozenset(
            os.path.join(folder, path)  # noqa: PTH118 - names that are no text stay as they are
            for folder in self.folders
            for path in hidden_below(folder, also)
        )

    def _in_store(self, real: Path) -> bool:
        return self.store is not None and real.is_relative_to(self.store)


def is_regular(path: Path) -> bool:
    """True for a plain file: reading a pipe, a socket or a device could wait for ever."""
    return stat.S_ISREG(path.stat().st_mode)
