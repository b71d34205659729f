"""A batch: its variants side by side, how they differ row by row, and the table of inputs and variants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct
from rich.cells import cell_len

from workbench.analysis.batch.matrix import DONE, MEASURES, OPEN, UNFIT, CellResult, Matrix
from workbench.analysis.batch.paired import LEAST, Paired
from workbench.analysis.batch.rows import InputRow
from workbench.analysis.batch.scoring import Score
from workbench.context.assembly import Grade
from workbench.dollars import GRADE_SIGN, UNPRICED, money
from workbench.json_text import as_text
from workbench.language.clean import clean_line
from workbench.views.cells import Row, Span, crop, fit, fit_ends, flat, whole_parts
from workbench.views.diffs import DiffRows
from workbench.views.documents import is_markdown, written_lines
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import UNKNOWN, at_least, count, plural, seconds
from workbench.views.side_by_side import SideRows
from workbench.views.text import TextLine, TextRows, text_lines, wrapped
from workbench.views.value import (
    BLANK,
    GAP,
    Block,
    Cell,
    Column,
    Heading,
    Piece,
    Table,
    TextBlock,
    View,
    arranged,
    width_of,
)

SHOWN = 50
"""Rows that a command prints, unless it is told otherwise."""
_EXCERPT = 200
_WIDE = 400
"""Cells of a copy of a table."""
_SCORER = 12
"""Characters of a scorer's name in a cell."""
TOKENS = {"success": "ok", "failed": "error", "blocked": "error", "diverged": "error", UNFIT: "error", OPEN: "dim"}
"""How the word for a status looks."""
WORDS = {OPEN: "not run", UNFIT: "does not fit"}


def score_text(value: float | None) -> str:
    """``1``, ``0.75``; a dash if unknown."""
    return UNKNOWN if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def input_words(row: InputRow) -> str:
    """The input of a row in one line."""
    source = row.input or row.columns
    if len(source) == 1:
        return flat(as_text(next(iter(source.values()))), _EXCERPT)
    return flat(", ".join(f"{key}: {as_text(value)}" for key, value in source.items()), _EXCERPT)


def status_words(matrix: Matrix, one: CellResult) -> str:
    """The status of a run in words. A run that began and has not ended is running, or was cut off with its process."""
    if one.status == OPEN and one.run:
        return "running" if matrix.runs_in else "interrupted"
    return WORDS.get(one.status, one.status)


def cell_words(matrix: Matrix, row: int, variant: int, *, limit: int = _EXCERPT, brief: bool = False) -> Cell:
    """A cell in one line: the scores and the beginning of the output, in so many characters, or why there is none.
    ``brief``: a score that is the only one comes without the name of its scorer."""
    results = matrix.at(row, variant)
    if not results:
        return Cell("")
    first = next((one for one in results if one.status != "success"), results[0])
    if first.status != "success":
        reason = f": {first.reason}" if first.reason else ""
        return Cell(flat(status_words(matrix, first) + reason, limit), TOKENS.get(first.status, "dim"))
    marks: list[str] = []
    said: list[str] = []
    for name in (scorer.name for scorer in matrix.plan.scorers):
        values = [
            score.value for one in results if (score := one.scores.get(name)) is not None and score.value is not None
        ]
        if values:
            marks.append(score_text(sum(values) / len(values)))
        elif any(name in one.scores for one in results):
            marks.append(UNKNOWN)
        else:
            continue
        said.append(marks[-1] if brief and len(matrix.plan.scorers) == 1 else f"{flat(name, _SCORER)} {marks[-1]}")
    output = flat(results[0].output, limit)
    return Cell(" · ".join(filter(None, (", ".join(said), output))), _tone(marks))


def _tone(marks: Sequence[str]) -> str:
    if not marks:
        return ""
    return "ok" if all(mark == "1" for mark in marks) else "error" if "0" in marks else "warning"


