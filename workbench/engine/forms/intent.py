"""From a question to a form by rules: how much of a form it needs, and the template for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from workbench.engine.forms.spec import (
    LAYOUTS,
    AnySection,
    CardGrid,
    Code,
    Comparison,
    Confirmation,
    DataTable,
    Form,
    Image,
    Input,
    Layout,
    Markdown,
    MultiSelect,
    Option,
    Panel,
    Rating,
    Select,
    Tabs,
)

Level = Literal["low", "medium", "high"]
ANSWER = "answer"
"""Id of the one answer that a template asks for."""

_HIGH_HINTS = frozenset({"custom", "dashboard", "complex", "generated", "rich", "wizard"})
_ROW_HINTS = frozenset({"data_review", "data_table", "select_rows", "table", "rows"})
_MULTI_HINTS = frozenset({"multi_select", "multi_choice", "multi", "multiple", "checkbox", "checkboxes"})
_YES_NO_HINTS = frozenset({"confirmation", "confirm", "yes_no", "approval"})
_LAYOUT_WORDS: Mapping[str, Layout] = {"sidebar": "sidebar-left", "columns": "two-column", "stacked": "vertical"}


class QuestionContent(Struct, frozen=True):
    """A question with what goes with it, before it is a form."""

    question: str
    context: str = ""
    images: tuple[Image, ...] = ()
    data: Any = None
    """JSON: a table, several by name, code, or anything else."""
    options: tuple[Option, ...] = ()
    ui_hint: str = ""
    layout_hint: str = ""
    instructions: str = ""
    """Further instructions for the generator of a form; any text here lets a model write the form."""

    @property
    def hint(self) -> str:
        return self.ui_hint.strip().lower().replace("-", "_").replace(" ", "_")


class Intent(Struct, frozen=True):
    """How much of a form a question needs, and what says so."""

    level: Level
    why: str


def intent_of(asked: QuestionContent) -> Intent:
    """``low``: words and plain choices; ``medium``: one or two sorts of content; ``high``: more, or as hints say."""
    if asked.instructions:
        return Intent("high", "instructions for the generator are given")
    if asked.hint in _HIGH_HINTS:
        return Intent("high", f"ui_hint {asked.ui_hint}")
    found = {
        "images": bool(asked.images),
        "data": asked.data is not None,
        "options": bool(asked.options),
    }
    content = [name for name, there in found.items() if there]
    if len(content) == 3:
        return Intent("high", "images, data and options together")
    if asked.data is not None and not _shown(asked.data, "data", chosen=False):
        return Intent("high", "the data is neither a table nor text nor code")
    rich = any(_is_rich(option) for option in asked.options)
    if asked.images or asked.data is not None or rich or len(asked.options) > 6 or asked.layout_hint:
        return Intent("medium", " and ".join(content) or f"layout_hint {asked.layout_hint}")
    return Intent("low", "plain options" if asked.options else "words alone")


def template(asked: QuestionContent) -> Form:
    """The form that the rules make of a question."""
    answer = _answer(asked)
    picks_rows = asked.hint in _ROW_HINTS or answer is None
    data = _shown(asked.data, "rows", chosen=picks_rows)
    if answer is None and not any(isinstance(section, DataTable) and section.selectable != "none" for section in data):
        answer = Input(id=ANSWER, label="Your answer", kind="multiline", required=True)
    sections: list[AnySection] = []
    if asked.context.strip():
        sections.append(Markdown(text=asked.context))
    sections += asked.images
    sections += data
    if answer is not None:
        sections.append(answer)
    return Form(title=asked.question, layout=_layout(asked), sections=tuple(sections))


def _answer(asked: QuestionContent) -> AnySection | None:
    """The section that takes the answer; None if the data's section, or the last resort, takes it."""
    options, hint = asked.options, asked.hint
    if options and (hint == "comparison" or any(option.pros or option.cons for option in options)):
        return Comparison(id=ANSWER, label="Choose one", options=options[:12], required=True)
    if options and hint in _MULTI_HINTS:
        return MultiSelect(id=ANSWER, label="Choose", options=options, required=True)
    if options and (hint in ("cards", "card_grid") or any(_is_rich(option) for option in options)):
        return CardGrid(id=ANSWER, label="Choose one", options=options, required=True)
    if options:
        return Select(id=ANSWER, label="Choose one", options=options, required=True)
    if hint in _YES_NO_HINTS:
        return Confirmation(id=ANSWER, label="Is this all right?", required=True)
    if hint.startswith("rating"):
        most = hint.removeprefix("rating").strip("_:")
        return Rating(id=ANSWER, label="Your rating", required=True, max=min(20, int(most)) if most.isdigit() else 5)
    return None


