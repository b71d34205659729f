"""A session of attach inside the app: served, watched and paused by the stepper that the Bench drives."""

from __future__ import annotations

import asyncio
import re
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

    async def run(self, variables: Mapping[str, str], say: Callable[[str], None]) -> int:
        """Run the command until it ends; its exit code. ``say`` tells the person where it prints. Raises CannotStart,
        OSError."""
        if self.output is None:
            return await run_in_terminal(self.served.command, variables, self.folder)
        say("The tab Program shows what the command prints. It cannot read here; inside tmux it gets a terminal.")
        code = await run_beside(self.served.command, variables, self.output, self.folder)
        if code:
            say(f"The command ended with exit code {code}. The tab Program shows what it printed.")
        return code


def attached_output(folders: Folders, session: str) -> Path:
    """The file for what the command of a session prints."""
    return folders.state / "attach" / f"{session}.log"


class ProgramOutput:
    """The output so far of a program that has no terminal."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def size(self) -> int:
        """Bytes; 0 if there is no file."""
        try:
            return self.file.stat().st_size
        except OSError:
            return 0

    def tail(self) -> str:
        """The end of it, as a terminal shows it at last: without colours, and of lines that were written over what
        stood there last."""
        try:
            with self.file.open("rb") as printed:
                printed.seek(max(self.size - _SHOWN, 0))
                text = printed.read(_SHOWN).decode("utf-8", "replace")
        except OSError:
            return ""
        plain = _CONTROL.sub("", text).replace("\r\n", "\n")
        return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))


_SHOWN = 200_000
"""Bytes of a program's output that are shown: its end."""
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Control sequences of terminals (ECMA-48): colours, moves of the cursor, titles."""


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

    def seen(event: Event) -> None:
        observe(event)
        if event.kind == "call_started":  # A provider may never answer: the Bench says how long it has been waited for.
            notify(Notice("waiting", event.place, {"try": 1}))

    with attached_run(project, plan.options, seen, notify) as run:
        control = Debugging(run.recorder, stepper, say)
        code, stopped = 0, "it was stopped in the Bench"
        try:
            async with serving(run, served, control) as variables:
                if not served.command:
                    host = variables["OPENAI_BASE_URL"]
                    say(f"Waiting for clients: OPENAI_BASE_URL={host}, and so on (workbench attach without --bench)")
                    await asyncio.Event().wait()
                else:
                    code = await plan.run(variables, say)
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
                    code = await plan.run(variables, say)
        except asyncio.CancelledError:
            runs.close("success")
            return Outcome("stopped", reason="it was stopped in the Bench")
        end_spans(runs, code)
    return Outcome("failed" if code else "success")
