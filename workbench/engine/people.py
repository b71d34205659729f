"""Asking a person: journaled before and after, so that a replay needs nobody."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workbench.context.place import Place
from workbench.engine.gate import RunStopped
from workbench.engine.ports import NobodyToAsk, Question

if TYPE_CHECKING:
    from workbench.engine.run import Run


class TimedOut(Exception):
    """Nobody answered in time."""


async def ask_person(
    run: Run, place: Place, question: Question, index: int, *, raises: bool = False, timeout: float | None = None
) -> str:
    """The answer, journaled and durable before anything is made of it.

    Raises RunStopped (NobodyToAsk, if ``raises``) when nobody is there; TimedOut after ``timeout`` seconds.
    """
    scribe = run.scribe
    among = {"candidates": list(question.candidates), "mode": question.mode} if question.candidates else {}
    scribe.emit(
        "human_asked",
        place,
        index=index,
        question=question.question,
        context=question.context,
        options=list(question.options),
        type=question.kind,
        **among,
    )
    scribe.sync()
    try:
        answer = await asyncio.wait_for(run.ports.human.ask(question, place, index), timeout)
    except NobodyToAsk:
        if raises:
            raise
        raise RunStopped(f"nobody is there to answer: {question.question}") from None
    except TimeoutError:
        scribe.emit("human_answered", place, index=index, answer=None, timed_out=True)
        raise TimedOut from None
    answer, _ = run.ports.redact(answer)
    scribe.emit("human_answered", place, index=index, answer=answer)
    scribe.sync()
    return answer
