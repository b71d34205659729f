"""The rows of a call's context: an entry, the native tools, a fold of dropped messages, the break of the cache."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells

from workbench.analysis.prediction import Overhead
from workbench.context.assembly import Action, BrokenInvariant, Entry, Grade, MessagePart
from workbench.context.place import Place
from workbench.context.reasons import explain, origin
from workbench.engine.journal.parts import CallState
from workbench.views.cells import Row, Span, crop, dropping, fit, flat
from workbench.views.columns import ROLE, Columns
from workbench.views.keys import told
from workbench.views.numbers import UNKNOWN, count, plural
from workbench.views.signs import sign

ACTION_SIGN = {
    Action.MASKED: "masked",
    Action.TRUNCATED: "truncated",
    Action.SUMMARIZED: "summarized",
    Action.INJECTED: "injected",
    Action.DROPPED: "dropped",
}
BLANK: Span = (" ", "plain")
OVERHEAD, CORRECTION, DEFINITIONS = "overhead", "correction", "tool definitions"
NARROWEST = 40
"""Cells before the numbers below which nothing is wrapped."""


def reason_of(entry: Entry, place: Place, earlier: int, was: Entry | None = None) -> str:
    """Returns why an entry is as it is; with its reason in the call before, if that differs."""
    text = explain(entry, place, earlier)
    if was is None:
        return text
    return f"{was.action} → {text}" if was.action is not entry.action else f"reworded: {text}"


def entry_row(
    columns: Columns,
    index: int,
    entry: Entry,
    reason: str,
    *,
    grade: Grade,
    cached: bool,
    change: str = "",
    broken: Sequence[BrokenInvariant] = (),
) -> Row:
    """One entry. ``grade``: of its counts. ``change``: compared with the call before, ``new``, ``altered`` or empty."""
    base = "faint" if entry.sent is None else ""
    mark: list[Span] = [BLANK, sign(change) if change else BLANK] if columns.marked else []
    source = fit(source_words(entry, columns.source - 1), columns.source - 1) + " "
    left: list[Span] = [
        BLANK,
        (fit(str(index + 1), columns.number, "right"), "faint"),
        *mark,
        BLANK,
        ("┃", "cached") if cached else BLANK,
        BLANK,
        (fit(entry.item.message.role, ROLE), base or entry.item.message.role),
        BLANK,
        _sign(entry),
        BLANK,
        (source, base or ("injected" if entry.action is Action.INJECTED else "plain")),
        _why(entry, reason, columns.why, broken),
        (fit(f":{entry.rule.line}" if entry.rule.line else "", columns.line, "right"), "faint"),
    ]
    same = entry.tokens_full == entry.tokens_sent
    full: Span = (count(entry.tokens_full, grade), base or ("faint" if same else "dim"))
    went = UNKNOWN if entry.sent is None else count(entry.tokens_sent, grade)
    tone = {"altered": "changed", "new": "added"}.get(change, "")
    return columns.row(left, full, (went, base or ("plain" if same else "masked")), tone=tone)


def entry_lines(
    columns: Columns, first: Row, entry: Entry, reason: str, broken: Sequence[BrokenInvariant]
) -> tuple[Row, ...]:
    """The row of an entry, and below it the cut parts of its origin and its reason; none if they are not
    worth a line.
    """
    room = max(4, columns.source - 1), max(4, columns.why - 1)
    source = source_words(entry, room[0])
    why = flat(f"✗ {broken[0].message}") if broken else _brief(entry, flat(reason), room[1])
    if cell_len(source) > room[0]:
        source = flat(origin(entry).removeprefix("↪ "))
    fits = cell_len(source) <= room[0] and cell_len(why) <= room[1]
    if fits or not columns.why or columns.width - 2 * columns.tokens < NARROWEST:
        return ()
    sides = [_lines(text, cells) for text, cells in zip((source, why), room, strict=True)]
    rows: list[Row] = []
    for number in range(max(len(side) for side in sides)):
        a, b = (side[number] if number < len(side) else "" for side in sides)
        cells = (fit(a, columns.source), fit(b, columns.why))
        spans = list(first.spans)
        at = len(spans) - 5
        if number:
            blank = [(" " * cell_len(part), "plain") for part, _ in spans]
            spans = [*blank[:at], *spans[at : at + 2], *blank[at + 2 :]]
        spans[at], spans[at + 1] = (cells[0], spans[at][1]), (cells[1], spans[at + 1][1])
        rows.append(Row(crop(spans, columns.width), first.tone))
    return tuple(rows)


def _lines(text: str, room: int) -> list[str]:
    """A text in lines of at most this many cells. A word that is longer is parted behind a ``_``, ``.``, ``/``, ``:``
    or comma if it has one there."""
    words = [part for word in text.split() for part in _parted(word, room)]
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}".lstrip()
        if cell_len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines if lines[0] else lines[1:] or lines


def _parted(word: str, room: int) -> list[str]:
    """A word in parts that fit, each as long as can be."""
    if cell_len(word) <= room:
        return [word]
    parts = [""]
    for piece in (cut for atom in _BREAKS.split(word) for cut in chop_cells(atom, room)):
        if cell_len(parts[-1] + piece) <= room:
            parts[-1] += piece
        else:
            parts.append(piece)
    return parts


_BREAKS = re.compile(r"(?<=[_./:,])")


def _sign(entry: Entry) -> Span:
    if entry.item.edited:
        return sign("edited")
    if entry.item.is_error:
        return sign("error result")
    name = ACTION_SIGN.get(entry.action)
    if name is not None:
        return sign(name)
    return sign("secret") if entry.item.redacted else BLANK


def _why(entry: Entry, reason: str, width: int, broken: Sequence[BrokenInvariant]) -> Span:
    if broken:
        return (fit(f"✗ {broken[0].message}", width - 1) + " ", "error")
    shortened = entry.sent is not None and entry.sent != entry.item.message and entry.action is not Action.INJECTED
    token = "faint" if entry.sent is None else "masked" if shortened else "dim"
    return (fit(_brief(entry, reason, width - 1), width - 1) + " ", token)


def _brief(entry: Entry, reason: str, cells: int) -> str:
    """A reason that does not fit into so many cells without its first word, which its sign, its role or its origin
    tells, too: ``from[0]``, ``truncate: 75 of 100 tokens``."""
    if cell_len(reason) <= cells:
        return reason
    words = (f"{entry.action}: ", "calls ", "context.", "fidelity ")
    return next((reason.removeprefix(word) for word in words if reason.startswith(word)), reason)


def source_words(entry: Entry, cells: int) -> str:
    """Returns where an entry comes from; with less room than ``turn 6 read_file`` takes, ``6 read_file``. Where that is
    cut, its turn stays: it tells two results of one tool apart."""
    source = flat(origin(entry).removeprefix("↪ "))
    return source if cell_len(source) <= cells else short_source(source)


def short_source(source: str) -> str:
    """Returns the origin of a result with the number of its turn alone: ``6 read_file``, of a second attempt
    ``2.6 read_file``."""
    return _TURN.sub(lambda found: ".".join(filter(None, found.groups())) + " ", source)


_TURN = re.compile(r"^(?:attempt (\d+) )?turn (\d+) (?=\S)")


def part_reason(part: MessagePart) -> str:
    """Returns the decision about a part of a message, and why."""
    return f"{part.action}: {part.reason}" if part.reason else str(part.action)


def part_row(columns: Columns, part: MessagePart, grade: Grade) -> Row:
    """A part of a composed message, below it; grey if it was left out."""
    gone = part.action is Action.DROPPED
    tone = "faint" if gone else "dim"
    name = ACTION_SIGN.get(part.action)
    # A name that is longer than its column takes what the reason beside it leaves, and a reason what the name leaves.
    origin, why = flat(part.origin), flat(part_reason(part))
    column, room = ROLE + 1 + columns.source, ROLE + 1 + columns.source + columns.why + columns.line
    cells = max(column, min(cell_len(origin) + 1, room - cell_len(why) - 1))
    cells = min(cells, max(cell_len(origin) + 1, room - cell_len(why)))
    left: list[Span] = [
        (columns.indent, "plain"),
        sign(name) if name is not None else BLANK,
        BLANK,
        (fit(fit(origin, cells - 1), cells), tone),
        (fit(why, room - cells), tone),
    ]
    went = UNKNOWN if gone else count(part.tokens_sent, grade)
    whole = count(part.tokens_full, grade) if part.tokens_full else UNKNOWN
    return columns.row(left, (whole, "faint"), (went, tone))


def tools_row(columns: Columns, call: CallState) -> Row:
    """The native tool definitions, which are sent beside the messages."""
    what = fit(DEFINITIONS, columns.source - 1) + " " + fit("native tool schemas", columns.why + columns.line)
    tokens = count(call.tools_tokens, call.grade)
    left: list[Span] = [(f"{columns.indent}{fit('tools', ROLE)}   {what}", "dim")]
    return columns.row(left, (tokens, "faint"), (tokens, "plain"))


def overhead_name(overhead: Overhead) -> str:
    """Returns what its row is called: where the provider counts the messages lower than they were estimated, the tokens
    that belong to none of them are less than none."""
    return CORRECTION if min(overhead) < 0 else OVERHEAD


def overhead_row(columns: Columns, call: CallState, overhead: Overhead) -> Row:
    """Tokens that belong to no message: with them the rows add up to the request."""
    name = overhead_name(overhead)
    scaled = overhead.sent != call.overhead_tokens
    why = "framing, calibration" if scaled else "message framing"
    why = "nothing was sent" if call.unsent else why if name == OVERHEAD else "provider counts less"
    what = fit(name, columns.source - 1) + " " + fit(why, columns.why + columns.line)
    full, sent = count(overhead.full, call.grade), count(overhead.sent, call.grade)
    left: list[Span] = [(f"{columns.indent}{' ' * ROLE}   {what}", "dim")]
    return columns.row(left, (full, "faint"), (sent, "plain"))


def fold_row(columns: Columns, call: CallState, entries: Sequence[Entry]) -> Row:
    """Dropped entries that are folded: how many, and how much."""
    tokens = count(sum(entry.tokens_full for entry in entries), Grade.of_sum(map(call.grade_of, entries)))
    text = f"{columns.indent}· {len(entries):,} dropped, {tokens} tokens"
    hint = told("{view.dropped} unfolds")
    return Row(dropping([[(text, "faint")], [(hint, "faint")]], columns.width))


def equal_words(entries: Iterable[Entry]) -> str:
    """Messages that both sides of a comparison share: how many, and how much of them was sent."""
    found = list(entries)
    tokens = count(sum(entry.tokens_sent for entry in found), Grade.of_sum(entry.grade for entry in found))
    return f"{plural(len(found), 'equal message')}, {tokens} tokens"


def note_row(columns: Columns, note: str) -> Row:
    """A note of the strategy about the whole context: how much was selected, what was skipped."""
    return Row(crop(((f"{columns.indent}{flat(note)}", "dim"),), columns.width))


def break_row(columns: Columns, reason: str) -> Row:
    """The end of the prefix that the provider can reuse."""
    text = " cache breaks here" + (f": {flat(reason)}" if reason else "")
    return Row(crop(((columns.indent[:-2], "plain"), sign("break"), (text, "warning")), columns.width))


def message_text(entry: Entry) -> str:
    """Returns the message as plain text, as it was sent or would have been: text, calls, images by digest."""
    message = entry.item.message if entry.sent is None else entry.sent
    parts = [message.text] if message.text else []
    parts += [f"call {c.id} {c.name}({c.arguments})" for c in message.tool_calls]
    parts += [f"image {i.digest[:12]} {i.media_type} {i.size:,} bytes" for i in message.images]
    return "\n".join(parts)
