"""Shows a candidate's output as text, for people without a screen: unchanged, without tags, as code, as the names of
its images, or as a difference from another candidate.
"""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Sequence

from workbench.context.message import Image

_FENCE = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "br",
        "div",
        "dl",
        "dt",
        "dd",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tr",
        "ul",
    ]
)
_UNSEEN = frozenset(("head", "script", "style", "title"))
PICTURES = frozenset(("image", "chart"))


_TAG = re.compile(r"<!--.*?(?:-->|\Z)|<[!?][^>]*+(?:>|\Z)|<(?P<end>/?)(?P<name>[A-Za-z][^\s/<>]*+)[^<>]*+>", re.DOTALL)
"""Looked through once whatever the text: Python's parser starts anew at each tag that is not closed."""


def html_text(text: str) -> str:
    """The words of an HTML text, a line for each block.

    >>> html_text("<h1>Lamps</h1><ul><li>one &amp; two</ul>")
    'Lamps\\n\\n- one & two'
    """
    parts: list[str] = []
    at, unseen = 0, 0
    for tag in _TAG.finditer(text):
        if not unseen:
            parts.append(_words(text[at : tag.start()]))
        at, name = tag.end(), (tag["name"] or "").lower()
        if name in _UNSEEN:
            unseen = max(0, unseen + (-1 if tag["end"] else 1))
        if name in _BLOCKS:
            parts.append("\n- " if name == "li" and not tag["end"] else "\n")
    if not unseen:
        parts.append(_words(text[at:]))
    lines = [line.strip() for line in "".join(parts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(text))


def rendered(text: str, form: str, images: Sequence[Image] = ()) -> str:
    """An output in the form that ``preview_render`` names; ``auto`` and unknown forms leave it as it is."""
    if form == "html":
        return html_text(text)
    if form == "code":
        found = _FENCE.search(text)
        return found[1] if found else text
    if form in PICTURES and images:
        return "\n".join([*(_picture(image) for image in images), *([text] if text else [])])
    return text


def _picture(image: Image) -> str:
    size = f" {image.width}×{image.height}" if image.width else ""
    return f"[{image.media_type}{size} {image.digest[:12]}]"


def difference(old: str, new: str, names: tuple[str, str]) -> str:
    """The changes that turn one output into the other, line by line; says so if they are equal."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="", n=1))
    return "\n".join(lines) if lines else f"(the same as {names[0]})"
