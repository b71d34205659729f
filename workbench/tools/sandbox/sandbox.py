"""Commands over one workspace, run at the strongest level that is to be had."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from workbench.tools.calling import finished
from workbench.tools.hidden import hidden_below
from workbench.tools.sandbox import bwrap, docker, landlock
from workbench.tools.sandbox.bwrap import Job
from workbench.tools.sandbox.levels import Task, run_at
from workbench.tools.sandbox.limits import DEFAULT_IMAGE, LADDER, FinishedCommand, Level, Limits
from workbench.tools.sandbox.scratch import SCRATCH

# Which level of the ladder is to be had here, found by trying.

INSTALL = "install bubblewrap (apt, dnf or pacman install bubblewrap), or start Docker"
_PROBE_S = 10.0


class Probe(Struct, frozen=True):
    """The levels that work on this machine."""

    level: Level | None
    """The level that will be used; None if there is none."""
    reasons: Mapping[str, str]
    """Why each level tried cannot be had; empty text for one that can."""

    @property
    def usable(self) -> bool:
        return self.level is not None

    def __str__(self) -> str:
        failed = "; ".join(f"{name}: {reason}" for name, reason in self.reasons.items() if reason)
        if self.level is None:
            return f"no sandbox here ({failed}); {INSTALL}"
        return f"{self.level} ({failed})" if failed else self.level


_probes: dict[tuple[tuple[Level, ...], str, str], Probe] = {}


async def remembered(wanted: tuple[Level, ...], image: str) -> Probe:
    """The same as ``climb``, tried once for what it depends on: levels, image, and where programs are looked for."""
    key = (wanted, image, os.environ.get("PATH", ""))
    if key not in _probes:
        _probes[key] = await climb(wanted, image)
    return _probes[key]


async def climb(wanted: Sequence[Level], image: str) -> Probe:
    """Try levels in order and stop at the first that works."""
    reasons: dict[str, str] = {}
    for level in wanted:
        reasons[level] = await why_not(level, image)
        if not reasons[level]:
            return Probe(level, reasons)
    return Probe(None, reasons)


async def why_not(level: Level, image: str) -> str:
    """Returns why one level cannot be had here; empty when it can."""
    if level == "none":
        return ""
    if level == "docker":
        program = docker.find()
        return (await docker.why_not(program, image) if program else "not installed") or await _try(level, image)
    if sys.platform != "linux":
        return "only Linux has it"
    if level == "landlock":
        return landlock.why_not() or await _try(level, image)
    return "not installed" if bwrap.find() is None else await _try(level, image)


_WRITABLE = """
for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/panic /proc/sys/kernel/modprobe /proc/sys/vm/drop_caches \
    /proc/sys/fs/protected_hardlinks /proc/sysrq-trigger /proc/irq/default_smp_affinity /proc/irq/*/smp_affinity \
    /proc/bus/pci/*/* /sys/kernel/uevent_helper /sys/kernel/mm/ksm/run /sys/power/state; do
  (: >> "$file") 2>/dev/null && echo "$file"
