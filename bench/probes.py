"""What a probed copy of the program notes down: the numbers of the pieces that ran (see ``bench.tested_lines``).

A process that a test starts writes each number at once, since it may be killed. Pytest's own process gives ``ran`` a
plain set instead, before the program is imported.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path

NOTED = Path(__file__).parents[1] / "noted"


class Written(set[int]):
    """Writes each number once to a file of this process, whose first line names the test."""

    def __init__(self) -> None:
        self._file = -1

    def add(self, number: int) -> None:
        if number in self:
            return
        super().add(number)
        with suppress(OSError):  # A process that may not write files runs no less for that.
            if self._file < 0:
                self._file = os.open(NOTED / f"{uuid.uuid4().hex}.process", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
                os.write(self._file, os.environ.get("PYTEST_CURRENT_TEST", "").encode() + b"\n")
            os.write(self._file, b"%d\n" % number)


ran: set[int] = Written()
