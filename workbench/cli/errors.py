"""How a command ends: exit codes, and the one form of error that a user sees."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from workbench.language.clean import clean

if TYPE_CHECKING:
    from workbench.language.problem import Problem


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


_PLACED = re.compile(r"(?:(?P<file>.+?)(?::(?P<line>\d+)(?::(?P<column>\d+))?)?: )?error: (?P<message>.*)", re.DOTALL)
"""The form in which the library names a place in its messages."""


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
        problems: Sequence[Problem] = (),
    ) -> None:
        """``complete``: the message has its place and the word "error" already. ``problems``: all of a file's."""
        super().__init__(message)
        self.code = int(code)
        self.hint = hint
        self.file = file
        self.line = line
        self.column = column
        self.complete = complete
        self.problems = tuple(problems)

    def format_message(self) -> str:
        where = f"{self.file}:" if self.file else ""
        where += f"{self.line}:{self.column}:" if self.line else ""
        hint = f" ({self.hint})" if self.hint else ""
        kind = "" if self.complete else "error: "
        return clean(f"{where}{' ' if where else ''}{kind}{self.message}{hint}")

    def show(self, file: IO[Any] | None = None, *, as_json: bool = False) -> None:
        """Write it to stderr: as text, or as one line of JSON, an object with the only key ``error``."""
        if as_json:
            line = json.dumps({"error": self.to_json()}, ensure_ascii=True, separators=(",", ":"))
            click.echo(line, file=file, err=file is None)
            return
        if self.problems:
            from workbench.cli.printer import talk  # rich takes 80 ms, and --help does without it

            for problem in self.problems:
                talk(str(problem), "error")
        click.echo(self.format_message(), file=file, err=file is None)

    def to_json(self) -> dict[str, Any]:
        """Returns the named facts of the failure; null where there is none. ``kind`` is that of the exit code."""
        file, line, column, message = self.file, self.line, self.column, self.message
        if self.complete and (placed := _PLACED.fullmatch(message)) is not None:
            file, message = placed["file"] or "", placed["message"]
            line, column = int(placed["line"] or 0), int(placed["column"] or 0)
        kind = Exit(self.code).name.lower() if self.code in Exit.__members__.values() else "failed"
        return {
            "kind": kind,
            "exit_code": self.code,
            "message": message,
            "file": file or None,
            "line": line or None,
            "column": column or None,
            "hint": self.hint or None,
            "problems": [problem.to_json() for problem in self.problems],
        }


def wants_json(arguments: Sequence[str]) -> bool:
    """Returns whether a command line asks for JSON, so that its errors are JSON too, also those of the command line
    itself."""
    own = list(arguments[: list(arguments).index("--")]) if "--" in arguments else list(arguments)
    formats = own[1:] if own[:1] == ["sql"] else []
    asked = ("--format", "json") in pairwise(formats)
    return "--json" in own or "--format=json" in formats or asked


@contextmanager
def writing(file: Path | str) -> Iterator[None]:
    """Around what writes a file that the user named. Raises Failure if the system refuses."""
    try:
        yield
    except OSError as fault:
        raise Failure(Exit.USAGE, f"cannot be written: {fault.strerror}", file=str(file)) from fault


@contextmanager
def reading(file: Path | str) -> Iterator[None]:
    """Around what reads a file that the user named. Raises Failure if the system refuses, or the text is not UTF-8."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "not UTF-8"
        raise Failure(Exit.USAGE, f"cannot be read: {reason}", file=str(file)) from fault


_KNOWN = (
    ("workbench.store.faults", "SessionTaken", Exit.USAGE),
    ("workbench.store.faults", "UnknownRun", Exit.USAGE),
    ("workbench.store.faults", "StoreError", Exit.STORE),
    ("workbench.snapshots.faults", "SnapshotError", Exit.USAGE),
    ("workbench.workspace.settings", "SettingsError", Exit.USAGE),
    ("workbench.workspace.input_file", "CannotOpen", Exit.USAGE),
    ("workbench.workspace.text_file", "CannotSave", Exit.USAGE),
    ("workbench.workspace.offline_replies", "RepliesError", Exit.USAGE),
    ("workbench.engine.definition", "DefinitionError", Exit.USAGE),
    ("workbench.engine.past.fork", "NoSuchPlace", Exit.USAGE),
    ("workbench.engine.journal.annotations", "AnnotationError", Exit.USAGE),
    ("workbench.context.apply", "ApplyError", Exit.USAGE),
    ("workbench.context.strategy", "SpecError", Exit.USAGE),
    ("workbench.context.edits", "EditError", Exit.USAGE),
    ("workbench.models.repricing", "PricesError", Exit.USAGE),
    ("workbench.workspace.batch.planning", "BatchError", Exit.USAGE),
    ("workbench.workspace.batch.inputs", "InputsError", Exit.USAGE),
    ("workbench.workspace.batch.judging", "NeedsTrust", Exit.TRUST),
    ("workbench.workspace.live_runs", "LiveRunError", Exit.USAGE),
    ("workbench.workspace.attach_serving", "CannotStart", Exit.USAGE),
    ("workbench.attach.providers", "BadAddress", Exit.USAGE),
    ("workbench.workspace.playground", "PlaygroundError", Exit.USAGE),
    ("workbench.workspace.archive.workers", "WorkersFault", Exit.FAILED),
    ("workbench.store.run_filter", "FilterError", Exit.USAGE),
)
"""Exceptions of the library that have a sentence for a person: module, class, exit code; the first match counts."""


def as_failure(error: Exception) -> Failure | None:
    """The error in the common form; None for an unexpected exception. Imports nothing."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, click.ClickException):
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        message = error.format_message().rstrip(".")
        hint = f"see {command} --help" if command else ""
        if isinstance(error, click.MissingParameter) and error.param is not None and error.param.name == "session":
            hint = f"workbench runs lists them; {hint}"
        if _asks_for_the_offline_model(error):  # What click takes for similar is not.
            message, hint = "No such option '--offline'", "the offline model is '-m offline'"
        return Failure(error.exit_code, message[:1].lower() + message[1:], hint=hint)
    for module, name, code in _KNOWN:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            facts = vars(error)
            if name == "FilterError":
                message, hint, column = facts["message"], facts["hint"], facts["column"]
                return Failure(code, message, hint=hint, file="FILTER", line=1, column=column)
            if name == "SpecError":
                message = f"strategy '{facts['spec']}', column {facts['column']}: {facts['message']}"
                return Failure(code, message, hint=facts["hint"] or "for example selective+mask(after=3)")
            return Failure(code, str(error), complete=": error: " in str(error))
    return None


def _asks_for_the_offline_model(error: click.ClickException) -> bool:
    """Whether somebody wrote ``--offline`` where models are chosen by ``-m``."""
    if not isinstance(error, click.NoSuchOption) or error.option_name != "--offline" or error.ctx is None:
        return False
    return any("-m" in parameter.opts for parameter in error.ctx.command.params)
