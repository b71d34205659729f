"""Asks a person. Question and answer are journaled, so that a replay asks no one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from workbench.context.place import Place
from workbench.engine.contracts import NoPersonAttached, Question
from workbench.engine.forms.values import AnswerRefused, read_answer
from workbench.engine.gate import RunStopped
from workbench.engine.journal.journal_writer import Clock
from workbench.engine.services import Services

T = TypeVar("T")

MOST_REFUSED = 3
"""Answers that do not fit before the run stops: a program would give its answer again for ever. Those of before a
resume do not count, so that the run can be resumed with one that fits."""


class TimedOut(Exception):
    """No answer came in time."""


async def ask_person(
    services: Services,
    place: Place,
    question: Question,
    index: int,
    *,
    raises: bool = False,
    timeout: float | None = None,
) -> str:
    """The answer, journaled and durable before anything is made of it. One that does not fit the question's form is
    journaled with the reason, and the question stays.

    Raises RunStopped (NoPersonAttached, if ``raises``) when no person is attached or no answer fits; TimedOut after
    ``timeout`` seconds.
    """
    journal, refused, tries = services.journal, "", 0
    journal.emit("human_asked", place, **_asked(question, index, timeout))
    journal.sync()
    while tries < MOST_REFUSED:
        try:
            answer = await within(services.ports.clock, services.ports.human.ask(question, place, index), timeout)
        except NoPersonAttached:
            if raises:
                journal.emit("human_answered", place, index=index, answer=None, nobody=True)
                raise
            if refused:  # Answers were prepared, and the last of them did not fit.
                break
            raise RunStopped(f"no one is there to answer: {question.question}") from None
        except TimeoutError:
            if timeout is None:
                raise RunStopped(f"no person answers, and the question has no time-out: {question.question}") from None
            journal.emit("human_answered", place, index=index, answer=None, timed_out=True)
            raise TimedOut from None
        answer, _ = services.ports.redact(answer)
        refused = _refused(question, answer)
        journal.emit("human_answered", place, index=index, answer=answer, **({"refused": refused} if refused else {}))
        tries += not journal.repeated
        journal.sync()
        if not refused:
            return answer
    raise RunStopped(f"no answer fits the question '{question.question}': {refused}")


def _asked(question: Question, index: int, timeout: float | None) -> dict[str, Any]:
    """The question in the journal; what does not apply to it is left out."""
    body: dict[str, Any] = {
        "index": index,
        "question": question.question,
        "context": question.context,
        "options": list(question.options),
        "type": question.kind,
    }
    if question.candidates:
        body |= {"candidates": list(question.candidates), "mode": question.mode}
        body |= {"judged": dict(question.judged)} if question.judged else {}
        body |= {"shown": dict(question.shown)} if question.shown else {}
    if question.form is not None:
        body |= {"form": question.form.to_json(), "made": dict(question.made)}
    if question.to:
        body["to"] = question.to
    if timeout is not None:
        body["timeout"] = timeout
    return body


def _refused(question: Question, answer: str) -> str:
    """Returns why an answer does not fit; empty when it does."""
    if question.form is None:
        return ""

    try:
        read_answer(question.form, answer)
    except AnswerRefused as fault:
        return str(fault)
    return ""


async def within(clock: Clock, work: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """The result of ``work``, if it comes before the clock has slept; None waits for ever. Raises TimeoutError, and
    what ``work`` raises. The loser of the two is cancelled.
    """
    if seconds is None:
        return await work
    # The work comes first: where a clock's sleep takes no time, what is known at once still counts.
    wanted = asyncio.ensure_future(work)
    limit = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({wanted, limit}, return_when=asyncio.FIRST_COMPLETED)
        if wanted.done():
            return wanted.result()
        raise TimeoutError
    finally:
        for task in (wanted, limit):
            task.cancel()
        await asyncio.gather(wanted, limit, return_exceptions=True)
