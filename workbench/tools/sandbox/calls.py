"""Calls that the walls let through and a command has no use for, as a program for the kernel's filter (seccomp).

A file of the workspace that runs as its owner (set-user-id) would outlive the sandbox, and give whoever starts it the
rights of the user who ran the tool; the kernel's keyrings and the terminal's input belong to that user, too.

A command without namespaces of its own (Landlock) shares more with its user: sockets that are files, by which the
user's terminal multiplexer, session bus, container daemon or key agent would run or sign things for it, the limits and
priorities of the user's other processes, System V and POSIX message objects. None of these is a file to Landlock, and
of the network it covers nothing but TCP.
"""

from __future__ import annotations

import errno
import platform
import sys
from collections.abc import Mapping

from msgspec import Struct

Instruction = list[int]
"""Operation, jump if true, jump if false, constant."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_SET_USER_ID = 0o4000
_CREATES = 0o100 | 0o20000000
"""O_CREAT, and the bit of O_TMPFILE that is its own."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX."""
_X32 = 0x40000000
_INET, _INET6, _STREAM, _DATAGRAM, _PROTOCOL_TCP = 2, 10, 1, 2, 6
_SOCKET_LEVEL, _BUFFERS = 1, (7, 8)
"""SOL_SOCKET; SO_SNDBUF, SO_RCVBUF."""
_KINDS = 0xF
"""The bits of a socket's type that are not flags."""
_NEW_USER = 0x10000000
"""CLONE_NEWUSER."""
_OWN_IO = 1
"""IOPRIO_WHO_PROCESS."""
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: what a network namespace holds. Others reach past it: AF_VSOCK, say, the host
of a virtual machine."""


class _Machine(Struct, frozen=True):
    """Numbers of the calls; the argument that holds the mode where that is asked."""

    audit: int
    refused: tuple[int, ...]
    """keyctl, add_key, request_key."""
    unknown: tuple[int, ...]
    """openat2, io_uring_setup: what they do cannot be seen from here, and programs go without them."""
    modes: Mapping[int, int]
    opens: Mapping[int, int]
    """The argument that holds the flags; the mode is the next."""
    ioctl: int
    socket: int
    ptrace: int
    buffers: int
    """setsockopt."""
    unwatched: tuple[int, ...]
    """memfd_create, shmget: memory that belongs to no process as long as none has mapped it."""
    socketpair: int
    clone: int
    unshare: int
    prlimit: int
    setpriority: int
    ioprio: int
    scheduling: tuple[int, ...]
    """sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr: of a process that is their first
    argument."""
    shared: tuple[int, ...]
    """System V and POSIX objects that belong to no process: shmget, shmat, shmctl, semget, semop, semctl, semtimedop,
    msgget, msgsnd, msgrcv, msgctl, mq_open, mq_unlink. And clone3, whose flags cannot be seen from here."""


_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        (250, 248, 249),
        (437, 425),
        {90: 1, 91: 1, 268: 2, 452: 2, 85: 1, 133: 1, 259: 2},
        {2: 1, 257: 2},
        16,
        41,
        101,
        54,
        (319, 29),
        socketpair=53,
        clone=56,
        unshare=272,
        prlimit=302,
        setpriority=141,
        ioprio=251,
        scheduling=(142, 144, 203, 314),
        shared=(29, 30, 31, 64, 65, 66, 220, 68, 69, 70, 71, 240, 241, 435),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        (219, 217, 218),
        (437, 425),
        {52: 1, 53: 2, 452: 2, 33: 2},
        {56: 2},
        29,
        198,
        117,
        208,
        (279, 194),
        socketpair=199,
        clone=220,
        unshare=97,
        prlimit=261,
        setpriority=140,
        ioprio=30,
        scheduling=(118, 119, 122, 274),
        shared=(194, 196, 195, 190, 193, 191, 192, 186, 189, 188, 187, 180, 181, 435),
    ),
}


def program(*, counted: bool = True, namespaces: bool = True) -> list[Instruction]:
    """The filter for this machine; empty where its calls are not known here. ``counted``: the kernel counts all memory
    of the command, else it gets none but that of processes and files, which the launcher can add up. ``namespaces``:
    the command has its own, so that it finds nothing of its user's in them."""
    machine = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None:
        return []
    code = [[_LOAD, 0, 0, _ARCHITECTURE], [_EQUAL, 1, 0, machine.audit], _end(_KILL), [_LOAD, 0, 0, _NUMBER]]
    if platform.machine() == "x86_64":
        code += [[_AT_LEAST, 0, 1, _X32], _end(_ERROR | errno.ENOSYS)]
    for number in machine.refused:
        code += _if(number, [_end(_ERROR | errno.EPERM)])
    unknown = machine.unknown if counted else (*machine.unknown, *machine.unwatched)
    for number in unknown if namespaces else (*unknown, *machine.shared):
        code += _if(number, [_end(_ERROR | errno.ENOSYS)])
    if not counted:
        # As if done: the kernel, too, takes sizes that it does not grant. The launcher reckons with the usual ones.
        first, second = _BUFFERS
        sizes = [
            _argument(1),
            [_EQUAL, 0, 3, _SOCKET_LEVEL],
            _argument(2),
            [_EQUAL, 2, 0, first],
            [_EQUAL, 1, 0, second],
        ]
        code += _if(machine.buffers, [_argument(1), *sizes, _end(_ALLOW), _end(_ERROR)])
    if not namespaces:
        code += _among_processes_of_the_user(machine)
    for number, mode in machine.modes.items():
        code += _if(number, [_argument(mode), *_refuse_user_id()])
    for number, flags in machine.opens.items():
        looked = [_argument(flags), [_ANY_BIT, 1, 0, _CREATES], _end(_ALLOW), _argument(flags + 1)]
        code += _if(number, [*looked, *_refuse_user_id()])
    code += _if(machine.socket, _families() if namespaces else _tcp())
    # The first process of a namespace ends the rest: who traces it holds the command up until its limit.
    code += _if(machine.ptrace, [_argument(1), [_EQUAL, 0, 1, 1], _end(_ERROR | errno.EPERM), _end(_ALLOW)])
    first, second = _TERMINAL_INPUT
    asked = [_argument(1), [_EQUAL, 1, 0, first], [_EQUAL, 0, 1, second], _end(_ERROR | errno.EPERM), _end(_ALLOW)]
    return [*code, *_if(machine.ioctl, asked), _end(_ALLOW)]


