"""Journals written by hand for the screens: the events a run would write, with times and numbers that stand still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from workbench.context.assembly import Action, Entry, Grade, Item, Kind, Reason, Rule
from workbench.context.cache import Forecast
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.engine.journal.event import Event

RUN = "0190c6f2-7f3a-7000-8000-00000000a001"

TRIAGE = """\
cascade_id: log_triage
description: Finds what went wrong in a night of logs.
inputs_schema:
  log: Path of the log file
phases:
  - name: intake
    instructions: |
      Say in one line what {{ input.log }} is about.
    handoffs: [triage]
  - name: triage
    instructions: |
      Find the first failure and the component that caused it.
      Read before you judge.
    tackle: [read_log, search_files]
    context:
      from: [intake]
      include_input: true
    rules:
      max_turns: 6
    intra_context:
      enabled: true
      mask_observations_after: 1
      window: 5
    handoffs: [crash, noise]
  - name: crash
    instructions: Write the incident report.
    context:
      from: [triage]
  - name: noise
    instructions: Say why nothing needs to be done.
    context:
      from: [triage]
"""

LOG_TEXT = "\n".join(
    f"2026-11-02T09:14:{second:02}Z WARN  queue ingest lag {second * 3}s worker={second % 4} retry={second % 3}"
    for second in range(60)
)
SEARCH_TEXT = "\n".join(
    [
        'src/ingest.py:88:    raise TimeoutError(f"queue {name} did not drain")',
        "src/ingest.py:131:   except TimeoutError: retry(name, limit=3)",
        "src/worker.py:12:    # TimeoutError is handled upstream",
    ]
)


def tokens(text: str) -> int:
    """A stand-in for a tokenizer: these journals only need numbers that hang together."""
    return 4 + len(text) // 4


class Story:
    """Writes a journal event by event. Every event is a second after the one before."""

    def __init__(self, run_id: str = RUN) -> None:
        self.run_id = run_id
        self.events: list[Event] = []
        self.entries: tuple[Entry, ...] = ()
        self.unwritten: list[Item] = []

    def emit(self, kind: str, place: Place = Place(), /, **data: Any) -> Event:
        seq = len(self.events) + 1
        at = f"2026-11-02T14:{2 + seq // 60:02}:{seq % 60:02}.204000Z"
        event = Event(seq, at, self.run_id, kind, place, data)
        self.events.append(event)
        return event

    def body(self, message: Message) -> str:
        if not any(e.kind == "blob" and e.data["hash"] == message.body_hash for e in self.events):
            self.emit("blob", hash=message.body_hash, kind="message", body=message.to_json())
        return message.body_hash

    def items(self, items: Sequence[Item]) -> list[dict[str, Any]]:
        for item in items:
            self.body(item.message)
        return [item.to_json() for item in items]

    # -- the parts of a run ------------------------------------------------------------------------------------------

    def start(self, text: str = TRIAGE, input: Mapping[str, Any] | None = None, **data: Any) -> Story:
        self.emit(
            "run_started",
            session_id="log_triage-7f3a",
            cascade_id="log_triage",
            cascade_file="log_triage.yaml",
            cascade_text=text,
            cascade_sha256="",
            input=dict(input or {"log": "night.log"}),
            options={},
            ports={"model": "offline"},
            parent=None,
            **data,
        )
        return self

    def phase(
        self, name: str, *, max_turns: int = 1, tools: Sequence[str] = (), branch: str = "", visit: int = 1
    ) -> Place:
        place = Place(branch, name, visit)
        self.emit(
            "phase_started",
            place,
            kind="llm",
            model="openai/gpt-4.1-mini",
            strategy="selective",
            conditions={},
            max_turns=max_turns,
            tools=list(tools),
        )
        return place

    def context(
        self,
        place: Place,
        entries: Sequence[Entry],
        *,
        strategy: str = "selective+mask(after=1)",
        forecast: Forecast | None = None,
        problems: Sequence[tuple[int, str, int]] = (),
        grade: Grade = Grade.EXACT,
        notes: Sequence[str] = (),
    ) -> None:
        """One call's context, as one splice over everything before it."""
        for entry in entries:
            self.body(entry.item.message)
            if entry.sent is not None:
                self.body(entry.sent)
        splice = {"at": 0, "remove": len(self.entries), "entries": [entry.to_json() for entry in entries]}
        self.entries = tuple(entries)
        full, sent = sum(e.tokens_full for e in entries) + 3, sum(e.tokens_sent for e in entries) + 3
        self.emit(
            "context_assembled",
            place,
            purpose="turn",
            added=[],
            strategy=strategy,
            splices=[splice],
            request={"model": "openai/gpt-4.1-mini", "parameters": {"temperature": 0.0}, "tools": ""},
            digest="9f2c41d0" * 8,
            tokens_full=full,
            tokens_sent=sent,
            tools_tokens=0,
            overhead_tokens=3,
            grade=str(grade),
            forecast=asdict(forecast or Forecast(0, sent, 0, sent * 4e-7, 0, "the first call")),
            price={"source": "litellm map, as gpt-4.1-mini", "grade": "exact"},
            problems=[list(problem) for problem in problems],
            notes=list(notes),
        )

    def answer(
        self, place: Place, text: str, calls: Sequence[ToolCall] = (), *, cost: float | None = 0.0026, cached: int = 0
    ) -> Item:
        self.emit("call_started", place, digest="", model="openai/gpt-4.1-mini", purpose="turn", **{"try": 1})
        message = Message("assistant", text, tuple(calls))
        item = Item(message, Kind.ANSWER, place)
        sent = sum(e.tokens_sent for e in self.entries) + 3
        wire = [e.sent.to_json() for e in self.entries if e.sent is not None]
        hashes = []
        for number, body in enumerate(wire):
            digest = f"wire-{place}-{number}"
            import json

            self.emit("blob", hash=digest, kind="wire", body=json.dumps(body, separators=(",", ":")))
            hashes.append(digest)
        before = getattr(self, "_wired", 0)
        self._wired = len(hashes)
        self.emit(
            "call_finished",
            place,
            digest="",
            purpose="turn",
            added=self.items([item]),
            finish_reason="tool_calls" if calls else "stop",
            usage={
                "input": sent,
                "output": tokens(text) + 20 * len(calls),
                "cached": cached,
                "written": 0,
                "reasoning": None,
            },
            cost=cost,
            cost_grade="exact",
            model="gpt-4.1-mini",
            provider="offline",
            provider_id="r1",
            first_token_s=0.2,
            duration_s=0.8,
            wire={
                "order": ["model", "messages", "temperature"],
                "keys": {"model": "openai/gpt-4.1-mini", "temperature": 0.0},
                "at": 0,
                "remove": before,
                "messages": hashes,
                "tools": "",
            },
            partial=False,
            recorded=False,
        )
        return item

    def tool(self, place: Place, name: str, arguments: str, text: str, *, error: bool = False, index: int = 1) -> Item:
        self.emit(
            "tool_started", place, index=index, call_id=f"call_{index}", tool=name, arguments=arguments, native=True
        )
        message = Message("tool", text, tool_call_id=f"call_{index}")
        item = Item(message, Kind.RESULT, place, tool=name, is_error=error)
        self.emit(
            "tool_finished",
            place,
            index=index,
            call_id=f"call_{index}",
            tool=name,
            is_error=error,
            added=self.items([item]),
            images=[],
            duration_s=0.038,
            sandbox="in process",
            cached=False,
        )
        return item

    def end_phase(self, place: Place, output: str, *, to: str = "", status: str = "success", reason: str = "") -> None:
        self.emit("phase_finished", place, status=status, output=output, reason=reason, check="")
        self.emit("route_chosen", place, to=to, rule="the only handoff" if to else "no handoff", candidates=[])

    def finish(self, output: str, *, status: str = "success", reason: str = "") -> None:
        self.emit("run_finished", status=status, output=output, state={}, reason=reason)


