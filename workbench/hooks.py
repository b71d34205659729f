"""The answers that a hook may give: nothing or CONTINUE, PAUSE, ``pause(reason)``, or ``inject(text, reason)``."""

from __future__ import annotations

from workbench.engine.contracts import HookAction
from workbench.engine.contracts import HookEvent as HookEvent

CONTINUE = HookAction.CONTINUE
PAUSE = HookAction.PAUSE


def pause(reason: str) -> tuple[HookAction, str]:
    """Pause the run, and say why; where no person is attached it stops and can be resumed."""
    return HookAction.PAUSE, reason


def inject(text: str, reason: str = "") -> tuple[HookAction, str, str]:
    """A message that the next call sees, led by ``[User injection]:``; the reason stands beside it in the context."""
    return HookAction.INJECT, text, reason
