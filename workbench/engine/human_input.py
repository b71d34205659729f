"""Questions to a person after a phase, and decisions that a model asks for (language.md 2.10)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.engine.faults import PhaseFailed
from workbench.engine.people import TimedOut
from workbench.engine.ports import Question
from workbench.language.model import DecisionPoints, DecisionRoute, HumanInput

if TYPE_CHECKING:
    from workbench.engine.execution import Execution

_DECISION = re.compile(r"<decision>\s*(?:```(?:json)?\s*)?(?P<body>\{.*?\})\s*(?:```\s*)?</decision>", re.DOTALL)
_NO = frozenset({"no", "n", "false", "0", "reject", "rejected", "cancel", "abort"})
_DEFAULT_ROUTES = {
    "_continue": DecisionRoute(to="next"),
    "_retry": DecisionRoute(to="self"),
    "_abort": DecisionRoute(fail=True),
}


async def ask_input(execution: Execution) -> None:
    """Ask the phase's question once; the answer goes to ``state.human_input.<phase>``.

    Raises PhaseFailed for "no" to a confirmation or a review, and after a time-out with ``on_timeout: abort``.
    """
    rule, path = execution.phase.human_input, (*execution.path, "human_input")
    if rule is None:
        return
    if rule.condition and not execution.holds(rule.condition, (*path, "condition")):
        return
    prompt = execution.render(rule.prompt, (*path, "prompt")) or _default_prompt(rule)
    question = Question(prompt, execution.output, _options(rule), _kind(rule))
    try:
        text = await execution.ask(question, timeout=rule.timeout_seconds)
    except TimedOut:
        given_up = _after_timeout(rule)
        if given_up is None:
            return
        text = given_up
    if rule.type in ("confirmation", "review") and text.strip().split(" ")[0].lower().strip(".,:;!") in _NO:
        raise PhaseFailed(f"a person said no: {text}", "human_input")
    given = dict(execution.world.state.get("human_input") or {})
    given[execution.phase.name] = _value(rule, text)
    execution.set_state("human_input", given, execution.place(), by="human_input")


def _after_timeout(rule: HumanInput) -> str | None:
    if rule.on_timeout == "continue":
        return None
    if rule.on_timeout == "default":
        return str(rule.default_value)
    raise PhaseFailed(f"nobody answered within {rule.timeout_seconds:g} s", "human_input")


def _default_prompt(rule: HumanInput) -> str:
    if rule.type == "rating":
        return f"Rate the result from 1 to {rule.max_rating}."
    return "Is this result all right?" if rule.type in ("confirmation", "review") else "Your answer?"


def _options(rule: HumanInput) -> tuple[str, ...]:
    if rule.options:
        return tuple(option.label for option in rule.options)
    if rule.type == "rating":
        labels = rule.rating_labels or ()
        return tuple(f"{n} {labels[n - 1]}" if n <= len(labels) else str(n) for n in range(1, rule.max_rating + 1))
    return ("yes", "no") if rule.type in ("confirmation", "review") else ()


def _kind(rule: HumanInput) -> str:
    kinds = {"confirmation": "confirmation", "review": "confirmation", "choice": "choice", "rating": "choice"}
    return "multi_choice" if rule.type == "multi_choice" else kinds.get(rule.type, "text")


def _value(rule: HumanInput, text: str) -> Any:
    """The answer in the type of the question."""
    values = {option.label: option.label if option.value is None else option.value for option in rule.options}
    if rule.type == "multi_choice":
        return [values.get(part.strip(), part.strip()) for part in text.split(",") if part.strip()]
    if rule.type == "rating":
        number = re.match(r"\s*(\d+)", text)
        return int(number[1]) if number else text
    if rule.type == "form":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return values.get(text, text)


@dataclass(frozen=True)
class Decision:
    """What a person decided: where the run goes, or that the phase fails."""

    route: str = ""
    again: bool = False
    inject: str = ""


async def decide(execution: Execution, failure: PhaseFailed | None = None) -> Decision:
    """Ask about the output's decision block (or, with ``trigger: error``, about the failure) and follow the answer.

    Raises PhaseFailed where the answer says so, or the failure itself where nothing is asked.
    """
    rule = execution.phase.decision_points
    if rule is None or not rule.enabled or (rule.trigger == "error") != (failure is not None):
        if failure is not None:
            raise failure
        return Decision()
    question, options = _question(execution, rule, failure)
    if question is None:
        return Decision()
    answer = await execution.ask(question, timeout=rule.timeout_seconds)
    chosen = next((key for key, label in options.items() if answer in (key, label)), "")
    route = rule.routing.get(chosen) or _DEFAULT_ROUTES.get(chosen)
    if route is None:
        given = chosen or answer
        execution.set_state(f"_decision_{execution.phase.name}", given, execution.place(), by="decision")
        return Decision()
    if route.fail:
        raise failure or PhaseFailed(f"a person decided: {answer}", "decision_points")
    inject = execution.render(route.inject, (*execution.path, "decision_points", "routing", chosen, "inject"))
    if route.to == "self":
        return Decision(again=True, inject=inject or f"[Decision]: {answer}")
    return Decision("" if route.to in (None, "next") else route.to or "", inject=inject)


def _question(
    execution: Execution, rule: DecisionPoints, failure: PhaseFailed | None
) -> tuple[Question | None, dict[str, str]]:
    """What is asked, and the options by id."""
    path = (*execution.path, "decision_points")
    if failure is not None:
        options = {"_continue": "continue", "_retry": "retry", "_abort": "abort"}
        prompt = execution.render(rule.on_error_prompt, (*path, "on_error_prompt"), error=failure.reason)
        text = prompt or f"The phase failed: {failure.reason}. What now?"
        return Question(text, execution.output, tuple(options.values()), "choice"), options
    match = _DECISION.search(execution.output)
    if match is None:
        return None, {}
    try:
        body = json.loads(match["body"])
    except (ValueError, RecursionError) as fault:
        execution.engine.warn("decision", f"the decision block cannot be read: {fault}", path, execution.place())
        return None, {}
    execution.output = (execution.output[: match.start()] + execution.output[match.end() :]).strip()
    listed = [option for option in body.get("options", ()) if isinstance(option, dict) and option.get("id")]
    options = {str(o["id"]): str(o.get("label") or o["id"]) for o in listed[: rule.ui.max_options]}
    context = execution.output if rule.ui.present_output else ""
    return Question(str(body.get("question", "")), context, tuple(options.values()), "choice"), options
