"""Pipelines and decompositions by the commands that know runs: why an edge, comparisons of contexts, forks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Cli
from tests.ui.test_graphs import REPLIES, REVIEW
from workbench.workspace.comparing import side_choices, spec_fault
from workbench.workspace.project import Project

JOB = {
    "original_request": "Answer it",
    "entities": [{"entity": "Limit", "type": "amount", "grounded_value": "100 EUR"}],
    "sub_tasks": [
        {
            "id": "find",
            "description": "Find",
            "action_type": "inference",
            "tool_or_prompt": {"name": "inference", "params": {"prompt": "Find it."}},
            "dependencies": [],
        },
        {
            "id": "tell",
            "description": "Tell",
            "action_type": "inference",
            "tool_or_prompt": {"name": "inference", "params": {"prompt": "Tell it."}},
            "dependencies": ["find"],
        },
    ],
}
FOUND = "All of what was found. " * 40


@pytest.fixture
def graphs(cli: Cli) -> Cli:
    """The workspace with a run of a pipeline, ``p``, and one of a decomposition, ``j``."""
    files = {
        "review.dot": REVIEW,
        "review.replies.yaml": REPLIES,
        "job.json": json.dumps(JOB),
        "job.replies.yaml": f"replies:\n  find: [{{text: '{FOUND}'}}]\n  tell: [{{text: Told.}}]\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    assert cli("run", "review.dot", "--auto-approve", "--session", "p", "-q").code == 0
    assert cli("run", "job.json", "--session", "j", "-q").code == 0
    return cli


def compared(cli: Cli, run: str, a: str, b: str) -> tuple[dict[str, Any], list[int], list[int]]:
    """The comparison, and what each call sends on both sides."""
    found = cli("diff", run, "--strategies", a, b, "--json").json
    calls = found["calls"]
    return found, [call["a"]["tokens"] for call in calls], [call["b"]["tokens"] for call in calls]


def test_edges_are_told_with_their_steps_values_and_lines(graphs: Cli) -> None:
    told = graphs("show", "p", "--edges", "--phase", "route", "--plain").out
    assert "route to plan  outcome fail" in told
    assert "step 1: condition, the way on after a failure" in told
    assert "outcome is 'fail', context.rounds is ''" in told
    assert "review.dot:16" in told
    found = graphs("show", "p", "--edges", "--json").json
    first = next(visit for visit in found if visit["phase"] == "route")
    assert [(edge["to"], edge["taken"], edge["step"]) for edge in first["edges"]] == [
        ("ask", False, 1),
        ("plan", True, 1),
    ]
    asked = next(visit for visit in found if visit["phase"] == "ask")
    assert asked["edges"][0]["why"] == "a person chose it"
    page = graphs("export", "p", "--as", "html").out
    assert "→ ask if outcome=success (outcome is &#x27;fail&#x27;): its condition is false, line 16" in page
    assert "did you mean 'route'" in graphs("show", "p", "--edges", "-p", "rout").err
    tasks = graphs("show", "j", "--edges", "--plain").out
    assert "gets its result" in tasks


def test_fidelity_modes_of_a_run_compare_and_what_another_format_calls_a_strategy_works(graphs: Cli) -> None:
    found, compact, full = compared(graphs, "p", "fidelity:compact", "fidelity:full")
    assert sum(full) < sum(compact), found
    _, low, high = compared(graphs, "p", "fidelity:summary:low", "fidelity:summary:high")
    assert sum(low) < sum(high)
    _, own, masked = compared(graphs, "p", "file", "selective+mask(after=1)")
    assert sum(masked) < sum(own)
    _, entities, summary = compared(graphs, "j", "entities", "fidelity:summary:high")
    assert entities != summary
    assert graphs("run", "greet.yaml", "--session", "c", "-q").code == 0
    _, before, compacted = compared(graphs, "c", "file", "fidelity:compact")
    assert before != compacted


def test_strategies_of_the_own_language_are_offered_first(graphs: Cli) -> None:
    project = Project.at()
    for run, first, other in (("p", "fidelity:full", "snowball"), ("j", "entities", "fidelity:compact")):
        offered = [one.name for one in side_choices(project, project.store.find(run)) if one.kind == "built-in"]
        assert offered[0] == first
        assert other in offered
        assert not [name for name in offered if spec_fault(project, project.store.find(run), name)]


def test_options_of_entities_compare_on_a_decomposition(graphs: Cli) -> None:
    _, usual, everything = compared(graphs, "j", "entities", "entities(include_all=true)")
    assert sum(everything) > sum(usual), "the entity of the job is not added"
    _, usual, short = compared(graphs, "j", "entities", "entities(max_output=20)")
    assert sum(short) < sum(usual), "the output of the task it depends on is not cut"


def test_forks_of_a_pipeline_and_of_a_decomposition_replay_what_was_before(graphs: Cli) -> None:
    forked = graphs(
        "fork",
        "p",
        "--at",
        "check/1/1/1/1",
        "--edit",
        "answer=Good.\noutcome=success",
        "--auto-approve",
        "--session",
        "f",
    )
    assert forked.code == 0, forked.err
    visits = [visit["name"] for visit in graphs("show", "f", "--json").json["phases"]]
    assert visits == ["start", "plan", "fan", "code", "docs", "meet", "check", "route", "ask", "done"]
    recorded = [
        e["data"]["recorded"]
        for e in graphs("fork", "p", "--at", "check/2/1/1/1", "--auto-approve", "--json", "-q").lines
        if e["kind"] == "call_finished"
    ]
    assert recorded == [True] * 7 + [False]
    changed = graphs("fork", "p", "--at", "plan", "--set", "state.mark=here", "--auto-approve", "--session", "s", "-q")
    assert changed.code == 0
    assert graphs("show", "s", "--json").json["state"]["mark"] == "here"
    task = graphs("fork", "j", "--at", "tell:1", "--edit", "1=Tell it shorter.", "--session", "t")
    assert (task.code, task.out) == (0, "Told.\n")
    told = graphs("show", "t", "--plain").out
    assert "fork of j at tell:1" in told
    statuses = [line.split()[2] for line in told.replace("(edited)", "").splitlines() if line.startswith("  turn")]
    assert statuses == ["recorded", "done"]


PARENT = """\
digraph parent {
  start [shape=Mdiamond]  done [shape=Msquare]
  make [shape=folder, stack.child_dotfile="child.dot", stack.child_workdir="part"]
  start -> make -> done
}
"""
MAKING = """\
digraph child {
  start [shape=Mdiamond]  done [shape=Msquare]
  look  [prompt="Look", workbench.tools=read_file]
  write [shape=parallelogram, tool_command="cat note.txt > made.txt && cat made.txt"]
  start -> look -> write -> done
}
"""


def test_a_child_graph_works_in_the_folder_that_its_node_names(cli: Cli, workspace: Path) -> None:
    (workspace / "parent.dot").write_text(PARENT)
    (workspace / "child.dot").write_text(MAKING)
    (workspace / "parent.replies.yaml").write_text(
        "replies:\n  look:\n    - {calls: [{tool: read_file, arguments: {path: note.txt}}]}\n    - {text: looked}\n"
    )
    missing = cli("check", "parent.dot")
    assert (missing.code, "parent.dot:3:76: error: 'make' cannot run a child" in missing.out) == (1, True), missing.out
    (workspace / "part").mkdir()
    (workspace / "part" / "note.txt").write_text("of the part")
    ended = cli("run", "parent.dot", "--session", "w", "-q")
    assert (ended.code, "child.dot' does not run, because this folder is not trusted" in ended.err) == (3, True)
    assert cli("trust", "parent.dot", "--yes").code == 0
    ended = cli("run", "parent.dot", "--session", "v", "-q")
    assert (ended.code, ended.out.strip()) == (0, "of the part"), ended.err
    assert (workspace / "part" / "made.txt").read_text() == "of the part"
    assert not (workspace / "made.txt").exists()
    # The file tools begin there, too; the replay asks for nothing of it.
    assert "of the part" in cli("context", "v_pipeline_0", "--at", "look:2", "--text").out
    assert cli("test", "freeze", "v", "--name", "made").code == 0
    assert cli("test", "run").code == 0


def test_a_condition_reads_the_input_of_a_run(cli: Cli, workspace: Path) -> None:
    (workspace / "way.dot").write_text(
        'digraph way { start -> a a -> high [condition="context.priority=high"] a -> low high -> exit low -> exit '
        "a high low }"
    )
    (workspace / "way.replies.yaml").write_text("replies: {a: [{text: a}], high: [{text: up}], low: [{text: down}]}")
    assert cli("run", "way.dot", "--input", '{"priority": "high"}', "-q").out == "up\n"
    assert cli("run", "way.dot", "-q").out == "down\n"
