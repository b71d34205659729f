"""What a pipeline with every attribute and a decomposition with every key become: cascade, nodes, edges and places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import fields

from tests.support.stored import check_stored
from workbench.language.dot.attributes import EDGE, GRAPH, NODE, AttributeRow
from workbench.language.load import Loaded, load

FAULTS = Path(__file__).parent / "faults"
VALUES = {"count": "3", "switch": "true", "gate": "true", "duration": "90s", "words": "one,two"}
OWN = {"stack.child_dotfile": "child.dot", "workbench.shapes": "tab=codergen", "workbench.allow": "dead_end"} | {
    "manager.stop_condition": "outcome=success",
    "condition": "outcome=success",
    "model_stylesheet": "* { llm_model: m; } .one { reasoning_effort: low; } #later { llm_provider: p; }",
    "vars": "feature, env=staging",
    "workbench.strategy": "mask(after=1)",
    "prompt_file": "",
    "shape": "",
    "type": "",
    "mode": "freeform",
}


def every(table: tuple[AttributeRow, ...]) -> str:
    """All attributes of a table, each with a value that is not the default."""
    said = {
        row.name: OWN.get(row.name, row.choices[-1] if row.choices else VALUES.get(row.kind, f"a {row.name}"))
        for row in table
    }
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in said.items() if value)


PIPELINE = f"""digraph g {{ graph [{every(GRAPH)}]
  start [shape=Mdiamond]
  done [shape=Msquare]
  full [{every(NODE)}]
  subgraph cluster_group {{ label="Their Group"
    later [prompt="Later $feature.", class="one"]
    manager [shape=house, stack.child_dotfile="child.dot", manager.actions="observe,steer"]
  }}
  ask [shape=hexagon, label="Go on?"] run [shape=parallelogram, tool_command="ls"]
  fan [shape=component, max_parallel=2] meet [shape=tripleoctagon] gate [shape=diamond] page [shape=tab]
  start -> full [{every(EDGE)}]
  full -> later -> manager -> ask; ask -> run [label="[Y] Yes"]; ask -> done [label="No", weight=2]
  run -> gate; gate -> fan [condition="outcome=success"]; gate -> full [condition="outcome=fail", loop_restart=true]
  fan -> page -> meet; fan -> done -> meet; meet -> done
}}
"""
JOB = {
    "$schema": "x",
    "original_request": "Do it.",
    "title": "A job",
    "intent": {"primary": "Find out", "sub_intents": ["a", "b"]},
    "entities": [{"entity": "Ann", "type": "person", "grounded_value": "ann@x"}],
    "entity_context_config": {"include_all": False, "filter_by_relevance": "medium", "include_entity_type": True},
    "dependency_config": {"include_full_output": True, "max_output_length": None, "summarize_strategy": "none"},
    "max_parallel": 2,
    "clarification_needed": True,
    "clarification_query": "Which one?",
    "synthesis_plan": "Join <result of task 1>.",
    "validation": {"coverage": "all", "gaps": ["none of C"]},
    "sub_tasks": [
        {
            "id": "1",
            "description": "d",
            "thought": "t",
            "expected_output": "e",
            "action_type": "tool",
            "tool_or_prompt": {"name": "look", "params": {"x": [1, "two"]}},
            "dependencies": [],
            "entity_context": [
                {"entity_name": "Ann", "intent_relevance": "high", "grounded_value": "g", "usage_note": "n"}
            ],
        },
        {
            "id": "2",
            "description": "d2",
            "thought": "t2",
            "expected_output": "e2",
            "action_type": "inference",
            "tool_or_prompt": {
                "name": "inference",
                "params": {"prompt": "Use <result of task 1>.", "system_prompt": "Be brief.", "model": "m"},
            },
            "dependencies": ["1"],
            "dependency_outputs": [{"task_id": "1", "output": "o"}],
            "dependency_config": {"include_full_output": False, "max_output_length": 80},
            "entity_context_config": {"include_all": True},
        },
        {
            "id": "3",
            "description": "d3",
            "thought": "t3",
            "expected_output": "e3",
            "action_type": "skill",
            "tool_or_prompt": {"name": "sum_up", "params": {}},
            "dependencies": ["1", "2"],
        },
    ],
}


def plain(value: Any) -> Any:
    if isinstance(value, Struct):
        own = [one for one in fields(value) if getattr(value, one.name) != one.default]
        held = {one.name: plain(getattr(value, one.name)) for one in own}
        return {name: one for name, one in held.items() if one not in ("", None, [], {}, False, 0)}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if isinstance(value, str | int | float | None) else str(value)


def lines_of(loaded: Loaded) -> list[str]:
    assert loaded.cascade is not None, loaded.problems
    assert loaded.graph is not None
    whole = loaded.cascade.model_dump(mode="json", exclude_defaults=True)
    said = [json.dumps({key: value}) for key, value in whole.items() if key != "phases"]
    said += [f"phase {json.dumps(phase)}" for phase in whole["phases"]]
    said += [f"node {json.dumps(plain(node))}" for node in loaded.graph.nodes]
    said += [f"edge {json.dumps(plain(edge))}" for edge in loaded.graph.edges]
    rest = {key: value for key, value in plain(loaded.graph).items() if key not in ("nodes", "edges")}
    said += [f"graph {json.dumps(rest)}", *(f"outline {name} {line}" for name, line in loaded.outline)]
    for index, phase in enumerate(loaded.cascade.phases):
        for key in sorted(phase.model_fields_set):
            span = loaded.source.span(("phases", index, key))
            said.append(f"place of {phase.name}.{key}: {span.line}:{span.column}-{span.end_line}:{span.end_column}")
    return said


@pytest.mark.parametrize(
    ("name", "text", "file"),
    [("pipeline", PIPELINE, "g.dot"), ("job", json.dumps(JOB, indent=1), "j.json")],
)
def test_a_file_with_everything_becomes_what_is_stored(name: str, text: str, file: str) -> None:
    check_stored(FAULTS / f"lowered-{name}.txt", "\n".join(lines_of(load(text, file))) + "\n")
