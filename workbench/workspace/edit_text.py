"""Edits as a person writes them, in the app and on the command line: ``3=TEXT``, ``drop:3``, ``answer=@FILE``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from workbench.context.assembly import Entry
from workbench.context.edits import AddMessage, ChangeMessage, DropMessage, EditError, MoveMessage
from workbench.context.message import Message
from workbench.engine.edits import Edit, SetAnswer, SetArguments, SetModel, SetResult, SetState, SkipTool
from workbench.engine.gate import EDITS_AT, StopKind
from workbench.files import read_given

FORMS = (
    "N=TEXT, drop:N, add:N:ROLE=TEXT, move:N:M, model=NAME, param.NAME=JSON, state.KEY=VALUE, answer=TEXT, "
    "arguments=JSON, result=TEXT, error=TEXT, skip=TEXT; a TEXT that begins with @ names a file"
)
_ROLES = {"system", "user", "assistant"}


def read_edits(written: Sequence[str], entries: Sequence[Entry]) -> tuple[Edit, ...]:
    """Read edits against the context that they change. Raises EditError with what was expected."""
    return tuple(_read(text, entries) for text in written)


def read_state(written: Sequence[str]) -> tuple[Edit, ...]:
    """Read ``state.KEY=VALUE``; a value that is JSON is taken as such, else as text. Raises EditError."""
    return tuple(_state(text) for text in written)


def stop_for(edits: Sequence[Edit], asked: str | None, *, whole_phase: bool) -> StopKind:
    """The stop at which all edits can be made. State alone, for a phase without a turn, is set before the phase begins.
    Raises EditError if no single stop allows all of them.
    """
    if asked is not None:
        return StopKind(asked)
    if whole_phase and edits and all(isinstance(edit, SetState) for edit in edits):
        return StopKind.BEFORE_PHASE
    order = (StopKind.BEFORE_CALL, StopKind.AFTER_CALL, StopKind.BEFORE_TOOL, StopKind.AFTER_TOOL)
    for kind in order:
        if all(isinstance(edit, EDITS_AT[kind]) for edit in edits):
            return kind
    raise EditError("these edits belong to different stops; fork twice, once for each")


def _read(text: str, entries: Sequence[Entry]) -> Edit:
    head, found, value = text.partition("=")
    words = head.split(":")
    match words:
        case [number] if found and number.isdigit():
            return ChangeMessage(int(number) - 1, _changed(int(number), _text(value), entries))
        case ["drop", number] if number.isdigit():
            return DropMessage(int(number) - 1)
        case ["add", number, role] if found and number.isdigit() and role in _ROLES:
            return AddMessage(int(number) - 1, Message(role, _text(value)))  # type: ignore[arg-type]
        case ["move", number, to] if number.isdigit() and to.isdigit():
            return MoveMessage(int(number) - 1, int(to) - 1)
        case [name] if found and name.startswith("state."):
            return _state(text)
        case ["model"] if value:
            return SetModel(value)
        case [name] if found and name.startswith("param."):
            return SetModel("", {name.removeprefix("param."): _json(value, text)})
        case ["answer"] if found:
            return SetAnswer(Message("assistant", _text(value)))
        case ["arguments"] if found:
            return SetArguments(_text(value))
        case ["result"] if found:
            return SetResult(_text(value))
        case ["error"] if found:
            return SetResult(_text(value), True)
        case ["skip"]:
            return SkipTool(_text(value)) if value else SkipTool()
    raise EditError(f"'{text}' is not an edit; write {FORMS}")


def _state(text: str) -> SetState:
    name, found, value = text.partition("=")
    key = name.removeprefix("state.")
    if not found or not key:
        raise EditError(f"'{text}' sets nothing; write state.KEY=VALUE")
    try:
        return SetState(key, json.loads(value))
    except (ValueError, RecursionError):
        return SetState(key, value)


def _changed(number: int, text: str, entries: Sequence[Entry]) -> Message:
    """The message with another text; what else it has (role, calls, ids) stays."""
    if not 1 <= number <= len(entries):
        raise EditError(f"there is no message {number}; the context has {len(entries)}")
    return replace(entries[number - 1].item.message, content=text)


def _text(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return read_given(Path(value[1:]))
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "not UTF-8"
        raise EditError(f"{value[1:]}: cannot be read: {reason}") from None


def _json(value: str, whole: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as fault:
        raise EditError(f"'{whole}': the value is not valid JSON: {fault}") from None
