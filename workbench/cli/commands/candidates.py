"""``workbench candidates``: the candidates of a run, the winner and the reason."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from workbench.cli.comparison_options import plotting, write_pictures
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, plain, read_run, session_argument, stored_here
from workbench.cli.printer import Printer, write_json
from workbench.cli.shell_completion import PhaseOfRun
from workbench.views.candidates import COST, FRONTIER, QUALITY, CandidatesView
from workbench.views.figure import scatter_picture

if TYPE_CHECKING:
    from workbench.engine.journal.state import RunState
    from workbench.workspace.stored import StoredWorkspace

LOOKED_AT = 50
"""Newest runs among which one with candidates is looked for."""


@click.command(short_help="Show candidates side by side: scores, costs, who won and why.")
@session_argument
@click.option("--phase", "-p", type=PhaseOfRun(), metavar="PHASE", help="Only the candidates of this phase.")
@click.option("--text", is_flag=True, help="Print each output, and what the evaluator was asked and said.")
@plotting
@as_json
@plain
def command(
    session: str | None,
    phase: str | None,
    text: bool,
    plot: bool,
    svg: str | None,
    png: str | None,
    json: bool,
    plain: bool,
) -> None:
    """Show the candidates of a run's soundings, round by round: model, mutation, score, tokens, cost, checks, output,
    and what decided. Without SESSION, the newest run. To answer a run that is waiting for a person, use the app or
    'workbench resume SESSION --answers FILE'.

    \b
    Examples:
      workbench candidates
      workbench candidates slogans-1f3a --phase write --text
      workbench candidates slogans-1f3a --json | jq '.contests[].rounds'
    """
    project = stored_here()
    state = read_run(project, session)
    contests = [c for c in state.contests if phase is None or c.place.phase == phase]
    view = CandidatesView(state, contests, texts=text, plot=plot)
    if json:
        write_json(view.json())
        return
    if not contests:
        where = f"of phase '{phase}' " if phase is not None else ""
        said = f"no candidates {where}ran in {state.session_id or state.run_id}"
        raise Failure(Exit.FAILED, said, hint=_hint(project, state, phase))
    if svg is not None or png is not None:
        points = view.points()
        if not points:
            raise Failure(Exit.FAILED, "nothing to draw: at least two candidates need a score and a known cost")
        write_pictures(partial(scatter_picture, points, COST, QUALITY, (FRONTIER,)), svg, png)
    Printer(plain).show(view.blocks())


def _hint(project: StoredWorkspace, state: RunState, phase: str | None) -> str:
    """Other phases or runs with candidates."""
    phases = dict.fromkeys(contest.place.phase for contest in state.contests)
    if phase is not None and phases:
        return f"there are candidates of {', '.join(phases)}"
    runs = (run for run in project.store.runs()[:LOOKED_AT] if not run.imported and run.run_id != state.run_id)
    for run in runs:
        if any(event.kind == "candidates_started" for event in project.store.events(run.run_id)):
            return f"the newest run that has some: workbench candidates {run.name}"
    return ""
