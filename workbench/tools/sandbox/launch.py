"""Starts one command under limits. It is a program of its own (standard library only), which no other module imports.

``python -I -S -c PROGRAM FD -- COMMAND…`` where the program calls ``main`` and FD is an open file that holds a
dictionary, as ``marshal`` writes it:

``limits``     resource name to number
``cgroups``    files to write the process id to
``landlock``   paths by access, or null
``seccomp``    calls as data for the kernel's filter, or empty
``user``       the user and group id to become, or null
``stage``      the file system to put together for the command (see ``Stage``), or null
``watch``      ``memory`` and ``disk`` in bytes (0: not watched), ``folders`` whose files count as disk

It stays as the parent, and ends every process that is left when the command ends, when SIGTERM says so, or when the
processes together exceed what is watched.

It starts with each command, so it imports little: pathlib, json and typing would take half of its time.
"""

from __future__ import annotations

import contextlib
import ctypes
import marshal
import os
import resource
import signal
import stat
import sys
import time
import warnings  # noqa: F401 - os.execvp imports it, which is too late: behind the walls it is out of reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
PR_SET_SECCOMP, PR_CAPBSET_DROP = 22, 24
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ALL_FILES = (1 << 13) - 1  # every right of the first ABI
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
TCP = 3  # bind and connect, ABI 4
SCOPED = 3  # abstract sockets and signals, ABI 6
CANNOT_START = 126
NO_STAGE = 125
OVER_LIMIT = 137
GRACE_S = 5.0
WATCH_S, SHORT_S, GLANCE_S = 0.05, 0.005, 0.003
"""Shortest pauses between two looks at what is used: ever, after a look that takes longer ten times as long; and where
a limit would be reached within two pauses, at the speed since the last look; between two glances at the free space."""
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
OPEN_TREE_CLONE, MOVE_FROM_FD, AT_EMPTY_PATH, ATTR_IDMAP = 1, 4, 0x1000, 0x100000
AT_FDCWD = -100
NO_ID = (1 << 32) - 1
LINUX = sys.platform == "linux"
LIBC = ctypes.CDLL(None, use_errno=True)


