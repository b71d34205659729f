"""Work for the workers of an archive, which end as a lost process does."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from msgspec import Struct


class Doubling(Struct, frozen=True):
    """Doubles numbers. A worker that comes to 7 is killed, each time it is tried; one that comes to 5 the first time; 3
    is not a number that can be done."""

    folder: Path
    refuses: bool = False

    def __call__(self, items: tuple[int, ...]) -> list[int]:
        for item in items:
            if item == 7 or (item == 5 and _is_first(self.folder / "5")):
                os.kill(os.getpid(), signal.SIGKILL)
            if item == 3 and self.refuses:
                raise ValueError("3 is refused")
        return [2 * item for item in items]


def _is_first(file: Path) -> bool:
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def own_pids(numbers: tuple[int, ...]) -> list[int]:
    """The process that works, for each number."""
    return [os.getpid() for _ in numbers]


def has_loaded(names: tuple[str, ...]) -> list[bool]:
    """Returns for each name whether the process that works has loaded the module."""
    return [name in sys.modules for name in names]
