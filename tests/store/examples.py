"""Runs written by hand, and disks that fail on demand."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.engine.support import Reply, call, play
from workbench.context.assembly import Action, Entry, Item, Kind, Reason, Rule
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.contracts import Answer
from workbench.engine.journal.event import Event
from workbench.engine.journal.usage import Usage
from workbench.store.journal.disk import Disk, File, LocalDisk
from workbench.store.journal.journal import Journal
from workbench.store.journal.reading import Health, Tail
from workbench.store.journal.record import START, crc_of, encoded
from workbench.store.store import Store

RUN = "0190a000-0000-7000-8000-000000000001"


class Writer:
    """Numbers events, as the engine does."""

    def __init__(self, run_id: str = RUN, seq: int = 0) -> None:
        self.run_id = run_id
        self.seq = seq

    def event(self, kind: str, place: Place | None = None, /, **data: Any) -> Event:
        self.seq += 1
        seconds, micros = divmod(self.seq, 1_000_000)
        at = f"2026-01-31T09:{seconds // 60:02d}:{seconds % 60:02d}.{micros:06d}Z"
        return Event(self.seq, at, self.run_id, kind, place or Place(), data)

    def body(self, message: Message) -> Event:
        return self.event("blob", hash=message.body_hash, kind="message", body=message.to_json(), size=1)


def plain_run(run_id: str = RUN, turns: int = 2, status: str = "success", session: str = "demo") -> list[Event]:
    """A small run: a phase with a few answered calls."""
    w = Writer(run_id)
    events = [
        w.event("run_started", session_id=session, cascade_id="triage", cascade_file="triage.yaml", input={"log": "x"}),
        w.event("phase_started", Place("", "sort", 1), kind="llm", model="offline"),
    ]
    for turn in range(1, turns + 1):
        place = Place("", "sort", 1, 1, turn, 1)
        answer = Message("assistant", f"Turn {turn} says \ud800 and é.")
        events += [
            w.event("context_assembled", place, tokens_sent=10 * turn, request={"model": "offline"}, digest=f"d{turn}"),
            w.body(answer),
            w.event("call_finished", place, digest=f"d{turn}", usage={"input": 10 * turn, "output": 5}, cost=0.25,
                    model="m", added=[{"m": answer.body_hash, "kind": "answer", "place": str(place)}]),
        ]  # fmt: skip
    if status:
        events.append(w.event("run_finished", status=status, output="done"))
    return events


class FailingFile:
    """A file whose operations are counted, and fail, by its disk."""

    def __init__(self, file: File, disk: FailingDisk) -> None:
        self._file = file
        self._disk = disk

    def write(self, data: bytes) -> int:
        match self._disk.verdict("write"):
            case "short":
                return self._file.write(data[: len(data) // 2])
            case "torn":
                self._file.write(data[: len(data) // 3])
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return self._file.write(data)

    def sync(self) -> None:
        self._disk.verdict("sync")
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class FailingDisk:
    """The real disk, except that the operations in ``failures`` (counted from 0) go wrong."""

    def __init__(self, failures: Mapping[int, str] | None = None) -> None:
        """Ways to fail: ``full`` (ENOSPC), ``torn`` (EIO after a part), ``short`` (half is written), ``error``."""
        self.failures = dict(failures or {})
        self.operations = 0
        self.always = ""
        self.syncs = ""
        """How every sync of a file or a folder goes wrong."""
        self._disk: Disk = LocalDisk()

    def verdict(self, operation: str) -> str:
        always = (self.syncs if operation.startswith("sync") else "") or self.always
        way = always or self.failures.get(self.operations, "")
        self.operations += 1
        if way == "full" or (way and way != "error" and operation != "write"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if way == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return way

    def create(self, path: Path) -> File:
        self.verdict("create")
        return FailingFile(self._disk.create(path), self)

    def replace(self, source: Path, target: Path) -> None:
        self.verdict("replace")
        self._disk.replace(source, target)

    def remove(self, path: Path) -> None:
        self.verdict("remove")
        self._disk.remove(path)

    def sync_folder(self, path: Path) -> None:
        self.verdict("sync_folder")
        self._disk.sync_folder(path)


def flipped(data: bytes, bit: int) -> bytes:
    """The same bytes, one bit changed."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def files_of(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def rich_run() -> list[Event]:
    """A run of the real engine: two phases, a tool with a result, another with a failure, and a callout."""
    replies: list[Reply] = [
        call("read_log", x="a"),
        Answer("The log is short.", usage=Usage(120, 12, 64), cost=0.5, cost_grade="exact", model="m-1", provider="p"),
        call("broken"),
        "Second \ud800 answer, \N{GRINNING FACE}.",
    ]
    played = play(
        {
            "cascade_id": "triage",
            "phases": [
                {
                    "name": "sort",
                    "instructions": "Sort {{ input.log }}",
                    "tackle": ["read_log"],
                    "rules": {"max_turns": 3},
                },
                {
                    "name": "close",
                    "instructions": "Close it",
                    "tackle": ["broken"],
                    "rules": {"max_turns": 3},
                    "context": {"from": ["sort"]},
                    "callouts": "verdict",
                },
            ],
        },
        replies,
        input={"log": "app.log"},
        tools={"read_log": lambda x: f"line {x}\n" * 50, "broken": _broken},
    )
    return played.events