done
:
"""
"""Opens what steers the whole machine for writing, writes nothing, and prints what could be opened."""


async def _try(level: Level, image: str) -> str:
    """Run a command at a level: old versions lack a flag, some systems forbid namespaces, and as root a level may hold
    less than elsewhere. Only a run can tell."""
    with SCRATCH.subfolder("probe") as folder:
        workspace = folder.resolve()
        job = Job(("/bin/sh", "-c", _WRITABLE), workspace, workspace, {}, Limits())
        try:
            ended = await run_at(level, Task(job, _PROBE_S, image=image))
        except OSError as fault:
            return str(fault)
    if ended.exit_code != 0:
        lines = ended.stderr.strip().splitlines()
        return lines[-1] if lines else f"exit code {ended.exit_code}"
    opened = [line for line in ended.stdout.splitlines() if line.startswith(("/proc/", "/sys/"))]
    return f"commands could write {opened[0]} of this machine" if opened else ""


PLAIN = "plain child (weak)"
SETTINGS = ("auto", *LADDER, "none")


class SandboxUnavailable(RuntimeError):
    """No level of the ladder can be had; the message says why, and what to install."""


class Sandbox:
    """Runs commands over one workspace.

    ``level`` is ``auto`` or the level that the user insists on; ``none`` runs without walls (limits still hold) and
    must come from a flag of the user. ``also_hidden`` are paths below the workspace that commands never see. Raises
    ValueError when level or workspace cannot be one.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        level: Level | Literal["auto"] = "auto",
        image: str = DEFAULT_IMAGE,
        also_hidden: Sequence[Path] = (),
    ) -> None:
        if level not in SETTINGS:
            raise ValueError(f"'{level}' is not a sandbox level; they are {', '.join(SETTINGS)}")
        self.workspace = workspace.resolve(strict=True)
        if self.workspace == Path("/"):
            raise ValueError("the root of the file system cannot be the workspace of tools")
        self.ladder: tuple[Level, ...] = LADDER if level == "auto" else (level,)
        self.image = image
        self.also_hidden = tuple(also_hidden)

    async def probe(self, ladder: Sequence[Level] | None = None) -> Probe:
        """Returns which level is to be had, by trying once per process. ``ladder`` replaces the sandbox's own."""

        return await remembered(tuple(ladder or self.ladder), self.image)

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
        folders: Sequence[Path] = (),
        outbox: Path | None = None,
        limits: Limits | None = None,
        ladder: Sequence[Level] | None = None,
        or_plain: bool = False,
    ) -> FinishedCommand:
        """Run one command to its end, at most ``timeout_s`` seconds of wall time.

        ``cwd`` lies inside the workspace (default: its root). ``env`` is all that the command's environment has beside
        PATH, HOME, TMPDIR, LANG. ``readable`` are files and folders that it may read, ``folders`` folders of the
        user's that it may read but for what is hidden in them. What it leaves in the folder ``$OUTBOX`` is put into
        ``outbox``. ``or_plain`` runs it as a plain child with limits where no level is to be had: for programs of our
        own only.

        It works on a view of the workspace without hidden files; when it has ended, in time or not, what it changed is
        brought into the workspace, but for what may not be changed: ``FinishedCommand.notes`` says so. A command that
        is cancelled changes nothing.
        Raises SandboxUnavailable when no level can be had, ValueError when ``cwd`` is outside the workspace.
        """
        probe = await self.probe(ladder)
        level: Level | None = probe.level or ("none" if or_plain else None)
        if level is None:
            raise SandboxUnavailable(str(probe))
        folder = (cwd or self.workspace).resolve()
        if not folder.is_relative_to(self.workspace):
            raise ValueError(f"{folder} is outside the workspace")
        hidden, below = await finished(self._hidden, level, folders)
        job = Job(
            argv=tuple(argv),
            workspace=self.workspace,
            cwd=folder,
            env=dict(env or {}),
            limits=limits or Limits(),
            hidden=hidden,
            writable=writable,
            readable=tuple(readable),
            folders=below,
            outbox=outbox is not None,
        )
        started = time.monotonic()
        ended = await run_at(level, Task(job, timeout_s, stdin, self.image, outbox, own=or_plain))
        return FinishedCommand(
            ended.exit_code,
            ended.stdout,
            ended.stderr,
            PLAIN if probe.level is None else _shown(level),
            ended.timed_out,
            ended.truncated,
            ended.notes,
            time.monotonic() - started,
        )

    def _hidden(self, level: Level, folders: Sequence[Path]) -> tuple[tuple[str, ...], dict[Path, tuple[str, ...]]]:
        """Returns the hidden paths of the workspace, and of more folders of the user's."""
        if level == "none":
            return (), dict.fromkeys(folders, ())
        below = {folder: hidden_below(folder, self.also_hidden) for folder in folders}
        return hidden_below(self.workspace, self.also_hidden), below


def _shown(level: Level) -> str:
    return landlock.WEAK if level == "landlock" else level
