"""Commands over one workspace, run at the strongest level that is to be had."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.tools.sandbox.limits import DEFAULT_IMAGE, LADDER, Finished, Level, Limits

if TYPE_CHECKING:
    from workbench.tools.sandbox.ladder import Probe

PLAIN = "plain child (weak)"
SETTINGS = ("auto", *LADDER, "none")


class SandboxUnavailable(RuntimeError):
    """No level of the ladder can be had; the message says why, and what to install."""


class Sandbox:
    """Runs commands over one workspace.

    ``level`` is ``auto`` or the level that the user insists on; ``none`` runs without walls (limits still hold) and
    must come from a flag of the user. ``also_hidden`` are paths below the workspace that commands never see,
    ``readable`` paths outside it that they may read. Raises ValueError when level or workspace cannot be one.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        level: Level | Literal["auto"] = "auto",
        limits: Limits = Limits(),
        image: str = DEFAULT_IMAGE,
        also_hidden: Sequence[Path] = (),
        readable: Sequence[Path] = (),
    ) -> None:
        if level not in SETTINGS:
            raise ValueError(f"'{level}' is no sandbox level; they are {', '.join(SETTINGS)}")
        self.workspace = workspace.resolve(strict=True)
        if self.workspace == Path("/"):
            raise ValueError("the root of the file system cannot be the workspace of tools")
        self.ladder: tuple[Level, ...] = LADDER if level == "auto" else (level,)
        self.limits = limits
        self.image = image
        self.also_hidden = tuple(also_hidden)
        self.readable = tuple(readable)

    async def probe(self, ladder: Sequence[Level] | None = None) -> Probe:
        """Which level is to be had, by trying once per process. ``ladder`` replaces the sandbox's own."""
        from workbench.tools.sandbox.ladder import remembered

        return await remembered(tuple(ladder or self.ladder), self.workspace, self.image)

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        timeout_s: float = 30.0,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        writable: bool = True,
        readable: Sequence[Path] = (),
        outbox: Path | None = None,
        limits: Limits | None = None,
        ladder: Sequence[Level] | None = None,
        or_plain: bool = False,
    ) -> Finished:
        """Run one command to its end, at most ``timeout_s`` seconds of wall time.

        ``cwd`` lies inside the workspace (default: its root). ``env`` is all that the command's environment has beside
        PATH, HOME, TMPDIR, LANG. ``outbox`` is a folder that it may write to and finds as ``$OUTBOX``. ``or_plain``
        runs it as a plain child with limits where no level is to be had: for programs of our own only.
        Raises SandboxUnavailable when no level can be had, ValueError when ``cwd`` is outside the workspace.
        """
        from workbench.tools.sandbox.bwrap import Job
        from workbench.tools.sandbox.guarded import scan, set_aside
        from workbench.tools.sandbox.levels import Task, run_at

        probe = await self.probe(ladder)
        level: Level | None = probe.level or ("none" if or_plain else None)
        if level is None:
            raise SandboxUnavailable(str(probe))
        folder = (cwd or self.workspace).resolve()
        if not folder.is_relative_to(self.workspace):
            raise ValueError(f"{folder} is outside the workspace")
        guarded = await asyncio.to_thread(scan, self.workspace, self.also_hidden)
        job = Job(
            argv=tuple(argv),
            workspace=self.workspace,
            cwd=folder,
            env=dict(env or {}),
            limits=limits or self.limits,
            guarded=guarded,
            writable=writable,
            readable=(*self.readable, *readable),
            outbox=outbox,
        )
        started = time.monotonic()
        ended = await run_at(level, Task(job, timeout_s, stdin, self.image))
        notes = await asyncio.to_thread(set_aside, guarded, self.workspace) if writable else ()
        return Finished(
            ended.exit_code,
            ended.stdout,
            ended.stderr,
            PLAIN if probe.level is None else _shown(level),
            ended.timed_out,
            ended.truncated,
            notes,
            time.monotonic() - started,
        )


def _shown(level: Level) -> str:
    from workbench.tools.sandbox import landlock

    return landlock.WEAK if level == "landlock" else level
