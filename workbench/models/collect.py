"""Puts the pieces of a streamed answer together; a whole answer is one piece."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from msgspec import Struct, field

from workbench.engine.contracts import NativeCall
from workbench.engine.journal.usage import Usage, whole_output

_DUPLICATES = frozenset(
    {"thinking_blocks", "reasoning_content", "reasoning", "reasoning_details", "refusal", "citations"}
)
"""Fields of a provider that litellm gives twice, or that are no part of the conversation."""


class _Call(Struct):
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


class Collector:
    """Takes litellm's chunks. ``on_text`` gets each piece of text; ``started`` is when the first piece came."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._blocks: list[dict[str, Any]] = []
        self._details: list[dict[str, Any]] = []
        self._fields: dict[str, Any] = {}
        self._calls: dict[int, _Call] = {}
        self._current: dict[int, int] = {}
        self.started: float | None = None
        self.finish_reason = ""
        self.usage: Any = None
        self.model = ""
        self.id = ""
        self.refused = False
        """Whether the text is the model's refusal to answer."""

    def add(self, chunk: Any) -> None:
        """A chunk of a stream, or a whole response."""
        self.usage = getattr(chunk, "usage", None) or self.usage
        self.model = getattr(chunk, "model", None) or self.model
        self.id = getattr(chunk, "id", None) or self.id
        for choice in getattr(chunk, "choices", None) or ():
            self.finish_reason = choice.finish_reason or self.finish_reason
            part = getattr(choice, "delta", None) or getattr(choice, "message", None)
            if part is not None:
                self._add(part)

    def _add(self, part: Any) -> None:
        calls = getattr(part, "tool_calls", None) or ()
        fields = getattr(part, "provider_specific_fields", None) or {}
        content = _text(part.content)
        refusal = _text(getattr(part, "refusal", None) or fields.get("refusal"))
        if refusal and not content:
            content, self.refused = refusal, True
        reasoning = getattr(part, "reasoning_content", None)
        if self.started is None and (content or calls or reasoning):
            self.started = time.perf_counter()
        if content:
            self._text.append(content)
            self._on_text(content)
        if reasoning:
            self._reasoning.append(_text(reasoning))
        for block in getattr(part, "thinking_blocks", None) or ():
            self._think(dict(block))
        for key, value in fields.items():
            if value and key not in _DUPLICATES:
                _merge(self._fields, key, value)
        for position, call in enumerate(calls):
            self._call(position, call)

    def _think(self, block: dict[str, Any]) -> None:
        """Pieces of one thinking block follow each other; its signature ends it."""
        last = self._blocks[-1] if self._blocks else None
        if block.get("type") != "thinking" or last is None or last.get("type") != "thinking" or last.get("signature"):
            self._blocks.append(block)
            return
        last["thinking"] = (last.get("thinking") or "") + (block.get("thinking") or "")
        if block.get("signature"):
            last["signature"] = block["signature"]

    def details(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Reasoning details from the provider's own events: litellm drops those that come without text."""
        for event in events:
            for choice in event.get("choices", ()):
                for detail in (choice.get("delta") or choice.get("message") or {}).get("reasoning_details") or ():
                    self._detail(dict(detail))

    def _detail(self, detail: dict[str, Any]) -> None:
        """Pieces of one detail share type and index: their texts join, their other fields replace."""
        last = self._details[-1] if self._details else {}
        if last.get("index", -1) != detail.get("index") or last.get("type") != detail.get("type"):
            self._details.append(detail)
            return
        for key, value in detail.items():
            if key in ("text", "summary", "data") and isinstance(value, str):
                last[key] = (last.get(key) or "") + value
            elif value is not None:
                last[key] = value

    def _call(self, position: int, piece: Any) -> None:
        """Pieces of one call share an index; another id at the same index is another call."""
        index = getattr(piece, "index", None)
        index = position if index is None else index
        key = self._current.get(index, -1)
        if key < 0 or (piece.id and self._calls[key].id and piece.id != self._calls[key].id):
            key = self._current[index] = len(self._calls)
            self._calls[key] = _Call()
        call = self._calls[key]
        call.id = call.id or _text(piece.id)
        call.name = call.name or _text(piece.function.name)
        arguments = piece.function.arguments
        call.arguments.append(json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments))
        if fields := getattr(piece, "provider_specific_fields", None):
            call.extra.setdefault("provider_specific_fields", {}).update(fields)

    @property
    def text(self) -> str:
        return _joined("".join(self._text))

    @property
    def calls(self) -> tuple[NativeCall, ...]:
        """Each with an id of its own: results are matched to calls by it."""
        made: dict[str, NativeCall] = {}
        for i, call in enumerate(self._calls.values(), start=1):
            name = call.id or f"call_{i}"
            while name in made:
                name = f"{name}-{i}"
            made[name] = NativeCall(name, call.name, _joined("".join(call.arguments)), call.extra)
        return tuple(made.values())

    @property
    def shared_ids(self) -> int:
        """How many calls came with the id of another."""
        ids = [call.id for call in self._calls.values() if call.id]
        return len(ids) - len(set(ids))

    @property
    def extra(self) -> Mapping[str, Any]:
        """The values that go back with the message, under the keys by which litellm takes them."""
        found = {
            "reasoning_content": _joined("".join(self._reasoning)),
            "thinking_blocks": self._blocks,
            "reasoning_details": self._details,
            "provider_specific_fields": self._fields,
        }
        return {key: value for key, value in found.items() if value}


