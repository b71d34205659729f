"""Names that later editions of the language gave to keys: a file that uses them is read by the names used here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from workbench.language.problem import Path
from workbench.language.read.source import Layout, Source, Spot
from workbench.language.words import LATER_LIST, LATER_NAMES

_TOP, _PHASE, _SOURCE = (LATER_NAMES[model] for model in ("Cascade", "Phase", "ContextSource"))


def by_names_used_here(source: Source) -> Source:
    """The file with its keys renamed, every value in its place in the text; any other file unchanged.

    A later name stays where the name used here stands beside it.
    """
    written: dict[Path, str] = {}
    data = renamed(source.data, written)
    return replace(source, data=data, layout=_WrittenLayout(source.layout, written)) if written else source


def renamed(data: Any, written: dict[Path, str] | None = None) -> Any:
    """The data of a file by the names used here. ``written`` gets the key of the file for each path that it has not."""
    written = {} if written is None else written
    if not isinstance(data, dict) or not isinstance(data.get(LATER_LIST), list) or "phases" in data:
        return data
    found = _renamed(data, _TOP, (), written)
    phases = []
    for i, phase in enumerate(found["phases"]):
        if isinstance(phase, dict):
            path: Path = ("phases", i)
            phase = _renamed(phase, _PHASE, path, written)
            context = phase.get("context")
            if isinstance(context, dict) and isinstance(context.get("from"), list):
                listed = [
                    _renamed(one, _SOURCE, (*path, "context", "from", k), written) if isinstance(one, dict) else one
                    for k, one in enumerate(context["from"])
                ]
                phase = {**phase, "context": {**context, "from": listed}}
        phases.append(phase)
    found["phases"] = phases
    return found


def path_used_here(path: Iterable[str]) -> tuple[str, ...]:
    """A path of keys in a text, by the names used here."""
    words = list(path)
    if words[:1] == [LATER_LIST]:
        for names, place in ((_TOP, 0), (_PHASE, 2), (_SOURCE, 5)):
            if len(words) > place and (place < 5 or words[2:4] == ["context", "from"]):
                words[place] = names.get(words[place], words[place])
    return tuple(words)


def _renamed(body: Mapping[Any, Any], names: Mapping[str, str], path: Path, written: dict[Path, str]) -> dict[Any, Any]:
    """A mapping with its keys renamed; ``written`` gets the key of the file for each path that is no longer one."""
    found: dict[Any, Any] = {}
    for key, value in body.items():
        name = names.get(key, key) if isinstance(key, str) else key
        if name != key and name not in body and name not in found:
            written[(*path, name)] = key
            found[name] = value
        else:
            found[key] = value
    return found


class _WrittenLayout:
    """Finds a value by the names used here in a text that uses later ones."""

    def __init__(self, layout: Layout, written: Mapping[Path, str]) -> None:
        self._layout = layout
        self._written = written

    def spot(self, path: Path) -> Spot | None:
        return self._layout.spot(tuple(self._written.get(path[: i + 1], part) for i, part in enumerate(path)))
