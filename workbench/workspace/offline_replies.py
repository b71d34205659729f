"""The offline replies beside a cascade: finds them, reads them, and checks whether they fit the cascade."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.engine.engine_tools import SPAWN
from workbench.files import read_plain
from workbench.language.lint.family import Family
from workbench.language.problem import Problem, Severity
from workbench.language.read.endings import FILE_ENDINGS
from workbench.models.replies import SUFFIX, ReadReplies, Replies, read_replies
from workbench.models.replies_check import AnsweredCascades, misfits
from workbench.workspace.opened_cascade import read_bytes

if TYPE_CHECKING:
    from workbench.workspace.opened_cascade import OpenedCascade
    from workbench.workspace.project import Project


class RepliesError(Exception):
    """The offline replies cannot be used; the message has file, line and column."""


def replies_of(file: Path | None) -> Replies:
    """The scripted replies beside a cascade. Raises RepliesError when the file cannot be read."""
    if file is None:
        return Replies()
    path = file.with_name(file.stem + SUFFIX)
    try:
        text = read_plain(path)
    except FileNotFoundError:
        return Replies(file=str(path))
    except OSError as fault:
        raise RepliesError(f"{path.name}: error: cannot be read: {fault.strerror}") from fault
    read = read_replies(text, path.name)
    _refuse(read.problems)
    return read.replies


def check_replies(project: Project, file: Path) -> tuple[Problem, ...]:
    """The problems of a file of replies, by itself and for the cascade beside it, if there is one. Raises
    CannotOpen.
    """
    return check_text(project, file, read_bytes(file, project.shown(file)))


def check_text(project: Project, file: Path, text: str | bytes) -> tuple[Problem, ...]:
    """The same of a text, as if it stood in the file. Raises CannotOpen where the cascade beside it cannot be read."""
    read = read_replies(text, project.shown(file))
    stem = file.name.removesuffix(SUFFIX)
    cascade = next((path for ending in FILE_ENDINGS if (path := file.with_name(stem + ending)).is_file()), None)
    if cascade is None:
        return read.problems
    return (*read.problems, *_misfits(project, project.open(cascade), read))


def require_fitting(project: Project, opened: OpenedCascade) -> None:
    """Raises RepliesError where the replies beside a cascade cannot answer a run of it: for errors, not warnings."""
    path = opened.file.with_name(opened.file.stem + SUFFIX)
    if path.is_file():
        shown = project.shown(path)
        read = read_replies(read_bytes(path, shown), shown)
        _refuse((*read.problems, *_misfits(project, opened, read)))


def _misfits(project: Project, opened: OpenedCascade, read: ReadReplies) -> list[Problem]:
    if opened.cascade is None:
        return []
    family = Family(opened.source, opened.cascade, project.environment.lint_environment(opened.file))
    cascades = family.cascades
    phases = [phase for cascade in cascades for phase in cascade.phases]
    graph = opened.graph if opened.graph is not None and opened.graph.format != "cascade" else None
    # The phases of child graphs are not read here.
    children = graph is not None and any(node.kind == "subgraph" for node in graph.nodes)
    complete = family.readable and not children and not any(SPAWN in phase.tools for phase in phases)
    return misfits(read.replies, read.source, AnsweredCascades(cascades, complete, graph))


def _refuse(problems: tuple[Problem, ...]) -> None:
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if errors:
        raise RepliesError("\n".join(str(problem) for problem in errors))
