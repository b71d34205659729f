"""Finds every place of a file that names a phase, and renames it in all of them: handoffs, routes, sources of contexts,
templates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from workbench.language.decomposition.lowering import is_decomposition
from workbench.language.edit.dot import renamed_node
from workbench.language.edit.emit import scalar
from workbench.language.edit.errors import EditError
from workbench.language.edit.tasks import renamed_task
from workbench.language.lint.readings import OUTPUT
from workbench.language.model.base import Model
from workbench.language.model.candidates import InlineValidator
from workbench.language.model.cascade import DECISION, Cascade, Phase
from workbench.language.model.context import SOURCE_KEYWORDS
from workbench.language.model.shape import FieldShape, Place, places, shape
from workbench.language.problem import Path, Severity, texts_of
from workbench.language.read.source import Source, value_offsets
from workbench.language.read.text import read_source
from workbench.language.tables import BASH, CLOJURE, INPUT_TABLE, table_uses
from workbench.language.templates.names import NameUse, names_used
from workbench.language.templates.template import condition_shift, condition_template
from workbench.language.words import ASK_HUMAN

_NAME = re.compile(r"[^\W\d][\w-]*")


class PhaseUse(Struct, frozen=True):
    """A place that names a phase, as offsets into the text of the source; the end is exclusive."""

    start: int
    end: int
    is_definition: bool = False
    in_template: bool = False
    plain: bool = False
    """A scalar of YAML without quotes."""
    in_kebab_case: bool = False
    """Named as Clojure does it, with - in place of _."""


def phase_uses(source: Source, name: str) -> tuple[PhaseUse, ...]:
    """Every place of a file that names a phase, in the order of the text. What templates in other files say, which the
    file takes in, is not looked at. Raises EditError where such a place is shared through an alias."""
    found: dict[tuple[int, int], PhaseUse] = {}
    asks = _asks(source.data, name)
    for place in places(source.data):
        for key, value in place.data.items():
            field = shape(place.model).get(place.model.SPELLINGS.get(key, key))
            if field is not None:
                for use in _uses(source, place, (*place.path, key), value, field, name, asks=asks):
                    found[use.start, use.end] = use
    return tuple(found[at] for at in sorted(found))


def renamed_phase(source: Source, old: str, new: str) -> str:
    """The file's text with another name for a phase, everywhere. Raises EditError, with nothing changed."""
    if source.format == "dot":
        return renamed_node(source, old, new)
    if is_decomposition(source.data):
        return renamed_task(source, old, new)
    uses = phase_uses(source, old)
    if not any(use.is_definition for use in uses):
        raise EditError(f"there is no phase {old}")
    if not _NAME.fullmatch(new) or scalar(new, in_flow=True) != new:
        raise EditError("a name begins with a letter or _ and goes on with letters, digits, _ and -")
    if new == old:
        raise EditError("that is its name already")
    if new.lower() in SOURCE_KEYWORDS:
        raise EditError(f"{new} means something else in context.from")
    if any(use.is_definition for use in phase_uses(source, new)):
        raise EditError(f"there is a phase {new} already")
    if "-" in new and any(use.in_template for use in uses):
        raise EditError("templates or code name the phase, and there - means minus: use letters, digits and _")
    text, at = [], 0
    for use in uses:
        text += [source.text[at : use.start], new.replace("_", "-") if use.in_kebab_case else new]
        at = use.end
    changed = source.bom + "".join((*text, source.text[at:]))
    again, problems = read_source(changed, source.file)
    if any(problem.severity is Severity.ERROR for problem in problems) or phase_uses(again, old):
        raise EditError(f"{old} cannot be renamed in place")
    if len(phase_uses(again, new)) < len(uses):
        raise EditError(f"{old} cannot be renamed in place: the file would be read differently")
    return changed


def _asks(data: Any, name: str) -> bool:
    """Returns whether the answer of a person to that phase is ``state.<name>``."""
    for place in places(data):
        if place.model is Phase and place.data.get("name") == name:
            tackle = place.data.get("tackle")
            return ASK_HUMAN in tackle if isinstance(tackle, list) else tackle in (ASK_HUMAN, "manifest")
    return False


def _uses(
    source: Source, place: Place, path: Path, value: Any, field: FieldShape, name: str, *, asks: bool
) -> Iterator[PhaseUse]:
    owner: type[Model] = place.model
    if owner is Phase and field.key == "name":
        if value == name:
            yield _scalar_use(source, path, name, is_definition=True)
    elif field.names == "source" or (field.names == "phase" and not field.keys):
        if not (field.names == "source" and name.lower() in SOURCE_KEYWORDS):
            visits = field.names == "source"
            for where in _strings(
                value, path, name, visits=visits, by_name=field.model is None or field.holds == "map"
            ):
                yield _scalar_use(source, where, name)
    elif field.names == "table" and isinstance(value, str):
        yield from _in_code(source, path, value, (BASH, INPUT_TABLE), name)
    elif field.keys == "phase" and isinstance(value, dict) and name in value:
        yield _key_use(source, (*path, name))
    elif (field.template or field.scalars) and owner is not InlineValidator and not _within_validator(place):
        for where, text in texts_of(value, path):
            if not (field.key == "instructions" and text.startswith("@")):
                yield from _in_template(source, where, text, name, asks=asks, condition=field.template == "condition")
    if owner is Phase and field.key == "inputs" and isinstance(value, dict):
        for argument, text in value.items():
            if isinstance(text, str):
                yield from _in_code(source, (*path, argument), text, (str(place.data.get("tool")), argument), name)


