"""The files of the user's state folder: a JSON object of a known shape each, read whole and replaced whole."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from workbench.files import write_whole

T = TypeVar("T", bound=msgspec.Struct)


class StateFile(Generic[T]):
    """One of them. ``shape`` is the struct that it holds; keys that the struct does not name are passed over."""

    def __init__(self, path: Path, shape: type[T]) -> None:
        self.path = path
        self._shape = shape

    @classmethod
    def about(cls, folder: Path, subject: Path, shape: type[T]) -> StateFile[T]:
        """The file in ``folder`` for data about another file or folder, named by a digest of its path."""
        name = hashlib.sha256(str(subject).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return cls(folder / f"{name}.json", shape)

    def read(self) -> T:
        """Its content. Raises OSError if it cannot be read, ValueError for invalid content."""
        text = self.path.read_text("utf-8")
        try:
            # Python's own reader takes halves of surrogate pairs, which the names of files may hold.
            return msgspec.convert(json.loads(text), self._shape)
        except RecursionError as fault:
            raise ValueError("it is nested too deeply") from fault
        except msgspec.ValidationError as fault:  # No ValueError before msgspec 0.21.
            raise ValueError(str(fault)) from fault

    def read_or_none(self) -> T | None:
        """The same; None if it cannot be read, is damaged, or was never written."""
        try:
            return self.read()
        except (OSError, ValueError):
            return None

    def write(self, value: T) -> None:
        """Put a value in place of the one before, for the user's eyes alone. Raises OSError."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.path, (json.dumps(msgspec.to_builtins(value), indent=1) + "\n").encode("ascii"), 0o600)

    def remove(self) -> None:
        """Delete the file; a failure is ignored."""
        with suppress(OSError):
            self.path.unlink()
