"""Conversations of a run as lists of messages in OpenAI form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.context.wire import to_wire
from workbench.engine.contracts import Images
from workbench.engine.journal.state import RunState


def conversations(state: RunState, images: Images, *, details: bool = False) -> Iterator[dict[str, Any]]:
    """Yields the messages of the last answered call of each visit, and its answer, with the tools: the form that
    fine-tuning takes, without any other key. ``details`` adds the session, the place, the model, the sums of the visit
    with the runs inside it (tokens, US dollars, seconds), the labels that people gave to the run and the call, and the
    values that providers put beside their answers (reasoning, signatures).

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
        messages = [to_wire(message, images) for message in (*sent, last.answer)]
        said = {"run": state.annotations.run.to_json(), "call": state.annotations.at(last.place).to_json()}
        took = state.figures_of([visit]).brief() | {"seconds": visit.seconds}
        about = {
            "session_id": state.session_id,
            "at": str(last.place),
            "model": last.model,
            "edited": any(call.place in state.edited_places for call in visit.calls),
            "took": took,
            "annotations": said,
        }
        named = {"tools": [dict(tool) for tool in tools]} if tools else {}
        yield {
            **(about if details else {}),
            "messages": messages if details else [bare(message) for message in messages],
            **named,
        }


def bare(message: dict[str, Any]) -> dict[str, Any]:
    """A message with the keys that OpenAI's chat form defines for its role."""
    keys = ("role", "content", "tool_call_id") if message["role"] == "tool" else ("role", "content", "name")
    bare = {key: message[key] for key in keys if key in message}
    if calls := message.get("tool_calls"):
        bare["tool_calls"] = [{key: call[key] for key in ("id", "type", "function")} for call in calls]
    return bare