class BatchView(View):
    """The results of a batch."""

    def __init__(
        self,
        matrix: Matrix,
        *,
        rows: int | None = SHOWN,
        seed: int = 0,
        against: int = 0,
        stopped: str = "",
        goes_on_with: str = "",
    ) -> None:
        """``rows``: how many to show, None for all. ``against``: the variant that the others are compared with.
        ``stopped``: why it ended before its last cell; ``goes_on_with``: what the same command needs then to do the
        rest."""
        self.matrix, self._most, self._seed, self._against = matrix, rows, seed, against
        self._stopped, self._goes_on_with = stopped, goes_on_with

    @property
    def _names(self) -> list[str]:
        return [scorer.name for scorer in self.matrix.plan.scorers]

    def blocks(self) -> Iterator[Block]:
        plan = self.matrix.plan
        about = f"{plural(len(plan.rows), 'row')} of {plan.source}, {plural(len(plan.variants), 'variant')}"
        again = f", each {plan.repeat} times" if plan.repeat > 1 else ""
        yield Heading(f"{plan.name}: {about}{again}")
        yield self.totals()
        if len(plan.variants) > 1:
            yield BLANK
            yield from self._comparisons()
        yield BLANK
        yield self._table()
        hidden = len(plan.rows) - len(self._shown())
        if hidden:
            yield (Cell(f"and {plural(hidden, 'more row')}: --rows N shows more, --output FILE writes all", "dim"),)
        yield from self._end()

    def _end(self) -> Iterator[Block]:
        if repeated := self.matrix.repeated:
            told = f"{money(repeated)} more for runs and scores that were repeated: {money(self.matrix.spent)} in all"
            yield (Cell(told, "dim"),)
        left = self.matrix.left
        if left and self.matrix.runs_in:
            yield (Cell(f"{plural(left, 'run')} left; it is being run by {self.matrix.runs_in}", "dim"),)
        elif left:
            why = f"{self._stopped}: " if self._stopped else ""
            command = f"the same command{self._goes_on_with} continues with it"
            yield (Cell(f"{why}{plural(left, 'run')} left; {command}", "warning"),)
        faults: dict[str, list[tuple[str, str]]] = {}
        for row, _, _, one in self.matrix.all():
            for name, score in one.scores.items():
                if score.fault:
                    faults.setdefault(name, []).append((self.matrix.plan.rows[row].label, score.fault))
        for name, found in faults.items():  # Each scorer has reasons of its own.
            row_label, fault = found[0]
            told = f"{name}: {plural(len(found), 'output')} without a score; row {row_label}: {fault}"
            yield (Cell(clean_line(told, 400), "warning"),)

    def totals(self) -> Table:
        """The variants in sums and means."""
        columns = [
            Column("variant", flexible=True, least=16),
            Column("ended", right=True),
            Column("failed", right=True, leaves=2),
            *(Column(clean_line(name, 24), right=True) for name in self._names),
            Column("cost", right=True),
            Column("tokens", right=True, leaves=1),
            Column("time", right=True, leaves=3),
        ]
        rows: list[Sequence[Piece]] = []
        for index in range(len(self.matrix.plan.variants)):
            one = self.matrix.totals(index)
            means = [one.scores[name] for name in self._names]
            rows.append(
                (
                    clean_line(one.label, _EXCERPT),
                    f"{one.cells - one.left:,}/{one.cells:,}",
                    Cell(f"{one.failed:,}", "error") if one.failed else "",
                    *(UNKNOWN if mean is None else score_text(mean[0]) for mean in means),
                    spent_sum(one.cost, one.predicted, one.unpriced, estimated=one.estimated),
                    count(one.tokens_in + one.tokens_out, one.grade),
                    seconds(one.seconds),
                )
            )
        return Table(columns, rows)

    def comparisons(self) -> Iterator[tuple[int, str, Paired]]:
        """Each variant against the one that it is compared with, by every scorer and measure that both have."""
        for index in range(len(self.matrix.plan.variants)):
            for name in (*self._names, *MEASURES) if index != self._against else ():
                found = self.matrix.compare(self._against, index, name, self._seed)
                if found is not None:
                    yield index, name, found

    def _comparisons(self) -> Iterator[Block]:
        table = self.compared()
        if table.rows:
            yield table
            yield (Cell(f"Row by row; bootstrap over rows, seed {self._seed}; no interval below {LEAST} rows.", "dim"),)

    def compared(self) -> Table:
        """The variants against one of them, row by row."""
        variants = self.matrix.plan.variants
        columns = (
            Column("against " + clean_line(variants[self._against].label, 40), flexible=True, least=16),
            Column("what"),
            Column("mean", right=True, leaves=2),
            Column("difference", right=True),
            Column("95% interval", right=True),
            Column("higher/equal/lower", right=True, leaves=1),
            Column("rows", right=True, leaves=3),
        )
        rows: list[Sequence[Piece]] = [
            (
                clean_line(variants[index].label, _EXCERPT),
                name,
                self._number(index, name, one.mean_b),
                Cell(self._number(index, name, one.mean, sign=True), _better(name, one)),
                UNKNOWN
                if one.low is None or one.high is None
                else " to ".join(self._number(index, name, end, sign=True) for end in (one.low, one.high)),
                f"{one.better}/{one.equal}/{one.worse}",
                f"{one.rows:,}",
            )
            for index, name, one in self.comparisons()
        ]
        return Table(columns, rows)

    def _number(self, variant: int, name: str, value: float, *, sign: bool = False) -> str:
        """A mean or a difference of a variant and the one that it is compared with. What shows as 0 has no sign."""
        size = abs(value) if sign else value
        both = (self.matrix.totals(self._against), self.matrix.totals(variant))
        worst = Grade.of_sum(one.grade for one in both)
        if name == "cost":
            text = money(size, exact=not any(one.estimated or one.predicted for one in both))
        elif name == "tokens":
            text = f"{GRADE_SIGN[worst] if size else ''}{size:,.0f}"
        else:
            text = seconds(size) if name == "seconds" else score_text(size)
        mark = ("+" if value > 0 else "−") if sign and any(digit in text for digit in "123456789") else ""
        return mark + text

    def _shown(self) -> Sequence[InputRow]:
        return self.matrix.plan.rows if self._most is None else self.matrix.plan.rows[: self._most]

    def _table(self) -> Table:
        plan = self.matrix.plan
        named = [row.name for row in self._shown() if row.name != str(row.number)]
        columns = [
            Column("row", right=True),
            *([Column("name")] if named else []),
            Column("input", flexible=True, least=16),
            *(Column(clean_line(one.label, 60), flexible=True, least=16) for one in plan.variants),
        ]
        rows: list[Sequence[Piece]] = [
            (
                str(row.number),
                *([clean_line(row.name, 24)] if named else []),
                input_words(row),
                *(cell_words(self.matrix, at, index) for index in range(len(plan.variants))),
            )
            for at, row in enumerate(self._shown())
        ]
        return Table(columns, rows)

    def json(self) -> dict[str, Any]:
        plan, matrix = self.matrix.plan, self.matrix
        return {
            "name": plan.name,
            "source": plan.source,
            "rows": len(plan.rows),
            "repeat": plan.repeat,
            "scorers": [{"name": one.name, "spec": one.spec} for one in plan.scorers],
            "stopped": self._stopped,
            "runs_in": self.matrix.runs_in,
            "left": matrix.left,
            "spent": matrix.spent,
            "repeated": matrix.repeated,
            "variants": [
                {
                    "label": one.label,
                    "cells": one.cells,
                    "succeeded": one.succeeded,
                    "failed": one.failed,
                    "left": one.left,
                    "cost": one.cost,
                    "predicted_cost": one.predicted,
                    "estimated": one.estimated,
                    "unknown_costs": one.unknown_costs,
                    "unpriced": one.unpriced,
                    "tokens": one.tokens_in + one.tokens_out,
                    "tokens_in": one.tokens_in,
                    "tokens_out": one.tokens_out,
                    "token_grade": str(one.grade),
                    "seconds": one.seconds,
                    "scores": {
                        name: None if mean is None else {"mean": mean[0], "rows": mean[1]}
                        for name, mean in one.scores.items()
                    },
                }
                for one in (matrix.totals(index) for index in range(len(plan.variants)))
            ],
            "comparisons": [
                {
                    "a": plan.variants[self._against].label,
                    "b": plan.variants[index].label,
                    "what": name,
                    "rows": one.rows,
                    "mean_a": one.mean_a,
                    "mean_b": one.mean_b,
                    "difference": one.mean,
                    "low": one.low,
                    "high": one.high,
                    "better": one.better,
                    "equal": one.equal,
                    "worse": one.worse,
                    "seed": self._seed,
                }
                for index, name, one in self.comparisons()
            ],
            "results": list(flat_rows(matrix)),
        }