def _within_validator(place: Place) -> bool:
    return any(model is Cascade and key == "validators" for model, key in place.within)


def _strings(value: Any, path: Path, name: str, *, visits: bool, by_name: bool) -> Iterator[Path]:
    """The paths of names: the value itself, items of a list, or (``by_name``) values of a mapping. ``visits``: with the
    number of a visit, too, as in ``name#2``.
    """
    wanted = re.compile(re.escape(name) + (r"(?:#\d+)?" if visits else ""))
    if isinstance(value, str):
        items = {path: value}
    elif isinstance(value, list):
        items = {(*path, index): item for index, item in enumerate(value)}
    else:
        items = {(*path, key): item for key, item in value.items()} if by_name and isinstance(value, dict) else {}
    yield from (where for where, item in items.items() if isinstance(item, str) and wanted.fullmatch(item))


def _scalar_use(source: Source, path: Path, name: str, *, is_definition: bool = False) -> PhaseUse:
    spot = source.spot(path)
    if spot is None or spot.shared:
        raise EditError("the name is shared through an alias; change it at the anchor")
    value = _value(source, path)
    offsets = value_offsets(source.text, spot.start, spot.end, spot.style, value, source.format)
    if offsets is None:
        raise EditError(f"the name is written in a form that cannot be changed (line {source.position(spot.start)[0]})")
    end = offsets[len(name)] if len(value) > len(name) else offsets[-1]
    return PhaseUse(offsets[0], end, is_definition=is_definition, plain=not spot.style)


def _value(source: Source, path: Path) -> str:
    value = source.data
    for part in path:
        value = value[part]
    return str(value)


def _key_use(source: Source, path: Path) -> PhaseUse:
    spot = source.spot(path)
    if spot is None or spot.key is None or spot.shared:
        raise EditError("the name is shared through an alias; change it at the anchor")
    start, end = spot.key
    quoted = source.text[start : start + 1] in ("'", '"')
    return PhaseUse(start + quoted, end - quoted, plain=not quoted)


def _in_template(
    source: Source, path: Path, text: str, name: str, *, asks: bool, condition: bool
) -> Iterator[PhaseUse]:
    shift = condition_shift(text) if condition else 0
    wanted: list[tuple[str, ...]] = [("outputs", name), ("state", OUTPUT + name), ("state", DECISION + name)]
    wanted += [("state", key, name) for key in ("human_input", "human_notes")] + ([("state", name)] if asks else [])
    for use in names_used(condition_template(text) if condition else text).uses:
        for keys in wanted:
            if use.path[: len(keys)] == keys:
                yield _template_use(source, path, text, use, shift, keys, name)


def _in_code(source: Source, path: Path, text: str, argument: tuple[str, str], name: str) -> Iterator[PhaseUse]:
    """The places of a query or of code that read the output of the phase."""
    names = [str(place.data.get("name")) for place in places(source.data) if place.model is Phase]
    for use in table_uses(*argument, text, names):
        if use.phase == name:
            offsets = _offsets(source, path, text, text[use.start : use.end])
            kebab = argument[0] == CLOJURE
            yield PhaseUse(offsets[use.start], offsets[use.end], in_template=not kebab, in_kebab_case=kebab)


def _offsets(source: Source, path: Path, text: str, written: str) -> list[int]:
    """The offset in the file of each character of a value."""
    spot = source.spot(path)
    if spot is not None and spot.shared:
        raise EditError("a text that names it is shared through an alias; change it at the anchor")
    style, span = (spot.style, (spot.start, spot.end)) if spot is not None else ("", (0, 0))
    found = value_offsets(source.text, *span, style, text, source.format) if spot is not None else None
    if found is None:
        raise EditError(f"{written} is written in a form that cannot be changed")
    return found


def _template_use(
    source: Source, path: Path, text: str, use: NameUse, shift: int, keys: tuple[str, ...], name: str
) -> PhaseUse:
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: use.line - 1])) + use.column - 1 - (shift if use.line == 1 else 0)
    steps = (rf"(?:\.\s*|\[\s*['\"]){re.escape(key)}(?!\w)" for key in keys[1:])
    accessed = re.compile(rf"{use.root}\s*" + r"(?:['\"]\s*\])?\s*".join(steps)).match(text, max(0, start))
    if accessed is None:
        raise EditError(f"{use.text} is written in a form that cannot be changed")
    offsets = _offsets(source, path, text, use.text)
    begin = accessed.end() - len(name)
    return PhaseUse(offsets[begin], offsets[accessed.end()], in_template=True)
