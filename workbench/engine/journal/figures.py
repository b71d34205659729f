"""Tokens, money and calls of runs. All sums of them are computed here.

``CallFigures`` (``parts.py``) are those of one answered call; ``Figures`` those of many, of a run, or of a run with the
runs that it started. ``RunState`` makes them from what it folded; ``FiguresFold`` from the events alone, without a
context, for lists of runs and for the run that started another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from workbench.context.assembly import Grade
from workbench.context.place import Place
from workbench.engine.journal.costs import CallCost, CostSum, Embeddings
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallFigures, CallState, expected_of
from workbench.engine.journal.usage import StatedUsage


class Figures(Struct, frozen=True):
    """Tokens, money and calls of a part of a run, of a run, or of several. ``+`` adds two."""

    calls: int = 0
    """That were answered."""
    recorded: int = 0
    """Of these, answered from a recording."""
    tools: int = 0
    """Calls of tools that have ended."""
    tokens_in: int = 0
    grade_in: Grade = Grade.EXACT
    tokens_out: int = 0
    """Tokens of the answers for which the provider states them."""
    spent: CostSum = CostSum()
    runs: int = 0
    """Runs inside others that are in these numbers."""
    missing: int = 0
    """Runs inside others that are not included, because their figures are unknown."""

    @classmethod
    def sum(
        cls,
        calls: Iterable[CallFigures],
        *,
        tools: int = 0,
        embedded: Iterable[Mapping[str, Any]] = (),
        stated: StatedUsage | None = None,
    ) -> Figures:
        """Of answered calls and of ``embedded`` data. If no call states a number that the file of an imported run
        states of the whole run, the file's number counts.
        """
        calls, stated = list(calls), stated or StatedUsage()
        measured = [call.tokens_in for call in calls if call.measured]
        return cls(
            len(calls),
            sum(call.recorded for call in calls),
            tools,
            stated.tokens_in(measured, sum(call.tokens_in for call in calls)),
            Grade.EXACT if stated.covers(measured) else Grade.of_sum(call.grade_in for call in calls),
            stated.tokens_out(call.tokens_out for call in calls),
            CostSum.sum((call.cost for call in calls), Embeddings.of(embedded)).as_stated(stated.cost),
        )

    @classmethod
    def of(cls, calls: Iterable[CallState]) -> Figures:
        """Of calls, as far as they were answered, and their tools."""
        known = list(calls)
        tools = sum(tool.status in ("done", "failed") for call in known for tool in call.tools)
        return cls.sum((one for call in known for one in call.figures), tools=tools)

    @classmethod
    def from_json(cls, body: object) -> Figures | None:
        """The inverse of ``to_json``; None for invalid data, which a journal may hold."""
        try:
            return msgspec.convert(body, cls)
        except msgspec.ValidationError:
            return None

    def to_json(self) -> dict[str, Any]:
        """By name; money in US dollars."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def brief(self) -> dict[str, Any]:
        """Calls, tokens and US dollars by name; None for an unknown number."""
        return {
            "calls": self.calls,
            "tokens_in": self.tokens_in,
            "tokens_out": self.told_out,
            "cost": self.cost,
            "predicted_cost": self.spent.predicted or None,
        }

    @property
    def told_out(self) -> int | None:
        """Tokens of the answers; None if there are answers and no provider stated their tokens."""
        return self.tokens_out or (None if self.calls else 0)

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.tokens_in + self.tokens_out

    @property
    def cost(self) -> float | None:
        """US dollars billed; None if no part of it has a bill."""
        spent = self.spent
        return None if spent.unbilled and spent.unbilled == spent.calls + spent.embedded else spent.billed

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.calls + other.calls,
            self.recorded + other.recorded,
            self.tools + other.tools,
            self.tokens_in + other.tokens_in,
            Grade.of_sum((self.grade_in, other.grade_in)),
            self.tokens_out + other.tokens_out,
            self.spent + other.spent,
            self.runs + other.runs,
            self.missing + other.missing,
        )


