"""Runs one command to its end, with bounded output and a deadline, and ends all its processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

TIMED_OUT = 124
_CHUNK = 1 << 16
_GRACE_S = 6.0
"""Seconds between the polite end and SIGKILL; longer than the launcher needs to end what it supervises."""

Killer = Callable[[], Awaitable[None]]


class Capture(Struct):
    """Output of one stream: all of it up to the limit, then head and tail."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    @property
    def full(self) -> bool:
        return self.total > self.limit

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = max(self.limit // 2 - len(self.head), 0)
        self.head += data[:room]
        self.tail += data[room:]
        del self.tail[: max(len(self.tail) - (self.limit - self.limit // 2), 0)]

    def text(self) -> str:
        """Decoded as UTF-8; invalid bytes become U+FFFD."""
        left_out = self.total - len(self.head) - len(self.tail)
        if not left_out:
            return bytes(self.head + self.tail).decode("utf-8", "replace")
        marker = f"\n[… {left_out:,} bytes left out …]\n"
        return self.head.decode("utf-8", "replace") + marker + self.tail.decode("utf-8", "replace")


class ProcessEnd(Struct, frozen=True):
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False
    forced: bool = False
    """It did not end when it was told to, and was killed: something of it may be left."""
    notes: tuple[str, ...] = ()


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    output_bytes: int,
    stdin: bytes | None = None,
    supervised: bool = False,
    kill: Killer | None = None,
    pass_fds: Sequence[int] = (),
) -> ProcessEnd:
    """Run a command (a list, never through a shell) in a session of its own.

    ``supervised``: it is the launcher as supervisor, which is told by SIGTERM and ends the rest. ``kill`` is awaited
    before the command itself is killed (to reach what is no child of ours). Cancelling ends the command as well.
    Raises OSError when it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=dict(env),
        stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        pass_fds=tuple(pass_fds),
    )
    out, err = Capture(output_bytes), Capture(output_bytes)
    flooded = asyncio.Event()
    pumps = [
        asyncio.create_task(_drain(process.stdout, out, flooded)),
        asyncio.create_task(_drain(process.stderr, err, flooded)),
        asyncio.create_task(_feed(process.stdin, stdin)),
    ]
    ended = asyncio.create_task(process.wait())
    flood = asyncio.create_task(flooded.wait())
    forced = False
    try:
        done, _ = await asyncio.wait({ended, flood}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Shielded: a second cancellation must not leave the command running.
        forced = await asyncio.shield(_end(process, ended, flood, pumps, supervised, kill))
    timed_out = not done
    code = TIMED_OUT if timed_out else process.returncode or 0
    code = code if code >= 0 else 128 - code
    return ProcessEnd(code, out.text(), err.text(), timed_out, out.full or err.full, forced)


async def _drain(stream: asyncio.StreamReader | None, capture: Capture, flooded: asyncio.Event) -> None:
    while stream is not None and (data := await stream.read(_CHUNK)):
        capture.add(data)
        if capture.full:
            flooded.set()


async def _feed(stream: asyncio.StreamWriter | None, data: bytes | None) -> None:
    if stream is None or data is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
    stream.close()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await stream.wait_closed()


async def _end(
    process: asyncio.subprocess.Process,
    ended: asyncio.Task[int],
    flood: asyncio.Task[bool],
    pumps: list[asyncio.Task[None]],
    supervised: bool,
    kill: Killer | None,
) -> bool:
    """End the command if it still runs, read what its pipes hold, and close them. True where it had to be killed
    although it is one that ends its own processes when it is told to."""
    forced = False
    if not ended.done():
        if kill is not None:
            await kill()
        _signal(process, signal.SIGTERM if supervised else signal.SIGKILL)
        done, _ = await asyncio.wait({ended}, timeout=_GRACE_S)
        if not done:
            forced = supervised
            _signal(process, signal.SIGKILL)
            await ended
    # A process that outlived its sandbox could hold a pipe open: do not wait for it.
    flood.cancel()
    _, late = await asyncio.wait(pumps, timeout=1.0)
    for task in late:
        task.cancel()
    await asyncio.gather(flood, *pumps, return_exceptions=True)
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
    return forced


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    """Kill reaches the whole session; the polite signal is for the launcher alone."""
    with contextlib.suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
