"""Facts that all checks of one file share, worked out once: its phases, the walks through them, its places, its
family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from workbench.language.graph import DECISION, ESCALATION, NEXT, Edge, Graph
from workbench.language.lint.environment import LintEnvironment
from workbench.language.lint.family import Family
from workbench.language.lint.place import PhaseAt, Places
from workbench.language.lint.reach import Reach
from workbench.language.lint.texts import TemplateText, texts
from workbench.language.model.candidates import Soundings
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.flow import END
from workbench.language.nearest import nearest
from workbench.language.problem import Path, Problem
from workbench.language.read.source import Source
from workbench.language.templates.names import TemplateNames, names_used

Finding = Problem
MOST_COMPARISONS = 20_000
"""Names compared for suggestions in one check, some 0.2 s: a file of thousands of wrong names gets fewer of them."""


class Facts:
    """One cascade under check."""

    def __init__(self, cascade: Cascade, graph: Graph, source: Source, around: LintEnvironment) -> None:
        self.cascade = cascade
        self.source = source
        self._graph = graph
        self.around = around
        self.place = Places(source)
        self.family = Family(source, cascade, around)
        self.phases = tuple(PhaseAt(phase, ("phases", i)) for i, phase in enumerate(cascade.phases))
        self.by_name: dict[str, PhaseAt] = {}
        for at in self.phases:
            self.by_name.setdefault(at.name, at)
        self.names = tuple(self.by_name)
        self._comparisons = MOST_COMPARISONS
        self.report = self.place.report

    def meant(self, name: str, known: Iterable[str]) -> str | None:
        """The known name that a misspelt one probably stands for, within two edits."""
        near = [other for other in known if abs(len(other) - len(name)) <= 2][: self._comparisons]
        self._comparisons -= len(near)
        return nearest(name, near) or None

    @cached_property
    def read_texts(self) -> tuple[tuple[TemplateText, TemplateNames], ...]:
        """Each template with the names that it uses."""
        return tuple((text, names_used(text.template)) for text in self.texts)

    @cached_property
    def listed(self) -> str:
        """The names of the phases, for a hint."""
        return ", ".join(self.names[:12]) + (", …" if len(self.names) > 12 else "")

    @cached_property
    def texts(self) -> tuple[TemplateText, ...]:
        """The templates of the file, and those that it takes from other files."""
        return tuple(texts(self.cascade, self.all_phases, self.around.read))

    @cached_property
    def all_phases(self) -> tuple[PhaseAt, ...]:
        """The phases, each followed by the one that replaces it on error, if that is written in place."""
        return tuple(self._with_fallbacks())

    def _with_fallbacks(self) -> Iterator[PhaseAt]:
        for at in self.phases:
            inside: PhaseAt | None = at
            while inside is not None:
                yield inside
                fallback = inside.phase.on_error
                path = (*inside.path, "on_error")
                inside = PhaseAt(fallback, path, at.name) if isinstance(fallback, Phase) else None

    @cached_property
    def stand_ins(self) -> Mapping[str, str]:
        """The phases written in place under ``on_error``, by name, with the phase of the list that each stands in for.
        Their outputs can be read like those of any phase."""
        return {at.phase.name: at.host for at in self.all_phases if at.host and at.phase.name not in self.by_name}

    # -- where a run goes --------------------------------------------------------------------------------------------

    @staticmethod
    def decides(phase: Phase) -> bool:
        """Returns whether a person may choose what comes next."""
        return phase.decision_points is not None and phase.decision_points.enabled

    def refs(self, at: PhaseAt) -> Iterator[tuple[Path, str]]:
        """The cascade files that a phase starts."""
        yield from (((*at.path, *path), ref) for path, ref in at.phase.refs)

    def routed(self, at: PhaseAt) -> Iterator[tuple[Path, str]]:
        """The phases that a phase names outside of ``handoffs``: by ``routing``, ``on_error`` or a decision."""
        phase = at.phase
        for key, name in phase.routing.items():
            yield (*at.path, "routing", key), name
        if isinstance(phase.on_error, str):
            yield (*at.path, "on_error"), phase.on_error
        for key, route in phase.decision_points.routing.items() if phase.decision_points else ():
            if route.to is not None and route.to not in ("next", "self"):
                yield (*at.path, "decision_points", "routing", key, "to"), route.to

    @cached_property
    def branches(self) -> frozenset[str]:
        """The phases that are a target somewhere: the order of the list does not lead to them."""
        return frozenset(edge.dst for edge in self._graph.edges if not _falls_through(edge))

    @cached_property
    def reach(self) -> Reach:
        """The walks through the graph. A field of the other kind of phase leads nowhere; a person may end a run."""
        steps: dict[tuple[str, str], None] = {}
        goes_on: set[str] = set()
        for edge in self._graph.edges:
            phase = self.by_name[edge.src].phase
            if edge.kind == "handoff" or _falls_through(edge):
                goes_on.add(edge.src)
            elif not {DECISION: self.decides(phase), ESCALATION: True}.get(edge.label, phase.deterministic):
                continue
            steps[edge.src, edge.dst] = None
        ending = {
            name
            for name, at in self.by_name.items()
            if self.decides(at.phase) or at.phase.human_input or at.phase.screen or self.may_end(at.phase)
        }
        return Reach(self._graph.start, tuple(steps), frozenset(ending | (set(self.names) - goes_on)))

    def may_end(self, phase: Phase) -> bool:
        """Returns whether a handoff of the phase ends the run."""
        return END not in self.by_name and any(handoff.target == END for handoff in phase.handoffs)

    @cached_property
    def leading_to(self) -> dict[str, list[str]]:
        """For each phase, the others with a step to it, in the order of the file."""
        found: dict[str, dict[str, None]] = {name: {} for name in self.names}
        for src, dst in self.reach.steps:
            if src != dst:
                found[dst][src] = None
        return {name: list(sources) for name, sources in found.items()}

    # -- tools -------------------------------------------------------------------------------------------------------

    def has_tools(self, phase: Phase) -> bool:
        """Returns whether the model of a phase may be offered any tool."""
        return bool(phase.tackle) or phase.rag is not None or phase.offers_choice


Check = Callable[[Facts], Iterator[Finding]]
"""One subject of the catalogue: what it finds in a cascade."""


def _falls_through(edge: Edge) -> bool:
    return edge.kind == "routed" and edge.label == NEXT


def bare_model(name: str) -> str:
    """A model's name without the ``::effort`` suffix."""
    return name.partition("::")[0]


def models_of(soundings: Soundings | None, path: Path) -> Iterator[tuple[Path, bool, str]]:
    """Each model that candidates are made with: its path, whether it is a key there, and its name."""
    if soundings is None:
        return
    if isinstance(soundings.models, Mapping):
        yield from (((*path, "soundings", "models", name), True, name) for name in soundings.models)
    else:
        yield from (((*path, "soundings", "models", i), False, name) for i, name in enumerate(soundings.models))
