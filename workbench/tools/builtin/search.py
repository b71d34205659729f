"""The tool search_files: an expression over the text files of the workspace, in a child with a deadline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypedDict

from workbench.tools.calling import call_function
from workbench.tools.paths import Workspace, is_regular
from workbench.tools.sandbox.limits import PATH
from workbench.tools.sandbox.process import run_process

MAX_MATCHES = 200
MAX_LINE_CHARS = 300
MAX_FILES = 20_000
MAX_FILE_BYTES = 8_000_000
TIMEOUT_S = 20.0
_CHILD = Path(__file__).with_name("search_child.py")


class SearchTool:
    """search_files over one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    async def search_files(self, pattern: str, path: str = ".", ignore_case: bool = False) -> str:
        """Find the lines of the workspace's text files that match a regular expression.

        Args:
            pattern: A Python regular expression.
            path: File or folder to search, relative to the workspace.
            ignore_case: Treat small and capital letters alike.
        """
        start = self.workspace.find(path)
        files = await call_function(lambda: self._files(start), {}, TIMEOUT_S)
        job = {
            "pattern": pattern,
            "ignore_case": ignore_case,
            "files": files[:MAX_FILES],
            "max_matches": MAX_MATCHES,
            "max_line": MAX_LINE_CHARS,
            "max_bytes": MAX_FILE_BYTES,
        }
        ended = await run_process(
            [sys.executable, "-I", "-S", "-B", str(_CHILD)],
            cwd=self.workspace.root,
            env={"PATH": PATH, "LANG": "C.UTF-8"},
            timeout_s=TIMEOUT_S,
            output_bytes=4_000_000,
            stdin=json.dumps(job).encode(),
        )
        if ended.timed_out:
            raise TimeoutError(f"the search took longer than {TIMEOUT_S:g} s; use a simpler expression or a subfolder")
        if ended.exit_code != 0:
            raise RuntimeError(f"the search failed: {ended.stderr.strip().splitlines()[-1:]}")
        found = json.loads(ended.stdout)
        if error := found.get("error"):
            raise ValueError(f"'{pattern}' is not a regular expression: {error}")
        return _report(found, len(files), pattern)

    def _files(self, start: Path) -> list[tuple[str, str]]:
        if not start.is_dir():
            return [(str(start), self.workspace.shown(start))] if is_regular(start) else []
        return [
            (entry.path, self.workspace.shown(Path(entry.path)))
            for entry in self.workspace.walk(start)
            if entry.is_file(follow_symlinks=False)
        ]


class _SearchResult(TypedDict):
    matches: list[tuple[str, int, str]]
    more: int
    skipped: int


def _report(found: _SearchResult, files: int, pattern: str) -> str:
    notes: list[str] = []
    if more := found["more"]:
        notes.append(f"{more:,} more matches; narrow the expression or the path")
    if skipped := found["skipped"]:
        notes.append(f"{skipped:,} files skipped: binary, larger than {MAX_FILE_BYTES // 1_000_000} MB, or unreadable")
    if files > MAX_FILES:
        notes.append(f"only the first {MAX_FILES:,} of {files:,} files were searched")
    lines = [f"{shown}:{number}: {line}" for shown, number, line in found["matches"]]
    lines = lines or [f"no line matches '{pattern}'"]
    return "\n".join([*lines, *(f"[{note}]" for note in notes)])
