"""Statistics of stored soundings: which variants win more often than by chance, at which cost, and what winners
share."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from msgspec import Struct, field

from workbench.analysis.ranking import ranked_candidates
from workbench.engine.journal.candidate_rounds import CandidateRounds, Entrant, Round
from workbench.engine.journal.state import RunState

WHOLE = "(the whole cascade)"
Z = 1.96
"""Of the 95% interval."""
GAP = 0.25
"""How much more often a trait stands in winners than in losers before it is named."""
MAX_WORDS = 6

_SHAPES: Mapping[str, re.Pattern[str]] = {
    "numbered steps": re.compile(r"^\s*\d+[.)] ", re.MULTILINE),
    "bullets": re.compile(r"^\s*[-*•] ", re.MULTILINE),
    "headings": re.compile(r"^#{1,6} ", re.MULTILINE),
    "a code block": re.compile(r"^```", re.MULTILINE),
    "a table": re.compile(r"^\|.+\|$", re.MULTILINE),
    "numbers": re.compile(r"\d"),
    "a question": re.compile(r"\?\s*$", re.MULTILINE),
}
_WORD = re.compile(r"[^\W\d_]{4,}")


class VariantKey(NamedTuple):
    """Identifies a variant: candidates of different runs with equal keys are the same one."""

    model: str = ""
    mutation_type: str = ""
    mutation: str = ""

    def words(self) -> str:
        """``baseline``, ``augment: …``, with the model if it differs."""
        change = f"{self.mutation_type}: {self.mutation}" if self.mutation_type else "baseline"
        return f"{change} ({self.model})" if self.model else change


class Variant(Struct):
    """How one variant did. ``stood`` counts the rounds that it was in."""

    key: VariantKey
    stood: int = 0
    won: int = 0
    failed: int = 0
    chance: float = 0.0
    """Rounds that it would win if the winner were drawn by lot."""
    costs: list[float] = field(default_factory=list)
    """US dollars of the candidates with a known cost."""
    tokens: list[int] = field(default_factory=list)
    applied: str = ""
    """The instructions that its newest win was given."""

    @property
    def cost(self) -> float | None:
        """Mean; None if none is known."""
        return sum(self.costs) / len(self.costs) if self.costs else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of its share of wins (Wilson's score interval)."""
        if not self.stood:
            return 0.0, 1.0
        share, z2 = self.won / self.stood, Z * Z
        middle = share + z2 / (2 * self.stood)
        spread = Z * sqrt(share * (1 - share) / self.stood + z2 / (4 * self.stood**2))
        return max(0.0, (middle - spread) / (1 + z2 / self.stood)), min(1.0, (middle + spread) / (1 + z2 / self.stood))

    @property
    def least(self) -> float:
        """The lower end of that interval; 0 if it never took part."""
        return self.interval[0]

    @property
    def convinces(self) -> bool:
        """Whether it wins more often than chance explains."""
        return self.stood > 0 and self.least > self.chance / self.stood


class Trait(Struct, frozen=True):
    """Something that outputs of winners have more often than those of losers: shares from 0 to 1."""

    name: str
    winners: float
    losers: float


class PhaseAnalysis(Struct, frozen=True):
    """The soundings of one phase over many runs."""

    phase: str
    runs: int
    rounds: int
    variants: tuple[Variant, ...]
    """The most convincing first."""
    traits: tuple[Trait, ...]
    undecided: int
    """Further rounds without a decision, in which one candidate went on."""
    winner_cost: float | None
    loser_cost: float | None
    """Mean US dollars of a candidate."""

    @property
    def best(self) -> Variant | None:
        """The variant to take over: one that convinces and is not what the file says already."""
        first = self.variants[0] if self.variants else None
        return first if first is not None and first.convinces and (first.key.mutation_type or first.key.model) else None

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        best = self.best
        return {
            "phase": self.phase,
            "runs": self.runs,
            "rounds": self.rounds,
            "undecided": self.undecided,
            "winner_cost": self.winner_cost,
            "loser_cost": self.loser_cost,
            "variants": [
                {
                    **one.key._asdict(),
                    "stood": one.stood,
                    "won": one.won,
                    "failed": one.failed,
                    "by_chance": round(one.chance, 3),
                    "at_least": round(one.least, 3),
                    "at_most": round(one.interval[1], 3),
                    "convinces": one.convinces,
                    "cost": one.cost,
                }
                for one in self.variants
            ],
            "traits": [
                {"name": t.name, "winners": round(t.winners, 3), "losers": round(t.losers, 3)} for t in self.traits
            ],
            "suggestion": None if best is None else suggestion(best),
        }


