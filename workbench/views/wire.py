"""The request of a call as the JSON that goes over the wire: exactly as it was sent, or as it will be handed over."""

from __future__ import annotations

import json
from typing import Any

from workbench.context.message import Message
from workbench.context.wire import to_wire
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.engine.past.recording import wire_body
from workbench.models.tape import wire_bytes
from workbench.views import syntax
from workbench.views.documents import pretty
from workbench.views.text import TextRows, text_lines


def wire_text(call: CallState, run: RunState) -> str | None:
    """The request body exactly as it was sent; None while nothing was, or where the journal lost a part of it."""
    try:
        body = wire_body(run, call.place)
    except (KeyError, ValueError):
        return None
    if body is None or call.wire is None:
        return None
    return wire_bytes(body, call.wire.style or "spaced").decode("utf-8", "replace")


def handed_over(message: Message) -> dict[str, Any]:
    """A message as the provider's client gets it. Bytes of images are not at hand here: their data URLs are empty."""
    return to_wire(message, {image.digest: b"" for image in message.images})


def wire_doc(call: CallState, run: RunState, *, whole: bool = False) -> TextRows:
    """The wire request; where no body is known, what the provider's client gets to make one of."""
    text = wire_text(call, run)
    if text is not None:
        lines = text_lines(pretty(text), whole=whole, paint=syntax.json)
        return TextRows(
            lines,
            (("Wire", "title"), ("  the body as it was sent", "name")),
            ((f"{len(text):,} bytes", "dim"),),
            copy=text,
        )
    body: dict[str, Any] = {
        "model": call.model,
        "messages": [handed_over(entry.sent) for entry in call.entries if entry.sent is not None],
    }
    if call.tools_hash in run.tool_schemas:
        body["tools"] = run.tool_schemas[call.tools_hash]
    body |= {key: value for key, value in call.parameters.items() if key not in body}
    text = json.dumps(body, indent=2, ensure_ascii=False)
    waiting = call.answer is None and not call.failures
    said = "not sent yet: what the provider's client will get" if waiting else "no body was kept: what was handed over"
    title = (("Wire", "title"), (f"  {said}", "name"))
    return TextRows(text_lines(text, whole=whole, paint=syntax.json), title, ((call.digest[:8], "dim"),), copy=text)
