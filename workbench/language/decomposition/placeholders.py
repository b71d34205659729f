"""``<Result of Task N>`` in the parameters of a task: finds it, and replaces it by the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from workbench.language.problem import Path

PLACEHOLDER = re.compile(r"<\s*results?\s+(?:of|from)\s+tasks?\s+([^<>\n]{1,200}?)\s*>", re.IGNORECASE)


def placeholders(value: Any, path: Path = ()) -> Iterator[tuple[Path, int, str]]:
    """Every placeholder in the strings of a JSON value: the path of the string, the index in it, and the id as
    written."""
    if isinstance(value, str):
        for match in PLACEHOLDER.finditer(value):
            yield path, match.start(), match[1]
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from placeholders(inner, (*path, key))
    elif isinstance(value, Sequence):
        for index, inner in enumerate(value):
            yield from placeholders(inner, (*path, index))


def filled(value: Any, result: Callable[[str], tuple[Any, str] | None]) -> Any:
    """The value with results in place of placeholders. ``result`` gives what a task made, and that as text; None leaves
    the placeholder as it is written. A string that is nothing but a placeholder becomes the result itself, with its
    type. What a result holds is not looked through again."""
    if isinstance(value, str):
        alone = PLACEHOLDER.fullmatch(value.strip())
        if alone is not None and (found := result(alone[1])) is not None:
            return found[0]
        return filled_text(value, result)
    if isinstance(value, Mapping):
        return {key: filled(inner, result) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [filled(inner, result) for inner in value]
    return value


def filled_text(text: str, result: Callable[[str], tuple[Any, str] | None]) -> str:
    """The same for one text, which stays a text."""

    def put(match: re.Match[str]) -> str:
        found = result(match[1])
        return match[0] if found is None else found[1]

    return PLACEHOLDER.sub(put, text)


def same_id(written: str, ids: Mapping[str, Any] | Sequence[str]) -> str:
    """The id that is meant: as written, else the only one that is the same number (``1`` finds ``001``); empty for
    none.
    """
    written = written.strip()
    if written in ids:
        return written
    if not _is_number(written):
        return ""
    alike = [id for id in ids if _is_number(id) and int(id) == int(written)]
    return alike[0] if len(alike) == 1 else ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
