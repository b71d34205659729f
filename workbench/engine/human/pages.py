"""Pages of HTML that a phase shows to a person: the form that a page is, and the answer that its fields and buttons
give."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, get_args

from msgspec import Struct, field

from workbench.context.place import Place
from workbench.engine.contracts import Question, ToolResult
from workbench.engine.conversation import Conversation
from workbench.engine.forms.spec import (
    MAX_OPTIONS,
    MAX_SECTIONS,
    AnySection,
    Confirmation,
    Form,
    Input,
    InputKind,
    MultiSelect,
    Option,
    Select,
    Text,
)
from workbench.engine.forms.values import FormAnswers, read_answer
from workbench.engine.human.people import ask_person

PAGE = "htmx"
"""The name of such a phase's work in the journal."""
ROUTE_FIELDS = ("action", "selected", "_route")
"""The fields of an answer that say what comes next, the first that is there."""
WRAPPED = "response"
"""Pages write ``response[name]`` for a field: the answer has it under its name, and under this key."""

_SILENT = frozenset({"script", "style", "head", "template", "svg", "noscript", "title"})
_LINES = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr "
        "legend li main nav ol p pre section table tbody tfoot thead tr ul",
    )
)
"""Tags that begin a line of their own."""
_KINDS: Mapping[str, InputKind] = {
    **{kind: kind for kind in get_args(InputKind)},
    "range": "number",
    "textarea": "multiline",
}
_WRAPPED_NAME = re.compile(rf"{WRAPPED}\[([^\]]+)\]")
_SPACE = re.compile(r"\s+")


class PageField(Struct):
    """A field of a page as it is read."""

    name: str
    kind: str
    """The type of an ``input``, or ``textarea``, ``select``."""
    label: str = ""
    value: str = ""
    placeholder: str = ""
    required: bool = False
    multiple: bool = False
    options: list[tuple[str, str]] = field(default_factory=list)
    """Value and label of each."""
    chosen: list[int] = field(default_factory=list)
    """Which of them are chosen before a person says anything."""


Choice = tuple[PageField, int]
"""A box to tick, or one of several: the field, and which of its options."""


class PageButton(Struct):
    """A button: the fields that pressing it adds, and its label."""

    values: dict[str, str]
    label: str = ""


