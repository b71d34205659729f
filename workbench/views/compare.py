"""A comparison: the verdict, a line for each call, then each differing call with its messages side by side."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace
from rich.cells import cell_len

from workbench.analysis.compare import AssembledCall, Breach, CallPair, Comparison, ComparisonSide, Totals
from workbench.context.align import Stretch, stretches
from workbench.context.assembly import Entry, Grade
from workbench.context.cache import Price
from workbench.context.ledger import worse
from workbench.context.message import Image
from workbench.context.reasons import explain, origin
from workbench.context.wording import passages
from workbench.dollars import GRADE_SIGN
from workbench.views.cells import Row, Span, crop, fit, flat, justify, width_of
from workbench.views.compare_refs import OUTPUT, CompareRefs, Ref
from workbench.views.compare_words import (
    ComparisonNote,
    breach_line,
    brief_difference,
    change_words,
    cost_of,
    dollars,
    first_difference,
    pays,
    percent,
    sentences,
    state_of,
    verdict,
)
from workbench.views.diffs import DiffRows, diff_blocks
from workbench.views.documents import message_lines
from workbench.views.entry import equal_words, message_text
from workbench.views.figure import Lines, lines_picture
from workbench.views.model import Rows
from workbench.views.numbers import UNKNOWN, count, plural
from workbench.views.page import page, thumbnails
from workbench.views.plot import Drawn, lines_over_calls
from workbench.views.side_by_side import SideRows
from workbench.views.signs import sign
from workbench.views.text import DrawnRows, TextLine, drawn_line, hung, wrapped
from workbench.views.value import (
    BLANK,
    Block,
    Cell,
    Column,
    Drawing,
    FoldedMessages,
    Heading,
    MessageSide,
    Piece,
    SideBySide,
    Table,
    View,
)

BESIDE = 140
"""Cells from which on the two plots stand side by side."""
GAP = 4
"""Cells between them then."""


def plot_doc(comparison: Comparison, height: Callable[[], int]) -> DrawnRows:
    """Both plots in the given width, on a screen of this many lines: side by side, or one below the other."""
    title = (("Plot", "title"), ("  over the calls", "name"))
    picture = partial(lines_picture, plotted(comparison))
    return DrawnRows(lambda room: _drawn(comparison, room, height()), title, lambda form: picture(form=form))


def _drawn(comparison: Comparison, room: int, height: int) -> list[TextLine]:
    plots = plotted(comparison)
    priced = len(plots) > 1
    beside = room >= BESIDE and priced
    width = (room - GAP) // 2 if beside else room
    rows = max(4, height - 7 if beside else (height - 11) // 2)
    drawn = [_drawing(plot, width, rows) for plot in plots]
    none: Drawn = (("No price is known, so there is no cost to plot.", "dim"),)
    sent, paid = drawn[0], drawn[1] if priced else [none]
    lines = _side_by_side(sent, paid, width) if beside else [*sent, (), *paid]
    return [drawn_line(spans) for spans in (_legend(comparison), (), *lines)]


def _drawing(plot: Lines, width: int, height: int = 8) -> list[Drawn]:
    return lines_over_calls(plot.names, plot.visits, plot.lines, plot.title, width, height)


def plotted(comparison: Comparison) -> tuple[Lines, ...]:
    """Tokens and cost of both sides over the calls; no cost if no price is known."""
    names = [pair.place.words for pair in comparison.pairs]
    visits = [pair.place.visit_key for pair in comparison.pairs]
    sides = [pair.a for pair in comparison.pairs], [pair.b for pair in comparison.pairs]
    tokens = [[float(seen.tokens) if seen else None for seen in side] for side in sides]
    costs = [[cost_of(seen) for seen in side] for side in sides]
    sent = Lines("tokens sent", names, visits, tokens)
    if all(cost is None for side in costs for cost in side):
        return (sent,)
    return sent, Lines("US dollars for the input, predicted", names, visits, costs)


def _legend(comparison: Comparison) -> tuple[Span, ...]:
    return (
        ("A", "side-a"),
        (f" {comparison.a.label}     ", "bold"),
        ("B", "side-b"),
        (f" {comparison.b.label}     ", "bold"),
        ("= both in one place", "dim"),
    )


def _side_by_side(left: list[Drawn], right: list[Drawn], width: int) -> list[Drawn]:
    return [(*a, (" " * (width - width_of(a) + GAP), "plain"), *b) for a, b in zip_longest(left, right, fillvalue=())]


COLUMNS = (5, 10, 8, 6, 10, 8, 9, 9, 6)
"""Cells of the call's name, tokens A, B and their change, cached A, B, cost A, B and their change: at the least."""
NAME = 16
"""Most cells of a call's name in a narrow pane; else twice as many."""
FIELDS = ("call", "tokens A", "tokens B", "tokens ±", "cached A", "cached B", "cost A", "cost B", "cost ±")
HEADS = ("call", "tokens A", "B", "±", "cached A", "B", "$ A", "B", "±")
CACHED = (4, 5)
SENT_LINES = 8
"""Most lines of a message that a row shows where there is room; enter shows all of it."""
LEAD, AROUND = 24, 400
"""Characters shown before the first words that differ, and of each passage from there on."""
READABLE = 24
"""Cells of its column from which on a sentence is wrapped in it."""
ROOMY, ROOMIEST = 100, 400
"""Cells from which on the columns ``CACHED`` show, and those of a line before it is laid out."""
_NAME_STYLE = {"full": "name", "dropped": "faint"}

