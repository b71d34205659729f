"""A thread of Zed's agent, as its store keeps it (the JSON inside of ``threads.db``): messages that are named by their
kind since version 0.3.0, messages of segments before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from workbench.engine.journal.usage import StatedUsage
from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks
from workbench.importers.messages import read_message
from workbench.importers.threads import linear, with_answers
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, mapping, string

_RESUMED = "Continue where you left off"
"""What Zed says for a person who goes on with a thread that had stopped."""


def is_zed(body: Any) -> bool:
    """A thread with messages of either form."""
    return any(_is_zed_message(mapping(one)) for one in array(mapping(body).get("messages")))


def _is_zed_message(one: Mapping[str, Any]) -> bool:
    named = len(one) == 1 and any("content" in mapping(one.get(kind)) for kind in ("User", "Agent"))
    return named or ("segments" in one and "role" in one)


def read_zed(body: Any) -> list[Conversation]:
    """One conversation; what follows a compaction is a context of its own."""
    remarks, outer = Remarks(), mapping(body)
    model, numbers = mapping(outer.get("model")), mapping(outer.get("request_token_usage"))
    call = Call(model=string(model.get("model")), provider=string(model.get("provider")))
    contexts: list[list[ImportedMessage]] = [[]]
    asked = ""
    for i, message in enumerate(array(outer.get("messages"))):
        if "Compaction" in mapping(message):
            contexts.append([])
        if user := mapping(mapping(message).get("User")):
            _measure(contexts[-1], numbers.get(asked))
            asked = string(user.get("id"))
        for one in _plain(message):
            said = read_message(one, remarks, f"messages[{i}]")
            contexts[-1] += [replace(each, call=call) if each.role == "assistant" else each for each in said]
    _measure(contexts[-1], numbers.get(asked))
    threads = tuple(linear(said, model=call.model) for said in with_answers(contexts, remarks))
    kept = {key: value for key, value in outer.items() if key != "messages"}
    stated = StatedUsage(usage_of(mapping(outer.get("cumulative_token_usage"))))
    title = string(outer.get("title")) or string(outer.get("summary"))
    return [Conversation(threads, title, remarks=remarks.all, kept=kept, stated=stated)]


def _measure(said: list[ImportedMessage], numbers: Any) -> None:
    """The usage under the id of a person's message is that of the last request before their next one."""
    last = next((i for i in reversed(range(len(said))) if said[i].call is not None), None)
    if last is not None and (usage := mapping(numbers)) and (call := said[last].call) is not None:
        said[last] = replace(said[last], call=replace(call, usage=usage_of(usage)))


def _plain(message: Any) -> Iterator[Mapping[str, Any]]:
    """A message in Anthropic's form; results of an answer's calls are a message of their own."""
    one = mapping(message)
    if message == "Resume":
        yield {"role": "user", "content": _RESUMED}
    elif user := mapping(one.get("User")):
        yield {"role": "user", "content": list(map(_block, array(user.get("content"))))}
    elif agent := mapping(one.get("Agent")):
        yield {"role": "assistant", "content": list(map(_block, array(agent.get("content"))))}
        yield from _results(list(mapping(agent.get("tool_results")).values()))
    elif compaction := one.get("Compaction"):
        yield {"role": "user", "content": as_text(mapping(compaction).get("Summary") or compaction)}
    elif "role" in one:
        yield from _of_segments(one)


def _of_segments(one: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A message of the versions before 0.3.0: results stand beside the calls, in the oldest in the next message."""
    attached = [string(one.get("context")), string(one.get("text"))]
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in attached if text]
    for segment in map(mapping, array(one.get("segments"))):
        thought = segment.get("type") == "thinking"
        parts.append({**segment, "thinking": segment.get("text")} if thought else dict(segment))
    calls = [{"type": "tool_use", **mapping(use)} for use in array(one.get("tool_uses"))]
    results = list(_results(array(one.get("tool_results"))))
    if one.get("role") != "assistant":
        yield from results
    if parts or calls:
        yield {"role": one["role"], "content": parts + calls}
    if one.get("role") == "assistant":
        yield from results


def _results(found: Any) -> Iterator[Mapping[str, Any]]:
    blocks = []
    for one in map(mapping, array(found)):
        content = one.get("content")
        listed = content if isinstance(content, list) else [content]
        inner = [{"type": "text", "text": part} if isinstance(part, str) else _block(part) for part in listed]
        told = {"tool_use_id": one.get("tool_use_id"), "is_error": one.get("is_error") is True}
        blocks.append({"type": "tool_result", "content": inner, **told})
    if blocks:
        yield {"role": "user", "content": blocks}


def _block(part: Any) -> dict[str, Any]:
    """A part named by its kind as a block of Anthropic's."""
    (kind, value), *_ = mapping(part).items() or [("", part)]
    inner = mapping(value)
    match kind:
        case "Thinking":
            thought = string(inner.get("text")) or as_text(value)
            return {"type": "thinking", "thinking": thought, "signature": inner.get("signature")}
        case "RedactedThinking":
            return {"type": "redacted_thinking", "data": value}
        case "ToolUse":
            arguments = inner.get("raw_input") if inner.get("input") is None else inner["input"]
            return {"type": "tool_use", "id": inner.get("id"), "name": inner.get("name"), "input": arguments}
        case "Image":
            source = {"type": "base64", "media_type": "image/png", "data": inner.get("source")}
            return {"type": "image", "source": source}
        case "Mention":
            return {"type": "text", "text": f"{as_text(inner.get('uri'))}\n{as_text(inner.get('content'))}"}
    return {"type": "text", "text": as_text(value)}
