"""Images by their content: the four formats, their sizes, and what is not an image."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.context.pictured import MAX_BYTES, ImageType, sniff
from workbench.tools.paths import Workspace
from workbench.tools.results import ImageRefused, read_image, read_images


def png(width: int, height: int) -> bytes:
    """A whole PNG of one colour."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x7f" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + bytes(3)
    return b"\xff\xd8" + app + frame + b"\xff\xd9"


def webp(kind: bytes, body: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


EXAMPLES = {
    "png": (png(30, 20), "image/png"),
    "jpeg": (jpeg(30, 20), "image/jpeg"),
    "gif": (b"GIF89a" + struct.pack("<HH", 30, 20) + bytes(10), "image/gif"),
    "webp lossy": (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 30, 20) + bytes(4)), "image/webp"),
    "webp lossless": (webp(b"VP8L", b"\x2f" + struct.pack("<I", 29 | 19 << 14) + bytes(4)), "image/webp"),
    "webp extended": (webp(b"VP8X", bytes(4) + b"\x1d\0\0" + b"\x13\0\0" + bytes(4)), "image/webp"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_format_is_known_by_its_content_with_its_size_in_pixels(name: str) -> None:
    data, media_type = EXAMPLES[name]
    assert sniff(data) == ImageType(media_type, 30, 20)


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"\x89PNG\r\n\x1a\n", png(1, 1)[:20], b"RIFF1234WAVEfmt ", png(0, 5)])
def test_what_is_no_whole_image_has_no_type(data: bytes) -> None:
    assert sniff(data) is None


@given(st.sampled_from(sorted(EXAMPLES)), st.integers(0, 60), st.binary(max_size=40))
def test_a_damaged_header_never_raises(name: str, keep: int, rest: bytes) -> None:
    found = sniff(EXAMPLES[name][0][:keep] + rest)
    assert found is None or min(found.width, found.height) > 0


def test_the_name_says_nothing_about_the_type(root: Path) -> None:
    (root / "photo.txt").write_bytes(png(3, 4))
    image = read_image(root / "photo.txt", "photo.txt")
    assert (image.media_type, image.width, image.height, image.path) == ("image/png", 3, 4, "photo.txt")


def test_a_file_that_is_no_image_or_too_large_is_refused_with_its_name(root: Path) -> None:
    (root / "huge.png").write_bytes(png(1, 1) + bytes(MAX_BYTES))
    with pytest.raises(ImageRefused, match=r"'notes.txt' is not a PNG"):
        read_image(root / "notes.txt", "notes.txt")
    with pytest.raises(ImageRefused, match=r"'huge.png' has 5,0\d\d,\d+ bytes"):
        read_image(root / "huge.png", "huge.png")


def test_a_pipe_is_refused_instead_of_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe.png")
    with pytest.raises(ImageRefused, match="not a file"):
        read_image(root / "pipe.png", "pipe.png")


def test_images_outside_the_workspace_are_left_out_and_named(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.root / "ok.png").write_bytes(png(1, 1))
    (tmp_path / "other.png").write_bytes(png(1, 1))
    (workspace.root / "link.png").symlink_to(tmp_path / "other.png")
    images, refused = read_images(["ok.png", "link.png", "../other.png", "none.png"], workspace)
    assert [image.path for image in images] == ["ok.png"]
    assert refused == [
        "'link.png' lies outside the workspace",
        "'../other.png' lies outside the workspace",
        "'none.png' does not exist in the workspace",
    ]
