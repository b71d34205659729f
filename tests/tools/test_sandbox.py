"""The sandbox with real processes: what a command cannot see, cannot reach, and cannot leave behind."""

from __future__ import annotations

import asyncio
import os
import platform
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.waiting import soon
from tests.tools.conftest import sandbox_at
from workbench.tools.sandbox import FinishedCommand, Level, Limits, Sandbox, SandboxUnavailable
from workbench.tools.sandbox.merging import makes_repository
from workbench.tools.sandbox.scratch import SCRATCH

TIGHT = Limits(processes=24, cpu_s=5)
WALLED: tuple[Level, ...] = ("bwrap", "landlock")
PYTHON = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists()), "")
PYTHON_NEEDS: tuple[Path, ...] = ()
if not PYTHON:
    PYTHON_NEEDS = (Path(sys.base_prefix).resolve(),)
    PYTHON = str(PYTHON_NEEDS[0] / "bin" / "python3")
"""A Python that every user has, else this one."""


def sh(sandbox: Sandbox, script: str, arguments: Sequence[str] = (), **rest: Any) -> FinishedCommand:
    return asyncio.run(sandbox.run(["sh", "-c", script, "sh", *arguments], **rest))


def python(sandbox: Sandbox, code: str, **rest: Any) -> FinishedCommand:
    return asyncio.run(sandbox.run([PYTHON, "-I", "-c", code], readable=PYTHON_NEEDS, **rest))


@pytest.fixture(params=WALLED)
def walled(request: pytest.FixtureRequest, root: Path) -> Sandbox:
    """A sandbox at each level that has walls."""
    return sandbox_at(request.param, root)


@pytest.fixture(params=[*WALLED, "none"])
def any_level(request: pytest.FixtureRequest, root: Path) -> Sandbox:
    return sandbox_at(request.param, root)


# What a command gets.


def test_a_command_sees_its_workspace_and_its_outcome_comes_back(any_level: Sandbox) -> None:
    finished = sh(any_level, "cat notes.txt; echo oops >&2; exit 7")
    assert (finished.exit_code, finished.stdout, finished.stderr) == (7, "one\ntwo\nthree\n", "oops\n")
    assert not finished.ok
    assert not finished.timed_out


def test_standard_input_and_the_folder_are_given(any_level: Sandbox, root: Path) -> None:
    finished = sh(any_level, "cat; ls", stdin=b"hello\n", cwd=root / "data")
    assert finished.stdout.splitlines() == ["hello", "orders.csv"]


def test_files_made_in_the_workspace_stay_and_belong_to_the_user(any_level: Sandbox, root: Path) -> None:
    assert sh(any_level, "echo made > data/new.txt").ok
    assert (root / "data" / "new.txt").read_text() == "made\n"
    assert (root / "data" / "new.txt").stat().st_uid == os.getuid()


def test_the_environment_holds_only_what_was_given(any_level: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "sk-secret")
    finished = sh(any_level, "env", env={"CITY": "Ulm"})
    names = {line.partition("=")[0] for line in finished.stdout.splitlines()}
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == {
        *("CITY", "PATH", "HOME", "TMPDIR", "LANG", "TZ", "PYTHONDONTWRITEBYTECODE"),
        "GIT_CONFIG_NOSYSTEM",
    }


def test_images_leave_through_the_outbox(any_level: Sandbox, tmp_path: Path) -> None:
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    assert sh(any_level, 'echo x > "$OUTBOX/plot"', outbox=outbox).ok
    assert (outbox / "plot").read_text() == "x\n"


def test_a_signal_is_its_number_above_128(any_level: Sandbox) -> None:
    assert sh(any_level, "kill -SEGV $$").exit_code == 128 + 11


def test_a_program_that_is_not_there_says_so(any_level: Sandbox) -> None:
    finished = asyncio.run(any_level.run(["no-such-program"]))
    assert finished.exit_code != 0
    assert "no-such-program" in finished.stderr


# What it cannot see.


def test_homes_the_password_file_and_secrets_are_out_of_sight(walled: Sandbox, root: Path) -> None:
    (root.parent / "outside.txt").write_text("outside")
    (root / "link").symlink_to(root.parent / "outside.txt")
    (root / "data" / ".env.local").write_text("TOKEN=x")
    paths = ["/etc/passwd", "/etc/shadow", str(Path.home() / ".bashrc"), str(root.parent / "outside.txt"), "link"]
    paths += [".env", "data/.env.local", ".workbench/owner.lock", "../outside.txt", f"/proc/{os.getpid()}/environ"]
    finished = sh(walled, 'for path in "$@"; do cat "$path"; done', arguments=paths)
    assert finished.stdout == ""
    assert len(finished.stderr.splitlines()) == len(paths)


