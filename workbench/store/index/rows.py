"""Events to rows: a fold over one run's journal that gives, for each event, the rows it makes or makes anew.

Pure. Whatever stretch of a journal is applied twice, the newest version of each row is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from workbench.context.assembly import Item, Kind
from workbench.context.message import canonical, sha256
from workbench.context.place import Place
from workbench.engine.journal.annotations import Annotations
from workbench.engine.journal.candidate_rounds import FALLBACK, UNUSABLE, was_decided
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.language.read.text import read_source
from workbench.store.branches import STEP, Branches
from workbench.store.index.card_rows import CardRows
from workbench.store.index.context_rows import ContextParts, context_row, selection
from workbench.store.index.row_templates import JUDGE, PERSON, RowTemplates
from workbench.store.index.row_values import (
    VERSION_BITS,
    count,
    json_text,
    label_columns,
    number,
    small,
    sorted_json,
    time_of,
)
from workbench.store.index.tables import AnnotationRow, EvalRow, MessageRow, RunRow, TableRow

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


RULE = "rule"
"""The rater in ``all_evals`` if neither an evaluator nor a person judged: a rule of the file, or a fallback."""


class RowMaker:
    """Makes the rows of one run, and keeps every message row in its newest version. Facts that come after the rows they
    belong to (winners, callouts, prices) make those anew, with the sequence number of the late record as their version.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.state = RunState()
        self._branches = Branches()
        self._new = RowTemplates(run_id, self.state, self._branches)
        self._cards = CardRows(run_id, self.state, self._branches)
        self._told_late = False
        """The last event told something of its branch that earlier rows do not say."""
        self._messages: dict[str, MessageRow] = {}
        """By message id; kept because late facts make rows anew."""
        self._answers: dict[Place, str] = {}
        """Message ids of answers; of several at one place (a resumed run), the last."""
        self._running: dict[tuple[Place, object], dict[str, Any]] = {}
        """Tool calls without a result so far, by place and index."""
        self._attempts: dict[tuple[str, str, int], str] = {}
        """Message ids of the rows that end candidates, by branch, phase and visit."""
        self._turns: set[Place] = set()
        """Places whose turn has a row."""
        self._failed_check = ""
        self._strategy = ""
        self.annotated = 0
        """Bytes of annotations that were read: a later annotation gives a row a higher version."""
        self._shown: dict[tuple[str, str, int], set[tuple[Kind, str]]] = {}
        """Per visit: messages from outside it that have a row."""
        self._parts = ContextParts()
        self._begun = ""
        """Message id of the row that begins the run; annotations of the run stand there as well."""

    def apply(self, event: Event, written: str = "") -> list[TableRow]:
        """The rows of the next event; ``written`` is its data as JSON text, if at hand. Raises KeyError, TypeError or
        ValueError for an invalid journal.
        """
        if not self.state.apply(event):
            return [self._new.event(event, written).changed(kind=REPEATED)]
        self._told_late = self._branches.apply(event)
        maker = _MAKERS.get(event.kind)
        rows = [self._new.event(event, written), *(maker(self, event) if maker is not None else ())]
        for row in rows:
            if isinstance(row, MessageRow):
                self._messages[row.message_id] = row
                self._cards.told(row)
        return rows

    def run_row(self, *, left: bool = False) -> RunRow:
        """The run so far, as a row of its own; part of every batch. ``left``: it has no end, and no process writes
        it."""
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
            status="interrupted" if left else state.status,
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
            recorded_tokens_in=own.recorded_tokens_in,
            recorded_tokens_out=own.recorded_told_out,
            cost=own.cost,
            predicted_cost=own.spent.predicted,
            unknown_costs=own.spent.unbilled,
            spent=(own + inside).spent.total,
            recorded_cost=(own + inside).spent.recorded,
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

    def annotated_rows(self, annotations: Annotations, size: int) -> list[TableRow]:
        """The rows of annotations, and those of the calls and of the run that they are about, in a version above all
        before; ``size`` is how many bytes hold them."""
        self.state.annotations, self.annotated = annotations, size
        version = size << VERSION_BITS | self.state.seq
        rows: list[TableRow] = []
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

    def _run_started(self, event: Event) -> list[TableRow]:
        state, data = self.state, event.data
        self._strategy = str(state.options.get("strategy", ""))
        whole, phases = _cascade_bodies(state.cascade_text, state.cascade_file)
        rows = self._new.blob(event, state.cascade_sha256, "cascade", whole)
        for name, body in phases:
            self._new.phases[name] = sha256(body)
            rows += self._new.blob(event, self._new.phases[name], "phase", body)
        metadata = {name: data[name] for name in ("options", "ports", "parent", "version") if data.get(name)}
        started = self._new.message(event, "cascade_start", content=data.get("input"), metadata=metadata, role="user")
        self._begun = started.message_id
        return [*rows, started]

    def _run_resumed(self, event: Event) -> list[TableRow]:
        return [self._new.message(event, "cascade_resume", metadata={"ports": event.data.get("ports")})]

    def _run_finished(self, event: Event) -> list[TableRow]:
        data = event.data
        node_type = _ENDS.get(str(data.get("status")), "cascade_error")
        metadata = {name: data.get(name) for name in ("status", "reason", "state")}
        return [self._new.message(event, node_type, content=data.get("output", ""), metadata=metadata)]

    def _phase_started(self, event: Event) -> list[TableRow]:
        data = event.data
        return [self._new.message(event, "phase_start", metadata=data, model_requested=data.get("model", ""))]

    def _phase_finished(self, event: Event) -> list[TableRow]:
        data = event.data
        if data.get("check"):
            self._failed_check = str(data["check"])
        metadata = {name: value for name, value in data.items() if name != "output"}
        node_type = "phase_stop" if data.get("status") == "stopped" else "phase_complete"
        row = self._new.message(event, node_type, content=data.get("output", ""), metadata=metadata)
        return [row, *self._cards.of_visit(event)]

    def _context_assembled(self, event: Event) -> list[TableRow]:
        call = self.state.call_at(event.place)
        rows: list[TableRow] = []
        new = [entry for splice in event.data.get("splices", ()) for entry in splice["entries"]]
        sizes = {entry["m"]: entry["full"] for entry in new}
        for index, item in enumerate([*self._carried_in(event), *self._new.added(event)], 1):
            node_type = "context_injection" if item.kind is Kind.INJECTED else item.message.role
            tokens = sizes.get(item.message.body_hash)
            rows.append(self._new.item(event, item, node_type, index, estimated_tokens=tokens))
        rows += self._cards.anchors(event)
        if call is None:
            return rows
        head = {"model": call.model, "parameters": call.parameters, "tools": call.tools_hash}
        rows += self._new.blob(event, call.digest, "request", sorted_json(head))
        session = self._branches.of(event.place).session_id or self.run_id
        made = self._parts.of(call)
        rows += self._parts.new_rows(time_of(event.at))
        rows.append(context_row(event, call, session, made))
        rows.append(
            self._new.message(
                event,
                "context_selection",
                metadata=selection(call, made, self.state.visit_of(event.place)),
                request_hash=call.digest,
                context_parts=made.ids,
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

    def _call_started(self, event: Event) -> list[TableRow]:
        data, place = event.data, event.place
        if place.call > 1 or place in self._turns:  # Another try, or a call that a resume sent again.
            return []
        self._turns.add(place)
        return [self._new.message(event, "turn", metadata=data, model_requested=data.get("model", ""))]

    def _call_failed(self, event: Event) -> list[TableRow]:
        data = event.data
        metadata = {name: data.get(name) for name in ("try", "error", "retry_in", "purpose")}
        return [self._new.message(event, "call_error", metadata=metadata, request_hash=data.get("digest", ""))]

    def _call_finished(self, event: Event) -> list[TableRow]:
        items, call, data = self._new.added(event), self.state.call_at(event.place), event.data
        if not items or call is None:
            return []
        message, purpose = items[0].message, str(data.get("purpose", ""))
        response = {name: data.get(name) for name in ("provider_id", "model", "provider", "finish_reason", "usage")}
        body = sorted_json({**response, "message": message.to_json()})
        row = self._new.item(
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
            context_parts=self._parts.of(call).ids,
            response_hash=sha256(body),
            duration_ms=_milliseconds(data.get("duration_s")),
            **_taken(call),
            estimated_tokens=call.expected,
            semantic_actor=_ACTORS.get(purpose, "framework" if purpose else "main"),
            semantic_purpose=purpose or "turn",
        )
        self._answers[event.place] = row.message_id
        return [row, *self._new.blob(event, row.response_hash, "response", body)]

    def _tool_started(self, event: Event) -> list[TableRow]:
        """A call that the model wrote as text joins its answer's ``tool_calls_json`` when it has been read."""
        data = event.data
        call = {"tool": data.get("tool", ""), "arguments": data.get("arguments", ""), "id": data.get("call_id", "")}
        self._running[event.place, data.get("index")] = call
        answer = self._messages.get(self._answers.get(event.place, ""))
        row = self._new.message(
            event,
            "tool_call",
            node=("tool", data.get("index")),
            role="assistant",
            content=call["arguments"],
            metadata={name: data.get(name) for name in ("index", "native", "side_effects")},
            tool_calls_json=json_text([call]),
            parent_message_id=answer.message_id if answer else None,
            semantic_actor="main",
            semantic_purpose="tool_call",
        )
        if answer is None or data.get("native"):
            return [row]
        calls = [*json.loads(answer.tool_calls_json or "[]"), call]
        return [row, answer.changed(tool_calls_json=json_text(calls), row_version=event.seq)]

    def _tool_finished(self, event: Event) -> list[TableRow]:
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
        items = self._new.added(event)
        if not items:
            result |= {"role": "tool", "semantic_actor": "main", "semantic_purpose": "tool_result"}
            text = data.get("text", "")
            return [self._new.message(event, "tool_result", content=text, metadata=metadata, **result)]
        shown = shared | {"node": ("tool", index, "images")}
        return [
            self._new.item(
                event, item, "tool_result", number, metadata, **(shown if item.kind is Kind.IMAGES else result)
            )
            for number, item in enumerate(items)
        ]

    def _check_finished(self, event: Event) -> list[TableRow]:
        data = event.data
        name, valid = str(data.get("name") or data.get("check", "")), bool(data.get("valid"))
        row = self._new.message(
            event,
            "ward" if "ward" in str(data.get("check", "")) else "validation",
            node=("check", data.get("index", event.seq)),
            content=data.get("reason", ""),
            metadata=data,
            semantic_actor="validator",
            semantic_purpose="validation",
        )
        verdict = "valid" if valid else "invalid"
        judged = self._new.judgement(event, 0, name, data.get("score"), None, verdict, str(data.get("reason", "")))
        return [row, judged, *self._filtered(event)]

    def _filtered(self, event: Event) -> list[TableRow]:
        """The row of a candidate, with the verdict of the soundings' validator, which runs when all have ended."""
        place = event.place
        attempt = self._messages.get(self._attempts.get((place.branch, place.phase, place.visit), ""))
        if attempt is None or event.data.get("check") != "prefilter":
            return []
        verdict = {name: event.data.get(name) for name in ("valid", "reason", "score", "name")}
        metadata = json.loads(attempt.metadata_json) | {"validation": verdict}
        return [attempt.changed(metadata_json=json_text(metadata), row_version=event.seq)]

    def _evaluation_finished(self, event: Event) -> list[TableRow]:
        """Judgements of all that were compared; the rows of the candidates of this step learn whether they won."""
        data = event.data
        reason = str(data.get("reason", ""))
        row = self._new.message(
            event,
            "evaluator",
            content=reason,
            metadata=data,
            semantic_actor="evaluator",
            semantic_purpose="evaluation",
        )
        rows: list[TableRow] = [row]
        for index, judged in self._judgements(event):
            name = self._branches.candidates(event.place, index // STEP).get(index, event.place.branch)
            sounding = self._branches.of(event.place._replace(branch=name)).sounding_index
            rows.append(judged.changed(sounding_index=sounding, branch=name))
        if isinstance(winner := data.get("winner"), int) and was_decided(data):
            self._branches.decide(event.place, winner, _step_of(data))
            rows += self._now_decided(event)
        return rows

    def _now_decided(self, event: Event) -> list[TableRow]:
        """The rows of candidates of whom the event told that they won or lost."""
        visits = {_visit(row) for row in self._messages.values()}
        known = {visit: self._branches.of(Place(*visit)).is_winner for visit in visits}
        return [
            row.changed(is_winner=won, row_version=event.seq)
            for row in self._messages.values()
            if row.branch and row.semantic_actor != JUDGE and (won := known[_visit(row)]) is not row.is_winner
        ]

    def _judgements(self, event: Event) -> Iterator[tuple[int, EvalRow]]:
        """For each compared candidate: the evaluator's verdict, and the person's choice unless the file withholds it
        (``capture_for_training``); if there is neither, the rule that chose. ``verdict`` names what decided.
        """
        data = event.data
        scores, winner, decided = _scores(data.get("scores")), data.get("winner"), was_decided(data)
        assumed = {index for index in data.get("assumed_scores") or () if isinstance(index, int)}
        reason, by = str(data.get("reason", "")), str(data.get("decided_by", ""))
        compared = data.get("compared")
        indices = compared if isinstance(compared, list) else self._branches.candidates(event.place, _step_of(data))
        stood = sorted({*indices, *scores}) if isinstance(winner, int) else []
        person = by.startswith("a person")
        # Of a journal that names no pick of the evaluator's, it is the winner.
        pick = data.get("evaluator_pick", None if person else winner)
        said = str(data.get("evaluator_reason", "")) or reason
        if "decided" not in data and said.startswith(UNUSABLE):  # 0.1.0 named the first as the evaluator's pick.
            pick, by = None, by if decided else FALLBACK
        if pick is not None:
            why = str(data.get("evaluator_reason", "")) if person else reason
            for index in stood:
                score = None if index in assumed else scores.get(index)
                yield index, self._new.judgement(event, index, "evaluator", score, index == pick, by, why)
        if person and not data.get("untold"):
            rejected = data.get("rejected") or {}
            for index in data.get("offered") or stood:
                notes, score = str(rejected.get(str(index), reason)), scores.get(index) if pick is None else None
                preferred = index == winner if decided else None
                yield index, self._new.judgement(event, index, PERSON, score, preferred, by, notes)
        elif pick is None and not person:
            for index in stood:
                yield (
                    index,
                    self._new.judgement(event, index, RULE, None, index == winner if decided else None, by, reason),
                )

    def _candidate_finished(self, event: Event) -> list[TableRow]:
        data, branch = event.data, self._branches.of(event.place)
        node_type = "reforge_attempt" if branch.reforge_step else "sounding_attempt"
        metadata = {key: value for key, value in data.items() if key != "output"}
        row = self._new.message(event, node_type, content=data.get("output", ""), metadata=metadata)
        self._attempts[event.place.branch, event.place.phase, event.place.visit] = row.message_id
        rows: list[TableRow] = [row, *self._cards.of_visit(event)]
        if self._told_late:
            said = {
                "mutation_type": branch.mutation_type,
                "mutation_applied": branch.mutation_applied,
                "mutation_template": branch.mutation_template,
            }
            rows += self._anew(event, lambda row: self._branches.same(Place(*_visit(row)), event.place), **said)
        return rows

    def _callout(self, event: Event) -> list[TableRow]:
        data, said = event.data, event.data.get("body_hash")
        same = [
            row
            for row in self._messages.values()
            if said and row.body_hash == said and _visit(row) == event.place.visit_key
        ]
        # The same words may stand in several turns of a visit; of a journal that names no turn, all of them are meant.
        turn = (event.place.attempt, event.place.turn)
        meant = [row for row in same if (row.attempt_number or 0, row.turn_number or 0) == turn] or same
        called: dict[str, Any] = {"is_callout": True, "callout_name": str(data.get("name", ""))}
        rows = [row.changed(**called, row_version=event.seq) for row in meant]
        return [*rows, *self._cards.called_out(event)]

    def _cost_known(self, event: Event) -> list[TableRow]:
        """A late price or usage changes the row of the call that the state gave it to."""
        rows: list[TableRow] = []
        for place, message_id in self._answers.items():
            row, call = self._messages[message_id], self.state.call_at(place)
            now = _taken(call) if call is not None else {}
            if any(getattr(row, column) != value for column, value in now.items()):
                rows.append(row.changed(**now, row_version=event.seq))
        return rows

    def _anew(self, event: Event, which: Callable[[MessageRow], bool], **changed: Any) -> list[TableRow]:
        """New versions of rows; they keep their timestamp, since partitions are never merged."""
        return [row.changed(**changed, row_version=event.seq) for row in list(self._messages.values()) if which(row)]

    def _human_answered(self, event: Event) -> list[TableRow]:
        told = {key: event.data[key] for key in ("timed_out", "nobody", "refused") if key in event.data}
        row = self._new.message(
            event,
            "human_input",
            node=("human", event.data.get("index")),
            role="user",
            content=event.data.get("answer", ""),
            metadata=told,
            semantic_actor="human",
            semantic_purpose="human_input",
        )
        return [row]

    def _audible(self, event: Event) -> list[TableRow]:
        row = self._new.message(
            event,
            "human_input",
            node=("audible", event.data.get("index")),
            role="user",
            content=event.data.get("text") or "",
            metadata=event.data,
            semantic_actor="human",
            semantic_purpose="feedback",
        )
        return [row]

    def _hook(self, event: Event) -> list[TableRow]:
        row = self._new.message(
            event,
            "hook",
            node=("hook", event.data.get("type"), event.data.get("index"), event.data.get("number")),
            content=event.data.get("text", ""),
            metadata=event.data,
            semantic_purpose="hook",
        )
        return [row]

    def _blob_event(self, event: Event) -> list[TableRow]:
        data = event.data
        if data.get("kind") not in ("message", "tools") or "body" not in data:
            return []
        message = self.state.bodies.known(data["hash"]) if data["kind"] == "message" else None
        if message is not None and message.to_json() == data["body"]:
            return self._new.blob(event, data["hash"], "message", message.canonical())
        return self._new.blob(event, data["hash"], data["kind"], canonical(data["body"]))


@lru_cache(16)
def _cascade_bodies(text: str, file: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A cascade as JSON text, and each of its phases by name. Kept: most runs are of few cascades."""
    source, _ = read_source(text, file)
    written = source.data if source.data is not None else text
    phases = written.get("phases") if isinstance(written, dict) else None
    named = [phase for phase in phases if isinstance(phase, dict)] if isinstance(phases, list) else []
    bodies = tuple((name, json_text(phase)) for phase in named if isinstance(name := phase.get("name"), str))
    return json_text(written), bodies


def _taken(call: CallState) -> dict[str, Any]:
    """The columns of the tokens and the money that an answered call took, as known now. A recorded answer took nothing
    in this run."""
    usage, paid = call.usage, call.paid
    told_in, told_out = count(call.tokens_in), count(usage.output)
    counts = (told_in, told_out, usage.cached, usage.written, usage.reasoning)
    tokens_in, tokens_out, cached, written, reasoning = (0,) * len(counts) if call.recorded else map(count, counts)
    return {
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "total_tokens": None if tokens_in is None or tokens_out is None else tokens_in + tokens_out,
        "tokens_cached": cached,
        "tokens_written": written,
        "tokens_reasoning": reasoning,
        "recorded": call.recorded,
        "recorded_tokens_in": told_in if call.recorded else None,
        "recorded_tokens_out": told_out if call.recorded else None,
        "cost": paid.own,
        "spent": paid.spent,
        "recorded_cost": paid.before,
        "cost_grade": call.cost_grade,
        "token_grade": "reported" if usage.input is not None else str(call.grade),
    }


def _node_type(event: Event, purpose: str) -> str:
    """A call of a turn is the agent's; a call beside the turns is named by its purpose."""
    if _ACTORS.get(purpose) == "evaluator":
        return "evaluator"
    return "agent" if event.place.turn or not purpose else purpose


def _milliseconds(seconds: object) -> float | None:
    known = number(seconds)
    return None if known is None else round(known * 1000, 3)


def _step_of(data: Mapping[str, Any]) -> int:
    """The refinement step of an evaluation, from its kind: ``soundings``, ``aggregate`` or ``reforge 2``."""
    word, _, number = str(data.get("kind", "")).partition(" ")
    return int(number) if word == "reforge" and number.isdigit() else 0


def _visit(row: MessageRow) -> tuple[str, str, int]:
    return row.branch, row.phase_name, row.visit


def _scores(value: object) -> dict[int, float]:
    """Scores by candidate, from an object keyed by index or a list."""
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return {int(key): known for key, score in pairs if str(key).isdigit() and (known := number(score)) is not None}


_MAKERS: dict[str, Callable[[RowMaker, Event], list[TableRow]]] = {
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
    "card": lambda maker, event: maker._cards.made(event),
    "embedded": lambda maker, event: maker._cards.embedded(event),
}
"""Kinds that make more than a row of ``events``."""
