"""The outside world as the engine sees it. All that is not deterministic comes in through here and is journaled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from workbench.context.assembly import Request
from workbench.context.cache import Prices
from workbench.context.place import Place
from workbench.context.tokens import Counter
from workbench.engine.definition import Definition
from workbench.engine.gate import Gate, open_gate
from workbench.engine.journal.event import Event
from workbench.engine.journal.journal_writer import Clock, RecordedTimes, Sink
from workbench.engine.journal.past_run import PastRun
from workbench.engine.journal.usage import Usage as Usage
from workbench.language.model.mcp import McpServer
from workbench.language.templates.names import TemplateFault as TemplateFault
from workbench.language.templates.template import Rendered as Rendered

if TYPE_CHECKING:
    from workbench.engine.forms.spec import Form
    from workbench.language.model.context import Rag


class NativeCall(Struct, frozen=True):
    """A tool call as the provider returned it."""

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)


PLACEHOLDER = "[offline] "
"""Begins the answer of a model that was not asked: a text that stands in for one that no reply scripts."""


class Answer(Struct, frozen=True):
    """One answer of a model."""

    text: str
    calls: tuple[NativeCall, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Reasoning blocks and other provider metadata that must go back verbatim with the message."""
    finish_reason: str = "stop"
    usage: Usage = Usage()
    cost: float | None = None
    """US dollars by the provider's usage and the price map; None when unknown."""
    cost_grade: str = "unknown"
    model: str = ""
    """As the provider names it."""
    provider: str = ""
    provider_id: str = ""
    first_token_s: float | None = None
    duration_s: float | None = 0.0
    """Seconds; None if an imported run does not state them."""
    wire: Mapping[str, Any] | None = None
    """The JSON body exactly as sent (keys in wire order); None when no request was made."""
    wire_style: str = ""
    """How to get the sent bytes from ``wire``: ``compact`` (httpx's JSON) or ``spaced`` (json's own); empty if neither
    reproduces them.
    """
    partial: bool = False
    """The stream ended without a finish reason: the text may be cut."""
    recorded: bool = False
    """From a recording: no model was asked."""
    remarks: tuple[str, ...] = ()
    """Defects of an answer that can be used all the same."""


NODE_TIMEOUT = "node_timeout"
"""Kind of the fault of a call that the time limit of its node of a pipeline ended."""


class ModelFault(Exception):
    """A call that gave no answer.

    ``kind`` is one of timeout, connection, rate_limit, server, blank, bad_answer, stream_cut (retried) and
    authentication, permission, not_found, bad_request, context_length, too_large, no_model, unscripted,
    node_timeout (final).
    """

    RETRYABLE = frozenset({"timeout", "connection", "rate_limit", "server", "blank", "bad_answer", "stream_cut"})

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        body: str = "",
        wire: Mapping[str, Any] | None = None,
        wire_style: str = "",
        partial: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.retry_after = retry_after
        """Seconds the provider asked to wait."""
        self.body = body
        """The provider's answer, cut to 4,000 characters."""
        self.wire = wire
        self.wire_style = wire_style
        """As in ``Answer``."""
        self.partial = partial
        """Text that had arrived before a stream broke."""
        self.usage: Usage | None = None
        """The usage that the provider had reported by then."""
        self.cost: float | None = None
        """US dollars of these tokens; None if unknown."""

    @property
    def retryable(self) -> bool:
        return self.kind in self.RETRYABLE


class Divergence(Exception):
    """A replayed run asked for something that the recording answers otherwise, or not at all."""

    def __init__(self, place: Place, message: str, index: int = -1) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.index = index
        """Index of the first request message that differs; -1 if the difference is not in a message."""


Images = Mapping[str, bytes]
"""Image bytes by digest."""


class Model(Protocol):
    """Answers requests."""

    name: str
    """For people: ``litellm``, ``offline``, ``recorded``."""

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        """One try, no retries of its own. ``on_text`` gets each piece of text as it streams. Raises ModelFault."""
        ...

    def recorded(self, request: Request, place: Place) -> str:
        """Source of the answer: ``live``; ``recorded``; or ``changed``, if the recording has another request here."""
        ...


