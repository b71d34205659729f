"""The graph that the engine walks: phases as nodes, and an edge for every way from one phase to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal

from msgspec import Struct

from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.job import Job
from workbench.language.problem import Path, TextSpan
from workbench.language.read.source import Source

Format = Literal["cascade", "dot", "decomposition"]
"""The language that a file is written in."""
Scheduling = Literal["walk", "dataflow"]
"""``walk``: one position that moves along edges; ``dataflow``: a node starts when all before it are done."""
NodeKind = Literal["start", "exit", "llm", "tool", "human", "route", "parallel", "join", "subgraph", "synthesis"]
EdgeKind = Literal["handoff", "routed", "dependency", "restart"]
NOWHERE = TextSpan(1, 1, 1, 1)
COMMAND = "command:pipeline"
"""The tool that runs the commands of a pipeline, in a trusted folder alone; no model is offered it."""

NEXT = "next"
"""Label of the edge to the next phase in the list."""
ROUTING, ON_ERROR, DECISION, ESCALATION = "routing", "on_error", "decision", "escalation"
"""Labels of the edges that the fields of those names (``human_input.escalate_to``) give; their condition is the key
in the file."""


class NodeRules(Struct, frozen=True):
    """How a node runs, as its file says or its format defaults to."""

    max_retries: int = 0
    """Further executions after one that failed: N gives N + 1."""
    retry_policy: str = ""
    """none, standard, aggressive, linear or patient; empty for what ``max_retries`` says."""
    goal_gate: bool = False
    """The run ends well only if the node did, should it have been visited."""
    gate_condition: str = ""
    """The condition that counts for a goal gate in the place of its status; on an exit, of the node before it."""
    retry_target: str = ""
    fallback_retry_target: str = ""
    system_prompt: str = ""
    timeout: float | None = None
    """Seconds."""
    auto_status: bool = False
    allow_partial: bool = False
    """A node whose retries are used up counts as a partial success."""
    max_visits: int = 100
    default_choice: str = ""
    """The choice of a person who does not answer in time: key, label or target of an edge."""
    freeform: bool = False
    """A person answers with a text of their own."""
    join_policy: str = "wait_all"
    """wait_all or first_success."""
    max_parallel: int = 4
    command: str = ""
    """Of a tool node: a command of the shell."""
    child: str = ""
    """Of a subgraph node: the file of the graph it runs; empty for that of the whole graph."""
    child_workdir: str = ""
    child_autostart: bool = True
    once: bool = False
    """A subgraph that runs its child once, without a supervisor."""
    poll_interval: float = 45.0
    """Seconds."""
    max_cycles: int = 1000
    stop_condition: str = ""
    actions: tuple[str, ...] = ("observe", "wait")
    pre_hook: str = ""
    """A command before each tool call of the node."""
    post_hook: str = ""
    max_turns: int = 0
    """Turns of a node that calls tools; 0: the format's own number."""
    strategy: str = ""
    """Context strategy that the file of a pipeline names."""


class Node(Struct, frozen=True):
    """One phase."""

    id: str
    kind: NodeKind
    model: str | None = None
    tools: tuple[str, ...] = ()
    span: TextSpan = NOWHERE
    label: str = ""
    """The name for people; the id where the file has none."""
    prompt: str = ""
    """The task, before variables are filled in. Of a cascade's phase empty: its instructions are a template."""
    type: str = ""
    """The handler that a DOT file means: ``codergen``, ``wait.human``, ``stack.manager_loop``, ..."""
    classes: tuple[str, ...] = ()
    group: str = ""
    """The class derived from the label of the innermost enclosing subgraph: it can key a thread."""
    fidelity: str = ""
    """How much of the run the node sees, where the node itself says so."""
    thread_id: str = ""
    effort: str = ""
    """The reasoning effort that the file asks for."""
    origins: Mapping[str, str] = {}
    """The origins of the model, the provider and the effort: ``node``, ``stylesheet .fast`` or ``graph``."""
    rules: NodeRules = NodeRules()
    raw: Mapping[str, str] = {}
    """Attributes that nothing reads, as written."""

    @property
    def asks_model(self) -> bool:
        """Whether its work is a conversation with a model."""
        return self.kind in ("llm", "synthesis") or (self.kind == "join" and bool(self.prompt))


