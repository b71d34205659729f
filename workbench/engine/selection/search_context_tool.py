"""The tool search_context: this run's own messages, found by the words of a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.context.assembly import Item, Kind
from workbench.context.cards import Card, card_of, has_card
from workbench.context.scoring import Ranking
from workbench.engine.contracts import ToolResult
from workbench.engine.conversation import Conversation
from workbench.engine.engine_tools import SEARCH_CONTEXT, BadArguments, asked

SHOWN_CHARS = 1500
"""Of one message in a result."""


def search_context(conversation: Conversation, arguments: Mapping[str, Any]) -> ToolResult:
    """The messages of this run that share most with the query: those of finished visits and of the running one."""
    try:
        query, limit = asked(arguments)
    except BadArguments as fault:
        return ToolResult(f"ValueError: {fault}", is_error=True)
    found = _searchable(conversation)
    texts = [item.message.text for item, _ in found]
    best = Ranking(texts).best(query, limit)
    if not best:
        return ToolResult(f"None of {len(found):,} messages shares a word with '{query}'.")
    parts = [f"{len(best):,} of {len(found):,} messages, best first:"]
    for number, (index, _) in enumerate(best, 1):
        item, name = found[index]
        card = card_of(item, conversation.engine.ports.counter.message(item.message, conversation.model)[0], name)
        parts.append(_shown(number, card, item))
    return ToolResult("\n\n".join(parts))


def _searchable(conversation: Conversation) -> list[tuple[Item, str]]:
    """Messages with the names they were called out by: not the answer that asks, and not what such a search found."""
    found: list[tuple[Item, str]] = []
    for record in conversation.world.records:
        found += [(item, record.callout_names.get(item.message.body_hash, "")) for item in record.items]
    asking = max((n for n, item in enumerate(conversation.items) if item.kind is Kind.ANSWER), default=0)
    found += [(item, "") for item in conversation.items[:asking]]
    return [(item, name) for item, name in found if has_card(item) and item.tool != SEARCH_CONTEXT]


def _shown(number: int, card: Card, item: Item) -> str:
    marked = f' · called out as "{card.callout}"' if card.callout else ""
    tool = f" · {item.tool}" if item.tool else ""
    text = item.message.text.strip()
    if len(text) > SHOWN_CHARS:
        text = f"{text[:SHOWN_CHARS]} … ({len(text):,} characters in all)"
    return f"{number}. {card.label} · {card.role}{tool} · {card.tokens:,} tokens{marked}\n{text}"
