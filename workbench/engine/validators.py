"""Finds the validator that a name means, and asks it: a function, an inline validator, a cascade."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.contracts import CascadeNotFound, ValidatorFault, ValidatorVerdict
from workbench.engine.current import calling
from workbench.engine.definition import Definition, Outcome
from workbench.engine.faults import TRUST, PhaseFailed
from workbench.engine.journal.figures import Figures
from workbench.engine.journal.unanswered import UnansweredCounts
from workbench.engine.services import Services
from workbench.engine.toolcalls import objects_in
from workbench.engine.world import World
from workbench.language.model.candidates import InlineValidator

UNJUDGED = ValidatorVerdict(True)
"""Of a text that stands in for an answer, and where the answer of a validator is such a text: nothing is journaled."""


class ChildRuns(Protocol):
    """Runs cascades that a part of the run starts."""

    async def run(self, definition: Definition, input: Mapping[str, Any], kind: str, place: Place) -> Child:
        """Run a cascade as a child and wait for it. Raises PhaseFailed beyond the depth limit; RunStopped and
        Divergence when the child was stopped or diverged. How it ended otherwise is for the caller to judge."""
        ...


class Child(Struct, frozen=True):
    """A child run that has ended."""

    run_id: str
    session_id: str
    outcome: Outcome
    outputs: Mapping[str, Any]
    """By phase of the child."""
    tokens: int
    cost: float
    """US dollars, of all that is known."""
    unpriced: int
    """How often the cost of something was not known."""
    took: Figures = Figures()
    """With the runs inside it."""
    replaced: Figures = Figures()
    """What the run took that it was started in the place of: no part of ``took``."""
    unanswered: UnansweredCounts = UnansweredCounts()
    """With the runs inside it."""


class Validation:
    """The validators of a run, bound to one world."""

    def __init__(self, services: Services, children: ChildRuns, world: World) -> None:
        self._services = services
        self._children = children
        self._world = world

    def describe(self, validator: str | InlineValidator) -> str | None:
        """First line of a validator's description; None when there is no such validator."""
        services, name = self._services, str(validator)
        if isinstance(validator, InlineValidator) or name in services.definition.cascade.validators:
            return ""
        known = services.ports.validators.describe(name)
        if known is not None:
            return known
        try:
            cascade = services.ports.library.by_name(name)
        except CascadeNotFound:
            return ""
        return None if cascade is None else (cascade.cascade.description or "").strip().split("\n")[0]

    async def judge(
        self, validator: str | InlineValidator, content: str, place: Place, index: int, kind: str
    ) -> ValidatorVerdict:
        """Ask the validator; secrets in its reason are replaced.

        Raises PhaseFailed when it is not known, cannot run, or raises: a crash is no verdict.
        """
        if self.passes_over(content, place):
            return UNJUDGED
        verdict = await self._verdict(validator, content, place, index, kind)
        return (
            verdict if verdict is UNJUDGED else replace(verdict, reason=self._services.ports.redact(verdict.reason)[0])
        )

    def passes_over(self, text: str, place: Place) -> bool:
        """Returns whether no check judges a text, because it only stands in for an answer; a warning says so."""
        found = self._services.is_placeholder(text)
        if found:
            told = f"checks of '{place.phase}' are passed over: no reply is scripted for the answer that they need"
            self._services.warn("unscripted", told, place=place)
        return found

    def record(self, place: Place, index: int, verdict: ValidatorVerdict, *, check: str, name: str, mode: str) -> None:
        """Journal ``check_finished``: what the check ``name`` said, and what it decides (``check``, ``mode``)."""
        if verdict is UNJUDGED:
            return
        self._services.journal.emit(
            "check_finished",
            place,
            index=index,
            check=check,
            name=name,
            mode=mode,
            valid=verdict.valid,
            reason=verdict.reason,
            score=verdict.score,
        )

    async def _verdict(
        self, validator: str | InlineValidator, content: str, place: Place, index: int, kind: str
    ) -> ValidatorVerdict:
        services, world = self._services, self._world
        name, inline = str(validator), validator if isinstance(validator, InlineValidator) else None
        if inline is None:
            inline = services.definition.cascade.validators.get(name)
        validators = services.ports.validators
        try:
            if inline is not None and inline.language:
                language, code, input = inline.language, inline.code, world.input
                with calling(services, world, place):
                    # The name is that of the journal: it changes with the code.
                    key = inline.key if isinstance(validator, InlineValidator) else name
                    return await validators.judge_code(key, language, code, content, input, place, index)
            if inline is None and validators.describe(name) is not None:
                with calling(services, world, place):
                    return await validators.judge(name, content, world.input, world.state, place, index)
            definition = as_cascade(name, inline) if inline is not None else services.ports.library.by_name(name)
        except (ValidatorFault, CascadeNotFound) as fault:
            needs_trust = isinstance(fault, ValidatorFault) and fault.needs_trust
            reason, _ = services.ports.redact(f"validator '{name}': {fault}")
            raise PhaseFailed(reason, TRUST if needs_trust else name) from fault
        if definition is None:
            raise PhaseFailed(f"validator '{name}' is not known", name)
        given = {"content": content, "original_input": dict(world.input)}
        child = await self._children.run(definition, given, kind, place)
        if child.outcome.status != "success":
            reason = f"validator '{name}' {child.outcome.words}"
            raise PhaseFailed(reason, name)
        verdict = verdict_of(child.outcome.output)
        if verdict is None and self.passes_over(child.outcome.output, place):
            return UNJUDGED
        if verdict is None:
            services.warn(
                "validator", f"validator '{name}' gave no verdict; its text counts as a rejection", place=place
            )
            return ValidatorVerdict(False, child.outcome.output.strip())
        return verdict


def key_of(validator: str | InlineValidator) -> str:
    """Returns the name of a validator's verdicts in the journal."""
    return validator if isinstance(validator, str) else validator.key


def verdict_of(text: str) -> ValidatorVerdict | None:
    """The verdict in an answer: the first object with ``valid``."""
    for value in objects_in(text):
        if isinstance(value.get("valid"), bool):
            return ValidatorVerdict(value["valid"], str(value.get("reason") or ""), _score(value.get("score")))
    return None


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_cascade(name: str, inline: InlineValidator) -> Definition:
    """An inline validator is a cascade of one phase, written in place."""
    phase: dict[str, Any] = {"name": name, "instructions": inline.instructions}
    if inline.model:
        phase["model"] = inline.model
    phase["rules"] = {"max_turns": inline.max_turns}
    schema = {"content": "the text to judge", "original_input": "what the run was given"}
    document = {"cascade_id": name.replace(" ", "_"), "inputs_schema": schema, "phases": [phase]}
    return Definition.of(json.dumps(document, ensure_ascii=False, indent=1), f"validators.{name}")
