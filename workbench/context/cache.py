"""What a call will cost: the prefix the provider can reuse, and the money. By the rules of context.md 6."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CacheRule:
    """How a provider caches prompts."""

    provider: str
    minimum: int
    """Tokens below which nothing is cached."""
    step: int = 1
    """A cached prefix is a multiple of this many tokens; 1 means message boundaries."""
    lifetime: float = 300.0
    """Seconds a prefix stays without being read."""
    writes: bool = False
    """Whether writing to the cache is billed (Anthropic)."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per token. None is unknown, never free."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    source: str = ""
    """Where the numbers come from: ``litellm map, as gpt-4o``, ``settings``."""
    grade: str = "unknown"
    """``exact`` (the very model), ``estimate`` (mapped to the native model), ``unknown``."""
    rule: CacheRule = CacheRule("none", 0)


class Prices(Protocol):
    """Prices and cache rules by model name."""

    def price(self, model: str) -> Price:
        """Never raises: an unknown model has a Price whose numbers are None."""
        ...


@dataclass(frozen=True, slots=True)
class Forecast:
    """The predicted input side of one call."""

    cached: int
    """Tokens the provider can take from its cache."""
    fresh: int
    written: int
    """Tokens billed as cache writes."""
    cost: float | None
    """US dollars for the input; None when a price is unknown."""
    break_at: int
    """Index of the first sent message outside the reusable prefix; the number of messages if all is inside."""
    reason: str = ""
    """Why the prefix ends there, in words."""
