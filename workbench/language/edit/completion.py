"""For an editor: the text that can be written at the cursor, and the meaning of the field under it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct, field

from workbench.language.dot.cursor import offers, position_at, row_at
from workbench.language.edit import tasks
from workbench.language.edit.cursor import ITEM, Cursor, cursor_at
from workbench.language.lint.environment import LintEnvironment
from workbench.language.lint.texts import COMMON, EXTRA
from workbench.language.load import Loaded
from workbench.language.model.base import Model
from workbench.language.model.cascade import LAST_ERROR, Cascade, Phase
from workbench.language.model.context import SOURCE_KEYWORDS, SOURCE_SHORTHANDS
from workbench.language.model.schema import field_schema, type_words
from workbench.language.model.shape import FieldShape, shape
from workbench.language.read.names import path_used_here
from workbench.language.read.source import Format
from workbench.language.tables import table_name
from workbench.language.templates.names import FILTERS
from workbench.language.words import ASK_HUMAN

_Language = Literal["key", "value", "phase", "tool", "validator", "model", "name", "filter", "file"]
_Sql = Literal["table", "column", "function", "keyword"]
Kind = _Language | _Sql


class Item(Struct, frozen=True):
    """One thing that may stand at the cursor."""

    text: str
    """The text that is shown and matched."""
    kind: Kind
    detail: str = ""
    """Its type or origin, in a few words."""
    insert: str = ""
    """The inserted text, with ``\\n`` and the further indentation as spaces; ``text`` itself if empty."""
    about: str = ""
    """What it means."""


class Completion(Struct, frozen=True):
    """A text that may replace the characters from ``start`` to ``end`` of the text."""

    start: int
    end: int
    typed: str
    items: tuple[Item, ...] = ()


class FieldHelp(Struct, frozen=True):
    """The field under the cursor."""

    path: str
    """As a person writes it: ``phases[].rules.max_turns``."""
    type: str
    default: str
    description: str
    choices: tuple[str, ...] = ()
    tier: str = ""


class Names(Struct, frozen=True):
    """The names that a file and what lies around it offer; each with a few words about it."""

    phases: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    validators: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)


def names_of(loaded: Loaded, around: LintEnvironment) -> Names:
    """Returns the names that a file offers; of a file with errors, those that could be read."""
    cascade = loaded.cascade or loaded.draft
    phases = {name: f"line {line}" for name, line in loaded.outline}
    tools = {name: around.needs(name) or facts.kind for name, facts in (around.tools or {}).items()}
    validators = {name: facts.description or facts.kind for name, facts in (around.validators or {}).items()}
    if cascade is None:
        return Names(phases, tools, validators)
    validators |= dict.fromkeys(cascade.validators or {}, "in this file")
    models = {phase.model: "in this file" for phase in cascade.phases if phase.model}
    return Names(phases, tools, validators, models, dict(cascade.inputs_schema), dict(_state(cascade)))


def _state(cascade: Cascade) -> Iterator[tuple[str, str]]:
    """Keys of the state that a run of the file sets by itself."""
    for phase in cascade.phases:
        yield f"output_{phase.name}", f"output of {phase.name}"
        if phase.output_extraction is not None:
            yield phase.output_extraction.store_as, f"extracted by {phase.name}"
        if phase.output_schema is not None:
            yield "validated_output", f"set by {phase.name}"
        if phase.deterministic:
            yield LAST_ERROR, "how the last tool that failed did"
        if ASK_HUMAN in phase.tools:
            yield phase.name, f"answer of a person to {phase.name}"


def field_help(text: str, offset: int, form: Format) -> FieldHelp | None:
    """The meaning of the field at an offset; None if there is none."""
    if form == "dot":
        return _attribute_help(text, offset)
    cursor = cursor_at(text, _behind_indent(text, offset), form)
    path = cursor.target
    while path and path[-1] == ITEM:
        path = path[:-1]
    if tasks.is_task_text(text):
        return _task_help(path)
    stand = position_of(path)
    if stand is None or stand.field is None or stand.owner is None:
        return None
    found, schema = stand.field, field_schema(stand.owner, stand.field.key)
    return FieldHelp(
        _written(path),
        type_words(schema),
        _default(schema.get("default")),
        found.description,
        found.choices,
        found.tier,
    )


def _behind_indent(text: str, offset: int) -> int:
    """An offset in the indentation of a line, or on the dashes of an item, moved to the words behind: a line that is
    gone to is read as what it says."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[start : len(text) if end < 0 else end]
    words = line.lstrip(" -")
    return max(offset, start + len(line) - len(words)) if words else offset


