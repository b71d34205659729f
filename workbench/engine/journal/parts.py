"""The parts of a run in the fold: its visits, calls, tool calls and bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from workbench.context.assembly import BrokenInvariant, Entry, Grade, Item
from workbench.context.cache import Forecast
from workbench.context.message import Image, Message
from workbench.context.place import Place
from workbench.engine.journal.costs import CallCost
from workbench.engine.journal.elapsed import Stretches
from workbench.engine.journal.event import seconds_between, seconds_told
from workbench.engine.journal.usage import Usage

WINDOW = 14
"""Number of the rule that a request fits into the model's context window."""


def expected_tokens(predicted: int | None, sent: int, grade: str, scale: float | None) -> int:
    """Input tokens as the provider was expected to count them, by the forecast; in a journal of 0.1.0, whose forecasts
    lack them, our own count times the scale of a calibrated one.
    """
    if predicted is not None:
        return predicted
    return round(sent * (scale or 1.0)) if grade == Grade.CALIBRATED else sent


def expected_of(data: Mapping[str, Any]) -> int:
    """The same of a ``context_assembled`` event's data."""
    stated = (data.get("forecast") or {}).get("tokens")
    return expected_tokens(stated, data.get("tokens_sent", 0), data.get("grade", ""), data.get("scale"))


class Bodies(dict[str, Message]):
    """Message bodies by hash. One that a damaged journal lost reads as a marked placeholder."""

    def __missing__(self, digest: str) -> Message:
        return Message("user", f"[body {digest[:8]} is missing from the journal]")


class FullResult(Struct, frozen=True):
    """Place of a whole result that the model saw cut: the digest of its bytes in UTF-8, and its length."""

    digest: str
    chars: int


class ToolState(Struct):
    """One tool call of a turn."""

    place: Place
    index: int
    tool: str
    arguments: str
    """JSON text as the model wrote it."""
    call_id: str = ""
    status: str = "running"
    """running, done, failed (its error flag is set); skipped until the result that stands for it has come."""
    text: str = ""
    duration_s: float | None = 0.0
    """Seconds; None if an imported run does not state them."""
    sandbox: str = ""
    images: int = 0
    pictures: tuple[Image, ...] = ()
    whole: FullResult | None = None
    """Set if ``text`` was cut."""
    started: str = ""
    finished: str = ""
    """When its events were written."""
    edited: bool = False
    """Whether a person edited its arguments or its result, or wrote a result in its place."""


class CallFigures(NamedTuple):
    """One answered call."""

    tokens_in: int
    """As the provider counted them, else as predicted."""
    grade_in: Grade
    """How far ``tokens_in`` can be trusted: what a provider counted is exact."""
    tokens_out: int | None
    """None if the provider stated none."""
    cost: CallCost
    measured: bool = True
    """Whether a provider counted ``tokens_in``."""
    recorded: bool = False
    """Answered from a recording."""


class CallState(Struct):
    """One model call: what it saw, what came back, what it cost."""

    place: Place
    seq: int
    """Of its ``context_assembled`` event."""
    at: str = ""
    status: str = "assembled"
    """assembled, running, done, failed."""
    purpose: str = ""
    strategy: str = ""
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tools_hash: str = ""
    digest: str = ""
    entries: Sequence[Entry] = ()
    shortened: int = 0
    """How many of its messages were sent in another form than the history has them."""
    held_back: int = 0
    """Tokens that this spared."""
    items: int = 0
    """How many items the visit's own history had when the call was made."""
    beside: bool = False
    """A call of the engine's own, outside the turns."""
    tokens_full: int = 0
    tokens_sent: int = 0
    tools_tokens: int = 0
    overhead_tokens: int = 0
    grade: Grade = Grade.EXACT
    forecast: Forecast | None = None
    scale: float | None = None
    """Expected tokens divided by estimated ones, by what was reported before; None if the estimate is not scaled."""
    prices: Mapping[str, float | None] = field(default_factory=dict)
    """``input``, ``output``, ``cache_read``, ``cache_write``, ``cache_write_hour``: US dollars per token, as predicted
    with."""
    price_source: str = ""
    price_grade: str = "unknown"
    problems: tuple[BrokenInvariant, ...] = ()
    notes: tuple[str, ...] = ()
    unstated: str = ""
    """The parts of the request whose content is unknown, in words; empty if the request is known whole."""
    answer: Message | None = None
    edited: bool = False
    """Whether a person edited its answer."""
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    cost_grade: str = "unknown"
    answered_by: str = ""
    """Model and provider as they name themselves."""
    finish_reason: str = ""
    partial: bool = False
    first_token_s: float | None = None
    duration_s: float | None = None
    """From the request to the last byte of the answer, in seconds; None without an answer, or if unknown."""
    failures: list[Mapping[str, Any]] = field(default_factory=list)
    """``call_failed`` data, oldest first."""
    tools: list[ToolState] = field(default_factory=list)
    wire: Wire | None = None
    recorded: bool = False
    """Answered from a recording."""
    started: str = ""
    """When it was first sent; empty before that."""
    finished: str = ""
    """When its answer, or its last failure, was written."""
    earlier: list[CallFigures] = field(default_factory=list)
    """Of answers that it got before a resume asked it again: they were paid too."""

    @property
    def figures(self) -> list[CallFigures]:
        """Of each answer that it got."""
        if self.answer is None:
            return self.earlier
        predicted = self.forecast.cost if self.forecast is not None else None
        cost, counted = CallCost(self.cost, self.cost_grade, predicted), self.usage.input is not None
        newest = CallFigures(self.tokens_in, self.grade_in, self.usage.output, cost, counted, self.recorded)
        return [*self.earlier, newest]

    @property
    def expected(self) -> int:
        """Input tokens as predicted: as the provider was expected to count them."""
        stated = None if self.forecast is None else self.forecast.tokens
        return expected_tokens(stated, self.tokens_sent, self.grade, self.scale)

    @property
    def tokens_in(self) -> int:
        """Input tokens: the provider's count if known, else the prediction."""
        return self.expected if self.usage.input is None else self.usage.input

    @property
    def grade_in(self) -> Grade:
        """How far ``tokens_in`` can be trusted: what a provider counted is exact."""
        return self.grade if self.usage.input is None else Grade.EXACT


