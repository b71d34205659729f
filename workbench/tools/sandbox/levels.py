"""One command run at one level of the ladder."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import marshal
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.tools.calling import finished
from workbench.tools.sandbox import bwrap, calls, cgroup, docker, landlock
from workbench.tools.sandbox.bwrap import Job
from workbench.tools.sandbox.cgroup import Groups
from workbench.tools.sandbox.limits import DEFAULT_IMAGE, PATH, Level, Limits
from workbench.tools.sandbox.merging import Listing, Merge, everything, named_by_git, overlaid
from workbench.tools.sandbox.mirror import Mirror
from workbench.tools.sandbox.process import ProcessEnd, run_process
from workbench.tools.sandbox.scratch import SCRATCH

# The environment and the resource limits that a command gets, and how its processes are counted.

_FIRST_ID, _HIGHEST_ID = 1_600_000_000, 2_000_000_000
"""User ids that no system gives to anybody."""
_commands = itertools.count()
_SANDBOX_TASKS = 4
"""Processes of the sandbox itself, that a command's limit must leave room for."""


def environment(env: Mapping[str, str], temp: str, outbox: str | None) -> dict[str, str]:
    """All that a command finds in its environment; ``env`` wins."""
    own = {"PATH": PATH, "HOME": temp, "TMPDIR": temp, "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}
    own["GIT_CONFIG_NOSYSTEM"] = (
        "1"  # Settings of the machine are not to be had, and git gives up when it may not look.
    )
    return own | ({"OUTBOX": outbox} if outbox else {}) | dict(env)


def resources(limits: Limits, *, count_processes: bool, user: int | None) -> dict[str, int]:
    """Resource limits by name. ``count_processes`` is for commands without a namespace: there all processes of the
    user count together, so what runs already is added, unless the user is the command's own."""
    values = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_FSIZE": min(limits.file_bytes, limits.disk_bytes),
        "RLIMIT_NOFILE": limits.open_files,
    }
    if not count_processes or sys.platform != "linux":
        return values
    return values | {"RLIMIT_NPROC": limits.processes + (_own_tasks() if user is None else _SANDBOX_TASKS)}


@contextmanager
def counted(limits: Limits) -> Iterator[cgroup.Groups | None]:
    """The cgroups that a command joins; None where resource limits and the launcher do the counting."""
    if sys.platform != "linux":
        yield None
        return
    with contextlib.ExitStack() as stack:
        try:
            groups = stack.enter_context(cgroup.limited(limits.processes, limits.memory_bytes, SCRATCH.note_group))
        except cgroup.NoCgroup:
            groups = None
        yield groups


def unprivileged() -> int | None:
    """A user id for one command if root runs the workbench: unused, so that all processes of that user are those of the
    command. None for other users, who have no rights to lose."""
    if not is_root():
        return None
    try:
        last = max(int(first) + int(count) - 1 for first, _, count in map(str.split, _map_of_ids()))
    except (OSError, ValueError):
        last = _HIGHEST_ID
    number = os.getpid() * 64 + next(_commands) % 64
    if last >= _HIGHEST_ID:
        return _FIRST_ID + number % (_HIGHEST_ID - _FIRST_ID)
    return max(last - 1000 - number % 1000, 1)


def _map_of_ids() -> list[str]:
    return Path("/proc/self/uid_map").read_text().splitlines()


def is_root() -> bool:
    """Returns whether resource limits on processes do not bind us."""
    return sys.platform == "linux" and os.geteuid() == 0


def _own_tasks() -> int:
    total, user = 0, os.getuid()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == user:
                total += sum(1 for _ in (process / "task").iterdir())
    return total


_LAUNCHER = "import sys; sys.path.append(sys.argv.pop(1)); from launch import main; main()"
"""Imports ``launch.py``, which Python then has compiled already: that takes as long as to start without it."""
_FOLDER = Path(__file__).parent
_NO_STAGE, _OVER_LIMIT = 125, 137
"""Exit codes of the launcher."""
_FOLDERS = ("tmp", "shm", "outbox")


class Task(Struct, frozen=True):
    """A job with what only running it needs."""

    job: Job
    timeout_s: float
    stdin: bytes | None = None
    image: str = DEFAULT_IMAGE
    outbox: Path | None = None
    """Where files of the command's outbox are put."""
    own: bool = False
    """A program of this project's, not of a model's."""


