"""Runs and scores single cells of a batch, on the event loop of the command or of one of its worker processes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from workbench.analysis.batch.matrix import DONE, BatchPlan, CellResult
from workbench.analysis.batch.rows import InputRow, session_names
from workbench.analysis.batch.scoring import Scorer
from workbench.context.assembly import Grade
from workbench.engine.gate import Decision, RunStopped, Stop, StopKind, open_gate
from workbench.models.tape import leaving
from workbench.store.faults import StoreError
from workbench.workspace.batch.judging import JudgedCell, Judges
from workbench.workspace.batch.resuming import going_on, in_doubt, once_resumed, output_of, settled
from workbench.workspace.model_ports import model_for
from workbench.workspace.run_builder import (
    CommonPorts,
    Connected,
    RunAttachments,
    Start,
    common_ports,
    run_new,
)
from workbench.workspace.system import SystemIds

if TYPE_CHECKING:
    from workbench.engine.contracts import Model, Notice
    from workbench.engine.journal.event import Event
    from workbench.store.summary import RunSummary
    from workbench.workspace.batch.planning import PreparedBatch
    from workbench.workspace.project import Project


_BEGIN_TOGETHER = 8
"""Rows that begin at a time. If all rows of an event loop began together, they would go step by step side by side: all
requests would leave at the same time, all answers would come at the same time, and between the two the processor would
have nothing to do. One at a time costs a tenth more: what a step needs is no longer in the processor's cache."""
_BEGINNING = 0.05
"""Seconds after which a row has begun for the others, whatever it waits for."""


class CellTask(Struct, frozen=True):
    """One cell that is to be run, or only scored."""

    key: str
    row: int
    """Its place in the plan, as the two that follow."""
    variant: int
    repetition: int
    known: CellResult | None = None
    """The result that earlier commands wrote for it."""
    retry: bool = False
    """Run it anew where it ended without success."""

    def is_done(self, status: str) -> bool:
        """Returns whether a run that ended like this stays as it is."""
        return status in DONE and not (self.retry and status != "success")


