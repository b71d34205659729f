"""Strategies run live: what stored runs say of them already, and new runs from the input of a stored one, each under
another strategy, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.sweep import BASELINE, FILE, RanUnder, StrategyResult, Subject, Sweep, TriedStrategy
from workbench.context.strategy import SpecError, parse, with_named
from workbench.dollars import money
from workbench.engine.definition import Definition, DefinitionError, Options
from workbench.engine.journal.costs import CostSum
from workbench.engine.journal.state import RunState
from workbench.engine.model_name import OFFLINE
from workbench.models.prices import PriceTable
from workbench.store.faults import StoreError
from workbench.store.store import Store
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.model_choice import ModelChoice, chosen_for
from workbench.workspace.project import Project
from workbench.workspace.recorded_runs import past_of
from workbench.workspace.run_builder import RunAttachments, Start, restart, run_new
from workbench.workspace.system import SystemIds

LOOKED_AT = 500
"""Newest runs among which those under a strategy are looked for."""
MOST = 50
"""Runs that one command may start: a slip of the finger is not to cost a fortune."""
SPARE = 2.0
"""The proposed budget, in multiples of the expected cost."""


class LiveRunError(Exception):
    """Why no run was started, in words."""


# -- what ran already --------------------------------------------------------------------------------------------------


def ran_under(store: Store, subjects: Sequence[Subject], tried: Iterable[TriedStrategy]) -> Mapping[str, RanUnder]:
    """By label, the stored runs of the same cascade texts that ran under a strategy; those inside other runs are left
    out, and those of a fork or re-run, which take over what was answered under another one."""
    texts = {subject.state.cascade_sha256 for subject in subjects}
    by_spec: dict[str, RanUnder] = {}
    runs = (run for run in store.runs()[:LOOKED_AT] if run.cascade_sha256 in texts)
    for run in runs:
        if run.depth or run.imported or run.parent_kind or run.damaged or not run.calls:
            continue
        try:
            data = next(iter(store.events(run.run_id))).data
            spec = str(data.get("options", {}).get("strategy", ""))
            key = str(parse(spec)) if spec else FILE
        except (StoreError, SpecError, StopIteration):
            continue
        before = by_spec.get(key, RanUnder())
        if data.get("ports", {}).get("model") == OFFLINE:
            by_spec[key] = replace(before, offline=before.offline + 1)
            continue
        thumb = {"up": (100.0,), "down": (0.0,)}.get(run.labels.thumb, ())
        scores = (run.labels.score,) if run.labels.score is not None else thumb
        by_spec[key] = replace(
            before,
            live=before.live + 1,
            succeeded=before.succeeded + (run.status == "success"),
            scores=(*before.scores, *scores),
        )
    keys = {one.label: FILE if one.strategy is None else str(one.strategy) for one in tried}
    return {label: by_spec[key] for label, key in keys.items() if key in by_spec}


# -- what is to be run -------------------------------------------------------------------------------------------------


class PlannedRun(Struct, frozen=True):
    """One strategy on the input of one stored run."""

    label: str
    spec: str
    """Empty for what the file says."""
    source: str
    """The run whose input and text it starts from."""
    start: Start
    expected: float | None
    """US dollars: the input as predicted, and answers as long as the recorded ones; None where a price is unknown."""


class LivePlan(Struct, frozen=True):
    """Runs that are priced, and not started yet."""

    runs: tuple[PlannedRun, ...]
    max_cost: float | None
    """US dollars for all of them; None if nothing is paid."""

    @property
    def expected(self) -> float | None:
        """US dollars; None if a price is unknown."""
        costs = [run.expected for run in self.runs]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def offline(self) -> bool:
        """Whether scripted replies answer all of them."""
        return all(run.start.choice.offline for run in self.runs)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that answer."""
        return tuple(dict.fromkeys(run.start.choice.label for run in self.runs))


class LiveResult(Struct, frozen=True):
    """How one of them went."""

    run: PlannedRun
    status: str = "waiting"
    """waiting, running, unsent, or how it ended."""
    reason: str = ""
    session_id: str = ""
    output: str = ""
    spent: CostSum | None = None
    seconds: float | None = None


def next_to_run(sweep: Sweep, most: int) -> tuple[str, ...]:
    """The valid strategies that cost least and were never run live, ``most`` of them; by tokens where no price is
    known. The baseline is for comparison alone."""
    rows = [row for row in sweep.at(sweep.pricings[0]) if not row.invalid and row.label != BASELINE]
    never = set(sweep.never_live)
    rows = sorted((row for row in rows if row.label in never), key=_price)
    return tuple(row.label for row in rows[:most])


def _price(row: StrategyResult) -> tuple[bool, float]:
    return (row.cost_sum is None, row.cost_sum.value if row.cost_sum is not None else row.tokens_sum.value)


