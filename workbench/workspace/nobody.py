"""The Human port where no one can be asked."""

from __future__ import annotations

from workbench.context.place import Place
from workbench.engine.ports import NobodyToAsk, Question


class Nobody:
    """Headless without a terminal: the run stops, resumable."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        raise NobodyToAsk(question.question)
