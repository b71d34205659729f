"""``workbench annotate``: tags, notes, a score or a thumb on runs and on single calls."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import SessionName, as_json, find_run, plain, project_here, stored_here
from workbench.cli.printer import Printer, talk, write_json, write_json_list
from workbench.context.place import Place
from workbench.engine.journal.annotations import Change, check_score
from workbench.engine.past.places import NoSuchPlace
from workbench.views.annotations import AnnotationsView
from workbench.workspace.annotating import annotated, annotation_target


class Target(click.ParamType[Any]):
    """A run, or one of its calls behind an ``@``; completes to the stored runs, then to their calls."""

    name = "run"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        run, at, place = incomplete.rpartition("@")
        if not at:
            return SessionName().shell_complete(ctx, param, incomplete)
        store = stored_here().store
        calls = (call.place for call in store.state(store.find(run)).calls if call.place.turn and not call.place.branch)
        names = dict.fromkeys(f"{at.phase}:{at.turn}" for at in calls)
        return [CompletionItem(f"{run}@{name}") for name in names if name.startswith(place)]


@click.command(short_help="Tag, score and note runs and calls.")
@click.argument("targets", metavar="[RUN[@PHASE:TURN]]...", type=Target(), nargs=-1)
@click.option("--tag", "-t", "tags", multiple=True, metavar="TAG", help="Add a tag: one word. Repeatable.")
@click.option("--untag", "-u", multiple=True, metavar="TAG", help="Remove a tag.")
@click.option("--note", "-n", "notes", multiple=True, metavar="TEXT", help="Add a note.")
@click.option("--drop-note", "drop_notes", multiple=True, metavar="TEXT", help="Remove the note with this text.")
@click.option("--score", "-s", metavar="N", help="Set the score to any number; 'none' removes it.")
@click.option("--up", "thumb", flag_value="up", help="Thumb up.")
@click.option("--down", "thumb", flag_value="down", help="Thumb down.")
@click.option("--no-thumb", "thumb", flag_value="none", help="Remove the thumb.")
@as_json
@plain
def command(
    targets: tuple[str, ...],
    tags: tuple[str, ...],
    untag: tuple[str, ...],
    notes: tuple[str, ...],
    drop_notes: tuple[str, ...],
    score: str | None,
    thumb: str | None,
    json: bool,
    plain: bool,
) -> None:
    """Annotate runs or single calls. Annotations are kept beside the run, which stays as it is; the filter of
    'workbench runs', SQL and every export know them. Without options: show them. Without RUN: the newest run.

    \b
    Examples:
      workbench annotate log_triage-1f3a --tag good --score 4
      workbench annotate log_triage-1f3a@triage:3 --down --note 'wrong log'
      workbench annotate log_triage-1f3a --untag good --score none
      workbench runs 'tag:good score>=4'
    """
    project = project_here()
    views: list[AnnotationsView] = []
    try:
        change = Change(
            tags=tags,
            untag=untag,
            notes=notes,
            drop_notes=drop_notes,
            score=check_score(score) if score not in (None, "none") else None,
            drop_score=score == "none",
            thumb=thumb if thumb in ("up", "down") else "",
            drop_thumb=thumb == "none",
        )
        found = [annotation_target(project.store, name) for name in targets] or [(find_run(project, None), Place())]
        for run_id, place in found:
            name = project.store.summary(run_id).name
            if change == Change():
                now = project.store.annotations(run_id)
            else:
                now = annotated(project, run_id, replace(change, place=place))
            views.append(AnnotationsView(name, now))
    except NoSuchPlace as fault:
        raise Failure(Exit.USAGE, str(fault), hint="workbench show lists the calls") from fault
    if json:
        if len(views) > 1:
            write_json_list(view.json() for view in views)
        else:
            write_json(views[0].json())
        return
    printer = Printer(plain)
    for view in views:
        printer.show(view.blocks())
        if not view.annotations:
            talk(f"{view.name}: no annotations", "dim")
