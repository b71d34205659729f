"""The checks of a phase: wards, schema and validators, in their order, with their limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from workbench.context.message import canonical
from workbench.context.place import Place
from workbench.engine.contracts import ValidatorVerdict
from workbench.engine.conversation import Conversation
from workbench.engine.faults import PhaseBlocked, PhaseFailed
from workbench.engine.gate import Stop, StopKind
from workbench.engine.toolcalls import first_balanced, first_fenced
from workbench.engine.validators import UNJUDGED, key_of
from workbench.language.json_schema import SchemaFault, mismatch
from workbench.language.model.candidates import InlineValidator, Ward

TOO_DEEP = "at $: the answer is nested too deeply to be checked"


class Checks:
    """The checks of one conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.phase = conversation.phase
        self._index = 0
        self._stops = 0

    @property
    def limit(self) -> int:
        """Attempts allowed by schema and loop_until."""
        return self.phase.rules.max_attempts

    def describe(self, validator: str | InlineValidator) -> str | None:
        return self.conversation.validation.describe(validator)

    async def before(self) -> None:
        """Pre-wards judge the input; a retry ward has nothing to repeat here and blocks."""
        place = self.conversation.place()
        for ward in self.phase.wards.pre:
            content = canonical(self.conversation.world.input)
            verdict = await self._validate(ward.validator, content, place, "pre", ward.mode)
            if not verdict.valid and ward.mode != "advisory":
                raise PhaseBlocked(f"'{ward.validator}' blocked the input: {verdict.reason}", str(ward.validator))

    async def after_turn(self, text: str, attempt: int, turn: int) -> Failure | None:
        """Turn-wards judge the turn's text; the first failure of a retry ward is given back."""
        place = self.conversation.place(attempt, turn, 1)
        for ward in self.phase.wards.turn:
            failure = await self._ward(ward, text, place, "turn")
            if failure is not None:
                return failure
        return None

    async def early(self, text: str, attempt: int, turn: int) -> tuple[Failure | None, frozenset[str]]:
        """Schema, then loop_until, before the turns are used up; what passed need not be judged again."""
        place = self.conversation.place(attempt, turn, 1)
        failure = await self._schema(text, place) or await self._loop_until(text, place)
        return failure, frozenset() if failure else frozenset({"output_schema", "loop_until"})

    async def judge(self, attempted: FinishedAttempt, attempt: int) -> Failure | None:
        """Schema, loop_until, post-wards: the first failure ends them. Raises PhaseBlocked."""
        place = self.conversation.place(attempt)
        if "output_schema" not in attempted.judged:
            failure = await self._schema(attempted.text, place)
            if failure is not None:
                return failure
        if "loop_until" not in attempted.judged:
            failure = await self._loop_until(attempted.text, place)
            if failure is not None:
                return failure
        for ward in self.phase.wards.post:
            failure = await self._ward(ward, attempted.text, place, "post")
            if failure is not None:
                return failure
        return None

    async def _ward(self, ward: Ward, content: str, place: Place, when: str) -> Failure | None:
        verdict = await self._validate(ward.validator, content, place, when, ward.mode)
        if verdict.valid:
            return None
        if ward.mode == "blocking":
            raise PhaseBlocked(f"'{ward.validator}' blocked: {verdict.reason}", str(ward.validator))
        if ward.mode == "advisory":
            text = f"'{ward.validator}' advises: {verdict.reason}"
            self.conversation.engine.warn("ward", text, self.conversation.path, place)
            return None
        kind = "turn_ward" if when == "turn" else "ward"
        return Failure(str(ward.validator), kind, verdict.reason, ward.max_attempts or self.limit)

    async def _schema(self, text: str, place: Place) -> Failure | None:
        schema = self.phase.output_schema
        if schema is None or self.conversation.validation.passes_over(text, place):
            return None
        value, reason = checked_json(text, schema)
        await self._journal("output_schema", "output_schema", "retry", ValidatorVerdict(not reason, reason), place)
        if reason:
            return Failure("output_schema", "output_schema", reason, self.limit)
        self.conversation.world.validated = value
        self.conversation.checked = value
        return None

    async def _loop_until(self, text: str, place: Place) -> Failure | None:
        validator = self.phase.rules.loop_until
        if not validator:
            return None
        verdict = await self._validate(validator, text, place, "loop_until", "retry")
        return None if verdict.valid else Failure(str(validator), "loop_until", verdict.reason, self.limit)

    async def _validate(
        self, validator: str | InlineValidator, content: str, place: Place, kind: str, mode: str
    ) -> ValidatorVerdict:
        self._index += 1
        nested = "validator" if kind == "loop_until" else "ward"
        verdict = await self.conversation.validation.judge(validator, content, place, self._index, nested)
        if verdict is not UNJUDGED:
            await self._journal(kind, key_of(validator), mode, verdict, place)
        return verdict

    async def _journal(self, kind: str, name: str, mode: str, verdict: ValidatorVerdict, place: Place) -> None:
        run = self.conversation.engine
        self.conversation.validation.record(place, self._index, verdict, check=kind, name=name, mode=mode)
        self._stops += 1
        world = self.conversation.world
        stop = Stop(StopKind.AFTER_CHECK, place, run.depth, state=world.state, index=self._stops)
        for name in await run.gate_of_state(stop, world):
            self.conversation.state_set[name] = world.state[name]


def checked_json(text: str, schema: Any) -> tuple[Any, str]:
    """The JSON value of an answer, and why it does not match the schema (``at $.path: …``), empty when it does.

    Raises PhaseFailed for a schema that no answer can be held against.
    """
    found, value = False, None
    for candidate in _json_candidates(text):
        try:
            value = json.loads(candidate)
        except RecursionError:
            return None, TOO_DEEP
        except ValueError:
            continue
        found = True
        break
    if not found:
        return None, "at $: the answer holds no JSON"
    try:
        error = mismatch(schema, value)
    except SchemaFault as fault:
        raise PhaseFailed(f"output_schema: {fault}", "output_schema") from None
    except RecursionError:
        return None, TOO_DEEP
    return value, "" if error is None else f"at {error.json_path}: {error.message}"


def _json_candidates(text: str) -> Iterator[str]:
    """The whole text, else the first fenced block, else the first balanced object or array."""
    yield text
    if (fenced := first_fenced(text)) is not None:
        yield fenced
    if (balanced := first_balanced(text)) is not None:
        yield balanced


class Failure(Struct, frozen=True):
    """A check that did not pass and may ask for another attempt."""

    check: str
    """``output_schema``, or the validator's name."""
    kind: str
    """output_schema, loop_until, ward or turn_ward."""
    reason: str
    limit: int
    """Attempts that this check allows."""


class FinishedAttempt(Struct, frozen=True):
    """The turns of one attempt, done."""

    text: str
    """The last answer that is not blank, calls removed."""
    route: str = ""
    judged: frozenset[str] = frozenset()
    """Checks that an early check has already passed."""
    failure: Failure | None = None
    """The failure of a turn-ward that asked for another turn when none was left."""
