"""The attributes of a pipeline in DOT: one table for reading, checking, completing and documenting them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from workbench.language.graph import NodeKind
from workbench.language.model.base import DURATION_UNITS, FIDELITIES
from workbench.language.words import SHELL

Scope = Literal["graph", "node", "edge"]
ValueKind = Literal["text", "count", "number", "switch", "gate", "duration", "words"]


class AttributeRow(Struct, frozen=True):
    """One attribute."""

    name: str
    kind: ValueKind
    about: str
    default: str = ""
    choices: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Spellings of the specification."""
    dialects: tuple[str, ...] = ()
    """Spellings of other programs: each is told."""


_MODEL = (
    AttributeRow("llm_model", "text", "Name of the model.", dialects=("model",)),
    AttributeRow("llm_provider", "text", "Provider of the model.", dialects=("provider",)),
    AttributeRow(
        "reasoning_effort", "text", "How long the model thinks.", choices=("low", "medium", "high", "none", "minimal")
    ),
)
_TOOLS = ("allowed_tools",)
AGENT_TOOLS: Mapping[str, str] = MappingProxyType(
    {
        "Read": "read_file",
        **dict.fromkeys(("Grep", "grep"), "search_files"),
        **dict.fromkeys(("Glob", "glob", "LS", "ls"), "list_files"),
        **dict.fromkeys(("Bash", "bash", "shell"), SHELL),
    }
)
"""Tools of coding agents, which other programs list, with what does the same here."""
_ABSENT = frozenset(("write_file", "edit_file", "apply_patch"))


