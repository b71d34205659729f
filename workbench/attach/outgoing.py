"""A client's request with other messages, model or parameters: what was not changed stays as the client wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from workbench.attach.traffic import unchanged
from workbench.context.assembly import Entry
from workbench.context.message import Message, ToolCall
from workbench.engine.edits import SetModel
from workbench.importers.conversation import ImportedMessage, Remarks, Unreadable
from workbench.importers.exchanges import IN_CONFIG
from workbench.importers.messages import ROLES, is_item, joined, read_message
from workbench.importers.parts import is_call, is_result, part_call, plain_part
from workbench.importers.values import mapping

_LISTS = ("messages", "contents", "input")
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_MODEL_PATH = "/models/"
_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Calls among the items of the Responses API, each with the field that holds what is given to the tool."""


class CannotRewrite(Exception):
    """A request whose messages cannot be told apart in its JSON; the message says which."""


class _Group(Struct, frozen=True):
    """Pieces of a request that hold one message, or several: none can be taken apart without the others."""

    pieces: tuple[dict[str, Any], ...]
    messages: tuple[ImportedMessage, ...]


def rewritten(
    body: Mapping[str, Any], path: str, entries: Sequence[Entry], origins: Sequence[int | None]
) -> dict[str, Any]:
    """The JSON of a request that sends what the entries of a context send. ``origins``: for each entry, the message of
    the request that it stands for, counted from 0; None for one that the client did not send. Raises CannotRewrite."""
    made = dict(body)
    system = next((key for key in _SYSTEM if body.get(key)), "")
    key = next((key for key in _LISTS if key in body), "")
    groups = _groups(body.get(key))
    first = 1 if system else 0
    count = first + sum(len(group.messages) for group in groups)
    if count != sum(1 for origin in origins if origin is not None):
        raise CannotRewrite("the provider keeps messages of this request that are not in it")
    if system:
        _rewrite_system(made, system, entries, origins)
    home = {first + i: (group, k) for group, i, k in _numbered(groups)}
    out: list[Any] = []
    gemini = key == "contents"
    pending: tuple[_Group, dict[int, Entry]] | None = None

    def flush() -> None:
        nonlocal pending
        if pending is not None:
            out.extend(_pieces(*pending, responses=key == "input"))
            pending = None

    for entry, origin in zip(entries, origins, strict=True):
        if origin is not None and origin < first:
            continue
        if origin is None:
            flush()
            if entry.sent is not None:
                _add(made, out, entry.sent, gemini=gemini, top=system or _top(key, path))
            continue
        group, k = home[origin]
        if pending is not None and pending[0] is group and k > max(pending[1]):
            pending[1][k] = entry
            continue
        flush()
        pending = group, {k: entry}
    flush()
    made[key] = out
    return made


def with_settings(body: Mapping[str, Any], path: str, settings: SetModel) -> tuple[dict[str, Any], str]:
    """A request and its path with another model and other parameters."""
    made = dict(body)
    if settings.model:
        head, found, tail = path.partition(_MODEL_PATH)
        if found and "model" not in made:
            _, sign, action = tail.partition(":")
            path = f"{head}{found}{settings.model.rpartition('/')[2]}{sign}{action}"
        else:
            made["model"] = settings.model
    for name, value in settings.parameters.items():
        inner = next((theirs for theirs, ours in IN_CONFIG.items() if ours == name), None)
        if "contents" in made and inner is not None:
            made["generationConfig"] = _set(mapping(made.get("generationConfig")), inner, value)
        elif "options" in made or path.endswith("/api/chat"):
            made["options"] = _set(mapping(made.get("options")), name, value)
        else:
            made = _set(made, name, value)
    return made, path


