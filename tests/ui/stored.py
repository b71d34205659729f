"""Stored runs for the screens that list them: a small family, one that failed, one that was imported, a broken one."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from tests.store.examples import save
from tests.ui.support import Story, triage_story
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.store.store import Store

PARENT, INNER, IMPORTED, FAILED, FORK, BROKEN = (f"0190c6f2-7f3a-7000-8000-00000000b00{i}" for i in range(1, 7))


def retold(events: Iterable[Event], run_id: str, day: int, **started: Any) -> list[Event]:
    """The events of another run, begun on a day of November, with other facts in its first event."""
    told = []
    for event in events:
        data = {**event.data, **started} if event.kind == "run_started" else event.data
        told.append(replace(event, run_id=run_id, at=f"2026-11-{day:02}{event.at[10:]}", data=data))
    return told


def failed_story() -> Story:
    """A run that a provider ended."""
    story = Story()
    story.start()
    place = Place("", "intake", 1)
    story.phase("intake")
    story.body(Message("user", "Say in one line what night.log is about."))
    error = {"kind": "rate_limit", "message": "Rate limit exceeded for this key", "status": 429}
    story.emit("call_failed", place._replace(attempt=1, turn=1, call=1), **{"try": 3}, error=error, retry_in=None)
    story.end_phase(place, "", status="failed", reason="the provider refused")
    story.finish("", status="failed", reason="intake failed: Rate limit exceeded for this key")
    return story


def stored_runs(folder: Path) -> Store:
    """A workspace's store with six runs, as a copy: writing them waits for the disk at each event."""
    shutil.copytree(Path(_six_runs().name, "store"), folder / ".workbench")
    return Store(folder / ".workbench")


@cache
def _six_runs() -> TemporaryDirectory[str]:
    """A folder with them, which is removed at the end of the process."""
    home = TemporaryDirectory(prefix="six-runs-")
    store = Store(Path(home.name, "store"))
    whole = triage_story(finished=True).events
    fork = {"run_id": PARENT, "session_id": "log_triage-7f3a", "kind": "fork", "at": "triage:2", "cascade_sha256": "x"}
    inner = {"run_id": PARENT, "session_id": "log_triage-7f3a", "kind": "tool", "depth": 1}
    stories = [
        retold(whole, PARENT, 2),
        retold(whole[:-1], FORK, 5, session_id="log_triage-f0rk", parent=fork, cascade_sha256="y"),
        retold(whole, INNER, 2, session_id="fact_check-1", cascade_id="fact_check", parent=inner),
        retold(failed_story().events, FAILED, 4, session_id="log_triage-dead"),
        retold(whole, IMPORTED, 3, session_id="trace-88", cascade_file="", ports={"imported": "otel"}),
    ]
    for events in stories:
        save(store, events)
    with store.create(BROKEN):
        pass
    (store.folder(BROKEN) / "000001.jsonl").write_bytes(b"\1\1 not a record\n")
    return home
