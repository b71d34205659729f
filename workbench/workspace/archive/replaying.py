"""Frozen runs replayed by many workers: each snapshot by one of them, the results in the order of the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.shares import split
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.snapshot import Mode
from workbench.workspace.archive.workers import Lost, Workers
from workbench.workspace.project import Project
from workbench.workspace.testing import SnapshotResult, Snapshots

MOST_SHARE = 20
"""Snapshots of a share, at most: less than a second of work where they are small."""


class ReplayWork(Struct, frozen=True):
    """Replays snapshots, in whichever process."""

    root: str
    """Of the workspace."""
    mode: Mode | None = None
    commands: bool = False

    def __call__(self, files: tuple[str, ...]) -> list[SnapshotResult]:
        with Snapshots(Project.at(Path(self.root)), commands=self.commands) as snapshots:
            found = [snapshots.replay(Path(file), self.mode) for file in files]
        return [replace(one, again=None, snapshot=None) for one in found]  # The runs may be large.


def replayed(
    project: Project, files: Sequence[Path], workers: Workers, *, mode: Mode | None = None, commands: bool = False
) -> list[SnapshotResult]:
    """The results of all files, in their order. Raises WorkersFault."""
    work = ReplayWork(str(project.root), mode, commands)
    by_share: dict[int, list[SnapshotResult]] = {}
    for share, found in workers.results(work, split([str(file) for file in files], MOST_SHARE)):
        by_share[share.number] = [
            SnapshotResult(Path(file).stem, project.shown(Path(file)), fault=SnapshotError(one.reason))
            if isinstance(one, Lost)
            else one
            for file, one in zip(share.items, found, strict=True)
        ]
    return [one for _, found in sorted(by_share.items()) for one in found]
