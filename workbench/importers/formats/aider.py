"""Aider's histories: of its requests (``--llm-history-file``), which hold what each call saw, and of its chat
(``.aider.chat.history.md``), which holds what a person sees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from workbench.importers.conversation import Call, ImportedMessage, Remarks, Thread
from workbench.importers.messages import read_messages
from workbench.importers.python_text import python_value
from workbench.importers.threads import ObservedCall, attempted, linear, threads_of, unanswered, with_answers
from workbench.importers.values import array, duration_between, mapping, moment, number, string

_TIME = r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)"
_ASKED = re.compile(rf"^TO LLM {_TIME}$", re.MULTILINE)
_ANSWERED = re.compile(rf"^LLM RESPONSE {_TIME}$", re.MULTILINE)
_STARTED = re.compile(rf"^# aider chat started at {_TIME}\s*$", re.MULTILINE)
_MESSAGE = re.compile(r"^-------\n(?=(?:SYSTEM|USER|ASSISTANT|TOOL|FUNCTION)\b)", re.MULTILINE)
_KEY = re.compile(r"(type|text|cache_control|image_url|Image_url URL): ?(.*)", re.DOTALL)
_MODEL = re.compile(r"(?:Main model|Model|Models): (\S+) with ")
_COST = re.compile(r"Cost: \$(\d+(?:\.\d+)?) message")
_TALKS = ("/ask ", "/code ", "/architect ", "/help ")
"""Commands whose rest is what a person says to the model."""
_FORGETS = ("/clear", "/reset")
REQUESTS, CHATS = "aider_requests", "aider_chats"


def aider_text(text: str) -> Mapping[str, Any] | None:
    """One of the histories as an object that ``read_aider`` reads; None for any other text."""
    begun = text.lstrip()
    if _ASKED.match(begun):
        return {REQUESTS: list(_requests(begun))}
    if _STARTED.match(begun):
        return {CHATS: list(_chats(begun))}
    return None


def _sections(mark: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """The time of each mark, and the text behind it."""
    found = list(mark.finditer(text))
    for one, after in zip(found, [*found[1:], None], strict=True):
        yield one[1], text[one.end() : len(text) if after is None else after.start()]


def _requests(text: str) -> Iterator[dict[str, Any]]:
    for at, section in _sections(_ASKED, text):
        answered = _ANSWERED.search(section)
        request = section[: answered.start()] if answered is not None else section
        parts = _MESSAGE.split(request.lstrip("\n"))
        found: dict[str, Any] = {"at": at, "messages": [_message(part) for part in parts if part.strip()]}
        if answered is not None:
            answer = _message(section[answered.end() :].strip("\n")) if section[answered.end() :].strip() else {}
            found |= {"until": answered[1], "answer": answer.get("content", "")}
        yield found


def _message(part: str) -> dict[str, Any]:
    """A message whose lines begin with its role. Of one in parts, only the first line of each value does."""
    role = part.split(maxsplit=1)[0]
    lines = part.rstrip("\n").split("\n")
    if _KEY.match(lines[0].removeprefix(f"{role} ")) is None:
        return {"role": role.lower(), "content": "\n".join(line.removeprefix(role).removeprefix(" ") for line in lines)}
    parts: list[dict[str, Any]] = []
    key = ""
    for line in lines:
        told = _KEY.match(line.removeprefix(f"{role} ")) if line.startswith(f"{role} ") else None
        if told is None:
            if parts and key:
                parts[-1][key] += f"\n{line}"
            continue
        key = "image_url" if told[1] == "Image_url URL" else told[1]
        if key == "type" or not parts:
            parts.append({})
        parts[-1][key] = told[2]
    for one in parts:
        if "cache_control" in one:
            one["cache_control"] = _value(one["cache_control"])
        if "image_url" in one:
            one["image_url"] = {"url": one["image_url"]}
    return {"role": role.lower(), "content": parts}


def _value(text: str) -> Any:
    try:
        return python_value(text)
    except ValueError:
        return {}


def _chats(text: str) -> Iterator[dict[str, Any]]:
    """What was said in each chat. Aider ends its own lines and a person's with two spaces, a model does not."""
    for at, section in _sections(_STARTED, text):
        said: list[dict[str, Any]] = []
        model = ""
        for line in section.split("\n"):
            if line.startswith("> ") and line.endswith("  "):
                model = found[1] if (found := _MODEL.search(line)) else model
                if (cost := _COST.search(line)) and said and said[-1]["role"] == "assistant":
                    said[-1]["cost"] = float(cost[1])
                else:
                    _end(said)
            elif line.startswith("#### ") and line.endswith("  "):
                _add(said, "user", line[5:].rstrip())
            elif not line and said and said[-1]["role"] == "user":
                _end(said)
            else:
                _add(said, "assistant", line)
        first = next((i for i, one in enumerate(said) if one["role"] == "user"), len(said))
        kept = [one | {"content": one["content"].strip()} for one in said[first:]]
        yield {"started": at, "model": model, "said": [one for one in kept if one["content"]]}


