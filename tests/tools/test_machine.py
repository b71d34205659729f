"""What a sandboxed command can do to the machine it runs on, when root starts it and when anybody else does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import soon, until
from tests.tools.conftest import sandbox_at
from tests.tools.test_sandbox import PYTHON, PYTHON_NEEDS
from workbench.tools.sandbox import Level, Sandbox
from workbench.tools.sandbox.limits import DEFAULT_IMAGE
from workbench.tools.sandbox.sandbox import why_not
from workbench.tools.sandbox.scratch import SCRATCH, clear_ownerless

NOBODY = 65534
KERNEL = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
REPOSITORY = Path(__file__).parents[2]
SOURCES = os.pathsep.join((str(REPOSITORY), sysconfig.get_path("purelib")))
"""Ours and those of the packages that we import: the system's Python is one that every user can start, and has none."""

ATTACK = """
import json, os
opened = []
for top in ("/proc/sys", "/proc/irq", "/proc/bus", "/sys", "/proc/sysrq-trigger", "/proc/kcore", "/proc/1/mem"):
    files = [top] if not os.path.isdir(top) else [
        os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
    for file in files:
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))  # Nothing is written.
            opened.append(file)
        except OSError:
            pass
made = []
for folder in ("/", "/usr", "/usr/local/bin", "/etc", "/dev", "/proc", "/sys", "/var/tmp", "/run", "/mnt"):
    try:
        open(os.path.join(folder, "made-by-a-command"), "w").close()
        made.append(folder)
    except OSError:
        pass
shown = []
for folder in ("/proc/irq", "/proc/bus"):
    try:
        shown += os.listdir(folder)
    except OSError:
        pass
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
mounts = [line.split() for line in open("/proc/mounts").read().splitlines()]
print(json.dumps({
    "view": [kind for _, place, kind, *_ in mounts if place == "/workspace"],
    "opened": opened, "made": made, "shown": shown, "rights": status["CapEff"] + status["CapPrm"] + status["CapBnd"],
    "no_new_privs": status["NoNewPrivs"], "groups": status["Groups"].strip(),
}))
"""

DRIVER = """
import asyncio, json, sys
from pathlib import Path
from workbench.tools.sandbox import Sandbox
root, level, program, code = Path(sys.argv[1]), *sys.argv[2:5]
sandbox = Sandbox(root, level=level)
probe = asyncio.run(sandbox.probe())
if probe.level is None:
    print(json.dumps({"none": str(probe)}))
else:
    finished = asyncio.run(sandbox.run([program, "-I", "-S", "-c", code], readable=[Path(p) for p in sys.argv[5:]]))
    print(finished.stdout or json.dumps({"failed": finished.stderr}))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A workspace that every user gets to; pytest's own folders are closed."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        (folder / "mine.txt").write_text("mine")
        (folder / ".env").write_text("SECRET=x")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def attacked(level: Level, root: Path, user: int, code: str = ATTACK) -> dict[str, Any]:
    """What the attack found out, started by a user."""
    if user == os.geteuid():
        finished = asyncio.run(sandbox_at(level, root).run([PYTHON, "-I", "-S", "-c", code], readable=PYTHON_NEEDS))
        return dict(json.loads(finished.stdout or json.dumps({"failed": finished.stderr})))
    python = usable_python(user)
    if python is None:
        pytest.skip("no Python here that another user can start")
    done = subprocess.run(
        [python, "-c", DRIVER, str(root), level, PYTHON, code, *map(str, PYTHON_NEEDS)],
        user=user,
        group=user,
        extra_groups=[],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@cache
def usable_python(user: int) -> str | None:
    return next((python for python in (sys.executable, PYTHON) if usable(python, user)), None)


def usable(python: str, user: int) -> bool:
    """Whether another user can start a Python with our sources."""
    code = "import sys, workbench.tools.sandbox; sys.exit(sys.version_info < (3, 11))"
    try:
        return (
            subprocess.run(
                [python, "-c", code],
                user=user,
                group=user,
                extra_groups=[],
                env={"PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"},
                cwd="/",
                stderr=subprocess.DEVNULL,
                check=False,
            ).returncode
            == 0
        )
    except OSError:
        return False


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
@pytest.mark.parametrize("user", [0, NOBODY])
def test_nothing_of_the_machine_can_be_opened_for_writing(open_folder: Path, level: Level, user: int) -> None:
    if os.geteuid() != 0 and user == 0:
        pytest.skip("this must be started by root")
    user = user if os.geteuid() == 0 else os.geteuid()
    if user != os.geteuid():
        os.chown(open_folder, user, user)
    found = attacked(level, open_folder, user)
    if "none" in found:
        pytest.skip(found["none"])
    assert found.pop("no_new_privs") == "1"
    view = found.pop("view")
    if KERNEL >= (6, 6) and level == "bwrap":  # From there on an overlay can be had whoever starts it.
        assert view == ["overlay"]
    assert set(found.pop("rights")) == {"0"} or (level == "landlock" and user != 0)
    assert found.pop("groups") in ("", "1000", str(user)) or user not in (0, NOBODY)
    assert found == {"opened": [], "made": [], "shown": []}


@pytest.mark.skipif(os.geteuid() != 0, reason="this must be started by root")
@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_started_by_root_a_command_is_a_user_whom_nobody_else_is(open_folder: Path, level: Level) -> None:
    async def owner() -> int:
        task = asyncio.create_task(Sandbox(open_folder, level=level).run(["sleep", "41.25"]))
        found = await soon(lambda: sleeping(b"41.25"), "the command")
        user = found[0].stat().st_uid
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return user

    sandbox_at(level, open_folder)
    assert asyncio.run(owner()) > 65535


def sleeping(seconds: bytes) -> list[Path]:
    """The processes that sleep so long."""
    return [process for process in Path("/proc").glob("[0-9]*") if running(process) == [b"sleep", seconds]]


def running(process: Path) -> list[bytes]:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")[:2]
    except OSError:
        return []


def test_a_level_that_lets_the_machine_be_written_is_refused(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an engine that gives its containers all rights: its stand-in says what such a one would."""
    folder = open_folder / "bin"
    folder.mkdir()
    opened = "case $1 in run) echo /proc/sys/kernel/core_pattern;; *) echo 1;; esac"
    (folder / "docker").write_text(f"#!/bin/bash\n{opened}\n")
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    reason = asyncio.run(why_not("docker", DEFAULT_IMAGE))
    assert reason == "commands could write /proc/sys/kernel/core_pattern of this machine"


