"""Words of a comparison: changes of a number, first differences, and whether masking pays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from workbench.analysis.compare import (
    INSIDE,
    AssembledCall,
    CallPair,
    Comparison,
    ComparisonSide,
    Totals,
    cheaper,
)
from workbench.analysis.prediction import PredictedUsage
from workbench.context.align import Change, ChangeKind
from workbench.context.assembly import Action, Entry, Grade
from workbench.context.cache import Price, expired
from workbench.context.reasons import name_of
from workbench.dollars import GRADE_SIGN, money, told_apart
from workbench.views.numbers import UNKNOWN, count, plural, spent_cell, took_words

SMALL = 0.01
"""US dollars: below it a table shows six digits, because four would hide the differences."""


def percent(before: float | None, after: float | None) -> str:
    """``-37%``, ``+4%``, ``-0.3%``; ``0`` for no change, a dash if unknown."""
    if before is None or after is None or (before == 0 and after != 0):
        return UNKNOWN
    if before == after:
        return "0"
    change = 100 * (after - before) / before
    if abs(change) >= 0.5:
        return f"{change:+.0f}%"
    return f"{change:+.1f}%" if abs(change) >= 0.05 else "<0.1%"


def dollars(value: float | None, largest: float | None) -> str:
    """A predicted number of a column whose largest is given: ``~0.0123``; six digits where all are small, and no
    dollar sign, which the head has. 0 has no ``~``."""
    if value is None:
        return UNKNOWN
    said = f"{value:.6f}" if largest is not None and largest < SMALL else f"{value:,.4f}"
    return f"{GRADE_SIGN['estimate'] if value else ''}{said}"


_STATES = {Action.MASKED: "masked", Action.TRUNCATED: "shortened", Action.SUMMARIZED: "summarized"}


def state_of(entry: Entry) -> str:
    """``full``, ``masked``, ``dropped`` …: how a message went out."""
    if entry.sent is None:
        return "dropped"
    return "full" if entry.sent == entry.item.message else _STATES.get(entry.action, "changed")


def change_words(pair: CallPair, change: Change, arrow: str = "→") -> str:
    """``4 turn 1's result: full → masked``."""
    assert pair.a is not None
    assert pair.b is not None
    old = pair.a.entries[change.old] if change.old >= 0 else None
    new = pair.b.entries[change.new] if change.new >= 0 else None
    shown = new or old
    assert shown is not None
    number = (change.new if new is not None else change.old) + 1
    if change.kind is ChangeKind.REWORDED:
        said = "reworded"
    elif change.kind is ChangeKind.MOVED:
        said = "moved"
    elif old is None:
        said = "only in B"
    elif new is None:
        said = "only in A"
    else:
        said = f"{state_of(old)} {arrow} {state_of(new)}"
    return f"{number} {name_of(shown.item)}: {said}"


def brief_difference(pair: CallPair, *, counted: bool = True) -> str:
    """As ``first_difference``, in the few cells of a narrow table: ``4 masked, 1 more``; not ``counted``: the first
    alone."""
    if pair.a is None or pair.b is None:
        return f"only {'B' if pair.a is None else 'A'}"
    if pair.same:
        return ""
    if (change := pair.outline.first) is None:
        return "parameters"
    said = change_words(pair, change).rpartition(": ")[2].rpartition("→ ")[2]
    number = (change.new if change.new >= 0 else change.old) + 1
    return f"{number} {'in full' if said == 'full' else said}" + (_more(pair) if counted else "")


def first_difference(pair: CallPair, arrow: str = "→") -> str:
    """The first message that a provider would see otherwise, and how many more there are."""
    if pair.a is None or pair.b is None:
        return f"only {'B' if pair.a is None else 'A'} made this call"
    if pair.same:
        return ""
    if pair.outline.first is None:
        return "model, tools or parameters differ"
    return change_words(pair, pair.outline.first, arrow) + _more(pair)


def _more(pair: CallPair) -> str:
    more = pair.outline.changes - 1
    return f", {more} more" if more else ""


