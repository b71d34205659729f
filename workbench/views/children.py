"""What a run inside another is called, wherever a row or a title stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.views.cells import flat

if TYPE_CHECKING:
    from workbench.engine.journal.state import RunState


def child_name(child: RunState | None, session_id: str = "") -> str:
    """Returns the cascade that it runs; until that is known, its session."""
    name = flat(child.cascade_id) if child is not None else ""
    return name or flat(child.session_id if child is not None else session_id)


def child_remark(kind: str, session_id: str, around: str, name: str) -> str:
    """Returns what tells a child run from the others of its cascade: how it was started, and its session as far as the
    run around it (the session ``around``) does not say it. ``timeline`` of ``postmortem-7f3a_sub_0``: ``sub_0``."""
    own = flat(session_id.removeprefix(around).lstrip("_-") if around else session_id)
    told = own if own.startswith(kind) else f"{kind} {own}".strip()
    return told.removesuffix(name).rstrip()
