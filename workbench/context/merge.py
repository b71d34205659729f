"""Joins neighbours of the same role, for providers that insist on alternating roles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workbench.context.message import Message, Part, Text


def can_merge(first: Message, second: Message) -> bool:
    """Whether two neighbours of one role can become one message without losing anything.

    Tool results never merge, nor need to. An assistant's calls must stay next to their results, and its provider
    metadata belongs to one message alone.
    """
    if first.role != second.role:
        return False
    if first.role == "tool":
        return True
    if first.role == "assistant":
        return not first.tool_calls and not first.extra and not second.extra
    return True


def merge_neighbours(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with neighbours of the same role joined by a blank line; parts are kept in order."""
    merged: list[Message] = []
    for message in messages:
        if merged and message.role != "tool" and can_merge(merged[-1], message):
            merged[-1] = _joined(merged[-1], message)
        else:
            merged.append(message)
    return tuple(merged)


def _joined(first: Message, second: Message) -> Message:
    content: str | tuple[Part, ...]
    if isinstance(first.content, str) and isinstance(second.content, str):
        content = "\n\n".join(text for text in (first.content, second.content) if text.strip())
    else:
        content = (*_parts(first), *_parts(second))
    return replace(first, content=content, tool_calls=second.tool_calls, extra={**first.extra, **second.extra})


def _parts(message: Message) -> tuple[Part, ...]:
    if not isinstance(message.content, str):
        return message.content
    return (Text(message.content),) if message.content.strip() else ()
