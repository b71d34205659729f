"""The option ``--allow`` of ``check`` and ``run``. Apart from the other options: it loads the checks of pipelines."""

from __future__ import annotations

import click

from workbench.language.lint.pipeline import LOWERED

allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="CODE",
    type=click.Choice(LOWERED),
    help=f"Of pipelines: let an error pass as a warning ({', '.join(LOWERED)}). May be repeated.",
)
