"""Fields that all rows of a run share: the run's identity, the row's place in its tree, and the columns of
its message.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from workbench.context.assembly import Item, Kind
from workbench.context.message import Message, canonical
from workbench.context.place import Place
from workbench.engine.journal.annotations import Labels
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.store.branches import Branch, Branches
from workbench.store.index.tables import BlobRow, EvalRow, EventRow, MessageRow, Row, RunRow

# Values of rows: times, numbers, ids and JSON texts that every column type accepts, whatever a journal holds.

_EPOCH = "1970-01-01T00:00:00.000000Z"
_MAX_COUNT = 2**32 - 1
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_plain = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


@lru_cache(1024)
def time_of(at: object) -> str:
    """A time in UTC with microseconds; the epoch for an invalid one, because one bad value refuses a whole batch."""
    try:
        moment = datetime.fromisoformat(str(at))
    except ValueError:
        return _EPOCH
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if not 1970 <= moment.year < 2200:
        return _EPOCH
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def count(value: object) -> int | None:
    """A count that fits its column; None for other values, because unknown is never 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return int(value) if 0 <= value <= _MAX_COUNT else None


def number(value: object) -> float | None:
    """A finite number or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value)


def small(value: int) -> int:
    """A place's count in 16 bits."""
    return value if 0 <= value <= 65_535 else min(max(value, 0), 65_535)


def json_text(value: Any) -> str:
    """JSON that can be searched: characters as they are."""
    try:
        return _encode_plain(value).decode()
    except (ValueError, TypeError):  # Lone surrogates, and keys of a cascade that are no texts.
        return _encode(value)


def sorted_json(value: Any) -> str:
    """The same with keys in their order, so that equal values give equal texts."""
    try:
        return _encode_sorted(value).decode()
    except (ValueError, TypeError):
        return canonical(value)


def digest(text: str) -> str:
    """Sha256 in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(4096)
def trace_id(*parts: object) -> str:
    """The id of a node of a run's tree: 32 hex digits that depend only on its place."""
    return digest("/".join(map(str, parts)))[:32]


def row_id(at: str, index: int, *parts: object) -> str:
    """A UUIDv7 that is always the same for one row: its time, its index, a digest. Ingesting twice gives one row.

    Rows of one event sort by their index.
    """
    bits = digest("/".join(map(str, (*parts, index))))[:16]
    variant = "89ab"[int(bits[0], 16) & 3]
    return f"{_milliseconds(at)}-7{min(index, 0xFFF):03x}-{variant}{bits[1:4]}-{bits[4:]}"


@lru_cache(64)
def _milliseconds(at: str) -> str:
    """How the ids of rows of a time begin."""
    text = f"{int(datetime.fromisoformat(time_of(at)).timestamp() * 1000):012x}"
    return f"{text[:8]}-{text[8:]}"


JUDGE = "evaluator"
"""The evaluator of candidates: its text is not a candidate's output, and neither won nor lost."""
PERSON = "person"
"""The rater of a person's choice in ``all_evals``."""
_PURPOSES = {
    Kind.SYSTEM: "tool_definitions",
    Kind.INPUT: "input",
    Kind.INJECTED: "context_injection",
    Kind.TASK: "instructions",
    Kind.RETRY: "retry",
    Kind.PROMPT: "continuation",
    Kind.CLOSING: "closing",
    Kind.ANSWER: "turn",
    Kind.RESULT: "tool_result",
    Kind.IMAGES: "images",
    Kind.USER: "user_injection",
}


VERSION_BITS = 32
"""Of a row's version, for the sequence number; those above count annotations, which are no part of the journal."""


def label_columns(labels: Labels) -> dict[str, Any]:
    """What people say, as columns."""
    note = "\n".join(labels.notes)
    return {"tags": labels.tags, "note": note, "score": labels.score, "thumb": labels.thumb}


