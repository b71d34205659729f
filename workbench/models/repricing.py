"""Prices for a what-if: from a file of the user's own, or as if another provider had answered."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import yaml
from msgspec.structs import replace

from workbench.context.cache import Price, Prices
from workbench.models.cache_rules import RULES, maker
from workbench.models.families import bare_name
from workbench.models.prices import PriceTable
from workbench.models.providers import BY_ID, by_prefix, named

FIELDS = ("input", "output", "cache_read", "cache_write")


class PricesError(ValueError):
    """A file of prices, or a provider, that cannot be used; the message says why."""


class OtherProviderPrices:
    """Implements ``Prices``: a run priced as if another provider had answered it.

    ``provider`` is an id, whose cache rule then holds for every model at the model's own prices, or the name of a model
    with its provider, ``anthropic/claude-sonnet-4.5``, whose rule and prices hold. Raises PricesError for others.
    """

    def __init__(self, table: PriceTable, provider: str) -> None:
        name, slash, model = provider.partition("/")
        known = by_prefix(name) or (named(name) if table.sells(name) else None)
        if known is None:
            near = [f"did you mean '{one}{slash}{model}'?" for one in difflib.get_close_matches(name, BY_ID, 1, 0.75)]
            raise PricesError(
                f"no provider is called '{name}' ({''.join(near) or 'known: ' + ', '.join(sorted(BY_ID))})"
            )
        rule = RULES.get(known.id)
        if "/" not in provider and rule is None:
            raise PricesError(f"no cache rule is known for '{provider}' (known for: {', '.join(sorted(RULES))})")
        if "/" in provider and table.price(provider).input is None:
            guess = table.nearest(provider)
            hint = f" (did you mean '{provider.partition('/')[0]}/{guess}'?)" if guess else ""
            raise PricesError(f"no price is known for '{provider}'{hint}")
        self._table = table
        self._provider = provider
        self._rule = rule

    def window(self, model: str) -> int | None:
        return self._table.window(self.counted_as(model))

    def counted_as(self, model: str) -> str:
        """The model whose prices replace those of the run's model, if its tokens are counted differently."""
        if "/" not in self._provider or bare_name(self._provider) == bare_name(model):
            return model
        return self._provider

    def price(self, model: str, input_tokens: int = 0) -> Price:
        """Never raises: an unknown price is None."""
        if "/" in self._provider:
            return replace(self._table.price(self._provider, input_tokens), grade="estimate")
        price = self._table.price(model, input_tokens)
        assert self._rule is not None
        if maker(model) == self._rule.provider:
            return price
        source = f"{price.source}, cached as by {self._rule.provider}" if price.source else ""
        grade = "estimate" if price.grade == "exact" else price.grade
        return replace(price, rule=self._rule, grade=grade, source=source, supposed=True)


class LastingCachePrices:
    """Implements ``Prices``: the same, with a cache that keeps prefixes for a given time."""

    def __init__(self, prices: Prices, seconds: float) -> None:
        """``seconds``: since the last use, in place of what providers and marks say."""
        self._prices = prices
        self._seconds = seconds

    def price(self, model: str, input_tokens: int = 0) -> Price:
        price = self._prices.price(model, input_tokens)
        rule, stated = (replace(each, lifetime=self._seconds, given=True) for each in (price.rule, price.stated_rule))
        return replace(price, rule=rule, stated_rule=stated)

    def window(self, model: str) -> int | None:
        return self._prices.window(model)

    def counted_as(self, model: str) -> str:
        return self._prices.counted_as(model)


def read_prices(text: str) -> dict[str, Mapping[str, float]]:
    """Prices by model from YAML or JSON: input, output, cache_read, cache_write in US dollars per million tokens.

    A missing number is unknown. Raises PricesError, with line and column if possible.
    """
    try:
        data = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark
        where = f"{mark.line + 1}:{mark.column + 1}: " if mark else ""
        raise PricesError(f"{where}not valid YAML: {fault.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as fault:  # A date that there is not is a ValueError.
        raise PricesError(f"not valid YAML: {fault}") from None
    if not isinstance(data, dict) or not data:
        raise PricesError("prices are a mapping of models to input, output, cache_read, cache_write")
    return {str(model): _checked(str(model), prices) for model, prices in data.items()}


def _checked(model: str, prices: Any) -> Mapping[str, float]:
    if not isinstance(prices, dict):
        raise PricesError(f"the prices of '{model}' are not a mapping of {', '.join(FIELDS)}")
    for name, value in prices.items():
        if name not in FIELDS:
            raise PricesError(f"'{model}' has no price '{name}' (known: {', '.join(FIELDS)})")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise PricesError(f"'{model}': {name} must be US dollars per million tokens, got {value!r}")
    return {str(name): float(value) for name, value in prices.items()}