class Parameter(Struct, frozen=True):
    """One parameter of a tool. ``default`` counts only when ``required`` is false."""

    name: str
    type: str
    """As shown to a model: str, int, float, bool, list, dict."""
    required: bool = True
    default: Any = None
    description: str = ""
    """Description for a model that reads its tools as text; empty if the tool's own description serves."""


class ToolSpec(Struct, frozen=True):
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    schema: Mapping[str, Any]
    """JSON Schema of the arguments (an object)."""
    side_effects: bool = True
    """False only if the tool changes nothing outside: then a resumed run may repeat it."""


class ToolImage(Struct, frozen=True):
    """An image a tool returned, already read and typed by content."""

    data: bytes
    media_type: str
    width: int = 0
    height: int = 0
    path: str = ""


class ToolResult(Struct, frozen=True):
    """The result of a tool. An error is a result that the model sees, with its flag set."""

    text: str
    is_error: bool = False
    images: tuple[ToolImage, ...] = ()
    sandbox: str = "in process"
    """The level of the sandbox ladder that was used."""
    duration_s: float = 0.0
    value: Any = None
    """The result before it became text, if it is JSON."""
    whole: str = ""
    """The whole text, if ``text`` was cut to what a model gets; empty otherwise."""
    needs_trust: bool = False
    """The tool did not run at all, because its folder is not trusted."""
    embedded: Mapping[str, Any] = field(default_factory=dict)
    """The texts that the tool embedded to answer: ``texts``, ``by``, ``tokens`` and ``cost`` (US dollars); None if
    unknown."""


class Tools(Protocol):
    """Runs tools by name."""

    def names(self) -> Sequence[str]:
        """All registered tools, sorted."""
        ...

    def spec(self, name: str) -> ToolSpec | None:
        """None when no such tool is registered."""
        ...

    def maybe_ran(self, place: Place, index: int) -> bool:
        """Returns whether this very call was started before and its result never came (a resumed run)."""
        ...

    def recorded(self, place: Place, index: int) -> bool:
        """Returns whether a recording answers this call: what it says counts then, a reused result or not."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], place: Place, index: int) -> ToolResult:
        """Never raises for what a tool does wrong: exceptions, time-outs and refusals are results with the flag set.

        ``index`` counts the tool calls of a turn from 1; with ``place`` it identifies the call in a recording.
        """
        ...

    async def settled(self, branch: str, winner: str) -> None:
        """The candidates below a branch are judged: what tools hold open for the winner's branch is the branch's own
        from now on, and what they hold open for the others ends. Never raises for what a tool does wrong."""
        ...


class ValidatorVerdict(Struct, frozen=True):
    """The verdict of a validator on a text."""

    valid: bool
    reason: str = ""
    score: float | None = None
    """0 to 100, if the validator gives a score."""


class ValidatorFault(Exception):
    """A validator that raised or answered nonsense: a crash is no verdict, so the phase fails."""

    needs_trust = False
    """It did not run at all, because its folder is not trusted."""


class Validators(Protocol):
    """Judges texts by name: the function validators. Validator cascades are runs of the engine's own."""

    def describe(self, name: str) -> str | None:
        """First line of the validator's description; None when it is not registered."""
        ...

    async def judge(
        self, name: str, content: str, input: Mapping[str, Any], state: Mapping[str, Any], place: Place, index: int
    ) -> ValidatorVerdict:
        """``index`` counts the checks of a visit from 1. Raises ValidatorFault."""
        ...

    async def judge_code(
        self, name: str, language: str, code: str, content: str, input: Mapping[str, Any], place: Place, index: int
    ) -> ValidatorVerdict:
        """The same by code that the cascade holds, in one of ``CODE_LANGUAGES``; ``name`` is that of its verdicts, and
        differs for different code. Raises ValidatorFault."""
        ...


