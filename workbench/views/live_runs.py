"""Strategies run live: what it would cost, and how each run went."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.dollars import UNPRICED, money
from workbench.views.cells import Row, Span, crop, fit, flat, justify, width_of
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import plural, seconds, spent_words
from workbench.views.signs import sign
from workbench.views.value import BLANK, Block, Cell, Column, Table, View
from workbench.workspace.live_runs import LivePlan, LiveResult

PREVIEW = 80
"""Characters of an output in a table."""
_SIGNS = {"waiting": "pending", "running": "running", "success": "done", "unsent": "blocked"}
_WORDS = {"unsent": "not run", "waiting": "queued"}


def plan_words(plan: LivePlan) -> str:
    """``2 runs by gpt-4.1-mini, ~$0.0123 expected, budget $0.0246.``."""
    by = ", ".join(flat(model) for model in plan.models)
    if plan.offline:
        return f"{plural(len(plan.runs), 'run')}, {by}: no model is called, so answer quality stays unknown."
    expected = UNPRICED if plan.expected is None else f"{money(plan.expected)} expected"
    return f"{plural(len(plan.runs), 'run')} by {by}, {expected}, budget {money(plan.max_cost, exact=True)}."


def plan_lines(plan: LivePlan) -> list[str]:
    """The runs about to start, for the person who decides."""
    runs = []
    for run in plan.runs:
        cost = "" if run.start.choice.offline else f"  {money(run.expected)}"
        runs.append(f"{flat(run.label, 60)}  input of {flat(run.source, 60)}{cost}")
    return [plan_words(plan), "Tools run for real, as in any run.", *runs]


def total_words(results: Sequence[LiveResult]) -> str:
    """``1 of 2 succeeded, $0.0123``."""
    spent = sum(result.spent.total or 0.0 for result in results if result.spent is not None)
    exact = all(result.spent.exact for result in results if result.spent is not None)
    done = sum(result.status == "success" for result in results)
    return f"{done} of {len(results)} succeeded, {money(spent, exact=exact)}"


def _fields(result: LiveResult) -> dict[str, Cell]:
    glyph, token = sign(_SIGNS.get(result.status, "failed"))
    status = _WORDS.get(result.status, result.status)
    said = flat(result.output or result.reason, 400)
    return {
        "strategy": Cell(flat(result.run.label, 80)),
        "run": Cell(flat(result.session_id), "name"),
        "status": Cell(f"{glyph} {status}", token, status),
        "cost": Cell("" if result.spent is None else spent_words(result.spent)),
        "time": Cell("" if result.seconds is None else seconds(result.seconds), "dim"),
        "output": Cell(said, "plain" if result.output else "error"),
    }


class LiveRunsView(View):
    """The plan, and a row for each run."""

    def __init__(self, plan: LivePlan, results: Sequence[LiveResult]) -> None:
        self.plan, self.results = plan, results

    def blocks(self) -> Iterable[Block]:
        yield (Cell("Run live", "head"), f"   {plan_words(self.plan)}")
        yield BLANK
        columns = (
            Column("strategy", flexible=True, least=16),
            Column("run", flexible=True, leaves=1),
            Column("status"),
            Column("cost", right=True),
            Column("time", right=True, leaves=2),
            Column("output", flexible=True, leaves=3),
        )
        rows = []
        for result in self.results:
            fields = _fields(result)
            said = fields["output"].text
            short = said if len(said) <= PREVIEW else f"{said[:PREVIEW]}…"
            rows.append([*list(fields.values())[:-1], fields["output"]._replace(text=short)])
        yield Table(columns, rows)
        yield BLANK
        yield (total_words(self.results),)

    def json(self) -> dict[str, Any]:
        return {
            "models": list(self.plan.models),
            "offline": self.plan.offline,
            "expected_cost": self.plan.expected,
            "max_cost": self.plan.max_cost,
            "runs": [
                {
                    "strategy": result.run.label,
                    "spec": result.run.spec,
                    "input_of": result.run.source,
                    "session_id": result.session_id or None,
                    "status": result.status,
                    "reason": result.reason or None,
                    "expected_cost": result.run.expected,
                    "cost": None if result.spent is None else result.spent.total,
                    "seconds": result.seconds,
                    "output": result.output,
                }
                for result in self.results
            ],
        }


class LiveRunRows(Rows):
    """The same on a screen, as the runs go on."""

    def __init__(self, plan: LivePlan, results: Sequence[LiveResult], *, is_over: bool) -> None:
        self.results = tuple(results)
        self.plan = plan
        self.title = (("Run live", "title"), (f"  {plural(len(plan.runs), 'run')}", "name"))
        self.title_right = ((total_words(results) if is_over else told("{sweep.stop} stops"), "dim"),)

    def __len__(self) -> int:
        return len(self.results)

    def heads(self, width: int) -> Sequence[Row]:
        room = self._name(width)
        said = [Row(((f" {line}", "dim"),)) for line in textwrap.wrap(plan_words(self.plan), max(20, width - 2))]
        return (*said, Row(crop(((f"   {fit('strategy', room)}  {fit('status', 9)}  output", "head"),), width)))

    def _name(self, width: int) -> int:
        names = max((len(flat(one.run.label, 80)) for one in self.results), default=8)
        return max(10, min(names, width // 3))

    def row(self, index: int, width: int) -> Row:
        result = self.results[index]
        fields = _fields(result)
        mark = sign(_SIGNS.get(result.status, "failed"))
        left: tuple[Span, ...] = (
            (" ", "plain"),
            mark,
            (f" {fit(fields['strategy'].text, self._name(width))}  ", "plain"),
            (f"{fit(fields['status'].words or '', 9)}  ", mark[1]),
            (fields["output"].text, fields["output"].token),
        )
        facts = "  ".join(filter(None, (fields[name].text for name in ("run", "cost", "time"))))
        right: tuple[Span, ...] = ((f"{facts} ", "dim"),) if facts else ()
        return Row(justify(crop(left, max(20, width - width_of(right) - 1)), right, width))
