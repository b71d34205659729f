"""The suffix of a model name that sets its reasoning effort: ``o3::high``, ``claude-sonnet-4::medium(2000)``."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

OFFLINE = "offline"
"""The model whose answers are scripted replies, and its provider: none is asked."""

_SUFFIX = re.compile(r"^(?P<name>.+?)::(?P<effort>[A-Za-z]+)(?:\((?P<tokens>\d+)\))?$")


def split_effort(name: str) -> tuple[str, dict[str, Any]]:
    """The bare model name, and the request parameters that the suffix stands for (tokens: the thinking budget)."""
    match = _SUFFIX.match(name)
    if match is None:
        return name, {}
    parameters: dict[str, Any] = {"reasoning_effort": match["effort"].lower()}
    if match["tokens"]:
        parameters["thinking"] = {"type": "enabled", "budget_tokens": int(match["tokens"])}
    return match["name"], parameters


def unescaped(name: str) -> str:
    """The name as its provider writes it: addresses escape it (``...-v1%3A0``)."""
    return unquote(name) if "%" in name else name
