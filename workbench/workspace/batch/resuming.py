"""Runs of a batch that an earlier command began: cells, and the runs that score them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.engine.gate import Decision, RunStopped, Stop, open_gate
from workbench.store.faults import StoreBusy, UnknownRun
from workbench.workspace.run_builder import RunAttachments, Start, resume

if TYPE_CHECKING:
    from workbench.engine.definition import Outcome
    from workbench.engine.journal.event import Event
    from workbench.store.summary import RunSummary
    from workbench.workspace.project import Project

_BUSY_TRIES, _BUSY_PAUSE = 50, 0.2
"""How often a run is tried whose last process is still about to end, and the seconds in between."""


async def settled(project: Project, run_id: str) -> RunSummary | None:
    """The run as it is stored, once no dying process writes it any more; None where it is gone."""
    for _ in range(_BUSY_TRIES):
        try:
            found = project.store.summary(run_id)
        except UnknownRun:
            return None
        if found.status != "running":
            return found
        await asyncio.sleep(_BUSY_PAUSE)
    return found


async def going_on(project: Project, run_id: str, start: Start, attached: RunAttachments) -> Outcome:
    """Resume it, once it is free. Raises StoreError."""
    for _ in range(_BUSY_TRIES):
        try:
            return await resume(project, run_id, start, attached)
        except StoreBusy:
            await asyncio.sleep(_BUSY_PAUSE)
    return await resume(project, run_id, start, attached)


def output_of(project: Project, run_id: str) -> str:
    """The whole output of a stored run."""
    last = [event.data for event in project.store.events(run_id) if event.kind == "run_finished"]
    return str(last[-1].get("output", "")) if last else ""


def once_resumed(observe: Callable[[Event], None]) -> Callable[[Event], None]:
    """Passes on what is new of a run that goes on, whose journal is told again from the start; and the contexts of
    before: a call that was not sent yet is sent with one of them."""
    told = math.inf

    def observing(event: Event) -> None:
        nonlocal told
        if event.kind == "run_resumed":
            told = event.seq
        if event.seq >= told or event.kind == "context_assembled":
            observe(event)

    return observing


async def in_doubt(stop: Stop) -> Decision:
    """Ends a resumed run before a tool that may have run already."""
    if stop.answered_by == "maybe":
        raise RunStopped(f"{stop.tool} may have run already, at {stop.place.words}; --rerun-tools runs it again")
    return await open_gate(stop)
