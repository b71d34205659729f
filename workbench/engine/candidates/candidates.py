"""Soundings: several executions of a phase run in parallel, each on its own copy of the state, and one of them wins."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.assembly import Item, Kind
from workbench.context.message import Image, Message
from workbench.context.place import Place
from workbench.engine.calls.auxiliary_calls import ask_model
from workbench.engine.contracts import PLACEHOLDER, ValidatorVerdict
from workbench.engine.conversation import Attempting, Conversation
from workbench.engine.faults import TRUST, PhaseBlocked, PhaseFailed
from workbench.engine.gate import Stop, StopKind
from workbench.engine.mutation import Mutation, mutations
from workbench.engine.services import Services
from workbench.engine.validators import key_of
from workbench.engine.world import World
from workbench.language.clean import clean_line
from workbench.language.model.candidates import InlineValidator, ModelShare, Soundings
from workbench.language.model.parameters import laid_over, named_parameters
from workbench.language.problem import Path

T = TypeVar("T")
STEPS = 8
"""Rounds of the event loop in which a connection is made and a request written on it."""
REWRITER = "You rewrite instructions for another model. Answer with the rewritten instructions and nothing else."


class Candidate(Struct):
    """One execution among several."""

    index: int
    conversation: Attempting
    mutation: Mutation | None = None
    status: str = "success"
    """success, failed or blocked."""
    reason: str = ""
    check: str = ""
    """The check that it failed at, as ``PhaseFailed`` names it."""
    applied: str | None = None
    """The mutated instructions, as used."""
    verdict: ValidatorVerdict | None = None
    """Of the pre-filter."""

    shown: str = ""
    """The text to compare if it is not the output alone: every phase's output of a whole walk."""

    @property
    def output(self) -> str:
        return self.shown or self.conversation.output

    given: tuple[Image, ...] = ()
    """Images of the answer that it refines."""

    @property
    def images(self) -> tuple[Image, ...]:
        """Images that the candidate's tools made, each once; if it made none, those of the answer that it refines."""
        made = [image for item in self.items if item.kind is not Kind.TASK for image in item.message.images]
        return tuple({image.digest: image for image in made}.values()) or self.given

    @property
    def items(self) -> Iterator[Item]:
        """The messages of its conversation; of a whole walk, those of all its visits."""
        yield from self.conversation.items
        if not self.conversation.place().visit:
            for record in self.conversation.world.records:
                yield from record.items


class CandidatePlan(Struct, frozen=True):
    """The plan of one candidate."""

    index: int
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    mutation: Mutation | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is journaled."""
        about = {"index": self.index, "model": self.model, "parameters": dict(self.parameters)}
        return about | mutation_data(self.mutation)


async def run_candidates(base: Attempting) -> list[Candidate]:
    """Run all candidates of the phase's soundings, at most ``max_parallel`` at once; in order of their index,
    and durable: they count from here on."""
    soundings = base.phase.soundings
    assert soundings is not None
    run, place = base.engine, base.setup.place
    plans, draws = plan(base, soundings, (*base.path, "soundings"))
    run.journal.emit(
        "candidates_started",
        place,
        kind="soundings",
        factor=len(plans),
        max_parallel=soundings.max_parallel,
        draws=draws,
        plans=[planned.to_json() for planned in plans],
    )
    await run.gate_of_state(Stop(StopKind.BEFORE_CANDIDATES, place, run.depth, state=base.world.state), base.world)
    limit = asyncio.Semaphore(soundings.max_parallel)

    async def one(planned: CandidatePlan) -> Candidate:
        async with limit:
            return await _run_one(base, planned, len(plans))

    candidates = await gather([one(planned) for planned in plans])
    await run.journal.synced()
    return candidates


async def gather(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. The first exception cancels the rest, and waits until they have ended.

    They begin in step with the loop: begun at once, all of them would make their requests before the first is sent, and
    all answers be there when the first is read.
    """
    tasks: list[asyncio.Task[T]] = []
    try:
        for one in work:
            tasks.append(asyncio.ensure_future(one))
            for _ in range(STEPS):
                await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for unbegun in work[len(tasks) :]:
            unbegun.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def no_winner(candidates: list[Candidate]) -> PhaseFailed:
    """Returns why none of the candidates can win; a reason that all of them share is told once."""
    told = {candidate.reason for candidate in candidates}
    reasons = "; ".join(f"{c.index}: {c.reason}" for c in candidates) if len(told) > 1 else "".join(told)
    if all(candidate.status == "blocked" for candidate in candidates):
        return PhaseBlocked(f"every candidate was blocked: {reasons}", "soundings")
    untrusted = all(candidate.check == TRUST for candidate in candidates)
    return PhaseFailed(f"no candidate passed: {reasons}", TRUST if untrusted else "soundings")


