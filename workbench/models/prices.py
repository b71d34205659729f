"""Prices, cache rules and limits of models, from the map that ships with litellm and from the user's own prices.

The map has no entry for OpenRouter's names, and a zero in it means that no price was entered. Such names are mapped to
the provider's own model and graded an estimate; unknown prices are None.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from workbench.context.cache import Price
from workbench.engine.journal.costs import stated_input_cost
from workbench.engine.journal.usage import Usage
from workbench.engine.model_name import split_effort, unescaped
from workbench.models.bundled import parsed_in_pieces, price_map
from workbench.models.cache_rules import rule_for, stated_rule
from workbench.models.families import bare_name
from workbench.models.providers import Provider, split

MILLION = 1_000_000
_BEYOND = "input_cost_per_token_above_"
_THRESHOLD = re.compile(rf"{_BEYOND}(\d+)k_tokens")
_EDITION = re.compile(r"(?:-v\d+)?(?:@.*)?$")
"""End of a name at Bedrock and at Vertex AI."""
_DATE = re.compile(r"-(?:20\d{6}|\d{3}|latest|0)$")
"""End of a name that pins an edition, or asks for the newest."""
_REGION = re.compile(r"/[a-z]{2}(?:-gov)?-[a-z]+-\d/")
"""In a key of a price that holds in one region alone."""
_FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "cache_write_hour": "cache_creation_input_token_cost_above_1hr",
}


class Entry(NamedTuple):
    """A model of the map."""

    key: str
    facts: Mapping[str, Any]
    provider: Provider | None
    """The model's maker; None if its name does not tell."""
    own: bool
    """Whether the entry is that provider's, not one of a reseller."""


def answered_by(name: str) -> str:
    """The provider that a name alone suggests: OpenRouter if the prefix has its form."""
    provider, _ = split(name)
    if provider is None:
        return ""
    prefix, slash, _ = name.partition("/")
    return provider.id if not slash or prefix == provider.id else "openrouter"


