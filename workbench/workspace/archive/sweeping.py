"""A sweep over an archive: each run is tried by one of many workers, what they found is kept on disk, and the sums are
made of that. So the memory does not grow with the runs, and a sweep that was cut off goes on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from workbench import __version__
from workbench.analysis.shares import split
from workbench.analysis.sweep import (
    LISTED,
    Pricing,
    RunTrials,
    Sample,
    Subject,
    Sweep,
    TriedStrategy,
    shared_strategies,
    summed,
    tried_on,
)
from workbench.context.strategy import with_named
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.journal.event import MALFORMED
from workbench.models.encodings import encodings
from workbench.models.prices import PriceTable
from workbench.store.faults import StoreError
from workbench.store.run_filter import parse_filter
from workbench.store.store import Store
from workbench.workspace.archive.sources import RunPlace
from workbench.workspace.archive.work_folder import WorkFolder
from workbench.workspace.archive.workers import ArchiveProgress, Lost, Workers
from workbench.workspace.comparing import definition_of, matching, matching_among, pricing_of, unassembled

MOST_SHARE = 20
"""Runs of a share, at most: some seconds of work, which is what is lost with a worker."""
MANY = 3000
"""Runs that are listed in less time than processes take to start."""
SHARES = 64
"""As many at least, where there are as many runs: so that no worker waits long for another."""


class SweepJob(Struct, frozen=True):
    """The job, as every worker has to know it."""

    place: RunPlace
    tried: tuple[tuple[str, str | None], ...]
    """Label and spec of each strategy; None for what each run's file says."""
    providers: tuple[str, ...]
    prices: Mapping[str, Mapping[str, float]]
    """The user's own, by model."""
    cache_ttl: float | None = None

    @property
    def candidates(self) -> tuple[TriedStrategy, ...]:
        """The strategies."""
        read = with_named({})
        return tuple(TriedStrategy(label, None if spec is None else read(spec)) for label, spec in self.tried)

    @property
    def pricings(self) -> list[Pricing]:
        """The prices. Raises PricesError."""
        table = PriceTable(self.prices)
        return [pricing_of(table, provider, self.cache_ttl) for provider in self.providers]


@lru_cache(maxsize=2)
def _prepared(job: bytes) -> tuple[SweepJob, tuple[TriedStrategy, ...], list[Pricing]]:
    read = msgspec.msgpack.decode(job, type=SweepJob)
    return read, read.candidates, read.pricings


class SweepWork(Struct, frozen=True):
    """Tries the strategies on runs, in whichever process."""

    job: bytes
    """A ``SweepJob``, as MessagePack."""

    def __call__(self, run_ids: tuple[str, ...]) -> list[RunTrials]:
        job, tried, pricings = _prepared(self.job)
        encodings().forget()
        with job.place.open(run_ids) as store:
            return [_tried(store, run_id, tried, pricings) for run_id in run_ids]


def _tried(store: Store, run_id: str, tried: Sequence[TriedStrategy], pricings: Sequence[Pricing]) -> RunTrials:
    name = run_id
    try:
        state = store.state(run_id)
        name = state.session_id or run_id
        subject = Subject(name, state, definition_of(state))
        return replace(tried_on(subject, tried, encodings(), pricings), run_id=run_id)
    except (StoreError, DefinitionError, OSError, *MALFORMED) as fault:
        return RunTrials(name, silent=unassembled(fault), run_id=run_id)


class Selected(Struct, frozen=True):
    """The runs that a command means, before any is read."""

    run_ids: tuple[str, ...]
    of: int
    """Runs that match, of which these are a sample; as many as these where they are all."""
    tried: tuple[tuple[str, str | None], ...]


