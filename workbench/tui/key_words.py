"""Sentences that name keys: they say the keys as they are bound now, the user's own among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from workbench.tui.key_names import display

if TYPE_CHECKING:
    from workbench.tui.key import Key

_NAMED = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)\}")
_bound: dict[str, str] = {}
"""What each command's key is called; filled when it is first needed, and by ``take_keys``."""


def take_keys(table: Iterable[Key]) -> None:
    """The keys that sentences name from now on: those of the app that runs in this process."""
    for key in table:
        _bound[key.id] = display(key.keys)


def told(sentence: str, **values: str) -> str:
    """``{run.start} makes one`` with the key of that command, and ``{name}`` with a value, which is taken as it is.

    Raises KeyError for what is neither.
    """
    if not _bound:
        from workbench.tui.keys import KEYS

        take_keys(KEYS)
    known: Mapping[str, str] = {**_bound, **values} if values else _bound
    return _NAMED.sub(lambda found: known[found[1]], sentence)
