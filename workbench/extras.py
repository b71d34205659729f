"""The parts of the workbench whose libraries are installed only on request, and what is said where one is missing."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final, Literal

Extra = Literal["archive", "browser", "charts", "dask", "data", "images", "mcp", "otel", "serve", "server"]

MODULES: Final[dict[Extra, str]] = {
    "archive": "fsspec",
    "browser": "playwright",
    "charts": "matplotlib",
    "dask": "distributed",
    "data": "duckdb",
    "images": "PIL",
    "mcp": "mcp",
    "otel": "opentelemetry.exporter.otlp",
    "serve": "textual_serve",
    "server": "clickhouse_connect",
}
"""The module that each extra of ``pyproject.toml`` is wanted for."""


def is_installed(extra: Extra) -> bool:
    """Returns whether the module of an extra can be imported. It is not imported here."""
    try:
        return find_spec(MODULES[extra]) is not None
    except ImportError:
        return False


def install_line(extra: Extra) -> str:
    """The command that installs an extra."""
    return f"pip install 'cascade-workbench[{extra}]'"


def not_installed(extra: Extra) -> str:
    """Says that an extra is missing and how to install it."""
    return f"the {extra} extra is not installed: {install_line(extra)}"


def missing(extra: Extra) -> str:
    """The same where it is missing; empty where it is installed."""
    return "" if is_installed(extra) else not_installed(extra)
