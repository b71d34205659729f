"""Checks, and several candidates of which one wins."""

import hashlib
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from workbench.language.model.base import (
    BY_TYPE,
    HYPHENS,
    LIST,
    MAP,
    TEXT,
    Count,
    Model,
    Names,
    Number,
    Switch,
    Text,
    runs,
    tier1,
)
from workbench.language.model.parameters import Parameters
from workbench.language.tables import BASH, CLOJURE, JAVASCRIPT, PYTHON, SQL

LATER_TEMPLATE_NAMES = {
    "take_index": "sounding_index",
    "take_factor": "sounding_factor",
    "is_take": "is_sounding",
    "candidate_index": "sounding_index",
    "candidate_factor": "sounding_factor",
    "is_candidate": "is_sounding",
}
"""Names in templates that later editions of the language gave, with the names used here."""
REFINEMENT = "_refinement_context"
"""The key of the input under which a cascade's reforge gives its block, where a template reads it."""


_BY_TOOL = {
    PYTHON: "python",
    JAVASCRIPT: "javascript",
    "javascript_data": "javascript",
    SQL: "sql",
    CLOJURE: "clojure",
    BASH: "bash",
}
CODE_LANGUAGES = tuple(dict.fromkeys(_BY_TOOL.values()))
"""The languages of a validator. ``python``, ``javascript`` and ``clojure`` see ``content`` and ``original_input``;
``sql`` is a query whose first row has the columns ``valid`` and ``reason``; ``bash`` reads ``$CONTENT`` and prints the
verdict as JSON."""
_CODE_INPUTS = ("code", "query", "script")


class InlineValidator(Model):
    """A validator written in place: instructions for a model, or code that the sandbox runs."""

    instructions: Annotated[
        str | None, runs("How a model judges; sees input.content and input.original_input.", "text")
    ] = None
    model: Annotated[str | None, runs("Model of the validator, with instructions.", names="model")] = None
    max_turns: Annotated[Count, runs("Upper limit of turns, with instructions.")] = 1
    python: Annotated[str | None, runs("Python code that sets `result` to {valid, reason}.")] = None
    javascript: Annotated[str | None, runs("JavaScript code that sets `result` to {valid, reason}.")] = None
    sql: Annotated[str | None, runs("Query whose first row has the columns valid and reason.")] = None
    clojure: Annotated[str | None, runs("Clojure code whose value is {:valid, :reason}.")] = None
    bash: Annotated[str | None, runs("Script that reads $CONTENT and prints {valid, reason} as JSON.")] = None
    tool: Annotated[str | None, runs("The data tool that judges (python_data, sql_data …), with inputs.")] = None
    inputs: Annotated[dict[str, str], runs("The code of that tool: code, query or script.")] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [name for name in ("instructions", *CODE_LANGUAGES, "tool") if getattr(self, name) is not None]
        if len(ways) != 1:
            found = f"it has {' and '.join(ways)}" if ways else "it has none of them"
            known = f"instructions, {', '.join(CODE_LANGUAGES)} or tool"
            raise PydanticCustomError("one_way", f"a validator written in place needs one of {known}; {found}")
        if self.tool is not None and (self.tool not in _BY_TOOL or not self._tool_code):
            known = ", ".join(_BY_TOOL)
            message = f"'tool' of a validator is one of {known}, with its code under 'inputs'; got '{self.tool[:60]}'"
            raise PydanticCustomError("one_way", message)
        return self

    @property
    def _tool_code(self) -> str:
        return next((self.inputs[key] for key in _CODE_INPUTS if self.inputs.get(key)), "")

    @property
    def language(self) -> str:
        """Language of its code; empty if a model judges."""
        if self.tool is not None:
            return _BY_TOOL[self.tool]
        return next((name for name in CODE_LANGUAGES if getattr(self, name) is not None), "")

    @property
    def data_tool(self) -> str:
        """The data tool that can run its code; empty if a model judges."""
        return next((tool for tool, language in _BY_TOOL.items() if language == self.language), "")

    @property
    def code(self) -> str:
        """Its code; empty if a model judges."""
        return self._tool_code if self.tool is not None else getattr(self, self.language or "instructions") or ""

    @property
    def label(self) -> str:
        """The name shown to people and models if it has no name."""
        return f"inline {self.language or 'validator'}"

    @property
    def key(self) -> str:
        """The name of its verdicts in the journal. It changes with the code, so that a verdict that other code gave is
        not taken for its own."""
        return f"{self.label} {hashlib.sha256(self.code.encode()).hexdigest()[:8]}"

    def __str__(self) -> str:
        return self.label


