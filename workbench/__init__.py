"""The Cascade Workbench: see what every model call of an LLM workflow saw, why, and what it cost."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "register_tackle"]


def register_tackle(name: str, function: Callable[..., Any], *, side_effects: bool = True) -> None:
    """Offer a function as a tool, and as a validator, under a name (``workbench.tools.registry.register_tackle``).

    ``side_effects=False`` promises that calling it twice changes nothing. Raises TypeError or ValueError when name or
    function cannot be one.
    """
    # By name and late: the package itself stands below every layer and imports none.
    importlib.import_module("workbench.tools.registry").register_tackle(name, function, side_effects=side_effects)
