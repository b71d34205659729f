"""``workbench sql``: queries over all stored runs."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import click

from workbench.cli.comparison_options import write_file
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import stored_here
from workbench.cli.printer import Printer, talk
from workbench.language.clean import clean
from workbench.store.index.database import DatabaseError
from workbench.store.index.table import as_csv, as_json, write_parquet
from workbench.store.sqltext import BadSql
from workbench.views.result import AnswerView
from workbench.workspace.folders import Folders
from workbench.workspace.sql_queries import SavedQueries, index_notes, open_index, query_fault

FORMATS = ("table", "json", "csv", "parquet")
SHOWN = 1000
"""Rows that are printed where no limit is given."""


class _Query(click.Command):
    """A command whose argument may begin with a comment of SQL, which is not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        comments = ("-- ", "--\n", "--\t")
        return super().parse_args(ctx, [f" {each}" if each.startswith(comments) else each for each in args])


@click.command(cls=_Query, short_help="Query all stored runs in SQL.")
@click.argument("query", metavar="[SELECT...]", required=False)
@click.option("--saved", "-s", metavar="NAME", help="Run the query that was saved under this name in the app.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", help="Form of the result.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("--limit", "-n", type=click.IntRange(1), help=f"At most N rows. Default: {SHOWN}; all in a file.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write to this file; Parquet always needs one.")
def command(query: str | None, saved: str | None, form: str, limit: int | None, output: Path | None) -> None:
    """Run one SELECT (also DESCRIBE, SHOW, EXPLAIN) over all_data, all_evals, context_cards and the other tables.

    The dialect is ClickHouse's. Runs that are not indexed yet are indexed first. Where the settings name a team's
    server, it is asked, with the runs of all.

    \b
    Examples:
      workbench sql "SELECT phase_name, count() FROM all_data GROUP BY phase_name"
      workbench sql "DESCRIBE all_data" --format json
      workbench sql "SELECT * FROM all_data" --format parquet -o runs.parquet
      workbench sql --saved "cost per day" --json
    """
    if form == "parquet" and output is None:
        raise Failure(Exit.USAGE, "Parquet goes to a file", hint="--output FILE")
    limit = limit if limit or output else SHOWN
    project = stored_here()
    query = _query(query, saved, project.folders)
    with open_index(project.store) as index:
        index.catch_up()
        for note in (*project.notes, *index_notes(index)):
            talk(note, "warning")
        try:
            if form == "parquet":
                assert output is not None
                rows = write_parquet(index.arrow(query, limit), output)
                talk(f"{rows:,} rows in {output}")
                return
            table = index.sql(query, limit)
        except (BadSql, DatabaseError) as error:
            fault = query_fault(index, query, error)
            file = "query" if fault.line else ""
            raise Failure(Exit.USAGE, fault.message, file=file, line=fault.line, column=fault.column) from error
    if form == "table":
        written = StringIO()
        Printer(stream=None if output is None else written).show(AnswerView(table).blocks())
        if output is not None:
            write_file(output, written.getvalue())
        return
    text = {"json": as_json, "csv": as_csv}[form](table).rstrip("\n") + "\n"
    if table.cut:
        talk(f"cut at {limit:,} rows (--limit)", "warning")
    if output is None:
        sys.stdout.write(clean(text) if sys.stdout.isatty() else text)
    else:
        write_file(output, text.encode("utf-8", "backslashreplace").decode())


def _query(written: str | None, name: str | None, folders: Folders) -> str:
    """The query that is meant. Raises Failure."""
    if name is None:
        if not written:
            raise Failure(Exit.USAGE, "no query given", hint='workbench sql "SELECT …", or --saved NAME')
        return written
    if written:
        raise Failure(Exit.USAGE, "give a query or --saved NAME, not both")
    known = SavedQueries.of(folders).all()
    if name not in known:
        hint = f"saved are: {', '.join(known)}" if known else "ctrl+s in the SQL console of the app saves one"
        raise Failure(Exit.USAGE, f"there is no saved query named {name}", hint=hint)
    return known[name]
