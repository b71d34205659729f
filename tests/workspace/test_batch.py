"""A cascade over many rows: what runs, what is kept, what is scored, and how it goes on."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.batches import stored_batch
from tests.support.command import WORKBENCH, run_cli
from tests.support.loopback import Loopback, Received, Reply
from tests.support.waiting import PATIENCE, until
from tests.support.workspaces import alone
from workbench.analysis.batch.grid import GridError, setting_of, variants_of
from workbench.analysis.batch.paired import paired
from workbench.analysis.batch.rows import row_of, session_names
from workbench.analysis.batch.scoring import Scorer, ScorerError, read_score, score
from workbench.cli.batch_progress import progress_words
from workbench.dollars import money
from workbench.store.batches import BatchFolder, BatchWriter, batch_names
from workbench.store.store import Store
from workbench.views.batch import BatchView, cell_words
from workbench.views.numbers import spent_cell
from workbench.workspace.batch.cells import MayCost
from workbench.workspace.batch.inputs import InputsError, read_inputs
from workbench.workspace.batch.planning import BatchRequest, prepared
from workbench.workspace.batch.results import StoredBatch, stored_matrix
from workbench.workspace.batch.running import BatchLimits, BatchRun, Budget, redacted
from workbench.workspace.project import Project

FLOW = """\
cascade_id: flow
inputs_schema: {review: a text}
phases:
  - name: judge
    model: openai/gpt-4o
    instructions: "Is this good or bad? {{ input.review }}"
"""
REPLIES = """\
replies:
  judge:
    - when: great
      text: good
    - text: bad
"""
ROWS = [
    {"id": "ines", "review": "great jacket", "expected": "good"},
    {"id": "tom", "review": "the zip broke", "expected": "bad"},
    {"id": "farid", "review": "short", "expected": "good"},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a cascade, its replies and three rows."""
    alone(monkeypatch, tmp_path / "home", tmp_path / "work")
    work = tmp_path / "work"
    (work / "flow.yaml").write_text(FLOW)
    (work / "flow.replies.yaml").write_text(REPLIES)
    write_rows(work, ROWS)
    return work


def write_rows(folder: Path, rows: list[Any]) -> None:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def batch(*options: str, code: int = 0) -> Any:
    """The JSON of a batch of the workspace."""
    ended = run_cli("batch", "flow.yaml", "-i", "rows.jsonl", "--json", "-q", *options)
    assert ended.code == code, ended.err + ended.out
    return ended.json


# -- pure parts --------------------------------------------------------------------------------------------------------


def test_a_grid_has_every_combination_and_labels_what_differs() -> None:
    found = variants_of(
        ("a.yaml",), ("model=[x/a, x/b]", "p.rules.max_turns=[1, 2]", "input.n=3"), ("", "mask(after=1)")
    )
    assert len(found) == 8
    assert found[0].settings == (("model", "x/a"), ("p.rules.max_turns", 1), ("input.n", 3))
    assert found[0].label == "model=x/a · p.rules.max_turns=1 · the file's strategy"
    assert len({one.label for one in found}) == 8


@pytest.mark.parametrize("text", ["model", "=x", "a..b=1", "a=[", "a=[]"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(GridError):
        setting_of(text)


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("model=x/a", "model", ["x/a"]),
        (" input.n = 3 ", "input.n", [3]),
        ("input.s=", "input.s", [""]),
        ("a=b=c", "a", ["b=c"]),
        ("a=[1,2]", "a", [1, 2]),
        ("a=[x, 'y', \"z\", true, null]", "a", ["x", "y", "z", True, None]),
        ("a=[,1,,2,]", "a", [1, 2]),
        ("a=['x, y', \"[,\"]", "a", ["x, y", "[,"]),
        ('a=[{"k": [1, 2]}, [3, [4, 5]], (6, 7)]', "a", [{"k": [1, 2]}, [3, [4, 5]], "(6, 7)"]),
        ('a={"k": 1}', "a", [{"k": 1}]),
    ],
)
def test_a_setting_is_a_value_or_a_list_of_them(text: str, key: str, values: list[Any]) -> None:
    assert setting_of(text) == (key, values)


def test_a_list_in_a_setting_may_hold_lists_and_objects() -> None:
    assert setting_of('p.stop=[["a", "b"], {"x": [1, 2]}, plain]') == ("p.stop", [["a", "b"], {"x": [1, 2]}, "plain"])


def test_a_row_says_what_it_lacks_and_where() -> None:
    assert row_of(1, "", {"text": "x"}, ["review"]).fault.startswith("'review' missing")
    assert "'review' is null" in row_of(1, "rows.csv:2", {"review": None}, ["review"]).fault
    assert row_of(1, "rows.jsonl:1", [1], ["review"]).fault == "rows.jsonl:1: a row is an object, this is a list"
    assert row_of(1, "", {"input": {"review": "x"}, "expected": 1}, ["review"]).input == {"review": "x"}


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("r.json", '\n[ [1],\n  {"a": [2, 3]},\r\n\n 4\n]\n', ["r.json:2", "r.json:3", "r.json:5"]),
        ("r.json", "[]", ["r.json: holds no row"]),
        ("r.json", '[\n {"a": 1},\n {"a" 2}\n]', ["r.json:3:7: not valid JSON: Expecting ':' delimiter"]),
        ("r.json", '{\n "rows": []\n}', ["r.json:1: the inputs are a list of objects, or an object on each line"]),
        ("r.json", '{"a": 1}\n{"a": 2}\n', ["r.json:1", "r.json:2"]),
        ("r.jsonl", "[1]\n\n[2]\n", ["r.jsonl:1", "r.jsonl:3"]),
        ("r.jsonl", "{\n[2]\n", ["r.jsonl:1", "r.jsonl:2"]),
        ("r.csv", 'a,b\n1,2\n"x\ny",3\n4\n', ["r.csv:2", "r.csv:3", "r.csv:5"]),
    ],
)
def test_every_record_has_a_place(tmp_path: Path, name: str, text: str, places: list[str]) -> None:
    file = tmp_path / name
    file.write_text(text, newline="")
    try:
        found = [where for where, _ in read_inputs(file, name).found]
    except InputsError as fault:
        found = [str(fault)]
    assert found == places


