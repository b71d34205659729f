"""The tool search_context: this run's own messages, found by the words of a query (seed 001, phase 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.context.assembly import Item, Kind
from workbench.context.cards import Card, card_of, has_card
from workbench.context.ranking import Ranking
from workbench.engine.engine_tools import SEARCH_CONTEXT
from workbench.engine.ports import ToolResult

if TYPE_CHECKING:
    from workbench.engine.execution import Execution

DEFAULT_LIMIT = 5
MAX_LIMIT = 50
SHOWN_CHARS = 1500
"""Of one message in a result."""


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
    if isinstance(most, str) and most.isdigit():
        most = int(most)
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MAX_LIMIT:
        raise BadArguments(f"'{limit}' must be a whole number from 1 to {MAX_LIMIT}")
    return query, most


def search_context(execution: Execution, arguments: Mapping[str, Any]) -> ToolResult:
    """The messages of this run that share most with the query: those of finished visits and of the running one."""
    try:
        query, limit = asked(arguments)
    except BadArguments as fault:
        return ToolResult(f"ValueError: {fault}", is_error=True)
    found = _searchable(execution)
    texts = [item.message.text for item, _ in found]
    best = Ranking(texts).best(query, limit)
    if not best:
        return ToolResult(f"None of {len(found):,} messages shares a word with '{query}'.")
    parts = [f"{len(best):,} of {len(found):,} messages, best first:"]
    for number, (index, _) in enumerate(best, 1):
        item, name = found[index]
        card = card_of(item, execution.engine.ports.counter.message(item.message, execution.model)[0], name)
        parts.append(_shown(number, card, item))
    return ToolResult("\n\n".join(parts))


def _searchable(execution: Execution) -> list[tuple[Item, str]]:
    """Messages with the names they were called out by: not the answer that asks, and not what such a search found."""
    found: list[tuple[Item, str]] = []
    for record in execution.world.records:
        found += [(item, record.callout_names.get(item.message.body_hash, "")) for item in record.items]
    asking = max((n for n, item in enumerate(execution.items) if item.kind is Kind.ANSWER), default=0)
    found += [(item, "") for item in execution.items[:asking]]
    return [(item, name) for item, name in found if has_card(item) and item.tool != SEARCH_CONTEXT]


def _shown(number: int, card: Card, item: Item) -> str:
    marked = f' · called out as "{card.callout}"' if card.callout else ""
    tool = f" · {item.tool}" if item.tool else ""
    text = item.message.text.strip()
    if len(text) > SHOWN_CHARS:
        text = f"{text[:SHOWN_CHARS]} … ({len(text):,} characters in all)"
    return f"{number}. {card.label} · {card.role}{tool} · {card.tokens:,} tokens{marked}\n{text}"
