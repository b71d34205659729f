"""Many strategies on many stored runs, at the prices of one provider or of several: what each would have sent and cost,
relative to sending everything, and in US dollars."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.analysis.compare import ComparisonSide, Totals, under
from workbench.analysis.over_runs import Interval, Middle, RatioSum
from workbench.analysis.what_if import past_of
from workbench.context.assembly import BrokenInvariant, Grade
from workbench.context.cache import Price, Prices
from workbench.context.ledger import worse
from workbench.context.strategy import SpecError, Strategy, grid, parse, with_named
from workbench.context.tokens import Counter
from workbench.engine.definition import Definition
from workbench.engine.forecasting import PastCalls
from workbench.engine.journal.state import RunState

BASELINE = "snowball"
FILE = "file"
"""Means what the file says."""
RECORDED = "recorded"
"""Prices a run by its own models."""
LISTED = 1000
"""Runs that are listed one by one, of a sweep over more."""
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


class TriedStrategy(Struct, frozen=True):
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
    def of(cls, values: Middle) -> Spread | None:
        """None for no values."""
        return cls(values.median(), values.low, values.high) if values.count else None


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


class RunPart(Struct, frozen=True):
    """The part of one run in a sum."""

    run: str
    value: float


class StrategyResult(Struct, frozen=True):
    """One strategy on all runs."""

    label: str
    spec: str
    """The spec of the label; empty for the strategy of each file."""
    pricing: str
    trials: tuple[Trial, ...]
    """Run by run; none where there are more than ``LISTED`` runs."""
    tokens: Spread
    cost: Spread | None
    """Over the runs with known prices."""
    tokens_sum: KnownSum
    cost_sum: KnownSum | None
    """US dollars of the input, over the runs with known prices."""
    peak: int
    """Tokens of the largest request."""
    grade: Grade
    """How far the tokens of the requests can be trusted: the least of all runs."""
    invalid: int
    """Requests that break an invariant."""
    unknown: int = 0
    """Runs without a known cost."""
    priced: str = ""
    """Stands for the runs behind the sum of the cost: the same for the same runs."""
    fell_back: int = 0
    """Calls for which the heuristic selects, because their runs hold no answer of a selecting model."""
    fell_back_runs: int = 0
    """Runs with such calls."""
    most: RunPart | None = None
    """The run with the largest part of the baseline's cost, or of its tokens where no price is known."""
    tokens_interval: Interval | None = None
    cost_interval: Interval | None = None
    """Of a sample: where the ratios of the sums over all runs lie; None without a sample."""
    on_front: bool = False
    """Valid, and no other valid strategy sends no more tokens and costs no more, with one of the two being less; by
    the medians, at the same prices."""
    is_cheapest: bool = False
    """It is valid, and no other costs less in the sum at the same prices."""


class Excluded(Struct, frozen=True):
    """A run that is left out, and why."""

    run: str
    reason: str


class RanUnder(Struct, frozen=True):
    """Results of stored runs of the same cascade text under a strategy, beyond the prediction."""

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


class Sample(Struct, frozen=True):
    """Runs drawn by chance, without putting back, all with the same probability."""

    size: int
    of: int
    """Runs that match."""
    seed: int


class Sweep(Struct, frozen=True):
    """The outcome: for each pricing, the strategies in the order in which they were given. What it lists run by run are
    the first ``LISTED`` runs."""

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
    count: int = 0
    """Runs that are compared."""
    left_out: int = 0
    """Runs that are not."""
    asked: tuple[str, ...] = ()
    """The models that the calls of all runs were sent to."""
    sample: Sample | None = None
    """None where all runs that match are compared."""
    file_says: tuple[str, ...] = ()
    """The strategies that ``FILE`` stands for; none where the files differ in them, or name many."""

    def with_lost(self, lost: Sequence[Excluded]) -> Sweep:
        """The same, with runs that could not even be read among those left out."""
        return replace(self, excluded=(*lost, *self.excluded)[:LISTED], left_out=self.left_out + len(lost))

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

    def named(self, text: str) -> StrategyResult | None:
        """The strategy tried that a person means by its label or by any spelling of its spec: ``fidelity:full`` is
        ``fidelity(mode=full)``."""
        wanted = text
        if not any(text in (row.label, row.spec) for row in self.rows):
            with suppress(SpecError):
                wanted = str(parse(text))
        return next((row for row in self.rows if wanted in (row.label, row.spec)), None)

    def cheapest(self, pricing: str) -> StrategyResult | None:
        """The valid strategy that costs least in the sum; None while no cost is known."""
        return next((row for row in self.at(pricing) if row.is_cheapest), None)

    def rivals(self, pricing: str) -> tuple[StrategyResult, ...]:
        """The valid strategies that may cost less than the cheapest, if the provider counts the guessed tokens
        otherwise."""
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
        if base is None or base.most is None or base.tokens_sum.runs < 2:
            return None
        found = base.cost_sum or base.tokens_sum
        share = base.most.value / found.base if found.base else 0.0
        return Dominant(base.most.run, share) if share >= max(0.5, DOMINATES / found.runs) else None


