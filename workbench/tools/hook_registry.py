"""The registered hooks: functions that Python files of ``tools/`` and programs give to ``register_hook``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from workbench.engine.contracts import HookEvent
from workbench.engine.lifecycle import HOOKS

Hook = Callable[[HookEvent], Any]
"""Plain or async. Returns None or CONTINUE, PAUSE, ``pause(reason)`` or ``inject(text, reason)``."""


class HookRegistration(Struct, frozen=True):
    """One call of ``register_hook``."""

    type: str
    """Of the events: ``phase_start`` for ``on_phase_start``."""
    function: Hook

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


_collecting: ContextVar[list[HookRegistration] | None] = ContextVar("collecting_hooks", default=None)
_registered: list[HookRegistration] = []


def register_hook(name: str, function: Hook) -> None:
    """Have a function told of every event of a type, ``on_phase_start`` for example.

    In a Python file of a workspace's ``tools/`` folder it holds for the runs of that workspace; in a program of your
    own for every run that begins afterwards. Raises TypeError or ValueError for what is no hook.
    """
    registration = HookRegistration(type_of(name), function)
    if not callable(function):
        raise TypeError(f"hook '{name}' is not a function: {function!r}")
    collected = _collecting.get()
    (_registered if collected is None else collected).append(registration)


def type_of(name: str) -> str:
    """The type of event behind the name of a hook. Raises ValueError where there is none."""
    if name not in HOOKS:
        raise ValueError(f"there is no hook '{name}'; there are {', '.join(HOOKS)}")
    return name.removeprefix("on_")


def registered() -> tuple[HookRegistration, ...]:
    """Returns the hooks that the running program registered outside any workspace file."""
    return tuple(_registered)


@contextmanager
def collecting() -> Iterator[list[HookRegistration]]:
    """Everything that ``register_hook`` gets inside the block (in this thread or task) goes into the list."""
    collected: list[HookRegistration] = []
    token = _collecting.set(collected)
    try:
        yield collected
    finally:
        _collecting.reset(token)


def has_hooks(source: bytes) -> bool:
    """Returns whether a Python file registers a hook, by its text alone."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any((getattr(f, "id", "") or getattr(f, "attr", "")) == "register_hook" for f in calls)


def hooks_of(given: object) -> tuple[HookRegistration, ...]:
    """The hooks of a mapping by name, or of an object by its methods ``on_…``. Raises ValueError for unknown names."""
    if isinstance(given, Mapping):
        named = list(given.items())
    else:
        named = [(name, getattr(given, name)) for name in dir(given) if name.startswith("on_")]
    return tuple(HookRegistration(type_of(str(name)), function) for name, function in named)
