"""The exact context of one model call: every message of the history, sent or not, with the rule that decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Struct

from workbench.context.message import Message
from workbench.context.place import Place


class Kind(StrEnum):
    """The purpose of a message of the history."""

    SYSTEM = "system"
    """The tool text; with ``Item.source`` another system text that opens the request."""
    INPUT = "input"
    """``[Original Input]``."""
    INJECTED = "injected"
    """Kinds of messages that another phase passed on; ``Item.source`` names the origin."""
    TASK = "task"
    RETRY = "retry"
    """Opens an attempt after the first; ``Item.note`` holds the reason of the rejection."""
    PROMPT = "prompt"
    """Opens a later turn: turn_prompt, feedback, "Continue/Refine"."""
    CLOSING = "closing"
    """The closing call's "no more tool calls"."""
    ANSWER = "answer"
    RESULT = "result"
    """A tool result, native or as user text."""
    IMAGES = "images"
    """Images that a tool returned."""
    USER = "user"
    """A person's or a hook's message during the run."""


class Action(StrEnum):
    """The treatment of a message on its way into one request."""

    KEPT = "kept"
    MASKED = "masked"
    TRUNCATED = "truncated"
    SUMMARIZED = "summarized"
    INJECTED = "injected"
    DROPPED = "dropped"


class Grade(StrEnum):
    """How far a token count can be trusted, best first."""

    EXACT = "exact"
    CALIBRATED = "calibrated"
    ESTIMATE = "estimate"

    @classmethod
    def of_sum(cls, parts: Iterable[str]) -> Grade:
        """The grade of a sum: that of its worst part, exact without any; an unknown one counts as an estimate."""
        return max((_GRADES.get(str(part), cls.ESTIMATE) for part in set(parts)), key=_WORSE.index, default=cls.EXACT)


_KINDS: Mapping[str, Kind] = {str(kind): kind for kind in Kind}
_ACTIONS: Mapping[str, Action] = {str(action): action for action in Action}
_GRADES: Mapping[str, Grade] = {str(grade): grade for grade in Grade}
"""By value: a fold reads thousands, and calling an enumeration takes five times as long."""
_WORSE = tuple(Grade)


SYSTEM_TEXT = "system"
"""``Item.source`` of a system text that opens a request and describes no tools: a program's own, or one that the engine
asks something beside the run with."""


class Item(Struct, frozen=True):
    """A message of the history and the place where it was made."""

    message: Message
    kind: Kind
    place: Place
    tool: str = ""
    """Name of the tool, for a result or its images."""
    is_error: bool = False
    """The structured error flag of a tool result: never found by searching for words."""
    source: str = ""
    """The place that an injected message was taken from: ``gather.output``; ``SYSTEM_TEXT`` of such a text."""
    note: str = ""
    redacted: int = 0
    """Number of secrets that were replaced when this text entered the run."""
    edited: str = ""
    """The edit of a person: changed, dropped, added or moved; empty for messages that the run itself made."""

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"m": self.message.body_hash, "kind": str(self.kind), "place": str(self.place)}
        if self.tool:
            body["tool"] = self.tool
        if self.is_error:
            body["is_error"] = self.is_error
        if self.source:
            body["source"] = self.source
        if self.note:
            body["note"] = self.note
        if self.redacted:
            body["redacted"] = self.redacted
        if self.edited:
            body["edited"] = self.edited
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any], bodies: Mapping[str, Message]) -> Item:
        return cls(
            bodies[body["m"]],
            _KINDS.get(body["kind"]) or Kind(body["kind"]),
            Place.parse(body["place"]),
            body.get("tool", ""),
            body.get("is_error", False),
            body.get("source", ""),
            body.get("note", ""),
            body.get("redacted", 0),
            body.get("edited", ""),
        )


class Reason(NamedTuple):
    """Why an entry is as it is: a code of ``context/reasons.py`` and its numbers. Holds no age: it moves by itself."""

    code: str
    args: tuple[str | int, ...] = ()


class Rule(NamedTuple):
    """The place in the file that decided; ``default`` with line 0 if the file says nothing."""

    path: str = "default"
    line: int = 0


class MessagePart(NamedTuple):
    """One part that a message was put together from: one value, one output, one line of a preamble."""

    origin: str
    """``entity Area``, ``fetch.output``, ``fix#2.stage``."""
    action: Action
    """kept, truncated or dropped."""
    reason: str = ""
    """Why it is not whole."""
    tokens_full: int = 0
    tokens_sent: int = 0

    @classmethod
    def from_json(cls, body: Sequence[Any]) -> MessagePart:
        origin, action, reason, full, sent = body
        return cls(origin, _ACTIONS.get(action) or Action(action), reason, full, sent)


