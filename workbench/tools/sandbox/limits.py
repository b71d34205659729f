"""Limits of one sandboxed command, and the result of a command that has ended."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

Level = Literal["docker", "bwrap", "landlock", "none"]
LADDER: tuple[Level, ...] = ("docker", "bwrap", "landlock")
"""The strongest first; ``none`` is never chosen automatically."""

MEGABYTE = 1 << 20

DEFAULT_IMAGE = "python:3.11-slim"
"""Of a container."""
PATH = "/usr/local/bin:/usr/bin:/bin"
"""Search path for programs."""


class Limits(Struct, frozen=True):
    """Limits of one command with all the processes that it starts. Only ``cpu_s`` and ``open_files`` hold for each."""

    cpu_s: int = 600
    memory_bytes: int = 2048 * MEGABYTE
    """Of all its processes together, and address space of each."""
    file_bytes: int = 256 * MEGABYTE
    """Largest file that may be written."""
    open_files: int = 256
    processes: int = 64
    """Processes and threads at one time."""
    output_bytes: int = 1_000_000
    """Of each of stdout and stderr; more ends the command, head and tail are kept."""
    disk_bytes: int = 1024 * MEGABYTE
    """All that it writes together: changes of the workspace, temporary files, shared memory, outbox."""
    files: int = 100_000
    """Files and folders that it may make, if it has a file system of its own."""

    def to_json(self) -> dict[str, int]:
        return asdict(self)


class FinishedCommand(Struct, frozen=True):
    """A command that has ended, with every process it started."""

    exit_code: int
    """128 + n if signal n ended it; 124 if it timed out."""
    stdout: str
    stderr: str
    level: str
    """The level of the ladder that it ran at, with ``(weak)`` if that is not complete."""
    timed_out: bool = False
    truncated: bool = False
    """It wrote more than the limit and was ended for that."""
    notes: tuple[str, ...] = ()
    """Remarks on actions of the sandbox: a protected file that was put aside, say."""
    duration_s: float = 0.0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out and not self.truncated
