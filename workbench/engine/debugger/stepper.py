"""The gate of a debugger: holds a run at stops by mode and breakpoints, and takes commands from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

from workbench.context.edits import EditError
from workbench.context.place import Place
from workbench.engine.edits import Edit
from workbench.engine.gate import Decision, Stop, StopKind, check_edits

ARROW, OUTCOME, TOOL = "->", "outcome", "tool"
TAKEN: Final = "taken"
CONSIDERED: Final = "considered"
"""Words of a breakpoint as it is written."""
_SILENT = ("start", "exit")
"""Kinds of node that do nothing: no step stops before them."""


class Mode(StrEnum):
    """How far the run goes before it is held again."""

    CONTINUE = "continue"
    """To the next breakpoint or the end."""
    OVER = "over"
    """To the next turn at this depth; in a pipeline to the next node, in a decomposition to the next task."""
    INTO = "into"
    """To the next stop at any depth: into turns, branches and children."""
    OUT = "out"
    """To the end of this phase; where a node begins, to the end of the branch, child or wave that it is in."""


class Breakpoint(Struct, frozen=True):
    """Pauses a run in CONTINUE mode. All parts that are set must hold."""

    phase: str = ""
    turn: int = 0
    tool: str = ""
    condition: str = ""
    """``tokens > 8000``, ``state.score < 3``, ``problems``: see ``engine/debugger/condition.py``."""
    disabled: bool = False
    """Whether it is kept without stopping a run."""
    edge: Literal["", "taken", "considered"] = ""
    """Where it stops on an edge: whether that has to be taken; ``phase`` is where the edge begins, if that counts."""
    to: str = ""
    """Where the edge ends; empty for anywhere."""
    outcome: str = ""
    """The outcome of a phase that stops the run: ``fail``, or any word of the run's own."""
    visit: int = 0
    """The visit of the phase: for a watched program, the number of a context. 0 for all."""

    def __str__(self) -> str:
        where = ":".join(filter(None, (self.room, str(self.turn) if self.turn else "")))
        parts = [where]
        if self.edge:
            parts += [ARROW, self.to, CONSIDERED if self.edge == CONSIDERED else ""]
        parts += [f"tool {self.tool}" if self.tool else "", f"{OUTCOME} {self.outcome}" if self.outcome else ""]
        return " ".join(filter(None, (*parts, self.condition)))

    @property
    def room(self) -> str:
        """The phase, and the visit where that counts: ``agent#2``."""
        return f"{self.phase}#{self.visit}" if self.visit else self.phase

    def is_of(self, place: Place) -> bool:
        """Returns whether its phase and its visit are those of a place."""
        return self.phase in ("", place.phase) and self.visit in (0, place.visit)


class Steering(Struct, frozen=True):
    """All that a person sets of a stepper."""

    mode: Mode = Mode.CONTINUE
    breakpoints: tuple[Breakpoint, ...] = ()
    pause: bool = False
    """Whether the next stop holds, whatever the mode."""


