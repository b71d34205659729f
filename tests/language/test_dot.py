"""Pipelines in DOT: what is read, what is told of it and where, and that nothing stops the reader."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from workbench.engine.run.command import hooks_of
from workbench.language.lint.environment import LintEnvironment
from workbench.language.lint.linter import check
from workbench.language.load import Loaded, load
from workbench.language.problem import Severity
from workbench.language.read.dot import DotFile, escaped, read_dot, unescaped

E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


def graph(body: str) -> str:
    """A pipeline with a start and an exit around some lines; they begin in line 2."""
    return f"digraph g {{\n{body}\n start [shape=Mdiamond] done [shape=Msquare]\n}}"


def told(text: str, around: LintEnvironment = LintEnvironment()) -> list[tuple[Severity, str, int, int]]:
    return [(p.severity, p.code, p.span.line, p.span.column) for p in check(load(text, "g.dot"), around)]


def opened(text: str) -> Loaded:
    loaded = load(text, "g.dot")
    assert loaded.graph is not None
    return loaded


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (graph("start -> a -> done; a [prompt=x label=y]"), (I, "dot_tolerated", 2, 33)),
        (graph("start -> a -> done; a [prompt=x; label=y]"), (I, "dot_tolerated", 2, 34)),
        (graph("start -> a -> done; a [prompt=x,]"), (I, "dot_tolerated", 2, 33)),
        (graph('start -> a -> done; a [prompt=x,goal_gate="false"]'), (I, "dot_tolerated", 2, 43)),
        (graph("start -> a -> done; a [prompt=x] [label=y]"), (I, "dot_tolerated", 2, 34)),
        (graph("# a comment\nstart -> a -> done; a [prompt=x]"), (I, "dot_tolerated", 2, 1)),
        (graph('start -> "a" -> done; a [prompt=x]'), (I, "dot_tolerated", 2, 10)),
        (graph("start -> a -> done; a [prompt=x, timeout=900]"), (I, "dot_tolerated", 2, 42)),
        (graph('start -> a -> done; a [prompt=x, max_retries="2"]'), (I, "dot_tolerated", 2, 46)),
        (graph("start -> aa -> done; start -> a -> done; aa [prompt=x]"), (W, "implicit_node", 2, 31)),
        (graph("start -> a -> done; a [prompt=x]; a [label=y]"), (I, "declared_twice", 2, 35)),
        (graph("start -> a -> done; a [prompt=x, prompt=y]"), (W, "key_twice", 2, 34)),
        (graph('start -> "fix it" -> done'), (E, "bad_id", 2, 10)),
        (graph("start -> fix-it -> done"), (E, "bad_id", 2, 10)),
        (graph("start -> a -> done; a [prompt=x, promt=y]"), (W, "attribute_unknown", 2, 34)),
        (graph("start -> a -> done; a [prompt=x, max_retries=few]"), (E, "attribute_value", 2, 46)),
        (graph("start -> a -> done; a [prompt=x, fidelity=compct]"), (W, "fidelity_valid", 2, 43)),
        (graph("start -> a -> done; a [prompt=x, shape=hexagn]"), (W, "type_known", 2, 40)),
        (graph("start -> a -> done; a [llm_prompt=x]"), (I, "alias", 2, 24)),
        ("strict " + graph("start -> done"), (E, "dot_strict", 1, 1)),
        (graph("start -> done").removeprefix("di"), (E, "dot_undirected", 1, 1)),
        (graph("start -- done"), (E, "dot_undirected", 2, 7)),
        (graph("start -> done") + "\ndigraph h { }", (E, "dot_second_graph", 5, 1)),
        (graph("start -> done") + "\nas said before", (E, "dot_outside", 5, 1)),
        ("Here it is:\n" + graph("start -> done"), (E, "dot_outside", 1, 1)),
        (graph("start -> a -> done; a [label=<b>]"), (E, "dot_html", 2, 30)),
        (graph("start -> a:n -> done; a [prompt=x]"), (E, "dot_port", 2, 11)),
        (graph('start -> a -> done; a [prompt="x" + "y"]'), (E, "dot_concatenation", 2, 35)),
        (graph("start -> {a b} -> done"), (E, "dot_group_edge", 2, 10)),
        (graph("{a b} -> done; start -> a"), (E, "dot_group_edge", 2, 7)),
        (graph('start -> a -> done\n a [prompt="x]'), (E, "dot_unterminated", 3, 12)),
        (graph("start -> done /* so"), (E, "dot_unterminated", 2, 15)),
        ("digraph g {\n start -> done", (E, "dot_unterminated", 1, 11)),
        (graph("start -> a -> done\n a [prompt=x, goal_gate]"), (E, "dot_value", 3, 15)),
        (graph('start -> a -> done\n a [prompt="say "hi" now", label=y]'), (E, "dot_value", 3, 18)),
        (graph("start -> a -> done\n a [prompt=a/b]"), (E, "dot_value", 3, 12)),
        (graph("start -> ; start -> done"), (E, "dot_syntax", 2, 10)),
        ("digraph {\n start [shape=Mdiamond] done [shape=Msquare] start -> done }", (I, "dot_tolerated", 1, 1)),
        (graph('"goal"="Mend it"; start -> done'), (I, "dot_tolerated", 2, 1)),
        (graph("start -> a, b; a -> done; b -> done; a [prompt=x] b [prompt=y]"), (E, "dot_syntax", 2, 11)),
    ],
)
def test_each_tolerance_and_each_error_is_told_at_its_place(text: str, wanted: tuple[Severity, str, int, int]) -> None:
    assert wanted in told(text)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("start -> done; start2 [shape=circle]; start2 -> done", (E, "start_node", 2, 16)),
        ("start -> done; over [shape=doublecircle]; start -> over", (E, "terminal_node", 2, 16)),
        ("start -> done; a [prompt=x]; a -> done", (E, "reachability", 2, 16)),
        ("start -> a; a [prompt=x]; a -> start; a -> done", (E, "start_no_incoming", 2, 27)),
        ("start -> done; a [prompt=x]; done -> a -> done", (E, "exit_no_outgoing", 2, 30)),
        ("start -> a; a [prompt=x]; start -> done", (E, "dead_end", 2, 13)),
        ("start -> a -> done; a [shape=hexagon]; h [shape=hexagon]; a -> h", (W, "dead_end", 2, 40)),
        ("start -> a; a [prompt=x]; b [prompt=y]; a -> b -> a; start -> done", (W, "endless", 2, 13)),
        ('start -> a; a [prompt=x]; a -> done [condition="outcome=yes"]', (W, "conditions_not_exhaustive", 2, 27)),
        ('start -> a; a [prompt=x]; a -> done [condition="outcome = a || b"]', (E, "condition_syntax", 2, 61)),
        ('start -> a; a [prompt=x]; a -> done [condition="outcome==success"]', (I, "condition_equals", 2, 56)),
        ('start -> a; a [prompt=x]; a -> done [condition="score=1"]; a -> done', (I, "condition_key", 2, 49)),
        ('start -> a; a [prompt=x]; a -> done [condition="tool_stdout=1"]; a -> done', (W, "condition_value", 2, 49)),
        ('start -> t; t [shape=parallelogram, tool_command=ls]; t -> done [condition="outcome=good"]; t -> done',
         (W, "outcome_never", 2, 77)),
        ('start -> a; a [prompt=x]; a -> done [condition="outcome!=good && tool.code=1"]; a -> done',
         (W, "condition_value", 2, 66)),
        ("start -> a; a [prompt=x]; a -> done; b [prompt=y]; a -> b -> done", (W, "parallel_edges_ignored", 2, 52)),
        ("start -> p; p [shape=component]; p -> a -> done; p -> b", (E, "parallel_no_meeting", 2, 13)),
        ("start -> j -> done; j [shape=tripleoctagon]", (W, "join_unreached", 2, 21)),
        ("start -> m -> done; m [shape=house]", (E, "child_missing", 2, 21)),
        ("start -> t -> done; t [shape=parallelogram]", (E, "tool_command_missing", 2, 21)),
        ("start -> a -> done; a [prompt=x, retry_target=strat]", (W, "retry_target_exists", 2, 47)),
        ("start -> a -> done; a [prompt=x, goal_gate=true]", (W, "goal_gate_has_retry", 2, 44)),
        ("start -> a -> done; a [shape=box]", (W, "prompt_on_llm_nodes", 2, 21)),
        ("start -> r -> done; r [shape=diamond, prompt=ask]", (W, "prompt_ignored", 2, 46)),
        ("start -> r -> done; r [type=conditional, llm_prompt=ask]", (W, "prompt_ignored", 2, 53)),
        ("start -> r -> done; r [shape=diamond, system_prompt=ask]", (W, "prompt_ignored", 2, 53)),
        ('start -> a -> done; a [prompt=x, system_prompt="say $nmae"]', (W, "variable_unknown", 2, 53)),
        ("start -> h; h [shape=hexagon, human.default_choice=no]; h -> done [label=y]", (W, "default_choice", 2, 52)),
        ("start -> a -> b -> done; a [prompt=x]; b [prompt=y, fidelity=full]", (W, "thread_fallback", 2, 62)),
        ("start -> a -> done; a [prompt=x, thread_id=main]", (W, "thread_without_full", 2, 44)),
        ('start -> a -> done; a [prompt="say $nmae"]', (W, "variable_unknown", 2, 36)),
        ('model_stylesheet="* { llm_model gpt }"; start -> done', (E, "stylesheet_syntax", 2, 23)),
        ("start -> done; workbench.allow=everything", (W, "allow_unknown", 2, 32)),
    ],
)  # fmt: skip
def test_each_rule_of_a_pipeline_is_told_at_its_place(body: str, wanted: tuple[Severity, str, int, int]) -> None:
    assert wanted in told(graph(body))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('digraph g { a [prompt="x] start -> a', "the string that opens here is never closed"),
        ("digraph g { a /* x\n start -> a }", "the comment that opens here is never closed"),
        ("Here it is:\ndigraph g { start -> exit }", "text outside the braces of the graph: 'Here it is:'"),
    ],
)
def test_one_mistake_is_told_once_with_what_stands_there(text: str, wanted: str) -> None:
    (fault,) = [p for p in check(load(text, "g.dot")) if p.severity is E and p.code.startswith("dot_")]
    assert fault.message == wanted


@pytest.mark.parametrize(
    ("body", "nodes", "codes"),
    [
        ("= c; a -> b", "ab", ["dot_syntax"]),
        ("= c -> d\n a -> b", "ab", ["dot_syntax"]),
        ('= "x; y -> z\n} q" c -> d; a -> b', "ab", ["dot_syntax"]),
        ('= "c\n a -> b', "ab", ["dot_syntax"]),
        ("{ e; = c } a -> b", "abe", ["dot_syntax"]),
        ("subgraph e c; a -> b", "ab", ["dot_syntax"]),
        ("c -> ; a -> b", "abc", ["dot_syntax"]),
        ("{ c } -> d; a -> b", "abc", ["dot_group_edge"]),
        ("c = ; a -> b", "ab", ["dot_value"]),
        ('= "x" } a -> b', "", ["dot_syntax", "dot_outside"]),
        ("=", "", ["dot_syntax"]),
    ],
)
def test_after_a_broken_statement_the_next_one_is_read(body: str, nodes: str, codes: list[str]) -> None:
    found = read_dot("digraph g {" + body + "}")
    assert "".join(sorted(found.nodes)) == nodes
    assert [(edge.src, edge.dst) for edge in found.edges] == ([("a", "b")] if "b" in nodes else [])
    assert [fault.code for fault in found.faults] == codes


def test_nothing_is_said_of_commas_behind_an_attribute_that_is_wrong() -> None:
    assert [code for _, code, *_ in told(graph('start -> a -> done; a [prompt="say "hi" now"]'))] == ["dot_value"]
    assert [code for _, code, *_ in told(graph('start -> a -> done; a ["prompt"="x"]'))] == []


@pytest.mark.parametrize(
    ("body", "code", "hint"),
    [
        ("start -> a -> done; a [prompt=x, shape=msquare]", "type_known", "did you mean 'Msquare'?"),
        ("start -> a -> done; a [prompt=x, shape=mdiamond]", "type_known", "did you mean 'Mdiamond'?"),
        ("start -> a -> done; a [prompt=x, fidelity=sumary]", "fidelity_valid", "did you mean 'summary:low'?"),
        ("start -> a -> done; a [prompt=x, Prompt=x]", "attribute_unknown", "did you mean 'prompt'?"),
        (
            'start -> a; a [prompt=x]; a -> done [condition="outcom=success"]',
            "condition_key",
            "did you mean 'outcome'?",
        ),
        (
            'start -> t; t [shape=parallelogram, tool_command=ls]; t -> done [condition="context.tool.exitcode=0"]',
            "condition_value",
            "did you mean 'tool.exit_code'?",
        ),
        (
            'model_stylesheet="* { llm_modl: m; }"; start -> done',
            "stylesheet_property",
            "did you mean 'llm_model'?",
        ),
    ],
)
def test_the_nearest_name_is_proposed(body: str, code: str, hint: str) -> None:
    assert hint in [p.hint for p in check(load(graph(body), "g.dot")) if p.code == code]


def test_an_attribute_without_the_name_before_its_dot_is_known() -> None:
    found = check(load(graph("a [shape=house, max_cycles=3] start -> a -> done"), "g.dot"))
    (unread,) = [p for p in found if p.code == "attribute_unknown"]
    assert unread.hint == "did you mean 'manager.max_cycles'?"


def test_what_a_graph_declares_is_a_variable_of_its_prompts() -> None:
    body = 'audience=all; vars="tone=kind, place"; start -> a -> done; a [prompt="$audience $tone $place {0}"]'
    assert told(graph(body.format(""))) == []
    assert [code for _, code, *_ in told(graph(body.format("$tune")))] == ["variable_unknown"]
    assert [code for _, code, *_ in told(graph(body.replace("$audience", "")))] == ["attribute_unknown"]


def test_each_attribute_that_nothing_reads_is_told_once_and_those_that_draw_or_are_notes_are_not() -> None:
    body = "start -> a -> b -> done; a [prompt=x, {0}]; b [prompt=y, {0}]"
    for quiet in ("color=red", "human.hint=x", "context.files=x", "workbench.note=x", "workbench.note.why=x"):
        assert told(graph(body.format(quiet))) == [], quiet
    found = check(load(graph(f"weight=2; {body.format('zzz=1')}"), "g.dot"))
    assert [(p.severity, p.code, p.message, p.hint) for p in found] == [
        (W, "attribute_unknown", "nothing reads the attribute 'weight' of a graph", "it belongs to the edge"),
        (W, "attribute_unknown", "nothing reads the attribute 'zzz' of a node, 2 times", ""),
    ]


def test_what_lies_around_the_file_is_checked() -> None:
    files = {"child.dot": graph('start -> m -> done; m [shape=house, stack.child_dotfile="g.dot"]'), "task.md": "x"}
    around = LintEnvironment(read=files.get, tools={})
    text = graph(
        "start -> m -> a -> b -> done; m [shape=house, dot_file=child.dot]\n"
        'a [prompt="@tsk.md", retry_policy=often, workbench.tools=read_fil]; b [prompt="@task.md"]\n'
        'model_stylesheet="* { color: red }"'
    )
    found = told(text, around)
    assert {(E, "child_circle", 2, 56), (E, "prompt_missing", 3, 11), (W, "attribute_choice", 3, 35)} <= set(found)
    assert {(E, "tool_unknown", 3, 58), (W, "stylesheet_property", 4, 23)} <= set(found)
    assert ("prompt_missing", 3, 80) not in [(code, *place) for _, code, *place in found]


def test_a_pipeline_without_fault_is_told_nothing() -> None:
    text = graph(
        'goal="ship"; start -> plan -> check; check [shape=diamond]; plan [prompt="Plan $goal", llm_model=gpt-5.2]\n'
        'check -> done [condition="outcome=success"]; check -> plan [condition="outcome!=success"]'
    )
    assert told(text) == []


def test_the_brace_of_a_graph_may_stand_on_a_later_line() -> None:
    body = " start [shape=Mdiamond]; done [shape=Msquare]; start -> done\n}\n"
    assert [problem.code for problem in load("digraph g\n\n{\n" + body, "g.dot").problems] == []


def test_what_a_file_or_a_person_lets_pass_is_a_warning() -> None:
    text = graph("start -> a; a [prompt=x]; start -> done")
    assert (E, "dead_end", 2, 13) in told(text)
    assert (W, "dead_end", 2, 13) in told(text, LintEnvironment(allow=("dead_end",)))
    assert (W, "dead_end", 2, 39) in told(text.replace("\n", "\nworkbench.allow=dead_end; ", 1))


def test_defaults_hold_for_what_is_declared_later_in_their_scope() -> None:
    found = opened(
        graph(
            'start -> early -> late -> inside -> done; early [prompt=a]; node [fidelity="summary:low"]; late [prompt=b]'
            '\nsubgraph one { label="Loop A"; node [fidelity=full, class="big,new"]; inside [max_retries=2] }\n'
            "after [prompt=d, fidelity=truncate]; late -> after -> done; graph [default_max_retry=3]"
        )
    ).graph
    assert found is not None
    nodes = {node.id: node for node in found.nodes}
    assert [nodes[name].fidelity for name in ("early", "late", "inside", "after")] == [
        "",
        "summary:low",
        "full",
        "truncate",
    ]
    assert (nodes["inside"].classes, nodes["inside"].group) == (("big", "new", "loop-a"), "loop-a")
    assert [nodes[name].rules.max_retries for name in ("inside", "late")] == [2, 3]
    assert nodes["after"].group == ""


def test_a_weight_may_be_written_as_a_decimal() -> None:
    found = opened(graph('start -> a -> done [weight="2.0"]; a [prompt=x]')).graph
    assert found is not None
    assert [edge.weight for edge in found.edges] == [2, 2]
    assert (E, "attribute_value", 2, 28) in told(graph("start -> a -> done [weight=2.5]; a [prompt=x]"))


@pytest.mark.parametrize(
    ("name", "good", "wrong"),
    [
        ("auto_status", ("true", "false"), "yes"),
        ("max_retries", ("0", "3"), "many"),
        ("timeout", ("900s", "15m", "2h"), "soon"),
    ],
)
def test_an_attribute_takes_the_values_of_its_kind(name: str, good: tuple[str, ...], wrong: str) -> None:
    for value in good:
        assert told(graph(f"start -> a -> done; a [prompt=x, {name}={value}]")) == []
    assert "attribute_value" in [
        code for _, code, *_ in told(graph(f"start -> a -> done; a [prompt=x, {name}={wrong}]"))
    ]


def test_a_chain_gives_every_edge_the_attributes() -> None:
    found = opened(graph("start -> a -> b [weight=2]; edge [label=on]; b -> done; a [prompt=x]; b [prompt=y]")).graph
    assert found is not None
    assert [(edge.src, edge.dst, edge.weight, edge.label) for edge in found.edges] == [
        ("start", "a", 2, ""),
        ("a", "b", 2, ""),
        ("b", "done", 0, "on"),
    ]


def test_the_model_comes_from_node_then_stylesheet_then_graph() -> None:
    sheet = (
        "* { llm_model: base } box { llm_model: shaped } .fast { llm_model: quick; llm_provider: openai } "
        "#d { llm_model: own }"
    )
    found = opened(
        graph(
            f'model_stylesheet="{sheet}"; llm_provider=anthropic; start -> a -> b -> c -> d -> done\n'
            "a [prompt=x]; b [prompt=x, shape=box, class=fast]; "
            "c [prompt=x, class=fast, llm_model=mine]; d [prompt=x, class=fast]"
        )
    ).graph
    assert found is not None
    nodes = {node.id: node for node in found.nodes}
    assert [nodes[name].model for name in "abcd"] == ["anthropic/shaped", "openai/quick", "openai/mine", "openai/own"]
    assert nodes["b"].origins == {"llm_model": "stylesheet .fast", "llm_provider": "stylesheet .fast"}
    assert (nodes["c"].origins["llm_model"], nodes["a"].origins["llm_provider"]) == ("node", "graph")


def test_an_empty_value_of_a_node_wins_over_that_of_the_graph() -> None:
    text = graph(
        'workbench.tools="read_file"; tool_hooks.pre="check.sh"; start -> a -> b -> done\n'
        'a [prompt=x, workbench.tools="", tool_hooks.pre=""]  b [prompt=y]'
    )
    loaded = opened(text)
    assert loaded.cascade is not None
    assert loaded.graph is not None
    tools = {phase.name: tuple(phase.tools) for phase in loaded.cascade.phases}
    assert (tools["a"], tools["b"]) == ((), ("read_file",))
    assert [hooks_of(loaded.graph, name)[0] for name in "ab"] == ["", "check.sh"]


def test_what_other_programs_list_as_tools_is_read_as_what_does_the_same_here() -> None:
    """A command that has a limit is not offered: it would be without its limit."""
    text = graph(
        'start -> a -> b -> done; a [prompt=x, allowed_tools="Read, Grep,shell,Bash(git:*),mcp__x__y,read_file,mine"]\n'
        'b [prompt=y, workbench.tools="list_files", allowed_tools=Read]'
    )
    loaded = opened(text)
    assert loaded.cascade is not None
    assert {phase.name: tuple(phase.tools) for phase in loaded.cascade.phases if phase.name in "ab"} == {
        "a": ("read_file", "search_files", "linux_shell", "mine"),
        "b": ("list_files",),
    }
    found = [(p.severity, p.code, p.message) for p in check(loaded)]
    assert (I, "alias", "'allowed_tools' is read as 'workbench.tools'") in found
    assert (W, "tool_absent", "not here, and not offered: 'Bash(git:*)', 'mcp__x__y'") in found


def test_a_place_inside_a_string_is_found_through_its_escapes() -> None:
    text = graph('start -> a -> done; a [prompt="say \\"hi\\"\\n\nto $nobody_known"]')
    assert (W, "variable_unknown", 3, 4) in told(text)


def test_every_node_is_a_phase_with_its_line() -> None:
    loaded = opened(
        graph('start -> a -> t -> done\na [prompt="Do it"]\nt [shape=parallelogram, script="ls", timeout=2m]')
    )
    assert loaded.cascade is not None
    assert loaded.graph is not None
    assert [phase.name for phase in loaded.cascade.phases] == [node.id for node in loaded.graph.nodes]
    at = [phase.name for phase in loaded.cascade.phases]
    assert loaded.source.span(("phases", at.index("a"), "instructions")).line == 3
    assert loaded.cascade.phases[at.index("t")].timeout == 120.0
    assert loaded.cascade.phases[at.index("t")].inputs == {"command": "ls"}


def test_a_text_with_errors_shows_what_was_understood() -> None:
    loaded = opened(graph('start -> a -> b -> done\na [prompt="x" "y"]\nb [prompt=<x>]\nc -> d e\n?? x; b -> z'))
    assert loaded.graph is not None
    assert (loaded.cascade is None, loaded.draft is None) == (True, False)
    assert {"start", "a", "b", "done", "c", "d", "z"} <= {node.id for node in loaded.graph.nodes}


@given(st.text(alphabet='digraph{}[]"\\\n;,=->#/* <ab:.0', max_size=80))
def test_no_text_stops_the_reader(text: str) -> None:
    loaded = load("digraph g {" + text, "g.dot")
    check(loaded)
    size = len("digraph g {" + text)
    assert all(0 <= fault.start < fault.end <= size + 1 for fault in read_dot("digraph g {" + text).faults)


@given(st.text(max_size=60) | st.text('\\"\n\t\r nt', max_size=8))
def test_a_value_that_is_written_is_read_as_it_was(value: str) -> None:
    assert unescaped(escaped(value)[1:-1]) == value
    value = value.replace("\r", "")
    found = read_dot(f"digraph g {{ a [prompt={escaped(value)}] }}").nodes["a"]
    assert found.own["prompt"].value == value


VALUES = st.sampled_from(
    ("x", "summary:high", "15m", "-1", "1.5", '"two words"', r'"\"q\" \n \\"', '""', '"\n"', '"é"')
)


NAMES = st.sampled_from(("a", "b", "node_1", "c", "node"))
KEYS = st.sampled_from(("label", "k.l", "prompt", "weight", "p"))
COMMAS = st.sampled_from((",", ",", ",", ";", ""))
LISTS = st.tuples(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3), COMMAS)
STATEMENTS = st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.none() | LISTS, st.sampled_from((";", "", "\n")))


def written(statements: list[Any], gap: str) -> str:
    lines = ["digraph g {"]
    for names, attributes, end in statements:
        line = f" {gap}-> ".join(names) + f" {gap}"
        if attributes is not None:
            pairs, comma = attributes
            line += "[" + f"{comma} ".join(f"{key}{gap}={gap}{value}{gap}" for key, value in pairs) + "]"
        lines.append(line + end)
    return "\n".join([*lines, "}"])


@given(st.lists(STATEMENTS, min_size=1, max_size=4))
def test_a_comment_between_two_tokens_changes_nothing(statements: list[Any]) -> None:
    # Statements without comments are read by another way, which is quicker.
    def found(gap: str) -> DotFile:
        return read_dot(written(statements, " " + gap))

    plain, commented = found("    "), found("/**/")
    assert replace(plain, faults=[]) == replace(commented, faults=[])
    assert [(f.code, f.start) for f in plain.faults] == [(f.code, f.start) for f in commented.faults]


def test_a_pipeline_of_ten_thousand_nodes_is_read() -> None:
    prompt = "Read what the stages before this one wrote, and add what they missed. " * 2
    names = [f"stage_{number}" for number in range(10_000)]
    body = "\n".join(f'{name} [prompt="{prompt}"]' for name in names)
    text = graph(f"{body}\nstart -> {' -> '.join(names)} -> done")
    assert len(text) > 1 << 20
    loaded = opened(text)
    assert loaded.ok
    assert not loaded.problems
    assert loaded.graph is not None
    assert len(loaded.graph.edges) == 10_001
    assert loaded.graph.node("stage_9999").span.line == 10_001  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "column"), [("default_fidelity", 34), ("goal", 46)])
def test_the_place_of_an_attribute_of_the_graph_is_found_by_its_name_in_the_table(name: str, column: int) -> None:
    text = 'digraph g {\n graph [context_fidelity_default="full" goal="x"]\n a [shape=Mdiamond]\n}\n'
    span = load(text, "g.dot").source.span(("graph", name))
    assert (span.line, span.column) == (2, column)
