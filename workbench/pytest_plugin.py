"""The pytest plugin: collects ``snapshots/*.json`` as tests. At collection it imports pytest and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from workbench.workspace.testing import Snapshots

_HEAD = b'"snapshot_name"'
_HEAD_BYTES = 4096
_UPDATED = "snapshot updated"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cascade workbench")
    group.addoption(
        "--snapshots-update",
        action="store_true",
        help="write what changed cascades do now as the new expectation of their snapshots",
    )
    parser.addini("snapshots_folder", "name of folders whose JSON files are snapshots of cascades", default="snapshots")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "snapshot: a frozen run of a cascade, replayed without a model")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SnapshotFile | None:
    """A JSON file of a snapshot folder, if it is one of ours: other tools have folders of that name too."""
    if file_path.suffix != ".json" or file_path.parent.name != parent.config.getini("snapshots_folder"):
        return None
    try:
        with file_path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if _HEAD not in head and head.strip():  # An empty one was a snapshot before something went wrong.
        return None
    collected: SnapshotFile = SnapshotFile.from_parent(parent, path=file_path)
    return collected


class SnapshotFile(pytest.File):
    """A snapshot; its one test has its name."""

    def collect(self) -> Iterator[SnapshotItem]:
        item: SnapshotItem = SnapshotItem.from_parent(self, name=self.path.stem)
        item.add_marker("snapshot")
        yield item


class SnapshotItem(pytest.Item):
    """Replays the snapshot against the cascade of today."""

    def runtest(self) -> None:
        snapshots = _snapshots_of(self.config, self.path.parent)
        verdict = snapshots.replay(self.path)
        if verdict.passed:
            return
        if not self.config.getoption("snapshots_update"):
            raise SnapshotFailed(verdict.failure)
        if fault := snapshots.accept_or_fault(verdict):
            raise SnapshotFailed(fault)
        self.user_properties.append((_UPDATED, verdict.file))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The differences in words; no traceback of ours would help."""
        error = excinfo.value
        if isinstance(error, SnapshotFailed):
            return str(error)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"snapshot {self.name}"


class SnapshotFailed(Exception):
    """Something is not as frozen."""


_open = pytest.StashKey[dict[Path, "Snapshots"]]()


def _snapshots_of(config: pytest.Config, folder: Path) -> Snapshots:
    """The workspace is the folder around the snapshots; one for the session, because tools are described once."""
    known = config.stash.setdefault(_open, {})
    if folder not in known:
        from workbench.workspace.testing import Snapshots  # the engine: 1 s, which a run without snapshots does not pay

        known[folder] = Snapshots.of_folder(folder)
    return known[folder]


def pytest_unconfigure(config: pytest.Config) -> None:
    for snapshots in config.stash.get(_open, {}).values():
        snapshots.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Lists the snapshots that were written."""
    updated = [
        value
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == _UPDATED
    ]
    if updated:
        terminalreporter.section("snapshots")
    for file in updated:
        terminalreporter.line(f"updated: {file}")
