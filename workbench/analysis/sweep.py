"""Many strategies on many stored runs, at the prices of one provider or of several: what each would have sent and cost,
relative to sending everything, and in US dollars."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.analysis.compare import ComparisonSide, Totals, under
from workbench.context.assembly import BrokenInvariant
from workbench.context.cache import Price, Prices
from workbench.context.strategy import Strategy, grid, with_named
from workbench.context.tokens import Counter
from workbench.engine.definition import Definition
from workbench.engine.journal.state import RunState

BASELINE = "snowball"
FILE = "file"
"""Means what the file says."""
RECORDED = "recorded"
"""Prices a run by its own models."""
MESSAGES = range(1, 14)
"""Invariants of the messages and tools of a request, which no strategy mends by sending less."""
DOMINATES = 1.5
"""How many times the even share of one run its part of a sum must be, and at least half, to decide the sum alone."""


class Subject(Struct, frozen=True):
    """A stored run."""

    name: str
    state: RunState
    definition: Definition


class Pricing(Struct, frozen=True):
    """The prices and cache rules to predict with."""

    label: str
    """The provider, with its model if one is named; ``recorded`` for the runs' own."""
    prices: Prices


class Candidate(Struct, frozen=True):
    """A strategy to try."""

    label: str
    strategy: Strategy | None
    """None for the strategy that each run's file sets."""


class Trial(Struct, frozen=True):
    """One strategy on one run."""

    run: str
    totals: Totals
    tokens: float
    """Relative to the baseline."""
    cost: float | None
    """Relative to the baseline; None when a price is unknown on either side."""
    invalid: int = 0
    """Requests that break an invariant which the recorded run keeps at that call."""
    fell_back: int = 0
    """Calls for which the heuristic selects, because the run holds no answer of a selecting model."""


class Spread(Struct, frozen=True):
    """A number over several runs."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None for no values."""
        return cls(statistics.median(values), min(values), max(values)) if values else None


class KnownSum(Struct, frozen=True):
    """A number summed over the runs for which it is known, beside the baseline's over the same runs."""

    value: float
    """Tokens, or US dollars of the input."""
    base: float
    runs: int
    calls: int
    low: float | None = None
    high: float | None = None
    """The same where the provider counts as few, and as many, tokens as it may for what is a guess; None where that is
    not known. They bound nothing by themselves: compared are two sums under the same assumption."""

    @property
    def ratio(self) -> float | None:
        """Relative to the baseline; None if that is 0."""
        return self.value / self.base if self.base else None

    @classmethod
    def of(cls, values: Sequence[tuple[float, float, int]]) -> KnownSum | None:
        """Of the number, the baseline's and the calls of each run; None for no runs."""
        if not values:
            return None
        return cls(
            sum(one[0] for one in values), sum(one[1] for one in values), len(values), sum(n for *_, n in values)
        )


class StrategyResult(Struct, frozen=True):
    """One strategy on all runs."""

    label: str
    spec: str
    """What the label means; empty for what each file says."""
    pricing: str
    trials: tuple[Trial, ...]
    tokens: Spread
    cost: Spread | None
    """Over the runs with known prices."""
    tokens_sum: KnownSum
    cost_sum: KnownSum | None
    """US dollars of the input, over the runs with known prices."""
    peak: int
    """Tokens of the largest request."""
    invalid: int
    """Requests that break an invariant."""
    on_front: bool = False
    """Valid, and no other valid strategy sends no more tokens and costs no more, with one of the two being less; by
    the medians, at the same prices."""
    is_cheapest: bool = False
    """It is valid, and no other costs less in the sum at the same prices."""

    @property
    def unknown(self) -> int:
        """Runs without a known cost."""
        return sum(1 for trial in self.trials if trial.cost is None)

    @property
    def priced(self) -> frozenset[str]:
        """The runs behind the sum of the cost."""
        return frozenset(trial.run for trial in self.trials if trial.cost is not None)


class Excluded(Struct, frozen=True):
    """A run that is left out, and why."""

    run: str
    reason: str


class RanUnder(Struct, frozen=True):
    """What stored runs of the same cascade text tell about a strategy, beyond the prediction."""

    live: int = 0
    """Runs that models answered."""
    succeeded: int = 0
    """Of these."""
    scores: tuple[float, ...] = ()
    """That people gave these, and 100 and 0 for thumbs up and down."""
    offline: int = 0
    """Runs that scripted replies answered, which tell nothing about quality."""


class Dominant(Struct, frozen=True):
    """A run that makes up so much of a sum that the sum says little of the others."""

    run: str
    share: float
    """Share of the baseline's cost; if no price is known, of its tokens."""