def usage_of(usage: Any, said: Collection[str]) -> tuple[Usage, float | None]:
    """Returns the usage that the provider counted, and the US dollars it billed, as far as it ``said`` so itself
    (``Tape.said``)."""
    if usage is None or "usage" not in said:
        return Usage(), None
    prompt, completion = (getattr(usage, f"{side}_tokens_details", None) for side in ("prompt", "completion"))
    written = _first((prompt, "cache_creation_tokens"), (prompt, "cache_write_tokens"))
    lifetimes = getattr(prompt, "cache_creation_token_details", None)
    taken = whole_count(getattr(usage, "prompt_tokens", None)) or None  # every request has tokens: a count of 0 is none
    cached = whole_count(_first((prompt, "cached_tokens"), (usage, "prompt_cache_hit_tokens")))
    made, total = (whole_count(getattr(usage, f"{name}_tokens", None)) for name in ("completion", "total"))
    reasoning = whole_count(_first((completion, "reasoning_tokens"))) if "reasoning" in said else None
    counted = Usage(
        input=taken,
        output=whole_output(taken, made or None, reasoning, total),
        cached=cached if taken is not None and cached is not None and cached <= taken else None,
        written=whole_count(_first((usage, "cache_creation_input_tokens")) or written),
        reasoning=reasoning,
        written_hour=whole_count(_first((lifetimes, "ephemeral_1h_input_tokens"))) or None,
    )
    billed = _first((usage, "cost")) if "cost" in said else None
    return counted, float(billed) if billed is not None and _is_amount(billed) else None


def _first(*places: tuple[Any, str]) -> Any:
    return next((value for holder, name in places if (value := getattr(holder, name, None)) is not None), None)


def whole_count(value: Any) -> int | None:
    """A count that a provider stated; None for a value that is none."""
    return int(value) if _is_count(value) else None


_MOST = 2**53
"""Above it a number is not a count of tokens or dollars: a journal refuses it, and sums would have no end."""


def _is_amount(value: Any) -> bool:
    """Returns whether it is a number that something can be counted by."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST


def _is_count(value: Any) -> bool:
    return _is_amount(value) and value == int(value)


def _text(value: Any) -> str:
    """Text as it is, the texts of parts joined, a number as it is written."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        parts = (one.get("text") if isinstance(one, dict) else getattr(one, "text", one) for one in value)
        return "".join(map(_text, parts))
    return json.dumps(value) if isinstance(value, int | float | dict) else str(value)


