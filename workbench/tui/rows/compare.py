"""A comparison as one list: the verdict, a line per call, then each differing call with its messages side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from workbench.context.assembly import Entry
from workbench.context.reasons import explain, origin
from workbench.context.wording import passages
from workbench.engine.compare import CallPair, Comparison, Seen, Totals
from workbench.tui.rows.cells import Row, Span, crop, fit, flat, justify, width_of
from workbench.tui.rows.compare_refs import CompareRefs, Ref
from workbench.tui.rows.compare_words import (
    breach_line,
    brief_difference,
    call_name,
    cost_of,
    dollars,
    first_difference,
    percent,
    sentences,
    state_of,
)
from workbench.tui.rows.documents import message_lines
from workbench.tui.rows.model import Rows
from workbench.tui.rows.numbers import UNKNOWN, count, plural
from workbench.tui.rows.sides import SideRows
from workbench.tui.rows.signs import sign
from workbench.tui.rows.text import Line, text_lines

COLUMNS = (5, 10, 8, 6, 10, 8, 8, 8, 6)
"""Cells of the call's name, tokens A, B and their change, cached A, B, cost A, B and their change: at the least."""
NAME = 16
"""Cells of a call's name at most, where there is little room; else twice as many."""
HEADS = ("call", "tokens A", "B", "±", "cached A", "B", "cost A", "B", "±")
CACHED = (4, 5)
LEAD = 24
"""Characters shown before the first words that differ."""
ROOMY, ROOMIEST = 100, 400
"""Cells from which on the columns ``CACHED`` show, and those of a line that nobody has laid out."""
_NAME_STYLE = {"full": "name", "dropped": "faint"}

EVEN = 500
"""Thousandths of the width that a side has by itself."""


