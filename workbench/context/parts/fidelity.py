"""How much of the run a phase sees: its thread's conversation, or one generated message about what came before."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Action, Item, Kind, MessagePart, Reason
from workbench.context.injection import Injection
from workbench.context.message import Message
from workbench.context.part import EnteredMessages, MessageDecision, Part, PhaseInFile, Role, require
from workbench.context.place import Place
from workbench.context.scope import Arrival, PhaseScope, StateWrite, VisitRecord
from workbench.language.model.base import FIDELITIES
from workbench.language.model.base import Fidelity as Mode
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.flow import Handoff
from workbench.language.problem import Path

# Which level of the file decides how much a phase sees, and which conversation it goes on with.


class Level(Struct, frozen=True):
    """A value that one level of the file gives."""

    name: str
    """handoff, edge, phase, default_fidelity, default_thread, subgraph, default, or ``phase before``."""
    value: str
    path: Path = ()
    """The path that sets it; empty if nothing does."""


def modes(cascade: Cascade, phase: Phase, base: Path, arrival: Arrival) -> tuple[Level, ...]:
    """Returns the fidelity that each level states, the deciding level first: the handoff or edge just travelled, the
    phase, the file; in a pipeline last of all ``compact``.

    Empty if no level says anything: then the rules of ``context`` apply.
    """
    pipeline, found = arrival.pipeline, list[Level]()
    if pipeline is not None:
        node, edge = pipeline.node(phase.name), arrival.travelled
        if edge is not None and edge.fidelity:
            found.append(Level("edge", edge.fidelity, ("edges", arrival.edge or 0, "fidelity")))
        if node is not None and node.fidelity:
            found.append(Level("phase", node.fidelity, (*base, "fidelity")))
        if pipeline.rules.default_fidelity:
            found.append(Level("default_fidelity", pipeline.rules.default_fidelity, ("graph", "default_fidelity")))
        return (*found, Level("default", "compact"))
    handoff = _handoff(cascade, phase, arrival.came_from)
    if handoff is not None and handoff[0].fidelity is not None:
        found.append(Level("handoff", handoff[0].fidelity, (*handoff[1], "fidelity")))
    if phase.fidelity is not None:
        found.append(Level("phase", phase.fidelity, (*base, "fidelity")))
    if cascade.default_fidelity is not None:
        found.append(Level("default_fidelity", cascade.default_fidelity, ("default_fidelity",)))
    return tuple(found)


def threads(cascade: Cascade, phase: Phase, base: Path, arrival: Arrival) -> tuple[Level, ...]:
    """Returns the thread that each level states, the deciding level first: the phase, the handoff or edge just
    travelled, in a pipeline the graph's default and the subgraph around the node, and the phase before.

    Phase and handoff stand in the opposite order to the fidelity. Empty for a first phase that names no thread.
    """
    pipeline, found = arrival.pipeline, list[Level]()
    if pipeline is not None:
        node, edge = pipeline.node(phase.name), arrival.travelled
        if node is not None and node.thread_id:
            found.append(Level("phase", node.thread_id, (*base, "thread_id")))
        if edge is not None and edge.thread_id:
            found.append(Level("edge", edge.thread_id, ("edges", arrival.edge or 0, "thread_id")))
        if pipeline.rules.default_thread:
            found.append(Level("default_thread", pipeline.rules.default_thread, ("graph", "default_thread")))
        if node is not None and node.group:
            found.append(Level("subgraph", node.group))
    else:
        if phase.thread_id is not None:
            found.append(Level("phase", phase.thread_id, (*base, "thread_id")))
        handoff = _handoff(cascade, phase, arrival.came_from)
        if handoff is not None and handoff[0].thread_id is not None:
            found.append(Level("handoff", handoff[0].thread_id, (*handoff[1], "thread_id")))
    if arrival.previous:
        found.append(Level("phase before", arrival.previous))
    return tuple(found)


def _handoff(cascade: Cascade, phase: Phase, came_from: str) -> tuple[Handoff, Path] | None:
    """The handoff that leads from one phase to another, and its path; None for the next phase in the list and for a
    jump.
    """
    for index, one in enumerate(cascade.phases):
        if one.name == came_from:
            for at, handoff in enumerate(one.handoffs):
                if handoff.target == phase.name:
                    return handoff, ("phases", index, "handoffs", at)
            return None
    return None


# The message that tells a phase about the run before it, in fixed forms, within a budget.

Section = Literal["stage", "value", "retry"]

EXCERPT = 200
"""Characters of a stage's notes in summary:medium."""
_VALUE_LIMIT = {"compact": 200, "summary:medium": 500}
"""Characters of a value; types not named here are shown whole."""
_HIDDEN = frozenset({"outcome", "current_node", "last_stage", "preferred_label"})
_OUTCOMES = {"failed": "fail"}
"""Names of outcomes that differ from the name of the visit's status."""


