"""The files of a snapshot folder: which of them are snapshots, the head of each, and its problems."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from workbench.files import is_there, read_plain
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.freeze import Label, is_session
from workbench.snapshots.original import Original
from workbench.snapshots.snapshot import NAME, Snapshot, parsed

if TYPE_CHECKING:
    from workbench.workspace.project import Project

FOLDER = "snapshots"
STRUCTURE = "structure"
"""How a file of the original is tested: it holds no requests to compare."""
HEAD = b'"snapshot_name"'
HEAD_BYTES = 4096
"""A JSON file without our marker in its first bytes is not ours: other tools have such folders, too."""


class ListedSnapshot(Struct, frozen=True):
    """A file of the folder, as it is listed."""

    name: str
    file: str
    kind: str
    """strict, plumbing, structure (a file of the original), orphaned, unreadable."""
    cascade_file: str = ""
    description: str = ""
    captured_at: str = ""
    calls: int | None = None
    problem: str = ""
    redacted: int = 0
    """Secrets that were replaced when it was frozen."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class SnapshotFolder:
    """The folder ``snapshots`` of a workspace."""

    def __init__(self, project: Project, folder: Path | None = None) -> None:
        self.project = project
        self.folder = folder or project.root / FOLDER

    def _json_files(self) -> list[Path]:
        return sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []

    def files(self) -> list[Path]:
        """The snapshots of the folder, damaged ones too, by name."""
        return [file for file in self._json_files() if is_ours(file)]

    def path(self, name: str) -> Path:
        """The file of a snapshot. Raises SnapshotError for a name that is not a file name."""
        return self.folder / f"{Label(name).name}.json"

    def read(self, file: Path) -> Snapshot | Original:
        """Raises SnapshotError with the place."""
        shown = self.project.shown(file)
        return read_snapshot(text_of(file, shown), shown)

    def proposed_name(self, cascade_id: str) -> str:
        """A name for a snapshot of a cascade that no file has yet: ``router``, then ``router_2``."""
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", cascade_id).lstrip(".-")[:80] or "snapshot"
        assert NAME.fullmatch(base)
        taken = {file.stem for file in self._json_files()}
        numbered = (f"{base}_{number}" for number in range(2, len(taken) + 3))
        return next(name for name in (base, *numbered) if name not in taken)

    def listed(self) -> list[ListedSnapshot]:
        """Every snapshot of the folder, damaged ones too. JSON files of other tools are left out."""
        return [self.about(file) for file in self.files()]

    def about(self, file: Path) -> ListedSnapshot:
        """The head of one file, or its problem."""
        shown = self.project.shown(file)
        try:
            snapshot = self.read(file)
        except SnapshotError as fault:
            return ListedSnapshot(file.stem, shown, "unreadable", problem=str(fault))
        watched = not isinstance(snapshot, Original) and is_session(snapshot.kept.events)
        orphaned = not watched and not is_there(self.project.root / snapshot.cascade_file)
        return ListedSnapshot(
            file.stem,
            shown,
            "orphaned" if orphaned else STRUCTURE if isinstance(snapshot, Original) else snapshot.mode,
            snapshot.cascade_file,
            snapshot.description,
            snapshot.captured_at,
            None if isinstance(snapshot, Original) else len(snapshot.expectations.requests),
            "its cascade does not exist any more" if orphaned else "",
            0 if isinstance(snapshot, Original) else snapshot.redacted,
        )


def is_ours(file: Path) -> bool:
    """Returns whether a JSON file says that it is a snapshot; one that is empty or cannot be read counts, so that it is
    named as broken. A folder, a pipe or a link to nothing is no file of ours."""
    if not file.is_file():
        return False
    try:
        head = read_plain(file, HEAD_BYTES)
    except OSError:
        return True
    return HEAD in head or not head.strip()


def read_snapshot(text: str, file: str) -> Snapshot | Original:
    """A snapshot, or one of the original where there is no ``workbench`` block. Raises SnapshotError."""
    try:
        body = parsed(text)
        return Snapshot.from_json(body) if "workbench" in body else Original.from_json(body)
    except SnapshotError as fault:
        raise fault.at(file) from None


def names(files: Sequence[Path]) -> str:
    """Files by their names, for a sentence: ``a, b``."""
    return ", ".join(file.stem for file in files) or "none"


def text_of(file: Path, shown: str) -> str:
    """A file of the workspace. Raises SnapshotError."""
    try:
        return read_plain(file).decode("utf-8")
    except FileNotFoundError:
        raise SnapshotError("no such file", file=shown) from None
    except UnicodeDecodeError:
        raise SnapshotError("not UTF-8", file=shown) from None
    except OSError as fault:
        raise SnapshotError(f"cannot be read: {fault.strerror}", file=shown) from fault
