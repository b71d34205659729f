"""The tools that read the workspace: read_file and list_files. They run in process and change nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.context.pictured import sniff
from workbench.tools.calling import check
from workbench.tools.globs import Glob
from workbench.tools.paths import PathRefused, Workspace, is_regular

DEFAULT_LINES = 400
MAX_LINES = 2000
MAX_LINE_CHARS = 2000
MAX_CHARS = 40_000
"""Characters of one answer; the rest is named, with how to ask for it."""
MAX_ENTRIES = 500
MAX_SCANNED_BYTES = 64_000_000
"""Up to here the lines of a file are counted."""
_SNIFF_BYTES = 8192


class FileTools:
    """read_file and list_files over one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def read_file(self, path: str, start: int = 1, lines: int = DEFAULT_LINES) -> str | dict[str, Any]:
        """Read a text file of the workspace, or look at an image in it.

        Args:
            path: File, relative to the workspace.
            start: First line, counted from 1.
            lines: How many lines, at most 2000.
        """
        real = self.workspace.find(path)
        if real.is_dir():
            raise PathRefused(f"'{path}' is a folder; list_files shows what it holds")
        if not is_regular(real):
            raise PathRefused(f"'{path}' is not a regular file")
        head, size = _head(real), real.stat().st_size
        if kind := sniff(head):
            return {"content": f"{path}: {kind.media_type}, {size:,} bytes", "images": [path]}
        encoding = _encoding(head)
        if encoding is None:
            raise PathRefused(f"'{path}' is not text: {_binary_kind(head)}, {size:,} bytes")
        if start < 1 or lines < 1:
            raise ValueError("'start' and 'lines' count from 1")
        return _excerpt(real, encoding, start, min(lines, MAX_LINES))

    def list_files(self, path: str = ".", pattern: str = "*") -> str:
        """List the files and folders of a folder, with sizes in bytes.

        Args:
            path: Folder, relative to the workspace.
            pattern: Which names, as in a shell; '**/*.py' looks into folders below, too.
        """
        folder = self.workspace.find(path)
        if not folder.is_dir():
            raise PathRefused(f"'{path}' is a file; read_file shows it")
        wanted = Glob(pattern)
        deep = "/" in pattern or "**" in pattern
        found: list[str] = []
        total = 0
        for entry in self.workspace.walk(folder, deep=deep):
            name = Path(entry.path).relative_to(folder).as_posix()
            if wanted.fullmatch(name):
                total += 1
                if total <= MAX_ENTRIES:
                    found.append(_line(entry, name))
        if not total:
            return f"nothing in '{path}' matches '{pattern}'"
        rest = f"\n[{total - MAX_ENTRIES:,} more; narrow the pattern]" if total > MAX_ENTRIES else ""
        return "\n".join(found) + rest


def _line(entry: os.DirEntry[str], name: str) -> str:
    if entry.is_symlink():
        return f"{name} -> {Path(entry.path).readlink()}"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    return f"{name}  {entry.stat(follow_symlinks=False).st_size:,}"


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_SNIFF_BYTES)


def _encoding(head: bytes) -> str | None:
    """The encoding to read a text file with; None for other files."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return None if b"\0" in head else "utf-8-sig"


_MAGIC = (
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip archive or office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
    (b"PAR1", "a Parquet file (smart_sql_run reads it)"),
    (b"SQLite format 3", "an SQLite database"),
)


def _binary_kind(head: bytes) -> str:
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "binary data")


def _excerpt(path: Path, encoding: str, start: int, lines: int) -> str:
    """The lines asked for; a last line says what is left out."""
    taken: list[str] = []
    chars = number = read = 0
    full = False
    with path.open(encoding=encoding, errors="replace", newline=None) as file:
        while line := file.readline(MAX_LINE_CHARS + 1):
            check()
            number += 1
            read += len(line)
            cut, rest = _cut(line, file.readline) if not line.endswith("\n") else (line[:-1], 0)
            read += rest
            if start <= number < start + lines and not full:
                taken.append(cut)
                chars += len(cut) + 1
                full = chars > MAX_CHARS
            if read > MAX_SCANNED_BYTES:
                break
    return _framed(taken, start, number, counted=read <= MAX_SCANNED_BYTES)


def _cut(line: str, more: Callable[[int], str]) -> tuple[str, int]:
    """A line whose end has not been read yet: its beginning, and how many characters were read beyond it."""
    rest = 0
    while piece := more(1 << 16):
        check()
        rest += len(piece)
        if piece.endswith("\n"):
            rest -= 1
            break
    if len(line) + rest <= MAX_LINE_CHARS:
        return line, rest
    return f"{line[:MAX_LINE_CHARS]} […{len(line) - MAX_LINE_CHARS + rest:,} characters left out]", rest


def _framed(taken: list[str], start: int, total: int, *, counted: bool) -> str:
    if not total:
        return "(the file is empty)"
    if not taken:
        return f"(the file has {total:,} lines; there is no line {start:,})"
    last = start + len(taken) - 1
    text = "\n".join(taken)
    if start == 1 and last == total:
        return text
    of = f"{total:,}" if counted else f"more than {total:,}"
    more = f"; ask for start={last + 1} to go on" if last < total else ""
    return f"{text}\n[lines {start:,}-{last:,} of {of}{more}]"
