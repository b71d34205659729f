"""Comparing stored runs of a workspace, and writing the strategy that won into its file."""

from __future__ import annotations

import difflib
from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.compare import Comparison, ComparisonSide, as_recorded, compare, under
from workbench.analysis.sweep import FILE, RECORDED, Excluded, Pricing, Subject
from workbench.context.apply import ApplyError, apply
from workbench.context.strategy import SpecError, Strategy, with_named
from workbench.engine.definition import Definition, DefinitionError
from workbench.files import write_whole
from workbench.language.graph import Format
from workbench.models.encodings import encodings
from workbench.models.repricing import LastingCachePrices, OtherProviderPrices
from workbench.store.faults import StoreError
from workbench.store.run_filter import find_runs, parse_filter
from workbench.store.store import added
from workbench.store.text_search import TextSearch
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.opened_cascade import read_bytes
from workbench.workspace.recorded_runs import StoredImages

if TYPE_CHECKING:
    from workbench.context.cache import Prices
    from workbench.engine.journal.state import RunState
    from workbench.models.prices import PriceTable
    from workbench.store.run_filter import Filter
    from workbench.store.store import Store
    from workbench.store.summary import RunSummary
    from workbench.workspace.project import Project


def definition_of(state: RunState) -> Definition:
    """The cascade that a run is pinned to. Raises DefinitionError."""
    return Definition.of(state.cascade_text, state.cascade_file)


def matching(store: Store, text: str) -> list[str]:
    """The ids of the stored runs that match a filter, newest first, in the language of ``workbench runs``; child runs
    only if it asks for them. Raises FilterError.
    """
    found = matching_among(store, store.each_run(), parse_filter(text, datetime.now().astimezone()))
    return [run_id for _, run_id in sorted(found, reverse=True)]


def matching_among(store: Store, runs: Iterable[RunSummary], wanted: Filter) -> Iterator[tuple[str, str]]:
    """When each of these runs that match was added, and its id."""
    asked = (run for run in runs if wanted.asks_inside or not run.depth)
    return (added(match.run) for match in find_runs(asked, wanted, TextSearch(store)))


def subjects_of(store: Store, run_ids: Sequence[str]) -> tuple[list[Subject], list[Excluded]]:
    """These runs as a sweep wants them; a run that cannot be read or loaded takes itself out, by its name."""
    found, lost = list[Subject](), list[Excluded]()
    for run_id in dict.fromkeys(run_ids):
        try:
            state = store.state(run_id)
            found.append(Subject(state.session_id or state.run_id, state, definition_of(state)))
        except (StoreError, DefinitionError) as fault:
            lost.append(Excluded(_called(store, run_id), unassembled(fault)))
    named = Counter(subject.name for subject in found)
    return [replace(one, name=one.state.run_id) if named[one.name] > 1 else one for one in found], lost


def unassembled(fault: Exception) -> str:
    """Returns why a run takes itself out of a sweep."""
    return f"it cannot be assembled again: {fault}"


def _called(store: Store, run_id: str) -> str:
    try:
        return store.summary(run_id).name
    except StoreError:
        return run_id


def pricing_of(table: PriceTable, provider: str | None, cache_ttl: float | None = None) -> Pricing:
    """The prices that ``--provider`` means: those of the runs' own models for none and for ``recorded``. ``cache_ttl``:
    seconds that a cache keeps a prefix, instead of what providers and marks state.

    Raises PricesError.
    """
    own = provider in (None, RECORDED)
    prices: Prices = table if own else OtherProviderPrices(table, str(provider))
    return Pricing(
        RECORDED if own else str(provider), prices if cache_ttl is None else LastingCachePrices(prices, cache_ttl)
    )


def strategy_of(definition: Definition, spec: str) -> Strategy | None:
    """A spec, or a name of the file's ``strategies:``; None for ``file``, what the file says. Raises SpecError."""
    return None if spec.strip() == FILE else with_named(definition.cascade.strategies)(spec)


def compare_strategies(
    state: RunState, specs: tuple[str, str], prices: Prices, today: Definition | None = None
) -> Comparison:
    """One run under two strategies, or ``this``, as it was recorded. ``today``: the cascade that ``file`` stands for in
    the place of the one that ran. Raises SpecError, DefinitionError."""
    definition = definition_of(state) if today is None else today

    def side(spec: str) -> ComparisonSide:
        if spec.strip() == THIS:
            return recorded(state, prices, spec)[0]
        return under(spec, state, definition, strategy_of(definition, spec), encodings(), prices)

    return compare(*map(side, specs))


