"""Forking a run: replayed to a stop with no call, edited there, and live from there on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from workbench.context.place import Place
from workbench.engine.edits import Edit
from workbench.engine.gate import Decision, EditFault, Gate, Stop, StopKind, newly_broken
from workbench.engine.past.places import NoSuchPlace, is_full_place, named_place, place_in_full
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


def find_place(recording: Recording, text: str) -> Place:
    """The place that a person means: ``phase`` (its first call), ``phase:turn`` (last attempt), of the latest visit
    or the one in ``phase#visit``, each with its branch before it (``s0/phase:turn``), or in full
    ``[branch/]phase/visit/attempt/turn/call``. Raises NoSuchPlace."""
    tools = [place for place, _ in recording.started]
    if (place := place_in_full(text, [*recording.calls, *tools])) is not None:
        return place
    if is_full_place(text):
        raise NoSuchPlace(f"{text} never ran")
    return named_place(recording.state, text, tools)


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