def test_a_link_made_inside_leads_nowhere_for_the_file_tools(bwrap: Sandbox, root: Path) -> None:
    from workbench.tools.builtin.files import FileTools
    from workbench.tools.paths import PathRefused, Workspace

    assert sh(bwrap, "ln -s /etc/passwd data/words.txt").ok
    with pytest.raises(PathRefused, match="outside the workspace"):
        FileTools(Workspace.of(root)).read_file("data/words.txt")


def test_more_hidden_paths_can_be_named(root: Path) -> None:
    (root / "runs").mkdir()
    (root / "runs" / "journal").write_text("private")
    hiding = Sandbox(root, level=sandbox_at("bwrap", root).ladder[0], also_hidden=[root / "runs"])
    assert sh(hiding, "cat runs/journal; ls runs").stdout == ""


@contextmanager
def listening() -> Iterator[int]:
    """A port of this machine that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_there_is_no_network_not_even_to_this_machine(walled: Sandbox) -> None:
    with listening() as port:
        finished = python(walled, f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
    assert finished.exit_code == 1
    assert "Error" in finished.stderr


def test_bwrap_has_no_udp_and_no_abstract_sockets_either(bwrap: Sandbox) -> None:
    name = f"\0workbench-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        assert "ConnectionRefusedError" in python(bwrap, code).stderr
    code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))"
    assert "Network is unreachable" in python(bwrap, code).stderr


def test_other_processes_cannot_be_seen_or_signalled(bwrap: Sandbox) -> None:
    finished = sh(bwrap, f"ls /proc | grep -c '^[0-9]'; kill -0 {os.getpid()}; echo $?; kill -9 -1; echo alive")
    processes, kill, *_ = finished.stdout.splitlines()
    assert int(processes) < 10
    assert kill == "1"


def test_landlock_does_not_let_a_command_signal_us(landlock: Sandbox) -> None:
    finished = sh(landlock, f"kill -0 {os.getpid()}; echo $?")
    assert finished.stdout == "1\n"


def test_no_namespace_can_be_made(walled: Sandbox) -> None:
    assert sh(walled, "unshare -Ur true").exit_code != 0


def test_no_right_can_be_had(bwrap: Sandbox) -> None:
    status = sh(bwrap, "grep Cap /proc/self/status; id -u").stdout.split()
    assert set(status[1:-1:2]) == {"0" * 16}
    assert status[-1] == "1000"


# What it cannot change.


def test_the_system_is_read_only_and_the_temporary_folder_is_bounded(bwrap: Sandbox) -> None:
    assert "Read-only" in sh(bwrap, "touch /usr/bin/x").stderr
    small = replace(Limits(), disk_bytes=1 << 20)
    finished = sh(bwrap, "head -c 5000000 /dev/zero > /tmp/big; wc -c < /tmp/big", limits=small)
    assert int(finished.stdout) == 1 << 20


def test_outside_the_workspace_nothing_can_be_written(walled: Sandbox, tmp_path: Path) -> None:
    sh(walled, f"echo x > '{tmp_path}/escaped'; echo x > /var/tmp/escaped-$$; echo x > ../escaped")
    assert not (tmp_path / "escaped").exists()


def test_a_workspace_can_be_given_read_only(walled: Sandbox, root: Path) -> None:
    assert sh(walled, "echo x > data/new.txt", writable=False).exit_code != 0
    assert not (root / "data" / "new.txt").exists()


def test_what_makes_git_and_editors_run_things_cannot_be_changed(walled: Sandbox, root: Path) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n")
    (root / ".vscode").mkdir()
    (root / ".vscode" / "tasks.json").write_text("{}")
    (root / ".envrc").write_text("export A=1\n")
    script = """
        echo evil > .git/hooks/post-checkout; echo evil >> .git/config; echo evil > .vscode/tasks.json
        echo evil > .envrc; rm -rf .git .vscode; mv .git moved; mv .vscode moved
        mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/pre-commit; echo ../elsewhere > sub/.git/commondir
        mkdir -p bare/objects bare/refs; echo evil > bare/config; echo x > bare/HEAD; echo fine > data/ok.txt
    """
    finished = sh(walled, script)
    assert (root / ".envrc").read_text() == "export A=1\n"
    assert (root / ".git" / "config").read_text() == "[core]\n"
    assert list((root / ".git" / "hooks").iterdir()) == []
    assert (root / ".vscode" / "tasks.json").read_text() == "{}"
    assert not [path for path in root.rglob("*") if path.is_file() and "evil" in path.read_text() and runs(path)]
    assert (root / "data" / "ok.txt").read_text() == "fine\n"
    told = " ".join(finished.notes)
    assert "sub/.git/hooks may not be made by a tool, it is kept from tools" in told
    assert "sub/.git/commondir may not be made by a tool, it can make git run programs" in told
    assert not (root / "sub" / ".git").exists(), "an empty one would stand for a repository that is none"


def runs(path: Path) -> bool:
    """Whether git or an editor would take something to run from a file."""
    beside = {entry.name for entry in path.parent.iterdir()}
    return ".git" in path.parts or ".vscode" in path.parts or {"HEAD", "config", "objects", "refs"} <= beside


def test_a_protected_file_that_is_written_is_put_beside_and_named(walled: Sandbox, root: Path) -> None:
    (root / ".npmrc").write_text("one")
    (root / ".yarnrc").write_text("one")
    script = """mkdir .vscode; echo evil > .vscode/tasks.json; echo evil > data/.envrc; echo two > .npmrc
        rm .yarnrc; touch .yarnrc; rm .yarnrc"""
    finished = sh(walled, script)
    why = "it can make other programs run something: what the command wrote is in"
    assert finished.notes == (
        f".npmrc may not be changed by a tool, {why} .npmrc.from-sandbox-1",
        f".vscode may not be made by a tool, {why} .vscode.from-sandbox-1",
        ".yarnrc may not be removed by a tool: it is still there",
        f"data/.envrc may not be made by a tool, {why} .envrc.from-sandbox-1",
    )
    assert not (root / ".vscode").exists()
    assert (root / ".npmrc").read_text() == "one"
    assert (root / ".vscode.from-sandbox-1" / "tasks.json").exists()


def test_hooks_and_programs_that_settings_of_git_name_are_not_changed(walled: Sandbox, root: Path) -> None:
    settings = {
        root: ("core.hooksPath .githooks", "include.path ../shared.inc", "filter.n.clean 'sh tools/clean.sh %f'"),
        root / "sub": ("core.hooksPath not/yet",),
    }
    for folder, lines in settings.items():
        subprocess.run(["git", "init", "-q", folder], check=True)
        for line in lines:
            subprocess.run(["git", "-C", folder, "config", *shlex.split(line)], check=True)
    (root / "tools").mkdir()
    for name in ("shared.inc", "tools/clean.sh", "tools/other.sh"):
        (root / name).write_text("")
    evil = (".githooks/pre-commit", "shared.inc", "tools/clean.sh", "sub/not/yet/post-merge", "tools/other.sh")
    script = "for name in $@; do mkdir -p $(dirname $name); echo evil > $name; done; mv tools moved; mkdir tools"
    finished = sh(walled, f"{script}; cp moved/* tools; rm -r sub/not; ln -s ../data sub/not", arguments=evil)
    assert [name for name in evil if (root / name).exists() and "evil" in (root / name).read_text()] == [
        "tools/other.sh"
    ]
    assert not (root / "sub" / "not").is_symlink()
    assert ".githooks may not be made by a tool, it can make other programs run something" in " ".join(finished.notes)


def test_what_was_made_changed_moved_and_removed_is_so_afterwards(walled: Sandbox, root: Path) -> None:
    (root / "old" / "deep").mkdir(parents=True)
    (root / "old" / "deep" / "file").write_text("x")
    (root / "old" / ".env").write_text("TOKEN=x")
    (root / "again").mkdir()
    (root / "again" / "before").write_text("x")
    (root / "tool.sh").write_text("echo")
    script = """
        mv notes.txt renamed.txt; rm -rf old; rm -r again; mkdir again; echo new > again/after; ln -s data to-data
        chmod 755 tool.sh; echo more >> data/orders.csv; mkdir -p new/folder; rm -r data/gone 2>/dev/null; mkfifo pipe
    """
    finished = sh(walled, script)
    assert finished.notes == ("pipe was left out: it is neither a file nor a folder nor a link",)
    assert (root / "renamed.txt").read_text() == "one\ntwo\nthree\n"
    assert not (root / "notes.txt").exists()
    assert sorted(path.name for path in (root / "old").rglob("*")) == [".env"]
    assert [path.name for path in (root / "again").iterdir()] == ["after"]
    assert (root / "to-data").readlink() == Path("data")
    assert stat.S_IMODE((root / "tool.sh").stat().st_mode) == 0o755
    assert (root / "data" / "orders.csv").read_text().endswith("2,32\nmore\n")
    assert (root / "new" / "folder").is_dir()
    assert sh(walled, "cat renamed.txt again/after; ls").stdout.endswith("to-data\ntool.sh\n")


def test_a_link_that_is_put_in_the_way_leads_nowhere(walled: Sandbox, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "orders.csv").write_text("untouched")
    assert sh(walled, f"rm -r data; ln -s '{tmp_path}/outside' data; echo x > notes.txt").ok
    assert (root / "data").readlink() == tmp_path / "outside"
    assert sh(walled, "rm data; mkdir data; echo mine > data/orders.csv").ok
    assert (tmp_path / "outside" / "orders.csv").read_text() == "untouched"
    assert (root / "data" / "orders.csv").read_text() == "mine\n"


GADGET = "printf '[core]\\n repositoryformatversion = 0\\n fsmonitor = evil\\n pager = evil\\n' > config"


@pytest.mark.parametrize(
    "script",
    [
        # Settings of a repository whose folder is put aside as a whole.
        f"mkdir -p .vscode/p/.git; cd .vscode/p/.git; mkdir objects refs; echo ref: refs/heads/x > HEAD; {GADGET}",
        f"mkdir -p p/.VSCode/.git; cd p/.VSCode/.git; mkdir objects refs; echo ref: refs/heads/x > HEAD; {GADGET}",
        # A repository in two parts: the one names the other.
        f"mkdir -p p c/objects c/refs; echo ref: refs/heads/x > p/HEAD; echo ../c > p/commondir; cd c; {GADGET}",
        f"mkdir -p p c/objects c/refs; echo ../c > p/commondir; echo ref: refs/heads/x > p/HEAD; cd c; {GADGET}",
    ],
)
def test_no_folder_becomes_a_repository_with_settings_of_a_command(walled: Sandbox, root: Path, script: str) -> None:
    finished = sh(walled, script)
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(root)}
    git = shutil.which("git")
    assert git is not None
    for place in (path for path in root.rglob("*") if path.is_dir() and ".git" not in path.parts):
        asked = [git, "config", "core.pager"]
        assert subprocess.run(asked, cwd=place, env=env, capture_output=True, check=False).stdout == b"", place
    assert any("by a tool" in note for note in finished.notes), finished


class _Unread(set[str]):
    """Names that nobody should go through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("read")


