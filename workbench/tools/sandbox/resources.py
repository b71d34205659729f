"""The environment and the resource limits that a command gets, and how its processes are counted."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from workbench.tools.sandbox import cgroup
from workbench.tools.sandbox.limits import PATH, Limits


def environment(env: Mapping[str, str], temp: str, outbox: str | None) -> dict[str, str]:
    """All that a command finds in its environment; ``env`` wins."""
    own = {"PATH": PATH, "HOME": temp, "TMPDIR": temp, "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}
    return own | ({"OUTBOX": outbox} if outbox else {}) | dict(env)


def resources(limits: Limits, *, count_processes: bool) -> dict[str, int]:
    """Resource limits by name. ``count_processes`` is for commands without a namespace: there all processes of the
    user count together, so what runs already is added."""
    values = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
    }
    counted_here = count_processes and sys.platform == "linux"
    return values | ({"RLIMIT_NPROC": limits.processes + _own_tasks()} if counted_here else {})


@asynccontextmanager
async def counted(limits: Limits) -> AsyncIterator[str]:
    """The file by which a command joins a process-count cgroup; empty where a resource limit does the counting."""
    if not is_root():
        yield ""
        return
    with contextlib.ExitStack() as stack:
        try:
            group = stack.enter_context(cgroup.pids_cgroup(limits.processes))
        except cgroup.NoCgroup:
            yield ""
            return
        yield str(group.procs)


def uncounted() -> str:
    """Why processes could not be counted: for root that takes a cgroup. Empty where they can be."""
    if not is_root() or not (reason := cgroup.why_not()):
        return ""
    return f"processes of root cannot be limited without a pids cgroup ({reason}); run as an ordinary user"


def is_root() -> bool:
    """Whether resource limits on processes do not bind us."""
    return sys.platform == "linux" and os.geteuid() == 0


def _own_tasks() -> int:
    total, user = 0, os.getuid()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == user:
                total += sum(1 for _ in (process / "task").iterdir())
    return total
