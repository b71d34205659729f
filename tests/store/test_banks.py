"""Memory banks: each message once, several writers at a time, and files that a crash has torn."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from workbench.engine.contracts import Memory
from workbench.store.banks import Bank, Banks
from workbench.store.faults import StoreError


def said(text: str, name: str = "") -> Memory:
    return Memory(f"h-{text}", "assistant", text, "read", 1, 2, callout=name, at="2026-01-31T09:00:00Z", session_id="s")


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "memory", "lessons")


def test_a_message_is_kept_once_and_comes_back_as_it_was(bank: Bank) -> None:
    assert bank.add([said("a"), said("b \ud800"), said("a")]) == 2
    assert bank.add([said("b \ud800"), said("c")]) == 1
    assert bank.memories() == [said("a"), said("b \ud800"), said("c")]
    assert stat.S_IMODE(bank.path.stat().st_mode) == 0o600


def test_a_search_ranks_by_shared_words_and_callouts_newer_first(bank: Bank) -> None:
    bank.add([said("the lamp"), said("the crane"), said("the lamp again"), said("x", "lamp")])
    found, total = bank.search("lamp", 2)
    assert ([one.memory.text for one in found], total) == (["x", "the lamp"], 4)
    assert bank.search("zebra", 3) == ([], 4)


def test_a_bank_that_nobody_wrote_is_empty_and_has_no_file(bank: Bank, tmp_path: Path) -> None:
    assert bank.memories() == []
    assert bank.add([]) == 0
    assert Banks(tmp_path).names() == []


@pytest.mark.parametrize("name", ["lessons", "../../etc/passwd", "a b", "Übung", "x" * 300, ".hidden"])
def test_any_name_is_a_file_inside_the_folder_and_is_listed_as_it_is(tmp_path: Path, name: str) -> None:
    bank = Banks(tmp_path).bank(name)
    bank.add([said("a")])
    assert bank.path.parent == tmp_path / "memory"
    assert Banks(tmp_path).names() == [name]


def test_a_torn_line_is_counted_and_spoils_no_other(bank: Bank) -> None:
    bank.add([said("a"), said("b")])
    bank.path.write_bytes(bank.path.read_bytes()[:-20])
    assert [memory.text for memory in bank.memories()] == ["a"]
    assert bank.damaged == 1
    bank.add([said("c")])
    assert [memory.text for memory in bank.memories()] == ["a", "c"]


def test_a_bank_that_is_a_link_is_refused(bank: Bank, tmp_path: Path) -> None:
    bank.path.parent.mkdir()
    bank.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="cannot open"):
        bank.add([said("a")])
    assert not (tmp_path / "elsewhere").exists()


_ADD = """
import sys
from pathlib import Path
from workbench.engine.contracts import Memory
from workbench.store.banks import Bank
bank = Bank(Path(sys.argv[1]), "lessons")
for n in range(20):
    bank.add([Memory(f"{sys.argv[2]}-{n}", "user", "x" * 3000, "p", 1, 1), Memory("shared", "user", "y", "p", 1, 1)])
"""


def test_runs_that_end_at_the_same_time_lose_nothing(bank: Bank) -> None:
    arguments = [sys.executable, "-c", _ADD, str(bank.path.parent)]
    writers = [subprocess.Popen([*arguments, str(number)]) for number in range(2)]
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0]
    assert len(bank.memories()) == 41
    assert bank.damaged == 0
    assert json.loads(bank.path.read_bytes().splitlines()[0]) == {"v": 1, "bank": "lessons"}
