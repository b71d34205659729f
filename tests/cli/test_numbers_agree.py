"""One quantity, one number: every place that states tokens, money or time of a run states the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from math import isclose
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from msgspec.structs import replace

from tests.attach.support import session as attached
from tests.store.examples import plain_run, save
from tests.support.command import Cli, run_cli
from tests.support.loopback import Loopback, Reply
from tests.support.waiting import until
from workbench.analysis.prediction import CallInput
from workbench.context.assembly import Kind
from workbench.context.place import Place
from workbench.dollars import recorded_words
from workbench.engine.debugger.stepper import Mode
from workbench.engine.journal.state import RunState
from workbench.models.prices import PriceTable
from workbench.store.store import Store
from workbench.views.cells import Row
from workbench.views.header import totals
from workbench.views.log import log_line
from workbench.views.numbers import (
    figures_in_full,
    recorded_in_full,
    spent_cell,
    spent_words,
    tokens_in_full,
    took_words,
)
from workbench.views.run import figures_words, totals_line
from workbench.views.timeline import Timeline
from workbench.views.tree import TreeRows, TreeView
from workbench.workspace.attaching import AttachOptions
from workbench.workspace.comparing import recorded
from workbench.workspace.project import Project
from workbench.workspace.session import Session
from workbench.workspace.sql_queries import EXAMPLES

INNER = "cascade_id: inner\nphases:\n  - {name: deep, instructions: Deep.}\n"
OUTER = """\
cascade_id: outer
phases:
  - name: first
    instructions: First.
    sub_cascades: [{ref: inner.yaml}]
  - name: second
    instructions: Second.
    async_cascades: [{ref: inner.yaml, trigger: on_start}]
    soundings: {factor: 2, evaluator_instructions: Best.}
  - name: third
    instructions: Third.
"""
WALKS = "cascade_id: walks\nsoundings: {factor: 2, evaluator_instructions: Best.}\nphases:\n"
WALKS += "  - {name: a, instructions: A.}\n"
TWO = "cascade_id: two\nphases:\n  - {name: a, instructions: A.}\n  - {name: b, instructions: B.}\n"
NEXT = TWO.replace("instructions: B.", "instructions: Other.")
REPLIES = "replies: {a: [{text: one}], b: [{text: two}]}\n"
STEPS = """\
cascade_id: steps
phases:
  - name: look
    model: openai/gpt-4.1-mini
    instructions: Look around.
    tackle: [list_files]
    use_native_tools: true
    rules: {max_turns: 5}
    intra_context: {mask_observations_after: 1, min_masked_size: 20}
"""
STATED_IN_PART = """\
replies:
  look:
    - {say: one, calls: [{tool: list_files}], usage: {input: 180, output: 9}}
    - {say: two, calls: [{tool: list_files}]}
    - {say: three, calls: [{tool: list_files}], usage: {input: 700, output: 9}}
    - text: done