class Spec:
    """The content of the file."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.limits: dict[str, int] = body["limits"]
        self.cgroups: list[str] = body["cgroups"]
        self.landlock: dict[str, list[str]] | None = body["landlock"]
        self.seccomp: list[list[int]] = body["seccomp"]
        self.user: int | None = body["user"]
        self.stage = Stage(body["stage"]) if body["stage"] else None
        self.watch: dict[str, Any] = body["watch"]


class Stage:
    """The file system of a command, put together in a mount namespace of its own, so that it ends with the command.

    ``folder`` becomes a temporary file system of ``bytes`` bytes and ``entries`` files, shared by all that the command
    may write: ``tmp``, ``shm``, ``outbox``, and ``upper``, where changes of the workspace are kept. ``files`` is the
    workspace as the command sees it: the folder on disk below, read-only, a mask that leaves the hidden names out,
    and ``upper`` on top. ``read/N`` are further paths, masked likewise.
    """

    def __init__(self, body: dict[str, Any]) -> None:
        self.folder: str = body["folder"]
        self.bytes: int = body["bytes"]
        self.entries: int = body["entries"]
        self.writable: bool = body["writable"]
        self.workspace: dict[str, Any] = body["workspace"]
        """``path`` and ``hidden``, a list of relative names. Without ``hidden`` it is mounted as it is."""
        self.read: list[dict[str, Any]] = body["read"]
        self.tell: int = body["tell"]
        """A socket by which the folder is handed to whoever started this, as it is seen in here."""

    def build(self, user: int | None) -> None:
        """Put it together. Raises OSError where this system cannot."""
        own, group = os.geteuid(), os.getegid()
        owner = os.stat(self.workspace["path"])
        if user is None:
            unshare(CLONE_NEWUSER | CLONE_NEWNS)
            write("/proc/self/setgroups", "deny")
            write("/proc/self/uid_map", f"{own} {own} 1")
            write("/proc/self/gid_map", f"{group} {group} 1")
        else:
            unshare(CLONE_NEWNS)
        mount("none", "/", "", MS_REC | MS_PRIVATE, "")
        hidden = sum(len(one.get("hidden") or ()) for one in (self.workspace, *self.read))
        room = f"size={self.bytes},nr_inodes={self.entries + 20 * hidden + 100},mode=0711"
        mount("tmpfs", self.folder, "tmpfs", MS_NOSUID | MS_NODEV, room)
        os.chdir(self.folder)
        for name in ("tmp", "shm", "outbox", "upper", "work"):
            os.mkdir(name, mode=0o700)
            if user is not None:
                os.chown(name, user, user)
        os.mkdir("read", mode=0o711)
        os.mkdir("files", mode=0o711)
        if self.workspace.get("hidden") is None:
            bind(self.workspace["path"], "files")
        else:
            os.chmod("upper", owner.st_mode & 0o7777)
            if user is None:  # Without these a folder that is removed and made anew would show what it held before.
                os.setxattr("upper", "user.workbench", b"")
                os.removexattr("upper", "user.workbench")
            overlay("files", self.workspace, user, writable=self.writable)
        for number, one in enumerate(self.read):
            target = f"read/{number}"
            if not os.path.isdir(one["path"]):
                os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o666))
            else:
                os.mkdir(target)
            if one.get("hidden"):
                overlay(target, one, user, writable=False)
            else:
                try:
                    bind_for(user, one["path"], target)
                except OSError:
                    bind(one["path"], target)  # A file system whose owners cannot be shown otherwise.
        import socket  # 5 ms, a quarter of all that is imported: only here

        handed = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        with socket.socket(fileno=self.tell) as channel:
            socket.send_fds(channel, [b"."], [handed])
        os.close(handed)
        os.chdir("/")


Swap = tuple[int, int]
"""An id as it is on disk, and the one that it is shown as."""


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def unshare(flags: int) -> None:
    if LIBC.unshare(flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    made = LIBC.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), os.fsencode(options)
    )
    if made != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), f"mount {target}")


def bind(source: str, target: str) -> None:
    mount(source, target, "", MS_BIND | MS_REC, "")


def bind_for(user: int | None, source: str, target: str) -> None:
    """A mount that shows the files of the folder's owner as those of another user, where there is one."""
    status = os.stat(source)
    if user is None:
        bind(source, target)
    else:
        bind_as(source, target, (status.st_uid, user), (status.st_gid, user))


def overlay(target: str, one: dict[str, Any], user: int | None, *, writable: bool) -> None:
    """A folder without its hidden names; with ``upper`` on top where it may be written."""
    name = target.replace("/", "-")
    lower, mask = f"lower-{name}", f"mask-{name}"
    os.mkdir(lower)
    os.mkdir(mask)
    bind_for(user, one["path"], lower)
    cover(mask, lower, one["hidden"])
    options = f"lowerdir={mask}:{lower}" + (",upperdir=upper,workdir=work" if writable else "")
    # Whoever reads the changes knows no folder by another name; without root the kernel allows none.
    options += ",userxattr" if user is None else ",redirect_dir=nofollow,metacopy=off,index=off"
    mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options)


def bind_as(source: str, target: str, user: Swap, group: Swap) -> None:
    """A mount on which two users have changed places, and two groups: the files of the one belong to the other."""
    space = identities(user, group)
    try:
        tree = system_call(OPEN_TREE, AT_FDCWD, os.fsencode(source), OPEN_TREE_CLONE | os.O_CLOEXEC)
        try:
            attributes = MountAttributes(ATTR_IDMAP, 0, 0, space)
            system_call(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, ctypes.byref(attributes), ctypes.sizeof(attributes))
            system_call(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(target), MOVE_FROM_FD)
        finally:
            os.close(tree)
    finally:
        os.close(space)


