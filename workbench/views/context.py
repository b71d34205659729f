"""The context of one call as rows: what was sent, what was not and why, where the cache ends, and the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from msgspec import Struct
from rich.cells import cell_len

from workbench.analysis.prediction import CallInput, Overhead, PredictedUsage, Residual
from workbench.context.assembly import BrokenInvariant, Entry, Kind
from workbench.context.marks import LIVE_MARKS, PARAMETER, Marks, marked_entries
from workbench.context.place import WHOLE, Place
from workbench.context.reasons import explain, origin, turns_before
from workbench.dollars import UNPRICED, money
from workbench.engine.journal.parts import WINDOW, CallState
from workbench.views import answer, entry
from workbench.views.answer import LiveCall
from workbench.views.cells import Row, Span, Target, crop, dropping, flat, justify, width_of
from workbench.views.columns import LINE, ROLE, Columns, Needs, columns, wanted
from workbench.views.filter_result import TITLE_FRAME
from workbench.views.model import Rows
from workbench.views.numbers import count, plural
from workbench.views.signs import sign
from workbench.views.text import wrapped

MEASURED = 60
"""Entries at each end of a long context that decide how wide its columns are."""
TASK = frozenset({Kind.TASK, Kind.RETRY, Kind.PROMPT, Kind.CLOSING, Kind.USER})


class Stretch(Struct, frozen=True):
    """A run of messages of one sort. ``sort`` is tools, task, injected, turns, masked, dropped or free."""

    sort: str
    tokens: int


def sort_of(entry: Entry, phase: str) -> str:
    """Returns the kind of an entry in the bar."""
    item = entry.item
    if item.kind is Kind.SYSTEM:
        return "task" if item.source else "tools"
    if item.kind in (Kind.INJECTED, Kind.INPUT) or (item.place.phase and item.place.phase != phase):
        return "injected"
    return "task" if item.kind in TASK else "turns"


def stretches(call: CallState, budget: int | None = None) -> tuple[Stretch, ...]:
    """The sent messages in wire order, neighbours of one kind merged; then the unsent ones; then the rest of the
    budget.
    """
    merged: list[list[str | int]] = []
    for sort, tokens in _parts(call):
        if merged and merged[-1][0] == sort:
            merged[-1][1] = int(merged[-1][1]) + tokens
        elif tokens:
            merged.append([sort, tokens])
    result = [Stretch(str(sort), int(tokens)) for sort, tokens in merged]
    dropped = sum(entry.tokens_full for entry in call.entries if entry.sent is None)
    masked = call.tokens_full - call.tokens_sent - dropped
    result += [Stretch(sort, tokens) for sort, tokens in (("masked", masked), ("dropped", dropped)) if tokens > 0]
    if budget is not None and (free := budget - call.tokens_full) > 0:
        result.append(Stretch("free", free))
    return tuple(result)


def _parts(call: CallState) -> Iterator[tuple[str, int]]:
    yield "tools", call.tools_tokens
    for one in call.entries:
        if one.sent is not None:
            yield sort_of(one, call.place.phase), one.tokens_sent


def shares(values: tuple[int, ...], width: int) -> tuple[int, ...]:
    """``width`` cells dealt out in proportion, one at least to each value while there are enough."""
    total = sum(values)
    if not total or width <= 0:
        return tuple(0 for _ in values)
    floor = 1 if width >= len(values) else 0
    exact = [value * (width - floor * len(values)) / total for value in values]
    cells = [floor + int(x) for x in exact]
    for index in sorted(range(len(values)), key=lambda i: exact[i] - int(exact[i]), reverse=True):
        if sum(cells) >= width:
            break
        cells[index] += 1
    return tuple(cells)


_TOKENS = {
    "tools": "bar-system",
    "task": "bar-task",
    "injected": "bar-injected",
    "turns": "bar-turns",
    "masked": "bar-masked",
    "dropped": "bar-dropped",
    "free": "bar-free",
}
_FILL = {"masked": "◌", "dropped": "·", "free": "┈"}


def bar(call: CallState, width: int, budget: int | None = None, *, divided: bool = False) -> Row:
    """The bar as one row; each stretch carries its name and tokens if they fit. ``divided``: without colours, the last
    cell of each stretch but the last is a line.
    """
    room = width - 2
    parts = stretches(call, budget)
    cells = shares(tuple(part.tokens for part in parts), room)
    spans: list[Span] = [(" ", "plain")]
    for number, (part, length) in enumerate(zip(parts, cells, strict=True), 1):
        line = "│" if divided and length and number < len(parts) else ""
        spans.append((_label(part, length - len(line), call.grade) + line, _TOKENS[part.sort]))
    return Row(crop(spans, width))


def _label(part: Stretch, length: int, grade: str) -> str:
    """The name and the tokens, as far as they fit."""
    fill = _FILL.get(part.sort, " ")
    for text in (f" {part.sort} {count(part.tokens, grade)} ", f" {part.sort} "):
        if len(text) <= length:
            return text.center(length, fill)
    return fill * length


def cache_lines(call: CallState, width: int, budget: int | None = None) -> Sequence[Row]:
    """The cached prefix, drawn to the scale of the bar above it; if nothing is cached, the reason, in two lines at
    most.
    """
    forecast = call.forecast
    if forecast is None or not call.tokens_sent:
        return (Row(()),)
    room, predicted = width - 2, PredictedUsage.of(call)
    parts = stretches(call, budget)
    total = sum(part.tokens for part in parts)
    sent = round(room * call.tokens_sent / total) if total else 0
    cached = min(round(sent * predicted.cached / predicted.tokens), sent) if predicted.cached else 0
    if not forecast.cached:
        label = f"nothing cached: {flat(forecast.reason)}" if forecast.reason else "nothing cached"
        lines = wrapped(((label, "dim"),), max(1, width - 2))
        last: tuple[Span, ...] = (("…", "dim"),) if len(lines) > 2 else ()
        return (
            Row(crop(((" ", "plain"), *lines[0]), width)),
            *(Row(crop(((" ", "plain"), *line, *last), width)) for line in lines[1:2]),
        )
    spans: list[Span] = [(" ", "plain"), ("▔" * cached, "cached")]
    if sent > cached:
        spans += [("╋", "warning"), ("▔" * (sent - cached - 1), "rule")]
    return (Row(justify(spans, ((f" {count(forecast.cached)} cached ", "cached"),), width)),)


Key = tuple[str, Place]
"""Identifies a message in two entries: its body, and the place where it was made."""

RefKind = Literal[
    "note",
    "tools",
    "entry",
    "part",
    "fold",
    "break",
    "overhead",
    "live",
    "failure",
    "back",
    "residual",
    "answer",
    "tool",
]


class Ref(Struct, frozen=True):
    """The thing in a row: a note, an entry, a tool result of this call, dropped entries up to ``until``, the part
    ``until`` of an entry."""

    kind: RefKind
    index: int = -1
    until: int = -1


class View(Struct, frozen=True):
    """How a context is looked at."""

    compact: bool = False
    unfold: bool = False
    compare: bool = False
    before: CallState | None = None
    """The call before it in the same phase, for ``compare``."""
    budget: int | None = None
    """Tokens that the file allows."""
    max_turns: int = 0
    divided: bool = False
    """Whether no colours tell the parts of the bar apart."""
    filed: bool = True
    """Whether a file decided: the lines of what stands for a watched program tell nothing."""
    asking: frozenset[int] = frozenset()
    """The numbers of its tool calls that wait for the answer of a person."""
    over: bool = False
    """Whether the run has ended."""


class ContextRows(Rows):
    """One call. Rows are laid out when they are drawn; 10,000 entries cost one pass to index."""

    spreads = True

    def __init__(self, call: CallState, view: View) -> None:
        self.call = call
        self.view = view
        self._before = _by_key(view.before) if view.compare else {}
        self.changes = changes(call, self._before)
        self.cached = cached_entries(call)
        self.overhead = Overhead.of(call)
        self._fixed = tuple(self._refs())
        self.refs = self._fixed
        self.live: LiveCall | None = None
        self._earlier = turns_before(call.entries, call.place)
        marks = marks_in(call)
        self._marked = frozenset(marked_entries(marks, call.entries, tools=bool(call.tools_hash)) if marks else ())
        self._heads: tuple[int, tuple[Row, ...]] = (-1, ())
        place = call.place
        self.title = title_of(place, view.max_turns, call.aside)
        self.title_right = ((strategy_words(call, filed=view.filed), "dim"),) if call.strategy else ()
        if view.compare and view.before is not None:
            self.title_right = _against(view.before, self.changes)

    def lay_out(self, width: int) -> None:
        if self.call.strategy and not (self.view.compare and self.view.before is not None):
            # The pane has one cell more than its rows.
            room = width + 1 - width_of(self.title) - TITLE_FRAME
            self.title_right = ((brief(strategy_words(self.call, filed=self.view.filed), room), "dim"),)

    # -- which rows there are ----------------------------------------------------------------------------------------

    def _refs(self) -> Iterator[Ref]:
        call, view = self.call, self.view
        yield from (Ref("note", i) for i in range(len(call.notes)))
        if call.tools_tokens:
            yield Ref("tools")
        forecast = call.forecast
        broken_at = forecast.break_at if forecast and forecast.cached else -1
        sent, folded = 0, -1
        for index, one in enumerate(call.entries):
            if one.sent is None and not view.unfold:
                folded = index if folded < 0 else folded
                continue
            if folded >= 0:
                yield Ref("fold", folded, index)
                folded = -1
            if one.sent is not None:
                if sent == broken_at:
                    yield Ref("break")
                sent += 1
            yield Ref("entry", index)
            yield from (Ref("part", index, number) for number in range(len(one.parts)))
        if folded >= 0:
            yield Ref("fold", folded, len(call.entries))
        if any(self.overhead):
            yield Ref("overhead")
        yield from (Ref("failure", i) for i in range(len(call.failures)))
        if call.answer is not None:
            yield Ref("back")
            if Residual.of(call) is not None and not call.beside:
                yield Ref("residual")
            yield Ref("answer")
            yield from (Ref("tool", i) for i in range(len(call.tools)))

    def set_live(self, live: LiveCall | None) -> None:
        """Shows the activity of the call right now: the last row, while there is any."""
        self.live = live
        self.refs = (*self._fixed, Ref("live")) if live is not None else self._fixed

    def __len__(self) -> int:
        return len(self.refs)

    def last_entry(self) -> int:
        """The row to look at first: the newest message that was sent."""
        return max((i for i, ref in enumerate(self.refs) if ref.kind == "entry"), default=0)

    def newest(self) -> int:
        """The row of what happened last: an answer that comes in or came, the last tool result, else the last entry."""
        if self.live is not None and self.live.doing == "answering":
            return len(self.refs) - 1
        tools = self.call.tools
        if self.call.status == "failed":
            return max((i for i, ref in enumerate(self.refs) if ref.kind == "failure"), default=self.last_entry())
        kinds = ("tool",) if tools and tools[-1].status != "running" else ("answer",)
        return max((i for i, ref in enumerate(self.refs) if ref.kind in kinds), default=self.last_entry())

    def entry(self, row: int) -> Entry | None:
        """The entry of a row; None for other rows."""
        if not 0 <= row < len(self.refs) or self.refs[row].kind != "entry":
            return None
        return self.call.entries[self.refs[row].index]

    # -- heads -------------------------------------------------------------------------------------------------------

    def heads(self, width: int) -> Sequence[Row]:
        if self._heads[0] != width:
            view = self.view
            parts = bar(self.call, width, view.budget, divided=view.divided)
            rows = [Row(summary(self.call, width, view.budget)), parts]
            if not view.compact:
                rows += cache_lines(self.call, width, view.budget)
            rows.append(self._columns(width).head())
            self._heads = (width, tuple(rows))
        return self._heads[1]

    # -- rows --------------------------------------------------------------------------------------------------------

    def row(self, index: int, width: int) -> Row:
        ref, call = self.refs[index], self.call
        layout = self._columns(width)
        if ref.kind == "entry":
            return self._entry_row(ref.index, width)
        if ref.kind == "part":
            one = call.entries[ref.index]
            return entry.part_row(layout, one.parts[ref.until], call.grade_of(one))
        if ref.kind == "note":
            return entry.note_row(layout, call.notes[ref.index])
        if ref.kind == "tools":
            return entry.tools_row(layout, call)
        if ref.kind == "overhead":
            return entry.overhead_row(layout, call, self.overhead)
        if ref.kind == "fold":
            return entry.fold_row(layout, call, call.entries[ref.index : ref.until])
        if ref.kind == "break":
            return entry.break_row(layout, call.forecast.reason if call.forecast else "")
        if ref.kind == "failure":
            return answer.failure_row(layout, call.failures[ref.index], ref.index + 1)
        if ref.kind == "back":
            return answer.back_row(layout, call)
        if ref.kind == "residual":
            return answer.residual_row(layout, call)
        if ref.kind == "answer":
            return answer.answer_row(layout, call)
        if ref.kind == "tool":
            tool = call.tools[ref.index]
            return answer.tool_row(layout, tool, asks=tool.index in self.view.asking, over=self.view.over)
        return answer.live_row(layout, self.live or LiveCall("waiting"))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """An entry in as many lines as its origin and its reason need, and a failed try in those of its reason."""
        ref, layout = self.refs[index], self._columns(width)
        if ref.kind == "failure":
            return answer.failure_lines(layout, self.call.failures[ref.index], ref.index + 1)
        if ref.kind != "entry":
            return ()
        one, reason, broken = self._told(ref.index)
        return entry.entry_lines(layout, self._entry_row(ref.index, width), one, reason, broken)

    @property
    def wanted_width(self) -> int:
        """Cells in which no reason and no origin is cut."""
        return wanted(len(self.call.entries), self._needed, marked=self.view.compare)

    def _columns(self, width: int) -> Columns:
        return columns(width, len(self.call.entries), self._needed, marked=self.view.compare)

    @cached_property
    def _needed(self) -> Needs:
        """Measures the contents of the columns. Of a long context the reasons and origins at both ends stand for
        all."""
        entries = self.call.entries
        ends = list(range(len(entries)))
        if len(entries) > 2 * MEASURED:
            ends = [*ends[:MEASURED], *ends[-MEASURED:]]
        told = [self._told(index) for index in ends]
        most = max((max(one.tokens_full, one.tokens_sent) for one in entries), default=0)
        most = max(most, self.call.tools_tokens, abs(self.overhead.full), abs(self.overhead.sent))
        sources = [flat(origin(one)).removeprefix("↪ ") for one, _, _ in told]
        sources += [entry.overhead_name(self.overhead)] if any(self.overhead) else []
        sources += [entry.DEFINITIONS] if self.call.tools_tokens else []
        sources += [answer.ANSWER] if self.call.answer is not None else []
        parts = [part for one, _, _ in told for part in one.parts]
        names = max((cell_len(flat(part.origin)) for part in parts), default=0) - ROLE - 1
        reasons = [flat(broken[0].message if broken else why) for _, why, broken in told]
        return Needs(
            max(names, max(map(cell_len, sources), default=0)),
            max((cell_len(entry.short_source(one)) for one in sources), default=0),
            max(map(cell_len, (*reasons, *(flat(entry.part_reason(part)) for part in parts))), default=0),
            len(count(most, self.call.grade)),
            LINE if self.view.filed else 0,
        )

    def _told(self, index: int) -> tuple[Entry, str, list[BrokenInvariant]]:
        """An entry, why it is as it is, and the rules that it breaks."""
        one = self.call.entries[index]
        was = self._before.get(_key(one)) if self.changes.get(index) == "altered" else None
        reason = entry.reason_of(one, self.call.place, self._earlier, was) + self._mark(index)
        return one, reason, [broken for broken in self.call.problems if broken.entry == index]

    def _entry_row(self, index: int, width: int) -> Row:
        one, reason, broken = self._told(index)
        return entry.entry_row(
            self._columns(width),
            index,
            one,
            reason,
            grade=self.call.grade_of(one),
            cached=index in self.cached,
            change=self.changes.get(index, ""),
            broken=broken,
        )

    def _mark(self, index: int) -> str:
        return " · cached up to here" if index in self._marked else ""

    def plain(self, index: int) -> str:
        one = self.entry(index)
        if one is None:
            return self.row(index, 400).text.strip()
        message = one.item.message
        calls = " ".join(f"{call.name} {call.arguments}" for call in message.tool_calls)
        return f"{message.role} {origin(one)} {explain(one, self.call.place, self._earlier)} {message.text} {calls}"


def title_of(place: Place, max_turns: int = 0, aside: str = "") -> tuple[Span, ...]:
    """``Context · triage · turn 3/6 · attempt 2``; counts that are 1 and cannot be more are left out. ``aside``: the
    name of a call beside the turns."""
    turn = f"turn {place.turn}" + (f"/{max_turns}" if max_turns > 1 else "") if place.turn else flat(aside)
    parts = [WHOLE if place.is_whole else flat(place.phase), turn]
    if place.visit > 1:
        parts.insert(1, f"visit {place.visit}")
    if place.attempt > 1:
        parts.append(f"attempt {place.attempt}")
    if place.turn and place.call > 1:
        parts.append(f"call {place.call}")
    if place.branch and place.phase_words != place.phase:
        parts.append(flat(place.branch))
    return (("Context", "title"), ("  " + " · ".join(parts), "name"))


def strategy_words(call: CallState, *, filed: bool) -> str:
    """Returns the strategy of a call. ``filed``: whether a file decided; else the part that takes what the file
    selects is left out, and without any other all is sent as the program made it."""
    if filed:
        return flat(call.strategy)
    return AS_MADE if call.strategy == SELECTED else flat(call.strategy).removeprefix(f"{SELECTED}+")


SELECTED, AS_MADE = "selective", "as the program made it"
"""What a watched or imported run has in the place of the rules of a file, and how that is said."""


def brief(strategy: str, room: int) -> str:
    """A strategy with as many parameters as fit; every part stays named: ``mask(after=2,…)+loop(…)``. Unchanged if not
    even its names fit.
    """
    parts = re.split(r"\+(?![^(]*\))", strategy)
    given = [part[:-1].partition("(") if part.endswith(")") else (part, "", "") for part in parts]
    names, values = [name for name, _, _ in given], [text.split(",") if mark else [] for _, mark, text in given]
    text, kept = strategy, [len(found) for found in values]
    while cell_len(text) > room and any(kept):
        most = kept.index(max(kept))
        kept[most] -= 1
        text = "+".join(
            f"{name}({','.join([*found[:left], *['…'][: len(found) - left]])})" if found else name
            for name, found, left in zip(names, values, kept, strict=True)
        )
    return text if cell_len(text) <= room else strategy


def summary(call: CallState, width: int, budget: int | None = None) -> tuple[Span, ...]:
    """The numbers of a call in one line: as much of it as there is room for, the most telling first."""
    if call.unsent:
        return ((" ", "plain"), ("nothing was sent", "bold"))
    predicted, took = PredictedUsage.of(call), CallInput.of(call)
    full = f" of {count(took.full, call.grade)}" if took.full != took.sent else ""
    parts: list[list[Span]] = [[("sends ", "dim"), (count(took.sent, took.grade), "bold"), (f"{full} tok", "dim")]]
    if call.problems:
        beyond = all(broken.invariant == WINDOW for broken in call.problems)
        said = " beyond the context window" if beyond else f" {plural(len(call.problems), 'broken rule')}"
        rules = Target(said, "tab.problems")
        parts.append([sign("broken"), (rules, "error")])
    if call.forecast is not None:
        saves = "cached" if took.cached else "plain"  # Nothing cached is no good news.
        parts.append([("cached ", "dim"), (count(took.cached, took.cached_grade), saves)])
        if took.cached:  # All of it is, if not.
            parts.append([("fresh ", "dim"), (count(took.fresh, took.cached_grade), "plain")])
        if predicted.cost is None:
            parts.append([(UNPRICED, "dim")])
        else:
            parts.append([(money(predicted.cost), "plain"), (" predicted", "dim")])
    if (marks := marks_in(call)) is not None and marks.at:
        named = ", ".join(one if isinstance(one, str) else f"message {one + 1}" for one in marks.at)
        parts.append([("marks ", "dim"), (named, "cached"), (f" for {marks.ttl}", "dim")])
    if budget is not None:
        over = call.tokens_sent > budget
        parts.append([("budget ", "dim"), (count(budget), "error" if over else "plain")])
    if not call.problems:
        parts.append([sign("done"), (" valid", "dim")])
    if (saved := took.full - took.sent) > 0:
        parts.append([sign("masked"), (f" {count(saved, call.grade)} saved", "masked")])
    return ((" ", "plain"), *dropping(parts, width - 1))


def marks_in(call: CallState) -> Marks | None:
    """The cache marks of a call's request: those of its parameters, else the default ones if they make the provider
    write; None without marks.
    """
    given = call.parameters.get(PARAMETER)
    if given is not None:
        return Marks.from_json(given)
    return LIVE_MARKS if call.forecast is not None and call.forecast.written else None


def changes(call: CallState, before: Mapping[Key, Entry]) -> dict[int, str]:
    """By entry: ``new`` or ``altered`` against the call before; what stayed the same is left out."""
    result: dict[int, str] = {}
    for index, one in enumerate(call.entries if before else ()):
        was = before.get(_key(one))
        if was is None:
            result[index] = "new"
        elif was.action is not one.action or was.sent != one.sent:
            result[index] = "altered"
    return result


def _against(before: CallState, found: dict[int, str]) -> tuple[Span, ...]:
    """``against turn 2: +2 new ±1 altered``."""
    kinds = list(found.values())
    return (
        (f"against turn {before.place.turn}: ", "dim"),
        sign("new"),
        (f"{kinds.count('new')} new ", "dim"),
        sign("altered"),
        (f"{kinds.count('altered')} altered", "dim"),
    )


def _key(one: Entry) -> Key:
    return one.item.message.body_hash, one.item.place


def _by_key(call: CallState | None) -> dict[Key, Entry]:
    return {_key(one): one for one in call.entries} if call is not None else {}


def cached_entries(call: CallState) -> frozenset[int]:
    """Indices of the entries inside the reusable prefix."""
    if call.forecast is None or not call.forecast.cached:
        return frozenset()
    result, sent = set(), 0
    for index, one in enumerate(call.entries):
        if one.sent is None:
            continue
        if sent >= call.forecast.break_at:
            break
        result.add(index)
        sent += 1
    return frozenset(result)
