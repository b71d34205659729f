"""Writing a strategy into a cascade file from the command line: what changes is shown, then asked, then written."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.errors import Exit, Failure, writing
from workbench.cli.printer import Printer, talk, write_json
from workbench.views.value import Cell
from workbench.workspace.comparing import write_change

if TYPE_CHECKING:
    from workbench.workspace.comparing import FileChange


def apply_change(
    change: FileChange, strategy: str, body: Mapping[str, Any] | None, *, yes: bool, printer: Printer
) -> None:
    """Show the change of the file, ask, write, and name the file.

    ``body``: the JSON to print with it under ``apply``; None to print for a person. Raises Failure and ApplyError.
    """
    if change.is_stale:
        now = "'file' and the change below are of the file as it is now"
        talk(f"{change.shown} has changed since this run: {now}", "warning")
    if change.lines and body is None:
        _print_change(change.lines, printer)
        for sentence in change.words:
            printer.line(sentence)
    written = bool(change.lines) and (yes or (body is None and _agreed(strategy, change.shown)))
    if written:
        with writing(change.shown):
            write_change(change)
    if body is not None:
        told = {
            "file": change.shown,
            "strategy": strategy,
            "phases": list(change.phases),
            "dropped": list(change.dropped),
        }
        write_json({**body, "apply": told | {"change": change.lines, "written": written}})
    elif not change.lines:
        talk(f"{change.shown} already uses it in every phase concerned; nothing to write")
    elif written:
        talk(f"written: {change.shown}", "ok")
    else:
        raise Failure(Exit.FAILED, f"nothing was written to {change.shown}", hint="--yes writes without asking")


def _print_change(change: list[str], printer: Printer) -> None:
    printer.line()
    styles = {"+": "ok", "-": "error", "@": "dim"}
    for line in change:
        printer.line(Cell(line.rstrip("\r\n"), "head" if line[:3] in ("+++", "---") else styles.get(line[:1], "")))


def _agreed(strategy: str, file: str) -> bool:
    return sys.stdin.isatty() and click.confirm(f"Write {strategy} into {file}?", default=False, err=True)
