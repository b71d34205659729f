"""Provider faults, limits, and secrets: what the engine does when the world misbehaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import call, native, play
from workbench.context.place import Place
from workbench.engine.contracts import Answer, ModelFault, NativeCall, ValidatorFault, ValidatorVerdict
from workbench.engine.definition import Options
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.store.summary import Summarizer

ONE: dict[str, Any] = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "Do {{ input.key }}."}]}


def test_a_fault_is_retried_twice_and_each_try_is_an_event() -> None:
    played = play(ONE, [ModelFault("server", "500"), ModelFault("timeout", "slow"), "Done."])
    assert played.outcome.status == "success"
    assert [e.data["error"]["kind"] for e in played.of_kind("call_failed")] == ["server", "timeout"]
    assert [e.data["try"] for e in played.of_kind("call_started")] == [1, 2, 3]
    assert len(played.clock.slept) == 2


@pytest.mark.fault("F20")
def test_the_wait_that_a_provider_asks_for_is_kept_and_shown() -> None:
    played = play(ONE, [ModelFault("rate_limit", "429", retry_after=7.5), "Done."])
    assert played.clock.slept == [7.5]
    assert [n.data["seconds"] for n in played.notices if n.kind == "retry"] == [7.5]


@pytest.mark.fault("F21")
def test_after_three_tries_the_phase_fails_with_the_fault() -> None:
    played = play(ONE, [ModelFault("server", "boom")] * 3)
    assert played.outcome.status == "failed"
    assert "server after 3 tries: boom" in played.outcome.reason


@pytest.mark.parametrize("kind", ["authentication", "not_found", "bad_request", "context_length", "no_model"])
def test_a_final_fault_is_not_retried(kind: str) -> None:
    played = play(ONE, [ModelFault(kind, "no")])
    assert len(played.model.requests) == 1
    assert played.outcome.status == "failed"


def test_a_blank_answer_is_retried() -> None:
    assert play(ONE, ["  \n", "Done."]).outcome.output == "Done."


def test_a_limit_stops_the_run_and_names_itself() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "rules": {"max_turns": 9}}]}
    played = play(document, ["a"] * 9, options=Options("s", "gpt-4o", max_calls=2))
    assert played.outcome.status == "stopped"
    assert "2 calls" in played.outcome.reason


def test_secrets_are_replaced_before_anything_is_journaled_or_sent() -> None:
    secret = "hunter2hunter2"

    def redact(text: str) -> tuple[str, int]:
        return text.replace(secret, "[redacted]"), text.count(secret)

    document = {
        "cascade_id": "c",
        "phases": [
            {"name": "p", "instructions": "{{ input.key }}", "tackle": ["leak", "set_state"], "rules": {"max_turns": 3}}
        ],
    }
    played = play(
        document,
        [f"I say {secret}\n" + call("leak") + "\n" + call("set_state", key="k", value=secret), f"end {secret}"],
        input={"key": secret},
        tools={"leak": lambda x="": f"found {secret}"},
        redact=redact,
    )
    assert secret not in repr(played.events)
    assert secret not in repr(played.model.requests)
    assert secret not in repr(played.notices)
    assert played.outcome.state == {"k": "[redacted]"}


def test_a_secret_in_a_native_call_reaches_neither_the_tool_nor_the_journal() -> None:
    document = {
        "cascade_id": "c",
        "phases": [
            {"name": "p", "instructions": "x", "tackle": ["t"], "use_native_tools": True, "rules": {"max_turns": 2}}
        ],
    }
    played = play(
        document,
        [native("hunter2", t={"x": "hunter2"}), "end"],
        tools={"t": lambda x="": f"got {x}"},
        redact=lambda text: (text.replace("hunter2", "[redacted]"), text.count("hunter2")),
    )
    assert played.tools.called == [("t", {"x": "[redacted]"})]
    assert "hunter2" not in repr(played.events)


def test_a_secret_in_a_call_or_in_what_a_provider_says_of_itself_is_replaced_and_results_find_their_calls() -> None:
    phase = {"name": "p", "instructions": "x", "tackle": ["t"], "use_native_tools": True, "rules": {"max_turns": 2}}
    names = ("finish_reason", "model", "provider", "provider_id")
    said: dict[str, Any] = {name: f"{name} hunter2" for name in names} | {"remarks": ("hunter2 was left out",)}
    calls = tuple(NativeCall(f"hunter2{end}", name, "{}") for end, name in (("", "t"), ("", "hunter2")))
    played = play(
        {"cascade_id": "c", "phases": [phase]},
        [Answer("", calls, **said), "end"],
        tools={"t": lambda: "ok"},
        redact=_hide,
    )
    assert "hunter2" not in repr(played.events)
    _, request = played.model.requests[-1]
    sent = request.messages
    asked = [call.id for message in sent for call in message.tool_calls]
    assert len(set(asked)) == 2, "two ids that held the same secret are still two"
    assert [message.tool_call_id for message in sent if message.role == "tool"] == asked


def _hide(text: str) -> tuple[str, int]:
    return text.replace("hunter2", "[redacted]"), text.count("hunter2")


_ASKS_A_VALIDATOR: dict[str, dict[str, Any]] = {
    "ward": {"wards": {"post": [{"validator": "v", "mode": "advisory"}]}},
    "loop_until": {"rules": {"loop_until": "v", "max_attempts": 1}},
    "prefilter": {"soundings": {"factor": 2, "validator": "v", "evaluator_instructions": "x"}},
    "threshold": {
        "soundings": {
            "factor": 2,
            "evaluator_instructions": "x",
            "reforge": {"steps": 1, "honing_prompt": "x", "threshold": {"validator": "v"}},
        }
    },
    "quality": {
        "soundings": {
            "factor": 2,
            "evaluator_instructions": "x",
            "pareto_frontier": {"enabled": True, "quality_metric": "validator:v"},
        }
    },
}


@pytest.mark.parametrize("asked", _ASKS_A_VALIDATOR)
def test_a_secret_in_what_a_validator_says_reaches_no_journal_and_no_model(asked: str) -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", **_ASKS_A_VALIDATOR[asked]}]}
    validators = {"v": lambda text: ValidatorVerdict(False, "hunter2 is wrong")}
    played = play(document, ["1"] * 9, validators=validators, redact=_hide)
    assert any(event.kind == "check_finished" for event in played.events)
    assert "hunter2" not in repr(played.events) + repr(played.model.requests) + repr(played.outcome)


def test_a_secret_in_why_a_validator_could_not_judge_is_not_in_the_reason_of_the_run() -> None:
    def raises(text: str) -> ValidatorVerdict:
        raise ValidatorFault("no file hunter2")

    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "rules": {"loop_until": "v"}}]}
    played = play(document, ["1"], validators={"v": raises}, redact=_hide)
    assert "validator 'v': no file [redacted]" in played.outcome.reason
    assert "hunter2" not in repr(played.events)


@pytest.mark.fault("F19")
def test_a_raising_template_fails_the_phase_with_its_place() -> None:
    text = "cascade_id: c\nphases:\n  - name: a\n    instructions: 'x {{ 1 / 0 }}'\n"
    played = play(text, [])
    assert played.outcome.status == "failed"
    assert "test.yaml:4:" in played.outcome.reason


def test_a_failed_try_keeps_its_request_and_how_it_became_bytes() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Do ."}]}
    played = play(ONE, [ModelFault("server", "no", wire=body, wire_style="spaced"), "Done."])
    (failed,) = played.of_kind("call_failed")
    assert failed.data["wire"]["style"] == "spaced"


def test_a_call_that_failed_took_no_known_time() -> None:
    (call_state,) = RunState.of(play(ONE, [ModelFault("bad_request", "no")]).events).calls
    assert (call_state.status, call_state.duration_s) == ("failed", None)


def test_a_price_that_comes_late_is_the_price_of_its_call() -> None:
    """Without a place it belongs to the first answered call of that request whose cost is not known."""
    played = play(ONE, ["Done."])
    digest = played.of_kind("call_started")[0].data["digest"]
    seq, run_id = played.events[-1].seq + 1, played.events[-1].run_id
    before = RunState.of(played.events)
    late = {"digest": digest, "cost": 0.125, "cost_grade": "billed", "usage": {"cached": 3, "output": None}}
    after = RunState.of([*played.events, Event(seq, "", run_id, "cost_known", Place(), late)])
    known, was = after.calls[0], before.calls[0]
    assert (known.cost, known.cost_grade, known.usage.cached) == (0.125, "billed", 3)
    assert known.usage.output == was.usage.output, "what is not told again stays"
    counted = {"digest": digest, "usage": {"input": 70, "output": 9}}
    told = [*played.events, Event(seq, "", run_id, "cost_known", Place(), counted)]
    state, fold = RunState.of(told), Summarizer(run_id)
    for event in told:
        fold.apply(event)
    assert (
        (state.own.tokens_in, state.own.tokens_out) == (fold.summary().tokens_in, fold.summary().tokens_out) == (70, 9)
    )
    nowhere = RunState.of([*played.events, Event(seq, "", run_id, "cost_known", Place(), {"digest": "x", "cost": 1.0})])
    assert nowhere.own == before.own
