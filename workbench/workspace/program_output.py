"""The rest of an attach session after its program has ended: the file with the program's output."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.workspace.folders import Folders

GONE = "this is the session of a program: workbench attach runs the program again"


def attached_output(folders: Folders, session: str) -> Path:
    """The file for what the command of a session prints."""
    return folders.state / "attach" / f"{session}.log"


class ProgramOutput:
    """The output so far of a program that has no terminal."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def size(self) -> int:
        """Bytes; 0 if there is no file."""
        try:
            return self.file.stat().st_size
        except OSError:
            return 0

    def tail(self) -> str:
        """The end of it, as a terminal shows it at last: without colours, and of lines that were written over what
        stood there last."""
        try:
            with self.file.open("rb") as printed:
                printed.seek(max(self.size - _SHOWN, 0))
                text = printed.read(_SHOWN).decode("utf-8", "replace")
        except OSError:
            return ""
        plain = _CONTROL.sub("", text).replace("\r\n", "\n")
        return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))


_SHOWN = 200_000
"""Bytes of a program's output that are shown: its end."""
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Control sequences of terminals (ECMA-48): colours, moves of the cursor, titles."""
