"""Images as cells: half blocks, each in two colours, made elsewhere and kept here, so that drawing never waits.

Nothing here needs Pillow; ``make`` imports it, and belongs into a worker.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from workbench.extras import missing
from workbench.views.cells import Span, crop

if TYPE_CHECKING:
    from PIL import Image as Pillow

    from workbench.context.message import Image

MAX_PIXELS = 32_000_000
"""Of an image that is decoded: about 100 MB while it is made small. A few bytes can claim billions."""
KEPT = 48
"""Thumbnails of the newest looks; the largest holds some 20,000 cells."""
MOST_COLUMNS = 160
UNKNOWN = (640, 400)
"""Pixels of an image whose size an imported run does not state."""
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_STEP = 4
"""Colours are rounded to steps of this many out of 256: more neighbours are equal, and the eye sees no difference."""

Drawn = tuple[tuple[Span, ...], ...]
"""Rows of spans whose tokens are two colours: ``#rrggbb/#rrggbb``, above and below."""


class PictureRequest(Struct, frozen=True):
    """An image at a size in cells."""

    digest: str
    columns: int
    lines: int


@dataclass(slots=True)
class Gallery:
    """Thumbnails that were made, and those that a look has asked for since. ``wake`` is called when there are some."""

    enabled: bool = False
    """Whether the terminal has the colours for it."""
    lines: int = 9
    """Of a picture in a pane, at most: as many as the pane has."""
    wake: Callable[[], object] = lambda: None
    _made: OrderedDict[PictureRequest, Drawn | str] = field(default_factory=OrderedDict)
    _asked: OrderedDict[PictureRequest, None] = field(default_factory=OrderedDict)

    def find(self, wanted: PictureRequest) -> Drawn | str | None:
        """A thumbnail, or why there is none; None while it is being made."""
        if (made := self._made.get(wanted)) is not None:
            self._made.move_to_end(wanted)
            return made
        if wanted not in self._asked:
            self._asked[wanted] = None
            self.wake()
        return None

    def next(self) -> PictureRequest | None:
        """The latest request, which is the one on the screen; None when all are made."""
        return next(reversed(self._asked), None)

    def put(self, wanted: PictureRequest, made: Drawn | str) -> None:
        """Keep a thumbnail, or the reason for its absence."""
        self._made[wanted] = made
        self._asked.pop(wanted, None)
        while len(self._made) > KEPT:
            self._made.popitem(last=False)


class Picture(Struct, frozen=True):
    """An image in a document, in the given columns and at most this many lines."""

    image: Image
    gallery: Gallery
    lines: int

    def _wanted(self, room: int) -> PictureRequest:
        width, height = self.image.width or UNKNOWN[0], self.image.height or UNKNOWN[1]
        columns, lines = fitted(width, height, room, self.lines)
        return PictureRequest(self.image.digest, columns, lines)

    def height(self, room: int) -> int:
        return self._wanted(room).lines

    def row(self, part: int, room: int) -> tuple[Span, ...]:
        found = self.gallery.find(self._wanted(room))
        if found is None or isinstance(found, str):
            words = "…" if found is None else f"not drawn: {found}"
            return crop(((words, "faint"),), room) if part == 0 else ()
        return found[part] if part < len(found) else ()

    def texts(self, room: int) -> tuple[str, ...]:
        return ("",) * self.height(room)


def fitted(width: int, height: int, room: int, lines: int) -> tuple[int, int]:
    """Columns and lines for an image of so many pixels; a cell shows one pixel above another, and none is enlarged."""
    width, height = max(1, width), max(1, height)
    columns = max(1, min(room, MOST_COLUMNS, width))
    needed = max(1, -(-columns * height // (2 * width)))
    if needed <= lines:
        return columns, needed
    return max(1, min(columns, 2 * lines * width // height)), lines


class CannotDraw(Exception):
    """An image that stays undrawn; the message says why."""


def make(data: bytes, wanted: PictureRequest) -> Drawn:
    """Decode an image and scale it down. Raises CannotDraw if it is too large or damaged."""
    small = scaled(data, lambda width, height: (wanted.columns, wanted.lines * 2)).tobytes()
    return tuple(_line(small, wanted.columns, 2 * line) for line in range(wanted.lines))


def scaled(data: bytes, size: Callable[[int, int], tuple[int, int]]) -> Pillow.Image:
    """An image on white, in its stated size. Raises CannotDraw if it is too large or damaged."""
    if absent := missing("images"):
        raise CannotDraw(absent)
    import PIL.Image  # of the extra images

    try:
        with PIL.Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise CannotDraw(f"{picture.width:,} × {picture.height:,} pixels are more than {MAX_PIXELS:,}")
            columns, lines = size(picture.width, picture.height)
            picture.draft("RGB", (columns * 2, lines * 2))
            colours = picture.convert("RGBA")
            paper = PIL.Image.new("RGBA", colours.size, "white")
            paper.alpha_composite(colours)
            return paper.convert("RGB").resize((columns, lines), PIL.Image.Resampling.BOX)
    except CannotDraw:
        raise
    except PIL.UnidentifiedImageError as fault:
        raise CannotDraw("it is not a PNG, JPEG, GIF or WebP image") from fault
    except Exception as fault:
        raise CannotDraw(f"it cannot be decoded: {fault}") from fault


def _line(pixels: bytes, columns: int, above: int) -> tuple[Span, ...]:
    """One line of cells; neighbours that are equal are one span."""
    stride = columns * 3
    tokens = (
        f"{_colour(pixels, above * stride + 3 * x)}/{_colour(pixels, (above + 1) * stride + 3 * x)}"
        for x in range(columns)
    )
    return tuple(("▀" * sum(1 for _ in same), token) for token, same in groupby(tokens))


def _colour(pixels: bytes, at: int) -> str:
    red, green, blue = (min(255, (value + _STEP // 2) // _STEP * _STEP) for value in pixels[at : at + 3])
    return f"#{red:02x}{green:02x}{blue:02x}"
