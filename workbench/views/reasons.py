"""Why an entry is as it is, why the cache breaks, what is wrong with a line: a reason, and the file at that line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from workbench.context.assembly import Action
from workbench.context.wording import paired_lines
from workbench.dollars import money
from workbench.engine.journal.parts import CallState
from workbench.language.problem import Problem
from workbench.views import syntax
from workbench.views.cells import Span, flat
from workbench.views.documents import reason
from workbench.views.numbers import count, saved_words
from workbench.views.text import TextLine, TextRows, text_lines

AROUND = 400
"""Lines of the file kept on each side of the one that decided."""
MOST_COMPARED = 10_000
"""Differing lines of a file in which equal ones are looked for: 5,000 take 0.4 s, once."""


def line_now(line: int, text: str, now: str) -> tuple[int, bool]:
    """The line of a text ``now`` that a line of its earlier ``text`` has become, from 1, and whether it is the same;
    else the place where it was changed or taken out."""
    found = _lines_now(text, now)
    return found[min(line, len(found)) - 1]


@lru_cache(maxsize=2)
def _lines_now(text: str, now: str) -> list[tuple[int, bool]]:
    """The same of each line; kept, because the text is shown anew with each key."""
    old, new = text.split("\n"), now.split("\n")
    found, following = [], 0
    for before, after, same in paired_lines(old, new, MOST_COMPARED):
        following = after + 1 if after >= 0 else following
        if before >= 0:
            found.append((min(following if after >= 0 else following + 1, len(new)), same))
    return found


def place_words(file: str, line: int, text: str, now: str) -> tuple[Span, ...]:
    """Where a line of the text of a run stands: in the text that ran, and in the file as it is ``now`` if that differs;
    ``now`` is empty where there is no file."""
    if not file:
        return ((f"line {line} of what was recorded", "dim"),)
    here = (f"{flat(file)}:{line}", "dim")
    if not now or now == text:
        return (here,)
    there, same = line_now(line, text, now)
    if same and there == line:
        return (here,)
    return (here, (" as it ran · ", "dim"), (f"now :{there}" if same else "changed since", "warning"))


def why_doc(call: CallState, index: int, text: str, file: str, now: str = "") -> TextRows:
    """Returns why an entry is as it is, and the line of the file that decided, in the text of the run; ``now`` is the
    text of the file today."""
    entry = call.entries[index]
    saved = entry.tokens_full - entry.tokens_sent
    tokens = f"{count(entry.tokens_full, entry.grade)} tokens in full"
    if entry.sent is None:
        tokens += ", none sent"
    elif saved:
        tokens += f", {count(entry.tokens_sent, entry.grade)} sent, {saved_words(saved, entry.grade)}"
    action = "sent as it is" if entry.action is Action.KEPT else str(entry.action)
    words = reason(call, entry)
    lines = [TextLine(words if words.startswith(action) else f"{action}: {words}", "bold"), TextLine(tokens, "dim")]
    broken = [problem for problem in call.problems if problem.entry == index]
    lines += [TextLine(f"✗ invariant {problem.invariant}: {problem.message}", "error") for problem in broken]
    if entry.item.note:
        lines.append(TextLine(flat(entry.item.note), "dim"))
    if entry.rule.line:
        lines.append(TextLine(f"decided by {entry.rule.path}", "dim"))
    else:
        lines.append(TextLine("decided by the default: the file says nothing about this", "dim"))
    title = (("Why", "title"), (f"  {index + 1} {entry.item.message.role}", "name"))
    if not entry.rule.line or not text:
        return TextRows(lines, title)
    return with_file(lines, text, entry.rule.line, title, place_words(file, entry.rule.line, text, now))


def break_doc(call: CallState) -> TextRows:
    """Returns why the reusable prefix ends there, and the cost of that."""
    forecast = call.forecast
    if forecast is None:
        return TextRows([TextLine("Nothing is known about the cache of this call.", "dim")], (("Cache", "title"),))
    lines = [
        TextLine(flat(forecast.reason) or "The prefix that the provider can reuse ends here.", "bold"),
        TextLine(
            f"{count(forecast.cached, call.grade)} tokens can come from the cache, "
            f"{count(forecast.fresh, call.grade)} are new.",
            "plain",
        ),
    ]
    if forecast.written:
        lines.append(TextLine(f"{count(forecast.written, call.grade)} tokens are billed as cache writes.", "plain"))
    price = f" (prices: {flat(call.price_source)}, {call.price_grade})" if call.price_source else ""
    lines.append(TextLine(f"Predicted cost of the input: {money(forecast.cost)}{price}", "dim"))
    if call.usage.cached is not None:
        off = call.usage.cached - forecast.cached
        lines.append(
            TextLine(f"The provider reported {call.usage.cached:,} cached: {off:+,} against the prediction.", "dim")
        )
    return TextRows(lines, (("Cache", "title"),))


def with_file(
    lines: Sequence[TextLine], text: str, line: int, title: tuple[Span, ...], right: tuple[Span, ...], end: int = 0
) -> TextRows:
    """Lines, then the file around one of its lines (or several, up to ``end``), marked."""
    end = max(line, end)
    source = text.split("\n")
    first, last = max(0, line - 1 - AROUND), min(len(source), end + AROUND)
    paint = syntax.of(text)
    numbered = [
        TextLine(
            flat_code(source[i]),
            tone="rule-line" if line <= i + 1 <= end else "",
            paint=paint,
            number=i + 1,
            hang=2,
        )
        for i in range(first, last)
    ]
    return TextRows(numbered, title, right, copy=text, focus=line - 1 - first, above=lines)


def flat_code(line: str) -> str:
    """A line of a file as it can be drawn."""
    return text_lines(line.rstrip("\r"), whole=True)[0].text


def problem_doc(problem: Problem, text: str) -> TextRows:
    """A problem, and its line in the file."""
    token = "error" if problem.severity == "error" else "warning"
    lines = [TextLine(f"{problem.severity}: {flat(problem.message)}", token)]
    if problem.hint:
        lines.append(TextLine(flat(problem.hint), "dim"))
    if problem.fix is not None:
        lines.append(TextLine(f"could be: {flat(problem.fix)}", "ok"))
    title = (("Problem", "title"), (f"  {problem.code}", "name"))
    if not problem.span.line:
        return TextRows(lines, title, ((flat(problem.file), "dim"),))
    where = f"{flat(problem.file)}:{problem.span.line}:{problem.span.column}"
    return with_file(lines, text, problem.span.line, title, ((where, "dim"),))
