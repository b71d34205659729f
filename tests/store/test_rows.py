"""Events to rows: what each row says, and that no way of cutting a journal changes the newest rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from tests.engine.contest_cases import PICKS, WHOLE, many_contests
from tests.engine.support import Reply, native, play
from tests.store.examples import RUN, Writer, candidate_run, plain_run, rich_run
from workbench.context.assembly import Item, Kind
from workbench.context.message import Message, Role, sha256
from workbench.context.place import Place
from workbench.engine.contracts import Answer, ModelFault, ToolImage, ToolResult, ValidatorVerdict
from workbench.engine.journal.candidate_rounds import UNUSABLE
from workbench.engine.journal.event import Event
from workbench.engine.journal.usage import Usage
from workbench.store.index.ddl import TABLES
from workbench.store.index.rebuild import VERSION
from workbench.store.index.row_values import row_id, time_of
from workbench.store.index.rows import RowMaker
from workbench.store.index.run_ingest import newest
from workbench.store.index.tables import CardRow, EvalRow, MessageRow, RunRow, TableRow
from workbench.store.index.values import json_rows

LAST = Place("", "sort", 1, 1, 2, 1)
"""The last call of ``plain_run``."""
RUNS = {"rich": rich_run(), "candidates": candidate_run()}


def rows_of(events: Sequence[Event]) -> list[TableRow]:
    maker = RowMaker(events[0].run_id)
    return newest([*(row for event in events for row in maker.apply(event)), maker.run_row()])


def messages_of(events: Sequence[Event]) -> list[MessageRow]:
    return [row for row in rows_of(events) if isinstance(row, MessageRow)]


def by_key(rows: list[TableRow]) -> dict[object, TableRow]:
    return {row.key: row for row in newest(rows)}


def test_tables_with_other_columns_have_another_version() -> None:
    """For an index of an older program its tables are made anew by a higher version alone."""
    assert (VERSION, sha256("".join(TABLES.values()))[:16]) == (15, "d754979604990f2e")


@pytest.mark.parametrize(
    ("kind", "role", "more", "spoken", "told"),
    [
        (Kind.SYSTEM, "system", {}, "framework: tool_definitions", {}),
        (Kind.SYSTEM, "system", {"source": "text"}, "framework: instructions", {"source": "text"}),
        (Kind.TASK, "user", {"redacted": 2}, "main: instructions", {"redacted": 2}),
        (Kind.INPUT, "user", {"source": "input"}, "main: input", {"source": "input"}),
        (
            Kind.INJECTED,
            "user",
            {"source": "sort.output"},
            "main: context_injection",
            {"source": "sort.output", "selective_context": True, "context_from": ["sort"]},
        ),
        (Kind.USER, "user", {"note": "a hint"}, "human: user_injection", {"note": "a hint"}),
        (Kind.RESULT, "tool", {"tool": "search"}, "main: tool_result", {"tool": "search"}),
        (Kind.RETRY, "user", {}, "main: retry", {}),
        (Kind.PROMPT, "user", {}, "main: continuation", {}),
        (Kind.CLOSING, "user", {}, "main: closing", {}),
        (Kind.ANSWER, "assistant", {}, "main: turn", {}),
    ],
)
def test_a_row_of_a_message_names_who_spoke_and_what_for(
    kind: Kind, role: Role, more: dict[str, Any], spoken: str, told: dict[str, Any]
) -> None:
    item, w = Item(Message(role, "Look."), kind, LAST, **more), Writer()
    start = [w.event("run_started", session_id="demo"), w.event("phase_started", LAST), w.body(item.message)]
    rows = messages_of([*start, w.event("context_assembled", LAST, added=[item.to_json()])])
    (row,) = [row for row in rows if row.body_hash == item.message.body_hash]
    assert (row.role, f"{row.semantic_actor}: {row.semantic_purpose}") == (role, spoken)
    assert json.loads(row.metadata_json) == told
    assert row.node_type == ("context_injection" if kind is Kind.INJECTED else role)


@given(name=st.sampled_from(sorted(RUNS)), cuts=st.lists(st.integers(0, 40), max_size=8), seed=st.randoms())
def test_the_newest_rows_do_not_depend_on_how_the_journal_is_cut(name: str, cuts: list[int], seed: Any) -> None:
    events, maker, batches, start = RUNS[name], RowMaker("run-x"), [], 0
    for end in [*sorted(cuts), len(events)]:
        made = [row for event in events[start:end] for row in maker.apply(event)]
        batches.append(newest([*made, maker.run_row()]))
        start = max(start, end)
    seed.shuffle(batches)
    applied: dict[object, Any] = {}
    for row in (row for batch in batches for row in batch):
        known: Any = applied.get(row.key)
        if known is None or row.version >= known.version:
            applied[row.key] = row
    whole = RowMaker("run-x")
    expected = [*(row for event in events for row in whole.apply(event)), whole.run_row()]
    assert applied == by_key(expected)


def test_the_rows_of_a_run_form_one_tree() -> None:
    rows = messages_of(rich_run())
    traces = {row.trace_id for row in rows}
    assert {row.parent_id for row in rows} - traces == {None}
    results = [row for row in rows if row.node_type == "tool_result"]
    answers = {row.message_id: row for row in rows if row.node_type == "agent"}
    assert all(answers[row.parent_message_id or ""].turn_number == row.turn_number for row in results)


def test_a_call_that_a_resume_sends_again_begins_one_turn() -> None:
    events = list(rich_run())
    at = next(index for index, event in enumerate(events) if event.kind == "call_started")
    sent = events[at]
    resumed = replace(sent, kind="run_resumed", place=Place(), data={"after": sent.seq - 1})
    again = [replace(e, seq=seq) for seq, e in enumerate([*events[: at + 1], resumed, sent, *events[at + 1 :]], 1)]
    turns = [[row.turn_number for row in messages_of(run) if row.node_type == "turn"] for run in (events, again)]
    assert turns[0] == turns[1] != []


def test_the_rows_of_a_long_run_grow_with_its_turns_and_not_with_their_square() -> None:
    def size(turns: int) -> int:
        phase = {"name": "p", "instructions": "x", "tackle": ["t"], "use_native_tools": True}
        document = {"cascade_id": "c", "phases": [phase | {"rules": {"max_turns": turns}}]}
        played = play(document, [*(native("", t={}) for _ in range(turns - 1)), "done"], tools={"t": lambda: "r"})
        return len(json_rows(rows_of(played.events)))

    assert size(200) < 4.6 * size(50)


def test_what_is_not_known_is_null_and_never_zero() -> None:
    (first, *_) = [row for row in messages_of(rich_run()) if row.node_type == "agent"]
    assert first.cost is None
    assert first.tokens_cached is None
    assert first.cost_grade == "unknown"
    assert first.total_tokens == 110


@pytest.mark.parametrize(
    ("before", "place", "told", "changed"),
    [
        ({}, Place(), {"digest": "d2", "cost": 0.5}, {"cost": 0.5, "spent": 0.5, "cost_grade": "billed"}),
        ({}, LAST, {"cost": 0.5, "cost_grade": "exact"}, {"cost": 0.5, "spent": 0.5, "cost_grade": "exact"}),
        ({"recorded": True}, LAST, {"cost": 0.5}, {"recorded_cost": 0.5, "cost_grade": "billed"}),
        (
            {"recorded": True},
            LAST,
            {"usage": {"input": 7, "output": 2, "cached": 3}},
            {"recorded_tokens_in": 7, "recorded_tokens_out": 2, "token_grade": "reported"},
        ),
        (
            {"cost": 0.25, "cost_grade": "exact"},
            LAST,
            {"usage": {"input": 7, "output": 2, "cached": 3, "written": 4, "reasoning": 1}},
            {"tokens_in": 7, "token_grade": "reported", "tokens_out": 2, "total_tokens": 9}
            | {"tokens_cached": 3, "tokens_written": 4, "tokens_reasoning": 1},
        ),
        ({}, LAST, {"usage": {"output": 2}}, {"tokens_out": 2, "total_tokens": 22}),
        ({}, LAST, {"usage": {"input": 7}}, {"tokens_in": 7, "token_grade": "reported"}),
        ({}, Place(), {"digest": "another", "cost": 0.5}, {}),
    ],
)
def test_a_price_or_usage_that_comes_late_is_in_the_row_of_its_answer(
    before: dict[str, Any], place: Place, told: dict[str, Any], changed: dict[str, Any]
) -> None:
    given = {"cost": None, "cost_grade": "unknown", "usage": {}, **before}
    events = [replace(e, data={**e.data, **given}) if e.kind == "call_finished" else e for e in plain_run(status="")]
    late = Event(events[-1].seq + 1, "", RUN, "cost_known", place, told)

    def answers(events: list[Event]) -> list[dict[str, Any]]:
        return [asdict(row) for row in messages_of(events) if row.node_type == "agent"]

    first, second = answers(events)
    version = {"row_version": late.seq} if changed else {}
    assert answers([*events, late]) == [first, second | changed | version]


def test_native_calls_and_images_have_their_columns() -> None:
    image = ToolImage(b"\x89PNG", "image/png", 2, 3)
    played = play(
        {
            "cascade_id": "pictures",
            "phases": [{"name": "draw", "instructions": "Draw", "tackle": ["chart"], "use_native_tools": True}],
        },
        [native("Here.", chart={"x": "a"}), "Done."],
        tools={"chart": lambda x: ToolResult("a chart", images=(image,))},
    )
    rows = messages_of(played.events)
    answer = next(row for row in rows if row.node_type == "agent")
    assert [call["tool"] for call in json.loads(answer.tool_calls_json)] == ["chart"]
    result, pictures = [row for row in rows if row.node_type == "tool_result"]
    (called,) = [row for row in rows if row.node_type == "tool_call"]
    assert json.loads(called.tool_calls_json)[0]["arguments"] == '{"x": "a"}'
    assert result.tool_calls_json == called.tool_calls_json
    assert (result.role, result.semantic_purpose, result.has_images) == ("tool", "tool_result", True)
    assert (pictures.role, pictures.semantic_purpose, pictures.has_images) == ("user", "images", True)
    assert json.loads(pictures.images_json)[0]["media_type"] == "image/png"


def test_a_failed_call_has_a_row_with_its_fault() -> None:
    cascade = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x"}]}
    played = play(cascade, [ModelFault("server", "down", status=503), "Up."])
    (row,) = [row for row in messages_of(played.events) if row.node_type == "call_error"]
    assert json.loads(row.metadata_json)["error"]["status"] == 503
    assert row.response_hash == ""


def test_a_check_is_a_row_and_a_judgement() -> None:
    w = Writer("r")
    place = Place("", "p", 1, 1, 1, 1)
    events = [
        w.event("run_started", session_id="s"),
        w.event("check_finished", place, check="loop_until", name="grammar", valid=False, reason="a comma", score=0.5),
        w.event("check_finished", place, check="post_ward", name="length", valid=True, reason=""),
    ]
    rows = rows_of(events)
    assert [row.node_type for row in rows if isinstance(row, MessageRow)][1:] == ["validation", "ward"]
    judged = [row for row in rows if isinstance(row, EvalRow)]
    assert [(row.rater, row.verdict, row.score, row.notes) for row in judged] == [
        ("grammar", "invalid", 0.5, "a comma"),
        ("length", "valid", None, ""),
    ]


def test_the_row_of_a_candidate_says_what_the_validator_of_the_soundings_made_of_it() -> None:
    soundings = {"factor": 2, "validator": "short", "evaluator_instructions": "Choose."}
    cascade = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "Write.", "soundings": soundings}]}
    played = play(
        cascade,
        ["much too long", "short"],
        validators={"short": lambda content: ValidatorVerdict(len(content) < 8, "at most 7", 3)},
    )
    rows = [row for row in messages_of(played.events) if row.node_type == "sounding_attempt"]
    told = {row.sounding_index: json.loads(row.metadata_json) for row in rows}
    assert told[0]["validation"] == {"valid": False, "reason": "at most 7", "score": 3, "name": "short"}
    assert told[1]["validation"]["valid"] is True
    assert [told[index]["status"] for index in (0, 1)] == ["success", "success"]


def test_candidates_and_refinements_have_their_names_and_one_of_each_step_has_won() -> None:
    soundings = {
        "factor": 2,
        "evaluator_instructions": "Choose.",
        "reforge": {"steps": 1, "factor_per_step": 2, "honing_prompt": "Shorter."},
    }
    played = play(
        {"cascade_id": "poem", "phases": [{"name": "write", "instructions": "Write.", "soundings": soundings}]},
        ["a", "b", '{"winner": 2, "scores": {"1": 10, "2": 80}}', "c", "d", '{"winner": 2, "scores": {"2": 99}}'],
    )
    assert played.outcome.output == "c"
    rows = rows_of(played.events)
    answers = [row for row in rows if isinstance(row, MessageRow) and row.node_type == "agent"]
    assert [
        (row.branch, row.session_id, row.parent_session_id, row.sounding_index, row.reforge_step, row.is_winner)
        for row in answers
    ] == [
        ("s0", "test", None, 0, None, False),
        ("s1", "test", None, 1, None, True),
        ("r1.0", "test_reforge1_0", "test", 0, 1, True),
        ("r1.1", "test_reforge1_1", "test", 1, 1, False),
    ]
    assert [row.node_type for row in rows if isinstance(row, MessageRow) and row.role == "assistant"].count(
        "evaluator"
    ) == 2
    judged = [row for row in rows if isinstance(row, EvalRow)]
    assert [(row.branch, row.score, row.preferred) for row in judged] == [
        ("s0", 10.0, False),
        ("s1", 80.0, True),
        ("s1", None, False),
        ("r1.0", 99.0, True),
        ("r1.1", None, False),
    ]


def test_whole_walks_that_compete_have_sessions_of_their_own() -> None:
    w = Writer("r")
    events = [
        w.event("run_started", session_id="sid"),
        w.event("candidates_started", kind="cascade", factor=2),
        w.event("phase_started", Place("s1", "p", 1), kind="llm"),
        w.event("phase_started", Place("s1/s0", "p", 1), kind="llm"),
        w.event("phase_started", Place("s1/r2.1", "p", 3), kind="llm"),
    ]
    rows = [row for row in messages_of(events) if row.node_type == "phase_start"]
    assert [(row.session_id, row.parent_session_id, row.sounding_index) for row in rows] == [
        ("sid_sounding_1", "sid", 1),
        ("sid_sounding_1", None, 0),
        ("sid_sounding_1_v3_reforge2_1", "sid_sounding_1", 1),
    ]


def test_a_child_run_names_its_parent() -> None:
    w = Writer("child")
    parent = {"run_id": "above", "session_id": "s", "kind": "sub", "depth": 1}
    (run,) = [
        row for row in rows_of([w.event("run_started", session_id="s_sub_0", parent=parent)]) if isinstance(row, RunRow)
    ]
    assert (run.parent_run_id, run.parent_session_id, run.parent_kind) == ("above", "s", "sub")
    (started,) = messages_of([Writer("child").event("run_started", session_id="s_sub_0", parent=parent)])
    assert (started.parent_session_id, started.depth) == ("s", 1)


def test_a_run_without_an_end_is_still_running_in_the_tables() -> None:
    events = rich_run()[:-1]
    (run,) = [row for row in rows_of(events) if isinstance(row, RunRow)]
    assert (run.status, run.finished, run.journal_rows) == ("running", None, len(events))


def test_sums_of_which_nothing_is_known_are_null() -> None:
    def run_of(**said: Any) -> RunRow:
        events = [replace(e, data={**e.data, **said}) if e.kind == "call_finished" else e for e in plain_run()]
        return next(row for row in rows_of(events) if isinstance(row, RunRow))

    unknown = run_of(cost=None, cost_grade="unknown", usage={})
    assert (unknown.calls, unknown.cost, unknown.unknown_costs, unknown.tokens_out) == (2, None, 2, None)
    known = run_of(cost=0.25, cost_grade="exact", usage={"input": 9, "output": 3})
    assert (known.cost, known.unknown_costs, known.tokens_out) == (0.5, 0, 6)


def test_a_time_that_is_none_does_not_refuse_a_batch() -> None:
    assert time_of("2026-01-31T10:00:00+01:00") == "2026-01-31T09:00:00.000000Z"
    for nonsense in ("yesterday", "", None, 7, "0001-01-01T00:00:00Z", "9999-01-01"):
        assert time_of(nonsense) == "1970-01-01T00:00:00.000000Z"


def test_row_ids_are_stable_and_sort_by_time_and_index() -> None:
    at = "2026-01-31T09:00:00.000001Z"
    ids = [row_id(at, index, "run", 5) for index in range(20)]
    assert ids == sorted(ids) == [row_id(at, index, "run", 5) for index in range(20)]
    assert row_id("2026-01-31T09:00:00.002Z", 0, "run", 5) > ids[-1]
    assert row_id(at, 0, "run", 6) != ids[0]
    assert {identifier[14] for identifier in ids} == {"7"}


def cards_of(events: list[Event]) -> dict[str, CardRow]:
    return {row.summary: row for row in rows_of(events) if isinstance(row, CardRow)}


def test_every_message_of_a_finished_visit_has_a_card_in_its_newest_state() -> None:
    native_tools = {"use_native_tools": True, "tackle": ["t"], "rules": {"max_turns": 2}}
    cascade = {
        "cascade_id": "c",
        "phases": [
            {"name": "read", "instructions": "Read it.", "callouts": "Key", **native_tools},
            {"name": "tell", "instructions": "Tell it.", "context": {"mode": "auto", "anchors": {"window": 1}}},
        ],
    }
    replies: dict[str, list[Reply]] = {
        "read": [native("Look.", t={}), "The harbour, the harbour is full."],
        "tell": ["Told."],
    }
    failing = {"t": lambda: ToolResult("no file", is_error=True)}
    cards = cards_of(play(cascade, replies, tools=failing).events)
    key = cards.pop("The harbour, the harbour is full.")
    assert set(cards) == {"Read it.", "Look.", "t failed: no file", "Tell it.", "Told."}
    assert (key.callout_name, key.is_callout, key.keywords, key.turn_number) == ("Key", True, ("harbour", "full"), 2)
    assert key.message_timestamp < key.generated_at
    assert cards["Look."].generator_model == "heuristic"


def test_the_same_words_in_a_later_visit_leave_the_card_as_it_is() -> None:
    phases = [{"name": name, "instructions": name} for name in ("one", "two")]
    events = play({"cascade_id": "c", "phases": phases}, ["The same.", "The same."]).events
    late = next(index for index, event in enumerate(events) if event.kind == "phase_finished")
    place, said = events[late].place, Message("assistant", "The same.")
    card = Event(
        0, events[late].at, events[0].run_id, "card", place, {"content_hash": said.content_hash, "summary": "S"}
    )
    cards = cards_of([*events[: late + 1], card, *events[late + 1 :]])
    assert cards["S"].phase_name == "one"
    assert "The same." not in cards


def test_a_message_that_a_context_holds_as_an_anchor_is_one_in_its_card() -> None:
    reading = {"name": "read", "instructions": "Read it.", "rules": {"max_turns": 2, "turn_prompt": "Go on."}}
    telling = {"name": "tell", "instructions": "Tell it.", "context": {"mode": "auto", "anchors": {"window": 1}}}
    played = play({"cascade_id": "c", "phases": [reading, telling]}, ["A draft.", "The end.", "Told."])
    assert [card.summary for card in cards_of(played.events).values() if card.is_anchor] == ["Go on."]


def test_a_selection_says_whether_it_is_between_phases_and_lists_its_anchors() -> None:
    """The first call of a phase decides what it takes over from others; later ones about its own messages."""
    reading = {"name": "read", "instructions": "Read it.", "rules": {"max_turns": 2, "turn_prompt": "Go on."}}
    context = {"mode": "auto", "anchors": {"window": 1}, "selection": {"max_messages": 1}}
    telling = {**reading, "name": "tell", "instructions": "Tell of drafts.", "context": context}
    taking = {"name": "end", "instructions": "End.", "context": {"from": ["read"]}}
    played = play(
        {"cascade_id": "c", "phases": [reading, telling, taking]},
        ["Of drafts.", "The end.", "Told.", "Told twice.", "Ended."],
        input={"what": "it"},
    )
    rows = messages_of(played.events)
    found = [json.loads(row.metadata_json) for row in rows if row.node_type == "context_selection"]
    kinds = [one["selection_type"] for one in found]
    assert kinds == ["intra_phase", "intra_phase", "inter_phase", "intra_phase", "inter_phase"]
    sent = {row.content_hash: row.content_json for row in rows}
    anchors = [[json.loads(sent[digest])[:18] for digest in one["anchor_hashes"]] for one in found]
    assert anchors[:2] == [[], []] == 2 * anchors[4:], "explicit sources are no anchors"
    assert anchors[2] == anchors[3] == ["[Original Input]:\n", "Go on.", "[Output from read]"]
    assert [json.loads(sent[digest]) for digest in found[2]["selected_hashes"]] == [
        "Of drafts.",
        "Tell of drafts.",
    ]


def test_a_callout_marks_its_own_turn_where_the_same_words_stand_in_two() -> None:
    phase = {"name": "p", "instructions": "Say it.", "rules": {"max_turns": 2}, "callouts": {"output": "Found"}}
    played = play({"cascade_id": "c", "phases": [phase]}, ["The same.", "The same."])
    answers = [row for row in messages_of(played.events) if row.node_type == "agent"]
    assert [(row.turn_number, row.is_callout, row.callout_name) for row in answers] == [
        (1, False, None),
        (2, True, "Found"),
    ]


def test_a_callout_that_comes_after_the_candidate_marks_its_card() -> None:
    cards = cards_of(candidate_run())
    assert {(c.summary, c.callout_name, c.is_callout) for c in cards.values()} == {
        ("Write.", None, False),
        ("Roses.", None, False),
        ("violets", "best", True),
    }


def test_a_card_event_adds_to_the_card_that_is_known() -> None:
    w = Writer()
    events = rich_run()
    known = next(card for card in cards_of(events).values() if card.role == "assistant")
    late = w.event(
        "card", content_hash=known.content_hash, summary="In short.", generator_model="small", embedding=[0.5]
    )
    events = [*events, Event(events[-1].seq + 1, late.at, events[0].run_id, "card", known_place(events), late.data)]
    card = cards_of(events)["In short."]
    assert (card.generator_model, card.embedding, card.keywords) == ("small", (0.5,), known.keywords)
    assert card.message_timestamp == known.message_timestamp


def known_place(events: list[Event]) -> Place:
    """Of the last visit that finished."""
    return next(event.place for event in reversed(events) if event.kind == "phase_finished")


def test_what_a_person_chose_stands_beside_what_the_evaluator_judged_unless_the_file_keeps_it_out() -> None:
    def judged(**human_eval: Any) -> list[tuple[str, int | None, float | None, bool | None, str]]:
        asks = {"capture_rejected_reasons": True, **human_eval}
        soundings = {"factor": 2, "max_parallel": 1, "evaluator": "hybrid", "human_eval": asks}
        said = '{"winner": 1, "scores": {"1": 60, "2": 40}, "reason": "shorter"}'
        phase = {"name": "p", "instructions": "Write.", "soundings": soundings}
        played = play({"cascade_id": "c", "phases": [phase]}, ["a", "b", said], answers=["2: warmer", "too short"])
        found = [row for row in rows_of(played.events) if isinstance(row, EvalRow)]
        assert len({row.key for row in found}) == len(found)
        return sorted((r.rater, r.sounding_index, r.score, r.preferred, r.notes) for r in found)

    by_model = [("evaluator", 0, 60.0, True, "shorter"), ("evaluator", 1, 40.0, False, "shorter")]
    by_person = [("person", 0, None, False, "too short"), ("person", 1, None, True, "warmer")]
    assert judged() == [*by_model, *by_person]
    assert judged(capture_for_training=False) == by_model


def winners_of(events: Sequence[Event]) -> dict[tuple[str, str, int], set[bool | None]]:
    """What the rows of each candidate say of it, by branch, phase and visit."""
    found: dict[tuple[str, str, int], set[bool | None]] = {}
    for row in messages_of(events):
        if row.branch and row.visit and row.semantic_actor != "evaluator":
            found.setdefault((row.branch, row.phase_name, row.visit), set()).add(row.is_winner)
    return found


def test_a_winner_is_one_in_its_own_contest_alone() -> None:
    played = many_contests(walks=1)
    expected: dict[tuple[str, str, int], set[bool | None]] = {}
    for visit in (1, 2):
        for phase, count in (("a", 2), ("b", 3), ("c", 2)):
            expected |= {(f"s{n}", phase, visit): {n == PICKS[phase]} for n in range(count)}
        expected |= {(f"r1.{n}", "b", visit): {n == 1} for n in range(2)}
    assert winners_of(played.events) == expected
    judged = [row for row in rows_of(played.events) if isinstance(row, EvalRow)]
    assert [(row.phase_name, row.visit, row.branch, row.preferred) for row in judged] == [
        *[(phase, visit, branch, won) for visit in (1, 2) for phase, branch, won in (
            ("a", "s0", False), ("a", "s1", True),
            ("b", "s0", False), ("b", "s1", False), ("b", "s2", True),
            ("b", "s2", False), ("b", "r1.0", False), ("b", "r1.1", True),
            ("c", "s0", False), ("c", "s1", True))],
    ]  # fmt: skip


def test_who_wins_in_a_walk_that_loses_has_not_won() -> None:
    played = many_contests()
    found = winners_of(played.events)
    for (branch, phase, visit), won in found.items():
        walk, _, name = branch.partition("/")
        wins = walk == f"s{WHOLE}" and (not name or name in (f"s{PICKS[phase]}", "r1.1"))
        assert won == {wins}, (branch, phase, visit)
    assert {("s0/s1", "a", 2), ("s1/r1.1", "b", 2), ("s1", "d", 1)} <= found.keys()


def before_decided(event: Event) -> Event:
    """An evaluation as 0.1.0 wrote it: it named the first as the pick of an evaluator that gave none."""
    said = {key: value for key, value in event.data.items() if key != "decided"}
    return replace(event, data={**said, "evaluator_pick": 0, "decided_by": "evaluator"})


def test_an_evaluation_that_nobody_made_prefers_nobody() -> None:
    def judged(replies: list[Any], **soundings: Any) -> list[tuple[str, bool | None, str, bool | None]]:
        phase = {"name": "p", "instructions": "Write.", "soundings": {"factor": 2, "max_parallel": 1, **soundings}}
        played = play({"cascade_id": "c", "phases": [phase]}, ["a", "b", *replies], answers=["5", "6"])
        assert played.outcome.output == "a"
        won = {row.branch: row.is_winner for row in messages_of(played.events) if row.node_type == "agent"}
        rows = [row for row in rows_of(played.events) if isinstance(row, EvalRow)]
        return [(row.rater, row.preferred, row.verdict, won[row.branch]) for row in rows]

    nobody = ("rule", None, "fallback: the first candidate", None)
    assert judged(["hm", "hm"]) == [nobody] * 2
    assert judged([], evaluator="human") == [nobody] * 2
    phase = {"name": "p", "instructions": "Write.", "soundings": {"factor": 2}}
    played = play({"cascade_id": "c", "phases": [phase]}, ["a", "b", "hm", "hm"])
    old = [event if event.kind != "evaluation_finished" else before_decided(event) for event in played.events]
    told = {(row.rater, row.preferred, row.verdict) for row in rows_of(old) if isinstance(row, EvalRow)}
    assert told == {nobody[:3]}


def test_what_0_1_0_stored_of_a_person_and_an_unusable_evaluation_is_told_apart() -> None:
    def told(**said: Any) -> set[tuple[str, bool | None]]:
        phase = {"name": "p", "instructions": "Write.", "soundings": {"factor": 2, "evaluator": "human"}}
        played = play({"cascade_id": "c", "phases": [phase]}, ["a", "b"], answers=["Attempt 1"])

        def old(event: Event) -> Event:
            kept = {key: value for key, value in event.data.items() if key != "decided"}
            return event if event.kind != "evaluation_finished" else replace(event, data={**kept, **said})

        events = [old(event) for event in played.events]
        judged = {(row.rater, row.preferred) for row in rows_of(events) if isinstance(row, EvalRow)}
        won = {row.is_winner for row in messages_of(events) if row.node_type == "agent"}
        assert won == ({None} if {preferred for _, preferred in judged} == {None} else {True, False})
        return judged

    unusable = {"evaluator_pick": 0, "evaluator_reason": UNUSABLE}
    assert told(**unusable) == {("person", True), ("person", False)}
    assert told(decided_by="random, because nobody chose within 5 s", offered=None) == {("rule", None)}


def test_an_evaluator_prefers_what_it_picked_also_where_money_decided() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "cost_aware_evaluation": {}}
    phase = {"name": "p", "instructions": "Write.", "soundings": soundings}
    dear, cheap = (Answer(text, usage=Usage(input=9, output=9), cost=cost) for text, cost in (("a", 0.5), ("b", 0.01)))
    played = play({"cascade_id": "c", "phases": [phase]}, [dear, cheap, '{"winner": 1}', '{"winner": 1}'])
    rows = [row for row in rows_of(played.events) if isinstance(row, EvalRow)]
    assert [(row.preferred, row.score, row.verdict) for row in rows] == [
        (True, None, "quality and cost"),
        (False, None, "quality and cost"),
    ], "a score that nobody gave is not stored as one"
