"""The file as the panes show it before anything ran: the outline of its phases, a card for each, its problems."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from workbench.context.part import PhaseInFile
from workbench.context.parts.auto import Auto
from workbench.context.parts.fidelity import modes
from workbench.context.scope import Arrival
from workbench.context.strategy import SpecError, with_named
from workbench.language.decomposition.waves import waves_of
from workbench.language.graph import meeting
from workbench.language.model.parameters import laid_over, named_parameters
from workbench.language.problem import Problem, Severity
from workbench.views.answer import UNANSWERED
from workbench.views.cells import Row, Span, crop, fit, flat, joined, justify, width_of
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import plural
from workbench.views.text import explained, wrapped
from workbench.views.tree import KIND_WORDS, PhaseOutline

if TYPE_CHECKING:
    from workbench.context.strategy import Strategy
    from workbench.language.graph import Graph, Node
    from workbench.language.model.candidates import Soundings
    from workbench.language.model.cascade import Cascade, Phase
    from workbench.language.model.context import ContextSource
    from workbench.language.read.source import Source


def outline(
    cascade: Cascade | None, source: Source, problems: Sequence[Problem], graph: Graph | None = None
) -> tuple[PhaseOutline, ...]:
    """The phases in the order of the file, with how many problems each has. ``graph``: which gives tasks their wave."""
    if cascade is None:
        return ()
    errors: dict[object, int] = defaultdict(int)
    warnings: dict[object, int] = defaultdict(int)
    for problem in problems:
        if problem.path[:1] == ("phases",) and len(problem.path) > 1:
            counts = errors if problem.severity is Severity.ERROR else warnings
            counts[problem.path[1]] += problem.severity is not Severity.INFO
    waves: dict[str, int] = {}
    if graph is not None and graph.scheduling == "dataflow":
        waves = {name: number for number, wave in enumerate(waves_of(graph), 1) for name in wave}
    kinds = {node.id: kind_word(node) for node in graph.nodes} if graph is not None else {}
    into: dict[str, list[str]] = defaultdict(list)
    for phase in cascade.phases:
        for handoff in phase.handoffs:
            into[handoff.target].append(phase.name)
    found = tuple(
        PhaseOutline(
            phase.name,
            "page" if phase.screen else kinds.get(phase.name) or ("tool" if phase.deterministic else "llm"),
            source.span(("phases", index)).line,
            tuple(into[phase.name]),
            errors[index],
            warnings[index],
            waves.get(phase.name, 0),
        )
        for index, phase in enumerate(cascade.phases)
    )
    return nested(found, graph) if graph is not None and graph.format == "dot" else found


def kind_word(node: Node) -> str:
    """Returns the kind of a node, in one word: gate, tool, parallel, join, manager, child, conditional, start, exit,
    llm."""
    return "child" if node.kind == "subgraph" and node.rules.once else KIND_WORDS.get(node.kind, node.kind)


MOST_NESTED = 1_000
"""Nodes from which on branches are not put below their parallel node: to find them takes a walk for each."""


def nested(phases: Sequence[PhaseOutline], graph: Graph) -> tuple[PhaseOutline, ...]:
    """The phases of a pipeline with those of each branch behind their parallel node. A node that several branches come
    by stands in the first; one that can be reached without the parallel node is in none."""
    parallel = [node.id for node in graph.nodes if node.kind == "parallel"]
    if not parallel or len(graph.nodes) > MOST_NESTED:
        return tuple(phases)
    inside: dict[str, tuple[str, str]] = {}
    sizes: dict[str, int] = {}
    for id in parallel:
        outside, meets = _reached(graph, graph.start, {id}), meeting(graph, id)
        branches = [(edge.dst, _reached(graph, edge.dst, {id, meets} | outside)) for edge in graph.out(id)]
        size = len(set().union(*(found for _, found in branches)))
        for target, found in branches:
            for name in found:
                # The parallel node around the fewest is the innermost.
                if name not in inside or (inside[name][0] != id and size < sizes[inside[name][0]]):
                    inside[name] = (id, target)
        sizes[id] = size
    below: dict[str, list[PhaseOutline]] = defaultdict(list)
    for phase in phases:
        below[inside.get(phase.name, ("", ""))[0]].append(phase)

    def placed(parent: str, depth: int) -> Iterator[PhaseOutline]:
        targets = [edge.dst for edge in graph.out(parent)]
        of_branch = {phase.name: inside.get(phase.name, ("", ""))[1] for phase in below[parent]}
        order = {target: place for place, target in enumerate(targets)}
        for phase in sorted(below[parent], key=lambda one: order.get(of_branch[one.name], 0)):
            yield replace(phase, depth=depth, branch=of_branch[phase.name], parallel=parent)
            if phase.name in below:
                yield from placed(phase.name, depth + 1)

    return tuple(placed("", 0))


def _reached(graph: Graph, start: str, without: Set[str]) -> set[str]:
    """The nodes that a walk from one can come to without some others; the first included, unless it is one of them."""
    found, waiting = set[str](), [start]
    while waiting:
        here = waiting.pop()
        if here and here not in found and here not in without:
            found.add(here)
            waiting += [edge.dst for edge in graph.out(here)]
    return found


def phase_lines(cascade: Cascade | None, source: Source, name: str) -> tuple[int, int]:
    """First and last line of a phase in the file; ``(1, 1)`` when it is not there."""
    for index, phase in enumerate(cascade.phases if cascade else ()):
        if phase.name == name:
            span = source.span(("phases", index))
            return span.line, max(span.line, span.end_line - (1 if span.end_column == 1 else 0))
    return 1, 1


def budget_of(cascade: Cascade | None, name: str) -> int | None:
    """Tokens that a request of the phase may have; None if the file sets no limit."""
    budget = cascade.token_budget if cascade else None
    if budget is None:
        return None
    return max(0, budget.phase_overrides.get(name, budget.max_total) - budget.reserve_for_output)


class Fact(NamedTuple):
    """A line of the card of a phase."""

    label: str
    spans: tuple[Span, ...]
    fields: tuple[str, ...] = ()
    """Fields of the phase that it comes from, the first that the file has."""
    line: int = 0
    """The line of the file that says so; 0 if none does."""
    is_input: bool = False


class Card(Rows):
    """Lines about a phase, each with its line of the file, below a hint."""

    spreads = True

    def __init__(self, name: str, state: str, hint: str, facts: Iterable[Fact]) -> None:
        """``state``: the text beside the name."""
        self.title = (("Context", "title"), (f"  {flat(name)}", "name"), (state, "dim"))
        self.hint = hint
        self.facts = tuple(facts)

    def heads(self, width: int) -> Sequence[Row]:
        lines = explained((flat(self.hint, 1000),), width - 2)
        return tuple(Row(crop(((f" {line}", "dim"),), width)) for line in lines[:HINT])

    def __len__(self) -> int:
        return len(self.facts)

    def fact(self, index: int) -> Fact | None:
        """The line of the card; None if it has none."""
        return self.facts[index] if 0 <= index < len(self.facts) else None

    def row(self, index: int, width: int) -> Row:
        fact = self.facts[index]
        line: tuple[Span, ...] = ((f":{fact.line} ", "faint"),) if fact.line else ()
        left = crop(((f" {fit(fact.label, 12)}", "head"), *fact.spans), max(1, width - width_of(line) - 1))
        return Row(justify(left, line, width))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """A fact in as many lines as it needs."""
        fact = self.facts[index]
        room = width - 13 - 8
        if room < NARROWEST or width_of(fact.spans) <= room:
            return ()
        first = self.row(index, width)
        lines = wrapped(fact.spans, room)
        blank: Span = (" " * 13, "plain")
        right: tuple[Span, ...] = ((f":{fact.line} ", "faint"),) if fact.line else ()
        head: tuple[Span, ...] = ((f" {fit(fact.label, 12)}", "head"), *lines[0])
        rest = (Row(crop((blank, *line), width), first.tone) for line in lines[1:])
        return (Row(justify(head, right, width), first.tone), *rest)


HINT = 6
"""Most lines of what stands above the facts."""
NARROWEST = 20
"""Cells below which nothing is wrapped."""


class CardRows(Card):
    """Facts about a phase without a call: the inputs of a run, what the phase may use and sees."""

    def __init__(
        self,
        cascade: Cascade,
        phase: Phase,
        hint: str,
        default_model: str = "",
        status: str = "",
        *,
        source: Source | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        """``status`` is that of its last visit; empty if it has not run. ``source`` is the file, for lines; ``given``
        is the input of the next run, None if none can start here.
        """
        stands = UNANSWERED if status == "waiting" else f"{status}, no model call"
        state = f" · {stands}" if status else " · not run yet"
        facts = [*(_inputs(cascade, given) if given is not None else ()), *phase_facts(cascade, phase, default_model)]
        facts = [fact._replace(line=_line_of(cascade, phase, source, fact.fields)) for fact in facts]
        super().__init__(phase.name, state, hint, facts)


def _line_of(cascade: Cascade, phase: Phase, source: Source | None, fields: Sequence[str]) -> int:
    if source is None:
        return 0
    at = next((index for index, other in enumerate(cascade.phases) if other is phase), 0)
    paths = (path for name in fields for path in (("phases", at, name), (name,)))
    return next((source.key_span(path).line for path in paths if source.has(path)), 0)


def _inputs(cascade: Cascade, given: Mapping[str, Any]) -> Iterable[Fact]:
    """Inputs of the next run, and those that it lacks."""
    for number, name in enumerate(cascade.inputs_schema):
        if name in given:
            text = given[name] if isinstance(given[name], str) else json.dumps(given[name], ensure_ascii=False)
            value: Span = (flat(text, 400), "plain")
        else:
            value = (told("not set: {run.inputs} sets it, or the run asks"), "warning")
        label = "" if number else "inputs"
        yield Fact(label, ((f"{flat(name)} = ", "dim"), value), is_input=True)


def phase_facts(cascade: Cascade, phase: Phase, default_model: str, graph: Graph | None = None) -> Iterable[Fact]:
    """Yields the rights of a phase, and the context that it sees; ``graph`` is the pipeline or decomposition that it is
    a node of."""
    if phase.deterministic:
        if phase.screen:
            yield Fact("page", ((flat(phase.hitl_title or "for a person, who answers it"), "plain"),), ("htmx",))
        elif (rule := phase.for_each_row) is not None:
            what = flat(rule.cascade) if rule.cascade is not None else f"'{flat(rule.instructions or '')}'"
            yield Fact("each row", ((f"of {flat(rule.table)}: ", "dim"), (what, "plain")), ("for_each_row",))
        else:
            yield Fact("tool", ((flat(phase.tool or ""), "plain"),), ("tool",))
        for name, value in phase.inputs.items():
            yield Fact("", ((f"{flat(name)} = ", "dim"), (flat(str(value)), "plain")), ("inputs",))
    else:
        default = f"the default: {default_model}" if default_model else "the default"
        yield Fact("model", ((flat(phase.model or default), "plain" if phase.model else "dim"),), ("model",))
        if sent := laid_over(named_parameters(cascade), named_parameters(phase)):
            words = ", ".join(
                f"{flat(name)} {flat(json.dumps(value, ensure_ascii=False))}" for name, value in sent.items()
            )
            yield Fact("sent with", ((words, "plain"),), (*sent, "parameters"))
        yield Fact("sees", _sees(cascade, phase, graph), ("context", "inject_from", "context_default"))
        names = "chosen by the Quartermaster" if phase.manifest else ", ".join(map(flat, phase.tools))
        native = ("  as native tool calls", "dim") if phase.use_native_tools else ("", "plain")
        yield Fact("tools", ((names or "none", "plain" if names else "dim"), native), ("tackle",))
        if phase.rag is not None:
            by = f"by similarity ({flat(phase.rag.model)})" if phase.rag.model else "by words"
            yield Fact("documents", ((flat(phase.rag.directory), "plain"), (f"  searched {by}", "dim")), ("rag",))
        if cascade.memory and cascade.memory in phase.tools:
            yield Fact("memory", ((flat(cascade.memory), "plain"), ("  what earlier runs said", "dim")), ("memory",))
        yield Fact("turns", _turns(phase), ("rules",))
        if masking := _masking(cascade, phase):
            yield Fact("older turns", ((masking, "plain"),), ("strategy", "intra_context", "auto_context"))
    budget = budget_of(cascade, phase.name)
    if budget is not None and cascade.token_budget is not None:
        words = f"{budget:,} tokens, then {cascade.token_budget.strategy}"
        yield Fact("budget", ((words, "plain"),), ("token_budget",))
    if checks := _checks(phase):
        yield Fact("checks", ((checks, "plain"),), ("wards", "output_schema"))
    if people := _people(phase):
        yield Fact("people", ((people, "plain"),), ("audibles", "decision_points", "human_input"))
    if phase.handoffs:
        yield Fact("next", ((", ".join(flat(h.target) for h in phase.handoffs), "plain"),), ("handoffs",))
    if phase.soundings is not None:
        yield Fact("soundings", ((_candidates(phase.soundings), "plain"),), ("soundings",))


def _candidates(soundings: Soundings) -> str:
    template = soundings.template
    return f"{flat(template)} candidates" if template else plural(soundings.candidates, "candidate")


def _people(phase: Phase) -> str:
    """The points at which a person takes part."""
    asked, spoken, decides = phase.human_input, phase.audibles, phase.decision_points
    parts = [
        f"may speak to it {plural(spoken.budget, 'time')} (S)" if spoken is not None and spoken.enabled else "",
        "decide where its output asks" if decides is not None and decides.enabled else "",
        f"are asked at its end: {asked.type.replace('_', ' ')}" if asked is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _strategy(cascade: Cascade, phase: Phase) -> Strategy | None:
    """The strategy of the field ``strategy``; None if it is missing or cannot be read."""
    spec = phase.strategy or cascade.strategy
    try:
        return with_named(cascade.strategies)(spec) if spec else None
    except SpecError:
        return None


def _sees(cascade: Cascade, phase: Phase, graph: Graph | None) -> tuple[Span, ...]:
    strategy = _strategy(cascade, phase)
    if strategy is not None and strategy.enters is not None:
        return ((f"what the strategy gives: {flat(phase.strategy or cascade.strategy or '')}", "plain"),)
    if levels := modes(cascade, phase, (), Arrival(graph=graph)):
        edge = ", unless an edge into it says another" if graph is not None and graph.format == "dot" else ""
        return ((f"what fidelity {flat(levels[0].value)} gives{edge}", "plain"),)
    parts: list[list[Span]] = []
    rules = phase.context
    if rules is not None:
        if rules.include_input:
            parts.append([("↪ ", "injected"), ("input", "plain")])
        parts += [_source(source) for source in rules.from_]
        if rules.mode == "auto":
            parts.append([(f"what selection adds{_selection(cascade, phase)}", "plain")])
        if not parts:
            parts.append([("nothing from before: a clean start", "plain")])
        return joined(parts, "  ")
    if phase.inject_from is not None:
        return joined(
            [*(_source(source) for source in phase.inject_from), [("then all that came before", "plain")]], "  "
        )
    clean = cascade.context_default == "clean"
    return (("only its task and its own turns" if clean else "all that came before (snowball)", "plain"),)


def _selection(cascade: Cascade, phase: Phase) -> str:
    """Returns how it selects: `` (llm, at most 1,200 tokens)``."""
    auto = Auto.from_file(PhaseInFile(cascade, phase, ()))
    return f" ({auto.strategy}, at most {auto.max_tokens:,} tokens)" if auto is not None else ""


def _source(source: ContextSource) -> list[Span]:
    include = "+".join(source.include) if source.include else "output"
    return [("↪ ", "injected"), (f"{flat(source.phase)}.{include}", "plain")]


def _turns(phase: Phase) -> tuple[Span, ...]:
    rules = phase.rules
    text = f"up to {rules.max_turns}" if rules.max_turns > 1 else "1"
    attempts = f", {rules.max_attempts} attempts" if rules.max_attempts > 1 else ""
    until = f", until {flat(str(rules.loop_until))} passes" if rules.loop_until else ""
    return ((text + attempts + until, "plain"),)


def _masking(cascade: Cascade, phase: Phase) -> str:
    strategy = _strategy(cascade, phase)
    if strategy is not None and not strategy.survives and strategy.fits is None:
        return ""
    if phase.strategy or cascade.strategy:
        return flat(phase.strategy or cascade.strategy or "")
    rules = phase.intra_context or (cascade.auto_context.intra_phase if cascade.auto_context else None)
    if rules is None or not rules.enabled:
        return ""
    return f"tool results masked after {plural(rules.mask_observations_after, 'turn')}, window {rules.window}"


def _checks(phase: Phase) -> str:
    wards = phase.wards
    names = [
        *(f"pre {ward.validator}" for ward in wards.pre),
        *(f"turn {ward.validator}" for ward in wards.turn),
        *(f"post {ward.validator}" for ward in wards.post),
    ]
    if phase.output_schema is not None:
        names.append(f"output schema (enforced: {phase.enforce})" if phase.enforce else "output schema")
    return ", ".join(flat(name) for name in names)
