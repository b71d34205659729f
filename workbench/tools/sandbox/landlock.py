"""The Landlock level: the kernel limits the files and TCP ports that a command reaches, and its filter of calls
(``calls.py``) what else it would share with its user. Weak: there are no namespaces, so the first gap that the filter
does not know leads out, and on machines whose calls are not known there is no filter."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path

from workbench.tools.sandbox.bwrap import Job

WEAK = "landlock (weak)"
_CREATE_RULESET = 444
_VERSION = 1
_NEEDED_ABI = 4
"""The first that covers TCP (Linux 6.7)."""
# Of /proc only the command's own folder: the rest would show root the memory of the machine.
_READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    *("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/sys/devices/system/cpu"),
    *("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory"),
)


def why_not() -> str:
    """Returns why this level is not to be had here; empty when it is."""
    if sys.platform != "linux":
        return "only Linux has it"
    abi = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
    if abi < 0:
        return "the kernel was built or started without it"
    return "" if abi >= _NEEDED_ABI else f"this kernel's version ({abi}) does not cover the network"


def rules(job: Job, stage: Path) -> dict[str, list[str]]:
    """Returns the rules of the launcher: paths to read, to list only, and to write.

    ``stage`` holds what the command may write, and a copy of the workspace (``files``). Of the user's further folders
    what is not hidden is shared entry by entry, because rules can only add.
    """
    read = [*_READABLE, *map(str, job.readable)]
    write = [str(stage / "tmp"), "/dev/null"]
    if job.outbox:
        write.append(str(stage / "outbox"))
    (write if job.writable else read).append(str(stage / "files"))
    listed: list[str] = []
    for folder, hidden in job.folders.items():
        whole, ways = _shares(folder, {folder / name for name in hidden})
        read += map(str, whole)
        listed += map(str, ways)
    return {"read": read, "list": listed, "write": write}


def _shares(root: Path, hidden: set[Path]) -> tuple[list[Path], list[Path]]:
    """Paths to share whole, and folders to share by their entries: those that hold something hidden."""
    ways = {parent for path in hidden for parent in _between(root, path)}
    whole: list[Path] = []
    for folder in sorted(ways):
        whole += [path for path in _entries(folder) if path not in ways and path not in hidden]
    return whole if ways else [root], sorted(ways)


def _between(root: Path, path: Path) -> Iterable[Path]:
    """The folders from the root down to the one that holds the path."""
    return [parent for parent in path.parents if parent == root or parent.is_relative_to(root)]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.is_symlink())
    except OSError:
        return []
