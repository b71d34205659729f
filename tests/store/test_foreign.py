"""What is not ours, and what a later program wrote: refused by name, and never deleted."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest

from tests.store.examples import RUN, plain_run, read_run, save
from workbench.store.index.health import examine, fix
from workbench.store.store import Store


def later(line: bytes) -> bytes:
    """A record in the format of a later program, whole by its checksum."""
    body = json.loads(line) | {"v": 2}
    del body["crc"]
    text = json.dumps(body, separators=(",", ":")).encode("ascii")
    return b'%b,"crc":"%08x"}\n' % (text[:-1], crc32(text))


@pytest.mark.fault("F11")
def test_a_journal_of_a_later_program_is_refused_by_its_format_and_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    segment = store.folder(RUN) / "000001.jsonl"
    written = b"".join(later(line) for line in segment.read_bytes().splitlines())
    segment.write_bytes(written)
    (store.folder(RUN) / "summary.json").unlink()
    events, health = read_run(store.folder(RUN))
    assert events == []
    assert "format 2 of a later program" in health.problems[0]
    report = examine(store)
    assert not report.ok
    fix(store)
    assert segment.read_bytes() == written


@pytest.mark.fault("F11")
def test_foreign_things_in_a_store_hinder_nothing_and_stay(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    foreign = [tmp_path / "journal" / "notes.txt", tmp_path / "journal" / "..odd" / "x", tmp_path / "stranger" / "y"]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    assert store.run_ids() == [RUN]
    assert examine(store).ok
    fix(store)
    assert all(path.read_text() == "mine" for path in foreign)
