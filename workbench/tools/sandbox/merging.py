"""Merges what a command wrote into the workspace: changes that pass the rules, and nothing through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

from msgspec import Struct

from workbench.language.clean import clean_line
from workbench.tools.hidden import is_hidden_path

# What a sandboxed command may change of a workspace: all but what makes other programs run something.

PROTECTED_FILES = frozenset(
    {
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zprofile", ".zshenv"),
        *(".zlogin", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".envrc", ".exrc", ".vimrc", ".nvimrc"),
        *(".nvim.lua", ".gitconfig", ".gitmodules", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".netrc"),
        *(".pre-commit-config.yaml", ".tool-versions", ".mise.toml", ".mcp.json", ".gdbinit", ".lldbinit"),
        *(".devcontainer.json", ".rprofile", ".irbrc", ".pryrc", ".octaverc", ".lvimrc", ".autoenv", "mise.toml"),
        "workbench.yaml",
    }
)
"""Shell start files, and settings by which a tool runs commands when a person next uses it in the folder."""
PROTECTED_FOLDERS = frozenset(
    {
        *(".vscode", ".idea", ".vim", ".zed", ".helix", ".husky", ".devcontainer", ".direnv", ".cargo", ".mise"),
        *(".claude", ".codex", ".cursor", ".gemini", ".windsurf", ".hg", ".jj", ".sl"),
    }
)
"""Settings and hooks of editors, of agents, and of version control other than git."""
GIT_FOLDERS = frozenset({"objects", "refs", "logs"})
GIT_FILES = frozenset(
    {
        *("head", "orig_head", "fetch_head", "merge_head", "merge_msg", "merge_mode", "squash_msg", "auto_merge"),
        *("cherry_pick_head", "revert_head", "commit_editmsg", "index", "packed-refs", "shallow", "description"),
    }
)
"""All that may change inside ``.git``: what commits, branches and the index are kept in. The rest can name programs or
lead to settings elsewhere."""
_REPOSITORY = frozenset({"head", "objects", "refs"})
_RUNS = frozenset({"config", "hooks"})
_ELSEWHERE = frozenset({"head", "commondir"})
"""A folder with these is a repository, too: its settings are those of the folder that ``commondir`` names."""


class NotMerged(Enum):
    """Why a change does not reach the workspace."""

    HIDDEN = "is kept from tools"
    GIT = "can make git run programs"
    GIT_LINK = "is a link, by which git would write elsewhere"
    PROTECTED = "can make other programs run something"


def kept(parts: Sequence[str], *, is_folder: bool) -> NotMerged | None:
    """Returns why a command may not make, change or remove a path; None where it may. ``parts`` are names below the
    root."""
    if is_hidden_path(parts):
        return NotMerged.HIDDEN
    names = [part.casefold() for part in parts]
    if ".git" in names:
        inner = names[names.index(".git") + 1 :]
        if not inner:
            return None if is_folder else NotMerged.GIT  # As a file it says where the repository of a worktree is.
        whole = inner[0] in GIT_FOLDERS or inner in (["info"], ["info", "exclude"], ["info", "refs"])
        return None if whole or (len(inner) == 1 and inner[0] in GIT_FILES) else NotMerged.GIT
    folders = names if is_folder else names[:-1]
    if not PROTECTED_FOLDERS.isdisjoint(folders) or names[-1] in PROTECTED_FILES | PROTECTED_FOLDERS:
        return NotMerged.PROTECTED
    return None


_GIT_HOOKS = frozenset(
    {
        *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "commit-msg"),
        *("prepare-commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-auto-gc"),
        *("post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change", "reference-transaction"),
    }
)
_GIT_S = 5.0
"""Seconds that git has for listing its settings."""


def named_by_git(root: Path, hidden: Iterable[str]) -> frozenset[str]:
    """Returns the paths below a folder that the settings of its repositories lead to, in lower case: a folder of hooks
    (``core.hooksPath``), further files of settings, and files that a setting names as a program or its argument.

    ``hidden`` are the paths in it that tools do not see, settings of repositories among them. Where git is not
    installed there is nothing.
    """
    git = shutil.which("git")
    own = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    inner = [root / path for path in hidden if path.casefold().endswith("/.git/config")]
    tops = [*([own] if own else []), *(path.parent.parent for path in inner if _leads_on(path))]
    found = {path for top in tops for path in _leads(git, top)} if git else set()
    inside = {path.relative_to(root) for path in found if path.is_relative_to(root)}
    names = {path.as_posix() for path in inside if path.parts}
    return frozenset(name.casefold() for name in names | (_GIT_HOOKS if Path() in inside else frozenset()))


def _leads_on(config: Path) -> bool:
    """Returns whether settings of a repository may name anything beside it: git is asked about few of a thousand."""
    with contextlib.suppress(OSError):
        return any(word in config.read_bytes().lower() for word in (b"hookspath", b"include", b"/"))
    return False


def _leads(git: str, top: Path) -> Iterator[Path]:
    """All that the settings of a repository name, through links as well."""
    command = [git, "-C", str(top), "config", "--list", "--null", "--show-origin"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(command, capture_output=True, timeout=_GIT_S, check=False).stdout
        fields = os.fsdecode(listed).split("\0")
        for origin, setting in zip(fields[::2], fields[1::2], strict=False):
            key, _, value = setting.partition("\n")
            for name in _names_in(key, value, Path(origin.removeprefix("file:")).parent, top):
                yield from {Path(os.path.normpath(top / name)), (top / name).resolve()}


def _names_in(key: str, value: str, beside: Path, top: Path) -> list[Path]:
    """What one setting leads to, in a file in the folder ``beside``: the words of a command are files if there are
    such."""
    try:
        if key == "core.hookspath":
            return [Path(value).expanduser()]
        if key.startswith("include") and key.endswith(".path"):
            return [beside / Path(value).expanduser()]
        return [Path(word) for one in value.split() if (top / (word := one.strip("!'\""))).is_file()]
    except (OSError, RuntimeError, ValueError):
        return []  # A name that is too long, or of a user that there is not.


def makes_repository(name: str, beside: Collection[str]) -> bool:
    """Returns whether a name completes a folder to a repository without ``.git``, whose settings git would use."""
    folded = name.casefold()
    if folded not in _REPOSITORY | _RUNS | _ELSEWHERE:
        return False  # Said without a look at the others: a folder may hold 100,000 names.
    names = {one.casefold() for one in beside} | {folded}
    if folded in _ELSEWHERE and names >= _ELSEWHERE:
        return True
    return folded in _REPOSITORY | _RUNS and names >= _REPOSITORY and not names.isdisjoint(_RUNS)


MAX_DEPTH = 100
"""Folders within folders that are taken over."""
MAX_NOTES = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20

Parts = tuple[str, ...]


class Entry(Struct, frozen=True):
    """One name that a command has made, changed or removed."""

    name: str
    kind: Literal["folder", "file", "link", "gone", "other"]
    anew: bool = False
    """A new folder, which shares nothing with the old one of that name."""
    mode: int | None = None
    """The permissions of a folder, where they are not those that it has in the command's view."""


