"""Unpacks compressed bodies of requests, up to a limit."""

from __future__ import annotations

import zlib


class BadBody(Exception):
    """A request that cannot be read: the status, and why in words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def too_large(most: int) -> BadBody:
    """The refusal of a body with more bytes than that."""
    return BadBody(413, f"the body is larger than {most // 2**20} MB; send less at once")


def unpacked(data: bytes, coding: str, most: int) -> bytes:
    """A body without its content coding, of at most so many bytes. Raises BadBody."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return data
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise BadBody(415, f"the content coding is gzip, deflate or none, not {coding[:40]}")
    packer = zlib.decompressobj(zlib.MAX_WBITS | (16 if "gzip" in coding else 0))
    try:
        found = packer.decompress(data, most)
    except zlib.error:
        raise BadBody(400, f"the body is no {coding}") from None
    if packer.unconsumed_tail:
        raise too_large(most)
    if not packer.eof:
        raise BadBody(400, f"the body ends in the middle of its {coding}")
    return found
