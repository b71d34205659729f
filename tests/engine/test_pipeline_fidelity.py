"""What the nodes of a pipeline see: fidelity by edge, node and graph; threads by five levels; the same in a what-if."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import FlatPrices, Played, Reply, Words, play
from workbench.analysis.what_if import what_if
from workbench.context.strategy import parse
from workbench.engine.definition import Options
from workbench.engine.journal.parts import CallState


def run(body: str, options: Options | None = None, /, **replies: list[Reply]) -> Played:
    text = f'digraph p {{ goal="Mend it"\n start [shape=Mdiamond]\n done [shape=Msquare]\n {body}\n}}'
    played = play(text, replies, options=options)
    assert played.outcome.status == "success", played.outcome.reason
    again = what_if(played.state, played.definition, None, Words(), FlatPrices())
    assert [r.assembly.request.digest for r in again] == [c.digest for c in calls(played)]
    assert [r.assembly.notes for r in again] == [c.notes for c in calls(played)]
    return played


def calls(played: Played) -> list[CallState]:
    return [call for call in played.state.calls if not call.beside]


def call_of(played: Played, phase: str) -> CallState:
    return next(call for call in calls(played) if call.place.phase == phase)


def sent(played: Played, phase: str, nth: int = 1) -> list[tuple[str, str]]:
    at = [i for i, (place, _) in enumerate(played.model.requests) if place.phase == phase][nth - 1]
    return played.texts(at)


LINE = "start -> a -> b -> c -> done"
SAID: dict[str, list[Reply]] = {"a": ["A"], "b": ["B"], "c": ["C"]}


def test_without_a_word_a_node_sees_a_compact_preamble_before_its_task() -> None:
    played = run(f'a [prompt="do a"] b [prompt="do b"] c [prompt="do c"] {LINE}', **SAID)
    assert sent(played, "c") == [
        (
            "user",
            "## Pipeline State\n\n- Pipeline: p\n- Goal: Mend it\n"
            "- Completed stages: start (success), a (success), b (success)\n- Current stage: c\n"
            '- Key context values:\n  - last_response: "B"',
        ),
        ("user", "do c"),
    ]
    entry = call_of(played, "c").entries[0]
    assert (str(entry.action), entry.item.source) == ("injected", "preamble")


def test_a_number_of_a_stage_counts_what_was_entered_of_what_works() -> None:
    played = run(f'graph [default_fidelity="summary:low"] a b c {LINE}', **SAID)
    assert sent(played, "b")[0][1] == (
        'Pipeline "p" stage 2 of 3. Goal: Mend it.\nCompleted: start, a. Last outcome: success.'
    )


@pytest.mark.parametrize(
    ("edge", "node", "graph", "note"),
    [
        ("full", "truncate", "summary:low", "fidelity full by edge (phase: truncate, default_fidelity: summary:low,"),
        ("", "truncate", "summary:low", "fidelity truncate by phase (default_fidelity: summary:low, default: compact)"),
        ("", "", "summary:low", "fidelity summary:low by default_fidelity (default: compact)"),
        ("", "", "", ""),
        ("nonsense", "truncate", "", "fidelity truncate by phase (default: compact)"),
    ],
)
def test_the_edge_wins_over_the_node_and_the_node_over_the_graph(edge: str, node: str, graph: str, note: str) -> None:
    says = {"fidelity": edge}, {"fidelity": node}, {"default_fidelity": graph}
    e, n, g = (" ".join(f'{key}="{value}"' for key, value in one.items() if value) for one in says)
    played = run(f"graph [{g}] a [{n}] start -> a [{e}] a -> done", a=["A"])
    notes = [line for line in call_of(played, "a").notes if line.startswith("fidelity")]
    assert [line[: len(note)] for line in notes] == ([note] if note else [])


THREAD = 'a [fidelity=full, thread_id="t"]'


@pytest.mark.parametrize(
    ("body", "note"),
    [
        (
            '{a} subgraph s {{ label="Loop A"; b [fidelity=full, thread_id="t"] }} a -> b [thread_id="e"]',
            'thread "t" by phase (edge: e, default_thread: d, subgraph: loop-a, phase before: a): a',
        ),
        (
            '{a} subgraph s {{ label="Loop A"; b [fidelity=full] }} a -> b [thread_id="t"]',
            'thread "t" by edge (default_thread: d, subgraph: loop-a, phase before: a): a',
        ),
        ("{a} b [fidelity=full] a -> b", 'thread "d" by default_thread (phase before: a): new, empty'),
    ],
)
def test_the_node_wins_over_the_edge_the_graph_the_subgraph_and_the_node_before(body: str, note: str) -> None:
    played = run(f'graph [default_thread="d"] start -> a b -> done {body.format(a=THREAD)}', a=["A"], b=["B"])
    assert note in call_of(played, "b").notes


def test_without_any_name_each_full_node_begins_a_thread_of_its_own_and_sees_nothing() -> None:
    played = run(f'graph [default_fidelity=full] a [prompt="do a"] b [prompt="do b"] c [prompt="do c"] {LINE}', **SAID)
    assert [sent(played, phase) for phase in "abc"] == [[("user", f"do {phase}")] for phase in "abc"]
    assert [next(n for n in call_of(played, p).notes if n.startswith("thread")) for p in "abc"] == [
        'thread "start" by phase before: new, empty',
        'thread "a" by phase before: new, empty',
        'thread "b" by phase before: new, empty',
    ]


def test_a_subgraph_keys_a_thread_and_revisits_append() -> None:
    body = """subgraph s { label="Loop A"
        write [fidelity=full, prompt="write"]  judge [fidelity=full, prompt="judge"] }
      start -> write -> judge
      judge -> done [condition="outcome=success"]
      judge -> write [condition="outcome=again"]"""
    played = run(body, write=["one", "two"], judge=["outcome=again", "fine"])
    told = [text for role, text in sent(played, "judge", 2) if role != "system"]
    assert told == ["write", "one", "judge", "outcome=again", "write", "two", "judge"]
    assert any(
        note.startswith('thread "loop-a" by subgraph (phase before: judge): write, judge') for note in notes(played)
    )


def notes(played: Played) -> list[str]:
    return [note for call in calls(played) for note in call.notes]


def test_branches_go_on_with_a_thread_apart() -> None:
    body = """graph [default_fidelity=full, default_thread="t"]
      a [prompt="do a"] fan [shape=component] l [prompt="do l"] r [prompt="do r"]
      meet [shape=tripleoctagon] z [prompt="do z"]
      start -> a -> fan -> l -> meet -> z -> done  fan -> r -> meet"""
    played = run(body, a=["A"], l=["L"], r=["R"], z=["Z"])
    assert [text for _, text in sent(played, "l")] == ["do a", "A", "do l"]
    assert [text for _, text in sent(played, "r")] == ["do a", "A", "do r"]
    assert [text for _, text in sent(played, "z")] == ["do a", "A", "do z"]


def test_behind_a_checkpoint_full_degrades_once_for_each_lost_thread() -> None:
    body = """graph [default_fidelity=full, default_thread="t"]
      a [prompt="do a"] b [prompt="do b"] c [prompt="do c"] d [prompt="do d", thread_id="u"]
      start -> a -> b -> c -> d -> done"""
    options = Options("test", "gpt-4o-mini", start="a", done=True, context={"tests": "2 failed"})
    played = run(body, options, b=["B"], c=["C"], d=["D"])
    preamble, task = sent(played, "b")
    assert preamble[1].startswith("## Pipeline State (Comprehensive)\n\nPipeline: p\nGoal: Mend it\nStage: b (")
    assert '"tests": "2 failed"' in preamble[1]
    assert task == ("user", "do b")
    assert [text for _, text in sent(played, "c")] == [preamble[1], "do b", "B", "do c"]
    assert sent(played, "d")[0][1].startswith("## Pipeline State (Comprehensive)")
    lost = [note for note in notes(played) if "not in the checkpoint" in note]
    assert [note.partition(" by ")[0] for note in lost] == ['thread "t"', 'thread "u"']


def test_a_strategy_of_one_format_is_a_what_if_of_another() -> None:
    played = run(f'a [prompt="do a"] b [prompt="do b"] c [prompt="do c"] {LINE}', **SAID)

    def last(spec: str) -> Any:
        return what_if(played.state, played.definition, parse(spec), Words(), FlatPrices())[-1].assembly

    assert [m.text for m in last("entities").request.messages] == [
        "## Outputs from Dependent Tasks\n\n### Task b: b\n**Output:**\nB\n\n---\n\ndo c"
    ]
    assert [m.text for m in last("snowball").request.messages] == ["do a", "A", "do b", "B", "do c"]
    composed = last("fidelity(mode=summary:high,budget=30)+mask(after=1)")
    assert composed.tokens_sent <= 60
    assert any("items left out, budget 30" in note for note in composed.notes)
