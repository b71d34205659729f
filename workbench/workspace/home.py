"""The cascades of a folder for the home screen: found by a quick look, and checked one by one."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from workbench.language.problem import Severity
from workbench.language.read.endings import DOT_ENDINGS, FILE_ENDINGS
from workbench.models.replies import SUFFIX
from workbench.resources import folder
from workbench.workspace.folders import Folders
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.state_file import StateFile

if TYPE_CHECKING:
    from workbench.workspace.project import Project

# Finds the cascade files of a folder: what is checked where a folder is named.

TOOL = ".tool.json"
"""The definition of a tool."""
_TOP = re.compile(rb'^(?:\xef\xbb\xbf)?[ \t]*[{"]?[ \t]*"?(?:cascade_id|phases|sub_tasks)"?[ \t]*:', re.MULTILINE)
_SNAPSHOT = re.compile(rb'\s*\{\s*"snapshot_name"')
_DIGRAPH = re.compile(rb"^[ \t]*(?:strict\s+)?(?:di)?graph\b[ \t\r\n]*\"?([^\"\s{]{0,128})", re.MULTILINE)
_LOOKED_AT = 1_000_000
"""Bytes of a file; a longer one is not a cascade anyway."""


TEST_DATA = frozenset({"data", "fixtures", "testdata", "golden", "stored"})
"""Folders in a folder of tests that hold what tests read: their files are parts of tests, not cascades to open."""
TESTS = frozenset({"test", "tests", "__tests__"})


def cascades_in(folder: Path, deepest: int | None = None) -> list[Path]:
    """The cascades of a folder and those below it, as far as ``deepest`` levels, their offline replies and the
    definitions of tools, sorted by path.

    A cascade is a YAML or JSON file with a line that begins with ``cascade_id``, ``phases`` or ``sub_tasks``; pipelines
    in DOT count as cascades. Hidden folders,
    installed packages, frozen snapshots, links and pipes are passed over. Raises OSError where the folder cannot be
    read.
    """
    return sorted(path for path in _files(folder, deepest) if is_checked(path))


def is_checked(path: Path) -> bool:
    """Returns whether a file holds a cascade, offline replies or a tool. True for one that cannot be read: its check
    says why."""
    return path.name.endswith((SUFFIX, TOOL)) or _is_cascade(path)


def _files(folder: Path, deepest: int | None) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        if error.filename == str(folder):
            raise error

    for place, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [
            name for name in folders if not name.startswith(".") and name not in ("node_modules", "snapshots")
        ]
        if deepest is not None and len(Path(place).relative_to(folder).parts) >= deepest:
            folders.clear()
        for name in names:
            path = Path(place, name)
            if name.endswith(FILE_ENDINGS) and not name.startswith(".") and not path.is_symlink() and path.is_file():
                yield path


def _is_cascade(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            kind = _DIGRAPH if path.name.endswith(DOT_ENDINGS) else _TOP
            text = file.read(_LOOKED_AT)
            return bool(kind.search(text)) and not _SNAPSHOT.match(text)
    except OSError:
        return True  # Whoever checks it says why it cannot be read.


# The examples that come with the program, copied to where a user may change them.

TOUR = "log_triage"
"""The example that a first look begins with."""


def example_files(where: Path) -> list[Path]:
    """The cascades among the example files, sorted."""
    beside = (".replies.yaml", ".input.json", ".answers.json")
    return sorted(path for path in where.iterdir() if path.suffix in FILE_ENDINGS and not path.name.endswith(beside))


def copy_examples(target: Path | None) -> Path:
    """Copy all examples with their data; into a new folder when none is named. Files that are there stay as they are.

    Raises CannotOpen when the folder cannot be written.
    """
    try:
        if target is None:
            target = Path(tempfile.mkdtemp(prefix="cascade-workbench-"))
        target = target.expanduser().resolve()
        for source in sorted(folder("cascades").rglob("*")):
            relative = source.relative_to(folder("cascades"))
            if source.is_dir() or any(part.startswith(".") or part == "__pycache__" for part in relative.parts):
                continue
            copy = target / relative
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists():
                shutil.copyfile(source, copy)
    except OSError as error:
        raise CannotOpen(f"{target}: error: the examples cannot be copied: {error.strerror}") from error
    return target


class _Demos(Struct, frozen=True):
    """The folders that demos were copied to, the newest last."""

    folders: tuple[str, ...] = ()


_KEPT_DEMOS = 20
"""Folders of demos that are remembered."""


def _demos_file(folders: Folders) -> StateFile[_Demos]:
    return StateFile(folders.state / "demos.json", _Demos)


def keep_demo(folders: Folders, target: Path) -> None:
    """Remember the folder of a demo; a failure is ignored."""
    kept = _demos_file(folders).read_or_none() or _Demos()
    others = [one for one in kept.folders if one != str(target)]
    with suppress(OSError):
        _demos_file(folders).write(_Demos((*others, str(target))[-_KEPT_DEMOS:]))


class DemoFolder(Struct, frozen=True):
    """The folder of a demo; ``earlier`` is the newest other one that holds runs, if any."""

    earlier: Path | None = None


def demo_at(folders: Folders, root: Path) -> DemoFolder | None:
    """The demo whose folder is the workspace; None for any other folder."""
    kept = _demos_file(folders).read_or_none()
    if kept is None or str(root) not in kept.folders:
        return None
    others = (Path(one) for one in reversed(kept.folders) if one != str(root))
    return DemoFolder(next((one for one in others if _holds_runs(one)), None))


def _holds_runs(folder: Path) -> bool:
    try:
        return any(folder.glob(".workbench/journal/*"))
    except OSError:
        return False


_DEEPEST, _MOST = 3, 500
"""Levels of folders that are looked into, and cascades that are listed: a home folder holds a million files."""
_HEAD = 64 * 1024
"""Bytes of a file that are looked at."""
_ID = re.compile(rb"""^[\s{,]*["']?cascade_id["']?\s*:\s*["']?([^"'\s,}]{1,128})""", re.MULTILINE)


class ListedCascade(Struct, frozen=True):
    """A cascade file as it is listed before it is read properly."""

    file: Path
    shown: str
    cascade_id: str


class CheckedCascade(Struct, frozen=True):
    """The result of checking a file."""

    file: Path
    description: str = ""
    phases: int = 0
    errors: int = 0
    warnings: int = 0
    infos: int = 0
    first: str = ""
    """The first error, or why the file cannot be read."""
    inputs: Mapping[str, str] = {}
    """The inputs of a run of it: names, and a description of each."""


def cascade_files(project: Project) -> list[ListedCascade]:
    """The cascades in the folder of a workspace and a few levels below it, the nearest first; also those that cannot be
    parsed: that is when one wants to open them. Without data of tests, which ``check`` looks at all the same. Raises
    OSError."""
    listed = (path for path in cascades_in(project.root, _DEEPEST) if not path.name.endswith((SUFFIX, TOOL)))
    paths = [path for path in listed if not _is_test_data(path.relative_to(project.root).parts[:-1])]
    found = [ListedCascade(path, project.shown(path), _id(path)) for path in paths[:_MOST]]
    return sorted(found, key=lambda one: (one.shown.count(os.sep), one.shown))


def _is_test_data(folders: tuple[str, ...]) -> bool:
    """Returns whether a path of folders leads into the data of tests: ``tests/data``, ``tests/unit/fixtures``."""
    inside = next((at for at, name in enumerate(folders) if name in TESTS), len(folders))
    return not TEST_DATA.isdisjoint(folders[inside + 1 :])


def _id(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found = (_DIGRAPH if path.name.endswith(DOT_ENDINGS) else _ID).search(file.read(_HEAD))
    except OSError:
        return ""
    return found[1].decode("utf-8", "replace") if found else ""


def checked(project: Project, file: Path) -> CheckedCascade:
    """Read and check one file."""
    try:
        opened = project.open(file)
    except CannotOpen as fault:
        return CheckedCascade(file, errors=1, first=str(fault))
    errors = opened.errors
    severities = [problem.severity for problem in opened.problems]
    found = len(errors), severities.count(Severity.WARNING), severities.count(Severity.INFO)
    cascade = opened.cascade
    about = (cascade.description or "").partition("\n")[0] if cascade is not None else ""
    first = str(errors[0]) if errors else ""
    if cascade is None:
        return CheckedCascade(file, about, 0, *found, first)
    return CheckedCascade(file, about, len(cascade.phases), *found, first, cascade.inputs_schema)
