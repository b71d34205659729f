"""``workbench test``: what people and programs get from it."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.snapshots.conftest import edit
from tests.support.command import run_cli
from workbench.cli.printer import Printer
from workbench.cli.snapshot_review import TerminalReview
from workbench.snapshots.freeze import Label
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots

MASKED = (
    "call look:3: message 4 (turn 1's result) was masked, is now sent in full "
    "(phases[0].intra_context.mask_observations_after, greet.yaml:8)"
)


def test_a_frozen_run_holds_what_the_format_says(frozen: Path) -> None:
    body = json.loads(frozen.read_text("utf-8"))
    assert list(body) == [
        *("snapshot_name", "description", "captured_at", "session_id", "cascade_file", "input"),
        *("execution", "expectations", "workbench"),
    ]
    assert (body["session_id"], body["cascade_file"], body["description"]) == ("one", "greet.yaml", "says hello")
    (first, *_) = body["execution"]["phases"][0]["turns"]
    assert first["tool_calls"][0]["tool"] == "read_file"
    assert first["tool_calls"][0]["result"].startswith("Ada likes")
    assert json.loads(first["tool_calls"][0]["arguments"]) == {"path": "notes.txt"}
    expected = body["expectations"]
    assert expected["phases_executed"] == ["look", "answer"]
    assert expected["completion_status"] == "success"
    assert expected["routes"][0] == {"at": "look/1", "to": "answer", "rule": "route_to"}
    assert expected["outputs"]["answer"] == "Hello, Ada."
    assert [call["is_error"] for call in expected["tool_calls"]] == [False, True, False]
    assert [row["at"] for row in expected["requests"]] == [
        *("look/1/1/1/1", "look/1/1/2/1", "look/1/1/3/1", "answer/1/1/1/1"),
    ]
    assert all(len(row["digest"]) == 64 and row["tokens"] > 0 for row in expected["requests"])
    assert body["workbench"]["format"] == 1


def test_a_replay_passes_without_the_tools_and_the_replies(frozen: Path) -> None:
    for name in ("notes.txt", "greet.replies.yaml"):
        (frozen.parents[1] / name).unlink()
    ended = run_cli("test", "run", "--json")
    (verdict,) = ended.json
    assert ended.code == 0
    assert (verdict["passed"], verdict["calls_replayed"], verdict["calls_made"]) == (True, 4, 0)
    before = frozen.read_bytes()
    assert run_cli("test", "replay", "greets").code == 0
    assert frozen.read_bytes() == before


def test_verdicts_that_come_from_the_recording_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The validator would refuse the answer now: it is not asked again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_STATE_DIR", str(tmp_path / "state"))
    text = (
        'cascade_id: c\nvalidators: {short: {python: \'result = {"valid": len(content) < 9, "reason": "long"}\'}}\n'
        "phases:\n  - {name: a, instructions: Go., wards: {post: [{validator: short, mode: blocking}]}}\n"
    )
    Path("c.yaml").write_text(text)
    Path("c.replies.yaml").write_text("replies: {a: [{text: brief}]}\n")
    assert run_cli("run", "c.yaml", "-m", "offline", "--session", "one").code == 0
    assert run_cli("test", "freeze", "one", "--name", "judged").code == 0
    assert "passed  judged  1 call, 1 recorded verdict of validators\n" in run_cli("test", "run").out
    (verdict,) = run_cli("test", "run", "--json").json
    assert verdict["verdicts_replayed"] == 1


def test_a_changed_mask_fails_with_the_message_the_rule_and_the_line(frozen: Path) -> None:
    edit(Path("greet.yaml"), "mask_observations_after: 1", "mask_observations_after: 2")
    ended = run_cli("test", "replay", "greets")
    assert ended.code == 1
    assert MASKED in ended.out
    (verdict,) = run_cli("test", "run", "--json").json
    first = verdict["differences"][0]
    assert (first["kind"], first["at"], first["line"]) == ("request", "look/1/1/3/1", 8)


def test_a_failure_lists_all_changed_values_of_the_file_and_a_run_is_frozen_without_a_name(frozen: Path) -> None:
    edit(Path("greet.yaml"), "mask_observations_after: 1", "mask_observations_after: 2")
    assert "since it was frozen" not in run_cli("test", "replay", "greets").out, "the rule says it"
    edit(Path("greet.yaml"), "min_masked_size: 10", "min_masked_size: 9")
    lines = run_cli("test", "replay", "greets").out.splitlines()
    at = lines.index("  changed in greet.yaml since it was frozen:")
    path = "phases[0].intra_context"
    assert [line.strip() for line in lines[at + 1 : at + 3]] == [
        f":8 {path}.mask_observations_after  1 → 2",
        f":8 {path}.min_masked_size  10 → 9",
    ]
    whole = "    intra_context: {mask_observations_after: 2, min_masked_size: 9}\n"
    edit(Path("greet.yaml"), whole, "")
    edit(Path("greet.yaml"), "cascade_id: greet\n", "cascade_id: greet\nmemory: notes\n")
    out = run_cli("test", "replay", "greets").out
    assert f"{path}  removed" in out
    assert "memory  added" in out or "memory  not set → notes" in out
    assert [run_cli("test", "freeze", "one").code for _ in range(2)] == [0, 0]
    assert {file.stem for file in frozen.parent.glob("*.json")} == {"greets", "greet", "greet_2"}


SHAPED = """\
cascade_id: shaped
token_budget: {max_total: 100000, strategy: fail}
phases:
  - name: answer
    instructions: Answer with a number.
    output_schema:
      type: object
      properties: {number: {type: integer, description: "one of the numbers that everybody here knows by heart"}}
    enforce: provider
