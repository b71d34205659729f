"""A session of attach inside the app: served, watched and paused by the stepper that the Bench drives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from workbench.attach.control import Debugging
from workbench.attach.recorder import PHASE
from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.debugger.stepper import Stepper
from workbench.engine.definition import Outcome
from workbench.engine.journal.event import STOPPED_BY_USER, Event
from workbench.importers.journal import cascade_text
from workbench.workspace.attach_serving import Served, collecting, run_beside, serving
from workbench.workspace.attaching import AttachOptions, attached_run, end_session, end_spans, recorded_spans
from workbench.workspace.own_terminal import run_in_terminal
from workbench.workspace.project import Project


class Say(Protocol):
    """Tells the person something."""

    def __call__(self, words: str, kind: str = "told", /) -> None:
        """``kind``: that of the notice, ``told`` for what a person should look at, or ``hint``."""
        ...


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
    """Whether it takes spans, and is not a proxy."""

    @property
    def text(self) -> str:
        """The cascade that stands for it until its run says more."""
        return cascade_text(self.options.command, PHASE, "the program that was watched")

    async def run(self, variables: Mapping[str, str], say: Say) -> int:
        """Run the command until it ends; its exit code. ``say`` tells the person where it prints. Raises CannotStart,
        OSError."""
        if self.output is None:
            return await run_in_terminal(self.served.command, variables, self.folder)
        say("The tab Program shows what the command prints. It gets no keys; inside tmux it has a terminal.", "hint")
        code = await run_beside(self.served.command, variables, self.output, self.folder)
        if code:
            say(f"The command ended with exit code {code}. The tab Program shows what it printed.")
        return code

    async def record(
        self, project: Project, stepper: Stepper, observe: Callable[[Event], None], notify: Callable[[Notice], None]
    ) -> Outcome:
        """Record a session until its command ends, or until it is cancelled. ``notify`` tells the person what the
        journal does not. Raises what ``attached_run`` and ``run_beside`` do."""
        served = self.served

        def say(words: str, kind: str = "told") -> None:
            notify(Notice(kind, Place(), {"message": words}))

        if self.otlp:
            return await self._collected(project, observe, notify, say)

        def seen(event: Event) -> None:
            observe(event)
            if event.kind == "call_started":
                # A provider may never answer: the Bench says how long it has been waited for.
                notify(Notice("waiting", event.place, {"try": 1}))

        with attached_run(project, self.options, seen, notify) as run:
            control = Debugging(run.recorder, stepper, say)
            code, stopped = 0, STOPPED_BY_USER
            try:
                async with serving(run, served, control) as variables:
                    if not served.command:
                        host = variables["OPENAI_BASE_URL"]
                        more = "; without --bench all variables are printed"
                        say(f"Waiting for clients: OPENAI_BASE_URL={host}{more}", "hint")
                        await asyncio.Event().wait()
                    else:
                        code = await self.run(variables, say)
                        stopped = ""
            except asyncio.CancelledError:
                return Outcome("stopped", reason=stopped)
            finally:
                end_session(run, code, stopped=stopped)
        return Outcome("failed" if code else "success")

    async def _collected(
        self,
        project: Project,
        observe: Callable[[Event], None],
        notify: Callable[[Notice], None],
        say: Say,
    ) -> Outcome:
        """The same for a session that takes spans."""
        served, code = self.served, 0
        with recorded_spans(project, self.options, observe, notify) as runs:
            try:
                async with collecting(runs, served) as variables:
                    if not served.command:
                        name = "OTEL_EXPORTER_OTLP_ENDPOINT"
                        say(f"Waiting for spans: {name}={variables[name]}", "hint")
                        await asyncio.Event().wait()
                    else:
                        code = await self.run(variables, say)
                if runs.refused:
                    say(runs.refusal_words)
            except asyncio.CancelledError:
                runs.close("success")
                return Outcome("stopped", reason=STOPPED_BY_USER)
            end_spans(runs, code)
        return Outcome("failed" if code else "success")
