"""The card of a phase that has not run: what it will see, search and remember."""

from __future__ import annotations

from workbench.language.load import load
from workbench.tui.rows.definition import CardRows

CASCADE = """\
cascade_id: c
memory: answered
phases:
  - {name: find, instructions: x, tackle: [answered], rag: {directory: docs, model: tiny}}
  - name: tell
    instructions: x
    context: {mode: auto, selection: {strategy: llm, max_tokens: 1200}}
    rag: {directory: docs}
"""


def facts(name: str) -> dict[str, str]:
    cascade = load(CASCADE).cascade
    assert cascade is not None
    phase = cascade.phase(name)
    assert phase is not None
    rows = CardRows(cascade, phase, "n runs")
    lines = [rows.row(index, 100).text.strip() for index in range(len(rows))]
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def test_a_phase_that_searches_says_where_and_how() -> None:
    card = facts("find")
    assert card["documents"] == "docs searched by likeness (tiny)"
    assert card["memory"] == "answered what earlier runs said"
    assert facts("tell")["documents"] == "docs searched by words"


def test_a_phase_with_automatic_context_says_who_selects_and_how_much() -> None:
    assert facts("tell")["sees"].endswith("what selection adds (llm, at most 1,200 tokens)")
    assert "memory" not in facts("tell")
