"""Tokens, money and calls of runs. All sums of them are computed here.

``CallFigures`` (``parts.py``) are those of one answered call; ``Figures`` those of many, of a run, or of a run with the
runs that it started. ``RunState`` makes them from what it folded; ``FiguresFold`` from the events alone, without a
context, for lists of runs and for the run that started another one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from math import isnan, nan
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Grade
from workbench.context.place import Place
from workbench.context.remembered import remember
from workbench.engine.journal.costs import CallCost, CostSum, Embeddings, PredictedCost
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallFigures, CallState, expected_of
from workbench.engine.journal.usage import StatedUsage


def ended_tools(calls: Iterable[CallState]) -> int:
    """The number of tools of some calls that have ended, well or not."""
    return sum(tool.status in ("done", "failed") for call in calls for tool in call.tools)


class Figures(Struct, frozen=True):
    """Tokens, money and calls of a part of a run, of a run, or of several. ``+`` adds two.

    What a recording answered counts in the run that asked for it. Here it is said apart, in the numbers that begin with
    ``recorded``, so that calls, tokens and money are always of the same calls.
    """

    calls: int = 0
    """That a provider answered."""
    recorded: int = 0
    """Answered from a recording, and no part of ``calls``."""
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
    recorded_tokens_in: int = 0
    recorded_grade_in: Grade = Grade.EXACT
    recorded_tokens_out: int = 0

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
        calls = list(calls)
        made = [call for call in calls if not call.cost.recorded]
        kept = [call for call in calls if call.cost.recorded]
        stated = stated if stated is not None and not kept else StatedUsage()
        measured = [call.tokens_in for call in made if call.measured]
        return cls(
            len(made),
            len(kept),
            tools,
            stated.tokens_in(measured, sum(call.tokens_in for call in made)),
            Grade.EXACT if stated.covers(measured) else Grade.of_sum(call.grade_in for call in made),
            stated.tokens_out(call.tokens_out for call in made),
            CostSum.sum((call.cost for call in calls), Embeddings.of(embedded)).as_stated(stated.cost),
            recorded_tokens_in=sum(call.tokens_in for call in kept),
            recorded_grade_in=Grade.of_sum(call.grade_in for call in kept),
            recorded_tokens_out=sum(call.tokens_out or 0 for call in kept),
        )

    @classmethod
    def of(cls, calls: Iterable[CallState]) -> Figures:
        """Of calls, as far as they were answered, and their tools."""
        known = list(calls)
        return cls.sum((one for call in known for one in call.figures), tools=ended_tools(known))

    @classmethod
    def from_json(cls, body: object) -> Figures | None:
        """The inverse of ``to_json``; None for invalid data, which a journal may hold.

        Journals of before counted recorded answers among the calls and tokens, and older ones among the cost. Where all
        calls were recorded, that was all of it; where some were, the parts are unknown, and so is the whole: None.
        """
        try:
            read = msgspec.convert(body, cls)
        except msgspec.ValidationError:
            return None
        spent = read.spent
        if spent.predicted and not _says(body, "halves"):  # It was of the input alone.
            spent = replace(spent, halves=max(spent.unbilled - spent.unknown, 0))
            read = replace(read, spent=spent)
        if not read.recorded or (isinstance(body, Mapping) and "recorded_tokens_in" in body):
            return read
        if read.recorded < read.calls or (spent.embedded and not _says(body, "recorded")):
            return None
        if not _says(body, "recorded"):
            exact, calls = spent.exact and not spent.unknown, spent.calls
            spent = CostSum(recorded=spent.total or 0.0, recorded_exact=exact, recorded_calls=calls)
        return replace(
            read,
            calls=0,
            tokens_in=0,
            grade_in=Grade.EXACT,
            tokens_out=0,
            spent=spent,
            recorded_tokens_in=read.tokens_in,
            recorded_grade_in=read.grade_in,
            recorded_tokens_out=read.tokens_out,
        )

    def to_json(self) -> dict[str, Any]:
        """By name; money in US dollars. What a recording answered is named where it answered anything."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        if not self.spent.predicted:
            del found["spent"]["halves"]
        if not self.recorded:
            for name in ("recorded_tokens_in", "recorded_grade_in", "recorded_tokens_out"):
                del found[name]
            if not self.spent.recorded:
                for name in ("recorded", "recorded_exact", "recorded_calls"):
                    del found["spent"][name]
        return found

    def brief(self) -> dict[str, Any]:
        """Calls, tokens and US dollars by name; None for an unknown number."""
        return {
            "calls": self.calls,
            "tokens_in": self.tokens_in,
            "tokens_out": self.told_out,
            "cost": self.cost,
            "predicted_cost": self.spent.predicted or None,
            "recorded_calls": self.recorded or None,
            "recorded_tokens_in": self.recorded_tokens_in or None,
            "recorded_tokens_out": self.recorded_tokens_out or None,
            "recorded_cost": self.spent.recorded or None,
        }

    @property
    def worth(self) -> Figures:
        """The same as if the recorded answers had been asked for: what this work takes, whoever was billed."""
        return replace(
            self,
            calls=self.answers,
            recorded=0,
            tokens_in=self.tokens_in + self.recorded_tokens_in,
            grade_in=Grade.of_sum((self.grade_in, self.recorded_grade_in)),
            tokens_out=self.tokens_out + self.recorded_tokens_out,
            spent=self.spent.worth,
            recorded_tokens_in=0,
            recorded_grade_in=Grade.EXACT,
            recorded_tokens_out=0,
        )

    @property
    def answers(self) -> int:
        """Calls that were answered, by a provider or a recording."""
        return self.calls + self.recorded

    @property
    def recorded_told_out(self) -> int | None:
        """Tokens of the recorded answers; None if there are some and none states its tokens."""
        return self.recorded_tokens_out or (None if self.recorded else 0)

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
        """US dollars billed to this run; None if no part of it has a bill."""
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
            self.recorded_tokens_in + other.recorded_tokens_in,
            Grade.of_sum((self.recorded_grade_in, other.recorded_grade_in)),
            self.recorded_tokens_out + other.recorded_tokens_out,
        )