class Entry(NamedTuple):
    """One message in one context. ``sent`` is the message as it was sent, or None if it was dropped.

    A tuple, as reasons and rules are: a long run makes tens of thousands, and compares them.
    """

    item: Item
    sent: Message | None
    action: Action
    reason: Reason
    rule: Rule
    tokens_full: int
    tokens_sent: int
    grade: Grade = Grade.EXACT
    parts: tuple[MessagePart, ...] = ()
    """The parts from which a strategy composed the message, those left out included; empty for all other messages."""

    def to_json(self) -> dict[str, Any]:
        """The journal's form: bodies by hash; ``s`` is left out if the message was sent unchanged."""
        body = self.item.to_json() | {
            "action": str(self.action),
            "reason": [self.reason.code, *self.reason.args],
            "rule": self.rule.path,
            "line": self.rule.line,
            "full": self.tokens_full,
            "sent": self.tokens_sent,
            "grade": str(self.grade),
        }
        if self.sent is None:
            body["s"] = None
        elif self.sent is not self.item.message and self.sent != self.item.message:
            body["s"] = self.sent.body_hash
        if self.parts:
            body["parts"] = [list(part) for part in self.parts]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any], bodies: Mapping[str, Message]) -> Entry:
        item = Item.from_json(body, bodies)
        sent_hash = body.get("s", "")
        sent = None if sent_hash is None else bodies[sent_hash] if sent_hash else item.message
        code, *args = body["reason"]
        return cls(
            item,
            sent,
            _ACTIONS.get(body["action"]) or Action(body["action"]),
            Reason(code, tuple(args)),
            Rule(body["rule"], body["line"]),
            body["full"],
            body["sent"],
            _GRADES.get(body["grade"]) or Grade(body["grade"]),
            tuple(MessagePart.from_json(part) for part in body["parts"]) if "parts" in body else (),
        )


class Splice(NamedTuple):
    """From index ``at`` of the entries before, ``remove`` entries gave way to ``entries``."""

    at: int
    remove: int
    entries: tuple[Entry, ...]


class BrokenInvariant(Struct, frozen=True):
    """A broken invariant of a request, with the index of the entry at fault, or -1."""

    invariant: int
    message: str
    entry: int = -1


class BudgetFit(Struct, frozen=True):
    """How a request stands to its token budget."""

    limit: int
    """Input tokens that are allowed."""
    mode: str
    """sliding_window, prune_oldest, summarize or fail."""
    over: int = 0
    """Tokens above the limit that cannot be dropped, or may not be dropped in mode ``fail``. Above 0 the phase fails.
    """
    warns: bool = False
    """The request is larger than the warning threshold."""


class Request(Struct, frozen=True):
    """The request to a model. The digest identifies it: a recorded answer is used only for an equal request."""

    model: str
    """The model as the cascade or the settings name it."""
    parameters: Mapping[str, Any]
    """Parameters sent beside the messages: temperature, max_tokens, reasoning_effort, tool_choice."""
    tools: tuple[Mapping[str, Any], ...]
    """Native tool schemas in OpenAI form, in stable order; empty for prompt-based tools."""
    messages: tuple[Message, ...]
    digest: str


class Assembly(Struct, frozen=True, dict=True):
    """The ordered entries of one call, the request that they form, its totals, and the rules that it breaks."""

    strategy: str
    entries: tuple[Entry, ...]
    splices: tuple[Splice, ...]
    """Against the assembly before it in the same branch (all of it, for the first)."""
    request: Request
    tools_tokens: int
    overhead_tokens: int
    tokens_full: int
    """Tokens of the whole history, tools and overhead included."""
    tokens_sent: int
    grade: Grade
    problems: tuple[BrokenInvariant, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks of the assembly: a source skipped because its phase did not run."""
    fit: BudgetFit | None = None
    """None without a token budget."""
    sent_entries: tuple[int, ...] = ()
    """Index of the entry behind each sent message."""
    prefix_digests: tuple[str, ...] = ()
    """Chain: digest i identifies model, tools and the first i sent messages."""
    prefix_tokens: tuple[int, ...] = ()
    """Tokens of tools and the first i sent messages."""

    @cached_property
    def masked(self) -> int:
        """How many messages were sent in less than full."""
        return sum(1 for e in self.entries if e.action in (Action.MASKED, Action.TRUNCATED, Action.SUMMARIZED))
