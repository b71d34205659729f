"""What a visit of a long pipeline costs: ``python -m bench.pipeline_visits [VISITS] [MODE...]``.

A pipeline of 200 stages in a loop, 1,000 visits by default, each with an answer of 60 words and a new value in the
context, with a model that answers at once and no store. A line for each fidelity: milliseconds of the processor for a
visit in each fifth of the run, and how much the last fifth takes beyond the first.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from itertools import pairwise

from msgspec.structs import replace

from tests.engine.support import ListSink, ports
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer, Images
from workbench.engine.definition import Definition, Options
from workbench.engine.journal.usage import Usage
from workbench.engine.run.run import Run
from workbench.models.encodings import encodings

STAGES = 200
MODES = ("truncate", "compact", "summary:low", "summary:medium", "summary:high", "full")


def pipeline(mode: str, visits: int) -> str:
    """Stages in a ring, with an exit from the last one."""
    names = [f"stage_{number}" for number in range(STAGES)]
    lines = [
        f'digraph ring {{ goal="Go round" default_fidelity="{mode}" default_thread="all"',
        f"node [max_visits={visits}] start [shape=Mdiamond] exit [shape=Msquare]",
    ]
    lines += [f'{name} [prompt="Do the work of {name}."]' for name in names]
    lines.append(f"start -> {' -> '.join(names)} -> {names[0]}")
    lines.append(f'{names[-1]} -> exit [condition="context.enough=true"] }}')
    return "\n".join(lines)


class Working:
    """Answers each call with 60 words and a value; the last one says that it is enough."""

    name = "working"

    def __init__(self, visits: int) -> None:
        self.visits = visits
        self.at: list[float] = []
        """Seconds of the processor at each call."""

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        self.at.append(time.process_time())
        made = f"Found {len(self.at)} things. " + "and some more words " * 15
        enough = "true" if len(self.at) >= self.visits else "false"
        updates = f'{{"made_{len(self.at)}": "a value of some words", "enough": "{enough}"}}'
        said = f'{made}\n```json\n{{"outcome": "success", "context_updates": {updates}}}\n```'
        return Answer(said, usage=Usage(input=100, output=80))

    def recorded(self, request: Request, place: Place) -> str:
        return "live"


def fifths(mode: str, visits: int) -> list[float]:
    """Milliseconds for a visit in each fifth of a run."""
    model = Working(visits)
    outside = replace(ports(model, sink=ListSink()), counter=encodings())
    definition = Definition.of(pipeline(mode, visits), "ring.dot")
    begin = time.process_time()
    outcome = asyncio.run(Run(definition, {}, Options("bench", "openai/gpt-4o"), outside).execute())
    assert outcome.status == "success", outcome.reason
    marks = [begin, *(model.at[visits * part // 5 - 1] for part in range(1, 6))]
    return [(after - before) / (visits / 5) * 1e3 for before, after in pairwise(marks)]


def main() -> None:
    """Print a line for each mode."""
    visits = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    for mode in sys.argv[2:] or MODES:
        taken = fifths(mode, visits)
        shown = "  ".join(f"{one:6.1f}" for one in taken)
        print(f"{mode:15} {visits:,} visits  {shown} ms a visit  last to first {taken[-1] / taken[0]:5.2f}", flush=True)


if __name__ == "__main__":
    main()
