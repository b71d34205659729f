"""The rows of what comes out of a call: what it is doing, its failed tries, its answer, its tool results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from workbench.analysis.advice import name_of
from workbench.analysis.prediction import Residual
from workbench.engine.journal.parts import CallState, ToolState
from workbench.views.cells import Row, Span, crop, fit, flat, justify
from workbench.views.columns import ROLE, Columns
from workbench.views.entry import BLANK
from workbench.views.numbers import bill_words, count, seconds
from workbench.views.run import GOOD, parts
from workbench.views.signs import sign
from workbench.views.text import hung

ANSWER = "the answer"
"""The origin of what a model said."""
TRY: tuple[Span, ...] = (BLANK, sign("failed"), BLANK)
"""What stands before the words of a try that gave no answer."""


class LiveCall(Struct, frozen=True):
    """The activity of a call in progress: paused, waiting for the provider, or answering."""

    doing: Literal["held", "waiting", "answering"]
    text: str = ""
    """Why it is paused, what it waits for, and the part that has arrived."""
    since_s: float = 0.0
    tick: int = 0


def live_row(columns: Columns, live: LiveCall) -> Row:
    """The last row while a call is not over."""
    width = columns.width
    if live.doing == "held":
        return Row(crop((BLANK, sign("paused"), (f" {flat(live.text)}", "held")), width), "held")
    mark = sign("running", live.tick)
    if live.doing == "waiting":
        return Row(crop((BLANK, mark, (f" {flat(live.text)} {seconds(live.since_s)}", "running")), width))
    size: Span = (f"  {len(live.text):,} chars", "dim")
    tail = flat(live.text[-400:])
    room = width - 14 - len(size[0])
    shown = tail if len(tail) <= room else "…" + tail[-room:] if room > 1 else ""
    return Row(justify((BLANK, mark, (" answers  ", "running"), (shown, "plain")), (size,), width))


def failure_row(columns: Columns, data: Mapping[str, Any], number: int) -> Row:
    """A try that gave no answer."""
    return Row(crop((*TRY, *_try_words(data, number)), columns.width))


def failure_lines(columns: Columns, data: Mapping[str, Any], number: int) -> tuple[Row, ...]:
    """The same in as many lines as its reason needs."""
    return hung(TRY, _try_words(data, number), columns.width)


def _try_words(data: Mapping[str, Any], number: int) -> tuple[Span, ...]:
    error = data.get("error") or {}
    text = f"try {data.get('try', number)}: {name_of(error)}: {error.get('message', '')}"
    wait = data.get("retry_in")
    after = f", again in {seconds(wait)}" if wait is not None else ""
    return (flat(text, 400), "error"), (after, "dim")


def back_row(columns: Columns, call: CallState) -> Row:
    """The line between what went out and what came back, with the provider's own numbers, and none where it gave none:
    what is predicted stands in the head."""
    usage = call.usage
    cached = f" ({count(usage.cached)} cached)" if usage.cached else ""
    after = f" after {seconds(call.duration_s)}" if call.duration_s is not None else ""
    parts = (
        "from a recording" if call.recorded else f"came back{after}",
        f"in {count(usage.input)}{cached}" if usage.input is not None else "",
        f"out {count(usage.output)}" if usage.output is not None else "",
        bill_words(call.paid) or "no bill",
        answered_by(call),
    )
    text = "  ".join(flat(part) for part in parts if part)
    lead: tuple[Span, ...] = (sign("recorded"), ("─", "rule")) if call.recorded else (("──", "rule"),)
    left = (BLANK, *lead, (f" {text} ", "recorded" if call.recorded else "dim"))
    return Row(justify(left, (), columns.width, ("─", "rule")))


def answered_by(call: CallState) -> str:
    """The model and the provider that answered, named once if they have the same name."""
    return " ".join(dict.fromkeys(call.answered_by.split()))


def residual_row(columns: Columns, call: CallState) -> Row:
    """The prediction of the call beside the provider's report."""
    found = Residual.of(call)
    if found is None:
        return Row(())
    met = found.share is not None and abs(found.share) <= GOOD
    spans: list[Span] = [BLANK, (" predicted → reported  ", "dim")]
    for number, part in enumerate(parts(found)):
        spans += [("   ", "plain")] if number else []
        spans.append((part, "warning" if not number and not met else "plain"))
    return Row(crop(spans, columns.width))


def answer_row(columns: Columns, call: CallState) -> Row:
    """The text of the answer, or the tools that it calls."""
    answer = call.answer
    calls = answer.tool_calls if answer is not None else ()
    text = "calls " + ", ".join(c.name for c in calls) if calls else answer.text if answer is not None else ""
    text = f"cut off: {text}" if call.partial else text
    return _result(
        columns,
        "assistant",
        sign("edited") if call.edited else BLANK,
        ANSWER,
        text,
        "warning" if call.partial else "dim",
        count(call.usage.output),
    )


UNANSWERED = "waits for your answer"
"""What a tool does that asks a person."""
CUT_OFF = "no result: the run ended"


def tool_row(columns: Columns, tool: ToolState, *, asks: bool = False, over: bool = False) -> Row:
    """Returns the row of a tool's result. ``asks``: it waits for a person; ``over``: the run has ended."""
    if tool.status == "running":
        state, words = ("stopped", CUT_OFF) if over else ("waiting", UNANSWERED) if asks else ("running", "running")
        return _result(columns, "tool", sign(state), tool.tool, words, sign(state)[1], "")
    failed = tool.status == "failed"
    edited = sign("edited") if tool.edited else BLANK
    mark, also = (sign("error result"), edited) if failed else (edited, BLANK)
    took = seconds(tool.duration_s)
    return _result(columns, "tool", mark, tool.tool, tool.text, "error" if failed else "dim", took, also)


def _result(
    columns: Columns, role: str, mark: Span, source: str, text: str, token: str, number: str, also: Span = BLANK
) -> Row:
    left: list[Span] = [
        (columns.indent, "plain"),
        (fit(role, ROLE), role),
        also,
        mark,
        BLANK,
        (fit(source, columns.source - 1) + " ", "plain"),
        (fit(text, columns.rest - 1) + " ", token),
    ]
    return columns.row(left, (number, "dim"))