Validator = Annotated[Text | Annotated[InlineValidator, Tag(MAP)], BY_TYPE]
"""The name of a validator, or one written in place."""


class Ward(Model):
    """One validator at work."""

    SHORT: ClassVar[str] = "validator"

    validator: Annotated[Validator, tier1("Name of the validator, or one written in place.", names="validator")]
    mode: Annotated[
        Annotated[Literal["blocking", "retry", "advisory"], HYPHENS],
        tier1("Stop the run, ask for another attempt, or record a warning."),
    ] = "blocking"
    max_attempts: Annotated[Count | None, tier1("Attempts with mode retry; rules.max_attempts if not written.")] = None


class Wards(Model):
    """Checks before, during and after a phase."""

    pre: Annotated[tuple[Ward, ...], tier1("Checks of the input, before the phase.")] = ()
    post: Annotated[tuple[Ward, ...], tier1("Checks of the output, in this order.")] = ()
    turn: Annotated[tuple[Ward, ...], tier1("Checks of each turn's text.")] = ()


class ModelShare(Parameters):
    """One model's share of the candidates, and the parameters of its calls."""

    factor: Annotated[Count, tier1("Candidates of this model, or its weight when models are drawn.")] = 1


class CostAware(Model):
    """Weighs quality against cost."""

    enabled: Annotated[Switch, tier1("False switches the block off.")] = True
    quality_weight: Annotated[Number, tier1("Weight of the evaluator's score.")] = 0.7
    cost_weight: Annotated[Number, tier1("Weight of the normalised cost.")] = 0.3
    show_costs_to_evaluator: Annotated[Switch, tier1("Show costs to the evaluator, for information.")] = True
    cost_normalization: Annotated[
        Annotated[Literal["min_max", "z_score", "log_scale"], HYPHENS], tier1("How costs are brought into 0 to 1.")
    ] = "min_max"


class Pareto(Model):
    """Picks from the candidates that no other beats in both quality and cost."""

    enabled: Annotated[Switch, tier1("Only true switches it on.")] = False
    policy: Annotated[
        Annotated[Literal["prefer_cheap", "prefer_quality", "balanced", "interactive"], HYPHENS],
        tier1("How the winner is chosen from the frontier."),
    ] = "balanced"
    show_frontier: Annotated[Switch, tier1("Log the frontier.")] = True
    quality_metric: Annotated[str, tier1("evaluator_score, or validator:NAME for that validator's score.")] = (
        "evaluator_score"
    )
    include_dominated: Annotated[Switch, tier1("Keep the dominated candidates in the Pareto file.")] = True


class Reforge(Model):
    """Refines the winner, step by step."""

    steps: Annotated[Count, tier1("Refinement steps.")] = 1
    factor_per_step: Annotated[Count, tier1("Candidates per step.")] = 2
    honing_prompt: Annotated[str, tier1("Instructions for the refinement.", "text")]
    mutate: Annotated[Switch, tier1("Vary the candidates by thinking strategies.")] = False
    evaluator_override: Annotated[str | None, tier1("Replaces evaluator_instructions in the steps.", "text")] = None
    threshold: Annotated[Ward | None, tier1("Stops the steps once it passes.")] = None


class HumanEval(Model):
    """How candidates are shown to the person who picks."""

    presentation: Annotated[
        Annotated[Literal["side_by_side", "tabbed", "carousel", "diff", "tournament"], HYPHENS],
        runs("How candidates are laid out."),
    ] = "side_by_side"
    selection_mode: Annotated[
        Annotated[Literal["pick_one", "rank_all", "rate_each", "tournament"], HYPHENS], runs("The person's task.")
    ] = "pick_one"
    show_metadata: Annotated[Switch, runs("Show model, cost and time.")] = True
    show_mutations: Annotated[Switch, runs("Show how the prompt was varied.")] = True
    show_index: Annotated[Switch, runs("Show the candidate's number.")] = False
    preview_render: Annotated[str, runs("How outputs are drawn.")] = "auto"
    max_preview_length: Annotated[Count | None, runs("Characters shown of each output.")] = None
    allow_reject_all: Annotated[Switch, runs("Offer to reject all, which fails the phase.")] = True
    allow_tie: Annotated[Switch, runs("Accept a tie; the lowest index wins.")] = False
    require_reasoning: Annotated[Switch, runs("Ask for a reason.")] = False
    timeout_seconds: Annotated[Number | None, runs("How long to wait, in seconds.")] = None
    on_timeout: Annotated[
        Annotated[Literal["random", "first", "abort", "llm_fallback"], HYPHENS],
        runs("How the winner is chosen after the wait."),
    ] = "llm_fallback"
    fallback_evaluator: Annotated[str | None, runs("Judging instructions of the fallback.", "text")] = None
    capture_for_training: Annotated[Switch, runs("Record the choice as rows of all_evals.")] = True
    capture_rejected_reasons: Annotated[Switch, runs("Record why the others were rejected.")] = False