class Page(HTMLParser):
    """Reads a page: texts, fields and buttons in their order. Never raises for what a page holds."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str | PageField] = []
        self.buttons: list[PageButton] = []
        self.hidden: dict[str, str] = {}
        self.wrapped = False
        self._text: list[str] = []
        self._silent = 0
        self._label: list[str] | None = None
        self._labelled: list[PageField | Choice] = []
        self._ids: dict[str, PageField | Choice] = {}
        self._beside: Choice | None = None
        """A choice without a label so far: the text behind it on its line is one."""
        self._button: PageButton | None = None
        self._select: PageField | None = None
        self._area: PageField | None = None
        self._option = False
        self._said = ""
        self.feed(html)
        self.close()
        self._end_button()
        self._flush()

    # -- what the parser calls -----------------------------------------------------------------------------------------

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = {name: value or "" for name, value in attrs}
        if tag in _SILENT:
            self._silent += 1
        elif tag in _LINES:
            self._line()
        if self._silent:
            return
        if tag in ("label", "input", "textarea", "select", "button"):
            self._beside = None
        if tag == "label":
            named = self._ids.get(at["for"]) if "for" in at else None
            self._label, self._labelled = [], [named] if named is not None else []
        elif tag == "input":
            self._input(at)
        elif tag == "textarea":
            self._area = self._field(at, "textarea")
        elif tag == "select":
            self._select = self._field(at, "select", multiple="multiple" in at)
        elif tag == "option" and self._select is not None:
            self._option = True
            self._select.options.append((at.get("value", ""), ""))
            if "selected" in at:
                self._select.chosen.append(len(self._select.options) - 1)
        elif tag == "button" and at.get("type") != "reset":
            self._end_button()
            self._button = PageButton(self._pressed(at))
        elif tag in ("td", "th") and self._text and not self._text[-1].endswith("\n"):
            self._text.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _LINES:
            self._line()
        if self._silent:
            return
        if tag == "label" and self._label is not None:
            self._close_label()
        elif tag == "button":
            self._end_button()
        elif tag == "select":
            self._select, self._option = None, False
        elif tag == "option":
            self._option = False
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        if self._area is not None:
            self._area.value += data
        elif self._option and self._select is not None and self._select.options:
            value, label = self._select.options[-1]
            label = _SPACE.sub(" ", label + data).strip()
            self._select.options[-1] = (value or label, label)
        elif self._button is not None:
            self._button.label = _SPACE.sub(" ", f"{self._button.label} {data}").strip()
        elif self._label is not None:
            self._label.append(data)
        elif self._beside is not None:
            self._name_choice(self._beside, f"{self._beside[0].options[self._beside[1]][1]} {data}")
        elif self._select is None:
            self._text.append(_SPACE.sub(" ", data))

    # -- fields --------------------------------------------------------------------------------------------------------

    def _input(self, at: Mapping[str, str]) -> None:
        kind = at.get("type", "text").lower()
        if kind == "hidden":
            if name := self._name(at):
                self.hidden[name] = at.get("value", "")
        elif kind in ("submit", "button", "image"):
            if values := self._pressed(at):
                self.buttons.append(PageButton(values, at.get("value", "")))
        elif kind not in ("reset", "file"):
            self._field(at, kind)

    def _field(self, at: Mapping[str, str], kind: str, *, multiple: bool = False) -> PageField | None:
        name = self._name(at)
        if not name:
            return None
        if kind in ("radio", "checkbox"):
            value = at.get("value", "on")
            group = next((f for f in self.parts if isinstance(f, PageField) and (f.name, f.kind) == (name, kind)), None)
            if group is None:
                group = self._add(PageField(name, kind, self._taken_label(), required="required" in at))
            group.options.append((value, ""))
            choice = (group, len(group.options) - 1)
            if "checked" in at:
                group.chosen.append(choice[1])
            self._labelled.append(choice)
            self._ids[at.get("id", "")] = choice
            self._beside = choice if self._label is None and not (group.label and len(group.options) == 1) else None
            return group
        shown = PageField(
            name,
            kind,
            self._taken_label(),
            at.get("value", ""),
            at.get("placeholder", ""),
            required="required" in at,
            multiple=multiple,
        )
        self._labelled.append(shown)
        self._ids[at.get("id", "")] = shown
        return self._add(shown)

    def _add(self, one: PageField) -> PageField:
        self._flush()
        self.parts.append(one)
        return one

    def _pressed(self, at: Mapping[str, str]) -> dict[str, str]:
        """The fields that a button adds: its own name and value, else those of ``hx-vals``."""
        if name := self._name(at):
            return {name: at.get("value", "")}
        try:
            values = json.loads(at.get("hx-vals", "{}"))
        except (ValueError, RecursionError):
            return {}
        return {self._plain(str(key)): str(value) for key, value in values.items()} if isinstance(values, dict) else {}

    def _name(self, at: Mapping[str, str]) -> str:
        return self._plain(at.get("name", ""))

    def _plain(self, name: str) -> str:
        inner = _WRAPPED_NAME.fullmatch(name)
        self.wrapped = self.wrapped or inner is not None
        return (inner[1] if inner else name).removesuffix("[]")[:80]

    def _end_button(self) -> None:
        if self._button is not None:
            self.buttons.append(self._button)
        self._button = None

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _close_label(self) -> None:
        """A label names the field inside it, the one that it is for, or the next one."""
        said = _SPACE.sub(" ", "".join(self._label or ())).strip()
        self._label = None
        if not self._labelled:
            self._said = said
        for one in self._labelled:
            if isinstance(one, PageField):
                one.label = one.label or said
            else:
                self._name_choice(one, said)

    def _name_choice(self, choice: Choice, said: str) -> None:
        group, at = choice
        group.options[at] = (group.options[at][0], _SPACE.sub(" ", said).strip())

    def _taken_label(self) -> str:
        said, self._said = self._said, ""
        return said

    def _line(self) -> None:
        self._beside = None
        if self._text and not self._text[-1].endswith("\n"):
            self._text.append("\n")

    def _flush(self) -> None:
        lines = (" ".join(line.split()) for line in "".join(self._text).split("\n"))
        text = "\n".join(line for line in lines if line)
        self._text = []
        if text:
            self.parts.append(text)


class PageForm(Struct, frozen=True):
    """The form that a page is, and how its answers become those of the page."""

    form: Form
    names: Mapping[str, str]
    """The name of the page's field by the id of the question."""
    ticked: Mapping[str, str]
    """The value of a checkbox that stands alone, by the id of its question."""
    presses: Mapping[str, Mapping[str, str]]
    """What each button adds, by the id of its option."""
    pressed: str
    """The id of the question which button is pressed; empty where there is none to choose."""
    hidden: Mapping[str, str]
    wrapped: bool

    def answer(self, given: FormAnswers) -> dict[str, Any]:
        """What the page would send."""
        values: dict[str, Any] = dict(self.hidden)
        for id, value in given.values.items():
            if id in self.ticked:
                values |= {self.names[id]: self.ticked[id]} if value else {}
            elif id != self.pressed:
                values[self.names[id]] = value
        chosen = str(given.values.get(self.pressed, "")) if self.pressed else next(iter(self.presses), "")
        values |= self.presses.get(chosen, {})
        return values | {WRAPPED: dict(values)} if self.wrapped else values


