"""A run as a waterfall: its model calls, tools, child runs, questions to people and pauses, on one axis of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Any, Literal

from msgspec import Struct
from rich.cells import cell_len

from workbench.context.place import Place
from workbench.engine.journal.elapsed import Stretches
from workbench.engine.journal.figures import Figures
from workbench.engine.journal.parts import CallState, ToolState, VisitState
from workbench.engine.journal.state import RunState
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.children import child_name
from workbench.views.model import Rows
from workbench.views.numbers import LEAST_OVERHEAD, call_cost, call_time, count, seconds, took_words
from workbench.views.signs import status_cell, status_sign
from workbench.views.text import wrapped
from workbench.views.value import BLANK, Block, Cell, Column, Table, View

Kind = Literal["call", "tool", "child", "person", "pause", "idle"]

PAUSE = 0.25
"""Seconds in which no call and no tool ran from which on a stretch has a bar of its own."""
TAIL = 64
"""Bars at the end that are made again whenever something happens."""
QUIET: frozenset[Kind] = frozenset(("person", "pause", "idle"))
"""Kinds without a status."""
TOKENS: Mapping[str, str] = {
    "call": "time-call",
    "tool": "time-tool",
    "child": "time-child",
    "person": "time-person",
    "pause": "time-person",
    "idle": "time-pause",
}
"""The tokens of the visual language that the bars of each kind have."""
FILLS: Mapping[str, str] = {"call": "█", "tool": "▒", "child": "▬", "person": "▚", "pause": "‖", "idle": "┈"}
"""The characters of the bars, so that kinds differ without colour."""


_GAPS: Mapping[Kind, str] = {"pause": "paused", "idle": "no call or tool"}


class Clock:
    """Turns times of events into seconds of a run, without the stretches in which it was stopped."""

    def __init__(self) -> None:
        self._zero: datetime | None = None
        self._gaps: list[tuple[datetime, float]] = []
        self._known = 0

    def begin(self, time: str) -> None:
        """Sets the moment of second 0."""
        self._zero = _moment(time)

    def learn(self, run: RunState) -> None:
        """Take over the gaps that a run has had so far."""
        for start, end in run.gaps[self._known :]:
            first, last = _moment(start), _moment(end)
            if first is not None and last is not None:
                self._gaps.append((first, (last - first).total_seconds()))
        self._known = len(run.gaps)

    def at(self, time: str) -> float | None:
        """Seconds since second 0; None for an invalid time."""
        moment = _moment(time)
        if moment is None or self._zero is None:
            return None
        passed = (moment - self._zero).total_seconds()
        for start, length in self._gaps:
            if moment > start:
                passed -= min(length, (moment - start).total_seconds())
        return max(passed, 0.0)


def _moment(time: str) -> datetime | None:
    try:
        return datetime.fromisoformat(time) if time else None
    except ValueError:
        return None


class Bar(Struct, frozen=True):
    """One stretch of time. ``end`` is None while it is open; times are seconds of the run."""

    kind: Kind
    start: float
    end: float | None
    label: str
    place: Place = Place()
    run: str = ""
    """The child run that it belongs to; empty for the run itself."""
    status: str = "done"
    call: CallState | None = None
    """Of a model call: what its tokens and its cost are read from when it is drawn."""
    nested: int = 0
    """How deep: 1 for what a child run did."""
    ready: float | None = None
    """Of a call: when its request was assembled, which the gate shows before it is sent."""
    took: float | None = None
    """Of a call and a tool: its duration as everything says it. The bar of a call holds failed tries, too."""

    @property
    def key(self) -> tuple[object, ...]:
        """The key that tells it apart from all others."""
        return self.kind, self.run, self.place, self.label, self.start

    @property
    def seconds(self) -> float | None:
        """Duration; None while it is open."""
        if self.end is None or self.took is not None:
            return self.took
        return self.end - self.start


class Timeline:
    """The bars of a run and of its children in the order in which they began, and the axis that they are drawn on: the
    time in which a call, a tool or a child ran. ``update`` looks only at what can still change, so that an event of a
    run of thousands of calls costs no more than one of a short run."""

    def __init__(self) -> None:
        self.bars: list[Bar] = []
        self.end = 0.0
        """Seconds at the newest event."""
        self.children: Mapping[str, RunState] = {}
        """The child runs that are known, by run id."""
        self._run: RunState | None = None
        self._clock = Clock()
        self._first = ""
        """The time of second 0."""
        self._settled = 0
        """Number of bars that are over, with none to come before them."""
        self._busy = 0.0
        """Until when they ran."""
        self._calls: dict[str, int] = {}
        """By run: how many of its first calls have all of their bars among them."""
        self._seen: set[tuple[object, ...]] = set()
        """Keys of the settled bars."""
        self._spent: tuple[object, str] = (None, "")
        """Where the time went, and of what bars that was found."""
        self._still: list[tuple[float, float, float]] = []
        """Stretches in which nothing ran, in order: from, to, and the seconds of all before."""

    @classmethod
    def of(cls, run: RunState, children: Mapping[str, RunState] | None = None) -> Timeline:
        """The timeline of a run as it is now; ``children`` by run id."""
        made = cls()
        made.absorb(run, children or {})
        return made

    @property
    def paused(self) -> float:
        """Seconds for which the run was paused, as its journal says; an old journal does not."""
        return self._run.paused if self._run is not None else 0.0

    @property
    def took(self) -> float | None:
        """Seconds of the run without pauses; None while it runs."""
        return self._run.seconds if self._run is not None else None

    @property
    def repeats(self) -> bool:
        """Whether it begins with the recorded past of a fork or a re-run, which is no time of the run."""
        return self._run is not None and "imported" not in self._run.ports and self._first < self._run.started

    @property
    def recorded(self) -> float:
        """Seconds of the axis that are of the recording."""
        began = self.seconds_at(self._run.started) if self._run is not None and self.repeats else None
        return 0.0 if began is None else self.axis(began)

    @property
    def spent(self) -> str:
        """Where the time of the run went, which adds up to it: ``4.7s busy + 2.9s idle``; before it what is recorded,
        which is no part of it. Empty while it runs."""
        run, took = self._run, self.took
        if run is None or took is None:
            return ""
        known = (len(self.bars), self.end, took)
        if self._spent[0] != known:
            ran, first = Stretches(), self.seconds_at(run.started) or 0.0
            for bar in self.bars:
                if bar.kind not in QUIET and bar.status != "recorded":
                    ran.add(max(bar.start, first), self.end if bar.end is None else bar.end)
            waited = run.waited
            busy = min(ran.seconds, max(took - waited, 0.0))
            parts = ((busy, "busy"), (waited, "waiting for you"), (took - waited - busy, "idle"))
            shown = [f"{seconds(value)} {name}" for value, name in parts if value >= LEAST_OVERHEAD]
            words = " + ".join(shown) or seconds(took)
            before = f"{seconds(self.recorded)} recorded, then " if self.repeats else ""
            self._spent = known, before + words
        return self._spent[1]

    def seconds_at(self, time: str) -> float | None:
        """The second of the run at which an event happened."""
        return self._clock.at(time)

    def axis(self, second: float) -> float:
        """The same without the time in which nothing ran: its position on the axis."""
        at = bisect_right(self._still, (second, inf, inf)) - 1
        if at < 0:
            return second
        start, end, before = self._still[at]
        return second - before - (min(second, end) - start)

    def absorb(self, run: RunState, children: Mapping[str, RunState]) -> None:
        """Take what happened since the last time; another run begins anew."""
        first = min((time for time in (run.started, *_firsts(run)) if time), default="")
        if run is not self._run or first < self._first:
            self._begin(run)
            self._first = first
            self._clock.begin(first)
        self.children = children
        self._clock.learn(run)
        times = [one.last_at for one in (run, *children.values())]
        if run.last_at < run.started:  # It repeats a recording: how long that lies back is known when something is new.
            times = [time for time in times if time < run.started]
        self.end = max(self.end, *(self._clock.at(time) or 0.0 for time in times))
        over = run.status != "running"
        found: list[Bar] = []
        for key, state in (("", run), *children.items()):
            for call in state.calls[self._calls.get(key, 0) :]:
                found += self._of_call(key, state, call, over=over)
            found += self._of_visits(key, state, over=over)
        found = [bar for bar in found if bar.key not in self._seen]
        found.sort(key=lambda bar: bar.start)
        del self.bars[self._settled :]
        while self._still and self._still[-1][1] > self._busy:
            self._still.pop()
        self.bars += self._with_pauses(found)
        self._settle({"": run, **children})

    def _begin(self, run: RunState) -> None:
        self.bars, self._seen, self._calls, self._still = [], set(), {}, []
        self.end, self._busy, self._settled = 0.0, 0.0, 0
        self._run, self._clock = run, Clock()

    def _with_pauses(self, found: Iterable[Bar]) -> Iterator[Bar]:
        """The bars, and before each that began after nothing had run for a while what was then: a pause at the gate,
        which lies between a request and its sending or an answer and its tools, or the engine's own work."""
        busy = self._busy
        for bar in found:
            ready = bar.ready if bar.kind == "call" else None if bar.kind == "tool" else bar.start
            ready = busy if ready is None else min(max(ready, busy), bar.start)
            gaps: tuple[tuple[Kind, float, float], ...] = (("idle", busy, ready), ("pause", ready, bar.start))
            for kind, start, end in gaps:
                if end - start >= PAUSE:
                    self._stand_still(start, end)
                    yield Bar(kind, start, end, _GAPS[kind], bar.place, bar.run, nested=bar.nested)
            yield bar
            until = self.end if bar.end is None else bar.end
            if bar.kind == "person" and until > max(busy, bar.start):
                self._stand_still(max(busy, bar.start), until)
            busy = max(busy, until)

    def _stand_still(self, start: float, end: float) -> None:
        before = self._still[-1][2] + self._still[-1][1] - self._still[-1][0] if self._still else 0.0
        self._still.append((start, end, before))

    def _settle(self, runs: Mapping[str, RunState]) -> None:
        """Leave alone from now on what is over: the bars at the front up to the first that can still change."""
        newest = {(key, call.place.branch): call.place for key, run in runs.items() for call in run.calls[-TAIL:]}
        while self._settled < len(self.bars) - TAIL:
            bar = self.bars[self._settled]
            # The newest call of a branch may be sent again.
            if bar.end is None or (bar.kind == "call" and newest.get((bar.run, bar.place.branch)) == bar.place):
                break
            if bar.kind not in ("pause", "idle"):
                self._seen.add(bar.key)
            self._settled += 1
            self._busy = max(self._busy, bar.end)
        for key, run in runs.items():
            known = self._calls.get(key, 0)
            # The next call of a branch comes when the tools of the one before are over.
            while known < len(run.calls) and newest.get((key, run.calls[known].place.branch)) != run.calls[known].place:
                if any(bar.key not in self._seen for bar in self._of_call(key, run, run.calls[known], over=False)):
                    break
                known += 1
            self._calls[key] = known

    def _of_call(self, key: str, run: RunState, call: CallState, *, over: bool) -> Iterator[Bar]:
        at, nested = self._clock.at, int(bool(key))
        begun, ended = at(call.started or call.finished), at(call.finished)
        if begun is not None:
            if ended is not None and call.duration_s and not call.recorded:
                # A call made beside the run is journaled when its answer is wanted, after it was made.
                begun = max(0.0, min(begun, ended - call.duration_s))
            status = "recorded" if call.recorded else call.status
            end = ended if ended is not None else self.end if over else None
            took = call.duration_s if call.finished else None
            yield Bar("call", begun, end, "", call.place, key, status, call, nested, at(call.first_at), took)
        yield from self._of_tools(key, run, call.tools, over=over)

    def _of_tools(self, key: str, run: RunState, tools: Iterable[ToolState], *, over: bool) -> Iterator[Bar]:
        for tool in tools:
            # What ended before the run began is of the recording.
            recorded = tool.status == "done" and tool.finished < run.started
            begun, ended = self._clock.at(tool.started), self._clock.at(tool.finished)
            if begun is not None:
                end = ended if ended is not None else self.end if over else None
                status = "recorded" if recorded else tool.status
                took = tool.duration_s if tool.finished else None
                yield Bar("tool", begun, end, tool.tool, tool.place, key, status, nested=int(bool(key)), took=took)

    def _of_visits(self, key: str, run: RunState, *, over: bool) -> Iterator[Bar]:
        """Yields the bars that no model call holds: tools of phases without a model, child runs, questions to
        people."""
        at, nested = self._clock.at, int(bool(key))
        for visit in run.visits:
            yield from self._of_tools(key, run, visit.tool_tries, over=over)
            for child in visit.children:
                yield from self._of_child(key, visit, child, over=over)
        for wait in run.people:
            asked, answered = at(wait.asked), at(wait.answered)
            if asked is not None:
                end = answered if answered is not None else self.end if over else None
                yield Bar("person", asked, end, wait.question, wait.place, key, nested=nested)

    def _of_child(self, key: str, visit: VisitState, child: Mapping[str, Any], *, over: bool) -> Iterator[Bar]:
        run_id = str(child.get("run_id", ""))
        times = visit.child_times.get(run_id)
        begun = self._clock.at(times[0]) if times is not None else None
        if times is not None and begun is not None:
            ended = self._clock.at(times[1])
            end = ended if ended is not None else self.end if over else None
            label, status = str(child.get("session_id", "")), str(child.get("status", "running"))
            place = Place(visit.branch, visit.phase, visit.visit)
            yield Bar("child", begun, end, label, place, run_id, status, nested=int(bool(key)))


