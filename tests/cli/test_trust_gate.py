"""No way of starting a run lets a folder that nobody has trusted act outside: each is tried, and each can act once a
person has allowed it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import workbench
from tests.support.command import Cli
from workbench.workspace.api import run_cascade

ACT = """\
cascade_id: act
inputs_schema: {word: any}
phases:
  - name: first
    instructions: Act.
    tackle: [evil, declared]
    rules: {max_turns: 4}
  - name: last
    tool: "python:os.mkdir"
    inputs: {path: MARK/function}
"""
REPLIES = """\
replies:
  first:
    - calls: [{tool: evil, arguments: {}}]
    - calls: [{tool: declared, arguments: {}}]
    - text: done
  n:
    - calls: [{tool: act, arguments: {word: x}}]
    - text: done
"""
EVIL = """\
import pathlib
pathlib.Path("MARK/imported").mkdir(exist_ok=True)


def evil() -> str:
    pathlib.Path("MARK/called").mkdir(exist_ok=True)
    return "done"
"""
HOOK = """\
import pathlib
from workbench import register_hook
register_hook("on_phase_start", lambda event: pathlib.Path("MARK/hook").mkdir(exist_ok=True))
"""
DECLARED = {
    "tool_id": "declared",
    "type": "shell",
    "sandbox": False,
    "description": "d",
    "command": "touch MARK/declared",
}
BY_PATH = 'cascade_id: outer\nphases:\n  - {name: n, instructions: x, sub_cascades: [{ref: "%s"}]}\n'
BY_NAME = "cascade_id: outer\nphases:\n  - {name: n, instructions: x, tackle: [act], rules: {max_turns: 2}}\n"


@pytest.fixture
def marks(workspace: Path, tmp_path: Path) -> Path:
    """Where whatever acts leaves a mark; the folder can do all that a manifest knows."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def write(file: Path, text: str) -> None:
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text.replace("MARK", str(marks)))

    for name in ("act", "cascades/act"):
        write(workspace / f"{name}.yaml", ACT)
    for name in ("act", "by_path", "by_name"):
        write(workspace / f"{name}.replies.yaml", REPLIES)
    write(workspace / "tools" / "evil.py", EVIL)
    write(workspace / "tools" / "listen.py", HOOK)
    write(workspace / "cascades" / "declared.tool.json", json.dumps(DECLARED))
    write(workspace / "by_path.yaml", BY_PATH % "cascades/act.yaml")
    write(workspace / "by_name.yaml", BY_NAME)
    return marks


Way = Callable[[Cli], object]
WAYS: dict[str, Way] = {
    "run": lambda cli: cli("run", "act.yaml", "--input", "{}"),
    "fork": lambda cli: cli("fork", "held", "--at", "first:1"),
    "run again": lambda cli: cli("run", "act.yaml", "--input", "{}", "--reuse", "held"),
    "nested, by its file": lambda cli: cli("run", "by_path.yaml"),
    "nested, by its name": lambda cli: cli("run", "by_name.yaml"),
    "from a program": lambda cli: run_cascade("act.yaml", {}, model="offline"),
    "resume": lambda cli: cli("resume", "held"),
}
LOOKS: dict[str, Way] = {
    "check": lambda cli: cli("check", "act.yaml"),
    "trust": lambda cli: cli("trust", "act.yaml", "by_path.yaml"),
    "show": lambda cli: cli("show", "held"),
    "context": lambda cli: cli("context", "held"),
    "replay as a test": lambda cli: (cli("test", "freeze", "held", "--name", "h"), cli("test", "run")),
    "doctor": lambda cli: cli("doctor"),
}


@pytest.fixture
def held(cli: Cli, marks: Path) -> Path:
    """A run that stopped before its first call."""
    assert cli("run", "act.yaml", "--input", "{}", "--session", "held", "--until", "first:1", "-q").code == 0
    return marks


def test_a_phase_that_tries_again_is_refused_once(cli: Cli, workspace: Path) -> None:
    again = ACT[ACT.index("  - name: last") :].replace("inputs:", "retry: {max_attempts: 3}\n    inputs:")
    (workspace / "again.yaml").write_text(f"cascade_id: again\nphases:\n{again}")
    events = cli("run", "again.yaml", "--json").lines
    assert [event["data"]["needs_trust"] for event in events if event["kind"] == "tool_finished"] == [True]