class Stepper:
    """A gate with a mode. ``on_hold`` and ``on_release`` tell the screen; both are called on the engine's loop."""

    def __init__(
        self,
        *,
        on_hold: Callable[[Stop, str], None] = lambda stop, why: None,
        on_release: Callable[[Stop], None] = lambda stop: None,
        matches: Callable[[Breakpoint, Stop], bool] | None = None,
    ) -> None:
        self.mode = Mode.CONTINUE
        self.breakpoints: list[Breakpoint] = []
        self.held: Stop | None = None
        self._on_hold = on_hold
        self._on_release = on_release
        self._matches = matches or matches_breakpoint
        self._pause = False
        self._edits: tuple[Edit, ...] = ()
        self._diverged = False
        """A changed request was shown: what follows from it is expected to differ too."""
        self._turn = asyncio.Lock()
        """Parallel branches are held one at a time."""
        self._from: Stop | None = None
        self._leaving: Stop | None = None
        """The stop that the run was let go from, until it is held again."""
        self._release: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, stop: Stop) -> Decision:
        """Hold here, or not. Going on from a request that breaks an invariant sends it anyway."""
        if not self._why(stop):
            return Decision()
        async with self._turn:
            # Another branch may have been held meanwhile, and let go in another mode.
            why = self._why(stop)
            return await self._hold(stop, why) if why else Decision()

    async def _hold(self, stop: Stop, why: str) -> Decision:
        self._loop = asyncio.get_running_loop()
        self._release = self._loop.create_future()
        self.held, self._pause, self._leaving = stop, False, None
        try:
            self._on_hold(stop, why)
            await self._release
        finally:
            self._from, self.held, self._release = stop, None, None
            self._on_release(stop)
        edits, self._edits = self._edits, ()
        if edits:
            return Decision(edits=edits, held=True)
        self._diverged = self._diverged or stop.answered_by == "changed"
        return Decision(send_anyway=bool(stop.problems), held=True)

    def go(self, mode: Mode) -> bool:
        """Set the mode, and go on if held. From any thread. Returns whether that changes anything: not where the run
        was let go in this mode before and is not held again yet."""
        changes = mode is not self.mode or self._pause or self.waits
        self.mode, self._pause, self._leaving = mode, False, self.held
        self._wake()
        return changes

    @property
    def waits(self) -> bool:
        """Whether the run is held, and nobody has let it go on yet."""
        return self.held is not None and self.held is not self._leaving

    def edit(self, *edits: Edit) -> None:
        """Make edits at the stop where the run is paused; it stays paused there and shows the result. Any thread may
        call it. Raises EditError if the edits are not possible there, or the run is not paused.
        """
        stop = self.held
        if stop is None or self._loop is None:
            raise EditError("the run is not paused: there is nothing to edit")
        check_edits(edits, stop)
        self._edits, self._leaving = edits, stop
        self._wake()

    def _wake(self) -> None:
        """Let the engine's loop go on, if it is there."""
        if self._loop is not None:
            with suppress(RuntimeError):  # The run has ended, and its loop was closed.
                self._loop.call_soon_threadsafe(self._let_go)

    def pause(self) -> None:
        """Hold at the next stop, whatever the mode. From any thread."""
        self._pause = True

    @property
    def steering(self) -> Steering:
        """What is set now."""
        return Steering(self.mode, tuple(self.breakpoints), self._pause)

    def steer(self, steering: Steering) -> None:
        """Set the same as in another stepper, which holds the run for this one."""
        self.mode, self.breakpoints, self._pause = steering.mode, [*steering.breakpoints], steering.pause

    def may_concern(self, stop: Stop) -> bool:
        """Returns whether a stepper with the same steering may hold here, wherever it held before: that counts in the
        modes that step."""
        return self.mode is not Mode.CONTINUE or bool(self._why(stop))

    @property
    def is_free(self) -> bool:
        """Whether nothing was set that pauses a run: it goes on to its end."""
        return self.mode is Mode.CONTINUE and not self._pause and all(point.disabled for point in self.breakpoints)

    def may_hold(self, stop: Stop, may_match: Callable[[Breakpoint, Stop], bool]) -> bool:
        """Returns whether the run may pause behind an unanswered call, as far as is known now."""
        if self._pause or self.mode in (Mode.INTO, Mode.OUT):
            return True
        return any(not point.disabled and may_match(point, stop) for point in self.breakpoints)

    def _let_go(self) -> None:
        if self._release is not None and not self._release.done():
            self._release.set_result(None)

    def _why(self, stop: Stop) -> str:
        """Returns why to pause at this stop; empty for no pause."""
        if stop.problems and stop.kind is StopKind.BEFORE_CALL:
            return "the request breaks an invariant"
        if stop.paused:
            return stop.paused
        if stop.edited:
            return "edited"
        if stop.heard and self.mode is not Mode.CONTINUE:
            return "feedback added"
        if stop.answered_by == "changed" and not self._diverged:
            return "the request is not the recorded one"
        if stop.answered_by == "maybe":
            return f"{stop.tool} may have run already; continuing runs it again"
        if self._pause:
            return "paused"
        for point in self.breakpoints:
            if not point.disabled and self._matches(point, stop):
                return f"breakpoint {point}"
        if self.mode is Mode.INTO and not (stop.kind is StopKind.AFTER_ROUTE and not stop.node):
            return "step into"
        if self.mode is Mode.OVER and self._next_turn(stop):
            return "step over"
        if self.mode is Mode.OUT and self._left_phase(stop):
            return "step out"
        return ""

    def _next_turn(self, stop: Stop) -> bool:
        if stop.kind is StopKind.RUN_END:
            return self._from is None or stop.level <= self._from.level
        if not (_steps_on(stop) if stop.node else stop.kind is StopKind.BEFORE_CALL):
            return False
        before = self._from
        return before is None or (stop.level <= before.level and stop.place != before.place)

    def _left_phase(self, stop: Stop) -> bool:
        before = self._from
        if before is None:
            return _steps_on(stop) if stop.node else stop.kind is StopKind.BEFORE_CALL
        if stop.level < before.level:
            return True
        if before.node:
            return stop.level == before.level and self._left_node(before, stop)
        return stop.level == before.level and (
            stop.kind in (StopKind.AFTER_PHASE, StopKind.RUN_END) or stop.place.visit_key != before.place.visit_key
        )

    @staticmethod
    def _left_node(before: Stop, stop: Stop) -> bool:
        """Returns whether a run that was held at a node has left what that is in: the node, where it was held inside,
        else the wave. Branches and children lie deeper than what they are left for."""
        if stop.kind is StopKind.RUN_END:
            return not stop.depth  # The end of a child is still inside of it.
        inside = not before.begins and before.kind in _INSIDE
        if inside:
            return stop.kind is StopKind.AFTER_PHASE and stop.place.visit_key == before.place.visit_key
        wave = before.place.branch.partition(".")[0]
        return before.is_task and stop.begins and (not wave or stop.place.branch.partition(".")[0] != wave)