def identities(user: Swap, group: Swap) -> int:
    """A user namespace, as an open file, in which two users and two groups have changed places."""
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(done[1])
            unshare(CLONE_NEWUSER)
            os.write(ready[1], b".")
            os.read(done[0], 1)
        finally:
            os._exit(0)
    os.close(ready[1])
    os.close(done[0])
    try:
        if not os.read(ready[0], 1):
            raise OSError(1, "no user namespace can be made")
        write(f"/proc/{child}/uid_map", swapped(*user))
        write(f"/proc/{child}/gid_map", swapped(*group))
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        os.close(ready[0])
        os.close(done[1])
        os.waitpid(child, 0)


def swapped(one: int, other: int) -> str:
    """The map of all ids to themselves but for two, as the kernel reads it."""
    low, high = sorted((one, other))
    if low == high:
        return f"0 0 {NO_ID}"
    rows = [(0, 0, low), (low, high, 1), (low + 1, low + 1, high - low - 1), (high, low, 1)]
    rows.append((high + 1, high + 1, NO_ID - high - 1))
    return "\n".join(f"{inside} {outside} {count}" for inside, outside, count in rows if count)


def cover(mask: str, lower: str, hidden: list[str]) -> None:
    """Fill a layer that makes names of the layer below it disappear."""
    copy_mode(lower, mask)
    made: set[str] = set()
    for path in hidden:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder not in made:
                made.add(folder)
                os.mkdir(f"{mask}/{folder}")
                with contextlib.suppress(FileNotFoundError):  # Removed meanwhile: what comes back there stays hidden.
                    copy_mode(f"{lower}/{folder}", f"{mask}/{folder}")
        os.mknod(f"{mask}/{path}", 0o020000, 0)


def copy_mode(source: str, target: str) -> None:
    status = os.stat(source)
    with contextlib.suppress(OSError):  # An owner whom this namespace does not know.
        os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, status.st_mode & 0o7777)


class MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("namespace", ctypes.c_uint64),
    )


