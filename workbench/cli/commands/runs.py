"""``workbench runs``: the stored runs of this workspace that match a filter, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import click

from workbench.cli.options import as_json, plain, stored_here
from workbench.cli.printer import Printer, talk, write_json
from workbench.store.run_filter import FIELDS, find_runs, parse_filter
from workbench.store.text_search import TextSearch
from workbench.views.runs import RunsView
from workbench.views.value import Cell
from workbench.workspace.team import listed

if TYPE_CHECKING:
    from workbench.store.run_filter import Filter, RunMatch
    from workbench.store.store import Store
    from workbench.store.summary import RunSummary


@click.command(short_help="List the stored runs.")
@click.argument("filter_", metavar="[FILTER]...", nargs=-1)
@click.option("--limit", "-n", type=click.IntRange(1), metavar="N", help="At most N runs.")
@click.option("--status", metavar="STATUS", help="The same as the filter status:STATUS.")
@click.option("--all", "-a", "nested", is_flag=True, help="Also list nested runs.")
@click.option("--fields", is_flag=True, help="Print the fields of a filter, and exit.")
@as_json
@plain
def command(
    filter_: tuple[str, ...],
    limit: int | None,
    status: str | None,
    nested: bool,
    fields: bool,
    json: bool,
    plain: bool,
) -> None:
    """List the stored runs of this workspace, newest first. FILTER is one argument or several: conditions that must
    all hold, with 'or' between alternatives and '-' for not. --fields lists what can be asked for. Quote it for the
    shell, and put -- before one that begins with '-'.

    \b
    Examples:
      workbench runs
      workbench runs 'status:failed phase:research tokens>8000'
      workbench runs 'cost>=0.05 date>=2026-11-01 or is:edited' --json
      workbench runs 'user:ana machine:lab3 date>=yesterday'
      workbench runs 'text:"rate limit" -status:success'
    """
    if fields:
        _print_fields(Printer(plain))
        return
    project = stored_here()
    wanted = _filter(" ".join(filter_), status)
    stored, missing = listed(project.store, elsewhere=not wanted.reads)
    if missing:
        talk(missing, "warning")
    found = _found(project.store, stored, wanted, nested=nested, limit=limit)
    view = RunsView(found)
    if json:
        write_json(view.json())
        return
    for note in project.notes:
        talk(note, "warning")
    if not found:
        said = f" that match {wanted.text}" if wanted.text else ""
        talk(f"no runs in {project.store.root}{said}")
        return
    Printer(plain).show(view.blocks())


def _filter(text: str, status: str | None) -> Filter:
    """The filter of the command line. Raises FilterError with the column of a mistake."""
    now = datetime.now().astimezone()
    wanted = parse_filter(text, now)
    if status is None:
        return wanted
    alternatives = parse_filter(f'status:"{status}"', now).alternatives[0]
    both = tuple((*alternatives, *terms) for terms in wanted.alternatives or ((),))
    return type(wanted)(f"{wanted.text} status:{status}".strip(), both)


def _found(
    store: Store, stored: Iterable[RunSummary], wanted: Filter, *, nested: bool, limit: int | None
) -> list[RunMatch]:
    runs = [run for run in stored if nested or wanted.asks_inside or not run.depth]
    return list(islice(find_runs(runs, wanted, TextSearch(store)), limit))


def _print_fields(printer: Printer) -> None:
    takes = {
        "words": "part of it, * and ?; = for all of it",
        "number": ": = > >= < <= and 8k, 1.5M",
        "length": ": = > >= < <= and 90s, 2m, 1h",
        "moment": ": = > >= < <=",
        "age": "> >= < <= and 30m, 2h, 7d, 2w",
        "text": "a word, or several in quotes",
    }
    for field in FIELDS:
        printer.line(Cell(f"{field.name:<9} ", "head"), field.help)
        printer.line(" " * 10, Cell(", ".join(field.choices) if field.choices else takes[field.sort], "dim"))
