"""Goal 10: reading a file of 100 phases with line numbers, against ruamel's round-trip loader."""

from __future__ import annotations

from collections.abc import Iterator

from bench.measure import Line, interleaved, seconds
from bench.start import cascade


def run(rounds: int = 7) -> Iterator[Line]:
    from ruamel.yaml import YAML

    from workbench.language.load import load

    text = cascade(100)
    assert load(text).cascade is not None
    ours, theirs = interleaved(
        rounds, lambda: seconds(lambda: load(text)), lambda: seconds(lambda: YAML(typ="rt").load(text))
    )
    yield Line("10", "load 100 phases with line numbers, ruamel round-trip", ours * 1e3, theirs * 1e3, "ms", 0.08)
