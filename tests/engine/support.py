"""The outside world of engine tests: a model that answers from a script, functions as tools, a clock that steps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.context.assembly import Grade, Request
from workbench.context.cache import CacheRule, Price
from workbench.context.message import Message, canonical
from workbench.context.place import Place
from workbench.context.tokens import Counter
from workbench.engine.contracts import (
    Answer,
    Images,
    ModelFault,
    NativeCall,
    NoPersonAttached,
    Notice,
    Parameter,
    Ports,
    Question,
    ToolResult,
    ToolSpec,
    ValidatorVerdict,
)
from workbench.engine.definition import Definition, Options, Outcome
from workbench.engine.gate import Gate, open_gate
from workbench.engine.journal.event import Event
from workbench.engine.journal.shapes import problem_of
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage
from workbench.engine.run.run import Run
from workbench.language.templates.template import Renderer

Reply = str | Answer | ModelFault


def call(tool: str, **arguments: Any) -> str:
    """A prompt-based tool call as a model writes it."""
    return f"```json\n{json.dumps({'tool': tool, 'arguments': arguments})}\n```"


def native(text: str = "", **calls: Mapping[str, Any]) -> Answer:
    """An answer with native calls, by tool name."""
    made = tuple(
        NativeCall(f"id_{name}_{i}", name, json.dumps(arguments)) for i, (name, arguments) in enumerate(calls.items())
    )
    return Answer(text, made, finish_reason="tool_calls" if made else "stop")


class ScriptedModel:
    """Answers in the order of calls, or by phase; keeps every request."""

    name = "scripted"

    def __init__(self, replies: Sequence[Reply] | Mapping[str, Sequence[Reply]]) -> None:
        self.requests: list[tuple[Place, Request]] = []
        self._replies = {k: list(v) for k, v in replies.items()} if isinstance(replies, Mapping) else list(replies)

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        self.requests.append((place, request))
        queue = self._replies[place.phase] if isinstance(self._replies, dict) else self._replies
        reply = queue.pop(0)
        if isinstance(reply, ModelFault):
            raise reply
        if isinstance(reply, str):
            on_text(reply)
            reply = Answer(reply, usage=Usage(input=100, output=10))
        return reply

    def recorded(self, request: Request, place: Place) -> str:
        return "live"


@dataclass
class FunctionTools:
    """Python functions as tools; a function that raises gives an error result."""

    functions: Mapping[str, Callable[..., str | ToolResult]] = field(default_factory=dict)
    called: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    settlements: list[tuple[str, str]] = field(default_factory=list)
    """Branches whose candidates were judged, each with the branch that won."""

    def names(self) -> Sequence[str]:
        return sorted(self.functions)

    def spec(self, name: str) -> ToolSpec | None:
        if name not in self.functions:
            return None
        return ToolSpec(name, f"The tool {name}.", (Parameter("x", "str", False, ""),), {"type": "object"})

    def maybe_ran(self, place: Place, index: int) -> bool:
        return False

    def recorded(self, place: Place, index: int) -> bool:
        return False

    async def settled(self, branch: str, winner: str) -> None:
        self.settlements.append((branch, winner))

    async def call(self, name: str, arguments: Mapping[str, Any], place: Place, index: int) -> ToolResult:
        self.called.append((name, arguments))
        try:
            result = self.functions[name](**arguments)
        except ValueError as fault:
            return ToolResult(f"ValueError: {fault}", is_error=True)
        return result if isinstance(result, ToolResult) else ToolResult(result)


@dataclass
class FunctionValidators:
    """Validators by name: content in, verdict out."""

    functions: Mapping[str, Callable[[str], ValidatorVerdict]] = field(default_factory=dict)

    def describe(self, name: str) -> str | None:
        return f"Checks {name}" if name in self.functions else None

    async def judge(
        self, name: str, content: str, input: Mapping[str, Any], state: Mapping[str, Any], place: Place, index: int
    ) -> ValidatorVerdict:
        return self.functions[name](content)

    async def judge_code(
        self, name: str, language: str, code: str, content: str, input: Mapping[str, Any], place: Place, index: int
    ) -> ValidatorVerdict:
        return self.functions[language](content)


@dataclass
class Answers:
    """A person who answers in order, or nobody."""

    answers: list[str] = field(default_factory=list)

    async def ask(self, question: Question, place: Place, index: int) -> str:
        if not self.answers:
            raise NoPersonAttached(question.question)
        return self.answers.pop(0)


class StepClock:
    """Each look at the clock is a millisecond later; sleeping takes no time but is counted."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._ticks = 0

    def now(self) -> str:
        self._ticks += 1
        return f"2026-01-01T00:{self._ticks // 60000:02}:{self._ticks // 1000 % 60:02}.{self._ticks % 1000:03}000Z"

    def monotonic(self) -> float:
        return self._ticks / 1000

    def skip(self, milliseconds: int) -> None:
        self._ticks += milliseconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class NumberedIds:
    def __init__(self) -> None:
        self._count = 0

    def run_id(self) -> str:
        self._count += 1
        return f"run-{self._count}"


