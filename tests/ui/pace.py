"""What makes apps under test quick, and nothing else of them: rests are short, a style sheet is parsed once, and what
nobody sees is not drawn."""

from __future__ import annotations

from functools import cache
from typing import Any

from textual import _wait
from textual._compositor import Compositor
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet


@cache
def quicken() -> None:
    """For the rest of this process.

    A pilot takes an app to rest when a twentieth of a look at it is not used: looks of 4 ms instead of 20 ms.
    The rules of a sheet follow from its text and its variables, and an app only reads them: each app has those that the
    first one parsed.
    A headless app has no terminal for its frames. Drawing them took nearly half of the time of a test; now it is drawn
    when a test looks at it, and once at the end.
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

    draw = Compositor.render_update

    def draw_whole(compositor: Compositor, full: bool = False, *arguments: Any, **named: Any) -> Any:
        if full:  # For a picture.
            return draw(compositor, full, *arguments, **named)
        compositor._dirty_regions.clear()
        return None

    Compositor.render_update = draw_whole  # type: ignore[assignment, method-assign]
