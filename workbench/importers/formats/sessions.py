"""Sessions of coding agents as their tools log them: a line for each message, item or remark (Claude Code, Codex), also
as the Claude Agent SDK exchanges them with Claude Code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from workbench.engine.journal.usage import StatedUsage
from workbench.importers.conversation import COMPACTED, Call, Conversation, Remarks, Thread, Unreadable
from workbench.importers.formats.agents import REWOUND, agent_of
from workbench.importers.formats.chat import read_turns
from workbench.importers.threads import as_given, linear
from workbench.importers.usage import sum_of, usage_of
from workbench.importers.values import array, as_text, mapping, number, string


def is_session(body: Any) -> bool:
    """Returns whether some lines wrap a message, or an item of a response, or an agent has a shape of its own."""
    return any(_wrapped(mapping(one)) for one in _lines(body)[:50]) or agent_of(body) is not None


def _lines(body: Any) -> Sequence[Any]:
    """The lines of a log, without the direction that each was sent in."""
    sent = array(mapping(body).get("messages"))
    wired = bool(sent) and all(mapping(mapping(one).get("message")) and "direction" in one for one in sent)
    return [mapping(one)["message"] for one in sent] if wired else array(body)


def _wrapped(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message or item in a line; empty if it holds none."""
    payload, message = mapping(line.get("payload")), mapping(line.get("message"))
    if line.get("type") == "response_item" and payload:
        return payload
    kind = string(line.get("type"))
    if kind not in ("user", "assistant", "tool_result") or not any(key in line for key in _BESIDE):
        return {}
    if "role" in message:
        return message
    return {"role": kind, **message} if "content" in message and kind != "tool_result" else {}


_BESIDE = ("uuid", "sessionId", "parentUuid", "timestamp", "session_id", "parent_tool_use_id")
"""One of these stands beside the message of a line."""


def read_session(body: Any) -> list[Conversation]:
    """One run; what a sub-agent said is a context of its own. Raises Unreadable."""
    remarks = Remarks()
    if (agent_log := agent_of(body)) is not None:
        return [_of_agent(body, agent_log.read(body, remarks), remarks)]
    lines = [mapping(one) for one in _lines(body)]
    threads, instructions = [], _instructions(lines)
    for agent in _agents(lines):
        for given, mine in _contexts(agent, remarks):
            if bodies := _bodies(mine, remarks):
                said = read_turns({"messages": bodies}, remarks)
                made = [replace(one, call=one.call or Call()) if one.role == "assistant" else one for one in said]
                given = [*instructions, *given]
                before = read_turns({"messages": given}, remarks) if given else []
                threads.append(linear([*as_given(before), *made], model=_model(lines), made=False))
    if not threads:
        raise Unreadable("none of its lines holds a message")
    keys = ("summary", "sessionId", "cwd", "version", "gitBranch")
    kept = {key: found for key in keys if (found := next((one[key] for one in lines if one.get(key)), None))}
    end: Mapping[str, Any] = next((one for one in reversed(lines) if one.get("type") == "result"), {})
    title = string(kept.get("summary"))[:60]
    status, reason = _end(end)
    return [Conversation(tuple(threads), title, status, reason, remarks.all, kept, _totals(end))]


def _of_agent(body: Any, threads: tuple[Thread, ...], remarks: Remarks) -> Conversation:
    """The conversation of an agent with a shape of its own; its header, or what stands beside its messages, is kept."""
    outer = mapping(body) or mapping(next(iter(array(body)), None))
    inner = ("messages", "requests", "prompts", "content", "message")
    kept = {key: value for key, value in outer.items() if key not in inner}
    info = mapping(outer.get("info")) or mapping(outer.get("data"))
    keys = ("title", "customTitle", "summary", "sessionId", "id")
    titles = (string(one.get(key)) for one in (outer, info) for key in keys)
    title = next((told for told in titles if told), "")[:60]
    turns = [one for one in map(mapping, array(body)) if one.get("type") == "turn.completed"]
    sums = StatedUsage(
        sum_of([usage_of(one.get("usage")) for one in turns])
    )  # Codex counts the calls of a turn as one.
    return Conversation(threads, title, remarks=remarks.all, kept=kept, stated=sums)


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


def _end(result: Mapping[str, Any]) -> tuple[str, str]:
    """The status of a session that a line ends, and why it failed."""
    if result.get("is_error") is not True:
        return "success", ""
    return "failed", string(result.get("subtype")) or as_text(result.get("result"))[:200]


def _totals(result: Mapping[str, Any]) -> StatedUsage:
    """The sums of a line that ends a session."""
    return StatedUsage(usage_of(result.get("usage")), number(result.get("total_cost_usd")) or None)