EVEN = 500
"""Thousandths of the width that a side has by itself."""


class CompareView(View):
    """Two sides call by call: a table, what it says in sentences, and the messages of calls beside each other."""

    def __init__(
        self,
        comparison: Comparison,
        title: str,
        *,
        is_what_if: bool,
        at: CallPair | None = None,
        texts: bool = False,
        plot: bool = False,
    ) -> None:
        """``at``: the call whose messages are shown; ``texts``: they are not cut; ``plot``: tokens and cost over the
        calls are drawn.
        """
        self.comparison, self.title, self.is_what_if = comparison, title, is_what_if
        self.at, self.texts, self.plot = at, texts, plot

    def blocks(self) -> Iterator[Block]:
        note = "what-if: no call was made; all numbers are predicted" if self.is_what_if else "predicted for the input"
        yield (Cell(self.title, "head"), Cell(f"   {note}", "dim"))
        yield from self._sides()
        yield BLANK
        yield calls_table(self.comparison)
        yield BLANK
        yield from map(_sentence, sentences(self.comparison))
        yield from answer_blocks(self.comparison, whole=self.texts)
        if self.plot:
            yield BLANK
            yield plots(self.comparison)
        if self.at is not None and self.at.a is not None and self.at.b is not None:
            yield BLANK
            yield beside(self.at, whole=self.texts)

    def page(self) -> Iterator[Block]:
        """All of it, with every call that differs, for one long page."""
        comparison = self.comparison
        yield from self._sides()
        said = list(sentences(comparison))
        yield from (_sentence(one) for one in said if one.kind != "price")
        different = [pair for pair in comparison.differing if pair.a is not None and pair.b is not None]
        yield calls_table(comparison, links=[_anchor(different, pair) for pair in comparison.pairs])
        yield (Cell(f"Costs are US dollars for the input, predicted.{_grades(comparison)}", "dim"),)
        yield from (_sentence(one) for one in said if one.kind == "price")
        yield from answer_blocks(comparison, whole=True)
        yield Heading("Over the calls")
        yield plots(comparison)
        for number, pair in enumerate(different, 1):
            links = [("previous", f"d{number - 1}")] if number > 1 else []
            links += [("next difference", f"d{number + 1}")] if number < len(different) else []
            yield Heading(pair.place.words, f"d{number}", links)
            yield beside(pair, whole=True)

    def _sides(self) -> Iterator[Block]:
        for name, side in (("A", self.comparison.a), ("B", self.comparison.b)):
            full = dict.fromkeys(one.strategy for one in side.seen)
            more = "" if not self.is_what_if or list(full) == [side.label] else f"   {' · '.join(full)}"
            yield (Cell(f"{name}  ", "head"), Cell(side.label, "accent"), Cell(more, "dim"))

    def json(self) -> dict[str, Any]:
        return comparison_json(self.comparison)


def comparison_html(comparison: Comparison, title: str, images: Mapping[str, bytes], *, is_what_if: bool = True) -> str:
    """A comparison as one page. ``images``: the bytes of the images by digest, as far as they are there; they stand in
    it as thumbnails."""
    view = CompareView(comparison, title, is_what_if=is_what_if)
    return page(title, "two contexts compared", view.page(), thumbnails(_shown_images(comparison), images))


def _shown_images(comparison: Comparison) -> Iterator[Image]:
    for pair in comparison.differing:
        if pair.a is not None and pair.b is not None:
            for entry in (*pair.a.entries, *pair.b.entries):
                if entry.sent is not None:
                    yield from entry.sent.images


_SAID = {"side": "plain", "pays": "bold", "note": "plain", "reported": "recorded", "price": "dim"}


def _sentence(said: ComparisonNote) -> tuple[Piece, ...]:
    """A sentence in a line of its own; the verdict with its sign."""
    if said.kind == "warning":
        glyph, token = sign("warning")
        return (Cell(f"{glyph} {said.text}.", token, f"warning: {said.text}."),)
    if said.kind == "verdict":
        return (Cell(f"{said.text}.", "ok" if said.saves else "bold"),)
    return (Cell(f"  {said.text}{'.' if said.kind in ('pays', 'note') else ''}", _SAID[said.kind]),)


