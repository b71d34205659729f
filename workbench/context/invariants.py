"""Rules that every request has to keep, because providers refuse requests that break them: thirteen (``RULES``),
checked where a request has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from workbench.context.assembly import Action, BrokenInvariant, Entry
from workbench.context.message import Image, Message, canonical, is_blank
from workbench.context.placeholder import data_urls, is_json_object
from workbench.context.wire import can_merge

RULES: Mapping[int, str] = {
    1: "every tool result answers an open call of the assistant message before it, and every call is answered once",
    2: "the results of parallel calls are complete",
    3: "no content is blank",
    4: "system messages come first",
    5: "the first message after the system ones is a user's, the last is a user's or a tool's",
    6: "neighbours of the same role can be merged where a provider needs it",
    7: "reasoning and provider metadata of a live tool loop are verbatim",
    8: "images are whole, or replaced by text",
    9: "no private keys reach the wire",
    10: "call arguments are JSON objects",
    11: "the task and the tool definitions are there",
    12: "tools stand in a stable order",
    13: "assembling again gives the same request",
}
"""The demand of each rule, by its number."""


class Sent(Struct, frozen=True):
    """One message of a request, with its entry if it has one."""

    message: Message
    entry: int

    def broken(self, invariant: int, message: str) -> BrokenInvariant:
        return BrokenInvariant(invariant, message, self.entry)


def in_order(faults: Iterable[BrokenInvariant]) -> tuple[BrokenInvariant, ...]:
    """By entry, then by number."""
    return tuple(sorted(faults, key=lambda b: (b.entry, b.invariant, b.message)))


def boundary(messages: Sequence[Message], position: int) -> int:
    """The nearest position at or before this one from which a run can be checked by itself."""
    position = min(position, len(messages))
    while position > 0 and (position == len(messages) or messages[position].role == "tool"):
        position -= 1
    return position


def check_run(
    messages: Sequence[Message], entries: Sequence[int], before: Message | None = None
) -> list[BrokenInvariant]:
    """Rules 1 to 4, 6, 7, 9 and 10 on a stretch that begins at a boundary and goes to the end of the request.

    ``entries``: the entry behind each message; ``before``: the message in front of the stretch.
    """
    faults: list[BrokenInvariant] = []
    open_calls: dict[str, str] = {}
    asked: Sent | None = None
    for message, entry in zip(messages, entries, strict=True):
        if _is_text(message):
            if not open_calls and _stands_alone(message, before):
                asked, before = None, message
                continue
            if message.role == "tool" and open_calls.pop(message.tool_call_id, None) is not None:
                before = message
                continue
        row = Sent(message, entry)
        if message.role == "tool":
            faults += _answer(row, open_calls, asked)
        else:
            faults += _unanswered(asked, open_calls)
            asked, open_calls = row, {call.id: call.name for call in message.tool_calls}
            faults += _calls(row)
        faults += _content(row)
        if before is not None:
            faults += _neighbours(before, row)
        before = message
    faults += _unanswered(asked, open_calls)
    return faults


def _is_text(message: Message) -> bool:
    """Returns whether a message has text and nothing else. Most messages do, and break no rule about contents."""
    content = message.content
    return isinstance(content, str) and not (message.tool_calls or message.extra or is_blank(content))


def _stands_alone(message: Message, before: Message | None) -> bool:
    """Returns whether a text that answers no call stands well behind the message before it, by the roles of both."""
    return message.role == "user" or (message.role == "assistant" and before is not None and before.role != "assistant")


def check_ends(rows: Sequence[Sent]) -> list[BrokenInvariant]:
    """Rule 5. Looks at the system messages in front, one more, and the last."""
    first = next((row for row in rows if row.message.role != "system"), None)
    if first is None:
        return [BrokenInvariant(5, "the request holds no message beside system texts")]
    faults: list[BrokenInvariant] = []
    if first.message.role != "user":
        faults.append(first.broken(5, f"the first message after the system ones is {_a(first.message.role)}"))
    if (last := rows[-1]).message.role not in ("user", "tool"):
        faults.append(last.broken(5, f"the last message is {_a(last.message.role)}"))
    return faults


def check_presence(
    entries: Sequence[Entry], tasks: Sequence[int], tool_text: str, system_text: str = ""
) -> list[BrokenInvariant]:
    """Rule 11. ``tasks``: indices of the entries that hold the task. The texts are those that the request has to open
    with; a person's own in their place counts as present."""
    faults: list[BrokenInvariant] = []
    if not tasks:
        faults.append(BrokenInvariant(11, "the task is missing"))
    faults += [BrokenInvariant(11, "the task is not sent", i) for i in tasks if entries[i].sent is None]
    if opening := tool_text or system_text:
        first = entries[0].sent if entries else None
        if first is None or (first.text != opening and entries[0].item.edited != "changed"):
            what = "tool definitions are" if tool_text else "system text is"
            faults.append(BrokenInvariant(11, f"the {what} missing", 0 if entries else -1))
    return faults


