"""Runs a program in a terminal of its own, beside the app: a pane of tmux, or a window of the desktop's terminal."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.language.clean import clean_line
from workbench.models.encodings import environment
from workbench.tools.sandbox.scratch import SCRATCH
from workbench.workspace import terminal_program
from workbench.workspace.attach_serving import CannotStart

OPENS_WITHIN = 20.0
"""Seconds until a terminal has to have begun with the command."""
CLOSED = 129
"""The exit code of a program whose terminal was closed: that of a hangup, as shells have it."""
SHARE = 30
"""Percent of the lines of a terminal that the pane of the command gets."""
APP_LINES = 12
"""Lines without which the app shows only that the terminal is too small."""
_EMULATORS: tuple[tuple[str, ...], ...] = (
    ("x-terminal-emulator", "-e"),
    ("gnome-terminal", "--"),
    ("konsole", "-e"),
    ("kitty",),
    ("wezterm", "start", "--"),
    ("alacritty", "-e"),
    ("foot",),
    ("xterm", "-e"),
)


def opener(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the words that start a command in a new terminal, to put in front of it; empty if there are none here."""
    if environment.get("TMUX") and shutil.which("tmux"):
        pane = environment.get("TMUX_PANE", "")
        return ("tmux", "split-window", "-d", "-v", "-l", f"{SHARE}%", *(("-t", pane) if pane else ()))
    if not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        return ()
    own = environment.get("TERMINAL", "")
    known = ((own, "-e"), *_EMULATORS) if own else _EMULATORS
    return next((words for words in known if shutil.which(words[0])), ())


def opens_unasked(environment: Mapping[str, str], lines: int) -> bool:
    """Returns whether a command gets a terminal of its own although nobody asked for one: inside tmux, in a terminal of
    so many lines that the app keeps what it needs above the pane and the line between."""
    return bool(environment.get("TMUX")) and lines - lines * SHARE // 100 - 1 >= APP_LINES


async def run_in_terminal(command: Sequence[str], variables: Mapping[str, str], folder: Path) -> int:
    """Run a command in a folder, in a terminal of its own, until it ends; its exit code. Cancelled, it is ended. Raises
    CannotStart."""
    opening = opener(os.environ)
    if not opening:
        raise CannotStart("no terminal can be opened here: there is neither tmux nor a desktop")
    told: asyncio.Queue[int | str] = asyncio.Queue()
    begun = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.set()
        asked = {"command": list(command), "env": environment() | dict(variables), "folder": str(folder)}
        try:
            writer.write(json.dumps(asked).encode() + b"\n")
            answer = (await reader.readline()).decode("utf-8", "replace").strip()
        except OSError:
            answer = ""
        finally:
            writer.close()
        kind, _, rest = answer.partition(" ")
        told.put_nowait(rest if kind == "fault" else int(rest) if kind == "code" else CLOSED)

    with SCRATCH.subfolder("attach") as place:  # only its owner can look into it
        address = str(place / "program")
        server = await asyncio.start_unix_server(serve, address, limit=2**16)
        async with server:
            words = (*opening, sys.executable, "-P", "-m", terminal_program.__name__, address)
            await _opened(words, begun)
            ended = await told.get()
    if isinstance(ended, str):
        raise CannotStart(ended)
    return ended


async def _opened(words: Sequence[str], begun: asyncio.Event) -> None:
    """Start a terminal and wait until it asks for its command. Raises CannotStart."""
    quiet, begins, why = subprocess.DEVNULL, asyncio.ensure_future(begun.wait()), ""
    with tempfile.TemporaryFile() as said:
        how: dict[str, Any] = {"stdin": quiet, "stdout": quiet, "stderr": said, "start_new_session": True}
        try:
            opens = asyncio.ensure_future(_fails(await asyncio.create_subprocess_exec(*words, **how)))
            await asyncio.wait({begins, opens}, timeout=OPENS_WITHIN, return_when=asyncio.FIRST_COMPLETED)
            opens.cancel()
        except OSError as fault:
            why = fault.strerror or str(fault)
        begins.cancel()
        if not begun.is_set():
            said.seek(0)
            lines = said.read(2**16).decode("utf-8", "replace").split("\n")
            why = why or next((clean_line(line, 200) for line in reversed(lines) if line.strip()), "")
            raise CannotStart(f"no terminal came up: {shlex.join(words[:2])}" + (f": {why}" if why else ""))


async def _fails(terminal: asyncio.subprocess.Process) -> None:
    """Return once a terminal has ended with a fault; some hand their window to another process, and end with 0."""
    if await terminal.wait() == 0:
        await asyncio.Event().wait()
