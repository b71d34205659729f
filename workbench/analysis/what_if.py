"""Assembles each call of a stored run again under another context strategy, from the journal.

No engine runs and no model is called: the history is what the journal says was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembler import Assembler, is_forced
from workbench.context.assembly import SYSTEM_TEXT, Assembly, Grade, Kind
from workbench.context.cache import Forecast, Prices
from workbench.context.marks import PARAMETER
from workbench.context.parts.fidelity import preamble_in
from workbench.context.scope import PhaseScope, StateWrite, Vectors, VisitRecord
from workbench.context.strategy import Strategy
from workbench.context.tokens import Counter
from workbench.engine.definition import Definition
from workbench.engine.forecasting import Lines, PastCalls, Prediction, line_of, predicted, unseen_of
from workbench.engine.journal.event import timestamp
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.journal.state import RunState
from workbench.engine.toolcalls import read_calls, without_calls
from workbench.language.model.cascade import Cascade, Phase


class Reassembled(Struct, frozen=True):
    """One call under a strategy."""

    call: CallState
    """The call as recorded."""
    assembly: Assembly
    prediction: Prediction
    low: Forecast
    high: Forecast
    """The forecasts where the provider counts as few, and as many, tokens for what is a guess as it may."""
    kept: bool = True
    """Whether the provider is expected to keep the request in its cache."""


def what_if(
    state: RunState,
    definition: Definition,
    strategy: Strategy | None,
    counter: Counter,
    prices: Prices,
) -> list[Reassembled]:
    """Every call inside turns, in run order. Without a strategy: what the file says, which for a run of that very
    file gives the recorded contexts again."""
    return list(reassembling(state, definition, strategy, counter, prices))


def past_of(state: RunState) -> PastCalls:
    """Returns the calls of a run from which its providers can be predicted."""
    return PastCalls(state.calls, imported="imported" in state.ports)


def assembled_inside(state: RunState, definition: Definition) -> Iterator[CallState]:
    """The calls that can be assembled again: those inside turns, of phases that the definition has."""
    names = {phase.name for phase in definition.cascade.phases}
    for call in state.calls:
        visit = state.visit_of(call.place)
        if not call.beside and visit is not None and visit.phase in names:
            yield call


def reassembling(
    state: RunState,
    definition: Definition,
    strategy: Strategy | None,
    counter: Counter,
    prices: Prices,
    past: PastCalls | None = None,
) -> Iterator[Reassembled]:
    """Reassembles calls one after the other: a call that the caller drops takes no memory. ``past``: ``past_of`` the
    run, if at hand.
    """
    phases = {phase.name: (index, phase) for index, phase in enumerate(definition.cascade.phases)}
    past = past_of(state) if past is None else past
    taught, imported = past, "imported" in state.ports
    outlooks = Lines(lambda model: _Outlook(model, counter, prices, taught), lambda left: left.branched())
    last: dict[str, Assembly] = {}
    assemblers: dict[tuple[str, str, int], tuple[Assembler, int]] = {}
    for call in assembled_inside(state, definition):
        visit = state.visit_of(call.place)
        assert visit is not None
        index, phase = phases[visit.phase]
        branch = call.place.branch
        if call.place.visit_key not in assemblers:
            cascade = definition.cascade
            if imported:
                cascade, phase = whole(cascade, phase.name)
            scope = _scope(state, definition, visit, call, index, phase)
            forced = is_forced(call.parameters.get("tool_choice"))
            scope = replace(scope, cascade=cascade, counted_as=prices.counted_as(call.model), forced=forced)
            scope = replace(scope, parameters={}) if imported else scope
            chosen = strategy or Strategy.of(cascade, phase, arrival=scope.arrival)
            assemblers[call.place.visit_key] = (Assembler(scope, chosen, counter, last.get(branch)), 0)
        assembler, known = assemblers[call.place.visit_key]
        for item in visit.items[known : call.items]:
            assembler.add(item)
        assemblers[call.place.visit_key] = (assembler, call.items)
        choice = str(call.parameters.get("tool_choice", ""))
        # Of an imported run, each call has its own; else they are the scope's, and the marks may differ.
        own = {name: value for name, value in call.parameters.items() if imported or name == PARAMETER}
        assembly = last[branch] = assembler.assemble(call.place, tool_choice=choice, parameters=own)
        line = line_of(call.place, candidate=visit.kind == "candidate")
        yield outlooks.of(line, call.model).reassembled(call, assembly)


class _Outlook:
    """Predicts the calls of one line to one model in a what-if: with all that the run has taught, and again for as
    few and as many tokens as what is a guess may have."""

    _LEANS = (0.0, -1.0, 1.0)

    def __init__(self, model: str, counter: Counter, prices: Prices, past: PastCalls) -> None:
        counted_as = prices.counted_as(model)
        self._prices = prices
        self._model = model
        self._own = counted_as == model
        """Whether the record's counts are of the model that is priced."""
        self._past = past if self._own else PastCalls((), imported=False)
        price = prices.price(model)
        supposed = PastCalls((), imported=False) if price.supposed else self._past
        self._share = counter.range(counted_as)
        self._counter, self._counted_as = counter, counted_as
        self._window = prices.window(counted_as)
        # Of another provider's cache the record tells nothing, not even what would be marked.
        self._caches = [supposed.cache(model, price.rule) for _ in self._LEANS]

    def branched(self) -> _Outlook:
        """Another that knows what this one knows."""
        made = copy(self)
        made._caches = [cache.copy() for cache in self._caches]
        return made

    def reassembled(self, call: CallState, assembly: Assembly) -> Reassembled:
        """The predictions of a call whose context is this one under the strategy."""
        past, now = self._past, timestamp(call.at)
        unknown = bool(call.unstated)
        unseen = unseen_of(assembly, self._counter, self._counted_as)
        found = [past.expect(call, assembly, self._share, lean, unseen, unknown=unknown) for lean in self._LEANS]
        expected, price = found[0], self._prices.price(self._model, found[0].tokens)
        price = replace(price, rule=self._caches[0].rule(price))
        if price.supposed and expected.grade is Grade.EXACT:
            expected = replace(expected, grade=Grade.ESTIMATE)
        middle, low, high = (
            cache.forecast(assembly, price, now, each) for cache, each in zip(self._caches, found, strict=True)
        )
        kept = self._caches[0].keeps(price.rule, middle)
        if call.answer is not None and expected.tokens:
            as_recorded = self._own and not price.supposed and assembly.request.digest == call.digest
            for cache in self._caches:
                cache.sent(assembly, now)
                if as_recorded:
                    cache.answered(assembly, call.usage.cached, call.usage.written, reasoned=bool(call.usage.reasoning))
        answered = past.largest(self._model)
        return Reassembled(
            call, assembly, predicted(assembly, expected, middle, price, self._window, answered), low, high, kept
        )


