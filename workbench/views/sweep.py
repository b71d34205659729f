"""A sweep: a strategy on a line, with tokens and cost relative to snowball, the sum in US dollars, and the front."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace
from rich.cells import cell_len

from workbench.analysis.over_runs import METHOD, Interval
from workbench.analysis.sweep import BASELINE, FILE, RECORDED, RanUnder, RunTrials, Spread, StrategyResult, Sweep
from workbench.context.cache import Price
from workbench.dollars import money
from workbench.views.cells import Row, Span, crop, fit, flat, whole_parts
from workbench.views.compare_words import price_words
from workbench.views.figure import scatter_picture
from workbench.views.model import Rows
from workbench.views.numbers import UNKNOWN, count, plural
from workbench.views.plot import Point, scatter
from workbench.views.signs import sign
from workbench.views.text import DrawnRows, TextLine, drawn_line
from workbench.views.value import BLANK, Block, Cell, Column, Drawing, Form, Piece, Table, View

X_TITLE = "tokens sent, relative to snowball"
Y_TITLE = "input cost, relative to snowball (predicted)"
Y_DOLLARS = "US dollars for the input (predicted)"
LEGEND = "S snowball  F the file  letters: best trade-offs  · others  x invalid"
NAMED = 4
"""Strategies that a sentence names."""
TOLD = 20
"""Runs that are left out, each of which has a sentence."""
CHEAPEST = "↓"
"""The mark of what costs least in the sum."""


def points(sweep: Sweep) -> list[Point]:
    """The strategies with a known cost, relative to the baseline, or in US dollars if several providers are compared;
    those of the front come first, so that others never hide them.
    """
    several = len(sweep.pricings) > 1
    found = [
        Point(
            tried.tokens.median,
            tried.cost_sum.value if several else tried.cost.median,
            mark,
            named(sweep, tried),
            _token(tried, mark),
        )
        for tried, mark in zip(sweep.rows, marks(sweep), strict=True)
        if tried.cost is not None and tried.cost_sum is not None
    ]
    return sorted(found, key=lambda point: (point.mark in "·x", point.mark == "·"))


def y_title(sweep: Sweep) -> str:
    """The quantity on the upright side of the plot."""
    return Y_DOLLARS if len(sweep.pricings) > 1 else Y_TITLE


def named(sweep: Sweep, tried: StrategyResult) -> str:
    """The label of a row, with its provider if there are several."""
    return f"{tried.label} {_place(tried.pricing)}" if len(sweep.pricings) > 1 else tried.label


def _place(pricing: str) -> str:
    return "as recorded" if pricing == RECORDED else f"at {pricing}"


class SweepNote(NamedTuple):
    """A sentence about a sweep."""

    text: str
    kind: str
    """``verdict``, ``warning``, ``result`` or ``note``."""


def sentences(sweep: Sweep) -> Iterator[SweepNote]:
    """Yields the sentences below the table: which runs are left out, which strategy to choose, the warnings, and the
    models in force."""
    for one in sweep.excluded[:TOLD]:
        yield SweepNote(f"{one.run} is left out: {one.reason}", "warning")
    if (more := sweep.left_out - TOLD) > 0:
        yield SweepNote(f"and {plural(more, 'more run')} left out: --output and --json say why", "warning")
    for one in sweep.suspect[:TOLD]:
        yield SweepNote(f"{one.run}: {one.reason}; it is compared all the same, for there is no other run", "warning")
    yield from (SweepNote(text, "result") for text in sample_lines(sweep))
    for pricing in sweep.pricings:
        yield from _at(sweep, pricing)
    found = [row for pricing in sweep.pricings if (row := sweep.cheapest(pricing)) is not None and row.cost_sum]
    if len({row.priced for row in found}) > 1:
        counted = ", ".join(f"{plural(counted_over(row)[0], 'run')} {_place(row.pricing)}" for row in found)
        told = (
            f"sums cannot be compared, they stand for different runs ({counted}): --prices gives the prices that lack"
        )
        yield SweepNote(told, "warning")
    elif len(found) > 1:
        least = min(found, key=lambda row: row.cost_sum.value if row.cost_sum else 0.0)
        yield SweepNote(f"cheapest of all: {named(sweep, least)}, {dollars(least)}", "result")
    for text in fallback_lines(sweep):
        yield SweepNote(text, "warning")
    if text := never_live_words(sweep):
        yield SweepNote(text, "warning")
    if len(sweep.file_says) > 1:
        yield SweepNote(f"'{FILE}' is {', '.join(sweep.file_says)}", "note")
    yield from (SweepNote(text, "note") for text in model_lines(sweep))


def never_live_words(sweep: Sweep) -> str:
    """The strategies under which no model has answered yet, so that the quality of their answers is unknown; empty if
    there are none.
    """
    labels = [label for label in sweep.never_live if label != BASELINE]
    if not labels:
        return ""
    names = ", ".join(labels[:NAMED]) + (f" and {len(labels) - NAMED} more" if len(labels) > NAMED else "")
    was = "was" if len(labels) == 1 else "were"
    return f"{names} {was} never run live: answer quality is unknown"


def live_words(sweep: Sweep, label: str) -> str:
    """Summarises the stored runs of a strategy: ``2 live, score 85``, ``offline only``, ``never``; empty if they were
    not looked up.
    """
    if sweep.ran is None:
        return ""
    ran = sweep.ran.get(label, RanUnder())
    if not ran.live:
        return "offline only" if ran.offline else "never"
    failed = f", {ran.live - ran.succeeded} failed" if ran.succeeded < ran.live else ""
    score = f", score {sum(ran.scores) / len(ran.scores):.3g}" if ran.scores else ""
    return f"{ran.live:,} live{failed}{score}"


def _at(sweep: Sweep, pricing: str) -> Iterator[SweepNote]:
    """The sentences at the prices of one provider."""
    where = f" {_place(pricing)}" if len(sweep.pricings) > 1 else ""
    least, usual = sweep.cheapest(pricing), sweep.cheapest_by_median(pricing)
    several = sweep.count > 1
    if text := verdict(sweep, pricing):
        yield SweepNote(text, "verdict")
    if several and least is not None and usual is not None and usual.cost is not None and usual.label != least.label:
        yield SweepNote(
            f"the median{where} recommends {usual.label} ({median(usual.cost)}), the sum {least.label}: "
            f"{usual.label} costs {dollars(usual)} in the sum ({_times(usual)}), {least.label} {dollars(least)} "
            f"({_times(least)})",
            "warning",
        )
    if rivals := sweep.rivals(pricing):
        names = ", ".join(row.label for row in rivals[:3]) + (", …" if len(rivals) > 3 else "")
        told = f"which is cheapest{where} is not certain: how the provider counts what it never counted decides"
        yield SweepNote(f"{told} ({least.label if least else ''} or {names})", "warning")
    if (dominant := sweep.dominant(pricing)) is not None:
        yield SweepNote(
            f"{dominant.run} makes up {dominant.share:.0%} of the sum{where}: it decides the sum, not the other runs",
            "warning",
        )


def verdict(sweep: Sweep, pricing: str) -> str:
    """The strategy to choose at the prices of one provider, and what it saves beside the file's own; without prices, by
    tokens. Empty while no valid one has been tried.
    """
    where = f" {_place(pricing)}" if len(sweep.pricings) > 1 else ""
    least = sweep.cheapest(pricing)
    if least is None or least.cost_sum is None:
        valid = [row for row in sweep.at(pricing) if not row.invalid]
        if not valid:
            return ""
        fewest = min(valid, key=lambda row: row.tokens_sum.value)
        beside = beside_file(sweep, fewest)
        return f"no price is known{where}; {fewest.label} sends the fewest tokens{f': {beside}' if beside else ''}"
    over = ""
    if sweep.count > 1:
        over = f" for {plural(least.cost_sum.runs, 'run')} and {plural(least.cost_sum.calls, 'call')}"
    beside = beside_file(sweep, least)
    said = f"cheapest overall{where}: {least.label}, {dollars(least)}{over}"
    return f"{said}: {beside}" if beside else f"{said}, {_times(least)} of {BASELINE}"


def beside_file(sweep: Sweep, tried: StrategyResult) -> str:
    """A strategy beside the file's own at the same prices, summed over the same runs: ``32% less than file (~$0.0075),
    24% fewer tokens``; empty if they cannot be compared.
    """
    file = next((row for row in sweep.at(tried.pricing) if row.label == FILE), None)
    if file is None or file.priced != tried.priced:
        return ""
    if file.label == tried.label:
        return "no other valid strategy costs less than the file's" if tried.cost_sum else "it is the file's"
    said = []
    if tried.cost_sum is not None and file.cost_sum is not None and file.cost_sum.value:
        share = 1 - tried.cost_sum.value / file.cost_sum.value
        by = "as much as" if abs(share) < SAME else f"{abs(share):.0%} {'less' if share > 0 else 'more'} than"
        said.append(f"{by} {FILE} ({dollars(file)})")
    if file.tokens_sum.value:
        share = 1 - tried.tokens_sum.value / file.tokens_sum.value
        by = "as many" if abs(share) < SAME else f"{abs(share):.0%} {'fewer' if share > 0 else 'more'}"
        than = f" {'as' if by == 'as many' else 'than'} {FILE}" if not said else ""
        said.append(f"{by} tokens{than}")
    return ", ".join(said)


def reference_of(label: str) -> str:
    """What a strategy of a sweep is compared with: the file's own; that one with the baseline."""
    return BASELINE if label == FILE else FILE


