"""``workbench fork``: a new run that begins as a stored one did, up to a stop, and goes on from there."""

from __future__ import annotations

import click
from msgspec.structs import replace

from workbench.cli.errors import Exit, Failure
from workbench.cli.fork_and_rerun import fork_run
from workbench.cli.options import SessionName, base_url_option, sandbox_option
from workbench.cli.running import RunOptions, driving
from workbench.cli.shell_completion import PlaceOfRun
from workbench.workspace.project import Project


@click.command(short_help="Start a new run from a place in a stored one.")
@click.argument("session", type=SessionName())
@click.option(
    "--at",
    type=PlaceOfRun(),
    metavar="PLACE",
    help="[branch/]phase, phase:turn, phase#visit:turn, or phase/visit/attempt/turn/call in full.",
)
@click.option(
    "--stop",
    type=click.Choice(["before_phase", "before_call", "after_call", "before_tool", "after_tool"]),
    help="Which stop of that place. Default: the one that the edits need, else before_call.",
)
@click.option("--tool", metavar="N", type=click.IntRange(1), default=1, help="Which tool call of the turn. Default: 1.")
@click.option("--set", "state", multiple=True, metavar="state.KEY=VALUE", help="Set a state value there. Repeatable.")
@click.option("--edit", "edits", multiple=True, metavar="EDIT", help="Edit the messages there; see below. Repeatable.")
@click.option(
    "--pin", "pins", multiple=True, metavar="PLACE", help="Keep the recorded answers of these calls. Repeatable."
)
@click.option(
    "--definition",
    type=click.Choice(["recorded", "file"]),
    default="recorded",
    help="The text that the run is pinned to (default), or the file as it is now.",
)
@click.option("--model", "-m", help="Model from there on, for phases that name none; or 'offline'.")
@base_url_option
@click.option("--session", "new_session", metavar="ID", help="Name of the new run.")
@sandbox_option
@click.pass_context
@driving
def command(
    ctx: click.Context,
    project: Project,
    way: RunOptions,
    session: str,
    at: str | None,
    stop: str | None,
    tool: int,
    state: tuple[str, ...],
    edits: tuple[str, ...],
    pins: tuple[str, ...],
    definition: str,
    new_session: str | None,
) -> None:
    """Replay SESSION up to a place without a single call, make the edits there, and continue live: a new run.

    Messages are numbered as 'workbench context' shows them. With --pin and without --at, everything runs live except
    the pinned calls.

    \b
    Edits:
      3=TEXT  drop:3  add:3:user=TEXT  move:3:2   the context of the call
      param.temperature=0                         the request's parameters
      answer=TEXT                                 what the model said
      arguments=JSON  skip=TEXT                   a tool call, before it runs
      result=TEXT  error=TEXT                     what a tool gave back
    A TEXT that begins with @ names a file. To change state that a phase's
    instructions read, stop before the phase: --at PHASE without a turn.

    \b
    Examples:
      workbench fork log_triage-1f3a --at triage:3
      workbench fork log_triage-1f3a --at crash --set state.severity=high
      workbench fork log_triage-1f3a --at triage:2 --edit '4=@shorter.txt'
      workbench fork triage-1f3a --at intake:1 --edit 'result=no file' --tool 2
    """
    if not at and not pins:
        raise Failure(Exit.USAGE, "nowhere to fork", hint="--at phase:turn, or --pin calls to keep")
    code = fork_run(
        project,
        project.store.find(session),
        replace(way, session=new_session or ""),
        at=at or "",
        stop=stop,
        tool=tool,
        state=state,
        written=edits,
        pins=pins,
        definition=definition,
    )
    ctx.exit(code)
