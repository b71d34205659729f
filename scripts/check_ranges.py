"""Does the project work with the lowest and with the newest versions that ``pyproject.toml`` allows?

For each of both, side by side, a virtual environment is made in a temporary folder, with all extras and the pytest
plugins that users have, and a fast set of tests runs in it. ``--keep FOLDER`` leaves the environments there, and takes
them as they are where they exist. Prints when each step was done; exits with 1 if one fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("browser", "charts", "data", "images", "mcp", "serve")
PYTEST: Mapping[str, str] = {"lowest-direct": "pytest>=8,<9", "highest": "pytest>=9,<10"}
"""uv's name of a resolution, and the pytest that goes with it."""
PLUGINS = (
    *("pytest-asyncio>=0.25", "pytest-cov>=6", "pytest-randomly>=3.16", "pytest-xdist>=3.8", "pytest-timeout>=2.4"),
    "hypothesis>=6.150",
)
TESTS = (
    *("tests/language/test_load.py", "tests/language/test_schema.py", "tests/language/test_assist.py"),
    *("tests/language/test_template.py", "tests/engine/test_events.py", "tests/engine/test_replay.py"),
    *("tests/models/test_calls.py", "tests/exporters/test_pages.py"),
    *("tests/models/test_prices.py", "tests/models/test_encodings.py", "tests/store/test_asking.py"),
    *("tests/store/test_store.py", "tests/workspace/test_stored_files.py", "tests/workspace/test_watch.py"),
    *("tests/snapshots/test_plugin.py", "tests/tools/test_mcp_servers.py", "tests/tools/test_chart.py"),
    *("tests/cli/test_run.py", "tests/cli/test_compare.py", "tests/ui/test_bench.py"),
)
"""What opens, runs, steps, compares, stores, replays and asks: all that touches a dependency."""
EXAMPLE = "snapshots/log_triage.json"
OWN_TEST = """
import asyncio

import pytest


def test_plain():
    assert True


@pytest.mark.asyncio
async def test_with_a_loop():
    await asyncio.sleep(0)
"""
ALONE = """
import sys


def pytest_sessionfinish(session):
    ours = {name for name in sys.modules if name.partition(".")[0] == "workbench"}
    assert ours == {"workbench", "workbench.pytest_plugin"}, sorted(ours)
"""
"""A session without snapshots imports nothing of ours but the plugin."""


def install(folder: Path, resolution: str) -> Path:
    """The Python of an environment with the project in it, editable."""
    python = folder / "bin" / "python"
    if python.exists():
        return python
    uv = [str(Path(sys.executable).with_name("uv"))]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    extras = [part for extra in EXTRAS for part in ("--extra", extra)]
    run(*uv, "venv", "-q", "--python", sys.executable, str(folder))
    into = [*uv, "pip", "install", "-q", "--python", str(python)]
    run(*into, "--resolution", resolution, "-r", "pyproject.toml", *extras, *build, PYTEST[resolution], *PLUGINS)
    run(*into, "--no-deps", "--no-build-isolation", "-e", ".")
    return python


def test(python: Path) -> None:
    """The fast set of tests. Other plugins stay out: they change the order of tests, and how coroutines run."""
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    plugins = ("-p", "pytest_timeout", "-p", "workbench.pytest_plugin")
    # The oldest of one library and the newest of another: what the one calls may be out of date in the other.
    known = ("-W", "ignore::DeprecationWarning")
    # Not the cache of the project, whose failed tests another run may be about to try again.
    cache = ("-o", f"cache_dir={python.parent.parent / 'pytest_cache'}")
    words = [str(python), "-m", "pytest", "-q", *known, *cache, *plugins]
    try:
        run(*words, *TESTS, env=own)
    except subprocess.CalledProcessError:
        # This is about versions: what a busy machine let fail passes alone.
        run(*words, "--last-failed", *TESTS, env=own)


def try_plugin(python: Path) -> None:
    """A project of a user: one snapshot and its own tests, beside the plugins that many have; then none."""
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        (project / "test_own.py").write_text(OWN_TEST, "utf-8")
        (project / "conftest.py").write_text(ALONE, "utf-8")
        run(str(python), "-m", "pytest", "-q", cwd=project)
        (project / "conftest.py").unlink()
        shutil.copytree(ROOT / "cascades", project / "cascades")
        (project / "snapshots").mkdir()
        shutil.copy(ROOT / EXAMPLE, project / "snapshots")
        for options in ((), ("-p", "no:randomly"), ("-n", "2"), ("--cov", "--cov-report", "")):
            run(
                str(python), "-m", "pytest", "-q", "--strict-markers", "test_own.py", "snapshots", *options, cwd=project
            )


def run(*command: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
    """Prints what the command said when it has ended, because another one runs beside it. Raises CalledProcessError,
    which names the command."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    ended = subprocess.run(
        command, cwd=cwd, env={**kept, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(ended.stdout, end="", flush=True)
    ended.check_returncode()


def check(folder: Path, resolution: str) -> None:
    """All steps with one resolution; prints how many seconds each took."""
    begin = time.perf_counter()

    def took(step: str) -> None:
        print(f"{resolution}: {step} done after {time.perf_counter() - begin:.1f} s\n", end="", flush=True)

    python = install(folder / resolution, resolution)
    took("install")
    test(python)
    took("tests")
    try_plugin(python)
    took("pytest plugin")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the environments are left for another run")
    kept: Path | None = parser.parse_args().keep
    failed = 0
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor() as pool:
        folder = kept.resolve() if kept else Path(temporary)
        for checked in [pool.submit(check, folder, resolution) for resolution in PYTEST]:
            try:
                checked.result()
            except subprocess.CalledProcessError as error:
                failed = 1
                print(f"failed with {error.returncode}: {' '.join(error.cmd)}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
