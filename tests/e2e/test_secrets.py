"""A secret comes in by every door there is, and is looked for behind every way out."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import run_cli
from tests.support.loopback import Loopback, Reply
from tests.support.waiting import soon
from tests.support.workspaces import alone
from tests.ui.bench import screen_text
from tests.ui.pace import running
from workbench.tui.app import WorkbenchApp
from workbench.workspace.project import Project
from workbench.workspace.session import Session

KEY = "sk-" + "proj-0123456789abcdefABCDEF" * 2
"""The provider's key, in the environment."""
STRANGER = "ghp_" + "a1B2c3D4e5" * 4
"""A key that nobody declared, known by its shape alone."""
PASSWORD = "hunter2-and-more"
URL = f"postgres://app:{PASSWORD}@db.example/prod"
SECRETS = (
    KEY,
    base64.b64encode(KEY.encode()).decode()[4:-4],
    urllib.parse.quote(f"{KEY}/", safe="")[:-3],
    STRANGER,
    PASSWORD,
)
CASCADE = """\
cascade_id: leaky
inputs_schema: {given: something}
phases:
  - name: look
    instructions: "Use {{ input.given }}."
    use_native_tools: true
    tackle: [read_file, set_state, ask_human]
    rules: {max_turns: 6}
    handoffs: [tell]
  - name: tell
    instructions: "The state is {{ state }}."
    context: {from: [{phase: look, include: [messages]}]}
    output_schema: {type: object}
    rules: {max_attempts: 2}
"""


def script() -> list[Reply]:
    """Reads files that hold secrets, one that is not there, repeats them, stores them, asks with one, fails a check."""
    return [
        Reply(
            f"I use {KEY}.",
            [("read_file", '{"path": "env.txt"}'), ("read_file", json.dumps({"path": STRANGER})), (KEY, "{}")],
        ),
        Reply("", [("set_state", json.dumps({"key": "kept", "value": {"url": URL, "list": [KEY]}}))]),
        Reply("", [("ask_human", json.dumps({"question": f"Is {KEY} right?"}))]),
        Reply(f"All I know: {KEY} {URL} {STRANGER} {base64.b64encode(KEY.encode()).decode()}"),
        Reply(f"no JSON, but {STRANGER}"),
        Reply(json.dumps({"password": PASSWORD, "url": URL})),
    ]


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str], list[str]]]:
    """The folder of a run that met every secret, what the commands said on the way, and what went to the provider."""
    home = tmp_path_factory.mktemp("leaky")
    with pytest.MonkeyPatch.context() as patch:
        work = home / "work"
        alone(patch, home, work)
        patch.setenv("WORKBENCH_API_KEY", KEY)
        patch.setenv("WORKBENCH_TRIES", "1")
        patch.setenv("DATABASE_URL", URL)
        (work / "leaky.yaml").write_text(CASCADE)
        (work / "env.txt").write_text(f"KEY={KEY}\nURL={URL}\nTOKEN={STRANGER}\nX={urllib.parse.quote(KEY + '/')}\n")
        (work / "answers.json").write_text(json.dumps([f"yes, {KEY} and {STRANGER}"]))
        with Loopback(script()) as provider:
            host = provider.url.replace("http://", f"http://ada:{PASSWORD}@")
            options = (
                "--base-url",
                host,
                "--answers",
                "answers.json",
                "--input",
                json.dumps({"given": f"{KEY} {URL}"}),
            )
            told = [run_cli("run", "leaky.yaml", *options, "-m", "gpt-4o", "--session", "s")]
            told.append(run_cli("run", "leaky.yaml", *options, "-m", "401", "--session", "refused", "--json"))
            sent = [request.raw.decode() for request in provider.requests]
        yield work, [ended.out + ended.err for ended in told], sent


def found(text: str) -> list[str]:
    return [secret[:12] for secret in SECRETS if secret in text]


def test_the_run_met_them_all_and_said_none(leaky: tuple[Path, list[str], list[str]]) -> None:
    _, told, sent = leaky
    shown = run_cli("show", "s", "--json").json
    assert shown["status"] == "success", shown["reason"]
    assert run_cli("show", "refused", "--json").json["status"] == "failed"
    assert not found("".join(told))
    assert "redacted" in "".join(told)
    assert len(sent) == 7
    assert not found("".join(sent)), "what is sent is what is journaled"


def test_no_file_of_the_store_holds_one(leaky: tuple[Path, list[str], list[str]]) -> None:
    work, _, _ = leaky
    files = [path for path in (work / ".workbench").rglob("*") if path.is_file()]
    assert len(files) > 4
    assert not [str(path) for path in files if found(path.read_bytes().decode("utf-8", "replace"))]


