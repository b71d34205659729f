"""A run at a glance: its cost, where its tokens went, its checks, and its most expensive call. Its output stands below
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from rich.cells import cell_len

from workbench.context.assembly import Grade
from workbench.context.place import Place
from workbench.dollars import money
from workbench.engine.journal.figures import Figures
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.journal.state import RunState
from workbench.engine.texts import result_body
from workbench.views.cells import GAP, Row, Span, crop, fit, flat, joined, width_of
from workbench.views.children import child_name
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import (
    LONG_WAIT,
    count,
    plural,
    saved_words,
    seconds,
    spent_in_full,
    times_beside,
    took_words,
)
from workbench.views.run import beside_words, visit_name, what_if_words
from workbench.views.signs import sign, status_sign
from workbench.views.text import wrapped
from workbench.views.tree import (
    COLUMNS,
    MEDIUM,
    WIDE,
    cost_cells,
    cost_room,
    empty_columns,
    fitted,
    inside_it,
    is_candidate,
    label_width,
    sum_cells,
    visit_status,
)

FACT = 16
"""Cells of the names of facts."""
NAME = 24
"""Cells up to which a name is whole, whatever has no room beside it."""
INDENT = 4
"""Cells before the name of a phase: its sign, and for a child run its indentation."""
REASON = 300
"""Characters of a tool's error."""
SMALL = 48
"""Cells below which a name is cut rather than a number."""

Line = tuple[tuple[Span, ...], Place | None, str]
"""Spans, and the call that enter goes to, with the child run that it belongs to."""


