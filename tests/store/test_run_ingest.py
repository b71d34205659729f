"""When a batch is sent, and what is sent again after a fault: with a database that only takes notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.store.examples import RUN, Writer, plain_run, save
from workbench.engine.event import Event
from workbench.store.database import DatabaseError
from workbench.store.offsets import offsets_file
from workbench.store.run_ingest import RunIngest
from workbench.store.store import Store
from workbench.store.table import Table
from workbench.store.values import Value


class Notebook:
    """Notes what would be inserted; ``full`` makes it refuse everything."""

    def __init__(self) -> None:
        self.inserted: list[tuple[str, str, int]] = []
        self.full = False

    def query(self, sql: str, params: Mapping[str, Value] | None = None) -> Table:
        raise NotImplementedError

    def command(self, sql: str) -> None:
        raise NotImplementedError

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]], token: str) -> None:
        if self.full:
            raise DatabaseError("no space left", 243)
        self.inserted.append((table, token, len(rows)))

    @property
    def tokens(self) -> list[str]:
        """Of the batches of ``events``, in order."""
        return [token for table, token, _ in self.inserted if table == "events"]


class Setting:
    """A store with one run that grows, a notebook and a clock that is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.journal = self.store.create(RUN)
        self.writer = Writer()
        self.database = Notebook()
        self.now = 0.0
        self.ingest = self.again()

    def again(self, identity: str = "db") -> RunIngest:
        """As after a new start."""
        return RunIngest(self.store.folder(RUN), self.database, identity, lambda: self.now)

    def grow(self, records: int) -> None:
        for _ in range(records):
            self.journal.append(self.writer.event("warning", code="w", message="m"))


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def test_a_batch_waits_for_a_hundred_records(setting: Setting) -> None:
    setting.grow(99)
    assert setting.ingest.step() == 0
    assert setting.ingest.waiting == 99
    setting.grow(102)
    assert setting.ingest.step() == 200
    assert setting.ingest.waiting == 1
    assert [token.split(":")[1] for token in setting.database.tokens] == ["1-100", "101-200"]


def test_a_batch_waits_ten_seconds_at_most(setting: Setting) -> None:
    setting.grow(3)
    setting.now = 100.0
    assert setting.ingest.step() == 0
    setting.now = 109.9
    assert setting.ingest.step() == 0
    setting.now = 110.0
    assert setting.ingest.step() == 3


def test_the_end_of_a_run_does_not_wait(setting: Setting) -> None:
    setting.grow(3)
    setting.journal.append(setting.writer.event("run_finished", status="success"))
    assert setting.ingest.step() == 4


def test_what_is_asked_for_does_not_wait(setting: Setting) -> None:
    setting.grow(3)
    assert setting.ingest.step(flush=True) == 3


def test_after_a_fault_the_same_batch_is_sent_again_with_the_same_token(setting: Setting) -> None:
    setting.grow(100)
    setting.database.full = True
    with pytest.raises(DatabaseError):
        setting.ingest.step()
    setting.database.full = False
    setting.grow(50)
    setting.again().step(flush=True)
    first, second = setting.database.tokens
    assert first.split(":")[1:2] == ["1-100"]
    assert second.split(":")[1:2] == ["101-150"]
    setting.again().step(flush=True)
    assert len(setting.database.tokens) == 2


def test_what_went_to_another_database_counts_for_nothing(setting: Setting) -> None:
    setting.grow(5)
    setting.ingest.step(flush=True)
    assert setting.again("another").step(flush=True) == 5
    assert setting.again().step(flush=True) == 0


def test_the_same_records_with_other_bytes_have_another_token(setting: Setting, tmp_path: Path) -> None:
    setting.grow(5)
    setting.ingest.step(flush=True)
    (token,) = set(setting.database.tokens)
    other = Setting(tmp_path / "other")
    other.grow(4)
    other.journal.append(other.writer.event("warning", code="w", message="another"))
    other.ingest.step(flush=True)
    assert other.database.tokens[0] != token
    assert other.database.tokens[0].split(":")[:2] == token.split(":")[:2]


def test_a_torn_line_in_the_offsets_is_passed_over(setting: Setting) -> None:
    setting.grow(5)
    setting.ingest.step(flush=True)
    path = offsets_file(setting.store.folder(RUN), "chdb")
    path.write_bytes(path.read_bytes() + b'{"segment": "0000')
    assert setting.again().step(flush=True) == 0


def test_a_batch_ends_with_its_segment(tmp_path: Path) -> None:
    store, database = Store(tmp_path), Notebook()
    events = plain_run()
    save(store, events)
    with store.append_to(RUN) as journal:
        journal.append(Event(len(events) + 1, events[-1].at, RUN, "run_resumed", events[0].place, {}))
    ingest = RunIngest(store.folder(RUN), database, "db", lambda: 0.0)
    assert ingest.step(flush=True) == len(events) + 1
    assert [token.split(":")[1] for token in database.tokens] == ["1-9", "10-10"]
