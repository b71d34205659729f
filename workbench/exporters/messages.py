"""Conversations of a run as lists of messages in OpenAI form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.context.wire import to_wire
from workbench.engine.ports import Images
from workbench.engine.state import RunState


def conversations(state: RunState, images: Images) -> Iterator[dict[str, Any]]:
    """What the last answered call of each visit was sent, and its answer, with the model and the tools.

    Messages that a strategy had dropped by then are not in it. Images are data URLs.
    """
    for visit in state.visits:
        answered = [call for call in visit.calls if call.answer is not None and not call.beside]
        if not answered:
            continue
        last = answered[-1]
        sent = [entry.sent for entry in last.entries if entry.sent is not None]
        tools = state.tool_schemas.get(last.tools_hash, [])
        assert last.answer is not None
        yield {
            "session_id": state.session_id,
            "at": str(last.place),
            "model": last.model,
            "messages": [to_wire(message, images) for message in (*sent, last.answer)],
        } | ({"tools": [dict(tool) for tool in tools]} if tools else {})
