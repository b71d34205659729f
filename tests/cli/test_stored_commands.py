"""What the commands print of a stored run and of the files beside it, word by word."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.command import run_cli
from tests.support.stored import check_stored

STORED = Path(__file__).parent / "stored"
DATA = Path(__file__).parents[1] / "data" / "0.2.0"


def printed(folder: Path, file: Path) -> None:
    """Run each line of a file that begins with ``$``, which is a command."""
    told = []
    for line in file.read_text("utf-8").splitlines():
        if not line.startswith("$ workbench"):
            continue
        ended = run_cli(*shlex.split(line.removeprefix("$ workbench")))
        said = (ended.out + ended.err).replace(str(folder), ".").replace(str(folder.parent), "..").rstrip("\n")
        told.append("\n".join([line, *(one.rstrip() for one in said.splitlines()), f"[{ended.code}]", ""]))
    check_stored(file, "\n".join(told))


def test_a_stored_run_is_printed_as_stored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    kept = folder / ".workbench" / "journal" / "01a2093c-34bd-76ba-9707-24e0386ea482"
    kept.mkdir(parents=True)
    shutil.copy(DATA / "journal.jsonl", kept / "000001.jsonl")
    shutil.copy(DATA / "flow.yaml", folder / "flow.yaml")
    printed(folder, STORED / "commands.txt")
