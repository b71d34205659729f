"""A phase's token budget at run time: summaries made before assembly, warnings, and the failure it may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.context.assembly import Assembly
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.scope import Summary
from workbench.engine.faults import PhaseFailed
from workbench.engine.side import ask_model

if TYPE_CHECKING:
    from workbench.context.fitting import SummaryRequest
    from workbench.engine.execution import Execution

SYSTEM = (
    "You sum up the oldest part of a conversation for the model that goes on with it. Answer with the summary alone."
)
_PATH = ("token_budget",)


async def prepare(execution: Execution, place: Place) -> None:
    """Make the summary that the assembly at ``place`` wants, if any; without it the oldest turns are dropped."""
    budget = execution.engine.definition.cascade.token_budget
    if budget is None or budget.strategy != "summarize":
        return
    execution.draft(place)
    wanted = execution.assembler.summary_wanted
    if wanted is not None:
        execution.assembler.add_summary(await _summary(execution, wanted))


async def _summary(execution: Execution, wanted: SummaryRequest) -> Summary:
    budget, run = execution.engine.definition.cascade.token_budget, execution.engine
    model = (budget.summarizer.model if budget else None) or run.options.default_model
    lines = "\n\n".join(f"[{item.message.role}]\n{item.message.text}" for item in wanted.items)
    task = f"Sum up in at most {wanted.target} tokens. Keep facts, names, numbers and decisions.\n\n{lines}"
    request = [Message("system", SYSTEM), Message("user", task)]
    text = await ask_model(run, execution.world, execution.place(), "summary", request, model)
    return Summary(wanted.covers, text)


def check(execution: Execution, assembly: Assembly) -> None:
    """Record a request near its limit. Raises PhaseFailed for one that cannot be made to fit."""
    fit, run = assembly.fit, execution.engine
    if fit is None:
        return
    if fit.over > 0:
        reason = f"the request is {fit.over:,} tokens over the limit of {fit.limit:,} (strategy {fit.mode})"
        raise PhaseFailed(reason, "token_budget")
    if fit.warns:
        run.warn("budget", f"'{execution.phase.name}' is near its limit of {fit.limit:,} input tokens", _PATH)
