"""A workspace as cascades are opened and run in it: the stored one with its tools, its trust and its files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.journal.own_secrets import without_secrets
from workbench.engine.journal.redact import Redactor
from workbench.language.load import Loaded, load
from workbench.models.env import Dotenv
from workbench.models.env import load as load_env
from workbench.workspace.environment import Environment
from workbench.workspace.opened_cascade import FileReader, OpenedCascade, opened, read_bytes
from workbench.workspace.stored import StoredWorkspace


@dataclass
class Project(StoredWorkspace):
    """A workspace with all that lies around its cascades: tools, validators, trust."""

    @cached_property
    def environment(self) -> Environment:
        """What is around the cascades of this workspace: tools, validators, trust."""
        return Environment(self)

    def open(self, file: Path, allow: Collection[str] = ()) -> OpenedCascade:
        """Read and check a cascade file; ``allow``: errors of a pipeline that count as warnings. Raises CannotOpen when
        it cannot be read."""
        return self.check(file, self.load(file, read_bytes(file, self.shown(file))), allow)

    def load(self, file: Path, text: bytes | str) -> Loaded:
        """Read a text as if it were the file's, without the checks that take longer."""
        return load(text, self.shown(file))

    def check(self, file: Path, loaded: Loaded, allow: Collection[str] = ()) -> OpenedCascade:
        """Check the content read from a file."""
        real = file.resolve()
        around = self.environment.lint_environment(real)
        around = replace(around, allow=tuple(allow)) if allow else around
        return opened(real, self.shown(file), loaded, self.reader(real.parent), around)

    def reader(self, folder: Path) -> FileReader:
        """Returns the reader of files that a cascade in ``folder`` names."""
        return FileReader(folder, self.root, self.settings.tackle_dirs)

    def variables(self, *, trusted: bool) -> Mapping[str, str]:
        """The process's variables, over those of the workspace's ``.env`` where a person has trusted the folder."""
        return self.dotenv.over(self.env) if trusted else self.env

    @property
    def dotenv(self) -> Dotenv:
        """The workspace's ``.env`` as it is now; empty if there is none."""
        file = self.root / ".env"
        return load_env(file) if os.path.lexists(file) else Dotenv()

    def redactor(self, *, base_url: str = "", shapes: bool | None = None) -> Redactor:
        """Returns the redactor that replaces secrets in texts of runs. The values of ``.env`` are secrets in any
        folder: only setting them as variables takes trust."""
        env = self.variables(trusted=True)
        return Redactor({**env, "BASE_URL": base_url}, self.settings.redact == "all" if shapes is None else shapes)

    def is_pinned(self, text: str, pinned: str) -> bool:
        """Returns whether a file's text is the one that a run was started with, secrets aside: the run has labels for
        them."""
        text, pinned = text.removeprefix("\ufeff"), pinned.removeprefix("\ufeff")
        if text == pinned or "[redacted " not in pinned:
            return text == pinned
        try:
            return without_secrets(Definition.of(text), self.redactor()).source.text == pinned
        except DefinitionError:
            return False


def new_session_id(cascade_id: str, digits: str = "") -> str:
    """A session id for a run without one: the cascade's name and eight digits, random unless they are given."""
    slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in cascade_id if c.isascii())[:60].strip("-._")
    return f"{slug or 'run'}-{digits or uuid.uuid4().hex[:8]}"
