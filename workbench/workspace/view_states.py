"""How a cascade file was shown when the app was closed: which run and call, which pane, what was folded; and the sizes
of panes that the user chose.

One file for each workspace in the user's state folder, and one for the sizes, which are the same in every workspace. A
damaged file is ignored (that of a workspace with a notice), and a failed write has no effect.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from workbench.workspace.folders import Folders
from workbench.workspace.state_file import StateFile

_MOST = 200
"""Files that are remembered of a workspace, the last ones used."""


class ViewState(Struct, frozen=True):
    """The kept state of the screen. Sizes in cells, rows from 0; empty texts and None if nothing was chosen."""

    run_id: str = ""
    call: str = ""
    """Place of the selected call, in full."""
    phase: str = ""
    pane: str = ""
    tab: str = ""
    zoomed: bool = False
    row: int = 0
    """Of the context, under its cursor."""
    top: int = 0
    """The first row of the context in view."""
    node: tuple[str, ...] = ()
    """The node of the tree under its cursor."""
    folded: tuple[tuple[str, ...], ...] = ()
    unfolded: tuple[tuple[str, ...], ...] = ()
    tree_width: int | None = None
    dock_height: int | None = None
    detail: str = ""
    full: bool = False
    dropped: bool = False
    """Whether dropped messages are unfolded."""


class _Views(Struct, frozen=True):
    files: dict[str, dict[str, Any]]
    workspace: str = ""
    format: Literal[1] = 1


class ViewStates(Struct, frozen=True):
    """The views of a workspace by file, as messages name it; the last one used comes last."""

    by_file: Mapping[str, ViewState] = field(default_factory=dict)
    notice: str = ""
    """Why nothing is known although a file was kept."""

    @property
    def last(self) -> str:
        """The file that was used last."""
        return next(reversed(dict(self.by_file)), "")


def load_views(folders: Folders, root: Path) -> ViewStates:
    """The views that are kept of a workspace."""
    file = views_file(folders, root)
    try:
        kept = file.read()
        return ViewStates({name: _view(view) for name, view in kept.files.items()})
    except FileNotFoundError:
        return ViewStates()
    except (OSError, UnicodeDecodeError) as fault:
        return ViewStates(notice=f"what was open last is forgotten: {file.path} cannot be read: {_why(fault)}")
    except ValueError as fault:
        return ViewStates(notice=f"what was open last is forgotten: {file.path}: {fault}")


def keep_view(folders: Folders, root: Path, file: str, view: ViewState) -> None:
    """Keep the view of a file, beside those of others. Raises OSError."""
    others = {name: kept for name, kept in load_views(folders, root).by_file.items() if name != file}
    newest = dict([*others.items(), (file, view)][-_MOST:])
    views_file(folders, root).write(_Views({name: asdict(kept) for name, kept in newest.items()}, str(root)))


def views_file(folders: Folders, root: Path) -> StateFile[_Views]:
    """The file with the views of a workspace."""
    return StateFile.about(folders.state / "views", root, _Views)


def _why(fault: OSError | UnicodeDecodeError) -> str:
    return fault.strerror or str(fault) if isinstance(fault, OSError) else "it is not UTF-8"


def _view(kept: Mapping[str, Any]) -> ViewState:
    """Fields of other types than expected are left at their defaults: a screen must never be ruined by them."""
    values: dict[str, Any] = {}
    for name, usual in asdict(ViewState()).items():
        value = kept.get(name)
        if name == "node":
            value = _texts(value)
        elif name in ("folded", "unfolded"):
            value = tuple(_texts(each) for each in value) if isinstance(value, list) else ()
        elif usual is None:
            value = value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
        elif type(value) is not type(usual):
            value = usual
        values[name] = value
    return ViewState(**values)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


_one_writes = threading.Lock()
"""A border that is dragged is kept by many threads, the first of which may come last."""


class _Sizes(Struct, frozen=True):
    """Cells by the name of the border."""

    sizes: dict[str, Any]
    format: int = 1


def load_sizes(folders: Folders) -> dict[str, int]:
    """The kept sizes; empty if nothing can be read."""
    kept = _sizes_file(folders).read_or_none()
    found = kept.sizes.items() if kept else ()
    return {name: size for name, size in found if type(size) is int and 0 < size < 10_000}


def keep_sizes(folders: Folders, sizes: Mapping[str, int]) -> None:
    """Keep all current sizes, in place of those kept before."""
    with _one_writes, suppress(OSError):
        _sizes_file(folders).write(_Sizes(dict(sizes)))


def _sizes_file(folders: Folders) -> StateFile[_Sizes]:
    return StateFile(folders.state / "sizes.json", _Sizes)
