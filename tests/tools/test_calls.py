"""What no wall of the sandbox would stop: files that run as their owner, keyrings, the terminal, root's rights."""

from __future__ import annotations

import asyncio
import os
import platform
import shlex
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from workbench.tools.sandbox import FinishedCommand, Sandbox, bwrap, calls

NO = "[Errno 1] Operation not permitted"


def python(sandbox: Sandbox, *statements: str) -> FinishedCommand:
    """Run statements, and print what each one that fails raised."""
    (sandbox.workspace / "folder" / "inner").mkdir(parents=True)
    script = "import ctypes, fcntl, os\nos.chdir('folder')\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    script += "open('f', 'w').close()\n"
    for statement in statements:
        script += f"try:\n    {statement}\n    print('done')\nexcept OSError as fault:\n    print(str(fault)[:33])\n"
    return asyncio.run(sandbox.run(["/bin/sh", "-c", f"python3 -c {shlex.quote(script)}"], timeout_s=PATIENCE))


@pytest.fixture(params=["bwrap", "landlock"])
def walled(request: pytest.FixtureRequest) -> Sandbox:
    sandbox: Sandbox = request.getfixturevalue(request.param)
    return sandbox


def test_a_command_leaves_no_file_that_runs_as_its_owner(walled: Sandbox) -> None:
    ended = python(
        walled,
        "os.chmod('f', 0o4755)",
        "os.fchmod(os.open('f', os.O_RDONLY), 0o4755)",
        "os.open('g', os.O_CREAT | os.O_WRONLY, 0o4755)",
        "os.mknod('h', 0o104755)",
        "os.chmod('f', 0o755)",
        "os.open('i', os.O_CREAT | os.O_WRONLY, 0o755)",
        "os.open('f', os.O_RDONLY, 0o4755)",
        "os.chmod('inner', 0o2755)",
    )
    assert ended.stdout.splitlines() == [*[NO] * 4, *["done"] * 4], ended.stderr
    assert not [path for path in walled.workspace.rglob("*") if path.stat().st_mode & 0o4000]


def test_keyrings_and_the_input_of_a_terminal_are_out_of_reach(walled: Sandbox) -> None:
    keyctl = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    ended = python(
        walled,
        f"assert libc.syscall({keyctl}, 0, -3, 1) == -1; raise OSError(ctypes.get_errno(), 'Operation not permitted')",
        "fcntl.ioctl(0, 0x5412, b'x')",
        "fcntl.ioctl(0, 0x541C, b'x')",
    )
    assert ended.stdout.splitlines() == [NO] * 3, ended.stderr


def test_the_first_process_of_a_sandbox_cannot_be_held_up(request: pytest.FixtureRequest) -> None:
    attach = "libc.ptrace(16, {}, None, None) == 0 or (_ for _ in ()).throw(OSError(ctypes.get_errno(), 'Not allowed'))"
    child = "pid = os.fork() or (libc.pause(), os._exit(0))"
    ended = python(request.getfixturevalue("bwrap"), attach.format(1), child, attach.format("pid"), "os.kill(pid, 9)")
    assert ended.stdout.splitlines() == ["[Errno 1] Not allowed", "done", "done", "done"], ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to lose")
def test_root_has_no_rights_inside_either(walled: Sandbox) -> None:
    ended = python(walled, "libc.prctl(24, 0) and None; print(sum(libc.prctl(23, right) == 1 for right in range(41)))")
    assert ended.stdout.splitlines()[0] == "0", ended.stderr


def test_a_machine_whose_calls_are_not_known_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(calls.program()) < 4096
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert calls.program() == []


def test_a_bubblewrap_that_needs_roots_rights_is_started_without_the_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    program.chmod(0o755)
    assert not bwrap.gains_rights()
    program.chmod(0o4755)
    assert bwrap.gains_rights()
