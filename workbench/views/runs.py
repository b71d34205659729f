"""The list of runs: a line for each, in columns that fit the width, and a card with all there is to say of one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict
from rich.cells import cell_len

from workbench.context.place import Place
from workbench.store.catalog import ASCENDING
from workbench.store.summary import EXCERPT, WAITING, RunSummary
from workbench.views.annotations import call_words, found_words, label_words, score_words, tag_words, verdict
from workbench.views.cells import Row, Span, Target, crop, fit, fit_ends, flat, width_of
from workbench.views.filter_result import marked
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import (
    UNKNOWN,
    day_and_time,
    made_in_full,
    plural,
    recorded_in_full,
    seconds,
    spent_cell,
    took_words,
)
from workbench.views.run import counted, local_time, note_of, origin_words
from workbench.views.signs import sign, status_cell, status_sign
from workbench.views.text import TextLine, TextRows, drawn_line, text_lines, wrapped
from workbench.views.value import Block, Cell, Column, Table, View
from workbench.views.words import ended_words

if TYPE_CHECKING:
    from workbench.engine.journal.annotations import Labels
    from workbench.store.catalog import Member
    from workbench.store.run_filter import RunMatch
    from workbench.store.text_search import Hit
    from workbench.workspace.home import DemoFolder
    from workbench.workspace.runs_poller import Listing

BEGINNING = 200
"""Characters of a text that a column shows at most; below it, or in a column of several lines, all goes on that a
summary holds."""
ROOMY = 100
"""Cells from which on there is room for more than what a run was asked, said and cost."""
WIDE = 150
"""Cells from which on dates have their year."""


class _Column(NamedTuple):
    """A column of the list: its title, cells, and whether it stands to the right."""

    title: str
    size: int
    right: bool = False


class _Sizes(NamedTuple):
    """Width of the longest text of each column; 0 if no run has any."""

    name: int
    model: int
    tags: int
    score: int
    cascade: int
    input: int
    cost: int
    who: int
    output: int
    took: int
    calls: int
    tokens: int


@lru_cache(maxsize=64)
def _columns(width: int, sizes: _Sizes, order: str) -> tuple[_Column, ...]:
    """The columns that fit, the most useful first; input and output share the rest.

    Which model a run asked says more than its tokens, so that a narrow column of models comes before theirs.
    """
    name = min(40, max(16, min(sizes.name, width * 24 // 100)))
    texts = 26 if width < ROOMY else 34 if width < WIDE else 60
    left = width - 4 - name
    arrow = {_TITLE_OF.get(order, order): 1}
    tokens, calls, took, score = (
        _Column(title, max(longest, len(title) + arrow.get(title, 0)) + 2, True)
        for title, longest in (
            ("tokens", sizes.tokens),
            ("calls", sizes.calls),
            ("took", sizes.took),
            ("score", sizes.score),
        )
    )
    cascade = _sized("cascade", sizes.cascade, 22)
    ordered = {"tokens": tokens, "seconds": took, "calls": calls, "score": score, "cascade": cascade}
    wanted = (
        ordered.get(order, _Column("", 0)),  # The column that an order goes by is always there.
        _Column("started", 18 if width >= WIDE else 13),
        _Column("cost", min(max(sizes.cost, 4) + 2, 14), True),
        _Column("score", min(max(sizes.score, 5) + 2, 12), True) if sizes.score else _Column("", 0),
        _sized("who", sizes.who, 20),
        _sized("tags", sizes.tags, 22),
        _sized("model", sizes.model, 26 if width >= WIDE else 19),
        _sized("model", sizes.model, 14),
        tokens,
        took if sizes.took else _Column("", 0),
        calls,
        cascade,
    )
    chosen: dict[str, _Column] = {}
    for column in wanted:
        if column.size and column.title not in chosen and (left - column.size >= texts or column is wanted[0]):
            chosen[column.title] = column
            left -= column.size
    share = max(left * 42 // 100, left - 2 - sizes.output)
    given = max(8, min(sizes.input + 2, share))
    chosen |= {"input": _Column("input", given), "output": _Column("output", max(0, left - given - 2))}
    shown = (chosen[title] for title in _ORDER if title in chosen)
    return (_Column("session", name), *shown)


def _sized(title: str, longest: int, most: int) -> _Column:
    """A column of text as wide as its longest text and its title, and of no width without any text."""
    return _Column(title, min(max(longest, len(title)) + 2, most) if longest else 0)


_ORDER = ("started", "took", "calls", "tokens", "cost", "score", "who", "tags", "model", "cascade", "input", "output")
SORT = "runs.sort:"
"""The command of a column's title begins so; the order follows, a key of ``ORDERS``."""
_ORDER_OF = {"started": "newest", "took": "seconds"} | {
    name: name for name in ("tokens", "calls", "cost", "score", "cascade")
}
"""The order that a column's title stands for."""
_TITLE_OF = {order: title for title, order in _ORDER_OF.items()}
ORDER_WORDS: Mapping[str, tuple[str, str, str]] = {
    "newest": ("n", "newest first", "oldest first"),
    "cost": ("c", "by cost", "by cost, the least first"),
    "tokens": ("t", "by tokens", "by tokens, the fewest first"),
    "seconds": ("d", "by duration", "by duration, the shortest first"),
    "calls": ("l", "by calls", "by calls, the fewest first"),
    "score": ("s", "by score", "by score, the lowest first"),
    "status": ("f", "by status, failures first", "by status, failures last"),
    "cascade": ("a", "by cascade, A to Z", "by cascade, Z to A"),
}
"""For each of ``ORDERS``: the key that chooses it, its words, and those of the same the other way round."""
_TOLD = ("running", "failed", "blocked", "diverged", "stopped")
"""Statuses whose runs the title counts."""
_GAP_BEFORE = ("who", "tags", "model", "cascade", "input")
"""Columns of text: the first of them stands two cells from the numbers before it."""


