"""Which tests run which lines of the workbench: a pytest plugin that writes it down, and a reader of what it wrote.

    python -m bench.tested_lines                  # all tests, some 15 minutes of two cores; into .tested_lines/
    python -m bench.tested_lines tests/views      # only these anew

A test is named without its parameters. What a shared fixture runs belongs to each test of the file that uses it; what a
process runs that a test starts belongs to that test. The text of the program is kept beside, so that the lines are
found again in a changed tree.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).parents[1]
RECORD = ROOT / ".tested_lines"
CHILDREN = """\
[run]
source = {source}
data_file = {data}
parallel = true
sigterm = true
context = ${{PYTEST_CURRENT_TEST-}}
"""
"""How processes that a test starts are measured: pytest names the test in their environment."""


class Recorder:
    """The plugin: one context of coverage for each test, and one for each fixture that several tests share."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._test = ""
        self._seconds: dict[str, float] = defaultdict(float)
        self._users: dict[str, set[str]] = defaultdict(set)
        options = folder / "children.cfg"
        options.write_text(CHILDREN.format(source=ROOT / "workbench", data=folder / "lines"), "utf-8")
        self._coverage = coverage.Coverage(
            data_file=str(folder / "lines"), data_suffix=True, source=[str(ROOT / "workbench")], config_file=False
        )
        self._coverage.start()
        os.environ["COVERAGE_PROCESS_START"] = str(options)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._switch(_plain(item.nodeid))
        for name in getattr(item, "fixturenames", ()):
            self._users[_shared(item, name)].add(self._test)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        before, file = self._test, self._test.partition("::")[0]
        self._switch(f"{file}::@{fixturedef.argname}")
        try:
            return (yield)
        finally:
            self._switch(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[_plain(report.nodeid)] += report.duration

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        users = {name: sorted(tests) for name, tests in self._users.items()}
        file = self._folder / f"tests.{uuid.uuid4().hex}.json"
        file.write_text(json.dumps({"seconds": self._seconds, "users": users}), "utf-8")

    def _switch(self, test: str) -> None:
        if test != self._test:
            self._test = test
            self._coverage.switch_context(test)


def _plain(name: str) -> str:
    """A test's name without its parameters, and without the stage that pytest appends for processes."""
    return re.sub(r"\[.*$| \((setup|call|teardown)\)$", "", name, flags=re.DOTALL)


def _shared(item: pytest.Item, fixture: str) -> str:
    return f"{_plain(item.nodeid).partition('::')[0]}::@{fixture}"


def pytest_configure(config: pytest.Config) -> None:
    """Measure, where pytest was started with ``-p bench.tested_lines``: in each worker, not in what starts them."""
    folder = os.environ.get("TESTED_LINES")
    if folder and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Recorder(Path(folder)), "tested-lines")


class TestedLines:
    """Reads a record: the tests that run a line of today's tree, and the seconds that each took."""

    def __init__(self, folder: Path = RECORD) -> None:
        self._folder = folder
        self.seconds: dict[str, float] = defaultdict(float)
        self._users: dict[str, set[str]] = defaultdict(set)
        for file in folder.glob("tests.*.json"):
            part = json.loads(file.read_text("utf-8"))
            for test, seconds in part["seconds"].items():
                self.seconds[test] += seconds
            for name, tests in part["users"].items():
                self._users[name].update(tests)
        self._data = coverage.CoverageData(str(folder / "lines"))
        self._data.read()
        self._files = {file.partition("/workbench/")[2]: file for file in self._data.measured_files()}

    def of(self, path: str, first: int, last: int) -> set[str]:
        """The tests that run one of these lines of a module (``workbench/…``), both ends included."""
        name = path.removeprefix("workbench/")
        then, contexts = _lines_then(self._folder, path), self._contexts(name)
        found: set[str] = set()
        for line in [line for line in then if first <= line <= last]:
            for context in contexts.get(then[line], ()):
                test = _plain(context)
                found |= self._users[test] if "::@" in test else {test}
        return {test for test in found if test in self.seconds and (ROOT / test.partition("::")[0]).exists()}

    def at_import(self, path: str) -> set[str]:
        """The tests that were the first to import a module, each in its process: chance decides which."""
        lines = self._contexts(path.removeprefix("workbench/"))
        return {_plain(context) for context in lines[min(lines)]} if lines else set()

    @lru_cache(maxsize=64)  # noqa: B019 - it lives as long as the program
    def _contexts(self, name: str) -> Mapping[int, list[str]]:
        return self._data.contexts_by_lineno(self._files[name]) if name in self._files else {}


@lru_cache(maxsize=64)
def _lines_then(folder: Path, path: str) -> Mapping[int, int]:
    """Where each line of today's module stood in the recorded one."""
    kept = folder / path
    before = kept.read_text("utf-8").splitlines() if kept.exists() else []
    now = (ROOT / path).read_text("utf-8").splitlines()
    same = difflib.SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
    return {block.b + at + 1: block.a + at + 1 for block in same for at in range(block.size)}


def combine(folder: Path) -> None:
    """Make one record of what the processes wrote, beside the text of the program that they ran."""
    data = coverage.Coverage(data_file=str(folder / "lines"), config_file=False)
    data.combine([str(file) for file in folder.glob("lines.*")])
    data.save()
    shutil.copytree(ROOT / "workbench", folder / "workbench", ignore=shutil.ignore_patterns("__pycache__"))


def main() -> int:
    shutil.rmtree(RECORD, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "bench.tested_lines", "-n", "2", "--dist", "loadfile"]
    subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env={**os.environ, "TESTED_LINES": str(RECORD)}, check=False)
    combine(RECORD)
    return 0


if __name__ == "__main__":
    sys.exit(main())
