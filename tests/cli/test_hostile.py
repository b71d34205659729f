"""Hostile text on the command line: in files, names, replies, results, errors, and out through every way there is."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Ended, run_cli
from tests.support.loopback import HOSTILE as REPLY
from tests.support.loopback import Loopback, Reply
from tests.support.workspaces import alone

ESCAPES = "\x1b]0;owned\x07\x1b]52;c;eA==\x07\x1b[2J\x9b31m\u202e\u2066\x7f\x00\x1b]8;;http://x.invalid\x1b\\"
UNSEEN = "\u200b\u2060\ufeff\u2028\u2029"
MARKUP = "[/] [@click=app.quit]x[/] <script>alert(1)</script> \"'`;|--> end\n click n0"
EVIL = ESCAPES + UNSEEN + MARKUP
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\u200b\u2060\ufeff\u2028\u2029]"
)

CASCADE = {
    "cascade_id": f"evil{EVIL}",
    "description": EVIL,
    "inputs_schema": {f"given{EVIL}": EVIL},
    "phases": [
        {
            "name": f"look{EVIL}",
            "instructions": EVIL,
            "tackle": ["read_file", "set_state"],
            "rules": {"max_turns": 3},
            "handoffs": [{"target": f"end{EVIL}", "description": EVIL}],
        },
        {"name": f"end{EVIL}", "instructions": "{{ state }}" + EVIL, "context": {"from": [f"look{EVIL}"]}},
    ],
}
REPLIES = {
    "replies": {
        f"look{EVIL}": [
            {"say": EVIL, "calls": [{"tool": "read_file", "arguments": {"path": "notes.txt"}}]},
            {"say": EVIL, "calls": [{"tool": "set_state", "arguments": {"key": EVIL, "value": EVIL}}]},
            {"text": EVIL},
        ],
        f"end{EVIL}": [{"text": EVIL}],
    }
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder with one run in which every text is hostile, stored under ``s``."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        work = Path(place) / "work"
        alone(patch, Path(place), work)
        (work / "evil.json").write_text(json.dumps(CASCADE))
        (work / "evil.replies.yaml").write_text(json.dumps(REPLIES))
        (work / "notes.txt").write_text(EVIL)
        run_cli("run", "evil.json", "--session", "s")
        assert run_cli("show", "s", "--json").json["status"] == "success"
        yield work


def harmless(ended: Ended) -> None:
    assert "Traceback" not in ended.err
    for text in (ended.out, ended.err):
        assert not STEERING.search(text), repr(STEERING.findall(text)[:3])


COMMANDS = [
    ("check", "evil.json"),
    ("check", "."),
    ("run", "evil.json", "--session", "again", "--until", "nowhere\x1b[2J"),
    ("run", "evil.json", "--input", EVIL),
    ("run", "evil.json", "--model", f"x/{ESCAPES}", "-q", "--json"),
    ("runs",),
    ("runs", "--plain"),
    ("runs", "--json"),
    ("show", "s"),
    ("show", "s", "--json"),
    ("show", ESCAPES),
    ("context", "s"),
    ("context", "s", "--text"),
    ("context", "s", "--plain"),
    ("context", "s", "--json"),
    ("context", "s", "-s", "selective+mask(after=1)"),
    ("context", "s", "-s", ESCAPES),
    ("diff", "s", "--strategies", "snowball", "selective"),
    ("diff", "s", "--strategies", "snowball", "selective", "--json"),
    ("tree", "s"),
    ("tree", "s", "--json"),
    ("graph", "evil.json"),
    ("graph", "evil.json", "--as", "mermaid"),
    ("graph", "evil.json", "--json"),
    ("graph", "s"),
    ("graph", "s", "--as", "mermaid"),
    ("export", "s", "--as", "messages"),
    ("export", "s", "--as", "otel"),
    ("sweep", "s", "--strategy", "mask(after=1)"),
    ("candidates", "s"),
    ("memory", "--help"),
    ("doctor",),
    ("trust", "evil.json"),
    ("test", "freeze", "s", "--name", "evil", "--description", EVIL),
    ("test", "list"),
    ("test", "replay", "evil"),
    ("test", "run"),
    ("fork", "s", "--at", ESCAPES),
    ("sql", ESCAPES),
]


@pytest.mark.fault("F28", "F29")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command).partition("\x1b")[0])
def test_no_command_lets_a_payload_through(folder: Path, command: tuple[str, ...]) -> None:
    harmless(run_cli(*command))


@pytest.mark.fault("F28", "F29")
def test_the_html_of_a_comparison_runs_nothing(folder: Path) -> None:
    harmless(run_cli("diff", "s", "--strategies", "snowball", "selective", "--html", "out.html"))
    page = Path("out.html").read_text("utf-8")
    assert not STEERING.search(page)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.fault("F28")
def test_the_store_keeps_every_character(folder: Path) -> None:
    calls = run_cli("show", "s", "--json").json["phases"][0]["calls"]
    assert calls[-1]["answer"] == EVIL
    assert run_cli("show", "s", "--json").json["state"] == {EVIL: EVIL}


@pytest.mark.fault("F28")
@pytest.mark.parametrize("name", ["a\x1b]0;x\x07.yaml", "b\n\u202e.yaml", "c[b].yaml"])
def test_a_hostile_file_name_is_shown_as_pictures(folder: Path, name: str) -> None:
    Path(name).write_text("cascade_id: a\nphases: [{name: p, instructions: x, handofs: []}]\n")
    commands: list[tuple[str, ...]] = [("check", name), ("run", name), ("graph", name), ("check", name + "?")]
    for command in commands:
        ended = run_cli(*command)
        harmless(ended if command[0] != "run" else Ended(ended.code, "", ended.err))
    Path(name).unlink()


@pytest.mark.fault("F28", "F29")
@pytest.mark.parametrize("fault", ["hostile", "error"])
def test_a_hostile_provider_is_shown_as_pictures(folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setenv("WORKBENCH_TRIES", "1")
    Path("one.yaml").write_text("cascade_id: one\nphases: [{name: p, instructions: x}]\n")
    with Loopback([Reply(REPLY)]) as provider:
        options = ("--base-url", provider.url, "-m", "gpt-x" if fault == "hostile" else f"400#{ESCAPES}")
        for command in (("run", "one.yaml", *options, "--session", f"p-{fault}"), ("show", f"p-{fault}")):
            ended = run_cli(*command)
            harmless(Ended(ended.code, "" if command[0] == "run" else ended.out, ended.err))
