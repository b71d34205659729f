"""Conversations as chat applications export them: ChatGPT, Claude, Open WebUI, LibreChat and LM Studio; each as the
list of messages of the branch that was shown last."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.importers.messages import ROLES
from workbench.importers.values import array, as_text, mapping, string

Chat = Mapping[str, Any]

OTHER_BRANCHES = "messages of other branches"
"""The name under which ``plain_chat`` gives the number of messages that were not shown last."""


def plain_chat(outer: Chat) -> Chat:
    """An export of a chat application as an object with ``messages`` of OpenAI's form; anything else as it is."""
    return next((found for read in _APPLICATIONS if (found := read(outer))), outer)


def _exported(outer: Chat, held: str, messages: Iterable[Chat], beside: int, **told: object) -> Chat:
    """``held``: the name under which the export holds its messages. ``beside``: those that were not shown last."""
    rest = {key: value for key, value in outer.items() if key != held}
    return {"title": outer.get("name"), **rest, **told, "messages": list(messages), OTHER_BRANCHES: beside}


def _branch(nodes: Mapping[str, Chat], last: object, parent: str) -> dict[str, Chat]:
    """The nodes of a tree from the first one to the last one."""
    found: dict[str, Chat] = {}
    while isinstance(last, str) and last in nodes and last not in found:
        found[last] = nodes[last]
        last = nodes[last].get(parent)
    return dict(reversed(found.items()))


def _of_chatgpt(outer: Chat) -> Chat:
    """ChatGPT's: a tree of nodes with a message each."""
    nodes = {name: mapping(node) for name, node in mapping(outer.get("mapping")).items()}
    if not nodes or not all("parent" in node and "message" in node for node in nodes.values()):
        return {}
    inner = {node.get("parent") for node in nodes.values()}
    last = outer.get("current_node", next((name for name in reversed(nodes) if name not in inner), None))
    branch = {name: mapping(node.get("message")) for name, node in _branch(nodes, last, "parent").items()}
    messages = [found for name, one in branch.items() if (found := _of_node(name, one))]
    models = [slug for one in branch.values() if (slug := string(mapping(one.get("metadata")).get("model_slug")))]
    beside = sum(1 for name, node in nodes.items() if name not in branch and node.get("message"))
    return {"model": models[0] if models else "", **_exported(outer, "mapping", messages, beside)}


def _of_node(name: str, one: Chat) -> dict[str, Any]:
    """A message of ChatGPT's tree as one of OpenAI's API; empty for one without content. What is addressed to a tool
    is a call of it."""
    author, content = mapping(one.get("author")), mapping(one.get("content"))
    told = content.get("parts", [content.get("text") or content.get("result")])
    parts = [_part(part) for part in array(told) if part]
    role, to = string(author.get("role")), string(one.get("recipient"))
    about = {"model": mapping(one.get("metadata")).get("model_slug"), "created_at": one.get("create_time")}
    if not parts or role not in ROLES:
        return {}
    if role == "assistant" and to not in ("", "all"):
        arguments = json.dumps({"input": "\n".join(string(part.get("text")) for part in parts)})
        return {"role": role, **about, "tool_calls": [{"id": name, "function": {"name": to, "arguments": arguments}}]}
    named = {"name": author["name"]} if author.get("name") else {}
    return {"role": role, "content": parts, **about, **named}


def _part(part: Any) -> dict[str, Any]:
    inner = mapping(part)
    if (pointer := inner.get("asset_pointer")) is not None:
        return {"type": "image_url", "image_url": {"url": as_text(pointer)}}
    return {"type": "text", "text": part if isinstance(part, str) else as_text(inner.get("text", part))}


# Claude keeps the results of tools in the answer that asked for them, and so does LibreChat.


def _of_claude(outer: Chat) -> Chat:
    listed = [mapping(one) for one in array(outer.get("chat_messages"))]
    if not listed or not all("sender" in one for one in listed):
        return {}
    nodes = {string(one.get("uuid")): one for one in listed}
    branch = _branch(nodes, outer.get("current_leaf_message_uuid"), "parent_message_uuid") or nodes
    messages = [said for one in branch.values() for said in _of_sender(one)]
    return _exported(outer, "chat_messages", messages, len(listed) - len(branch))


def _of_sender(one: Chat) -> Iterator[Chat]:
    extracted = [text for file in array(one.get("attachments")) if (text := mapping(file).get("extracted_content"))]
    content = array(one.get("content")) or [{"type": "text", "text": one.get("text")}]
    role = {"human": "user"}.get(string(one.get("sender")), "assistant")
    said: list[Any] = [{"type": "text", "text": text} for text in extracted]
    about = {"role": role, "created_at": one.get("created_at"), "files": one.get("files")}
    for part in map(mapping, content):
        if part.get("type") == "tool_result":
            if said:
                yield {**about, "content": said}
            yield {"role": "user", "content": [part]}
            said = []
        else:
            said.append(part)
    if said:
        yield {**about, "content": said}


