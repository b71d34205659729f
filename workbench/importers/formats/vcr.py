"""Recorded HTTP traffic: cassettes of VCR (YAML or JSON), nock's, httpmock's, HAR files, and files of one request with
its response (as dd-trace's and ReqLLM's), or a line for each (as claude-trace's). Requests are exact, byte for byte
what went out; bodies may be packed, in base64, or a stream of events."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from msgspec import Struct

from workbench.importers.conversation import Call, Conversation, Remarks, Unreadable
from workbench.importers.exchanges import Exchanges, given_of, is_response
from workbench.importers.formats.plain_yaml import NotPlain, plain_documents, plain_yaml
from workbench.importers.source import MAX_BYTES, arrow
from workbench.importers.streams import as_messages, is_event_stream, streamed, whole_list, whole_response
from workbench.importers.threads import ObservedCall, attempted, threads_of
from workbench.importers.values import array, as_text, duration_between, loads, mapping, moment, number, string

# Interactions over gRPC in a cassette: the JSON beside the packed messages, in the form of chat completions (xAI).

_OURS = ("", "TOOL_CALL_TYPE_CLIENT_SIDE_TOOL", "TOOL_CALL_TYPE_INVALID", "function")
"""Types of calls that the caller runs; the others ran at the provider."""


def of_grpc(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """A gRPC interaction in the form of an HTTP one; others unchanged."""
    asked = mapping(one.get("request_sample")) or mapping(one.get("request_stream"))
    if "request" in one or not asked:
        return one
    request = mapping(asked.get("json"))
    request = {**request, "messages": [_message(mapping(turn)) for turn in array(request.get("messages"))]}
    whole = mapping(mapping(one.get("response_sample")).get("json"))
    response = whole or _streamed(mapping(one.get("response_stream")))
    if outputs := array(response.get("outputs")):
        response = {**response, "choices": [_choice([mapping(output) for output in outputs])]}
    return {"request": {"method": "POST", "parsed_body": request}, "response": {"parsed_body": dict(response)}}


def _streamed(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The response that grew by chunks; each output in them has a number of its own."""
    found: dict[Any, list[Any]] = {}
    last: Mapping[str, Any] = {}
    for one in array(answer.get("chunks_json")):
        last = {**last, **mapping(mapping(one).get("chunk"))}
        for output in map(mapping, array(mapping(mapping(one).get("chunk")).get("outputs"))):
            found.setdefault(output.get("index", 0), []).append({"choices": [{**output, "index": 0}]})
    return {**last, "outputs": [mapping(array(mapping(whole_list(one)).get("choices"))[0]) for one in found.values()]}


def _choice(outputs: list[Mapping[str, Any]]) -> dict[str, Any]:
    """All outputs of a response as the one message that they are: those of calls, then the one of the text."""
    messages = [_message(mapping(output.get("message"))) for output in outputs]
    calls = [call for one in messages for call in one["tool_calls"]]
    content = [part for one in messages for part in one["content"]]
    message = {"role": "assistant", "content": content, "tool_calls": calls}
    thoughts = "".join(string(one.get("reasoning_content")) for one in messages)
    message |= {"reasoning_content": thoughts} if thoughts else {}
    return {"index": 0, "message": message, "finish_reason": outputs[-1].get("finish_reason")}


def _message(one: Mapping[str, Any]) -> dict[str, Any]:
    """A message with its role as others name it; a call that the provider ran stands in its content."""
    content = one.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(array(content))
    calls: list[Any] = []
    for call in map(mapping, array(one.get("tool_calls"))):
        if string(call.get("type")) in _OURS:
            calls.append({key: value for key, value in call.items() if key != "type"})
        else:
            parts.append(dict(call))
    role = string(one.get("role")).lower().removeprefix("role_")
    return {**one, "role": role, "content": [part for part in parts if part != {"text": ""}], "tool_calls": calls}


# Bodies of recorded HTTP messages: in base64, packed, as JSON or as a stream of events.

MAX_BODY = 64 * 1024 * 1024
"""Bytes of one unpacked body."""


