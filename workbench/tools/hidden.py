"""Names in a folder that tools never see: the store, files of secrets, and the settings and hooks of git."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from workbench.tools.calling import check

STORE = ".workbench"
_EXAMPLES = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})
_GIT_HIDDEN = frozenset({"config", "config.worktree", "hooks"})
_GIT_DATA = frozenset({"objects", "refs", "logs"})
"""Folders of a repository whose names are those of commits and branches: a branch may be called ``config``."""

Inode = tuple[int, int]


def is_hidden(name: str) -> bool:
    """True for the store and for files of secrets (``.env``, ``.env.local``, …), in any letter case."""
    folded = name.casefold()
    return folded in (STORE, ".env") or (folded.startswith(".env.") and folded not in _EXAMPLES)


def is_hidden_path(parts: Sequence[str]) -> bool:
    """True for what lies in the store or is a file of secrets, at any depth, and for settings and hooks of a git
    repository: settings hold the passwords of remotes, and both make git run programs.

    ``parts`` are the names below a root.
    """
    for index, part in enumerate(parts):
        if is_hidden(part):
            return True
        if part.casefold() == ".git":
            inner = [name.casefold() for name in parts[index + 1 :]]
            if inner and inner[0] not in _GIT_DATA and not _GIT_HIDDEN.isdisjoint(inner):
                return True
    return False


def hidden_below(root: Path, also: Iterable[Path] = ()) -> tuple[str, ...]:
    """All that tools never see below a folder, as relative paths with ``/``: hidden names, the paths of ``also``, and
    every other name (hard link) of a file among or below these.

    The whole tree is read, whatever its size or depth; no link is followed. A hidden folder stands for what it holds.
    A folder that cannot be looked through is hidden, too: what is in it is not known. Raises OSError where that is
    the root.
    """
    top = os.fspath(root)
    more = frozenset(os.fspath(path) for path in also if path != root and path.is_relative_to(root))
    found: list[str] = []
    for _ in _visible(top, more, found):
        pass  # Only what is hidden matters here.
    twins = {inode for path in found for file in _with_all_below(path) if (inode := linked(file))}
    if twins:
        numbers = {number for _, number in twins}
        visible = _visible(top, more, [])
        found += [entry.path for entry in visible if entry.inode() in numbers and linked(entry.path) in twins]
    return tuple(sorted(path[len(top) + 1 :] for path in found))


def linked(path: str) -> Inode | None:
    """The identity of a file that has more than one name; None for others."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_nlink > 1 and stat.S_ISREG(status.st_mode) else None


_LONGEST = 3000
"""Bytes of the path of a folder that is looked through: the kernel takes 4,096, and a name in it may have 255."""

_PLAIN, _GIT_TOP, _GIT_INNER = range(3)
"""Where a folder lies: in no repository's ``.git``, is one, or is below one."""


def _visible(top: str, more: frozenset[str], hidden: list[str]) -> Iterator[os.DirEntry[str]]:
    """Files and links of a tree that are not hidden; hidden ones are added to ``hidden``."""
    pending = [(top, _PLAIN)]
    while pending:
        folder, where = pending.pop()
        check()
        try:
            entries = _seen(folder)
        except OSError:
            if folder == top:
                raise
            hidden.append(folder)
            continue
        for entry in entries:
            name = entry.name
            if (
                (name[0] == "." and is_hidden(name))
                or (where != _PLAIN and name.casefold() in _GIT_HIDDEN)
                or (more and entry.path in more)
            ):
                hidden.append(entry.path)
            elif not entry.is_dir(follow_symlinks=False):
                yield entry
            elif where == _PLAIN:
                pending.append((entry.path, _GIT_TOP if name.casefold() == ".git" else _PLAIN))
            else:
                is_data = where == _GIT_TOP and name.casefold() in _GIT_DATA
                pending.append((entry.path, _PLAIN if is_data else _GIT_INNER))


def _with_all_below(path: str) -> Iterator[str]:
    yield path
    for entry in _entries(path) if not Path(path).is_symlink() else ():
        if entry.is_dir(follow_symlinks=False):
            yield from _with_all_below(entry.path)
        else:
            yield entry.path


def _seen(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, none where there is no such folder (any more). Raises OSError where they cannot be
    had, or where the path is so long that those below could not."""
    if 4 * len(folder) > _LONGEST and len(os.fsencode(folder)) > _LONGEST:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), folder)
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        return _seen(folder)
    except OSError:
        return []
