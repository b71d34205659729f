"""``workbench tree``: the execution tree of a run, in the shape other tools read."""

from __future__ import annotations

import click

from workbench.analysis import react_flow as drawing
from workbench.analysis.tree import execution_tree
from workbench.cli.options import as_json, plain, read_run, session_argument, stored_here
from workbench.cli.printer import Printer, talk, write_json
from workbench.views.run import steps


@click.command(short_help="Print the execution tree of a run.")
@session_argument
@as_json
@click.option("--react-flow", is_flag=True, help="Nodes and edges for React Flow, as JSON.")
@plain
def command(session: str | None, json: bool, react_flow: bool, plain: bool) -> None:
    """Print the execution tree of a run: phases in the order in which they ran, with their candidates.

    \b
    Examples:
      workbench tree log_triage-1f3a
      workbench tree log_triage-1f3a --json
      workbench tree slogans-77e2 --react-flow > tree.json
    """
    state = read_run(stored_here(), session)
    if react_flow:
        write_json(drawing.react_flow(execution_tree(state)))
        return
    if json:
        write_json(execution_tree(state))
        return
    if not state.visits:
        talk("no phase of it ran")
    Printer(plain).show(steps(state))