class RunsView(View):
    """Stored runs, newest first, with the places that the filter found."""

    def __init__(self, found: Sequence[RunMatch]) -> None:
        self.found = found

    def blocks(self) -> Iterator[Block]:
        rows = [_cells(one.run) for one in self.found]
        used = [i for i, column in enumerate(COLUMNS) if not column.leaves_empty or any(row[i].text for row in rows)]
        yield Table([COLUMNS[i].column for i in used], [[row[i] for i in used] for row in rows])
        for one in self.found:
            labels = dict(one.run.call_labels)
            for at in one.calls:
                yield (Cell(f"{one.run.name}@", "dim"), found_words(Place.parse(at), labels[at]))
            for phrase, hit in one.hits.items():
                if hit.call not in one.calls:
                    at = f"@{call_words(Place.parse(hit.call))}" if hit.call else ""
                    yield (Cell(f"{one.run.name}{at} {hit.place}".rstrip() + ": ", "dim"), hit.excerpt or phrase)

    def json(self) -> list[dict[str, Any]]:
        return [found_json(one) for one in self.found]


class _Printed(NamedTuple):
    """A column of the table, and whether it is left out if it is empty in all rows."""

    column: Column
    leaves_empty: bool = False


COLUMNS = (
    _Printed(Column("session", flexible=True, least=30)),
    _Printed(Column("who", flexible=True, leaves=7, most=30), leaves_empty=True),
    _Printed(Column("status")),
    _Printed(Column("started", leaves=9)),
    _Printed(Column("took", right=True, leaves=4), leaves_empty=True),
    _Printed(Column("calls", right=True, leaves=2)),
    _Printed(Column("in", right=True, leaves=5)),
    _Printed(Column("out", right=True, leaves=3)),
    _Printed(Column("cost", right=True, leaves=10)),
    _Printed(Column("score", right=True, leaves=8), leaves_empty=True),
    _Printed(Column("tags", flexible=True, leaves=7, most=30), leaves_empty=True),
    _Printed(Column("input", flexible=True, leaves=6, most=40), leaves_empty=True),
    _Printed(Column("output", flexible=True, leaves=6, most=40), leaves_empty=True),
    _Printed(Column("cascade", flexible=True, leaves=1)),
    _Printed(Column("model", flexible=True, leaves=1)),
    _Printed(Column("note", flexible=True, leaves=8), leaves_empty=True),
)


