"""Calls that the walls let through and a command has no use for, as a program for the kernel's filter (seccomp).

A file of the workspace that runs as its owner (set-user-id) would outlive the sandbox, and give whoever starts it the
rights of the user who ran the tool; the kernel's keyrings and the terminal's input belong to that user, too.
"""

from __future__ import annotations

import errno
import platform
import sys
from collections.abc import Mapping

from msgspec import Struct

Instruction = list[int]
"""Operation, jump if true, jump if false, constant."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_SET_USER_ID = 0o4000
_CREATES = 0o100 | 0o20000000
"""O_CREAT, and the bit of O_TMPFILE that is its own."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX."""
_X32 = 0x40000000
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
    unwatched: tuple[int, ...]
    """memfd_create, shmget: memory that belongs to no process as long as none has mapped it."""


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
        (319, 29),
    ),
    "aarch64": _Machine(
        0xC00000B7, (219, 217, 218), (437, 425), {52: 1, 53: 2, 452: 2, 33: 2}, {56: 2}, 29, 198, 117, (279, 194)
    ),
}


def program(*, counted: bool = True) -> list[Instruction]:
    """The filter for this machine; empty where its calls are not known here. ``counted``: the kernel counts all memory
    of the command, else it gets none but that of processes and files, which the launcher can add up."""
    machine = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None:
        return []
    code = [[_LOAD, 0, 0, _ARCHITECTURE], [_EQUAL, 1, 0, machine.audit], _end(_KILL), [_LOAD, 0, 0, _NUMBER]]
    if platform.machine() == "x86_64":
        code += [[_AT_LEAST, 0, 1, _X32], _end(_ERROR | errno.ENOSYS)]
    for number in machine.refused:
        code += _if(number, [_end(_ERROR | errno.EPERM)])
    for number in machine.unknown if counted else (*machine.unknown, *machine.unwatched):
        code += _if(number, [_end(_ERROR | errno.ENOSYS)])
    for number, mode in machine.modes.items():
        code += _if(number, [_argument(mode), *_refuse_user_id()])
    for number, flags in machine.opens.items():
        looked = [_argument(flags), [_ANY_BIT, 1, 0, _CREATES], _end(_ALLOW), _argument(flags + 1)]
        code += _if(number, [*looked, *_refuse_user_id()])
    others = [[_EQUAL, 0, 1, family] for family in _FAMILIES]
    code += _if(
        machine.socket,
        [_argument(0), *(line for test in others for line in (test, _end(_ALLOW))), _end(_ERROR | errno.EAFNOSUPPORT)],
    )
    # The first process of a namespace ends the rest: who traces it holds the command up until its limit.
    code += _if(machine.ptrace, [_argument(1), [_EQUAL, 0, 1, 1], _end(_ERROR | errno.EPERM), _end(_ALLOW)])
    first, second = _TERMINAL_INPUT
    asked = [_argument(1), [_EQUAL, 1, 0, first], [_EQUAL, 0, 1, second], _end(_ERROR | errno.EPERM), _end(_ALLOW)]
    return [*code, *_if(machine.ioctl, asked), _end(_ALLOW)]


def _if(number: int, then: list[Instruction]) -> list[Instruction]:
    """For one call; ``then`` ends with a verdict."""
    return [[_EQUAL, 0, len(then), number], *then]


def _refuse_user_id() -> list[Instruction]:
    return [[_ANY_BIT, 0, 1, _SET_USER_ID], _end(_ERROR | errno.EPERM), _end(_ALLOW)]


def _argument(index: int) -> Instruction:
    """Its lower half."""
    return [_LOAD, 0, 0, _ARGUMENTS + 8 * index]


def _end(verdict: int) -> Instruction:
    return [_RETURN, 0, 0, verdict]