def _end(said: list[dict[str, Any]]) -> None:
    """The last message is whole."""
    if said and said[-1]["role"]:
        said.append({"role": "", "content": ""})


def _add(said: list[dict[str, Any]], role: str, line: str) -> None:
    """A line of a message: another one where somebody else speaks, or Aider spoke between."""
    if said and said[-1]["role"] == role:
        said[-1]["content"] += f"\n{line}"
    elif line.strip():
        said.append({"role": role, "content": line})


def has_aider(body: Any) -> bool:
    """One of the histories as an object."""
    return any(key in mapping(body) for key in (REQUESTS, CHATS))


def read_aider(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    """The contexts of the requests; else of the chats, each of which begins anew."""
    if REQUESTS in mapping(body):
        calls = (attempted(partial(_call, one, remarks), remarks) for one in map(mapping, array(body[REQUESTS])))
        unstated = "the history keeps the text of a request, without its parameters and the end of each last line"
        return tuple(replace(one, unstated=unstated) for one in threads_of(filter(None, calls)))
    return tuple(thread for chat in map(mapping, array(body[CHATS])) for thread in _of_chat(chat, remarks))


def _call(one: Mapping[str, Any], remarks: Remarks) -> ObservedCall:
    """A request and its answer. Raises Unreadable."""
    at, until = (moment(one.get(key)) for key in ("at", "until"))
    call, given = Call(at=at, duration_s=duration_between(at, until)), tuple(read_messages(one["messages"], remarks))
    if not string(one.get("answer")):
        return ObservedCall(given, *unanswered(call, "the history holds no text of an answer"))
    return ObservedCall(given, ImportedMessage("assistant", (string(one["answer"]),)), call)


def _of_chat(chat: Mapping[str, Any], remarks: Remarks) -> Iterator[Thread]:
    model, at = string(chat.get("model")), moment(chat.get("started"))
    contexts: list[list[ImportedMessage]] = [[]]
    for one in map(mapping, array(chat.get("said"))):
        text = string(one.get("content"))
        if one.get("role") == "user":
            _say(contexts, text, remarks)
        elif contexts[-1]:
            call = Call(model=model, at=at, cost=number(one.get("cost")), cost_grade="estimate")
            contexts[-1].append(ImportedMessage("assistant", (text,), call=call))
    unstated = (
        "the chat holds what was said: Aider's prompts and the files that it sends with each request are not stated"
    )
    if any(one.call is not None for said in contexts for one in said):
        for said in with_answers(contexts, remarks):
            yield replace(linear(said, model=model, made=False), unstated=unstated)


def _say(contexts: list[list[ImportedMessage]], text: str, remarks: Remarks) -> None:
    """What a person typed: words for the model, or a command for Aider, some of which begin a context."""
    talk = next((text.removeprefix(name) for name in _TALKS if text.startswith(name)), text)
    if not talk.startswith("/"):
        contexts[-1].append(ImportedMessage("user", (talk,)))
        return
    if talk.startswith(_FORGETS) and contexts[-1]:
        contexts.append([])
    remarks.left_out("a command of Aider, which is no message,", talk[:40])
