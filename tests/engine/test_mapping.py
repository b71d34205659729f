"""A cascade for each of many items: what each gets, how many count, and what is said of those that do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.engine.support import ListSink, ScriptedModel, ports
from tests.engine.test_children import Shelf
from tests.support.stored import check_stored
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer, Images, ModelFault
from workbench.engine.definition import Definition, Options
from workbench.engine.run.run import Run

STORED = Path(__file__).parent / "stored"
EACH = {"cascade_id": "each", "phases": [{"name": "ask", "instructions": "{{ input.item }}{{ input.who }}"}]}


class Echo(ScriptedModel):
    """Answers with the task in capitals, for a quarter; what is ``bad`` is refused, what is ``slow`` never answered."""

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        task = request.messages[-1].text
        if "bad" in task:
            raise ModelFault("bad_request", "no")
        if "slow" in task:
            await asyncio.Event().wait()
        return Answer(task.upper(), cost=0.25, cost_grade="billed")


async def told(arguments: Mapping[str, str]) -> list[str]:
    """How a run of ``map_cascade`` ended: its status and reason, its warnings, and its output."""
    cascade = {"cascade_id": "c", "phases": [{"name": "all", "tool": "map_cascade", "inputs": arguments}]}
    sink = ListSink()
    outside = ports(Echo([]), sink=sink, library=Shelf({"each": EACH}))
    outcome = await Run(Definition.of(json.dumps(cascade), "c.json"), {}, Options("s", "m"), outside).execute()
    said = [f"{outcome.status} {outcome.reason}".strip()]
    said += [f"warning: {event.data['message']}" for event in sink.events if event.kind == "warning"]
    if outcome.status == "success":
        body = json.loads(outcome.output)
        said += [json.dumps(row) for row in body.pop("rows")]
        said.append(json.dumps(body))
    return said


CASES: Sequence[Mapping[str, str]] = (
    {"cascade": "each", "map_over": '["a", "b"]'},
    {"cascade": "each", "map_over": "a, b ,,c", "input_key": "who"},
    {"cascade": "each", "map_over": "('a', 'b')"},
    {"cascade": "each", "map_over": "['a', {'k': 1}]"},
    {"cascade": "each", "map_over": "7"},
    {"cascade": "each", "map_over": '["a", "bad", "c"]'},
    {"cascade": "each", "map_over": '["a", "bad", "c"]', "on_error": "fail_fast", "max_parallel": "1"},
    {"cascade": "each", "map_over": '["a", "bad", "c"]', "on_error": "collect_errors"},
    {"cascade": "each", "map_over": '["bad", "bad"]'},
    {"cascade": "each", "map_over": '["a", "bad"]', "mode": "all_or_nothing"},
    {"cascade": "each", "map_over": '["bad", "b", "c"]', "mode": "first_valid"},
    {"cascade": "each", "map_over": '["slow", "b"]', "timeout": "0.01"},
    {"cascade": "each", "map_over": '["slow", "b"]', "timeout": "0.01", "on_error": "fail_fast", "max_parallel": "1"},
    {"cascade": "each"},
    {"map_over": "a"},
    {"cascade": "each", "map_over": "a", "x": "1"},
    {"cascade": "each", "map_over": "a", "max_parallel": "x"},
    {"cascade": "each", "map_over": "a", "timeout": "x"},
    {"cascade": "each", "map_over": "a", "timeout": "-1"},
    {"cascade": "each", "map_over": "a", "mode": "x"},
    {"cascade": "each", "map_over": "a", "on_error": "x" * 80},
    {"cascade": "nope", "map_over": "a"},
    {"cascade": "each", "map_over": json.dumps(list(range(1001)))},
)


async def test_a_cascade_runs_for_each_item_as_stored() -> None:
    lines: list[str] = []
    for case in CASES:
        lines.append(", ".join(f"{name}={value[:60]}" for name, value in case.items()))
        lines += [f"    {line}" for line in await told(case)]
    check_stored(STORED / "mapping.txt", "\n".join(lines) + "\n")


ITEMS = {"cascade": "each", "map_over": '["a", "b", "c", "d", "e"]', "max_parallel": "1"}


@pytest.mark.parametrize(
    ("limit", "status", "reason", "ran"),
    [(0.5, "stopped", "the limit of 0.5 US dollars for a run is reached", 2), (1.25, "success", "", 5)],
)
async def test_what_the_items_are_billed_counts_for_the_limit_of_the_run(
    limit: float, status: str, reason: str, ran: int
) -> None:
    cascade = {"cascade_id": "c", "phases": [{"name": "all", "tool": "map_cascade", "inputs": ITEMS}]}
    shelf = Shelf({"each": EACH})
    outside = ports(Echo([]), library=shelf)
    options = Options("s", "m", max_cost=limit)
    outcome = await Run(Definition.of(json.dumps(cascade), "c.json"), {}, options, outside).execute()
    assert (outcome.status, outcome.reason) == (status, reason)
    ended = [sink.events[-1].data["status"] for sink in shelf.journals.values()]
    assert ended.count("success") == ran


@pytest.mark.parametrize(
    "tool",
    [
        {"tool": "each", "inputs": {"item": "slow"}},
        {"tool": "map_cascade", "inputs": {"cascade": "each", "map_over": "slow"}},
    ],
)
async def test_the_time_limit_of_a_phase_ends_the_cascade_that_it_runs_and_not_the_run(tool: dict[str, object]) -> None:
    child = {**EACH, "inputs_schema": {"item": "what to say"}}
    cascade = {"cascade_id": "c", "phases": [{"name": "all", "timeout": 0.01, **tool}]}
    shelf = Shelf({"each": child})
    outside = ports(Echo([]), library=shelf)
    outcome = await Run(Definition.of(json.dumps(cascade), "c.json"), {}, Options("s", "m"), outside).execute()
    assert outcome.status == "failed"
    assert outcome.reason.endswith("the time limit of 0.01 s is over")