def _better(name: str, one: Paired) -> str:
    """Green for an improvement that chance does not explain, red for a loss."""
    if not one.differs:
        return ""
    return "ok" if (one.mean > 0) is (name not in MEASURES) else "error"


def flat_rows(matrix: Matrix) -> Iterator[dict[str, Any]]:
    """A record for each run, or for its failure, as files of results hold it. Unknown is None."""
    plan = matrix.plan
    for row, variant, number, one in matrix.all():
        source, scores = plan.rows[row], _scores(matrix, one)
        yield {
            "row": source.number,
            "name": source.name,
            "where": source.where,
            "variant": plan.variants[variant].label,
            "repetition": number,
            "status": one.status,
            "reason": one.reason,
            "input": dict(source.input),
            "expected": source.expected,
            "output": one.output,
            **{f"score_{name}": score.value if score else None for name, score in scores},
            **{f"reason_{name}": (score.fault or score.reason) if score else "" for name, score in scores},
            "cost": one.cost,
            "predicted_cost": one.predicted if one.status in DONE else None,
            "tokens_in": one.tokens_in if one.status in DONE else None,
            "tokens_out": one.tokens_out if one.status in DONE else None,
            "seconds": one.seconds,
            "calls": one.calls if one.status in DONE else None,
            "session": one.session,
            "run": one.run,
        }