def test_a_name_that_no_repository_has_is_judged_without_those_beside_it() -> None:
    assert not makes_repository("file-100000", _Unread())
    assert makes_repository("HEAD", {"objects", "refs", "Config"})


def test_git_works_in_a_command(walled: Sandbox, root: Path) -> None:
    git = "git -c user.name=a -c user.email=b@b"
    made = sh(walled, f"git init -q . && git add -A && {git} commit -qm one && git gc -q && git log --format=%s")
    assert (made.stdout, made.exit_code) == ("one\n", 0), made.stderr
    again = sh(walled, f"echo x >> notes.txt && {git} commit -qam two && git log --format=%s && git status --short")
    assert (again.stdout, again.notes) == ("two\none\n", ()), again.stderr


def test_git_is_given_no_link_to_write_through(walled: Sandbox, root: Path, tmp_path: Path) -> None:
    (root / ".git" / "logs").mkdir(parents=True)
    (root / ".git" / "COMMIT_EDITMSG").write_text("first")
    victim = tmp_path / ".bashrc"
    victim.write_text("mine")
    names = (".git/COMMIT_EDITMSG", ".git/logs/HEAD", ".git/refs", ".git/index", "new/.git/packed-refs")
    finished = sh(walled, f"mkdir -p new/.git; for n in {' '.join(names)}; do ln -sf {victim} $n; done; ls -l .git")
    assert not [path for path in root.rglob("*") if path.is_symlink()]
    assert (root / ".git" / "COMMIT_EDITMSG").read_text() == "first"
    told = [note.partition(" may not")[0] for note in finished.notes if "git would write elsewhere" in note]
    assert sorted(told) == sorted(names)


