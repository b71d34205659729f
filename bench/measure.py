"""Measuring as a ratio: two sides in interleaved rounds, the median of each; programs watched through a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
WORKBENCH = [sys.executable, "-c", "from workbench.__main__ import main; main()"]
"""As it is installed, whatever is on the path."""
PATIENCE = 60.0
"""Seconds until something must show."""
QUIET = 0.04
"""Seconds without a byte after which the last one is taken for the last."""


@dataclass(frozen=True)
class Line:
    """One line of the table: a goal, both sides in the same unit, and the highest ratio that is good."""

    goal: str
    what: str
    ours: float
    theirs: float
    unit: str
    limit: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def good(self) -> bool:
        return self.ratio <= self.limit

    def __str__(self) -> str:
        sides = f"{self.ours:10.4g} {self.theirs:10.4g} {self.unit:4}"
        return f"{self.goal:>4}  {self.what:66} {sides} {self.ratio:7.3f} ≤ {self.limit:<5} {'✓' if self.good else '✗'}"


def interleaved(rounds: int, *sides: Callable[[], float]) -> list[float]:
    """The median of each side over rounds in which all take turns, so that a busy moment meets all of them."""
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        for index in range(len(sides)):
            at = (index + number) % len(sides)
            taken[at].append(sides[at]())
    return [median(values) for values in taken]


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def alone(home: Path) -> dict[str, str]:
    """An environment in which no key and no setting of this machine is seen. Bytecode is kept, as in an installation:
    compiled anew at each start, the app's modules take longer than Textual's, which pip has compiled."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WORKBENCH_", "WINDLASS_"))}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env = {name: value for name, value in env.items() if not name.endswith("_API_KEY")}
    own = {"WORKBENCH_CONFIG_DIR": str(home / "config"), "WORKBENCH_STATE_DIR": str(home / "state")}
    return {**env, **own, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}


@contextmanager
def workspace() -> Iterator[Path]:
    """An empty folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Path(folder)


def python(code: str, *arguments: str, folder: Path | None = None, program: str = sys.executable) -> str:
    """What a piece of Python prints in a process of its own."""
    with workspace() as home:
        done = subprocess.run(
            [program, "-c", code, *arguments], cwd=folder or home, env=alone(home), stdout=subprocess.PIPE, text=True
        )
    if done.returncode:
        raise RuntimeError(f"a measured process ended with {done.returncode}")
    return done.stdout.strip()


def peer(name: str, packages: Sequence[str], imports: str) -> str | None:
    """A Python that has other people's packages, outside the project's environment: installed now if it is not yet.
    None where it cannot be."""
    folder = Path(tempfile.gettempdir()) / f"cascade-bench-{name}"
    program = folder / "bin" / "python"
    try:
        if not program.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        if subprocess.run([program, "-c", f"import {imports}"], capture_output=True).returncode:
            subprocess.run([program, "-m", "pip", "install", "-q", *packages], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        print(f"      {name} cannot be installed here: no comparison", file=sys.stderr)
        return None
    return str(program)


class Screen:
    """A program on a pseudo terminal of 120 x 40."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def read(self, wait: float) -> bytes:
        """What comes within a time; empty when nothing does."""
        ready, _, _ = select.select([self._master], [], [], wait)
        return os.read(self._master, 1 << 16) if ready else b""

    def until(self, text: bytes) -> float:
        """When the text was written, in seconds of ``time.perf_counter``. Raises TimeoutError."""
        seen, give_up = b"", time.perf_counter() + PATIENCE
        while text not in seen:
            if time.perf_counter() > give_up:
                raise TimeoutError(f"{text!r} never came")
            seen = seen[-len(text) :] + self.read(0.1)
        return time.perf_counter()

    def settle(self, quiet: float = 0.5) -> None:
        """Wait until nothing has been written for a while."""
        while self.read(quiet):
            pass

    def press(self, key: bytes) -> float:
        """Write a key; when, in seconds of ``time.perf_counter``."""
        begin = time.perf_counter()
        os.write(self._master, key)
        return begin

    def key(self, key: bytes) -> float:
        """Seconds from a key to the last byte of its answer."""
        begin = last = self.press(key)
        while True:
            data = self.read(QUIET if last > begin else PATIENCE)
            if not data:
                return last - begin
            last = time.perf_counter()

    @property
    def memory(self) -> float:
        """Resident megabytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("the process is gone")
