"""The shipped examples: sound, runnable on a bare machine, and showing what they are meant to show."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Cli, run_cli
from tests.support.workspaces import alone
from workbench.context.strategy import parse
from workbench.language.load import load
from workbench.resources import folder
from workbench.workspace.folders import Folders
from workbench.workspace.home import copy_examples, demo_at, example_files

EXAMPLES = [file.name for file in example_files(folder("cascades"))]
LATENCY = re.compile(r"^defaults: \{latency: [0-9.]+\}$", re.MULTILINE)
OF_ONE_REPLY = re.compile(r"(?<=^      )latency: [0-9.]+$", re.MULTILINE)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the examples in a workspace for this module, with replies that come at once."""
    home = tmp_path_factory.mktemp("examples")
    copy = home / "work" / "cascades"
    shutil.copytree(folder("cascades"), copy, ignore=shutil.ignore_patterns(".workbench"))
    for replies in copy.glob("*.replies.yaml"):
        text, count = LATENCY.subn("defaults: {latency: 0}", replies.read_text("utf-8"))
        assert count == 1, f"{replies.name} says how long its replies take"
        replies.write_text(OF_ONE_REPLY.sub("latency: 0", text), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, home, home / "work")
        yield copy


Run = dict[str, Any]
Ran = Callable[[str], Run]


@pytest.fixture(scope="module")
def ran(examples: Path) -> Ran:
    """The run of an example, as ``show --json`` gives it. Each example runs once; its session has the file's name."""

    @cache
    def run(name: str) -> Run:
        answers = f"cascades/{name.partition('.')[0]}.answers.json"
        more = ("--answers", answers) if Path(answers).exists() else ()
        ended = run_cli("run", f"cascades/{name}", "--session", name, "-q", *more)
        assert ended.code == 0, ended.err
        shown: Run = run_cli("show", name, "--json").json
        assert ended.out.rstrip("\n") == shown["output"]
        return shown

    return run


def tools(run: Run, status: str = "") -> list[str]:
    """Names of the tools that were called; those with a status, if given."""
    calls = [call for phase in run["phases"] for call in phase["calls"]]
    return [tool["tool"] for call in calls for tool in call["tools"] if status in ("", tool["status"])]