def whole(cascade: Cascade, name: str) -> tuple[Cascade, Phase]:
    """The cascade and the phase that the contexts of an imported run are assembled by: the phase of that name alone,
    without rules, because each context is recorded whole."""
    phase = Phase(name=name, instructions="The messages are those of the imported file.")
    return Cascade(cascade_id=cascade.cascade_id, phases=(phase,)), phase


def _scope(
    state: RunState, definition: Definition, visit: VisitState, call: CallState, index: int, phase: Phase
) -> PhaseScope:
    tools: tuple[Mapping[str, Any], ...] = tuple(state.tool_schemas.get(call.tools_hash, ()))
    names = visit.tools or tuple(_parent(state, visit).tools)
    return PhaseScope(
        cascade=definition.cascade,
        phase=phase,
        index=index,
        place=call.place._replace(attempt=0, turn=0, call=0),
        input=state.input,
        visits=tuple(_records(state, definition, visit, call.seq)),
        conditions=visit.conditions or _parent(state, visit).conditions,
        tool_text=_opening_text(call, ""),
        system_text=_opening_text(call, SYSTEM_TEXT),
        tools=tools,
        model=call.model,
        parameters={key: value for key, value in call.parameters.items() if key != "tool_choice"},
        line_of=definition.line,
        keep_recent_images=state.options.get("keep_recent_images"),
        without_calls=lambda text: without_calls(text, read_calls(text, names)),
        writes=tuple(write for write in state.writes if write.seq < call.seq and _sees(visit, write)),
        task=next((item.message.text for item in visit.items if item.kind is Kind.TASK), ""),
        choices=tuple(state.choices),
        vectors=_vectors(state),
        graph=definition.graph,
        run_id=state.prompt_id,
        from_checkpoint=bool(state.options.get("start")) and not state.options.get("restarts"),
        edge=visit.edge,
        fresh_retries=definition.graph.format == "dot",
    )


def _vectors(state: RunState) -> Vectors | None:
    """The embeddings that the run made; no others are made for a what-if."""
    model = str(state.options.get("embedding_model", ""))
    made = [data for data in state.embedded if data.get("model") == model]
    if not model or not made:
        return None
    by = next((str(data["by"]) for data in reversed(made) if data.get("by")), model)
    return Vectors(by, state.vectors.get(model, {}))


