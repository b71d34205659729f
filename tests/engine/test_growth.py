"""A long run costs as much per turn at its end as at its beginning: in calls of functions, and in bytes on disk."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.engine.support import Played, call, play
from tests.store.examples import save
from workbench.engine.journal.state import RunState
from workbench.store.store import Store

STRATEGIES = ("selective", "selective+mask(after=3)", "snowball+mask(after=5,window=5)", "selective+slide(turns=10)")


def words(seed: int, count: int) -> str:
    """Text that does not repeat itself."""
    return random.Random(seed).randbytes(count * 4).hex(" ", 4)


def long_run(turns: int, strategy: str, look: Callable[..., str]) -> Played:
    """A phase that calls a tool in every turn but the last."""
    phase = {"name": "p", "instructions": "x", "tackle": ["look"], "strategy": strategy}
    document = {"cascade_id": "long", "phases": [phase | {"rules": {"max_turns": turns}}]}
    replies = [call("look", x=str(number)) for number in range(turns - 1)]
    played = play(document, [*replies, "done"], tools={"look": look})
    assert played.outcome.output == "done"
    return played


def stored_bytes(folder: Path, turns: int) -> int:
    """Bytes on disk of the journal of a run whose results are long and all different."""
    played = long_run(turns, "selective+mask(after=3)", lambda x="0": words(int(x), 60))
    store, run_id = Store(folder), played.events[0].run_id
    save(store, played.events)
    return sum(file.stat().st_size for file in store.folder(run_id).rglob("*.jsonl"))


def test_twice_the_turns_are_twice_the_bytes(tmp_path: Path) -> None:
    short, long = (stored_bytes(tmp_path / str(turns), turns) for turns in (125, 250))
    text = sum(len(words(number, 60)) for number in range(249))
    assert long <= 2.05 * short
    assert long <= 250 * 4_300 + 3 * text, "what was said is stored once in the history and once masked"


@contextmanager
def counted() -> Iterator[list[int]]:
    """Counts calls of Python functions while it is open."""
    count = [0]

    def note(frame: FrameType, event: str, argument: Any) -> None:
        count[0] += event == "call"

    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(None)


def calls_at_each_turn(turns: int, strategy: str) -> Sequence[int]:
    """How many functions had been called when each turn's tool ran."""
    seen: list[int] = []
    with counted() as count:

        def look(x: str = "0") -> str:
            seen.append(count[0])
            return words(int(x), 30)

        long_run(turns, strategy, look)
    return seen


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_last_quarter_of_the_turns_takes_as_many_steps_as_the_first(strategy: str) -> None:
    seen = calls_at_each_turn(101, strategy)
    quarter = len(seen) // 4
    first, last = seen[quarter] - seen[0], seen[-1] - seen[-1 - quarter]
    assert last <= 1.2 * first, (first, last)


def test_what_a_context_spares_is_known_without_looking_through_it() -> None:
    played = long_run(12, "selective+mask(after=3)", lambda x="0": words(int(x), 60))
    for one in RunState.of(played.events).calls:
        short = [e for e in one.entries if e.sent is not None and e.sent != e.item.message]
        assert (one.shortened, one.held_back) == (len(short), sum(e.tokens_full - e.tokens_sent for e in short))
    assert one.shortened > 5