class RowBase:
    """Holds a run as far as it was read, and every message row in its newest version."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.state = RunState()
        self._branches = Branches()
        self._told_late = False
        """The last event told something of its branch that earlier rows do not say."""
        self._messages: dict[str, MessageRow] = {}
        """By message id; kept because late facts make rows anew."""
        self._answers: dict[Place, str] = {}
        """Message ids of answers; of several at one place (a resumed run), the last."""
        self._answer_ids: list[str] = []
        self._running: dict[tuple[Place, object], dict[str, Any]] = {}
        """Tool calls without a result so far, by place and index."""
        self._attempts: dict[tuple[str, str, int], str] = {}
        """Message ids of the rows that end candidates, by branch, phase and visit."""
        self._phases: dict[str, str] = {}
        """Hashes of phases by name."""
        self._last_of_place: tuple[tuple[Place, Branch], MessageRow] | None = None
        self._failed_check = ""
        self._strategy = ""
        self.annotated = 0
        """Bytes of annotations that were read: a later annotation gives a row a higher version."""

    def _paid(self) -> Iterator[MessageRow]:
        """The answers of models, in order."""
        return (self._messages[message_id] for message_id in self._answer_ids)

    def run_row(self) -> RunRow:
        """The run so far, as a row of its own; part of every batch."""
        state = self.state
        own, inside = state.own, state.children.figures()
        return RunRow(
            run_id=self.run_id,
            session_id=state.session_id,
            parent_run_id=state.parent.get("run_id", ""),
            parent_session_id=state.parent.get("session_id", ""),
            parent_kind=state.parent.get("kind", ""),
            cascade_id=state.cascade_id,
            cascade_file=state.cascade_file,
            cascade_hash=state.cascade_sha256,
            strategy=self._strategy,
            status=state.status,
            failed_check=self._failed_check,
            reason=state.reason,
            started=time_of(state.started) if state.started else None,
            finished=time_of(state.finished) if state.finished else None,
            seconds=state.seconds,
            paused_seconds=state.paused,
            visits=len(state.visits),
            calls=own.calls,
            recorded_calls=own.recorded,
            tools=own.tools,
            tokens_in=own.tokens_in,
            tokens_out=own.told_out,
            cost=own.cost,
            predicted_cost=own.spent.predicted,
            unknown_costs=own.spent.unbilled,
            inside_runs=inside.runs,
            inside_calls=inside.calls,
            inside_tokens_in=inside.tokens_in,
            inside_tokens_out=inside.told_out,
            inside_cost=inside.cost,
            inside_predicted_cost=inside.spent.predicted,
            model=", ".join(dict.fromkeys(call.model for call in state.calls if call.model)),
            input=json_text(dict(state.input)) if state.input else "",
            output=state.output,
            imported=bool(state.ports.get("imported")),
            journal_rows=state.seq,
            **label_columns(self.state.annotations.run),
            row_version=self.annotated << VERSION_BITS | state.seq,
        )

    def _row(
        self, event: Event, node_type: str, index: int = 0, *, node: Sequence[object] = (), **said: Any
    ) -> MessageRow:
        """A row of ``messages``. ``node`` is its place in the tree below the call, if it is no call itself."""
        row = self._of_place(event.place)
        if node and event.place.phase and (event.place.turn or event.place.call):
            said |= {"trace_id": trace_id(row.trace_id, *node), "parent_id": row.trace_id}
        row = replace(
            row,
            timestamp=time_of(event.at),
            node_type=node_type,
            message_id=row_id(event.at, index, self.run_id, event.seq),
            seq=event.seq,
            row_version=event.seq,
            **said,
        )
        return row.changed(is_winner=None) if row.semantic_actor == JUDGE else row

    def _of_place(self, place: Place) -> MessageRow:
        """What is equal in all rows of a place, as things are now; to copy it costs a third of making a row anew."""
        state, branch = self.state, self._branches.of(place)
        key = (place, branch)
        if self._last_of_place is not None and self._last_of_place[0] == key:
            return self._last_of_place[1]
        trace, parent = self._traces(place)
        row = MessageRow(
            timestamp="",
            trace_id=trace,
            parent_id=parent,
            node_type="",
            message_id="",
            seq=0,
            row_version=0,
            session_id=branch.session_id or self.run_id,
            parent_session_id=branch.parent_session_id or state.parent.get("session_id"),
            depth=min(state.parent.get("depth", 0), 255),
            sounding_index=branch.sounding_index,
            is_winner=branch.is_winner,
            reforge_step=branch.reforge_step,
            attempt_number=small(place.attempt) or None,
            turn_number=small(place.turn) or None,
            mutation_type=branch.mutation_type,
            mutation_applied=branch.mutation_applied,
            mutation_template=branch.mutation_template,
            cascade_id=state.cascade_id,
            cascade_file=state.cascade_file,
            cascade_hash=state.cascade_sha256,
            phase_name=place.phase,
            phase_hash=self._phases.get(place.phase, ""),
            run_id=self.run_id,
            branch=place.branch,
            visit=small(place.visit),
            call=small(place.call),
        )
        self._last_of_place = (key, row)
        return row

    def _traces(self, place: Place) -> tuple[str, str | None]:
        """The node of a place in the tree of its run, and the one above it."""
        run = trace_id(self.run_id)
        if not place.phase:
            above = self.state.parent.get("run_id")
            return run, trace_id(above) if above else None
        visit = trace_id(self.run_id, *place.visit_key)
        if not place.turn and not place.call:
            return visit, run
        return trace_id(self.run_id, *place), visit

    def _message_row(
        self,
        event: Event,
        item: Item,
        node_type: str,
        index: int,
        metadata: Mapping[str, Any] | None = None,
        **said: Any,
    ) -> MessageRow:
        """A row of a message; ``metadata`` joins what its item tells."""
        message = item.message
        actor = "human" if item.kind is Kind.USER else "main" if message.role != "system" else "framework"
        told = {name: value for name in ("source", "note", "redacted", "tool") if (value := getattr(item, name))}
        if item.kind is Kind.INJECTED:
            told |= {"selective_context": True, "context_from": [item.source.partition(".")[0]]}
        said = {"semantic_actor": actor, "semantic_purpose": _PURPOSES[item.kind], **self._content(message), **said}
        return self._row(event, node_type, index, metadata_json=json_text(told | dict(metadata or {})), **said)

    def _content(self, message: Message) -> dict[str, Any]:
        calls = [{"tool": c.name, "arguments": c.arguments, "id": c.id} for c in message.tool_calls]
        images = [image.to_json() for image in message.images]
        return {
            "role": message.role,
            "content_json": json_text(
                message.content if isinstance(message.content, str) else [part.to_json() for part in message.content]
            ),
            "tool_calls_json": json_text(calls) if calls else "",
            "images_json": json_text(images) if images else "",
            "has_images": bool(images),
            "has_base64": ";base64," in message.text,
            "content_hash": message.content_hash,
            "body_hash": message.body_hash,
        }

    def _added(self, event: Event) -> list[Item]:
        return [Item.from_json(body, self.state.bodies) for body in event.data.get("added", ())]

    def _blob(self, event: Event, key: str, kind: str, body: str) -> list[Row]:
        """A body under its hash; empty if a journal lacks the hash."""
        if not key:
            return []
        return [BlobRow(hash=key, kind=kind, size=len(body), body=body, added_at=time_of(event.at))]

    def _event(self, event: Event, written: str) -> EventRow:
        data: Mapping[str, Any] = event.data
        if event.kind == "blob":
            data, written = {key: value for key, value in data.items() if key != "body"}, ""
        place = event.place
        return EventRow(
            run_id=self.run_id,
            seq=event.seq,
            timestamp=time_of(event.at),
            kind=event.kind,
            branch=place.branch,
            phase_name=place.phase,
            visit=small(place.visit),
            attempt_number=small(place.attempt),
            turn_number=small(place.turn),
            call=small(place.call),
            data_json=written or json_text(data),
            row_version=event.seq,
        )

    def _eval(
        self, event: Event, index: int, rater: str, score: object, preferred: bool | None, verdict: str, notes: str
    ) -> EvalRow:
        """One judgement. A person's stands beside the evaluator's of the same event."""
        branch = self._branches.of(event.place)
        return EvalRow(
            session_id=branch.session_id or self.run_id,
            eval_id=row_id(event.at, index, self.run_id, event.seq, "person" if rater == PERSON else "eval"),
            run_id=self.run_id,
            seq=event.seq,
            timestamp=time_of(event.at),
            phase_name=event.place.phase,
            branch=event.place.branch,
            visit=small(event.place.visit),
            sounding_index=branch.sounding_index,
            rater=rater,
            score=number(score),
            preferred=preferred,
            verdict=verdict,
            notes=notes,
            row_version=event.seq,
        )

    def _anew(self, event: Event, which: Callable[[MessageRow], bool], **changed: Any) -> list[Row]:
        """New versions of rows; they keep their timestamp, since partitions are never merged."""
        return [row.changed(**changed, row_version=event.seq) for row in list(self._messages.values()) if which(row)]
