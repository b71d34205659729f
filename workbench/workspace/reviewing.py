"""Reviews changed snapshots: the content shown for each one, and the effect of a decision.

The app and ``workbench test review`` show the same sections in the same words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.changed import ChangedCall, ChangedPart
from workbench.context.place import Place
from workbench.snapshots.differences import Difference, Kinds, place_words
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.freeze import is_session

if TYPE_CHECKING:
    from workbench.engine.journal.event import Event
    from workbench.snapshots.snapshot import Snapshot
    from workbench.workspace.testing import SnapshotResult, Snapshots

# What is said of a run that was frozen: the file, the secrets that were replaced in it, whether it passes now.

_LABEL = re.compile(r"\[redacted ([A-Za-z0-9_.-]{1,64})\]")


def written_words(snapshots: Snapshots, path: Path, snapshot: Snapshot) -> str:
    """``snapshots/router.json: 4 calls of router-1f3a, strict``."""
    made = len(snapshot.expectations.requests)
    calls = f"{made} call" + ("" if made == 1 else "s")
    return f"{snapshots.project.shown(path)}: {calls} of {snapshot.session_id}, {snapshot.mode}"


def redacted_words(snapshot: Snapshot) -> str:
    """The secrets that labels in the file replace, and in how many places; empty if there are none."""
    found = Counter(_LABEL.findall(snapshot.to_text()))
    if not found and not snapshot.redacted:
        return ""
    names = ", ".join(f"{name} ({count})" for name, count in found.most_common())
    return f"secrets were replaced: {names or snapshot.redacted}"


def passing_words(snapshots: Snapshots, path: Path, snapshot: Snapshot) -> str:
    """Returns why it fails with the unchanged file already, or why that is unknown; empty if it passes, or there is no
    file."""
    if is_session(snapshot.kept.events):
        again = "" if snapshots.runs_commands else f"workbench test replay {snapshot.name} --commands"
        return again and f"it was not replayed, because that runs its command: {again}"
    if not (snapshots.project.root / snapshot.cascade_file).is_file():
        return ""
    verdict = snapshots.replay(path)
    return "" if verdict.passed else f"it fails with {snapshot.cascade_file} as it is now: {verdict.first}"


class Decision(StrEnum):
    """The decision about a changed snapshot."""

    ACCEPTED = "accepted"
    """Today's request was written as the new expectation."""
    REJECTED = "rejected"
    """The snapshot is right and the cascade is wrong: nothing is written."""
    SKIPPED = "skipped"
    """Not decided."""


class Section(Struct, frozen=True):
    """The differences at one place of the run."""

    at: str
    """The place in full; empty for the run as a whole."""
    label: str
    """``triage:2``."""
    said: str
    """``request changed: 1 message reworded``."""
    file: str
    """The cascade file whose lines are shown."""
    call: ChangedCall | None = None
    """Both requests, if they differ."""
    others: tuple[Difference, ...] = ()
    """Everything here that is no change of a request."""
    same_as: str = ""
    """Label of an earlier place whose request changed in the same way: its parts are not repeated."""

    @property
    def parts(self) -> tuple[ChangedPart, ...]:
        """The parts of the request that are to be told."""
        return self.call.parts if self.call is not None and not self.same_as else ()

    @property
    def line(self) -> int:
        """The line of the file to look at; 0 if none decided."""
        rules = [part.rule for part in self.call.parts if not part.recorded_rule] if self.call is not None else []
        rules += [one.rule for one in self.others if not one.frozen_rule]
        return next((rule.line for rule in rules if rule.line), 0)


def sections(verdict: SnapshotResult) -> tuple[Section, ...]:
    """The differences of a verdict by place, in the order in which the run came to them; those of the whole last."""
    places: dict[tuple[str, str], list[Difference]] = {}
    for one in verdict.differences:
        places.setdefault((one.file, one.at), []).append(one)
    ordered = sorted(places.items(), key=lambda item: not item[0][1])
    made = [_section(at, file or verdict.cascade_file, found) for (file, at), found in ordered]
    first: dict[object, str] = {}
    for index, section in enumerate(made):
        if section.call is not None:
            like = tuple((p.kind, p.was, p.now, p.rule, p.words.partition(" (")[2]) for p in section.call.parts)
            if (label := first.setdefault((section.file, like), section.label)) != section.label:
                made[index] = replace(section, said=f"request changed as in {label}", same_as=label)
    return tuple(made)


def _section(at: str, file: str, found: Sequence[Difference]) -> Section:
    call = next((one.call for one in found if one.call is not None), None)
    others = tuple(one for one in found if one.call is None or not one.call.parts)
    if call is not None and call.parts:
        said = f"request changed: {call.summary}"
    else:
        kinds = Counter(_WORDS[one.kind] for one in others)
        said = ", ".join(word if count == 1 else f"{word} ({count})" for word, count in kinds.items())
    return Section(at, _label(at), said, file, call if call is not None and call.parts else None, others)


_WORDS = {
    Kinds.PHASES: "phases",
    Kinds.STATE: "state",
    Kinds.STATUS: "status",
    Kinds.ROUTE: "route",
    Kinds.CHECK: "check",
    Kinds.TOOL: "tool call",
    Kinds.OUTPUT: "output",
    Kinds.REQUEST: "request",
    Kinds.TOKENS: "tokens",
    Kinds.CHILD: "started cascade",
}


