"""The process that serves and records a session of attach whose calls the app shows: with the app in one process, a
call would wait while the app draws."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Callable
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from workbench.attach.control import Debugging, Undecided
from workbench.child_process import fault_words
from workbench.context.edits import EditError
from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.debugger.condition import matches
from workbench.engine.debugger.stepper import Breakpoint, Steering, Stepper
from workbench.engine.gate import Decision, Stop
from workbench.engine.journal.event import STOPPED_BY_USER, Event
from workbench.workspace.attach_channel import (
    Asked,
    Begin,
    Channel,
    Decided,
    Ended,
    News,
    Noted,
    Preview,
    Previewed,
    Ready,
    Steer,
    Told,
    Took,
    Unsaved,
    Withdrawn,
)
from workbench.workspace.attach_serving import SWITCH_SECONDS, Served, collecting, serving
from workbench.workspace.attaching import SessionEnd, attached_run, end_session, end_spans, recorded_spans
from workbench.workspace.project import Project

APP_GONE = "the app that watched it was killed"
MOST_AT_ONCE = 500
"""Events in one message, where the disk does not take them."""
GONE_ON = "the call is not paused any more"


class _Following:
    """Tells the app that a journal has grown, once it has taken what was told before: the journal is where a slow app
    finds what it has not taken. Only what the disk does not take is kept here."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._run_id = ""
        self._told = False
        """The app was told, and has not answered."""
        self._saves = True
        self._unsaved: deque[Event] = deque()
        self.seq = 0
        """Of the last event."""

    def seen(self, event: Event) -> None:
        """An event is in the journal, or waits to be. In any thread."""
        if not self._saves:
            self._unsaved.append(event)
        self._run_id, self.seq = event.run_id, event.seq
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._tell)

    def notify(self, notice: Notice) -> None:
        """Something for the person. In any thread."""
        if notice.kind in ("unsaved", "saved"):
            self._saves = notice.kind == "saved"
            if self._saves:
                self._unsaved.clear()
        self._loop.call_soon_threadsafe(self._channel.send, Told(notice))

    def say(self, words: str) -> None:
        """The same in words."""
        self.notify(Notice("told", Place(), {"message": words}))

    def took(self, seq: int) -> None:
        """The app has taken the events up to this one."""
        self._told = False
        while self._unsaved and self._unsaved[0].seq <= seq:
            self._unsaved.popleft()
        if seq < self.seq:
            self._told = True
            self._tell()

    def rest(self) -> None:
        """Tell the app of everything that it does not find in the journal."""
        for first in range(0, len(left := list(self._unsaved)), MOST_AT_ONCE):
            self._channel.send(Unsaved(left[first : first + MOST_AT_ONCE]))

    def _tell(self) -> None:
        left = list(self._unsaved)[:MOST_AT_ONCE]
        self._channel.send(Unsaved(left) if left else News(self._run_id))


class _Open(Struct, frozen=True):
    """A stop about which the app was asked."""

    stop: Stop
    decided: asyncio.Future[Decision]


