"""``ask_human_custom``: from the arguments of a call to a form, by rules or by a model, and to the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct

from workbench.context.assembly import Item, Kind
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.calls.auxiliary_calls import ask_model
from workbench.engine.contracts import Question, ToolResult
from workbench.engine.conversation import Conversation
from workbench.engine.engine_tools import ASK_CUSTOM
from workbench.engine.faults import PhaseFailed
from workbench.engine.forms.intent import (
    ANSWER,
    QuestionContent,
    intent_of,
    is_layout,
    options_of,
    table_of,
    template,
    with_found,
)
from workbench.engine.forms.spec import (
    LAYOUTS,
    TYPES,
    Form,
    FormInvalid,
    Image,
    Input,
    MultiSelect,
    Option,
    Rating,
    fields_of,
    walk,
)
from workbench.engine.forms.values import FormAnswers, read_answer
from workbench.engine.human.people import ask_person
from workbench.engine.toolcalls import objects_in

_Typed = Literal["multiline", "number", "integer", "date", "email", "url"]


class GeneratedForm(Struct, frozen=True):
    """A form, and how it came about."""

    form: Form
    level: str
    why: str
    by: str = "template"

    @property
    def about(self) -> dict[str, str]:
        return {"level": self.level, "why": self.why, "by": self.by}


async def ask_custom(conversation: Conversation, arguments: Mapping[str, Any], place: Place, index: int) -> ToolResult:
    """Run one call of the tool. The answer is also ``state.<phase>``; of several the last. Wrong arguments give a
    result that the model sees."""
    try:
        asked = _asked(arguments)
    except ValueError as fault:
        return ToolResult(f"ValueError: {fault}", is_error=True)
    if arguments.get("auto_detect", True):
        asked = with_found(asked, latest_images(conversation.items), last_table(conversation.items))
    made = await make_form(conversation, asked)
    question = Question(asked.question, kind="form", form=made.form, made=made.about)
    text = await ask_person(conversation.engine, place, question, index)
    answered = read_answer(made.form, text).to_text()
    value = json.loads(answered)
    conversation.set_state(conversation.phase.name, value, place, by=ASK_CUSTOM)
    return ToolResult(answered, value=value)


FORM_SYSTEM = (
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


def spec_request(asked: QuestionContent) -> list[Message]:
    """The text that the model sees."""
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
    return [Message("system", FORM_SYSTEM), Message("user", "\n\n".join(parts))]


def read_spec(text: str, asked: QuestionContent) -> Form:
    """The form in a model's answer. Raises FormInvalid: no JSON, no form, no field to answer, an unknown image."""
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
    if (body := next((body for body in objects_in(text) if "sections" in body), None)) is None:
        raise FormInvalid("the answer holds no JSON object with 'sections'")
    return body


async def make_form(conversation: Conversation, asked: QuestionContent) -> GeneratedForm:
    """The form of a question. A model writes it only if the rules choose one; if its form cannot be used, the template
    takes its place, with a warning.
    """
    run, place = conversation.engine, conversation.place()
    if asked.layout_hint and not is_layout(asked.layout_hint):
        run.warn("form", f"'{asked.layout_hint}' is not a layout; the rules choose one", place=place)
    intent = intent_of(asked)
    if intent.level != "high":
        return GeneratedForm(template(asked), intent.level, intent.why)
    try:
        text = await ask_model(run, conversation.world, place, "form", spec_request(asked), conversation.model)
        return GeneratedForm(read_spec(text, asked), intent.level, intent.why, "model")
    except (FormInvalid, PhaseFailed) as fault:
        reason = fault.reason if isinstance(fault, PhaseFailed) else str(fault)
        told = f"the form that {conversation.model} wrote cannot be used: {reason}; the template asks"
        run.warn("form", told, place=place)
        return GeneratedForm(template(asked), intent.level, f"{intent.why}; the model's form: {reason}")


