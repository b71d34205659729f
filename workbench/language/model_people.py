"""Where a person is asked."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workbench.language.model_base import (
    HYPHENS,
    Count,
    Model,
    Number,
    Switch,
    Whole,
    loads,
    runs,
)


class HumanOption(Model):
    """One answer to choose."""

    label: Annotated[str, runs("What the person reads.")]
    value: Annotated[Any, runs("What is stored; the label if not written.")] = None
    description: Annotated[str | None, runs("A line below the label.")] = None
    requires_text: Annotated[Switch, runs("Ask for a text with it.")] = False
    requires_comment: Annotated[Switch, runs("Ask for a comment with it.")] = False


class HumanInput(Model):
    """A question after the phase. `true` asks for confirmation."""

    BARE: ClassVar[bool] = True

    type: Annotated[
        Annotated[
            Literal["confirmation", "choice", "multi_choice", "rating", "text", "form", "review", "auto", "htmx"],
            HYPHENS,
        ],
        runs("Kind of question."),
    ] = "confirmation"
    prompt: Annotated[str | None, runs("The question.", "text")] = None
    options: Annotated[tuple[HumanOption, ...], runs("Answers to choose.")] = ()
    max_rating: Annotated[Count, runs("Highest rating.")] = 5
    rating_labels: Annotated[tuple[str, ...] | None, runs("A label for each rating.")] = None
    fields: Annotated[tuple[dict[str, Any], ...], runs("Fields of a form.")] = ()
    hint: Annotated[str | None, runs("Help for the person; with type auto, the sort of form.")] = None
    condition: Annotated[str | None, runs("Jinja; a false result asks nobody.", "condition")] = None
    timeout_seconds: Annotated[Number | None, runs("How long to wait, in seconds.")] = None
    on_timeout: Annotated[
        Annotated[Literal["abort", "continue", "default", "escalate"], HYPHENS], runs("What then.")
    ] = "abort"
    default_value: Annotated[Any, runs("The answer with on_timeout: default.")] = None
    escalate_to: Annotated[
        str | None, runs("With on_timeout: escalate, the phase to go to, or whom to ask once more.")
    ] = None
    capture_reasoning: Annotated[Switch, runs("Ask why.")] = False
    capture_confidence: Annotated[Switch, runs("Ask how sure.")] = False
    generator_prompt: Annotated[
        str | None, runs("With type auto, what the model that writes the form is told besides.", "text")
    ] = None


class Audibles(Model):
    """Feedback that a person may give between calls."""

    enabled: Annotated[Switch, runs("False switches it off.")] = True
    budget: Annotated[Whole, runs("How often per visit.")] = 3
    allow_retry: Annotated[Switch, runs("Offer to redo the current turn.")] = True
    timeout_seconds: Annotated[Number, runs("How long to wait, in seconds.")] = 120.0


class DecisionUi(Model):
    """How a decision is shown."""

    present_output: Annotated[Switch, runs("Show the output beside the question.")] = True
    allow_text_fallback: Annotated[Switch, runs("Accept a free text.")] = True
    max_options: Annotated[Count, runs("Most options shown.")] = 6
    layout: Annotated[str, runs("How options are laid out.")] = "cards"


class DecisionRoute(Model):
    """Where an option leads."""

    SHORT: ClassVar[str] = "to"

    to: Annotated[str | None, runs("A phase, `next` or `self`.")] = None
    fail: Annotated[Switch, runs("The option fails the phase.")] = False
    inject: Annotated[str | None, runs("A message that the next call sees.", "text")] = None


class DecisionPoints(Model):
    """Questions that the model asks a person by a `<decision>` block."""

    enabled: Annotated[Switch, runs("False switches it off.")] = True
    trigger: Annotated[
        Annotated[Literal["output", "error"], HYPHENS], runs("Read from the output, or after a failure.")
    ] = "output"
    ui: Annotated[DecisionUi, runs("How the question is shown.")] = DecisionUi.model_construct()
    routing: Annotated[dict[str, DecisionRoute], runs("Where each option leads, by its id.")] = Field(
        default_factory=dict
    )
    timeout_seconds: Annotated[Number, runs("How long to wait, in seconds.")] = 3600.0
    on_error_prompt: Annotated[str | None, runs("The question after a failure.", "text")] = None


class Narrator(Model):
    """A spoken commentary; loaded, not run."""

    SWITCH: ClassVar[str] = "enabled"
    SPELLINGS: ClassVar = {"triggers": "on_events"}

    enabled: Annotated[Switch, loads("False switches it off.")] = True
    model: Annotated[str | None, loads("Model of the narrator.")] = None
    instructions: Annotated[str | None, loads("What to say.", "text")] = None
    voice_id: Annotated[str | None, loads("Voice.")] = None
    cascade: Annotated[str | None, loads("A cascade that narrates.")] = None
    on_events: Annotated[tuple[str, ...], loads("Events that are narrated.")] = ()
    min_interval_seconds: Annotated[Number, loads("Least time between two comments.")] = 10.0
    mode: Annotated[Annotated[Literal["event", "poll"], HYPHENS], loads("By events, or by polling.")] = "event"
    poll_interval_seconds: Annotated[Number, loads("Time between two polls.")] = 3.0
    context_turns: Annotated[Whole, loads("Turns that the narrator sees.")] = 5
