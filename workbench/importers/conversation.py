"""The common form of all imported formats: messages in the order in which a model saw them, and what the source says of
each call."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.marks import PARAMETER, Marks
from workbench.context.message import Role, ToolCall
from workbench.engine.journal.usage import StatedUsage, Usage


class Unreadable(Exception):
    """A file that cannot become a run; the message says what it looks like and what was expected."""


class Picture(Struct, frozen=True):
    """An image inside a message."""

    data: bytes
    media_type: str
    detail: str = ""
    """``low`` or ``high``, if the request asks for one of them."""


class Call(Struct, frozen=True):
    """The facts that the source states of the model call that made a message. Unknown numbers are None, unknown
    texts empty."""

    usage: Usage = Usage()
    cost: float | None = None
    """US dollars."""
    model: str = ""
    """As the provider names it."""
    provider: str = ""
    finish_reason: str = ""
    duration_s: float | None = None
    at: str = ""
    """When it began: UTC, ISO 8601 with microseconds and ``Z``."""
    marks: Marks | None = None
    """The cache marks of the request; None if it has none, or the source does not say."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Those of its request that not all calls of its context share."""
    fault: str = ""
    """Why the file holds no answer to it; empty for a call that was answered. The message of such a call is empty."""
    cost_grade: str = "exact"
    """``estimate`` if the source says that it worked the cost out itself."""
    recorded: bool = False
    """Whether the source says that a recording answered: the cost is of then."""
    answer_id: str = ""
    """Of its answer at the provider: pieces of one answer share it."""


