"""Forking a run: replayed to a stop with no call, edited there, and live from there on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from workbench.context.place import Place, visit_named
from workbench.engine.edits import Edit
from workbench.engine.gate import Decision, EditFault, Gate, Stop, StopKind, newly_broken
from workbench.engine.journal.state import RunState
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import Replay


class ForkPoint(Struct, frozen=True):
    """A stop of a stored run."""

    kind: StopKind
    place: Place
    """Of a call; of a visit (no attempt) at ``before_phase``."""
    index: int = 0
    """Number of the tool call in its turn, from 1, at a tool's stops."""

    def __str__(self) -> str:
        tool = f", tool call {self.index}" if self.index else ""
        return f"{self.place} ({self.kind}{tool})"


class NoSuchPlace(Exception):
    """A place that the run never reached; the message names the places that it reached."""


def find_place(recording: Recording, text: str) -> Place:
    """The place that a person means: ``phase`` (its first call), ``phase:turn`` (last attempt), of the latest visit
    or the one in ``phase#visit``, each with its branch before it (``s0/phase:turn``), or in full
    ``[branch/]phase/visit/attempt/turn/call``. Raises NoSuchPlace."""
    tools = [place for place, _ in recording.started]
    if (place := _in_full(text, [*recording.calls, *tools])) is not None:
        return place
    if _is_full(text):
        raise NoSuchPlace(f"{text} never ran")
    return _named(recording.state, text, tools)


def find_call(state: RunState, text: str) -> Place:
    """The place of the model call that a person means, written like that of a fork. Raises NoSuchPlace."""
    if (place := _in_full(text, [call.place for call in state.calls])) is not None:
        return place
    if _is_full(text):
        raise NoSuchPlace(f"{text} made no call in this run")
    return _named(state, text)


def _in_full(text: str, known: Iterable[Place]) -> Place | None:
    """The one of the ``known`` places that is written so in full. Parsing does not tell it: names may hold slashes."""
    return next((place for place in known if str(place) == text), None)


def _is_full(text: str) -> bool:
    """Whether a place is written in the full form, and not in the one that screens show."""
    try:
        Place.parse(text)
    except ValueError:
        return False
    return True


def _named(state: RunState, text: str, without: Sequence[Place] = ()) -> Place:
    """``phase`` or ``phase:turn``, ``phase#visit`` for an earlier visit; ``without`` are places of tools that no model
    asked for. Raises NoSuchPlace."""
    calls = [call.place for call in state.calls if not call.beside]
    named, _, turn = text.partition(":")
    if turn and not (turn.isdigit() and int(turn)):
        raise NoSuchPlace(f"'{text}' is not a place; write phase or phase:turn, turns count from 1")
    branch, phase, wanted = visit_named(named, {place.phase for place in [*calls, *without]})
    here = [place for place in calls if place.phase == phase and branch in ("", place.branch)]
    if not here:
        alone = [
            place
            for place in without
            if place.phase == phase and branch in ("", place.branch) and wanted in (0, place.visit)
        ]
        if alone and not turn:
            return alone[0]
        if "/" in text and not branch:
            raise NoSuchPlace(f"'{text}' is not a place; expected [branch/]phase:turn or phase/visit/attempt/turn/call")
        ran = ", ".join(dict.fromkeys(place.phase for place in calls)) or "no phase"
        raise NoSuchPlace(f"phase '{phase}' made no call in this run; {ran} did")
    here = [place for place in here if not place.branch] or here
    number = wanted or max(place.visit for place in here)
    visit = [place for place in here if place.visit == number]
    if not visit:
        raise NoSuchPlace(f"{text} never ran; {phase} came to visit {max(place.visit for place in here)}")
    if not turn:
        return visit[0]
    found = [place for place in visit if place.turn == int(turn)]
    if not found:
        last = max(place.turn for place in visit)
        raise NoSuchPlace(f"{text} never ran; {phase} came to turn {last}")
    latest = max(found, key=lambda place: place.attempt)
    return min((p for p in found if p.attempt == latest.attempt), key=lambda place: place.call)


def find_point(recording: Recording, kind: StopKind, text: str, index: int = 0) -> ForkPoint:
    """A stop of the recorded run. Raises NoSuchPlace if the run never reached it."""
    place = find_place(recording, text)
    if kind is StopKind.BEFORE_PHASE:
        return ForkPoint(kind, place._replace(attempt=0, turn=0, call=0))
    point = ForkPoint(kind, place, index or 1 if "tool" in kind else 0)
    if kind is StopKind.AFTER_CALL and not recording.answered(place):
        raise NoSuchPlace(f"{place} was never answered")
    if kind is StopKind.BEFORE_TOOL and (place, point.index) not in recording.started:
        raise NoSuchPlace(f"{place} made no tool call {point.index}")
    if kind is StopKind.AFTER_TOOL and recording.result(place, point.index) is None:
        raise NoSuchPlace(f"{place} has no result of tool call {point.index}")
    return point


class ForkGate:
    """Cuts the replay at a stop and makes the edits there; from then on the gate behind it decides."""

    def __init__(
        self,
        replay: Replay,
        point: ForkPoint,
        edits: Sequence[Edit],
        gate: Gate,
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        """``opened`` is called once the edits are made and valid: from then on the run is kept."""
        self.reached = False
        self._replay = replay
        self._point = point
        self._edits = tuple(edits)
        self._gate = gate
        self._opened = opened
        self._is_open = False

    async def __call__(self, stop: Stop) -> Decision:
        """Raises EditFault if the edits break the request."""
        if not self.reached:
            if stop.depth or (stop.kind, stop.place, stop.index) != (
                self._point.kind,
                self._point.place,
                self._point.index,
            ):
                return Decision()
            self.reached = True
            self._replay.cut(stop.place)
            if self._edits:
                return Decision(edits=self._edits)
        if not self._is_open:
            self._check(stop)
            self._is_open = True
            self._opened()
        return await self._gate(stop)

    def _check(self, stop: Stop) -> None:
        """A request that was valid must be so after the edit."""
        if self._edits and stop.assembly is not None and stop.assembly.problems:
            raise EditFault(f"{stop.place.words}: the edit breaks the request: {newly_broken(None, stop.assembly)}")