class PriceTable:
    """Implements ``Prices``. The file is read at the first question (20 ms), from any thread.

    ``overrides`` are the user's prices: model to input, output, cache_read, cache_write in US dollars per million
    tokens. ``via`` tells which provider answers a name (``Resolved.provider.id``, or nothing for a server of unknown
    prices): the map's numbers are exact only when that is the provider they belong to.
    """

    def __init__(
        self,
        overrides: Mapping[str, Mapping[str, float]] | None = None,
        via: Callable[[str], str] = answered_by,
        file: Path | None = None,
    ) -> None:
        self._overrides = overrides or {}
        self._via = via
        self._file = file
        self._lock = threading.Lock()
        self._map: Mapping[str, Mapping[str, Any]] | None = None
        self._found: dict[str, Entry | None] = {}
        """By model name."""
        self._flat: dict[str, Price] = {}
        """Prices that hold for requests of any length: each call asks twice."""
        self._sellers: Mapping[str, str] | None = None
        """Keys of the map by the model's name as its maker writes it; made when it is needed."""
        self.problem = ""
        """Why the map could not be read: then every price is unknown."""

    def price(self, model: str, input_tokens: int = 0) -> Price:
        """Prices per token. ``input_tokens``: some models cost more beyond a length of the request."""
        known = self._flat.get(model)
        if known is not None:
            return known
        price = self._priced(model, input_tokens)
        if price.rule.provider == "none":
            price = replace(price, stated_rule=stated_rule(model))
        entry = self._entry(split_effort(model)[0])
        if entry is None or not (_thresholds(entry.facts) or "tiered_pricing" in entry.facts):
            self._flat[model] = price
        return price

    def _priced(self, model: str, input_tokens: int) -> Price:
        name, _ = split_effort(model)
        entry = self._entry(name)
        rule = rule_for(name, entry.facts if entry else None)
        if (own := self._overrides.get(name) or self._overrides.get(model)) is not None:
            numbers: dict[str, Any] = {field: own[field] / MILLION if field in own else None for field in _FIELDS}
            if own.get("cache_read") is not None:
                rule = rule_for(name, entry.facts if entry else None, priced=True)
            return replace(Price(source="settings", grade="exact", rule=rule), **numbers)
        if entry is None:
            return Price(rule=rule)
        longer_than = [tokens for tokens in _thresholds(entry.facts) if input_tokens > tokens]
        numbers = {field: _number(entry.facts, key, input_tokens, longer_than) for field, key in _FIELDS.items()}
        if numbers["input"] is None and numbers["output"] is None:
            return Price(rule=rule)
        exact = entry.own and entry.provider is not None and self._via(name) == entry.provider.id and ":" not in name
        grade = "exact" if exact else "estimate"
        return replace(Price(source=f"litellm map, as {entry.key}", grade=grade, rule=rule), **numbers)

    def window(self, model: str) -> int | None:
        """Input tokens that the model takes, by the map."""
        entry = self._entry(split_effort(model)[0])
        stated = entry.facts.get("max_input_tokens") if entry else None
        return stated if isinstance(stated, int) and stated > 0 else None

    def counted_as(self, model: str) -> str:
        return model

    def known(self, model: str) -> bool:
        """Returns whether input and output have a price."""
        price = self.price(model)
        return price.input is not None and price.output is not None

    def nearest(self, model: str) -> str:
        """The name in the map most similar to the last part of this one; empty if none is."""
        names = {key.rpartition("/")[2] for key in self._loaded()}
        return next(iter(difflib.get_close_matches(model.rpartition("/")[2], names, 1, 0.75)), "")

    def near(self, model: str, number: int = 3) -> list[str]:
        """Names of the same provider that are most like this one, the nearest first, spelt as this one is."""
        provider, slash, name = model.rpartition("/")
        entries = self._loaded()
        own = {key.rpartition("/")[2] for key, facts in entries.items() if facts.get("litellm_provider") == provider}
        names = own or {key.rpartition("/")[2] for key in entries}
        return [f"{provider}{slash}{one}" for one in difflib.get_close_matches(name, sorted(names), number, 0.75)]

    def listed(self, model: str) -> bool:
        """Returns whether the map has an entry for the model."""
        return self._entry(split_effort(model)[0]) is not None

    def chat_models(self) -> list[str]:
        """Names of models of the map that answer messages: makers' own first, then sellers', the plainest first."""
        found: dict[str, bool] = {}
        for key, facts in self._loaded().items():
            if facts.get("mode") in ("chat", "responses"):
                provider, model = split(key)
                found[f"{provider.id}/{model}" if provider is not None else key] = provider is not None
        return sorted(found, key=lambda name: (not found[name], name.count("/"), len(name), name))

    def sells(self, provider: str) -> bool:
        """Returns whether the map has models of a provider."""
        return any(facts.get("litellm_provider") == provider for facts in self._loaded().values())

    def supports_tools(self, model: str) -> bool | None:
        """Returns whether the model takes native tools; None if the map does not say."""
        entry = self._entry(split_effort(model)[0])
        stated = entry.facts.get("supports_function_calling") if entry else None
        return stated if isinstance(stated, bool) else None

    def cached_from(self, model: str) -> int | None:
        """Tokens from which a provider caches a marked prefix; 0 if it ignores marks; None if the map does not know the
        model.
        """
        if not self.listed(model):
            return None
        rule = self.price(model).rule
        return rule.minimum if rule.opt_in else 0

    def _entry(self, name: str) -> Entry | None:
        if name not in self._found:
            table = self._loaded()
            known = (Entry(k, table[k], provider, own) for k, provider, own in _candidates(name) if k in table)
            self._found[name] = next(known, None) or self._sold(name)
        return self._found[name]

    def _sold(self, name: str) -> Entry | None:
        """A reseller's entry for a model that its maker's own list has no more, since it is retired there."""
        plain = unescaped(name).removeprefix("litellm_proxy/").removeprefix("openrouter/")
        provider, model = split(plain)
        if provider is None and ("/" not in plain or plain.startswith(("arn:", "vertex_ai/"))):
            provider, model = split(bare_name(plain))  # An id of Bedrock, or a model that Vertex AI sells.
        if provider is None or not provider.families or name.endswith(":free"):
            return None
        if self._sellers is None:
            table = self._loaded()
            self._sellers = _bundled_sellers() if self._file is None and table else _sellers(table)
        bare = _EDITION.sub("", bare_name(model))
        key = self._sellers.get(bare) or self._sellers.get(_DATE.sub("", bare), "")
        return Entry(key, self._loaded()[key], provider, False) if key else None

    def _loaded(self) -> Mapping[str, Mapping[str, Any]]:
        if self._map is None:
            with self._lock:
                if self._map is None:
                    self._map = self._read()
        return self._map

    def _read(self) -> Mapping[str, Mapping[str, Any]]:
        try:
            if self._file is None:
                return price_map()
            table = parsed_in_pieces(self._file.read_text("utf-8"))
        except (OSError, ValueError) as fault:
            self.problem = f"the price map cannot be read: {fault}"
            return {}
        table.pop("sample_spec", None)
        return table


