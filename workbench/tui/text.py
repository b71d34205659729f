"""The one way for text from outside into the app: cleaned, and never read as markup."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from workbench.language.clean import clean


def plain(text: str) -> Content:
    """Text of a file, a model, a tool or a person, ready for any widget, title, toast or tooltip."""
    return Content(clean(text))


def styled(pieces: Iterable[tuple[str, str]]) -> Content:
    """Pieces of such text, each in a style of our own."""
    return Content.assemble(*((clean(text), style) if style else clean(text) for text, style in pieces))
