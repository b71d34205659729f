"""``run`` and ``resume``: what comes out where, how far a run goes, and how its end is told."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

import workbench
from tests.support.command import PLACEHOLDERS, Cli
from tests.support.workspaces import CASCADE, REPLIES


def test_the_output_is_data_and_everything_else_is_talk(cli: Cli) -> None:
    ended = cli("run", "greet.yaml")
    assert (ended.code, ended.out) == (0, "Hello, Ada.\n")
    assert "model offline" in ended.err
    assert "read_file" in ended.err
    assert "success" in ended.err.splitlines()[-3:]


def test_the_input_file_beside_the_cascade_is_the_default(cli: Cli, workspace: Path) -> None:
    cli("run", "greet.yaml", "--session", "a")
    assert cli("show", "a", "--json").json["input"] == {"name": "Ada"}
    cli("run", "greet.yaml", "--session", "b", "--input", '{"name": "Ben"}')
    assert cli("show", "b", "--json").json["input"] == {"name": "Ben"}
    (workspace / "other.json").write_text('{"name": "Cleo"}')
    cli("run", "greet.yaml", "--session", "c", "--input", "@other.json")
    assert cli("show", "c", "--json").json["input"] == {"name": "Cleo"}


def test_quiet_says_nothing_on_the_way(cli: Cli) -> None:
    assert cli("run", "greet.yaml", "--quiet") == cli("run", "greet.yaml", "-q")
    assert cli("run", "greet.yaml", "--quiet").err == ""


def test_json_streams_the_events_of_the_journal(cli: Cli) -> None:
    events = cli("run", "greet.yaml", "--json").lines
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["kind"], events[-1]["kind"]) == ("run_started", "run_finished")
    assert events[-1]["data"]["output"] == "Hello, Ada."


def test_until_holds_before_the_call_and_resume_goes_on_without_repeating(cli: Cli) -> None:
    held = cli("run", "greet.yaml", "--until", "look:3", "--session", "s")
    assert (held.code, held.out) == (0, "")
    run = cli("show", "s", "--json").json
    assert (run["status"], run["totals"]["calls"]) == ("stopped", 2)
    assert run["phases"][0]["calls"][-1]["status"] == "assembled"

    ended = cli("runs", "--json").json[0]["finished"]
    assert cli("resume", "s", "--until", "look:1").code == 0
    assert cli("runs", "--json").json[0]["finished"] > ended, "what comes behind the journal happens after it"

    resumed = cli("resume", "s")
    assert (resumed.code, resumed.out) == (0, "Hello, Ada.\n")
    assert "look:2" not in resumed.err, "what the journal holds is not told again"
    assert len(cli("runs", "--json").json) == 1
    assert cli("show", "s", "--json").json["totals"]["calls"] == 4


def test_until_a_place_that_is_not_reached_says_so(cli: Cli) -> None:
    ended = cli("run", "greet.yaml", "--until", "answer:2")
    assert ended.code == 0
    assert "answer:2 was not reached" in ended.err


@pytest.mark.parametrize(
    ("until", "message"),
    [
        ("lok", "error: 'lok' is not a phase (there are look, answer, refuse)\n"),
        ("look:0", "error: 'look:0' is not a place (write phase or phase:turn, turns count from 1)\n"),
        ("look:x", "error: 'look:x' is not a place (write phase or phase:turn, turns count from 1)\n"),
    ],
)
def test_a_place_that_cannot_be(cli: Cli, until: str, message: str) -> None:
    ended = cli("run", "greet.yaml", "--until", until)
    assert (ended.code, ended.err) == (2, message)
    assert cli("runs", "--json").json == []


def test_a_run_that_is_over_cannot_be_resumed(cli: Cli) -> None:
    cli("run", "greet.yaml", "--session", "s")
    ended = cli("resume", "s")
    assert (ended.code, ended.err) == (2, "error: s is success; there is nothing to resume\n")


def test_a_failed_check_is_exit_code_1(cli: Cli, workspace: Path) -> None:
    (workspace / "strict.yaml").write_text(
        "cascade_id: strict\nphases: [{name: p, instructions: go, output_schema: {type: object}}]\n"
    )
    (workspace / "strict.replies.yaml").write_text("replies: {p: no}\n")
    ended = cli("run", "strict.yaml", "--session", "s")
    assert ended.code == 1
    assert ended.out == ""
    assert "output_schema" in ended.err
    assert cli("show", "s", "--json").json["status"] == "failed"


def test_a_blocking_ward_is_exit_code_1(cli: Cli, workspace: Path) -> None:
    (workspace / "ward.yaml").write_text(
        "cascade_id: ward\nphases: [{name: p, instructions: go, wards: {post: [keyword_validator]}}]\n".replace(
            "[keyword_validator]", "[{validator: keyword_validator}]"
        )
    )
    (workspace / "ward.replies.yaml").write_text("replies: {p: no}\n")
    ended = cli("run", "ward.yaml")
    assert ended.code == 1
    assert "blocked" in ended.err


def test_no_check_judges_a_placeholder_nor_by_one(cli: Cli, workspace: Path) -> None:
    (workspace / "foreign.yaml").write_text("""\
