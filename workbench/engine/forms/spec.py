"""A form as a value: its sections and their layout. The app and the terminal draw it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

import regex
from pydantic import AliasChoices, ConfigDict, Field, ValidationError, field_validator, model_validator

from workbench.language.model.base import DeferredModel

Layout = Literal["vertical", "horizontal", "two-column", "three-column", "grid", "sidebar-left", "sidebar-right"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
MAX_SECTIONS = 60
MAX_OPTIONS = 200
MAX_ROWS = 2000


class _Value(DeferredModel):
    """Frozen; unknown keys are left out, because a model may write more than a form can show."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, str_strip_whitespace=False)


def _also(*names: str) -> Any:
    """A text field that other spellings reach too."""
    return Field(default="", validation_alias=AliasChoices(*names))


class Option(_Value):
    """One answer to choose."""

    id: str = _also("id", "value", "name")
    label: str = _also("label", "title", "name", "id", "value")
    description: str = _also("description", "text", "content")
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()
    facts: Mapping[str, str] = Field(default_factory=dict, validation_alias=AliasChoices("facts", "metadata"))
    image: str = ""
    comment: bool = False
    """Choosing it needs a comment."""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, body: Any) -> Any:
        """A plain value is an option of that name."""
        if isinstance(body, Mapping):
            return {key: _text(value) if key in _TEXTS else value for key, value in body.items()}
        return {"id": _text(body), "label": _text(body)}

    @field_validator("facts", mode="before")
    @classmethod
    def _facts(cls, value: Any) -> Any:
        return {str(key): _text(fact) for key, fact in value.items()} if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _named(self) -> Option:
        if not self.label.strip():
            raise ValueError("an option needs an id or a label")
        return self if self.id else self.model_copy(update={"id": self.label})


_TEXTS = ("id", "value", "name", "label", "title", "description", "text", "content")


class Section(_Value):
    """Fields that all sections have. ``column`` counts from 1; None leaves the place to the layout."""

    type: str
    title: str = ""
    column: int | None = Field(default=None, ge=1, le=4)


class FieldSection(Section):
    """A section that asks for something: the answer stands under its id."""

    id: str = Field(validation_alias=AliasChoices("id", "name", "key"), min_length=1, max_length=80)
    label: str = _also("label", "prompt", "question")
    help: str = _also("help", "hint", "description")
    required: bool = False


class Text(Section):
    """Text as it is."""

    type: Literal["text"] = "text"
    text: str = _also("text", "content")


class Markdown(Section):
    """Text with marks for headings and lists."""

    type: Literal["markdown"] = "markdown"
    text: str = _also("text", "content")


InputKind = Literal["text", "multiline", "number", "integer", "date", "email", "url"]


class Input(FieldSection):
    """A line, or several, typed by the person."""

    type: Literal["input"] = "input"
    kind: InputKind = "text"
    placeholder: str = ""
    default: str | float | None = None
    min: float | None = None
    """Of a number its value, of a text its length."""
    max: float | None = None
    pattern: str = ""
    """A regular expression that the whole text must match."""

    @field_validator("pattern")
    @classmethod
    def _valid(cls, pattern: str) -> str:
        try:
            regex.compile(pattern)
        except regex.error as fault:
            raise ValueError(f"'{pattern}' is not a valid expression: {fault}") from fault
        return pattern


class Select(FieldSection):
    """One of several options."""

    type: Literal["select"] = "select"
    options: tuple[Option, ...] = Field(min_length=1, max_length=MAX_OPTIONS)
    default: str | None = None
    other: bool = False
    """Another answer may be typed."""


class MultiSelect(FieldSection):
    """Any of several options."""

    type: Literal["multi_select"] = "multi_select"
    options: tuple[Option, ...] = Field(min_length=1, max_length=MAX_OPTIONS)
    default: tuple[str, ...] = ()
    min: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=1)


class Confirmation(FieldSection):
    """Yes or no."""

    type: Literal["confirmation"] = "confirmation"
    yes: str = "Yes"
    no: str = "No"
    default: bool | None = None