def verdict(comparison: Comparison) -> tuple[bool, str]:
    """Returns whether to be warned, and how B stands to A in one sentence; of two runs that made more and fewer calls,
    with that first: fewer because a run did not come to its end are no saving."""
    warns, said = _verdict(comparison)
    a, b = len(comparison.a.seen), len(comparison.b.seen)
    if not comparison.both_ran or a == b:
        return warns, said
    sides = (("A", comparison.a.outcome), ("B", comparison.b.outcome))
    cut = [f"{name} {ran.status}" for name, ran in sides if ran is not None and ran.status != "success"]
    ended = f" ({', '.join(cut)})" if cut else ""
    return warns or bool(cut), f"A made {plural(a, 'call')}, B {b:,}{ended}: {said}"


def _verdict(comparison: Comparison) -> tuple[bool, str]:
    a, b = comparison.a.totals, comparison.b.totals
    if not comparison.differing:
        return False, "both send the same requests"
    tokens = f"B sends {_more_or_less(a.tokens, b.tokens, 'tokens')} {'as' if a.tokens == b.tokens else 'than'} A"
    if a.cost is None or b.cost is None or a.unknown or b.unknown:
        return False, f"{tokens}; what that costs is unknown, because a price is"
    if (sign := cheaper(a, b)) is None:
        low, high = (_more_or_less(one, other, "") or "the same" for one, other in _bounds(a, b))
        return True, f"{tokens}; which costs less cannot be told before the provider has counted: {low}, or {high}"
    change = _more_or_less(a.cost, b.cost, "") if a.cost != b.cost else ""
    told = ", not ".join(told_apart(b.cost, a.cost))
    costs = f"costs {change} ({told})" if change else f"costs the same ({money(a.cost)})"
    joined = f"{tokens} and {costs}"
    paradox = b.tokens < a.tokens and sign < 0
    if paradox and comparison.b.breaches:
        joined += f": {_deed(comparison)} breaks the cached prefix at {plural(len(comparison.b.breaches), 'call')}"
    return paradox, joined


def _saves(comparison: Comparison) -> bool:
    """Returns whether B costs less; False if that is unknown."""
    return cheaper(comparison.a.totals, comparison.b.totals) == 1


def _bounds(a: Totals, b: Totals) -> Iterator[tuple[float, float]]:
    """The costs of both sides where the provider counts few, and where it counts many, tokens for what is a guess."""
    for one, other in ((a.cost_low, b.cost_low), (a.cost_high, b.cost_high)):
        if one is not None and other is not None:
            yield one, other


def pay_lines(comparison: Comparison) -> Iterator[str]:
    """For each side that takes back what it sent: what that freed and broke, and unless the side costs less anyhow,
    from how many turns on it pays."""
    for name, side, other in (("A", comparison.a, comparison.b), ("B", comparison.b, comparison.a)):
        if breaches := side.breaches:
            sums = sum(b.freed for b in breaches), sum(b.rewritten for b in breaches)
            freed, rewritten = (count(one, side.totals.grade) for one in sums)
            if all(b.price.rule.provider == "none" for b in breaches):
                yield f"{name} frees {freed} tokens; what it breaks in the cache is unknown, because its rule is"
                continue
            yield f"{name} {_freed(freed, rewritten, sums[1])}"
            if side.pays_after and cheaper(other.totals, side.totals) == 1:
                # The calls between two breaks saved more than the breaks cost: how long one of them takes to pay back
                # would read as if the whole did not pay.
                continue
            left = sum(b.left for b in breaches) / len(breaches)
            paying = sum(1 for pair in comparison.pairs if pays(*(pair.b, pair.a) if name == "B" else (pair.a, pair.b)))
            here = f"{_remain(f'{left:.0f}')} on average. Paid off at {paying} of {plural(len(breaches), 'call')}"
            said = _pays(side.pays_after, here)
            if side.pays_after == 0 and _is_more(side.totals.cost, other.totals.cost):
                short = [one.breach.price.rule.minimum for one in side.seen if one.breach and _is_short(one)]
                said = _dearer(max(short, default=0), f" at {plural(len(short), 'call')}")
            yield said[0].upper() + said[1:]


def _remain(turns: str) -> str:
    return f"{turns} remains" if turns == "1" else f"{turns} remain"


def _freed(freed: str, rewritten: str, again: int) -> str:
    """What taking messages back freed, and the ``again`` tokens that it took from the cache, as words for both."""
    return f"frees {freed} tokens " + (
        f"but re-reads {rewritten} that were cached" if again else "and breaks no cached prefix"
    )


def breach_line(seen: AssembledCall, other: AssembledCall | None) -> str:
    """Says which messages one call took back, and whether that pays; ``other`` is the same call on the other side."""
    breach = seen.breach
    assert breach is not None
    if breach.price.rule.provider == "none":
        return f"frees {count(breach.freed, seen.grade)} tokens"
    rewritten = count(breach.rewritten, seen.grade)
    what = _freed(count(breach.freed, seen.grade), rewritten, breach.rewritten)
    said = _pays(breach.turns, _remain(str(breach.left)))
    if breach.turns == 0 and _is_more(cost_of(seen), cost_of(other)):
        return f"{what}, {_dearer(breach.price.rule.minimum if _is_short(seen) else 0)}"
    return f"{what}: {said}"


def pays(seen: AssembledCall | None, other: AssembledCall | None) -> bool | None:
    """Returns whether what a call took back pays in the run: not where it breaks nothing and yet costs more than the
    same call on the other side. None where it takes nothing back, or where a price is unknown."""
    if seen is None or seen.breach is None:
        return None
    return seen.breach.pays and not (seen.breach.turns == 0 and _is_more(cost_of(seen), cost_of(other)))


def _is_more(cost: float | None, other: float | None) -> bool:
    return cost is not None and other is not None and cost > other


def _is_short(seen: AssembledCall) -> bool:
    """Returns whether a call that took something back is too short for the provider's cache."""
    return seen.breach is not None and seen.tokens < seen.breach.price.rule.minimum


def _dearer(minimum: int, where: str = "") -> str:
    """``minimum``: tokens from which the cache would hold the request; 0 where that is not why."""
    why = f": below {minimum:,} tokens, as{where or ' here'}, the cache holds nothing" if minimum else ""
    return f"yet it costs more{why}"


def fallback_lines(comparison: Comparison) -> Iterator[str]:
    """For each side whose selecting model gave no readable answer: the calls that the heuristic selected for."""
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        calls = [one for one in side.seen if one.fell_back]
        if calls:
            first = f"{calls[0].call.place.words}{' …' if len(calls) > 1 else ''}"
            where = f"{plural(len(calls), 'call')} ({first})"
            yield f"{name} has no answer of a selecting model in {where}: the heuristic selects"


class ComparisonNote(Struct, frozen=True):
    """One sentence about a comparison, the same in the terminal, in the app and in HTML."""

    kind: Literal["verdict", "warning", "side", "pays", "note", "reported", "price"]
    text: str
    """Without a full stop."""
    saves: bool = False
    """Whether it says that B costs less, which is the only verdict that is good news."""


def sentences(comparison: Comparison) -> Iterator[ComparisonNote]:
    """All that is said above or below the table, in its order."""
    warns, sentence = verdict(comparison)
    yield ComparisonNote("warning" if warns else "verdict", sentence, _saves(comparison))
    yield from (ComparisonNote("side", line) for line in side_lines(comparison))
    yield from (ComparisonNote("note", line) for line in left_out_lines(comparison))
    yield from (ComparisonNote("note", line) for line in expired_lines(comparison))
    yield from (ComparisonNote("note", line) for line in answer_lines(comparison))
    for line in pay_lines(comparison):
        yield ComparisonNote("pays" if line.startswith(PAYS) else "note", line)
    yield from (ComparisonNote("note", line) for line in fallback_lines(comparison))
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        yield from (ComparisonNote("reported", f"{name} {line}") for line in reported_lines(side))
    for model, price in {**comparison.a.prices, **comparison.b.prices}.items():
        yield from (ComparisonNote("price", line) for line in price_words(model, price))


def side_lines(comparison: Comparison) -> Iterator[str]:
    """Tokens, dollars and time of both sides."""
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        totals = side.totals
        cost = money(totals.cost)
        said = f"{name} {side.label}: {count(totals.tokens, totals.grade)} tokens, {cost} for the input"
        ran = side.outcome
        if ran is None:
            yield f"{said}; time and answers unknown (what-if)"
            continue
        took = took_words(ran.seconds, ran.paused)
        parts = [
            f"the run cost {spent}" if (spent := spent_cell(ran.spent, ran.missing)) else "",
            took and f"took {took}",
            f"{plural(ran.edits, 'edit')} by hand" if ran.edits else "",
        ]
        ended = "" if ran.status == "success" else ran.status
        yield "; ".join((said, ", ".join(filter(None, (*parts, ended))))).removesuffix("; ")


def left_out_lines(comparison: Comparison) -> Iterator[str]:
    """What each run sent beside the calls that are compared, so that the sums are those of the run, and why; said once
    where both left out the same."""
    a, b = _left_out(comparison.a), _left_out(comparison.b)
    for name, said in (("A and B leave", a),) if a == b else (("A leaves", a), ("B leaves", b)):
        if said:
            yield f"{name} out {said}"


def _left_out(side: ComparisonSide) -> str:
    beside = [
        f"{plural(one.calls, f'{one.what} call'.strip())} ({count(one.tokens, one.grade)} tokens)"
        for one in side.left_out
        if one.what != INSIDE
    ]
    inside = [
        f"{plural(one.calls, 'call')} ({count(one.tokens, one.grade)} tokens) of runs inside, which are compared by "
        "their own names"
        for one in side.left_out
        if one.what == INSIDE
    ]
    return "; ".join(([f"{', '.join(beside)}, which no strategy changes"] if beside else []) + inside)


def expired_lines(comparison: Comparison) -> Iterator[str]:
    """For each side: the calls for which its cache had expired, while that of the other side had not, whose calls stand
    at other times."""
    for name, other in (("A", "B"), ("B", "A")):
        pairs = ((pair.a, pair.b) if name == "A" else (pair.b, pair.a) for pair in comparison.pairs)
        calls = [one for one, two in pairs if one is not None and two is not None and _is_colder(one, two)]
        if calls:
            begin = f"{plural(len(calls), 'call')} of {name} begin{'s' if len(calls) == 1 else ''}"
            reason = calls[0].forecast.reason if calls[0].forecast is not None else ""
            where = f"{calls[0].call.place.words}: {reason.partition(': ')[2] or reason}"
            more = "; …" if len(calls) > 1 else ""
            yield f"{begin} after the cache has expired ({where}{more}); in {other} it has not"


def _is_colder(one: AssembledCall, other: AssembledCall) -> bool:
    """Returns whether a call begins after its cache has expired, and the same call of the other side, which was sent
    after another time, does not."""
    if one.forecast is None or other.forecast is None or one.call.at == other.call.at:
        return False
    return expired(one.forecast) and not expired(other.forecast)


def answer_lines(comparison: Comparison) -> Iterator[str]:
    """Whether two runs have the same output, and where their answers differ."""
    if (outputs := comparison.outputs) is None:
        return
    if outputs[0] == outputs[1]:
        scripted = all(side.outcome is not None and side.outcome.scripted for side in (comparison.a, comparison.b))
        yield "both end with the same output" + ("; both are offline: their answers are scripted" if scripted else "")
    else:
        yield "the final outputs differ" if all(outputs) else f"{'A' if outputs[0] else 'B'} alone has a final output"
    if differ := comparison.answered_otherwise:
        both = sum(1 for pair in comparison.pairs if pair.a is not None and pair.b is not None)
        names = ", ".join(comparison.pairs[at].place.words for at in differ[:4]) + (", …" if len(differ) > 4 else "")
        yield f"answers differ at {len(differ)} of {plural(both, 'call')}: {names}"


PAYS = ("Breaks even", "Pays", "Never pays", "Whether it pays")
"""How a sentence begins that says whether taking back what was sent is worth it."""


def _pays(turns: float | None, here: str) -> str:
    if turns is None:
        return "whether it pays is unknown: a price is missing"
    if math.isinf(turns):
        return "never pays: reading the cache is free"
    if turns == 0:
        return "pays at once"
    return f"breaks even after {plural(math.ceil(turns), 'more turn')}; {here}"


def _deed(comparison: Comparison) -> str:
    kinds = {kind for pair in comparison.pairs for kind in pair.outline.kinds}
    return "dropping" if ChangeKind.DROPPED in kinds and ChangeKind.MASKED not in kinds else "masking"


def _more_or_less(before: float, after: float, noun: str) -> str:
    if before == after:
        return f"as many {noun}" if noun else ""
    if not before:
        return f"more {noun}".strip()
    change = 100 * (after - before) / before
    share = f"{abs(change):.0f}%" if abs(change) >= 0.5 else "less than 1%"
    if noun:
        return f"{share} {'fewer' if change < 0 else 'more'} {noun}"
    return f"{share} {'less' if change < 0 else 'more'}"


def price_words(model: str, price: Price) -> tuple[str, str]:
    """The prices of a model with their source, and the caching rule of its provider."""
    numbers = [
        f"{name} {_per_million(value)}"
        for name, value in (("input", price.input), ("cached", price.cache_read), ("written", price.cache_write))
        if (name != "written" or price.rule.writes) and (name != "cached" or value or price.rule.provider != "none")
    ]
    rule, uncached = price.rule, "none: every token costs the full price" if price.input else "unknown"
    source = f" ({price.source})" if price.source else ""
    step = f"in steps of {rule.step:,}" if rule.step > 1 else "at message boundaries"
    cached = f"as by {rule.provider}: from {rule.minimum:,} tokens, {step}, kept for {_lifetime(rule.lifetime)}"
    return (
        f"{model or 'no model named'}: {', '.join(numbers)} per million tokens{source}",
        f"prompt cache {uncached if rule.provider == 'none' else cached}",
    )


def _lifetime(seconds: float) -> str:
    return plural(round(seconds), "second") if seconds % 60 else plural(round(seconds / 60), "minute")


def _per_million(price: float | None) -> str:
    return "unknown" if price is None else f"${price * 1e6:,.2f}"


def cost_of(seen: AssembledCall | None) -> float | None:
    """The predicted cost of a call's input, US dollars."""
    return seen.forecast.cost if seen is not None and seen.forecast is not None else None


def reported_lines(side: ComparisonSide) -> Iterator[str]:
    """The provider's count of the same request, beside the prediction; what scripted replies state is no count."""
    for who, scripted in (("the provider counted", False), ("the scripted replies state", True)):
        if calls := [one for one in side.reported if one.call.scripted is scripted]:
            counted = sum(one.reported.input for one in calls if one.reported is not None)
            tokens, grade = sum(one.call.expected for one in calls), Grade.of_sum(one.call.grade for one in calls)
            yield (
                f"was sent in {plural(len(calls), 'call')}: {who} {count(counted)} tokens "
                f"({count(tokens, grade)} predicted, {percent(tokens, counted)}){_reported_cache(calls)}"
            )


def _reported_cache(calls: Sequence[AssembledCall]) -> str:
    known = [(one, one.reported) for one in calls if one.reported is not None and one.reported.cached is not None]
    if not known:
        return f"; {'they do' if calls[0].call.scripted else 'it does'} not say what was cached"
    cached = sum(report.cached or 0 for _, report in known)
    predicted = sum(PredictedUsage.of(one.call).cached or 0 for one, _ in known)
    billed, expected = _whole(r.cost for _, r in known), _whole(r.predicted_cost for _, r in known)
    forecast = "" if expected is None else f" ({money(expected)} predicted)"
    return f", {count(cached)} of them cached ({count(predicted)} predicted); {money(billed)} for the input{forecast}"


def _whole(costs: Iterable[float | None]) -> float | None:
    """The sum; None if a part is unknown."""
    known = list(costs)
    return None if None in known else sum(cost for cost in known if cost is not None)