def _scores(matrix: Matrix, one: CellResult) -> list[tuple[str, Score | None]]:
    """By scorer of the plan."""
    found = matrix.scores(one)
    return [(scorer.name, found.get(scorer.name)) for scorer in matrix.plan.scorers]


def table_rows(matrix: Matrix) -> Iterator[Mapping[str, Any]]:
    """The same with texts and numbers alone: objects as JSON."""
    for record in flat_rows(matrix):
        yield {
            key: value
            if value is None or isinstance(value, str | int | float)
            else json.dumps(value, ensure_ascii=False, default=str)
            for key, value in record.items()
        }


class CellView(View):
    """One cell whole: input, expected output, and every output with its scores."""

    def __init__(self, matrix: Matrix, row: int, variant: int) -> None:
        self.matrix, self.row, self.variant = matrix, row, variant

    def blocks(self) -> Iterator[Block]:
        plan = self.matrix.plan
        row = plan.rows[self.row]
        yield Heading(f"row {row.label} · {plan.variants[self.variant].label}")
        yield (Cell(row.where, "dim"),)
        for key, value in row.columns.items():
            yield (Cell(clean_line(str(key), 80), "head"),)
            yield TextBlock(as_text(value), "  ")
        for number, one in enumerate(self.matrix.at(self.row, self.variant), 1):
            yield BLANK
            yield (
                Cell(f"run {number}: {status_words(self.matrix, one)}", TOKENS.get(one.status, "")),
                f"  {one.session}",
            )
            if one.reason:
                yield TextBlock(one.reason, "  ")
            for name, score in _scores(self.matrix, one):
                if score is not None:
                    yield (
                        Cell(name, "head"),
                        f"  {score_text(score.value)}  {clean_line(score.fault or score.reason, 400)}",
                    )
            if one.status in DONE:
                yield (Cell(f"{_took(one)} · {plural(one.calls, 'call')}", "dim"),)
                yield TextBlock(one.output, "  ")

    def json(self) -> list[dict[str, Any]]:
        row, label = self.matrix.plan.rows[self.row].number, self.matrix.plan.variants[self.variant].label
        return [one for one in flat_rows(self.matrix) if (one["row"], one["variant"]) == (row, label)]


class BatchesView(View):
    """All batches of a workspace, the one that was run last first."""

    def __init__(self, batches: Sequence[Matrix]) -> None:
        self.batches = batches

    def blocks(self) -> Iterator[Block]:
        columns = (
            Column("batch"),
            Column("inputs", flexible=True),
            Column("rows", right=True),
            Column("variants", right=True, leaves=1),
            Column("ended", right=True),
            Column("failed", right=True, leaves=2),
            Column("cost", right=True, leaves=3),
        )
        if not self.batches:
            yield (Cell("no batch yet: workbench batch FILE --inputs ROWS", "dim"),)
            return
        yield Table(columns, [_overview(one) for one in self.batches])

    def json(self) -> list[dict[str, Any]]:
        return [
            {
                "name": one.plan.name,
                "source": one.plan.source,
                "rows": len(one.plan.rows),
                "variants": [variant.label for variant in one.plan.variants],
                "failed": _failed(one.counts),
                "counts": dict(one.counts),
                "left": one.left,
                "spent": one.spent,
            }
            for one in self.batches
        ]


def _overview(one: Matrix) -> Sequence[Piece]:
    counts = one.counts
    total, failed = sum(counts.values()), _failed(counts)
    return (
        one.plan.name,
        clean_line(one.plan.source, _EXCERPT),
        f"{len(one.plan.rows):,}",
        f"{len(one.plan.variants):,}",
        Cell(f"{total - one.left:,}/{total:,}", "warning" if one.left else ""),
        Cell(f"{failed:,}", "error") if failed else "",
        _spent_of(one),
    )


def spent_sum(known: float, predicted: float, unpriced: int, *, estimated: bool) -> str:
    """A sum of money as lists of runs say it: ``~`` where a part is not a bill, ``≥`` where one has no price."""
    if unpriced and not known + predicted:
        return UNPRICED
    words = money(known + predicted, exact=not (predicted or estimated))
    return at_least(words) if unpriced else words


