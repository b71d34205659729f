"""Edits that a person may make where a run is paused: typed, checked against the stop, and journaled as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from workbench.context.edits import AddMessage, ChangeMessage, DropMessage, EditError, MessageEdit, MoveMessage
from workbench.context.message import Message


class SetState(Struct, frozen=True):
    """A value of the run's state."""

    key: str
    value: Any


class SetModel(Struct, frozen=True):
    """Another model, parameters of it, or both, for this call and the later ones of the visit."""

    model: str = ""
    """Empty: as it is."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Override those in force; None removes one."""
    default: bool = False
    """The model becomes the default of later phases, too."""


class SetAnswer(Struct, frozen=True):
    """Replaces the answer of the model."""

    message: Message


class SetArguments(Struct, frozen=True):
    """Arguments of a tool call: JSON text of an object."""

    arguments: str


class SkipTool(Struct, frozen=True):
    """The tool does not run; this is its result."""

    text: str = "(skipped)"
    is_error: bool = False


class SetResult(Struct, frozen=True):
    """Replaces the result of the tool."""

    text: str
    is_error: bool = False


Edit = MessageEdit | SetState | SetModel | SetAnswer | SetArguments | SkipTool | SetResult

_KINDS: dict[str, type[Edit]] = {
    "change": ChangeMessage,
    "drop": DropMessage,
    "add": AddMessage,
    "move": MoveMessage,
    "state": SetState,
    "model": SetModel,
    "answer": SetAnswer,
    "arguments": SetArguments,
    "skip": SkipTool,
    "result": SetResult,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def laid(parameters: Mapping[str, Any], edit: SetModel) -> dict[str, Any]:
    """Parameters with those of an edit laid over them."""
    return {name: value for name, value in {**parameters, **edit.parameters}.items() if value is not None}


def name_of(edit: Edit) -> str:
    """The word for an edit in the journal and on the command line."""
    return _NAMES[type(edit)]


def to_json(edit: Edit) -> dict[str, Any]:
    """The journal's form."""
    body: dict[str, Any] = {"edit": name_of(edit)}
    for name, value in asdict(edit).items():
        body[name] = value.to_json() if isinstance(value, Message) else value
    return body


def from_json(body: Mapping[str, Any]) -> Edit:
    """The inverse of ``to_json``. Raises EditError for a value that is no edit."""
    try:
        kind = _KINDS[body["edit"]]
        values = {key: value for key, value in body.items() if key != "edit"}
        if "message" in values:
            values["message"] = Message.from_json(values["message"])
        return kind(**values)
    except (KeyError, TypeError) as fault:
        raise EditError(f"no edit: {fault}") from fault
