"""``workbench version``: the version of the workbench and of what decides how it behaves."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import click

from workbench import __version__
from workbench.cli.options import as_json
from workbench.cli.printer import Printer, write_json

PARTS = ("textual", "litellm", "chdb", "tiktoken")


@click.command(short_help="Print the version.")
@as_json
def command(json: bool) -> None:
    """Print the version of the workbench, of Python, and of the pinned packages that matter in a bug report.

    \b
    Examples:
      workbench version
      workbench version --json
    """
    found = {"workbench": __version__, "python": platform.python_version()} | {name: _installed(name) for name in PARTS}
    if json:
        write_json(found)
        return
    printer = Printer()
    for name, value in found.items():
        printer.line(f"{name} {value or 'not installed'}")


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