class Question(Struct, frozen=True):
    """A question to a person."""

    question: str
    context: str = ""
    options: tuple[str, ...] = ()
    kind: str = "text"
    """text, confirmation, choice, multi_choice or form."""
    form: Form | None = None
    """The form, if the answer is more than a text: its fields, and how it is read (``forms/values.py``)."""
    to: str = ""
    """The addressee of the question, if it was escalated."""
    made: Mapping[str, str] = field(default_factory=dict)
    """How the form came about: ``level``, ``why``, ``by`` (template or model)."""
    candidates: tuple[int, ...] = ()
    """Indices of the candidates that the options stand for, in their order."""
    mode: str = ""
    """Among candidates: pick_one, rank_all or rate_each."""
    judged: Mapping[str, Any] = field(default_factory=dict)
    """The judgement of an evaluator on the candidates before, as in ``evaluation_finished``."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """How candidates are shown, if the file changes the default: ``presentation``, ``render``, and what is ``hidden``
    (metadata, mutations).
    """


class NoPersonAttached(Exception):
    """No person is attached: the run stops, resumable."""


class Human(Protocol):
    """A person, if there is one."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        """The answer as text. Raises NoPersonAttached, and TimeoutError if it is known that no answer will come."""
        ...


class Ids(Protocol):
    """Identifiers."""

    def run_id(self) -> str:
        """A new UUIDv7."""
        ...


class Random(Protocol):
    """Chance."""

    def uniform(self) -> float:
        """In [0, 1); for waits, which need not be repeated."""
        ...

    def draw(self, place: Place, index: int) -> float:
        """In [0, 1); for choices. ``place`` and ``index`` identify the draw in a recording."""
        ...


class Render(Protocol):
    """Renders Jinja in a sandbox, with caps."""

    def __call__(self, template: str, names: Mapping[str, Any]) -> Rendered:
        """``names`` is plain JSON. Raises TemplateFault."""
        ...


class Notice(Struct, frozen=True):
    """Something for the screen only: never journaled, never needed to understand a run afterwards.

    Kinds: ``text`` (a piece of a streaming answer), ``held`` (at a stop), ``released``, ``retry`` (waiting before
    another try), ``waiting`` (for a provider), ``unsaved`` and ``saved`` (what the disk takes of the run),
    ``offline`` (no provider is known any more), ``spans`` (why they are not sent), ``told`` (a remark that a person
    should look at), ``hint`` (one that tells where to look or what is waited for).
    """

    kind: str
    place: Place
    data: Mapping[str, Any] = field(default_factory=dict)


class EmbeddedTexts(Struct, frozen=True):
    """Vectors, one for each text, in their order."""

    vectors: tuple[tuple[float, ...], ...]
    model: str
    """The model's name, as the embedder states it."""
    tokens: int | None = None
    """None if unknown."""
    cost: float | None = None
    """US dollars; None when unknown."""
    duration_s: float = 0.0
    recorded: bool = False
    """They come from a recording."""


class Embedder(Protocol):
    """Embeds texts."""

    async def embed(self, texts: Sequence[str], model: str) -> EmbeddedTexts:
        """One try, no retries of its own. Raises ModelFault."""
        ...


class RetrievalFault(Exception):
    """A bank that cannot be written; the message says why."""


class FolderSource(Struct, frozen=True):
    """A folder that a phase may search."""

    rule: Rag
    file: str
    """The cascade's file; the folder is looked up beside it first."""


class BankSource(Struct, frozen=True):
    """A bank of messages of earlier runs."""

    name: str


Source = FolderSource | BankSource


class Memory(Struct, frozen=True):
    """A message as a bank keeps it."""

    hash: str
    """Its content hash: a bank holds a message once."""
    role: str
    text: str
    phase: str
    visit: int
    turn: int
    tool: str = ""
    callout: str = ""
    at: str = ""
    """UTC, ISO 8601: when it was kept."""
    run_id: str = ""
    session_id: str = ""
    cascade_id: str = ""


