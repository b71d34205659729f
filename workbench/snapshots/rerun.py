"""Runs the engine again with a recording behind every port: it calls no model, runs no tool and asks no person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembler import answer_schema, has_to_be_json, has_to_think
from workbench.context.assembly import Entry, Grade
from workbench.context.message import Message, canonical, sha256
from workbench.context.tokens import Counter
from workbench.engine.contracts import Ports
from workbench.engine.definition import Definition, Options, Parent
from workbench.engine.journal.event import Event
from workbench.engine.journal.memory_sink import MemorySink
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import RECORDED, Replay
from workbench.engine.run.run import Run
from workbench.snapshots.recorded_run import RecordedRun


class Rerun(Struct, frozen=True):
    """The result of a replay."""

    kept: RecordedRun
    status: str
    reason: str
    calls: int
    """Model calls that were answered from the recording."""


CountKey = tuple[str, str]
"""A model and a hash."""


class RecordedCounter(Counter):
    """A counter that knows what a run counted, by body hash; what it does not know goes to the real one."""

    def __init__(
        self, recordings: Sequence[Recording], counts: Mapping[CountKey, tuple[int, Grade]], real: Counter
    ) -> None:
        """``real`` counts new texts."""
        self._real = real
        self.anew: dict[CountKey, tuple[int, Grade]] = dict(counts)
        """The counts that the recording's requests do not hold: given beforehand, and counted since."""
        self._messages: dict[CountKey, tuple[int, Grade]] = {}
        self._tools: dict[CountKey, tuple[int, Grade]] = {}
        self._overhead: dict[tuple[str, str, bool, bool], int] = {}
        """By model, the schema of the answer, and whether there is a budget for reasoning, and JSON of any form."""
        for recording in recordings:
            known: set[int] = set()
            for call in recording.state.calls:
                given = call.parameters
                asked = answer_schema(given), has_to_think(given), has_to_be_json(given)
                self._overhead[call.model, *asked] = call.overhead_tokens
                self._tools[call.model, call.tools_hash] = (call.tools_tokens, Grade.ESTIMATE)
                for entry in call.entries:
                    if id(entry) not in known:
                        known.add(id(entry))
                        self._learn(entry, call.model)

    def _learn(self, entry: Entry, model: str) -> None:
        message = entry.item.message
        self._messages[model, message.body_hash] = (entry.tokens_full, entry.grade)
        if entry.sent is not None and entry.sent is not message:
            self._messages[model, entry.sent.body_hash] = (entry.tokens_sent, entry.grade)

    def message(self, message: Message, model: str) -> tuple[int, Grade]:
        key = (model, message.body_hash)
        known = self._messages.get(key) or self.anew.get(key)
        if known is None:
            known = self.anew[key] = self._real.message(message, model)
        return known

    def tools(
        self, tools: Sequence[Mapping[str, Any]], model: str, *, forced: bool = False, responses: bool = False
    ) -> tuple[int, Grade]:
        if not tools:
            return 0, Grade.EXACT
        known = self._tools.get((model, sha256(canonical(list(tools)))))
        return known or self._real.tools(tools, model, forced=forced, responses=responses)

    def overhead(self, model: str, schema: str = "", *, thinking: bool = False, as_json: bool = False) -> int:
        known = self._overhead.get((model, schema, thinking, as_json))
        return self._real.overhead(model, schema, thinking=thinking, as_json=as_json) if known is None else known

    def range(self, model: str) -> tuple[float, float]:
        return 1.0, 1.0  # A replay pays nothing: its forecasts are not used.

    def text(self, text: str, model: str) -> int:
        return self._real.text(text, model)


async def rerun(definition: Definition, input: Mapping[str, Any], kept: RecordedRun, base: Ports) -> Rerun:
    """Run a definition with the answers of a recording. Calls are answered by their place, changed or not; one that the
    recording does not have ends the run as ``diverged``. ``base`` describes the tools, renders templates and finds
    other cascades; its counter is asked for messages that the recording never counted."""
    recording = kept.recording
    recordings = [recording, *(child for run_id in kept.children if (child := kept.child(run_id)) is not None)]
    replay = Replay(recording, RECORDED, children=kept.child)
    counter = RecordedCounter(recordings, kept.counts, base.counter)
    sink = MemorySink()
    ports = replay.ports(replace(base, counter=counter, sink=sink))
    children: dict[str, list[Event]] = defaultdict(list)
    run = Run(
        definition,
        input,
        _options(recording.state.options),
        ports,
        parent=Parent(
            recording.state.run_id, recording.state.session_id, "replay", prompt_id=recording.state.prompt_id
        ),
        observe_child=lambda event: children[event.run_id].append(event),
    )
    outcome = await run.execute()
    made = RecordedRun(
        run.journal.run_id,
        tuple(sink.events),
        {run_id: tuple(events) for run_id, events in children.items()},
        sink.blobs,
        counter.anew,
    )
    answered = sum(1 for events in (made.events, *made.children.values()) for e in events if e.kind == "call_finished")
    return Rerun(made, outcome.status, outcome.reason, answered)


def _options(recorded: Mapping[str, Any]) -> Options:
    """As the run had them, without the limit of time: a replay takes as long as it takes."""
    return replace(Options.from_json({"session_id": "", "default_model": "", **recorded}), max_seconds=None)