def analysed(states: Iterable[RunState], phase: str = "") -> list[PhaseAnalysis]:
    """The soundings of each phase, or of one, in the order in which they first ran. Steps of reforge are left out: an
    incumbent stands in them that the others had to beat. Rounds without a winner are, too, and those without
    a decision."""
    rounds: dict[str, list[_RoundOfRun]] = defaultdict(list)
    undecided: Counter[str] = Counter()
    for state in states:
        for contest in state.contests:
            name = WHOLE if contest.is_whole else contest.place.phase
            for one in contest.rounds:
                if one.kind == "reforge" or one.winner is None or phase not in ("", name):
                    continue
                if one.decided:
                    rounds[name].append(_RoundOfRun(state.run_id, one, _costs(state, contest, one)))
                else:
                    undecided[name] += 1
    return [_analysis(name, found, undecided[name]) for name, found in rounds.items()]


class _RoundOfRun(NamedTuple):
    """A round, with what is looked at of its run."""

    run_id: str
    round: Round
    costs: Mapping[int, float]
    """US dollars by candidate, as far as they are known."""

    def cost(self, *, won: bool) -> list[float]:
        return [cost for index, cost in self.costs.items() if (index == self.round.winner) is won]


def _costs(state: RunState, contest: CandidateRounds, one: Round) -> dict[int, float]:
    rows = ranked_candidates(state, contest, one)
    return {row.entrant.index: row.cost for row in rows if row.cost is not None and row.cost_grade == "billed"}


def _analysis(phase: str, rounds: Sequence[_RoundOfRun], undecided: int) -> PhaseAnalysis:
    models = {entrant.model for stood in rounds for entrant in stood.round.entrants}
    variants: dict[VariantKey, Variant] = {}
    winners: list[Entrant] = []
    losers: list[Entrant] = []
    for _, one, costs in rounds:
        stood: Counter[VariantKey] = Counter()
        for entrant in one.entrants:
            key = VariantKey(entrant.model if len(models) > 1 else "", entrant.mutation_type, entrant.mutation_template)
            variant = variants.setdefault(key, Variant(key))
            stood[key] += 1
            won = entrant.index == one.winner
            (winners if won else losers).append(entrant)
            variant.won += won
            variant.failed += entrant.status in ("failed", "blocked")
            variant.costs += [costs[entrant.index]] if entrant.index in costs else []
            variant.tokens += [entrant.tokens] if entrant.tokens is not None else []
            if won:
                variant.applied = entrant.mutation_applied
        for key, count in stood.items():
            variants[key].stood += 1
            variants[key].chance += count / len(one.entrants)
    ordered = sorted(variants.values(), key=lambda v: (v.least - v.chance / v.stood, v.won), reverse=True)
    return PhaseAnalysis(
        phase,
        len({stood.run_id for stood in rounds}),
        len(rounds),
        tuple(ordered),
        tuple(_traits(winners, losers)),
        undecided,
        _mean([cost for stood in rounds for cost in stood.cost(won=True)]),
        _mean([cost for stood in rounds for cost in stood.cost(won=False)]),
    )


def _mean(costs: Sequence[float]) -> float | None:
    return sum(costs) / len(costs) if costs else None


def _traits(winners: Sequence[Entrant], losers: Sequence[Entrant]) -> Iterable[Trait]:
    """Shapes, lengths and words that outputs of winners have clearly more often, or clearly less."""
    a = [entrant.output for entrant in winners if entrant.output]
    b = [entrant.output for entrant in losers if entrant.output]
    if not a or not b:
        return []
    middle = sorted(len(text) for text in (*a, *b))[(len(a) + len(b)) // 2]
    found = [_share(name, a, b, lambda text, p=pattern: bool(p.search(text))) for name, pattern in _SHAPES.items()]
    found.append(_share(f"more than {middle:,} characters", a, b, lambda text: len(text) > middle))
    words_a, words_b = (Counter(w for text in texts for w in set(_WORD.findall(text.casefold()))) for texts in (a, b))
    words = [Trait(f"the word '{w}'", n / len(a), words_b[w] / len(b)) for w, n in words_a.items()]
    told = (trait for trait in words if trait.winners - trait.losers >= GAP)
    words = sorted(told, key=lambda t: (t.losers - t.winners, t.name))[:MAX_WORDS]
    shapes = [trait for trait in found if abs(trait.winners - trait.losers) >= GAP]
    return [*sorted(shapes, key=lambda t: -abs(t.winners - t.losers)), *words]


def _share(name: str, a: Sequence[str], b: Sequence[str], has: Any) -> Trait:
    return Trait(name, sum(map(has, a)) / len(a), sum(map(has, b)) / len(b))


def suggestion(variant: Variant) -> str:
    """Returns the change of the file that makes every run as this variant was."""
    parts = []
    if variant.key.model:
        parts.append(f"Use the model {variant.key.model}.")
    if variant.key.mutation_type == "rewrite" and variant.applied:
        parts.append(f"Take over the rewritten instructions of its newest win:\n{variant.applied}")
    elif variant.key.mutation_type:
        parts.append(f"Make this a part of the instructions:\n{variant.key.mutation}")
    return "\n".join(parts)
