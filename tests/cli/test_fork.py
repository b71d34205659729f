"""``fork``, ``run --reuse`` and ``resume --rerun-tools``: new runs from old ones, and nothing overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest
from msgspec.structs import replace

from tests.support.command import Cli
from tests.support.workspaces import CASCADE
from workbench.store.journal import record
from workbench.workspace.project import Project


@pytest.fixture
def stored(cli: Cli) -> Cli:
    """The workspace with one run, ``a``."""
    assert cli("run", "greet.yaml", "--session", "a", "-q").code == 0
    return cli


def sessions(cli: Cli) -> list[str]:
    return [run["session_id"] for run in cli("runs", "--json").json]


def journal(name: str) -> bytes:
    store = Project.at().store
    return b"".join(path.read_bytes() for path in sorted(store.folder(store.find(name)).glob("*.jsonl")))


def test_a_fork_is_a_new_run_that_names_its_parent_and_leaves_it_as_it_was(stored: Cli) -> None:
    before = journal("a")
    forked = stored("fork", "a", "--at", "look:2", "--edit", "4=[Tool result: read_file]\nnothing", "--session", "b")
    assert (forked.code, forked.out) == (0, "Hello, Ada.\n")
    assert "look:1" not in forked.err, "what is replayed is not told again"
    shown = stored("show", "b", "--json").json
    assert (shown["parent"]["session_id"], shown["parent"]["kind"], shown["edited"]) == ("a", "fork", 1)
    told = stored("show", "b", "--plain").out
    assert "fork of a at look:2\n" in told
    assert "edited   look:2   change message 4\n" in told
    assert "   1 answer recorded (in " in told
    statuses = [line.split()[2] for line in told.replace("(edited)", "").splitlines() if line.startswith("  turn")]
    assert statuses == ["recorded", *["done"] * 3]
    assert "  turn 2 (edited)  done" in told
    context = stored("context", "b", "--phase", "look", "--turn", "2", "--plain").out
    assert "changed by hand" in context
    assert journal("a") == before
    events = stored("fork", "a", "--at", "look:3", "--json", "-q").lines
    replayed = [e["data"]["recorded"] for e in events if e["kind"] == "call_finished"]
    assert replayed == [True, True, False, False]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--at", "look:9"], "a: look:9 never ran; look came to turn 3"),
        (["--at", "lok"], "phase 'lok' made no call in this run"),
        (
            ["--at", "look:2", "--edit", "drop:2"],
            "message 2: the task is not sent (rule 11: the task and the tool definitions",
        ),
        (["--at", "look:2", "--edit", "9=x"], "there is no message 9; the context has 4"),
        (["--at", "look:2", "--edit", "nonsense"], "'nonsense' is not an edit"),
        (["--at", "look:1", "--edit", "arguments={"], "the arguments are not valid JSON"),
        (["--at", "look:1", "--edit", "answer=x", "--edit", "result=y"], "belong to different stops"),
        (["--at", "look:1", "--set", "x"], "'x' sets nothing"),
        (["--at", "look:3", "--tool", "7", "--stop", "after_tool"], "has no result of tool call 7"),
        ([], "nowhere to fork"),
        (["--at", "look:1", "--session", "../b"], "is not a session id"),
    ],
)
def test_what_cannot_be_forked_is_said_with_its_place_and_leaves_nothing(
    stored: Cli, arguments: list[str], words: str
) -> None:
    ended = stored("fork", "a", *arguments)
    assert ended.code in (1, 2)
    assert "error: " in ended.err
    assert words in ended.err
    assert sessions(stored) == ["a"]


def test_state_and_every_kind_of_edit_reach_the_fork(stored: Cli) -> None:
    stored("fork", "a", "--at", "answer", "--set", "state.n=3", "--set", "who=Ben", "--session", "s", "-q")
    told = stored("show", "s", "--plain").out
    assert "fork of a at answer\n" in told
    assert "edited   answer   state.n = 3\nedited   answer   state.who = Ben\n" in told
    assert stored("show", "s", "--json").json["state"] == {"n": 3, "who": "Ben"}
    stored("fork", "a", "--at", "look:1", "--edit", "skip=not today", "--session", "k", "-q")
    skipped = stored("show", "k", "--json").json["phases"][0]["calls"][0]["tools"][0]
    assert "not today" in json.dumps(skipped)
    assert "edited   look:1   skip: not today\n" in stored("show", "k", "--plain").out
    stored("fork", "a", "--at", "answer:1", "--edit", "answer=Hi.", "--session", "h", "-q")
    assert stored("show", "h", "--json").json["output"] == "Hi."
    assert "edited   answer:1   answer: Hi.\n" in stored("show", "h", "--plain").out
    stored("fork", "a", "--at", "answer:1", "--edit", "param.temperature=0.5", "--session", "p", "-q")
    assert stored("show", "p", "--json").json["edited"] == 1


def test_a_fork_across_two_definitions_says_so(stored: Cli, workspace: Path) -> None:
    (workspace / "greet.yaml").write_text(CASCADE.replace("Greet them.", "Greet them warmly."))
    assert "has changed since a ran: the recorded text is used" in stored("fork", "a", "--at", "answer").err
    other = stored("fork", "a", "--at", "answer", "--definition", "file", "--session", "f")
    assert "this fork runs another text than a did: greet.yaml as it is now" in other.err
    assert "with another text of the cascade" in stored("show", "f").out
    (workspace / "greet.yaml").write_text(CASCADE.replace("Read notes", "Read the notes"))
    early = stored("fork", "a", "--at", "answer", "--definition", "file", "--session", "g")
    assert early.code == 1
    assert "the replay diverged before answer/1/1/1/1" in early.err
    assert "g" not in sessions(stored)


def test_a_damaged_journal_is_not_forked_and_its_place_is_named(stored: Cli, workspace: Path) -> None:
    store = Project.at().store
    path = next(iter(sorted(store.folder(store.find("a")).glob("*.jsonl"))))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[5] = lines[5].replace(b'"kind"', b'"kimd"', 1)
    path.write_bytes(b"".join(lines))
    ended = stored("fork", "a", "--at", "answer")
    assert ended.code == 5
    assert "cannot be started from" in ended.err
    assert path.name in ended.err
    frozen = stored("test", "freeze", "a", "--name", "x")
    assert frozen.code == 2
    assert frozen.err.startswith("error: this run cannot be frozen: ")
    assert path.name in frozen.err


def test_a_record_that_makes_no_sense_is_named_and_the_rest_of_the_run_is_shown(stored: Cli) -> None:
    store = Project.at().store
    path = next(iter(sorted(store.folder(store.find("a")).glob("*.jsonl"))))
    written = path.read_bytes()
    events = [record.decoded(line) for line in written.splitlines()]
    answered = next(number for number, event in enumerate(events) if event.kind == "call_finished")
    events[answered] = replace(events[answered], data={"message": 12, "added": 7})
    lines = [record.encoded(event) for event in events]
    path.write_bytes(b"".join(lines))
    where, size = sum(map(len, lines[:answered])), len(lines[answered])
    reason = f"record {answered + 1}: 'message' of call_finished is a number and not text ({size} bytes)"
    reason = f"{path.name} damaged at byte {where}: {reason}"
    for command in (("fork", "a", "--at", "answer"), ("run", "greet.yaml", "--reuse", "a")):
        ended = stored(*command)
        assert (ended.code, ended.err.splitlines()[-1]) == (5, f"error: a cannot be started from: {reason}")
    frozen = stored("test", "freeze", "a", "--name", "x")
    lost = len(written) - len(b"".join(lines))
    assert frozen.err == f"error: this run cannot be frozen: {reason}; {path.name} has lost its end ({lost} bytes)\n"
    assert frozen.code == 2
    shown = stored("show", "a")
    assert shown.code == 0
    assert "answer" in shown.out
    assert stored("context", "a", "--at", "look:1").code == 0


def test_a_recording_of_a_later_program_is_told_though_its_name_cannot_be_read(stored: Cli) -> None:
    store = Project.at().store
    run_id = store.find("a")
    path = next(iter(sorted(store.folder(run_id).glob("*.jsonl"))))
    body = json.loads(path.read_bytes().splitlines()[0]) | {"v": 99}
    del body["crc"]
    text = json.dumps(body, separators=(",", ":")).encode()
    written = b'%b,"crc":"%08x"}\n' % (text[:-1], crc32(text))
    path.write_bytes(written)
    ended = stored("fork", "a", "--at", "look")
    reason = (
        f"000001.jsonl damaged at byte 0: format 99 of a later program; this one reads up to 1 ({len(written)} bytes)"
    )
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: no run is named 'a' (of {run_id} the name cannot be read: {reason})\n"
    assert path.read_bytes() == written


def test_a_run_that_was_cut_off_is_forked_as_far_as_it_came(stored: Cli) -> None:
    store = Project.at().store
    path = next(iter(sorted(store.folder(store.find("a")).glob("*.jsonl"))))
    written = path.read_bytes()
    path.write_bytes(written[: len(written) // 2])
    assert stored("fork", "a", "--at", "look:1", "--session", "b").code == 0
    ended = stored("fork", "a", "--at", "answer")
    assert (ended.code, ended.err) == (2, "error: a: phase 'answer' made no call in this run; look did\n")
    frozen = stored("test", "freeze", "a", "--name", "half")
    assert (frozen.code, frozen.out) == (2, "")
    assert frozen.err.startswith(f"error: this run cannot be frozen: {path.name} has lost its end (")


def test_a_run_whose_cascade_is_gone_is_forked_with_its_recorded_text(stored: Cli, workspace: Path) -> None:
    (workspace / "greet.yaml").unlink()
    assert stored("fork", "a", "--at", "look:2", "--session", "b").out == "Hello, Ada.\n"
    ended = stored("fork", "a", "--at", "look:2", "--definition", "file")
    assert (ended.code, ended.err) == (2, "greet.yaml: error: the file of a is no longer there\n")
    ended = stored("run", "greet.yaml", "--reuse", "a")
    assert (ended.code, ended.err) == (2, "greet.yaml: error: no such file\n")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("drop:2", "look:3: the edit breaks the request: message 3: this result answers no call"),
        ("drop:3", "look:3: the edit breaks the request: message 2: the call of read_file"),
    ],
)
def test_an_edit_that_parts_a_call_from_its_result_is_refused_with_the_message(
    cli: Cli, workspace: Path, edit: str, words: str
) -> None:
    (workspace / "greet.yaml").write_text(CASCADE.replace("    tackle:", "    use_native_tools: true\n    tackle:"))
    assert cli("run", "greet.yaml", "--session", "a", "-q").code == 0
    ended = cli("fork", "a", "--at", "look:3", "--edit", edit)
    assert ended.code == 1
    assert words in ended.err
    assert sessions(cli) == ["a"]


def test_a_rerun_stops_at_the_first_changed_request_and_shows_both_with_the_line(stored: Cli, workspace: Path) -> None:
    (workspace / "greet.yaml").write_text(CASCADE.replace("Greet them.", "Greet them warmly."))
    held = stored("run", "greet.yaml", "--reuse", "a", "--session", "b")
    assert held.code == 1
    assert "answer:1 is the first call whose request has changed" in held.err
    assert "greet.yaml:11" in held.err
    assert "Greet them warmly." in held.err
    live = stored("run", "greet.yaml", "--reuse", "a", "--live", "--session", "c")
    assert (live.code, live.out) == (0, "Hello, Ada.\n")
    shown = stored("show", "c", "--json").json
    assert shown["parent"]["kind"] == "rerun"
    events = stored("run", "greet.yaml", "--reuse", "a", "--live", "--json", "-q").lines
    assert [e["data"]["recorded"] for e in events if e["kind"] == "call_finished"] == [True, True, True, False]
    pinned = stored("run", "greet.yaml", "--reuse", "a", "--pin", "answer", "--json", "-q").lines
    assert all(e["data"]["recorded"] for e in pinned if e["kind"] == "call_finished")


def test_a_tool_that_may_have_run_is_not_run_again_unless_asked(stored: Cli, workspace: Path) -> None:
    """The journal ends behind ``tool_started``, as it does when the machine goes down while a tool runs."""
    (workspace / "ask.yaml").write_text(
        "cascade_id: t\nphases:\n  - name: w\n    instructions: Ask.\n    tackle: [linux_shell]\n"
        "    rules: {max_turns: 2}\n    handoffs: []\n"
    )
    (workspace / "ask.replies.yaml").write_text(
        "replies:\n  w:\n    - calls: [{tool: linux_shell, arguments: {command: pwd}}]\n    - text: done\n"
    )
    stored("run", "ask.yaml", "--session", "t", "-q")
    store = Project.at().store
    path = next(iter(sorted(store.folder(store.find("t")).glob("*.jsonl"))))
    lines = path.read_bytes().splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if b'"tool_started"' in line)
    path.write_bytes(b"".join(lines[: last + 1]))
    halted = stored("resume", "t")
    assert halted.code == 1
    assert "linux_shell may have run already" in halted.err
    again = stored("resume", "t", "--rerun-tools")
    assert (again.code, again.out) == (0, "done\n")


NESTS = "cascade_id: nests\nphases: [{name: outer, instructions: Go., sub_cascades: [{ref: inner.yaml}]}]\n"
ASKS = "{name: NAME, instructions: Go., human_input: {type: rating}}"
INNER = f"cascade_id: inner\nphases:\n- {ASKS.replace('NAME', 'one')}\n- {ASKS.replace('NAME', 'two')}\n"


def test_a_nested_run_that_is_resumed_twice_keeps_what_both_stretches_made(cli: Cli, workspace: Path) -> None:
    """So do a test and a re-run of the run that it is inside of."""
    (workspace / "nests.yaml").write_text(NESTS)
    (workspace / "inner.yaml").write_text(INNER)
    (workspace / "nests.replies.yaml").write_text("replies: {one: [{text: a}], two: [{text: b}], outer: [{text: c}]}\n")
    assert cli("run", "nests.yaml", "--session", "n").code == 1
    assert cli("resume", "n", "--answers", '{"one": "3"}').code == 1
    assert cli("resume", "n", "--answers", '{"two": "4"}').code == 0
    assert cli("test", "freeze", "n", "--name", "n").code == 0
    assert cli("test", "run").code == 0
    (workspace / "nests.replies.yaml").unlink()
    again = cli("run", "nests.yaml", "--reuse", "n", "--model", "offline")
    assert (again.code, again.out) == (0, "c\n")
