"""A checkpoint folder, as engines of phase graphs write it: the position of a run, and the output of each phase."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field

from workbench.analysis.what_if import whole
from workbench.context.assembler import Assembler
from workbench.context.assembly import Assembly, Item, Kind
from workbench.context.marks import NO_MARKS
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.scope import PhaseScope
from workbench.context.strategy import Strategy
from workbench.engine.calls.call_records import record_answer, record_context
from workbench.engine.contracts import Answer
from workbench.engine.definition import Definition, DefinitionError, Options
from workbench.engine.forecasting import Forecaster
from workbench.engine.journal.event import STATUSES, timestamp
from workbench.engine.journal.journal_writer import JournalWriter
from workbench.engine.journal.own_secrets import without_secrets
from workbench.engine.journal.usage import Usage
from workbench.engine.routing.outcome import PhaseOutcome, stated
from workbench.importers.conversation import Unreadable
from workbench.importers.journal import FileClock, JournalServices, Origin, begin, no_one, redacted_json
from workbench.importers.values import loads, mapping, moment, string
from workbench.language.check import slug

# Writes a checkpoint as the journal of a run: of each phase its last prompt, its answer, and how it ended.

RULE = "recorded in the checkpoint"
"""Why a phase came next: more than that a checkpoint does not say."""
UNKNOWN = "(not in the checkpoint)"
_UNSTATED = "a checkpoint holds the prompt of a phase, not what else its model saw"


def write_checkpoint(point: Checkpoint, origin: Origin, run_id: str, session_id: str, outside: JournalServices) -> None:
    """Journal a checkpoint as an ordinary run, marked by ``ports: {imported: checkpoint}``.

    Raises DefinitionError for a cascade that would be another one without the secrets in it.
    """
    _Writer(point, origin, run_id, session_id, outside).write()


class _Writer:
    """One run being written."""

    def __init__(
        self, point: Checkpoint, origin: Origin, run_id: str, session_id: str, outside: JournalServices
    ) -> None:
        self.point = point
        self.origin = origin
        self.outside = outside
        self.definition = without_secrets(Definition.of(point.cascade_text, point.cascade_file), outside.redact)
        self.clock = FileClock(point.at or outside.clock.now())
        self.journal = JournalWriter(run_id, self.clock, outside.sink, no_one)
        self.options = Options(session_id, next((node.model for node in point.nodes if node.model), ""))
        self.state: dict[str, object] = {}
        self.last: Assembly | None = None

    def write(self) -> None:
        """All events, from ``run_started`` to ``run_finished``."""
        point, emit = self.point, self.journal.emit
        given = redacted_json(dict(point.input), self.outside.redact)
        begin(self.journal, self.definition, self.options, self.origin, file=point.cascade_file, input=given)
        for node in point.nodes:
            self._node(node)
        for key, value in redacted_json(dict(point.state), self.outside.redact).items():
            if key not in self.state or self.state[key] != value:
                emit("state_set", key=key, value=value, by="checkpoint")
                self.state[key] = value
        for message in point.warnings:
            self._warn(message, "log")
        for note in point.notes:
            self._warn(note, "import")
        self.clock.at = max(point.end, self.clock.at)
        output, reason = self._text(point.output), self._text(point.reason)
        emit("run_finished", status=point.status, output=output, state=self.state, reason=reason)
        self.journal.sync()

    def _node(self, node: Node) -> None:
        emit, place = self.journal.emit, Place("", node.phase, 1)
        self.clock.at = max(node.at, self.clock.at)
        kind = "llm" if node.has_model else node.kind or "deterministic"
        cascade, phase = whole(self.definition.cascade, node.phase)
        scope = PhaseScope(cascade=cascade, phase=phase, index=0, place=place, model=node.model)
        strategy = Strategy.of(scope.cascade, scope.phase)
        emit(
            "phase_started",
            place,
            kind=kind,
            model=node.model,
            strategy=str(strategy),
            conditions={},
            max_turns=1,
            tools=[],
        )
        at = place._replace(attempt=node.attempts, turn=1, call=1)
        if node.has_model:
            self._call(node, at, Assembler(scope, strategy, self.outside.counter, self.last))
        elif node.prompt:
            self._tool(node, place)
        self.clock.at = max(node.end, self.clock.at)
        for key, value in redacted_json(dict(node.state), self.outside.redact).items():
            emit("state_set", place, key=key, value=value, by="checkpoint")
            self.state[key] = value
        if node.route:
            emit("route_chosen", place, to=self._text(node.route), rule=RULE, candidates=[])
        reason = self._text(node.reason)
        told: dict[str, Any] = {}
        if self.definition.graph.format == "dot" and node.outcome is not None:
            told = {"outcome": redacted_json(node.outcome.to_json(), self.outside.redact)}
        output = self._text(node.response)
        emit("phase_finished", place, status=node.status, output=output, reason=reason, check="", **told)
        self.journal.sync()

    def _call(self, node: Node, at: Place, assembler: Assembler) -> None:
        """The phase's last answer, to its prompt alone: what else the model saw, a checkpoint does not hold."""
        task = Item(Message("user", self._text(node.prompt)), Kind.TASK, at._replace(call=0))
        assembler.add(task)
        assembly = self.last = assembler.assemble(at)
        forecaster = Forecaster(node.model, self.outside.counter, self.outside.prices, NO_MARKS)
        now = timestamp(self.clock.at)
        prediction = forecaster.predict(assembly, now, unknown=True)
        record_context(
            self.journal, at, assembly, purpose="turn", added=[task], prediction=prediction, unstated=_UNSTATED
        )
        if not node.response:
            return
        digest = assembly.request.digest
        self.journal.emit("call_started", at, digest=digest, model=node.model, purpose="turn", **{"try": 1})
        text = self._text(node.response)
        answer = Answer(text, (), usage=Usage(), cost=None, cost_grade="unknown", model=node.model, duration_s=None)
        item = Item(Message("assistant", text), Kind.ANSWER, at)
        record_answer(self.journal, at, assembly, answer, item, purpose="turn", redact=self.outside.redact)

    def _tool(self, node: Node, at: Place) -> None:
        """Adds the tool call of a phase without a model. Of its tries before the last one a checkpoint has only the
        number."""
        name, _, arguments = self._text(node.prompt).partition(" ")
        told = {"index": 1, "call_id": "", "tool": name}
        for attempt in range(1, node.attempts + 1):
            place, failed = at._replace(attempt=attempt), attempt < node.attempts or node.status != "success"
            self.journal.emit("tool_started", place, **told, arguments=arguments, native=False, side_effects=True)
            text = UNKNOWN if attempt < node.attempts else self._text(node.response or node.reason)
            nothing: dict[str, Any] = {"added": [], "images": [], "duration_s": None, "sandbox": "", "cached": False}
            self.journal.emit("tool_finished", place, **told, **nothing, is_error=failed, text=text)

    def _text(self, text: str) -> str:
        return self.outside.redact(text)[0]

    def _warn(self, message: str, code: str) -> None:
        text = self._text(message)
        self.journal.emit("warning", code=code, message=text, file=self.origin.file, path="", line=0, column=0)


