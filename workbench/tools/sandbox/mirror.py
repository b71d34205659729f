"""A copy of a workspace for one command at a time, where the kernel offers no overlay; only what changed is copied
again."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.tools.calling import check
from workbench.tools.sandbox.merging import Entry, Parts, kind_of

_State = tuple[int, ...]
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Mirror:
    """A folder that holds what tools may see of a workspace. ``user`` is the id that its files belong to, if not ours.

    Not safe for two commands at once.
    """

    def __init__(self, workspace: Path, folder: Path, user: int | None) -> None:
        self.workspace = workspace
        self.folder = folder
        self._root = os.fspath(folder)
        self.user = user
        folder.mkdir(mode=0o700)
        self._own(folder)
        self._source: dict[str, _State] = {}
        self._copied: dict[str, _State] = {}
        """Relative names of all that is in the copy, and how it looked when it was made."""
        self._modes: dict[str, tuple[int, int]] = {}
        """Permissions of each folder of the copy, and those of the original."""
        self._below: dict[str, set[str]] = {}
        """Names in each folder of the copy."""

    def align(self, hidden: frozenset[str]) -> None:
        """Make the copy what the workspace is now, without ``hidden`` (relative names). Raises OSError when the copy
        cannot be written."""
        before, self._below = self._copied, {}
        self._copied = {}
        self._modes = {}
        pending = [""]
        while pending:
            folder = pending.pop()
            names = self._below[folder] = set()
            # Folders are opened step by step: another command's changes could make one of them a link meanwhile.
            with _folder(self.workspace, folder) as opened:
                for base in _names(opened):
                    check()
                    name = f"{folder}/{base}" if folder else base
                    if name in hidden:
                        continue
                    kind = self._take(opened, base, name, before.get(name))
                    if kind != "other":
                        names.add(base)
                    if kind == "folder":
                        pending.append(name)
            for entry in _entries(self.folder / folder):
                if entry.name not in names:
                    _remove(Path(entry.path))

    def changed(self, folder: int, parts: Parts) -> list[Entry]:
        """Returns the entries that a command has changed in an open folder of the copy (a ``Listing``)."""
        place = "/".join(parts)
        known = self._below.get(place, set())
        entries: list[Entry] = []
        names = set(os.listdir(folder))
        for name in sorted(names):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            kind = kind_of(status)
            below = f"{place}/{name}" if place else name
            if kind == "folder":
                here, original = self._modes.get(below, (-1, None))
                as_it_was = stat.S_IMODE(status.st_mode) & 0o777 == here
                entries.append(Entry(name, "folder", mode=original if as_it_was else None))
            elif self._copied.get(below) != _state(status):
                entries.append(Entry(name, kind))
        return sorted([*entries, *(Entry(name, "gone") for name in known - names)], key=lambda entry: entry.name)

    def _take(self, folder: int | None, base: str, name: str, before: _State | None) -> str:
        """Bring one name of an open folder of the workspace up to date. Its kind; ``other`` for what is not copied."""
        try:
            status = os.stat(base, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return "other"
        kind = kind_of(status)
        if kind == "folder":
            self._copy_folder(name, status)
        elif kind != "other" and not self._is_as_it_was(name, status, before):
            return kind if self._copy(folder, base, name, status) else "other"
        return kind

    def _is_as_it_was(self, name: str, source: os.stat_result, before: _State | None) -> bool:
        """Returns whether neither a file nor its copy has changed since it was copied."""
        if before is None or self._source.get(name) != _state(source):
            return False
        try:
            there = os.lstat(f"{self._root}/{name}")
        except OSError:
            return False
        self._copied[name] = before
        return _state(there) == before

    def _copy_folder(self, name: str, source: os.stat_result) -> None:
        copy, original = self.folder / name, stat.S_IMODE(source.st_mode) & 0o777
        if copy.is_symlink() or not copy.is_dir():
            _remove(copy)
            copy.mkdir()
            self._own(copy)
        copy.chmod(original | 0o700)
        self._modes[name] = (original | 0o700, original)

    def _copy(self, folder: int | None, base: str, name: str, source: os.stat_result) -> bool:
        """Copy a file or a link; False where it cannot be read."""
        copy = self.folder / name
        _remove(copy)
        try:
            link = os.readlink(base, dir_fd=folder) if stat.S_ISLNK(source.st_mode) else None
            original = os.open(base, _FILE, dir_fd=folder) if link is None else -1
        except OSError:
            return False
        if link is not None:
            copy.symlink_to(link)
        else:
            with open(original, "rb") as data, copy.open("wb") as out:  # noqa: PTH123 - an open file
                if not stat.S_ISREG(os.fstat(original).st_mode):
                    return False
                shutil.copyfileobj(data, out, 1 << 20)
            copy.chmod(stat.S_IMODE(source.st_mode) & 0o777 | 0o600)
            os.utime(copy, ns=(source.st_atime_ns, source.st_mtime_ns))
        self._own(copy)
        self._source[name] = _state(source)
        self._copied[name] = _state(copy.lstat())
        return True

    def _own(self, path: Path) -> None:
        if self.user is not None:
            os.chown(path, self.user, self.user, follow_symlinks=False)


def _state(status: os.stat_result) -> _State:
    """Equal only if nothing was written: no command can set the time of its last change back."""
    return (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_uid)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        _unlock(path)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _unlock(folder: Path) -> None:
    """A command may have locked folders of its own."""
    if os.geteuid() != 0:
        folder.chmod(0o700)
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                _unlock(Path(entry.path))


@contextmanager
def _folder(root: Path, name: str) -> Iterator[int | None]:
    """A folder below a root, open; no link is followed on the way. None where it cannot be had."""
    at: int | None = os.open(root, _FOLDER)
    try:
        for part in name.split("/") if name else ():
            outer, at = at, None
            with contextlib.suppress(OSError):
                at = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=outer)
            if outer is not None:
                os.close(outer)
            if at is None:
                break
        yield at
    finally:
        if at is not None:
            os.close(at)


def _names(folder: int | None) -> list[str]:
    try:
        return [] if folder is None else os.listdir(folder)  # noqa: PTH208 - an open folder
    except OSError:
        return []


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []
