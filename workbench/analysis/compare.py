"""Two looks at a run, or two runs, side by side: each call's contexts, their sums, and when masking pays for itself.

Pure: what was sent comes from journals, what would have been sent from ``whatif``. Costs are those of the input, as
predicted by the provider's rule of caching and its prices; what a provider reported stands beside them where this very
request was sent.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.prediction import PredictedUsage, reported_cost
from workbench.analysis.what_if import assembled_inside, reassembling
from workbench.context.align import Change, changes
from workbench.context.assembly import Assembly, BrokenInvariant, Entry, Grade
from workbench.context.cache import Forecast, Price, Prices, break_even
from workbench.context.incremental_diff import IncrementalDiff, Outline, Step
from workbench.context.place import Place
from workbench.context.strategy import Strategy, parse
from workbench.context.tokens import Counter
from workbench.engine.definition import Definition
from workbench.engine.forecasting import PastCalls, Prediction
from workbench.engine.journal.costs import CostSum
from workbench.engine.journal.event import seconds_between
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState


class ReportedUsage(Struct, frozen=True):
    """The provider's counts for a request that was really sent, in tokens and US dollars."""

    input: int
    cached: int | None
    written: int | None
    cost: float | None
    """Cost of the input, at the prices of the comparison; None if a number is missing."""
    predicted_cost: float | None = None
    """What was forecast before the call; None if it was at other prices."""


class Breach(Struct, frozen=True):
    """A call at which a strategy takes back what it had sent before, and so breaks the prefix the provider held."""

    freed: int
    """Tokens that are no longer sent, counted as the entries of the context are."""
    scaled: int
    """The same as the provider is expected to count them, which is what prices are of."""
    rewritten: int
    """Tokens that would have been read from the cache, and are read anew."""
    turns: float | None
    """Turns after which it pays: ``break_even``. None when a price is unknown."""
    left: int
    """Calls of this visit that follow it in the run."""
    price: Price

    @property
    def pays(self) -> bool | None:
        """Whether the run is long enough; None when a price is unknown."""
        return None if self.turns is None else self.left >= self.turns


class AssembledCall(Struct, frozen=True):
    """One call as one side saw it."""

    call: CallState
    """The call as recorded."""
    strategy: str
    entries: Sequence[Entry]
    digest: str
    tokens: int
    grade: Grade
    forecast: Forecast | None
    problems: tuple[BrokenInvariant, ...]
    low: Forecast | None = None
    high: Forecast | None = None
    """Where the provider counts as few, and as many, tokens for what is a guess as it may; None where that is not
    known."""
    breach: Breach | None = None
    reported: ReportedUsage | None = None
    step: Step | None = None
    """The messages that its context adds to the one before in this visit, if known."""

    @property
    def fell_back(self) -> bool:
        """Whether the heuristic selects, because the run holds no answer of the model that would have to."""
        asks = "llm" in self.strategy or "hybrid" in self.strategy
        return asks and any(entry.reason.code == "fell_back" for entry in self.entries)


class Totals(Struct, frozen=True):
    """Sums over the calls of one side."""

    calls: int
    tokens: int
    grade: Grade
    """The worst of the calls'."""
    cached: int
    fresh: int
    written: int
    cost: float | None
    """US dollars of the calls with a known price; None if there is none."""
    cost_low: float | None
    cost_high: float | None
    """The same where the provider counts as few, and as many, tokens for what is a guess as it may. They do not bound
    the cost: both sides of a comparison have theirs under the same assumption, so that the sides can be compared."""
    tokens_low: int
    tokens_high: int
    unknown: int
    """Calls without a known price."""
    peak: int
    """Tokens of the largest request."""
    broken: int
    """Requests that break an invariant."""

    @classmethod
    def of(cls, seen: Sequence[AssembledCall]) -> Totals:
        forecasts = [one.forecast for one in seen if one.forecast is not None]
        costs = [forecast.cost for forecast in forecasts if forecast.cost is not None]
        return cls(
            len(seen),
            sum(one.tokens for one in seen),
            max((one.grade for one in seen), key=list(Grade).index, default=Grade.EXACT),
            sum(forecast.cached for forecast in forecasts),
            sum(forecast.fresh for forecast in forecasts),
            sum(forecast.written for forecast in forecasts),
            sum(costs) if costs else None,
            _sum(one.low.cost for one in seen if one.low is not None),
            _sum(one.high.cost for one in seen if one.high is not None),
            sum(one.tokens if one.low is None else one.low.tokens or 0 for one in seen),
            sum(one.tokens if one.high is None else one.high.tokens or 0 for one in seen),
            len(seen) - len(costs),
            max((one.tokens for one in seen), default=0),
            sum(1 for one in seen if one.problems),
        )


