"""The card of a phase that has not run: what it will see, search and remember."""

from __future__ import annotations

from workbench.engine.definition import Definition
from workbench.language.load import load
from workbench.views.definition import CardRows
from workbench.views.node import NodeCard

CASCADE = """\
cascade_id: c
memory: answered
temperature: 1
seed: 7
phases:
  - {name: find, instructions: x, tackle: [answered], rag: {directory: docs, model: tiny}}
  - name: tell
    instructions: x
    context: {mode: auto, selection: {strategy: llm, max_tokens: 1200}}
    rag: {directory: docs}
  - {name: vie, instructions: x, soundings: {factor: 6, models: {a: {factor: 3}, b: {factor: 4}}}}
  - {name: ask, instructions: x, soundings: {factor: "{{ input.n }}", models: [a]}}
  - {name: pick, instructions: x, tackle: manifest}
  - {name: form, instructions: x, temperature: 0.5, parameters: {top_k: 3}, output_schema: {}, enforce: both}
"""


def facts(name: str) -> dict[str, str]:
    cascade = load(CASCADE).cascade
    assert cascade is not None
    phase = cascade.phase(name)
    assert phase is not None
    rows = CardRows(cascade, phase, "n runs")
    lines = [rows.row(index, 100).text.strip() for index in range(len(rows))]
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def test_a_phase_says_who_chooses_its_tools() -> None:
    assert facts("pick")["tools"] == "chosen by the Quartermaster"
    assert (facts("find")["tools"], facts("tell")["tools"]) == ("answered", "none")


def test_a_phase_that_searches_says_where_and_how() -> None:
    card = facts("find")
    assert card["documents"] == "docs searched by similarity (tiny)"
    assert card["memory"] == "answered what earlier runs said"
    assert facts("tell")["documents"] == "docs searched by words"


def test_a_phase_with_automatic_context_says_who_selects_and_how_much() -> None:
    assert facts("tell")["sees"].endswith("what selection adds (llm, at most 1,200 tokens)")
    assert "memory" not in facts("tell")


def test_a_phase_says_what_its_requests_carry_and_who_enforces_its_schema() -> None:
    assert facts("form")["sent"] == "with temperature 0.5, seed 7, top_k 3"
    assert facts("form")["checks"] == "output schema (enforced: both)"


def test_a_phase_says_how_many_candidates_run_not_only_what_its_factor_says() -> None:
    assert facts("vie")["soundings"] == "7 candidates"
    assert facts("ask")["soundings"] == "{{ input.n }} candidates"


def test_the_card_says_what_the_next_run_is_given_and_which_line_says_what() -> None:
    loaded = load("inputs_schema: {log: a file, days: how many}\n" + CASCADE)
    cascade = loaded.cascade
    assert cascade is not None
    rows = CardRows(cascade, cascade.phases[0], "n runs", source=loaded.source, given={"log": "night.log"})
    lines = [rows.row(index, 100).text for index in range(len(rows))]
    assert "log = night.log" in lines[0]
    assert "days = not set" in lines[1]
    assert [rows.facts[index].is_input for index in (0, 1, 2)] == [True, True, False]
    tools = next(fact for fact in rows.facts if fact.label == "tools")
    assert tools.line == 7
    assert next(line for line in lines if "answered" in line).rstrip().endswith(":7")


def test_a_node_of_a_pipeline_says_which_fidelity_it_has() -> None:
    text = """digraph p { graph [default_fidelity=truncate]; s [shape=Mdiamond]; e [shape=Msquare]
      a [prompt="A"]; b [prompt="B", fidelity="summary:low"]; s -> a -> b -> e }"""
    definition = Definition.of(text, "p.dot")
    graph, cascade = definition.graph, definition.cascade

    def sees(name: str) -> str:
        node, phase = graph.node(name), cascade.phase(name)
        assert node is not None
        assert phase is not None
        rows = NodeCard(graph, node, None, "", definition=(cascade, phase))
        return next(t for t in (rows.row(i, 120).text.strip() for i in range(len(rows))) if t.startswith("sees"))

    assert "what fidelity truncate gives, unless an edge into it says another" in sees("a")
    assert "what fidelity summary:low gives" in sees("b")
