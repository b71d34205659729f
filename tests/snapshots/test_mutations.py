"""The snapshots of the examples can fail: every change of a cascade that changes a run is found, and told first."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.snapshots.mutations import Mutation, Ran, mutations
from workbench.engine.event import Event
from workbench.resources import folder
from workbench.snapshots.kept import Kept
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots, Verdict

ROOT = Path(__file__).parents[2]
EXAMPLES = ("csv_questions", "debug_agent", "diff_review", "log_triage", "router")
LEAST = 20
"""Changes of each example that must be found."""
Replay = Callable[[str, dict[str, Any]], Verdict]


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    """Replays the snapshot of an example against another document in the place of its cascade."""
    root = tmp_path_factory.mktemp("examples")
    shutil.copytree(folder("cascades"), root / "cascades", ignore=shutil.ignore_patterns(".workbench"))
    shutil.copytree(ROOT / "snapshots", root / "snapshots")
    environment = {"WORKBENCH_STATE_DIR": str(root / "state"), "WORKBENCH_CONFIG_DIR": str(root / "config")}
    with Snapshots(Project.at(root, env=environment)) as snapshots:

        def run(name: str, doc: dict[str, Any]) -> Verdict:
            file = root / "cascades" / cascade_file(name).name
            is_json = file.suffix == ".json"
            file.write_text(json.dumps(doc, indent=2) if is_json else yaml.safe_dump(doc, sort_keys=False), "utf-8")
            return snapshots.replay(root / "snapshots" / f"{name}.json")

        yield run


def cascade_file(name: str) -> Path:
    (file,) = [f for f in folder("cascades").iterdir() if f.suffix in (".yaml", ".json") and f.stem == name]
    return file


def document(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(cascade_file(name).read_text("utf-8"))
    return loaded


def what_it_did(verdict: Verdict) -> Ran:
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


def observable(kept: Kept) -> list[tuple[Any, ...]]:
    """What a run did that a test must see, read off its events without the code under test."""

    def seen(event: Event) -> tuple[Any, ...] | None:
        data = event.data
        match event.kind:
            case "context_assembled":
                return (event.place, data["digest"])
            case "route_chosen":
                return (event.place, data["to"], data["rule"])
            case "check_finished":
                return (event.place, data["name"], data["mode"], data["valid"], data["reason"])
            case "tool_started":
                return (event.place, data["tool"], data["arguments"])
            case "state_set":
                return (event.place, data["key"], json.dumps(data["value"]))
            case "phase_finished" | "run_finished":
                return (event.place, data["status"], data["output"])
        return None

    return [row for event in kept.events if (row := seen(event)) is not None]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_change_that_changes_the_run_fails_with_the_right_first_difference(name: str, replay: Replay) -> None:
    doc = document(name)
    unchanged = replay(name, doc)
    assert unchanged.passed, unchanged.first
    assert unchanged.snapshot is not None
    before = observable(unchanged.snapshot.kept)
    killed: list[Mutation] = []
    wrong: list[str] = []
    for mutation in mutations(doc, what_it_did(unchanged)):
        verdict = replay(name, mutation.doc)
        if verdict.again is not None:
            changes_the_run = observable(verdict.again.kept) != before
            if changes_the_run == verdict.passed:
                wrong.append(f"{mutation.name}: {'survived' if verdict.passed else 'failed for nothing'}")
        if verdict.passed != (not mutation.first) or not re.match(mutation.first, verdict.first):
            wrong.append(f"{mutation.name}: expected {mutation.first!r}, first is {verdict.first!r}")
        if not verdict.passed:
            killed.append(mutation)
    assert not wrong, "\n".join(wrong)
    assert len(killed) >= LEAST