@pytest.mark.parametrize("name", [".hg/hgrc", ".jj/repo/config.toml", ".claude/settings.json", ".devcontainer.json"])
def test_other_tools_are_given_nothing_to_run_either(walled: Sandbox, root: Path, name: str) -> None:
    finished = sh(walled, f"mkdir -p $(dirname {name}); echo evil > {name}")
    assert not (root / name).exists()
    assert "can make other programs run something" in finished.notes[0]


def test_a_secret_is_hidden_where_no_path_is_long_enough_for_it(walled: Sandbox, root: Path) -> None:
    at = os.open(root, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=at)
        at, outer = os.open("d" * 200, os.O_RDONLY, dir_fd=at), at
        os.close(outer)
    os.close(os.open(".env", os.O_CREAT, dir_fd=at))
    os.close(at)
    finished = sh(walled, "i=0; while cd ddd*; do i=$((i+1)); done 2>/dev/null; ls -A; [ $i -gt 10 ] && echo far")
    assert finished.stdout.split() == ["far"]
    assert sh(walled, "echo made > new").ok
    assert (root / "new").exists()


def test_what_a_command_puts_where_it_saw_nothing_does_not_replace_what_is_there(walled: Sandbox, root: Path) -> None:
    (root / "twin.txt").hardlink_to(root / ".env")
    finished = sh(walled, "echo x > twin.txt; ls -A")
    assert (root / "twin.txt").samefile(root / ".env")
    assert (root / ".env").read_text() == "API_KEY=sk-secret\n"
    assert finished.notes == (
        "twin.txt may not be changed by a tool, it is kept from tools: what the command wrote was left out",
    )


