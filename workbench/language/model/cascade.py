"""The definition of a cascade: immutable, validated, with every field of the language and what it means."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, Tag, model_validator

from workbench.language.model.base import (
    BY_TYPE,
    HYPHENS,
    LIST,
    MAP,
    TEXT,
    Count,
    Duration,
    Fidelity,
    Inputs,
    Model,
    Names,
    Number,
    Switch,
    Text,
    Whole,
    loads,
    own,
    runs,
    tier1,
    written_out,
)
from workbench.language.model.candidates import (
    InlineValidator,
    Soundings,
    Ward,
    Wards,
)
from workbench.language.model.context import (
    AutoContext,
    Callouts,
    ContextRules,
    ContextSource,
    IntraContext,
    OutputExtraction,
    Rag,
    TokenBudget,
)
from workbench.language.model.flow import AsyncCascade, ForEachRow, Handoff, Retry, Rules, SubCascade
from workbench.language.model.mcp import Servers
from workbench.language.model.parameters import Parameters
from workbench.language.problem import Path

# Where a person is asked.


class HumanOption(Model):
    """One answer to choose."""

    label: Annotated[str, runs("The text that the person reads.")]
    value: Annotated[Any, runs("The value that is stored; the label if not written.")] = None
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
    condition: Annotated[str | None, runs("Jinja; where the result is false, no question is asked.", "condition")] = (
        None
    )
    timeout_seconds: Annotated[Number | None, runs("How long to wait, in seconds.")] = None
    on_timeout: Annotated[
        Annotated[Literal["abort", "continue", "default", "escalate"], HYPHENS], runs("What happens after the wait.")
    ] = "abort"
    default_value: Annotated[Any, runs("The answer with on_timeout: default.")] = None
    escalate_to: Annotated[
        str | None, runs("With on_timeout: escalate, the phase to go to, or whom to ask once more.", names="phase")
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
    """The target of an option."""

    SHORT: ClassVar[str] = "to"

    to: Annotated[str | None, runs("A phase, `next` or `self`.", names="phase")] = None
    fail: Annotated[Switch, runs("The option fails the phase.")] = False
    inject: Annotated[str | None, runs("A message that the next call sees.", "text")] = None


class DecisionPoints(Model):
    """Questions that the model asks a person by a `<decision>` block. Templates read the answer as
    `state._decision_PHASE`: `choice` (the id, or `custom`), `label`, `custom_text` and `question`."""

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
    model: Annotated[str | None, loads("Model of the narrator.", names="model")] = None
    instructions: Annotated[str | None, loads("The text to say.", "text")] = None
    voice_id: Annotated[str | None, loads("Voice.")] = None
    cascade: Annotated[str | None, loads("A cascade that narrates.")] = None
    on_events: Annotated[tuple[str, ...], loads("Events that are narrated.")] = ()
    min_interval_seconds: Annotated[Number, loads("Least time between two comments.")] = 10.0
    mode: Annotated[Annotated[Literal["event", "poll"], HYPHENS], loads("By events, or by polling.")] = "event"
    poll_interval_seconds: Annotated[Number, loads("Time between two polls.")] = 3.0
    context_turns: Annotated[Whole, loads("Turns that the narrator sees.")] = 5


# What stands around a run: the tool cache, and triggers and browsers that are loaded but not run.


class CachedTool(Model):
    """How one tool's results are reused."""

    enabled: Annotated[Switch, runs("False leaves this tool out.")] = True
    ttl: Annotated[Number, runs("How long a result counts, in seconds.")] = 3600.0
    key: Annotated[
        Annotated[Literal["args_hash", "query", "sql_hash", "custom"], HYPHENS],
        runs("The part of a call by which two are equal."),
    ] = "args_hash"
    custom_key_fn: Annotated[str | None, loads("Function that makes the key with key: custom.")] = None
    hit_message: Annotated[str | None, runs("A line before a reused result.")] = None
    invalidate_on: Annotated[
        Names, runs("Events that forget the results: phase_start, phase_complete, tool:NAME, state:KEY.")
    ] = ()


