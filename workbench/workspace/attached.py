"""A session of attach in the app: a process of its own serves it, the stepper that the Bench drives pauses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from workbench.attach.recorder import PHASE
from workbench.child_process import fault_words
from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.debugger.stepper import Stepper
from workbench.engine.definition import Outcome
from workbench.engine.journal.event import Event, stop_reason
from workbench.importers.journal import cascade_text
from workbench.workspace.attach_link import ServingProcess, served_apart
from workbench.workspace.attach_serving import Served, run_beside
from workbench.workspace.attaching import AttachOptions, SessionEnd
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
    process: ServingProcess | None = None
    """What is to serve it, started before the app; None to start it with the session."""

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
        """Have a session recorded until its command ends, or until it is cancelled. ``notify`` tells the person what
        the journal does not. Raises ServingFault where it cannot be served or recorded, and what ``run`` does."""

        def say(words: str, kind: str = "told") -> None:
            notify(Notice(kind, Place(), {"message": words}))

        def seen(event: Event) -> None:
            observe(event)
            if event.kind == "call_started" and not self.otlp:
                # A provider may never answer: the Bench says how long it has been waited for.
                notify(Notice("waiting", event.place, {"try": 1}))

        end = SessionEnd()
        process = self.process or ServingProcess(self.served.listener, self.folder)
        how = (process, self.options, self.served)
        async with served_apart(project, stepper, seen, notify, *how, otlp=self.otlp) as link:
            try:
                variables = await link.variables()
                if not self.served.command:
                    say(self._waits(variables), "hint")
                    await link.during(asyncio.Event().wait())
                else:
                    end = SessionEnd(await link.during(self.run(variables, say)))
            except asyncio.CancelledError as cancelled:
                end = SessionEnd(stopped=stop_reason(cancelled))
                return Outcome("stopped", reason=end.stopped)
            except Exception as fault:
                end = SessionEnd(fault=fault_words(fault))
                raise
            finally:
                await link.end(end)
        return Outcome("failed" if end.code else "success")

    def _waits(self, variables: Mapping[str, str]) -> str:
        """What a person has to know where clients start by themselves."""
        if self.otlp:
            name = "OTEL_EXPORTER_OTLP_ENDPOINT"
            return f"Waiting for spans: {name}={variables[name]}"
        host = variables["OPENAI_BASE_URL"]
        return f"Waiting for clients: OPENAI_BASE_URL={host}; without --bench all variables are printed"