@cache
def _bundled_sellers() -> Mapping[str, str]:
    """Those of the map of every process, once: 30 ms."""
    return _sellers(price_map())


def _sellers(table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, str]:
    """The key of a reseller's entry by the bare name of its model."""
    cached = _FIELDS["cache_read"]
    priced = [key for key, facts in table.items() if facts.get(_FIELDS["input"]) and not _REGION.search(key)]
    order = sorted(priced, key=lambda key: (not table[key].get(cached), key.count("."), len(key)), reverse=True)
    found = {_EDITION.sub("", bare_name(key)): key for key in order}
    for known, key in list(found.items()):
        if table[key].get(cached):  # Without it, cached tokens would cost what fresh ones do.
            found.setdefault(_DATE.sub("", known), key)
    return found


def _candidates(name: str) -> Iterator[tuple[str, Provider | None, bool]]:
    """Keys of the map that may stand for a model, the surest first, with the other fields of an Entry."""
    bare = unescaped(name).removeprefix("litellm_proxy/").removeprefix("openrouter/")
    if bare.endswith(":free"):
        return
    if ":" in bare:
        yield bare.removeprefix("bedrock/"), None, True  # An id of Bedrock, whose end belongs to the name.
    bare = bare.partition(":")[0] if "/" in bare and not bare.startswith("ollama") else bare
    provider, model = split(bare)
    if provider is None:
        yield bare, None, True
        if bare.startswith("vertex_ai/"):  # The map has Google's models at Vertex AI without the name of the seller.
            yield bare.removeprefix("vertex_ai/"), None, True
        return
    yield f"{provider.id}/{model}", provider, True
    yield model, provider, True
    yield f"{provider.id}/{model}-latest", provider, True
    if provider.id == "gemini":
        yield f"vertex_ai/{model}", provider, False
    prefix, slash, rest = bare.partition("/")
    for spelling in dict.fromkeys((f"{provider.id}/{rest if slash else bare}", f"{prefix}/{rest}")):
        yield f"vercel_ai_gateway/{spelling}", provider, False


def _thresholds(facts: Mapping[str, Any]) -> list[int]:
    """Input tokens beyond which other prices hold, the most first."""
    found = (_THRESHOLD.fullmatch(fact) for fact in facts if fact.startswith(_BEYOND))
    return sorted((int(match[1]) * 1000 for match in found if match), reverse=True)


def _number(facts: Mapping[str, Any], key: str, input_tokens: int, longer_than: Iterable[int]) -> float | None:
    """The price at a length of the request, which is beyond the thresholds ``longer_than``; None for an entry that is
    missing or zero."""
    for threshold in longer_than:
        if longer := facts.get(f"{key}_above_{threshold // 1000}k_tokens"):
            return float(longer)
    for tier in facts.get("tiered_pricing", ()):
        low, high = tier.get("range", (0, 0))
        if low <= input_tokens < high and tier.get(key):
            return float(tier[key])
    value = facts.get(key)
    return float(value) if isinstance(value, int | float) and value > 0 else None


def cost(usage: Usage, price: Price) -> float | None:
    """US dollars: fresh·p + cached·p_read + written·p_write + output·p_out.

    None when input, output or a needed price is unknown. Cached or written tokens without a price of their own cost as
    much as fresh ones; output includes reasoning.
    """
    taken = stated_input_cost(usage, price)
    if taken is None or usage.output is None or price.output is None:
        return None
    return taken + usage.output * price.output
