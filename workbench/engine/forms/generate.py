"""A form that a model writes: what it is told, and how its answer is read."""

from __future__ import annotations

import json

from workbench.context.message import Message
from workbench.engine.forms.intent import Asked
from workbench.engine.forms.spec import LAYOUTS, TYPES, Form, FormInvalid, Image, fields_of, walk
from workbench.engine.toolcalls import balanced_objects, first_fenced

SYSTEM = (
    "You design a form that asks a person one question. Answer with one JSON object and nothing else:\n"
    '{"title": "…", "layout": "…", "sections": [{"type": "…", …}], "comment": "none|optional|required"}\n'
    f"Layouts: {', '.join(LAYOUTS)}.\n"
    f"Types of sections: {', '.join(TYPES)}.\n"
    "Sections that take an answer have an id of their own, a label and required: input (kind text, multiline, number, "
    "integer, date, email or url), select and multi_select (options with id and label), confirmation, rating (max), "
    "data_table (columns, rows, selectable none, one or many), card_grid and comparison (options with description, "
    "pros, cons).\n"
    "Others show: text, markdown and code have text (code also before and language), image has path or digest, "
    "accordion and tabs have panels with a title and sections."
)
SHOWN = 6000
"""Characters of data that the writer of the form sees."""


def spec_request(asked: Asked) -> list[Message]:
    """What the model sees."""
    parts = [f"## Question\n{asked.question}"]
    if asked.context:
        parts.append(f"## Context\n{asked.context[:SHOWN]}")
    if asked.images:
        listed = [image.model_dump(exclude_defaults=True) | {"type": "image"} for image in asked.images]
        parts.append(f"## Images (use these sections as they are)\n{json.dumps(listed, ensure_ascii=False)}")
    if asked.data is not None:
        parts.append(f"## Data\n{json.dumps(asked.data, ensure_ascii=False, default=str)[:SHOWN]}")
    if asked.options:
        options = [option.model_dump(exclude_defaults=True) for option in asked.options]
        parts.append(f"## Options\n{json.dumps(options, ensure_ascii=False)}")
    hints = " · ".join(filter(None, (asked.ui_hint, asked.layout_hint)))
    if hints:
        parts.append(f"## Hints\n{hints}")
    if asked.instructions:
        parts.append(f"## Instructions\n{asked.instructions}")
    return [Message("system", SYSTEM), Message("user", "\n\n".join(parts))]


def read_spec(text: str, asked: Asked) -> Form:
    """The form in a model's answer. Raises FormInvalid: no JSON, no form, nothing to answer, an image nobody gave."""
    body = _object(text)
    form = Form.of(body if body.get("title") else {**body, "title": asked.question})
    if not fields_of(form) and form.comment == "none":
        raise FormInvalid("nothing in it can be answered")
    given = {image.path for image in asked.images} | {image.digest for image in asked.images}
    for section in walk(form.sections):
        if isinstance(section, Image) and (section.digest or section.path) not in given:
            raise FormInvalid(f"image '{section.path or section.digest}' was not given")
    return form


def _object(text: str) -> dict[str, object]:
    """The whole text, the first fenced block, or the first balanced object with sections."""
    for candidate in (text, first_fenced(text) or "", *balanced_objects(text)):
        try:
            body = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(body, dict) and "sections" in body:
            return body
    raise FormInvalid("the answer holds no JSON object with 'sections'")
