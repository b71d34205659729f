"""Checks of a pipeline beyond its form: its start and its end, its edges, its conditions, its threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice, product
from pathlib import PurePosixPath

from workbench.language.clean import clean_line
from workbench.language.dot.attributes import nearest
from workbench.language.dot.build import MOST_COMPARED
from workbench.language.dot.conditions import Condition, ConditionFault, parse
from workbench.language.dot.variables import OUTPUT, variables
from workbench.language.graph import Edge, Graph, Node, meeting
from workbench.language.lint.catalogue import CATALOGUE
from workbench.language.lint.environment import LintEnvironment
from workbench.language.load import Loaded, load
from workbench.language.problem import Path, Problem, Severity, TextSpan

LOWERED = ("dead_end", "reachability", "terminal_node")
"""Errors that a file (``workbench.allow``) or a person (``--allow``) may let pass; of terminal_node several exits."""
ENGINE_KEYS = ("outcome", "preferred_label", "current_node", "last_stage", "last_response", "failure_class")
COMMAND_KEYS = ("tool.output", "tool_stdout", "tool.stderr", "tool.exit_code", "tool.last_line")
"""Set by a node that runs a command."""
SET_BY_ENGINE = (
    *ENGINE_KEYS,
    *COMMAND_KEYS,
    *("human.gate.selected", "human.gate.label", "human.gate.text"),
    *("parallel.results", "parallel.fan_in.best_id", "parallel.fan_in.best_outcome"),
    *("stack.cycle", "stack.child.status", "stack.child.current_node", "stack.child.outcome", "stack.child.output"),
)
"""Keys of the context that the engine sets itself; beside them ``graph.KEY`` and ``internal.retry_count.ID``."""
_ASK_NO_MODEL = ("start", "exit", "route", "tool", "parallel")
_OWN_SPACES = ("tool.", "human.gate.", "parallel.", "stack.")
"""The prefixes of names that the engine alone sets."""
_KEYS_OF = (
    (("tool.", "tool_stdout"), ("tool",), "no node runs a command"),
    (("human.gate.",), ("human",), "no node asks a person"),
    (("parallel.",), ("parallel", "join"), "no node is parallel"),
)
_HOUSE = (
    "stack.child_dotfile names it; in graphs of some programs this shape asks a person: "
    'workbench.shapes="house=wait.human"'
)
_ENDS = {
    "start": ("success",),
    "tool": ("success", "fail", "partial_success"),
    "parallel": ("success", "fail", "partial_success"),
}
"""The outcomes of nodes that cannot end with a word of their own."""
_MOST_CASES = 4096
_DEPTH = 5
"""How far child graphs are followed."""


def check_pipeline(loaded: Loaded, around: LintEnvironment) -> Iterator[Problem]:
    """The findings in a graph that was loaded from DOT."""
    if loaded.own is not None:
        yield from _Pipeline(loaded, loaded.own, around).found()


class _Pipeline:
    def __init__(self, loaded: Loaded, graph: Graph, around: LintEnvironment) -> None:
        self.loaded = loaded
        self.graph = graph
        self.source = loaded.source
        self.around = around
        self.compared = 0
        self.names = [node.id for node in graph.nodes]
        self.allowed = {*graph.rules.allow, *around.allow}

    def found(self) -> Iterator[Problem]:
        """All findings. Of a text that was not understood whole, only those about single values."""
        if not self.loaded.broken:
            yield from self._ends()
            yield from self._reach()
            yield from self._ways()
            yield from self._parallel()
        yield from self._conditions()
        yield from self._targets()
        yield from self._nodes()
        yield from self._children()
        yield from self._threads()
        yield from self._variables()
        yield from self._allowed()

    def _report(
        self,
        code: str,
        span: TextSpan,
        path: Path = (),
        hint: str | None = None,
        severity: Severity | None = None,
        **words: object,
    ) -> Problem:
        row = CATALOGUE[code]
        shown = {name: clean_line(str(word), 120) for name, word in words.items()}
        if severity is None:
            lowered = code in self.allowed and code in LOWERED
            severity = Severity.WARNING if lowered else row.severity
        return Problem(
            severity,
            code,
            row.message.format(**shown),
            self.source.file,
            span,
            path,
            row.hint.format(**shown) if hint is None else hint,
        )

    def _meant(self, name: str) -> str:
        self.compared += len(self.names)
        meant = nearest(name, self.names) if self.compared <= MOST_COMPARED else ""
        return f"did you mean '{meant}'?" if meant else ""

    # -- the whole ----------------------------------------------------------------------------------------------------

    def _ends(self) -> Iterator[Problem]:
        graph = self.graph
        whole = self.source.span(("cascade_id",))
        starts = [node for node in graph.nodes if node.kind == "start"]
        exits = [node for node in graph.nodes if node.kind == "exit"]
        if not starts:
            yield self._report("start_node", whole, what="no start")
        for node in starts[1:]:
            yield self._report(
                "start_node", node.span, what=f"a second start, '{node.id}'", hint=f"the first is '{starts[0].id}'"
            )
        if not exits:
            yield self._report("terminal_node", whole, what="no exit", severity=Severity.ERROR)
        for node in exits[1:]:
            yield self._report(
                "terminal_node",
                node.span,
                what=f"a second exit, '{node.id}'",
                hint=f"the first is '{exits[0].id}'; workbench.allow=terminal_node lets several pass",
            )
        for node in starts:
            for edge in graph.into(node.id):
                yield self._report("start_no_incoming", edge.span, name=node.id)
        for node in exits:
            for edge in graph.out(node.id):
                yield self._report("exit_no_outgoing", edge.span, name=node.id)

    def _reach(self) -> Iterator[Problem]:
        graph = self.graph
        starts = [node.id for node in graph.nodes if node.kind == "start"]
        if not starts:
            return
        jumps = {target for target in (graph.rules.retry_target, graph.rules.fallback_retry_target) if target}
        reached, waiting = set(starts), list(starts)
        while waiting:
            here = waiting.pop()
            node = graph.node(here)
            assert node is not None
            ways = {edge.dst for edge in graph.out(here)} | {node.rules.retry_target, node.rules.fallback_retry_target}
            following = {way for way in ways | jumps if graph.node(way) is not None} - reached
            reached |= following
            waiting += following
        for node in graph.nodes:
            if node.id not in reached:
                yield self._report("reachability", node.span, name=node.id, start=starts[0])
        exits = [node.id for node in graph.nodes if node.kind == "exit"]
        if not exits or not any(exit in reached for exit in exits):
            return
        ending = self._before(exits)
        lost = [
            node
            for node in graph.nodes
            if node.id in reached and node.id not in ending and graph.out(node.id) and not self._before_leaf(node.id)
        ]
        for node in lost[:1]:
            names = ", ".join(one.id for one in lost[:6]) + ("…" if len(lost) > 6 else "")
            yield self._report("endless", node.span, names=names)

    def _before(self, ends: Iterable[str]) -> set[str]:
        """The nodes from which a way, or a retry jump, leads to one of these."""
        back: dict[str, set[str]] = {}
        for edge in self.graph.edges:
            back.setdefault(edge.dst, set()).add(edge.src)
        for node in self.graph.nodes:
            for target in (node.rules.retry_target, node.rules.fallback_retry_target):
                back.setdefault(target, set()).add(node.id)
        found, waiting = set(ends), list(ends)
        while waiting:
            following = back.get(waiting.pop(), set()) - found
            found |= following
            waiting += following
        return found

    def _before_leaf(self, id: str) -> bool:
        return id in self._leading_to_leaves

    @cached_property
    def _leading_to_leaves(self) -> set[str]:
        return self._before([node.id for node in self.graph.nodes if not self.graph.out(node.id)])

    def _ways(self) -> Iterator[Problem]:
        graph = self.graph
        for node in graph.nodes:
            ways = graph.out(node.id)
            if not ways and node.kind != "exit":
                severity = Severity.WARNING if node.kind == "human" else None
                yield self._report("dead_end", node.span, name=node.id, severity=severity)
            if node.kind in ("parallel", "human", "exit"):
                continue
            free = [edge for edge in ways if not edge.condition]
            unlabelled = [edge for edge in free if not edge.label]
            if len(unlabelled) > 1:
                names = ", ".join(edge.dst for edge in unlabelled)
                yield self._report("parallel_edges_ignored", unlabelled[1].span, name=node.id, targets=names)
            if ways and not free and (missing := self._missing(ways)):
                yield self._report("conditions_not_exhaustive", ways[-1].span, name=node.id, case=missing)

    def _missing(self, ways: Iterable[Edge]) -> str:
        """Values for which none of these conditions holds, in words; empty where there are none, or too many to try.
        A fail without a way is a usual end of a run."""
        read = [condition for edge in ways if (condition := _condition(edge.condition)) is not None]
        values: dict[str, dict[str, None]] = {}
        for condition in read:
            for clause in condition.clauses:
                words = values.setdefault(clause.key, {})
                if clause.op and clause.literal != "fail":
                    words[clause.literal] = None
        for key, words in values.items():
            words["success" if key == "outcome" else "something else"] = None
        total = 1
        for words in values.values():
            total *= len(words)
        if not values or total > _MOST_CASES:
            return ""
        for case in product(*values.values()):
            found = dict(zip(values, case, strict=True))
            if not any(condition.holds(found.get) for condition in read):
                return ", ".join(f"{key}={value}" for key, value in found.items())
        return ""

    def _parallel(self) -> Iterator[Problem]:
        graph = self.graph
        for node in graph.nodes:
            if node.kind == "parallel" and graph.out(node.id) and not meeting(graph, node.id):
                yield self._report("parallel_no_meeting", node.span, name=node.id)
        behind = self._behind([node.id for node in graph.nodes if node.kind == "parallel"])
        for node in graph.nodes:
            if node.kind == "join" and node.id not in behind:
                yield self._report("join_unreached", node.span, name=node.id)

    def _behind(self, starts: Iterable[str]) -> set[str]:
        found, waiting = set[str](), list(starts)
        while waiting:
            following = {edge.dst for edge in self.graph.out(waiting.pop())} - found
            found |= following
            waiting += following
        return found

    # -- single values ------------------------------------------------------------------------------------------------

    def _conditions(self) -> Iterator[Problem]:
        kinds: set[str] = {node.kind for node in self.graph.nodes}
        told: set[str] = set()
        for index, edge in enumerate(self.graph.edges):
            if edge.condition:
                path: Path = ("edges", index, "condition")
                yield from self._condition_at(path, edge.condition, kinds, told)
                yield from self._never(path, edge)
        for index, node in enumerate(self.graph.nodes):
            if node.rules.stop_condition:
                path = ("phases", index, "attributes", "manager.stop_condition")
                yield from self._condition_at(path, node.rules.stop_condition, kinds, told)
            if node.rules.gate_condition:
                path = ("phases", index, "attributes", "goal_gate")
                yield from self._condition_at(path, node.rules.gate_condition, kinds, told)

    def _never(self, path: Path, edge: Edge) -> Iterator[Problem]:
        """The words of a condition with which the node before the edge cannot end."""
        node, condition = self.graph.node(edge.src), _condition(edge.condition)
        words = _ENDS.get(node.kind, ()) if node is not None else ()
        for clause in condition.clauses if condition is not None and words else ():
            if clause.key in ("outcome", "context.outcome") and clause.op == "=" and clause.literal not in words:
                at = self._inside(path, edge.condition, clause.at, len(clause.key))
                known = ", ".join(words)
                yield self._report("outcome_never", at, path, name=edge.src, word=clause.literal, known=known)

    def _condition_at(self, path: Path, text: str, kinds: set[str], told: set[str]) -> Iterator[Problem]:
        try:
            condition = parse(text)
        except ConditionFault as fault:
            yield self._report("condition_syntax", self._inside(path, text, fault.at), path, problem=str(fault))
            return
        if condition.doubled and "==" not in told:
            told.add("==")
            yield self._report("condition_equals", self._inside(path, text, text.find("=="), 2), path)
        for clause in condition.clauses:
            key = clause.key.removeprefix("context.")
            if key in told:
                continue
            at = self._inside(path, text, clause.at, len(clause.key))
            known = key in SET_BY_ENGINE or key.startswith(("graph.", "internal."))
            meant = "" if known else nearest(key, SET_BY_ENGINE)
            hint = f"did you mean '{meant}'?" if meant else None
            if not known and key.startswith(_OWN_SPACES):
                told.add(key)
                yield self._report("condition_value", at, path, hint, key=clause.key, reason="nothing sets it")
            elif not known and key == clause.key:
                told.add(key)
                severity = Severity.WARNING if meant else None
                yield self._report("condition_key", at, path, hint, severity, key=key)
            for prefixes, needed, reason in _KEYS_OF:
                if key.startswith(prefixes) and not kinds & {*needed, "subgraph"} and key not in told:
                    told.add(key)
                    at = self._inside(path, text, clause.at, len(clause.key))
                    yield self._report("condition_value", at, path, key=clause.key, reason=reason)

    def _inside(self, path: Path, text: str, at: int, length: int = 1) -> TextSpan:
        before = text[:at].split("\n")
        return self.source.inner_span(path, len(before), len(before[-1]) + 1, length)

    def _targets(self) -> Iterator[Problem]:
        graph = self.graph
        for key in ("retry_target", "fallback_retry_target"):
            target = getattr(graph.rules, key)
            if target and graph.node(target) is None:
                span = self.source.span(("graph", key))
                yield self._report("retry_target_exists", span, key=key, name=target, hint=self._meant(target))
            for index, node in enumerate(graph.nodes):
                target = getattr(node.rules, key)
                if target and graph.node(target) is None:
                    span = self.source.span(("phases", index, "attributes", key))
                    yield self._report("retry_target_exists", span, key=key, name=target, hint=self._meant(target))

    def _nodes(self) -> Iterator[Problem]:
        rules = self.graph.rules
        jump = rules.retry_target or rules.fallback_retry_target
        for index, node in enumerate(self.graph.nodes):
            base: Path = ("phases", index)
            own = node.rules.retry_target or node.rules.fallback_retry_target
            if node.rules.goal_gate and not own and not jump:
                span = self.source.span((*base, "attributes", "goal_gate"))
                yield self._report("goal_gate_has_retry", span, name=node.id)
            if node.kind == "llm" and node.prompt == node.id:
                yield self._report("prompt_on_llm_nodes", node.span, name=node.id)
            if node.kind in _ASK_NO_MODEL and (node.prompt or node.rules.system_prompt):
                at = ("instructions",) if node.prompt else ("attributes", "system_prompt")
                yield self._report("prompt_ignored", self.source.span((*base, *at)), name=node.id)
            if node.kind == "tool" and not node.rules.command:
                yield self._report("tool_command_missing", node.span, name=node.id)
            if node.prompt.startswith("@") and self.around.read is not None:
                file = node.prompt[1:].strip()
                if self.around.read(file) is None:
                    yield self._report("prompt_missing", self.source.span((*base, "instructions")), name=file)
            if node.kind == "human":
                yield from self._choices(node, base)
            if node.tools and self.around.tools is not None and node.kind == "llm":
                for tool in node.tools:
                    if tool not in self.around.tools:
                        meant = nearest(tool, self.around.tools)
                        hint = f"did you mean '{meant}'?" if meant else ""
                        yield self._report("tool_unknown", self.source.span((*base, "tackle")), name=tool, hint=hint)

    def _choices(self, node: Node, base: Path) -> Iterator[Problem]:
        chosen = node.rules.default_choice
        if not chosen:
            return
        ways = self.graph.out(node.id)
        words = {word.strip().lower() for edge in ways for word in (edge.label, edge.dst)}
        keys = {edge.label.strip("[ ")[:1].lower() for edge in ways if edge.label}
        if chosen.strip().lower() not in words | keys:
            found = self.source.span((*base, "attributes", "human.default_choice"))
            names = ", ".join(edge.label or edge.dst for edge in ways)
            yield self._report("default_choice", found, name=chosen, choices=names)

    def _children(self) -> Iterator[Problem]:
        read = self.around.read
        own = PurePosixPath(self.source.file.replace("\\", "/")).name
        for index, node in enumerate(self.graph.nodes):
            if node.kind != "subgraph":
                continue
            path: Path = ("phases", index, "attributes", "stack.child_dotfile")
            span = self.source.span(path) if self.source.has(path) else node.span
            yield from self._workdir(node, ("phases", index, "attributes", "stack.child_workdir"))
            child = node.rules.child
            if not child:
                problem = "it names no file of a child graph"
                yield self._report("child_missing", span, name=node.id, problem=problem, hint=_HOUSE)
            elif read is not None:
                if read(child) is None:
                    problem = f"there is no file '{child}'"
                    yield self._report("child_missing", span, name=node.id, problem=problem)
                elif chain := _circle(child, own, read):
                    yield self._report("child_circle", span, name=node.id, chain=" > ".join((own, *chain)))

    def _workdir(self, node: Node, path: Path) -> Iterator[Problem]:
        """The folder of a child, where it names one that is not there."""
        folder, bad_folder = node.rules.child_workdir, self.around.bad_folder
        if folder and bad_folder is not None and (problem := bad_folder(folder)):
            found = path if self.source.has(path) else ("graph", "stack.child_workdir")
            yield self._report("child_missing", self.source.span(found), name=node.id, problem=problem)

    def _threads(self) -> Iterator[Problem]:
        graph = self.graph
        default = graph.rules.default_fidelity or "compact"
        named = graph.rules.default_thread
        ever_full: set[str] = set()
        for index, node in enumerate(graph.nodes):
            if node.kind != "llm" and not (node.kind == "join" and node.prompt):
                continue
            told = False
            for edge in graph.into(node.id):
                mode = edge.fidelity or node.fidelity or default
                if mode != "full":
                    continue
                ever_full.add(node.id)
                before = graph.node(edge.src)
                thread = node.thread_id or edge.thread_id or named or node.group
                if thread or told or before is None or before.kind == "start":
                    continue
                told = True
                at: Path = ("phases", index, "attributes", "fidelity")
                span = self.source.span(at) if self.source.has(at) else node.span
                yield self._report("thread_fallback", span, name=node.id, key=edge.src)
            if node.thread_id and node.id not in ever_full:
                span = self.source.span(("phases", index, "thread_id"))
                yield self._report("thread_without_full", span, name=node.thread_id, node=node.id)

    def _variables(self) -> Iterator[Problem]:
        told: set[str] = set()
        known = {"goal", *ENGINE_KEYS, *self.graph.rules.variables}
        texts = [
            (path, text)
            for index, node in enumerate(self.graph.nodes)
            if node.kind in ("llm", "join", "human")
            for path, text in (
                (("phases", index, "instructions"), node.prompt or node.label),
                (("phases", index, "attributes", "system_prompt"), node.rules.system_prompt),
            )
        ]
        for path, text in texts:
            for variable in variables(text):
                name = variable.name
                head = name.partition(".")[0]
                if (
                    name in told
                    or name in known
                    or head in ("goal", "graph", "context", "human", "tool", "parallel", "work")
                ):
                    continue
                output = OUTPUT.match(name)
                if output is not None and self.graph.node(output[1]) is not None:
                    continue
                told.add(name)
                span = self._inside(path, text, variable.start, variable.end - variable.start)
                yield self._report("variable_unknown", span, path, name=text[variable.start : variable.end])

    def _allowed(self) -> Iterator[Problem]:
        for word in self.graph.rules.allow:
            if word not in LOWERED:
                yield self._report(
                    "allow_unknown", self.source.span(("graph", "workbench.allow")), name=word, codes=", ".join(LOWERED)
                )


def _condition(text: str) -> Condition | None:
    try:
        return parse(text)
    except ConditionFault:
        return None


def _circle(child: str, own: str, read: Callable[[str], str | None]) -> tuple[str, ...]:
    """The files from a child back to the graph itself; empty where there is no such way."""
    waiting: list[tuple[str, tuple[str, ...]]] = [(child, (child,))]
    seen = {child}
    while waiting:
        file, chain = waiting.pop(0)
        if PurePosixPath(file).name == own:
            return chain
        text = read(file) if len(chain) <= _DEPTH else None
        graph = load(text, file).own if text is not None else None
        for node in islice(graph.nodes, 1000) if graph is not None else ():
            name = node.rules.child if node.kind == "subgraph" else ""
            if name and name not in seen:
                seen.add(name)
                waiting.append((name, (*chain, name)))
    return ()
