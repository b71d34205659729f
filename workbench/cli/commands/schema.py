"""``workbench schema``: the JSON Schema of the language, so that an editor completes and checks cascade files."""

from __future__ import annotations

import click

from workbench.cli.printer import write_json
from workbench.language.decomposition.schema import json_schema as schema_of_decompositions
from workbench.language.model.schema import json_schema
from workbench.models.replies import json_schema as schema_of_replies


@click.command(short_help="Print the JSON Schema of the language, for editors.")
@click.argument("kind", type=click.Choice(("cascade", "decomposition", "replies")), default="cascade")
def command(kind: str) -> None:
    """Print the JSON Schema of cascade files, of task decompositions, or of files of offline replies (draft 2020-12).

    \b
    Example, for editors with yaml-language-server:
      workbench schema > cascade.schema.json
      and as the first line of a cascade:
      # yaml-language-server: $schema=cascade.schema.json
    """
    made = {"cascade": json_schema, "decomposition": schema_of_decompositions, "replies": schema_of_replies}
    write_json(made[kind]())
