"""A counter of words, and short ways to write cascades, histories and finished visits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from workbench.context.assembler import Assembler
from workbench.context.assembly import Assembly, BrokenInvariant, Entry, Grade, Item, Kind
from workbench.context.invariants import (
    Sent,
    check_altered,
    check_ends,
    check_presence,
    check_run,
    check_tools,
    in_order,
)
from workbench.context.message import Image, Message, TextPart, ToolCall
from workbench.context.place import Place
from workbench.context.scope import PhaseScope, VisitRecord
from workbench.context.strategy import Strategy, parse
from workbench.context.tokens import Counter
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.problem import Path


class WordCounter(Counter):
    """Counts words: 4 tokens a message, one a word, 50 an image. Remembers how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def message(self, message: Message, model: str) -> tuple[int, Grade]:
        self.asked += 1
        calls = sum(1 + len(call.arguments.split()) for call in message.tool_calls)
        words = len(message.text.split()) + calls
        grade = Grade.ESTIMATE if message.images else Grade.EXACT
        return 4 + words + 50 * len(message.images), grade

    def tools(
        self, tools: Sequence[Mapping[str, Any]], model: str, *, forced: bool = False, responses: bool = False
    ) -> tuple[int, Grade]:
        return sum(len(json.dumps(tool).split()) for tool in tools), Grade.EXACT

    def overhead(self, model: str, schema: str = "", *, thinking: bool = False, as_json: bool = False) -> int:
        return 3 + self.text(schema, model)

    def range(self, model: str) -> tuple[float, float]:
        return 0.8, 1.25

    def text(self, text: str, model: str) -> int:
        return len(text.split())


def cascade(*phases: Mapping[str, Any], **fields: Any) -> Cascade:
    """A cascade of these phases; each gets instructions if it has none."""
    filled = [{"instructions": "Do it.", **phase} for phase in phases]
    return Cascade.model_validate({"cascade_id": "example", "phases": filled, **fields})


def line_of(path: Path) -> int:
    """A made-up line for every path: ten times its length."""
    return 10 * len(path)


def scope(definition: Cascade, phase: str = "", **fields: Any) -> PhaseScope:
    """The scope of the first visit of a phase, the last one of the cascade if not named."""
    index = next((i for i, p in enumerate(definition.phases) if p.name == phase), len(definition.phases) - 1)
    found: Phase = definition.phases[index]
    values: dict[str, Any] = {"model": "offline", "line_of": line_of, "place": Place("", found.name, 1), **fields}
    return PhaseScope(definition, found, index, **values)


def alone(**fields: Any) -> PhaseScope:
    """The scope of a phase ``work`` that is the whole cascade, with these fields of the phase."""
    return scope(cascade({"name": "work", **fields}))


def image(name: str) -> Image:
    return Image(name.ljust(64, "0"), "image/png", 1000, 4, 3)


class Conversation:
    """Writes down the history of one visit, message by message."""

    def __init__(self, phase: str = "work", visit: int = 1, *, native: bool = False, branch: str = "") -> None:
        self.items: list[Item] = []
        self.native = native
        self._place = Place(branch, phase, visit, 1, 1, 1)
        self._ids = 0

    def task(self, text: str = "Find the failure.") -> Conversation:
        return self._add(Message("user", text), Kind.TASK)

    def turn(self, number: int, prompt: str = "") -> Conversation:
        """Go on with this turn; ``prompt`` opens it."""
        self._place = self._place._replace(turn=number, call=1)
        return self._add(Message("user", prompt), Kind.PROMPT) if prompt else self

    def says(self, text: str, **extra: Any) -> Conversation:
        return self._add(Message("assistant", text, extra=extra), Kind.ANSWER)

    def calls(self, *calls: tuple[str, str], text: str = "", errors: Sequence[int] = (), **extra: Any) -> Conversation:
        """Call tools: pairs of name and result. ``errors``: positions of results that are errors."""
        if self.native:
            made = tuple(ToolCall(self._id(), name, '{"path": "a.log"}') for name, _ in calls)
            self._add(Message("assistant", text, made, extra=extra), Kind.ANSWER)
        else:
            blocks = [f'```json\n{{"tool": "{name}", "arguments": {{}}}}\n```' for name, _ in calls]
            self._add(Message("assistant", "\n".join([text, *blocks]).strip()), Kind.ANSWER)
            made = ()
        for position, (name, result) in enumerate(calls):
            is_error = position in errors
            if self.native:
                message = Message("tool", result, (), made[position].id, name)
            else:
                message = Message("user", f"[Tool {'error' if is_error else 'result'}: {name}]\n{result}")
            self._add(message, Kind.RESULT, name, is_error)
        return self

    def rewrite_arguments(self, arguments: Sequence[str]) -> Conversation:
        """Replace the arguments of the last answer's native calls."""
        index = max(i for i, item in enumerate(self.items) if item.kind is Kind.ANSWER)
        message = self.items[index].message
        calls = tuple(replace(c, arguments=a) for c, a in zip(message.tool_calls, arguments, strict=True))
        self.items[index] = replace(self.items[index], message=replace(message, tool_calls=calls))
        return self

    def shows(self, tool: str, *images: Image) -> Conversation:
        return self._add(Message("user", (TextPart(f"[Images from {tool}]:"), *images)), Kind.IMAGES, tool)

    def retry(self, reason: str, text: str = "Try again.") -> Conversation:
        """Open the next attempt."""
        self._place = self._place._replace(attempt=self._place.attempt + 1, turn=1, call=1)
        return self._add(Message("user", text), Kind.RETRY, note=reason)

    def closing(self, text: str = "No more tool calls are possible.") -> Conversation:
        self._place = self._place._replace(call=2)
        return self._add(Message("user", text), Kind.CLOSING)

    def hears(self, text: str) -> Conversation:
        return self._add(Message("user", text), Kind.USER)

    def next_place(self, turn: int) -> Place:
        return self._place._replace(turn=turn, call=1)

    @property
    def place(self) -> Place:
        return self._place

    def record(self, output: str = "", state: Mapping[str, Any] | None = None, status: str = "success") -> VisitRecord:
        """The visit, finished."""
        place = self._place
        return VisitRecord(
            place.branch, place.phase, place.visit, status, output, tuple(self.items), state or {}, place.attempt
        )

    def _id(self) -> str:
        self._ids += 1
        return f"call_{self._ids}"

    def _add(
        self, message: Message, kind: Kind, tool: str = "", is_error: bool = False, note: str = ""
    ) -> Conversation:
        self.items.append(Item(message, kind, self._place, tool, is_error, note=note))
        return self


