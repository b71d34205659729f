"""Facts that come after the rows they belong to: winners, callouts, prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.context.cards import card_of, has_card
from workbench.context.place import Place
from workbench.engine.journal.candidate_rounds import FALLBACK, UNUSABLE, was_decided
from workbench.engine.journal.event import Event, unpacked
from workbench.engine.journal.parts import VisitState
from workbench.store.branches import STEP
from workbench.store.index.row_base import JUDGE, PERSON, RowBase, count, json_text, number, time_of
from workbench.store.index.tables import CardRow, EvalRow, MessageRow, Row

# Rows of ``context_cards``: one for each message of a finished visit, made anew when more is known of it. What needs
# no model is worked out from the journal, here as in the engine; so old and imported runs have cards too. A ``card``
# or ``embedded`` event adds what a model made of a message.

OWN = "heuristic"
"""The author of a summary made without a model."""


class CardRows(RowBase):
    """Makes cards, and keeps them in their newest version."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self._cards: dict[tuple[str, str], CardRow] = {}
        """By session and content hash."""
        self._made_at: dict[str, str] = {}
        """When a message was made, by content hash."""

    def _keep(self, row: MessageRow) -> None:
        """Keep the newest version of a row, and when its message was made."""
        self._messages[row.message_id] = row
        if row.content_hash:
            self._made_at.setdefault(row.content_hash, row.timestamp)

    def _visit_cards(self, event: Event) -> list[Row]:
        """The cards of the visit (or candidate) that an event ends."""
        visit = self.state.visit_of(event.place)
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

    def _anchors(self, event: Event) -> list[Row]:
        """The cards of messages that a context holds as anchors, if they had none before."""
        rows: list[Row] = []
        for splice in event.data.get("splices", ()):
            for entry in splice["entries"]:
                if entry["reason"][0] != "anchor":
                    continue
                key = (self._session(event), self.state.bodies[entry["m"]].content_hash)
                known = self._cards.get(key)
                if known is not None and not known.is_anchor:
                    self._cards[key] = known.changed(is_anchor=True, generated_at=time_of(event.at))
                    rows.append(self._cards[key])
        return rows

    def _called_out(self, event: Event) -> list[Row]:
        """The card of a message that is called out after the end of its candidate."""
        key = (self._session(event), str(event.data.get("content_hash", "")))
        if key not in self._cards:
            return []
        name = str(event.data.get("name", ""))
        self._cards[key] = self._cards[key].changed(is_callout=True, callout_name=name, generated_at=time_of(event.at))
        return [self._cards[key]]

    def _card(self, event: Event) -> list[Row]:
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

    def _embedded(self, event: Event) -> list[Row]:
        """The cards of messages that were embedded, with their vectors."""
        data, rows = event.data, list[Row]()
        for digest, vector in zip(data.get("of", ()), data.get("vectors", ()), strict=False):
            known = self._cards.get((self._session(event), digest))
            if known is not None:
                by, at = str(data.get("by", "")), time_of(event.at)
                card = known.changed(embedding=unpacked(vector), embedding_model=by, generated_at=at)
                self._cards[card.session_id, card.content_hash] = card
                rows.append(card)
        return rows

    def _session(self, event: Event) -> str:
        return self._branches.of(event.place).session_id or self.run_id


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


RULE = "rule"
"""The rater in ``all_evals`` if neither an evaluator nor a person judged: a rule of the file, or a fallback."""


class LateRows(CardRows):
    """Makes rows anew, with the sequence number of the late record as their version."""

    def _evaluation_finished(self, event: Event) -> list[Row]:
        """Judgements of all that were compared; the rows of the candidates of this step learn whether they won."""
        data = event.data
        reason = str(data.get("reason", ""))
        row = self._row(
            event,
            "evaluator",
            content_json=json_text(reason),
            metadata_json=json_text(dict(data)),
            semantic_actor="evaluator",
            semantic_purpose="evaluation",
        )
        rows: list[Row] = [row]
        for index, judged in self._judgements(event):
            name = self._branches.candidates(event.place, index // STEP).get(index, event.place.branch)
            sounding = self._branches.of(event.place._replace(branch=name)).sounding_index
            rows.append(judged.changed(sounding_index=sounding, branch=name))
        if isinstance(winner := data.get("winner"), int) and was_decided(data):
            self._branches.decide(event.place, winner, _step_of(data))
            rows += self._now_decided(event)
        return rows

    def _now_decided(self, event: Event) -> list[Row]:
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
                yield index, self._eval(event, index, "evaluator", score, index == pick, by, why)
        if person and not data.get("untold"):
            rejected = data.get("rejected") or {}
            for index in data.get("offered") or stood:
                notes, score = str(rejected.get(str(index), reason)), scores.get(index) if pick is None else None
                preferred = index == winner if decided else None
                yield index, self._eval(event, index, PERSON, score, preferred, by, notes)
        elif pick is None and not person:
            for index in stood:
                yield index, self._eval(event, index, RULE, None, index == winner if decided else None, by, reason)

    def _candidate_finished(self, event: Event) -> list[Row]:
        data, branch = event.data, self._branches.of(event.place)
        node_type = "reforge_attempt" if branch.reforge_step else "sounding_attempt"
        metadata = json_text({key: value for key, value in data.items() if key != "output"})
        row = self._row(event, node_type, content_json=json_text(data.get("output", "")), metadata_json=metadata)
        self._attempts[event.place.branch, event.place.phase, event.place.visit] = row.message_id
        rows: list[Row] = [row, *self._visit_cards(event)]
        if self._told_late:
            said = {
                "mutation_type": branch.mutation_type,
                "mutation_applied": branch.mutation_applied,
                "mutation_template": branch.mutation_template,
            }
            rows += self._anew(event, lambda row: self._branches.same(Place(*_visit(row)), event.place), **said)
        return rows

    def _callout(self, event: Event) -> list[Row]:
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
        return [*rows, *self._called_out(event)]

    def _cost_known(self, event: Event) -> list[Row]:
        """A late price belongs to the first call of that request without a known cost."""
        data, usage = event.data, event.data.get("usage") or {}
        wanted = self._answers.get(event.place) or next(
            (row.message_id for row in self._paid() if row.request_hash == data.get("digest") and row.cost is None), ""
        )
        row = self._messages.get(wanted)
        if row is None:
            return []
        said: dict[str, Any] = {"cost": number(data.get("cost")), "cost_grade": data.get("cost_grade", "billed")}
        names = {"tokens_in": "input", "tokens_out": "output", "tokens_cached": "cached", "tokens_written": "written"}
        said |= {column: value for column, name in names.items() if (value := count(usage.get(name))) is not None}
        if "tokens_in" in said:
            said["token_grade"] = "reported"
        row = row.changed(**said, row_version=event.seq)
        known = row.tokens_in is not None and row.tokens_out is not None
        return [row.changed(total_tokens=(row.tokens_in or 0) + (row.tokens_out or 0) if known else None)]


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
