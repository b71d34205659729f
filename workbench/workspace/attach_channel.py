"""What the app and the process that serves a session of attach tell each other, over a pair of sockets that no other
process has."""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from workbench.context.assembly import Assembly
from workbench.engine.contracts import Notice
from workbench.engine.debugger.stepper import Steering
from workbench.engine.edits import Edit
from workbench.engine.gate import Decision, Stop
from workbench.engine.journal.event import Event
from workbench.workspace.attaching import AttachOptions
from workbench.workspace.folders import Folders
from workbench.workspace.project import Project
from workbench.workspace.settings import Settings

_HEAD = struct.Struct("!Q")
_DRAINED = 2**16
"""Bytes at once of what nobody waits for any more."""


class WorkspaceParts(Struct, frozen=True):
    """The workspace of the app, to be opened by the other process as it is there."""

    root: Path
    settings: Settings
    env: Mapping[str, str]
    folders: Folders

    @classmethod
    def of(cls, project: Project) -> WorkspaceParts:
        """Returns those of a workspace."""
        return cls(project.root, project.settings, dict(project.env), project.folders)

    def project(self) -> Project:
        """Returns the workspace."""
        return Project(self.root, self.settings, self.env, self.folders)


class Begin(Struct, frozen=True):
    """To the server, before all else: what it serves."""

    workspace: WorkspaceParts
    options: AttachOptions
    listener: int
    """The file descriptor of the socket at which clients connect."""
    where: Mapping[str, str]
    token: str
    otlp: bool
    steering: Steering


class Ready(Struct, frozen=True):
    """From the server: clients may come."""

    variables: Mapping[str, str]
    """Those that lead clients to it."""


class News(Struct, frozen=True):
    """From the server: the journal of a run has grown. The next one comes when the app has ``Took``."""

    run_id: str


class Unsaved(Struct, frozen=True):
    """From the server: events that the disk does not take, behind those of the journal."""

    events: Sequence[Event]


class Took(Struct, frozen=True):
    """To the server: the app has taken the events up to this one."""

    seq: int


class Steer(Struct, frozen=True):
    """To the server: how far the program goes before it is paused."""

    steering: Steering


class Asked(Struct, frozen=True):
    """From the server: a call may have to be paused here."""

    number: int
    stop: Stop
    """Without its preview, which is asked for by ``Preview``."""
    seq: int
    """The last event that was journaled before."""


class Decided(Struct, frozen=True):
    """To the server: what becomes of the call that it ``Asked`` about."""

    number: int
    decision: Decision
    fault: str = ""
    """Why the app could not decide; empty if it did."""


class Withdrawn(Struct, frozen=True):
    """From the server: the client of a call that it ``Asked`` about has given up, or gets its answer now."""

    number: int


class Preview(Struct, frozen=True):
    """To the server: what would be sent after edits of a paused call."""

    key: int
    number: int
    edits: Sequence[Edit]


class Previewed(Struct, frozen=True):
    """From the server: the assembly, or why it cannot be."""

    key: int
    assembly: Assembly | None
    fault: str = ""


class Told(Struct, frozen=True):
    """From the server: something for the person."""

    notice: Notice


class Noted(Struct, frozen=True):
    """From the server: a remark on the workspace, for when the app has ended."""

    note: str


class Ended(Struct, frozen=True):
    """From the server, after all else: the record is complete."""

    fault: str = ""
    """Why it could not be served or recorded; empty if it was."""


class Channel:
    """One end. Sending never waits for the other side, which may be slow: so neither side sends without bound."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, line: socket.socket) -> Channel:
        """Returns the end that a connected socket is."""
        return cls(*await asyncio.open_unix_connection(sock=line))

    def send(self, message: Any) -> None:
        """Send a message; nothing happens where the other side has gone, which ``received`` tells."""
        self._write(_packed(message))

    async def send_large(self, message: Any) -> None:
        """Send a message that takes long to pack: meanwhile streams go on."""
        self._write(await asyncio.to_thread(_packed, message))

    def _write(self, packed: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.writelines((_HEAD.pack(len(packed)), packed))

    async def received(self) -> Any:
        """The next message; None when the other side has closed its end or is dead."""
        try:
            (size,) = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
            return pickle.loads(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, OSError):
            return None

    async def close(self) -> None:
        """Close this end, once the other side has closed its own or is dead. It may still be sending: a message that
        met a closed end would take from it what it has not received yet."""
        with suppress(OSError):  # The other side is dead.
            self._writer.write_eof()
            while await self._reader.read(_DRAINED):
                pass
        self._writer.close()
        with suppress(OSError):  # The same.
            await self._writer.wait_closed()


def _packed(message: Any) -> bytes:
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
