"""``workbench trust``: shows what a folder could do outside the sandbox, and allows it or takes that back."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import CascadeFile, as_json, project_here
from workbench.cli.printer import talk, write_view
from workbench.tools.trust import Trust, TrustDamaged
from workbench.views.workspace import PermissionsView
from workbench.workspace.permissions import allow, manifest_of


@click.command(short_help="Allow tools of this folder to act outside the sandbox, or revoke it.")
@click.argument("files", type=CascadeFile(), nargs=-1, metavar="[FILE]...")
@click.option("--yes", "-y", is_flag=True, help="Allow it without asking.")
@click.option("--revoke", is_flag=True, help="Revoke the permission.")
@as_json
@click.pass_context
def command(ctx: click.Context, files: tuple[Path, ...], yes: bool, revoke: bool, json: bool) -> None:
    """List what this workspace could do outside the sandbox: Python tools, declared tools, commands, network, and
    variables. With FILE, what these cascades add. In a terminal it asks whether to allow that; elsewhere it only
    reports.

    The permission holds for the real path and the content: a changed tool asks again, a changed prompt does not. --yes
    also renders the folder's templates without a separate process.
    Exit code 3 when something is not allowed.

    \b
    Examples:
      workbench trust
      workbench trust cascades/etl.yaml --yes
      workbench trust --revoke
    """
    project = project_here()
    trust = Trust(project.folders.state)
    try:
        if revoke:
            talk(f"{project.root} is no longer trusted" if trust.revoke(project.root) else "it was not trusted")
            return
        manifest = manifest_of(project, files)
        missing = trust.missing(project.root, manifest)
        if yes:
            allow(project, files)
        may_ask = bool(missing) and not (yes or json) and sys.stdin.isatty()
        word = "now allowed" if yes else "asks for" if may_ask else "not allowed"
        view = PermissionsView(str(project.root), manifest, missing, word)
        write_view(view, json=json)
        if may_ask and click.confirm("Allow what it asks for?", default=False, err=True):
            allow(project, files)
        elif missing and not yes:
            command_line = " ".join(["workbench trust", *(project.shown(file) for file in files), "--yes"])
            talk(f"{project.root} is not trusted ({command_line} allows it)", "warning")
            ctx.exit(Exit.TRUST)
        elif not (yes or manifest.needs_trust):
            talk("nothing here needs trust", "ok")
            return
        talk(f"{project.root} is trusted", "ok")
    except (TrustDamaged, ValueError) as error:
        raise Failure(Exit.TRUST, str(error)) from error
    except OSError as error:
        raise Failure(Exit.TRUST, f"the permission cannot be kept in {trust.path}: {error.strerror}") from error
