"""A stored run in which every text is hostile, walked through every room of the app: nothing of it moves or links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_hostile import CASCADE, EVIL, REPLIES
from tests.support.command import run_cli
from tests.support.workspaces import alone
from tests.ui.bench import bench
from tests.ui.test_hostile import assert_harmless
from workbench.workspace.project import Project
from workbench.workspace.session import Session

WALKS = {
    "bench": ("1", "2", "3", "4", "5", "w", "p", "m", "d", "enter", "escape", "G", "enter", "escape"),
    "runs": ("L", "down", "s", "X", "escape", "f", "e", "v", "escape", "escape", "escape"),
    "home": ("H", "tab", "down", "tab", "r", "escape"),
    "message": ("g", "down", "enter", "end", "escape"),
    "edit": ("e", "end", "escape"),
    "tests": ("t", "escape"),
    "fork": ("F", "escape"),
    "compare": ("D", "escape"),
    "help": ("question_mark", "escape", "ctrl+p", "escape"),
}


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
    return home / "work"


@pytest.mark.fault("F28", "F29")
async def test_no_room_lets_a_payload_through(evil: Path, tmp_path: Path) -> None:
    env = {"WORKBENCH_CONFIG_DIR": str(tmp_path / "config"), "WORKBENCH_STATE_DIR": str(tmp_path / "state")}

    session = Session(Project.at(evil, env=env), evil / "evil.json", model="offline")
    session.view(session.project.store.find("s"))
    async with bench(tmp_path, session=session, size=(120, 40)) as it:
        await it.until(lambda: it.presenter.state.run.status == "success")
        for room, keys in WALKS.items():
            for key in keys:
                await it.press(key)
                assert it.app.is_running, (room, key)
                assert_harmless(it)
            await it.until(lambda: it.app.screen is it.screen, f"the walk through {room} does not end on the Bench")