def _families() -> list[Instruction]:
    allowed = [line for family in _FAMILIES for line in ([_EQUAL, 0, 1, family], _end(_ALLOW))]
    return [_argument(0), *allowed, _end(_ERROR | errno.EAFNOSUPPORT)]


def _tcp() -> list[Instruction]:
    """Plain TCP alone, which is what Landlock can refuse to connect: it looks neither at UDP nor at Multipath TCP."""
    no = _end(_ERROR | errno.EAFNOSUPPORT)
    family = [_argument(0), [_EQUAL, 2, 0, _INET], [_EQUAL, 1, 0, _INET6], no]
    kind = [_argument(1), [_AND, 0, 0, _KINDS], [_EQUAL, 1, 0, _STREAM], no]
    return [*family, *kind, _argument(2), [_EQUAL, 2, 0, 0], [_EQUAL, 1, 0, _PROTOCOL_TCP], no, _end(_ALLOW)]


def _among_processes_of_the_user(machine: _Machine) -> list[Instruction]:
    """What a command without namespaces may ask for itself alone."""
    no, yes = _end(_ERROR | errno.EPERM), _end(_ALLOW)
    # One end of a pair of datagram sockets can send to any socket that is a file.
    pair = [_argument(1), [_AND, 0, 0, _KINDS], [_EQUAL, 0, 1, _DATAGRAM], _end(_ERROR | errno.EAFNOSUPPORT), yes]
    code = _if(machine.socketpair, pair)
    for number in (machine.clone, machine.unshare):
        code += _if(number, [_argument(0), [_ANY_BIT, 0, 1, _NEW_USER], no, yes])
    for number in machine.scheduling:
        code += _if(number, [_argument(0), [_EQUAL, 1, 0, 0], no, yes])
    for number, kind in ((machine.setpriority, 0), (machine.ioprio, _OWN_IO)):
        code += _if(number, [_argument(0), [_EQUAL, 0, 2, kind], _argument(1), [_EQUAL, 1, 0, 0], no, yes])
    # The limits of others may be read: there the new ones, a pointer, are null.
    null = [_argument(2), [_EQUAL, 0, 2, 0], _upper_half(2), [_EQUAL, 1, 0, 0], no, yes]
    return [*code, *_if(machine.prlimit, [_argument(0), [_EQUAL, 0, 1, 0], yes, *null])]


def _if(number: int, then: list[Instruction]) -> list[Instruction]:
    """For one call; ``then`` ends with a verdict."""
    return [[_EQUAL, 0, len(then), number], *then]


def _refuse_user_id() -> list[Instruction]:
    return [[_ANY_BIT, 0, 1, _SET_USER_ID], _end(_ERROR | errno.EPERM), _end(_ALLOW)]


def _argument(index: int) -> Instruction:
    """Its lower half."""
    return [_LOAD, 0, 0, _ARGUMENTS + 8 * index]


def _upper_half(index: int) -> Instruction:
    return [_LOAD, 0, 0, _ARGUMENTS + 8 * index + 4]


def _end(verdict: int) -> Instruction:
    return [_RETURN, 0, 0, verdict]
