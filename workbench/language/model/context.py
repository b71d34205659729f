"""Fields that decide what a phase sees: selection between phases, masking within one, budgets, retrieval and tags."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from workbench.language.model.base import (
    HYPHENS,
    SELECTOR,
    Count,
    Model,
    Names,
    Number,
    SelectionStrategy,
    Share,
    Switch,
    Whole,
    own,
    runs,
    tier1,
)

Part = Annotated[Literal["images", "output", "messages", "state"], HYPHENS]
AnchorPart = Annotated[Literal["output", "callouts", "input", "errors"], HYPHENS]


SOURCE_SHORTHANDS = {"prev": "previous"}
SOURCE_KEYWORDS = ("all", "first", "previous", *SOURCE_SHORTHANDS)
"""Words that a source of a context may be instead of a phase, in any case."""
TTL_CATEGORIES = ("tool_results", "images", "messages")
"""The keys of ``context_ttl``."""


MessagesFilter = Literal["all", "assistant_only", "last_turn"]


class ContextSource(Model):
    """An earlier phase whose parts enter the context."""

    SHORT: ClassVar[str] = "phase"
    SPELLINGS: ClassVar = {"filter": "messages_filter", "if": "condition"}

    phase: Annotated[str, tier1("Phase name (`name#2` for its second visit), or all, first, previous.", names="source")]
    include: Annotated[
        tuple[Part, ...], tier1("Parts to take, always in the order images, output, messages, state.")
    ] = (
        "images",
        "output",
    )
    images_filter: Annotated[
        Annotated[Literal["all", "last", "last_n"], HYPHENS], tier1("Images of the phase to take.")
    ] = "all"
    images_count: Annotated[Count, tier1("How many images with images_filter: last_n.")] = 1
    messages_filter: Annotated[
        Annotated[MessagesFilter, HYPHENS],
        tier1("Messages of the last attempt to take."),
    ] = "all"
    as_role: Annotated[
        Annotated[Literal["user", "system"], HYPHENS],
        tier1("Role of the injected output and state. Messages keep their roles, and their header is the user's."),
    ] = "user"
    condition: Annotated[str | None, tier1("Jinja; a false result skips the source.", "condition")] = None


class Anchors(Model):
    """The messages that automatic context never drops."""

    window: Annotated[Whole, tier1("The last turns of the previous phase visit.")] = 3
    from_phases: Annotated[Names, tier1("Phases and keywords whose outputs are anchors.", names="source")] = (
        "previous",
    )
    include: Annotated[tuple[AnchorPart, ...], tier1("Kinds of message that are anchors.")] = (
        "output",
        "callouts",
        "input",
    )


class Selection(Model):
    """How automatic context chooses messages that fit beside the anchors."""

    strategy: Annotated[SelectionStrategy, tier1("How candidates are ranked.")] = "heuristic"
    max_tokens: Annotated[Whole, tier1("Budget after the anchors, in tokens.")] = 30000
    max_messages: Annotated[Whole, tier1("Most messages selected.")] = 50
    selector_model: Annotated[str | None, tier1("Model that selects from the menu of cards.", names="model")] = None
    recency_weight: Annotated[Number, tier1("Weight of being recent, by position.")] = 0.3
    keyword_weight: Annotated[Number, tier1("Weight of shared keywords.")] = 0.4
    callout_weight: Annotated[Number, tier1("Weight of being a callout.")] = 0.3
    similarity_threshold: Annotated[Share, tier1("Least cosine similarity, strategy semantic only.")] = 0.5


class ContextRules(Model):
    """Selects what enters a phase. Present means selective, even when `from` is empty."""

    from_: Annotated[
        tuple[ContextSource, ...], Field(alias="from"), tier1("Sources in this order: phase names, keywords, objects.")
    ] = ()
    exclude: Annotated[Names, tier1("Taken out after keywords are resolved.", names="source")] = ()
    include_input: Annotated[Switch, tier1("Add the original input first.")] = True
    mode: Annotated[
        Annotated[Literal["explicit", "auto"], HYPHENS], tier1("Listed sources, or anchors and selection.")
    ] = "explicit"
    anchors: Annotated[Anchors | None, tier1("Messages that are never dropped; for mode: auto.")] = None
    selection: Annotated[Selection | None, tier1("Messages that are chosen beside the anchors; for mode: auto.")] = None


class IntraContext(Model):
    """Masking of older turns within a phase. A block that is written is on unless it says otherwise."""

    enabled: Annotated[Switch, tier1("False switches the block off.")] = True
    window: Annotated[Whole, tier1("Turns of this age or less stay verbatim, tool results apart.")] = 5
    mask_observations_after: Annotated[Whole, tier1("Tool results older than this many turns are masked.")] = 3
    compress_loops: Annotated[Switch, tier1("Shorten failed attempts in the context of a retry.")] = True
    loop_history_limit: Annotated[Whole, tier1("Failed attempts shown in the context of a retry.")] = 3
    preserve_reasoning: Annotated[Switch, tier1("False: cut old text without calls to 200 characters.")] = True
    preserve_errors: Annotated[Switch, tier1("Keep results whose error flag is set.")] = True
    min_masked_size: Annotated[Whole, runs("Results smaller than this many characters stay.")] = 200
    step: Annotated[Count, own("Move the masking frontier only every so many turns.")] = 1
    clear_at_least: Annotated[Whole, own("Mask only when at least this many tokens are freed.")] = 0


class InterContext(Model):
    """Defaults for phases with `context.mode: auto`."""

    enabled: Annotated[Switch, tier1("False: such phases get their anchors alone.")] = True
    strategy: Annotated[SelectionStrategy, tier1("Used where no selection block names one.")] = "heuristic"
    selector_model: Annotated[str, tier1("Used where no selection block names one.", names="model")] = SELECTOR
    anchors: Annotated[Anchors | None, tier1("Default anchors.")] = None
    selection: Annotated[Selection | None, tier1("Default selection.")] = None


class AutoContext(Model):
    """Automatic context of a whole cascade."""

    intra_phase: Annotated[IntraContext | None, tier1("Default masking within phases.")] = None
    inter_phase: Annotated[InterContext | None, tier1("Defaults for phases with mode: auto.")] = None


class Summarizer(Model):
    """The model that summarises messages dropped by a budget."""

    model: Annotated[str | None, runs("Model of the summary call; the default model if not named.", names="model")] = (
        None
    )
    target_size: Annotated[Count, runs("Size of the summary in tokens.")] = 2000


BudgetStrategy = Literal["sliding_window", "prune_oldest", "summarize", "fail"]


class TokenBudget(Model):
    """How large a request may grow, and what goes first."""

    max_total: Annotated[Count, runs("Tokens of input and output together.")] = 100_000
    reserve_for_output: Annotated[Whole, runs("Tokens kept free for the answer.")] = 4000
    strategy: Annotated[
        Annotated[BudgetStrategy, HYPHENS],
        runs("How a request is made smaller that is too large."),
    ] = "sliding_window"
    warning_threshold: Annotated[Share, runs("Share of the budget at which a warning is recorded.")] = 0.8
    phase_overrides: Annotated[dict[str, Count], runs("Tokens in all for single phases.", keys="phase")] = Field(
        default_factory=dict
    )
    summarizer: Annotated[Summarizer, runs("The summarizer, with strategy summarize only.")] = (
        Summarizer.model_construct()
    )


class OutputExtraction(Model):
    """A part of the output that goes into the state."""

    pattern: Annotated[str, runs("Regular expression; group 1, else the match.")]
    store_as: Annotated[str, runs("State key of the result.")]
    required: Annotated[Switch, runs("A miss fails the phase.")] = False
    format: Annotated[Annotated[Literal["text", "json", "code"], HYPHENS], runs("How the match is read.")] = "text"


class Callouts(Model):
    """Tags that anchors and selection can find again."""

    SHORT: ClassVar[str] = "output"

    output: Annotated[str | None, runs("Tag of the final output.", "text")] = None
    messages: Annotated[str | None, runs("Tag of matching messages.", "text")] = None
    messages_filter: Annotated[Annotated[MessagesFilter, HYPHENS], runs("Messages that are tagged.")] = "assistant_only"


class Rag(Model):
    """Retrieval over a folder of the workspace."""

    directory: Annotated[str, runs("Folder to index.")]
    recursive: Annotated[Switch, runs("Index sub-folders too.")] = False
    include: Annotated[Names, runs("File patterns to take; all if empty.")] = ()
    exclude: Annotated[Names, runs("File patterns to leave out.")] = ()
    chunk_chars: Annotated[Count, runs("Size of a chunk in characters.")] = 1200
    chunk_overlap: Annotated[Whole, runs("Characters shared by neighbouring chunks.")] = 200
    model: Annotated[str | None, runs("Embedding model; lexical ranking if not named.", names="model")] = None