class ChildFigures(Struct):
    """Figures of the runs that a run started, with those inside them, as far as the journal of the run says."""

    ended: dict[str, Figures] = {}
    """By run id."""
    open: dict[str, None] = {}
    """Ids of the runs that have not ended, or whose end does not state their figures."""

    def take(self, event: Event) -> None:
        """The next event."""
        if event.kind not in ("child_started", "child_finished"):
            return
        run_id = str(event.data.get("run_id", ""))
        took = Figures.from_json(event.data.get("took")) if event.kind == "child_finished" else None
        if took is not None:
            self.ended[run_id] = took
            self.open.pop(run_id, None)
        elif run_id not in self.ended:
            self.open[run_id] = None

    def figures(self, known: Mapping[str, Figures] | None = None, of: Iterable[str] | None = None) -> Figures:
        """The sum. ``known`` gives the figures of runs whose end does not state them; ``of`` picks some by
        their ids.
        """
        total, picked = Figures(), None if of is None else set(of)
        for run_id in (*self.ended, *self.open):
            if picked is not None and run_id not in picked:
                continue
            took = self.ended.get(run_id) or (known or {}).get(run_id)
            total += Figures(missing=1) if took is None else took + Figures(runs=1)
        return total


class FiguresFold:
    """The figures of a run from its events, without their bodies."""

    def __init__(self) -> None:
        self.children = ChildFigures({}, {})
        self.tools = 0
        self._sent: dict[Place, int] = {}
        self._grades: dict[Place, str] = {}
        self._forecasts: dict[Place, float | None] = {}
        self._calls: dict[str, CallFigures] = {}
        """By request digest and sequence number, for costs that arrive later."""
        self._at: dict[Place, str] = {}
        """Keys of ``_calls`` by the place of the call; of several at one place (a resumed run), the last."""
        self._embedded: list[Mapping[str, Any]] = []
        """The figures of each embedding, without its vectors."""
        self._stated = StatedUsage()

    def take(self, event: Event) -> None:
        """The next event, repeats left out. Raises TypeError, ValueError or AttributeError for nonsense."""
        data = event.data
        self.children.take(event)
        match event.kind:
            case "run_started":
                self._stated = StatedUsage.of(data.get("imported") or {})
            case "context_assembled":
                self._sent[event.place] = expected_of(data)
                self._grades[event.place] = str(data.get("grade") or Grade.EXACT)
                self._forecasts[event.place] = (data.get("forecast") or {}).get("cost")
            case "call_finished":
                self._answered(event)
            case "cost_known":
                self._late(event.place, data)
            case "tool_finished":
                self.tools += 1
                if embedded := data.get("embedded"):
                    self._embedded.append(embedded)
            case "embedded":
                self._embedded.append({key: value for key, value in data.items() if key != "vectors"})

    @property
    def own(self) -> Figures:
        """Without the runs that it started."""
        return Figures.sum(self._calls.values(), tools=self.tools, embedded=self._embedded, stated=self._stated)

    @property
    def whole(self) -> Figures:
        """With them."""
        return self.own + self.children.figures()

    def _answered(self, event: Event) -> None:
        data, place = event.data, event.place
        usage = data.get("usage") or {}
        told, grade = usage.get("input"), Grade.of_sum((self._grades.get(place, Grade.EXACT),))
        cost = CallCost(data.get("cost"), data.get("cost_grade", "unknown"), self._forecasts.get(place))
        key = f"{data.get('digest', '')} {event.seq}"
        self._at[place] = key
        self._calls[key] = CallFigures(
            self._sent.get(place, 0) if told is None else told,
            grade if told is None else Grade.EXACT,
            usage.get("output"),
            cost,
            told is not None,
            bool(data.get("recorded", False)),
        )

    def _late(self, place: Place, data: Mapping[str, Any]) -> None:
        """A late price or usage belongs to the call at its place; if none is named, to the first call of that request
        without a price.
        """
        digest, billed = data.get("digest", ""), data.get("cost")
        waiting = (k for k, call in self._calls.items() if call.cost.billed is None and k.partition(" ")[0] == digest)
        key = self._at.get(place) or next(waiting, None)
        if key is None:
            return
        call, usage = self._calls[key], data.get("usage") or {}
        if billed is not None:
            call = call._replace(cost=CallCost(billed, data.get("cost_grade", "billed"), call.cost.predicted))
        if usage.get("input") is not None:
            call = call._replace(tokens_in=usage["input"], grade_in=Grade.EXACT, measured=True)
        if usage.get("output") is not None:
            call = call._replace(tokens_out=usage["output"])
        self._calls[key] = call