WAYS_OUT = [
    ("runs", "--json"),
    ("show", "s"),
    ("show", "s", "--json"),
    ("show", "refused"),
    ("show", "refused", "--json"),
    ("context", "s", "--text"),
    ("context", "s", "--json"),
    ("context", "s", "--wire"),
    ("context", "refused", "--wire"),
    ("context", "s", "-s", "snowball", "--text"),
    ("diff", "s", "refused"),
    ("tree", "s"),
    ("export", "s", "--as", "messages"),
    ("export", "s", "--as", "otel"),
    ("export", "refused", "--as", "otel"),
    ("graph", "s", "--as", "mermaid"),
    ("config", "show", "--json"),
    ("doctor", "--json"),
    ("trust", "leaky.yaml"),
]


@pytest.mark.parametrize("command", WAYS_OUT, ids=" ".join)
def test_no_command_shows_one(leaky: tuple[Path, list[str], list[str]], command: tuple[str, ...]) -> None:
    ended = run_cli(*command)
    assert ended.code in (0, 1), ended.err
    assert ended.out or ended.err
    assert not found(ended.out + ended.err)


def test_no_page_no_frozen_test_and_no_table_holds_one(leaky: tuple[Path, list[str], list[str]]) -> None:
    assert run_cli("diff", "s", "--strategies", "snowball", "selective", "--html", "page.html").code == 0
    assert not found(Path("page.html").read_text("utf-8"))
    run_cli("test", "freeze", "s", "--name", "kept", "--description", f"with {KEY}")
    assert not [path for path in Path("snapshots").glob("*") if found(path.read_text("utf-8"))]


def test_sql_finds_none(leaky: tuple[Path, list[str], list[str]]) -> None:
    done = run_cli("sql", "SELECT * FROM unified_logs", "--format", "json")
    assert done.code == 0, done.err
    assert "redacted" in done.out
    assert not found(done.out)


async def test_the_app_shows_none(leaky: tuple[Path, list[str], list[str]]) -> None:
    work, _, _ = leaky

    def make() -> Session:
        return Session(Project.at(work), work / "leaky.yaml", model="gpt-4o")

    app = WorkbenchApp(make, given={})
    async with running(app, (200, 60)) as pilot:
        await soon(lambda: app.session is not None and app.bench.presenter is not None, "the session")
        assert app.session is not None
        for name in ("s", "refused"):
            app.session.view(Project.at(work).store.find(name))
            app.bench.show_what_is_stored()
            for key in ("1", "2", "3", "4", "5", "w", "p", "["):
                await pilot.press(key)
                assert not found(screen_text(app)), key


OWN = f"""\
cascade_id: own
phases:
  - name: look
    instructions: "Use {STRANGER} for {{{{ input.who }}}}."
    tackle: [read_file]
    rules: {{max_turns: 3}}
    handoffs: [tell]
  - name: tell
    tool: read_file
    inputs: {{path: {STRANGER}}}
  - name: end
    instructions: |
      {KEY} opens {URL}  # {STRANGER}
"""


def test_a_secret_in_the_cascades_own_text_is_stored_nowhere_and_changes_no_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    alone(monkeypatch, home, work)
    monkeypatch.setenv("WORKBENCH_API_KEY", KEY)
    (work / "own.yaml").write_text(OWN)
    (work / "[redacted github-token]").write_text("what a tool is given is the label, too")
    (work / "own.replies.yaml").write_text("replies:\n  look: [{text: seen}]\n  end: [{text: done}]\n")
    given = ("--input", '{"who": "Ada"}', "-m", "offline")
    held = run_cli("run", "own.yaml", *given, "--session", "s", "--until", "end:1")
    assert held.code == 0, held.err
    assert "in the file are replaced" in held.err
    assert run_cli("resume", "s", "-m", "offline").code == 0
    assert run_cli("test", "freeze", "s", "--name", "own").code == 0
    assert run_cli("test", "run").code == 0, "the file of today has the same secrets, replaced in the same way"
    again = run_cli("run", "own.yaml", *given, "--session", "again", "--reuse", "s", "--json")
    assert again.code == 0
    assert [line["data"]["recorded"] for line in again.lines if line["kind"] == "call_finished"] == [True, True]
    forked = run_cli("fork", "s", "--at", "end:1", "-m", "offline")
    assert forked.code == 0
    assert "has changed since" not in forked.err
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != work / "own.yaml"]
    assert len(files) > 10
    assert not [str(path) for path in files if found(path.read_bytes().decode("utf-8", "replace"))]
