"""The playground: one call of a run made again, edited or not, a few times, by one model or several. No run is changed,
and nothing is written: what comes back is kept by the one who asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.assembly import Assembly, Grade
from workbench.context.direct import direct_assembly
from workbench.context.edits import EditError
from workbench.context.invariants import Sent, check_ends, check_run
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.dollars import money
from workbench.engine.contracts import Answer, Images, Model, ModelFault
from workbench.engine.edits import Edit, SetAnswer, SetModel
from workbench.engine.forecasting import Forecaster
from workbench.engine.gate import rule_words
from workbench.engine.journal.costs import CallCost, CostSum, PredictedCost
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.redact import Redactor
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage
from workbench.engine.model_name import OFFLINE, split_effort
from workbench.language.clean import clean_line
from workbench.language.model.parameters import laid_over
from workbench.models.encodings import encodings
from workbench.models.prices import PriceTable, cost
from workbench.workspace.edit_draft import EditDraft, target_of_call
from workbench.workspace.model_choice import ModelChoice, choose_model, environment_of
from workbench.workspace.model_ports import model_for, prices_of
from workbench.workspace.offline_replies import RepliesError
from workbench.workspace.project import Project
from workbench.workspace.recorded_runs import StoredImages
from workbench.workspace.run_builder import Connected

AT_ONCE = 4
"""Calls that are under way at the same time."""
MOST = 100
"""Calls that one look may make: a slip of the finger is not to cost a fortune."""


class PlaygroundError(Exception):
    """Why nothing is sent, in words."""


class Subject(Struct, frozen=True):
    """A call to be made again."""

    run_id: str
    session_id: str
    call: CallState
    tools: tuple[Mapping[str, Any], ...]
    """Native schemas."""
    file: Path | None
    """The cascade file; None if unknown."""
    offline: bool
    """The run was answered by scripted replies."""
    depth: int = 0
    """1 and more: the run was started by another."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Of a program that was watched: where its requests went, by provider, if not to the provider's own address."""

    @property
    def place(self) -> Place:
        return self.call.place

    def draft(self) -> EditDraft:
        """The request as it stands, to be edited."""
        return EditDraft(target_of_call(self.place, self.call.entries, self.call.model, self.call.parameters))


def subject_of(project: Project, run: RunState, place: Place) -> Subject:
    """A call of a run, stored or live. Raises PlaygroundError if it is missing, or not known whole."""
    call = run.call_at(place)
    if call is None:
        raise PlaygroundError(f"there is no call at {place}")
    if not any(entry.sent is not None for entry in call.entries):
        raise PlaygroundError(f"the request at {place} is not known: the run was imported without it")
    file = project.root / run.cascade_file if run.cascade_file else None
    return Subject(
        run.run_id,
        run.session_id or run.run_id,
        call,
        tuple(run.tool_schemas.get(call.tools_hash, ())),
        file,
        run.ports.get("model") == OFFLINE,
        1 if run.parent and run.parent.get("kind") not in ("fork", "rerun") else 0,
        _elsewhere(project, run),
    )


def _elsewhere(project: Project, run: RunState) -> Mapping[str, str]:
    if "imported" not in run.ports:
        return {}
    started = next(iter(project.store.events(run.run_id)), None)
    kept = (started.data.get("imported") or {}).get("kept") if started is not None else None
    found = kept.get("elsewhere") if isinstance(kept, dict) else None
    return found if isinstance(found, dict) else {}


class Sample(Struct, frozen=True):
    """One answer, or the reason for its absence."""

    model: str
    number: int
    """From 1, for each model."""
    status: str = "waiting"
    """waiting, running, answered, failed, unsent, stopped."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Tools that the answer calls; none of them runs."""
    reason: str = ""
    """Why it failed, or was not sent."""
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    """US dollars; None if unknown."""
    cost_grade: str = "unknown"
    predicted: float | None = None
    """The expected cost of its input, US dollars; of an answer also of its output, if that is counted and priced."""
    whole: bool = True
    """Whether the output is in it, or there is none."""
    seconds: float | None = None
    finish_reason: str = ""

    @property
    def message(self) -> Message:
        """The answer as a message of the run."""
        return Message("assistant", self.text, self.calls)


class Planned(Struct, frozen=True):
    """The expected tokens and cost of one call of a model."""

    model: str
    choice: ModelChoice
    assembly: Assembly
    grade: Grade
    input: int
    """Tokens."""
    input_cost: float | None
    output: int
    """Tokens, as many as the recorded answer had, or as the request allows."""
    cost: float | None
    """US dollars of both; None if a price is unknown; 0 offline."""
    output_price: float | None
    """US dollars for a token of an answer; None if unknown; 0 offline."""
    note: str = ""
    """A warning about the model, though it may be asked."""


