"""Each extra is named with the line that installs it where its library is missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from workbench.extras import MODULES, Extra, install_line

ROOT = Path(__file__).resolve().parent.parent
BLOCKED = """
import sys
from importlib.abc import MetaPathFinder
blocked = sys.argv[1]
class Without(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == blocked or name.startswith(f"{blocked}."):
            raise ModuleNotFoundError(f"no module {name}", name=name)
sys.meta_path.insert(0, Without())
"""
SAID: dict[Extra, str] = {
    "charts": "from workbench.tools.builtin.chart import create_chart\nprint(create_chart('a', [1, 2]).text)",
    "images": "from workbench.views.picture import CannotDraw, scaled\n"
    "try: scaled(b'', lambda w, h: (w, h))\nexcept CannotDraw as fault: print(fault)",
    "serve": "from workbench.__main__ import main\nsys.argv = ['workbench', 'serve', '--port', '0']\nmain()",
}
"""What shows the message, for each extra that a program of three lines can reach."""


def test_the_extras_are_those_of_the_project() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(extras) == {*MODULES, "examples", "dev"}


@pytest.mark.parametrize("extra", MODULES)
def test_a_missing_extra_is_named_with_its_install_line(extra: Extra, tmp_path: Path) -> None:
    script = BLOCKED + SAID.get(extra, f"from workbench.extras import missing\nprint(missing({extra!r}))")
    done = subprocess.run(
        [sys.executable, "-c", script, MODULES[extra]], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert f"the {extra} extra is not installed: {install_line(extra)}" in done.stdout + done.stderr
