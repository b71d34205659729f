"""Shared by ``fork`` and ``run --reuse``: the starting point, the pinned calls, and the display of a
changed request.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from workbench.analysis.changed import ChangedCall, changed_call
from workbench.cli.errors import Exit, Failure
from workbench.cli.printer import Printer, talk
from workbench.cli.progress import Progress
from workbench.cli.running import SESSION_ID, RunOptions, cannot_run, chooser, driven
from workbench.context.assembly import Entry
from workbench.context.place import Place
from workbench.engine.definition import Definition, Outcome
from workbench.engine.edits import Edit, SetModel
from workbench.engine.gate import Decision, Gate, RunStopped, Stop, StopKind
from workbench.engine.model_name import OFFLINE
from workbench.engine.past.fork import ForkPoint, find_place, find_point
from workbench.engine.past.places import NoSuchPlace
from workbench.engine.past.recording import Recording
from workbench.views.requests import ChangedView
from workbench.workspace.edit_text import read_edits, read_state, stop_for
from workbench.workspace.offline_replies import replies_of
from workbench.workspace.recorded_runs import StoredRun, past_of
from workbench.workspace.run_builder import RunAttachments, fork, rerun, restart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from workbench.workspace.project import Project


def fork_run(
    project: Project,
    run_id: str,
    way: RunOptions,
    *,
    at: str,
    stop: str | None,
    tool: int,
    state: Sequence[str],
    written: Sequence[str],
    pins: Sequence[str],
    definition: str,
) -> int:
    """Fork a stored run; the exit code. Raises Failure, and what reading the run raises."""
    _require_new_session(project, way.session)
    past = past_of(project.store, run_id)
    recording = past.recording
    entries: Sequence[Entry] = ()
    if at:
        call = recording.state.call_at(_place(recording, at, past))
        entries = call.entries if call is not None else ()
    edits: tuple[Edit, ...] = (*read_state(state), *read_edits(written, entries))
    if way.model and way.model != OFFLINE:
        edits = (*edits, SetModel(way.model, default=True))
    kind = stop_for(edits, stop, whole_phase=":" not in at and "/" not in at)
    if edits and not at:
        raise Failure(Exit.USAGE, "edits need a place", hint="--at phase:turn")
    point = _point(recording, kind, at, tool, past) if at else None
    start = restart(
        project,
        past,
        chooser(project, way),
        session=way.session,
        definition=_definition(project, past, definition),
    )
    start = replace(start, sandbox=way.sandbox)
    if start.choice.offline:
        replies_of(start.file)
    pinned = _pins(recording, pins, past)

    async def begin(attached: RunAttachments) -> Outcome:
        outcome, is_stored = await fork(project, past, start, attached, point=point, edits=edits, pins=pinned)
        if not is_stored:
            where = f" before {point}" if outcome.status == "diverged" and point is not None else ""
            raise Failure(Exit.FAILED, f"no fork was made: the replay {outcome.status}{where}: {outcome.reason}")
        return outcome

    def gate(progress: Progress, behind: Gate) -> Gate:
        return _SpeakAfterReplay(progress, behind)

    return driven(project, way, start.choice, begin, gate=gate)


def rerun_file(
    project: Project,
    file: Path,
    run_id: str,
    input: Mapping[str, Any] | None,
    way: RunOptions,
    *,
    live: bool,
    pins: Sequence[str],
) -> int:
    """Run a file with the recorded answers of every call that is unchanged; the exit code."""
    _require_new_session(project, way.session)
    past = past_of(project.store, run_id)
    opened = project.open(file, way.allow)
    if opened.definition is None:
        raise cannot_run(opened)
    start = restart(project, past, chooser(project, way), session=way.session, definition=opened.definition)
    start = replace(start, file=file.resolve(), sandbox=way.sandbox)
    if input is not None:
        start = replace(start, input=dict(input))
    if way.model and way.model != OFFLINE:
        start = replace(start, options=replace(start.options, default_model=way.model))
    if start.choice.offline:
        replies_of(file)
    pinned = _pins(past.recording, pins, past)
    shown = opened.shown

    def gate(progress: Progress, behind: Gate) -> Gate:
        return _StopAtChange(past.recording, start.definition, shown, progress, behind, live=live, plain=way.plain)

    return driven(
        project, way, start.choice, lambda attached: rerun(project, past, start, attached, pins=pinned), gate=gate
    )


class _SpeakAfterReplay:
    """Ends the silence during a replay: ForkGate asks no one before its point."""

    def __init__(self, progress: Progress, behind: Gate) -> None:
        self._progress = progress
        self._behind = behind

    async def __call__(self, stop: Stop) -> Decision:
        self._progress.speak()
        return await self._behind(stop)


class _StopAtChange:
    """Shows the first request that is not the recorded one, and stops there unless the run may go live."""

    def __init__(
        self,
        recording: Recording,
        definition: Definition,
        file: str,
        progress: Progress,
        behind: Gate,
        *,
        live: bool,
        plain: bool,
    ) -> None:
        self._recording = recording
        self._definition = definition
        self._file = file
        self._progress = progress
        self._behind = behind
        self._live = live
        self._plain = plain
        self._shown = False

    async def __call__(self, stop: Stop) -> Decision:
        if stop.kind is StopKind.BEFORE_CALL and stop.answered_by in ("changed", "live"):
            self._progress.speak()
        if stop.answered_by == "changed" and not stop.depth and not self._shown:
            self._shown = True
            changed = changed_call(self._recording, self._definition, stop)
            if changed is not None:
                show_changed(changed, self._file, self._plain)
            if not self._live:
                raise RunStopped(f"the request of {stop.place.words} is not the recorded one; --live sends it")
        return await self._behind(stop)


def show_changed(changed: ChangedCall, file: str, plain: bool = False) -> None:
    """Old and new request side by side on stderr, each difference with the line of the file behind it."""
    place = changed.place
    talk(f"{place.phase}:{place.turn} is the first call whose request has changed", "warning")
    Printer(plain, sys.stderr).show(ChangedView(changed, file).blocks())


def _definition(project: Project, past: StoredRun, wanted: str) -> Definition | None:
    """The text to run: the pinned one (None), or today's file. Says so if they differ."""
    state = past.recording.state
    file = project.root / state.cascade_file
    if not state.cascade_file or not file.is_file():
        if wanted == "file":
            raise Failure(Exit.USAGE, f"the file of {past.session_id} is no longer there", file=state.cascade_file)
        return None
    opened = project.open(file)
    if project.is_pinned(opened.source.text, state.cascade_text):
        return None
    if wanted == "recorded":
        talk(f"{opened.shown} has changed since {past.session_id} ran: the recorded text is used", "warning")
        return None
    if opened.definition is None:
        raise cannot_run(opened)
    talk(f"this fork runs another text than {past.session_id} did: {opened.shown} as it is now", "warning")
    return opened.definition


