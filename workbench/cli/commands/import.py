"""``workbench import``: runs of other tools, made into ordinary stored runs."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins
from rich.console import Console
from rich.text import Text

from workbench.cli.archive_options import cut_off, workers_of, working
from workbench.cli.batch_progress import ProgressLine
from workbench.cli.errors import Exit, Failure, as_failure
from workbench.cli.options import CascadeFile, as_json, plain, project_here, quiet_option
from workbench.cli.printer import Printer, talk, write_json
from workbench.importers.formats.table import BY_NAME
from workbench.language.clean import clean_line
from workbench.views.numbers import plural, seconds
from workbench.views.value import Cell
from workbench.workspace.archive.importing import ArchiveImport, ImportPart, ImportProgress, is_large, parts_of
from workbench.workspace.archive.remote import expanded, is_url
from workbench.workspace.imports import STDIN, ImportedRun, files_of, import_file, import_together
from workbench.workspace.input_file import CannotOpen

if TYPE_CHECKING:
    from workbench.workspace.archive.workers import Workers


class FileOrUrl(CascadeFile):
    """A path, or a URL as it is written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, str) and is_url(value) else Path(value)


_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_FORMATS = f"Instead of detecting it from the file: {', '.join(BY_NAME)}."


@click.command(short_help="Import runs, traces and message lists of other tools.")
@click.argument("files", type=FileOrUrl(), nargs=-1, required=True, metavar="FILE…")
@click.option("--format", "format_name", type=click.Choice(list(BY_NAME)), metavar="NAME", help=_FORMATS)
@click.option("--model", "model", metavar="NAME", help="Of calls whose file names none: for tokens and prices.")
@click.option("--together", is_flag=True, help="The files are calls of one run: import them as one.")
@working
@click.option("--anew", is_flag=True, help="Start over instead of continuing an earlier command.")
@quiet_option
@as_json
@plain
def command(
    files: tuple[Path | str, ...],
    format_name: str | None,
    model: str | None,
    together: bool,
    processes: int | None,
    dask: str | None,
    anew: bool,
    quiet: bool,
    json: bool,
    plain: bool,
) -> None:
    """Import message lists (OpenAI, Anthropic, LangChain, AutoGen, ShareGPT), recorded traffic (VCR, nock, HAR),
    SWE-agent, mini-swe-agent, OpenHands, tau-bench, ToolBench, ATIF, Inspect (.json and .eval), OpenTelemetry GenAI
    and OpenInference spans, LangFuse, LangSmith and Phoenix exports, sessions of Google's ADK, Temporal histories,
    Burr logs, promptfoo and BFCL results, threads of Zed, transcripts of Antigravity and events of Claude's managed
    agents. The format is detected from the file, which may be packed (gz, zst, bz2, xz, zip) and hold JSON, JSON lines
    or a YAML cassette. Each conversation becomes a run that can be shown, compared and swept, but not replayed. A
    folder stands for all its files, a checkpoint (export --as checkpoint) for one run; - is standard input. A URL
    (s3://…, https://…) is opened by fsspec.

    More than 50 files or 32 MB, and files of more than 4 MB with a conversation on each line, are read by processes or
    a cluster; after Ctrl+C or a crash the same command continues, and no run is there twice.

    \b
    Examples:
      workbench import run.traj
      workbench import logs/*.eval --json
      workbench import --together calls/
      workbench import 's3://bucket/logs/*.jsonl.gz' --processes 8
      curl -s https://logs.test/run.jsonl | workbench import -
      workbench import chat.json && workbench context
    """
    project = project_here()
    printer, runs, failures = Printer(plain), list[ImportedRun](), list[Failure]()
    urls = [one for one in files if isinstance(one, str)]
    asked = anew or processes is not None or dask is not None or bool(urls)
    if asked and (together or STDIN in files):
        refused = "--together and - are read by one process, and files alone"
        raise Failure(Exit.USAGE, refused, hint="leave --processes, --dask, --anew and URLs out")
    chosen = tuple(files_of(one for one in files if isinstance(one, Path)))
    if asked or (not together and is_large(chosen, format_name or "")):
        named = [one if isinstance(one, str) else str(one.absolute()) for one in files]

        def parts() -> Iterator[ImportPart]:
            return parts_of((*chosen, *(file for url in urls for file in expanded(url))), format_name or "")

        with ArchiveImport(project, named, parts, format_name or "", model or "", anew=anew) as work:
            _import_all(work, workers_of(processes, dask), Printer(plain), dask=dask, quiet=quiet, json=json)
        return
    for file in chosen:
        if file.is_fifo() and not quiet:
            talk(f"{project.shown(file)}: is a pipe: waits until a program has written into it", "dim")
    for file in chosen[:1] if together else chosen:
        try:
            with _ends_orderly(), _counted(file, plain) as told:
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


