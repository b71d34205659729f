"""From the nodes and edges of a DOT text to the graph that runs, with a phase for each node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.language.clean import clean_line
from workbench.language.dot.attributes import (
    BY_NAME,
    DRAWING,
    SHAPES,
    TABLE,
    TYPES,
    AttributeRow,
    Scope,
    agent_tools,
    duration,
    expected,
    nearest,
    type_of,
    words,
)
from workbench.language.dot.stylesheet import PROPERTIES, Stylesheet, read_stylesheet
from workbench.language.dot.variables import variables
from workbench.language.graph import COMMAND, Edge, Graph, GraphRules, Node, NodeRules
from workbench.language.model.base import FIDELITIES
from workbench.language.model.cascade import Cascade
from workbench.language.problem import Path, Problem, Severity
from workbench.language.read.dot import Attribute, Attributes, DotFile, DotNode, nearest_id, read_dot
from workbench.language.read.reading import Fault
from workbench.language.read.source import Source, Spot, value_offsets
from workbench.language.words import SHELL

MAX_TURNS = 30
"""Turns of a node that may call tools and does not say how many."""
MOST_COMPARED = 20_000
"""Comparisons of names (50 us each) in search of the nearest one to a wrong name; of one file."""
_SEVERITY = {"stylesheet_property": Severity.WARNING, "alias": Severity.INFO}


class Pipeline(Struct, frozen=True):
    """A DOT text that was read."""

    source: Source
    graph: Graph | None
    cascade: Cascade | None
    """A phase for each node, in the order of the graph's nodes. None without nodes."""
    problems: tuple[Problem, ...]
    broken: bool
    """Parts of the text were not understood."""


def read_pipeline(text: str, file: str, stem: str, bom: str = "") -> Pipeline:
    """Read a DOT text; ``stem`` names a graph without a name. Never raises for what the text holds."""
    read = read_dot(text)
    builder = _Builder(text, read, stem)
    graph = builder.graph()
    data = builder.data(graph)
    source = Source(text, file, "dot", data, bom, DotLayout(text, read, builder.origins, builder.kept))
    problems = [
        Problem(each.severity, each.code, each.message, file, source.between(each.start, each.end), (), each.hint)
        for each in (*read.faults, *builder.faults)
    ]
    problems.sort(key=lambda problem: (problem.span, problem.code))
    if not read.nodes:
        if not problems:
            span = source.between(read.start, read.end)
            problems.append(Problem(Severity.ERROR, "L203", "the graph has no nodes", file, span))
        return Pipeline(source, None, None, tuple(problems), read.broken)
    spanned = _spanned(graph, read, builder.kept, source)
    phases = [{key: value for key, value in phase.items() if key != "attributes"} for phase in data["phases"]]
    cascade = Cascade.model_validate(
        {key: data[key] for key in ("cascade_id", "description", "strategy") if key in data} | {"phases": phases}
    )
    return Pipeline(source, spanned, cascade, tuple(problems), read.broken)


def _spanned(graph: Graph, read: DotFile, kept: tuple[int, ...], source: Source) -> Graph:
    nodes = tuple(
        replace(node, span=source.between(found.start, found.end))
        for node, found in zip(graph.nodes, read.nodes.values(), strict=True)
    )
    edges = tuple(
        replace(edge, span=source.between(read.edges[at].start, read.edges[at].end))
        for edge, at in zip(graph.edges, kept, strict=True)
    )
    return replace(graph, nodes=nodes, edges=edges)


class _Values:
    """The attributes of one thing by their names in the table, aliases resolved."""

    def __init__(self, attributes: Attributes, scope: Scope, builder: _Builder) -> None:
        self.scope = scope
        self.found: dict[str, Attribute] = {}
        self.raw: dict[str, str] = {}
        known = BY_NAME[scope]
        for key, attribute in attributes.items():
            row = known.get(key)
            if row is None:
                self.raw[key] = attribute.value
                builder.unread(attribute, scope)
                continue
            if key in row.dialects:
                builder.alias(attribute, row.name)
                if row.name in attributes:
                    continue
            if wrong := expected(row, attribute.value):
                builder.wrong(attribute, wrong)
                continue
            if row.choices and attribute.value not in row.choices:
                builder.choice(attribute, row)
                if row.choices == FIDELITIES or row.kind != "text" or key in ("join_policy", "retry_policy"):
                    continue
            if row.kind == "duration" and attribute.value.isdigit():
                builder.once("dot_tolerated", "a bare number for a duration is read as seconds", attribute)
            bare = row.kind in ("count", "switch") or (row.kind == "gate" and "=" not in attribute.value)
            if bare and attribute.quoted:
                builder.once(
                    "dot_tolerated",
                    "numbers and switches in quotes are read by what their attribute expects",
                    attribute,
                )
            self.found[row.name] = attribute

    def text(self, name: str, default: str = "") -> str:
        found = self.found.get(name)
        return default if found is None else found.value

    def count(self, name: str, default: int) -> int:
        found = self.found.get(name)
        return default if found is None else int(found.value.partition(".")[0])

    def switch(self, name: str, default: bool) -> bool:
        found = self.found.get(name)
        return default if found is None else found.value == "true"

    def seconds(self, name: str) -> float | None:
        found = self.found.get(name)
        return None if found is None else duration(found.value)


