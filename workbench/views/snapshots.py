"""The snapshots of a workspace as a list, and what the check of them has come to. Needs no Textual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field
from rich.cells import cell_len

from workbench.analysis.changed import ChangedPart
from workbench.snapshots.faults import SnapshotError
from workbench.views.cells import Row, Span, crop, dropping, fit, flat, width_of
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import count, plural
from workbench.views.requests import PART_SIGN
from workbench.views.signs import sign
from workbench.views.text import TextLine, TextRows, wrapped
from workbench.views.value import Block, Cell, Column, Table, View
from workbench.workspace.reviewing import Decision, Review, Section, heading, same_words, sections
from workbench.workspace.snapshot_files import ListedSnapshot
from workbench.workspace.testing import SnapshotResult

Spans = tuple[Span, ...]

COLUMNS = (
    Column("name", flexible=True, least=30),
    Column("tests", leaves=4),
    Column("calls", right=True, leaves=2),
    Column("cascade", flexible=True, leaves=1),
    Column("about", flexible=True, leaves=3),
)


class SnapshotsView(View):
    """The snapshots of a workspace: what they test, and the problems of their files."""

    def __init__(self, listed: Sequence[ListedSnapshot]) -> None:
        self.listed = listed

    def blocks(self) -> Iterator[Block]:
        rows = [
            (
                one.name,
                Cell(one.kind, "error" if one.problem else ""),
                count(one.calls),
                one.cascade_file,
                Cell(one.problem, "error") if one.problem else one.description,
            )
            for one in self.listed
        ]
        yield Table(COLUMNS, rows)

    def json(self) -> list[dict[str, Any]]:
        return [one.to_json() for one in self.listed]


class ReviewRows(TextRows):
    """A snapshot as a document whose rows know their subject."""

    def __init__(self, listed: ListedSnapshot, verdict: SnapshotResult | None) -> None:
        self.refs: list[tuple[Section | None, ChangedPart | None]] = []
        found: list[TextLine] = []
        for line, section, part in _lines(listed, verdict):
            found.append(line)
            self.refs.append((section, part))
        word = heading(verdict) if verdict is not None else listed.kind if listed.problem else "not checked yet"
        super().__init__(found, ((flat(listed.name), "title"), (f"  {word}", _TOKENS.get(word, "dim"))))
        self.title_right = ((f"{flat(listed.cascade_file)} ", "dim"),)

    def section_at(self, row: int) -> Section | None:
        """The place of the run that a row is about."""
        return self.refs[self.line_of(row)][0] if self.refs else None

    def part_at(self, row: int) -> ChangedPart | None:
        """The changed message or setting of a row."""
        return self.refs[self.line_of(row)][1] if self.refs else None

    def line_at(self, row: int) -> int:
        """The line of the cascade file behind a row, else behind its place; 0 for none."""
        part, section = self.part_at(row), self.section_at(row)
        if part is not None and part.rule.line and not part.recorded_rule:
            return part.rule.line
        return section.line if section is not None else 0

    def first(self) -> int:
        """The first row that is about a difference."""
        line = next((i for i, (section, _) in enumerate(self.refs) if section is not None), 0)
        return self.first_row(line)


_TOKENS = {"as frozen": "ok", "changed": "changed", "cannot be replayed": "error", "unreadable": "error"}


def _lines(
    listed: ListedSnapshot, verdict: SnapshotResult | None
) -> Iterator[tuple[TextLine, Section | None, ChangedPart | None]]:
    if listed.description:
        yield TextLine(flat(listed.description), "dim"), None, None
        yield TextLine(""), None, None
    if verdict is not None and verdict.fault is not None:
        yield _spans((sign("broken"), (f" {flat(str(verdict.fault))}", "error")), 2), None, None
    elif verdict is not None and verdict.skipped:
        yield _spans((sign("pending"), (f" Not run: {flat(verdict.skipped)}.", "plain")), 2), None, None
    elif listed.problem:
        yield _spans((sign("warning"), (f" {flat(listed.problem)}", "warning")), 2), None, None
    elif verdict is not None and verdict.passed:
        words = f" All {plural(verdict.calls, 'call')} as frozen."
        yield _spans((sign("done"), (words, "ok")), 2), None, None
    if verdict is not None:
        for number, line in enumerate(verdict.settings):
            yield TextLine(f"{'  ' if number else ''}{flat(line)}", "changed", hang=4), None, None
        if verdict.settings:
            yield TextLine(""), None, None
        for section in sections(verdict):
            yield _spans(((section.label, "name"), (f"   {section.said}", "changed")), 2), section, None
            yield from ((line, section, part) for line, part in _of_section(section))
        if same := same_words(verdict):
            yield TextLine(same, "dim"), None, None
    yield from ((line, None, None) for line in _facts(listed, verdict))


def _of_section(section: Section) -> Iterator[tuple[TextLine, ChangedPart | None]]:
    for part in section.parts:
        yield _spans((("  ", "plain"), sign(PART_SIGN.get(part.kind, "altered")), *_subject(part)), 6), part
        arrow = (("    ", "plain"), (flat(part.was), "gone"), (" → ", "dim"), (flat(part.now), "added"))
        yield _spans(arrow, 4), part
        if part.rule.line:
            values = f"  {flat(part.rule_words)}" if part.rule_words else ""
            where = (f"    {flat(part.where(section.file))}", "accent")
            yield _spans((where, (values, "changed"), (f"  {flat(part.rule.path)}", "dim")), 4), part
    for one in section.others:
        yield _spans((("  ", "plain"), sign("altered"), (f" {flat(one.words)}", "plain")), 6), None
        for detail in one.details:
            yield TextLine(f"      {flat(detail)}", "dim", hang=6), None
        if one.rule.line:
            at = f"{section.file}:{one.rule.line}{' as frozen' if one.frozen_rule else ''}"
            yield _spans(((f"    {flat(at)}", "accent"), (f"  {flat(one.rule.path)}", "dim")), 4), None


def _subject(part: ChangedPart) -> Spans:
    """Returns which message, and what became of it."""
    return ((f" {flat(part.words.partition(': ')[0] if part.kind == 'reworded' else part.words)}", "plain"),)


def _facts(listed: ListedSnapshot, verdict: SnapshotResult | None) -> Iterator[TextLine]:
    yield TextLine("")
    mode = listed.kind if listed.kind in ("strict", "plumbing", "structure") else ""
    replaced = f"{plural(listed.redacted, 'secret')} replaced" if listed.redacted else ""
    facts = [listed.file, mode, listed.captured_at[:19].replace("T", " "), replaced]
    yield TextLine(" · ".join(flat(fact) for fact in facts if fact), "faint")
    if verdict is not None and verdict.note:
        yield TextLine(flat(verdict.note), "faint")


def _spans(spans: Spans, hang: int) -> TextLine:
    """A line of several tokens, wrapped parts ``hang`` cells further in."""
    kept = tuple(span for span in spans if span[0])
    return TextLine("".join(text for text, _ in kept), paint=lambda _: kept, hang=hang)


class Item(Struct):
    """One file of the folder."""

    listed: ListedSnapshot
    verdict: SnapshotResult | None = None
    decision: Decision | None = None
    objection: str = ""
    """Why it could not be accepted."""

    @property
    def status(self) -> str:
        """A key of ``STATUS``."""
        if self.decision is not None:
            return str(self.decision)
        if self.listed.kind == "orphaned":
            return "orphaned"
        if self.listed.kind == "unreadable":
            return "broken"
        if self.verdict is None:
            return "waiting"
        if not self.verdict.failed:
            return "not run" if self.verdict.skipped else "passed"
        return "broken" if self.verdict.fault is not None else "changed"

    @property
    def is_open(self) -> bool:
        """Something is to be decided about it."""
        return self.decision is None and self._is_changed

    @property
    def is_written(self) -> bool:
        """Its file was written by this review."""
        return self.decision is Decision.ACCEPTED

    def can_be(self, decision: Decision) -> bool:
        """Returns whether that decision is possible; an earlier decision may be replaced."""
        return self.decision is not decision and self._is_changed

    @property
    def _is_changed(self) -> bool:
        return self.verdict is not None and self.verdict.failed


STATUS: dict[str, tuple[str, str, str]] = {
    "passed": ("done", "passed", "ok"),
    "changed": ("changed", "changed", "changed"),
    "broken": ("broken", "broken", "error"),
    "orphaned": ("blocked", "orphaned", "error"),
    "waiting": ("pending", "waits", "faint"),
    "not run": ("pending", "not run", "dim"),
    "checking": ("running", "checking", "running"),
    "accepted": ("done", "accepted", "ok"),
    "rejected": ("failed", "rejected", "error"),
    "skipped": ("dropped", "skipped", "dim"),
}
"""Sign, word and token of each status."""


class SnapshotBoard(Struct):
    """The state of the snapshots screen."""

    folder: str
    items: list[Item] = field(default_factory=list)
    checking: str = ""
    """The name of the snapshot that is replayed now."""
    listing: bool = True
    stopped: bool = False
    tick: int = 0

    def listed(self, found: Sequence[ListedSnapshot]) -> None:
        """The folder was read."""
        self.listing = False
        self.items = [Item(one) for one in found]

    def checked(self, verdict: SnapshotResult) -> None:
        """A snapshot was replayed."""
        for item in self.items:
            if item.listed.name == verdict.name:
                item.verdict, item.decision, item.objection = verdict, None, ""

    @property
    def busy(self) -> bool:
        return self.listing or bool(self.checking)

    def next_open(self, after: int, step: int = 1) -> int | None:
        """The next snapshot to decide about, or the one before (``step`` -1), going round once."""
        total = len(self.items)
        order = ((after + step * number) % total for number in range(1, total + 1))
        return next((index for index in order if self.items[index].is_open), None)

    def decide(self, review: Review, indices: Sequence[int], decision: Decision) -> list[str]:
        """Decide about snapshots. Returns the objections of those left unchanged."""
        objections: list[str] = []
        for index in indices:
            item = self.items[index]
            if item.verdict is None:
                continue
            try:
                review.decide(item.verdict, decision)
            except SnapshotError as fault:
                item.objection = str(fault)
                objections.append(item.objection)
            else:
                item.decision, item.objection = decision, ""
        return objections

    def undo(self, review: Review, indices: Sequence[int]) -> list[str]:
        """Withdraw decisions. Returns the objections of those left unchanged."""
        objections: list[str] = []
        for index in indices:
            item = self.items[index]
            if item.verdict is None or item.decision is None:
                continue
            try:
                review.undo(item.verdict)
            except SnapshotError as fault:
                objections.append(str(fault))
            else:
                item.decision, item.objection = None, ""
        return objections

    def counts(self) -> tuple[tuple[Span, ...], ...]:
        """``3 passed``, ``1 changed`` …, each on its own."""
        found = Counter(item.status for item in self.items)
        return tuple(
            (sign(mark), (f" {found[status]} {word}", token))
            for status, (mark, word, token) in STATUS.items()
            if found[status]
        )

    def header(self, width: int) -> tuple[Span, ...]:
        """The first line of the screen."""
        name: tuple[Span, ...] = ((" snapshots", "bold"), (f"  {flat(self.folder)}", "dim"))
        if self.listing:
            doing: tuple[Span, ...] = (sign("running", self.tick), (" reading the folder", "dim"))
        elif self.checking:
            done = sum(item.verdict is not None for item in self.items)
            words = f" {done + 1} of {len(self.items)}: {flat(self.checking, 40)}"
            doing = (sign("running", self.tick), (words, "running"))
        elif self.stopped:
            doing = (sign("stopped"), (told(" stopped; {snapshots.check} checks again"), "warning"))
        else:
            doing = ()
        return dropping((name, doing, *self.counts()), width)

    def list(self) -> SnapshotRows:
        """The left pane."""
        return SnapshotRows(self)

    def review(self, index: int) -> ReviewRows | None:
        """The right pane: the snapshot of a row."""
        if not 0 <= index < len(self.items):
            return None
        item = self.items[index]
        rows = ReviewRows(item.listed, item.verdict)
        if item.decision is not None:
            mark, word, token = STATUS[item.decision]
            rows.title = (*rows.title[:1], ("  ", "plain"), sign(mark), (f" {word}", token))
        return rows


CALLS = 6
"""Cells of the column of calls."""


BELOW = 5
"""How far in a text below a row stands."""


class SnapshotRows(Rows):
    """One row for each file; what it is about stands below where it has no room beside."""

    spreads = True

    def __init__(self, board: SnapshotBoard) -> None:
        self._board = board
        self._names = max((len(item.listed.name) for item in board.items), default=4)
        self.title = (("Snapshots", "title"), (f"  {len(board.items)}" if board.items else "", "dim"))
        if board.listing:
            self.empty = ("Reading the folder …",)
        else:
            self.empty = (
                f"No snapshots in {board.folder}.",
                told("{run.freeze} on the Bench freezes a run as a test."),
            )

    def __len__(self) -> int:
        return len(self._board.items)

    def heads(self, width: int) -> Sequence[Row]:
        if not self._board.items:
            return ()
        words = f"   {fit('name', self._name(width))}  {fit('check', 9)}{fit('calls', CALLS, 'right')}  about"
        return (Row(crop(((words, "head"),), width)),)

    def _name(self, width: int) -> int:
        return min(self._names, max(10, width - 30))

    def row(self, index: int, width: int) -> Row:
        return Row(crop((*self._columns(index, width), (f"  {self._about(index)}", "faint")), width))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        columns, about = self._columns(index, width), self._about(index)
        if width_of(columns) + 2 + cell_len(about) <= width:
            return ()
        below = wrapped(((about, "faint"),), max(8, width - BELOW))
        return (Row(crop(columns, width)), *(Row(((" " * BELOW, "plain"), *line)) for line in below))

    def _about(self, index: int) -> str:
        item = self._board.items[index]
        return flat(item.listed.description or item.listed.cascade_file)

    def _columns(self, index: int, width: int) -> tuple[Span, ...]:
        """A row without what it is about."""
        item = self._board.items[index]
        status = "checking" if item.listed.name == self._board.checking else item.status
        mark, word, token = STATUS[status]
        spans: list[Span] = [(" ", "plain"), sign(mark, self._board.tick), (" ", "plain")]
        spans += [
            (fit(item.listed.name, self._name(width)), "name"),
            (f"  {fit(word, 9)}", token),
            (fit(count(item.listed.calls), CALLS, "right"), "dim"),
        ]
        return tuple(spans)

    def plain(self, index: int) -> str:
        return f"{self._board.items[index].listed.name} {self._board.items[index].status}"