def _joined(text: str) -> str:
    """Text whose characters that came in two halves (surrogates) are whole; a single half stays what it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


def sound(event: Mapping[str, Any]) -> dict[str, Any]:
    """An answer, or an event of a stream, in the form of OpenAI's chat that litellm can read: usage without fields that
    are no counts, choices that hold a piece of the answer, and each field of the type that it should have. What has
    another is written as text where the field is one, and else left out: no odd value takes the answer away."""
    kept = dict(event)
    if "usage" in event:
        kept["usage"] = _counts(event["usage"]) if isinstance(event["usage"], dict) else None
    if "choices" not in event:
        return kept
    choices = event["choices"] if isinstance(event["choices"], list) else [event["choices"]]
    kept["choices"] = [_choice(position, one) for position, one in enumerate(choices) if isinstance(one, dict)]
    for name in _NAMES & kept.keys():
        _replace(kept, name, _name(kept[name]))
    _replace(kept, "created", _whole(kept.get("created")))
    return kept


_NAMES = frozenset({"id", "model", "object", "system_fingerprint", "service_tier", "provider"})


def _choice(position: int, choice: dict[str, Any]) -> dict[str, Any]:
    kept = dict(choice)
    if "index" in kept and _whole(kept["index"]) is None:
        kept["index"] = position
    if "finish_reason" in kept:
        kept["finish_reason"] = _name(kept["finish_reason"])
    if "logprobs" in kept and not isinstance(kept["logprobs"], dict):
        kept["logprobs"] = None
    for name in ("delta", "message"):
        if name in kept:
            part = kept[name]
            kept[name] = _part(part) if isinstance(part, dict) else {"content": part} if isinstance(part, str) else {}
    return kept


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A delta or a message."""
    kept = dict(part)
    if "role" in kept:
        _replace(kept, "role", _name(kept["role"]))
    for name in ("content", "refusal", "reasoning_content", "reasoning"):
        if not isinstance(kept.get(name), str | list | None):
            kept[name] = _text(kept[name])
    kept.pop("function_call", None)  # Of the time before tools: nothing reads it.
    for name, kind in (("audio", dict), ("annotations", list), ("thinking_blocks", list)):
        if name in kept and not isinstance(kept[name], kind):
            del kept[name]
    if "tool_calls" in kept:
        calls = kept["tool_calls"] if isinstance(kept["tool_calls"], list) else [kept["tool_calls"]]
        kept["tool_calls"] = [_tool_call(one) for one in calls if isinstance(one, dict)] or None
    return kept


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    kept = {**call, "id": _name(call.get("id"))}
    if "index" in kept:
        _replace(kept, "index", _whole(kept["index"]))
    if not isinstance(kept.get("type"), str | None):
        kept["type"] = "function"
    function = call.get("function")
    function = dict(function) if isinstance(function, dict) else {}
    if "name" in function:
        function["name"] = _name(function["name"])
    if not isinstance(arguments := function.get("arguments"), str | None):
        function["arguments"] = json.dumps(arguments)
    return {**kept, "function": function}


def _replace(fields: dict[str, Any], name: str, value: Any) -> None:
    """Set a field; leave it out where it has no value."""
    fields.pop(name, None)
    if value is not None:
        fields[name] = value


def _name(value: Any) -> str | None:
    """A name, an id or a word; a number as it is written."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST else None


def _counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in usage.items():
        fits = _is_count if name.endswith("_tokens") else _is_amount if name.endswith("cost") else None
        if name.endswith("_details"):
            kept[name] = _counts(value) if isinstance(value, dict) else None
        elif value is None or fits is None or fits(value):
            kept[name] = value
    return kept


class _Loose(SimpleNamespace):
    """An object of JSON; missing fields are None."""

    def __getattr__(self, name: str) -> None:
        return None


def loose(text: str) -> Any:
    """An OpenAI-style JSON object, as ``Collector.add`` takes it; None for other values."""
    try:
        body = json.loads(text)
        return _loosened(sound(body)) if isinstance(body, dict) and isinstance(body.get("choices"), list) else None
    except (ValueError, RecursionError, TypeError):
        return None


def _loosened(value: Any) -> Any:
    if isinstance(value, dict):
        return _Loose(**{name: _loosened(one) for name, one in value.items()})
    return [_loosened(one) for one in value] if isinstance(value, list) else value


def _merge(fields: dict[str, Any], key: str, value: Any) -> None:
    if isinstance(value, list) and isinstance(fields.get(key), list):
        fields[key] = [*fields[key], *value]
    else:
        fields[key] = value
