"""A run in one line: a small fold kept beside the journal, so that a list of runs opens no journal."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from workbench.context.place import Place
from workbench.context.remembered import remember
from workbench.engine.journal.annotations import NO_LABELS, Labels
from workbench.engine.journal.costs import CostSum
from workbench.engine.journal.elapsed import Elapsed
from workbench.engine.journal.event import Event
from workbench.engine.journal.figures import MOST_OPEN, FiguresFold
from workbench.engine.journal.repeats import Repeats
from workbench.json_text import as_text
from workbench.store.journal import annotation_file
from workbench.store.journal.reading import ROOM, SUMMARY, Health, read_summary, segments, summary_checksum, written

_FORMAT = 15

EXCERPT = 2000
"""Characters of an input and of an output that a summary holds."""

ENDS = 4096
"""Bytes at each end of a segment that tell it from another one."""

STATUSES = ("running", "success", "failed", "blocked", "stopped", "interrupted", "diverged")
"""The statuses of a run: the words of every list, command and screen."""

RESUMABLE = ("stopped", "interrupted", "failed")
"""A run with one of these can go on."""

WAITING = "waiting"
"""The word of lists for a run that goes on and waits for a person."""

CHECKPOINT = "checkpoint"
"""The source of a run that was imported from a checkpoint of a pipeline."""


class RunSummary(Struct, frozen=True):
    """One run in a list. Money in US dollars, sizes in bytes; counts of tokens are the provider's if known."""

    run_id: str
    session_id: str = ""
    cascade_id: str = ""
    cascade_file: str = ""
    status: str = "interrupted"
    """One of ``STATUSES``."""
    reason: str = ""
    started: str = ""
    finished: str = ""
    input: str = ""
    """A line ``name: value`` for each, ``EXCERPT`` characters at most."""
    output: str = ""
    """Likewise; empty until it has ended."""
    excerpt: bool = False
    """Whether the input or the output is longer than that."""
    labels: Labels = NO_LABELS
    """The labels that people gave to it."""
    call_labels: tuple[tuple[str, Labels], ...] = ()
    """The labels that people gave to its calls, by place."""
    seconds: float | None = None
    """Duration in seconds (``Elapsed``); None until it has ended, and if an imported file names no times."""
    phases: tuple[str, ...] = ()
    """Names in the order of their first visit."""
    models: tuple[str, ...] = ()
    """The models that answered; if an answer names none, as in many imported files, the requested one."""
    model: str = ""
    """The models that its calls were sent to; another one may have answered."""
    paused: float = 0.0
    """Seconds for which it was paused, which are no part of ``seconds``."""
    inside: int = 0
    """Runs that it started, and those that they started: what they took is in the numbers below."""
    missing: int = 0
    """Child runs that are not included, because their figures are unknown."""
    calls: int = 0
    """That a provider answered: tokens and money below are theirs."""
    recorded: int = 0
    """Answered from a recording, and no part of ``calls``."""
    recorded_tokens_in: int = 0
    """Of the recorded answers, as are the next two."""
    recorded_grade_in: str = "exact"
    recorded_tokens_out: int = 0
    tools: int = 0
    tokens_in: int = 0
    grade_in: str = "exact"
    """How far ``tokens_in`` can be trusted: exact, calibrated or estimate."""
    tokens_out: int = 0
    cost: float = 0.0
    """Of all calls that it made and all embeddings with a known cost."""
    recorded_cost: float = 0.0
    """What its recorded answers cost when they were asked for: no part of ``cost`` and ``predicted``."""
    recorded_exact: bool = True
    """Whether all of that was billed."""
    unknown_costs: int = 0
    """Calls without a bill, and one more for each run whose embeddings have no price."""
    predicted: float = 0.0
    """Predicted cost of calls without a bill."""
    halves: int = 0
    """Calls of which the input alone is predicted."""
    unpredicted: int = 0
    """Calls with neither bill nor prediction, and one more if a price of embeddings is unknown."""
    embedded: int = 0
    """1 for each run that embedded texts."""
    exact: bool = False
    """Every call was billed."""
    warnings: int = 0
    edited: int = 0
    """Edits by hand."""
    at: str = ""
    """``phase:turn`` of the last call."""
    cascade_sha256: str = ""
    parent_run: str = ""
    parent_session: str = ""
    parent_kind: str = ""
    """fork, rerun, replay; for what ran inside another run sub, async, spawn, tool, validator or ward."""
    parent_at: str = ""
    """The stop that it was forked at."""
    parent_sha256: str = ""
    """Of the text that the parent ran, for a fork or re-run."""
    depth: int = 0
    """How many runs this one is inside of: above 0 for what a validator, tool or phase of another run started."""
    imported: bool = False
    source: str = ""
    """The format that it was imported from."""
    source_file: str = ""
    """The file that it was imported from, as it was named then."""
    asking: bool = False
    """Whether it asked a person something that has no answer yet."""
    seq: int = 0
    """Of the last event."""
    bytes: int = 0
    damaged: bool = False
    fault: str = ""
    """The fault of its journal, in a sentence."""
    user: str = ""
    """The user of a run from a team's server."""
    machine: str = ""
    """The machine of a run from a team's server."""
    pid: int | None = None
    """Of the process that writes it, while it runs."""

    @property
    def name(self) -> str:
        """The name that people use for it."""
        return self.session_id or self.run_id

    @property
    def spent(self) -> CostSum:
        """Money, billed and predicted."""
        return CostSum(
            self.cost,
            self.predicted,
            self.exact,
            self.unpredicted,
            self.unknown_costs,
            self.calls,
            self.embedded,
            self.recorded_cost,
            self.recorded_exact,
            self.recorded,
            self.halves,
        )

    @property
    def answers(self) -> int:
        """Its calls that were answered, by a provider or a recording: how long it is."""
        return self.calls + self.recorded

    @property
    def told_out(self) -> int | None:
        """Tokens of the answers; None if no provider stated them, as in imported files without usage."""
        return self.tokens_out if self.tokens_out or not self.calls else None

    @property
    def recorded_told_out(self) -> int | None:
        """Likewise of the recorded answers."""
        return self.recorded_tokens_out if self.recorded_tokens_out or not self.recorded else None

    @property
    def all_labels(self) -> tuple[Labels, ...]:
        """Of the run, then of its calls."""
        return (self.labels, *(labels for _, labels in self.call_labels))

    @property
    def waiting(self) -> bool:
        """Whether it goes on, and waits for a person."""
        return self.asking and self.status == "running"

    @property
    def unanswered(self) -> bool:
        """Whether an answer brings it on: it waits for one, or it stopped before there was one and can be resumed."""
        return self.waiting or (self.asking and self.resumable and self.status != "failed")

    @property
    def resumable(self) -> bool:
        """Whether it can be resumed."""
        return self.status in RESUMABLE and not (self.imported or self.damaged)

    @property
    def redefined(self) -> bool:
        """Whether it runs another text of the cascade than the run that it starts from."""
        return bool(self.parent_sha256) and self.parent_sha256 != self.cascade_sha256


