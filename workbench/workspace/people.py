"""The Human port: nobody, prepared answers, a terminal, or the app."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from workbench.context.place import Place
from workbench.engine.ports import Human, NobodyToAsk, Question
from workbench.language.clean import clean


class Nobody:
    """Headless without a terminal: the run stops, resumable."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        raise NobodyToAsk(question.question)


class Prepared:
    """Answers given beforehand: by phase name, or in order; then whoever stands behind."""

    def __init__(self, answers: Mapping[str, Any] | Sequence[Any], then: Human) -> None:
        self._by_phase = dict(answers) if isinstance(answers, Mapping) else {}
        self._in_order = [] if isinstance(answers, Mapping) else list(answers)
        self._then = then

    async def ask(self, question: Question, place: Place, index: int) -> str:
        if place.phase in self._by_phase:
            given = self._by_phase[place.phase]
            if isinstance(given, list):
                if not given:
                    return await self._then.ask(question, place, index)
                return str(given.pop(0))
            return str(given)
        if self._in_order:
            return str(self._in_order.pop(0))
        return await self._then.ask(question, place, index)


class Terminal:
    """Asks on the terminal, on stderr, because stdout is data. A question that is cancelled leaves nothing waiting."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        lines = [clean(text) for text in (question.context, question.question) if text]
        lines += [f"  {number}. {clean(option)}" for number, option in enumerate(question.options, 1)]
        print(f"\n{place.phase} asks:", *lines, sep="\n", file=sys.stderr)
        print("> ", end="", file=sys.stderr, flush=True)
        await _readable(sys.stdin.fileno())
        line = sys.stdin.readline()
        if not line:
            raise NobodyToAsk(question.question)
        return chosen(question, line.strip())


async def _readable(descriptor: int) -> None:
    """Wait until a line was typed. Not in a thread: one that reads a terminal cannot be stopped."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def typed() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, typed)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def chosen(question: Question, text: str) -> str:
    """The option that a number stands for; else the text as it is."""
    if text.isdigit() and 1 <= int(text) <= len(question.options):
        return question.options[int(text) - 1]
    return text


@dataclass
class AppHuman:
    """Asks through the app: the answer comes from another thread."""

    _open: dict[tuple[Place, int], Future[str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    async def ask(self, question: Question, place: Place, index: int) -> str:
        try:
            return await asyncio.wrap_future(self._future(place, index))
        finally:
            with self._lock:
                self._open.pop((place, index), None)

    def answer(self, place: Place, index: int, text: str) -> bool:
        """Give the answer; False when it was given already. From any thread.

        The question is journaled, and so shown, a moment before the engine waits for it: an answer may come first.
        """
        future = self._future(place, index)
        if future.done():
            return False
        future.set_result(text)
        return True

    def _future(self, place: Place, index: int) -> Future[str]:
        with self._lock:
            return self._open.setdefault((place, index), Future())