class Rating(FieldSection):
    """A number from 1 to ``max``, optionally with a label each."""

    type: Literal["rating"] = "rating"
    max: int = Field(default=5, ge=1, le=20)
    labels: tuple[str, ...] = ()
    default: int | None = None


class Image(Section):
    """A picture: of the run by its digest, or a file of the workspace by its path."""

    type: Literal["image"] = "image"
    path: str = _also("path", "src", "url")
    digest: str = ""
    media_type: str = ""
    size: int = 0
    """Bytes; 0 if unknown."""
    width: int = 0
    height: int = 0
    caption: str = ""


class DataTable(FieldSection):
    """Rows and columns; rows can be chosen if ``selectable``. Its answer is a list of rows by column."""

    type: Literal["data_table"] = "data_table"
    id: str = Field(default="rows", validation_alias=AliasChoices("id", "name", "key"), min_length=1, max_length=80)
    columns: tuple[str, ...] = Field(min_length=1, max_length=50)
    rows: tuple[tuple[str, ...], ...] = Field(default=(), max_length=MAX_ROWS)
    selectable: Literal["none", "one", "many"] = "many"

    @model_validator(mode="before")
    @classmethod
    def _rows(cls, body: Any) -> Any:
        """Rows may be lists or objects; cells become text."""
        if not isinstance(body, Mapping) or "rows" not in body or not isinstance(body["rows"], list | tuple):
            return body
        named = body.get("columns") or _keys(body["rows"])
        if not isinstance(named, list | tuple):
            return body
        columns = [str(name) for name in named]
        rows = [
            [_text(row.get(name)) for name in columns] if isinstance(row, Mapping) else [_text(cell) for cell in row]
            for row in body["rows"]
            if isinstance(row, Mapping | list | tuple)
        ]
        filled = [(*row, *[""] * (len(columns) - len(row)))[: len(columns)] for row in rows]
        return {**body, "columns": columns, "rows": filled}

    def row(self, number: int) -> dict[str, str]:
        """A row by its number, from 1."""
        return dict(zip(self.columns, self.rows[number - 1], strict=True))


class Code(Section):
    """Source text; with ``before``, what changed in it."""

    type: Literal["code"] = "code"
    text: str = _also("text", "code", "content")
    before: str = _also("before", "original", "diff_from")
    language: str = ""


class CardGrid(FieldSection):
    """Options as cards with descriptions and facts."""

    type: Literal["card_grid"] = "card_grid"
    options: tuple[Option, ...] = Field(
        min_length=1, max_length=MAX_OPTIONS, validation_alias=AliasChoices("options", "cards", "items")
    )
    multiple: bool = False


class Comparison(FieldSection):
    """Options side by side, with what speaks for and against each."""

    type: Literal["comparison"] = "comparison"
    options: tuple[Option, ...] = Field(
        min_length=1, max_length=12, validation_alias=AliasChoices("options", "items", "choices")
    )


class Panel(_Value):
    """A named part of an accordion or of tabs."""

    title: str = _also("title", "label", "name")
    sections: tuple[AnySection, ...] = ()
    open: bool = False

    @model_validator(mode="before")
    @classmethod
    def _content(cls, body: Any) -> Any:
        """A panel may hold plain text instead of sections."""
        if isinstance(body, Mapping):
            inner = body.get("sections")
            if isinstance(inner, list | tuple):
                return {**body, "sections": [known(section) for section in inner]}
            text = body.get("content") or body.get("text")
            if text is not None:
                return {**body, "sections": [{"type": "markdown", "text": _text(text)}]}
        return body


_PANELS = AliasChoices("panels", "items", "tabs", "sections")


class Accordion(Section):
    """Panels below each other that open and close."""

    type: Literal["accordion"] = "accordion"
    panels: tuple[Panel, ...] = Field(min_length=1, max_length=MAX_SECTIONS, validation_alias=_PANELS)


class Tabs(Section):
    """Panels, one of which is shown at a time."""

    type: Literal["tabs"] = "tabs"
    panels: tuple[Panel, ...] = Field(min_length=1, max_length=MAX_SECTIONS, validation_alias=_PANELS)


