"""``workbench graph``: the phases of a cascade or a run, and what leads where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, plain, project_here, read_run
from workbench.cli.printer import Printer, write_json
from workbench.engine.definition import Definition
from workbench.views.graph import GraphView
from workbench.workspace.mermaid import RunPath, mermaid

if TYPE_CHECKING:
    from workbench.language.graph import Graph
    from workbench.workspace.project import Project


@click.command(short_help="Print the graph of a cascade or a run.")
@click.argument("what", metavar="FILE|SESSION")
@click.option("--as", "form", type=click.Choice(("text", "mermaid")), default="text", help="Form of the output.")
@as_json
@plain
def command(what: str, form: str, json: bool, plain: bool) -> None:
    """Print the graph of a cascade file, or of a stored run with the way that it took.

    \b
    Examples:
      workbench graph cascades/router.yaml
      workbench graph router-1f3a --as mermaid > router.mmd
    """
    graph, walked = _graph(project_here(), what)
    if json:
        write_json(GraphView(graph, walked).json())
    elif form == "mermaid":
        click.echo(mermaid(graph, walked), nl=False)
    else:
        Printer(plain).show(GraphView(graph, walked).blocks())


def _graph(project: Project, what: str) -> tuple[Graph, RunPath]:
    if Path(what).is_file():
        opened = project.open(Path(what))
        if opened.graph is None:
            first = opened.errors[0]
            raise Failure(Exit.USAGE, first.message, file=first.file, line=first.span.line, column=first.span.column)
        return opened.graph, RunPath()
    if Path(what).suffix and not project.store.matches(what):
        raise Failure(Exit.USAGE, "no such file, and no run of that name", file=what)
    state = read_run(project, what, defined=True)
    return Definition.of(state.cascade_text, state.cascade_file).graph, RunPath(state)
