"""Markdown as rows, through Rich: only for texts that are short enough to render while a key is pressed.

What a model wrote is shown whole or not typeset: HTML, images, entities and definitions of links stay as they are
written, as Rich would leave them out. A unified diff is code, with or without a fence: its lines are no points of a
list."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.style import Style
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from workbench.language.clean import clean
from workbench.views.cells import Span, crop
from workbench.views.text import wrapped

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
    """Code as it stands, below what is said of it: colours of a language would be guesses."""

    info = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Code:
        made = cls("text", markdown.code_theme)
        made.info = token.info.strip()
        return made

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.info:
            yield Text(self.info, style=_token("faint"))
        lines = str(self.text).rstrip().split("\n")
        told = diff_token if self.info in ("diff", "patch") or _is_diff(lines) else lambda _: "code-string"
        yield Text("\n").join(Text(line, style=_token(told(line)), no_wrap=False) for line in lines)


def diff_token(line: str) -> str:
    """The token of a line of a unified diff. An empty line is one of code, and no distance between paragraphs."""
    if line.startswith(("--- ", "+++ ", "diff ", "index ")):
        return "dim"
    return {"-": "gone", "+": "added", "@": "accent", "": "code-string"}.get(line[:1], "plain")


def _is_diff(lines: Sequence[str]) -> bool:
    names = [at for at, line in enumerate(lines[:4]) if line.startswith("--- ")]
    return bool(names) and len(lines) > names[0] + 1 and lines[names[0] + 1].startswith("+++ ")


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def _fenced(text: str) -> str:
    """The text with each unified diff that has no fence in one."""
    lines, made, fence, at = text.split("\n"), list[str](), "", 0
    while at < len(lines):
        mark = _FENCE.match(lines[at])
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        end = at if fence or mark is not None else _end_of_diff(lines, at)
        if end > at:
            around = "`" * max((2, *(len(ticks) for line in lines[at:end] for ticks in re.findall("`+", line)))) + "`"
            made += [around, *lines[at:end], around]
        else:
            made.append(lines[at])
        at = max(end, at + 1)
    return "\n".join(made)


def _end_of_diff(lines: Sequence[str], at: int) -> int:
    """Returns the line after a unified diff that begins at this line; the line itself if none does. Models write empty
    lines without the blank of a line that stays: one is of the diff if the next is."""
    first = at
    while first - at < 4 and lines[first : first + 1] and lines[first].startswith(("diff --git ", "index ")):
        first += 1
    if not _is_diff(lines[first : first + 2]):
        return at
    end = at = first + 2
    while at < len(lines) and lines[at][:1] in ("", " ", "+", "-", "@", "\\"):
        at += 1
        end = at if lines[at - 1].strip() else end
    return end


class _Heading(Heading):
    """Where the text begins, as everything else here."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Table(TableElement):
    """A word that is longer than its column goes on in the next line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for made in super().__rich_console__(console, options):
            for column in made.columns if isinstance(made, Table) else ():
                column.overflow = "fold"
            yield made


_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["strikethrough", "table"])
    .disable(["reference", "entity", "image"])
)


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _Table,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = _PARSER.parse(_fenced(text))
        for child in (child for token in self.parsed for child in token.children or ()):
            if child.type == "softbreak":  # Models mean the lines that they write: none is joined with the next.
                child.type = "hardbreak"


@lru_cache(maxsize=32)
def rendered(text: str, room: int) -> tuple[tuple[Span, ...], ...]:
    """The text as rows of at most ``room`` cells, or of a comfortable width. Links are words and addresses; nothing can
    be clicked. A text of which something would not show (deeper than quotations may be, in more cells than a table has
    columns, the title of a link) is in rows as it is written.
    """
    room, text = min(room, MEASURE), clean(text)
    rows = _typeset(text, room)
    if _letters(_NUMBERED.sub("", text)) - _letters("".join(part for row in rows for part, _ in row)):
        lines = text.expandtabs(4).split("\n")
        rows = [row for line in lines for row in wrapped(((line, "plain"),), room)]
    shown = [row for before, row in zip([(), *rows], rows, strict=False) if not (_is_blank(before) and _is_gap(row))]
    while shown and _is_blank(shown[-1]):
        shown.pop()
    return tuple(shown) or ((),)


def _is_blank(row: Sequence[Span]) -> bool:
    return not any(part.strip() for part, _ in row)


def _is_gap(row: Sequence[Span]) -> bool:
    """Returns whether a row is the distance that Rich keeps, and no empty line of code."""
    return _is_blank(row) and all(token != "code-string" for _, token in row)


_NUMBERED = re.compile(r"^[\s>*+-]*\d+[.)](?=\s)", re.MULTILINE)
"""Numbers of lists, which are counted anew."""


def _letters(text: str) -> Counter[str]:
    return Counter(filter(str.isalnum, text))


def _typeset(text: str, room: int) -> list[tuple[Span, ...]]:
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
    lines = console.render_lines(_Markdown(text), console.options, pad=False)
    return [_row([(part.text, _of(part.style)) for part in line], room) for line in lines]


def _of(style: Style | None) -> str:
    return str(style.meta.get("token", "plain")) if style is not None else "plain"


def _row(spans: Sequence[Span], room: int) -> tuple[Span, ...]:
    # Escapes of an address are read after the text was cleaned.
    return crop([(clean(text.rstrip("\n")), token) for text, token in spans], room)


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