def _anchor(different: Sequence[CallPair], pair: CallPair) -> str:
    return next((f"d{number}" for number, one in enumerate(different, 1) if one is pair), "")


def _grades(comparison: Comparison) -> str:
    """The meaning of the signs before numbers of tokens, if there are any."""
    meanings = {Grade.CALIBRATED: "scaled by what the provider counted", Grade.ESTIMATE: "an estimate"}
    found = {seen.grade for side in (comparison.a, comparison.b) for seen in side.seen}
    said = [f"{GRADE_SIGN[grade]} before tokens: {words}." for grade, words in meanings.items() if grade in found]
    return "".join(f" {one}" for one in said)


def answer_blocks(comparison: Comparison, *, whole: bool) -> Iterator[Block]:
    """How the final outputs of two runs differ, and with ``whole`` the answers of each call."""
    outputs = comparison.outputs
    if outputs is not None and outputs[0] != outputs[1]:
        yield BLANK
        yield (Cell("Final output", "head"), Cell("  − A  + B", "dim"))
        yield from diff_blocks(*outputs)
    for at in comparison.answered_otherwise if whole else ():
        answers = comparison.answers(comparison.pairs[at]) or ("", "")
        yield BLANK
        yield (Cell(f"Answer of {comparison.pairs[at].place.words}", "head"), Cell("  − A  + B", "dim"))
        yield from diff_blocks(*answers)


def plots(comparison: Comparison) -> Drawing:
    """Tokens and cost over the calls, below each other."""
    found = plotted(comparison)

    def draw(width: int) -> Iterator[Drawn]:
        yield _legend(comparison)
        for plot in found:
            yield ()
            yield from _drawing(plot, width)

    return Drawing(draw, partial(lines_picture, found))


# -- the table -------------------------------------------------------------------------------------------------------


def calls_table(comparison: Comparison, links: Sequence[str] | None = None) -> Table:
    """A row for each call, the sums and the peak. With ``links`` it is for a page, which has room for more columns."""
    a, b = comparison.a.totals, comparison.b.totals
    change = Column("±", right=True, leaves=4, words="change")
    columns = {
        "call": Column("call", flexible=True),
        "tokens A": Column("tokens A", right=True, leaves=6),
        "tokens B": Column("B", right=True, leaves=6),
        "tokens ±": change,
        "cached A": Column("cached A", right=True, leaves=2),
        "cached B": Column("B", right=True, leaves=2),
        "fresh A": Column("fresh A", right=True, leaves=1),
        "fresh B": Column("B", right=True, leaves=1),
        "written A": Column("written A", right=True, leaves=1),
        "written B": Column("B", right=True, leaves=1),
        "cost A": Column("$ A", right=True),
        "cost B": Column("B", right=True),
        "cost ±": replace(change, leaves=5),
        "first difference": Column("first difference", flexible=True, leaves=3),
    }
    if links is None:
        del columns["fresh A"], columns["fresh B"]
    if not a.written and not b.written:
        del columns["written A"], columns["written B"]
    largest = largest_cost(comparison)
    fields = [call_fields(pair, largest) for pair in comparison.pairs]
    fields += [total_fields(comparison, largest), peak_fields(comparison)]
    rows = [[row.get(name, "") for name in columns] for row in fields]
    return Table(tuple(columns.values()), rows, links=links or ())


def largest_cost(comparison: Comparison) -> float:
    costs = (cost_of(seen) for pair in comparison.pairs for seen in (pair.a, pair.b))
    return max((cost for cost in costs if cost is not None), default=0.0)


def call_fields(pair: CallPair, largest: float) -> Mapping[str, Cell]:
    """The cells of a call, by column."""
    a, b = pair.a, pair.b
    tone = "dim" if pair.same else "plain"
    broken = [f"{name} is invalid" for name, seen in (("A", a), ("B", b)) if seen is not None and seen.problems]
    said, plain = ("; ".join([*broken, *filter(None, [first_difference(pair, arrow)])]) for arrow in ("→", "to"))
    fields = {"call": Cell(pair.place.words, "dim" if pair.same else "name")}
    for name, seen in (("A", a), ("B", b)):
        forecast = seen.forecast if seen is not None else None
        fields[f"tokens {name}"] = Cell(UNKNOWN if seen is None else count(seen.tokens, seen.grade), tone)
        for part in ("cached", "fresh", "written"):
            fields[f"{part} {name}"] = Cell(
                UNKNOWN if seen is None or forecast is None else _forecast(getattr(forecast, part), seen.grade), tone
            )
        fields[f"cost {name}"] = Cell(dollars(cost_of(seen), largest), tone)
    fields["tokens ±"] = _change(a.tokens if a else None, b.tokens if b else None)
    fields["cost ±"] = _change(cost_of(a), cost_of(b))
    missing = "warning" if a is None or b is None else tone
    fields["first difference"] = Cell(said, "error" if broken else missing, plain)
    return fields