def _sees(visit: VisitState, write: StateWrite) -> bool:
    """Returns whether a visit has what was written on a branch: those that it began from, and its own. A candidate's
    own is that of its phase and visit alone: other phases have candidates of the same name."""
    if visit.wave and write.place.branch.startswith("wave"):
        return _wave_of(write.place.branch) < visit.wave or write.place.branch == visit.branch
    if write.place.branch == visit.branch and visit.kind == "candidate":
        return write.place.visit_key == (visit.branch, visit.phase, visit.visit)
    return write.place.branch in _lines(visit.branch)


def _wave_of(branch: str) -> int:
    """The wave of a branch that ``wave2.fetch`` names."""
    number = branch.removeprefix("wave").partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _lines(branch: str) -> list[str]:
    """The branches that a branch began from, the main line first, and itself."""
    names = branch.split("/") if branch else []
    return ["", *("/".join(names[: end + 1]) for end in range(len(names)))]


def _opening_text(call: CallState, source: str) -> str:
    """The system message that opened the request, as recorded: the tool text, or of a ``source`` another one."""
    for entry in call.entries:
        if entry.item.kind is Kind.SYSTEM and entry.item.source == source:
            return entry.item.message.text
    return ""


def _parent(state: RunState, visit: VisitState) -> VisitState:
    """The visit that a candidate belongs to; the visit itself on the main line."""
    branch = visit.branch.rpartition("/")[0]
    if not visit.branch:
        return visit
    return next((v for v in state.visits if (v.branch, v.phase, v.visit) == (branch, visit.phase, visit.visit)), visit)


def _records(state: RunState, definition: Definition, visit: VisitState, seq: int) -> Iterator[VisitRecord]:
    """The visits that had finished when this one began, which made its first call at ``seq``; of an imported run none,
    because each of its contexts is recorded whole: what it had of another one stands in its own messages."""
    if visit.wave:
        yield from _records_of_waves(state, definition, visit)
        return
    lines = _lines(visit.branch)
    for other in state.visits:
        if other is visit or "imported" in state.ports:
            return
        if (other.phase, other.visit) == (visit.phase, visit.visit):
            continue
        if other.kind == "candidate" or not other.finished or other.branch not in lines or other.finished_seq > seq:
            continue
        yield _record(state, other)


def _records_of_waves(state: RunState, definition: Definition, visit: VisitState) -> Iterator[VisitRecord]:
    """Of a decomposition: the visits of earlier waves, in the order in which they joined the run."""
    order = {phase.name: index for index, phase in enumerate(definition.cascade.phases)}
    earlier = [other for other in state.visits if 0 < other.wave < visit.wave and other.finished]
    for other in sorted(earlier, key=lambda v: (v.wave, v.status != "skipped", order.get(v.phase, len(order)))):
        yield _record(state, other)


def _record(state: RunState, other: VisitState) -> VisitRecord:
    """A finished visit as those after it see it."""
    winner = _winner(state, other)
    return VisitRecord(
        branch=other.branch,
        phase=other.phase,
        visit=other.visit,
        status=other.status,
        output=other.output if other.status == "success" else "",
        items=tuple(winner.items),
        state=dict(other.state_set),
        attempts=max((item.place.attempt for item in winner.items), default=0),
        model=winner.model or other.model,
        reason=other.reason,
        seq=other.finished_seq,
        seconds=other.told_seconds,
        callouts=frozenset(str(c.get("body_hash", "")) for c in (*other.callouts, *winner.callouts)),
        callout_names={
            str(c.get("body_hash", "")): str(c.get("name", "")) for c in (*other.callouts, *winner.callouts)
        },
        preamble=_preamble(winner),
        outcome=other.outcome,
        edge=other.edge,
    )


def _winner(state: RunState, visit: VisitState) -> VisitState:
    """The visit whose messages count: the visit itself, or the candidate that won."""
    branches = [str(evaluation.get("branch", "")) for evaluation in visit.evaluations]
    if not branches:
        return visit
    key = (branches[-1], visit.phase, visit.visit)
    return next((v for v in state.visits if (v.branch, v.phase, v.visit) == key), visit)


def _preamble(visit: VisitState) -> str:
    calls = [call for call in visit.calls if not call.beside]
    return preamble_in((entry.item, entry.sent) for entry in calls[-1].entries) if calls else ""
