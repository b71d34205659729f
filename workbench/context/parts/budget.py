"""The token budget of a phase, as a part of its strategy; ``fitting`` carries it out."""

from __future__ import annotations

from typing import ClassVar, Self

from workbench.context.part import Part, PhaseInFile, Role, block_paths, require
from workbench.language.model.context import BudgetStrategy
from workbench.language.problem import Path


class Budget(Part, frozen=True):
    """Keeps a request within ``max - reserve`` tokens. System, task, tools and the live turn always stay."""

    NAME: ClassVar[str] = "budget"
    ROLE: ClassVar[Role] = Role.FITS

    max: int | None = 100_000
    """Tokens of input and output together; ``none`` for no limit."""
    reserve: int = 4000
    """Tokens kept free for the answer."""
    mode: BudgetStrategy = "sliding_window"
    warn: float = 0.8
    """Share of the limit above which a warning is due."""
    target: int = 2000
    """Tokens of a summary."""

    def __post_init__(self) -> None:
        require(self, max=1, reserve=0, target=1)

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """From ``token_budget`` of the cascade, with the phase's override."""
        budget, phase = file.cascade.token_budget, file.phase
        if budget is None:
            return None
        block: Path = ("token_budget",)
        named = {"max": "max_total", "reserve": "reserve_for_output", "mode": "strategy", "warn": "warning_threshold"}
        written = block_paths(block, named, budget.model_fields_set)
        total = budget.max_total
        if phase.name in budget.phase_overrides:
            total = budget.phase_overrides[phase.name]
            written["max"] = (*block, "phase_overrides", phase.name)
        target = budget.summarizer.target_size
        return cls(total, budget.reserve_for_output, budget.strategy, budget.warning_threshold, target, written=written)

    def impossible(self) -> str:
        if self.max is None or self.max > self.reserve:
            return ""
        return f"budget: max ({self.max:,}) leaves no room beside reserve ({self.reserve:,})"

    @property
    def limit(self) -> int | None:
        """Input tokens allowed; None without a limit."""
        return None if self.max is None else max(self.max - self.reserve, 0)
