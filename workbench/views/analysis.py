"""The view of ``analyze``: the statistics of stored soundings of a cascade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from workbench.analysis.soundings import PhaseAnalysis, suggestion
from workbench.dollars import money
from workbench.views.numbers import UNKNOWN, plural
from workbench.views.value import BLANK, Block, Cell, Column, Table, TextBlock, View

COLUMNS = (
    Column("variant", flexible=True),
    Column("stood", right=True),
    Column("won", right=True),
    Column("by chance", right=True, leaves=3),
    Column("95% interval", right=True, leaves=2),
    Column("failed", right=True, leaves=1),
    Column("cost", right=True, leaves=4),
)


class AnalysisView(View):
    """For each phase its variants, what winners share, and a suggestion."""

    def __init__(self, file: str, runs: int, phases: Sequence[PhaseAnalysis]) -> None:
        self.file, self.runs, self.phases = file, runs, phases

    def blocks(self) -> Iterator[Block]:
        for number, one in enumerate(self.phases):
            if number:
                yield BLANK
            yield from _of_phase(one)

    def json(self) -> dict[str, Any]:
        return {"file": self.file, "runs": self.runs, "phases": [one.to_json() for one in self.phases]}


def _of_phase(one: PhaseAnalysis) -> Iterator[Block]:
    yield (Cell(one.phase, "head"), f"  {plural(one.rounds, 'round')} in {plural(one.runs, 'run')}")
    if one.undecided:
        told = f"{plural(one.undecided, 'round')} left out: their winner was not chosen, it stands in for a choice"
        yield (Cell(told, "dim"),)
    rows = [
        (
            Cell(variant.key.words(), "ok" if variant.convinces else ""),
            f"{variant.stood:,}",
            f"{variant.won:,}",
            f"{variant.chance:.1f}",
            "{:.0%} to {:.0%}".format(*variant.interval),
            f"{variant.failed:,}" if variant.failed else "",
            UNKNOWN if variant.cost is None else money(variant.cost),
        )
        for variant in one.variants
    ]
    yield Table(COLUMNS, rows)
    if one.winner_cost is not None and one.loser_cost:
        change = one.winner_cost / one.loser_cost - 1
        yield (f"winners cost {money(one.winner_cost)}, losers {money(one.loser_cost)} ({change:+.0%})",)
    for trait in one.traits:
        yield (f"{trait.name}: in {trait.winners:.0%} of winners, {trait.losers:.0%} of losers",)
    if one.best is not None:
        yield (Cell("suggestion", "ok"), f"  {one.best.key.words()} wins more often than chance explains.")
        yield TextBlock(suggestion(one.best), "  ")
    else:
        yield (Cell("no suggestion: no variant wins more often than chance explains", "dim"),)