def _pins(recording: Recording, written: Sequence[str], past: StoredRun) -> frozenset[Place]:
    """The calls that keep their answers: ``phase`` or ``phase#visit`` (all its calls), ``phase:turn``, or in full."""
    pinned: set[Place] = set()
    for text in written:
        place = _place(recording, text, past)
        if ":" in text or "/" in text:
            pinned |= {each for each in recording.calls if each.turn_key == place.turn_key}
        else:
            here = [each for each in recording.calls if each.phase == place.phase]
            pinned |= {each for each in here if text in (each.phase, f"{each.phase}#{each.visit}")}
    return frozenset(pinned)


def _place(recording: Recording, text: str, past: StoredRun) -> Place:
    try:
        return find_place(recording, text)
    except NoSuchPlace as fault:
        raise Failure(Exit.USAGE, f"{past.session_id}: {fault}") from fault


def _point(recording: Recording, kind: StopKind, text: str, tool: int, past: StoredRun) -> ForkPoint:
    try:
        return find_point(recording, kind, text, tool)
    except NoSuchPlace as fault:
        raise Failure(Exit.USAGE, f"{past.session_id}: {fault}") from fault


def _require_new_session(project: Project, session: str) -> None:
    if not session:
        return
    if not SESSION_ID.fullmatch(session):
        raise Failure(Exit.USAGE, f"'{session}' is not a session id", hint="letters, digits, '.', '_' and '-'")
    project.store.require_new(session)
