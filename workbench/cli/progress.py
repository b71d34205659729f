"""The progress of a headless run on stderr: one line for each event, and in a terminal a line for what it waits for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from workbench.analysis.advice import name_of, remedy_of
from workbench.cli.printer import Printer, talk
from workbench.context.assembly import Grade
from workbench.context.place import Place
from workbench.dollars import money
from workbench.engine.journal.candidate_rounds import candidate_name, was_decided
from workbench.engine.journal.costs import EXACT
from workbench.engine.journal.event import LEFT
from workbench.engine.journal.parts import expected_of
from workbench.language.clean import clean_line
from workbench.views.numbers import count, plural, seconds
from workbench.views.value import Cell
from workbench.views.words import ended_words, left_words

if TYPE_CHECKING:
    from rich.status import Status

    from workbench.engine.contracts import Notice
    from workbench.engine.journal.event import Event


class Progress:
    """Takes events and notices of a run as they come. Use it as a context manager around the run."""

    def __init__(self, plain: bool = False, *, quiet: bool = False, resumed: bool = False) -> None:
        """``resumed``: stay silent until the run goes on, because its journal is told again from the start."""
        self._printer = Printer(plain, sys.stderr)
        self._quiet = quiet
        self._silent = resumed
        self._told = 0
        """Events before this sequence number are of the journal."""
        self._status: Status | None = None
        self._began = time.monotonic()

    def __enter__(self) -> Progress:
        if not self._printer.plain and not self._quiet:
            console = Console(stderr=True, no_color=not self._printer.colour, highlight=False)
            self._status = console.status("starting", spinner="dots")
            self._status.start()
            self._printer.stream = sys.stderr  # replaced while the line moves, so that what is printed stands above it
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
            self._printer.stream = sys.stderr

    def person(self) -> AbstractContextManager[object]:
        """Around a question to a person: the moving line must not run over it."""
        return nullcontext() if self._status is None else _Paused(self._status)

    def speak(self) -> None:
        """End the silence: what comes now is new."""
        self._silent = False

    # -- what comes in -----------------------------------------------------------------------------------------------

    def event(self, event: Event) -> None:
        """One event, after it is in the journal."""
        if self._silent:
            self._silent = event.kind != "run_resumed"
            self._told = event.seq
            return
        if self._quiet or event.seq < self._told:
            return
        handler = _LINES.get(event.kind)
        if handler is not None and (cells := handler(event.place, event.data)) is not None:
            self._line(event.place, *cells)
        self._wait_for(event)

    def notice(self, notice: Notice) -> None:
        """Something for the screen only: in a terminal the moving line counts a wait down, and then up again."""
        if notice.kind in _SAID:
            self._line(notice.place, Cell(str(notice.data.get("message", "")), _SAID[notice.kind]))
        elif notice.kind == "retry":
            self._waits(notice.place, f"tries again (try {notice.data.get('try')})", float(notice.data["seconds"]))
        elif notice.kind == "waiting" and notice.data.get("try", 1) > 1:
            self._waits(notice.place, f"waiting for the provider, try {notice.data['try']}")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _line(self, place: Place, *cells: str | Cell) -> None:
        where = place.phase_words + (f":{place.turn}" if place.turn else "")
        where += f" try {place.attempt}" if place.attempt > 1 else ""
        clock = f"{time.monotonic() - self._began:6.1f}s  "
        self._printer.line(Cell(clock, "dim"), Cell(f"{where:<14} ", "head"), *cells)

    def _wait_for(self, event: Event) -> None:
        if self._status is None:
            return
        waits = {
            "call_started": f"waiting for {event.data.get('model', 'the model')}",
            "tool_started": f"running {event.data.get('tool', 'a tool')}",
            "human_asked": "waiting for you",
        }
        text = waits.get(event.kind)
        if text:
            self._waits(event.place, text)

    def _waits(self, place: Place, text: str, until: float | None = None) -> None:
        """Say in the moving line what is waited for, with the seconds that passed, or that are left of ``until``."""
        if self._status is not None and not self._silent:
            turn = f" turn {place.turn}" if place.turn else ""
            self._status.update(WaitingLine(clean_line(f"{place.phase}{turn}: {text}", 100), until))


class WaitingLine:
    """A line that says how long it has stood there, or how many seconds are left; made anew at every redraw."""

    def __init__(self, text: str, until: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._text, self._until, self._clock = text, until, clock
        self._since = clock()

    def __rich__(self) -> Text:
        passed = self._clock() - self._since
        if self._until is not None:
            return Text(f"{self._text} in {max(0.0, self._until - passed):.0f} s")
        return Text(self._text + (f", {passed:.0f} s" if passed >= 1 else ""))


class _Paused(AbstractContextManager[None]):
    """Stops a moving line for a while."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def __enter__(self) -> None:
        self._status.stop()

    def __exit__(self, *_: object) -> None:
        self._status.start()


