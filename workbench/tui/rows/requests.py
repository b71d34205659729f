"""The recorded request of a call and today's, side by side in one scroll: each difference with the line behind it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from workbench.context.align import Pair, stretches
from workbench.context.assembly import Entry
from workbench.context.place import Place
from workbench.context.reasons import explain, origin, turns_before
from workbench.dataclass import dataclass
from workbench.engine.changed import Asked, ChangedCall, ChangedPart
from workbench.tui.rows.aligned import Columns, aligned
from workbench.tui.rows.cells import Row, Span, crop, fit, flat, justify, width_of
from workbench.tui.rows.compare_words import state_of
from workbench.tui.rows.documents import message_lines
from workbench.tui.rows.model import Rows
from workbench.tui.rows.numbers import count, plural
from workbench.tui.rows.signs import sign
from workbench.tui.rows.syntax import yaml
from workbench.tui.rows.text import Line

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


@dataclass(frozen=True)
class Texts:
    """The texts whose lines are quoted, and the file that they are of."""

    file: str
    today: str
    recorded: str = ""

    def quoted(self, part: ChangedPart) -> str:
        """The line of the file behind a difference."""
        lines = (self.recorded if part.recorded_rule else self.today).split("\n")
        return lines[part.rule.line - 1].strip() if 0 < part.rule.line <= len(lines) else ""


@dataclass(frozen=True)
class _Block:
    """Rows that belong together. ``draw`` makes one of them; ``part`` is the difference that they are of."""

    height: Callable[[], int]
    draw: Callable[[int, int], Row]
    part: ChangedPart | None = None
    opens: int = -1
    """The stretch that enter folds or unfolds."""
    head: bool = False
    """A difference begins here."""
    columns: Columns | None = None


class RequestRows(Rows):
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
        """With ``only``, nothing but that difference."""
        self.changed = changed
        self.texts = texts
        self.title = title
        self.title_right = ((changed.summary, "changed"),)
        self._labels = labels
        self._only = only
        self._open: set[int] = set()
        self._stretches = stretches(changed.old.entries, changed.new.entries)
        self._by_entry = {("new", p.new) if p.new >= 0 else ("old", p.old): p for p in changed.parts}
        self._width = -1
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
                left, right = aligned([Line(part.was)], [Line(part.now)])
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
        tokens = sum(entries[pair.new].tokens_sent for pair in pairs if pair.new >= 0)
        mark = "▾" if number in self._open else "▸"
        words = f" {mark} {plural(len(pairs), 'equal message')}, {count(tokens)} tokens"
        return self._one(lambda width: Row(crop(((words, "faint"),), width)), None, number)

    def _head(self, part: ChangedPart) -> _Block:
        """What differs, then the line of the file that decided."""

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
        """Open or close the fold of a row; False where there is none."""
        block = self._at(row)
        if block is None or block.opens < 0:
            return False
        self._open ^= {block.opens}
        self._build()
        return True

    def line_at(self, row: int) -> int:
        """The line of the file behind what stands there, else behind the first difference; 0 for none."""
        block = self._at(row)
        parts = [block.part] if block is not None and block.part is not None else list(self.changed.parts)
        return next((part.rule.line for part in parts if part.rule.line and not part.recorded_rule), 0)

    # -- how they look -----------------------------------------------------------------------------------------------

    @property
    def copy(self) -> str:
        """The differences in words, each with its line."""
        parts = ((part.where(self.texts.file), part.words) for part in self.changed.parts)
        return "\n".join(f"{where}: {words}" if where else words for where, words in parts)

    def lay_out(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._build()

    def __len__(self) -> int:
        return self._starts[-1]

    def heads(self, width: int) -> Sequence[Row]:
        half = (width - 1) // 2
        sides = zip(self._labels, (self.changed.old, self.changed.new), strict=True)
        old, new = (f"{label} · {count(asked.tokens)} tokens · {asked.digest[:8]}" for label, asked in sides)
        left, right = fit(old, half - 1), fit(new, width - half - 2)
        return (Row(((" ", "plain"), (left, "head"), ("│ ", "rule"), (right, "head"))),)

    def row(self, index: int, width: int) -> Row:
        which = bisect_right(self._starts, index) - 1
        return self._blocks[which].draw(index - self._starts[which], width)

    def plain(self, index: int) -> str:
        return self.row(index, self._width if self._width > 0 else 200).text

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


def _text(entry: Entry | None) -> list[Line]:
    if entry is None or entry.sent is None:
        return []
    return message_lines(entry.sent, "plain" if state_of(entry) == "full" else "placeholder", whole=True)


def _name(entry: Entry | None, index: int, asked: Asked, place: Place, width: int) -> tuple[Span, ...]:
    """Who, why and how large."""
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