def _cells(run: RunSummary) -> list[Cell]:
    return [
        Cell(run.name, "name"),
        Cell(who_words(run), "dim"),
        status_cell(run_status(run)),
        Cell(local_time(run.started), "dim"),
        Cell(_took(run), "dim"),
        Cell(counted(run, run.calls)),
        Cell(counted(run, run.tokens_in, run.grade_in)),
        Cell(UNKNOWN if run.told_out is None else counted(run, run.told_out)),
        Cell(cost_words(run)),
        Cell(verdict(run.labels), "", f"{score_words(run.labels.score)} {run.labels.thumb}".strip()),
        Cell(tag_words(run.labels), "accent"),
        Cell(given_words(run)),
        Cell(flat(run.output, BEGINNING)),
        Cell(run.cascade_file or run.cascade_id),
        Cell(run.model or UNKNOWN),
        Cell(note_of(run), _note_token(run)),
    ]


def given_words(run: RunSummary, limit: int = BEGINNING) -> str:
    """Its input in one line: the values alone, since the names are the same in every run of a cascade; cut at so many
    characters."""
    values = (line.partition(": ")[2] or line for line in run.input.split("\n"))
    words = " · ".join(value.strip() for value in values if value.strip())
    return flat(f"{words}…" if len(run.input) >= EXCERPT and run.excerpt else words, limit)


def _took(run: RunSummary) -> str:
    return "" if run.seconds is None else seconds(run.seconds)


def _tokens(run: RunSummary) -> str:
    return counted(run, run.tokens_in + run.tokens_out, run.grade_in)


def cost_words(run: RunSummary) -> str:
    """Its cost in a cell: as billed, with ``~`` where a part is predicted, ``–`` if unknown."""
    return spent_cell(run.spent, run.missing) or UNKNOWN


def _note_token(run: RunSummary) -> str:
    return "error" if run.fault else "dim"


def listed_json(run: RunSummary) -> dict[str, Any]:
    """A run of a list in one object; unknown costs and counts are null."""
    body = asdict(run)
    del body["labels"], body["call_labels"], body["asking"]
    body |= run.labels.to_json() | {"annotated_calls": {at: labels.to_json() for at, labels in run.call_labels}}
    predicted, before = body.pop("predicted") or None, body.pop("recorded_cost") or None
    billed = None if run.unknown_costs and run.unknown_costs == run.spent.calls + run.embedded else run.cost
    body |= {
        "cost": billed,
        "predicted_cost": predicted,
        "recorded_cost": before,
        "seconds": run.seconds,
        "tokens_out": run.told_out,
        "recorded_tokens_out": run.recorded_told_out,
    }
    body["waiting"] = run.waiting
    if run.fault:  # What no record tells is not nothing.
        body |= {name: body[name] or None for name in ("calls", "tools", "tokens_in", "tokens_out", "cost")}
    return body


def found_json(found: RunMatch) -> dict[str, Any]:
    """A run that was found, with where its words stand."""
    hits = {phrase: asdict(hit) for phrase, hit in found.hits.items()}
    return listed_json(found.run) | {"found": hits, "found_calls": list(found.calls)}


READABLE, NARROW, BELOW = 44, 16, 6
"""Cells of its column from which on a long text always goes on in it, and those from which on it does so if it takes
fewer lines than below the row; and how far in it stands there."""


