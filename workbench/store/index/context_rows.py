"""One call's context as rows: what changed since the call before, and how much was selected."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter, is_
from typing import Any, NamedTuple

from workbench.context.assembly import Action, Entry, Kind
from workbench.context.message import sha256
from workbench.context.reasons import AUTOMATIC
from workbench.context.rope import Rope
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallState, VisitState
from workbench.store.index.row_values import count, small
from workbench.store.index.tables import ContextRow, PartRow

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


class _Sums(NamedTuple):
    """Of the first parts of a context, up to one of them."""

    entries: int = 0
    sent: int = 0
    reduced: int = 0
    ids: int = 0
    """Parts that were sent."""
    automatic: bool = False
    carried: bool = False

    def plus(self, part: _Part) -> _Sums:
        """The same with the next part."""
        return _Sums(
            self.entries + len(part.entries),
            self.sent + part.sent,
            self.reduced + part.reduced,
            self.ids + (part.id > 0),
            self.automatic or part.automatic,
            self.carried or part.carried,
        )


class CallParts(NamedTuple):
    """The parts of one call's context, in order."""

    entries: Sequence[Entry] = ()
    shared: tuple[tuple[Entry, ...], ...] = ()
    """The parts as the contexts of a run share them."""
    parts: Sequence[_Part] = ()
    sums: Sequence[_Sums] = (_Sums(),)
    """Before the first part and behind each of them."""
    ids: tuple[int, ...] = ()
    """Of those that were sent: a row of ``messages`` names them."""

    @property
    def total(self) -> _Sums:
        """Of all parts."""
        return self.sums[-1]


class ContextParts:
    """The parts that the contexts of a run are made of; each is looked at once, however many contexts share it."""

    def __init__(self) -> None:
        self._known: dict[int, _Part] = {}
        """By the identity of the tuple."""
        self._rows: set[int] = set()
        self._fresh: list[_Part] = []
        """Those for which no row was asked yet."""
        self._last = CallParts()

    def of(self, call: CallState) -> CallParts:
        """Those of one call. They begin as those of the call before: of the 160 that the contexts of 5,000 turns have
        on average, one or two are others. Asked twice in a row, as its context and its answer do, they are made once.
        """
        last = self._last
        if last.entries is call.entries:
            return last
        shared = Rope.of(call.entries).parts
        same = [*map(is_, shared, last.shared), False].index(False)
        parts, sums = list(last.parts[:same]), list(last.sums[: same + 1])
        for entries in shared[same:]:
            part = self._known.get(id(entries)) or self._part(entries)
            parts.append(part)
            sums.append(sums[-1].plus(part))
        ids = last.ids[: sums[same].ids] + tuple(part.id for part in parts[same:] if part.id)
        self._last = CallParts(call.entries, shared, parts, sums, ids)
        return self._last

    def new_rows(self, at: str) -> list[PartRow]:
        """Rows of the parts that were met since these were asked for last."""
        rows = []
        for part in self._fresh:
            if part.id and part.id not in self._rows:
                self._rows.add(part.id)
                sent = [entry.sent for entry in part.entries if entry.sent is not None]
                bodies, contents = tuple(m.body_hash for m in sent), tuple(m.content_hash for m in sent)
                rows.append(PartRow(id=part.id, bodies=bodies, contents=contents, added_at=at))
        self._fresh.clear()
        return rows

    def _part(self, entries: tuple[Entry, ...]) -> _Part:
        sent = [entry.sent.body_hash for entry in entries if entry.sent is not None]
        key = int(sha256(" ".join(sent))[:16], 16) if sent else 0
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
        self._fresh.append(part)
        return part


def context_row(event: Event, call: CallState, session_id: str, made: CallParts) -> ContextRow:
    """The delta of one assembly. Hashes are body hashes; a dropped message has no hash of a sent body."""
    place, forecast = event.place, call.forecast
    changed = list(_positions(event.data.get("splices", ())))
    inside = _prefix_end(call, made)
    return ContextRow(
        session_id=session_id,
        branch=place.branch,
        phase_name="" if place.is_whole else place.phase,
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


def selection(call: CallState, made: CallParts, visit: VisitState | None) -> Mapping[str, Any]:
    """The metadata of a ``context_selection`` row; sizes count messages.

    What a phase takes over from others is decided with the first call of its visit: that row is ``inter_phase``, and
    those of later calls, which decide about the visit's own messages, are ``intra_phase``. ``anchor_hashes`` are the
    messages that automatic context never drops; ``selected_hashes`` the others that were sent, empty where all
    messages were, and where they are more than ``SELECTED``: the row's ``context_hashes`` names them.
    """
    size, (_, sent, reduced, _, automatic, carried) = len(call.entries), made.total
    first = next((one for one in visit.calls if not one.beside), None) if visit is not None else None
    inter = first is call and carried
    anchors = [digest for part in made.parts for _, digest in part.always] if automatic else []
    chosen: list[str] = []
    if sent < size and sent <= SELECTED:
        kept = (entry for entry in call.entries if entry.sent is not None)
        chosen = [e.item.message.content_hash for e in kept if not (automatic and e.reason.code in _ALWAYS)]
    return {
        "selection_type": "inter_phase" if inter else "intra_phase",
        "strategy": call.strategy,
        "full_history_size": size,
        "context_size": sent,
        "masked_count": reduced,
        "dropped_count": size - sent,
        "anchor_hashes": anchors,
        "selected_hashes": chosen,
        "tokens_full": call.tokens_full,
        "tokens_sent": call.tokens_sent,
        "tokens_saved": call.tokens_full - call.tokens_sent,
        "tokens_masked": call.held_back,
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


def _prefix_end(call: CallState, made: CallParts) -> int:
    """Index of the first entry that lies outside the prefix the provider can reuse."""
    left = max(call.forecast.break_at, 0) if call.forecast else 0
    part = bisect_right(made.sums, left, key=_sent) - 1  # Parts that lie inside as a whole.
    index, left = made.sums[part].entries, left - made.sums[part].sent
    for entry in made.parts[part].entries if part < len(made.parts) else ():
        if entry.sent is not None:
            if left == 0:
                break
            left -= 1
        index += 1
    return index


_sent = attrgetter("sent")
