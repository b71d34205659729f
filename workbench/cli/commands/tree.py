"""``workbench tree``: the execution tree of a run, in the shape other tools read."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.options import as_json, find_run, plain, project_here, session_argument
from workbench.cli.output import Printer, write_json
from workbench.engine.state import RunState, VisitState


@click.command(short_help="The execution tree of a run.")
@session_argument
@as_json
@plain
def command(session: str | None, json: bool, plain: bool) -> None:
    """Print the execution tree of a run: phases in the order in which they ran, with their candidates.

    \b
    Examples:
      workbench tree log_triage-1f3a
      workbench tree log_triage-1f3a --json
    """
    project = project_here()
    state = project.store.state(find_run(project, session))
    if json:
        write_json(execution_tree(state))
        return
    from workbench.cli.views.run import print_tree

    print_tree(state, Printer(plain))


def execution_tree(state: RunState) -> dict[str, Any]:
    """``session_id`` and ``phases``; each phase has a name, a type, a visit and a status."""
    return {"session_id": state.session_id, "phases": [_phase(visit) for visit in state.visits if not visit.branch]}


def _phase(visit: VisitState) -> dict[str, Any]:
    kind = "deterministic" if visit.kind == "deterministic" else "simple"
    return {"name": visit.phase, "type": kind, "visit": visit.visit, "status": visit.status}
