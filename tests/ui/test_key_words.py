"""Sentences that name keys say those that are bound, the user's own among them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import workbench.tui
from tests.ui.bench import bench
from workbench.views.home import CascadeRows
from workbench.views.keys import KEYS, resolve, take_keys, told
from workbench.workspace.settings import Settings

SOURCES = Path(workbench.tui.__file__).parent
NAMED = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")


def _commands_in_sentences() -> Iterator[tuple[str, str]]:
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from ((command, f"{file.name}:{node.lineno}") for command in NAMED.findall(node.value))


def test_every_command_that_a_sentence_names_is_in_the_table() -> None:
    known = {key.id for key in KEYS}
    named = list(_commands_in_sentences())

    assert len(named) > 40
    assert [(command, place) for command, place in named if command not in known] == []


def test_a_value_in_a_sentence_is_taken_as_it_is() -> None:
    assert told("{name}: {run.start} runs it", name="{run.start}") == "{run.start}: r runs it"


async def test_a_rebound_key_is_what_every_sentence_says(tmp_path: Path) -> None:
    keys = {"run.start": "ctrl+k", "run.over": "f8", "view.clear": "ctrl+l", "run.fork": "f6"}
    async with bench(tmp_path, keys=keys) as it:
        assert "f8 runs to the first call and pauses, ^k runs to the end." in it.pane("context")
        assert "f8 runs to the first call" in it.text()
        it.screen.tree_pane.filter_by("nowhere")
        assert "^l shows all again" in it.pane("tree")
        await it.press("E")
        assert any("f8 steps to the next call, f6 forks" in note.message for note in it.app.notices.all)

        it.app.take_settings(Settings({"theme": it.app.theme, "keys": {"run.start": "f12"}}))
        await it.pilot.pause()
        assert "f12 runs to the end" in it.pane("context")
    assert told("{run.start}") == "r", "what an app took, it gives back"


def test_the_first_words_in_an_empty_folder_name_the_key_that_is_bound() -> None:
    take_keys(resolve({"home.demo": "f12"})[0])
    try:
        assert CascadeRows((), {}, {}).empty[3].startswith("f12  opens the tour")
        assert CascadeRows(None, {}, {}).empty == ("Looking …",)
    finally:
        take_keys(KEYS)
