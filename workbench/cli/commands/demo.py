"""``workbench demo``: a tour on a copy of the examples that you may change, with scripted replies."""

from __future__ import annotations

import os
from pathlib import Path

import click

from workbench.cli.app import Opening, start
from workbench.cli.errors import Exit, Failure
from workbench.cli.printer import talk
from workbench.resources import folder
from workbench.terminal import why_not
from workbench.workspace.folders import Folders
from workbench.workspace.home import TOUR, copy_examples, example_files, keep_demo
from workbench.workspace.input_file import default_input
from workbench.workspace.project import Project


@click.command(short_help="Open the tour: a cascade with offline replies, no key, no network.")
@click.argument("name", default=TOUR, metavar="[NAME]")
@click.option("--folder", "-d", type=click.Path(path_type=Path), help="Folder for the copy; a new one by default.")
@click.option("--headless", is_flag=True, help="Run it without the app, as 'run' does.")
@click.pass_context
def command(ctx: click.Context, name: str, folder: Path | None, headless: bool) -> None:
    """Copy the examples into a folder of your own and open one of them in the app. Replies are scripted and tools run
    for real, so no key and no network are needed. Without a terminal the tour runs as 'workbench run' does.

    \b
    Examples:
      workbench demo
      workbench demo debug_agent
      workbench demo csv_questions --folder ~/tour --headless
    """
    file = find_example(name)
    target = copy_examples(folder)
    keep_demo(Folders.of(os.environ), target)
    talk(f"the examples are in {target}")
    ctx.exit(_run(target, file, headless))


def find_example(name: str) -> str:
    """The file name of an example. Raises Failure, which lists them all."""
    files = {path.stem: path.name for path in example_files(folder("cascades"))}
    if name not in files:
        raise Failure(Exit.USAGE, f"no example '{name}'", hint=f"there are {', '.join(files)}")
    return files[name]


def _run(target: Path, file: str, headless: bool) -> int:
    path = target / file
    if headless or why_not(os.environ) is not None:
        from workbench.cli.running import RunOptions, run_file  # the engine: 1 s, before the first frame

        if not headless:
            talk("no terminal for the app, so the tour runs without it", "warning")
        code = run_file(Project.at(target), path, None, RunOptions(model="offline"))
        talk(f"next: cd {target} && workbench context", "dim")
        return code

    given = default_input(path)
    code = start(Opening(path, target, given, model="offline"), given, "workbench demo --headless")
    talk(f"everything stays in {target}: cd there and 'workbench open {file}' continues", "dim")
    return code
