"""A look at a cascade that is being written: its problems, and the names that it and its surroundings offer."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from workbench.language.edit.completion import Names, names_of
from workbench.language.problem import Problem
from workbench.workspace.opened_cascade import opened

if TYPE_CHECKING:
    from workbench.language.lint.surroundings import LintEnvironment
    from workbench.workspace.project import Project


class CheckedDraft(Struct, frozen=True):
    """What one look at a text gave."""

    text: str
    problems: tuple[Problem, ...]
    names: Names


class DraftChecker:
    """Checks texts as if they stood in a file. What lies around the file is read once, until it is told to look again.

    ``look`` may be called from any thread, one at a time.
    """

    def __init__(self, project: Project, file: Path) -> None:
        self._project = project
        self._file = file
        self._around: LintEnvironment | None = None
        self._lock = threading.Lock()

    def look(self, text: str) -> CheckedDraft:
        """Check a text; the cost is that of ``check``."""
        with self._lock:
            real = self._file.resolve()
            if self._around is None:
                self._around = self._project.environment.surroundings(real)
            loaded = self._project.load(self._file, text)
            found = opened(real, self._project.shown(self._file), loaded, self._project.root, self._around)
            return CheckedDraft(text, found.problems, names_of(loaded, self._around))

    def forget(self) -> None:
        """Read again what lies around, at the next look."""
        with self._lock:
            self._around = None