_KEPT = frozenset(RunSummary.__struct_fields__) - {"labels", "call_labels"}
"""The fields in the file of a summary: annotations change by themselves."""
_STARTED = ("session_id", "cascade_id", "cascade_file", "cascade_sha256")
_PARENT = {
    "parent_run": "run_id",
    "parent_session": "session_id",
    "parent_kind": "kind",
    "parent_at": "at",
    "parent_sha256": "cascade_sha256",
}
"""Fields of a summary, and what they are called in a ``run_started`` event."""


class Summarizer(Struct):
    """Folds events into a summary. It needs no message bodies, so ``blob`` records may be left out."""

    run_id: str
    values: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, None] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    asked: dict[Place, str] = field(default_factory=dict)
    """The model that each of the newest calls was sent to."""
    sent: Counter[str] = field(default_factory=Counter)
    """How many calls were sent to each model."""
    figures: FiguresFold = field(default_factory=FiguresFold)
    warnings: int = 0
    edited: int = 0
    questions: set[tuple[Place, Any]] = field(default_factory=set)
    """Those to a person that have no answer yet, by place and index."""
    seq: int = 0
    elapsed: Elapsed = field(default_factory=Elapsed)
    repeats: Repeats = field(default_factory=Repeats)
    senseless: bool = False
    """A record was not what its kind promises: the summary leaves it out."""

    def apply(self, event: Event) -> None:
        """Take the next event; unknown kinds, missing fields and nonsense are passed over."""
        self.seq = event.seq
        try:
            if self.elapsed.take(event):
                self.values["started"] = event.at
            if not self.repeats.takes(event):
                self._take(event)
        except (TypeError, ValueError, AttributeError):
            self.senseless = True

    def _take(self, event: Event) -> None:
        data = event.data
        self.figures.take(event)
        match event.kind:
            case "run_started":
                parent = data.get("parent") or {}
                source = str((data.get("ports") or {}).get("imported") or "")
                self.values |= {name: str(data.get(name, "")) for name in _STARTED}
                self.values |= {ours: str(parent.get(name) or "") for ours, name in _PARENT.items()}
                origin = str((data.get("imported") or {}).get("file") or "")
                self.values |= {"started": event.at, "imported": bool(source), "source": source, "source_file": origin}
                self._excerpt("input", input_text(data.get("input")))
                self.values["depth"] = int(parent.get("depth") or 0)
            case "run_resumed":
                self.values |= {"status": "", "reason": "", "finished": "", "output": ""}
            case "run_finished":
                self.values |= {name: str(data.get(name, "")) for name in ("status", "reason")} | {"finished": event.at}
                self._excerpt("output", str(data.get("output") or ""))
            case "phase_started":
                self.phases.setdefault(event.place.phase)
            case "context_assembled":
                if event.place.turn:
                    self.values["at"] = f"{event.place.phase}:{event.place.turn}"
            case "call_started":
                model = str(data.get("model") or "")
                self.sent.subtract(
                    [self.asked.get(event.place, "")]
                )  # A call that is sent again may go to another one.
                self.sent.update([model])
                remember(self.asked, event.place, model, MOST_OPEN)
            case "call_finished":
                self._asked(event)
            case "human_asked":
                self.questions.add((event.place, data.get("index")))
            case "human_answered" if not data.get("refused"):
                self.questions.discard((event.place, data.get("index")))
            case "warning":
                self.warnings += 1
            case "edited":
                self.edited += 1

    def _excerpt(self, name: str, text: str) -> None:
        self.values[name] = text[:EXCERPT]
        self.values["excerpt"] = self.values.get("excerpt", False) or len(text) > EXCERPT

    def _asked(self, event: Event) -> None:
        if model := event.data.get("model") or self.asked.get(event.place):
            self.models.setdefault(model)

    def summary(self) -> RunSummary:
        """The summary so far; ``status`` is ``interrupted`` until a ``run_finished`` has been seen."""
        values = self.values | {"status": self.values.get("status") or "interrupted"}
        took = self.figures.whole
        spent = took.spent
        return RunSummary(
            self.run_id,
            **values,
            seconds=self.elapsed.whole(finished=bool(values.get("finished")), imported=bool(values.get("imported"))),
            phases=tuple(self.phases),
            models=tuple(self.models),
            model=", ".join(name for name, calls in self.sent.items() if name and calls > 0),
            paused=self.elapsed.paused,
            inside=took.runs,
            missing=took.missing,
            calls=took.calls,
            recorded=took.recorded,
            recorded_tokens_in=took.recorded_tokens_in,
            recorded_grade_in=str(took.recorded_grade_in),
            recorded_tokens_out=took.recorded_tokens_out,
            tools=took.tools,
            tokens_in=took.tokens_in,
            grade_in=str(took.grade_in),
            tokens_out=took.tokens_out,
            cost=spent.billed,
            unknown_costs=spent.unbilled,
            predicted=spent.predicted,
            halves=spent.halves,
            unpredicted=spent.unknown,
            embedded=spent.embedded,
            exact=spent.exact,
            recorded_cost=spent.recorded,
            recorded_exact=spent.recorded_exact,
            warnings=self.warnings,
            edited=self.edited,
            asking=bool(self.questions),
            seq=self.seq,
        )


