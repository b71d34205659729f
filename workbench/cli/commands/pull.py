"""``workbench pull``: runs of colleagues from the team's server, to have here."""

from __future__ import annotations

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, stored_here, team_server_of
from workbench.cli.printer import talk, write_json
from workbench.store.server.pulling import pull


@click.command(short_help="Pull colleagues' runs from the team's server.")
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@as_json
def command(names: tuple[str, ...], json: bool) -> None:
    """Copy runs from the ClickHouse server of the settings, nested runs included: journals, bodies, images and
    annotations. RUN is a session id, a run id, or the beginning of one. You can then show, replay and fork them without
    the server. 'show', 'open' and other commands pull a run that is not here automatically.

    \b
    Example:
      workbench pull log_triage-1f3a
    """
    project = stored_here()
    server = team_server_of(project)
    brought = []
    for name in names:
        run_id = pull(project.store, server, name)
        if not run_id:
            raise Failure(
                Exit.USAGE, f"no run on {server.url} is named '{name[:80]}'", hint="workbench runs lists them"
            )
        brought.append({"run_id": run_id, "session_id": project.store.summary(run_id).session_id})
        if not json:
            talk(f"{brought[-1]['session_id']} is here: workbench show {run_id}", "ok")
    if json:
        write_json(brought)