def total_fields(comparison: Comparison, largest: float) -> Mapping[str, Cell]:
    """The sums over all calls, and how many of them differ."""
    a, b = comparison.a.totals, comparison.b.totals
    fields = {"call": Cell("total", "bold"), "tokens ±": _change(a.tokens, b.tokens), "cost ±": _change(*_known(a, b))}
    for name, one in (("A", a), ("B", b)):
        fields[f"tokens {name}"] = Cell(count(one.tokens, one.grade), "bold")
        for part in ("cached", "fresh", "written"):
            fields[f"{part} {name}"] = Cell(_forecast(getattr(one, part), one.grade), "bold")
        unknown = f"+{one.unknown}?" if one.unknown and one.cost else ""
        fields[f"cost {name}"] = Cell(dollars(one.cost, largest) + unknown, "bold")
    if broken := a.broken + b.broken:
        fields["first difference"] = Cell(f"{plural(broken, 'request')} invalid", "error")
    else:
        said = f"valid, {len(comparison.differing)} differ"
        fields["first difference"] = Cell(said, "ok")
    return fields


def peak_fields(comparison: Comparison) -> Mapping[str, Cell]:
    """The largest request of each side."""
    a, b = comparison.a.totals, comparison.b.totals
    return {
        "call": Cell("peak", "dim"),
        "tokens A": Cell(count(a.peak, a.grade), "dim"),
        "tokens B": Cell(count(b.peak, b.grade), "dim"),
        "tokens ±": _change(a.peak, b.peak),
    }


def _forecast(tokens: int, grade: Grade) -> str:
    """Cached, fresh or written tokens, which are predicted also where those of the request are known."""
    return count(tokens, worse(grade, Grade.CALIBRATED))


def _change(before: float | None, after: float | None) -> Cell:
    return Cell(percent(before, after), _tone(before, after))


# -- messages beside each other --------------------------------------------------------------------------------------


def beside(pair: CallPair, *, whole: bool = False) -> SideBySide:
    """The messages of one call in two columns; messages that both send alike are folded. ``whole``: texts
    are not cut.
    """
    a, b = pair.a, pair.b
    assert a is not None
    assert b is not None
    notes: list[tuple[Piece, ...]] = []
    for name, seen, other in (("A", a, b), ("B", b, a)):
        if seen.breach is not None:
            notes.append((Cell(f"{name} {breach_line(seen, other)}", "dim"),))
        notes += [(Cell(f"{name} is invalid: {broken.message}", "error"),) for broken in seen.problems]
        if whole and seen.forecast is not None and seen.forecast.reason:
            notes.append((Cell(f"{name} cache: {seen.forecast.reason}", "dim"),))
    rows: list[tuple[MessageSide | None, MessageSide | None] | FoldedMessages] = []
    for stretch in stretches(a.entries, b.entries):
        if stretch.equal:
            rows.append(_fold(stretch, a, b))
            continue
        for row in stretch.pairs:
            old = a.entries[row.old] if row.old >= 0 else None
            new = b.entries[row.new] if row.new >= 0 else None
            rows.append((side_of(old, row.old, a, new), side_of(new, row.new, b, old)))
    name = pair.place.words
    return SideBySide((f"{name}, context of A", f"{name}, context of B"), notes, rows, whole)


def _fold(stretch: Stretch, a: AssembledCall, b: AssembledCall) -> FoldedMessages:
    sides = []
    for row in stretch.pairs:
        index, seen = (row.new, b) if row.new >= 0 else (row.old, a)
        if (side := side_of(seen.entries[index], index, seen, None)) is not None:
            sides.append(side)
    return FoldedMessages(_folded_words(stretch, b), sides)


def _folded_words(stretch: Stretch, b: AssembledCall) -> str:
    return equal_words(b.entries[row.new] for row in stretch.pairs if row.new >= 0)


def side_of(entry: Entry | None, index: int, seen: AssembledCall | None, other: Entry | None) -> MessageSide | None:
    """One side of a row: role, reason and size, and the text as sent; None if the side has no message."""
    if entry is None or seen is None:
        return None
    state = state_of(entry)
    glyph, token = sign(str(entry.action)) if state != "full" else ("", "")
    return MessageSide(
        f"{index + 1} {entry.item.message.role} {origin(entry)}",
        state,
        explain(entry, seen.call.place) if state != "full" else "",
        Cell(glyph, token),
        count(entry.tokens_sent if entry.sent is not None else 0, entry.grade),
        partial(_passages, entry, other),
        [image.digest for image in entry.sent.images] if entry.sent is not None else (),
    )


def _passages(entry: Entry, other: Entry | None) -> list[tuple[str, bool]]:
    """Returns the passages that were sent; of a message that is worded otherwise, with the words that the other side
    does not have."""
    if entry.sent is None:
        return []
    text = message_text(entry)
    if other is None or other.sent is None or not state_of(entry) == state_of(other) == "full":
        return [(text, False)]
    return [(part.new, not part.same) for part in passages(message_text(other), text) if part.new]


