"""``workbench serve``: the app in a browser of this machine, and an API that reads the stored runs."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from pathlib import Path

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import CascadeFile, model_option, project_here
from workbench.cli.serving.guard import unfit
from workbench.extras import missing

LOCAL = ("127.0.0.1", "localhost")


@click.command(short_help="Serve the app in a browser, and an API that reads the runs.")
@click.argument("file", type=CascadeFile(), required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0 takes any free port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Only this machine is served: 127.0.0.1.")
@model_option
@click.pass_context
def command(ctx: click.Context, file: Path | None, port: int, host: str, model: str | None) -> None:
    """Serve the app to a browser on this machine until Ctrl+C. The address that is printed holds a token; requests
    without it are refused. WORKBENCH_TOKEN sets the token, else a new one is made each time.

    /runs lists the runs, /runs/SESSION shows one as a page, and /?run=SESSION opens it in the app. 'workbench link'
    makes read-only links to single runs.

    With the same token (as a cookie, or Authorization: Bearer) these can be read:
    /api/runs, /api/runs/SESSION, its tree and graph below that, and /api/runs/SESSION/events as server-sent
    events.

    \b
    Examples:
      workbench serve cascades/log_triage.yaml
      workbench serve --port 0 --model offline
      curl -H "Authorization: Bearer $WORKBENCH_TOKEN" \\
        http://127.0.0.1:8321/api/runs
    """
    if host not in LOCAL:
        raise Failure(
            Exit.USAGE,
            f"'{host}' is not served: the app runs tools on this machine, so only this machine may reach it",
            hint=f"from elsewhere: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE",
        )
    if file is not None and not file.is_file():
        raise Failure(Exit.USAGE, "no such file", file=str(file))
    if absent := missing("serve"):
        raise Failure(Exit.USAGE, absent)
    token = os.environ.get("WORKBENCH_TOKEN", "") or secrets.token_urlsafe(24)
    if wrong := unfit(token):
        raise Failure(Exit.USAGE, f"WORKBENCH_TOKEN {wrong}", hint="unset it to get a new one")
    from workbench.cli.serving.server import serve  # aiohttp, of the extra whose absence is told above

    project = project_here()
    words = ["open", *(["--model", model] if model else [])]
    opened = [str(file)] if file is not None else []
    start = "from workbench.cli.serving.app_process import main; main()"
    ctx.exit(asyncio.run(serve([sys.executable, "-P", "-c", start, *words], opened, project, token, port)))
