"""The parts of a run in the fold: its visits, calls, tool calls and bodies."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2s
from itertools import islice
from sys import maxsize
from typing import Any, NamedTuple, overload

from msgspec import Struct, field

from workbench.context.assembly import BrokenInvariant, Entry, Grade, Item
from workbench.context.cache import Forecast
from workbench.context.message import Image, Message
from workbench.context.place import Place
from workbench.engine.journal.costs import CallCost, PredictedCost
from workbench.engine.journal.elapsed import Stretches
from workbench.engine.journal.event import seconds_between, seconds_told
from workbench.engine.journal.paging import Page, Pages
from workbench.engine.journal.usage import Usage
from workbench.engine.model_name import OFFLINE

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


MOST_BODIES, BODIES_OF_A_PAGE = 2_000, 256
"""Bodies that stay in memory when the others go to the disk; those that go together."""


class Bodies(dict[str, Message]):
    """Message bodies by hash. One that a damaged journal lost reads as a marked placeholder."""

    def __init__(self) -> None:
        super().__init__()
        self._far: dict[bytes, tuple[Page, int]] = {}
        """Where those are that are on disk: the page, and the number in it."""
        self._pages: Pages | None = None

    def __missing__(self, digest: str) -> Message:
        far = self._far.get(_short_key(digest)) if self._far else None
        if far is None or self._pages is None:
            return Message("user", f"[body {digest[:8]} is missing from the journal]")
        body: Message = self._pages.get(far[0])[far[1]]
        self[digest] = body  # It is used again: it is the newest now.
        return body

    def known(self, digest: str) -> Message | None:
        """The body, or None if it is missing."""
        return self[digest] if digest in self or _short_key(digest) in self._far else None

    def page_out(self, pages: Pages) -> None:
        """Put all but the newest on disk, where that takes them."""
        self._pages = pages
        while len(self) >= MOST_BODIES + BODIES_OF_A_PAGE:
            oldest = list(islice(self.items(), BODIES_OF_A_PAGE))
            page = pages.put([body for _, body in oldest])
            if page is None:
                return
            for number, (digest, _) in enumerate(oldest):
                self._far[_short_key(digest)] = page, number
                del self[digest]


def _short_key(digest: str) -> bytes:
    """A key of 16 bytes: there are hundreds of thousands."""
    return blake2s(digest.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class FullResult(Struct, frozen=True):
    """Place of a whole result that the model saw cut: the digest of its bytes in UTF-8, and its length."""

    digest: str
    chars: int


class FarTexts(NamedTuple):
    """Place of a visit's messages that are on disk."""

    pages: Pages
    page: Page

    @property
    def read(self) -> VisitTexts:
        """The messages, read back. Raises OSError."""
        found: VisitTexts = self.pages.get(self.page)
        return found


class VisitTexts(NamedTuple):
    """The messages of a visit, which take most of its memory."""

    items: list[Item]
    calls: list[CallTexts]
    """In the order of its calls."""


class CallTexts(NamedTuple):
    """The same of one call."""

    entries: Sequence[Entry]
    answer: Message | None
    tools: list[tuple[str, str]]
    """Arguments and result of each tool call."""


class FarEntries(Sequence[Entry]):
    """The messages of a call whose visit is on disk."""

    __slots__ = ("_count", "_number", "_texts")

    def __init__(self, texts: FarTexts, number: int, count: int) -> None:
        """``number``: of the call in its visit, from 0."""
        self._texts, self._number, self._count = texts, number, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        return self._texts.read.calls[self._number].entries[index]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._texts.read.calls[self._number].entries)


class ToolState(Struct):
    """One tool call of a turn."""

    place: Place
    index: int
    tool: str
    _arguments: str
    call_id: str = ""
    status: str = "running"
    """running, done, failed (its error flag is set); skipped until the result that stands for it has come."""
    _text: str = ""
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
    _far: tuple[FarTexts, int, int] | None = None
    """Where its texts are on disk: of which call of its visit, and of which tool call of that."""

    @property
    def arguments(self) -> str:
        """JSON text as the model wrote it."""
        return self._arguments if self._far is None else self._read[0]

    @property
    def text(self) -> str:
        """The result."""
        return self._text if self._far is None else self._read[1]

    @text.setter
    def text(self, text: str) -> None:
        self._text = text

    @property
    def _read(self) -> tuple[str, str]:
        assert self._far is not None
        texts, call, tool = self._far
        return texts.read.calls[call].tools[tool]

    def put_far(self, *far: Any) -> None:
        """Leave its texts to the disk."""
        self._far, self._arguments, self._text = far, "", ""

    def put_near(self, texts: tuple[str, str]) -> None:
        """Take them back."""
        self._far, (self._arguments, self._text) = None, texts


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


