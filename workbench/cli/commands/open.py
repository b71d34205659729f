"""``workbench open``: the app, on a cascade file, on a stored run, or on what the folder holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.app import Opening, start
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import project_here, starting, stored_here
from workbench.cli.printer import Printer, talk
from workbench.context.place import Place
from workbench.language.read.endings import FILE_ENDINGS
from workbench.terminal import why_not
from workbench.views.numbers import plural
from workbench.views.value import Cell
from workbench.workspace.input_file import default_input, input_of_run
from workbench.workspace.starting import ENDINGS


@click.command(short_help="Open a cascade, a run, or this folder in the app.")
@click.argument("what", metavar="[FILE|SESSION[@PLACE]]", required=False)
@starting
@click.option("--fresh", is_flag=True, help="Start fresh, not at the run, call and panes where you left the file.")
@click.pass_context
def command(
    ctx: click.Context,
    what: str | None,
    input_: Mapping[str, Any] | None,
    model: str | None,
    base_url: str | None,
    session: str | None,
    sandbox: str | None,
    fresh: bool,
) -> None:
    """Open the cascade in FILE, or the stored run SESSION, in the app; with @PLACE at a call of that run. Nothing runs
    until you start it. A file opens as you left it: the same run, call, panes and folds.

    Without an argument: the cascades of this folder with their problems, and its runs; without a terminal they are
    listed. A FILE that does not exist yet can be created from a template. A folder with the checkpoint of a pipeline
    (export --as checkpoint) is imported, and can be resumed.

    \b
    Examples:
      workbench open
      workbench open cascades/log_triage.yaml
      workbench open flow.yaml --model offline --fresh
      workbench open log_triage-1f3a@triage:2
      workbench open cascades/router.yaml --input '{"ticket": "T-2041"}'
    """
    file, run_id, place = _meant(what)
    proposed = ""
    if file is not None and not run_id and not file.exists():
        if why_not(os.environ) is not None or file.suffix not in ENDINGS:
            hint = f"workbench new call {file} makes it from a template" if file.suffix in ENDINGS else ""
            raise Failure(Exit.USAGE, "there is no such file", file=str(file), hint=hint)
        file, proposed = None, str(file)
    if session:
        stored_here().store.require_new(session)
    if file is None and not run_id and not proposed and why_not(os.environ) is not None:
        _list()
        return
    given = input_ if input_ is not None else _input_of(run_id, file)
    opening = Opening(
        file, None, given, model or "", base_url or "", session or "", sandbox or "", run_id, fresh, proposed, place
    )
    instead = f"workbench show {what}" if run_id else f"workbench run {file or 'FILE'}"
    ctx.exit(start(opening, given, instead))


def _input_of(run_id: str, file: Path | None) -> Mapping[str, Any]:
    """The input of the next run: that of the stored run, else that of the file."""
    if not run_id:
        return default_input(file) if file is not None else {}
    first = next(iter(stored_here().store.events(run_id)), None)
    return input_of_run((first.data.get("input") or {}) if first is not None else {}, file)


def _meant(what: str | None) -> tuple[Path | None, str, Place | None]:
    """The file that is meant, the stored run to show, and its call to begin at."""
    if what is None:
        return None, "", None
    if Path(what).is_dir():
        if (found := _checkpoint(Path(what))) is not None:
            return found
        if Path(what).resolve() == stored_here().root:
            return None, "", None
        raise Failure(Exit.USAGE, "is a folder, not a cascade file", file=what, hint=f"cd {what} && workbench open")
    if Path(what).exists() or Path(what).suffix in FILE_ENDINGS:
        return Path(what), "", None
    # What folds a run takes 60 ms, and a file is shown without it before the first frame.
    from workbench.engine.past.places import NoSuchPlace
    from workbench.workspace.annotating import annotation_target

    project = stored_here()
    try:
        run_id, place = annotation_target(project.store, what)
    except NoSuchPlace as fault:
        raise Failure(Exit.USAGE, str(fault), hint="workbench tree lists the calls") from None
    file = project.store.summary(run_id).cascade_file
    path = project.root / file
    return (path if file and path.is_file() else None), run_id, place if place != Place() else None


def _checkpoint(folder: Path) -> tuple[Path | None, str, Place | None] | None:
    """The pipeline of a checkpoint, and the run that it is imported as; resumed, it goes on where the checkpoint
    stands. None for a folder that is none."""
    from workbench.workspace.imports import is_checkpoint, opened_checkpoint  # the importers: 300 ms

    if not is_checkpoint(folder):
        return None
    project = project_here()
    run_id = opened_checkpoint(project, folder)
    file = project.store.summary(run_id).cascade_file
    path = project.root / file
    return (path if file and path.is_file() else None), run_id, None


def _list() -> None:
    """Prints the content of this folder."""
    from workbench.workspace.home import cascade_files  # the language: 230 ms, before the first frame

    project = project_here()
    found = cascade_files(project)
    if not found:
        raise Failure(Exit.USAGE, f"no cascades in {project.root}", hint="workbench demo shows one")
    printer = Printer()
    for one in found:
        printer.line(Cell(f"workbench open {one.shown}", "head"), f"   {one.cascade_id}")
    runs = project.store.run_ids()
    for note in project.notes:
        talk(note, "warning")
    if runs:
        talk(f"{plural(len(runs), 'stored run')}: workbench runs", "dim")