def _label(at: str) -> str:
    """A place as people read it: ``triage:2``, with visit, attempt and call where they are not the first."""
    if not at:
        return "the whole run"
    try:
        return place_words(Place.parse(at), "")
    except ValueError:
        return at.removesuffix("/1")  # A route stands at phase/visit.


def source_words(part: ChangedPart, file: str) -> str:
    """The place that decided: ``flow.yaml:22 was 3, is 1 phases[0].rules.max_turns``; empty without a line."""
    if not part.rule.line:
        return ""
    return "  ".join(filter(None, (part.where(file), part.rule_words, part.rule.path)))


_LOOKED_AT = {
    "routes": {Kinds.ROUTE, Kinds.PHASES},
    "checks": {Kinds.CHECK},
    "tool calls": {Kinds.TOOL},
    "state": {Kinds.STATE},
    "outputs": {Kinds.OUTPUT},
    "requests": {Kinds.REQUEST, Kinds.TOKENS},
    "status": {Kinds.STATUS},
}


def same_words(verdict: SnapshotResult) -> str:
    """Names the parts that are unchanged beside the differences: ``routes, checks, state: same``; empty if unknown."""
    if verdict.fault is not None or verdict.skipped:
        return ""
    kinds = {one.kind for one in verdict.differences}
    looked_at = {"phases": {Kinds.PHASES}, **{name: _LOOKED_AT[name] for name in ("state", "status")}}
    same = [name for name, own in (_LOOKED_AT if verdict.mode == "strict" else looked_at).items() if not kinds & own]
    return f"{', '.join(same)}: same" if same else ""


def heading(verdict: SnapshotResult) -> str:
    """``changed``, ``cannot be replayed``, ``not run``, or ``as frozen``."""
    if verdict.fault is not None:
        return "cannot be replayed"
    if verdict.skipped:
        return "not run"
    return "changed" if verdict.differences else "as frozen"


class Review:
    """Changed snapshots and the decision about each. Only accepted ones are written."""

    def __init__(self, snapshots: Snapshots, changed: Sequence[SnapshotResult]) -> None:
        self._snapshots = snapshots
        self.changed = tuple(changed)
        self.decided: dict[str, Decision] = {}
        """By the name of the snapshot."""
        self._written: dict[str, Snapshot] = {}
        """The accepted snapshots, by the name too."""

    def decide(self, verdict: SnapshotResult, decision: Decision) -> None:
        """Decide about one; a later decision replaces an earlier one. Raises SnapshotError, and leaves the file, if it
        cannot be accepted or was written in between.
        """
        if decision is Decision.ACCEPTED:
            self._written[verdict.name] = self._snapshots.accept(verdict)
        elif self.decided.get(verdict.name) is Decision.ACCEPTED:
            self._snapshots.take_back(verdict, self._written[verdict.name])
        self.decided[verdict.name] = decision

    def undo(self, verdict: SnapshotResult) -> None:
        """Withdraw a decision and restore the file. Raises SnapshotError if the file was written in between."""
        self.decide(verdict, Decision.SKIPPED)
        del self.decided[verdict.name]

    def decide_rest(self, decision: Decision) -> list[SnapshotError]:
        """Decide about all that are open; the reasons why some could not be accepted, which count as skipped."""
        faults: list[SnapshotError] = []
        for verdict in self.open():
            try:
                self.decide(verdict, decision)
            except SnapshotError as fault:
                faults.append(fault)
                self.decided[verdict.name] = Decision.SKIPPED
        return faults

    def open(self) -> list[SnapshotResult]:
        """Snapshots without a decision."""
        return [verdict for verdict in self.changed if verdict.name not in self.decided]

    def left(self) -> list[SnapshotResult]:
        """Those that are still not as their cascades: all but the accepted ones."""
        return [v for v in self.changed if self.decided.get(v.name) is not Decision.ACCEPTED]

    @property
    def counts(self) -> str:
        """``2 accepted, 0 rejected, 1 skipped``; undecided ones count as skipped."""
        done = Counter(self.decided.get(verdict.name, Decision.SKIPPED) for verdict in self.changed)
        return ", ".join(f"{done[decision]} {decision}" for decision in Decision)


def source_texts(verdict: SnapshotResult, section: Section) -> tuple[str, str]:
    """The text of the section's cascade file now, and as it was frozen; empty where it is not known."""
    snapshot, again = verdict.snapshot, verdict.again
    if snapshot is None or again is None:
        return "", ""
    if section.file == verdict.cascade_file:
        return _pinned(again.kept.events), snapshot.cascade_text
    runs = [(_file_of(events), _pinned(events)) for events in again.kept.children.values()]
    return next((text for file, text in runs if file == section.file), ""), ""


def _pinned(events: Sequence[Event]) -> str:
    return str(events[0].data.get("cascade_text", "")) if events else ""


def _file_of(events: Sequence[Event]) -> str:
    return str(events[0].data.get("cascade_file", "")) if events else ""