def _of_librechat(outer: Chat) -> Chat:
    nodes: dict[str, Chat] = {}
    waiting = [mapping(one) for one in array(outer.get("messages"))]
    if not waiting or not all("isCreatedByUser" in one for one in waiting):
        return {}
    while waiting:
        one = waiting.pop(0)
        nodes[as_text(one.get("messageId")) or f"message {len(nodes)}"] = one
        children = [mapping(child) for child in array(one.get("children"))]
        waiting[:0] = [{"parentMessageId": one.get("messageId"), **child} for child in children]
    branch = _branch(nodes, next(reversed(nodes)), "parentMessageId")
    options = mapping(outer.get("options"))
    messages = [said for one in branch.values() for said in _of_libre(one, string(options.get("model")))]
    beside = {"system": options.get("promptPrefix") or options.get("system"), "model": options.get("model")}
    return _exported(outer, "messages", messages, len(nodes) - len(branch), **beside)


def _of_libre(one: Chat, model: str) -> Iterator[Chat]:
    about = {"timestamp": one.get("createdAt"), "files": one.get("files")}
    if one.get("isCreatedByUser") is True:
        yield {"role": "user", "content": one.get("text") or one.get("content"), **about}
        return
    about |= {"role": "assistant", "model": one.get("model") or model, "usage": mapping(one.get("usage"))}
    said: list[Any] = []
    for part in map(mapping, array(one.get("content"))):
        call = mapping(part.get("tool_call"))
        if call:
            yield {**about, "content": said, "tool_calls": [{**call, "arguments": call.get("args")}]}
            if call.get("output") is not None:
                yield {"role": "tool", "tool_call_id": call.get("id"), "content": as_text(call["output"])}
            said = []
        elif part.get("type") == "think":
            said.append({"type": "thinking", "thinking": as_text(part.get("think"))})
        else:
            text = mapping(part.get("text")).get("value", part.get("text"))
            said.append({**part, "text": text} if text is not None else part)
    if said or not one.get("content"):
        yield {**about, "content": said or one.get("text")}


# Open WebUI: a tree of messages beside the list of those that were shown.


def _of_open_webui(outer: Chat) -> Chat:
    chat = mapping(outer.get("chat"))
    history = mapping(chat.get("history"))
    nodes = {name: mapping(one) for name, one in mapping(history.get("messages")).items()}
    if not nodes or not all("parentId" in one and "role" in one for one in nodes.values()):
        return {}
    branch = _branch(nodes, history.get("currentId"), "parentId") or nodes
    messages = [
        {**one, "usage": mapping(one.get("usage")) or mapping(one.get("info"))} if one["role"] == "assistant" else one
        for one in branch.values()
    ]
    told = {"model": next(iter(array(chat.get("models"))), ""), "system": mapping(chat.get("params")).get("system")}
    return _exported(outer, "chat", messages, len(nodes) - len(branch), **told)


# LM Studio: versions of each message; an answer is a list of steps.


def _of_lm_studio(outer: Chat) -> Chat:
    listed = [mapping(one) for one in array(outer.get("messages"))]
    if not listed or not all(array(one.get("versions")) for one in listed):
        return {}
    messages: list[Chat] = []
    for one in listed:
        at = one.get("currentlySelected")
        versions = array(one["versions"])
        chosen = mapping(versions[at if isinstance(at, int) and 0 <= at < len(versions) else -1])
        messages += _steps(chosen) if array(chosen.get("steps")) else [chosen]
    beside = sum(len(one["versions"]) - 1 for one in listed)
    return _exported(outer, "messages", messages, beside, system=outer.get("systemPrompt"))


def _steps(version: Chat) -> Iterator[Chat]:
    """The answers of a version and the results of its tools: what was generated between two results is one answer."""
    answer: dict[str, Any] = {}
    for step in map(mapping, array(version.get("steps"))):
        content = [mapping(part) for part in array(step.get("content"))]
        results = [part for part in content if part.get("type") == "toolCallResult"]
        if results and answer:
            yield answer
            answer = {}
        for part in results:
            told = part.get("toolCallRequestId") or part.get("callId")
            yield {"role": "tool", "tool_call_id": as_text(told), "content": as_text(part.get("content"))}
        if results or step.get("type") != "contentBlock":
            continue
        answer = answer or {"role": "assistant", "content": [], "tool_calls": []}
        thinks = mapping(step.get("style")).get("type") == "thinking"
        for part in content:
            if part.get("type") == "toolCallRequest":
                told = part.get("toolCallRequestId") or part.get("callId")
                call = {"id": as_text(told), "name": part.get("name"), "arguments": part.get("parameters")}
                answer["tool_calls"].append(call)
            elif thinks:
                answer["content"].append({"type": "thinking", "thinking": as_text(part.get("text"))})
            else:
                answer["content"].append(part)
        made = mapping(step.get("genInfo"))
        stats = mapping(made.get("stats"))
        answer |= {
            "model": made.get("indexedModelIdentifier") or answer.get("model"),
            "stop_reason": stats.get("stopReason"),
            "usage": {"input": stats.get("promptTokensCount"), "output": stats.get("predictedTokensCount")},
        }
    if answer:
        yield answer


_APPLICATIONS = (_of_chatgpt, _of_claude, _of_librechat, _of_open_webui, _of_lm_studio)
