"""Events to rows: a fold over one run's journal that gives, for each event, the rows it makes or makes anew.

Pure. Whatever stretch of a journal is applied twice, the newest version of each row is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from workbench.context.assembly import Action, Entry, Item, Kind
from workbench.context.message import canonical
from workbench.context.place import Place
from workbench.context.reasons import AUTOMATIC
from workbench.context.rope import Rope
from workbench.engine.journal.annotations import Annotations
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallState, VisitState
from workbench.language.read.text import read_source
from workbench.store.index.late_rows import LateRows
from workbench.store.index.row_base import (
    VERSION_BITS,
    count,
    digest,
    json_text,
    label_columns,
    number,
    small,
    sorted_json,
    time_of,
)
from workbench.store.index.tables import AnnotationRow, ContextRow, MessageRow, PartRow, Row

# One call's context as rows: what changed since the call before, and how much was selected.

_ALWAYS = frozenset({"anchor", "input"})
_REDUCED = (Action.MASKED, Action.TRUNCATED, Action.SUMMARIZED)


class _Part(NamedTuple):
    entries: tuple[Entry, ...]
    """Kept, so that no other part comes to have its identity."""
    id: int
    """0 if it was not sent."""
    sent: int
    reduced: int
    always: tuple[tuple[str, str], ...]
    """Reason and content hash of messages that automatic context never drops."""
    automatic: bool
    """Automatic context had a say in it."""
    carried: bool
    """Messages of other phases stand in it, whether they were sent or not."""


class ContextParts:
    """The parts that the contexts of a run are made of; each is looked at once, however many contexts share it."""

    def __init__(self) -> None:
        self._known: dict[int, _Part] = {}
        """By the identity of the tuple."""
        self._rows: set[int] = set()

    def of(self, call: CallState) -> list[_Part]:
        """Those of one call, in order."""
        known = self._known
        return [known.get(id(entries)) or self._part(entries) for entries in Rope.of(call.entries).parts]

    def new_rows(self, parts: Sequence[_Part], at: str) -> list[PartRow]:
        """Rows of the parts without one."""
        rows = []
        for part in parts:
            if part.id and part.id not in self._rows:
                self._rows.add(part.id)
                sent = [entry.sent for entry in part.entries if entry.sent is not None]
                bodies, contents = tuple(m.body_hash for m in sent), tuple(m.content_hash for m in sent)
                rows.append(PartRow(id=part.id, bodies=bodies, contents=contents, added_at=at))
        return rows

    def _part(self, entries: tuple[Entry, ...]) -> _Part:
        sent = [entry.sent.body_hash for entry in entries if entry.sent is not None]
        key = int(digest(" ".join(sent))[:16], 16) if sent else 0
        reduced = sum(1 for entry in entries if entry.sent is not None and entry.action in _REDUCED)
        always = tuple(
            (entry.reason.code, entry.item.message.content_hash)
            for entry in entries
            if entry.sent is not None and entry.reason.code in _ALWAYS
        )
        automatic = any(entry.reason.code in AUTOMATIC for entry in entries)
        carried = any(entry.item.kind is Kind.INJECTED for entry in entries)
        part = _Part(entries, key, len(sent), reduced, always, automatic, carried)
        self._known[id(entries)] = part
        return part


def part_ids(parts: Iterable[_Part]) -> tuple[int, ...]:
    """What a row of ``messages`` names of a context."""
    return tuple(part.id for part in parts if part.id)


def context_row(event: Event, call: CallState, session_id: str, parts: Sequence[_Part]) -> ContextRow:
    """The delta of one assembly. Hashes are body hashes; a dropped message has no hash of a sent body."""
    place, forecast = event.place, call.forecast
    changed = list(_positions(event.data.get("splices", ())))
    inside = _prefix_end(call, parts)
    return ContextRow(
        session_id=session_id,
        branch=place.branch,
        phase_name=place.phase,
        visit=small(place.visit),
        attempt_number=small(place.attempt),
        turn_number=small(place.turn),
        call=small(place.call),
        strategy=call.strategy,
        request_hash=call.digest,
        entries=len(call.entries),
        positions=tuple(position for position, _ in changed),
        source_hashes=tuple(entry["m"] for _, entry in changed),
        sent_hashes=tuple(entry.get("s", entry["m"]) or "" for _, entry in changed),
        actions=tuple(entry["action"] for _, entry in changed),
        reasons=tuple(" ".join(map(str, entry["reason"])) for _, entry in changed),
        rule_paths=tuple(entry["rule"] for _, entry in changed),
        rule_lines=tuple(count(entry["line"]) or 0 for _, entry in changed),
        tokens_full=tuple(count(entry["full"]) or 0 for _, entry in changed),
        tokens_sent=tuple(count(entry["sent"]) or 0 for _, entry in changed),
        in_prefix=tuple(position < inside for position, _ in changed),
        cached=forecast.cached if forecast else 0,
        fresh=forecast.fresh if forecast else 0,
        written=forecast.written if forecast else 0,
        grade=str(call.grade),
        row_version=event.seq,
    )


SELECTED = 200
"""Hashes that the metadata of a selection list at most: ``context_hashes`` of the row names all."""


def selection(call: CallState, parts: Sequence[_Part], visit: VisitState | None) -> Mapping[str, Any]:
    """The metadata of a ``context_selection`` row; sizes count messages.

    What a phase takes over from others is decided with the first call of its visit: that row is ``inter_phase``, and
    those of later calls, which decide about the visit's own messages, are ``intra_phase``. ``anchor_hashes`` are the
    messages that automatic context never drops; ``selected_hashes`` the others that were sent, empty where all
    messages were, and where they are more than ``SELECTED``: the row's ``context_hashes`` names them.
    """
    size, sent = len(call.entries), sum(part.sent for part in parts)
    first = next((one for one in visit.calls if not one.beside), None) if visit is not None else None
    inter = first is call and any(part.carried for part in parts)
    automatic = any(part.automatic for part in parts)
    anchors = [digest for part in parts for _, digest in part.always] if automatic else []
    chosen: list[str] = []
    if sent < size and sent <= SELECTED:
        kept = (entry for entry in call.entries if entry.sent is not None)
        chosen = [e.item.message.content_hash for e in kept if not (automatic and e.reason.code in _ALWAYS)]
    return {
        "selection_type": "inter_phase" if inter else "intra_phase",
        "strategy": call.strategy,
        "full_history_size": size,
        "context_size": sent,
        "masked_count": sum(part.reduced for part in parts),
        "dropped_count": size - sent,
        "anchor_hashes": anchors,
        "selected_hashes": chosen,
        "tokens_full": call.tokens_full,
        "tokens_sent": call.tokens_sent,
        "tokens_saved": call.tokens_full - call.tokens_sent,
        "problems": [problem.message for problem in call.problems],
        "notes": list(call.notes),
    }


def _positions(splices: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Entries of splices with their index in the new sequence; splices count in the one before."""
    shift = 0
    for splice in splices:
        start = splice["at"] + shift
        for offset, entry in enumerate(splice["entries"]):
            yield start + offset, entry
        shift += len(splice["entries"]) - splice["remove"]


