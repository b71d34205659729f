"""``workbench memory``: what the memory banks of this workspace hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.layout import Column
from workbench.cli.options import as_json, plain, project_here
from workbench.cli.output import Cell, Printer, talk, write_json

if TYPE_CHECKING:
    from workbench.engine.retrieval import Memory
    from workbench.store.banks import Bank, Banks

COLUMNS = (Column("bank", flexible=True), Column("messages", right=True), Column("newest", leaves=1))


@click.command(short_help="Look into the memory banks that runs keep.")
@click.argument("bank", required=False)
@click.option("--search", "-s", metavar="WORDS", help="What shares most with these words, best first; else the newest.")
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
    from workbench.store.banks import Banks

    banks = Banks(project_here().store.root)
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
        talk(f"{opened.damaged:,} damaged lines in {opened.path} were passed over", "warn")
    if json:
        write_json([asdict(memory) for memory in found])
        return
    if not found:
        talk(f"nothing in '{bank}' shares a word with '{search}'")
    _print(found, Printer(plain))


def _named(banks: Banks) -> str:
    return ", ".join(banks.names()) or "none: no run with 'memory' has ended here"


def _list(banks: Banks, json: bool, plain: bool) -> None:
    opened = [(bank, bank.memories()) for bank in map(banks.bank, banks.names())]
    if json:
        write_json([{"bank": b.name, "messages": len(m), "newest": _newest(m), "file": str(b.path)} for b, m in opened])
        return
    if not opened:
        talk(f"no memory banks in {banks.folder}: a cascade with 'memory: NAME' fills one when a run ends")
        return
    Printer(plain).table(COLUMNS, [_row(bank, memories) for bank, memories in opened])


def _row(bank: Bank, memories: list[Memory]) -> list[str | Cell]:
    from workbench.cli.views.run import local_time

    return [Cell(bank.name, "head"), f"{len(memories):,}", local_time(_newest(memories))]


def _newest(memories: list[Memory]) -> str:
    return max((memory.at for memory in memories), default="")


def _print(memories: list[Memory], printer: Printer) -> None:
    from workbench.workspace.retrieval import heading

    for memory in memories:
        printer.line(Cell(heading(memory), "head"))
        printer.block(memory.text.strip(), indent="  ")
        printer.line("")
