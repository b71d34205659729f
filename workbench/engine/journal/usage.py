"""The token counts that a provider reports. In a module of its own, so that a journal can be read without loading the
language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict


class Usage(Struct, frozen=True):
    """Tokens that the provider counted. None is unknown, never 0. ``input`` includes cached and written tokens."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    written: int | None = None
    reasoning: int | None = None
    written_hour: int | None = None
    """Of ``written``: tokens that are kept for an hour, which Anthropic bills higher."""

    def to_json(self) -> dict[str, int | None]:
        """As a journal holds it: without the tokens kept for an hour where nothing is said of them."""
        counts = asdict(self)
        if self.written_hour is None:
            del counts["written_hour"]
        return counts


def whole_output(given: int | None, output: int | None, reasoning: int | None, total: int | None) -> int | None:
    """The output of a call with its reasoning, which some providers (xAI's Chat Completions, gateways) count beside it:
    told by the total, or by more reasoning than there is output.
    """
    if not reasoning or output is None:
        return output
    beside = reasoning > output or (given is not None and total == given + output + reasoning)
    return output + reasoning if beside else output


class StatedUsage(Struct, frozen=True):
    """Figures that an imported file states of the whole run, used if none of its calls states them. None is unknown."""

    usage: Usage = Usage()
    cost: float | None = None
    """US dollars."""
    calls: int | None = None
    """How many calls of a model it counts."""

    @classmethod
    def of(cls, imported: Mapping[str, Any]) -> StatedUsage:
        """From ``run_started.imported``; nonsense counts as unknown."""
        said = imported.get("stated")
        told = said if isinstance(said, Mapping) else {}
        usage = Usage(*(_whole(told.get(name)) for name in ("input", "output", "cached", "written", "reasoning")))
        cost = told.get("cost")
        known = isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0
        return cls(usage, cost if known else None, _whole(told.get("calls")))

    def to_json(self) -> dict[str, Any]:
        """The known numbers alone."""
        usage = self.usage
        named: dict[str, float | None] = {"input": usage.input, "output": usage.output, "cached": usage.cached}
        named |= {"written": usage.written, "reasoning": usage.reasoning, "cost": self.cost, "calls": self.calls}
        return {name: value for name, value in named.items() if value is not None}

    def tokens_in(self, measured: Iterable[int | None], summed: int) -> int:
        """Tokens of all requests: ``summed`` over the calls, or as stated if no call of the run was measured."""
        said = self.usage.input
        return summed if said is None or any(one is not None for one in measured) else said

    def covers(self, measured: Iterable[int | None]) -> bool:
        """Returns whether ``tokens_in`` is what the file states of the whole run."""
        return self.usage.input is not None and all(one is None for one in measured)

    def tokens_out(self, said: Iterable[int | None]) -> int:
        """Tokens of all answers: the sum of the calls that state them, or as stated if none does."""
        return sum(one or 0 for one in said) or self.usage.output or 0


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
