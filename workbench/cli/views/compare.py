"""A comparison as text: a line per call, the sums, when masking pays, and one call's messages side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from workbench.cli.layout import Column
from workbench.cli.output import Cell, Printer, fitted
from workbench.context.align import Stretch, stretches
from workbench.context.assembly import Entry
from workbench.context.reasons import explain, origin
from workbench.context.wording import passages
from workbench.engine.compare import CallPair, Comparison, Seen, Side
from workbench.tui.rows.compare_words import (
    breach_line,
    call_name,
    cost_of,
    dollars,
    first_difference,
    percent,
    sentences,
    state_of,
)
from workbench.tui.rows.entry_text import message_text
from workbench.tui.rows.numbers import UNKNOWN, count, plural
from workbench.tui.rows.signs import SIGNS

WIDTH = 120
"""Columns of two contexts side by side where there is no terminal to fit."""
_LINES = 2
"""Lines of a message that are shown without ``--text``."""


def print_comparison(comparison: Comparison, printer: Printer) -> None:
    """The table of calls, the sums and the verdict."""
    columns, rows = _table(comparison, printer.plain)
    printer.table(columns, rows)
    printer.line()
    styles = {"pays": "accent", "note": "", "reported": "accent", "price": "dim"}
    for said in sentences(comparison):
        if said.kind in ("verdict", "warning"):
            warns = said.kind == "warning"
            mark = "" if not warns else "warning: " if printer.plain else f"{SIGNS['warning'].glyph} "
            printer.line(Cell(f"{mark}{said.text}.", "warn" if warns else "good" if said.saves else ""))
        else:
            stop = "." if said.kind in ("pays", "note") else ""
            printer.line(Cell(f"  {said.text}{stop}", styles[said.kind]))


def _table(comparison: Comparison, plain: bool) -> tuple[list[Column], list[list[str | Cell]]]:
    a, b = comparison.a.totals, comparison.b.totals
    writes = bool(a.written or b.written)
    change = "change" if plain else "±"
    heads = [("tokens A", 6), ("B", 6), (change, 4), ("cache A", 2), ("B", 2)]
    heads += [("written A", 1), ("B", 1)] if writes else []
    heads += [("cost A", 0), ("B", 0), (change, 5)]
    columns = [Column("call", flexible=True), *(Column(title, right=True, leaves=rank) for title, rank in heads)]
    columns.append(Column("first difference", flexible=True, leaves=3))
    largest = max((s.forecast.cost or 0.0 for p in comparison.pairs for s in (p.a, p.b) if s and s.forecast), default=0)
    rows: list[list[str | Cell]] = [_call_row(pair, writes, largest, plain) for pair in comparison.pairs]
    total: list[str | Cell] = [Cell("total", "head")]
    total += [count(a.tokens, a.grade), count(b.tokens, b.grade), _change(a.tokens, b.tokens)]
    total += [count(a.cached), count(b.cached)]
    total += [count(a.written), count(b.written)] if writes else []
    total += [_sum(comparison.a, largest), _sum(comparison.b, largest), _change(*_comparable(comparison))]
    total.append(_validity(comparison))
    fill: list[str | Cell] = [""] * (len(columns) - 4)
    rows += [
        total,
        [Cell("peak", "head"), count(a.peak, a.grade), count(b.peak, b.grade), _change(a.peak, b.peak), *fill],
    ]
    return columns, rows


def _call_row(pair: CallPair, writes: bool, largest: float, plain: bool) -> list[str | Cell]:
    a, b = pair.a, pair.b
    row: list[str | Cell] = [Cell(call_name(pair.place), "dim" if pair.same else "")]
    row += [_tokens(a), _tokens(b), _change(a.tokens if a else None, b.tokens if b else None)]
    row += [_part(a, "cached"), _part(b, "cached")]
    row += [_part(a, "written"), _part(b, "written")] if writes else []
    row += [dollars(cost_of(a), largest), dollars(cost_of(b), largest), _change(cost_of(a), cost_of(b))]
    broken = [f"{name} is invalid" for name, seen in (("A", a), ("B", b)) if seen is not None and seen.problems]
    said = "; ".join([*broken, *filter(None, [first_difference(pair, "to" if plain else "→")])])
    row.append(Cell(said, "bad" if broken else "warn" if a is None or b is None else ""))
    return row


def _tokens(seen: Seen | None) -> str:
    return UNKNOWN if seen is None else count(seen.tokens, seen.grade)


def _part(seen: Seen | None, name: str) -> str:
    return UNKNOWN if seen is None or seen.forecast is None else count(getattr(seen.forecast, name))


def _change(before: float | None, after: float | None) -> Cell:
    said = percent(before, after)
    more = before is not None and after is not None and after > before
    return Cell(said, "dim" if said in ("0", UNKNOWN) else "warn" if more else "good")


def _sum(side: Side, largest: float) -> str:
    totals = side.totals
    return dollars(totals.cost, largest) + (f"+{totals.unknown} unknown" if totals.unknown and totals.cost else "")


def _comparable(comparison: Comparison) -> tuple[float | None, float | None]:
    a, b = comparison.a.totals, comparison.b.totals
    return (None, None) if a.unknown or b.unknown else (a.cost, b.cost)


def _validity(comparison: Comparison) -> Cell:
    broken = comparison.a.totals.broken + comparison.b.totals.broken
    if broken:
        return Cell(f"{plural(broken, 'request')} invalid", "bad")
    return Cell(f"{len(comparison.differing)} of {len(comparison.pairs)} differ, all valid", "good")


# -- one call, side by side ------------------------------------------------------------------------------------------


def print_pair(pair: CallPair, printer: Printer, *, whole: bool = False) -> None:
    """The messages of one call in two columns; what both send alike is folded. ``whole``: texts are not cut short."""
    assert pair.a is not None
    assert pair.b is not None
    width = ((printer.width or WIDTH) - 3) // 2
    gutter = " | " if printer.plain else " │ "
    head = f"{call_name(pair.place)}, context of "
    printer.line(Cell(fitted(head + "A", width), "head"), gutter, Cell(fitted(head + "B", width).rstrip(), "head"))
    for name, seen, beside in (("A", pair.a, pair.b), ("B", pair.b, pair.a)):
        if seen.breach is not None:
            printer.line(Cell(f"{name} {breach_line(seen, beside)}", "accent"))
        for broken in seen.problems:
            printer.line(Cell(f"{name} is invalid: {broken.message}", "bad"))
    for stretch in stretches(pair.a.entries, pair.b.entries):
        if stretch.equal:
            printer.line(Cell(_folded(stretch, pair, printer.plain), "dim"))
            continue
        for row in stretch.pairs:
            old = pair.a.entries[row.old] if row.old >= 0 else None
            new = pair.b.entries[row.new] if row.new >= 0 else None
            left = list(_lines(old, row.old, pair.a, width, whole, printer.plain, new))
            right = list(_lines(new, row.new, pair.b, width, whole, printer.plain, old))
            for one, other in itertools.zip_longest(left, right, fillvalue=Cell("")):
                printer.line(
                    Cell(fitted(one.text, width), one.style),
                    gutter,
                    Cell(fitted(other.text, width).rstrip(), other.style),
                )


def _folded(stretch: Stretch, pair: CallPair, plain: bool) -> str:
    assert pair.b is not None
    tokens = sum(pair.b.entries[row.new].tokens_sent for row in stretch.pairs if row.new >= 0)
    rule = "--" if plain else "──"
    return f"{rule} {plural(len(stretch.pairs), 'equal message')}, {count(tokens)} tokens {rule}"


def _lines(
    entry: Entry | None, index: int, seen: Seen, width: int, whole: bool, plain: bool, other: Entry | None
) -> Iterator[Cell]:
    """One side of a row: who, why and how large, then the text that went out."""
    if entry is None:
        yield Cell("(not here)", "dim")
        return
    state = state_of(entry)
    style = {"full": "", "dropped": "dim"}.get(state, "warn")
    sign = SIGNS.get(str(entry.action)) if state != "full" else None
    mark = "" if sign is None or plain else f"{sign.glyph} "
    size = count(entry.tokens_sent if entry.sent is not None else 0, entry.grade)
    why = f"  {mark}{explain(entry, seen.call.place)}" if state != "full" else ""
    name = f"{index + 1} {entry.item.message.role} {origin(entry)}{why}"
    yield Cell(fitted(name, width - len(size) - 1) + " " + size, style or "head")
    if entry.sent is None:
        return
    lines = _marked(entry, other).split("\n")
    shown = lines if whole else lines[:_LINES]
    for line in shown:
        for start in range(0, max(len(line), 1), width - 2) if whole else (0,):
            yield Cell("  " + line[start : start + width - 2 if whole else None], "dim" if not whole else "")
    if len(lines) > len(shown):
        yield Cell(f"  {plural(len(lines) - len(shown), 'more line')}", "dim")


def _marked(entry: Entry, other: Entry | None) -> str:
    """What went out; of a reworded message, the words that only this side has stand in brackets."""
    text = message_text(entry)
    if other is None or other.sent is None or "full" not in (state_of(entry), state_of(other)):
        return text
    if state_of(entry) != state_of(other):
        return text
    return "".join(p.new if p.same or not p.new else f"⟦{p.new}⟧" for p in passages(message_text(other), text))
