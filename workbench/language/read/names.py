"""Names that later editions of the language gave to keys: a file that uses them is read by the names used here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from workbench.language.problem import Path
from workbench.language.read.source import Layout, Source, Spot
from workbench.language.words import LATER_LIST, LATER_NAMES, LIST_ITEM, REPAIR

_BELOW: Mapping[str, str] = {
    "phases": "Phase",
    "on_error": "Phase",
    "context": "ContextRules",
    "from": "ContextSource",
    "inject_from": "ContextSource",
    "anchors": "Anchors",
    "auto_context": "AutoContext",
    "inter_phase": "InterContext",
    "token_budget": "TokenBudget",
}
"""The mappings that have such names or lead to some, by the key that they stand under, by the names used here."""


def by_names_used_here(source: Source) -> Source:
    """The file with its keys renamed, every value in its place in the text; any other file unchanged.

    A later name stays where the name used here stands beside it.
    """
    written: dict[Path, str] = {}
    data = renamed(source.data, written)
    return replace(source, data=data, layout=_WrittenLayout(source.layout, written)) if written else source


def renamed(data: Any, written: dict[Path, str] | None = None) -> Any:
    """The data of a file by the names used here. ``written`` gets the key of the file for each path that it has not."""
    if not isinstance(data, dict):
        return data
    listed = data.get("phases") if "phases" in data else data.get(LATER_LIST)
    if not isinstance(listed, list):
        return data
    written = {} if written is None else written
    found = _renamed(data, "Cascade", (), written)
    _name_repairs(found["phases"], written)
    return found


def _name_repairs(phases: Any, written: dict[Path, str]) -> None:
    """``on_error: auto_fix`` asks for a repair of the tool's code by a model, unless a phase has that name: it gets a
    key of its own, by which it can be told from a phase."""
    listed = [(at, one) for at, one in enumerate(phases if isinstance(phases, list) else ()) if isinstance(one, dict)]
    is_phase = any(one.get("name") == REPAIR for _, one in listed)
    for at, one in listed:
        asked = one.get("on_error")
        alone = isinstance(asked, dict) and REPAIR in asked and not {"instructions", "tool"} & asked.keys()
        if alone or (asked == REPAIR and not is_phase):
            one[REPAIR] = one.pop("on_error")
            written["phases", at, REPAIR] = "on_error"


def path_used_here(path: Iterable[str]) -> tuple[str, ...]:
    """A path of keys in a text, by the names used here."""
    words, model = [], "Cascade"
    for word in path:
        words.append(LATER_NAMES.get(model, {}).get(word, word))
        model = _BELOW.get(words[-1], "") if word != LIST_ITEM else model
    return tuple(words)


def _renamed(body: Mapping[Any, Any], model: str, path: Path, written: dict[Path, str]) -> dict[Any, Any]:
    """A mapping with its keys renamed, and those below it; ``written`` gets the key of the file for each path that is
    no longer one."""
    names = LATER_NAMES.get(model, {})
    found: dict[Any, Any] = {}
    for key, value in body.items():
        name = names.get(key, key) if isinstance(key, str) else key
        if name != key and (name in body or name in found):
            name = key
        if name != key:
            written[(*path, name)] = key
        found[name] = _below(value, name, (*path, name), written)
    return found


def _below(value: Any, key: Any, path: Path, written: dict[Path, str]) -> Any:
    """What stands under a key, with its keys renamed."""
    if (model := _BELOW.get(key) if isinstance(key, str) else None) is None:
        return value
    if isinstance(value, dict):
        return _renamed(value, model, path, written)
    if isinstance(value, list):
        items = enumerate(value)
        return [_renamed(item, model, (*path, i), written) if isinstance(item, dict) else item for i, item in items]
    return value


class _WrittenLayout:
    """Finds a value by the names used here in a text that uses later ones."""

    def __init__(self, layout: Layout, written: Mapping[Path, str]) -> None:
        self._layout = layout
        self._written = written

    def spot(self, path: Path) -> Spot | None:
        return self._layout.spot(tuple(self._written.get(path[: i + 1], part) for i, part in enumerate(path)))
