"""Puts together what each model call of a visit sees. One more turn costs what it changes, not what came before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from workbench.context.assembly import (
    SYSTEM_TEXT,
    Action,
    Assembly,
    BrokenInvariant,
    BudgetFit,
    Entry,
    Grade,
    Item,
    Kind,
    Reason,
    Request,
    Rule,
)
from workbench.context.diff import splices_between, splices_of
from workbench.context.edits import EDIT_RULE
from workbench.context.fitting import IMAGES, Fitter, FittingRow, FittingTable, SummaryRequest
from workbench.context.history import History
from workbench.context.invariants import (
    Sent,
    boundary,
    check_altered,
    check_ends,
    check_presence,
    check_run,
    check_tools,
    in_order,
)
from workbench.context.ledger import Ledger, Work, request_digest, seed_digest, worse
from workbench.context.message import Message, canonical
from workbench.context.own_messages import FreshAttempts, RecentImages, own_verdict
from workbench.context.part import (
    WHOLE,
    DecisionInput,
    EnteredMessages,
    EnteringPart,
    MessageDecision,
    Survivor,
    TaskPart,
)
from workbench.context.place import Place
from workbench.context.scope import PhaseScope, Summary
from workbench.context.strategy import Strategy
from workbench.context.tokens import Counter, Tally

# The messages that precede a visit's own: the tool text, other system texts, and what enters from other phases.


def opening(scope: PhaseScope, entering: EnteringPart | None, count: Callable[[Message], int]) -> EnteredMessages:
    """These messages in wire order: tool text, other system texts, the rest in order.

    ``count`` gives the tokens of a message.
    """
    rows: list[tuple[Item, MessageDecision]] = []
    if scope.tool_text:
        message = Message("system", scope.tool_text)
        verdict = MessageDecision(message, Action.KEPT, Reason("always"), scope.rule("tackle"))
        rows.append((Item(message, Kind.SYSTEM, scope.place), verdict))
    elif scope.system_text:
        message = Message("system", scope.system_text)
        item = Item(message, Kind.SYSTEM, scope.place, source=SYSTEM_TEXT)
        rows.append((item, MessageDecision(message, Action.KEPT, Reason("system"), Rule())))
    entered = EnteredMessages()
    if entering is not None:
        entered = entering.enter(scope, count)
    hoisted = [_is_system(verdict) for _, verdict in entered.rows]
    rows += [row for row, is_system in zip(entered.rows, hoisted, strict=True) if is_system]
    rows += [row for row, is_system in zip(entered.rows, hoisted, strict=True) if not is_system]
    return EnteredMessages(tuple(rows), entered.notes)


def _is_system(verdict: MessageDecision) -> bool:
    return verdict.sent is not None and verdict.sent.role == "system"


_FORCED: Final = re.compile(r"\b(any|required|tool|function)\b", re.IGNORECASE)
MANY: Final = 200
"""Messages taken at once from which on looking for garbage among them would take longer than it could free."""


class Assembler:
    """The contexts of one phase visit, in order. Give it each message of the visit once, when it joins the history."""

    def __init__(
        self,
        scope: PhaseScope,
        strategy: Strategy,
        counter: Counter,
        previous: Assembly | None = None,
        *,
        entered: EnteredMessages | None = None,
    ) -> None:
        """``strategy`` is laid over the file's own, so it may leave open what enters or what fits. ``previous`` is the
        last assembly of the same branch; the first one here is diffed against it. ``entered`` holds the messages that
        precede the visit's own, if an edit has changed them.

        Raises SpecError when the file's own ``strategy`` cannot be read.
        """
        if not strategy.whole:
            strategy = strategy.over(Strategy.of(scope.cascade, scope.phase, scope.base, scope.arrival))
        self.strategy = strategy
        self._spec = str(self.strategy)
        self.work = Work()
        self._scope = scope
        self._counter = counter
        self._previous = previous
        self._history = History()
        model = self._model = scope.counted_as or scope.model
        tools, forced, responses = scope.tools, scope.forced, scope.responses
        tools_tokens, self._tools_grade = counter.tools(tools, model, forced=forced, responses=responses)
        self._tools_tokens = tools_tokens
        self._shapes: dict[tuple[str, bool, bool], int] = {}
        """Tokens beside messages and tools, by the schema of the answer, if the model has to think, and JSON mode."""
        self._choices: dict[str, int] = {}
        """Tokens of the tools, by the choice of tools."""
        self._overhead, shaped = self._beside(scope.parameters)
        # The rule that OpenAI published is that of Chat Completions: its Responses API counts a few tokens otherwise.
        if responses:
            self._tools_grade = worse(self._tools_grade, Grade.ESTIMATE)
        self._tools_grade = worse(self._tools_grade, shaped)
        self._table = FittingTable(tools_tokens + self._overhead)
        self._ledger = Ledger(seed_digest(scope.model, scope.tools), tools_tokens, self.work)
        self._fitter = self._fitting()
        self._tasks: list[int] = []
        self._dirty: set[int] = set()
        self._run_faults: list[BrokenInvariant] = []
        self._altered_faults: dict[int, BrokenInvariant] = {}
        self._last: tuple[Assembly, Place] | None = None
        self._added = False
        self._pending: list[Item] = []
        """Messages that have joined the history since the last assembly."""
        self._late: list[int] = []
        """Rows that are not counted yet."""
        self._summaries: list[Summary] = []
        self.entered = entered or opening(scope, self.strategy.enters, lambda message: self._count(message)[0])
        """The messages that precede the visit's own, in wire order."""
        self._notes = self._enter()
        self._survivors = self._surviving()

    # -- what goes in ------------------------------------------------------------------------------------------------

    def add(self, item: Item) -> None:
        """A message of the visit has joined the history. It is counted and looked at by the next assembly."""
        self._pending.append(item)
        self._added = True

    def edited(self, scope: PhaseScope, entered: EnteredMessages, items: Iterable[Item]) -> Assembler:
        """An assembler of the same visit after an edit of its history. Its next assembly is diffed against the last one
        of this assembler. Takes time proportional to the history; edits come from people and are rare.
        """
        scope = replace(scope, summaries=(*scope.summaries, *self._summaries))
        previous = self._last[0] if self._last is not None else self._previous
        other = Assembler(scope, self.strategy, self._counter, previous, entered=entered)
        other._summaries = list(self._summaries)
        for item in items:
            other.add(item)
        return other

    def add_summary(self, summary: Summary) -> None:
        """A summary that ``summary_wanted`` asked for."""
        self._summaries.append(summary)
        if self._fitter is not None:
            self._fitter.add_summary(summary)
            self._added = True

    @property
    def summary_wanted(self) -> SummaryRequest | None:
        """The messages to summarise before assembling again, with ``token_budget.strategy: summarize``; else None.

        If no summary is added, the oldest turns are dropped.
        """
        return self._fitter.wanted if self._fitter is not None else None

    # -- what comes out ----------------------------------------------------------------------------------------------

    def assemble(self, place: Place, *, tool_choice: str = "", parameters: Mapping[str, Any] | None = None) -> Assembly:
        """The context of the call at ``place``. Assembling does not change the result of any later assembly.

        ``parameters`` override those of the scope; ``tool_choice`` overrides both.
        """
        changed = self._changed_entries(place)
        length = len(self._ledger.entries)
        position = self._ledger.apply(changed)
        problems = self._problems(position, changed)
        entries = tuple(self._ledger.entries)
        if self._last is None:
            splices = splices_between(self._previous.entries if self._previous else (), entries)
        else:
            splices = splices_of(changed, length)
        request = self._request({**self._scope.parameters, **(parameters or {})}, tool_choice)
        overhead, shaped = self._beside(request.parameters)
        tools = self._shown_tools(request.parameters.get("tool_choice"))
        more = overhead - self._overhead + tools - self._tools_tokens
        problems += self._unrepeated(place, request)
        fit = self._fit()
        over = (f"{fit.over:,} tokens over the budget of {fit.limit:,}",) if fit is not None and fit.over else ()
        assembly = Assembly(
            strategy=self._spec,
            entries=entries,
            splices=splices,
            request=request,
            tools_tokens=tools,
            overhead_tokens=overhead,
            tokens_full=self._table.fixed + self._table.full + more,
            tokens_sent=self._sent_tokens + more,
            grade=worse(worse(self._ledger.grade, self._tools_grade), shaped),
            problems=in_order(problems),
            notes=self._notes + over,
            fit=fit,
            sent_entries=tuple(self._ledger.sent),
            prefix_digests=tuple(self._ledger.digests),
            prefix_tokens=tuple(self._ledger.tokens),
        )
        self._last, self._added = (assembly, place), False
        return assembly

    @property
    def _sent_tokens(self) -> int:
        return self._ledger.tokens[-1] + self._overhead

    def _beside(self, parameters: Mapping[str, Any]) -> tuple[int, Grade]:
        """Tokens of a request beside its messages and tools, by its parameters, and their grade."""
        schema, thinking, as_json = answer_schema(parameters), has_to_think(parameters), has_to_be_json(parameters)
        shape = schema, thinking, as_json
        if shape not in self._shapes:
            self._shapes[shape] = self._counter.overhead(self._model, schema, thinking=thinking, as_json=as_json)
        return self._shapes[shape], Grade.ESTIMATE if schema else Grade.EXACT

    def _shown_tools(self, choice: object) -> int:
        """Tokens of the tools under the ``tool_choice`` of a request: which of them a model sees, and what its provider
        says of them, depends on it."""
        scope, said = self._scope, str(choice or "")
        if not said or not scope.tools:
            return self._tools_tokens
        if said not in self._choices:
            how = {"forced": is_forced(choice), "responses": scope.responses}
            self._choices[said] = self._counter.chosen(scope.tools, self._model, said, **how)
        return self._choices[said]

    def _request(self, parameters: dict[str, Any], tool_choice: str) -> Request:
        if tool_choice:
            parameters["tool_choice"] = tool_choice
        digest = request_digest(self._ledger.digests[-1], parameters)
        return Request(self._scope.model, parameters, self._scope.tools, tuple(self._ledger.messages), digest)

    def _fit(self) -> BudgetFit | None:
        budget = self.strategy.fits
        if self._fitter is None or budget is None or budget.limit is None:
            return None
        warns = self._sent_tokens > budget.warn * budget.limit
        return BudgetFit(budget.limit, budget.mode, self._fitter.over, warns)

    # -- building ----------------------------------------------------------------------------------------------------

    def _enter(self) -> tuple[str, ...]:
        self._table.head = len(self.entered.rows)
        tally = self._counter.tally(self._model)
        for item, verdict in self.entered.rows:
            self._add_row(FittingRow(item, verdict), tally)
        self._measure(self._dirty, self._altered(self._dirty, tally), tally)
        return self.entered.notes

    def _surviving(self) -> dict[int, Survivor]:
        """The parts that decide about the visit's own messages, by layer; a higher layer wins."""
        keep, fixed = self._scope.keep_recent_images, self._table.fixed + self._table.total
        ground = DecisionInput(self._scope, self._history, self._counting(), fixed)
        survivors = {layer: part.start(ground) for layer, part in enumerate(self.strategy.survives, IMAGES + 1)}
        if self._scope.fresh_retries:
            survivors[IMAGES + 1 + len(self.strategy.survives)] = FreshAttempts(self._history)
        return survivors if keep is None else {IMAGES: RecentImages(keep, self._history)} | survivors

    def _fitting(self) -> Fitter | None:
        budget = self.strategy.fits
        if budget is None or budget.limit is None:
            return None
        return Fitter(budget, self._scope, self._history, self._table, self._counting())

    def _take_pending(self, tally: Tally) -> None:
        """Tell every part about the messages that joined the history, and record the verdict that holds if no part
        decides. Tokens are counted in the background meanwhile.

        An answer's own verdict names the tools that it called, so it is made once all messages are known.
        """
        pending, self._pending = self._pending, []
        history, table, survivors = self._history, self._table, tuple(self._survivors.values())
        fresh = range(len(history.items), len(history.items) + len(pending))
        undecided: list[int] = []
        for item in pending:
            answer = history.add(item)
            if answer is not None and answer < fresh.start:
                undecided.append(answer)
            row = self._add_row(FittingRow(item, WHOLE), tally)
            if item.kind is Kind.TASK:
                self._tasks.append(row)
        for index in (*undecided, *fresh):
            table.rows[table.head + index].base = self._base(index)
        self._dirty.update(table.head + index for index in undecided)
        history.late = partial(self._settle, tally)
        for index in fresh:
            if history.items[index].edited != "dropped":
                for survivor in survivors:
                    survivor.added(index)

    def _base(self, index: int) -> MessageDecision:
        """The verdict on one of the visit's own messages if no surviving part decides."""
        entering, item = self.strategy.enters, self._history.items[index]
        first = item.kind is Kind.TASK and self._tasks[0] == self._table.head + index
        if first and item.edited != "dropped" and isinstance(entering, TaskPart):
            return entering.task(self._scope, item.message, self._counting())
        return own_verdict(self._scope, self._history, index)

    def _add_row(self, row: FittingRow, tally: Tally) -> int:
        tally.add(row.item.message)
        index = self._table.add(row)
        self._late.append(index)
        self._dirty.add(index)
        if self._fitter is not None:
            self._fitter.added(index)
        return index

    def _changed_entries(self, place: Place) -> dict[int, Entry]:
        """Let every part decide again, and make the entries that changed."""
        rows, tally = self._table.rows, self._counter.tally(self._model)
        decide = partial(self._decide, place, tally)
        dirty, altered = tally.beside(decide) if len(self._pending) > MANY else decide()
        self._measure(dirty, altered, tally)
        if self._fitter is not None:
            dirty |= self._fitter.fit()
            self._fitter.decide(dirty)
        before = self._ledger.entries
        changed: dict[int, Entry] = {}
        for index in sorted(dirty):
            entry = self._entry(rows[index])
            if index >= len(before) or entry != before[index]:
                changed[index] = entry
        return changed

    def _decide(self, place: Place, tally: Tally) -> tuple[set[int], list[int]]:
        """Take what has joined the history, and let every part decide anew. Returns the rows that may send something
        else now, and the ``_altered`` ones among them."""
        self._take_pending(tally)
        dirty, self._dirty = self._dirty, set()
        turn, rows, head = self._history.turn(place), self._table.rows, self._table.head
        for layer, survivor in self._survivors.items():
            for own, verdict in survivor.update(turn, place.attempt):
                rows[head + own].layers[layer] = verdict
                dirty.add(head + own)
        return dirty, self._altered(dirty, tally)

    def _altered(self, indices: Iterable[int], tally: Tally) -> list[int]:
        """Settle what these rows send. Returns those that send another message than the history's, which the tally
        gets."""
        rows, altered = self._table.rows, list[int]()
        for index in indices:
            row = rows[index]
            verdict = row.verdict = row.decided() if row.layers else row.base
            sent = row.sent = verdict.sent
            if sent is not None and sent is not row.item.message:
                altered.append(index)
                tally.add(sent)
        return altered

    def _measure(self, indices: Iterable[int], altered: Sequence[int], tally: Tally) -> None:
        """How large is what these rows send."""
        rows = self._table.rows
        sizes = dict(zip(altered, self._settle(tally), strict=True))
        for index in indices:
            row = rows[index]
            tokens, row.sent_grade = row.own_tokens if row.sent is not None else 0, row.grade
            if index in sizes:
                tokens, grade = sizes[index]
                row.sent_grade = worse(grade, row.grade)
            if tokens != (before := row.tokens):
                self._table.resize(row, tokens)
                if self._fitter is not None:
                    self._fitter.resized(index, tokens - before)

    def _settle(self, tally: Tally) -> list[tuple[int, Grade]]:
        """Collect the token counts of the rows that have none yet. Returns the counts of the rows at the end of the
        tally.
        """
        table, history, late, counts = self._table, self._history, self._late, tally.counts()
        self._late, history.late = [], None
        self.work.counted += len(counts)
        for index, (tokens, grade) in zip(late, counts, strict=False):
            table.counted(table.rows[index], tokens, grade)
            if index >= table.head:
                history.sized(tokens)
        return counts[len(late) :]

    def _entry(self, row: FittingRow) -> Entry:
        verdict = row.budget or row.verdict
        sent = verdict.sent
        tokens, grade = (row.tokens, row.sent_grade) if sent is row.sent else self._size(sent, row)
        self.work.entries += 1
        reason, rule = verdict.reason, verdict.rule
        if row.item.edited and sent is row.item.message:
            reason, rule = Reason("edited", (row.item.edited,)), EDIT_RULE
        return Entry(row.item, sent, verdict.action, reason, rule, row.tokens_full, tokens, grade, verdict.parts)

    def _size(self, sent: Message | None, row: FittingRow) -> tuple[int, Grade]:
        """Tokens of what is sent, with the worse grade of the two counts."""
        if sent is row.item.message:
            return row.own_tokens, row.grade
        if sent is None:
            return 0, row.grade
        tokens, grade = self._count(sent)
        return tokens, worse(grade, row.grade)

    def _count(self, message: Message) -> tuple[int, Grade]:
        self.work.counted += 1
        return self._counter.message(message, self._model)

    def _counting(self) -> Callable[[Message], int]:
        """Counts for parts that the assembler keeps. It does not hold the assembler: all of a visit is freed at once
        when it is let go, and waits for no collector."""
        work, counter, model = self.work, self._counter, self._model

        def count(message: Message) -> int:
            work.counted += 1
            return counter.message(message, model)[0]

        return count

    # -- checking ----------------------------------------------------------------------------------------------------

    def _problems(self, position: int, changed: Mapping[int, Entry]) -> list[BrokenInvariant]:
        ledger = self._ledger
        for index, entry in changed.items():
            if self._altered_faults:
                self._altered_faults.pop(index, None)
            if (fault := check_altered(entry, index)) is not None:
                self._altered_faults[index] = fault
        if changed:
            self._recheck(position)
        last = len(ledger.messages) - 1
        first = next((i for i, m in enumerate(ledger.messages) if m.role != "system"), last)
        problems = [*self._run_faults, *self._altered_faults.values()]
        problems += check_ends([Sent(ledger.messages[i], ledger.sent[i]) for i in (first, last) if i >= 0])
        problems += check_presence(ledger.entries, self._tasks, self._scope.tool_text, self._scope.system_text)
        if self._previous is not None:
            problems += check_tools(self._scope.tools, self._previous.request.tools)
        return problems

    def _recheck(self, position: int) -> None:
        ledger = self._ledger
        start = boundary(ledger.messages, position)
        kept_to = ledger.sent[start - 1] if start else -1
        self._run_faults = [fault for fault in self._run_faults if fault.entry <= kept_to]
        fresh = ledger.messages[start:]
        self._run_faults += check_run(fresh, ledger.sent[start:], ledger.messages[start - 1] if start else None)
        self.work.checked += len(fresh)

    def _unrepeated(self, place: Place, request: Request) -> list[BrokenInvariant]:
        """Rule 13: assembling the same place again, with nothing added, gives the same request."""
        if self._last is None or self._added or self._last[1] != place:
            return []
        before = self._last[0].request
        if before.parameters == request.parameters and before.digest != request.digest:
            return [BrokenInvariant(13, "assembling again for the same call gave another request")]
        return []