def dollars(tried: StrategyResult) -> str:
    """The sum of the input's cost in US dollars, which is predicted; a dash if no price is known."""
    return UNKNOWN if tried.cost_sum is None else money(tried.cost_sum.value)


def interval_words(interval: Interval | None) -> str:
    """Returns where the ratio of the sums lies over all runs, of a sample: ``0.91x-0.97x``."""
    return UNKNOWN if interval is None else f"{interval.low:.2f}x-{interval.high:.2f}x"


def sample_lines(sweep: Sweep) -> Iterator[str]:
    """The sample, its meaning for all runs, and the method."""
    sample = sweep.sample
    if sample is None:
        return
    yield (
        f"a sample of {plural(sample.size, 'run')} out of {sample.of:,}, drawn at random (seed {sample.seed}); "
        f"'95% of all' is where the ratio of the sums lies over all {sample.of:,} runs ({METHOD})"
    )
    for pricing in sweep.pricings:
        least = sweep.cheapest(pricing)
        if least is not None and (found := least.cost_interval) is not None:
            low, high = money(found.total_low), money(found.total_high)
            where = f" {_place(pricing)}" if len(sweep.pricings) > 1 else ""
            yield (
                f"{least.label}{where} costs about {money(found.total)} over all {sample.of:,} runs "
                f"({low} to {high}), {interval_words(found)} of {BASELINE}"
            )


