"""A frozen session of attach as a test: its command runs again, and gets its answers from the recording, strictly."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
from collections.abc import Sequence

from msgspec import Struct

from workbench.attach.providers import addresses
from workbench.attach.recorded import NothingRecorded, RecordedAnswers
from workbench.attach.recorder import FORMAT, Recorder
from workbench.engine.journal.event import Event
from workbench.engine.journal.memory_sink import MemorySink
from workbench.importers.journal import JournalServices, Origin
from workbench.models.encodings import encodings
from workbench.models.prices import PriceTable, cost
from workbench.snapshots.differences import Difference, Kinds
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.freeze import command_of
from workbench.snapshots.recorded_run import RecordedRun
from workbench.snapshots.rerun import Rerun
from workbench.tools.sandbox.scratch import SCRATCH
from workbench.workspace.attach_serving import LOOPBACK, CannotListen, CannotStart, Served, listen, run_beside, serving
from workbench.workspace.attaching import EXITED, AttachedRun, SessionEnd, end_session, exit_reason, surroundings
from workbench.workspace.project import Project
from workbench.workspace.system import SystemClock, SystemIds

LONGEST = 600.0
"""Seconds that a command may take."""
_TOLD = 1_000
"""Characters of what a command printed last that are told where it failed."""


class SessionReplay(Struct, frozen=True):
    """The result of running a session again: its differences, and the new run."""

    differences: tuple[Difference, ...]
    again: Rerun


async def replay_session(project: Project, events: Sequence[Event]) -> SessionReplay:
    """Run the command of a session again in the folder of the project. Raises SnapshotError where it cannot be run."""
    command, around = tuple(shlex.split(command_of(events))), surroundings(str(project.root))
    try:
        answers = RecordedAnswers(events, encodings(), around, strict=True)
        listener = listen(LOOPBACK, 0)
    except (NothingRecorded, CannotListen) as fault:
        raise SnapshotError(str(fault)) from None
    sink, text = MemorySink(), shlex.join(command)
    prices = PriceTable(project.settings.prices)
    services = JournalServices(sink, SystemClock(), encodings(), prices, cost, project.redactor())
    origin = Origin(FORMAT, text, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
    run_id = SystemIds().run_id()
    recorder = Recorder(origin, run_id, str(events[0].data.get("session_id", "")), services, around=around)
    run = AttachedRun(run_id, "", recorder, answers)
    with SCRATCH.subfolder("output") as folder:
        output = folder / "output"
        try:
            async with serving(run, Served(listener, addresses({}), command)) as variables:
                beside = run_beside(command, variables, output, folder=project.root)
                code = await asyncio.wait_for(beside, LONGEST)
        except CannotStart as fault:
            recorder.close("stopped", str(fault))
            raise SnapshotError(str(fault)) from None
        except TimeoutError:
            recorder.close("stopped", "it took too long")
            raise SnapshotError(f"the command did not end within {LONGEST:.0f} s") from None
        printed = output.read_text("utf-8", "replace")[-_TOLD:].strip()
    end_session(run, SessionEnd(code))
    kept = RecordedRun(run_id, tuple(sink.events), {}, sink.blobs)
    end = sink.events[-1].data
    again = Rerun(kept, str(end["status"]), str(end["reason"]), recorder.calls)
    return SessionReplay(tuple(_differences(events, answers, code, printed)), again)


def _differences(events: Sequence[Event], answers: RecordedAnswers, code: int, printed: str) -> list[Difference]:
    found = list[Difference]()
    if answers.diverged:
        found.append(Difference(Kinds.REQUEST, answers.diverged))
    before = next((e.data for e in reversed(events) if e.kind == "run_finished"), {})
    was, now = str(before.get("reason", "")), exit_reason(code)
    was = was if before.get("status") == "failed" and was.startswith(EXITED) else ""
    if was != now:
        said = f"{now or 'the command ended well'}; when it was frozen: {was or 'it ended well'}"
        found.append(Difference(Kinds.STATUS, said, details=tuple(printed.splitlines()[-10:])))
    if answers.unasked:
        count = answers.unasked
        words = f"{count} recorded {'reply was' if count == 1 else 'replies were'} not asked for"
        found.append(Difference(Kinds.REQUEST, words))
    return found
