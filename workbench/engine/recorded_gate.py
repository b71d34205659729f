"""The recorded face of the gate: what a person edited is edited again, where it was."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.context.place import Place
from workbench.engine.gate import Decision, Gate, Stop, StopKind

if TYPE_CHECKING:
    from workbench.engine.replay import Replay


_ANYWAY = Decision(send_anyway=True)


class RecordedGate:
    """Makes the recorded edits again where they were made, and lets through what a person let through."""

    def __init__(self, replay: Replay, gate: Gate) -> None:
        self._replay = replay
        self._gate = gate
        self._depth: int | None = None
        self._made: dict[tuple[str, Place, int], int] = defaultdict(int)
        self._is_plain = not (replay.recording.edits or replay.recording.feedback)

    async def __call__(self, stop: Stop) -> Decision:
        if not self._is_plain and (again := self._again(stop)) is not None:
            return again
        decision = await self._gate(stop)
        if stop.answered_by != "recorded" or decision.send_anyway:
            return decision
        return replace(decision, send_anyway=True) if decision.edits else _ANYWAY

    def _again(self, stop: Stop) -> Decision | None:
        """What was done at this stop."""
        if stop.place.call and self._replay.waits_to_speak(stop):
            # What was sent is yet to come: a person spoke here, and it was put together again.
            return Decision(send_anyway=bool(stop.problems))
        if self._depth is None:
            self._depth = stop.depth  # A run's own gate is asked before that of any child.
        if stop.depth == self._depth and not self._replay.past(stop.place):
            key = (str(stop.kind), stop.place, stop.index)
            batches, number = self._replay.recording.edits.get(key, []), self._made[key]
            if number < len(batches) and _was(stop, batches[number].digest):
                self._made[key] += 1
                return Decision(edits=tuple(batches[number].edits))
        return None


def _was(stop: Stop, digest: str) -> bool:
    """Whether the request at a stop is the one that was edited; at other stops there is none to compare."""
    if stop.kind is not StopKind.BEFORE_CALL or stop.assembly is None:
        return True
    return stop.assembly.request.digest == digest
