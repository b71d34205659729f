"""Reads what a person gave a form, by the rules of its sections; the one place that says whether an answer fits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import regex
from msgspec import Struct, field

from workbench.engine.forms.spec import (
    CardGrid,
    Comparison,
    Confirmation,
    DataTable,
    FieldSection,
    Form,
    Input,
    MultiSelect,
    Option,
    Rating,
    Select,
    fields_of,
)
from workbench.json_text import as_value

COMMENT = "comment"
PATTERN_SECONDS = 1.0
_YES = frozenset({"yes", "y", "true", "1", "ok", "okay", "approve", "approved"})
NO = frozenset({"no", "n", "false", "0", "reject", "rejected", "cancel", "abort"})
"""First words that decline."""


class FormAnswers(Struct, frozen=True):
    """The answers of a form by the ids of its sections; skipped sections are absent."""

    values: Mapping[str, Any] = field(default_factory=dict)
    comment: str = ""

    def to_text(self) -> str:
        """The JSON that a model sees."""
        return json.dumps({"values": dict(self.values), "comment": self.comment or None}, ensure_ascii=False)


class AnswerRefused(ValueError):
    """An answer that does not fit its form. ``problems`` say why, by the id of the section (``comment`` included)."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        super().__init__("; ".join(f"{id}: {problem}" if id else problem for id, problem in problems.items()))


def read_answer(form: Form, text: str) -> FormAnswers:
    """Read an answer as people, files and the app give it. Raises AnswerRefused.

    ``{"values": {…}, "comment": …}``, or the values alone; for a form with one question the bare answer: ``yes, but
    shorter``, ``2``, ``["a", "b"]``.
    """
    values, comment = _split(form, text)
    return check_values(form, values, comment)


def check_values(form: Form, given: Mapping[str, Any], comment: str = "") -> FormAnswers:
    """Read the answers of all sections. Raises AnswerRefused with everything that is wrong."""
    asked = {section.id: section for section in fields_of(form)}
    known = f"there are {', '.join(asked)}" if asked else "nothing is asked"
    problems = {id: f"there is no such question; {known}" for id in given if id not in asked}
    values: dict[str, Any] = {}
    needs_comment: list[str] = []
    for id, section in asked.items():
        try:
            value = _answer(section, given.get(id))
        except ValueError as fault:
            problems[id] = str(fault)
            continue
        if value is None:
            continue
        values[id] = value
        needs_comment += [option.label for option in chosen(section, values[id]) if option.comment]
    if needs_comment and not comment.strip():
        problems[COMMENT] = f"'{needs_comment[0]}' needs a comment"
    if form.comment == "required" and not comment.strip():
        problems[COMMENT] = "a comment is needed"
    if problems:
        raise AnswerRefused(problems)
    return FormAnswers(values, comment.strip())


def check_value(section: FieldSection, raw: Any) -> str:
    """Describes the fault of one answer; empty if it is valid."""
    try:
        _answer(section, raw)
    except ValueError as fault:
        return str(fault)
    return ""


def _answer(section: FieldSection, raw: Any) -> Any:
    """The value of one answer; None if there is none, as for an empty list of options. Raises ValueError."""
    value = None if _blank(raw) else _value(section, raw)
    if not _blank(value):
        return value
    if section.required:
        raise ValueError("an answer is needed")
    return None


def chosen(section: FieldSection, value: Any) -> list[Option]:
    """The options behind a value."""
    if not isinstance(section, Select | MultiSelect | CardGrid | Comparison):
        return []
    picked = value if isinstance(value, list) else [value]
    return [option for option in section.options if option.id in picked]


def _split(form: Form, text: str) -> tuple[Mapping[str, Any], str]:
    fields = fields_of(form)
    body = as_value(text)
    if isinstance(body, dict) and isinstance(body.get("values"), dict):
        return body["values"], str(body.get(COMMENT) or "")
    if isinstance(body, dict) and (not fields or any(key in {f.id for f in fields} for key in body)):
        comment = str(body.get(COMMENT) or "")
        return {key: value for key, value in body.items() if key != COMMENT}, comment
    required = [section for section in fields if section.required]
    single = fields if len(fields) == 1 else required if len(required) == 1 else fields[:1]
    if not fields:
        return {}, text.strip()
    if len(fields) > 1 and len(required) > 1:
        raise AnswerRefused({"": f"the form asks for {', '.join(f.id for f in fields)}: give them by name"})
    section = single[0]
    if isinstance(section, Confirmation):
        first, _, rest = text.strip().partition(" ")
        if _decided(first) is not None:
            return {section.id: first}, rest.strip(" ,.:;-")
    return {section.id: body if isinstance(body, list | bool | int | float) else text}, ""


def _blank(raw: Any) -> bool:
    return raw is None or (isinstance(raw, str) and not raw.strip()) or (isinstance(raw, list | tuple) and not raw)


def _value(section: FieldSection, raw: Any) -> Any:
    """The answer in the type of its section. Raises ValueError in words."""
    match section:
        case Input():
            return _typed(section, raw)
        case Confirmation():
            decided = raw if isinstance(raw, bool) else _decided(str(raw), section)
            if decided is None:
                raise ValueError("answer yes or no")
            return decided
        case Rating():
            return _rated(section, raw)
        case MultiSelect():
            return _several(section.options, raw, section.min, section.max)
        case CardGrid() if section.multiple:
            return _several(section.options, raw, None, None)
        case Select() | CardGrid() | Comparison():
            return _one(section.options, raw, other=isinstance(section, Select) and section.other)
        case DataTable():
            return _rows(section, raw)
    raise ValueError("nothing can be answered here")


