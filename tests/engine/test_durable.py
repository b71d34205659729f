"""When a run is made durable: before anything outside may depend on it, and no oftener."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping

from msgspec.structs import replace

from tests.engine.support import FunctionTools, ListSink, ScriptedModel, call, ports
from tests.support.waiting import PATIENCE, soon
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer
from workbench.engine.definition import Definition, Options
from workbench.engine.journal.journal_writer import JournalWriter
from workbench.engine.run.run import Run

LOOKING = {"name": "p", "instructions": "Look.", "tackle": ["look"], "rules": {"max_turns": 5}}


def run(sink: ListSink, model: object, *phases: Mapping[str, object]) -> None:
    definition = Definition.of(json.dumps({"cascade_id": "c", "phases": phases or [LOOKING]}), "c.json")
    outside = replace(ports(model, tools=FunctionTools({"look": lambda x="": "seen"})), sink=sink)
    assert asyncio.run(Run(definition, {}, Options("s", "gpt-4o"), outside).execute()).status == "success"


class Waiting(ScriptedModel):
    """Answers the call that follows an event of a kind when that event is durable."""

    def __init__(self, sink: ListSink, kind: str, replies: list[str]) -> None:
        super().__init__(replies)
        self.sink, self.kind = sink, kind

    async def complete(self, request: Request, place: Place, *rest: object) -> Answer:
        if self.requests:
            at = [event.kind for event in self.sink.events].index(self.kind) + 1
            await soon(lambda: any(synced >= at for synced in self.sink.synced_at), "the write", pause=0)
        return await super().complete(request, place, *rest)  # type: ignore[arg-type]


def test_a_turn_is_durable_with_the_tool_that_follows_it_in_one_write() -> None:
    sink = ListSink()
    run(sink, ScriptedModel([*(call("look", x=str(number)) for number in range(4)), "done"]))

    kinds = [event.kind for event in sink.events]
    starts = [number for number, kind in enumerate(kinds, 1) if kind == "tool_started"]
    assert len(starts) == 4
    assert sink.synced_at[:4] == starts
    assert [kinds[at - 1] for at in sink.synced_at[4:]] == ["call_finished", "run_finished"]


def test_a_turn_is_durable_while_the_next_answer_is_awaited() -> None:
    sink = ListSink()

    run(sink, Waiting(sink, "tool_finished", [call("look"), "done"]))


def test_the_end_of_a_phase_is_durable_while_the_next_one_waits() -> None:
    sink, second = ListSink(), {"name": "q", "instructions": "And then?"}
    run(sink, Waiting(sink, "phase_finished", ["done", "over"]), LOOKING | {"handoffs": ["q"]}, second)


async def test_those_who_ask_while_the_disk_is_busy_share_its_next_write() -> None:
    busy, free = threading.Event(), threading.Event()

    class Slow(ListSink):
        def sync(self) -> None:
            super().sync()
            busy.set()
            assert free.wait(PATIENCE)

    sink = Slow()
    journal = JournalWriter("r", ports(ScriptedModel([])).clock, sink, lambda event: None)
    first = asyncio.ensure_future(journal.synced())
    await asyncio.to_thread(busy.wait, 10)
    others = [asyncio.ensure_future(journal.synced()) for _ in range(50)]
    await asyncio.sleep(0)
    others[0].cancel()
    free.set()
    await first
    await asyncio.gather(*others[1:])
    assert len(sink.synced_at) == 2


async def test_turns_that_end_within_a_moment_share_a_write() -> None:
    asyncio.get_running_loop().time = lambda: 7.0  # type: ignore[method-assign]
    sink, writes = ListSink(), list[int]()
    journal = JournalWriter("r", ports(ScriptedModel([])).clock, sink, lambda event: None)
    for _ in range(5):
        journal.sync_soon()
        await soon(lambda: sink.synced_at, "the first write", pause=0)
        await asyncio.to_thread(lambda: None)
    writes.append(len(sink.synced_at))
    await journal.synced()
    assert [*writes, len(sink.synced_at)] == [1, 2]


async def test_nothing_is_left_to_be_done_by_a_run_that_is_over() -> None:
    """A loop that ends is not handed a last write that nobody waits for."""

    loop, now = asyncio.get_running_loop(), [7.0]
    loop.time = lambda: now[0]  # type: ignore[method-assign]
    sink = ListSink()
    journal = JournalWriter("r", ports(ScriptedModel([])).clock, sink, lambda event: None)
    await journal.synced()
    journal.sync_soon()
    journal.sync()
    now[0] = 8.0
    await asyncio.sleep(0)
    left = 0
    for _ in range(3):
        await asyncio.sleep(0)
        left = max(left, len(asyncio.all_tasks()) - 1)
    assert (len(sink.synced_at), left) == (2, 0)
