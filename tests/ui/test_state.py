"""The state of the Bench: the fold over events and notices, what is selected, what follows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.ui.support import Story, entry, triage_story
from tests.ui.test_candidates import contested
from workbench.context.assembly import Kind
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.edits import SetAnswer, to_json
from workbench.engine.journal.event import KINDS, Event
from workbench.engine.journal.state import RunState
from workbench.engine.texts import result_text
from workbench.tui.bench.state import STREAM_KEPT, BenchState, HeldRun
from workbench.views.log import KEPT_LINES, LogLine, LogRows, log_line, state_rows
from workbench.views.numbers import clock
from workbench.views.words import words_of


def fed(events: Sequence[Event], notices: Sequence[Notice] = ()) -> BenchState:
    state = BenchState()
    state.absorb(events, notices, 0.0)
    return state


def held(place: Place, why: str = "step over") -> Notice:
    return Notice("held", place, {"stop": "before_call", "why": why, "tool": ""})


def test_a_check_and_a_value_that_was_edited_are_named() -> None:
    story = triage_story()
    place = story.events[-1].place
    stopped = Notice("held", place, {"stop": "after_check"})
    assert fed(story.events, [stopped]).held_at == f"after a check of {place.phase}"
    story.emit("check_finished", place, check="output_schema", index=1, name="is_short", valid=True, reason="")
    for key, by in (("mine", "edit"), ("its", "set_state")):
        story.emit("state_set", place, key=key, value=1, by=by)
    state = fed(story.events, [stopped])
    assert state.held_at == f"after check is_short of {place.phase}"
    rows = {row.text.split()[0]: row.text for row in state_rows(state.run)}
    assert [key for key in ("mine", "its") if "✎" in rows[key]] == ["mine"]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30))
def test_it_does_not_matter_in_how_many_pieces_the_events_come(sizes: list[int]) -> None:
    events = triage_story(finished=True).events
    whole, pieces = fed(events), BenchState()
    at = 0
    for size in [*sizes, len(events)]:
        pieces.absorb(events[at : at + size], (), 0.0)
        at += size
    assert pieces.selected == whole.selected
    assert list(pieces.log.lines) == list(whole.log.lines)
    assert pieces.run.status == whole.run.status == "success"


def test_a_stop_that_is_held_again_names_the_edit() -> None:
    story = triage_story()
    place = story.events[-1].place
    arguments = '{"path": "b.log"}'
    edit = {"edit": "arguments", "arguments": arguments}
    story.emit("edited", place, stop="before_tool", index=1, what="arguments", before="{}", after=arguments, edit=edit)
    state = fed(story.events, [held(place, "edited")])
    assert state.held is not None
    assert state.held.why == f"edited, arguments: {arguments}"
    assert state.held.reason == f"edited, arguments: {arguments}"


def test_the_newest_call_is_followed_until_the_user_looks_elsewhere() -> None:
    events = triage_story().events
    state = fed(events)
    assert state.selected == events[-1].place
    assert state.move(-1)
    assert not state.following
    story = triage_story()
    place = events[-1].place._replace(turn=4)
    story.context(place, story.entries)
    state.absorb(story.events[len(events) :], (), 0.0)
    assert state.selected is not None
    assert state.selected.turn == 2
    assert state.move(1)
    assert state.move(1)
    assert state.following
    assert state.selected == place


def test_moving_stops_at_both_ends() -> None:
    state = fed(triage_story().events)
    assert not state.move(1)
    while state.move(-1):
        pass
    assert state.selected == state.run.calls[0].place
    assert not BenchState().move(-1)


def test_being_held_selects_the_call_and_says_where() -> None:
    events = triage_story().events
    state = fed(events)
    state.move(-1)
    state.absorb((), [held(events[-1].place)], 0.0)
    assert state.held is not None
    assert state.held.words == "before call"
    assert state.selected == events[-1].place
    assert state.held.where == "before triage:3"
    assert state.held.reason == "", "a step that was asked for needs none"
    assert "step over" not in state.log.lines[-1].text, "the status bar says it, and nothing else does"
    beside = triage_story()
    beside.context(events[-1].place._replace(branch="s1", turn=1), beside.entries)
    state.absorb(beside.events[len(events) :], (), 0.0)
    assert state.selected == events[-1].place, "a call of another branch takes the place of the paused one"
    state.absorb((), [Notice("released", events[-1].place)], 0.0)
    assert state.held is None


def test_the_call_before_is_the_one_of_the_same_phase() -> None:
    state = fed(triage_story().events)
    assert state.before is not None
    assert state.before.place.turn == 2
    state.select(state.run.calls[1].place)
    assert state.before is None


def test_a_stream_grows_with_its_notices_and_ends_with_the_answer() -> None:
    story = triage_story()
    place = story.events[-1].place
    state = fed(story.events)
    notices = [Notice("waiting", place, {"try": 1}), *(Notice("text", place, {"text": "word "}) for _ in range(3))]
    state.absorb((), notices, 10.0)
    doing = state.doing(12.5)
    assert doing is not None
    assert doing[:2] == ("answering", 2.5)
    assert state.waiting[place].text == "word word word "
    start = len(story.events)
    story.answer(place, "word word word done")
    state.absorb(story.events[start:], (), 13.0)
    assert state.doing(14.0) is None


def test_what_is_said_of_a_call_after_its_answer_is_not_shown() -> None:
    story = triage_story()
    place = story.events[-1].place
    story.answer(place, "done")
    state = fed(story.events, [Notice("waiting", place, {"try": 1}), Notice("text", place, {"text": "done"})])
    assert state.doing(1.0) is None


def test_nor_is_it_of_a_call_of_a_nested_run_but_the_same_call_of_a_later_one_is() -> None:
    story = triage_story()
    state = fed(story.events)
    inner = [Story(f"0190c6f2-7f3a-7000-8000-00000000c00{number}") for number in (3, 4)]
    for one in inner:
        one.emit("run_started", cascade_id="inner", input={}, parent={"run_id": story.run_id, "kind": "sub"})
        place = one.phase("judge")._replace(attempt=1, turn=1, call=1)
        late = [Notice("waiting", place, {"try": 1})]
        state.absorb(one.events, late, 0.0)
        assert state.doing(1.0) is not None
        before = len(one.events)
        one.context(place, [entry(Message("user", "Judge."), Kind.TASK, place)])
        one.answer(place, "fine")
        state.absorb(one.events[before:], late, 0.0)
        assert state.doing(1.0) is None


def test_pieces_of_answers_that_come_together_stay_in_order_each_with_its_own() -> None:
    place = triage_story().events[-1].place
    other = place._replace(call=place.call + 1)
    said = [("waiting", place), ("waiting", other)]
    said += [("a ", place), ("b ", place), ("x ", other), ("c ", place), ("y ", other), ("z ", other)]
    notices = [
        Notice("waiting", at, {"try": 1}) if text == "waiting" else Notice("text", at, {"text": text})
        for text, at in said
    ]
    state = fed(triage_story().events, notices)
    assert {at: wait.text for at, wait in state.waiting.items()} == {place: "a b c ", other: "x y z "}
    again = [
        Notice("text", place, {"text": "d"}),
        Notice("retry", place, {"try": 2}),
        Notice("text", place, {"text": "e"}),
    ]
    state.absorb((), again, 0.0)
    assert state.waiting[place].text == "e", "a retry begins its answer anew"


def test_what_is_kept_of_a_stream_is_bounded() -> None:
    place = triage_story().events[-1].place
    state = fed(triage_story().events, [Notice("waiting", place, {"try": 1})])
    for _ in range(5):
        state.absorb((), [Notice("text", place, {"text": "x" * STREAM_KEPT})], 0.0)
    assert len(state.waiting[place].text) == STREAM_KEPT


def test_a_retry_keeps_the_time_of_the_first_try() -> None:
    place = triage_story().events[-1].place
    state = fed(triage_story().events)
    state.absorb((), [Notice("waiting", place, {"try": 1})], 100.0)
    state.absorb((), [Notice("retry", place, {"seconds": 4.0, "try": 2})], 110.0)
    wait = state.waiting[place]
    assert (wait.since, wait.tries, wait.pause_until) == (100.0, 2, 114.0)


def test_a_new_run_starts_clean_and_keeps_the_log() -> None:
    state = fed(triage_story(finished=True).events)
    lines = len(state.log.lines)
    story = Story("0190c6f2-7f3a-7000-8000-00000000b002").start()
    state.absorb(story.events, (), 0.0)
    assert state.run.run_id == story.run_id
    assert state.selected is None
    assert len(state.events) == 1
    assert len(state.log.lines) == lines + 1


def test_a_resumed_run_that_tells_its_journal_again_loses_and_repeats_nothing() -> None:
    story = triage_story()
    story.finish("", status="stopped", reason="stopped by the user")
    state = fed(story.events)
    assert state.resumable
    lines = len(state.log.lines)
    state.absorb(story.events[:-1], (), 0.0)
    assert state.alive
    assert len(state.events) == len(story.events)
    assert len(state.log.lines) == lines
    story.emit("run_resumed", ports={"model": "offline"})
    state.absorb(story.events[-1:], (), 0.0)
    assert state.log.lines[-1].text == "resumed"


def test_a_run_with_recorded_answers_says_that_their_times_are_those_of_then() -> None:
    first = triage_story().events[0]
    state = BenchState()
    parent = {"run_id": "r0", "session_id": "log_triage-7f3a", "kind": "rerun"}
    state.absorb([replace(first, data={**first.data, "parent": parent})], (), 0.0)
    assert "a re-run of log_triage-7f3a: recorded answers keep their times" in state.log.lines[-1].text


def test_a_nested_cascade_is_told_about_but_does_not_replace_its_parent() -> None:
    story = triage_story()
    state = fed(story.events)
    child = Story("0190c6f2-7f3a-7000-8000-00000000c003")
    child.emit("run_started", cascade_id="inner", input={}, parent={"run_id": story.run_id, "kind": "sub"})
    child.emit("run_finished", status="success", output="done", state={}, reason="")
    state.absorb(child.events, (), 0.0)
    assert state.run.run_id == story.run_id
    assert state.alive
    assert state.children[child.run_id].status == "success"
    assert [line.text for line in list(state.log.lines)[-2:]] == ["started inner", "success"]


def test_a_question_is_open_until_it_is_answered() -> None:
    story = triage_story()
    place = story.events[-1].place
    state = fed(story.events)
    story.emit("human_asked", place, index=1, question="Who owns it?", context="", options=[])
    state.absorb(story.events[-1:], (), 0.0)
    question = state.current_question()
    assert question is not None
    assert question.data["question"] == "Who owns it?"
    story.emit("human_answered", place, index=1, answer="blue")
    state.absorb(story.events[-1:], (), 0.0)
    assert state.current_question() is None


def test_a_stored_run_is_the_same_fold() -> None:
    events = triage_story(finished=True).events
    stored, live = BenchState(), fed(events)
    stored.show_stored(events)
    assert stored.run.output == live.run.output
    assert stored.selected == live.selected


def test_every_kind_of_event_reads_without_failing_even_when_its_data_is_damaged() -> None:
    run = RunState.of(triage_story().events)
    place = triage_story().events[-1].place
    for kind in KINDS:
        for data in ({}, {"input": 3, "error": "x", "problems": 5, "usage": None, "index": "a"}, {"added": None}):
            words = words_of(Event(1, "2026-11-02T14:02:31.204567Z", "r", kind, place, data), run)
            if words is not None:
                assert all(isinstance(part, str) for part in words)


@pytest.mark.parametrize("error", [False, True])
def test_a_tool_result_that_is_a_user_message_is_told_without_its_header(error: bool) -> None:
    story = triage_story()
    said = result_text("read_log", "no such file", error)
    story.tool(story.events[-1].place, "read_log", "{}", said, error=error)
    last = fed(story.events).log.lines[-1].text
    assert last.endswith("  error: no such file" if error else "ms  no such file")
    assert last.count("read_log") == 1


def test_an_edited_answer_without_text_is_told_by_its_calls() -> None:
    edit = to_json(SetAnswer(Message("assistant", "", (ToolCall("1", "look", '{"at": "the door"}'),))))
    words = words_of(Event(1, "", "r", "edited", Place(), {"what": "answer", "edit": edit}), RunState())
    assert words is not None
    assert words[1] == 'answer: look {"at": "the door"}'


def test_what_a_person_wants_to_know_has_a_line() -> None:
    silent = {"call_started", "tool_started", "blob", "card", "cost_known", "exchange"}
    run = RunState()
    for kind in set(KINDS) - silent:
        assert words_of(Event(1, "", "r", kind, Place(), {}), run) is not None, kind


def test_a_pause_names_the_visit_where_there_are_several() -> None:
    assert HeldRun(Place("", "agent", 1, 1, 3, 1), "before_call", "step over").where == "before agent:3"
    assert HeldRun(Place("", "agent", 2, 1, 3, 1), "before_call", "step over").where == "before agent#2:3"


def test_candidates_are_those_of_what_is_shown_else_of_the_first_run_that_has_some() -> None:
    state, child = fed(triage_story().events), RunState.of(contested().events)
    assert state.run_of_candidates() == state.run.run_id
    state.children[child.run_id] = child
    assert state.run_of_candidates() == child.run_id != state.run.run_id


def test_a_pause_says_how_long_its_client_waits_and_may_wait() -> None:
    asked = HeldRun(Place(), "before_call", "", since=8.0)
    assert (HeldRun(Place(), "", "").waits(20.0), asked.waits(20.0)) == ("", "12 s")
    assert replace(asked, limit=1200.0).waits(20.0) == "12 s of 1,200 s"


def test_a_line_of_the_log_keeps_its_text_in_a_narrow_terminal() -> None:
    run, log = RunState(), LogRows()
    for event in triage_story().events:
        run.apply(event)
        if (line := log_line(event, run)) is not None:
            log.add(line)
    shown = [log.row(index, 40).text for index in range(len(log))]
    texts = [line.text for line in log.lines]
    assert all(text[:14] in row for text, row in zip(texts, shown, strict=True))
    assert all(clock(line.at)[:8] in row for line, row in zip(log.lines, shown, strict=True))
    spread = ["".join(part.text.strip() + " " for part in log.whole(index, 40)) for index in range(len(log))]
    assert all(text.split()[-1] in row for text, row in zip(texts, spread, strict=True)), "the end of a line is lost"


def test_a_full_log_says_how_many_lines_it_left_out_and_where_they_are() -> None:
    log, line = LogRows(), LogLine("2026-11-02T14:02:00Z", Place(), "note", "something")
    for _ in range(KEPT_LINES):
        log.add(line)
    assert log.heads(80) == ()
    for _ in range(1_234):
        log.add(line)
    assert len(log) == KEPT_LINES
    (said,) = log.heads(80)
    assert said.text == " 1,234 older lines left out; 5 shows every event"
    assert log.heads(40)[0].text == " 1,234 older lines left out"
