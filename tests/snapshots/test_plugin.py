"""The pytest plugin: what it collects, says, writes and imports."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.snapshots.conftest import edit
from tests.support.command import run_cli

HEAVY = ("textual", "litellm", "chdb", "pyarrow", "tiktoken", "matplotlib", "duckdb")
NEEDLESS = ("workbench.store.store",)
"""A replay needs no index. What costs only milliseconds is imported at the top of the modules that use it."""


OUTER = ("cacheprovider", "faulthandler", "unraisableexception")
"""What belongs to the run around it. The last one collects the garbage of the whole process five times at the end."""
PLUGINS = ("-p", "workbench.pytest_plugin", *(word for name in OUTER for word in ("-p", f"no:{name}")))
"""The plugin once, without those."""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the run around it: no other plugins, no longer summaries."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for outer in ("PYTEST_ADDOPTS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(outer, raising=False)


def run_pytest(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a pytest run in the current folder, in this process."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = pytest.main([*PLUGINS, *arguments])
    return int(code), said.getvalue()


def pytest_process(*arguments: str) -> tuple[int, str]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "pytest", *PLUGINS, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_snapshots_are_tests_with_a_mark_and_a_readable_failure(frozen: Path) -> None:
    code, out = run_pytest("snapshots", "-q", "-m", "snapshot", "--strict-markers")
    assert code == 0, out
    assert "1 passed" in out
    edit(Path("greet.yaml"), "mask_observations_after: 1", "mask_observations_after: 2")
    before = frozen.read_bytes()
    code, out = run_pytest("snapshots", "-q")
    assert code == 1
    assert "call look:3: message 4 (turn 1's result) was masked, is now sent in full" in out
    assert "mask_observations_after, greet.yaml:8)" in out
    assert "Traceback" not in out
    assert frozen.read_bytes() == before
    code, out = run_pytest("snapshots", "-q", "--snapshots-update")
    assert code == 0, out
    assert "updated: snapshots/greets.json" in out
    assert run_cli("test", "run").code == 0


def test_what_is_no_snapshot_is_left_alone_and_what_is_orphaned_fails(frozen: Path) -> None:
    frozen.with_name("other.json").write_text('{"a": 1}')
    lost = frozen.with_name("lost.json")
    lost.write_text(frozen.read_text("utf-8").replace('"cascade_file": "greet.yaml"', '"cascade_file": "gone.yaml"'))
    code, out = run_pytest("snapshots", "-q")
    assert code == 1
    assert "1 failed, 1 passed" in out
    assert "snapshots/lost.json: error: orphaned: the cascade gone.yaml does not exist any more" in out
    assert "other.json" not in out


def test_collecting_imports_nothing_heavy_and_running_no_screen_and_no_provider(frozen: Path) -> None:
    Path("conftest.py").write_text(
        "import json, sys\n"
        "def pytest_collection_finish(session):\n"
        "    open('collected', 'w').write(json.dumps(sorted(sys.modules)))\n"
        "def pytest_sessionfinish(session):\n"
        "    open('finished', 'w').write(json.dumps(sorted(sys.modules)))\n"
    )
    code, out = pytest_process("snapshots", "-q")
    assert code == 0, out
    collected, finished = (set(json.loads(Path(name).read_text())) for name in ("collected", "finished"))
    assert {name for name in collected if name.startswith("workbench")} == {"workbench", "workbench.pytest_plugin"}
    assert not {"pydantic", "yaml", "jinja2", *HEAVY} & collected
    assert {*HEAVY, *NEEDLESS} & finished == set()


def test_the_plugin_is_announced_to_pytest() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert 'cascade_workbench = "workbench.pytest_plugin"' in project.read_text("utf-8")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.proof)])
def test_it_works_in_several_processes(frozen: Path, workers: int) -> None:
    for name in ("a", "b", "c"):
        text = frozen.read_text("utf-8").replace('"snapshot_name": "greets"', f'"snapshot_name": "{name}"')
        frozen.with_name(f"{name}.json").write_text(text)
    edit(Path("greet.yaml"), "Greet them.", "Greet them warmly.")
    code, out = pytest_process("-p", "xdist", "-n", str(workers), "snapshots", "-q", "--snapshots-update")
    assert code == 0, out
    assert out.count("updated: snapshots/") == 4
