"""One model call: assembled, shown at the gate, sent, retried after provider faults, its answer journaled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.assembly import Assembly, BrokenInvariant, Grade, Item, Kind, Request
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.engine.calls.call_records import record_answer, record_context
from workbench.engine.contracts import NODE_TIMEOUT, Answer, ModelFault, Notice
from workbench.engine.edits import Edit, SetAnswer
from workbench.engine.faults import PhaseFailed
from workbench.engine.forecasting import Prediction, added_by_provider
from workbench.engine.gate import Decision, Stop, StopKind
from workbench.engine.journal.costs import CallCost
from workbench.engine.journal.event import timestamp
from workbench.engine.services import Services
from workbench.engine.world import World

if TYPE_CHECKING:
    from workbench.context.edits import Draft


class Sender(Protocol):
    """Makes a call: an execution, or the engine itself beside the turns."""

    engine: Services
    world: World
    added: list[Item]
    """Items that the call's first event carries."""
    beside: bool
    """The call stands alone: its context is no continuation of the one before."""

    @property
    def history(self) -> Draft | None:
        """The draft that edits of messages change; None if the call belongs to no history."""
        ...

    def assemble(self, place: Place, *, tool_choice: str = "") -> Assembly: ...

    def join(self, items: list[Item], /, *, carried: bool = False) -> None: ...

    def edit(self, stop: Stop, edits: Sequence[Edit]) -> None:
        """Make edits at a stop of the call. Raises EditFault."""
        ...

    def preview(self, place: Place, tool_choice: str, edits: Sequence[Edit], /) -> Assembly:
        """Returns the assembly that the call would send after edits; nothing is changed. Raises EditError."""
        ...

    async def heard(self, place: Place) -> bool:
        """Returns whether a person had something to say before the call, which is in the history now."""
        ...


_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS"})
"""Finish reasons of providers for an answer that reached its limit."""

MAX_WAIT = 120.0
"""Seconds: a provider that asks for more gets the next try after this long."""


async def call_model(sender: Sender, place: Place, purpose: str, *, tool_choice: str = "") -> Answer:
    """Assemble and send. The answer has joined the history when this returns.

    Raises PhaseFailed when the tries are used up, or the request is invalid and no person sends it anyway.
    """
    run = sender.engine
    run.check_limits()
    assembly, prediction, decision = await _ready(sender, place, purpose, tool_choice)
    if assembly.problems and not decision.send_anyway:
        raise PhaseFailed(f"the request is not valid: {_words(assembly.problems[0])}", "request")
    answer = await _send(sender, place, assembly, purpose)
    run.forecaster(place, assembly.request.model).sent(assembly, timestamp(run.journal.last_at))
    message = _journal_answer(sender, place, assembly, prediction, answer, purpose)
    stop = Stop(StopKind.AFTER_CALL, place, run.depth, draft=sender.history, state=sender.world.state, answer=message)
    while (decision := await run.gate(stop)).edits:
        sender.edit(stop, decision.edits)
        said = [edit.message for edit in decision.edits if isinstance(edit, SetAnswer)]
        stop = replace(stop, answer=said[-1] if said else stop.answer, edited=True)
    return answer


async def _ready(sender: Sender, place: Place, purpose: str, tool_choice: str) -> tuple[Assembly, Prediction, Decision]:
    """The context of the call, journaled and let through the gate; anew after each edit there."""
    run, edited, heard = sender.engine, False, False
    while True:
        assembly = sender.assemble(place, tool_choice=tool_choice)
        prediction = _journal_assembly(sender, place, assembly, purpose, edited=edited)
        stop = Stop(
            StopKind.BEFORE_CALL,
            place,
            run.depth,
            assembly,
            sender.history,
            partial(sender.preview, place, tool_choice) if sender.history is not None else None,
            state=sender.world.state,
            problems=len(assembly.problems + prediction.problems),
            answered_by=run.ports.model.recorded(assembly.request, place),
            forecast=prediction.forecast,
            edited=edited,
            heard=heard,
        )
        decision = await run.gate(stop)
        if decision.edits:
            sender.edit(stop, decision.edits)
            edited, heard = True, False
        elif await sender.heard(place):
            edited, heard = False, True
        else:
            return assembly, prediction, decision


def _words(broken: BrokenInvariant) -> str:
    return f"{broken.message} (invariant {broken.invariant})"


