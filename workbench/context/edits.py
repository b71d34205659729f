"""Edits of a context by hand: a message changed, dropped, added or moved. Later turns see what the edit made.

An edit acts on the history, not on one request: what a strategy decides afterwards, it decides about the edited
messages. Positions are those of the entries of the call's context, from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Action, Item, Kind, Reason, Rule
from workbench.context.message import Message
from workbench.context.part import EnteredMessages, MessageDecision
from workbench.context.place import Place

EDIT_RULE = Rule("edit")
"""The rule behind an edited message: no line of the file decided."""


class EditError(Exception):
    """An edit that cannot be made, in words."""


class ChangeMessage(Struct, frozen=True):
    """The message at a position says something else."""

    at: int
    message: Message


class DropMessage(Struct, frozen=True):
    """The message at a position is sent no more; its entry stays, and says so."""

    at: int


class AddMessage(Struct, frozen=True):
    """A new message stands before the one at a position; at the number of entries, it is the last."""

    at: int
    message: Message


class MoveMessage(Struct, frozen=True):
    """The message at a position goes to another: ``to`` counts without it."""

    at: int
    to: int


MessageEdit = ChangeMessage | DropMessage | AddMessage | MoveMessage


class Draft(Struct, frozen=True):
    """A context to edit: what entered the visit, and its own messages, dropped ones included."""

    entered: EnteredMessages
    own: tuple[Item, ...]

    def __len__(self) -> int:
        return len(self.entered.rows) + len(self.own)


def dropped(item: Item) -> bool:
    """Returns whether an edit removed the message from the history. Only its own entry still shows it."""
    return item.edited == "dropped"


def remaining(items: Sequence[Item]) -> tuple[Item, ...]:
    """The messages that no edit dropped: what templates and later phases see."""
    return tuple(item for item in items if item.edited != "dropped")


def edited(draft: Draft, edit: MessageEdit, place: Place) -> Draft:
    """The draft after one edit, made before the call at ``place``. Raises EditError."""
    head = len(draft.entered.rows)
    last = len(draft) if isinstance(edit, AddMessage) else len(draft) - 1
    if not 0 <= edit.at <= last:
        raise EditError(f"there is no message {edit.at + 1}; the context has {len(draft)}")
    message = getattr(edit, "message", None)
    if isinstance(message, Message) and not (message.text.strip() or message.tool_calls or message.images):
        raise EditError(f"message {edit.at + 1} would be blank; drop it instead")
    if edit.at < head:
        rows = _entered(draft.entered.rows, edit, place)
        return Draft(EnteredMessages(rows, draft.entered.notes), draft.own)
    return Draft(draft.entered, _own(draft.own, edit, head, place))


Row = tuple[Item, MessageDecision]


def _entered(rows: tuple[Row, ...], edit: MessageEdit, place: Place) -> tuple[Row, ...]:
    changed = list(rows)
    match edit:
        case ChangeMessage(at, message):
            item, verdict = changed[at]
            changed[at] = _row(replace(item, message=message, edited="changed"), verdict.action)
        case DropMessage(at):
            changed[at] = _row(replace(changed[at][0], edited="dropped"), Action.DROPPED)
        case AddMessage(at, message):
            home = Place(*place.visit_key)
            changed.insert(at, _row(Item(message, Kind.USER, home, edited="added"), Action.KEPT))
        case MoveMessage(at, to):
            item, verdict = changed.pop(at)
            if not 0 <= to <= len(changed):
                raise EditError(f"message {at + 1} came into the phase before its own messages and stays before them")
            moved = item if dropped(item) else replace(item, edited="moved")
            changed.insert(to, (moved, verdict._replace(reason=edit_reason(moved), rule=EDIT_RULE)))
    return tuple(changed)


def _row(item: Item, action: Action) -> Row:
    if action is Action.DROPPED and not dropped(item):
        action = Action.KEPT
    return item, MessageDecision(None if dropped(item) else item.message, action, edit_reason(item), EDIT_RULE)


def _own(items: tuple[Item, ...], edit: MessageEdit, head: int, place: Place) -> tuple[Item, ...]:
    changed, at = list(items), edit.at - head
    match edit:
        case ChangeMessage(_, message):
            changed[at] = replace(changed[at], message=message, edited="changed")
        case DropMessage():
            changed[at] = replace(changed[at], edited="dropped")
        case AddMessage(_, message):
            # It belongs to the turn it stands in, so that it ages and leaves with its neighbours.
            near = changed[at - 1].place if at else changed[0].place if changed else place
            changed.insert(at, Item(message, Kind.USER, near, edited="added"))
        case MoveMessage(_, to):
            item = changed.pop(at)
            if not 0 <= to - head <= len(changed):
                raise EditError(f"message {edit.at + 1} can go to places {head + 1} to {head + len(items)}")
            changed.insert(to - head, item if dropped(item) else replace(item, edited="moved"))
    return tuple(changed)


def edit_reason(item: Item) -> Reason:
    """The reason of a message that an edit has made another."""
    return Reason("edited", (item.edited,))


def difference(old: Sequence[Item], new: Sequence[Item]) -> tuple[int, Sequence[Item], Sequence[Item]]:
    """The stretch that differs: the index where it begins, and the items of both sides."""
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    tail = 0
    while tail < min(len(old), len(new)) - at and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return at, old[at : len(old) - tail], new[at : len(new) - tail]