class RunRows(Rows):
    """A listing, drawn on demand. ``marked`` are run ids that a comparison is about to take."""

    spreads = True

    def __init__(
        self,
        listing: Listing,
        marked: Set[str] = frozenset(),
        open_id: str = "",
        demo: DemoFolder | None = None,
        *,
        beside_card: bool = False,
    ) -> None:
        """``open_id`` is the run that the Bench shows; ``demo`` the demo whose folder is listed. ``beside_card``: a
        card tells the run under the cursor."""
        self.told_beside = beside_card
        self.members: Sequence[Member] = listing.members
        self._calls = listing.calls
        runs = [member.run for member in self.members]
        self._sizes = _Sizes(
            max(map(_needs, self.members), default=0),
            max((cell_len(model_words(run)) for run in runs), default=0),
            max((cell_len(tag_words(run.labels)) for run in runs), default=0),
            max((cell_len(verdict(run.labels)) for run in runs), default=0),
            max((cell_len(cascade_name(run)) for run in runs), default=0),
            max((cell_len(given_words(run)) for run in runs), default=0),
            max((cell_len(cost_words(run)) for run in runs), default=0),
            max((cell_len(who_words(run)) for run in runs), default=0),
            max((width_of(self._said(member)) for member in self.members), default=0),
            max((cell_len(_took(run)) for run in runs), default=0),
            max((cell_len(counted(run, run.calls)) for run in runs), default=0),
            max((cell_len(_tokens(run)) for run in runs), default=0),
        )
        self._wholes: dict[tuple[int, int], tuple[Row, ...]] = {}
        """Kept, as each key asks for those of all rows in view."""
        self._order, self._turned = listing.wanted.order, listing.wanted.turned
        self._marked = marked
        self._open = open_id
        wanted = listing.wanted
        self.title = (("Runs", "title"),)
        if wanted.text:
            self.title += ((f"  {flat(wanted.text, 120)}", "name"),)
        if wanted.order != "newest" or wanted.turned:
            self.title += ((f"  {ORDER_WORDS[wanted.order][1 + wanted.turned]}", "dim"),)
        self.title_right = _right(listing)
        self.empty = _nothing(listing, demo)

    def __len__(self) -> int:
        return len(self.members)

    def heads(self, width: int) -> Sequence[Row]:
        if not self.members:
            return ()
        texts = False
        cells: list[str] = ["    "]
        for column in _columns(width, self._sizes, self._order):
            cells.append(_gap(column, texts))
            texts = texts or column.title in _GAP_BEFORE
            title = f"  {column.title}" if column.title == "session" else column.title
            order = _ORDER_OF.get(column.title)
            if order == self._order:
                title += "↑" if (order in ASCENDING) is not self._turned else "↓"
            text = fit(title, column.size, "right" if column.right else "left")
            cells.append(text if order is None else Target(text, f"{SORT}{order}"))
        runs = (list(group) for _, group in groupby(cells, lambda cell: isinstance(cell, Target)))
        parts = (group if isinstance(group[0], Target) else ["".join(group)] for group in runs)
        return (Row(crop([(text, "head") for group in parts for text in group], width)),)

    def row(self, index: int, width: int) -> Row:
        return self._row(index, width)

    def _row(self, index: int, width: int, said: Mapping[str, Sequence[Span]] = {}) -> Row:
        """A row; ``said`` takes the place of the texts of columns, by their titles."""
        member = self.members[index]
        run = member.run
        spans: list[Span] = [(" ", "plain"), self._mark(run), _glyph(run), (" ", "plain")]
        texts = False
        for column in _columns(width, self._sizes, self._order):
            spans.append((_gap(column, texts), "plain"))
            texts = texts or column.title in _GAP_BEFORE
            if column.title in said:
                spans += said[column.title]
                spans.append((" " * (column.size - width_of(said[column.title])), "plain"))
            else:
                spans += self._cell(member, column, year=width >= WIDE)
        return Row(crop(spans, width), "selected" if run.run_id in self._marked else "")

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """The row with its whole input and output: in their columns, or below the row where those are narrow."""
        if (lines := self._wholes.get((index, width))) is None:
            lines = self._wholes[index, width] = self._whole(index, width)
        return lines

    def _whole(self, index: int, width: int) -> tuple[Row, ...]:
        at, texts, all_texts = 4, False, self._texts(index)
        cut: dict[str, tuple[int, int]] = {}
        for column in _columns(width, self._sizes, self._order):
            at += len(_gap(column, texts))
            texts = texts or column.title in _GAP_BEFORE
            if column.title in all_texts and width_of(all_texts[column.title]) >= column.size:
                cut[column.title] = at, column.size
            at += column.size
        inside: dict[str, tuple[int, tuple[tuple[Span, ...], ...]]] = {}
        below: dict[str, tuple[tuple[Span, ...], ...]] = {}
        high = 1
        for title, (start, size) in sorted(cut.items(), key=lambda one: -one[1][1]):
            in_column = wrapped(all_texts[title], max(8, size - 1))
            under = wrapped(all_texts[title], max(8, width - BELOW - len(title) - 3))
            if size >= READABLE or (size >= NARROW and len(in_column) < high + len(under)):
                inside[title] = start, in_column
                high = max(high, len(in_column))
            else:
                below[title] = under
        inside = {title: inside[title] for title in cut if title in inside}  # From left to right again.
        below = {title: below[title] for title in cut if title in below}
        if not inside and not below:
            return ()
        beside: dict[str, Sequence[Span]] = dict.fromkeys(below, ())
        beside |= {title: lines[0] for title, (_, lines) in inside.items()}
        first = self._row(index, width, beside)
        rows = [first]
        for number in range(1, max((len(lines) for _, lines in inside.values()), default=0)):
            spans: list[Span] = []
            for start, lines in inside.values():
                if number < len(lines):
                    spans += ((" " * (start - width_of(spans)), "plain"), *lines[number])
            rows.append(Row(crop(spans, width), first.tone))
        for title, under in below.items():
            name = f"{title}  "
            for number, line in enumerate(under):
                indent = " " * (BELOW + (len(name) if number else 0))
                rows.append(Row(crop(((indent, "plain"), ("" if number else name, "head"), *line), width), first.tone))
        return tuple(rows)

    def _texts(self, index: int) -> Mapping[str, Sequence[Span]]:
        """What a run was given, and what it said at last."""
        member = self.members[index]
        return {"input": ((given_words(member.run, EXCERPT), _dim(member)),), "output": self._said(member, EXCERPT)}

    def _said(self, member: Member, limit: int = BEGINNING) -> tuple[Span, ...]:
        """The calls that the filter fits, then the output."""
        labels = dict(member.run.call_labels)
        calls = [
            found_words(Place.parse(at), labels[at]) for at in self._calls.get(member.run.run_id, ()) if at in labels
        ]
        return (*(((" · ".join(calls) + " · ", "accent"),) if calls else ()), *_output(member, limit))

    def _cell(self, member: Member, column: _Column, *, year: bool) -> tuple[Span, ...]:
        run, dim = member.run, _dim(member)
        match column.title:
            case "session":
                return _name(member, column.size)
            case "output":
                return crop(self._said(member), column.size)
            case "started":
                text, token = day_and_time(run.started, year=year), "dim"
            case "took":
                text, token = _took(run), "dim"
            case "calls":
                text, token = counted(run, run.calls), dim
            case "tokens":
                text, token = _tokens(run), dim
            case "cost":
                text, token = cost_words(run), dim
            case "score":
                text, token = verdict(run.labels), _verdict_token(run)
            case "who":
                text, token = who_words(run), "name"
            case "tags":
                text, token = tag_words(run.labels), "accent"
            case "model":
                text, token = _models_in(run, column.size - 1), "dim"
            case "cascade":
                text, token = cascade_name(run), "dim"
            case _:
                text, token = given_words(run), dim
        return ((fit(text, column.size - (0 if column.right else 1), "right" if column.right else "left"), token),) + (
            () if column.right else ((" ", "plain"),)
        )

    def _mark(self, run: RunSummary) -> Span:
        if run.run_id in self._marked:
            return sign("marked")
        return sign("shown") if run.run_id == self._open else (" ", "plain")

    def plain(self, index: int) -> str:
        run = self.members[index].run
        parts = (run.name, run.status, run.cascade_id, tag_words(run.labels), note_of(run), run.input, run.output)
        return " ".join(filter(None, parts))

    def index_of(self, run_id: str) -> int | None:
        """The row of a run; None if it is not listed."""
        return next((i for i, member in enumerate(self.members) if member.run.run_id == run_id), None)


