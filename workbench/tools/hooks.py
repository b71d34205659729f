"""Asks the registered hooks, and reads what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.context.place import Place
from workbench.engine.contracts import HookAction, HookEvent, HookResult
from workbench.tools.calling import call_function
from workbench.tools.hook_registry import HookRegistration

TIMEOUT_S = 30.0
"""Seconds that one hook may take: it holds up the run."""


class RegisteredHooks:
    """The Hooks port over registered functions."""

    def __init__(self, registrations: Sequence[HookRegistration], *, timeout_s: float = TIMEOUT_S) -> None:
        self._registrations = tuple(registrations)
        self._timeout_s = timeout_s

    def wants(self, type: str) -> bool:
        return any(registration.type == type for registration in self._registrations)

    async def call(self, event: HookEvent, place: Place, index: int) -> Sequence[HookResult]:
        return [await self._one(hook, event) for hook in self._registrations if hook.type == event.type]

    async def _one(self, hook: HookRegistration, event: HookEvent) -> HookResult:
        def told() -> Any:
            return hook.function(event)

        try:
            answer = await call_function(told, {}, self._timeout_s, f"hook {hook.name}")
        except Exception as fault:  # noqa: BLE001 - a hook may raise anything: it is a warning of the run
            return HookResult(hook.name, error=f"{type(fault).__name__}: {fault}")
        return read_answer(hook.name, answer)


def read_answer(name: str, answer: object) -> HookResult:
    """The result of a hook's answer; an invalid answer is an error in words."""
    match answer:
        case None | HookAction.CONTINUE:
            return HookResult(name)
        case HookAction.PAUSE:
            return HookResult(name, HookAction.PAUSE)
        case (HookAction.PAUSE, str(reason)):
            return HookResult(name, HookAction.PAUSE, reason=reason)
        case (HookAction.INJECT, str(text)) if text.strip():
            return HookResult(name, HookAction.INJECT, text)
        case (HookAction.INJECT, str(text), str(reason)) if text.strip():
            return HookResult(name, HookAction.INJECT, text, reason)
    return HookResult(name, error=f"answered {answer!r:.80}: return CONTINUE, PAUSE, pause(reason) or inject(text)")
