"""What a session reports to the app and the commands: for the header, and after a save."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from workbench.workspace.opened_cascade import OpenedCascade


class HeaderFacts(Struct, frozen=True):
    """The header's statement of how calls are answered and where runs are kept."""

    model: str
    """``offline as openai/gpt-4.1-mini``, or a model name."""
    why: str = ""
    """Why it is offline."""
    base_url: str = ""
    notes: tuple[str, ...] = ()


class Reload(Struct, frozen=True):
    """What a look at the file after a save gave."""

    opened: OpenedCascade
    """The new definition; if it cannot run, its problems beside the last good one that stays in ``Session``."""
    valid: bool
    changed: frozenset[str] = frozenset()
    """Names of phases whose text changed."""
    gone: str = ""
    """Why the file could not be read."""