class MayCost(Struct, frozen=True):
    """US dollars that a call may cost, before it is sent."""

    model: str
    phase: str
    request: float
    """By the upper end of its forecast."""
    answer: float | None
    """For as many tokens as the request allows; None where it sets no limit."""

    @property
    def kind(self) -> tuple[str, str]:
        """Model and phase: the answers of one kind are about as long as each other."""
        return self.model, self.phase

    @classmethod
    def of(cls, event: Event) -> MayCost:
        """From a ``context_assembled``."""
        forecast, request, price = (event.data.get(part) or {} for part in ("forecast", "request", "price"))
        parameters = request.get("parameters") or {}
        limits = [parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
        tokens = min((one for one in limits if isinstance(one, int)), default=None)
        answer = None if tokens is None else tokens * (parameters.get("n") or 1) * (price.get("output") or 0.0)
        phase = event.place.phase if event.place is not None else ""
        cost = forecast.get("cost_high") or forecast.get("cost") or 0.0
        return cls(str(request.get("model")), phase, cost, answer)


class Ledger(Protocol):
    """The command as a cell needs it: the one place where results, money and stops are kept."""

    def write(self, record: Mapping[str, Any]) -> None:
        """Write down what came of a cell. Raises StoreError."""
        ...

    async def afford(self, cell: str, place: str, call: MayCost) -> None:
        """Wait until the budget has room for a call. Raises RunStopped where it never will have."""
        ...

    def answered(self, cell: str, place: str, cost: float | None, *, succeeded: bool, again: bool) -> None:
        """A call came back; ``again``: it is sent once more. ``cost`` in US dollars, None where it is not known."""
        ...

    def over(self, cell: str) -> None:
        """Nothing of the cell is asked for any more: it is only written down. Need not be told."""
        ...

    def noted(self, notes: Sequence[str]) -> None:
        """Sentences for the user that concern no row."""
        ...

    def corrected(self, cell: str, cost: float) -> None:
        """Adds the cost of a run that is not in the calls that were told, in US dollars: embeddings, or calls of a
        process that was killed. No call of the cell is on its way any more."""
        ...


class Cells:
    """Runs cells side by side. All that they have in common is made once."""

    def __init__(
        self,
        project: Project,
        batch: PreparedBatch,
        ledger: Ledger,
        *,
        model: str = "",
        budgeted: bool = False,
        rerun_tools: bool = False,
    ) -> None:
        """``model`` is what a person named for calls that name none; ``budgeted``: the ledger is asked before each
        call. Raises ScorerError."""
        self._project, self._batch, self._ledger = project, batch, ledger
        self._budgeted, self._rerun_tools = budgeted, rerun_tools
        self._row_names = session_names(batch.plan.rows, by_id=batch.plan.by_id)
        self.judges = Judges(project, batch.plan.scorers, batch.setups[0], self._watch, model)
        self._ports = _ports_of(project, batch)
        """Who answers the runs of each variant, and what they have in common."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = ""
        self._beginning = asyncio.Semaphore(_BEGIN_TOGETHER)
        self._counted: dict[str, float] = {}
        """US dollars told of the calls of each cell that is going on."""

    @property
    def may_run_users_code(self) -> bool:
        """Whether a tool, a hook or a scorer of the user's may be called in the process of these cells."""
        toolboxes = {id(common): common.toolbox for _, common in self._ports}
        made = (toolbox() for toolbox in toolboxes.values())
        return any(one.registry.may_run_users_code for one in (self.judges.toolbox, *made))

    def stop(self, why: str, *, cut: bool = False) -> None:
        """Stop what is going on before its next call or tool, or at once where it is ``cut``: it can be resumed. On the
        loop of ``run``."""
        self._stopping = self._stopping or why
        for task in self._tasks if cut else ():
            task.cancel()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Load what answers, and close it at the end."""
        models = dict.fromkeys([*(model for model, _ in self._ports), *self.judges.models])
        live = [model for model in models if isinstance(model, Connected)]
        await asyncio.gather(*(model.warm() for model in live))
        try:
            yield
        finally:
            await self.judges.aclose()
            for model in live[:1]:  # It closes all connections of the loop.
                await model.aclose()

    async def run(self, task: CellTask) -> None:
        """Run a cell and score what it answered; all of it goes to the ledger. Raises StoreError, and CancelledError
        where it was stopped."""
        work = asyncio.ensure_future(self._run(task))
        self._tasks.add(work)
        try:
            await work
        finally:
            self._tasks.discard(work)
            self._counted.pop(task.key, None)

    async def _begin(self) -> Callable[[], None]:
        """Wait for a turn to begin, which ends when the first request of the row is sent. Returns what ends it."""
        await self._beginning.acquire()
        has_begun = False

        def begun() -> None:
            nonlocal has_begun
            if not has_begun:
                has_begun = True
                self._beginning.release()

        asyncio.get_running_loop().call_later(_BEGINNING, begun)
        leaving.set(begun)
        return begun

    async def _run(self, task: CellTask) -> None:
        begun = await self._begin()
        try:
            if not self._stopping:
                await self._run_and_score(task)
        finally:
            begun()

    async def _run_and_score(self, task: CellTask) -> None:
        known = task.known
        if known is None or not task.is_done(known.status):
            known = await self._executed(task)
        if known.status == "success":
            for scorer in self._batch.plan.scorers:
                if scorer.name not in known.scores and not self._stopping:
                    await self._score(task.key, scorer, known, self._batch.plan.rows[task.row])

    async def _executed(self, task: CellTask) -> CellResult:
        key, known = task.key, task.known
        setup, plan = self._batch.setups[task.variant], self._batch.plan
        session = _session(plan, self._row_names[task.row], task)
        run_id, stored = "", None
        if known is not None and known.run and known.status not in DONE:
            run_id, stored = known.run, await settled(self._project, known.run)
            session = known.session or session
        if known is not None and stored is not None:  # What a killed process spent is counted before more is spent.
            self._ledger.corrected(key, stored.cost - known.spent)
            self._counted[key] = stored.cost
        if stored is not None and stored.status in DONE:  # It ended, and the process before that was written down.
            ended = self._ended(key, stored, session, stored.status, stored.reason)
            if task.is_done(ended.status):
                return ended
            stored = None
        options = replace(setup.options, session_id=session)
        input = self._batch.input(task.row, task.variant)
        start = Start(setup.definition, setup.file, input, setup.choice, options, self._batch.sandbox)
        found: list[RunSummary] = []
        try:
            if stored is None:
                run_id = SystemIds().run_id()
                self._ledger.write({"kind": "begun", "cell": key, "run": run_id, "session": session})
                attached = self._attached(task, found.append)
                outcome = await run_new(self._project, start, attached, run_id=run_id)
            else:
                attached = self._attached(task, found.append, resumed=True)
                outcome = await going_on(self._project, run_id, start, attached)
        except StoreError as fault:
            if stored is None:
                raise
            return self._ended(key, stored, session, "failed", f"it cannot go on: {fault}")
        status = "failed" if outcome.status == "stopped" and not self._stopping else outcome.status
        took = found[-1] if found else self._project.store.summary(run_id)
        return self._ended(key, took, session, status, outcome.reason, outcome.output)

    def _attached(
        self, task: CellTask, summarized: Callable[[RunSummary], None], *, resumed: bool = False
    ) -> RunAttachments:
        model, common = self._ports[task.variant]
        return replace(self._watch(task.key, resumed), model=model, common=common, summarized=summarized)

    def _watch(self, cell: str, resumed: bool) -> RunAttachments:
        """Attachments that tell the ledger what the calls of a run cost, and ask it before each. A run that goes on
        while the batch is stopped ends before its next call or tool: what was paid for is not asked again."""
        expected: dict[str, list[MayCost]] = {}
        """The calls that are about to be sent, by place: children that go on side by side share one."""
        live = Counter[str]()
        """Those of children that were sent, and whose answers have not come."""
        gate = in_doubt if resumed and not self._rerun_tools else open_gate
        observe, observe_child = partial(self._run_event, cell, expected), partial(self._event, cell, expected)

        async def within(stop: Stop) -> Decision:
            if self._stopping and stop.kind in (StopKind.BEFORE_CALL, StopKind.BEFORE_TOOL):
                raise RunStopped(self._stopping)
            is_live = stop.kind is StopKind.BEFORE_CALL and stop.answered_by == "live"
            if is_live and self._budgeted:
                try:
                    await self._ledger.afford(cell, str(stop.place), expected[str(stop.place)].pop())
                except RunStopped as fault:
                    self._stopping = self._stopping or str(fault)
                    raise
            live[str(stop.place)] += is_live and stop.depth > 0
            return await gate(stop)

        def observe_resumed_child(event: Event) -> None:
            """Pass on what its calls cost that were sent now: its journal is written anew, with answers of before."""
            place, has_ended = str(event.place), event.kind in ("call_finished", "call_failed")
            if has_ended and not live[place]:
                return
            live[place] -= has_ended and event.data.get("retry_in") is None
            observe_child(event)

        return RunAttachments(
            gate=within,
            notify=self._notified,
            observe=once_resumed(observe) if resumed else observe,
            observe_child=observe_resumed_child if resumed else observe_child,
        )

    def _notified(self, notice: Notice) -> None:
        """Keep what concerns all runs: that no spans can be sent."""
        if notice.kind == "spans":
            self._project.notes.append(str(notice.data["message"]))

    def _run_event(self, cell: str, expected: dict[str, list[MayCost]], event: Event) -> None:
        self._event(cell, expected, event)
        is_success = event.kind == "run_finished" and event.data["status"] == "success"
        if is_success and not self._batch.plan.scorers:
            self._ledger.over(cell)

    def _event(self, cell: str, expected: dict[str, list[MayCost]], event: Event) -> None:
        match event.kind:
            case "context_assembled" if self._budgeted:
                expected.setdefault(str(event.place), []).append(MayCost.of(event))
            case "call_finished" | "call_failed":
                cost, again = event.data.get("cost"), event.data.get("retry_in") is not None
                if event.data.get("recorded"):
                    cost = 0.0
                self._counted[cell] = self._counted.get(cell, 0.0) + (cost or 0.0)
                succeeded = event.kind == "call_finished"
                self._ledger.answered(cell, str(event.place), cost, succeeded=succeeded, again=again)

    # -- what came of it ---------------------------------------------------------------------------------------------

    def _ended(
        self, key: str, took: RunSummary, session: str, status: str, reason: str, output: str = ""
    ) -> CellResult:
        """Write down how a run ended, from its journal."""
        if not output and status == "success":
            output = output_of(self._project, took.run_id)
        unknown = took.unknown_costs or took.missing
        result = CellResult(
            status,
            reason,
            output,
            took.run_id,
            session,
            None if unknown else took.cost,
            took.cost,
            took.tokens_in,
            took.tokens_out,
            took.seconds,
            took.calls,
            predicted=took.predicted,
            estimated=not took.exact,
            unpriced=bool(took.spent.partial or took.missing),
            grade=Grade.of_sum((took.grade_in,)),
        )
        self._ledger.corrected(key, took.cost - self._counted.pop(key, 0.0))
        self._ledger.write({"kind": "ended", "cell": key, "result": to_builtins(result)})
        return result

    async def _score(self, key: str, scorer: Scorer, known: CellResult, row: InputRow) -> None:
        about = {"cell": key, "scorer": scorer.name, "by": self.judges.depends(scorer, row)}
        run, by = known.judged_by.get(scorer.name, ("", ""))

        def begun(run_id: str) -> None:
            self._ledger.write({"kind": "judging", **about, "run": run_id})

        earlier = run if by == about["by"] else ""
        cell = JudgedCell(key, known.output, row, known.run, known.session, earlier, begun)
        found = await self.judges.score(scorer, cell)
        if found is None or (self._stopping and found.fault):
            return
        again = known.dropped.get(found.run, 0.0)  # It is in the sum since the first time.
        self._ledger.corrected(key, (found.cost or 0.0) - again - self._counted.pop(key, 0.0))
        self._ledger.write({"kind": "scored", **about, "score": to_builtins(found)})


def _ports_of(project: Project, batch: PreparedBatch) -> list[tuple[Model, CommonPorts]]:
    """By variant; those that ask the same have the same. Raises RepliesError."""
    made: dict[Any, tuple[Model, CommonPorts]] = {}
    for setup in batch.setups:
        if (key := (setup.choice, setup.file)) not in made:
            common = common_ports(project, setup.file, setup.choice, batch.sandbox)
            made[key] = model_for(project, setup.choice, setup.file, common.env, common.prices), common
    return [made[setup.choice, setup.file] for setup in batch.setups]


def _session(plan: BatchPlan, row: str, task: CellTask) -> str:
    """The name of a run: batch, row, and variant and repetition where there are several."""
    name = f"{plan.name}.{row}"
    name += f".v{task.variant + 1}" if len(plan.variants) > 1 else ""
    return name + (f".n{task.repetition + 1}" if plan.repeat > 1 else "")
