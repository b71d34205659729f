"""Runs are listed as they come and change, and found by what was said in them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields, replace

from tests.store.examples import RUN, Writer, candidate_run, extend, plain_run, rich_run, save
from workbench.context.assembly import Grade
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.store.catalog import Catalog
from workbench.store.run_filter import RunMatch, find_runs, parse_filter
from workbench.store.store import Store
from workbench.store.text_search import Phrase, TextSearch
from workbench.views.numbers import spent_words

OTHER = "0190a000-0000-7000-8000-000000000002"


def saved(store: Store, events: list[Event]) -> None:
    save(store, events)


def found(store: Store, text: str) -> list[RunMatch]:
    return list(find_runs(store.runs(), parse_filter(text, datetime.now(UTC)), TextSearch(store)))


def spoken(text: str, run_id: str = RUN) -> list[Event]:
    """A run in which a model says something."""
    w = Writer(run_id)
    answer = Message("assistant", text)
    place = Place("", "draft", 1, 1, 2, 1)
    return [
        w.event("run_started", session_id="spoken", cascade_id="c", cascade_text="the words of the definition"),
        w.event("phase_started", Place("", "draft", 1), kind="llm"),
        w.body(answer),
        w.event("call_finished", place, digest="d", added=[{"m": answer.body_hash}]),
        w.event("call_failed", place, error={"kind": "rate", "message": "Rate limit exceeded"}),
        w.event("run_finished", status="failed", output="The very end."),
    ]


# -- the list --------------------------------------------------------------------------------------------------------


def test_a_run_that_another_process_adds_removes_or_goes_on_with_appears_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    catalog = Catalog(store)
    assert not catalog.look()
    saved(store, plain_run(status="stopped"))
    assert catalog.look()
    assert [run.status for run in catalog.runs] == ["stopped"]
    saved(store, plain_run(OTHER))
    assert catalog.look()
    assert {run.run_id for run in catalog.runs} == {RUN, OTHER}
    assert not catalog.look()
    with store.append_to(RUN) as journal:
        journal.append(Writer(RUN, journal.seq).event("run_resumed"))
        catalog.look()
        assert {run.run_id: run.status for run in catalog.runs}[RUN] == "running"
    assert catalog.look()
    assert {run.run_id: run.status for run in catalog.runs}[RUN] == "interrupted"
    store.remove(OTHER)
    assert catalog.look()
    assert [run.run_id for run in catalog.runs] == [RUN]


def test_a_run_is_followed_while_it_is_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    catalog = Catalog(store)
    events = plain_run(turns=2)
    with store.create(RUN) as journal:
        for number, event in enumerate(events[:-1], 1):
            journal.append(event)
            catalog.look()
            (run,) = catalog.runs
            assert (run.seq, run.status, run.pid) == (number, "running", os.getpid())
        journal.append(events[-1])
    catalog.look()
    assert catalog.runs == (store.summary(RUN),)


def test_a_run_waits_for_a_person_also_where_it_stopped_at_the_question_and_is_not_resumed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    w = Writer(RUN)
    place = Place("", "draft", 1)
    with store.create(RUN) as journal:
        for event in (
            w.event("run_started", session_id="asked"),
            w.event("phase_started", place, kind="llm"),
            w.event("human_asked", place, index=1, question="How good?"),
            w.event("run_finished", status="stopped", reason="no one is there to answer"),
        ):
            journal.append(event)
        for filter in ("status:waiting", "status:stopped", "status:waiting is:unfinished"):
            assert [match.run.run_id for match in found(store, filter)] == [RUN], filter
        journal.append(w.event("run_resumed", branch="", after=3))
        journal.append(w.event("human_answered", place, index=1, answer="9", refused="at most 5"))
        assert [match.run.run_id for match in found(store, "status:waiting")] == [RUN]
        assert [question.data["question"] for question in store.state(RUN).questions] == ["How good?"]
        journal.append(w.event("human_answered", place, index=1, answer="4"))
        assert found(store, "status:waiting") == []
        assert store.state(RUN).questions == []
        journal.append(w.event("run_finished", status="stopped", reason="x"))
        assert found(store, "status:waiting") == []


def test_the_list_shows_after_a_part_of_it_and_the_rest_comes_with_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.store.catalog.BATCH", 1)
    store = Store(tmp_path)
    saved(store, plain_run())
    saved(store, plain_run(OTHER))
    catalog = Catalog(store)
    assert catalog.look(lambda: False)
    assert [run.run_id for run in catalog.runs] == [OTHER]
    assert catalog.look()
    assert len(catalog.runs) == 2


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "its journal is empty"),
        (b"no record\n", "000001.jsonl damaged at byte 0"),
        (b'{"v":1}\n', "000001.jsonl damaged at byte 0"),
    ],
)
def test_a_broken_journal_is_listed_with_what_is_wrong(tmp_path: Path, content: bytes, fault: str) -> None:
    store = Store(tmp_path)
    saved(store, plain_run())
    (store.folder(RUN) / "000001.jsonl").write_bytes(content)
    catalog = Catalog(store)
    catalog.look()
    (run,) = catalog.runs
    assert run.fault.startswith(fault)
    assert [one.run.run_id for one in found(store, "is:damaged reason:journal or reason:damaged")] == [RUN]


def mixed_run() -> list[Event]:
    """Answers come from a recording and from providers, with and without prices; it started other runs."""
    w = Writer()
    events = [w.event("run_started", session_id="mixed", cascade_id="c")]
    answers: list[dict[str, Any]] = [
        {"recorded": True, "usage": {"input": 100, "output": 7}},
        {"recorded": True, "usage": {}},
        {"cost": 0.25, "cost_grade": "billed", "usage": {"input": 50, "output": 5}},
        {"usage": {"output": 3}},
    ]
    for turn, answer in enumerate(answers, 1):
        place = Place("", "sort", 1, 1, turn, 1)
        said = Message("assistant", f"Turn {turn}.")
        count = 90 + turn
        priced = {"cached": 0, "fresh": count, "written": 0, "cost": 0.5, "break_at": 0, "tokens": count, "low": count}
        priced |= {"high": count, "cost_low": 0.5, "cost_high": 0.5}
        forecast = priced if turn != 4 else None
        events += [
            w.event(
                "context_assembled", place, tokens_sent=80, grade="estimate", request={"model": "m"}, forecast=forecast
            ),
            w.body(said),
            w.event(
                "call_finished",
                place,
                digest="d",
                model="m",
                added=[{"m": said.body_hash, "kind": "answer", "place": str(place)}],
                **answer,
            ),
            w.event("tool_finished", place, index=1, tool="t", text="r"),
        ]
    took = {"calls": 2, "tools": 1, "tokens_in": 30, "grade_in": "exact", "tokens_out": 4}
    spent = {"billed": 0.125, "predicted": 0.0, "exact": True, "unknown": 0, "unbilled": 0, "calls": 2, "embedded": 0}
    child = {"run_id": OTHER, "session_id": "s", "kind": "sub", "key": "sub_0"}
    events += [
        w.event("child_started", Place("", "sort", 1), **child, cascade_id="d"),
        w.event(
            "child_finished",
            Place("", "sort", 1),
            **child,
            status="success",
            took={**took, "spent": spent, "runs": 0, "missing": 0},
        ),
        w.event(
            "child_started", Place("", "sort", 1), run_id="r3", session_id="t", kind="sub", key="sub_1", cascade_id="d"
        ),
        w.event("run_finished", status="success", output="done"),
    ]
    return events


@pytest.mark.parametrize("events", [plain_run(turns=5), rich_run(), mixed_run()], ids=["plain", "rich", "mixed"])
def test_the_list_and_the_run_itself_tell_the_same_figures(tmp_path: Path, events: list[Event]) -> None:
    store = Store(tmp_path)
    saved(store, events)
    run_id = events[0].run_id
    summary, took = store.summary(run_id), store.state(run_id).figures()
    assert summary.spent == took.spent
    shared = {one.name for one in fields(summary)} & {one.name for one in fields(took)}
    assert {name: getattr(summary, name) for name in shared} == {name: getattr(took, name) for name in shared}
    assert (summary.inside, summary.missing) == (took.runs, took.missing)


def test_the_worth_of_a_run_counts_what_a_recording_answered_as_if_it_had_been_asked_for() -> None:
    took = RunState.of(mixed_run()).figures()
    worth = took.worth
    assert (worth.calls, worth.recorded) == (took.calls + took.recorded, 0)
    assert (worth.tokens_in, worth.recorded_tokens_in) == (took.tokens_in + took.recorded_tokens_in, 0)
    assert (worth.tokens_out, worth.recorded_tokens_out) == (took.tokens_out + took.recorded_tokens_out, 0)
    assert (worth.spent, worth.tools, worth.runs) == (took.spent.worth, took.tools, took.runs)
    exact = replace(took, grade_in=Grade.EXACT)
    assert (exact.worth.grade_in, exact.worth.recorded_grade_in) == (Grade.ESTIMATE, Grade.EXACT)


def test_the_list_names_the_file_and_the_format_that_a_run_was_imported_from(tmp_path: Path) -> None:
    store, w = Store(tmp_path), Writer()
    started = {"session_id": "s", "ports": {"imported": "checkpoint"}, "imported": {"file": "logs/old.json"}}
    saved(store, [w.event("run_started", **started), w.event("run_finished", status="success", output="")])
    listed = store.summary(RUN)
    assert (listed.imported, listed.source, listed.source_file) == (True, "checkpoint", "logs/old.json")


def test_sums_that_are_kept_follow_every_event() -> None:
    state, seen = RunState(), list[Event]()
    for event in candidate_run():
        seen.append(event)
        state.read(event)
        fresh = RunState.of(seen)
        assert state.figures() == fresh.figures(), event.kind
        assert state.figures_of(state.visits) == fresh.figures_of(fresh.visits), event.kind
        assert [call.place for call in state.calls_beside] == [call.place for call in fresh.calls_beside], event.kind
        for visit, same in zip(state.visits, fresh.visits, strict=True):
            assert state.figures_of([visit]) == fresh.figures_of([same]), event.kind


@pytest.mark.parametrize(("price", "words"), [(0.5, "~$1.0000"), (None, "~$0.5000, 1 unpriced"), (0.0, "~$0.5000")])
def test_embeddings_are_in_the_cost_of_a_run_and_unknown_where_their_price_is(
    tmp_path: Path, price: float | None, words: str
) -> None:
    store = Store(tmp_path)
    made = {"keys": ["a", "b"], "of": [], "by": "tiny", "vectors": [], "tokens": 30}
    events = plain_run(turns=2, status="")
    event = replace(events[-1], kind="embedded", data={**made, "cost": price}, seq=len(events) + 1)
    saved(store, [*events, event])
    summary, state = store.summary(RUN), store.state(RUN)
    assert summary.spent == state.figures().spent
    assert spent_words(summary.spent) == words
    assert (summary.calls, summary.unknown_costs) == (2, int(price is None))


# -- what was said ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phrase", "place"),
    [
        ("queue INGEST did", "draft:2"),
        ("rate limit", "draft:2"),
        ("the very end", "output"),
        ('"quoted"', "draft:2"),
        ("größe der", "draft:2"),
        ("ÉTÉ", "draft:2"),
        ("日本", "draft:2"),
        ("\N{GRINNING FACE}", "draft:2"),
    ],
)
def test_a_phrase_is_found_in_any_letter_case_with_its_place(tmp_path: Path, phrase: str, place: str) -> None:
    store = Store(tmp_path)
    said = 'The queue ingest did not drain. "Quoted", GRÖSSE DER Été 日本 \N{GRINNING FACE}'
    saved(store, spoken(said.replace("GRÖSSE", "GRÖßE")))
    (one,) = found(store, "text:'" + phrase + "'")
    hit = one.hits[phrase]
    assert (hit.place, phrase.casefold() in hit.excerpt.casefold()) == (place, True)


@pytest.mark.parametrize("phrase", ["words of the definition", "call_failed", "drain the", "spoken"])
def test_what_nobody_said_is_not_found(tmp_path: Path, phrase: str) -> None:
    store = Store(tmp_path)
    saved(store, spoken("The queue did not drain."))
    assert found(store, f'text:"{phrase}"') == []


VISIT, TURN = Place("s0", "draft", 1), Place("s0", "draft", 1, 1, 2, 1)
TOLD: list[tuple[str, Place, dict[str, Any], str, str]] = [
    ("run_started", Place(), {"input": {"a": ["x", 7125, "NEEDLE in"]}, "cascade_text": "x"}, "needle in", "input"),
    ("run_started", Place(), {"input": {"a": ["x", 7125]}}, "7125", "input"),
    ("call_failed", TURN, {"error": {"kind": "server", "message": "a needle broke"}}, "needle", "draft:2"),
    ("tool_started", TURN, {"arguments": '{"q": "needle"}'}, '"q": "needle"', "draft:2"),
    ("tool_finished", VISIT, {"text": "a needle"}, "needle", "draft"),
    ("state_set", TURN, {"key": "k", "value": {"deep": [None, True, {"er": "needle"}]}}, "needle", "draft:2"),
    ("state_set", TURN, {"key": "k", "value": True}, "true", "draft:2"),
    ("check_finished", TURN, {"reason": "needle"}, "needle", "draft:2"),
    ("evaluation_finished", VISIT, {"reason": "needle"}, "needle", "draft"),
    ("human_asked", TURN, {"question": "needle?"}, "needle", "draft:2"),
    ("human_asked", TURN, {"question": "why?", "context": "needle"}, "needle", "draft:2"),
    ("human_answered", TURN, {"answer": "needle"}, "needle", "draft:2"),
    ("edited", TURN, {"before": "needle", "after": "pin"}, "needle", "draft:2"),
    ("edited", TURN, {"before": "pin", "after": "needle"}, "needle", "draft:2"),
    ("warning", VISIT, {"message": "needle"}, "needle", "draft"),
    ("candidate_finished", VISIT, {"output": "needle"}, "needle", "draft"),
    ("candidate_finished", VISIT, {"output": "", "reason": "needle"}, "needle", "draft"),
    ("phase_finished", VISIT, {"output": "needle"}, "needle", "draft"),
    ("phase_finished", VISIT, {"reason": "needle"}, "needle", "draft"),
    ("run_finished", Place(), {"output": "needle"}, "needle", "output"),
    ("run_finished", Place(), {"output": "", "reason": "needle"}, "needle", "output"),
]


@pytest.mark.parametrize(("kind", "place", "data", "phrase", "at"), TOLD)
def test_each_text_of_a_run_is_found_where_it_stands(
    tmp_path: Path, kind: str, place: Place, data: dict[str, Any], phrase: str, at: str
) -> None:
    w = Writer()
    begun = [] if kind == "run_started" else [w.event("run_started", session_id="s", input={})]
    store = Store(tmp_path)
    saved(store, [*begun, w.event(kind, place, **data), w.event("blob", hash="h", kind="tools", body="needle")])
    hit = TextSearch(store).find(RUN, Phrase(phrase))
    assert hit is not None
    assert (hit.place, phrase in hit.excerpt.lower()) == (at, True)
    ends = TextSearch(store).find(RUN, Phrase(phrase, ends=True))
    assert (ends is not None) is (kind == "run_started" or (kind == "run_finished" and data["output"] == phrase))


def test_a_run_that_was_removed_since_it_was_listed_holds_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    saved(store, spoken("needle"))
    listed = list(store.runs())
    store.remove(RUN)
    assert list(find_runs(listed, parse_filter("text:needle", datetime.now(UTC)), TextSearch(store))) == []


@pytest.mark.parametrize(
    ("before", "after", "excerpt"),
    [
        ("", "", "needle"),
        ("a\n  b ", " c", "a b needle c"),
        ("x" * 40, "y" * 160, f"{'x' * 40}needle{'y' * 160}"),
        ("x" * 41, "y" * 161, f"…{'x' * 40}needle{'y' * 160}…"),
    ],
)
def test_an_excerpt_is_the_text_around_a_phrase_in_one_line(
    tmp_path: Path, before: str, after: str, excerpt: str
) -> None:
    store = Store(tmp_path)
    saved(store, spoken(f"{before}needle{after}"))
    hit = TextSearch(store).find(RUN, Phrase("Needle"))
    assert hit is not None
    assert (hit.place, hit.excerpt) == ("draft:2", excerpt)


def test_a_long_message_in_a_file_of_its_own_is_searched_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    saved(store, spoken("x" * 100_000 + " a needle " + "y" * 100_000))
    (one,) = found(store, "text:needle")
    assert "…" + "x" * 39 + " a needle y" not in one.hits["needle"].excerpt
    assert " needle yyy" in one.hits["needle"].excerpt


def test_a_journal_that_grew_is_searched_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    search = TextSearch(store)
    with store.create(RUN) as journal:
        extend(journal, spoken("Nothing.")[:-1])
        assert search.find(RUN, Phrase("very end")) is None
        journal.append(spoken("Nothing.")[-1])
        assert search.find(RUN, Phrase("very end")) is not None


def test_no_journal_is_opened_for_a_run_that_something_else_decides(tmp_path: Path) -> None:
    store = Store(tmp_path)
    saved(store, plain_run())
    saved(store, plain_run(OTHER, status="failed"))
    looked: list[int] = []
    wanted = parse_filter("status:failed text:says", datetime.now(UTC))

    def going(at: int) -> bool:
        looked.append(at)
        return True

    runs = store.runs()
    assert [one.run.run_id for one in find_runs(runs, wanted, TextSearch(store), going)] == [OTHER]
    assert [runs[at].run_id for at in looked] == [OTHER]
    assert list(find_runs(runs, wanted, TextSearch(store), lambda _: False)) == []
