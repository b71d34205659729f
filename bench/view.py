"""Goals 7 and 16: what a call sees at 10,000 messages, against what langchain offers; two contexts and one.

The messages of goal 16 are tiny: results of about 60 tokens, answers of two. Real ones are longer: the median result
of a tool has 224 characters and the mean one 861, the median answer with its calls 225 and the mean one 503
(``bench.traces`` says of what). A first context is measured with both: what a message costs beside its tokens is the
same.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter

from msgspec.structs import replace

from bench.engine import langgraph
from bench.keys import latencies
from bench.measure import Line, interleaved, python, seconds
from bench.traces import ANSWER, RESULT, length, text
from tests.context.support import Conversation, alone
from tests.engine.support import FlatPrices, call, play
from workbench.analysis.compare import compare, under
from workbench.context.assembler import Assembler
from workbench.context.strategy import parse
from workbench.models.encodings import Encodings
from workbench.views.compare import CompareRows
from workbench.views.context import ContextRows, View
from workbench.views.model import Rows

MESSAGES = 10_000
WORDS = " ".join(f"word{number % 97} of the log" for number in range(12))
STRATEGY = parse("mask(after=3)")
SHOW = """
import sys
from bench.view import rows_of
from workbench.tui.theming import ThemedApp
from workbench.tui.widgets.rowview import RowView
rows = rows_of(sys.argv[1])
class Shown(ThemedApp):
    def compose(self):
        yield RowView(rows, id="rows")
    def on_mount(self):
        self.query_one(RowView).show()
        self.query_one(RowView).focus()
Shown().run()
"""
COLD = "import json, sys; from bench.view import cold, history, real; print(json.dumps(cold(globals()[sys.argv[1]])))"
"""In a process of its own: what the other measurements leave in memory makes the collector of garbage slow."""
THEIRS = """
import json, sys, time
from statistics import median
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
count, words = int(sys.argv[1]), sys.argv[2]
messages = [HumanMessage("Find it.")]
while len(messages) < count:
    id = str(len(messages))
    calls = [{"name": "look", "args": {"x": id}, "id": id}]
    messages += [AIMessage(f"turn {id}", tool_calls=calls), ToolMessage(f"{id} {words}", tool_call_id=id)]
def trim():
    kept = trim_messages(messages, max_tokens=200_000, token_counter="approximate", strategy="last", start_on="ai")
    assert 0 < len(kept) < len(messages)
def clear():
    edited = list(messages)
    ClearToolUsesEdit(trigger=1000, keep=3).apply(edited, count_tokens=count_tokens_approximately)
    assert sum(message.content == "[cleared]" for message in edited) == (len(messages) - 1) // 2 - 3
def timed(work):
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return median(taken)
print(json.dumps([timed(trim), timed(clear)]))
"""


def history() -> Conversation:
    """One visit with so many messages; each turn calls a tool."""
    talk = Conversation(native=False).task()
    for turn in range(1, MESSAGES // 2):
        talk.turn(turn).calls(("look", f"{turn} {WORDS}"), text=f"turn {turn}")
    return talk


def real() -> Conversation:
    """The same with messages as long as those of real runs."""
    talk, chance = Conversation(native=False).task(), random.Random(0)
    for turn in range(1, MESSAGES // 2):
        result, answer = text(length(RESULT, chance), chance), text(length(ANSWER, chance), chance)
        talk.turn(turn).calls(("look", f"{turn} {result}"), text=f"turn {turn}: {answer}")
    return talk


def warm(talk: Conversation) -> Callable[[], float]:
    """Seconds for the context of one more turn, its two messages counted."""
    assembler = Assembler(alone(rules={"max_turns": MESSAGES}), STRATEGY, Encodings())
    for item in talk.items:
        assembler.add(item)
    assembler.assemble(talk.next_place(MESSAGES // 2))
    turn = MESSAGES // 2

    def more() -> float:
        nonlocal turn
        talk.items.clear()
        talk.turn(turn).calls(("look", f"{turn} {WORDS}"), text=f"turn {turn}")
        turn += 1
        begin = perf_counter()
        for item in talk.items:
            assembler.add(item)
        assembly = assembler.assemble(talk.next_place(turn))
        took = perf_counter() - begin
        assert len(assembly.request.messages) > MESSAGES
        return took

    return more


def cold(make: Callable[[], Conversation]) -> list[float]:
    """Seconds for the first context of all, nothing counted or hashed before; and for one pass of the tokenizer."""

    def ours() -> float:
        counter, talk = Encodings(), make()
        counter.load("gpt-4o")
        assembler = Assembler(alone(rules={"max_turns": MESSAGES}), STRATEGY, counter)

        def work() -> None:
            for item in talk.items:
                assembler.add(item)
            assembler.assemble(talk.next_place(MESSAGES // 2))

        return seconds(work)

    def tokenizer() -> float:
        counter, texts = Encodings(), [item.message.text for item in make().items]
        counter.load("gpt-4o")
        return seconds(lambda: [counter.text(text, "gpt-4o") for text in texts])

    return interleaved(3, ours, tokenizer)


def rows_of(kind: str) -> Rows:
    """The rows of one context of more than 200,000 tokens, or of two side by side."""
    turns, result = 50, "a line of the log that says little\n" * 600
    phase = {"name": "dig", "instructions": "Dig.", "tackle": ["t"], "rules": {"max_turns": turns}}
    played = play(
        {"cascade_id": "c", "phases": [phase]},
        [*(call("t", x=str(number)) for number in range(turns - 1)), "done"],
        tools={"t": lambda x="": f"{x} {result}"},
    )
    state, definition, counter, prices = played.state, played.definition, Encodings(), FlatPrices()
    assert state.calls[-1].tokens_sent > 200_000
    if kind == "one":
        return ContextRows(state.calls[-1], View())
    sides = [under(s, state, definition, parse(s), counter, prices) for s in ("snowball", "mask(after=20)")]
    a, b = (replace(side, seen=side.seen[-1:]) for side in sides)
    return CompareRows(compare(a, b), "run")


def side_by_side(rounds: int) -> tuple[float, float]:
    """Seconds from a key to the last byte: where two contexts stand side by side, and where one stands alone."""
    taken: dict[str, list[float]] = {"two": [], "one": []}
    for _ in range(rounds):
        for kind, ready in (("two", b"snowball"), ("one", b"turn")):
            taken[kind] += latencies(SHOW, ready, kind)
    return median(taken["two"]), median(taken["one"])


def run(rounds: int = 7) -> Iterator[Line]:
    two, one = side_by_side(3)
    yield Line("7", "key to last byte, two contexts of 200,000 tokens, one", two * 1e3, one * 1e3, "ms", 2.2)
    (more,) = interleaved(rounds, warm(history()))
    if (other := langgraph()) is None:
        print("  16  langchain-core cannot be installed here: no comparison", file=sys.stderr)
    else:
        trimmed, cleared = json.loads(python(THEIRS, str(MESSAGES), WORDS, program=other))
        yield Line("16", "one more turn at 10,000 messages, trim_messages", more * 1e3, trimmed * 1e3, "ms", 0.05)
        yield Line("16", "the same, context editing of langchain", more * 1e3, cleared * 1e3, "ms", 0.05)
    for name, what in (("history", "10,000 tiny messages"), ("real", "10,000 messages of real length")):
        first, once = json.loads(python(COLD, name))
        yield Line("16", f"first context of {what}, tokenizer pass", first * 1e3, once * 1e3, "ms", 2.0)