class Retrieval(Protocol):
    """Answers the tools of ``rag`` and ``memory``."""

    async def call(
        self, source: Source, name: str, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        """Never raises for what goes wrong with a tool: that is a result with its flag set."""
        ...

    async def remember(self, bank: str, memories: Sequence[Memory]) -> None:
        """Add messages to a bank; those that it holds are passed over. Raises RetrievalFault."""
        ...


class CascadeNotFound(Exception):
    """A cascade that is named but not there, or that cannot run; the message says which and why."""

    needs_trust = False
    """It did not run because its folder is not trusted."""


class Library(Protocol):
    """The cascades around a run. In a replay they come from the recordings of the children."""

    def by_path(self, ref: str, file: str) -> Definition:
        """The cascade at a path, relative to ``file``, then to the workspace. Raises CascadeNotFound."""
        ...

    def by_name(self, name: str) -> Definition | None:
        """The cascade of the tackle folders with this ``cascade_id``. Raises CascadeNotFound if it cannot run."""
        ...

    def names(self) -> Sequence[str]:
        """``cascade_id`` of every cascade in the tackle folders that can be a tool, sorted."""
        ...

    def child_ports(
        self, parent: Ports, run_id: str, key: str, *, resumes: bool = False
    ) -> AbstractContextManager[Ports]:
        """Ports for a child: a journal of its own; in a replay its own recording. ``key`` is ``KIND_N``, unique
        within the parent. ``resumes``: it goes on in the journal that it has."""
        ...


class NoLibrary(Struct):
    """Knows no cascades; children get their parent's ports."""

    def by_path(self, ref: str, file: str) -> Definition:
        raise CascadeNotFound(f"cascade file '{ref}' not found")

    def by_name(self, name: str) -> Definition | None:
        return None

    def names(self) -> Sequence[str]:
        return ()

    @contextmanager
    def child_ports(self, parent: Ports, run_id: str, key: str, *, resumes: bool = False) -> Iterator[Ports]:
        yield parent


REMARKS = frozenset({"answers", "hooks"})
"""Codes of warnings about what a run was given besides its input."""


class Feedback(Struct, frozen=True):
    """A message of a person to a running phase."""

    text: str
    redo: bool = False
    """The turn is taken again with it; else the next call sees it."""


class Audibles(Protocol):
    """Lets a person speak between calls."""

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        """The person's next message: before the call of ``place``, or (``redo``) to repeat its turn, before the tool
        call with the number ``tool`` runs, else after the turn. Returns None at once if no message is announced; else
        waits for it. Raises TimeoutError if it is known that it will not come.
        """
        ...


class NoAudibles:
    """For runs without a person: no message ever comes."""

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        return None


class HookAction(StrEnum):
    """The wish of a hook: to go on, to pause the run, or to inject a text."""

    CONTINUE = "continue"
    PAUSE = "pause"
    INJECT = "inject"


class HookEvent(Struct, frozen=True):
    """An event as hooks and subscribers get it."""

    type: str
    """cascade_start, phase_start, turn_start, tool_call, tool_result, phase_complete, cascade_complete,
    cascade_error."""
    session_id: str
    timestamp: str
    """UTC, ISO 8601 with microseconds and ``Z``."""
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"type": self.type, "session_id": self.session_id, "timestamp": self.timestamp, "data": dict(self.data)}


class HookResult(Struct, frozen=True):
    """The answer of one hook."""

    name: str
    """Of the function."""
    action: HookAction = HookAction.CONTINUE
    text: str = ""
    """The text to inject."""
    reason: str = ""
    """Why, for people."""
    error: str = ""
    """The exception that it raised, or the reason why its answer could not be read."""
    recorded: bool = False
    """The recorded run got this answer; the person who let that run go on has let this one go on as well."""


