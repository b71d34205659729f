"""Events of a session of Claude's managed agents, as the session lists and streams them: what a person sent, what the
agent said and called, what its tools gave, and a span for each request to the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks
from workbench.importers.exchanges import system_said, whole
from workbench.importers.messages import read_message
from workbench.importers.parts import tool_call
from workbench.importers.threads import linear, unanswered, with_answers
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, duration_between, mapping, moment, string

_SAID = ("agent.message", "agent.thinking", "agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use")
_RESULTS = {
    "agent.tool_result": "tool_use_id",
    "agent.mcp_tool_result": "mcp_tool_use_id",
    "user.custom_tool_result": "custom_tool_use_id",
}
"""Events that hold what a tool gave, each with the field that names its call."""
_GIVEN = ("user.message", "agent.thread_message_received")
_SPACES = ("agent.", "user.", "session.", "span.")
_BEGINS, _ENDS, _COMPACTED = "span.model_request_start", "span.model_request_end", "agent.thread_context_compacted"
_FAILED = ("retries_exhausted", "terminated")


def is_managed(body: Any) -> bool:
    """A list of events, bare or under ``events``, in which the agent says something to somebody."""
    events = [mapping(one) for one in _events(body)]
    kinds = {string(one.get("type")) for one in events}
    return (
        bool(kinds)
        and all(kind.startswith(_SPACES) for kind in kinds)
        and not kinds.isdisjoint(_SAID)
        and not kinds.isdisjoint((*_GIVEN, *_RESULTS, _ENDS))
        and all("content" in one or "input" in one for one in events if one.get("type") in _SAID[:1] + _SAID[2:])
    )


def _events(body: Any) -> Sequence[Any]:
    return array(body if isinstance(body, list) else mapping(body).get("events"))


class _Context(Struct):
    """What one thread of the session saw since it began, or since its last compaction."""

    said: list[ImportedMessage] = field(default_factory=list)
    open: list[ImportedMessage] = field(default_factory=list)
    """The pieces of the answer that has not ended yet."""
    call: Call = Call()
    """What is known of the request for it."""


def read_managed(body: Any) -> list[Conversation]:
    """One conversation; each thread of the session, and what follows a compaction, is a context."""
    remarks, outer = Remarks(), mapping(body)
    agent = mapping(outer.get("agent")) or mapping(mapping(outer.get("session")).get("agent"))
    model = string(mapping(agent.get("model")).get("id")) or string(agent.get("model"))
    reader = _Reader(remarks, model, system_said(agent.get("system"), remarks))
    for event in map(mapping, _events(body)):
        reader.read(event)
    contexts = reader.contexts()
    status = "failed" if reader.fault else "success"
    kept = {key: value for key, value in outer.items() if key != "events"}
    threads = tuple(linear(said, model=model, made=False) for said in with_answers(contexts, remarks))
    title = string(outer.get("title")) or string(outer.get("id"))
    return [Conversation(threads, title, status, reader.fault, remarks.all, kept)]


class _Reader:
    """Reads the events of a session in their order."""

    def __init__(self, remarks: Remarks, model: str, system: list[ImportedMessage]) -> None:
        self.fault = ""
        """Why the session failed; empty if it did not."""
        self._remarks, self._model, self._system = remarks, model, system
        self._open: dict[str, _Context] = {}
        self._ended: list[list[ImportedMessage]] = []

    def read(self, event: Mapping[str, Any]) -> None:
        kind, thread = string(event.get("type")), string(event.get("session_thread_id"))
        context = self._open.setdefault(thread, _Context(list(self._system)))
        if kind in _SAID:
            context.open.append(self._piece(event, kind))
        elif kind == _BEGINS:
            self._answered(context)
            context.call = Call(model=self._model, at=moment(event.get("processed_at")))
        elif kind == _ENDS:
            self._measured(context, event)
        elif kind in _RESULTS or kind in _GIVEN:
            self._answered(context)
            context.said += self._given(event, kind)
        elif kind == _COMPACTED:
            self._answered(context)
            self._ended.append(context.said)
            self._open[thread] = _Context(list(self._system))
            self._remarks.left_out("the summary of a compaction, which the events do not state,")
        else:
            self._noted(event, kind)

    def contexts(self) -> list[list[ImportedMessage]]:
        """The messages of each context, oldest first."""
        for context in self._open.values():
            self._answered(context)
        return [*self._ended, *(context.said for context in self._open.values())]

    def _piece(self, event: Mapping[str, Any], kind: str) -> ImportedMessage:
        """A piece of an answer: a text, a thought, or a call, which has the id of its event."""
        if kind == "agent.message":
            body = {"role": "assistant", "content": event.get("content")}
            return whole(read_message(body, self._remarks, "agent.message"))
        if kind == "agent.thinking":
            content = event.get("content")
            blocks = [dict(block) for block in map(mapping, array(content)) if block]
            return ImportedMessage("assistant", extra={"reasoning": blocks} if blocks else {})
        return ImportedMessage("assistant", calls=(tool_call(event.get("name"), event.get("input"), event.get("id")),))

    def _answered(self, context: _Context) -> None:
        """Ends the answer that is open: its pieces are one message, made by one call."""
        if context.open:
            call = context.call if context.call.model else replace(context.call, model=self._model)
            context.said.append(replace(whole(context.open), call=call))
            context.open, context.call = [], Call()

    def _measured(self, context: _Context, event: Mapping[str, Any]) -> None:
        """The end of a request: its usage is of the answer that is open, else of the one before."""
        usage, ended = usage_of(mapping(event.get("model_usage"))), moment(event.get("processed_at"))
        last = context.said[-1] if context.said else None
        if not context.open and event.get("is_error") is True:
            answer, call = unanswered(context.call, as_text(event.get("error")) or "the request failed")
            context.said.append(replace(answer, call=replace(call, model=call.model or self._model)))
            context.call = Call()
        elif not context.open and last is not None and last.call is not None and not context.call.at:
            context.said[-1] = replace(last, call=replace(last.call, usage=usage))
        else:
            seconds = duration_between(context.call.at, ended)
            context.call = replace(context.call, usage=usage, duration_s=seconds)

    def _given(self, event: Mapping[str, Any], kind: str) -> Iterator[ImportedMessage]:
        """What the agent was given: a person's message, or a result."""
        if kind in _GIVEN:
            yield from read_message({"role": "user", "content": event.get("content")}, self._remarks, kind)
            return
        content = {"role": "tool", "content": event.get("content") or "", "tool_call_id": event.get(_RESULTS[kind])}
        for one in read_message(content, self._remarks, kind):
            yield replace(one, is_error=event.get("is_error") is True)

    def _noted(self, event: Mapping[str, Any], kind: str) -> None:
        """Other events are no messages; some say that the session failed."""
        stop = string(mapping(event.get("stop_reason")).get("type")) or kind.removeprefix("session.status_")
        error = string(mapping(event.get("error")).get("message"))
        if stop in _FAILED:
            self.fault = error or self.fault or stop.replace("_", " ")
        elif kind == "session.error":
            self._remarks.left_out(f"an error of the session ({error[:80]})")
        self._remarks.left_out(f"an event of the kind {kind[:40]!r}")