def headers_of(value: object) -> dict[str, str]:
    """Headers by their names in small letters; the first value of each."""
    if isinstance(value, list):
        return {string(mapping(one).get("name")).lower(): as_text(mapping(one).get("value")) for one in value}
    found = {as_text(key).lower(): one for key, one in mapping(value).items()}
    return {key: as_text(one[0] if isinstance(one, list) and one else one) for key, one in found.items()}


class PackedBodies:
    """Reads the bodies of one file. A packed one is at most ``most`` bytes, all together ``total``, unpacked."""

    def __init__(self, remarks: Remarks, most: int = MAX_BODY, total: int = MAX_BYTES) -> None:
        self.remarks = remarks
        self._most = most
        self._total = self._left = total

    def read(self, message: Mapping[str, Any]) -> Any:
        """The body as JSON, a stream as the response that it forms, other bodies as text.

        None without a body. Raises Unreadable for a file whose bodies unpack to too much.
        """
        if isinstance(parsed := message.get("parsed_body"), dict | list):
            return parsed
        raw = message.get("body", message.get("postData", message.get("content")))
        if raw is None:  # As claude-trace keeps a stream.
            raw = message.get("body_raw")
        outer = mapping(raw)
        if outer:
            raw = outer.get("string", outer.get("text", outer.get("data")))
            raw = raw if isinstance(raw, str | bytes) else None
            packed = outer.get("base64_string", outer.get("b64")) or (
                raw if outer.get("encoding") == "base64" else None
            )
            if packed is not None:
                raw = self._from_base64(packed)
            elif raw is None:
                return dict(outer)
        if isinstance(raw, bytes) and is_event_stream(raw):
            return streamed(raw)
        encoding = headers_of(message.get("headers")).get("content-encoding", "")
        text = self._text(raw, encoding)
        if not text.strip():
            return None
        try:
            found = loads(text)
        except ValueError:
            return whole_response(text) or text
        return whole_list(found) or found if isinstance(found, list) else found

    def _from_base64(self, value: object) -> bytes:
        if isinstance(value, list):
            return b"".join(map(self._from_base64, value))
        try:
            return base64.b64decode(value if isinstance(value, bytes) else as_text(value))
        except (binascii.Error, ValueError):
            self.remarks.left_out("a damaged body in base64")
            return b""

    def _text(self, raw: object, encoding: str) -> str:
        """The text of a body; a recorder may have unpacked it already and left the header unchanged."""
        if not isinstance(raw, bytes):
            text = as_text(raw)
            if not text.startswith("\x1f\x8b"):
                return text
            raw = text.encode("latin-1", "replace")  # one character for each byte, as recorders in JSON write it
        try:
            data = self._unpacked(raw, encoding)
        except (zlib.error, OSError, ValueError) as fault:
            self.remarks.left_out(f"a packed body that cannot be unpacked ({as_text(str(fault))[:60]})")
            return ""
        text = data.decode("utf-8", "replace")
        if encoding == "br" and "\ufffd" in text[:64]:
            self.remarks.left_out("a body packed with Brotli, which cannot be read here,")
            return ""
        return text

    def _unpacked(self, raw: bytes, encoding: str) -> bytes:
        """Raises Unreadable, and what the unpacking of a damaged or too large one leads to."""
        if raw.startswith(b"\x1f\x8b"):
            data = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(raw, self._most + 1)
        elif encoding == "deflate":
            data = zlib.decompressobj().decompress(raw, self._most + 1)
        elif raw.startswith(b"\x28\xb5\x2f\xfd"):
            pyarrow = arrow()
            with pyarrow.CompressedInputStream(pyarrow.BufferReader(raw), "zstd") as stream:
                data = stream.read(self._most + 1)
        else:
            return raw
        self._left -= len(data)
        if self._left < 0:
            raise Unreadable(f"its bodies unpack to more than {self._total:,} bytes")
        if len(data) > self._most:
            raise ValueError(f"it is larger than {self._most:,} bytes")
        return data