def who_words(run: RunSummary) -> str:
    """User and machine of a run on a team's server."""
    return flat("@".join(filter(None, (run.user, run.machine))), 60)


def cascade_name(run: RunSummary) -> str:
    """Its id, else its file; empty if the journal has neither."""
    return run.cascade_id or run.cascade_file


def model_words(run: RunSummary) -> str:
    """The models that its calls were sent to, without their providers."""
    return ", ".join(dict.fromkeys(model.rpartition("/")[2] for model in run.model.split(", ") if model))


def _gap(column: _Column, texts: bool) -> str:
    return "  " if column.title in _GAP_BEFORE and not texts else ""


def _verdict_token(run: RunSummary) -> str:
    return sign(f"thumb {run.labels.thumb}")[1] if run.labels.thumb else "plain"


def _dim(member: Member) -> str:
    """How the texts of a run look: those of a nested one are dim."""
    return "dim" if member.run.depth else "plain"


def _output(member: Member, limit: int = BEGINNING) -> tuple[Span, ...]:
    """The run's origin and its problem, then its output, cut at so many characters."""
    run = member.run
    said = f"{run.output}…" if len(run.output) >= EXCERPT and run.excerpt else run.output
    note, output = note_of(run, named=not member.depth), flat(said, limit)
    told = ((f" · {output}", "dim"),) if note and output else ((output, _dim(member)),)
    return (((note, _note_token(run)),) if note else ()) + (told if output else ())