@pytest.mark.parametrize("answer", ["maybe", None, [], {}, {"score": "high"}, float("nan"), '{"valid": null}', ""])
def test_an_answer_that_is_no_score_is_a_fault_and_not_zero(answer: Any) -> None:
    found = read_score(answer)
    assert found.value is None
    assert found.fault


def test_scorers_read_outputs_and_rows() -> None:
    row = row_of(1, "", {"q": "x", "expected": {"a": [1, 2.0]}, "label": "Yes"}, [])
    assert score(Scorer.parse("exact"), '```json\n{"a": [1, 2.0]}\n```', row).value == 1
    assert score(Scorer.parse("exact:label"), " Yes\n", row).value == 1
    assert score(Scorer.parse("exact:nothing"), "Yes", row).fault
    assert score(Scorer.parse(r"regex:\bno\b"), "I said No.", row).value == 1
    wrong = score(Scorer.parse("schema:s"), '{"a": "x"}', row, {"properties": {"a": {"type": "number"}}})
    assert (wrong.value, wrong.reason) == (0, "a: 'x' is not of type 'number'")
    with pytest.raises(ScorerError):
        Scorer.parse("regex:(")


@given(st.dictionaries(st.integers(0, 30), st.floats(-5, 5), min_size=5), st.floats(-3, 3), st.integers(0, 9))
def test_a_shift_of_every_row_is_its_own_interval(values: dict[int, float], shift: float, seed: int) -> None:
    found = paired(values, {row: value + shift for row, value in values.items()}, seed)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low == pytest.approx(shift, abs=1e-9)
    assert found.high == pytest.approx(shift, abs=1e-9)


def test_the_same_seed_gives_the_same_interval_and_it_holds_the_mean() -> None:
    a, b = dict.fromkeys(range(40), 0.0), {row: float(row % 3 == 0) for row in range(40)}
    found = paired(a, b, 7)
    assert found == paired(a, b, 7)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.mean < found.high
    assert (found.better, found.equal, found.worse) == (14, 26, 0)


# -- runs --------------------------------------------------------------------------------------------------------------


def test_every_row_is_a_stored_run_and_the_same_command_runs_nothing_again(folder: Path) -> None:
    body = batch("--score", "exact")
    assert [one["output"] for one in body["results"]] == ["good", "bad", "bad"]
    assert [one["score_exact"] for one in body["results"]] == [1, 1, 0]
    assert body["variants"][0]["scores"]["exact"] == {"mean": pytest.approx(2 / 3), "rows": 3}
    store = Project.at(folder).store
    runs = store.run_ids()
    assert sorted(one["run"] for one in body["results"]) == runs
    assert batch("--score", "exact") == body
    assert [(one["row"], one["session"].rpartition(".")[2]) for one in body["results"]] == [
        (1, "ines"),
        (2, "tom"),
        (3, "farid"),
    ]
    table = run_cli("batches", batch_names(store.root)[0], "--plain").out.splitlines()
    names = [one["name"] for one in body["results"]]
    assert [line.split()[:2] for line in table[-3:]] == [[str(at), name] for at, name in enumerate(names, 1)]
    assert batch("--score", "exact", "--score", "hit=regex:^bad")["results"][2]["score_hit"] == 1
    assert store.run_ids() == runs


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["r2", "r3", "r4"], ["r2", "r3", "r4"]),
        (["r2", "", "a"], ["r1", "r2", "a"]),
        (["a", "A", "b.v1"], ["r1", "r2", "r3"]),
        ([317, "ü", "x" * 41], ["317", "r2", "r3"]),
    ],
)
def test_a_session_is_named_by_the_id_of_its_row_where_no_other_run_can_have_that_name(
    ids: list[Any], names: list[str]
) -> None:
    rows = [row_of(number, "", {"id": id, "q": "x"}, []) for number, id in enumerate(ids, 1)]
    assert list(session_names(rows, by_id=True)) == names
    assert list(session_names(rows, by_id=False)) == ["r1", "r2", "r3"]


def test_a_batch_of_before_goes_on_with_the_numbers_of_its_rows(folder: Path) -> None:
    name = batch("--limit", "1")["results"][0]["session"].rpartition(".")[0]
    file = BatchFolder(Project.at(folder).store.root, name).path / "plan.json"
    plan = json.loads(file.read_text("utf-8"))
    del plan["by_id"]
    file.write_text(json.dumps(plan), "utf-8")
    sessions = [one["session"] for one in batch()["results"]]
    assert sessions == [f"{name}.{row}" for row in ("ines", "r2", "r3")]


def test_a_predicted_cost_is_marked_as_in_the_list_of_runs(folder: Path) -> None:
    """No provider billed these runs: what their input is expected to cost shows as ``~``, and never as nothing."""
    write_rows(folder, ROWS[:1])
    batch()
    store = Project.at(folder).store
    shown = spent_cell(store.runs()[0].spent)
    assert shown.startswith("~$0.0")
    name = batch_names(store.root)[0]
    assert f"{shown} · " in run_cli("batches", name, "--row", "1", "--plain").out
    assert shown in run_cli("batches", "--plain").out
    told = run_cli("batch", "flow.yaml", "-i", "rows.jsonl", "--repeat", "2").err
    assert "1 run ended" in told or "2 runs ended" in told, told
    assert "without a known price" not in told, "an offline batch has no bill that could be missing"


