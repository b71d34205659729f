"""Decisions that a model asks a person for, by a block in its output or after a failure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.engine.contracts import Question
from workbench.engine.conversation import Conversation
from workbench.engine.faults import PhaseFailed
from workbench.engine.forms.intent import ANSWER
from workbench.engine.forms.spec import AnySection, CardGrid, Form, Option, Select
from workbench.engine.forms.values import read_answer
from workbench.engine.human.people import TimedOut
from workbench.engine.services import Injection
from workbench.language.model.cascade import DECISION, DecisionPoints, DecisionRoute, DecisionUi

CUSTOM = "custom"
"""The choice of a person who typed something else."""
_DECISION = re.compile(r"<decision>\s*(?:```(?:json)?\s*)?(?P<body>\{.*?\})\s*(?:```\s*)?</decision>", re.DOTALL)
_DEFAULT_ROUTES = {
    "_continue": DecisionRoute(to="next"),
    "_retry": DecisionRoute(to="self"),
    "_abort": DecisionRoute(fail=True),
}


class HumanDecision(Struct, frozen=True):
    """A person's decision: where the run goes, or that the phase fails."""

    route: str = ""
    again: bool = False
    inject: str = ""


async def decide(conversation: Conversation, failure: PhaseFailed | None = None) -> HumanDecision:
    """Ask about the output's decision block (or, with ``trigger: error``, about the failure) and follow the answer.

    Raises PhaseFailed if the answer says so, or the failure itself if nothing is to be asked.
    """
    rule = conversation.phase.decision_points
    if rule is None or not rule.enabled or (rule.trigger == "error") != (failure is not None):
        if failure is not None:
            raise failure
        return HumanDecision()
    question, options, actions = _question(conversation, rule, failure)
    if question is None:
        return HumanDecision()
    try:
        answer = await conversation.ask(question, timeout=rule.timeout_seconds)
    except TimedOut:
        waited = f"nobody decided within {rule.timeout_seconds:g} s"
        reason = f"{failure.reason}; {waited}" if failure is not None else waited
        raise PhaseFailed(reason, failure.check if failure is not None else "decision_points") from None
    if question.form is not None:
        answer = chosen_in(question.form, answer)
    chosen = next((key for key, label in options.items() if answer in (key, label)), "")
    route = actions.get(chosen) or rule.routing.get(chosen) or _DEFAULT_ROUTES.get(chosen)
    if failure is None or route is None:
        decided = {"choice": chosen or CUSTOM, "label": options.get(chosen, ""), "question": question.question}
        decided |= {"custom_text": "" if chosen else answer}
        conversation.set_state(DECISION + conversation.phase.name, decided, conversation.place(), by="decision")
    if route is None:
        return HumanDecision()
    if route.fail:
        raise failure or PhaseFailed(f"a person decided: {answer}", "decision_points")
    inject = route.inject or ""  # A model's text is no template.
    if chosen not in actions:
        inject = conversation.render(route.inject, (*conversation.path, "decision_points", "routing", chosen, "inject"))
    if route.to == "self":
        return HumanDecision(again=True, inject=inject or f"[HumanDecision]: {answer}")
    if inject:
        branch = conversation.setup.place.branch
        conversation.engine.injections.add(Injection(inject, f"decision '{chosen}'", branch))
    return HumanDecision("" if route.to in (None, "next") else route.to or "")


