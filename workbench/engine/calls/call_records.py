"""The two events that hold a model call: the context it was given, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import asdict

from workbench.context.assembly import Assembly, Item
from workbench.context.place import Place
from workbench.engine.contracts import Answer
from workbench.engine.forecasting import Prediction
from workbench.engine.journal.event import Event
from workbench.engine.journal.journal_writer import JournalWriter


def record_context(
    journal: JournalWriter,
    place: Place,
    assembly: Assembly,
    *,
    purpose: str,
    added: Sequence[Item],
    prediction: Prediction,
    beside: bool = False,
    edited: bool = False,
    unstated: str = "",
    after: int | None = None,
    late: bool = False,
) -> None:
    """Journal ``context_assembled``. ``unstated``: the parts of the request whose content is unknown, in words.
    ``after``: the record of the context that this one is spliced against, where that is not the branch's last.
    ``late``: it stands before calls that are recorded already."""
    request, price = assembly.request, prediction.price
    journal.emit(
        "context_assembled",
        place,
        purpose=purpose,
        added=journal.items(added),
        strategy=assembly.strategy,
        splices=journal.splices(assembly),
        beside=beside,
        request={
            "model": request.model,
            "parameters": dict(request.parameters),
            "tools": journal.tools(request.tools),
        },
        digest=request.digest,
        tokens_full=assembly.tokens_full,
        tokens_sent=assembly.tokens_sent,
        tools_tokens=assembly.tools_tokens,
        overhead_tokens=assembly.overhead_tokens,
        grade=str(prediction.grade),
        scale=prediction.scale,
        forecast=asdict(prediction.forecast),
        price={
            "source": price.source,
            "grade": price.grade,
            "input": price.input,
            "output": price.output,
            "cache_read": price.cache_read,
            "cache_write": price.cache_write,
            **({} if price.cache_write_hour is None else {"cache_write_hour": price.cache_write_hour}),
        },
        problems=[[b.invariant, b.message, b.entry] for b in assembly.problems],
        notes=list(assembly.notes),
        **({"edited": True} if edited else {}),
        **({"unstated": unstated} if unstated else {}),
        **({"beyond": prediction.beyond} if prediction.beyond else {}),
        **({"after": after} if after is not None else {}),
        **({"late": True} if late else {}),
    )


def record_answer(
    journal: JournalWriter,
    place: Place,
    assembly: Assembly,
    answer: Answer,
    item: Item,
    *,
    purpose: str,
    redact: Callable[[str], tuple[str, int]],
    beside: bool = False,
    joins: bool = True,
) -> Event:
    """Journal ``call_finished``; ``item`` is the answer as it ``joins`` the history, or already has. ``redact``
    replaces secrets in what the provider says of itself: it may repeat a key anywhere."""
    usage = answer.usage

    def plain(text: str) -> str:
        return redact(text)[0] if text else text

    return journal.emit(
        "call_finished",
        place,
        digest=assembly.request.digest,
        purpose=purpose,
        added=journal.items([item]) if joins else [],
        finish_reason=plain(answer.finish_reason),
        usage=usage.to_json(),
        residual=None if usage.input is None else usage.input - assembly.tokens_sent,
        cost=answer.cost,
        cost_grade=answer.cost_grade,
        model=plain(answer.model),
        provider=plain(answer.provider),
        provider_id=plain(answer.provider_id),
        first_token_s=answer.first_token_s,
        duration_s=answer.duration_s,
        wire=journal.wire(answer.wire, style=answer.wire_style, beside=beside),
        partial=answer.partial,
        recorded=answer.recorded,
        **({"remarks": [plain(remark) for remark in answer.remarks]} if answer.remarks else {}),
        **({} if joins else {"message": journal.message(item.message)}),
    )
