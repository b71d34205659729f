"""The context of one model call, entry by entry: a table for people, every entry for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.analysis.prediction import CallInput, Overhead, PredictedUsage, Residual
from workbench.context.assembly import Action, Entry, Grade, MessagePart
from workbench.context.reasons import explain, origin
from workbench.dollars import money
from workbench.engine.journal.parts import CallState
from workbench.language.clean import clean_line
from workbench.views.context import cached_entries, strategy_words
from workbench.views.entry import ACTION_SIGN, message_text
from workbench.views.numbers import UNKNOWN, bill_words, count, plural, seconds
from workbench.views.run import call_json, parts
from workbench.views.signs import SIGNS
from workbench.views.value import Block, Cell, Column, Piece, Table, TextBlock, View

COLUMNS = (
    Column("#", right=True),
    Column("role", leaves=4),
    Column("from", flexible=True),
    Column(""),
    Column("why", flexible=True, leaves=5),
    Column("line", right=True, leaves=2),
    Column("full", right=True, leaves=3),
    Column("sent", right=True),
    Column("cached", leaves=1),
)
_SHORT = 200
"""Characters up to which a text is printed again when it was sent again."""


class CallView(View):
    """A call's totals, then one line per entry."""

    def __init__(self, call: CallState, texts: dict[str, str] | None = None, *, filed: bool = True) -> None:
        """With ``texts``, what was sent stands below each entry. It takes down where each long message stands, by its
        hash: in the calls after that it is named and not repeated, or what is printed of a run would grow with the
        square of its turns. ``filed``: whether a file decided what was sent, so that its lines tell something."""
        self.call, self.texts, self.filed = call, texts, filed

    def blocks(self) -> Iterator[Block]:
        call = self.call
        yield from _totals(call, filed=self.filed)
        cached = cached_entries(call)
        rows: list[list[Piece]] = []
        texts: list[str] = []
        sent = [""] * len(call.entries) if self.texts is None else _texts(call, self.texts)
        for index, entry in enumerate(call.entries):
            rows += [
                _row(index, entry, call, index in cached, self.filed),
                *(_part(part, call.grade_of(entry)) for part in entry.parts),
            ]
            # What was sent stands below all that it was made of.
            texts += [*("" for _ in entry.parts), sent[index]]
        besides = list(_besides(call))
        yield Table(COLUMNS, [*rows, *besides], [*texts, *("" for _ in besides)] if any(sent) else ())
        if (found := Residual.of(call)) is not None and not call.beside:
            told = f"predicted → reported: {'; '.join(parts(found))}"
            yield (Cell(told, "dim", told.replace("→", "to")),)
        if call.answer is not None:
            yield (_answered(call),)
            if self.texts is not None:
                yield TextBlock(call.answer.text, "    ")

    def json(self) -> dict[str, Any]:
        return context_json(self.call, filed=self.filed)


def _answered(call: CallState) -> str:
    """When it was answered, with what its provider counted, and which tools it calls."""
    usage, calls = call.usage, ", ".join(tool.tool for tool in call.tools)
    cost = bill_words(call.paid)
    return (
        f"answered in {seconds(call.duration_s)}: out {count(usage.output)}"
        + (f", in {count(usage.input)}" if usage.input is not None else "")
        + (f", cached {count(usage.cached)}" if usage.cached is not None else "")
        + (f", {cost}" if cost else "")
        + (f"; calls {calls}" if calls else "")
    )


def _texts(call: CallState, told: dict[str, str]) -> list[str]:
    """The text sent of each entry, or the earlier call that shows it."""
    texts = []
    for number, entry in enumerate(call.entries, start=1):
        text = message_text(entry) if entry.sent is not None else ""
        if entry.sent is not None and len(text) > _SHORT:
            here = f"{call.words}, entry {number}"
            before = told.setdefault(entry.sent.body_hash, here)
            text = text if before == here else f"[as above: {before}; {len(text):,} characters]"
        texts.append(text)
    return texts


def _totals(call: CallState, *, filed: bool) -> Iterator[Block]:
    forecast = call.forecast
    yield (Cell(call.words, "head"), f"   {call.model}   ", Cell(strategy_words(call, filed=filed), "dim"))
    guess, took = PredictedUsage.of(call), CallInput.of(call)
    predicted = f"   predicted {money(guess.cost)}" if forecast else ""
    cached = f"   cached {count(took.cached, took.cached_grade)}" if took.cached is not None else ""
    sent, full = count(took.sent, took.grade), count(took.full, took.grade if took.full == took.sent else call.grade)
    head = "nothing was sent" if call.unsent else f"{sent} tokens sent of {full}{cached}{predicted}"
    yield (
        f"{head}   ",
        Cell(plural(len(call.problems), "problem"), "error" if call.problems else "ok"),
    )
    for broken in call.problems:
        yield (Cell(f"  broken: {broken.message}", "error"),)
    for note in call.notes:
        yield (Cell(f"  {note}", "dim"),)
    if call.unstated:
        yield (Cell(f"  not known whole: {clean_line(call.unstated)}", "dim"),)
    if forecast and forecast.reason:
        yield (Cell(f"  cache: {forecast.reason}", "dim"),)


