"""Token budgets while a run goes on, and tool results that are used again."""

from __future__ import annotations

from typing import Any

from tests.engine.support import Played, StepClock, call, play
from tests.engine.test_replay import check_replay

LONG = "word " * 60


def budgeted(mode: str, limit: int) -> Played:
    document = {
        "cascade_id": "c",
        "token_budget": {"max_total": limit, "reserve_for_output": 0, "strategy": mode},
        "phases": [{"name": "p", "instructions": "Go.", "tackle": ["t"], "rules": {"max_turns": 4}}],
    }
    replies = [call("t", x="1"), call("t", x="2"), call("t", x="3"), "done", "sum", "done", "done"]
    return play(document, replies, tools={"t": lambda x: LONG + x})


def test_the_oldest_turns_are_dropped_to_fit() -> None:
    played = budgeted("sliding_window", 260)
    assert played.outcome.status == "success", played.outcome.reason
    assert any(entry.sent is None for entry in played.state.calls[-1].entries)
    assert played.state.calls[-1].tokens_sent <= 260


def test_a_budget_may_fail_the_phase() -> None:
    played = budgeted("fail", 150)
    assert played.outcome.status == "failed"
    assert "over the limit" in played.outcome.reason


def test_a_summary_is_made_beside_the_turns_and_stands_for_the_oldest() -> None:
    played = budgeted("summarize", 260)
    assert played.outcome.status == "success", played.outcome.reason
    purposes = [event.data["purpose"] for event in played.of_kind("call_started")]
    assert "summary" in purposes


def cached(calls: list[str], functions: dict[str, Any], **caching: Any) -> Played:
    document = {
        "cascade_id": "c",
        "tool_caching": {"enabled": True, **caching},
        "phases": [
            {"name": "p", "instructions": "Go.", "tackle": [*functions, "set_state"], "rules": {"max_turns": 9}}
        ],
    }
    return play(document, [*calls, "done"], tools=functions)


def test_an_equal_call_is_answered_from_the_cache_and_says_so() -> None:
    played = cached(
        [call("t", x="1"), call("t", x="1")], {"t": lambda x: f"r{x}"}, tools={"t": {"hit_message": "(again)"}}
    )
    assert len(played.tools.called) == 1
    assert [e.data["cached"] for e in played.of_kind("tool_finished")] == [False, True]
    assert played.of_kind("tool_finished")[1].data["text"] == "(again)\nr1"


def test_a_tool_that_is_not_listed_is_never_cached() -> None:
    played = cached([call("t", x="1"), call("t", x="1")], {"t": lambda x: f"r{x}"})
    assert len(played.tools.called) == 2


def test_a_state_change_forgets_what_depends_on_it() -> None:
    replies = [call("t", x="1"), call("set_state", key="k", value=1), call("t", x="1")]
    played = cached(replies, {"t": lambda x: f"r{x}"}, tools={"t": {"invalidate_on": ["state:k"]}})
    assert len(played.tools.called) == 2


class Slow(StepClock):
    """Ten seconds pass between two looks."""

    def monotonic(self) -> float:
        self._ticks += 10_000
        return super().monotonic()


def test_what_was_reused_and_what_had_expired_is_so_again_in_a_replay() -> None:
    document = {
        "cascade_id": "c",
        "tool_caching": {"enabled": True, "tools": {"t": {"ttl": 5, "hit_message": "(again)"}, "u": {}}},
        "phases": [{"name": "p", "instructions": "Go.", "tackle": ["t", "u"], "rules": {"max_turns": 9}}],
    }
    calls = [call("t", x="1"), call("t", x="1"), call("u", x="1"), call("u", x="1"), "done"]
    both = {"t": lambda x: f"r{x}", "u": lambda x: f"r{x}"}
    played = play(document, calls, tools=both, input={"what": "it"}, clock=Slow())
    assert [e.data["cached"] for e in played.of_kind("tool_finished")] == [False, False, False, True]
    check_replay(played)


def test_candidates_do_not_reuse_what_another_one_found_and_the_winners_findings_stay() -> None:
    phase = {"instructions": "Go.", "tackle": ["t"], "rules": {"max_turns": 3}}
    document = {
        "cascade_id": "c",
        "tool_caching": {"enabled": True, "tools": {"t": {}}},
        "phases": [{"name": "p", **phase, "soundings": {"factor": 2, "max_parallel": 1}}, {"name": "q", **phase}],
    }
    replies = [call("t", x="1"), "a", call("t", x="1"), "b", '{"winner": 2}', call("t", x="1"), "end"]
    played = play(document, replies, tools={"t": lambda x: f"r{x}"})
    assert [e.data["cached"] for e in played.of_kind("tool_finished")] == [False, False, True]
