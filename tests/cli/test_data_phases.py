"""Phases that are a query or a program: what they see, what later phases see of them, and what a replay repeats."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Cli
from workbench.tools.sandbox.limits import PATH

SALES = """\
cascade_id: sales
inputs_schema: {least: smallest amount}
phases:
  - name: raw
    tool: sql_data
    inputs:
      query: |
        SELECT * FROM (VALUES (1, 'ann', 10.5), (2, 'bob', 20), (3, 'cat', NULL)) AS t(id, name, amount)
        WHERE id >= {{ input.least }}
"""


def phase(name: str, tool: str, **inputs: Any) -> dict[str, Any]:
    return {"name": name, "tool": tool, "inputs": inputs}


def cascade(*phases: dict[str, Any], **more: Any) -> str:
    return json.dumps({"cascade_id": "c", **more, "phases": list(phases)})


ROWS = phase(
    "raw", "python_data", code="result = [dict(id=1, name='ann', amount=10), dict(id=2, name='bob', amount=20)]"
)


def ran(cli: Cli, text: str, *arguments: str) -> Any:
    """The output of a run, as JSON."""
    Path("c.json").write_text(text)
    ended = cli("run", "c.json", "-m", "offline", "-q", *arguments)
    assert ended.code == 0, ended.err
    return ended.json


def failed(cli: Cli, text: str) -> str:
    """Why a run failed."""
    Path("c.json").write_text(text)
    ended = cli("run", "c.json", "-m", "offline", "-q")
    assert ended.code == 1
    return ended.err


def test_rows_keep_their_types_and_the_input_is_rendered(cli: Cli) -> None:
    Path("sales.yaml").write_text(SALES)
    made = cli("run", "sales.yaml", "-m", "offline", "-q", "--input", '{"least": 2}').json
    assert made["rows"] == [{"id": 2, "name": "bob", "amount": 20.0}, {"id": 3, "name": "cat", "amount": None}]
    assert (made["columns"], made["row_count"], made["_route"]) == (["id", "name", "amount"], 2, "success")


def test_python_sees_a_table_as_a_data_frame_and_sql_sees_what_it_makes_and_the_lists_inside_it(cli: Cli) -> None:
    code = "df = data.raw\ndf['double'] = df['amount'] * 2\nresult = df"
    people = "[{'name': 'ann', 'tags': ['a']}, {'name': 'bob', 'tags': []}]"
    nested = f"result = {{'n': 2, 'people': {people}, 'one': {{'k': \"it's\"}}}}"
    query = "SELECT n, name, double, len(tags) AS tags, k FROM _made, _made_one, _made_people JOIN _more USING (name)"
    made = ran(
        cli,
        cascade(
            ROWS,
            phase("more", "python_data", code=code),
            phase("made", "python_data", code=nested),
            phase("ask", "sql_data", query=f"{query} ORDER BY name"),
        ),
    )
    assert made["rows"] == [
        {"n": 2, "name": "ann", "double": 20, "tags": 1, "k": "it's"},
        {"n": 2, "name": "bob", "double": 40, "tags": 0, "k": "it's"},
    ]


def test_later_phases_see_the_tables_that_a_query_made_and_changed(cli: Cli) -> None:
    make = "CREATE TEMP TABLE _known AS SELECT 'ann' AS name; UPDATE _raw SET amount = 5 WHERE id = 1; SELECT 1 AS n"
    query = "SELECT name, amount FROM _known JOIN _raw USING (name)"
    made = ran(
        cli,
        cascade(
            ROWS,
            phase("make", "sql_data", query=make),
            phase("joined", "sql_data", query=query),
            phase("code", "python_data", code="result = [data.joined.iloc[0].to_dict() | {'n': len(data.known)}]"),
        ),
    )
    assert made["rows"] == [{"name": "ann", "amount": 5, "n": 1}]


def test_code_knows_state_input_session_and_phase(cli: Cli) -> None:
    keep = {"name": "keep", "tool": "set_state", "inputs": {"key": "k", "value": "v {{ input.a }}"}}
    code = "result = [state['k'], input['a'], session_id, phase, data.list_available()]"
    made = ran(cli, cascade(keep, phase("look", "python_data", code=code)), "--input", '{"a": "x"}', "--session", "s1")
    assert made["result"] == ["v x", "x", "s1", "look", ["keep"]]


@pytest.mark.skipif(shutil.which("node", path=PATH) is None, reason="node is not installed")
def test_javascript_sees_an_array_of_objects(cli: Cli) -> None:
    code = "const big = data.raw.filter(r => r.amount > 10);\nresult = big.map(r => ({ ...r, by: input.a }));"
    made = ran(cli, cascade(ROWS, phase("js", "js_data", code=code)), "--input", '{"a": 1}')
    assert made["rows"] == [{"id": 2, "name": "bob", "amount": 20, "by": 1}]
    wrong = failed(cli, cascade(phase("js", "js_data", code="const a = 1;\nnope();\nresult = a;")))
    assert "line 2: ReferenceError: nope is not defined" in wrong


def test_bash_reads_the_latest_table_and_keeps_variables_and_functions_for_the_next(cli: Cli) -> None:
    first = 'export WHO=ada\nhi() { echo "hi $1"; }\nmkdir -p d && cd d\ncat'
    second = 'echo "who,said,at"\necho "$WHO,$(hi you),$(basename "$PWD")"'
    one, two = phase("one", "bash_data", script=first), phase("two", "bash_data", script=second)
    three = phase("three", "bash_data", script=second)
    assert ran(cli, cascade(ROWS, one, two, three))["rows"] == [{"who": "ada", "said": "hi you", "at": "d"}]
    script = 'echo "{\\"who\\": \\"$WHO\\"}"'
    alone = phase("two", "bash_data", script=script, output_format="jsonl", persist_session="false")
    assert ran(cli, cascade(ROWS, one, alone))["rows"] == [{"who": ""}]
    copied = phase("copy", "bash_data", script="cat", input_table="_raw")
    assert ran(cli, cascade(ROWS, copied))["rows"][0] == {"id": 1, "name": "ann", "amount": 10}


def test_a_missing_interpreter_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.tools.builtin.data.PATH", "/nowhere")
    for tool, program in (("js_data", "node"), ("clojure_data", "bb")):
        assert f"is not installed here: {program} is not in /nowhere" in failed(
            cli, cascade(phase("a", tool, code="1"))
        )
        checked = cli("check", "c.json")
        assert (checked.code, f"{program} is not installed" in checked.out) == (0, True)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (phase("a", "python_data", code="x = 1\nresult = 1 / 0"), "line 2: ZeroDivisionError: division by zero"),
        (phase("a", "python_data", code="x = 1"), "the code must set the variable 'result'"),
        (phase("a", "python_data", code="result = data.nope"), "no phase 'nope' has an output; there are: none"),
        (phase("a", "sql_data", query="SELECT nope"), 'column "nope" was not found'),
        (phase("a", "sql_data", query="SELECT 1", connection="prod"), "the connection 'prod' is not available"),
        (phase("a", "bash_data", script="echo oh >&2; exit 3"), "exit code 3: oh"),
        (phase("a", "bash_data", script="true\nnope || exit 4"), "exit code 4: line 2: nope: command not found"),
        (phase("a", "python_data", code="x = 1\nreturn {'n': 1 / 0}"), "line 2: ZeroDivisionError"),
        (phase("a", "bash_data", script="echo '{'", output_format="json"), "standard output is not json"),
        (phase("a", "bash_data", script="cat", input_table="_x"), "no table is called '_x'; there are: none"),
    ],
)
def test_a_failure_says_where_and_why(cli: Cli, made: dict[str, Any], message: str) -> None:
    assert message in failed(cli, cascade(made))


def test_a_failed_query_takes_the_route_for_errors(cli: Cli) -> None:
    bad = {**phase("a", "sql_data", query="SELECT nope"), "routing": {"error": "mend"}, "handoffs": ["never"]}
    mend = {**phase("mend", "python_data", code="result = 'mended'"), "handoffs": []}
    never = phase("never", "python_data", code="result = 'never'")
    assert ran(cli, cascade(bad, never, mend))["result"] == "mended"


def test_code_sees_neither_secrets_nor_the_net_nor_other_folders(cli: Cli, workspace: Path) -> None:
    (workspace / ".env").write_text("API_KEY=sk-secret")
    outside = workspace.parent / "outside.txt"
    outside.write_text("private")
    code = (
        "import os, socket\nfound = []\n"
        f"for name in ('.env', {str(outside)!r}):\n"
        "    try:\n        found.append(open(name).read())\n    except OSError:\n        pass\n"
        "try:\n    socket.create_connection(('1.1.1.1', 53), 1)\n    found.append('net')\nexcept OSError:\n    pass\n"
        "result = [found, 'HOME_SECRET' in os.environ]"
    )
    assert ran(cli, cascade(phase("a", "python_data", code=code)))["result"][0] in ([], [""])
    query = f"SELECT * FROM read_text('{outside}')"
    assert ran(cli, cascade(phase("a", "sql_data", query=query)))["rows"] == []


def test_a_program_that_takes_too_much_memory_ends_and_the_run_says_so(cli: Cli) -> None:
    greedy = phase("a", "python_data", code="x = bytearray(6 << 30)\nresult = len(x)")
    assert "MemoryError" in failed(cli, cascade(greedy))


def test_a_query_reads_files_of_the_workspace_and_writes_none(cli: Cli, workspace: Path) -> None:
    (workspace / "orders.csv").write_text("id,amount\n1,10\n2,32\n")
    query = "SELECT sum(amount) AS total FROM read_csv('orders.csv')"
    assert ran(cli, cascade(phase("a", "sql_data", query=query)))["rows"] == [{"total": 42}]
    failed(cli, cascade(phase("a", "sql_data", query="COPY (SELECT 1 AS x) TO 'made.csv'")))
    assert not (workspace / "made.csv").exists()


def test_an_image_is_shown_like_any_tools(cli: Cli) -> None:
    code = "from PIL import Image\nresult = Image.new('RGB', (8, 4))"
    Path("c.json").write_text(cascade(phase("a", "python_data", code=code)))
    events = cli("run", "c.json", "-m", "offline", "-q", "--json").lines
    (done,) = [event for event in events if event["kind"] == "tool_finished"]
    assert (done["data"]["images"][0]["width"], done["data"]["images"][0]["height"]) == (8, 4)


def test_a_replay_gives_the_same_tables_and_runs_nothing(cli: Cli, workspace: Path) -> None:
    code = (
        "import os\nn = len(os.listdir('runs')) if os.path.isdir('runs') else 0\n"
        "os.makedirs(f'runs/{n}')\nresult = [{'n': n}]"
    )
    text = cascade(
        phase("count", "python_data", code=code), phase("ask", "sql_data", query="SELECT n + 1 AS next FROM _count")
    )
    assert ran(cli, text, "--session", "s1")["rows"] == [{"next": 1}]
    assert cli("test", "freeze", "s1", "--name", "counted").code == 0
    replayed = cli("test", "replay", "counted")
    assert replayed.code == 0, replayed.out + replayed.err
    again = cli("run", "c.json", "-q", "--reuse", "s1")
    assert (again.code, again.json["rows"]) == (0, [{"next": 1}])
    assert [path.name for path in (workspace / "runs").iterdir()] == ["0"], "the program ran once"


# -- phases that run something for each row -------------------------------------------------------------------------

CHILD = json.dumps(
    {
        "cascade_id": "each",
        "inputs_schema": {"who": "a name"},
        "phases": [
            phase("greet", "python_data", code="assert input['who'] != 'bob', 'no bob'\nresult = input['who'].upper()")
        ],
    }
)


def each(**more: Any) -> dict[str, Any]:
    rule = {"table": "_raw", "cascade": "each.json", "inputs": {"who": "{{ row.name }}"}, **more}
    return {"name": "map", "for_each_row": rule}


def test_a_cascade_runs_for_each_row_and_failed_rows_are_left_out(cli: Cli, workspace: Path) -> None:
    (workspace / "each.json").write_text(CHILD)
    query = "SELECT name, result.result AS said FROM _greeted"
    made = ran(
        cli, cascade(ROWS, each(result_table="_greeted"), phase("ask", "sql_data", query=query)), "--session", "s"
    )
    assert made["rows"] == [{"name": "ann", "said": "ANN"}]
    code = "result = [data.greeted['name'].tolist(), data['map']['name'].tolist()]"
    assert ran(cli, cascade(ROWS, each(result_table="_greeted"), phase("ask", "python_data", code=code)))["result"] == [
        ["ann"],
        ["ann"],
    ]
    listed = ran(cli, cascade(ROWS, each(on_error="collect_errors", max_parallel=1)), "--session", "t")
    assert (listed["count"], listed["total"]) == (1, 2)
    assert listed["errors"][0]["row"]["name"] == "bob"
    assert "no bob" in listed["errors"][0]["error"]
    assert listed["rows"][0]["result_session_id"] == "t_row_0"
    assert "1 of 2 failed" in failed(cli, cascade(ROWS, each(on_error="fail_fast")))


def test_a_task_runs_for_each_row_as_text_that_is_rendered_once(cli: Cli, workspace: Path) -> None:
    (workspace / "c.replies.yaml").write_text("replies:\n  map_row:\n    - text: one\n    - text: two\n")
    rows = phase("raw", "sql_data", query="SELECT '{{ '{{ 1 + 1 }}' }}' AS x")
    made = ran(
        cli,
        cascade(rows, {"name": "map", "for_each_row": {"table": "_raw", "instructions": "Say {{ row.x }}"}}),
        "--session",
        "s",
    )
    assert made["rows"][0]["result"] == "one"
    assert "Say {{ 1 + 1 }}" in cli("context", "s_row_0", "--json").out


def test_a_model_step_may_be_a_cascade_of_its_own(cli: Cli, workspace: Path) -> None:
    code = "return [{'who': input['who']}]"
    (workspace / "inner.json").write_text(cascade(phase("a", "python_data", code=code)))
    made = ran(cli, cascade(phase("a", "windlass_data", code="inner.json")), "--input", '{"who": "ann"}')
    assert made["rows"] == [{"who": "ann"}]
    Path("c.json").write_text(cascade(phase("a", "windlass_data", code="absent.yaml")))
    assert "cascade file 'absent.yaml' not found" in cli("check", "c.json").out


def test_a_table_that_is_not_there_is_named(cli: Cli, workspace: Path) -> None:
    (workspace / "each.json").write_text(CHILD)
    assert "no table is called '_rows'; there are: _raw" in failed(cli, cascade(ROWS, each(table="_rows")))


def test_map_cascade_runs_a_cascade_for_each_item(cli: Cli, workspace: Path) -> None:
    (workspace / "each.json").write_text(CHILD)
    items = phase("items", "python_data", code="result = ['ann', 'cat']")
    over = "{{ outputs.items.result }}"
    mapped = phase("map", "map_cascade", cascade="each.json", map_over=over, input_key="who", max_parallel="2")
    made = ran(cli, cascade(items, mapped))
    assert [result["result"] for result in made["results"]] == ["ANN", "CAT"]
    assert "map_cascade does not take 'input_mapping'" in failed(
        cli, cascade(items, phase("map", "map_cascade", cascade="each.json", map_over=over, input_mapping={"a": "b"}))
    )


def test_the_mode_of_map_cascade_says_which_results_count(cli: Cli, workspace: Path) -> None:
    (workspace / "each.json").write_text(CHILD)
    items = phase("items", "python_data", code="result = ['bob', 'ann', 'cat']")

    def over(mode: str) -> str:
        all_items = "{{ outputs.items.result }}"
        step = phase("map", "map_cascade", cascade="each.json", map_over=all_items, input_key="who", mode=mode)
        return cascade(items, step)

    first = ran(cli, over("first_valid"))
    assert (first["result"]["result"], first["count"], len(first["results"])) == ("ANN", 1, 1)
    every = ran(cli, over("aggregate"))
    assert ([each["result"] for each in every["results"]], "result" in every) == (["ANN", "CAT"], False)
    assert "1 of 3 failed" in failed(cli, over("all_or_nothing"))


@pytest.mark.parametrize(("key", "name"), [("phase_yaml", ""), ("code", "name: step\n"), ("cell_yaml", "name: step\n")])
def test_a_model_step_in_yaml_answers_a_table(cli: Cli, workspace: Path, key: str, name: str) -> None:
    (workspace / "c.replies.yaml").write_text(
        'replies:\n  rate_llm:\n    - text: \'[{"name": "ann", "tier": "gold"}]\'\n'
    )
    step = name + "instructions: |\n  Rate {{ outputs.raw.rows[0].name }}.\noutput_schema: {type: array}\n"
    rate = phase("rate", "windlass_data", **{key: step})
    query = "SELECT tier, amount FROM _rate JOIN _raw USING (name)"
    made = ran(cli, cascade(ROWS, rate, phase("ask", "sql_data", query=query)), "--session", "s")
    assert made["rows"] == [{"tier": "gold", "amount": 10}]
    assert "Rate ann." in cli("context", "s", "--json").out


# -- candidates by template, validators in place, the end -----------------------------------------------------------


def test_a_template_says_how_many_candidates_there_are(cli: Cli) -> None:
    items = phase("items", "python_data", code="result = ['a', 'b', 'c']")
    step = {
        "name": "each",
        "instructions": "Take {{ outputs.items.result[sounding_index] }}",
        "soundings": {"factor": "{{ outputs.items.result | length }}", "mode": "aggregate"},
    }
    Path("c.json").write_text(cascade(items, step))
    events = cli("run", "c.json", "-m", "offline", "-q", "--json").lines
    (began,) = [event for event in events if event["kind"] == "candidates_started"]
    assert began["data"]["factor"] == 3
    step["soundings"] = {"factor": "{{ outputs.items.result[0] }}"}
    told = failed(cli, cascade(items, step))
    assert re.search(r"c\.json:\d+:\d+: factor: the template gives 'a'; a number from 1 to 1,000 is needed", told), told


REPLIES = """\
replies:
  a:
    - text: abc
    - {attempt: 2, text: abcdef}