def _set(body: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    made = {key: one for key, one in body.items() if key != name}
    return made if value is None else made | {name: value}


# -- which pieces hold which messages ----------------------------------------------------------------------------------


def _groups(listed: Any) -> list[_Group]:
    """Raises CannotRewrite."""
    if isinstance(listed, str):
        listed = [{"role": "user", "content": listed}]
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise CannotRewrite("its messages are not a list")
    groups: list[_Group] = []
    after_item = False
    for piece in listed:
        body = {"role": "user", **piece} if "parts" in piece else piece
        try:
            found = read_message(body, Remarks())
        except Unreadable as fault:
            raise CannotRewrite(str(fault)) from None
        item = is_item(body)
        last = groups[-1] if groups else None
        if last is not None and found:
            tail = joined([last.messages[-1], *found], {0, 1} if item and after_item else ())
            if len(tail) == len(found):
                kept = (*last.messages[:-1], *tail)
                groups[-1] = _Group((*last.pieces, piece), kept)
                after_item = item
                continue
        groups.append(_Group((piece,), tuple(found)))
        after_item = item
    return groups


def _numbered(groups: Sequence[_Group]) -> Iterator[tuple[_Group, int, int]]:
    """Each message of the groups: its group, its number in the request, and that in the group."""
    at = 0
    for group in groups:
        for k in range(len(group.messages)):
            yield group, at, k
            at += 1


def _pieces(group: _Group, entries: Mapping[int, Entry], *, responses: bool) -> list[Any]:
    """The pieces of a group that send what its entries do; messages of it without an entry stand elsewhere."""
    if len(entries) == len(group.messages) and all(map(unchanged, entries.values())):
        return list(group.pieces)
    sent = [entries[k].sent if k in entries else None for k in range(len(group.messages))]
    if len(group.pieces) > 1:
        return _items(group, sent[0], responses=responses)
    piece = dict(group.pieces[0])
    word = _word(piece, responses=responses)
    texts = [entries[k].sent if k in entries and not unchanged(entries[k]) else None for k in range(len(sent))]
    key = next((key for key in ("content", "parts", "output") if key in piece), "content")
    if key == "output" or not isinstance(piece.get(key), list) or piece.get("role") == "tool":
        whole = sent[-1]
        return [] if whole is None else [_whole(piece, key, whole, word)]
    parts = _parts(piece[key], sent, texts, word, gemini=key == "parts")
    last = sent[-1]
    if last is not None and texts[-1] is not None and ROLES.get(str(piece.get("role")).lower()) != last.role:
        piece["role"] = last.role
    if "tool_calls" in piece and last is not None:
        piece["tool_calls"] = _native(piece["tool_calls"], last.tool_calls)
    return [{**piece, key: parts}] if parts or piece.get("tool_calls") else []


def _whole(piece: dict[str, Any], key: str, message: Message, word: str) -> dict[str, Any]:
    """A piece that is one message, its content a text or a list of parts."""
    made = {**piece, key: _content(piece.get(key), message.text, word)}
    if "refusal" in piece:
        made["refusal"] = None
    if "role" in piece and ROLES.get(str(piece["role"]).lower()) != message.role:
        made["role"] = message.role
    if "tool_calls" in piece:
        made["tool_calls"] = _native(piece["tool_calls"], message.tool_calls)
    if piece.get("type") in _ARGUMENTS and message.tool_calls:
        made.pop(key, None)
        made[_ARGUMENTS[piece["type"]]] = message.tool_calls[0].arguments
    return made


def _items(group: _Group, message: Message | None, *, responses: bool) -> list[Any]:
    """Items of one answer (reasoning, text, calls): the text goes into the first one that has one, calls by their
    ids."""
    if message is None:
        return []
    made, told, calls = list[Any](), False, {call.id: call for call in message.tool_calls}
    for piece in group.pieces:
        call_id = str(piece.get("call_id") or piece.get("id") or "")
        if piece.get("type") in _ARGUMENTS:
            if call_id in calls:
                made.append({**piece, _ARGUMENTS[piece["type"]]: calls[call_id].arguments})
        elif "content" in piece and piece.get("type") != "reasoning":
            if not told and message.text:
                content = _content(piece["content"], message.text, _word(piece, responses=responses))
                made.append({**piece, "content": content})
            told = True
        else:
            made.append(piece)
    return made


def _parts(
    parts: Sequence[Any],
    sent: Sequence[Message | None],
    texts: Sequence[Message | None],
    word: str,
    *,
    gemini: bool,
) -> Any:
    """Parts of a piece whose results are messages of their own, and whose other parts together are the last one."""
    results = sum(1 for part in parts if is_result(plain_part(mapping(part))))
    made, told, number = list[Any](), False, 0
    rest, changed = (sent[-1], texts[-1]) if len(sent) > results else (None, None)
    calls = list(rest.tool_calls) if rest is not None else []
    for part in parts:
        body = plain_part(mapping(part))
        if is_result(body):
            if sent[number] is not None:
                new = texts[number]
                made.append(part if new is None else _result(part, new.text))
            number += 1
        elif rest is None:
            continue
        elif changed is None:
            made.append(part)
        elif is_call(body):
            known = part_call(body)
            if (call := _taken(calls, known.id, known.name)) is not None:
                made.append(part if call.arguments == known.arguments else _called(part, call))
        elif isinstance(part, str) or (_is_text(body) and not body.get("thought") and "thinking" not in body):
            if not told and changed.text:
                made.append(changed.text if isinstance(part, str) else _text(changed.text, word, part))
            told = True
        else:
            made.append(part)
    if changed is not None and changed.text and not told:
        made.append({"text": changed.text} if gemini else _text(changed.text, word))
    return made


def _result(part: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A result with another text; images in it stay."""
    for key in ("functionResponse", "function_response"):
        if inner := mapping(part.get(key)):
            return {**part, key: {**inner, "response": _object(text) or {"result": text}}}
    return {**part, "content": _content(part.get("content"), text)}


def _called(part: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
    for key in ("functionCall", "function_call"):
        if inner := mapping(part.get(key)):
            return {**part, key: {**inner, "args": _object(call.arguments)}}
    return {**part, "input": _object(call.arguments)}


def _native(listed: Any, calls: Sequence[ToolCall]) -> list[Any]:
    """Calls beside the content: those that are left, with their arguments as text or as JSON, as they were."""
    made = list[Any]()
    left = list(calls)
    for one in listed if isinstance(listed, list) else ():
        function = mapping(mapping(one).get("function"))
        found = _taken(left, str(one.get("id") or ""), str(function.get("name")))
        if found is None:
            continue
        was = function.get("arguments")
        now = found.arguments if isinstance(was, str) else _object(found.arguments)
        made.append({**one, "function": {**function, "arguments": now}} if now != was else one)
    return made


def _taken(calls: list[ToolCall], id: str, name: str) -> ToolCall | None:
    """The call of an id, or without one the first of its name; it is taken out of the list."""
    found = next((call for call in calls if (call.id == id if id else call.name == name)), None)
    if found is not None:
        calls.remove(found)
    return found


def _content(was: Any, text: str, word: str = "text") -> Any:
    """A content with another text: a list keeps its other parts."""
    if not isinstance(was, list):
        return text
    made, told = list[Any](), False
    for part in was:
        if isinstance(part, Mapping) and _is_text(part):
            if not told:
                made.append(_text(text, word, part))
            told = True
        else:
            made.append(part)
    return made if told else [_text(text, word), *made]


def _word(piece: Mapping[str, Any], *, responses: bool) -> str:
    """The type that a text has among the parts of a piece: OpenAI's Responses API has words of its own."""
    if not responses:
        return "text"
    return "output_text" if ROLES.get(str(piece.get("role")).lower()) == "assistant" else "input_text"


def _is_text(part: Mapping[str, Any]) -> bool:
    """Returns whether a part holds words that were said, as a refusal does."""
    return "text" in part or part.get("type") == "refusal"


def _text(text: str, word: str, part: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A text as a part, in the place of another one or beside others."""
    return {**part, "text": text} if part is not None and "text" in part else {"type": word, "text": text}


def _object(text: str) -> Mapping[str, Any]:
    """The JSON object of a text; empty where it holds none."""
    try:
        return mapping(json.loads(text or "{}"))
    except (ValueError, RecursionError):
        return {}


# -- system texts, and messages that the client did not send -----------------------------------------------------------


def _top(key: str, path: str) -> str:
    """Returns where a system text stands in a protocol that has none among its messages; empty where it has."""
    if key == "contents":
        return "systemInstruction"
    return "system" if path.endswith("/messages") else ""


def _rewrite_system(made: dict[str, Any], key: str, entries: Sequence[Entry], origins: Sequence[int | None]) -> None:
    entry = next((one for one, origin in zip(entries, origins, strict=True) if origin == 0), None)
    if entry is None or unchanged(entry):
        return
    if entry.sent is None:
        del made[key]
        return
    was = made[key]
    parts = mapping(was).get("parts")
    made[key] = {**was, "parts": _content(parts, entry.sent.text)} if parts else _content(was, entry.sent.text)


def _add(made: dict[str, Any], out: list[Any], message: Message, *, gemini: bool, top: str) -> None:
    if gemini:
        if message.role == "system":
            parts = [*mapping(made.get(top)).get("parts", ()), {"text": message.text}]
            made[top] = {**mapping(made.get(top)), "parts": parts}
            return
        out.append({"role": "model" if message.role == "assistant" else "user", "parts": [{"text": message.text}]})
    elif message.role == "system" and top:
        was = made.get(top, "")
        made[top] = (
            [*was, {"type": "text", "text": message.text}] if isinstance(was, list) else f"{was}\n\n{message.text}"
        )
    else:
        out.append({"role": message.role, "content": message.text})