"""


def test_a_schema_in_the_request_is_counted_once_in_a_replay(greeted: Path) -> None:
    """The budget is that of the request to the token: one that the replay counts as larger would end the run."""
    (greeted / "shaped.yaml").write_text(SHAPED)
    (greeted / "shaped.replies.yaml").write_text("replies: {answer: [{say: '{\"number\": 1}'}]}\n")
    assert run_cli("run", "shaped.yaml", "--session", "wide", "-q").code == 0
    (call,) = run_cli("context", "wide", "--json").json
    edit(greeted / "shaped.yaml", "100000", f"{call['tokens_sent']}, reserve_for_output: 0")
    assert run_cli("run", "shaped.yaml", "--session", "tight", "-q").code == 0
    ended = run_cli("test", "freeze", "tight", "--name", "shaped")
    assert ended.code == 0, ended.err
    assert run_cli("test", "replay", "shaped").code == 0


def test_a_changed_mark_for_the_cache_is_told_with_its_line(greeted: Path) -> None:
    (greeted / "kept.yaml").write_text(
        "cascade_id: kept\nphases:\n  - name: answer\n    instructions: Go.\n    cache_control: {at: [task], ttl: 1h}\n"
    )
    (greeted / "kept.replies.yaml").write_text("replies: {answer: [{say: Gone.}]}\n")
    assert run_cli("run", "kept.yaml", "--session", "kept", "-q").code == 0
    assert run_cli("test", "freeze", "kept", "--name", "kept").code == 0
    assert run_cli("test", "replay", "kept").code == 0
    edit(greeted / "kept.yaml", "1h", "5m")
    ended = run_cli("test", "replay", "kept")
    assert ended.code == 1
    assert "cache_control" in ended.out
    assert "kept.yaml:5" in ended.out


def test_plumbing_looks_at_phases_state_and_status_only(frozen: Path) -> None:
    edit(Path("greet.yaml"), "Greet them.", "Greet them warmly.")
    assert run_cli("test", "run").code == 1
    assert run_cli("test", "run", "--mode", "plumbing").code == 0
    edit(Path("greet.yaml"), "target: answer", "target: refuse")
    assert run_cli("test", "run", "--mode", "plumbing").code == 1


def test_a_route_that_leads_elsewhere_names_what_is_no_longer_called(frozen: Path) -> None:
    edit(Path("greet.yaml"), "tackle: [read_file]", "tackle: []")
    ended = run_cli("test", "replay", "greets")
    assert ended.code == 1
    assert ended.out.splitlines()[1].startswith("  call look:1: message 1 (the tool text) was reworded")
    assert "tool call 1 (read_file) fails now" in ended.out


def test_only_chosen_snapshots_run(frozen: Path) -> None:
    assert run_cli("test", "freeze", "one", "--name", "other").code == 0
    assert [v["name"] for v in run_cli("test", "run", "-k", "gre", "--json").json] == ["greets"]
    assert [v["name"] for v in run_cli("test", "run", "-k", "o*", "--json").json] == ["other"]
    ended = run_cli("test", "run", "-k", "nothing")
    assert (ended.code, ended.out) == (2, "")
    assert "error: no snapshot matches 'nothing' (there are: greets, other)" in ended.err


def test_the_list_says_what_each_file_is(frozen: Path) -> None:
    assert run_cli("test", "freeze", "one", "--name", "lost").code == 0
    edit(frozen.with_name("lost.json"), '"cascade_file": "greet.yaml"', '"cascade_file": "gone.yaml"')
    frozen.with_name("bad.json").write_text('{"snapshot_name": "bad",')
    frozen.with_name("else.json").write_text("[1, 2]")
    frozen.with_name("folder.json").mkdir()
    frozen.with_name("link.json").symlink_to("nowhere")
    os.mkfifo(frozen.with_name("pipe.json"))
    listed = {row["name"]: row for row in run_cli("test", "list", "--json").json}
    assert {name: row["kind"] for name, row in listed.items()} == {
        **{"bad": "unreadable", "greets": "strict", "lost": "orphaned"},
    }
    assert listed["greets"]["calls"] == 4
    assert listed["bad"]["problem"].startswith("snapshots/bad.json:1:25: error: the file is truncated")
    assert "says hello" in run_cli("test", "list").out
    frozen.with_name("empty.json").write_text("\n")
    ended = run_cli("test", "run", "--json")
    assert {verdict["name"] for verdict in ended.json} == {"bad", "empty", "greets", "lost"}
    assert "else" not in ended.out + ended.err


def test_a_run_that_was_stopped_cannot_be_frozen(greeted: Path) -> None:
    assert run_cli("run", "greet.yaml", "--session", "half", "--until", "answer", "-q").code == 0
    ended = run_cli("test", "freeze", "half", "--name", "half")
    assert ended.code == 2
    assert ended.err.startswith("error: this run was stopped")
    assert not (greeted / "snapshots").exists()


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden", "", "x" * 101])
def test_a_name_that_is_no_file_name_is_refused(greeted: Path, name: str) -> None:
    assert run_cli("test", "freeze", "one", "--name", name).code == 2
    assert not (greeted / "snapshots").exists()


def test_a_file_that_is_no_snapshot_is_never_replaced(greeted: Path) -> None:
    file = greeted / "snapshots" / "mine.json"
    file.parent.mkdir()
    file.write_text("[1, 2]")
    assert run_cli("test", "freeze", "one", "--name", "mine").code == 2
    assert file.read_text() == "[1, 2]"


def test_a_folder_that_is_a_file_is_named(greeted: Path) -> None:
    (greeted / "snapshots").write_text("not a folder")
    ended = run_cli("test", "freeze", "one", "--name", "x")
    assert ended.code == 2
    assert ended.err.startswith("snapshots/x.json: error: cannot be written: ")
    assert run_cli("test", "run").code == 0


def keys(pressed: str) -> Callable[[], str]:
    return iter(pressed).__next__


def reviewed(pressed: str) -> tuple[str, int]:
    """What a review prints, and how many snapshots stay changed."""
    out = io.StringIO()
    with Snapshots(Project.at()) as snapshots:
        changed = [v for v in map(snapshots.replay, snapshots.files()) if not v.passed]
        left = TerminalReview(snapshots, Printer(stream=out), keys(pressed)).go(changed)
    return out.getvalue(), len(left)


def test_a_review_writes_what_is_accepted_and_nothing_else(frozen: Path) -> None:
    assert run_cli("test", "freeze", "one", "--name", "other").code == 0
    edit(Path("greet.yaml"), "mask_observations_after: 1", "mask_observations_after: 2")
    before = frozen.read_bytes()
    text, left = reviewed("rs")
    assert (left, frozen.read_bytes()) == (2, before)
    assert "  look:3   request changed: 1 message sent in full again\n" in text
    assert "    message 4 (turn 1's result) was masked, is now sent in full\n" in text
    assert "      greet.yaml:8  was 1, is 2  phases[0].intra_context.mask_observations_after\n" in text
    assert "routes, checks, tool calls, state, outputs, status: same" in text
    assert "1 of 2   greets   changed   greet.yaml" in text
    assert text.endswith("0 accepted, 1 rejected, 1 skipped\n")
    assert "  greets is rejected: it stays as it is\n" in text
    assert "  other is skipped\n" in text
    text, left = reviewed("dA")
    assert left == 0
    whole = text.partition("d whole differences")[2]
    assert re.search(r"^ +-\[read_file result", whole, re.M), "the text that was sent"
    assert re.search(r"^ +\+\$?.*short", whole, re.M), "the text that is sent now"
    assert run_cli("test", "run").code == 0
    assert json.loads(frozen.read_text())["description"] == "says hello"


def test_what_has_no_answer_cannot_be_accepted(frozen: Path) -> None:
    edit(Path("greet.yaml"), "name: answer", "name: reply")
    edit(Path("greet.yaml"), "target: answer", "target: reply")
    before = frozen.read_bytes()
    text, left = reviewed("a")
    assert (left, frozen.read_bytes()) == (1, before)
    assert "cannot be accepted" in text


def test_a_changed_text_points_at_the_line_inside_the_block_that_differs(greeted: Path) -> None:
    file = greeted / "greet.yaml"
    edit(file, "instructions: Greet them.", "instructions: |\n      Greet them.\n      Be short.\n      Be kind.")
    assert run_cli("run", "greet.yaml", "--session", "block", "-q").code == 0
    assert run_cli("test", "freeze", "block", "--name", "block").code == 0
    edit(file, "Be kind.", "Be very kind.")
    wanted = file.read_text().splitlines().index("      Be very kind.") + 1
    (changed,) = run_cli("test", "review", "-k", "block", "--json").json
    assert changed["differences"][0]["line"] == wanted


def test_without_a_terminal_a_review_prints_and_changes_nothing(frozen: Path) -> None:
    assert run_cli("test", "review").code == 0
    edit(Path("greet.yaml"), "Greet them.", "Greet them warmly.")
    before = frozen.read_bytes()
    assert (run_cli("test", "review").code, frozen.read_bytes()) == (1, before)
    (changed,) = run_cli("test", "review", "--json").json
    assert changed["differences"][0]["words"].startswith("call answer:1: message 3 (the task) was reworded")


def test_secrets_are_replaced_before_anything_is_written(
    greeted: Path, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "zq8-Vt7-lamp-Kx42m9"
    edit(greeted / "notes.txt", "short", f"{secret} short")
    edit(greeted / "greet.yaml", "Greet them.", f"Greet them, {secret}.")
    assert run_cli("run", "greet.yaml", "--session", "two", "-q").code == 0
    monkeypatch.setenv("HOUSE_TOKEN", secret)
    ended = run_cli("test", "freeze", "two", "--name", "kept")
    assert ended.code == 0, ended.err
    assert "secrets were replaced" in ended.err
    text = (greeted / "snapshots" / "kept.json").read_text("utf-8")
    assert secret not in text
    assert "[redacted HOUSE_TOKEN]" in text
    assert run_cli("test", "run").code == 0


def test_values_of_the_env_file_are_secrets_also_in_a_folder_that_nobody_trusts(greeted: Path) -> None:
    secret = "zq8-Vt7-lamp-Kx42m9"
    (greeted / ".env").write_text(f"HOUSE_TOKEN={secret}\n")
    edit(greeted / "notes.txt", "short", f"{secret} short")
    (greeted / "greet.input.json").write_text(json.dumps({"name": secret}))
    assert run_cli("run", "greet.yaml", "--session", "two", "-q").code == 0
    assert run_cli("test", "freeze", "two", "--name", "kept").code == 0
    assert "[redacted HOUSE_TOKEN]" in (greeted / "snapshots" / "kept.json").read_text("utf-8")
    files = [path for path in greeted.rglob("*.json*") if path.name != "greet.input.json"]
    assert [path for path in files if secret in path.read_text("utf-8")] == []


def test_a_description_is_searched_for_secrets_too(greeted: Path) -> None:
    key = "sk-" + "a1B2c3D4e5" * 3
    assert run_cli("test", "freeze", "one", "--name", "kept", "--description", f"with {key}").code == 0
    assert key not in (greeted / "snapshots" / "kept.json").read_text("utf-8")


def test_a_label_knows_its_file() -> None:
    assert Label("a-b.c_1").name == "a-b.c_1"


def test_a_change_that_goes_on_is_told_once(frozen: Path) -> None:
    edit(Path("greet.yaml"), "Read notes.txt", "Read all of notes.txt")
    text, _ = reviewed("dq")
    assert "  look:2   request changed as in look:1\n" in text
    assert "  look:3   request changed as in look:1\n" in text
    assert text.count('"Read notes.txt for Ada.') == text.count("  look:1   request changed: ")


def test_other_programs_learn_which_line_changed_the_run(frozen: Path, greeted: Path) -> None:
    edit(greeted / "greet.yaml", "mask_observations_after: 1", "mask_observations_after: 2")
    ended = run_cli("test", "run", "--format", "github")
    assert ended.code == 1
    assert ended.out.startswith("::error file=greet.yaml,line=8,")
    assert "title=workbench snapshot-difference::greets: call look:3" in ended.out
    (result,) = run_cli("test", "run", "--format", "sarif").json["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 8
    report = ElementTree.fromstring(run_cli("test", "run", "--format", "junit").out)
    assert report.find(".//testcase[@name='greets']/failure") is not None


def test_snapshots_are_validated_without_a_replay(frozen: Path) -> None:
    assert run_cli("test", "validate").out == "valid    greets\n"
    edit(Path("greet.yaml"), "max_turns: 3", "max_turns: three")
    said = run_cli("test", "validate", "greets", "--json")
    (found,) = said.json
    assert (said.code, found["valid"]) == (1, False)
    assert "max_turns" in found["problem"]
    Path("greet.yaml").unlink()
    assert "orphaned: the cascade greet.yaml does not exist any more" in run_cli("test", "validate").out
    assert run_cli("test", "validate", "nope").code == 2


def test_verbose_tells_what_was_compared(frozen: Path) -> None:
    for command in (("test", "run", "--verbose"), ("test", "replay", "greets", "-v")):
        said = run_cli(*command)
        assert said.code == 0
        assert "phases: look > answer" in said.out
        assert "4 requests" in said.out
