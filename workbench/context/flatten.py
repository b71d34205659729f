"""Messages of another phase as plain conversation: no calls, no results, no provider metadata."""

from __future__ import annotations

from dataclasses import replace

from workbench.context.assembly import Item
from workbench.context.message import Message, Part, Text
from workbench.context.placeholder import result_header


def flattened(item: Item) -> Message:
    """The message as it enters another phase: a native call becomes ``[Called NAME with {…}]`` in the assistant's
    text, a native result becomes user text. Itself where nothing has to change."""
    message = item.message
    if message.role == "tool":
        return Message("user", _led(message, result_header(item.tool or message.name or "tool", item.is_error)))
    if message.role == "assistant" and message.tool_calls:
        calls = "\n".join(f"[Called {call.name} with {call.arguments or '{}'}]" for call in message.tool_calls)
        return Message("assistant", _followed(message, calls))
    if message.extra or message.name or message.tool_call_id:
        return replace(message, extra={}, name="", tool_call_id="")
    return message


def _led(message: Message, header: str) -> str | tuple[Part, ...]:
    if isinstance(message.content, str):
        return header + message.content
    return (Text(header.rstrip("\n")), *message.content)


def _followed(message: Message, text: str) -> str | tuple[Part, ...]:
    if not isinstance(message.content, str):
        return (*message.content, Text(text))
    return f"{message.content.rstrip()}\n{text}" if message.content.strip() else text
