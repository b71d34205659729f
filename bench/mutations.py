"""Whether the frozen examples can fail: every change of a cascade that changes a request or a route must be found.

``python -m bench.mutations [NAME...]`` changes the cascades of ``snapshots/``, and those that their runs start, one
value at a time, replays, and prints by example how many changes there were and how many were found. It exits 1 when a
change survives, is found for nothing, or is not told first; and when an example has fewer than 20 that matter.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.snapshots.dot_operators import dot_changes
from tests.snapshots.operators import changes
from tests.snapshots.oracle import first_difference
from workbench.language.read.endings import DOT_ENDINGS
from workbench.resources import folder
from workbench.workspace.project import Project
from workbench.workspace.testing import SnapshotResult, Snapshots

ROOT = Path(__file__).parents[1]
LEAST = 20
"""Changes of each example that must be found."""


@dataclass
class Example:
    """What came of the changes of one example."""

    name: str
    tried: int = 0
    refused: int = 0
    """Changes after which the file is no cascade that could run; a replay says so."""
    found: int = 0
    """Changes that changed the run and were told first and rightly."""
    same: int = 0
    """Changes after which every request, route, check and tool call is as before: the replay passes."""
    wrong: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.wrong and self.found >= LEAST

    def __str__(self) -> str:
        matter = self.tried - self.refused - self.same
        rate = f"{100 * self.found / matter:.0f}%" if matter else "-"
        return f"{self.name:16} {self.tried:6} {self.refused:8} {self.same:6} {matter:8} {self.found:6} {rate:>6}"


def examples(root: Path) -> Snapshots:
    """A workspace in ``root`` with the examples and what was frozen of them."""
    shutil.copytree(folder("cascades"), root / "cascades", ignore=shutil.ignore_patterns(".workbench"))
    shutil.copytree(ROOT / "snapshots", root / "snapshots")
    environment = {"WORKBENCH_STATE_DIR": str(root / "state"), "WORKBENCH_CONFIG_DIR": str(root / "config")}
    return Snapshots(Project.at(root, env=environment))


def mutate(snapshots: Snapshots, file: Path, every: int = 1) -> Example:
    """Change the cascades of one snapshot, each ``every``-th change of each file, and look what its replay says."""
    example = Example(file.stem)
    before = snapshots.replay(file)
    if before.mode != "strict" and before.passed:  # Its requests may be others since: those of today are the measure.
        snapshots.accept(before)
        before = snapshots.replay(file, "strict")
    if not before.passed:
        example.wrong.append(f"fails unchanged: {before.first}")
        return example
    for cascade in _files(snapshots.project.root, before):
        text = cascade.read_text("utf-8")
        for number, (what, changed) in enumerate(_changes(cascade, text)):
            if number % every:
                continue
            cascade.write_text(changed, "utf-8")
            _judge(example, f"{cascade.name}: {what}", before, snapshots.replay(file, "strict"))
        cascade.write_text(text, "utf-8")
    return example


def _changes(file: Path, text: str) -> Iterator[tuple[str, str]]:
    """What is changed in a file, and its text then."""
    if file.name.endswith(DOT_ENDINGS):
        return dot_changes(text)
    return ((what, written(doc)) for what, doc in changes(yaml.safe_load(text)))


def _files(root: Path, verdict: SnapshotResult) -> Iterator[Path]:
    """The cascade of a snapshot and the files of those that its run started, each once."""
    assert verdict.again is not None
    kept = verdict.again.kept
    started = [events[0].data.get("cascade_file", "") for events in (kept.events, *kept.children.values())]
    names = [name.partition("#")[0] for name in (verdict.cascade_file, *started)]
    for name in dict.fromkeys(names):
        if (path := root / name).is_file():
            yield path


def written(doc: dict[str, Any]) -> str:
    """A document as the text of a file: JSON, which is YAML too and written forty times faster."""
    return json.dumps(doc, indent=2, ensure_ascii=False)


def _judge(example: Example, what: str, before: SnapshotResult, now: SnapshotResult) -> None:
    example.tried += 1
    if now.again is None:
        example.refused += 1
        return
    assert before.again is not None
    expected = first_difference(before.again.kept, now.again.kept)
    if expected is None:
        example.same += 1
        if not now.passed:
            example.wrong.append(f"{what}: failed for nothing: {now.first}")
    elif now.passed:
        example.wrong.append(f"{what}: survived, although it changes {expected}")
    elif not expected.is_told_by(now.differences[0].kind, now.differences[0].at, now.differences[0].words):
        example.wrong.append(f"{what}: expected {expected}, told is {now.first}")
    else:
        example.found += 1


def main(names: list[str]) -> int:
    """Exit code 1 where a change was not found as it must be."""
    good = True
    print(f"{'example':16} {'tried':>6} {'refused':>8} {'same':>6} {'matter':>8} {'found':>6} {'rate':>6}", flush=True)
    with tempfile.TemporaryDirectory() as scratch, examples(Path(scratch).resolve()) as snapshots:
        files = {file.stem: file for file in snapshots.files()}
        if unknown := [name for name in names if name not in files]:
            print(f"error: no frozen example '{unknown[0]}' (there are {', '.join(files)})", file=sys.stderr)
            return 2
        for name in names or files:
            example = mutate(snapshots, files[name])
            print(example, flush=True)
            for line in example.wrong:
                print(f"    {line}")
            good = good and example.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
