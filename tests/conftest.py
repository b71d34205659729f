"""How tests run: each within a time, ``async def`` tests in an event loop of their own, generated values the same in CI
every time, modules compiled once for all processes, and the garbage collector without what stays."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.workspaces import alone

TIME_LIMIT = 300
"""Seconds until a test is ended with the stack of what it waits for. On an idle machine the slowest takes a tenth."""
SLOW = {"e2e": 600, "terminal": 600}
"""Folders whose tests start many processes, each of which may take long on a busy machine."""
FIRST = ("ui", "cli", "attach", "workspace", "store")
"""Folders with the longest files, which several workers take first: so that none of them is left alone with one."""
WAITING = ("terminal", "e2e", "tools")
"""Folders whose tests wait for terminals, browsers and commands most of the time. One in four files is of these: four
workers that wait at once leave both processors idle, which took 20 seconds of the whole suite."""

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),  # In CI the same values come every time: a failure is one of the change.
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],  # On a busy machine, making values is.
)
settings.register_profile("thorough", settings.get_profile("suite"), derandomize=False, max_examples=1_000)
settings.load_profile("suite")
# The tests start some hundred processes. Where bytecode is not kept, each would compile the project anew, which takes
# longer than what most of them do.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Apps of the tests draw a frame when the pilot pauses. One each sixtieth of a second besides, which nobody sees, takes
# a quarter of the processor time of ``tests/ui``. Textual reads this where it is imported; processes do not inherit it.
os.environ["TEXTUAL_FPS"] = "5"
import_module("textual.screen")
del os.environ["TEXTUAL_FPS"]
gc.disable()  # Until all is collected: modules and tests stay, so looking at them again and again finds nothing.


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "timeout(seconds): another time limit than that of all tests")


def pytest_collection(session: pytest.Session) -> None:
    """Each of several workers collects all tests. On a fresh clone each begins with another part of the modules, then
    reads the bytecode of the others, instead of rewriting and compiling every assertion itself."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    here = Path(__file__).parent
    modules = sorted(here.rglob("test_*.py"))
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for file in modules[number::count]:
        with suppress(Exception, pytest.skip.Exception):  # Collection finds it again, and reports it.
            import_module(".".join(file.relative_to(here.parent).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its time limit (pytest-timeout enforces it; a mark of its own wins), and put the files into the
    order in which workers take them."""
    by_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.path, []).append(item)
    for file, tests in by_file.items():
        limit = pytest.mark.timeout(SLOW.get(file.parent.name, TIME_LIMIT))
        for item in tests:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(limit)
    waiting = [file for folder in WAITING for file in by_file if file.parent.name == folder]
    order = {name: at for at, name in enumerate(FIRST)}
    working = sorted(
        (file for file in by_file if file.parent.name not in WAITING),
        key=lambda file: order.get(file.parent.name, len(FIRST)),
    )
    places = {file: 4 * at + 3 for at, file in enumerate(waiting)}
    places |= {file: at + at // 3 for at, file in enumerate(working)}
    items[:] = [item for file in sorted(by_file, key=places.__getitem__) for item in by_file[file]]


def pytest_collection_finish() -> None:
    """From here on it looks at what tests make, every 20,000 objects instead of every 700, and never long at once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Find what was never closed, once: pytest then looks five times, each time at all that the tests left behind."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function to its end; True says that nobody else must."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace, as the current folder; a module with files in all of them overrides it by ``filled``."""
    alone(monkeypatch, tmp_path, tmp_path / "work")
    return tmp_path / "work"
