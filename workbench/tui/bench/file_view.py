"""The cascade file as the panes show it: also one that cannot be read any more, or does not hold a cascade now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from workbench.language.graph import Graph
    from workbench.language.model.cascade import Cascade
    from workbench.language.problem import Problem
    from workbench.language.read.source import Source
    from workbench.workspace.opened_cascade import OpenedCascade
    from workbench.workspace.session import Session


class FileView(Struct, frozen=True):
    """The cascade file as it was last read: the newest text, and the last definition that can run."""

    shown: str
    cascade: Cascade | None
    source: Source
    problems: tuple[Problem, ...] = ()
    saved: str = ""
    gone: str = ""
    good: bool = True
    """Whether there is a version that can run, if not this one."""
    kept: FileView | None = None
    """The version that ``cascade`` comes from, when this text holds none."""
    graph: Graph | None = None
    """The graph of the file; None where there is none."""


def file_view(session: Session, opened: OpenedCascade, saved: str, gone: str = "") -> FileView:
    """An opened file as the panes show it."""
    good = session.runnable is not None
    read = (opened.shown, opened.cascade, opened.source, opened.problems)
    return FileView(*read, saved, gone, good, graph=opened.graph)
