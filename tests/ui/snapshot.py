"""Pictures of the app beside their text: one changed cell changes much of an SVG, so the text is what one reads."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.ui.bench import screen_text
from workbench.tui.app import WorkbenchApp

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = "WORKBENCH_UPDATE_SNAPSHOTS"
"""Set in the environment, pictures are written instead of compared; review the .txt files before they are kept."""

_FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)
_IDS = re.compile(r"terminal-\d+")


def normalised(svg: str) -> str:
    """The picture without what differs from run to run, and without fonts from the network."""
    return _IDS.sub("terminal", _FONTS.sub("", svg)).rstrip() + "\n"


def check(app: WorkbenchApp, name: str, *, picture: bool = False) -> None:
    """Compare the screen with the stored text, and with the stored ``picture`` where colours matter too."""
    found = {"txt": screen_text(app)}
    if picture:
        found["svg"] = normalised(app.export_screenshot())
    for ending, content in found.items():
        file = FOLDER / f"{name}.{ending}"
        if os.environ.get(UPDATE):
            FOLDER.mkdir(exist_ok=True)
            file.write_text(content)
            continue
        assert file.exists(), f"there is no {file.name} yet: run once with {UPDATE}=1 and review it"
        assert content == file.read_text(), f"{file.name} is not what it was"