def test_a_pipeline_ends_at_a_command_that_nobody_has_allowed(cli: Cli, workspace: Path) -> None:
    (workspace / "loop.dot").write_text(
        "digraph loop { start -> write -> fan -> run -> meet -> exit  fan -> meet "
        'run -> write [condition="outcome=fail"]'
        " write fan [shape=component] meet [shape=diamond] run [shape=parallelogram, tool_command=ls, max_retries=3] }"
    )
    (workspace / "loop.replies.yaml").write_text("replies: {write: [{text: x}]}")
    ended = cli("run", "loop.dot", "--json")
    tried = [event["phase"] for event in ended.lines if event["kind"] == "tool_finished"]
    assert (ended.code, tried) == (3, ["run"])
    assert "its command does not run, because this folder is not trusted: `workbench trust`" in ended.err


def test_a_byte_order_mark_does_not_hide_a_variable_from_the_question(cli: Cli, workspace: Path) -> None:
    (workspace / ".env").write_bytes(b"\xef\xbb\xbfHIDDEN=1\r\nexport SEEN=2\r\n")
    assert "environment: HIDDEN" in (listed := cli("trust", "greet.yaml").out)
    assert "environment: SEEN" in listed


def test_an_address_in_a_trusted_file_is_named_as_without_effect(cli: Cli, workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=1\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\nno assignment\nNODE_ENV=test\n")
    told = "OPENAI_BASE_URL has no effect: a file cannot say where requests go"
    assert told not in cli("doctor").err, "an untrusted file sets nothing at all"
    cli("trust", "--yes")
    for command in (("doctor",), ("config", "show"), ("run", "greet.yaml")):
        ended = cli(*command)
        assert ended.err.count(told) == 1, command
        assert f"{workspace / '.env'}:3:1: warning: expected NAME=value" in ended.err
        assert "NODE_ENV" not in ended.err


def acted(marks: Path) -> set[str]:
    return {path.name for path in marks.iterdir()}


def test_nothing_acts_that_nobody_has_allowed(cli: Cli, held: Path) -> None:
    for name, way in {**LOOKS, **WAYS}.items():
        way(cli)
        assert acted(held) == set(), name


def test_what_a_person_has_allowed_acts(cli: Cli, held: Path) -> None:
    assert cli("trust", "act.yaml", "--yes").code == 0
    for name, way in WAYS.items():
        way(cli)
        assert acted(held) >= {"called", "declared", "function", "hook"}, name
        for mark in held.iterdir():
            mark.unlink() if mark.is_file() else mark.rmdir()


def test_one_question_covers_the_cascades_that_a_cascade_starts(cli: Cli, marks: Path) -> None:
    assert "python: python:os.mkdir" in cli("trust", "by_path.yaml").out
    assert "python: python:os.mkdir" in cli("trust", "by_name.yaml").out
    assert cli("trust", "by_path.yaml", "--yes").code == 0
    assert "now allowed" not in cli("trust", "by_path.yaml").out
    cli("run", "by_path.yaml")
    assert "function" in acted(marks)


def test_a_folder_that_was_allowed_once_may_not_name_another_function(cli: Cli, marks: Path, workspace: Path) -> None:
    cli("trust", "act.yaml", "--yes")
    (workspace / "other.yaml").write_text(
        f'cascade_id: o\nphases:\n  - {{name: p, tool: "python:os.makedirs", inputs: {{name: "{marks}/other"}}}}\n'
    )
    assert cli("run", "other.yaml").code == 3
    assert "other" not in acted(marks)


def test_a_folder_with_nothing_else_in_it_may_not_call_a_function(cli: Cli, workspace: Path, tmp_path: Path) -> None:
    (workspace / "alone.yaml").write_text(
        f'cascade_id: o\nphases:\n  - {{name: p, tool: "python:os.mkdir", inputs: {{path: "{tmp_path}/x"}}}}\n'
    )
    assert cli("run", "alone.yaml").code == 3
    assert not (tmp_path / "x").exists()


def test_every_live_run_takes_its_tools_from_the_one_place_that_looks_at_trust() -> None:
    """Another place that makes a ``Run`` or a ``Toolbox`` belongs into the lists above, or asks for trust itself."""
    sources = {file: file.read_text() for file in Path(workbench.__file__).parent.rglob("*.py")}

    def where(pattern: str, holds: str) -> set[str]:
        return {file.stem for file, text in sources.items() if holds in text and re.search(pattern, text)}

    assert where(r"\bRun\(\n|= Run\(", "Run(") == {"run_builder", "rerun"}
    assert where(r"\bToolbox\.of\(", "Toolbox.of(") == {"environment"}
    assert where(r"\blive_ports\(project, ", "live_ports(project, ") == {"run_builder"}
    assert where(r"\bsession\.(start|resume|fork|rerun)\(", "session.") == {"running", "editing", "tools"}
    assert where(r"\bif .*\basks_for_trust\(", "asks_for_trust(") == {"running", "editing"}
