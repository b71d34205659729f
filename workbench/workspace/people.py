"""The Human port without the app: prepared answers, or a terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from workbench.context.place import Place
from workbench.engine.contracts import Feedback, Human, NoPersonAttached, Question
from workbench.engine.forms.plain import asked_line, steps
from workbench.engine.forms.spec import (
    CardGrid,
    Comparison,
    Confirmation,
    FieldSection,
    Form,
    MultiSelect,
    Select,
    fields_of,
)
from workbench.engine.forms.values import AnswerRefused, check_value, check_values
from workbench.json_text import as_text
from workbench.language.clean import clean
from workbench.language.nearest import nearest

# The Human port where no one can be asked.


class NoHuman:
    """Headless without a terminal: the run stops, resumable."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        raise NoPersonAttached(question.question)


class FirstChoice:
    """Takes the first choice of every question that has choices, and passes the others on."""

    def __init__(self, then: Human) -> None:
        self._then = then

    async def ask(self, question: Question, place: Place, index: int) -> str:
        if question.options:
            return question.options[0]
        if question.kind == "confirmation":
            return "yes"
        if question.form is None:
            return APPROVED
        values = _first_choices(question.form)
        return as_text({"values": values}) if values else await self._then.ask(question, place, index)


def _first_choices(form: Form) -> dict[str, Any]:
    """Returns the first choice of each question of a form, by field; empty if one of them needs more than a choice, or
    if there is none to make."""
    values: dict[str, Any] = {}
    for asked in fields_of(form):
        if isinstance(asked, Select | CardGrid | Comparison):
            values[asked.id] = asked.options[0].id
        elif not asked.required:
            continue
        elif isinstance(asked, MultiSelect):
            values[asked.id] = [asked.options[0].id]
        elif isinstance(asked, Confirmation):
            values[asked.id] = True
        else:
            return {}
    return values


def example_answer(question: Mapping[str, Any]) -> Any:
    """Returns what a file of answers could say to a ``human_asked`` event's question: its first choices, else a word in
    the place of the answer."""
    if "form" not in question:
        return str(question["options"][0]) if question.get("options") else "ANSWER"
    form = Form.of(question["form"])
    values = _first_choices(form)
    if len(fields_of(form)) == 1 and all(isinstance(value, str) for value in values.values()):
        return next(iter(values.values()), "ANSWER")
    return {"values": values} if values else "ANSWER"


APPROVED = "approved"
"""The answer of ``FirstChoice`` to a question that asks for a text."""


# The person at the app, who answers questions and speaks to running phases: from any thread, heard on the engine's
# loop.


@dataclass(slots=True)
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