MANIFEST, STAND = "manifest.json", "checkpoint.json"
MOST_NODES = 10_000
_STATUSES = {"fail": "failed", "failed": "failed", "retry": "stopped", "skipped": "stopped"}
"""The status of a run, by the outcome that another engine states; any other word is a success."""
_SILENT = frozenset({"deterministic", "start", "exit", "route", "human", "parallel", "join", "subgraph"})
"""Kinds of phases that ask no model."""
_OWN = frozenset({"outcome", "last_stage", "last_response", "preferred_label", "current_node"})
"""Keys of the context that the engine sets, not the run."""

ReadText = Callable[[str], str | None]
"""The text of a file of the checkpoint by its path inside it; None if it is missing. Raises Unreadable."""


class Node(Struct, frozen=True):
    """The last visit of a phase."""

    phase: str
    prompt: str = ""
    response: str = ""
    status: str = "success"
    reason: str = ""
    route: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 1
    model: str = ""
    has_model: bool = True
    """False for a phase that calls a tool alone; its prompt is the tool's name and arguments."""
    at: str = ""
    """Its start: UTC, ISO 8601 with microseconds and ``Z``, as ``end``; empty if unknown."""
    end: str = ""
    kind: str = ""
    """As the checkpoint names it."""
    outcome: PhaseOutcome | None = None
    """Its outcome, as the checkpoint states it."""


class Checkpoint(Struct, frozen=True):
    """A run, as far as a checkpoint has it."""

    name: str
    status: str
    nodes: tuple[Node, ...]
    """In the order of their last visits."""
    cascade_text: str
    cascade_file: str = ""
    reason: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    at: str = ""
    end: str = ""
    notes: tuple[str, ...] = ()
    """The facts that could not be mapped, in words."""


