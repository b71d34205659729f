"""Groups recorded calls into contexts: a call whose input extends the input and answer of an earlier call
continues it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.message import UNSENT, ToolCall
from workbench.importers.conversation import (
    Beside,
    Call,
    Conversation,
    ImportedMessage,
    Remark,
    Remarks,
    Thread,
    Unreadable,
    marks_of_messages,
    unmarked,
)
from workbench.importers.parts import SIGNATURE
from workbench.importers.values import array, mapping, string

# Text protocols: an agent asks for a tool in words, and what the tool returned comes back as a user's message.

_RESULT = re.compile(
    r"""\s*(?:
        (?:tool|function|command)\s(?:result|output)s?\s*: |
        observation\s*: |
        (?:execution\s)?result\sof\s\[ |
        <(?:tool_response|tool_result|function_results?|observation|returncode|command_output)\b |
        \[[\w.-]{2,40}(?:\sfor\s'[^'\n]{0,400}')?\]\sResult:
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""How results begin in the protocols in use: DGM's, ReAct's, OpenHands', Hermes', mini-swe-agent's, Cline's."""


class TextResults:
    """Marks the messages of one context that are results of a text protocol: they follow an answer without native
    calls, and begin as a result does."""

    def __init__(self) -> None:
        self._asked = False

    def marked(self, one: ImportedMessage) -> ImportedMessage:
        """The next message, with its mark."""
        if one.role == "user" and self._asked and _RESULT.match(one.text[:600]):
            one = replace(one, observation=True)
        self._asked = one.role == "assistant" and not one.calls
        return one


def observed(said: Iterable[ImportedMessage]) -> Iterator[ImportedMessage]:
    """The messages, with results of a text protocol marked."""
    return map(TextResults().marked, said)


class ObservedCall(Struct, frozen=True):
    """One model call of a trace: its whole input, and its answer; of one without an answer ``call.fault`` says why."""

    input: tuple[ImportedMessage, ...]
    answer: ImportedMessage
    call: Call
    model: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    unstated: str = ""
    """The parts of its request that are unknown, in words."""
    responses: bool = False
    """Whether its request is one to OpenAI's Responses API."""
    is_request: bool = False
    """Whether ``input`` is the very request that was sent, not what a tracer noted of it."""


class Growing(Struct, eq=False):
    """A context that may go on."""

    model: str
    tools: tuple[Mapping[str, Any], ...]
    seen: list[ImportedMessage] = field(default_factory=list)
    """The messages that a next call can have seen: all but the places of answers that never came."""
    waiting: bool = False
    """A call of it has no answer yet, so no other call can go on with it."""


class Contexts:
    """The contexts of one program, while its calls come in: which one each call goes on with."""

    def __init__(self, most: int = 0) -> None:
        """``most``: that are remembered, those used last; 0 for all of them."""
        self._growing: dict[Growing, None] = {}
        """Those used last at the end."""
        self._most = most

    def asked(
        self, input: Sequence[ImportedMessage], model: str, tools: tuple[Mapping[str, Any], ...]
    ) -> tuple[Growing, Sequence[ImportedMessage]]:
        """The context used last that the input of a call begins with, else a new one, and the messages that are new in
        it. The context waits for the call's answer then."""
        context = next((one for one in reversed(self._growing) if _goes_on(one, input, model, tools)), None)
        if context is None:
            context = Growing(model, tools)
        else:
            del self._growing[context]
        self._growing[context] = None
        added = input[len(context.seen) :]
        context.seen += [one.without_pictures for one in added]
        context.waiting = True
        return context, added

    def forgotten(self) -> Sequence[Growing]:
        """The contexts beyond those that are remembered: no call can go on with them any more."""
        if not self._most or len(self._growing) <= self._most:
            return ()
        idle = [one for one in self._growing if not one.waiting]
        gone = idle[: len(self._growing) - self._most]
        for one in gone:
            del self._growing[one]
        return gone

    def answered(self, context: Growing, answer: ImportedMessage | None) -> None:
        """The answer to the call that a context waits for; None if none came."""
        context.waiting = False
        if answer is not None:
            context.seen.append(answer.without_pictures)

    def goes_on(self, input: Sequence[ImportedMessage], model: str, tools: tuple[Mapping[str, Any], ...]) -> bool:
        """Returns whether the input of a call begins with a context that holds an answer."""
        answered = (one for one in self._growing if any(said.role == "assistant" for said in one.seen))
        return any(_goes_on(one, input, model, tools) for one in answered)

    def beginning(
        self, told: Sequence[ImportedMessage], model: str, tools: tuple[Mapping[str, Any], ...]
    ) -> Growing | None:
        """The context used last that begins with these messages and holds more; None where there is none."""
        for one in reversed(self._growing):
            known = (one.model, one.tools) == (model, tools) and len(one.seen) > len(told) > 0
            if known and all(a.same(b) for a, b in zip(told, one.seen, strict=False)):
                return one
        return None

    def compacted(self, new: Growing) -> Growing | None:
        """The newest context that a new one replaces: both have the same model and tools and begin with the same
        instructions, and the new one is shorter and keeps some messages. None if the new one begins another
        conversation, and if it is how the older one began: that is a request that is sent again, or another walk from
        there.
        """
        system = [one for one in new.seen if one.role == "system"]
        rest = [one for one in new.seen if one.role != "system"]
        if system + rest != new.seen:
            return None
        for one in reversed(self._growing):
            # The quick questions come first: a new context is compared with every open one.
            if one is new or len(one.seen) <= len(new.seen) or (one.model, one.tools) != (new.model, new.tools):
                continue
            if not all(a.same(b) for a, b in zip(system, one.seen, strict=False)):
                continue
            before = [each for each in one.seen if each.role != "system"]
            if len(rest) >= len(before):
                continue
            if all(a.same(b) for a, b in zip(rest, before, strict=False)):
                return None
            if any(a.same(b) for a in rest for b in before[:1] + before[-3:]):
                return one
        return None


def _goes_on(
    context: Growing, input: Sequence[ImportedMessage], model: str, tools: tuple[Mapping[str, Any], ...]
) -> bool:
    """Returns whether a call's input is what a context has seen, or more. The last message is compared first: it tells
    most contexts apart."""
    seen = context.seen
    if context.waiting or not 0 < len(seen) <= len(input) or not seen[-1].same(input[len(seen) - 1]):
        return False
    same = context.model == model and context.tools == tools
    return same and all(a.same(b) for a, b in zip(seen, input, strict=False))


_REASONING = ("reasoning", "thinking_blocks", "reasoning_details")
"""Fields of an answer with blocks that a provider counts again where they are sent back."""


def _unsigned(call: ToolCall) -> ToolCall:
    """A call without Google's mark of the thought that led to it."""
    if SIGNATURE not in call.extra:
        return call
    return replace(call, extra={name: value for name, value in call.extra.items() if name != SIGNATURE})


def _reasoned(extra: Mapping[str, Any]) -> str:
    """The text of the reasoning blocks of an answer, as far as it is no secret of the provider."""
    blocks = [mapping(block) for name in _REASONING for block in array(extra.get(name))]
    parts = [mapping(part) for block in blocks for part in (block, *array(block.get("summary")))]
    return "\n".join(filter(None, (string(part.get("thinking")) or string(part.get("text")) for part in parts)))


class _ThreadFacts(Struct, eq=False):
    """Facts about the calls of one context, beside their messages."""

    model: str
    tools: tuple[Mapping[str, Any], ...]
    said: list[ImportedMessage] = field(default_factory=list)
    parameters: list[Mapping[str, Any]] = field(default_factory=list)
    """Of each of its calls."""
    unstated: str = ""
    responses: bool = False

    def sent_back(self, back: ImportedMessage) -> None:
        """The newest message as the next request had it: a client may leave out the reasoning of an answer."""
        last = self.said[-1]
        if last.role != "assistant" or not last.same(back):
            return
        left_out = [name for name in _REASONING if isinstance(last.extra.get(name), list) and name not in back.extra]
        extra = {name: value for name, value in last.extra.items() if name not in left_out}
        if "reasoning_details" in extra:  # Clients of gateways write some of it anew.
            extra["reasoning_details"] = back.extra["reasoning_details"]
        if len(extra) < len(last.extra) and (text := _reasoned(last.extra)):
            extra["reasoning_content"] = text
        if extra.get("reasoning_content") and not back.extra.get("reasoning_content"):
            extra[UNSENT] = True
        if SIGNATURE not in back.extra:
            extra.pop(SIGNATURE, None)
        calls = tuple(
            call if SIGNATURE in again.extra else _unsigned(call)
            for call, again in zip(last.calls, back.calls, strict=True)
        )
        self.said[-1] = replace(last, extra=extra, calls=calls)

    def thread(self) -> Thread:
        """The context: its parameters are those that are equal in all calls, each call has its further ones."""
        alike, each = shared(self.parameters), iter(self.parameters)
        said = [
            one if one.call is None else replace(one, call=replace(one.call, parameters=_beyond(alike, next(each))))
            for one in self.said
        ]
        return Thread(tuple(observed(said)), self.model, self.tools, alike, self.unstated, self.responses)


def unanswered(call: Call, fault: str) -> tuple[ImportedMessage, Call]:
    """Returns the message that replaces a missing answer of a call in the file, and the call, which says why."""
    return ImportedMessage("assistant"), replace(call, fault=fault)


def as_given(said: Iterable[ImportedMessage]) -> list[ImportedMessage]:
    """Messages of an earlier context as a later one begins with them: no call of it made them."""
    return [replace(one, call=None) for one in said if one.call is None or not one.call.fault]


def with_answers(contexts: Iterable[Sequence[ImportedMessage]], remarks: Remarks) -> list[Sequence[ImportedMessage]]:
    """The contexts that hold an answer, else the first that holds a message. The messages of the others are in no
    request of the file, which a remark says."""
    held = [said for said in contexts if said]
    answered = [said for said in held if any(one.call is not None for one in said)]
    if answered and (lost := sum(len(said) for said in held if said not in answered)):
        remarks.left_out("a message of a context that the file holds no answer to", count=lost)
    return answered or held[:1]


def attempted(read: Callable[[], ObservedCall | None], remarks: Remarks) -> ObservedCall | None:
    """A call of a trace. A call with unreadable messages is left out, with a remark."""
    try:
        return read()
    except Unreadable as fault:
        remarks.left_out(f"a model call that cannot be read ({fault})")
        return None


def threads_of(calls: Iterable[ObservedCall]) -> tuple[Thread, ...]:
    """The contexts of a trace, oldest first. If all calls have times, they are taken in that order."""
    contexts, told = Contexts(), dict[Growing, _ThreadFacts]()
    listed = [_with_marks(one) for one in calls]
    if all(one.call.at for one in listed):
        listed.sort(key=lambda one: one.call.at)
    for call in listed:
        context, added = contexts.asked(call.input, call.model, call.tools)
        answer = replace(call.answer, call=call.call)
        contexts.answered(context, None if call.call.fault else answer)
        thread = told.setdefault(context, _ThreadFacts(call.model, call.tools))
        if call.is_request and thread.said and len(call.input) > len(added):
            thread.sent_back(call.input[-len(added) - 1])
        thread.said += [*added, answer]
        thread.parameters.append(call.parameters)
        thread.unstated = thread.unstated or call.unstated
        thread.responses = thread.responses or call.responses
    return tuple(one.thread() for one in told.values() if one.said)


def _with_marks(call: ObservedCall) -> ObservedCall:
    """The call with the marks of its request in one place: those of its messages and of its tools."""
    tools, beside = unmarked(call.tools)
    if call.call.marks is not None or not (beside or any(one.mark for one in call.input)):
        return replace(call, tools=tools) if beside else call
    return replace(call, tools=tools, call=replace(call.call, marks=marks_of_messages(call.input, beside)))


def joined(conversations: Iterable[Conversation]) -> Conversation:
    """Several conversations as one run: those of a single call each may continue one another."""
    calls: list[ObservedCall] = []
    others: list[Thread] = []
    remarks, told, kept, title = Remarks(), list[Remark](), dict[str, Any](), ""
    for one in conversations:
        for thread in one.threads:
            if (last := _only_call(thread)) is not None:
                calls.append(last)
            else:
                others.append(thread)
        told += one.remarks
        kept |= one.kept
        title = title or one.title
    threads = (*threads_of(calls), *others)
    return Conversation(threads, title, remarks=Remarks((*told, *remarks.all)).all, kept=kept)


def _only_call(thread: Thread) -> ObservedCall | None:
    """The call of a thread that ends with its only one."""
    *before, answer = thread.said
    if answer.call is None or thread.calls != 1:
        return None
    parameters = {**thread.parameters, **answer.call.parameters}
    told = thread.model, thread.tools, parameters, thread.unstated, thread.responses
    call = answer.call
    if call.marks is None:
        call = replace(call, marks=marks_of_messages(before, thread.marked))
    return ObservedCall(tuple(before), answer, call, *told)


def shared(parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The parameters that are equal in all calls."""
    if not parameters:
        return {}
    return {n: value for n, value in parameters[0].items() if all(n in one and one[n] == value for one in parameters)}


def _beyond(alike: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in own.items() if name not in alike}


def linear(
    said: Sequence[ImportedMessage],
    *,
    model: str = "",
    tools: tuple[Mapping[str, Any], ...] = (),
    parameters: Mapping[str, Any] | None = None,
    made: bool = True,
    marked: Beside = (),
) -> Thread:
    """A plain list of messages as a thread: each answer is a call that saw what stands before it.

    ``marked``: what each request marks for the cache beside its messages and ``tools``.
    ``made``: so are answers that state no call; else they were given to the model, from a context before this one.
    """
    calls = tuple(
        replace(one, call=Call(model=model)) if made and one.role == "assistant" and one.call is None else one
        for one in said
    )
    models = dict.fromkeys(one.call.model for one in calls if one.call is not None and one.call.model)
    schemas, at_tools = unmarked(tools)
    named = model or next(iter(models), "")
    return Thread(tuple(observed(calls)), named, schemas, parameters or {}, marked=(*at_tools, *marked))
