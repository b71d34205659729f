"""Questions to a person after a phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from msgspec.structs import replace

from workbench.engine.contracts import Question
from workbench.engine.conversation import Conversation
from workbench.engine.faults import PhaseFailed
from workbench.engine.forms.intent import ANSWER, QuestionContent, with_found
from workbench.engine.forms.spec import (
    AnySection,
    Confirmation,
    Form,
    FormInvalid,
    Input,
    InputKind,
    MultiSelect,
    Option,
    Rating,
    Select,
    fields_of,
)
from workbench.engine.forms.values import NO, AnswerRefused, FormAnswers, read_answer
from workbench.engine.human.custom_form import GeneratedForm, last_table, latest_images, make_form
from workbench.engine.human.people import TimedOut
from workbench.language.graph import ESCALATION
from workbench.language.model.cascade import HumanInput

REASONING, CONFIDENCE = "reasoning", "confidence"
_FIELD_TYPES = {
    "textarea": ("input", "multiline"),
    "string": ("input", "text"),
    "int": ("input", "integer"),
    "float": ("input", "number"),
    "choice": ("select", ""),
    "radio": ("select", ""),
    "dropdown": ("select", ""),
    "multi_choice": ("multi_select", ""),
    "checkboxes": ("multi_select", ""),
    "checkbox": ("confirmation", ""),
    "boolean": ("confirmation", ""),
    "bool": ("confirmation", ""),
    **{kind: ("input", kind) for kind in get_args(InputKind)},
}


class PhaseQuestion:
    """The question that a phase puts to a person after its work."""

    def __init__(self, conversation: Conversation, rule: HumanInput) -> None:
        self._conversation = conversation
        self._rule = rule

    async def ask(self) -> None:
        """Ask once; the answer goes to ``state.human_input.<phase>``, what a person says besides to
        ``state.human_notes.<phase>``.

        Raises PhaseFailed for "no" to a confirmation or a review, and after a time-out with ``on_timeout: abort``.
        """
        path = (*self._conversation.path, "human_input")
        if self._rule.condition and not self._conversation.holds(self._rule.condition, (*path, "condition")):
            return
        prompt = self._conversation.render(self._rule.prompt, (*path, "prompt")) or _default_prompt(self._rule)
        made = await self._form(prompt)
        context = "" if self._rule.type == "auto" else self._conversation.output
        question = Question(prompt, context, _labels(made.form), _kind(self._rule), form=made.form, made=made.about)
        answered = await self._answered(question)
        if answered is None:
            return
        if _declined(self._rule, answered):
            raise PhaseFailed("a person said no" + (f": {answered.comment}" if answered.comment else ""), "human_input")
        self._keep("human_input", _value(self._rule, answered))
        if notes := _notes(answered):
            self._keep("human_notes", notes)

    def _keep(self, key: str, value: Any) -> None:
        kept = dict(self._conversation.world.state.get(key) or {})
        self._conversation.set_state(
            key, kept | {self._conversation.phase.name: value}, self._conversation.place(), by="human_input"
        )

    async def _answered(self, question: Question) -> FormAnswers | None:
        """The answer; None if the run continues without one. Raises PhaseFailed."""
        assert question.form is not None
        try:
            return read_answer(
                question.form, await self._conversation.ask(question, timeout=self._rule.timeout_seconds)
            )
        except TimedOut:
            waited = f"nobody answered within {self._rule.timeout_seconds:g} s"
        match self._rule.on_timeout:
            case "continue":
                return None
            case "default":
                return _default(self._rule, question.form)
            case "escalate" if self._rule.escalate_to:
                return await self._escalated(question, waited)
            case "escalate":
                waited += ", and escalate_to names nobody"
        raise PhaseFailed(waited, "human_input")

    async def _escalated(self, question: Question, waited: str) -> FormAnswers | None:
        """Go to the phase that ``escalate_to`` names, without an answer; or ask once more, by that name."""
        to = self._rule.escalate_to or ""
        if any(phase.name == to for phase in self._conversation.engine.definition.cascade.phases):
            self._conversation.route, self._conversation.setup.route_rule = to, ESCALATION
            return None
        again = replace(question, question=f"{question.question} (for {to}: {waited})", to=to)
        assert question.form is not None
        try:
            return read_answer(question.form, await self._conversation.ask(again, timeout=self._rule.timeout_seconds))
        except TimedOut:
            raise PhaseFailed(f"{waited}, nor did {to}", "human_input") from None

    async def _form(self, prompt: str) -> GeneratedForm:
        if self._rule.type == "auto":
            asked = QuestionContent(
                prompt,
                self._conversation.output,
                options=tuple(_options(self._rule)),
                ui_hint=self._rule.hint or "",
                instructions=self._conversation.render(
                    self._rule.generator_prompt, (*self._conversation.path, "human_input", "generator_prompt")
                ),
            )
            found = with_found(asked, latest_images(self._conversation.items), last_table(self._conversation.items))
            made = await make_form(self._conversation, found)
            return replace(made, form=_with_captures(self._rule, made.form))
        try:
            form = Form(title=prompt, sections=tuple(_sections(self._rule)))
        except (FormInvalid, ValueError) as fault:
            raise PhaseFailed(f"human_input: the form cannot be made: {fault}", "human_input") from fault
        return GeneratedForm(_with_captures(self._rule, form), "low", f"type {self._rule.type}")


def _default(rule: HumanInput, form: Form) -> FormAnswers:
    """The default value as if it had been answered; one that does not fit the form is taken as it is written."""
    try:
        return read_answer(form, str(rule.default_value))
    except AnswerRefused:
        return FormAnswers({ANSWER: rule.default_value})


def _default_prompt(rule: HumanInput) -> str:
    if rule.type == "rating":
        return f"Rate the result from 1 to {rule.max_rating}."
    return "Is this result all right?" if rule.type in ("confirmation", "review") else "Your answer?"


# -- the form --------------------------------------------------------------------------------------------------------


def _sections(rule: HumanInput) -> list[AnySection]:
    options, about = tuple(_options(rule)), rule.hint or ""
    if rule.type == "form":
        return [_field(body, number) for number, body in enumerate(rule.fields, 1)] or [
            Input(id=ANSWER, kind="multiline", required=True)
        ]
    if rule.type == "rating":
        labels = tuple(rule.rating_labels or ())
        return [Rating(id=ANSWER, help=about, required=True, max=min(20, rule.max_rating), labels=labels)]
    if rule.type == "multi_choice" and options:
        return [MultiSelect(id=ANSWER, help=about, required=True, options=options)]
    if options:
        return [Select(id=ANSWER, help=about, required=True, options=options)]
    if rule.type in ("confirmation", "review"):
        return [Confirmation(id=ANSWER, help=about, required=True)]
    return [Input(id=ANSWER, help=about, kind="multiline", required=True)]


def _field(body: Mapping[str, Any], number: int) -> AnySection:
    """A field of a form as files write it: ``{name, type, label, required, options, …}``. Raises FormInvalid."""
    wanted = str(body.get("type") or "text").replace("-", "_").lower()
    kind, inner = _FIELD_TYPES.get(wanted, (wanted, ""))
    default = body.get("default")
    section = {"id": f"field_{number}", **body, "type": kind, **({"kind": inner} if inner else {})}
    if kind == "multi_select" and default is not None and not isinstance(default, list):
        section["default"] = [default]
    if "name" in body:
        section["id"] = body["name"]
        section.setdefault("label", str(body["name"]))
    form = Form.of({"sections": [section]})
    return form.sections[0]


def _options(rule: HumanInput) -> list[Option]:
    return [
        Option(
            id=str(option.label if option.value is None else option.value),
            label=option.label,
            description=option.description or "",
            comment=option.requires_text or option.requires_comment,
        )
        for option in rule.options
    ]


def _with_captures(rule: HumanInput, form: Form) -> Form:
    """With the questions why, and how sure."""
    more: list[AnySection] = []
    taken = {section.id for section in fields_of(form)}
    if rule.capture_reasoning and REASONING not in taken:
        more.append(Input(id=REASONING, label="Why?", kind="multiline"))
    if rule.capture_confidence and CONFIDENCE not in taken:
        more.append(
            Rating(id=CONFIDENCE, label="How sure are you?", labels=("a guess", "unsure", "fairly", "sure", "certain"))
        )
    return form.model_copy(update={"sections": (*form.sections, *more)}) if more else form


def _labels(form: Form) -> tuple[str, ...]:
    """The options of a form with one question, for clients that show no forms."""
    match fields_of(form):
        case (Select() as one,) | (MultiSelect() as one,):
            return tuple(option.label for option in one.options)
        case (Confirmation(),):
            return ("yes", "no")
        case (Rating(max=most, labels=labels),):
            return tuple(f"{n} {labels[n - 1]}" if n <= len(labels) else str(n) for n in range(1, most + 1))
    return ()


def _kind(rule: HumanInput) -> str:
    kinds = {"confirmation": "confirmation", "review": "confirmation", "choice": "choice", "rating": "choice"}
    return kinds.get(rule.type, rule.type if rule.type == "multi_choice" else "form")


# -- the answer ------------------------------------------------------------------------------------------------------


def _declined(rule: HumanInput, answered: FormAnswers) -> bool:
    if rule.type not in ("confirmation", "review"):
        return False
    said = answered.values.get(ANSWER)
    return said is False or (isinstance(said, str) and said.split(" ")[0].lower().strip(".,:;!") in NO)


def _value(rule: HumanInput, answered: FormAnswers) -> Any:
    """The answer in the type of the question."""
    if rule.type in ("form", "auto"):
        return {key: value for key, value in answered.values.items() if key not in (REASONING, CONFIDENCE)}
    said = answered.values.get(ANSWER)
    if isinstance(said, bool):
        return "yes" if said else "no"
    values = {
        str(o.label if o.value is None else o.value): o.label if o.value is None else o.value for o in rule.options
    }
    if isinstance(said, list):
        return [values.get(each, each) for each in said]
    return values.get(said, said) if isinstance(said, str) else said


def _notes(answered: FormAnswers) -> dict[str, Any]:
    """Remarks given beside the answer."""
    notes = {key: answered.values.get(key) for key in (REASONING, CONFIDENCE)} | {"comment": answered.comment or None}
    return {key: value for key, value in notes.items() if value is not None}
