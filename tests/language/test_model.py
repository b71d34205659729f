"""The models take what the language takes, and say what it means."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from workbench.language.model.base import Model
from workbench.language.model.candidates import Soundings, Ward
from workbench.language.model.cascade import Cascade, HumanInput, Narrator, Phase
from workbench.language.model.context import ContextRules
from workbench.language.model.flow import Rules
from workbench.language.model.shape import shape


def phase(**fields: Any) -> Phase:
    return Phase.model_validate({"name": "p", "instructions": "x", **fields})


def soundings(**fields: Any) -> Soundings:
    return Soundings.model_validate(fields)


def test_names_stand_for_what_they_name() -> None:
    found = phase(
        handoffs=["a", {"target": "b", "description": "d"}],
        context={"from": ["previous", {"phase": "a", "include": ["messages"]}]},
        callouts="tag",
        wards={"post": ["length_check"]},
        human_input=True,
        narrator=False,
        decision_points={"routing": {"yes": "next"}},
    )
    assert [handoff.target for handoff in found.handoffs] == ["a", "b"]
    assert found.context is not None
    assert [source.phase for source in found.context.from_] == ["previous", "a"]
    assert found.context.from_[0].model_fields_set == {"phase"}
    assert found.callouts is not None
    assert found.callouts.output == "tag"
    assert found.wards.post == (Ward(validator="length_check"),)
    assert found.human_input == HumanInput()
    assert found.narrator == Narrator(enabled=False)
    assert found.decision_points is not None
    assert found.decision_points.routing["yes"].to == "next"


def test_human_input_false_asks_nobody() -> None:
    assert phase(human_input=False).human_input is None


def test_accepted_spellings_are_read_as_the_proper_ones() -> None:
    found = ContextRules.model_validate({"from": [{"phase": "a", "filter": "last-turn", "if": "state.x"}]}).from_[0]
    assert (found.messages_filter, found.condition) == ("last_turn", "state.x")
    assert soundings(model_strategy="round-robin").model_strategy == "round_robin"


def test_a_spelling_beside_the_proper_key_does_not_win() -> None:
    found = ContextRules.model_validate({"from": [{"phase": "a", "filter": "all", "messages_filter": "last_turn"}]})
    assert found.from_[0].messages_filter == "last_turn"


@pytest.mark.parametrize(
    ("written", "seconds"), [("30s", 30.0), ("5m", 300.0), ("24h", 86400.0), ("1.5 s", 1.5), ("250ms", 0.25), (7, 7.0)]
)
def test_durations_are_seconds(written: Any, seconds: float) -> None:
    assert phase(timeout=written).timeout == seconds


@pytest.mark.parametrize("written", ["soon", "5", "-5s", True, [1]])
def test_what_is_no_duration_is_refused(written: Any) -> None:
    with pytest.raises(ValidationError):
        phase(timeout=written)


def test_null_counts_as_not_written() -> None:
    found = phase(tackle=None, rules=None, soundings=None, model=None)
    assert found.tackle == ()
    assert found.model_fields_set == {"name", "instructions"}


def test_an_empty_context_is_not_the_same_as_none() -> None:
    assert phase(context={}).context is not None
    assert phase().context is None
    with pytest.raises(ValidationError):
        phase(context=None)


def test_loop_until_makes_five_attempts_unless_told_otherwise() -> None:
    assert Rules(loop_until="v").max_attempts == 5
    assert "max_attempts" not in Rules(loop_until="v").model_fields_set
    assert Rules(loop_until="v", max_attempts=2).max_attempts == 2
    assert Rules().max_attempts == 1


def test_mutations_or_a_mode_switch_mutation_on() -> None:
    assert soundings(mutation_mode="augment").mutate
    assert soundings(mutations=["x"]).mutate
    assert not soundings(mutations=["x"], mutate=False).mutate
    assert not soundings(factor=3).mutate
    assert "mutate" not in soundings(mutations=["x"]).model_fields_set


def test_the_number_of_candidates() -> None:
    assert soundings(factor=4).candidates == 4
    assert soundings(models=["a", "b", "c"]).candidates == 3
    assert soundings(models=["a", "b"], factor=5).candidates == 5
    shares = {"a": {"factor": 2}, "b": {}}
    assert soundings(models=shares, factor=9).candidates == 3
    assert soundings(models=shares, factor=9, model_strategy="weighted").candidates == 9
    assert soundings(models=shares, model_strategy="weighted").candidates == 3


def test_unknown_keys_are_kept() -> None:
    found = phase(tackel=["a"], rules={"max_turn": 3})
    assert found.model_extra == {"tackel": ["a"]}
    assert found.rules.model_extra == {"max_turn": 3}


def test_a_model_does_not_change() -> None:
    with pytest.raises(ValidationError):
        phase().name = "q"


def test_tools_are_the_listed_ones_and_none_with_a_manifest() -> None:
    assert phase(tackle=["a"]).tools == ("a",)
    assert phase(tackle="manifest").tools == ()
    assert phase(tackle="manifest").manifest


def test_an_inline_fallback_is_named_after_its_phase() -> None:
    found = Phase.model_validate({"name": "fetch", "tool": "get", "on_error": {"instructions": "Say so."}})
    assert isinstance(found.on_error, Phase)
    assert found.on_error.name == "fetch_fallback"
    assert found.deterministic


def test_arguments_of_a_tool_are_texts() -> None:
    found = Phase.model_validate({"name": "p", "tool": "t", "inputs": {"a": False, "b": 1.5, "c": "x", "d": None}})
    assert found.inputs == {"a": "false", "b": "1.5", "c": "x", "d": "null"}


def test_every_field_says_its_tier_and_what_it_means() -> None:
    seen: set[type[Model]] = set()
    queue: list[type[Model]] = [Cascade]
    while queue:
        model = queue.pop()
        seen.add(model)
        for field in shape(model).values():
            assert field.tier in ("1", "2·run", "2·load", "W"), (model, field.key)
            assert field.description.endswith("."), (model, field.key)
            if field.model is not None and field.model not in seen:
                queue.append(field.model)
    assert len(seen) > 35


def test_what_was_written_can_be_written_again() -> None:
    body = {
        "cascade_id": "c",
        "phases": [{"name": "p", "instructions": "x", "context": {"from": [{"phase": "q", "note": 1}]}}],
    }
    assert Cascade.model_validate(body).model_dump(exclude_unset=True, mode="json") == body


@pytest.mark.proof
def test_a_hundred_phases_are_validated_in_milliseconds() -> None:
    body = {"name": "p", "instructions": "x", "rules": {"max_turns": 2}, "handoffs": ["a", "b"], "context": {}}
    data = {"cascade_id": "c", "phases": [{**body, "name": f"p{i}"} for i in range(100)]}
    Cascade.model_validate(data)
    best = min(_timed(lambda: Cascade.model_validate(data)) for _ in range(5))
    assert best < 0.05


def _timed(work: Any) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


PLUGIN = """\
from pathlib import Path
Path("told").write_text("imported")
class Plugin:
    def new_schema_validator(self, *_: object) -> tuple[None, None, None]:
        return None, None, None
plugin = Plugin()
"""
ASKED = """\
import os
from pathlib import Path
from pydantic import BaseModel
from workbench.language.load import load
loaded = load("cascade_id: a\\nphases: [{name: b, instructions: c}]", "a.yaml")
print(loaded.cascade is not None, Path("told").exists(), "PYDANTIC_DISABLE_PLUGINS" in os.environ)
type("Other", (BaseModel,), {})
print(Path("told").exists())
"""


def test_what_packages_add_to_pydantic_has_no_say_in_a_cascade_and_keeps_it_elsewhere(tmp_path: Path) -> None:
    about = tmp_path / "adds-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: adds\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[pydantic]\nadds = adds:plugin\n")
    (tmp_path / "adds.py").write_text(PLUGIN)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    command = [sys.executable, "-c", ASKED]
    said = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["True False False", "True"]