class LeftOut(Struct, frozen=True):
    """Answered calls of a run that are no part of a side: their contexts are assembled by no strategy."""

    what: str
    """Their purpose, as ``evaluation``; ``runs inside`` for those of the runs that it started."""
    calls: int
    tokens: int
    """Of the input, as the figures of the run count it."""
    grade: Grade


INSIDE = "runs inside"


class RecordedOutcome(Struct, frozen=True):
    """The outcome of a run, for a side that really ran."""

    status: str
    output: str
    spent: CostSum
    """Of the whole run, with the runs inside it."""
    missing: int = 0
    """Child runs whose figures are unknown."""
    seconds: float | None = None
    """Duration without pauses; None until it has ended, and if an imported file names no times."""
    paused: float = 0.0
    edits: int = 0
    """Made by hand while it ran."""
    scripted: bool = False
    """Whether scripted replies gave all of its answers: no model was asked."""


class ComparisonSide(Struct, frozen=True):
    """One of the two looks."""

    label: str
    """The strategy, or the name of the run."""
    seen: tuple[AssembledCall, ...]
    totals: Totals
    prices: Mapping[str, Price]
    """By model."""
    outcome: RecordedOutcome | None = None
    """None for a what-if."""
    left_out: tuple[LeftOut, ...] = ()
    """What the run sent beside ``seen``: with it the sums are those of the whole run."""

    @property
    def breaches(self) -> tuple[Breach, ...]:
        return tuple(one.breach for one in self.seen if one.breach is not None)

    @property
    def pays_after(self) -> float | None:
        """Turns that what was freed must last, on the whole, to pay for all that was read anew: ``break_even``.

        None where a price is unknown, or where several prices are at play.
        """
        prices = {breach.price for breach in self.breaches}
        if len(prices) != 1:
            return None
        freed = sum(breach.scaled for breach in self.breaches)
        return break_even(freed, sum(breach.rewritten for breach in self.breaches), prices.pop())

    @property
    def reported(self) -> tuple[AssembledCall, ...]:
        """The calls for which a provider's own numbers exist beside the prediction."""
        return tuple(one for one in self.seen if one.reported is not None)


class CallPair(Struct, frozen=True):
    """The same call on both sides; one is None if only the other side made it."""

    place: Place
    a: AssembledCall | None
    b: AssembledCall | None
    outline: Outline = Outline()
    """How the two contexts differ, in numbers; empty if only one side made the call, or both send the same."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every message that a provider would see otherwise, in the order of the context. Worked out when asked for:
        all changes of all calls are the square of a long run."""
        if self.a is None or self.b is None or not self.outline.changes:
            return ()
        return tuple(changes(self.a.entries, self.b.entries))

    @property
    def same(self) -> bool:
        """Whether both sides send the same request."""
        return self.a is not None and self.b is not None and self.a.digest == self.b.digest


def cheaper(a: Totals, b: Totals) -> int | None:
    """Returns which side costs less for certain: -1 for ``a``, 1 for ``b``, 0 where they cost the same to a thousandth;
    None where that depends on how the provider counts what it has not counted yet, or on a price that is unknown."""
    if None in (a.cost, b.cost) or a.unknown or b.unknown:
        return None
    pairs = ((a.cost, b.cost), (a.cost_low, b.cost_low), (a.cost_high, b.cost_high))
    found = {_sign(one, other) for one, other in pairs if one is not None and other is not None}
    return found.pop() if len(found) == 1 else None


def _sign(a: float, b: float) -> int:
    if abs(a - b) <= 0.001 * max(a, b):
        return 0
    return -1 if a < b else 1


def answer_text(call: CallState) -> str:
    """A model's answer: the text, then the tools that it calls; empty without an answer."""
    if call.answer is None:
        return ""
    calls = (f"→ {one.name} {one.arguments}" for one in call.answer.tool_calls)
    return "\n".join(filter(None, (call.answer.text, *calls)))


