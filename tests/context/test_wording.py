"""The words in which two texts differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.context.wording import Passage, passages

texts = st.text(st.sampled_from("ab \n.é"), max_size=60)


@given(old=texts, new=texts)
def test_the_passages_give_both_texts_again_and_same_means_same(old: str, new: str) -> None:
    found = passages(old, new)
    assert "".join(passage.old for passage in found) == old
    assert "".join(passage.new for passage in found) == new
    assert all((passage.old == passage.new) or not passage.same for passage in found)
    assert all(passage.same for passage in passages(old, old))


def test_only_the_words_that_differ_are_told_apart() -> None:
    assert passages("Find the first failure in it.", "Find the first real failure in it.") == [
        Passage(True, "Find the first", "Find the first"),
        Passage(False, "", " real"),
        Passage(True, " failure in it.", " failure in it."),
    ]


def test_words_that_differ_one_after_the_other_are_one_passage() -> None:
    found = passages("Look at every file of the project now.", "Look at two old files of the project now.")
    assert [passage for passage in found if not passage.same] == [Passage(False, "every file", "two old files")]


def test_texts_that_have_little_in_common_are_not_taken_to_pieces() -> None:
    assert passages("one thing, and then some", "and quite another") == [
        Passage(False, "one thing, and then some", "and quite another")
    ]


def test_a_long_text_is_compared_by_lines() -> None:
    old = "".join(f"line {i}\n" for i in range(3000))
    found = passages(old, old.replace("line 7\n", "line seven\n"))
    assert [passage for passage in found if not passage.same] == [Passage(False, "line 7\n", "line seven\n")]