class CompareRows(Rows):
    """Folds are opened by row; ``step`` leads from one difference to the next."""

    def __init__(self, comparison: Comparison, name: str, *, is_what_if: bool = True) -> None:
        self.comparison = comparison
        self.share = EVEN
        """Thousandths of the width for side A."""
        how = "what-if, no call was made" if is_what_if else "as recorded"
        self.title = (("Compare", "title"), (f"  {flat(name)}", "name"), (f"  {how}", "dim"))
        self._width = ROOMIEST
        self._lines = list(self._words())
        costs = [cost for pair in comparison.pairs for seen in (pair.a, pair.b) if (cost := cost_of(seen)) is not None]
        self._largest = max(costs, default=0.0)
        self._widths = self._measured()
        self.refs = CompareRefs(comparison, len(self._lines), self._notes)

    # -- which rows there are ----------------------------------------------------------------------------------------

    def lay_out(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lines = list(self._words())
            self.refs.say(len(self._lines))

    def _words(self) -> Iterator[tuple[Span, ...]]:
        """The sentences on top, each in as many lines as it takes."""
        tokens = {"pays": "accent", "note": "plain", "reported": "recorded", "price": "dim"}
        for said in sentences(self.comparison):
            if said.kind in ("verdict", "warning"):
                warns = said.kind == "warning"
                mark = sign("warning") if warns else sign("done") if said.saves else (" ", "plain")
                token = "warning" if warns else "ok" if said.saves else "bold"
            else:
                mark, token = (" ", "plain"), tokens[said.kind]
            for part in textwrap.wrap(flat(said.text), max(20, self._width - 4)):
                yield ((" ", "plain"), mark, (f" {part}", token))
                mark = (" ", "plain")

    def _notes(self, pair: CallPair) -> list[str]:
        """What either side of a call takes back, in as many lines as it takes."""
        lines: list[str] = []
        for name, seen, other in (("A", pair.a, pair.b), ("B", pair.b, pair.a)):
            if seen is not None and seen.breach is not None:
                said = f"{name} {breach_line(seen, other)}"
                lines += textwrap.wrap(said, max(20, self._width - 2), subsequent_indent="  ")
        return lines

    def __len__(self) -> int:
        return len(self.refs)

    def step(self, row: int, by: int) -> int | None:
        """The next or previous row with a difference; of neighbouring ones, the first."""
        return self.refs.step(row, by)

    def no_further(self, by: int) -> str:
        """Why there is no difference to go to."""
        both = [pair for pair in self.comparison.pairs if pair.a is not None and pair.b is not None]
        if not both:
            return "The two have no call in common: there are no messages to hold against each other."
        if all(pair.same for pair in both):
            return "Every call that both made saw the same messages."
        return "There is no further difference." if by > 0 else "There is no difference before this."

    def toggle(self, row: int) -> bool:
        """Open the fold of a row, or close the stretch it belongs to; False where there is none."""
        ref = self.refs[row]
        if ref.kind not in ("fold", "entry") or not self.refs.stretch(ref).equal:
            return False
        self.refs.toggle(ref)
        return True

    def section_of(self, row: int) -> int | None:
        """Where the messages of the call on this line of the table begin."""
        ref = self.refs[row]
        return self.refs.section_of(ref.pair) if ref.kind == "call" else None

    def sides(self, row: int) -> SideRows | None:
        """The texts of a row in full, the words that differ marked; None for a row without a message."""
        ref = self.refs[row]
        if ref.kind not in ("entry", "sent"):
            return None
        old, new = self._entries(ref)
        title: tuple[Span, ...] = (("Message", "title"), (f"  {_named(old, ref.old) or _named(new, ref.new)}", "name"))
        labels = (f"A: {state_of(old) if old else 'not here'}", f"B: {state_of(new) if new else 'not here'}")
        return SideRows(_document(old, new), _document(new, old), labels, title)

    def _entries(self, ref: Ref) -> tuple[Entry | None, Entry | None]:
        pair = self.comparison.pairs[ref.pair]
        assert pair.a is not None
        assert pair.b is not None
        return (
            pair.a.entries[ref.old] if ref.old >= 0 else None,
            pair.b.entries[ref.new] if ref.new >= 0 else None,
        )

    def middle(self, width: int) -> int:
        """The column between the two sides."""
        return (width - 1) * self.share // 1000

    def is_divided(self, row: int) -> bool:
        """Whether both sides stand beside each other in a row."""
        return self.refs[row].kind in ("entry", "sent")

    # -- how they look -----------------------------------------------------------------------------------------------

    def heads(self, width: int) -> Sequence[Row]:
        half = self.middle(width)
        a, b = (f"{name} {flat(side.label)}" for name, side in (("A", self.comparison.a), ("B", self.comparison.b)))
        rest = width - half - 2
        return (Row(((" ", "plain"), (fit(a, half - 1), "bold"), ("│ ", "rule"), (fit(b, rest), "bold"))),)

    def row(self, index: int, width: int) -> Row:
        ref = self.refs[index]
        match ref.kind:
            case "text":
                return Row(crop(self._lines[ref.line], width) if ref.line >= 0 else ())
            case "head":
                return Row(crop(self._head(width), width))
            case "call":
                return Row(crop(self._call(self.comparison.pairs[ref.pair], width), width))
            case "total" | "peak":
                return Row(crop(self._sum(ref.kind, width), width))
            case "section":
                pair = self.comparison.pairs[ref.pair]
                rule = (("── ", "rule"), (flat(call_name(pair.place)), "name"), (" ", "plain"))
                return Row((*rule, ("─" * max(0, width - width_of(rule)), "rule")))
            case "note":
                note = self._notes(self.comparison.pairs[ref.pair])[ref.line]
                return Row(crop(((f" {note}", "accent"),), width))
            case "fold":
                return Row(crop(self._folded(ref), width))
            case _:
                return self._side_by_side(ref, width)

    def _head(self, width: int) -> tuple[Span, ...]:
        whole = "first difference"
        last = whole if len(whole) <= self._room_at(width) else "differs first"
        return _columns(self._widths_at(width), HEADS, ["head"] * len(HEADS), last, "head", width)

    def _measured(self) -> tuple[int, ...]:
        """The columns, as wide as their numbers want with two cells between them."""
        rows = [self._fields(pair) for pair in self.comparison.pairs] + [self._sums("total"), self._sums("peak")]
        wanted = list(COLUMNS)
        for fields in rows:
            for index, text in enumerate(fields):
                wanted[index] = max(wanted[index], len(text) + (2 if index else 0))
        return tuple(wanted)

    def _widths_at(self, width: int) -> tuple[int, ...]:
        return min(self._widths[0], NAME if width < ROOMY else 2 * NAME), *self._widths[1:]

    def _room_at(self, width: int) -> int:
        """Cells that are left for what differs first."""
        return width - 3 - sum(w for i, w in enumerate(self._widths_at(width)) if width >= ROOMY or i not in CACHED)

    def _fields(self, pair: CallPair) -> list[str]:
        """One call as the columns show it."""
        a, b = pair.a, pair.b
        tokens, costs = (a.tokens if a else None, b.tokens if b else None), (cost_of(a), cost_of(b))
        fields = [call_name(pair.place), *_both(a, b), percent(*tokens), *_cached(a, b)]
        return [*fields, *(dollars(cost, self._largest) for cost in costs), percent(*costs)]

    def _call(self, pair: CallPair, width: int) -> tuple[Span, ...]:
        a, b = pair.a, pair.b
        tokens, costs = (a.tokens if a else None, b.tokens if b else None), (cost_of(a), cost_of(b))
        broken = any(seen is not None and seen.problems for seen in (a, b))
        said = self._differs(pair, self._room_at(width))
        tone = "dim" if pair.same else "plain"
        tokens_of = [
            "name" if not pair.same else "dim",
            tone,
            tone,
            _tone(*tokens),
            tone,
            tone,
            tone,
            tone,
            _tone(*costs),
        ]
        widths = self._widths_at(width)
        return _columns(widths, self._fields(pair), tokens_of, flat(said), "error" if broken else tone, width)

    def _differs(self, pair: CallPair, room: int) -> str:
        """What differs first: in a sentence where there is room for it, else in few words."""
        sides = (("A", pair.a), ("B", pair.b))
        broken = [f"{name} is invalid" for name, seen in sides if seen is not None and seen.problems]
        whole, brief = (
            "; ".join([*broken, *filter(None, [say(pair)])]) for say in (first_difference, brief_difference)
        )
        return whole if cell_len(flat(whole)) <= room else brief

    def _sums(self, kind: str) -> list[str]:
        """The last two lines of the table as its columns show them."""
        a, b = self.comparison.a.totals, self.comparison.b.totals
        if kind == "peak":
            return ["peak", count(a.peak, a.grade), count(b.peak, b.grade), percent(a.peak, b.peak)]
        fields = ["total", count(a.tokens, a.grade), count(b.tokens, b.grade), percent(a.tokens, b.tokens)]
        return [*fields, count(a.cached), count(b.cached), *(self._cost_sum(t) for t in (a, b)), percent(*_known(a, b))]

    def _sum(self, kind: str, width: int) -> tuple[Span, ...]:
        a, b = self.comparison.a.totals, self.comparison.b.totals
        if kind == "peak":
            return _columns(self._widths_at(width), self._sums(kind), ["dim"] * 4, "", "dim", width)
        broken = a.broken + b.broken
        said = f"{plural(broken, 'request')} invalid" if broken else "all valid"
        tones = ["bold"] * 3 + [_tone(a.tokens, b.tokens)] + ["bold"] * 4 + [_tone(*_known(a, b))]
        return _columns(self._widths_at(width), self._sums(kind), tones, said, "error" if broken else "ok", width)

    def _cost_sum(self, totals: Totals) -> str:
        return dollars(totals.cost, self._largest) + ("+?" if totals.unknown and totals.cost else "")

    def _folded(self, ref: Ref) -> tuple[Span, ...]:
        pair, stretch = self.comparison.pairs[ref.pair], self.refs.stretch(ref)
        entries = pair.b.entries if pair.b is not None else ()
        tokens = sum(entries[row.new].tokens_sent for row in stretch.pairs if row.new >= 0)
        return ((f" ▸ {plural(len(stretch.pairs), 'equal message')}, {count(tokens)} tokens", "faint"),)

    def _side_by_side(self, ref: Ref, width: int) -> Row:
        half = self.middle(width)
        pair = self.comparison.pairs[ref.pair]
        old, new = self._entries(ref)
        rest = width - half - 1
        if ref.kind == "sent":
            return Row((*_preview(old, new, half), ("│", "rule"), *_preview(new, old, rest)))
        left, right = _head(old, ref.old, pair.a, half), _head(new, ref.new, pair.b, rest)
        return Row((*left, ("│", "rule"), *right))


def _columns(
    widths: Sequence[int], fields: Sequence[str], tokens: Sequence[str], last: str, last_token: str, room: int
) -> tuple[Span, ...]:
    """Right-aligned fields after the first, then the rest of the line; with little room, what is cached is left out."""
    spans: list[Span] = [(" ", "plain")]
    for index, width in enumerate(widths):
        if room < ROOMY and index in CACHED:
            continue
        text = fields[index] if index < len(fields) else ""
        token = tokens[index] if index < len(tokens) else "plain"
        spans.append((fit(text, width, "right" if index else "left"), token))
    return (*spans, ("  ", "plain"), (last, last_token))


def _tone(before: float | None, after: float | None) -> str:
    if before is None or after is None or before == after:
        return "faint"
    return "warning" if after > before else "ok"


def _known(a: Totals, b: Totals) -> tuple[float | None, float | None]:
    """What the two cost; None for both where a price is unknown."""
    return (None, None) if a.unknown or b.unknown else (a.cost, b.cost)


def _both(a: Seen | None, b: Seen | None) -> list[str]:
    return [UNKNOWN if seen is None else count(seen.tokens, seen.grade) for seen in (a, b)]


def _cached(a: Seen | None, b: Seen | None) -> list[str]:
    return [UNKNOWN if s is None or s.forecast is None else count(s.forecast.cached) for s in (a, b)]


def _named(entry: Entry | None, index: int) -> str:
    return "" if entry is None else f"{index + 1} {entry.item.message.role} {flat(origin(entry))}"


def _head(entry: Entry | None, index: int, seen: Seen | None, width: int) -> tuple[Span, ...]:
    """Who, why and how large."""
    if entry is None or seen is None:
        return ((" ", "plain"), (fit("not here", max(1, width - 1)), "faint"))
    state = state_of(entry)
    spans: list[Span] = [(f" {_named(entry, index)} ", _NAME_STYLE.get(state, "masked"))]
    if state != "full":
        spans += [sign(str(entry.action)), (f" {flat(explain(entry, seen.call.place))}", "masked")]
    size = count(entry.tokens_sent if entry.sent is not None else 0, entry.grade)
    return justify(crop(spans, max(1, width - len(size) - 2)), ((f"{size} ", "plain"),), width)


def _preview(entry: Entry | None, other: Entry | None, width: int) -> tuple[Span, ...]:
    """The first line of what went out; of a message that is worded otherwise, the place where it is."""
    if entry is None or entry.sent is None:
        return ((" " * width, "plain"),)
    if other is not None and other.sent is not None and state_of(entry) == state_of(other) == "full":
        return (("   ", "plain"), (fit(_around(other.sent.text, entry.sent.text), max(1, width - 3)), "dim"))
    text = entry.sent.text or ", ".join(f"→ {call.name}" for call in entry.sent.tool_calls)
    token = "placeholder" if state_of(entry) != "full" else "dim"
    return (("   ", "plain"), (fit(text, max(1, width - 3)), token))


def _around(old: str, new: str) -> str:
    """A text from just before the first words that the other one does not have, with these in brackets."""
    before, marked = "", list[str]()
    for passage in passages(old, new):
        if passage.same and not marked:
            before = passage.new
        else:
            marked.append(passage.new if passage.same or not passage.new else f"⟦{passage.new}⟧")
    lead = before[-LEAD:]
    return ("…" if len(lead) < len(before) else "") + lead + "".join(marked)


def _document(entry: Entry | None, other: Entry | None) -> list[Line]:
    """What went out in full; where both sides are whole messages, the words that only this one has are marked."""
    if entry is None or entry.sent is None:
        return [Line("(not sent)", "faint")]
    if other is None or other.sent is None or state_of(entry) != state_of(other) or entry.sent == other.sent:
        return message_lines(entry.sent, "plain" if state_of(entry) == "full" else "placeholder", whole=True)
    found = passages(other.sent.text, entry.sent.text)
    return text_lines("".join(p.new if p.same or not p.new else f"⟦{p.new}⟧" for p in found), whole=True)
