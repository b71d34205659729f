"""``workbench trust``: shows what a folder could do outside the sandbox, and allows it or takes that back."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import CascadeFile, as_json, project_here
from workbench.cli.output import Cell, Printer, talk, write_json


@click.command(short_help="Let the tools of this folder act outside, or stop them.")
@click.argument("files", type=CascadeFile(), nargs=-1, metavar="[FILE]...")
@click.option("--yes", "-y", is_flag=True, help="Allow it without asking.")
@click.option("--revoke", is_flag=True, help="Take the permission back.")
@as_json
@click.pass_context
def command(ctx: click.Context, files: tuple[Path, ...], yes: bool, revoke: bool, json: bool) -> None:
    """List what this workspace could do outside the sandbox: Python tools, declared tools, commands, network, and
    variables. With FILE, what these cascades add. In a terminal it asks whether to allow that; elsewhere it reports.

    The permission belongs to the real path and to the content: a changed tool asks again, a changed prompt does not.
    Exit code 3 when something is not allowed.

    \b
    Examples:
      workbench trust
      workbench trust cascades/etl.yaml --yes
      workbench trust --revoke
    """
    from workbench.tools.trust import Trust, TrustDamaged
    from workbench.workspace.allowing import allow, manifest_of

    project = project_here()
    trust = Trust(project.folders.state)
    try:
        if revoke:
            talk(f"{project.root} is no longer trusted" if trust.revoke(project.root) else "it was not trusted")
            return
        manifest = manifest_of(project, files)
        missing = trust.missing(project.root, manifest)
        if missing and yes:
            allow(project, files)
            missing = trust.missing(project.root, manifest)
        if json:
            listed = [{"kind": str(c.kind), "name": c.name, "allowed": c not in missing} for c in manifest.capabilities]
            write_json({"folder": str(project.root), "trusted": not missing, "capabilities": listed})
        else:
            printer = Printer()
            for capability in manifest.capabilities:
                allowed = capability not in missing
                word = Cell("allowed      " if allowed else "not allowed  ", "good" if allowed else "warn")
                printer.line(word, str(capability))
        if not missing:
            talk("nothing here needs trust" if not manifest.needs_trust else f"{project.root} is trusted", "good")
            return
        if not (sys.stdin.isatty() and click.confirm("Allow all of this?", default=False, err=True)):
            talk(f"{project.root} is not trusted (workbench trust --yes allows it)", "warn")
            ctx.exit(Exit.TRUST)
        allow(project, files)
        talk(f"{project.root} is trusted", "good")
    except (TrustDamaged, ValueError) as error:
        raise Failure(Exit.TRUST, str(error)) from error
