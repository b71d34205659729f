"""The option ``--allow`` of ``check`` and ``run``. Apart from the other options: it loads the checks of pipelines."""

from __future__ import annotations

import click

from workbench.language.lint.pipeline import LOWERED

allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="CODE",
    type=click.Choice(LOWERED),
    help=f"Pipelines only: treat an error as a warning ({', '.join(LOWERED)}). Repeatable.",
)