def _row(index: int, entry: Entry, call: CallState, cached: bool, filed: bool) -> list[Piece]:
    changed = entry.action is not Action.KEPT
    token = (
        "faint"
        if entry.sent is None
        else "injected"
        if entry.action is Action.INJECTED
        else "masked"
        if changed
        else ""
    )
    calls = [c.name for c in entry.item.message.tool_calls]
    why = f"calls {', '.join(calls)}" if calls and not changed else explain(entry, call.place)
    grade = call.grade_of(entry)
    glyphs, words = ([SIGNS[ACTION_SIGN[entry.action]].glyph], [str(entry.action)]) if changed else ([], [])
    if entry.item.is_error:
        glyphs.append(SIGNS["error result"].glyph)
        words.append("error")
    return [
        Cell(str(index + 1), "dim"),
        entry.item.message.role,
        Cell(origin(entry), token),
        Cell("".join(glyphs), token, " ".join(words)),
        Cell(why, token or "dim"),
        Cell(f":{entry.rule.line}" if filed and entry.rule.line else "", "dim"),
        Cell(count(entry.tokens_full, grade), "dim" if entry.sent is None else ""),
        Cell(UNKNOWN if entry.sent is None else count(entry.tokens_sent, grade), token),
        Cell(SIGNS["cached"].glyph if cached else "", "cached", "yes" if cached else ""),
    ]


def _part(part: MessagePart, grade: Grade) -> list[Piece]:
    """Returns a part that a message was put together from. ``grade``: of the message."""
    gone = part.action is Action.DROPPED
    token = "faint" if gone else "dim"
    changed = part.action is not Action.KEPT
    sign = SIGNS[ACTION_SIGN[part.action]].glyph if changed else ""
    return [
        "",
        "",
        Cell(f"  {clean_line(part.origin)}", token),
        Cell(sign, token, str(part.action)),
        Cell(clean_line(part.reason), token),
        "",
        Cell(count(part.tokens_full, grade), "dim"),
        Cell(UNKNOWN if gone else count(part.tokens_sent, grade), token),
        "",
    ]


def _besides(call: CallState) -> Iterator[list[Piece]]:
    """Tokens sent beside the messages: with these rows the table adds up to the totals above it."""
    overhead = Overhead.of(call)
    told = (("tool definitions", call.tools_tokens, call.tools_tokens), ("overhead", overhead.full, overhead.sent))
    for name, full, sent in told:
        if full or sent:
            numbers = [count(number, call.grade) for number in (full, sent)]
            yield ["", "", Cell(name, "dim"), "", "", "", *numbers, ""]


def context_json(call: CallState, *, filed: bool = True) -> dict[str, Any]:
    """One call with every entry: its message as stored, the text sent instead, and the rule that decided."""
    cached = cached_entries(call)
    forecast = call.forecast
    return call_json(call) | {
        "tools_tokens": call.tools_tokens,
        "overhead_tokens": call.overhead_tokens,
        "overhead": Overhead.of(call)._asdict(),
        "forecast": None
        if forecast is None
        else {
            "cached": forecast.cached,
            "fresh": forecast.fresh,
            "written": forecast.written,
            "cost": forecast.cost,
            "break_at": forecast.break_at,
            "reason": forecast.reason,
        },
        "unstated": call.unstated,
        "notes": list(call.notes),
        "entries": [_entry_json(i, entry, call, i in cached, filed) for i, entry in enumerate(call.entries)],
    }


def _entry_json(index: int, entry: Entry, call: CallState, cached: bool, filed: bool) -> dict[str, Any]:
    changed = entry.sent is not None and entry.sent != entry.item.message
    return {
        "number": index + 1,
        "role": entry.item.message.role,
        "kind": str(entry.item.kind),
        "made_at": str(entry.item.place),
        "from": origin(entry),
        "action": str(entry.action),
        "why": explain(entry, call.place),
        "rule": entry.rule.path,
        "line": (filed and entry.rule.line) or None,
        "tokens_full": entry.tokens_full,
        "tokens_sent": entry.tokens_sent,
        "grade": str(call.grade_of(entry)),
        "cached": cached,
        "is_error": entry.item.is_error,
        "redacted": entry.item.redacted,
        "parts": [part._asdict() | {"action": str(part.action)} for part in entry.parts],
        "message": entry.item.message.to_json(),
        "sent": entry.sent.to_json() if changed and entry.sent is not None else "as it is" if entry.sent else None,
    }
