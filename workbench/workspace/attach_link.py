"""The app's side of a session of attach: starts the process that serves and records it, takes the events that it
journals, and decides about its stops by the stepper that the Bench drives."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from workbench.child_process import exit_words, fault_words, may_fork
from workbench.context.assembly import Assembly
from workbench.context.edits import EditError
from workbench.engine.contracts import Notice
from workbench.engine.debugger.stepper import Stepper
from workbench.engine.edits import Edit
from workbench.engine.gate import Decision, StopKind
from workbench.engine.journal.event import Event
from workbench.language.clean import clean_line
from workbench.store.faults import UnknownRun
from workbench.store.journal.reading import Tail
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
    WorkspaceParts,
)
from workbench.workspace.attach_server import main
from workbench.workspace.attach_serving import Served
from workbench.workspace.attaching import AttachOptions, SessionEnd
from workbench.workspace.project import Project

TAKE_SECONDS = 0.03
"""Between two looks at a journal that grows."""
MANY, MANY_SECONDS = 16, 0.15
"""The same after so many events at once: what they change is drawn less often then, and calls get the processor."""
STEER_SECONDS = 0.02
"""Between two looks at what a person has set."""
CATCH_UP_SECONDS = 1.0
"""How long a call waits, before it is paused, for the events before it."""
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from workbench.workspace.attach_server import main
main(int(sys.argv[2]))
"""

R = TypeVar("R")


class ServingFault(Exception):
    """The process that serves a session cannot, or has ended, in a sentence."""


