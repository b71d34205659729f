"""Exports of a few runs and definitions, word by word: what a test about one of them does not ask for shows here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engine.support import Played, play
from tests.exporters.test_translated import CASCADE, PIPELINE
from tests.importers.examples import EXAMPLES
from tests.importers.test_journal import imported
from tests.support.stored import check_stored
from tests.ui.support import Story, entry, triage_story
from tests.ui.test_candidates import contested
from tests.ui.test_graphs import REVIEW
from workbench.context.assembly import Kind
from workbench.context.message import Message, ToolCall
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.exporters.checkpoint import checkpoint_files
from workbench.exporters.html import run_html
from workbench.exporters.live_otel import LiveRun
from workbench.exporters.messages import conversations
from workbench.exporters.otel import spans_of_run
from workbench.exporters.translated import CannotTranslate, as_cascade, as_dot
from workbench.language.load import load

STORED = Path(__file__).parent / "stored"

# -- definitions -------------------------------------------------------------------------------------------------------

PHASES: list[dict[str, Any]] = [
    {
        "name": "ask it",
        "instructions": "Read {{ input.path }} and {{ outputs['x'] }}.",
        "model": "openai/gpt-4o",
        "parameters": {"reasoning_effort": "low"},
        "tackle": ["list_files", "grep"],
        "rules": {"max_turns": 4},
        "fidelity": "compact",
        "thread_id": "main",
        "handoffs": [
            {"target": "run", "description": "all is clear", "fidelity": "full", "thread_id": "other"},
            "pick",
            "end",
        ],
    },
    {
        "name": "run",
        "tool": "linux_shell",
        "inputs": {"command": "make {{ state.what }}", "more": 1},
        "timeout": "1.5s",
        "on_error": "pick",
    },
    {
        "name": "pick",
        "tool": "python_data",
        "inputs": {"code": "x"},
        "routing": {"good": "exit", "not so good": "run"},
        "handoffs": ["exit", "run"],
    },
    {
        "name": "exit",
        "instructions": "Tell.",
        "parameters": {"reasoning_effort": "high", "seed": 1},
        "manifest": {},
        "tackle": "manifest",
        "rules": {"max_turns": 2, "max_attempts": 2},
        "context": {"from": ["run"]},
        "handoffs": ["decided"],
        "decision_points": {"routing": {"redo": "ask it"}},
    },
    {"name": "decided", "instructions": "Say so.", "wards": {"post": [{"validator": "v", "mode": "advisory"}]}},
]
CASCADES: dict[str, Any] = {
    "fix-it": CASCADE,
    "every field": {"cascade_id": "every field", "context_default": "snowball", "phases": PHASES, "max_visits": 7},
    "by fidelity": {"cascade_id": "f", "default_fidelity": "summary:low", "phases": [PHASES[4], PHASES[0]]},
}
EVERY_NODE = """digraph every { goal="Do {% it %}" default_fidelity="full" retry_target=look vars="place=Köln"
  start [shape=Mdiamond] done [shape=Msquare]
  look [prompt="Look at $goal in $place at $context.when, ${no-name}", llm_model="openai/gpt-4o", max_retries=2,
        reasoning_effort=low, "workbench.tools"="list_files,grep", timeout="5s", allow_partial=true, max_visits=3]
  again [label="Once more", thread_id=main, fidelity=compact, "workbench.tools"="grep", "workbench.max_turns"=4]
  subgraph cluster_one { label="One" in_one [prompt="Inside ${look.output} and $look.output", fidelity=full] }
  test [shape=parallelogram, tool_command="make $place", timeout="1500ms"]
  check [shape=parallelogram, tool_command="make check"]
  which [shape=diamond] other [shape=diamond] never [prompt="x"]
  ask [shape=hexagon, label="Ship it?", "human.default_choice"=done]
  start -> look start -> again
  look -> again [label="go on", weight=2]
  look -> which [condition="outcome=success", fidelity="truncate", thread_id=t]
  which -> other other -> which which -> test [condition="context.x=1"] other -> in_one
  again -> look [loop_restart=true]
  again -> test
  test -> check [condition="outcome=success"]
  test -> look [condition="outcome=fail"]
  check -> ask [condition="context.tool.output=x"]
  check -> done [condition="outcome=fail"]
  check -> done
  in_one -> ask
  ask -> done [label="[Y] Yes"]
  ask -> look
}"""
GRAPHS: dict[str, str] = {
    "mend": PIPELINE,
    "every node": EVERY_NODE,
    "one way": "digraph g { start [shape=Mdiamond] done [shape=Msquare] a [prompt=x] ask [shape=hexagon, label=Sure] "
    "start -> a; a -> ask [label=on]; ask -> done [label=Yes] }",
    "nothing": "digraph g { start [shape=Mdiamond] done [shape=Msquare] start -> done }",
    "branches": "digraph g { start [shape=Mdiamond] done [shape=Msquare] a [shape=component] b [prompt=x] "
    "c [shape=tripleoctagon] start -> a -> b -> c -> done }",
}


def task(id: str, name: str, params: dict[str, Any], *needs: str) -> dict[str, Any]:
    about: dict[str, Any] = {"thought": "", "expected_output": "x", "entity_context": []}
    about["action_type"] = "inference" if name == "model" else "tool"
    action = {"name": name, "params": params}
    return {"id": id, "description": f"Task {id}", "dependencies": needs, "tool_or_prompt": action, **about}


JOB = {
    "original_request": "Do it",
    "intent": {"primary": "do", "sub_intents": []},
    "entities": [],
    "sub_tasks": [
        task("2", "model", {"prompt": "Use <Result of Task 1> {{ so }}."}, "1"),
        task("1", "model", {"prompt": "Make {{ it }}."}),
        task("last", "grep", {"pattern": "<Result of Task 2>", "in": ["{% x %}", 1]}, "2", "1"),
    ],
    "synthesis_plan": "Sum up.",
    "validation": {"coverage": "", "gaps": [], "iteration_triggers": []},
}


def test_definitions_in_the_other_language() -> None:
    """Each with what is lost, or why it is refused."""
    found: dict[str, Any] = {}
    for name, cascade in CASCADES.items():
        found[name] = _translated(as_dot, json.dumps(cascade), "c.json")
    for name, graph in GRAPHS.items():
        found[name] = _translated(as_cascade, graph, "g.dot")
    found["job"] = _translated(as_cascade, json.dumps(JOB), "j.json")
    check_stored(STORED / "translated.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def _translated(translate: Callable[[Any], Any], text: str, file: str) -> Any:
    loaded = load(text, file)
    errors = [str(problem.message) for problem in loaded.problems if str(problem.severity) == "error"]
    try:
        made = translate(loaded)
    except CannotTranslate as fault:
        return {"refused": str(fault), "errors": errors}
    again = load(made.text, "made.dot" if translate is as_dot else "made.yaml")
    assert again.ok, (again.problems, made.text)
    return {"text": made.text.splitlines(), "lost": made.lost}


# -- runs --------------------------------------------------------------------------------------------------------------


def walked() -> Played:
    told = {"plan": ["a"] * 2, "code": ["b"] * 2, "docs": ["c"] * 2, "check": ["no\noutcome=fail", "outcome=success"]}
    return play(REVIEW, told, answers=["a"])


def story() -> tuple[RunState, list[Event]]:
    events = triage_story(finished=True).events
    return RunState.of(events), events


def failed() -> tuple[RunState, list[Event]]:
    """A tool that failed, and then the provider."""
    made = Story().start()
    phase = made.phase("intake", tools=["look"])
    first, second = (phase._replace(attempt=1, turn=turn, call=1) for turn in (1, 2))
    made.context(first, [entry(Message("user", "Look."), Kind.TASK, first)])
    made.answer(first, "I look.", [ToolCall("c1", "look", '{"at": 1}')])
    made.tool(first, "look", '{"at": 1}', "no such place", error=True)
    made.context(second, [entry(Message("user", "Look."), Kind.TASK, second)])
    error = {"kind": "rate_limit", "message": "Too many requests", "status": 429}
    made.emit("call_failed", second, **{"try": 3}, error=error, retry_in=None)
    made.emit("warning", second, code="x", message="It is slow.")
    made.end_phase(phase, "", status="failed", reason="the provider refused")
    made.finish("", status="failed", reason="intake failed: Too many requests")
    return RunState.of(made.events), made.events


RUNS: dict[str, Callable[[], Any]] = {
    "failed": failed,
    "story": story,
    "candidates": contested,
    "pipeline": walked,
    "imported": lambda: imported(EXAMPLES["openhands"]),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_in_every_form(name: str) -> None:
    made = RUNS[name]()
    state, events = (made.state, made.events) if isinstance(made, Played) else made
    page = run_html(state, {}).partition("</style>")[2]
    check_stored(STORED / f"{name}.html", page)
    spans = spans_of_run(state, events, {})
    found = {
        "messages": list(conversations(state, {}, details=True)),
        "for fine-tuning": list(conversations(state, {})) if name == "imported" else [],
        "checkpoint": {str(path): text.splitlines() for path, text in checkpoint_files(state, ".yaml")},
        "spans": [_plain(span) for span in _spans(spans)],
        "while it runs": _live(events),
    }
    check_stored(STORED / f"{name}.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def _live(events: Sequence[Event]) -> list[str]:
    """The spans that are sent after each event, and again where the run is taken up after its end."""
    live = LiveRun({})
    sent = [(event.kind, span) for event in (*events, events[-1]) for span in live.take(event)]
    return [f"{kind}: {span.name} {span.span_id} under {span.parent_id or '-'}" for kind, span in sent]


def _spans(document: Any) -> Iterator[dict[str, Any]]:
    for resource in document["resourceSpans"]:
        yield {"resource": resource["resource"]}
        for scope in resource["scopeSpans"]:
            yield {"scope": scope["scope"]}
            yield from scope["spans"]


def _plain(value: Any) -> Any:
    """Attributes by their names, each with its value alone."""
    if isinstance(value, dict) and {*value} == {"key", "value"}:
        return f"{value['key']}: {json.dumps(_plain(value['value']), ensure_ascii=False)}"
    if isinstance(value, dict):
        inner = {key: _plain(one) for key, one in value.items()}
        return next(iter(inner.values())) if len(inner) == 1 and next(iter(inner)).endswith("Value") else inner
    return [_plain(one) for one in value] if isinstance(value, list) else value