def _prefix_end(call: CallState, parts: Sequence[_Part]) -> int:
    """Index of the first entry that lies outside the prefix the provider can reuse."""
    left, index = call.forecast.break_at if call.forecast else 0, 0
    for part in parts:
        if part.sent <= left:
            left -= part.sent
            index += len(part.entries)
            continue
        for entry in part.entries:
            if entry.sent is not None:
                if left == 0:
                    return index
                left -= 1
            index += 1
    return index


_ACTORS = {
    "evaluation": "evaluator",
    "selection": "auto_context",
    "summary": "auto_context",
    "card": "auto_context",
    "turn": "main",
    "closing": "main",
}
"""The speaker of a call, by its purpose; the framework if none is named."""


_ENDS = {"success": "cascade_complete", "stopped": "cascade_stop"}

REPEATED = "repeated"
"""The kind, in ``events``, of a record that a resume of an older release wrote again: it is not counted."""

_CARRIED = frozenset({Kind.SYSTEM, Kind.INPUT, Kind.INJECTED})


class RowMaker(LateRows):
    """Makes the rows of one run."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self._shown: dict[tuple[str, str, int], set[tuple[Kind, str]]] = {}
        """Per visit: messages from outside it that have a row."""
        self._parts = ContextParts()
        self._begun = ""
        """Message id of the row that begins the run; annotations of the run stand there as well."""

    def apply(self, event: Event, written: str = "") -> list[Row]:
        """The rows of the next event; ``written`` is its data as JSON text, if at hand. Raises KeyError, TypeError or
        ValueError for an invalid journal.
        """
        if not self.state.apply(event):
            return [self._event(event, written).changed(kind=REPEATED)]
        self._told_late = self._branches.apply(event)
        maker = _MAKERS.get(event.kind)
        rows = [self._event(event, written), *(maker(self, event) if maker is not None else ())]
        for row in rows:
            if isinstance(row, MessageRow):
                self._keep(row)
        return rows

    def annotated_rows(self, annotations: Annotations, size: int) -> list[Row]:
        """The rows of annotations, and those of the calls and of the run that they are about, in a version above all
        before; ``size`` is how many bytes hold them."""
        self.state.annotations, self.annotated = annotations, size
        version = size << VERSION_BITS | self.state.seq
        rows: list[Row] = []
        holding = {one.id for one in annotations.holding}
        for record in annotations.records:
            place, value = record.place, {} if record.kind == "removed" else {record.kind: record.value}
            rows.append(
                AnnotationRow(
                    run_id=self.run_id,
                    annotation_id=record.id,
                    session_id=self.state.session_id,
                    timestamp=time_of(record.at),
                    kind=record.kind,
                    **value,  # type: ignore[arg-type]
                    holds=record.id in holding,
                    branch=place.branch,
                    phase_name=place.phase,
                    visit=small(place.visit),
                    attempt_number=small(place.attempt),
                    turn_number=small(place.turn),
                    call=small(place.call),
                    row_version=version,
                )
            )
        for place in {record.place for record in annotations.records}:
            about = self._messages.get(self._answers.get(place, "") if place != Place() else self._begun)
            if about is not None:
                labels = label_columns(annotations.at(place))
                row = self._messages[about.message_id] = about.changed(**labels, row_version=version)
                rows.append(row)
        return rows

    def _run_started(self, event: Event) -> list[Row]:
        state, data = self.state, event.data
        self._strategy = str(state.options.get("strategy", ""))
        whole, phases = _cascade_bodies(state.cascade_text, state.cascade_file)
        rows = self._blob(event, state.cascade_sha256, "cascade", whole)
        for name, body in phases:
            self._phases[name] = digest(body)
            rows += self._blob(event, self._phases[name], "phase", body)
        metadata = {name: data[name] for name in ("options", "ports", "parent", "version") if data.get(name)}
        started = self._row(event, "cascade_start", content_json=json_text(data.get("input")), role="user")
        self._begun = started.message_id
        return [*rows, started.changed(metadata_json=json_text(metadata))]

    def _run_resumed(self, event: Event) -> list[Row]:
        return [self._row(event, "cascade_resume", metadata_json=json_text({"ports": event.data.get("ports")}))]

    def _run_finished(self, event: Event) -> list[Row]:
        data = event.data
        node_type = _ENDS.get(str(data.get("status")), "cascade_error")
        metadata = {name: data.get(name) for name in ("status", "reason", "state")}
        content = json_text(data.get("output", ""))
        return [self._row(event, node_type, content_json=content, metadata_json=json_text(metadata))]

    def _phase_started(self, event: Event) -> list[Row]:
        data = dict(event.data)
        return [self._row(event, "phase_start", model_requested=data.get("model", ""), metadata_json=json_text(data))]

    def _phase_finished(self, event: Event) -> list[Row]:
        data = event.data
        if data.get("check"):
            self._failed_check = str(data["check"])
        metadata = {name: value for name, value in data.items() if name != "output"}
        content = json_text(data.get("output", ""))
        node_type = "phase_stop" if data.get("status") == "stopped" else "phase_complete"
        row = self._row(event, node_type, content_json=content, metadata_json=json_text(metadata))
        return [row, *self._visit_cards(event)]

    def _context_assembled(self, event: Event) -> list[Row]:
        call = self.state.call_at(event.place)
        rows: list[Row] = []
        new = [entry for splice in event.data.get("splices", ()) for entry in splice["entries"]]
        sizes = {entry["m"]: entry["full"] for entry in new}
        for index, item in enumerate([*self._carried_in(event), *self._added(event)], 1):
            node_type = "context_injection" if item.kind is Kind.INJECTED else item.message.role
            tokens = sizes.get(item.message.body_hash)
            rows.append(self._message_row(event, item, node_type, index, estimated_tokens=tokens))
        rows += self._anchors(event)
        if call is None:
            return rows
        head = {"model": call.model, "parameters": call.parameters, "tools": call.tools_hash}
        rows += self._blob(event, call.digest, "request", sorted_json(head))
        session = self._branches.of(event.place).session_id or self.run_id
        parts = self._parts.of(call)
        rows += self._parts.new_rows(parts, time_of(event.at))
        rows.append(context_row(event, call, session, parts))
        metadata = json_text(selection(call, parts, self.state.visit_of(event.place)))
        rows.append(
            self._row(
                event,
                "context_selection",
                metadata_json=metadata,
                request_hash=call.digest,
                context_parts=part_ids(parts),
                semantic_actor="auto_context",
                semantic_purpose="context_selection",
            )
        )
        return rows

    def _carried_in(self, event: Event) -> list[Item]:
        """Messages that this visit shows a model for the first time and that are no part of its own history."""
        beside = not event.place.turn
        items = [
            Item.from_json(entry, self.state.bodies)
            for splice in event.data.get("splices", ())
            for entry in splice["entries"]
            if beside or entry["kind"] in _CARRIED
        ]
        seen = self._shown.setdefault(event.place.visit_key, set())
        new = [item for item in items if (item.kind, item.message.body_hash) not in seen]
        seen |= {(item.kind, item.message.body_hash) for item in new}
        return new

    def _call_started(self, event: Event) -> list[Row]:
        data, place = event.data, event.place
        if place.call > 1 or data.get("try", 1) > 1:
            return []
        return [self._row(event, "turn", model_requested=data.get("model", ""), metadata_json=json_text(dict(data)))]

    def _call_failed(self, event: Event) -> list[Row]:
        data = event.data
        metadata = {name: data.get(name) for name in ("try", "error", "retry_in", "purpose")}
        return [self._row(event, "call_error", request_hash=data.get("digest", ""), metadata_json=json_text(metadata))]

    def _call_finished(self, event: Event) -> list[Row]:
        items, call, data = self._added(event), self.state.call_at(event.place), event.data
        if not items or call is None:
            return []
        usage, message, purpose = call.usage, items[0].message, str(data.get("purpose", ""))
        response = {name: data.get(name) for name in ("provider_id", "model", "provider", "finish_reason", "usage")}
        body = sorted_json({**response, "message": message.to_json()})
        tokens_in, tokens_out = count(call.tokens_in), count(usage.output)
        row = self._message_row(
            event,
            items[0],
            _node_type(event, purpose),
            0,
            {name: data.get(name) for name in ("finish_reason", "partial", "recorded", "first_token_s")},
            model=data.get("model") or call.model,
            model_requested=call.model,
            request_id=data.get("provider_id", ""),
            provider=data.get("provider", ""),
            request_hash=call.digest,
            context_parts=part_ids(self._parts.of(call)),
            response_hash=digest(body),
            duration_ms=_milliseconds(data.get("duration_s")),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            total_tokens=None if tokens_in is None or tokens_out is None else tokens_in + tokens_out,
            tokens_cached=count(usage.cached),
            tokens_written=count(usage.written),
            tokens_reasoning=count(usage.reasoning),
            cost=number(data.get("cost")),
            cost_grade=data.get("cost_grade", "unknown"),
            token_grade="reported" if usage.input is not None else str(call.grade),
            estimated_tokens=call.expected,
            semantic_actor=_ACTORS.get(purpose, "framework" if purpose else "main"),
            semantic_purpose=purpose or "turn",
        )
        self._answers[event.place] = row.message_id
        self._answer_ids.append(row.message_id)
        return [row, *self._blob(event, row.response_hash, "response", body)]

    def _tool_started(self, event: Event) -> list[Row]:
        """A call that the model wrote as text joins its answer's ``tool_calls_json`` when it has been read."""
        data = event.data
        call = {"tool": data.get("tool", ""), "arguments": data.get("arguments", ""), "id": data.get("call_id", "")}
        self._running[event.place, data.get("index")] = call
        metadata = {name: data.get(name) for name in ("index", "native", "side_effects")}
        answer = self._messages.get(self._answers.get(event.place, ""))
        row = self._row(
            event,
            "tool_call",
            node=("tool", data.get("index")),
            role="assistant",
            content_json=json_text(call["arguments"]),
            tool_calls_json=json_text([call]),
            parent_message_id=answer.message_id if answer else None,
            metadata_json=json_text(metadata),
            semantic_actor="main",
            semantic_purpose="tool_call",
        )
        if answer is None or data.get("native"):
            return [row]
        calls = [*json.loads(answer.tool_calls_json or "[]"), call]
        return [row, answer.changed(tool_calls_json=json_text(calls), row_version=event.seq)]

    def _tool_finished(self, event: Event) -> list[Row]:
        data, index = event.data, event.data.get("index")
        begun = self._running.pop((event.place, index), {})
        call = {"tool": data.get("tool", ""), "arguments": begun.get("arguments", ""), "id": data.get("call_id", "")}
        images = [dict(image) for image in data.get("images", ())]
        metadata = {name: data.get(name) for name in ("index", "tool", "is_error", "sandbox", "cached")}
        shared: dict[str, Any] = {
            "parent_message_id": self._answers.get(event.place),
            "duration_ms": _milliseconds(data.get("duration_s")),
            "tool_calls_json": json_text([call]),
        }
        result = shared | {"node": ("tool", index, "result")}
        if images:
            result |= {"images_json": json_text(images), "has_images": True}
        items = self._added(event)
        if not items:
            said: dict[str, Any] = {
                "role": "tool",
                "content_json": json_text(data.get("text", "")),
                "metadata_json": json_text(metadata),
            }
            said |= {"semantic_actor": "main", "semantic_purpose": "tool_result"}
            return [self._row(event, "tool_result", **result, **said)]
        shown = shared | {"node": ("tool", index, "images")}
        return [
            self._message_row(
                event, item, "tool_result", number, metadata, **(shown if item.kind is Kind.IMAGES else result)
            )
            for number, item in enumerate(items)
        ]

    def _check_finished(self, event: Event) -> list[Row]:
        data = event.data
        name, valid = str(data.get("name") or data.get("check", "")), bool(data.get("valid"))
        row = self._row(
            event,
            "ward" if "ward" in str(data.get("check", "")) else "validation",
            node=("check", data.get("index", event.seq)),
            content_json=json_text(data.get("reason", "")),
            metadata_json=json_text(dict(data)),
            semantic_actor="validator",
            semantic_purpose="validation",
        )
        verdict = "valid" if valid else "invalid"
        judged = self._eval(event, 0, name, data.get("score"), None, verdict, str(data.get("reason", "")))
        return [row, judged, *self._filtered(event)]

    def _filtered(self, event: Event) -> list[Row]:
        """The row of a candidate, with the verdict of the soundings' validator, which runs when all have ended."""
        place = event.place
        attempt = self._messages.get(self._attempts.get((place.branch, place.phase, place.visit), ""))
        if attempt is None or event.data.get("check") != "prefilter":
            return []
        verdict = {name: event.data.get(name) for name in ("valid", "reason", "score", "name")}
        metadata = json.loads(attempt.metadata_json) | {"validation": verdict}
        return [attempt.changed(metadata_json=json_text(metadata), row_version=event.seq)]

    def _human_answered(self, event: Event) -> list[Row]:
        row = self._row(
            event,
            "human_input",
            node=("human", event.data.get("index")),
            role="user",
            content_json=json_text(event.data.get("answer", "")),
            metadata_json=json_text(
                {key: event.data[key] for key in ("timed_out", "nobody", "refused") if key in event.data}
            ),
            semantic_actor="human",
            semantic_purpose="human_input",
        )
        return [row]

    def _audible(self, event: Event) -> list[Row]:
        row = self._row(
            event,
            "human_input",
            node=("audible", event.data.get("index")),
            role="user",
            content_json=json_text(event.data.get("text") or ""),
            metadata_json=json_text(dict(event.data)),
            semantic_actor="human",
            semantic_purpose="feedback",
        )
        return [row]

    def _hook(self, event: Event) -> list[Row]:
        row = self._row(
            event,
            "hook",
            node=("hook", event.data.get("type"), event.data.get("index"), event.data.get("number")),
            content_json=json_text(event.data.get("text", "")),
            metadata_json=json_text(dict(event.data)),
            semantic_actor="framework",
            semantic_purpose="hook",
        )
        return [row]

    def _blob_event(self, event: Event) -> list[Row]:
        data = event.data
        if data.get("kind") not in ("message", "tools") or "body" not in data:
            return []
        message = self.state.bodies.get(data["hash"]) if data["kind"] == "message" else None
        if message is not None and message.to_json() == data["body"]:
            return self._blob(event, data["hash"], "message", message.canonical())
        return self._blob(event, data["hash"], data["kind"], canonical(data["body"]))


