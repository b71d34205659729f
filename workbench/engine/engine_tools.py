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


_JSON_TYPES = {"str": "string", "int": "integer", "bool": "boolean", "list": "array", "dict": "object"}
_REQUIRED = object()


class OwnParameter:
    """A parameter of an engine's tool: in one place what a model reads as text, and its JSON schema."""

    def __init__(
        self,
        name: str,
        type: str,
        description: str | None = None,
        default: object = _REQUIRED,
        schema: Mapping[str, object] | None = None,
    ) -> None:
        """``schema``: the JSON schema without the description, where ``type`` does not give it."""
        required = default is _REQUIRED
        self.told = Parameter(name, type, required, None if required else default)
        kind = {"type": _JSON_TYPES[type]} if schema is None else schema
        self.schema = {**kind, "description": description} if description is not None else {**kind}


def own_spec(name: str, description: str, *parameters: OwnParameter) -> ToolSpec:
    """A tool of the engine itself, which changes nothing outside."""
    told = tuple(one.told for one in parameters)
    schema = {
        "type": "object",
        "properties": {one.told.name: one.schema for one in parameters},
        "required": [one.name for one in told if one.required],
        "additionalProperties": False,
    }
    return ToolSpec(name, description, told, schema, side_effects=False)


DEFAULT_LIMIT = 5
MAX_LIMIT = 50
_ANY: Mapping[str, object] = {}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_CONTEXT = OwnParameter("context", "str", "What the person should know to answer.", "")
_SEARCHED = (
    OwnParameter("query", "str", "Words that the messages should share."),
    OwnParameter("limit", "int", f"How many messages, at most {MAX_LIMIT}.", DEFAULT_LIMIT),
)
"""Parameters of a search through messages."""

ENGINE_SPECS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        own_spec(
            SET_STATE,
            "Remember a value under a key; later steps can read it as state.",
            OwnParameter("key", "str"),
            OwnParameter("value", "any", "Any JSON value.", schema=_ANY),
        ),
        own_spec(ROUTE_TO, "Choose which step comes next.", OwnParameter("target", "str", "Name of the next step.")),
        own_spec(
            REPORT_OUTCOME,
            "State how this stage ended, once its work is done. What follows is chosen by it.",
            OwnParameter(
                "outcome", "str", "success, partial_success, retry, fail, or the word that this stage asks for."
            ),
            OwnParameter("preferred_label", "str", "Label of the way on that you prefer.", ""),
            OwnParameter("suggested_next_ids", "list", default=[], schema=_TEXTS),
            OwnParameter("context_updates", "dict", "Values that later stages can read.", {}),
            OwnParameter("notes", "str", "What later stages should know of this one.", ""),
            OwnParameter("failure_reason", "str", "Why it failed.", ""),
        ),
        own_spec(
            SPAWN,
            "Start another cascade beside this run; its session id is the result, its end is not awaited.",
            OwnParameter("cascade_ref", "str", "Path of the cascade."),
            OwnParameter("input_data", "dict", default={}),
        ),
        own_spec(SEARCH_CONTEXT, "Find messages of this run by the words of a query, best first.", *_SEARCHED),
        own_spec(
            ASK_HUMAN,
            "Ask the person who watches this run, and wait for the answer.",
            OwnParameter("question", "str"),
            _CONTEXT,
            OwnParameter("ui_hint", "str", "confirmation, rating, number, date, or the choices separated by |", ""),
        ),
        own_spec(
            ASK_CUSTOM,
            "Ask the person who watches this run by a form, with pictures, tables or options to compare.",
            OwnParameter("question", "str"),
            _CONTEXT,
            OwnParameter("images", "list", "Paths of images to show.", [], _TEXTS),
            OwnParameter("data", "dict", "A table: columns and rows; or any other JSON to look at.", {}, _ANY),
            OwnParameter("options", "list", "Choices: id, label, description, pros, cons.", []),
            OwnParameter("ui_hint", "str", "simple, image_review, data_review, comparison, rating.", ""),
            OwnParameter("layout_hint", "str", "vertical, two-column, grid, sidebar-left …", ""),
            OwnParameter("auto_detect", "bool", "Show the latest images and table of this step.", True),
        ),
    )
}


def cascade_spec(definition: Definition) -> ToolSpec:
    """A cascade as a tool: its inputs are the parameters, its output is the result."""
    cascade = definition.cascade
    about = (cascade.description or "").strip() or cascade.cascade_id
    parameters = (OwnParameter(name, "str", text, "", _ANY) for name, text in cascade.inputs_schema.items())
    return own_spec(cascade.cascade_id, about, *parameters)


def engine_spec(name: str) -> ToolSpec | None:
    """The spec of an engine tool; None for all other names."""
    return ENGINE_SPECS.get(name)


RAG_SEARCH, RAG_READ, RAG_LIST = RAG_TOOLS


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
            OwnParameter("query", "str", "Words or a question."),
            OwnParameter("k", "int", f"How many passages, at most {MAX_LIMIT}.", DEFAULT_LIMIT),
        ),
        own_spec(
            RAG_READ,
            "Read one passage that a search named, and learn what stands before and after it.",
            OwnParameter("id", "str", "As rag_search gives it: file#number."),
        ),
        own_spec(RAG_LIST, "List the documents that can be searched, and those that were left out."),
    )
}
"""Offered to a phase with a ``rag`` block."""


def bank_spec(name: str) -> ToolSpec:
    """The tool that searches a bank; it has the bank's name."""
    return own_spec(name, f"Search the memory '{name}': what earlier runs said, best first.", *_SEARCHED)