class _Builder:
    def __init__(self, text: str, read: DotFile, stem: str) -> None:
        self.text = text
        self.read = read
        self.stem = stem
        self.faults: list[Fault] = []
        self.origins: dict[tuple[str | int, ...], Attribute] = {}
        """The attribute that a value came from which stands elsewhere than at its node, by its path."""
        kept = [at for at, edge in enumerate(read.edges) if edge.src in read.nodes and edge.dst in read.nodes]
        self.kept = tuple(kept)
        """The edges whose ends exist."""
        self._noted: set[tuple[str, str]] = set()
        self._at: set[tuple[str, int]] = set()
        self._unread: dict[tuple[Scope, str], list[Attribute]] = {}
        self._of_graph = _Values(read.attributes, "graph", self)
        self._sheet = self._stylesheet()
        self._shapes = self._file_shapes()

    # -- what is said -------------------------------------------------------------------------------------------------

    def _say(self, severity: Severity, code: str, message: str, start: int, end: int, hint: str = "") -> None:
        # An attribute that comes from a default is looked at for every node that has it.
        if (code, start) not in self._at:
            self._at.add((code, start))
            self.faults.append(Fault(severity, code, message, start, end, hint))

    def once(self, code: str, message: str, at: Attribute) -> None:
        if (code, message) not in self._noted:
            self._noted.add((code, message))
            self._say(Severity.INFO, code, message, at.start, at.end)

    def alias(self, at: Attribute, name: str) -> None:
        if ("alias", at.key) not in self._noted:
            self._noted.add(("alias", at.key))
            self._say(Severity.INFO, "alias", f"'{at.key}' is read as '{name}'", at.key_start, at.key_end)

    def wrong(self, at: Attribute, wanted: str) -> None:
        message = f"'{at.key}' must be {wanted}, got '{clean_line(at.value, 60)}'"
        self._say(Severity.ERROR, "attribute_value", message, at.start, at.end)

    def choice(self, at: Attribute, row: AttributeRow) -> None:
        code = "fidelity_valid" if row.choices == FIDELITIES else "attribute_choice"
        meant = nearest(at.value, row.choices)
        hint = f"did you mean '{meant}'?" if meant else ""
        message = f"'{at.key}' is one of {', '.join(row.choices)}; got '{clean_line(at.value, 60)}'"
        self._say(Severity.WARNING, code, message, at.start, at.end, hint)

    def unread(self, at: Attribute, scope: Scope) -> None:
        """An attribute that nothing reads: told once for each name, at the end."""
        if at.key not in DRAWING and not at.key.startswith(("human.", "context.", "workbench.note")):
            self._unread.setdefault((scope, at.key), []).append(at)

    def told_unread(self, named: Set[str]) -> None:
        """One warning for each name of an attribute that nothing reads; prompts read those of the graph that they have
        ``named``."""
        for (scope, key), found in self._unread.items():
            if scope == "graph" and key in named:
                continue
            places = len({at.start for at in found})
            meant = nearest(key, BY_NAME[scope])
            others = [other for other in TABLE if other != scope and key in BY_NAME[other]]
            hint = f"did you mean '{meant}'?" if meant else f"it belongs to the {others[0]}" if others else ""
            more = f", {places} times" if places > 1 else ""
            thing = "an edge" if scope == "edge" else f"a {scope}"
            message = f"nothing reads the attribute '{clean_line(key, 60)}' of {thing}{more}"
            self._say(Severity.WARNING, "attribute_unknown", message, found[0].key_start, found[0].key_end, hint)

    # -- the graph ----------------------------------------------------------------------------------------------------

    def graph(self) -> Graph:
        """The graph, its places aside."""
        read, found = self.read, self._of_graph
        for name, at in found.found.items():
            if at.key != name:
                self.origins["graph", name] = at
        nodes = tuple(self._node(index, node) for index, node in enumerate(read.nodes.values()))
        edges = tuple(self._edge(at) for at in self.kept)
        self._implicit()
        texts = (text for node in nodes for text in (node.prompt, node.rules.system_prompt))
        self.told_unread({variable.name for text in texts for variable in variables(text)})
        rules = GraphRules(
            found.text("goal"),
            found.text("label"),
            found.text("retry_target"),
            found.text("fallback_retry_target"),
            found.text("default_fidelity"),
            found.text("default_thread"),
            found.text("stack.child_dotfile"),
            found.text("stack.child_workdir"),
            found.text("tool_hooks.pre"),
            found.text("tool_hooks.post"),
            words(found.text("workbench.allow")),
            found.count("max_goal_gate_redirects", 0) if "max_goal_gate_redirects" in found.found else None,
            found.text("vars"),
            found.raw,
        )
        return Graph(read.id or self.stem, nodes, edges, "dot", "walk", rules)

    def _implicit(self) -> None:
        declared = [node.id for node in self.read.nodes.values() if node.declared]
        looked_for = 0
        for node in self.read.nodes.values():
            if not node.declared:
                looked_for += len(declared)
                meant = nearest_id(node.id, declared) if looked_for <= MOST_COMPARED else ""
                hint = f"did you mean '{meant}'?" if meant else f'declare it: {node.id} [label="…"]'
                message = f"node '{node.id}' is named only by an edge"
                self._say(Severity.WARNING, "implicit_node", message, node.start, node.end, hint)

    def _node(self, index: int, read: DotNode) -> Node:
        found = _Values(read.attributes, "node", self)
        shape = found.text("shape")
        type, unknown = type_of(read.id, found.text("type"), shape, self._shapes)
        if unknown:
            self._unknown_type(found, unknown)
        groups, group = self._classes(read)
        classes = tuple(dict.fromkeys((*words(found.text("class").replace(" ", ",")), *groups)))
        kind = TYPES[type]
        values = self._settings(index, read.id, shape or "box", classes, found)
        label = found.text("label") or read.id
        prompt = found.text("prompt")
        if file := found.text("prompt_file"):
            prompt = "@" + file
        for name in ("prompt_file", "prompt", "label"):
            if name in found.found:
                self.origins["phases", index, "instructions"] = found.found[name]
                break
        if kind == "llm" and not prompt:
            prompt = label
        of_graph = self._of_graph

        def inherited(name: str) -> str:
            """As the node says, also where that is nothing; else as the graph does."""
            return found.text(name, of_graph.text(name))

        max_retries = found.count("max_retries", of_graph.count("default_max_retries", 0))
        gate = found.text("goal_gate")
        rules = NodeRules(
            max_retries=max_retries,
            retry_policy=found.text("retry_policy"),
            goal_gate=gate not in ("", "false"),
            gate_condition="" if gate in ("true", "false") else gate,
            retry_target=found.text("retry_target"),
            fallback_retry_target=found.text("fallback_retry_target"),
            system_prompt=found.text("system_prompt"),
            timeout=found.seconds("timeout"),
            auto_status=found.switch("auto_status", False),
            allow_partial=found.switch("allow_partial", False),
            max_visits=found.count("max_visits", 100),
            default_choice=found.text("human.default_choice"),
            freeform=found.text("mode") == "freeform",
            join_policy=found.text("join_policy", "wait_all"),
            max_parallel=max(1, found.count("max_parallel", 4)),
            command=found.text("tool_command"),
            child=inherited("stack.child_dotfile"),
            child_workdir=inherited("stack.child_workdir"),
            child_autostart=found.switch("stack.child_autostart", True),
            once=type == "subgraph",
            poll_interval=found.seconds("manager.poll_interval") or 45.0,
            max_cycles=found.count("manager.max_cycles", 1000),
            stop_condition=found.text("manager.stop_condition"),
            actions=words(found.text("manager.actions", "observe,wait")),
            pre_hook=inherited("tool_hooks.pre"),
            post_hook=inherited("tool_hooks.post"),
            max_turns=found.count("workbench.max_turns", 0),
            strategy=found.text("workbench.strategy"),
        )
        for name, at in found.found.items():
            if at.key != name:
                self.origins["phases", index, "attributes", name] = at
        if "workbench.strategy" in found.found:
            self.origins["phases", index, "strategy"] = found.found["workbench.strategy"]
        for key in ("timeout", "fidelity", "thread_id"):
            if key in found.found:
                self.origins["phases", index, key] = found.found[key]
        listed = found.found.get("workbench.tools") or of_graph.found.get("workbench.tools")
        tools = self._tools(listed) if listed is not None and type == "codergen" else ()
        if listed is not None and tools:
            self.origins["phases", index, "tackle"] = listed
        return Node(
            read.id,
            kind,
            _model(values) if kind in ("llm", "join") else None,
            (SHELL,) if kind == "tool" else tools,
            label=label,
            prompt=prompt,
            type=type,
            classes=classes,
            group=group,
            fidelity=found.text("fidelity"),
            thread_id=found.text("thread_id"),
            effort=values.get("reasoning_effort", ("", ""))[0],
            origins={name: origin for name, (_, origin) in values.items()},
            rules=rules,
            raw=found.raw,
        )

    def _tools(self, listed: Attribute) -> tuple[str, ...]:
        """The tools that an attribute lists; those of other programs as what does the same here."""
        if listed.key == "workbench.tools":
            return words(listed.value)
        tools, absent = agent_tools(listed.value)
        if absent:
            told = ", ".join(f"'{clean_line(name, 40)}'" for name in absent)
            self._say(Severity.WARNING, "tool_absent", f"not here, and not offered: {told}", listed.start, listed.end)
        return tools

    def _unknown_type(self, found: _Values, unknown: str) -> None:
        key = "type" if unknown.startswith("type") else "shape"
        at = found.found[key]
        known: Iterable[str] = TYPES if key == "type" else self._shapes
        meant = nearest(at.value, known)
        hint = f"did you mean '{meant}'?" if meant else "it runs as a model phase"
        self._say(Severity.WARNING, "type_known", f"unknown {unknown}", at.start, at.end, hint)

    def _classes(self, read: DotNode) -> tuple[list[str], str]:
        """The classes of the subgraphs around a node, and that of the innermost with a label."""
        deepest, group, found = -1, "", list[str]()
        for each in read.groups:
            chain, parent = [], each
            while parent is not None:
                chain.append(parent)
                parent = parent.parent  # type: ignore[assignment]
            names = [derived_class(one.label) for one in chain if derived_class(one.label)]
            found += names
            if names and len(chain) > deepest:
                deepest, group = len(chain), names[0]
        return found, group

    def _settings(
        self, index: int, id: str, shape: str, classes: tuple[str, ...], found: _Values
    ) -> dict[str, tuple[str, str]]:
        """Each of the properties that a stylesheet may set: value, and what it comes from."""
        values: dict[str, tuple[str, str]] = {}
        for name in PROPERTIES:
            path = ("phases", index, "model" if name == "llm_model" else name)
            if name in found.found:
                values[name] = found.text(name), "node"
                self.origins[path] = found.found[name]
            elif (styled := self._sheet.value(name, id, shape, classes)) is not None:
                rule, declared = styled
                values[name] = declared.value, f"stylesheet {rule.selector}"
                self.origins[path] = self._of_graph.found["model_stylesheet"]
            elif name in self._of_graph.found:
                values[name] = self._of_graph.text(name), "graph"
                self.origins[path] = self._of_graph.found[name]
        return values

    def _edge(self, at: int) -> Edge:
        read = self.read.edges[at]
        found = _Values(read.attributes, "edge", self)
        return Edge(
            read.src,
            read.dst,
            "restart" if found.switch("loop_restart", False) else "routed",
            found.text("label"),
            found.text("condition"),
            weight=found.count("weight", 0),
            fidelity=found.text("fidelity"),
            thread_id=found.text("thread_id"),
            raw=found.raw,
        )

    def _stylesheet(self) -> Stylesheet:
        at = self._of_graph.found.get("model_stylesheet")
        if at is None:
            return Stylesheet()
        sheet = read_stylesheet(at.value)
        offsets = value_offsets(self.text, at.start, at.end, '"' if at.quoted else "", at.value, "dot") or [at.start]
        for fault in sheet.faults:
            if fault.code == "alias" and ("alias", fault.message) in self._noted:
                continue
            self._noted.add((fault.code, fault.message))
            severity = _SEVERITY.get(fault.code, Severity.ERROR)
            start = offsets[min(fault.at, len(offsets) - 1)]
            end = offsets[min(fault.at + fault.length, len(offsets) - 1)]
            self._say(severity, fault.code, fault.message, start, max(end, start + 1), fault.hint)
        return sheet

    def _file_shapes(self) -> Mapping[str, str]:
        at = self._of_graph.found.get("workbench.shapes")
        shapes = dict(SHAPES)
        for pair in words(at.value) if at is not None else ():
            shape, _, type = (part.strip() for part in pair.partition("="))
            if type in TYPES:
                shapes[shape] = type
            else:
                assert at is not None
                hint = f"types are {', '.join(TYPES)}"
                self._say(
                    Severity.ERROR,
                    "attribute_value",
                    f"'{clean_line(pair, 60)}' is not of the form shape=type",
                    at.start,
                    at.end,
                    hint,
                )
        return shapes

    # -- the document -------------------------------------------------------------------------------------------------

    def data(self, graph: Graph) -> dict[str, Any]:
        """The text as plain values: a phase for each node as a cascade has it, with the attributes as written."""
        read = self.read
        data: dict[str, Any] = {"cascade_id": graph.id}
        if graph.rules.goal:
            data["description"] = graph.rules.goal
            self.origins["description",] = self._of_graph.found["goal"]
        if (strategy := self._of_graph.found.get("workbench.strategy")) is not None:
            data["strategy"] = strategy.value
            self.origins["strategy",] = strategy
        data["graph"] = {key: at.value for key, at in read.attributes.items()}
        data["phases"] = [
            {**_phase(node), "attributes": {key: at.value for key, at in found.attributes.items()}}
            for node, found in zip(graph.nodes, read.nodes.values(), strict=True)
        ]
        data["edges"] = [
            {"from": edge.src, "to": edge.dst, **{key: one.value for key, one in read.edges[at].attributes.items()}}
            for edge, at in zip(graph.edges, self.kept, strict=True)
        ]
        return data


