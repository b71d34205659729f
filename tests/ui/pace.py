"""What makes apps under test quick, and nothing else of them: rests are short, and a style sheet is parsed once."""

from __future__ import annotations

from functools import cache
from typing import Any

from textual import _wait
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet


@cache
def quicken() -> None:
    """For the rest of this process.

    A pilot takes an app to rest when a twentieth of a look at it is not used: looks of 4 ms instead of 20 ms.
    The rules of a sheet follow from its text and its variables, and an app only reads them: each app has those that the
    first one parsed.
    """
    _wait.SLEEP_GRANULARITY = 0.004
    _wait.SLEEP_IDLE = 0.0002
    parse = Stylesheet._parse_rules
    known: dict[tuple[object, ...], list[RuleSet]] = {}

    def parse_once(sheet: Stylesheet, *arguments: Any, **named: Any) -> list[RuleSet]:
        key = (arguments, frozenset(named.items()), frozenset(sheet._variables.items()))
        if key not in known:
            known[key] = parse(sheet, *arguments, **named)
        return known[key]

    Stylesheet._parse_rules = parse_once  # type: ignore[assignment, method-assign]
