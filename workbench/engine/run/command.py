"""Commands of a pipeline: those of its tool nodes, and those before and after each call of a tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.context.place import Place
from workbench.engine.contracts import ToolResult
from workbench.engine.conversation import Conversation
from workbench.engine.current import calling
from workbench.language.graph import COMMAND, Graph

BEFORE, AFTER = 1000, 2000
"""Added to the number of a tool call: the numbers of the commands before and after it."""
SCRATCH = "/tmp"
"""Folder for files that hooks exchange: inside the sandbox, removed with the command."""


def hooks_of(graph: Graph, node: str) -> tuple[str, str]:
    """The commands before and after each tool call of a node, as it says, else as the graph does."""
    rules = found.rules if (found := graph.node(node)) is not None else None
    return (rules.pre_hook, rules.post_hook) if rules is not None else (graph.rules.pre_hook, graph.rules.post_hook)


async def run_hook(
    conversation: Conversation, command: str, tool: str, place: Place, index: int, exit_code: int | None = None
) -> ToolResult:
    """Run a hook; ``index`` tells it apart from the calls of its place. It is journaled like a tool call."""
    engine = conversation.engine
    env = {"TOOL_NAME": tool, "NODE_ID": place.phase, "ATTRACTOR_STAGE_DIR": SCRATCH}
    env |= {"EXIT_CODE": str(exit_code)} if exit_code is not None else {}
    arguments: dict[str, Any] = {"command": command, "env": env}
    engine.journal.emit(
        "tool_started",
        place,
        index=index,
        call_id="",
        tool=COMMAND,
        arguments=json.dumps(arguments, ensure_ascii=False),
        native=False,
        side_effects=True,
    )
    await engine.journal.durable()
    with calling(engine, conversation.world, place):
        result = await engine.ports.tools.call(COMMAND, arguments, place, index)
    text, _ = engine.ports.redact(result.text)
    engine.journal.emit(
        "tool_finished",
        place,
        index=index,
        call_id="",
        tool=COMMAND,
        is_error=result.is_error,
        added=[],
        images=[],
        duration_s=round(result.duration_s, 6),
        sandbox=result.sandbox,
        text=text,
        **({"needs_trust": True} if result.needs_trust else {}),
    )
    return result


def command_values(result: ToolResult) -> dict[str, Any]:
    """Returns the values that a command leaves in the context."""
    value = result.value if isinstance(result.value, Mapping) else {}
    stdout = str(value.get("stdout", "" if result.is_error else result.text)).rstrip("\n")
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    code = value.get("exit_code")
    return {
        "tool.output": stdout,
        "tool_stdout": stdout,
        "tool.stderr": str(value.get("stderr", "")).rstrip("\n"),
        "tool.exit_code": code if isinstance(code, int) else int(result.is_error),
        "tool.last_line": lines[-1] if lines else "",
    }