def candidates(specs: Sequence[str], definitions: Sequence[Definition]) -> tuple[TriedStrategy, ...]:
    """The strategies that specs with ranges and lists mean; before them the baseline, what each file says, and what
    all of them name under ``strategies:``.

    A name of ``strategies:`` counts where every file gives it the same spec. Raises SpecError.
    """
    return candidates_among(specs, shared_strategies(definitions))


def candidates_among(specs: Sequence[str], shared: Mapping[str, str]) -> tuple[TriedStrategy, ...]:
    """The same, for what all files name under ``strategies:``. Raises SpecError."""
    found = [TriedStrategy(BASELINE, with_named({})(BASELINE)), TriedStrategy(FILE, None)]
    found += [TriedStrategy(name, with_named(shared)(name)) for name in shared]
    for spec in specs:
        if spec.strip() not in (BASELINE, FILE, *shared):
            found += [TriedStrategy(str(strategy), strategy) for strategy in grid(spec)]
    return tuple({candidate.label: candidate for candidate in found}.values())


def strategies_in(definitions: Sequence[Definition]) -> tuple[str, ...]:
    """Returns the spec of the strategy that the files set, or two with their phases: ``investigate mask(after=3)``,
    ``review selective``; none if they differ, or set more."""
    found = {
        tuple((one.name, str(Strategy.of(definition.cascade, one))) for one in definition.cascade.phases)
        for definition in definitions
    }
    phases = dict(found.pop()) if len(found) == 1 else {}
    specs = set(phases.values())
    if len(specs) == 1:
        return (specs.pop(),)
    return tuple(f"{name} {spec}" for name, spec in phases.items()) if len(phases) == 2 else ()


def shared_strategies(definitions: Sequence[Definition]) -> dict[str, str]:
    """Returns the strategies that all these files name under ``strategies:``, with the same spec."""
    first, *others = [definition.cascade.strategies for definition in definitions] or [{}]
    return {name: spec for name, spec in first.items() if all(other.get(name) == spec for other in others)}


class RunTrials(Struct, frozen=True):
    """All that a sweep has to know of one run."""

    run: str
    bases: tuple[Totals, ...] = ()
    """The baseline, by pricing."""
    trials: tuple[tuple[Trial, ...], ...] = ()
    """By pricing, a trial for each strategy; none where the run is silent."""
    models: tuple[str, ...] = ()
    """That its calls were sent to."""
    prices: tuple[Mapping[str, Price], ...] = ()
    """By pricing, the price of each model."""
    silent: str = ""
    """Why there is nothing to compare."""
    wrong: str = ""
    """Why no provider would take what was recorded."""
    run_id: str = ""


def tried_on(
    subject: Subject, tried: Sequence[TriedStrategy], counter: Counter, pricings: Sequence[Pricing]
) -> RunTrials:
    """Every strategy on one run, at the prices of each pricing."""
    past = past_of(subject.state)
    bases = [_base(subject, counter, pricing, past) for pricing in pricings]
    looked = _looked(subject.name, bases, pricings)
    if looked.silent:
        return looked
    trials = tuple(
        tuple(_trial(subject, one, base, counter, pricing, past) for one in tried)
        for pricing, base in zip(pricings, bases, strict=True)
    )
    return replace(looked, trials=trials)


def _looked(name: str, bases: Sequence[ComparisonSide], pricings: Sequence[Pricing]) -> RunTrials:
    """Returns the facts about a run before any strategy is tried on it."""
    totals = tuple(base.totals for base in bases)
    return RunTrials(
        name,
        totals,
        tuple(() for _ in bases),
        tuple(dict.fromkeys(one.call.model for one in bases[0].seen if one.call.model)),
        tuple(_named(base.prices, pricing.label) for base, pricing in zip(bases, pricings, strict=True)),
        "" if totals[0].tokens else SILENT,
        _invalid(bases[0]),
    )


def _named(prices: Mapping[str, Price], label: str) -> dict[str, Price]:
    """Prices by model. A run that names no model has those of the model that a pricing names."""
    priced = label if "/" in label else ""
    return {model or priced: price for model, price in prices.items() if model or priced}


