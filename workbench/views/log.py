"""The log of a run: a line for each event that a person would want to read, and the journal itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len

from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.views.cells import Row, Span, crop, fit, fit_ends, flat, width_of
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import clock, plural
from workbench.views.signs import sign
from workbench.views.text import hung
from workbench.views.words import brief, words_of

KEPT_LINES = 10_000
HASHES = ("hash", "digest", "wire", "tools_hash", "request", "cascade_sha256")
"""Fields of events with values that are compared, not read."""


NARROW = 60
"""Cells below which a line of the log keeps its text, and gives up milliseconds and its sort."""


class LogLine(Struct, frozen=True):
    """One line: when, where, what sort, and the text with the token that colours it."""

    at: str
    place: Place
    sort: str
    text: str
    token: str = "plain"
    recorded: bool = False
    """It is of a recorded past, and keeps the time of then."""
    aside: str = ""
    """The name of a call beside the turns."""


def where(place: Place, aside: str = "") -> str:
    """``triage·3``; the second visit ``triage#2·3``, the second attempt ``triage·2.3``; with the name of a call beside
    the turns, ``generate·evaluation 2``."""
    if not place.phase:
        return ""
    visit = f"#{place.visit}" if place.visit > 1 else ""
    attempt = f"{place.attempt}." if place.attempt > 1 else ""
    turn = f"·{attempt}{place.turn}" if place.turn else f"·{aside}" if aside else ""
    return f"{place.phase_words}{visit}{turn}"


def log_line(event: Event, run: RunState) -> LogLine | None:
    """The line of an event, after ``run`` took it; None if it has none."""
    words = words_of(event, run)
    if words is None:
        return None
    call = run.call_at(event.place) if event.place.call and not event.place.turn else None
    return LogLine(event.at, event.place, *words, event.at < run.started, call.aside if call is not None else "")


class LogRows(Rows):
    """The last lines of the log, oldest first."""

    title = (("Log", "title"),)
    spreads = True

    def __init__(self) -> None:
        self.lines: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self.left_out = 0
        """How many lines went because there were too many."""
        self.can_run = True
        """Whether there is a cascade to run."""
        self._explained: tuple[str, ...] = ()

    @property
    def empty(self) -> tuple[str, ...]:  # type: ignore[override]
        """The text of a log without a line."""
        if self.can_run:
            return ("Nothing has happened yet.", *self._explained)
        how = told("The file cannot run as it is: {tab.problems} says why, {view.edit} opens it.")
        return ("Nothing has happened yet.", how)

    def explain(self, words: str) -> None:
        """A sentence more for a log that is still empty."""
        self._explained = (*self._explained, flat(words))

    def add(self, line: LogLine) -> None:
        """Append a line; the oldest goes when there are too many."""
        self.left_out += len(self.lines) == KEPT_LINES
        self.lines.append(line)

    def heads(self, width: int) -> Sequence[Row]:
        """What is left out, above the oldest line that there is."""
        if not self.left_out:
            return ()
        older = f" {plural(self.left_out, 'older line')} left out"
        more = told("; {tab.events} shows every event")
        said = older + more if len(older + more) <= width else older
        return (Row(crop(((said, "faint"),), width)),)

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, index: int, width: int) -> Row:
        before, text = self._parts(self.lines[index], width)
        return Row(crop((*before, text), width))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        before, text = self._parts(self.lines[index], width)
        return hung(before, (text,), width)

    def _parts(self, line: LogLine, width: int) -> tuple[tuple[Span, ...], Span]:
        """Returns what stands before the text of a line, and the text."""
        mark, age = sign("recorded") if line.recorded else (" ", "plain"), "faint" if line.recorded else "dim"
        text: Span = (flat(line.text), line.token)
        place = where(line.place, line.aside)
        if width < NARROW:
            short = (f"{clock(line.at)[:8]} ", age), (fit(place or line.sort, 10) + " ", "dim")
            return (mark, *short), text
        room = 18 if width > 100 else 14
        spans: tuple[Span, ...] = (
            mark,
            (f"{fit(clock(line.at), 12)}  ", age),
            ((fit_ends(place, room) if line.aside else fit(place, room)) + " ", "dim"),
            (fit(line.sort, 9) + " ", "head"),
        )
        return spans, text

    def plain(self, index: int) -> str:
        line = self.lines[index]
        return f"{clock(line.at)} {flat(where(line.place, line.aside))} {line.sort} {flat(line.text)}"


MEASURED = 400
"""Events, the newest, that decide how wide the columns of the journal are."""
EVENT_LINES = 4
"""Lines that an event takes at most; all of it opens below."""


class EventRows(Rows):
    """The journal: every event with its data in one line."""

    empty = ("The journal is empty.",)
    spreads = True

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self._number, self._kind, self._place = 0, 0, 0
        """Cells of the columns, by what stands in the newest events."""
        self._measured = -1

    def lay_out(self, width: int) -> None:
        if self._measured != len(self.events):
            self._measured = len(self.events)
            newest = self.events[-MEASURED:]
            self._number = max((len(str(one.seq)) for one in newest), default=1)
            self._kind = max((cell_len(one.kind) for one in newest), default=0)
            self._place = min(24, max((cell_len(where(one.place)) for one in newest), default=0))

    def __len__(self) -> int:
        return len(self.events)

    def row(self, index: int, width: int) -> Row:
        return Row(crop((*self._first(index, width), *_fields(self.events[index], max(80, width))), width))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """The event in at most ``EVENT_LINES`` lines: a text of the journal may have megabytes."""
        before = self._first(index, width)
        room = max(12, width - width_of(before))
        return hung(before, crop(_fields(self.events[index], EVENT_LINES * room), (EVENT_LINES - 1) * room), width)

    def _first(self, index: int, width: int) -> tuple[Span, ...]:
        """The columns before the data; a narrow pane leaves out the time and the place."""
        event = self.events[index]
        roomy = width > 100
        time, number = (12, 6) if roomy else (8, self._number)
        kind: Span = (fit(event.kind, self._kind) + " ", "head" if event.kind == "blob" else "plain")
        if width < NARROW:
            return (f" {event.seq:>{number}} ", "faint"), kind
        return (
            (f" {event.seq:>{number}} ", "faint"),
            (f"{clock(event.at)[:time]:<{time}}" + ("  " if roomy else " "), "faint"),
            kind,
            (fit_ends(where(event.place), self._place if roomy else min(self._place, 20)) + " ", "dim"),
        )

    def plain(self, index: int) -> str:
        event = self.events[index]
        return f"{event.seq} {event.kind} {flat(where(event.place))} {brief(dict(event.data), 4000)}"


def _fields(event: Event, room: int) -> list[Span]:
    """Its data as names and values: short values first, machine values last."""
    spans: list[Span] = []
    for name, value in sorted(event.data.items(), key=lambda field: isinstance(field[1], list | dict)):
        text = brief(value, room)
        if name in HASHES or not text or value in ([], {}):
            continue
        spans += [(f"{flat(name)} ", "faint"), (f"{text}  ", "dim" if event.kind == "blob" else "plain")]
        room -= len(text)
        if room <= 0:
            return spans
    hashes = (f"{name} {brief(value, 8)}" for name, value in event.data.items() if name in HASHES and value)
    return [*spans, ("  ".join(hashes), "faint")]


def state_rows(run: RunState | None) -> tuple[Row, ...]:
    """``key = value`` with the phase that set it last, and the sign of an edit where a person did."""
    if run is None:
        return ()
    by = {write.key: write.by for write in run.writes}
    setters = {key: visit.phase for visit in run.visits for key in visit.state_set}
    return tuple(
        Row(
            (
                (f" {fit(key, 24)} ", "code-key"),
                (brief(value, 2000), "plain"),
                (f"   ← {flat(setters[key])}" if key in setters else "", "faint"),
                *(((" ", "plain"), sign("edited")) if by.get(key) == "edit" else ()),
            )
        )
        for key, value in run.state.items()
    )
