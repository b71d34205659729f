"""The user's own folders, outside every workspace. Imports little: the app needs them before its first frame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs
from msgspec import Struct

APP = "cascade-workbench"


class Folders(Struct, frozen=True):
    """The user's own folders."""

    config: Path
    state: Path

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Folders:
        """From ``WORKBENCH_CONFIG_DIR`` and ``WORKBENCH_STATE_DIR``, else the system's usual places."""
        config = env.get("WORKBENCH_CONFIG_DIR") or platformdirs.user_config_dir(APP)
        state = env.get("WORKBENCH_STATE_DIR") or platformdirs.user_state_dir(APP)
        return cls(Path(config), Path(state))


def at_home(path: Path) -> str:
    """A path with ``~`` for the user's home folder. Never raises, even without such a folder."""
    try:
        home = Path.home()
    except RuntimeError:
        return str(path)
    return f"~/{path.relative_to(home)}" if home != Path("/") and path.is_relative_to(home) else str(path)


ROOT_VARIABLES = ("WORKBENCH_ROOT", "WINDLASS_ROOT")
"""Variables that name the workspace; the first that is set counts."""


def workspace_root(env: Mapping[str, str]) -> Path:
    """``WORKBENCH_ROOT`` (``WINDLASS_ROOT``), else the current folder; real path."""
    named = next((env[name] for name in ROOT_VARIABLES if env.get(name)), ".")
    return Path(named).expanduser().resolve()