class Attributes(ctypes.Structure):
    _fields_ = (
        ("fs", ctypes.c_uint64),
        ("net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(Instruction)))


class BeneathPath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


def system_call(number: int, *arguments: object) -> int:
    result = int(LIBC.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, value: int) -> None:
    if LINUX and LIBC.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def restrict(rules: dict[str, list[str]]) -> None:
    """Give up all access to files, TCP and other processes but to the paths of ``read``, ``list`` and ``write``."""
    abi = system_call(LANDLOCK_CREATE, None, 0, 1)
    files = ALL_FILES | REFER | (TRUNCATE if abi >= 3 else 0) | (IOCTL_DEV if abi >= 5 else 0)
    attributes = Attributes(files, TCP if abi >= 4 else 0, SCOPED if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = system_call(LANDLOCK_CREATE, ctypes.byref(attributes), size, 0)
    reading = EXECUTE | READ_FILE | READ_DIR
    for access, paths in ((reading, rules["read"]), (READ_DIR, rules["list"]), (files, rules["write"])):
        for path in paths:
            allow(ruleset, path, access)
    drop_rights()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    system_call(LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def drop_rights() -> None:
    """Of root too: Landlock keeps files shut, but no clock, no kernel module and no other user's file. An ordinary
    user has none, and may not drop them either."""
    if os.geteuid() == 0:
        for right in range(64):
            with contextlib.suppress(OSError):  # The kernel has fewer.
                prctl(PR_CAPBSET_DROP, right)


def filter_calls(instructions: list[list[int]]) -> None:
    """Have the kernel look at each call from now on, in all that is started too."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    program = Program(
        len(instructions), (Instruction * len(instructions))(*(Instruction(*one) for one in instructions))
    )
    if LIBC.prctl(PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            access &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
        rule = BeneathPath(access, fd)
        system_call(LANDLOCK_ADD, ruleset, 1, ctypes.byref(rule), 0)
    finally:
        os.close(fd)


def limit(limits: dict[str, int]) -> None:
    """Set each limit, never above the hard one. Linux knows them all; elsewhere what is not known is passed over."""
    for name, wanted in limits.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.nullcontext() if LINUX else contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value))


def become(spec: Spec, command: list[str]) -> int:
    """Take the limits and run the command in place of this program. Raises OSError when it cannot start."""
    for group in spec.cgroups:
        write(group, str(os.getpid()))
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    limit(spec.limits)
    if spec.user is not None:
        drop_rights()
        os.setgroups([])
        os.setresgid(spec.user, spec.user, spec.user)
        os.setresuid(spec.user, spec.user, spec.user)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # Forgotten with the user.
    if spec.landlock:
        restrict(spec.landlock)
    if spec.seccomp:
        filter_calls(spec.seccomp)
    os.execvp(command[0], command)


def children() -> list[int]:
    """Direct children of this process. Orphans of theirs become direct children (it is a subreaper)."""
    me = os.getpid()
    return [pid for pid, parent in parents() if parent == me]


def parents() -> Iterator[tuple[int, int]]:
    """All processes, each with its parent."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                yield int(name), int(read(f"/proc/{name}/stat").rpartition(b")")[2].split()[1])


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def end_all(group: int) -> None:
    """Kill until no child is left. Without /proc (macOS) the process group is all that can be reached."""
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        if LINUX:
            for child in children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def supervise(spec: Spec, command: list[str]) -> int:
    """Run the command as a child; return its exit code once nothing of it is left."""
    if LINUX:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        start(become, spec, command)

    def told_to_stop(number: int, _frame: object) -> None:
        end_all(child)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, told_to_stop)
    code, over = watched(child, spec.watch)
    end_all(child)
    if over:
        print(f"ended: {over}", file=sys.stderr, flush=True)
        return OVER_LIMIT
    return code if code >= 0 else 128 - code


def watched(child: int, watch: dict[str, Any]) -> tuple[int, str]:
    """Wait for the command. Its exit code, and what all its processes together have exceeded, if anything."""
    memory, disk, folders = int(watch["memory"]), int(watch["disk"]), list(watch["folders"])
    if not memory and not disk:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ""
    before = used_on_disk(folders) if disk else 0
    in_memory, on_disk, shrinking = Growth(memory), Growth(disk), FreeSpace(folders if disk else [])
    pause = SHORT_S
    while True:
        ended = waited(child, pause, shrinking, max(on_disk.left() // 4, 1 << 20))
        if ended is not None:
            return ended, ""
        started = time.monotonic()
        shrinking.measure()
        if memory and in_memory.exceeds(used_in_memory(os.getpid())):
            return 0, f"all its processes together used more than {memory // (1 << 20):,} MB of memory"
        if disk and on_disk.exceeds(used_on_disk(folders) + held_without_name(os.getpid(), folders) - before):
            return 0, f"all that it wrote together is more than {disk // (1 << 20):,} MB"
        took = time.monotonic() - started
        shrinking.rest(took)  # Others write to the disk as well: they shall not have us look all the time.
        pause = max(WATCH_S, 10 * took)
        pause = max(SHORT_S, min(pause, in_memory.seconds_left() / 2, on_disk.seconds_left() / 2))


class Growth:
    """How fast something that is watched comes near its limit; 0 is no limit."""

    def __init__(self, most: int) -> None:
        self.most, self.used, self.seen = most, 0, time.monotonic()
        self.speed = 0.0

    def exceeds(self, used: int) -> bool:
        """Take in what is used now."""
        now = time.monotonic()
        self.speed = (used - self.used) / max(now - self.seen, 1e-6)
        self.used, self.seen = used, now
        return used > self.most

    def left(self) -> int:
        return max(self.most - self.used, 0)

    def seconds_left(self) -> float:
        return (self.most - self.used) / self.speed if self.most and self.speed > 0 else float("inf")


class FreeSpace:
    """The free space of the disks of folders: one system call says that something was written, though not by whom. A
    look at all files takes as long as there are many."""

    def __init__(self, folders: list[str]) -> None:
        self.places: dict[int, str] = {}
        for folder in folders:
            with contextlib.suppress(OSError):
                self.places.setdefault(os.stat(folder).st_dev, folder)
        self.asked_from = 0.0
        self.measure()

    def free(self) -> int:
        total = 0
        for folder in self.places.values():
            with contextlib.suppress(OSError):
                found = os.statvfs(folder)
                total += found.f_bfree * found.f_frsize
        return total

    def measure(self) -> None:
        """Count from now on."""
        self.before = self.free()

    def rest(self, seconds: float) -> None:
        """Tell nothing for so long."""
        self.asked_from = time.monotonic() + seconds

    def shrank_by(self, size: int) -> bool:
        return bool(self.places) and time.monotonic() >= self.asked_from and self.before - self.free() > size


def waited(child: int, seconds: float, shrinking: FreeSpace, size: int) -> int | None:
    """The exit code of a child that ends within so many seconds, and before the free space has shrunk by ``size``
    bytes."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    until = time.monotonic() + seconds
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        left = until - time.monotonic()
        if left <= 0 or shrinking.shrank_by(size):
            return None
        if shrinking.places:
            left = min(left, GLANCE_S)
        if LINUX:
            signal.sigtimedwait([signal.SIGCHLD], left)
        else:
            time.sleep(min(left, 0.01))


def below(me: int) -> set[int]:
    """The processes below one, however deep."""
    known = dict(parents())
    found: set[int] = {me}
    grown = True
    while grown:
        more = {pid for pid, parent in known.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {me}


def used_in_memory(me: int) -> int:
    """Bytes of all processes below this one, shared pages counted once where the kernel says how many they are, and as
    much for each of their sockets as it may hold: that memory belongs to no process."""
    processes = below(me)
    return sum(memory_of(pid) for pid in processes) + len(sockets_of(processes)) * socket_bytes()


def sockets_of(processes: set[int]) -> set[str]:
    """Names of the sockets that processes have open."""
    found: set[str] = set()
    for pid in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return {name for name in found if name.startswith("socket:")}


def socket_bytes() -> int:
    """What a socket may hold that has not been sent yet."""
    try:
        return int(read("/proc/sys/net/core/wmem_default"))
    except (OSError, ValueError):
        return 212_992


def memory_of(pid: int) -> int:
    try:
        for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(read(f"/proc/{pid}/statm").split()[1]) * resource.getpagesize()
    return 0


def used_on_disk(folders: list[str]) -> int:
    """Bytes of the files in folders, as the disk counts them."""
    total, pending = 0, list(folders)
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def held_without_name(me: int, folders: list[str]) -> int:
    """Bytes on the disk of the folders of files that have been removed and that a process below this one has open."""
    disks: set[int] = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            disks.add(os.stat(folder).st_dev)
    sizes: dict[tuple[int, int], int] = {}
    for pid in below(me):
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                    if status.st_nlink == 0 and status.st_dev in disks:
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def start(way: Callable[[Spec, list[str]], int], spec: Spec, command: list[str]) -> NoReturn:
    try:
        code = way(spec, command)
    except OSError as fault:
        print(f"cannot start {command[0]}: {fault.strerror or fault}", file=sys.stderr, flush=True)
        os._exit(CANNOT_START)
    os._exit(code)


def main() -> None:
    with open(int(sys.argv[1]), "rb") as file:
        spec = Spec(marshal.load(file))
    command = sys.argv[3:]
    parent = os.getppid()
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(CANNOT_START)
    if spec.stage is not None:
        try:
            spec.stage.build(spec.user)
        except OSError as fault:
            print(f"{fault.filename or 'file system'}: {fault.strerror or fault}", file=sys.stderr, flush=True)
            os._exit(NO_STAGE)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # Forgotten with the user namespace.
    start(supervise, spec, command)