def _contexts(
    lines: Sequence[Mapping[str, Any]], remarks: Remarks
) -> Iterator[tuple[list[Any], list[Mapping[str, Any]]]]:
    """The lines of each context, with the messages that it begins with: a compaction puts a summary in the place of
    what was said before it. Claude Code marks that by a line (``compact_boundary``) and the summary itself, Codex by a
    line that holds the summary or the whole history that replaces the old one. A prompt that follows a line before the
    last prompt goes back to it: what was said between is no part of what its calls saw. Codex says by a line of its own
    that the last turns are taken back."""
    given: list[Any] = []
    before: list[Mapping[str, Any]] = []
    mine: list[Mapping[str, Any]] = []
    for line in lines:
        payload = mapping(line.get("payload"))
        is_compacted = line.get("type") == "compacted" and bool(payload)
        is_boundary = line.get("subtype") == "compact_boundary"
        is_summary = line.get("isCompactSummary") is True and any(map(_wrapped, mine))
        if not (is_compacted or is_boundary or is_summary):
            taken_back = _taken_back([*before, *mine], payload)
            if (kept := _gone_back_to([*before, *mine], line) if taken_back is None else taken_back) is not None:
                remarks.add(REWOUND)
                yield [*given, *_bodies(before, Remarks())], mine
                before, mine = kept, []
            if taken_back is None:
                mine.append(line)
            continue
        remarks.add(COMPACTED)
        if mapping(line.get("compactMetadata")).get("preservedSegment"):
            remarks.left_out("a message that a compaction kept beside its summary", as_text(line.get("uuid"))[:40])
        yield [*given, *_bodies(before, Remarks())], mine
        given, before, mine = [], [], [] if is_compacted or is_boundary else [line]
        if is_compacted:
            replaced = payload.get("replacement_history")
            summary = {"role": "user", "content": as_text(payload.get("message"))}
            given = list(array(replaced)) or [summary]
    yield [*given, *_bodies(before, Remarks())], mine


_PREFIXES = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "# AGENTS.md instructions",
)
"""How messages begin that Codex itself says in the name of the user."""


def _taken_back(lines: Sequence[Mapping[str, Any]], payload: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The lines of a context that stay if this line takes back the last turns; None for any other line. A turn begins
    with what a person wrote."""
    turns = payload.get("num_turns")
    if payload.get("type") != "thread_rolled_back" or not isinstance(turns, int) or turns < 1:
        return None
    prompts = [i for i, one in enumerate(lines) if _is_prompt(one) and not _text(one).lstrip().startswith(_PREFIXES)]
    return list(lines[: prompts[max(len(prompts) - turns, 0)]]) if prompts else None


def _text(line: Mapping[str, Any]) -> str:
    """The text that a message begins with."""
    content = _wrapped(line).get("content")
    return as_text(content if isinstance(content, str) else mapping(next(iter(array(content)), None)).get("text"))


def _gone_back_to(lines: Sequence[Mapping[str, Any]], line: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The lines of a context that a prompt keeps which follows one before the last prompt; None for any other line."""
    parent = as_text(line.get("parentUuid"))
    if not parent or not _is_prompt(line):
        return None
    place = next((i for i, one in enumerate(lines) if as_text(one.get("uuid")) == parent), None)
    if place is None or not any(map(_is_prompt, lines[place + 1 :])):
        return None
    return list(lines[: place + 1])


def _is_prompt(line: Mapping[str, Any]) -> bool:
    """Whether a person wrote it: results of tools and remarks of the tool are user messages, too."""
    message = _wrapped(line)
    if message.get("role") != "user" or line.get("isMeta") is True:
        return False
    parts = [mapping(one) for one in array(message.get("content"))]
    return not any(one.get("type") == "tool_result" for one in parts)


def _instructions(lines: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The instructions that Codex sends with every request, as its session states them; empty without any."""
    told = (mapping(one.get("payload")).get("base_instructions") for one in lines if one.get("type") == "session_meta")
    text = next((text for one in told if (text := string(mapping(one).get("text")))), "")
    return [{"role": "system", "content": text}] if text else []


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
            if line.get("type") == "result" or payload.get("base_instructions"):
                continue  # What it says of the run is read elsewhere.
            kind = " ".join(filter(None, (string(line.get("type")), string(payload.get("type")))))[:60]
            what = f"a line of type {kind!r}, which is not a message," if kind else "a line that is not a message"
            remarks.left_out(what)
            continue
        # Qwen's model and usage, and what early versions of Claude Code state of a call.
        beside = {key: line[key] for key in ("model", "usageMetadata", "durationMs") if line.get(key)}
        beside |= {"cost": line["costUSD"]} if line.get("costUSD") else {}
        bodies.append({"timestamp": line.get("timestamp"), **beside, **body})
        if body.get("role") != "user" and not string(body.get("type")).endswith("_output"):
            answer = bodies[-1]
    return bodies
