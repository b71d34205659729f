"""A run in one line: a small fold kept beside the journal, so that a list of runs opens no journal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from workbench.context.place import Place
from workbench.engine.event import Event
from workbench.store.reading import segments

FILE = "summary.json"
_FORMAT = 2


@dataclass(frozen=True)
class RunSummary:
    """What a list of runs shows. Money in US dollars, sizes in bytes; counts of tokens are the provider's if known."""

    run_id: str
    session_id: str = ""
    cascade_id: str = ""
    cascade_file: str = ""
    status: str = "interrupted"
    """running, interrupted, success, failed, blocked, stopped, diverged."""
    reason: str = ""
    started: str = ""
    finished: str = ""
    phases: tuple[str, ...] = ()
    """Names in the order of their first visit."""
    models: tuple[str, ...] = ()
    calls: int = 0
    tools: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    """Of all calls whose cost is known."""
    unknown_costs: int = 0
    warnings: int = 0
    parent_run: str = ""
    parent_session: str = ""
    depth: int = 0
    """How many runs this one is inside of: above 0 for what a validator, tool or phase of another run started."""
    imported: bool = False
    seq: int = 0
    """Of the last event."""
    bytes: int = 0
    damaged: bool = False
    pid: int | None = None
    """Of the process that writes it, while it runs."""


@dataclass
class Summarizer:
    """Folds events into a summary. It needs no message bodies, so ``blob`` records may be left out."""

    run_id: str
    values: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, None] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    sent: dict[Place, int] = field(default_factory=dict)
    costs: dict[str, float | None] = field(default_factory=dict)
    """By request digest and sequence number, for costs that arrive later."""
    calls: int = 0
    tools: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    warnings: int = 0
    seq: int = 0
    senseless: bool = False
    """A record was not what its kind promises: the summary leaves it out."""

    def apply(self, event: Event) -> None:
        """Take the next event; unknown kinds, missing fields and nonsense are passed over."""
        self.seq = event.seq
        try:
            self._take(event)
        except (TypeError, ValueError, AttributeError):
            self.senseless = True

    def _take(self, event: Event) -> None:
        data = event.data
        match event.kind:
            case "run_started":
                parent = data.get("parent") or {}
                self.values |= {name: str(data.get(name, "")) for name in ("session_id", "cascade_id", "cascade_file")}
                self.values |= {
                    "started": event.at,
                    "parent_run": str(parent.get("run_id", "")),
                    "parent_session": str(parent.get("session_id", "")),
                    "depth": int(parent.get("depth") or 0),
                    "imported": bool((data.get("ports") or {}).get("imported")),
                }
            case "run_resumed":
                self.values |= {"status": "", "reason": "", "finished": ""}
            case "run_finished":
                self.values |= {name: str(data.get(name, "")) for name in ("status", "reason")} | {"finished": event.at}
            case "phase_started":
                self.phases.setdefault(event.place.phase)
            case "context_assembled":
                self.sent[event.place] = data.get("tokens_sent", 0)
            case "call_finished":
                self._call(event)
            case "cost_known":
                self._late_cost(data.get("digest", ""), data.get("cost"))
            case "tool_finished":
                self.tools += 1
            case "warning":
                self.warnings += 1

    def _call(self, event: Event) -> None:
        data = event.data
        usage = data.get("usage") or {}
        self.calls += 1
        measured = usage.get("input")
        self.tokens_in += self.sent.get(event.place, 0) if measured is None else measured
        self.tokens_out += usage.get("output") or 0
        self.costs[f"{data.get('digest', '')} {event.seq}"] = data.get("cost")
        if model := data.get("model"):
            self.models.setdefault(model)

    def _late_cost(self, digest: str, cost: float | None) -> None:
        for key, known in self.costs.items():
            if known is None and key.partition(" ")[0] == digest:
                self.costs[key] = cost
                return

    def summary(self) -> RunSummary:
        """What is known so far; ``status`` is ``interrupted`` until a ``run_finished`` has been seen."""
        values = self.values | {"status": self.values.get("status") or "interrupted"}
        return RunSummary(
            self.run_id,
            **values,
            phases=tuple(self.phases),
            models=tuple(self.models),
            calls=self.calls,
            tools=self.tools,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost=sum(cost for cost in self.costs.values() if cost is not None),
            unknown_costs=sum(1 for cost in self.costs.values() if cost is None),
            warnings=self.warnings,
            seq=self.seq,
        )


def sizes(folder: Path) -> dict[str, int]:
    """Segments of a run and their bytes, in order: a summary is stale when these have changed. Raises OSError."""
    return {name: (folder / name).stat().st_size for name in segments(folder)}


def load(folder: Path, now: dict[str, int]) -> RunSummary | None:
    """The kept summary, or None when there is none for the segments as they are now."""
    try:
        body = json.loads((folder / FILE).read_bytes())
        if body["format"] != _FORMAT or body["segments"] != now or body["summary"]["run_id"] != folder.name:
            return None
        known = {f.name for f in fields(RunSummary)}
        values = {name: value for name, value in body["summary"].items() if name in known}
        return RunSummary(**values | {name: tuple(values[name]) for name in ("phases", "models")})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(folder: Path, summary: RunSummary, now: dict[str, int]) -> None:
    """Write the summary beside the journal. It is a cache: where it cannot be written, it is made again each time."""
    part = folder / f".{FILE}.{os.getpid()}.part"
    body = {"format": _FORMAT, "segments": now, "summary": asdict(summary)}
    try:
        part.write_text(json.dumps(body), "ascii")
        part.chmod(0o600)
        part.replace(folder / FILE)
    except OSError:
        return


def summarize(run_id: str, events: Iterable[Event]) -> RunSummary:
    """Fold a journal."""
    fold = Summarizer(run_id)
    for event in events:
        fold.apply(event)
    return fold.summary()