@lru_cache(16)
def _cascade_bodies(text: str, file: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A cascade as JSON text, and each of its phases by name. Kept: most runs are of few cascades."""
    source, _ = read_source(text, file)
    written = source.data if source.data is not None else text
    phases = written.get("phases") if isinstance(written, dict) else None
    named = [phase for phase in phases if isinstance(phase, dict)] if isinstance(phases, list) else []
    bodies = tuple((name, json_text(phase)) for phase in named if isinstance(name := phase.get("name"), str))
    return json_text(written), bodies


def _node_type(event: Event, purpose: str) -> str:
    """A call of a turn is the agent's; a call beside the turns is named by its purpose."""
    if _ACTORS.get(purpose) == "evaluator":
        return "evaluator"
    return "agent" if event.place.turn or not purpose else purpose


def _milliseconds(seconds: object) -> float | None:
    known = number(seconds)
    return None if known is None else round(known * 1000, 3)


_MAKERS: dict[str, Callable[[RowMaker, Event], list[Row]]] = {
    "run_started": RowMaker._run_started,
    "run_resumed": RowMaker._run_resumed,
    "run_finished": RowMaker._run_finished,
    "phase_started": RowMaker._phase_started,
    "phase_finished": RowMaker._phase_finished,
    "context_assembled": RowMaker._context_assembled,
    "call_started": RowMaker._call_started,
    "call_failed": RowMaker._call_failed,
    "call_finished": RowMaker._call_finished,
    "tool_started": RowMaker._tool_started,
    "tool_finished": RowMaker._tool_finished,
    "check_finished": RowMaker._check_finished,
    "candidate_finished": RowMaker._candidate_finished,
    "evaluation_finished": RowMaker._evaluation_finished,
    "human_answered": RowMaker._human_answered,
    "audible": RowMaker._audible,
    "hook": RowMaker._hook,
    "blob": RowMaker._blob_event,
    "callout": RowMaker._callout,
    "cost_known": RowMaker._cost_known,
    "card": RowMaker._card,
    "embedded": RowMaker._embedded,
}
"""Kinds that make more than a row of ``events``."""
