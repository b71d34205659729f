"""Images as cells: their size, their colours, and what is never decoded."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from workbench.context.message import Image
from workbench.views.picture import KEPT, MAX_PIXELS, CannotDraw, Gallery, Picture, PictureRequest, fitted, make


def png(width: int, height: int, colour: str = "red") -> bytes:
    buffer = io.BytesIO()
    Pillow.new("RGB", (width, height), colour).save(buffer, "PNG")
    return buffer.getvalue()


def claiming(width: int, height: int) -> bytes:
    """A hundred bytes that claim to be a picture of this size."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@given(st.integers(1, 50_000), st.integers(1, 50_000), st.integers(1, 300), st.integers(1, 60))
def test_an_image_of_any_shape_fits_into_the_room(width: int, height: int, room: int, lines: int) -> None:
    columns, needed = fitted(width, height, room, lines)
    assert 1 <= columns <= min(room, width)
    assert 1 <= needed <= lines


def test_a_cell_shows_one_pixel_above_another_and_equal_neighbours_are_one_span() -> None:
    picture = Pillow.new("RGB", (4, 2), "black")
    for x in range(4):
        picture.putpixel((x, 1), (248, 0, 0) if x < 3 else (0, 0, 248))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    assert make(buffer.getvalue(), PictureRequest("d", 4, 1)) == (
        (("▀▀▀", "#000000/#f80000"), ("▀", "#000000/#0000f8")),
    )


def test_what_is_transparent_stands_on_white() -> None:
    buffer = io.BytesIO()
    Pillow.new("RGBA", (2, 2), (0, 0, 0, 0)).save(buffer, "PNG")
    assert make(buffer.getvalue(), PictureRequest("d", 1, 1)) == ((("▀", "#ffffff/#ffffff"),),)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (claiming(65_000, 65_000), "65,000 × 65,000 pixels are more|exceeds limit"),
        (claiming(8001, MAX_PIXELS // 8000), "pixels are more than"),
        (png(900, 900)[:200], "it cannot be decoded"),
        (b"<svg/>", "it is not a PNG, JPEG, GIF or WebP"),
    ],
)
def test_bombs_and_damaged_files_are_refused_in_words(data: bytes, said: str) -> None:
    with pytest.raises(CannotDraw, match=said):
        make(data, PictureRequest("d", 10, 10))


def test_a_gallery_asks_once_serves_the_newest_first_and_forgets_the_oldest() -> None:
    asked = []
    gallery = Gallery(wake=lambda: asked.append(1))
    first, second = PictureRequest("a", 4, 2), PictureRequest("b", 4, 2)
    assert [gallery.find(one) for one in (first, second, first)] == [None] * 3
    assert len(asked) == 2
    assert gallery.next() == second
    gallery.put(second, "no")
    gallery.put(first, ((("▀", "#000000/#000000"),),))
    assert gallery.next() is None
    assert gallery.find(second) == "no"
    for number in range(KEPT):
        gallery.put(PictureRequest(str(number), 1, 1), "")
    assert gallery.find(first) is None


def test_a_picture_is_as_high_before_it_is_drawn_as_after() -> None:
    gallery = Gallery(enabled=True)
    picture = Picture(Image("d", "image/png", 9, 40, 20), gallery, 12)
    assert picture.height(30) == 8
    assert picture.row(0, 30) == (("…", "faint"),)
    wanted = gallery.next()
    assert wanted is not None
    gallery.put(wanted, make(png(40, 20), wanted))
    assert [sum(len(text) for text, _ in picture.row(line, 30)) for line in range(8)] == [30] * 8
    gallery.put(wanted, "65,000 × 65,000 pixels")
    assert "".join(text for text, _ in picture.row(0, 30)) == "not drawn: 65,000 × 65,000 pi…"
