"""Builds the arguments of a call of litellm: messages in OpenAI form and parameters, as the provider at hand takes
them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from workbench.context.assembly import Request
from workbench.context.marks import LIVE_MARKS, PARAMETER, Marks, places
from workbench.context.message import Message
from workbench.context.wire import merge_neighbours, to_wire
from workbench.engine.contracts import Images
from workbench.language.model.parameters import reserved
from workbench.models.names import Resolved

PARAMETERS = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "max_completion_tokens",
        "max_tokens",
        "min_p",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "repetition_penalty",
        "response_format",
        "seed",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "top_k",
        "top_p",
        "user",
        "verbosity",
    }
)
"""Names that litellm takes as arguments. Any other one goes into the body as it is, because as an argument it could be
one of litellm's own: the host, the key, the retries."""

_RETURNED = frozenset({"reasoning_content", "thinking_blocks", "reasoning_details", "provider_specific_fields"})


def messages_for(request: Request, images: Images, resolved: Resolved) -> list[dict[str, Any]]:
    """The messages in OpenAI form, with those fields of earlier answers that this provider takes back."""
    messages = merge_neighbours(request.messages) if resolved.provider.alternating else request.messages
    foreign = _RETURNED.difference(resolved.provider.returns)
    return [_message(message, images, foreign) for message in messages]


def _message(message: Message, images: Images, foreign: frozenset[str]) -> dict[str, Any]:
    body = to_wire(message, images)
    if body["content"] is None:
        del body["content"]
    if message.extra or message.tool_calls:
        for holder in (body, *body.get("tool_calls", ())):
            for key in foreign.intersection(holder):
                del holder[key]
    return body


def parameters_for(request: Request, resolved: Resolved) -> dict[str, Any]:
    """The parameters sent beside the messages. A model that takes a budget for reasoning gets it in place of the
    effort.

    Raises ValueError for a parameter that no request may set.
    """
    marks = marked(request)
    asked = {name: value for name, value in request.parameters.items() if value not in (None, "") and name != PARAMETER}
    parameters = {name: value for name, value in asked.items() if name in PARAMETERS}
    body = {name: value for name, value in asked.items() if name not in PARAMETERS}
    if taken := next(filter(reserved, body), ""):
        raise ValueError(f"the parameter '{taken}' cannot be sent: {reserved(taken)}")
    routed = resolved.provider.id == "openrouter"
    thinking: Mapping[str, Any] | None = parameters.pop("thinking", None)
    if thinking is not None and (resolved.provider.thinking or routed):
        parameters.pop("reasoning_effort", None)
    if thinking is not None and resolved.provider.thinking:
        parameters["thinking"] = dict(thinking)
    if request.tools:
        tools = copy.deepcopy([dict(tool) for tool in request.tools])
        if takes_marks(resolved) and 0 in marks:
            tools[-1]["cache_control"] = marks[0]
        parameters["tools"] = tools
    if parameters:
        parameters["allowed_openai_params"] = list(parameters)
    if thinking is not None and routed:
        body["reasoning"] = {"max_tokens": thinking["budget_tokens"]}
    if body:
        parameters["extra_body"] = copy.deepcopy(body)
    points = [
        {"location": "message", "index": place - 1, "control": control} for place, control in marks.items() if place
    ]
    if points and takes_marks(resolved):
        parameters["cache_control_injection_points"] = points
    return parameters


def takes_marks(resolved: Resolved) -> bool:
    """Returns whether the provider caches what a request marks, and only that."""
    return resolved.provider.id == "anthropic" or resolved.litellm_name.startswith("openrouter/anthropic/")


def marked(request: Request) -> dict[int, dict[str, str]]:
    """The marks of a request by how many messages are in front of them, each as Anthropic takes it."""
    given = request.parameters.get(PARAMETER)
    marks = LIVE_MARKS if given is None else Marks.from_json(given)
    control = {"type": "ephemeral"} | ({"ttl": "1h"} if marks.ttl == "1h" else {})
    return {place: dict(control) for place in places(request, marks)}


_OWN_ROUTES = ("anthropic/", "bedrock/")
"""Providers for which litellm drops ``extra_body``: their further parameters are passed by name."""


def placed(parameters: Mapping[str, Any], litellm_name: str, owned: Callable[[str], bool]) -> dict[str, Any]:
    """The parameters as litellm passes them on to this provider. ``owned`` says which names are arguments of litellm.

    Raises ValueError for a parameter that could not get through.
    """
    if "extra_body" not in parameters or not litellm_name.startswith(_OWN_ROUTES):
        return dict(parameters)
    body = parameters["extra_body"]
    if taken := next(filter(owned, body), ""):
        raise ValueError(f"the parameter '{taken}' cannot be sent to this provider: litellm takes it for itself")
    return {name: value for name, value in parameters.items() if name != "extra_body"} | dict(body)
