"""``workbench batches``: what stored batches came to."""

from __future__ import annotations

from pathlib import Path

import click

from workbench.cli.batch_files import against_option, output_option, rows_option, seed_option, variant_of, write_batch
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, plain, stored_here
from workbench.cli.printer import Printer, write_json, write_view
from workbench.store.batches import batch_names
from workbench.views.batch import BatchesView, BatchView, CellView
from workbench.workspace.batch.results import stored_matrix


@click.command(short_help="Show stored batches, as a table or a file.")
@click.argument("name", required=False)
@click.option("--row", metavar="ROW", help="Show only this row in full: its number or its name.")
@against_option
@rows_option
@seed_option
@output_option
@as_json
@plain
def command(
    name: str | None,
    row: str | None,
    against: str | None,
    rows: int,
    seed: int,
    outputs: tuple[Path, ...],
    json: bool,
    plain: bool,
) -> None:
    """List the batches of this workspace, or show one as 'workbench batch' left it. Nothing is run.

    \b
    Examples:
      workbench batches
      workbench batches triage-1f3a2b --output results.html
      workbench batches triage-1f3a2b --row 12
      workbench batches triage-1f3a2b --against 2
    """
    project = stored_here()
    if name is None:
        overview = BatchesView([stored_matrix(project.store, each) for each in batch_names(project.store.root)])
        write_view(overview, json=json, plain=plain)
        return
    matrix = stored_matrix(project.store, name)
    base = variant_of(matrix, against)
    view = BatchView(matrix, rows=rows, seed=seed, against=base)
    if row is None:
        write_view(view, json=json, plain=plain)
    else:
        numbered = {str(one.number): at for at, one in enumerate(matrix.plan.rows)}
        at = numbered.get(row, next((at for at, one in enumerate(matrix.plan.rows) if row == one.name), None))
        if at is None:
            raise Failure(Exit.USAGE, f"batch {name} has no row '{row}'", hint=f"it has {len(matrix.plan.rows):,} rows")
        cells = [CellView(matrix, at, variant) for variant in range(len(matrix.plan.variants))]
        if json:
            write_json([record for cell in cells for record in cell.json()])
        else:
            for cell in cells:
                Printer(plain).show(cell.blocks())
    for one in outputs:
        write_batch(one, matrix, seed, against=base)
