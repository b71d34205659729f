"""The parts of a batch as wholes: what inputs, rows, variants, scores, results and training data come to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from tests.support.stored import check_stored
from tests.ui.test_candidates import contested
from workbench.analysis.batch.grid import GridError, setting_of, variants_of, written
from workbench.analysis.batch.matrix import BatchPlan, Matrix, PlannedVariant, folded
from workbench.analysis.batch.paired import paired
from workbench.analysis.batch.rows import InputRow, cell_key, row_of, session_names
from workbench.analysis.batch.scoring import Scorer, ScorerError, checked_schema, read_score, score
from workbench.workspace.batch.inputs import InputsError, changed_since, read_inputs
from workbench.workspace.training_data import FORMS, Sample, samples_of, training_data

STORED = Path(__file__).parent / "stored"


def check(name: str, lines: Iterator[str]) -> None:
    check_stored(STORED / f"batch-{name}.txt", "\n".join(lines) + "\n")


def told(value: Any) -> str:
    """A value as JSON, of a struct the fields that say something."""
    body = to_builtins(value)
    if isinstance(body, dict):
        body = {key: one for key, one in body.items() if one not in ("", None, {}, [], 0) or key == "value"}
    return json.dumps(body, ensure_ascii=False)


# -- scores ------------------------------------------------------------------------------------------------------------

SPECS = """\
exact|exact:wanted|mine=exact| mine = exact : wanted |regex|regex:^a|regex:(|schema|schema:forms/answer.schema.json
schema:a\\b.json|validator|validator:short|cascade|cascade:judges/judge.yaml|cascade:.yaml|python:own.mark|python|person
other|other:x|a=b=exact||=exact|person:Ada"""
ANSWERS: tuple[Any, ...] = (
    *(1, 0.5, True, False, float("nan"), float("inf"), None, [], [1], "", "yes", "0.75", " true ", '"a text"', "NaN"),
    *({"score": 3, "reason": "good"}, {"valid": False}, {"score": "3", "valid": True}, {"score": None}, {}),
    *('{"score": 0.5, "reason": null}', '```json\n{"valid": true, "reason": "it fits"}\n```', "so {half", "x" * 130),
    *({"score": float("inf"), "valid": True}, {"reason": "none"}, '[{"score": 1}]', "```\n7\n```"),
)
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
OUTPUTS = ('{"a": [1]}', '{"a": [1, "x"]}', "{}", "[]", "none", '```json\n{"a": []}\n```', '{"a": "' + "x" * 400 + '"}')
WANTED: tuple[Any, ...] = ("Hello", " Hello\n", "hello", {"b": 1, "a": 2}, [1, 2], 7, None, True)
GIVEN = ("Hello", " Hello ", '{"a": 2, "b": 1}', "```json\n[1, 2]\n```", "7", "7.0", "true", "{")
SCHEMAS = ("{}", "[]", "{", '{"type": 3}', '{"properties": {"a": {"type": "none"}}}', '{"required": ["a"]}')


def scored() -> Iterator[str]:
    for spec in SPECS.replace("\n", "|").split("|"):
        try:
            found = Scorer.parse(spec)
            yield f"{spec}: {told(found)} as {found.spec}"
        except ScorerError as fault:
            yield f"{spec}: {fault}"
    for answer in ANSWERS:
        yield f"answer {answer!r}: {told(read_score(answer))}"
    for output in OUTPUTS:
        yield f"schema, {output[:40]!r}: {told(score(Scorer('schema', 'f'), output, InputRow(1), SCHEMA))}"
    for wanted in WANTED:
        row = InputRow(1, columns={"expected": wanted, "other": "Hello"})
        values = [told(score(Scorer("exact"), given, row)) for given in GIVEN]
        yield f"wanted {wanted!r}: {' '.join(values)}"
        yield f"  another column: {told(score(Scorer('exact', 'other'), 'Hello', row))}"
    yield f"no column: {told(score(Scorer('exact', 'gone'), 'Hello', InputRow(1)))}"
    for pattern in ("^hel+o$", "b.c", "x"):
        values = [told(score(Scorer("regex", pattern), text, InputRow(1))) for text in ("HELLO", "a b\nc")]
        yield f"/{pattern}/: {values}"
    for text in SCHEMAS:
        try:
            yield f"{text[:50]}: {told(checked_schema(text, 'f.json'))}"
        except ScorerError as fault:
            yield f"{text[:50]}: {fault}"


def test_scorers_and_what_they_say_are_the_stored_ones() -> None:
    check("scores", scored())


def test_a_pattern_that_would_search_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.analysis.batch.scoring._MATCH_S", 0.01)
    found = score(Scorer("regex", "^(a|aa)+$"), "a" * 60 + "!", InputRow(1))
    assert (found.value, found.fault) == (None, "the regular expression took longer than 0.01 s")


# -- rows and variants -------------------------------------------------------------------------------------------------

RECORDS: tuple[Any, ...] = (
    {"who": "Ada", "when": "now", "id": "a-1", "expected": "Hi"},
    {"who": "Ada"},
    {"who": "Ada", "when": None},
    {"who": None, "when": None, "name": " Bob "},
    {"input": {"who": "Ada", "when": "now"}, "id": 7},
    {"input": {"who": "Ada", "when": "now", "where": "here"}},
    {"input": "Ada", "who": "a", "when": "b"},
    {"who": float("inf"), "when": [1.5, float("-inf"), {"a": float("inf")}]},
    {},
    *([], [1], "a text", None, 3, 1.5, True),
    {f"column {number}": number for number in range(10)},
)
SETTINGS = """\
model=a|model=[a,b]|model=|model=[]|model=[a|=a|a|.b=1|a..b=1|input.n=3|p.rules.max_turns=[1, 2]|x='a text'|x="a, b"
x=[[1, 2], {"a": 3}, (b, c), 'd, e', "f]"]|x={"a": [1, 2]}|x=[true, null, 1.5, tru]|x= a = b |x=[a,,b]"""
FILES = ("a.yaml", "b.yaml")


def planned() -> Iterator[str]:
    for record in RECORDS:
        for declared in (("who", "when"), ()):
            row = row_of(3, "rows.jsonl:3", record, declared)
            yield f"{str(record)[:70]} for {declared}: {told(row)} {row.name!r} {row.label!r} {row.expected!r}"
    for ids in (["a", "b"], ["a", "A"], ["a.b", "c"], ["r1", "x"], ["r1", "r2"], ["", "x"], ["x" * 41, "y" * 40]):
        rows = [InputRow(number, columns={"id": id}) for number, id in enumerate(ids, 1)]
        yield f"{ids}: {session_names(rows, by_id=True)} {session_names(rows, by_id=False)}"
    for text in SETTINGS.replace("\n", "|").split("|"):
        try:
            yield f"{text}: {setting_of(text)}"
        except GridError as fault:
            yield f"{text}: {fault}"
    grids: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
        (("a.yaml",), (), ()),
        (("a.yaml",), ("model=m", "input.n=1"), ("mask",)),
        (FILES, ("model=[m,n]", "model=[n,o]", "p.x=1"), ()),
        (("a.yaml", "a.yaml"), ("input.n=[1,2]",), ("mask", "slide", "mask")),
    )
    for grid in grids:
        for one in variants_of(*grid):
            yield f"{grid}: {told(one)} {written(one.settings, True)} {written(one.settings, False)}"
    keys = {cell_key("d", {"m": 1}, {"a": 1, "b": 2}), cell_key("d", {"m": 1}, {"b": 2, "a": 1})}
    others = [cell_key("e", {"m": 1}, {}), cell_key("d", {}, {}), cell_key("d", {}, {}, 1), cell_key("d", {}, {}, 2)]
    yield f"keys {sorted(keys)} {others}"


def test_rows_and_variants_are_the_stored_ones() -> None:
    check("rows", planned())


INPUTS: dict[str, str | bytes] = {
    "a.jsonl": '{"a": 1}\n\n{"a": 2}\n[3]\n{"a": \n{"a": NaN}\n"four"\n',
    "b.json": '[\n {"a": 1},\n\n {"a": [1,\n 2]}, {"a": 3}\n]\n',
    "c.json": '{"a": 1}\n{"a": 2}\n',
    "d.json": '{"a": 1}',
    "e.json": '{\n"a": 1}',
    "f.json": '[{"a": 1},',
    "g.json": "[NaN]",
    "h.json": "[]",
    "i.json": '{"a": ',
    "j.ndjson": '[{"a": 1}, {"a": 2}]',
    "k.ndjson": "[1]\n[2]\n",
    "l.csv": 'a, b ,c\n1,"two\nlines",3\n\n4,5\n6,7,"8"\n',
    "m.csv": "a,a\n1,2\n",
    "n.csv": "",
    "o.csv": 'a,b\n1,"2"3\n4,5\n',
    "p.csv": '"a"b,c\n',
    "q.tsv": "a\tb\n1\t2,3\n",
    "r.csv": "a,b\n",
    "s.txt": "a",
    "t.jsonl": b'{"a": 1}\n{"a": "\xff"}\n',
    "u.JSONL": '\ufeff{"a": 1}\n',
    "v.parquet": "no table",
}


def test_records_of_files_are_the_stored_ones(tmp_path: Path) -> None:
    def records() -> Iterator[str]:
        for name, data in INPUTS.items():
            file = tmp_path / name
            file.write_bytes(data if isinstance(data, bytes) else data.encode())
            for limit in (None, 1):
                try:
                    found = read_inputs(file, name, limit)
                except InputsError as fault:
                    yield f"{name}: {str(fault).partition('can be read:')[0]}"
                    break
                yield from (f"{where} of {limit}: {told(record)}" for where, record in found.found)
                assert not changed_since(file, found.digest)
        file.write_text("")
        assert changed_since(file, found.digest)
        assert changed_since(tmp_path / "gone", found.digest)
        for gone in (tmp_path / "gone.csv", tmp_path):
            with pytest.raises(InputsError) as refused:
                read_inputs(gone, "gone.csv" if gone != tmp_path else "folder")
            yield str(refused.value)

    check("inputs", records())


def test_records_of_a_table_have_values_of_json(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"b": [b"\xffa", None], "f": [float("nan"), 1.5], "l": [[1, 2], None], "s": [{"x": 1}, {"x": None}]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    found = read_inputs(tmp_path / "t.parquet", "t.parquet").found
    assert found == (
        ("t.parquet, row 1", {"b": "\ufffda", "f": None, "l": [1, 2], "s": {"x": 1}}),
        ("t.parquet, row 2", {"b": None, "f": 1.5, "l": None, "s": {"x": None}}),
    )


# -- results -----------------------------------------------------------------------------------------------------------

LOG: tuple[dict[str, Any], ...] = (
    {"kind": "begun", "cell": "a", "run": "r1", "session": "s1"},
    {"kind": "ended", "cell": "a", "result": {"status": "success", "run": "r1", "cost": 0.5, "spent": 0.5}},
    {"kind": "judging", "cell": "a", "scorer": "judge", "run": "j1", "by": "d1"},
    {"kind": "scored", "cell": "a", "scorer": "judge", "score": {"value": 0.25, "cost": 0.125, "run": "j1"}},
    {"kind": "unscored", "cell": "a", "scorer": "judge"},
    {"kind": "unscored", "cell": "a", "scorer": "gone"},
    {"kind": "scored", "cell": "a", "scorer": "judge", "score": {"value": 0.75, "cost": 0.125, "run": "j1"}},
    {"kind": "scored", "cell": "a", "scorer": "judge", "score": {"value": 1.0, "cost": 0.5, "run": "j2"}},
    {"kind": "scored", "cell": "a", "scorer": "exact", "score": {"value": 0.0, "reason": "no"}},
    {"kind": "begun", "cell": "a", "run": "r2"},
    {"kind": "ended", "cell": "a", "result": {"status": "failed", "reason": "it fell", "run": "r2", "predicted": 0.25}},
    {"kind": "scored", "cell": "b", "scorer": "exact", "score": {"value": 1.0}},
    {"kind": "later", "cell": "c"},
    {"kind": "ended", "cell": "d", "result": {"status": "success", "spent": 1.0, "unpriced": True, "seconds": 2.0}},
)  # fmt: skip


def results() -> Iterator[str]:
    for number in range(1, len(LOG) + 1):
        found = folded(LOG[:number])
        facts = {key: (one.all_spent, one.without_price, one.tokens) for key, one in found.items()}
        yield f"{LOG[number - 1]['kind']}: {told(found)} {facts}"
    split = folded(LOG[5:], folded(LOG[:5]))
    yield f"in two parts: {split == folded(LOG)}"
    rows = (InputRow(1), InputRow(2, fault="no input"), InputRow(3))
    variants = (PlannedVariant("a", "c.yaml"), PlannedVariant("b", "c.yaml"))
    cells = {"a": (0, 0, 0), "d": (0, 0, 1), "e": (0, 1, 0), "f": (2, 0, 0)}
    plan = BatchPlan(
        "n", "rows", rows, variants, cells, 2, (Scorer("exact", "", "exact"), Scorer("person", "", "person"))
    )
    assert BatchPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    matrix = Matrix(plan, folded(LOG))
    yield f"counts {matrix.counts}, left {matrix.left}, spent {matrix.spent}, repeated {matrix.repeated}"
    for variant in (0, 1):
        yield told(matrix.totals(variant))
        names = ("cost", "tokens", "seconds", "exact", "gone")
        yield f"values {[(name, matrix.values(variant, name)) for name in names]}"
    for row, variant, number, one in matrix.all():
        yield f"{row} {variant} {number}: {one.status} {told(matrix.scores(one))}"
    yield f"compared {matrix.compare(0, 1, 'exact')} {matrix.compare(0, 0, 'exact')}"
    a = {row: row % 3 / 2 for row in range(12)}
    for b in ({row: row % 4 / 3 for row in range(2, 14)}, {row: a[row] + 1 for row in a}, {0: 1.0, 1: 0.0}, {99: 1.0}):
        for seed in (0, 7):
            one_ = paired(a, b, seed)
            yield f"paired {told(one_)} {one_ and (one_.equal, one_.differs)}"


def test_results_and_sums_are_the_stored_ones() -> None:
    check("results", results())


def samples() -> list[Sample]:
    ask, other = ({"role": "user", "content": text} for text in ("Hi", "Ho"))
    parts = {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image_url"}, {"type": "text"}]}
    said = [{"role": "assistant", "content": text} for text in ("one", "two", "", "key-1234")]
    called = {"role": "assistant", "content": "I look", "tool_calls": [{"id": "1"}]}
    tool = {"type": "function", "function": {"name": "look"}}
    return [
        Sample("r1", "p", (ask,), said[0], (), 1.0),
        Sample("r2", "p", (ask,), said[1], (), 0.0),
        Sample("r3", "p", (ask,), said[0], (), 1.0),
        Sample("r4", "p", (ask,), said[1], (), None),
        Sample("r5", "p", (ask, parts), called, (tool,), 0.5),
        Sample("r6", "p", (parts,), said[2], (), 0.5),
        Sample("r7", "p", (other,), said[0], (tool,), None, "c1", True),
        Sample("r8", "p", (other,), said[1], (tool,), None, "c1", False),
        Sample("r9", "p", (other,), said[0], (tool,), None, "c1", False),
        Sample("r10", "p", (other,), said[3], (), 0.75),
    ]


def trained() -> Iterator[str]:
    def redact(text: str) -> tuple[str, int]:
        return text.replace("key-1234", "<secret>"), text.count("key-1234")

    found = samples()
    found.extend(samples_of(contested().state, {}, None))
    for form in FORMS:
        for least in (None, 0.5, 1.0):
            made = training_data(found, form, redact, least=least)
            yield f"{form}, {least}: {len(made.documents)}, {made.replaced} replaced, {dict(made.left_out)}"
            yield from (f"  {json.dumps(one, ensure_ascii=False)}" for one in made.documents if least == 0.5)


def test_training_data_is_the_stored_one() -> None:
    check("training", trained())
    with pytest.raises(ValueError, match="there is no form 'other': "):
        training_data([], "other", lambda text: (text, 0))