def _took(one: CellResult) -> str:
    """Cost, tokens and time of a run."""
    cost = spent_sum(one.spent, one.predicted, one.without_price, estimated=one.estimated)
    return f"{cost} · {count(one.tokens, one.grade)} tokens · {seconds(one.seconds)}"


def _spent_of(matrix: Matrix) -> str:
    """Returns the cost of all runs of a batch and their scores."""
    ended = [one for _, _, _, one in matrix.all() if one.status in DONE]
    unpriced = sum(one.without_price for one in ended)
    estimated = any(one.estimated for one in ended)
    return spent_sum(matrix.spent, sum(one.predicted for one in ended), unpriced, estimated=estimated)


def _failed(counts: Mapping[str, int]) -> int:
    return sum(counts.get(name, 0) for name in ("failed", "blocked", "diverged", UNFIT))


# The screen: rows and variants as a list with a column of its own under the cursor.

NAMES, LEAST_CELL = 11, 18
"""Cells of the names of rows, at most, and of a variant, at least: variants without room are left out."""
SHORT_CELL, BRIEF_CELL = 11, 30
"""Cells of a variant at least where all that it says is short; and those below which a cell leaves out what its head
says, too."""
LEAST_INPUT = 24
"""Cells that the input keeps where names of variants would be cut otherwise."""
WIDE_CELL = 60
"""Cells that each variant keeps before the input gets more than its share."""
CELL_LINES = 4
"""Lines of a cell at most, where there are lines to spare."""
MEASURED = 200
"""Rows at the beginning whose texts decide how wide their columns are."""
LOOKED_AT = 20
"""Rows at the beginning whose outputs decide how narrow a variant may be."""
ORDERS = ("row", "score", "worst", "cost", "time", "status")
"""The keys that rows are sorted by: all but the first by the variant under the cursor."""


class BatchPosition(Struct):
    """Where the screen was left, for when it opens again: a cell leads to the Bench, and from there back."""

    name: str = ""
    row: int = -1
    """Of the plan."""
    column: int = 0
    order: str = ORDERS[0]
    marked: tuple[int, int] | None = None
    filter: str = ""
    typeset: bool = True
    """Whether Markdown is drawn."""


def _values(label: str) -> list[str]:
    """The settings of a variant without their names, which are those of all variants."""
    return [part.partition("=")[2] or part for part in label.split(" · ")]


def variant_heads(labels: Sequence[str], width: int) -> list[str]:
    """The labels of variants, each in exactly ``width`` cells. If one is too long, all show the values of their
    settings alone, and of those that are still too long the beginning and the end."""
    if all(cell_len(flat(label)) <= width for label in labels):
        return [fit(label, width) for label in labels]
    return [_head(_values(label), width) for label in labels]


