"""A cascade as a pipeline in DOT, and a pipeline or task decomposition as a cascade, with a list of what is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from workbench.language.decomposition.placeholders import filled_text, same_id
from workbench.language.dot.conditions import ConditionFault, parse
from workbench.language.dot.variables import OUTPUT, variables
from workbench.language.edit.emit import block
from workbench.language.graph import DECISION, ESCALATION, ON_ERROR, ROUTING, Edge, Graph, Node, lower
from workbench.language.load import Loaded
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.flow import END
from workbench.language.read.dot import escaped, is_bare, proposed_id
from workbench.language.words import ASK_HUMAN, SHELL


class Translation(Struct, frozen=True):
    """A definition in another language."""

    text: str
    lost: tuple[str, ...] = ()
    """The facts that the other language cannot express, each in one sentence that begins with the phase."""


class CannotTranslate(Exception):
    """The definition has no counterpart in the other language. The message names the phases."""


# -- a cascade as a pipeline -----------------------------------------------------------------------------------------

_SAID = {"name", "instructions", "tackle", "model", "fidelity", "thread_id", "handoffs", "routing", "use_native_tools"}
"""Fields of a phase that DOT has words for."""
_SAID_OF_FILE = {"cascade_id", "description", "phases", "default_fidelity", "context_default"}
_PLACE = re.compile(r"\{\{\s*(input|state|outputs)\.(\w+)\s*\}\}")


def as_dot(loaded: Loaded) -> Translation:
    """A cascade as a pipeline that loads. Raises CannotTranslate for a file that is not a cascade, or a broken one."""
    cascade = loaded.cascade
    if cascade is None or loaded.own is not None:
        raise CannotTranslate("it is not a cascade without errors")
    return _Dot(cascade).translated()


class _Dot:
    def __init__(self, cascade: Cascade) -> None:
        self.cascade = cascade
        self.graph = lower(cascade)
        self.lost: list[str] = []
        self.ids: dict[str, str] = {}
        for phase in cascade.phases:
            made = proposed_id(phase.name)
            # An id alone makes a node the start or the exit.
            taken = {*self.ids.values(), "start", "Start", "exit", "end"}
            self.ids[phase.name] = next(one for one in _numbered(made) if one not in taken)

    def translated(self) -> Translation:
        cascade = self.cascade
        lines = [f"digraph {proposed_id(cascade.cascade_id)} {{"]
        if cascade.description:
            lines.append(f"  goal={escaped(cascade.description)}")
        snowball = cascade.context_default == "snowball" and cascade.default_fidelity is None
        fidelity = "full" if snowball else cascade.default_fidelity or "truncate"
        lines.append(f"  default_fidelity={_value(fidelity)}")
        if snowball:
            lines.append('  default_thread="all"')
        self._fields("the cascade", cascade.model_fields_set - _SAID_OF_FILE)
        lines += ["", "  start [shape=Mdiamond]", "  exit [shape=Msquare]"]
        for phase in cascade.phases:
            name = self.ids[phase.name]
            if name != phase.name:
                self.lost.append(f"{phase.name}: its name is written '{name}'")
            lines.append(f"  {name} {_list(self._node(phase))}".rstrip())
        lines += ["", f"  start -> {self.ids[self.graph.start]}"]
        for phase in cascade.phases:
            lines += self._edges(phase)
        return Translation("\n".join([*lines, "}", ""]), tuple(dict.fromkeys(self.lost)))

    def _fields(self, whose: str, names: Iterable[str]) -> None:
        if names := sorted(names):
            self.lost.append(f"{whose}: {', '.join(names)}")

    def _node(self, phase: Phase) -> dict[str, str]:
        found: dict[str, str] = {}
        handled = {*_SAID}
        if phase.tool == SHELL and isinstance(command := phase.inputs.get("command"), str):
            found = {"shape": "parallelogram", "tool_command": self._prompt(phase, command)}
            handled |= {"tool", "inputs", "on_error"}
            if phase.timeout is not None:
                found["timeout"] = f"{max(1, round(float(phase.timeout) * 1000))}ms"
                handled.add("timeout")
            self._fields(phase.name, {f"inputs.{key}" for key in phase.inputs if key != "command"})
        else:
            if phase.deterministic:
                what = phase.tool or ("a page" if phase.screen else "for_each_row")
                self.lost.append(f"{phase.name}: it runs {what} without a model; a model is asked")
            found["prompt"] = self._prompt(phase, phase.instructions or phase.name)
            if phase.model:
                found["llm_model"] = phase.model
            if isinstance(effort := phase.parameters.get("reasoning_effort"), str):
                found["reasoning_effort"] = effort
                if len(phase.parameters) == 1:
                    handled.add("parameters")
            if phase.tools:
                found["workbench.tools"] = ",".join(phase.tools)
            if phase.manifest:
                self.lost.append(f"{phase.name}: tools that are chosen for it")
            if phase.tools and phase.rules.max_turns:
                found["workbench.max_turns"] = str(phase.rules.max_turns)
            if phase.rules.model_fields_set <= {"max_turns"}:
                handled.add("rules")
        if phase.fidelity:
            found["fidelity"] = phase.fidelity
        elif {"context", "inject_from"} & phase.model_fields_set:
            found["fidelity"] = "summary:high"
            self.lost.append(f"{phase.name}: which messages it sees; it gets a summary of the run")
            handled |= {"context", "inject_from"}
        if phase.thread_id:
            found["thread_id"] = phase.thread_id
        self._fields(phase.name, phase.model_fields_set - handled)
        return found

    def _prompt(self, phase: Phase, text: str) -> str:
        def variable(match: re.Match[str]) -> str:
            kind, name = match.groups()
            return f"${{{self.ids.get(name, name)}.output}}" if kind == "outputs" else f"${{{name}}}"

        made = _PLACE.sub(variable, text)
        if "{{" in made or "{%" in made:
            self.lost.append(f"{phase.name}: what its template works out; it is sent as written")
        return made

    def _edges(self, phase: Phase) -> list[str]:
        source, names = self.ids[phase.name], {one.name for one in self.cascade.phases}
        written: list[tuple[str, dict[str, str]]] = []
        many = len(phase.handoffs) > 1
        for at, handoff in enumerate(phase.handoffs):
            if handoff.target not in names and handoff.target != END:
                continue
            target = self.ids[handoff.target] if handoff.target in names else "exit"
            how = {"label": handoff.description or (handoff.target if many else "")}
            # Without a choice the first of several handoffs is taken: the heaviest edge.
            how["weight"] = str(len(phase.handoffs) - at) if many else ""
            how |= {"fidelity": handoff.fidelity or "", "thread_id": handoff.thread_id or ""}
            written.append((target, how))
        for edge in self.graph.out(phase.name):
            if edge.kind == "handoff":
                continue
            how = {}
            if edge.label == ON_ERROR:
                how = {"condition": "outcome=fail"}
            elif edge.label == ROUTING:
                how = {"condition": f"outcome={edge.condition}" if is_bare(edge.condition) else ""}
                self.lost.append(f"{phase.name}: routing by '{edge.condition}' of a result is the condition of an edge")
            elif edge.label in (DECISION, ESCALATION):
                self.lost.append(f"{phase.name}: the way to {edge.dst} by {edge.label}")
                continue
            written.append((self.ids[edge.dst], how))
        if all(how.get("condition") for _, how in written):
            written.append(("exit", {}))
        shown = [(target, _list({key: value for key, value in how.items() if value})) for target, how in written]
        return [f"  {source} -> {target} {attributes}".rstrip() for target, attributes in shown]


def _numbered(name: str) -> Iterable[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _value(value: str) -> str:
    return value if is_bare(value) else escaped(value)


def _list(attributes: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{key}={_value(value)}" for key, value in attributes.items())
    return f"[{pairs}]" if pairs else ""


# -- a graph as a cascade --------------------------------------------------------------------------------------------


def as_cascade(loaded: Loaded) -> Translation:
    """A pipeline or task decomposition as a cascade that runs; of a cascade its own text. Raises CannotTranslate for
    branches, joins and child graphs, and for a file with errors."""
    if loaded.own is None:
        return Translation(loaded.source.bom + loaded.source.text)
    if not loaded.ok:
        raise CannotTranslate("it has errors; workbench check tells them")
    graph = loaded.own
    refused = [node.id for node in graph.nodes if node.kind in ("parallel", "join", "subgraph")]
    if refused:
        raise CannotTranslate(f"a cascade has no branches, joins and child graphs: {', '.join(refused)}")
    made = _Cascade(graph)
    document = made.document() if graph.scheduling == "walk" else made.tasks(loaded.cascade)
    return Translation("\n".join([*block(document), ""]), tuple(dict.fromkeys(made.lost)))


class _Cascade:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lost: list[str] = []

    def document(self) -> dict[str, Any]:
        """Of a pipeline."""
        graph, rules = self.graph, self.graph.rules
        names = ("retry_target", "fallback_retry_target", "pre_hook", "post_hook", "default_thread")
        for name in (name for name in names if getattr(rules, name)):
            self.lost.append(f"the graph: {name}")
        first = [edge.dst for edge in self._ways(graph.start)]
        if not first:
            raise CannotTranslate("nothing follows its start")
        if len(first) > 1:
            self.lost.append(f"{graph.start}: of its edges the one to {first[0]} is taken")
        order, waiting = list[str](), [first[0]]
        while waiting:
            here = waiting.pop(0)
            if here in order or self._kind(here) == "exit":
                continue
            order.append(here)
            waiting += [edge.dst for edge in self._ways(here)]
        if not order:
            raise CannotTranslate("it does nothing between its start and its exit")
        left_out = [n.id for n in graph.nodes if n.id not in order and n.kind not in ("start", "exit", "route")]
        self.lost += [f"{name}: no edge leads there" for name in left_out]
        document: dict[str, Any] = {"cascade_id": graph.id}
        if rules.goal:
            document["description"] = rules.goal
        document["default_fidelity"] = rules.default_fidelity or "compact"
        document["phases"] = [self._phase(node) for name in order if (node := graph.node(name)) is not None]
        return document

    def _kind(self, name: str) -> str:
        node = self.graph.node(name)
        return node.kind if node is not None else ""

    def _ways(self, name: str, through: tuple[str, ...] = ()) -> list[Edge]:
        """The edges from a node to what works, the heaviest first; those out of a route in the place of one into it."""
        found: list[Edge] = []
        for edge in sorted(self.graph.out(name), key=lambda edge: -edge.weight):
            if self._kind(edge.dst) != "route":
                found.append(edge)
            elif edge.dst not in through:
                found += self._ways(edge.dst, (*through, edge.dst))
        return found

    def _phase(self, node: Node) -> dict[str, Any]:
        rules, ways = node.rules, self._ways(node.id)
        phase: dict[str, Any] = {"name": node.id}
        if node.kind == "tool":
            phase |= {"tool": SHELL, "inputs": {"command": self._text(node.id, rules.command)}}
            if rules.timeout is not None:
                phase["timeout"] = f"{rules.timeout:g}s"
        elif node.kind == "human":
            names = ", ".join(edge.label or edge.dst for edge in ways)
            asked = self._text(node.id, node.prompt or node.label)
            phase["instructions"] = f"Ask the person, word for word: {asked}\nThey choose among: {names}."
            phase |= {"tackle": [ASK_HUMAN], "rules": {"max_turns": 5}}
            self.lost.append(f"{node.id}: the gate; a model asks the person, and chooses the way that they named")
        else:
            phase["instructions"] = self._text(node.id, node.prompt or node.label)
            if node.tools:
                phase |= {"tackle": list(node.tools), "rules": {"max_turns": rules.max_turns or 30}}
            if node.model:
                phase["model"] = node.model
            if node.effort:
                phase["parameters"] = {"reasoning_effort": node.effort}
        if node.fidelity:
            phase["fidelity"] = node.fidelity
        if node.thread_id or node.group:
            phase["thread_id"] = node.thread_id or node.group
        self._rules(node)
        return phase | self._following(node, ways)

    def _rules(self, node: Node) -> None:
        rules = node.rules
        gone = {
            "max_retries": rules.max_retries,
            "retry_policy": rules.retry_policy,
            "goal_gate": rules.goal_gate,
            "retry_target": rules.retry_target,
            "fallback_retry_target": rules.fallback_retry_target,
            "system_prompt": rules.system_prompt,
            "timeout": rules.timeout is not None and node.kind != "tool",
            "allow_partial": rules.allow_partial,
            "human.default_choice": rules.default_choice,
            "tool_hooks": rules.pre_hook or rules.post_hook,
            "max_visits": rules.max_visits != 100,
        }
        if names := [name for name, value in gone.items() if value]:
            self.lost.append(f"{node.id}: {', '.join(names)}")

    def _following(self, node: Node, ways: list[Edge]) -> dict[str, Any]:
        handoffs: list[dict[str, Any]] = []
        found: dict[str, Any] = {}
        for edge in ways:
            target = END if self._kind(edge.dst) == "exit" else edge.dst
            if node.kind == "tool" and _fails(edge.condition):
                if target == END:
                    self.lost.append(f"{node.id}: after a failure the run ends as failed, not at the exit")
                else:
                    found["on_error"] = target
                continue
            if edge.condition and not (node.kind == "tool" and edge.condition in ("outcome=success", "outcome!=fail")):
                who = "the first is taken" if node.kind == "tool" else "the model is told it, and chooses"
                self.lost.append(f"{node.id} -> {edge.dst}: the condition {edge.condition}; {who}")
            if edge.kind == "restart":
                self.lost.append(f"{node.id} -> {edge.dst}: loop_restart")
            said = edge.label or (f"when {edge.condition}" if edge.condition else "")
            given = {"description": said, "fidelity": edge.fidelity, "thread_id": edge.thread_id}
            if all(one["target"] != target for one in handoffs):
                handoffs.append({"target": target} | {key: value for key, value in given.items() if value})
        weights = {edge.weight for edge in ways if not edge.condition}
        if len(weights) > 1:
            self.lost.append(f"{node.id}: the weights of its edges; the heaviest stands first")
        # A single handoff is taken without being offered; a description would offer it.
        if len(handoffs) == 1 and node.kind != "human":
            handoffs[0].pop("description", None)
        return found | {"handoffs": [one["target"] if len(one) == 1 else one for one in handoffs] or [END]}

    def _text(self, name: str, text: str) -> str:
        """A prompt as a template."""
        made, at = "", 0
        for variable in variables(text):
            made += _raw(text[at : variable.start])
            at = variable.end
            output = OUTPUT.match(variable.name) or re.fullmatch(r"(\w+)\.output", variable.name)
            key = variable.name.removeprefix("context.")
            if variable.name in ("goal", "graph.goal"):
                made += _raw(self.graph.rules.goal)
            elif output is not None and self.graph.node(output[1]) is not None:
                made += f"{{{{ outputs.{output[1]} }}}}"
            elif key.isidentifier():
                value = json.dumps(self.graph.rules.variables.get(key) or "", ensure_ascii=False)
                made += f"{{{{ state.{key} | default(input.{key}) | default({value}) }}}}"
            else:
                made += _raw(text[variable.start : variable.end])
                self.lost.append(f"{name}: the variable {variable.name}")
        return made + _raw(text[at:])

    # -- tasks --------------------------------------------------------------------------------------------------------

    def tasks(self, cascade: Cascade | None) -> dict[str, Any]:
        """Of a task decomposition: its tasks one after the other, each with the outputs that it depends on."""
        graph, done = self.graph, list[str]()
        names = {node.id: f"task_{node.id}" if node.id[:1].isdigit() else node.id for node in graph.nodes}
        phases: list[dict[str, Any]] = []
        waiting = [node.id for node in graph.nodes]
        while waiting:
            here = next(id for id in waiting if set(graph.needs.get(id, ())) <= {*done})
            waiting.remove(here)
            done.append(here)
            known = cascade.phase(here) if cascade is not None else None
            node = graph.node(here)
            assert node is not None
            if known is not None and known.tool:
                inputs = _templates(dict(known.inputs), names)
                phase: dict[str, Any] = {"name": names[here], "tool": known.tool, "inputs": inputs}
            else:
                text = (known.instructions if known is not None else "") or node.prompt or node.label
                phase = {"name": names[here], "instructions": _templates(text, names)}
                if needs := graph.needs.get(here, ()):
                    phase["context"] = {"from": [{"phase": names[id], "include": ["output"]} for id in needs]}
            phases.append(phase)
        self.lost.append("all tasks: they run one after the other, and one that fails ends the run")
        if graph.job is not None:
            self.lost.append("all tasks: entities and the limits on what a dependency hands over")
        return {"cascade_id": graph.id, "phases": phases}


def _templates(value: Any, names: Mapping[str, str]) -> Any:
    """A value with each placeholder of a result as a template."""

    def result(written: str) -> tuple[str, str] | None:
        target = names.get(same_id(written, list(names)))
        return (f"{{{{ outputs.{target} }}}}",) * 2 if target else None

    if isinstance(value, Mapping):
        return {key: _templates(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_templates(inner, names) for inner in value]
    return filled_text(_raw(value), result) if isinstance(value, str) else value


def _raw(text: str) -> str:
    """A text that a template gives as it is."""
    return re.sub(r"\{[{%#]", lambda match: f"{{{{ '{match[0]}' }}}}", text)


def _fails(condition: str) -> bool:
    try:
        clauses = parse(condition).clauses if condition else ()
    except ConditionFault:
        return False
    return any(one.key == "outcome" and one.op == "=" and one.literal in ("fail", "failed") for one in clauses)
