"""How a command ends: exit codes, and the one form of error that a user sees."""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import IO, Any

import click

from workbench.language.clean import clean


class Exit(IntEnum):
    """Exit codes of every command. A signal n gives 128 + n."""

    OK = 0
    FAILED = 1
    """The run or test did not succeed, or ``check`` found errors."""
    USAGE = 2
    """A wrong command line, or a file that cannot run."""
    TRUST = 3
    PROVIDER = 4
    """The provider of the model, or its credentials."""
    STORE = 5
    INTERRUPTED = 130


class Failure(click.ClickException):
    """Ends the command with ``file:line:column: error: message (hint)`` on stderr."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        hint: str = "",
        file: str = "",
        line: int = 0,
        column: int = 0,
        complete: bool = False,
    ) -> None:
        """``complete``: the message has its place and the word "error" already."""
        super().__init__(message)
        self.code = int(code)
        self.hint = hint
        self.file = file
        self.line = line
        self.column = column
        self.complete = complete

    def format_message(self) -> str:
        where = f"{self.file}:" if self.file else ""
        where += f"{self.line}:{self.column}:" if self.line else ""
        hint = f" ({self.hint})" if self.hint else ""
        kind = "" if self.complete else "error: "
        return clean(f"{where}{' ' if where else ''}{kind}{self.message}{hint}")

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.format_message(), file=file, err=file is None)


_KNOWN = (
    ("workbench.store.faults", "UnknownRun", Exit.USAGE),
    ("workbench.store.faults", "StoreError", Exit.STORE),
    ("workbench.snapshots.faults", "SnapshotError", Exit.USAGE),
    ("workbench.workspace.settings", "SettingsError", Exit.USAGE),
    ("workbench.workspace.opened", "CannotOpen", Exit.USAGE),
    ("workbench.workspace.wiring", "RepliesError", Exit.USAGE),
    ("workbench.engine.definition", "DefinitionError", Exit.USAGE),
)
"""Exceptions of the library that have a sentence for a person: module, class, exit code; the first match counts."""


def as_failure(error: Exception) -> Failure | None:
    """The same complaint in the one form; None for what nobody expected. Imports nothing."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, click.ClickException):
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        message = error.format_message().rstrip(".")
        hint = f"see {command} --help" if command else ""
        return Failure(error.exit_code, message[:1].lower() + message[1:], hint=hint)
    for module, name, code in _KNOWN:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return Failure(code, str(error), complete=": error: " in str(error))
    return None
