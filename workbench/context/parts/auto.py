"""Automatic context: anchors that always enter, and the messages of earlier phases that suit the task best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, cast, get_args

from workbench.context.assembly import Item, Kind, Reason, Rule
from workbench.context.flatten import flattened
from workbench.context.injection import Injection
from workbench.context.message import Message
from workbench.context.parts.part import Entered, Part, PhaseInFile, Role, require
from workbench.context.scope import PhaseScope, VisitRecord
from workbench.context.scoring import keywords, likeness, recency, words
from workbench.language.model import Cascade, Phase
from workbench.language.model_context import Anchors
from workbench.language.problem import Path, path_text

Selector = Literal["heuristic", "semantic"]
_SHARED: Path = ("auto_context", "inter_phase")
_FIELDS = (
    "max_tokens",
    "max_messages",
    "recency_weight",
    "keyword_weight",
    "callout_weight",
    "similarity_threshold",
)


@dataclass(frozen=True)
class Auto(Part):
    """Anchors, and what is selected beside them within a budget."""

    NAME: ClassVar[str] = "auto"
    ROLE: ClassVar[Role] = Role.ENTERS

    strategy: Selector = "heuristic"
    max_tokens: int = 30000
    """Tokens of what is selected."""
    max_messages: int = 50
    recency_weight: float = 0.3
    keyword_weight: float = 0.4
    callout_weight: float = 0.3
    similarity_threshold: float = 0.5
    """Least likeness, strategy semantic only."""

    def __post_init__(self) -> None:
        require(self, max_tokens=0, max_messages=0)

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """Where ``context.mode`` is auto: the phase's ``selection`` over that of ``auto_context.inter_phase``."""
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
        if (asked := _asked(file)) is not None:
            values["strategy"] = asked[0] if asked[0] in get_args(Selector) else "heuristic"
            paths["strategy"] = asked[1]
        if shared is not None and not shared.enabled:
            values["max_messages"], paths["max_messages"] = 0, (*_SHARED, "enabled")
        return cls(**cast(dict[str, float], values), written=paths)  # type: ignore[arg-type]

    def enter(self, scope: PhaseScope, count: Callable[[Message], int]) -> Entered:
        """The input, then the messages of earlier visits in their order; each that stays out has its score."""
        return _Selecting(self, scope, count).entered()


@dataclass
class _Candidate:
    """A message that may be selected."""

    visit: VisitRecord
    index: int
    message: Message
    called_out: bool
    score: float = 0.0