class NoChance:
    def uniform(self) -> float:
        return 0.5

    def draw(self, place: Place, index: int) -> float:
        return (index * 0.37) % 1


class Words(Counter):
    """Counts words: exact, cheap, and easy to check by hand."""

    def message(self, message: Message, model: str) -> tuple[int, Grade]:
        return 3 + len(canonical(message.to_json()).split()), Grade.EXACT

    def tools(
        self, tools: Sequence[Mapping[str, Any]], model: str, *, forced: bool = False, responses: bool = False
    ) -> tuple[int, Grade]:
        return sum(len(canonical(tool).split()) for tool in tools), Grade.EXACT

    def overhead(self, model: str, schema: str = "", *, thinking: bool = False, as_json: bool = False) -> int:
        return 3 + self.text(schema, model)

    def range(self, model: str) -> tuple[float, float]:
        return 0.8, 1.25

    def text(self, text: str, model: str) -> int:
        return len(text.split())


class FlatPrices:
    def price(self, model: str, input_tokens: int = 0) -> Price:
        return Price(1e-6, 2e-6, 1e-7, None, "test", "exact", CacheRule("openai", 1024, 128))

    def window(self, model: str) -> int | None:
        return None

    def counted_as(self, model: str) -> str:
        return model


class ListSink:
    """Keeps events, as a journal would."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.blobs: dict[str, bytes] = {}
        self.synced_at: list[int] = []

    def append(self, event: Event) -> None:
        assert not problem_of(event), "what a run writes is what a reader takes"
        self.events.append(event)

    def blob(self, digest: str, data: bytes) -> None:
        self.blobs[digest] = data

    def sync(self) -> None:
        self.synced_at.append(len(self.events))


@dataclass
class Played:
    """A run that has ended."""

    outcome: Outcome
    events: list[Event]
    model: ScriptedModel
    tools: FunctionTools
    clock: StepClock
    notices: list[Notice]
    definition: Definition
    options: Options
    blobs: dict[str, bytes]

    @property
    def state(self) -> RunState:
        return RunState.of(self.events)

    def of_kind(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def texts(self, call: int = -1) -> list[tuple[str, str]]:
        """Role and text of each message of one request."""
        return [(message.role, message.text) for message in self.model.requests[call][1].messages]


def ports(
    model: Any,
    *,
    tools: Any = None,
    validators: Any = None,
    human: Any = None,
    clock: StepClock | None = None,
    random: Any = None,
    gate: Gate = open_gate,
    sink: ListSink | None = None,
    **more: Any,
) -> Ports:
    return Ports(
        model=model,
        tools=tools or FunctionTools(),
        validators=validators or FunctionValidators(),
        human=human or Answers(),
        clock=clock or StepClock(),
        ids=NumberedIds(),
        random=random or NoChance(),
        render=Renderer(),
        counter=Words(),
        prices=FlatPrices(),
        sink=sink or ListSink(),
        gate=gate,
        **more,
    )


def play(
    cascade: str | Mapping[str, Any],
    replies: Sequence[Reply] | Mapping[str, Sequence[Reply]],
    *,
    input: Mapping[str, Any] | None = None,
    tools: Mapping[str, Callable[..., str | ToolResult]] | None = None,
    validators: Mapping[str, Callable[[str], ValidatorVerdict]] | None = None,
    answers: Sequence[str] = (),
    human: Any = None,
    gate: Gate = open_gate,
    options: Options | None = None,
    own_model: ScriptedModel | None = None,
    **more: Any,
) -> Played:
    """Run a cascade (YAML text, or the document as a mapping) to its end."""
    text = cascade if isinstance(cascade, str) else json.dumps(cascade)
    definition = Definition.of(text, "test.yaml")
    sink, notices = ListSink(), list[Notice]()
    model, functions = own_model or ScriptedModel(replies), FunctionTools(tools or {})
    outside = ports(
        model,
        tools=functions,
        validators=FunctionValidators(validators or {}),
        human=human or Answers(list(answers)),
        gate=gate,
        sink=sink,
        notify=notices.append,
        **more,
    )
    chosen = options or Options("test", "gpt-4o-mini")
    outcome = asyncio.run(Run(definition, input or {}, chosen, outside).execute())
    clock = outside.clock
    assert isinstance(clock, StepClock)
    return Played(outcome, sink.events, model, functions, clock, notices, definition, chosen, sink.blobs)