Cells = tuple[str | Cell, ...]


def _phase_started(place: Place, data: Mapping[str, Any]) -> Cells:
    visit = f", visit {place.visit}" if place.visit > 1 else ""
    model = "no model" if data.get("kind") == "deterministic" else data.get("model") or data.get("kind", "")
    return ("phase  ", model, visit)


def _call_finished(_: Place, data: Mapping[str, Any]) -> Cells:
    usage, cost = data.get("usage") or {}, data.get("cost")
    parts = [
        f"call   {data.get('model', '')}",
        seconds(data.get("duration_s")),
        f"in {count(usage['input'])}" if usage.get("input") is not None else "",
        f"cached {count(usage['cached'])}" if usage.get("cached") else "",
        f"out {count(usage.get('output'))}",
        money(cost, exact=data.get("cost_grade") in EXACT) if cost is not None else "",
    ]
    return ("  ".join(filter(None, parts)),)


def _call_failed(_: Place, data: Mapping[str, Any]) -> Cells:
    error = data.get("error") or {}
    retry = f", tries again in {seconds(data['retry_in'])}" if data.get("retry_in") is not None else ""
    kind, number = name_of(error), data.get("try", 1)
    return (
        Cell(f"call   try {number} failed, {kind}: {clean_line(str(error.get('message', '')), 300)}{retry}", "error"),
    )


def _tool_finished(_: Place, data: Mapping[str, Any]) -> Cells:
    size = f"{len(data.get('text', '')):,} characters" if data.get("text") else ""
    failed = Cell("error  ", "error") if data.get("is_error") else ""
    if data.get("sandbox") == LEFT:
        return (f"tool   {data.get('tool', '')}  ", Cell(left_words(data), "warning"))
    took = "from the cache" if data.get("cached") else seconds(data.get("duration_s"))
    return (f"tool   {data.get('tool', '')}  {took}  ", failed, size)


def _child_started(_: Place, data: Mapping[str, Any]) -> Cells:
    return (f"starts {data.get('cascade_id', '')}  ", Cell(str(data.get("session_id", "")), "dim"))


def _child_finished(_: Place, data: Mapping[str, Any]) -> Cells:
    status = str(data.get("status", ""))
    return (f"child  {data.get('session_id', '')}  ", Cell(status, "ok" if status == "success" else "warning"))


def _check_finished(_: Place, data: Mapping[str, Any]) -> Cells:
    passed = data.get("valid")
    verdict = Cell("passed", "ok") if passed else Cell(f"failed: {data.get('reason', '')}", "warning")
    return (f"check  {data.get('name') or data.get('check', '')}  ", verdict)


def _context_selected(_: Place, data: Mapping[str, Any]) -> Cells:
    if data.get("fault"):
        return (Cell(f"select  the heuristic instead: {data['fault']}", "warning"),)
    return (f"select  {len(data.get('picked', ())):,} of {len(data.get('offered', ())):,} messages",)