def _phase(node: Node) -> dict[str, Any]:
    """A node as a phase of a cascade."""
    phase: dict[str, Any] = {"name": node.id}
    if node.kind == "llm" or (node.kind == "join" and node.prompt):
        phase["instructions"] = node.prompt
        phase["use_native_tools"] = True
        if node.model:
            phase["model"] = node.model
        if node.effort:
            phase["parameters"] = {"reasoning_effort": node.effort}
        if node.tools:
            phase["tackle"] = list(node.tools)
            phase["rules"] = {"max_turns": node.rules.max_turns or MAX_TURNS}
    elif node.kind == "tool":
        phase["tool"] = COMMAND
        phase["inputs"] = {"command": node.rules.command}
        if node.rules.timeout is not None:
            phase["timeout"] = node.rules.timeout
    if node.rules.strategy:
        phase["strategy"] = node.rules.strategy
    if node.fidelity:
        phase["fidelity"] = node.fidelity
    if node.thread_id:
        phase["thread_id"] = node.thread_id
    return phase


def _model(values: Mapping[str, tuple[str, str]]) -> str | None:
    """``provider/model``, as models are named everywhere else."""
    model = values.get("llm_model", ("", ""))[0]
    provider = values.get("llm_provider", ("", ""))[0]
    if not model:
        return None
    return f"{provider}/{model}" if provider and "/" not in model else model


