"""A cgroup for one command: the kernel counts all its processes and all their memory together."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

_MOUNTS = Path("/proc/self/mountinfo")
_OWN = Path("/proc/self/cgroup")
_numbers = itertools.count(1)
_EXTRA = 4
"""Processes of the sandbox itself that the limit of a command must leave room for."""
_NAME = re.compile(r"workbench-[0-9]+-[0-9]+")


class NoCgroup(OSError):
    """Cgroups cannot be used here; the message says why."""


class Groups(Struct, frozen=True):
    """The cgroups of one command: one, or one for each controller where these are apart (version 1)."""

    folders: tuple[Path, ...]
    memory: Path | None
    """The one that limits memory."""

    @property
    def procs(self) -> list[str]:
        """The files that a process writes its id to in order to join."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def ended_for_memory(self) -> bool:
        """Returns whether the kernel has ended a process for the memory limit."""
        if self.memory is None:
            return False
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                found = re.search(r"^oom_kill (\d+)", (self.memory / name).read_text(), re.MULTILINE)
                return found is not None and int(found[1]) > 0
        return False


@contextmanager
def limited(processes: int, memory_bytes: int, note: Callable[[Path], None]) -> Iterator[Groups]:
    """Cgroups that hold at most so many processes and threads, and so much memory where that can be had; at the end
    what is left in them is killed and they are removed. ``note`` is told of each before it is made.

    Raises NoCgroup where this process may not make one that limits processes.
    """
    name = f"workbench-{os.getpid()}-{next(_numbers)}"
    folders: list[Path] = []
    try:
        pids = _make(_parents("pids"), name, {"pids.max": str(processes + _EXTRA)}, folders, note)
        memory: Path | None = None
        with contextlib.suppress(NoCgroup):
            memory = _memory(pids, name, memory_bytes, folders, note)
        yield Groups(tuple(folders), memory)
    finally:
        for folder in folders:
            end_group(folder)


def end_group(folder: Path) -> None:
    """Kill what is in a cgroup of ours, new members included, and remove it. Raises NoCgroup when some do not end
    within five seconds, ValueError for a folder that is no cgroup of ours."""
    if not _NAME.fullmatch(folder.name):
        raise ValueError(f"{folder} is not a cgroup of a command")
    until = time.monotonic() + 5.0
    everyone = folder / "cgroup.kill"
    while members := _members(folder):
        with contextlib.suppress(OSError):
            if everyone.exists():
                everyone.write_text("1")
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            raise NoCgroup(f"{len(members)} processes of {folder.name} will not end")
        time.sleep(0.002)
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as fault:  # What was killed is listed no more, and yet holds it for a moment.
            if time.monotonic() > until:
                raise NoCgroup(f"{folder} cannot be removed: {fault.strerror}") from fault
            time.sleep(0.002)
        else:
            return


def _members(folder: Path) -> list[int]:
    try:
        return [pid for line in (folder / "cgroup.procs").read_text().split() if (pid := int(line)) > 0]
    except FileNotFoundError:
        return []


def _memory(pids: Path, name: str, limit: int, folders: list[Path], note: Callable[[Path], None]) -> Path:
    """The same cgroup where it has that controller, else one of its own."""
    if (pids / "memory.max").exists():
        (pids / "memory.max").write_text(str(limit))
        with contextlib.suppress(OSError):
            (pids / "memory.swap.max").write_text("0")
        return pids
    folder = _make(_parents("memory"), name, {"memory.limit_in_bytes": str(limit)}, folders, note)
    with contextlib.suppress(OSError):  # Only where the kernel counts swap, too.
        (folder / "memory.memsw.limit_in_bytes").write_text(str(limit))
    return folder


def _make(
    parents: Sequence[Path], name: str, settings: dict[str, str], folders: list[Path], note: Callable[[Path], None]
) -> Path:
    """A new cgroup in the first place that takes it and its settings. Raises NoCgroup."""
    reason = "none is mounted"
    for parent in parents:
        folder = parent / name
        if not os.access(parent / "cgroup.procs", os.W_OK):
            reason = f"{parent} is not writable"
            continue
        try:
            note(folder)
            folder.mkdir()
        except OSError as fault:
            reason = f"{parent} is not writable: {fault.strerror}"
            continue
        try:
            for file, value in settings.items():
                (folder / file).write_text(value)
        except OSError as fault:
            folder.rmdir()
            reason = f"{', '.join(settings)} is not to be had in {parent}: {fault.strerror}"
            continue
        folders.append(folder)
        return folder
    raise NoCgroup(f"no cgroup: {reason}")


def _parents(controller: str) -> list[Path]:
    """Returns where a cgroup with a controller could be made: this process's own one (version 1); in version 2 any
    above its own, from the nearest, because one that holds processes cannot hand controllers on."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text().splitlines()]
        own = [line.split(":", 2) for line in _OWN.read_text().splitlines()]
    except OSError as fault:
        raise NoCgroup(f"no cgroups: {fault.strerror}") from fault
    places: list[Path] = []
    for fields in mounts:
        mount_point, (kind, *_rest, options) = Path(fields[4]), fields[fields.index("-") + 1 :]
        if kind == "cgroup" and controller in options.split(","):
            inner = next((path for _, names, path in own if controller in names.split(",")), "/")
            below = mount_point / inner.lstrip("/")
            return [below if below.is_dir() else mount_point]
        if kind == "cgroup2" and not places:
            inner = next((path for number, _, path in own if number == "0"), "/")
            below = mount_point / inner.lstrip("/")
            places = [place for place in below.parents if place.is_relative_to(mount_point)] or [mount_point]
    return places
