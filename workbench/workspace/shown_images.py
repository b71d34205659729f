"""The images that a question shows: those of its run by digest, and files of the workspace by path."""

from __future__ import annotations

from pathlib import Path

from workbench.engine.ports import ToolImage
from workbench.store.faults import StoreError
from workbench.tools.images import ImageRefused, read_image
from workbench.tools.paths import PathRefused
from workbench.workspace.project import Project


class NoImage(Exception):
    """An image that cannot be shown; the message says why."""


def image_of(project: Project, folder: Path, run_id: str, *, digest: str = "", path: str = "") -> ToolImage:
    """The bytes of an image, with what they say of themselves. ``folder`` is that of the cascade, whose paths may be
    relative to it. Raises NoImage."""
    try:
        if digest:
            return ToolImage(project.store.image(run_id, digest), "")
        return read_image(project.around.workspace(folder).find(path), path)
    except (StoreError, PathRefused, ImageRefused, OSError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise NoImage(reason) from fault
