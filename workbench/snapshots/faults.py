"""Errors of a snapshot that show before it is replayed."""

from __future__ import annotations


class SnapshotError(Exception):
    """A snapshot that cannot be read, made or replayed; ``str`` is one line that begins with its place, if
    it has one.
    """

    def __init__(self, message: str, *, file: str = "", line: int = 0, column: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.hint = hint

    def at(self, file: str) -> SnapshotError:
        """The same, said of a file."""
        if self.file:
            return self
        return SnapshotError(self.message, file=file, line=self.line, column=self.column, hint=self.hint)

    def __str__(self) -> str:
        said = f"{self.message} ({self.hint})" if self.hint else self.message
        if not self.file:
            return said
        where = f"{self.file}:{self.line}:{self.column}:" if self.line else f"{self.file}:"
        return f"{where} error: {said}"