def _broken() -> str:
    raise ValueError("no such file")


def chained(events: Iterable[Event]) -> list[bytes]:
    """The lines that a journal of these events has."""
    lines, before = list[bytes](), START
    for event in events:
        lines.append(encoded(event, before))
        before = crc_of(lines[-1])
    return lines


def extend(journal: Journal, events: Iterable[Event]) -> None:
    """Append events, one by one."""
    for event in events:
        journal.append(event)


def save(store: Store, events: Sequence[Event], run_id: str = "") -> None:
    """Write a run, under another id if one is given."""
    run_id = run_id or events[0].run_id
    with store.create(run_id) as journal:
        extend(journal, (replace(event, run_id=run_id) for event in events))


def candidate_run(run_id: str = "run-2") -> list[Event]:
    """Two candidates of a phase, an evaluation, a price that came late, a callout and a context card."""
    w = Writer(run_id)
    visit = Place("", "write", 1)
    events = [
        w.event("run_started", session_id="contest", cascade_id="poem", cascade_text="cascade_id: poem\n", parent=None),
        w.event("phase_started", visit, kind="llm", model="m"),
        w.event(
            "candidates_started",
            visit,
            kind="soundings",
            factor=2,
            plans=[{"index": 0, "mutation_type": None}, {"index": 1, "mutation_type": "augment"}],
        ),
    ]
    task = Message("user", "Write.")
    answers = [Message("assistant", "Roses."), Message("assistant", "Violets.")]
    for index, answer in enumerate(answers):
        place = Place(f"s{index}", "write", 1, 1, 1, 1)
        entry = Entry(Item(task, Kind.TASK, place), task, Action.KEPT, Reason("task"), Rule(), 5, 5)
        events += [
            w.body(task),
            w.event(
                "context_assembled",
                place,
                strategy="selective",
                splices=[{"at": 0, "remove": 0, "entries": [entry.to_json()]}],
                request={"model": "m", "parameters": {}, "tools": ""},
                digest=f"request {index}",
                tokens_full=5,
                tokens_sent=5,
                added=[entry.item.to_json()],
            ),
            w.event("call_started", place, digest=f"request {index}", model="m", **{"try": 1}),
            w.body(answer),
            w.event(
                "call_finished",
                place,
                digest=f"request {index}",
                added=[Item(answer, Kind.ANSWER, place).to_json()],
                usage={"input": 7, "output": 2},
                cost=None if index else 0.25,
                model="m",
                purpose="turn",
            ),
            w.event(
                "candidate_finished",
                place._replace(attempt=0, turn=0, call=0),
                index=index,
                status="success",
                output=answer.text,
                mutation_applied="Write. Twice." if index else None,
            ),
        ]
    last = Place("s1", "write", 1, 1, 1, 1)
    return [
        *events,
        w.event("evaluation_finished", visit, winner=1, scores={"0": 40, "1": 90.5}, reason="colour"),
        w.event("cost_known", digest="request 1", cost=0.125, usage={"cached": 3}),
        w.event("callout", last, name="best", body_hash=answers[1].body_hash, content_hash=answers[1].content_hash),
        w.event("card", content_hash=answers[1].content_hash, summary="violets", keywords=["violet"], role="assistant"),
        w.event("phase_finished", visit, status="success", output="Violets."),
        w.event("run_finished", status="success", output="Violets."),
    ]


HOSTILE = (
    "C:\\new\\table",
    "two\nlines\r\n\ttab",
    "nul \0 and escape \x1b]52;c;x\x07",
    "quotes ' \" ` and $$",
    "'; DROP TABLE messages; --",
    "{x:String} {{ braces }}",
    "\\N",
    "NULL",
    "",
    " ",
    "lone \ud83d surrogate",
    "bidi \u202e and \u2028 line",
    "\N{GRINNING FACE} é 漢字",
    "[/red] %s {0}",
    "a" * 5000,
)
"""Texts that broke something once."""


def read_run(folder: Path, *, skip_blobs: bool = False) -> tuple[list[Event], Health]:
    """A whole run. Raises OSError when the folder cannot be read; damage is in the health, never an error."""
    tail = Tail(folder, skip_blobs=skip_blobs)
    events = list(tail.poll())
    return events, tail.health
