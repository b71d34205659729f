"""The list of runs: a line for each, in columns that fit the width, and a card with all there is to say of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict
from rich.cells import cell_len

from workbench.store.summary import RunSummary
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.filter_result import marked
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import UNKNOWN, day_and_time, plural, seconds, spent_words
from workbench.views.run import counted, local_time, note_of, origin_words
from workbench.views.signs import sign, status_cell, status_sign
from workbench.views.text import TextLine, TextRows, drawn_line
from workbench.views.value import Block, Cell, Column, Table, View

if TYPE_CHECKING:
    from workbench.store.catalog import Member
    from workbench.store.run_filter import RunMatch
    from workbench.workspace.runs_poller import Listing

ROOMY = 100
"""Cells from which on dates have their year and cascades a column."""


CLOSE = 64
"""Cells below which numbers stand closer."""


class _Columns(NamedTuple):
    """Cells of each column; 0 where it is left out."""

    name: int
    when: int
    took: int
    calls: int
    tokens: int
    cost: int
    cascade: int
    note: int


@lru_cache(maxsize=64)
def _columns(width: int, longest: int, named: int) -> _Columns:
    """``longest``: cells of a session's name, ``named``: of a cascade's. What they leave is the note's."""
    roomy = width >= ROOMY
    when, took, calls, tokens, cost = (
        (18, 9, 7, 11, 11) if roomy else (13, 0, 6, 10, 10) if width >= CLOSE else (12, 0, 6, 9, 9)
    )
    rest = max(20, width - 4 - when - took - calls - tokens - cost)
    name = min(40, max(16, min(longest, rest * 45 // 100 if roomy else rest * 65 // 100)))
    cascade = min(28, max(9, named + 2), (rest - name) * 45 // 100) if roomy else 0
    return _Columns(name, when, took, calls, tokens, cost, cascade, max(0, rest - name - cascade - 2))


class RunsView(View):
    """Stored runs, newest first, and where each says what the filter looks for."""

    def __init__(self, found: Sequence[RunMatch]) -> None:
        self.found = found

    def blocks(self) -> Iterator[Block]:
        notes = [note_of(one.run) for one in self.found]
        width = len(COLUMNS) + any(notes)
        rows = [_cells(one.run, note)[:width] for one, note in zip(self.found, notes, strict=True)]
        yield Table((*COLUMNS, NOTE)[:width], rows)
        for one in self.found:
            for phrase, hit in one.hits.items():
                yield (Cell(f"{one.run.name} {hit.place}".rstrip() + ": ", "dim"), hit.excerpt or phrase)

    def json(self) -> list[dict[str, Any]]:
        return [found_json(one) for one in self.found]


COLUMNS = (
    Column("session", flexible=True, least=30),
    Column("status"),
    Column("started", leaves=7),
    Column("took", right=True, leaves=4),
    Column("calls", right=True, leaves=2),
    Column("in", right=True, leaves=5),
    Column("out", right=True, leaves=3),
    Column("cost", right=True, leaves=8),
    Column("cascade", flexible=True, leaves=1),
    Column("model", flexible=True, leaves=1),
)
NOTE = Column("note", flexible=True, leaves=6)


def _cells(run: RunSummary, note: str) -> list[Cell]:
    return [
        Cell(run.name, "name"),
        status_cell(run.status),
        Cell(local_time(run.started), "dim"),
        Cell(_took(run), "dim"),
        Cell(counted(run, run.calls)),
        Cell(counted(run, run.tokens_in, run.grade_in)),
        Cell(UNKNOWN if run.told_out is None else counted(run, run.told_out)),
        Cell(_cost(run)),
        Cell(run.cascade_file or run.cascade_id),
        Cell(run.model or UNKNOWN),
        Cell(note, _note_token(run)),
    ]


def _took(run: RunSummary) -> str:
    return "" if run.seconds is None else seconds(run.seconds)


def _cost(run: RunSummary) -> str:
    return spent_words(run.spent) or UNKNOWN


def _note_token(run: RunSummary) -> str:
    return "error" if run.fault else "dim"


def found_json(found: RunMatch) -> dict[str, Any]:
    """A run in one object; costs and counts are null where nothing is known."""
    run = found.run
    body = asdict(run)
    del body["labels"], body["call_labels"]
    body |= run.labels.to_json() | {"annotated_calls": {at: labels.to_json() for at, labels in run.call_labels}}
    predicted = body.pop("predicted") or None
    billed = None if run.unknown_costs and run.unknown_costs == run.calls + run.embedded else run.cost
    body |= {"cost": billed, "predicted_cost": predicted, "seconds": run.seconds, "tokens_out": run.told_out}
    if run.fault:  # What no record tells is not nothing.
        body |= {name: body[name] or None for name in ("calls", "tools", "tokens_in", "tokens_out", "cost")}
    return body | {"found": {phrase: asdict(hit) for phrase, hit in found.hits.items()}}


class RunRows(Rows):
    """A listing, drawn on demand. ``marked`` are run ids that a comparison is about to take."""

    def __init__(self, listing: Listing, marked: Set[str] = frozenset(), open_id: str = "") -> None:
        """``open_id`` is the run that the Bench shows."""
        self.members: Sequence[Member] = listing.members
        self._longest = max(map(_needs, self.members), default=0)
        self._named = max((cell_len(cascade_name(member.run)) for member in self.members), default=0)
        self._marked = marked
        self._open = open_id
        wanted = listing.wanted
        self.title = (("Runs", "title"),)
        if wanted.text:
            self.title += ((f"  {flat(wanted.text, 120)}", "name"),)
        if wanted.order != "newest":
            self.title += ((f"  by {wanted.order}", "dim"),)
        self.title_right = _right(listing)
        self.empty = _nothing(listing)

    def __len__(self) -> int:
        return len(self.members)

    def heads(self, width: int) -> Sequence[Row]:
        c = _columns(width, self._longest, self._named)
        cells = [f"      {fit('session', c.name - 2)}", fit("started", c.when)]
        cells += [fit("took", c.took, "right")] if c.took else []
        cells += [
            fit(name, size, "right") for name, size in (("calls", c.calls), ("tokens", c.tokens), ("cost", c.cost))
        ]
        cells += ["  ", fit("cascade", c.cascade) if c.cascade else "", fit("note", c.note)]
        return (Row(crop((("".join(cells), "head"),), width)),)

    def row(self, index: int, width: int) -> Row:
        member = self.members[index]
        run, c = member.run, _columns(width, self._longest, self._named)
        roomy = width >= ROOMY
        dim = "plain" if not run.depth else "dim"
        spans: list[Span] = [
            (" ", "plain"),
            self._mark(run),
            _glyph(run),
            (" ", "plain"),
            *_name(member, c.name),
            (fit(day_and_time(run.started, year=roomy), c.when), "dim"),
        ]
        if c.took:
            spans.append((fit(_took(run), c.took, "right"), "dim"))
        spans += [
            (fit(counted(run, run.calls), c.calls, "right"), dim),
            (fit(counted(run, run.tokens_in + run.tokens_out, run.grade_in), c.tokens, "right"), dim),
            (fit(_cost(run), c.cost, "right"), dim),
            ("  ", "plain"),
        ]
        if c.cascade:
            spans.append((fit(cascade_name(run), c.cascade), "dim"))
        spans.append((fit(note_of(run, named=not member.depth), c.note), _note_token(run)))
        return Row(crop(spans, width), "selected" if run.run_id in self._marked else "")

    def _mark(self, run: RunSummary) -> Span:
        if run.run_id in self._marked:
            return sign("marked")
        return sign("shown") if run.run_id == self._open else (" ", "plain")

    def plain(self, index: int) -> str:
        run = self.members[index].run
        return f"{run.name} {run.status} {run.cascade_id} {note_of(run)}"

    def index_of(self, run_id: str) -> int | None:
        """The row of a run; None where it is not listed."""
        return next((i for i, member in enumerate(self.members) if member.run.run_id == run_id), None)


def cascade_name(run: RunSummary) -> str:
    """Its id, else its file; nothing where the journal tells neither."""
    return run.cascade_id or run.cascade_file


def _needs(member: Member) -> int:
    """Cells of the column of names for one run."""
    hidden = len(f" +{member.hidden}") if member.hidden else 0
    return min(member.depth * 2, 12) + 2 + cell_len(flat(member.run.name, 80)) + hidden + 2


def _glyph(run: RunSummary) -> Span:
    return sign("failed") if _is_torn(run) else status_sign(run.status)


def counts(run: RunSummary, number: int, thing: str) -> str:
    """``3 calls``; ``3+ calls`` or ``– calls`` of a damaged run."""
    return f"{counted(run, number)} {thing}s" if run.fault else plural(number, thing)


def _is_torn(run: RunSummary) -> bool:
    """Whether its end is lost: nobody knows how it ended."""
    return run.damaged and run.status == "interrupted"


def run_status(run: RunSummary) -> str:
    """How it ended, in a word."""
    return "damaged" if _is_torn(run) else run.status


def _name(member: Member, width: int) -> tuple[Span, ...]:
    indent = min(member.depth * 2, 12)
    fold = "▸ " if member.hidden else "▾ " if member.branches else "  "
    hidden = f" +{member.hidden}" if member.hidden else ""
    room = width - 1 - indent - len(fold) - len(hidden)
    name = flat(member.run.name)
    return (
        (" " * indent + fold, "faint"),
        (fit(name, max(4, room)), "name" if not member.run.depth else "dim"),
        (hidden + " ", "faint"),
    )


def _right(listing: Listing) -> tuple[Span, ...]:
    if listing.fault is not None:
        return ((flat(str(listing.fault), 160), "error"),)
    if listing.searching:
        return ((f"{listing.searching}, {listing.matching:,} found", "running"),)
    if listing.wanted.text:
        return ((f"{listing.matching:,} of {plural(listing.total, 'run')}", "changed"),)
    return ((plural(listing.total, "run"), "dim"),)


def _nothing(listing: Listing) -> tuple[str, ...]:
    if listing.searching:
        return ("Looking …",)
    if listing.wanted.text:
        return (
            "No run matches.",
            told("{runs.filter} changes the filter, {runs.close} drops it."),
            'What was said in runs: text:"rate limit"',
        )
    return ("No run is stored here yet.", told("Open a cascade and press {run.start}, or: workbench run FILE"))


class CardRows(TextRows):
    """All there is to say of one run."""

    def __init__(self, listing: Listing, run: RunSummary) -> None:
        lines = [*_said(listing, run), *(TextLine(text, token) for text, token in _card(run) if text)]
        right: tuple[Span, ...] = (_glyph(run), (f" {run_status(run)}", _glyph(run)[1]))
        super().__init__(lines, ((flat(run.name, 80), "title"),), right)


def _said(listing: Listing, run: RunSummary) -> list[TextLine]:
    """Where it says what the filter looks for."""
    return [
        drawn_line(
            [
                (f"“{phrase}” at {hit.place or 'its beginning or end'}: ", "accent"),
                *marked([(hit.excerpt, "plain")], phrase),
            ]
        )
        for phrase, hit in listing.hits.get(run.run_id, {}).items()
    ]


def _card(run: RunSummary) -> list[tuple[str, str]]:
    took = "" if run.seconds is None else f", took {seconds(run.seconds)}"
    by = f", by {', '.join(run.models)}" if run.models else ""
    numbers = [counts(run, run.calls, "call"), counts(run, run.tools, "tool call")]
    tokens_out = UNKNOWN if run.told_out is None else counted(run, run.told_out)
    numbers += [f"{counted(run, run.tokens_in, run.grade_in)} tokens in", f"{tokens_out} out"]
    numbers += [spent_words(run.spent) or UNKNOWN]
    numbers += [plural(run.warnings, "warning")] if run.warnings else []
    numbers += [plural(run.edited, "edit")] if run.edited else []
    definition = ". It runs another text of the cascade than the run that it came from." if run.redefined else ""
    ended = f"{run.status}: {run.reason}" if run.reason and not _is_torn(run) else ""
    return [
        (f"damaged: {run.fault}" if run.fault else "", "error"),
        (f"{day_and_time(run.started)}{took}{by}", "plain"),
        (" · ".join(numbers), "plain"),
        (ended, status_sign(run.status)[1]),
        (told("can go on after {at}: {runs.resume}", at=run.at) if run.resumable and run.at else "", "changed"),
        (origin_words(run) + definition, "accent"),
        (" → ".join(run.phases), "dim"),
        (f"{run.cascade_file or run.cascade_id}   {run.run_id}".strip(), "faint"),
    ]
