"""The token budget: what goes first, what never goes, and what is said when nothing more can go."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.context.support import Conversation, WordCounter, alone, assembled, cascade, scope, texts
from workbench.context.assembler import Assembler
from workbench.context.assembly import Action, Assembly, BudgetFit, Kind
from workbench.context.place import Place
from workbench.context.scope import Summary
from workbench.context.strategy import parse

TEN = "w " * 10


def talk(turns: int, *, native: bool = False) -> Conversation:
    """A task of 7 tokens; turns with a tool result of ten words."""
    made = Conversation(native=native).task("Find the failure.")
    for number in range(1, turns + 1):
        made.turn(number).calls(("read", TEN), text="Look.")
    return made


def fitted(budget: str, turns: int = 6, **how: Any) -> Assembly:
    made = talk(turns, native=True)
    return assembled(alone(), made, made.next_place(turns + 1), f"selective+{budget}", **how)


def kept_turns(assembly: Assembly) -> list[int]:
    return sorted(
        {entry.item.place.turn for entry in assembly.entries if entry.sent and entry.item.kind is Kind.RESULT}
    )


def test_what_fits_is_left_alone() -> None:
    assembly = fitted("budget(max=1000,reserve=0)")
    assert assembly.fit == BudgetFit(1000, "sliding_window", 0, False)
    assert kept_turns(assembly) == [1, 2, 3, 4, 5, 6]


def test_the_oldest_turns_go_whole_and_no_more_of_them_than_needed() -> None:
    whole = fitted("budget(max=none)").tokens_sent
    size = whole - fitted("budget(max=none)", 5).tokens_sent
    assert [len(kept_turns(fitted(f"budget(max={whole - gone},reserve=0)"))) for gone in (0, 1, size, size + 1)] == [
        6, 5, 5, 4,
    ]  # fmt: skip
    assert not fitted(f"budget(max={whole - size},reserve=0)").problems


def test_the_reserve_is_kept_free() -> None:
    assembly = fitted("budget(max=150,reserve=50)")
    assert assembly.fit is not None
    assert (assembly.fit.limit, assembly.tokens_sent <= 100) == (100, True)


def test_system_task_and_the_live_turn_never_go() -> None:
    made = talk(3)
    where = replace(alone(), tool_text="Tools.")
    assembly = assembled(where, made, made.next_place(4), "selective+budget(max=10,reserve=0)")
    assert [entry.item.kind for entry in assembly.entries if entry.sent is not None] == [
        Kind.SYSTEM, Kind.TASK, Kind.ANSWER, Kind.RESULT,
    ]  # fmt: skip
    assert assembly.fit is not None
    assert assembly.fit.over == assembly.tokens_sent - 10


def test_pruning_masks_the_oldest_results_before_it_drops_turns() -> None:
    made = talk(4)
    whole = assembled(alone(), made, made.next_place(5)).tokens_sent
    assembly = assembled(
        alone(), made, made.next_place(5), f"selective+budget(max={whole - 1},reserve=0,mode=prune_oldest)"
    )
    actions = [entry.action for entry in assembly.entries if entry.item.kind is Kind.RESULT]
    assert actions == [Action.MASKED, Action.KEPT, Action.KEPT, Action.KEPT]
    small = assembled(alone(), made, made.next_place(5), "selective+budget(max=62,reserve=0,mode=prune_oldest)")
    actions = [entry.action for entry in small.entries if entry.item.kind is Kind.RESULT]
    assert actions == [Action.DROPPED, Action.DROPPED, Action.MASKED, Action.KEPT]
    assert small.tokens_sent <= 62


def test_fail_drops_nothing_and_says_by_how_much_it_is_over() -> None:
    assembly = fitted("budget(max=100,reserve=0,mode=fail)")
    assert kept_turns(assembly) == [1, 2, 3, 4, 5, 6]
    assert assembly.fit == BudgetFit(100, "fail", assembly.tokens_sent - 100, True)


@pytest.mark.parametrize(("limit", "warns"), [(1000, False), (170, True)])
def test_a_warning_is_due_above_the_threshold(limit: int, warns: bool) -> None:
    fit = fitted(f"budget(max={limit},reserve=0)").fit
    assert fit is not None
    assert fit.warns == warns


def carried(budget: dict[str, Any]) -> Assembly:
    """A phase under a snowball of two visits, with its input injected first."""
    visits = [talk_of(name) for name in ("one", "two")]
    definition = cascade(
        {"name": "one"},
        {"name": "two"},
        {"name": "work", "inject_from": ["one"]},
        token_budget=budget,
    )
    return assembled(scope(definition, visits=tuple(visits)), Conversation().task())


def talk_of(phase: str) -> Any:
    return Conversation(phase).task(f"Task of {phase}.").says(f"{phase} answers {TEN}").record("x")


def test_turns_that_entered_go_before_injected_texts() -> None:
    whole = carried({"max_total": 1000, "reserve_for_output": 0})
    gone = carried({"max_total": whole.tokens_sent - 1, "reserve_for_output": 0})
    assert [text.split()[0] for _, text in texts(gone)] == ["[Output", "Task", "two", "Find"]
    least = carried({"max_total": 12, "reserve_for_output": 0})
    assert texts(least) == [("user", "Find the failure.")]
    assert least.entries[0].rule.path == "token_budget.max_total"


def test_a_turn_that_entered_never_opens_with_an_assistant() -> None:
    first = Conversation("one").task("T").says("a " * 30).turn(2).says("b " * 30).record("x")
    definition = cascade({"name": "one"}, {"name": "work"}, context_default="snowball")
    where = scope(definition, visits=(first,))
    assembly = assembled(where, Conversation().task(), None, "snowball+budget(max=60,reserve=0)")
    assert texts(assembly) == [("user", "Find the failure.")]
    assert not assembly.problems


def test_phase_overrides_replace_the_total() -> None:
    definition = cascade(
        {"name": "work"},
        token_budget={"max_total": 5000, "reserve_for_output": 10, "phase_overrides": {"work": 110}},
    )
    made = talk(9)
    assembly = assembled(scope(definition), made, made.next_place(10))
    assert assembly.fit is not None
    assert assembly.fit.limit == 100
    assert assembly.strategy == "selective+budget(max=110,reserve=10)"
    dropped = next(entry for entry in assembly.entries if entry.sent is None)
    assert dropped.rule.path == "token_budget.phase_overrides.work"


def summarising(turns: int) -> tuple[Assembler, Conversation]:
    made = talk(turns)
    spec = "selective+budget(max=150,reserve=0,mode=summarize,target=10)"
    assembler = Assembler(alone(), parse(spec), WordCounter())
    for item in made.items:
        assembler.add(item)
    return assembler, made


def test_a_summary_is_asked_for_and_then_stands_for_the_oldest_turns() -> None:
    assembler, made = summarising(6)
    without = assembler.assemble(made.next_place(7))
    wanted = assembler.summary_wanted
    assert wanted is not None
    assert wanted.items == tuple(made.items[1 : 1 + len(wanted.items)])
    assert without.tokens_sent <= 150
    assembler.add_summary(Summary(wanted.covers, "Six looks."))
    assembly = assembler.assemble(made.next_place(7))
    assert assembler.summary_wanted is None
    assert texts(assembly)[1] == ("user", "[Summary of earlier turns]:\nSix looks.")
    assert assembly.entries[1].action is Action.SUMMARIZED
    assert [entry.action for entry in assembly.entries[2 : 1 + len(wanted.items)]] == [Action.DROPPED] * (
        len(wanted.items) - 1
    )
    assert assembly.tokens_sent <= 150
    assert not assembly.problems


def test_a_summary_made_before_gives_the_same_request_from_scratch() -> None:
    assembler, made = summarising(6)
    assembler.assemble(made.next_place(7))
    wanted = assembler.summary_wanted
    assert wanted is not None
    summary = Summary(wanted.covers, "Six looks.")
    assembler.add_summary(summary)
    grown = assembler.assemble(made.next_place(7))
    where = replace(alone(), summaries=(summary,))
    again = assembled(where, made, made.next_place(7), str(assembler.strategy))
    assert again.entries == grown.entries
    assert again.request == grown.request


def test_a_summary_of_other_messages_is_not_used() -> None:
    where = replace(alone(), summaries=(Summary("0" * 64, "Lies."),))
    made = talk(9)
    assembly = assembled(where, made, made.next_place(10), "selective+budget(max=150,reserve=0,mode=summarize)")
    assert not any("Lies." in text for _, text in texts(assembly))


def test_masking_comes_before_the_budget() -> None:
    made = talk(6)
    place = Place("", "work", 1, 1, 7, 1)
    masked = assembled(alone(), made, place, "selective+mask(after=1)")
    both = assembled(alone(), made, place, f"selective+mask(after=1)+budget(max={masked.tokens_sent},reserve=0)")
    assert both.request.digest == masked.request.digest