def times(tried: StrategyResult) -> str:
    """The sum of the cost relative to the baseline's; a dash if no price is known."""
    return UNKNOWN if tried.cost_sum is None or tried.cost_sum.ratio is None else _times(tried)


def _times(tried: StrategyResult) -> str:
    ratio = None if tried.cost_sum is None else tried.cost_sum.ratio
    return UNKNOWN if ratio is None else f"{ratio:.2f}x"


def counted_over(tried: StrategyResult) -> tuple[int, int]:
    """Runs and calls behind the sum of the cost, or of the tokens if no price is known."""
    found = tried.cost_sum or tried.tokens_sum
    return found.runs, found.calls


def model_lines(sweep: Sweep) -> Iterator[str]:
    """The models that the runs were sent to, and the prices that each provider has for them."""
    models = list(sweep.asked)
    if sweep.pricings != (RECORDED,):
        yield f"model of the runs: {', '.join(models) or 'none is named'}"
    for pricing in sweep.pricings:
        known = sweep.prices.get(pricing, {})
        for model in [pricing] if "/" in pricing else models:
            price = next(iter(known.values()), Price()) if "/" in pricing else known.get(model, Price())
            at = f"{pricing}: " if pricing != RECORDED and "/" not in pricing else ""
            yield at + "; ".join(price_words(model, price))


