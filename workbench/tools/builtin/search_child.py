"""Searches files for an expression. A program of its own, so that an expression that never ends can be killed.

Standard input is JSON: the arguments of ``search``, with ``files`` as pairs of path and shown name. Standard output is
JSON: ``matches`` (shown name, line number, line), ``more``, ``skipped``; or ``error`` where the expression is none.
"""

import json
import os
import re
import sys


def search(
    pattern: str, ignore_case: bool, files: list[tuple[str, str]], max_matches: int, max_line: int, max_bytes: int
) -> dict[str, object]:
    try:
        expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as fault:
        return {"error": str(fault)}
    matches: list[tuple[str, int, str]] = []
    more = skipped = 0
    for path, shown in files:
        text = read(path, max_bytes)
        if text is None:
            skipped += 1
            continue
        for number, line in enumerate(text.splitlines(), 1):
            found = expression.search(line)
            if found and len(matches) < max_matches:
                matches.append((shown, number, around(line, found.start(), max_line)))
            elif found:
                more += 1
    return {"matches": matches, "more": more, "skipped": skipped}


def read(path: str, max_bytes: int) -> str | None:
    """The text of a file; None when it is binary, too large, or cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read() if os.fstat(file.fileno()).st_size <= max_bytes else b"\0"
    except OSError:
        return None
    return None if b"\0" in data[:8192] else data.decode("utf-8", "replace")


def around(line: str, at: int, longest: int) -> str:
    """The line, or the part of it around the match."""
    if len(line) <= longest:
        return line
    begin = max(0, min(at - longest // 4, len(line) - longest))
    end = begin + longest
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"


if __name__ == "__main__":
    json.dump(search(**json.load(sys.stdin)), sys.stdout)