def _firsts(run: RunState) -> Iterator[str]:
    """When the first things of a run happened: the recorded past of a fork is older than its start."""
    yield from (visit.started for visit in run.visits[:1])
    yield from (call.at for call in run.calls[:1])


def place_words(place: Place) -> str:
    """``triage:3``, with the branch and the visit if there are several."""
    name = place.phase_words + (f"#{place.visit}" if place.visit > 1 else "")
    return f"{name}:{place.turn}" if place.turn else name


def words_of(bar: Bar, children: Mapping[str, RunState]) -> str:
    """Describes a bar, in words; ``children`` by run id."""
    if bar.kind == "call" and bar.call is not None:
        return bar.call.words
    if bar.kind == "child":
        return f"↳ {child_name(children.get(bar.run), bar.label)}"
    return f"you: {bar.label}" if bar.kind == "person" else bar.label


def drawn(bar: Bar, timeline: Timeline, width: int) -> tuple[Span, ...]:
    """The bar in this many cells of the axis; at least one of them is filled."""
    end = None if bar.end is None else timeline.axis(bar.end)
    last = timeline.axis(timeline.end)
    return placed(timeline.axis(bar.start), end, 0.0, last, width, FILLS[bar.kind], TOKENS[bar.kind])


def placed(
    start: float, end: float | None, first: float, last: float, width: int, fill: str, token: str
) -> tuple[Span, ...]:
    """A stretch of the time from ``first`` to ``last`` in this many cells; an open one reaches to the end."""
    scale = width / (last - first) if last > first else 0.0
    begin = max(0, min(int((start - first) * scale), width - 1))
    until = width if end is None else max(begin + 1, min(round((end - first) * scale), width))
    return ((" " * begin, "plain"), (fill * (until - begin), token), (" " * (width - until), "plain"))


