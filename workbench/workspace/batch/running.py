"""Runs the open cells of a batch side by side on one event loop, and writes down what each came to."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from workbench.analysis.batch.matrix import DONE, CellResult, Plan, folded
from workbench.analysis.batch.rows import Row, canonical
from workbench.analysis.batch.scoring import Scorer
from workbench.engine.gate import Decision, Gate, RunStopped, Stop, StopKind, open_gate
from workbench.store.faults import StoreError, UnknownRun
from workbench.workspace.batch.judging import Judges
from workbench.workspace.model_choice import environment_of
from workbench.workspace.model_ports import model_for, prices_of
from workbench.workspace.run_builder import Connected, RunAttachments, Start, resume, run_new
from workbench.workspace.system import SystemIds

if TYPE_CHECKING:
    from workbench.engine.contracts import Model
    from workbench.engine.journal.event import Event
    from workbench.store.batches import BatchWriter
    from workbench.store.summary import RunSummary
    from workbench.workspace.batch.planning import PreparedBatch
    from workbench.workspace.project import Project

STOPPED = "the batch was stopped"


class BatchLimits(Struct, frozen=True):
    """How far a command goes."""

    concurrency: int = 8
    max_cost: float | None = None
    """US dollars of the whole batch, with what earlier commands spent on its cells."""
    retry: bool = False
    """Run rows again that failed."""
    rerun_tools: bool = False
    """Run tools again of which nobody knows whether they ran."""


class BatchProgress(Struct):
    """Where a batch stands, for whoever shows it."""

    total: int
    done: int = 0
    """Cells that have ended, with those of earlier commands."""
    earlier: int = 0
    failed: int = 0
    running: int = 0
    calls: int = 0
    """Answered for this command."""
    spent: float = 0.0
    """US dollars that are known, with those of earlier commands."""
    unknown_costs: int = 0
    """Answers of this command whose cost is not known."""
    began: float = 0.0
    """On the monotonic clock."""

    @property
    def rate(self) -> float | None:
        """Cells a second of this command; None before the first."""
        took, ended = time.monotonic() - self.began, self.done - self.earlier
        return ended / took if took > 0 and ended else None

    @property
    def remaining(self) -> float | None:
        """Seconds until the end at this rate."""
        return None if self.rate is None else (self.total - self.done) / self.rate


class BatchRun:
    """One command's work on a batch."""

    def __init__(
        self,
        project: Project,
        batch: PreparedBatch,
        writer: BatchWriter,
        limits: BatchLimits,
        observe: Callable[[BatchProgress], None] = lambda progress: None,
        *,
        model: str = "",
    ) -> None:
        """``model`` is what a person named for calls that name none. Raises ScorerError, StoreError."""
        self._project, self._batch, self._writer, self._limits = project, batch, writer, limits
        self._observe = observe
        self._stopping = ""
        """Why no further run begins."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._judges = Judges(project, batch.plan.scorers, batch.setups[0], model)
        self.results = folded(writer.folder.records())
        self._forget_other_scores()
        ours = [self.results[key] for key in batch.plan.cells if key in self.results]
        ended = [one for one in ours if self._is_done(one)]
        self.progress = BatchProgress(
            len(batch.plan.cells), len(ended), len(ended), sum(one.status != "success" for one in ended)
        )
        self.progress.spent = math.fsum(one.spent for one in ours)
        self._expected: dict[tuple[str, str], float] = {}
        """US dollars of calls that wait for the gate, by cell and place."""
        self._sent: dict[tuple[str, str], float] = {}
        """Of those that are on their way."""
        self._answered = asyncio.Event()
        """Set when one of these has come back."""

    @property
    def stopped(self) -> str:
        """Why the batch ended before its last cell; empty where it did not."""
        return self._stopping

    def stop(self, why: str = STOPPED) -> None:
        """Begin no further run, and stop those that are going on: they can be resumed. On the loop of ``run``."""
        self._stopping = self._stopping or why
        for task in self._tasks:
            task.cancel()

    async def run(self) -> None:
        """Run every open cell. Raises StoreError where results cannot be written."""
        waiting = iter([key for key in self._batch.plan.cells if not self._is_complete(key)])
        self.progress.began = time.monotonic()
        async with self._models() as models:
            workers = [
                asyncio.ensure_future(self._work(waiting, models)) for _ in range(max(1, self._limits.concurrency))
            ]
            try:
                await asyncio.gather(*workers)
            except BaseException:
                self.stop()
                await asyncio.gather(*workers, return_exceptions=True)
                raise
            finally:
                await self._judges.aclose()

    @asynccontextmanager
    async def _models(self) -> AsyncIterator[list[Model]]:
        """One for each variant; those that ask the same have the same one. Scoring runs have theirs."""
        made: dict[Any, Model] = {}
        models = []
        for setup in self._batch.setups:
            key = (setup.choice, setup.file)
            if key not in made:
                env = environment_of(self._project, setup.file)
                made[key] = model_for(
                    self._project, setup.choice, setup.file, env, prices_of(self._project, setup.choice, env)
                )
            models.append(made[key])
        live = [model for model in (*made.values(), *self._judges.models) if isinstance(model, Connected)]
        await asyncio.gather(*(model.warm() for model in live))
        try:
            yield models
        finally:
            for model in live[:1]:  # It closes all connections of the loop.
                await model.aclose()

    async def _work(self, waiting: Iterator[str], models: list[Model]) -> None:
        for key in waiting:
            if self._stopping:
                return
            row, variant, repetition = self._batch.plan.cells[key]
            self.progress.running += 1
            task = asyncio.ensure_future(self._cell(key, row, variant, repetition, models[variant]))
            self._tasks.add(task)
            try:
                await task
            except asyncio.CancelledError:
                if not self._stopping:
                    raise
            finally:
                self._tasks.discard(task)
                self.progress.running -= 1
                self._observe(self.progress)

    # -- one cell ----------------------------------------------------------------------------------------------------

    async def _cell(self, key: str, row: int, variant: int, repetition: int, model: Model) -> None:
        known = self.results.get(key)
        if known is None or not self._is_done(known):
            known = await self._executed(key, known, row, variant, repetition, model)
            if known.status not in DONE:
                return
            self.progress.done += 1
            self.progress.failed += known.status != "success"
            self._observe(self.progress)
        if known.status == "success":
            for scorer in self._batch.plan.scorers:
                if scorer.name not in known.scores and not self._stopping:
                    await self._score(key, scorer, known, self._batch.plan.rows[row])

    async def _executed(
        self, key: str, known: CellResult | None, row: int, variant: int, repetition: int, model: Model
    ) -> CellResult:
        setup, plan = self._batch.setups[variant], self._batch.plan
        session = _session(plan, row, variant, repetition)
        run_id, stored = "", None
        if known is not None and known.run and not (known.status in DONE and self._limits.retry):
            run_id, stored = known.run, self._stored(known.run)
            session = known.session or session
        if stored is not None and stored.status in DONE:  # It ended, and the process before that was written down.
            return self._ended(key, stored.run_id, session, stored.status, stored.reason)
        options = replace(setup.options, session_id=session)
        start = Start(
            setup.definition, setup.file, self._batch.input(row, variant), setup.choice, options, self._batch.sandbox
        )
        observe = partial(self._event, key)
        if stored is None:
            run_id = SystemIds().run_id()
            self._writer.add({"kind": "begun", "cell": key, "run": run_id, "session": session})
            attached = RunAttachments(
                gate=self._gate(key, open_gate), observe=observe, observe_child=observe, model=model
            )
            work = run_new(self._project, start, attached, run_id=run_id)
        else:
            self.progress.spent += max(0.0, stored.cost - (known.spent if known is not None else 0.0))
            gate = open_gate if self._limits.rerun_tools else _in_doubt
            attached = RunAttachments(
                gate=self._gate(key, gate), observe=_once_resumed(observe), observe_child=observe, model=model
            )
            work = resume(self._project, run_id, start, attached)
        try:
            outcome = await work
        except StoreError as fault:
            if stored is None:
                raise
            return self._ended(key, run_id, session, "failed", f"it cannot go on: {fault}")
        status = "failed" if outcome.status == "stopped" and not self._stopping else outcome.status
        return self._ended(key, run_id, session, status, outcome.reason, outcome.output)

    def _stored(self, run_id: str) -> RunSummary | None:
        try:
            return self._project.store.summary(run_id)
        except UnknownRun:
            return None

    def _ended(self, key: str, run_id: str, session: str, status: str, reason: str, output: str = "") -> CellResult:
        """Write down how a run ended, from its journal."""
        took = self._stored(run_id)
        if took is None:
            result = CellResult(status, reason, output, run_id, session)
        else:
            if not output and status == "success":
                output = self._output(run_id)
            unknown = took.unknown_costs or took.missing
            result = CellResult(
                status,
                reason,
                output,
                run_id,
                session,
                None if unknown else took.cost,
                took.cost,
                took.tokens_in,
                took.tokens_out,
                took.seconds,
                took.calls,
            )
        self.results[key] = result
        self._writer.add({"kind": "ended", "cell": key, "result": to_builtins(result)})
        return result

    def _output(self, run_id: str) -> str:
        """The whole output of a stored run."""
        last = [event.data for event in self._project.store.events(run_id) if event.kind == "run_finished"]
        return str(last[-1].get("output", "")) if last else ""

    async def _score(self, key: str, scorer: Scorer, known: CellResult, row: Row) -> None:
        found = await self._judges.score(scorer, known.output, row)
        if found is None or self._stopping:
            return
        self.progress.spent += found.cost or 0.0
        result = self.results[key]
        self.results[key] = replace(result, scores={**result.scores, scorer.name: found})
        about = {"kind": "scored", "cell": key, "scorer": scorer.name, "by": _by(scorer, row)}
        self._writer.add({**about, "score": to_builtins(found)})

    # -- what is open ------------------------------------------------------------------------------------------------

    def _is_done(self, one: CellResult) -> bool:
        return one.status in DONE and not (self._limits.retry and one.status != "success")

    def _is_complete(self, key: str) -> bool:
        """Whether nothing is left to do: it has ended, and every scorer has judged it."""
        one = self.results.get(key)
        if one is None or not self._is_done(one):
            return False
        wanted = {scorer.name for scorer in self._batch.plan.scorers if scorer.kind != "person"}
        return one.status != "success" or wanted <= one.scores.keys()

    def _forget_other_scores(self) -> None:
        """Scores of a scorer that was another one then, or compared with another expectation, do not count; neither
        do faults, which are tried again."""
        by: dict[tuple[str, str], str] = {}
        for record in self._writer.folder.records():
            if record.get("kind") == "scored":
                by[str(record["cell"]), str(record["scorer"])] = str(record.get("by", ""))
        scorers = {one.name: one for one in self._batch.plan.scorers}
        for key, (at, _, _) in self._batch.plan.cells.items():
            if (one := self.results.get(key)) is None or not one.scores:
                continue
            row = self._batch.plan.rows[at]
            kept = {
                name: score
                for name, score in one.scores.items()
                if name in scorers and by.get((key, name)) == _by(scorers[name], row) and not score.fault
            }
            if kept != one.scores:
                self.results[key] = replace(one, scores=kept)
                for name in one.scores.keys() - kept.keys():
                    self._writer.add({"kind": "unscored", "cell": key, "scorer": name})

    # -- the budget --------------------------------------------------------------------------------------------------

    def _gate(self, cell: str, behind: Gate) -> Gate:
        """Holds a run before a call until the budget has room for what the call may cost; stops it when no call is on
        its way that could come back cheaper than expected."""

        async def within(stop: Stop) -> Decision:
            if stop.kind is StopKind.BEFORE_CALL and stop.answered_by == "live":
                await self._afford(cell, str(stop.place))
            return await behind(stop)

        return within

    async def _afford(self, cell: str, place: str) -> None:
        """Raises RunStopped where the budget has no room for a call."""
        limit, cost = self._limits.max_cost, self._expected.pop((cell, place), 0.0)
        while limit is not None and not self._stopping:
            spent = self.progress.spent
            if spent < limit and spent + math.fsum(self._sent.values()) + cost <= limit:
                break
            if spent >= limit or not self._sent:
                self._stopping = f"the budget of ${limit:g} is reached"
                break
            self._answered.clear()
            await self._answered.wait()
        if self._stopping:
            self._answered.set()
            raise RunStopped(self._stopping)
        self._sent[cell, place] = cost

    def _event(self, cell: str, event: Event) -> None:
        """Adds up what calls cost."""
        at = (cell, str(event.place))
        match event.kind:
            case "context_assembled":
                forecast = event.data.get("forecast") or {}
                self._expected[at] = forecast.get("cost_high") or forecast.get("cost") or 0.0
            case "call_finished" | "call_failed":
                cost = event.data.get("cost")
                self.progress.spent += cost or 0.0
                if event.kind == "call_finished":
                    self.progress.calls += 1
                    self.progress.unknown_costs += cost is None
                self._came_back(lambda key: key == at)
                self._observe(self.progress)
            case "run_finished":
                self._came_back(lambda key: key[0] == cell)

    def _came_back(self, which: Callable[[tuple[str, str]], bool]) -> None:
        for calls in (self._sent, self._expected):
            for key in [key for key in calls if which(key)]:
                del calls[key]
        self._answered.set()


def _by(scorer: Scorer, row: Row) -> str:
    """What a score depends on beside the output: the scorer, and what it compares with."""
    return canonical([scorer.spec, row.columns.get(scorer.argument) if scorer.kind == "exact" else row.expected])


def _session(plan: Plan, row: int, variant: int, repetition: int) -> str:
    """The name of a run: batch, row, and variant and repetition where there are several."""
    name = f"{plan.name}.r{plan.rows[row].number}"
    name += f".v{variant + 1}" if len(plan.variants) > 1 else ""
    return name + (f".n{repetition + 1}" if plan.repeat > 1 else "")


def _once_resumed(observe: Callable[[Event], None]) -> Callable[[Event], None]:
    """Passes on what is new of a run that goes on: its journal is told again from the start."""
    told = [-1]

    def observing(event: Event) -> None:
        if event.kind == "run_resumed":
            told[0] = event.seq
        if told[0] >= 0 and event.seq >= told[0]:
            observe(event)

    return observing


async def _in_doubt(stop: Stop) -> Decision:
    """Ends a resumed run before a tool that may have run already."""
    if stop.answered_by == "maybe":
        raise RunStopped(f"{stop.tool} may have run already, at {stop.place}; --rerun-tools runs it again")
    return await open_gate(stop)


def redacted(plan: Plan, redact: Callable[[str], str]) -> Mapping[str, Any]:
    """The plan as it is stored: without secrets."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, dict):
            return {key: clean(one) for key, one in value.items()}
        return [clean(one) for one in value] if isinstance(value, list | tuple) else value

    body = plan.to_json()
    return {**body, "rows": clean(body["rows"]), "source": redact(plan.source)}
