"""The cost of a watched program's calls under another strategy, beside what is sent: by call and in sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.context.place import Place
from workbench.dollars import money
from workbench.engine.journal.event import Event
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.model import Rows
from workbench.views.numbers import count

CALL, TOKENS, COST, CHANGE = 16, 10, 11, 7
"""Cells of the columns."""


class WhatIfRows(Rows):
    """One row a call, in the order in which they were asked for. All figures are of the input, and predicted."""

    empty = (
        "No strategy is priced beside this run.",
        "workbench attach --what-if 'mask(after=5)' -- COMMAND prices one while the program runs.",
    )

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._run, self._read = "", 0

    def absorb(self, run_id: str, events: Sequence[Event]) -> None:
        """Take what came since; everything of another run."""
        if run_id != self._run or len(events) < self._read:
            self._events, self._run, self._read = [], run_id, 0
        for index in range(self._read, len(events)):
            if events[index].kind == "what_if":
                self._events.append(events[index])
        self._read = len(events)

    def __len__(self) -> int:
        return len(self._events)

    @property
    def calls(self) -> Sequence[Place]:
        """The calls."""
        return [event.place for event in self._events]

    @property
    def sums(self) -> tuple[Span, ...]:
        """All calls so far: ``mask(after=5)  ~$0.0012 instead of ~$0.0051 (-76%)``."""
        if not self._events:
            return ()
        data = self._events[-1].data
        cost = f"  {money(data['all_cost'])} instead of {money(data['all_sent_cost'])} "
        return (flat(data["strategy"], 40), "name"), (cost, "plain"), _change(data["all_cost"], data["all_sent_cost"])

    def heads(self, width: int) -> Sequence[Row]:
        if not self._events:
            return ()
        data, names = self._events[-1].data, ("would send", "sends", "would cost", "costs", "change")
        sizes = (TOKENS, TOKENS, COST, COST, CHANGE)
        cells = [(fit(name, size, "right") + " ", "head") for name, size in zip(names, sizes, strict=True)]
        whole = {"tokens": data["all_tokens"], "sent_tokens": data["all_sent_tokens"]}
        costs = {"cost": data["all_cost"], "sent_cost": data["all_sent_cost"]}
        return (
            Row(crop(((" " + fit("call", CALL), "head"), *cells), width)),
            Row(crop(((" " + fit("all calls", CALL), "bold"), *_cells(whole | costs)), width)),
        )

    def row(self, index: int, width: int) -> Row:
        event = self._events[index]
        place, data = event.place, event.data
        name = f"{place.phase}#{place.visit}:{place.turn}"
        wrong: tuple[Span, ...] = ()
        if data.get("invalid"):
            wrong = ((f"  not valid: {flat(str(data['invalid']))}", "warning"),)
        cached = f"  {count(data['cached'], 'estimate')} cached" if data.get("cached") else ""
        return Row(crop(((" " + fit(name, CALL), "plain"), *_cells(data), (cached, "dim"), *wrong), width))


def _cells(data: Mapping[str, Any]) -> tuple[Span, ...]:
    """The columns of numbers, of one call or of all."""
    tokens = (count(int(data[name] or 0), "estimate") for name in ("tokens", "sent_tokens"))
    costs = (money(data[name]) for name in ("cost", "sent_cost"))
    change, token = _change(data["cost"], data["sent_cost"])
    return (
        *((fit(text, TOKENS, "right") + " ", "plain") for text in tokens),
        *((fit(text, COST, "right") + " ", "plain") for text in costs),
        (fit(change.strip("()"), CHANGE, "right"), token),
    )


def _change(other: float | None, sent: float | None) -> Span:
    """Returns how much more or less the strategy costs, in percent of what is sent: green saves, orange costs."""
    if other is None or not sent:
        return "", "dim"
    share = round(100 * (other - sent) / sent)
    return f"({share:+d}%)" if share else "(0%)", "ok" if share < 0 else "warning" if share > 0 else "dim"
