"""Puts recorded calls together: a call whose input is what an earlier call saw and said, and more, goes on with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remark, Remarks, Thread, Unreadable

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


def observed(said: Iterable[ImportedMessage]) -> Iterator[ImportedMessage]:
    """The messages, with those marked as results that follow an answer without native calls and begin as one."""
    asked = False
    for one in said:
        if one.role == "user" and asked and _RESULT.match(one.text[:600]):
            one = replace(one, observation=True)
        asked = one.role == "assistant" and not one.calls
        yield one


class ObservedCall(Struct, frozen=True):
    """One model call of a trace: its whole input, and its answer; of one without an answer ``call.fault`` says why."""

    input: tuple[ImportedMessage, ...]
    answer: ImportedMessage
    call: Call
    model: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    unstated: str = ""
    """Which parts of its request nobody here knows, in words."""


class _Growing(Struct):
    """A thread that may go on."""

    said: list[ImportedMessage]
    seen: list[ImportedMessage]
    """Of these, what a next call can have seen: all but the places of answers that the file does not hold."""
    model: str
    tools: tuple[Mapping[str, Any], ...]
    parameters: list[Mapping[str, Any]]
    unstated: str = ""


def unanswered(call: Call, fault: str) -> tuple[ImportedMessage, Call]:
    """What stands for the answer of a call that the file holds none of, and the call, which says why."""
    return ImportedMessage("assistant"), replace(call, fault=fault)


def as_given(said: Iterable[ImportedMessage]) -> list[ImportedMessage]:
    """Messages of an earlier context as a later one begins with them: no call of it made them."""
    return [replace(one, call=None) for one in said if one.call is None or not one.call.fault]


def attempted(read: Callable[[], ObservedCall | None], remarks: Remarks) -> ObservedCall | None:
    """A call of a trace; one whose messages cannot be read is left out, which is said."""
    try:
        return read()
    except Unreadable as fault:
        remarks.left_out(f"a model call that cannot be read ({fault})")
        return None


def threads_of(calls: Iterable[ObservedCall], remarks: Remarks) -> tuple[Thread, ...]:
    """The contexts of a trace, oldest first; calls are taken in the order of their times where all have one."""
    growing: list[_Growing] = []
    listed = list(calls)
    if all(one.call.at for one in listed):
        listed.sort(key=lambda one: one.call.at)
    for call in listed:
        thread = _continued(growing, call)
        if thread is None:
            thread = _Growing(list(call.input), list(call.input), call.model, call.tools, [], call.unstated)
            growing.append(thread)
        else:
            added = call.input[len(thread.seen) :]
            thread.said += added
            thread.seen += added
        answer = replace(call.answer, call=call.call)
        thread.said.append(answer)
        if not call.call.fault:
            thread.seen.append(answer)
        thread.parameters.append(call.parameters)
        thread.unstated = thread.unstated or call.unstated
    return tuple(
        Thread(tuple(observed(one.said)), one.model, one.tools, shared(one.parameters, remarks), one.unstated)
        for one in growing
        if one.said
    )


def joined(conversations: Iterable[Conversation]) -> Conversation:
    """Several conversations as one run: those of a single call each are calls that may go on with one another."""
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
    threads = (*threads_of(calls, remarks), *others)
    return Conversation(threads, title, remarks=Remarks((*told, *remarks.all)).all, kept=kept)


def _only_call(thread: Thread) -> ObservedCall | None:
    """The call of a thread that ends with its only one."""
    *before, answer = thread.said
    if answer.call is None or thread.calls != 1:
        return None
    told = thread.model, thread.tools, thread.parameters, thread.unstated
    return ObservedCall(tuple(before), answer, answer.call, *told)


def _continued(growing: Sequence[_Growing], call: ObservedCall) -> _Growing | None:
    """The newest thread that the call's input begins with."""
    for thread in reversed(growing):
        known = len(thread.seen)
        if (thread.model, thread.tools) != (call.model, call.tools) or len(call.input) < known:
            continue
        if all(a.same(b) for a, b in zip(thread.seen, call.input, strict=False)):
            return thread
    return None


def shared(parameters: Sequence[Mapping[str, Any]], remarks: Remarks) -> dict[str, Any]:
    """The parameters that all calls have alike; that others changed between calls is remarked."""
    if not parameters:
        return {}
    first = parameters[0]
    names = dict.fromkeys(name for one in parameters for name in one)
    alike = {n: first[n] for n in names if all(n in one and one[n] == first[n] for one in parameters)}
    for name in names:
        if name not in alike:
            remarks.left_out(f"the parameter {name[:40]!r}, which differs between calls,")
    return alike


def linear(
    said: Sequence[ImportedMessage],
    *,
    model: str = "",
    tools: tuple[Mapping[str, Any], ...] = (),
    parameters: Mapping[str, Any] | None = None,
    made: bool = True,
) -> Thread:
    """A plain list of messages as a thread: each answer is a call that saw what stands before it.

    ``made``: so are answers that state no call; else they were given to the model, from a context before this one.
    """
    calls = tuple(
        replace(one, call=Call(model=model)) if made and one.role == "assistant" and one.call is None else one
        for one in said
    )
    models = dict.fromkeys(one.call.model for one in calls if one.call is not None and one.call.model)
    return Thread(tuple(observed(calls)), model or next(iter(models), ""), tools, parameters or {})
