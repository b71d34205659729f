"""Token counts as the different sources name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from workbench.engine.journal.usage import Usage, whole_output
from workbench.importers.values import array, count, mapping, string

_INPUT = (
    "prompt_tokens",
    "input_tokens",
    "inputTokens",
    "promptTokens",
    "input",
    "prompt",
    "prompt_token_count",
    "promptTokenCount",
    "prompt_eval_count",
    "total_input_tokens",
    "input_token_count",
    "inputTextTokenCount",
    "num_tokens_prompt_total",
    "request_tokens",
)
_OUTPUT = (
    "completion_tokens",
    "output_tokens",
    "outputTokens",
    "completionTokens",
    "output",
    "completion",
    "candidates_token_count",
    "candidatesTokenCount",
    "eval_count",
    "total_output_tokens",
    "generation_token_count",
    "generated_token_count",
    "num_tokens_generated",
    "response_tokens",
)
_CACHED = (
    "cache_read_input_tokens",
    "input_tokens_cache_read",
    "cacheReadInputTokens",
    "cacheReadTokens",
    "cachedInputTokens",
    "cache_read_tokens",
    "prompt_details.cache_read",
    "input_cached_tokens",
    "cached_input_tokens",
    "input_cache_read",
    "cache_read",
    "cacheReads",
    "cacheRead",
    "cached_content_token_count",
    "cachedContentTokenCount",
    "prompt_cache_hit_tokens",
    "cached_prompt_text_tokens",
    "total_cached_tokens",
)
_WRITTEN = (
    "cache_creation_input_tokens",
    "input_tokens_cache_write",
    "cacheWriteInputTokens",
    "cacheCreationInputTokens",
    "cacheWriteTokens",
    "cache_write_tokens",
    "prompt_details.cache_write",
    "input_cache_creation",
    "input_cache_write",
    "cache_creation",
    "cacheWrites",
    "cacheWrite",
)
_REASONING = (
    "reasoning_tokens",
    "reasoningTokens",
    "completion_details.reasoning",
    "output_reasoning_tokens",
    "output_reasoning",
    "reasoning",
    "thoughts_token_count",
    "thoughtsTokenCount",
    "total_thought_tokens",
)
_THOUGHTS = ("thoughts_token_count", "thoughtsTokenCount", "total_thought_tokens")
"""Gemini's, which its count of candidates leaves out."""
_TOTAL = ("total_tokens", "totalTokens", "total", "total_token_count", "totalTokenCount")
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens")
"""Anthropic's and Bedrock's names of token counts that their input excludes."""
_INCLUDING = ("prompt_tokens", "request_tokens", "input_tokens_details", "input_token_details", "details")
"""Names that gateways and frameworks write, whose input includes these tokens, even beside Anthropic's names."""
_DETAILS = (
    "prompt_tokens_details",
    "input_tokens_details",
    "input_token_details",
    "completion_tokens_details",
    "output_tokens_details",
    "output_token_details",
    "prompt_token_details",
    "completion_token_details",
    "details",
    "completionDetails",
    "tokens",
)


def usage_of(body: object, *, beside: bool | None = None) -> Usage:
    """The counts of a usage object in any of the known spellings.

    ``beside``: its input leaves out cached and written tokens; they are added, because ``Usage.input`` includes them.
    None: told by the names, Anthropic's own say so. Where a total shows that they were left out, or they are more than
    the input, they are added anyway.
    """
    outer = mapping(body)
    flat = _flat(outer)
    # Cohere's model sees more tokens than it bills: what Cohere adds costs nothing ("How does Cohere pricing work?").
    if billed := mapping(outer.get("billed_units")):
        return Usage(_first(billed, _INPUT), _first(billed, _OUTPUT))
    if rounds := [usage_of(one) for one in array(outer.get("iterations")) if mapping(one).get("type") == "compaction"]:
        # Anthropic's own counts leave out what it summed up before it answered ("Compaction", section on usage).
        rounds.append(usage_of({key: value for key, value in outer.items() if key != "iterations"}))
        return sum_of(rounds)
    given, output = _first(flat, _INPUT), _first(flat, _OUTPUT)
    if "promptTokenCount" in outer:
        flat = {"cachedContentTokenCount": 0, **flat}  # Google's JSON leaves out numbers that are 0.
    lifetimes = _by_lifetime(flat)
    cached, written = _first(flat, (*_CACHED, "cached_tokens")), _first(flat, _WRITTEN)
    if not written and lifetimes:
        written = sum(lifetimes.values())
    extra, total = (cached or 0) + (written or 0), _first(flat, _TOTAL)
    if beside is None:
        beside = any(name in outer for name in _BESIDE) and not any(name in outer for name in _INCLUDING)
    if extra and given is not None and output is not None:
        beside = beside or total == given + output + extra
    including = any(name in outer for name in _INCLUDING)
    beside = beside or (given is not None and extra > given and not (including and (cached or 0) <= given))
    if not beside and given is not None and written is not None:
        written = min(written, given - min(cached or 0, given))  # Gateways state tokens as read and written at once.
    if not given and not output and not extra:
        return Usage()  # A call has an input: sources that know no numbers write 0.
    thoughts, reasoning = _first(flat, _THOUGHTS), _first(flat, _REASONING)
    if output is not None and thoughts is not None:
        output += thoughts
    return Usage(
        input=given + extra if given is not None and beside else given,
        output=whole_output(given, output, reasoning, total),
        cached=cached,
        written=written,
        reasoning=reasoning,
        written_hour=lifetimes.get("1h") or None,
    )


def sum_of(usages: Sequence[Usage]) -> Usage:
    """The sum of the counts that are known, count by count."""
    return Usage(*(_sum(getattr(one, name) for one in usages) for name in Usage.__struct_fields__))


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


def fuller(told: Usage, reported: Usage) -> Usage:
    """Of two counts of the same call the one with cached tokens, and what it lacks from the other; the first if both or
    neither have them."""
    if told.input is None and told.output is None:
        return reported
    if told.cached is None and told.written is None and (reported.cached is not None or reported.written is not None):
        lacks = {name: getattr(told, name) for name in _KNOWN_TO_BOTH if getattr(reported, name) is None}
        return replace(reported, **lacks)
    return told


_KNOWN_TO_BOTH = ("input", "output", "reasoning")


def _by_lifetime(flat: Mapping[str, Any]) -> dict[str, int]:
    """Tokens written to the cache by how long it keeps them (``5m``, ``1h``), in the forms of Anthropic and Bedrock."""
    told = [
        (name.removeprefix("ephemeral_").partition("_")[0], number)
        for name, number in mapping(flat.get("cache_creation")).items()
    ]
    details = map(mapping, array(flat.get("cacheDetails")))
    told += [(string(one.get("ttl")), one.get("inputTokens")) for one in details]
    return {name: found for name, number in told if (found := count(number)) is not None}


def _flat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its details laid into it; its own keys win."""
    flat: dict[str, Any] = {}
    for name in _DETAILS:
        flat |= mapping(body.get(name))
    return flat | dict(body)


def _first(flat: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := count(flat.get(name))) is not None), None)
