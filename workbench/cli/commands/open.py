"""``workbench open``: the app, on a cascade file or on the file of a stored run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import project_here, starting
from workbench.cli.output import Cell, Printer, talk


@click.command(short_help="Open a cascade, a run, or this folder in the app.")
@click.argument("what", metavar="[FILE|SESSION]", required=False)
@starting
@click.pass_context
def command(
    ctx: click.Context,
    what: str | None,
    input_: Mapping[str, Any] | None,
    model: str | None,
    base_url: str | None,
    session: str | None,
    sandbox: str | None,
) -> None:
    """Open the cascade in FILE, or that of the stored run SESSION, in the app. Nothing runs before you say so.

    Without an argument: the only cascade of this folder, or a list of what there is.

    \b
    Examples:
      workbench open cascades/log_triage.yaml
      workbench open flow.yaml --model offline
      workbench open cascades/log_triage.yaml --input '{"service": "checkout", "log": "data/checkout/checkout.log"}'
    """
    from workbench.cli.app import Opening, start
    from workbench.workspace.inputs import default_input

    file, run_id = _file(what)
    if file is None:
        return
    given = default_input(file) if input_ is None else input_
    opening = Opening(file, None, given, model or "", base_url or "", session or "", sandbox or "", run_id)
    ctx.exit(start(opening, given, f"workbench run {file}"))


def _file(what: str | None) -> tuple[Path | None, str]:
    """The file that is meant, and the stored run to show; no file after a list was printed instead."""
    if what is None:
        return _only_one(), ""
    if Path(what).exists() or Path(what).suffix in (".yaml", ".yml", ".json"):
        return Path(what), ""
    project = project_here()
    run_id = project.store.find(what)
    state = project.store.state(run_id)
    file = project.root / state.cascade_file
    if state.ports.get("imported"):
        raise Failure(Exit.USAGE, f"{what} was imported: it has no cascade file", hint=f"workbench context {what}")
    if not state.cascade_file or not file.is_file():
        raise Failure(Exit.USAGE, f"the cascade of {what} is not there any more", hint=f"workbench show {what}")
    return file, run_id


def _only_one() -> Path | None:
    """The cascade of this folder when there is one only; else what there is, printed."""
    project = project_here()
    found = {item.file: item.cascade for item in project.around.cascades(project.root).values()}
    if len(found) == 1:
        return next(iter(found))
    if not found:
        raise Failure(Exit.USAGE, f"no cascades in {project.root}", hint="workbench demo shows one")
    printer = Printer()
    for file, cascade in sorted(found.items()):
        about = (cascade.description or "").partition("\n")[0]
        printer.line(Cell(f"workbench open {project.shown(file)}", "head"), f"   {about}")
    runs = project.store.runs()
    if runs:
        talk(f"{len(runs)} stored runs: workbench runs", "dim")
    return None
