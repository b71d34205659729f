"""One immutable line of the journal. A run is the list of these; no other state is stored."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from msgspec import Struct, field

from workbench.context.place import Place

KINDS: dict[str, str] = {
    "run_started": (
        "session_id, cascade_id, cascade_file, cascade_text, cascade_sha256, input, options, ports, parent, "
        "imported {format, file, sha256, kept, left_out, stated} (of a run that another tool made)"
    ),
    "run_resumed": "ports, branch and after (where it went on: behind this record of this branch), until (when the "
    "runs inside it last did anything before, where that is later)",
    "phase_started": (
        "kind, model, conditions (of context sources), max_turns, tools, node_type, strategy, wave (of a "
        "decomposition), edge (of a graph: the index of the one that led here)"
    ),
    "context_assembled": (
        "strategy, splices, request {model, parameters, tools (hash)}, digest, tokens_full, tokens_sent, tools_tokens, "
        "overhead_tokens, grade, scale (of a calibrated estimate), forecast {tokens, low, high, cached, fresh, "
        "written, cost, cost_low, cost_high, break_at, reason}, price {source, grade, input, output, cache_read, "
        "cache_write, cache_write_hour (US dollars per token)}, unstated (parts of the request whose size is unknown), "
        "beyond (that the request does not fit "
        "the model's window), problems, notes, added (items that joined the history), edited, purpose, "
        "beside (the walk), after (spliced against the context of this record, not the last of its branch), "
        "late (its call stands before those of its visit that are later by their place)"
    ),
    "context_selected": (
        "strategy (llm, hybrid), menu (digest), model, offered ([content hash, score, tokens] by number, from 1), "
        "picked (numbers, best first), reason, fault (why the heuristic selects instead)"
    ),
    "embedded": (
        "model, of (content hashes; empty for a task), keys (of the texts), by, vectors (base64 of 32-bit floats), "
        "tokens, cost, duration_s, recorded (a recording held them), fault {kind, message}"
    ),
    "call_started": "digest, model, try, purpose",
    "call_finished": (
        "digest, added, finish_reason, usage {input, output, cached, written, reasoning, written_hour}, cost, "
        "cost_grade, model, provider, provider_id, first_token_s, duration_s, wire, partial, remarks, purpose, "
        "recorded (a recording answered: usage and cost are those of then)"
    ),
    "call_failed": (
        "digest, try, error {kind, message, status, retry_after, body}, retry_in, wire, purpose; usage, cost where the "
        "provider reported tokens before the fault"
    ),
    "tool_started": "index, call_id, tool, arguments (JSON text), native, side_effects",
    "tool_finished": "index, call_id, tool, is_error, added, images, duration_s, sandbox, cached, text, "
    "arguments (of a call that a person did not let run: it has no tool_started), "
    "whole {digest, chars} (of a result that was cut), value (of a phase without a model), needs_trust, "
    "embedded {texts, by, tokens, cost, recorded}",
    "state_set": "key, value, by",
    "check_finished": "check, index, name, mode, valid, reason, score",
    "route_chosen": (
        "to, rule, candidates, edge (of a graph: the index of the one taken), verdicts [edge (from 0, among those out "
        "of the phase), to, label, weight, condition, holds, values, fault], code and reason (why nothing follows)"
    ),
    "candidates_started": (
        "factor, kind (soundings, cascade, reforge), step (of reforge), max_parallel, draws, plans [index, model, "
        "parameters, mutation_type, mutation_template]"
    ),
    "candidate_finished": (
        "index, kind, status, reason, output, model, cost, tokens, session_id (of a walk), mutation_type, "
        "mutation_template, mutation_applied"
    ),
    "evaluation_finished": (
        "kind, branch, winner, compared, scores, assumed, assumed_scores, reason, decided_by, "
        "decided (false where the winner was not chosen: an unusable answer, a drawn lot, a tie), "
        "evaluator_pick, evaluator_reason, qualities, costs, assumed_costs, frontier, dominated, drawn (all by index)"
    ),
    "human_asked": (
        "index, question, context, options, type, candidates (indices that the options stand for), mode (pick_one, "
        "rank_all, rate_each), judged (what an evaluator said of them before), form (sections and layout), made "
        "{level, why, by} (of the form), to (whom, where it was "
        "passed on), timeout (seconds)"
    ),
    "human_answered": (
        "index, answer (null: no answer in time, timed_out, or was there at all, nobody), refused (why it does not fit)"
    ),
    "audible": (
        "index, text (null: nothing came in time, timed_out), redo, tool (index of the call that it came before, of "
        "those that are not run then), left (of the phase's budget)"
    ),
    "hook": "type, name, number, index (of a tool call), action (continue, pause, inject), text, reason, error",
    "edited": (
        "stop, index (of a tool call), what (change, drop, add, move, state, model, answer, arguments, skip, result), "
        "before, after, edit (as it was asked for), own and at (messages: the visit's own, and where), tool"
    ),
    "paused": "stop (its kind; child where a run inside this one was paused), seconds (until this record)",
    "callout": "name, target, content_hash, body_hash",
    "tools_listed": (
        "server (of MCP), tools (hash), names (of the server, by those that a model sees), read_only, refused (why "
        "others are not offered), fault, needs_trust"
    ),
    "tools_chosen": "tools, offered (how many), reason (the Quartermaster's choice)",
    "warning": "code, message, path, file, line, column",
    "remembered": "bank (of memory), count (messages of this run that it was given), fault",
    "phase_finished": (
        "status, output, reason, check, turns, attempts, tokens_in, tokens_out, cost, outcome {status, outcome, "
        "preferred_label, suggested_next_ids, context_updates, notes, failure_reason, failure_class, stated_by} (of a "
        "node of a pipeline), seconds (of the visit that this one replays), ended (when its last call did, of a "
        "watched program)"
    ),
    "run_finished": "status, output, state, reason",
    "child_started": "run_id, session_id, kind, key, cascade_id, number and replaces {run_id, ended, took, unanswered} "
    "(of one that a resumed run started in the place of another, which had begun with another text or input)",
    "child_finished": "run_id, session_id, kind, key, number, status, output, outputs, state, reason, "
    "unanswered {tries, tokens_in, tokens_out, cost, again} (where there were any), "
    "took {calls, recorded, tools, tokens_in, grade_in, tokens_out, spent, runs, missing} (with the runs inside it; "
    "recorded answers are no part of calls, tokens and cost: recorded, recorded_tokens_in, recorded_grade_in, "
    "recorded_tokens_out and spent.recorded say theirs)",
    "blob": "hash, kind (message | tools | wire | image | text), body, size, media_type; "
    "images and texts lie in files so named",
    "card": "content_hash, summary, generator_model, fault (of a message that a model was to sum up)",
    "cost_known": "request digest, usage, cost that arrived later",
    "what_if": (
        "of an answered call: strategy (that nothing is sent by), tokens, cached, cost (of the input, predicted), "
        "sent_tokens (as its provider counted, else as predicted; tokens is on the same scale), sent_cost (of what was "
        "sent, by the same rules as cost), all_tokens, all_cost, all_sent_tokens, all_sent_cost (of all calls so "
        "far), invalid (the rule that such a request would break)"
    ),
    "exchange": (
        "provider, path, sha256 (of the request as JSON, without ids that are drawn anew), alike (the same without "
        "dates, durations and other values that programs draw at each start), status (of HTTP), "
        "content_type, body (of the reply, as text), by (provider, recording, offline, a person, workbench), "
        "first_byte_s, duration_s, fault (why it did not arrive whole): what a program that was watched got over the "
        "wire"
    ),
    "large_request": (
        "number (of the session's large requests), over (false when it comes, true when it is in the record or proved "
        "to be none to a model), code, message: what a kill would leave of a request that is read when it is answered"
    ),
}
"""Every kind of event, with the fields of its data. Readers keep unknown kinds and fields."""

LEFT = "not run"
"""``sandbox`` of the ``tool_finished`` of a call that a person did not let run, or that came too late to be run."""

TOO_LATE = "Not run: no more tool calls are possible."
"""The result of a native tool call of the closing answer: the next request would be refused without one."""

STOPPED_BY_USER = "stopped by the user"
"""The reason of a ``run_finished`` that a person asked for."""

APP_ENDED = "the app was ended"
"""The same where nobody asked for it: a signal, the end of the terminal or a fault ended the app."""


PAGE_CLOSED = "the browser page was closed"
"""The same where the page of ``serve`` that showed the app is gone."""

SERVER_ENDED = "the server was ended"
"""The same where ``serve`` itself was ended, and its apps with it."""


def stop_reason(cancelled: BaseException) -> str:
    """Returns why a run was stopped whose task was cancelled: the message of ``Task.cancel``, where that is one of the
    reasons; a library's own says nothing of a person."""
    return next((why for why in (APP_ENDED, PAGE_CLOSED, SERVER_ENDED) if cancelled.args == (why,)), STOPPED_BY_USER)


MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""The exceptions that reading a value raises that is not of the type that a run writes."""

STATUSES = ("success", "failed", "blocked", "stopped", "diverged")


class Event(Struct, frozen=True):
    """One event: its kind, place, time and data. ``seq`` counts without gaps from 1 in each run; it sets the order,
    time does not.
    """

    seq: int
    at: str
    """UTC, ISO 8601 with microseconds and ``Z``."""
    run_id: str
    kind: str
    place: Place = Place()
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record of the journal, without ``v`` and ``crc``, which the journal adds."""
        return {
            "run_id": self.run_id,
            "seq": self.seq,
            "at": self.at,
            "kind": self.kind,
            **self.place._asdict(),
            "data": dict(self.data),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Event:
        """Raises KeyError when a common field is missing."""
        return cls(body["seq"], body["at"], body["run_id"], body["kind"], Place(*_place_of(body)), body["data"])


_place_of = itemgetter(*Place._fields)


def timestamp(at: str) -> float:
    """An ``Event.at`` as seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def seconds_between(start: str, end: str) -> float | None:
    """Seconds from one ``Event.at`` to another; None if one of them is missing."""
    if not start or not end:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def seconds_told(start: str, end: str) -> float | None:
    """The same as a duration: 0 where the clock was set back meanwhile."""
    passed = seconds_between(start, end)
    return None if passed is None else max(passed, 0.0)


def packed(vector: Sequence[float]) -> str:
    """A vector as the journal keeps it: 32-bit floats, base64."""
    return base64.b64encode(array("f", vector).tobytes()).decode()


def unpacked(text: str) -> tuple[float, ...]:
    """The inverse of ``packed``. Raises ValueError for an invalid text."""
    numbers = array("f")
    numbers.frombytes(base64.b64decode(text, validate=True))
    return tuple(numbers)