def test_names_in_notes_are_on_one_line_and_plain_text(walled: Sandbox) -> None:
    finished = sh(walled, r"""mkfifo "$(printf 'a]\n[you may\033[2J\377')" """)
    assert len(finished.notes) == 1
    assert finished.notes[0].startswith("a]\u240a[you may\u241b[2J\ufffd was left out")
    finished.notes[0].encode()


def test_permissions_of_a_file_outside_stay_what_they_are(walled: Sandbox, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    outside.chmod(0o600)
    (root / "inside").hardlink_to(outside)
    sh(walled, "chmod 777 inside")
    assert stat.S_IMODE(outside.stat().st_mode) == 0o600
    assert stat.S_IMODE((root / "inside").stat().st_mode) == 0o777


def test_folders_that_a_command_leaves_alone_keep_their_permissions(walled: Sandbox, root: Path) -> None:
    (root / "shut").mkdir(mode=0o555)
    (root / "data").chmod(0o555)
    sh(walled, "chmod 750 data; echo x > new.txt")
    assert stat.S_IMODE((root / "shut").stat().st_mode) == 0o555
    assert stat.S_IMODE((root / "data").stat().st_mode) == 0o750


def test_commands_at_once_keep_what_each_puts_into_the_same_new_folder(walled: Sandbox, root: Path) -> None:
    async def all_of_them() -> list[FinishedCommand]:
        scripts = [f"mkdir -p out; for i in 1 2 3 4 5 6 7 8 9; do echo > out/{n}-$i; done" for n in range(5)]
        return await asyncio.gather(*(walled.run(["sh", "-c", script]) for script in scripts))

    assert [finished.notes for finished in asyncio.run(all_of_them())] == [()] * 5
    assert len(list((root / "out").iterdir())) == 45


def test_sockets_that_reach_past_the_network_of_a_command_cannot_be_made(walled: Sandbox) -> None:
    families = {"AF_VSOCK": 40, "AF_ALG": 38, "AF_PACKET": 17, "AF_BLUETOOTH": 31, "AF_TIPC": 30}
    tries = "".join(
        f"try:\n    socket.socket({number}, {kind}); print('{name}')\nexcept OSError as no: assert no.errno == 97\n"
        for name, number in families.items()
        for kind in (1, 5)
    )
    finished = python(walled, f"import socket\n{tries}socket.socketpair(); socket.socket(socket.AF_INET6)")
    assert (finished.stdout, finished.stderr) == ("", "")


def test_landlock_leaves_no_way_to_other_programs_of_the_user(landlock: Sandbox, tmp_path: Path) -> None:
    place = tmp_path / "user.sock"
    with listening() as port, socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX, 2) as datagrams:
        server.bind(str(place))
        server.listen()
        datagrams.bind(f"{place}.dgram")
        datagrams.setblocking(False)
        for path in (place, Path(f"{place}.dgram")):
            path.chmod(0o777)
        finished = python(
            landlock,
            f"""
import os, resource, socket, threading
def tried(name, what):
    try: what(); print(name)
    except OSError: pass
tried('socket', lambda: socket.socket(socket.AF_UNIX).connect({str(place)!r}))
tried('datagram', lambda: socket.socketpair(socket.AF_UNIX, 2)[0].sendto(b'x', {f"{place}.dgram"!r}))
tried('multipath', lambda: socket.socket(socket.AF_INET, 1, 262).connect(('127.0.0.1', {port})))
tried('udp', lambda: socket.socket(socket.AF_INET, 2).sendto(b'x', ('127.0.0.1', {port})))
tried('netlink', lambda: socket.socket(16, 3))
tried('limits', lambda: resource.prlimit({os.getpid()}, resource.RLIMIT_CORE, (0, 0)))
tried('priority', lambda: os.setpriority(os.PRIO_PROCESS, {os.getpid()}, 0))
tried('all priorities', lambda: os.setpriority(os.PRIO_USER, 0, 0))
tried('processors', lambda: os.sched_setaffinity({os.getpid()}, range(os.cpu_count())))
tried('scheduling', lambda: os.sched_setscheduler({os.getpid()}, os.SCHED_BATCH, os.sched_param(0)))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); resource.prlimit(os.getpid(), resource.RLIMIT_CORE)
os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + 1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
one, other = socket.socketpair(); one.send(b'still ') ; print(other.recv(9).decode() + 'here')
begun = threading.Thread(target=lambda: print('thread')); begun.start(); begun.join()
""",
        )
        assert (finished.stdout, finished.stderr) == ("still here\nthread\n", "")
        with pytest.raises(BlockingIOError):
            datagrams.recv(9)