MAX_CANDIDATES = 1000
"""That a template of ``factor`` may ask for."""


def factor_of(conversation: Attempting, template: str, path: Path) -> int:
    """The number of candidates that a template gives. Raises PhaseFailed if it gives none."""
    text = conversation.render(template, path).strip()
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_CANDIDATES:
        where = conversation.engine.definition.where(path)
        asked = f"{where}: factor: the template gives '{clean_line(text, 60)}'"
        raise PhaseFailed(f"{asked}; a number from 1 to {MAX_CANDIDATES:,} is needed", "soundings")
    return int(text)


def plan(base: Attempting, soundings: Soundings, path: Path) -> tuple[list[CandidatePlan], list[float]]:
    """Returns which model and which mutation each candidate gets, and the numbers that were drawn for it. ``path`` is
    that of the ``soundings`` block."""
    count, draws = soundings.candidates, list[float]()
    if soundings.models and soundings.model_strategy != "round_robin":
        draws = [base.engine.ports.random.draw(base.setup.place, index) for index in range(count)]
    shares = _models(soundings, count, draws)
    varied = mutations(soundings, count, path)
    plans = [
        CandidatePlan(i, model, named_parameters(share), varied[i]) for i, (model, share) in enumerate(shares[:count])
    ]
    return plans, draws


def _models(soundings: Soundings, count: int, draws: list[float]) -> list[tuple[str, ModelShare]]:
    plain = ModelShare()
    if not soundings.models:
        return [("", plain)] * count
    if isinstance(soundings.models, dict):
        shares = list(soundings.models.items())
        if soundings.model_strategy == "round_robin":
            return [(name, share) for name, share in shares for _ in range(share.factor)]
    else:
        shares = [(name, plain) for name in soundings.models]
        if soundings.model_strategy == "round_robin":
            return [shares[index % len(shares)] for index in range(count)]
    return [_drawn(shares, draw) for draw in draws]


def _drawn(shares: list[tuple[str, ModelShare]], chance: float) -> tuple[str, ModelShare]:
    """The share that a number in [0, 1) falls on; factors are weights."""
    total = sum(share.factor for _, share in shares)
    point = chance * total
    for name, share in shares:
        point -= share.factor
        if point < 0:
            return name, share
    return shares[-1]


def mutation_data(mutation: Mutation | None) -> dict[str, Any]:
    """Returns how a task is varied, as it is journaled."""
    return {
        "mutation_type": mutation.mode if mutation else None,
        "mutation_template": mutation.template if mutation else None,
    }


def branch_of(parent: str, name: str) -> str:
    """The branch of a candidate inside another branch."""
    return f"{parent}/{name}" if parent else name


async def _run_one(base: Attempting, planned: CandidatePlan, factor: int) -> Candidate:
    name = f"s{planned.index}"
    around = base.world.sounding
    world = base.world.copy(replace(around, index=planned.index, factor=factor, inside=True))
    conversation = base.sibling(world, branch=branch_of(base.place().branch, name), model=planned.model)
    conversation.parameters = laid_over(conversation.parameters, planned.parameters)
    candidate = Candidate(planned.index, conversation, planned.mutation or base.setup.mutation)
    await run_one(candidate, "sounding")
    return candidate


