"""``workbench playground``: one call of a run again, edited or not, a few times, by one model or several."""

from __future__ import annotations

import asyncio

import click

from workbench.cli.errors import Exit
from workbench.cli.options import SessionName, as_json, base_url_option, plain, project_here, unscripted_option
from workbench.cli.printer import talk, write_view
from workbench.cli.shell_completion import PlaceOfRun
from workbench.engine.past.places import find_call
from workbench.views.playground import PlaygroundView, plan_words
from workbench.workspace.edit_text import read_edits
from workbench.workspace.playground import Playground, Sample, subject_of


@click.command(short_help="Send a call again, edited or not, to several models.")
@click.argument("session", type=SessionName())
@click.option(
    "--at", type=PlaceOfRun(), required=True, metavar="PLACE", help="PHASE:TURN, or PHASE/VISIT/ATTEMPT/TURN/CALL."
)
@click.option("--samples", "-n", type=click.IntRange(1), default=1, show_default=True, help="Answers of each model.")
@click.option("--model", "-m", "models", multiple=True, metavar="MODEL", help="Repeatable. Default: the call's own.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="Budget in US dollars for all calls.")
@click.option("--edit", "edits", multiple=True, metavar="EDIT", help="Edit the request first; see below. Repeatable.")
@base_url_option
@unscripted_option
@as_json
@plain
def command(
    session: str,
    at: str,
    samples: int,
    models: tuple[str, ...],
    max_cost: float | None,
    edits: tuple[str, ...],
    base_url: str | None,
    unscripted: str | None,
    json: bool,
    plain: bool,
) -> None:
    """Send the request of a call again and show the answers beside each other, with what they cost. Nothing is written
    into the run, and no tool runs.

    With --max-cost, nothing is sent if the calls are expected to cost more, and no further call once the budget is used
    up. Exit code 1 if no model answered.

    \b
    Edits, with messages numbered as 'workbench context' shows them:
      3=TEXT  drop:3  add:3:user=TEXT  move:3:2   the messages
      param.temperature=0                         the request's parameters
    A TEXT that begins with @ names a file.

    \b
    Examples:
      workbench playground log_triage-1f3a --at triage:3 -n 3
      workbench playground night --at intake:1 -m gpt-4.1 -m o3 --max-cost 0.10
      workbench playground night --at triage:2 --edit '4=@shorter.txt'
      workbench playground night --at triage:1 --json | jq '.answers[].text'
    """
    project = project_here(base_url=base_url, unscripted=unscripted)
    state = project.store.state(project.store.find(session))
    playground = Playground(project, subject_of(project, state, find_call(state, at)))
    for edit in read_edits(edits, playground.subject.call.entries):
        playground.draft.do(edit)
    plan = playground.plan(models, samples, max_cost)
    for planned in plan.models:
        if planned.note:
            talk(planned.note, "warning")
    talk(plan_words(plan), "dim")

    def changed(sample: Sample) -> None:
        if sample.status in ("answered", "failed", "unsent"):
            words = sample.reason or f"answered in {sample.seconds or 0:.1f}s"
            talk(f"{sample.model} {sample.number}: {words}", "error" if sample.status == "failed" else "dim")

    found = asyncio.run(playground.send(plan, changed))
    view = PlaygroundView(playground.subject, plan, found, len(playground.draft.edits))
    write_view(view, json=json, plain=plain)
    if not any(sample.status == "answered" for sample in found):
        raise click.exceptions.Exit(Exit.FAILED)