async def test_the_line_of_progress_says_the_sum_that_the_table_shows(folder: Path) -> None:
    """After each run, and when runs of an earlier command are part of it."""
    project = Project.at(folder)
    request = BatchRequest((Path("flow.yaml"),), "rows.jsonl", name="told", repeat=2)
    said: list[str] = []
    for limit in (1, None):
        ready = prepared(project, request, read_inputs(folder / "rows.jsonl", "rows.jsonl", limit))
        with BatchWriter(BatchFolder(project.store.root, "told")) as writer:
            writer.write_plan(redacted(ready.plan, str))
            limits = BatchLimits(concurrency=1, processes=1)
            run = BatchRun(project, ready, writer, limits, lambda now: said.append(progress_words(now)))
            with run.started():
                await run.run()
    said = [words for words in said if "6/6 runs" in words]
    matrix = stored_matrix(project.store, "told")
    total = sum(one.predicted for _, _, _, one in matrix.all())
    assert total > 0
    assert f" · {money(total)}" in said[-1], said
    assert money(total) in run_cli("batches", "--plain").out


def test_a_row_that_was_edited_runs_and_the_others_stay(folder: Path) -> None:
    before = batch()["results"]
    write_rows(folder, [ROWS[0], {**ROWS[1], "review": "great zip"}, ROWS[2]])
    after = batch()["results"]
    assert [one["run"] == other["run"] for one, other in zip(before, after, strict=True)] == [True, False, True]


def test_rows_that_are_equal_have_runs_of_their_own(folder: Path) -> None:
    write_rows(folder, [ROWS[0], ROWS[0]])
    assert len({one["run"] for one in batch("--repeat", "2")["results"]}) == 4


def test_rows_that_cannot_run_are_rows_with_a_reason(folder: Path) -> None:
    odd = '{"review": NaN}\n{"review": {"a": [1e999]}}\n'
    (folder / "rows.jsonl").write_text('{"review": "great"}\n{"review": \n{"text": "x"}\n[1]\n' + odd)
    found = batch(code=1)["results"]
    assert [one["status"] for one in found] == ["success", *["unfit"] * 5]
    assert found[4]["reason"] == "rows.jsonl:5: not valid JSON: NaN is not a number of JSON"
    assert found[5]["reason"] == "rows.jsonl:6: 'review' holds a number that is too large: JSON has no infinity"
    assert found[1]["reason"].startswith("rows.jsonl:2:12: not valid JSON")
    assert len(Project.at(folder).store.run_ids()) == 1


def test_csv_and_parquet_hold_the_same_rows(folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    (folder / "rows.csv").write_text("id,review,expected\nines,great jacket,good\ntom,broken\n")
    sized = [{**row, "size": float("nan")} for row in ROWS]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(sized), folder / "rows.parquet")
    read = read_inputs(folder / "rows.parquet", "rows.parquet")
    assert [record["size"] for _, record in read.found] == [None] * 3, "NaN is how tables write what is not there"
    by_csv = run_cli("batch", "flow.yaml", "-i", "rows.csv", "--json", "-q").json["results"]
    assert [one["status"] for one in by_csv] == ["success", "unfit"]
    assert by_csv[1]["reason"] == "rows.csv:3: the first line names 3 columns, this one holds 2"
    by_parquet = run_cli("batch", "flow.yaml", "-i", "rows.parquet", "--json", "-q").json["results"]
    assert [one["output"] for one in by_parquet] == ["good", "bad", "bad"]


def test_variants_are_compared_row_by_row(folder: Path) -> None:
    (folder / "kinder.yaml").write_text(FLOW.replace("good or bad?", "good or great?"))
    (folder / "kinder.replies.yaml").write_text("replies: {judge: [{text: good}]}\n")
    body = batch("--cascade", "kinder.yaml", "--score", "exact")
    assert [one["label"] for one in body["variants"]] == ["flow.yaml", "kinder.yaml"]
    compared = {one["what"]: one for one in body["comparisons"]}
    assert (compared["exact"]["better"], compared["exact"]["worse"], compared["exact"]["rows"]) == (1, 1, 3)
    for base in ("2", "kinder.yaml"):
        other = run_cli("batches", body["name"], "--against", base, "--json").json["comparisons"]
        assert {(one["a"], one["b"]) for one in other} == {("kinder.yaml", "flow.yaml")}
    refused = run_cli("batches", body["name"], "--against", "3")
    assert (refused.code, "there are 1 (flow.yaml), 2 (kinder.yaml)" in refused.err) == (2, True)


def test_a_setting_is_written_into_the_cascade_that_the_run_is_pinned_to(folder: Path) -> None:
    body = batch(
        "--model", "offline", "--set", "model=[x/a, x/b]", "--set", "judge.instructions=Say {{ input.review }}"
    )
    state = Project.at(folder).store.state(body["results"][1]["run"])
    assert "Say {{ input.review }}" in state.cascade_text
    assert state.calls[0].model == "x/b"
    for setting, why in (
        ("nothing.at=1", "'nothing' is not a phase"),
        ("judge.maxtokens=1", "did you mean 'max_tokens'?"),
        ("model=", "names no model"),
    ):
        failed = run_cli("batch", "flow.yaml", "-i", "rows.jsonl", "--set", setting)
        assert failed.code == 2
        assert why in failed.err


