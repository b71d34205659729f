"""Every template of a cascade, with the names that it is given when it is rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from workbench.language.lint.place import PhaseAt, Places
from workbench.language.model.base import Model
from workbench.language.model.candidates import LATER_TEMPLATE_NAMES, InlineValidator
from workbench.language.model.cascade import Cascade, DecisionPoints, DecisionRoute, HumanInput, Narrator, Phase
from workbench.language.model.context import Callouts
from workbench.language.model.flow import AsyncCascade, ForEachRow, Rules, SubCascade
from workbench.language.model.shape import shape
from workbench.language.problem import Path, TextSpan
from workbench.language.templates.template import CONDITION_SHIFT, condition_template

COMMON = frozenset(
    [
        "input",
        "state",
        "outputs",
        "lineage",
        "history",
        "sounding_index",
        "sounding_factor",
        "is_sounding",
        *LATER_TEMPLATE_NAMES,
    ]
)
"""The names that every template is given."""
EXTRA: Mapping[str, frozenset[str]] = {
    "turn_prompt": frozenset({"turn", "max_turns"}),
    "retry_instructions": frozenset({"validation_error", "schema_error", "attempt", "max_attempts"}),
}
"""The names that single fields are given besides."""
PAGE_NAMES = frozenset({"session_id", "cascade_id", "checkpoint_id", "submit_button", "route_button", "tabs"})
"""The names that a page of a phase is given besides."""


class TemplateText(Struct, frozen=True):
    """One template."""

    path: Path
    text: str
    field: str
    """Name of the field that holds it."""
    phase: PhaseAt | None = None
    """The phase it belongs to."""
    names: frozenset[str] = COMMON
    after: bool = False
    """Rendered when the phase, or the whole run, is done: its own output is there."""
    open_names: bool = False
    """It may be given names that are not listed here."""
    condition: bool = False
    validator: bool = False
    """Of an inline validator, which is a run of its own."""
    file: str = ""
    """The file that holds it, if it is not the cascade."""

    @property
    def template(self) -> str:
        """The text to render."""
        return condition_template(self.text) if self.condition else self.text

    def span(self, place: Places, line: int, column: int, length: int = 1) -> TextSpan | None:
        """The place in the cascade of a position in the template; None if the template stands in another file."""
        if self.file:
            return None
        if self.template != self.text and line == 1:
            column -= CONDITION_SHIFT
        return place.source.inner_span(place.written(self.path), line, column, length)


def texts(
    cascade: Cascade, phases: Iterable[PhaseAt], read: Callable[[str], str | None] | None
) -> Iterator[TemplateText]:
    """The templates of the phases, the cascade itself and its validators; a missing file gives none."""
    for at in phases:
        for text in _of(at.phase, at.path, at):
            yield from _included(text, read)
    yield from _of(cascade, (), None)


def included_file(text: TemplateText) -> str:
    """The file that ``instructions: @file`` names; empty for a template written in place."""
    is_file = text.field == "instructions" and text.phase is not None and text.text.startswith("@")
    return text.text[1:].strip() if is_file else ""


def _included(text: TemplateText, read: Callable[[str], str | None] | None) -> Iterator[TemplateText]:
    file = included_file(text)
    if not file:
        yield text
        return
    inside = read(file) if read is not None else None
    if inside is not None:
        yield TemplateText(text.path, inside, text.field, text.phase, file=file)


def _of(model: Model, path: Path, at: PhaseAt | None) -> Iterator[TemplateText]:
    for key, field in shape(type(model)).items():
        value = getattr(model, field.attribute)
        if field.attribute not in model.model_fields_set or value is None:
            continue
        here = (*path, key)
        if field.template or (key == "input_map" and isinstance(model, SubCascade | AsyncCascade)):
            for where, text in _strings(value, here):
                if field.template or "{{" in text:
                    yield _text(model, key, where, text, at, condition=field.template == "condition")
        elif field.model not in (None, Phase, Narrator):
            for where, below in _models(value, here):
                yield from _of(below, where, at)


def _text(model: Model, key: str, path: Path, text: str, at: PhaseAt | None, *, condition: bool) -> TemplateText:
    person = isinstance(model, HumanInput | DecisionPoints | DecisionRoute)
    names = COMMON | (EXTRA.get(key, frozenset()) if isinstance(model, Rules) else frozenset())
    if isinstance(model, Phase) and key == "htmx":
        names |= PAGE_NAMES
    if isinstance(model, Callouts):
        names |= {"turn"}
    if isinstance(model, ForEachRow):
        names |= {"row", "row_index"}
    return TemplateText(
        path,
        text,
        key,
        at,
        names,
        after=at is None or person or isinstance(model, Callouts),
        open_names=person,
        condition=condition,
        validator=isinstance(model, InlineValidator),
    )


def _strings(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, tuple):
        yield from (((*path, i), item) for i, item in enumerate(value) if isinstance(item, str))
    elif isinstance(value, Mapping):
        yield from (((*path, key), item) for key, item in value.items() if isinstance(item, str))
        for key, item in value.items():
            if isinstance(item, dict | list):
                yield from _strings(tuple(item) if isinstance(item, list) else item, (*path, key))


def _models(value: object, path: Path) -> Iterator[tuple[Path, Model]]:
    if isinstance(value, Model):
        yield path, value
    elif isinstance(value, tuple):
        yield from (((*path, i), item) for i, item in enumerate(value) if isinstance(item, Model))
    elif isinstance(value, Mapping):
        yield from (((*path, key), item) for key, item in value.items() if isinstance(item, Model))
