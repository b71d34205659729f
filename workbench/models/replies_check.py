"""Checks offline replies against the cascade that they answer: phases, branches, attempts and turns that no run has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from workbench.engine.routing.retries import policy_of
from workbench.language.graph import Graph, lower
from workbench.language.model.candidates import Soundings
from workbench.language.model.cascade import RAG_TOOLS, Cascade, Phase
from workbench.language.nearest import nearest
from workbench.language.problem import Path, Problem, Severity
from workbench.language.read.source import Source
from workbench.language.words import ROUTE_TO
from workbench.models.replies import Replies, Reply, walk

MOST_CANDIDATES = 200
"""Branches of one soundings block that are tried against a pattern."""


class AnsweredCascades(Struct, frozen=True):
    """The cascades whose calls a file of replies may answer: one, and those that its run starts."""

    cascades: tuple[Cascade, ...]
    complete: bool
    """Whether no other cascade can be started: none by a name that only a model or the input gives."""
    graph: Graph | None = None
    """The graph of the first of them, where its file is a pipeline or a decomposition: it says what no phase does, such
    as the edges of a pipeline."""


def misfits(replies: Replies, source: Source, answered: AnsweredCascades) -> list[Problem]:
    """Returns the replies that no run of these cascades asks for, in the order of the file. ``source`` is the text of
    the replies."""
    return list(_Check(source, answered).of(replies))


class _Check:
    def __init__(self, source: Source, answered: AnsweredCascades) -> None:
        self._source = source
        self._cascade = answered.cascades[0]
        self._complete = answered.complete
        self._phases: dict[str, list[tuple[Cascade, Phase | None]]] = {}
        self._inner: set[str] = set()
        """Steps that phases run under a name of their own. Their turns and candidates are not known here."""
        self._own = answered.graph
        own = () if self._own is None else (self._own,)
        self._graphs: list[Graph] = [*own, *(lower(cascade) for cascade in answered.cascades[len(own) :])]
        for cascade in answered.cascades:
            for phase in cascade.phases:
                self._add(cascade, phase)
            for name in cascade.validators:  # An inline validator is a cascade of one phase, which has its name.
                self._phases.setdefault(name, []).append((cascade, None))
        self._outer = [branch for cascade in answered.cascades for branch in branches(cascade.soundings)]

    def _add(self, cascade: Cascade, phase: Phase) -> None:
        self._phases.setdefault(phase.name, []).append((cascade, phase))
        for name in phase.inner_steps:
            self._inner.add(name)
            self._phases.setdefault(name, [])
        if isinstance(phase.on_error, Phase):
            self._add(cascade, phase.on_error)

    def of(self, replies: Replies) -> Iterator[Problem]:
        for key, entries in replies.by_phase.items():
            path: Path = ("replies", key)
            name, sign, visit = key.rpartition("#")
            if not sign or not visit.isdigit():
                name, visit = key, "1"
            if not entries:
                yield self._problem(Severity.ERROR, "L903", f"'{key}' has no replies", path, "write one, or remove it")
            if int(visit) < 1:
                yield self._problem(Severity.ERROR, "L902", f"'{key}': visits count from 1", path)
            elif name not in self._phases:
                yield self._unknown(name, path)
            elif name not in self._inner and (steps := _steps(self._phases[name])) is not None:
                told = f"phase '{name}' calls no model: these replies are never read"
                hint = f"its rows and steps answer as {', '.join(steps)}" if steps else "remove them"
                yield self._problem(Severity.WARNING, "L906", told, path, hint)
            elif int(visit) > 1 and self._visited_once(name):
                told = f"visit {int(visit)} is never reached: no way leads back to phase '{name}'"
                yield self._problem(Severity.WARNING, "L905", told, path)
            elif self._own is not None and self._own.node(name) is not None:
                yield from self._executions(path, name, entries, self._own)
            else:
                yield from self._entries(path, entries, None if name in self._inner else self._phases[name])

    def _executions(self, path: Path, name: str, entries: Sequence[Reply], graph: Graph) -> Iterator[Problem]:
        """Of a node: its executions are the attempts. Its branches have names that a run makes."""
        node = graph.node(name)
        assert node is not None
        most = policy_of(node.rules.retry_policy, node.rules.max_retries).executions
        for index, entry in enumerate(entries):
            if entry.attempt is not None and entry.attempt > most:
                told = f"attempt {entry.attempt} is never reached: the phase has at most {most}"
                hint = "see max_retries and retry_policy" if graph.format == "dot" else ""
                yield self._problem(Severity.WARNING, "L905", told, (*path, index, "attempt"), hint)

    def _visited_once(self, name: str) -> bool:
        """Returns whether no run can enter this phase twice; False if it is not in the graph, as phases written in
        place."""
        named = [graph for graph in self._graphs if any(node.id == name for node in graph.nodes)]
        return len(named) == len(self._phases[name]) and not any(graph.returns(name) for graph in named)

    def _unknown(self, name: str, path: Path) -> Problem:
        severity = Severity.ERROR if self._complete else Severity.WARNING
        near = nearest(name, tuple(self._phases))
        own = ", ".join(phase.name for phase in self._cascade.phases[:12])
        hint = f"did you mean '{near}'?" if near else f"its phases are {own}"
        if not self._complete:
            hint += "; a cascade that is started by name may have it"
        told = f"'{name}' is not a phase of this cascade, or of one that it starts"
        return self._problem(severity, "L902", told, path, hint)

    def _entries(
        self, path: Path, entries: Sequence[Reply], phases: Sequence[tuple[Cascade, Phase | None]] | None
    ) -> Iterator[Problem]:
        known = self._branches(phases) if phases is not None else None
        most = _most(phases) if phases is not None else None
        offered = _offered(phases) if phases else None
        for index, entry, branch, attempt, turn in walk(entries):
            if offered is not None:
                yield from self._not_offered((*path, index, "calls"), entry, offered)
            named = entry.branch is not None and known is not None
            if branch and named and not any(fnmatchcase(one, branch) for one in known or ()):
                yield self._no_branch((*path, index, "branch"), branch, known or ())
            if entry.attempt is not None and most is not None and attempt > most.attempts:
                told = f"attempt {attempt} is never reached: the phase has at most {most.attempts}"
                yield self._problem(Severity.WARNING, "L905", told, (*path, index, "attempt"))
            beyond = most is not None and turn > most.turns and (turn == most.turns + 1 or entry.turn is not None)
            if most is not None and beyond and entry.when is None:
                told = f"turn {turn} is never reached: the phase has at most {most.turns}"
                yield self._problem(Severity.WARNING, "L905", told, (*path, index), "see rules.max_turns")

    def _branches(self, phases: Sequence[tuple[Cascade, Phase | None]]) -> tuple[str, ...] | None:
        """The paths of all candidates in which these phases can run; None if they cannot be listed."""
        own = [branches(phase.soundings) for _, phase in phases if phase is not None]
        listed = [*self._outer, *(name for names in own for name in names)]
        if "*" in listed:
            return None
        return ("", *listed, *(f"{outer}/{inner}" for outer in self._outer for names in own for inner in names))

    def _no_branch(self, path: Path, branch: str, known: Sequence[str]) -> Problem:
        names = list(dict.fromkeys(name for name in known if name))
        hint = f"there are {', '.join(names[:8])}{', …' if len(names) > 8 else ''}" if names else "it has no soundings"
        return self._problem(Severity.WARNING, "L904", f"no candidate of this phase is called '{branch}'", path, hint)

    def _not_offered(self, path: Path, entry: Reply, offered: Sequence[str]) -> Iterator[Problem]:
        """The calls of tools that the phase does not have: the model would be told so, and the run goes on."""
        for index, call in enumerate(entry.calls):
            if call.tool not in offered:
                near = nearest(call.tool, offered)
                hint = f"did you mean '{near}'?" if near else f"it has {', '.join(offered) or 'no tools'}"
                told = f"the phase does not offer the tool '{call.tool}': this call is refused"
                yield self._problem(Severity.WARNING, "L907", told, (*path, index, "tool"), hint)

    def _problem(self, severity: Severity, code: str, message: str, path: Path, hint: str = "") -> Problem:
        at_key = len(path) == 2
        span = self._source.key_span(path) if at_key else self._source.span(path)
        return Problem(severity, code, message, self._source.file, span, path, hint)


def _steps(phases: Sequence[tuple[Cascade, Phase | None]]) -> tuple[str, ...] | None:
    """The steps of phases that call no model under their own name; None if one of these phases does call one."""
    found = [phase for _, phase in phases if phase is not None and phase.deterministic]
    if len(found) < len(phases):
        return None
    return tuple(f"'{step}'" for phase in found for step in phase.inner_steps)


def _offered(phases: Sequence[tuple[Cascade, Phase | None]]) -> tuple[str, ...] | None:
    """The tools that the phases of a name offer their model; None if some are only known at run time."""
    found: dict[str, None] = {}
    for _, phase in phases:
        if phase is None or phase.manifest:
            return None
        found |= dict.fromkeys(phase.tools)
        found |= dict.fromkeys(RAG_TOOLS if phase.rag is not None else ())
        if phase.offers_choice:
            found[ROUTE_TO] = None
    return tuple(found)


def branches(soundings: Soundings | None) -> tuple[str, ...]:
    """The names of the candidates of one block: ``s0``, ``s1``, and ``r1.0`` for the first of a reforge step; ``*``
    alone if their number is only known at run time.
    """
    if soundings is None:
        return ()
    if soundings.template:
        return ("*",)
    count = soundings.candidates
    steps = soundings.reforge
    refined = steps.steps * steps.factor_per_step if steps else 0
    if count + refined > MOST_CANDIDATES:
        return ("*",)
    names = [f"s{index}" for index in range(count)]
    if steps is not None:
        each = range(steps.factor_per_step)
        names += [f"r{step}.{attempt}" for step in range(1, steps.steps + 1) for attempt in each]
    return tuple(names)


class _Most(Struct, frozen=True):
    attempts: int
    turns: int


def _most(phases: Sequence[tuple[Cascade, Phase | None]]) -> _Most | None:
    """The most attempts and turns that any phase of this name has; None if unknown."""
    attempts = turns = 1
    for cascade, phase in phases:
        if phase is None:
            turns = max(turns, *(inline.max_turns for inline in cascade.validators.values()))
            continue
        wards = (*phase.wards.post, *phase.wards.turn)
        tried = [phase.rules.max_attempts, *(ward.max_attempts or 1 for ward in wards)]
        if phase.rules.loop_until is not None:
            tried.append(5)
        if phase.decision_points is not None or phase.audibles is not None or phase.human_input is not None:
            return None  # A person may have it done again.
        attempts, turns = max(attempts, *tried), max(turns, phase.rules.max_turns)
    return _Most(attempts, turns)
