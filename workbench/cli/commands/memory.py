"""``workbench memory``: what the memory banks of this workspace hold."""

from __future__ import annotations

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, plain, stored_here
from workbench.cli.printer import Printer, talk, write_json
from workbench.store.banks import Banks
from workbench.views.workspace import BanksView, MemoriesView
from workbench.workspace.retrieval import heading


@click.command(short_help="Show the memory banks that runs keep.")
@click.argument("bank", required=False)
@click.option(
    "--search", "-s", metavar="WORDS", help="Messages closest to these words, best first; default: the newest."
)
@click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="At most N messages.")
@as_json
@plain
def command(bank: str | None, search: str | None, limit: int, json: bool, plain: bool) -> None:
    """List the memory banks of this workspace, or the messages of one.

    A cascade with `memory: NAME` adds the messages of its finished visits to the bank NAME when a run ends, and its
    phases may list NAME as a tool that searches the bank.

    \b
    Examples:
      workbench memory
      workbench memory answered
      workbench memory answered --search "refund broken lamp" --json
    """
    banks = Banks(stored_here().store.root)
    if bank is None:
        if search is not None:
            raise Failure(Exit.USAGE, "--search needs a bank", hint=f"there are {_named(banks)}")
        _list(banks, json, plain)
        return
    if bank not in banks.names():
        raise Failure(Exit.USAGE, f"there is no memory bank '{bank}'", hint=f"there are {_named(banks)}")
    opened = banks.bank(bank)
    found = [one.memory for one in opened.search(search, limit)[0]] if search else opened.memories()[::-1][:limit]
    if opened.damaged:
        talk(f"{opened.damaged:,} damaged lines in {opened.path} were skipped", "warning")
    view = MemoriesView([(heading(memory), memory) for memory in found])
    if json:
        write_json(view.json())
        return
    if not found:
        talk(f"nothing in '{bank}' shares a word with '{search}'")
    Printer(plain).show(view.blocks())


def _named(banks: Banks) -> str:
    return ", ".join(banks.names()) or "none: no run with 'memory' has ended here"


def _list(banks: Banks, json: bool, plain: bool) -> None:
    view = BanksView([(bank, bank.memories()) for bank in map(banks.bank, banks.names())])
    if json:
        write_json(view.json())
        return
    if not view.banks:
        talk(f"no memory banks in {banks.folder}: a cascade with 'memory: NAME' fills one when a run ends")
        return
    Printer(plain).show(view.blocks())