def _question(
    conversation: Conversation, rule: DecisionPoints, failure: PhaseFailed | None
) -> tuple[Question | None, dict[str, str], dict[str, DecisionRoute]]:
    """The question, and by id its options and the actions that the block itself gives them."""
    path = (*conversation.path, "decision_points")
    if failure is not None:
        options = {"_continue": "continue", "_retry": "retry", "_abort": "abort"}
        prompt = conversation.render(rule.on_error_prompt, (*path, "on_error_prompt"), error=failure.reason)
        text = prompt or f"The phase failed: {failure.reason}. What now?"
        return Question(text, conversation.output, tuple(options.values()), "choice"), options, {}
    match = _DECISION.search(conversation.output)
    if match is None:
        return None, {}, {}
    try:
        body = json.loads(match["body"])
    except (ValueError, RecursionError) as fault:
        conversation.engine.warn("decision", f"the decision block cannot be read: {fault}", path, conversation.place())
        return None, {}, {}
    conversation.output = (conversation.output[: match.start()] + conversation.output[match.end() :]).strip()
    listed = _listed(body.get("options"))
    options = {str(o["id"]): str(o.get("label") or o["id"]) for o in listed[: rule.ui.max_options]}
    output = conversation.output if rule.ui.present_output else ""
    context = "\n\n".join(filter(None, (output, str(body.get("context") or ""))))
    text = str(body.get("question", ""))
    question = Question(text, context, tuple(options.values()), "choice")
    plain = rule.ui.allow_text_fallback and "layout" not in rule.ui.model_fields_set
    if options and not (plain and not any(one.get("description") for one in listed)):
        form = form_of(rule.ui, text, listed[: rule.ui.max_options])
        question = replace(question, kind="form", form=form, made=MADE)
    return question, options, _actions(conversation, listed[: rule.ui.max_options])


_ACTIONS = {
    **dict.fromkeys(("_continue", "continue", "next"), _DEFAULT_ROUTES["_continue"]),
    **dict.fromkeys(("_retry", "retry", "self"), _DEFAULT_ROUTES["_retry"]),
    **dict.fromkeys(("_abort", "abort"), _DEFAULT_ROUTES["_abort"]),
}


def _actions(conversation: Conversation, options: Sequence[Mapping[str, Any]]) -> dict[str, DecisionRoute]:
    """The actions in the options of a block, which go before the routing of the file. One that leads to no phase is
    passed over, with a warning: a model wrote it."""
    phases = {phase.name for phase in conversation.engine.definition.cascade.phases}
    found: dict[str, DecisionRoute] = {}
    for option in options:
        action = option.get("action")
        body = action if isinstance(action, dict) else {"to": action}
        told = str(body.get("to") or "next")
        route = _ACTIONS.get(told) or (DecisionRoute(to=told) if told in phases else None)
        if not action:
            continue
        if route is None:
            path = (*conversation.path, "decision_points")
            words = f"the action of the option {str(option['id'])[:60]!r} names no phase: {told[:60]!r}"
            conversation.engine.warn("decision", words, path, conversation.place())
            continue
        inject = body.get("inject")
        fails = body.get("fail") is True or route.fail
        to = None if fails else route.to
        found[str(option["id"])] = DecisionRoute(to=to, fail=fails, inject=inject if isinstance(inject, str) else None)
    return found


def _listed(options: Any) -> list[dict[str, Any]]:
    """The options of a block; a plain text is an option of that name."""
    given = options if isinstance(options, list) else []
    named = [{"id": option} if isinstance(option, str) else option for option in given]
    return [option for option in named if isinstance(option, dict) and option.get("id")]


MADE = {"level": "low", "why": "decision_points.ui", "by": "template"}


def form_of(ui: DecisionUi, title: str, options: Sequence[Mapping[str, Any]]) -> Form:
    """The options as cards, or as a list if the file names another layout or another answer may be typed."""
    shown = tuple(
        Option(id=str(o["id"]), label=str(o.get("label") or o["id"]), description=str(o.get("description") or ""))
        for o in options
    )
    section: AnySection
    if ui.layout == "cards" and not ui.allow_text_fallback:
        section = CardGrid(id=ANSWER, required=True, options=shown)
    else:
        section = Select(id=ANSWER, required=True, options=shown, other=ui.allow_text_fallback)
    return Form(title=title, sections=(section,))


def chosen_in(form: Form, answer: str) -> str:
    """The id of the option that an accepted answer names, or the text typed instead."""
    return str(read_answer(form, answer).values[ANSWER])