class ToolCaching(Model):
    """Reuse of tool results within a process."""

    SWITCH: ClassVar[str] = "enabled"

    enabled: Annotated[Switch, runs("Only true switches it on.")] = False
    storage: Annotated[
        Annotated[Literal["memory", "redis", "sqlite"], HYPHENS], runs("Where results are kept; all act as memory.")
    ] = "memory"
    global_ttl: Annotated[Number, runs("How long a result counts, in seconds.")] = 3600.0
    max_cache_size: Annotated[Whole, runs("Most results kept; the least recently used goes first.")] = 1000
    tools: Annotated[dict[str, CachedTool], runs("Settings of single tools.", keys="tool")] = Field(
        default_factory=dict
    )


class Trigger(Model):
    """An event meant to start a run; triggers are not scheduled."""

    name: Annotated[str, loads("Name of the trigger.")]
    type: Annotated[
        Annotated[Literal["cron", "sensor", "webhook", "manual"], HYPHENS] | None, loads("Kind of trigger.")
    ] = None
    description: Annotated[str | None, loads("Shown to people.")] = None
    enabled: Annotated[Switch, loads("False switches it off.")] = True
    inputs: Annotated[dict[str, Any], loads("Input of the run.")] = Field(default_factory=dict)
    schedule: Annotated[str | None, loads("Cron expression.")] = None
    timezone: Annotated[str, loads("Time zone of the schedule.")] = "UTC"
    check: Annotated[str | None, loads("Function that a sensor asks.")] = None
    args: Annotated[dict[str, Any], loads("Arguments of that function.")] = Field(default_factory=dict)
    poll_interval: Annotated[Duration, loads("Time between two checks.")] = 300.0
    poll_jitter: Annotated[Duration, loads("Random part of that time.")] = 0.0
    timeout: Annotated[Duration, loads("When a sensor gives up.")] = 86400.0
    auth: Annotated[Any, loads("How a webhook is protected.")] = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema"), loads("JSON Schema of a webhook's body.")] = None
    inputs_schema: Annotated[dict[str, Any], loads("Inputs that a person is asked for.")] = Field(default_factory=dict)


class Browser(Model):
    """A browser beside the phase; it is not started."""

    url: Annotated[str | None, loads("Page to open.", "text")] = None
    stability_detection: Annotated[Switch, loads("Wait until the page no longer moves.")] = False
    stability_wait: Annotated[Number, loads("How long it must stand still, in seconds.")] = 3.0
    show_overlay: Annotated[Switch, loads("Show what the browser does.")] = True
    inject_dom_coords: Annotated[Switch, loads("Add element coordinates to the context.")] = False
    auto_screenshot_context: Annotated[Switch, loads("Add screenshots to the context.")] = True


RAG_TOOLS = ("rag_search", "rag_read_chunk", "rag_list_sources")
"""Offered to a phase with a ``rag`` block."""
MAP_CASCADE = "map_cascade"
"""As a phase's tool: a cascade runs for each item of a list."""
LLM_DATA = ("windlass_data", "llm_data", "lars_data")
"""As a phase's tool: a model step whose YAML is written in ``inputs``, and whose JSON answer is a table."""
LLM_CODE = ("phase_yaml", "cell_yaml", "code")
"""The keys of ``inputs`` that may hold that YAML."""
SCHEMES = ("python", "sql", "shell")
"""Of tools that a phase names in place: ``python:module.function``, ``sql:file``, ``shell:file``."""
PHASE_TOOLS = (MAP_CASCADE, *LLM_DATA)
"""The tools that only a phase without a task of its own can name: the engine runs it."""

CASCADE_SUFFIXES = (".yaml", ".yml", ".json")
"""Endings of files that may hold a cascade."""
MANIFEST = "manifest"
"""In ``tackle``, alone or in the list: the Quartermaster chooses."""