"""
GRAPH = """\
digraph graph {
  start [shape=Mdiamond]
  exit [shape=Msquare]
  write [prompt="Write."]
  check [prompt="Check.", retry_policy="standard"]
  start -> write -> check -> exit
}
"""
LIVE = "openai/gpt-4.1-mini"
Table = dict[str, dict[str, Any]]
MODES = [
    "live",
    "offline",
    "retried",
    "silent",
    "resumed",
    "forked",
    "paused",
    "stopped",
    "nested",
    "graph",
    "partly",
    "walks",
    "attached",
    "rows.r1",
    "again",
    "next",
    "whole",
    "mended",
    "replayed",
    "reused",
]
RECORDED = ("forked", "again", "next", "whole", "mended", "replayed", "reused")
"""Of these, the runs that a recording answers in part or as a whole."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace with a run of each kind."""
    folder = tmp_path_factory.mktemp("numbers")
    texts = {"inner": INNER, "outer": OUTER, "two": TWO, "next": NEXT, "steps": STEPS, "walks": WALKS}
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    (folder / "graph.dot").write_text(GRAPH)
    (folder / "rows.jsonl").write_text("{}\n")
    (folder / "two.replies.yaml").write_text(REPLIES)
    (folder / "steps.replies.yaml").write_text(STATED_IN_PART)
    with pytest.MonkeyPatch.context() as patch, Loopback(lambda asked: Reply('{"winner": 1}')) as provider:
        at(folder, patch)
        patch.setenv("WORKBENCH_BASE_URL", provider.url)
        patch.setenv("OPENAI_API_KEY", "sk-none")
        offline = ("-m", "offline", "--unscripted", "ok")
        assert run_cli("run", "outer.yaml", "-m", LIVE, "--session", "live").code == 0
        assert run_cli("run", "outer.yaml", *offline, "--session", "offline").code == 0
        assert run_cli("run", "two.yaml", "-m", "openai/503html@1", "--session", "retried").code == 0
        assert run_cli("run", "two.yaml", "-m", "openai/nousage", "--session", "silent").code == 0
        assert run_cli("run", "walks.yaml", *offline, "--session", "walks").code == 0
        assert run_cli("run", "steps.yaml", "-m", "offline", "--session", "partly").code == 0
        patch.setenv("WORKBENCH_TRIES", "1")
        assert run_cli("run", "two.yaml", "-m", "openai/500@1", "--session", "resumed").code == 4
        assert run_cli("resume", "resumed").code == 0
        assert run_cli("run", "graph.dot", "-m", LIVE, "--session", "graph").code == 0
        assert run_cli("batch", "two.yaml", "-i", "rows.jsonl", "-m", LIVE, "--name", "rows", "-q").code == 0
        with attached(Project.at(folder), provider.url, AttachOptions(session="attached")) as recorded:
            assert recorded.chat("How many?").status_code == 200
            assert recorded.chat("How many?", "3", "And now?", stream=True).status_code == 200
        for name, options in (
            ("replayed", AttachOptions(replay="attached")),
            ("reused", AttachOptions(reuse="attached")),
        ):
            with attached(Project.at(folder), provider.url, replace(options, session=name)) as program:
                assert program.chat("How many?").status_code == 200
                if name == "reused":
                    assert program.chat("How many?", "3", "And tomorrow?").status_code == 200
        assert run_cli("run", "two.yaml", "-m", LIVE, "--session", "priced").code == 0
        assert run_cli("run", "two.yaml", "-m", LIVE, "--reuse", "priced", "--session", "again").code == 0
        asked = len(provider.requests)
        assert run_cli("run", "next.yaml", "-m", LIVE, "--reuse", "priced", "--live", "--session", "next").code == 0
        assert len(provider.requests) == asked + 1
        assert run_cli("run", "outer.yaml", "-m", LIVE, "--reuse", "live", "--session", "whole").code == 0
        assert run_cli("fork", "priced", "--at", "b", "-m", "openai/429@1", "--session", "mended").code == 4
        assert run_cli("resume", "mended").code == 0
        assert run_cli("fork", "live", "--at", "second", "--session", "forked").code == 0
        project = Project.at(folder)
        stepped(project, "paused", stop=False)
        stepped(project, "stopped", stop=True)
        patch.setenv("WORKBENCH_UNSCRIPTED", "ok")
        stepped(Project.at(folder), "nested", stop=False, file="outer.yaml")
        yield folder


