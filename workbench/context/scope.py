"""Everything beside the visit's own messages that assembling the contexts of a phase visit needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from workbench.context.assembly import Item, Rule
from workbench.context.pictured import Keep
from workbench.context.place import Place
from workbench.language.problem import Path, path_text

if TYPE_CHECKING:
    from workbench.context.cards import Choice
    from workbench.language.graph import Edge, Graph
    from workbench.language.model.cascade import Cascade, Phase


class VisitRecord(Struct, frozen=True):
    """A finished visit as the phases after it may see it."""

    branch: str
    phase: str
    visit: int
    status: str
    """success, failed, blocked, stopped. Only a successful visit is seen by later phases."""
    output: str = ""
    items: tuple[Item, ...] = ()
    """Its own history, in order, without injected messages."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """The keys that it set."""
    attempts: int = 1
    model: str = ""
    reason: str = ""
    """Why it did not succeed."""
    seq: int = 0
    """Number of the event that ended it. Facts that were set before have a smaller number."""
    seconds: float | None = None
    """Its duration in seconds by the journal; None if unknown."""
    callouts: frozenset[str] = frozenset()
    """``body_hash`` of the messages that it called out."""
    callout_names: Mapping[str, str] = field(default_factory=dict)
    """Under which name, by ``body_hash``."""
    preamble: str = ""
    """The preamble that it was sent (``Fidelity``)."""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    """Its outcome as a node of a pipeline (``PhaseOutcome.to_json``); empty for other phases."""
    edge: int | None = None
    """Index of the graph's edge that led to it; None for the first visit and after a jump."""

    @property
    def label(self) -> str:
        """``fix``, or ``fix#2`` for a later visit."""
        return self.phase if self.visit <= 1 else f"{self.phase}#{self.visit}"


class StateWrite(Struct, frozen=True):
    """A state key that was set."""

    key: str
    value: Any
    seq: int
    """Number of the event that says so."""
    place: Place = Place()
    by: str = ""
    """Who set it, as the event says: a tool, a rule of the phase, ``edit`` for a person."""


class Summary(Struct, frozen=True):
    """A summary of the oldest turns, made before assembly (strategy ``summarize``)."""

    covers: str
    """Digest of the messages that it stands for: ``SummaryRequest.covers``."""
    text: str


class Vectors(Struct, frozen=True):
    """Embeddings made before assembly (strategy ``semantic``)."""

    model: str
    by_text: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By ``cards.text_key``."""
    fault: str = ""
    """Why selected messages are missing after a model was asked; empty otherwise."""


class Arrival(Struct, frozen=True):
    """How a walk got to a visit."""

    came_from: str = ""
    """The phase of the visit just before; empty for the first."""
    graph: Graph | None = None
    """The graph that the run walks, if known."""
    edge: int | None = None
    """Index of the edge just travelled, for graphs other than cascades; None for the first visit and after a jump."""

    @property
    def pipeline(self) -> Graph | None:
        """The graph, if it is a pipeline, which itself sets what a phase sees."""
        return self.graph if self.graph is not None and self.graph.format == "dot" else None

    @property
    def travelled(self) -> Edge | None:
        """The edge just travelled."""
        edges = self.pipeline.edges if self.pipeline is not None else ()
        return edges[self.edge] if self.edge is not None and 0 <= self.edge < len(edges) else None

    @property
    def previous(self) -> str:
        """The phase that the walk comes from: the source of the edge, else the phase of the visit before."""
        return self.travelled.src if self.travelled is not None else self.came_from


class PhaseScope(Struct, frozen=True):
    """A phase visit about to run, or running."""

    cascade: Cascade
    phase: Phase
    index: int
    """Of the phase in the cascade's list."""
    place: Place
    """Branch, phase and visit."""
    input: Mapping[str, Any] = field(default_factory=dict)
    visits: tuple[VisitRecord, ...] = ()
    """Finished visits, in run order."""
    conditions: Mapping[str, bool] = field(default_factory=dict)
    """Conditions of context sources, evaluated already, by the path of the source: ``phases[2].context.from[1]``."""
    tool_text: str = ""
    """System message that describes prompt-based tools; empty without them."""
    system_text: str = ""
    """System message of a node of a graph, or of a program that is watched or imported; none of them has a
    ``tool_text``. Empty without one."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Native tool schemas, in the order in which they are sent."""
    model: str = ""
    forced: bool = False
    """Whether the model has to call a tool."""
    responses: bool = False
    """Whether the request is one to OpenAI's Responses API."""
    counted_as: str = ""
    """The model whose tokenizer counts; empty for ``model`` itself."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    line_of: Callable[[Path], int] = lambda path: 0
    """Line of a value in the file; 0 if it is not written."""
    keep_recent_images: int | None = None
    """Number of the visit's own images that are sent, newest first; None for all."""
    keep_image: Keep = lambda image, data: None
    """Takes the bytes of images that a text holds."""
    path: Path = ()
    """Path of the phase in the file; empty for ``("phases", index)``."""
    without_calls: Callable[[str], str] = lambda text: text
    """Takes prompt-based tool calls out of an answer."""
    summaries: tuple[Summary, ...] = ()
    """Summaries that exist already."""
    writes: tuple[StateWrite, ...] = ()
    """State that was set before this visit's first message, in order; of each key at least the last one."""
    task: str = ""
    """The task as it opens the visit."""
    choices: tuple[Choice, ...] = ()
    """The choices of selectors: those of this run, or of its recording."""
    vectors: Vectors | None = None
    """Stored embeddings; None if no model makes any."""
    graph: Graph | None = None
    """The graph that the run walks; None if no part needs it."""
    run_id: str = ""
    """The run as its prompts name it: a fork or replay keeps the name of the run that it came from."""
    edge: int | None = None
    """Index of the graph's edge that led to this visit; None for the first visit and after a jump."""
    from_checkpoint: bool = False
    """Whether the run goes on from a checkpoint, which has no conversations: those of before are lost."""
    fresh_retries: bool = False
    """Whether an attempt sees only the task of the attempts before it."""

    @property
    def came_from(self) -> str:
        """The phase of the visit just before; empty for the first."""
        return self.visits[-1].phase if self.visits else ""

    @property
    def arrival(self) -> Arrival:
        """How the run got here."""
        return Arrival(self.came_from, self.graph, self.edge)

    @property
    def base(self) -> Path:
        """Path of the phase in the file."""
        return self.path or ("phases", self.index)

    def rule(self, *path: str | int) -> Rule:
        """The rule that a field of this phase makes."""
        return self.rule_at((*self.base, *path))

    def rule_at(self, path: Path) -> Rule:
        """The rule at a path of the file."""
        return Rule(path_text(path), self.line_of(path))