class ArchiveSweep:
    """One command's sweep. A context manager: it holds what is done until ``finish``."""

    def __init__(
        self,
        root: Path,
        about: Mapping[str, Any],
        select: Callable[[], Selected],
        job: Callable[[Selected], SweepJob],
        *,
        seed: int | None = None,
        anew: bool = False,
    ) -> None:
        """``root`` is the store's that the work is kept in. ``about`` tells this command from others. ``select`` is
        asked for the runs when it begins, not when it goes on. ``seed``: of the sample, where it is one."""
        about = {"version": __version__, "seed": seed, **about}
        self._folder = WorkFolder(root, "sweep", about, Selected, select, RunTrials, anew=anew)
        self._job_of, self._seed = job, seed

    def __enter__(self) -> ArchiveSweep:
        """Raises StoreBusy, StoreError, and what ``select`` raises."""
        with ExitStack() as opening:
            self.selected = opening.enter_context(self._folder).plan
            self.began = self._folder.began
            self.job = self._job_of(self.selected)
            opening.pop_all()
        count = len(self.selected.run_ids)
        self._shares = split(self.selected.run_ids, min(MOST_SHARE, max(1, count // SHARES)))
        done = self._folder.done()
        self._left = [share for share in self._shares if share.number not in done]
        earlier = count - sum(len(share.items) for share in self._left)
        self.progress = ArchiveProgress(count, done=earlier, earlier=earlier)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.__exit__(kind, error, trace)

    def run(self, workers: Workers, observe: Callable[[ArchiveProgress], None] = lambda progress: None) -> None:
        """Try what is not tried yet. Raises StoreError, WorkersFault."""
        work = SweepWork(msgspec.msgpack.encode(self.job))
        for share, found in workers.results(work, self._left):
            kept = [
                RunTrials(run_id, silent=one.reason, run_id=run_id) if isinstance(one, Lost) else one
                for run_id, one in zip(share.items, found, strict=True)
            ]
            self._folder.keep(share.number, kept)
            self.progress.done += len(kept)
            observe(self.progress)

    def runs(self) -> Iterator[RunTrials]:
        """Yields the findings of each run, in order, by the name of its session; of one name twice, by the run's id."""
        for one in self._folder.all_results(len(self._shares)):
            if one.run in self._twice:
                trials = tuple(tuple(replace(each, run=one.run_id) for each in row) for row in one.trials)
                one = replace(one, run=one.run_id, trials=trials)
            yield one

    @cached_property
    def _twice(self) -> frozenset[str]:
        """Names of several runs; those of many runs are not looked for, which would hold all names in memory."""
        if len(self.selected.run_ids) > LISTED:
            return frozenset()
        names = Counter(one.run for one in self._folder.all_results(len(self._shares)))
        return frozenset(name for name, count in names.items() if count > 1)

    def sweep(self) -> Sweep:
        """The sums over all runs."""
        count, of = len(self.selected.run_ids), self.selected.of
        sample = Sample(count, of, self._seed or 0) if count < of else None
        return summed(self.runs, self.job.candidates, self.job.providers, sample)

    def finish(self) -> None:
        """The sums are told: what was kept to make them is not needed any more."""
        self._folder.remove()


class FilterWork(Struct, frozen=True):
    """Looks which runs match a filter, in whichever process: when each was added, and its id."""

    place: RunPlace
    filter: str
    now: str
    """The moment that ages go by, in ISO 8601."""

    def __call__(self, run_ids: tuple[str, ...]) -> list[tuple[str, str] | None]:
        wanted = parse_filter(self.filter, datetime.fromisoformat(self.now))
        with self.place.open() as store:
            found = {found[1]: found for found in matching_among(store, store.each_run(run_ids), wanted)}
        return [found.get(run_id) for run_id in run_ids]


def matching_by(workers: Workers, place: RunPlace, text: str) -> list[str]:
    """As ``matching``, of a store on this machine: by many workers where there are many runs, for each has a summary to
    be read. Raises FilterError, WorkersFault."""
    now = datetime.now().astimezone()
    parse_filter(text, now)
    run_ids = place.run_ids()
    if len(run_ids) < MANY:
        with place.open() as store:
            return matching(store, text)
    found: list[tuple[str, str]] = []
    for _, some in workers.results(FilterWork(place, text, now.isoformat()), split(run_ids, LISTED)):
        found += [one for one in some if isinstance(one, tuple)]
    return [run_id for _, run_id in sorted(found, reverse=True)]


def sampled(run_ids: Sequence[str], size: int | None, seed: int) -> tuple[str, ...]:
    """So many of the runs, drawn by chance without putting back, in their order; all where there are no more."""
    if size is None or size >= len(run_ids):
        return tuple(run_ids)
    drawn = random.Random(seed).sample(range(len(run_ids)), size)
    return tuple(run_ids[at] for at in sorted(drawn))


def shared_in(store: Store, run_ids: Sequence[str]) -> dict[str, str]:
    """Returns the strategies that the cascades of all these runs name under ``strategies:``, with the same spec."""
    shared: dict[str, str] | None = None
    seen: set[str] = set()
    for run_id in run_ids:
        try:
            text = store.summary(run_id).cascade_sha256
            if text in seen:
                continue
            seen.add(text)
            started = next(store.events(run_id)).data
            mine = shared_strategies([Definition.of(started["cascade_text"], started["cascade_file"])])
        except (StoreError, DefinitionError, StopIteration, OSError, *MALFORMED):
            continue
        shared = mine if shared is None else {name: spec for name, spec in shared.items() if mine.get(name) == spec}
        if not shared:
            break
    return shared or {}
