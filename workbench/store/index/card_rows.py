"""Rows of ``context_cards``: one for each message of a finished visit, made anew when more is known of it.

What needs no model is worked out from the journal, here as in the engine; so old and imported runs have cards too. A
``card`` or ``embedded`` event adds what a model made of a message.
"""

from __future__ import annotations

from typing import Any

from workbench.context.cards import card_of, has_card
from workbench.engine.journal.event import Event, unpacked
from workbench.engine.journal.parts import VisitState
from workbench.engine.journal.state import RunState
from workbench.store.branches import Branches
from workbench.store.index.row_values import count, time_of
from workbench.store.index.tables import CardRow, MessageRow, TableRow

OWN = "heuristic"
"""The author of a summary made without a model."""


class CardRows:
    """Makes cards, and keeps them in their newest version."""

    def __init__(self, run_id: str, state: RunState, branches: Branches) -> None:
        """``state`` and ``branches`` are the run as far as it was read; the caller keeps them up to date."""
        self._run_id = run_id
        self._state = state
        self._branches = branches
        self._cards: dict[tuple[str, str], CardRow] = {}
        """By session and content hash."""
        self._made_at: dict[str, str] = {}
        """When a message was made, by content hash."""

    def told(self, row: MessageRow) -> None:
        """Note when a message was made."""
        if row.content_hash:
            self._made_at.setdefault(row.content_hash, row.timestamp)

    def of_visit(self, event: Event) -> list[TableRow]:
        """The cards of the visit (or candidate) that an event ends."""
        visit = self._state.visit_of(event.place)
        if visit is None:
            return []
        tokens, names = _sizes(visit), _callouts(visit)
        rows: dict[tuple[str, str], CardRow] = {}
        for item in visit.items:
            if not has_card(item):
                continue
            made = card_of(item, tokens.get(item.message.body_hash, 0), names.get(item.message.body_hash, ""))
            known = self._cards.get((self._session(event), made.content_hash))
            if known is not None and (known.is_callout or not made.callout):
                continue  # The same words again: what a model made of them stays.
            row = CardRow(
                session_id=self._session(event),
                content_hash=made.content_hash,
                summary=made.summary,
                keywords=made.keywords,
                estimated_tokens=made.tokens,
                role=made.role,
                phase_name=made.phase,
                turn_number=made.turn or None,
                is_callout=bool(made.callout),
                callout_name=made.callout or None,
                generated_at=time_of(event.at),
                generator_model=OWN,
                message_timestamp=self._made_at.get(made.content_hash, time_of(event.at)),
            )
            rows[row.session_id, row.content_hash] = row
        self._cards |= rows
        return list(rows.values())

    def anchors(self, event: Event) -> list[TableRow]:
        """The cards of messages that a context holds as anchors, if they had none before."""
        rows: list[TableRow] = []
        for splice in event.data.get("splices", ()):
            for entry in splice["entries"]:
                if entry["reason"][0] != "anchor":
                    continue
                key = (self._session(event), self._state.bodies[entry["m"]].content_hash)
                known = self._cards.get(key)
                if known is not None and not known.is_anchor:
                    self._cards[key] = known.changed(is_anchor=True, generated_at=time_of(event.at))
                    rows.append(self._cards[key])
        return rows

    def called_out(self, event: Event) -> list[TableRow]:
        """The card of a message that is called out after the end of its candidate."""
        key = (self._session(event), str(event.data.get("content_hash", "")))
        if key not in self._cards:
            return []
        name = str(event.data.get("name", ""))
        self._cards[key] = self._cards[key].changed(is_callout=True, callout_name=name, generated_at=time_of(event.at))
        return [self._cards[key]]

    def made(self, event: Event) -> list[TableRow]:
        """A model's card of a message, merged with its existing card."""
        data = event.data
        said = {name: data[name] for name in CardRow.__struct_fields__ if name in data}
        digest = said.get("content_hash")
        if not isinstance(digest, str) or data.get("fault"):
            return []
        session = str(said.get("session_id") or self._session(event))
        known = self._cards.get((session, digest))
        said |= {"session_id": session, "generated_at": time_of(data.get("generated_at", event.at))}
        if "keywords" in said:
            said["keywords"] = tuple(map(str, said["keywords"]))
        if "embedding" in said:
            said["embedding"] = tuple(float(x) for x in said["embedding"])
        if "estimated_tokens" in said:
            said["estimated_tokens"] = count(said["estimated_tokens"]) or 0
        made = known.message_timestamp if known else self._made_at.get(digest, time_of(event.at))
        said["message_timestamp"] = time_of(data.get("message_timestamp", made))
        card = known.changed(**said) if known is not None else CardRow(**said)
        self._cards[session, digest] = card
        return [card]

    def embedded(self, event: Event) -> list[TableRow]:
        """The cards of messages that were embedded, with their vectors."""
        data, rows = event.data, list[TableRow]()
        for digest, vector in zip(data.get("of", ()), data.get("vectors", ()), strict=False):
            known = self._cards.get((self._session(event), digest))
            if known is not None:
                by, at = str(data.get("by", "")), time_of(event.at)
                card = known.changed(embedding=unpacked(vector), embedding_model=by, generated_at=at)
                self._cards[card.session_id, card.content_hash] = card
                rows.append(card)
        return rows

    def _session(self, event: Event) -> str:
        return self._branches.of(event.place).session_id or self._run_id


def _sizes(visit: VisitState) -> dict[str, int]:
    """Tokens of the visit's messages by body hash: as its last context counted them, which lists all that came before;
    the last answer's as reported."""
    inside = [call for call in visit.calls if not call.beside]
    sizes = {entry.item.message.body_hash: entry.tokens_full for call in inside[-1:] for entry in call.entries}
    for call in inside[-1:]:
        if call.answer is not None:
            sizes.setdefault(call.answer.body_hash, count(call.usage.output) or 0)
    return sizes


def _callouts(visit: VisitState) -> dict[str, str]:
    found: dict[str, Any] = {str(one.get("body_hash", "")): one.get("name") for one in visit.callouts}
    return {digest: str(name or "callout") for digest, name in found.items()}
