"""What survives to a turn: masking, the window, sliding, clearing, images."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.context.support import Conversation, WordCounter, alone, assembled, image, sent_text, texts
from workbench.context.assembler import Assembler
from workbench.context.assembly import Action, Assembly, Entry, Kind, Rule
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.reasons import explain
from workbench.context.strategy import parse

LONG = "line " * 100


def run(turns: int, *, native: bool = True, result: str = LONG, **extra: Any) -> Conversation:
    """Turns that each call one tool."""
    talk = Conversation(native=native).task()
    for number in range(1, turns + 1):
        talk.turn(number).calls(("read_log", result), text=f"Step {number}.", **extra)
    return talk


def seen(talk: Conversation, turn: int, strategy: str = "", **phase: Any) -> Assembly:
    return assembled(alone(**phase), talk, talk.next_place(turn), strategy)


def results(assembly: Assembly) -> list[Entry]:
    return [entry for entry in assembly.entries if entry.item.kind is Kind.RESULT]


def masked_turns(assembly: Assembly) -> list[int]:
    return [entry.item.place.turn for entry in results(assembly) if entry.action is Action.MASKED]


def test_results_older_than_the_limit_are_masked() -> None:
    assert masked_turns(seen(run(4), 5, "mask(after=2)")) == [1, 2]


def test_a_masked_result_keeps_its_call() -> None:
    assembly = seen(run(2), 3, "mask(after=1)")
    call, result = assembly.request.messages[1:3]
    assert call.tool_calls[0].id == result.tool_call_id == "call_1"
    assert call.tool_calls[0].name == result.name == "read_log"
    assert not assembly.problems


def test_the_placeholder_names_tool_size_and_hash() -> None:
    talk = run(2, result="x" * 7214)
    reference = talk.items[2].message.content_hash[:8]
    assert sent_text(seen(talk, 3, "mask(after=1)"), 2) == f"[read_log result · 7,214 chars · ref {reference}]"


def test_prompt_based_results_are_masked_by_the_same_rule() -> None:
    native, prompt = seen(run(3), 4, "mask(after=1)"), seen(run(3, native=False), 4, "mask(after=1)")
    assert masked_turns(native) == masked_turns(prompt) == [1, 2]
    assert sent_text(prompt, 2).startswith("[read_log result · 500 chars · ref ")
    assert prompt.request.messages[2].role == "user"


def test_a_task_that_looks_like_a_result_is_never_masked() -> None:
    talk = Conversation().task(f"[Tool result: read_log]\n{LONG}").calls(("read_log", LONG)).turn(2)
    talk.says("Hm.").turn(3, f"[Tool result: read_log]\n{LONG}").says("Well.")
    assembly = seen(talk, 9, "mask(after=0)")
    assert [entry.action for entry in assembly.entries] == [Action.KEPT, Action.KEPT, Action.MASKED, *[Action.KEPT] * 3]


def test_error_results_stay_by_their_flag_not_by_their_words() -> None:
    talk = Conversation(native=True).task().calls(("a", f"error: exception failed {LONG}"), ("b", LONG), errors=[1])
    assert [e.action for e in results(seen(talk, 9, "mask(after=0)"))] == [Action.MASKED, Action.KEPT]
    off = seen(talk, 9, "mask(after=0,preserve_errors=false)")
    assert [e.action for e in results(off)] == [Action.MASKED, Action.MASKED]
    assert sent_text(off, 3).startswith("[b error · 500 chars")


def test_small_results_stay() -> None:
    talk = run(2, result="y" * 199).turn(3).calls(("read_log", "y" * 200))
    assert masked_turns(seen(talk, 9, "mask(after=0,min_masked_size=200)")) == [3]


@pytest.mark.parametrize(
    ("turn", "masked"), [(5, []), (6, []), (7, [1, 2, 3]), (8, [1, 2, 3]), (9, [1, 2, 3]), (10, [1, 2, 3, 4, 5, 6])]
)
def test_step_moves_the_frontier_in_batches(turn: int, masked: list[int]) -> None:
    """Masked are turns i <= step * floor((t - 1 - after) / step)."""
    assert masked_turns(seen(run(turn - 1), turn, "mask(after=3,step=3)")) == masked


def test_clear_at_least_waits_until_enough_is_freed() -> None:
    """A result is 104 tokens, its placeholder 12: two of them free 184."""
    strategy = "mask(after=0,clear_at_least=180)"
    assert [masked_turns(seen(run(turn - 1), turn, strategy)) for turn in (2, 3, 4, 5)] == [
        [],
        [1, 2],
        [1, 2],
        [1, 2, 3, 4],
    ]


def test_a_turn_number_from_a_damaged_journal_costs_nothing() -> None:
    assert masked_turns(seen(run(2), 10**15, "mask(after=1,step=2,clear_at_least=1)")) == [1, 2]


def test_ages_count_the_turns_of_all_attempts() -> None:
    talk = run(2).retry("no").calls(("read_log", LONG)).turn(2).calls(("read_log", LONG))
    assembly = seen(talk, 3, "mask(after=2)")
    shown = [(e.item.place.attempt, e.item.place.turn, e.action) for e in results(assembly)]
    assert shown == [
        (1, 1, Action.MASKED),
        (1, 2, Action.MASKED),
        (2, 1, Action.KEPT),
        (2, 2, Action.KEPT),
    ]


def test_reasoning_beyond_the_window_is_cut_with_a_mark() -> None:
    talk = Conversation().task().says("r" * 2500).turn(2, "go on").says("fine").turn(3, "go on")
    assert sent_text(seen(talk, 3, "mask(window=1)"), 1) == "r" * 2000 + "\n[… 500 more characters]"
    assert sent_text(seen(talk, 2, "mask(window=1)"), 1) == "r" * 2500


def test_a_cut_never_goes_through_a_data_url() -> None:
    talk = Conversation().task().says("a" * 1990 + " data:image/png;base64," + "QUJD" * 100).turn(2, "go on")
    assembly = seen(talk, 2, "mask(window=0)")
    assert sent_text(assembly, 1).startswith("a" * 1990 + " \n[… 422 more")
    assert not assembly.problems


def test_arguments_beyond_the_window_become_a_marked_json_object() -> None:
    talk = run(2).rewrite_arguments(['{"q": "' + "z" * 300 + '"}']).turn(3).calls(("search", "x"))
    calls = seen(talk, 9, "mask(window=1)").request.messages[3].tool_calls
    assert list(json.loads(calls[0].arguments)) == ["cleared"]
    assert (calls[0].id, calls[0].name) == ("call_2", "read_log")


def test_unreadable_arguments_are_mended_beyond_the_window_too() -> None:
    assembly = seen(run(1).rewrite_arguments(["{oops"]), 9, "mask(window=0)")
    assert assembly.request.messages[1].tool_calls[0].arguments == '{"unreadable": "{oops"}'
    assert not assembly.problems


def test_metadata_of_a_shortened_call_goes_back_verbatim() -> None:
    talk = run(1, thinking=[{"signature": "abc"}]).rewrite_arguments(['{"q": "' + "z" * 300 + '"}'])
    assembly = seen(talk, 9, "mask(after=0,window=0)")
    assert assembly.request.messages[1].extra == {"thinking": [{"signature": "abc"}]}
    assert not assembly.problems


def test_old_text_without_calls_is_cut_when_reasoning_is_not_preserved() -> None:
    talk = Conversation().task().calls(("read_log", "x"), text="p" * 300).turn(2).says("q" * 300).turn(3, "go on")
    assembly = seen(talk, 9, "mask(window=1,preserve_reasoning=false)")
    assert sent_text(assembly, 1).startswith("p" * 300)
    assert sent_text(assembly, 3) == "q" * 200 + "\n[… 100 more characters]"


def test_the_two_thresholds_are_independent() -> None:
    assembly = seen(run(3), 4, "mask(after=0,window=99)")
    assert masked_turns(assembly) == [1, 2, 3]


def test_sliding_keeps_the_opening_and_the_last_turns_whole() -> None:
    talk = run(4)
    talk.items.insert(1, talk.items[0])
    assembly = seen(talk, 5, "slide(turns=1)")
    assert [message.role for message in assembly.request.messages] == ["user", "user", "assistant", "tool"]
    assert assembly.request.messages[2].text == "Step 4."
    assert not assembly.problems


def test_clearing_waits_for_its_trigger_and_spares_the_newest() -> None:
    """Each turn is about 110 words: the trigger of 450 is passed before turn 5, and then again before turn 8."""
    masked = [masked_turns(seen(run(turn - 1), turn, "clear(trigger=450,keep=1)")) for turn in range(4, 9)]
    assert masked == [[], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4, 5, 6]]


def test_clearing_looks_once_a_turn_and_not_at_the_closing_call() -> None:
    """The result of turn 2 passes the trigger, but the turn has been looked at before it came."""
    talk = run(2).closing()
    assert masked_turns(assembled(alone(), talk, talk.place, "clear(trigger=200,keep=0)")) == []
    assert masked_turns(seen(talk, 3, "clear(trigger=200,keep=0)")) == [1, 2]


def test_clearing_needs_to_free_enough() -> None:
    assert masked_turns(seen(run(6), 7, "clear(trigger=300,keep=3,clear_at_least=500)")) == []


def test_masked_images_become_text() -> None:
    talk = Conversation().task().calls(("draw", "done")).shows("draw", image("a"), image("b")).turn(2).says("ok")
    assembly = seen(talk, 3, "mask(after=1)")
    assert not any(message.images for message in assembly.request.messages)
    assert sent_text(assembly, 3) == (
        "[Images from draw]:\n[image · 4x3 · 1,000 bytes · ref a0000000]\n[image · 4x3 · 1,000 bytes · ref b0000000]"
    )


def test_only_the_newest_images_are_sent() -> None:
    talk = Conversation().task().calls(("draw", "done")).shows("draw", image("a"), image("b"))
    talk.turn(2).calls(("draw", "done")).shows("draw", image("c"))
    where = alone()
    where = replace(where, keep_recent_images=2)
    assembly = assembled(where, talk, talk.next_place(3))
    assert [part for message in assembly.request.messages for part in message.images] == [image("b"), image("c")]
    assert assembly.entries[3].action is Action.MASKED
    assert assembly.entries[3].rule == Rule("keep_recent_images")
    assert assembled(where, talk, talk.next_place(3), "mask(after=9)").request.digest == assembly.request.digest


def test_a_blank_result_goes_out_as_a_word() -> None:
    assembly = seen(run(1, result=" \n"), 2)
    assert sent_text(assembly, 2) == "[read_log result · empty]"
    assert not assembly.problems


def test_unreadable_arguments_go_out_as_json_that_holds_them() -> None:
    assembly = seen(run(1).rewrite_arguments(["{oops"]), 2)
    assert assembly.request.messages[1].tool_calls[0].arguments == '{"unreadable": "{oops"}'
    assert assembly.entries[1].action is Action.TRUNCATED
    assert not assembly.problems


def test_the_file_masks_with_the_phases_fields_over_the_cascades() -> None:
    talk = run(4)
    assembly = seen(talk, 5, intra_context={"mask_observations_after": 1})
    assert assembly.strategy == "selective+mask(after=1,window=5,min_masked_size=200)+loop(limit=3)"
    assert masked_turns(assembly) == [1, 2, 3]
    assert results(assembly)[0].rule == Rule("phases[0].intra_context.mask_observations_after", 40)


def test_a_result_says_its_age_from_wherever_it_is_seen() -> None:
    young, old = seen(run(3), 4, "mask(after=2)"), seen(run(5), 6, "mask(after=2)")
    assert explain(young.entries[4], Place("", "work", 1, 1, 4, 1)) == "kept: age 2"
    assert explain(old.entries[4], Place("", "work", 1, 1, 6, 1)) == "masked: age 4 > 2"


def test_sent_messages_share_the_original_where_nothing_changed() -> None:
    talk = run(2)
    assert all(e.sent is e.item.message for e in seen(talk, 3, "mask(after=5)").entries)
    assert texts(seen(talk, 3))[0] == ("user", Message("user", "Find the failure.").text)


@pytest.mark.parametrize(
    "spec", ["selective", "mask(after=3)", "mask(after=0,window=0)", "mask(after=3)+loop(limit=1)"]
)
def test_an_answer_says_what_it_calls_though_its_result_comes_after_a_look(spec: str) -> None:
    talk = Conversation(native=False).task().turn(1).calls(("look", "a line"))
    assembler = Assembler(alone(), parse(spec), WordCounter())
    *before, result = talk.items
    for item in before:
        assembler.add(item)
    assert explain(assembler.assemble(talk.place).entries[-1], talk.place) == "answer"
    assembler.add(result)
    looked = assembler.assemble(talk.next_place(2))
    assert explain(looked.entries[-2], talk.place) == "calls look"
    assert looked.entries == assembled(alone(), talk, talk.next_place(2), spec).entries