def _models_in(run: RunSummary, width: int) -> str:
    """The models of a run; if they have no room, the first, cut in its middle, and how many there are besides."""
    words = model_words(run)
    if cell_len(words) <= width:
        return words
    first, *others = words.split(", ")
    more = f" +{len(others)}" if others else ""
    return fit_ends(first, width - len(more)).rstrip() + more


def _needs(member: Member) -> int:
    """Cells of the column of names for one run."""
    hidden = len(f" +{member.hidden}") if member.hidden else 0
    return min(member.depth * 2, 12) + 2 + cell_len(flat(member.run.name, 80)) + hidden + 2


def _glyph(run: RunSummary) -> Span:
    return sign("failed") if _is_torn(run) else status_sign(run_status(run))


def counts(run: RunSummary, number: int, thing: str) -> str:
    """``3 calls``; ``3+ calls`` or ``– calls`` of a damaged run."""
    return f"{counted(run, number)} {thing}s" if run.fault else plural(number, thing)


def _is_torn(run: RunSummary) -> bool:
    """Returns whether its end is lost, so that its status is unknown."""
    return run.damaged and run.status == "interrupted"


def run_status(run: RunSummary) -> str:
    """Returns how it ended or stands, in a word."""
    return "damaged" if _is_torn(run) else WAITING if run.waiting else run.status


def _name(member: Member, width: int) -> tuple[Span, ...]:
    indent = min(member.depth * 2, 12)
    fold = "▸ " if member.hidden else "▾ " if member.branches else "  "
    hidden = f" +{member.hidden}" if member.hidden else ""
    room = width - 1 - indent - len(fold) - len(hidden)
    name = flat(member.run.name)
    return (
        (" " * indent + fold, "faint"),
        (fit_ends(name, max(4, room)), "name" if not member.run.depth else "dim"),
        (hidden + " ", "faint"),
    )


def _right(listing: Listing) -> tuple[Span, ...]:
    if (fault := listing.fault) is not None:  # What is wrong shows where what would be right has no room, too.
        hint: tuple[Span, ...] = ((f" · {flat(fault.hint, 120)}", "error"),) if fault.hint else ()
        return ((f"column {fault.column}: {flat(fault.message, 120)}", "error"), *hint)
    if listing.searching:
        return ((f"{listing.searching}, {listing.matching:,} found", "running"),)
    matching: Span = (plural(listing.total, "run"), "dim")
    if listing.wanted.text:
        matching = f"{listing.matching:,} of {matching[0]}", "changed"
    found = ((status, listing.statuses.get(status, 0)) for status in _TOLD)
    counted: tuple[Span, ...] = tuple(
        (f" · {number:,} {status}", status_sign(status)[1]) for status, number in found if 0 < number < listing.matching
    )
    cost = spent_cell(listing.spent, listing.missing) if listing.matching else ""
    return (matching, *counted, *(((f" · {cost}", "dim"),) if cost else ()))


def _nothing(listing: Listing, demo: DemoFolder | None) -> tuple[str, ...]:
    if listing.searching:
        return ("Looking …",)
    if listing.wanted.text:
        return (
            "No run matches.",
            told("{runs.filter} changes the filter, {runs.close} clears it."),
            'To search what runs said: text:"rate limit"',
        )
    none = ("No run is stored here yet.", told("Open a cascade and press {run.start}, or: workbench run FILE"))
    if demo is None:
        return none
    if demo.earlier is None:
        return (*none, "Each demo has a folder of its own.")
    return (
        *none,
        "Each demo has a folder of its own. The last one with runs opens with:",
        f"cd {flat(shlex.quote(str(demo.earlier)))} && workbench open",
    )