class _Selecting:
    def __init__(self, part: Auto, scope: PhaseScope, count: Callable[[Message], int]) -> None:
        self._part, self._scope, self._count = part, scope, count
        self._injection = Injection(scope)
        self._anchors, self._anchor_path = anchors_of(scope.cascade, scope.phase, scope.base)
        self._include = frozenset(self._anchors.include)
        self._kept: dict[int, dict[int, Reason]] = defaultdict(dict)
        """By the identity of a visit and the index of its message."""
        self._dropped: dict[int, dict[int, Reason]] = defaultdict(dict)
        self._notes: list[str] = []

    def entered(self) -> Entered:
        part, scope, rules = self._part, self._scope, self._scope.phase.context
        anchor_rule = scope.rule_at(self._anchor_path) if self._anchor_path else Rule()
        self._notes += _fallback(part, scope)
        if "input" in self._include and (rules is None or rules.include_input):
            self._injection.input(anchor_rule)
        excluded = {id(visit) for visit in self._injection.named(rules.exclude if rules else (), every=True)}
        seen = [visit for visit in self._injection.seen if id(visit) not in excluded]
        visits = self._listed(seen)
        outputs = self._injection.named(self._anchors.from_phases) if "output" in self._include else []
        shown = {id(visit) for visit in outputs} - excluded
        young = {id(visit) for visit in self._injection.seen[-1:]} if self._anchors.window else set()
        everything = [visit for visit in seen if id(visit) in {id(v) for v in visits} | shown | young]
        self._anchor(everything, shown, young)
        self._select(list(self._candidates(visits)))
        listed = {id(visit) for visit in visits}
        for visit in everything:
            kept, dropped = self._kept[id(visit)], self._dropped[id(visit)]
            if id(visit) not in listed:
                dropped = {index: Reason("not_listed") for index in range(len(visit.items))} | dropped
            self._injection.picked(visit, kept, dropped, anchor_rule, part.rule("strategy", scope))
            if id(visit) in shown:
                self._injection.output(visit, Reason("anchor", ("output",)), anchor_rule)
        found = self._injection.entered()
        return Entered(found.rows, (*self._notes, *found.notes))

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
        """Mark what always enters, and what the output of its visit says already. ``shown``: visits whose output
        enters; ``young``: the one whose last turns do."""
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

    def _candidates(self, visits: list[VisitRecord]) -> Iterator[_Candidate]:
        for visit in visits:
            for index, item in enumerate(visit.items):
                message = flattened(item)
                is_substantive = message.role != "system" and (message.text.strip() or message.images)
                if is_substantive and index not in self._kept[id(visit)] and index not in self._dropped[id(visit)]:
                    yield _Candidate(visit, index, message, item.message.body_hash in visit.callouts)

    def _select(self, candidates: list[_Candidate]) -> None:
        """Best first, newer first among equals, while they fit (language.md 2.6)."""
        part, semantic = self._part, self._part.strategy == "semantic"
        task = self._scope.task or self._scope.phase.instructions or ""
        vector, wanted = words(task), frozenset(words(task))
        for position, one in enumerate(candidates):
            if semantic:
                one.score = likeness(vector, words(one.message.text))
                continue
            overlap = len(wanted & keywords(one.message.text))
            one.score = 10 * part.keyword_weight * overlap
            one.score += 50 * part.recency_weight * recency(position, len(candidates))
            one.score += 100 * part.callout_weight * one.called_out
        left, taken = part.max_tokens, 0
        for _, one in sorted(enumerate(candidates), key=lambda pair: (-pair[1].score, -pair[0])):
            kept, dropped = self._kept[id(one.visit)], self._dropped[id(one.visit)]
            score, tokens = f"{one.score:.2f}" if semantic else f"{one.score:.1f}", self._count(one.message)
            if semantic and one.score < part.similarity_threshold:
                dropped[one.index] = Reason("unlike", (score,))
            elif taken >= part.max_messages:
                dropped[one.index] = Reason("not_among", (score, part.max_messages))
            elif tokens > left:
                dropped[one.index] = Reason("no_room", (score, part.max_tokens))
            else:
                kept[one.index] = Reason("alike" if semantic else "selected", (score,))
                left, taken = left - tokens, taken + 1
        name = "semantic, lexical vectors" if semantic else "heuristic"
        used = part.max_tokens - left
        self._notes.append(f"auto ({name}): {taken:,} of {len(candidates):,} messages selected, {used:,} tokens")


def _fallback(part: Auto, scope: PhaseScope) -> list[str]:
    """Where the file asks for a selector that is a model."""
    asked = _asked(PhaseInFile(scope.cascade, scope.phase, scope.base))
    is_other = "strategy" in part.written and asked is not None and asked[0] != part.strategy
    return [f"'{asked[0]}' is not run: the heuristic selects"] if asked is not None and is_other else []


def _is_output(item: Item, visit: VisitRecord) -> bool:
    return item.kind is Kind.ANSWER and item.message.text.strip() == visit.output.strip()


def _asked(file: PhaseInFile) -> tuple[str, Path] | None:
    """The selector that the file names first, by phase, cascade selection and ``inter_phase``; and where."""
    shared = file.cascade.auto_context.inter_phase if file.cascade.auto_context else None
    blocks = (
        (file.phase.context.selection if file.phase.context else None, (*file.base, "context", "selection")),
        (shared.selection if shared else None, (*_SHARED, "selection")),
        (shared, _SHARED),
    )
    for block, path in blocks:
        if block is not None and "strategy" in block.model_fields_set:
            return block.strategy, (*path, "strategy")
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
