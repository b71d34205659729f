"""One model call: assembled, shown at the gate, sent, retried after provider faults, its answer journaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.context.assembly import Assembly, Broken, Grade, Item, Kind
from workbench.context.cache import PrefixCache
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.engine.faults import PhaseFailed
from workbench.engine.gate import Stop, StopKind
from workbench.engine.ports import Answer, ModelFault, Notice

if TYPE_CHECKING:
    from workbench.engine.execution import Execution

MAX_WAIT = 120.0
"""Seconds: a provider that asks for more gets the next try after this long."""


async def call_model(execution: Execution, place: Place, purpose: str, **override: Any) -> Answer:
    """Assemble and send; the answer has joined the history when this returns.

    Raises PhaseFailed when the tries are used up, or the request is broken and nobody sends it anyway.
    """
    run = execution.engine
    run.check_limits()
    assembly = execution.assemble(place, **override)
    _journal_assembly(execution, place, assembly, purpose)
    answered_by = run.ports.model.recorded(assembly.request, place)
    stop = Stop(
        StopKind.BEFORE_CALL,
        place,
        run.depth,
        assembly,
        state=execution.world.state,
        problems=len(assembly.problems),
        answered_by=answered_by,
    )
    decision = await run.gate(stop)
    if assembly.problems and not decision.send_anyway:
        raise PhaseFailed(f"the request is not valid: {_words(assembly.problems[0])}", "request")
    answer = await _send(execution, place, assembly, purpose)
    run.caches.setdefault(assembly.request.model, PrefixCache()).sent(assembly, _seconds(run.scribe.last_at))
    _journal_answer(execution, place, assembly, answer, purpose)
    await run.gate(Stop(StopKind.AFTER_CALL, place, run.depth, state=execution.world.state))
    return answer


def _words(broken: Broken) -> str:
    return f"{broken.message} (invariant {broken.invariant})"


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _journal_assembly(execution: Execution, place: Place, assembly: Assembly, purpose: str) -> None:
    run, request = execution.engine, assembly.request
    price = run.ports.prices.price(request.model)
    cache = run.caches.setdefault(request.model, PrefixCache())
    forecast = cache.forecast(assembly, price, _seconds(run.scribe.last_at))
    scale = run.scales.get(request.model)
    grade = assembly.grade
    if scale is not None and grade is Grade.ESTIMATE:
        grade = Grade.CALIBRATED
    added, execution.added = execution.added, []
    run.scribe.emit(
        "context_assembled",
        place,
        purpose=purpose,
        added=run.scribe.items(added),
        strategy=assembly.strategy,
        splices=run.scribe.splices(assembly),
        request={
            "model": request.model,
            "parameters": dict(request.parameters),
            "tools": run.scribe.tools(request.tools),
        },
        digest=request.digest,
        tokens_full=assembly.tokens_full,
        tokens_sent=assembly.tokens_sent,
        tools_tokens=assembly.tools_tokens,
        overhead_tokens=assembly.overhead_tokens,
        grade=str(grade),
        scale=scale if grade is Grade.CALIBRATED else None,
        forecast=asdict(forecast),
        price={"source": price.source, "grade": price.grade},
        problems=[[b.invariant, b.message, b.entry] for b in assembly.problems],
        notes=list(assembly.notes),
    )


async def _send(execution: Execution, place: Place, assembly: Assembly, purpose: str) -> Answer:
    """Try until there is an answer, or a fault that is final. Each failed try is an event and a visible wait."""
    run, request = execution.engine, assembly.request
    tries = run.options.tries
    for number in range(1, tries + 1):
        run.calls += 1
        run.scribe.emit(
            "call_started", place, digest=request.digest, model=request.model, purpose=purpose, **{"try": number}
        )
        run.ports.notify(Notice("waiting", place, {"try": number}))
        try:
            answer = await run.ports.model.complete(request, place, run.scribe.images, _streamed(execution, place))
            if not answer.text.strip() and not answer.calls:
                raise ModelFault("blank", "the answer is blank", wire=answer.wire)
            return answer
        except ModelFault as fault:
            wait = _wait(execution, fault, number) if fault.retryable and number < tries else None
            _journal_fault(execution, place, request.digest, fault, number, wait, purpose)
            if wait is None:
                tried = f" after {number} tries" if number > 1 else ""
                raise PhaseFailed(f"{fault.kind}{tried}: {_redacted(execution, fault.message)}", "call") from fault
        run.ports.notify(Notice("retry", place, {"seconds": wait, "try": number + 1}))
        await run.ports.clock.sleep(wait)
        run.check_limits()
    raise AssertionError("unreachable: the last try returns or raises")


def _wait(execution: Execution, fault: ModelFault, number: int) -> float:
    """Seconds before the next try: what the provider asked for, else doubling with jitter."""
    if fault.retry_after is not None:
        return min(fault.retry_after, MAX_WAIT)
    jitter: float = 0.5 + execution.engine.ports.random.uniform()
    return min(execution.engine.options.backoff * 2.0 ** (number - 1) * jitter, MAX_WAIT)


def _streamed(execution: Execution, place: Place) -> Any:
    """Pieces of text for the screen, redacted at word boundaries so that no half of a secret slips through."""
    pending = ""

    def piece(text: str) -> None:
        nonlocal pending
        pending += text
        cut = max(pending.rfind(" "), pending.rfind("\n")) + 1
        if cut:
            ready, pending = pending[:cut], pending[cut:]
            execution.engine.ports.notify(Notice("text", place, {"text": _redacted(execution, ready)}))

    return piece


def _redacted(execution: Execution, text: str) -> str:
    return execution.engine.ports.redact(text)[0]


def _journal_fault(
    execution: Execution, place: Place, digest: str, fault: ModelFault, number: int, wait: float | None, purpose: str
) -> None:
    run = execution.engine
    error = {
        "kind": fault.kind,
        "message": _redacted(execution, fault.message),
        "status": fault.status,
        "retry_after": fault.retry_after,
        "body": _redacted(execution, fault.body),
        "partial": _redacted(execution, fault.partial),
    }
    data: dict[str, Any] = {"try": number, "retry_in": wait, "wire": run.scribe.wire(place.branch, fault.wire)}
    run.scribe.emit("call_failed", place, digest=digest, error=error, purpose=purpose, **data)


def _journal_answer(execution: Execution, place: Place, assembly: Assembly, answer: Answer, purpose: str) -> None:
    run = execution.engine
    item = _answer_item(execution, place, answer)
    usage, predicted = answer.usage, assembly.tokens_sent
    run.spend((usage.input or predicted) + (usage.output or 0), answer.cost)
    if usage.input is not None and predicted:
        run.scales[assembly.request.model] = usage.input / predicted
    run.scribe.emit(
        "call_finished",
        place,
        digest=assembly.request.digest,
        purpose=purpose,
        added=run.scribe.items([item]),
        finish_reason=answer.finish_reason,
        usage=asdict(usage),
        residual=None if usage.input is None else usage.input - predicted,
        cost=answer.cost,
        cost_grade=answer.cost_grade,
        model=answer.model,
        provider=answer.provider,
        provider_id=answer.provider_id,
        first_token_s=answer.first_token_s,
        duration_s=answer.duration_s,
        wire=run.scribe.wire(place.branch, answer.wire),
        partial=answer.partial,
        recorded=answer.recorded,
    )
    execution.join([item], carried=True)


def _answer_item(execution: Execution, place: Place, answer: Answer) -> Item:
    text, count = execution.engine.ports.redact(answer.text)
    calls: list[ToolCall] = []
    for call in answer.calls:
        arguments, found = execution.engine.ports.redact(call.arguments)
        calls.append(ToolCall(call.id, call.name, arguments, call.extra))
        count += found
    extra: Mapping[str, Any] = execution.engine.redacted_json(dict(answer.extra)) if answer.extra else {}
    return Item(Message("assistant", text, tuple(calls), extra=extra), Kind.ANSWER, place, redacted=count)
