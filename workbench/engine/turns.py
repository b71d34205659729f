"""The turns of one attempt: message, call, tools, and whether there is another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.context.assembly import Kind
from workbench.engine import budget, texts
from workbench.engine.attempt import Attempted, Failure
from workbench.engine.audible import hear
from workbench.engine.calling import call_model
from workbench.engine.engine_tools import ROUTE_TO
from workbench.engine.hooking import fire, inject
from workbench.engine.toolcalls import read_calls, without_calls
from workbench.engine.tooling import Tooling, Wanted, native_calls, prompt_calls

if TYPE_CHECKING:
    from workbench.engine.execution import Execution


class Turns:
    """Runs an attempt's turns. The message that opens turn 1 is in the history already."""

    def __init__(self, execution: Execution, attempt: int) -> None:
        self.execution = execution
        self.attempt = attempt
        self.rules = execution.phase.rules
        self.text = ""
        """The last non-blank answer, calls removed."""
        self.route = ""
        self.feedback = ""
        """What an early check or a turn-ward says; opens the next turn."""
        self.judged: frozenset[str] = frozenset()
        self._answered_beside_calls = False
        self._calls = 0
        """Of the turn, so far."""

    async def run(self) -> Attempted:
        wanted: list[Wanted] = []
        failure: Failure | None = None
        for turn in range(1, self.rules.max_turns + 1):
            if turn > 1:
                self._open(turn)
            wanted = await self._turns(turn)
            await self._keep(counts=bool(self.execution.phase.wards.turn or self.rules.loop_until))
            failure = await self.execution.checks.after_turn(self._turn_text, self.attempt, turn)
            if not await self._goes_on(turn, wanted, failure):
                break
        if wanted and (not self.route or not self._answered_beside_calls):
            await self._closing_call(turn)
        await self._keep(counts=not self.execution.place().branch or self._is_judged)
        return Attempted(self.text, self.route, self.judged, failure)

    @property
    def _is_judged(self) -> bool:
        """Whether checks follow the attempt; else a candidate's answer counts when all are there."""
        phase = self.execution.phase
        return bool(phase.output_schema or phase.rules.loop_until or phase.wards.post)

    async def _keep(self, *, counts: bool) -> None:
        """Make the turn durable: at once where it is what now ``counts``, for a check or as the attempt's result; else
        together with what follows it, which is on the disk before a tool is. Branches do it together."""
        scribe = self.execution.engine.scribe
        if not counts:
            scribe.sync_soon()
        elif self.execution.place().branch:
            await scribe.synced()
        else:
            scribe.sync()

    def _open(self, turn: int) -> None:
        """The message of a later turn, if it needs one: tool results already ask."""
        execution, rules = self.execution, self.rules
        parts = [self.feedback] if self.feedback else []
        self.feedback = ""
        if rules.turn_prompt:
            path = (*execution.path, "rules", "turn_prompt")
            parts.append(execution.render(rules.turn_prompt, path, turn=turn, max_turns=rules.max_turns))
        elif not parts and not self._has_tools:
            parts.append(texts.CONTINUE)
        text = "\n\n".join(part for part in parts if part.strip())
        if text:
            execution.add(Kind.PROMPT, text, execution.place(self.attempt, turn))

    @property
    def _has_tools(self) -> bool:
        return any(name != ROUTE_TO for name in self.execution.tool_names)

    async def _turns(self, turn: int) -> list[Wanted]:
        """One turn, again as often as a person asks for it; the calls of its last answer."""
        execution, self._calls, route = self.execution, 0, self.route
        await fire(execution.engine, "turn_start", execution.place(self.attempt, turn, 1), {"model": execution.model})
        wanted = await self._turn(turn, "turn")
        while wanted is None or await hear(execution, execution.place(self.attempt, turn, self._calls), redo=True):
            self.route = route
            wanted = await self._turn(turn, "redo")
        return wanted

    async def _turn(self, turn: int, purpose: str) -> list[Wanted] | None:
        """One answer and its tools; None where a person asked for the turn again before the tools had run."""
        self._calls += 1
        place = self.execution.place(self.attempt, turn, self._calls)
        inject(self.execution, place)
        await budget.prepare(self.execution, place)
        await call_model(self.execution, place, purpose)
        wanted = self._read()
        if wanted:
            tooling = Tooling(self.execution, place)
            await tooling.run(wanted)
            self.route = tooling.route or self.route
            if tooling.left:
                return None
        return wanted

    def _read(self) -> list[Wanted]:
        """The calls of the answer that joined the history, secrets replaced; its text, calls removed, is the attempt's
        text so far. Native calls are read where the phase has no native tools as well: every call needs its result."""
        execution = self.execution
        message = execution.items[-1].message
        redacted = message.text
        if execution.native or message.tool_calls:
            wanted, text = native_calls(message), redacted.strip()
        else:
            read = read_calls(redacted, execution.tool_names)
            wanted, text = prompt_calls(read), without_calls(redacted, read)
        self._turn_text = text
        self._answered_beside_calls = bool(text)
        self.text = text or self.text
        return wanted

    async def _goes_on(self, turn: int, wanted: Sequence[Wanted], failure: Failure | None) -> bool:
        """Whether another turn follows; an early check may say that the attempt is done."""
        rules = self.rules
        if turn >= rules.max_turns or self.route:
            return False
        if failure is not None:
            self.feedback = failure.reason
            return True
        if any(call.name != ROUTE_TO for call in wanted) or rules.turn_prompt:
            return True
        if rules.loop_until and not wanted:
            return not await self._passes_early(turn)
        return not self._has_tools and not rules.loop_until

    async def _passes_early(self, turn: int) -> bool:
        early, self.judged = await self.execution.checks.early(self._turn_text, self.attempt, turn)
        if early is None:
            return True
        self.feedback = f"Not accepted yet: {early.reason}"
        return False

    async def _closing_call(self, turn: int) -> None:
        execution = self.execution
        place = execution.place(self.attempt, turn, self._calls + 1)
        inject(execution, place)
        execution.add(Kind.CLOSING, texts.CLOSING, place)
        forbid = "none" if execution.native and execution.tool_names else ""
        await call_model(execution, place, "closing", tool_choice=forbid)
        if (late := self._read()) and execution.items[-1].message.tool_calls:
            Tooling(execution, place).close(late)