def entry(
    message: Message,
    kind: Kind,
    place: Place,
    *,
    reason: tuple[Any, ...] = ("always",),
    rule: tuple[str, int] = ("default", 0),
    action: Action = Action.KEPT,
    sent: Message | str | None = "same",
    tool: str = "",
    source: str = "",
    is_error: bool = False,
    redacted: int = 0,
) -> Entry:
    """An entry whose token counts follow from its texts."""
    item = Item(message, kind, place, tool=tool, source=source, is_error=is_error, redacted=redacted)
    went = message if sent == "same" else sent
    assert not isinstance(went, str)
    cost = sum(tokens(call.name + call.arguments) for call in message.tool_calls)
    full = tokens(message.text) + cost
    code, *args = reason
    out = 0 if went is None else full if went is message else tokens(went.text)
    return Entry(item, went, action, Reason(code, tuple(args)), Rule(*rule), full, out)


def masked(original: Entry, *, turn: int, after: int, line: int) -> Entry:
    """The entry with its result replaced by a placeholder."""
    message = original.item.message
    text = f"[{original.item.tool} result · {len(message.text):,} chars · ref {message.content_hash[:8]}]"
    placeholder = replace(message, content=text)
    rule = Rule("phases[1].intra_context.mask_observations_after", line)
    return Entry(
        original.item,
        placeholder,
        Action.MASKED,
        Reason("age", (after, turn)),
        rule,
        original.tokens_full,
        tokens(text),
    )