def test_results_are_written_as_what_the_name_ends_with(folder: Path) -> None:
    import pyarrow.parquet

    names = ("r.json", "r.jsonl", "r.csv", "r.parquet", "r.html")
    body = batch("--score", "exact", *(part for name in names for part in ("-o", name)))
    assert json.loads((folder / "r.json").read_text()) == body
    lines = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    rows = list(csv.DictReader(io.StringIO((folder / "r.csv").read_text())))
    table = pyarrow.parquet.read_table(folder / "r.parquet").to_pylist()
    assert [one["output"] for one in lines] == [one["output"] for one in rows] == [one["output"] for one in table]
    assert "great jacket" in (folder / "r.html").read_text()
    assert run_cli("batch", "flow.yaml", "-i", "rows.jsonl", "-o", "r.xls").code == 2


def test_scorers_that_raise_or_answer_nonsense_leave_the_run_and_say_why(folder: Path) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "judges.py").write_text(
        "def share(output: str, expected: str) -> float:\n"
        '    """How much of it is there."""\n'
        "    return len(set(output) & set(expected)) / len(set(expected))\n\n"
        'def broken(output: str) -> float:\n    """Never answers."""\n    raise ZeroDivisionError("by nothing")\n\n'
        'def vague(output: str) -> str:\n    """Says something else."""\n    return "rather good"\n'
    )
    refused = run_cli("batch", "flow.yaml", "-i", "rows.jsonl", "--score", "python:share", "-q")
    assert refused.code == 3, refused.err
    assert run_cli("trust", "--yes").code == 0
    found = batch("--score", "python:share", "--score", "python:broken", "--score", "python:vague")["results"][0]
    assert found["score_share"] == 1
    assert (found["score_broken"], found["score_vague"]) == (None, None)
    assert "ZeroDivisionError: by nothing" in found["reason_broken"]
    assert "no score in the answer" in found["reason_vague"]


def test_a_cascade_judges_and_a_person_does(folder: Path) -> None:
    judge = (
        "cascade_id: judge\nphases: [{name: p, instructions: 'Rate: {{ input.content }} for {{ input.expected }}'}]\n"
    )
    (folder / "judge.yaml").write_text(judge)
    answer = """'{"score": 0.25, "reason": "too short"}'"""
    (folder / "judge.replies.yaml").write_text(f"replies: {{p: [{{text: {answer}}}]}}\n")
    body = batch("--score", "cascade:judge.yaml", "--score", "person")
    assert {one["score_judge"] for one in body["results"]} == {0.25}
    assert [one["score_person"] for one in body["results"]] == [None] * 3
    assert run_cli("annotate", body["results"][1]["session"], "--score", "4").code == 0
    again = run_cli("batches", body["name"], "--json").json
    assert [one["score_person"] for one in again["results"]] == [None, 4, None]
    (folder / "judge.yaml").write_text(judge.replace("Rate:", "Rate kindly:"))
    (folder / "judge.replies.yaml").write_text("""replies: {p: [{text: '{"score": 0.75}'}]}\n""")
    edited = batch("--score", "cascade:judge.yaml")["results"]
    assert {one["score_judge"] for one in edited} == {0.75}, "scores of the judge as it was"
    assert [one["run"] for one in edited] == [one["run"] for one in body["results"]]


def test_a_batch_that_goes_on_elsewhere_is_read_further_and_says_so(tmp_path: Path) -> None:
    """Only what is new is read, and it comes to the same as all of it."""
    stored_batch(tmp_path)
    store = Store(tmp_path / ".workbench")
    folder = BatchFolder(store.root, "reviews-1")
    stored = StoredBatch(store, "reviews-1")
    first = stored.read()
    assert first is not None
    assert (first.left, stored.read()) == (1, None)
    with BatchWriter(folder) as writer:
        writer.add({"kind": "begun", "cell": "5.1", "run": "r11", "session": "reviews-1.r6.v2"})
    begun = stored.read()
    assert begun is not None
    assert cell_words(begun, 5, 1).text == "interrupted"
    hold = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX); print(); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(folder.path / "writer.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        going = stored.read()
        assert going is not None
        assert cell_words(going, 5, 1).text == "running"
        assert "1 run left; it is being run by an unknown process" in str(list(BatchView(going).blocks()))
        other.communicate()
    with BatchWriter(folder) as writer:
        writer.add({"kind": "ended", "cell": "5.1", "result": {"status": "success", "output": "good", "run": "r11"}})
    ended = stored.read()
    assert ended is not None
    assert (ended.left, list(ended.all())) == (0, list(stored_matrix(store, "reviews-1").all()))


def test_a_scoring_run_that_a_kill_cut_off_is_not_begun_again(folder: Path) -> None:
    """The first had ended, and only its score was not written down; of the second and the third not even that."""
    (folder / "judge.yaml").write_text("cascade_id: judge\nphases: [{name: p, instructions: Rate}]\n")
    (folder / "judge.replies.yaml").write_text("""replies: {p: [{text: '{"score": 0.5}'}]}\n""")
    body = batch("--score", "cascade:judge.yaml")
    store = Project.at(folder).store
    runs = store.run_ids()
    file = store.root / "batches" / body["name"] / "records.jsonl"
    records = {line: json.loads(line) for line in file.read_text().splitlines(keepends=True)}
    begun = [one["run"] for one in records.values() if one["kind"] == "judging"]
    assert len(begun) == 3
    file.write_text("".join(line for line, one in records.items() if one["kind"] != "scored"))
    for run in begun[1:]:
        segment = store.folder(run) / "000001.jsonl"
        lines = segment.read_bytes().splitlines(keepends=True)
        segment.write_bytes(b"".join(lines[: next(at for at, line in enumerate(lines) if b"call_finished" in line)]))
        for kept in store.folder(run).glob("summary*"):
            kept.unlink()
    again = batch("--score", "cascade:judge.yaml")
    assert [one["score_judge"] for one in again["results"]] == [0.5] * 3
    assert store.run_ids() == runs


def test_validators_that_are_code_score_outputs_and_know_the_run(folder: Path) -> None:
    code = "{'valid': len(content) < 4, 'reason': input['review'] + ' in ' + session_id}"
    validators = f'  short: {{python: "result = {code}"}}\n'
    validators += "  known: {sql: \"SELECT content = 'good' AS valid FROM _content\"}\n"
    (folder / "flow.yaml").write_text(FLOW + "validators:\n" + validators)
    body = batch("--score", "validator:short", "--score", "validator:known")
    assert [(one["score_short"], one["score_known"]) for one in body["results"]] == [(0, 1), (1, 0), (1, 0)]
    assert body["results"][1]["reason_short"] == f"the zip broke in {body['results'][1]['session']}"


@pytest.mark.parametrize(
    ("scorer", "trusted", "said"),
    [
        ("validator:nope", True, "no validator is called 'nope'; there are short, asked, "),
        ("python:nope", True, "no function 'nope' in the tools/ folders of the workspace"),
        ("python:judge", False, "'judge' may not run: "),
        ("cascade:nope.yaml", True, "nope.yaml"),
        ("schema:nope.json", True, "nope.json: cannot be read: No such file or directory"),
    ],
)
def test_a_scorer_that_cannot_work_is_refused_before_anything_runs(
    folder: Path, scorer: str, trusted: bool, said: str
) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "judges.py").write_text('def judge(row: dict) -> float:\n    """One."""\n    return 1.0\n')
    validators = '  short: {python: "result = True"}\n  asked: {instructions: Is it so?}\n'
    (folder / "flow.yaml").write_text(FLOW + "validators:\n" + validators)
    if trusted:
        assert run_cli("trust", "--yes").code == 0
    ended = run_cli("batch", "flow.yaml", "-i", "rows.jsonl", "-q", "--score", scorer)
    assert ended.code != 0
    assert said in ended.err + ended.out
    assert Project.at(folder).store.run_ids() == []