class PlaygroundPlan(Struct, frozen=True):
    """Calls that are about to be made."""

    models: tuple[Planned, ...]
    samples: int
    """Of each model."""
    max_cost: float | None = None
    """US dollars."""

    @property
    def calls(self) -> int:
        return len(self.models) * self.samples

    @property
    def cost(self) -> float | None:
        """Cost of all calls as far as it can be predicted; None if a price is unknown."""
        costs = [one.cost for one in self.models]
        return None if None in costs else self.samples * sum(cost for cost in costs if cost is not None)


class Playground:
    """Makes the calls of one subject. ``plan`` says what they will cost, ``send`` makes them."""

    def __init__(self, project: Project, subject: Subject) -> None:
        self.subject = subject
        self.draft = subject.draft()
        self._project = project
        self._images: Images = StoredImages(project.store, subject.run_id)
        self._counter = encodings()

    # -- what would be sent ------------------------------------------------------------------------------------------

    def again(self) -> EditDraft:
        """Another draft with the same edits, to be edited further or thrown away."""
        draft = self.subject.draft()
        for edit in self.draft.edits:
            draft.do(edit)
        return draft

    def messages(self, draft: EditDraft) -> tuple[Message, ...]:
        """The messages of the request as it is edited, secrets replaced in what a person wrote."""
        redact = self._redactor()
        sent: list[Message] = []
        for row in draft.rows:
            if row.mark == "dropped":
                continue
            if row.entry is not None and row.mark != "changed":
                if row.entry.sent is not None:
                    sent.append(row.entry.sent)
                continue
            message = row.message
            if isinstance(message.content, str):
                message = replace(message, content=redact(message.content)[0])
            sent.append(message)
        return tuple(sent)

    def check(self, draft: EditDraft) -> None:
        """Raises EditError with the rule that edits break. Rules that were broken before may stay broken."""
        if not draft.edits:
            return
        messages = self.messages(draft)
        if not messages:
            raise EditError(f"the request has no message ({rule_words(5)})")
        known = {(one.invariant, one.message) for one in self.subject.call.problems}
        rows = [Sent(message, at) for at, message in enumerate(messages)]
        for one in (*check_run(messages, range(len(messages))), *check_ends(rows)):
            if (one.invariant, one.message) not in known:
                where = f"message {one.entry + 1} of the request: " if one.entry >= 0 else ""
                raise EditError(f"the request would not be valid: {where}{one.message} ({rule_words(one.invariant)})")

    def plan(self, models: Sequence[str] = (), samples: int = 1, max_cost: float | None = None) -> PlaygroundPlan:
        """The calls to send, and their price. Without ``models``, to the model of the request.

        Raises PlaygroundError if the number of calls or the budget (``max_cost``, US dollars) is too small or too
        large, and EditError if the edits make the request invalid.
        """
        names = tuple(dict.fromkeys(models)) or (OFFLINE if self.subject.offline else self.draft.model,)
        if "" in names:
            raise PlaygroundError("the model of this call is not recorded: name one")
        if samples < 1:
            raise PlaygroundError("at least one sample")
        if samples * len(names) > MOST:
            raise PlaygroundError(f"{samples * len(names)} calls; at most {MOST} are made at once")
        self.check(self.draft)
        messages = self.messages(self.draft)
        plan = PlaygroundPlan(tuple(self._planned(name, messages) for name in names), samples, max_cost)
        if max_cost is not None:
            _within(plan, max_cost)
        return plan

    def _planned(self, name: str, messages: Sequence[Message]) -> Planned:
        project, subject = self._project, self.subject
        if subject.elsewhere and name == subject.call.model and not project.settings.base_url:
            to = ", ".join(f"{provider} at {address}" for provider, address in subject.elsewhere.items())
            raise PlaygroundError(
                f"the program asked {clean_line(to, 200)}, and the playground would ask the provider of '{name}': "
                "start the workbench with --base-url for the same server, or name another model"
            )
        choice = choose_model(project, None, subject.file, name)
        stand_in = self.draft.model if name == OFFLINE else name
        model, effort = split_effort(stand_in)
        parameters = laid_over(self.draft.parameters, effort)
        assembly = direct_assembly(messages, model, parameters, subject.place, self._counter, subject.tools)
        prices = self._prices(choice)
        prediction = Forecaster(model, self._counter, prices).predict(assembly, time.time())
        tokens, output = prediction.forecast.tokens or assembly.tokens_sent, self._output(parameters, model)
        if not self.draft.changes and model == subject.call.model:
            tokens = subject.call.expected  # What the calls before it teach is in the run's own number.
        expected = cost(Usage(input=tokens, output=output), prices.price(model, tokens))
        note = ""
        if not choice.offline and not prices.listed(model) and model not in project.settings.prices:
            near = ", ".join(prices.near(model))
            note = f"no price is known for '{model}'" + (f"; known names like it: {near}" if near else "")
        return Planned(
            name,
            choice,
            assembly,
            prediction.grade,
            tokens,
            0.0 if choice.offline else prediction.forecast.cost,
            output,
            0.0 if choice.offline else expected,
            0.0 if choice.offline else prices.price(model, tokens).output,
            note,
        )

    def _output(self, parameters: Mapping[str, Any], model: str) -> int:
        """Tokens that an answer is expected to have: as many as the recorded one, and no more than are allowed."""
        call = self.subject.call
        known = call.usage.output
        if known is None:
            known = self._counter.text(call.answer.text, model) if call.answer is not None else 500
        allowed = parameters.get("max_tokens")
        return min(known, allowed) if isinstance(allowed, int) and allowed > 0 else known

    def _prices(self, choice: ModelChoice) -> PriceTable:
        return prices_of(self._project, choice, environment_of(self._project, self.subject.file))

    def _redactor(self) -> Redactor:
        return self._project.redactor(base_url=self._project.settings.base_url)

    # -- sending -----------------------------------------------------------------------------------------------------

    async def send(
        self, plan: PlaygroundPlan, changed: Callable[[Sample], None] = lambda sample: None
    ) -> tuple[Sample, ...]:
        """Make the calls, some at the same time; ``changed`` sees each sample whenever something is known of it.

        Before each call, what is spent and under way is held against the budget. Cancelling ends the calls that are
        under way.
        """
        sending = _Sending(self, plan, changed)
        return await sending.run()

    def port(self, choice: ModelChoice) -> Model:
        """Returns the port that answers for a choice. Raises RepliesError."""
        environment = environment_of(self._project, self.subject.file)
        return model_for(self._project, choice, self.subject.file, environment, self._prices(choice))

    @property
    def images(self) -> Images:
        """Image bytes of the run by digest."""
        return self._images

    def redacted(self, text: str) -> str:
        """A text of an answer as it may be shown."""
        return self._redactor()(text)[0]

    # -- what becomes of it ------------------------------------------------------------------------------------------

    def fork_edits(self, model: str = "") -> tuple[Edit, ...]:
        """The edits that make a fork before this call send what is edited here, to a model."""
        edits = self.draft.edits
        if model and model not in (OFFLINE, self.draft.model):
            edits = (*edits, SetModel(model))
        return edits

    def answer_edits(self, sample: Sample) -> tuple[Edit, ...]:
        """The edits that make a fork behind this call go on with an answer. Raises PlaygroundError where the answer is
        to another request than the run's."""
        if sample.status != "answered":
            raise PlaygroundError("this is not an answer")
        if self.draft.changes:
            raise PlaygroundError(
                "the answer is to an edited request: fork with the request, which calls the model there"
            )
        return (SetAnswer(sample.message),)


