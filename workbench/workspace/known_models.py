"""Models that a person may choose from: those that the cascade and the settings name, then those of the price map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from workbench.context.cache import Price
from workbench.engine.model_name import OFFLINE
from workbench.models.prices import PriceTable
from workbench.workspace.model_choice import choose_model, environment_of
from workbench.workspace.model_ports import prices_of
from workbench.workspace.project import Project


class KnownModel(Struct, frozen=True):
    """A name that can be written for a model, and what it costs."""

    name: str
    price: Price
    """Prices of a short request, in US dollars per token; unknown numbers are None."""


def price_line(price: Price) -> str:
    """``$0.40 in, $1.60 out per million tokens``; ``price unknown`` if neither is known."""
    parts = ((price.input, "in"), (price.output, "out"))
    said = [f"${value * 1e6:,.4g} {word}" for value, word in parts if value is not None]
    return f"{', '.join(said)} per million tokens" if said else "price unknown"


class KnownModels:
    """Looks names up. The price map is read at the first look (20 ms), from any thread."""

    def __init__(self, project: Project, file: Path | None, named: Iterable[str] = ()) -> None:
        """``named``: names to offer first, as those that a run used."""
        choice = choose_model(project, None, file)
        self._prices: PriceTable = prices_of(project, choice, environment_of(project, file))
        own = (*named, choice.default_model, *project.settings.prices)
        self._first = tuple(dict.fromkeys(name for name in own if name and name != OFFLINE))

    def matching(self, text: str, most: int = 40) -> Sequence[KnownModel]:
        """Names that hold every word of a text, the workspace's own first."""
        words = text.casefold().split()
        names = (*self._first, *(name for name in self._prices.chat_models() if name not in self._first))
        found = [name for name in names if all(word in name.casefold() for word in words)]
        return [KnownModel(name, self._prices.price(name)) for name in found[:most]]

    def is_known(self, name: str) -> bool:
        """Returns whether the workspace or the price map knows a name."""
        return name in self._first or name == OFFLINE or self._prices.listed(name)

    def near(self, name: str) -> Sequence[str]:
        """Known names that are like one that is not."""
        return self._prices.near(name)
