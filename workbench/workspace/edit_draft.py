"""Edits that are being written: what they would make of a stop or a call, before any of them is made. With undo."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.assembly import Entry, Item
from workbench.context.edits import (
    AddMessage,
    ChangeMessage,
    Draft,
    DropMessage,
    EditError,
    MoveMessage,
    dropped,
    edited,
)
from workbench.context.message import Message, Role, TextPart
from workbench.context.part import EnteredMessages
from workbench.context.place import Place
from workbench.engine.edits import Edit, SetAnswer, SetArguments, SetModel, SetResult, SetState, SkipTool
from workbench.engine.gate import EDITS_AT, Stop, StopKind, check_edit
from workbench.json_text import as_value, pretty

ROLES: tuple[Role, ...] = get_args(Role)


class Part(Struct, frozen=True):
    """One thing that is edited as a text: a message, the arguments of a call, an answer, a result, a state value."""

    key: str
    """``message:3``, ``call:3:0``, ``answer``, ``answer-call:0``, ``arguments``, ``skip``, ``result``, ``state:NAME``;
    indices from 0."""
    kind: Literal["text", "json"]
    text: str
    at: int = -1
    """Index of the message that it belongs to."""
    name: str = ""
    """The tool or the state value."""


class Change(Struct, frozen=True):
    """The change that the edits make to one thing, to be seen before they are made."""

    what: str
    """changed, added, dropped, moved."""
    label: str
    before: str
    after: str


class DraftRow(Struct, frozen=True):
    """One message of the draft."""

    message: Message
    origin: int | None
    """Its index before any edit; None for an added message."""
    mark: str = ""
    """changed, added, dropped, moved."""
    entry: Entry | None = None
    """How it is currently sent; None for an added message."""


class Target(Struct, frozen=True):
    """The editable state, as it was before any edit."""

    kind: StopKind
    place: Place
    draft: Draft | None = None
    entries: tuple[Entry, ...] = ()
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    answer: Message | None = None
    tool: str = ""
    arguments: str = ""
    result: str = ""
    is_error: bool = False
    """Whether the result is an error."""
    answerable: bool = False
    """Whether it may be answered instead of being sent."""
    has_state: bool = True
    """Whether there is a state: that of an attached program is unknown."""
    as_sent: bool = False
    """The request itself is edited, not the history behind it: if a strategy shortened messages, only the sent form is
    known.
    """


def target_of(stop: Stop) -> Target:
    """Returns the target that can be edited where a run is paused. Raises EditError if there is none."""
    if stop.kind not in EDITS_AT:
        raise EditError(f"nothing can be edited at {str(stop.kind).replace('_', ' ')}")
    request = stop.assembly.request if stop.assembly is not None else None
    is_call = stop.kind is StopKind.BEFORE_CALL and stop.draft is not None
    return Target(
        stop.kind,
        stop.place,
        stop.draft if is_call else None,
        stop.assembly.entries if stop.assembly is not None and is_call else (),
        request.model if request is not None else "",
        request.parameters if request is not None else {},
        json.loads(json.dumps(stop.state)),  # The run's own dictionary changes while this one is looked at.
        stop.answer if stop.draft is not None else None,
        stop.tool,
        stop.arguments,
        stop.result,
        stop.is_error,
        stop.answerable,
        has_state=stop.client is None,
    )


def target_of_call(place: Place, entries: Sequence[Entry], model: str, parameters: Mapping[str, Any]) -> Target:
    """A stored call, to be edited before it is sent again. Its messages are taken to be the visit's own."""
    draft = Draft(EnteredMessages((), ()), tuple(entry.item for entry in entries))
    return Target(StopKind.BEFORE_CALL, place, draft, tuple(entries), model, parameters, has_state=False, as_sent=True)


class _Version(Struct, frozen=True):
    """Everything after some edits."""

    edits: tuple[Edit, ...]
    draft: Draft | None
    origins: tuple[int | None, ...]
    model: str
    parameters: Mapping[str, Any]
    state: Mapping[str, Any]
    answer: Message | None
    arguments: str
    skip: SkipTool | None
    result: SetResult


