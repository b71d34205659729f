"""``workbench check``: what is wrong with cascade files, for people, editors and CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli.errors import Exit
from workbench.cli.options import CascadeFile, as_json, plain, project_here
from workbench.cli.output import Cell, Printer, talk, write_json
from workbench.language.problem import Problem, Severity

if TYPE_CHECKING:
    from workbench.workspace.project import Project

_STYLE = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: "dim"}


@click.command(short_help="Find what is wrong with cascade files.")
@click.argument("files", type=CascadeFile(), nargs=-1, required=True, metavar="FILE...")
@as_json
@plain
@click.pass_context
def command(ctx: click.Context, files: tuple[Path, ...], json: bool, plain: bool) -> None:
    """Check cascade files (and files of offline replies), and print every problem as file:line:column: severity:
    message.

    Exit code 1 when there is an error, 2 when a file cannot be read; warnings and information do not count.

    \b
    Examples:
      workbench check cascades/*.yaml
      workbench check flow.yaml --json
    """
    from workbench.workspace.opened import CannotOpen

    project = project_here()
    problems: list[Problem] = []
    unreadable = 0
    for file in files:
        try:
            problems += _problems(project, file)
        except CannotOpen as fault:
            talk(str(fault), "bad")
            unreadable += 1
    if json:
        write_json([problem.to_json() for problem in problems])
    else:
        printer = Printer(plain)
        for problem in problems:
            printer.line(*_line(problem))
        if unreadable < len(files):
            talk(_summary(problems, len(files) - unreadable))
    errors = any(problem.severity is Severity.ERROR for problem in problems)
    ctx.exit(Exit.USAGE if unreadable else Exit.FAILED if errors else Exit.OK)


def _problems(project: Project, file: Path) -> tuple[Problem, ...]:
    """What is wrong with a cascade, or with a file of offline replies. Raises CannotOpen."""
    from workbench.models.replies import SUFFIX, read_replies
    from workbench.workspace.opened import read_bytes

    if file.name.endswith(SUFFIX):
        shown = project.shown(file)
        return read_replies(read_bytes(file, shown), shown)[1]
    return project.open(file).problems


def _line(problem: Problem) -> tuple[Cell, ...]:
    span = problem.span
    return (
        Cell(f"{problem.file}:{span.line}:{span.column}: "),
        Cell(str(problem.severity), _STYLE[problem.severity]),
        Cell(f": {problem.message}" + (f" ({problem.hint})" if problem.hint else "")),
        Cell(f" [{problem.code}]", "dim"),
    )


def _summary(problems: list[Problem], files: int) -> str:
    counts = {severity: sum(1 for p in problems if p.severity is severity) for severity in Severity}
    told = [_count(number, str(severity)) for severity, number in counts.items() if number]
    return f"{_count(files, 'file')}: {', '.join(told) or 'no problems'}"


def _count(number: int, noun: str) -> str:
    plural = noun if number == 1 or noun == "info" else noun + "s"
    return f"{number} {plural}"
