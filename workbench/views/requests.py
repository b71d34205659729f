"""The recorded request of a call and today's, side by side in one scroll: each difference with the line behind it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from msgspec import Struct

from workbench.analysis.changed import AssembledRequest, ChangedCall, ChangedPart
from workbench.context.align import Pair, stretches
from workbench.context.assembly import Entry
from workbench.context.place import Place
from workbench.context.reasons import explain, origin, turns_before
from workbench.context.wording import paired_lines, passages
from workbench.views.cells import Row, Span, crop, fit, flat, justify, width_of
from workbench.views.compare_words import state_of
from workbench.views.documents import message_lines
from workbench.views.entry import equal_words
from workbench.views.model import WrappedRows
from workbench.views.numbers import count
from workbench.views.signs import sign
from workbench.views.syntax import yaml
from workbench.views.text import TextLine, TextRows
from workbench.views.value import Block, Cell, Column, Table, View

LONGEST = 600
"""Characters of a line beyond which its words are not compared."""
_ONLY_OLD, _ONLY_NEW, _SAME = "− ", "+ ", "  "


def aligned(old: Sequence[TextLine], new: Sequence[TextLine]) -> tuple[list[TextLine], list[TextLine]]:
    """Both as lists of the same length: equal lines on one row, the others marked, their words compared."""
    left: list[TextLine] = []
    right: list[TextLine] = []
    for a, b, same in paired_lines([line.text for line in old], [line.text for line in new]):
        one, other = old[a] if a >= 0 else None, new[b] if b >= 0 else None
        if same and one is not None and other is not None:
            left.append(_marked(one, _SAME))
            right.append(_marked(other, _SAME))
            continue
        spans = _words(one.text, other.text) if one is not None and other is not None else None
        left.append(TextLine("") if one is None else _marked(one, _ONLY_OLD, "gone", spans and spans[0]))
        right.append(TextLine("") if other is None else _marked(other, _ONLY_NEW, "added", spans and spans[1]))
    return left, right


def _words(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]] | None:
    """Both lines with the words marked that only one of them has; None for lines too long to compare."""
    if max(len(old), len(new)) > LONGEST:
        return None
    found = passages(old, new)
    if not any(one.same for one in found):
        return None
    left = tuple((one.old, "plain" if one.same else "gone-word") for one in found if one.old)
    right = tuple((one.new, "plain" if one.same else "added-word") for one in found if one.new)
    return left, right


def _marked(line: TextLine, mark: str, token: str = "", spans: tuple[Span, ...] | None = None) -> TextLine:
    """A line with its mark in front, which continues two cells further in."""
    text = mark + line.text
    if spans is not None:
        painted = ((mark, token), *spans)
        return TextLine(text, paint=lambda _, painted=painted: painted, hang=2)  # type: ignore[misc]
    if line.paint is not None and not token:
        own = line.paint
        return TextLine(text, paint=lambda whole: ((whole[:2], "plain"), *own(whole[2:])), hang=2)
    return TextLine(text, token or line.token, hang=2)


class Columns:
    """Two lists of lines of the same length, each wrapped to its half; both lines of a pair begin on the same row."""

    def __init__(self, left: Sequence[TextLine], right: Sequence[TextLine]) -> None:
        self.left, self.right = TextRows(left), TextRows(right)
        self._starts: list[int] = [0]

    def lay_out(self, width: int) -> None:
        """Lay out for a pane of this many cells."""
        half = (width - 1) // 2
        for rows, room in ((self.left, half), (self.right, width - 1 - half)):
            rows.lay_out(room)
        heights = ([b - a for a, b in pairwise(rows.starts)] for rows in (self.left, self.right))
        self._starts = [0, *accumulate(max(pair) for pair in zip(*heights, strict=True))]

    def __len__(self) -> int:
        return self._starts[-1]

    def row(self, index: int, width: int) -> Row:
        half = (width - 1) // 2
        line = bisect_right(self._starts, index) - 1
        part = index - self._starts[line]
        sides = [
            self._side(rows, line, part, room) for rows, room in ((self.left, half), (self.right, width - 1 - half))
        ]
        return Row((*sides[0], ("│", "rule"), *sides[1]))

    @staticmethod
    def _side(rows: TextRows, line: int, part: int, room: int) -> tuple[Span, ...]:
        at = rows.starts[line] + part
        spans = crop(rows.row(at, room).spans, room) if at < rows.starts[line + 1] else ()
        return (*spans, (" " * (room - width_of(spans)), "plain"))

    def find(self, needle: str) -> list[int]:
        """The rows at which a line begins that holds the needle on either side."""
        wanted = needle.casefold()
        pairs = zip(self.left.lines, self.right.lines, strict=True)
        return [
            self._starts[i]
            for i, (a, b) in enumerate(pairs)
            if wanted in a.text.casefold() or wanted in b.text.casefold()
        ]


PART_SIGN = {
    "added": "new",
    "gone": "gone",
    "reworded": "altered",
    "masked": "masked",
    "restored": "altered",
    "dropped": "dropped",
    "sent": "new",
    "reshaped": "truncated",
    "moved": "moved",
}
"""The sign of each kind of change; settings have that of what is altered."""


class Texts(Struct, frozen=True):
    """The texts whose lines are quoted, and the file that they are of."""

    file: str
    today: str
    recorded: str = ""

    def quoted(self, part: ChangedPart) -> str:
        """The line of the file behind a difference."""
        lines = (self.recorded if part.recorded_rule else self.today).split("\n")
        return lines[part.rule.line - 1].strip() if 0 < part.rule.line <= len(lines) else ""


class _Block(Struct, frozen=True):
    """Rows that belong together. ``draw`` makes one of them; ``part`` is the difference that they are of."""

    height: Callable[[], int]
    draw: Callable[[int, int], Row]
    part: ChangedPart | None = None
    opens: int = -1
    """The stretch that enter folds or unfolds."""
    head: bool = False
    """A difference begins here."""
    columns: Columns | None = None


class ChangedView(View):
    """The differences between two requests of one place, each with the line of the file behind it."""

    def __init__(self, changed: ChangedCall, file: str) -> None:
        self.changed, self.file = changed, file

    def blocks(self) -> Iterator[Block]:
        columns = (
            Column("from", leaves=2),
            Column("what", flexible=True, leaves=1),
            Column("was", flexible=True),
            Column("is", flexible=True),
        )
        rows = [
            (
                Cell(part.where(self.file) or part.rule.path, "accent"),
                ", ".join(filter(None, (part.words, part.rule_words and f"the rule {part.rule_words}"))),
                part.was,
                part.now,
            )
            for part in self.changed.parts
        ]
        yield Table(columns, rows)

    def json(self) -> list[dict[str, Any]]:
        return [part.to_json(self.file) for part in self.changed.parts]


class RequestRows(WrappedRows):
    """Folds of equal messages are opened by row; ``step`` leads from one difference to the next."""

    def __init__(
        self,
        changed: ChangedCall,
        texts: Texts,
        *,
        title: tuple[Span, ...] = (),
        labels: tuple[str, str] = ("recorded", "now"),
        only: ChangedPart | None = None,
    ) -> None:
        """``only``: show this difference alone."""
        self.changed = changed
        self.texts = texts
        self.title = title
        self.title_right = ((changed.summary, "changed"),)
        self._labels = labels
        self._only = only
        self._open: set[int] = set()
        self._stretches = stretches(changed.old.entries, changed.new.entries)
        self._by_entry = {("new", p.new) if p.new >= 0 else ("old", p.old): p for p in changed.parts}
        self._blocks: list[_Block] = []
        self._starts: list[int] = [0]
        self._made: dict[Pair, Columns] = {}
        self._build()

    # -- which rows there are ----------------------------------------------------------------------------------------

    def _build(self) -> None:
        self._blocks = list(self._settings())
        for number, stretch in enumerate(self._stretches):
            if not stretch.equal:
                for pair in stretch.pairs:
                    self._blocks += self._message(pair, self._part_of(pair))
            elif self._only is None:
                self._blocks.append(self._fold(number, stretch.pairs))
                if number in self._open:
                    for pair in stretch.pairs:
                        self._blocks += self._message(pair, None, number)
        for block in self._blocks:
            if block.columns is not None and self._width > 0:
                block.columns.lay_out(self._width)
        self._starts = [0, *accumulate(block.height() for block in self._blocks)]

    def _part_of(self, pair: Pair) -> ChangedPart | None:
        return self._by_entry.get(("new", pair.new)) if pair.new >= 0 else self._by_entry.get(("old", pair.old))

    def _settings(self) -> Iterator[_Block]:
        for part in self.changed.parts:
            if part.old < 0 and part.new < 0 and self._only in (None, part):
                yield self._head(part)
                left, right = aligned([TextLine(part.was)], [TextLine(part.now)])
                yield self._columns(Columns(left, right), part)

    def _message(self, pair: Pair, part: ChangedPart | None, stretch: int = -1) -> Iterator[_Block]:
        old = self.changed.old.entries[pair.old] if pair.old >= 0 else None
        new = self.changed.new.entries[pair.new] if pair.new >= 0 else None
        if self._only is not None and part is not self._only:
            return
        if part is not None:
            yield self._head(part)
        yield self._one(lambda width: self._names(old, pair.old, new, pair.new, width), part, stretch)
        if pair not in self._made:
            self._made[pair] = Columns(*aligned(_text(old), _text(new)))
        yield self._columns(self._made[pair], part, stretch)

    def _fold(self, number: int, pairs: Sequence[Pair]) -> _Block:
        entries = self.changed.new.entries
        mark = "▾" if number in self._open else "▸"
        words = f" {mark} {equal_words(entries[pair.new] for pair in pairs if pair.new >= 0)}"
        return self._one(lambda width: Row(crop(((words, "faint"),), width)), None, number)

    def _head(self, part: ChangedPart) -> _Block:
        """Returns the difference, then the line of the file that decided."""

        def draw(row: int, width: int) -> Row:
            if row == 0:
                spans: tuple[Span, ...] = ((" ", "plain"), sign(PART_SIGN.get(part.kind, "altered")))
                return Row(crop((*spans, (f" {flat(part.words)}", "bold")), width), "changed")
            quoted = yaml(flat(self.texts.quoted(part)))
            left = ((f"   {flat(part.where(self.texts.file))} ", "accent"), ("│ ", "rule"), *quoted)
            right: tuple[Span, ...] = ((f"{flat(part.rule.path)} ", "dim"), (f" {flat(part.rule_words)} ", "changed"))
            if width_of((*left, *right)) + 2 > width:
                right = right[1:]
            return Row(justify(left, right if part.rule_words else right[:1], width))

        return _Block(lambda: 2 if part.rule.line else 1, draw, part, head=True)

    @staticmethod
    def _one(draw: Callable[[int], Row], part: ChangedPart | None, opens: int = -1) -> _Block:
        return _Block(lambda: 1, lambda _, width: draw(width), part, opens)

    @staticmethod
    def _columns(columns: Columns, part: ChangedPart | None, opens: int = -1) -> _Block:
        return _Block(lambda: len(columns) + 1, _with_gap(columns), part, opens, columns=columns)

    def _names(self, old: Entry | None, a: int, new: Entry | None, b: int, width: int) -> Row:
        half = (width - 1) // 2
        left = _name(old, a, self.changed.old, self.changed.place, half)
        right = _name(new, b, self.changed.new, self.changed.place, width - 1 - half)
        return Row((*left, ("│", "rule"), *right))

    # -- moving ------------------------------------------------------------------------------------------------------

    def _at(self, row: int) -> _Block | None:
        index = bisect_right(self._starts, row) - 1
        return self._blocks[index] if 0 <= index < len(self._blocks) else None

    def step(self, row: int, by: int) -> int | None:
        """The row of the next or previous difference."""
        starts = [self._starts[i] for i, block in enumerate(self._blocks) if block.head]
        return next((i for i in (starts if by > 0 else starts[::-1]) if (i - row) * by > 0), None)

    def toggle(self, row: int) -> bool:
        """Open or close the fold of a row; False if it has none."""
        block = self._at(row)
        if block is None or block.opens < 0:
            return False
        self._open ^= {block.opens}
        self._build()
        return True

    def line_at(self, row: int) -> int:
        """The line of the file behind a row, else behind the first difference; 0 for none."""
        block = self._at(row)
        parts = [block.part] if block is not None and block.part is not None else list(self.changed.parts)
        return next((part.rule.line for part in parts if part.rule.line and not part.recorded_rule), 0)

    # -- how they look -----------------------------------------------------------------------------------------------

    @property
    def copy(self) -> str:
        """The differences in words, each with its line."""
        parts = ((part.where(self.texts.file), part.words) for part in self.changed.parts)
        return "\n".join(f"{where}: {words}" if where else words for where, words in parts)

    def _wrap(self, width: int) -> None:
        self._build()

    def __len__(self) -> int:
        return self._starts[-1]

    def heads(self, width: int) -> Sequence[Row]:
        half = (width - 1) // 2
        sides = zip(self._labels, (self.changed.old, self.changed.new), strict=True)
        old, new = (
            f"{label} · {count(asked.tokens, asked.grade)} tokens · {asked.digest[:8]}" for label, asked in sides
        )
        left, right = fit(old, half - 1), fit(new, width - half - 2)
        return (Row(((" ", "plain"), (left, "head"), ("│ ", "rule"), (right, "head"))),)

    def row(self, index: int, width: int) -> Row:
        which = bisect_right(self._starts, index) - 1
        return self._blocks[which].draw(index - self._starts[which], width)

    def find(self, needle: str, start: int, step: int = 1) -> int | None:
        """Whole lines are searched, not what they wrap to."""
        ordered = self._holding(needle) if needle else []
        ahead = [row for row in ordered if row >= start] if step > 0 else [row for row in ordered[::-1] if row <= start]
        return next(iter(ahead or (ordered if step > 0 else ordered[::-1])), None)

    def places(self, needle: str) -> Iterator[int | None]:
        yield from self._holding(needle) if needle else ()

    def _holding(self, needle: str) -> list[int]:
        found: set[int] = set()
        for at, block in zip(self._starts, self._blocks, strict=False):
            if block.columns is not None:
                found |= {at + row for row in block.columns.find(needle)}
            else:
                found |= {at + i for i in range(block.height()) if needle.casefold() in self.plain(at + i).casefold()}
        return sorted(found)


def _with_gap(columns: Columns) -> Callable[[int, int], Row]:
    def draw(row: int, width: int) -> Row:
        half = (width - 1) // 2
        if row < len(columns):
            return columns.row(row, width)
        return Row(((" " * half, "plain"), ("│", "rule")))

    return draw


def _text(entry: Entry | None) -> list[TextLine]:
    if entry is None or entry.sent is None:
        return []
    return message_lines(entry.sent, "plain" if state_of(entry) == "full" else "placeholder", whole=True)


def _name(entry: Entry | None, index: int, asked: AssembledRequest, place: Place, width: int) -> tuple[Span, ...]:
    """Role, reason and size."""
    if entry is None:
        return ((" ", "plain"), (fit("not in this request", max(1, width - 1)), "faint"))
    state = state_of(entry)
    token = {"full": "name", "dropped": "faint"}.get(state, "masked")
    spans: list[Span] = [(f" {index + 1} {entry.item.message.role} {flat(origin(entry))} ", token)]
    if state != "full":
        why = explain(entry, place, turns_before(asked.entries, place))
        spans += [sign(str(entry.action)), (f" {flat(why)}", "masked")]
    size = count(entry.tokens_sent if entry.sent is not None else 0, entry.grade)
    return justify(crop(spans, max(1, width - len(size) - 2)), ((f"{size} ", "plain"),), width)