LEFT = """
import asyncio, sys
from pathlib import Path
from workbench.tools.builtin.shell import ShellTools
from workbench.tools.sandbox import Sandbox
from workbench.tools.sandbox.scratch import SCRATCH
print(SCRATCH.folder, flush=True)
asyncio.run(ShellTools(Sandbox(Path(sys.argv[1]), level=sys.argv[2])).linux_shell("touch $OUTBOX/x; sleep 43.5"))
"""


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_what_a_killed_process_leaves_is_cleared_by_the_next_and_nothing_else(open_folder: Path, level: Level) -> None:
    sandbox_at(level, open_folder)
    with subprocess.Popen(
        [sys.executable, "-c", LEFT, str(open_folder), level],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        until(lambda: sleeping(b"43.5") or process.poll() is not None, "the command")
        assert process.poll() is None
        groups = Path(folder / "cgroups")
        made = [Path(line) for line in groups.read_text().splitlines()] if groups.exists() else []
        assert folder not in clear_ownerless()  # Its owner lives.
        process.kill()
    mine = SCRATCH.folder
    stranger = Path(tempfile.mkdtemp(prefix="workbench-", dir=folder.parent))
    try:
        assert folder.exists()
        assert [group for group in made if group.exists()] or os.geteuid() != 0
        assert folder in clear_ownerless()
        assert not folder.exists()
        assert [group for group in made if group.exists()] == []
        assert mine.exists()
        assert stranger.exists()
    finally:
        stranger.rmdir()


LOCKED = """
import json, os
found = []
for folder in ("locked", "blind", "deep/blind"):
    try:
        os.chmod(folder, 0o700)
        found.append(open(f"{folder}/.env").read())
    except OSError:
        pass
print(json.dumps({"found": found}))
"""


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_what_cannot_be_looked_through_is_not_shown(open_folder: Path, level: Level) -> None:
    """A folder that its owner has shut can be opened by its owner's command."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    for name, mode in (("locked", 0), ("blind", 0o300), ("deep/blind", 0o100)):
        folder = open_folder / name
        folder.mkdir(parents=True)
        (folder / ".env").write_text("SECRET=x")
        folder.chmod(mode)
    if user != os.geteuid():
        for path in (open_folder, *open_folder.rglob("*")):
            os.chown(path, user, user)
    try:
        found = attacked(level, open_folder, user, LOCKED)
    finally:
        for name in ("locked", "blind", "deep/blind"):
            (open_folder / name).chmod(0o700)
    if "none" in found:
        pytest.skip(found["none"])
    assert found == {"found": []}


MEMORY = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
taken = 0
try:
    for _ in range(4):
        file = os.memfd_create("x")
        for _ in range(800):
            taken += os.write(file, bytes(1 << 20))
except OSError as fault:
    taken += 0 if fault.errno == errno.ENOSYS else 1
segment = libc.shmget(0, 4096, 0o1600)
print(json.dumps({"taken": taken, "segment": segment != -1}))
"""


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_without_a_cgroup_there_is_no_memory_that_belongs_to_no_process(open_folder: Path, level: Level) -> None:
    if os.geteuid() != 0:
        pytest.skip("this must be started by root, for a user who has no cgroup")
    os.chown(open_folder, NOBODY, NOBODY)
    found = attacked(level, open_folder, NOBODY, MEMORY)
    if "none" in found:
        pytest.skip(found["none"])
    assert found == {"taken": 0, "segment": False}
