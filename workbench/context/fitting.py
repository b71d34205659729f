"""Fits a growing context into its token budget: what has to go, oldest first, and what never goes.

System, task, tool definitions and the live turn (the last answer and what follows it) always stay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from workbench.context.assembly import Action, Grade, Item, Kind, Reason
from workbench.context.history import History
from workbench.context.message import Message, sha256
from workbench.context.part import OWN, WHOLE, MessageDecision
from workbench.context.parts.budget import Budget
from workbench.context.placeholder import masked_result
from workbench.context.scope import PhaseScope, Summary

# How far to go to gain enough: the one idea behind every budget.


class Frontier:
    """The shortest prefix of a growing list of gains that adds up to a need; moves no further than it must."""

    def __init__(self) -> None:
        self.gains: list[int] = []
        self.length = 0
        self.gained = 0
        """Sum of the gains in the prefix."""

    def change(self, index: int, by: int) -> None:
        """One gain has grown or shrunk."""
        self.gains[index] += by
        if index < self.length:
            self.gained += by

    def reach(self, need: int, limit: int, least: int = 0) -> range:
        """Move the frontier to the shortest prefix, between ``least`` and ``limit`` gains long, whose sum reaches
        ``need``.

        Takes the longest if none does. Returns the indices that changed sides. The result depends on the gains alone;
        the work depends on how far the frontier moves.
        """
        before = self.length
        while self.length < limit and (self.gained < need or self.length < least):
            self.gained += self.gains[self.length]
            self.length += 1
        while self.length > least and self.gained - self.gains[self.length - 1] >= max(need, 0):
            self.length -= 1
            self.gained -= self.gains[self.length]
        return range(min(before, self.length), max(before, self.length))


# The messages of one context while it is put together: what each part decided, and how large each one is.

IMAGES = 0
"""The layer that keeps the number of images down; no part overrules it."""


class FittingRow(Struct):
    """One message."""

    item: Item
    base: MessageDecision
    """The decision if no part decides."""
    tokens_full: int = 0
    own_tokens: int = 0
    """Of them, those of the message itself."""
    grade: Grade = Grade.EXACT
    layers: dict[int, MessageDecision] = field(default_factory=dict)
    """Verdicts by part; the highest number decides."""
    verdict: MessageDecision = WHOLE
    """The last decision, before the budget is applied."""
    sent: Message | None = None
    """The message that it sends."""
    tokens: int = 0
    """Its tokens."""
    sent_grade: Grade = Grade.EXACT
    budget: MessageDecision | None = None
    """The decision of the budget."""

    def decided(self) -> MessageDecision:
        """The verdict before the budget."""
        if not self.layers or self.item.edited == "dropped":
            return self.base
        verdict = self.layers[max(self.layers)]
        if verdict is WHOLE:
            verdict = self.base
        sends_all = verdict.sent is self.item.message
        return self.layers.get(IMAGES, verdict) if sends_all else verdict


class FittingTable(Struct):
    """All rows: first what entered, then the visit's own messages."""

    fixed: int
    """Tokens of tools and overhead."""
    rows: list[FittingRow] = field(default_factory=list)
    head: int = 0
    """How many rows precede the visit's own."""
    total: int = 0
    """Tokens of all rows before the budget."""
    full: int = 0
    """Tokens of all rows in full."""

    def add(self, row: FittingRow) -> int:
        """Append; its index."""
        self.rows.append(row)
        return len(self.rows) - 1

    def counted(self, row: FittingRow, tokens: int, grade: Grade) -> None:
        """Record the full tokens of a new row: those of its message and of text put before it."""
        own = tokens
        if any(part.origin == OWN for part in row.base.parts):
            sent = (part for part in row.base.parts if part.origin != OWN and part.action is not Action.DROPPED)
            tokens += sum(part.tokens_full for part in sent)
        row.tokens_full, row.own_tokens, row.grade = tokens, own, grade
        self.full += tokens

    def resize(self, row: FittingRow, tokens: int) -> None:
        """Record the tokens that a row sends now."""
        self.total += tokens - row.tokens
        row.tokens = tokens


class SummaryRequest(Struct, frozen=True):
    """A summary to make before the request is assembled again."""

    covers: str
    """For ``Summary.covers``."""
    items: tuple[Item, ...]
    """The messages to summarise, oldest first."""
    target: int
    """Tokens."""


class _Unit(Struct):
    """Messages that stay together: a turn, or one injected message."""

    rows: list[int] = field(default_factory=list)
    turn: int = 0
    """The visit's own turn; 0 for what entered."""


class _SummaryInUse(Struct, frozen=True):
    """The summary in use: how many of the oldest units it covers, and the message that stands for them."""

    units: int = 0
    message: Message | None = None
    tokens: int = 0


