"""Errors of commands that were asked for JSON: one object in a line of stderr, with the exit code of the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.command import Cli, Ended
from workbench.cli.errors import wants_json
from workbench.cli.main import COMMANDS, main


def errors_of(ended: Ended) -> list[dict[str, Any]]:
    """The error objects on stderr; every line of it has to be one."""
    return [json.loads(line)["error"] for line in ended.err.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("show", "absent"), 2, "no run is named 'absent'"),
        (("context", "absent"), 2, "no run is named 'absent'"),
        (("diff", "absent", "other"), 2, "no run is named 'absent'"),
        (("sweep", "absent", "--strategy", "snowball"), 2, "no run is named 'absent'"),
        (("graph", "absent"), 2, "no run is named 'absent'"),
        (("resume", "absent"), 2, "no run is named 'absent'"),
        (("test", "replay", "absent"), 2, "no snapshot 'absent'"),
        (("memory", "absent"), 2, "there is no memory bank 'absent'"),
        (("doctor", "--absent"), 2, "no such option '--absent'"),
        (("absent",), 2, "no such command 'absent'"),
        (("run", "greet.yaml", "--until", "nowhere"), 2, "'nowhere' is not a phase"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_error_is_an_object_with_the_exit_code_of_the_text(
    cli: Cli, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ended = cli(*arguments, "--json")
    (error,) = errors_of(ended)
    assert (ended.code, error["exit_code"], error["kind"], ended.out) == (code, code, "usage", "")
    told = cli(*arguments).err.rstrip()
    assert error["message"] == message
    assert told.endswith(f"error: {message} ({error['hint']})" if error["hint"] else f"error: {message}")


def test_a_place_is_told_in_parts(cli: Cli, workspace: Path) -> None:
    (workspace / "workbench.yaml").write_text("theme: [\n")
    (error,) = errors_of(cli("runs", "--json"))
    assert (error["file"], error["line"], error["column"]) == (str(workspace / "workbench.yaml"), 2, 1)
    assert error["message"].startswith("not valid YAML: ")


def test_a_file_that_cannot_run_brings_all_its_problems(cli: Cli, workspace: Path) -> None:
    (workspace / "broken.yaml").write_text("cascade_id: b\nphases:\n  - name: a\n  - name: b\n    instruction: x\n")
    (error,) = errors_of(cli("run", "broken.yaml", "--json"))
    assert (error["file"], error["message"]) == ("broken.yaml", "the cascade cannot run as it is")
    assert [problem["line"] for problem in error["problems"]] == [3, 4]
    told = cli("run", "broken.yaml").err
    assert all(problem["message"] in told for problem in error["problems"])


def test_files_that_cannot_be_read_are_an_object_each_beside_what_was_found(cli: Cli, workspace: Path) -> None:
    ended = cli("check", "absent.yaml", "greet.yaml", "gone.yaml", "--json")
    assert ended.code == 2
    assert [(error["file"], error["message"]) for error in errors_of(ended)] == [
        ("absent.yaml", "no such file"),
        ("gone.yaml", "no such file"),
    ]
    assert isinstance(ended.json, list)
    ended = cli("import", "absent.json", "gone.json", "--json")
    assert [error["file"] for error in errors_of(ended)] == ["absent.json", "gone.json"]


def test_text_stays_text_for_who_did_not_ask(cli: Cli) -> None:
    for command in ("fork", "resume"):
        hint = f"workbench runs lists them; see workbench {command} --help"
        assert cli(command).err == f"error: missing argument 'SESSION' ({hint})\n"
    assert cli("show", "absent").err == "error: no run is named 'absent'\n"
    assert cli("show", "--", "--json").err == "error: no run is named '--json'\n"


def test_what_asks_for_json() -> None:
    assert wants_json(("sql", "SELECT 1", "--format", "json"))
    assert wants_json(("sql", "SELECT 1", "--format=json"))
    assert not wants_json(("sql", "SELECT 1", "--format", "csv"))
    assert not wants_json(("export", "one", "--format", "json"))


def test_every_command_with_json_takes_it_by_that_name() -> None:
    def walk(command: click.Command) -> list[click.Command]:
        return [each for one in getattr(command, "commands", {}).values() for each in walk(one)] or [command]

    root = click.Context(main)
    loaded = [main.get_command(root, name) for group in COMMANDS.values() for name in group]
    commands = [each for one in loaded if one is not None for each in walk(one)]
    named = {each.name: {name for one in each.params for name in one.opts if "json" in name} for each in commands}
    assert {each: names for each, names in named.items() if names - {"--json"}} == {}
    assert {"show", "review"} <= {each for each, names in named.items() if names}