_STARTS = ("interactions:", "http_interactions:", "version: 1", "---")
_HTTPMOCK = re.compile(r"(?:---\s*\n)?when:\s*\n[^\x00]*?\nthen:\s*\n")
_MOST_PAIRS = 100_000
_COMMENTS = re.compile(r"(?:\s*#[^\n]*\n)*\s*")
_HEX = re.compile(r"(?:[0-9a-f]{2})+")
_NOCK = ("scope", "path", "status", "response")


def looks_like_cassette(text: str) -> bool:
    """Returns whether a text that is no JSON may be a cassette in YAML."""
    before = _COMMENTS.match(text, 0, 4096)
    starts = text.startswith(_STARTS, before.end() if before else 0) and "interactions:" in text
    return starts or _HTTPMOCK.match(text) is not None


def load_cassette(text: str) -> Any:
    """The cassette's YAML as plain values; Python's own tags count as what they stand for. Raises Unreadable."""
    try:
        if _HTTPMOCK.match(text) is None:
            return plain_yaml(text)
        return {"interactions": [_of_httpmock(mapping(one)) for one in plain_documents(text, _MOST_PAIRS)]}
    except NotPlain as fault:
        raise Unreadable(f"looks like a recording of HTTP requests (VCR), but cannot be read: {fault}") from None


class _Recorded(Struct, frozen=True):
    """One request with its response, whatever recorded it."""

    method: str
    url: str
    request: Any
    """Its body: JSON, else text; None without a body."""
    response: Any
    status: int
    """0 if no response came."""
    at: str
    seconds: float | None = None


def is_vcr(body: Any) -> bool:
    """A list of interactions, a HAR file's entries, or one interaction; those of a log may stand in a line each."""
    found = _entries(body)
    return bool(found) and all("request" in mapping(one) for one in found)


def _entries(body: Any) -> list[Mapping[str, Any]]:
    """The interactions, in the form of a cassette."""
    if isinstance(body, list):
        if all(_is_alone(mapping(one)) for one in body):
            return [_alone(one) for one in body]
        return [_of_nock(one) for one in body] if all(set(_NOCK) <= mapping(one).keys() for one in body) else []
    outer = mapping(body)
    for found in (outer.get("interactions"), outer.get("http_interactions"), mapping(outer.get("log")).get("entries")):
        if isinstance(found, list):
            return [of_grpc(mapping(one)) for one in found]
    return [_alone(outer)] if _is_alone(outer) else []


def _is_alone(one: Mapping[str, Any]) -> bool:
    """Returns whether it is an interaction outside of a list: its response has a status, or never came (null)."""
    asked, answered = mapping(one.get("request")), one.get("response", "")
    told = answered is None or any(key in mapping(answered) for key in ("status", "status_code"))
    return "method" in asked and ("url" in asked or "uri" in asked) and told