cascade_id: foreign
validators: {judge: {instructions: "Is it good? {{ input.content }}"}}
phases:
  - {name: plan, instructions: go, output_schema: {type: object}, wards: {post: [{validator: keyword_validator}]}}
  - {name: note, instructions: note, output_extraction: {pattern: "<note>(.*?)</note>", store_as: n, required: true}}
  - {name: write, instructions: "write {{ outputs.plan }}", rules: {max_attempts: 2, loop_until: judge}}
""")
    (workspace / "foreign.replies.yaml").write_text("replies: {write: A text.}\n")
    ended = cli("run", "foreign.yaml", "--session", "s", *PLACEHOLDERS)
    assert (ended.code, ended.out) == (0, "A text.\n")
    for name in ("plan", "note", "write"):
        assert f"checks of '{name}' are passed over: no reply is scripted for the answer that they need" in ended.err
    assert cli("show", "s", "--json").json["status"] == "success"


def test_a_file_that_cannot_run_is_exit_code_2_with_the_place(cli: Cli, workspace: Path) -> None:
    (workspace / "broken.yaml").write_text(CASCADE.replace("target: answer", "target: anwser"))
    ended = cli("run", "broken.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0].startswith("broken.yaml:9:")
    assert "error: handoff target 'anwser' is not a phase (did you mean 'answer'?)" in ended.err
    assert ended.err.splitlines()[-1] == "broken.yaml: error: the cascade cannot run as it is"
    assert cli("runs", "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.yaml",), "absent.yaml: error: no such file\n"),
        ((".",), ".: error: is a folder, not a cascade file (workbench open lists its files)\n"),
        (("greet.yaml", "--input", "{"), "--input:1:2: error: not valid JSON: Expecting property name"),
        (("greet.yaml", "--input", "[" * 9_999 + "]" * 9_999), "--input:1:1: error: not valid JSON: nested too deep"),
        (("greet.yaml", "--input", "[1]"), "error: invalid value for '--input': '[1]' is not a JSON object (see "),
        (("greet.yaml", "--input", "@absent.json"), "absent.json: error: cannot be read: No such file or directory\n"),
        (
            ("greet.yaml", "--session", "../x"),
            "error: '../x' is not a session id (letters, digits, '.', '_' and '-')\n",
        ),
        (("greet.yaml", "--sandbox", "jail"), "error: invalid value for '--sandbox': 'jail' is not one of"),
        (("greet.yaml", "--base-url", "ftp://x"), "--base-url: error: 'base_url' must begin with http:// or https://"),
        (("greet.yaml", "--colour"), "error: no such option '--colour'"),
        (("greet.yaml", "--offline"), "error: no such option '--offline' (the offline model is '-m offline')"),
        ((), "error: missing argument 'FILE' (see workbench run --help)\n"),
    ],
)
def test_what_was_asked_wrongly_is_exit_code_2_and_one_line(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    ended = cli("run", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(message)
    assert ended.err.count("\n") == 1


def test_a_question_without_a_person_stops_the_run_and_answers_let_it_go_on(cli: Cli, workspace: Path) -> None:
    (workspace / "ask.yaml").write_text(
        "cascade_id: ask\nphases: [{name: p, instructions: go, tackle: [ask_human], rules: {max_turns: 2}}]\n"
    )
    (workspace / "ask.replies.yaml").write_text(
        "replies: {p: [{calls: [{tool: ask_human, arguments: {question: May I?}}]}, {text: Done.}]}\n"
    )
    stopped = cli("run", "ask.yaml", "--session", "s")
    assert (stopped.code, stopped.out) == (1, "")
    assert "May I?" in stopped.err
    assert "phase  stopped\n" in stopped.err
    assert "resume it: workbench resume s\n" in stopped.err
    offered = stopped.err.partition("with an answer: ")[2].partition("\n")[0]
    command = shlex.split(offered)
    assert command == ["workbench", "resume", "s", "--answers", '{"p": "ANSWER"}']
    resumed = cli(*command[1:-1], command[-1].replace("ANSWER", "yes"))
    assert (resumed.code, resumed.out) == (0, "Done.\n")
    tools = cli("show", "s", "--json").json["phases"][0]["calls"][0]["tools"]
    assert [tool["result"].splitlines()[-1] for tool in tools] == ["yes"]


ASKS = {
    "a form": (
        "ask.yaml",
        "cascade_id: ask\nphases: [{name: p, instructions: go, human_input: {type: rating}}]\n",
        ("9", "4"),
    ),
    "a gate": (
        "ask.dot",
        'digraph g { start [shape=Mdiamond] done [shape=Msquare] p [shape=hexagon, label="Ship it?"]'
        ' start -> p p -> done [label="[A] Approve"] p -> done [label="[W] Wait"] }',
        ("what?", "a"),
    ),
}


@pytest.mark.parametrize("times", [1, 3, 4])
@pytest.mark.parametrize(("name", "text", "answers"), ASKS.values(), ids=ASKS)
def test_answers_that_do_not_fit_leave_a_run_that_a_fitting_one_lets_go_on(
    cli: Cli, workspace: Path, name: str, text: str, answers: tuple[str, str], times: int
) -> None:
    wrong, right = answers
    (workspace / name).write_text(text)
    (workspace / "ask.replies.yaml").write_text("replies: {p: [{text: Done.}]}\n")
    assert cli("run", name, "--session", "s", "-q").code == 1
    for _ in range(2):
        given = json.dumps({"p": [wrong] * times if times > 1 else wrong})
        refused = cli("resume", "s", "--answers", given)
        assert refused.code == 1
        assert "no answer fits" in refused.err
        assert "resume it: workbench resume s" in refused.err
    assert cli("resume", "s", "--answers", json.dumps({"p": right})).code == 0


def test_an_answer_that_was_given_beforehand_is_given_once_to_each_question(cli: Cli, workspace: Path) -> None:
    name, text, (wrong, _) = ASKS["a form"]
    (workspace / name).write_text(text)
    (workspace / "ask.replies.yaml").write_text("replies: {p: [{text: Done.}]}\n")
    given = cli("run", name, "--json", "-q", "--answers", json.dumps({"p": wrong})).lines
    assert [event["data"]["answer"] for event in given if event["kind"] == "human_answered"] == [wrong]


def test_the_command_that_a_stopped_run_offers_answers_its_form(cli: Cli, workspace: Path) -> None:
    fields = "[{name: verdict, type: radio, required: true, options: [now, later]}, {name: day, type: date}]"
    one = "[{name: verdict, type: radio, required: true, options: [now, later]}]"
    for name, given, answer in (("two", fields, {"values": {"verdict": "now"}}), ("one", one, "now")):
        phase = f"{{name: p, instructions: go, human_input: {{type: form, fields: {given}}}}}"
        (workspace / f"{name}.yaml").write_text(f"cascade_id: {name}\nphases: [{phase}]\n")
        (workspace / f"{name}.replies.yaml").write_text("replies: {p: [{text: Done.}]}\n")
        stopped = cli("run", f"{name}.yaml", "--session", name)
        command = shlex.split(stopped.err.partition("with an answer: ")[2].partition("\n")[0])
        assert json.loads(command[-1]) == {"p": answer}
        assert cli(*command[1:]).code == 0


def test_answers_of_the_wrong_shape(cli: Cli, workspace: Path) -> None:
    (workspace / "answers.json").write_text('"yes"')
    ended = cli("run", "greet.yaml", "--answers", "answers.json")
    assert (ended.code, ended.err.splitlines()[-1]) == (
        2,
        "answers.json: error: answers are an object by phase, or a list",
    )


def test_broken_replies_are_told_with_their_place(cli: Cli, workspace: Path) -> None:
    (workspace / "greet.replies.yaml").write_text(REPLIES.replace("text:", "txet:"))
    ended = cli("run", "greet.yaml")
    assert ended.code == 2
    assert "greet.replies.yaml:9:" in ended.err
    assert "did you mean 'text'?" in ended.err
    assert cli("runs", "--json").json == []


NEEDS_TRUST = {
    "a tool phase": "phases: [{name: p, tool: shout, inputs: {text: x}}]\n",
    "a validator": "phases: [{name: p, instructions: x, wards: {post: [{validator: polite, mode: blocking}]}}]\n",
    "a validator of candidates": (
        "phases: [{name: p, instructions: x, soundings: {factor: 2}, wards: {post: [{validator: polite}]}}]\n"
    ),
}


@pytest.mark.parametrize("phases", NEEDS_TRUST.values(), ids=NEEDS_TRUST)
def test_what_cannot_run_without_trust_is_exit_code_3_and_says_how_to_allow_it(
    cli: Cli, workspace: Path, phases: str
) -> None:
    (workspace / "tools").mkdir()
    (workspace / "tools" / "own.py").write_text(
        "def shout(text: str) -> str:\n    return text.upper()\n\n\n"
        "def polite(content: str) -> bool:\n    return 'please' in content\n"
    )
    (workspace / "act.yaml").write_text("cascade_id: act\n" + phases)
    (workspace / "act.replies.yaml").write_text("replies: {p: [{text: please}]}\n")
    refused = cli("run", "act.yaml", "-q")
    assert refused.code == 3
    assert refused.err.count("may not run") == 1
    assert "workbench trust" in refused.err
    assert "needs trust" in cli("check", "act.yaml").out
    assert cli("trust", "act.yaml", "--yes").code == 0
    assert cli("run", "act.yaml", "-q", "--unscripted", "ok").code == 0


def test_a_python_tool_may_take_as_long_as_the_setting_says(cli: Cli, workspace: Path) -> None:
    (workspace / "tools").mkdir()
    (workspace / "tools" / "own.py").write_text(
        "import asyncio\n\n\nasync def forever() -> str:\n    await asyncio.Event().wait()\n    return 'done'\n"
    )
    (workspace / "wait.yaml").write_text("cascade_id: wait\nphases: [{name: p, tool: forever}]\n")
    (workspace / "workbench.yaml").write_text("tool_timeout: 0.1\n")
    assert cli("trust", "wait.yaml", "--yes").code == 0
    ended = cli("run", "wait.yaml", "-q")
    assert ended.code == 1
    assert "no result within 0.1 s" in ended.err


def test_quiet_says_why_a_run_failed(cli: Cli, workspace: Path) -> None:
    (workspace / "greet.yaml").write_text(CASCADE.replace("Greet them.", "'{{ 1 / 0 }}'"))
    ended = cli("run", "greet.yaml", "-q")
    assert ended.code == 1
    assert ended.err.startswith("failed: ")


FORM = """cascade_id: ask
phases:
- name: plan
  instructions: go
  human_input:
    type: form
    prompt: What now?
    fields:
    - {name: team, type: select, options: [blue, green], required: true}
    - {name: days, type: integer}
