"""The Cascade Workbench: see what every model call of an LLM workflow saw, why, and what it cost."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # The name that type checkers know: typing itself would be most of what this module loads.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__version__ = "0.2.0"
__all__ = [
    "CurrentCall",
    "EventBus",
    "__version__",
    "current_call",
    "get_cascade_costs",
    "get_context",
    "get_request",
    "get_session_messages",
    "get_soundings_analysis",
    "index_of",
    "list_runs",
    "query_unified",
    "register_hook",
    "register_tackle",
    "run_cascade",
    "run_cascade_async",
    "search_text",
]


def register_tackle(name: str, function: Callable[..., Any], *, side_effects: bool = True) -> None:
    """Offer a function as a tool, and as a validator, under a name (``workbench.tools.registry.register_tackle``).

    ``side_effects=False`` promises that calling it twice changes nothing. Raises TypeError or ValueError when name or
    function cannot be one.
    """
    # By name and late: the package itself stands below every layer and imports none.
    importlib.import_module("workbench.tools.registry").register_tackle(name, function, side_effects=side_effects)


def register_hook(name: str, function: Callable[..., Any]) -> None:
    """Have a function told of a run's life: ``register_hook("on_phase_start", function)``
    (``workbench.tools.hook_registry.register_hook``).

    What it may answer is in ``workbench.hooks``. Raises TypeError or ValueError for what is no hook.
    """
    importlib.import_module("workbench.tools.hook_registry").register_hook(name, function)


_LATE = {
    "CurrentCall": "workbench.engine.current",
    "EventBus": "workbench.engine.lifecycle",
    "current_call": "workbench.engine.current",
    **dict.fromkeys(
        (
            *("get_cascade_costs", "get_context", "get_request", "get_session_messages", "get_soundings_analysis"),
            *("index_of", "list_runs", "query_unified", "search_text"),
        ),
        "workbench.workspace.api",
    ),
    "run_cascade": "workbench.workspace.api",
    "run_cascade_async": "workbench.workspace.api",
}


def __getattr__(name: str) -> Any:
    """The library's larger parts, imported when they are first asked for."""
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    raise AttributeError(f"module 'workbench' has no attribute '{name}'")
