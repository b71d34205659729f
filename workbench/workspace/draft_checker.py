"""A look at a cascade that is being written: its problems, and the names that it and its surroundings offer."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from workbench.files import is_there
from workbench.language.edit.completion import Names, names_of
from workbench.language.edit.navigate import Definitions, definitions_of
from workbench.language.edit.phase_names import renamed_phase
from workbench.language.problem import Problem
from workbench.models.replies import SUFFIX, read_replies
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.known_models import KnownModels, price_line
from workbench.workspace.offline_replies import check_text
from workbench.workspace.opened_cascade import included, opened

if TYPE_CHECKING:
    from workbench.language.lint.environment import LintEnvironment
    from workbench.workspace.project import Project


MOST_MODELS = 10_000
"""Models that are offered at most; the price map has some 3,000."""


class CheckedDraft(Struct, frozen=True):
    """The result of checking a text."""

    text: str
    problems: tuple[Problem, ...]
    names: Names
    definitions: Definitions = Definitions()


class DraftChecker:
    """Checks texts as if they stood in a file. What lies around the file is read once, until it is told to look again.

    ``look`` may be called from any thread, one at a time.
    """

    def __init__(self, project: Project, file: Path) -> None:
        self._project = project
        self._file = file
        self._around: LintEnvironment | None = None
        self._models: Mapping[str, str] = {}
        self._names: Names | None = None
        """Those of the last text that could be read."""
        self._lock = threading.Lock()

    def look(self, text: str) -> CheckedDraft:
        """Check a text; the cost is that of ``check``."""
        with self._lock:
            if self._file.name.endswith(SUFFIX):
                return CheckedDraft(text, self._of_replies(text), Names(), Definitions())
            real = self._file.resolve()
            if self._around is None:
                self._around = self._project.environment.lint_environment(real)
                known = KnownModels(self._project, self._file).matching("", MOST_MODELS)
                self._models = {model.name: price_line(model.price) for model in known}
            loaded = self._project.load(self._file, text)
            found = opened(
                real, self._project.shown(self._file), loaded, self._project.reader(real.parent), self._around
            )
            names = names_of(loaded, self._around)
            if loaded.cascade is None and loaded.draft is None and self._names is not None:
                names = replace(self._names, tools=names.tools)  # As while a bracket is open: phases have not gone.
            self._names = names
            models = {name: self._models.get(name.partition("::")[0], words) for name, words in names.models.items()}
            names = replace(names, models={**models, **self._models})
            return CheckedDraft(text, found.problems, names, definitions_of(loaded, self._around))

    def _of_replies(self, text: str) -> tuple[Problem, ...]:
        try:
            return check_text(self._project, self._file, text)
        except CannotOpen:  # The cascade beside it: its own check says why.
            return read_replies(text, self._project.shown(self._file)).problems

    def renamed(self, text: str, old: str, new: str) -> str:
        """A text with another name for a phase, everywhere. Raises EditError."""
        return renamed_phase(self._project.load(self._file, text).source, old, new)

    def named_elsewhere(self, text: str, name: str) -> Sequence[str]:
        """The files of instructions (``@file``) whose templates name a phase; renaming leaves them as they are."""
        loaded = self._project.load(self._file, text)
        if loaded.cascade is None:
            return ()
        texts = included(loaded.cascade, self._project.reader(self._file.parent))
        uses = re.compile(rf"\b(?:outputs|state)\s*(?:\.\s*{re.escape(name)}\b|\[\s*['\"]{re.escape(name)}['\"])")
        return [file for file, template in texts.items() if uses.search(template)]

    def file_of(self, name: str) -> Path | None:
        """The file that a cascade names, looked up beside it, then in the workspace; None if there is none."""
        for base in (self._file.parent, self._project.root):
            if is_there(base / name):
                return base / name
        return None

    def forget(self) -> None:
        """Read again what lies around, at the next look."""
        with self._lock:
            self._around = None