class _Copies(Struct):
    """Copies of workspaces, each used by one command at a time."""

    free: dict[Path, list[Mirror]] = field(default_factory=dict)

    @asynccontextmanager
    async def borrowed(self, job: Job) -> AsyncIterator[Mirror]:
        """One that is what the workspace is now."""
        waiting = self.free.setdefault(job.workspace, [])
        mirror = waiting.pop() if waiting else None
        if mirror is None or not mirror.folder.is_dir():
            folder = Path(tempfile.mkdtemp(prefix="copy-", dir=SCRATCH.folder))
            folder.chmod(0o711)
            mirror = Mirror(job.workspace, folder / "files", unprivileged())
        try:
            await finished(mirror.align, frozenset(job.hidden))
        except BaseException:  # A copy that is not whole is given to no other command.
            remove = partial(shutil.rmtree, mirror.folder.parent, ignore_errors=True)
            asyncio.get_running_loop().run_in_executor(None, remove)
            raise
        try:
            yield mirror
        finally:
            waiting.append(mirror)


_copies = _Copies()
_without_overlay: set[Path] = set()
"""Workspaces over which no overlay could be mounted."""


async def run_at(level: Level, task: Task) -> ProcessEnd:
    """Run it to its end, and bring what it has written to where it belongs. Raises OSError when the level's own
    program cannot be started."""
    if level == "none":
        return await _unwalled(task)
    if level == "bwrap" and not bwrap.gains_rights() and task.job.workspace not in _without_overlay:
        ended = await _over_overlay(task)
        if ended is not None:
            return ended
        _without_overlay.add(task.job.workspace)
    if level == "landlock" and not task.job.writable and (task.own or not is_root()):
        return await _in_place(task)
    async with _copies.borrowed(task.job) as mirror:
        if level == "bwrap" and mirror.user is not None:
            return await _mounted(task, mirror)
        return await _over_copy(level, task, mirror)


# -- where a command finds the workspace -----------------------------------------------------------------------------


async def _over_overlay(task: Task) -> ProcessEnd | None:
    """bubblewrap over an overlay; None where this system mounts none."""
    job = task.job
    with SCRATCH.subfolder("stage") as stage:
        workspace = {"path": str(job.workspace), "hidden": list(job.hidden)}
        ended, folder = await _staged(task, stage, workspace, unprivileged(), [])
        try:
            if ended.exit_code == _NO_STAGE and folder < 0:
                return None
            return await _merged(task, ended, *_both(overlaid, f"/proc/self/fd/{folder}", "upper"))
        finally:
            if folder >= 0:
                os.close(folder)


async def _mounted(task: Task, mirror: Mirror) -> ProcessEnd:
    """bubblewrap over a copy, for root: what root alone can reach is mounted where the command's user gets to."""
    with SCRATCH.subfolder("stage") as stage:
        ended, folder = await _staged(task, stage, {"path": str(mirror.folder)}, mirror.user, [mirror.folder])
        try:
            if folder < 0:
                return ended
            changes = Written(str(mirror.folder), mirror.changed)
            return await _merged(task, ended, changes, Written(f"/proc/self/fd/{folder}/outbox", is_outbox=True))
        finally:
            if folder >= 0:
                os.close(folder)


async def _over_copy(level: Level, task: Task, mirror: Mirror) -> ProcessEnd:
    job, stage, user = task.job, mirror.folder.parent, mirror.user
    await asyncio.to_thread(_emptied, stage, user)
    await asyncio.to_thread(_handed_over, job.readable, user)
    watched = [stage / name for name in (*_FOLDERS, "files")]
    if level == "docker":
        ended = await _in_docker(task, stage, os.getuid() if user is None else user, watched)
    elif level == "bwrap":
        with counted(job.limits) as groups:
            inside = _inside(job, "/tmp", str(bwrap.OUTBOX))
            argv = bwrap.command(inside, bwrap.find() or "bwrap", stage, job.read, count_inside=not groups)
            ended = await _launched(argv, task, {"PATH": PATH}, groups=groups, user=user, watched=watched)
    else:
        env = environment(job.env, str(stage / "tmp"), str(stage / "outbox") if job.outbox else None)
        cwd = stage / "files" / job.cwd.relative_to(job.workspace)
        rules = landlock.rules(job, stage)
        with counted(job.limits) as groups:
            ended = await _launched(
                list(job.argv), task, env, cwd=cwd, groups=groups, user=user, rules=rules, watched=watched, count=True
            )
    return await _merged(task, ended, *_both(mirror.changed, str(stage), "files"))


