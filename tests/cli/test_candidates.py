"""``candidates``: the facts of the Candidates screen without the screen, and a choice made without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Cli
from tests.ui.test_candidates import CASCADE, HUMAN, REPLIES


@pytest.fixture
def charts(workspace: Path, cli: Cli) -> Cli:
    (workspace / "charts.yaml").write_text(CASCADE)
    (workspace / "charts.replies.yaml").write_text(REPLIES)
    (workspace / "charts.input.json").write_text(json.dumps({"topic": "hits"}))
    return cli


def test_every_round_is_a_table_with_what_decided_it(charts: Cli) -> None:
    assert charts("run", "charts.yaml", "--session", "one").code == 0
    shown = charts("candidates", "one", "--text", "--plot")
    assert shown.code == 0
    assert "soundings · 4 candidates, 2 at once" in shown.out
    assert "reforge step 1 · 2 candidates" in shown.out
    assert "augment: Give concrete examples." in shown.out
    assert "the axes are named" in shown.out
    assert "Prefer what a reader could build." in shown.out
    assert "US dollars" in shown.out
    assert "the evaluator calls s0, s1, s2, s3 attempts 1 to 4" in shown.out
    for place in ("s1/generate:1", "r1.0/generate#1:1"):
        assert charts("context", "one", "--at", place).out.startswith(place.replace("#1", "")), "as the screen names it"
    refined = charts("show", "one_reforge1_0")  # As rows of the tables name it.
    assert refined.out.startswith("one  success")
    assert "one_reforge1_0 is the candidate r1.0 of this run" in refined.err
    assert charts("fork", "one", "--at", "s1/generate:1", "--session", "two").code == 0


def test_what_nobody_chose_is_told_as_undecided_by_every_command(charts: Cli, workspace: Path) -> None:
    phase = {"name": "p", "instructions": "Do.", "soundings": {"factor": 2, "max_parallel": 1}}
    (workspace / "odd.yaml").write_text(json.dumps({"cascade_id": "odd", "phases": [phase]}))
    replies = [{"text": "one"}, *({"aside": number, "text": "hm"} for number in (1, 2))]
    (workspace / "odd.replies.yaml").write_text(json.dumps({"replies": {"p": replies}}))
    ran = charts("run", "odd.yaml", "--session", "odd")
    assert "keeps  candidate s0, undecided: the evaluator's answer" in ran.err
    assert "picks" not in ran.err
    shown = charts("candidates", "odd", "--plain").out
    assert "s0 stands, undecided" in shown
    first = next(line for line in shown.splitlines() if line.startswith("s0  success"))
    assert "stands" in first
    assert "winner" not in first
    assert json.loads(charts("tree", "odd", "--json").out)["phases"][0]["undecided"] is True


def test_json_holds_every_fact_and_unknown_numbers_are_null(charts: Cli) -> None:
    charts("run", "charts.yaml", "--session", "one")
    found = charts("candidates", "one", "--phase", "generate", "--json").json
    soundings, reforge = found["contests"][0]["rounds"]
    assert [c["score"] for c in soundings["candidates"]] == [71, 88, 90, 64]
    assert [c["mutation_type"] for c in soundings["candidates"]] == [None, "augment", "augment", "augment"]
    assert soundings["evaluation"]["decided_by"] == "quality and cost"
    assert soundings["exchange"][0]["purpose"] == "evaluation"
    assert reforge["candidates"][0]["incumbent"]
    assert all(isinstance(c["cost"], float) for c in soundings["candidates"])


def test_a_run_without_candidates_says_so(charts: Cli) -> None:
    charts("run", "charts.yaml", "--session", "one")
    ended = charts("candidates", "one", "--phase", "tell")
    assert ended.code == 1
    assert "no candidates of phase 'tell' ran in one (there are candidates of generate)" in ended.err


def test_a_run_without_candidates_names_the_newest_that_has_some(charts: Cli) -> None:
    assert charts("run", "greet.yaml", "--session", "plain").code == 0
    assert charts("candidates").err == "error: no candidates ran in plain\n"
    for name in ("one", "two"):
        charts("run", "charts.yaml", "--session", name)
    assert charts("run", "greet.yaml", "--session", "later").code == 0
    ended = charts("candidates")
    assert ended.code == 1
    assert "no candidates ran in later (the newest run that has some: workbench candidates two)" in ended.err


def test_a_choice_comes_from_a_file_and_a_run_without_one_waits_for_it(charts: Cli, workspace: Path) -> None:
    (workspace / "charts.yaml").write_text(HUMAN)
    assert charts("run", "charts.yaml", "--session", "one").code == 1
    waiting = charts("candidates", "one", "--json").json
    assert [c["status"] for c in waiting["contests"][0]["rounds"][0]["candidates"]] == ["success"] * 4
    (workspace / "answers.json").write_text(json.dumps({"generate": "Attempt 3: it names axes"}))
    assert charts("resume", "one", "--answers", "answers.json").code == 0
    chosen = charts("candidates", "one", "--json").json["contests"][0]["rounds"][0]
    assert (chosen["winner"], chosen["evaluation"]["reason"]) == (2, "it names axes")
