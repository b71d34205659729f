"""A model that the provider does not have: the line that names it, and known names that are like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.support import play
from workbench.engine.contracts import ModelFault
from workbench.models.prices import PriceTable
from workbench.workspace.model_place import model_words

PHASE = "cascade_id: c\nphases:\n  - name: p\n    instructions: go\n"
GONE = [ModelFault("not_found", "no such model", status=404)] * 3
LIKE = "; known names like it: openai/gpt-4.1-mini, openai/gpt-4o-mini"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("    model: openai/gpt-4.1-minii\n", f"test.yaml:5:12: 'openai/gpt-4.1-minii' is named here{LIKE}"),
        ("    model: openai/gpt-4.1-mini\n", "test.yaml:5:12: 'openai/gpt-4.1-mini' is named here"),
        (
            "    soundings: {models: {openai/gpt-4.1-minii: {factor: 2}}}\n",
            f"test.yaml:5:26: 'openai/gpt-4.1-minii' is named here{LIKE}",
        ),
        (
            "",
            "no line of the file names 'gpt-4o-mini': it comes from --model, from WORKBENCH_DEFAULT_MODEL, "
            "or is the built-in default",
        ),
    ],
)
def test_the_line_that_names_a_model_is_told_with_names_like_it(tmp_path: Path, written: str, words: str) -> None:
    entry = {"litellm_provider": "openai", "input_cost_per_token": 1e-6}
    (tmp_path / "map.json").write_text(
        json.dumps({"gpt-4.1-mini": entry, "gpt-4o-mini": entry, "claude-x": {"litellm_provider": "other"}})
    )
    played = play(PHASE + written, GONE)
    call = next(call for call in played.state.calls if call.failures)
    assert model_words(played.state, call, PriceTable(file=tmp_path / "map.json")) == words.replace("…", "WORKBENCH")