def agent_tools(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A list of another program's tools as those that do the same here, each once, and the names of those that nothing
    here is like. Other names may be tools of the folder, and stay."""
    here, absent = dict[str, None](), list[str]()
    for name in words(text):
        if name in AGENT_TOOLS or (name not in _ABSENT and re.fullmatch("(?!mcp__)[a-z][a-z0-9_]*", name)):
            here[AGENT_TOOLS.get(name, name)] = None
        else:
            absent.append(name)
    return tuple(here), tuple(absent)


_CHILD = (
    AttributeRow(
        "stack.child_dotfile",
        "text",
        "File of the child graph, beside this one.",
        dialects=("dot_file", "stack.child_workflow"),
    ),
    AttributeRow("stack.child_workdir", "text", "Folder that the child graph works in."),
)
_HOOKS = (
    AttributeRow("tool_hooks.pre", "text", "Command before each tool call; a failure skips the call."),
    AttributeRow("tool_hooks.post", "text", "Command after each tool call."),
)
_RETRY = (
    AttributeRow("retry_target", "text", "Node to go to after a failure, or when a goal gate is not met."),
    AttributeRow("fallback_retry_target", "text", "Node to go to where retry_target names none."),
)

GRAPH = (
    AttributeRow("goal", "text", "The goal of the run; $goal in prompts."),
    AttributeRow("label", "text", "The name for people."),
    AttributeRow("vars", "text", "Variables of prompts, with defaults: feature, env=staging; the input sets them."),
    AttributeRow("model_stylesheet", "text", "Rules that set models: selector { property: value; }"),
    AttributeRow(
        "default_max_retries", "count", "Retries of nodes that say nothing.", "0", also=("default_max_retry",)
    ),
    *_RETRY,
    AttributeRow("max_goal_gate_redirects", "count", "How often an exit sends back for goal gates; else no limit."),
    AttributeRow(
        "default_fidelity",
        "text",
        "How much of the run nodes see that say nothing.",
        "compact",
        FIDELITIES,
        also=("context_fidelity_default",),
    ),
    AttributeRow(
        "default_thread",
        "text",
        "Conversation that nodes with fidelity full continue.",
        also=("default_thread_id", "thread_id", "context_thread_default"),
    ),
    *_MODEL,
    *_CHILD,
    *_HOOKS,
    AttributeRow("workbench.tools", "words", "Tools of the model phases that name none.", dialects=_TOOLS),
    AttributeRow("workbench.strategy", "text", "Context strategy of all nodes; wins over fidelity."),
    AttributeRow("workbench.allow", "words", "Errors of the lint that count as warnings in this file."),
    AttributeRow("workbench.shapes", "words", "What shapes mean in this file: house=wait.human,tab=codergen."),
)

NODE = (
    AttributeRow("label", "text", "The name for people; the id by default."),
    AttributeRow("shape", "text", "The work of the node.", "box"),
    AttributeRow("type", "text", "The work of the node; wins over the shape.", dialects=("node_type", "handler")),
    AttributeRow(
        "prompt", "text", "The task; the label by default. $goal stands for the goal.", dialects=("llm_prompt",)
    ),
    AttributeRow("prompt_file", "text", "File beside the graph that holds the task."),
    AttributeRow("system_prompt", "text", "System message of the model before the task; variables as in prompts."),
    AttributeRow("max_retries", "count", "Further executions after one that failed."),
    AttributeRow(
        "retry_policy",
        "text",
        "How often and how soon to try again.",
        choices=("none", "standard", "aggressive", "linear", "patient"),
    ),
    AttributeRow(
        "goal_gate", "gate", "The run ends well only if this node did, or if this condition of its end holds.", "false"
    ),
    *_RETRY,
    AttributeRow("fidelity", "text", "How much of the run the node sees.", choices=FIDELITIES),
    AttributeRow("thread_id", "text", "Conversation that the node continues with fidelity full."),
    AttributeRow("class", "words", "Classes for the stylesheet, with commas."),
    AttributeRow("timeout", "duration", "Time limit."),
    *_MODEL,
    AttributeRow("workbench.tools", "words", "Tools that the model may call, with commas.", dialects=_TOOLS),
    AttributeRow("workbench.strategy", "text", "Context strategy; wins over fidelity."),
    AttributeRow(
        "workbench.max_turns", "count", "Turns at most, where it has tools.", "30", dialects=("max_agent_turns",)
    ),
    AttributeRow("auto_status", "switch", "The node writes no outcome of its own: success.", "false"),
    AttributeRow("allow_partial", "switch", "Retries used up count as a partial success.", "false"),
    AttributeRow("max_visits", "count", "Visits after which the run fails.", "100"),
    AttributeRow(
        "human.default_choice",
        "text",
        "Choice of a person who does not answer in time.",
        dialects=("human_default_choice", "default_choice"),
    ),
    AttributeRow("mode", "text", "freeform: a person answers in their own words."),
    AttributeRow(
        "join_policy", "text", "When branches count as done.", "wait_all", choices=("wait_all", "first_success")
    ),
    AttributeRow("max_parallel", "count", "Branches at once.", "4"),
    AttributeRow("tool_command", "text", "Command of the shell that the node runs.", dialects=("script",)),
    AttributeRow("manager.poll_interval", "duration", "Time between two looks at the child.", "45s"),
    AttributeRow("manager.max_cycles", "count", "Looks after which the node fails.", "1000"),
    AttributeRow("manager.stop_condition", "text", "Condition that ends the supervision."),
    AttributeRow("manager.actions", "words", "Actions of the manager: observe, steer, wait.", "observe,wait"),
    AttributeRow("stack.child_autostart", "switch", "The node starts its child.", "true"),
    *_CHILD,
    *_HOOKS,
)

EDGE = (
    AttributeRow("label", "text", "The name for people, compared with preferred_label."),
    AttributeRow("condition", "text", "When the edge is taken: outcome=success && context.key!=value."),
    AttributeRow("weight", "count", "Of several possible edges the heaviest is taken.", "0"),
    AttributeRow(
        "fidelity", "text", "How much of the run the target sees; beats the target's own.", choices=FIDELITIES
    ),
    AttributeRow("thread_id", "text", "Conversation that the target continues with fidelity full."),
    AttributeRow("loop_restart", "switch", "A new run begins at the target.", "false"),
)

TABLE: Mapping[Scope, tuple[AttributeRow, ...]] = MappingProxyType({"graph": GRAPH, "node": NODE, "edge": EDGE})
BY_NAME: Mapping[Scope, Mapping[str, AttributeRow]] = MappingProxyType(
    {
        scope: MappingProxyType({name: row for row in rows for name in (row.name, *row.also, *row.dialects)})
        for scope, rows in TABLE.items()
    }
)
# fmt: off
DRAWING = frozenset(
    (
        "rankdir", "rank", "ranksep", "nodesep", "splines", "color", "fillcolor", "fontcolor", "fontname",
        "fontsize", "style", "penwidth", "margin", "width", "height", "bgcolor", "dir", "arrowhead", "arrowtail",
        "arrowsize", "constraint", "minlen", "labelloc", "labeljust", "compound", "concentrate", "pad", "dpi",
        "size", "ratio", "tooltip", "URL", "href", "xlabel", "headlabel", "taillabel", "lhead", "ltail",
        "peripheries", "fixedsize", "group", "ordering", "overlap", "layout", "pos", "image", "comment", "newrank",
        "clusterrank", "colorscheme", "gradientangle", "decorate", "labelfontcolor", "labelfontname",
        "labelfontsize", "headport", "tailport", "samehead", "sametail", "nojustify", "sides", "skew", "distortion",
        "orientation", "regular", "id", "samplepoints", "sep", "esep", "center", "charset", "landscape", "rotate",
        "target", "edgetooltip", "labelangle", "labeldistance", "labelfloat", "labeltooltip",
    )
)
# fmt: on
"""Attributes that only draw: kept, and of no interest here."""

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")


def duration(text: str) -> float | None:
    """Seconds of ``900s``, ``15m`` or a bare number; None for what is none."""
    match = _DURATION.fullmatch(text)
    if match is not None:
        return int(match[1]) * DURATION_UNITS[match[2]]
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


def words(text: str) -> tuple[str, ...]:
    """The words of a list with commas."""
    return tuple(word for part in text.split(",") if (word := part.strip()))


def expected(row: AttributeRow, value: str) -> str:
    """Describes the value that was expected, in words; empty for a good one."""
    if row.kind == "count":
        # Other programs keep weights as decimals and write 2.0 for 2.
        return "" if re.fullmatch(r"-?\d+(\.0+)?" if row.name == "weight" else r"\d+", value) else "a whole number"
    if row.kind == "switch":
        return "" if value in ("true", "false") else "true or false"
    if row.kind == "gate":
        return "" if value in ("true", "false") or "=" in value else "true, false or a condition"
    if row.kind == "duration":
        return "" if duration(value) is not None else "a duration such as 900s, 15m or 2h"
    return ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that a misspelt one probably stands for; empty where there is none."""
    names = {name.lower(): name for name in reversed(list(known))}
    lowered = word.lower()
    if near := get_close_matches(lowered, names, 1, 0.75):
        return names[near[0]]
    # Without what stands before the dot: max_cycles is manager.max_cycles.
    if found := next((name for low, name in names.items() if word and low.endswith(f".{lowered}")), ""):
        return found
    # Without what stands behind the colon: summary is summary:low.
    heads = {low.partition(":")[0]: name for low, name in names.items() if ":" in low}
    return next((heads[head] for head in get_close_matches(lowered, heads, 1, 0.75)), "")


SHAPES: Mapping[str, str] = MappingProxyType(
    {
        "Mdiamond": "start",
        "circle": "start",
        "Msquare": "exit",
        "doublecircle": "exit",
        "box": "codergen",
        "hexagon": "wait.human",
        "diamond": "conditional",
        "component": "parallel",
        "tripleoctagon": "parallel.fan_in",
        "parallelogram": "tool",
        "house": "stack.manager_loop",
        "tab": "prompt",
        "folder": "subgraph",
    }
)
"""Shape to type. ``prompt`` (one model call, no tools) and ``subgraph`` (a child graph, once) are of dialects."""

TYPES: Mapping[str, NodeKind] = MappingProxyType(
    {
        "start": "start",
        "exit": "exit",
        "codergen": "llm",
        "wait.human": "human",
        "conditional": "route",
        "parallel": "parallel",
        "parallel.fan_in": "join",
        "tool": "tool",
        "stack.manager_loop": "subgraph",
        "prompt": "llm",
        "subgraph": "subgraph",
    }
)
STARTS = ("start", "Start")
EXITS = ("exit", "end", "Exit", "End")


def type_of(id: str, type: str, shape: str, shapes: Mapping[str, str]) -> tuple[str, str]:
    """The type of a node, and what was not known about it (``type 'x'``, ``shape 'y'``); the words written decide
    first, then the id. ``shapes`` are those of the file over the usual ones."""
    unknown = ""
    if type:
        if type in TYPES:
            return type, ""
        unknown = f"type '{type}'"
    if shape:
        if shape in shapes:
            return shapes[shape], unknown
        unknown = unknown or f"shape '{shape}'"
    if id in STARTS and shape in ("", "box"):
        return "start", unknown
    if id in EXITS and shape in ("", "box"):
        return "exit", unknown
    return "codergen", unknown
