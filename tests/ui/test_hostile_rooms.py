"""A stored run in which every text is hostile, walked through every room of the app: nothing of it moves or links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_hostile import CASCADE, EVIL, REPLIES
from tests.support.batches import stored_batch
from tests.support.command import run_cli
from tests.support.workspaces import alone
from tests.ui.bench import bench
from tests.ui.snapshot import SCREENS
from tests.ui.test_hostile import ALL, assert_harmless
from workbench.tui.screens.request import ChangedSheet
from workbench.workspace.project import Project
from workbench.workspace.session import Session

COMPARED = ("D", "~", "g", "enter", "~")
WALKS = {
    "bench": ("1", "2", "3", "4", "5", "w", "p", "m", "d", "enter", "escape", "G", "enter", "escape"),
    "runs": ("L", "down", "s", "X", "escape", "f", "e", "v", "escape", "escape", "escape"),
    "home": ("H", "tab", "down", "tab", "r", "escape"),
    "message": ("ctrl+o", "c", "left_square_bracket", "g", "down", "enter", "end", "escape"),
    "edit": ("e", "end", "escape"),
    "tests": ("t", "escape"),
    "help": ("question_mark", "escape", "ctrl+p", "escape"),
    "timeline": ("6", "G", "enter", "escape", "1"),
    "wire": ("g", "w", "w", "/", "e", "escape", "escape"),
    "flow": ("v", "down", "v", "G", "escape"),
    "compared": (*COMPARED, "bracketright", "P", "X", "escape", "escape", "X", "escape", "escape"),
    "swept": (*COMPARED, "S", "enter", "~", "P", "escape", "G", "space", "L", "r", "~", "enter", *4 * ("escape",)),
    "playground": ("g", "left_square_bracket", "P", "~", "m", "escape", "e", "down", "escape", "r", "~", "escape"),
    "breakpoints": ("s", "escape"),
    "candidates": ("C", "~", "d", "escape", "P", "v", "escape", "escape"),
    "sql": ("Q", "f5", "~", "f6", "down", "G", "space", "escape", "escape"),
    "settings": ("comma", "tab", "G", "slash", "e", "escape", "escape"),
    "snapshots": ("T", "~", "tab", "G", "d", "escape", "escape"),
    "notes": ("number_sign", "escape", "quotation_mark", "e", "escape", "asterisk", "escape"),
    "inputs": ("I", "e", "escape"),
    "jump": ("ctrl+o", "escape"),
    "batches": (
        "L",
        "M",
        "~",
        "v",
        "escape",
        "down",
        "space",
        "right",
        "D",
        "escape",
        "p",
        "escape",
        "escape",
        "escape",
    ),
}
"""The keys of each walk; at ``~`` what works in the background has ended."""
IN_PANES = {"bench", "timeline", "wire", "fork", "changed"}
"""Walks that stay on the Bench at first; any other one opens a screen."""
WALKS_OF_A_CHANGE = {
    "changes": ("D", "down", "G", "enter", "escape"),
    "fork": ("F", "escape"),
    "requests": ("T", "~", "d", "down", "G", "enter", "escape", "escape"),
    "changed": ("R",),
}
"""Those after the file was changed; the last one ends at the first request that differs."""
NOT_WALKED = {"CandidatesScreen", "FeedbackDialog", "FormDialog", "QuestionDialog", "RequestForm", "ReviewSheet"}
"""Screens of a run that goes on, asks or has candidates: this one has ended. Other tests open them with hostile
texts."""


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one hostile run, and a frozen test of it."""
    home = tmp_path_factory.mktemp("evil")
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, home, home / "work")
        Path("evil.json").write_text(json.dumps(CASCADE))
        Path("evil.replies.yaml").write_text(json.dumps(REPLIES))
        Path("notes.txt").write_text(EVIL)
        assert run_cli("run", "evil.json", "--session", "s", "-q").code == 0
        run_cli("test", "freeze", "s", "--name", "evil", "--description", EVIL)
        stored_batch(home / "work", ALL)
    return home / "work"


@pytest.mark.fault("F28", "F29")
async def test_no_room_lets_a_payload_through(evil: Path, tmp_path: Path) -> None:
    env = {"WORKBENCH_CONFIG_DIR": str(tmp_path / "config"), "WORKBENCH_STATE_DIR": str(tmp_path / "state")}

    session = Session(Project.at(evil, env=env), evil / "evil.json", model="offline")
    session.view(session.project.store.find("s"))
    async with bench(tmp_path, session=session, size=(120, 40)) as it:
        await it.until(lambda: it.presenter.state.run.status == "success")
        seen = set[str]()

        async def walk(room: str, keys: tuple[str, ...]) -> None:
            opened = set[str]()
            for key in keys:
                if key == "~":
                    await it.app.workers.wait_for_complete()
                    await it.pilot.pause()
                else:
                    await it.press(key)
                opened.add(type(it.app.screen).__name__)
                assert it.app.is_running, (room, key)
                if key != "escape":  # What it goes back to was looked at.
                    assert_harmless(it, room, key)
            assert room in IN_PANES or opened != {"BenchScreen"}, f"the walk through {room} opens no screen"
            seen.update(opened)

        for room, keys in WALKS.items():
            await walk(room, keys)
            await it.until(lambda: it.app.screen is it.screen, f"the walk through {room} does not end on the Bench")
        session.file.write_text(json.dumps(CASCADE).replace('"instructions": "', '"instructions": "changed '))
        await it.until(lambda: it.presenter.state.changed, "the save was not noticed")
        for room, keys in WALKS_OF_A_CHANGE.items():
            await walk(room, keys)
        await it.until(lambda: isinstance(it.app.screen, ChangedSheet), "the changed request was not shown")
        await walk("changed", ("down", "G", "enter", "escape"))
        assert set(SCREENS) - seen == NOT_WALKED, "a screen is not walked through"
