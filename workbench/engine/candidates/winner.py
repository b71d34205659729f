"""Decides which candidate wins: by an evaluator, a trade of quality for cost, a person, or by joining all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from workbench.context.message import Image, Message, Part, TextPart
from workbench.engine.calls.auxiliary_calls import ask_model
from workbench.engine.candidates.candidates import Candidate, CandidateTask
from workbench.engine.candidates.human_choice import pick
from workbench.engine.candidates.trade_off import (
    Scored,
    best_by_weight,
    by_policy,
    dominated,
    frontier,
    with_known_costs,
)
from workbench.engine.contracts import NoPersonAttached
from workbench.engine.faults import PhaseFailed
from workbench.engine.human.people import TimedOut
from workbench.engine.journal.candidate_rounds import FALLBACK, UNUSABLE, chance_index
from workbench.engine.toolcalls import objects_in
from workbench.language.model.candidates import HumanEval

VALIDATOR = "validator:"
"""Begins a quality metric that a validator measures."""


class WinnerChoice(Struct):
    """The winner, and what spoke for it. Positions count within the candidates that were compared."""

    winner: int
    scores: dict[int, float] = field(default_factory=dict)
    reason: str = ""
    evaluator_pick: int | None = None
    """The evaluator's own choice, if something else decided."""
    decided_by: str = "evaluator"
    """The rule, model or person that decided."""
    decided: bool = True
    """Whether a person, a model or a rule of the file preferred the winner. False if it only lets the run go on: after
    an unusable answer, a random draw, a tie.
    """
    frontier: list[int] = field(default_factory=list)
    assumed: list[int] = field(default_factory=list)
    """Candidates whose score was needed and missing in the evaluator's answer."""
    evaluator_reason: str = ""
    """The evaluator's own reason, if a person decided."""
    qualities: dict[int, float] = field(default_factory=dict)
    """The qualities that were weighed against cost."""
    costs: dict[int, float] = field(default_factory=dict)
    """US dollars, as they were weighed."""
    assumed_costs: list[int] = field(default_factory=list)
    """Candidates of unknown cost, for which the mean of the known ones was used."""
    drawn: float | None = None
    """The number that decided."""
    offered: list[int] = field(default_factory=list)
    """Among whom a person decided."""
    rejected: dict[int, str] = field(default_factory=dict)
    """A person's reasons against the other candidates, if the file asks for them."""
    untold: bool = False
    """A person's choice that is not to be kept for training."""
    dominated: dict[int, int] = field(default_factory=dict)
    """Candidates beaten in both quality and cost, each with one that beats it; only if the file asks for it."""

    def to_json(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """By the indices that the candidates have in the phase."""
        name = [candidate.index for candidate in candidates]
        return {
            "winner": name[self.winner],
            "compared": name,
            "scores": {str(name[position]): score for position, score in self.scores.items()},
            "reason": self.reason,
            "evaluator_reason": self.evaluator_reason,
            "qualities": {str(name[position]): quality for position, quality in self.qualities.items()},
            "costs": {str(name[position]): cost for position, cost in self.costs.items()},
            "assumed_costs": [name[position] for position in self.assumed_costs],
            "drawn": self.drawn,
            "evaluator_pick": None if self.evaluator_pick is None else name[self.evaluator_pick],
            "decided_by": self.decided_by,
            "decided": self.decided,
            "frontier": [name[position] for position in self.frontier],
            **({"dominated": {str(name[i]): name[by] for i, by in self.dominated.items()}} if self.dominated else {}),
            **({"offered": [name[position] for position in self.offered]} if self.offered else {}),
            **({"rejected": {str(name[i]): why for i, why in self.rejected.items()}} if self.rejected else {}),
            **({"untold": True} if self.untold else {}),
            "assumed": bool(self.assumed),
            "assumed_scores": [name[position] for position in self.assumed],
        }

    def judged(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """The evaluator's verdict, for a person who decides after it; empty if none was asked."""
        if not self.scores:
            return {}
        left = ("winner", "decided_by", "decided", "drawn", "evaluator_reason")
        return {name: value for name, value in self.to_json(candidates).items() if name not in left}


class WinnerSelection:
    """Selects the winner of one contest."""

    def __init__(self, contest: CandidateTask) -> None:
        self._contest = contest

    async def choose(self, candidates: list[Candidate], instructions: str = "") -> WinnerChoice:
        """Compare candidates that passed. ``instructions`` replace the file's (reforge). Raises PhaseFailed when a
        person rejects all."""
        soundings = self._contest.soundings
        if len(candidates) == 1:
            return WinnerChoice(0, decided_by="the only one that passed")
        costs = soundings.cost_aware_evaluation
        pareto = soundings.pareto_frontier
        trades = bool((costs and costs.enabled) or (pareto and pareto.enabled))
        if soundings.evaluator == "human":
            return await self._person(candidates, list(range(len(candidates))))
        hybrid = soundings.evaluator == "hybrid"
        if hybrid and not instructions:
            instructions = self._contest.render(
                soundings.llm_prefilter_instructions, (*self._contest.path, "llm_prefilter_instructions")
            )
        choice = await self._evaluated(candidates, instructions, scores_needed=trades or hybrid)
        if not choice.decided:
            return await self._unjudged(candidates, choice)
        if hybrid:
            ranked = sorted(choice.scores, key=lambda i: (-choice.scores[i], i))[: soundings.llm_prefilter]
            return await self._asked_person(candidates, sorted(ranked), choice)
        if pareto and pareto.enabled:
            return await self._pareto(candidates, choice)
        if costs and costs.enabled:
            return self._weighed(candidates, choice)
        return choice

    async def _unjudged(self, candidates: list[Candidate], choice: WinnerChoice) -> WinnerChoice:
        """The choice if an evaluator gave nothing that can be weighed: by the file's other rules, else its fallback."""
        soundings = self._contest.soundings
        pareto = soundings.pareto_frontier
        if soundings.evaluator == "hybrid":
            return await self._asked_person(candidates, list(range(len(candidates))), choice)
        if pareto and pareto.enabled and pareto.quality_metric.startswith(VALIDATOR):
            return await self._pareto(candidates, choice)
        if pareto and pareto.enabled and pareto.policy == "interactive":
            with suppress(NoPersonAttached):
                return await self._asked_person(candidates, list(range(len(candidates))), choice, raises=True)
        return choice

    async def _evaluated(self, candidates: list[Candidate], instructions: str, *, scores_needed: bool) -> WinnerChoice:
        """Ask the evaluator, once more if its answer cannot be used; then fall back and say so."""
        soundings, run = self._contest.soundings, self._contest.engine
        path = (*self._contest.path, "evaluator_instructions")
        how = instructions or self._contest.render(soundings.evaluator_instructions, path) or DEFAULT
        request = messages(self._contest.task, how, [self._shown(candidate) for candidate in candidates])
        text = await ask_model(
            run, self._contest.world, self._contest.place, "evaluation", request, self._contest.model
        )
        found = read_evaluation(text, len(candidates), scores_needed=scores_needed)
        if isinstance(found, str):
            again = [
                *request,
                Message("assistant", text),
                Message("user", f"{found} Answer again with the object alone."),
            ]
            second = await ask_model(
                run, self._contest.world, self._contest.place, "evaluation", again, self._contest.model
            )
            lenient = read_evaluation(second, len(candidates), scores_needed=False)
            if isinstance(lenient, str):
                told = f"no usable evaluation ({lenient}); the first candidate stands undecided"
                run.warn("evaluator", told, self._contest.path)
                return WinnerChoice(0, reason=f"{UNUSABLE}: {lenient}", decided_by=FALLBACK, decided=False)
            found = lenient
        missing = [i for i in range(len(candidates)) if i not in found.scores] if scores_needed else []
        scores = assumed_scores(found.winner, len(candidates)) | found.scores if missing else found.scores
        return WinnerChoice(found.winner, scores, found.reason, found.winner, assumed=missing)

    def _shown(self, candidate: Candidate) -> ShownCandidate:
        soundings = self._contest.soundings
        notes = []
        if soundings.models:
            notes.append(f"Model: {candidate.conversation.model}")
        costs = soundings.cost_aware_evaluation
        if costs and costs.enabled and costs.show_costs_to_evaluator:
            cost = self._contest.engine.candidate_spent(candidate.conversation.place()).cost
            notes.append("Cost: unknown" if cost is None else f"Cost: ${cost:.6f}")
        if candidate.verdict is not None and not candidate.verdict.valid:
            notes.append(f"Rejected by the validator: {candidate.verdict.reason}")
        return ShownCandidate(candidate.output, " · ".join(notes), candidate.images)

    def _scored(self, candidates: list[Candidate], qualities: dict[int, float], choice: WinnerChoice) -> list[Scored]:
        """Quality and cost of each candidate, noted in the choice; empty, with a warning, if no cost is known."""
        costs = {
            position: self._contest.engine.candidate_spent(candidate.conversation.place()).cost
            for position, candidate in enumerate(candidates)
        }
        scored = with_known_costs(qualities, costs)
        if not scored:
            self._contest.engine.warn("L713", "no cost is known: quality alone decides", self._contest.path)
        choice.qualities = dict(qualities)
        choice.costs = {one.index: one.cost for one in scored}
        choice.assumed_costs = [one.index for one in scored if one.assumed]
        return scored

    def _weighed(self, candidates: list[Candidate], choice: WinnerChoice) -> WinnerChoice:
        soundings = self._contest.soundings
        assert soundings.cost_aware_evaluation is not None
        rule = soundings.cost_aware_evaluation
        scored = self._scored(candidates, choice.scores, choice)
        if scored:
            best = best_by_weight(scored, rule.quality_weight, rule.cost_weight, rule.cost_normalization)
            choice.winner, choice.decided_by = best.index, "quality and cost"
        else:
            choice.winner, choice.decided_by = max(choice.scores, key=lambda i: (choice.scores[i], -i)), "quality"
        return choice

    async def _pareto(self, candidates: list[Candidate], choice: WinnerChoice) -> WinnerChoice:
        soundings = self._contest.soundings
        assert soundings.pareto_frontier is not None
        rule = soundings.pareto_frontier
        qualities = await _qualities(candidates, choice, rule.quality_metric)
        scored = self._scored(candidates, qualities, choice)
        if not scored:
            choice.winner, choice.decided_by = max(qualities, key=lambda i: (qualities[i], -i)), "quality"
            choice.decided = True
            return choice
        front = frontier(scored)
        on_front = [one.index for one in front]
        if rule.show_frontier:
            choice.frontier = on_front
            choice.dominated = dominated(scored) if rule.include_dominated else {}
        policy = rule.policy
        if policy == "interactive":
            try:
                picked = await self._asked_person(candidates, on_front, choice, raises=True)
                if picked.decided_by == "a person":
                    picked.decided_by = "a person, from the frontier"
                return picked
            except NoPersonAttached:
                self._contest.engine.warn("pareto", "nobody is there to choose: policy balanced", self._contest.path)
                policy = "balanced"
        choice.winner, choice.decided_by = by_policy(front, policy).index, f"frontier, {policy}"
        choice.decided = True
        return choice

    async def _person(self, candidates: list[Candidate], offered: list[int]) -> WinnerChoice:
        """Let a person choose; after the time-out, the file's rule chooses. Raises PhaseFailed when all candidates are
        rejected.
        """
        return await self._asked_person(candidates, offered, WinnerChoice(offered[0]))

    async def _asked_person(
        self, candidates: list[Candidate], offered: list[int], choice: WinnerChoice, *, raises: bool = False
    ) -> WinnerChoice:
        """``choice`` holds what an evaluator said before; the person's word replaces its winner."""
        shown = [candidates[position] for position in offered]
        scores = {at: choice.scores[position] for at, position in enumerate(offered) if position in choice.scores}
        judging = self._contest.render(
            self._contest.soundings.evaluator_instructions, (*self._contest.path, "evaluator_instructions")
        )
        choice.evaluator_reason = choice.reason
        try:
            found = await pick(
                self._contest, shown, judging or FOR_PEOPLE, scores, choice.judged(candidates), raises=raises
            )
        except TimedOut:
            return await self._unattended(candidates, offered, choice)
        if found.fault:
            return self._unusable(offered, choice, found.fault)
        choice.winner, choice.reason, choice.decided_by = offered[found.winner], found.reason, "a person"
        choice.decided = not found.tied
        if found.tied:
            choice.decided_by = "a person: a tie, the first of them"
        choice.offered = list(offered)
        choice.rejected = {offered[at]: reason for at, reason in found.rejected.items()}
        rule = self._contest.soundings.human_eval
        choice.untold = rule is not None and not rule.capture_for_training
        choice.scores |= {offered[at]: score for at, score in found.scores.items()}
        return choice

    def _unusable(self, offered: list[int], choice: WinnerChoice, fault: str) -> WinnerChoice:
        """A person named no candidate, twice: what an evaluator preferred stands, else the first, undecided."""
        if choice.evaluator_pick in offered:
            choice.winner, choice.reason = choice.evaluator_pick, choice.evaluator_reason
            choice.decided, choice.decided_by = True, f"evaluator, because a person named no candidate: {fault}"
            stands = f"attempt {choice.winner + 1}, which the evaluator chose, wins"
        else:
            choice.winner, choice.reason = offered[0], fault
            choice.decided, choice.decided_by = False, FALLBACK
            stands = "the first one stands undecided"
        self._contest.engine.warn("evaluator", f"{fault}; {stands}", self._contest.path)
        return choice

    async def _unattended(self, candidates: list[Candidate], offered: list[int], choice: WinnerChoice) -> WinnerChoice:
        """The choice by ``on_timeout``, when no person chose in time."""
        rule = self._contest.soundings.human_eval or HumanEval()
        within = f"nobody chose within {rule.timeout_seconds or 0:g} s"
        if rule.on_timeout == "abort":
            raise PhaseFailed(within, "soundings")
        choice.decided = rule.on_timeout == "llm_fallback"
        if rule.on_timeout == "llm_fallback":
            how = self._contest.render(
                rule.fallback_evaluator, (*self._contest.path, "human_eval", "fallback_evaluator")
            )
            among = [candidates[position] for position in offered]
            judged = await self._evaluated(among, how, scores_needed=False)
            choice.winner, choice.reason = offered[judged.winner], judged.reason
            choice.scores = {offered[i]: s for i, s in judged.scores.items()}
            choice.decided = judged.decided
            if judged.evaluator_pick is not None:
                choice.evaluator_pick = choice.winner
        elif rule.on_timeout == "random":
            draw = self._contest.engine.ports.random.draw(
                self._contest.place, chance_index([c.index for c in candidates])
            )
            choice.drawn, choice.winner = draw, offered[int(draw * len(offered))]
        else:
            choice.winner = offered[0]
        choice.decided_by = f"{rule.on_timeout}, because {within}"
        return choice


async def _qualities(candidates: list[Candidate], choice: WinnerChoice, metric: str) -> dict[int, float]:
    """The evaluator's scores, or those of a validator."""
    if not metric.startswith(VALIDATOR):
        return choice.scores
    name = metric.partition(":")[2]
    scores: dict[int, float] = {}
    for position, candidate in enumerate(candidates):
        conversation = candidate.conversation
        index = 2000 + candidate.index
        place = conversation.place()
        verdict = await conversation.validation.judge(name, candidate.output, place, index, "validator")
        conversation.validation.record(place, index, verdict, check="quality", name=name, mode="metric")
        scores[position] = verdict.score if verdict.score is not None else 100.0 * verdict.valid
    return scores


SYSTEM = "You compare attempts at the same task. Answer with one JSON object and nothing else."
DEFAULT = "Choose the attempt that best fulfils the task."
FOR_PEOPLE = "Choose the candidate that best fulfils the task."
_ALONE = re.compile(r"(?:attempt\s*)?(\d{1,9})\.?", re.IGNORECASE)
_ANSWER = 'Answer: {"winner": N, "scores": {"1": 0-100, …}, "reason": "…"}'


class ShownCandidate(Struct, frozen=True):
    """A candidate as the evaluator sees it."""

    output: str
    note: str = ""
    """Model, cost or verdict, if the file shows them."""
    images: tuple[Image, ...] = ()


class Evaluation(Struct, frozen=True):
    """The evaluator's verdict. Positions count from 0."""

    winner: int
    scores: dict[int, float] = field(default_factory=dict)
    reason: str = ""


def messages(task: str, instructions: str, shown: Sequence[ShownCandidate]) -> list[Message]:
    """The evaluator's request: the unmutated task, how to judge, and each attempt."""
    parts: list[Part] = [TextPart(f"## Task\n{task}\n\n## How to judge\n{instructions or DEFAULT}")]
    for number, candidate in enumerate(shown, 1):
        note = f"\n{candidate.note}" if candidate.note else ""
        parts.append(TextPart(f"## Attempt {number}{note}\n{candidate.output}"))
        parts += candidate.images
    parts.append(TextPart(_ANSWER))
    if any(isinstance(part, Image) for part in parts):
        return [Message("system", SYSTEM), Message("user", tuple(parts))]
    text = "\n\n".join(part.text for part in parts if isinstance(part, TextPart))
    return [Message("system", SYSTEM), Message("user", text)]


def read_evaluation(text: str, count: int, *, scores_needed: bool) -> Evaluation | str:
    """The evaluation in an answer, or why it cannot be used, for one repair call."""
    value = next((value for value in objects_in(text) if "winner" in value), None)
    if value is None and (alone := _ALONE.fullmatch(text.strip())):  # Instructions of a file may ask for no more.
        value = {"winner": alone[1]}
    if value is None:
        return "The answer holds no JSON object with a winner."
    winner = value.get("winner")
    if isinstance(winner, str) and winner.strip().isdigit():
        winner = int(winner)
    if not isinstance(winner, int) or isinstance(winner, bool) or not 1 <= winner <= count:
        return f"'winner' must be a whole number from 1 to {count}."
    scores = _scores(value.get("scores"), count)
    if scores_needed and len(scores) < count:
        return f"'scores' must hold a number from 0 to 100 for each of the {count} attempts."
    return Evaluation(winner - 1, scores, str(value.get("reason") or ""))


def assumed_scores(winner: int, count: int) -> dict[int, float]:
    """Scores if they are needed and missing: 100 for the winner, 50 for the others."""
    return {index: 100.0 if index == winner else 50.0 for index in range(count)}


def _scores(value: object, count: int) -> dict[int, float]:
    if not isinstance(value, dict):
        return {}
    scores: dict[int, float] = {}
    for key, score in value.items():
        number = int(key) if str(key).isdigit() else 0
        if 1 <= number <= count and isinstance(score, int | float) and not isinstance(score, bool):
            scores[number - 1] = max(0.0, min(100.0, float(score)))
    return scores
