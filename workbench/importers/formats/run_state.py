"""The state of a run of the OpenAI Agents SDK, as ``RunState.to_json()`` writes it: its input, the responses of the
model and the results of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from workbench.engine.journal.usage import StatedUsage
from workbench.importers.conversation import Call, Conversation, Remarks
from workbench.importers.exchanges import whole
from workbench.importers.messages import read_messages, tool_schemas
from workbench.importers.threads import linear
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, mapping, string

_UNSTATED = "the state of a run does not hold the instructions of its agents, nor the tools that they did not use"


def is_run_state(body: Any) -> bool:
    """Returns whether it is such a state."""
    return all(key in mapping(body) for key in ("$schemaVersion", "model_responses", "original_input"))


def read_run_state(body: Any) -> list[Conversation]:
    """One conversation; it has no call if the model has not answered yet. Raises Unreadable."""
    remarks, state = Remarks(), mapping(body)
    given = state.get("original_input")
    listed = [{"role": "user", "content": given}] if isinstance(given, str) else list(array(given))
    said = read_messages(listed, remarks, "original_input")
    results = _results(state)
    for response in map(mapping, array(state.get("model_responses"))):
        items = [one for one in array(response.get("output")) if isinstance(one, dict)]
        found = read_messages(items, remarks, "model_responses")
        if not found:
            continue
        call = Call(_usage(response.get("usage")), answer_id=string(response.get("response_id")))
        said.append(replace(whole([one for one in found if one.role == "assistant"] or found), call=call))
        names = [as_text(one.get("call_id")) for one in items]
        told = [results.pop(name) for name in names if name in results]
        said += read_messages(told, remarks, "session_items")
    if results:
        remarks.left_out("a result of a tool that no response asked for", count=len(results))
    used = [mapping(one).get("tool") for one in array(mapping(state.get("last_processed_response")).get("functions"))]
    thread = replace(linear(said, tools=tool_schemas(used), made=False), unstated=_UNSTATED)
    title = string(mapping(state.get("trace")).get("workflow_name"))
    held = ("original_input", "model_responses", "generated_items", "session_items", "last_model_response")
    kept = {key: value for key, value in state.items() if key not in held}
    sums = StatedUsage(_usage(mapping(state.get("context")).get("usage")))
    return [Conversation((thread,), title, remarks=remarks.all, kept=kept, stated=sums)]


def _results(state: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The results of tools and handoffs by the calls that they answer."""
    items = [*array(state.get("session_items")), *array(state.get("generated_items"))]
    raw = [mapping(mapping(one).get("raw_item")) for one in items]
    return {as_text(one["call_id"]): one for one in raw if "call_id" in one and "output" in one}


def _usage(told: object) -> Any:
    """The counts of a usage whose details are lists of one object."""
    counts = {
        name: mapping(next(iter(value), None)) if isinstance(value, list) else value
        for name, value in mapping(told).items()
    }
    return usage_of(counts)