def _journal_assembly(sender: Sender, place: Place, assembly: Assembly, purpose: str, *, edited: bool) -> Prediction:
    run = sender.engine
    forecaster = run.forecaster(place, assembly.request.model)
    live = run.ports.model.recorded(assembly.request, place) in ("live", "changed")
    prediction = forecaster.predict(assembly, timestamp(run.journal.time_to_ask(live=live)))
    added, sender.added = sender.added, []
    record_context(
        run.journal,
        place,
        assembly,
        purpose=purpose,
        added=added,
        prediction=prediction,
        beside=sender.beside,
        edited=edited,
        unstated=added_by_provider(assembly.request.model, assembly.request.parameters),
    )
    return prediction


async def _send(sender: Sender, place: Place, assembly: Assembly, purpose: str) -> Answer:
    """Try until there is an answer, or a fault that is final. Each failed try is an event and a visible wait."""
    run, request = sender.engine, assembly.request
    tries = run.options.tries
    for number in range(1, tries + 1):
        run.calls += 1
        run.journal.emit(
            "call_started", place, digest=request.digest, model=request.model, purpose=purpose, **{"try": number}
        )
        run.ports.notify(Notice("waiting", place, {"try": number}))
        try:
            asked = run.ports.model.complete(request, place, run.journal.images, _streamed(sender, place))
            answer = await _in_time(run, place, asked)
            if not answer.text.strip() and not answer.calls:
                raise ModelFault("blank", "the answer is blank", wire=answer.wire, wire_style=answer.wire_style)
            return answer
        except ModelFault as fault:
            fault.message += _form_refused(request, fault)
            wait = _wait(sender, fault, number) if fault.retryable and number < tries else None
            _journal_fault(sender, place, request.digest, fault, number, wait, purpose)
            if wait is None:
                tried = f" after {number} tries" if number > 1 else ""
                words = fault.kind.replace("_", " ")
                raise PhaseFailed(f"{words}{tried}: {_redacted(sender, fault.message)}", "call") from fault
        run.ports.notify(Notice("retry", place, {"seconds": wait, "try": number + 1}))
        await run.ports.clock.sleep(wait)
        run.check_limits()
    raise AssertionError("unreachable: the last try returns or raises")


def _form_refused(request: Request, fault: ModelFault) -> str:
    """A hint to add to the error if the provider may have refused the enforced form of the answer."""
    if fault.kind != "bad_request" or "response_format" not in request.parameters:
        return ""
    return (
        " (the request makes the provider enforce the form of the answer by response_format; "
        "'enforce: prompt' tells the model instead)"
    )


class BackgroundCall(Struct):
    """A call made beside the run, which cannot be paused. It is journaled when its answer is wanted."""

    sender: Sender
    place: Place
    purpose: str
    assembly: Assembly
    outcomes: list[Answer | ModelFault] = field(default_factory=list)
    """One for each try."""


async def make_unheld(sender: Sender, place: Place, purpose: str) -> BackgroundCall:
    """Send without a word to anybody, and try again as often as any call. Its faults are among the outcomes."""
    run, made = sender.engine, BackgroundCall(sender, place, purpose, sender.assemble(place))
    for number in range(1, run.options.tries + 1):
        run.calls += 1
        try:
            answer = await run.ports.model.complete(made.assembly.request, place, run.journal.images, lambda text: None)
            if not answer.text.strip():
                raise ModelFault("blank", "the answer is blank", wire=answer.wire, wire_style=answer.wire_style)
            made.outcomes.append(answer)
            break
        except ModelFault as fault:
            made.outcomes.append(fault)
            if not fault.retryable or number == run.options.tries:
                break
            await run.ports.clock.sleep(_wait(sender, fault, number))
    return made


def journal_unheld(made: BackgroundCall) -> str:
    """Journal a call that was made beside the run. Returns the text of its answer. Raises PhaseFailed if it
    has none.
    """
    sender, place, purpose, request = made.sender, made.place, made.purpose, made.assembly.request
    run, reason = sender.engine, "it was never sent"
    prediction = _journal_assembly(sender, place, made.assembly, purpose, edited=False)
    for number, outcome in enumerate(made.outcomes, 1):
        about = {"digest": request.digest, "model": request.model, "purpose": purpose, "try": number}
        run.journal.emit("call_started", place, **about)
        if isinstance(outcome, Answer):
            run.forecaster(place, request.model).sent(made.assembly, timestamp(run.journal.last_at))
            return _journal_answer(sender, place, made.assembly, prediction, outcome, purpose).text
        _journal_fault(sender, place, request.digest, outcome, number, None, purpose)
        reason = f"{outcome.kind.replace('_', ' ')}: {_redacted(sender, outcome.message)}"
    raise PhaseFailed(reason, "call")