_INSIDE = frozenset(
    {
        *(StopKind.BEFORE_CALL, StopKind.AFTER_CALL, StopKind.BEFORE_TOOL, StopKind.AFTER_TOOL),
        *(StopKind.AFTER_CHECK, StopKind.BEFORE_CANDIDATES, StopKind.AFTER_EVALUATION, StopKind.HOOK),
    }
)
"""Stops in the work of a node."""


def _steps_on(stop: Stop) -> bool:
    """Returns whether a step from node to node stops here."""
    return stop.begins and stop.node not in _SILENT


def at_tool(point: Breakpoint, stop: Stop) -> bool:
    """Returns whether the tool of a breakpoint is about to run; of a program that is watched, whether an answer calls
    it."""
    if stop.kind is StopKind.AFTER_CALL:
        return point.tool in stop.tools
    return stop.kind is StopKind.BEFORE_TOOL and stop.tool == point.tool


def at_way_on(point: Breakpoint, stop: Stop) -> bool:
    """Returns whether the edge and the outcome of a breakpoint, if it names any, are those of the phase that has ended
    here."""
    if stop.kind is not StopKind.AFTER_ROUTE:
        return False
    if point.outcome and point.outcome != stop.outcome:
        return False
    targets = stop.considered if point.edge == CONSIDERED else stop.taken
    return not point.edge or (point.to in targets if point.to else bool(targets))


def matches_breakpoint(point: Breakpoint, stop: Stop) -> bool:
    """Returns whether a breakpoint without a condition holds here: where its phase begins, at its turn, at each turn of
    its visit, before its tool, or where its edge or its outcome is known."""
    if point.condition:
        return False
    if not point.is_of(stop.place):
        return False
    if point.edge or point.outcome:
        return at_way_on(point, stop)
    if point.tool:
        return at_tool(point, stop)
    if stop.node and not point.turn:
        return stop.begins
    if stop.kind is not StopKind.BEFORE_CALL or stop.place.call > 1:
        return False
    if point.turn:
        return stop.place.turn == point.turn
    if point.visit:  # A context of a watched program may begin at any turn.
        return True
    return stop.place.turn == 1 and stop.place.attempt == 1
