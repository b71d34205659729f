"""What an edit of a file changes, line by line, and which edits are refused with which words."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.language.test_dot_edit import TEXT as GRAPH
from tests.support.stored import check_stored
from workbench.language.edit.edits import remove, replace
from workbench.language.edit.errors import EditError
from workbench.language.edit.phase_names import renamed_phase
from workbench.language.edit.tasks import renamed_task
from workbench.language.problem import Path as Keys
from workbench.language.read.source import Source
from workbench.language.read.text import read_source

FAULTS = Path(__file__).parent / "faults"
YAML = """\
# all of it
cascade_id: c  # its id
shared: &s {a: 1, b: [x]}
phases:
  - name: one
    instructions: |
      First {{ outputs.two }}.

    rules: {max_turns: 3}
    context: *s
    tackle: [a, "b"]
    model: 'quoted'
    handoffs:
      - two   # then
      - target: three
        description: "else"
  - <<: *s
    name: two
    instructions: Second.
    empty:
    none: ~
  - {name: three, instructions: "Third {{ outputs['one'] }}", context: {from: [one, two]}}
"""
JSON = """\
{
    "cascade_id": "c",
    "phases": [
        {"name": "one", "rules": {}, "tackle": []},
        {
            "name": "two",
            "instructions": "x"
        }
    ]
}
"""
GONE = object()
P = "phases"
YAML_EDITS: list[tuple[Keys, Any]] = [
    (("cascade_id",), "d"),
    (("cascade_id",), "yes"),
    (("cascade_id",), GONE),
    (("new",), [1, {"a": None}]),
    (("shared", "a"), 2),
    (("shared", "b"), {"c": True}),
    (("shared", "b", 1), "y"),
    ((P, 0, "instructions"), "One line"),
    ((P, 0, "instructions"), "Two\n\n  lines\n"),
    ((P, 0, "instructions"), "no end\nof line"),
    ((P, 0, "instructions"), " blank before\nx"),
    ((P, 0, "instructions"), ""),
    ((P, 0, "instructions"), GONE),
    ((P, 0, "rules", "max_turns"), 4.5),
    ((P, 0, "rules", "max_attempts"), 2),
    ((P, 0, "rules", "max_turns"), GONE),
    ((P, 0, "rules"), GONE),
    ((P, 0, "context", "a"), 3),
    ((P, 0, "context"), {"from": ["two"]}),
    ((P, 0, "context"), GONE),
    ((P, 0, "tackle", 1), "c: d"),
    ((P, 0, "tackle", 2), "#e"),
    ((P, 0, "model"), "it's"),
    ((P, 0, "model"), "a\nb"),
    ((P, 0, "handoffs", 0), "three"),
    ((P, 0, "handoffs", 1, "description"), 'say "x"'),
    ((P, 0, "handoffs", 1, "target"), GONE),
    ((P, 0, "handoffs", 2), {"target": "two", "description": "y"}),
    ((P, 0, "handoffs", 4), "x"),
    ((P, 0, "handoffs"), ["two"]),
    ((P, 0, "handoffs"), []),
    ((P, 0, "handoffs"), "none"),
    ((P, 0, "handoffs", "a"), 1),
    ((P, 1, "empty", "deep"), {"er": [1]}),
    ((P, 1, "empty"), "x"),
    ((P, 1, "none", 0), "x"),
    ((P, 1, "a"), 5),
    ((P, 1, "name", "x"), 1),
    ((P, 1, "name"), GONE),
    ((P, 2, "context", "from", 0), "two"),
    ((P, 2, "context", "exclude"), ["one"]),
    ((P, 2, "instructions"), "{{ a }} \\ \"q\" 'p'"),
    ((P, 2, "context"), GONE),
    ((P, 2, "absent"), GONE),
    ((P, 3), {"name": "four", "instructions": "a\nb\n"}),
    ((P,), []),
]
JSON_EDITS: list[tuple[Keys, Any]] = [
    (("cascade_id",), 'a "b"\n'),
    (("new", "deep"), [1]),
    ((P, 0, "rules", "max_turns"), 3),
    ((P, 0, "tackle", 0), "a"),
    ((P, 0, "tackle"), GONE),
    ((P, 1, "instructions"), {"a": [1, {"b": None}]}),
    ((P, 1, "instructions"), GONE),
    ((P, 1, "more"), ["x"]),
    ((P, 2), {"name": "three"}),
    ((P, 0), GONE),
]
DOT_EDITS: list[tuple[Keys, Any]] = [
    (("goal",), "x"),
    ((P, 1, "model"), "m"),
    ((P, 1, "instructions"), GONE),
    ((P, 2, "fidelity"), GONE),
    ((P, 2, "timeout"), "9s"),
    ((P, 2, "tackle"), ["a", "b"]),
    ((P, 2, "attributes", "goal_gate"), True),
    ((P, 2, "attributes", "x"), {"a": 1}),
    ((P, 9, "model"), "m"),
    (("edges", 0, "label"), "go"),
    (("edges", 2, "condition"), GONE),
    (("edges", 3, "label"), "a -> b"),
    (("nodes",), 1),
]
TASKS = r"""{"original_request": "r", "intent": {"primary": "p"}, "entities": [], "sub_tasks": [
{"id": "a1", "dependencies": [], "tool_or_prompt": {"name": "inference", "params": {"prompt": "p"}}},
{"id": 2, "dependencies": ["a1"], "tool_or_prompt": {"name": "inference",
  "params": {"prompt": "<Result of Task a1> \n<results from tasks 2>"}}}
]}
"""
PHASE_NAMES = [
    *(("one", "uno"), ("two", "deux"), ("three", "four"), ("one", "one"), ("one", "two"), ("nope", "x")),
    *(("one", "a-b"), ("two", "a b"), ("two", "previous"), ("three", "all")),
]
TASK_NAMES = [
    ("a1", "b"),
    ("2", "3"),
    ("a1", "a1"),
    ("a1", "2"),
    ("x", "y"),
    ("a1", "a b"),
    ("a1", "start"),
    ("2", "a1"),
]


def changed(source: Source, change: Callable[[], str]) -> Iterator[str]:
    try:
        after = change()
    except EditError as fault:
        yield f"    no: {fault}"
        return
    lines = difflib.unified_diff(source.text.splitlines(), after.splitlines(), lineterm="", n=0)
    told = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    yield from (f"    {line}".rstrip() for line in told or ["nothing"])


def edited(text: str, file: str, edits: list[tuple[Keys, Any]]) -> Iterator[str]:
    source = read_source(text, file)[0]
    for path, value in edits:
        name = ".".join(map(str, path))
        if value is GONE:
            yield f"{name}: gone"
            yield from changed(source, lambda path=path: remove(source, path))  # type: ignore[misc]
        else:
            yield f"{name}: {value!r}"
            yield from changed(source, lambda path=path, value=value: replace(source, path, value))  # type: ignore[misc]


def named(text: str, file: str, names: list[tuple[str, str]], rename: Callable[..., str]) -> Iterator[str]:
    source = read_source(text, file)[0]
    for old, new in names:
        yield f"{old} -> {new}"
        yield from changed(source, lambda old=old, new=new: rename(source, old, new))  # type: ignore[misc]


CASES: dict[str, Callable[[], Iterator[str]]] = {
    "yaml": lambda: edited(YAML, "c.yaml", YAML_EDITS),
    "json": lambda: edited(JSON, "c.json", JSON_EDITS),
    "dot": lambda: edited(GRAPH, "g.dot", DOT_EDITS),
    "phases": lambda: named(YAML, "c.yaml", PHASE_NAMES, renamed_phase),
    "nodes": lambda: named(
        GRAPH, "g.dot", [("fix", "mend"), ("look", "a-b"), ("ask", "look"), ("x", "y")], renamed_phase
    ),
    "tasks": lambda: named(TASKS, "t.json", TASK_NAMES, renamed_task),
}


@pytest.mark.parametrize("name", CASES)
def test_edits_change_what_is_stored(name: str) -> None:
    check_stored(FAULTS / f"edits-{name}.txt", "\n".join(CASES[name]()) + "\n")
