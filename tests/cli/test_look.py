"""``runs``, ``show``, ``context``, ``tree`` and ``graph``: a stored run as text and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command import Cli


@pytest.fixture
def ran(cli: Cli) -> Cli:
    """The command line over a workspace with one run named ``s``."""
    assert cli("run", "greet.yaml", "--session", "s").code == 0
    return cli


def test_a_list_of_runs_has_the_newest_first(ran: Cli) -> None:
    ran("run", "greet.yaml", "--session", "t")
    assert [run["session_id"] for run in ran("runs", "--json").json] == ["t", "s"]
    assert [run["session_id"] for run in ran("runs", "--json", "-n", "1").json] == ["t"]
    assert ran("runs", "--status", "failed", "--json").json == []
    header, first, _ = ran("runs", "--plain").out.splitlines()
    assert header.split()[:2] == ["session", "status"]
    assert first.split()[:2] == ["t", "success"]


def test_an_unknown_cost_is_null_and_no_number(ran: Cli) -> None:
    assert ran("runs", "--json").json[0]["cost"] is None
    assert ran("show", "s", "--json").json["totals"]["cost"] is None


def test_the_list_and_the_run_predict_the_same_cost(ran: Cli) -> None:
    (listed,), totals = ran("runs", "--json").json, ran("show", "s", "--json").json["totals"]
    assert listed["predicted_cost"] == totals["predicted_cost"] > 0
    fields = ran("runs", "--plain", "session:s").out.splitlines()[1].split()
    cost = next(field for field in fields if "$" in field)
    assert (cost, fields[-2]) == ("~$0.00012", "greet.yaml")
    assert f"cost {cost} " in ran("show", "s", "--plain").out


def test_runs_are_found_by_a_filter_and_by_what_was_said_in_them(ran: Cli) -> None:
    ran("run", "greet.yaml", "--session", "t")

    def names(*arguments: str) -> list[str]:
        return [run["session_id"] for run in ran("runs", "--json", "--", *arguments).json]

    assert names("session=s calls>1 status:success") == ["s"]
    assert names("-session=t", "phase:look", "date:today") == ["s"]
    assert names('text:"HELLO, ada"') == ["t", "s"]
    assert names('text:"goodbye" or status:failed') == []
    shown = ran("runs", "text:hello").out.splitlines()
    assert shown[-1] == "s answer:1: Hello, Ada."
    assert [field for field in ("tokens", "text", "is") if field not in ran("runs", "--fields").out] == []


def test_a_filter_with_a_mistake_ends_with_its_column(ran: Cli) -> None:
    done = ran("runs", "status:success tokns>3")
    assert (done.code, done.err) == (
        2,
        "FILTER:1:16: error: there is no field 'tokns' (did you mean 'tokens'?)\n",
    )
    assert ran("runs", "--status", "faild").err.startswith("FILTER:1:8: error: 'faild' is not a value of status")


def test_a_predicted_cost_is_marked(ran: Cli) -> None:
    assert "cost ~" in ran("show", "s").out
    assert ran("show", "s", "--json").json["totals"]["predicted_cost"] > 0


@pytest.mark.parametrize("command", ["show", "context", "tree"])
def test_without_a_name_the_newest_run_is_meant(ran: Cli, command: str) -> None:
    ran("run", "greet.yaml", "--session", "t", "--until", "look:1")
    assert ran(command, "--json").json == ran(command, "t", "--json").json
    assert ran(command, "--json").json != ran(command, "s", "--json").json


@pytest.mark.parametrize("command", ["show", "context", "tree", "resume"])
def test_a_name_that_nobody_has(cli: Cli, command: str) -> None:
    ended = cli(command, "nobody")
    assert (ended.code, ended.out, ended.err) == (2, "", "error: no run is named 'nobody'\n")


def test_where_nothing_ran(cli: Cli, workspace: Path) -> None:
    assert cli("show").err == f"error: no runs in {workspace / '.workbench'} (workbench run FILE makes one)\n"
    listed = cli("runs")
    assert (listed.code, listed.out) == (0, "")
    assert cli("runs", "--json").json == []


def test_show_tells_phases_calls_and_output(ran: Cli) -> None:
    lines = ran("show", "s").out.splitlines()
    assert lines[0].startswith("s  ✓ success  greet.yaml") or lines[0].startswith("s  success  greet.yaml")
    assert [line.split()[0] for line in lines if line.startswith(("look", "answer"))] == ["look", "answer"]
    assert any("read_file (error)" in line for line in lines)
    assert lines[-2:] == ["output", "Hello, Ada."]


def test_show_json_holds_answers_tools_and_routes(ran: Cli) -> None:
    run = ran("show", "s", "--json").json
    look, answer = run["phases"]
    assert (look["route"], look["route_rule"]) == ("answer", "route_to")
    assert [tool["tool"] for call in look["calls"] for tool in call["tools"]] == ["read_file", "read_file", "route_to"]
    assert [tool["status"] for call in look["calls"] for tool in call["tools"]] == ["done", "failed", "done"]
    assert answer["calls"][0]["answer"] == answer["output"] == run["output"] == "Hello, Ada."


def test_a_context_lists_every_message_and_why(ran: Cli) -> None:
    (call,) = ran("context", "s", "--phase", "look", "--turn", "3", "--json").json
    entries = call["entries"]
    assert [entry["role"] for entry in entries] == ["system", "user", "assistant", "user", "assistant", "user"]
    masked = entries[3]
    assert (masked["action"], masked["why"], masked["line"]) == ("masked", "masked: age 2 > 1", 8)
    assert masked["rule"] == "phases[0].intra_context.mask_observations_after"
    assert "Ada likes" in masked["message"]["content"]
    assert "Ada likes" not in masked["sent"]["content"]
    assert masked["tokens_sent"] < masked["tokens_full"]
    assert [entry["sent"] for entry in entries[:3]] == ["as it is"] * 3
    assert entries[5]["is_error"]


def test_a_context_as_text_names_the_rule_and_the_line(ran: Cli) -> None:
    out = ran("context", "s", "--at", "look:3", "--plain").out
    row = next(line for line in out.splitlines() if "masked: age" in line)
    assert row.split()[:5] == ["4", "user", "turn", "1", "read_file"]
    assert ":8" in row
    assert "◌" not in out, "plain output has words"


def test_a_context_with_texts_shows_what_was_sent(ran: Cli) -> None:
    out = ran("context", "s", "--at", "look:2", "--text").out
    assert out.count("    Ada likes short greetings.") == 4


def test_a_long_message_is_printed_once_for_all_calls(cli: Cli, workspace: Path) -> None:
    said = [{"role": "user", "content": "word " * 200}]
    for turn in range(5):
        said += [{"role": "assistant", "content": f"a{turn}"}, {"role": "user", "content": f"u{turn}"}]
    (workspace / "chat.jsonl").write_text(json.dumps({"messages": [*said, {"role": "assistant", "content": "end"}]}))
    assert cli("import", "chat.jsonl").code == 0
    out = cli("context", "--text").out
    assert out.count("word word") // 100 == 1
    assert len(re.findall(r"\[as above: imported:1, entry \d; 1,000 characters\]", out)) == 5
    assert out.count("#  role") == 6
    assert cli("context", "--text", "--turn", "6").out.count("word word") // 100 == 1


def test_a_place_in_full(ran: Cli) -> None:
    whole = ran("context", "s", "--at", "look/1/1/3/1", "--json").json
    assert whole == ran("context", "s", "--at", "look:3", "--json").json
    assert whole == ran("context", "s", "--at", "look#1:3", "--json").json


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--phase", "refuse"), "error: phase 'refuse' did not run (ran: look, answer)\n"),
        (("--at", "look#2:1"), "error: phase 'look#2' did not run (ran: look, answer)\n"),
        (("--turn", "9"), "error: no such call in this run (workbench show lists them)\n"),
        (("--at", "look/1/1/9/1"), "error: no call at look/1/1/9/1 (workbench show lists them)\n"),
        (
            ("--at", "look"),
            "error: 'look' is not a place; expected [branch/]phase/visit/attempt/turn/call (or phase:turn)\n",
        ),
    ],
)
def test_a_call_that_is_not_there(ran: Cli, arguments: tuple[str, ...], message: str) -> None:
    ended = ran("context", "s", *arguments)
    assert (ended.code, ended.out, ended.err) == (2, "", message)


def test_a_context_under_another_strategy_is_a_what_if(ran: Cli) -> None:
    before = ran("context", "s", "--phase", "look", "--json").json
    whole = ran("context", "s", "--phase", "look", "--strategy", "selective", "--json")
    assert whole.err.startswith("what-if over 3 calls: ~")
    assert [call["strategy"] for call in whole.json] == ["selective"] * 3
    assert [entry["action"] for entry in whole.json[2]["entries"]] == ["kept"] * 6
    assert whole.json[2]["tokens_sent"] > before[2]["tokens_sent"]
    assert [call["answer"] for call in whole.json] == [None] * 3
    assert len(ran("runs", "--json").json) == 1, "nothing ran"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mask(aftr=1)", "error: strategy 'mask(aftr=1)', column 6: mask has no parameter 'aftr' (did you mean"),
        ("nonsense", "error: strategy 'nonsense', column 1: "),
    ],
)
def test_a_strategy_that_is_none(ran: Cli, spec: str, message: str) -> None:
    ended = ran("context", "s", "--strategy", spec)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(message)


def test_the_offline_model_has_no_request_body(ran: Cli) -> None:
    ended = ran("context", "s", "--wire")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "error: no request body is stored (the offline model sends nothing)\n"


def test_the_execution_tree_has_its_shape(ran: Cli) -> None:
    shown = ran("tree", "s", "--json").json
    assert shown.pop("totals")["calls"] == 4
    assert shown == {
        "session_id": "s",
        "cascade_id": "greet",
        "status": "success",
        "phases": [
            {"name": "look", "type": "simple", "visit": 1, "status": "success"},
            {"name": "answer", "type": "simple", "visit": 1, "status": "success"},
        ],
    }
    assert "turn 3" in ran("tree", "s").out


def test_a_graph_as_text_mermaid_and_json(ran: Cli) -> None:
    assert ran("graph", "greet.yaml").out.splitlines()[:3] == [
        "look  read_file",
        "  to answer  when all is read",
        "  to refuse  otherwise",
    ]
    lines = ran("graph", "greet.yaml", "--as", "mermaid").out.splitlines()
    assert lines[:2] == ["flowchart TD", '  n0["look"]']
    assert '  n0 -->|"when all is read"| n1' in lines
    graph = ran("graph", "greet.yaml", "--json").json
    assert [(edge["from"], edge["to"], edge["line"]) for edge in graph["edges"]] == [
        ("look", "answer", 9),
        ("look", "refuse", 9),
    ]


def test_the_graph_of_a_run_shows_the_way_that_it_took(ran: Cli) -> None:
    graph = ran("graph", "s", "--json").json
    assert [(node["id"], node["visits"], node["status"]) for node in graph["nodes"]] == [
        ("look", 1, "success"),
        ("answer", 1, "success"),
        ("refuse", 0, None),
    ]
    assert [edge["taken"] for edge in graph["edges"]] == [1, 0]
    assert '  n0 ==>|"when all is read"| n1' in ran("graph", "s", "--as", "mermaid").out.splitlines()


def test_no_name_can_become_syntax_of_a_diagram(cli: Cli, workspace: Path) -> None:
    (workspace / "hostile.yaml").write_text(
        'cascade_id: h\nphases: [{name: "a\\"]; click n0 \\"x", instructions: i, handoffs: [b]}, '
        "{name: b, instructions: i, handoffs: []}]\n"
    )
    out = cli("graph", "hostile.yaml", "--as", "mermaid").out
    assert out.splitlines()[1] == '  n0["a#quot;]; click n0 #quot;x"]'


def test_a_graph_needs_a_file_that_can_be_read(cli: Cli, workspace: Path) -> None:
    (workspace / "broken.yaml").write_text("cascade_id: [")
    ended = cli("graph", "broken.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("broken.yaml:1:")


def test_text_of_a_model_cannot_steer_the_terminal(cli: Cli, workspace: Path) -> None:
    (workspace / "greet.replies.yaml").write_text(
        'replies: {look: [{text: "x"}], answer: [{text: "red \\e[31m \\u202e end"}]}\n'
    )
    cli("run", "greet.yaml", "--session", "s")
    for command in ("show", "context", "tree"):
        shown = cli(command, "s").out + cli(command, "s", "--json").out
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_the_cost_of_a_run_without_an_answer_is_not_known(cli: Cli) -> None:
    cli("run", "greet.yaml", "--until", "look:1", "--session", "held")
    assert next(line for line in cli("show", "held").out.splitlines() if line.startswith("calls")).endswith("cost –")
    assert "0.0000" not in cli("runs").out


def test_the_newest_run_is_not_one_that_it_started_itself(cli: Cli, workspace: Path) -> None:
    (workspace / "outer.yaml").write_text(
        "cascade_id: outer\nvalidators: {fine: {instructions: Is it fine?}}\n"
        "phases: [{name: p, instructions: go, wards: {post: [{validator: fine, mode: advisory}]}}]\n"
    )
    (workspace / "outer.replies.yaml").write_text("replies: {p: [{text: Done.}]}\n")
    cli("run", "outer.yaml", "--session", "mine")
    assert len(cli("runs", "--all", "--json").json) == 2
    assert [run["session_id"] for run in cli("runs", "--json").json] == ["mine"]
    assert cli("show", "--json").json["session_id"] == "mine"
    started = next(run for run in cli("runs", "--all", "--json").json if run["session_id"] != "mine")
    assert f"children {started['session_id']} {started['status']}" in cli("show").out


def test_open_without_a_terminal_lists_what_the_folder_holds(ran: Cli, workspace: Path) -> None:
    (workspace / "flows").mkdir()
    (workspace / "flows" / "broken.yaml").write_text("cascade_id: broken\nphases: [\n")
    done = ran("open")
    assert done.code == 0
    assert [line.split()[:4] for line in done.out.splitlines()] == [
        ["workbench", "open", "greet.yaml", "greet"],
        ["workbench", "open", "flows/broken.yaml", "broken"],
    ]
    assert "1 stored run: workbench runs" in done.err
    assert (ran("open", "greet.yaml").code, ran("open", "s").code) == (2, 2)
    assert "the app needs a terminal; without one use `workbench show s`" in ran("open", "s").err
    assert ran("open", ".").out == done.out
    flows = ran("open", "flows")
    assert flows.code == 2
    assert flows.err == "flows: error: is a folder, not a cascade file (cd flows && workbench open)\n"


def test_a_broken_journal_is_told_by_the_list_and_by_the_run_in_the_same_words(ran: Cli, workspace: Path) -> None:
    (segment,) = workspace.glob(".workbench/journal/*/000001.jsonl")
    whole = segment.read_bytes()
    segment.write_bytes(whole[:400] + b"##" + whole[401:])
    (listed,) = ran("runs", "is:damaged", "--json").json
    assert listed["fault"].startswith("000001.jsonl damaged at byte ")
    assert ran("show", listed["run_id"], "--json").json["fault"] == listed["fault"]
    assert f"damaged  {listed['fault']}" in ran("show", listed["run_id"], "--plain").out
    assert f"damaged: {listed['fault']}" in ran("runs", "--plain").out
