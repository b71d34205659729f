"""Edits by hand: contexts that grow on from an edit equal those assembled from the edited history."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.histories import SPECS, Visit, scopes, stages, visits
from tests.context.support import Conversation, WordCounter, cascade, scope
from workbench.context.assembler import Assembler
from workbench.context.assembly import Entry, Item
from workbench.context.edits import (
    AddMessage,
    ChangeMessage,
    Draft,
    DropMessage,
    EditError,
    MessageEdit,
    MoveMessage,
    edited,
    remaining,
)
from workbench.context.message import Message
from workbench.context.rope import Rope
from workbench.context.scope import PhaseScope
from workbench.context.strategy import Strategy, parse

NOTE = Message("user", "A word in between.")


@st.composite
def an_edit(draw: st.DrawFn, length: int) -> MessageEdit:
    at = draw(st.integers(0, length - 1))
    kind = draw(st.sampled_from(("change", "drop", "add", "move")))
    if kind == "move":
        return MoveMessage(at, draw(st.integers(0, length - 1)))
    if kind == "add":
        return AddMessage(draw(st.integers(0, length)), NOTE)
    return ChangeMessage(at, NOTE) if kind == "change" else DropMessage(at)


@given(scopes(), visits(), SPECS, st.data())
def test_a_context_that_grows_on_from_an_edit_equals_one_from_scratch(
    where: PhaseScope, visit: Visit, spec: str, data: st.DataObject
) -> None:
    strategy = parse(spec) if spec else Strategy()
    assembler = Assembler(where, strategy, WordCounter())
    own: tuple[Item, ...] = ()
    before: Sequence[Entry] = ()
    entered = assembler.entered
    edit_at = data.draw(st.integers(0, len(visit.calls) - 1))
    for number, (place, fresh, _) in enumerate(stages(visit)):
        for item in fresh:
            assembler.add(item)
        own = (*own, *fresh)
        assembly = assembler.assemble(place)
        before = Rope.of(before).spliced(assembly.splices)
        if number == edit_at:
            draft = Draft(entered, own)
            try:
                after = edited(draft, data.draw(an_edit(len(draft))), place)
            except EditError:
                continue
            own, entered = after.own, after.entered
            assembler = assembler.edited(where, entered, own)
            assembly = assembler.assemble(place)
            before = Rope.of(before).spliced(assembly.splices)
        scratch = Assembler(where, strategy, WordCounter(), entered=entered)
        for item in own:
            scratch.add(item)
        whole = scratch.assemble(place)
        assert assembly.entries == whole.entries
        assert assembly.request.digest == whole.request.digest
        assert (assembly.tokens_full, assembly.tokens_sent) == (whole.tokens_full, whole.tokens_sent)
        assert before == assembly.entries, "the splices lead from each context to the next, over the edit"


def talk() -> Conversation:
    return Conversation().task().calls(("read_log", "a result"), text="Reading.")


def drafted() -> Draft:
    assembler = Assembler(scope(cascade({"name": "work"})), Strategy(), WordCounter())
    return Draft(assembler.entered, tuple(talk().items))


def test_what_was_dropped_is_seen_by_its_own_entry_alone() -> None:
    draft = edited(drafted(), DropMessage(1), talk().place)
    assert len(draft.own) == 3
    assert [item.message.text for item in remaining(draft.own)] == [
        draft.own[0].message.text,
        draft.own[2].message.text,
    ]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (DropMessage(3), "there is no message 4; the context has 3"),
        (AddMessage(-1, NOTE), "there is no message 0"),
        (ChangeMessage(0, Message("user", " \n")), "message 1 would be blank"),
        (MoveMessage(0, 3), "message 1 can go to places 1 to 3"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(edit: MessageEdit, words: str) -> None:
    with pytest.raises(EditError, match=words.replace("(", r"\(")):
        edited(drafted(), edit, talk().place)