def page_form(html: str, title: str, description: str = "") -> PageForm:
    """Read a page as a form. A page without any field or button is one to go on from."""
    page = Page(html)
    sections: list[AnySection] = [Text(text=description)] if description else []
    names: dict[str, str] = {}
    ticked: dict[str, str] = {}
    for part in page.parts:
        if isinstance(part, str):
            sections.append(Text(text=part))
            continue
        id = _free(part.name, names)
        names[id] = part.name
        if part.kind == "checkbox" and len(part.options) == 1:
            ticked[id] = part.options[0][0]
        sections.append(_section(part, id))
    presses = _presses(page.buttons)
    pressed = ""
    if len(presses) > 1 or not names:
        fields = {name for press in presses.values() for name in press}
        pressed = _free(next(iter(fields)) if len(fields) == 1 else "button", names)
        labels = {id: button.label or id for id, button in zip(presses, page.buttons, strict=False)}
        options = tuple(Option(id=id, label=labels[id]) for id in presses) or (Option(id="continue", label="Continue"),)
        sections.append(Select(id=pressed, required=True, options=options[:MAX_OPTIONS]))
    form = Form(title=title, sections=tuple(_few(sections)), comment="none")
    return PageForm(form, names, ticked, presses, pressed, page.hidden, page.wrapped)


def _free(name: str, taken: Mapping[str, str]) -> str:
    """An id that no other question has; ``comment`` is the person's own remark."""
    id, number = name if name != "comment" else "comment_", 2
    while id in taken:
        id, number = f"{name}_{number}", number + 1
    return id


def _presses(buttons: Sequence[PageButton]) -> dict[str, dict[str, str]]:
    """What each button adds, by an id of its own: its value, else its label."""
    found: dict[str, dict[str, str]] = {}
    for button in buttons:
        id = next(iter(button.values.values()), "") or button.label or "continue"
        number = 2
        while id in found:
            id, number = f"{id} {number}", number + 1
        found[id] = button.values
    return found


