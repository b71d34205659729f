"""Finds the only changed value of a cascade's text, if there is exactly one: then it caused the difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from workbench.context.assembly import Rule
from workbench.engine.definition import Definition
from workbench.language.problem import Path, path_of, path_text


class SoleChange(Struct, frozen=True):
    """The place of the value."""

    path: Path
    rule: Rule
    recorded: bool = False
    """Its line is of the recorded text: the value is gone from today's."""

    def holds(self, rule: Rule) -> bool:
        """Whether the rule is this value, or a part of it: then it says as much."""
        path = path_of(rule.path)
        return path[: len(self.path)] == self.path


def sole_change(recorded: Definition | None, today: Definition) -> SoleChange | None:
    """None where nothing differs, or more than one value does, or which phases there are, or a text that is
    read along."""
    if recorded is None or dict(recorded.includes) != dict(today.includes):
        return None
    found = _changes(recorded.source.data, today.source.data, ())
    path, more = next(found, None), next(found, None)
    if path is None or more is not None or path in ((), ("phases",)):
        return None
    line = today.line(path)
    return SoleChange(path, Rule(path_text(path), line or recorded.line(path)), recorded=not line)


def _changes(old: Any, new: Any, path: Path) -> Iterator[Path]:
    """The smallest values that differ: of lists of another length, the lists."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*old, *(key for key in new if key not in old)):
            if key in old and key in new:
                yield from _changes(old[key], new[key], (*path, key))
            else:
                yield (*path, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from _changes(was, now, (*path, index))
    elif old != new or type(old) is not type(new):
        yield path