WHAT, AT, TOOK, SIZE, COST = 30, 9, 9, 9, 13
"""Cells of the columns."""


class TimelineRows(Rows):
    """The bars as a list; each row is laid out when it is drawn."""

    empty = ("No calls or tools yet.",)
    spreads = True

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def __len__(self) -> int:
        return len(self.timeline.bars)

    def heads(self, width: int) -> Sequence[Row]:
        if not len(self):
            return ()
        what, columns = _widths(width)
        names = {"at": AT, "time": TOOK, "tokens": SIZE, "cost": COST}
        cells = [(fit(name, names[name], "right"), "head") for name in columns]
        end, room = self.timeline.spent, width - what - 4 - sum(names[name] for name in columns)
        if not end or len(end) + 3 >= room:
            end = seconds(self.timeline.axis(self.timeline.end))
        axis = _axis(end, room)
        return (Row(crop(((" " + fit("what", what + 2), "head"), *cells, ("  ", "head"), (axis, "head")), width)),)

    def row(self, index: int, width: int) -> Row:
        return self._row(index, width, self._label(index))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """A question or a name that its column cuts goes on below the row."""
        label, (what, _), indent = self._label(index), _widths(width), self._indent(index)
        if cell_len(label) <= what - len(indent):
            return ()
        (first, *_) = wrapped(((label, "plain"),), max(8, what - len(indent)))
        begun = "".join(text for text, _ in first)
        rest = wrapped(((label[len(begun) :].strip(), "dim"),), max(12, width - len(indent) - 6))
        return self._row(index, width, begun), *(Row(((f"{indent}{'':5}", "plain"), *line)) for line in rest)

    def _label(self, index: int) -> str:
        return flat(words_of(self.timeline.bars[index], self.timeline.children), 200)

    def _indent(self, index: int) -> str:
        bar = self.timeline.bars[index]
        return "  " * bar.nested + ("  " if bar.kind == "tool" else "")

    def _row(self, index: int, width: int, name: str) -> Row:
        bar = self.timeline.bars[index]
        what, columns = _widths(width)
        numbers = numbers_of(bar)
        names = {"at": AT, "time": TOOK, "tokens": SIZE, "cost": COST}
        cells = [(fit(numbers[name], names[name], "right"), "dim" if name != "cost" else "plain") for name in columns]
        mark = status_sign(bar.status) if bar.kind not in QUIET else (" ", "plain")
        indent = self._indent(index)
        label = indent + fit(name, max(4, what - len(indent)))
        left: list[Span] = [(" ", "plain"), mark, (" ", "plain"), (label, "dim" if bar.kind in QUIET else "plain")]
        room = width - what - 5 - sum(names[name] for name in columns)
        lines = drawn(bar, self.timeline, room) if room > 0 else ()
        return Row(crop((*left, *cells, ("  ", "plain"), *lines), width))

    def index_of(self, place: Place, run: str) -> int | None:
        """The row of a call."""
        found = (
            i for i, bar in enumerate(self.timeline.bars) if bar.kind == "call" and (bar.place, bar.run) == (place, run)
        )
        return next(found, None)


