"""The tools that change the run itself, ask a person or look into the run, so that the engine runs them: set_state,
route_to, ask_human, ask_human_custom, spawn_cascade, search_context; and cascades as tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.engine.contracts import Parameter, ToolSpec
from workbench.engine.definition import Definition
from workbench.language.model.cascade import RAG_TOOLS
from workbench.language.words import ASK_HUMAN, ROUTE_TO, SET_STATE

ASK_CUSTOM = "ask_human_custom"
SPAWN = "spawn_cascade"
SEARCH_CONTEXT = "search_context"
REPORT_OUTCOME = "report_outcome"
OBSERVE = "manager:observe"
"""How a manager looks at its child: a tool, so that a recording answers it; no model is offered it."""


def own_spec(name: str, description: str, parameters: tuple[Parameter, ...], types: Mapping[str, object]) -> ToolSpec:
    """A tool of the engine itself, which changes nothing outside. ``types`` are the JSON schemas of its parameters."""
    required = [parameter.name for parameter in parameters if parameter.required]
    schema = {"type": "object", "properties": types, "required": required, "additionalProperties": False}
    return ToolSpec(name, description, parameters, schema, side_effects=False)


ENGINE_SPECS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        own_spec(
            SET_STATE,
            "Remember a value under a key; later steps can read it as state.",
            (Parameter("key", "str"), Parameter("value", "any")),
            {"key": {"type": "string"}, "value": {"description": "Any JSON value."}},
        ),
        own_spec(
            ROUTE_TO,
            "Choose which step comes next.",
            (Parameter("target", "str"),),
            {"target": {"type": "string", "description": "Name of the next step."}},
        ),
        own_spec(
            REPORT_OUTCOME,
            "State how this stage ended, once its work is done. What follows is chosen by it.",
            (
                Parameter("outcome", "str"),
                Parameter("preferred_label", "str", required=False, default=""),
                Parameter("suggested_next_ids", "list", required=False, default=[]),
                Parameter("context_updates", "dict", required=False, default={}),
                Parameter("notes", "str", required=False, default=""),
                Parameter("failure_reason", "str", required=False, default=""),
            ),
            {
                "outcome": {
                    "type": "string",
                    "description": "success, partial_success, retry, fail, or the word that this stage asks for.",
                },
                "preferred_label": {"type": "string", "description": "Label of the way on that you prefer."},
                "suggested_next_ids": {"type": "array", "items": {"type": "string"}},
                "context_updates": {"type": "object", "description": "Values that later stages can read."},
                "notes": {"type": "string", "description": "What later stages should know of this one."},
                "failure_reason": {"type": "string", "description": "Why it failed."},
            },
        ),
        own_spec(
            SPAWN,
            "Start another cascade beside this run; its session id is the result, its end is not awaited.",
            (Parameter("cascade_ref", "str"), Parameter("input_data", "dict", required=False, default={})),
            {
                "cascade_ref": {"type": "string", "description": "Path of the cascade."},
                "input_data": {"type": "object"},
            },
        ),
        own_spec(
            SEARCH_CONTEXT,
            "Find messages of this run by the words of a query, best first.",
            (Parameter("query", "str"), Parameter("limit", "int", required=False, default=5)),
            {
                "query": {"type": "string", "description": "Words that the messages should share."},
                "limit": {"type": "integer", "description": "How many messages, at most 50."},
            },
        ),
        own_spec(
            ASK_HUMAN,
            "Ask the person who watches this run, and wait for the answer.",
            (
                Parameter("question", "str"),
                Parameter("context", "str", required=False, default=""),
                Parameter("ui_hint", "str", required=False, default=""),
            ),
            {
                "question": {"type": "string"},
                "context": {"type": "string", "description": "What the person should know to answer."},
                "ui_hint": {
                    "type": "string",
                    "description": "confirmation, rating, number, date, or the choices separated by |",
                },
            },
        ),
        own_spec(
            ASK_CUSTOM,
            "Ask the person who watches this run by a form, with pictures, tables or options to compare.",
            (
                Parameter("question", "str"),
                Parameter("context", "str", required=False, default=""),
                Parameter("images", "list", required=False, default=[]),
                Parameter("data", "dict", required=False, default={}),
                Parameter("options", "list", required=False, default=[]),
                Parameter("ui_hint", "str", required=False, default=""),
                Parameter("layout_hint", "str", required=False, default=""),
                Parameter("auto_detect", "bool", required=False, default=True),
            ),
            {
                "question": {"type": "string"},
                "context": {"type": "string", "description": "What the person should know to answer."},
                "images": {"type": "array", "items": {"type": "string"}, "description": "Paths of images to show."},
                "data": {"description": "A table: columns and rows; or any other JSON to look at."},
                "options": {
                    "type": "array",
                    "description": "Choices: id, label, description, pros, cons.",
                },
                "ui_hint": {"type": "string", "description": "simple, image_review, data_review, comparison, rating."},
                "layout_hint": {"type": "string", "description": "vertical, two-column, grid, sidebar-left …"},
                "auto_detect": {"type": "boolean", "description": "Show the latest images and table of this step."},
            },
        ),
    )
}


def cascade_spec(definition: Definition) -> ToolSpec:
    """A cascade as a tool: its inputs are the parameters, its output is the result."""
    cascade = definition.cascade
    parameters = tuple(Parameter(name, "str", required=False, default="") for name in cascade.inputs_schema)
    types: dict[str, object] = {name: {"description": text} for name, text in cascade.inputs_schema.items()}
    return own_spec(cascade.cascade_id, (cascade.description or "").strip() or cascade.cascade_id, parameters, types)


def engine_spec(name: str) -> ToolSpec | None:
    """The spec of an engine tool; None for all other names."""
    return ENGINE_SPECS.get(name)


RAG_SEARCH, RAG_READ, RAG_LIST = RAG_TOOLS
DEFAULT_LIMIT = 5
MAX_LIMIT = 50


class BadArguments(ValueError):
    """Arguments of a search that make no sense; the message is for the model."""


def asked(arguments: Mapping[str, Any], limit: str = "limit") -> tuple[str, int]:
    """The query, and how many results are wanted at most. Raises BadArguments."""
    unknown = sorted(set(arguments) - {"query", limit})
    if unknown:
        raise BadArguments(f"there is no parameter '{unknown[0]}'")
    query, most = arguments.get("query"), arguments.get(limit, DEFAULT_LIMIT)
    if not isinstance(query, str) or not query.strip():
        raise BadArguments("'query' must be a text that is not empty")
    if isinstance(most, str) and most.isascii() and most.isdigit():
        most = int(most)
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MAX_LIMIT:
        raise BadArguments(f"'{limit}' must be a whole number from 1 to {MAX_LIMIT}")
    return query, most


RAG_SPECS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        own_spec(
            RAG_SEARCH,
            "Find passages of the documents that suit a query, best first, with file and lines.",
            (Parameter("query", "str"), Parameter("k", "int", required=False, default=5)),
            {
                "query": {"type": "string", "description": "Words or a question."},
                "k": {"type": "integer", "description": "How many passages, at most 50."},
            },
        ),
        own_spec(
            RAG_READ,
            "Read one passage that a search named, and learn what stands before and after it.",
            (Parameter("id", "str"),),
            {"id": {"type": "string", "description": "As rag_search gives it: file#number."}},
        ),
        own_spec(RAG_LIST, "List the documents that can be searched, and those that were left out.", (), {}),
    )
}
"""Offered to a phase with a ``rag`` block."""


def bank_spec(name: str) -> ToolSpec:
    """The tool that searches a bank; it has the bank's name."""
    return own_spec(
        name,
        f"Search the memory '{name}': what earlier runs said, best first.",
        (Parameter("query", "str"), Parameter("limit", "int", required=False, default=5)),
        {
            "query": {"type": "string", "description": "Words that the messages should share."},
            "limit": {"type": "integer", "description": "How many messages, at most 50."},
        },
    )
