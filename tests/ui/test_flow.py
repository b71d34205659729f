"""The flow: the graph of the phases, with the walk, the counts and the costs of a run on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.bench import bench
from tests.ui.support import TRIAGE, triage_story
from tests.ui.test_hostile import ALL, assert_harmless, hostile_story
from workbench.engine.definition import Definition
from workbench.engine.journal.state import RunState
from workbench.tui.screens.flow import FlowSheet
from workbench.views.graph import FlowRows
from workbench.views.numbers import spent_words

GRAPH = Definition.of(TRIAGE, "log_triage.yaml").graph


def lines(rows: FlowRows, width: int = 120) -> list[str]:
    return [rows.row(i, width).text.rstrip() for i in range(len(rows))]


def test_the_ways_that_were_taken_stand_out_and_phases_have_their_numbers() -> None:
    run = RunState.of(triage_story(finished=True).events)
    rows = FlowRows(GRAPH, run)
    found = lines(rows)
    assert [line.split()[:2] for line in found if "▶" not in line] == [
        ["✓", "intake"],
        ["✓", "triage"],
        *([run_sign, name] for run_sign, name in (("✓" if "crash" in run.outputs else "○", "crash"), ("○", "noise"))),
    ]
    (way,) = (line for line in found if line.split()[:2] == ["└━▶", "triage"])
    assert "taken" in way
    assert any("╌▶ noise" in line and "taken" not in line for line in found)
    spent = spent_words(run.figures_of(run.visits[1:2]).spent)
    assert spent in found[2]
    assert f"{run.figures_of(run.visits[1:2]).tokens_in:,}" in found[2]


def test_before_a_run_there_is_the_graph_alone() -> None:
    found = lines(FlowRows(GRAPH, None))
    assert found[0].split() == ["○", "intake"]
    assert not any("taken" in line for line in found)


async def test_v_opens_the_flow_and_enter_goes_to_the_last_call_of_a_phase(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(40, 12), events=triage_story().events) as it:
        for size in ((40, 12), (80, 24), (120, 40), (200, 50)):
            await it.pilot.resize_terminal(*size)
            await it.press("v")
            assert isinstance(it.app.screen, FlowSheet)
            assert "intake" in it.text()
            await it.press("g", "enter")
            await it.until(lambda: len(it.app.screen_stack) == 1)
            assert it.presenter.state.selected is not None
            assert it.presenter.state.selected.phase == "intake"


@pytest.mark.fault("F28", "F29")
async def test_hostile_names_in_the_flow_are_shown_as_they_are(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(80, 24)) as it:
        for payload in ALL[::3]:
            await it.feed(hostile_story(payload).events)
            await it.press("v")
            assert isinstance(it.app.screen, FlowSheet)
            assert_harmless(it)
            await it.press("escape")
