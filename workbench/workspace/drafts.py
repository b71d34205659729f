"""Unsaved text, kept beside the user's state, so that a killed app loses none of it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from workbench.workspace.state_file import StateFile


class _DraftContent(Struct, frozen=True):
    file: str
    text: str


class Draft:
    """The unsaved text of one file."""

    def __init__(self, folder: Path, file: Path) -> None:
        """``folder`` holds the drafts; it is made for the first one."""
        self._file = file.resolve()
        self._kept = StateFile.about(folder, self._file, _DraftContent)

    def keep(self, text: str) -> None:
        """Keep a text in place of the one before. Raises OSError."""
        self._kept.write(_DraftContent(str(self._file), text))

    def text(self) -> str | None:
        """The kept text; None if there is none, or it cannot be read."""
        content = self._kept.read_or_none()
        return content.text if content else None

    def drop(self) -> None:
        """Forget the text that was kept."""
        self._kept.remove()
