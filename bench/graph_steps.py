"""What a step costs in the app on a long pipeline: ``python -m bench.graph_steps [STAGES] [VISITS]``.

A pipeline of 200 stages, of which the last 50 are visited twice, under the offline model, stepped through node by node
by ``n`` at 120x40. For each fifth of the steps: milliseconds of the processor, engine and screen together, and the
time until the pause was drawn. Then the time of one look at the flow, which is an outline for so many stages, and of
the drawing of the largest graph that is drawn.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.ui.bench import Bench, bench
from tests.ui.test_graphs import graph_session
from workbench.language.load import load
from workbench.views.flow import MOST_NODES, FlowDrawing
from workbench.views.graph import FlowRows


def pipeline(stages: int, twice: int) -> str:
    """Stages in a line; from the last one back to the ``twice``-th before it, once."""
    names = [f"stage_{number}" for number in range(stages)]
    lines = ['digraph long { goal="Go on" start [shape=Mdiamond] exit [shape=Msquare]']
    lines += [f'{name} [prompt="Do the work of {name}."]' for name in names]
    lines.append(f"start -> {' -> '.join(names)}")
    if twice:
        lines.append(f'{names[-1]} -> {names[-twice]} [condition="outcome=again"]')
    lines.append(f'{names[-1]} -> exit [condition="outcome!=again"] }}')
    return "\n".join(lines)


def replies(stages: int) -> str:
    """One answer for each stage; the last one asks to go back the first time."""
    found = [f"  stage_{number}: [{{text: Did it.}}]" for number in range(stages)]
    last = f"stage_{stages - 1}"
    found[-1] = f'  {last}: [{{text: "outcome=again"}}]'
    return "\n".join(["replies:", *found, f"  {last}#2: [{{text: Done.}}]"]) + "\n"


def _paused_again(it: Bench, before: object) -> bool:
    """Whether the run is paused elsewhere, or over."""
    state = it.presenter.state
    return (state.held is not None and state.held is not before) or state.run.status not in ("running", "")


async def steps(stages: int, twice: int) -> list[tuple[float, float]]:
    """Of each step the seconds of the processor, and those until it was drawn."""
    taken: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        session = graph_session(Path(folder), pipeline(stages, twice), replies(stages), "long.dot")
        async with bench(Path(folder), session=session, given={}) as it:
            while it.presenter.state.run.status == "running" or not taken:
                before = it.presenter.state.held
                used, began = time.process_time(), time.perf_counter()
                await it.press("n")
                await it.until(partial(_paused_again, it, before))
                taken.append((time.process_time() - used, time.perf_counter() - began))
    return taken


def fifths(values: Sequence[float]) -> str:
    """The mean of each fifth, in milliseconds."""
    size = max(1, len(values) // 5)
    means = [sum(part) / len(part) for at in range(5) if (part := values[at * size : (at + 1) * size])]
    return "  ".join(f"{mean * 1e3:6.1f}" for mean in means)


def main() -> None:
    stages = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    twice = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    taken = asyncio.run(steps(stages, twice))
    print(f"{len(taken)} steps over {stages} stages, {twice} visited twice; mean of each fifth, ms")
    print(f"  processor        {fifths([used for used, _ in taken])}")
    print(f"  until drawn      {fifths([waited for _, waited in taken])}")
    for name, count in (("outline", stages), ("drawing", MOST_NODES - 2)):
        graph = load(pipeline(count, min(twice, count // 2)), "long.dot").graph
        assert graph is not None
        began = time.process_time()
        rows = FlowRows(graph, None) if name == "outline" else FlowDrawing(graph, None)
        for row in range(min(40, len(rows))):
            rows.row(row, 120)
        used = (time.process_time() - began) * 1e3
        print(f"  {name} of {count} stages, first screen: {used:.1f} ms of the processor")


if __name__ == "__main__":
    main()
