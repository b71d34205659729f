"""Runs whose journals are damaged or partly written, in every command that shows runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.command import Cli, run_cli
from tests.support.workspaces import CASCADE, REPLIES, alone

READING = (
    ("tree", "s"),
    ("context", "s"),
    ("candidates", "s", "--json"),
    ("graph", "s"),
    ("diff", "s", "--strategies", "selective", "snowball"),
    ("sweep", "s", "--strategy", "mask(after=1)"),
    ("export", "s"),
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a workspace with a run named ``s``."""
    home = tmp_path_factory.mktemp("damaged")
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, home, home / "work")
        Path("greet.yaml").write_text(CASCADE)
        Path("greet.replies.yaml").write_text(REPLIES)
        assert run_cli("run", "greet.yaml", "--session", "s", "--input", "{}").code == 0
    return home / "work" / ".workbench"


@pytest.fixture
def journal(stored: Path, workspace: Path) -> Path:
    """The only segment of that run, in a store of its own; no summary lies beside it."""
    shutil.copytree(stored, workspace / ".workbench")
    (folder,) = (workspace / ".workbench" / "journal").iterdir()
    (folder / "summary.json").unlink()
    return folder / "000001.jsonl"


def test_of_a_run_without_a_record_no_number_is_shown(cli: Cli, journal: Path) -> None:
    journal.write_bytes(b"")
    (run,) = cli("runs", "--json").json
    assert [run[name] for name in ("calls", "tools", "tokens_in", "tokens_out", "cost", "seconds")] == [None] * 6
    assert run["fault"] == "its journal is empty"
    assert cli("runs").out.splitlines()[1].split()[2:6] == ["–"] * 4


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_damaged_run_is_shown_as_far_as_it_goes_and_what_it_lacks_is_said(
    cli: Cli, journal: Path, command: tuple[str, ...]
) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:-3], b"garbage\n", *lines[-2:]]))
    ended = cli(*command)
    assert ended.out or command[0] == "candidates"
    assert "s is damaged, and shown as far as it can be read: 000001.jsonl damaged at byte" in ended.err


@pytest.mark.parametrize("lost", [1, 2])
def test_sums_over_all_runs_say_which_of_them_lack_records(cli: Cli, journal: Path, lost: int) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[: -2 - lost], *lines[-2:]]))
    ended = cli("sql", "SELECT sum(tokens_in) FROM runs")
    lack = "1 record of it is" if lost == 1 else "2 records of it are"
    assert f"run {journal.parent.name} is damaged: {lack} not in the tables, nor in what they sum up" in ended.err
    assert cli("sql", "SELECT 1").err == ended.err, "it is said whenever they are asked"


@pytest.mark.parametrize("lost", [1, 2])
def test_sums_over_all_runs_say_which_of_them_end_in_damage(cli: Cli, journal: Path, lost: int) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:-lost], *(line.replace(b":", b";") for line in lines[-lost:])]))
    lack = "1 record of it is" if lost == 1 else "2 records of it are"
    said = f"run {journal.parent.name} is damaged: {lack} not in the tables, nor in what they sum up"
    assert said in cli("sql", "SELECT sum(tokens_in) FROM runs").err
    assert said in cli("sql", "SELECT 1").err


@pytest.mark.parametrize("lost", [1, 5])
def test_lines_that_a_finished_run_has_lost_at_its_end_are_said(cli: Cli, journal: Path, lost: int) -> None:
    assert cli("runs").code == 0  # A summary is made.
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-lost]))
    said = f"000001.jsonl has lost its end ({sum(map(len, lines[-lost:]))} bytes)"
    for command in (*READING, ("show", "s")):
        ended = cli(*command)
        assert said in ended.out + ended.err, command
    assert cli("runs", "--json").json[0]["fault"] == said
    assert said in cli("doctor").out
    assert cli("resume", "s").code == 0
    assert cli("runs", "--json").json[0]["fault"] == ""


@pytest.mark.parametrize("name", ["000001.jsonl", "summary.json", "writer.lock", "annotations.jsonl"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_command_waits_for_a_pipe_or_a_device_in_the_place_of_a_file(
    cli: Cli, journal: Path, name: str, kind: str
) -> None:
    place = journal.with_name(name)
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    for command in (("runs",), ("show", journal.parent.name)):
        ended = cli(*command)
        assert ("its journal is empty" in ended.out + ended.err) == (name == "000001.jsonl")


def test_a_torn_end_that_was_moved_away_is_no_loss(cli: Cli, journal: Path) -> None:
    with journal.open("ab") as file:
        file.write(b"torn")
    assert cli("runs").code == 0
    assert cli("doctor", "--fix").code == 0
    assert cli("runs", "--json").json[0]["fault"] == ""


@pytest.mark.parametrize("command", READING[3:6], ids=lambda command: command[0])
def test_what_needs_the_cascade_says_that_the_journal_does_not_hold_it(
    cli: Cli, journal: Path, command: tuple[str, ...]
) -> None:
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[1:]))
    name = journal.parent.name
    ended = cli(command[0], name, *command[2:])
    assert ended.code == 5
    assert f"the journal of {name} does not hold the cascade that it ran (records 1 to 1 are missing)" in ended.err


def test_an_empty_run_is_neither_exported_nor_frozen(cli: Cli, journal: Path) -> None:
    journal.write_bytes(b"")
    name = journal.parent.name
    exported, frozen = cli("export", name), cli("test", "freeze", name, "--name", "n")
    assert (exported.code, exported.out) == (1, "")
    assert "there are no messages" in exported.err
    assert "this run cannot be frozen: its journal is empty" in frozen.err


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("export", "s", "-o", "no/x.jsonl"), 2, "no/x.jsonl: error: cannot be written: No such file or directory"),
        (("analyze", "absent.yaml"), 2, "absent.yaml: error: no such file, and no stored run of it"),
        (("graph", "absent.yaml"), 2, "absent.yaml: error: no such file, and no run of that name"),
    ],
    ids=lambda command: command[0] if isinstance(command, tuple) else "",
)
def test_a_file_that_is_not_there_is_named_with_what_was_to_become_of_it(
    cli: Cli, journal: Path, command: tuple[str, ...], code: int, said: str
) -> None:
    ended = cli(*command)
    assert (ended.code, ended.err.strip()) == (code, said)
    assert journal.parents[2].joinpath(".gitignore").read_text() == "*\n"


def test_settings_that_cannot_be_saved_are_an_error_of_the_file(cli: Cli, workspace: Path) -> None:
    (workspace / "workbench.yaml").symlink_to("/proc/absent/settings.yaml")
    ended = cli("config", "set", "theme", "workbench-light", "--workspace")
    assert (ended.code, "not saved: " in ended.err, "unexpected" in ended.err) == (2, True, False)