def test_each_of_them_has_a_frozen_run_but_the_one_that_is_a_tool() -> None:
    frozen = {file.stem for file in (folder("cascades").parent / "snapshots").glob("*.json")}
    assert {name.partition(".")[0] for name in EXAMPLES} - frozen == {"five_whys"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_check_has_nothing_to_say(examples: Path, name: str) -> None:
    stem = name.partition(".")[0]
    ended = run_cli("check", f"cascades/{name}", f"cascades/{stem}.replies.yaml")
    assert (ended.code, ended.out) == (0, "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_reply_is_scripted_and_no_secret_is_seen(ran: Ran, examples: Path, name: str) -> None:
    run = ran(name)
    assert run["status"] == "success"
    answers = [call["answer"] for phase in run["phases"] for call in phase["calls"]]
    assert not [answer for answer in answers if answer.startswith("[offline]")]
    assert [warning for warning in run["warnings"] if warning["code"] != "budget"] == []


def test_log_triage_finds_the_failure_and_routes_it(ran: Ran, examples: Path) -> None:
    run = ran("log_triage.yaml")
    assert [phase["name"] for phase in run["phases"]] == ["intake", "triage", "crash"]
    assert (run["phases"][1]["route"], run["phases"][1]["route_rule"]) == ("crash", "route_to")
    assert tools(run, "failed") == []
    log = (examples / "data/checkout/checkout.log").read_text("utf-8")
    for time in re.findall(r"- (\d\d:\d\d:\d\d)  ", run["output"]):
        assert f"T{time}." in log, f"the time line names {time}, which is in the log"
    last = run_cli("context", "log_triage.yaml", "--at", "triage:6", "--json").json[0]
    assert [entry["action"] for entry in last["entries"] if entry["kind"] == "result"].count("masked") >= 2


def test_the_same_example_runs_from_its_own_folder(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(examples)
    assert run_cli("run", "log_triage.yaml", "--session", "own", "-q").code == 0
    assert tools(run_cli("show", "own", "--json").json, "failed") == []


def test_diff_review_repairs_its_answer_in_a_second_attempt(ran: Ran, examples: Path) -> None:
    run = ran("diff_review.yaml")
    risks = next(phase for phase in run["phases"] if phase["name"] == "risks")
    assert [check["valid"] for check in risks["checks"]] == [False, True]
    assert "'critical' is not one of" in risks["checks"][0]["reason"]
    changed = (examples / "data/retry_queue.diff").read_text("utf-8")
    for file in run["state"]["files"]:
        assert f"+++ b/{file}" in changed
    (verdict,) = run_cli("context", "diff_review.yaml", "--phase", "verdict", "--json").json
    assert [entry["from"] for entry in verdict["entries"]] == ["↪ risks.output", "↪ tests.output", "task"]


def test_csv_questions_answers_with_real_numbers(ran: Ran, examples: Path) -> None:
    run = ran("csv_questions.json")
    assert Counter(tools(run)) == {"smart_sql_run": 6}
    assert tools(run, "failed") == []
    results = "\n".join(tool["result"] for call in run["phases"][0]["calls"] for tool in call["tools"])
    for figure in ("302", "296", "496.75", "509.85", "578"):
        assert figure in results
        assert figure in run["phases"][0]["output"]


def test_refund_charts_hands_on_the_images_that_each_phase_is_to_see(ran: Ran, examples: Path) -> None:
    run = ran("refund_charts.yaml")
    assert Counter(tools(run)) == {"smart_sql_run": 2, "create_chart": 3}
    assert tools(run, "failed") == []
    results = "\n".join(tool["result"] for call in run["phases"][0]["calls"] for tool in call["tools"])
    assert re.search(r"trail lamp +\| 61 +\| 11", results)
    seen = {
        call["at"].partition("/")[0]: [entry["from"] for entry in call["entries"] if "images" in entry["from"]]
        for call in run_cli("context", "refund_charts.yaml", "--json").json
    }
    assert (seen["critique"], seen["caption"]) == (["↪ draw.images"], ["↪ critique.images"])
    images = sorted(path.name for path in (examples.parent / ".workbench/images/refund_charts.yaml/draw").iterdir())
    assert images == ["image_0.png", "image_1.png"]


def test_debug_agent_masks_old_results_and_pays_for_it(ran: Ran, examples: Path) -> None:
    run = ran("debug_agent.yaml")
    calls = run["phases"][0]["calls"]
    assert len(calls) >= 12
    assert {call["grade"] for call in calls} == {"exact"}
    assert tools(run, "failed") == ["read_file"], "one wrong file name, so that an error can be seen to stay"
    sent, full = calls[-1]["tokens_sent"], calls[-1]["tokens_full"]
    assert sent < 0.6 * full
    last = run_cli("context", "debug_agent.yaml", "--at", f"investigate:{len(calls)}", "--json").json[0]
    (error,) = [entry for entry in last["entries"] if entry["is_error"]]
    assert error["action"] == "kept"
    assert last["forecast"]["cached"] < calls[-2]["tokens_sent"], "masking broke the cached prefix"


def test_debug_agent_sends_less_and_costs_more_than_without_masking(ran: Ran, examples: Path) -> None:
    ran("debug_agent.yaml")

    def totals(*options: str) -> tuple[int, float]:
        shown = run_cli("context", "debug_agent.yaml", "--phase", "investigate", "--json", *options).json
        return sum(call["tokens_sent"] for call in shown), sum(call["predicted_cost"] for call in shown)

    masked, everything, batches = totals(), totals("-s", "everything"), totals("-s", "in batches")
    assert masked[0] < 0.7 * everything[0]
    assert masked[1] > 1.1 * everything[1]
    assert batches[0] < 0.8 * everything[0]
    assert batches[1] < everything[1]


def test_debug_agent_offers_strategies_that_exist(examples: Path) -> None:
    cascade = load((examples / "debug_agent.yaml").read_text("utf-8")).cascade
    assert cascade is not None
    assert len(cascade.strategies) >= 3
    for spec in cascade.strategies.values():
        parse(spec)


def test_router_retries_an_answer_that_is_too_short(ran: Ran, examples: Path) -> None:
    run = ran("router.yaml")
    assert [phase["name"] for phase in run["phases"]] == ["read", "repair", "file"]
    repair = run["phases"][1]
    assert [(check["name"], check["valid"]) for check in repair["checks"]] == [
        ("length_check", False),
        ("length_check", True),
        ("keyword_validator", True),
    ]
    assert run["state"] == {"customer": "Ben Okafor", "product": "trail lamp, wide beam"}
    (turn, *_) = run_cli("context", "router.yaml", "--at", "repair/1/1/2/1", "--json").json
    assert any(entry["message"]["content"].startswith("Turn 2 of 2:") for entry in turn["entries"])


def test_firmware_brief_sends_what_the_selector_chose(ran: Ran, examples: Path) -> None:
    ran("firmware_brief.yaml")
    selection, brief = run_cli("context", "firmware_brief.yaml", "--phase", "brief", "--json").json
    assert "[9] user, read turn 4, 241 tokens: read_file gave: # Support handbook" in str(selection["entries"])
    chosen = [entry["from"] for entry in brief["entries"] if entry["why"].startswith("chosen by")]
    assert chosen == ["↪ read turn 2", "↪ read turn 2 read_file", "↪ read turn 4 read_file"]
    again = run_cli("context", "firmware_brief.yaml", "--at", "brief:1", "-s", "by words", "--json").json[0]
    assert again["tokens_sent"] > brief["tokens_sent"]


def test_help_desk_cites_the_pages_and_its_second_run_remembers_the_first(ran: Ran, examples: Path) -> None:
    run = ran("help_desk.yaml")
    assert tools(run, "failed") == []
    results = [tool["result"] for call in run["phases"][0]["calls"] for tool in call["tools"]]
    assert "[maps.md#2] cascades/data/help/maps.md lines 7-15" in results[1]
    assert run_cli("run", "cascades/help_desk.yaml", "--session", "again", "-q").code == 0
    again = run_cli("show", "again", "--json").json
    recalled = again["phases"][0]["calls"][0]["tools"][0]["result"]
    assert "answer turn 1 · assistant · run help_desk.yaml" in recalled
    assert "You do not have to buy your maps again" in recalled


def test_the_other_branch_of_the_router_asks_a_person(examples: Path) -> None:
    replies = (examples / "router.replies.yaml").read_text("utf-8").replace("target: repair", "target: refund")
    (examples / "refund.replies.yaml").write_text(replies, "utf-8")
    shutil.copy(examples / "router.yaml", examples / "refund.yaml")
    shutil.copy(examples / "router.input.json", examples / "refund.input.json")
    (examples / "answers.json").write_text('{"refund": "No, wait five days."}')
    ended = run_cli("run", "cascades/refund.yaml", "--session", "refund", "-q", "--answers", "cascades/answers.json")
    assert ended.code == 0, ended.err
    run = run_cli("show", "refund", "--json").json
    assert [phase["name"] for phase in run["phases"]] == ["read", "refund", "file"]
    assert tools(run)[-1] == "ask_human"


def test_notice_is_sent_back_by_a_schema_a_judge_and_a_check(ran: Ran, examples: Path) -> None:
    run = ran("notice.yaml")
    failed = [check["name"] for phase in run["phases"] for check in phase["checks"] if not check["valid"]]
    assert failed == ["output_schema", "plain_words", "length_check"]
    assert run["state"] == {"phone": "0800 555 010"}
    retry = run_cli("context", "notice.yaml", "--at", "draft/1/2/1/1", "--json").json[0]
    assert "A passenger stumbled: " in str(retry["entries"][-1])


def test_nightly_asks_a_model_only_above_the_limit(ran: Ran, examples: Path) -> None:
    run = ran("nightly.yaml")
    assert [phase["name"] for phase in run["phases"]] == ["totals", "decide", "look", "report"]
    assert json.loads(run["phases"][1]["output"])["_route"] == "alarm"
    levels = [tool["sandbox"] for call in run["phases"][2]["calls"] for tool in call["tools"]]
    assert [level == "cache" for level in levels] == [False, False, False, True, False]
    assert [warning["code"] for warning in run["warnings"]] == ["budget"]
    last = run_cli("context", "nightly.yaml", "--at", "look:5", "--json").json[0]
    assert {"kept", "masked", "dropped"} <= {entry["action"] for entry in last["entries"]}
    calm = '{"first": "2026-01-05", "last": "2026-01-20", "limit": "0.5"}'
    assert run_cli("run", "cascades/nightly.yaml", "--session", "calm", "-q", "--input", calm).code == 0
    assert [phase["name"] for phase in run_cli("show", "calm", "--json").json["phases"]][2:] == ["calm", "report"]


def test_postmortem_runs_cascades_inside_beside_and_as_a_tool(ran: Ran, examples: Path) -> None:
    run = ran("postmortem.yaml")
    assert run["state"] == {"began": "09:04", "ended": "09:19"}
    assert tools(run) == ["five_whys", "read_file"]
    inside = [each for each in run_cli("runs", "--all", "--json").json if each["parent_session"] == "postmortem.yaml"]
    assert sorted(each["session_id"] for each in inside) == [f"postmortem.yaml_{k}_0" for k in ("async", "sub", "tool")]
    assert {each["status"] for each in inside} == {"success"}


def test_status_note_is_not_put_online_before_its_check_has_passed(ran: Ran) -> None:
    run = ran("status_note.dot")
    assert run["status"] == "success"
    ends = [(phase["name"], phase["status"], phase["route"], phase["route_rule"]) for phase in run["phases"]]
    assert {branch for branch in (phase["branch"] for phase in run["phases"]) if branch} == {
        "look.times",
        "look.impact",
        "look.cause",
    }
    assert ("look", "success", "facts", "the branches meet here") in ends
    assert ("done", "success", "draft", "goal gate 'check' is fail: its retry_target") in ends
    assert [route for name, _, route, _ in ends if name == "sign_off"] == ["page", "draft", "page"]
    assert [phase["visit"] for phase in run["phases"] if phase["name"] == "draft"] == [1, 2, 3]
    assert run_cli("run", "cascades/status_note.dot", "--session", "hurried", "-q", "--auto-approve").code == 0
    hurried = [
        phase["visit"] for phase in run_cli("show", "hurried", "--json").json["phases"] if phase["name"] == "draft"
    ]
    assert hurried == [1, 2], "the check sends it back, whoever approves"


def test_shipping_change_sends_fewer_tokens_and_pays_more_with_a_summary(ran: Ran) -> None:
    ran("shipping_change.dot")
    mend = run_cli("context", "shipping_change.dot", "--at", "mend:1", "--json").json[0]
    assert 'thread "work" by subgraph (phase before: review): read, design, patch' in mend["notes"]
    assert mend["forecast"]["cached"] > 2_000, "the thread is in the cache from one node to the next"
    trial = run_cli(
        "sweep", "shipping_change.dot", "-s", "fidelity:compact", "--live", "fidelity:compact", "-y", "--json"
    )
    assert trial.code == 0, trial.err
    (summary,) = [each for each in run_cli("runs", "--json").json if each["session_id"].startswith("shipping_change-")]
    full = run_cli("show", "shipping_change.dot", "--json").json
    assert (summary["calls"], len([c for p in full["phases"] for c in p["calls"]])) == (15, 12)


def test_slogans_weighs_candidates_and_refines_the_winner(ran: Ran, examples: Path) -> None:
    ran("slogans.yaml")
    first, second = run_cli("candidates", "slogans.yaml", "--json").json["contests"][0]["rounds"]
    assert [c["status"] for c in first["candidates"]] == ["success", "success", "failed", "success", "success"]
    assert len({c["model"] for c in first["candidates"]}) == 3
    assert first["evaluation"]["frontier"] == [0, 1, 3, 4], "each costs more than the one before, and is better"
    best, next_best = first["candidates"][4], first["candidates"][3]
    assert best["won"]
    assert best["cost"] > 9 * next_best["cost"]
    assert [(c["number"], c["won"]) for c in second["candidates"]] == [("s4", False), ("r1.0", True), ("r1.1", False)]


def test_the_tour_runs_without_a_terminal_in_a_folder_of_its_own(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "tour"
    ended = cli("demo", "router", "--folder", target, "--headless")
    assert ended.code == 0
    assert f"the examples are in {target}" in ended.err
    assert ended.out.startswith("Customer: Ben Okafor")
    assert (target / ".workbench" / "journal").is_dir()


def test_a_tour_remembers_where_the_earlier_one_was(cli: Cli, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for target in (first, second):
        assert cli("demo", "router", "--folder", target, "--headless").code == 0
    folders = Folders.of(os.environ)
    found = demo_at(folders, second)
    assert found is not None
    assert found.earlier == first
    assert demo_at(folders, tmp_path) is None


def test_the_tour_never_overwrites_what_is_there(tmp_path: Path) -> None:
    target = tmp_path / "tour"
    target.mkdir()
    (target / "router.yaml").write_text("mine")
    copy_examples(target)
    assert (target / "csv_questions.json").is_file()
    assert (target / "router.yaml").read_text() == "mine"


def test_an_example_that_is_not_there(cli: Cli) -> None:
    ended = cli("demo", "nothing")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: no example 'nothing' (there are csv_questions, ")
