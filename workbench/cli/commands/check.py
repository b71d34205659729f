"""``workbench check``: the problems of cascade files, for people, editors and CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench import __version__
from workbench.cli.allowing import allow_option
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import CascadeFile, as_json, plain, project_here, report_format
from workbench.cli.printer import Printer, talk, write_json
from workbench.cli.reports import Case, github, junit, sarif, write_report
from workbench.language.lint.catalogue import CATALOGUE
from workbench.language.problem import Problem, Severity
from workbench.models.replies import SUFFIX
from workbench.tools.declared.check import check_tool
from workbench.views.numbers import plural
from workbench.views.problems import counted
from workbench.views.value import Cell
from workbench.workspace.home import TOOL, cascades_in, is_checked
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.offline_replies import check_replies
from workbench.workspace.opened_cascade import read_bytes

if TYPE_CHECKING:
    from workbench.workspace.project import Project

_STYLE = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "dim"}


@click.command(short_help="Check cascade files.")
@click.argument("files", type=CascadeFile(), nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option("--strict", is_flag=True, help="Warnings fail too: exit code 1.")
@allow_option
@click.option("--skip-others", is_flag=True, help="Skip named files that are not cascades, replies or tools.")
@report_format
@as_json
@plain
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[Path, ...],
    strict: bool,
    allow: tuple[str, ...],
    skip_others: bool,
    form: str,
    json: bool,
    plain: bool,
) -> None:
    """Check cascades, pipelines in DOT (and files of offline replies and .tool.json files), and print every problem as
    file:line:column: severity: message. FOLDER stands for all of them in it and below.

    Exit code 1 when there is an error (with --strict also for a warning), 2 when a file cannot be read.

    \b
    Examples:
      workbench check flow.yaml
      workbench check cascades --strict
      workbench check flow.yaml --json
      workbench check build.dot --allow dead_end
      workbench check cascades --format sarif > workbench.sarif
    """
    project = project_here()
    problems: list[Problem] = []
    by_file: dict[str, list[Problem]] = {}
    unreadable = 0
    json = json or form == "json"
    for file in files:
        if skip_others and file.is_file() and not is_checked(file):
            continue
        try:
            chosen = _named(file)
        except CannotOpen as fault:
            _unreadable(fault, json)
            unreadable += 1
            continue
        for each in chosen:
            if (shown := project.shown(each)) in by_file:  # It was named, and lies in a folder that was named.
                continue
            try:
                found = list(_problems(project, each, allow))
                by_file[shown] = found
                problems += found
            except CannotOpen as fault:
                _unreadable(fault, json)
                unreadable += 1
    failing = frozenset({Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR})
    if json:
        write_json([problem.to_json() for problem in problems])
    elif form != "text":
        write_report(_report(form, problems, by_file, failing))
    else:
        printer = Printer(plain)
        for problem in problems:
            printer.line(*_line(problem))
    if not json and by_file:
        talk(_summary(problems, len(by_file)))
    failed = any(problem.severity in failing for problem in problems)
    ctx.exit(Exit.USAGE if unreadable else Exit.FAILED if failed else Exit.OK)


def _report(form: str, problems: list[Problem], by_file: dict[str, list[Problem]], failing: frozenset[Severity]) -> str:
    """All problems in the format of another program."""
    if form == "github":
        return "\n".join(github(problems))
    if form == "sarif":
        return sarif(problems, {lint.code: lint.title for lint in CATALOGUE.values()}, __version__)
    cases = (
        Case(
            file,
            file,
            tuple(str(problem) for problem in found if problem.severity in failing),
            tuple(str(problem) for problem in found if problem.severity not in failing),
        )
        for file, found in by_file.items()
    )
    return junit("workbench check", cases)


def _named(path: Path) -> list[Path]:
    """The file itself, or the cascades of a folder. Raises CannotOpen if there are none."""
    if not path.is_dir():
        return [path]
    try:
        found = cascades_in(path)
    except OSError as fault:
        raise CannotOpen(f"{path}: error: cannot be read: {fault.strerror}") from fault
    if not found:
        raise CannotOpen(f"{path}: error: no cascade in this folder (cascades have the key cascade_id)")
    return found


def _unreadable(fault: CannotOpen, json: bool) -> None:
    Failure(Exit.USAGE, str(fault), complete=True).show(as_json=json)


def _problems(project: Project, file: Path, allow: tuple[str, ...]) -> tuple[Problem, ...]:
    """The problems of a cascade, a file of offline replies, or the definition of a tool. Raises CannotOpen."""
    if file.name.endswith(SUFFIX):
        return check_replies(project, file)
    if file.name.endswith(TOOL):
        shown, known = project.shown(file), project.environment.lint_environment(file).tools
        return check_tool(read_bytes(file, shown), shown, tuple(known or ()))
    return project.open(file, allow).problems


def _line(problem: Problem) -> tuple[Cell, ...]:
    span = problem.span
    return (
        Cell(f"{problem.file}:{span.line}:{span.column}: "),
        Cell(str(problem.severity), _STYLE[problem.severity]),
        Cell(f": {problem.message}" + (f" ({problem.hint})" if problem.hint else "")),
        Cell(f" [{problem.code}]", "dim"),
    )


def _summary(problems: list[Problem], files: int) -> str:
    told = ", ".join(words for _, words in counted(problems))
    return f"{plural(files, 'file')}: {told or 'no problems'}"