def input_text(given: object) -> str:
    """An input as lines ``name: value``: texts as they are, everything else as JSON."""
    if not isinstance(given, Mapping):
        return "" if given is None else as_text(given)
    return "\n".join(f"{name}: {as_text(value)}" for name, value in given.items())


def labelled(run: RunSummary, folder: Path) -> RunSummary:
    """A summary with what people say of the run now."""
    found = annotation_file.read(folder).annotations
    calls = tuple((str(place), labels) for place, labels in found.calls())
    if found.run == run.labels and calls == run.call_labels:
        return run
    return replace(run, labels=found.run, call_labels=calls)


def fault_of(fold: Summarizer, health: Health) -> str:
    """Describes the fault of a journal, the worst problem first; empty for a good one."""
    if not health.problems and fold.senseless:
        return "a record is not what its kind promises"
    return fault_in(health, started=bool(fold.values.get("started")))


def fault_in(health: Health, *, started: bool) -> str:
    """Describes the faults that reading found, the worst first; ``started``: the record was read with which a run
    begins."""
    if not started and health.whole:
        return "its beginning is missing" if health.last_seq else "its journal is empty"
    return health.problems[0] if health.problems else ""


def unreadable(run_id: str, error: OSError) -> RunSummary:
    """A run whose folder cannot be read."""
    fault = f"cannot be read: {error.strerror}"
    return RunSummary(run_id, reason=fault, damaged=True, fault=fault)


