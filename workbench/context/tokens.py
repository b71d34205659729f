"""How many tokens a message is. The protocol; what reads encoding files is made in ``models/`` and handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from workbench.context.assembly import Grade
from workbench.context.message import Message


class Counter(Protocol):
    """Counts tokens as the provider of a model would. Caches by encoding and message."""

    def message(self, message: Message, model: str) -> tuple[int, Grade]:
        """Tokens of one message with its overhead (3 + role + content for OpenAI encodings)."""
        ...

    def tools(self, tools: Sequence[Mapping[str, Any]], model: str) -> tuple[int, Grade]:
        """Tokens of the tool definitions as the provider renders them; 0 for none."""
        ...

    def overhead(self, model: str) -> int:
        """Tokens per request beside its messages and tools."""
        ...

    def text(self, text: str, model: str) -> int:
        """Tokens of a bare text, for budgets."""
        ...
