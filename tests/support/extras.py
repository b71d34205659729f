"""What only an extra brings: looked for without importing it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs(*modules: str, extra: str) -> None:
    """Skip the module that calls this at its top where one of these is not installed.

    Every worker collects all tests; ``pytest.importorskip`` would import in each of them what the tests of one need,
    or only the programs that they start.
    """
    if any(find_spec(module) is None for module in modules):
        pytest.skip(f"the {extra} extra is not installed: pip install -e '.[dev]'", allow_module_level=True)
