"""Files that come with the package (examples, templates, themes), in a checkout and in an installed wheel alike."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).resolve().parent


def folder(name: Literal["cascades", "templates", "themes"]) -> Path:
    """Returns where the shipped files lie: beside the package in a checkout, inside it when installed from a wheel.

    Raises FileNotFoundError when the installation is incomplete.
    """
    for candidate in (_PACKAGE / "data" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the installation is incomplete: no folder '{name}' beside {_PACKAGE}")


def theme_folders(config: Path | None = None) -> tuple[Path, ...]:
    """Returns where themes lie: those that come with the workbench, then the user's own."""
    own = (config / "themes",) if config is not None else ()
    return (folder("themes"), *own)
