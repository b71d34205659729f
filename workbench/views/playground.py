"""The playground: answers of one or more models to one request, in columns, with their cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.context.message import Message
from workbench.dollars import money
from workbench.engine.journal.costs import CallCost, CostSum
from workbench.json_text import pretty
from workbench.views.cells import Row, Span, crop, fit, flat, justify, width_of
from workbench.views.documents import message_lines
from workbench.views.keys import told
from workbench.views.model import Rows, WrappedRows
from workbench.views.numbers import UNKNOWN, count, plural, seconds, spent_words
from workbench.views.signs import sign
from workbench.views.text import TextLine, TextRows, text_lines
from workbench.views.value import BLANK, Block, Cell, Column, Table, TextBlock, View
from workbench.workspace.playground import PlaygroundPlan, Sample, Subject, dollars, spent

NARROWEST = 36
"""Cells that a column of answers has at least."""

_SIGNS = {
    "waiting": "pending",
    "running": "running",
    "answered": "done",
    "failed": "failed",
    "unsent": "blocked",
    "stopped": "stopped",
}
WORDS = {"unsent": "not sent"}
"""Of a status that is not a word by itself."""


def where(subject: Subject) -> str:
    """``triage:2 of log_triage-7f3a``."""
    return f"{subject.call.words} of {subject.session_id}"


def answer_text(sample: Sample) -> str:
    """The answer: the text, then the tools that it calls; or why there is none."""
    calls = [f"→ {call.name} {pretty(call.arguments)}" for call in sample.calls]
    return "\n".join(filter(None, (sample.text, *calls, sample.reason)))


def cost_words(sample: Sample) -> str:
    """The cost of one call, by the rule for all costs."""
    if sample.status not in ("answered", "failed"):
        return ""
    if sample.status == "failed" and sample.cost is None:
        return ""
    return spent_words(CostSum.sum([CallCost(sample.cost, sample.cost_grade, sample.predicted, whole=sample.whole)]))


def plan_words(plan: PlaygroundPlan) -> str:
    """``6 calls, about $0.0123 expected, budget $0.1000``."""
    parts = [plural(plan.calls, "call")]
    if plan.cost is None:
        parts.append("cost not known")
    else:
        parts.append(f"{money(plan.cost)} expected" if plan.cost else "free")
    if plan.max_cost is not None:
        parts.append(f"budget {dollars(plan.max_cost)}")
    return ", ".join(parts)


def total_words(samples: Sequence[Sample]) -> str:
    """``4 of 6 answered, $0.0123``."""
    answered = sum(sample.status == "answered" for sample in samples)
    words = f"{answered} of {len(samples)} answered"
    total = spent_words(spent(samples))
    return f"{words}, cost {total}" if total else words


class PlaygroundView(View):
    """The request, and its answers."""

    def __init__(self, subject: Subject, plan: PlaygroundPlan, samples: Sequence[Sample], edits: int = 0) -> None:
        self.subject, self.plan, self.samples, self.edits = subject, plan, samples, edits

    def blocks(self) -> Iterable[Block]:
        edited = f", {plural(self.edits, 'edit')}" if self.edits else ""
        yield (Cell(where(self.subject), "head"), f"   {plan_words(self.plan)}{edited}")
        for planned in self.plan.models:
            if planned.note:
                yield (Cell(planned.note, "warning"),)
        yield BLANK
        columns = (
            Column("model", flexible=True),
            Column("#", right=True),
            Column("status"),
            Column("in", right=True, leaves=3),
            Column("out", right=True, leaves=2),
            Column("cost", right=True),
            Column("time", right=True, leaves=1),
        )
        rows = []
        for sample in self.samples:
            glyph, token = sign(_SIGNS[sample.status])
            status = WORDS.get(sample.status, sample.status)
            rows.append(
                (
                    sample.model,
                    str(sample.number),
                    Cell(f"{glyph} {status}", token, status),
                    count(sample.usage.input),
                    count(sample.usage.output),
                    cost_words(sample),
                    seconds(sample.seconds) if sample.seconds is not None else UNKNOWN,
                )
            )
        yield Table(columns, rows)
        for sample in self.samples:
            yield BLANK
            yield (Cell(f"{sample.model} {sample.number}", "head"),)
            yield TextBlock(answer_text(sample) or "(nothing)", "  ")
        yield BLANK
        yield (total_words(self.samples),)

    def json(self) -> Mapping[str, Any]:
        return {
            "run": self.subject.session_id,
            "at": str(self.subject.place),
            "edits": self.edits,
            "samples": self.plan.samples,
            "max_cost": self.plan.max_cost,
            "expected_cost": self.plan.cost,
            "cost": spent(self.samples).total,
            "models": [
                {
                    "model": one.model,
                    "offline": one.choice.offline,
                    "input_tokens": one.input,
                    "grade": str(one.grade),
                    "expected_output_tokens": one.output,
                    "expected_cost": one.cost,
                    "note": one.note,
                }
                for one in self.plan.models
            ],
            "answers": [
                {
                    "model": sample.model,
                    "number": sample.number,
                    "status": sample.status,
                    "text": sample.text,
                    "calls": [{"tool": call.name, "arguments": call.arguments} for call in sample.calls],
                    "reason": sample.reason,
                    "tokens_in": sample.usage.input,
                    "tokens_out": sample.usage.output,
                    "cost": sample.cost,
                    "seconds": sample.seconds,
                    "finish_reason": sample.finish_reason,
                }
                for sample in self.samples
            ],
        }


# -- on a screen -------------------------------------------------------------------------------------------------------


class SampleRows(Rows):
    """One row for each answer: model, result, cost, and beginning."""

    def __init__(self, samples: Sequence[Sample], tick: int = 0) -> None:
        self.empty = (
            "Nothing sent yet.",
            told("{playground.send}  sends the request as it stands; nothing is written into the run"),
            told("{playground.edit}  edits it first"),
            told("{playground.models}  chooses models, the number of answers and a budget"),
        )
        self.samples = tuple(samples)
        self.tick = tick
        self.title = (("Answers", "title"),)
        self.title_right = ((total_words(samples), "dim"),) if samples else ()

    def __len__(self) -> int:
        return len(self.samples)

    def row(self, index: int, width: int) -> Row:
        sample = self.samples[index]
        glyph, token = sign(_SIGNS[sample.status], self.tick)
        name = max((len(one.model) for one in self.samples), default=8)
        name = min(name, max(14, width // 4))
        words = WORDS.get(sample.status, sample.status)
        said = sample.reason if sample.status in ("failed", "unsent") else answer_text(sample)
        left: tuple[Span, ...] = (
            (" ", "plain"),
            (glyph, token),
            (f" {fit(flat(sample.model), name)} {sample.number:>2}  ", "plain"),
            (flat(said, 400) if said else words, "error" if sample.status == "failed" else "dim"),
        )
        numbers: list[str] = []
        if sample.status in ("answered", "failed"):
            used = (("in", sample.usage.input), ("out", sample.usage.output))
            tokens = "  ".join(f"{name} {count(number)}" for name, number in used if number is not None)
            numbers = [tokens, cost_words(sample), seconds(sample.seconds)]
        right = ("  ".join(part for part in numbers if part) + " ", "dim")
        room = width - width_of((right,)) - 1
        return Row(justify(crop(left, room), (right,), width))


def request_rows(messages: Sequence[Message]) -> TextRows:
    """The request as it stands, message by message, before there is an answer to it."""
    lines: list[TextLine] = []
    for number, message in enumerate(messages, 1):
        lines += [TextLine("")] if lines else []
        lines += [TextLine(f"{number} {message.role}", "head"), *message_lines(message)]
    return TextRows(lines, (("Request", "title"),), ((plural(len(messages), "message"), "dim"),))


class AnswerColumns(WrappedRows):
    """Answers in a column for each model, its samples below each other. If not all fit, a window of columns begins at
    ``first``.
    """

    empty = ("No answers yet.",)

    def __init__(self, samples: Sequence[Sample], first: int = 0) -> None:
        self._models = tuple(dict.fromkeys(sample.model for sample in samples))
        self._by_model = {
            model: [sample for sample in samples if sample.model == model and answer_text(sample)]
            for model in self._models
        }
        self._first = max(0, min(first, len(self._models) - 1))
        self._columns: list[tuple[str, TextRows, int]] = []
        self.title = (("Side by side", "title"),)
        self.copy = "\n\n".join(f"{sample.model} {sample.number}\n{answer_text(sample)}" for sample in samples)

    def _wrap(self, width: int) -> None:
        if not self._models:
            return
        fits = max(1, min(len(self._models) - self._first, (width + 1) // (NARROWEST + 1)))
        shown = self._models[self._first : self._first + fits]
        room = (width - (fits - 1)) // fits
        self._columns = []
        for number, model in enumerate(shown):
            cells = width - (room + 1) * (fits - 1) if number == fits - 1 else room
            rows = TextRows(list(_column(self._by_model[model])))
            rows.lay_out(cells)
            self._columns.append((model, rows, cells))
        hidden = len(self._models) - fits
        self.title_right = ((f"{plural(hidden, 'more model')}: [ ]", "dim"),) if hidden else ()

    def __len__(self) -> int:
        return max((len(rows) for _, rows, _ in self._columns), default=0)

    def heads(self, width: int) -> Sequence[Row]:
        self.lay_out(width)
        if not self._columns:
            return ()
        spans: list[Span] = []
        for model, _, cells in self._columns:
            spans += [("│", "rule")] if spans else []
            spans.append((" " + fit(flat(model), cells - 1), "head"))
        return (Row(tuple(spans)),)

    def row(self, index: int, width: int) -> Row:
        self.lay_out(width)
        spans: list[Span] = []
        for _, rows, cells in self._columns:
            spans += [("│", "rule")] if spans else []
            line = crop(rows.row(index, cells).spans, cells) if index < len(rows) else ()
            spans += [*line, (" " * (cells - width_of(line)), "plain")]
        return Row(tuple(spans))


def _column(samples: Sequence[Sample]) -> Iterator[TextLine]:
    for sample in samples:
        glyph, token = sign(_SIGNS[sample.status])
        cost = cost_words(sample)
        facts = "  ".join(filter(None, (cost, seconds(sample.seconds) if sample.seconds is not None else "")))
        yield TextLine(f"{glyph} {sample.number}  {facts}", token)
        yield from text_lines(answer_text(sample), "error" if sample.status == "failed" else "plain")
        yield TextLine("")


def input_words(plan: PlaygroundPlan) -> str:
    """To whom the request goes, and how large it is by the first model's count: ``gpt-4.1-mini · 1,967 tokens``."""
    names = [flat(one.model) for one in plan.models]
    to = ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"
    return f"{to} · {count(plan.models[0].input, plan.models[0].grade)} tokens" if plan.models else ""
