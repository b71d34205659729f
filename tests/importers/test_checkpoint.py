"""``import`` of a checkpoint folder: our own comes back as the same run, others as far as they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import run_cli
from tests.support.workspaces import CASCADE, filled

REPLIES = """\
replies:
  look:
    - say: I read it.
      calls: [{tool: set_state, arguments: {key: seen, value: [1, 2]}}]
    - say: All is read.
      calls: [{tool: route_to, arguments: {target: answer}}]
  answer:
    - text: "Hello"
    - text: '{"said": "Hello, Ada."}'
"""
VALIDATED = CASCADE.replace("tackle: [read_file]", "tackle: [set_state]").replace(
    "    context: {from: [look]}\n",
    "    context: {from: [look]}\n    rules: {max_attempts: 2}\n    output_schema: {type: object}\n",
)


@pytest.fixture
def folder(folder: Path) -> Path:
    """A folder with a cascade and its replies, as the current folder."""
    return filled(folder, {"greet.yaml": VALIDATED, "greet.replies.yaml": REPLIES})


def checkpoint(folder: Path) -> dict[str, str]:
    """Its files; of the manifest all but the ids, which are another run's."""
    texts = {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}
    manifest = json.loads(texts["manifest.json"])
    texts["manifest.json"] = json.dumps({k: v for k, v in manifest.items() if k not in ("session_id", "run_id")})
    return texts


def written(folder: Path, name: str, body: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body if isinstance(body, str) else json.dumps(body))


@pytest.mark.parametrize("until", ["", "answer:1"])
def test_a_run_comes_back_from_its_checkpoint_with_all_that_it_wrote(folder: Path, until: str) -> None:
    given = ["run", "greet.yaml", "-m", "offline", "--input", '{"name": "Ada"}', "--session", "first", "-q"]
    run_cli(*given, *(["--until", until] if until else []))
    assert run_cli("export", "first", "--as", "checkpoint", "-o", "point").code == 0
    (run,) = run_cli("import", "point", "--json").json
    assert (run["format"], run["notes"]) == ("checkpoint", [])
    assert run_cli("export", run["session_id"], "--as", "checkpoint", "-o", "again").code == 0
    assert checkpoint(folder / "again") == checkpoint(folder / "point")
    one, two = (run_cli("show", name, "--json").json for name in ("first", run["session_id"]))
    for key in ("status", "output", "state", "input"):
        assert one.get(key) == two.get(key), key


def test_each_call_of_a_checkpoint_saw_its_own_prompt_alone(folder: Path) -> None:
    run_cli("run", "greet.yaml", "-m", "offline", "--input", '{"name": "Ada"}', "--session", "first", "-q")
    run_cli("export", "first", "--as", "checkpoint", "-o", "point")
    (run,) = run_cli("import", "point/checkpoint.json", "--json").json
    calls = run_cli("context", run["session_id"], "--json").json
    assert {call["duration_s"] for call in calls} == {None}
    assert [(call["at"], len(call["entries"])) for call in calls] == [("look/1/1/1/1", 1), ("answer/1/2/1/1", 1)]
    same = run_cli("diff", run["session_id"], "--strategies", "file", "snowball")
    assert (same.code, "both send the same requests" in same.out + same.err) == (0, True)
    assert run_cli("resume", run["session_id"]).code == 2


def test_a_checkpoint_of_another_engine_is_read_as_far_as_it_says(folder: Path) -> None:
    stand = {
        "timestamp": "2026-02-02T10:00:00Z",
        "current_node": "test",
        "completed_nodes": ["start", "plan"],
        "node_retries": {"plan": 2},
        "context": {"outcome": "fail", "ticket": 7},
        "logs": ["plan took long"],
    }
    written(folder, "runs/a/checkpoint.json", stand)
    written(folder, "runs/a/start/response.md", "It begins.")
    written(folder, "runs/a/plan/prompt.md", "Plan it.")
    written(folder, "runs/a/plan/response.md", "First tests.")
    written(folder, "runs/a/plan/status.json", {"outcome": "success", "suggested_next_ids": ["test"]})
    failed = {"status": "failed", "outcome": "partial_success", "failure_reason": "two tests fail"}
    written(folder, "runs/a/test/status.json", failed)
    (run,) = run_cli("import", "runs", "--json").json
    shown = run_cli("show", run["session_id"], "--json").json
    assert [(phase["name"], phase["status"]) for phase in shown["phases"]] == [
        ("start", "success"),
        ("plan", "success"),
        ("test", "failed"),
    ]
    assert (shown["status"], shown["state"], shown["output"]) == ("failed", {"ticket": 7}, "First tests.")
    assert run["notes"] == ["the checkpoint holds no cascade: only phase names are known"]
    assert "runs/a: warning: plan took long [log]" in run_cli("show", run["session_id"], "--plain").out


@pytest.mark.parametrize(
    ("name", "body", "told"),
    [
        ("checkpoint.json", "{", "checkpoint.json is not JSON"),
        ("checkpoint.json", "[]", "checkpoint.json holds no JSON object"),
        ("checkpoint.json", {}, "names no phase"),
        ("manifest.json", {"nodes": {"a": "../secret"}}, "the folder of phase 'a' is '../secret'"),
        ("a/status.json", "nonsense", "a/status.json is not JSON"),
    ],
)
def test_a_broken_checkpoint_is_refused_and_leaves_no_run(folder: Path, name: str, body: Any, told: str) -> None:
    written(folder, "point/checkpoint.json", {"completed_nodes": ["a"]})
    written(folder, f"point/{name}", body)
    ended = run_cli("import", "point")
    assert (ended.code, told in ended.err) == (2, True), ended.err
    assert "point: error: looks like a checkpoint, but" in ended.err
    assert run_cli("runs", "--json").json == []