class Edge(Struct, frozen=True):
    """One way on. ``handoff``: chosen inside the phase; ``routed``: taken by the engine after it; ``restart``: the
    same, into a new run; ``dependency``: all of them must be done."""

    src: str
    dst: str
    kind: EdgeKind
    label: str = ""
    """Of a handoff its description; of a routed edge of a cascade ``next``, ``routing``, ``on_error``, ``decision`` or
    ``escalation``."""
    condition: str = ""
    span: TextSpan = NOWHERE
    weight: int = 0
    fidelity: str = ""
    thread_id: str = ""
    implied: bool = False
    """A dependency that a placeholder names and the list of dependencies does not."""
    raw: Mapping[str, str] = {}


class GraphRules(Struct, frozen=True):
    """Rules for a whole graph."""

    goal: str = ""
    label: str = ""
    retry_target: str = ""
    fallback_retry_target: str = ""
    default_fidelity: str = ""
    default_thread: str = ""
    child: str = ""
    """The file of the child graph of nodes that name none."""
    child_workdir: str = ""
    pre_hook: str = ""
    post_hook: str = ""
    allow: tuple[str, ...] = ()
    """Errors of the lint that count as warnings."""
    most_sent_back: int | None = None
    """How often an exit sends back for goal gates; None for no limit."""
    vars: str = ""
    """Names of variables, each perhaps with a default: ``feature, env=staging``."""
    raw: Mapping[str, str] = {}

    @property
    def variables(self) -> dict[str, str | None]:
        """The variables that the graph declares, with their values: attributes of its own, and ``vars``. None: only a
        run's input can have the value."""
        declared = (one.partition("=") for one in self.vars.split(","))
        listed = {name.strip(): value.strip() if sign else None for name, sign, value in declared if name.strip()}
        return {**self.raw, **listed}


class Graph(Struct, frozen=True, dict=True):
    """A definition as the engine walks it. Edges lead only to nodes that exist, and stand in the order of the file."""

    id: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    format: Format = "cascade"
    scheduling: Scheduling = "walk"
    rules: GraphRules = GraphRules()
    job: Job | None = None
    """The facts of a task decomposition beside its edges."""

    @property
    def start(self) -> str:
        """Where a run begins; empty without nodes."""
        started = next((node.id for node in self.nodes if node.kind == "start"), "")
        return started or (self.nodes[0].id if self.nodes else "")

    def node(self, id: str) -> Node | None:
        """The node of that id."""
        return self._by_id.get(id)

    def out(self, id: str) -> tuple[Edge, ...]:
        """The edges from a node, in the order of the file."""
        return tuple(edge for _, edge in self.ways(id))

    def ways(self, id: str) -> tuple[tuple[int, Edge], ...]:
        """The edges from a node, each with its place among all edges."""
        return self._out.get(id, ())

    def returns(self, id: str) -> bool:
        """Returns whether a walk can come back to a node, by an edge or by a jump after a failure."""
        seen, waiting = set[str](), [id]
        while waiting:
            here = waiting.pop()
            following = {*self._jumps(here), *(edge.dst for edge in self.out(here))} - seen
            seen |= following
            waiting += following
        return id in seen

    def _jumps(self, id: str) -> Iterator[str]:
        """Where a failure of a node leads without an edge; of a goal gate, also where the exit sends the walk."""
        node = self.node(id)
        if node is not None:
            of_graph = (self.rules.retry_target, self.rules.fallback_retry_target) if node.rules.goal_gate else ()
            yield from filter(None, (node.rules.retry_target, node.rules.fallback_retry_target, *of_graph))

    def into(self, id: str) -> tuple[Edge, ...]:
        """The edges to a node, in the order of the file."""
        return self._into.get(id, ())

    @cached_property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """Of each node the nodes that a dependency makes it wait for, each once, in the order of the edges."""
        found: dict[str, dict[str, None]] = {node.id: {} for node in self.nodes}
        for edge in self.edges:
            if edge.kind == "dependency":
                found[edge.dst][edge.src] = None
        return {id: tuple(needs) for id, needs in found.items()}

    @cached_property
    def _by_id(self) -> Mapping[str, Node]:
        return {node.id: node for node in reversed(self.nodes)}

    @cached_property
    def _out(self) -> Mapping[str, tuple[tuple[int, Edge], ...]]:
        out: dict[str, list[tuple[int, Edge]]] = {}
        for number, edge in enumerate(self.edges):
            out.setdefault(edge.src, []).append((number, edge))
        return {id: tuple(edges) for id, edges in out.items()}

    @cached_property
    def _into(self) -> Mapping[str, tuple[Edge, ...]]:
        into: dict[str, list[Edge]] = {}
        for edge in self.edges:
            into.setdefault(edge.dst, []).append(edge)
        return {id: tuple(edges) for id, edges in into.items()}