def test_landlock_leaves_nothing_of_a_command_in_the_memory_that_programs_share(landlock: Sandbox) -> None:
    calls = {"x86_64": (29, 64, 68, 240), "aarch64": (194, 190, 186, 180)}[platform.machine()]
    finished = python(
        landlock,
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"for number in {calls}: print(libc.syscall(number, 0, 4096, 0o1600), ctypes.get_errno())",
    )
    assert finished.stdout.splitlines() == ["-1 38"] * 4, finished.stderr


def test_after_a_flood_of_folders_nothing_hidden_is_seen_and_no_hook_is_written(walled: Sandbox, root: Path) -> None:
    deep = root / "a/b/c/d/e/f/g/h/i/j"
    deep.mkdir(parents=True)
    (deep / ".env").write_text("SECRET=deep")
    (root / "node_modules" / "x").mkdir(parents=True)
    (root / "node_modules" / "x" / ".env").write_text("SECRET=module")
    (root / "zz" / ".git" / "hooks").mkdir(parents=True)
    (root / "zz" / ".git" / "config").write_text("url = https://SECRET@host")
    (root / "innocent.txt").hardlink_to(deep / ".env")
    (root / "zz" / "notes").hardlink_to(root / "zz" / ".git" / "config")
    for number in range(3_000):
        (root / f"flood{number % 100}").mkdir(exist_ok=True)
        (root / f"flood{number % 100}" / str(number)).mkdir()
    script = """grep -r SECRET .; cat innocent.txt zz/notes; mkdir -p zz/.git/hooks
        echo evil > zz/.git/hooks/pre-commit; echo x > flood7/7/.env"""
    finished = sh(walled, script)
    assert finished.stdout == ""
    assert list((root / "zz" / ".git" / "hooks").iterdir()) == []
    assert not (root / "flood7" / "7" / ".env").exists()
    assert [note.partition(" may not")[0] for note in finished.notes] == ["flood7/7/.env", "zz/.git/hooks"]


# What it cannot leave behind, use up, or outlast.