Listing = Callable[[int, Parts], Sequence[Entry]]
"""The differences of an open folder of the command's, which is known by its place; in a folder that is not different in
itself, those below it may be."""


def overlaid(folder: int, _parts: Parts) -> list[Entry]:
    """The entries of the upper layer of an overlay file system."""
    entries: list[Entry] = []
    for name in _names(folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            entries.append(Entry(name, "folder", _is_opaque(folder, name)))
        elif stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            entries.append(Entry(name, "gone"))
        else:
            entries.append(Entry(name, kind_of(status)))
    return entries


def everything(folder: int, _parts: Parts) -> list[Entry]:
    """All that a folder holds."""
    return [Entry(name, kind_of(os.stat(name, dir_fd=folder, follow_symlinks=False))) for name in _names(folder)]


def _names(folder: int) -> list[str]:
    return sorted(os.listdir(folder))


def kind_of(status: os.stat_result) -> Literal["folder", "file", "link", "other"]:
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    if stat.S_ISREG(status.st_mode):
        return "file"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


@dataclass
class Merge:
    """Takes changes over, folder by folder. Both sides are reached through open folders alone, so that no link can
    lead out of either, whoever makes one meanwhile."""

    listing: Listing
    room: int
    """Bytes that may still be written: files with holes are smaller where they come from."""
    guarded: bool = True
    """Whether the rules of a workspace hold."""
    hidden: frozenset[str] = frozenset()
    """More names, with ``/``, that the command did not see: what it puts in their place is left out."""

    named: frozenset[str] = frozenset()
    """What settings of git lead to (``named_by_git``)."""

    def __post_init__(self) -> None:
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each change that was not taken over."""
        more = len(self._notes) - MAX_NOTES
        return (*self._notes[:MAX_NOTES], f"{more:,} more changes were left out") if more > 0 else tuple(self._notes)

    def run(self, source: int, target: int, parts: Parts = ()) -> None:
        """Take over what an open folder holds."""
        beside = set(_names(target))
        for entry in self.listing(source, parts):
            path = (*parts, entry.name)
            is_folder = entry.kind == "folder" or (entry.kind == "gone" and _is_folder(target, entry.name))
            try:
                if reason := self._refused(path, entry, is_folder, beside):
                    self._keep(reason, path, entry, source, target)
                else:
                    self._take(path, entry, source, target)
                    (beside.add if _exists(target, entry.name) else beside.discard)(entry.name)
            except OSError as fault:
                self._note(f"{_shown(path)} was left out: {fault.strerror or fault}")

    def _refused(self, path: Parts, entry: Entry, is_folder: bool, beside: set[str]) -> NotMerged | None:
        if not self.guarded:
            return None
        if reason := self._kept(path, is_folder=is_folder):
            return reason
        if entry.kind == "link" and ".git" in (part.casefold() for part in path):
            return NotMerged.GIT_LINK
        return NotMerged.GIT if entry.kind != "gone" and ".git" not in path and _completes(entry, beside) else None

    def _kept(self, path: Parts, *, is_folder: bool) -> NotMerged | None:
        if self.hidden and "/".join(path) in self.hidden:
            return NotMerged.HIDDEN
        return kept(path, is_folder=is_folder) or self._is_named(path, is_folder=is_folder)

    def _is_named(self, path: Parts, *, is_folder: bool) -> NotMerged | None:
        if not self.named:
            return None
        folded = "/".join(path).casefold()
        # A link in the place of a folder above would put something else there.
        below = not is_folder and any(name.startswith(f"{folded}/") for name in self.named)
        within = folded in self.named or any(folded.startswith(f"{name}/") for name in self.named)
        return NotMerged.PROTECTED if below or within else None

    # -- what passes -------------------------------------------------------------------------------------------------

    def _take(self, path: Parts, entry: Entry, source: int, target: int) -> None:
        name = entry.name
        if entry.kind == "gone":
            self._remove(path, target)
        elif entry.kind == "folder":
            if len(path) > MAX_DEPTH:
                self._note(f"{_shown(path)} was left out: more than {MAX_DEPTH} folders deep")
                return
            if entry.anew or not _is_folder(target, name):
                self._remove(path, target)
            mode = _mode(source, name) if entry.mode is None else entry.mode
            made, said = False, len(self._notes)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=target)
                made = True
            with opened(source, name, force=True) as inner, opened(target, name) as outer:
                self.run(inner, outer, path)
                if made and len(self._notes) > said and not _names(outer):
                    os.rmdir(name, dir_fd=target)  # All in it was left out: an empty .git would look like a repository.
                    return
                before = stat.S_IMODE(os.fstat(outer).st_mode)
                if before & 0o777 != mode:
                    os.fchmod(outer, before & ~0o777 | mode)
        elif entry.kind == "link":
            self._link(path, source, target)
        elif entry.kind == "file":
            self._file(path, source, target)
        else:
            self._note(f"{_shown(path)} was left out: it is neither a file nor a folder nor a link")

    def _link(self, path: Parts, source: int, target: int) -> None:
        name = path[-1]
        to = os.readlink(name, dir_fd=source)
        with contextlib.suppress(OSError):
            if os.readlink(name, dir_fd=target) == to:
                return
        self._remove(path, target)
        os.symlink(to, name, dir_fd=target)

    def _file(self, path: Parts, source: int, target: int) -> None:
        """A file that has the same content is left as it is, further names included; else it is replaced whole."""
        name = path[-1]
        with reading(source, name, force=True) as new:
            status = os.fstat(new)
            mode = stat.S_IMODE(status.st_mode) & 0o777
            with contextlib.suppress(OSError), reading(target, name) as old:
                there = os.fstat(old)
                as_it_is = stat.S_IMODE(there.st_mode) & 0o777 == mode
                # Permissions belong to a file under all its names, of which one may lie outside the workspace.
                if (as_it_is or there.st_nlink == 1) and same(new, old):
                    if not as_it_is:
                        os.fchmod(old, mode)
                    return
            if status.st_size > self.room:
                self._note(f"{_shown(path)} was left out: the command wrote more than the disk limit")
                return
            self.room -= status.st_size
            owner = _owner(target, name)
            if _is_folder(target, name):
                self._remove(path, target)
            copy_file(new, target, name, mode, owner)

    def _remove(self, path: Parts, target: int) -> None:
        """Remove what is there, except for what commands may not remove; its folders stay with it."""
        name = path[-1]
        try:
            is_folder = _is_folder(target, name)
            if not is_folder:
                os.unlink(name, dir_fd=target)
                return
        except FileNotFoundError:
            return
        with opened(target, name) as inner:
            for child in _names(inner):
                below = (*path, child)
                if self.guarded and (reason := self._kept(below, is_folder=_is_folder(inner, child))):
                    if reason is not NotMerged.HIDDEN:
                        self._note(f"{_shown(below)} may not be removed by a tool: it is still there")
                else:
                    self._remove(below, inner)
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=target)

    # -- what does not -----------------------------------------------------------------------------------------------

    def _keep(self, reason: NotMerged, path: Parts, entry: Entry, source: int, target: int) -> None:
        """Say so; what a person may want to look at is put beside, under a name that no program looks for."""
        there = _exists(target, entry.name)
        if entry.kind == "gone":
            if there and reason is not NotMerged.HIDDEN:
                self._note(f"{_shown(path)} may not be removed by a tool: it is still there")
            return
        if not self._differs(source, target, path, entry):
            return
        done = "changed" if there else "made"
        said = f"{_shown(path)} may not be {done} by a tool, it {reason.value}"
        if reason is not NotMerged.PROTECTED or entry.kind not in ("file", "folder"):
            self._note(f"{said}: what the command wrote was left out")
            return
        aside = _free_name(target, entry.name)
        if entry.kind == "file":
            with reading(source, entry.name, force=True) as new:
                if os.fstat(new).st_size > self.room:
                    self._note(f"{said}: what the command wrote was left out")
                    return
                self.room -= os.fstat(new).st_size
                copy_file(new, target, aside, 0o600, None)
        else:
            os.mkdir(aside, 0o700, dir_fd=target)
            # The rules hold there as well: a repository or another such folder could be inside.
            copy = Merge(overlaid if self.listing is overlaid else everything, self.room)
            with opened(source, entry.name, force=True) as inner, opened(target, aside) as outer:
                copy.run(inner, outer, (*path[:-1], aside))
            self.room = copy.room
            self._notes += copy._notes
        self._note(f"{said}: what the command wrote is in {aside}")

    def _differs(self, source: int, target: int, path: Parts, entry: Entry) -> bool:
        """Returns whether anything was written, and not only looked at or touched."""
        name = entry.name
        if entry.kind == "file":
            with contextlib.suppress(OSError), reading(source, name, force=True) as new, reading(target, name) as old:
                return not same(new, old)
        if entry.kind == "folder" and not entry.anew and _is_folder(target, name):
            with opened(source, name, force=True) as inner, opened(target, name) as outer:
                return any(
                    self._differs(inner, outer, (*path, below.name), below) for below in self.listing(inner, path)
                )
        if entry.kind == "gone":
            return _exists(target, name)
        return True

    def _note(self, text: str) -> None:
        self._notes.append(text)


@contextmanager
def opened(folder: int, name: str, *, force: bool = False) -> Iterator[int]:
    """A folder in an open folder; ``force`` for one that its command has locked. Raises OSError for a link."""
    inner = _open(folder, name, _FOLDER, 0o700 if force else 0)
    try:
        yield inner
    finally:
        os.close(inner)


@contextmanager
def reading(folder: int, name: str, *, force: bool = False) -> Iterator[int]:
    """A plain file in an open folder; ``force`` as for a folder. Raises OSError for all else."""
    file = _open(folder, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600 if force else 0)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        yield file
    finally:
        os.close(file)


def _open(folder: int, name: str, flags: int, mode: int) -> int:
    """Open an entry of a folder; where that is not permitted, with ``mode``, unless that is 0."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:
        if not mode:
            raise
        os.chmod(name, mode, dir_fd=folder)
        return os.open(name, flags, dir_fd=folder)


def copy_file(source: int, target: int, name: str, mode: int, owner: tuple[int, int] | None) -> None:
    """Write a whole file beside its place, then put it there."""
    temporary = f".{os.urandom(8).hex()}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    copy = os.open(temporary, flags, 0o600, dir_fd=target)
    try:
        with open(copy, "wb") as out, open(source, "rb", closefd=False) as new:  # noqa: PTH123 - open files
            new.seek(0)
            shutil.copyfileobj(new, out, _CHUNK)
            out.flush()
            if owner is not None and os.geteuid() == 0:
                os.fchown(copy, *owner)
            os.fchmod(copy, mode)
        os.rename(temporary, name, src_dir_fd=target, dst_dir_fd=target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=target)
        raise


def same(one: int, other: int) -> bool:
    """Returns whether two open files hold the same."""
    if os.fstat(one).st_size != os.fstat(other).st_size:
        return False
    at = 0
    while left := os.pread(one, _CHUNK, at):
        if left != os.pread(other, len(left), at):
            return False
        at += len(left)
    return True


def _completes(entry: Entry, beside: set[str]) -> bool:
    """Returns whether a name makes a folder a repository, or is one by which git runs programs there."""
    is_new = entry.name not in beside or entry.name.casefold() in ("config", "hooks")
    return (is_new or entry.name.casefold() == "commondir") and makes_repository(entry.name, beside)


def _is_opaque(folder: int, name: str) -> bool:
    with opened(folder, name, force=True) as inner:
        # Root's overlays keep it where no command can write it.
        kind = "trusted" if os.geteuid() == 0 else "user"
        with contextlib.suppress(OSError):
            return os.getxattr(inner, f"{kind}.overlay.opaque") == b"y"
    return False


def _is_folder(folder: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _mode(folder: int, name: str) -> int:
    return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) & 0o777


def _owner(folder: int, name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_uid, status.st_gid


def _free_name(folder: int, name: str) -> str:
    number = 1
    while _exists(folder, f"{name}.from-sandbox-{number}"):
        number += 1
    return f"{name}.from-sandbox-{number}"


def _shown(path: Parts) -> str:
    return clean_line("/".join(path), 300)
