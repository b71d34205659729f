"""The wire: the request as a JSON tree that folds, its raw body, and copies of it that can be run."""

from __future__ import annotations

import ast
import json
import shlex
from pathlib import Path

import pytest

from tests.ui.bench import bench
from tests.ui.support import triage_story
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.views.json_tree import JsonRows
from workbench.views.wire import as_curl, as_python, body_of, destination, wire_doc

NASTY = {"model": "m", "messages": [{"role": "user", "content": 'it\'s $HOME `id` \\ "x"\n\u202e'}]}


def sent() -> tuple[CallState, RunState]:
    run = RunState.of(triage_story().events)
    return run.calls[2], run


def test_the_tree_begins_with_a_line_for_each_message_and_unfolds_to_the_whole_body() -> None:
    call, run = sent()
    rows = wire_doc(call, run, entry=1)
    assert isinstance(rows, JsonRows)
    rows.lay_out(100)
    lines = [rows.row(i, 100).text for i in range(len(rows))]
    messages = json.loads(rows.copy)["messages"]
    for place, message in enumerate(messages):
        begun = [line.strip() for line in lines if f'"role": "{message["role"]}", "content": ' in line]
        assert place == 1 or any(line.startswith("▸ {") and "…" in line and len(line) <= 99 for line in begun)
    opened = rows.row(rows.first_row(rows.focus), 100).text
    assert opened.strip() == "▾ {", "the message of the entry is unfolded and in view"
    assert f'"role": "{messages[1]["role"]}"' in rows.row(rows.first_row(rows.focus) + 1, 100).text
    assert rows.find("search_files", 0) is not None
    rows.unfold_all()
    assert len(rows) > len(lines)
    assert json.loads(rows.copy) == json.loads(body_of(call, run)[0])


def test_the_raw_body_is_the_text_as_it_was_sent() -> None:
    call, run = sent()
    rows = wire_doc(call, run, raw=True, whole=True)
    assert "".join(line.text for line in rows.lines) == body_of(call, run)[0]


@pytest.mark.parametrize(
    ("model", "base", "url", "key"),
    [
        ("openai/gpt-4.1", "", "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
        ("anthropic/claude", "", "https://api.anthropic.com/v1/messages", "ANTHROPIC_API_KEY"),
        ("new-one/m", "", "$NEW_ONE_API_BASE/chat/completions", "NEW_ONE_API_KEY"),
        ("m", "http://127.0.0.1:1/v1/", "http://127.0.0.1:1/v1/chat/completions", "OPENAI_API_KEY"),
        ("a'; rm -rf /", "", "$A___RM__RF__API_BASE/chat/completions", "A___RM__RF__API_KEY"),
    ],
)
def test_a_copy_holds_the_whole_body_and_names_its_key_as_a_variable(model: str, base: str, url: str, key: str) -> None:
    call, _ = sent()
    call.model = model
    to = destination(call, base)
    assert (to.url, to.key) == (url, key)
    text = json.dumps(NASTY)
    words = shlex.split(as_curl(text, to))
    assert words[:2] == ["curl", url]
    assert json.loads(words[words.index("-d") + 1]) == NASTY
    assert f"${key}" in " ".join(words)
    program = ast.parse(as_python(text, to))
    (body,) = (node.value for node in program.body if isinstance(node, ast.Assign) and node.targets[0].id == "body")  # type: ignore[attr-defined]
    assert ast.literal_eval(body) == NASTY
    assert f'os.environ["{key}"]' in as_python(text, to)


async def test_w_shows_the_tree_then_the_raw_body_and_y_offers_three_copies(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(40, 12), events=triage_story().events) as it:
        copied: list[tuple[str, str]] = []
        it.app.copy = lambda text, what: copied.append((text, what))  # type: ignore[method-assign]
        for size in ((40, 12), (80, 24), (120, 40), (200, 50)):
            await it.pilot.resize_terminal(*size)
            await it.press("w")
            assert isinstance(it.screen.detail_pane.rows, JsonRows)
            it.screen.focus_pane("detail")
            it.screen.detail_pane.move_to(0)
            before = len(it.screen.detail_pane.rows)
            await it.press("enter")
            assert len(it.screen.detail_pane.rows) < before, "the root is folded"
            await it.press("y")
            await it.until(lambda: isinstance(it.app.screen, ChoiceDialog))
            assert "OPENAI_API_KEY" in it.text()
            await it.press("c")
            assert (copied[-1][0][:5], copied[-1][1]) == ("curl ", "the curl command")
            await it.press("w")
            assert not isinstance(it.screen.detail_pane.rows, JsonRows)
            await it.press("w")
            assert it.presenter.detail_mode == "message"

            await it.press("w")
            wire = it.screen.detail_pane
            wire.move_to(next(row for row in range(len(wire.rows)) if "search_files" in wire.rows.row(row, 200).text))
            await it.press("p")
            assert it.presenter.detail_mode == "why"
            assert "Why" in it.pane("detail"), "the message under the cursor is explained, not that of another row"
            await it.press("p")