def assembled(
    where: PhaseScope, conversation: Conversation, place: Place | None = None, strategy: Strategy | str = "", **how: Any
) -> Assembly:
    """The context of the call at ``place``, by the file's strategy unless one is given."""
    chosen = parse(strategy) if isinstance(strategy, str) and strategy else strategy or Strategy()
    assert isinstance(chosen, Strategy)
    return assemble_all(where, chosen, WordCounter(), conversation.items, place or conversation.place, **how)


def texts(assembly: Assembly) -> list[tuple[str, str]]:
    """Role and text of every message sent."""
    return [(message.role, message.text) for message in assembly.request.messages]


def sent_text(assembly: Assembly, index: int) -> str:
    """The text that entry ``index`` sends."""
    sent = assembly.entries[index].sent
    assert sent is not None
    return sent.text


def assemble_all(
    scope: PhaseScope,
    strategy: Strategy,
    counter: Counter,
    items: Iterable[Item],
    place: Place,
    *,
    previous: Assembly | None = None,
    tool_choice: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> Assembly:
    """The context of one call from scratch. Equal to what an ``Assembler`` that saw the items come gives, splices
    aside."""
    assembler = Assembler(scope, strategy, counter, previous)
    for item in items:
        assembler.add(item)
    return assembler.assemble(place, tool_choice=tool_choice, parameters=parameters)


def assemble_calls(
    scope: PhaseScope,
    strategy: Strategy,
    counter: Counter,
    items: Iterable[Item],
    parameters: Mapping[Place, Mapping[str, Any]] | None = None,
) -> Iterator[Assembly]:
    """What each call of a finished visit would have seen under a strategy; an answer in ``items`` is a call.

    ``parameters``: those of single calls, by place, laid over the scope's. Takes time proportional to what changes.
    """
    assembler = Assembler(scope, strategy, counter)
    for item in items:
        if item.kind is Kind.ANSWER:
            yield assembler.assemble(item.place, parameters=(parameters or {}).get(item.place))
        assembler.add(item)


def check_messages(messages: Sequence[Message]) -> tuple[BrokenInvariant, ...]:
    """Rules 1 to 6 and 8 to 10 on bare messages, such as those of a foreign run; the index is the message's."""
    rows = [Sent(message, i) for i, message in enumerate(messages)]
    return in_order([*check_run(messages, range(len(messages))), *check_ends(rows)])


def check_entries(
    entries: Sequence[Entry],
    tool_text: str = "",
    tools: Sequence[Mapping[str, Any]] = (),
    previous_tools: Sequence[Mapping[str, Any]] = (),
) -> tuple[BrokenInvariant, ...]:
    """Rules 1 to 12 on a whole context, from scratch; the index is the entry's."""
    rows = [Sent(e.sent, i) for i, e in enumerate(entries) if e.sent is not None]
    faults = [*check_run([row.message for row in rows], [row.entry for row in rows]), *check_ends(rows)]
    faults += check_presence(entries, [i for i, e in enumerate(entries) if e.item.kind is Kind.TASK], tool_text)
    faults += check_tools(tools, previous_tools)
    faults += [fault for i, entry in enumerate(entries) if (fault := check_altered(entry, i)) is not None]
    return in_order(faults)
