"""Memory banks: what earlier runs said, one file per bank below ``memory/`` of the store, which only grows.

Several runs may add at once: each takes the file's lock, passes over what the bank holds, and appends in one write.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from workbench.context.scoring import Ranking
from workbench.engine.contracts import Memory
from workbench.store.faults import StoreError

VERSION = 1
SUFFIX = ".jsonl"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FIELDS = Memory.__struct_fields__


class MemoryHit(Struct, frozen=True):
    """A message that a search found."""

    memory: Memory
    score: float


class Bank:
    """One bank. It holds no open file; every read uses the file's current content."""

    def __init__(self, folder: Path, name: str) -> None:
        """``folder`` is ``memory/`` of the store; it is made when something is added."""
        self.name = name
        self.path = folder / f"{_file_name(name)}{SUFFIX}"
        self.damaged = 0
        """Lines that could not be read at the last look."""

    def add(self, memories: Iterable[Memory]) -> int:
        """Append those that the bank does not hold; how many there were. Raises StoreError."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise StoreError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            before = self.path.read_bytes()
            known = {memory.hash for memory in self._parsed(before)}
            fresh = {memory.hash: memory for memory in memories if memory.hash not in known}
            data = b"".join(map(_line, fresh.values()))
            if not before:
                data = json.dumps({"v": VERSION, "bank": self.name}).encode() + b"\n" + data
            elif not before.endswith(b"\n"):
                data = b"\n" + data  # A torn line ends here, and spoils no other.
            if fresh:
                _write(descriptor, data)
            return len(fresh)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def memories(self) -> list[Memory]:
        """All messages, oldest first; empty for a bank that does not exist yet. Raises StoreError."""
        try:
            return self._parsed(self.path.read_bytes())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror}") from error

    def search(self, query: str, most: int) -> tuple[list[MemoryHit], int]:
        """Returns the memories that share most with the query, best first, of equals the newer first; and how many were
        searched."""
        memories = self.memories()[::-1]
        best = Ranking([f"{memory.text} {memory.callout}" for memory in memories]).best(query, most)
        return [MemoryHit(memories[index], score) for index, score in best], len(memories)

    def _parsed(self, data: bytes) -> list[Memory]:
        found: dict[str, Memory] = {}
        self.damaged = 0
        for line in data.splitlines():
            memory = _read(line)
            if memory is not None:
                found.setdefault(memory.hash, memory)
            elif line.strip() and not line.startswith(b'{"v"'):
                self.damaged += 1
        return list(found.values())


class Banks:
    """The banks of a store."""

    def __init__(self, root: Path) -> None:
        """``root`` is the store's folder."""
        self.folder = root / "memory"

    def bank(self, name: str) -> Bank:
        return Bank(self.folder, name)

    def names(self) -> Sequence[str]:
        """Those that exist, sorted."""
        files = self.folder.glob(f"*{SUFFIX}") if self.folder.is_dir() else ()
        return sorted(filter(None, map(_name_in, files)))


def _name_in(path: Path) -> str:
    """The name of the bank in a file; empty for a file that is not a bank."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline(4096))
    except (OSError, ValueError, RecursionError):
        return ""
    name = head.get("bank", "") if isinstance(head, dict) else ""
    return name if isinstance(name, str) else ""


def _file_name(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')[:60] or 'bank'}-{digest}"


def _line(memory: Memory) -> bytes:
    return json.dumps(asdict(memory)).encode() + b"\n"


def _read(line: bytes) -> Memory | None:
    try:
        body = json.loads(line)
        return Memory(**{name: body[name] for name in _FIELDS if name in body})
    except (ValueError, TypeError, RecursionError):
        return None


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)
