"""How the candidates of a round stand: what each is, did, cost and was given, in one row for every face of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Grade
from workbench.context.place import Place
from workbench.engine.candidates.trade_off import frontier, with_known_costs
from workbench.engine.journal.candidate_rounds import CandidateRounds, Entrant, Round, candidate_name
from workbench.engine.journal.event import Event
from workbench.engine.journal.figures import Figures
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState

CostGrade = Literal["billed", "so far", "predicted", "unknown"]


class RankedCandidate(Struct, frozen=True):
    """One candidate of one round."""

    entrant: Entrant
    place: Place
    """Branch, phase and visit of its execution."""
    calls: tuple[CallState, ...]
    """Its model calls, in order."""
    failed_checks: tuple[str, ...]
    """Names of the checks that it failed last."""
    model: str
    tokens: int | None
    cost: float | None
    """US dollars."""
    cost_grade: CostGrade
    assumed_cost: float | None
    """The value that stood in for an unknown cost in the evaluation: the mean of the known, in US dollars."""
    score: float | None
    """0 to 100, as the evaluator or a person gave it."""
    assumed_score: bool
    """The evaluator gave none: 100 for its winner and 50 for the others were used."""
    quality: float | None
    """The quality that was weighed against cost: the score, or that of a validator."""
    seconds: float | None
    incumbent: bool
    """The winner of the round before, which is compared again."""
    compared: bool
    """It took part in the evaluation."""
    on_front: bool = False
    """No other candidate is at least as good for at most as much money."""
    won: bool = False
    """In this round it was chosen, or it stands in for a missing choice."""
    decided: bool = True
    """Someone or a rule preferred the winner of this round; else it no candidate was chosen: this one stands in."""
    stands: bool = False
    """Its output is the phase's."""

    @property
    def tokens_grade(self) -> Grade:
        """How far ``tokens`` can be trusted."""
        return Figures.of(self.calls).worth.grade_in

    @property
    def number(self) -> str:
        return candidate_name(self.entrant.index)

    @property
    def output(self) -> str:
        """Its output; while it runs, its newest answer."""
        if self.entrant.output or self.entrant.status not in ("running", "pending"):
            return self.entrant.output
        return next((call.answer.text for call in reversed(self.calls) if call.answer is not None), "")


def ranked_candidates(state: RunState, contest: CandidateRounds, of: Round) -> tuple[RankedCandidate, ...]:
    """The candidates of a round in the order of their index; a refinement's incumbent first."""
    evaluation = of.evaluation or judged(state, contest, of)
    incumbent = _incumbent(contest, of)
    rows = [_standing(state, contest, of, e, evaluation, incumbent=False) for e in of.entrants]
    if incumbent is not None:
        rows.insert(0, _standing(state, contest, of, incumbent, evaluation, incumbent=True))
    front = set(evaluation.get("frontier", ())) or _front(rows)
    return tuple(replace(row, on_front=row.entrant.index in front) for row in rows)


def evaluator_calls(state: RunState, contest: CandidateRounds, of: Round) -> tuple[CallState, ...]:
    """The exchanges that settled a round: the evaluator's, its repair, or the call that joined the outputs."""
    later = [r.seq for r in contest.rounds if r.seq > of.seq]
    return tuple(
        call
        for call in state.calls
        if call.place.visit_key == contest.place.visit_key
        and call.beside
        and call.purpose in ("evaluation", "aggregation")
        and of.seq < call.seq < min(later, default=call.seq + 1)
    )


def question_of(state: RunState, contest: CandidateRounds) -> Event | None:
    """The open question by which a person chooses among these candidates."""
    key = contest.place.visit_key
    return next((q for q in state.questions if q.place.visit_key == key and q.data.get("candidates")), None)


def judged(state: RunState, contest: CandidateRounds, of: Round) -> Mapping[str, Any]:
    """The evaluator's verdict on the round that a person is asked about; empty otherwise."""
    question = question_of(state, contest)
    if question is None or of is not contest.rounds[-1]:
        return {}
    found = question.data.get("judged")
    return found if isinstance(found, Mapping) else {}


