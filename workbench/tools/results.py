"""Turns what a tool function returns into the result a model sees: text, JSON, or text with images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from workbench.context.message import Image
from workbench.context.pictured import MAX_BYTES, marked, sniff
from workbench.engine.contracts import ToolImage, ToolResult
from workbench.tools.paths import Workspace, is_regular

# Reads images that tools return: typed by their content, never by their name.

MAX_IMAGES = 20
"""Per tool result."""


class ImageRefused(ValueError):
    """A file that cannot be shown as an image; the message is for the model."""


def read_image(path: Path, shown: str) -> ToolImage:
    """Read one file. Raises ImageRefused when it is no image, too large, or cannot be read."""
    try:
        if not is_regular(path):
            raise ImageRefused(f"'{shown}' is not a file")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ImageRefused(f"'{shown}' has {size:,} bytes; an image may have {MAX_BYTES:,}")
        data = path.read_bytes()
    except OSError as fault:
        raise ImageRefused(f"'{shown}' cannot be read: {fault.strerror}") from fault
    kind = sniff(data)
    if kind is None:
        raise ImageRefused(f"'{shown}' is not a PNG, JPEG, GIF or WebP image")
    return ToolImage(data, kind.media_type, kind.width, kind.height, shown)


def read_images(paths: Iterable[str], workspace: Workspace) -> tuple[list[ToolImage], list[str]]:
    """Images of a tool result, in order, and a sentence for each one that was refused.

    Paths are those of the workspace; one outside it is refused (``PathRefused`` becomes a sentence).
    """
    images: list[ToolImage] = []
    refused: list[str] = []
    for number, path in enumerate(paths):
        if number >= MAX_IMAGES:
            refused.append(f"only the first {MAX_IMAGES} images are kept")
            break
        try:
            real = workspace.find(path)
            images.append(read_image(real, workspace.shown(real)))
        except ValueError as fault:
            refused.append(str(fault))
    return images, refused


MAX_CHARS = 100_000
"""Of any result; built-in tools stay below."""
IN_PROCESS = "in process"
NOTHING = "(no output)"
"""Instead of a blank text, which providers refuse."""


def result_of(value: Any, workspace: Workspace) -> ToolResult:
    """The forms of a result: text as it is, ``{"content", "images": [paths]}``, a ready ToolResult,
    anything else as JSON (indent 2). What JSON has no word for is an error result. Data URLs of images in the text
    become images.

    Images that cannot be read are named at the end of the text; they do not make the result an error.
    """
    if isinstance(value, ToolResult):
        return _seen(value)
    if value is None:
        return ToolResult(NOTHING)
    if isinstance(value, Mapping) and isinstance(value.get("images"), (list, tuple)):
        return _seen(_with_images(value, workspace))
    text, plain = _text(value)
    if text is None:
        return ToolResult(f"TypeError: a {type(value).__name__} was returned, which is neither text nor JSON", True)
    return _seen(cut(text, value=plain)) if text.strip() else ToolResult(NOTHING, value=plain)


def _seen(result: ToolResult) -> ToolResult:
    """The result with images in the place of their data URLs in its text: as text, a model could not see them."""
    given = result.whole or result.text
    if "data:image/" not in given:
        return result
    images = list(result.images)
    found = {image.digest: image for image in map(_named, images)}

    def keep(image: Image, data: bytes) -> None:
        images.append(ToolImage(data, image.media_type, image.width, image.height))

    text = marked(given, found, keep)
    if text == given:
        return result
    shown = bounded(text, len(result.text))
    return replace(result, text=shown, whole=text if shown != text else "", images=tuple(images))


def _named(image: ToolImage) -> Image:
    digest = hashlib.sha256(image.data).hexdigest()
    return Image(digest, image.media_type, len(image.data), image.width, image.height)


def cut(
    text: str, limit: int = MAX_CHARS, *, is_error: bool = False, value: Any = None, sandbox: str = IN_PROCESS
) -> ToolResult:
    """The text as a result: cut for the model where it is too long, whole for the store."""
    whole = text if len(text) > limit else ""
    return ToolResult(bounded(text, limit), is_error, value=value, sandbox=sandbox, whole=whole)


def bounded(text: str, limit: int = MAX_CHARS) -> str:
    """The text, or its head and tail around a marker that says how many characters are left out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def error_of(fault: BaseException) -> ToolResult:
    """``TYPE: MESSAGE``, without a traceback."""
    name = type(fault).__name__
    return cut(f"{name}: {fault}" if str(fault) else name, 4000, is_error=True)


def _text(value: Any) -> tuple[str | None, Any]:
    """The text of a value, and the value as plain JSON where it is not text already."""
    if isinstance(value, str):
        return value, None
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None, None
    return text, json.loads(text)


def _with_images(value: Mapping[str, Any], workspace: Workspace) -> ToolResult:
    names = [str(path) for path in value["images"]]
    images, refused = read_images(names, workspace)
    text, plain = _text(value.get("content", ""))
    if text is None:
        return ToolResult("TypeError: the tool's 'content' is neither text nor JSON", True)
    notes = "\n".join(f"[image left out: {reason}]" for reason in refused)
    joined = "\n".join(part for part in (text, notes) if part) or f"{len(images)} image(s)"
    return replace(cut(joined, value=plain), images=tuple(images))