class Fitter:
    """The budget of one visit. ``added`` and ``resized`` tell it what changed; ``fit`` decides."""

    def __init__(
        self, budget: Budget, scope: PhaseScope, history: History, table: FittingTable, count: Callable[[Message], int]
    ) -> None:
        self.over = 0
        """Tokens above the limit after the last fit."""
        self.wanted: SummaryRequest | None = None
        """The summary that the last fit lacked."""
        self._budget = budget
        self._history = history
        self._table = table
        self._count = count
        self._rule = {name: budget.rule(name, scope) for name in ("max", "mode")}
        self._units: list[_Unit] = []
        self._turns = Frontier()
        """Whole turns, oldest first: those that entered, then the visit's own."""
        self._others: list[_Unit] = []
        self._last_resort = Frontier()
        """Injections that are no turns: they go when no turn is left."""
        self._first_user = sys.maxsize
        """The first of them that is a user's message."""
        self._unit_of: dict[int, tuple[Frontier, int]] = {}
        self._keys: dict[object, int] = {}
        self._settled = 0
        """How many units have left the live turn, and so may go."""
        self._results: list[int] = []
        self._prunes = Frontier()
        """Tool results of settled units, for prune_oldest."""
        self._pruned: dict[int, tuple[int, Message, int]] = {}
        """By row: index in ``_prunes``, the placeholder, its tokens."""
        self._summaries = list(scope.summaries)
        self._covered = [sha256("")]
        """Chain: digest of the messages in the first n settled units."""
        self._stand = _SummaryInUse()
        self._carrier = -1
        """The row that the summary goes out in."""

    def add_summary(self, summary: Summary) -> None:
        """Add a summary. It is used if the messages that it covers are the oldest."""
        self._summaries.append(summary)

    def added(self, index: int) -> None:
        """A row has joined the table."""
        item = self._table.rows[index].item
        if item.kind is Kind.TASK or item.message.role == "system":
            return
        is_own = index >= self._table.head
        if not is_own and item.place.turn == 0:
            self._unit_of[index] = (self._last_resort, len(self._others))
            self._others.append(_Unit([index]))
            if item.message.role == "user":
                self._first_user = min(self._first_user, index)
            self._last_resort.gains.append(0)
            return
        turn = self._history.turns[index - self._table.head] if is_own else 0
        key = turn if is_own else (item.source, item.place.turn_key)
        if key not in self._keys:
            self._keys[key] = len(self._units)
            self._units.append(_Unit(turn=turn))
            self._turns.gains.append(0)
        self._units[self._keys[key]].rows.append(index)
        self._unit_of[index] = (self._turns, self._keys[key])

    def resized(self, index: int, by: int) -> None:
        """A row's tokens before the budget have changed; ``FittingTable.rows`` holds the new value already."""
        if index not in self._unit_of:
            return
        frontier, unit = self._unit_of[index]
        if index in self._pruned:
            position, _, tokens = self._pruned[index]
            saving = max(self._table.rows[index].tokens - tokens, 0)
            grown = saving - self._prunes.gains[position]
            self._prunes.change(position, grown)
            by -= grown
        frontier.change(unit, by)

    def fit(self) -> set[int]:
        """Apply the budget again. Returns the rows that may have changed sides; ``decide`` gives their verdicts."""
        self._settle()
        limit = self._budget.limit
        need = 0 if limit is None else self._table.fixed + self._table.total - limit
        self.wanted = None
        if self._budget.mode == "fail":
            self.over = max(need, 0)
            return set()
        touched = set(self._prune(need)) if self._budget.mode == "prune_oldest" else set()
        need -= self._prunes.gained
        if self._budget.mode == "summarize":
            touched |= self._summarise(need)
            need += self._stand.tokens
        touched |= self._drop_turns(need)
        need -= self._turns.gained
        changed = self._last_resort.reach(need, len(self._others))
        touched |= {row for unit in changed for row in self._others[unit].rows}
        self.over = max(need - self._last_resort.gained, 0)
        return touched

    def decide(self, indices: Iterable[int]) -> None:
        """Set the budget's verdict of these rows."""
        for index in indices:
            self._table.rows[index].budget = self._verdict(index, self._table.rows[index])

    def _drop_turns(self, need: int) -> set[int]:
        """As many of the oldest turns as needed, and those after them that would leave an assistant at the front."""
        changed = [*self._turns.reach(need, self._settled, self._stand.units)]
        while self._opens_with_assistant(self._turns.length):
            changed += self._turns.reach(need, self._settled, self._turns.length + 1)
        return {row for unit in changed for row in self._units[unit].rows}

    def _opens_with_assistant(self, unit: int) -> bool:
        """Returns whether the first turn that stays entered from elsewhere and begins with an assistant's message
        without any message before it, or is blank.
        """
        if self._stand.units or not 0 < unit < self._settled or self._units[unit].turn:
            return False
        rows = self._table.rows
        first = next((row for row in self._units[unit].rows if rows[row].sent is not None), None)
        if first is None:
            return True
        return _role(rows[first]) == "assistant" and first < self._first_user

    # -- what may go -------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Units that the live turn has left behind may go from now on."""
        live = self._history.last_answered
        while self._settled < len(self._units):
            unit = self._units[self._settled]
            if unit.turn and unit.turn >= live:
                return
            self._settled += 1
            if self._budget.mode == "prune_oldest":
                self._offer_results(unit)
            elif self._budget.mode == "summarize":
                hashes = [self._table.rows[row].item.message.body_hash for row in unit.rows]
                self._covered.append(sha256("".join((self._covered[-1], *hashes))))

    def _offer_results(self, unit: _Unit) -> None:
        for index in unit.rows:
            row = self._table.rows[index]
            is_result = row.item.kind is Kind.RESULT or (row.item.kind is Kind.INJECTED and row.item.tool)
            if not is_result or row.item.message.images or row.sent is None:
                continue
            message = masked_result(row.item)
            if row.sent.role != message.role:
                message = Message("user", message.content)
            self._pruned[index] = (len(self._results), message, self._count(message))
            self._results.append(index)
            self._prunes.gains.append(0)
            self.resized(index, 0)

    def _prune(self, need: int) -> list[int]:
        return [self._results[i] for i in self._prunes.reach(need, len(self._results))]

    # -- summaries ---------------------------------------------------------------------------------------------------

    def _summarise(self, need: int) -> set[int]:
        """Choose the smallest summary that is enough, else the one that covers most; say which one is lacking."""
        before, self._stand = self._stand, _SummaryInUse()
        if need > 0:
            self._stand, is_enough = self._best_summary(need)
            if not is_enough:
                self.wanted = self._request(need)
        covered = (row for unit in self._units[: self._stand.units] for row in unit.rows)
        carrier = next((row for row in covered if self._table.rows[row].sent is not None), -1)
        if before == self._stand and carrier == self._carrier:
            return set()
        self._carrier = carrier
        units = self._units[: max(before.units, self._stand.units)]
        return {row for unit in units for row in unit.rows}

    def _best_summary(self, need: int) -> tuple[_SummaryInUse, bool]:
        covered = {digest: units for units, digest in enumerate(self._covered)}
        usable = sorted((covered[s.covers], s.text) for s in self._summaries if covered.get(s.covers))
        stand = _SummaryInUse()
        for units, text in usable:
            message = Message("user", f"[Summary of earlier turns]:\n{text}")
            stand = _SummaryInUse(units, message, self._count(message))
            if sum(self._turns.gains[:units]) - stand.tokens >= need:
                return stand, True
        return stand, False

    def _request(self, need: int) -> SummaryRequest | None:
        """Cover enough to get below the warning threshold, so that the next turns need no new summary."""
        limit = self._budget.limit or 0
        wished = need + limit - int(limit * self._budget.warn) + self._budget.target
        units, gained = 0, 0
        while units < self._settled and gained < wished:
            gained += self._turns.gains[units]
            units += 1
        if units <= self._stand.units:
            return None
        rows = [self._table.rows[row] for unit in self._units[:units] for row in unit.rows]
        items = tuple(row.item for row in rows if row.sent is not None)
        return SummaryRequest(self._covered[units], items, self._budget.target)

    # -- verdicts ----------------------------------------------------------------------------------------------------

    def _verdict(self, index: int, row: FittingRow) -> MessageDecision | None:
        if index not in self._unit_of or row.sent is None:
            return None
        frontier, unit = self._unit_of[index]
        limit = (self._budget.limit or 0,)
        if unit < frontier.length:
            if frontier is self._turns and unit < self._stand.units:
                return self._summarised(index)
            return MessageDecision(None, Action.DROPPED, Reason("budget", limit), self._rule["max"])
        if index in self._pruned:
            position, message, _ = self._pruned[index]
            if position < self._prunes.length and self._prunes.gains[position] > 0:
                return MessageDecision(message, Action.MASKED, Reason("budget_result", limit), self._rule["max"])
        return None

    def _summarised(self, index: int) -> MessageDecision:
        """The first message that a summary covers becomes the summary; the others are dropped."""
        if index == self._carrier:
            return MessageDecision(self._stand.message, Action.SUMMARIZED, Reason("summary"), self._rule["mode"])
        return MessageDecision(None, Action.DROPPED, Reason("summarized"), self._rule["mode"])


def _role(row: FittingRow) -> str:
    return row.sent.role if row.sent is not None else ""
