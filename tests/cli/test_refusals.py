"""What the commands say to a wrong use of them, word by word: message, place, hint and exit code."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.support.command import run_cli
from tests.support.stored import check_stored
from tests.support.workspaces import GREETING, filled

STORED = Path(__file__).parent / "stored"
FILES = {
    **GREETING,
    "broken.yaml": "cascade_id: broken\nphases:\n  - name: a\n  - name: b\n    instruction: x\n",
    "rows.csv": "name\nAda\n",
    "list.yaml": "- a\n",
    "sub/note.txt": "n",
}


def test_a_wrong_use_is_refused_as_stored(folder: Path) -> None:
    filled(folder, FILES)
    assert run_cli("run", "greet.yaml", "-m", "offline", "--session", "kept").code == 0
    told = []
    for line in (STORED / "refusals.txt").read_text("utf-8").splitlines():
        if not line.startswith("$ workbench"):
            continue
        ended = run_cli(*shlex.split(line.removeprefix("$ workbench")))
        said = (ended.out + ended.err).replace(str(folder), ".").rstrip("\n")
        told.append("\n".join([line, *said.splitlines(), f"[{ended.code}]", ""]))
    check_stored(STORED / "refusals.txt", "\n".join(told))
