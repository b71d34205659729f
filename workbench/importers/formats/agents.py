"""Logs of agents in shapes of their own: Gemini CLI, Copilot's command line and VS Code, OpenCode, Pi, and what the
command-line programs of Codex and Cursor print; Aider's and CrewAI's have modules of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.importers.conversation import COMPACTED, Call, ImportedMessage, Remarks, Thread, Unreadable
from workbench.importers.formats.aider import has_aider, read_aider
from workbench.importers.formats.chat import read_turns
from workbench.importers.formats.crewai import has_crewai, read_crewai
from workbench.importers.messages import ROLES, read_messages, tool_schemas
from workbench.importers.threads import ObservedCall, as_given, attempted, linear, threads_of, unanswered, with_answers
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, mapping, moment, number, string

REWOUND = "what was said after a place that the session went back to is a context of its own"


class Agent(Struct, frozen=True):
    """An agent whose log has a shape of its own."""

    detect: Callable[[Any], bool]
    """Looks at the shape of the whole file, or of its lines, alone."""
    read: Callable[[Any, Remarks], tuple[Thread, ...]]
    """The contexts in the file. Raises Unreadable."""


def agent_of(body: Any) -> Agent | None:
    """The agent that wrote a file; None for any other file."""
    return next((agent for agent in AGENTS if agent.detect(body)), None)


def said_of(bodies: Sequence[Mapping[str, Any]], remarks: Remarks) -> list[ImportedMessage]:
    """The messages of a log. Each answer is a call: one with ``fault`` beside it never came."""
    said: list[ImportedMessage] = []
    start = 0
    for i, body in enumerate([*bodies, {"fault": True}]):
        if fault := body.get("fault"):
            if part := bodies[start:i]:
                said += read_turns({"messages": list(part)}, remarks)
            if i < len(bodies):
                call = Call(model=string(body.get("model")), at=moment(body.get("timestamp")))
                answer, failed = unanswered(call, as_text(fault)[:2000])
                said.append(replace(answer, call=failed))
            start = i + 1
    return [replace(one, call=one.call or Call()) if one.role == "assistant" else one for one in said]


class _Contexts:
    """The contexts of one session while its messages come in."""

    def __init__(self, remarks: Remarks) -> None:
        self._remarks = remarks
        self._all: list[tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]] = []
        self.begin(())

    def begin(self, given: Iterable[Mapping[str, Any]]) -> None:
        """Begin a context with the messages that it is given."""
        self.given: list[Mapping[str, Any]] = list(given)
        self.own: list[Mapping[str, Any]] = []
        self._all.append((self.given, self.own))

    @property
    def seen(self) -> list[Mapping[str, Any]]:
        """All messages of the context that goes on."""
        return [*self.given, *self.own]

    def threads(self) -> tuple[Thread, ...]:
        """Those that hold an answer; else the first with a message. Raises Unreadable."""
        found = [(as_given(said_of(given, Remarks())), said_of(own, self._remarks)) for given, own in self._all if own]
        whole = with_answers([[*given, *own] for given, own in found], self._remarks)
        if not whole:
            raise Unreadable("none of its lines holds a message")
        return tuple(linear(said, made=False) for said in whole)


# Gemini CLI: a file with its messages, or a line for each change of it.


def _is_gemini(body: Any) -> bool:
    outer = mapping(body) or mapping(array(body)[0] if array(body) else None)
    known = "sessionId" in outer and ("projectHash" in outer or "startTime" in outer)
    listed = [one for one in array(mapping(body).get("messages")) or array(body) if "content" in mapping(one)]
    return known and any(one.get("type") == "gemini" for one in listed)


def _read_gemini(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    contexts = _Contexts(remarks)
    records: list[tuple[str, list[Mapping[str, Any]]]] = []
    for line in array(mapping(body).get("messages")) or array(body):
        one = mapping(line)
        if "$rewindTo" in one:
            remarks.add(REWOUND)
            places = [i for i, (name, _) in enumerate(records) if name == one["$rewindTo"]]
            contexts.own += [body for _, bodies in records for body in bodies][len(contexts.given) :]
            records = records[: places[0]] if places else []
            contexts.begin([body for _, bodies in records for body in bodies])
            continue
        if "content" not in one or "type" not in one:
            for kind in [key for key in one if key.startswith("$")]:
                remarks.left_out(f"a line of type {kind[:40]!r}, which is not a message,")
            continue
        told = as_text(one.get("id")), list(_gemini(one, remarks))
        known = next((i for i, (name, _) in enumerate(records) if name and name == told[0]), None)
        if known is None:
            records.append(told)
        else:
            records[known] = told  # A message is written again when its tools have ended.
    contexts.own += [body for _, bodies in records for body in bodies][len(contexts.given) :]
    return contexts.threads()


def _gemini(one: Mapping[str, Any], remarks: Remarks) -> Iterator[Mapping[str, Any]]:
    kind = string(one.get("type"))
    if kind == "user":
        yield {"role": "user", "content": one.get("content"), "timestamp": one.get("timestamp")}
        return
    if kind != "gemini":
        remarks.left_out(f"a message of type {kind[:40]!r}, which its tool showed,")
        return
    calls = [mapping(call) for call in array(one.get("toolCalls"))]
    counts = mapping(one.get("tokens"))
    usage = {to: counts[name] for name, to in _GEMINI_COUNTS.items() if counts.get(name) is not None}
    thoughts = [
        ": ".join(filter(None, (string(thought.get("subject")), string(thought.get("description")))))
        for thought in map(mapping, array(one.get("thoughts")))
    ]
    yield {
        "role": "assistant",
        "content": one.get("content"),
        "reasoning_content": "\n".join(thoughts),
        "tool_calls": [{"id": call.get("id"), "name": call.get("name"), "args": call.get("args")} for call in calls],
        "model": one.get("model"),
        "timestamp": one.get("timestamp"),
        "usage": usage,
    }
    for call in calls:
        result, shown = call.get("result"), call.get("resultDisplay")
        failed = {"is_error": True} if call.get("status") in ("error", "cancelled") else {}
        if result not in (None, []):
            yield {"role": "tool", "tool_call_id": call.get("id"), "content": result, **failed}
        elif shown is not None:
            remarks.add("what a tool showed stands in the place of its result, which the file does not hold")
            yield {"role": "tool", "tool_call_id": call.get("id"), "content": as_text(shown), **failed}


_GEMINI_COUNTS = {
    "input": "promptTokenCount",
    "output": "candidatesTokenCount",
    "cached": "cachedContentTokenCount",
    "thoughts": "thoughtsTokenCount",
    "total": "totalTokenCount",
}


# Copilot's command line: a line for each event.


def _is_copilot(body: Any) -> bool:
    lines = [mapping(one) for one in array(body)[:200]]
    return any(one.get("type") in _COPILOT and isinstance(one.get("data"), dict) for one in lines)


_COPILOT = ("user.message", "assistant.message", "tool.execution_complete")


def _read_copilot(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    agents: dict[str, _Contexts] = {}
    model = ""
    for line in map(mapping, array(body)):
        data, kind = mapping(line.get("data")), string(line.get("type"))
        contexts = agents.setdefault(as_text(data.get("parentToolCallId")), _Contexts(remarks))
        model = string(data.get("newModel")) or string(data.get("selectedModel")) or model
        if kind == "session.compaction_complete" and data.get("summaryContent"):
            remarks.add(COMPACTED)
            head = [one for one in contexts.seen if one.get("role") == "system"]
            contexts.begin([*head, {"role": "user", "content": data["summaryContent"]}])
        elif kind == "assistant.usage":
            places = [i for i, one in enumerate(contexts.own) if one["role"] == "assistant"]
            if places:
                told = {"usage": _without(data, "model"), "model": data.get("model") or model}
                contexts.own[places[-1]] = {**contexts.own[places[-1]], **told}
        elif (message := _copilot(kind, data)) is not None:
            beside = {"model": data.get("model") or model} if message["role"] == "assistant" else {}
            contexts.own.append({**message, **beside, "timestamp": line.get("timestamp")})
        else:
            remarks.left_out(f"a line of type {kind[:60]!r}, which is not a message,")
    found: list[Thread] = []
    for contexts in agents.values():
        if any(one.get("role") == "assistant" for one in contexts.seen):
            found += contexts.threads()
    return tuple(found)


def _without(body: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


def _copilot(kind: str, data: Mapping[str, Any]) -> dict[str, Any] | None:
    match kind:
        case "system.message" | "user.message":
            content = data.get("transformedContent") or data.get("content")
            return {"role": kind.partition(".")[0], "content": content}
        case "assistant.message":
            asked = [mapping(one) for one in array(data.get("toolRequests"))]
            calls = [_without(one, "toolCallId") | {"id": one.get("toolCallId")} for one in asked]
            reasoning = string(data.get("reasoningText"))
            counts = {"output_tokens": data["outputTokens"]} if data.get("outputTokens") else {}
            answer = {"role": "assistant", "content": data.get("content"), "tool_calls": calls, "usage": counts}
            return answer | ({"reasoning_content": reasoning} if reasoning else {})
        case "assistant.reasoning":
            return {"role": "assistant", "reasoning_content": string(data.get("content"))}
        case "tool.execution_complete":
            result = data.get("result")
            told = mapping(result).get("content", result)
            fault = mapping(data.get("error")).get("message", data.get("error"))
            body = {"role": "tool", "tool_call_id": data.get("toolCallId"), "content": as_text(told or fault)}
            return body | ({"is_error": True} if data.get("success") is False else {})
    return None


# OpenCode: messages with parts; each step of an answer is a call.


def _is_opencode(body: Any) -> bool:
    listed = mapping(body).get("messages", body)
    first = [mapping(one) for one in array(listed)[:20]]
    return bool(first) and all("role" in mapping(one.get("info")) and "parts" in one for one in first)


def _read_opencode(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    contexts = _Contexts(remarks)
    for one in map(mapping, array(mapping(body).get("messages", body))):
        info = mapping(one.get("info"))
        if info.get("role") != "assistant":
            contexts.own.append({"role": info.get("role"), "content": list(_opencode_texts(one, remarks))})
            continue
        answers = list(_opencode_steps(info, [mapping(part) for part in array(one.get("parts"))], remarks))
        contexts.own += answers
        if info.get("summary") is True and answers:
            remarks.add(COMPACTED)
            contexts.begin([{"role": "assistant", "content": answers[0].get("content")}])
    return contexts.threads()


def _opencode_texts(one: Mapping[str, Any], remarks: Remarks) -> Iterator[Any]:
    for part in map(mapping, array(one.get("parts"))):
        kind = string(part.get("type"))
        if kind in ("text", "file") and part.get("ignored") is not True:
            yield part
        else:
            remarks.left_out(f"a part of type {kind[:40]!r}, which a model does not see,")


def _opencode_steps(
    info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], remarks: Remarks
) -> Iterator[dict[str, Any]]:
    """An answer for each step, with the results of its tools behind it."""
    steps: list[list[Mapping[str, Any]]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and any(one.get("type") != "step-start" for one in steps[-1]):
            steps.append([])
        steps[-1].append(part)
    error = mapping(info.get("error"))
    # The numbers of the answer are those of all its steps: a step that was cut off has none of its own.
    whole = info if all(part.get("type") != "step-finish" for part in parts) else {}
    for step in steps:
        ended = next((one for one in step if one.get("type") == "step-finish"), whole)
        by_kind = {kind: [one for one in step if one.get("type") == kind] for kind in ("text", "reasoning", "tool")}
        for one in step:
            if one.get("type") not in ("text", "reasoning", "tool", "step-start", "step-finish"):
                remarks.left_out(f"a part of type {as_text(one.get('type'))[:40]!r}, which a model does not see,")
        reasoning = "\n".join(string(one.get("text")) for one in by_kind["reasoning"])
        told = {"model": info.get("modelID"), "timestamp": mapping(info.get("time")).get("created")}
        if error and not any(by_kind.values()):
            yield {"fault": as_text(mapping(error.get("data")).get("message") or error.get("name")), **told}
            continue
        yield {
            "role": "assistant",
            "content": "\n".join(string(one.get("text")) for one in by_kind["text"]),
            "tool_calls": [
                {"id": one.get("callID"), "name": one.get("tool"), "args": mapping(one.get("state")).get("input")}
                for one in by_kind["tool"]
            ],
            "usage": _opencode_counts(ended),
            "cost": number(ended.get("cost")) or None,
            **told,
            **({"reasoning_content": reasoning} if reasoning else {}),
        }
        for one in by_kind["tool"]:
            state = mapping(one.get("state"))
            failed = {"is_error": True} if state.get("status") == "error" else {}
            if state.get("status") in ("completed", "error"):
                content = state.get("error") if failed else state.get("output")
                yield {"role": "tool", "tool_call_id": one.get("callID"), "content": as_text(content), **failed}


def _opencode_counts(step: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a step: its input leaves out what the cache read and wrote."""
    counts = mapping(step.get("tokens"))
    cache = mapping(counts.get("cache"))
    named = {"input_tokens": counts.get("input"), "output_tokens": counts.get("output")}
    kept = {"cache_read_input_tokens": cache.get("read"), "cache_creation_input_tokens": cache.get("write")}
    found = named | kept | {"reasoning_tokens": counts.get("reasoning")}
    return {name: value for name, value in found.items() if value is not None}


