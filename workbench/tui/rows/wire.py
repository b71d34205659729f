"""The request of a call as the JSON that goes over the wire: exactly as it was sent, or as it will be handed over."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from workbench.context.wire import to_wire
from workbench.engine.state import CallState, RunState
from workbench.tui.rows import syntax
from workbench.tui.rows.documents import pretty
from workbench.tui.rows.text import TextRows, text_lines


def wire_text(call: CallState, run: RunState) -> str | None:
    """The request body exactly as it was sent; None while nothing was."""
    wire = call.wire
    if wire is None:
        return None
    parts = []
    for key in wire.order:
        if key == "messages":
            value = "[" + ",".join(run.wire_bodies.get(digest, "null") for digest in wire.messages) + "]"
        elif key == "tools":
            value = run.wire_bodies.get(wire.tools, "null")
        else:
            value = json.dumps(wire.keys.get(key), ensure_ascii=True, separators=(",", ":"))
        parts.append(f"{json.dumps(key)}:{value}")
    return "{" + ",".join(parts) + "}"


def wire_doc(call: CallState, run: RunState, *, whole: bool = False) -> TextRows:
    """The wire request; before it is sent, what will be handed to the provider's client."""
    text = wire_text(call, run)
    if text is not None:
        lines = text_lines(pretty(text), whole=whole, paint=syntax.json)
        return TextRows(
            lines,
            (("Wire", "title"), ("  the body as it was sent", "name")),
            ((f"{len(text):,} bytes", "dim"),),
            copy=text,
        )
    # Bytes of images are not at hand here: their data URLs show empty.
    images: defaultdict[str, bytes] = defaultdict(bytes)
    body: dict[str, Any] = {
        "model": call.model,
        "messages": [to_wire(entry.sent, images) for entry in call.entries if entry.sent is not None],
    }
    if call.tools_hash in run.tool_schemas:
        body["tools"] = run.tool_schemas[call.tools_hash]
    body |= {key: value for key, value in call.parameters.items() if key not in body}
    text = json.dumps(body, indent=2, ensure_ascii=False)
    title = (("Wire", "title"), ("  not sent yet: what the provider's client will get", "name"))
    return TextRows(text_lines(text, whole=whole, paint=syntax.json), title, ((call.digest[:8], "dim"),), copy=text)
