"""Fields that load and are kept but that no run executes: one table, for `check` and for the warnings of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from pydantic import BaseModel

from workbench.language.lint.place import Places
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.problem import Path, Problem
from workbench.language.read.source import Source


class NotRun(Struct, frozen=True):
    """A field by its path (``[]`` each item, ``*`` each value of a mapping) and what happens instead of running it.

    ``phases[]`` are also the phases that are written in place as ``on_error``.

    ``only`` limits the row to one value of the field.
    """

    field: str
    consequence: str
    only: str | None = None


NOT_RUN: tuple[NotRun, ...] = (
    NotRun("triggers", "nothing schedules a run; cron or CI can call workbench run"),
    NotRun("narrator", "no narration"),
    NotRun("phases[].narrator", "no narration"),
    NotRun("research_db", "research_query and research_execute are not offered; 'memory' keeps what runs said"),
    NotRun("phases[].ui_mode", "it is ignored"),
    NotRun("phases[].browser", "no browser is started; browser_start in 'tackle' opens the page"),
    NotRun("phases[].human_input.type", "a text is asked for instead; auto and form make forms", only="htmx"),
    NotRun("tool_caching.tools.*.key", "args_hash is used, which looks at all arguments", only="custom"),
)
"""A row goes when the engine learns the field."""

TOOL_TYPES_NOT_RUN = frozenset({"gradio"})
"""Types of ``.tool.json`` that are not offered."""


def not_run(cascade: Cascade, source: Source) -> tuple[Problem, ...]:
    """One L801 for each place that writes a field of the table, in the order of the file.

    A field that is switched off (``false``, ``enabled: false``, an empty list) is none, and neither is a field inside
    another one that is not run.
    """
    place = Places(source)
    found: dict[Path, Problem] = {}
    for row in NOT_RUN:
        for path, value in _written(cascade, tuple(row.field.split("."))):
            if _off(value) or (row.only is not None and value != row.only):
                continue
            name = row.field.rpartition(".")[2] + (f": {row.only}" if row.only else "")
            found[path] = place.report("L801", path, at_key=row.only is None, field=name, consequence=row.consequence)
    kept = (p for path, p in found.items() if not any(path[:n] in found for n in range(1, len(path))))
    return tuple(sorted(kept, key=lambda problem: problem.span))


def _off(value: object) -> bool:
    return not value or getattr(value, "enabled", True) is False


def _written(value: object, steps: tuple[str, ...], path: Path = ()) -> Iterator[tuple[Path, object]]:
    """The paths that the steps lead to, if the file writes each of them."""
    if not steps:
        yield path, value
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield from _written(item, rest, (*path, key))
        return
    name = step.removesuffix("[]")
    if not isinstance(value, BaseModel) or name not in value.model_fields_set:
        return
    inner = getattr(value, name)
    if step == name:
        yield from _written(inner, rest, (*path, name))
    elif isinstance(inner, (list, tuple)):
        for at, item in enumerate(inner):
            yield from _written(item, rest, (*path, name, at))
            if isinstance(item, Phase) and isinstance(item.on_error, Phase):
                yield from _written(item.on_error, rest, (*path, name, at, "on_error"))
