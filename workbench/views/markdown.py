"""Markdown as rows, through Rich: only for texts that are short enough to render while a key is pressed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from workbench.language.clean import clean
from workbench.views.cells import Span, crop

MEASURE = 100
"""Cells of a line of running text at most."""


def _token(name: str) -> Style:
    """A style that carries a token of the visual language through Rich."""
    return Style(meta={"token": name})


_STYLES = {
    **{f"h{level}": "title-focus" for level in range(1, 7)},
    **{"paragraph": "plain", "text": "plain", "em": "accent", "emph": "accent", "strong": "bold", "s": "faint"},
    **{"code": "code-string", "code_block": "code-string", "block_quote": "dim", "list": "plain"},
    **{"item": "plain", "item.bullet": "key", "item.number": "key", "hr": "rule", "h1.border": "rule"},
    **{"link": "link", "link_url": "dim", "table.border": "rule", "table.header": "bold"},
}
_THEME = Theme({f"markdown.{name}": _token(token) for name, token in _STYLES.items()})


class _Code(CodeBlock):
    """Code as it stands: colours of a language would be guesses."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(str(self.text).rstrip(), style=_token("code-string"), no_wrap=False)


class _Heading(Heading):
    """Where the text begins, as everything else here."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
    }


@lru_cache(maxsize=8)
def rendered(text: str, room: int) -> tuple[tuple[Span, ...], ...]:
    """The text as rows of at most ``room`` cells, or of a comfortable width. Links are words and addresses; nothing can
    be clicked.
    """
    room = min(room, MEASURE)
    console = Console(  # Told all that it would read from the environment: a page does not depend on the terminal.
        file=io.StringIO(),
        width=room,
        height=25,
        theme=_THEME,
        color_system=None,
        no_color=False,
        force_terminal=False,
        force_interactive=False,
        force_jupyter=False,
        legacy_windows=False,
    )
    markdown = _Markdown(clean(text), hyperlinks=False)
    lines = console.render_lines(markdown, console.options, pad=False)
    rows = [_row([(part.text, _of(part.style)) for part in line], room) for line in lines]
    while rows and not "".join(text for text, _ in rows[-1]).strip():
        rows.pop()
    return tuple(rows) or ((),)


def _of(style: Style | None) -> str:
    return str(style.meta.get("token", "plain")) if style is not None else "plain"


def _row(spans: Sequence[Span], room: int) -> tuple[Span, ...]:
    return crop([(text.rstrip("\n"), token) for text, token in spans], room)


class MarkdownBlock:
    """A text as a part of a document."""

    def __init__(self, text: str) -> None:
        self.text = text

    def height(self, room: int) -> int:
        return len(rendered(self.text, room))

    def row(self, part: int, room: int) -> tuple[Span, ...]:
        return rendered(self.text, room)[part]

    def texts(self, room: int) -> tuple[str, ...]:
        return tuple("".join(text for text, _ in row) for row in rendered(self.text, room))
