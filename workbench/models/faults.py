"""From whatever went wrong in a call to the fault that the engine knows, by what crossed the wire first of all."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx

from workbench.engine.contracts import ModelFault
from workbench.engine.journal.redact import Redactor, without_password
from workbench.models.names import Resolved
from workbench.models.tape import NotSent, Tape, Unusable

BODY = 4000
"""Characters kept of what a provider answered."""

_BY_STATUS = {
    301: "not_found",
    302: "not_found",
    307: "not_found",
    308: "not_found",
    401: "authentication",
    402: "permission",
    403: "permission",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    413: "context_length",
    425: "server",
    429: "rate_limit",
    498: "authentication",
    499: "connection",
}
_BY_CLASS = {
    "ContextWindowExceededError": "context_length",
    "AuthenticationError": "authentication",
    "PermissionDeniedError": "permission",
    "NotFoundError": "not_found",
    "Timeout": "timeout",
    "APIConnectionError": "connection",
    "UnsupportedParamsError": "bad_request",
    "BadRequestError": "bad_request",
}
_CONTEXT = re.compile(
    r"context[_ ]length|context window|maximum context|prompt is too long|input is too long|too many (?:input )?tokens"
    r"|maximum number of tokens|reduce the length",
    re.IGNORECASE,
)
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_DEEP = re.compile(r"maximum recursion depth exceeded.*", re.DOTALL)
_CLOSED = re.compile(r"peer closed connection without sending complete message body")
_NO_ANSWER = re.compile(r"disconnected without sending")
_LONG_HEAD = re.compile(r"buffer too long")
"""httpx has one class for these two and for what is no HTTP."""
_QUOTA = re.compile(r"insufficient_quota|billing|credit balance", re.IGNORECASE)


def fault_of(error: BaseException, tape: Tape, resolved: Resolved, partial: str = "") -> ModelFault:
    """The fault behind an exception. It quotes the provider if it gave a message; the key is removed."""
    kind, status = _kind(error, tape, partial)
    said, provider = _said(tape) or _plain(tape.unreached or error), resolved.where
    if kind == "authentication":
        key = f"the key in {resolved.key_variable}" if resolved.key_variable else "a call without a key"
        message = f"{provider} refused {key}: {said}"
        if resolved.base_url and not resolved.api_key:
            message = f"{provider} wants a key: set {resolved.key_variable}"
    elif isinstance(tape.broken, Unusable) and kind in ("too_large", "bad_answer"):
        left = f" was left{_kept(partial)}: it" if partial else ""
        message = f"the answer of {provider}{left} {tape.broken}"
    elif kind == "stream_cut":
        message = (
            f"the answer of {provider} broke off{_kept(partial)}: {_CLOSED.sub('the connection was closed', said)}"
        )
    elif kind == "connection":
        message = f"no connection to {provider}{_at(tape, provider)}: {said}"
    elif kind == "too_large":
        message = f"the answer of {provider} begins with a line or headers longer than any that are read"
    elif kind == "bad_answer" and tape.unreached is not None:
        message = f"{provider} does not answer in HTTP: {said}"
    elif kind == "bad_answer":
        message = f"{unreadable(tape, resolved)}: {_DEEP.sub('it is nested too deep', said)}"
    elif status is not None and tape.status is not None:
        message = f"{provider} answered {status}: {_said(tape) or _phrase(status)}{_moved(tape)}"
    else:
        message = said
    return build(kind, message, tape, resolved, partial, status)


def build(
    kind: str, message: str, tape: Tape, resolved: Resolved, partial: str = "", status: int | None = None
) -> ModelFault:
    """A fault with all that is known of the exchange."""
    redact = Redactor({resolved.key_variable: resolved.api_key, "BASE_URL": resolved.base_url})
    body, _ = redact(tape.text() if tape.status is not None else "")
    wire, style = tape.wire()
    return ModelFault(
        kind,
        redact(message)[0],
        status=status if status is not None else tape.status,
        retry_after=retry_after(tape),
        body=body[:BODY],
        wire=wire,
        wire_style=style,
        partial=partial,
    )


def unreadable(tape: Tape, resolved: Resolved) -> str:
    """Describes the text that came instead of an answer: the title of a web page, or the beginning of the text."""
    text = tape.text().strip()
    if text.startswith("<"):
        words = " ".join(re.sub(r"<[^>]*>", " ", text).split())
        return f"{resolved.where} sent a web page instead of an answer" + (f": '{words[:80]}'" if words else "")
    begins = f"; it begins with {text[:40]!r}" if text else ""
    why = ": it is not UTF-8" if tape.garbled else ""
    return f"the answer of {resolved.where} cannot be read{why}{begins}"


def _at(tape: Tape, provider: str) -> str:
    """The server's address, if the provider's name does not imply it."""
    address = f"{tape.url.scheme}://{tape.url.netloc.decode('ascii')}" if tape.url is not None else ""
    return f" at {address}" if address and not provider.startswith(address) else ""


def _kept(partial: str) -> str:
    return f" after {len(partial):,} characters, which are kept" if partial else ""


def _moved(tape: Tape) -> str:
    target = tape.headers.get("location", "") if tape.status is not None and 300 <= tape.status < 400 else ""
    return f" to {without_password(target)}, which is not followed" if target else ""


def retry_after(tape: Tape) -> float | None:
    """Seconds that the provider asks to wait: ``retry-after-ms``, or ``retry-after`` as a number or a date. None if it
    asks for none, or for a wait that is infinite or less than nothing.
    """
    milliseconds, value = tape.headers.get("retry-after-ms", ""), tape.headers.get("retry-after", "")
    if (asked := _wait(milliseconds)) is not None:
        return asked / 1000
    if (asked := _wait(value)) is not None:
        return asked
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None


def _wait(text: str) -> float | None:
    try:
        asked = float(text)
    except ValueError:
        return None
    return asked if math.isfinite(asked) and asked >= 0 else None


def _kind(error: BaseException, tape: Tape, partial: str) -> tuple[str, int | None]:
    """Kind and status. The response decides; then how the connection ended; then the class of the exception."""
    if tape.status is not None and tape.status >= 300:
        return _kind_of_status(tape.status, tape.text()), tape.status
    if isinstance(tape.broken, Unusable):
        return "too_large" if tape.broken.too_large else "bad_answer", tape.status
    stated = getattr(error, "status_code", None)
    if tape.status is not None:
        if tape.broken is not None or partial:
            return "stream_cut", tape.status
        upstream = stated if isinstance(stated, int) and 400 <= stated < 600 and _said(tape) else None
        return (_kind_of_status(upstream, tape.text()), upstream) if upstream else ("bad_answer", tape.status)
    for link in _chain(tape.unreached or error):
        if isinstance(link, httpx.TimeoutException) and not isinstance(link, httpx.ConnectTimeout):
            return "timeout", None
        if isinstance(link, httpx.RemoteProtocolError) and not _NO_ANSWER.search(str(link)):
            return ("too_large" if _LONG_HEAD.search(str(link)) else "bad_answer"), None
        if isinstance(link, httpx.TransportError | NotSent):
            return "connection", None
    if "LLM Provider NOT provided" in str(error):
        return "no_model", None
    name = next((c.__name__ for c in type(error).__mro__ if c.__name__ in _BY_CLASS), "")
    return _BY_CLASS.get(name, "bad_request" if isinstance(error, ValueError | TypeError) else "server"), None


def _kind_of_status(status: int, body: str) -> str:
    if status == 429 and _QUOTA.search(body):
        return "permission"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return "server"
    return "context_length" if _CONTEXT.search(body) else "bad_request"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        inner = error.args[0] if error.args and isinstance(error.args[0], BaseException) else None  # httpcore's way
        error = error.__cause__ or inner or (None if error.__suppress_context__ else error.__context__)


def _said(tape: Tape) -> str:
    """The message inside an error body, or the body itself if it is short plain text."""
    text = tape.text().strip()
    try:
        body = json.loads(text.removeprefix("data:").strip().partition("\n")[0])
    except (ValueError, RecursionError):
        return "" if "<" in text[:20] or len(text) > 300 or (tape.status or 0) < 400 else text
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message") if isinstance(error, dict) else error
    return message[:1000] if isinstance(message, str) else ""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"


def _plain(error: BaseException) -> str:
    """The innermost words of an exception; libraries put their own around them."""
    words = [text.splitlines()[0] for link in _chain(error) if (text := _words(link))]
    return _ERRNO.sub("", (words[-1] if words else type(error).__name__).partition(" To drop these")[0])[:500]


def _words(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "a piece of it is not JSON"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # asyncio puts the address in its place, which the message names already
    return f"no {error}" if isinstance(error, KeyError) else str(error).strip()