class Hooks(Protocol):
    """The hooks of a workspace or of a program."""

    def wants(self, type: str) -> bool:
        """Returns whether any hook is registered for this type of event."""
        ...

    async def call(self, event: HookEvent, place: Place, index: int) -> Sequence[HookResult]:
        """Run the hooks of an event's type in the order of their registration. Never raises for what a hook does.

        ``index`` is that of a tool call, from 1; else 0. With ``place`` and the type it identifies the results in a
        recording."""
        ...


class NoHooks:
    """No hook is registered."""

    def wants(self, type: str) -> bool:
        return False

    async def call(self, event: HookEvent, place: Place, index: int) -> Sequence[HookResult]:
        return ()


class ServerTool(Struct, frozen=True):
    """A tool of a server."""

    server: str
    name: str
    """As the server calls it."""
    spec: ToolSpec
    """As a model sees it: ``SERVER__TOOL``."""


class Listing(Struct, frozen=True):
    """The tools of a server, sorted by name; or why they could not be listed."""

    tools: tuple[ServerTool, ...] = ()
    refused: tuple[str, ...] = ()
    """Why tools that it names are not offered, a sentence each."""
    fault: str = ""
    """Why the server cannot be used; empty if it can."""
    needs_trust: bool = False


class Servers(Protocol):
    """The MCP servers of a run. ``definition`` is the cascade's definition of the server; None for one of
    the settings.
    """

    def names(self) -> Sequence[str]:
        """The servers of the settings, sorted."""
        ...

    async def listing(self, server: str, definition: McpServer | None, place: Place) -> Listing:
        """The tools of a server. A fault of the server is part of the result, not an exception. Raises Divergence if a
        recording has no listing.
        """
        ...

    async def call(
        self, tool: ServerTool, definition: McpServer | None, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        """Never raises for what a server does wrong, like ``Tools.call``."""
        ...


class NoServers:
    """Offers no servers: those that a cascade names cannot be started."""

    def names(self) -> Sequence[str]:
        return ()

    async def listing(self, server: str, definition: McpServer | None, place: Place) -> Listing:
        return Listing(fault="no MCP server can be started here")

    async def call(
        self, tool: ServerTool, definition: McpServer | None, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        return ToolResult(f"the MCP server '{tool.server}' cannot be started here", is_error=True)


class Ports(Struct):
    """All ports of one run."""

    model: Model
    tools: Tools
    validators: Validators
    human: Human
    clock: Clock
    ids: Ids
    random: Random
    render: Render
    counter: Counter
    prices: Prices
    sink: Sink
    library: Library = field(default_factory=NoLibrary)
    retrieval: Retrieval | None = None
    """None if there is neither a folder nor a bank to search."""
    embedder: Embedder | None = None
    """None if no embedding model is set up."""
    servers: Servers | None = None
    """None if no MCP server can be started."""
    gate: Gate = open_gate
    journaled: Sequence[Event] = ()
    """The events of this very run, when it is resumed (``JournalWriter``)."""
    ran_until: Callable[[], str] = lambda: ""
    """When the runs inside it last did anything before it was resumed (``JournalWriter``)."""
    past_run: Callable[[str], PastRun | None] = lambda key: None
    """The run that a resumed run had started, by the key of the child; None for one that was not started before."""
    recorded_at: RecordedTimes | None = None
    """When events happened in the run that this one replays; None where nothing is replayed."""
    recorded_seconds: Callable[[Place], float | None] = lambda place: None
    """Seconds that a visit took in the run that this one replays, which its prompts repeat; None where nothing is
    replayed, and the clock tells."""
    redact: Callable[[str], tuple[str, int]] = lambda text: (text, 0)
    """Replaces secrets in text that enters the run; returns the text and how many were replaced."""
    notify: Callable[[Notice], None] = lambda notice: None
    audibles: Audibles = field(default_factory=NoAudibles)
    hooks: Hooks = field(default_factory=NoHooks)
    remarks: Callable[[Sequence[str]], Sequence[tuple[str, str]]] = lambda phases: ()
    """Checks what the run was given besides its input (prepared answers, hooks) against the names of its phases.
    Returns a code (of ``REMARKS``) and a text for each warning.
    """
