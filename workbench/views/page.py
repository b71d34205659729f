"""A view as one self-contained HTML file: no script, no font, no request."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup
from msgspec import Struct

from workbench.exporters.html import COLOURS, UNFOLD, UNFOLD_STYLE
from workbench.language.clean import clean
from workbench.views.figure import can_draw
from workbench.views.picture import CannotDraw, scaled
from workbench.views.value import (
    Block,
    Cell,
    Column,
    Drawing,
    FoldedMessages,
    Heading,
    Piece,
    SideBySide,
    Table,
    TextBlock,
)

if TYPE_CHECKING:
    from workbench.context.message import Image


SIDES = (240, 160)
"""Pixels of a thumbnail, at most: a page has up to 15 kB of each."""
MOST = 40
"""Thumbnails of a page; the images behind these are named only."""


class Thumbnail(Struct, frozen=True):
    """A small image, by the class of CSS that shows it."""

    name: str
    width: int
    height: int
    uri: str

    @property
    def rule(self) -> str:
        return f".{self.name} {{ width: {self.width}px; height: {self.height}px; background: url({self.uri}); }}"


def thumbnails(images: Iterable[Image], bodies: Mapping[str, bytes]) -> dict[str, Thumbnail]:
    """Thumbnails by digest. An image is left out if its bytes are missing, it cannot be drawn, or there are too many.

    ``bodies`` raises KeyError for missing bytes.
    """
    made: dict[str, Thumbnail] = {}
    for digest, data in _found(dict.fromkeys(image.digest for image in images), bodies):
        try:
            small = scaled(data, _fitted)
        except CannotDraw:
            continue  # Its message names it, with digest and size.
        buffer = io.BytesIO()
        small.save(buffer, "JPEG", quality=80)
        uri = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        made[digest] = Thumbnail(f"i{len(made)}", small.width, small.height, uri)
        if len(made) == MOST:
            break
    return made


def _found(digests: Iterable[str], bodies: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    for digest in digests:
        try:
            yield digest, bodies[digest]
        except KeyError:
            continue


def _fitted(width: int, height: int) -> tuple[int, int]:
    scale = min(1.0, SIDES[0] / width, SIDES[1] / height)
    return max(1, round(width * scale)), max(1, round(height * scale))


DRAWN = 100
"""Columns of a drawing in characters."""
TEMPLATE = Path(__file__).with_name("page.html")


class _Field(Struct, frozen=True):
    text: str
    token: str
    right: bool


def page(title: str, about: str, blocks: Iterable[Block], images: Mapping[str, Thumbnail] | None = None) -> str:
    """The whole page; ``about`` is what it shows of ``title``. What a model, a tool or a file said is escaped and
    stripped of control characters. ``images``: small, by digest."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_finalized)
    environment.globals |= {"kind": _kind, "field": _field, "fields": _fields, "svg": _svg, "drawn": _drawn}
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    blocks = tuple(blocks)
    folds = any(isinstance(row, FoldedMessages) for one in blocks if isinstance(one, SideBySide) for row in one.rows)
    return template.render(
        title=title,
        about=about,
        blocks=blocks,
        images=images or {},
        colours=Markup(COLOURS),
        unfold=Markup(UNFOLD) if folds else "",
        unfold_style=Markup(UNFOLD_STYLE) if folds else "",
    )


def _finalized(value: object) -> object:
    """Text without control characters; markup stays."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _kind(block: Block) -> str:
    names: dict[Any, str] = {
        Heading: "heading",
        Table: "table",
        TextBlock: "text",
        Drawing: "drawing",
        SideBySide: "beside",
        FoldedMessages: "fold",
    }
    return names.get(type(block), "line")


def _field(piece: Piece, column: Column | None = None) -> _Field:
    cell = piece if isinstance(piece, Cell) else Cell(piece)
    return _Field(cell.text, cell.token, column is not None and column.right)


def _fields(table: Table, row: Iterable[Piece]) -> list[_Field]:
    return [_field(piece, column) for piece, column in zip(row, table.columns, strict=True)]


def _svg(drawing: Drawing) -> Markup:
    """A drawing as a picture; nothing where there is none, or no library to draw it. Its texts are escaped there."""
    return Markup(drawing.picture("svg").decode()) if drawing.picture is not None and can_draw() else Markup()


def _drawn(drawing: Drawing) -> str:
    """The same in characters."""
    return "\n".join("".join(text for text, _ in line) for line in drawing.draw(DRAWN))