def is_forced(choice: object) -> bool:
    """Returns whether a ``tool_choice`` makes the model call a tool, in whichever provider's words."""
    # Bedrock writes {"any": {}} and {"tool": {"name": …}}.
    said = str(choice.get("type") or " ".join(map(str, choice))) if isinstance(choice, Mapping) else str(choice or "")
    return bool(_FORCED.search(said))


def has_to_think(parameters: Mapping[str, Any]) -> bool:
    """Returns whether a request gives the model a budget for reasoning; a model that decides for itself (``adaptive``)
    is not told about it."""
    asked, gateway = parameters.get("thinking"), parameters.get("reasoning")  # OpenRouter's form, for every model
    effort = parameters.get("reasoning_effort")
    if isinstance(gateway, Mapping):
        effort = effort or gateway.get("effort") or gateway.get("max_tokens") or gateway.get("enabled") is True or None
    return (isinstance(asked, Mapping) and asked.get("type") == "enabled") or effort not in (None, "", "none")


def has_to_be_json(parameters: Mapping[str, Any]) -> bool:
    """Returns whether the answer has to be JSON, of any form (JSON mode)."""
    asked = parameters.get("response_format")
    return isinstance(asked, Mapping) and asked.get("type") == "json_object"


_NOT_SHOWN = ("additionalProperties", "$schema")
_NAMED = ("properties", "$defs", "definitions")


def answer_schema(parameters: Mapping[str, Any]) -> str:
    """The JSON Schema that the answer has to follow, as text, because providers show it to the model; empty without
    one.

    Its tokens are an estimate: providers do not document how they show it. Measured on recordings of OpenAI's API, what
    says that nothing else is allowed, and of which dialect a schema is, is not shown, but its description is.
    """
    asked = parameters.get("response_format")
    named = asked.get("json_schema") if isinstance(asked, Mapping) else None
    if not isinstance(named, Mapping) or not isinstance(schema := named.get("schema"), Mapping):
        return ""
    described = [str(named[name]) for name in ("name", "description") if named.get(name)]
    return " ".join([*described, canonical(_shown(schema))])


def _shown(schema: Any, *, names: bool = False) -> Any:
    """The part of a schema that a model is shown. ``names``: the keys are names of properties, not words of schemas."""
    if isinstance(schema, Mapping):
        kept = {key: value for key, value in schema.items() if names or key not in _NOT_SHOWN}
        return {key: _shown(value, names=not names and key in _NAMED) for key, value in kept.items()}
    return [_shown(one) for one in schema] if isinstance(schema, list | tuple) else schema
