"""Finds the call of a stored run that a person names, without what a run needs to go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.context.place import Place, visit_named
from workbench.engine.journal.state import RunState


class NoSuchPlace(Exception):
    """A place that the run never reached; the message names the places that it reached."""


def find_call(state: RunState, text: str) -> Place:
    """The place of the model call that a person means, written like that of a fork. Raises NoSuchPlace."""
    if (place := place_in_full(text, [call.place for call in state.calls])) is not None:
        return place
    if is_full_place(text):
        raise NoSuchPlace(f"{text} made no call in this run")
    return named_place(state, text)


def place_in_full(text: str, known: Iterable[Place]) -> Place | None:
    """The one of the ``known`` places that is written so in full. Parsing does not tell it: names may hold slashes."""
    return next((place for place in known if str(place) == text), None)


def is_full_place(text: str) -> bool:
    """Whether a place is written in the full form, and not in the one that screens show."""
    try:
        Place.parse(text)
    except ValueError:
        return False
    return True


def named_place(state: RunState, text: str, without: Sequence[Place] = ()) -> Place:
    """``phase`` or ``phase:turn``, ``phase#visit`` for an earlier visit; ``without`` are places of tools that no model
    asked for. Raises NoSuchPlace."""
    calls = [call.place for call in state.calls if not call.beside]
    named, _, turn = text.partition(":")
    if turn and not (turn.isdigit() and int(turn)):
        raise NoSuchPlace(f"'{text}' is not a place; write phase or phase:turn, turns count from 1")
    branch, phase, wanted = visit_named(named, {place.phase for place in [*calls, *without]})
    here = [place for place in calls if place.phase == phase and branch in ("", place.branch)]
    if not here:
        alone = [
            place
            for place in without
            if place.phase == phase and branch in ("", place.branch) and wanted in (0, place.visit)
        ]
        if alone and not turn:
            return alone[0]
        if "/" in text and not branch:
            raise NoSuchPlace(f"'{text}' is not a place; expected [branch/]phase:turn or phase/visit/attempt/turn/call")
        ran = ", ".join(dict.fromkeys(place.phase for place in calls)) or "no phase"
        raise NoSuchPlace(f"phase '{phase}' made no call in this run; {ran} did")
    here = [place for place in here if not place.branch] or here
    number = wanted or max(place.visit for place in here)
    visit = [place for place in here if place.visit == number]
    if not visit:
        raise NoSuchPlace(f"{text} never ran; {phase} came to visit {max(place.visit for place in here)}")
    if not turn:
        return visit[0]
    found = [place for place in visit if place.turn == int(turn)]
    if not found:
        last = max(place.turn for place in visit)
        raise NoSuchPlace(f"{text} never ran; {phase} came to turn {last}")
    latest = max(found, key=lambda place: place.attempt)
    return min((p for p in found if p.attempt == latest.attempt), key=lambda place: place.call)