async def _in_place(task: Task) -> ProcessEnd:
    """Landlock over the workspace itself, which the command only reads."""
    job = task.job
    with SCRATCH.subfolder("stage") as stage, counted(job.limits) as groups:
        _emptied(stage, None)
        env = environment(job.env, str(stage / "tmp"), str(stage / "outbox") if job.outbox else None)
        seen = replace(job, folders={**job.folders, job.workspace: job.hidden})
        rules = landlock.rules(seen, stage)
        watched = [stage / name for name in _FOLDERS]
        ended = await _launched(list(job.argv), task, env, groups=groups, rules=rules, watched=watched, count=True)
        return await _merged(task, ended, Written(f"{stage}/outbox", is_outbox=True))


async def _unwalled(task: Task) -> ProcessEnd:
    """No walls at all: in the workspace itself, under limits."""
    job = task.job
    with SCRATCH.subfolder("stage") as stage, counted(job.limits) as groups:
        (stage / "tmp").mkdir()
        env = environment(job.env, str(stage / "tmp"), str(task.outbox) if task.outbox else None)
        return await _launched(
            list(job.argv), task, env, groups=groups, watched=[stage / "tmp"], count=True, walled=False
        )


async def _in_docker(task: Task, stage: Path, user: int, watched: Sequence[Path]) -> ProcessEnd:
    program, name = docker.find() or "docker", docker.new_name()
    inside = _inside(task.job, "/tmp", str(bwrap.OUTBOX))
    argv = docker.command(inside, program, task.image, name, stage, user, interactive=task.stdin is not None)
    spec = _spec(task.job, watched=watched) | {"limits": {}, "watch": _watch(task.job, watched, memory=False)}
    with _written(spec) as file:
        ended = await run_process(
            _launcher(file, argv),
            cwd=task.job.workspace,
            env=docker.client_env(),
            timeout_s=task.timeout_s,
            output_bytes=task.job.limits.output_bytes,
            stdin=task.stdin,
            supervised=True,
            kill=lambda: docker.remove(program, name),
            pass_fds=[file],
        )
    if ended.exit_code == _OVER_LIMIT:
        await docker.remove(program, name)
    return ended


def _inside(job: Job, temp: str, outbox: str) -> Job:
    return replace(job, env=environment(job.env, temp, outbox if job.outbox else None))


def _emptied(stage: Path, user: int | None) -> None:
    """Fresh folders for what a command may write beside the workspace."""
    for name in _FOLDERS:
        folder = stage / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        if user is not None:
            os.chown(folder, user, user)


def _handed_over(paths: Sequence[Path], user: int | None) -> None:
    """Hands the files that we have written for a command over to the user that it runs as."""
    if user is None:
        return
    own = SCRATCH.folder.resolve()
    for path in paths:
        if path.is_relative_to(own):
            for one in (path, *path.rglob("*")):
                os.chown(one, user, user, follow_symlinks=False)


# -- the launcher ----------------------------------------------------------------------------------------------------


async def _staged(
    task: Task, stage: Path, workspace: Mapping[str, Any], user: int | None, watched: Sequence[Path]
) -> tuple[ProcessEnd, int]:
    """bubblewrap in a mount namespace that the launcher makes. How it ended, and the folder of what was written, open,
    or -1 where it was not made."""
    job = task.job
    here, there = socket.socketpair()
    with here, there, counted(job.limits) as groups:
        here.setblocking(False)
        sources = [stage / "read" / str(number) for number in range(len(job.read))]
        inside = _inside(job, "/tmp", str(bwrap.OUTBOX))
        by_user = groups is None and user is not None
        argv = bwrap.command(
            inside, bwrap.find() or "bwrap", stage, sources, count_inside=groups is None and user is None
        )
        read = [{"path": str(path), "hidden": list(job.folders.get(path, ()))} for path in job.read]
        body = {
            "folder": str(stage),
            "bytes": job.limits.disk_bytes,
            "entries": job.limits.files,
            "writable": job.writable,
            "workspace": workspace,
            "read": read,
            "tell": there.fileno(),
        }
        env = {"PATH": PATH}
        ended = await _launched(
            argv, task, env, groups=groups, user=user, stage=body, watched=watched, count=by_user, fds=[there.fileno()]
        )
        with contextlib.suppress(OSError):
            _, handed, _, _ = socket.recv_fds(here, 1, 1)
            return ended, handed[0] if handed else -1
        return ended, -1


