"""matplotlib for figures: loaded at the first one, one figure at a time, text never read as TeX."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType

STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10.0,
    # A dollar sign in a name is a dollar sign.
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
}
"""The settings that all pictures share."""
one_at_a_time = threading.Lock()
"""The library keeps its style in one place for the whole process."""


def library() -> ModuleType:
    """matplotlib with what draws into memory, of the extra ``charts``."""
    # It takes 560 ms to import, and is absent without its extra.
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure

    return matplotlib


def drawable() -> Callable[[str], str]:
    """Replaces characters without a glyph in the font by a box, so that matplotlib does not warn."""
    matplotlib = library()
    font = matplotlib.ft2font.FT2Font(matplotlib.font_manager.findfont("DejaVu Sans"))
    known = font.get_charmap()
    return lambda text: "".join(c if ord(c) in known else "\N{WHITE SQUARE}" for c in text)