# -- JSON ------------------------------------------------------------------------------------------------------------


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Both sides with their sums, then every call; costs are US dollars of the input, predicted."""
    warns, sentence = verdict(comparison)
    return {
        "predicted": True,
        "a": _side_json(comparison.a),
        "b": _side_json(comparison.b),
        "verdict": sentence,
        "paradox": warns,
        "notes": [one.text for one in sentences(comparison) if one.kind in ("pays", "note")],
        "outputs": None if comparison.outputs is None else dict(zip("ab", comparison.outputs, strict=True)),
        "calls": [_pair_json(pair, comparison.answers(pair)) for pair in comparison.pairs],
    }


def _side_json(side: ComparisonSide) -> dict[str, Any]:
    return {
        "label": side.label,
        "outcome": None if side.outcome is None else to_builtins(side.outcome),
        "totals": to_builtins(side.totals),
        "left_out": to_builtins(side.left_out),
        "prices": {model: _price_json(price) for model, price in side.prices.items()},
        "break_even": {
            "breaks": len(side.breaches),
            "freed": sum(breach.freed for breach in side.breaches),
            "rewritten": sum(breach.rewritten for breach in side.breaches),
            **_turns_json(side.pays_after if side.breaches else None),
        },
    }


def _price_json(price: Price) -> dict[str, Any]:
    numbers = {name: getattr(price, name) for name in ("input", "output", "cache_read", "cache_write")}
    return {
        **numbers,
        "unit": "US dollars per token",
        "source": price.source,
        "grade": price.grade,
        "cache_rule": to_builtins(price.rule),
    }


def _pair_json(pair: CallPair, answers: tuple[str, str] | None) -> dict[str, Any]:
    both = pair.a is not None and pair.b is not None
    return {
        "at": str(pair.place),
        "phase": pair.place.phase,
        "turn": pair.place.turn,
        "same": pair.same,
        "answers": None if answers is None else dict(zip("ab", answers, strict=True)),
        "a": _seen_json(pair.a, pair.b),
        "b": _seen_json(pair.b, pair.a),
        "changes": [
            {
                "kind": str(change.kind),
                "number_a": change.old + 1 or None,
                "number_b": change.new + 1 or None,
                "words": change.words,
                "short": change_words(pair, change),
                "rule": change.rule.path,
                "line": change.rule.line or None,
            }
            for change in pair.changes
            if both
        ],
    }


def _seen_json(seen: AssembledCall | None, other: AssembledCall | None) -> dict[str, Any] | None:
    if seen is None:
        return None
    forecast = seen.forecast
    return {
        "model": seen.call.model,
        "strategy": seen.strategy,
        "digest": seen.digest,
        "tokens": seen.tokens,
        "grade": str(seen.grade),
        "cached": forecast.cached if forecast else None,
        "fresh": forecast.fresh if forecast else None,
        "written": forecast.written if forecast else None,
        "cost": forecast.cost if forecast else None,
        "cache": forecast.reason if forecast else "",
        "broken": [{"invariant": b.invariant, "message": b.message} for b in seen.problems],
        "break_even": _breach_json(seen.breach, pays(seen, other)) if seen.breach is not None else None,
        "reported": to_builtins(seen.reported) if seen.reported is not None else None,
    }


def _breach_json(breach: Breach, pays: bool | None) -> dict[str, Any]:
    return {
        "freed": breach.freed,
        "rewritten": breach.rewritten,
        "left": breach.left,
        "pays": pays,
        **_turns_json(breach.turns),
    }


def _turns_json(turns: float | None) -> dict[str, Any]:
    """JSON has no infinity: masking that can never pay says so in a field of its own."""
    never = turns is not None and math.isinf(turns)
    return {"turns": None if never else turns, "never": never}


# -- the screen ------------------------------------------------------------------------------------------------------


class CompareRows(Rows):
    """Folds are opened by row; ``step`` leads from one difference to the next."""

    spreads = True

    def __init__(self, comparison: Comparison, name: str, *, is_what_if: bool = True) -> None:
        self.comparison = comparison
        self.share = EVEN
        """Thousandths of the width for side A."""
        how = "what-if, no call was made" if is_what_if else "as recorded"
        self.title = (("Compare", "title"), (f"  {flat(name)}", "name"), (f"  {how}", "dim"))
        self._width = ROOMIEST
        self._lines = list(self._words())
        self._largest = largest_cost(comparison)
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
        for said in sentences(self.comparison):
            if said.kind in ("verdict", "warning"):
                warns = said.kind == "warning"
                mark = sign("warning") if warns else sign("done") if said.saves else (" ", "plain")
                token = "warning" if warns else "ok" if said.saves else "bold"
            else:
                mark, token = (" ", "plain"), _SAID[said.kind]
            for part in textwrap.wrap(flat(said.text), max(20, self._width - 4)):
                yield ((" ", "plain"), mark, (f" {part}", token))
                mark = (" ", "plain")

    def _notes(self, pair: CallPair) -> list[str]:
        """Returns the messages that either side of a call takes back, in as many lines as they need."""
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
        """Returns why there is no difference to go to."""
        both = [pair for pair in self.comparison.pairs if pair.a is not None and pair.b is not None]
        if not both:
            return "The two have no call in common: there are no messages to compare."
        if all(pair.same for pair in both):
            return "Every call that both made saw the same messages."
        return "No further difference." if by > 0 else "No earlier difference."

    def toggle(self, row: int) -> bool:
        """Open the fold of a row, or close the stretch it belongs to; False where there is none."""
        ref = self.refs[row]
        if ref.kind not in ("fold", "entry") or not self.refs.stretch(ref).equal:
            return False
        self.refs.toggle(ref)
        return True

    def section_of(self, row: int) -> int | None:
        """The beginning of the messages of the call on this line of the table."""
        ref = self.refs[row]
        return self.refs.section_of(ref.pair) if ref.kind == "call" else None

    def sides(self, row: int) -> SideRows | DiffRows | None:
        """The texts of a row in full, with what differs in red and green; None for a row without a message."""
        ref = self.refs[row]
        if ref.kind == "answer":
            title: tuple[Span, ...] = (("Answer", "title"), (f"  {flat(self._answered(ref))}", "name"))
            labels = (f"A: {flat(self.comparison.a.label)}", f"B: {flat(self.comparison.b.label)}")
            return DiffRows(self._answers(ref), labels, title)
        if ref.kind not in ("entry", "sent"):
            return None
        old, new = self._entries(ref)
        title = (("Message", "title"), (f"  {_named(old, ref.old) or _named(new, ref.new)}", "name"))
        labels = (f"A: {state_of(old) if old else 'not here'}", f"B: {state_of(new) if new else 'not here'}")
        if old is not None and new is not None and _is_reworded(old, new):
            return DiffRows((message_text(old), message_text(new)), labels, title, copy=message_text(new))
        return SideRows((_document(old), _document(new)), labels, title)

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
        """Returns whether a row shows both sides in two columns."""
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
            case "answers":
                return Row(crop(((" Answers: where they differ", "head"),), width))
            case "answer":
                return Row(crop(self._answer(ref), width))
            case "section":
                pair = self.comparison.pairs[ref.pair]
                rule = (("── ", "rule"), (flat(pair.place.words), "name"), (" ", "plain"))
                return Row((*rule, ("─" * max(0, width - width_of(rule)), "rule")))
            case "note":
                note = self._notes(self.comparison.pairs[ref.pair])[ref.line]
                return Row(crop(((f" {note}", "dim"),), width))
            case "fold":
                return Row(crop(self._folded(ref), width))
            case _:
                return self._side_by_side(ref, width)

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """What differs first, an answer or the beginnings of both messages in as many lines as they need, up to
        ``SENT_LINES``."""
        ref = self.refs[index]
        match ref.kind:
            case "call":
                return self._call_lines(self.comparison.pairs[ref.pair], width)
            case "answer":
                name, *told = self._answer(ref)
                return tuple(_limited(hung((name,), told, width), width))
            case "entry" | "sent":
                return self._both_sides(ref, width)
            case _:
                return ()

    def _call_lines(self, pair: CallPair, width: int) -> tuple[Row, ...]:
        """A call with its first difference as a sentence: in its column where that is wide enough, else below."""
        room = self._room_at(width)
        said, token = self._differs(pair, 1_000), call_fields(pair, self._largest)["first difference"].token
        if cell_len(flat(said)) <= room or (room < READABLE and cell_len(flat(self._differs(pair, room))) <= room):
            return ()
        *before, _ = self._call(pair, width)
        if room >= READABLE:
            return hung(before, ((flat(said), token),), width)
        first = Row(crop(self._call(pair, width), width))
        return (first, *(Row(((" " * 6, "plain"), *line)) for line in wrapped(((flat(said), token),), width - 7)))

    def _both_sides(self, ref: Ref, width: int) -> tuple[Row, ...]:
        half, pair = self.middle(width), self.comparison.pairs[ref.pair]
        old, new = self._entries(ref)
        rest = width - half - 1
        if ref.kind == "sent":
            left, right = _preview_lines(old, new, half, "gone-word"), _preview_lines(new, old, rest, "added-word")
        else:
            left = _head_lines(side_of(old, ref.old, pair.a, new), half)
            right = _head_lines(side_of(new, ref.new, pair.b, old), rest)
        blank = ((" " * half, "plain"),), ((" " * rest, "plain"),)
        lines = [
            Row((*(one or blank[0]), ("│", "rule"), *(other or blank[1]))) for one, other in zip_longest(left, right)
        ]
        return tuple(lines) if len(lines) > 1 else ()

    def _head(self, width: int) -> tuple[Span, ...]:
        room = self._room_at(width)
        last = next((words for words in ("first difference", "differs first") if len(words) <= room), "differs")
        heads = {name: Cell(head, "head") for name, head in zip(FIELDS, HEADS, strict=True)}
        return _columns(self._widths_at(width), heads, (last, "head"), width)

    def _measured(self) -> tuple[int, ...]:
        """The columns, as wide as their numbers want with two cells between them."""
        rows = [call_fields(pair, self._largest) for pair in self.comparison.pairs]
        rows += [total_fields(self.comparison, self._largest), peak_fields(self.comparison)]
        wanted = list(COLUMNS)
        for fields in rows:
            for index, name in enumerate(FIELDS):
                wanted[index] = max(
                    wanted[index], len(fields[name].text) + (2 if index else 0) if name in fields else 0
                )
        return tuple(wanted)

    def _widths_at(self, width: int) -> tuple[int, ...]:
        return min(self._widths[0], NAME if width < ROOMY else 2 * NAME), *self._widths[1:]

    def _room_at(self, width: int) -> int:
        """Cells that are left for what differs first."""
        return width - 3 - sum(w for i, w in enumerate(self._widths_at(width)) if width >= ROOMY or i not in CACHED)

    def _call(self, pair: CallPair, width: int) -> tuple[Span, ...]:
        fields = call_fields(pair, self._largest)
        said = self._differs(pair, self._room_at(width))
        token = fields["first difference"].token
        return _columns(self._widths_at(width), fields, (flat(said), token), width)

    def _differs(self, pair: CallPair, room: int) -> str:
        """The first difference: as a sentence if there is room, else in a few words, and fewer."""
        sides = (("A", pair.a), ("B", pair.b))
        broken = [f"{name} is invalid" for name, seen in sides if seen is not None and seen.problems]
        forms = (first_difference, brief_difference, partial(brief_difference, counted=False))
        told = ["; ".join([*broken, *filter(None, [say(pair)])]) for say in forms]
        return next((words for words in told if cell_len(flat(words)) <= room), told[-1])

    def _sum(self, kind: str, width: int) -> tuple[Span, ...]:
        """The last two lines of the table."""
        peak = kind == "peak"
        fields = peak_fields(self.comparison) if peak else total_fields(self.comparison, self._largest)
        said = fields.get("first difference", Cell(""))
        return _columns(self._widths_at(width), fields, (said.text, said.token), width)

    def _answer(self, ref: Ref) -> tuple[Span, ...]:
        """The call, and the place in B's answer where it begins to differ; where B has none, that of A."""
        old, new = self._answers(ref)
        told = _around(old, new, "added-word") if new else [("A alone: ", "dim"), (_flat(old, AROUND), "gone-word")]
        return ((f" {fit(self._answered(ref), NAME)}  ", "name"), *told)

    def _answers(self, ref: Ref) -> tuple[str, str]:
        pair = None if ref.pair == OUTPUT else self.comparison.pairs[ref.pair]
        return (self.comparison.outputs if pair is None else self.comparison.answers(pair)) or ("", "")

    def _answered(self, ref: Ref) -> str:
        return "final output" if ref.pair == OUTPUT else self.comparison.pairs[ref.pair].place.words

    def _folded(self, ref: Ref) -> tuple[Span, ...]:
        pair = self.comparison.pairs[ref.pair]
        assert pair.b is not None
        return ((f" ▸ {_folded_words(self.refs.stretch(ref), pair.b)}", "faint"),)

    def _side_by_side(self, ref: Ref, width: int) -> Row:
        half = self.middle(width)
        pair = self.comparison.pairs[ref.pair]
        old, new = self._entries(ref)
        rest = width - half - 1
        if ref.kind == "sent":
            return Row((*_preview(old, new, half, "gone-word"), ("│", "rule"), *_preview(new, old, rest, "added-word")))
        left = _head(side_of(old, ref.old, pair.a, new), half)
        right = _head(side_of(new, ref.new, pair.b, old), rest)
        return Row((*left, ("│", "rule"), *right))


