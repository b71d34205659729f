"""``workbench export``: what goes out can be imported again, and says what the run says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CASCADE, REPLIES, alone, run_cli
from tests.importers.examples import EXAMPLES
from workbench.engine.state import RunState
from workbench.store.store import Store

PICTURE = "data:image/png;base64,iVBORw0KGgpyZXN0"
PICTURED = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": PICTURE}}],
    },
    {"role": "assistant", "content": "a square"},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two stored runs: ``greet``, which was run here, and ``seen``, which was imported with an image."""
    work = tmp_path / "work"
    alone(monkeypatch, tmp_path, work)
    (work / "greet.yaml").write_text(CASCADE)
    (work / "greet.replies.yaml").write_text(REPLIES)
    (work / "notes.txt").write_text("Ada likes short greetings.\n" * 4)
    assert run_cli("run", "greet.yaml", "--input", '{"name": "Ada"}', "--session", "greet", "-q").code == 0
    (work / "seen.json").write_text(json.dumps({"title": "seen", "messages": PICTURED}))
    assert run_cli("import", "seen.json").code == 0
    return work


def state_of(name: str) -> RunState:
    store = Store(Path(".workbench"))
    return store.state(store.find(name))


def seen(state: RunState) -> list[list[tuple[str, str, tuple[str, ...]]]]:
    """What each call saw and answered: role, text, images."""
    return [
        [
            (message.role, message.text, tuple(image.digest for image in message.images))
            for message in (*(entry.sent for entry in call.entries), call.answer)
            if message is not None
        ]
        for call in state.calls
    ]


def imported_again(name: str, format_name: str) -> list[RunState]:
    ended = run_cli("export", name, "--as", format_name, "--output", f"{name}.out")
    assert ended.code == 0, ended.err
    return [state_of(run["run_id"]) for run in run_cli("import", f"{name}.out", "--json").json]


@pytest.mark.parametrize("name", ["greet", "seen"])
def test_spans_hold_what_every_call_saw(folder: Path, name: str) -> None:
    before = state_of(name)
    (again,) = imported_again(name, "otel")
    assert sorted(seen(again)) == sorted(seen(before))
    assert [call.usage for call in again.calls] == [call.usage for call in before.calls]
    assert [call.tools_hash for call in again.calls] == [call.tools_hash for call in before.calls]


@pytest.mark.parametrize("name", ["greet", "seen"])
def test_messages_are_what_the_last_call_of_each_visit_was_sent(folder: Path, name: str) -> None:
    before = state_of(name)
    found = imported_again(name, "messages")
    last = [one for one, call in zip(seen(before), before.calls, strict=True) if call is _last(before, call)]
    assert [seen(one)[-1] for one in found] == last


def _last(state: RunState, call: Any) -> Any:
    visit = state.visit_of(call.place)
    assert visit is not None
    return visit.calls[-1]


def test_every_imported_format_survives_a_round_trip_through_spans(folder: Path) -> None:
    for name, body in EXAMPLES.items():
        Path(f"{name}.json").write_text(json.dumps(body))
        (run,) = run_cli("import", f"{name}.json", "--json").json
        (again,) = imported_again(run["session_id"], "otel")
        assert seen(again) == seen(state_of(run["session_id"])), name


def test_the_same_run_exports_to_the_same_spans_that_name_their_parents(folder: Path) -> None:
    first, second = (run_cli("export", "greet", "--as", "otel") for _ in range(2))
    assert first.out == second.out
    (resource,) = first.json["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    ids = {span["spanId"] for span in spans}
    assert len(ids) == len(spans)
    assert {span["parentSpanId"] for span in spans} <= ids | {""}
    assert all(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) > 0 for span in spans)
    failed = [span["name"] for span in spans if span.get("status", {}).get("code") == 2]
    assert failed == ["execute_tool read_file"]
