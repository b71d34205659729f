"""Automatic context: anchors that always enter, and the messages of earlier phases that suit the task best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self, cast

from msgspec import Struct

from workbench.context.assembly import Item, Kind, Reason, Rule
from workbench.context.cards import MOST_OFFERED, Choice, Menu, card_of, embedded_text, text_key
from workbench.context.injection import Injection, flattened
from workbench.context.message import Message
from workbench.context.part import EnteredMessages, Part, PhaseInFile, Role, require
from workbench.context.scope import PhaseScope, VisitRecord
from workbench.context.scoring import cosine, likeness, recency, relevance, words
from workbench.language.model.base import SELECTOR, Selector
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.context import Anchors
from workbench.language.problem import Path, path_text

if TYPE_CHECKING:
    from workbench.language.model.context import Anchors
    from workbench.language.problem import Path

# How automatic context chooses: what always enters, what is offered, and what is taken of it within the budget.

UNRECORDED = "no answer to this menu is recorded"


class Selectable(Struct):
    """A message that may be selected."""

    visit: VisitRecord
    index: int
    message: Message
    tokens: int
    score: float = 0.0
    """By keywords, recency and callouts."""
    likeness: float = 0.0
    """To the task, strategy ``semantic`` only."""

    @property
    def item(self) -> Item:
        return self.visit.items[self.index]

    @property
    def callout(self) -> str:
        """Its name; empty for a message that was not called out."""
        digest = self.item.message.body_hash
        return self.visit.callout_names.get(digest, "callout") if digest in self.visit.callouts else ""


class AutoSelection:
    """One selection: what enters a phase, or what a selector must be asked first."""

    def __init__(
        self,
        part: Auto,
        scope: PhaseScope,
        anchors: tuple[Anchors, Path],
        count: Callable[[Message], int],
    ) -> None:
        self._part, self._scope, self._count = part, scope, count
        self._injection = Injection(scope)
        self._anchors, self._anchor_path = anchors
        self._include = frozenset(self._anchors.include)
        self._kept: dict[int, dict[int, Reason]] = defaultdict(dict)
        """By the identity of a visit and the index of its message."""
        self._dropped: dict[int, dict[int, Reason]] = defaultdict(dict)
        self._notes: list[str] = []
        self._visits: list[VisitRecord] = []
        """The visits whose messages are candidates."""
        self._everything: list[VisitRecord] = []
        """These visits, and those whose anchors enter."""
        self._shown: set[int] = set()
        """Visits whose output enters."""

    # -- what comes out ----------------------------------------------------------------------------------------------

    def entered(self) -> EnteredMessages:
        """The input, then the messages of earlier visits in their order; each that stays out says why."""
        part, scope, rules = self._part, self._scope, self._scope.phase.context
        anchor_rule = scope.rule_at(self._anchor_path) if self._anchor_path else Rule()
        if "input" in self._include and (rules is None or rules.include_input):
            self._injection.input(anchor_rule)
        self._select(self._candidates)
        listed = {id(visit) for visit in self._visits}
        for visit in self._everything:
            kept, dropped = self._kept[id(visit)], self._dropped[id(visit)]
            if id(visit) not in listed:
                dropped = {index: Reason("not_listed") for index in range(len(visit.items))} | dropped
            self._injection.picked(visit, kept, dropped, anchor_rule, part.rule("strategy", scope))
            if id(visit) in self._shown:
                self._injection.output(visit, Reason("anchor", ("output",)), anchor_rule)
        found = self._injection.entered()
        return EnteredMessages(found.rows, (*self._notes, *found.notes))

    def menu(self, model: str) -> Menu | None:
        """The question to a selector; None if there is nothing to choose."""
        offered = self._offered
        if not offered or not self._part.max_messages or not self._part.max_tokens:
            return None
        cards = tuple(card_of(one.item, one.tokens, one.callout) for one in offered)
        scores = tuple(round(one.score, 3) for one in offered)
        return Menu(self._task, cards, scores, self._part.max_tokens, self._part.max_messages, model)

    def texts(self) -> tuple[str, list[tuple[str, str]]]:
        """Texts to embed: that of the task, and of each candidate with its content hash."""
        found = [(one.item.message.content_hash, embedded_text(one.message)) for one in self._candidates]
        return self._task, found

    # -- who takes part ----------------------------------------------------------------------------------------------

    @cached_property
    def _task(self) -> str:
        return self._scope.task or self._scope.phase.instructions or ""

    @cached_property
    def _candidates(self) -> list[Selectable]:
        """Returns the messages that may be selected, oldest first, scored; the anchors are marked before."""
        rules = self._scope.phase.context
        excluded = {id(visit) for visit in self._injection.named(rules.exclude if rules else (), every=True)}
        seen = [visit for visit in self._injection.seen if id(visit) not in excluded]
        self._visits = self._listed(seen)
        outputs = self._injection.named(self._anchors.from_phases) if "output" in self._include else []
        self._shown = {id(visit) for visit in outputs} - excluded
        young = {id(visit) for visit in self._injection.seen[-1:]} if self._anchors.window else set()
        wanted = {id(visit) for visit in self._visits} | self._shown | young
        self._everything = [visit for visit in seen if id(visit) in wanted]
        self._anchor(self._everything, self._shown, young)
        candidates = list(self._unanchored(self._visits))
        self._score(candidates)
        return candidates

    def _listed(self, seen: list[VisitRecord]) -> list[VisitRecord]:
        """The visits whose messages are candidates: those that ``from`` lists, or all."""
        rules = self._scope.phase.context
        if rules is None or not rules.from_:
            return seen
        base = (*self._scope.base, "context", "from")
        wanted = (
            source.phase
            for at, source in enumerate(rules.from_)
            if self._scope.conditions.get(path_text((*base, at)), True)
        )
        listed = {id(visit) for visit in self._injection.named(wanted)}
        return [visit for visit in seen if id(visit) in listed]

    def _anchor(self, visits: list[VisitRecord], shown: set[int], young: set[int]) -> None:
        """Mark the messages that always enter, and those that repeat the output of their visit. ``shown``: visits whose
        output enters; ``young``: the visit whose last turns enter.
        """
        for visit in visits:
            attempt = max((item.place.attempt for item in visit.items), default=0)
            turns = sorted({item.place.turn for item in visit.items if item.place.attempt == attempt})
            window = turns[-self._anchors.window :] if id(visit) in young else []
            kept, dropped = self._kept[id(visit)], self._dropped[id(visit)]
            for index, item in enumerate(visit.items):
                if item.place.attempt != attempt and item.kind is not Kind.TASK:
                    dropped[index] = Reason("earlier_attempt", (item.place.attempt,))
                elif id(visit) in shown and _is_output(item, visit):
                    dropped[index] = Reason("in_output", (visit.phase,))
                elif (why := self._why(visit, item, item.place.turn in window)) is not None:
                    kept[index] = Reason("anchor", (why,))

    def _why(self, visit: VisitRecord, item: Item, is_young: bool) -> str | None:
        if "callouts" in self._include and item.message.body_hash in visit.callouts:
            return "callout"
        if "errors" in self._include and item.is_error:
            return "error"
        return "window" if is_young else None

    def _unanchored(self, visits: list[VisitRecord]) -> Iterator[Selectable]:
        for visit in visits:
            for index, item in enumerate(visit.items):
                message = flattened(item)
                is_substantive = message.role != "system" and (message.text.strip() or message.images)
                if is_substantive and index not in self._kept[id(visit)] and index not in self._dropped[id(visit)]:
                    yield Selectable(visit, index, message, self._count(message))

    def _score(self, candidates: Sequence[Selectable]) -> None:
        """By shared keywords, recency and callouts: each from 0 to 1, times 100 and its weight (``SIGNALS``)."""
        part = self._part
        shared = relevance(self._task, [one.message.text for one in candidates])
        for position, one in enumerate(candidates):
            one.score = 100 * part.keyword_weight * shared[position]
            one.score += 100 * part.recency_weight * recency(position, len(candidates))
            one.score += 100 * part.callout_weight * bool(one.callout)

    @cached_property
    def _offered(self) -> list[Selectable]:
        """Returns the messages that a selector is offered, oldest first: all, or (``hybrid``) the best that fill twice
        the budget."""
        best = _best(self._candidates)
        if self._part.strategy == "hybrid":
            left, pool = 2 * self._part.max_tokens, []
            for one in best:
                if one.tokens <= left:
                    pool.append(one)
                    left -= one.tokens
            best = pool
        chosen = {id(one) for one in best[:MOST_OFFERED]}
        return [one for one in self._candidates if id(one) in chosen]

    # -- what is taken -----------------------------------------------------------------------------------------------

    def _select(self, candidates: list[Selectable]) -> None:
        strategy = self._part.strategy
        if strategy == "semantic":
            self._by_likeness(candidates)
        elif strategy in ("llm", "hybrid"):
            self._by_choice(candidates)
        else:
            self._by_score(candidates)

    def _by_score(self, candidates: Sequence[Selectable], name: str = "heuristic", code: str = "selected") -> None:
        """Best first, newer first among equals, while they fit."""
        self._take(_best(candidates), len(candidates), name, lambda one: Reason(code, (f"{one.score:.1f}",)))

    def _take(
        self, ranked: Sequence[Selectable], total: int, name: str, reason: Callable[[Selectable], Reason]
    ) -> None:
        part = self._part
        left, taken = part.max_tokens, 0
        for one in ranked:
            kept, dropped, why = self._kept[id(one.visit)], self._dropped[id(one.visit)], reason(one)
            score = why.args[0] if why.code != "chosen" else f"{one.score:.1f}"
            if taken >= part.max_messages:
                dropped[one.index] = Reason("not_among", (score, part.max_messages))
            elif one.tokens > left:
                dropped[one.index] = Reason("no_room", (score, part.max_tokens))
            else:
                kept[one.index] = why
                left, taken = left - one.tokens, taken + 1
        used = part.max_tokens - left
        self._notes.append(f"auto ({name}): {taken:,} of {total:,} messages selected, {used:,} tokens")

    # -- semantic ----------------------------------------------------------------------------------------------------

    def _by_likeness(self, candidates: list[Selectable]) -> None:
        """Candidates that are similar enough, the most similar first: by embeddings if every candidate has one, else by
        words.
        """
        vectors, part = self._vectors(candidates), self._part
        task, task_words = vectors.get(text_key(self._task), ()), words(self._task)
        for one in candidates:
            own = vectors.get(text_key(embedded_text(one.message)), ())
            one.likeness = cosine(task, own) if vectors else likeness(task_words, words(one.message.text))
        alike, unlike = ("similar", "dissimilar") if vectors else ("alike", "unlike")
        ranked = [one for _, one in sorted(enumerate(candidates), key=lambda pair: (-pair[1].likeness, -pair[0]))]
        near = [one for one in ranked if one.likeness >= part.similarity_threshold]
        for one in ranked[len(near) :]:
            self._dropped[id(one.visit)][one.index] = Reason(unlike, (f"{one.likeness:.2f}",))
        said = self._scope.vectors
        name = f"semantic, {said.model}" if vectors and said is not None else "semantic, lexical vectors"
        self._take(near, len(candidates), name, lambda one: Reason(alike, (f"{one.likeness:.2f}",)))

    def _vectors(self, candidates: Sequence[Selectable]) -> Mapping[str, Sequence[float]]:
        """Embeddings of the task and of every candidate; empty if one is missing."""
        known = self._scope.vectors
        if known is None:
            return {}
        texts = [self._task, *(embedded_text(one.message) for one in candidates)]
        wanted = [text_key(text) for text in texts if text.strip()]
        missing = [key for key in wanted if key not in known.by_text]
        if not missing:
            return known.by_text
        why = known.fault or f"{len(missing):,} of {len(wanted):,} texts have no embedding"
        self._notes.append(f"auto (semantic): {why}; likeness is lexical")
        return {}

    # -- a selector --------------------------------------------------------------------------------------------------

    def _by_choice(self, candidates: list[Selectable]) -> None:
        """Keeps the messages that the selector chose, as far as they fit; without a choice the heuristic decides, and
        says so."""
        strategy, menu = self._part.strategy, self.menu(self._part.selector(self._scope)[0])
        if menu is None:
            self._by_score(candidates, name=strategy)
            return
        choice = next((one for one in self._scope.choices if one.menu == menu.digest), Choice("", fault=UNRECORDED))
        if choice.fault:
            self._notes.append(f"auto ({strategy}): {choice.fault}; the heuristic selects instead")
            self._by_score(candidates, f"{strategy}, heuristic instead", "fell_back")
            return
        offered = self._offered
        picked = [offered[number - 1] for number in choice.picked if 0 < number <= len(offered)]
        chosen, on_menu = {id(one) for one in picked}, {id(one) for one in offered}
        for one in candidates:
            if id(one) not in chosen:
                why = Reason("not_chosen", (choice.by,)) if id(one) in on_menu else _off_menu(one)
                self._dropped[id(one.visit)][one.index] = why
        self._take(picked, len(candidates), f"{strategy}, {choice.by}", lambda one: Reason("chosen", (choice.by,)))
        if choice.reason:
            self._notes.append(f"{choice.by}: {' '.join(choice.reason.split())[:300]}")


def _best(candidates: Sequence[Selectable]) -> list[Selectable]:
    """By score; of equals the newer first."""
    return [one for _, one in sorted(enumerate(candidates), key=lambda pair: (-pair[1].score, -pair[0]))]


def _off_menu(one: Selectable) -> Reason:
    return Reason("off_menu", (f"{one.score:.1f}",))


def _is_output(item: Item, visit: VisitRecord) -> bool:
    return item.kind is Kind.ANSWER and item.message.text.strip() == visit.output.strip()


_SHARED: Path = ("auto_context", "inter_phase")
_FIELDS = (
    "max_tokens",
    "max_messages",
    "recency_weight",
    "keyword_weight",
    "callout_weight",
    "similarity_threshold",
)

SIGNALS: Mapping[str, str] = {
    "keyword_weight": "words of the task that the message holds, rare ones for more (BM25): 1 for the best message, "
    "0 for one without any",
    "recency_weight": "its position: 1 for the newest message, 0 for the oldest",
    "callout_weight": "1 for a message that was called out, else 0",
}
"""The signals of the heuristic, by the name of the weight: each from 0 to 1, times 100 and its weight; the sum is the
score."""


class Auto(Part, frozen=True):
    """Anchors, and further messages selected within a budget."""

    NAME: ClassVar[str] = "auto"
    ROLE: ClassVar[Role] = Role.ENTERS
    READS: ClassVar[str] = "context"

    strategy: Selector = "heuristic"
    """``llm`` and ``hybrid`` ask a model; in a what-if its recorded answer counts, else the heuristic."""
    max_tokens: int = 30000
    """Budget of the selected messages in tokens."""
    max_messages: int = 50
    recency_weight: float = 0.3
    keyword_weight: float = 0.4
    callout_weight: float = 0.3
    similarity_threshold: float = 0.5
    """Least likeness, strategy semantic only."""
    selector_model: str = ""
    """The model asked by the strategies ``llm`` and ``hybrid``; empty takes the one that the file names."""

    def __post_init__(self) -> None:
        require(self, max_tokens=0, max_messages=0)

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """Reads the part if ``context.mode`` is auto: the phase's ``selection`` over that of
        ``auto_context.inter_phase``.
        """
        rules = file.phase.context
        if rules is None or rules.mode != "auto":
            return None
        shared = file.cascade.auto_context.inter_phase if file.cascade.auto_context else None
        base = (*file.base, "context")
        blocks = [(rules.selection, (*base, "selection"))]
        if shared is not None:
            blocks += [(shared.selection, (*_SHARED, "selection"))]
        values: dict[str, object] = {}
        paths: dict[str, Path] = {"*": (*base, "mode")}
        for block, path in blocks:
            for name in _FIELDS:
                if block is not None and name in block.model_fields_set and name not in values:
                    values[name], paths[name] = getattr(block, name), (*path, name)
        if (asked := _first(file.cascade, file.phase, file.base, "strategy")) is not None:
            values["strategy"], paths["strategy"] = asked
        if shared is not None and not shared.enabled:
            values["max_messages"], paths["max_messages"] = 0, (*_SHARED, "enabled")
        return cls(**cast(dict[str, float], values), written=paths)  # type: ignore[arg-type]

    def enter(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        """The input, then the messages of earlier visits in their order; each that stays out says why."""
        return self.selecting(scope, count).entered()

    def selecting(self, scope: PhaseScope, count: Callable[[Message], int]) -> AutoSelection:
        """Prepares one selection: the question to a selector, and the texts to embed."""
        return AutoSelection(self, scope, anchors_of(scope.cascade, scope.phase, scope.base), count)

    def menu(self, scope: PhaseScope, count: Callable[[Message], int]) -> Menu | None:
        """The question to a selector; None if no model selects or there is nothing to choose."""
        if self.strategy not in ("llm", "hybrid"):
            return None
        return self.selecting(scope, count).menu(self.selector(scope)[0])

    def selector(self, scope: PhaseScope) -> tuple[str, Path]:
        """The model that selects, and the path that names it: phase, cascade selection, ``inter_phase``."""
        if self.selector_model:
            return self.selector_model, ()
        named = _first(scope.cascade, scope.phase, scope.base, "selector_model")
        return (str(named[0]), named[1]) if named is not None and named[0] else (SELECTOR, ())


def _first(cascade: Cascade, phase: Phase, base: Path, name: str) -> tuple[object, Path] | None:
    """The first value that the file writes, in the order phase, cascade selection, ``inter_phase``, with its path."""
    shared = cascade.auto_context.inter_phase if cascade.auto_context else None
    blocks = (
        (phase.context.selection if phase.context else None, (*base, "context", "selection")),
        (shared.selection if shared else None, (*_SHARED, "selection")),
        (shared, _SHARED),
    )
    for block, path in blocks:
        if block is not None and name in block.model_fields_set:
            return getattr(block, name), (*path, name)
    return None


def anchors_of(cascade: Cascade, phase: Phase, base: Path) -> tuple[Anchors, Path]:
    """The anchors in force, each field by the phase, else by ``auto_context``; and the path of the nearest block."""
    shared = cascade.auto_context.inter_phase if cascade.auto_context else None
    own = phase.context.anchors if phase.context is not None else None
    blocks = [
        (block, path)
        for block, path in (
            (shared.anchors if shared is not None else None, (*_SHARED, "anchors")),
            (own, (*base, "context", "anchors")),
        )
        if block is not None
    ]
    values = {name: getattr(block, name) for block, _ in blocks for name in block.model_fields_set}
    return Anchors.model_validate(values), blocks[-1][1] if blocks else ()