def _token(tried: StrategyResult, mark: str) -> str:
    return "error" if tried.invalid else "ok" if tried.on_front else "bold" if mark in "SF" else "dim"


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """Everything, run by run. Unknown numbers are null."""
    return {
        "predicted": True,
        "baseline": BASELINE,
        "runs": list(sweep.runs),
        "count": sweep.count,
        "sample": None if sweep.sample is None else {**to_builtins(sweep.sample), "method": METHOD},
        "skipped": [one.run for one in sweep.excluded],
        "excluded": [to_builtins(one) for one in sweep.excluded],
        "excluded_count": sweep.left_out,
        "invalid_runs": [to_builtins(one) for one in sweep.suspect],
        "providers": list(sweep.pricings),
        "models": {run: list(models) for run, models in sweep.models.items()},
        "prices": {
            pricing: {model: to_builtins(price) for model, price in found.items()}
            for pricing, found in sweep.prices.items()
        },
        "cheapest": {pricing: _label(sweep.cheapest(pricing)) for pricing in sweep.pricings},
        "rivals": {pricing: [row.label for row in sweep.rivals(pricing)] for pricing in sweep.pricings},
        "cheapest_by_median": {pricing: _label(sweep.cheapest_by_median(pricing)) for pricing in sweep.pricings},
        "dominant": {
            pricing: to_builtins(found) for pricing in sweep.pricings if (found := sweep.dominant(pricing)) is not None
        },
        "never_live": list(sweep.never_live),
        "notes": [said.text for said in sentences(sweep) if said.kind == "warning"],
        "strategies": [
            {
                "strategy": tried.label,
                "spec": tried.spec,
                "provider": tried.pricing,
                "tokens": to_builtins(tried.tokens),
                "cost": to_builtins(tried.cost) if tried.cost is not None else None,
                "tokens_sum": to_builtins(tried.tokens_sum) | {"ratio": tried.tokens_sum.ratio},
                "cost_sum": to_builtins(tried.cost_sum) | {"ratio": tried.cost_sum.ratio} if tried.cost_sum else None,
                "tokens_interval": to_builtins(tried.tokens_interval),
                "cost_interval": to_builtins(tried.cost_interval),
                "unknown_costs": tried.unknown,
                "peak": tried.peak,
                "grade": str(tried.grade),
                "invalid": tried.invalid,
                "pareto": tried.on_front,
                "cheapest": tried.is_cheapest,
                "ran": None if sweep.ran is None else to_builtins(sweep.ran.get(tried.label, RanUnder())),
                "by_run": [
                    {
                        "run": t.run,
                        "tokens": t.tokens,
                        "cost": t.cost,
                        "dollars": None if t.cost is None else t.totals.cost,
                        "invalid": t.invalid,
                        "totals": to_builtins(t.totals),
                    }
                    for t in tried.trials
                ],
            }
            for tried in sweep.rows
        ],
    }


TABLE: Mapping[str, type] = {
    "run": str,
    "run_id": str,
    "left_out": str,
    "strategy": str,
    "provider": str,
    "tokens": float,
    "cost": float,
    "dollars": float,
    "invalid": int,
    "fell_back": int,
    **dict.fromkeys(("calls", "tokens_sent", "cached", "fresh", "written", "peak", "broken", "unpriced_calls"), int),
    "grade": str,
}
"""The columns of a table with a row for each run, strategy and provider. ``tokens`` and ``cost`` are relative to
snowball, ``dollars`` those of the input; ``left_out`` says why a run has no strategies."""