Tackle = Annotated[
    Annotated[Literal["manifest"], Tag(TEXT)] | Annotated[Names, Tag(LIST)],
    BY_TYPE,
]
DECISION = "_decision_"
"""``state._decision_<phase>``: what a person decided there."""
LAST_ERROR = "last_deterministic_error"
"""``state.last_deterministic_error``: how the last deterministic phase that failed did."""
Fallback = Annotated[Text | Annotated["Phase", Tag(MAP)], BY_TYPE]


class Phase(Parameters):
    """One step of a cascade: a model phase with ``instructions``, or a deterministic one with ``tool``."""

    NULLS: ClassVar[frozenset[str]] = frozenset({"context"})

    name: Annotated[str, tier1("Unique name. Routes, outputs and contexts refer to it.")]
    instructions: Annotated[str | None, tier1("The task; `@file` takes it from a file.", "text")] = None
    tackle: Annotated[Tackle, tier1("Tools this phase may call, or `manifest` to have them chosen.", names="tool")] = ()
    mcp: Servers = Field(default_factory=dict)
    manifest_context: Annotated[
        Annotated[Literal["current", "full"], HYPHENS], tier1("The text that the Quartermaster reads when it chooses.")
    ] = "current"
    model: Annotated[
        str | None, tier1("Overrides the default model; `::effort` sets the reasoning effort.", names="model")
    ] = None
    use_native_tools: Annotated[Switch, tier1("Use the provider's tool calls instead of tools as text.")] = False
    rules: Annotated[Rules, tier1("Turns, attempts, and what opens them.")] = Rules.model_construct()
    handoffs: Annotated[tuple[Handoff, ...], tier1("Possible next phases.")] = ()
    sub_cascades: Annotated[tuple[SubCascade, ...], tier1("Cascades that run before the turns.")] = ()
    async_cascades: Annotated[tuple[AsyncCascade, ...], tier1("Cascades that run beside the run.")] = ()
    context: Annotated[
        ContextRules | None,
        BeforeValidator(written_out),
        tier1("Selects what enters the phase; present means selective."),
    ] = None
    inject_from: Annotated[tuple[ContextSource, ...] | None, tier1("Snowball, with these sources first.")] = None
    context_retention: Annotated[
        Annotated[Literal["full", "output_only"], HYPHENS], tier1("The part of this phase that later snowballs take.")
    ] = "full"
    context_ttl: Annotated[
        dict[str, Whole | None],
        tier1("Phases after which tool_results, images or messages leave later snowballs; null is never."),
    ] = Field(default_factory=dict)
    intra_context: Annotated[IntraContext | None, tier1("Masking of older turns of this phase.")] = None
    output_schema: Annotated[
        dict[str, Any] | None, tier1("JSON Schema of the output. Templates read its keys: `outputs.PHASE.KEY`.")
    ] = None
    enforce: Annotated[
        Literal["provider", "prompt", "both"] | None,
        own("Where output_schema goes before the answer: to the provider, into the model's task, or both."),
    ] = None
    wards: Annotated[Wards, tier1("Checks before, during and after the phase.")] = Wards.model_construct()
    soundings: Annotated[Soundings | None, tier1("Several candidates, of which one wins.")] = None
    output_extraction: Annotated[OutputExtraction | None, tier1("A part of the output that goes into the state.")] = (
        None
    )
    callouts: Annotated[Callouts | None, tier1("Tags of messages worth finding again.")] = None
    rag: Annotated[Rag | None, runs("Retrieval tools over a folder.")] = None
    human_input: Annotated[HumanInput | None, runs("Ask a person after the phase.")] = None
    audibles: Annotated[Audibles | None, runs("Feedback that a person may give between calls.")] = None
    decision_points: Annotated[DecisionPoints | None, runs("Questions that the model asks a person.")] = None
    tool: Annotated[str | None, runs("Runs this tool once, without a model.", names="tool")] = None
    htmx: Annotated[
        str | None,
        runs(
            "A page of HTML for a person. A phase without a task waits for its answer, the fields by name: "
            "`state.PHASE`. `action`, `selected` or `_route` in it says what comes next.",
            "text",
        ),
    ] = None
    hitl_title: Annotated[str | None, runs("Title of the page; the name of the phase by default.")] = None
    hitl_description: Annotated[str | None, runs("A line above the page.")] = None
    await_input: Annotated[
        Switch | None, runs("True: the page waits also where the phase has a task, which is then left out.")
    ] = None
    for_each_row: Annotated[
        ForEachRow | None, runs("Runs once for each row of a table, without a task of its own.")
    ] = None
    inputs: Annotated[Inputs, runs("Arguments of the tool.", "text")] = Field(default_factory=dict)
    routing: Annotated[
        dict[str, str],
        runs(
            "Next phase by `_route` or `status` of the result, success without either; `default` for all others.",
            names="phase",
        ),
    ] = Field(default_factory=dict)
    on_error: Annotated[
        Fallback | None,
        runs(
            "Phase that follows, or stands in, when the tool fails. Templates read the error as "
            "state.last_deterministic_error: message (also error), phase, tool, and type, the class of an exception.",
            names="phase",
        ),
    ] = None
    retry: Annotated[Retry | None, runs("How often the tool is tried.")] = None
    timeout: Annotated[Duration | None, runs("Time limit of the tool.")] = None
    ui_mode: Annotated[str | None, loads("Layout of a user interface.")] = None
    narrator: Annotated[Narrator | None, loads("Spoken commentary.")] = None
    browser: Annotated[Browser | None, loads("A browser beside the phase.")] = None
    fidelity: Annotated[Fidelity | None, own("How much of the run this phase sees.")] = None
    thread_id: Annotated[str | None, own("Conversation that the phase continues with fidelity full.")] = None
    strategy: Annotated[str | None, own("Context strategy; wins over the fields that it covers.")] = None

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: Any) -> Any:
        if type(data) is not dict:
            return data
        if data.get("human_input") is False:
            data = {key: value for key, value in data.items() if key != "human_input"}
        if isinstance(inline := data.get("on_error"), dict):
            data = {**data, "on_error": {"name": f"{data.get('name')}_fallback", **inline}}
        return data

    @property
    def screen(self) -> bool:
        """It shows a page to a person, whose answer is its output; it does nothing else."""
        task = self.instructions is not None or self.tool is not None or self.for_each_row is not None
        return self.htmx is not None and (not task or self.await_input is True)

    @property
    def deterministic(self) -> bool:
        """It has no task of its own: a tool runs once, something else runs for each row of a table, or a person is
        shown a page."""
        return self.screen or self.tool is not None or self.for_each_row is not None

    @property
    def offers_choice(self) -> bool:
        """``route_to`` is offered: it has two handoffs, or one with a description."""
        return len(self.handoffs) > 1 or any(handoff.description for handoff in self.handoffs)

    @property
    def manifest(self) -> bool:
        """The Quartermaster chooses the tools."""
        return self.tackle == MANIFEST or MANIFEST in self.tackle

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools listed; what the Quartermaster chooses comes on top."""
        return tuple(name for _, name in self.listed)

    @property
    def listed(self) -> tuple[tuple[int, str], ...]:
        """The tools listed, each with its position in ``tackle``."""
        names = self.tackle if isinstance(self.tackle, tuple) else ()
        return tuple((position, name) for position, name in enumerate(names) if name != MANIFEST)

    @property
    def inner_steps(self) -> tuple[str, ...]:
        """The names of model steps that the phase runs under another name than its own."""
        row = self.for_each_row is not None and self.for_each_row.instructions is not None
        checks = [self.rules.loop_until, *(ward.validator for w in self._wards for ward in w)]
        checks += [self.soundings.validator] if self.soundings is not None else []
        return (
            *((f"{self.name}_row",) if row else ()),
            *((f"{self.name}_llm",) if self.tool in LLM_DATA and not self.inner_cascade else ()),
            *(check.label for check in checks if isinstance(check, InlineValidator) and not check.language),
        )

    @property
    def inner_text(self) -> str:
        """The code that a phase with the tool ``windlass_data`` runs; empty for every other phase."""
        if self.tool not in LLM_DATA:
            return ""
        return self._inner[1]

    @property
    def _inner(self) -> tuple[str, str]:
        """The key of ``inputs`` that holds the code of ``windlass_data``, and the code."""
        written = ((key, self.inputs.get(key)) for key in LLM_CODE)
        return next(((key, text) for key, text in written if isinstance(text, str)), (LLM_CODE[0], ""))

    @property
    def inner_cascade(self) -> str:
        """The path of a cascade, if YAML writes it in place of a phase."""
        text = self.inner_text.strip()
        return text if "\n" not in text and text.endswith(CASCADE_SUFFIXES) else ""

    @property
    def _wards(self) -> tuple[tuple[Ward, ...], ...]:
        return self.wards.pre, self.wards.post, self.wards.turn

    @property
    def refs(self) -> tuple[tuple[Path, str], ...]:
        """The cascade files that the phase starts, each with its path inside the phase."""
        found: list[tuple[Path, str]] = []
        found += [(("sub_cascades", i, "ref"), child.ref) for i, child in enumerate(self.sub_cascades)]
        found += [(("async_cascades", i, "ref"), child.ref) for i, child in enumerate(self.async_cascades)]
        if self.for_each_row is not None and self.for_each_row.cascade is not None:
            found.append((("for_each_row", "cascade"), self.for_each_row.cascade))
        if self.inner_cascade:
            found.append((("inputs", self._inner[0]), self.inner_cascade))
        mapped = self.inputs.get("cascade") if self.tool == MAP_CASCADE else None
        if isinstance(mapped, str) and "{{" not in mapped:
            found.append((("inputs", "cascade"), mapped))
        return tuple(found)


class Cascade(Parameters):
    """A whole workflow."""

    cascade_id: Annotated[str, tier1("Identity of the cascade; its name as a tool or validator.")]
    description: Annotated[str | None, tier1("Shown to people, and to models that may call the cascade.")] = None
    inputs_schema: Annotated[dict[str, str], tier1("Inputs with a description each.")] = Field(default_factory=dict)
    phases: Annotated[tuple[Phase, ...], Field(min_length=1), tier1("The phases; their order matters for the flow.")]
    soundings: Annotated[Soundings | None, tier1("Run the whole cascade several times.")] = None
    auto_context: Annotated[AutoContext | None, tier1("Automatic context for all phases.")] = None
    token_budget: Annotated[TokenBudget | None, runs("How large a request may grow.")] = None
    tool_caching: Annotated[ToolCaching | None, runs("Reuse of tool results.")] = None
    mcp: Servers = Field(default_factory=dict)
    memory: Annotated[str | None, runs("Memory bank kept across runs.")] = None
    validators: Annotated[dict[str, InlineValidator], runs("Validators written in place.")] = Field(
        default_factory=dict
    )
    triggers: Annotated[tuple[Trigger, ...], loads("Events that would start a run.")] = ()
    narrator: Annotated[Narrator | None, loads("Spoken commentary.")] = None
    research_db: Annotated[str | None, loads("Database of research results.")] = None
    context_default: Annotated[
        Annotated[Literal["clean", "snowball"], HYPHENS], own("The context of a phase without context rules.")
    ] = "clean"
    default_fidelity: Annotated[Fidelity | None, own("How much of the run phases see, unless they say otherwise.")] = (
        None
    )
    strategies: Annotated[dict[str, str], own("Named context strategies for compare and sweep.")] = Field(
        default_factory=dict
    )
    strategy: Annotated[str | None, own("Context strategy; wins over the fields that it covers.")] = None

    def phase(self, name: str) -> Phase | None:
        """The phase of that name; the first if several have it."""
        return next((phase for phase in self.phases if phase.name == name), None)


Phase.model_rebuild()
