"""``python -m bench.graphs [-v] [--trusted] FOLDER...``: what becomes of graph files: loaded, rejected, run, replayed.

Each pipeline (``.dot .gv .fabro``) and decomposition (JSON with ``sub_tasks``) is checked. One without errors runs on a
copy of its folder that nobody has trusted, with the offline model: placeholders answer, and the first choice of each
question is taken. With ``--trusted`` the copy is trusted: commands run in the sandbox, without network. What ran is
replayed strictly from its journal. ``-v`` prints every problem. Exits 1 when a replay is not equal, or a file makes
the program fail.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.command import run_cli
from workbench.language.read.endings import DOT_ENDINGS
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.freeze import Label
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots

SECONDS = "20"
"""How long one file may run."""


@dataclass
class Row:
    """What became of one file."""

    file: str
    loaded: str = ""
    """yes, warned or rejected; crashed where the program failed."""
    why: str = ""
    """The first error, or why the run did not succeed."""
    ran: str = "-"
    replay: str = "-"
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return "crashed" not in (self.loaded, self.ran) and self.replay in ("-", "equal")

    def __str__(self) -> str:
        return f"{self.loaded:9} {self.ran:9} {self.replay:7} {self.file}" + (
            f"\n{'':28}{self.why}" if self.why else ""
        )


def graph_files(folder: Path) -> Iterator[Path]:
    """The graph files of a folder and those below it, sorted."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (path.name.endswith(DOT_ENDINGS) or (path.suffix == ".json" and _is_job(path))):
            yield path


def _is_job(path: Path) -> bool:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        return False
    return isinstance(body, dict) and "sub_tasks" in body


def tried(path: Path, shown: str, number: int, snapshots: Snapshots) -> Row:
    """Check, run and replay one file of the current workspace."""
    row = Row(shown)
    try:
        problems: list[dict[str, Any]] = run_cli("check", path, "--json").json
        row.problems = [told(one) for one in problems]
        errors = [one for one in problems if one["severity"] == "error"]
        row.loaded = "rejected" if errors else "warned" if any(p["severity"] == "warning" for p in problems) else "yes"
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            row.why = told(errors[0]) + more
            return row
    except Exception as fault:  # noqa: BLE001  The table is to show what fails, and go on.
        row.loaded, row.why = "crashed", f"{type(fault).__name__}: {fault}"
        return row
    session = f"g{number}"
    try:
        run_cli("run", path, "-m", "offline", "--unscripted", "ok", "--auto-approve", "--session", session, "-q")
        run = run_cli("show", session, "--json").json
        row.ran, row.why = run["status"], run["reason"] or ""
        snapshots.prepare(run["run_id"], Label(session))
        row.replay = "equal"
    except SnapshotError as fault:
        row.replay, row.why = "differs", f"{row.why}; {fault}"
    except Exception as fault:  # noqa: BLE001
        row.ran, row.why = "crashed", f"{type(fault).__name__}: {fault}"
    return row


def told(problem: dict[str, Any]) -> str:
    """A problem in one line."""
    hint = f" ({problem['hint']})" if problem.get("hint") else ""
    return (
        f"{problem['line']}:{problem['column']}: {problem['severity']}: {problem['message']}{hint} [{problem['code']}]"
    )


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 where a file shows a fault of the program."""
    verbose, trusted = "-v" in arguments, "--trusted" in arguments
    folders = [Path(one).resolve() for one in arguments if one not in ("-v", "--trusted")]
    if not folders:
        print("error: name at least one folder", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch).resolve()
            shutil.copytree(folder, root / "work", ignore=shutil.ignore_patterns(".git", ".workbench"))
            os.chdir(root / "work")
            own = {"STATE_DIR": root / "state", "CONFIG_DIR": root / "config", "MAX_SECONDS": SECONDS}
            os.environ |= {f"WORKBENCH_{name}": str(value) for name, value in own.items()}
            if trusted:
                run_cli("trust", "--yes")
            with Snapshots(Project.at(root / "work")) as snapshots:
                for number, path in enumerate(graph_files(root / "work")):
                    row = tried(path, str(path.relative_to(root / "work")), number, snapshots)
                    rows.append(row)
                    print(row, flush=True)
                    for line in row.problems if verbose else ():
                        print(f"{'':28}  {line}")
            os.chdir("/")
    counts = Counter(f"{row.loaded}, {row.ran}" if row.ran != "-" else row.loaded for row in rows)
    print(f"{len(rows)} files: " + "; ".join(f"{count} {name}" for name, count in counts.most_common()))
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