def _head(values: Sequence[str], width: int) -> str:
    shown, room = list(values), width - 3 * (len(values) - 1)
    shortest_first = sorted(range(len(values)), key=lambda at: cell_len(flat(values[at])))
    for left, at in zip(range(len(values), 0, -1), shortest_first, strict=True):
        shown[at] = fit_ends(values[at], min(cell_len(flat(values[at])), room // left))
        room -= cell_len(shown[at])
    return fit(" · ".join(shown), width)


class BatchRows(Rows):
    """The table of a batch, with a variant chosen and a cell marked. Where there are lines to spare, its cells wrap."""

    spreads = True
    empty: tuple[str, ...] = (
        "No batch yet.",
        "workbench batch FILE --inputs ROWS runs a cascade for each row of a file.",
    )

    def __init__(
        self,
        matrix: Matrix | None,
        column: int = 0,
        order: str = "row",
        marked: tuple[int, int] | None = None,
        *,
        reading: bool = False,
    ) -> None:
        """``reading``: it is not known yet whether there is a batch."""
        if reading:
            self.empty = ("Reading the batches …",)
        self.matrix, self.column, self.order, self.marked = matrix, column, order, marked
        self.rows: list[int] = self._ordered()
        """The rows in the order in which they show."""
        self._whole: dict[tuple[int, int], tuple[Row, ...]] = {}
        self._each = 1
        """Lines of a cell at most."""
        if matrix is None:
            self.title = (("Batches", "title"),)
            return
        total = sum(matrix.counts.values())
        about = f"  {plural(len(matrix.plan.rows), 'row')} of {flat(matrix.plan.source, 60)}"
        self.title = (("Batch", "title"), (f"  {matrix.plan.name}", "name"), (about, "dim"))
        going = ", running" if matrix.runs_in else ""
        state: Span = (f"{total - matrix.left:,}/{total:,} ended{going}", "warning" if matrix.left else "dim")
        self.title_right = (state, (f"  {_spent_of(matrix)}  by {order}", "dim"))

    def _ordered(self) -> list[int]:
        if self.matrix is None:
            return []
        rows = list(range(len(self.matrix.plan.rows)))
        return rows if self.order == "row" else sorted(rows, key=self._key)

    def _key(self, row: int) -> tuple[float | str, int]:
        assert self.matrix is not None
        found = self.matrix.at(row, self.column)
        if self.order == "status":
            return (found[0].status if found else "", row)
        if self.order in ("score", "worst"):
            scores = (score for one in found for score in self.matrix.scores(one).values())
            values = [score.value for score in scores if score.value is not None]
            mean = sum(values) / len(values) if values else (float("-inf") if self.order == "score" else float("inf"))
            return (-mean if self.order == "score" else mean, row)
        sums = [one.spent if self.order == "cost" else one.seconds or 0.0 for one in found]
        return (-sum(sums), row)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _needs(self) -> tuple[int, int, int]:
        """Cells of the names of the first rows, of their inputs, and of the heads of variants."""
        assert self.matrix is not None
        first = self.matrix.plan.rows[:MEASURED]
        names = max((cell_len(flat(row.label)) for row in first), default=0)
        inputs = max((cell_len(input_words(row)) for row in first), default=0) + 2
        heads = max(cell_len(flat(" · ".join(_values(one.label)))) for one in self.matrix.plan.variants) + 1
        return max(len("row"), min(NAMES, names)) + 1, inputs, heads

    @cached_property
    def _least(self) -> int:
        """Cells of a variant at least: fewer where no cell says much."""
        assert self.matrix is not None
        rows, variants = range(min(LOOKED_AT, len(self.matrix.plan.rows))), range(self._count)
        words = (cell_words(self.matrix, row, variant, brief=True).text for row in rows for variant in variants)
        longest = max((cell_len(text[:LEAST_CELL]) for text in words), default=0)
        return max(SHORT_CELL, min(LEAST_CELL, longest + 2))

    def _shown(self, width: int) -> tuple[int, list[int], int]:
        """Cells of the input, the variants that show, and cells of each."""
        assert self.matrix is not None
        count, least = self._count, self._least
        room, wanted = width - self._needs[0] - 2, self._needs[1]
        share = max(room // (count + 1), room - count * WIDE_CELL)
        input = max(LEAST_CELL, min(max(40, room - count * WIDE_CELL), share, wanted))
        fitting = max(1, min(count, (room - input) // least))
        input = min(input, max(LEAST_INPUT, room - fitting * self._needs[2]))
        first = max(0, min(self.column - fitting // 2, count - fitting))
        return input, list(range(first, first + fitting)), (room - input) // fitting

    def heads(self, width: int) -> Sequence[Row]:
        if self.matrix is None:
            return ()
        input, variants, cell = self._shown(width)
        more = f" ({len(variants)} of {len(self.matrix.plan.variants)})" if len(variants) < self._count else ""
        names = self._needs[0]
        labels: list[Span] = [(" ", "plain"), (fit("row", names), "head"), (fit(f"input{more}", input), "head")]
        sums: list[Span] = [(" " * (names + 1 + input), "plain")]
        totals = [self.matrix.totals(index) for index in variants]
        heads = variant_heads([one.label for one in totals], cell - 1)
        for index, one, label in zip(variants, totals, heads, strict=True):
            means = [f"{name} {score_text(mean[0])}" for name, mean in one.scores.items() if mean is not None]
            failed = [f"{one.failed} failed"] if one.failed else []
            told = " · ".join(
                [
                    *means,
                    *failed,
                    spent_sum(one.cost, one.predicted, one.unpriced, estimated=one.estimated),
                    seconds(one.seconds),
                ]
            )
            here = index == self.column
            labels += [self._edge(index), (label, "title-focus" if here else "name")]
            kept = whole_parts(((flat(told), "dim"),), cell - 1)
            sums += [self._edge(index), (fit("".join(text for text, _ in kept), cell - 1), "dim")]
        return (Row(crop(labels, width)), Row(crop(sums, width)))

    @property
    def _count(self) -> int:
        return len(self.matrix.plan.variants) if self.matrix is not None else 0

    def _edge(self, index: int) -> Span:
        return ("┃", "rule-focus") if index == self.column else ("│", "rule")

    def row(self, index: int, width: int) -> Row:
        input, cells, room = self._cells(index, width)
        return self._line(index, width, fit(input[0], input[1]), [fit(cell.text, room - 1) for cell in cells], cells)

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """The input and each cell in as many lines as each row has; below the table the cell stands whole."""
        known = self._whole.get((index, width)) if self._each > 1 else ()
        if known is None:
            input, cells, room = self._cells(index, width)
            texts = [(input[0], input[1] - 1), *((cell.text, room - 2) for cell in cells)]
            columns = [_in_lines(text, wide, self._each) for text, wide in texts]
            rows: list[Row] = []
            for at in range(max(map(len, columns))):
                first, *rest = [column[at] if at < len(column) else "" for column in columns]
                parts = [fit(text, room - 1) for text in rest]
                rows.append(self._line(index if not at else -1, width, fit(first, input[1]), parts, cells))
            known = self._whole[index, width] = tuple(rows) if len(rows) > 1 else ()
        return known

    def _cells(self, index: int, width: int) -> tuple[tuple[str, int], list[Cell], int]:
        """The input of a row with its cells, the variants that show, and cells of each of them."""
        assert self.matrix is not None
        at = self.rows[index]
        input, variants, room = self._shown(width)
        brief, limit = room < BRIEF_CELL, CELL_LINES * max(room, _EXCERPT // CELL_LINES)
        cells = []
        for variant in variants:
            words = cell_words(self.matrix, at, variant, limit=limit, brief=brief)
            mark = "● " if (at, variant) == self.marked else ""
            cells.append(Cell(mark + words.text, words.token))
        return (input_words(self.matrix.plan.rows[at]), input), cells, room

    def _line(self, index: int, width: int, input: str, parts: Sequence[str], cells: Sequence[Cell]) -> Row:
        """A line of a row; ``index`` is -1 for one that goes on."""
        assert self.matrix is not None
        label = self.matrix.plan.rows[self.rows[index]].label if index >= 0 else ""
        spans: list[Span] = [
            (" ", "plain"),
            (fit(label, self._needs[0] - 1), "dim"),
            (" ", "plain"),
            (input, "plain"),
        ]
        for variant, part, cell in zip(self._shown(width)[1], parts, cells, strict=True):
            spans += [self._edge(variant), (part, cell.token or "plain")]
        return Row(crop(spans, width))

    def share(self, width: int, most: int) -> int:
        """Let the cells of all rows wrap into the same number of lines, so that together they take at most ``most``.
        Returns how many they take; more than ``most`` where there are more rows than that."""
        lines = max(1, min(CELL_LINES, most // max(1, len(self))))
        if lines != self._each:
            self._each, self._whole = lines, {}
        if lines == 1:
            return len(self)
        return sum(max(1, len(self.whole(index, width))) for index in range(len(self)))

    def plain(self, index: int) -> str:
        """All of the row: what a filter finds."""
        assert self.matrix is not None
        at = self.rows[index]
        row = self.matrix.plan.rows[at]
        parts = [row.label, *(as_text(value) for value in row.columns.values())]
        for variant in range(self._count):
            for one in self.matrix.at(at, variant):
                parts += [status_words(self.matrix, one), one.reason, one.output, one.session]
        return flat(" ".join(parts), 100_000)


def _in_lines(text: str, room: int, most: int) -> list[str]:
    """A flat text in at most so many lines."""
    lines = ["".join(part for part, _ in line) for line in wrapped(((flat(text, len(text)), ""),), max(4, room))]
    return [*lines[: most - 1], f"{lines[most - 1]} …"] if len(lines) > most else lines


def beside(here: tuple[int, int], other: tuple[int, int] | None, variants: int, most: int) -> list[tuple[int, int]]:
    """At most so many cells (row, variant) to stand beside each other, in the order of the table: ``here``, the one
    that it is compared with, then the further variants of its row."""
    row = [(here[0], variant) for variant in range(variants)]
    return sorted(list(dict.fromkeys([here, *([other] if other is not None else []), *row]))[:most])


def cell_rows(
    matrix: Matrix, cells: Sequence[tuple[int, int]], here: tuple[int, int], *, typeset: bool, whole: bool = False
) -> Rows:
    """Cells (row, variant) beside each other for a pane; ``here`` is the one under the cursor."""
    title = (("Cell", "title"), (f"  {_place_words(matrix, here)}", "name"))
    written = any(is_markdown(one.output) for at in cells for one in matrix.at(*at))
    words = told("{batch.typeset} shows it as written" if typeset else "{batch.typeset} draws its Markdown")
    right: tuple[Span, ...] = ((words, "dim"),) if written else ()
    if len(cells) == 1:
        return TextRows(cell_lines(matrix, *here, typeset=typeset, whole=whole), title, right)
    of_here, labels, texts = False, list[str](), list[list[TextLine]]()
    for row, variant in cells:
        given = row != here[0] or not of_here
        of_here = of_here or row == here[0]
        texts.append(cell_lines(matrix, row, variant, typeset=typeset, given=given))
        label = flat(matrix.plan.variants[variant].label)
        labels.append(label if row == here[0] else _place_words(matrix, (row, variant)))
    return SideRows(texts, labels, title, right, here=cells.index(here))


def _place_words(matrix: Matrix, at: tuple[int, int]) -> str:
    return f"row {flat(matrix.plan.rows[at[0]].label)} · {flat(matrix.plan.variants[at[1]].label)}"


def cell_lines(
    matrix: Matrix, row: int, variant: int, *, whole: bool = False, typeset: bool = False, given: bool = True
) -> list[TextLine]:
    """One cell for a pane, from its output to what it was ``given``. ``typeset``: Markdown is drawn."""
    lines: list[TextLine] = []
    for number, one in enumerate(matrix.at(row, variant), 1):
        times = f" {number}" if matrix.plan.repeat > 1 else ""
        about = f" · {_took(one)}" if one.status in DONE else ""
        status = status_words(matrix, one)
        lines.append(TextLine(f"run{times} {status}{about}  {one.session}", TOKENS.get(one.status, "dim")))
        if one.reason:
            lines += text_lines(one.reason, "error")
        for name, score in _scores(matrix, one):
            if score is not None:
                told = clean_line(score.fault or score.reason, 400)
                lines.append(
                    TextLine(f"{name} {score_text(score.value)}  {told}", "warning" if score.fault else "name")
                )
        if one.output:
            output = written_lines(one.output, typeset=typeset, whole=whole)
            lines += [TextLine(""), TextLine("output", "head"), *output]
    columns = matrix.plan.rows[row].columns if given else {}
    for key, value in columns.items():
        lines += [TextLine(""), TextLine(clean_line(str(key), 80), "head")]
        lines += text_lines(as_text(value), whole=whole)
    return lines


def diff_rows(matrix: Matrix, a: tuple[int, int], b: tuple[int, int]) -> DiffRows:
    """The outputs of two cells (row, variant) compared."""
    texts, labels = [], []
    for row, variant in (a, b):
        one = matrix.at(row, variant)[0]
        scores = [f"{name} {score_text(score.value)}" for name, score in _scores(matrix, one) if score is not None]
        name, label = matrix.plan.rows[row].label, matrix.plan.variants[variant].label
        labels.append(clean_line(f"row {name} · {label}: {' · '.join([*scores, _took(one)])}", 400))
        texts.append(one.output if one.status in DONE else one.reason)
    return DiffRows(
        (texts[0], texts[1]),
        (labels[0], labels[1]),
        (("Outputs", "title"), (f"  {flat(matrix.plan.name, 60)}", "name")),
        copy="\n\n".join(texts),
    )


class VariantRows(Rows):
    """The variants of a batch in sums, and against one of them: tables that fit the width of their pane."""

    def __init__(self, matrix: Matrix, against: int) -> None:
        view = BatchView(matrix, rows=0, against=against)
        self._tables = [view.totals(), *([view.compared()] if len(matrix.plan.variants) > 1 else [])]
        self.title = (("Variants", "title"), (f"  {matrix.plan.name}", "name"))
        self._rows: list[Row] = []
        self.copy = "\n".join(row.text.rstrip() for row in self._laid_out(_WIDE))

    def lay_out(self, width: int) -> None:
        self._rows = self._laid_out(width)

    def _laid_out(self, width: int) -> list[Row]:
        found: list[Row] = []
        for table in self._tables:
            cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in table.rows]
            heads = [Cell(column.title, "head") for column in table.columns]
            asked = [max(width_of(row[at].text) for row in (heads, *cells)) for at in range(len(heads))]
            widths = arranged(table.columns, asked, width - 1)
            found += [Row(crop(self._spans(row, table, widths), width)) for row in (heads, *cells)]
            found.append(Row(()))
        return found

    @staticmethod
    def _spans(row: Sequence[Cell], table: Table, widths: Sequence[int]) -> list[Span]:
        spans: list[Span] = []
        for cell, column, width in zip(row, table.columns, widths, strict=True):
            if width:
                text = fit(cell.text, width, "right" if column.right else "left")
                spans += [(" " * (GAP if spans else 1), "plain"), (text, cell.token or "plain")]
        return spans

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, width: int) -> Row:
        return self._rows[index]