"""


def test_answers_of_a_form_are_read_by_its_fields_and_what_was_not_asked_for_is_told(cli: Cli, workspace: Path) -> None:
    (workspace / "ask.yaml").write_text(FORM)
    (workspace / "answers.json").write_text('{"plan": {"team": "Green", "days": 3}, "plam": "x"}')
    ended = cli("run", "ask.yaml", "--session", "s", "--answers", "answers.json", *PLACEHOLDERS)
    assert ended.code == 0
    assert cli("show", "s", "--json").json["state"] == {"human_input": {"plan": {"team": "green", "days": 3}}}
    (warning,) = cli("show", "s", "--json").json["warnings"]
    assert warning["message"].startswith("answers: 'plam' is not a phase of this cascade (did you mean 'plan'?)")
    assert "--answers: no question asked for 'plam'" in ended.err


def test_an_answer_that_does_not_fit_stops_the_run_with_the_reason(cli: Cli, workspace: Path) -> None:
    (workspace / "ask.yaml").write_text(FORM)
    (workspace / "answers.json").write_text('{"plan": {"team": "red"}}')
    for answers in ("answers.json", (workspace / "answers.json").read_text()):
        ended = cli("run", "ask.yaml", "--answers", answers, *PLACEHOLDERS)
        assert ended.code == 1
        assert "team: choose one of blue, green" in ended.err
    assert cli("run", "ask.yaml", "--answers", '{"plan": ').err.startswith("--answers:1:10: error: not valid JSON")


def test_null_in_the_answers_is_nobody_who_answers_in_time(cli: Cli, workspace: Path) -> None:
    (workspace / "ask.yaml").write_text(FORM + "    timeout_seconds: 60\n")
    (workspace / "answers.json").write_text('{"plan": null}')
    ended = cli("run", "ask.yaml", "--answers", "answers.json", *PLACEHOLDERS)
    assert ended.code == 1
    assert "nobody answered within 60 s" in ended.err


def test_a_run_that_failed_for_want_of_replies_says_where_they_are_looked_for(cli: Cli, workspace: Path) -> None:
    text = "cascade_id: bare\nphases:\n  - {name: a, instructions: Say it., output_schema: {type: object}}\n"
    (workspace / "bare.yaml").write_text(text)
    told = cli("run", "bare.yaml", "-m", "offline", "--session", "s").err.splitlines()
    assert told[-4:] == [
        "failed: unscripted: no reply is scripted for phase 'a', turn 1 in bare.replies.yaml. "
        "Write this line into it: replies: {a: TEXT}",
        "the offline model has no answer for this call. Write the line that the message ends with into the file named "
        "here, your answer in the place of TEXT; or let placeholders answer: --unscripted ok.",
        "resume it: workbench resume s --model offline",
        "look at it: workbench context s",
    ]
    (workspace / "bare.replies.yaml").write_text("replies: {a: '1'}\n")
    assert "unscripted" not in cli("run", "bare.yaml", "-m", "offline").err
    assert cli("resume", "s", "-m", "offline").code == 1
    assert cli("show", "s", "--json").json["output"] == ""


def test_a_run_that_asked_no_model_is_looked_at_with_show(cli: Cli, workspace: Path) -> None:
    text = "cascade_id: bare\nphases:\n  - {name: a, tool: list_files, inputs: {path: absent}}\n"
    (workspace / "bare.yaml").write_text(text)
    assert cli("run", "bare.yaml", "--session", "s").err.splitlines()[-1] == "look at it: workbench show s"


def test_a_turn_that_the_answers_have_taken_again_runs_no_tool(cli: Cli, workspace: Path) -> None:
    text = "cascade_id: p\nphases: [{name: a, instructions: x, tackle: [read_file], audibles: {}}]\n"
    (workspace / "p.yaml").write_text(text)
    call = "calls: [{tool: read_file, arguments: {path: notes.txt}}], redo: [I leave it.]"
    (workspace / "p.replies.yaml").write_text(f"replies: {{a: [{{{call}}}]}}\n")
    (workspace / "p.json").write_text('{"audibles": [{"phase": "a", "text": "Leave it.", "redo": true}]}')
    ended = cli("run", "p.yaml", "-m", "offline", "--answers", "p.json", "--session", "s")
    assert (ended.code, ended.out) == (0, "I leave it.\n")
    assert "tool   read_file  not run: the turn is repeated" in ended.err
    assert [line.split()[-1] for line in ended.err.splitlines() if " sends " in line] == ["tokens", "redo"]
    frozen = cli("test", "freeze", "s", "--name", "left")
    assert "snapshots/left.json: 2 calls of s, strict" in frozen.out + frozen.err
    assert cli("test", "replay", "left").code == 0


def test_a_phase_without_a_model_names_none_when_it_starts(cli: Cli, workspace: Path) -> None:
    text = "cascade_id: bare\nphases:\n  - {name: look, tool: sql_data, inputs: {query: SELECT 1 AS one}}\n"
    (workspace / "bare.yaml").write_text(text)
    (started,) = [line for line in cli("run", "bare.yaml").err.splitlines() if "look" in line and "phase" in line]
    assert started.split()[1:] == ["look", "phase", "no", "model"]


def test_a_run_ends_with_its_calls_tokens_cost_and_time(cli: Cli) -> None:
    ended = cli("run", "greet.yaml", "--session", "told")
    (line,) = [line for line in ended.err.splitlines() if line.startswith("4 calls")]
    totals = cli("show", "told", "--json").json["totals"]
    numbers = rf"4 calls   in ~{totals['tokens_in']:,}   out {totals['tokens_out']:,}"
    assert re.fullmatch(numbers + r"   cost ~\$[\d.]+ predicted   \S+( ms|s)", line)
    assert not [line for line in cli("run", "greet.yaml", "-q").err.splitlines() if "cost" in line]


def test_a_predicted_cost_holds_the_output_and_a_sum_without_its_price_says_so(cli: Cli, workspace: Path) -> None:
    (workspace / "p.yaml").write_text("cascade_id: p\nphases:\n  - {name: a, model: house/m, instructions: One.}\n")
    (workspace / "p.replies.yaml").write_text("replies: {a: [{text: yes it is}]}\n")
    settings = Path(os.environ["WORKBENCH_CONFIG_DIR"]) / "config.yaml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("prices: {house/m: {input: 1, output: 1000}}\n")
    assert " predicted   " in cli("run", "p.yaml", "--session", "both").err
    totals = cli("show", "both", "--json").json["totals"]
    assert totals["predicted_cost"] == pytest.approx(totals["tokens_in"] / 1e6 + totals["tokens_out"] / 1e3)
    (call,) = json.loads(cli("sql", "SELECT spent, predicted_cost FROM runs", "--format", "json").out)
    assert call["spent"] == call["predicted_cost"] == pytest.approx(totals["predicted_cost"])
    settings.write_text("prices: {house/m: {input: 1}}\n")
    assert " predicted, out unpriced   " in cli("run", "p.yaml", "--session", "half").err
    listed = {line.split()[0]: line for line in cli("runs", "--plain").out.splitlines()}
    assert " ≥~$" in listed["half"]
    assert " ~$" in listed["both"]


def test_a_sum_of_tokens_is_exact_only_where_all_its_parts_are(cli: Cli, workspace: Path) -> None:
    (workspace / "sum.yaml").write_text(
        "cascade_id: sum\nphases:\n  - {name: told, instructions: One.}\n  - {name: guessed, instructions: Two.}\n"
    )
    reply = "text: yes, usage: {input: 7, output: 1}"
    (workspace / "sum.replies.yaml").write_text(f"replies:\n  told: [{{{reply}}}]\n  guessed: [{{text: no}}]\n")
    assert "   in ~" in cli("run", "sum.yaml", "--session", "half").err
    shown = cli("show", "half", "--plain").out.splitlines()
    phases = {line.split()[0]: line.split()[2] for line in shown if line.startswith(("told", "guessed"))}
    assert (phases["told"], phases["guessed"][0]) == ("7", "~")
    assert next(line for line in shown if line.startswith("calls")).split()[3].startswith("~")
    listed = cli("runs", "--plain").out
    assert f" ~{cli('show', 'half', '--json').json['totals']['tokens_in']} " in listed
    assert cli("export", "half", "--as", "html", "-o", "half.html").code == 0
    assert "~" in (workspace / "half.html").read_text("utf-8").partition(" tokens in")[0][-5:]
    (workspace / "sum.replies.yaml").write_text(f"replies:\n  told: [{{{reply}}}]\n  guessed: [{{{reply}}}]\n")
    assert "   in 14 " in cli("run", "sum.yaml").err


@pytest.mark.parametrize(
    "again", [("run", "greet.yaml"), ("run", "greet.yaml", "--reuse", "told"), ("open", "greet.yaml")]
)
def test_the_name_of_a_stored_run_is_refused_for_a_new_one(cli: Cli, again: tuple[str, ...]) -> None:
    assert cli("run", "greet.yaml", "--session", "told", "--until", "answer").code == 0
    ended = cli(*again, "--session", "told")
    assert ended.code == 2
    assert (
        "a run is already named 'told' (stopped): give another with --session, or resume it: workbench resume told"
        in ended.err
    )
    assert len(cli("runs", "--json").json) == 1


def test_the_input_may_be_named_as_a_file_without_a_sign(cli: Cli, workspace: Path) -> None:
    (workspace / "other.json").write_text('{"name": "Cleo"}')
    assert cli("run", "greet.yaml", "--session", "c", "--input", "other.json").code == 0
    assert cli("show", "c", "--json").json["input"] == {"name": "Cleo"}
    wrong = cli("run", "greet.yaml", "--input", "absent.json")
    assert wrong.code == 2
    assert "write a JSON object, or the name of a file that holds one" in wrong.err
    (workspace / "other.json").write_text('{"name": ')
    assert cli("run", "greet.yaml", "--input", "other.json").err.startswith("other.json:1:10: error: not valid JSON")


@pytest.mark.parametrize("variable", ["", "WINDLASS_GRAPH_DIR"])
def test_a_run_leaves_its_graph_where_a_setting_wants_it(
    cli: Cli, workspace: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    assert cli("run", "greet.yaml", "--session", "before", "-q").code == 0
    folder = workspace / ".workbench" / "graphs"
    if variable:
        folder = workspace.parent / "drawn"
        monkeypatch.setenv(variable, str(folder))
    else:
        (workspace / "workbench.yaml").write_text("graphs: true\n")
    assert cli("run", "greet.yaml", "--session", "s", "-q").code == 0
    assert [path.name for path in folder.iterdir()] == ["s.mmd"]
    text = (folder / "s.mmd").read_text()
    assert text == cli("graph", "s", "--as", "mermaid").out
    assert "class n0,n1 success" in text


CURRENT = """\
from workbench import current_call, register_tackle


