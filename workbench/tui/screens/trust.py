"""The question before a run whose tools could act outside the sandbox: all that they could do, and three answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.tools.capabilities import Capability
from workbench.tools.trust import TrustDamaged
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.views.numbers import plural
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.permissions import allow, not_allowed

if TYPE_CHECKING:
    from workbench.tui.contracts import Services
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


def trust_dialog(root: Path, capabilities: Sequence[Capability]) -> ChoiceDialog:
    """Gives ``allow``, ``without``, or ``no`` (None where it is closed). Files are named relative to ``root``."""
    lines = [f"• {capability}".replace(f"{root}/", "") for capability in capabilities[:SHOWN]]
    if (more := len(capabilities) - SHOWN) > 0:
        lines.append(f"  and {plural(more, 'capability')} more: workbench trust lists them all")
    return ChoiceDialog("Trust this folder?", _TEXT.format(capabilities="\n".join(lines)), _ANSWERS)


def asks_for_trust(services: Services, session: Session, begin: Callable[[], None]) -> bool:
    """Ask about what the folder could do, unless that was asked since the app began; then ``begin`` again, unless the
    answer is not to run. False if there is nothing to ask."""
    files = (session.file,)
    try:
        missing = frozenset(not_allowed(session.project, files))
    except (CannotOpen, OSError):
        return False  # The run says what is wrong with the file.
    if missing <= services.asked_to_allow:
        return False
    services.asked_to_allow |= missing

    def chosen(answer: str | None) -> None:
        if answer == "allow":
            try:
                allow(session.project, files)
            except (TrustDamaged, OSError, ValueError) as fault:
                services.say(f"it could not be allowed: {fault}", "error")
            else:
                services.take_reload(session.reload())
        if answer in ("allow", "without"):
            begin()

    services.push_screen(trust_dialog(session.project.root, sorted(missing)), chosen)
    return True
