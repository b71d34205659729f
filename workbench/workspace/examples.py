"""The examples that come with the program, copied to where a user may change them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from workbench.resources import folder
from workbench.workspace.opened import CannotOpen

TOUR = "log_triage"
"""The example that a first look begins with."""


def example_files(where: Path) -> list[Path]:
    """The cascades among the example files, sorted."""
    beside = (".replies.yaml", ".input.json", ".answers.json")
    return sorted(
        path for path in where.iterdir() if path.suffix in (".yaml", ".json") and not path.name.endswith(beside)
    )


def copy_examples(target: Path | None) -> Path:
    """Copy all examples with their data; into a new folder when none is named. Files that are there stay as they are.

    Raises CannotOpen when the folder cannot be written.
    """
    try:
        if target is None:
            target = Path(tempfile.mkdtemp(prefix="cascade-workbench-"))
        target = target.expanduser().resolve()
        for source in sorted(folder("cascades").rglob("*")):
            relative = source.relative_to(folder("cascades"))
            if source.is_dir() or any(part.startswith(".") or part == "__pycache__" for part in relative.parts):
                continue
            copy = target / relative
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists():
                shutil.copyfile(source, copy)
    except OSError as error:
        raise CannotOpen(f"{target}: error: the examples cannot be copied: {error.strerror}") from error
    return target
