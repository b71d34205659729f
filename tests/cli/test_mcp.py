"""Tools of real MCP servers in runs: chosen, trusted, journaled, replayed without a connection."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import plain_mcp
from tests.support.command import Cli
from tests.support.extras import needs

needs("mcp_server_time", "mcp_server_git", extra="dev")

CASCADE = """\
cascade_id: clock
mcp:
  time: {{command: [sh, -c, 'echo x >> starts; exec "$@"', sh, {command}]}}
phases:
  - name: ask
    instructions: What time is it in Paris?
    tackle: ["time__*"]
    rules: {{max_turns: 2}}
  - name: convert
    tool: time__convert_time
    inputs: {{source_timezone: Europe/Paris, time: "12:00", target_timezone: Asia/Tokyo}}
"""
REPLIES = """\
replies:
  ask:
    - say: I look.
      calls: [{tool: time__get_current_time, arguments: {timezone: Europe/Paris}}]
    - text: It is late.
"""


REAL = f"{sys.executable}, -m, mcp_server_time"
PLAIN = f"{sys.executable}, -I, -S, {Path(plain_mcp.__file__)}"


def clock_with(workspace: Path, command: str) -> Path:
    (workspace / "clock.yaml").write_text(CASCADE.format(command=command))
    (workspace / "clock.replies.yaml").write_text(REPLIES)
    return workspace


@pytest.fixture
def clock(workspace: Path) -> Path:
    """A workspace whose cascade asks a server that starts at once."""
    return clock_with(workspace, PLAIN)


def starts(folder: Path) -> int:
    file = folder / "starts"
    return len(file.read_text().split()) if file.exists() else 0


def test_a_server_that_nobody_has_allowed_is_not_started(cli: Cli, clock: Path) -> None:
    ended = cli("run", "clock.yaml", "-m", "offline", "--session", "s")
    assert ended.code == 3, ended.err
    assert "MCP server 'time': it is not allowed to start here yet" in ended.err
    assert starts(clock) == 0
    asked = cli("trust", "clock.yaml")
    assert asked.code == 3
    assert "command: MCP server 'time': sh -c" in asked.out


@pytest.mark.parametrize("command", [PLAIN, pytest.param(REAL, marks=pytest.mark.proof)], ids=["plain", "real"])
def test_tools_of_a_server_run_once_and_are_replayed_without_it(cli: Cli, workspace: Path, command: str) -> None:
    clock = clock_with(workspace, command)
    assert cli("trust", "clock.yaml", "--yes").code == 0
    ended = cli("run", "clock.yaml", "-m", "offline", "--session", "s")
    assert ended.code == 0, ended.err
    assert starts(clock) == 1, "one connection for all phases"
    run = cli("show", "s", "--json").json
    (called,) = [tool for call in run["phases"][0]["calls"] for tool in call.get("tools", [])]
    assert (called["tool"], called["sandbox"]) == ("time__get_current_time", "mcp server")
    assert '"timezone": "Europe/Paris"' in called["result"]
    assert "Asia/Tokyo" in run["phases"][1]["output"]
    system = cli("context", "s", "--at", "ask:1", "--text").out
    assert "**time__get_current_time**" in system
    assert command == PLAIN or "- timezone (str) (required): IANA timezone name" in system

    assert cli("test", "freeze", "s", "--name", "clock").code == 0
    (clock / "workbench.yaml").write_text("mcp: {other: /no/such/program}\n")
    assert cli("test", "run").code == 0
    assert starts(clock) == 1, "a replay makes no connection"


def test_the_tools_of_a_server_can_be_listed_without_a_run(cli: Cli, clock: Path) -> None:
    assert cli("mcp").out == ""
    untrusted = cli("mcp", "clock.yaml", "--json")
    assert (untrusted.code, untrusted.json[0]["needs_trust"], starts(clock)) == (3, True, 0)
    assert cli("trust", "clock.yaml", "--yes").code == 0
    listed = cli("mcp", "clock.yaml")
    assert listed.code == 0
    assert "  time__convert_time      Convert time between timezones  (reads only)\n" in listed.out
    (clock / "workbench.yaml").write_text("mcp: {gone: /no/such/program}\n")
    assert cli("mcp").code == 3, "it is trusted where a cascade uses it"


def test_a_server_that_cannot_start_fails_the_phase_and_the_run_goes_on_when_it_can(cli: Cli, clock: Path) -> None:
    text = (clock / "clock.yaml").read_text()
    (clock / "clock.yaml").write_text(text.replace("exec ", "test -e here || { echo no licence >&2; exit 1; }; exec "))
    assert cli("trust", "clock.yaml", "--yes").code == 0
    ended = cli("run", "clock.yaml", "-m", "offline", "--session", "s")
    assert ended.code != 0
    assert "MCP server 'time': it ended before it had answered; its stderr ends: no licence" in ended.err
    (clock / "here").touch()
    resumed = cli("resume", "s", "-m", "offline")
    assert resumed.code == 0, resumed.err
    assert "Asia/Tokyo" in resumed.out


def test_servers_are_asked_at_once_and_each_that_fails_has_its_sentence(cli: Cli, workspace: Path) -> None:
    script = "touch $0; until test -e $1; do sleep 0.02; done; echo no licence for $0 >&2; exit 1"
    (workspace / "two.yaml").write_text(
        "cascade_id: two\nmcp:\n"
        f"  one: {{command: [sh, -c, '{script}', one, two]}}\n"
        f"  two: {{command: [sh, -c, '{script}', two, one]}}\n"
        'phases: [{name: p, instructions: x, tackle: ["one__*", "two__*"]}]\n'
    )
    assert cli("trust", "two.yaml", "--yes").code == 0
    ended = cli("run", "two.yaml", "-m", "offline", "--unscripted", "ok")
    assert ended.code != 0
    for name in ("one", "two"):
        assert f"MCP server '{name}': it ended before it had answered; its stderr ends: no licence for {name}" in (
            ended.err
        )


def test_a_phase_may_have_a_server_of_its_own(cli: Cli, workspace: Path) -> None:
    text = (
        "cascade_id: own\nphases:\n"
        f"  - {{name: p, tool: t__get_current_time, inputs: {{timezone: UTC}}, mcp: {{t: {{command: {sys.executable}, "
        f"args: [-I, -S, {Path(plain_mcp.__file__)}]}}}}}}\n"
    )
    (workspace / "own.yaml").write_text(text)
    (workspace / "other.yaml").write_text(
        f"{text}  - {{name: q, tool: t__get_current_time, inputs: {{timezone: UTC}}}}\n"
    )
    checked = cli("check", "own.yaml", "other.yaml")
    assert [line for line in checked.out.splitlines() if "is not known" in line] == [
        line for line in checked.out.splitlines() if line.startswith("other.yaml:4:")
    ]
    assert checked.code == 1
    assert cli("trust", "own.yaml", "--yes").code == 0
    ended = cli("run", "own.yaml", "-m", "offline")
    assert ended.code == 0, ended.err
    assert '"timezone": "UTC"' in ended.out


def test_a_server_of_the_settings_is_chosen_by_its_name_and_trusted_where_it_is_used(cli: Cli, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", "repo"], cwd=workspace, check=True)
    (workspace / "repo" / "new.txt").write_text("new")
    command = json.dumps([sys.executable, "-m", "mcp_server_git", "--repository", "repo"])
    (workspace / "workbench.yaml").write_text(f"mcp: {{git: {{command: {command}, tools: [git_status]}}}}\n")
    (workspace / "look.yaml").write_text(
        "cascade_id: look\nphases:\n  - {name: p, tool: git__git_status, inputs: {repo_path: repo}}\n"
    )
    (workspace / "none.yaml").write_text("cascade_id: none\nphases: [{name: p, instructions: x}]\n")
    assert cli("check", "look.yaml", "none.yaml").code == 0
    assert cli("trust", "none.yaml").code == 0, "a cascade that uses no server needs none"
    assert cli("run", "look.yaml", "-m", "offline").code == 3
    assert cli("trust", "look.yaml", "--yes").code == 0
    ended = cli("run", "look.yaml", "-m", "offline")
    assert ended.code == 0, ended.err
    assert "new.txt" in ended.out


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("{time: {args: [x]}}", "an MCP server needs either 'command' or 'url'"),
        ("{time: {command: x, url: 'http://x'}}", "an MCP server needs either 'command' or 'url'"),
        ("{time: {url: 'ftp://x'}}", "must begin with http:// or https://"),
        ("{time: {command: 'x \"y'}}", "a quote is not closed"),
        ("{a__b: x}", "single '_'"),
        ("[time]", "must be a mapping"),
    ],
)
def test_a_definition_that_is_none_is_named_in_a_cascade_and_in_the_settings(
    cli: Cli, workspace: Path, written: str, words: str
) -> None:
    (workspace / "c.yaml").write_text(f"cascade_id: c\nmcp: {written}\nphases: [{{name: p, instructions: x}}]\n")
    checked = cli("check", "c.yaml")
    assert checked.code == 1
    assert "c.yaml:2:" in checked.out
    assert words in checked.out
    (workspace / "workbench.yaml").write_text(f"mcp: {written}\n")
    ended = cli("check", "c.yaml")
    assert ended.code == 2
    assert "workbench.yaml" in ended.err
