"""A node of a pipeline or a decomposition that made no model call: what it is, what it came to, and its ways on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.analysis.ways import Way, ways_on
from workbench.engine.journal.parts import VisitState
from workbench.language.graph import Graph, Node
from workbench.views.cells import Span, flat
from workbench.views.definition import Card, Fact, kind_word, phase_facts
from workbench.views.numbers import plural, seconds
from workbench.views.signs import status_sign
from workbench.views.ways import way_spans, why_words
from workbench.workspace.mermaid import why as edge_words

if TYPE_CHECKING:
    from workbench.language.model.cascade import Cascade, Phase

WAYS_ON = "ways on"
"""Text before the first edge."""
MOST = 400
"""Characters of a prompt or a command."""


class NodeCard(Card):
    """A node; after a visit also its outcome, and why its edge was taken."""

    spreads = True

    def __init__(
        self,
        graph: Graph,
        node: Node,
        visit: VisitState | None,
        hint: str,
        status: str = "",
        *,
        definition: tuple[Cascade, Phase] | None = None,
        default_model: str = "",
    ) -> None:
        """``visit`` is its last one, None before any; ``status``: how that stands; ``definition``: the phase that it is
        lowered to.
        """
        self.visit = visit
        state = f" · {kind_word(node)} · {status}" if visit is not None else f" · {kind_word(node)} · not run yet"
        facts = [
            *(_came_to(visit, status) if visit is not None else ()),
            *_node_facts(node),
            *(phase_facts(*definition, default_model, graph) if definition is not None and node.asks_model else ()),
            *_ways(graph, node, visit),
        ]
        at = node.span.line
        super().__init__(node.id, state, hint, [fact if fact.line else fact._replace(line=at) for fact in facts])


def _came_to(visit: VisitState, status: str) -> Iterator[Fact]:
    """How a visit ended."""
    mark = status_sign(status)
    took = f"  in {seconds(visit.seconds)}" if visit.seconds is not None else ""
    outcome = visit.outcome
    word = str(outcome.get("outcome") or "")
    words = f" {status}" + (f", outcome {flat(word)}" if word and word != status else "")
    yield Fact("came to", (mark, (f"{words}{took}", "plain")))
    reason = visit.reason or str(outcome.get("failure_reason") or "")
    if reason:
        yield Fact("because", ((flat(reason, MOST), "error" if visit.status == "failed" else "dim"),))
    notes = str(outcome.get("notes") or "")
    if notes and notes != reason:
        yield Fact("notes", ((flat(notes, MOST), "plain"),))
    if outcome.get("preferred_label"):
        yield Fact("label", ((flat(str(outcome["preferred_label"])), "plain"), ("  preferred", "dim")))
    if visit.state_set:
        yield Fact("wrote", ((flat(", ".join(visit.state_set), MOST), "plain"),))


def _node_facts(node: Node) -> Iterator[Fact]:
    """Facts of a node in the file, by its kind."""
    rules = node.rules
    if node.label and node.label != node.id:
        yield Fact("label", ((flat(node.label, MOST), "plain"),))
    if node.type:
        yield Fact("type", ((flat(node.type), "dim"),))
    if node.prompt and node.prompt != node.label:
        yield Fact("asks" if node.kind == "human" else "prompt", ((flat(node.prompt, MOST), "plain"),))
    if rules.command:
        yield Fact("command", ((flat(rules.command, MOST), "plain"),))
    if node.kind == "parallel":
        yield Fact("branches", ((f"{rules.join_policy}, {rules.max_parallel} at once", "dim"),))
    if rules.child:
        yield Fact("child", ((flat(rules.child), "plain"),))
    if node.kind == "subgraph" and not rules.once:
        words = f"every {seconds(rules.poll_interval)}, {plural(rules.max_cycles, 'cycle')} at most"
        stop = f", until {flat(rules.stop_condition)}" if rules.stop_condition else ""
        yield Fact("watches", ((words + stop, "dim"),))
    told = [
        "goal gate" if rules.goal_gate else "",
        f"{plural(rules.max_retries + 1, 'execution')} at most" if rules.max_retries else "",
        f"retry policy {rules.retry_policy}" if rules.retry_policy else "",
        f"timeout {seconds(rules.timeout)}" if rules.timeout is not None else "",
        f"after a failure to {rules.retry_target}" if rules.retry_target else "",
        "partial success counts" if rules.allow_partial else "",
        f"fidelity {node.fidelity}" if node.fidelity else "",
        f"thread {node.thread_id}" if node.thread_id else "",
    ]
    if any(told):
        yield Fact("rules", ((flat(", ".join(filter(None, told))), "dim"),))


def _ways(graph: Graph, node: Node, visit: VisitState | None) -> Iterator[Fact]:
    """Each edge out of it; after a visit with the step at which it won or lost."""
    if visit is None:
        for number, (_, edge) in enumerate(graph.ways(node.id)):
            words = edge_words(edge, graph.format)
            spans: tuple[Span, ...] = (("╌▷ ", "faint"), (flat(edge.dst), "plain"), (f"  {flat(words)}", "dim"))
            yield Fact("" if number else WAYS_ON, spans, line=edge.span.line)
        return
    found = ways_on(graph, visit)
    if found.why:
        target: tuple[Span, ...] = (("→ ", "ok"), (flat(found.to), "bold"), ("  ", "plain")) if found.to else ()
        yield Fact("went on", (*target, (flat(found.why), "dim")))
    for number, way in enumerate(found.ways):
        yield Fact("" if number else WAYS_ON, _spans(way), line=way.line)


def _spans(way: Way) -> tuple[Span, ...]:
    why = why_words(way)
    return (*way_spans(way), (f"  · {flat(why)}" if why else "", "ok" if way.taken else "dim"))