def check_tools(tools: Sequence[Mapping[str, Any]], previous: Sequence[Mapping[str, Any]]) -> list[BrokenInvariant]:
    """Rule 12, against the tools of the request before."""
    if tools is previous:
        return []
    now, then = [canonical(tool) for tool in tools], [canonical(tool) for tool in previous]
    if len(set(now)) < len(now):
        return [BrokenInvariant(12, "a tool is defined twice")]
    if now != then and sorted(now) == sorted(then):
        return [BrokenInvariant(12, "the tools stand in another order than in the call before")]
    return []


def check_altered(entry: Entry, index: int) -> BrokenInvariant | None:
    """Rules 7 and 8 for an entry that is sent altered."""
    sent, original = entry.sent, entry.item.message
    if sent is None or sent is original:
        return None
    if sent.tool_calls and not _same_metadata(sent, original):
        return BrokenInvariant(7, "the metadata of a live tool loop is not verbatim", index)
    if entry.action is Action.TRUNCATED and (shown := data_urls(sent.text)):
        whole = set(data_urls(original.text))
        if any(url not in whole for url in shown):
            return BrokenInvariant(8, "an image in the text is cut", index)
    return None


def _same_metadata(sent: Message, original: Message) -> bool:
    mine = [(call.id, call.name, dict(call.extra)) for call in sent.tool_calls]
    return dict(sent.extra) == dict(original.extra) and mine == [
        (call.id, call.name, dict(call.extra)) for call in original.tool_calls
    ]


def _answer(row: Sent, open_calls: dict[str, str], asked: Sent | None) -> list[BrokenInvariant]:
    if row.message.tool_call_id in open_calls:
        del open_calls[row.message.tool_call_id]
        return []
    known = asked is not None and any(call.id == row.message.tool_call_id for call in asked.message.tool_calls)
    if known:
        return [row.broken(1, f"call '{row.message.tool_call_id}' is answered twice")]
    return [row.broken(1, f"this result answers no call of the message before it ('{row.message.tool_call_id}')")]


def _unanswered(asked: Sent | None, open_calls: Mapping[str, str]) -> list[BrokenInvariant]:
    if asked is None or not open_calls:
        return []
    names = ", ".join(f"{name} ('{identity}')" for identity, name in open_calls.items())
    answered = len(asked.message.tool_calls) - len(open_calls)
    if answered > 0:
        return [
            asked.broken(2, f"{answered} of {len(asked.message.tool_calls)} parallel calls have results; not {names}")
        ]
    return [asked.broken(1, f"the call of {names} has no result")]


def check_calls(message: Message) -> list[BrokenInvariant]:
    """Rules 1, 9 and 10 on the tool calls of one message, wherever it stands."""
    return _calls(Sent(message, -1))


def _calls(row: Sent) -> list[BrokenInvariant]:
    calls = row.message.tool_calls
    if not calls:
        return []
    faults: list[BrokenInvariant] = []
    if row.message.role != "assistant":
        faults.append(row.broken(1, f"{_a(row.message.role)} calls a tool"))
    if len({call.id for call in calls}) < len(calls):
        faults.append(row.broken(1, "two calls of one message have the same id"))
    for call in calls:
        if not call.id:
            faults.append(row.broken(1, f"the call of {call.name} has no id"))
        if not is_json_object(call.arguments):
            faults.append(row.broken(10, f"the arguments of {call.name} are not a JSON object"))
        if call.extra:
            faults += [row.broken(9, f"private key '{key}' in a call of {call.name}") for key in _private(call.extra)]
    return faults


def _content(row: Sent) -> list[BrokenInvariant]:
    message = row.message
    faults = [row.broken(9, f"private key '{key}'") for key in _private(message.extra)] if message.extra else []
    content = message.content
    if isinstance(content, str):
        blank = is_blank(content)
    else:
        blank = not content or any(not isinstance(part, Image) and is_blank(part.text) for part in content)
    if blank and not (message.role == "assistant" and message.tool_calls):
        faults.append(row.broken(3, "the content is blank"))
    for image in message.images:
        if not (image.digest and image.media_type and image.size > 0):
            faults.append(row.broken(8, "an image has no bytes"))
    return faults


def _neighbours(before: Message, row: Sent) -> list[BrokenInvariant]:
    if row.message.role == "system" and before.role != "system":
        return [row.broken(4, "a system message stands after the conversation has begun")]
    if row.message.role == before.role and not before.tool_calls and not can_merge(before, row.message):
        return [row.broken(6, f"two {before.role} messages stand side by side and cannot be merged")]
    return []


def _private(keys: Mapping[str, Any]) -> list[str]:
    return [key for key in keys if key.startswith("_")]


def _a(role: str) -> str:
    return f"an {role} message" if role == "assistant" else f"a {role} message"