"""
LONG = "result = {'valid': len(content) > 3, 'reason': 'too short'}"
VALIDATORS = {
    "python": LONG,
    "bash": '[ ${#CONTENT} -gt 3 ] && v=true || v=false; echo "{\\"valid\\": $v, \\"reason\\": \\"too short\\"}"',
    "sql": "SELECT length(content) > 3 AS valid, 'too short' AS reason FROM _content",
    "javascript": "result = {valid: content.length > 3, reason: 'too short'}",
}


@pytest.mark.parametrize("language", VALIDATORS)
def test_a_validator_written_in_place_judges(cli: Cli, workspace: Path, language: str) -> None:
    if language == "javascript" and shutil.which("node", path=PATH) is None:
        pytest.skip("node is not installed")
    (workspace / "c.replies.yaml").write_text(REPLIES)
    ward = {"validator": {language: VALIDATORS[language]}, "mode": "retry", "max_attempts": 2}
    Path("c.json").write_text(cascade({"name": "a", "instructions": "x", "wards": {"post": [ward]}}))
    ended = cli("run", "c.json", "-m", "offline", "-q", "--session", "s")
    assert (ended.code, ended.out) == (0, "abcdef\n")
    assert f"Your answer was rejected by 'inline {language}': too short" in cli("context", "s", "--json").out


def test_a_validator_in_place_can_stand_wherever_a_name_can(cli: Cli, workspace: Path) -> None:
    (workspace / "c.replies.yaml").write_text(REPLIES)
    code = {"tool": "python_data", "inputs": {"code": LONG}}
    step = {"name": "a", "instructions": "x", "rules": {"loop_until": code, "max_attempts": 2}}
    Path("c.json").write_text(cascade(step))
    ended = cli("run", "c.json", "-m", "offline", "-q", "--session", "s")
    assert (ended.code, ended.out) == (0, "abcdef\n"), ended.err
    (workspace / "c.replies.yaml").write_text('replies:\n  a:\n    - text: abc\n    - {branch: "*1", text: abcdef}\n')
    step = {"name": "a", "instructions": "x", "soundings": {"factor": 2, "validator": {"python": LONG}}}
    Path("c.json").write_text(cascade(step))
    assert cli("run", "c.json", "-m", "offline", "-q").out == "abcdef\n", "the only valid candidate wins"
    (workspace / "c.replies.yaml").write_text("replies:\n  a:\n    - text: abc\n")
    named = {"validators": {"long": {"python": LONG}}}
    Path("c.json").write_text(cascade({"name": "a", "instructions": "x", "wards": {"post": ["long"]}}, **named))
    blocked = cli("run", "c.json", "-m", "offline", "-q")
    assert (blocked.code, "'long' blocked: too short" in blocked.err) == (1, True)


def test_code_of_a_validator_that_fails_is_no_verdict(cli: Cli, workspace: Path) -> None:
    (workspace / "c.replies.yaml").write_text("replies:\n  a:\n    - text: abc\n")
    step = {"name": "a", "instructions": "x", "wards": {"post": [{"validator": {"python": "result = 1 / 0"}}]}}
    assert "validator 'inline python': line 1: ZeroDivisionError" in failed(cli, cascade(step))


def test_a_handoff_to_the_end_ends_the_run(cli: Cli, workspace: Path) -> None:
    only = {**phase("a", "python_data", code="result = 1"), "handoffs": ["end"]}
    other = phase("b", "python_data", code="result = 2")
    assert ran(cli, cascade(only, other))["result"] == 1
    assert "no problems" in cli("check", "c.json").err + cli("check", "c.json").out or cli("check", "c.json").code == 0
    named = phase("end", "python_data", code="result = 3")
    assert ran(cli, cascade(only, other, named))["result"] == 3, "a phase of that name comes first"
    (workspace / "c.replies.yaml").write_text(
        "replies:\n  a:\n    - say: Enough.\n      calls: [{tool: route_to, arguments: {target: end}}]\n"
    )
    Path("c.json").write_text(cascade({"name": "a", "instructions": "x", "handoffs": ["b", "end"]}, other))
    assert cli("run", "c.json", "-m", "offline", "-q").out == "Enough.\n"


def test_manifest_may_stand_in_the_list_of_tools(cli: Cli, workspace: Path) -> None:
    (workspace / "c.replies.yaml").write_text(
        'replies:\n  a:\n    - text: done\n    - {aside: 1, text: "{\\"tools\\": [\\"list_files\\"]}"}\n'
    )
    Path("c.json").write_text(cascade({"name": "a", "instructions": "x", "tackle": ["manifest", "read_file"]}))
    assert cli("check", "c.json").code == 0
    events = cli("run", "c.json", "-m", "offline", "-q", "--session", "s", "--json").lines
    (chosen,) = [event for event in events if event["kind"] == "tools_chosen"]
    assert chosen["data"]["tools"] == ["list_files"]
    told = cli("context", "s", "--at", "a:1", "--json").out
    assert "**read_file**" in told
    assert "**list_files**" in told


def test_a_tool_that_is_not_known_is_an_error_of_the_file(cli: Cli) -> None:
    Path("c.json").write_text(cascade(phase("a", "sql_dat", query="SELECT 1")))
    checked = cli("check", "c.json")
    assert (checked.code, "error: tool 'sql_dat' is not known; the phase cannot run" in checked.out) == (1, True)
    assert cli("run", "c.json", "-m", "offline").code == 2
    Path("c.json").write_text(cascade(phase("a", "python:no_such_package.demo.run")))
    checked = cli("check", "c.json")
    assert (checked.code, "there is no module 'no_such_package'" in checked.out) == (1, True)