def _columns(widths: Sequence[int], fields: Mapping[str, Cell], last: Span, room: int) -> tuple[Span, ...]:
    """Right-aligned fields after the first, then the rest of the line; a narrow pane leaves out the cached tokens."""
    spans: list[Span] = [(" ", "plain")]
    for index, (name, width) in enumerate(zip(FIELDS, widths, strict=True)):
        if room < ROOMY and index in CACHED:
            continue
        cell = fields.get(name, Cell("", "plain"))
        spans.append((fit(cell.text, width, "right" if index else "left"), cell.token))
    return (*spans, ("  ", "plain"), last)


def _tone(before: float | None, after: float | None) -> str:
    if before is None or after is None or before == after:
        return "faint"
    return "warning" if after > before else "ok"


def _known(a: Totals, b: Totals) -> tuple[float | None, float | None]:
    """The costs of both; None for both if a price is unknown."""
    return (None, None) if a.unknown or b.unknown else (a.cost, b.cost)


def _named(entry: Entry | None, index: int) -> str:
    return "" if entry is None else f"{index + 1} {entry.item.message.role} {flat(origin(entry))}"


def _head(side: MessageSide | None, width: int) -> tuple[Span, ...]:
    """Role, reason and size."""
    if side is None:
        return ((" ", "plain"), (fit("not here", max(1, width - 1)), "faint"))
    return justify(crop(_told(side), max(1, width - len(side.size) - 2)), ((f"{side.size} ", "plain"),), width)


