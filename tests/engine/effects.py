"""What each field of the language changes: small cascades, and for every field a value that a run of them shows."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.engine.support import Answers, Played, ScriptedModel, call, play
from tests.engine.test_children import Shelf
from tests.engine.test_steering import Says
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer, Images, Question, ToolImage, ToolResult, ValidatorVerdict
from workbench.engine.journal.usage import Usage
from workbench.language.model.base import Model
from workbench.language.model.cascade import Cascade
from workbench.language.model.shape import shape
from workbench.language.read.text import read_source

Row = tuple[str, Any, str]
"""Where in the document, the value, and what the run then shows; empty: it only differs. ``~`` stands before what
is shown no more."""

VERDICT = '{"winner": 2, "scores": {"1": 60, "2": 90, "3": 70}, "reason": "because"}'
LONG = "seen " * 80


@dataclass(frozen=True)
class Case:
    """A cascade that runs, what its phases answer, and the fields that change the run."""

    text: str
    rows: Sequence[Row]
    says: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By phase; the last answer is given again. Under ``phase!`` what is said outside turns."""
    answers: Sequence[str] = ()
    late: bool = False
    """Nobody answers in time."""
    heard: Mapping[str, str] = field(default_factory=dict)
    """Feedback of a person, by turn."""

    def document(self) -> dict[str, Any]:
        data = read_source(self.text, "case.yaml")[0].data
        assert isinstance(data, dict)
        return data

    def changed(self, row: Row) -> dict[str, Any]:
        """The document with the row's value in its place."""
        document = copy.deepcopy(self.document())
        *way, last = steps(row[0])
        here: Any = document
        for step in way:
            here = here[step]
        here[last] = row[1]
        return document

    def run(self, document: Mapping[str, Any]) -> str:
        """All that a run of the document shows, as text: events and requests, without the text of the file."""
        return shown(self.play(document))

    def play(self, document: Mapping[str, Any], seed: int = 0) -> Played:
        """Run the document; with a ``seed`` answers come after a while, in another order for each seed."""
        return play(
            document,
            [],
            input={"topic": "lamps", "n": 4},
            own_model=Talks(self.says, seed),
            tools=TOOLS,
            validators=VALIDATORS,
            human=Late(list(self.answers)) if self.late else Repeats(list(self.answers)),
            library=Shelf({"child": CHILD, "judge": JUDGE}),
            audibles=Says(**self.heard),
        )


class Talks(ScriptedModel):
    """Answers by phase and branch, in order; the last answer again and again."""

    def __init__(self, says: Mapping[str, Sequence[str]], seed: int = 0) -> None:
        super().__init__([])
        self._says, self._seed = says, seed
        self._at: dict[tuple[str, str, bool], int] = {}

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        self.requests.append((place, request))
        for _ in range(Random(f"{self._seed} {place}").randrange(12) if self._seed else 0):
            await asyncio.sleep(0)
        beside = not place.turn
        key = (place.branch, place.phase, beside)
        position = self._at[key] = self._at.get(key, -1) + 1
        said = self._says.get(f"{place.phase}!" if beside else place.phase) or (VERDICT if beside else "text",)
        text = said[min(position, len(said) - 1)].replace("BRANCH", place.branch)
        cost = {"m/dear": 0.9, "m/fair": 0.4}.get(request.model, 0.1)
        return Answer(text, usage=Usage(input=100, output=10), cost=cost, cost_grade="billed")


class Repeats(Answers):
    """Gives its last answer for ever."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        if len(self.answers) == 1:
            return self.answers[0]
        return await super().ask(question, place, index)


class Late(Repeats):
    """Has answers, all of them too late."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        raise TimeoutError


def look(x: str = "") -> ToolResult:
    return ToolResult(f"{x} {LONG}")


def draw(x: str = "") -> ToolResult:
    return ToolResult("drawn", images=(ToolImage(b"\x89PNG" + x.encode(), "image/png", 8, 6),))


def fails(x: str = "") -> ToolResult:
    return ToolResult(f"no such thing: {LONG}", is_error=True)


def rows(x: str = "") -> str:
    return '{"status": "ok", "rows": [1, 2]}'


def find(query: str) -> str:
    return f"found {query}"


TOOLS: Mapping[str, Callable[..., str | ToolResult]] = {
    "look": look,
    "draw": draw,
    "fails": fails,
    "rows": rows,
    "find": find,
}
VALIDATORS: Mapping[str, Callable[[str], ValidatorVerdict]] = {
    "good": lambda content: ValidatorVerdict(True, "fine", 80.0),
    "bad": lambda content: ValidatorVerdict(False, "too dull", 20.0),
    "fresh": lambda content: ValidatorVerdict("again" in content, "not fresh"),
    "one": lambda content: ValidatorVerdict("s1" in content, "only s1", 90.0 if "s1" in content else 10.0),
}
CHILD = {
    "cascade_id": "child",
    "description": "Does a child's part",
    "inputs_schema": {"given": "what it gets"},
    "phases": [
        {"name": "inner", "instructions": "Child gets {{ input.given }} {{ input.topic }}.", "tackle": ["set_state"]}
    ],
}
JUDGE = {"cascade_id": "judge", "phases": [{"name": "verdict", "instructions": "Judge {{ input.content }}"}]}


def shown(played: Played) -> str:
    """Events and requests of a run, as lines of text."""
    lines = []
    for event in played.events:
        data = dict(event.data)
        for name in ("cascade_text", "cascade_sha256", "includes"):
            data.pop(name, None)
        lines.append(f"{event.kind} {event.place} {json.dumps(data, ensure_ascii=False, default=str)}")
    for place, request in played.model.requests:
        lines.append(f"{place} asks {request.model} {dict(request.parameters)} {request.tools}")
        lines += [f"{message.role}: {message.text}" for message in request.messages]
    lines.append(f"slept {played.clock.slept}")
    return "\n".join(lines)


def steps(path: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in path.split("/")]


def proved(row: Row) -> Iterator[str]:
    """``Model.field`` of each step of a row's path, and below it of the last key that its value writes: a block whose
    field works is read, too."""
    model: type[Model] | None = Cascade
    way, value = steps(row[0]), row[1]
    while model is not None:
        if not way:
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, str) and model.SHORT:
                value = {model.SHORT: value}
            if not isinstance(value, dict) or not value:
                return
            *_, key = value
            value = value[key]
        else:
            key = str(way.pop(0))
        found = shape(model)[key]
        yield f"{model.__name__}.{found.attribute}"
        model = found.model
        if model is not None and found.holds != "one":
            if way:
                way.pop(0)
            elif isinstance(value, dict) and value:
                value = value[list(value)[-1]]


def tool(name: str, x: str = "") -> str:
    return call(name, x=x)