class ImportedMessage(Struct, frozen=True):
    """One message."""

    role: Role
    parts: tuple[str | Picture, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    """Of the tool call that this is the result of."""
    name: str = ""
    is_error: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Reasoning blocks and the like."""
    call: Call | None = None
    """The call that made this answer; None for messages given to the model: examples, an earlier conversation."""
    mark: str = ""
    """Requested lifetime of the cached prefix that ends here: ``5m``, ``1h``; empty without a mark."""
    command: str = ""
    """Of an answer in a text protocol: what the agent ran."""
    observation: bool = False
    """A result in a text protocol: a user message that holds what a command printed."""

    @property
    def text(self) -> str:
        return "\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def without_pictures(self) -> ImportedMessage:
        """The message without the bytes of its pictures, which is the ``same``."""
        texts = tuple(part for part in self.parts if isinstance(part, str))
        return self if len(texts) == len(self.parts) else replace(self, parts=texts)

    def same(self, other: ImportedMessage) -> bool:
        """Returns whether a model would have seen the same message, whatever else the source says of it. A call that
        has no id on one side, as the provider gave it none, is the same as one with an id that its client drew."""
        if self.name != other.name and self.name and other.name and self.role == "assistant":
            return False
        return (
            (self.role, self.text.strip(), self.call_id) == (other.role, other.text.strip(), other.call_id)
            and len(self.calls) == len(other.calls)
            and all(
                a.name == b.name and (a.id == b.id or not a.id or not b.id)
                for a, b in zip(self.calls, other.calls, strict=True)
            )
        )


def marks_of_messages(said: Sequence[ImportedMessage], also: Iterable[tuple[str | int, str]] = ()) -> Marks | None:
    """The cache marks of a request; None if it has none. ``said``: its messages. ``also``: places beside them that are
    marked, each with the lifetime.
    """
    found = list(also)
    for i, one in enumerate(said):
        if one.mark:
            found.append(("last" if i + 1 == len(said) else "system" if one.role == "system" else i, one.mark))
    if not found:
        return None
    return Marks(tuple(dict.fromkeys(place for place, _ in found)), "1h" if ("1h" in dict(found).values()) else "5m")


Beside = tuple[tuple[str, str], ...]
"""Places of a request beside its messages that are marked for the cache, each with the lifetime."""


def unmarked(tools: Sequence[Mapping[str, Any]]) -> tuple[tuple[Mapping[str, Any], ...], Beside]:
    """Tool schemas without the cache marks that an importer left on them, and these marks."""
    found = next((one[PARAMETER] for one in reversed(tools) if PARAMETER in one), None)
    plain = tuple({key: value for key, value in one.items() if key != PARAMETER} for one in tools)
    return plain, (("tools", found["ttl"]),) if found else ()


class Thread(Struct, frozen=True):
    """A context that only grows: each answer with a call saw every message before it."""

    said: tuple[ImportedMessage, ...]
    model: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Native tool schemas in OpenAI form."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Those that all its calls share."""
    unstated: str = ""
    """The parts of its requests that the source does not state, in words; empty if the format states all."""
    responses: bool = False
    """Whether its requests are ones to OpenAI's Responses API."""
    marked: Beside = ()
    """What each of its requests marks for the cache beside its messages."""

    @property
    def calls(self) -> int:
        return sum(1 for said in self.said if said.call is not None)

    @property
    def answers(self) -> int:
        return sum(1 for said in self.said if said.call is not None and not said.call.fault)


class Conversation(Struct, frozen=True):
    """One run of another tool."""

    threads: tuple[Thread, ...]
    title: str = ""
    status: str = "success"
    reason: str = ""
    remarks: tuple[Remark, ...] = ()
    """The parts of the file that the run does not hold as they stand there."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Further data of the source, unchanged."""
    stated: StatedUsage = StatedUsage()

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks in words."""
        return tuple(str(remark) for remark in self.remarks)


class Remark(Struct, frozen=True):
    """Something that a reader left out or changed, with how often and where."""

    text: str
    """The name of what was left out, such as ``a span that is no model call``; else a sentence."""
    count: int = 1
    left_out: bool = False
    """It is not among the messages of the run."""
    kept: bool = False
    """It is kept beside the run, in ``run_started.imported.kept``."""
    where: tuple[str, ...] = ()
    """The first places in the file that it was found at."""

    def __str__(self) -> str:
        text = self.text
        if self.left_out:
            text += " is kept beside the run" if self.kept else " is left out"
        found = [f"{self.count:,} times"] if self.count > 1 else []
        if self.where:
            more = ", …" if len(self.where) < self.count else ""
            found.append(f"{', '.join(self.where)}{more}")
        return f"{text} ({': '.join(found)})" if found else text

    def to_json(self) -> dict[str, Any]:
        """As it is printed as JSON and kept with the run."""
        return {"what": self.text, "count": self.count, "kept": self.kept, "where": list(self.where)}


_PLACES = 5
"""So many places of a remark are named; all are counted."""


COMPACTED = "a compaction begins a context of its own, with the summary in the place of what was said before"
"""The remark of every format that has compactions."""


class Remarks:
    """Counts what a reader left out or changed, so that each kind of it is said once, with a number."""

    def __init__(self, remarks: Iterable[Remark] = ()) -> None:
        self._found: dict[tuple[str, bool, bool], tuple[int, tuple[str, ...]]] = {}
        for remark in remarks:
            self._count(remark.text, remark.left_out, remark.kept, remark.count, remark.where)

    def add(self, text: str, count: int = 1) -> None:
        """Something that was changed on the way in, in a sentence."""
        self._count(text, False, False, count, ())

    def left_out(self, what: str, where: str = "", *, count: int = 1, kept: bool = False) -> None:
        """Note a part that becomes no message: ``what`` names its kind, ``where`` its place in the file."""
        self._count(what, True, kept, count, (where,) if where else ())

    def unread(self, body: Mapping[str, Any], read: Container[str], what: str, where: str = "") -> None:
        """Note the fields of ``body`` that hold something and are not among those that are ``read``."""
        for name, value in body.items():
            if value and name not in read:
                self.left_out(f"the field {name[:40]!r} of {what}", where)

    def _count(self, text: str, left_out: bool, kept: bool, count: int, where: tuple[str, ...]) -> None:
        key = (text, left_out, kept)
        known, places = self._found.get(key, (0, ()))
        self._found[key] = known + count, tuple(dict.fromkeys((*places, *where)))[:_PLACES]

    @property
    def all(self) -> tuple[Remark, ...]:
        """In the order in which each kind was first met."""
        return tuple(
            Remark(text, count, left_out, kept, where) for (text, left_out, kept), (count, where) in self._found.items()
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """The same in words."""
        return tuple(map(str, self.all))
