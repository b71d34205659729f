"""The snapshots of the examples can fail: every change of a cascade that changes a run is found, and told first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.mutations import LEAST, ROOT, examples, mutate, written
from tests.snapshots.mutations import Mutation, Ran, mutations
from tests.snapshots.oracle import first_difference
from workbench.workspace.testing import SnapshotResult, Snapshots

EXAMPLES = ("csv_questions", "debug_agent", "diff_review", "log_triage", "router")
"""Those whose differences are expected in their words here."""
DECOMPOSITIONS = {"ticket_answers"}
"""Not changed here: the mutations change phases, which a decomposition has none of."""
OTHERS = sorted({path.stem for path in (ROOT / "snapshots").glob("*.json")} - set(EXAMPLES) - DECOMPOSITIONS)
SAMPLE = 20
"""Of the changes made from the shape of a file alone, each so many-th; ``python -m bench.mutations`` has all."""


def at(name: str, *, at_once: bool) -> Any:
    """An example that the suite changes, or that ``python -m bench.proofs`` does."""
    return pytest.param(name, marks=() if at_once else pytest.mark.proof)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshots]:
    with examples(tmp_path_factory.mktemp("examples")) as opened:
        yield opened


def cascade_file(snapshots: Snapshots, name: str) -> Path:
    (file,) = [
        f for f in (snapshots.project.root / "cascades").glob(f"{name}.*") if f.suffixes in ([".yaml"], [".json"])
    ]
    return file


def what_it_did(verdict: SnapshotResult) -> Ran:
    assert verdict.snapshot is not None
    turns: Counter[str] = Counter()
    tools: dict[str, set[int]] = {}
    for event in verdict.snapshot.kept.events:
        place = event.place
        if event.kind == "call_finished":
            turns[place.phase] = max(turns[place.phase], place.turn)
        elif event.kind == "tool_finished":
            tools.setdefault(place.phase, set()).add(place.turn)
    return Ran(turns, {phase: len(numbers) for phase, numbers in tools.items()})


@pytest.mark.parametrize("name", [at(name, at_once=name == "debug_agent") for name in EXAMPLES])
def test_every_change_that_changes_the_run_fails_with_the_right_first_difference(
    name: str, snapshots: Snapshots
) -> None:
    snapshot, file = snapshots.path(name), cascade_file(snapshots, name)
    text = file.read_text("utf-8")
    unchanged = snapshots.replay(snapshot)
    assert unchanged.passed, unchanged.first
    assert unchanged.again is not None
    killed: list[Mutation] = []
    wrong: list[str] = []
    for mutation in mutations(yaml.safe_load(text), what_it_did(unchanged)):
        file.write_text(written(mutation.doc), "utf-8")
        verdict = snapshots.replay(snapshot)
        if verdict.again is not None:
            changes_the_run = first_difference(unchanged.again.kept, verdict.again.kept) is not None
            if changes_the_run == verdict.passed:
                wrong.append(f"{mutation.name}: {'survived' if verdict.passed else 'failed for nothing'}")
        if verdict.passed != (not mutation.first) or not re.match(mutation.first, verdict.first):
            wrong.append(f"{mutation.name}: expected {mutation.first!r}, first is {verdict.first!r}")
        if not verdict.passed:
            killed.append(mutation)
    file.write_text(text, "utf-8")
    assert not wrong, "\n".join(wrong)
    assert len(killed) >= LEAST


@pytest.mark.parametrize("name", [at(name, at_once=number % 3 == 0) for number, name in enumerate(OTHERS)])
def test_changes_of_the_other_examples_are_found_where_they_matter(name: str, snapshots: Snapshots) -> None:
    example = mutate(snapshots, snapshots.path(name), every=SAMPLE)
    assert not example.wrong, "\n".join(example.wrong)
    assert example.found