def read_checkpoint(read: ReadText) -> Checkpoint:
    """The run in a folder that holds ``checkpoint.json``, with or without ``manifest.json`` and a folder for each
    phase. Raises Unreadable."""
    manifest, stand = _object(read, MANIFEST), _object(read, STAND)
    folders = mapping(manifest.get("nodes"))
    done = _names(stand.get("completed_nodes"))
    current = string(stand.get("current_node"))
    names = list(dict.fromkeys([*(folders or done), *([current] if current else [])]))
    if not names:
        raise Unreadable("looks like a checkpoint, but names no phase")
    if len(names) > MOST_NODES:
        raise Unreadable(f"looks like a checkpoint, but names {len(names):,} phases; {MOST_NODES:,} is the limit")
    tries = mapping(stand.get("node_retries"))
    nodes = tuple(_node(read, name, string(folders.get(name)) or slug(name), tries.get(name), done) for name in names)
    name = string(manifest.get("name")) or string(manifest.get("goal"))
    text, file, notes = _cascade(read, string(manifest.get("cascade")), name, names)
    status = string(manifest.get("status"))
    if status not in STATUSES:
        status = next((node.status for node in nodes if node.status != "success"), "success")
    context = mapping(stand.get("context"))
    answers = [node.response for node in nodes if node.status == "success" and node.response]
    return Checkpoint(
        name,
        status,
        nodes,
        text,
        file,
        string(manifest.get("reason")),
        mapping(manifest.get("input")),
        string(manifest.get("output", answers[-1] if answers else "")),
        {key: value for key, value in context.items() if key not in _OWN},
        tuple(_names(stand.get("logs"))),
        moment(manifest.get("start_time")),
        moment(manifest.get("end_time")) or moment(stand.get("timestamp")),
        notes,
    )


def _node(read: ReadText, name: str, folder: str, retries: object, done: list[str]) -> Node:
    if folder in ("", ".", "..") or len(PurePosixPath(folder).parts) != 1:
        raise Unreadable(f"looks like a checkpoint, but the folder of phase {name[:60]!r} is {folder[:60]!r}")
    status = _object(read, f"{folder}/status.json")
    outcome = string(status.get("outcome")) or ("success" if name in done else "retry")
    said = string(status.get("status"))
    prompt = read(f"{folder}/prompt.md")
    kind = string(status.get("kind"))
    hints = _names(status.get("suggested_next_ids"))
    return Node(
        name,
        prompt or "",
        read(f"{folder}/response.md") or "",
        said if said in STATUSES else _STATUSES.get(outcome, "success"),
        string(status.get("failure_reason")),
        hints[0] if hints else "",
        mapping(status.get("context_updates")),
        retries + 1 if isinstance(retries, int) and 0 < retries < 1000 else 1,
        string(status.get("model")),
        kind not in _SILENT if kind else prompt is not None,
        moment(status.get("started")),
        moment(status.get("finished")),
        kind=kind,
        outcome=stated({**status, "outcome": outcome}, "checkpoint"),
    )


def _cascade(read: ReadText, file: str, name: str, names: list[str]) -> tuple[str, str, tuple[str, ...]]:
    """The cascade's text, the name of its file, and notes. If none can be read: a cascade with the same phases."""
    note = "the checkpoint holds no cascade: only phase names are known"
    text = read(file) if PurePosixPath(file).name == file and file not in ("", ".", "..") else None
    if text is not None:
        try:
            Definition.of(text, file)
            return text, file, ()
        except DefinitionError as fault:
            note = f"the checkpoint's cascade cannot be used ({fault.problems[0].message}): only phase names are known"
    phases = [{"name": one, "instructions": "The prompt is that of the checkpoint.", "handoffs": []} for one in names]
    made = {"cascade_id": name or "imported", "description": "A checkpoint of a run.", "phases": phases}
    return json.dumps(made, indent=2, ensure_ascii=True) + "\n", "", (note,)


def _object(read: ReadText, path: str) -> dict[str, Any]:
    """The JSON object in a file; empty if the file is missing. Raises Unreadable."""
    text = read(path)
    if text is None:
        return {}
    try:
        body = loads(text)
    except (ValueError, RecursionError) as fault:
        raise Unreadable(f"looks like a checkpoint, but {path} is not JSON ({fault})") from None
    if not isinstance(body, dict):
        raise Unreadable(f"looks like a checkpoint, but {path} holds no JSON object")
    return body


def _names(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str) and one] if isinstance(value, list) else []
