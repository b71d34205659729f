"""Whole panes, prints and pages of what compares: contexts, requests, strategies, candidates, batches and answers."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.engine.support import FlatPrices, Played, Words
from tests.engine.test_compare import Unknown, Writing, played, side
from tests.snapshots.test_stored_differences import EDITS
from tests.snapshots.test_stored_differences import played as edited
from tests.support.panes import check_panes, mark, pane
from tests.ui.test_candidates import contested
from tests.views.test_views import batch_matrix
from workbench.analysis.changed import AssembledRequest, compared
from workbench.analysis.compare import Comparison, as_recorded, compare
from workbench.analysis.sweep import Pricing, Subject, Sweep, candidates, sweep
from workbench.cli.printer import Printer
from workbench.context.message import ToolCall
from workbench.engine.journal.usage import Usage
from workbench.views.batch import BatchRows, BatchView, VariantRows, cell_lines, diff_rows
from workbench.views.candidates import CandidateRows, CandidatesView
from workbench.views.compare import CompareRows, CompareView
from workbench.views.model import Rows
from workbench.views.page import page
from workbench.views.playground import AnswerColumns, SampleRows
from workbench.views.requests import ChangedView, RequestRows, Texts
from workbench.views.sweep import ORDERS, SweepRows, SweepView
from workbench.views.text import TextRows
from workbench.views.value import Block, Drawing, View
from workbench.workspace.playground import Sample

STORED = Path(__file__).parent / "stored"


def printed(view: View) -> list[str]:
    """The first lines of a print, and marks of the whole in other widths, and as a page."""
    stream = io.StringIO()
    Printer(plain=True, stream=stream).show(view.blocks())
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    told = mark([*lines, repr(view.json()), paged(view.blocks())])
    return [*lines[:14], f"({len(lines)} lines, {told})"]


def paged(blocks: Iterable[Block]) -> str:
    """A page without its drawings, whose bytes follow from the version of the library that makes them."""
    return page("A title", "about", [block for block in blocks if not isinstance(block, Drawing)])


@cache
def run() -> Played:
    return played(words=90, turns=4)


def comparisons() -> Iterator[tuple[str, Comparison]]:
    shorter, flat = played(words=20, turns=3, usage=Usage(input=300, output=9, cached=128)), FlatPrices()
    a, b = (("first", run()), ("other", shorter))
    sides: dict[str, tuple[Any, ...]] = {
        "masks": (side(run(), "snowball"), side(run(), "selective+mask(after=1,min_masked_size=10)")),
        "clears, written": (side(run(), "slide(turns=2)", Writing()), side(run(), "clear(trigger=90)", Writing())),
        "unpriced": (side(run(), "snowball", Unknown()), side(run(), "slide(turns=1)", Unknown())),
        "the same": (side(run(), "snowball"), side(run(), "snowball")),
        "runs": tuple(as_recorded(name, one.state, one.definition, Words(), flat) for name, one in (a, b)),
    }
    for name, (one, other) in sides.items():
        yield name, compare(one, other)


def drawn(rows: Rows) -> str:
    rows.lay_out(70)
    lines = [*rows.heads(70), *(rows.row(index, 70) for index in range(len(rows)))]
    return repr([rows.title, *(line.spans for line in lines)])


def compared_panes() -> Iterator[tuple[str, Rows | list[str]]]:
    for name, found in comparisons():
        what_if = name != "runs"
        rows = CompareRows(found, name, is_what_if=what_if)
        yield name, rows
        steps = [(rows.step(at, 1), rows.step(at, -1)) for at in range(len(rows))]
        texts = [drawn(text) for at in range(len(rows)) if (text := rows.sides(at)) is not None]
        told = [mark([repr(steps)]), mark([repr(texts)])]
        opened = [at for at in range(len(rows)) if rows.toggle(at)]
        ends = [rows.no_further(1), rows.no_further(-1), f"opened {opened}"]
        sections = [rows.section_of(at) for at in range(len(rows))]
        yield f"{name}, moved in", [*told, *ends, *pane(rows)[-1:], mark([repr(sections)])]
        at = found.differing[-1] if found.differing else None
        for texts_, plot in ((True, False), (False, True)):
            view = CompareView(found, name, is_what_if=what_if, at=at, texts=texts_, plot=plot)
            yield f"{name}, printed {texts_} {plot}", printed(view)
        yield f"{name}, as a page", [mark([paged(CompareView(found, name, is_what_if=what_if).page())])]


def test_comparisons_are_the_stored_panes() -> None:
    check_panes(STORED, "comparisons", compared_panes())


def requests() -> Iterator[tuple[str, Rows | list[str]]]:
    before = edited()
    for name, text in EDITS.items():
        after = edited(text)
        for old, new in zip(before.state.calls, after.state.calls, strict=False):
            one, other = AssembledRequest.of_call(old, before.state), AssembledRequest.of_call(new, after.state)
            if one == other or old.place != new.place:
                continue
            changed = compared(old.place, one, other, after.definition, before.definition)
            texts = Texts("t.yaml", text, before.state.cascade_text)
            rows = RequestRows(changed, texts)
            yield f"{name}, {old.place}", rows
            steps = [(rows.step(at, 1), rows.step(at, -1), rows.line_at(at)) for at in range(len(rows))]
            opened = rows.toggle(len(rows) - 1), rows.toggle(0)
            only = RequestRows(changed, texts, only=changed.parts[-1] if changed.parts else None)
            told = [mark([repr(steps)]), str(opened), pane(rows)[-1], pane(only)[-1]]
            yield f"{name}, {old.place}, moved in", [*told, *printed(ChangedView(changed, "t.yaml"))]
            break


def test_changed_requests_are_the_stored_panes() -> None:
    check_panes(STORED, "requests", requests())


def swept() -> Sweep:
    subjects = [Subject(f"run {at}", one.state, one.definition) for at, one in enumerate((run(), played(40, turns=3)))]
    specs = ["mask(after=[1,2],min_masked_size=10)", "slide(turns=1)", "budget(max=60,reserve=0)"]
    tried = candidates(specs, [subjects[0].definition])
    return sweep(subjects, tried, Words(), [Pricing("flat", FlatPrices()), Pricing("written", Writing())])


def lists() -> Iterator[tuple[str, Rows | list[str]]]:
    found = swept()
    for order in ORDERS:
        yield f"sweep by {order or 'file'}", SweepRows(found, "runs", len(found.rows), is_over=True, order=order)
    yield "a sweep that goes on", SweepRows(replace(found, rows=found.rows[:2]), "runs", 9, is_over=False, tick=2)
    yield "sweep, printed", printed(SweepView(found))
    matrix = batch_matrix()
    for order in ("row", "status", "score", "worst", "cost", "time"):
        yield f"batch by {order}", BatchRows(matrix, 1, order, (1, 0))
    yield "no batch", BatchRows(None, reading=True)
    yield "variants", VariantRows(matrix, 1)
    yield "outputs of two cells", diff_rows(matrix, (0, 0), (0, 1))
    for row, variant in ((0, 1), (1, 0)):
        yield f"cell {row} {variant}", TextRows(cell_lines(matrix, row, variant, typeset=False))
    yield "batch, printed", printed(BatchView(matrix, rows=1, against=1))
    state = contested().state
    for contest in state.contests:
        yield "candidates", CandidateRows(state, contest, marked=1)
    yield "candidates, printed", printed(CandidatesView(state, list(state.contests), texts=True))
    called = (ToolCall("1", "look", '{"a": 1}'),)
    samples = [
        Sample("m-1", 1, "answered", "One\ntwo", usage=Usage(120, 12), cost=0.01, cost_grade="exact", seconds=1.5),
        Sample("m-1", 2, "answered", "", called, usage=Usage(None, 3), predicted=0.002, seconds=0.2),
        Sample("a/long/name/of/a/model", 1, "failed", reason="rate limit"),
        Sample("m-3", 1, "unsent", reason="the budget is spent"),
        Sample("m-4", 1, "running"),
        Sample("m-4", 2),
        Sample("m-5", 1, "stopped", "A begun"),
    ]  # fmt: skip
    yield "samples", SampleRows(samples, 3)
    yield "no samples", SampleRows([])
    for first in (0, 2, 9):
        yield f"answers beside, from {first}", AnswerColumns(samples, first)
    yield "no answers beside", AnswerColumns([])


def test_lists_that_compare_are_the_stored_panes() -> None:
    check_panes(STORED, "lists", lists())