class ServingProcess:
    """The process that serves a session of attach. Made before the app, it is a fork, where that is safe, which has
    loaded all that it needs: another one takes a second of a core for that. It ends by itself once nobody holds the
    other end of its line any more."""

    def __init__(self, listener: socket.socket, folder: Path) -> None:
        """``listener``: where clients will connect, from now on to that process alone. ``folder``: where it runs.
        Raises OSError."""
        self.line, theirs = socket.socketpair()
        self.listener = listener.fileno()
        """Its number in that process."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the process has ended
        with theirs, listener:
            self._code = self._forked(theirs, folder) if may_fork() else self._started(theirs, folder)

    def _forked(self, theirs: socket.socket, folder: Path) -> Callable[[], int]:
        """Fork; what waits for its exit code."""
        # A session of its own: Ctrl+C and the end of the terminal are for the app, which it follows.
        gc.freeze()  # What is shared stays shared: a collection writes into every object that it looks at.
        if (pid := os.fork()) > 0:
            return cache(lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        code = 1
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for output in (1, 2):
                os.dup2(self._said.fileno(), output)
            os.chdir(folder)
            self.line.close()
            main(theirs.fileno())
            code = 0
        except BaseException:  # noqa: BLE001 - nothing of what called this may go on here
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)

    def _started(self, theirs: socket.socket, folder: Path) -> Callable[[], int]:
        """The same for a process that loads all anew."""
        fds = (theirs.fileno(), self.listener)
        words = [sys.executable, "-P", "-c", _PROGRAM, json.dumps([one for one in sys.path if one]), str(fds[0])]
        return subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            pass_fds=fds,
            start_new_session=True,
        ).wait

    def wait(self) -> str:
        """Wait until it has ended; how, and its last words."""
        code = self._code()
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return f"({exit_words(code)})" + (f" and said '{clean_line(lines[-1], 200)}'" if lines else "")


class ServingLink:
    """The app's end of a session that another process serves."""

    def __init__(
        self, project: Project, stepper: Stepper, observe: Callable[[Event], None], notify: Callable[[Notice], None]
    ) -> None:
        """``observe`` gets each event of the run, ``notify`` what the journal does not hold; both on the loop."""
        self._project = project
        self._stepper = stepper
        self._observe = observe
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Mapping[str, str]] = self._loop.create_future()
        self._tail: Tail | None = None
        self._seq = 0
        """Of the last event that was taken."""
        self._fresh = 0
        """Events since the last answer."""
        self._came = asyncio.Event()
        """Events came, or News of them."""
        self._steering = stepper.steering
        self._stops: dict[int, asyncio.Task[None]] = {}
        self._previews: dict[int, Future[Assembly]] = {}
        self._keys = count(1)
        self._answer: asyncio.TimerHandle | None = None
        self._ended: Ended | None = None

    async def start(self, process: ServingProcess, options: AttachOptions, served: Served, *, otlp: bool) -> None:
        """Have a session served."""
        self._process = process
        self._channel = await Channel.over(process.line)
        workspace, listener = WorkspaceParts.of(self._project), process.listener
        self._channel.send(Begin(workspace, options, listener, served.where, served.token, otlp, self._steering))
        self._reading = asyncio.ensure_future(self._read())
        self._steers = asyncio.ensure_future(self._keep_steering())

    async def variables(self) -> Mapping[str, str]:
        """Those that lead clients to it, once it listens. Raises ServingFault."""
        return await self.during(asyncio.shield(self._ready))

    async def during(self, work: Coroutine[Any, Any, R] | asyncio.Future[R]) -> R:
        """The result of work that needs the process. Raises ServingFault, and cancels the work, if that ends before."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._reading}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise await self._lost()
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def end(self, end: SessionEnd) -> None:
        """Have the record closed, and wait until that is done and all events were taken. Raises ServingFault."""
        self._channel.send(end)
        await self._reading
        if self._ended is None or self._ended.fault:
            raise await self._lost()

    async def close(self) -> None:
        """Let go of it."""
        self._steers.cancel()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await asyncio.to_thread(self._process.wait)

    async def _lost(self) -> ServingFault:
        """Why it serves no more."""
        if self._ended is not None and self._ended.fault:
            return ServingFault(self._ended.fault)
        how = await asyncio.to_thread(self._process.wait)
        return ServingFault(
            f"the process that passes calls on and records them ended {how}: the session is over, and its record holds "
            "what was journaled before"
        )

    # -- what the process says -----------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while (message := await self._channel.received()) is not None:
                self._take_message(message)
        finally:
            self._take()
            for stop in self._stops.values():
                stop.cancel()
            for preview in self._previews.values():
                preview.set_exception(EditError("the session is over"))
            self._previews.clear()
            await self._channel.close()

    def _take_message(self, message: Any) -> None:
        match message:
            case Ready():
                self._ready.set_result(message.variables)
            case News():
                with suppress(UnknownRun):  # Somebody has removed it.
                    self._tail = self._tail or self._project.store.tail(message.run_id)
                self._take()
                self._answer_soon()
            case Unsaved():
                self._take()
                self._give(message.events)
                self._answer_soon()
            case Asked():
                task = asyncio.ensure_future(self._decide(message))
                self._stops[message.number] = task
                task.add_done_callback(lambda _: self._stops.pop(message.number, None))
            case Withdrawn():
                if (stop := self._stops.get(message.number)) is not None:
                    stop.cancel()
            case Previewed():
                if (preview := self._previews.pop(message.key, None)) is not None:
                    if message.assembly is None:
                        preview.set_exception(EditError(message.fault))
                    else:
                        preview.set_result(message.assembly)
            case Told():
                self._notify(message.notice)
            case Noted():
                if message.note not in self._project.notes:
                    self._project.notes.append(message.note)
            case Ended():
                self._ended = message

    def _take(self) -> None:
        """Take the events that the journal has grown by."""
        if self._tail is not None:
            with suppress(OSError):  # The same. The process says what its disk does not take.
                self._give(self._tail.poll())

    def _give(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.seq <= self._seq:
                continue
            self._fresh += 1
            self._seq = event.seq
            self._observe(event)
        self._came.set()

    def _answer_soon(self) -> None:
        if self._answer is None:
            seconds = MANY_SECONDS if self._fresh > MANY else TAKE_SECONDS
            self._answer = self._loop.call_later(seconds, self._answer_news)

    def _answer_news(self) -> None:
        self._answer, self._fresh = None, 0
        self._take()
        self._channel.send(Took(self._seq))

    # -- what the person says ------------------------------------------------------------------------------------------

    async def _keep_steering(self) -> None:
        while True:
            await asyncio.sleep(STEER_SECONDS)
            self._steer()

    def _steer(self) -> None:
        """Tell the process what a person has set since."""
        if (now := self._stepper.steering) != self._steering:
            self._steering = now
            self._channel.send(Steer(now))

    async def _decide(self, asked: Asked) -> None:
        """Pause a call, or not, as the stepper says. Its client waits for an answer, so a fault is one, too."""
        try:
            decided = Decided(asked.number, await self._decision(asked))
        except Exception as fault:  # noqa: BLE001 - whatever it is
            decided = Decided(asked.number, Decision(), fault_words(fault))
        self._steer()  # The next call may come as soon as this one goes on.
        self._channel.send(decided)

    async def _decision(self, asked: Asked) -> Decision:
        stop = asked.stop
        if stop.kind is StopKind.BEFORE_CALL:
            stop = replace(stop, preview=partial(self._preview, asked.number))
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                await self._caught_up(asked.seq)
        return await self._stepper(stop)

    async def _caught_up(self, seq: int) -> None:
        """Wait until the events up to this one are taken: the Bench shows a paused call behind them."""
        self._take()
        while self._seq < seq:
            self._came.clear()
            self._answer_news()
            await self._came.wait()

    def _preview(self, number: int, edits: Sequence[Edit]) -> Assembly:
        """What would be sent after edits of a paused call; asked for from a thread of the app. Raises EditError."""
        made: Future[Assembly] = Future()

        def ask() -> None:
            if self._reading.done():
                made.set_exception(EditError("the session is over"))
                return
            self._previews[key := next(self._keys)] = made
            self._channel.send(Preview(key, number, tuple(edits)))

        try:
            self._loop.call_soon_threadsafe(ask)
        except RuntimeError:
            raise EditError("the session is over") from None
        return made.result()


@asynccontextmanager
async def served_apart(
    project: Project,
    stepper: Stepper,
    observe: Callable[[Event], None],
    notify: Callable[[Notice], None],
    process: ServingProcess,
    options: AttachOptions,
    served: Served,
    *,
    otlp: bool,
) -> AsyncIterator[ServingLink]:
    """A session that is served as long as the block lasts."""
    link = ServingLink(project, stepper, observe, notify)
    await link.start(process, options, served, otlp=otlp)
    try:
        yield link
    finally:
        await link.close()