class _AppGate:
    """Asks the app about stops at which it may pause a call; at all others calls pass without a word."""

    def __init__(self, channel: Channel, steering: Steering, seq: Callable[[], int]) -> None:
        """``seq``: of the last event that was journaled."""
        self._channel = channel
        self._seq = seq
        self._as_there = Stepper(matches=matches)
        """As the app's, which does the pausing."""
        self.steer(steering)
        self._numbers = count(1)
        self._open: dict[int, _Open] = {}

    def steer(self, steering: Steering) -> None:
        """The app's stepper was set so."""
        self._as_there.steer(steering)

    @property
    def is_free(self) -> bool:
        return self._as_there.is_free

    def may_hold(self, stop: Stop, may_match: Callable[[Breakpoint, Stop], bool]) -> bool:
        return self._as_there.may_hold(stop, may_match)

    async def __call__(self, stop: Stop) -> Decision:
        if not self._as_there.may_concern(stop):
            return Decision()
        decided: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        number = next(self._numbers)
        self._open[number] = _Open(stop, decided)
        try:
            await self._channel.send_large(Asked(number, replace(stop, preview=None), self._seq()))
            return await decided
        except asyncio.CancelledError:
            self._channel.send(Withdrawn(number))
            raise
        finally:
            del self._open[number]

    def decided(self, said: Decided) -> None:
        """The app has decided, or cannot."""
        if (asked := self._open.get(said.number)) is None or asked.decided.done():
            return
        if said.fault:
            asked.decided.set_exception(Undecided(said.fault))
        else:
            asked.decided.set_result(said.decision)

    async def preview(self, wanted: Preview) -> None:
        """Send what would be sent after edits."""
        asked = self._open.get(wanted.number)

        def made() -> Previewed:
            if asked is None or asked.stop.preview is None:
                return Previewed(wanted.key, None, GONE_ON)
            try:
                return Previewed(wanted.key, asked.stop.preview(wanted.edits))
            except EditError as fault:
                return Previewed(wanted.key, None, str(fault))

        await self._channel.send_large(await asyncio.to_thread(made))


async def _listen(channel: Channel, following: _Following, gate: _AppGate) -> SessionEnd:
    """Do what the app says until the session is to end."""
    previews = set[asyncio.Task[None]]()
    while (message := await channel.received()) is not None:
        match message:
            case Took():
                following.took(message.seq)
            case Steer():
                gate.steer(message.steering)
            case Decided():
                gate.decided(message)
            case Preview():
                previews.add(task := asyncio.ensure_future(gate.preview(message)))
                task.add_done_callback(previews.discard)
            case SessionEnd():
                return message
    return SessionEnd(stopped=APP_GONE)


async def _proxy(project: Project, begin: Begin, served: Served, channel: Channel, following: _Following) -> None:
    """Serve requests and record them until the app says that the session is over, or is gone."""
    gate = _AppGate(channel, begin.steering, lambda: following.seq)
    listening = asyncio.ensure_future(_listen(channel, following, gate))
    with attached_run(project, begin.options, following.seen, following.notify) as run:
        control = Debugging(run.recorder, gate, following.say)
        async with serving(run, served, control) as variables:
            channel.send(Ready(variables))
            end = await listening
        end_session(run, end)


async def _spans(project: Project, begin: Begin, served: Served, channel: Channel, following: _Following) -> None:
    """The same with spans."""
    gate = _AppGate(channel, begin.steering, lambda: following.seq)
    listening = asyncio.ensure_future(_listen(channel, following, gate))
    with recorded_spans(project, begin.options, following.seen, following.notify) as runs:
        async with collecting(runs, served) as variables:
            channel.send(Ready(variables))
            end = await listening
        if runs.refused and not end.stopped:
            following.say(runs.refusal_words)
        end_spans(runs, end if end.stopped != STOPPED_BY_USER else SessionEnd())


async def _serve(line: socket.socket) -> None:
    """Do what the app at the other end of ``line`` asks for."""
    channel = await Channel.over(line)
    begin = await channel.received()
    if begin is None:
        return
    project, following, fault = begin.workspace.project(), _Following(channel), ""
    served = Served(socket.socket(fileno=begin.listener), begin.where, (), begin.token)
    try:
        await (_spans if begin.otlp else _proxy)(project, begin, served, channel, following)
    except Exception as error:  # noqa: BLE001 - whatever it is, the app says it
        fault = fault_words(error)
    await asyncio.sleep(0)  # What threads had to tell is sent first.
    following.rest()
    for note in project.notes:
        channel.send(Noted(note))
    channel.send(Ended(fault))
    await channel.close()


def main(number: int) -> None:
    """Serve for the app that holds the other end of the socket with this file descriptor."""
    sys.setswitchinterval(SWITCH_SECONDS)
    asyncio.run(_serve(socket.socket(fileno=number)))
