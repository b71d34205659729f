"""``workbench import``: runs of other tools, made into ordinary stored runs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from msgspec import to_builtins
from rich.console import Console
from rich.text import Text

from workbench.cli.errors import Failure, as_failure
from workbench.cli.options import CascadeFile, as_json, plain, project_here
from workbench.cli.printer import Printer, talk, write_json
from workbench.importers.formats.table import BY_NAME
from workbench.language.clean import clean_line
from workbench.views.numbers import plural
from workbench.views.value import Cell
from workbench.workspace.imports import ImportedRun, files_of, import_file, import_together
from workbench.workspace.input_file import CannotOpen

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_FORMATS = f"Instead of telling it from the file: {', '.join(BY_NAME)}."


@click.command(short_help="Make runs of other tools into stored runs.")
@click.argument("files", type=CascadeFile(), nargs=-1, required=True, metavar="FILE…")
@click.option("--format", "format_name", type=click.Choice(list(BY_NAME)), metavar="NAME", help=_FORMATS)
@click.option("--model", "model", metavar="NAME", help="Of calls whose file names none: for tokens and prices.")
@click.option("--together", is_flag=True, help="The files hold calls of one run; make them one.")
@as_json
@plain
def command(
    files: tuple[Path, ...], format_name: str | None, model: str | None, together: bool, json: bool, plain: bool
) -> None:
    """Import message lists (OpenAI, Anthropic, LangChain, AutoGen, ShareGPT), recorded traffic (VCR, nock, HAR),
    SWE-agent, mini-swe-agent, OpenHands, tau-bench, ToolBench, ATIF, Inspect (.json and .eval), OpenTelemetry GenAI
    and OpenInference spans, LangFuse, LangSmith and Phoenix exports, sessions of Google's ADK, Temporal histories,
    Burr logs and promptfoo results. The format is told from the file, which may be packed (gz, zst, bz2, xz, zip) and
    hold JSON, JSON lines or a YAML cassette. Each conversation becomes a run that can be shown, compared and swept,
    but not replayed. Of a folder every file in it is taken, a checkpoint's folder (export --as checkpoint) as one
    run; - is standard input.

    \b
    Examples:
      workbench import run.traj
      workbench import logs/*.eval --json
      workbench import --together calls/
      curl -s https://logs.test/run.jsonl | workbench import -
      workbench import chat.json && workbench context
    """
    project = project_here()
    printer, runs, failures = Printer(plain), list[ImportedRun](), list[Failure]()
    chosen = tuple(files_of(files))
    for file in chosen[:1] if together else chosen:
        try:
            with _ends_orderly(), _what_stays(), _counted(file, plain) as told:
                if together:
                    found = [import_together(project, chosen, format_name or "", model or "")]
                else:
                    found = import_file(project, file, format_name or "", model or "", told)
        except CannotOpen as fault:
            failure = as_failure(fault)
            assert failure is not None
            failures.append(failure)
            continue
        runs += found
        if not json:
            for run in found:
                _show(run, printer)
    if json:
        write_json([to_builtins(run) for run in runs])
    for failure in failures[:-1]:
        failure.show(as_json=json)
    if failures:
        raise failures[-1]


@contextmanager
def _counted(file: Path, plain: bool) -> Iterator[Callable[[int], None]]:
    """In a terminal a line that says how many runs of a file there are by now; elsewhere nothing."""
    if Printer(plain, sys.stderr).plain:
        yield lambda count: None
        return
    name = clean_line(file.name)
    with Console(stderr=True, highlight=False).status(Text(f"reading {name}"), spinner="dots") as status:
        yield lambda count: status.update(Text(f"{plural(count, 'run')} of {name}"))


@contextmanager
def _what_stays() -> Iterator[None]:
    """The runs of an import that failed which could not be removed, told before the fault is."""
    try:
        yield
    except BaseException as fault:
        for note in getattr(fault, "__notes__", ()):
            talk(note, "warning")
        raise


def _show(run: object, printer: Printer) -> None:
    assert isinstance(run, ImportedRun)
    counts = f"   {plural(run.calls, 'call')}, {plural(run.messages, 'message')}"
    printer.line(Cell(run.session_id, "accent"), Cell(f"   {run.format}", "head"), Cell(counts, "dim"))
    for note in run.notes:
        talk(f"{run.session_id}: {note}", "warning")


@contextmanager
def _ends_orderly() -> Iterator[None]:
    """A signal to end raises SystemExit with 128 + its number, as Ctrl-C raises KeyboardInterrupt; the next ones change
    nothing. For the main thread. A signal that is ignored, as by ``nohup``, stays so."""

    def end(number: int, _: FrameType | None) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {one: signal.getsignal(one) for one in _SIGNALS if signal.getsignal(one) is not signal.SIG_IGN}
    for one in before:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
