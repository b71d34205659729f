"""Sessions of coding agents as their tools log them: a line for each message, item or remark (Claude Code, Codex)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from workbench.engine.journal.usage import StatedUsage
from workbench.importers.conversation import Call, Conversation, Remarks, Unreadable
from workbench.importers.formats.chat import read_turns
from workbench.importers.threads import as_given, linear
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, mapping, number, string


def is_session(body: Any) -> bool:
    """Returns whether some lines wrap a message, or an item of a response."""
    return any(_wrapped(mapping(one)) for one in array(body)[:50])


def _wrapped(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message or item in a line; empty if it holds none."""
    payload, message = mapping(line.get("payload")), mapping(line.get("message"))
    if line.get("type") == "response_item" and payload:
        return payload
    known = any(key in line for key in ("uuid", "sessionId", "parentUuid"))
    return message if known and line.get("type") in ("user", "assistant") and "role" in message else {}


def read_session(body: Any) -> list[Conversation]:
    """One run; what a sub-agent said is a context of its own. Raises Unreadable."""
    remarks = Remarks()
    lines = [mapping(one) for one in array(body)]
    threads = []
    for agent in _agents(lines):
        for given, mine in _contexts(agent, remarks):
            if bodies := _bodies(mine, remarks):
                said = read_turns({"messages": bodies}, remarks)
                made = [replace(one, call=one.call or Call()) if one.role == "assistant" else one for one in said]
                before = read_turns({"messages": given}, remarks) if given else []
                threads.append(linear([*as_given(before), *made], model=_model(lines), made=False))
    if not threads:
        raise Unreadable("none of its lines holds a message")
    keys = ("summary", "sessionId", "cwd", "version", "gitBranch")
    kept = {key: found for key in keys if (found := next((one[key] for one in lines if one.get(key)), None))}
    stated = _totals(next((one for one in reversed(lines) if one.get("type") == "result"), {}))
    title = string(kept.get("summary"))[:60]
    return [Conversation(tuple(threads), title, remarks=remarks.all, kept=kept, stated=stated)]


def _agents(lines: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The lines of the session, then those of each sub-agent: told by its id, else by the line that its first one
    goes back to."""
    is_linked = any(one.get("isSidechain") is True and (one.get("agentId") or one.get("parentUuid")) for one in lines)
    roots: dict[str, str] = {}
    found: dict[str, list[Mapping[str, Any]]] = {"": []}
    for line in lines:
        own, parent = as_text(line.get("uuid")), as_text(line.get("parentUuid"))
        agent = ""
        if line.get("isSidechain") is True:
            agent = as_text(line.get("agentId")) or roots.get(parent) or (own if is_linked else "") or "sub-agent"
            roots[own] = agent
        found.setdefault(agent, []).append(line)
    return list(found.values())


def _totals(result: Mapping[str, Any]) -> StatedUsage:
    """The sums of a line that ends a session."""
    return StatedUsage(usage_of(result.get("usage")), number(result.get("total_cost_usd")) or None)


def _contexts(
    lines: Sequence[Mapping[str, Any]], remarks: Remarks
) -> Iterator[tuple[list[Any], list[Mapping[str, Any]]]]:
    """The lines of each context, with the messages that it begins with: a compaction puts a summary in the place of
    what was said before it. Claude Code marks that by a line (``compact_boundary``) and the summary itself, Codex by a
    line that holds the summary or the whole history that replaces the old one."""
    given: list[Any] = []
    mine: list[Mapping[str, Any]] = []
    for line in lines:
        payload = mapping(line.get("payload"))
        is_compacted = line.get("type") == "compacted" and bool(payload)
        is_boundary = line.get("subtype") == "compact_boundary"
        if not (is_compacted or is_boundary or (line.get("isCompactSummary") is True and any(map(_wrapped, mine)))):
            mine.append(line)
            continue
        remarks.add("a compaction begins a context of its own, with the summary in the place of what was said before")
        if mapping(line.get("compactMetadata")).get("preservedSegment"):
            remarks.left_out("a message that a compaction kept beside its summary", as_text(line.get("uuid"))[:40])
        yield given, mine
        given, mine = [], [] if is_compacted or is_boundary else [line]
        if is_compacted:
            replaced = payload.get("replacement_history")
            summary = {"role": "user", "content": as_text(payload.get("message"))}
            given = list(array(replaced)) or [summary]
    yield given, mine


def _model(lines: list[Mapping[str, Any]]) -> str:
    told = (string(mapping(one.get("payload")).get("model")) for one in lines if one.get("type") == "turn_context")
    return next((model for model in told if model), "")


def _bodies(lines: list[Mapping[str, Any]], remarks: Remarks) -> list[dict[str, Any]]:
    """The messages; an answer has the usage that a line behind it reports."""
    bodies: list[dict[str, Any]] = []
    answer: dict[str, Any] = {}
    for line in lines:
        body, payload = _wrapped(line), mapping(line.get("payload"))
        if counts := mapping(mapping(mapping(line.get("payload")).get("info")).get("last_token_usage")):
            answer["usage"] = counts
        if not body:
            kind = " ".join(filter(None, (string(line.get("type")), string(payload.get("type")))))[:60]
            remarks.left_out(f"a line of type {kind!r}, which is no message," if kind else "a line that is no message")
            continue
        bodies.append({"timestamp": line.get("timestamp"), **body})
        if body.get("role") != "user" and not string(body.get("type")).endswith("_output"):
            answer = bodies[-1]
    return bodies
