"""Every wall of the bubblewrap level by the flag that makes it: in the command line, and felt from inside."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.tools.test_sandbox import odd_number, sh, sleepers
from workbench.tools.sandbox import Limits, Sandbox
from workbench.tools.sandbox.bwrap import Job, command

FELT = {
    "--unshare-all": ("readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/ipc /proc/self/ns/uts", None),
    "--hostname": ("uname -n", "sandbox"),
    "--uid": ("id -u", "1000"),
    "--gid": ("id -g", "1000"),
    "--clearenv": ("env | grep -c HOME=/root || true", "0"),
    "--new-session": ("ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat", None),
    "--bind": ("stat -f -c %T /tmp", "tmpfs"),
    "--remount-ro": (
        "grep -E ' (/|/dev|/proc) [a-z0-9]+ r[ow]' /proc/mounts | cut -d' ' -f4 | cut -d, -f1 | sort -u",
        "ro",
    ),
    "--proc": ("ls /proc/1 >/dev/null && echo own", "own"),
    "--dev": ("ls /dev | grep -c -E '^(sda|vda|kmsg|mem)' || true", "0"),
    "--chdir": ("pwd", "/workspace"),
}


def test_every_wall_is_in_the_command_line_and_no_shell_stands_before_it(root: Path) -> None:
    job = Job(["true"], root, root, {"A": "1"}, Limits())
    argv = command(job, "bwrap", root / "stage", [], count_inside=False)
    assert argv[0] == "bwrap"
    assert argv[-1] == "true"
    wanted = ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv")
    for flag in (*wanted, *FELT):
        assert flag in argv, flag
    assert argv[argv.index("--cap-drop") + 1] == "ALL"
    assert argv[argv.index("--ro-bind") + 1] == "/usr"
    read_only = [argv[index + 1] for index, word in enumerate(argv) if word == "--remount-ro"]
    masked = [folder for folder in ("/proc/bus", "/proc/irq") if Path(folder).is_dir()]
    assert read_only == [*masked, "/dev", "/proc", "/"]
    writable = [argv[index + 2] for index, word in enumerate(argv) if word == "--bind"]
    assert writable == ["/tmp", "/dev/shm", "/workspace"]


@pytest.mark.parametrize("flag", FELT)
def test_each_wall_is_felt_from_inside(bwrap: Sandbox, flag: str) -> None:
    script, expected = FELT[flag]
    finished = sh(bwrap, script)
    assert finished.exit_code == 0, finished.stderr
    if expected is not None:
        assert finished.stdout.strip() == expected
        return
    outside = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(finished.stdout.split()).isdisjoint(outside.split())


PARENT = """
import asyncio, sys
from pathlib import Path
from workbench.tools.sandbox import Sandbox
sandbox = Sandbox(Path(sys.argv[1]), level=sys.argv[2])
asyncio.run(sandbox.run(["sh", "-c", f"sleep {sys.argv[3]} & setsid sleep {sys.argv[3]}"]))
"""


@pytest.mark.fault("F32")
@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_nothing_survives_a_killed_parent(
    request: pytest.FixtureRequest, root: Path, tmp_path: Path, level: str
) -> None:
    request.getfixturevalue(level)
    mark = odd_number(tmp_path)
    with subprocess.Popen([sys.executable, "-c", PARENT, str(root), level, mark]) as parent:
        until(lambda: len(sleepers(mark)) == 2 or parent.poll() is not None, "the two commands")
        assert parent.poll() is None
        parent.send_signal(signal.SIGKILL)
    until(lambda: not sleepers(mark), "the end of both")