async def run_one(candidate: Candidate, kind: str, refine: str = "") -> None:
    """Execute a candidate; how it ended is in the candidate, and in ``candidate_finished``.

    ``refine`` is the message that follows the task in a reforge step.
    """
    conversation, journal = candidate.conversation, candidate.conversation.engine.journal
    try:
        task, candidate.applied = await varied_task(conversation, candidate.mutation)
        await conversation.run(task, refine, candidate.given or conversation.setup.given)
    except PhaseBlocked as fault:
        candidate.status, candidate.reason = "blocked", fault.reason
    except PhaseFailed as fault:
        candidate.status, candidate.reason, candidate.check = "failed", fault.reason, fault.check
    cost, tokens, *_ = conversation.engine.candidate_spent(conversation.place())
    journal.emit(
        "candidate_finished",
        conversation.place(),
        index=candidate.index,
        kind=kind,
        status=candidate.status,
        reason=candidate.reason,
        output=candidate.output,
        model=conversation.model,
        mutation_applied=candidate.applied,
        cost=cost,
        tokens=tokens,
        **mutation_data(candidate.mutation),
    )


async def varied_task(conversation: Attempting, mutation: Mutation | None) -> tuple[str, str | None]:
    """The task of a conversation under a mutation, and the mutated instructions as used."""
    applied: str | None = None
    instructions = conversation.instructions()
    if mutation is not None:
        said = conversation.render(mutation.template, mutation.path) if mutation.path else mutation.template
        if mutation.mode == "rewrite":
            applied = await _rewritten(conversation, said, instructions)
        else:
            applied = mutation.varied(instructions, said)
        instructions = applied
    return "\n\n".join(
        part for part in (instructions, conversation.blocks(), conversation.setup.refine) if part
    ), applied


async def _rewritten(conversation: Attempting, how: str, instructions: str) -> str:
    run = conversation.engine
    request = [Message("system", REWRITER), Message("user", f"{how}\n\n{instructions}")]
    model = run.options.rewrite_model or run.options.default_model
    try:
        text = await ask_model(run, conversation.world, conversation.place(), "rewrite", request, model)
    except PhaseFailed as fault:
        run.warn("rewrite", f"the prompt runs unchanged: {fault.reason}", place=conversation.place())
        return instructions
    if text.startswith(PLACEHOLDER):
        run.warn("rewrite", "the prompt runs unchanged: no rewrite is scripted", place=conversation.place())
        return instructions
    return text.strip() or instructions


async def prefilter(candidates: list[Candidate], validator: str | InlineValidator) -> list[Candidate]:
    """The candidates that the validator accepts; if it accepts none, all of them, with their verdicts."""
    for candidate in candidates:
        conversation = candidate.conversation
        index = 1000 + candidate.index
        place = conversation.place()
        candidate.verdict = await conversation.validation.judge(validator, candidate.output, place, index, "validator")
        name = key_of(validator)
        conversation.validation.record(place, index, candidate.verdict, check="prefilter", name=name, mode="filter")
    return [c for c in candidates if c.verdict is not None and c.verdict.valid] or candidates


class CandidateTask(Struct, frozen=True):
    """The task that candidates are compared for: one phase, or the whole cascade."""

    soundings: Soundings
    conversation: Conversation
    """Renders the templates and asks the person."""
    path: Path
    """Of the ``soundings`` block."""
    task: str
    """Unmutated."""
    model: str
    """Of the evaluator."""

    @property
    def engine(self) -> Services:
        return self.conversation.engine

    @property
    def world(self) -> World:
        return self.conversation.world

    @property
    def place(self) -> Place:
        return self.conversation.place()

    def render(self, template: str | None, path: Path) -> str:
        return self.conversation.render(template, path)
