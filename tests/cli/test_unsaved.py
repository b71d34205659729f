"""A store that cannot be made is no reason not to run: the run goes on in memory, and comes back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command import Cli

pytestmark = pytest.mark.fault("F8")


@pytest.fixture
def nowhere(workspace: Path) -> Path:
    """What is in the way of the store."""
    store = workspace / ".workbench"
    store.write_text("in the way")
    return store


def test_a_run_that_cannot_be_stored_ends_as_it_would_and_comes_back(cli: Cli, nowhere: Path) -> None:
    ended = cli("run", "greet.yaml", "--session", "s", "--input", '{"name": "Ada"}')
    assert (ended.code, ended.out) == (0, "Hello, Ada.\n"), ended.err
    assert "the run is not saved: Not a directory" in ended.err
    assert "'workbench doctor --fix' puts them back" in ended.err
    nowhere.unlink()
    assert "of its records lie in" in cli("doctor").out
    assert "records put back from" in cli("doctor", "--fix").err
    assert cli("show", "s", "--json").json["status"] == "success"
    assert cli("doctor").code == 0


def test_a_run_that_goes_on_gets_what_did_not_fit_first(cli: Cli, nowhere: Path) -> None:
    held = cli("run", "greet.yaml", "--session", "s", "--until", "answer:1")
    assert held.code == 0, held.err
    nowhere.unlink()
    (nowhere / "journal" / next((Path("..") / "state" / "unsaved").resolve().iterdir()).name).mkdir(parents=True)
    assert cli("doctor", "--fix").code == 0
    assert cli("resume", "s").out == "Hello, Ada.\n"


def test_where_nothing_can_be_written_at_all_the_run_still_ends_and_says_that_it_is_lost(
    cli: Cli, nowhere: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WORKBENCH_STATE_DIR", str(nowhere / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(nowhere))
    ended = cli("run", "greet.yaml", "--input", '{"name": "Ada"}')
    assert (ended.code, ended.out) == (0, "Hello, Ada.\n"), ended.err
    assert "and are lost" in ended.err


def test_a_folder_that_was_deleted_under_the_command_is_named(cli: Cli, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    for command in (("runs",), ("run", "greet.yaml"), ("doctor",)):
        ended = cli(*command)
        assert (ended.code, ended.err) == (2, "error: the current folder was deleted; change to one that is there\n")


def test_a_permission_that_cannot_be_kept_is_not_given(
    cli: Cli, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_STATE_DIR", str(nowhere / "state"))
    ended = cli("trust", "--yes")
    assert (ended.code, ended.out) == (3, "")
    assert "the permission cannot be kept in" in ended.err