async def _in_time(run: Services, place: Place, asked: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer, if it comes before the time of its node is over. Raises ModelFault."""
    deadline = run.deadlines.get(place.visit_key)
    if deadline is None:
        return await asked
    try:
        return await asyncio.wait_for(asked, max(0.0, deadline - run.ports.clock.monotonic()))
    except TimeoutError:
        raise ModelFault(NODE_TIMEOUT, "the time limit of the node is over") from None


def _wait(sender: Sender, fault: ModelFault, number: int) -> float:
    """Seconds before the next try: what the provider asked for, else doubling with jitter."""
    if fault.retry_after is not None:
        return min(fault.retry_after, MAX_WAIT)
    jitter: float = 0.5 + sender.engine.ports.random.uniform()
    return min(sender.engine.options.backoff * 2.0 ** (number - 1) * jitter, MAX_WAIT)


def _streamed(sender: Sender, place: Place) -> Any:
    """Pieces of text for the screen, redacted at word boundaries so that no half of a secret slips through."""
    pending = ""

    def piece(text: str) -> None:
        nonlocal pending
        pending += text
        cut = max(pending.rfind(" "), pending.rfind("\n")) + 1
        if cut:
            ready, pending = pending[:cut], pending[cut:]
            sender.engine.ports.notify(Notice("text", place, {"text": _redacted(sender, ready)}))

    return piece


def _redacted(sender: Sender, text: str) -> str:
    return sender.engine.ports.redact(text)[0]


def _journal_fault(
    sender: Sender, place: Place, digest: str, fault: ModelFault, number: int, wait: float | None, purpose: str
) -> None:
    run = sender.engine
    error = {
        "kind": fault.kind,
        "message": _redacted(sender, fault.message),
        "status": fault.status,
        "retry_after": fault.retry_after,
        "body": _redacted(sender, fault.body),
        "partial": _redacted(sender, fault.partial),
    }
    data: dict[str, Any] = {
        "try": number,
        "retry_in": wait,
        "wire": run.journal.wire(fault.wire, style=fault.wire_style, beside=sender.beside),
    }
    if fault.usage is not None:
        data |= {"usage": fault.usage.to_json(), "cost": fault.cost}
    run.journal.emit("call_failed", place, digest=digest, error=error, purpose=purpose, **data)


def _journal_answer(
    sender: Sender, place: Place, assembly: Assembly, prediction: Prediction, answer: Answer, purpose: str
) -> Message:
    """Journal the answer and let it join the history; its message."""
    run = sender.engine
    item = _answer_item(sender, place, answer)
    usage, predicted = answer.usage, prediction.forecast.tokens or 0
    run.forecaster(place, assembly.request.model).answered(assembly, usage, item.message)
    event = record_answer(
        run.journal, place, assembly, answer, item, purpose=purpose, redact=run.ports.redact, beside=sender.beside
    )
    # A run that is resumed finds its own answers in its journal: they were billed to it.
    tokens = (usage.input or predicted) + (usage.output or 0)
    run.spend(
        tokens,
        answer.cost,
        place,
        recorded=event.data.get("recorded", False),
        exact=CallCost(answer.cost, answer.cost_grade).exact,
        grade=prediction.grade if usage.input is None else Grade.EXACT,
    )
    sender.join([item], carried=True)
    for remark in answer.remarks:
        run.warn("answer", f"{place.phase}, turn {place.turn}: {_redacted(sender, remark)}", place=place)
    if cut := _cut_off(answer):
        run.warn("cut_off", f"{place.phase}, turn {place.turn}: {cut}", place=place)
    return item.message


def _cut_off(answer: Answer) -> str:
    """Returns why an answer may lack its end; empty if it is complete."""
    if answer.finish_reason in _CUT:
        return f"the answer is cut off at the limit of output tokens (finish reason {answer.finish_reason})"
    return "the stream ended without a finish reason: the answer may be cut off" if answer.partial else ""


def _answer_item(sender: Sender, place: Place, answer: Answer) -> Item:
    redact = sender.engine.ports.redact
    text, count = redact(answer.text)
    calls: list[ToolCall] = []
    for number, call in enumerate(answer.calls, 1):
        # A model may write a key anywhere, also into ids and names; ids stay different from each other.
        (call_id, first), (name, second), (arguments, third) = map(redact, (call.id, call.name, call.arguments))
        calls.append(ToolCall(f"{call_id}_{number}" if first else call_id, name, arguments, call.extra))
        count += first + second + third
    extra: Mapping[str, Any] = sender.engine.redacted_json(dict(answer.extra)) if answer.extra else {}
    return Item(Message("assistant", text, tuple(calls), extra=extra), Kind.ANSWER, place, redacted=count)