def _head_lines(side: MessageSide | None, width: int) -> list[tuple[Span, ...]]:
    """The same in as many lines as the reason needs."""
    if side is None:
        return [_head(side, width)]
    first, *more = wrapped(_told(side), max(12, width - len(side.size) - 2))
    size: tuple[Span, ...] = ((f"{side.size} ", "plain"),)
    return [justify(first, size, width), *(_filled(((" " * 3, "plain"), *line), width) for line in more)]


def _told(side: MessageSide) -> list[Span]:
    """Role and origin of a message, and why it is not sent as it was."""
    spans: list[Span] = [(f" {flat(side.name)} ", _NAME_STYLE.get(side.state, "masked"))]
    if side.why:
        spans += [(side.mark.text, side.mark.token), (f" {flat(side.why)}", "masked")]
    return spans


def _filled(spans: Sequence[Span], width: int) -> tuple[Span, ...]:
    shown = crop(spans, width)
    return (*shown, (" " * (width - width_of(shown)), "plain"))


def _limited(rows: Sequence[Row], width: int) -> Sequence[Row]:
    """At most ``SENT_LINES`` of them; the last says that there is more."""
    if len(rows) <= SENT_LINES:
        return rows
    last = rows[SENT_LINES - 1]
    return (*rows[: SENT_LINES - 1], Row(crop((*last.spans, ("…", "dim")), width), last.tone))