def _task_help(path: tuple[str, ...]) -> FieldHelp | None:
    found = tasks.field_of(path)
    if found is None:
        return None
    return FieldHelp(_written(path), found.type, _default(found.default), found.description, found.choices)


def _default(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _attribute_help(text: str, offset: int) -> FieldHelp | None:
    found = row_at(text, offset)
    if found is None:
        return None
    row, scope = found
    also = f" Also: {', '.join((*row.also, *row.dialects))}." if row.also or row.dialects else ""
    return FieldHelp(f"{scope}.{row.name}", row.kind, row.default, row.about + also, row.choices)


def _written(path: Iterable[str]) -> str:
    text = ""
    for part in path:
        text += part if part == ITEM or not text else f".{part}"
    return text


def complete(text: str, offset: int, form: Format, names: Names) -> Completion:
    """Returns the completions at an offset, the best first: those that begin with the typed word, then those that hold
    it."""
    if form == "dot":
        at = position_at(text, offset)
        found = offers(at, names.phases, names.tools, names.models)
        offered = (Item(one.text, one.kind, one.detail, one.insert) for one in found)
        return _matching(at.start, offset, at.typed, offered)
    cursor = cursor_at(text, offset, form)
    if tasks.is_task_text(text):
        return _complete_task(cursor, text, offset, form, names)
    template = _in_template(cursor)
    if template is not None:
        word, items = template, _template_items(cursor, template, names)
        return _matching(offset - len(word.rpartition(".")[2]), offset, word.rpartition(".")[2], items)
    if cursor.slot == "text":
        return Completion(offset, offset, "")
    items = _key_items(cursor, text, form, names) if cursor.slot == "key" else _value_items(cursor, form, names)
    return _at_cursor(cursor, text, form, items)


def _complete_task(cursor: Cursor, text: str, offset: int, form: Format, names: Names) -> Completion:
    """The same in a decomposition."""
    ids = tasks.task_names(text, names.phases, form)
    if (begun := tasks.open_placeholder(cursor)) is not None:
        items = [Item(one.text, one.kind, one.detail) for one in tasks.placeholder_offers(ids)]
        return _matching(offset - len(begun), offset, begun, items)
    if cursor.slot == "text":
        return Completion(offset, offset, "")
    if cursor.slot == "key":
        colon = text[cursor.end :].lstrip(" \"'")[:1] == ":" and bool(cursor.key)
        quote, after = '"' if form == "json" else "", "" if colon else ": "
        items = [
            Item(one.text, one.kind, one.detail, f"{quote}{one.text}{quote}{after}") for one in tasks.key_offers(cursor)
        ]
    else:
        found = tasks.value_offers(cursor.path, ids, names.tools, names.models)
        items = [
            Item(one.text, one.kind, one.detail, f'"{one.text}"' if form == "json" and one.is_text else one.text)
            for one in found
        ]
    return _at_cursor(cursor, text, form, items)


def _at_cursor(cursor: Cursor, text: str, form: Format, items: Iterable[Item]) -> Completion:
    """Returns the completions that match the word at the cursor, quotes included where the language writes them."""
    start = cursor.start + len(cursor.quote) if form == "yaml" else cursor.start
    end = cursor.end
    if form == "json" and cursor.quote and text[end : end + 1] == cursor.quote:
        end += 1
    return _matching(start, end, cursor.typed.strip(), items)


def _matching(start: int, end: int, typed: str, items: Iterable[Item]) -> Completion:
    """The things whose name holds what is typed. If none does, those whose meaning has a word that begins so, from
    three letters on: an author who looks for checks need not know that they are called wards."""
    wanted, known = typed.casefold(), tuple(items)
    ranked = [
        (0 if name.startswith(wanted) else 1, at, item)
        for at, item in enumerate(known)
        if wanted in (name := item.text.casefold())
    ]
    found = tuple(item for _, _, item in sorted(ranked, key=lambda entry: entry[:2]))
    if not found and len(wanted) > 2:
        found = tuple(item for item in known if any(w.startswith(wanted) for w in item.about.casefold().split()))
    return Completion(start, end, typed, found)


# -- where a path leads ----------------------------------------------------------------------------------------------


class SchemaPosition(Struct, frozen=True):
    """The schema of the language at a path."""

    owner: type[Model] | None
    """The mapping that has the field."""
    field: FieldShape | None
    inside: type[Model] | None
    """The mapping whose keys are allowed below."""
    open: Literal["", "list", "map"] = ""
    """Items of a list, or names of a mapping, lead on to ``inside``."""


def position_of(path: Iterable[str]) -> SchemaPosition | None:
    """The field to which a path of keys leads; None if the language does not know the path."""
    at = SchemaPosition(None, None, Cascade)
    for part in path_used_here(path):
        if at.field is not None and (at.open or at.inside is None):
            at = SchemaPosition(at.owner, at.field, at.inside)
            continue
        if at.inside is None or part == ITEM:
            return None
        model = at.inside
        found = shape(model).get(model.SPELLINGS.get(part, part))
        if found is None:
            return None
        holds = found.holds if found.model is not None and found.holds != "one" else ""
        at = SchemaPosition(model, found, found.model, holds)
    return at


# -- items -----------------------------------------------------------------------------------------------------------


def _key_items(cursor: Cursor, text: str, form: Format, names: Names) -> Iterator[Item]:
    stand = position_of(cursor.path)
    if stand is None:
        return
    if stand.open == "map" or (stand.inside is None and cursor.path[-1:] != (ITEM,)):
        yield from _names_for(stand, names, keys=True)
        return
    if cursor.path[-1:] == (ITEM,) and not cursor.written and _begins_item(cursor, text):
        yield from _plain_values(stand, names)
    if stand.inside is None or stand.open == "list":
        return
    colon = text[cursor.end :].lstrip(" \"'")[:1] == ":" and bool(cursor.key)
    required = _required(stand.inside)
    for key, found in sorted(shape(stand.inside).items(), key=lambda pair: pair[0] not in required):
        if key not in cursor.written:
            words = type_words(field_schema(stand.inside, key))
            yield Item(key, "key", words, _key_text(found, words, form, finished=colon), found.description)


def _begins_item(cursor: Cursor, text: str) -> bool:
    """Returns whether the word is the first behind the dash of an item: it may be a name that is the whole item."""
    return text[: cursor.start].rstrip(" ").endswith("-")


def _required(model: type[Model]) -> frozenset[str]:
    """The keys that a mapping must have; of a phase, those that nearly all have."""
    if model is Phase:
        return frozenset({"name", "instructions"})
    return frozenset(info.alias or name for name, info in model.model_fields.items() if info.is_required())


def _key_text(found: FieldShape, words: str, form: Format, *, finished: bool) -> str:
    """A key with what follows it: a colon, and the beginning of what stands below."""
    if form == "json":
        return f'"{found.key}"' if finished else f'"{found.key}": '
    if finished:
        return found.key
    if found.model is not None and not found.choices and not words.startswith("text or "):
        return f"{found.key}:\n  " + ("- " if found.holds == "list" else "")
    if words.startswith("list of"):
        return f"{found.key}:\n  - "
    return f"{found.key}: "


def _value_items(cursor: Cursor, form: Format, names: Names) -> Iterator[Item]:
    stand = position_of(cursor.path)
    if stand is None or stand.field is None or stand.owner is None:
        return
    for item in _plain_values(stand, names):
        written = item.insert or item.text
        quoted = form == "json" and item.detail != "bool"
        yield Item(item.text, item.kind, item.detail, f'"{written}"' if quoted else written)


def _plain_values(stand: SchemaPosition, names: Names) -> Iterator[Item]:
    assert stand.owner is not None
    assert stand.field is not None
    schema = field_schema(stand.owner, stand.field.key)
    for choice in stand.field.choices:
        note = "default" if schema.get("default") == choice else ""
        yield Item(choice, "value", note)
    yield from _names_for(stand, names)
    if "bool" in type_words(schema).split(" or "):
        yield from (Item("true", "value", "bool"), Item("false", "value", "bool"))


def _names_for(stand: SchemaPosition, names: Names, *, keys: bool = False) -> Iterator[Item]:
    """Names that a field may hold, or that its keys may be."""
    assert stand.field is not None
    named, after = (stand.field.keys, ": ") if keys else (stand.field.names, "")
    if named == "source":
        yield from (Item(word, "value", "keyword") for word in SOURCE_KEYWORDS if word not in SOURCE_SHORTHANDS)
    if named in ("phase", "source"):
        yield from _named(names.phases, "phase", after)
    elif named == "table":
        yield from (Item(table_name(name), "phase", words) for name, words in names.phases.items())
    elif named == "tool":
        yield from _named(names.tools, "tool", after)
    elif named == "validator":
        yield from _named(names.validators, "validator", after)
    elif named == "model":
        yield from _named(names.models, "model", after)


def _named(found: Mapping[str, str], kind: Kind, after: str = "") -> Iterator[Item]:
    for name, words in found.items():
        yield Item(name, kind, words, name + after if after else "")


# -- templates -------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[\w.]*\Z")
_ABOUT = {
    "input": "the input of the run",
    "state": "what the run has set",
    "outputs": "outputs of phases that ran",
    "lineage": "the phases so far",
    "history": "the messages so far",
    "turn": "number of this turn",
    "attempt": "number of this attempt",
}


def _in_template(cursor: Cursor) -> str | None:
    """The unfinished name in an open ``{{`` or ``{%``; None outside of a template."""
    stand = position_of(cursor.path)
    if stand is None or stand.field is None or cursor.slot == "key":
        return None
    before = cursor.before
    opened = max(before.rfind("{{"), before.rfind("{%"))
    closed = max(before.rfind("}}"), before.rfind("%}"))
    bare = stand.field.template == "condition" and opened < 0
    if not bare and (opened < 0 or closed > opened or not (stand.field.template or stand.field.scalars)):
        return None
    found = _NAME.search(before)
    return found.group() if found else ""


def _template_items(cursor: Cursor, word: str, names: Names) -> Iterator[Item]:
    root, dotted, _ = word.partition(".")
    if dotted:
        below = {"outputs": names.phases, "input": names.inputs, "state": names.state}.get(root, {})
        if word.count(".") == 1:
            yield from _named(below, "name")
        return
    if cursor.before[: len(cursor.before) - len(word)].rstrip().endswith("|"):
        yield from (Item(name, "filter") for name in sorted(FILTERS))
        return
    stand = position_of(cursor.path)
    key = stand.field.key if stand is not None and stand.field is not None else ""
    for name in sorted(COMMON | EXTRA.get(key, frozenset()), key=lambda name: (name not in _ABOUT, name)):
        yield Item(name, "name", _ABOUT.get(name, ""))