class Comparison(Struct, frozen=True):
    """Two sides, call by call."""

    a: ComparisonSide
    b: ComparisonSide
    pairs: tuple[CallPair, ...]

    @property
    def differing(self) -> tuple[CallPair, ...]:
        return tuple(pair for pair in self.pairs if not pair.same)

    @property
    def both_ran(self) -> bool:
        """Whether both sides have answers of their own: what-ifs have those of the run."""
        return self.a.outcome is not None and self.b.outcome is not None

    @property
    def outputs(self) -> tuple[str, str] | None:
        """The final outputs of both runs; None for a what-if."""
        if self.a.outcome is None or self.b.outcome is None:
            return None
        return self.a.outcome.output, self.b.outcome.output

    def answers(self, pair: CallPair) -> tuple[str, str] | None:
        """The answers on both sides; None if one side did not make the call, and for a what-if."""
        if not self.both_ran or pair.a is None or pair.b is None:
            return None
        return answer_text(pair.a.call), answer_text(pair.b.call)

    @property
    def answered_otherwise(self) -> tuple[int, ...]:
        """The pairs whose answers differ."""
        found = ((number, self.answers(pair)) for number, pair in enumerate(self.pairs))
        return tuple(number for number, texts in found if texts is not None and texts[0] != texts[1])


def compare(a: ComparisonSide, b: ComparisonSide) -> Comparison:
    """Align two sides by the places of their calls, and the contexts of each call by message identity."""
    places_a, places_b = [one.call.place for one in a.seen], [one.call.place for one in b.seen]
    pairs: list[CallPair] = []
    visits: dict[tuple[str, str, int], IncrementalDiff] = {}
    matcher = difflib.SequenceMatcher(None, places_a, places_b, autojunk=False)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            pairs += [_pair(a.seen[a1 + i], b.seen[b1 + i], visits) for i in range(a2 - a1)]
        else:
            pairs += [CallPair(one.call.place, one, None) for one in a.seen[a1:a2]]
            pairs += [CallPair(one.call.place, None, one) for one in b.seen[b1:b2]]
    return Comparison(a, b, tuple(pairs))


def under(
    label: str,
    state: RunState,
    definition: Definition,
    strategy: Strategy | None,
    counter: Counter,
    prices: Prices,
    past: PastCalls | None = None,
) -> ComparisonSide:
    """A stored run's calls under a strategy; without one, under what the file says. ``past``: ``past_of`` the run,
    where it is at hand already."""
    known = KnownPrices(prices)
    left = _calls_left(call for call in assembled_inside(state, definition) if call.status != "assembled")
    seen: list[AssembledCall] = []
    before: dict[tuple[str, str, int], tuple[Assembly, str, int]] = {}
    latest: dict[tuple[str, str, int], Assembly] = {}
    for one in reassembling(state, definition, strategy, counter, known, past):
        call, assembly, visit = one.call, one.assembly, one.call.place.visit_key
        spliced_against, latest[visit] = latest.get(visit), assembly
        if call.status == "assembled":
            continue
        prediction = one.prediction
        price, expected = prediction.price, prediction.forecast.tokens
        own = known.counted_as(call.model) == call.model  # Its provider's counts are of no other model.
        assert expected is not None, "only journals of 0.1.0 lack it"
        step = breach = None
        if (earlier := before.get(visit)) is not None:
            told = assembly.splices if earlier[0] is spliced_against else None
            step = Step.between(earlier[0].entries, assembly.entries, told)
            waited = seconds_between(earlier[1], call.at) or 0.0
            factor = expected / assembly.tokens_sent if assembly.tokens_sent else 1.0
            held = _CachedBefore(earlier[2], waited)
            breach = _breach(earlier[0], assembly, step, prediction, held, factor, left[call.place])
        before[visit] = (assembly, call.at, expected if one.kept else 0)
        seen.append(
            AssembledCall(
                call,
                assembly.strategy,
                assembly.entries,
                assembly.request.digest,
                expected,
                prediction.grade,
                prediction.forecast,
                assembly.problems + prediction.problems,
                one.low,
                one.high,
                breach,
                _reported(call, price) if assembly.request.digest == call.digest and own else None,
                step,
            )
        )
    return _side(label, state, seen, prices)


def as_recorded(
    label: str, state: RunState, definition: Definition | None, counter: Counter, prices: Prices
) -> ComparisonSide:
    """The calls of a run as they were made. Where the run can be assembled again to the same requests, the prediction
    is worked out anew with ``prices``; where not (an edit at a gate, a text that no longer loads), as it was stored."""
    known: dict[Place, AssembledCall] = {}
    if definition is not None:
        spec = str(state.options.get("strategy", ""))
        again = under(label, state, definition, parse(spec) if spec else None, counter, prices)
        known = {one.call.place: one for one in again.seen if one.digest == one.call.digest}
    calls = [call for call in state.calls if not call.beside and call.status != "assembled"]
    took = state.figures()
    answered = [call for call in state.calls if call.answered]
    scripted = bool(answered) and all(call.scripted for call in answered)
    outcome = RecordedOutcome(
        state.status, state.output, took.spent, took.missing, state.seconds, state.paused, state.edited, scripted
    )
    side = _side(label, state, [known.get(call.place) or _stored(call, prices) for call in calls], prices)
    return replace(side, outcome=outcome)