def derived_class(label: str) -> str:
    """The class that a subgraph's label gives its nodes: ``Loop A`` is ``loop-a``."""
    return re.sub(r"[^a-z0-9-]", "", label.lower().replace(" ", "-"))


class DotLayout:
    """Paths: ``phases[i]``, ``phases[i].instructions``, ``phases[i].attributes.KEY``, ``edges[k].KEY``,
    ``graph.KEY``."""

    def __init__(self, text: str, read: DotFile, origins: Mapping[Path, Attribute], kept: tuple[int, ...]) -> None:
        self._text = text
        self._read = read
        self._nodes = list(read.nodes.values())
        self._origins = origins
        self._kept = kept

    def spot(self, path: Path) -> Spot | None:
        if (at := self._origins.get(path)) is not None:
            return _spot(at)
        match path:
            case () | ("phases",) | ("edges",) | ("graph",):
                return Spot(0, len(self._text), kind="mapping")
            case ("cascade_id",):
                return Spot(self._read.start, self._read.end)
            case ("graph", str(key)):
                return _spot(self._read.attributes.get(key))
            case ("phases", int(index), *rest) if 0 <= index < len(self._nodes):
                node = self._nodes[index]
                if rest in ([], ["name"]):
                    return Spot(node.start, node.end)
                return _spot(node.attributes.get(str(rest[1]))) if rest[0] == "attributes" and len(rest) == 2 else None
            case ("edges", int(index), *rest) if 0 <= index < len(self._kept):
                edge = self._read.edges[self._kept[index]]
                if not rest or rest[0] in ("from", "to"):
                    return Spot(edge.start, edge.end)
                return _spot(edge.attributes.get(str(rest[0])))
        return None


def _spot(at: Attribute | None) -> Spot | None:
    if at is None:
        return None
    return Spot(at.start, at.end, (at.key_start, at.key_end), "scalar", '"' if at.quoted else "")
