"""What an entry sent, or holds, as plain text."""

from __future__ import annotations

from workbench.context.assembly import Entry


def message_text(entry: Entry, *, full: bool = False) -> str:
    """What went out (or, ``full``, what the history holds): text, calls, images by digest."""
    message = entry.item.message if full or entry.sent is None else entry.sent
    parts = [message.text] if message.text else []
    parts += [f"call {c.id} {c.name}({c.arguments})" for c in message.tool_calls]
    parts += [f"image {i.digest[:12]} {i.media_type} {i.size:,} bytes" for i in message.images]
    return "\n".join(parts)
