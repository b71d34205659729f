"""The bubblewrap level: a command sees /usr, a private /tmp and the workspace; no network, no homes, no environment."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from workbench.tools.sandbox.limits import Limits

WORKSPACE = Path("/workspace")
"""Where the workspace is seen inside, at every level that has a file system of its own."""
OUTBOX = Path("/outbox")
_ROOTS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
# A dash has `ulimit -p` where a bash has `ulimit -u`. The limit must be set inside: outside, all of the user's
# processes would count against it.
_COUNTED = 'ulimit -u "$0" 2>/dev/null || ulimit -p "$0"; exec "$@"'


class Job(Struct, frozen=True):
    """One command and what it may see."""

    argv: Sequence[str]
    workspace: Path
    cwd: Path
    """On the host, inside the workspace."""
    env: Mapping[str, str]
    limits: Limits
    hidden: Sequence[str] = ()
    """Names below the workspace that it must not see."""
    writable: bool = True
    readable: Sequence[Path] = ()
    """More folders and files, seen read-only under their own paths."""
    folders: Mapping[Path, Sequence[str]] = field(default_factory=dict)
    """More folders of the user's, seen read-only under their own paths, with the names below them that are hidden."""
    outbox: bool = False
    """Whether it finds a folder to leave files in."""

    @property
    def cwd_inside(self) -> Path:
        return WORKSPACE / self.cwd.relative_to(self.workspace)

    @property
    def read(self) -> list[Path]:
        """All that is seen read-only under its own path."""
        return [*self.readable, *self.folders]


def find() -> str | None:
    """The program's path; None when bubblewrap is not installed."""
    return shutil.which("bwrap")


def gains_rights() -> bool:
    """Returns whether it is installed to run as root, as some systems without user namespaces have it: what it then
    needs is lost once calls are filtered."""
    program = find()
    return program is not None and bool(Path(program).stat().st_mode & stat.S_ISUID)


def command(job: Job, program: str, stage: Path, sources: Sequence[Path], *, count_inside: bool) -> list[str]:
    """The whole command line in list form.

    ``stage`` holds what the command may write (``tmp``, ``shm``, ``outbox``) and the workspace as it sees it
    (``files``); ``sources`` are where ``job.read`` is found. ``count_inside`` limits processes by a resource limit
    that is set inside, where only the command's own count.
    """
    argv = [program, *_walls(), *_system()]
    for name, value in job.env.items():
        argv += ["--setenv", name, value]
    argv += ["--bind", str(stage / "tmp"), "/tmp", "--bind", str(stage / "shm"), "/dev/shm"]
    for path, source in zip(job.read, sources, strict=True):
        argv += ["--ro-bind", str(source), str(path)]
    argv += ["--bind" if job.writable else "--ro-bind", str(stage / "files"), str(WORKSPACE)]
    if job.outbox:
        argv += ["--bind", str(stage / "outbox"), str(OUTBOX)]
    # Last, when everything is in its place: what is not mounted on purpose takes no file.
    for own in (*_masked(), "/dev", "/proc", "/"):
        argv += ["--remount-ro", own]
    argv += ["--chdir", str(job.cwd_inside), "--"]
    if count_inside:
        argv += ["/bin/sh", "-c", _COUNTED, str(job.limits.processes)]
    return [*argv, *job.argv]


def _walls() -> list[str]:
    return [
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"),
        *("--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
        *("--proc", "/proc", "--dev", "/dev"),
        *(part for folder in _masked() for part in ("--tmpfs", folder)),
    ]


def _masked() -> list[str]:
    """Folders of /proc that are about the machine, not about processes: they are empty inside."""
    return [folder for folder in ("/proc/bus", "/proc/irq") if Path(folder).is_dir()]


def _system() -> list[str]:
    """/usr read-only, the usual links to it, and what the loader needs of /etc."""
    argv = ["--ro-bind", "/usr", "/usr"]
    for name in _ROOTS:
        path = Path("/", name)
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            argv += ["--ro-bind", str(path), str(path)]
    for name in _ETC:
        argv += ["--ro-bind-try", name, name]
    return argv