def _widths(width: int) -> tuple[int, tuple[str, ...]]:
    """Cells of the first column, and the columns of numbers that there is room for."""
    for what, names in ((WHAT, ("at", "time", "tokens", "cost")), (WHAT - 6, ("at", "time", "cost")), (18, ("time",))):
        if width - what - 5 - 9 * len(names) >= 20:
            return what, names
    return max(8, width - 24), ()


def _axis(last: str, width: int) -> str:
    """The two ends of the axis of time."""
    return f"0{last:>{width - 2}}" if width > len(last) + 3 else ""


def numbers_of(bar: Bar) -> dict[str, str]:
    """The numbers of a bar in the common format; missing ones are empty."""
    texts = {"at": f"+{seconds(bar.start)}" if bar.start >= 0.0005 else "0", "time": "", "tokens": "", "cost": ""}
    texts["time"] = call_time(bar.seconds, recorded=bar.status == "recorded") if bar.seconds is not None else ""
    if bar.call is not None:
        texts["tokens"] = count(bar.call.tokens_in, bar.call.grade_in)
        texts["cost"] = call_cost(Figures.of([bar.call]).spent)
    return texts


class TimelineView(View):
    """The same for a person who reads it, and for a program."""

    CELLS = 40
    """Of the bars in print."""

    def __init__(self, run: RunState, children: Mapping[str, RunState] | None = None) -> None:
        self.run = run
        self.timeline = Timeline.of(run, children)

    def blocks(self) -> Iterator[Block]:
        line = self.timeline
        took = self.run.elapsed.seconds if self.run.seconds is None else self.run.seconds
        spent = f": {line.spent}" if line.spent and line.spent != seconds(took) else ""
        yield (Cell(self.run.session_id or self.run.run_id, "head"), f"   took {took_words(took, line.paused)}{spent}")
        yield BLANK
        columns = (
            Column("what", flexible=True, least=16),
            Column("kind", leaves=4),
            Column("status", leaves=3),
            Column("at", right=True, leaves=2),
            Column("time", right=True),
            Column("tokens", right=True, leaves=5),
            Column("cost", right=True, leaves=6),
            Column("", leaves=1),
        )
        yield Table(columns, [self._row(bar) for bar in line.bars])

    def _row(self, bar: Bar) -> list[str | Cell]:
        numbers, words = numbers_of(bar), flat(words_of(bar, self.timeline.children), 200)
        text = "".join(part for part, _ in drawn(bar, self.timeline, self.CELLS))
        return [
            Cell("  " * bar.nested + words, "name" if bar.kind == "call" else ""),
            bar.kind,
            status_cell(bar.status) if bar.kind not in QUIET else "",
            numbers["at"],
            numbers["time"],
            numbers["tokens"],
            numbers["cost"],
            Cell(text, TOKENS[bar.kind], ""),
        ]

    def json(self) -> dict[str, Any]:
        """Times are seconds of the run, money is US dollars; null if unknown."""
        return {
            "run_id": self.run.run_id,
            "session_id": self.run.session_id,
            "seconds": self.run.seconds,
            "axis_s": self.timeline.end,
            "paused_s": self.timeline.paused,
            "bars": [bar_json(bar, self.timeline.children) for bar in self.timeline.bars],
        }


def bar_json(bar: Bar, children: Mapping[str, RunState]) -> dict[str, Any]:
    """One bar."""
    call = bar.call
    return {
        "kind": bar.kind,
        "what": words_of(bar, children),
        "at": str(bar.place) if bar.place.phase else "",
        "run_id": bar.run or None,
        "status": bar.status,
        "start_s": bar.start,
        "end_s": bar.end,
        "seconds": bar.seconds,
        "tokens_in": call.tokens_in if call is not None else None,
        "cost": Figures.of([call]).spent.total if call is not None else None,
    }