SILENT = "nothing was sent inside a turn"


def _base(subject: Subject, counter: Counter, pricing: Pricing, past: PastCalls) -> ComparisonSide:
    baseline = with_named({})(BASELINE)
    return under(subject.name, subject.state, subject.definition, baseline, counter, pricing.prices, past)


def sweep(
    subjects: Sequence[Subject], tried: Sequence[TriedStrategy], counter: Counter, pricings: Sequence[Pricing]
) -> Sweep:
    """Try every strategy on every run; ratios are to ``snowball`` on the same run. No model is called."""
    found = [tried_on(subject, tried, counter, pricings) for subject in subjects]
    result = summed(lambda: iter(found), tried, [pricing.label for pricing in pricings])
    return replace(result, file_says=strategies_in([subject.definition for subject in subjects]))


def summed(
    runs: Callable[[], Iterator[RunTrials]],
    tried: Sequence[TriedStrategy],
    pricings: Sequence[str],
    sample: Sample | None = None,
) -> Sweep:
    """The outcome over runs that were tried one by one; what of ``sample`` they are. They are gone through up to three
    times and never held together: it takes the same memory for any number of them."""
    found = _Selected(runs)
    rows = [_RowSum(candidate, pricing, sample) for pricing in pricings for candidate in tried]
    names, models, asked = list[str](), dict[str, tuple[str, ...]](), dict[str, None]()
    prices: dict[str, dict[str, Price]] = {pricing: {} for pricing in pricings}
    count = 0
    for one in found.used():
        count += 1
        if count <= LISTED:
            names.append(one.run)
            models[one.run] = one.models
        asked.update(dict.fromkeys(one.models))
        for pricing, known in zip(pricings, one.prices, strict=True):
            prices[pricing].update(known)
        at = iter(rows)
        for base, trials in zip(one.bases, one.trials, strict=True):
            for trial in trials:
                next(at).add(trial, base)
    if not count:
        rows = []
    if any(row.is_open for row in rows):  # The medians of many runs are looked for in a second pass.
        for one in found.used():
            flat = [trial for trials in one.trials for trial in trials]
            for row, trial in zip(rows, flat, strict=True):
                row.look(trial)
    return Sweep(
        tuple(names),
        tuple(found.excluded),
        _marked([row.result() for row in rows]),
        tuple(found.suspect),
        tuple(pricings),
        models,
        prices,
        count=count,
        left_out=found.left_out,
        asked=tuple(asked),
        sample=sample,
    )


class _Selected:
    """The runs that can be compared; where there is none, those whose messages no provider would take."""

    def __init__(self, runs: Callable[[], Iterator[RunTrials]]) -> None:
        self._runs = runs
        self._only_wrong = not any(not (one.silent or one.wrong) for one in runs())
        self.excluded: list[Excluded] = []
        self.suspect: list[Excluded] = []
        self.left_out = 0
        self._told = False

    def used(self) -> Iterator[RunTrials]:
        """Those that can, in order; the others are noted the first time."""
        told, self._told = self._told, True
        for one in self._runs():
            is_used = not one.silent and (self._only_wrong or not one.wrong)
            if not told:
                self.left_out += not is_used
                if not is_used and len(self.excluded) < LISTED:
                    self.excluded.append(Excluded(one.run, one.silent or one.wrong))
                elif is_used and one.wrong and len(self.suspect) < LISTED:
                    self.suspect.append(Excluded(one.run, one.wrong))
            if is_used:
                yield one


def sweeping(
    subjects: Sequence[Subject], tried: Sequence[TriedStrategy], counter: Counter, pricings: Sequence[Pricing]
) -> Iterator[Sweep]:
    """The sweep so far, at first without a row and then after each strategy at each pricing: it may be left at any
    point. A run that nothing can be said of takes itself out, and no strategy with it."""
    pasts = {one.name: past_of(one.state) for one in subjects}
    bases = [{s.name: _base(s, counter, pricing, pasts[s.name]) for s in subjects} for pricing in pricings]
    runs = [_looked(one.name, [mine[one.name] for mine in bases], pricings) for one in subjects]
    found = summed(lambda: iter(runs), (), [pricing.label for pricing in pricings])
    found = replace(found, file_says=strategies_in([subject.definition for subject in subjects]))
    yield found
    names = {one.run for one in _Selected(lambda: iter(runs)).used()}
    used = [one for one in subjects if one.name in names]
    for pricing, mine in zip(pricings, bases, strict=True) if used else ():
        for candidate in tried:
            row = _RowSum(candidate, pricing.label, None)
            trials = [_trial(one, candidate, mine[one.name], counter, pricing, pasts[one.name]) for one in used]
            for trial in trials:
                row.add(trial, mine[trial.run].totals)
            for trial in trials if row.is_open else ():
                row.look(trial)
            found = replace(found, rows=_marked((*found.rows, row.result())))
            yield found


