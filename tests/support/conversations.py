"""Conversations of another tool, small and each another one, to be imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def conversation(number: int, calls: int = 3) -> dict[str, Any]:
    """One that calls a tool in each turn but the last; the results differ in length by ``number``."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You look things up."},
        {"role": "user", "content": f"Question {number}: what does the log say?"},
    ]
    for call in range(1, calls):
        function = {"name": "look", "arguments": json.dumps({"page": call})}
        called = {"id": f"c{call}", "type": "function", "function": function}
        text = f"page {call} of log {number}: " + "an entry about nothing in particular. " * (5 + number % 7 * 9)
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": f"c{call}", "content": text},
        ]
    messages.append({"role": "assistant", "content": f"The log of {number} says nothing."})
    return {"model": "gpt-4o", "messages": messages}


def write_lines(file: Path, count: int, calls: int = 3) -> Path:
    """A file with a conversation on each line."""
    file.write_text("".join(json.dumps(conversation(number, calls)) + "\n" for number in range(count)))
    return file