def test_a_budget_stops_cleanly_and_the_same_command_goes_on(folder: Path) -> None:
    with Loopback([Reply("good")]) as provider:
        where = ("--base-url", provider.url, "-c", "1")
        body = batch(*where, "--max-cost", "0", code=1)
        assert (body["left"], body["stopped"]) == (3, "the budget of $0.0000 is reached")
        told = run_cli("batch", "flow.yaml", "-i", "rows.jsonl", "-q", *where, "--max-cost", "0.000001").out
        assert "the budget of $0.0000010 is reached" in told
        assert "3 runs left; the same command with a larger --max-cost continues with it" in told
        assert provider.requests == []
        assert batch(*where)["left"] == 0
        assert len(provider.requests) == 3
        store = Project.at(folder).store
        assert len(store.run_ids()) == 1 + 2  # The one that was stopped went on.
        shown = spent_cell(store.runs()[-1].spent)
        assert shown.startswith("~$"), "tokens by a price list, and no bill"
        assert f"{shown} · " in run_cli("batches", body["name"], "--row", "1", "--plain").out


@pytest.mark.parametrize(("settings", "calls"), [((), 5), (("--set", "judge.max_tokens=400"), 4)])
def test_answers_on_their_way_do_not_exceed_the_budget(folder: Path, settings: tuple[str, ...], calls: int) -> None:
    """An answer costs 30 times its request, and 0.003 dollars; 400 tokens cost 0.004."""
    write_rows(folder, [{"review": f"text {number}"} for number in range(12)])
    usage = {"prompt_tokens": 40, "completion_tokens": 300, "total_tokens": 340}
    with Loopback([Reply("good", usage=usage)]) as provider:
        body = batch("--base-url", provider.url, "-c", "6", "--max-cost", "0.016", *settings, code=1)
        assert len(provider.requests) == calls
    assert body["spent"] == pytest.approx(calls * 0.0031)
    assert "the budget of $0.0160 is reached: $0.00" in body["stopped"]


def test_a_first_answer_that_nothing_bounds_is_named_where_it_passes_the_budget(folder: Path) -> None:
    usage = {"prompt_tokens": 40, "completion_tokens": 300, "total_tokens": 340}
    with Loopback([Reply("good", usage=usage)]) as provider:
        where = ("--base-url", provider.url, "--max-cost", "0.001")
        body = batch(*where, code=1)
        assert len(provider.requests) == 1
        spent = "the budget of $0.0010 is reached: $0.0031 are spent"
        assert body["stopped"] == f"{spent}, as 'judge' sets no max_tokens to bound its first answer"
        assert batch(*where, code=1)["stopped"] == spent
        bounded = batch(*where, "--set", "judge.max_tokens=400", code=1)
        assert len(provider.requests) == 1
    assert "$0.0010 are left, the next call may cost ~$0.0040" in bounded["stopped"]