def triage_story(*, finished: bool = False) -> Story:
    """Two phases; the second is at its third turn, where the first result is masked and the cache breaks."""
    story = Story().start()
    intake = story.phase("intake")
    first = intake._replace(attempt=1, turn=1, call=1)
    ask = entry(
        Message("user", "Say in one line what night.log is about."),
        Kind.TASK,
        first,
        reason=("task",),
        rule=("phases[0].instructions", 7),
    )
    story.context(first, [ask], strategy="selective")
    line = "Ingest workers fall behind from 09:14 on and time out one after the other. " * 4
    story.answer(first, line, cost=0.0004)
    story.end_phase(intake, line, to="triage")

    triage = story.phase("triage", max_turns=6, tools=["read_log", "search_files"])
    turn = [triage._replace(attempt=1, turn=n, call=1) for n in range(1, 5)]
    tool_text = "Tools you may call:\n" + "read_log(path): reads a log file\nsearch_files(pattern): finds text\n" * 12
    system = entry(Message("system", tool_text), Kind.SYSTEM, turn[0])
    given = entry(
        Message("user", '[Original Input]:\n{"log": "night.log"}'),
        Kind.INPUT,
        turn[0],
        reason=("input",),
        rule=("phases[1].context.include_input", 17),
        action=Action.INJECTED,
    )
    carried = entry(
        Message("user", "[Output from intake]:\n" + line * 3),
        Kind.INJECTED,
        turn[0],
        reason=("source", "context.from[0]"),
        rule=("phases[1].context.from[0]", 16),
        action=Action.INJECTED,
        source="intake.output",
    )
    task = entry(
        Message("user", "Find the first failure and the component that caused it.\nRead before you judge."),
        Kind.TASK,
        turn[0],
        reason=("task",),
        rule=("phases[1].instructions", 11),
    )
    base = [system, given, carried, task]
    story.context(turn[0], base)
    read = ToolCall("call_1", "read_log", '{"path": "night.log", "lines": 400}')
    one = story.answer(turn[0], "I will read the log first.", [read], cost=0.0018)
    result = story.tool(turn[0], "read_log", read.arguments, LOG_TEXT)
    answer_1 = entry(one.message, Kind.ANSWER, turn[0], reason=("calls", "read_log"))
    result_1 = entry(result.message, Kind.RESULT, turn[0], reason=("recent", 1), tool="read_log")
    story.context(
        turn[1], [*base, answer_1, result_1], forecast=Forecast(448, 1300, 0, 0.00061, 4, "new messages follow")
    )
    search = ToolCall("call_1", "search_files", '{"pattern": "TimeoutError"}')
    two = story.answer(turn[1], "The ingest queue times out; where is that raised?", [search], cached=448)
    found = story.tool(turn[1], "search_files", search.arguments, SEARCH_TEXT)
    answer_2 = entry(two.message, Kind.ANSWER, turn[1], reason=("calls", "search_files"))
    result_2 = entry(
        found.message,
        Kind.RESULT,
        turn[1],
        reason=("recent", 2),
        tool="search_files",
        rule=("phases[1].intra_context.mask_observations_after", 22),
    )
    story.context(
        turn[2],
        [*base, answer_1, masked(result_1, turn=1, after=1, line=22), answer_2, result_2],
        forecast=Forecast(512, 420, 0, 0.00031, 5, "turn 1's result was full in the previous call"),
    )
    if finished:
        last = "The first failure is the queue timeout in src/ingest.py:88, raised when the drain takes over 30 s."
        story.answer(turn[2], last, cached=512)
        story.emit("state_set", triage, key="component", value="src/ingest.py", by="set_state")
        story.emit("state_set", triage, key="severity", value={"level": "high", "since": "09:14"}, by="set_state")
        story.emit(
            "check_finished", turn[2], check="output_schema", name="output_schema", mode="retry", valid=True, reason=""
        )
        story.end_phase(triage, last)
        story.finish(last)
    return story