def _is_reworded(old: Entry, new: Entry) -> bool:
    """Returns whether both sides send the message whole, in other words."""
    return old.sent != new.sent and state_of(old) == state_of(new) == "full"


def _preview(entry: Entry | None, other: Entry | None, width: int, only: str) -> tuple[Span, ...]:
    """The first line of what went out; of a message that is worded otherwise, the place where it is. ``only`` is the
    token of words that the other side does not have."""
    begun, room = _begun(entry, other, only, width), max(1, width - 3)
    shown = tuple((fit(text, room), token) for text, token in begun) if len(begun) == 1 else _filled(begun, room)
    return (("   ", "plain"), *shown)


def _preview_lines(entry: Entry | None, other: Entry | None, width: int, only: str) -> list[tuple[Span, ...]]:
    """The same in as many lines as it needs, up to ``SENT_LINES``."""
    room = max(12, width - 4)
    lines = wrapped(_begun(entry, other, only, room * (SENT_LINES + 1)), room)
    rows = _limited([Row((("   ", "plain"), *line)) for line in lines], width - 1)
    return [_filled(row.spans, width) for row in rows]


def _begun(entry: Entry | None, other: Entry | None, only: str, limit: int) -> tuple[Span, ...]:
    """What went out on one line, from its beginning or from where it differs; text beyond ``limit`` characters may be
    missing."""
    if entry is None or entry.sent is None:
        return ()
    if other is not None and other.sent is not None and state_of(entry) == state_of(other) == "full":
        return tuple(_around(other.sent.text, entry.sent.text, only))
    text = entry.sent.text or ", ".join(f"→ {call.name}" for call in entry.sent.tool_calls)
    return ((flat(text[: limit * 4], limit), "placeholder" if state_of(entry) != "full" else "dim"),)


def _around(old: str, new: str, only: str) -> list[Span]:
    """A text from just before the first words that the other one does not have, with these marked."""
    before, marked = "", list[Span]()
    for passage in passages(old, new):
        if passage.same and not marked:
            before = passage.new
        elif passage.new:
            marked.append((_flat(passage.new, AROUND), "dim" if passage.same else only))
    lead = before[-LEAD:]
    return [(("…" if len(lead) < len(before) else "") + _flat(lead, LEAD), "dim"), *marked]


def _flat(text: str, limit: int) -> str:
    """A part of a text on one line, with the blanks at its ends."""
    middle = flat(text, limit)
    return (" " if text[:1].isspace() else "") + middle + (" " if middle and text[-1:].isspace() else "")


def _document(entry: Entry | None) -> list[TextLine]:
    """Returns the whole text that was sent."""
    if entry is None or entry.sent is None:
        return [TextLine("(not sent)", "faint")]
    return message_lines(entry.sent, "plain" if state_of(entry) == "full" else "placeholder", whole=True)
