"""The context pane's rows: what is sent, what is not, why, where the cache ends, and what came back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from tests.ui.support import Story, entry, masked, triage_story
from workbench.analysis.prediction import CallInput
from workbench.context.assembly import Action, BrokenInvariant, Entry, Grade, Kind, MessagePart
from workbench.context.cache import Forecast
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.journal.parts import WINDOW, CallState
from workbench.engine.journal.state import RunState
from workbench.views.answer import LiveCall
from workbench.views.cells import Row
from workbench.views.columns import Needs, columns
from workbench.views.context import ContextRows, View, bar, cache_lines, shares, stretches, summary, title_of

PLACE = Place("", "triage", 1, 1, 3, 1)


def last_call(story: Story) -> CallState:
    return RunState.of(story.events).calls[-1]


def shown(rows: ContextRows, width: int = 96) -> list[str]:
    return [rows.row(i, width).text.rstrip() for i in range(len(rows))]


def test_every_entry_has_a_row_with_its_origin_its_reason_and_its_line() -> None:
    lines = shown(ContextRows(last_call(triage_story()), View()))
    assert lines[2].split() == ["3", "┃", "user", "↪", "intake.output", "context.from[0]", ":16", "234", "234"]
    assert lines[6].split() == [
        "6",
        "tool",
        "◌",
        "turn",
        "1",
        "read_log",
        "masked:",
        "age",
        "2",
        ">",
        "1",
        ":22",
        "984",
        "15",
    ]


def test_in_the_width_that_it_wants_no_origin_and_no_reason_is_cut() -> None:
    rows = ContextRows(last_call(triage_story()), View())
    assert not any("…" in line for line in shown(rows, rows.wanted_width))
    assert any(rows.whole(index, rows.wanted_width - 20) for index in range(len(rows)))


def test_what_no_file_decided_has_no_line_of_one() -> None:
    rows = ContextRows(last_call(triage_story()), View(filed=False))
    lines = shown(rows)
    assert not any(" line " in line or ":16" in line for line in lines)
    assert lines[2].split() == ["3", "┃", "user", "↪", "intake.output", "context.from[0]", "234", "234"]


def test_the_cache_break_stands_before_the_first_message_outside_the_prefix() -> None:
    rows = ContextRows(last_call(triage_story()), View())
    lines = shown(rows)
    assert lines[5].strip() == "╋ cache breaks here: turn 1's result was full in the previous call"
    assert [line[3] for line in lines[:5]] == ["┃"] * 5
    assert lines[6][3] == " "


def test_no_break_is_shown_when_nothing_is_cached() -> None:
    call = replace(last_call(triage_story()), forecast=Forecast(0, 602, 0, 0.1, 0, "the first call"))
    rows = ContextRows(call, View())
    assert "break" not in [ref.kind for ref in rows.refs]
    assert "cached" not in [token for row in rows.heads(120) for _, token in row.spans], (
        "it is in the colour of savings"
    )


def dropped_story() -> CallState:
    story = Story().start()
    place = story.phase("triage", max_turns=6)._replace(attempt=1, turn=3, call=1)
    entries = [
        entry(Message("user", "task"), Kind.TASK, place, reason=("task",)),
        *(
            entry(
                Message("user", f"old {number}"),
                Kind.PROMPT,
                place._replace(turn=1),
                reason=("slide", 1, 1),
                action=Action.DROPPED,
                sent=None,
            )
            for number in range(4)
        ),
        entry(Message("user", "go on"), Kind.PROMPT, place, reason=("prompt", 3)),
    ]
    story.context(place, entries)
    return last_call(story)


def test_dropped_entries_are_folded_into_one_row_that_counts_them() -> None:
    call = dropped_story()
    tokens = sum(e.tokens_full for e in call.entries[1:5])
    lines = shown(ContextRows(call, View()))
    assert len(lines) == 4
    assert f"4 dropped, {tokens:,} tokens" in lines[1]


def test_unfolded_dropped_entries_say_why_and_send_nothing() -> None:
    lines = shown(ContextRows(dropped_story(), View(unfold=True)))
    assert len(lines) == 7
    assert "dropped: age 2 > 1" in lines[2]
    assert lines[2].endswith("–")


def test_messages_tools_and_overhead_add_up_to_what_is_sent() -> None:
    call = last_call(triage_story())
    calls = [call, replace(call, tools_tokens=77, tools_hash="t", tokens_sent=call.tokens_sent + 77)]
    scaled = replace(call, grade=Grade.CALIBRATED, scale=1.5)
    less = replace(call, grade=Grade.CALIBRATED, scale=0.5)
    for one in (*calls, dropped_story(), scaled, less):
        rows = ContextRows(one, View(unfold=True))
        (named,) = (line.split() for line in shown(rows) if line.split()[:1] in (["overhead"], ["correction"]))
        below = any(each.lstrip("~≈").startswith("−") for each in named)
        assert (named[:4] == ["correction", "provider", "counts", "less"]) == below, named
        sums = [0, 0]
        for index, ref in enumerate(rows.refs):
            if ref.kind in ("entry", "tools", "overhead"):
                cells = rows.row(index, 120).spans[-2:]
                for side, (text, _) in enumerate(cells):
                    number = text.strip().lstrip("≈~").replace(",", "").replace("−", "-")
                    sums[side] += int(number) if number.lstrip("-").isdigit() else 0
        took = CallInput.of(one)
        assert sums == [took.full, took.sent]
    assert named[0] == "correction"


def test_the_reasons_of_the_parts_of_a_message_stand_in_one_column() -> None:
    """A long name pushed the reason beside it to the right of all others."""
    call = last_call(triage_story())
    made = entry(Message("user", "Write."), Kind.TASK, call.place, action=Action.INJECTED)
    gone = MessagePart("entity Shop", Action.DROPPED, "include_all=false", 10, 0)
    names = ("entity Length", "entity Deadline of the customer", "lamp.output", "prompt")
    parts = (*(MessagePart(name, Action.KEPT, "", 8, 8) for name in names), gone)
    rows = ContextRows(replace(call, entries=(made._replace(parts=parts),)), View())
    lines = [line for line in shown(rows) if line.strip().startswith(names)]
    assert len(lines) == len(names)
    assert len({line.index(" kept") for line in lines}) == 1, lines
    narrow = [line for line in shown(rows, 66) if line.strip(" ·").startswith((*names, "entity Shop"))]
    assert len(narrow) == len(parts)
    assert "dropped: include_all=false" in narrow[-1], "a name takes the room of a reason"
    assert "entity Deadline of the customer kept" in narrow[1]
    assert narrow[0].index(" kept") == narrow[2].index(" kept")


def test_what_the_columns_cut_is_wrapped_into_lines_of_their_own() -> None:
    rows = ContextRows(last_call(triage_story()), View())
    assert rows.whole(6, 68) == (), "the number of the turn is enough, and nothing else is cut"
    assert "masked: age 2 > 1" in rows.row(6, 68).text
    assert " 2 search_files " in rows.row(8, 68).text
    assert " include_input " in rows.row(1, 68).text
    lines = [line.text for line in rows.whole(1, 56)]
    assert " include_ " in lines[0]
    assert lines[1].split() == ["input"]
    assert lines[0].split()[-1] == "13"
    assert {cell_len(line) for line in lines} == {cell_len(rows.row(1, 56).text)}
    assert rows.whole(1, 200) == ()


@pytest.mark.parametrize("width", [60, 66, 68, 78])
def test_a_narrow_pane_leaves_out_what_a_sign_tells_before_it_cuts_a_reason(width: int) -> None:
    lines = shown(ContextRows(last_call(triage_story()), View()), width)
    assert "age 2 > 1 " in lines[6]
    assert "1 read_log " in lines[6]
    assert "2 search_" in lines[8], "a result loses its turn before its name is cut"
    assert lines[9].split()[:2] == ["overhead", "message"]


def test_a_very_narrow_pane_leaves_out_reasons_and_lines_instead_of_cutting_them_to_nothing() -> None:
    lines = shown(ContextRows(last_call(triage_story()), View()), 39)
    assert not [line for line in lines if "……" in line or " … " in line]
    assert any("turn 1" in line for line in lines)


def test_what_the_strategy_says_of_the_whole_context_comes_first() -> None:
    call = replace(last_call(triage_story()), notes=("auto (llm, m): 2 of 9 messages selected", "m: \x1b[2Jwhy"))
    lines = shown(ContextRows(call, View()))
    assert [line.strip() for line in lines[:2]] == ["auto (llm, m): 2 of 9 messages selected", "m: ␛[2Jwhy"]
    assert ContextRows(call, View()).entry(0) is None


def test_a_broken_invariant_takes_the_place_of_the_reason() -> None:
    call = replace(last_call(triage_story()))
    story = triage_story()
    place = call.place._replace(turn=4)
    story.context(place, list(call.entries), problems=[(1, "tool message answers no open call", 7)])
    rows = ContextRows(last_call(story), View())
    assert any("✗ tool message answers no op" in line for line in shown(rows, 120))
    assert "1 broken rule" in Row(summary(rows.call, 120)).text


def test_a_request_beyond_the_window_says_so_above_its_context() -> None:
    call = replace(last_call(triage_story()), problems=(BrokenInvariant(WINDOW, "9 input tokens do not fit"),))
    assert "beyond the context window" in Row(summary(call, 80)).text


def test_the_marks_for_the_cache_are_named_and_shown_where_they_are() -> None:
    call = last_call(triage_story())
    assert "marks" not in Row(summary(call, 200)).text, "this model caches by itself"
    marked = replace(call, parameters={"cache_control": {"at": ["task", "last"], "ttl": "1h"}})
    assert "marks task, last for 1h" in Row(summary(marked, 200)).text
    lines = [line for line in shown(ContextRows(marked, View()), 200) if "cached up to here" in line]
    assert len(lines) == 2
    nowhere = replace(call, parameters={"cache_control": {"at": [], "ttl": "5m"}})
    assert "marks" not in Row(summary(nowhere, 200)).text


def test_a_comparison_marks_what_is_new_and_what_is_treated_differently() -> None:
    run = RunState.of(triage_story().events)
    rows = ContextRows(run.calls[-1], View(compare=True, before=run.calls[-2]))
    marked = {line.split()[0]: line.split()[1] for line in shown(rows) if line.split()[1] in "+±"}
    assert marked == {"6": "±", "7": "+", "8": "+"}
    assert any("kept → masked: age 2 > 1" in line for line in shown(rows))
    assert "".join(text for text, _ in rows.title_right) == "against turn 2: +2 new ±1 altered"


LONG = "selective+mask(after=2,window=5,min_masked_size=200)+loop(limit=3)"


@pytest.mark.parametrize(
    ("strategy", "width", "words"),
    [
        (LONG, 110, LONG),
        (LONG, 87, "selective+mask(after=2,window=5,…)+loop(limit=3)"),
        (LONG, 79, "selective+mask(after=2,…)+loop(limit=3)"),
        (LONG, 62, "selective+mask(…)+loop(…)"),
        (LONG, 45, LONG),
        ("pinned(tags=a+b,last=200000)+full", 60, "pinned(tags=a+b,…)+full"),
        ("of another make (with a note, and more", 60, "of another make (with a note, and more"),
    ],
)
def test_the_title_names_every_part_of_a_strategy_and_as_many_parameters_as_fit(
    strategy: str, width: int, words: str
) -> None:
    rows = ContextRows(replace(last_call(triage_story()), strategy=strategy), View(max_turns=8))
    rows.lay_out(width)
    assert "".join(text for text, _ in rows.title_right) == words


def test_what_came_back_follows_with_the_providers_numbers() -> None:
    lines = shown(ContextRows(last_call(triage_story(finished=True)), View()))
    assert lines[-2].strip() == "predicted → reported  in 602 → 602 exact   cached 512 → 512 exact"
    assert lines[-3].startswith(" ── came back after 0.8s  in 602 (512 cached)  out 28  $0.0026  gpt-4.1-mini offline")
    assert "the answer" in lines[-1]
    assert "The first failure is the queue" in lines[-1]


def test_an_answer_from_a_recording_says_so() -> None:
    call = replace(last_call(triage_story(finished=True)), recorded=True)
    assert "⟲─ from a recording" in shown(ContextRows(call, View()))[-3]


@pytest.mark.parametrize(
    ("live", "words"),
    [
        (LiveCall("held", "held before call: step over"), "‖ held before call: step over"),
        (LiveCall("waiting", "waiting for the provider (try 2)", 34.2), "waiting for the provider (try 2) 34.2s"),
        (LiveCall("answering", "The first failure", 1.0), "answers  The first failure"),
    ],
)
def test_a_call_in_progress_says_what_it_is_doing_in_its_last_row(live: LiveCall, words: str) -> None:
    rows = ContextRows(last_call(triage_story()), View())
    before = len(rows)
    rows.set_live(live)
    assert words in shown(rows)[-1]
    rows.set_live(None)
    assert len(rows) == before


def test_failed_tries_are_rows_with_the_wait_before_the_next() -> None:
    story = triage_story()
    call = last_call(story)
    error = {"kind": "rate_limit", "message": "slow down", "status": 429, "retry_after": 2.0}
    story.emit("call_failed", call.place, digest="", error=error, retry_in=2.0, purpose="turn", **{"try": 1})
    lines = shown(ContextRows(last_call(story), View()))
    assert lines[-1].strip() == "✗ try 1: rate limit (HTTP 429): slow down, again in 2.0s"


def test_a_title_leaves_out_what_is_one_and_could_not_be_more() -> None:
    def text(place: Place, turns: int = 0, aside: str = "") -> str:
        return "".join(part for part, _ in title_of(place, turns, aside))

    assert text(PLACE, 6) == "Context  triage · turn 3/6"
    assert text(PLACE._replace(visit=2, attempt=2), 6) == "Context  triage · visit 2 · turn 3/6 · attempt 2"
    assert text(PLACE._replace(turn=0, call=3), aside="evaluation 2") == "Context  triage · evaluation 2"


@pytest.mark.parametrize("width", [20, 30, 39, 60, 79, 96, 140])
def test_no_row_is_wider_than_its_pane(width: int) -> None:
    run = RunState.of(triage_story(finished=True).events)
    for call in run.calls:
        rows = ContextRows(call, View(compare=True, before=run.calls[0]))
        rows.set_live(LiveCall("answering", "x" * 500))
        for line in [*rows.heads(width), *(rows.row(i, width) for i in range(len(rows)))]:
            assert cell_len(line.text) <= width


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=12), st.integers(0, 200))
def test_shares_use_every_cell_and_give_each_part_one_while_there_are_enough(values: list[int], width: int) -> None:
    cells = shares(tuple(values), width)
    assert sum(cells) == (width if sum(values) and width else 0)
    if sum(values) and width >= len(values):
        assert min(cells) >= 1


def test_the_bar_names_its_parts_and_shows_what_is_held_back_and_what_the_budget_leaves() -> None:
    call = last_call(triage_story())
    parts = stretches(call, budget=4000)
    assert [part.sort for part in parts] == ["tools", "injected", "task", "turns", "masked", "free"]
    assert sum(part.tokens for part in parts) + call.overhead_tokens >= 4000
    text = bar(call, 100, budget=4000).text
    assert cell_len(text) <= 100
    assert "masked 969" in text
    assert "free" in text


def test_a_bar_without_colours_has_a_line_between_its_parts() -> None:
    call = last_call(triage_story())
    cells = shares(tuple(part.tokens for part in stretches(call, budget=4000)), 98)
    text = bar(call, 100, budget=4000, divided=True).text
    ends = [sum(cells[: number + 1]) for number in range(len(cells) - 1)]
    assert [x for x, glyph in enumerate(text) if glyph == "│"] == ends
    assert len(text) == len(bar(call, 100, budget=4000).text)
    assert "│" not in bar(call, 100, budget=4000).text


def test_what_was_dropped_is_told_from_what_was_masked() -> None:
    call = dropped_story()
    assert [part.sort for part in stretches(call)] == ["task", "dropped"]
    assert "dropped" in bar(call, 100).text
    assert "masked" not in bar(call, 100).text


def test_a_fold_has_its_key_whole_or_not_at_all() -> None:
    rows = ContextRows(dropped_story(), View())
    fold = next(i for i, ref in enumerate(rows.refs) if ref.kind == "fold")
    whole = rows.row(fold, 80).text
    assert whole.endswith("   u unfolds")
    assert rows.row(fold, len(whole) - 1).text == whole.removesuffix("   u unfolds")


def test_the_cached_part_is_drawn_to_the_scale_of_the_bar() -> None:
    call = last_call(triage_story())
    (line,) = (row.text for row in cache_lines(call, 102))
    total = sum(part.tokens for part in stretches(call))
    assert line.index("╋") - 1 == pytest.approx(100 * 512 / total, abs=1)
    assert line.rstrip().endswith("512 cached")


def test_rows_are_made_only_for_what_is_drawn() -> None:
    place = Place("", "triage", 1, 1, 5000, 1)
    made: list[Entry] = []
    base = [
        entry(Message("user", f"message {number}"), Kind.PROMPT, place._replace(turn=number), reason=("prompt", number))
        for number in range(1, 10_001)
    ]
    made = [*base[:9000], masked(replace_tool(base[9000]), turn=1, after=1, line=3), *base[9001:]]
    call = CallState(place, 1, entries=tuple(made))
    rows = ContextRows(call, View())
    assert sum(ref.kind == "entry" for ref in rows.refs) == 10_000
    assert rows.row(9_999, 90).text.split()[0] == "10000"


def replace_tool(one: Entry) -> Entry:
    return one._replace(item=replace(one.item, tool="read_log", kind=Kind.RESULT))


def test_a_tool_keeps_its_name_beside_estimated_figures_in_a_narrow_pane() -> None:
    needs = Needs(source=20, name=len("search_files"), why=21, tokens=len("~1,665"))
    found = columns(66, 13, needs, marked=False)
    assert found.source > len("search_files"), "the name is cut"
    assert found.why >= len("age 4 > 2") + 1
    assert found.tokens > len("~1,665"), "two figures touch"