def changed_since(project: Project, state: RunState) -> Definition | None:
    """The cascade in a run's file as it is now, if that is another text than the run is pinned to; None also where it
    cannot be read or loaded."""
    if "imported" in state.ports or not state.cascade_file:
        return None
    try:
        text = read_bytes(project.root / state.cascade_file, state.cascade_file).decode("utf-8")
        return None if project.is_pinned(text, state.cascade_text) else Definition.of(text, state.cascade_file)
    except (CannotOpen, UnicodeDecodeError, DefinitionError):
        return None


def texts_of(project: Project, state: RunState) -> tuple[str, str]:
    """The text of a run's file that the run was started with, and the text as it is now: twice the same where they
    differ in secrets alone. Raises CannotOpen where the run has no file, or it cannot be read."""
    if "imported" in state.ports or not state.cascade_file:
        raise CannotOpen("the run was not made from a file")
    try:
        now = read_bytes(project.root / state.cascade_file, state.cascade_file).decode("utf-8")
    except UnicodeDecodeError:
        raise CannotOpen(f"{state.cascade_file}: the file is not UTF-8 text") from None
    return state.cascade_text, state.cascade_text if project.is_pinned(now, state.cascade_text) else now


class ComparedRun(Struct, frozen=True):
    """One side of a comparison: a stored run as it was recorded, or under a strategy."""

    run: str
    """A session id, a run id, or the beginning of one."""
    spec: str = ""
    """A strategy, a name from the file, or ``file``; empty for the recorded contexts."""


class RunComparison(Struct, frozen=True):
    """A comparison with what it was made of."""

    comparison: Comparison
    title: str
    a: RunState
    b: RunState
    notes: tuple[str, ...] = ()
    """Remarks on the things that could not be done as they should be."""


THIS = "this"
"""Stands for the current run, as it was recorded."""


def source_of(project: Project, text: str, here: str) -> ComparedRun:
    """The meaning of one side: ``this``, a strategy for the run ``here``, or the name of another run.

    Raises SpecError if it is none of them.
    """
    said = text.strip()
    if said in ("", THIS):
        return ComparedRun(here)
    try:
        strategy_of(definition_of(project.store.state(project.store.find(here))), said)
    except SpecError as fault:
        try:
            return ComparedRun(project.store.find(said))
        except StoreError:
            raise fault from None
    return ComparedRun(here, said)


class SideChoice(Struct, frozen=True):
    """A possible side of a comparison."""

    kind: str
    """``record``, ``file``, ``named``, ``built-in`` or ``run``; ``changes`` for the texts of the file."""
    name: str
    words: str
    side: ComparedRun
    says: Mapping[str, str] = {}
    """Of ``file`` the strategy of each phase."""
    is_origin: bool = False
    """The run that the one at hand was made from, as a re-run or a fork: what most people compare it with."""


BUILT_IN = {
    "snowball": "everything of each turn, as chat clients do",
    "selective": "what the phases ask for",
    "selective+mask(after=3)": "tool results older than 3 turns as one line each",
    "selective+mask(after=3,step=5)": "the same five turns at a time, which keeps the cached prefix longer",
}
"""Strategies to begin with."""
FIDELITIES = {
    "fidelity:full": "each thread's conversation goes on",
    "fidelity:compact": "stages, outcomes and values of the context as bullets",
    "fidelity:truncate": "the goal and the stage alone",
    "fidelity:summary:low": "two sentences about the run",
    "fidelity:summary:medium": "recent outcomes with excerpts, values of the context",
    "fidelity:summary:high": "all stages with notes, tools and time, the whole context, retries",
}
"""The same for a pipeline, whose nodes are told about the run before them."""
ENTITIES = {
    "entities": "a task's own entities, and the outputs it depends on up to 2,000 characters",
    "entities(include_all=true)": "the entities of the whole job, too",
    "entities(max_output=none)": "the outputs it depends on, whole",
    "entities(summarize=extract_key_sections)": "headings of those outputs with their first paragraphs",
    "entities(full=false)": "their summaries, where there are any",
}
"""The same for a decomposition."""


def strategies_to_begin_with(form: Format) -> Mapping[str, str]:
    """Strategies that a run of a file in this language can be compared under, those of its own language first, each
    with what it does in words."""
    own = {"dot": FIDELITIES, "decomposition": {**ENTITIES, **FIDELITIES}}.get(form, {})
    return {**own, **BUILT_IN}


OTHER_RUNS = 50
"""Runs that are offered, the newest; the one that the run was made from stands first, then those of its cascade."""
MADE_FROM = ("fork", "rerun", "replay")
"""Kinds of parents that are another version of a run; any other one is a run that it ran inside of."""