def spent(samples: Sequence[Sample]) -> CostSum:
    """Returns the cost of answers: as billed, or as predicted."""
    answered = [sample for sample in samples if sample.status == "answered" or sample.cost is not None]
    return CostSum.sum(
        CallCost(sample.cost, sample.cost_grade, sample.predicted, whole=sample.whole) for sample in answered
    )


def _within(plan: PlaygroundPlan, max_cost: float) -> None:
    """Raises PlaygroundError if the calls are expected to cost more than the budget."""
    if unpriced := [one for one in plan.models if one.cost is None]:
        why = "; ".join(one.note or f"no price is known for '{one.model}'" for one in unpriced)
        raise PlaygroundError(f"{why}. A budget cannot bound it: set 'prices' in the settings, or leave the budget out")
    expected = plan.cost or 0.0
    if expected > max_cost:
        calls = "1 call is" if plan.calls == 1 else f"{plan.calls} calls are"
        raise PlaygroundError(
            f"the budget of {dollars(max_cost)} is too small: {calls} expected to cost {dollars(expected)}. "
            "Nothing was sent"
        )


def dollars(value: float) -> str:
    """US dollars with two significant digits at least, as budgets are told: ``$0.10``, ``$0.00039``."""
    return f"${value:,.2f}" if value >= 0.01 or not value else money(value, exact=True)


