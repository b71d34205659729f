"""A request whose messages are all sent unchanged; no strategy decides about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.context.assembler import answer_schema, has_to_be_json, has_to_think
from workbench.context.assembly import (
    SYSTEM_TEXT,
    Action,
    Assembly,
    Entry,
    Grade,
    Item,
    Kind,
    Reason,
    Request,
    Rule,
    Splice,
)
from workbench.context.ledger import next_digest, request_digest, seed_digest, worse
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.tokens import Counter


def direct_assembly(
    messages: Sequence[Message],
    model: str,
    parameters: Mapping[str, Any],
    place: Place,
    counter: Counter,
    tools: Sequence[Mapping[str, Any]] = (),
) -> Assembly:
    """The assembly of all messages, unchanged. ``tools``: native schemas."""
    tools_tokens, tools_grade = counter.tools(tools, model)
    entries, prefix, lengths = [], [seed_digest(model, tools)], [tools_tokens]
    for message in messages:
        tokens, grade = counter.message(message, model)
        system = message.role == "system"
        item = Item(message, Kind.SYSTEM if system else Kind.TASK, place, source=SYSTEM_TEXT if system else "")
        entries.append(Entry(item, message, Action.KEPT, Reason("always"), Rule(), tokens, tokens, grade))
        prefix.append(next_digest(prefix[-1], message))
        lengths.append(lengths[-1] + tokens)
    thinking, as_json = has_to_think(parameters), has_to_be_json(parameters)
    overhead = counter.overhead(model, answer_schema(parameters), thinking=thinking, as_json=as_json)
    total = lengths[-1] + overhead
    grade = max((entry.grade for entry in entries), key=list(Grade).index, default=Grade.EXACT)
    return Assembly(
        "beside",
        tuple(entries),
        (Splice(0, 0, tuple(entries)),),
        Request(model, parameters, tuple(tools), tuple(messages), request_digest(prefix[-1], parameters)),
        tools_tokens,
        overhead,
        total,
        total,
        worse(grade, tools_grade),
        sent_entries=tuple(range(len(entries))),
        prefix_digests=tuple(prefix),
        prefix_tokens=tuple(lengths),
    )
