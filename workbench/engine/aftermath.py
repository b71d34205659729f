"""What follows a phase's last answer: extraction into the state, and callouts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from workbench.context.assembly import Item, Kind
from workbench.engine.faults import PhaseFailed

if TYPE_CHECKING:
    from workbench.engine.execution import Execution

SEARCH_SECONDS = 2.0
"""Time limit of an extraction pattern: a pattern from a file may take exponential time."""


def extract(execution: Execution) -> None:
    """Put the part of the output that the pattern finds into the state. Raises PhaseFailed for a required miss."""
    rule = execution.phase.output_extraction
    if rule is None:
        return
    import regex

    try:
        found = regex.search(rule.pattern, execution.output, regex.DOTALL | regex.IGNORECASE, timeout=SEARCH_SECONDS)
    except TimeoutError:
        raise PhaseFailed(
            f"output_extraction: the pattern took over {SEARCH_SECONDS:g} s", "output_extraction"
        ) from None
    except regex.error as fault:
        raise PhaseFailed(f"output_extraction: the pattern is not valid: {fault}", "output_extraction") from fault
    if found is None:
        if rule.required:
            raise PhaseFailed(f"output_extraction: nothing matches {rule.pattern!r}", "output_extraction")
        return
    text = found[1] if found.re.groups and found[1] is not None else found[0]
    execution.set_state(rule.store_as, _formatted(text, rule.format), execution.place(), by="output_extraction")


def _formatted(text: str, form: str) -> Any:
    if form == "json":
        try:
            return json.loads(_unfenced(text))
        except (ValueError, RecursionError) as fault:
            why = "nested too deeply" if isinstance(fault, RecursionError) else f"no JSON: {fault}"
            raise PhaseFailed(f"output_extraction: the match is {why}", "output_extraction") from fault
    return _unfenced(text) if form == "code" else text.strip()


def _unfenced(text: str) -> str:
    """The body of a fenced block, if the text is one."""
    fence = re.fullmatch(r"\s*```[^\n]*\n(.*?)\n?```\s*", text, re.DOTALL)
    return fence[1] if fence else text.strip()


def call_out(execution: Execution) -> None:
    """Tag the final output, or messages, with a name under which they are found again."""
    rule = execution.phase.callouts
    if rule is None:
        return
    answers = [item for item in execution.items if item.kind is Kind.ANSWER]
    if rule.output and answers:
        _tag(execution, answers[-1], rule.output, "output")
    if rule.messages:
        for item in _selected(execution.items, answers, rule.messages_filter):
            _tag(execution, item, rule.messages, "messages")


def _selected(items: list[Item], answers: list[Item], wanted: str) -> list[Item]:
    if wanted == "all":
        return items
    if wanted == "last_turn" and answers:
        return [item for item in items if item.place.turn_key == answers[-1].place.turn_key]
    return answers


def _tag(execution: Execution, item: Item, template: str, field: str) -> None:
    path = (*execution.path, "callouts", field)
    name = execution.render(template, path, turn=item.place.turn).strip()
    execution.callouts[item.message.body_hash] = name
    execution.engine.scribe.emit(
        "callout",
        item.place,
        name=name,
        target=field,
        content_hash=item.message.content_hash,
        body_hash=item.message.body_hash,
    )
