"""Asks a server with OpenAI's chat interface, at an address that a person named, without litellm: its import takes 2 s
of CPU, and each call through it 2.4 ms in place of 0.8.

Only requests that litellm hands on as they are go this way (``is_plain``): the body is the one that litellm would send.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from workbench.models.collect import Fields
from workbench.models.connections import RecordingClient
from workbench.models.names import Resolved
from workbench.models.tape import Tape, current

_TRANSLATED = re.compile(r"gpt-5|(^|/)o\d|codex|search|deep-research|-pro\b", re.IGNORECASE)
"""Models for which litellm renames or refuses parameters, or asks another interface of OpenAI's."""
_HOSTS = (".openai.com", ".openrouter.ai")
"""For which it rewrites tools and messages."""
_ORDERED = (
    *("temperature", "top_p", "stream", "stream_options", "stop", "max_tokens", "max_completion_tokens"),
    *("presence_penalty", "frequency_penalty", "logit_bias", "response_format", "seed", "tools", "tool_choice"),
    *("parallel_tool_calls", "reasoning_effort", "user", "verbosity", "thinking"),
)
"""Parameters in the order in which litellm writes them; what a model takes beyond OpenAI's follows, then all others."""
_HANDED = frozenset({"model", "messages", "api_key", "api_base", "timeout", "allowed_openai_params", "extra_body"})
"""Arguments that are no parameters of the body."""


class StatedError(Exception):
    """The server answered with an error, by its status or in place of a piece of its answer."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.status_code = status_code


def is_chat_server(base_url: str) -> bool:
    """Whether requests to this address may go without litellm."""
    host = "." + (urlsplit(base_url).hostname or "")
    return bool(base_url) and not host.endswith(_HOSTS)


def is_plain(resolved: Resolved, arguments: Mapping[str, Any]) -> bool:
    """Whether litellm would send these arguments of its ``completion`` as they are."""
    if resolved.provider.id != "openai" or not is_chat_server(resolved.base_url):
        return False
    if _TRANSLATED.search(arguments["model"].removeprefix("openai/")) or "cache_control_injection_points" in arguments:
        return False
    tools = arguments.get("tools")
    if (tools is None and "tool_choice" in arguments) or (tools is not None and '"pattern"' in json.dumps(tools)):
        return False
    # litellm moves images out of the results of tools.
    return not any(one["role"] == "tool" and isinstance(one.get("content"), list) for one in arguments["messages"])


async def pieces(client: RecordingClient, tape: Tape, arguments: Mapping[str, Any]) -> AsyncIterator[Any]:
    """The pieces of the answer to a plain request; one that is not streamed is one piece. Each is as
    ``Collector.add`` takes it. Raises StatedError, ValueError for what is no JSON, HTTPError, NotSent and Unreached."""
    parameters = {name: value for name, value in arguments.items() if name not in _HANDED}
    body = {
        "model": arguments["model"].removeprefix("openai/"),
        "messages": arguments["messages"],
        **{name: parameters.pop(name) for name in _ORDERED if name in parameters},
        **arguments.get("extra_body", {}),
        **parameters,
    }
    request = client.build_request(
        "POST",
        _endpoint(arguments["api_base"]),
        content=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {arguments['api_key']}", "content-type": "application/json"},
        timeout=arguments["timeout"],
    )
    token = current.set(tape)
    try:
        response = await client.send(request, stream=True)
    finally:
        current.reset(token)
    try:
        if response.status_code >= 300:
            await response.aread()
            raise StatedError(f"status {response.status_code}", response.status_code)
        if "stream" not in arguments:
            yield _whole(await response.aread())
            return
        async for event in response.events():
            yield _piece(event)
    finally:
        await response.aclose()


def _endpoint(base_url: str) -> str:
    base = base_url.rstrip("/")
    return base if "chat/completions" in base else f"{base}/chat/completions"


def _whole(body: bytes) -> Any:
    answer = json.loads(body.decode("utf-8"), object_hook=Fields)
    if not isinstance(answer, Fields):
        raise ValueError("no JSON object")
    return _piece(answer)


def _piece(event: Any) -> Any:
    """A piece with reasoning under the one name. Raises StatedError for an error in its place: servers such as vLLM and
    SGLang send it behind the status 200."""
    if error := event.error:
        code = error.code if isinstance(error, Fields) else None
        said = error.message if isinstance(error, Fields) else error
        raise StatedError(str(said), code if isinstance(code, int) and 400 <= code < 600 else 500)
    for choice in event.choices or ():
        part = choice.delta or choice.message
        if part is not None and part.reasoning_content is None and part.reasoning is not None:
            part["reasoning_content"] = part.pop("reasoning")
    return event