class KnownPrices:
    """Remembers prices while a run is analysed: a long run asks for the same one at every call."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._known: dict[tuple[str, int], Price] = {}

    def price(self, model: str, input_tokens: int = 0) -> Price:
        key = model, input_tokens // 1000  # Prices change at whole thousands of tokens, where they do.
        if key not in self._known:
            self._known[key] = self._prices.price(model, input_tokens)
        return self._known[key]

    def window(self, model: str) -> int | None:
        return self._prices.window(model)

    def counted_as(self, model: str) -> str:
        return self._prices.counted_as(model)


def _side(label: str, state: RunState, seen: Sequence[AssembledCall], prices: Prices) -> ComparisonSide:
    models = {model: prices.price(model) for model in dict.fromkeys(one.call.model for one in seen)}
    return ComparisonSide(label, tuple(seen), Totals.of(seen), models, left_out=tuple(_left_out(state)))


def _left_out(state: RunState) -> Iterator[LeftOut]:
    beside = [call for call in state.calls if call.beside]
    for purpose in dict.fromkeys(call.purpose for call in beside):
        took = state.figures_of_calls([call for call in beside if call.purpose == purpose])
        if took.calls:
            yield LeftOut(purpose, took.calls, took.tokens_in, took.grade_in)
    inside = state.children.figures()
    if inside.calls:
        yield LeftOut(INSIDE, inside.calls, inside.tokens_in, inside.grade_in)


def _pair(a: AssembledCall, b: AssembledCall, visits: dict[tuple[str, str, int], IncrementalDiff]) -> CallPair:
    incremental = visits.setdefault(a.call.place.visit_key, IncrementalDiff())
    outline = incremental.outline(a.entries, b.entries, a.step, b.step)
    return CallPair(a.call.place, a, b, Outline() if a.digest == b.digest else outline)


def _stored(call: CallState, prices: Prices) -> AssembledCall:
    return AssembledCall(
        call,
        call.strategy,
        call.entries,
        call.digest,
        call.tokens_in,
        call.grade_in,
        call.forecast,
        call.problems,
        reported=_reported(call, prices.price(call.model)),
    )


def _reported(call: CallState, price: Price) -> ReportedUsage | None:
    usage = call.usage
    if usage.input is None:
        return None
    same = all(call.prices.get(name) == getattr(price, name) for name in ("input", "cache_read", "cache_write"))
    predicted = PredictedUsage.of(call).cost if same else None
    return ReportedUsage(usage.input, usage.cached, usage.written, reported_cost(usage, price), predicted)


def _calls_left(calls: Iterable[CallState]) -> dict[Place, int]:
    """Returns how many calls of the same visit follow each call."""
    left: dict[Place, int] = {}
    following: dict[tuple[str, str, int], int] = {}
    for call in reversed(list(calls)):
        left[call.place] = following.get(call.place.visit_key, 0)
        following[call.place.visit_key] = left[call.place] + 1
    return left


class _CachedBefore(NamedTuple):
    """The part of the previous call that the provider may hold in its cache."""

    tokens: int
    waited: float
    """Seconds since then."""


def _breach(
    before: Assembly, now: Assembly, step: Step, prediction: Prediction, held: _CachedBefore, factor: float, left: int
) -> Breach | None:
    """Returns the part of the call before it in its visit that a call takes back; None when it only adds. ``factor``:
    tokens of the provider for one of our count."""
    pairs = ((before.entries[i], now.entries[i]) for i in step.replaced)
    freed = sum(a.tokens_sent - b.tokens_sent for a, b in pairs if a.item == b.item)
    scaled = round(factor * freed)
    if scaled <= 0:
        return None
    price, forecast = prediction.price, prediction.forecast
    rule, tokens = price.rule, held.tokens
    if rule.provider == "none" or tokens < rule.minimum or held.waited > rule.lifetime:
        tokens = 0
    rewritten = max(tokens // rule.step * rule.step - forecast.cached - scaled, 0) if forecast.cached or tokens else 0
    return Breach(freed, scaled, rewritten, break_even(scaled, rewritten, price), left, price)


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum of the known numbers; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
