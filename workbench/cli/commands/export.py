"""``workbench export``: a stored run in a format that other tools read."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from workbench.cli.errors import Exit, Failure, reading, writing
from workbench.cli.options import project_here, read_run, session_argument
from workbench.cli.printer import talk
from workbench.exporters.translated import CannotTranslate, Translation
from workbench.files import write_whole
from workbench.language.clean import clean
from workbench.language.load import load
from workbench.language.read.endings import FILE_ENDINGS
from workbench.workspace.exporting import (
    DEFINITIONS,
    FORMATS,
    TEXTS,
    definition_of,
    export_file,
    text_of,
    translated,
)


@click.command(short_help="Export a run as messages, spans, a page, a checkpoint or Parquet.")
@session_argument
@click.option("--as", "format_name", type=click.Choice(FORMATS), default="messages", show_default=True)
@click.option("--output", "-o", metavar="FILE", help="Write there instead of stdout; a checkpoint is a folder.")
@click.option("--details", is_flag=True, help="With messages: session, place, model, and what providers added.")
def command(session: str | None, format_name: str, output: str | None, details: bool) -> None:
    """Export a run, or with --as cascade and --as dot also a file.

    \b
    messages    JSON lines, one conversation in OpenAI form for each phase
                visit, as its last call was sent it, and the answer;
                no other keys, as fine-tuning wants it, unless --details;
                can be imported again
    otel        one OTLP JSON document with GenAI spans of the run, its
                phases, calls and tools; can be imported again
    html        one page that needs nothing else: the tree, every call's
                context with reasons, tokens, costs, images
    cascade     the definition as it ran; of a pipeline or a task
                decomposition a cascade that does the same, and on
                stderr what is lost
    dot         a cascade as a pipeline, and on stderr what is lost
    checkpoint  a folder of files for engines of phase graphs: where the
                run stands, prompts, responses, states
    parquet     one table with all rows of the run, as `workbench sql` sees them

    \b
    Examples:
      workbench export log_triage-1f3a > messages.jsonl
      workbench export --as otel -o trace.json
      workbench export --as html -o run.html
      workbench export review.dot --as cascade -o review.yaml
    """
    if details and format_name != "messages":
        raise Failure(Exit.USAGE, f"--details is for messages, not for {format_name}")
    if format_name in DEFINITIONS and session and session.endswith(FILE_ENDINGS):
        _definition(_translated_file(session, format_name), output)
        return
    project = project_here()
    state = read_run(project, session, defined=format_name in DEFINITIONS)
    run_id = state.run_id
    if format_name in DEFINITIONS:
        try:
            _definition(definition_of(project, run_id, format_name), output)
        except CannotTranslate as fault:
            raise Failure(Exit.FAILED, f"{state.session_id or run_id} cannot be {format_name}: {fault}") from fault
        return
    if not state.visits and format_name == "messages":
        raise Failure(Exit.FAILED, f"no phase of {state.session_id or run_id} ran: there are no messages")
    if output is None and format_name not in TEXTS:
        what = "a folder" if format_name == "checkpoint" else "a file"
        raise Failure(Exit.USAGE, f"{format_name} goes to {what}", hint=f"--output {what.split()[1].upper()}")
    if output is None:
        text = text_of(project, run_id, format_name, details=details)
        click.echo(clean(text) if sys.stdout.isatty() else text, nl=False)
        return
    with writing(output):
        export_file(project, run_id, format_name, Path(output), details=details)
    talk(f"written: {output}")


def _translated_file(file: str, format_name: str) -> Translation:
    """A file in the other language. Raises Failure."""
    try:
        with reading(file):
            return translated(load(Path(file).read_bytes(), file), format_name)
    except CannotTranslate as fault:
        raise Failure(Exit.FAILED, f"cannot be {format_name}: {fault}", file=file) from fault


def _definition(made: Translation, output: str | None) -> None:
    """Print or write a definition, and tell what is lost."""
    for one in made.lost:
        talk(f"lost: {one}", "warning")
    if output is None:
        click.echo(clean(made.text) if sys.stdout.isatty() else made.text, nl=False)
        return
    with writing(output):
        write_whole(Path(output), made.text.encode())
    talk(f"written: {output}")
