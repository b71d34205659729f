"""Goals 11, 12 and 13: a run of 500 turns, its journal on disk, against langgraph with and without SqliteSaver."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from msgspec.structs import replace

from bench.measure import Line, peer, python
from tests.engine.support import FunctionTools, ScriptedModel, call, ports
from workbench.engine.definition import Definition, Options
from workbench.engine.journal.journal_writer import Sink
from workbench.engine.journal.memory_sink import MemorySink
from workbench.engine.run.run import Run
from workbench.store.store import Store

TURNS = 500

SAID = """
import random
def said(turn):
    return random.Random(turn).randbytes(300).hex(" ", 4)
"""
OURS = "import sys; from bench.engine import ours; print(ours(sys.argv[1]))"
THEIRS = (
    SAID
    + """
import json, operator, os, sqlite3, sys, time
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.checkpoint.sqlite import SqliteSaver
class State(TypedDict):
    messages: Annotated[list, operator.add]
    turn: int
TURNS = int(sys.argv[2])
def model(state):
    return {"messages": [{"role": "assistant", "content": f"call {state['turn']}"}], "turn": state["turn"] + 1}
def tool(state):
    return {"messages": [{"role": "tool", "content": said(state["turn"])}]}
graph = StateGraph(State)
graph.add_node("model", model)
graph.add_node("tool", tool)
graph.add_edge(START, "model")
graph.add_conditional_edges("model", lambda state: "tool" if state["turn"] < TURNS else END)
graph.add_edge("tool", "model")
saver = SqliteSaver(sqlite3.connect("peer.db", check_same_thread=False)) if sys.argv[1] == "durable" else None
app = graph.compile(checkpointer=saver)
config = {"configurable": {"thread_id": "1"}, "recursion_limit": 3 * TURNS}
begin = time.perf_counter()
app.invoke({"messages": [{"role": "user", "content": "x"}], "turn": 0}, config)
took = time.perf_counter() - begin
size = sum(os.path.getsize(name) for name in os.listdir(".") if name.startswith("peer.db"))
print(json.dumps({"seconds": took, "bytes": size}))
"""
)


def ours(kind: str) -> str:
    """One run in this process, as JSON: seconds in all and of the first and the last quarter, bytes on disk."""
    space: dict[str, object] = {}
    exec(SAID, space)
    said = space["said"]
    assert callable(said)
    at: list[float] = []

    def look(x: str = "0") -> str:
        at.append(perf_counter())
        return str(said(int(x)))

    phase = {"name": "p", "instructions": "x", "tackle": ["look"], "rules": {"max_turns": TURNS}}
    definition = Definition.of(json.dumps({"cascade_id": "c", "phases": [phase]}), "c.yaml")
    model = ScriptedModel([*(call("look", x=str(number)) for number in range(TURNS - 1)), "done"])

    def run(sink: Sink) -> float:
        outside = ports(model, tools=FunctionTools({"look": look}))
        work = Run(definition, {}, Options("s", "gpt-4o"), replace(outside, sink=sink), run_id="r")
        begin = perf_counter()
        outcome = asyncio.run(work.execute())
        assert outcome.output == "done"
        return perf_counter() - begin

    size = 0
    if kind == "durable":
        store = Store(Path.cwd() / "store")
        with store.create("r") as journal:
            took = run(journal)
        size = sum(file.stat().st_size for file in store.folder("r").rglob("*") if file.is_file())
    else:
        took = run(MemorySink())
    quarter = len(at) // 4
    return json.dumps({"seconds": took, "bytes": size, "first": at[quarter] - at[0], "last": at[-1] - at[-1 - quarter]})


def langgraph() -> str | None:
    """The Python that has langgraph and langchain; None where they cannot be installed."""
    packages = ("langgraph", "langgraph-checkpoint-sqlite", "langchain")
    return peer("langgraph", packages, "langgraph.checkpoint.sqlite, langchain.agents.middleware")


def run(rounds: int = 3) -> Iterator[Line]:
    other = langgraph()
    kinds = ("durable", "bare")
    mine: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    theirs: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            mine[kind].append(json.loads(python(OURS, kind)))
            if other is not None:
                theirs[kind].append(json.loads(python(THEIRS, kind, str(TURNS), program=other)))

    def of(side: dict[str, list[dict[str, float]]], kind: str, name: str) -> float:
        return median(each[name] for each in side[kind])

    if other is not None:
        unit = 1e3 / TURNS
        durable = of(mine, "durable", "seconds") * unit, of(theirs, "durable", "seconds") * unit
        yield Line("11", "one turn of 500, durable, langgraph SqliteSaver", *durable, "ms", 0.5)
        bare = of(mine, "bare", "seconds") * unit, of(theirs, "bare", "seconds") * unit
        yield Line("11", "one turn of 500, no store, langgraph bare", *bare, "ms", 1.0)
        size = of(mine, "durable", "bytes") / 1e6, of(theirs, "durable", "bytes") / 1e6
        yield Line("13", "bytes of 500 turns, langgraph SqliteSaver", *size, "MB", 0.02)
    quarters = of(mine, "durable", "last") * 1e3, of(mine, "durable", "first") * 1e3
    yield Line("12", "last quarter of 500 turns against the first", *quarters, "ms", 1.3)
