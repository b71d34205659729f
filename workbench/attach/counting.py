"""Requests for a number of tokens, answered where no provider is asked: by the workbench's own count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.attach.replies import error_body
from workbench.attach.traffic import Ask, Made
from workbench.context.message import Message
from workbench.context.tokens import Counter
from workbench.importers.conversation import Remarks, Unreadable
from workbench.importers.exchanges import Exchanges
from workbench.importers.values import mapping

COUNTS = ("/count_tokens", ":countTokens")
"""How the paths of such requests end: Anthropic's and Gemini's."""


def request_to_count(body: Any) -> Mapping[str, Any]:
    """The request whose tokens are asked for; Gemini may have it one level down."""
    return mapping(mapping(body).get("generateContentRequest")) or mapping(body)


def counted(ask: Ask, counter: Counter) -> Made:
    """The number of tokens of a request, as its provider would say it; pictures count nothing."""
    try:
        asked = Exchanges(Remarks()).asked(request_to_count(ask.body), ask.path)
    except Unreadable as fault:
        return Made(400, "application/json", error_body(f"the request cannot be read: {fault}"), "workbench")
    assert asked is not None, "the proxy hands on requests with messages only"
    model = asked.model
    tokens = counter.overhead(model) + counter.tools(asked.tools, model)[0]
    for one in asked.input:
        message = Message(one.role, one.text, tuple(one.calls), one.call_id, one.name)
        tokens += counter.message(message, model)[0]
    key = "totalTokens" if ask.path.endswith(":countTokens") else "input_tokens"
    return Made(200, "application/json", json.dumps({key: tokens}).encode(), "offline")