class EditDraft:
    """The edits of one target, each checked as it is written. ``edits`` are made when they are saved."""

    def __init__(self, target: Target) -> None:
        self.target = target
        count = len(target.draft) if target.draft is not None else 0
        self._versions = [
            _Version(
                (),
                target.draft,
                tuple(range(count)),
                target.model,
                target.parameters,
                target.state,
                Message("assistant") if target.answerable else target.answer,
                target.arguments,
                None,
                SetResult(target.result, target.is_error),
            )
        ]
        self._undone: list[_Version] = []
        self._laid_out: tuple[_Version, tuple[DraftRow, ...], dict[str, Part]] | None = None
        """Rows and parts of a version: a context of 2,000 messages takes a fifth of a second."""

    @property
    def _now(self) -> _Version:
        return self._versions[-1]

    @property
    def edits(self) -> tuple[Edit, ...]:
        """In the order in which they are to be made."""
        return self._now.edits

    @property
    def model(self) -> str:
        return self._now.model

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._now.parameters

    @property
    def result_is_error(self) -> bool:
        """Whether the result is to be told as an error."""
        return self._now.result.is_error

    @property
    def skipped(self) -> bool:
        """Whether the tool is not to run."""
        return self._now.skip is not None

    # -- what is there -----------------------------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[DraftRow, ...]:
        """The messages after the edits, dropped ones included."""
        return self._lay_out()[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that can be edited as a text, in the order of a list: messages with their calls, then the other
        values of the stop, then the state."""
        return tuple(self._lay_out()[1].values())

    def part(self, key: str) -> Part | None:
        """A part by its key; None if it no longer exists."""
        return self._lay_out()[1].get(key)

    def _lay_out(self) -> tuple[tuple[DraftRow, ...], dict[str, Part]]:
        if self._laid_out is None or self._laid_out[0] is not self._now:
            rows = self._made_rows()
            self._laid_out = self._now, rows, {part.key: part for part in self._made_parts(rows)}
        return self._laid_out[1:]

    def _made_rows(self) -> tuple[DraftRow, ...]:
        entries, first = self.target.entries, _items(self._versions[0].draft)
        rows: list[DraftRow] = []
        for origin, item in zip(self._now.origins, _items(self._now.draft), strict=True):
            entry = entries[origin] if origin is not None and origin < len(entries) else None
            touched = origin is None or item != first[origin]
            rows.append(DraftRow(item.message, origin, item.edited if touched else "", entry))
        return tuple(rows)

    def _made_parts(self, rows: Sequence[DraftRow]) -> list[Part]:
        now, kind = self._now, self.target.kind
        parts: list[Part] = []
        for at, row in enumerate(rows):
            parts.append(Part(f"message:{at}", "text", row.message.text, at))
            for number, call in enumerate(row.message.tool_calls):
                parts.append(Part(f"call:{at}:{number}", "json", pretty(call.arguments), at, call.name))
        if now.answer is not None:
            parts.append(Part("answer", "text", now.answer.text))
            for number, call in enumerate(now.answer.tool_calls):
                parts.append(Part(f"answer-call:{number}", "json", pretty(call.arguments), name=call.name))
        if kind is StopKind.BEFORE_TOOL:
            parts.append(Part("arguments", "json", pretty(now.arguments), name=self.target.tool))
            parts.append(Part("skip", "text", now.skip.text if now.skip is not None else "", name=self.target.tool))
        if kind is StopKind.AFTER_TOOL:
            parts.append(Part("result", "text", now.result.text, name=self.target.tool))
        parts += [
            Part(f"state:{key}", "json", json.dumps(value, indent=2, ensure_ascii=False), name=key)
            for key, value in now.state.items()
        ]
        return parts

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, key: str, text: str) -> bool:
        """Set the text of a part; False if it has this text. Raises EditError and changes nothing."""
        part = self.part(key)
        if part is None:
            raise EditError("this is not there any more")
        if text == part.text and not (key == "skip" and not self.skipped):
            return False
        name, _, rest = key.partition(":")
        match name:
            case "message":
                self.do(ChangeMessage(part.at, with_text(self._message(part.at), text)))
            case "call":
                message = self._message(part.at)
                self.do(ChangeMessage(part.at, _with_arguments(message, int(rest.partition(":")[2]), text)))
            case "answer":
                assert self._now.answer is not None
                self.do(SetAnswer(with_text(self._now.answer, text)))
            case "answer-call":
                assert self._now.answer is not None
                self.do(SetAnswer(_with_arguments(self._now.answer, int(rest), text)))
            case "arguments":
                self.do(SetArguments(_object(text)))
            case "skip":
                self.do(SkipTool(text) if text.strip() else SkipTool())
            case "result":
                self.do(SetResult(text, self._now.result.is_error))
            case _:
                self.do(SetState(part.name, as_value(text)))
        return True

    def set_role(self, at: int, role: str) -> None:
        """Give a message, or with ``at`` -1 nothing, another role. Raises EditError."""
        message = self._message(at)
        if role not in ROLES:
            raise EditError(f"'{role}' is not a role; there are {', '.join(ROLES)}")
        if message.role == "tool" or role == "tool" or message.tool_calls:
            raise EditError("a tool call and its result belong together: their roles stay")
        self.do(ChangeMessage(at, replace(message, role=role)))

    def add(self, at: int, role: str = "user", text: str = "") -> None:
        """A new message before the one at ``at``. Raises EditError."""
        if role not in ROLES or role == "tool":
            raise EditError(f"a message of role '{role}' cannot be added; user, assistant or system can")
        self.do(AddMessage(at, Message(role, text)))

    def set_error(self, is_error: bool) -> None:
        """Whether the tool's result is told as an error."""
        self.do(SetResult(self._now.result.text, is_error))

    def set_request(self, model: str, parameters: Mapping[str, Any]) -> bool:
        """The model and all parameters of the request; False where nothing changes. Raises EditError."""
        now = self._now
        changed = {name: value for name, value in parameters.items() if now.parameters.get(name) != value}
        changed |= {name: None for name in now.parameters if name not in parameters}
        if not changed and (not model or model == now.model):
            return False
        self.do(SetModel("" if model == now.model else model, changed))
        return True

    def do(self, edit: Edit) -> None:
        """Make an edit. Raises EditError and changes nothing."""
        check_edit(edit, Stop(self.target.kind, self.target.place, answerable=self.target.answerable))
        if isinstance(edit, ChangeMessage) and self.target.as_sent:
            self._check_sent_in_full(edit.at)
        base, edits = self._now, self._now.edits
        newest = edits[-1] if edits else None
        further = newest is not None and _same_thing(newest, edit)
        if isinstance(newest, AddMessage) and isinstance(edit, ChangeMessage | DropMessage) and edit.at == newest.at:
            # What was only just added is written further, or not wanted after all.
            if isinstance(edit, DropMessage):
                self.undo()
                return
            edit, further = AddMessage(edit.at, edit.message), True
        if further:
            base, edits = self._versions[-2], edits[:-1]
        made = _made(base, edit, self.target.place)
        made = replace(made, edits=(*edits, edit))
        if base is self._now:
            self._versions.append(made)
        else:
            self._versions[-1] = made
        self._undone = []

    def undo(self) -> Edit | None:
        """Undo the last edit and return it; None without one."""
        if len(self._versions) == 1:
            return None
        self._undone.append(self._versions.pop())
        return self._undone[-1].edits[-1]

    @property
    def can_redo(self) -> bool:
        """Whether an edit was undone, and none was made since."""
        return bool(self._undone)

    def redo(self) -> Edit | None:
        """Redo the last undone edit and return it; None without one."""
        if not self._undone:
            return None
        self._versions.append(self._undone.pop())
        return self.edits[-1]

    def _check_sent_in_full(self, at: int) -> None:
        rows = self.rows
        entry = rows[at].entry if 0 <= at < len(rows) else None
        if entry is not None and entry.sent is not entry.item.message and entry.sent != entry.item.message:
            raise EditError(
                f"message {at + 1} is {entry.action}: what is sent of it comes from the strategy. "
                "It can be dropped here, or edited where a run is paused"
            )

    def _message(self, at: int) -> Message:
        items = _items(self._now.draft)
        if not 0 <= at < len(items):
            raise EditError(f"there is no message {at + 1}; the context has {len(items)}")
        return items[at].message

    # -- for a look before they are made -----------------------------------------------------------------------------

    @property
    def changes(self) -> tuple[Change, ...]:
        """The sum of all edits: an edit that another one reverts is not listed."""
        first, now = self._versions[0], self._now
        found: list[Change] = []
        before = _items(first.draft)
        moved = {edit.at for edit in now.edits if isinstance(edit, MoveMessage)}
        for at, (origin, item) in enumerate(zip(now.origins, _items(now.draft), strict=True)):
            old = before[origin] if origin is not None else None
            label = f"message {at + 1} ({item.message.role})"
            if old is None:
                if not dropped(item):
                    found.append(Change("added", label, "", told(item.message)))
            elif dropped(item) and not dropped(old):
                found.append(Change("dropped", f"message {at + 1} ({old.message.role})", told(old.message), ""))
            elif item.message != old.message:
                found.append(Change("changed", label, told(old.message), told(item.message)))
            elif moved and item.edited == "moved" and origin is not None and origin != at:
                text = told(item.message)
                found.append(Change("moved", f"message {origin + 1} to {at + 1} ({item.message.role})", text, text))
        if (first.model, dict(first.parameters)) != (now.model, dict(now.parameters)):
            found.append(Change("changed", "model and parameters", settings_text(first), settings_text(now)))
        if first.answer is not None and now.answer is not None and first.answer != now.answer:
            found.append(Change("changed", "answer", told(first.answer), told(now.answer)))
        tool = self.target.tool
        if now.skip is not None:
            was = f"{tool} runs with\n{pretty(first.arguments)}"
            found.append(Change("changed", f"{tool} does not run; its result", was, now.skip.text))
        elif first.arguments != now.arguments:
            label = f"arguments of {tool}"
            found.append(Change("changed", label, pretty(first.arguments), pretty(now.arguments)))
        if first.result != now.result:
            turned = ", now an error" if now.result.is_error else ", no longer an error"
            label = f"result of {tool}" + (turned if first.result.is_error != now.result.is_error else "")
            found.append(Change("changed", label, first.result.text, now.result.text))
        for key, value in now.state.items():
            if key not in first.state or first.state[key] != value:
                was = _shown(first.state[key]) if key in first.state else ""
                found.append(Change("changed" if key in first.state else "added", f"state.{key}", was, _shown(value)))
        return tuple(found)


# -- texts of values ---------------------------------------------------------------------------------------------------


def told(message: Message) -> str:
    """A message as one text: its text, then its tool calls."""
    calls = [f"→ {call.name} {pretty(call.arguments)}" for call in message.tool_calls]
    images = [f"[image {image.media_type}, {image.size:,} bytes]" for image in message.images]
    return "\n".join(filter(None, (message.text, *images, *calls)))


def settings_text(request: Any) -> str:
    """A model and its parameters, a line each; ``request`` has both."""
    lines = [f"model: {request.model}"]
    return "\n".join([*lines, *(f"{name}: {json.dumps(value)}" for name, value in sorted(request.parameters.items()))])


def with_text(message: Message, text: str) -> Message:
    """The message with another text; its images, calls and ids stay."""
    if isinstance(message.content, str):
        return replace(message, content=text)
    images = message.images
    return replace(message, content=(TextPart(text), *images) if images else text)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _object(text: str) -> str:
    """Arguments as sent: the written JSON in one line. Raises EditError with line and column."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as fault:
        place = f"line {fault.lineno}, column {fault.colno}"
        raise EditError(f"the arguments are not valid JSON: {place}: {fault.msg}") from None
    except RecursionError:
        raise EditError("the arguments are not valid JSON: they are nested too deeply") from None
    if not isinstance(value, dict):
        raise EditError('the arguments must be a JSON object, as in {"path": "x"}')
    return json.dumps(value, ensure_ascii=False)


def _with_arguments(message: Message, number: int, text: str) -> Message:
    arguments = _object(text)
    calls = tuple(
        replace(call, arguments=arguments) if i == number else call for i, call in enumerate(message.tool_calls)
    )
    return replace(message, tool_calls=calls)


# -- edits of a version ------------------------------------------------------------------------------------------------


def _items(draft: Draft | None) -> tuple[Item, ...]:
    return () if draft is None else (*(item for item, _ in draft.entered.rows), *draft.own)


def _same_thing(a: Edit, b: Edit) -> bool:
    """Returns whether an edit takes the place of the one before it: the same text written further."""
    if type(a) is not type(b):
        return False
    if isinstance(a, ChangeMessage) and isinstance(b, ChangeMessage):
        return a.at == b.at
    if isinstance(a, SetState) and isinstance(b, SetState):
        return a.key == b.key
    return isinstance(a, SetAnswer | SetArguments | SkipTool | SetResult)


def _made(before: _Version, edit: Edit, place: Place) -> _Version:
    """A version after one more edit. Raises EditError."""
    match edit:
        case SetModel(model, parameters):
            laid = {name: value for name, value in {**before.parameters, **parameters}.items() if value is not None}
            return replace(before, model=model or before.model, parameters=laid)
        case SetState(key, value):
            return replace(before, state={**before.state, key: value})
        case SetAnswer(message):
            return replace(before, answer=message)
        case SetArguments(arguments):
            return replace(before, arguments=arguments, skip=None)
        case SkipTool():
            return replace(before, skip=edit)
        case SetResult():
            return replace(before, result=edit)
        case _:
            return _with_messages(before, edit, place)


def _with_messages(
    before: _Version, edit: ChangeMessage | DropMessage | AddMessage | MoveMessage, place: Place
) -> _Version:
    if before.draft is None:
        raise EditError("there are no messages to edit here")
    draft, origins = edited(before.draft, edit, place), list(before.origins)
    match edit:
        case AddMessage(at):
            origins.insert(at, None)
        case MoveMessage(at, to):
            origins.insert(to, origins.pop(at))
    return replace(before, draft=draft, origins=tuple(origins))