class Wire(Struct, frozen=True):
    """A request body exactly as sent: its key order, its message and tool bodies by hash."""

    order: tuple[str, ...]
    keys: Mapping[str, Any]
    messages: Sequence[str]
    tools: str = ""
    style: str = ""
    """How the body became bytes: ``compact``, ``spaced``, or empty if unknown."""


class PersonWait(Struct):
    """A question to a person, and when it was asked and answered; ``answered`` is empty while it is open."""

    place: Place
    index: int | None
    question: str
    asked: str
    answered: str = ""


_REFINED = re.compile(r"r\d+\.\d+").fullmatch
"""Names the branch of a candidate of reforge."""


class VisitState(Struct):
    """One visit of a phase."""

    branch: str
    phase: str
    visit: int
    kind: str = "llm"
    status: str = "running"
    """running, success, failed, blocked, stopped, skipped."""
    wave: int = 0
    """Which wave of a decomposition it is in, from 1; 0 in a walk."""
    model: str = ""
    max_turns: int = 1
    tools: tuple[str, ...] = ()
    conditions: Mapping[str, bool] = field(default_factory=dict)
    calls: list[CallState] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    """The visit's own history, in order."""
    tool_tries: list[ToolState] = field(default_factory=list)
    """The tool calls of a deterministic phase."""
    checks: list[Mapping[str, Any]] = field(default_factory=list)
    callouts: list[Mapping[str, Any]] = field(default_factory=list)
    feedback: list[Mapping[str, Any]] = field(default_factory=list)
    """``audible`` data: what a person said while it ran."""
    children: list[Mapping[str, Any]] = field(default_factory=list)
    """``child_started`` data of the runs that this visit started, completed by ``child_finished``."""
    child_times: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By run id: when such a run was started, and when it was waited for to its end; empty while it goes on."""
    state_set: dict[str, Any] = field(default_factory=dict)
    candidate: Mapping[str, Any] = field(default_factory=dict)
    """``candidate_finished`` data, if this is an execution among several."""
    evaluations: list[Mapping[str, Any]] = field(default_factory=list)
    output: str = ""
    reason: str = ""
    route: str = ""
    route_rule: str = ""
    started: str = ""
    finished: str = ""
    finished_seq: int = 0
    """Of its ``phase_finished`` event."""
    replayed_seconds: float | None = None
    """Of a replay: how long the visit took in the run that was replayed."""
    since: str = ""
    """When its time in this run began: with the run, if a recording answers for what it did before."""
    away: float = 0.0
    """Seconds in which it was open and nothing ran: between a stop and the resume."""
    pauses: Stretches = field(default_factory=Stretches)
    """When the run was paused in it."""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    """Its outcome as a node of a pipeline (``PhaseOutcome.to_json``); empty for other phases."""
    edge: int | None = None
    """Index of the graph's edge that led to it; None for the first visit and after a jump."""
    verdicts: Sequence[Mapping[str, Any]] = ()
    """The verdict on each edge out of it, if a pipeline chose among them (``EdgeVerdict.to_json``)."""
    route_edge: int | None = None
    """Index of the graph's edge that was taken from it; None if none was."""

    @property
    def parallel(self) -> bool:
        """Whether it ran in parallel to others without being a candidate: a task of a wave, or a node on a branch of a
        pipeline, whose branches are called ``NODE.TARGET``.
        """
        last = self.branch.rpartition("/")[2]
        return bool(self.wave) or ("." in last and not _REFINED(last))

    @property
    def seconds(self) -> float | None:
        """Duration in seconds without pauses, stops and what a recording answered; None while it runs."""
        passed = seconds_between(self.since, self.finished)
        return None if passed is None else max(passed - self.away - self.pauses.seconds, 0.0)

    @property
    def told_seconds(self) -> float | None:
        """Duration in seconds as prompts of later visits tell it, pauses included; None while it runs."""
        return seconds_told(self.started, self.finished) if self.replayed_seconds is None else self.replayed_seconds

    @property
    def attempts(self) -> int:
        return max((c.place.attempt for c in self.calls), default=0)
