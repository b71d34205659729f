"""Damages a stored run, again and again, and looks whether each command tells it.

``python -m bench.damage [N] [SEED]`` flips a bit in the journal, in a body of its own file and in ``summary.json``,
exchanges two lines, takes the last lines away, and gives a value another type behind a right checksum of its line: N
times each, in a journal of today, whose lines hold the checksum of the one before, and in one of 0.1.0, whose lines do
not. A command that shows a run must either show what it showed before or say that the run is damaged, with the place;
an error that is not a sentence of ours counts as a fault of its own. It prints a line for each kind of damage; it
exits 1 where something was shown as true that was not.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.support.workspaces import CASCADE, REPLIES
from workbench.cli.main import main as command_line
from workbench.store.journal import record
from workbench.store.store import Store

COMMANDS = (
    ("show", "s", "--json"),
    ("show", "s"),
    ("context", "s", "--at", "look:2"),
    ("tree", "s"),
    ("export", "s", "--as", "otel"),
    ("export", "s"),
    ("runs", "--json"),
)
TOLD = (
    *("damaged", "missing", "altered", "its journal is empty", "does not hold", "cannot be read", "torn", "no run"),
    "has lost",
)
VALUES: tuple[Any, ...] = (None, True, 7, -1, 1.5, "text", [], ["x"], {}, {"a": 1}, "\ud800", 10**30)
FREE = "another type, as of 0.1.0"
LONG = "a body that lies in a file of its own " * 2000


class Stored:
    """A workspace with one run, and what each command says of it while it is whole."""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)
        for name in [name for name in os.environ if name.startswith(("WORKBENCH_", "WINDLASS_"))]:
            del os.environ[name]
        os.environ["WORKBENCH_CONFIG_DIR"] = os.environ["WORKBENCH_STATE_DIR"] = str(folder / "home")
        Path("greet.yaml").write_text(CASCADE)
        Path("greet.replies.yaml").write_text(REPLIES)
        Path("notes.txt").write_text("Ada likes short greetings.")
        Path("input.json").write_text(json.dumps({"name": LONG}))
        said("run", "greet.yaml", "--session", "s", "--input", "@input.json")
        store = Store(folder / ".workbench")
        self.folder = store.folder(store.find("s"))
        self.whole = folder / "whole"
        shutil.copytree(self.folder, self.whole)
        self.right = {command: said(*command) for command in COMMANDS}

    def restore(self) -> None:
        """The run as it was written, with a summary of it."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.whole, self.folder)
        said("runs")

    def judge(self, harm: Callable[[], None]) -> Counter[str]:
        """What became of one damage, by command: told, or harmless, or shown as true, or an error of its own."""
        self.restore()
        harm()
        found: Counter[str] = Counter()
        for command in COMMANDS:
            try:
                text = said(*command)
            except Exception as error:  # noqa: BLE001 - a traceback of whatever kind is what is looked for
                found[f"{type(error).__name__}"] += 1
                print(f"  {' '.join(command)}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            right = self.right[command]
            if text == right:
                found["as before"] += 1
            elif any(text.count(word) > right.count(word) for word in TOLD):
                found["told"] += 1
            else:
                found["shown as true"] += 1
        return found


def said(*arguments: str) -> str:
    """stdout and stderr of a command. Raises what it does not turn into a sentence."""
    result = CliRunner().invoke(command_line, list(arguments), prog_name="workbench")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "unexpected" in result.output:
        raise RuntimeError(result.output.strip()[:300])
    return re.sub(r'"bytes": \d+', '"bytes": 0', result.stdout + result.stderr)


def flip(path: Path, chance: random.Random) -> None:
    """Change one bit of a file in place; its times are put back, as where a disk did it."""
    stat, data = path.stat(), bytearray(path.read_bytes())
    bit = chance.randrange(len(data) * 8)
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def exchange(path: Path, chance: random.Random) -> None:
    """Exchange two lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    one, other = chance.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    path.write_bytes(b"".join(lines))


def shorten(path: Path, chance: random.Random) -> None:
    """Take the last lines away."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: -chance.randrange(1, len(lines) - 1)]))


def retype(path: Path, chance: random.Random, *, chained: bool) -> None:
    """Give one value another type behind a right checksum; the last line, which no other tells of, stays."""
    bodies = [json.loads(line) for line in path.read_bytes().splitlines()]
    last = bodies.pop()
    for body in () if chained else (*bodies, last):
        body.pop("prev", None)
    spots = [
        (number, way) for number, body in enumerate(bodies) for way in _ways(body) if way[0] not in ("v", "crc", "prev")
    ]
    number, way = chance.choice(spots)
    at = bodies[number]
    for step in way[:-1]:
        at = at[step]
    before = at[way[-1]]
    at[way[-1]] = chance.choice([value for value in VALUES if type(value) is not type(before)])
    path.write_bytes(b"".join(_line(body) for body in (*bodies, last)))


def _ways(value: Any) -> list[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way for key, part in pairs for way in ((key,), *((key, *rest) for rest in _ways(part)))]


def _line(body: dict[str, Any]) -> bytes:
    """A line as a writer makes it, of values that no writer has."""
    text = json.dumps({key: value for key, value in body.items() if key != "crc"}, separators=(",", ":"))[:-1].encode()
    return record.sealed(text)


def run(count: int, seed: int) -> int:
    """Exit code 1 where damage was shown as true, or ended in an error that is no sentence."""
    wrong = 0
    with tempfile.TemporaryDirectory() as home:
        stored, chance = Stored(Path(home).resolve()), random.Random(seed)
        segment = stored.folder / "000001.jsonl"
        harms: dict[str, Callable[[], None]] = {
            "bit of the journal": lambda: flip(segment, chance),
            "bit of a body in a file": lambda: flip(sorted((stored.folder / "blobs").iterdir())[0], chance),
            "bit of the summary": lambda: flip(stored.folder / "summary.json", chance),
            "two lines exchanged": lambda: exchange(segment, chance),
            "last lines taken away": lambda: shorten(segment, chance),
            "another type": lambda: retype(segment, chance, chained=True),
            FREE: lambda: retype(segment, chance, chained=False),
        }
        for name, harm in harms.items():
            if "body" in name and not (stored.folder / "blobs").is_dir():
                continue
            found: Counter[str] = Counter()
            for _ in range(count):
                found += stored.judge(harm)
            # What may be unknown may be null, and an input is of any type; only the chain tells that it was another.
            right = {"told", "as before", *(["shown as true"] if name == FREE else [])}
            wrong += sum(number for word, number in found.items() if word not in right)
            print(f"{name:27} {count:5} times  " + "  ".join(f"{w} {n}" for w, n in sorted(found.items())), flush=True)
        os.chdir("/")
    return 1 if wrong else 0


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(run(*(numbers + [40, 1][len(numbers) :])))
