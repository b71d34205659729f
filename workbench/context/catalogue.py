"""The parts that a strategy can be built of. A new one is a module under ``parts`` and a row here."""

from __future__ import annotations

from collections.abc import Callable

from workbench.context.parts.auto import Auto
from workbench.context.parts.budget import Budget
from workbench.context.parts.clear import Clear
from workbench.context.parts.entering import Inject, Selective, Snowball
from workbench.context.parts.fidelity import Fidelity
from workbench.context.parts.loop import Loop
from workbench.context.parts.mask import Mask
from workbench.context.parts.part import Part, PhaseInFile
from workbench.context.parts.slide import Slide

FROM_FILE: tuple[Callable[[PhaseInFile], Part | None], ...] = (
    Auto.from_file,
    Selective.from_file,
    Inject.from_file,
    Fidelity.from_file,
    Snowball.from_file,
    Mask.from_file,
    Loop.from_file,
    Budget.from_file,
)
"""What a file can write, without ``strategy:``. Of the parts that enter or fit, the first that applies counts."""

PARTS: dict[str, type[Part]] = {
    part.NAME: part for part in (Selective, Snowball, Inject, Fidelity, Auto, Mask, Slide, Clear, Loop, Budget)
}
"""What a spec can name."""