class PreamblePiece(Struct, frozen=True):
    """A piece that can be left out: a stage, a state value, a line about retries."""

    section: Section
    name: str
    text: str
    order: tuple[int, int]
    """Position in the journal; a piece with a smaller one is older."""
    value: Any = None
    limit: int = 0
    """Characters to which it was cut; 0 if it is whole."""

    @property
    def source(self) -> str:
        """As an entry names it: ``fix#2.stage``, ``state.score``, ``fix.retries``."""
        suffix = {"stage": "stage", "retry": "retries"}
        return f"state.{self.name}" if self.section == "value" else f"{self.name}.{suffix[self.section]}"


class PreambleHead(Struct, frozen=True):
    """The lines of a preamble before its pieces."""

    pipeline: str
    goal: str
    stage: str
    number: int
    """How many phases were entered, this one included."""
    total: int
    run_id: str
    outcome: str
    """Outcome of the last stage; empty if there was none."""


class FittedPreamble(Struct, frozen=True):
    """A preamble within its budget."""

    text: str
    """The text; empty if not even its first characters fit."""
    whole: str
    """The text before its fixed lines were cut."""
    kept: tuple[PreamblePiece, ...] = ()
    """Oldest first."""


class Pieces:
    """The pieces of a preamble, newest first, made as far as it is looked at: of a long run only the end fits."""

    def __init__(self, sizes: Mapping[Section, int], newest: Iterator[PreamblePiece]) -> None:
        """``sizes``: how many there are of each section."""
        self._sizes = sizes
        self._newest = newest
        self._made: list[PreamblePiece] = []

    def __len__(self) -> int:
        return sum(self._sizes.values())

    def newest(self, number: int) -> list[PreamblePiece]:
        """As many of the newest, oldest first; all if there are not so many."""
        self._made += islice(self._newest, max(0, number - len(self._made)))
        return self._made[:number][::-1]

    def left_out(self, kept: Iterable[PreamblePiece]) -> Mapping[Section, int]:
        """Returns how many of each section are not among those that are kept."""
        sizes = dict(self._sizes)
        for piece in kept:
            sizes[piece.section] -= 1
        return sizes


COUNTED = frozenset({"llm", "tool", "human", "subgraph", "synthesis"})
"""The kinds of node that a preamble numbers."""


def head_of(scope: PhaseScope) -> PreambleHead:
    """The fixed part of the preamble of a visit. The goal of a cascade is its description."""
    cascade, visits, graph = scope.cascade, scope.visits, scope.graph
    names, goal = {phase.name for phase in cascade.phases}, cascade.description or ""
    if graph is not None and graph.format != "cascade":
        names = {node.id for node in graph.nodes if node.kind in COUNTED}
        goal = graph.rules.goal or goal
    entered = ({visit.phase for visit in visits} | {scope.phase.name}) & names
    return PreambleHead(
        graph.id if graph is not None and graph.format == "dot" else cascade.cascade_id,
        " ".join(goal.split()),
        scope.phase.name if scope.place.visit <= 1 else f"{scope.phase.name}#{scope.place.visit}",
        len(entered),
        len(names),
        scope.run_id,
        _outcome(visits[-1]) if visits else "",
    )


def pieces_of(scope: PhaseScope, mode: str) -> Pieces:
    """Returns the pieces that a preamble of this mode consists of."""
    if mode == "truncate":
        return Pieces({}, iter(()))
    visits = sorted(scope.visits, key=lambda visit: visit.seq, reverse=True)
    writes = sorted(_latest(scope.writes), key=lambda write: write.seq, reverse=True) if mode != "summary:low" else []
    retried = sum(visit.attempts > 1 for visit in visits) if mode == "summary:high" else 0

    def of_visits() -> Iterator[PreamblePiece]:
        for visit in visits:
            if retried and visit.attempts > 1:
                yield PreamblePiece("retry", visit.label, _retries(scope, visit), (visit.seq, 2))
            yield _stage_piece(scope, visit, mode)

    of_values = (_value(write, mode) for write in writes)
    newest = heapq.merge(of_visits(), of_values, key=lambda piece: piece.order, reverse=True)
    return Pieces({"stage": len(visits), "value": len(writes), "retry": retried}, newest)