def test_a_run_that_the_budget_stopped_inside_of_another_counts_its_calls_once(folder: Path) -> None:
    (folder / "flow.yaml").write_text("""\
cascade_id: flow
inputs_schema: {review: a text}
phases:
  - name: judge
    model: openai/gpt-4o
    instructions: Sum up.
    sub_cascades: [{ref: child.yaml, input_map: {review: review}}]
""")
    steps = [f"{{name: {name}, model: openai/gpt-4o, instructions: '{name}: {{{{ input.review }}}}'}}" for name in "ab"]
    (folder / "child.yaml").write_text(f"cascade_id: child\nphases: [{', '.join(steps)}]\n")
    write_rows(folder, ROWS[:1])
    usage = {"prompt_tokens": 40, "completion_tokens": 300, "total_tokens": 340}
    with Loopback([Reply("good", usage=usage)]) as provider:
        where = ("batch", "flow.yaml", "-i", "rows.jsonl", "--json", "--base-url", provider.url, "--max-cost")
        first = run_cli(*where, "0.001")
        assert first.out, first.err
        assert (len(provider.requests), first.json["left"]) == (1, 1)
        second = run_cli(*where, "0.02")
        assert second.json["left"] == 0, second.err + second.out
        assert len(provider.requests) == 3
    assert "1 run ended, 2 calls" in second.err
    assert second.json["spent"] == pytest.approx(3 * 0.0031)
    state = Project.at(folder).store.state(second.json["results"][0]["run"])
    (child,) = state.visits[0].children
    assert (child["status"], state.figures().calls) == ("success", 3)


def test_a_budget_is_asked_for_each_of_runs_that_go_on_side_by_side(folder: Path) -> None:
    (folder / "flow.yaml").write_text("""\
cascade_id: flow
inputs_schema: {review: a text}
phases:
  - {name: raw, tool: sql_data, inputs: {query: "SELECT * FROM (VALUES (1), (2), (3)) AS t(n)"}}
  - {name: each, for_each_row: {table: _raw, instructions: "Row {{ row.n }}", max_parallel: 3}}
""")
    write_rows(folder, ROWS[:1])
    with Loopback([Reply("good")]) as provider:
        body = batch("--base-url", provider.url, "-m", "openai/gpt-4o", "--max-cost", "1", "--set", "max_tokens=9")
        assert len(provider.requests) == 3
    assert body["stopped"] == ""


def test_a_batch_that_was_killed_goes_on_where_it_stopped(folder: Path) -> None:
    slow = REPLIES.replace("    - text: bad", "    - latency: 600\n      text: bad")
    (folder / "flow.replies.yaml").write_text(slow)
    command = [*WORKBENCH, "batch", "flow.yaml", "-i", "rows.jsonl", "-q", "--processes", "2"]
    store = Project.at(folder).store

    def asked() -> bool:
        return sum(event.kind == "call_started" for run in store.run_ids() for event in store.events(run)) == len(ROWS)

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder) as running:
        try:
            until(asked, "the calls of all rows")
            until(lambda: any(run.status == "success" for run in store.runs()), "the first row")
        finally:
            running.kill()
            running.wait()
            until(lambda: not any(map(store.writer, store.run_ids())), "the end of its processes")
    runs = store.run_ids()
    before = {run: list(store.events(run)) for run in runs}
    (folder / "flow.replies.yaml").write_text(REPLIES)
    body = batch()
    assert [one["output"] for one in body["results"]] == ["good", "bad", "bad"]
    assert store.run_ids() == runs
    for one in body["results"]:
        events = list(store.events(one["run"]))
        assert sum(event.kind == "call_finished" for event in events) == 1
        assert (events == before[one["run"]]) == (one["row"] == 1), "the first had ended, the others went on"


@pytest.mark.parametrize("processes", [pytest.param("1", marks=pytest.mark.proof), "2"])
def test_ctrl_c_begins_no_further_row_and_takes_the_answers_on_their_way(folder: Path, processes: str) -> None:
    write_rows(folder, [{"review": f"review {number}"} for number in range(6)])
    asked, held = threading.Semaphore(0), threading.Event()

    def answer(request: Received) -> Reply:
        asked.release()
        held.wait(PATIENCE)
        return Reply("good")

    with Loopback(answer) as provider:
        command = [*WORKBENCH, "batch", "flow.yaml", "-i", "rows.jsonl", "--json", "--base-url", provider.url]
        command += ["-c", "2", "--processes", processes]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, text=True) as one:
            assert one.stderr is not None
            try:
                for _ in range(2):
                    assert asked.acquire(timeout=PATIENCE)
                one.send_signal(signal.SIGINT)
                assert any("Ctrl+C again" in line for line in one.stderr)  # It is told before the answers come.
            finally:
                held.set()
            out, _ = one.communicate(timeout=PATIENCE)
        assert one.returncode == 130
        body = json.loads(out)
        assert (body["left"], body["stopped"]) == (4, "stopped by Ctrl+C")
        assert len(provider.requests) == 2
        assert batch("--base-url", provider.url)["left"] == 0
        assert len(provider.requests) == 6


def test_a_query_keeps_its_rows_so_runs_of_the_batch_never_become_rows_of_it(folder: Path) -> None:
    batch()
    asked = ("batch", "flow.yaml", "--json", "-q", "--processes", "1", "--sql", "SELECT output AS review FROM runs")
    store = Project.at(folder).store

    def rows(*options: str) -> int:
        ended = run_cli(*asked, *options)
        assert ended.code == 0, ended.err
        return len(ended.json["results"])

    assert (rows("--limit", "9"), len(store.run_ids())) == (3, 6)
    assert (rows("--score", "regex:bad"), len(store.run_ids())) == (3, 6)
    assert "batch takes the 3 rows that it had" in run_cli(*(one for one in asked if one != "-q")).err
    assert (rows("--limit", "2"), len(store.run_ids())) == (2, 6)
    assert (rows("--name", "other", "--limit", "4"), len(store.run_ids())) == (4, 10)