SHOWN = 20
"""Runs and notes that a large import prints."""


def _import_all(
    work: ArchiveImport, workers: Workers, printer: Printer, *, dask: str | None, quiet: bool, json: bool
) -> None:
    """Read what is open, and say how far it is and what came of it. Raises Failure."""
    progress = work.progress
    if not quiet and progress.earlier:
        there = plural(progress.runs, "run")
        talk(f"continues what began at {work.began}: {there} are there (--anew starts over)", "dim")
    with (
        cut_off(lambda: f"{plural(progress.runs, 'run')} imported" if progress.runs else ""),
        _ends_orderly(),
        ProgressLine(printer.plain, import_words, quiet=quiet) as line,
    ):
        work.run(workers, line, elsewhere=dask is not None)
    count, notes, faults = 0, 0, 0
    if json:
        sys.stdout.write("[")
    for part in work.results():
        for run in part.runs:
            count, notes = count + 1, notes + len(run.notes)
            if json:
                sys.stdout.write(f"{',' if count > 1 else ''}\n  {dumps(to_builtins(run))}")
            elif count <= SHOWN:
                _show(run, printer)
        if part.fault:
            faults += 1
            if faults <= SHOWN:
                talk(part.fault, "error")
    if json:
        sys.stdout.write("\n]\n")
    more = f"; {count - SHOWN:,} of them are not listed, {plural(notes, 'note')} in all" if count > SHOWN else ""
    sums = f"{plural(count, 'run')}, {plural(progress.calls, 'call')}, {plural(progress.messages, 'message')}"
    talk(sums + ("" if json else more), "ok")
    work.finish()
    if faults:
        told = f"{plural(faults, 'part')} of the files gave no run"
        raise Failure(Exit.USAGE, told, hint="the same command tries them again")


def import_words(progress: ImportProgress) -> str:
    """``12,400 runs · 45% · 310.2 runs/s · 51s left``."""
    parts = [plural(progress.runs, "run"), f"{progress.done / max(1, progress.total):.0%}"]
    took, new = time.monotonic() - progress.began, progress.runs - progress.earlier_runs
    if new and took:
        parts.append(f"{new / took:.1f} runs/s")
    if progress.remaining is not None and progress.done < progress.total:
        parts.append(f"{seconds(progress.remaining)} left")
    return " · ".join(parts)


@contextmanager
def _counted(file: Path, plain: bool) -> Iterator[Callable[[int], None]]:
    """In a terminal a line that says how many runs of a file there are by now; elsewhere nothing."""
    if Printer(plain, sys.stderr).plain:
        yield lambda count: None
        return
    name = clean_line(file.name)
    with Console(stderr=True, highlight=False).status(Text(f"reading {name}"), spinner="dots") as status:
        yield lambda count: status.update(Text(f"{plural(count, 'run')} of {name}"))


def _show(run: object, printer: Printer) -> None:
    assert isinstance(run, ImportedRun)
    counts = f"   {plural(run.calls, 'call')}, {plural(run.messages, 'message')}"
    printer.line(
        Cell(run.session_id, "accent"), Cell(f"   {run.format}", "head"), Cell(counts, "dim"), Cell(f"   {run.file}")
    )
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