def _typed(section: Input, raw: Any) -> Any:
    if section.kind in ("number", "integer"):
        return _number(section, raw)
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    if section.min is not None and len(text) < section.min:
        raise ValueError(f"at least {section.min:g} characters")
    if section.max is not None and len(text) > section.max:
        raise ValueError(f"at most {section.max:g} characters")
    if section.kind in ("date", "email", "url"):
        text = text.strip()
    if section.kind == "date":
        try:
            date.fromisoformat(text)
        except ValueError:
            raise ValueError("a date as 2026-01-31") from None
    if section.kind == "email" and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", text):
        raise ValueError("an address as name@example.org")
    if section.kind == "url" and not re.fullmatch(r"https?://\S+", text):
        raise ValueError("an address that begins with http:// or https://")
    if section.pattern:
        _match(section.pattern, text)
    return text


def _number(section: Input, raw: Any) -> int | float:
    try:
        number = float(str(raw).strip())
    except ValueError:
        raise ValueError("a number") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError("a number")
    if section.kind == "integer" and number != int(number):
        raise ValueError("a whole number")
    if section.min is not None and number < section.min:
        raise ValueError(f"at least {section.min:g}")
    if section.max is not None and number > section.max:
        raise ValueError(f"at most {section.max:g}")
    return int(number) if section.kind == "integer" or number == int(number) else number


def _match(pattern: str, text: str) -> None:
    """A pattern of a file or a model may take exponential time."""
    try:
        found = regex.fullmatch(pattern, text, timeout=PATTERN_SECONDS)
    except TimeoutError:
        raise ValueError(f"could not be checked against {pattern} within {PATTERN_SECONDS:g} s") from None
    if found is None:
        raise ValueError(f"must match {pattern}")


def _decided(text: str, section: Confirmation | None = None) -> bool | None:
    word = text.strip().lower().strip(".,:;!")
    if section is not None and word in (section.yes.lower(), section.no.lower()):
        return word == section.yes.lower()
    return True if word in _YES else False if word in NO else None


def _rated(section: Rating, raw: Any) -> int:
    by_label = {label.lower(): number for number, label in enumerate(section.labels, 1)}
    text = str(raw).strip()
    if text.lower() in by_label:
        return by_label[text.lower()]
    found = re.match(r"\d+", text)
    if found is None or not 1 <= int(found[0]) <= section.max:
        raise ValueError(f"a number from 1 to {section.max}")
    return int(found[0])


def _one(options: Iterable[Option], raw: Any, *, other: bool) -> str:
    found = _option(tuple(options), raw[0] if isinstance(raw, list) and len(raw) == 1 else raw)
    if found is None:
        if other and isinstance(raw, str):
            return raw.strip()
        raise ValueError(f"choose one of {', '.join(option.id for option in options)}")
    return found.id


def _several(options: tuple[Option, ...], raw: Any, least: int | None, most: int | None) -> list[str]:
    given = raw if isinstance(raw, list | tuple) else [part for part in str(raw).split(",") if part.strip()]
    picked: list[str] = []
    for each in given:
        found = _option(options, each)
        if found is None:
            raise ValueError(f"'{each}' is none of {', '.join(option.id for option in options)}")
        if found.id not in picked:
            picked.append(found.id)
    if least is not None and len(picked) < least:
        raise ValueError(f"choose at least {least}")
    if most is not None and len(picked) > most:
        raise ValueError(f"choose at most {most}")
    order = [option.id for option in options]
    return sorted(picked, key=order.index)


def _option(options: tuple[Option, ...], raw: Any) -> Option | None:
    """By id, by label, or by number from 1."""
    text = (raw if isinstance(raw, str) else json.dumps(raw)).strip()
    for option in options:
        if text == option.id or text.lower() in (option.id.lower(), option.label.lower()):
            return option
    if text.isdigit() and 1 <= int(text) <= len(options):
        return options[int(text) - 1]
    return None


def _rows(section: DataTable, raw: Any) -> list[dict[str, str]]:
    given = raw if isinstance(raw, list | tuple) else str(raw).split(",")
    numbers: list[int] = []
    for each in given:
        number = _row_number(section, each)
        if number is None:
            raise ValueError(f"'{each}' is not a row; rows count from 1 to {len(section.rows)}")
        if number not in numbers:
            numbers.append(number)
    if section.selectable == "one" and len(numbers) > 1:
        raise ValueError("choose one row")
    return [section.row(number) for number in sorted(numbers)]


def _row_number(section: DataTable, raw: Any) -> int | None:
    if isinstance(raw, Mapping):
        wanted = {str(key): str(value) for key, value in raw.items()}
        return next((n for n in range(1, len(section.rows) + 1) if section.row(n) == wanted), None)
    text = str(raw).strip()
    if text.isdigit() and 1 <= int(text) <= len(section.rows):
        return int(text)
    return next((n for n, row in enumerate(section.rows, 1) if row and row[0] == text), None)