def _is_rich(option: Option) -> bool:
    return bool(option.description or option.pros or option.cons or option.facts or option.image)


def is_layout(hint: str) -> bool:
    """Returns whether a layout is known by this name."""
    return _named_layout(hint) is not None


def _named_layout(hint: str) -> Layout | None:
    wanted = hint.strip().lower().replace("_", "-")
    return _LAYOUT_WORDS.get(wanted) or next((layout for layout in LAYOUTS if layout == wanted), None)


def _layout(asked: QuestionContent) -> Layout:
    return _named_layout(asked.layout_hint) or ("sidebar-left" if asked.images else "vertical")


def _shown(data: Any, id: str, *, chosen: bool) -> list[AnySection]:
    """The sections that show data; empty if the templates do not know its shape. ``chosen``: rows can be picked."""
    if data is None:
        return []
    if isinstance(data, str):
        return [Code(text=data)] if "\n" in data else [Markdown(text=data)]
    if (table := table_of(data, id)) is not None:
        picks: Literal["none", "many"] = "many" if chosen else "none"
        return [table.model_copy(update={"selectable": picks, "label": "Choose rows" if chosen else ""})]
    if not isinstance(data, Mapping):
        return []
    if isinstance(text := data.get("code", data.get("after")), str):
        before = data.get("before", data.get("original", ""))
        return [Code(text=text, before=str(before or ""), language=str(data.get("language", "")))]
    tables = {str(name): table_of(value, f"{id}_{number}") for number, (name, value) in enumerate(data.items(), 1)}
    if tables and all(table is not None for table in tables.values()):
        still = {name: table.model_copy(update={"selectable": "none"}) for name, table in tables.items() if table}
        return [Tabs(panels=tuple(Panel(title=name, sections=(table,)) for name, table in still.items()))]
    if data and all(not isinstance(value, Mapping | list) for value in data.values()):
        rows = tuple((str(key), value if isinstance(value, str) else json.dumps(value)) for key, value in data.items())
        return [DataTable(id=id, columns=("Name", "Value"), rows=rows, selectable="none")]
    return []


def table_of(value: Any, id: str = "rows") -> DataTable | None:
    """A table, if the JSON is one: ``{"columns", "rows"}``, or a list of objects."""
    if isinstance(value, Mapping) and isinstance(value.get("rows"), list) and value["rows"]:
        body = {"id": id, "columns": value.get("columns"), "rows": value["rows"]}
    elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        body = {"id": id, "rows": value}
    else:
        return None
    try:
        return DataTable.model_validate(body)
    except ValueError:
        return None


def options_of(value: Any) -> tuple[Option, ...]:
    """Options as the caller wrote them: texts, or objects with an id, a label, a description, pros and cons. Raises
    ValueError in words if one cannot be read.
    """
    if value is None or value == "":
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError("'options' must be a list")
    try:
        found = tuple(Option.model_validate(option) for option in value)
    except ValueError as fault:
        raise ValueError(f"'options': {_first(fault)}") from fault
    ids = [option.id for option in found]
    return tuple(
        option if ids.count(option.id) == 1 else option.model_copy(update={"id": f"{option.id}_{number}"})
        for number, option in enumerate(found, 1)
    )


def _first(fault: ValueError) -> str:
    errors = getattr(fault, "errors", None)
    return str(errors()[0]["msg"]) if callable(errors) else str(fault)


def with_found(asked: QuestionContent, images: tuple[Image, ...], table: Any) -> QuestionContent:
    """The question's content, with data that the visit made if the question brings none."""
    return replace(
        asked,
        images=asked.images or images,
        data=asked.data if asked.data is not None else table,
    )