def _incumbent(contest: CandidateRounds, of: Round) -> Entrant | None:
    if of.kind != "reforge" and not of.step:
        return None
    before = [r for r in contest.rounds if r.step < of.step]
    compared = (of.evaluation or {}).get("compared")
    if compared:
        return contest.entrant(compared[0])
    index = next((r.winner for r in reversed(before) if r.winner is not None), None)
    return contest.entrant(index) if index is not None else None


def _standing(
    state: RunState,
    contest: CandidateRounds,
    of: Round,
    entrant: Entrant,
    evaluation: Mapping[str, Any],
    *,
    incumbent: bool,
) -> RankedCandidate:
    key = str(entrant.index)
    calls = _calls(state, contest, entrant)
    place = contest.place._replace(branch=entrant.branch)
    visit = state.visit_of(place)
    tokens, cost, grade = _spent(entrant, calls)
    scores, costs = evaluation.get("scores", {}), evaluation.get("costs", {})
    score = scores.get(key)
    models = list(dict.fromkeys(call.model for call in calls if not call.beside))
    checks = {str(check.get("name") or check.get("check")): check for check in (visit.checks if visit else ())}
    stood = entrant.index in evaluation.get("compared", ())
    return RankedCandidate(
        entrant,
        place,
        calls,
        tuple(name for name, check in checks.items() if not check.get("valid", True)),
        entrant.model or ", ".join(models) or (visit.model if visit is not None else ""),
        tokens,
        cost,
        grade,
        costs.get(key) if entrant.index in evaluation.get("assumed_costs", ()) else None,
        score,
        entrant.index in evaluation.get("assumed_scores", ()),
        evaluation.get("qualities", {}).get(key, score),
        entrant.seconds,
        incumbent,
        stood,
        won=of.winner == entrant.index,
        decided=of.evaluation is None or of.decided,
        stands=contest.winner == entrant.index,
    )


def _calls(state: RunState, contest: CandidateRounds, entrant: Entrant) -> tuple[CallState, ...]:
    own = [
        c for c in state.calls if c.place.branch == entrant.branch or c.place.branch.startswith(f"{entrant.branch}/")
    ]
    if contest.is_whole:
        return tuple(own)
    return tuple(c for c in own if (c.place.phase, c.place.visit) == (contest.place.phase, contest.place.visit))


def _spent(entrant: Entrant, calls: Sequence[CallState]) -> tuple[int | None, float | None, CostGrade]:
    """Tokens and US dollars: as journaled at its end, else of the calls so far, else what the forecasts said of those
    without a bill, with what the others cost."""
    answered = [call for call in calls if call.answer is not None]
    worth = Figures.of(calls).worth
    tokens = worth.tokens
    if entrant.cost is not None:
        return (entrant.tokens if entrant.tokens is not None else tokens), entrant.cost, "billed"
    known = [call.cost for call in answered if call.cost is not None]
    ended = entrant.status not in ("running", "pending")
    if answered and len(known) == len(answered):
        return tokens, sum(known), "billed" if ended else "so far"
    total = entrant.tokens if entrant.tokens is not None else tokens if answered else None
    spent = worth.spent
    if answered and not spent.unknown:
        return total, spent.total, "predicted"
    return total, None, "unknown"


def _front(rows: Sequence[RankedCandidate]) -> set[int]:
    """The Pareto frontier of candidates with a quality, if no policy asked for one; empty for fewer than two."""
    scored = {row.entrant.index: row.quality for row in rows if row.quality is not None}
    if len(scored) < 2:
        return set()
    costs = {row.entrant.index: row.cost if row.cost_grade == "billed" else None for row in rows}
    known = with_known_costs(scored, {index: costs[index] for index in scored})
    return {one.index for one in frontier(known)}
