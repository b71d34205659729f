"""Signal handlers that native code must not take away, kept from any thread."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager

TAKEN = ("SIGTSTP", "SIGABRT", "SIGSEGV", "SIGILL", "SIGBUS", "SIGSYS", "SIGFPE", "SIGTRAP")
"""What importing the engine takes, and turning its handlers off sets to the default instead of giving it back."""


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Afterwards the signals mean what they meant before. ``signal.signal`` could not do it outside the main thread."""
    get, set_ = ctypes.pythonapi.PyOS_getsig, ctypes.pythonapi.PyOS_setsig
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_int]
    set_.restype, set_.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
    before = {number: get(number) for name in TAKEN if (number := getattr(signal, name, None)) is not None}
    try:
        yield
    finally:
        for number, handler in before.items():
            set_(number, handler)
