"""Before a run whose tools could act outside the sandbox, a person is shown what they could do, and decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.bench import Bench, bench
from workbench.store.store import Store

CASCADE = """\
cascade_id: act
phases:
  - name: p
    instructions: Shout.
    tackle: [shout]
    rules: {max_turns: 2}
"""
REPLIES = """\
replies:
  p:
    - calls: [{tool: shout, arguments: {text: hello}}]
    - text: done
"""
TOOL = "def shout(text: str) -> str:\n    return text.upper()\n"


def with_a_tool(folder: Path, name: str = "own") -> Path:
    (folder / "tools").mkdir(exist_ok=True)
    (folder / "tools" / f"{name}.py").write_text(TOOL)
    return folder


async def asked(it: Bench, key: str) -> None:
    await it.press("r")
    await it.until(lambda: "Trust this folder?" in it.text(), "nobody was asked")
    assert "python: " in it.text()
    assert "own.py" in it.text()
    await it.press(key)


@pytest.mark.parametrize(("key", "result"), [("a", "HELLO"), ("w", "may not run")])
async def test_what_could_act_outside_is_shown_before_it_runs(tmp_path: Path, key: str, result: str) -> None:
    async with bench(with_a_tool(tmp_path), text=CASCADE, replies=REPLIES) as it:
        await asked(it, key)
        await it.until(lambda: it.presenter.state.run.status == "success")
        (tool,) = it.presenter.state.run.calls[0].tools
        assert result in tool.text
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.status == "success")
        assert "Trust this folder?" not in it.text(), "it is asked once"


async def test_who_wants_no_run_gets_none_and_a_changed_tool_asks_again(tmp_path: Path) -> None:
    async with bench(with_a_tool(tmp_path), text=CASCADE, replies=REPLIES) as it:
        await asked(it, "n")
        assert not it.session.running
        assert Store(tmp_path / ".workbench").run_ids() == []
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await asked(it, "a")
        await it.until(lambda: it.presenter.state.run.status == "success")
    (tmp_path / "tools" / "own.py").write_text(TOOL + "# changed\n")
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await asked(it, "escape")
        assert not it.session.running


async def test_a_hostile_name_of_a_tool_is_shown_as_pictures(tmp_path: Path) -> None:
    async with bench(with_a_tool(tmp_path, "own\x1b]0;x\x07[/]".replace("/", "")), text=CASCADE, replies=REPLIES) as it:
        await it.press("r")
        await it.until(lambda: "Trust this folder?" in it.text())
        assert "\x1b" not in it.text()
        assert "\u241b]0;x\u2407" in it.text()


BOMB = """\
cascade_id: act
phases:
  - name: p
    instructions: |
      Look.
      {% set all = namespace(a=[]) %}{% for i in range(319) %}
      {% set all.a = [all.a, range(i * 100000, (i + 1) * 100000)|list] %}{% endfor %}
"""


@pytest.mark.fault("F19")
async def test_a_template_bomb_of_a_stranger_ends_the_run_with_its_line_and_the_app_goes_on(tmp_path: Path) -> None:
    async with bench(tmp_path, text=BOMB) as it:
        frames = 0

        def turned() -> bool:
            nonlocal frames
            frames += 1
            return it.presenter.state.run.status == "failed"

        await it.press("r")
        await it.until(turned)
        assert frames > 2, "the screen was drawn while the template was being rendered"
        said = it.presenter.state.run.reason
        assert "log_triage.yaml:7:7: template: it needs more than 512 MB of memory" in said
        await it.press("question_mark")
        await it.until(lambda: len(it.app.screen_stack) > 1, "a key does nothing")


async def test_every_key_that_starts_a_run_asks_first(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await it.press("n")
        await it.until(lambda: it.presenter.state.held is not None)
        await it.press("x")
        await it.until(lambda: it.presenter.state.run.status == "stopped")
        await it.until(lambda: not it.session.running)
        with_a_tool(tmp_path)
        before = Store(tmp_path / ".workbench").run_ids()
        for key in ("r", "n", "R", "F", "c"):
            it.app.asked_to_allow = frozenset()
            await it.press(key)
            await it.until(lambda: "Trust this folder?" in it.text(), f"{key}: nobody was asked")
            await it.press("n")
            assert not it.session.running
            assert Store(tmp_path / ".workbench").run_ids() == before