def sleepers(seconds: str) -> list[int]:
    """Processes that sleep for this odd number of seconds."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def odd_number(tmp_path: Path) -> str:
    return f"4{abs(hash(tmp_path)) % 10**6 + 10**6}"


@pytest.mark.fault("F32")
def test_background_processes_end_with_their_command(any_level: Sandbox, tmp_path: Path) -> None:
    mark = odd_number(tmp_path)
    script = f"sleep {mark} & (setsid sleep {mark} &) ; nohup setsid sleep {mark} >/dev/null 2>&1 & echo started"
    finished = sh(any_level, script, timeout_s=10)
    assert finished.stdout == "started\n"
    assert sleepers(mark) == []


@pytest.mark.fault("F32")
def test_a_command_that_ignores_the_polite_signal_ends_in_time(any_level: Sandbox, tmp_path: Path) -> None:
    mark = odd_number(tmp_path)
    started = time.monotonic()
    finished = sh(any_level, f"trap '' TERM INT HUP; echo on; sleep {mark} & wait; sleep {mark}", timeout_s=2)
    assert time.monotonic() - started < 30
    assert (finished.timed_out, finished.exit_code, finished.stdout) == (True, 124, "on\n")
    assert sleepers(mark) == []


async def test_a_cancelled_command_ends_too(any_level: Sandbox, tmp_path: Path) -> None:
    mark = odd_number(tmp_path)

    task = asyncio.create_task(any_level.run(["sh", "-c", f"exec sleep {mark}"]))
    await soon(lambda: sleepers(mark), "the command")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sleepers(mark) == []


@pytest.mark.fault("F32")
def test_a_flood_is_stopped_at_the_limit_with_head_and_tail(any_level: Sandbox) -> None:
    script = "echo first; yes | head -c 100000000; echo last"
    started = time.monotonic()
    finished = sh(any_level, script)
    assert time.monotonic() - started < 30
    assert finished.truncated
    assert finished.stdout.startswith("first\ny\n")
    assert finished.stdout.endswith("y\n") or finished.stdout.endswith("y")
    assert "bytes left out …]" in finished.stdout
    assert len(finished.stdout) < Limits().output_bytes + 100


@pytest.mark.proof
@pytest.mark.fault("F32")
def test_a_fork_bomb_stays_small_and_is_gone_afterwards(walled: Sandbox, tmp_path: Path) -> None:
    mark = odd_number(tmp_path)
    count = f"i=0; while [ $i -lt 200 ]; do sleep {mark} & i=$((i+1)); done; wait"
    assert "Cannot fork" in sh(walled, count, limits=TIGHT, timeout_s=5).stderr
    bomb = sh(walled, f"f() {{ f | f & }}; f; sleep {mark}", limits=TIGHT, timeout_s=0.5)
    assert not bomb.ok
    assert sleepers(mark) == []


def test_memory_file_size_and_processor_time_have_limits(any_level: Sandbox, root: Path) -> None:
    small = Limits(memory_bytes=400 << 20, file_bytes=1 << 20, cpu_s=7)
    assert "MemoryError" in python(any_level, "bytearray(1 << 30)", limits=small).stderr
    assert sh(any_level, "ulimit -t; head -c 5000000 /dev/zero > data/big", limits=small).stdout == "7\n"
    assert (root / "data" / "big").stat().st_size <= 1 << 20


@pytest.mark.proof
def test_a_command_ends_when_its_processor_time_is_used_up(bwrap: Sandbox) -> None:
    finished = sh(bwrap, "while :; do :; done", limits=Limits(cpu_s=1), timeout_s=20)
    assert not finished.timed_out
    assert finished.exit_code >= 128


def test_no_cgroup_and_no_temporary_folder_is_left(any_level: Sandbox) -> None:
    def left() -> list[Path]:
        cgroups = Path("/sys/fs/cgroup")
        ours = f"workbench-{os.getpid()}-*"
        return [*cgroups.glob(ours), *cgroups.glob(f"**/{ours}"), *SCRATCH.folder.glob("[!c]*-*")]

    assert sh(any_level, ":").ok
    assert left() == []


def greedy(script: str) -> str:
    """Four processes at once that each do the same, with their number as ``$1``."""
    return f"for n in 1 2 3 4; do sh -c '{script}' sh $n & done; wait"


@pytest.mark.parametrize(
    "any_level", ["bwrap", "none", pytest.param("landlock", marks=pytest.mark.proof)], indirect=True
)
def test_memory_is_limited_for_all_processes_together(any_level: Sandbox) -> None:
    program = "import time; held = bytearray(40 << 20); print(1, flush=True); time.sleep(1)"
    script = greedy(f'{shlex.quote(PYTHON)} -I -S -c "{program}"')
    limits = Limits(memory_bytes=120 << 20)
    finished = sh(any_level, script, limits=limits, readable=PYTHON_NEEDS)
    assert "used more than 120 MB of memory" in " ".join((finished.stderr, *finished.notes))
    assert sh(any_level, script, limits=Limits(memory_bytes=2 << 30), readable=PYTHON_NEEDS).stdout.count("1") == 4


def test_what_sockets_hold_counts_as_memory(walled: Sandbox) -> None:
    code = f"""
import os, socket, time
for _ in range({TIGHT.processes} - 4):
    if os.fork() == 0:
        pairs, held = [], 0
        try:
            while True:
                pair = socket.socketpair()
                pairs.append(pair)
                for one in pair:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
                    one.setblocking(False)
                    try:
                        while True: held += one.send(bytes(100_000))
                    except BlockingIOError: pass
        except OSError: print(held, flush=True)
        time.sleep(20)
        os._exit(0)