def test_each_scorer_that_gives_no_score_says_why(folder: Path) -> None:
    ended = run_cli(
        "batch", "flow.yaml", "-i", "rows.jsonl", "-q", "--score", "exact:title", "--score", "b=exact:place"
    )
    assert ended.code == 0, ended.err
    told = [line for line in ended.out.splitlines() if "3 outputs without a score; row 1 (ines):" in line]
    assert [line.split(":")[0] for line in told] == ["exact", "b"]
    assert "'title'" in told[0]
    assert "'place'" in told[1]


def test_a_row_whose_request_has_left_lets_the_next_one_begin(folder: Path) -> None:
    write_rows(folder, [{"review": f"review {number}"} for number in range(20)])
    together = threading.Barrier(20)

    def answer(request: Received) -> Reply:
        together.wait(PATIENCE)
        return Reply("good")

    with Loopback(answer) as provider:
        assert batch("--base-url", provider.url, "-c", "20", "--processes", "1")["left"] == 0


def test_frozen_rows_replay_without_a_call(folder: Path) -> None:
    batch("--freeze", "reviews", "--score", "exact")
    replayed = run_cli("test", "run", "--json")
    assert replayed.code == 0, replayed.err
    assert sorted(path.stem for path in (folder / "snapshots").glob("*.json")) == [f"reviews-r{n}" for n in (1, 2, 3)]


# -- several processes -------------------------------------------------------------------------------------------------


DEADLY_ALONE = """\
import os, signal, time
from pathlib import Path

def deadly(row: dict) -> float:
    \"""Ends its process: once for tom, each time for farid, whose first time waits for the second one of ines.\"""
    folder = Path(__file__).parent
    again = (folder / row["id"]).exists()
    (folder / row["id"]).write_text(str(os.getpid()))

    def wait_for(name: str) -> int:
        while not (folder / name).exists() or not (folder / name).read_text():
            time.sleep(0.01)
        return int((folder / name).read_text())

    def wait_for_end(pid: int) -> None:
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.01)

    if row["id"] == "tom" and not again:
        wait_for("ines")
        os.kill(os.getpid(), signal.SIGKILL)
    if row["id"] == "ines":
        (folder / "twice").write_text("1" if again else "")
        wait_for_end(wait_for("farid"))
    if row["id"] == "farid":
        wait_for("twice")
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0
"""


