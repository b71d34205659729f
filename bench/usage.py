"""``python -m bench.usage FOLDER...``: predicted input against what providers stated, over the files of other tools.

Every file that can be imported is; each call whose input its provider stated is one measurement. The predictions are
those that the import stored: each was made from the calls before it alone. Goals: the cost of the input within 2% for
second and later calls of a conversation, within 10% for first ones, and an interval that covers where neither holds.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from workbench.analysis.prediction import Residual
from workbench.engine.journal.parts import CallState
from workbench.models.cache_rules import maker
from workbench.models.families import bare_name
from workbench.workspace.imports import files_of, import_file
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.project import Project

FIRST, LATER = 0.10, 0.02
"""Goals: shares by which the cost of first and of later calls may be off."""


@dataclass(frozen=True)
class Measured:
    """One call: by what shares its prediction was off. None where a number is unknown."""

    model: str
    first: bool
    """Of its conversation."""
    unstated: bool
    """The file does not state the whole request."""
    tokens: float
    cached: float | None
    """Tokens, relative to the input."""
    cost: float | None
    covered: bool | None
    """Whether the stated interval holds the cost."""


def measured(folders: Iterable[Path]) -> Iterator[Measured]:
    """All calls of all files whose input is stated."""
    with tempfile.TemporaryDirectory() as place:
        project = Project.at(Path(place))
        for file in files_of(folders):
            try:
                runs = import_file(project, file)
            except CannotOpen:
                continue
            for run in runs:
                yield from _of_run(project.store.state(run.run_id).calls)


def _of_run(calls: Sequence[CallState]) -> Iterator[Measured]:
    begun: set[tuple[str, str, int]] = set()
    for call in calls:
        first = call.place.visit_key not in begun
        begun.add(call.place.visit_key)
        found = Residual.of(call)
        if found is None or not found.tokens:
            continue
        guess = found.predicted
        cached = None if found.cached is None or guess.cached is None else (guess.cached - found.cached) / found.tokens
        cost = (guess.cost - found.cost) / found.cost if guess.cost is not None and found.cost else None
        tokens = (guess.tokens - found.tokens) / found.tokens
        yield Measured(call.model, first, bool(call.unstated), tokens, cached, cost, found.covered)


def table(rows: Sequence[Measured]) -> Iterator[str]:
    """A line for each model, then one for all."""
    head = f"{'vendor':10} {'model':34} {'calls':>5} {'later ≤2%':>10} {'first ≤10%':>11}"
    yield f"{head} {'tokens':>7} {'cached':>7} {'cost':>7} {'covered':>9}"
    by_model: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for row in rows:
        by_model[maker(row.model) or "other", bare_name(row.model)].append(row)
    for (vendor, model), found in sorted(by_model.items()):
        yield _line(vendor, model, found)
    yield _line("all", "", rows)
    yield _line("all", "the file states the whole request", [row for row in rows if not row.unstated])


def _line(vendor: str, model: str, rows: Sequence[Measured]) -> str:
    later = [row.cost for row in rows if not row.first and row.cost is not None]
    first = [row.cost for row in rows if row.first and row.cost is not None]
    covered = [row.covered for row in rows if row.covered is not None]
    parts = [
        f"{vendor[:10]:10} {model[:34]:34} {len(rows):5}",
        f"{_within(later, LATER):>10} {_within(first, FIRST):>11}",
        *(f"{_middle(each):>7}" for each in _errors(rows)),
        f"{sum(covered)}/{len(covered)}".rjust(9),
    ]
    return " ".join(parts)


def _errors(rows: Sequence[Measured]) -> tuple[list[float], list[float], list[float]]:
    return (
        [row.tokens for row in rows],
        [row.cached for row in rows if row.cached is not None],
        [row.cost for row in rows if row.cost is not None],
    )


def _within(values: Sequence[float], limit: float) -> str:
    return f"{sum(abs(value) <= limit for value in values)}/{len(values)}"


def _middle(values: Sequence[float]) -> str:
    """The median of what they are off, without its sign."""
    return f"{100 * median(map(abs, values)):.1f}%" if values else "-"


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("usage: python -m bench.usage FOLDER...")
    for line in table(list(measured(map(Path, sys.argv[1:])))):
        print(line)
