"""Rows as the place of an event makes them: the run's identity, the place in its tree, and the columns of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from workbench.context.assembly import Item, Kind
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.store.branches import Branch, Branches
from workbench.store.index.row_values import json_text, number, row_id, small, time_of, trace_id
from workbench.store.index.tables import BlobRow, EvalRow, EventRow, MessageRow, TableRow

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


class RowTemplates:
    """Makes rows of one run, with all that its place says of each."""

    def __init__(self, run_id: str, state: RunState, branches: Branches) -> None:
        """``state`` and ``branches`` are the run as far as it was read; the caller keeps them up to date."""
        self._run_id = run_id
        self._state = state
        self._branches = branches
        self.phases: dict[str, str] = {}
        """Hashes of phases by name."""
        self._last_of_place: tuple[Place, Branch, MessageRow] | None = None

    def message(
        self,
        event: Event,
        node_type: str,
        index: int = 0,
        *,
        node: Sequence[object] = (),
        content: object = UNSET,
        metadata: Mapping[str, Any] | None = None,
        **said: Any,
    ) -> MessageRow:
        """A row of ``messages``. ``node`` is its place in the tree below the call, if it is no call itself. ``content``
        and ``metadata`` become JSON; ``said`` are further columns."""
        row = self._of_place(event.place)
        if content is not UNSET:
            said["content_json"] = json_text(content)
        if metadata is not None:
            said["metadata_json"] = json_text(dict(metadata))
        if node and event.place.phase and (event.place.turn or event.place.call):
            said |= {"trace_id": trace_id(row.trace_id, *node), "parent_id": row.trace_id}
        row = replace(
            row,
            timestamp=time_of(event.at),
            node_type=node_type,
            message_id=row_id(event.at, index, self._run_id, event.seq),
            seq=event.seq,
            row_version=event.seq,
            **said,
        )
        return row.changed(is_winner=None) if row.semantic_actor == JUDGE else row

    def _of_place(self, place: Place) -> MessageRow:
        """Returns a row with the values that are equal in all rows of a place, as things are now; to copy it costs a
        third of making a row anew."""
        state, branch = self._state, self._branches.of(place)
        if (last := self._last_of_place) is not None and last[0] == place and last[1] is branch:
            return last[2]
        trace, parent = self._traces(place)
        row = MessageRow(
            timestamp="",
            trace_id=trace,
            parent_id=parent,
            node_type="",
            message_id="",
            seq=0,
            row_version=0,
            session_id=branch.session_id or self._run_id,
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
            phase_name="" if place.is_whole else place.phase,
            phase_hash=self.phases.get(place.phase, ""),
            run_id=self._run_id,
            branch=place.branch,
            visit=small(place.visit),
            call=small(place.call),
        )
        self._last_of_place = (place, branch, row)
        return row

    def _traces(self, place: Place) -> tuple[str, str | None]:
        """The node of a place in the tree of its run, and the one above it."""
        run = trace_id(self._run_id)
        if not place.phase:
            above = self._state.parent.get("run_id")
            return run, trace_id(above) if above else None
        visit = trace_id(self._run_id, *place.visit_key)
        if not place.turn and not place.call:
            return visit, run
        return trace_id(self._run_id, *place), visit

    def item(
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
        purpose = "instructions" if item.kind is Kind.SYSTEM and item.source else _PURPOSES[item.kind]
        said = {"semantic_actor": actor, "semantic_purpose": purpose, **self._content(message), **said}
        return self.message(event, node_type, index, metadata=told | dict(metadata or {}), **said)

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

    def added(self, event: Event) -> list[Item]:
        return [Item.from_json(body, self._state.bodies) for body in event.data.get("added", ())]

    def blob(self, event: Event, key: str, kind: str, body: str) -> list[TableRow]:
        """A body under its hash; empty if a journal lacks the hash."""
        if not key:
            return []
        return [BlobRow(hash=key, kind=kind, size=len(body), body=body, added_at=time_of(event.at))]

    def event(self, event: Event, written: str) -> EventRow:
        data: Mapping[str, Any] = event.data
        if event.kind == "blob":
            data, written = {key: value for key, value in data.items() if key != "body"}, ""
        place = event.place
        return EventRow(
            run_id=self._run_id,
            seq=event.seq,
            timestamp=time_of(event.at),
            kind=event.kind,
            branch=place.branch,
            phase_name="" if place.is_whole else place.phase,
            visit=small(place.visit),
            attempt_number=small(place.attempt),
            turn_number=small(place.turn),
            call=small(place.call),
            data_json=written or json_text(data),
            row_version=event.seq,
        )

    def judgement(
        self, event: Event, index: int, rater: str, score: object, preferred: bool | None, verdict: str, notes: str
    ) -> EvalRow:
        """One judgement. A person's stands beside the evaluator's of the same event."""
        branch = self._branches.of(event.place)
        return EvalRow(
            session_id=branch.session_id or self._run_id,
            eval_id=row_id(event.at, index, self._run_id, event.seq, "person" if rater == PERSON else "eval"),
            run_id=self._run_id,
            seq=event.seq,
            timestamp=time_of(event.at),
            phase_name="" if event.place.is_whole else event.place.phase,
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