def lower(cascade: Cascade, source: Source | None = None) -> Graph:
    """The graph of a cascade. Of phases with one name the first counts."""
    phases = {phase.name: (index, phase) for index, phase in reversed(list(enumerate(cascade.phases)))}
    chosen = [list(_chosen(phase, index, source)) for index, phase in enumerate(cascade.phases)]
    branches = {edge.dst for out in chosen for edge in out}
    edges: list[Edge] = []
    for index, phase in enumerate(cascade.phases):
        if phases[phase.name][0] != index:
            continue
        edges += [edge for edge in chosen[index] if edge.dst in phases]
        following = cascade.phases[index + 1].name if index + 1 < len(cascade.phases) else ""
        if not phase.handoffs and following and following not in branches:
            edges.append(Edge(phase.name, following, "routed", NEXT, span=_span(source, ("phases", index, "name"))))
    nodes = tuple(
        _node(phase, index, source) for index, phase in enumerate(cascade.phases) if phases[phase.name][0] == index
    )
    return Graph(cascade.cascade_id, nodes, tuple(edges))


def _node(phase: Phase, index: int, source: Source | None) -> Node:
    kind: NodeKind = "tool" if phase.deterministic else "llm"
    return Node(phase.name, kind, phase.model, phase.tools, _span(source, ("phases", index)))


def _chosen(phase: Phase, index: int, source: Source | None) -> Iterator[Edge]:
    """Every way out of a phase that names its target."""
    base: Path = ("phases", index)
    for at, handoff in enumerate(phase.handoffs):
        span = _span(source, (*base, "handoffs", at))
        yield Edge(phase.name, handoff.target, "handoff", handoff.description or "", span=span)
    for key, target in phase.routing.items():
        yield Edge(phase.name, target, "routed", ROUTING, key, span=_span(source, (*base, "routing", key)))
    if isinstance(phase.on_error, str):
        yield Edge(phase.name, phase.on_error, "routed", ON_ERROR, span=_span(source, (*base, "on_error")))
    decisions = phase.decision_points
    for key, route in decisions.routing.items() if decisions else ():
        if route.to is not None and route.to not in ("next", "self"):
            span = _span(source, (*base, "decision_points", "routing", key))
            yield Edge(phase.name, route.to, "routed", DECISION, key, span=span)
    asked = phase.human_input
    if asked is not None and asked.on_timeout == "escalate" and asked.escalate_to:
        span = _span(source, (*base, "human_input", "escalate_to"))
        yield Edge(phase.name, asked.escalate_to, "routed", ESCALATION, span=span)


def _span(source: Source | None, path: Path) -> TextSpan:
    return source.span(path) if source is not None else NOWHERE


def meeting(graph: Graph, id: str) -> str:
    """The nearest node that every branch of a parallel node can reach: a join first, then by the longest of the ways
    there, the sum of them and the order of the file. Empty where there is none."""
    starts = list(dict.fromkeys(edge.dst for edge in graph.out(id)))
    if not starts:
        return ""
    reached = [_distances(graph, start, id) for start in starts]
    common = [node for node in graph.nodes if node.id != id and all(node.id in ways for ways in reached)]
    if not common:
        return ""
    places = {node.id: place for place, node in enumerate(graph.nodes)}

    def nearness(node_id: str, *, joins: bool) -> tuple[int, int, int, int]:
        ways = [found[node_id] for found in reached]
        return (0 if joins else 1, max(ways), sum(ways), places[node_id])

    return min(common, key=lambda node: nearness(node.id, joins=node.kind == "join")).id


def _distances(graph: Graph, start: str, without: str) -> Mapping[str, int]:
    """Steps from a node to each that it reaches, itself included, on ways that do not come by ``without``."""
    found = {start: 0}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for edge in graph.out(here):
            if edge.dst not in found and edge.dst != without and graph.node(edge.dst) is not None:
                found[edge.dst] = found[here] + 1
                waiting.append(edge.dst)
    return found