def test_a_row_that_goes_on_alone_is_not_blamed_for_one_that_ends_its_process_meanwhile(folder: Path) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "judges.py").write_text(DEADLY_ALONE)
    write_rows(folder, [ROWS[1], ROWS[0], ROWS[2]])
    assert run_cli("trust", "--yes").code == 0
    command = [*WORKBENCH, "batch", "flow.yaml", "-i", "rows.jsonl", "--json", "--processes", "1", "-c", "2"]
    ended = subprocess.run(
        [*command, "--score", "python:deadly"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    results = json.loads(ended.stdout)["results"]
    assert [one["score_deadly"] for one in results] == [1, 1, None], results
    assert "ended twice" in results[2]["reason_deadly"]


def test_rows_go_on_in_another_process_where_one_is_lost(folder: Path) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "judges.py").write_text(
        "import os, signal\nfrom pathlib import Path\n\n"
        'def deadly(row: dict) -> float:\n    """Ends its process: once for tom, each time for farid."""\n'
        '    marker = Path(__file__).with_name(row["id"])\n'
        '    if row["id"] == "farid" and marker.exists():\n'
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        '    if row["id"] in ("tom", "farid") and not marker.exists():\n'
        '        marker.write_text("")\n'
        "        os._exit(3)\n"
        "    return 1.0\n"
    )
    # The first process that takes the place of another one ends before it has read the job, which fills a pipe.
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        "import os, sys\nfrom pathlib import Path\n\n"
        "def die_once() -> None:\n"
        '    marker = Path(__file__).with_name("died")\n'
        "    if not marker.exists():\n"
        '        marker.write_text("")\n'
        "        os._exit(5)\n\n"
        'if any("forkserver" in argument for argument in sys.orig_argv):\n'
        "    os.register_at_fork(after_in_child=die_once)\n"
    )
    write_rows(folder, [row | {"more": "x" * 40_000} for row in ROWS])
    assert run_cli("trust", "--yes").code == 0
    command = [*WORKBENCH, "batch", "flow.yaml", "-i", "rows.jsonl", "--json", "--processes", "2"]
    ended = subprocess.run(
        [*command, "--score", "python:deadly"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "site")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (folder / "site" / "died").exists()
    body = json.loads(ended.stdout)
    assert [one["status"] for one in body["results"]] == ["success"] * 3, ended.stderr
    assert [one["score_deadly"] for one in body["results"]] == [1, 1, None]
    assert "ended twice" in body["results"][2]["reason_deadly"]
    assert "SIGKILL" in body["results"][2]["reason_deadly"]
    assert "of the batch ended (exit code 3); another one continued its rows" in ended.stderr
    assert len(Project.at(folder).store.run_ids()) == 3


def test_a_tool_and_a_scorer_that_end_their_process_cost_their_rows_alone(folder: Path) -> None:
    """In a small batch too, whose rows one process runs."""
    (folder / "tools").mkdir()
    (folder / "tools" / "tools.py").write_text(
        "import os\nfrom workbench import register_tackle\n\n"
        'def deadly(word: str) -> str:\n    """Ends its process for one word."""\n'
        '    if word == "great":\n        os._exit(3)\n    return word\n\n'
        'register_tackle("deadly", deadly, side_effects=False)\n'
    )
    (folder / "tools" / "judges.py").write_text(
        'import os\n\ndef judge(row: dict) -> float:\n    """Ends its process for tom."""\n'
        '    if row["id"] == "tom":\n        os._exit(4)\n    return 1.0\n'
    )
    (folder / "flow.yaml").write_text(FLOW + "    tackle: [deadly]\n    rules: {max_turns: 3}\n")
    (folder / "flow.replies.yaml").write_text(
        "replies:\n  judge:\n"
        "    - {when: great, calls: [{tool: deadly, arguments: {word: great}}]}\n"
        "    - {calls: [{tool: deadly, arguments: {word: other}}]}\n    - {text: bad}\n"
    )
    assert run_cli("trust", "--yes").code == 0
    command = [*WORKBENCH, "batch", "flow.yaml", "-i", "rows.jsonl", "--json", "--score", "python:judge"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    found = {one["name"]: one for one in json.loads(ended.stdout)["results"]}
    statuses = {name: one["status"] for name, one in found.items()}
    assert statuses == {"ines": "failed", "tom": "success", "farid": "success"}, ended.stderr
    assert "ended twice" in found["ines"]["reason"]
    assert "exit code 3" in found["ines"]["reason"]
    assert {name: one["score_judge"] for name, one in found.items()} == {"ines": 0, "tom": None, "farid": 1}
    assert "ended twice" in found["tom"]["reason_judge"]
    assert "exit code 4" in found["tom"]["reason_judge"]
    assert "of the batch ended (exit code " in ended.stderr


@pytest.mark.parametrize("processes", ["1", "2"])
def test_spans_that_cannot_be_sent_are_told_once(folder: Path, monkeypatch: pytest.MonkeyPatch, processes: str) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", f"by pigeon {processes}")
    ended = run_cli("batch", "flow.yaml", "-i", "rows.jsonl", "-q", "--processes", processes)
    assert ended.err.count("the protocol by pigeon") == 1, ended.err


# -- money, and rows that all fail -------------------------------------------------------------------------------------


def test_rows_that_are_repeated_stay_in_the_sum_and_in_the_budget(folder: Path) -> None:
    (folder / "flow.yaml").write_text(FLOW + "    output_schema: {type: object}\n    rules: {max_attempts: 1}\n")
    with Loopback([*[Reply("bad")] * 3, Reply('{"verdict": "good"}')]) as provider:
        where = ("--base-url", provider.url, "-c", "1", "--score", "exact")
        first = batch(*where, code=1)
        assert [one["status"] for one in first["results"]] == ["failed"] * 3
        assert [one["score_exact"] for one in first["results"]] == [0] * 3, "the mean counts them, so files show them"
        assert first["variants"][0]["scores"] == {"exact": {"mean": 0, "rows": 3}}
        refused = batch(*where, "--retry", "--max-cost", f"{first['spent']:.9f}", code=1)
        assert "budget" in refused["stopped"]
        assert len(provider.requests) == 3
        second = batch(*where, "--retry")
    assert [one["status"] for one in second["results"]] == ["success"] * 3
    shown = sum(one["cost"] for one in second["results"])
    assert shown > 0
    assert second["spent"] == pytest.approx(first["spent"] + shown)
    assert second["repeated"] == pytest.approx(first["spent"])
    assert "in all" in run_cli("batches", second["name"]).out


def test_scoring_runs_are_held_by_the_budget_too(folder: Path) -> None:
    (folder / "judge.yaml").write_text(
        "cascade_id: judge\nphases: [{name: p, model: openai/gpt-4o, instructions: 'Rate {{ input.content }}'}]\n"
    )
    with Loopback([Reply("1")]) as provider:
        where = ("--base-url", provider.url, "-c", "1")
        first = batch(*where)
        body = batch(*where, "--score", "cascade:judge.yaml", "--max-cost", f"{first['spent'] + 1e-9:.12f}")
        assert len(provider.requests) == 3
        assert "budget" in body["stopped"]
        scored = batch(*where, "--score", "cascade:judge.yaml")
        assert len(provider.requests) == 6
        dropped = batch(*where, "--score", "exact")
        again = batch(*where, "--score", "cascade:judge.yaml")
        assert len(provider.requests) == 6, "the scoring runs of before are there"
    assert {one["score_judge"] for one in scored["results"]} == {1}
    assert scored["spent"] > first["spent"]
    assert dropped["spent"] == again["spent"] == pytest.approx(scored["spent"]), "they were paid for once"
    assert again["repeated"] == pytest.approx(0)


def test_a_batch_whose_first_rows_all_fail_alike_stops_and_says_why(folder: Path) -> None:
    write_rows(folder, [{"id": f"r{number}", "review": f"text {number}"} for number in range(14)])
    (folder / "flow.replies.yaml").write_text("replies: {}\n")
    body = batch("-c", "2", code=1)
    counts = Counter(one["status"] for one in body["results"])
    assert counts["failed"] in (10, 11)
    assert "the first 10 rows all failed alike" in body["stopped"]
    assert body["left"] == 14 - counts["failed"]
    assert batch("--retry", "--unscripted", "ok")["left"] == 0
    write_rows(folder, [{"id": f"r{number}", "review": f"other {number}"} for number in range(14)])
    assert batch("--keep-going", code=1)["left"] == 0


def test_what_an_answer_cost_beyond_its_request_is_kept_free_for_the_next_of_its_kind() -> None:
    budget, call = Budget(1.0), MayCost("m", "p", 0.1, None)
    assert budget.refusal(call, 0.0) == ""
    budget.left("1", "p", call)
    assert budget.refusal(call, 0.0) is None, "nothing is known of the first answer yet"
    budget.came_back("1", "p", 0.5)
    assert budget.refusal(call, 0.5) == "", "0.1 for the request and 0.4 for the answer, as the first took"
    refused = budget.refusal(call, 0.51)
    assert refused is not None
    assert refused.endswith("the next call may cost ~$0.5000")