class SummaryRows(Rows):
    """The rows are made for a width; enter on a phase, a child or the most expensive call goes there."""

    def __init__(self, run: RunState, children: Mapping[str, RunState], *, file_changed: bool = False) -> None:
        """``file_changed``: a comparison begins with what changed in the file since the run."""
        self.run, self.children = run, children
        self._file_changed = file_changed
        mark = status_sign(run.status)
        self.title = (("Summary", "title"), ("  ", "plain"), mark, (f" {run.status}", mark[1]))
        self.title_right = ((told("{view.previous} shows the last call"), "dim"),)
        times = (*(visit.seconds for visit in run.visits), run.seconds)
        self._without = empty_columns(run, times, children.values())
        self._width = -1
        self._lines: list[Line] = []

    def lay_out(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lines = list(self._made(width))

    def __len__(self) -> int:
        return len(self._lines)

    def heads(self, width: int) -> Sequence[Row]:
        names = {name: (name, "head") for name in COLUMNS}
        head: Span = (" " + fit("phase", self._room(width) - 1), "head")
        return (Row(crop((head, *fitted(names, width, self._without, self._wider(width))), width)),)

    def row(self, index: int, width: int) -> Row:
        self.lay_out(width)
        return Row(crop(self._lines[index][0], width))

    def plain(self, index: int) -> str:
        return Row(self._lines[index][0]).text.strip()

    def target(self, index: int) -> tuple[Place, str] | None:
        """The call that a row leads to, and the child run that it belongs to."""
        _, place, run = self._lines[index] if 0 <= index < len(self._lines) else ((), None, "")
        return None if place is None else (place, run)

    def _made(self, width: int) -> Iterator[Line]:
        run = self.run
        if run.reason:
            for part in wrapped(((flat(run.reason), status_sign(run.status)[1]),), max(10, width - 2)):
                yield ((" ", "plain"), *part), None, ""
        yield from self._phases(width)
        yield (), None, ""
        for name, spans, call in self._facts():
            place = call.place if call is not None else None
            for number, part in enumerate(_lines_of(spans, max(10, width - FACT - 2))):
                yield ((f" {fit('' if number else name, FACT)}", "head"), *part), place, ""

    def _phases(self, width: int) -> Iterator[Line]:
        """Tokens, cost and time of each phase, of the child runs that it started, and of the whole."""
        room = self._room(width)
        own = {(visit.phase, visit.visit) for visit in self.run.visits if not is_candidate(visit)}
        below: dict[tuple[str, int], list[VisitState]] = {}
        for visit in filter(is_candidate, self.run.visits):
            below.setdefault((visit.phase, visit.visit), []).append(visit)
        for visit in self.run.visits:
            key = (visit.phase, visit.visit)
            if not is_candidate(visit):
                candidates = below.pop(key, [])
                yield from self._visit(visit, [visit, *candidates], visit_name(visit), room, width)
                for one in candidates:
                    yield from self._visit(one, [one], f"  candidate {flat(one.branch)}", room, width)
                if candidates:
                    yield from self._asides(visit, room, width)
            elif key not in own:  # Whole walks of the cascade: no visit stands above them.
                yield from self._visit(visit, [visit], visit_name(visit), room, width)
        for name, spent in times_beside(self.run).items():
            numbers = self._numbers(None, (), spent, width)
            yield ((" " + fit(f"  {name}", room - 1), "dim"), *numbers), None, ""
        yield ((" " + fit("total", room - 1), "bold"), *self._total(self.run, width)), None, ""

    @cached_property
    def _longest(self) -> int:
        names = [visit_name(visit) + "  " * is_candidate(visit) for visit in self.run.visits]
        names += ["↳ " + child_name(one) for one in self.children.values()]
        return max(map(cell_len, names), default=0) + INDENT

    def _room(self, width: int) -> int:
        """Cells of the names: the numbers stand near the longest."""
        room = label_width(self._longest, width, self._without, self._wider(width))
        return room if width < SMALL else max(room, min(self._longest + 1, NAME))

    @cached_property
    def _cost_cells(self) -> tuple[int, int]:
        """Cells that its costs take beyond the column of a wide and of a narrow list."""
        spent = [self.run.figures_of((visit,), self.known).spent for visit in self.run.visits]
        spent += [figures.spent for figures in self.known.values()]
        wide, narrow = (max((cost_cells(one, width) for one in spent), default=0) for width in (WIDE, MEDIUM))
        return wide, narrow

    def _wider(self, width: int) -> int:
        """Cells that the costs take beyond their column."""
        return cost_room(self._cost_cells[width < WIDE], self._longest, width, self._without)

    def _visit(
        self, visit: VisitState, together: Sequence[VisitState], name: str, room: int, width: int
    ) -> Iterator[Line]:
        """A visit with what is counted together with it, as in the tree, and the runs that it started."""
        indent = len(name) - len(name.lstrip())
        edited = any(call.place in self.run.edited_places for call in visit.calls)
        left = (
            (" " * (indent + 1), "plain"),
            status_sign(visit_status(self.run, visit)),
            (" " + fit(name.lstrip(), room - 3 - indent - 2 * edited), "plain"),
            *((sign("edited"), (" ", "plain")) if edited else ()),
        )
        numbers = self._numbers(self.run.figures_of(together, self.known), visit.calls, visit.seconds, width)
        yield (*left, *numbers), visit.calls[-1].place if visit.calls else None, ""
        for child in visit.children:
            yield from self._child(str(child.get("run_id", "")), room, width)

    def _asides(self, visit: VisitState, room: int, width: int) -> Iterator[Line]:
        """Yields the sums of a phase's calls that compare its candidates: with them the rows add up to the phase."""
        for purpose in dict.fromkeys(call.purpose for call in visit.calls if call.purpose):
            calls = [call for call in visit.calls if call.purpose == purpose]
            passed = [call.duration_s for call in calls if call.duration_s is not None]
            left = ("   ", "plain"), sign("done"), (" " + fit(flat(purpose), room - 5), "plain")
            took = sum(passed) if passed else None
            numbers = self._numbers(self.run.figures_of_calls(calls), calls, took, width)
            yield (*left, *numbers), calls[-1].place, ""

    def _child(self, run_id: str, room: int, width: int) -> Iterator[Line]:
        child = self.children.get(run_id)
        if child is not None:
            name = fit(f" ↳ {child_name(child)}", room - 3)
            place = child.calls[-1].place if child.calls else None
            left: tuple[Span, ...] = (("   ", "plain"), status_sign(child.status), (name[: room - 4], "dim"))
            yield (*left, *self._total(child, width, "plain")), place, run_id

    def _facts(self) -> Iterator[tuple[str, tuple[Span, ...], CallState | None]]:
        run = self.run
        checks = [check for visit in run.visits for check in visit.checks]
        if checks:
            bad = [check for visit in run.visits for check in visit.failed_checks]
            said: tuple[Span, ...] = ((f"{len(checks) - len(bad):,} passed", "ok" if not bad else "plain"),)
            if bad:
                reason = flat(str(bad[-1].get("reason", "")))
                said += ((f"   {len(bad):,} failed", "error"), (f"   last failure: {reason}" if reason else "", "dim"))
            yield "checks", said, None
        if (call := self.dearest) is not None:
            cost = spent_in_full(run.figures_of_calls([call]).spent)
            words = f"{flat(call.words)}   {count(call.tokens_in, call.grade_in)} tokens in   {cost}"
            yield "most expensive", ((words, "plain"),), call
        masked = max((call.shortened for call in run.calls if call.answered), default=0)
        if masked:
            saved = sum(call.held_back for call in run.calls if call.answered)
            grade = Grade.of_sum(call.grade for call in run.calls if call.answered and call.held_back)
            calls = sum(1 for call in run.calls if call.answered and call.shortened)
            words = f" {saved_words(saved, grade)}" + (f" over {plural(calls, 'call')}" if calls > 1 else "")
            if saved > 0:
                percent = 100 * saved / (saved + sum(call.tokens_sent for call in run.calls if call.answered))
                words += f", {f'{percent:.0f}' if percent >= 0.5 else 'less than 1'}% of the input"
            words += f"; at most {plural(masked, 'message')} masked in one call"
            way = "   {view.strategies} shows the file's changes, then {changes.compare} compares"
            told_way = told(way if self._file_changed else "   {view.strategies} compares")
            yield "masking", (sign("masked"), (words, "masked"), (told_way, "faint")), None
        if run.other_strategy:
            words = what_if_words(run.other_strategy)
            yield "what if", ((words, "plain"), (told("   {tab.watched} shows the calls"), "faint")), None
        tools = [(tool, call) for call in run.calls for tool in call.tools]
        wrong = [one for one in tools if one[0].status == "failed"]
        if wrong:
            tool, call = wrong[0]
            reason = flat(result_body(tool.tool, tool.text, True), REASON)
            told_tool = f"   first: {flat(tool.tool)}: {reason}"
            yield "failed tools", ((f"{len(wrong):,} of {len(tools):,}", "error"), (told_tool, "dim")), call
        failed = sum(len(call.failures) for call in run.calls)
        if failed:
            yield "failed tries", ((f"{failed:,}", "error"),), None
        recorded = [call.duration_s or 0.0 for call in run.calls if call.recorded]
        waited = run.waited
        if run.seconds is not None and (run.paused or recorded or waited >= LONG_WAIT):
            told_time: Span = (took_words(run.seconds, run.paused, waited), "plain")
            yield "time", (told_time, *_replayed(recorded, run.own)), None
        for name in times_beside(run):
            yield name, ((beside_words(name, run), "dim"),), None

    @cached_property
    def known(self) -> Mapping[str, Figures]:
        """Figures of the runs inside it."""
        return inside_it(self.children)

    def _total(self, run: RunState, width: int, token: str = "bold") -> Sequence[Span]:
        return self._numbers(run.figures(self.known), run.calls, run.seconds, width, token)

    def _numbers(
        self, took: Figures | None, calls: Sequence[CallState], passed: float | None, width: int, token: str = "plain"
    ) -> Sequence[Span]:
        return sum_cells(took, calls, passed, width, token, without=self._without, wider=self._wider(width))

    @cached_property
    def dearest(self) -> CallState | None:
        """The most expensive answered call; by its tokens if no cost is known."""
        answered = [call for call in self.run.calls if call.answered]
        return max(
            answered,
            key=lambda call: (sum(one.cost.total or 0.0 for one in self.run.figures_of_call(call)), call.tokens_in),
            default=None,
        )


def _lines_of(spans: Sequence[Span], room: int) -> Sequence[tuple[Span, ...]]:
    """A fact in lines, broken between its parts, which ``GAP`` sets off, unless that takes more lines."""
    parts: list[list[Span]] = [[]]
    for text, token in spans:
        first, *more = text.split(GAP)
        parts[-1].append((first, token))
        parts += [[(one, token)] for one in more]
    lines = [tuple(parts[0])]
    for part in parts[1:]:
        longer = joined((lines[-1], part))
        if width_of(longer) > room >= width_of(part):
            lines.append(tuple(part))
        else:
            lines[-1] = longer
    anyhow, whole = wrapped(spans, room), [piece for line in lines for piece in wrapped(line, room)]
    return whole if len(whole) <= len(anyhow) else anyhow


def _replayed(recorded: Sequence[float], own: Figures) -> Iterator[Span]:
    """Says what the rows of recorded answers show: the tokens, the time (seconds) and the money that they took when
    they were recorded."""
    if recorded:
        were, them, their = ("were", "them", "their") if len(recorded) > 1 else ("was", "it", "its")
        tokens_in, out = count(own.recorded_tokens_in, own.recorded_grade_in), count(own.recorded_told_out)
        parts = [f"{tokens_in} tokens in", f"{out} out", seconds(sum(recorded))]
        parts += [money(own.spent.recorded, exact=own.spent.recorded_exact)] if own.spent.recorded else []
        took = f"{', '.join(parts[:-1])} and {parts[-1]}"
        yield "   ", "plain"
        yield sign("recorded")
        asked = f"the run that asked for {them} counts {their} {took}, this one does not"
        yield f" {plural(len(recorded), 'answer')} {were} recorded: {asked}", "dim"
