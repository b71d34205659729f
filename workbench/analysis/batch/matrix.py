"""The state of a batch: its plan, the results of its cells, and their table of inputs and variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from math import fsum
from typing import Any

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from workbench.analysis.batch.paired import Paired, paired
from workbench.analysis.batch.rows import InputRow
from workbench.analysis.batch.scoring import Score, Scorer
from workbench.context.assembly import Grade

DONE = ("success", "failed", "blocked", "diverged")
"""How a cell ended that the same command leaves as it is."""
OPEN, UNFIT = "open", "unfit"
"""A cell that no run has ended, and one of a row that no run can be made of."""
_JUDGED_0 = Score(0.0, "the run failed: there is no output")
"""Of a run that failed: a variant must not look better by failing."""
MEASURES = ("cost", "tokens", "seconds")
"""Measures by which variants are compared beside their scores; less is better."""


class PlannedVariant(Struct, frozen=True):
    """One column, and what it asks for."""

    label: str
    cascade: str
    model: str = ""
    """The model of phases that name none."""
    strategy: str = ""


class BatchPlan(Struct, frozen=True):
    """The plan of a batch, as the newest command said."""

    name: str
    source: str
    """The file of the inputs, or the query."""
    rows: tuple[InputRow, ...]
    variants: tuple[PlannedVariant, ...]
    cells: Mapping[str, tuple[int, int, int]]
    """Row (its place in ``rows``), variant and repetition of each cell, by key."""
    repeat: int = 1
    scorers: tuple[Scorer, ...] = ()
    asked: int | None = None
    """The most rows that a query was asked for, 0 for all; None for a file, and in plans of before this was kept."""
    by_id: bool = False
    """Whether session ids hold the ids of rows; in plans of before this was kept, they hold the numbers alone."""

    def to_json(self) -> dict[str, Any]:
        return dict(to_builtins(self))

    @classmethod
    def from_json(cls, body: Any) -> BatchPlan:
        """Raises msgspec.ValidationError."""
        return convert(body, cls)


class CellResult(Struct, frozen=True, omit_defaults=True):
    """One run of a row under a variant. Money in US dollars."""

    status: str = OPEN
    reason: str = ""
    output: str = ""
    run: str = ""
    session: str = ""
    cost: float | None = None
    """None unless it is known of all calls."""
    spent: float = 0.0
    """The known part of it."""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float | None = None
    calls: int = 0
    scores: Mapping[str, Score] = field(default_factory=dict)
    """By the name of the scorer."""
    judged_by: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The run that began to judge it and what its score depends on, by the name of a scorer that is a cascade."""
    dropped: Mapping[str, float] = field(default_factory=dict)
    """US dollars in ``before`` by scoring run, of scores that were dropped: such a run may be used again."""
    before: float = 0.0
    """US dollars known of what the newest run and its scores have replaced: runs that were repeated, other scores."""
    predicted: float = 0.0
    """US dollars predicted for calls that no bill covers."""
    estimated: bool = False
    """Whether a part of the cost is tokens by a price list, and not what a provider billed."""
    unpriced: bool = False
    """Whether a call has neither a bill nor a prediction, or a prediction of its input alone."""
    grade: Grade = Grade.EXACT
    """Of the tokens: worse than exact where a provider does not state what it took in."""

    @property
    def all_spent(self) -> float:
        """US dollars known of the cell: its runs and its scores, those that were replaced as well."""
        return self.before + self.spent + fsum(score.cost or 0.0 for score in self.scores.values())

    @property
    def without_price(self) -> bool:
        """Whether a part of its cost is neither known nor predicted; so in results of before predictions were kept."""
        return self.unpriced or (self.cost is None and not self.predicted)

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


