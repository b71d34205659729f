"""The contexts of a program that are open side by side while its calls come in, each written as a visit of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from workbench.attach.pricing import OtherStrategy
from workbench.context.assembler import is_forced
from workbench.context.assembly import Assembly, Item
from workbench.context.place import Place
from workbench.context.strategy import Strategy
from workbench.engine.journal.event import timestamp
from workbench.importers.conversation import Call, ImportedMessage
from workbench.importers.exchanges import AskedCall
from workbench.importers.journal import BegunContext, ContextWriter, RunJournal
from workbench.importers.threads import Contexts, Growing, TextResults
from workbench.language.clean import clean_line

MOST_CONTEXTS = 200
"""That calls may still go on with: those used last. An older one is over."""
FAULT = 300
"""Characters of a fault that the end of a run names."""
TOLD, TOLD_TEXT = 3, 40
"""Messages that a compaction names, and characters of each; its event holds them all."""
_SHAPING = ("response_format",)
"""Parameters that count among the tokens of every request of a context."""


class OpenContext(Struct, eq=False):
    """A context that is being written."""

    writer: ContextWriter
    results: TextResults
    number: int
    growing: Growing
    other: Assembly | None = None
    """The request that it waits for under the strategy that is priced beside it."""
    fault: str = ""
    """Why its last call that has ended got no answer; empty if it did."""
    ended: str = ""
    """When that was."""


def own_parameters(asked: AskedCall) -> tuple[str, dict[str, Any]]:
    """The ``tool_choice`` of a call, and its other parameters."""
    choice = asked.parameters.get("tool_choice")
    parameters = {key: value for key, value in asked.parameters.items() if key != "tool_choice"}
    return "" if choice is None else str(choice), parameters


class OpenContexts:
    """Writes each call into the context that it goes on with, or into a new one."""

    def __init__(self, run: RunJournal, strategy: Strategy | None = None, other: OtherStrategy | None = None) -> None:
        """``strategy``: what is sent of the messages; None for all. ``other``: what is priced beside it."""
        self._run = run
        self._strategy = strategy
        self._other = other
        self._contexts = Contexts(MOST_CONTEXTS)
        self._open: dict[Growing, OpenContext] = {}
        self._number = 0
        self._calls = self._failed = 0
        """Calls that have ended, and those of them that got no answer."""
        self._lost = 0
        """Contexts that are over, and whose last call got no answer."""
        self._fault: tuple[Place, str] = (Place(), "")
        """That call of the last of them, and why it got none."""
        self.output = ""
        """The text of the last answer of the context that ended last."""

    def asked(self, asked: AskedCall, at: str = "") -> OpenContext:
        """Write the request of a call, which is not sent yet, into its context, with the messages that are new in it.
        The context waits for the answer then. ``at``: when it was asked, by its source."""
        compacted = None
        self._run.clock.begins(at)
        growing, added = self._contexts.asked(asked.input, asked.model, asked.tools)
        if growing not in self._open:
            compacted = self._replaced(growing)
        context = self._context_of(growing, asked, added)
        if compacted is not None:
            self._tell_compaction(context, *compacted)
        choice, own = own_parameters(asked)
        context.writer.assemble(Call(marks=asked.marks, at=at), tool_choice=choice, parameters=own)
        if self._other is not None:
            context.other = self._other.assembled(context.writer)
        return context

    def answered(self, context: OpenContext, answer: ImportedMessage, call: Call, *, recorded: bool = False) -> None:
        """Write the answer to the call that a context waits for. ``recorded``: it was given before."""
        self._contexts.answered(context.growing, answer)
        context.results.marked(answer)
        writer = context.writer
        sent, prediction, other = writer.assembly, writer.prediction, context.other
        usage = writer.answered(answer, call, recorded=recorded)
        self._over(context)
        if self._other is not None and usage.input != 0:  # A call that a person answered was not sent.
            assert sent is not None
            assert prediction is not None
            assert other is not None
            now = timestamp(self._run.clock.now())
            told = self._other.priced(sent, prediction, other, usage, writer.newest, now)
            self._run.journal.emit("what_if", writer.at, **told)

    def failed(self, context: OpenContext, call: Call, *kind: str) -> None:
        """Write that no answer came to the call that a context waits for."""
        self._contexts.answered(context.growing, None)
        context.writer.failed(call, *kind)
        self._over(context, clean_line(call.fault, FAULT) or "no answer came")

    def _over(self, context: OpenContext, fault: str = "") -> None:
        """A call of a context has ended."""
        context.fault, context.ended = fault, self._run.clock.now()
        self._calls += 1
        self._failed += bool(fault)

    def holding(self, asked: AskedCall, answer: ImportedMessage) -> OpenContext | None:
        """The open context that begins with the messages of a call and its answer, and holds more: the call comes late,
        and those after it were told as if no call had made that answer. None where there is none."""
        growing = self._contexts.beginning((*asked.input, answer), asked.model, asked.tools)
        return self._open.get(growing) if growing is not None else None

    def goes_on(self, asked: AskedCall) -> bool:
        """Returns whether a call begins with what an earlier one saw and said."""
        return self._contexts.goes_on(asked.input, asked.model, asked.tools)

    def end(self, status: str, reason: str) -> tuple[str, str]:
        """End all of them. Returns the status of the run, and why it has it: one that ended well has failed all the
        same if no call of it was answered."""
        for context in self._open.values():
            self._end(context)
        self._open.clear()
        if status != "success" or not self._lost:
            return status, reason
        at, fault = self._fault
        if self._failed < self._calls:
            count = "the last call got no answer"
            if self._number > 1:
                count = f"{self._lost:,} of {self._number:,} contexts ended without an answer; the last"
            self._run.warn(f"{count}: {fault}", at, code="unanswered")
            return status, reason
        none = f"none of {self._calls:,} calls was answered; the last"
        return "failed", f"{none if self._calls > 1 else 'the call got no answer'}: {fault}"

    def _context_of(self, growing: Growing, asked: AskedCall, added: Sequence[ImportedMessage]) -> OpenContext:
        context, said = self._open.get(growing), list(added)
        if context is None:
            self._number += 1
            shaping = {name: asked.parameters[name] for name in _SHAPING if name in asked.parameters}
            forced = is_forced(asked.parameters.get("tool_choice"))
            told = asked.unstated, 1, asked.responses
            begun = BegunContext(asked.model, asked.tools, shaping, forced, *told)
            results = TextResults()
            said = list(map(results.marked, said))
            writer = ContextWriter(self._run, self._number, begun, said[:1], self._strategy)
            context = self._open[growing] = OpenContext(writer, results, self._number, growing)
            said = said[writer.taken :]
            self._forget()
        else:
            said = list(map(context.results.marked, said))
        for one in said:
            context.writer.add(one)
        return context

    def _forget(self) -> None:
        """End the contexts that no call can go on with any more."""
        for growing in self._contexts.forgotten():
            self._end(self._open.pop(growing))

    def _end(self, context: OpenContext) -> None:
        # Where a span came late, now is the time that it states: an end behind that would be nonsense.
        ended = {"ended": min(context.ended, self._run.clock.now())} if context.ended else {}
        self.output = context.writer.end("failed" if context.fault else "success", **ended) or self.output
        if context.fault:
            self._lost, self._fault = self._lost + 1, (context.writer.at, context.fault)
        if self._other is not None:
            self._other.forget(context.writer)

    def _replaced(self, growing: Growing) -> tuple[OpenContext, Sequence[Item]] | None:
        """The context that a new one takes the place of, and its messages that are gone."""
        before = self._contexts.compacted(growing)
        if before is None or before not in self._open:
            return None
        context = self._open[before]
        seen = zip(before.seen[context.writer.taken :], context.writer.items, strict=False)
        return context, [item for one, item in seen if not any(one.same(other) for other in growing.seen)]

    def _tell_compaction(self, context: OpenContext, before: OpenContext, gone: Sequence[Item]) -> None:
        counter, model = self._run.outside.counter, context.growing.model
        tokens = sum(counter.message(item.message, model)[0] for item in gone)
        words = "1 message is" if len(gone) == 1 else f"{len(gone)} messages are"
        told = [f"{item.message.role} {clean_line(item.message.text, TOLD_TEXT)!r}" for item in gone[:TOLD]]
        more = f" and {len(gone) - TOLD} more" if len(gone) > TOLD else ""
        self._run.warn(
            f"compaction: this context takes the place of context {before.number}; {words} gone (~{tokens:,} tokens): "
            f"{', '.join(told)}{more}",
            context.writer.place,
            code="compaction",
            messages=self._run.journal.items(gone),
        )