def _candidates_started(_: Place, data: Mapping[str, Any]) -> Cells:
    step = f"refine  step {data['step']}, " if data.get("step") else "tries  "
    at_once = f", {data['max_parallel']} at once" if data.get("max_parallel") else ""
    return (f"{step}{plural(int(data.get('factor') or 0), 'candidate')}{at_once}",)


def _evaluation_finished(_: Place, data: Mapping[str, Any]) -> Cells:
    if data.get("winner") is None:
        return ("joins  the outputs of all that passed",)
    reason = clean_line(str(data.get("reason") or data.get("decided_by") or ""), 200)
    winner = candidate_name(data["winner"])
    if not was_decided(data):
        return (Cell(f"keeps  candidate {winner}, undecided", "warning"), f": {reason}" if reason else "")
    return ("picks  ", Cell(f"candidate {winner}", "ok"), f": {reason}" if reason else "")


def _route_chosen(_: Place, data: Mapping[str, Any]) -> Cells | None:
    return (f"route  {data['to']} ({data.get('rule', '')})",) if data.get("to") else None


def _warning(_: Place, data: Mapping[str, Any]) -> Cells:
    return (Cell(f"warns  {data.get('message', '')}", "warning"),)


def _phase_finished(_: Place, data: Mapping[str, Any]) -> Cells | None:
    if data.get("status") == "success" or data.get("check") == "call":
        return None  # Of a call that failed for good its own line told, and the last line tells again.
    status, reason = data.get("status"), data.get("reason", "")
    return (Cell(f"phase  {status}: {reason}" if reason != status else f"phase  {status}", "error"),)


def _context_assembled(_: Place, data: Mapping[str, Any]) -> Cells:
    """The request about to be sent, and its problems."""
    grade = Grade(data.get("grade", "exact"))
    sent, own = expected_of(data), data.get("tokens_sent", 0)
    full = sent + round((data.get("tokens_full", 0) - own) * (sent / own if own else 1.0))
    problems = data.get("problems", ())
    less = f" of {count(full, grade)}" if sent != full else ""
    broken = Cell(f"  {len(problems)} broken: {problems[0][1]}", "error") if problems else ""
    purpose = str(data.get("purpose", "turn"))
    return (
        f"sends  {count(sent, grade)}{less} tokens",
        Cell("" if purpose == "turn" else f"  {purpose}", "dim"),
        broken,
    )


_SAID = {"unsaved": "error", "saved": "", "spans": "warning", "told": "warning"}
"""Notices whose message is printed as a line, and its style."""
_LINES = {
    "context_assembled": _context_assembled,
    "phase_started": _phase_started,
    "call_finished": _call_finished,
    "call_failed": _call_failed,
    "tool_finished": _tool_finished,
    "child_started": _child_started,
    "child_finished": _child_finished,
    "check_finished": _check_finished,
    "context_selected": _context_selected,
    "candidates_started": _candidates_started,
    "evaluation_finished": _evaluation_finished,
    "route_chosen": _route_chosen,
    "warning": _warning,
    "phase_finished": _phase_finished,
}
"""The line of an event, by its kind; other events print none."""


def closing_line(
    session: str,
    status: str,
    reason: str,
    fault: Mapping[str, Any],
    *,
    way_on: str = "",
    look: str = "context",
    totals: str = "",
) -> None:
    """Print how the run ended, and what to do next.

    ``fault``: why its last call got no answer, where that ended it; ``way_on``: the line with the command that goes
    on, if one does; ``look``: the command that shows most of it; ``totals``: its calls, tokens, cost and time.
    """
    talk(ended_words(status, reason), "ok" if status == "success" else "error")
    if totals:
        talk(totals)
    if fault:
        remedy = remedy_of(fault)
        talk(f"{remedy.happened}. {remedy.do}")
    if way_on:
        talk(way_on, "dim")
    talk(f"look at it: workbench {look} {session}", "dim")