def plan_live(
    project: Project,
    subjects: Sequence[Subject],
    sweep: Sweep,
    labels: Sequence[str],
    max_cost: float | None = None,
    model: str = "",
) -> LivePlan:
    """Price runs of strategies of a sweep, each from the text and the input of each run of it. ``model``: the default
    model of these runs; empty for the one of the stored run. ``max_cost``: US dollars for all; None for a budget of
    ``SPARE`` times what is expected.

    Raises LiveRunError where they cannot be run, or a budget cannot bound them.
    """
    used = [subject for subject in subjects if subject.name in sweep.runs]
    known = {row.label: row for row in sweep.rows if row.pricing == sweep.pricings[0]}
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise LiveRunError(f"'{unknown[0]}' is none of the strategies tried")
    if not labels or not used:
        raise LiveRunError("no strategy to run: each was run live already, or is invalid")
    if len(labels) * len(used) > MOST:
        raise LiveRunError(f"{len(labels) * len(used)} runs are more than {MOST}: name fewer strategies or runs")
    runs = tuple(_planned(project, subject, known[label], model) for label in labels for subject in used)
    plan = LivePlan(runs, max_cost)
    if plan.offline:
        return plan
    if plan.expected is None:
        raise LiveRunError(
            "what it would cost is not known, because a price is: no budget can bound it. Set 'prices' in the settings"
        )
    budget = SPARE * plan.expected if max_cost is None else max_cost
    if plan.expected > budget:
        raise LiveRunError(
            f"the budget of {money(budget, exact=True)} is too small: {money(plan.expected, exact=True)} are expected. "
            "Nothing was run"
        )
    return LivePlan(runs, budget)


def _planned(project: Project, subject: Subject, row: StrategyResult, model: str) -> PlannedRun:
    def choose(definition: Definition, options: Options) -> ModelChoice:
        flag = model or (OFFLINE if subject.state.ports.get("model") == OFFLINE else "")
        return chosen_for(project, definition, flag, "" if model else options.default_model)

    try:
        start = restart(project, past_of(project.store, subject.state.run_id), choose)
    except (StoreError, DefinitionError, CannotOpen) as fault:
        raise LiveRunError(f"{subject.name}: {fault}") from fault
    if start.choice.missing:
        raise LiveRunError(start.choice.missing)
    spec = "" if row.label == FILE else str(with_named(start.definition.cascade.strategies)(row.spec or row.label))
    options = replace(start.options, strategy=spec, default_model=start.choice.default_model)
    trial = next(trial for trial in row.trials if trial.run == subject.name)
    expected = (
        0.0 if start.choice.offline else _expected(project, subject.state, trial.totals.cost, start.choice, model)
    )
    return PlannedRun(row.label, spec, subject.name, replace(start, options=options), expected)


def _expected(
    project: Project, state: RunState, input_cost: float | None, choice: ModelChoice, model: str
) -> float | None:
    """The input at the sweep's prediction, answers as long as those recorded."""
    prices = PriceTable(project.settings.prices)
    total = 0.0 if model else input_cost
    for call in state.calls:
        if total is None or call.status == "assembled":
            continue
        price = prices.price(choice.default_model if model else call.model, call.expected)
        if price.output is None or (model and price.input is None):
            return None
        total += (call.usage.output or 0) * price.output + (call.expected * (price.input or 0.0) if model else 0.0)
    return total


# -- running -----------------------------------------------------------------------------------------------------------


async def run_live(
    project: Project, plan: LivePlan, changed: Callable[[LiveResult], None] = lambda result: None
) -> tuple[LiveResult, ...]:
    """Run them one after the other, each into a journal of its own: tools run for real, and runs at the same time could
    get in each other's way. Before each, what was spent is held against the budget, and the run itself gets what is
    left. ``changed`` sees each result whenever something is known of it. Cancelling stops the run that is under way; it
    can be resumed."""
    results: list[LiveResult] = []
    spent, stopped = 0.0, False
    for planned in plan.runs:
        left = None if plan.max_cost is None else plan.max_cost - spent
        if stopped or (left is not None and planned.expected is not None and planned.expected > left):
            rest, wanted = (money(value or 0.0, exact=True) for value in (left, planned.expected))
            why = f"the budget is used up: {rest} left, {wanted} expected"
            reason = "the run before it was stopped" if stopped else why
            results.append(LiveResult(planned, "unsent", reason))
            changed(results[-1])
            continue
        options = planned.start.options
        limit = left if options.max_cost is None or left is None else min(left, options.max_cost)
        start = replace(planned.start, options=replace(options, max_cost=limit or options.max_cost))
        changed(LiveResult(planned, "running", session_id=options.session_id))
        run_id = SystemIds().run_id()
        outcome = await run_new(project, start, RunAttachments(), run_id=run_id)
        state = project.store.state(run_id)
        paid = project.store.summary(run_id).spent
        spent += paid.total or 0.0
        stopped = outcome.status == "stopped"
        results.append(
            LiveResult(planned, outcome.status, outcome.reason, state.session_id, outcome.output, paid, state.seconds)
        )
        changed(results[-1])
    return tuple(results)
