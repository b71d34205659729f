"""``workbench export``: a stored run in a format that other tools read."""

from __future__ import annotations

import json
from pathlib import Path

import click

from workbench.cli.comparing import write_file
from workbench.cli.options import find_run, project_here, session_argument
from workbench.cli.output import talk, write_json


@click.command(short_help="A stored run as messages or OpenTelemetry spans.")
@session_argument
@click.option("--as", "format_name", type=click.Choice(["messages", "otel"]), default="messages", show_default=True)
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
def command(session: str | None, format_name: str, output: str | None) -> None:
    """Export a run. 'messages': JSON lines, one conversation in OpenAI form for each phase visit, as its last call
    was sent it, and the answer. 'otel': one OTLP JSON document with GenAI spans of the run, its phases, calls and
    tools. Both can be imported again.

    \b
    Examples:
      workbench export log_triage-1f3a > messages.jsonl
      workbench export --as otel -o trace.json
    """
    from workbench.workspace.exporting import documents_of

    project = project_here()
    documents = documents_of(project, find_run(project, session), format_name)
    if output is None:
        for document in documents:
            write_json(document, lines=True)
        return
    write_file(Path(output), "".join(json.dumps(document, ensure_ascii=True) + "\n" for document in documents))
    talk(f"written: {output}")
