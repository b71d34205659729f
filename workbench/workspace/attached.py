"""A session of attach inside the app: served, watched and paused by the stepper that the Bench drives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from workbench.attach.control import Debugging
from workbench.attach.recorder import PHASE
from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.debugger.stepper import Stepper
from workbench.engine.definition import Outcome
from workbench.engine.journal.event import Event
from workbench.importers.journal import cascade_text
from workbench.workspace.attach_serving import Served, collecting, run_beside, serving
from workbench.workspace.attaching import AttachOptions, attached_run, end_session, end_spans, recorded_spans
from workbench.workspace.folders import Folders
from workbench.workspace.own_terminal import run_in_terminal
from workbench.workspace.project import Project

GONE = "this is the session of a program: its calls can be watched, paused and edited; no engine runs it again"


class AttachPlan(Struct, frozen=True):
    """A session that the app is to hold."""

    options: AttachOptions
    served: Served
    folder: Path
    """Where the command runs. It is not looked up later: to import chDB, the process leaves its folder for a moment."""
    output: Path | None = None
    """File for the output of the command; None without a command, or if it gets a terminal of its own."""
    pause: bool = False
    """Whether it is paused before its first request."""
    otlp: bool = False
    """Whether it takes spans, and is no proxy."""

    @property
    def text(self) -> str:
        """The cascade that stands for it until its run says more."""
        return cascade_text(self.options.command, PHASE, "the program that was watched")

    async def run(self, variables: Mapping[str, str]) -> int:
        """Run the command until it ends; its exit code. Raises CannotStart, OSError."""
        if self.output is None:
            return await run_in_terminal(self.served.command, variables, self.folder)
        return await run_beside(self.served.command, variables, self.output, self.folder)


def attached_output(folders: Folders, session: str) -> Path:
    """The file for what the command of a session prints."""
    return folders.state / "attach" / f"{session}.log"


async def attached(
    project: Project,
    plan: AttachPlan,
    stepper: Stepper,
    observe: Callable[[Event], None],
    notify: Callable[[Notice], None],
) -> Outcome:
    """Record a session until its command ends, or until it is cancelled. ``notify`` tells the person what the journal
    does not. Raises what ``attached_run`` and ``run_beside`` do."""
    served = plan.served

    def say(words: str) -> None:
        notify(Notice("told", Place(), {"message": words}))

    if plan.otlp:
        return await _collected(project, plan, observe, notify, say)
    with attached_run(project, plan.options, observe, notify) as run:
        control = Debugging(run.recorder, stepper, say)
        code, stopped = 0, "it was stopped in the Bench"
        try:
            async with serving(run, served, control) as variables:
                if not served.command:
                    host = variables["OPENAI_BASE_URL"]
                    say(f"Waiting for clients: OPENAI_BASE_URL={host}, and so on (workbench attach without --bench)")
                    await asyncio.Event().wait()
                else:
                    code = await plan.run(variables)
                    stopped = ""
        except asyncio.CancelledError:
            return Outcome("stopped", reason=stopped)
        finally:
            end_session(run, code, stopped=stopped)
    return Outcome("failed" if code else "success")


async def _collected(
    project: Project,
    plan: AttachPlan,
    observe: Callable[[Event], None],
    notify: Callable[[Notice], None],
    say: Callable[[str], None],
) -> Outcome:
    """The same for a session that takes spans."""
    served, code = plan.served, 0
    with recorded_spans(project, plan.options, observe, notify) as runs:
        try:
            async with collecting(runs, served) as variables:
                if not served.command:
                    say(f"Waiting for spans: OTEL_EXPORTER_OTLP_ENDPOINT={variables['OTEL_EXPORTER_OTLP_ENDPOINT']}")
                    await asyncio.Event().wait()
                else:
                    code = await plan.run(variables)
        except asyncio.CancelledError:
            runs.close("success")
            return Outcome("stopped", reason="it was stopped in the Bench")
        end_spans(runs, code)
    return Outcome("failed" if code else "success")