def at(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Work in ``folder``, with its own state and settings."""
    patch.chdir(folder)
    for name in ("STATE_DIR", "CONFIG_DIR"):
        patch.setenv(f"WORKBENCH_{name}", str(folder / name.lower()))


def stepped(project: Project, session_id: str, *, stop: bool, file: str = "two.yaml") -> None:
    """A run that is paused at every stop, to its end, or until it is stopped while it is paused."""
    session = Session(project, Path(file), model="offline")
    try:
        session.start({}, Mode.INTO, session=session_id)
        before = None
        for step in range(200):
            until(lambda: session.stepper.held not in (None, before) or not session.running, "it is paused or over")  # noqa: B023
            before = session.stepper.held
            if not session.running:
                return
            if stop and step == 5:
                session.stop()
                until(lambda: not session.running, "it is over")
                return
            session.go(Mode.INTO)
        raise AssertionError("it never ends")
    finally:
        session.close()


@pytest.fixture(scope="module")
def states(stored: Path) -> dict[str, RunState]:
    """The runs by their sessions, each read once from its journal."""
    store = Project.at(stored).store
    return {state.session_id: state for state in map(store.state, store.run_ids())}


@pytest.fixture(scope="module")
def tables(stored: Path) -> list[Table]:
    """The rows of the runs, and the sums and tokens of their answers, as SQL gives them, by run id."""
    summed = "countIf(NOT recorded) AS calls, sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out, "
    summed += "sum(cost) AS cost, sum(spent) AS spent, sum(recorded_cost) AS recorded_cost, "
    summed += "groupArray(coalesce(all_data.recorded_tokens_in, all_data.tokens_in)) AS each_tokens_in, "
    summed += "countIf(recorded) AS recorded_calls, sum(recorded_tokens_in) AS recorded_tokens_in, "
    summed += "sum(recorded_tokens_out) AS recorded_tokens_out"
    asked = [
        "SELECT * FROM runs FINAL",
        f"SELECT run_id, {summed} FROM all_data WHERE response_hash != '' GROUP BY run_id",
    ]
    with pytest.MonkeyPatch.context() as patch:
        at(stored, patch)
        answers = [run_cli("sql", query, "--format", "json").json for query in asked]
    return [{row["run_id"]: row for row in rows} for rows in answers]


@pytest.fixture
def work(stored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    at(stored, monkeypatch)
    return stored


@pytest.fixture(scope="module")
def told() -> Cli:
    """What commands that only read say of the runs; each is asked once."""
    return cache(run_cli)


@pytest.fixture
def cli(work: Path, told: Cli) -> Cli:
    return told


def state_of(work: Path, session: str) -> RunState:
    store: Store = Project.at(work).store
    return next(store.state(one) for one in store.run_ids() if store.summary(one).session_id == session)


def brief(of: dict[str, Any]) -> list[Any]:
    """Calls, tokens in and out, US dollars billed and predicted, from an object that names them."""
    numbers = [of[name] or 0 for name in ("calls", "tokens_in", "tokens_out")]
    money = [round(of.get(name) or 0.0, 12) for name in ("cost", "predicted_cost")]
    return [*numbers, *money]


@pytest.mark.parametrize("kind", MODES)
def test_screens_and_commands_say_the_same_of_a_run(
    work: Path, cli: Cli, states: dict[str, RunState], kind: str
) -> None:
    state = states[kind]
    took = state.figures()
    want = brief(took.brief())
    shown, tree = cli("show", kind, "--json").json, cli("tree", kind, "--json").json
    (listed,) = cli("runs", f"session:{kind}", "--json").json
    assert [brief(one) for one in (shown["totals"], listed, tree["totals"])] == [want] * 3
    times = [(one["seconds"], one["paused_s"]) for one in (shown, tree["totals"])]
    assert [(listed["seconds"], listed["paused"]), *times] == [(state.seconds, state.paused)] * 3

    summary = Project.at(work).store.summary(state.run_id)
    text = cli("show", kind, "--plain").out
    assert f"calls    {figures_words(took)}" in text
    assert f"took {took_words(state.seconds, state.paused)}" in text
    line = totals_line(summary)
    assert "   ".join(figures_in_full(took)) in line
    head = Row(totals(state)).text
    assert "  ".join(("", *tokens_in_full(took), spent_cell(took.spent))) in head

    nodes = TreeRows(state, TreeView()).nodes
    rows = [node.sums for node in nodes if node.depth == 0 and node.total is None and node.sums is not None]
    summed = rows[0]
    for row in rows[1:]:
        summed += row
    assert brief(summed.brief()) == want, "the rows of the tree add up to its total"
    assert [brief(node.sums.brief()) for node in nodes if node.total is not None and node.sums] == [want]
    beside = [call | {"tokens_out": call["usage"]["output"]} for call in shown["beside_phases"] if not call["recorded"]]
    visits = [brief(visit | {"calls": 0}) for visit in (*shown["phases"], *beside)]
    assert sum(visit[1] for visit in visits) == want[1]
    assert isclose(sum(visit[3] for visit in visits), want[3], abs_tol=1e-12)


@pytest.mark.parametrize("kind", MODES)
def test_tables_and_exports_say_the_same_of_a_run(
    work: Path, cli: Cli, states: dict[str, RunState], tables: list[Table], kind: str, tmp_path: Path
) -> None:
    state = states[kind]
    own, whole = brief(state.own.brief()), brief(state.figures().brief())
    row, sums = (table[state.run_id] for table in tables)
    assert brief(row) == own
    assert [row["recorded_calls"], *recorded_tokens(row)] == [state.own.recorded, *recorded_tokens(state.own.brief())]
    assert [(row[n] or 0) + (row[f"inside_{n}"] or 0) for n in ("calls", "tokens_in", "tokens_out")] == whole[:3]
    assert isclose((row["cost"] or 0) + (row["inside_cost"] or 0), whole[3], abs_tol=1e-12)
    assert isclose(row["spent"] or 0, whole[3] + whole[4], abs_tol=1e-12), "what lists show"
    assert isclose(sums["spent"] or 0, own[3] + own[4], abs_tol=1e-12)
    assert (row["seconds"], row["paused_seconds"]) == (state.seconds, state.paused)

    assert brief(sums | {"predicted_cost": own[4]}) == [*own[:3], round(sums["cost"] or 0.0, 12), own[4]]
    assert isclose(sums["cost"] or 0.0, own[3], abs_tol=1e-12)

    file = tmp_path / "run.parquet"
    assert cli("export", kind, "--as", "parquet", "-o", file).code == 0
    answers = [one for one in pyarrow.parquet.read_table(file).to_pylist() if one["response_hash"]]
    answers = [one for one in answers if not one["recorded"]]
    assert [len(answers), sum(one["tokens_in"] or 0 for one in answers)] == own[:2]

    spans = json.loads(cli("export", kind, "--as", "otel").out)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    told = {one["key"]: next(iter(one["value"].values())) for one in spans[0]["attributes"]}
    named = {name: float(told.get(f"workbench.{name}", 0)) for name in ("calls", "tokens_in", "tokens_out", "cost")}
    assert brief({**named, "predicted_cost": whole[4]}) == whole
    length = (int(spans[0]["endTimeUnixNano"]) - int(spans[0]["startTimeUnixNano"])) / 1e9
    assert length == pytest.approx(state.seconds, abs=1e-6), "asynchronous runs that end later are part of both"

    lines = cli("export", kind, "--as", "messages", "--details").lines
    assert all(isclose(one["took"]["seconds"], visit.seconds or 0.0) for one, visit in pairs(lines, state))
    page = cli("export", kind, "--as", "html").out
    assert f"{'' if state.figures().grade_in == 'exact' else '~'}{whole[1]:,} tokens in" in page
    paid = [state.figures_of_calls([call]).spent for call in state.calls if call.answer is not None]
    for one in paid:
        cost = spent_words(one)
        before = recorded_words(one.recorded, exact=one.recorded_exact)
        said = " · ".join(filter(None, ("cost unpriced" if cost == "unpriced" else cost, before)))
        assert f" · {said}</p>" in page


def recorded_tokens(of: dict[str, Any]) -> list[int]:
    """Tokens in and out of recorded answers, from an object that names them."""
    return [of[f"recorded_{name}"] or 0 for name in ("tokens_in", "tokens_out")]


def pairs(lines: list[Any], state: RunState) -> Iterator[tuple[Any, Any]]:
    answered = [visit for visit in state.visits if any(c.answer is not None and not c.beside for c in visit.calls)]
    return zip(lines, answered, strict=True)


@pytest.mark.parametrize("kind", MODES)
def test_every_place_says_the_same_tokens_of_a_call(
    work: Path, cli: Cli, states: dict[str, RunState], tables: list[Table], kind: str
) -> None:
    """As its provider stated them, else as they were predicted before it; a what-if of the same request says them too,
    and one of another request is counted on the same scale.
    """
    state = states[kind]
    calls = {str(call.place): call for call in state.calls if call.answer is not None}
    want = {place: call.tokens_in for place, call in calls.items()}
    inside = {place: want[place] for place, call in calls.items() if not call.beside}

    looked = [one for one in cli("context", kind, "--json").json if one["answer"] is not None]
    assert {one["at"]: one["tokens_in"] for one in looked} == want
    rows = {one["at"]: [entry["tokens_sent"] for entry in one["entries"] if entry["sent"]] for one in looked}
    rest = {one["at"]: one["tools_tokens"] + one["overhead"]["sent"] for one in looked}
    assert {place: sum(row) + rest[place] for place, row in rows.items()} == want, "the rows add up to the input"
    assert all(one["overhead"]["full"] == one["overhead"]["sent"] for one in looked), "overhead has one size"
    held = {place: CallInput.of(call) for place, call in calls.items()}
    saved = {place: call.tokens_full - call.tokens_sent for place, call in calls.items()}
    assert {place: took.full - took.sent for place, took in held.items()} == saved, "what rows, log and SQL say"
    shown = cli("show", kind, "--json").json
    told = [call for visit in (*shown["phases"], {"calls": shown["beside_phases"]}) for call in visit["calls"]]
    told = [call for call in told if call["answer"] is not None]
    assert {call["at"]: call["tokens_in"] for call in told} == want
    side, _ = recorded(state, PriceTable({}))
    assert {str(one.call.place): (one.tokens, one.grade) for one in side.seen} == {
        place: (tokens, calls[place].grade_in) for place, tokens in inside.items()
    }
    again = cli("context", kind, "--strategy", "file", "--json").json
    assert {one["at"]: one["tokens_in"] for one in again if one["at"] in want} == inside
    compared = cli("diff", kind, "--strategies", "file", "snowball", "--json").json
    assert {one["at"]: one["a"]["tokens"] for one in compared["calls"]} == inside
    forecast = {one["at"]: one["predicted"]["input_cost"] for one in told}
    assert {one["at"]: one["a"]["reported"]["predicted_cost"] for one in compared["calls"] if one["a"]["reported"]} == {
        place: forecast[place] for place in inside if calls[place].usage.input is not None
    }
    shorter = [sum(one["tokens_full"] - one["tokens_sent"] for one in row["entries"] if one["sent"]) for row in looked]
    masked = dict(zip((one["at"] for one in looked), shorter, strict=True))
    for before, now in pairwise(one for one in compared["calls"] if one["at"] in masked):
        freed = (now["a"]["break_even"] or {}).get("freed", 0)
        within = before["at"].rsplit("/", 3)[0] == now["at"].rsplit("/", 3)[0]
        assert freed == (masked[now["at"]] - masked[before["at"]] if within else 0), "what the rows say of masking"
    swept = cli("sweep", kind, "--strategy", "mask(after=3)", "--json").json["strategies"]
    assert [one["tokens_sum"]["value"] for one in swept if one["strategy"] == "file"] == [sum(inside.values())]
    assert sorted(tables[1][state.run_id]["each_tokens_in"]) == sorted(want.values())
    spans = json.loads(cli("export", kind, "--as", "otel").out)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    named = [{one["key"]: next(iter(one["value"].values())) for one in span["attributes"]} for span in spans]
    sent = {one["workbench.place"]: int(one[name]) for one in named if (name := "gen_ai.usage.input_tokens") in one}
    assert sent == {place: tokens for place, tokens in want.items() if calls[place].usage.input is not None}


def test_the_example_of_masking_lists_what_masking_saved_of_each_call(work: Path, cli: Cli) -> None:
    """What a context drops is no part of it; a message that stays masked counts in every later call."""
    rows = cli("sql", dict(EXAMPLES)["what masking saved, by call"], "--format", "json").json
    store = Project.at(work).store
    want = {
        (state.session_id, call.place): (call.tokens_in, call.held_back)
        for state in map(store.state, store.run_ids())
        for call in state.calls
        if call.held_back > 0
    }
    assert want
    place = ("branch", "phase_name", "visit", "attempt_number", "turn_number", "call")
    found = {(row["session_id"], Place(*(row[name] for name in place))): (row["sent"], row["saved"]) for row in rows}
    assert found == want
    for (session, at), (_, saved) in want.items():
        (looked,) = cli("context", session, "--at", str(at), "--json").json
        told = [entry for entry in looked["entries"] if entry["sent"]]
        assert sum(entry["tokens_full"] - entry["tokens_sent"] for entry in told) == saved


def test_the_example_of_the_newest_runs_lists_what_lists_show(
    work: Path, cli: Cli, states: dict[str, RunState]
) -> None:
    rows = cli("sql", dict(EXAMPLES)["the newest runs"], "--format", "json").json
    listed = {row["session_id"]: row for row in rows}
    for kind in MODES:
        took = states[kind].figures()
        row = listed[kind]
        assert [row["calls"], row["tokens_in"], row["tokens_out"]] == [took.calls, took.tokens_in, took.told_out], kind
        assert isclose(row["spent"] or 0.0, took.spent.billed + took.spent.predicted, abs_tol=1e-12)


def test_the_example_of_tools_counts_the_characters_that_models_saw(work: Path, cli: Cli) -> None:
    rows = cli("sql", dict(EXAMPLES)["tools by how much they return"], "--format", "json").json
    store = Project.at(work).store
    sizes: dict[str, list[int]] = {}
    for state in map(store.state, store.run_ids()):
        for item in (item for visit in state.visits for item in visit.items if item.kind is Kind.RESULT):
            sizes.setdefault(item.tool, []).append(len(item.message.text))
    assert sizes
    want = {tool: (len(all), round(sum(all) / len(all))) for tool, all in sizes.items()}
    assert {row["tool"]: (row["calls"], row["characters"]) for row in rows} == want


@pytest.mark.parametrize("kind", MODES)
def test_time_never_runs_backwards(work: Path, states: dict[str, RunState], kind: str) -> None:
    state, store = states[kind], Project.at(work).store
    fold = RunState()
    lines = [line for event in store.events(state.run_id) if fold.apply(event) and (line := log_line(event, fold))]
    live = [line.at for line in lines if not line.recorded]
    assert live == sorted(live), "what came from a recording says so, and keeps its own clock"
    assert any(line.recorded for line in lines) == (kind in RECORDED and kind not in ("replayed", "reused"))
    bars = [bar.call for bar in Timeline.of(state).bars if bar.kind == "call" and bar.call is not None]
    assert sum(call.tokens_in for call in bars if call.answer) == state.own.worth.tokens_in
    assert (state.paused > 0) == (kind in ("paused", "stopped", "nested"))


@pytest.mark.parametrize("kind", RECORDED)
def test_what_a_recording_answered_is_not_spent_again(
    work: Path, cli: Cli, states: dict[str, RunState], tables: list[Table], kind: str
) -> None:
    """A recorded answer was billed to the run that asked for it. Every place says what it cost then, apart from what
    this run spent."""
    state = states[kind]
    own, whole = state.own, state.figures()
    answered = [call for call in state.calls if call.answer is not None]
    told = [call for call in answered if call.recorded]
    assert told or whole.runs
    assert own.recorded == len(told)
    assert isclose(own.spent.recorded, sum(call.cost or 0.0 for call in told), abs_tol=1e-12)
    assert isclose(own.spent.billed, sum(call.cost or 0.0 for call in answered if not call.recorded), abs_tol=1e-12)
    before = whole.spent.recorded
    assert before > 0
    made = [call for call in answered if not call.recorded]
    assert [own.calls, own.tokens_in] == [len(made), sum(call.tokens_in for call in made)], "calls, tokens: of the same"
    assert own.recorded_tokens_in == sum(call.tokens_in for call in told)
    assert own.tokens_out == sum(call.usage.output or 0 for call in made)
    assert own.recorded_tokens_out == sum(call.usage.output or 0 for call in told)

    shown, tree = cli("show", kind, "--json").json, cli("tree", kind, "--json").json
    (listed,) = cli("runs", f"session:{kind}", "--json").json
    row, sums = (table[state.run_id] for table in tables)
    spans = json.loads(cli("export", kind, "--as", "otel").out)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    named = [{one["key"]: next(iter(one["value"].values())) for one in span["attributes"]} for span in spans]
    for place in (shown["totals"], tree["totals"], listed, row):
        assert isclose(place["recorded_cost"], before)
    for place in (shown["totals"], tree["totals"], listed):
        assert recorded_tokens(place) == recorded_tokens(whole.brief())
    assert recorded_tokens(row) == recorded_tokens(sums) == recorded_tokens(own.brief())
    assert sums["recorded_calls"] == own.recorded
    assert f" ⟲{whole.recorded}  " in Row(totals(state)).text
    assert isclose(float(named[0]["workbench.recorded_cost"]), before)
    calls = [call for visit in (*shown["phases"], {"calls": shown["beside_phases"]}) for call in visit["calls"]]
    for paid in (calls, [one for one in named[1:] if "workbench.place" in one]):
        costs = [
            [float(one.get(name) or 0.0) for one in paid for name in (key, f"workbench.{key}") if name in one]
            for key in ("cost", "recorded_cost")
        ]
        assert isclose(sum(costs[0]), own.spent.billed, abs_tol=1e-12)
        assert isclose(sum(costs[1]), own.spent.recorded, abs_tol=1e-12)
    assert isclose(sums["recorded_cost"] or 0.0, own.spent.recorded, abs_tol=1e-12)
    words = recorded_in_full(whole)
    for text in (cli("show", kind, "--plain").out, cli("export", kind, "--as", "html").out):
        assert words in text


def test_the_money_of_all_runs_is_what_the_provider_billed(work: Path, cli: Cli) -> None:
    """``priced`` made two calls, ``again`` none, and ``next`` one, whose prompt had changed."""
    query = (
        "SELECT session_id, spent, cost, recorded_cost FROM runs FINAL WHERE session_id IN ('priced', 'again', 'next')"
    )
    runs = {row["session_id"]: row for row in cli("sql", query, "--format", "json").json}
    one = runs["priced"]["spent"] / 2
    assert one > 0
    want = {"priced": (2, 0), "again": (0, 2), "next": (1, 1)}
    for name, (made, recorded_calls) in want.items():
        assert isclose(runs[name]["spent"], made * one, abs_tol=1e-12)
        assert isclose(runs[name]["recorded_cost"], recorded_calls * one, abs_tol=1e-12)


def test_a_limit_of_money_holds_for_what_is_billed(work: Path) -> None:
    """Recorded answers do not use it up; the answers before a stop do, when the run goes on."""
    half = Project.at(work).store.summary(state_of(work, "priced").run_id).cost / 4
    assert half > 0
    assert run_cli("config", "set", "max_cost", f"{half:.12f}", "--workspace").code == 0
    try:
        assert run_cli("run", "next.yaml", "-m", LIVE, "--reuse", "priced", "--live", "--session", "within").code == 0
        assert run_cli("run", "two.yaml", "-m", LIVE, "--session", "limited").code == 1
        assert "is reached" in state_of(work, "limited").reason
        assert run_cli("resume", "limited").code == 1
    finally:
        assert run_cli("config", "unset", "max_cost", "--workspace").code == 0
    own = state_of(work, "limited").own
    assert (own.calls, own.recorded, own.spent.recorded) == (1, 0, 0.0)
    assert isclose(own.spent.billed, 2 * half, abs_tol=1e-12)


@pytest.mark.parametrize(("session", "model"), [("live", LIVE), ("offline", "offline")])
def test_show_names_the_model_that_was_asked(work: Path, cli: Cli, session: str, model: str) -> None:
    assert f"   model {model}\n" in cli("show", session).out


def test_a_run_inside_another_counts_in_it_and_says_its_own(work: Path) -> None:
    state = state_of(work, "live")
    inside = [one for one in map(Project.at(work).store.summary, state.children.ended) if one]
    took = state.figures()
    assert (took.runs, took.missing, len(inside)) == (2, 0, 2)
    assert took.tokens_in == state.own.tokens_in + sum(run.tokens_in for run in inside)
    assert took.spent.billed == pytest.approx(state.own.spent.billed + sum(run.cost for run in inside))


def test_pauses_inside_a_child_are_time_of_neither_and_both_say_them_apart(work: Path, cli: Cli) -> None:
    outer = state_of(work, "nested")
    assert outer.seconds is not None
    spans = json.loads(cli("export", "nested", "--as", "otel").out)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    waited = 0.0
    for run_id in outer.children.ended:
        child = Project.at(work).store.state(run_id)
        assert child.seconds is not None
        shown = cli("show", child.session_id, "--json").json
        assert (shown["seconds"], shown["paused_s"]) == (child.seconds, child.paused)
        own = json.loads(cli("export", child.session_id, "--as", "otel").out)["resourceSpans"][0]["scopeSpans"][0]
        first = own["spans"][0]
        length = (int(first["endTimeUnixNano"]) - int(first["startTimeUnixNano"])) / 1e9
        assert length == pytest.approx(child.seconds, abs=1e-6)
        assert child.seconds <= outer.seconds + outer.paused, "it works on while the outer run is paused"
        waited += child.paused
    assert waited > 0, "no child was paused"
    assert outer.paused > 0
    lengths = [(int(one["endTimeUnixNano"]) - int(one["startTimeUnixNano"])) / 1e9 for one in spans]
    assert max(lengths) <= outer.seconds + 1e-6, "a span holds a pause"


def test_sql_counts_a_run_inside_another_that_went_on_with_it_once(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on in its own journal. The first example of the console counts as headers and lists do."""
    monkeypatch.setenv("WORKBENCH_TRIES", "1")
    half = TWO.replace("{name: a,", f"{{name: a, model: {LIVE},").replace("{name: b,", "{name: b, model: openai/402@1,")
    around = "cascade_id: around\nphases:\n  - {name: after, instructions: After., sub_cascades: [{ref: half.yaml}]}\n"
    (work / "half.yaml").write_text(half)
    (work / "around.yaml").write_text(around)
    assert run_cli("run", "around.yaml", "-m", LIVE, "--session", "around").code == 1
    assert run_cli("resume", "around").code == 0
    rows = run_cli("sql", "SELECT calls FROM runs WHERE session_id = 'around_sub_0' ORDER BY run_id", "--json").json
    assert [row["calls"] for row in rows] == [2]

    by_phase = run_cli("sql", EXAMPLES[0][1], "--json").json
    store = Project.at(work).store
    whole = [store.state(run.run_id).figures() for run in store.runs() if not run.depth]
    for name in ("calls", "tokens_in", "tokens_out"):
        assert sum(row[name] or 0 for row in by_phase) == sum(getattr(one, name) for one in whole), name
    assert sum(row["spent"] or 0 for row in by_phase) == pytest.approx(sum(one.spent.total or 0 for one in whole))
    shown, (listed,) = run_cli("show", "around", "--json").json, run_cli("runs", "session:around", "--json").json
    assert shown["totals"]["calls"] == listed["calls"] == 3


def test_what_was_spent_carries_the_sign_of_a_prediction_whatever_is_selected_beside_it(folder: Path) -> None:
    """In a workspace with a run that a provider billed, and one whose cost is predicted."""
    save(Project.at(folder).store, plain_run(session="billed"))
    Path("two.yaml").write_text(f"model: openai/gpt-4.1-mini\n{TWO}")
    Path("two.replies.yaml").write_text(REPLIES)
    assert run_cli("run", "two.yaml", "--session", "guessed").code == 0
    for query, told in (
        ("SELECT session_id, spent FROM runs ORDER BY session_id", {"billed $0.5000", "guessed ~$"}),
        ("SELECT r.session_id, round(r.spent, 6) AS money FROM runs AS r", {"billed $0.5000", "guessed ~$"}),
        ("SELECT sum(spent) FROM runs WHERE session_id = 'billed'", {"$0.5000"}),
        ("SELECT round(sum(spent), 6) AS total FROM runs WHERE spent > 0", {"~$0.5"}),
        ("SELECT session_id, sum(spent) AS s FROM all_data GROUP BY session_id", {"billed $0.5000", "guessed ~$"}),
        ("SELECT session_id, sum(spent) AS spent FROM all_data GROUP BY 1", {"billed $0.5000", "guessed ~$"}),
        (EXAMPLES[0][1], {"sort 2 30 10 $0.5000", "a 1 "}),
        ("WITH 1 AS one SELECT session_id, spent / one AS spent_each FROM runs", {"billed $0.5000", "guessed ~$"}),
        ("SELECT ', spent' AS name, sum(spent) FROM runs WHERE session_id = 'billed'", {", spent $0.5000"}),
        ("SELECT session_id FROM runs WHERE spent > 0.1", {"billed"}),
        ("SELECT max(spent) AS most FROM (SELECT spent FROM runs)", {"$0.5000"}),
        ("SELECT DISTINCT spent FROM runs WHERE session_id = 'billed'", {"$0.5000"}),
    ):
        printed = run_cli("sql", query).out
        lines = [" ".join(line.split()) for line in printed.splitlines()]
        assert all(any(line.startswith(words) for line in lines) for words in told), printed
        assert len(lines[0].split()) == len(run_cli("sql", query, "--json").json[0]), "there is a column more"