def _alone(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """An interaction that is a file of its own; the pieces of a stream may stand beside its response."""
    pieces = [mapping(piece).get("b64") for piece in array(one.get("chunks"))]
    return {**one, "response": {**mapping(one.get("response")), "body": {"b64": pieces}}} if pieces else one


def _of_nock(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """An interaction of nock, whose headers are a flat list and whose packed bodies are hexadecimal."""
    headers = [as_text(found) for found in array(one.get("rawHeaders") or one.get("headers"))]
    body, asked = one.get("response"), one.get("body", one.get("requestBody"))
    pieces = "".join(map(string, array(body))) if isinstance(body, list) else string(body)
    if pieces and _HEX.fullmatch(pieces):
        body = bytes.fromhex(pieces)
    return {
        "request": {
            "method": one.get("method"),
            "uri": string(one.get("scope")) + string(one.get("path")),
            "parsed_body": asked,
            "body": asked,
        },
        "response": {
            "status": one.get("status"),
            "headers": dict(zip(headers[::2], headers[1::2], strict=False)),
            "parsed_body": body,
            "body": body,
        },
    }


def _of_httpmock(pair: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document of httpmock (Rust): what a request has to be, and the response to it."""
    asked, answer = mapping(pair.get("when")), mapping(pair.get("then"))
    body = {"base64_string": packed} if (packed := string(answer.get("body_base64"))) else answer.get("body")
    return {
        "request": {
            "method": asked.get("method"),
            "uri": asked.get("path"),
            "body": asked.get("body"),
            "parsed_body": asked.get("json_body"),
        },
        "response": {"status": answer.get("status"), "headers": answer.get("header"), "body": body},
    }


def read_vcr(body: Any) -> list[Conversation]:
    """All model calls of a recording. Raises Unreadable if it holds none."""
    remarks, calls, others = Remarks(), list[ObservedCall](), list[dict[str, Any]]()
    exchanges, bodies = Exchanges(remarks), PackedBodies(remarks)
    recorded = [_recorded(one, bodies) for one in _entries(body)]
    for one in recorded:
        request, response = as_messages(mapping(one.request), one.response, remarks)
        observed = None
        if _asks_no_model(one, request):
            pass
        elif one.status >= 400 or not one.status:
            told = f"HTTP status {one.status}" if one.status else "no response was recorded"
            failed = Call(at=one.at, duration_s=one.seconds)
            observed = attempted(partial(exchanges.refused, request, mapping(one.response), failed, told), remarks)
        else:
            call = Call(at=one.at, duration_s=one.seconds)
            if given_of(request) is not None and not is_response(response):
                exchanges.keep(string(response.get("name")), request)
            else:
                observed = attempted(partial(exchanges.read, request, response, call, one.url), remarks)
        if observed is not None:
            calls.append(observed)
        else:
            others.append({"method": one.method, "url": one.url.partition("?")[0], "status": one.status})
    if not calls and any(
        one.status < 400 and not one.request and is_response(mapping(one.response)) for one in recorded
    ):
        raise Unreadable(f"it holds answers of a model without the requests' bodies{_urls(recorded)}")
    if not calls:
        raise Unreadable(f"none of its {_requests(len(recorded))} is an answered call of a model{_urls(recorded)}")
    failures = sum(1 for one in others if one["status"] >= 400)
    if failures:
        remarks.left_out("a request that failed", count=failures, kept=True)
    if len(others) > failures:
        remarks.left_out("a request that is not a model call", count=len(others) - failures, kept=True)
    return [Conversation(threads_of(calls), remarks=remarks.all, kept={"requests": others})]


def _asks_no_model(one: _Recorded, request: Mapping[str, Any]) -> bool:
    """Returns whether a request is no call of a model; of one that failed only its messages can tell."""
    chats = any(isinstance(request.get(key), list) for key in ("messages", "contents"))
    return "embedding" in one.url or (one.status >= 400 and not chats)


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _urls(recorded: list[_Recorded]) -> str:
    failed = (
        f"{one.url.partition('?')[0][:80]}{f': {one.status}' if one.status >= 400 else ''}" for one in recorded[:3]
    )
    found = ", ".join(dict.fromkeys(failed))
    return f" ({found})" if found else ""


def _recorded(one: Mapping[str, Any], bodies: PackedBodies) -> _Recorded:
    request, response = mapping(one.get("request")), mapping(one.get("response"))
    status = response.get("status", response.get("status_code"))
    code = mapping(status).get("code", status) if one.get("response", "") is not None else 0
    headers = headers_of(response.get("headers"))
    began, took = moment(request.get("timestamp")), number(one.get("time"))
    seconds = took / 1000 if took is not None else duration_between(began, moment(response.get("timestamp")))
    return _Recorded(
        string(request.get("method")),
        string(request.get("uri")) or string(request.get("url")),
        bodies.read(request),
        bodies.read(response),
        code if isinstance(code, int) else 200,
        moment(one.get("startedDateTime") or one.get("recorded_at") or one.get("captured_at"))
        or began
        or _http_date(headers.get("date", "")),
        seconds,
    )


def _http_date(text: str) -> str:
    try:
        return moment(parsedate_to_datetime(text).isoformat()) if text else ""
    except (ValueError, TypeError):
        return ""
