"""``workbench show``: one run, its phases and calls, what it cost and what came out."""

from __future__ import annotations

import click

from workbench.cli.options import as_json, find_run, plain, project_here, session_argument
from workbench.cli.printer import Printer, write_json
from workbench.views.run import RunView
from workbench.views.timeline import TimelineView


@click.command(short_help="One run: its phases, turns, costs and output.")
@session_argument
@click.option("--timeline", is_flag=True, help="The calls, tools, questions and pauses on one axis of time.")
@as_json
@plain
def command(session: str | None, timeline: bool, json: bool, plain: bool) -> None:
    """Show a stored run: SESSION is a session id, a run id, or the beginning of one; without it, the newest run.

    \b
    Examples:
      workbench show
      workbench show log_triage-1f3a --json | jq .totals
      workbench show log_triage-1f3a --timeline
    """
    project = project_here()
    state = project.store.state(find_run(project, session))
    view = TimelineView(state, project.store.nested(state)) if timeline else RunView(state)
    if json:
        write_json(view.json())
    else:
        Printer(plain).show(view.blocks())
