"""One call's context as rows: what changed since the call before, and how much was selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.context.assembly import Action
from workbench.engine.event import Event
from workbench.engine.state import CallState
from workbench.store.row_values import count, small
from workbench.store.tables import ContextRow

_REDUCED = (Action.MASKED, Action.TRUNCATED, Action.SUMMARIZED)


def context_row(event: Event, call: CallState, session_id: str) -> ContextRow:
    """The delta of one assembly. Hashes are body hashes; a dropped message has none for what was sent."""
    place, forecast = event.place, call.forecast
    changed = list(_positions(event.data.get("splices", ())))
    inside = _prefix_end(call)
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


def selection(call: CallState) -> Mapping[str, Any]:
    """The metadata of a ``context_selection`` row; sizes count messages.

    ``selected_hashes`` is empty where all messages were sent: the answer's ``context_hashes`` names them.
    """
    sent = [entry for entry in call.entries if entry.sent is not None]
    return {
        "selection_type": "intra_phase",
        "strategy": call.strategy,
        "full_history_size": len(call.entries),
        "context_size": len(sent),
        "masked_count": sum(1 for entry in sent if entry.action in _REDUCED),
        "dropped_count": len(call.entries) - len(sent),
        "anchor_hashes": [],
        "selected_hashes": [entry.item.message.content_hash for entry in sent] if len(sent) < len(call.entries) else [],
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


def _prefix_end(call: CallState) -> int:
    """Index of the first entry that lies outside the prefix the provider can reuse."""
    left = call.forecast.break_at if call.forecast else 0
    for index, entry in enumerate(call.entries):
        if entry.sent is not None:
            if left == 0:
                return index
            left -= 1
    return len(call.entries)
