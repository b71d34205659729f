"""The capabilities of a workspace outside the sandbox: which are not allowed yet, and allowing them."""

from collections.abc import Sequence
from pathlib import Path

from workbench.tools.capabilities import Capability, Manifest
from workbench.tools.trust import Trust
from workbench.workspace.project import Project
from workbench.workspace.system import SystemClock


def manifest_of(project: Project, files: Sequence[Path] = ()) -> Manifest:
    """Of the workspace, its folders of tools, and the folders of these cascades. Raises CannotOpen."""
    folders = [project.root, *(project.root / name for name in project.settings.tackle_dirs)]
    found = [project.environment.manifest(folder) for folder in folders if folder.is_dir()]
    for file in files:
        cascade = project.open(file).cascade
        reached = project.environment.reached(file, cascade) if cascade is not None else ()
        found.append(project.environment.manifest(file.resolve().parent, *reached))
    return Manifest(tuple(sorted({c for manifest in found for c in manifest.capabilities})))


def not_allowed(project: Project, files: Sequence[Path] = ()) -> tuple[Capability, ...]:
    """Returns the capabilities that a person would have to allow before these cascades may do all that they could."""
    return Trust(project.folders.state).missing(project.root, manifest_of(project, files))


def allow(project: Project, files: Sequence[Path] = ()) -> None:
    """Allow what the workspace could do as it is now. Raises ValueError for a link, TrustDamaged, OSError."""
    Trust(project.folders.state).grant(project.root, manifest_of(project, files), SystemClock().now())
