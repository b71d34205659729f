"""A cascade as a pipeline and a graph as a cascade: both load, run alike, and say what is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engine.support import play
from tests.support.command import run_cli
from workbench.engine.contracts import ToolResult
from workbench.exporters.translated import CannotTranslate, as_cascade, as_dot
from workbench.language.load import load

FILES = sorted((Path(__file__).parents[2] / "cascades").glob("*.yaml"))
EXAMPLES = [file for file in FILES if not file.stem.endswith(".replies")]
CASCADE: dict[str, Any] = {
    "cascade_id": "fix-it",
    "description": "Mend the build.",
    "phases": [
        {"name": "look", "instructions": "Read {{ input.path }}, $5.", "handoffs": ["fix", {"target": "end"}]},
        {"name": "fix", "instructions": "Mend what {{ outputs.look }} says.", "handoffs": ["run-tests"]},
        {"name": "run-tests", "tool": "linux_shell", "inputs": {"command": "true"}, "on_error": "fix"},
        {
            "name": "start",
            "instructions": "Tell {% if a %}b{% endif %}",
            "model": "openai/gpt-4o",
            "soundings": {"factor": 2},
        },
    ],
}
PIPELINE = """digraph mend { goal="Mend {{it}}"
  start [shape=Mdiamond] done [shape=Msquare]
  look [prompt="Look at $goal in $place", fidelity="summary:high"]
  test [shape=parallelogram, tool_command="make test"]
  which [shape=diamond]
  tell [prompt="Tell ${test.output}", goal_gate=true, retry_target=look]
  ask [shape=hexagon, label="Ship it?"]
  start -> look -> test
  test -> which [condition="outcome=success"]
  test -> look [condition="outcome=fail"]
  which -> tell
  tell -> ask [weight=3, label=ask]
  tell -> look [condition="context.again=true"]
  ask -> done [label="[Y] Yes"]
  ask -> look [label="[N] No"]
}"""


def test_a_cascade_becomes_a_pipeline_that_goes_the_same_way() -> None:
    made = as_dot(load(json.dumps(CASCADE), "c.json"))
    loaded = load(made.text, "c.dot")
    assert loaded.ok, loaded.problems
    assert made.lost == (
        "run-tests: its name is written 'run_tests'",
        "start: its name is written 'start_2'",
        "start: what its template works out; it is sent as written",
        "start: soundings",
    )
    assert loaded.graph is not None
    assert loaded.graph.node("start_2").model == "openai/gpt-4o"  # type: ignore[union-attr]

    def command(command: str, **rest: Any) -> ToolResult:
        return ToolResult("", value={"stdout": "", "stderr": "", "exit_code": 0})

    replies = {"look": ["all"], "fix": ["mended"], "start_2": ["told"]}
    played = play(made.text, replies, input={"path": "a.txt"}, tools={"command:pipeline": command})
    assert played.outcome.status == "success", played.outcome.reason
    assert [visit.phase for visit in played.state.visits] == ["start", "look", "fix", "run_tests", "start_2", "exit"]
    assert played.texts(0)[-1] == ("user", "Read a.txt, $5.")
    assert played.texts(1)[-1] == ("user", "Mend what all says.")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_is_a_pipeline_that_loads_again(file: Path) -> None:
    made = as_dot(load(file.read_bytes(), file.name))
    loaded = load(made.text, "made.dot")
    assert loaded.ok, (loaded.problems, made.text)
    again = as_cascade(loaded)
    assert load(again.text, "again.yaml").ok, again.text


def test_a_pipeline_becomes_a_cascade_that_runs() -> None:
    made = as_cascade(load(PIPELINE, "p.dot"))
    loaded = load(made.text, "p.yaml")
    assert loaded.ok, (loaded.problems, made.text)
    assert loaded.cascade is not None
    assert loaded.cascade.description == "Mend {{it}}"
    assert made.lost == (
        "tell: goal_gate, retry_target",
        "tell -> look: the condition context.again=true; the model is told it, and chooses",
        "ask: the gate; a model asks the person, and chooses the way that they named",
    )
    exits = iter((1, 0))

    def shell(command: str) -> ToolResult:
        code = next(exits)
        return ToolResult(f"exit {code}", code != 0)

    route = '```json\n{"tool": "route_to", "arguments": {"target": "end"}}\n```'
    replies = {"look": ["a", "b"], "tell": ["told"], "ask": [route, "yes"]}
    played = play(
        made.text, replies, input={"place": "a {{ box }}"}, tools={"linux_shell": shell, "ask_human": lambda **_: "Y"}
    )
    assert played.outcome.status == "success", played.outcome.reason
    assert [visit.phase for visit in played.state.visits] == ["look", "test", "look", "test", "tell", "ask"]
    assert played.texts(0)[-1] == ("user", "Look at Mend {{it}} in a {{ box }}")
    assert "Tell exit 0" in played.texts(2)[-1][1]


def test_a_decomposition_becomes_a_cascade_of_its_tasks() -> None:
    def task(id: str, prompt: str, *needs: str) -> dict[str, Any]:
        action = {"name": "model", "params": {"prompt": prompt}}
        about = {"thought": "", "expected_output": "x", "action_type": "inference", "entity_context": []}
        return {"id": id, "description": f"Task {id}", "dependencies": needs, "tool_or_prompt": action, **about}

    job = {
        "original_request": "Do it",
        "intent": {"primary": "do", "sub_intents": []},
        "entities": [],
        "sub_tasks": [task("2", "Use <Result of Task 1>.", "1"), task("1", "Make {{ it }}.")],
        "synthesis_plan": "Sum up.",
        "validation": {"coverage": "", "gaps": [], "iteration_triggers": []},
    }
    made = as_cascade(load(json.dumps(job), "j.json"))
    loaded = load(made.text, "j.yaml")
    assert loaded.ok, (loaded.problems, made.text)
    names = ["task_1", "task_2", "synthesis"]
    played = play(made.text, {name: [f"made by {name}"] for name in names})
    assert [visit.phase for visit in played.state.visits] == names
    assert played.texts(0)[-1] == ("user", "Make {{ it }}.")
    assert played.texts(1)[-1] == ("user", "Use made by task_1.")
    assert [text for _, text in played.texts(2)][-1] == "Sum up."
    assert len(made.lost) == 2


def test_branches_and_broken_files_are_refused_with_the_reason() -> None:
    body = "a -> b; a -> c; b -> d; c -> d"
    text = f"digraph g {{ start -> a; {body}; d -> exit; a [shape=component] }}"
    with pytest.raises(CannotTranslate, match=r"no branches, joins and child graphs: a$"):
        as_cascade(load(text, "g.dot"))
    with pytest.raises(CannotTranslate, match="it has errors"):
        as_cascade(load("digraph g { start -> }", "g.dot"))
    with pytest.raises(CannotTranslate, match="not a cascade without errors"):
        as_dot(load("cascade_id: x", "c.yaml"))


def test_files_are_exported_without_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dot").write_text(PIPELINE)
    written = run_cli("export", "p.dot", "--as", "cascade", "-o", "p.yaml")
    assert written.code == 0, written.err
    assert "lost: tell: goal_gate, retry_target" in written.err
    assert run_cli("check", "p.yaml").code == 0
    printed = run_cli("export", "p.yaml", "--as", "dot")
    assert printed.out.startswith("digraph mend {")
    Path("bad.dot").write_text("digraph g { a -> }")
    refused = run_cli("export", "bad.dot", "--as", "cascade")
    assert (refused.code, "bad.dot" in refused.err) == (1, True)


def test_a_variable_that_the_graph_declares_keeps_its_default() -> None:
    text = """digraph g { vars="place=the \\"yard\\", when" start -> look -> done
      start [shape=Mdiamond] done [shape=Msquare] look [prompt="Look at $place $when"] }"""
    made = as_cascade(load(text, "g.dot"))
    asked = play(made.text, ["ok"]).model.requests[0][1].messages[-1].text
    assert asked == 'Look at the "yard" '
