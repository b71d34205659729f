"""Copying text out: to the terminal's own clipboard, to the system's, and to a file where it is too long for both."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

OSC52_LIMIT = 74_994
"""Bytes of text beyond which terminals drop the sequence without a word: 100,000 in base64, less its frame."""
TOOL_SECONDS = 2.0

_TOOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-in")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
)


def osc52(text: str) -> str | None:
    """The sequence that hands text to the terminal's clipboard; None when it is too long for one."""
    data = text.encode("utf-8", "replace")
    return f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07" if len(data) <= OSC52_LIMIT else None


def system_copy(text: str) -> str | None:
    """Hand text to the first clipboard tool that works; its name, or None. Takes up to two seconds."""
    for variable, command in _TOOLS:
        if (variable and not os.environ.get(variable)) or shutil.which(command[0]) is None:
            continue
        try:
            subprocess.run(
                command,
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TOOL_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return command[0]
    return None


def save_copy(text: str) -> Path:
    """Write text to a new private file; where it is. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix="workbench-copy-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return Path(name)