class CardRows(TextRows):
    """All there is to say of one run."""

    def __init__(self, listing: Listing, run: RunSummary) -> None:
        hits = listing.hits.get(run.run_id, {})
        lines = [
            *(TextLine(text, token) for text, token in _head(run) if text),
            *_labels("", run.labels),
            *(line for at, labels in run.call_labels for line in _labels(call_words(Place.parse(at)), labels)),
            *_said(hits, run),
            *_text("input", run.input, hits),
            *_text("output", run.output, hits),
            *((TextLine(told("… {list.open} opens the run with the rest"), "faint"),) if run.excerpt else ()),
            TextLine(""),
            *(TextLine(text, token) for text, token in _foot(run) if text),
        ]
        right: tuple[Span, ...] = (_glyph(run), (f" {run_status(run)}", _glyph(run)[1]))
        super().__init__(lines, ((flat(run.name, 80), "title"),), right)


def _labels(at: str, labels: Labels) -> Iterator[TextLine]:
    """Yields the labels that people gave to the run, or to one of its calls."""
    if not labels:
        return
    name: tuple[Span, ...] = ((f"{at}  ", "name"),) if at else ()
    words = label_words(labels)
    if words or at:
        yield drawn_line([*name, (words, "accent")])
    for text in labels.notes:
        first, *more = text_lines(text)
        yield drawn_line([sign("note"), (f" {first.text}", "plain")])
        yield from (TextLine(f"  {line.text}") for line in more)


def _text(name: str, text: str, hits: Mapping[str, Hit]) -> Iterator[TextLine]:
    """The input or the output under its name, with what the filter looks for marked."""
    if not text.strip():
        return
    yield TextLine("")
    yield TextLine(name, "head")
    for line in text_lines(text.strip()):
        spans: tuple[Span, ...] = ((line.text, "plain"),)
        for phrase in hits:
            spans = tuple(
                part for span in spans for part in (marked([span], phrase) if span[1] == "plain" else (span,))
            )
        yield drawn_line(spans) if len(spans) > 1 else line


def _said(hits: Mapping[str, Hit], run: RunSummary) -> list[TextLine]:
    """The place that the filter found, unless the card shows it anyway."""
    return [
        drawn_line(
            [
                (f"“{phrase}” {_where(hit)}: ", "accent"),
                *marked([(hit.excerpt, "plain")], phrase),
            ]
        )
        for phrase, hit in hits.items()
        if run.excerpt or hit.place not in ("input", "output", "note")
    ]


def _where(hit: Hit) -> str:
    return (
        f"in its {hit.place}"
        if hit.place in ("input", "output", "note")
        else f"at {hit.place or 'its beginning or end'}"
    )


def _head(run: RunSummary) -> list[tuple[str, str]]:
    took = "" if run.seconds is None else f", took {took_words(run.seconds, run.paused)}"
    by = "" if not run.models else ", offline" if run.models == ("offline",) else f", by {', '.join(run.models)}"
    numbers = [counts(run, run.calls, "call"), counts(run, run.tools, "tool call")]
    tokens_out = UNKNOWN if run.told_out is None else counted(run, run.told_out)
    numbers += [f"{counted(run, run.tokens_in, run.grade_in)} tokens in", f"{tokens_out} out"]
    numbers += [made_in_full(run.spent) or UNKNOWN, *filter(None, (recorded_in_full(run),))]
    numbers += [f"with {plural(run.inside, 'run')} inside"] if run.inside else []
    numbers += [f"without {plural(run.missing, 'run')} inside, unknown"] if run.missing else []
    numbers += [plural(run.warnings, "warning")] if run.warnings else []
    numbers += [plural(run.edited, "edit")] if run.edited else []
    ended = ended_words(run.status, run.reason) if run.reason and not _is_torn(run) else ""
    return [
        (f"damaged: {run.fault}" if run.fault else "", "error"),
        (f"{day_and_time(run.started)}{took}{by}", "plain"),
        (" · ".join(numbers), "plain"),
        (ended, status_sign(run.status)[1]),
        (told("stopped after {at}: {runs.resume} resumes", at=run.at) if run.resumable and run.at else "", "changed"),
    ]


def _foot(run: RunSummary) -> list[tuple[str, str]]:
    definition = ". Its cascade differs from that of the original run." if run.redefined else ""
    return [
        (origin_words(run) + definition, "accent"),
        (f"phases {' → '.join(run.phases)}" if run.phases else "", "dim"),
        (f"run by {who_words(run)}" if who_words(run) else "", "dim"),
        (f"{run.cascade_file or run.cascade_id}   run {run.run_id}".strip(), "faint"),
    ]
