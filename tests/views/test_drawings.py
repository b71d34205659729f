"""Whole drawings of graphs of many shapes, before a run and after one, in rooms that are wide and narrow."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.engine.support import play
from tests.support.panes import mark
from tests.support.stored import check_stored
from tests.ui.test_flow import drawn_layout
from tests.ui.test_graphs import REVIEW
from tests.views.test_views import coloured
from workbench.context.place import Place
from workbench.engine.definition import Definition
from workbench.engine.journal.state import RunState
from workbench.language.graph import Graph
from workbench.views.flow import FlowDrawing
from workbench.views.flow_layout import laid_out
from workbench.views.graph import FlowRows

STORED = Path(__file__).parent / "stored"


def test_layouts_of_random_graphs_are_the_stored_ones() -> None:
    """Every fourth one has no labels, and so needs no room; some arrows have room for several lines."""
    told = []
    for seed in range(12):
        chance = Random(seed)
        names = "abcdefghij"[: 3 + seed % 6]
        widths = {name: chance.choice((5, 6, 9, 12)) for name in names}
        edges = [(chance.choice(names), chance.choice(names)) for _ in range(len(names) + seed % 5)]
        labels = [chance.choice((0, 0, 5, 18, 50)) if seed % 4 else 0 for _ in edges]
        rows = {number: chance.randint(2, 3) for number in range(len(edges)) if seed % 3 == 0 and number % 3 == 0}
        start = names[seed % 2]
        layout = laid_out(widths, edges, start, labels, 30 * (seed % 5), rows)
        told.append(" ".join(f"{a}{b}{label or ''}" for (a, b), label in zip(edges, labels, strict=True)))
        told.append(f"from {start}, rows {rows}: {layout.width} x {layout.height} {layout.layers}")
        told += [*drawn_layout(layout), ""]
    check_stored(STORED / "layouts.txt", "\n".join(told))


ROUTER = """\
cascade_id: router
phases:
  - name: lesen und verstehen, was gemeint ist
    model: openai/gpt-4.1
    instructions: Read.
    handoffs:
      - {target: 直す, description: something does not work and may be repaired by the customer}
      - {target: refund, description: 'the customer wants money back, or was charged wrongly'}
  - {name: 直す, instructions: Mend it., handoffs: [refund]}
  - {name: refund, instructions: Pay., tools: [linux_shell], soundings: {factor: 2}}
"""
LOOP = """\
digraph loop { start [shape=Mdiamond] done [shape=Msquare]
  ask [shape=hexagon, label="Which of the two?"] task [prompt="Work on $goal", label="The task"]
  run [prompt="Run it"] mend [shape=parallelogram, tool_command="true"]
  start -> ask  ask -> task [label="[W] Work"]  ask -> run [label="[R] Run"]
  ask -> done [label="[S] Stop now, and do nothing more of it"]
  task -> task [condition="outcome=fail"]  task -> run [weight=3]
  run -> ask [condition="outcome=fail", label="once more"]
  run -> done  run -> mend [condition="outcome=error"]  mend -> done
}
"""
ALIKE = """\
digraph alike { start [shape=Mdiamond] done [shape=Msquare] a [prompt="a"] b [prompt="b"]
  start -> a [label="same"]  a -> b [label="same"]  b -> done [label="same"] }
"""


def runs() -> list[tuple[str, Graph, RunState | None, Place | None, tuple[int, ...]]]:
    told = {"plan": ["a"] * 2, "code": ["b"] * 2, "docs": ["c"] * 2, "check": ["no\noutcome=fail", "outcome=success"]}
    worked = {"task": ["x\noutcome=fail", "y"], "run": ["z\noutcome=fail", "z"]}
    review, router = Definition.of(REVIEW, "review.dot").graph, Definition.of(ROUTER, "router.yaml").graph
    loop, alike = Definition.of(LOOP, "loop.dot").graph, Definition.of(ALIKE, "alike.dot").graph
    walked = play(REVIEW, told, answers=["a"]).state
    return [
        ("review, before a run", review, None, None, (48,)),
        ("review, paused", review, walked, Place("", "ask", 1), (100,)),
        ("router", router, None, Place("", "elsewhere", 1), (60,)),
        ("loop, before a run", loop, None, None, (90,)),
        ("loop, run", loop, play(LOOP, worked, answers=["w", "s"]).state, None, (48,)),
        ("alike", alike, None, None, (36,)),
    ]


def test_graphs_are_drawn_like_the_stored_ones() -> None:
    found = []
    for name, graph, run, held, rooms in runs():
        for room in rooms:
            drawing = FlowDrawing(graph, run, held, room=room)
            drawing.select(drawing.selected, room)
            found.append(f"== {name}, {room} cells, shifted by {drawing.shift}")
            rows = [*drawing.heads(room), *(drawing.row(index, room) for index in range(len(drawing)))]
            found += [row.text.rstrip() for row in rows]
            found.append(f"(colours {mark([coloured(row.spans, row.tone) for row in rows])})")
        found.append(" ".join(f"{node.id}>{'/'.join(near(drawing, node.id))}" for node in graph.nodes))
        outline = FlowRows(graph, run)
        rows = [*outline.heads(90), *(outline.row(index, 90) for index in range(len(outline)))]
        found += [row.text.rstrip() for row in rows]
        found.append(f"(colours {mark([coloured(row.spans, row.tone) for row in rows])})")
    check_stored(STORED / "drawings.txt", "\n".join(found) + "\n")


def near(drawing: FlowDrawing, name: str) -> list[str]:
    """The nodes to which the keys for up, down, left and right lead from one."""
    drawing.selected = name
    return [drawing.neighbour(direction) for direction in ("up", "down", "left", "right")]
