"""Token counts as the different sources name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.engine.usage import Usage
from workbench.importers.values import count, mapping

_INPUT = ("prompt_tokens", "input_tokens", "inputTokens", "input", "prompt_token_count")
_OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "output", "candidates_token_count")
_CACHED = (
    "cache_read_input_tokens",
    "input_tokens_cache_read",
    "cacheReadTokens",
    "cache_read_tokens",
    "prompt_details.cache_read",
    "cache_read",
    "cached_content_token_count",
    "prompt_cache_hit_tokens",
)
_WRITTEN = (
    "cache_creation_input_tokens",
    "input_tokens_cache_write",
    "cacheWriteTokens",
    "cache_write_tokens",
    "prompt_details.cache_write",
    "cache_creation",
)
_REASONING = ("reasoning_tokens", "completion_details.reasoning", "reasoning", "thoughts_token_count")
_TOTAL = ("total_tokens", "totalTokens", "total", "total_token_count")
_DETAILS = (
    "prompt_tokens_details",
    "input_tokens_details",
    "input_token_details",
    "completion_tokens_details",
    "output_tokens_details",
    "output_token_details",
)


def usage_of(body: object, *, beside: bool = False) -> Usage:
    """The counts of a usage object in any of the known spellings.

    ``beside``: its input leaves out cached and written tokens (Anthropic counts so); they are added, because
    ``Usage.input`` includes them. Where a total shows that they were left out, they are added anyway.
    """
    flat = _flat(mapping(body))
    given, output = _first(flat, _INPUT), _first(flat, _OUTPUT)
    cached, written = _first(flat, (*_CACHED, "cached_tokens")), _first(flat, _WRITTEN)
    extra, total = (cached or 0) + (written or 0), _first(flat, _TOTAL)
    beside = beside or (bool(extra) and None not in (given, output) and total == (given or 0) + (output or 0) + extra)
    return Usage(
        input=given + extra if given is not None and beside else given,
        output=output,
        cached=cached,
        written=written,
        reasoning=_first(flat, _REASONING),
    )


def _flat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its details laid into it; its own keys win."""
    flat: dict[str, Any] = {}
    for name in _DETAILS:
        flat |= mapping(body.get(name))
    return flat | dict(body)


def _first(flat: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := count(flat.get(name))) is not None), None)
