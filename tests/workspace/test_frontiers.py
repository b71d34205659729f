"""The Pareto frontier of a run stands in a file of the store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.workspace.model_choice import choose_model
from workbench.workspace.project import Project
from workbench.workspace.run_builder import RunAttachments, Start, new_options, run_new
from workbench.workspace.run_files import Frontiers

CASCADE = """
cascade_id: c
phases:
  - name: write
    instructions: Write.
    model: openai/gpt-4o
    soundings:
      factor: 3
      pareto_frontier: {enabled: true, policy: prefer_cheap}
"""
REPLIES = """
replies:
  write:
    - {branch: "*0", text: short, usage: {input: 100, output: 10}}
    - {branch: "*1", text: "rather a long text, which costs more and is worse", usage: {input: 100, output: 90}}
    - {branch: "*2", text: "a longer text, which costs more and is better", usage: {input: 100, output: 80}}
    - {aside: 1, text: '{"winner": 3, "scores": {"1": 60, "2": 50, "3": 90}, "reason": "r"}'}
"""


def test_the_file_holds_the_frontier_the_winner_and_who_is_beaten(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CASCADE)
    file.with_name("c.replies.yaml").write_text(REPLIES)
    env = {"WORKBENCH_STATE_DIR": str(tmp_path / "state"), "WORKBENCH_CONFIG_DIR": str(tmp_path / "config")}
    project = Project.at(tmp_path, env=env)
    opened = project.open(file)
    assert opened.definition is not None
    choice = choose_model(project, opened.cascade, None, "offline")
    options = new_options(project, "c", choice, "s1")
    asyncio.run(run_new(project, Start(opened.definition, file, {}, choice, options), RunAttachments()))
    found = json.loads((project.store.root / "graphs" / "pareto_s1.json").read_text())
    assert [(one["sounding_index"], one["quality"], one.get("is_winner")) for one in found["frontier"]] == [
        (0, 60.0, True),
        (2, 90.0, None),
    ]
    assert {one["model"] for one in found["frontier"]} == {"openai/gpt-4o"}
    (beaten,) = found["dominated"]
    assert (beaten["sounding_index"], beaten["dominated_by"]) in ((1, 0), (1, 2))
    assert found["by_phase"]["write"] == {name: found[name] for name in ("frontier", "dominated")}


def test_phases_in_walks_later_visits_and_the_walks_themselves_have_frontiers_of_their_own(tmp_path: Path) -> None:
    project = Project.at(tmp_path, env={"WORKBENCH_STATE_DIR": str(tmp_path), "WORKBENCH_CONFIG_DIR": str(tmp_path)})
    project.store.root.mkdir()
    watch = Frontiers(project.graphs, pytest.fail)

    def tell(kind: str, place: Place, **data: Any) -> None:
        watch(Event(1, "", "r", kind, place, data))

    for number, walk in enumerate(("s0", "s1")):
        tell("candidate_finished", Place(f"{walk}/s0", "p", 1), index=0, model=f"model {number}")
    tell("candidate_finished", Place("s0/s0", "p", 2), index=0, model="model 2")
    for branch, visit in (("s0", 1), ("s1", 1), ("s0", 2), ("", 0)):
        tell("evaluation_finished", Place(branch, "p", visit), frontier=[0], winner=0, qualities={"0": 1.0}, costs={})
    found = json.loads((project.store.root / "graphs" / "pareto_r.json").read_text())["by_phase"]
    assert {name: one["frontier"][0].get("model") for name, one in found.items()} == {
        "s0/p": "model 0",
        "s1/p": "model 1",
        "s0/p#2": "model 2",
        "cascade": None,
    }


def test_a_file_that_cannot_be_written_is_told_and_stops_nothing(tmp_path: Path) -> None:
    project = Project.at(tmp_path, env={"WORKBENCH_STATE_DIR": str(tmp_path), "WORKBENCH_CONFIG_DIR": str(tmp_path)})
    project.store.root.mkdir()
    (project.store.root / "graphs").write_text("a file in the way")
    said: list[str] = []
    data = {"frontier": [0], "winner": 0, "qualities": {"0": 1.0}, "costs": {}}
    Frontiers(project.graphs, said.append)(Event(1, "", "r", "evaluation_finished", data=data))
    assert len(said) == 1
    assert said[0].startswith("the frontier is not written to ")