class Sweep(Struct, frozen=True):
    """The outcome: for each pricing, the strategies in the order in which they were given."""

    runs: tuple[str, ...]
    excluded: tuple[Excluded, ...]
    """Runs with nothing to compare, or whose recorded messages no provider would accept."""
    rows: tuple[StrategyResult, ...]
    suspect: tuple[Excluded, ...] = ()
    """Runs whose recorded messages no provider would accept, compared all the same because there is no other."""
    pricings: tuple[str, ...] = (RECORDED,)
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By run, the models that its calls were sent to."""
    prices: Mapping[str, Mapping[str, Price]] = field(default_factory=dict)
    """By pricing, the prices in force for each of these models."""
    ran: Mapping[str, RanUnder] | None = None
    """By label, the stored runs under a strategy; None if they were not looked up."""

    @property
    def never_live(self) -> tuple[str, ...]:
        """The strategies under which no model has answered yet, so that the quality of their answers is unknown."""
        if self.ran is None:
            return ()
        labels = dict.fromkeys(row.label for row in self.rows)
        return tuple(label for label in labels if not self.ran.get(label, RanUnder()).live)

    def at(self, pricing: str) -> tuple[StrategyResult, ...]:
        """The rows of one pricing."""
        return tuple(row for row in self.rows if row.pricing == pricing)

    def cheapest(self, pricing: str) -> StrategyResult | None:
        """The valid strategy that costs least in the sum; None while no cost is known."""
        return next((row for row in self.at(pricing) if row.is_cheapest), None)

    def rivals(self, pricing: str) -> tuple[StrategyResult, ...]:
        """The valid strategies of which nobody can say for certain that they cost more than the cheapest: they cost
        less where the provider counts otherwise what is a guess."""
        least = self.cheapest(pricing)
        if least is None or least.cost_sum is None:
            return ()
        mine = least.cost_sum
        return tuple(
            row
            for row in self.at(pricing)
            if row is not least
            and not (row.invalid or row.is_cheapest)
            and row.cost_sum is not None
            and (_less(row.cost_sum.low, mine.low) or _less(row.cost_sum.high, mine.high))
        )

    def cheapest_by_median(self, pricing: str) -> StrategyResult | None:
        """The valid strategy with the lowest median cost; None while no cost is known."""
        known = [(row.cost.median, row) for row in self.at(pricing) if row.cost is not None and not row.invalid]
        return min(known, key=lambda one: one[0])[1] if known else None

    def dominant(self, pricing: str) -> Dominant | None:
        """The run that alone decides the sums; None if none does, and for a single run."""
        base = next((row for row in self.at(pricing) if row.label == BASELINE), None)
        if base is None or len(base.trials) < 2:
            return None
        costs = [(trial.totals.cost or 0.0, trial.run) for trial in base.trials if trial.cost is not None]
        found = costs or [(float(trial.totals.tokens), trial.run) for trial in base.trials]
        whole, (most, run) = sum(value for value, _ in found), max(found)
        share = most / whole if whole else 0.0
        return Dominant(run, share) if share >= max(0.5, DOMINATES / len(found)) else None


def candidates(specs: Sequence[str], definitions: Sequence[Definition]) -> tuple[Candidate, ...]:
    """The strategies that specs with ranges and lists mean; before them the baseline, what each file says, and what
    all of them name under ``strategies:``.

    A name of ``strategies:`` counts where every file gives it the same spec. Raises SpecError.
    """
    found = [Candidate(BASELINE, with_named({})(BASELINE)), Candidate(FILE, None)]
    shared = shared_strategies(definitions)
    found += [Candidate(name, with_named(shared)(name)) for name in shared]
    for spec in specs:
        if spec.strip() not in (BASELINE, FILE, *shared):
            found += [Candidate(str(strategy), strategy) for strategy in grid(spec)]
    return tuple({candidate.label: candidate for candidate in found}.values())


def shared_strategies(definitions: Sequence[Definition]) -> dict[str, str]:
    """What all these files name under ``strategies:``, with the same spec."""
    first, *others = [definition.cascade.strategies for definition in definitions] or [{}]
    return {name: spec for name, spec in first.items() if all(other.get(name) == spec for other in others)}


def sweep(
    subjects: Sequence[Subject], tried: Sequence[Candidate], counter: Counter, pricings: Sequence[Pricing]
) -> Sweep:
    """Try every strategy on every run; ratios are to ``snowball`` on the same run. No model is called."""
    return list(sweeping(subjects, tried, counter, pricings))[-1]


def sweeping(
    subjects: Sequence[Subject], tried: Sequence[Candidate], counter: Counter, pricings: Sequence[Pricing]
) -> Iterator[Sweep]:
    """The sweep so far, at first without a row and then after each strategy at each pricing: it may be left at any
    point. A run that nothing can be said of takes itself out, and no strategy with it."""
    baseline = with_named({})(BASELINE)
    bases = {
        pricing.label: {
            s.name: under(s.name, s.state, s.definition, baseline, counter, pricing.prices) for s in subjects
        }
        for pricing in pricings
    }
    first = bases[pricings[0].label]
    silent = {name: "nothing was sent inside a turn" for name, side in first.items() if not side.totals.tokens}
    wrong = {name: reason for name, side in first.items() if name not in silent and (reason := _invalid(side))}
    used = [one for one in subjects if one.name not in silent and one.name not in wrong]
    suspect = () if used else tuple(Excluded(name, reason) for name, reason in wrong.items())
    used = used or [one for one in subjects if one.name in wrong]
    reasons = silent if suspect else {one.name: {**silent, **wrong}.get(one.name, "") for one in subjects}
    so_far = Sweep(
        tuple(subject.name for subject in used),
        tuple(Excluded(name, reason) for name, reason in reasons.items() if reason),
        (),
        suspect,
        tuple(pricing.label for pricing in pricings),
        {s.name: tuple(dict.fromkeys(one.call.model for one in first[s.name].seen if one.call.model)) for s in used},
        {label: {m: p for s in used for m, p in sides[s.name].prices.items() if m} for label, sides in bases.items()},
    )
    yield so_far
    for pricing in pricings if used else ():
        for candidate in tried:
            mine = bases[pricing.label]
            trials = [(_trial(one, candidate, mine[one.name], counter, pricing), mine[one.name].totals) for one in used]
            so_far = replace(so_far, rows=_marked((*so_far.rows, _tried(candidate, pricing, trials))))
            yield so_far


def _invalid(side: ComparisonSide) -> str:
    """Why no provider would accept the recorded messages of a run; empty if one would."""
    found = [(one, problem) for one in side.seen if (problem := next(filter(_is_of_messages, one.problems), None))]
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"its recorded messages are invalid at {found[0][0].call.place}{more}: {found[0][1].message}"


def _is_of_messages(problem: BrokenInvariant) -> bool:
    return problem.invariant in MESSAGES


def _trial(subject: Subject, candidate: Candidate, base: ComparisonSide, counter: Counter, pricing: Pricing) -> Trial:
    side = under(subject.name, subject.state, subject.definition, candidate.strategy, counter, pricing.prices)
    totals, whole = side.totals, base.totals
    known = totals.cost is not None and not totals.unknown and whole.cost and not whole.unknown
    cost = totals.cost / whole.cost if known and totals.cost is not None and whole.cost else None
    broken = {one.call.place for one in base.seen if any(map(_is_of_messages, one.problems))}
    invalid = sum(
        any(one.call.place not in broken or not _is_of_messages(problem) for problem in one.problems)
        for one in side.seen
    )
    fell_back = sum(one.fell_back for one in side.seen)
    return Trial(subject.name, totals, totals.tokens / whole.tokens, cost, invalid, fell_back)


def _added(values: Iterable[float | None]) -> float | None:
    """The sum; None if a number is missing."""
    found = list(values)
    return None if None in found else sum(one for one in found if one is not None)


def _less(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one < other * 0.999


def _tried(candidate: Candidate, pricing: Pricing, found: Sequence[tuple[Trial, Totals]]) -> StrategyResult:
    """The row of a strategy, of its trials with the baseline's sums on the same runs."""
    trials = tuple(trial for trial, _ in found)
    tokens = Spread.of([trial.tokens for trial in trials])
    sent = KnownSum.of([(trial.totals.tokens, base.tokens, trial.totals.calls) for trial, base in found])
    paid = [(one.totals.cost or 0.0, base.cost or 0.0, one.totals.calls) for one, base in found if one.cost is not None]
    totals = [one.totals for one in trials if one.cost is not None]
    cost = KnownSum.of(paid)
    if cost is not None:
        low, high = _added(one.cost_low for one in totals), _added(one.cost_high for one in totals)
        cost = replace(cost, low=low, high=high)
    assert tokens is not None
    assert sent is not None
    return StrategyResult(
        candidate.label,
        "" if candidate.strategy is None else str(candidate.strategy),
        pricing.label,
        trials,
        tokens,
        Spread.of([trial.cost for trial in trials if trial.cost is not None]),
        sent,
        cost,
        max(trial.totals.peak for trial in trials),
        sum(trial.invalid for trial in trials),
    )


def _marked(rows: Sequence[StrategyResult]) -> tuple[StrategyResult, ...]:
    """The rows with the front and the cheapest of each pricing."""
    found: list[StrategyResult] = []
    for pricing in dict.fromkeys(row.pricing for row in rows):
        mine = [row for row in rows if row.pricing == pricing]
        front = _front(mine)
        costs = [row.cost_sum.value for row in mine if row.cost_sum is not None and not row.invalid]
        least = min(costs, default=None)
        for row in mine:
            cheapest = (
                least is not None and not row.invalid and row.cost_sum is not None and row.cost_sum.value == least
            )
            found.append(replace(row, on_front=row in front, is_cheapest=cheapest))
    return tuple(found)


def _front(rows: Sequence[StrategyResult]) -> list[StrategyResult]:
    """The Pareto front of median tokens and median cost among the strategies that are valid throughout."""
    points = [(row, row.tokens.median, row.cost.median) for row in rows if row.cost is not None and not row.invalid]
    return [
        row
        for row, tokens, cost in points
        if not any(t <= tokens and c <= cost and (t < tokens or c < cost) for _, t, c in points)
    ]
