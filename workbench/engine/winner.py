"""Who wins among candidates: an evaluator, a trade of quality for cost, a person, or all of them joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.context.message import Message
from workbench.engine import judging
from workbench.engine.candidates import Candidate
from workbench.engine.evaluation import (
    DEFAULT,
    Evaluation,
    Shown,
    assumed_scores,
    messages,
    read_evaluation,
)
from workbench.engine.faults import PhaseFailed
from workbench.engine.ports import NobodyToAsk, Question
from workbench.engine.selection import Scored, best_by_weight, by_policy, frontier, with_known_costs
from workbench.engine.side import ask_model

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.execution import Execution
    from workbench.engine.run import Run
    from workbench.engine.world import World
    from workbench.language.model import Soundings
    from workbench.language.problem import Path

REJECT = "reject all"


@dataclass(frozen=True)
class Contest:
    """What candidates are compared for: one phase, or the whole cascade."""

    soundings: Soundings
    execution: Execution
    """Renders the templates and asks the person."""
    path: Path
    """Of the ``soundings`` block."""
    task: str
    """Unmutated."""
    model: str
    """Of the evaluator."""

    @property
    def engine(self) -> Run:
        return self.execution.engine

    @property
    def world(self) -> World:
        return self.execution.world

    @property
    def place(self) -> Place:
        return self.execution.place()

    def render(self, template: str | None, path: Path) -> str:
        return self.execution.render(template, path)


@dataclass
class Choice:
    """The winner, and what spoke for it. Positions count within the candidates that were compared."""

    winner: int
    scores: dict[int, float] = field(default_factory=dict)
    reason: str = ""
    evaluator_pick: int | None = None
    """The evaluator's own pick, where something else decided."""
    decided_by: str = "evaluator"
    frontier: list[int] = field(default_factory=list)
    assumed: bool = False
    """Scores were needed and the evaluator gave none."""

    def to_json(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """By the indices that the candidates have in the phase."""
        name = [candidate.index for candidate in candidates]
        return {
            "winner": name[self.winner],
            "scores": {str(name[position]): score for position, score in self.scores.items()},
            "reason": self.reason,
            "evaluator_pick": None if self.evaluator_pick is None else name[self.evaluator_pick],
            "decided_by": self.decided_by,
            "frontier": [name[position] for position in self.frontier],
            "assumed": self.assumed,
        }


async def choose(contest: Contest, candidates: list[Candidate], instructions: str = "") -> Choice:
    """Compare candidates that passed. ``instructions`` replace the file's (reforge). Raises PhaseFailed when a person
    rejects all."""
    soundings = contest.soundings
    if len(candidates) == 1:
        return Choice(0, decided_by="the only one that passed")
    costs = soundings.cost_aware_evaluation
    pareto = soundings.pareto_frontier
    trades = bool((costs and costs.enabled) or (pareto and pareto.enabled))
    if soundings.evaluator == "human":
        return await _person(contest, candidates, list(range(len(candidates))))
    needed = trades or soundings.evaluator == "hybrid"
    choice = await _evaluated(contest, candidates, instructions, scores_needed=needed)
    if soundings.evaluator == "hybrid":
        ranked = sorted(choice.scores, key=lambda i: -choice.scores[i])[: soundings.llm_prefilter]
        return await _person(contest, candidates, sorted(ranked))
    if pareto and pareto.enabled:
        return await _pareto(contest, candidates, choice)
    if costs and costs.enabled:
        return _weighed(contest, candidates, choice)
    return choice


async def _evaluated(
    contest: Contest, candidates: list[Candidate], instructions: str, *, scores_needed: bool
) -> Choice:
    """Ask the evaluator, once more where its answer cannot be used, then fall back and say so."""
    soundings, run = contest.soundings, contest.engine
    path = (*contest.path, "evaluator_instructions")
    how = instructions or contest.render(soundings.evaluator_instructions, path) or DEFAULT
    request = messages(contest.task, how, [_shown(contest, candidate) for candidate in candidates])
    text = await ask_model(run, contest.world, contest.place, "evaluation", request, contest.model)
    found = read_evaluation(text, len(candidates), scores_needed=scores_needed)
    if isinstance(found, str):
        again = [*request, Message("assistant", text), Message("user", f"{found} Answer again with the object alone.")]
        second = await ask_model(run, contest.world, contest.place, "evaluation", again, contest.model)
        lenient = read_evaluation(second, len(candidates), scores_needed=False)
        if isinstance(lenient, str):
            run.warn("evaluator", f"no usable evaluation ({lenient}); the first candidate wins", contest.path)
            lenient = Evaluation(0, {}, "the evaluator's answer could not be used")
        found = lenient
    assumed = scores_needed and len(found.scores) < len(candidates)
    scores = assumed_scores(found.winner, len(candidates)) | found.scores if assumed else found.scores
    return Choice(found.winner, scores, found.reason, found.winner, assumed=assumed)


def _shown(contest: Contest, candidate: Candidate) -> Shown:
    soundings = contest.soundings
    notes = []
    if soundings.models:
        notes.append(f"Model: {candidate.execution.model}")
    costs = soundings.cost_aware_evaluation
    if costs and costs.enabled and costs.show_costs_to_evaluator:
        cost, _ = contest.engine.branch_cost(candidate.execution.place().branch)
        notes.append("Cost: unknown" if cost is None else f"Cost: ${cost:.6f}")
    if candidate.verdict is not None and not candidate.verdict.valid:
        notes.append(f"Rejected by the validator: {candidate.verdict.reason}")
    return Shown(candidate.output, " · ".join(notes), candidate.images)


def _scored(contest: Contest, candidates: list[Candidate], qualities: dict[int, float]) -> list[Scored]:
    """Quality and cost of each; empty, with a warning, where no cost is known."""
    costs = {
        position: contest.engine.branch_cost(candidate.execution.place().branch)[0]
        for position, candidate in enumerate(candidates)
    }
    scored = with_known_costs(qualities, costs)
    if not scored:
        contest.engine.warn("L713", "no cost is known: quality alone decides", contest.path)
    return scored


def _weighed(contest: Contest, candidates: list[Candidate], choice: Choice) -> Choice:
    soundings = contest.soundings
    assert soundings.cost_aware_evaluation is not None
    rule = soundings.cost_aware_evaluation
    scored = _scored(contest, candidates, choice.scores)
    if scored:
        best = best_by_weight(scored, rule.quality_weight, rule.cost_weight, rule.cost_normalization)
        choice.winner, choice.decided_by = best.index, "quality and cost"
    else:
        choice.winner, choice.decided_by = max(choice.scores, key=lambda i: (choice.scores[i], -i)), "quality"
    return choice


async def _pareto(contest: Contest, candidates: list[Candidate], choice: Choice) -> Choice:
    soundings = contest.soundings
    assert soundings.pareto_frontier is not None
    rule = soundings.pareto_frontier
    qualities = await _qualities(candidates, choice, rule.quality_metric)
    scored = _scored(contest, candidates, qualities)
    if not scored:
        choice.winner, choice.decided_by = max(qualities, key=lambda i: (qualities[i], -i)), "quality"
        return choice
    front = frontier(scored)
    choice.frontier = [one.index for one in front]
    policy = rule.policy
    if policy == "interactive":
        try:
            picked = await _person(contest, candidates, choice.frontier, raises=True)
            choice.winner, choice.decided_by = picked.winner, "a person, from the frontier"
            return choice
        except NobodyToAsk:
            contest.engine.warn("pareto", "nobody is there to choose: policy balanced", contest.path)
            policy = "balanced"
    choice.winner, choice.decided_by = by_policy(front, policy).index, f"frontier, {policy}"
    return choice


async def _qualities(candidates: list[Candidate], choice: Choice, metric: str) -> dict[int, float]:
    """The evaluator's scores, or those of a validator."""
    if not metric.startswith("validator:"):
        return choice.scores
    name = metric.partition(":")[2]
    scores: dict[int, float] = {}
    for position, candidate in enumerate(candidates):
        execution = candidate.execution
        index = 2000 + candidate.index
        place = execution.place()
        verdict = await judging.judge(execution, name, candidate.output, place, index, "validator")
        scores[position] = verdict.score if verdict.score is not None else 100.0 * verdict.valid
    return scores


async def _person(contest: Contest, candidates: list[Candidate], offered: list[int], *, raises: bool = False) -> Choice:
    """Let a person pick. Raises PhaseFailed when all are rejected; NobodyToAsk, if ``raises``."""
    soundings = contest.soundings
    options = [f"Attempt {number}" for number in range(1, len(offered) + 1)]
    rejectable = soundings.human_eval is None or soundings.human_eval.allow_reject_all
    shown = "\n\n".join(f"Attempt {n}:\n{candidates[i].output}" for n, i in enumerate(offered, 1))
    question = Question(
        soundings.evaluator_instructions or DEFAULT,
        shown,
        (*options, *([REJECT] if rejectable else [])),
        "choice",
    )
    answer = await contest.execution.ask(question, raises=raises)
    if answer.strip().lower() == REJECT:
        raise PhaseFailed("all candidates were rejected", "soundings")
    number = "".join(c for c in answer if c.isdigit())
    position = int(number) - 1 if number else 0
    if not number or not 0 <= position < len(offered):
        contest.engine.warn("evaluator", f"'{answer}' names no attempt; the first one wins", contest.path)
        position = 0
    return Choice(offered[position], decided_by="a person", reason=answer)