class Matrix:
    """The table of rows and variants, with one result for each repetition."""

    def __init__(self, plan: BatchPlan, results: Mapping[str, CellResult], *, runs_in: str = "") -> None:
        """``runs_in`` names the other process that is running it now, if one is."""
        self.plan, self.runs_in = plan, runs_in
        self._totals: dict[int, VariantTotals] = {}
        self._cells: dict[tuple[int, int], list[CellResult]] = {}
        places = sorted((place, key) for key, place in plan.cells.items())
        for (row, variant, _), key in places:
            self._cells.setdefault((row, variant), []).append(results.get(key) or CellResult())

    def at(self, row: int, variant: int) -> tuple[CellResult, ...]:
        """The results of a cell; of a row that fits no run one that says so."""
        fault = self.plan.rows[row].fault
        if fault:
            return (CellResult(UNFIT, fault),)
        return tuple(self._cells.get((row, variant), ()))

    def all(self) -> Iterable[tuple[int, int, int, CellResult]]:
        """Row, variant, repetition and result of every cell, in the order of the rows."""
        for row in range(len(self.plan.rows)):
            for variant in range(len(self.plan.variants)):
                for number, one in enumerate(self.at(row, variant), 1):
                    yield row, variant, number, one

    def scores(self, one: CellResult) -> Mapping[str, Score]:
        """The scores of a run that count, by scorer. A run that failed has no output to judge: scorers give it 0,
        people leave it out."""
        if one.status not in ("failed", "blocked"):
            return one.scores
        judged = [scorer.name for scorer in self.plan.scorers if scorer.kind != "person"]
        return {**dict.fromkeys(judged, _JUDGED_0), **one.scores}

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many cells are in each status."""
        found: dict[str, int] = {}
        for _, _, _, one in self.all():
            found[one.status] = found.get(one.status, 0) + 1
        return found

    @property
    def left(self) -> int:
        """Cells that the same command would still run."""
        return sum(number for status, number in self.counts.items() if status not in (*DONE, UNFIT))

    def totals(self, variant: int) -> VariantTotals:
        """One column in sums and means."""
        if variant not in self._totals:
            self._totals[variant] = self._summed(variant)
        return self._totals[variant]

    def _summed(self, variant: int) -> VariantTotals:
        found = [one for row in range(len(self.plan.rows)) for one in self.at(row, variant)]
        ended = [one for one in found if one.status in DONE]
        means = {}
        for scorer in self.plan.scorers:
            values = self.values(variant, scorer.name)
            means[scorer.name] = (fsum(values.values()) / len(values), len(values)) if values else None
        seconds = [one.seconds for one in ended if one.seconds is not None]
        return VariantTotals(
            self.plan.variants[variant].label,
            len(found),
            sum(one.status == "success" for one in found),
            sum(one.status in ("failed", "blocked", "diverged", UNFIT) for one in found),
            sum(one.status not in (*DONE, UNFIT) for one in found),
            fsum(one.spent for one in found),
            fsum(one.predicted for one in found),
            any(one.estimated for one in found),
            sum(one.cost is None for one in ended),
            sum(one.without_price for one in ended),
            sum(one.tokens_in for one in found),
            sum(one.tokens_out for one in found),
            Grade.of_sum(one.grade for one in found),
            fsum(seconds) / len(seconds) if seconds else None,
            means,
        )

    def values(self, variant: int, name: str) -> dict[int, float]:
        """By row the mean over its repetitions of a scorer, or of one of ``MEASURES`` of runs that succeeded; without
        what is not known."""
        found: dict[int, float] = {}
        for row in range(len(self.plan.rows)):
            values = [value for one in self.at(row, variant) if (value := self._value(one, name)) is not None]
            if values:
                found[row] = fsum(values) / len(values)
        return found

    def compare(self, a: int, b: int, name: str, seed: int = 0) -> Paired | None:
        """Variant ``b`` against ``a`` over the rows that both have."""
        return paired(self.values(a, name), self.values(b, name), seed)

    def _value(self, one: CellResult, name: str) -> float | None:
        if name in MEASURES:
            if one.status != "success":
                return None
            return {"cost": one.cost, "tokens": float(one.tokens), "seconds": one.seconds}[name]
        score = self.scores(one).get(name)
        return score.value if score is not None else None

    @cached_property
    def spent(self) -> float:
        """US dollars known of all cells, with their scorers and with runs that were repeated."""
        return fsum(one.all_spent for _, _, _, one in self.all())

    @property
    def repeated(self) -> float:
        """US dollars of these that no result of the table shows: of runs that were repeated, and of replaced scores."""
        return fsum(one.before for _, _, _, one in self.all())


class VariantTotals(Struct, frozen=True):
    """Sums of a column. ``scores``: by scorer the mean over rows, and their number; None if none is known."""

    label: str
    cells: int
    succeeded: int
    failed: int
    left: int
    cost: float
    """Known US dollars."""
    predicted: float
    estimated: bool
    unknown_costs: int
    """Runs of which a call has no bill."""
    unpriced: int
    """Those of which a call has no price at all."""
    tokens_in: int
    tokens_out: int
    grade: Grade
    """Of the tokens."""
    seconds: float | None
    """Mean of a run."""
    scores: Mapping[str, tuple[float, int] | None]


def folded(
    records: Iterable[Mapping[str, Any]], known: Mapping[str, CellResult] | None = None
) -> dict[str, CellResult]:
    """Returns the newest result of each cell that the records or ``known`` (the results of earlier records) name; a
    cell that they never name is left out. Records of kinds that a later program wrote are passed over."""
    found: dict[str, CellResult] = {}
    for record in records:
        key = str(record.get("cell", ""))
        old = found.get(key) or (known.get(key) if known is not None else None)
        match record.get("kind"):
            case "begun":
                before = old.all_spent if old is not None else 0.0
                found[key] = CellResult(run=str(record["run"]), session=str(record.get("session", "")), before=before)
            case "ended":
                ended = convert(record["result"], CellResult)
                found[key] = replace(ended, before=old.before if old is not None else 0.0)
            case "judging" if old is not None:
                by = str(record["run"]), str(record.get("by", ""))
                found[key] = replace(old, judged_by={**old.judged_by, str(record["scorer"]): by})
            case "scored" if old is not None:
                found[key] = _scored(old, str(record["scorer"]), convert(record["score"], Score))
            case "unscored" if old is not None:
                found[key] = without_score(old, str(record["scorer"]))
    return found


def without_score(one: CellResult, name: str) -> CellResult:
    """With a score dropped: what it cost stays in the sum."""
    gone = one.scores.get(name)
    if gone is None:
        return one
    kept = {key: other for key, other in one.scores.items() if key != name}
    cost = gone.cost or 0.0
    dropped = {**one.dropped, gone.run: cost} if gone.run else one.dropped
    return replace(one, scores=kept, before=one.before + cost, dropped=dropped)


def _scored(one: CellResult, name: str, score: Score) -> CellResult:
    """With a score in the place of what was there. One that a dropped scoring run gave costs nothing anew."""
    one = without_score(one, name)
    again = one.dropped.get(score.run, 0.0) if score.run else 0.0
    dropped = {run: cost for run, cost in one.dropped.items() if run != score.run}
    return replace(one, scores={**one.scores, name: score}, before=one.before - again, dropped=dropped)
