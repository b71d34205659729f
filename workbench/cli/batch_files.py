"""The results of a batch: the options that say what of them is shown, and the files that they are written to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli.comparison_options import write_file
from workbench.cli.errors import Exit, Failure, writing
from workbench.cli.printer import talk
from workbench.views.batch import SHOWN, BatchView, table_rows
from workbench.views.page import page
from workbench.workspace.batch.results import WRITTEN, write_results

if TYPE_CHECKING:
    from workbench.analysis.batch.matrix import Matrix

output_option = click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the results: .json, .jsonl, .csv, .parquet or .html.",
)
rows_option = click.option("--rows", type=click.IntRange(0), default=SHOWN, show_default=True, help="Rows to print.")
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Seed of the intervals.")


against_option = click.option(
    "--against",
    metavar="VARIANT",
    help="Compare the variants with this one: its label or its number. Default: the first.",
)


def variant_of(matrix: Matrix, text: str | None) -> int:
    """The place of the variant that ``--against`` names; the first one for None. Raises Failure."""
    labels = [one.label for one in matrix.plan.variants]
    if text is None:
        return 0
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and 1 <= int(text) <= len(labels):
        return int(text) - 1
    known = ", ".join(f"{number} ({label})" for number, label in enumerate(labels[:20], 1))
    raise Failure(Exit.USAGE, f"--against: no variant is '{text}'", hint=f"there are {known}")


def require_results_file(file: Path) -> None:
    """Raises Failure for a file name with an ending that results cannot be written to."""
    if file.suffix.lower() not in WRITTEN:
        raise Failure(Exit.USAGE, f"results go to a file that ends in {', '.join(WRITTEN)}", file=str(file))


def write_batch(file: Path, matrix: Matrix, seed: int = 0, stopped: str = "", *, against: int = 0) -> None:
    """Write all results as the name of the file ends, the variants compared with ``against``. Raises Failure."""
    require_results_file(file)
    view = BatchView(matrix, rows=None, seed=seed, stopped=stopped, against=against)
    if file.suffix.lower() == ".html":
        write_file(file, page(matrix.plan.name, f"batch over {matrix.plan.source}", view.blocks()))
    else:
        with writing(file):
            write_results(file, table_rows(matrix), view.json())
    talk(f"written: {file}")