class _Sending:
    """One round of calls."""

    def __init__(self, playground: Playground, plan: PlaygroundPlan, changed: Callable[[Sample], None]) -> None:
        self._playground = playground
        self._plan = plan
        self._changed = changed
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._samples: dict[tuple[str, int], Sample] = {}
        self._reserved = 0.0
        """US dollars of the calls that are under way."""

    async def run(self) -> tuple[Sample, ...]:
        ports: dict[str, Model] = {}
        for planned in self._plan.models:
            for number in range(1, self._plan.samples + 1):
                self._set(Sample(planned.model, number, predicted=planned.input_cost))
        try:
            for planned in self._plan.models:
                try:
                    ports[planned.model] = self._playground.port(planned.choice)
                except RepliesError as fault:
                    for sample in [one for one in self._samples.values() if one.model == planned.model]:
                        self._set(replace(sample, status="failed", reason=str(fault)))
            await asyncio.gather(
                *(
                    self._one(planned, number, ports[planned.model])
                    for number in range(1, self._plan.samples + 1)
                    for planned in self._plan.models
                    if planned.model in ports
                )
            )
        except asyncio.CancelledError:
            for sample in self._samples.values():
                if sample.status in ("waiting", "running"):
                    self._set(replace(sample, status="stopped", reason="stopped"))
            raise
        finally:
            for port in ports.values():
                if isinstance(port, Connected):
                    await port.aclose()
        return tuple(self._samples.values())

    def _set(self, sample: Sample) -> None:
        self._samples[sample.model, sample.number] = sample
        self._changed(sample)

    async def _one(self, planned: Planned, number: int, port: Model) -> None:
        async with self._slots:
            sample = self._samples[planned.model, number]
            if unsent := self._over_budget(planned):
                self._set(replace(sample, status="unsent", reason=unsent))
                return
            self._reserved += planned.cost or 0.0
            self._set(sample := replace(sample, status="running"))
            try:
                answered = await self._answered(planned, port, sample)
                if planned.choice.offline and answered.status == "answered":
                    answered = replace(answered, cost=0.0, cost_grade="exact")  # Nobody is paid.
                self._set(answered)
            finally:
                self._reserved -= planned.cost or 0.0

    def _over_budget(self, planned: Planned) -> str:
        """Returns why the next call is not sent; empty if it may be."""
        budget = self._plan.max_cost
        if budget is None or not planned.cost:
            return ""
        so_far = spent(tuple(self._samples.values())).total or 0.0
        if so_far + self._reserved + planned.cost <= budget:
            return ""
        return f"the budget of {dollars(budget)} is used up: {dollars(so_far)} spent"

    async def _answered(self, planned: Planned, port: Model, sample: Sample) -> Sample:
        """One try: what fails is shown, and sent again when the person asks for it."""
        playground, begin, text = self._playground, time.monotonic(), ""

        def streamed(piece: str) -> None:
            nonlocal text
            text += piece

        try:
            answer = await port.complete(
                planned.assembly.request, playground.subject.place, playground.images, streamed
            )
            if not answer.text.strip() and not answer.calls:
                raise ModelFault("blank", "the answer is blank")
        except ModelFault as fault:
            reason = f"{fault.kind.replace('_', ' ')}: {playground.redacted(fault.message)}"
            return replace(
                sample,
                status="failed",
                reason=reason,
                text=playground.redacted(fault.partial),
                usage=fault.usage or Usage(),
                cost=fault.cost,
                seconds=time.monotonic() - begin,
            )
        return _sample(sample, answer, playground.redacted, time.monotonic() - begin, planned.output_price)


def _sample(
    sample: Sample, answer: Answer, redact: Callable[[str], str], seconds: float, output_price: float | None
) -> Sample:
    predicted = PredictedCost.of(sample.predicted, answer.usage.output, output_price)
    return replace(
        sample,
        status="answered",
        text=redact(answer.text),
        calls=tuple(
            ToolCall(redact(call.id), redact(call.name), redact(call.arguments), call.extra) for call in answer.calls
        ),
        usage=answer.usage,
        cost=answer.cost,
        cost_grade=answer.cost_grade,
        predicted=predicted.cost,
        whole=predicted.whole,
        seconds=answer.duration_s if answer.duration_s is not None else seconds,
        finish_reason=redact(answer.finish_reason),
    )