def _invalid(side: ComparisonSide) -> str:
    """Returns why no provider would accept the recorded messages of a run; empty if one would."""
    found = [(one, problem) for one in side.seen if (problem := next(filter(_is_of_messages, one.problems), None))]
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"its recorded messages are invalid at {found[0][0].call.place}{more}: {found[0][1].message}"


def _is_of_messages(problem: BrokenInvariant) -> bool:
    return problem.invariant in MESSAGES


def _trial(
    subject: Subject,
    candidate: TriedStrategy,
    base: ComparisonSide,
    counter: Counter,
    pricing: Pricing,
    past: PastCalls,
) -> Trial:
    if candidate.label == BASELINE:
        side = base
    else:
        side = under(subject.name, subject.state, subject.definition, candidate.strategy, counter, pricing.prices, past)
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


def _less(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one < other * 0.999


class _RowSum:
    """One strategy at the prices of one provider, run after run."""

    def __init__(self, candidate: TriedStrategy, pricing: str, sample: Sample | None) -> None:
        self._candidate, self._pricing, self._sample = candidate, pricing, sample
        self._trials: list[Trial] = []
        self._tokens, self._cost = Middle(), Middle()
        self._sent, self._paid = RatioSum(), RatioSum()
        self._calls = self._paid_calls = 0
        self._low: float | None = 0.0
        self._high: float | None = 0.0
        self._grade = Grade.EXACT
        self._peak = self._invalid = self._unknown = self._fell_back = self._fell_back_runs = 0
        self._priced = hashlib.sha256()
        self._most_paid: RunPart | None = None
        self._most_sent: RunPart | None = None

    def add(self, trial: Trial, base: Totals) -> None:
        """The next run, with the baseline on it."""
        mine = trial.totals
        if len(self._trials) <= LISTED:
            self._trials.append(trial)
        self._tokens.add(trial.tokens)
        self._sent.add(mine.tokens, base.tokens)
        self._calls += mine.calls
        self._most_sent = _larger(self._most_sent, trial.run, base.tokens)
        if trial.cost is None:
            self._unknown += 1
        else:
            self._cost.add(trial.cost)
            self._paid.add(mine.cost or 0.0, base.cost or 0.0)
            self._paid_calls += mine.calls
            self._low = _sum(self._low, mine.cost_low)
            self._high = _sum(self._high, mine.cost_high)
            self._most_paid = _larger(self._most_paid, trial.run, base.cost or 0.0)
            self._priced.update(trial.run.encode("utf-8", "surrogatepass") + b"\n")
        self._peak, self._grade = max(self._peak, mine.peak), worse(self._grade, mine.grade)
        self._invalid += trial.invalid
        self._fell_back += trial.fell_back
        self._fell_back_runs += bool(trial.fell_back)

    @property
    def is_open(self) -> bool:
        """Whether the medians need all runs once more."""
        return self._tokens.is_open or self._cost.is_open

    def look(self, trial: Trial) -> None:
        """The runs once more, in any order."""
        self._tokens.look(trial.tokens)
        if trial.cost is not None:
            self._cost.look(trial.cost)

    def result(self) -> StrategyResult:
        sent, paid, sample = self._sent, self._paid, self._sample
        cost = None
        if paid.count:
            cost = KnownSum(paid.value, paid.base, paid.count, self._paid_calls, self._low, self._high)
        tokens = Spread.of(self._tokens)
        assert tokens is not None
        return StrategyResult(
            self._candidate.label,
            "" if self._candidate.strategy is None else str(self._candidate.strategy),
            self._pricing,
            tuple(self._trials) if len(self._trials) <= LISTED else (),
            tokens,
            Spread.of(self._cost),
            KnownSum(sent.value, sent.base, sent.count, self._calls),
            cost,
            self._peak,
            self._grade,
            self._invalid,
            self._unknown,
            self._priced.hexdigest()[:16],
            self._fell_back,
            self._fell_back_runs,
            self._most_paid or self._most_sent,
            None if sample is None else sent.interval(sample.size, sample.of),
            None if sample is None else paid.interval(sample.size, sample.of),
        )


def _larger(most: RunPart | None, run: str, value: float) -> RunPart:
    return RunPart(run, value) if most is None or (value, run) > (most.value, most.run) else most


def _sum(total: float | None, value: float | None) -> float | None:
    """None where a number is missing."""
    return None if total is None or value is None else total + value


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