async def _launched(
    argv: Sequence[str],
    task: Task,
    env: Mapping[str, str],
    *,
    cwd: Path | None = None,
    groups: Groups | None = None,
    user: int | None = None,
    rules: Mapping[str, list[str]] | None = None,
    stage: Mapping[str, Any] | None = None,
    watched: Sequence[Path] = (),
    count: bool = False,
    walled: bool = True,
    fds: Sequence[int] = (),
) -> ProcessEnd:
    counts = groups is not None and groups.memory is not None
    spec = _spec(task.job, watched=watched) | {
        "limits": resources(task.job.limits, count_processes=count and groups is None, user=user),
        "cgroups": groups.procs if groups else [],
        "landlock": rules,
        "seccomp": _filter(counted=counts, namespaces=rules is None) if walled else [],
        "user": user,
        "stage": stage,
        "watch": _watch(task.job, watched, memory=not counts),
    }
    with _written(spec) as file:
        ended = await run_process(
            _launcher(file, argv),
            cwd=cwd or task.job.cwd,
            env=env,
            timeout_s=task.timeout_s,
            output_bytes=task.job.limits.output_bytes,
            stdin=task.stdin,
            supervised=True,
            pass_fds=[file, *fds],
        )
    if groups is not None and groups.ended_for_memory():
        megabytes = task.job.limits.memory_bytes // (1 << 20)
        note = f"a process was ended: all together used more than {megabytes:,} MB of memory"
        return replace(ended, notes=(*ended.notes, note))
    return ended


def _filter(*, counted: bool, namespaces: bool) -> list[calls.Instruction]:
    """The filter of calls: with Landlock always, with bubblewrap unless that needs root's rights to start."""
    if namespaces and bwrap.gains_rights():
        return []
    return calls.program(counted=counted, namespaces=namespaces)


def _spec(job: Job, *, watched: Sequence[Path]) -> dict[str, Any]:
    nothing: dict[str, Any] = {"cgroups": [], "landlock": None, "seccomp": [], "user": None, "stage": None}
    return nothing | {"limits": {}, "watch": _watch(job, watched, memory=False)}


def _watch(job: Job, folders: Sequence[Path], *, memory: bool) -> dict[str, Any]:
    return {
        "memory": job.limits.memory_bytes if memory else 0,
        "disk": job.limits.disk_bytes if folders else 0,
        "folders": [str(folder) for folder in folders],
    }


@contextlib.contextmanager
def _written(spec: Mapping[str, Any]) -> Iterator[int]:
    """The spec in a file without a name, open at its beginning."""
    body: Any = dict(spec)
    with tempfile.TemporaryFile() as file:
        marshal.dump(body, file)
        file.flush()
        file.seek(0)
        yield file.fileno()


def _launcher(file: int, argv: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(_FOLDER), str(file), "--", *argv]


# -- what comes back -------------------------------------------------------------------------------------------------


class Written(Struct, frozen=True):
    """Where a command has left changes of the workspace, or files for the outbox."""

    source: str
    listing: Listing = everything
    is_outbox: bool = False


def _both(listing: Listing, folder: str, files: str) -> tuple[Written, Written]:
    """Changes in a folder, and the outbox beside them."""
    return Written(f"{folder}/{files}", listing), Written(f"{folder}/outbox", is_outbox=True)


async def _merged(task: Task, ended: ProcessEnd, *written: Written) -> ProcessEnd:
    """Bring what was written to where it belongs."""
    if ended.forced:
        note = "its changes were left out: it could not be ended in time"
        return replace(ended, notes=(*ended.notes, note))
    notes = await finished(_merge, task, written)
    return replace(ended, notes=(*ended.notes, *notes))


def _merge(task: Task, written: Sequence[Written]) -> tuple[str, ...]:
    room = task.job.limits.disk_bytes
    """For all of them together."""
    notes: list[str] = []
    for one in written:
        target = task.outbox if one.is_outbox else task.job.workspace if task.job.writable else None
        if target is None:
            continue
        merge = Merge(one.listing, room, guarded=not one.is_outbox)
        if not one.is_outbox:
            merge.hidden = frozenset(task.job.hidden)
            merge.named = named_by_git(target, task.job.hidden)
        notes += _into(merge, one.source, target)
        room = merge.room
    return tuple(notes)


def _into(merge: Merge, source: str, target: Path) -> tuple[str, ...]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    one = os.open(source, flags)
    try:
        other = os.open(target, flags)
        try:
            merge.run(one, other)
        finally:
            os.close(other)
    finally:
        os.close(one)
    return merge.notes
