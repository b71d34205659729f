"""Kills a writing process at a random record, again and again, and looks whether a record it acknowledged is missing.

``python -m bench.kill_loop [ROUNDS] [SEED]`` prints a line of numbers; it exits 1 with the first record that is lost.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.store.journal.journal import Journal
from workbench.store.journal.reading import Tail, segments

RUN = "killed-run"
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Survived:
    """What a loop found."""

    rounds: int
    records: int
    torn: int
    """Segments that ended in a torn record."""
    seconds: float


def event_at(seq: int) -> Event:
    """The one event that the writer makes at a sequence number; some are long enough for a file of their own."""
    chance = random.Random(seq)
    size = 70_000 if seq % 50 == 0 else chance.randrange(2_000)
    body = "".join(chance.choices("abc é\n\ud800", k=size))
    place = Place("", "phase", 1, 1, seq, 1)
    return Event(seq, f"2026-01-01T00:00:00.{seq:06d}Z", RUN, "blob", place, {"hash": f"h{seq}", "body": body})


def write(folder: Path) -> None:
    """Go on with the run for ever, in a new segment, and tell each record that is written."""
    tail = Tail(folder, skip_blobs=True)
    seq = max((line.seq for line in tail.lines()), default=0)
    last = max((int(name[:-6]) for name in segments(folder)), default=0)
    journal = Journal(folder, next_seq=seq + 1, first_segment=last + 1)
    while True:
        seq += 1
        journal.append(event_at(seq))
        os.write(1, b"%d\n" % seq)
        if seq % 7 == 0:
            journal.sync()


def killed(folder: Path, rounds: int, seed: int) -> Survived:
    """Raises AssertionError, which names the record, when one is lost or altered."""
    chance = random.Random(seed)
    run, started, seen, tail = folder / RUN, time.monotonic(), 0, Tail(folder / RUN)
    run.mkdir()
    for _ in range(rounds):
        acknowledged = _one_round(run, chance.randrange(1, 120))
        for event in tail.poll():
            seen += 1
            assert event == event_at(seen), f"record {seen} is not what was written"
        assert seen >= acknowledged, f"record {seen + 1} of {acknowledged} is lost"
    tail = Tail(run)
    events, health = list(tail.poll()), tail.health
    assert health.whole, health.notices
    assert len(events) == seen
    return Survived(rounds, seen, len(health.torn), time.monotonic() - started)


def _one_round(folder: Path, records: int) -> int:
    """Let the writer write some records, kill it, and return the last it acknowledged."""
    command = [sys.executable, "-m", "bench.kill_loop", "--write", str(folder)]
    last = 0
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout, 1):
            if number == records:
                process.kill()
            if line.endswith(b"\n"):
                last = int(line)
    return last


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--write"]:
        write(Path(arguments[1]))
    rounds, seed = ([int(argument) for argument in arguments] + [1000, 1][len(arguments) :])[:2]
    with tempfile.TemporaryDirectory() as folder:
        print(killed(Path(folder), rounds, seed))


if __name__ == "__main__":
    main(sys.argv[1:])