def side_choices(project: Project, run_id: str) -> tuple[SideChoice, ...]:
    """Returns the sides that a run can be compared with; strategies only where its cascade can still be loaded. Raises
    StoreError."""
    state = project.store.state(run_id)
    found = [SideChoice("record", THIS, "this run as it was recorded", ComparedRun(run_id))]
    with suppress(DefinitionError):
        definition = definition_of(state)
        named, usual = definition.cascade.strategies, strategies_to_begin_with(definition.graph.format)
        given = set(named.values())
        says = {one.name: str(Strategy.of(definition.cascade, one)) for one in definition.cascade.phases}
        found.append(SideChoice("file", FILE, "what the file said when it ran", ComparedRun(run_id, FILE), says))
        found += [SideChoice("named", name, spec, ComparedRun(run_id, name)) for name, spec in named.items()]
        found += [SideChoice("built-in", s, w, ComparedRun(run_id, s)) for s, w in usual.items() if s not in given]
    runs = [run for run in project.store.runs() if not run.depth and run.run_id != run_id]
    origin = str(state.parent.get("run_id") or "") if state.parent.get("kind") in MADE_FROM else ""
    runs.sort(key=lambda run: (run.run_id != origin, run.cascade_id != state.cascade_id))
    for run in runs[:OTHER_RUNS]:
        about = f"{run.cascade_file or run.cascade_id}, {run.status}, {_answered(run)}"
        is_origin = run.run_id == origin
        words = f"this run was made from it; {about}" if is_origin else about
        found.append(SideChoice("run", run.name, words, ComparedRun(run.run_id), is_origin=is_origin))
    return tuple(found)


def _answered(run: RunSummary) -> str:
    """``3 calls``, ``1 call, 2 answers recorded``: what it was answered, by providers and by recordings."""
    calls, recorded = (
        f"{number:,} {noun}{'' if number == 1 else 's'}"
        for number, noun in ((run.calls, "call"), (run.recorded, "answer"))
    )
    told = [calls] if run.calls or not run.recorded else []
    return ", ".join([*told, *([f"{recorded} recorded"] if run.recorded else [])])


def spec_fault(project: Project, run_id: str, text: str) -> str:
    """Returns why a text is not a strategy for a run; empty for one that is. Raises StoreError, DefinitionError."""
    try:
        strategy_of(definition_of(project.store.state(run_id)), text)
    except SpecError as fault:
        return f"column {fault.column}: {fault.message}" + (f" ({fault.hint})" if fault.hint else "")
    return ""


def compare_sources(project: Project, a: ComparedRun, b: ComparedRun, prices: Prices) -> RunComparison:
    """Two sides of any kind. Raises SpecError, DefinitionError, StoreError."""
    names = [project.store.find(source.run) for source in (a, b)]
    states = {name: project.store.state(name) for name in dict.fromkeys(names)}
    labels = [states[name].session_id or name for name in names]
    notes: list[str] = []
    sides = []
    for source, name, label in zip((a, b), names, labels, strict=True):
        if source.spec:
            definition = definition_of(states[name])
            strategy = strategy_of(definition, source.spec)
            told = source.spec if names[0] == names[1] else f"{label} under {source.spec}"
            sides.append(under(told, states[name], definition, strategy, encodings(), prices))
        else:
            told = f"{label} as recorded" if names[0] == names[1] else label
            side, note = recorded(states[name], prices, told)
            sides.append(side)
            notes += [note] if note else []
    title = labels[0] if labels[0] == labels[1] else f"{labels[0]} and {labels[1]}"
    return RunComparison(compare(*sides), title, states[names[0]], states[names[1]], tuple(notes))


def images_of(store: Store, runs: Iterable[str]) -> Mapping[str, bytes]:
    """The images of these runs by digest, read when they are asked for."""
    return ChainMap(*(cast("dict[str, bytes]", StoredImages(store, run)) for run in dict.fromkeys(runs)))


def recorded(state: RunState, prices: Prices, label: str = "") -> tuple[ComparisonSide, str]:
    """A run as it was recorded, and a notice if its cascade can no longer be loaded."""
    label = label or state.session_id or state.run_id
    try:
        return as_recorded(label, state, definition_of(state), encodings(), prices), ""
    except DefinitionError as fault:
        note = f"{label}: its cascade cannot be loaded, so the stored predictions are shown: {fault}"
        return as_recorded(label, state, None, encodings(), prices), note


