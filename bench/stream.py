"""Goal 15: repaints while an answer streams in as fast as it can, and keys pressed meanwhile against idle ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import quantiles

from bench.measure import WORKBENCH, Line, Screen, alone, workspace
from tests.support.loopback import Loopback, Reply

FRAMES_PER_SECOND = 60
PIECES = 40_000
"""Chunks of an answer: some seconds of stream at the pace at which they can be read."""
KEYS = 30
TABS = ((b"2", b"The file has no problems"), (b"3", b"The state is empty."))
"""Keys that show another tab, and a text that only this tab has."""
SYNC_ASKED, SYNC_TAKEN, BEGIN = b"\x1b[?2026$p", b"\x1b[?2026;1$y", b"\x1b[?2026h"
"""Whether the terminal takes synchronized output, its yes, and what a repaint then begins with."""
CASCADE = "cascade_id: talk\nphases:\n  - name: talk\n    instructions: Talk.\n"


def press(screen: Screen) -> float:
    """The p95, in seconds, from a key that changes the tab to the tab's text."""
    taken = []
    for number in range(KEYS):
        key, text = TABS[number % 2]
        begin = screen.press(key)
        taken.append(screen.until(text) - begin)
    return quantiles(taken, n=20)[-1]


def run() -> Iterator[Line]:
    reply = Reply("word " * (PIECES * 8 // 5), usage={"prompt_tokens": 9, "completion_tokens": PIECES})
    with workspace() as folder, Loopback([reply]) as provider:
        (folder / "talk.yaml").write_text(CASCADE)
        env = alone(folder) | {"WORKBENCH_API_KEY": "none"}
        command = [*WORKBENCH, "open", "talk.yaml", "--model", "openai/gpt-4o", "--base-url", provider.url]
        with Screen(command, folder, env) as screen:
            screen.until(SYNC_ASKED)
            screen.press(SYNC_TAKEN)
            screen.until(b"NOT RUN")
            screen.settle(2.0)
            idle = press(screen)
            screen.press(b"r")
            screen.press(b"c")
            screen.until(b"word word")
            busy = press(screen)
            began, painted = time.perf_counter(), 0
            while (data := screen.read(0.5)) and time.perf_counter() - began < 1.0:
                painted += data.count(BEGIN)
            frames = painted / (time.perf_counter() - began)
    yield Line("15", "repaints per second while an answer streams in, 60", frames, FRAMES_PER_SECOND, "Hz", 1.0)
    yield Line("15", "p95 from a key to its text while streaming, idle", busy * 1e3, idle * 1e3, "ms", 3.0)
