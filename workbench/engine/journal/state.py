"""The fold: takes events, gives the state of the run. The app draws it, commands print it, what-if reads it.

``RunState.apply`` takes events one by one, in order, as a run makes them; ``read`` takes them from a journal. Neither
fails on an unknown kind, and ``read`` never fails, because a damaged or newer run must still be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from sys import intern
from typing import Any

from msgspec.structs import replace

from workbench.context.assembly import BrokenInvariant, Entry, Grade, Item, Kind, Splice
from workbench.context.cache import PRICES, Forecast
from workbench.context.cards import Choice
from workbench.context.message import Image, Message
from workbench.context.place import Place
from workbench.context.rope import Rope
from workbench.context.scope import StateWrite
from workbench.engine.journal.annotations import Annotations
from workbench.engine.journal.candidate_rounds import RunCandidateRounds, VisitKey
from workbench.engine.journal.elapsed import Elapsed, Stretches
from workbench.engine.journal.event import KINDS, MALFORMED, Event, seconds_between, timestamp, unpacked
from workbench.engine.journal.figures import ChildFigures, Figures, ended_tools
from workbench.engine.journal.paging import Pages
from workbench.engine.journal.parts import (
    WINDOW,
    Bodies,
    CallFigures,
    CallState,
    FullResult,
    PersonWait,
    ToolState,
    VisitState,
    Wire,
)
from workbench.engine.journal.repeats import Repeats
from workbench.engine.journal.unanswered import Unanswered
from workbench.engine.journal.usage import StatedUsage, Usage

NEAR_VISITS, SPARE_VISITS = 64, 16
"""Visits of a watched program whose messages stay in memory: a program has seldom more contexts that go on side by
side. So many more, and the oldest are put on disk together."""


class RunState:
    """The state of a run, folded from its events so far."""

    def __init__(self) -> None:
        self.run_id = ""
        self.session_id = ""
        self.cascade_id = ""
        self.cascade_file = ""
        self.cascade_text = ""
        self.cascade_sha256 = ""
        self.input: Mapping[str, Any] = {}
        self.options: Mapping[str, Any] = {}
        self.ports: Mapping[str, Any] = {}
        self.imported: Mapping[str, Any] = {}
        """For a run of another tool: its format, file, what was left out, and the figures that the file states of the
        whole.
        """
        self.parent: Mapping[str, Any] = {}
        self.status = "running"
        """running, success, failed, blocked, stopped, diverged; a reader that finds no end sets ``interrupted``."""
        self.reason = ""
        self.output = ""
        self.started = ""
        self.finished = ""
        self.elapsed = Elapsed()
        self.seq = 0
        self.visits: list[VisitState] = []
        self.calls: list[CallState] = []
        self.models: dict[str, None] = {}
        """The models that the turns of its phases and candidates asked, the newest last."""
        self.state: dict[str, Any] = {}
        self.writes: list[StateWrite] = []
        """Changes of the state, on all branches, in order."""
        self.outputs: dict[str, str] = {}
        self.warnings: list[Event] = []
        self.questions: list[Event] = []
        """``human_asked`` events without an answer yet."""
        self.left_open: list[Event] = []
        """Questions that were unanswered at the run's end; they are asked again when it resumes."""
        self.contests = RunCandidateRounds()
        """Candidates that ran side by side, round by round."""
        self.choices: list[Choice] = []
        """The choices of selectors, in order."""
        self.vectors: dict[str, dict[str, tuple[float, ...]]] = {}
        """Embeddings by the model that was asked and the key of the text."""
        self.embedded: list[Mapping[str, Any]] = []
        """``embedded`` data, in order."""
        self.edits: list[Event] = []
        """``edited`` events, in order."""
        self.other_strategy: Mapping[str, Any] = {}
        """The last ``what_if``: what all calls would have cost so far under a strategy that was priced beside them."""
        self.annotations = Annotations()
        """Labels that people gave to the run and its calls: set by its reader, since they are no part of the
        journal."""
        self.fault = ""
        """The fault that its reader found in its journal, in a sentence."""
        self.senseless: list[Event] = []
        """Records of a journal whose data does not fit their kind."""
        self.bodies = Bodies()
        self.wire_bodies: dict[str, str] = {}
        """JSON text of wire messages by hash."""
        self.tool_schemas: dict[str, list[Mapping[str, Any]]] = {}
        self.images: dict[str, Mapping[str, Any]] = {}
        """Image blobs by digest: media type, size."""
        self.wholes: dict[str, FullResult] = {}
        """By body hash of a result's message: the place of the whole text, if it was cut."""
        self._branch_entries: dict[str, Rope[Entry]] = {}
        self._branch_short: dict[str, tuple[int, int]] = {}
        """Of the same context: messages that were sent in another form, and the tokens that this spared."""
        self._branch_wires: dict[str, Rope[str]] = {}
        self._by_place: dict[Place, CallState] = {}
        self._repeats = Repeats()
        self.unanswered = Unanswered()
        self.people: list[PersonWait] = []
        """Questions to people, in order."""
        self.gaps: list[tuple[str, str]] = []
        """Stretches in which nothing ran: between a stop, or the recorded past of a fork, and the resume."""
        self.children = ChildFigures({}, {}, {})
        """Figures of the runs that it started."""
        self._own: tuple[int, Figures] | None = None
        """``own``, and after how many events."""
        self._beside: tuple[int, tuple[CallState, ...]] = (-1, ())
        """``calls_beside``, likewise."""
        self._sums: tuple[int, dict[tuple[int, ...], Figures]] = (-1, {})
        """Of several visits, by their identities, likewise: screens ask for them again at each key."""
        self._paid: dict[int, list[CallFigures]] = {}
        """By the ``id`` of a call: its figures since an event last told of it. A tree of 5,000 calls sums them up for
        each frame."""
        self._answered: dict[int, tuple[list[CallFigures], Figures]] = {}
        """By the ``id`` of a visit: the figures of its calls and their sums, since an event last told of it. To make
        those of 10,000 calls of a watched program anew for each frame took 0.1 s."""
        self._taken = 0
        """Events that were taken."""
        self.tools_ended = 0
        """Calls of tools that have ended."""
        self.used_cache = False
        """Whether a provider took tokens of any request from its cache."""
        self._last_at = ""
        """When the event before happened."""
        self._visits: dict[tuple[str, str, int], VisitState] = {}
        self._near: dict[tuple[str, str, int], VisitState] = {}
        """Visits whose messages are in memory, by their last event; those that had one last are at the end."""
        self._pages: Pages | None = None

    @classmethod
    def of(cls, events: Iterable[Event]) -> RunState:
        """Fold a whole journal."""
        state = cls()
        for event in events:
            state.read(event)
        return state

    def page_out(self) -> None:
        """Take the messages of a watched program out of memory that no event was about for long, while it goes on. They
        are read back from a file when they are looked at; figures, times and places stay."""
        if "imported" not in self.ports:
            return
        if self._pages is None:
            self._pages = Pages()
        if len(self._near) >= NEAR_VISITS + SPARE_VISITS:
            for key in list(islice(self._near, len(self._near) - NEAR_VISITS)):
                self._near.pop(key).page_out(self._pages)
        self.bodies.page_out(self._pages)

    # -- lookups -------------------------------------------------------------------------------------------------------

    def call_at(self, place: Place) -> CallState | None:
        return self._by_place.get(place)

    def visit_of(self, place: Place) -> VisitState | None:
        return self._visits.get(place.visit_key)

    def _candidate(self, place: Place, at: str = "") -> VisitState:
        """The visit of a place; a candidate's begins with its first request."""
        visit = self.visit_of(place)
        if visit is None:
            visit = VisitState(place.branch, place.phase, place.visit, kind="candidate", started=at)
            visit.since = self._time_since(at)
            self.visits.append(visit)
            self._visits[place.visit_key] = visit
        return visit

    def _added(self, event: Event, data: Mapping[str, Any]) -> list[Item]:
        items = self._items(data)
        visit = self.visit_of(event.place)
        if visit is not None:
            visit.items += items
        return items

    def _items(self, data: Mapping[str, Any]) -> list[Item]:
        return [Item.from_json(body, self.bodies) for body in data.get("added", ())]

    def _tools_at(self, place: Place) -> list[ToolState]:
        """The list that keeps the tool calls of a place: that of its model call, or of its visit if no model asked."""
        if (call := self._by_place.get(place)) is not None:
            return call.tools
        visit = self.visit_of(place)
        return visit.tool_tries if visit is not None else []

    # -- totals ----------------------------------------------------------------------------------------------------

    @property
    def prompt_id(self) -> str:
        """The run as its prompts name it."""
        return self.parent.get("prompt_id") or self.run_id

    @property
    def last_at(self) -> str:
        """When the newest event happened; empty before any."""
        return self._last_at

    @property
    def source(self) -> str:
        """The run whose answers a re-run of this one takes: while it has only repeated another, that one has more."""
        repeats = self.parent.get("kind") == "rerun" and self._last_at <= self.started
        return str(self.parent["run_id"]) if repeats else self.run_id

    @property
    def edited(self) -> int:
        """How many edits were made by hand."""
        return len(self.edits)

    @property
    def edited_places(self) -> frozenset[Place]:
        """Places that a person edited: calls, and visits without a call yet."""
        return frozenset(event.place for event in self.edits)

    @property
    def stated(self) -> StatedUsage:
        """The usage that an imported file states of the whole run, for the calls that state none."""
        return StatedUsage.of(self.imported)

    @property
    def own(self) -> Figures:
        """Figures of the run itself, without the runs that it started."""
        if self._own is None or self._own[0] != self._taken:
            calls = [one for visit in self.visits for one in self._answered_of(visit)[0]]
            calls += [one for call in self.calls_beside for one in self.figures_of_call(call)]
            took = Figures.sum(calls, tools=self.tools_ended, embedded=self.embedded, stated=self.stated)
            self._own = self._taken, took
        return self._own[1]

    @property
    def calls_beside(self) -> tuple[CallState, ...]:
        """Calls of no visit."""
        if self._beside[0] != self._taken:
            self._beside = self._taken, tuple(call for call in self.calls if self.visit_of(call.place) is None)
        return self._beside[1]

    def figures(self, known: Mapping[str, Figures] | None = None) -> Figures:
        """Figures of the run with the runs that it started. ``known`` says what those took that have not ended."""
        return self.own + self.children.figures(known)

    def figures_of_call(self, call: CallState) -> list[CallFigures]:
        """Returns the figures of each answer that a call got."""
        if (known := self._paid.get(id(call))) is None:
            known = self._paid[id(call)] = call.figures
        return known

    def figures_of_calls(self, calls: Sequence[CallState]) -> Figures:
        """Returns the sums of some calls."""
        return Figures.sum((one for call in calls for one in self.figures_of_call(call)), tools=ended_tools(calls))

    def beside_the_phases(self, calls: Sequence[CallState]) -> Figures:
        """Returns the sums of some calls, and of the embeddings of the run, which belong to no call."""
        return Figures.sum((one for call in calls for one in self.figures_of_call(call)), embedded=self.embedded)

    def figures_of(self, visits: Sequence[VisitState], known: Mapping[str, Figures] | None = None) -> Figures:
        """Returns the sums of some visits and of the runs that they started."""
        if self._sums[0] != self._taken:
            self._sums = self._taken, {}
        key = tuple(map(id, visits))
        if (total := self._sums[1].get(key)) is None:
            total = self._sums[1][key] = self._sum_of(visits)
        inside = [str(child.get("run_id", "")) for visit in visits for child in visit.children]
        return total + self.children.figures(known, inside) if inside else total

    def _sum_of(self, visits: Sequence[VisitState]) -> Figures:
        known_of = list(map(self._answered_of, visits))
        tools = sum(total.tools for _, total in known_of)
        tools += sum(tool.finished != "" for visit in visits for tool in visit.tool_tries)
        if len(known_of) == 1:
            return replace(known_of[0][1], tools=tools)
        return Figures.sum((one for calls, _ in known_of for one in calls), tools=tools)

    def answered_in(self, visit: VisitState) -> Figures:
        """Returns the sums of the calls of a visit: the same object until an event of the visit changes anything."""
        return self._answered_of(visit)[1]

    def _answered_of(self, visit: VisitState) -> tuple[list[CallFigures], Figures]:
        """Returns the figures of the calls of a visit, and their sums."""
        if (known := self._answered.get(id(visit))) is None:
            calls = [one for call in visit.calls for one in self.figures_of_call(call)]
            known = self._answered[id(visit)] = calls, self.figures_of_calls(visit.calls)
        return known

    @property
    def seconds(self) -> float | None:
        """Duration in seconds, without its pauses and stops; None until it has ended, and if an imported file names no
        times.
        """
        return self.elapsed.whole(finished=bool(self.finished), imported="imported" in self.ports)

    @property
    def paused(self) -> float:
        """Seconds for which it was paused, which are no part of ``seconds``."""
        return self.elapsed.paused

    @property
    def overhead(self) -> float | None:
        """Seconds of ``seconds`` in which no phase, no call beside the phases and no run inside it ran: the start,
        going through recorded answers, and the engine's work between phases. None until it has ended, and for a run
        of another program, whose time between its calls is its own.
        """
        if self.seconds is None or "imported" in self.ports:
            return None
        return max(self.seconds - self._ran(inside=True), 0.0)

    @property
    def joining(self) -> float | None:
        """Seconds of ``seconds`` in which only runs inside it ran, no phase and no call beside the phases: those that
        were started beside it are waited for at its end. None where ``overhead`` is.
        """
        return None if self.overhead is None else self._ran(inside=True) - self._ran(inside=False)

    def _ran(self, *, inside: bool) -> float:
        """Seconds in which a phase or a call beside the phases ran, or, with ``inside``, a run inside it."""
        ran = Stretches()
        for visit in self.visits:
            ran.between(visit.since, visit.finished or self.last_at)
            for begun, ended in visit.child_times.values() if inside else ():
                ran.between(self._time_since(begun), ended or self.last_at)
        for call in self.calls:
            if self.visit_of(call.place) is None:
                ran.between(self._time_since(call.started), call.finished)
        return ran.outside(self._away)

    @property
    def waited(self) -> float:
        """Seconds of ``seconds`` in which a question to a person was open; the recorded past is no time of the run."""
        asked = Stretches()
        for wait in self.people:
            asked.between(self._time_since(wait.asked), wait.answered)
        return asked.outside(self._away)

    @property
    def _away(self) -> Stretches:
        """When it was paused or stopped."""
        away = Stretches()
        away.join(self.elapsed.pauses)
        for gap in self.gaps:
            away.between(*gap)
        return away

    @property
    def nonsense(self) -> str:
        """Describes the fault of the first invalid record; empty if all are valid."""
        if not self.senseless:
            return ""
        event = self.senseless[0]
        return f"record {event.seq} ({event.kind}) is not what its kind promises"

    # -- the fold --------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> bool:
        """Take the next event. False for one that a resume wrote once more: it is counted and shown once."""
        kind, place, data = event.kind, event.place, event.data
        if self._paid and (call := self._by_place.get(place)) is not None:
            self._paid.pop(id(call), None)
        if event.seq > self.seq:
            self.seq = event.seq
        self._taken += 1
        if kind == "cost_known":  # It may belong to a call elsewhere than at its place.
            self._answered.clear()
            self._paid.clear()
        elif (visit := self._visits.get(place[:3])) is not None:
            self._answered.pop(id(visit), None)
            if self._pages is not None:
                visit.page_in()
            if "imported" in self.ports:
                key = place.visit_key
                self._near[key] = self._near.pop(key, visit)
                if event.at < visit.started:  # Its calls may be told in any order.
                    visit.started = visit.since = event.at
        if self.elapsed.take(event):
            self.started = event.at
        if self._repeats.takes(event):
            self._again(event, data)
            return False
        self.unanswered.take(event)
        self.children.take(event)
        # A pause in the recorded past of a run is of now; behind it that past goes on.
        if kind != "paused" or self._last_at >= self.started:
            if kind == "run_resumed" or self._last_at < self.started <= event.at:
                self._went_on(event)
            self._last_at = event.at
        if (handler := _HANDLERS.get(kind)) is not None:
            handler(self, event, data)
        return True

    def read(self, event: Event) -> None:
        """Take the next event of a journal; one that is not what its kind promises is left out, and told."""
        try:
            self.apply(event)
        except MALFORMED:
            self.senseless.append(event)

    def _time_since(self, at: str) -> str:
        """When the time in this run begins of what began at ``at``: the recorded past is older than the run, and is
        no time of it (``Elapsed``)."""
        return max(at, self.started) if at else ""

    def _went_on(self, event: Event) -> None:
        """Nothing that is open has run since the event before, which is of a fork's recorded past or ended the run, or
        since the last one of the runs inside it."""
        until = event.at if event.kind == "run_resumed" else self.started
        last_at = max(self._last_at, str(event.data.get("until") or ""))
        if (seconds_between(last_at, until) or 0.0) > 0:
            self.gaps.append((last_at, until))
        if event.kind != "run_resumed":
            # The recorded past is no time of what is open, nor are its pauses, nor is going through it.
            for visit in self.visits:
                if not visit.finished:
                    visit.since, visit.pauses = event.at, Stretches()
            self.contests.went_live(event.at)
            return
        away = seconds_between(self._time_since(last_at), event.at) or 0.0
        for visit in self.visits:
            if not visit.finished or visit.status == "stopped":
                visit.away += away
        self.contests.went_on(away)

    def _run_started(self, event: Event, data: Mapping[str, Any]) -> None:
        self.run_id = event.run_id
        self.started = event.at
        for name in ("session_id", "cascade_id", "cascade_file", "cascade_text", "cascade_sha256"):
            setattr(self, name, data.get(name, ""))
        self.input = data.get("input", {})
        self.options = data.get("options", {})
        self.ports = data.get("ports", {})
        self.parent = data.get("parent") or {}
        self.imported = data.get("imported") or {}

    def _run_resumed(self, event: Event, data: Mapping[str, Any]) -> None:
        self.status, self.finished, self.reason, self.output = "running", "", "", ""
        self.questions, self.left_open = [*self.left_open, *self.questions], []  # None is journaled a second time.
        if isinstance(after := data.get("after"), int):
            self._entries_as_of(data.get("branch", ""), after)
        for visit in self.visits:
            if visit.status == "stopped":
                visit.status, visit.finished, visit.reason = "running", "", ""
        self.ports = data.get("ports", self.ports)

    def _phase_started(self, event: Event, data: Mapping[str, Any]) -> None:
        place = event.place
        self.contests.began(event, self._time_since(event.at))
        visit = VisitState(
            place.branch,
            place.phase,
            place.visit,
            kind=data.get("kind", "llm"),
            model=data.get("model", ""),
            max_turns=data.get("max_turns", 1),
            tools=tuple(data.get("tools", ())),
            conditions=data.get("conditions", {}),
            started=event.at,
            since=self._time_since(event.at),
            wave=data.get("wave", 0),
            edge=data.get("edge"),
        )
        self.visits.append(visit)
        self._visits[place.visit_key] = visit

    def _candidates_started(self, event: Event, data: Mapping[str, Any]) -> None:
        self.contests.started(event, data)

    def _candidate_finished(self, event: Event, data: Mapping[str, Any]) -> None:
        self.contests.finished(event, data)
        if not event.place.visit:
            return
        visit = self._candidate(event.place)
        visit.status, visit.output = data.get("status", "success"), data.get("output", "")
        visit.reason, visit.finished = data.get("reason", ""), event.at
        visit.candidate = data

    def _evaluation_finished(self, event: Event, data: Mapping[str, Any]) -> None:
        self.contests.evaluated(event, data)
        if not event.place.visit and not event.place.branch:  # Of whole walks, the winner's outputs are the run's.
            walk = str(data.get("branch", ""))
            finished = [visit for visit in self.visits if visit.branch == walk and visit.status == "success"]
            self.outputs = {visit.phase: visit.output for visit in finished}
        if (visit := self.visit_of(event.place)) is not None:
            visit.evaluations.append(data)

    def _state_set(self, event: Event, data: Mapping[str, Any]) -> None:
        self.writes.append(StateWrite(data["key"], data["value"], event.seq, event.place, str(data.get("by", ""))))
        if not event.place.branch:
            self.state[data["key"]] = data["value"]
        if (visit := self.visit_of(event.place)) is not None:
            visit.state_set[data["key"]] = data["value"]

    def _check_finished(self, event: Event, data: Mapping[str, Any]) -> None:
        if (visit := self.visit_of(event.place)) is not None:
            visit.checks.append({**data, "attempt": event.place.attempt, "turn": event.place.turn})

    def _route_chosen(self, event: Event, data: Mapping[str, Any]) -> None:
        if (visit := self.visit_of(event.place)) is not None:
            visit.route, visit.route_rule = data.get("to", ""), data.get("rule", "")
            visit.verdicts, visit.route_edge = data.get("verdicts") or (), data.get("edge")

    def asked_in(self, key: VisitKey) -> bool:
        """Returns whether a visit waits for the answer of a person, which is no work of its own."""
        return any(question.place.visit_key == key for question in self.questions)

    def asked_by(self, place: Place) -> frozenset[int]:
        """The numbers of the tool calls of a turn that wait for the answer of a person."""
        return frozenset(int(asked.data.get("index") or 0) for asked in self.questions if asked.place == place)

    def answered_before(self, asked: Event) -> bool:
        """Returns whether the run has the answer to a question from its recorded past, which is older than it is."""
        key = (asked.place, asked.data.get("index"), asked.at)
        return any(
            (wait.place, wait.index, wait.asked) == key and "" < wait.answered < self.started for wait in self.people
        )

    def _human_asked(self, event: Event, data: Mapping[str, Any]) -> None:
        self.questions.append(event)
        self.people.append(PersonWait(event.place, data.get("index"), str(data.get("question", "")), event.at))

    def _human_answered(self, event: Event, data: Mapping[str, Any]) -> None:
        if data.get("refused"):
            return
        key = (event.place, data.get("index"))
        for wait in self.people:
            if not wait.answered and (wait.place, wait.index) == key:
                wait.answered = event.at
        self.questions = [q for q in self.questions if (q.place, q.data.get("index")) != key]

    def _audible(self, event: Event, data: Mapping[str, Any]) -> None:
        if (visit := self.visit_of(event.place)) is not None and data.get("text") is not None:
            visit.feedback.append(data)

    def _callout(self, event: Event, data: Mapping[str, Any]) -> None:
        if (visit := self.visit_of(event.place)) is not None:
            visit.callouts.append(data)

    def _child_started(self, event: Event, data: Mapping[str, Any]) -> None:
        if (visit := self.visit_of(event.place)) is None:
            return
        if isinstance(replaced := data.get("replaces"), Mapping):
            before, ended = str(replaced.get("run_id", "")), str(replaced.get("ended", ""))
            visit.children = [
                {"status": "interrupted", **child} if child["run_id"] == before else child for child in visit.children
            ]
            begun, known = visit.child_times.get(before, (ended, ended))
            visit.child_times[before] = (begun, known or ended)
        visit.children.append(dict(data))
        visit.child_times[str(data.get("run_id", ""))] = (event.at, "")

    def _child_finished(self, event: Event, data: Mapping[str, Any]) -> None:
        if (visit := self.visit_of(event.place)) is not None:
            run_id, session = str(data["run_id"]), data.get("session_id")
            of = next((c["run_id"] for c in visit.children if c["run_id"] == run_id), "") or next(
                # A resumed run has one that was cut off run anew, in the same session.
                (c["run_id"] for c in visit.children if session and c.get("session_id") == session),
                "",
            )
            visit.children = [{**c, **data} if c["run_id"] == of else c for c in visit.children]
            visit.child_times[run_id] = (visit.child_times.pop(str(of), (event.at, ""))[0], event.at)

    def _warning(self, event: Event, data: Mapping[str, Any]) -> None:
        self.warnings.append(event)

    def _phase_finished(self, event: Event, data: Mapping[str, Any]) -> None:
        visit, ended = self.visit_of(event.place), data.get("ended") or event.at
        if visit is None or (seconds_between(ended, event.at) or 0.0) < 0:  # Nonsense raises ValueError.
            return
        visit.status = data.get("status", "success")
        visit.output = data.get("output", "")
        visit.reason = data.get("reason", "")
        visit.check = data.get("check", "")
        visit.outcome = data.get("outcome") or {}
        if visit.finished:  # It had failed, and a resumed run did it again: in between nothing of it ran.
            since = visit.finished
            visit.away += sum(seconds_between(max(gap, since), end) or 0.0 for gap, end in self.gaps if end > since)
        visit.finished, visit.finished_seq = ended, event.seq
        visit.replayed_seconds = data.get("seconds")
        made = visit.status == "success" or bool(visit.outcome and visit.output)
        if made and (not visit.branch or visit.wave):
            self.outputs[visit.phase] = visit.output

    def _paused(self, event: Event, data: Mapping[str, Any]) -> None:
        """The run was paused until now, on one branch, and what that branch is inside of waited with it. The other
        contexts of a watched program waited as well, but not for as long as a call of theirs was on its way."""
        end = timestamp(event.at)
        start, branch = end - data["seconds"], event.place.branch
        own = self.visit_of(event.place)
        for visit in self.visits:
            inside = not visit.branch or branch == visit.branch or branch.startswith(f"{visit.branch}/")
            if not inside or visit.finished:
                continue
            began = timestamp(visit.since) if visit.since else start
            # A pause at a recorded time is older than the run, and counts in full, as in ``Elapsed``.
            waited = start if end <= began else max(start, began)
            if "imported" in self.ports and visit is not own:
                last = visit.calls[-1].finished if visit.calls else visit.since
                waited = max(waited, timestamp(last)) if last else end
            visit.pauses.add(waited, end)
        self.contests.paused(branch, start, end)

    def _large_request(self, event: Event, data: Mapping[str, Any]) -> None:
        """A request that is told before it is read: a warning, unless it was read."""
        if data.get("over"):
            self.warnings = [
                one for one in self.warnings if one.kind != event.kind or one.data.get("number") != data.get("number")
            ]
        else:
            self.warnings.append(event)

    def _run_finished(self, event: Event, data: Mapping[str, Any]) -> None:
        self.status = data.get("status", "failed")
        self.reason = data.get("reason", "")
        self.output = data.get("output", "")
        self.finished = event.at
        self.left_open, self.questions = self.questions, []

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _context_assembled(self, event: Event, data: Mapping[str, Any]) -> None:
        if event.place.visit:
            self._candidate(event.place, event.at)
        self.contests.began(event, self._time_since(event.at))
        self._added(event, data)
        branch = event.place.branch
        if isinstance(after := data.get("after"), int):
            self._goes_on_from(branch, next((call for call in reversed(self.calls) if call.seq == after), None))
        splices = [
            Splice(s["at"], s["remove"], tuple(Entry.from_json(e, self.bodies) for e in s["entries"]))
            for s in data.get("splices", ())
        ]
        beside = data.get("beside", False)
        before = Rope[Entry]() if beside else self._branch_entries.get(branch, Rope())
        entries = before.spliced(splices)
        short = _short(splices, before, (0, 0) if beside else self._branch_short.get(branch, (0, 0)))
        if not beside:
            self._branch_entries[branch], self._branch_short[branch] = entries, short
        call = self._call_of(event)
        call.shortened, call.held_back = short
        call.seq, call.at, call.entries, call.beside = event.seq, event.at, entries, beside
        call.first_at = call.first_at or event.at
        if (visit := self.visit_of(event.place)) is not None:
            call.items = len(visit.items)
        _describe(call, data, self.calls[-2] if len(self.calls) > 1 else call)
        if not event.place.turn:
            self._number(call, visit)
        if event.place.turn and (model := call.model):
            self.models.pop(model, None)
            self.models[model] = None

    def _entries_as_of(self, branch: str, seq: int) -> None:
        """The next context of a branch is told against its last one up to a record: a resume went on from there."""
        last = next(
            (c for c in reversed(self.calls) if c.place.branch == branch and not c.beside and c.seq <= seq), None
        )
        self._goes_on_from(branch, last)

    def _goes_on_from(self, branch: str, call: CallState | None) -> None:
        self._branch_entries[branch] = Rope.of(call.entries if call is not None else ())
        self._branch_short[branch] = (call.shortened, call.held_back) if call is not None else (0, 0)

    def _again(self, event: Event, data: Mapping[str, Any]) -> None:
        """A known fact, written again: later splices refer to it."""
        call = self._by_place.get(event.place)
        if call is None:
            return
        if event.kind == "context_assembled" and not call.beside:
            self._goes_on_from(event.place.branch, call)
        self._read_wire(call, data)

    def _call_of(self, event: Event) -> CallState:
        """The call at the event's place; it begins with its first context."""
        call = self._by_place.get(event.place)
        if call is None:
            call = self._by_place[event.place] = CallState(event.place, event.seq)
            visit = self.visit_of(event.place)
            if visit is not None and event.data.get("late"):
                self._insert(call, visit)
                return call
            self.calls.append(call)
            if visit is not None:
                visit.calls.append(call)
        return call

    def _number(self, call: CallState, visit: VisitState | None) -> None:
        """Number the calls beside the turns that have the purpose of ``call``: one that is told late stands before
        others."""
        key = call.place.visit_key
        calls = visit.calls if visit is not None else [one for one in self.calls if one.place.visit_key == key]
        alike = (one for one in calls if not one.place.turn and one.purpose == call.purpose)
        for number, one in enumerate(alike, 1):
            one.nth = number

    def _insert(self, call: CallState, visit: VisitState) -> None:
        """Put a call before those of its visit that stand behind it."""
        later = next((one for one in visit.calls if one.place > call.place), None)
        self.calls.insert(len(self.calls) if later is None else self.calls.index(later), call)
        visit.calls.insert(len(visit.calls) if later is None else visit.calls.index(later), call)

    def _context_selected(self, event: Event, data: Mapping[str, Any]) -> None:
        picked = tuple(number for number in data.get("picked", ()) if isinstance(number, int))
        said = (str(data.get(name, "")) for name in ("reason", "fault"))
        self.choices.append(Choice(str(data.get("menu", "")), str(data.get("model", "")), picked, *said))

    def _embedded(self, event: Event, data: Mapping[str, Any]) -> None:
        known = self.vectors.setdefault(str(data.get("model", "")), {})
        for key, vector in zip(data.get("keys", ()), data.get("vectors", ()), strict=False):
            known[str(key)] = unpacked(vector)
        self.embedded.append(data)

    def _call_started(self, event: Event, data: Mapping[str, Any]) -> None:
        if (call := self._by_place.get(event.place)) is not None:
            call.status = "running"
            call.started = call.started or event.at

    def _call_failed(self, event: Event, data: Mapping[str, Any]) -> None:
        if (call := self._by_place.get(event.place)) is not None:
            call.status, call.finished = "failed", event.at
            call.failures.append(data)
            self._read_wire(call, data)

    def _call_finished(self, event: Event, data: Mapping[str, Any]) -> None:
        call = self._by_place.get(event.place)
        if call is None:
            self._added(event, data)
            return
        # What a selector or an evaluator says enters no history.
        items = self._items(data) if call.beside else self._added(event, data)
        call.earlier = call.figures
        call.status, call.finished = "done", event.at
        call.answer = items[0].message if items else self.bodies.known(data.get("message", ""))
        call.usage = Usage(**data.get("usage", {}))
        self.used_cache |= bool(call.usage.cached)
        call.cost = data.get("cost")
        call.answered_by = _once(" ".join(filter(None, (data.get("model", ""), data.get("provider", "")))))
        call.cost_grade = _once(data.get("cost_grade", "unknown"))
        call.finish_reason = _once(data.get("finish_reason", ""))
        call.partial = data.get("partial", False)
        call.first_token_s = data.get("first_token_s")
        call.duration_s = data.get("duration_s")
        call.recorded = data.get("recorded", False)
        self._read_wire(call, data)

    def _what_if(self, event: Event, data: Mapping[str, Any]) -> None:
        self.other_strategy = data

    def _cost_known(self, event: Event, data: Mapping[str, Any]) -> None:
        """A price or usage that came late: of the call at its place, else of the request's first without a cost."""
        waiting = (c for c in self.calls if c.answered and c.cost is None and c.digest == data.get("digest"))
        call = self._by_place.get(event.place) or next(waiting, None)
        if call is None:
            return
        if data.get("cost") is not None:
            call.cost, call.cost_grade = data["cost"], data.get("cost_grade", "billed")
        said = data.get("usage") or {}
        call.usage = replace(
            call.usage, **{name: said[name] for name in Usage.__struct_fields__ if said.get(name) is not None}
        )
        self.used_cache |= bool(call.usage.cached)

    def _read_wire(self, call: CallState, data: Mapping[str, Any]) -> None:
        wire = data.get("wire")
        if not wire:
            return
        beside = wire.get("beside", False)
        before = Rope[str]() if beside else self._branch_wires.get(call.place.branch, Rope())
        messages = before.spliced([(wire["at"], wire["remove"], wire["messages"])])
        if not beside:
            self._branch_wires[call.place.branch] = messages
        call.wire = Wire(tuple(wire["order"]), wire["keys"], messages, wire.get("tools", ""), wire.get("style", ""))

    def _blob(self, event: Event, data: Mapping[str, Any]) -> None:
        digest, kind = data["hash"], data.get("kind", "message")
        if kind == "message":
            self.bodies[digest] = Message.from_json(data["body"])
        elif kind == "wire":
            self.wire_bodies[digest] = data["body"]
        elif kind == "tools":
            self.tool_schemas[digest] = data["body"]
        elif kind == "image":
            self.images[digest] = data

    # -- tools and edits -----------------------------------------------------------------------------------------------

    def _tool_started(self, event: Event, data: Mapping[str, Any]) -> None:
        tool = ToolState(
            event.place, data["index"], data.get("tool", ""), data.get("arguments", ""), data.get("call_id", "")
        )
        tool.started = event.at
        tool.edited = any((e.place, e.data.get("index")) == (event.place, tool.index) for e in self.edits)
        self._tools_at(event.place).append(tool)

    def _tool_finished(self, event: Event, data: Mapping[str, Any]) -> None:
        items = self._added(event, data)
        self.tools_ended += 1
        key = (event.place, data["index"])
        tools = self._tools_at(event.place)
        tool = next((t for t in tools if (t.place, t.index) == key), None)
        if tool is None and "arguments" in data:  # A call that a person did not let run never started.
            tool = ToolState(
                event.place, data["index"], data.get("tool", ""), data["arguments"], data.get("call_id", "")
            )
            tools.append(tool)
        if tool is not None:
            tool.status, tool.finished = "failed" if data.get("is_error") else "done", event.at
            tool.text = next((i.message.text for i in items if i.kind is Kind.RESULT), data.get("text", ""))
            tool.duration_s = data.get("duration_s", 0.0)
            tool.sandbox = data.get("sandbox", "")
            tool.pictures = tuple(Image.from_json(image) for image in data.get("images", ()))
            tool.images = len(tool.pictures)
        if embedded := data.get("embedded"):
            self.embedded.append(embedded)
        if (whole := data.get("whole")) is not None:
            kept = FullResult(whole["digest"], whole["chars"])
            if tool is not None:
                tool.whole = kept
            self.wholes |= {i.message.body_hash: kept for i in items if i.kind is Kind.RESULT}

    def _edited(self, event: Event, data: Mapping[str, Any]) -> None:
        self.edits.append(event)
        visit, call = self.visit_of(event.place), self._by_place.get(event.place)
        what, after = data.get("what", ""), data.get("after")
        if visit is not None and data.get("own") and isinstance(after, list):
            items = [Item.from_json(body, self.bodies) for body in after]
            at = data.get("at", len(visit.items))
            visit.items[at : at + len(data.get("before", ()))] = items
            if what == "answer" and call is not None and items:
                call.answer, call.edited = items[0].message, True
        tool = next((t for t in self._tools_at(event.place) if t.index == data.get("index")), None)
        if what == "skip":
            name, arguments = data.get("tool", ""), data.get("before", "")
            skipped = ToolState(event.place, data["index"], name, arguments, status="skipped", sandbox="skipped")
            skipped.edited = True
            self._tools_at(event.place).append(skipped)
        elif what == "result" and tool is not None:
            edit = data.get("edit", {})
            tool.text, tool.status = edit.get("text", ""), "failed" if edit.get("is_error") else "done"
            tool.edited = True