def _template(value: str) -> str:
    if "{{" not in value and "{%" not in value:
        raise PydanticCustomError("int_type", "not a number")
    return value


Factor = Annotated[
    Annotated[str, AfterValidator(_template), Tag(TEXT)] | Annotated[Count, Tag(LIST)],
    BY_TYPE,
]
"""A number, or a template that gives one."""

Models = Annotated[
    Annotated[Names, Tag(LIST)] | Annotated[dict[str, ModelShare], Tag(MAP)],
    BY_TYPE,
]


class Soundings(Model):
    """Several candidates for one phase, or for a whole cascade."""

    factor: Annotated[Factor, tier1("Number of candidates; a template is rendered when the phase begins.", "text")] = 1
    max_parallel: Annotated[Count, tier1("Candidates that run at once.")] = 3
    evaluator_instructions: Annotated[str | None, tier1("How to judge.", "text")] = None
    validator: Annotated[Validator | None, tier1("Only candidates that pass it are evaluated.", names="validator")] = (
        None
    )
    mutate: Annotated[Switch, tier1("Vary the prompt; true if mutations or mutation_mode are written.")] = False
    mutation_mode: Annotated[
        Annotated[Literal["rewrite", "augment", "approach"], HYPHENS], tier1("How the prompt is varied.")
    ] = "rewrite"
    mutations: Annotated[tuple[str, ...] | None, tier1("Replace the eight built-in templates.", "text")] = None
    models: Annotated[
        Models, tier1("Models that take turns, or a share of candidates for each.", names="model", keys="model")
    ] = ()
    model_strategy: Annotated[
        Annotated[Literal["round_robin", "random", "weighted"], HYPHENS], tier1("How models are assigned.")
    ] = "round_robin"
    cost_aware_evaluation: Annotated[CostAware | None, tier1("Weigh quality against cost.")] = None
    pareto_frontier: Annotated[Pareto | None, tier1("Pick from the Pareto frontier.")] = None
    reforge: Annotated[Reforge | None, tier1("Refine the winner.")] = None
    mode: Annotated[
        Annotated[Literal["evaluate", "aggregate"], HYPHENS], runs("Pick one candidate, or join all outputs.")
    ] = "evaluate"
    aggregator_instructions: Annotated[str | None, runs("How one call joins the outputs.", "text")] = None
    aggregator_model: Annotated[str | None, runs("Model that joins the outputs.", names="model")] = None
    evaluator: Annotated[
        Annotated[Literal["human", "hybrid"], HYPHENS] | None, runs("A person picks, alone or after a model.")
    ] = None
    human_eval: Annotated[HumanEval | None, runs("How the candidates are shown to the person.")] = None
    llm_prefilter: Annotated[Count, runs("Candidates that the model leaves to the person, evaluator hybrid.")] = 3
    llm_prefilter_instructions: Annotated[str | None, runs("How the model prefilters.", "text")] = None

    @model_validator(mode="after")
    def _derive(self) -> Self:
        written = self.model_fields_set
        if "mutate" not in written and not written.isdisjoint(("mutations", "mutation_mode")):
            self.__dict__["mutate"] = True
        if "factor" not in written and self.models:
            self.__dict__["factor"] = self.shares_total or len(self.models)
        return self

    @property
    def shares_total(self) -> int:
        """Sum of the factors of a ``models`` mapping; 0 for a list."""
        return sum(share.factor for share in self.models.values()) if isinstance(self.models, dict) else 0

    @property
    def candidates(self) -> int:
        """The number of candidates: a mapping taken in turn counts its own factors, all else ``factor``; 2 if that is a
        template, which ``counted`` replaces.
        """
        if self._shares_decide:
            return self.shares_total
        return self.factor if isinstance(self.factor, int) else 2

    @property
    def template(self) -> str:
        """The template that gives the number of candidates; empty where the file gives it."""
        return self.factor if isinstance(self.factor, str) and not self._shares_decide else ""

    @property
    def _shares_decide(self) -> bool:
        return self.shares_total > 0 and self.model_strategy == "round_robin"

    def counted(self, factor: int) -> "Soundings":
        """The same with a number of candidates in place of its template."""
        return self.model_copy(update={"factor": factor})