class FileChange(Struct, frozen=True):
    """The change that applying a strategy makes to a cascade file."""

    file: Path
    shown: str
    before: str
    after: str
    phases: tuple[str, ...]
    """Those in which the strategy makes a difference in the run."""
    is_stale: bool
    """The file is not the text that the run is pinned to."""
    dropped: tuple[str, ...] = ()
    """What the phases had and have no longer (``AppliedStrategy``)."""
    is_everywhere: bool = False
    """No phase of the file ran: the strategy goes into all that ask a model."""

    @property
    def words(self) -> list[str]:
        """Where the strategy goes, and what is dropped for it, in sentences; empty when the file says so already."""
        if self.before == self.after:
            return []
        phases = f"phase{'s' if len(self.phases) > 1 else ''}"
        which = (
            f"{phases} that ask{'' if len(self.phases) > 1 else 's'} a model"
            if self.is_everywhere
            else f"{phases} in which it makes a difference"
        )
        return [
            f"It goes into the {which}: {', '.join(self.phases)}.",
            *([f"Dropped: {'; '.join(self.dropped)}."] if self.dropped else []),
        ]

    @property
    def lines(self) -> list[str]:
        """A unified diff; empty when the file says so already."""
        before, after = self.before.splitlines(), self.after.splitlines()
        return list(difflib.unified_diff(before, after, self.shown, self.shown, "now", "applied", n=2, lineterm=""))


def change_for(project: Project, state: RunState, spec: str, prices: Prices, into: Path | None = None) -> FileChange:
    """The strategy written into the run's file as it is now, or ``into`` another one, in all phases of it that ask a
    model. Raises ApplyError, SpecError, CannotOpen."""
    if spec.strip() == THIS:
        raise ApplyError(f"'{THIS}' is what was sent, not a strategy; '{FILE}' is what the file says")
    strategy = strategy_of(definition_of(state), spec)
    if strategy is None:
        raise ApplyError(f"'{FILE}' is what the file says already")
    if into is not None:
        return change_into(project, into, strategy, [state])
    if "imported" in state.ports:
        told = state.imported.get("file", "") or "a file of another tool"
        raise ApplyError(
            f"this run was imported from {told}, which is not a cascade: name the file to write by --into FILE"
        )
    if not state.cascade_file:
        raise ApplyError("this run has no cascade file: name the file to write by --into FILE")
    file = project.root / state.cascade_file
    try:
        text = read_bytes(file, state.cascade_file).decode("utf-8")
    except UnicodeDecodeError:
        raise ApplyError(f"{state.cascade_file} is not UTF-8") from None
    own = compare_strategies(state, (FILE, spec), prices, changed_since(project, state))
    phases = tuple(dict.fromkeys(pair.place.phase for pair in own.differing))
    applied = apply(text, state.cascade_file, strategy, phases)
    stale = not project.is_pinned(text, state.cascade_text)
    return FileChange(file, state.cascade_file, text, applied.text, phases, stale, applied.dropped)


def change_into(project: Project, file: Path, strategy: Strategy, states: Iterable[RunState]) -> FileChange:
    """The strategy written into a cascade file: in the phases in which it makes a difference in these runs; where no
    phase of the file ran in them, as with imported runs, in all that ask a model. Raises ApplyError, SpecError,
    CannotOpen."""
    shown = project.shown(file)
    try:
        text = read_bytes(file, shown).decode("utf-8")
    except UnicodeDecodeError:
        raise ApplyError(f"{shown} is not UTF-8") from None
    try:
        definition = Definition.of(text, shown)
    except DefinitionError as fault:
        raise ApplyError(f"{shown} is not a cascade that can be loaded: {fault.problems[0].message}") from None
    asking = [phase.name for phase in definition.cascade.phases if phase.instructions]
    if not asking:
        raise ApplyError(f"{shown} has no phase that asks a model")
    ran, changed = set[str](), set[str]()
    for state in states:
        visited = {visit.phase for visit in state.visits if "imported" not in state.ports} & set(asking)
        if not visited <= changed:
            ran |= visited
            changed |= visited & _phases_changed_by(strategy, state, definition, project.environment.prices)
    phases = tuple(name for name in asking if name in changed or not ran)
    applied = apply(text, shown, strategy, phases)
    return FileChange(file, shown, text, applied.text, phases, False, applied.dropped, is_everywhere=not ran)


def _phases_changed_by(strategy: Strategy, state: RunState, definition: Definition, prices: Prices) -> set[str]:
    """The phases of a run in which a strategy sends other requests than the cascade does; all of them where the cascade
    is not the one that ran, and cannot send them."""
    visited = {visit.phase for visit in state.visits}
    if not visited <= {phase.name for phase in definition.cascade.phases}:
        return visited
    a, b = (under("", state, definition, one, encodings(), prices) for one in (None, strategy))
    return {pair.place.phase for pair in compare(a, b).differing}


def write_change(change: FileChange) -> None:
    """Write it, unless the file was saved in between. Raises ApplyError, CannotOpen, OSError."""
    if read_bytes(change.file, change.shown) != change.before.encode("utf-8"):
        raise ApplyError(f"{change.shown} was saved meanwhile; nothing is written")
    write_whole(change.file, change.after.encode())