_FEW = 64
"""Pieces that are tried at once; more than the tokens of three notices of what is left out."""


def fitted(head: PreambleHead, mode: str, pieces: Pieces, budget: int, count: Callable[[str], int]) -> FittedPreamble:
    """The preamble in at most ``budget`` tokens: pieces go oldest first, then the goal is cut, then the text."""

    def text(kept: int, goal: str = head.goal) -> str:
        return render(replace(head, goal=goal), mode, pieces, pieces.newest(kept))

    def fits(candidate: str) -> bool:
        return count(candidate) <= budget

    every = len(pieces)
    # From few pieces upwards: what fits is mostly a small part of a long run.
    most = min(_FEW, every)
    while most < every and fits(text(most)):
        most = min(2 * most, every)
    # All pieces may fit where a few less and the words for what is left out do not. A piece takes a token at least.
    if every - most <= _FEW and fits(text(every)):
        return FittedPreamble(text(every), text(every), tuple(pieces.newest(every)))
    fixed = render(head, mode, Pieces({}, iter(())), ())
    if every and fits(fixed):
        kept = _most(most, lambda kept: fits(text(kept)))
        if fits(text(kept)):
            return FittedPreamble(text(kept), text(kept), tuple(pieces.newest(kept)))
    bare = text(0)
    length = _most(len(head.goal), lambda length: fits(text(0, cut(head.goal, length))))
    short = text(0, cut(head.goal, length))
    if not fits(short):
        short = short[: _most(len(short), lambda length: fits(short[:length]))].rstrip()
        short = short if short and fits(short) else ""
    return FittedPreamble(short, bare)


