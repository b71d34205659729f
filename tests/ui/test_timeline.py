"""The timeline: what ran when, what waited, and what it cost; the same on the screen and in print."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time

import pytest

from tests.ui.bench import bench
from tests.ui.support import Story, triage_story
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.views.timeline import Timeline, TimelineRows, TimelineView, placed


def lines(timeline: Timeline, width: int = 100) -> list[str]:
    rows = TimelineRows(timeline)
    return [rows.row(i, width).text for i in range(len(rows))]


def kinds(timeline: Timeline) -> list[tuple[str, str]]:
    return [(bar.kind, bar.label or str(bar.place.turn)) for bar in timeline.bars]


def at(second: float) -> str:
    return (datetime(2026, 11, 2, 14, tzinfo=UTC) + timedelta(seconds=second)).isoformat()


def timed(*events: tuple[float, str, Place, dict[str, object]]) -> RunState:
    return RunState.of(
        Event(seq, at(second), "r", kind, place, data) for seq, (second, kind, place, data) in enumerate(events, 1)
    )


Record = tuple[float, str, Place, dict[str, object]]


def long_story() -> Story:
    """Sixty turns, each with a tool; a second goes by between two events."""
    story = Story().start()
    phase = story.phase("triage", max_turns=60)
    for turn in range(1, 61):
        place = phase._replace(attempt=1, turn=turn, call=1)
        story.entries = ()
        story.emit("context_assembled", place)
        story.emit("call_started", place)
        story.emit("call_finished", place, duration_s=0.5)
        story.emit("tool_started", place, index=1, tool="read_log")
        story.emit("tool_finished", place, index=1, tool="read_log", is_error=False)
    return story


def one_call(turn: int, assembled: float, sent: float, answered: float) -> list[Record]:
    place = Place("", "p", 1, 1, turn, 1)
    return [
        (assembled, "context_assembled", place, {}),
        (sent, "call_started", place, {}),
        (answered, "call_finished", place, {"duration_s": answered - sent}),
    ]


START: Record = (0.0, "run_started", Place(), {})
PHASE: Record = (0.0, "phase_started", Place("", "p", 1), {})


def test_calls_and_their_tools_stand_in_the_order_in_which_they_began() -> None:
    timeline = Timeline.of(RunState.of(triage_story().events))
    found = [pair for pair in kinds(timeline) if pair[0] in ("call", "tool")]
    assert found == [("call", "1"), ("call", "1"), ("tool", "read_log"), ("call", "2"), ("tool", "search_files")]


def test_a_stretch_between_a_request_and_its_sending_is_a_pause_and_any_other_is_idle() -> None:
    assembled, *sent = one_call(2, 3.1, 63.1, 64.0)
    paused: Record = (63.1, "paused", assembled[2], {"stop": "before_call", "seconds": 60.0})
    run = timed(START, PHASE, *one_call(1, 2.0, 2.0, 3.0), assembled, paused, *sent)
    timeline = Timeline.of(run)
    assert [(bar.kind, bar.start, bar.end) for bar in timeline.bars] == [
        ("idle", 0.0, 2.0),
        ("call", 2.0, 3.0),
        ("pause", 3.1, 63.1),
        ("call", 63.1, 64.0),
    ]
    assert timeline.paused == 60.0


def test_a_pause_in_which_the_request_was_edited_is_one_pause() -> None:
    assembled, *sent = one_call(1, 1.0, 20.0, 21.0)
    place = assembled[2]
    edited: list[Record] = [
        (17.0, "paused", place, {"stop": "before_call", "seconds": 16.0}),
        (17.0, "edited", place, {"stop": "before_call", "index": 0, "what": "change"}),
        (17.1, "context_assembled", place, {}),
        (20.0, "paused", place, {"stop": "before_call", "seconds": 2.9}),
    ]
    timeline = Timeline.of(timed(START, PHASE, assembled, *edited, *sent))
    assert [(bar.kind, bar.start, bar.end) for bar in timeline.bars if bar.kind != "call"] == [
        ("idle", 0.0, 1.0),
        ("pause", 1.0, 20.0),
    ]


def test_the_time_between_a_stop_and_its_going_on_is_left_out() -> None:
    resumed: Record = (3603.0, "run_resumed", Place(), {})
    run = timed(START, PHASE, *one_call(1, 0.1, 0.1, 3.0), resumed, *one_call(2, 3603.1, 3603.1, 3604.0))
    timeline = Timeline.of(run)
    assert [round(bar.start, 3) for bar in timeline.bars] == [0.1, 3.1]
    assert round(timeline.end, 3) == 4.0


def test_a_question_to_a_person_is_a_wait_until_it_is_answered() -> None:
    place = Place("", "p", 1, 1, 1, 1)
    asked: Record = (1.0, "human_asked", place, {"index": 1, "question": "Ship it?"})
    answered: Record = (31.0, "human_answered", place, {"index": 1, "answer": "yes"})
    (before,) = (bar for bar in Timeline.of(timed(START, PHASE, asked)).bars if bar.kind == "person")
    (after,) = (bar for bar in Timeline.of(timed(START, PHASE, asked, answered)).bars if bar.kind == "person")
    assert before.end is None
    assert after.seconds == 30.0


@pytest.mark.parametrize(
    ("begun", "is_error", "status"),
    [(-60.0, False, "recorded"), (-60.0, True, "failed"), (2.0, False, "done")],
    ids=["recorded", "failed when it was recorded", "of this run"],
)
def test_a_tool_that_ran_before_its_run_began_is_of_the_recording(begun: float, is_error: bool, status: str) -> None:
    place = Place("", "p", 1, 1, 1, 1)
    tool: list[Record] = [
        (begun, "tool_started", place, {"index": 1, "tool": "read_log"}),
        (begun + 1, "tool_finished", place, {"index": 1, "tool": "read_log", "is_error": is_error}),
    ]
    called = one_call(1, begun - 1, begun - 1, begun - 0.5)
    (bar,) = (bar for bar in Timeline.of(timed(START, PHASE, *called, *tool)).bars if bar.kind == "tool")
    assert bar.status == status


def test_a_question_that_its_column_cuts_goes_on_below_and_tools_are_indented() -> None:
    question = "Which of the two headlines shall the page of the trail lamp have on its first day?"
    asked: Record = (1.0, "human_asked", Place("", "p", 1), {"index": 1, "question": question})
    rows = TimelineRows(Timeline.of(timed(START, PHASE, asked)))
    at = next(i for i, bar in enumerate(rows.timeline.bars) if bar.kind == "person")
    for width in (60, 80, 120):
        first, *below = rows.whole(at, width)
        assert all(len(row.text) <= width for row in (first, *below))
        begun = first.text.partition("+")[0].replace("▚", "")
        assert " ".join([*begun.split(), *(word for row in below for word in row.text.split())]) == f"you: {question}"
    told = TimelineRows(Timeline.of(RunState.of(triage_story().events)))
    names = [told.row(i, 100).text[3:] for i, bar in enumerate(told.timeline.bars) if bar.kind == "tool"]
    assert names
    assert all(name.startswith("  ") and not name.startswith("   ") for name in names)


def test_the_axis_leaves_out_what_nothing_ran_in() -> None:
    run = timed(START, PHASE, *one_call(1, 0.0, 0.0, 1.0), *one_call(2, 1.0, 61.0, 62.0))
    timeline = Timeline.of(run)
    assert [timeline.axis(second) for second in (0.5, 1.0, 30.0, 61.0, 62.0)] == [0.5, 1.0, 1.0, 1.0, 2.0]


def test_the_axis_ends_with_the_time_in_which_something_ran_and_that_of_the_run() -> None:
    ended: Record = (4.0, "run_finished", Place(), {"status": "success"})
    run = timed(START, PHASE, *one_call(1, 2.0, 2.0, 3.0), ended)
    assert run.seconds == 4.0
    (head,) = TimelineRows(Timeline.of(run)).heads(100)
    assert head.text.rstrip().endswith("1.0s busy + 3.0s idle")


def test_two_calls_at_the_same_time_overlap() -> None:
    first, second = placed(0, 6, 0, 10, 10, "x", ""), placed(4, 10, 0, 10, 10, "x", "")
    assert ["".join(text for text, _ in spans) for spans in (first, second)] == ["xxxxxx    ", "    xxxxxx"]


def test_what_is_over_is_not_looked_at_again() -> None:
    """An event of a run of 5,000 calls costs no more than a redraw may."""
    calls = [record for turn in range(1, 2001) for record in one_call(turn, turn, turn, turn + 0.9)]
    state, timeline = timed(START, PHASE, *calls), Timeline()
    begun = process_time()
    timeline.absorb(state, {})
    first = process_time() - begun
    begun = process_time()
    for _ in range(5):
        timeline.absorb(state, {})
    assert (process_time() - begun) / 5 < first / 3
    assert [bar.place.turn for bar in timeline.bars if bar.kind == "call"] == list(range(1, 2001))


def test_events_one_by_one_make_the_same_bars_as_all_at_once() -> None:
    events = long_story().events
    state, timeline = RunState(), Timeline()
    for event in events:
        state.read(event)
        timeline.absorb(state, {})
    assert timeline.bars == Timeline.of(RunState.of(events)).bars
    assert sum(bar.kind == "tool" for bar in timeline.bars) == 60


def test_print_and_json_agree_with_the_run() -> None:
    state = RunState.of(triage_story(finished=True).events)
    told = TimelineView(state).json()
    calls = [bar for bar in told["bars"] if bar["kind"] == "call"]
    assert sum(bar["tokens_in"] for bar in calls) == state.own.tokens_in
    assert round(sum(bar["cost"] for bar in calls), 9) == round(state.own.cost or 0.0, 9)
    assert told["seconds"] == state.seconds


async def test_enter_on_a_bar_goes_to_its_call(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(40, 12), events=triage_story().events) as it:
        for size in ((40, 12), (80, 24), (120, 40), (200, 50)):
            await it.pilot.resize_terminal(*size)
            await it.press("6")
            assert it.screen.tab == "timeline"
            bars = it.presenter.timeline.bars
            row = next(i for i, bar in enumerate(bars) if bar.kind == "tool" and bar.label == "read_log")
            it.screen.dock_pane.move_to(row)
            it.screen.focus_pane("dock")
            await it.press("enter")
            selected = it.presenter.state.selected
            assert selected is not None
            assert (selected.phase, selected.turn) == ("triage", 1)
            assert it.screen.last_pane == "context"
            it.presenter.state.select(it.presenter.state.run.calls[-1].place)