def _says(body: object, name: str) -> bool:
    spent = body.get("spent") if isinstance(body, Mapping) else None
    return isinstance(spent, Mapping) and name in spent


class ChildFigures(Struct):
    """Figures of the runs that a run started, with those inside them, as far as the journal of the run says."""

    ended: dict[str, Figures] = {}
    """By run id."""
    open: dict[str, None] = {}
    """Ids of the runs that have not ended, or whose end does not state their figures."""
    by_session: dict[str, str] = {}
    """Their ids, by session."""
    is_resumed: bool = False

    def take(self, event: Event) -> None:
        """The next event. A run that is started in the place of another one takes nothing from its figures. In journals
        of before a run that was cut off was run anew, with the answers that it had been billed for, and only its end
        named it: it counts instead of the first one."""
        self.is_resumed = self.is_resumed or event.kind == "run_resumed"
        if event.kind not in ("child_started", "child_finished"):
            return
        run_id, session = str(event.data.get("run_id", "")), str(event.data.get("session_id", ""))
        before = self.by_session.get(session, run_id)
        if isinstance(replaced := event.data.get("replaces"), Mapping):
            self._took(str(replaced.get("run_id", "")), replaced.get("took"))
        elif self.is_resumed and session and before != run_id:
            self.ended.pop(before, None)
            self.open.pop(before, None)
        self.by_session[session] = run_id
        self._took(run_id, event.data.get("took") if event.kind == "child_finished" else None)

    def _took(self, run_id: str, body: object) -> None:
        took = Figures.from_json(body) if body is not None else None
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


MOST_OPEN = 2_000
"""Calls of one run that may wait for their answers at a time."""


class _Expected(NamedTuple):
    """What was predicted of a call. Costs in US dollars, None if unknown."""

    tokens: int = 0
    grade: str = Grade.EXACT
    cost: float | None = None
    """Of its input."""
    output_price: float | None = None
    """Of one token of its output."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> _Expected:
        """From ``context_assembled`` data."""
        grade = str(data.get("grade") or Grade.EXACT)
        cost, price = (data.get("forecast") or {}).get("cost"), (data.get("price") or {}).get("output")
        return cls(expected_of(data), grade, cost, price)


class FiguresFold:
    """The figures of a run from its events, without their bodies."""

    def __init__(self) -> None:
        self.children = ChildFigures({}, {}, {})
        self.tools = 0
        self._expected: dict[Place, _Expected] = {}
        """What was predicted of the newest calls."""
        self._calls: list[CallFigures] = []
        self._places, self._digests = array("q"), array("q")
        """Hashes of the place and of the request of each call, for costs that arrive later. A run may have many."""
        self._of_input, self._output_prices = array("d"), array("d")
        """US dollars for the input of each call, as predicted, and for a token of its output; NaN if unknown."""
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
                remember(self._expected, event.place, _Expected.of(data), MOST_OPEN)
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
        return Figures.sum(self._calls, tools=self.tools, embedded=self._embedded, stated=self._stated)

    @property
    def whole(self) -> Figures:
        """With them."""
        return self.own + self.children.figures()

    def _answered(self, event: Event) -> None:
        data, place = event.data, event.place
        usage = data.get("usage") or {}
        expected = self._expected.get(place, _Expected())
        told, grade = usage.get("input"), Grade.of_sum((expected.grade,))
        recorded = bool(data.get("recorded", False))
        predicted = PredictedCost.of(expected.cost, usage.get("output"), expected.output_price)
        cost = CallCost(data.get("cost"), data.get("cost_grade", "unknown"), predicted.cost, recorded, predicted.whole)
        self._of_input.append(nan if expected.cost is None else expected.cost)
        self._output_prices.append(nan if expected.output_price is None else expected.output_price)
        self._places.append(hash(place))
        self._digests.append(hash(data.get("digest", "")))
        self._calls.append(
            CallFigures(
                expected.tokens if told is None else told,
                grade if told is None else Grade.EXACT,
                usage.get("output"),
                cost,
                told is not None,
            )
        )

    def _late(self, place: Place, data: Mapping[str, Any]) -> None:
        """A late price or usage belongs to the call at its place; if none is named, to the first call of that request
        without a price.
        """
        digest, billed = hash(data.get("digest", "")), data.get("cost")
        at = next((i for i in range(len(self._calls) - 1, -1, -1) if self._places[i] == hash(place)), None)
        if at is None:
            same = (i for i, known in enumerate(self._digests) if known == digest)
            at = next((i for i in same if self._calls[i].cost.billed is None), None)
        if at is None:
            return
        call, usage = self._calls[at], data.get("usage") or {}
        if billed is not None:
            call = call._replace(cost=call.cost._replace(billed=billed, grade=data.get("cost_grade", "billed")))
        if usage.get("input") is not None:
            call = call._replace(tokens_in=usage["input"], grade_in=Grade.EXACT, measured=True)
        if usage.get("output") is not None:
            of_input, price = (None if isnan(one[at]) else one[at] for one in (self._of_input, self._output_prices))
            predicted = PredictedCost.of(of_input, usage["output"], price)
            cost = call.cost._replace(predicted=predicted.cost, whole=predicted.whole)
            call = call._replace(tokens_out=usage["output"], cost=cost)
        self._calls[at] = call
