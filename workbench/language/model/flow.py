"""Turns and attempts of a phase, the next phase, and the cascades that it starts."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from workbench.language.model.base import (
    HYPHENS,
    Count,
    Fidelity,
    Model,
    Number,
    Scalars,
    Switch,
    own,
    runs,
    tier1,
)
from workbench.language.model.candidates import Validator

END = "end"
"""The handoff target that ends the run, unless a phase has this name."""

LOOP_ATTEMPTS = 5
"""Attempts of a phase with ``loop_until`` and no ``max_attempts``."""


class Rules(Model):
    """How many turns and attempts a phase has, and what opens them."""

    max_turns: Annotated[Count, tier1("Upper limit of turns per attempt.")] = 1
    max_attempts: Annotated[
        Count,
        tier1("Attempts while output_schema, loop_until or a retry ward fails; 5 if only loop_until is written."),
    ] = 1
    loop_until: Annotated[
        Validator | None,
        tier1("Validator that must pass before the phase ends, or one written in place.", names="validator"),
    ] = None
    loop_until_prompt: Annotated[
        str | None, tier1("Replaces the sentence that tells the model about the validator.", "text")
    ] = None
    loop_until_silent: Annotated[Switch, tier1("Do not tell the model that its output is validated.")] = False
    retry_instructions: Annotated[str | None, tier1("The message that opens attempts 2 and later.", "text")] = None
    turn_prompt: Annotated[
        str | None, tier1("The user message of turns 2 and later; when set, all max_turns are taken.", "text")
    ] = None

    @model_validator(mode="after")
    def _attempts(self) -> Self:
        if self.loop_until is not None and "max_attempts" not in self.model_fields_set:
            self.__dict__["max_attempts"] = LOOP_ATTEMPTS
        return self


class Handoff(Model):
    """A phase that may come next."""

    SHORT: ClassVar[str] = "target"

    target: Annotated[str, tier1("Name of the phase; `end` ends the run, where no phase is called so.", names="phase")]
    description: Annotated[str | None, tier1("When to choose it; shown to the model in the routing menu.")] = None
    fidelity: Annotated[Fidelity | None, own("How much of the run the target sees when reached this way.")] = None
    thread_id: Annotated[str | None, own("Conversation that the target continues with fidelity full.")] = None


class SubCascade(Model):
    """A cascade that runs to its end before the turns of the phase."""

    ref: Annotated[str, runs("Path of the cascade file.")]
    input_map: Annotated[
        Scalars, runs("Input of the child: a template, the name of a state or input key, or a literal.")
    ] = Field(default_factory=dict)
    context_in: Annotated[Switch, tier1("Hand the parent's input and state to the child.")] = True
    context_out: Annotated[Switch, tier1("Merge the child's final state into the parent's.")] = True


class AsyncCascade(Model):
    """A cascade that runs beside the run and returns nothing."""

    ref: Annotated[str, runs("Path of the cascade file.")]
    input_map: Annotated[
        Scalars, runs("Input of the child: a template, the name of a state or input key, or a literal.")
    ] = Field(default_factory=dict)
    context_in: Annotated[Switch, runs("Hand the parent's input and state to the child.")] = True
    trigger: Annotated[
        Annotated[Literal["on_start", "on_end"], HYPHENS],
        tier1("Start before the turns, or after the phase has finished."),
    ] = "on_start"


class Retry(Model):
    """How often a deterministic phase is tried."""

    max_attempts: Annotated[Count, runs("Tries in all.")] = 3
    backoff: Annotated[
        Annotated[Literal["none", "linear", "exponential"], HYPHENS], runs("How the wait between tries grows.")
    ] = "linear"
    backoff_base_seconds: Annotated[Number, runs("The first wait, in seconds.")] = 1.0


OnRowError = Literal["continue", "fail_fast", "collect_errors"]


class ForEachRow(Model):
    """Runs a cascade, or one model step, for each row of an earlier phase's result."""

    table: Annotated[str, runs("Whose rows: `_PHASE`, or `_PHASE_KEY` for a list inside a result.", names="table")]
    cascade: Annotated[str | None, runs("Path of the cascade that runs for each row.")] = None
    instructions: Annotated[
        str | None, runs("Or a task for the model, with `row` and `row_index`; rendered for each row.", "text")
    ] = None
    inputs: Annotated[Scalars, runs("Input of each run: templates over `row` and `row_index`.", "text")] = Field(
        default_factory=dict
    )
    max_parallel: Annotated[Count, runs("Rows that run at once.")] = 5
    result_table: Annotated[str | None, runs("Name of the table of results; `_PHASE` always exists.")] = None
    on_error: Annotated[
        Annotated[OnRowError, HYPHENS],
        runs("Effect of a failed row: it is left out, fails the phase, or is listed with its error."),
    ] = "continue"

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.cascade is None) == (self.instructions is None):
            found = "neither" if self.cascade is None else "both"
            message = f"for_each_row needs either 'cascade' or 'instructions'; it has {found}"
            raise PydanticCustomError("one_way", message)
        return self
