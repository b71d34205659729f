"""``sweep --live``: strategies are run by a model, within a budget, and the sweep knows of it afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Cli
from tests.support.loopback import Loopback, Received, Reply

CASCADE = """\
cascade_id: ask
strategies: {everything: snowball}
phases:
  - name: ask
    model: openai/cheap
    instructions: "Say it. {{ input.hint }}"
"""
PRICES = {"prices": {"openai/cheap": {"input": 1, "output": 2}}}


@pytest.fixture
def calls() -> list[str]:
    """The models that were asked."""
    return []


@pytest.fixture
def provider(calls: list[str]) -> Iterator[Loopback]:
    def said(request: Received) -> Reply:
        calls.append(request.model)
        return Reply("It is said.")

    with Loopback(said) as server:
        yield server


@pytest.fixture
def asked(cli: Cli, workspace: Path, provider: Loopback) -> Cli:
    """A workspace with one run that a model answered."""
    config = Path(os.environ["WORKBENCH_CONFIG_DIR"])
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.yaml").write_text(json.dumps(PRICES | {"base_url": provider.url}))
    (workspace / "ask.yaml").write_text(CASCADE)
    (workspace / "ask.input.json").write_text('{"hint": "Now."}')
    ended = cli("run", "ask.yaml", "--session", "one")
    assert ended.code == 0, ended.err
    return cli


def test_what_was_never_run_live_is_named_run_within_a_budget_and_known_then(asked: Cli, calls: list[str]) -> None:
    before = asked("sweep", "one", "-s", "mask(after=1)")
    assert "everything, mask(after=1) were never run live: answer quality is unknown" in before.out
    assert "--live 2" in before.err
    asked_before = len(calls)

    small = asked("sweep", "one", "-s", "mask(after=1)", "--live", "everything", "--max-cost", "1e-9", "--yes")
    assert small.code == 2
    assert "too small" in small.err
    unasked = asked("sweep", "one", "-s", "mask(after=1)", "--live", "everything")
    assert (unasked.code, "nothing was run" in unasked.err) == (1, True)
    assert "expected, budget $" in unasked.err, "what it costs is said before"
    unknown = asked("sweep", "one", "-s", "mask(after=1)", "--live", "mask(after=9)", "--yes")
    assert unknown.code == 2
    assert len(calls) == asked_before, "none of these asked a model"

    found = asked("sweep", "one", "-s", "mask(after=1)", "--live", "2", "--yes", "--json").json["live"]
    assert len(calls) == asked_before + 2
    assert sorted(run["strategy"] for run in found["runs"]) == ["everything", "mask(after=1)"]
    assert {run["status"] for run in found["runs"]} == {"success"}
    assert {run["output"] for run in found["runs"]} == {"It is said."}
    assert not found["offline"]
    assert found["max_cost"] == pytest.approx(2 * found["expected_cost"])

    assert asked("annotate", found["runs"][0]["session_id"], "--score", "80").code == 0
    after = asked("sweep", "one", "-s", "mask(after=1)", "--json").json
    assert [name for name in after["never_live"] if name != "snowball"] == []
    ran = {row["strategy"]: row["ran"] for row in after["strategies"]}
    assert ran["file"]["live"] == 1
    assert ran[found["runs"][0]["strategy"]] == {"live": 1, "succeeded": 1, "scores": [80.0], "offline": 0}
    assert ran["snowball"]["live"] == ran["everything"]["live"], "two names of one strategy"
