"""``workbench doctor``: is the store whole, and what does this machine offer?"""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import click

from workbench.cli.errors import Exit
from workbench.cli.options import as_json, plain, project_here
from workbench.cli.printer import Printer, talk, write_json
from workbench.store.index.health import examine, fix
from workbench.store.index.rebuild import rebuild
from workbench.tools.sandbox import Sandbox
from workbench.views.workspace import HealthView
from workbench.workspace.model_choice import choose_model, in_force, in_words
from workbench.workspace.settings import not_honoured

if TYPE_CHECKING:
    from workbench.workspace.project import Project


@click.command(short_help="Check the store and this machine.")
@click.option("--fix", is_flag=True, help="Restore records that were kept elsewhere; move torn ends of journals aside.")
@click.option("--rebuild", is_flag=True, help="Rebuild the SQL tables from the journals.")
@as_json
@plain
@click.pass_context
def command(ctx: click.Context, fix: bool, rebuild: bool, json: bool, plain: bool) -> None:
    """Read every journal, check the index, and look for the programs that cascades may need. Changes nothing without
    --fix or --rebuild.

    Exit code 1 when something is wrong with the store.

    \b
    Examples:
      workbench doctor
      workbench doctor --fix
      workbench doctor --rebuild
    """
    project = project_here()
    if fix:
        _fix(project)
    if rebuild:
        _rebuild(project)
    report = examine(project.store, project.unsaved)
    view = HealthView(report, _machine(project), not_honoured(project.env))
    if json:
        write_json(view.json())
    else:
        Printer(plain).show(view.blocks())
        words = "the store is intact" if report.ok else "see above; --fix and --rebuild repair what can be repaired"
        talk(words, "ok" if report.ok else "error")
        for note in project.notes:
            talk(note, "warning")
        for name, instead in view.not_honoured.items():
            talk(f"{name} is set and has no effect: {instead}", "warning")
    ctx.exit(Exit.OK if report.ok else Exit.FAILED)


def _fix(project: Project) -> None:
    for line in fix(project.store, project.unsaved) or ["nothing to fix"]:
        talk(line)


def _rebuild(project: Project) -> None:
    done = rebuild(project.store, lambda run_id: talk(f"reads {run_id}", "dim"))
    talk(f"{done.runs} runs with {done.records:,} records are in new tables", "ok")
    if done.moved is not None:
        talk(f"the old index could not be opened and is now in {done.moved}", "warning")
    for run_id, reason in done.refused.items():
        talk(f"run {run_id} was left out: {reason}", "warning")


def _machine(project: Project) -> dict[str, str]:
    """Returns the abilities of the machine that tools and models can use, in words."""
    return {
        "model": in_words(in_force(project, choose_model(project, None, None))),
        "sandbox": _sandbox(project),
        "tmux": "installed" if shutil.which("tmux") else "not installed (only the project's own tests need it)",
    }


def _sandbox(project: Project) -> str:
    return str(asyncio.run(Sandbox(project.root, level=project.settings.sandbox).probe()))
