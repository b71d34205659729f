"""``workbench resume``: goes on with a run that was stopped or interrupted."""

from __future__ import annotations

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import SessionName, answers_option, plain, project_here, unscripted_option
from workbench.cli.running import RunOptions, resume_run
from workbench.workspace.settings import SANDBOXES


@click.command(short_help="Resume a stopped or interrupted run.")
@click.argument("session", type=SessionName())
@click.option("--model", "-m", help="'offline', or the model to use where the run named none.")
@click.option("--base-url", metavar="URL", help="Server with an OpenAI-compatible API that answers all calls.")
@click.option("--sandbox", type=click.Choice(SANDBOXES), help="Sandbox for shell and code tools.")
@click.option("--until", metavar="PHASE[:TURN]", help="Stop before this turn's first call.")
@click.option("--rerun-tools", is_flag=True, help="Run a tool again that had started when the run was interrupted.")
@answers_option
@click.option("--auto-approve", is_flag=True, help="Take the first choice of every open question.")
@click.option(
    "--resume-full",
    type=click.Choice(("rebuild", "degrade")),
    default="rebuild",
    help="Of pipelines: degrade begins a new run where SESSION stands, whose nodes with fidelity full begin with a "
    "summary in place of the conversations; rebuild (default) takes them from the journal.",
)
@unscripted_option
@click.option("--json", is_flag=True, help="The journal's events on stdout, one JSON object per line, from the first.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@plain
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    model: str | None,
    base_url: str | None,
    sandbox: str | None,
    unscripted: str | None,
    until: str | None,
    rerun_tools: bool,
    answers: str | None,
    auto_approve: bool,
    resume_full: str,
    json: bool,
    quiet: bool,
    plain: bool,
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
    project = project_here(base_url=base_url, sandbox=sandbox, unscripted=unscripted)
    run_id = project.store.find(session)
    run = project.store.summary(run_id)
    if run.status not in ("stopped", "interrupted", "failed"):
        pid = f" by process {run.pid}" if run.pid else ""
        raise Failure(Exit.USAGE, f"{run.session_id or run_id} is {run.status}{pid}; there is nothing to resume")
    degrade = resume_full == "degrade"
    way = RunOptions(model or "", "", sandbox or "", until, answers, auto_approve, json, quiet, plain, (), degrade)
    ctx.exit(resume_run(project, run_id, way, rerun_tools=rerun_tools))
