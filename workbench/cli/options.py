"""Options that several commands share, so that they read and behave the same everywhere."""

from __future__ import annotations

import click

as_json = click.option("--json", is_flag=True, help="JSON on stdout instead of text.")
plain = click.option("--plain", is_flag=True, help="No colours and signs, nothing cut; as without a terminal.")
