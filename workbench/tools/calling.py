"""Calls a tool's function, plain or async, with a deadline: a plain one in a thread of its own, which cannot be ended
from outside, but is told that its result is no longer wanted. A function of the user's may keep the interpreter itself
(a regular expression does), and with it every deadline and signal of this process: another process watches that."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from workbench.tools.registry import Function

Result = TypeVar("Result")

STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
"""Set for the work of one call; the event is set when the call is over."""


class Stopped(Exception):
    """The call ran out of time, or was cancelled."""


def check() -> None:
    """Go on, or raise Stopped. Loops over what may be large call it."""
    event = STOP.get()
    if event is not None and event.is_set():
        raise Stopped


class TimedOut(TimeoutError):
    """A function that did not return in time. A thread cannot be ended: what it does may go on."""


async def finished(work: Callable[..., Result], *arguments: Any) -> Result:
    """Returns the result of work over files that must not go on by itself: if this is cancelled, the work is told to
    stop (``check``) and waited for."""
    over, context = threading.Event(), contextvars.copy_context()
    context.run(STOP.set, over)
    running = asyncio.ensure_future(asyncio.to_thread(context.run, work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        over.set()
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # Read, so that asyncio does not log it.
        raise


async def call_function(
    function: Function, arguments: Mapping[str, Any], timeout_s: float, users: str | None = None
) -> Any:
    """Returns the result of the function. Raises TimedOut, or the function's own exception; SystemExit becomes
    RuntimeError. ``users`` says what a function that is not this program's is called; such a call is watched.

    A thread and not a pool: one that hangs must neither hold up the next call nor the end of the program.
    """
    with _watched(users, timeout_s) if users is not None else contextlib.nullcontext():
        if inspect.iscoroutinefunction(function):
            return await _awaited(function(**arguments), timeout_s)
        result = await _in_thread(function, arguments, timeout_s)
        return await _awaited(result, timeout_s) if inspect.isawaitable(result) else result


async def _awaited(waiting: Any, timeout_s: float) -> Any:
    try:
        async with asyncio.timeout(timeout_s) as deadline:
            return await waiting
    except TimeoutError:
        if deadline.expired():
            raise TimedOut(f"no result within {timeout_s:g} s") from None
        raise
    except (SystemExit, KeyboardInterrupt) as fault:
        raise _carried(fault) from fault


async def _in_thread(function: Function, arguments: Mapping[str, Any], timeout_s: float) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()
    over = threading.Event()
    context.run(STOP.set, over)

    def work() -> None:
        result, fault = None, None
        try:
            result = context.run(function, **arguments)
        except BaseException as raised:  # noqa: BLE001 - handed to the caller, whatever it is
            fault = _carried(raised)
        with contextlib.suppress(RuntimeError):  # The loop has closed: no caller waits any more.
            loop.call_soon_threadsafe(_settle, done, result, fault)

    threading.Thread(target=work, name=f"tool {getattr(function, '__name__', '')}", daemon=True).start()
    try:
        async with asyncio.timeout(timeout_s) as deadline:
            return await done
    except TimeoutError:
        if deadline.expired():
            raise TimedOut(f"no result within {timeout_s:g} s; it may still be running") from None
        raise
    finally:
        over.set()


def _carried(fault: BaseException) -> Exception:
    """The fault in a form that a future can hold and that ends only the call."""
    if isinstance(fault, Exception) and not isinstance(fault, StopIteration):
        return fault
    ends = isinstance(fault, (SystemExit, KeyboardInterrupt))
    return RuntimeError("the tool tried to end the program" if ends else f"{type(fault).__name__}: {fault}")


def _settle(done: asyncio.Future[Any], result: Any, fault: Exception | None) -> None:
    if done.done():
        if inspect.iscoroutine(result):
            result.close()  # The time was over before it came: it never begins.
        return
    if fault is not None:
        done.set_exception(fault)
    else:
        done.set_result(result)


# The process that watches this one while functions of the user's run.

_WATCH = Path(__file__).with_name("outside.py")
_BEAT_S = 0.5
_calls = itertools.count(1)


class _Watcher:
    """The watching process; started for the first call, and again in a copy of this process. It ends with us."""

    def __init__(self) -> None:
        self._process, self._pipe = 0, -1

    def tell(self, line: str) -> None:
        """Write a line to it; where there can be none, the calls are not watched."""
        if self._process != os.getpid():
            self._process, self._pipe = os.getpid(), -1
            with contextlib.suppress(OSError):
                self._pipe = _started()
        with contextlib.suppress(OSError):
            os.write(self._pipe, f"{line}\n".encode(errors="replace"))


def _started() -> int:
    """Starts it in our group of processes, so that Ctrl+C reaches it too; its stdin."""
    there, here = os.pipe()
    try:
        os.set_blocking(here, False)
        argv = [sys.executable, "-I", "-S", "-B", str(_WATCH), str(os.getpid())]
        actions = [(os.POSIX_SPAWN_DUP2, there, 0)]
        os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setsigmask=[signal.SIGINT])
    except OSError:
        os.close(here)
        raise
    finally:
        os.close(there)
    return here


_watcher = _Watcher()


@contextmanager
def _watched(name: str, timeout_s: float) -> Iterator[None]:
    """Have it known that Python goes on, while a call lasts. In the main thread that means that the loop does, where
    signals arrive; under the app, which has them itself, any thread."""
    identity, over = next(_calls), threading.Event()
    _watcher.tell(f"+{identity} {timeout_s:g} {' '.join(name.split())}")

    def beat() -> None:
        if not over.is_set():
            _watcher.tell(f"={identity}")
            loop.call_later(_BEAT_S, beat)

    def beats() -> None:
        while not over.wait(_BEAT_S):
            _watcher.tell(f"={identity}")

    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        loop.call_later(_BEAT_S, beat)
    else:
        threading.Thread(target=beats, name="beats", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        _watcher.tell(f"-{identity}")
