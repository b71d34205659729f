"""The filter language of runs: what each term finds, and a column for every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from workbench.engine.journal.annotations import Labels
from workbench.store.run_filter import FIELDS, FilterError, complete_filter, parse_filter
from workbench.store.summary import STATUSES, RunSummary
from workbench.store.text_search import Phrase

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
PLAIN = RunSummary(
    "019a",
    session_id="log_triage-7f3a",
    cascade_id="log_triage",
    cascade_file="flows/log_triage.yaml",
    status="failed",
    reason="the provider gave up",
    started="2026-11-02T09:00:00.000000Z",
    finished="2026-11-02T09:02:05.000000Z",
    seconds=125.0,
    phases=("intake", "research"),
    models=("gpt-4.1-mini",),
    calls=3,
    tools=2,
    tokens_in=9_000,
    tokens_out=200,
    cost=0.06,
    exact=True,
)
UNBILLED = replace(PLAIN, cost=0.0, unknown_costs=3, unpredicted=3, exact=False)


def finds(text: str, run: RunSummary = PLAIN, texts: Mapping[str, bool] | None = None) -> bool | None:
    known = {Phrase(phrase): found for phrase, found in (texts or {}).items()}
    return parse_filter(text, NOW).verdict(run, known)


BEN, ODD = "research/1/1/1/1", "research/1/1/2/1"
ANNOTATED = replace(
    PLAIN,
    labels=Labels(("seen",), ("of the run",)),
    call_labels=((BEN, Labels((), ("ask Ben",), 3.0)), (ODD, Labels(("odd",), ("ask Ann",), 1.0, "down"))),
)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("ask Ben", (BEN,)),
        ("research Ben", (BEN,)),
        ("ask", (BEN, ODD)),
        ("Ben Ann", ()),
        ("tag:odd", (ODD,)),
        ("tag:odd note:Ben", ()),
        ("note:ask score>=3 status:failed", (BEN,)),
        ("note:ask status:success", ()),
        ("thumb:down or note:Ben", (BEN, ODD)),
        ("-tag:odd", ()),
        ("tag:seen", ()),
        ("seen Ben", (BEN,)),
        ("research", ()),
        ("", ()),
    ],
)
def test_the_calls_are_told_whose_annotations_a_filter_asks_for(text: str, calls: tuple[str, ...]) -> None:
    assert parse_filter(text, NOW).calls(ANNOTATED) == calls


@pytest.mark.parametrize(
    "text",
    [
        "",
        "status:failed phase:research tokens>8000",
        "tokens>9k tokens<1M tokens=9,200 in:9000 out<=200",
        "cost>=0.05 cost<$0.07",
        "cascade:triage model:gpt session:log_*7f3a session=LOG_TRIAGE-7F3A",
        "date:2026-11-02 date:2026-11 date:2026 date:today date>=2026-11-01 date<2026-11-03 date<=2026-11-02",
        "age<4h age>2h seconds>2m seconds<=125s seconds=125",
        "status:blocked,fail -status:success status!=success",
        '"gave up" triage research',
        "status:success or calls>=3",
        "status:success or status:stopped or 'log triage' or intake",
        "is:unfinished and -is:fork -is:child",
        "edits:0 warnings=0 tools>1",
    ],
)
def test_a_run_is_found_by(text: str) -> None:
    assert finds(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "status:success",
        "-status:failed",
        "status!=failed",
        "tokens>9200",
        "date>2026-11 or date<2026-11",
        "date:yesterday",
        "session=log_triage",
        "cascade:log*x",
        "nowhere",
        "status:failed tokens<10 or status:success",
    ],
)
def test_a_run_is_not_found_by(text: str) -> None:
    assert finds(text) is False


def test_a_cost_that_is_not_known_is_neither_small_nor_large() -> None:
    assert not finds("cost<1", UNBILLED)
    assert not finds("cost>=0", UNBILLED)
    assert finds("cost<1", replace(UNBILLED, unpredicted=0, predicted=0.01))


def test_a_day_is_a_day_where_the_user_is() -> None:
    late = replace(PLAIN, started="2026-11-02T23:30:00.000000Z")
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    assert parse_filter("date:2026-11-02", NOW).verdict(late)
    assert parse_filter("date:2026-11-03", east).verdict(late)


def test_a_phrase_decides_only_when_somebody_has_looked_for_it() -> None:
    assert finds('status:failed text:"rate limit"') is None
    assert finds('status:failed text:"rate limit"', texts={"rate limit": True}) is True
    assert finds('status:failed -text:"rate limit"', texts={"rate limit": True}) is False
    assert finds('status:success text:"rate limit"') is False
    assert finds('status:failed or text:"rate limit"') is True
    assert parse_filter('text:"a \\"b\\"" or text:c or text:c', NOW).phrases == (Phrase('a "b"'), Phrase("c"))


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("status:failed tokns>8000", 15, "there is no field 'tokns'", "did you mean 'tokens'?"),
        ("-modle:x", 2, "there is no field 'modle'", "did you mean 'model'?"),
        ("http://x", 1, "there is no field 'http'", "quote it to find the word"),
        ("status:faild", 8, "'faild' is not a value of status", "did you mean 'failed'?"),
        ("is:interesting", 4, "'interesting' is not a value of is", "it is one of fork, rerun"),
        ("tokens>many", 8, "'many' is not a number", "tokens in and out"),
        ("tokens>", 8, "tokens needs a value after '>'", "tokens in and out"),
        ("a date>=2026-13", 9, "'2026-13' is not a day of the calendar", "when it started"),
        ("age<soon", 5, "'soon' is not a length of time", "how long ago"),
        ("model>x", 6, "model has no order", "model:x"),
        ('a text:"rate', 8, "the quote is not closed", ""),
        ("a - b", 3, "'-' means not, and stands right before what it denies", "as in -status:failed"),
        ("or b", 1, "'or' needs a condition on both sides", ""),
        ("a or", 3, "'or' needs a condition on both sides", ""),
        ("a or or b", 6, "'or' needs a condition on both sides", ""),
    ],
)
def test_a_mistake_is_named_with_its_column_and_what_would_be_right(
    text: str, column: int, message: str, hint: str
) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text, NOW)
    assert caught.value.column == column
    assert caught.value.message.startswith(message)
    assert hint in caught.value.hint


def test_every_field_can_be_asked_for_as_its_help_says() -> None:
    value = {"words": "x", "number": "1", "length": "2m", "moment": "2026-11", "age": "7d", "text": "x"}
    for field in FIELDS:
        for one in field.choices or (value[field.sort],):
            assert parse_filter(f"{field.name}:{one}", NOW).alternatives, field.name


def test_asking_for_what_runs_inside_others_is_noticed() -> None:
    assert [parse_filter(text, NOW).asks_inside for text in ("is:child", "parent:x", "is:fork", "a or id:x")] == [
        True,
        True,
        False,
        True,
    ]


WORDS = st.sampled_from(
    ["status:failed", "tokens>8k", "cost<1", "triage", '"rate limit"', "is:fork", "date:today", "age<2h", "phase:x"]
)
RUNS = st.builds(
    RunSummary,
    run_id=st.just("019a"),
    session_id=st.text(max_size=8),
    status=st.sampled_from(STATUSES),
    tokens_in=st.integers(0, 20_000),
    calls=st.integers(0, 5),
    started=st.sampled_from(["", "2026-11-02T09:00:00Z", "no time"]),
)


@given(WORDS, WORDS, RUNS)
def test_not_denies_beside_means_both_and_or_means_either(a: str, b: str, run: RunSummary) -> None:
    one, other = finds(a, run), finds(b, run)
    assert finds(f"-{a}", run) is not one
    assert finds(f"{a} {b}", run) is (one and other)
    assert finds(f"{a} or {b}", run) is (one or other)


@given(st.text(alphabet=st.sampled_from("abtokens :<>=\"'-|or\\,0129.é\n\ud800"), max_size=30))
def test_whatever_is_typed_is_a_filter_or_a_mistake_within_it(text: str) -> None:
    column, verdict = 1, True
    try:
        wanted = parse_filter(text, NOW)
        verdict = wanted.verdict(PLAIN, dict.fromkeys(wanted.phrases, True)) is not None
    except FilterError as fault:
        column = fault.column
    assert verdict
    assert 1 <= column <= len(text) + 1


def test_answers_whose_size_nobody_said_are_no_zero_tokens() -> None:
    assert replace(PLAIN, calls=2, tokens_out=0).told_out is None
    assert replace(PLAIN, calls=2, tokens_out=5).told_out == 5
    assert replace(PLAIN, calls=0, tokens_out=0).told_out == 0


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ("st", "status:"),
        ("phase:research to", "phase:research tools>"),
        ("tok", "tokens>"),
        ("-sta", "-status:"),
        ("status:", "status:failed"),
        ("status:failed,bl", "status:failed,blocked"),
        ("cascade:log", "cascade:log_triage"),
        ("status:success or -phase:in", "status:success or -phase:intake"),
        ('text:"rate st', None),
        ("status:failed ", None),
        ("nothing:x", None),
        ("output:", None),
    ],
)
def test_a_filter_goes_on_with_a_field_or_with_a_value_that_runs_have(text: str, goes_on: str | None) -> None:
    assert next(iter(complete_filter(text, [PLAIN])), None) == goes_on