def _most(high: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to ``high`` that fits and whose successor does not; 0 if none is found."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def cut(text: str, length: int) -> str:
    """At most ``length`` characters; if some are missing, the last one is an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…" if length > 0 else ""


# -- the forms -------------------------------------------------------------------------------------------------------


def render(head: PreambleHead, mode: str, pieces: Pieces, kept: Sequence[PreamblePiece]) -> str:
    """The text of a preamble with only some of its pieces, oldest first."""
    sections: dict[Section, list[PreamblePiece]] = {"stage": [], "value": [], "retry": []}
    for piece in kept:
        sections[piece.section].append(piece)
    gone: dict[Section, int] = {"stage": 0, "value": 0, "retry": 0, **pieces.left_out(kept)}
    return "\n".join(_FORMS[mode](head, sections, gone))


_Kept = Mapping[Section, Sequence[PreamblePiece]]
_Gone = Mapping[Section, int]


def _truncate(head: PreambleHead, *_: object) -> Iterator[str]:
    yield f"Pipeline: {head.pipeline}"
    yield from _goal(head)
    yield f"Run ID: {head.run_id}"
    yield f"Current stage: {head.stage}"


def _compact(head: PreambleHead, kept: _Kept, gone: _Gone) -> Iterator[str]:
    yield from ("## Pipeline State", "", f"- Pipeline: {head.pipeline}")
    yield from _goal(head, "- ")
    if stages := _lines("stage", kept, gone):
        yield f"- Completed stages: {', '.join(stages)}"
    yield f"- Current stage: {head.stage}"
    if values := _lines("value", kept, gone):
        yield "- Key context values:"
        yield from (f"  - {value}" for value in values)


def _low(head: PreambleHead, kept: _Kept, gone: _Gone) -> Iterator[str]:
    goal = f" Goal: {head.goal.rstrip('.')}." if head.goal else ""
    yield f'Pipeline "{head.pipeline}" stage {head.number} of {head.total}.{goal}'
    if stages := _lines("stage", kept, gone):
        yield f"Completed: {', '.join(stages)}. Last outcome: {head.outcome}."


def _medium(head: PreambleHead, kept: _Kept, gone: _Gone) -> Iterator[str]:
    yield from ("## Pipeline Progress", "", *_position(head))
    yield from _section("### Recent Activity", "stage", kept, gone)
    yield from _section("### Active Context", "value", kept, gone)


def _high(head: PreambleHead, kept: _Kept, gone: _Gone) -> Iterator[str]:
    yield from ("## Pipeline State (Comprehensive)", "", *_position(head))
    yield from _section("### Execution History", "stage", kept, gone)
    if kept["value"] or gone["value"]:
        yield from ("", "### Full Context", *_notice(gone["value"]))
        if kept["value"]:
            yield json.dumps({piece.name: piece.value for piece in kept["value"]}, indent=2, ensure_ascii=False)
    yield from _section("### Retry Information", "retry", kept, gone)


_FORMS: dict[str, Callable[[PreambleHead, _Kept, _Gone], Iterator[str]]] = {
    "truncate": _truncate,
    "compact": _compact,
    "summary:low": _low,
    "summary:medium": _medium,
    "summary:high": _high,
}


def _goal(head: PreambleHead, mark: str = "") -> Iterator[str]:
    if head.goal:
        yield f"{mark}Goal: {head.goal}"


def _position(head: PreambleHead) -> Iterator[str]:
    yield f"Pipeline: {head.pipeline}"
    yield from _goal(head)
    yield f"Stage: {head.stage} ({head.number}/{head.total})"


def _section(title: str, section: Section, kept: _Kept, gone: _Gone) -> Iterator[str]:
    if kept[section] or gone[section]:
        yield from ("", title, *_notice(gone[section], "- "), *(f"- {piece.text}" for piece in kept[section]))


def _lines(section: Section, kept: _Kept, gone: _Gone) -> list[str]:
    return [*_notice(gone[section]), *(piece.text for piece in kept[section])]


def _notice(left_out: int, mark: str = "") -> Iterator[str]:
    if left_out:
        yield f"{mark}({left_out:,} earlier {'item' if left_out == 1 else 'items'} left out)"


# -- the pieces ------------------------------------------------------------------------------------------------------


def _outcome(visit: VisitRecord) -> str:
    if stated := str(visit.outcome.get("status", "")):
        return stated
    return _OUTCOMES.get(visit.status, visit.status)


def _notes(visit: VisitRecord) -> str:
    """Returns the notes of a visit, else its output, else the reason of its failure."""
    notes, fault = (str(visit.outcome.get(name) or "") for name in ("notes", "failure_reason"))
    return (notes or visit.output or fault or visit.reason).strip()


def _stage_piece(scope: PhaseScope, visit: VisitRecord, mode: str) -> PreamblePiece:
    is_cut = mode == "summary:medium" and len(" ".join(_notes(visit).split())) > EXCERPT
    text, limit = _stage(scope, visit, mode), EXCERPT if is_cut else 0
    return PreamblePiece("stage", visit.label, text, (visit.seq, 1), limit=limit)


def _stage(scope: PhaseScope, visit: VisitRecord, mode: str) -> str:
    outcome, notes = _outcome(visit), _notes(visit)
    if mode == "compact":
        return f"{visit.label} ({outcome})"
    if mode == "summary:low":
        return visit.label
    if mode == "summary:medium":
        notes = cut(" ".join(notes.split()), EXCERPT)
    lines = [f"{visit.label}: {outcome}" + (f" — {notes}" if notes else "")]
    if mode == "summary:high":
        if tools := _tools(scope, visit):
            lines.append(f"  Tools used: {', '.join(tools)}")
        if visit.seconds is not None:
            lines.append(f"  Duration: {visit.seconds:.1f} s")
    return "\n".join(lines)


def _tools(scope: PhaseScope, visit: VisitRecord) -> list[str]:
    """Names of the tools that gave results, in the order of their first."""
    phase = scope.cascade.phase(visit.phase)
    if phase is not None and phase.tool:
        return [phase.tool]
    return list(dict.fromkeys(item.tool for item in visit.items if item.kind is Kind.RESULT and item.tool))


def _latest(writes: Iterable[StateWrite]) -> list[StateWrite]:
    """The last write of each key that a model may see, in the order of these writes."""
    latest: dict[str, StateWrite] = {}
    for write in writes:
        if write.key not in _HIDDEN and not write.key.startswith(("internal.", "graph.")):
            latest.pop(write.key, None)
            latest[write.key] = write
    return list(latest.values())


def _value(write: StateWrite, mode: str) -> PreamblePiece:
    shown = json.dumps(write.value, ensure_ascii=False)
    most = _VALUE_LIMIT.get(mode, len(shown))
    text, limit = f"{write.key}: {cut(shown, most)}", most if len(shown) > most else 0
    return PreamblePiece("value", write.key, text, (write.seq, 0), write.value, limit)


def _retries(scope: PhaseScope, visit: VisitRecord) -> str:
    phase = scope.cascade.phase(visit.phase)
    limits = [visit.attempts]
    if phase is not None:
        node = scope.graph.node(visit.phase) if scope.graph is not None else None
        limits += [node.rules.max_retries + 1] if node is not None and scope.arrival.pipeline is not None else []
        limits += [phase.rules.max_attempts, *(ward.max_attempts or 0 for ward in phase.wards.post)]
    return f"{visit.label}: {visit.attempts - 1}/{max(limits) - 1}"


PREAMBLE = "preamble"
"""``Item.source`` of a preamble."""


def preamble_in(rows: Iterable[tuple[Item, Message | None]]) -> str:
    """The text of the preamble that a context sends; empty without one. ``rows``: items and what went out of them."""
    return next((sent.text for item, sent in rows if item.source == PREAMBLE and sent is not None), "")


_BUDGETS = {"truncate": 100, "compact": 500, "summary:low": 600, "summary:medium": 1500, "summary:high": 3000}
"""Default budgets of preambles in tokens."""


MOST_LISTED = 100
"""Items left out that the entry of a preamble lists one by one, so that the journal does not grow by all of them at
each visit."""

DEGRADED: Final = "summary:high"
"""The mode that replaces ``full`` when the conversation of a thread is lost."""


class Fidelity(Part, frozen=True):
    """The field ``fidelity``: full continues a conversation, the others begin one with a preamble."""

    NAME: ClassVar[str] = "fidelity"
    ROLE: ClassVar[Role] = Role.ENTERS
    READS: ClassVar[str] = "thread_id"

    mode: Mode = "compact"
    budget: int | None = None
    """Tokens of the preamble; the default of its mode if none is given."""

    def __post_init__(self) -> None:
        require(self, budget=1)
        if self.mode == "full" and self.budget is not None:
            raise ValueError("fidelity: full has no preamble, and so no budget")

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """By the handoff or edge just travelled, else the phase, else ``default_fidelity``."""
        levels = modes(file.cascade, file.phase, file.base, file.arrival)
        if not levels:
            return None
        return cls(_mode(levels[0].value), written={"mode": levels[0].path, "*": levels[0].path})

    def enter(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        """Enters the thread's messages or the preamble, whose entry lists each of its items, left out or not."""
        entered = self._thread(scope, count) if self.mode == "full" else self._preamble(scope, count)
        return EnteredMessages(entered.rows, (*self._precedence(scope), *entered.notes))

    def _precedence(self, scope: PhaseScope) -> tuple[str, ...]:
        if "mode" not in self.written:
            return ()
        first, *others = modes(scope.cascade, scope.phase, scope.base, scope.arrival)
        return (_decided(f"fidelity {first.value}", first, others),) if others else ()

    # -- a preamble --------------------------------------------------------------------------------------------------

    def _preamble(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        budget = self.budget or _BUDGETS[self.mode]
        pieces = pieces_of(scope, self.mode)
        made = fitted(head_of(scope), self.mode, pieces, budget, lambda text: count(Message("user", text)))
        mode_rule, budget_rule = self.rule("mode", scope), self.rule("budget", scope)
        gone = len(pieces) - len(made.kept)
        parts = self._parts(pieces, made, budget, lambda text: count(Message("user", text)))
        place = Place(scope.place.branch, scope.place.phase, scope.place.visit)
        item = Item(Message("user", made.whole), Kind.INJECTED, place, source=PREAMBLE)
        if made.text == made.whole:
            reason = Reason("preamble_of", (self.mode, count(item.message), budget))
            verdict = MessageDecision(item.message, Action.INJECTED, reason, mode_rule, parts)
        elif made.text:
            reason = Reason("preamble_cut", (budget,))
            verdict = MessageDecision(Message("user", made.text), Action.TRUNCATED, reason, budget_rule, parts)
        else:
            verdict = MessageDecision(None, Action.DROPPED, Reason("preamble_budget", (budget,)), budget_rule, parts)
        left_out = f"fidelity {self.mode}: {gone:,} of {len(pieces):,} items left out, budget {budget:,}"
        return EnteredMessages(((item, verdict),), (left_out,) if gone else ())

    def _parts(
        self, pieces: Pieces, made: FittedPreamble, budget: int, count: Callable[[str], int]
    ) -> tuple[MessagePart, ...]:
        """Each piece that went, and before them those that were left out; very old ones of them in one."""
        gone, reason = len(pieces) - len(made.kept), f"budget {budget:,}: oldest first"
        listed = min(gone, MOST_LISTED)
        parts = [_part(piece, count(piece.text), reason) for piece in pieces.newest(len(made.kept) + listed)[:listed]]
        if gone > listed:
            parts.insert(0, MessagePart(f"{gone - listed:,} items before them", Action.DROPPED, reason))
        return (*parts, *(_part(piece, count(piece.text)) for piece in made.kept))

    # -- a thread ----------------------------------------------------------------------------------------------------

    def _thread(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        levels = threads(scope.cascade, scope.phase, scope.base, scope.arrival)
        if not levels:
            return EnteredMessages(notes=("thread: none is named, and no phase came before: new, empty",))
        first, *others = levels
        visits = [visit for visit, key in self._keyed(scope) if key == first.value and _has_said(visit)]
        note = _decided(f'thread "{first.value}"', first, others)
        if not any(visit.items for visit in visits):
            if scope.from_checkpoint and (first.name != "phase before" or not scope.visits):
                # The visit opens the thread anew: who goes on with it finds this preamble there.
                told = f"{note}: its conversation is not in the checkpoint, so full is {DEGRADED} here"
                stood_in = replace(self, mode=DEGRADED)._preamble(scope, count)
                return EnteredMessages(stood_in.rows, (told, *stood_in.notes))
            return EnteredMessages(notes=(f"{note}: new, empty",))
        injection = Injection(scope)
        is_written = "mode" in self.written
        rule = scope.rule_at(first.path) if first.path else self.rule("mode", scope)
        injection.thread(visits, first.value, rule, preambles=is_written)
        entered = injection.entered()
        return EnteredMessages(entered.rows, (f"{note}: {', '.join(visit.label for visit in visits)}", *entered.notes))

    def _keyed(self, scope: PhaseScope) -> Sequence[tuple[VisitRecord, str]]:
        """Finished visits with the keys of their threads. A phase that follows the rules of ``context`` is on a thread
        only if one is named.
        """
        places = {phase.name: index for index, phase in reversed(list(enumerate(scope.cascade.phases)))}
        known: dict[tuple[int, str, int | None], str] = {}
        found: list[tuple[VisitRecord, str]] = []
        came_from = ""
        for visit in scope.visits:
            if (index := places.get(visit.phase)) is not None:
                way = (index, came_from, visit.edge)
                if way not in known:
                    known[way] = self._key(scope, *way)
                if known[way]:
                    found.append((visit, known[way]))
            came_from = visit.phase
        return found

    def _key(self, scope: PhaseScope, index: int, came_from: str, edge: int | None) -> str:
        """The key of the thread of a phase that a walk came to on this way; empty if it is on none."""
        phase, base = scope.cascade.phases[index], ("phases", index)
        arrival = replace(scope.arrival, came_from=came_from, edge=edge)
        levels = threads(scope.cascade, phase, base, arrival)
        own_rules = phase.context is not None or phase.inject_from is not None
        by_rules = own_rules or not modes(scope.cascade, phase, base, arrival)
        if "mode" in self.written and by_rules:
            levels = tuple(level for level in levels if level.path)
        return levels[0].value if levels else ""


def _mode(value: str) -> Mode:
    return next(mode for mode in FIDELITIES if mode == value)


def _part(piece: PreamblePiece, tokens: int, left_out: str = "") -> MessagePart:
    """A piece as the entry of its preamble tells it. ``left_out``: why, if it was."""
    if left_out:
        return MessagePart(piece.source, Action.DROPPED, left_out, tokens, 0)
    if piece.limit:
        return MessagePart(piece.source, Action.TRUNCATED, f"{piece.limit:,} characters", tokens, tokens)
    return MessagePart(piece.source, Action.KEPT, "", tokens, tokens)


def _has_said(visit: VisitRecord) -> bool:
    """Returns whether a conversation can continue with a visit: it ended well, or its answer stated the failure."""
    return visit.status == "success" or bool(visit.outcome and visit.items and visit.items[-1].kind is Kind.ANSWER)


def _decided(what: str, first: Level, others: Sequence[Level]) -> str:
    """``fidelity full by handoff (phase: compact)``: the level that decided, and what the others say."""
    losers = ", ".join(f"{level.name}: {level.value}" for level in others)
    return f"{what} by {first.name}" + (f" ({losers})" if losers else "")
