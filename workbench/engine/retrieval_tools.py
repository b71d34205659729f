"""The tools that search a folder (``rag``) or a bank (``memory``), as a model sees them, and what a search may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.engine.engine_tools import own_spec
from workbench.engine.ports import Parameter, ToolSpec

RAG_SEARCH = "rag_search"
RAG_READ = "rag_read_chunk"
RAG_LIST = "rag_list_sources"
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
