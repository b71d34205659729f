"""The state of the Bench, without Textual: the fold over events and notices, the selected call, the toggles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.journal.candidate_rounds import VisitKey
from workbench.engine.journal.event import Event
from workbench.engine.journal.paging import PagedEvents
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.journal.state import RunState
from workbench.views.cells import flat
from workbench.views.log import LogLine, LogRows, log_line
from workbench.views.timeline import place_words
from workbench.views.tree import NodeId
from workbench.views.words import words_of

STREAM_KEPT = 200_000
"""Characters of a streaming answer that are kept; the whole answer comes with its event."""

STOP_WORDS = {
    "before_phase": "before phase",
    "before_call": "before call",
    "after_call": "after call",
    "before_tool": "before tool",
    "after_tool": "after tool",
    "after_check": "after check",
    "after_phase": "after phase",
    "after_route": "after route",
    "before_candidates": "before candidates",
    "after_evaluation": "after evaluation",
    "run_end": "at the end",
    "hook": "by a hook",
}


class HeldRun(Struct, frozen=True):
    """Where the run is held, and why."""

    place: Place
    kind: str
    why: str
    tool: str = ""
    since: float | None = None
    """Since when a client waits, by the monotonic clock; None where none does."""
    limit: float | None = None
    """Seconds after which it gives up, where it says so."""
    node: str = ""
    """The kind of the node of a pipeline or decomposition that it is at; empty elsewhere."""
    depth: int = -1
    """How many runs the held one is inside of; -1 if unknown."""
    taken: tuple[str, ...] = ()
    """Where the way on is chosen: what follows."""
    arguments: str = ""
    """Before a tool: what it is called with."""
    elsewhere: bool = False
    """Whether another process has paused it, and alone can let it go on."""

    @property
    def at_node(self) -> bool:
        """Whether a node as a whole is about to begin, or has ended."""
        return bool(self.node) and self.kind in ("before_phase", "after_phase", "after_route")

    def waits(self, now: float) -> str:
        """Returns how long the client has waited: ``12 s of 600 s``; empty where none waits."""
        if self.since is None:
            return ""
        return f"{now - self.since:.0f} s" + (f" of {self.limit:,.0f} s" if self.limit is not None else "")

    @property
    def words(self) -> str:
        """``before call``, ``before tool read_log``."""
        return STOP_WORDS.get(self.kind, self.kind) + (f" {self.tool}" if self.tool else "")

    @property
    def where(self) -> str:
        """The same with its place: ``before investigate:9``, ``before read_log in investigate:9``."""
        place, phase = self.place, self.place.phase
        turn = place_words(place)
        side, _, what = self.kind.partition("_")
        if what == "call":
            return f"{side} {turn}"
        if what == "tool":
            return f"{side} {self.tool or 'a tool'} in {turn}"
        if what == "route":
            return f"after {phase}" + (f" → {', '.join(self.taken)}" if self.taken else "")
        if what in ("phase", "check", "candidates", "evaluation"):
            return f"{side} {_STOPPED_AT[what]}{phase}"
        return self.words + (f" at {turn}" if phase and self.kind != "run_end" else "")

    @property
    def reason(self) -> str:
        """What runs next where that is a tool, and why it is held where that is more than a step that was asked for."""
        why = "" if self.why in _ASKED_FOR or (self.arguments and self.why.startswith("edited")) else self.why
        return f"next: {self.tool} {self.arguments}" + (f"  ({why})" if why else "") if self.arguments else why


_STOPPED_AT = {
    "phase": "",
    "check": "a check of ",
    "candidates": "the candidates of ",
    "evaluation": "the evaluation of ",
}
_ASKED_FOR = ("step over", "step into", "step out", "paused")


class Waiting(Struct):
    """A call in progress: since when (monotonic seconds), which try, and until when it pauses before one."""

    since: float
    tries: int = 1
    pause_until: float | None = None
    text: str = ""


class BenchState(Struct):
    """One session as the user sees it. ``absorb`` takes what happened; everything else is what the user does."""

    run: RunState = field(default_factory=RunState)
    events: PagedEvents = field(default_factory=PagedEvents)
    log: LogRows = field(default_factory=LogRows)
    children: dict[str, RunState] = field(default_factory=dict)
    failure: str = ""
    """Why a run could not even begin, until one does."""
    """Runs of nested cascades, by run id."""
    selected: Place | None = None
    selected_run: str = ""
    """The nested run that the selected call belongs to; empty for the run itself."""
    held_run: str = ""
    """The nested run that is held; empty for the run itself."""
    following: bool = True
    """Whether the newest call is selected as it comes."""
    held: HeldRun | None = None
    visited: VisitKey | None = None
    """The visit that is looked at where no call is: of a node that made none."""
    waiting: dict[Place, Waiting] = field(default_factory=dict)
    full: bool = False
    unfold: bool = False
    compare: bool = False
    summary: bool = False
    """Whether the summary of the run is shown in the place of a call."""
    folding: dict[NodeId, bool] = field(default_factory=dict)
    unsaved: bool = False
    """Records of the run wait in memory, because the disk does not take them."""
    changed: frozenset[str] = frozenset()
    """Phases whose text differs from the definition of the run."""

    @property
    def started(self) -> bool:
        """Whether there is a run to show."""
        return bool(self.run.run_id)

    @property
    def held_at(self) -> str:
        """Where the run is held, after a check with its name, at a call beside the turns with its name; empty while
        it is not."""
        held = self.held
        if held is None:
            return ""
        run, phase = self.run_by_id(self.held_run), held.place.phase
        if held.kind == "after_check" and (visit := run.visit_of(held.place)) is not None and visit.checks:
            check = visit.checks[-1]
            return f"after check {flat(str(check.get('name') or check.get('check', '')), 40)} of {phase}"
        if held.kind in ("before_call", "after_call") and not held.place.turn:
            call = run.call_at(held.place)
            return f"{held.where} {flat(call.aside, 40)}" if call is not None else held.where
        return held.where

    @property
    def alive(self) -> bool:
        """Whether the run shown has not ended."""
        return self.started and self.run.status == "running"

    @property
    def compares_file(self) -> bool:
        """Whether a comparison begins with the changes of the file since the run, which is over."""
        return bool(self.changed) and not self.alive

    # -- nested runs -------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> RunState:
        """The run whose call is selected: this one, or one that it started."""
        return self.children.get(self.selected_run, self.run)

    def run_by_id(self, run_id: str) -> RunState:
        """This run, or one that it started; this one where there is no such run."""
        return self.children.get(run_id, self.run)

    def run_of_candidates(self) -> str:
        """The run whose candidates are meant: the one that is shown, else the first that has any."""
        runs = (self.shown, self.run, *self.children.values())
        return next((run.run_id for run in runs if run.contests.all), self.run.run_id)

    def unknown_children(self) -> list[str]:
        """Nested runs that a journal names and whose own journal was not read yet."""
        named = (
            str(child["run_id"])
            for run in (self.run, *self.children.values())
            for visit in run.visits
            for child in visit.children
            if child.get("run_id")
        )
        return [run_id for run_id in dict.fromkeys(named) if run_id not in self.children]

    def parent_run(self, run_id: str) -> str:
        """The nested run that a nested run was started by; empty for the run itself."""
        parent = str(self.run_by_id(run_id).parent.get("run_id", ""))
        return parent if parent in self.children else ""

    def _started_in(self, run_id: str) -> VisitState | None:
        """Returns the visit in which a nested run was started, of the run that started it."""
        parent = self.children.get(self.parent_run(run_id), self.run)
        return next((v for v in parent.visits if any(child.get("run_id") == run_id for child in v.children)), None)

    def select_in(self, run_id: str, place: Place) -> bool:
        """Look at a call of this run, or of a nested one. False when there is no such call."""
        inner = run_id if run_id in self.children else ""
        if not inner:
            self.selected_run = ""
            return self.select(place)
        if self.children[inner].call_at(place) is None:
            return False
        self.selected, self.selected_run, self.following = place, inner, False
        self.summary = False
        return True

    def select_node(self, run_id: str, key: VisitKey | None) -> None:
        """Look at a visit that made no call, of this run or of a nested one; None: at the newest of its phase."""
        self.selected, self.selected_run = None, run_id if run_id in self.children else ""
        self.visited, self.following, self.summary = key, False, False

    @property
    def looks_elsewhere(self) -> bool:
        """Whether a nested run is looked at that is not the one that is held."""
        return bool(self.selected_run) and (self.held is None or self.held_run != self.selected_run)

    def look_into(self, run_id: str) -> bool:
        """Look at the newest call of a nested run. False when it made none."""
        child = self.children.get(run_id)
        return child is not None and bool(child.calls) and self.select_in(run_id, child.calls[-1].place)

    def come_back(self) -> bool:
        """From a nested run to the newest call of the visit that started it, or to that visit. False when none is
        looked at."""
        if not self.selected_run:
            return False
        outer, visit = self.parent_run(self.selected_run), self._started_in(self.selected_run)
        if visit is None or not visit.calls or not self.select_in(outer, visit.calls[-1].place):
            self.select_node(outer, (visit.branch, visit.phase, visit.visit) if visit is not None else None)
        return True

    # -- what happened -----------------------------------------------------------------------------------------------

    def absorb(self, events: Iterable[Event], notices: Iterable[Notice], now: float) -> bool:
        """Fold events and notices; ``now`` is monotonic seconds. True when anything changed."""
        changed = False
        for event in events:
            changed = True
            self._take(event)
        for notice in _joined(notices):
            changed = True
            self._notice(notice, now)
        return changed

    def page_out(self) -> None:
        """Take out of memory what is far from the newest of a run that goes on; it is read back when it is looked
        at."""
        self.events.page_out()
        self.run.page_out()

    def _take(self, event: Event) -> None:
        if event.run_id == self.run.run_id and event.seq <= self.run.seq:
            self._take_again(event)
            return
        if event.kind == "run_started" and not self._is_child(event):
            self._begin()
        if self.started and event.run_id != self.run.run_id:
            self._take_child(event)
            return
        self.run.read(event)
        self.events.append(event)
        if event.kind == "context_assembled" and self.following and self._may_follow(event.place):
            self.selected, self.selected_run, self.summary = event.place, "", False
        elif event.kind in ("call_finished", "call_failed"):
            self.waiting.pop(event.place, None)
        elif event.kind == "run_finished":
            # A run that failed shows the call at which it did.
            self.summary = self.following and self.run.status == "success" and bool(self.run.calls)
            if self.following and self.run.status != "success":
                self._follow_into_failed()
            self.waiting.clear()
            self.held = None
        self._tell(event, self.run)

    def _take_again(self, event: Event) -> None:
        """A resumed run tells again what its journal holds, before it goes on. One that stops before anything is new,
        at a limit that still holds say, tells its end again, too."""
        if event.kind != "run_finished":
            self.run.status = "running"
            _ask_again(self.run, event)
            return
        self.run.status = str(event.data["status"])
        self.run.left_open, self.run.questions = [*self.run.left_open, *self.run.questions], []
        self.held = None
        again = f"{self.run.status} again: {event.data.get('reason', '')}"
        self.log.add(LogLine(event.at, event.place, "run", again, "warning"))

    def _follow_into_failed(self) -> None:
        """Look at the last call of the nested run that ended a phase before the phase made a call of its own."""
        run, inner = self.run, ""
        while run.visits and not run.visits[-1].calls:
            failed = [child for child in run.visits[-1].children if child.get("status") in ("failed", "blocked")]
            inner = str(failed[-1].get("run_id", "")) if failed else ""
            if (child_run := self.children.get(inner)) is None:
                return
            run = child_run
        if inner and run.calls:
            self.selected, self.selected_run = run.calls[-1].place, inner

    def _may_follow(self, place: Place) -> bool:
        """Returns whether a call that was prepared is the one to look at: not beside a paused one, which the keys are
        about, as where other candidates or branches come to their first call meanwhile."""
        return self.held is None or (not self.held_run and self.held.place == place)

    def _is_child(self, event: Event) -> bool:
        """Returns whether a run that begins belongs to the one that is shown, also after the end of that."""
        parent = event.data.get("parent") or {}
        known = self.alive or parent.get("run_id") in (self.run.run_id, *self.children)
        return self.started and known and parent.get("kind") not in (None, "fork", "replay", "rerun", "checkpoint")

    def _take_child(self, event: Event) -> None:
        child = self.children.setdefault(event.run_id, RunState())
        if event.seq <= child.seq:
            _ask_again(child, event)
            return
        child.read(event)
        if event.kind in ("call_finished", "call_failed"):
            self.waiting.pop(event.place, None)
        if event.kind in ("run_started", "call_finished", "call_failed", "tool_finished", "run_finished"):
            self._tell(event, child)

    def _tell(self, event: Event, run: RunState) -> None:
        line = log_line(event, run)
        if line is not None:
            self.log.add(line)

    def _begin(self) -> None:
        """A new run: what was selected, held and waited for belonged to the old one."""
        self.run = RunState()
        self.events = PagedEvents()
        self.children = {}
        self.selected, self.held, self.following, self.summary = None, None, True, False
        self.selected_run = self.held_run = ""
        self.unsaved, self.failure = False, ""
        self.waiting.clear()
        self.changed = frozenset()

    def _notice(self, notice: Notice, now: float) -> None:
        place, data = notice.place, notice.data
        if notice.kind in ("unsaved", "saved"):
            self.unsaved = notice.kind == "unsaved"
            token = "error" if self.unsaved else "ok"
            at = self.events[-1].at if self.events else ""
            self.log.add(LogLine(at, place, "store", str(data.get("message", "")), token))
            return
        if notice.kind == "failed":
            self.failure = str(data.get("message", ""))
            self.end_unfinished()  # What wrote the run has ended, and left it so.
        elif notice.kind == "held":
            told = str(data.get("stop", "")), str(data.get("why", "")), str(data.get("tool", ""))
            client = data.get("client") or {}
            node, depth, taken = str(data.get("node", "")), int(data.get("depth", -1)), tuple(data.get("taken") or ())
            waits = client.get("since"), client.get("limit")
            arguments, elsewhere = str(data.get("arguments", "")), bool(data.get("elsewhere"))
            self._hold(HeldRun(place, *told, *waits, node, depth, taken, arguments, elsewhere))
        elif notice.kind == "released":
            self.held = None
        elif self._is_over(place):
            # Events and notices come by two ways: what was said of a call may arrive after its answer.
            return
        elif notice.kind == "waiting":
            before = self.waiting.get(place)
            since = before.since if before is not None else now
            self.waiting[place] = Waiting(since, int(data.get("try", 1)))
        elif notice.kind == "retry":
            wait = self.waiting.setdefault(place, Waiting(now))
            wait.tries = int(data.get("try", wait.tries + 1))
            wait.pause_until = now + float(data.get("seconds") or 0.0)
            wait.text = ""
        elif notice.kind == "text" and (call := self.waiting.get(place)) is not None:
            call.pause_until = None
            call.text = (call.text + str(data.get("text", "")))[-STREAM_KEPT:]

    def _is_over(self, place: Place) -> bool:
        """Returns whether nothing more comes of a call, of the run or of the newest run inside it with such a place."""
        if not self.alive:
            return True
        for run in (self.run, *reversed(self.children.values())):
            if (call := run.call_at(place)) is not None:
                return call.status == "done"
            if run is not self.run and run.status == "running":
                return False  # Its call may come yet.
        return False

    def _hold(self, held: HeldRun) -> None:
        self.held, self.held_run = held, self._run_at(held.place, held.depth)
        is_call = held.place.turn or held.kind in ("before_call", "after_call")  # Evaluations have no turn.
        if is_call and self.run_by_id(self.held_run).call_at(held.place) is not None:
            self.selected, self.selected_run, self.following = held.place, self.held_run, True
        elif held.at_node:
            # What is about to run has made no call, or all of its calls: the node itself is looked at.
            self.selected, self.selected_run, self.following, self.summary = None, self.held_run, True, False
            self.visited = held.place.visit_key
        edits = self.run_by_id(self.held_run).edits if held.why == "edited" else []
        if edits and (said := words_of(edits[-1], self.run)) is not None:
            self.held = held = replace(held, why=f"edited, {said[1]}")

    def _run_at(self, place: Place, depth: int = -1) -> str:
        """The nested run that a place belongs to: the newest that is running and has been there; where a phase has not
        begun yet, the newest that is running at that depth."""
        if not depth:
            return ""
        visits = self.run.visit_of(place)
        if visits is not None and visits.status == "running" and not visits.finished:
            open_child = any(c.get("status", "running") == "running" for c in visits.children)
            if not open_child:
                return ""
        for run_id, child in reversed(self.children.items()):
            if child.status == "running" and child.visit_of(place) is not None:
                return run_id
        inside = (id for id, child in reversed(self.children.items()) if child.status == "running")
        return next((id for id in inside if depth > 0 and self._depth(id) == depth), "")

    def _depth(self, run_id: str) -> int:
        """Returns how many runs a nested one is inside of."""
        found = 1
        while outer := self.parent_run(run_id):
            run_id, found = outer, found + 1
        return found

    def end_unfinished(self) -> None:
        """Nothing more comes of the run, and it has no end: it was interrupted."""
        if self.alive:
            self.run.status = "interrupted"
            self.waiting.clear()
            self.held = None

    @property
    def resumable(self) -> bool:
        """Whether the run shown stopped before its end, or at a call without an answer, and can go on."""
        unanswered = self.run.status == "failed" and bool(self.run.calls) and self.run.calls[-1].status == "failed"
        return self.started and (unanswered or self.run.status in ("stopped", "interrupted"))

    # -- what the user does ------------------------------------------------------------------------------------------

    def show_stored(self, events: Iterable[Event]) -> None:
        """Show a stored run: the same fold, nothing executes."""
        self._begin()
        for event in events:
            self._take(event)

    @property
    def call(self) -> CallState | None:
        """The selected call."""
        return self.shown.call_at(self.selected) if self.selected is not None else None

    @property
    def before(self) -> CallState | None:
        """The call before the selected one in the same phase and branch."""
        place = self.selected
        if place is None:
            return None
        found: CallState | None = None
        for call in self.shown.calls:
            if call.place == place:
                return found
            if call.place[:2] == place[:2]:
                found = call
        return None

    def select(self, place: Place) -> bool:
        """Look at a call; the newest one is followed. False when there is no such call."""
        if self.run.call_at(place) is None:
            return False
        self.selected, self.selected_run, self.summary = place, "", False
        self.following = self.run.calls[-1].place == place
        return True

    def move(self, step: int) -> bool:
        """To the call before or after, in the order they were made; False at either end."""
        places = [call.place for call in self.shown.calls]
        if not places:
            return False
        newest = range(len(places) - 1, -1, -1)  # Somebody who watches a long session is near its end.
        at = next((at for at in newest if places[at] == self.selected), len(places))
        if self.summary:
            at, step = len(places), min(step, -1)
        target = max(0, min(at + step, len(places) - 1))
        return self.select_in(self.selected_run, places[target]) and target != at

    def current_question(self) -> Event | None:
        """The oldest question without an answer, of this run or of a child of it."""
        for run in (self.run, *self.children.values()):
            if run.questions:
                return run.questions[0]
        return None

    def doing(self, now: float) -> tuple[str, float, Any] | None:
        """The activity of the newest call in progress: ``("waiting", seconds, Waiting)``; None when there is none."""
        if not self.waiting:
            return None
        wait = next(reversed(self.waiting.values()))
        return ("answering" if wait.text else "waiting", now - wait.since, wait)


def _ask_again(run: RunState, event: Event) -> None:
    """A question that the run's end left open is open again when it is told again."""
    if any(open.seq == event.seq for open in run.left_open):
        run.left_open = [open for open in run.left_open if open.seq != event.seq]
        run.questions.append(event)


def _joined(notices: Iterable[Notice]) -> Iterator[Notice]:
    """The same with pieces of one answer that follow each other as one: each is put behind a text of up to
    ``STREAM_KEPT`` characters, which is copied, and a fast provider sends 500 a frame."""
    for (place, is_text), several in groupby(notices, lambda notice: (notice.place, notice.kind == "text")):
        if is_text:
            yield Notice("text", place, {"text": "".join(str(notice.data.get("text", "")) for notice in several)})
        else:
            yield from several
