"""One command run at one level of the ladder."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workbench.dataclass import dataclass
from workbench.tools.sandbox import bwrap, calls, docker, landlock
from workbench.tools.sandbox.bwrap import Job
from workbench.tools.sandbox.limits import DEFAULT_IMAGE, PATH, Level
from workbench.tools.sandbox.process import Ended, run_process
from workbench.tools.sandbox.resources import counted, environment, resources

_LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True)
class Task:
    """A job with what only running it needs."""

    job: Job
    timeout_s: float
    stdin: bytes | None = None
    image: str = DEFAULT_IMAGE


async def run_at(level: Level, task: Task) -> Ended:
    """Run it to its end. Raises OSError when the level's own program cannot be started."""
    if level == "docker":
        return await _in_docker(task)
    if level == "bwrap":
        return await _in_bwrap(task)
    return await _supervised(task, walls=level == "landlock")


async def _in_docker(task: Task) -> Ended:
    program, name = docker.find() or "docker", docker.new_name()
    job = task.job
    inside = replace(job, env=environment(job.env, "/tmp", str(bwrap.OUTBOX) if job.outbox else None))
    return await run_process(
        docker.command(inside, program, task.image, name, interactive=task.stdin is not None),
        cwd=job.workspace,
        env=docker.client_env(),
        timeout_s=task.timeout_s,
        output_bytes=job.limits.output_bytes,
        stdin=task.stdin,
        kill=lambda: docker.remove(program, name),
    )


async def _in_bwrap(task: Task) -> Ended:
    job = task.job
    inside = replace(job, env=environment(job.env, "/tmp", str(bwrap.OUTBOX) if job.outbox else None))
    async with counted(job.limits) as procs:
        argv = bwrap.command(inside, bwrap.find() or "bwrap", count_inside=not procs)
        return await _launched(argv, task, {"PATH": PATH}, procs=procs)


async def _supervised(task: Task, *, walls: bool) -> Ended:
    """Landlock, or no walls at all: the launcher stays as the parent and ends what is left."""
    job = task.job
    async with counted(job.limits) as procs:
        with tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True) as temp:
            env = environment(job.env, temp, str(job.outbox) if job.outbox else None)
            rules = landlock.rules(job, Path(temp)) if walls else None
            return await _launched(list(job.argv), task, env, procs=procs, rules=rules, supervise=True, walled=walls)


async def _launched(
    argv: list[str],
    task: Task,
    env: Mapping[str, str],
    *,
    procs: str,
    rules: Mapping[str, list[str]] | None = None,
    supervise: bool = False,
    walled: bool = True,
) -> Ended:
    spec = {
        "limits": resources(task.job.limits, count_processes=supervise and not procs),
        "cgroup": procs,
        "landlock": rules,
        "seccomp": calls.program() if walled and not bwrap.gains_rights() else [],
        "supervise": supervise,
    }
    return await run_process(
        [sys.executable, "-I", "-S", "-B", str(_LAUNCHER), json.dumps(spec), "--", *argv],
        cwd=task.job.cwd,
        env=env,
        timeout_s=task.timeout_s,
        output_bytes=task.job.limits.output_bytes,
        stdin=task.stdin,
        supervised=supervise,
    )
