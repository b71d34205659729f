"""``workbench runs``: the stored runs of this workspace, newest first."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.options import as_json, plain, project_here
from workbench.cli.output import Cell, Column, Printer, talk, write_json

if TYPE_CHECKING:
    from workbench.store.summary import RunSummary

COLUMNS = (
    Column("session", flexible=True),
    Column("status"),
    Column("started"),
    Column("took", right=True),
    Column("calls", right=True),
    Column("in", right=True),
    Column("out", right=True),
    Column("cost", right=True),
    Column("cascade", flexible=True),
)


@click.command(short_help="List the stored runs.")
@click.option("--limit", "-n", type=click.IntRange(1), metavar="N", help="At most N runs.")
@click.option("--status", metavar="STATUS", help="Only runs with this status: success, failed, stopped, interrupted …")
@click.option("--all", "-a", "nested", is_flag=True, help="Also runs that ran inside another one.")
@as_json
@plain
def command(limit: int | None, status: str | None, nested: bool, json: bool, plain: bool) -> None:
    """List the stored runs of this workspace, newest first.

    \b
    Examples:
      workbench runs
      workbench runs --status failed --json
      workbench runs --all
    """
    project = project_here()
    runs = [run for run in project.store.runs() if nested or not run.depth]
    found = [run for run in runs if status in (None, run.status)][:limit]
    if json:
        write_json([summary_json(run) for run in found])
        return
    for note in project.notes:
        talk(note, "warn")
    if not found:
        talk(f"no runs in {project.store.root}" + (f" with status {status}" if status else ""))
        return
    printer = Printer(plain)
    printer.table(COLUMNS, [_row(run, printer.plain) for run in found])


def summary_json(run: RunSummary) -> dict[str, Any]:
    """A run in one object; the cost is null where no call has a known one."""
    unknown = run.calls > 0 and run.unknown_costs == run.calls
    return asdict(run) | {"cost": None if unknown else run.cost}


def _row(run: RunSummary, plain: bool) -> list[str | Cell]:
    from workbench.cli.views.run import duration, local_time, status_cell, total_cost
    from workbench.tui.rows.numbers import count, seconds

    took = duration(run.started, run.finished)
    return [
        Cell(run.session_id or run.run_id, "head"),
        status_cell(run.status, plain),
        local_time(run.started),
        "" if took is None else seconds(took),
        count(run.calls),
        count(run.tokens_in),
        count(run.tokens_out),
        total_cost(run.cost, run.unknown_costs, run.calls),
        run.cascade_file or run.cascade_id,
    ]
