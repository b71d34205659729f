"""Keeps a list of runs up to date in a thread of its own: looks for new ones, filters, searches, sorts. No Textual."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from time import monotonic

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.engine.journal.costs import CostSum
from workbench.store.catalog import Catalog, Member, by_order, families
from workbench.store.run_filter import Filter, FilterError, RunMatch, find_runs, parse_filter
from workbench.store.store import Store
from workbench.store.summary import RunSummary
from workbench.store.text_search import Hit, TextSearch
from workbench.workspace.team import TeamRuns, with_team

LOOK_EVERY = 1.5
"""Seconds between two looks for runs of other processes."""
WRITING = 0.15
"""Seconds without a key after which the typed text is searched."""
SHOW_EVERY = 0.3
"""Seconds between two showings while a search goes on."""


class RunsRequest(Struct, frozen=True):
    """The request for a list."""

    text: str = ""
    """A filter as it is written."""
    order: str = "newest"
    turned: bool = False
    """Whether the order is the other way round: the oldest, the smallest or the last first."""
    folding: Mapping[str, bool] = field(default_factory=dict)


class Listing(Struct, frozen=True):
    """The list at one moment. While ``searching`` it is not complete."""

    wanted: RunsRequest
    members: Sequence[Member] = ()
    hits: Mapping[str, Mapping[str, Hit]] = field(default_factory=dict)
    """By run id and phrase."""
    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By run id the calls whose annotations the filter fits."""
    total: int = 0
    """Of all runs, those inside others not counted."""
    matching: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    """How many of the matching runs have each status."""
    spent: CostSum = CostSum()
    """What the matching runs cost, those inside them included."""
    missing: int = 0
    """Runs inside them whose costs are not known."""
    searching: str = ""
    """The current work; empty when idle."""
    fault: FilterError | None = None
    """Why the filter cannot be read: the list is the one before it."""


class RunsPoller:
    """Publishes a listing whenever it is another, from its own thread."""

    def __init__(self, store: Store, publish: Callable[[Listing], None], wanted: RunsRequest = RunsRequest()) -> None:
        self._catalog = Catalog(store)
        self._team = TeamRuns(store.server, self.look) if store.server is not None else None
        self._team_seen: Sequence[RunSummary] = ()
        self._search = TextSearch(store)
        self._publish = publish
        self._wanted = wanted
        self._good: Filter = Filter("")
        self._fault: FilterError | None = None
        self._asked = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="runs", daemon=True)

    def start(self) -> None:
        """Begin to look; returns at once."""
        self._thread.start()
        if self._team is not None:
            self._team.start()

    def stop(self) -> None:
        """Stop, and give up the current work."""
        self._over = True
        self._asked.set()
        if self._team is not None:
            self._team.stop()

    def ask(self, wanted: RunsRequest) -> None:
        """Show something else."""
        self._wanted = wanted
        self._asked.set()

    @property
    def runs(self) -> Sequence[RunSummary]:
        """All runs of this store, newest first, as they were last read."""
        return self._catalog.runs

    def look(self) -> None:
        """Look now."""
        self._asked.set()

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        shown: RunsRequest | None = None
        while not self._over:
            self._asked.clear()
            wanted = self._wanted
            changed = self._catalog.look(partial(self._show_early, wanted))
            if self._team is not None and self._team.runs is not self._team_seen:
                self._team_seen, changed = self._team.runs, True
            if (changed or wanted is not shown) and self._show(wanted):
                shown = wanted
            self._asked.wait(LOOK_EVERY)
            while "text:" in self._wanted.text and self._asked.is_set() and not self._over:
                self._asked.clear()  # Journals are searched once the filter has not changed for a moment.
                self._asked.wait(WRITING)

    def _show_early(self, wanted: RunsRequest) -> bool:
        """While the first runs are read: show those, and go on."""
        if not wanted.text:
            self._show(wanted, "reading …")
        return not self._over

    def _show(self, wanted: RunsRequest, doing: str = "") -> bool:
        """Publish the wanted list; False if another one is wanted before it is found."""
        now = datetime.now().astimezone()
        try:
            self._good, self._fault = parse_filter(wanted.text, now), None
        except FilterError as fault:
            self._fault = fault
        runs = self._catalog.runs
        if self._team_seen and not self._good.reads:  # What is elsewhere is not searched word by word.
            runs = tuple(with_team(runs, self._team_seen))
        found: list[RunMatch] = []
        early, shown_at = Listing(wanted), monotonic()

        def going(looked: int) -> bool:
            nonlocal early, shown_at
            if monotonic() - shown_at > SHOW_EVERY:
                words = f"searching {looked:,} of {len(runs):,}"
                known = early.members and early.matching == len(found)
                early = replace(early, searching=words) if known else self._listing(wanted, runs, found, words)
                self._publish(early)
                shown_at = monotonic()
            return self._wanted is wanted and not self._over

        for one in find_runs(runs, self._good, self._search, going):
            found.append(one)
        if self._good.reads and self._wanted is not wanted:
            return False
        self._publish(self._listing(wanted, runs, found, doing))
        return True

    def _listing(
        self, wanted: RunsRequest, runs: Sequence[RunSummary], found: Sequence[RunMatch], doing: str
    ) -> Listing:
        inside = self._good.asks_inside
        # A run inside another one is listed below it, or where it is asked for; so the numbers are those of the list.
        chosen, listed = [one.run for one in found], {one.run.run_id for one in found if inside or not one.run.depth}
        for run in sorted(chosen, key=lambda run: run.depth):
            if run.parent_run in listed:
                listed.add(run.run_id)
        chosen = [run for run in chosen if run.run_id in listed]
        counted = [run for run in chosen if inside or not run.depth]
        # What a run cost holds what the runs inside it did.
        paid = [run for run in chosen if not run.depth or run.parent_run not in listed]
        if wanted.order == "newest" and not wanted.turned:
            members = families(chosen, wanted.folding, inside=inside)
        else:
            members = by_order(counted, wanted.order, turned=wanted.turned)
        return Listing(
            wanted,
            members,
            {one.run.run_id: one.hits for one in found if one.hits},
            {one.run.run_id: one.calls for one in found if one.calls},
            sum(inside or not run.depth for run in runs),
            len(counted),
            Counter(run.status for run in counted),
            sum((run.spent for run in paid), CostSum()),
            sum(run.missing for run in paid),
            doing,
            self._fault,
        )