def _section(part: PageField, id: str) -> AnySection:
    label = part.label or part.placeholder or part.name
    options = tuple(Option(id=value or label, label=label or value) for value, label in part.options if value or label)
    options = tuple({option.id: option for option in options}.values())[:MAX_OPTIONS]
    if part.kind == "checkbox" and len(part.options) == 1:
        ticked = bool(part.chosen) or None
        return Confirmation(id=id, label=part.label or part.options[0][1] or part.name, default=ticked)
    known = {option.id for option in options}
    ids = [value or text for value, text in part.options]
    chosen = [ids[at] for at in part.chosen if ids[at] in known]
    if options and (part.kind == "checkbox" or part.multiple):
        default = tuple(dict.fromkeys(chosen))
        return MultiSelect(id=id, label=label, required=part.required, options=options, default=default)
    if options:
        first = chosen[-1] if chosen else None
        return Select(id=id, label=label, required=part.required, options=options, default=first)
    kind = _KINDS.get(part.kind, "text")
    said = part.value.strip() or None
    return Input(id=id, label=label, required=part.required, kind=kind, placeholder=part.placeholder, default=said)


def _few(sections: Sequence[AnySection]) -> Sequence[AnySection]:
    """As many sections as a form may have: of a long page texts go first, then the last fields, never the buttons."""
    over = len(sections) - MAX_SECTIONS
    texts = [at for at, one in enumerate(sections) if isinstance(one, Text)]
    gone = set(texts[: max(0, over)])
    kept = [one for at, one in enumerate(sections) if at not in gone]
    return kept if len(kept) <= MAX_SECTIONS else [*kept[: MAX_SECTIONS - 1], kept[-1]]


async def ask_by_page(conversation: Conversation, place: Place, index: int) -> ToolResult:
    """Show the phase's page; the answer is its result, and ``state.<phase>``. Raises PhaseFailed, RunStopped."""
    phase = conversation.phase
    title = phase.hitl_title or phase.name
    made = page_form(conversation.render_page(), title, phase.hitl_description or "")
    question = Question(title, kind="form", form=made.form, made={"level": "low", "why": "a page", "by": PAGE})
    text = await ask_person(conversation.engine, place, question, index)
    answer = made.answer(read_answer(made.form, text))
    conversation.set_state(phase.name, answer, place, by=PAGE)
    conversation.route = routed_by(answer, phase.routing, [handoff.target for handoff in phase.handoffs])
    return ToolResult(json.dumps(answer, ensure_ascii=False), value=answer)


def routed_by(answer: Mapping[str, Any], routing: Mapping[str, str], handoffs: Sequence[str]) -> str:
    """The phase that an answer leads to; empty where the flow rules decide."""
    key = next((str(answer[name]) for name in ROUTE_FIELDS if answer.get(name)), "")
    if not key:
        return ""
    return routing.get(key) or routing.get("default", "") or (key if len(handoffs) > 1 and key in handoffs else "")


_MACROS: Mapping[str, str] = {
    "submit_button": '{% macro submit_button(label, action="", route="") %}<button type="submit" '
    'name="{{ "_route" if route else "action" }}" value="{{ (route or action or label) | e }}">{{ label }}</button>'
    "{{ kwargs.none }}{% endmacro %}",
    "route_button": '{% macro route_button(label, target) %}<button type="submit" name="_route" '
    'value="{{ target | e }}">{{ label }}</button>{{ kwargs.none }}{% endmacro %}',
    "tabs": "{% macro tabs(items, current='') %}{% for tab in items %}"
    '<button type="submit" name="_route" value="{{ tab[0] | e }}">{{ tab[1] }}</button>{% endfor %}'
    "{{ kwargs.none }}{% endmacro %}",
}
"""Functions that pages call, as macros."""


def with_helpers(template: str) -> tuple[str, int]:
    """A page's template with the functions that it calls, and how many columns its first line has gained."""
    before = "".join(text for name, text in _MACROS.items() if re.search(rf"\b{name}\s*\(", template))
    return before + template, len(before)
