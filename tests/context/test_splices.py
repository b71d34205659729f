"""Splices lead from one context to the next, whatever the two are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.context.assembly import Action, Entry, Item, Kind, Reason, Rule
from workbench.context.diff import splices_between, splices_of
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.rope import Rope


def entry(text: str) -> Entry:
    message = Message("user", text)
    return Entry(Item(message, Kind.USER, Place()), message, Action.KEPT, Reason("user"), Rule(), 1, 1)


ENTRIES = st.lists(st.sampled_from("abcdefghij").map(entry), max_size=14)


@given(ENTRIES, ENTRIES)
def test_splices_between_two_contexts_lead_from_one_to_the_other(before: list[Entry], after: list[Entry]) -> None:
    assert Rope.of(before).spliced(splices_between(before, after)) == tuple(after)


@given(ENTRIES, st.dictionaries(st.integers(0, 13), st.sampled_from("xyz").map(entry)), ENTRIES)
def test_splices_of_changes_lead_to_the_changed_context(
    before: list[Entry], replaced: dict[int, Entry], appended: list[Entry]
) -> None:
    length = len(before)
    changed = {i: e for i, e in replaced.items() if i < length}
    after = [changed.get(i, e) for i, e in enumerate(before)] + appended
    changed |= {length + i: e for i, e in enumerate(appended)}
    assert Rope.of(before).spliced(splices_of(changed, length)) == tuple(after)


def test_equal_contexts_need_no_splice() -> None:
    assert splices_between([entry("a")], [entry("a")]) == ()


def test_a_moved_head_keeps_the_middle() -> None:
    before = [entry(name) for name in "sabcdt"]
    after = [entry(name) for name in "zabcdu"]
    assert sum(len(splice.entries) for splice in splices_between(before, after)) == 2


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60), st.integers(0, 90)), max_size=12))
def test_a_rope_is_the_list_that_the_same_splices_make(splices: list[tuple[int, int, int]]) -> None:
    rope, plain, fresh = Rope[int](), list[int](), iter(range(10_000))
    for at, remove, add in splices:
        at = min(at, len(plain))
        new = [next(fresh) for _ in range(add)]
        rope, plain[at : at + remove] = rope.spliced([(at, remove, new)]), new
        assert (tuple(rope), len(rope)) == (tuple(plain), len(plain))
        assert rope[at : at + 7] == tuple(plain[at : at + 7])
        assert all(rope[index] == plain[index] for index in range(-len(plain), len(plain), 11))