time.sleep(20)
print('all there')
"""
    finished = python(walled, code, limits=replace(TIGHT, memory_bytes=256 << 20), timeout_s=60)
    assert "more than 256 MB" in finished.stderr + "".join(finished.notes), finished.stdout


def test_the_disk_is_limited_for_all_places_and_processes_together(walled: Sandbox, root: Path) -> None:
    limits = Limits(disk_bytes=40 << 20)
    script = greedy(
        'for place in . "$TMPDIR" /dev/shm /; do head -c 8000000 /dev/zero > $place/big$1 2>/dev/null; done; sleep 1'
    )
    finished = sh(walled, script + "; du -cb big* $TMPDIR/big* | tail -1; ls / | grep big", limits=limits)
    written = sum(path.stat().st_size for path in root.glob("big*"))
    assert written <= 40 << 20
    assert "big" not in finished.stdout.partition("total")[2]
    said = " ".join((finished.stderr, *finished.notes))
    assert int(finished.stdout.split()[0]) <= 40 << 20 if finished.stdout else "all that it wrote together" in said


def test_no_file_is_larger_than_all_that_may_be_written(landlock: Sandbox, root: Path) -> None:
    """Between two looks at what is written a fast command is ahead of the limit; one file never is."""
    finished = sh(landlock, "head -c 20000000 /dev/zero > big; echo $?", limits=Limits(disk_bytes=8 << 20))
    assert (finished.stdout, (root / "big").stat().st_size) == (f"{128 + signal.SIGXFSZ}\n", 8 << 20)


def test_files_without_a_name_count_for_the_disk(walled: Sandbox) -> None:
    one = "exec {n}> $TMPDIR/held; rm $TMPDIR/held; head -c 15000000 /dev/zero >&{n} && "
    holds = one.format(n=3) + one.format(n=4) + "sleep 20"
    finished = sh(walled, holds, limits=Limits(disk_bytes=20 << 20))
    assert "No space left" in finished.stderr or "all that it wrote together" in finished.stderr


def test_a_file_with_holes_does_not_fill_the_disk(walled: Sandbox, root: Path) -> None:
    finished = sh(walled, "for n in 1 2 3; do truncate -s 30M hole$n; done", limits=Limits(disk_bytes=64 << 20))
    assert [path.name for path in sorted(root.glob("hole*"))] == ["hole1", "hole2"]
    assert finished.notes == ("hole3 was left out: the command wrote more than the disk limit",)


def test_workspace_and_outbox_share_what_a_command_may_leave(walled: Sandbox, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    script = "truncate -s 5M here; truncate -s 5M $OUTBOX/there; truncate -s 2M $OUTBOX/too"
    finished = sh(walled, script, outbox=out, limits=replace(TIGHT, disk_bytes=8 << 20))
    assert (root / "here").stat().st_size == 5 << 20
    assert [path.name for path in out.iterdir()] == ["too"]
    assert finished.notes == ("there was left out: the command wrote more than the disk limit",)


def test_processes_are_limited_for_all_that_start_them_together(walled: Sandbox, tmp_path: Path) -> None:
    mark = odd_number(tmp_path)
    forks = greedy(f"i=0; while [ $i -lt 20 ]; do sleep {mark} & i=$((i+1)); done; echo done; wait")
    finished = sh(walled, f"({forks}) & sleep 0.5; ls /proc | grep -c '^[0-9]'", limits=TIGHT, timeout_s=5)
    assert "fork" in finished.stderr
    assert sleepers(mark) == []


def test_many_commands_at_once_do_not_mix(bwrap: Sandbox) -> None:
    async def all_of_them() -> list[FinishedCommand]:
        return await asyncio.gather(*(bwrap.run(["sh", "-c", f"echo {n}"]) for n in range(12)))

    assert [finished.stdout for finished in asyncio.run(all_of_them())] == [f"{n}\n" for n in range(12)]


# The ladder.


def test_each_level_is_named_and_weakness_is_said(any_level: Sandbox) -> None:
    level = any_level.ladder[0]
    assert sh(any_level, ":").level == ("landlock (weak)" if level == "landlock" else level)


def test_where_no_level_is_to_be_had_it_says_why_and_what_to_install(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(root))
    bare = Sandbox(root, level="bwrap")
    with pytest.raises(SandboxUnavailable, match=r"no sandbox here \(bwrap: not installed\); install bubblewrap"):
        sh(bare, ":")


def test_a_bubblewrap_that_lacks_a_flag_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = SCRATCH.folder / "old" / "bwrap"  # Where also the user gets to who runs it for root.
    old.parent.mkdir(exist_ok=True)
    old.write_text("#!/bin/sh\necho 'bwrap: Unknown option --disable-userns' >&2\nexit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
    probe = asyncio.run(Sandbox(root, level="bwrap").probe())
    assert probe.level is None
    assert "Unknown option --disable-userns" in probe.reasons["bwrap"]


def test_auto_never_means_none(root: Path) -> None:
    probe = asyncio.run(Sandbox(root).probe())
    assert probe.level != "none"
    assert "none" not in probe.reasons


@pytest.mark.parametrize("level", ["chroot", ""])
def test_an_unknown_level_is_refused(root: Path, level: Any) -> None:
    with pytest.raises(ValueError, match="they are auto, docker, bwrap, landlock, none"):
        Sandbox(root, level=level)


def test_the_root_folder_is_no_workspace_and_the_folder_must_lie_inside(bwrap: Sandbox) -> None:
    with pytest.raises(ValueError, match="root of the file system"):
        Sandbox(Path("/"))
    with pytest.raises(ValueError, match="outside the workspace"):
        sh(bwrap, ":", cwd=Path("/"))