AnySection = Annotated[
    Text
    | Markdown
    | Input
    | Select
    | MultiSelect
    | Confirmation
    | Rating
    | Image
    | DataTable
    | Code
    | CardGrid
    | Comparison
    | Accordion
    | Tabs,
    Field(discriminator="type"),
]
TYPES = (
    *("text", "markdown", "input", "select", "multi_select", "confirmation", "rating", "image", "data_table"),
    *("code", "card_grid", "comparison", "accordion", "tabs"),
)


class Form(_Value):
    """The questions that a person is asked at once."""

    title: str = ""
    layout: Layout = "vertical"
    sections: tuple[AnySection, ...] = Field(min_length=1, max_length=MAX_SECTIONS)
    comment: Literal["none", "optional", "required"] = "optional"
    """Whether a remark beside the answers is allowed or required."""

    @model_validator(mode="before")
    @classmethod
    def _known(cls, body: Any) -> Any:
        if not isinstance(body, Mapping):
            return body
        layout = str(body.get("layout") or "vertical").replace("_", "-")
        sections = body.get("sections")
        shown = [known(section) for section in sections] if isinstance(sections, list | tuple) else sections
        return {**body, "layout": layout, "sections": shown}

    @model_validator(mode="after")
    def _once(self) -> Form:
        ids = [field.id for field in fields_of(self)]
        twice = next((id for id in ids if ids.count(id) > 1), None)
        if twice is not None:
            raise ValueError(f"two sections have the id '{twice}'")
        if "comment" in ids:
            raise ValueError("no section may have the id 'comment': that is the person's remark")
        options = (option for field in fields_of(self) for option in getattr(field, "options", ()))
        if self.comment == "none" and any(option.comment for option in options):
            return self.model_copy(update={"comment": "optional"})  # Without one it could not be answered.
        return self

    def to_json(self) -> dict[str, Any]:
        """The journal's form; empty fields are left out."""
        return dict(_typed(self, self.model_dump(mode="json", exclude_defaults=True)))

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Form:
        """Read a form. Raises FormInvalid, in words, with the place of the first mistake."""
        try:
            return cls.model_validate(body)
        except ValidationError as fault:
            first = fault.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"] if step not in TYPES)
            raise FormInvalid(f"{where}: {first['msg']}" if where else first["msg"]) from fault
        except RecursionError as fault:
            raise FormInvalid("the sections are nested too deeply") from fault


class FormInvalid(ValueError):
    """The value is no valid form."""


def known(section: Any) -> Any:
    """A section of a known type; a section of an unknown type as text, so that its content is kept."""
    if isinstance(section, Section) or not isinstance(section, Mapping) or section.get("type") in TYPES:
        return section
    spelled = str(section.get("type", "")).replace("-", "_").lower()
    if spelled in TYPES:
        return {**section, "type": spelled}
    return {"type": "text", "text": json.dumps(section, ensure_ascii=False, indent=2, default=str)}


def walk(sections: tuple[AnySection, ...]) -> Iterator[AnySection]:
    """All sections, those inside panels too, in the order in which they are read."""
    for section in sections:
        yield section
        if isinstance(section, Accordion | Tabs):
            for panel in section.panels:
                yield from walk(panel.sections)


def fields_of(form: Form) -> tuple[FieldSection, ...]:
    """The sections that ask for something."""
    return tuple(
        section
        for section in walk(form.sections)
        if isinstance(section, FieldSection) and not (isinstance(section, DataTable) and section.selectable == "none")
    )


def _typed(value: Any, body: Any) -> Any:
    """A section's type is its default, so that leaving defaults out takes it away: put it back."""
    if isinstance(value, _Value) and isinstance(body, dict):
        for name in body:
            body[name] = _typed(getattr(value, name), body[name])
        if isinstance(value, Section):
            body["type"] = value.type
    elif isinstance(value, tuple) and isinstance(body, list):
        return [_typed(inner, outer) for inner, outer in zip(value, body, strict=True)]
    return body


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _keys(rows: Any) -> list[str]:
    """The columns of rows that are objects, in the order in which they come up."""
    return list(dict.fromkeys(str(key) for row in rows if isinstance(row, Mapping) for key in row))