def whoami() -> str:
    call = current_call()
    return f"{call.session_id} {call.phase} {call.visit} {call.state['k']} {call.input['name']} {list(call.outputs)}"


def judged(content: str) -> dict:
    return {"valid": current_call().phase == "look", "reason": "elsewhere"}


register_tackle("whoami", whoami)
register_tackle("judged", judged)
"""


def test_tools_and_validators_know_the_run_that_calls_them(cli: Cli, workspace: Path) -> None:
    (workspace / "tools").mkdir()
    (workspace / "tools" / "own.py").write_text(CURRENT)
    (workspace / "tackle").mkdir()
    command = "echo $WORKBENCH_SESSION_ID $WORKBENCH_PHASE $WORKBENCH_STATE"
    told = {"tool_id": "told", "type": "shell", "command": command}
    (workspace / "tackle" / "told.tool.json").write_text(json.dumps(told))
    (workspace / "c.yaml").write_text(
        "cascade_id: c\nphases:\n"
        "  - {name: keep, tool: set_state, inputs: {key: k, value: v}}\n"
        "  - {name: ask, tool: whoami}\n  - {name: shell, tool: told}\n"
        "  - {name: look, instructions: x, wards: {post: [judged]}}\n"
    )
    (workspace / "c.replies.yaml").write_text("replies:\n  look:\n    - text: done\n")
    assert cli("trust", "--yes").code == 0
    ended = cli("run", "c.yaml", "--session", "s1", "-q", "--input", '{"name": "Ada"}')
    assert (ended.code, ended.out) == (0, "done\n"), ended.err
    outputs = {phase["name"]: phase["output"] for phase in cli("show", "s1", "--json").json["phases"]}
    assert outputs["ask"] == "s1 ask 1 v Ada ['keep']"
    assert outputs["shell"] == 's1 shell {"k": "v"}'
    with pytest.raises(LookupError):
        workbench.current_call()


def test_a_program_can_ask_the_stored_runs(cli: Cli) -> None:
    cli("run", "greet.yaml", "--session", "a", "-q")
    (run,) = workbench.list_runs().dicts()
    assert run["session_id"] == "a"
    rows = list(workbench.get_session_messages("a").dicts())
    asked = workbench.query_unified("session_id = {s:String} AND node_type = 'agent'", {"s": "a"}, "phase_name", 2)
    assert asked.rows == (("look",), ("look",))
    frame = workbench.query_unified("role = 'assistant' AND node_type = 'agent' ORDER BY seq").to_pandas()
    assert [row["phase_name"] for _, row in frame.iterrows()] == ["look", "look", "look", "answer"]
    assert json.loads(frame["full_request_json"][0])["messages"]
    assert frame[["phase_name", "cost"]].to_json(orient="records", lines=True).count("\n") == 4
    with workbench.index_of() as index:
        assert len(index.get_session_messages("a")) == len(rows)
    assert {row["phase_name"] for row in workbench.get_cascade_costs("greet").dicts()} == {"look", "answer"}
    table = workbench.query_unified("role = 'assistant' AND node_type = 'agent' ORDER BY seq")
    assert [(i, row["phase_name"], bool(json.loads(row["full_request_json"]))) for i, row in table.iterrows()] == [
        *((i, "look", True) for i in range(3)),
        (3, "answer", True),
    ]
    table.to_json("rows.jsonl", orient="records", lines=True)
    written = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert written == json.loads(table.to_json() or "") == list(table.dicts())
    assert len(workbench.get_context("a", "look/1/1/2/1")) > 0
    assert workbench.get_context("a", "look:2").rows == workbench.get_context("a", "look/1/1/2/1").rows
    assert workbench.get_context("a", "look#1:2").rows == workbench.get_context("a", "look/1/1/2/1").rows
    for wrong, message in (("look:9", "has no call 'look:9'"), ("look", "is not a place")):
        with pytest.raises(ValueError, match=message):
            workbench.get_context("a", wrong)
    message = next(row["message_id"] for row in rows if row["node_type"] == "agent")
    assert "Read notes.txt for Ada" in workbench.get_request(message)
    assert any("Hello" in str(row) for row in workbench.search_text("hello, ada").dicts())
    assert len(workbench.get_soundings_analysis("a", "look")) == 0
