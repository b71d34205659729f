"""Messages of Pydantic AI as it writes them itself: requests and responses of parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks
from workbench.importers.exchanges import system_said
from workbench.importers.messages import joined, read_message
from workbench.importers.parts import tool_call
from workbench.importers.threads import linear
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, mapping, moment, string

_ROLES = {"system-prompt": "system", "user-prompt": "user", "retry-prompt": "user", "text": "assistant"}


def is_pydantic_ai(body: Any) -> bool:
    """Messages with a kind, whose parts have one each."""
    found = array(body)
    return bool(found) and all(
        mapping(one).get("kind") in ("request", "response") and isinstance(mapping(one).get("parts"), list)
        for one in found
    )


def read_pydantic_ai(body: Any) -> list[Conversation]:
    """One conversation."""
    remarks, said = Remarks(), list[ImportedMessage]()
    for message in map(mapping, array(body)):
        found = [one for part in array(message.get("parts")) for one in _part(mapping(part), remarks)]
        if message.get("kind") == "request" and not said:
            said += system_said(message.get("instructions"), remarks)
        said += found if message.get("kind") == "request" else _answer(message, found)
    model = next((one.call.model for one in said if one.call is not None and one.call.model), "")
    return [Conversation((linear(said, model=model),), remarks=remarks.all)]


def _answer(message: Mapping[str, Any], found: list[ImportedMessage]) -> list[ImportedMessage]:
    call = Call(
        usage_of(message.get("usage")),
        model=string(message.get("model_name")),
        provider=string(message.get("provider_name")),
        finish_reason=string(message.get("finish_reason")),
        at=moment(message.get("timestamp")),
    )
    parts = tuple(part for one in found for part in one.parts)
    calls = tuple(one for said in found for one in said.calls)
    extra = {key: value for one in joined([ImportedMessage("assistant"), *found]) for key, value in one.extra.items()}
    return [ImportedMessage("assistant", parts, calls, extra=extra, call=call)]


def _part(part: Mapping[str, Any], remarks: Remarks) -> Iterator[ImportedMessage]:
    kind, content, call_id = string(part.get("part_kind")), part.get("content"), as_text(part.get("tool_call_id"))
    if kind == "tool-call":
        yield ImportedMessage("assistant", calls=(tool_call(part.get("tool_name"), part.get("args"), call_id),))
    elif kind == "thinking":
        yield ImportedMessage("assistant", extra={"reasoning": [dict(part)]})
    elif kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
        name = string(part.get("tool_name"))
        yield ImportedMessage("tool", (as_text(content),), call_id=call_id, name=name, is_error=kind == "retry-prompt")
    elif kind in _ROLES:
        yield from read_message({"role": _ROLES[kind], "content": content}, remarks)
    else:
        remarks.add(f"a part of kind {kind[:40]!r} is kept as JSON text")
        yield ImportedMessage("assistant", (as_text(dict(part)),))