Identity = dict[str, list[Any]]
"""By file, what it was like when it was read."""


def identity(folder: Path) -> Identity:
    """Returns the identity that tells this journal from another, or from an earlier state: of each segment its size,
    when it and its entry in the folder last changed, and a digest of its ends; of the bodies in files how many, how
    long and how new they are.

    Raises OSError."""
    return {**{name: _segment(folder / name) for name in segments(folder)}, "blobs": _bodies(folder / "blobs")}


def size_of(now: Identity) -> int:
    """Bytes of all segments."""
    return sum(file[0] for name, file in now.items() if name != "blobs")


def _segment(path: Path) -> list[Any]:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        stat = os.fstat(file)
        ends = os.pread(file, ENDS, 0) + os.pread(file, ENDS, max(stat.st_size - ENDS, 0))
    finally:
        os.close(file)
    digest = hashlib.sha256(ends).hexdigest()[:16]
    return [stat.st_size if stat.st_size % ROOM else written(path), stat.st_mtime_ns, stat.st_ctime_ns, digest]


def _bodies(folder: Path) -> list[Any]:
    try:
        with os.scandir(folder) as entries:
            files = [entry.stat(follow_symlinks=False) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
    newest = max((max(file.st_mtime_ns, file.st_ctime_ns) for file in files), default=0)
    return [len(files), sum(file.st_size for file in files), newest]


def load(folder: Path, now: Identity) -> RunSummary | None:
    """The kept summary, or None if there is none for the current journal, or it is damaged."""
    body = read_summary(folder)
    if body is None:
        return None
    try:
        if body["format"] != _FORMAT or body["journal"] != now:
            return None
        known = _KEPT
        values = {name: value for name, value in body["summary"].items() if name in known}
        return RunSummary(**values | {name: tuple(values[name]) for name in ("phases", "models")})
    except (KeyError, TypeError, AttributeError):
        return None


def keep(folder: Path, summary: RunSummary, now: Identity) -> None:
    """Write the summary beside the journal, with a checksum of itself. It is a cache: if it cannot be written, it is
    computed each time.
    """
    part = folder / f".{SUMMARY}.{os.getpid()}.part"
    kept = {name: value for name, value in asdict(summary).items() if name in _KEPT}
    body = {"format": _FORMAT, "journal": now, "summary": kept}
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, json.dumps({**body, "crc": summary_checksum(body)}).encode("ascii"))
        finally:
            os.close(file)
        part.replace(folder / SUMMARY)
    except OSError:
        with suppress(OSError):
            part.unlink()
