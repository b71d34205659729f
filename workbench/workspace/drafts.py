"""Text that is being written and not saved yet, kept beside the user's state: what a killed app leaves is not lost."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from workbench.replacing import write_whole


class Draft:
    """The unsaved text of one file."""

    def __init__(self, folder: Path, file: Path) -> None:
        """``folder`` is where drafts lie; it is made when the first one is kept."""
        self._file = file.resolve()
        digest = hashlib.sha256(str(self._file).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._kept = folder / f"{digest}.json"

    def keep(self, text: str) -> None:
        """Keep a text in place of the one before. Raises OSError."""
        self._kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self._kept, json.dumps({"file": str(self._file), "text": text}).encode("utf-8"), 0o600)

    def text(self) -> str | None:
        """What was kept; None where nothing was, or where it cannot be read any more."""
        try:
            body = json.loads(self._kept.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        text = body.get("text") if isinstance(body, dict) else None
        return text if isinstance(text, str) else None

    def drop(self) -> None:
        """Forget what was kept."""
        with suppress(OSError):
            self._kept.unlink()