def test_a_checkpoint_reads_no_file_outside_of_its_folder(folder: Path) -> None:
    (folder / "secret.md").write_text("hidden")
    written(folder, "point/checkpoint.json", {"completed_nodes": ["a"]})
    (folder / "point" / "a").mkdir()
    (folder / "point" / "a" / "response.md").symlink_to(folder / "secret.md")
    ended = run_cli("import", "point")
    assert (ended.code, "a/response.md lies outside of it" in ended.err) == (2, True)


def test_secrets_of_a_checkpoint_are_replaced_on_the_way_in(folder: Path) -> None:
    (folder / ".env").write_text("SHOP_KEY=abc123secret999\n")
    manifest = {"cascade": "c.yaml", "input": {"k": "abc123secret999"}, "name": "With abc123secret999"}
    written(folder, "point/manifest.json", manifest)
    written(folder, "point/a/status.json", {"suggested_next_ids": ["abc123secret999"]})
    written(folder, "point/checkpoint.json", {"completed_nodes": ["a"], "context": {"k": ["abc123secret999"]}})
    written(folder, "point/c.yaml", "cascade_id: c\nphases: [{name: a, instructions: abc123secret999}]\n")
    written(folder, "point/a/prompt.md", "abc123secret999")
    written(folder, "point/a/response.md", "It is abc123secret999.")
    ended = run_cli("import", "point", "--json")
    assert ended.code == 0, ended.err
    journals = [path.read_text() for path in (folder / ".workbench").rglob("*.jsonl")]
    assert any("It is " in text for text in journals)
    assert not any("abc123secret999" in text for text in (*journals, ended.out))


def test_a_secret_in_a_title_is_not_in_the_name_of_the_session(folder: Path) -> None:
    (folder / ".env").write_text("SHOP_KEY=abc123secret999\n")
    answer = {"role": "assistant", "message": "Yes.", "next": []}
    told = {"query": "Is abc123secret999 it?", "answer": {"answer_details": [answer]}}
    written(folder, "one.json", {"17": told})
    ended = run_cli("import", "one.json", "--json")
    assert ended.code == 0, ended.err
    assert "abc123secret999" not in ended.out


PIPELINE = """digraph asking {
  start [shape=Mdiamond]
  plan [prompt="Plan"]
  ask [shape=hexagon, label="Ship it?"]
  work [prompt="Work on ${context.last_response}"]
  done [shape=Msquare]
  start -> plan -> ask
  ask -> work [label="[Y] Yes"]
  work -> done
}
"""


def test_a_pipeline_goes_on_where_its_checkpoint_stands(folder: Path) -> None:
    (folder / "asking.dot").write_text(PIPELINE)
    given = ["-m", "offline", "--unscripted", "ok", "-q"]
    assert run_cli("run", "asking.dot", *given, "--session", "first").code == 1
    assert run_cli("export", "first", "--as", "checkpoint", "-o", "point").code == 0
    (imported,) = run_cli("import", "point", "--json").json
    assert run_cli("export", imported["session_id"], "--as", "checkpoint", "-o", "again").code == 0
    assert json.loads((folder / "again" / "checkpoint.json").read_text())["current_node"] == "ask"
    assert run_cli("resume", imported["session_id"], *given, "--auto-approve").code == 0
    newest, *_ = run_cli("runs", "--json").json
    shown = run_cli("show", newest["session_id"], "--json").json
    assert [visit["name"] for visit in shown["phases"]] == ["ask", "work", "done"]


def test_a_run_goes_on_without_its_conversations_when_asked(folder: Path) -> None:
    threaded = PIPELINE.replace("digraph asking {", "digraph asking {\n default_fidelity=full default_thread=t")
    (folder / "asking.dot").write_text(threaded)
    given = ["-m", "offline", "--unscripted", "ok", "-q"]
    assert run_cli("run", "asking.dot", *given, "--session", "first").code == 1
    ended = run_cli("resume", "first", *given, "--auto-approve", "--resume-full", "degrade")
    assert ended.code == 0, ended.err
    newest, *_ = run_cli("runs", "--json").json
    assert newest["session_id"] != "first"
    shown = run_cli("context", newest["session_id"], "--at", "work:1").out
    assert "its conversation is not in the checkpoint, so full is summary:high here" in shown
    assert run_cli("resume", "first", *given, "--auto-approve").code == 0
    kept = run_cli("context", "first", "--at", "work:1").out
    assert "summary:high" not in kept


def test_an_error_that_a_person_allows_does_not_stop_a_run(folder: Path) -> None:
    (folder / "leaf.dot").write_text("digraph g { start -> a; start -> exit; a [prompt=x] exit [shape=Msquare] }")
    given = ["-m", "offline", "--unscripted", "ok", "-q"]
    assert "dead_end" in run_cli("run", "leaf.dot", *given).err
    # The leaf still ends the run as failed; that is not the exit code of a file that cannot run.
    assert run_cli("run", "leaf.dot", *given, "--allow", "dead_end").code == 1
