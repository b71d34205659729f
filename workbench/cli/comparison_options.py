"""Options shared by ``context``, ``diff`` and ``sweep``: stored runs, strategies and prices as a user names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from workbench.analysis.what_if import what_if
from workbench.cli.errors import Exit, Failure, reading, writing
from workbench.cli.options import together
from workbench.cli.printer import talk
from workbench.engine.journal.parts import CallState
from workbench.extras import missing
from workbench.files import read_given, write_whole
from workbench.models.encodings import encodings
from workbench.models.prices import PriceTable
from workbench.models.repricing import PricesError, read_prices
from workbench.workspace.comparing import definition_of, pricing_of, strategy_of

if TYPE_CHECKING:
    from workbench.analysis.sweep import Pricing
    from workbench.analysis.what_if import Reassembled
    from workbench.context.cache import Prices
    from workbench.context.place import Place
    from workbench.engine.journal.state import RunState
    from workbench.views.value import Form
    from workbench.workspace.stored import StoredWorkspace


def prices_of(
    project: StoredWorkspace, provider: str | None, prices_file: str | None, cache_ttl: float | None = None
) -> Prices:
    """The prices to predict with. Raises Failure for a file or a provider that cannot be used."""
    return pricings_of(own_prices(project, prices_file), (provider,), cache_ttl)[0].prices


def own_prices(project: StoredWorkspace, prices_file: str | None) -> dict[str, Mapping[str, float]]:
    """The user's own prices by model: of the settings, and of a file before these. Raises Failure for a file that
    cannot be used."""
    own = dict(project.settings.prices)
    if prices_file is not None:
        try:
            with reading(prices_file):
                own |= read_prices(read_given(Path(prices_file)))
        except PricesError as fault:
            raise Failure(Exit.USAGE, str(fault), file=prices_file) from None
    return own


def pricings_of(
    own: Mapping[str, Mapping[str, float]], providers: Sequence[str | None], cache_ttl: float | None = None
) -> list[Pricing]:
    """The prices to predict with, provider by provider. ``own``: those of the user. ``cache_ttl``: seconds that a cache
    keeps what was sent. Raises PricesError for a provider that cannot be used."""
    table = PriceTable(own)
    return [pricing_of(table, provider, cache_ttl) for provider in dict.fromkeys(providers)]


plotting = together(
    click.option("--plot", is_flag=True, help="Draw the plot in the terminal, too."),
    click.option("--svg", metavar="FILE", help="Write the plot to an SVG file."),
    click.option("--png", metavar="FILE", help="Write the plot to a PNG file."),
)
"""The options that draw: in the terminal, and into files."""


def write_pictures(picture: Callable[[Form], bytes], svg: str | None, png: str | None) -> None:
    """Draw a plot into the files that are named. Raises Failure."""
    files: list[tuple[Form, str | None]] = [("svg", svg), ("png", png)]
    for form, file in files:
        if file is not None:
            if absent := missing("charts"):
                raise Failure(Exit.USAGE, absent)
            write_bytes(Path(file), picture(form))
            talk(f"written: {file}")


def write_file(path: Path, text: str) -> None:
    """Write a result to a file. Raises Failure."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a result to a file. Raises Failure."""
    with writing(path):
        write_whole(path, data)


def calls_under(state: RunState, spec: str, prices: Prices) -> dict[Place, CallState]:
    """The calls of a run, assembled anew under another strategy and with these prices: none was made. Raises
    SpecError."""
    definition = definition_of(state)
    again = what_if(state, definition, strategy_of(definition, spec), encodings(), prices)
    return {found.call.place: _as_call(found) for found in again}


def _as_call(found: Reassembled) -> CallState:
    """A call that was never made: no answer, no bill."""
    assembly = found.assembly
    fresh = CallState(found.call.place, found.call.seq)
    return replace(
        fresh,
        model=found.call.model,
        parameters=assembly.request.parameters,
        strategy=assembly.strategy,
        digest=assembly.request.digest,
        entries=assembly.entries,
        tokens_full=assembly.tokens_full,
        tokens_sent=assembly.tokens_sent,
        tools_tokens=assembly.tools_tokens,
        overhead_tokens=assembly.overhead_tokens,
        grade=found.prediction.grade,
        scale=found.prediction.scale,
        forecast=found.prediction.forecast,
        problems=assembly.problems + found.prediction.problems,
        notes=assembly.notes,
    )
