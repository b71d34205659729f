"""An MCP server without the SDK, which starts in a twentieth of its time: ``python -I -S plain_mcp.py``.

It answers what a client asks of it over standard input and output, and has the tools of ``TOOLS``.
"""

from __future__ import annotations

import json
import os
import sys
import threading

TOOLS = {
    "echo": "Says it again.",
    "waits": "Never gives a result.",
    "dies": "Ends the server.",
    "get_current_time": "Says what time it is.",
    "convert_time": "Convert time between timezones",
}
LISTED = [
    {"name": name, "description": text, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    for name, text in TOOLS.items()
]
CAN = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "plain", "version": "1"}}


def called(name: str, arguments: dict[str, str]) -> str:
    """What a tool gives; ``waits`` and ``dies`` give nothing."""
    if name == "dies":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "waits":
        threading.Event().wait()
    return f"you said {arguments['text']}" if name == "echo" else json.dumps(arguments)


def answered(asked: dict[str, object]) -> dict[str, object]:
    """The answer to a request."""
    match asked:
        case {"method": "initialize"}:
            return {"result": CAN}
        case {"method": "tools/list"}:
            return {"result": {"tools": LISTED}}
        case {"method": "tools/call", "params": {"name": str(name), **more}}:
            given = more.get("arguments") or {}
            return {"result": {"content": [{"type": "text", "text": called(name, given)}]}}  # type: ignore[arg-type]
    return {"error": {"code": -32601, "message": "no"}}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("id") is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answered(asked)}), flush=True)
