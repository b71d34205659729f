"""The tree: the phases of the file, what ran under each, and the marks that matter."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.engine.support import Played, call, play
from tests.engine.test_soundings import fleet, verdict
from tests.support.stored import check_stored
from tests.ui.support import Story, entry, triage_story
from tests.ui.test_graphs import REVIEW
from workbench.context.assembly import Grade, Kind
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.engine.journal.annotations import Annotations, Change
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.language.load import load
from workbench.tui.bench.preview import outline_of, pipeline_of
from workbench.views.cells import Row
from workbench.views.context import ContextRows, View
from workbench.views.definition import outline
from workbench.views.documents import visit_doc
from workbench.views.graph import last_status
from workbench.views.log import log_line, where
from workbench.views.model import Rows
from workbench.views.numbers import seconds, spent_words
from workbench.views.run import RunView, visit_json
from workbench.views.summary import SummaryRows
from workbench.views.timeline import Timeline, words_of
from workbench.views.tree import MEDIUM, PhaseOutline, TreeRows, TreeView, breadcrumb, fitted, sparkline
from workbench.views.value import Table
from workbench.workspace.mermaid import RunPath

OUTLINE = (
    PhaseOutline("intake", line=6),
    PhaseOutline("triage", line=10, from_=("intake",), warnings=1),
    PhaseOutline("crash", line=25, from_=("triage",)),
)


def shown(rows: Rows, width: int = 40) -> list[str]:
    return [rows.row(i, width).text.rstrip() for i in range(len(rows))]


def test_before_a_run_the_phases_of_the_file_are_there() -> None:
    assert shown(TreeRows(None, TreeView(OUTLINE))) == [
        "   ○ intake",
        "   ○ triage ⚠1 (handoff)",
        "   ○ crash (handoff)",
    ]


def test_notes_stand_below_their_call_and_a_folded_row_shows_and_finds_what_it_hides() -> None:
    run = RunState.of(triage_story(finished=True).events)
    place = next(call.place for call in run.calls if call.place.phase == "triage")
    said = Change(place, tags=("a-very-long-tag-that-fills-the-row",), notes=("ask Ben about the queue",))
    run.annotations = Annotations(said.records(Annotations(), "2026-11-02T09:00:00.000000Z", map(str, count(1))))
    folded = TreeRows(run, TreeView(OUTLINE))
    at = next(i for i, line in enumerate(shown(folded)) if "triage" in line)
    for width in (40, 56, 120):
        assert "✎" in shown(folded, width)[at], width
        assert not any("✎" in line for line in shown(folded, width)[:at]), "intake has no note"
    for needle in ("ask Ben", "a-very-long-tag-that-fills-the-row"):
        assert folded.find(needle, 0) == at, needle
    tree = TreeRows(run, TreeView(OUTLINE, selected=place))
    row = tree.index_of(("call", str(place)))
    assert row is not None
    for width in (40, 56, 120):
        assert "✎" in shown(tree, width)[row], "the tag pushes the sign out"
    assert shown(tree, 60)[row + 1].split() == ["✎", "ask", "Ben", "about", "the", "queue"]
    assert "✎" not in shown(tree)[at], "the row is unfolded"
    tagged = Change(place, tags=("odd",))
    run.annotations = Annotations(tagged.records(Annotations(), "2026-11-02T09:00:00.000000Z", map(str, count(1))))
    assert "triage ⚠1 #" in shown(TreeRows(run, TreeView(OUTLINE)))[at]


def test_the_selected_phase_is_unfolded_and_its_turns_name_their_tools() -> None:
    run = RunState.of(triage_story().events)
    lines = shown(TreeRows(run, TreeView(OUTLINE, selected=run.calls[-1].place)))
    assert lines[0].split() == ["▸", "✓", "intake", "17"]
    assert lines[2].split() == ["✓", "turn", "1", "read_log", "0.8s"]
    assert lines[3].split() == ["✓", "turn", "2", "search_files", "0.8s"]


def test_what_the_user_folded_stays_folded() -> None:
    run = RunState.of(triage_story().events)
    view = TreeView(OUTLINE, selected=run.calls[-1].place, folding={("phase", "triage"): False})
    assert [node.id[0] for node in TreeRows(run, view).nodes] == ["phase", "phase", "phase", "total"]


def test_a_held_call_and_its_phase_carry_the_same_sign() -> None:
    run = RunState.of(triage_story().events)
    place = run.calls[-1].place
    lines = shown(TreeRows(run, TreeView(OUTLINE, held=place, selected=place)))
    assert lines[1].strip().startswith("▾ ‖ triage")
    assert lines[4].strip().startswith("‖ turn 3")


def test_what_waits_for_a_person_turns_no_spinner() -> None:
    story = Story().start()
    visit = story.phase("intake")
    place = visit._replace(attempt=1, turn=1, call=1)
    story.context(place, [entry(Message("user", "ask"), Kind.TASK, place, reason=("task",))])
    story.answer(place, "I ask.", [ToolCall("c1", "ask_human", "{}")])
    story.emit("tool_started", place, index=1, call_id="c1", tool="ask_human", arguments="{}", native=True)
    story.emit("human_asked", place, index=1, question="Which?", context="", options=[])
    run = RunState.of(story.events)
    tree, view = TreeRows(run, TreeView(OUTLINE, selected=place)), View(asking=run.asked_by(place))
    call = shown(ContextRows(run.calls[-1], view), 90)
    assert shown(tree)[0].split()[:3] == ["▾", "?", "intake"]
    assert not tree.turning
    assert any("? ask_human" in line and "waits for your answer" in line for line in call)
    story.emit("human_answered", place, index=1, answer="that")
    assert TreeRows(RunState.of(story.events), TreeView(OUTLINE, selected=place)).turning


def test_a_phase_that_shows_a_page_is_called_one() -> None:
    loaded = load("cascade_id: c\nphases:\n  - {name: ask, htmx: <p>Well?</p>}\n", "c.yaml")
    rows = TreeRows(None, TreeView(outline(loaded.cascade, loaded.source, loaded.problems)))
    assert shown(rows) == ["   ○ ask page"]


def test_a_phase_without_a_call_that_waits_for_a_person_says_so_wherever_it_shows() -> None:
    story = Story().start()
    visit = story.phase("intake")
    place = visit._replace(attempt=1)
    story.emit("tool_started", place, index=1, call_id="", tool="htmx", arguments="{}", native=False)
    story.emit("human_asked", place, index=1, question="Which?", context="", options=[])
    run, view = RunState.of(story.events), TreeView(OUTLINE)
    tree, visit_state = TreeRows(run, view), run.visits[-1]
    crumbs = (breadcrumb(run, view, 80), breadcrumb(run, replace(view, selected=place), 80))
    signs = [line.replace("▾", "").split()[0] for line in shown(tree)[:2]]
    assert signs + ["".join(text for text, _ in crumb).split()[0] for crumb in crumbs] == ["?"] * 4
    assert not tree.turning
    assert visit_doc(visit_state, run).plain(0) == "waiting"
    assert visit_json(visit_state, run)["status"] == last_status(run, [visit_state]) == "waiting"


def test_a_column_without_a_value_takes_no_room_in_a_run_that_is_over() -> None:
    run = RunState.of(triage_story().events)
    for one in run.calls:
        one.duration_s = None
    for visit in run.visits:
        visit.started = visit.finished = ""
    for status, heads in (("running", ["in", "cost", "$", "time"]), ("success", ["in", "cost", "$"])):
        run.status = status
        assert TreeRows(run, TreeView(OUTLINE)).heads(60)[0].text.split() == heads
    assert "time" not in SummaryRows(run, {}).heads(100)[0].text


def test_a_call_that_waits_shows_the_tokens_that_are_expected_of_it() -> None:
    run = RunState.of(triage_story().events)
    held = run.calls[-1]
    held.grade, held.scale = Grade.CALIBRATED, 2.0
    lines = shown(TreeRows(run, TreeView(OUTLINE, held=held.place, selected=held.place)))
    assert lines[4].rstrip().endswith(f"≈{2 * held.tokens_sent:,}")


def test_changed_phases_and_breakpoints_are_marked_and_listed() -> None:
    view = TreeView(
        OUTLINE, changed=frozenset({"triage"}), stopped_at=frozenset({"crash"}), broken=("crash", "tokens > 5")
    )
    lines = shown(TreeRows(None, view))
    assert "●" in lines[1]
    assert "◆" in lines[2]
    assert [line.strip() for line in lines[-3:]] == ["Breakpoints", "◆ crash", "◆ tokens > 5"]


def test_a_second_visit_makes_a_branch_of_its_own() -> None:
    story = triage_story(finished=True)
    story.events.pop()
    again = story.phase("triage", max_turns=6, visit=2)
    place = again._replace(attempt=1, turn=1, call=1)
    story.context(place, story.entries)
    run = RunState.of(story.events)
    lines = shown(TreeRows(run, TreeView(OUTLINE, selected=place)))
    assert "×2" in lines[1]
    assert [line.split()[2:4] for line in lines if "visit" in line] == [["visit", "1"], ["visit", "2"]]
    assert lines[4].strip().startswith("▷ turn 1")


def test_nothing_turns_in_a_run_that_was_interrupted() -> None:
    run = RunState.of(triage_story().events)
    assert run.visits[-1].status == "running"
    run.status = "interrupted"
    view = TreeView(OUTLINE, selected=run.calls[-1].place)
    assert shown(TreeRows(run, view))[1].split() == ["▾", "■", "triage", "⚠1", "1,974"]
    assert "■ triage" in Row(breadcrumb(run, view, 60)).text


def test_a_failed_check_shows_its_reason_under_the_phase() -> None:
    story = triage_story()
    place = story.events[-1].place
    story.emit(
        "check_finished",
        place,
        check="tests_pass",
        name="tests_pass",
        mode="retry",
        valid=False,
        reason="2 of 5 failed",
    )
    run = RunState.of(story.events)
    lines = shown(TreeRows(run, TreeView(OUTLINE, selected=place)), 60)
    assert any("✗ tests_pass: 2 of 5 failed" in line for line in lines)


def candidate_story() -> Story:
    story = Story().start()
    base = story.phase("triage")
    for name in ("s0", "s1"):
        place = base._replace(branch=name, attempt=1, turn=1, call=1)
        story.context(place, [entry(Message("user", "go"), Kind.TASK, place, reason=("task",))])
        story.answer(place, f"answer {name}")
        data = {"index": int(name[1]), "status": "success", "output": f"answer {name}"}
        story.emit("candidate_finished", base._replace(branch=name), **data)
    story.emit("evaluation_finished", base, branch="s1", winner=1, scores=[1, 2], reason="clearer")
    return story


def test_candidates_are_branches_and_the_winner_is_marked() -> None:
    run = RunState.of(candidate_story().events)
    lines = shown(TreeRows(run, TreeView(OUTLINE, selected=run.calls[0].place)))
    assert [line.split()[1:5] for line in lines if "candidate" in line] == [
        ["✓", "candidate", "s0", "7"],
        ["✓", "candidate", "s1", "★"],
    ]
    undecided = candidate_story()
    place = undecided.events[-1].place
    undecided.emit("candidates_started", place, factor=2)
    undecided.emit("evaluation_finished", place, branch="s0", winner=0, decided=False)
    again = RunState.of(undecided.events)
    marked = shown(TreeRows(again, TreeView(OUTLINE, selected=again.calls[0].place)))
    assert ["☆" in line for line in marked if "candidate" in line] == [True, False]
    assert not any("★" in line for line in marked)
    assert lines[3].strip().startswith("✓ turn 1")


def test_candidates_that_wait_behind_the_paused_one_are_paused_too() -> None:
    """Only what was sent turns."""
    parallel = {"factor": 3, "max_parallel": 3, "evaluator_instructions": "Best?"}
    phase = {"name": "write", "instructions": "x", "soundings": parallel}
    best = '{"winner": 1, "scores": {}, "reason": ""}'
    events = play({"cascade_id": "c", "phases": [phase]}, ["a", "b", "c", best]).events
    before = {"run_started", "phase_started", "candidates_started", "context_assembled"}
    run = RunState.of([event for event in events if event.kind in before])
    first, second, _ = (call.place for call in run.calls if call.place.branch)
    view = TreeView(OUTLINE, held=second, unfolded=True, busy=frozenset({first}))
    lines = [line for line in shown(TreeRows(run, view)) if "candidate" in line]
    assert ["‖" in line for line in lines] == [False, True, True]


def test_a_nested_cascade_and_the_tool_of_a_deterministic_phase_have_nodes() -> None:
    story = Story().start()
    place = story.phase("triage")
    story.emit("child_started", place, run_id="child", session_id="inner-1", kind="sub")
    story.emit("child_finished", place, run_id="child", session_id="inner-1", status="success", output="", state={})
    lines = shown(TreeRows(RunState.of(story.events), TreeView(OUTLINE)))
    assert any("✓ ↳ inner-1  sub" in line for line in lines)


def test_a_spawned_run_that_is_over_does_not_wait_for_the_run_that_will_join_it() -> None:
    story = Story().start()
    story.emit("child_started", story.phase("triage"), run_id="child", session_id="inner-1", kind="spawn")
    inner = Story().start()
    inner.emit("run_finished", status="success", output="", state={}, reason="")
    view = TreeView(OUTLINE, children={"child": RunState.of(inner.events)})
    assert any("✓ ↳ log_triage  spawn inner-1" in line for line in shown(TreeRows(RunState.of(story.events), view)))


def test_a_phase_that_the_file_does_not_name_any_more_is_still_shown() -> None:
    run = RunState.of(triage_story().events)
    assert any("triage" in line for line in shown(TreeRows(run, TreeView((OUTLINE[0],)))))


def test_a_nodes_row_is_found_again_after_the_tree_grew() -> None:
    story = triage_story()
    before = TreeRows(RunState.of(story.events[:-3]), TreeView(OUTLINE))
    after = TreeRows(RunState.of(story.events), TreeView(OUTLINE, selected=story.events[-1].place))
    for node in before.nodes:
        index = after.index_of(node.id)
        assert index is not None
        assert after.nodes[index].phase == node.phase


@pytest.mark.parametrize("width", [20, 40, 60])
def test_the_breadcrumb_of_a_long_graph_reaches_the_phase_at_which_the_run_is_paused(width: int) -> None:
    """The node at which a graph is paused has no call yet; those in front of it give way."""
    outline = tuple(PhaseOutline(f"node_{number}") for number in range(12))
    view = TreeView(outline, held=Place("", "node_9", 1))
    line = Row(breadcrumb(None, view, width)).text
    assert line.startswith(" … ")
    assert "‖ node_9" in line
    assert "‖" not in Row(breadcrumb(None, TreeView(outline), width)).text


def test_the_breadcrumb_leads_to_the_selected_call() -> None:
    run = RunState.of(triage_story().events)
    view = TreeView(OUTLINE, selected=run.calls[-1].place)
    assert Row(breadcrumb(run, view, 80)).text == " ✓ intake › ⠋ triage › turn 3"
    assert Row(breadcrumb(None, TreeView(OUTLINE), 80)).text.split() == ["○", "intake", "○", "triage", "○", "crash"]


def test_the_first_look_at_a_file_finds_its_phases_without_the_language() -> None:
    name, phases = outline_of("cascade_id: a\nphases:\n  - name: one\n  - {name: two, tool: sql}\n")
    assert name == "a"
    assert [(phase.name, phase.kind, phase.line) for phase in phases] == [("one", "llm", 3), ("two", "tool", 4)]
    assert outline_of('{"cascade_id": "j", "phases": [{"name": "x"}]}')[1][0].name == "x"
    jobs = outline_of('{"sub_tasks": [{"id": "a", "action_type": "inference"}, {"id": "b", "action_type": "tool"}]}')[1]
    assert [(phase.name, phase.kind) for phase in jobs] == [("a", "llm"), ("b", "tool")]


def test_a_file_that_is_no_cascade_has_no_first_look() -> None:
    for text in ("", "phases: 3", "- a\n- b", "phases: [", "[" * 5000, "a: &x [*x]\nphases: [*x]"):
        assert outline_of(text)[1] == ()


def test_a_place_without_a_row_leads_to_its_phase() -> None:
    run = RunState.of(triage_story().events)
    rows = TreeRows(run, TreeView(OUTLINE, folding={("phase", "triage"): False}))
    assert rows.row_of(Place("", "triage", 1, 1, 1, 1)) == 1
    assert Story().events == []


def test_walks_of_the_whole_cascade_have_their_winner_and_what_settled_it() -> None:
    walks = [call("set_state", key="k", value=1), "a1", "b1", call("set_state", key="k", value=2), "a2", "b2"]
    played = play(fleet(factor=2), [*walks, verdict(2)], input={"what": "it"})
    lines = shown(TreeRows(played.state, TreeView(folding={("phase", "a"): True, ("phase", "b"): True})))
    assert sum("candidate s1 ★" in line for line in lines) == 2
    assert "✓ 2 walks of the cascade" in lines[-3]
    assert "evaluation" in lines[-2]
    tool = next(event for event in played.events if event.kind == "tool_started")
    asked = Event(tool.seq + 1, tool.at, tool.run_id, "human_asked", tool.place, {"index": 1, "question": "Which?"})
    waiting = TreeRows(RunState.of([*played.events[: tool.seq], asked]), TreeView())
    assert any("? 2 walks of the cascade" in line for line in shown(waiting))
    assert not waiting.turning


def test_calls_beside_turns_are_numbered_by_purpose_and_named_alike_wherever_they_show() -> None:
    reforge = {"steps": 2, "factor_per_step": 1, "honing_prompt": "Better."}
    soundings = {"factor": 2, "max_parallel": 1, "reforge": reforge}
    phase = {"name": "write", "instructions": "Write.", "soundings": soundings}
    answers = ["a", "b", verdict(1), "c", verdict(1), "d", verdict(1)]
    events, run, logged = [], RunState(), list[str]()
    for event in play({"cascade_id": "c", "phases": [phase]}, answers).events:
        # A call of another purpose is counted by the address of the third, not by its name.
        other = event.place.call == 2 and "purpose" in event.data
        events.append(replace(event, data={**event.data, "purpose": "summary"}) if other else event)
        line = log_line(events[-1], run) if run.apply(events[-1]) else None
        if line is not None and line.sort == "call" and not line.place.turn:
            logged.append(where(line.place, line.aside))
    names = ["evaluation", "summary", "evaluation 2"]
    calls = [call for call in run.calls if not call.place.turn]
    assert [call.place.call for call in calls] == [1, 2, 3]
    assert [call.name for call in calls] == names
    tree = shown(TreeRows(run, TreeView(unfolded=True)), 60)
    named = (re.search(r"✓ ((?:evaluation|summary)(?: \d)?)(?= |$)", line) for line in tree)
    assert [found[1] for found in named if found] == names
    assert logged == [f"write·{name}" for name in names]
    bars = Timeline.of(run).bars
    assert [words_of(bar, {}) for bar in bars if bar.call in calls] == [f"write {name}" for name in names]
    assert ["".join(text for text, _ in ContextRows(call, View()).title) for call in calls] == [
        f"Context  write · {name}" for name in names
    ]
    (table,) = (block for block in RunView(run).blocks() if isinstance(block, Table))
    assert [text for row in table.rows if (text := str(row[0]).strip()) in names] == names


def test_winners_of_phases_inside_whole_walks_are_marked() -> None:
    soundings = {"factor": 2, "max_parallel": 1}
    phases = [{"name": name, "instructions": name, "soundings": soundings} for name in ("a", "b")]
    walk = ["a0", "a1", verdict(2), "b0", "b1", verdict(1)]
    run = play({"cascade_id": "c", "phases": phases, "soundings": soundings}, [*walk, *walk, verdict(2)]).state
    lines = shown(TreeRows(run, TreeView(folding={("phase", "a"): True, ("phase", "b"): True})))
    assert [" ".join(line.split()).split("★")[0].split()[-1] for line in lines if "★" in line] == [
        *("s0/s1", "s1", "s1/s1"),
        *("s0/s0", "s1", "s1/s0"),
    ]


def test_a_wide_tree_has_its_numbers_in_columns_near_the_names() -> None:
    run = RunState.of(triage_story(finished=True).events)
    rows = TreeRows(run, TreeView(OUTLINE, selected=run.calls[-1].place))
    assert rows.heads(40) == ()
    assert rows.heads(60)[0].text.split() == ["in", "cost", "$", "time"]
    assert rows.heads(200)[0].text.split() == ["calls", "in", "cached", "out", "cost", "time"]
    assert rows.heads(80)[0].text.split() == ["calls", "in", "out", "cost", "time"]
    lines = shown(rows, 200)
    assert lines[0].split() == ["▸", "✓", "intake", "1", "17", "79", "$0.00040", "7.0s", "█"]
    assert lines[3].split() == ["✓", "turn", "2", "search_files", "1,491", "448", "36", "$0.0026", "0.8s"]
    assert {line.index("s", line.index("$")) for line in (lines[2], lines[3])} == {len(rows.heads(200)[0].text) - 1}
    assert "search_files" in shown(rows, 80)[3]


@pytest.mark.parametrize(("width", "cost"), [(60, "~.0000028"), (90, "~$0.0000028"), (120, "~$0.0000028")])
def test_a_small_cost_has_two_digits_if_there_are_free_cells_beside_the_names(width: int, cost: str) -> None:
    small = {"cost": 0.0000028, "cost_grade": "estimate"}
    events = [
        replace(event, data={**event.data, **small}) if event.data.get("cost") else event
        for event in triage_story(finished=True).events
    ]
    run, head = RunState.of(events), "cost $" if width == 60 else "cost"
    for rows in (TreeRows(run, TreeView(OUTLINE, selected=run.calls[-1].place)), SummaryRows(run, {})):
        if isinstance(rows, SummaryRows):
            rows.lay_out(width)
        ends = {line.index(cost) + len(cost) for line in shown(rows, width) if cost in line and "most" not in line}
        assert ends == {rows.heads(width)[0].text.index(head) + len(head)}


def test_a_wide_tree_keeps_what_is_wrong_beside_the_name_and_counts_only_what_was_answered() -> None:
    run = RunState.of(triage_story().events)
    lines = shown(TreeRows(run, TreeView(OUTLINE, selected=run.calls[-1].place)), 120)
    assert lines[1].split()[:6] == ["▾", "⠋", "triage", "⚠1", "2", "1,974"]
    assert lines[4].split()[-1] == "602", "it is not sent yet: it has no cost and no time"


def many_turns(number: int) -> Story:
    """A phase of so many turns, each answered."""
    story = Story().start()
    phase = story.phase("triage", max_turns=number)
    for turn in range(1, number + 1):
        place = phase._replace(attempt=1, turn=turn, call=1)
        story.entries = ()
        story.context(place, [entry(Message("user", f"turn {turn}"), Kind.TASK, place, reason=("task",))])
        story.answer(place, "ok")
    return story


def test_the_middle_of_a_long_list_of_turns_is_folded() -> None:
    run = RunState.of(many_turns(20).events)
    names = [line.split()[1:3] for line in shown(TreeRows(run, TreeView(OUTLINE[1:2], selected=run.calls[9].place)))]
    assert names[1:-1] == [
        *(["turn", str(turn)] for turn in (1, 2)),
        ["…", "3–7"],
        *(["turn", str(turn)] for turn in range(8, 13)),
        ["…", "13–18"],
        *(["turn", str(turn)] for turn in (19, 20)),
    ]


@pytest.mark.parametrize(("lines", "calls"), [(22, 20), (19, 15), (0, 9)])
def test_as_many_turns_of_a_long_list_show_as_there_is_room_for(lines: int, calls: int) -> None:
    run = RunState.of(many_turns(20).events)
    rows = [TreeRows(run, TreeView(OUTLINE[1:2], selected=call.place, lines=lines)) for call in run.calls]
    assert sum(node.id[0] == "call" for node in rows[9].nodes) == calls
    assert not lines or max(map(len, rows)) <= lines


def test_a_folded_middle_unfolds_and_a_filter_looks_into_it() -> None:
    run = RunState.of(many_turns(20).events)
    view = TreeView(OUTLINE[1:2], selected=run.calls[0].place)
    (between,) = (node for node in TreeRows(run, view).nodes if node.id[0] == "between")
    opened = TreeRows(run, replace(view, folding={between.id: True}))
    assert sum(node.id[0] == "call" for node in opened.nodes) == 20
    assert sum(node.id[0] == "call" for node in TreeRows(run, replace(view, unfolded=True)).nodes) == 20


def test_a_phase_has_a_line_of_its_tokens_and_a_call_the_time_in_which_it_ran() -> None:
    run = RunState.of(triage_story(finished=True).events)
    view = TreeView(OUTLINE, selected=run.calls[-1].place, timeline=Timeline.of(run))
    for width in (51, 57, 85):
        lines = shown(TreeRows(run, view), width)
        assert lines[1].split()[-1] == sparkline([call.tokens_in for call in run.visits[-1].calls], 6)
        starts = [line.index("█") for line in lines[2:5]]
        assert starts == sorted(set(starts)), "its turns ran one after the other"
        assert all(len(line) <= width for line in lines)


def test_the_total_row_says_what_the_header_says() -> None:
    run = RunState.of(triage_story(finished=True).events)
    (line,) = (line for line in shown(TreeRows(run, TreeView(OUTLINE)), 86) if "total" in line)
    took = run.figures()
    out, cost, passed = f"{took.tokens_out:,}", spent_words(took.spent), seconds(run.seconds)
    assert line.split() == ["Σ", "total", str(took.calls), f"{took.tokens_in:,}", out, cost, passed]


def test_a_sparkline_keeps_the_greatest_of_what_shares_a_cell() -> None:
    assert sparkline([1, 2, 4, 8], 4) == "▂▃▅█"
    assert sparkline([0, 8, 0, 0], 2) == "█▁"
    assert sparkline([], 5) == sparkline([1], 0) == ""


def test_a_branch_of_a_pipeline_is_no_candidate_and_counts_its_own_edges() -> None:
    text = (
        "digraph p { start [shape=Mdiamond] fan [shape=component] a [prompt=x] b [prompt=y]\n"
        " meet [shape=tripleoctagon] done [shape=Msquare]\n"
        " start -> fan -> a -> meet -> done; fan -> b -> meet; start -> done [weight=-1] }"
    )
    run = play(text, {"a": ["one"], "b": ["two"]}).state
    lines = shown(TreeRows(run, TreeView(unfolded=True)))
    assert not [line for line in lines if "candidate" in line]
    graph = load(text, "p.dot").graph
    assert graph is not None
    path = RunPath(run)
    taken = {(edge.src, edge.dst) for number, edge in enumerate(graph.edges) if path.taken(graph, number)}
    assert taken == {("start", "fan"), ("fan", "a"), ("a", "meet"), ("fan", "b"), ("b", "meet"), ("meet", "done")}


def test_a_quick_look_at_a_pipeline_finds_the_nodes_that_the_reader_finds() -> None:
    text = """// a comment with digraph in it
    digraph "p q" { rankdir=LR; goal="not -> a node [x]"
      # nor this
      node [shape=box, class=fast] start [shape=Mdiamond] /* nor -> that */ a [prompt="b; c -> d"];
      subgraph cluster_one { label="One" b; d [label=e] }
      start -> a -> b [label=f, condition="outcome=success"]; edge [weight=2] b -> d -> g; g -> done
      done [shape=Msquare] }"""
    name, phases = pipeline_of(text)
    graph = load(text, "p.dot").graph
    assert graph is not None
    assert name == "p q"
    assert [phase.name for phase in phases] == [node.id for node in graph.nodes]
    assert [phase.line for phase in phases][:2] == [4, 4]


@pytest.mark.parametrize(
    ("told", "cell"),
    [
        ("~$0.0000091", "~.000009"),
        ("~$0.0000028", "~.000003"),
        ("~$0.0000998", "~.000100"),
        ("≥~$0.000063", "≥~.00006"),
        ("≥~$0.0000028", "≥~0"),
        ("~$0.00000041", "<.000001"),
        ("~$0.00082", "~.00082"),
        ("$0.0000091", ".0000091"),
        ("~$12.3456", "~12.3456"),
        ("~$1,234.5000", "~1,234.5"),
        ("unpriced", "unpriced"),
    ],
)
def test_a_cost_in_a_narrow_column_is_rounded_and_never_without_the_sign_of_an_estimate(told: str, cell: str) -> None:
    cost = next(text for text, _ in fitted({"cost": (told, "plain")}, MEDIUM) if text.strip())
    assert cost.strip() == cell


STORED = Path(__file__).parent / "stored"


def family() -> tuple[RunState, dict[str, RunState]]:
    """A run with a child that is known, one that is not, and one that goes on and asks."""
    story = Story().start()
    place = story.phase("triage")
    for number, kind in enumerate(("sub", "map", "spawn")):
        story.emit("child_started", place, run_id=f"child{number}", session_id=f"s-inner_{number}", kind=kind)
    story.emit("child_finished", place, run_id="child0", session_id="s-inner_0", status="success", output="", state={})
    asks = Story(run_id="child2").start()
    turn = asks.phase("intake")._replace(attempt=1, turn=1, call=1)
    asks.context(turn, [entry(Message("user", "ask"), Kind.TASK, turn, reason=("task",))])
    asks.answer(turn, "I ask.", [ToolCall("c1", "ask_human", "{}")])
    asks.emit("tool_started", turn, index=1, call_id="c1", tool="ask_human", arguments="{}", native=True)
    asks.emit("human_asked", turn, index=1, question="Which?", context="", options=[])
    done = RunState.of(triage_story(finished=True).events)
    return RunState.of(story.events), {"child0": done, "child2": RunState.of(asks.events)}


def walked() -> Played:
    told = {"plan": ["a"] * 2, "code": ["b"] * 2, "docs": ["c"] * 2, "check": ["no\noutcome=fail", "outcome=success"]}
    return play(REVIEW, told, answers=["a"])


def test_trees_are_the_stored_ones() -> None:
    """Of each row: what it is, its depth and sign, its cells with their tokens of colour, at two widths."""
    story, (parent, children), pipeline = RunState.of(triage_story().events), family(), walked()
    loaded = load(pipeline.state.cascade_text, "review.dot")
    graph = outline(loaded.cascade, loaded.source, loaded.problems)
    waves = tuple(PhaseOutline(name, wave=wave) for name, wave in (("one", 1), ("two", 1), ("three", 2)))
    views: dict[str, tuple[RunState | None, TreeView]] = {
        "a file": (None, TreeView(OUTLINE, broken=("triage", "tokens > 9"), changed=frozenset({"crash"}))),
        "waves": (None, TreeView(waves)),
        "paused": (story, TreeView(OUTLINE, held=story.calls[-1].place, selected=story.calls[-1].place)),
        "all unfolded": (story, TreeView(OUTLINE, unfolded=True, shows_total=True, stopped_at=frozenset({"triage"}))),
        "candidates": (RunState.of(candidate_story().events), TreeView(OUTLINE, unfolded=True)),
        "children": (parent, TreeView(OUTLINE, children=children, unfolded=True)),
        "a child that is paused": (
            parent,
            TreeView(OUTLINE, children=children, held=children["child0"].calls[0].place, held_run="child0"),
        ),
        "a pipeline": (pipeline.state, TreeView(graph, unfolded=True)),
    }
    found: dict[str, list[str]] = {}
    for name, (run, view) in views.items():
        rows = TreeRows(run, view)
        found[f"{name}, nodes"] = [
            f"{' '.join(node.id)} @{node.depth} {node.phase or '-'} {node.run or '-'} {node.place or '-'}"
            for node in rows.nodes
        ]
        for width in (38, 90):
            lines = [*rows.heads(width), *(rows.row(at, width) for at in range(len(rows)))]
            found[f"{name}, {width} wide"] = [
                "".join(f"{{{token}}}{text}" for text, token in line.spans).rstrip() for line in lines
            ]
    check_stored(STORED / "trees.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