class AppAudibles:
    """Messages wait until the run reads them. While a hand is raised, the run waits for the next message."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._said: list[Feedback] = []
        self._raised = False
        self._waiting: Future[None] | None = None

    def raise_hand(self) -> None:
        """Something is going to be said: the run waits for it at its next call."""
        with self._lock:
            self._raised = True

    def lower_hand(self) -> None:
        """No message follows after all."""
        self._lower()

    def say(self, text: str, *, redo: bool = False) -> None:
        """Say it: before the next call, or to take the running turn again."""
        with self._lock:
            self._said.append(Feedback(text, redo))
        self._lower()

    @property
    def unheard(self) -> tuple[Feedback, ...]:
        """Messages that the run has not read yet."""
        with self._lock:
            return tuple(self._said)

    def forget(self) -> tuple[Feedback, ...]:
        """Take back unread messages: a new run begins, or this one is over."""
        with self._lock:
            said, self._said, self._raised = tuple(self._said), [], False
        return said

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        with self._lock:
            found = self._take(redo)
            if found is not None or not self._raised:
                return found
            self._waiting = waiting = Future[None]()
        try:
            await asyncio.wrap_future(waiting)
        finally:
            with self._lock:
                # Who is not waited for any longer is not waited for at the next call either.
                self._waiting, self._raised = None, False
        with self._lock:
            return self._take(redo)

    def _take(self, redo: bool) -> Feedback | None:
        for position, feedback in enumerate(self._said):
            if feedback.redo == redo:
                return self._said.pop(position)
        return None

    def _lower(self) -> None:
        with self._lock:
            self._raised = False
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_result(None)


AUDIBLES = "audibles"
"""The key of an answers file that scripts what a person says while a phase runs."""


class PreparedAnswers:
    """Answers given beforehand: by phase (``phase``, or ``phase#2`` for its second visit), or in order; other questions
    are passed on, and so is one that the same answer did not fit. A list holds one answer for each of several
    questions; null means that no answer comes in time.
    """

    def __init__(self, answers: Mapping[str, Any] | Sequence[Any], then: Human) -> None:
        self._by_phase = dict(answers) if isinstance(answers, Mapping) else {}
        self._feedback = _scripted(self._by_phase.pop(AUDIBLES, [])) if isinstance(answers, Mapping) else []
        self._in_order = [] if isinstance(answers, Mapping) else list(answers)
        self._then = then
        self._used: set[str] = set()
        self._answered: set[tuple[Place, int]] = set()
        """The questions that got the one answer of their phase."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        for key in (f"{place.phase}#{place.visit}", place.phase):
            if key in self._by_phase:
                self._used.add(key)
                given = self._by_phase[key]
                if isinstance(given, list) and given:
                    return _said(given.pop(0))
                if not isinstance(given, list) and (place, index) not in self._answered:
                    self._answered.add((place, index))
                    return _said(given)
                return await self._then.ask(question, place, index)
        if self._in_order:
            return _said(self._in_order.pop(0))
        return await self._then.ask(question, place, index)

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        """The next feedback that is meant for this turn."""
        for position, (phase, turn, feedback) in enumerate(self._feedback):
            if phase == place.phase and turn in (0, place.turn) and feedback.redo == redo and not place.branch:
                del self._feedback[position]
                return feedback
        return None

    def remarks(self, phases: Sequence[str]) -> Sequence[tuple[str, str]]:
        """Returns the parts of the answers that belong to none of these phases."""
        named = [(key, key.partition("#")[0]) for key in self._by_phase]
        named += [(f"{AUDIBLES}: {phase}", phase) for phase, _, _ in self._feedback]
        return [("answers", _unknown(key, phase, phases)) for key, phase in named if phase not in phases]

    def unused(self) -> list[str]:
        """The answers that no question asked for, in words."""
        left = [
            key for key, given in self._by_phase.items() if key not in self._used or (isinstance(given, list) and given)
        ]
        left += [f"answer {number} of those left" for number in range(1, len(self._in_order) + 1)]
        return left + [f"{AUDIBLES}: {phase}" for phase, _, _ in self._feedback]


class BadAnswers(ValueError):
    """An invalid file of answers."""


def _unknown(key: str, phase: str, phases: Sequence[str]) -> str:
    guess = nearest(phase, tuple(phases))
    meant = f" (did you mean '{guess}'?)" if guess else ""
    return f"answers: '{key}' is not a phase of this cascade{meant}; only a cascade that it starts could ask for it"


def _scripted(given: Any) -> list[tuple[str, int, Feedback]]:
    """Feedback by phase and turn; turn 0 is any. Raises BadAnswers."""
    if not isinstance(given, list):
        raise BadAnswers(f"'{AUDIBLES}' must be a list of {{phase, turn, text, redo}}")
    found = []
    for number, body in enumerate(given, 1):
        if not isinstance(body, Mapping) or not isinstance(body.get("phase"), str) or not body.get("text"):
            raise BadAnswers(f"'{AUDIBLES}', entry {number}: needs 'phase' and 'text'")
        turn = body.get("turn", 0)
        if not isinstance(turn, int) or isinstance(turn, bool) or turn < 0:
            raise BadAnswers(f"'{AUDIBLES}', entry {number}: 'turn' must be a number from 1")
        found.append((body["phase"], turn, Feedback(str(body["text"]), body.get("redo") is True)))
    return found


def _said(given: Any) -> str:
    """A prepared answer as a person would have given it."""
    if given is None:
        raise TimeoutError
    if isinstance(given, bool):
        return "yes" if given else "no"
    return as_text(given)


class Terminal:
    """Asks on the terminal, on stderr, because stdout is data. A question that is cancelled leaves nothing waiting."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        about = f"{place.phase} asks" + (f" {question.to}" if question.to else "")
        _say("", f"{about}:", *(text for text in (question.context, question.question) if text))
        if question.form is not None:
            asks_more = question.made.get("level") != "low" or len(fields_of(question.form)) > 1
            return await self._form(question.form, comment=asks_more and question.form.comment != "none")
        _say(*(f"  {number}. {option}" for number, option in enumerate(question.options, 1)))
        return chosen(question, await self._line(question.question))

    async def _form(self, form: Form, *, comment: bool) -> str:
        """Ask one question after the other, and repeat one whose answer does not fit."""
        values: dict[str, Any] = {}
        for lines, section in steps(form.sections):
            _say(*lines)
            if section is not None:
                _say(asked_line(section))
                values[section.id] = await self._fitting(section)
        said = ""
        if comment:
            _say("Comment" + (" (may be left empty)" if form.comment == "optional" else ""))
            said = await self._line("a comment")
        while True:
            try:
                return check_values(form, values, said).to_text()
            except AnswerRefused as fault:
                _say(*(f"{id}: {problem}" for id, problem in fault.problems.items()), "Comment:")
                said = await self._line("a comment")

    async def _fitting(self, section: FieldSection) -> str:
        while True:
            line = await self._line(section.label or section.id)
            problem = check_value(section, line)
            if not problem:
                return line
            _say(f"  {problem}")

    async def _line(self, wanted: str) -> str:
        print("> ", end="", file=sys.stderr, flush=True)
        await _readable(sys.stdin.fileno())
        line = sys.stdin.readline()
        if not line:
            raise NoPersonAttached(wanted)
        return line.strip()


def _say(*lines: str) -> None:
    for line in lines:
        print(clean(line), file=sys.stderr)


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
