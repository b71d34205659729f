"""What the tokens of a context went to, for the bar above its entries."""

from __future__ import annotations

from msgspec import Struct

from workbench.context.assembly import Action, Assembly, Entry, Kind


class Share(Struct, frozen=True):
    """Tokens of one group of entries."""

    name: str
    tokens: int
    entries: int


GROUPS = ("tools", "task", "injected", "recent", "placeholders", "masked", "dropped")
"""Tool definitions and overhead · the task · what entered · the visit's own messages in full · placeholders of masked
messages · tokens saved by masking · dropped tokens. The last two were not sent; the others add up to the request.
"""


def shares(assembly: Assembly) -> dict[str, Share]:
    """Tokens and entries by group, in the order of ``GROUPS``."""
    tokens = dict.fromkeys(GROUPS, 0)
    counts = dict.fromkeys(GROUPS, 0)
    tokens["tools"] = assembly.tools_tokens + assembly.overhead_tokens
    for entry in assembly.entries:
        group = group_of(entry)
        counts[group] += 1
        if entry.sent is None:
            tokens[group] += entry.tokens_full
            continue
        tokens[group] += entry.tokens_sent
        if group == "placeholders":
            counts["masked"] += 1
            tokens["masked"] += max(entry.tokens_full - entry.tokens_sent, 0)
    return {name: Share(name, tokens[name], counts[name]) for name in GROUPS}


def group_of(entry: Entry) -> str:
    """The group of an entry, by what became of it and what it is."""
    if entry.sent is None:
        return "dropped"
    if entry.action in (Action.MASKED, Action.TRUNCATED, Action.SUMMARIZED):
        return "placeholders"
    if entry.item.kind is Kind.SYSTEM:
        return "tools"
    if entry.item.kind is Kind.TASK:
        return "task"
    return "injected" if entry.item.kind in (Kind.INPUT, Kind.INJECTED) else "recent"
