"""The question before a run whose tools could act outside the sandbox: all that they could do, and three answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.tools.manifest import Capability
from workbench.tools.trust import TrustDamaged
from workbench.tui.rows.numbers import plural
from workbench.tui.screens.dialog import Choice
from workbench.tui.watching import Reloaded
from workbench.workspace.allowing import allow, not_allowed
from workbench.workspace.opened import CannotOpen

if TYPE_CHECKING:
    from workbench.tui.app import WorkbenchApp
    from workbench.workspace.session import Session

SHOWN = 15
_TEXT = (
    "This folder could do the following outside the sandbox. Until you allow it, such tools are refused, the model is "
    "told so, and keys in .env are not read.\n\n{capabilities}\n\nThe permission is kept for this folder and this "
    "content: a changed tool asks again, a changed prompt does not."
)
_ANSWERS = (
    ("without", "w", "Run without them"),
    ("allow", "a", "Allow all of this, and run"),
    ("no", "n", "Do not run"),
)


def trust_dialog(root: Path, capabilities: Sequence[Capability]) -> Choice:
    """Gives ``allow``, ``without``, or ``no`` (None where it is closed). Files are named relative to ``root``."""
    lines = [f"  {capability}".replace(f"{root}/", "") for capability in capabilities[:SHOWN]]
    if (more := len(capabilities) - SHOWN) > 0:
        lines.append(f"  and {plural(more, 'capability')} more: workbench trust lists them all")
    return Choice("Trust this folder?", _TEXT.format(capabilities="\n".join(lines)), _ANSWERS)


def asks_for_trust(app: WorkbenchApp, session: Session, begin: Callable[[], None]) -> bool:
    """Ask what nobody was asked since the app began, and ``begin`` again unless the answer is not to run; False where
    there is nothing to ask."""
    files = (session.file,)
    try:
        missing = frozenset(not_allowed(session.project, files))
    except (CannotOpen, OSError):
        return False  # The run says what is wrong with the file.
    if missing <= app.asked_to_allow:
        return False
    app.asked_to_allow |= missing

    def chosen(answer: str | None) -> None:
        if answer == "allow":
            try:
                allow(session.project, files)
            except (TrustDamaged, OSError, ValueError) as fault:
                app.say(f"it could not be allowed: {fault}", "error")
            else:
                app.on_reloaded(Reloaded(session.reload()))
        if answer in ("allow", "without"):
            begin()

    app.push_screen(trust_dialog(session.project.root, sorted(missing)), chosen)
    return True
