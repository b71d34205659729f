"""What to write into a file of offline replies so that one call that nothing answers gets an answer."""

from __future__ import annotations

import json
import re
from glob import escape

from workbench.context.place import Place
from workbench.models.replies import Replies, Reply, answered_by, next_place

TEXT = "TEXT"
"""Stands for the answer."""
LONGEST = 200
"""Characters of a phase's only text that is repeated in a list of two."""
_PLAIN = re.compile(r"[A-Za-z_][\w-]*(#\d+)?")
_NOT_TEXT = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def lines_for(replies: Replies, place: Place, reply: Reply | None) -> str:
    """Where to write, then after a colon the one line that answers a call. ``reply`` is the entry of the call, if there
    is one that does not say this part of the turn."""
    key = answered_by(replies.by_phase, place)
    if reply is not None:
        return _into_entry(replies, key, place, reply)
    item = _item(replies.by_phase.get(key, ()), place)
    form = replies.forms.get(key, "")
    if form == "block":
        return f"Add this line at the end of the list below '{key}': - {item}"
    if form == "flow":
        comma = ", " if replies.by_phase.get(key) else ""
        return f"Add this before the ] that ends the list of '{key}': {comma}{item}"
    if form == "text":
        only = replies.by_phase[key][0].text or ""
        if len(only) <= LONGEST:
            return f"Write '{key}' as a list: {_name(key)}: [{json.dumps(only, ensure_ascii=False)}, {item}]"
        return f"Write '{key}' as a list, its text behind '- ' in a first line, and this as the next: - {item}"
    own = f"{_name(place.phase)}: {item if item == TEXT else f'[{item}]'}"
    whole = replies.forms.get("", "")
    if whole == "block":
        return f"Add this line below 'replies:', indented like the other phases: {own}"
    if whole == "flow":
        return f"Add this before the }} that ends 'replies': {', ' if replies.by_phase else ''}{own}"
    return f"Write this line into it: replies: {{{own}}}"


def _into_entry(replies: Replies, key: str, place: Place, reply: Reply) -> str:
    """The key that an entry lacks, for an entry that is written as a mapping or as a text alone."""
    part = _part(place)
    number = next(at for at, entry in enumerate(replies.by_phase[key], start=1) if entry is reply)
    if replies.forms.get(key) == "text" or (reply.model_fields_set == {"text"} and part == "closing"):
        said = json.dumps(reply.text or "", ensure_ascii=False)
        entry = f"{{text: {said}, closing: {TEXT}}}"
        if replies.forms.get(key) == "text":
            return f"Write '{key}' as a list: {_name(key)}: [{entry}]"
        return f"Write entry {number} of '{key}' as: {entry}"
    return f"Add this key to entry {number} of '{key}': {part}: {TEXT}"


def _item(entries: tuple[Reply, ...], place: Place) -> str:
    """The entry for a place, as the last of a list: with the keys that the entries before it do not give."""
    if place.turn == 0:
        return f"{{aside: {place.call}, text: {TEXT}}}"
    branch, attempt, turn = next_place(entries)
    keys: dict[str, str] = {}
    if branch:  # Even where it is the same: several candidates may lack an answer, and each line goes behind others.
        keys["branch"] = json.dumps(escape(place.branch), ensure_ascii=False)
        attempt, turn = 1, 1
    if attempt != place.attempt:
        keys["attempt"], turn = str(place.attempt), 1
    if turn != place.turn:
        keys["turn"] = str(place.turn)
    part = _part(place)
    if not keys and part == "text":
        return TEXT
    return f"{{{', '.join(f'{key}: {value}' for key, value in {**keys, part: TEXT}.items())}}}"


def _part(place: Place) -> str:
    """The key that answers a call of a turn: each after the first is a closing one."""
    return "closing" if place.turn and place.call > 1 else "text"


def _name(key: str) -> str:
    """A key of YAML that is read as this text."""
    plain = _PLAIN.fullmatch(key) and key.casefold() not in _NOT_TEXT
    return key if plain else json.dumps(key, ensure_ascii=False)