def table_rows(
    runs: Iterable[RunTrials], strategies: Sequence[str], pricings: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The rows of that table, one at a time."""
    empty = dict.fromkeys(TABLE)
    for one in runs:
        known = {**empty, "run": one.run, "run_id": one.run_id or one.run, "left_out": one.silent or one.wrong or None}
        if one.silent:
            yield known
        for pricing, trials in zip(pricings, one.trials, strict=False):
            for strategy, trial in zip(strategies, trials, strict=True):
                took = trial.totals
                yield {
                    **known,
                    "strategy": strategy,
                    "provider": pricing,
                    "tokens": trial.tokens,
                    "cost": trial.cost,
                    "dollars": None if trial.cost is None else took.cost,
                    "invalid": trial.invalid,
                    "fell_back": trial.fell_back,
                    "calls": took.calls,
                    "tokens_sent": took.tokens,
                    "cached": took.cached,
                    "fresh": took.fresh,
                    "written": took.written,
                    "peak": took.peak,
                    "broken": took.broken,
                    "unpriced_calls": took.unknown,
                    "grade": str(took.grade),
                }


def _label(tried: StrategyResult | None) -> str | None:
    return None if tried is None else tried.label


def fallback_lines(sweep: Sweep) -> Iterator[str]:
    """For each strategy whose selecting model gave no readable answer: in how many calls the heuristic selects."""
    for tried in sweep.at(sweep.pricings[0]):
        if tried.fell_back:
            of = f" of {plural(tried.fell_back_runs, 'run')}" if sweep.count > 1 else ""
            where = plural(tried.fell_back, "call") + of
            yield f"{tried.label} has no answer of a selecting model in {where}: the heuristic selects"


def marks(sweep: Sweep) -> list[str]:
    """A letter for each strategy of a front, S and F for the two that are always there."""
    letters = _letters()
    marks = []
    for tried in sweep.rows:
        if tried.label in (BASELINE, FILE):
            marks.append("S" if tried.label == BASELINE else "F")
        elif tried.on_front:
            marks.append(next(letters))
        else:
            marks.append("x" if tried.invalid else "·")
    return marks


def _letters() -> Iterator[str]:
    yield from string.ascii_lowercase.replace("x", "")
    while True:
        yield "*"


def median(spread: Spread | None) -> str:
    return UNKNOWN if spread is None else f"{spread.median:.2f}x"


def spread_words(spread: Spread | None) -> str:
    return "" if spread is None else f"{spread.low:.2f} to {spread.high:.2f}"


def unknown_words(tried: StrategyResult, several: bool) -> str:
    return f" ({tried.unknown} unknown)" if several and tried.unknown and tried.cost is not None else ""


TONES = {"verdict": "ok", "warning": "warning", "result": "ok", "note": "dim"}
"""The token for each kind of sentence, the first that is shown first."""
SAME = 0.005
"""Below it a share is shown as no difference."""


def _meaning(sweep: Sweep, tried: StrategyResult) -> str:
    """What a label stands for, to be written behind it; empty where it says so itself."""
    says = sweep.file_says
    # A sweep of an archive does not hold the files of its runs.
    each = "differs by phase" if len(says) > 1 else says[0] if says else "what each run's file says"
    meant = each if tried.label == FILE else tried.spec
    return f": {meant}" if meant not in ("", tried.label) else ""


def _fields(sweep: Sweep, tried: StrategyResult, mark: str) -> Mapping[str, Cell]:
    """All that is said of a strategy at the prices of one provider, by the title of its column."""
    runs, calls = counted_over(tried)
    several = sweep.count > 1
    live = live_words(sweep, tried.label)
    token = "error" if tried.invalid else "bold" if tried.on_front else "plain"
    return {
        "★": Cell((mark if tried.on_front else "") + (CHEAPEST if tried.is_cheapest else ""), "ok"),
        "strategy": Cell(tried.label + _meaning(sweep, tried), token),
        "provider": Cell("as recorded" if tried.pricing == RECORDED else tried.pricing),
        "tokens": Cell(median(tried.tokens), _tone(tried.tokens)),
        "tokens spread": Cell(spread_words(tried.tokens), "dim"),
        "cost": Cell(median(tried.cost) + unknown_words(tried, several), _tone(tried.cost)),
        "cost spread": Cell(spread_words(tried.cost), "dim"),
        "sum": Cell(times(tried)),
        "interval": Cell(interval_words(tried.cost_interval or tried.tokens_interval), "dim"),
        "dollars": Cell(dollars(tried), "ok" if tried.is_cheapest else "plain"),
        "live": Cell(live, "warning" if live in ("never", "offline only") else "plain"),
        "runs": Cell(count(runs), "dim"),
        "calls": Cell(count(calls), "dim"),
        "peak": Cell(count(tried.peak, tried.grade), "dim"),
        "invalid": Cell(f"{tried.invalid:,}", "error" if tried.invalid else "faint"),
    }


def _tone(spread: Spread | None) -> str:
    value = 1.0 if spread is None else spread.median
    return "plain" if abs(value - 1) < SAME else "ok" if value < 1 else "warning"


class SweepView(View):
    """A row for each strategy; those on the Pareto front carry the letter under which the plot shows them."""

    def __init__(self, sweep: Sweep, *, plot: bool = False, whole: bool = False) -> None:
        """``whole``: with the plot, the names of the runs, and every row where several providers are compared."""
        self.sweep, self._plot, self._whole = sweep, plot, whole

    def blocks(self) -> Iterator[Block]:
        sweep = self.sweep
        several, at_many = sweep.count > 1, len(sweep.pricings) > 1
        if self._whole:
            more = f" and {sweep.count - len(sweep.runs):,} more" if sweep.count > len(sweep.runs) else ""
            yield (Cell(f"Runs: {', '.join(sweep.runs)}{more}", "dim"),)
        if at_many:
            yield self._by_provider()
        if not at_many or self._whole:
            yield self._strategies(providers=at_many)
        yield BLANK
        over = f"medians over {plural(sweep.count, 'run')}, " if several else ""
        if several and at_many:
            over = f"tokens: medians over {sweep.count:,} runs; dollars and their ratios: sums over them; "
        file = "" if sweep.file_says else f"; '{FILE}' is what the file says"
        yield (Cell(f"{over}relative to {BASELINE}; cost of the input, predicted{file}", "dim"),)
        if not at_many:
            told = ": no other valid strategy sends fewer tokens for the same money or less"
            yield (Cell(f"★{told}", "dim", f"letters{told}"),)
        summed = "the sum over all runs" if several else "the run"
        yield (Cell(f"{CHEAPEST}: no other valid strategy costs less in {summed} at the same prices", "dim"),)
        for said in sentences(sweep):
            yield (Cell(said.text, TONES[said.kind]),)
        if self._plot or self._whole:
            yield from self._drawn()

    def _drawn(self) -> Iterator[Block]:
        found = points(self.sweep)
        if not found:
            return
        yield BLANK
        yield Drawing(
            lambda width: scatter(found, X_TITLE, y_title(self.sweep), width),
            lambda form: scatter_picture(found, X_TITLE, y_title(self.sweep), form=form),
        )
        yield (Cell(LEGEND, "dim"),)

    def _strategies(self, *, providers: bool) -> Table:
        """At one provider's prices: medians, and the sums in US dollars beside them with what they are made of."""
        several = self.sweep.count > 1
        columns = {
            "★": Column("★", words="front"),
            "strategy": Column("strategy", flexible=True, least=24),
            "provider": Column("provider", flexible=True),
            "tokens": Column("tokens", right=True),
            "tokens spread": Column("min to max", right=True, leaves=1),
            "cost": Column("cost", right=True),
            "cost spread": Column("min to max", right=True, leaves=1),
            "sum": Column("sum", right=True, leaves=6),
            "interval": Column("95% of all", right=True),
            "dollars": Column("dollars", right=True),
            "live": Column("run live", leaves=8),
            "runs": Column("runs", right=True, leaves=4),
            "calls": Column("calls", right=True, leaves=3),
            "peak": Column("peak", right=True, leaves=2),
            "invalid": Column("invalid", right=True, leaves=5),
        }
        unseen: tuple[str, ...] = () if providers else ("provider",)
        unseen += () if self.sweep.ran is not None else ("live",)
        unseen += () if self.sweep.sample is not None else ("interval",)
        for name in (*unseen, *(() if several else _OF_SEVERAL)):
            del columns[name]
        found = zip(self.sweep.rows, marks(self.sweep), strict=True)
        rows = [_fields(self.sweep, tried, mark) for tried, mark in found]
        return Table(tuple(columns.values()), [[row[name] for name in columns] for row in rows])

    def _by_provider(self) -> Table:
        """A strategy on a line, and what its input costs at each provider in the sum: which is cheapest where."""
        sweep = self.sweep
        rows_at = {pricing: {tried.label: tried for tried in sweep.at(pricing)} for pricing in sweep.pricings}
        columns = [Column("strategy", flexible=True, least=24), Column("tokens", right=True)]
        for pricing in sweep.pricings:
            columns += [Column("as recorded" if pricing == RECORDED else pricing, right=True), Column("", leaves=3)]
        columns += [Column("calls", right=True, leaves=2), Column("peak", right=True, leaves=1)]
        columns += [Column("invalid", right=True, leaves=4)]
        rows: list[list[Piece]] = []
        for label in dict.fromkeys(tried.label for tried in sweep.rows):
            mine = [_fields(sweep, rows_at[p][label], "") for p in sweep.pricings if label in rows_at[p]]
            row: list[Piece] = [mine[0]["strategy"], mine[0]["tokens"]]
            for one in mine:
                cheapest = f"{one['★'].text} " if one["★"].text else ""
                row += [one["dollars"]._replace(text=cheapest + one["dollars"].text), one["sum"]._replace(token="dim")]
            row += [""] * (2 * (len(sweep.pricings) - len(mine)))
            rows.append([*row, mine[0]["calls"], mine[0]["peak"], mine[0]["invalid"]])
        return Table(columns, rows)

    def json(self) -> dict[str, Any]:
        return sweep_json(self.sweep)


_OF_SEVERAL = ("tokens spread", "cost spread", "sum")
"""Columns that need several runs."""


def sweep_picture(sweep: Sweep, form: Form) -> bytes:
    """The plot as a picture, with all that is said of the sweep below it."""
    said = tuple(said.text for said in sentences(sweep))
    return scatter_picture(points(sweep), X_TITLE, y_title(sweep), said, form)


SHARE = 9
"""Cells of a number relative to the baseline's."""
NOTES, NARROW_NOTES = 6, 2
"""Lines above the strategies that say what to make of them, at most; and below ``NARROW`` cells."""
NARROW = 60
BAR, LEAST_BAR = 30, 8
"""Most and least cells of a bar; with less room there is none."""
SHOWN = ("dollars", "live", "calls", "runs", "invalid", "peak", "tokens spread", "cost spread", "sum")
"""Columns of a list besides the shares, the most important first: as many as there is room for."""
ORDER = ("dollars", "live", "sum", "runs", "calls", "peak", "invalid")
"""The same as they stand behind the shares."""
HEADS = {"live": "run live", "tokens spread": "min to max", "cost spread": "min to max"}
WIDTHS = {
    **{"dollars": 12, "runs": 6, "calls": 7, "invalid": 9, "peak": 10, "sum": 8},
    **{"tokens spread": 14, "cost spread": 14},
}


ORDERS: Mapping[str, Callable[[StrategyResult], float]] = {
    "": lambda tried: 0.0,
    "dollars": lambda tried: math.inf if tried.invalid or tried.cost_sum is None else tried.cost_sum.value,
    "tokens": lambda tried: math.inf if tried.invalid else tried.tokens_sum.value,
}
"""Orders of a list of strategies: as they were given, and by what a person looks for; invalid ones come last."""


class SweepRows(Rows):
    """The strategies tried so far, in one of ``ORDERS``."""

    empty: tuple[str, ...] = ("Nothing tried yet.",)
    spreads = True

    def __init__(
        self,
        sweep: Sweep,
        name: str,
        of: int,
        *,
        is_over: bool,
        tick: int = 0,
        marked: Collection[str] = (),
        order: str = "",
    ) -> None:
        """``order`` is one of ``ORDERS``."""
        self.sweep, self.marked = replace(sweep, rows=tuple(sorted(sweep.rows, key=ORDERS[order]))), marked
        by = f", by {order}" if order else ""
        self._marks = marks(sweep)
        done = f"{len(sweep.rows)} of {plural(of, 'strategy')}"
        state: Span = (f"  {done} tried{by}", "dim") if is_over else (f"  trying {done}{by} ", "running")
        self.title = (("Sweep", "title"), (f"  {flat(name)}", "name"), state)
        if not is_over:
            self.title = (*self.title, sign("running", tick))
        self._notes = tuple(sentences(sweep)) if is_over else ()
        if sweep.excluded and not sweep.count:
            self.empty = tuple(f"{one.run} is left out: {one.reason}." for one in sweep.excluded)

    def __len__(self) -> int:
        return len(self.sweep.rows)

    def heads(self, width: int) -> Sequence[Row]:
        room, bar, shown = self._widths(width)
        text = f"   {fit('strategy', room)}"
        for name in ("tokens", "cost"):
            spread = f"{name} spread"
            text += fit(name, SHARE, "right")
            text += fit(HEADS[spread], WIDTHS[spread], "right") if "cost spread" in shown else ""
            text += " " * bar
        for name in (name for name in ORDER if name in shown):
            text += fit(HEADS.get(name, name), self._width_of(name), "right")
        legend = Row(whole_parts(_LEGEND.spans, width))
        return (*self._said(width), legend, Row(crop(((text, "head"),), width)))

    def _said(self, width: int) -> list[Row]:
        """Returns the conclusions about the strategies: which to choose, then the warnings."""
        ordered = sorted(self._notes, key=lambda said: list(TONES).index(said.kind))
        lines = [(line, said.kind) for said in ordered for line in wrap(flat(said.text), max(20, width - 2))]
        most = NOTES if width >= NARROW else NARROW_NOTES
        if len(lines) > most:
            last, kind = lines[most - 1]
            lines[most - 1] = (f"{last[: max(1, width - 3)]}…", kind)
        return [Row(crop(((f" {line}", TONES[kind]),), width)) for line, kind in lines[:most]]

    def _width_of(self, name: str) -> int:
        if name != "live":
            return WIDTHS[name]
        return 2 + max(len(HEADS[name]), *(len(live_words(self.sweep, row.label)) for row in self.sweep.rows), 0)

    def _widths(self, width: int) -> tuple[int, int, tuple[str, ...]]:
        """Cells of the name and of each bar, and the columns that there is room for."""
        names = max((cell_len(self._named(tried)) for tried in self.sweep.rows), default=0)
        least = max(12, min(names, width * 3 // 8))
        left, shown = width - 5 - 2 * SHARE - least, list[str]()
        for name in SHOWN:
            unsaid = (self.sweep.ran is None and name == "live") or (self.sweep.count < 2 and name in _OF_SEVERAL)
            needs = 2 * WIDTHS[name] if name == "tokens spread" else self._width_of(name)  # Both spreads, or none.
            if not unsaid and needs <= left:
                shown.append(name)
                left -= self._width_of(name)
        room = max(12, min(names, left + least))
        bar = min(BAR, (left + least - room) // 2)
        return room, bar if bar >= LEAST_BAR else 0, tuple(shown)

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """A strategy whose name is cut has it in as many lines as it takes: the first in its place, the others below,
        where they may go on under the numbers."""
        name, (room, *_) = self._named(self.sweep.rows[index]), self._widths(width)
        if cell_len(name) <= room:
            return ()
        first, *rest = wrap(name, max(8, room))
        token = _fields(self.sweep, self.sweep.rows[index], self._marks[index])["strategy"].token
        below = wrap(name[len(first) :].strip(), max(8, width - 6)) if rest else ()
        return self._row(index, width, first), *(Row((("     ", "plain"), (line, token))) for line in below)

    def row(self, index: int, width: int) -> Row:
        return self._row(index, width, self._named(self.sweep.rows[index]))

    def _row(self, index: int, width: int, name: str) -> Row:
        """A row with this as its name, which is cut where it is too long."""
        tried, mark = self.sweep.rows[index], self._marks[index]
        fields = _fields(self.sweep, tried, mark)
        room, bar, shown = self._widths(width)
        spans: list[Span] = [
            (" ", "plain"),
            ("●", "changed") if tried.label in self.marked else sign("winner") if tried.on_front else (" ", "plain"),
            (" ", "plain"),
            (fit(name, room), fields["strategy"].token),
        ]
        for name, of in _SHARES:
            number, *drawn = self._share(fields[name], of, tried, bar)
            spread = f"{name} spread"
            spans += [number, _span(fields[spread], WIDTHS[spread] if "cost spread" in shown else 0), *drawn]
        for name in (name for name in ORDER if name in shown):
            cell = fields[name]
            if name == "dollars" and tried.is_cheapest:
                cell = cell._replace(text=f"{CHEAPEST} {cell.text}")
            spans.append(_span(cell, self._width_of(name)))
        return Row(crop(spans, width))

    def _share(
        self, cell: Cell, of: Callable[[StrategyResult], Spread | None], tried: StrategyResult, bar: int
    ) -> list[Span]:
        """A number and its bar; the longest of the column takes all the room."""
        spread = of(tried)
        number = (fit(median(spread), 9, "right"), cell.token)
        if not bar:
            return [number]
        most = max((found.median for one in self.sweep.rows if (found := of(one)) is not None), default=1.0) or 1.0
        halves = 0 if spread is None else round(spread.median / most * (bar - 2) * 2)
        drawn = "━" * (halves // 2) + "╸" * (halves % 2)
        return [number, (" " + drawn.ljust(bar - 1), "dim" if cell.token == "plain" else cell.token)]

    def plot(self, height: Callable[[], int]) -> DrawnRows:
        """Tokens against cost, as wide as there is room, in a screen of so many lines."""
        found, said = points(self.sweep), list(fallback_lines(self.sweep))

        def draw(room: int) -> list[TextLine]:
            drawn = scatter(found, X_TITLE, y_title(self.sweep), room, max(6, height() - 7 - len(said)))
            none = [TextLine("No price is known, so there is no cost to plot against.", "dim")]
            notes = (TextLine(part, "masked") for one in said for part in wrap(one, max(20, room)))
            return [*(map(drawn_line, drawn) if found else none), TextLine(LEGEND, "dim"), *notes]

        def picture(form: Form) -> bytes:
            return scatter_picture(found, X_TITLE, y_title(self.sweep), said, form)

        title = (("Plot", "title"), ("  tokens against cost", "name"))
        return DrawnRows(draw, title, picture if found else None)

    def _named(self, tried: StrategyResult) -> str:
        return named(self.sweep, tried) + _meaning(self.sweep, tried)


_LEGEND = Row(
    (
        *((" ", "plain"), ("★", "ok"), (" no other is smaller and cheaper  ", "dim")),
        *((CHEAPEST, "ok"), (" costs least  ", "dim"), ("1.00x", "head"), (f" as much as {BASELINE}", "dim")),
    )
)
_SHARES: tuple[tuple[str, Callable[[StrategyResult], Spread | None]], ...] = (
    ("tokens", lambda tried: tried.tokens),
    ("cost", lambda tried: tried.cost),
)


def _span(cell: Cell, width: int) -> Span:
    return fit(cell.text, width, "right"), cell.token or "plain"
