"""A team's runs: listed beside those of this machine, and shipped while a command runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from workbench.store.faults import StoreError
from workbench.store.server.pulling import team_runs
from workbench.store.store import Store, added
from workbench.store.summary import RunSummary
from workbench.store.team_server import TeamServer
from workbench.workspace.sql_queries import server_index

if TYPE_CHECKING:
    from workbench.store.server.server_index import ServerIndex

ASK_EVERY = 15.0
"""Seconds between two questions for the runs of others."""
_LATELY = 600
"""Seconds back that are asked for again each time: clocks of machines differ."""
_ALL_AFTER = 40
"""Questions after which all runs are asked for: some may have been removed."""
LAST_SECONDS = 5.0
"""For which a command waits at its end, at most, until what it ran is on the server."""


def with_team(here: Iterable[RunSummary], there: Sequence[RunSummary]) -> list[RunSummary]:
    """The runs of this machine and those of the server, newest first, each once and with its user."""
    origins = {run.run_id: run for run in there}
    found: list[RunSummary] = []
    for run in here:
        known = origins.pop(run.run_id, None)
        found.append(run if known is None else replace(run, user=known.user, machine=known.machine))
    return sorted((*found, *origins.values()), key=added, reverse=True)


def listed(store: Store, *, elsewhere: bool = True) -> tuple[list[RunSummary], str]:
    """All runs of a store, with those of its server, and why those are missing. ``elsewhere`` False leaves out what is
    not on this machine, as a search in journals must."""
    here = store.runs()
    if store.server is None:
        return here, ""
    try:
        there = team_runs(store.server)
    except StoreError as fault:
        return here, f"only the runs of this machine: {fault}"
    merged = with_team(here, there)
    known = {run.run_id for run in here}
    return (merged if elsewhere else [run for run in merged if run.run_id in known]), ""


class TeamRuns:
    """Asks the server for its runs from time to time, in a thread of its own: one that is slow holds up no list."""

    def __init__(self, server: TeamServer, changed: Callable[[], None]) -> None:
        """``changed`` is called in that thread when the list is another one."""
        self.runs: Sequence[RunSummary] = []
        self._server = server
        self._changed = changed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="team", daemon=True)

    def start(self) -> None:
        """Begin to ask; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stop.set()

    def _run(self) -> None:
        known: dict[str, RunSummary] = {}
        asked = 0
        while not self._stop.is_set():
            with suppress(StoreError):  # Shown as they were; queries in SQL say why.
                if asked % _ALL_AFTER == 0:
                    known = {run.run_id: run for run in team_runs(self._server)}
                else:
                    known |= {run.run_id: run for run in team_runs(self._server, seconds=_LATELY)}
                asked += 1
            if (runs := list(known.values())) != self.runs:
                self.runs = runs
                self._changed()
            self._stop.wait(ASK_EVERY)


class Shipping:
    """Ships the runs of a store while a command runs; a context manager that never fails."""

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        """``say`` tells a person why runs wait here."""
        self._store = store
        self._say = say
        self._index: ServerIndex | None = None

    def __enter__(self) -> Shipping:
        if self._store.server is not None:
            try:
                self._index = server_index(self._store, self._store.server)
            except StoreError as fault:
                self._say(f"runs are not shipped: {fault}")
        return self

    def __exit__(self, *exception: object) -> None:
        if self._index is None:
            return
        try:
            self._index.catch_up(LAST_SECONDS)
        except StoreError as fault:
            self._say(f"runs wait here, and are shipped later: {fault}")
        finally:
            self._index.close(LAST_SECONDS)