# VS Code's chat: requests with rounds of calls, and its debug log of the requests as sent.


def _is_vscode(body: Any) -> bool:
    requests = [mapping(one) for one in array(mapping(body).get("requests"))]
    return bool(requests) and all("message" in one and isinstance(one.get("response"), list) for one in requests)


def _read_vscode(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    contexts = _Contexts(remarks)
    for one in map(mapping, array(body.get("requests"))):
        metadata = mapping(mapping(one.get("result")).get("metadata"))
        rendered = _texts(metadata.get("renderedUserMessage"))
        contexts.own.append({"role": "user", "content": rendered or string(mapping(one.get("message")).get("text"))})
        told = {"model": string(one.get("modelId")).removeprefix("copilot/"), "timestamp": one.get("timestamp")}
        rounds = [mapping(each) for each in array(metadata.get("toolCallRounds"))]
        results = mapping(metadata.get("toolCallResults"))
        fault = mapping(mapping(one.get("result")).get("errorDetails")).get("message")
        if fault and not rounds and not one.get("response"):
            contexts.own.append({"fault": as_text(fault), **told})
            continue
        if not rounds:
            remarks.add("an answer is read as it was shown: the file holds neither its rounds nor their results")
            shown = "".join(_shown(part, remarks) for part in map(mapping, array(one.get("response"))))
            contexts.own.append({"role": "assistant", "content": shown, "usage": {}, **told})
        for each in rounds:
            calls = [mapping(call) for call in array(each.get("toolCalls"))]
            contexts.own.append(
                {"role": "assistant", "content": each.get("response"), "tool_calls": calls, "usage": {}, **told}
            )
            for call in calls:
                if (result := results.get(as_text(call.get("id")))) is not None:
                    content = _texts(mapping(result).get("content"))
                    contexts.own.append({"role": "tool", "tool_call_id": call.get("id"), "content": content})
    return contexts.threads()


def _shown(part: Mapping[str, Any], remarks: Remarks) -> str:
    """The text of a part of an answer as it was shown."""
    if "kind" not in part and isinstance(found := mapping(part.get("value")).get("value", part.get("value")), str):
        return found
    remarks.left_out(f"a part of type {as_text(part.get('kind'))[:40]!r} of an answer as it was shown")
    return ""


def _texts(content: Any) -> str:
    """The texts of a content, at whatever depth VS Code rendered them."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(_texts, content))
    body = mapping(content)
    if isinstance(found := body.get("text", body.get("value")), str):
        return found + ("\n" if body.get("lineBreakBefore") is True else "")
    return "".join(_texts(body.get(key)) for key in ("value", "node", "children") if body.get(key))


def _is_replay(body: Any) -> bool:
    prompts = [mapping(one) for one in array(mapping(body).get("prompts"))]
    return bool(prompts) and all(isinstance(one.get("logs"), list) for one in prompts)


_VSCODE_ROLES = {0: "system", 1: "user", 2: "assistant", 3: "tool"}


def _read_replay(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    """The requests as sent: the tools that ran behind an answer are what it asked for."""
    logs = [mapping(log) for prompt in array(body.get("prompts")) for log in array(mapping(prompt).get("logs"))]
    calls: list[ObservedCall] = []
    for i, log in enumerate(logs):
        if log.get("kind") == "request":
            asked: list[Mapping[str, Any]] = []
            for later in logs[i + 1 :]:
                if later.get("kind") == "request":
                    break
                asked += [later] if later.get("kind") == "toolCall" else []
            call = attempted(lambda log=log, asked=asked: _request(log, asked, remarks), remarks)  # type: ignore[misc]
            calls += [call] if call is not None else []
        elif log.get("kind") != "toolCall":
            remarks.left_out(f"an entry of the kind {as_text(log.get('kind'))[:40]!r}, which is not a call of a model,")
    return threads_of(calls)


def _request(log: Mapping[str, Any], asked: Sequence[Mapping[str, Any]], remarks: Remarks) -> ObservedCall:
    told = mapping(log.get("metadata"))
    sent = mapping(log.get("requestMessages")).get("messages", log.get("requestMessages"))
    bodies = []
    for one in map(mapping, array(sent)):
        role = one.get("role")
        named = _VSCODE_ROLES.get(role) if isinstance(role, int) else role
        bodies.append({**one, "role": named, "content": _texts(one.get("content"))})
    response = mapping(log.get("response"))
    words = response.get("message")
    duration = number(told.get("duration"))
    call = Call(
        usage_of(told.get("usage")),
        model=string(told.get("model")),
        duration_s=None if duration is None else duration / 1000,
        at=moment(told.get("startTime")),
    )
    answer = ImportedMessage("assistant")
    if response and response.get("type") != "success":
        answer, call = unanswered(call, as_text(response.get("reason") or words or response.get("type"))[:2000])
    else:
        made = [
            {
                "id": as_text(one.get("id")).partition("__vscode")[0],
                "name": one.get("tool"),
                "arguments": one.get("args"),
            }
            for one in asked
        ]
        text = "".join(map(as_text, array(words))) if isinstance(words, list) else as_text(words)
        (answer,) = read_messages([{"role": "assistant", "content": text, "tool_calls": made}], remarks)
    tools = tool_schemas(told.get("tools"))
    return ObservedCall(tuple(read_messages(bodies, remarks)), answer, call, call.model, tools)


# Pi and what is built on it (OpenClaw): a line for each entry of a tree.


def _is_pi(body: Any) -> bool:
    lines = [mapping(one) for one in array(body)[:50]]
    return any(one.get("type") == "message" and _role(mapping(one.get("message"))) for one in lines)


def _role(message: Mapping[str, Any]) -> str:
    role = string(message.get("role"))
    return role if role.lower() in ROLES or role in ("bashExecution", "custom") else ""


def _read_pi(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    contexts = _Contexts(remarks)
    paths: dict[str, list[Mapping[str, Any]]] = {}
    entries: list[tuple[str, Mapping[str, Any]]] = []
    last = ""
    for line in map(mapping, array(body)):
        kind, own, parent = string(line.get("type")), as_text(line.get("id")), as_text(line.get("parentId"))
        if own and parent and parent != last and parent in paths and contexts.own:
            remarks.add(REWOUND)
            contexts.begin(paths[parent])
        if kind == "compaction" and line.get("summary"):
            remarks.add(COMPACTED)
            contexts.begin([{"role": "user", "content": line["summary"]}, *_kept(line, entries)])
        elif (message := _pi(line)) is not None:
            contexts.own.append(message)
            entries.append((own, message))
        elif kind not in ("session", "model_change", "thinking_level_change"):
            remarks.left_out(f"a line of type {kind[:60]!r}, which is not a message,")
        last = own or last
        if own:
            paths[own] = contexts.seen
    return contexts.threads()


def _kept(line: Mapping[str, Any], entries: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """The messages that a compaction keeps beside its summary."""
    first = line.get("firstKeptEntryId")
    places = [i for i, (name, _) in enumerate(entries) if name and name == first]
    return [message for _, message in entries[places[0] :]] if places else []


def _pi(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The message of an entry; None for an entry that holds none."""
    kind, message = line.get("type"), mapping(line.get("message"))
    if kind in ("custom_message", "branch_summary"):
        return {"role": "user", "content": line.get("content") or line.get("summary")}
    if kind != "message" or not _role(message) or message.get("excludeFromContext") is True:
        return None
    if message.get("role") == "bashExecution":
        ran = f"Ran `{as_text(message.get('command'))}`\n{as_text(message.get('output'))}"
        return {"role": "user", "content": ran, "timestamp": line.get("timestamp")}
    if message.get("role") == "custom":
        return {**message, "role": "user"}
    told = {"timestamp": message.get("timestamp") or line.get("timestamp")}
    failed = message.get("stopReason") in ("error", "aborted") and not array(message.get("content"))
    if message.get("role") == "assistant" and failed:
        fault = as_text(message.get("errorMessage") or message.get("stopReason"))
        return {"fault": fault, "model": message.get("model"), **told}
    return {**message, **told, "stop_reason": message.get("stopReason")}


# What the command-line programs of Codex and Cursor print as they work: a line for each thing that happened.


def _is_codex_stream(body: Any) -> bool:
    lines = [mapping(one) for one in array(body)[:50]]
    return any(one.get("type") == "item.completed" and "type" in mapping(one.get("item")) for one in lines)


_CODEX_RESULTS = ("aggregated_output", "result", "changes", "error")


def _read_codex_stream(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    """Each command and each message is an answer of its own: no line says which came in one."""
    contexts = _Contexts(remarks)
    remarks.add("the file does not hold what the agent was asked, and its counts are sums of several calls")
    thought = ""
    for line in map(mapping, array(body)):
        item, kind = mapping(line.get("item")), string(line.get("type"))
        if kind in ("turn.failed", "error"):
            contexts.own.append({"fault": as_text(mapping(line.get("error")).get("message") or line.get("message"))})
        elif kind == "item.completed" and item.get("type") == "reasoning":
            thought = "\n".join(filter(None, (thought, as_text(item.get("text")))))
        elif kind == "item.completed":
            reasoning = {"reasoning_content": thought} if thought else {}
            contexts.own += [{**one, **(reasoning if one["role"] == "assistant" else {})} for one in _codex_item(item)]
            thought = ""
        elif kind not in ("thread.started", "turn.started", "turn.completed", "item.started", "item.updated"):
            remarks.left_out(f"a line of type {kind[:60]!r}, which is not a message,")
    return contexts.threads()


def _codex_item(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What an item says, or what a tool was asked and gave."""
    kind = string(item.get("type"))
    if kind == "agent_message":
        yield {"role": "assistant", "content": item.get("text")}
        return
    given = {
        key: value for key, value in item.items() if key not in ("id", "type", "status", "exit_code", *_CODEX_RESULTS)
    }
    call = {
        "id": item.get("id"),
        "name": string(item.get("tool")) or kind,
        "args": mapping(item.get("arguments")) or given,
    }
    yield {"role": "assistant", "content": "", "tool_calls": [call]}
    result = next((item[key] for key in _CODEX_RESULTS if item.get(key)), "")
    failed = item.get("status") == "failed" or bool(item.get("exit_code"))
    yield {"role": "tool", "tool_call_id": item.get("id"), "content": as_text(result), "is_error": failed}


def _is_cursor_stream(body: Any) -> bool:
    lines = [mapping(one) for one in array(body)[:200]]
    return any(one.get("type") == "tool_call" and isinstance(one.get("tool_call"), dict) for one in lines)


def _read_cursor_stream(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    contexts, model = _Contexts(remarks), ""
    for line in map(mapping, array(body)):
        kind, told = string(line.get("type")), mapping(line.get("tool_call"))
        model = string(line.get("model")) or model
        if kind in ("user", "assistant"):
            contexts.own.append({"role": kind, "model": model, "usage": {}, **mapping(line.get("message"))})
        elif kind == "tool_call" and line.get("subtype") == "completed":
            contexts.own += _cursor_tool(as_text(line.get("call_id")), told, contexts.own)
        elif kind not in ("tool_call", "system", "result", "thinking"):
            remarks.left_out(f"a line of type {kind[:60]!r}, which is not a message,")
    return contexts.threads()


def _cursor_tool(call_id: str, told: Mapping[str, Any], own: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """A tool's call and its result; the call joins the answer before it."""
    name = next((key for key in told if isinstance(told[key], dict)), "")
    body = mapping(told.get(name))
    call = {"id": call_id, "name": name.removesuffix("ToolCall"), "args": body.get("args")}
    if own and own[-1].get("role") == "assistant":
        own[-1] = {**own[-1], "tool_calls": [*array(own[-1].get("tool_calls")), call]}
    else:
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
    result = mapping(body.get("result"))
    given = next((result[key] for key in ("success", "error", "rejected") if key in result), body.get("result"))
    content = mapping(given).get("content", given)
    yield {"role": "tool", "tool_call_id": call_id, "content": as_text(content), "is_error": "success" not in result}


AGENTS = (
    Agent(_is_gemini, _read_gemini),
    Agent(_is_copilot, _read_copilot),
    Agent(_is_opencode, _read_opencode),
    Agent(_is_vscode, _read_vscode),
    Agent(_is_replay, _read_replay),
    Agent(_is_pi, _read_pi),
    Agent(_is_codex_stream, _read_codex_stream),
    Agent(_is_cursor_stream, _read_cursor_stream),
    Agent(has_aider, read_aider),
    Agent(has_crewai, read_crewai),
)
