"""``workbench show``: one run, its phases and calls, what it cost and what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, find_run, plain, read_run, session_argument, stored_here
from workbench.cli.printer import write_view
from workbench.cli.shell_completion import PhaseOfRun
from workbench.language.nearest import nearest
from workbench.views.run import RunView
from workbench.views.timeline import TimelineView
from workbench.views.value import View

if TYPE_CHECKING:
    from workbench.engine.journal.state import RunState


@click.command(short_help="Show one run: its phases, turns, costs and output.")
@session_argument
@click.option("--timeline", is_flag=True, help="The calls, tools, questions and pauses on one axis of time.")
@click.option("--edges", is_flag=True, help="Each edge out of each phase, and why it was taken or not.")
@click.option("--phase", "-p", type=PhaseOfRun(), metavar="PHASE", help="With --edges: of this phase only.")
@as_json
@plain
def command(session: str | None, timeline: bool, edges: bool, phase: str | None, json: bool, plain: bool) -> None:
    """Show a stored run: SESSION is a session id, a run id, or the beginning of one; without it, the newest run.

    \b
    Examples:
      workbench show
      workbench show log_triage-1f3a --json | jq .totals
      workbench show log_triage-1f3a --timeline
      workbench show review-9c2b --edges --phase gate
    """
    project = stored_here()
    if phase is not None and not edges:
        raise Failure(Exit.USAGE, "--phase goes with --edges", hint="context --phase shows the calls of a phase")
    if timeline and edges:
        raise Failure(Exit.USAGE, "--timeline and --edges are two views: one at a time")
    state = read_run(project, session, defined=True) if edges else project.store.state(find_run(project, session))
    view: View
    if edges:
        view = _edges(state, phase or "")
    else:
        view = TimelineView(state, project.store.nested(state)) if timeline else RunView(state)
    write_view(view, json=json, plain=plain)


def _edges(state: RunState, phase: str) -> View:
    """Returns why the run went on where it did. Raises Failure for a phase that did not run."""
    from workbench.views.ways import ways_view  # loads the language (400 ms), which the other views do without

    names = dict.fromkeys(visit.phase for visit in state.visits)
    if phase and phase not in names:
        near = nearest(phase, tuple(names))
        hint = f"did you mean '{near}'?" if near else f"ran: {', '.join(names) or 'none'}"
        raise Failure(Exit.USAGE, f"phase '{phase}' did not run", hint=hint)
    return ways_view(state, phase)
