"""``workbench push``: the runs of this workspace to the team's server, now."""

from __future__ import annotations

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, stored_here, team_server_of
from workbench.cli.printer import talk, write_json
from workbench.store.faults import StoreError
from workbench.store.server.server_index import ServerIndex
from workbench.views.numbers import plural


@click.command(short_help="Push the runs of this workspace to the team's server.")
@click.option("--upgrade", is_flag=True, help="First rebuild tables of an older version; the journals there stay.")
@as_json
def command(upgrade: bool, json: bool) -> None:
    """Push all runs of this workspace, older ones too, to the ClickHouse server of the settings. Runs are pushed
    automatically while the app is open and at the end of each run; this command waits until all have arrived, and says
    why one has not.

    \b
    Examples:
      workbench push
      workbench push --json
    """
    project = stored_here()
    server = team_server_of(project)
    with ServerIndex(project.store, server) as index:
        if index.progress.fault == "" and index.notice:
            raise Failure(Exit.STORE, index.notice)
        if upgrade and index.upgrade():
            talk("the tables are rebuilt; they fill as each machine ships its runs")
        index.catch_up()
        if index.notice:
            raise Failure(Exit.STORE, index.notice)
        progress = index.progress
    if json:
        write_json({"server": server.url, "records": progress.records, "refused": progress.refused})
    else:
        runs = plural(len(project.store.own_run_ids()), "run")
        talk(f"{runs} shipped to {server.url}; {progress.records:,} records were new", "ok")
        for run_id, reason in sorted(progress.refused.items()):
            talk(f"run {run_id} is not in the tables: {' '.join(reason.split())[:200]}", "warning")
    if progress.refused:
        raise StoreError(f"{plural(len(progress.refused), 'run')} cannot be shipped whole")
