"""What resuming a run again and again leaves: ``python -m bench.resumes [RESUMES...]``.

A line for each number of resumes (0, 1, 4, 16, 64 by default) of a run of 70 turns: its records, bytes and calls, which
must not grow with the resumes, and seconds of a resume. It exits 1 where a total differs from that of the run that went
through.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

from bench.long_runs import text
from tests.engine.support import FunctionTools, ScriptedModel, call, ports
from workbench.engine.definition import Definition, Options
from workbench.engine.gate import Decision, RunStopped, Stop, StopKind
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import RESUMED, Replay
from workbench.engine.run.run import Run
from workbench.store.store import Store

RESUMES = (0, 1, 4, 16, 64)
TURNS = 70
RUN = "resumed-run"


class Stops:
    """A gate that lets some live calls through, and then ends the run."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    async def __call__(self, stop: Stop) -> Decision:
        if stop.kind is StopKind.BEFORE_CALL and stop.answered_by == "live":
            self.left -= 1
            if self.left < 0:
                raise RunStopped("enough")
        return Decision()


def lived(folder: Path, resumes: int) -> tuple[Store, float]:
    """A run that was stopped so many times, and seconds of the last part."""
    store, took = Store(folder), 0.0
    phase = {"name": "p", "instructions": "x", "tackle": ["look"], "rules": {"max_turns": TURNS}}
    definition = Definition.of(json.dumps({"cascade_id": "c", "phases": [phase]}), "c.yaml")
    model = ScriptedModel([*(call("look", x=str(turn)) for turn in range(TURNS - 1)), "done"])
    tools = FunctionTools({"look": lambda x="0": text(int(x), 60)})
    options = Options("s", "gpt-4o")
    for part in range(resumes + 1):
        begin = perf_counter()
        gate = Stops(1 if part < resumes else TURNS)
        events = list(store.events(RUN)) if part else []
        with store.append_to(RUN) if part else store.create(RUN) as journal:
            outside = replace(ports(model, tools=tools, gate=gate), sink=journal)
            replayed = Replay(Recording(events), RESUMED, outside).ports(outside) if part else outside
            asyncio.run(Run(definition, {}, options, replayed, run_id=RUN, journaled=events).execute())
        took = perf_counter() - begin
    return store, took


def main(counts: list[int]) -> int:
    """Exit code 1 where a total differs."""
    right: tuple[int, ...] | None = None
    wrong = False
    for resumes in counts:
        with tempfile.TemporaryDirectory() as home:
            store, took = lived(Path(home), resumes)
            run, state = store.summary(RUN), store.state(RUN)
            tools = sum(len(one.tools) for one in state.calls)
            totals = (run.calls, run.tools, run.tokens_in, run.tokens_out, len(state.calls), tools, len(state.visits))
            right = right or totals
            wrong = wrong or totals != right
            print(
                f"{resumes:>4} resumes  {run.seq:>5} records  {run.bytes / 1e3:7.1f} kB  {run.calls} calls"
                f"  {run.tools} tools  last part {took:5.2f} s{'' if totals == right else '  WRONG'}",
                flush=True,
            )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main([int(argument) for argument in sys.argv[1:]] or list(RESUMES)))