def _asked(arguments: Mapping[str, Any]) -> QuestionContent:
    """Raises ValueError for data that is no question."""
    question = str(arguments.get("question") or "").strip()
    if not question:
        raise ValueError("'question' must be a text that is not empty")
    images = arguments.get("images") or ()
    if not isinstance(images, Sequence) or isinstance(images, str):
        raise ValueError("'images' must be a list of paths")
    return QuestionContent(
        question,
        str(arguments.get("context") or ""),
        tuple(_image(image) for image in images),
        arguments.get("data") or None,
        options_of(arguments.get("options")),
        str(arguments.get("ui_hint") or ""),
        str(arguments.get("layout_hint") or ""),
    )


def _image(value: Any) -> Image:
    try:
        image = Image(path=value) if isinstance(value, str) else Image.model_validate(value)
    except ValueError as fault:
        raise ValueError(f"'images': {value!r} is not a path") from fault
    if not image.path.strip():
        raise ValueError("'images': an image needs a path")
    # A digest is the run's own to give: by one that a model writes, any stored picture could be asked for.
    return Image(path=image.path, caption=image.caption)


def latest_images(items: Sequence[Item]) -> tuple[Image, ...]:
    """The images of the newest message of a visit that has any."""
    for item in reversed(items):
        if item.message.images:
            return tuple(
                Image(
                    digest=image.digest,
                    media_type=image.media_type,
                    size=image.size,
                    width=image.width,
                    height=image.height,
                    caption=f"from {item.tool}" if item.tool else "",
                )
                for image in item.message.images
            )
    return ()


def last_table(items: Sequence[Item]) -> Any:
    """The newest tool result of a visit that is a JSON table; None if there is none."""
    for item in reversed(items):
        if item.kind is not Kind.RESULT or item.is_error:
            continue
        text = item.message.text
        if item.message.role == "user":
            text = text.partition("\n")[2]
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if table_of(value) is not None:
            return value
    return None


def hinted(arguments: Mapping[str, Any]) -> Question:
    """The question of an ``ask_human`` call: its hint says what sort of answer is wanted."""
    hint = str(arguments.get("ui_hint") or "").strip()
    text, context = str(arguments.get("question", "")), str(arguments.get("context") or "")
    word, _, rest = hint.partition(":")
    word = word.strip().lower().replace("-", "_")
    choices = tuple(part.strip() for part in (rest or hint).split("|") if part.strip()) if "|" in hint else ()
    form: Form | None = None
    if choices and word in ("multi", "multi_choice", "multi_select"):
        options = tuple(Option(id=choice, label=choice) for choice in choices)
        form = Form(title=text, sections=(MultiSelect(id=ANSWER, options=options, required=True),))
    elif choices:
        return Question(text, context, choices, "choice")
    elif word == "rating":
        most = int(rest) if rest.strip().isdigit() and 0 < int(rest) <= 20 else 5
        form = Form(title=text, sections=(Rating(id=ANSWER, max=most, required=True),))
    elif word in get_args(_Typed):
        form = Form(title=text, sections=(Input.model_validate({"id": ANSWER, "kind": word, "required": True}),))
    if form is None:
        return Question(text, context, (), "confirmation" if word in ("confirmation", "confirm", "yes_no") else "text")
    made = {"level": "low", "why": f"ui_hint {hint}", "by": "template"}
    return Question(text, context, choices, "form", form=form, made=made)


def in_words(question: Question, text: str) -> str:
    """The answer to ``ask_human`` as a text."""
    if question.form is None:
        return text
    return answer_words(read_answer(question.form, text))


def answer_words(answered: FormAnswers) -> str:
    """The answer of a form with one question as a text, the comment below it."""
    value = answered.values.get(ANSWER, "")
    words = ", ".join(value) if isinstance(value, list) else str(value)
    return f"{words}\nComment: {answered.comment}" if answered.comment else words
