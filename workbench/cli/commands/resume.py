"""``workbench resume``: goes on with a run that was stopped or interrupted."""

from __future__ import annotations

import click
from msgspec.structs import replace

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import SessionName, base_url_option, sandbox_option
from workbench.cli.running import RunOptions, driving, resume_run
from workbench.workspace.project import Project


@click.command(short_help="Resume a stopped or interrupted run.")
@click.argument("session", type=SessionName())
@click.option("--model", "-m", help="'offline', or the model to use where the run named none.")
@base_url_option
@sandbox_option
@click.option("--until", metavar="PHASE[:TURN]", help="Stop before this turn's first call.")
@click.option("--rerun-tools", is_flag=True, help="Run a tool again that had started when the run was interrupted.")
@click.option(
    "--resume-full",
    type=click.Choice(("rebuild", "degrade")),
    default="rebuild",
    help="Of pipelines: degrade begins a new run where SESSION stands, whose nodes with fidelity full begin with a "
    "summary in place of the conversations; rebuild (default) takes them from the journal.",
)
@click.pass_context
@driving
def command(
    ctx: click.Context,
    project: Project,
    way: RunOptions,
    session: str,
    until: str | None,
    rerun_tools: bool,
    resume_full: str,
) -> None:
    """Resume SESSION where it stopped. Calls that its journal holds are not made again.

    A tool that had started, but left no result, may have done its work: the run stops before it, unless you pass
    --rerun-tools or the tool is declared free of side effects.

    \b
    Examples:
      workbench resume log_triage-1f3a
      workbench resume log_triage-1f3a --until crash
      workbench resume review-90aa --resume-full degrade
    """
    run_id = project.store.find(session)
    run = project.store.summary(run_id)
    if run.status not in ("stopped", "interrupted", "failed"):
        pid = f" by process {run.pid}" if run.pid else ""
        raise Failure(Exit.USAGE, f"{run.session_id or run_id} is {run.status}{pid}; there is nothing to resume")
    way = replace(way, until=until, degrade=resume_full == "degrade")
    ctx.exit(resume_run(project, run_id, way, rerun_tools=rerun_tools))
