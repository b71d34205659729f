"""``workbench analyze``: too few runs are said so; enough of them are tables, a suggestion, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.support.command import run_cli
from tests.support.workspaces import filled

CASCADE = """\
cascade_id: write
phases:
  - name: draft
    instructions: Write.
    soundings:
      factor: 2
      mutate: true
      mutation_mode: augment
      mutations: [Think step by step.]
      evaluator_instructions: The best.
"""
REPLIES = """\
replies:
  draft:
    - text: "A draft."
    - {aside: 1, text: '{"winner": 2, "scores": {"1": 40, "2": 80}, "reason": "it has steps"}'}
"""


@pytest.fixture
def folder(folder: Path) -> Path:
    return filled(folder, {"write.yaml": CASCADE, "write.replies.yaml": REPLIES})


def test_few_runs_are_no_evidence_unless_asked(folder: Path) -> None:
    none = run_cli("analyze", "write.yaml")
    assert (none.code, none.err) == (1, "error: no stored run has soundings with a winner in write.yaml\n")
    for number in range(6):
        assert run_cli("run", "write.yaml", "--session", f"w{number}", "-q").code == 0
    few = run_cli("analyze", "write.yaml")
    assert few.code == 1
    assert "draft: soundings of 6 of 10 runs; --min-runs 6 looks at them" in few.err
    shown = run_cli("analyze", "write.yaml", "--min-runs", "6", "--plain")
    assert shown.code == 0
    assert shown.out.startswith("draft  6 rounds in 6 runs\n")
    document = run_cli("analyze", "write.yaml", "--min-runs", "6", "--json").json
    (phase,) = document["phases"]
    assert (document["runs"], phase["rounds"]) == (6, 6)
    assert sum(variant["won"] for variant in phase["variants"]) == 6


def test_a_suggestion_is_written_into_the_file_and_the_analysis_into_another(folder: Path) -> None:
    (folder / "write.yaml").write_text("# ours\n" + CASCADE)
    for number in range(6):
        assert run_cli("run", "write.yaml", "--session", f"w{number}", "-q").code == 0
    said = run_cli("analyze", "write.yaml", "--min-runs", "6", "--apply", "-o", "found.json", "--plain")
    assert said.code == 0
    assert "write.yaml: draft: instructions taken from augment: Think step by step." in said.err
    text = (folder / "write.yaml").read_text()
    assert text.startswith("# ours\n")
    assert yaml.safe_load(text)["phases"][0]["instructions"] == "Think step by step.\n\nWrite."
    assert yaml.safe_load(text)["phases"][0]["soundings"]["factor"] == 2
    assert json.loads((folder / "found.json").read_text())["phases"][0]["rounds"] == 6
    assert run_cli("check", "write.yaml").code == 0


def test_a_suggestion_that_cannot_be_written_says_why(folder: Path) -> None:
    rewritten = CASCADE.replace("augment", "rewrite").replace("Write.", "Write of {{ input.x }}.")
    (folder / "write.yaml").write_text(rewritten)
    replies = REPLIES + '    - {branch: "*1", text: b}\n    - {branch: "*1", aside: 1, text: "Rewritten."}\n'
    (folder / "write.replies.yaml").write_text(replies)
    for number in range(6):
        assert run_cli("run", "write.yaml", "--session", f"w{number}", "-q", "--input", '{"x": 1}').code == 0
    said = run_cli("analyze", "write.yaml", "--min-runs", "6", "--apply")
    assert said.code == 1
    assert "the rewritten instructions hold the input of one run" in said.err
    assert (folder / "write.yaml").read_text() == rewritten
