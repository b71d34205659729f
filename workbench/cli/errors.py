"""How a command ends: exit codes, and the one form of error that a user sees."""

from __future__ import annotations

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

    def __init__(self, code: int, message: str, *, hint: str = "", file: str = "", line: int = 0, column: int = 0):
        super().__init__(message)
        self.code = int(code)
        self.hint = hint
        self.file = file
        self.line = line
        self.column = column

    def format_message(self) -> str:
        where = f"{self.file}:" if self.file else ""
        where += f"{self.line}:{self.column}:" if self.line else ""
        hint = f" ({self.hint})" if self.hint else ""
        return clean(f"{where}{' ' if where else ''}error: {self.message}{hint}")

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.format_message(), file=file, err=file is None)


def as_failure(error: click.ClickException) -> Failure:
    """Click's own complaints in the same form, with the way to the help."""
    if isinstance(error, Failure):
        return error
    hint = ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f"see {error.ctx.command_path} --help"
    message = error.format_message().rstrip(".")
    return Failure(error.exit_code, message[:1].lower() + message[1:], hint=hint)