_HANDLERS: dict[str, Callable[[RunState, Event, Mapping[str, Any]], None]] = {
    kind: handler for kind in KINDS if (handler := getattr(RunState, f"_{kind}", None)) is not None
}
"""What takes an event, by its kind."""


def _short(splices: Sequence[Splice], before: Rope[Entry], known: tuple[int, int]) -> tuple[int, int]:
    """Returns how many messages of a context are sent in another form, and the tokens this spares; ``known`` is that of
    the context before it. Counting all of them anew would take n² for the contexts of a run."""
    number, tokens = known
    for splice in splices:
        gone = before[splice.at : splice.at + splice.remove] if splice.remove else ()
        for entries, sign in ((gone, -1), (splice.entries, 1)):
            for entry in entries:
                own = entry.item.message
                grown = entry.parts and entry.tokens_full <= entry.tokens_sent
                if entry.sent is not None and entry.sent is not own and entry.sent != own and not grown:
                    number += sign
                    tokens += sign * (entry.tokens_full - entry.tokens_sent)
    return number, tokens


def _once(text: Any) -> Any:
    """The same text, kept once however many calls have it."""
    return intern(text) if type(text) is str else text


def _describe(call: CallState, data: Mapping[str, Any], before: CallState) -> None:
    """Take what the event says of the request beside its entries. What most calls of a run have in common is kept once:
    ``before`` is another call."""
    request = data.get("request", {})
    call.model = _once(request.get("model", ""))
    parameters = request.get("parameters", {})
    call.parameters = before.parameters if parameters == before.parameters else parameters
    call.tools_hash = _once(request.get("tools", ""))
    call.strategy, call.purpose = _once(data.get("strategy", "")), _once(data.get("purpose", ""))
    call.digest = data.get("digest", "")
    call.tokens_full, call.tokens_sent = data.get("tokens_full", 0), data.get("tokens_sent", 0)
    call.tools_tokens, call.overhead_tokens = data.get("tools_tokens", 0), data.get("overhead_tokens", 0)
    call.grade = Grade(data.get("grade", "exact"))
    if (forecast := data.get("forecast")) is not None:
        call.forecast = Forecast(**forecast)
    price = data.get("price", {})
    call.price_source, call.price_grade = _once(price.get("source", "")), _once(price.get("grade", "unknown"))
    prices = {name: price[name] for name in PRICES if name in price}
    call.prices = before.prices if prices == before.prices else prices
    call.scale = data.get("scale")
    call.problems = tuple(BrokenInvariant(*problem) for problem in data.get("problems", ()))
    if beyond := str(data.get("beyond", "")):
        call.problems += (BrokenInvariant(WINDOW, beyond),)
    call.notes = tuple(data.get("notes", ()))
    call.unstated = str(data.get("unstated", ""))
