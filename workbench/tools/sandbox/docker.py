"""The Docker level: a throw-away container without network, its file system read-only but for workspace and /tmp."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from workbench.tools.sandbox.bwrap import OUTBOX, WORKSPACE, Job
from workbench.tools.sandbox.process import run_process

_PROBE_S = 5.0
_CLIENT_ENV = (
    "PATH",
    "HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
)


def find() -> str | None:
    """The client's path; None when it is not installed."""
    return shutil.which("docker")


def client_env() -> dict[str, str]:
    """Returns the environment that the client itself needs; the container gets none of it."""
    return {name: os.environ[name] for name in _CLIENT_ENV if name in os.environ}


def new_name() -> str:
    """A container name that is ours, so that it can be ended by name."""
    return f"workbench-{uuid.uuid4().hex}"


def command(job: Job, program: str, image: str, name: str, stage: Path, user: int, *, interactive: bool) -> list[str]:
    """The whole command line in list form. ``stage`` holds a copy of the workspace (``files``) and the ``outbox``;
    ``user`` is whom they belong to, and never root."""
    limits = job.limits
    argv = [program, "run", "--rm", "--pull", "never", "--name", name, "--init", "--hostname", "sandbox"]
    argv += ["--interactive"] if interactive else []
    argv += ["--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    argv += ["--user", f"{user}:{user}", "--pids-limit", str(limits.processes)]
    argv += ["--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes)]
    argv += ["--ulimit", f"cpu={limits.cpu_s}", "--ulimit", f"fsize={limits.file_bytes}", "--ulimit", "core=0"]
    argv += ["--ulimit", f"nofile={limits.open_files}"]
    argv += ["--tmpfs", f"/tmp:rw,exec,nosuid,size={limits.disk_bytes}", "--shm-size", str(limits.disk_bytes)]
    argv += _mounts(job, stage)
    for key, value in job.env.items():
        argv += ["--env", f"{key}={value}"]
    return [*argv, "--workdir", str(job.cwd_inside), "--entrypoint", job.argv[0], image, *job.argv[1:]]


async def why_not(program: str, image: str) -> str:
    """Returns why no container can be started; empty when one can. Asks the daemon, downloads nothing."""
    if "," in image or image.startswith("-"):
        return f"'{image}' is not an image name"
    version = await _ask([program, "version", "--format", "{{.Server.Version}}"])
    if version is None:
        return "the Docker daemon does not answer"
    if await _ask([program, "image", "inspect", "--format", "{{.Id}}", image]) is None:
        return f"the image is missing: docker pull {image}"
    return ""


async def remove(program: str, name: str) -> None:
    """End and remove a container whose client is about to be killed; a container that is already gone is ignored."""
    await _ask([program, "rm", "--force", name])


async def _ask(argv: Sequence[str]) -> str | None:
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        ended = await run_process(
            argv, cwd=Path("/"), env=client_env(), timeout_s=_PROBE_S, output_bytes=10_000, stdin=None
        )
        return ended.stdout if ended.exit_code == 0 else None
    return None


def _mounts(job: Job, stage: Path) -> list[str]:
    argv = _bind(stage / "files", WORKSPACE, writable=job.writable)
    for path in job.readable:
        argv += _bind(path, path, writable=False)
    for folder, hidden in job.folders.items():
        argv += _bind(folder, folder, writable=False)
        for name in hidden:
            path = folder / name
            if path.is_dir() and not path.is_symlink():
                argv += ["--mount", f"type=tmpfs,destination={_quoted(path)},tmpfs-size=4096"]
            elif not path.is_symlink():
                argv += _bind(Path("/dev/null"), path, writable=False)
    return argv + (_bind(stage / "outbox", OUTBOX, writable=True) if job.outbox else [])


def _bind(source: Path, inside: Path, *, writable: bool) -> list[str]:
    fields = f"type=bind,source={_quoted(source)},destination={_quoted(inside)}"
    return ["--mount", fields if writable else fields + ",readonly"]


def _quoted(path: Path) -> str:
    """A value of ``--mount``, which reads its fields as one CSV line."""
    text = str(path)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text
