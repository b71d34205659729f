"""Calls a tool's function, plain or async, with a deadline: a plain one in a thread of its own, which cannot be ended
from outside, but is told that its result is no longer wanted."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from workbench.tools.registry import Function

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


async def call_function(function: Function, arguments: Mapping[str, Any], timeout_s: float) -> Any:
    """Returns the result of the function. Raises TimedOut, or the function's own exception; SystemExit becomes
    RuntimeError.

    A thread and not a pool: one that hangs must neither hold up the next call nor the end of the program.
    """
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
