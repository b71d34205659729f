"""Finds images written as data URLs in a text. They are sent as images; a mark stays where each stood."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Callable

from msgspec import Struct

from workbench.context.message import Image, Message, Part, TextPart

# What the first bytes of an image say: its type and its size. Nothing is decoded.

MAX_BYTES = 5_000_000
"""Larger images are refused by common providers."""
_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})


class ImageType(Struct, frozen=True):
    """The type and size that the first bytes of an image state. Width and height are in pixels."""

    media_type: str
    width: int
    height: int


def sniff(data: bytes) -> ImageType | None:
    """The type of an image by its content (PNG, JPEG, GIF, WebP); None for other data and for a damaged header."""
    for magic, media_type, measure in _FORMATS:
        if data.startswith(magic):
            try:
                size = measure(data)
            except (struct.error, IndexError):
                return None
            return ImageType(media_type, *size) if size and min(size) > 0 else None
    return None


def _png(data: bytes) -> tuple[int, int] | None:
    if data[12:16] != b"IHDR":
        return None
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def _gif(data: bytes) -> tuple[int, int] | None:
    width, height = struct.unpack("<HH", data[6:10])
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk the segments to the first start-of-frame."""
    position = 2
    while position + 9 <= len(data):
        if data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
        elif marker in _SOF:
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            position += 2
        else:
            position += 2 + int(struct.unpack(">H", data[position + 2 : position + 4])[0])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[8:12] != b"WEBP":
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack("<I", data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None


_FORMATS: tuple[tuple[bytes, str, Callable[[bytes], tuple[int, int] | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _png),
    (b"\xff\xd8\xff", "image/jpeg", _jpeg),
    (b"GIF87a", "image/gif", _gif),
    (b"GIF89a", "image/gif", _gif),
    (b"RIFF", "image/webp", _webp),
)


MOST = 20
"""Of one message; those behind them stay text."""
_URL = re.compile(r"data:image/[\w.+-]+;base64,([A-Za-z0-9+/]+={0,2})")

Keep = Callable[[Image, bytes], None]
"""Takes the bytes of an image that a message names by their digest."""


def pictured(message: Message, keep: Keep) -> Message:
    """A user's message in which the data URLs of images (PNG, JPEG, GIF, WebP) in its text became image parts at its
    end.

    ``[image 1]`` stays where one stood; other data URLs stay unchanged. The same image is sent once.
    """
    if message.role != "user" or "data:image/" not in message.text:
        return message
    found: dict[str, Image] = {image.digest: image for image in message.images}
    given: tuple[Part, ...] = (TextPart(message.content),) if isinstance(message.content, str) else message.content
    before = len(found)
    parts = [TextPart(marked(part.text, found, keep)) if isinstance(part, TextPart) else part for part in given]
    if parts == list(given):
        return message
    content = (*parts, *list(found.values())[before:])
    return Message(message.role, content, message.tool_calls, message.tool_call_id, message.name, message.extra)


def marked(text: str, found: dict[str, Image], keep: Keep) -> str:
    """A text with ``[image 1]`` where the data URL of an image stood. ``found``: images by digest, takes new ones."""

    def mark(url: re.Match[str]) -> str:
        read = _read(url[1])
        if read is None or (read[0].digest not in found and len(found) >= MOST):
            return url[0]
        image, data = read
        if image.digest not in found:
            found[image.digest] = image
            keep(image, data)
        return f"[image {list(found).index(image.digest) + 1}]"

    return _URL.sub(mark, text)


def _read(text: str) -> tuple[Image, bytes] | None:
    """The image that a base64 text encodes, with its bytes; None if it encodes none, or one too large to send."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    kind = sniff(data)
    if kind is None or len(data) > MAX_BYTES:
        return None
    return Image(hashlib.sha256(data).hexdigest(), kind.media_type, len(data), kind.width, kind.height), data