class CallState(Struct):
    """One model call: what it saw, what came back, what it cost."""

    place: Place
    seq: int
    """Of its ``context_assembled`` event."""
    at: str = ""
    first_at: str = ""
    """When its first context was assembled: an edit while the run is paused assembles another."""
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
    nth: int = 1
    """Which one it is of the calls beside the turns of its visit that have its purpose, from 1."""
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
    answered: bool = False
    """Whether it has an answer."""
    _answer: Message | None = None
    _far: tuple[FarTexts, int] | None = None
    """Where its messages are on disk, and its number in the visit."""
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
    def answer(self) -> Message | None:
        """What the model said; None before that."""
        if self._far is None:
            return self._answer
        texts, number = self._far
        return texts.read.calls[number].answer

    @answer.setter
    def answer(self, answer: Message | None) -> None:
        self._answer, self.answered = answer, answer is not None

    @property
    def figures(self) -> list[CallFigures]:
        """Of each answer that it got."""
        if not self.answered:
            return self.earlier
        counted = self.usage.input is not None
        return [
            *self.earlier,
            CallFigures(self.tokens_in, self.grade_in, self.usage.output, self.paid, counted),
        ]

    @property
    def paid(self) -> CallCost:
        """The cost of its newest answer."""
        of_input = self.forecast.cost if self.forecast is not None else None
        predicted = PredictedCost.of(of_input, self.usage.output, self.prices.get("output"))
        return CallCost(self.cost, self.cost_grade, predicted.cost, self.recorded, predicted.whole)

    def grade_of(self, entry: Entry) -> Grade:
        """How far the counts of an entry can be trusted: none is exact in a request that is not known whole, for its
        message may have been sent in another form."""
        return Grade.ESTIMATE if self.unstated and entry.grade is Grade.EXACT else entry.grade

    def put_far(self, texts: FarTexts, number: int) -> None:
        """Leave its messages to the disk; ``number``: of the call in its visit, from 0."""
        self._far, self._answer = (texts, number), None
        self.entries = FarEntries(texts, number, len(self.entries))
        for index, tool in enumerate(self.tools):
            tool.put_far(texts, number, index)

    def put_near(self, texts: CallTexts) -> None:
        """Take them back."""
        self._far, self.entries, self._answer = None, texts.entries, texts.answer
        for tool, told in zip(self.tools, texts.tools, strict=True):
            tool.put_near(told)

    @property
    def name(self) -> str:
        """``turn 3``, with the attempt and the call if they are not the first; beside the turns, ``aside``."""
        place = self.place
        if not place.turn:
            return self.aside
        name = f"turn {place.turn}"
        if place.attempt > 1:
            name += f" attempt {place.attempt}"
        return name + (f" call {place.call}" if place.call > 1 else "")

    @property
    def words(self) -> str:
        """The same with its phase: ``triage:3``, as its place says it; beside the turns ``generate evaluation 2``."""
        if self.place.turn:
            return self.place.words
        return f"{self.place._replace(attempt=1, call=1).words} {self.aside}".strip()

    @property
    def aside(self) -> str:
        """``evaluation``, ``evaluation 2``: what a call beside the turns is called, numbered among those of its purpose
        in its visit. Empty for a call of a turn."""
        if self.place.turn:
            return ""
        return (self.purpose or "call") + (f" {self.nth}" if self.nth > 1 else "")

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
    def unsent(self) -> bool:
        """Whether a person answered in the provider's place: no request that is sent has no tokens."""
        return self.usage.input == 0

    @property
    def scripted(self) -> bool:
        """Whether a scripted reply answered it in a provider's place: then the reply states the usage."""
        return self.answered_by.endswith(OFFLINE)

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
    _items: list[Item] = field(default_factory=list)
    _far: FarTexts | None = None
    """Where the messages of all its calls are on disk; None while they are in memory."""
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
    check: str = ""
    """What it failed at: the name of a validator, else of a field of the phase; empty if it did not fail."""
    route: str = ""
    route_rule: str = ""
    started: str = ""
    finished: str = ""
    finished_seq: int = 0
    """Of its ``phase_finished`` event."""
    replayed_seconds: float | None = None
    """Of a replay: how long the visit took in the run that was replayed."""
    since: str = ""
    """When its time in this run began: with what happened behind the recording, if one answers for what it did
    before; with the run, if for all of it."""
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
    def failed_checks(self) -> list[Mapping[str, Any]]:
        """Those of its checks that did not pass."""
        return [check for check in self.checks if not check.get("valid", True)]

    @property
    def judged(self) -> dict[int, list[tuple[str, Mapping[str, Any]]]]:
        """Its checks with their names, by how many of its calls come before them: a check follows the attempt, or the
        turn, that it judged; one of the input comes before all calls."""
        made: list[tuple[int, int]] = []
        for call in self.calls:
            at = call.place.attempt, call.place.turn
            # A call beside the turns stands where it was made.
            made.append(max(at, made[-1]) if made else at)
        found: dict[int, list[tuple[str, Mapping[str, Any]]]] = {}
        for check in self.checks:
            attempt, turn = int(check.get("attempt") or 0), int(check.get("turn") or 0)
            before = bisect_right(made, (attempt, turn or maxsize)) if attempt else 0
            found.setdefault(before, []).append((str(check.get("name") or check.get("check") or "check"), check))
        return found

    @property
    def items(self) -> list[Item]:
        """The visit's own history, in order."""
        return self._items if self._far is None else self._far.read.items

    @items.setter
    def items(self, items: list[Item]) -> None:
        self._items = items

    def page_out(self, pages: Pages) -> None:
        """Put the messages of its calls on disk, where that takes them. They are read back when they are asked for."""
        if self._far is not None:
            return
        told = [
            CallTexts(call.entries, call.answer, [(tool.arguments, tool.text) for tool in call.tools])
            for call in self.calls
        ]
        page = pages.put(VisitTexts(self._items, told))
        if page is None:
            return
        self._items, self._far = [], FarTexts(pages, page)
        for number, call in enumerate(self.calls):
            call.put_far(self._far, number)

    def page_in(self) -> None:
        """Take them back into memory: something changes."""
        if self._far is None:
            return
        texts, self._far = self._far.pages.taken(self._far.page), None
        self._items = texts.items
        for call, told in zip(self.calls, texts.calls, strict=True):
            call.put_near(told)

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
        return None if passed is None else max(passed - self.away - self.pauses.until(self.finished), 0.0)

    @property
    def told_seconds(self) -> float | None:
        """Duration in seconds as prompts of later visits tell it, pauses included; None while it runs."""
        return seconds_told(self.started, self.finished) if self.replayed_seconds is None else self.replayed_seconds

    @property
    def attempts(self) -> int:
        return max((c.place.attempt for c in self.calls), default=0)
