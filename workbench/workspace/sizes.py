"""Sizes of panes that the user chose, by the name of the border; they are the same in every workspace.

A damaged file is ignored, and a failed write has no effect.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from workbench.workspace.folders import Folders
from workbench.workspace.state_file import StateFile

_one_writes = threading.Lock()
"""A border that is dragged is kept by many threads, the first of which may come last."""


class _Sizes(Struct, frozen=True):
    sizes: dict[str, Any]
    format: int = 1


def load_sizes(folders: Folders) -> dict[str, int]:
    """The kept sizes; empty if nothing can be read."""
    kept = _file(folders).read_or_none()
    found = kept.sizes.items() if kept else ()
    return {name: size for name, size in found if type(size) is int and 0 < size < 10_000}


def keep_sizes(folders: Folders, sizes: Mapping[str, int]) -> None:
    """Keep all current sizes, in place of those kept before."""
    with _one_writes, suppress(OSError):
        _file(folders).write(_Sizes(dict(sizes)))


def _file(folders: Folders) -> StateFile[_Sizes]:
    return StateFile(folders.state / "sizes.json", _Sizes)
